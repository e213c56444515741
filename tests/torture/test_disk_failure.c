/* Disks that refuse: full, failing, read-only; and directories that somebody else has open. */
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

static const struct kv_options synced = { .create = true };
static const struct kv_options unsynced = { .create = true, .no_sync = true };

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

/* ---- The log ---- */

static void
failing_log(const struct fixture *f, enum disk_op op, int error, const char *text)
{
	struct kv_store *store = fixture_open(f->url, synced);
	char why[REPORT_BYTES];

	assert_ok(put_number(store, 1, false, NULL, 0));
	disk_watch(f->dir);
	disk_fail(DISK_LOG, op, error, 1);
	assert_int_equal(put_number(store, 2, false, why, sizeof(why)), STATUS_IO);
	assert_int_equal(disk_failures(), 1);
	if (!strstr(why, text))
		fail_msg("'%s' does not tell of '%s'", why, text);
	/* The disk is well again; but what it has is not known. */
	for (uint32_t n = 3; n < 6; n++)
		assert_int_equal(put_number(store, n, false, why, sizeof(why)), STATUS_IO);
	assert_non_null(strstr(why, "reopened"));
	assert_int_equal(number_of(store), 1);
	kv_close(store);
	disk_unwatch();
	kv_close(reopen(f->url, 1));
}

static void
failed_sync_is_never_acknowledged(void **state)
{
	failing_log(*state, DISK_SYNC, EIO, "Input/output error");
}

static void
full_disk_refuses_writes_and_goes_on_reading(void **state)
{
	failing_log(*state, DISK_WRITE, ENOSPC, "No space left on device");
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
	assert_int_equal(status, STATUS_IO);
	assert_true(disk_failures() > 0);
	assert_int_equal(number_of(store), n - 1);
	disk_fail(file, op, 0, 0);
	kv_close(store);
	disk_unwatch();
	kv_close(reopen(f->url, n - 1));
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
	assert_int_equal(status, STATUS_IO);
	assert_non_null(strstr(err.text, "No space left on device"));
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
		T(failed_sync_is_never_acknowledged),
		T(full_disk_refuses_writes_and_goes_on_reading),
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
