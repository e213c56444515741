/*
 * Disks that refuse: full, failing, read-only; and directories that somebody else has open. A store
 * is opened again by itself as soon as its disk is well.
 */
#include "../kv/fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "disk.h"

enum {
	BIG_VALUES = 8,        /* of one transaction */
	MAX_BIG_COMMITS = 400, /* far more than the store keeps in memory */
	NOBODY = 65534,
	HANG_SECONDS = 60,
	URL_BYTES = 300,
	PROBE_MS = 20, /* between two looks at a full disk */
	PAUSE_US = 2000,
	REPORT_BYTES = 700,
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	fixture_make_dir(f);
	snprintf(f->url, sizeof(f->url), "embedded:%s", f->dir);
	*state = f;
	alarm(HANG_SECONDS);
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	alarm(0);
	umount2(f->dir, MNT_DETACH); /* of a test that failed */
	fixture_remove_dir(f);
	free(f);
	return 0;
}

static const struct kv_options synced = { .create = true, .probe_ms = PROBE_MS };
static const struct kv_options unsynced = { .create = true, .no_sync = true, .probe_ms = PROBE_MS };

/* Two keys with one number, so that half a commit would show; `big` makes it a large one. */
static enum status
put_number(struct kv_store *store, uint32_t n, bool big, char *ret_why, size_t why_bytes)
{
	static char value[KV_LIMIT_VALUE_BYTES];
	struct kv_tx *tx = begin(store);
	enum status status;

	assert_ok(kv_set(tx, STR("t/first"), str_of(&n, sizeof(n))));
	for (int i = 0; big && i < BIG_VALUES; i++) {
		char key[16];

		memset(value, (int)(n * 31 + (uint32_t)i), sizeof(value));
		snprintf(key, sizeof(key), "t/big/%d", i);
		assert_ok(kv_set(tx, str_from_cstr(key), str_of(value, sizeof(value))));
	}
	assert_ok(kv_set(tx, STR("t/last"), str_of(&n, sizeof(n))));
	status = kv_future_wait(kv_commit(tx));
	if (ret_why)
		snprintf(ret_why, why_bytes, "%s", kv_tx_error(tx));
	kv_tx_free(tx);
	return status;
}

static uint32_t
read_number(struct kv_tx *tx, struct str key)
{
	struct kv_future *f = kv_get(tx, key, KV_READ);
	struct str value;
	uint32_t n = 0;

	assert_ok(kv_future_wait(f));
	if (kv_future_value(f, &value))
		memcpy(&n, value.ptr, sizeof(n));
	return n;
}

/* The number that is there, in one piece. */
static uint32_t
number_of(struct kv_store *store)
{
	struct kv_tx *tx = begin_read(store);
	uint32_t n = read_number(tx, STR("t/first"));

	assert_int_equal(read_number(tx, STR("t/last")), n);
	kv_tx_free(tx);
	return n;
}

static struct kv_store *
reopen(const char *url, uint32_t at_least)
{
	struct kv_store *store = fixture_open(url, synced);
	uint32_t n = number_of(store);

	assert_true(n == at_least || n == at_least + 1);
	assert_ok(put_number(store, n + 1, false, NULL, 0));
	assert_int_equal(number_of(store), n + 1);
	return store;
}

/* Waits until the store takes writes; it opens itself again. */
static void
wait_until_open(struct kv_store *store)
{
	while (kv_store_stats(store).state != KV_STORE_OPEN) {
		assert_int_not_equal(kv_store_stats(store).state, KV_STORE_LOST);
		usleep(PAUSE_US);
	}
}

/* ---- The log ---- */

/*
 * A failure that does not pass. Then the disk is well again, and what was refused never comes back,
 * neither when the store reopens itself nor in the next process.
 */
static void
failing_log(const struct fixture *f, enum disk_op op, int error, enum kv_store_state in,
	    enum status first, enum status later)
{
	struct kv_store *store = fixture_open(f->url, synced);
	char why[REPORT_BYTES];

	assert_ok(put_number(store, 1, false, NULL, 0));
	disk_watch(f->dir);
	disk_fail(DISK_LOG, op, error, UINT32_MAX);
	assert_int_equal(put_number(store, 2, false, why, sizeof(why)), first);
	assert_true(disk_failures() > 0);
	if (!strstr(why, strerror(error)))
		fail_msg("'%s' does not tell of '%s'", why, strerror(error));
	assert_int_equal(kv_store_stats(store).state, in);
	for (uint32_t n = 3; n < 6; n++)
		assert_int_equal(put_number(store, n, false, why, sizeof(why)), later);
	assert_non_null(strstr(why, strerror(error)));
	assert_int_equal(number_of(store), 1);
	disk_fail(DISK_LOG, op, 0, 0);
	wait_until_open(store);
	assert_true(kv_store_stats(store).reopenings > 0);
	assert_int_equal(number_of(store), 1);
	assert_ok(put_number(store, 6, false, NULL, 0));
	assert_int_equal(number_of(store), 6);
	kv_close(store);
	disk_unwatch();
	store = reopen(f->url, 6);
	kv_close(store);
}

static void
full_disk_refuses_writes_and_goes_on_reading(void **state)
{
	failing_log(*state, DISK_WRITE, ENOSPC, KV_STORE_FULL, STATUS_FULL, STATUS_FULL);
}

static void
failing_log_refuses_writes_until_it_is_well(void **state)
{
	failing_log(*state, DISK_WRITE, EIO, KV_STORE_FAILED, STATUS_IO, STATUS_UNAVAILABLE);
}

/* The log itself cannot be synced any more, so the commit cannot be taken back for certain. */
static void
failed_sync_is_never_acknowledged(void **state)
{
	const struct fixture *f = *state;
	struct kv_store *store = fixture_open(f->url, synced);
	char why[REPORT_BYTES];

	assert_ok(put_number(store, 1, false, NULL, 0));
	disk_watch(f->dir);
	disk_fail(DISK_LOG, DISK_SYNC, EIO, UINT32_MAX);
	assert_int_equal(put_number(store, 2, false, why, sizeof(why)), STATUS_IO);
	assert_non_null(strstr(why, "not known"));
	assert_int_equal(put_number(store, 3, false, why, sizeof(why)), STATUS_UNAVAILABLE);
	assert_int_equal(number_of(store), 1);
	disk_fail(DISK_LOG, DISK_SYNC, 0, 0);
	wait_until_open(store);
	assert_int_equal(number_of(store), 1);
	assert_ok(put_number(store, 4, false, NULL, 0));
	kv_close(store);
	disk_unwatch();
	kv_close(reopen(f->url, 4));
}

/* Nobody hears of a failure that passes: the batch is taken back, and made again. */
static void
failing_once(const struct fixture *f, enum disk_op op)
{
	struct kv_store *store = fixture_open(f->url, synced);

	assert_ok(put_number(store, 1, false, NULL, 0));
	disk_watch(f->dir);
	disk_fail(DISK_LOG, op, EIO, 1);
	assert_ok(put_number(store, 2, false, NULL, 0));
	assert_int_equal(disk_failures(), 1);
	assert_int_equal(kv_store_stats(store).state, KV_STORE_OPEN);
	assert_int_equal(kv_store_stats(store).reopenings, 1);
	assert_int_equal(number_of(store), 2);
	kv_close(store);
	disk_unwatch();
	store = fixture_open(f->url, synced);
	assert_int_equal(number_of(store), 2);
	kv_close(store);
}

static void
sync_that_fails_once_ends_nothing(void **state)
{
	failing_once(*state, DISK_SYNC);
}

static void
write_that_fails_once_ends_nothing(void **state)
{
	failing_once(*state, DISK_WRITE);
}

/*
 * The disk has made something else of the bytes of a commit that has failed. They are the first of
 * their log, so no record before them tells that they were never acknowledged.
 */
static void
wrong_bytes_of_a_refused_commit_are_no_lost_ones(void **state)
{
	const struct fixture *f = *state;
	struct kv_store *store = fixture_open(f->url, synced);
	char command[sizeof(f->dir) + 160];
	char why[REPORT_BYTES];

	assert_ok(put_number(store, 1, false, NULL, 0));
	kv_close(store);
	store = fixture_open(f->url, synced);
	disk_watch(f->dir);
	/* No file can be written, so that the store is not reopened at once. */
	disk_fail(DISK_FILES, DISK_WRITE, EIO, UINT32_MAX);
	disk_fail_also(DISK_LOG, DISK_SYNC, EIO, 1);
	disk_fail_also(DISK_LOG, DISK_CUT, EIO, 1);
	assert_int_equal(put_number(store, 2, false, why, sizeof(why)), STATUS_IO);
	assert_non_null(strstr(why, "not known"));
	snprintf(command, sizeof(command),
		 "for l in %s/*.log; do printf x | dd of=$l bs=1 seek=20 conv=notrunc status=none; "
		 "done",
		 f->dir);
	assert_int_equal(system(command), 0);
	disk_fail(DISK_FILES, DISK_WRITE, 0, 0);
	wait_until_open(store);
	disk_unwatch();
	assert_int_equal(number_of(store), 1);
	assert_ok(put_number(store, 3, false, NULL, 0));
	kv_close(store);
	kv_close(reopen(f->url, 3));
}

/*
 * Of a commit whose outcome was not known, since it could be neither synced nor taken back. It is
 * there when the store is opened again: then it is published, and who watches is told.
 */
static void
commit_of_unknown_outcome_that_is_there_is_published(void **state)
{
	const struct fixture *f = *state;
	struct kv_store *store = fixture_open(f->url, synced);
	char why[REPORT_BYTES];
	struct kv_future *watch;
	struct kv_tx *tx;

	assert_ok(put_number(store, 1, false, NULL, 0));
	tx = begin(store);
	watch = kv_watch(tx, STR("t/first"));
	assert_ok(kv_future_wait(kv_commit(tx)));
	kv_tx_free(tx);
	tx = begin_read(store);
	assert_int_equal(read_number(tx, STR("t/first")), 1);
	disk_watch(f->dir);
	disk_fail(DISK_LOG, DISK_SYNC, EIO, 1);
	disk_fail_also(DISK_LOG, DISK_CUT, EIO, 2);
	assert_int_equal(put_number(store, 2, false, why, sizeof(why)), STATUS_IO);
	assert_non_null(strstr(why, "not known"));
	assert_ok(kv_future_wait(watch));
	assert_int_equal(number_of(store), 2);
	assert_int_equal(get_status(tx, STR("t/first")), STATUS_TX_TOO_OLD);
	kv_tx_free(tx);
	kv_future_free(watch);
	wait_until_open(store);
	assert_int_equal(disk_failures(), 3);
	assert_int_equal(number_of(store), 2);
	assert_ok(put_number(store, 3, false, NULL, 0));
	kv_close(store);
	disk_unwatch();
	kv_close(reopen(f->url, 3));
}

/* What a transaction and a watch of the old handle see of the new one. */
static void
transactions_and_watches_go_on_after_a_reopening(void **state)
{
	const struct fixture *f = *state;
	struct kv_store *store = fixture_open(f->url, synced);
	struct kv_tx *old, *writer, *reader, *tx;
	struct kv_future *watch;

	assert_ok(put_number(store, 1, false, NULL, 0));
	tx = begin(store);
	watch = kv_watch(tx, STR("t/first"));
	assert_ok(kv_future_wait(kv_commit(tx)));
	kv_tx_free(tx);
	old = begin_read(store);
	writer = begin(store);
	reader = begin(store);
	assert_int_equal(read_number(old, STR("t/first")), 1);
	assert_int_equal(read_number(writer, STR("t/last")), 1);
	assert_int_equal(read_number(reader, STR("t/last")), 1);
	disk_watch(f->dir);
	disk_fail(DISK_LOG, DISK_WRITE, ENOSPC, 1);
	assert_int_equal(put_number(store, 2, false, NULL, 0), STATUS_FULL);
	wait_until_open(store);
	disk_unwatch();
	/*
	 * Nothing has changed, so the watch waits; and a writer may commit by what it has seen, but
	 * not one that has not got all that it asked for.
	 */
	assert_false(kv_future_ready(watch));
	assert_int_equal(get_status(old, STR("t/first")), STATUS_TX_TOO_OLD);
	assert_int_equal(get_status(reader, STR("t/first")), STATUS_TX_TOO_OLD);
	assert_ok(kv_on_error(old, STATUS_TX_TOO_OLD));
	assert_int_equal(read_number(old, STR("t/first")), 1);
	assert_ok(kv_set(writer, STR("t/other"), STR("x")));
	assert_ok(kv_future_wait(kv_commit(writer)));
	assert_ok(kv_set(reader, STR("t/other"), STR("y")));
	assert_int_equal(kv_future_wait(kv_commit(reader)), STATUS_TX_TOO_OLD);
	kv_tx_free(old);
	kv_tx_free(writer);
	kv_tx_free(reader);
	assert_false(kv_future_ready(watch));
	assert_ok(put_number(store, 3, false, NULL, 0));
	assert_ok(kv_future_wait(watch));
	kv_future_free(watch);
	kv_close(store);
}

struct told {
	enum kv_store_state states[8];
	size_t count;
};

static void
note_told(void *arg, const struct kv_store_event *event)
{
	struct told *told = arg;

	if (told->count < sizeof(told->states) / sizeof(told->states[0]))
		told->states[told->count++] = event->state;
}

/* Acknowledged bytes that are gone when the store is opened again are never passed over. */
static void
lost_commits_are_told_and_end_the_store(void **state)
{
	const struct fixture *f = *state;
	struct told told = { 0 };
	const struct kv_options options = {
		.create = true, .probe_ms = PROBE_MS, .told = note_told, .told_arg = &told
	};
	struct kv_store *store = fixture_open(f->url, options);
	char command[sizeof(f->dir) + 64];
	char why[REPORT_BYTES];
	struct kv_tx *tx;

	assert_ok(put_number(store, 1, false, NULL, 0));
	kv_close(store);
	/* This opening brings the first commit into a table. The others are in the log alone. */
	store = fixture_open(f->url, options);
	for (uint32_t n = 2; n <= 3; n++)
		assert_ok(put_number(store, n, false, NULL, 0));
	disk_watch(f->dir);
	/* The store cannot be reopened until its log is gone. */
	disk_fail(DISK_FILES, DISK_WRITE, EIO, UINT32_MAX);
	disk_fail_also(DISK_LOG, DISK_WRITE, EIO, 1);
	assert_int_equal(put_number(store, 4, false, NULL, 0), STATUS_UNAVAILABLE);
	snprintf(command, sizeof(command), "truncate -s 0 %s/*.log", f->dir);
	assert_int_equal(system(command), 0);
	disk_fail(DISK_FILES, DISK_WRITE, 0, 0);
	while (kv_store_stats(store).state == KV_STORE_FAILED)
		usleep(PAUSE_US);
	disk_unwatch();
	assert_int_equal(kv_store_stats(store).state, KV_STORE_LOST);
	assert_int_equal(put_number(store, 5, false, why, sizeof(why)), STATUS_CORRUPT);
	if (!strstr(why, "acknowledged"))
		fail_msg("%s", why);
	tx = begin_read(store);
	assert_int_equal(get_status(tx, STR("t/first")), STATUS_UNAVAILABLE);
	kv_tx_free(tx);
	kv_close(store);
	assert_int_equal(told.count, 2);
	assert_int_equal(told.states[0], KV_STORE_FAILED);
	assert_int_equal(told.states[1], KV_STORE_LOST);
}

/*
 * RocksDB's own log of what it does is a file of the store like others, and may not fill the disk.
 */
static void
full_disk_and_the_file_log_end_nothing(void **state)
{
	const struct fixture *f = *state;
	struct kv_store *store = fixture_open(f->url, synced);
	struct err err = { 0 };

	disk_watch(f->dir);
	disk_fail(DISK_INFO_LOG, DISK_WRITE, ENOSPC, UINT32_MAX);
	assert_ok(put_number(store, 1, true, NULL, 0));
	disk_fail_also(DISK_TABLE, DISK_WRITE, EIO, UINT32_MAX);
	for (int i = 0; i < 3; i++)
		assert_int_equal(kv_compact(store, &err), STATUS_IO);
	assert_int_equal(put_number(store, 2, true, NULL, 0), STATUS_UNAVAILABLE);
	kv_close(store);
	disk_unwatch();
	kv_close(reopen(f->url, 1));
}

/* ---- Flushes ---- */

static void
failing_flush(const struct fixture *f, enum disk_file file, enum disk_op op, int error)
{
	struct kv_store *store = fixture_open(f->url, unsynced);
	enum status status = STATUS_OK;
	uint32_t n = 0;

	disk_watch(f->dir);
	disk_fail(file, op, error, UINT32_MAX);
	while (status == STATUS_OK && n < MAX_BIG_COMMITS)
		status = put_number(store, ++n, true, NULL, 0);
	/* Memory is not filled without end, and nobody waits for ever. */
	assert_int_equal(status, error == ENOSPC ? STATUS_FULL : STATUS_UNAVAILABLE);
	assert_true(disk_failures() > 0);
	assert_int_equal(number_of(store), n - 1);
	disk_fail(file, op, 0, 0);
	wait_until_open(store);
	assert_int_equal(number_of(store), n - 1);
	assert_ok(put_number(store, n, true, NULL, 0));
	kv_close(store);
	disk_unwatch();
	kv_close(reopen(f->url, n));
}

static void
failed_flush_ends_in_refused_commits_and_loses_nothing(void **state)
{
	failing_flush(*state, DISK_TABLE, DISK_WRITE, ENOSPC);
}

static void
failed_sync_of_a_table_ends_in_refused_commits_and_loses_nothing(void **state)
{
	failing_flush(*state, DISK_TABLE, DISK_SYNC, EIO);
}

static void
failed_manifest_ends_in_refused_commits_and_loses_nothing(void **state)
{
	failing_flush(*state, DISK_MANIFEST, DISK_SYNC, EIO);
}

static void
failed_opening_can_be_repeated(void **state)
{
	static const struct {
		enum disk_file file;
		enum disk_op op;
	} failures[] = {
		{ DISK_TABLE, DISK_WRITE },    { DISK_TABLE, DISK_SYNC },
		{ DISK_MANIFEST, DISK_WRITE }, { DISK_MANIFEST, DISK_SYNC },
		{ DISK_CURRENT, DISK_RENAME },
	};
	const struct fixture *f = *state;
	struct kv_store *store = fixture_open(f->url, synced);
	uint32_t n = 1;

	assert_ok(put_number(store, n, false, NULL, 0));
	kv_close(store);
	disk_watch(f->dir);
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		struct err err = { 0 };

		disk_fail(failures[i].file, failures[i].op, ENOSPC, UINT32_MAX);
		assert_int_equal(kv_open(f->url, &synced, &store, &err), STATUS_IO);
		assert_non_null(strstr(err.text, "No space left"));
		disk_fail(failures[i].file, failures[i].op, 0, 0);
		kv_close(reopen(f->url, n++));
	}
	disk_unwatch();
}

/* ---- Real file systems, where this may mount one ---- */

static bool
mount_small(const char *dir, const char *size)
{
	return mount("frond", dir, "tmpfs", 0, size) == 0;
}

static void
full_file_system_loses_nothing_acknowledged(void **state)
{
	struct fixture *f = *state;
	struct kv_store *store;
	struct err err = { 0 };
	enum status status;
	uint32_t n = 0;

	if (!mount_small(f->dir, "size=12m"))
		skip();
	store = fixture_open(f->url, synced);
	do
		status = put_number(store, ++n, true, err.text, sizeof(err.text));
	while (status == STATUS_OK && n < MAX_BIG_COMMITS);
	assert_int_equal(status, STATUS_FULL);
	assert_non_null(strstr(err.text, "No space left on device"));
	assert_int_equal(number_of(store), n - 1);
	assert_int_equal(mount("frond", f->dir, "tmpfs", MS_REMOUNT, "size=100m"), 0);
	wait_until_open(store);
	assert_int_equal(number_of(store), n - 1);
	assert_int_equal(mount("frond", f->dir, "tmpfs", MS_REMOUNT, "size=16m"), 0);
	do
		status = put_number(store, n++, true, err.text, sizeof(err.text));
	while (status == STATUS_OK && n < MAX_BIG_COMMITS);
	assert_int_equal(status, STATUS_FULL);
	n--;
	assert_int_equal(number_of(store), n - 1);
	kv_close(store);
	/* Opening may need room; if it says so nothing has happened. */
	status = kv_open(f->url, &synced, &store, &err);
	if (status == STATUS_OK)
		kv_close(store);
	else
		assert_non_null(strstr(err.text, "No space left on device"));
	assert_int_equal(mount("frond", f->dir, "tmpfs", MS_REMOUNT, "size=100m"), 0);
	kv_close(reopen(f->url, n - 1));
	assert_int_equal(umount(f->dir), 0);
}

/* ---- Openings by another process ---- */

/* Another process opens it, with the effective user `uid`; what it was told. */
static void
open_elsewhere(const char *url, bool read_only, uid_t uid, char ret[REPORT_BYTES])
{
	char uid_text[16];
	size_t len = 0;
	int fds[2];
	ssize_t n;
	pid_t pid;

	snprintf(uid_text, sizeof(uid_text), "%u", uid);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execl("/proc/self/exe", "test_disk_failure", url, read_only ? "read" : "write",
		      uid_text, (char *)NULL);
		_exit(1);
	}
	assert_true(pid > 0);
	close(fds[1]);
	while ((n = read(fds[0], ret + len, REPORT_BYTES - 1 - len)) > 0)
		len += (size_t)n;
	ret[len] = '\0';
	close(fds[0]);
	waitpid(pid, NULL, 0);
}

static int
open_and_tell(char **argv)
{
	const struct kv_options options = { .create = true,
					    .read_only = strcmp(argv[2], "read") == 0 };
	struct kv_store *store;
	struct err err = { 0 };
	enum status status;

	if (seteuid((uid_t)atoi(argv[3])) != 0)
		return 1;
	status = kv_open(argv[1], &options, &store, &err);
	if (status == STATUS_OK) {
		snprintf(err.text, sizeof(err.text), "%u", number_of(store));
		kv_close(store);
	}
	printf("%s %s\n", status_name(status), err.text);
	/* A process that has been somebody else may not be looked at, not even by a sanitizer. */
	return seteuid(getuid()) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0;
}

static void
store_of_another_process_is_locked(void **state)
{
	const struct fixture *f = *state;
	struct kv_store *store = fixture_open(f->url, synced);
	char report[REPORT_BYTES];

	assert_ok(put_number(store, 1, false, NULL, 0));
	open_elsewhere(f->url, false, geteuid(), report);
	assert_non_null(strstr(report, "locked "));
	assert_non_null(strstr(report, "in use by another process"));
	/* The attempt has disturbed nothing, not even the lock. */
	open_elsewhere(f->url, false, geteuid(), report);
	assert_non_null(strstr(report, "locked "));
	assert_ok(put_number(store, 2, false, NULL, 0));
	kv_close(store);
	open_elsewhere(f->url, false, geteuid(), report);
	assert_string_equal(report, "ok 2\n");
}

/* Closes a store so that one number is in its log and one in a table. */
static void
leave_two(const char *url)
{
	for (uint32_t n = 1; n <= 2; n++) {
		struct kv_store *store = fixture_open(url, synced);

		assert_ok(put_number(store, n, false, NULL, 0));
		kv_close(store);
	}
}

static void
read_only_directory_is_told_and_can_be_read(void **state)
{
	const struct fixture *f = *state;
	uid_t uid = geteuid() == 0 ? NOBODY : geteuid();
	char report[REPORT_BYTES];

	leave_two(f->url);
	assert_int_equal(chmod(f->dir, 0555), 0);
	open_elsewhere(f->url, false, uid, report);
	if (strncmp(report, "io ", 3) != 0 || !strstr(report, "Permission denied"))
		fail_msg("told: %s", report);
	open_elsewhere(f->url, true, uid, report);
	assert_string_equal(report, "ok 2\n");
	assert_int_equal(chmod(f->dir, 0755), 0);
}

static void
read_only_file_system_is_told_and_can_be_read(void **state)
{
	const struct fixture *f = *state;
	char report[REPORT_BYTES];

	if (!mount_small(f->dir, "size=100m"))
		skip();
	leave_two(f->url);
	assert_int_equal(mount("frond", f->dir, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL), 0);
	open_elsewhere(f->url, false, geteuid(), report);
	if (strncmp(report, "io ", 3) != 0 || !strstr(report, "Read-only file system"))
		fail_msg("told: %s", report);
	open_elsewhere(f->url, true, geteuid(), report);
	assert_string_equal(report, "ok 2\n");
	assert_int_equal(umount(f->dir), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(full_disk_refuses_writes_and_goes_on_reading),
		T(failing_log_refuses_writes_until_it_is_well),
		T(failed_sync_is_never_acknowledged),
		T(sync_that_fails_once_ends_nothing),
		T(write_that_fails_once_ends_nothing),
		T(wrong_bytes_of_a_refused_commit_are_no_lost_ones),
		T(commit_of_unknown_outcome_that_is_there_is_published),
		T(transactions_and_watches_go_on_after_a_reopening),
		T(lost_commits_are_told_and_end_the_store),
		T(full_disk_and_the_file_log_end_nothing),
		T(failed_flush_ends_in_refused_commits_and_loses_nothing),
		T(failed_sync_of_a_table_ends_in_refused_commits_and_loses_nothing),
		T(failed_manifest_ends_in_refused_commits_and_loses_nothing),
		T(failed_opening_can_be_repeated),
		T(full_file_system_loses_nothing_acknowledged),
		T(store_of_another_process_is_locked),
		T(read_only_directory_is_told_and_can_be_read),
		T(read_only_file_system_is_told_and_can_be_read),
	};

	if (argc == 4)
		return open_and_tell(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
