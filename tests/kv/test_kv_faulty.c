/* The faulty engine itself: that it does what its settings say, and that the retry loop copes. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kv/backup.h"
#include "kv/faulty/faulty.h"

/* ---- A store with given faults ---- */

static struct fixture f;
static struct kv_store *store;

static void
open_with(const char *settings)
{
	char url[sizeof(f.dir) + 128];

	if (!f.dir[0])
		fixture_make_dir(&f);
	snprintf(url, sizeof(url), "faulty:%s,seed=%llu:embedded:%s", settings,
		 (unsigned long long)test_seed(), f.dir);
	store = fixture_open(url, (struct kv_options){ .create = true, .no_sync = true });
}

static int
teardown(void **state)
{
	(void)state;
	kv_close(store);
	store = NULL;
	if (f.dir[0])
		fixture_remove_dir(&f);
	f.dir[0] = '\0';
	return 0;
}

static uint64_t
number_in(struct kv_store *where, const char *key)
{
	struct kv_tx *tx = begin_read(where);
	struct kv_future *read = kv_get(tx, str_from_cstr(key), KV_READ);
	struct str value;
	uint64_t n = 0;

	assert_ok(kv_future_wait(read));
	if (kv_future_value(read, &value)) {
		assert_int_equal(value.len, sizeof(n));
		memcpy(&n, value.ptr, sizeof(n));
	}
	kv_tx_free(tx);
	return n;
}

static enum status
add_one(struct kv_tx *tx, void *arg)
{
	struct kv_future *read = kv_get(tx, STR("t/n"), KV_READ);
	struct str value;
	uint64_t n = 0;

	(void)arg;
	TRY(kv_future_wait(read));
	if (kv_future_value(read, &value))
		memcpy(&n, value.ptr, sizeof(n));
	n++;
	TRY(kv_set(tx, STR("t/n"), str_of(&n, sizeof(n))));
	TRY(kv_atomic(tx, KV_ADD, STR("t/sum"), STR("\1\0\0\0\0\0\0\0")));
	return kv_set_versionstamped_value(tx, STR("t/stamp"), STR("0123456789"), 0);
}

/* ---- Tests ---- */

static void
settings_that_make_no_sense_are_invalid(void **state)
{
	static const char *const urls[] = {
		"faulty:",
		"faulty:embedded",
		"faulty:seed:embedded:/tmp/x",
		"faulty:seed=x:embedded:/tmp/x",
		"faulty:rate=2:embedded:/tmp/x",
		"faulty:rate=-1:embedded:/tmp/x",
		"faulty:delay=:embedded:/tmp/x",
		"faulty:unknown=1:embedded:/tmp/x",
		"faulty:exit=never:embedded:/tmp/x",
		"faulty:exit=read@x:embedded:/tmp/x",
		"faulty:seed=1:leveldb:/tmp/x",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		struct kv_store *none = NULL;
		struct err err = { 0 };

		if (kv_open(urls[i], NULL, &none, &err) != STATUS_INVALID || !err.text[0])
			fail_msg("%s", urls[i]);
	}
	store = NULL;
}

/* Whatever fails in it once is passed over. */
static enum status
add_in_spite_of_failures(struct kv_tx *tx, void *arg)
{
	unsigned *runs = arg;

	++*runs;
	if (add_one(tx, NULL) != STATUS_OK)
		return add_one(tx, NULL);
	return STATUS_OK;
}

static void
what_a_failed_read_was_passed_over_for_is_not_committed(void **state)
{
	static const enum status statuses[] = { STATUS_TX_TOO_OLD, STATUS_TX_CONFLICT };
	uint64_t version;
	unsigned runs;

	(void)state;
	open_with("rate=0,delay=0,watch=0");
	for (uint64_t i = 0; i < 2; i++) {
		struct kv_faulty_tap tap = { .fail_call = 1, .fail_with = statuses[i] };
		struct kv_tx *tx = begin(store);
		struct kv_future *committed;

		kv_faulty_tap(store, &tap);
		assert_int_equal(kv_future_wait(kv_get(tx, STR("t/n"), KV_SNAPSHOT)), statuses[i]);
		assert_ok(add_one(tx, NULL));
		committed = kv_commit(tx);
		assert_int_equal(kv_future_wait(committed), statuses[i]);
		kv_future_free(committed);
		assert_int_not_equal(kv_committed_version(tx, &version), STATUS_OK);
		kv_tx_reset(tx);
		assert_ok(add_one(tx, NULL));
		commit(tx);
		assert_int_equal(number_in(store, "t/n"), 2 * i + 1);

		tap = (struct kv_faulty_tap){ .fail_call = 1, .fail_with = statuses[i] };
		runs = 0;
		assert_ok(kv_run(store, add_in_spite_of_failures, &runs, NULL, NULL));
		assert_int_equal(runs, 2);
		kv_faulty_tap(store, NULL);
		assert_int_equal(number_in(store, "t/n"), 2 * i + 2);
	}
}

static void
without_faults_nothing_fails(void **state)
{
	(void)state;
	open_with("rate=0,delay=1,watch=0");
	assert_ptr_equal(kv_faulty_inner(kv_faulty_inner(store)), kv_faulty_inner(store));
	for (uint64_t i = 1; i <= 200; i++) {
		struct kv_tx *tx = begin(store);

		assert_ok(add_one(tx, NULL));
		commit(tx);
		assert_int_equal(number_in(store, "t/n"), i);
	}
}

/* Each commit is one of the five, and what it says of itself is what the inner store holds. */
static void
commit_has_happened_when_it_says_so(void **state)
{
	uint64_t applied = kv_faulty_count(KV_FAULTY_UNKNOWN_APPLIED);
	uint64_t lost = kv_faulty_count(KV_FAULTY_UNKNOWN_NOT_APPLIED);
	struct kv_store *inner;
	int seen[STATUS_COUNT] = { 0 };
	int unknown[2] = { 0 };

	(void)state;
	open_with("rate=0.7,delay=0.2,watch=0");
	inner = kv_faulty_inner(store);
	for (uint64_t i = 1; i <= 300; i++) {
		struct kv_tx *tx = begin(store);
		uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
		enum status status;
		bool there;

		assert_ok(kv_set(tx, STR("t/i"), str_of(&i, sizeof(i))));
		kv_want_versionstamp(tx);
		status = kv_future_wait(kv_commit(tx));
		assert_int_equal(kv_versionstamp(tx, stamp),
				 status == STATUS_OK ? STATUS_OK : STATUS_NOT_FOUND);
		assert_int_equal(kv_set(tx, STR("t/i"), STR("")), STATUS_TX_USED);
		kv_tx_free(tx);
		seen[status]++;
		there = number_in(inner, "t/i") == i;
		if (status == STATUS_TX_UNKNOWN)
			unknown[there]++;
		else
			assert_int_equal(there, status == STATUS_OK);
	}
	assert_true(seen[STATUS_OK] && seen[STATUS_TX_CONFLICT] && seen[STATUS_TX_TOO_OLD]);
	assert_int_equal(unknown[true], kv_faulty_count(KV_FAULTY_UNKNOWN_APPLIED) - applied);
	assert_int_equal(unknown[false], kv_faulty_count(KV_FAULTY_UNKNOWN_NOT_APPLIED) - lost);
	assert_true(unknown[true] && unknown[false]);
	assert_int_equal(seen[STATUS_OK] + seen[STATUS_TX_CONFLICT] + seen[STATUS_TX_TOO_OLD] +
				 seen[STATUS_TX_UNKNOWN],
			 300);
}

static void
retried_bodies_count_once_and_get_their_own_stamp(void **state)
{
	uint8_t last[KV_VERSIONSTAMP_TX_BYTES] = { 0 };
	struct kv_store *inner;
	struct kv_tx *tx;
	bool more;

	(void)state;
	open_with("rate=0.4,delay=0.1,watch=0");
	inner = kv_faulty_inner(store);
	/* The rarest path may take more than that. */
	for (uint64_t i = 1; i <= 200 || (i < 5000 && !kv_faulty_count(KV_FAULTY_UNKNOWN_TWICE));
	     i++) {
		uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
		struct kv_future *read;
		struct str value;

		assert_ok(kv_run(store, add_one, NULL, stamp, NULL));
		assert_int_equal(number_in(inner, "t/n"), i);
		assert_int_equal(number_in(inner, "t/sum"), i);
		assert_true(memcmp(stamp, last, sizeof(stamp)) > 0);
		memcpy(last, stamp, sizeof(stamp));
		tx = begin_read(inner);
		read = kv_get(tx, STR("t/stamp"), KV_READ);
		assert_ok(kv_future_wait(read));
		assert_true(kv_future_value(read, &value));
		assert_memory_equal(value.ptr, stamp, sizeof(stamp));
		kv_tx_free(tx);
	}
	assert_true(kv_faulty_count(KV_FAULTY_UNKNOWN_THEN_RETRY) > 0);
	assert_true(kv_faulty_count(KV_FAULTY_UNKNOWN_TWICE) > 0);
	assert_ok(kv_txids_sweep(store, 0, &more, NULL));
}

/* More reads than the failing one may have before it. */
static enum status
read_much(struct kv_tx *tx, void *arg)
{
	(void)arg;
	for (int i = 0; i < 128; i++)
		TRY(kv_future_wait(kv_get(tx, STR("t/n"), KV_READ)));
	return STATUS_OK;
}

static void
store_that_always_fails_exhausts_the_retries(void **state)
{
	uint64_t before = kv_faulty_count(KV_FAULTY_RETRY_LIMIT);
	struct err err = { 0 };

	(void)state;
	open_with("rate=1,delay=0,watch=0");
	assert_int_equal(kv_run_read(store, read_much, NULL, &err), STATUS_TX_TOO_OLD);
	assert_non_null(strstr(err.text, "gave up"));
	assert_int_equal(kv_faulty_count(KV_FAULTY_RETRY_LIMIT), before + 1);
}

enum {
	MANY = 200,
	ROUNDS = 100,
};

static void
put_many(void)
{
	struct kv_tx *tx = begin(kv_faulty_inner(store));

	for (int i = 0; i < MANY; i++) {
		char key[16];

		snprintf(key, sizeof(key), "t/%03d", i);
		put(tx, key, key);
	}
	commit(tx);
}

static void
get_many(struct kv_tx *tx, struct kv_future *ret[MANY])
{
	for (int i = 0; i < MANY; i++) {
		char key[16];

		snprintf(key, sizeof(key), "t/%03d", i);
		ret[i] = kv_get(tx, str_from_cstr(key), KV_READ);
	}
}

/* Reads them all at once, and returns how many answers were pending when all had been asked for. */
static int
read_many_once(void)
{
	struct kv_future *reads[MANY];
	struct kv_tx_stats stats;
	struct kv_tx *tx = begin_read(store);
	int pending = 0;

	get_many(tx, reads);
	for (int i = 0; i < MANY; i++)
		pending += !kv_future_ready(reads[i]) && kv_future_event(reads[i]);
	for (int i = MANY; i-- > 0;) {
		char key[16];
		struct str value;

		snprintf(key, sizeof(key), "t/%03d", i);
		assert_ok(kv_future_wait(reads[i]));
		assert_null(kv_future_event(reads[i]));
		assert_true(kv_future_value(reads[i], &value));
		assert_true(str_eq(value, str_from_cstr(key)));
		if (i % 2)
			kv_future_free(reads[i]);
	}
	stats = kv_tx_stats(tx);
	assert_int_equal(stats.round_trips, 1);
	assert_int_equal(stats.reads, MANY);
	assert_int_equal(stats.keys_read, MANY);
	kv_tx_free(tx);
	return pending;
}

static void
answers_overtake_each_other_and_stay_right(void **state)
{
	uint64_t before = kv_faulty_count(KV_FAULTY_REORDERED);
	int pending = 0;

	(void)state;
	open_with("rate=0,delay=1,watch=0");
	put_many();
	/* On a machine that is busy a thread may sleep for longer than any answer is late. */
	for (int i = 0; i < ROUNDS && !pending; i++)
		pending = read_many_once();
	assert_true(pending > 0);
	assert_true(kv_faulty_count(KV_FAULTY_REORDERED) > before);
}

static void
late_answers_are_let_go_of_at_any_time(void **state)
{
	struct kv_future *reads[MANY];

	(void)state;
	open_with("rate=0,delay=1,watch=0");
	put_many();
	for (int round = 0; round < 30; round++) {
		struct kv_tx *tx = begin(store);

		get_many(tx, reads);
		for (int i = round; i < MANY; i += 3)
			kv_future_free(reads[i]);
		if (round % 3 == 0) {
			kv_tx_reset(tx);
			get_many(tx, reads);
		}
		if (round % 3 == 1) {
			put(tx, "t/x", "1");
			(void)kv_commit(tx);
		}
		kv_tx_free(tx);
	}
}

static void
cancelled_reads_answer_so(void **state)
{
	int cancelled = 0;

	(void)state;
	open_with("rate=0,delay=1,watch=0");
	put_many();
	for (int round = 0; round < ROUNDS && !cancelled; round++) {
		struct kv_tx *tx = begin(store);
		struct kv_future *reads[MANY];

		get_many(tx, reads);
		kv_cancel(tx);
		for (int i = 0; i < MANY; i++) {
			enum status status = kv_future_wait(reads[i]);

			assert_true(status == STATUS_OK || status == STATUS_CANCELLED);
			cancelled += status == STATUS_CANCELLED;
		}
		assert_int_equal(get_status(tx, STR("t/a")), STATUS_CANCELLED);
		kv_tx_reset(tx);
		assert_get(tx, "t/000", "t/000");
		kv_tx_free(tx);
	}
	assert_true(cancelled > 0);
}

/* ---- Watches ---- */

enum {
	WATCHES = 60,
	SOON_MS = 20, /* longer than a disturbed watch takes */
};

static void
watch_all(struct kv_tx *tx, struct kv_future *ret[WATCHES])
{
	for (int i = 0; i < WATCHES; i++)
		ret[i] = kv_watch(tx, STR("t/w"));
}

/* How many have ended like that so far. */
static int
count_ended(struct kv_future *const watches[WATCHES], enum status status)
{
	int n = 0;

	for (int i = 0; i < WATCHES; i++)
		n += kv_future_ready(watches[i]) && kv_future_wait(watches[i]) == status;
	return n;
}

static void
disturbed_watches_complete_after_the_commit(void **state)
{
	struct kv_future *watches[WATCHES];
	struct event never;
	struct kv_tx *tx;

	(void)state;
	open_with("rate=0,delay=0,watch=1");
	event_init(&never);
	tx = begin_read(store);
	watch_all(tx, watches);
	(void)event_wait(&never, clock_after_ms(SOON_MS));
	for (int i = 0; i < WATCHES; i++)
		assert_false(kv_future_ready(watches[i]));
	commit(tx);
	/* Lost and without a change, without anybody's doing … */
	while (!count_ended(watches, STATUS_UNAVAILABLE) || !count_ended(watches, STATUS_OK))
		(void)event_wait(&never, clock_after_ms(1));
	(void)event_wait(&never, clock_after_ms(SOON_MS));
	assert_true(kv_store_stats(store).watches > 0);
	/* … and the others late, but never not. */
	put_now(store, "t/w", "1");
	for (int i = 0; i < WATCHES; i++) {
		enum status status = kv_future_wait(watches[i]);

		assert_true(status == STATUS_OK || status == STATUS_UNAVAILABLE);
	}
	for (int i = 0; i < WATCHES; i++)
		kv_future_free(watches[i]);
	assert_true(kv_faulty_count(KV_FAULTY_WATCH_LATE) > 0);
	assert_int_equal(kv_store_stats(store).watches, 0);
}

static void
watches_of_what_ends_are_cancelled(void **state)
{
	struct kv_future *uncommitted[WATCHES];
	struct kv_future *open[WATCHES];
	struct kv_tx *tx;

	(void)state;
	open_with("rate=0,delay=0,watch=1");
	tx = begin(store);
	watch_all(tx, uncommitted);
	kv_tx_free(tx);
	tx = begin_read(store);
	watch_all(tx, open);
	commit(tx);
	kv_close(store);
	store = NULL;
	for (int i = 0; i < WATCHES; i++) {
		assert_int_equal(kv_future_wait(uncommitted[i]), STATUS_CANCELLED);
		assert_true(kv_future_ready(open[i]));
		kv_future_free(uncommitted[i]);
		kv_future_free(open[i]);
	}
}

/* ---- What comes between the reads and the commit ---- */

static int interrupted;

static void
add_one_between(void *arg)
{
	interrupted++;
	assert_ok(kv_run(store, add_one, arg, NULL, NULL));
}

static enum status
set_unread(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return kv_set(tx, STR("t/other"), STR("1"));
}

static enum status
read_only(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return kv_future_wait(kv_get(tx, STR("t/n"), KV_READ));
}

static void
interrupted_commit_fails_if_what_it_read_has_changed(void **state)
{
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
	struct kv_tx *tx;

	(void)state;
	open_with("rate=0,delay=0,watch=0");
	interrupted = 0;
	assert_false(kv_faulty_interrupt(store, 1, add_one_between, NULL));
	tx = begin(store);
	assert_ok(add_one(tx, NULL));
	kv_want_versionstamp(tx);
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_TX_CONFLICT);
	assert_int_equal(kv_versionstamp(tx, stamp), STATUS_NOT_FOUND);
	kv_tx_free(tx);
	assert_int_equal(number_in(store, "t/n"), 1);
	/* The third that writes: neither one that only reads nor one before it. */
	assert_false(kv_faulty_interrupt(store, 3, add_one_between, NULL));
	assert_ok(kv_run(store, add_one, NULL, NULL, NULL));
	assert_ok(kv_run(store, read_only, NULL, NULL, NULL));
	assert_ok(kv_run(store, set_unread, NULL, NULL, NULL));
	assert_int_equal(interrupted, 1);
	assert_ok(kv_run(store, add_one, NULL, NULL, NULL));
	assert_int_equal(interrupted, 2);
	assert_int_equal(number_in(store, "t/n"), 4);
	/* Nothing that it read has changed. */
	assert_false(kv_faulty_interrupt(store, 1, add_one_between, NULL));
	tx = begin(store);
	assert_ok(set_unread(tx, NULL));
	commit(tx);
	assert_int_equal(interrupted, 3);
	assert_false(kv_faulty_interrupt(store, 1, add_one_between, NULL));
	assert_true(kv_faulty_interrupt(store, 0, NULL, NULL));
	assert_ok(kv_run(store, add_one, NULL, NULL, NULL));
	assert_int_equal(interrupted, 3);
}

/* ---- The end of the process ---- */

enum {
	CHILD_RUNS = 5, /* of the body, unless the process ends before */
};

/* In a process of its own, whose one argument is the store's URL. */
static int
child_main(const char *url)
{
	store = fixture_open(url, (struct kv_options){ .create = true, .no_sync = true });
	for (int i = 0; i < CHILD_RUNS; i++)
		if (kv_run(store, add_one, NULL, NULL, NULL) != STATUS_OK)
			_exit(1);
	kv_close(store);
	return 0;
}

static int
exit_code_of(const char *settings)
{
	char url[sizeof(f.dir) + 128];
	pid_t child;
	int status;

	if (!f.dir[0])
		fixture_make_dir(&f);
	snprintf(url, sizeof(url), "faulty:%s:embedded:%s", settings, f.dir);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		execl("/proc/self/exe", "test_kv_faulty", url, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
process_ends_at_the_point_that_is_named(void **state)
{
	(void)state;
	assert_int_equal(exit_code_of("rate=0,exit=before-commit@3"), KV_FAULTY_EXIT_CODE);
	assert_int_equal(exit_code_of("rate=0,exit=after-commit@3"), KV_FAULTY_EXIT_CODE);
	assert_int_equal(exit_code_of("rate=0,exit=read"), KV_FAULTY_EXIT_CODE);
	assert_int_equal(exit_code_of("rate=0,exit=read@100"), 0);
	open_with("rate=0");
	assert_int_equal(number_in(store, "t/n"), 2 + 3 + 0 + 5);
	assert_int_equal(number_in(store, "t/sum"), 2 + 3 + 0 + 5);
}

/* ---- Memory ---- */

static enum status
use_everything(void)
{
	struct kv_store *opened;
	struct kv_tx *tx;
	struct kv_future *watch;
	struct kv_future *read;
	char url[sizeof(f.dir) + 64];
	enum status status;

	snprintf(url, sizeof(url), "faulty:rate=0,delay=0.5,watch=1:embedded:%s", f.dir);
	TRY(kv_open(url, &(struct kv_options){ .create = true, .no_sync = true }, &opened, NULL));
	status = kv_begin(opened, KV_TX_READ_WRITE, &tx);
	if (status == STATUS_OK) {
		watch = kv_watch(tx, STR("t/w"));
		read = kv_get_range(tx, STR("t/"), STR("t0"), NULL);
		status = kv_future_ready(watch) ? kv_future_wait(watch) : kv_future_wait(read);
		if (status == STATUS_OK)
			status = kv_set(tx, STR("t/a"), STR("1"));
		if (status == STATUS_OK)
			status = kv_future_wait(kv_commit(tx));
		kv_tx_free(tx);
		kv_future_free(watch);
	}
	kv_close(opened);
	return status;
}

static void
every_failed_allocation_is_reported(void **state)
{
	enum status status = STATUS_NOMEM;

	(void)state;
	fixture_make_dir(&f);
	for (uint64_t n = 1; status != STATUS_OK; n++) {
		assert_true(n < 200);
		mem_fail_after(n);
		status = use_everything();
		mem_fail_after(0);
		assert_true(status == STATUS_OK || status == STATUS_NOMEM);
	}
}

static void
backups_are_those_of_the_inner_store(void **state)
{
	const struct kv_restore as_it_is = { 0 };
	struct kv_backup backup, restored;
	char path[sizeof(f.dir) + 32], url[sizeof(path) + 64];
	struct err err = { 0 };

	(void)state;
	open_with("rate=0.5,delay=0,watch=0");
	put_now(kv_faulty_inner(store), "t/a", "1");
	snprintf(path, sizeof(path), "%s.backups", f.dir);
	if (kv_backup_create(store, path, &backup, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	kv_close(store);
	fixture_remove_dir(&f);
	snprintf(url, sizeof(url), "faulty:rate=0:embedded:%s", f.dir);
	if (kv_backup_restore(path, 0, url, &as_it_is, &restored, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	assert_int_equal(restored.id, backup.id);
	store = fixture_open(url, (struct kv_options){ 0 });
	assert_stored(store, "t/a", "1");
	assert_int_equal(kv_backup_restore(path, 0, "faulty:", &as_it_is, &restored, &err),
			 STATUS_INVALID);
	test_remove_tree(path);
}

#define T(name) cmocka_unit_test_setup_teardown(name, NULL, teardown)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(settings_that_make_no_sense_are_invalid),
		T(what_a_failed_read_was_passed_over_for_is_not_committed),
		T(without_faults_nothing_fails),
		T(commit_has_happened_when_it_says_so),
		T(retried_bodies_count_once_and_get_their_own_stamp),
		T(store_that_always_fails_exhausts_the_retries),
		T(answers_overtake_each_other_and_stay_right),
		T(late_answers_are_let_go_of_at_any_time),
		T(cancelled_reads_answer_so),
		T(disturbed_watches_complete_after_the_commit),
		T(watches_of_what_ends_are_cancelled),
		T(interrupted_commit_fails_if_what_it_read_has_changed),
		T(process_ends_at_the_point_that_is_named),
		T(every_failed_allocation_is_reported),
		T(backups_are_those_of_the_inner_store),
	};

	kv_faulty_register();
	if (argc == 2)
		return child_main(argv[1]);
	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
