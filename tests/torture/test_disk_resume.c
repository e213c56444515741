/*
 * A disk that fails at every single one of its operations in turn, and is well again afterwards,
 * under a store that goes on by itself: what was acknowledged is there, what was refused is not,
 * whoever follows the changes has seen each of them once and in order, and writing begins again.
 */
#include "../kv/fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "disk.h"

enum {
	COMMITS = 6, /* between two compactions */
	COMPACTIONS = 2,
	MAX_ATTEMPTS = 1 << 18,
	MAX_OPERATIONS = 2000, /* far more than the workload needs */
	HANG_SECONDS = 300,
	PROBE_MS = 10,
	PAUSE_US = 1000,
	LOOK_MS = 20,
	SWITCHES = 25,
	WRITERS = 2,
	ARG_BYTES = 32,
};

#define LOG_BEGIN STR("t/log/")
#define LOG_END   STR("t/log0")

static const struct kv_options options = { .create = true, .probe_ms = PROBE_MS };

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
	fixture_remove_dir(f);
	free(f);
	return 0;
}

/* Ends the program with a message: on threads of its own, cmocka's checks would end it without. */
#define require(condition, ...)                                                                    \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                            \
			fprintf(stderr, __VA_ARGS__);                                              \
			fputc('\n', stderr);                                                       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* ---- What was answered ---- */

enum outcome {
	OUTCOME_NONE,
	ACKNOWLEDGED,
	REFUSED, /* for certain */
	UNKNOWN,
};

struct ledger {
	pthread_mutex_t lock;
	uint32_t attempts;
	enum outcome outcomes[MAX_ATTEMPTS];
};

static uint32_t
ledger_begin(struct ledger *l)
{
	uint32_t attempt;

	pthread_mutex_lock(&l->lock);
	attempt = l->attempts++;
	pthread_mutex_unlock(&l->lock);
	require(attempt < MAX_ATTEMPTS, "too many attempts");
	return attempt;
}

static void
ledger_end(struct ledger *l, uint32_t attempt, enum outcome outcome)
{
	pthread_mutex_lock(&l->lock);
	l->outcomes[attempt] = outcome;
	pthread_mutex_unlock(&l->lock);
}

/* One commit: an entry of the log, and two keys that must always agree. */
static enum status
write_entry(struct kv_store *store, struct ledger *l)
{
	char log_key[] = "t/log/............";
	uint32_t attempt = ledger_begin(l);
	struct str value = str_of(&attempt, sizeof(attempt));
	struct kv_tx *tx = begin(store);
	enum status status;
	bool unknown;

	assert_ok(kv_set(tx, STR("t/first"), value));
	assert_ok(kv_set_versionstamped_key(tx, str_of(log_key, sizeof(log_key) - 1), LOG_BEGIN.len,
					    value));
	assert_ok(kv_set(tx, STR("t/last"), value));
	status = kv_future_wait(kv_commit(tx));
	unknown = strstr(kv_tx_error(tx), "not known");
	require(status == STATUS_OK || status == STATUS_FULL || status == STATUS_UNAVAILABLE ||
			status == STATUS_IO,
		"%s: %s", status_name(status), kv_tx_error(tx));
	ledger_end(l, attempt, status == STATUS_OK ? ACKNOWLEDGED : unknown ? UNKNOWN : REFUSED);
	kv_tx_free(tx);
	return status;
}

static void
write_until_taken(struct kv_store *store, struct ledger *l)
{
	while (write_entry(store, l) != STATUS_OK)
		usleep(PAUSE_US);
}

/* ---- Who follows the changes ---- */

struct follower {
	struct kv_store *store;
	pthread_t thread;
	atomic_bool stops;
	uint32_t seen[MAX_ATTEMPTS];
	uint32_t count;
	char behind[64]; /* the last key seen, with a zero byte */
	size_t behind_bytes;
};

static uint32_t
value_of(struct str value)
{
	uint32_t n;

	require(value.len == sizeof(n), "no number");
	memcpy(&n, value.ptr, sizeof(n));
	return n;
}

/* Reads what is new and watches for more. The watch belongs to the caller. */
static enum status
follower_read(struct follower *w, struct kv_tx *tx, struct kv_future **ret_watch)
{
	struct str begin_key = w->behind_bytes ? str_of(w->behind, w->behind_bytes) : LOG_BEGIN;
	struct kv_future *f = kv_get_range(tx, begin_key, LOG_END, NULL);
	struct kv_range range;
	enum status status;

	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	require(!range.more, "too many changes at once");
	*ret_watch = kv_watch(tx, STR("t/first"));
	status = kv_future_wait(kv_commit(tx));
	if (status != STATUS_OK) {
		kv_future_free(*ret_watch);
		return status;
	}
	for (size_t i = 0; i < range.count; i++) {
		require(w->count < MAX_ATTEMPTS && range.pairs[i].key.len < sizeof(w->behind),
			"too many changes");
		w->seen[w->count++] = value_of(range.pairs[i].value);
		memcpy(w->behind, range.pairs[i].key.ptr, range.pairs[i].key.len);
		w->behind[range.pairs[i].key.len] = '\0';
		w->behind_bytes = range.pairs[i].key.len + 1;
	}
	return STATUS_OK;
}

static void *
follower_main(void *arg)
{
	struct follower *w = arg;

	for (;;) {
		bool last = atomic_load(&w->stops);
		struct kv_tx *tx = begin_read(w->store);
		struct kv_future *watch;
		enum status status = follower_read(w, tx, &watch);
		struct event *event;

		kv_tx_free(tx);
		if (status != STATUS_OK) {
			/* It begins anew where it was. */
			require(status == STATUS_TX_TOO_OLD || status == STATUS_UNAVAILABLE,
				"following: %s", status_name(status));
			continue;
		}
		event = kv_future_event(watch);
		while (!last && event && !event_wait(event, clock_after_ms(LOOK_MS)) &&
		       !atomic_load(&w->stops))
			;
		kv_future_free(watch);
		if (last)
			return NULL;
	}
}

static void
follower_start(struct follower *w, struct kv_store *store)
{
	memset(w, 0, sizeof(*w));
	w->store = store;
	assert_int_equal(pthread_create(&w->thread, NULL, follower_main, w), 0);
}

static void
follower_stop(struct follower *w)
{
	atomic_store(&w->stops, true);
	pthread_join(w->thread, NULL);
}

/* ---- Comparing ---- */

/* What the store has is what the follower has seen, and what was answered. */
static void
compare(const char *url, const struct ledger *l, const struct follower *w, const char *what)
{
	struct kv_store *store = fixture_open(url, options);
	struct kv_tx *tx = begin_read(store);
	struct kv_future *f = kv_get_range(tx, LOG_BEGIN, LOG_END, NULL);
	static uint8_t times[MAX_ATTEMPTS];
	struct kv_range range;

	memset(times, 0, sizeof(times));
	assert_ok(kv_future_wait(f));
	range = kv_future_range(f);
	if (w && range.count != w->count)
		fail_msg("%s: %zu changes, %u seen", what, range.count, w->count);
	for (size_t i = 0; i < range.count; i++) {
		uint32_t attempt = value_of(range.pairs[i].value);

		assert_true(attempt < l->attempts);
		times[attempt]++;
		if (w && w->seen[i] != attempt)
			fail_msg("%s: change %zu is %u, seen was %u", what, i, attempt, w->seen[i]);
	}
	for (uint32_t i = 0; i < l->attempts; i++) {
		if (l->outcomes[i] == ACKNOWLEDGED && times[i] != 1)
			fail_msg("%s: %u was acknowledged and is there %u times", what, i,
				 times[i]);
		if (l->outcomes[i] == REFUSED && times[i] != 0)
			fail_msg("%s: %u was refused and is there", what, i);
		assert_true(times[i] <= 1);
	}
	kv_tx_free(tx);
	kv_close(store);
}

/* ---- Every operation in turn ---- */

/* Writes and compacts. Nothing that fails ends it, but a disk that stays full ends it early. */
static void
run_workload(struct kv_store *store, struct ledger *l)
{
	for (int i = 0; i < COMPACTIONS; i++) {
		for (int k = 0; k < COMMITS; k++)
			if (write_entry(store, l) == STATUS_FULL)
				return;
		if (kv_compact(store, NULL) == STATUS_FULL)
			return;
	}
}

/* One run, in which the operations from the `nth` on fail. False: there are not so many. */
static bool
fail_at(const struct fixture *f, uint32_t nth, int error, uint32_t count)
{
	static struct ledger l;
	static struct follower w;
	struct kv_store *store;
	char what[64];
	bool reached;

	memset(&l, 0, sizeof(l));
	pthread_mutex_init(&l.lock, NULL);
	snprintf(what, sizeof(what), "operation %u, %s", nth, strerror(error));
	store = fixture_open(f->url, options);
	follower_start(&w, store);
	disk_watch(f->dir);
	disk_fail_at(nth, error, count);
	run_workload(store, &l);
	reached = disk_failures() > 0;
	disk_fail_at(0, 0, 0);
	write_until_taken(store, &l);
	assert_int_equal(kv_store_stats(store).state, KV_STORE_OPEN);
	follower_stop(&w);
	kv_close(store);
	disk_unwatch();
	compare(f->url, &l, &w, what);
	pthread_mutex_destroy(&l.lock);
	fixture_empty_dir(f);
	return reached;
}

static void
fail_at_each(const struct fixture *f, int error, uint32_t count)
{
	uint32_t nth = 1;

	while (nth < MAX_OPERATIONS && fail_at(f, nth, error, count))
		nth++;
	printf("# %u operations failed in turn, %s\n", nth - 1, strerror(error));
	assert_true(nth > COMMITS * COMPACTIONS && nth < MAX_OPERATIONS);
}

static void
disk_that_fills_up_at_any_operation_loses_nothing_and_brings_nothing_back(void **state)
{
	fail_at_each(*state, ENOSPC, UINT32_MAX);
}

static void
any_operation_that_fails_once_ends_nothing(void **state)
{
	fail_at_each(*state, EIO, 1);
}

/* ---- A read of a compaction ---- */

static void
read_that_fails_once_in_a_compaction_ends_nothing(void **state)
{
	const struct fixture *f = *state;
	static struct ledger l;
	struct kv_store *store = fixture_open(f->url, options);

	pthread_mutex_init(&l.lock, NULL);
	for (int i = 0; i < 3; i++) {
		assert_ok(write_entry(store, &l));
		assert_ok(kv_compact(store, NULL));
	}
	assert_ok(write_entry(store, &l));
	kv_close(store);
	store = fixture_open(f->url, options);
	disk_watch(f->dir);
	disk_fail(DISK_TABLE, DISK_READ, EIO, 1);
	assert_int_equal(kv_compact(store, NULL), STATUS_IO);
	assert_int_equal(disk_failures(), 1);
	assert_ok(write_entry(store, &l));
	assert_int_equal(kv_store_stats(store).reopenings, 1);
	assert_ok(kv_compact(store, NULL));
	kv_close(store);
	disk_unwatch();
	compare(f->url, &l, NULL, "a read");
}

/* ---- Many at once, while the handle is replaced ---- */

struct crowd {
	struct kv_store *store;
	struct ledger *ledger;
	atomic_bool stops;
	_Atomic uint64_t reads;
};

static enum status
crowd_look(struct kv_tx *tx, void *arg)
{
	const struct kv_range_options few = { .limit = 10 };
	struct kv_future *first = kv_get(tx, STR("t/first"), KV_READ);
	struct kv_future *last;
	struct kv_future *range;
	struct str a, b;

	(void)arg;
	TRY(kv_future_wait(first));
	range = kv_get_range(tx, LOG_BEGIN, LOG_END, &few);
	TRY(kv_future_wait(range));
	last = kv_get(tx, STR("t/last"), KV_READ);
	TRY(kv_future_wait(last));
	require(kv_future_value(first, &a) && kv_future_value(last, &b) && str_eq(a, b),
		"half a commit");
	return STATUS_OK;
}

static void *
crowd_read(void *arg)
{
	struct crowd *c = arg;

	while (!atomic_load(&c->stops)) {
		struct err err = { 0 };

		require(kv_run_read(c->store, crowd_look, NULL, &err) == STATUS_OK, "reading: %s",
			err.text);
		atomic_fetch_add(&c->reads, 1);
		(void)kv_store_stats(c->store);
	}
	return NULL;
}

static void *
crowd_write(void *arg)
{
	struct crowd *c = arg;

	while (!atomic_load(&c->stops)) {
		(void)write_entry(c->store, c->ledger);
		usleep(PAUSE_US);
	}
	return NULL;
}

static void
readers_and_writers_go_on_while_the_store_is_opened_again(void **state)
{
	const struct fixture *f = *state;
	static struct ledger l;
	static struct follower w;
	struct crowd c = { .store = fixture_open(f->url, options), .ledger = &l };
	pthread_t threads[2 * WRITERS];

	pthread_mutex_init(&l.lock, NULL);
	write_until_taken(c.store, &l);
	follower_start(&w, c.store);
	for (int i = 0; i < 2 * WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						i < WRITERS ? crowd_write : crowd_read, &c),
				 0);
	disk_watch(f->dir);
	for (uint32_t i = 1; i <= SWITCHES; i++) {
		disk_fail(DISK_LOG, i % 2 ? DISK_WRITE : DISK_SYNC, ENOSPC, 1);
		while (kv_store_stats(c.store).reopenings < i)
			usleep(PAUSE_US);
	}
	atomic_store(&c.stops, true);
	for (int i = 0; i < 2 * WRITERS; i++)
		pthread_join(threads[i], NULL);
	disk_unwatch();
	write_until_taken(c.store, &l);
	follower_stop(&w);
	assert_true(atomic_load(&c.reads) > 0);
	kv_close(c.store);
	compare(f->url, &l, &w, "a crowd");
}

/* ---- The process is ended while the store is opened again ---- */

/* A report of the process that is ended: an attempt and what became of it. */
struct report {
	uint32_t attempt;
	enum outcome outcome;
};

static _Noreturn void
be_ended(char **argv)
{
	static struct ledger l;
	char url[300];
	struct kv_store *store;
	int out = atoi(argv[2]);
	bool refused = false;

	pthread_mutex_init(&l.lock, NULL);
	snprintf(url, sizeof(url), "embedded:%s", argv[1]);
	store = fixture_open(url, options);
	for (int i = 0; i < COMMITS || refused; i++) {
		struct report report = { .attempt = l.attempts };

		if (i == COMMITS / 2) {
			disk_watch(argv[1]);
			disk_fail_at(1, ENOSPC, UINT32_MAX);
		}
		refused = write_entry(store, &l) != STATUS_OK;
		report.outcome = l.outcomes[report.attempt];
		if (write(out, &report, sizeof(report)) != (ssize_t)sizeof(report))
			_exit(1);
		if (refused && i < COMMITS)
			disk_end_at_operation((uint32_t)atoi(argv[3]));
		if (refused)
			disk_fail_at(0, 0, 0);
		usleep(PAUSE_US);
	}
	_exit(0);
}

/* False: the process has gone through the reopening before the operation. */
static bool
end_at(const struct fixture *f, uint32_t nth)
{
	static struct ledger l;
	char pipe_text[ARG_BYTES];
	char nth_text[ARG_BYTES];
	struct report report;
	int status;
	int fds[2];
	pid_t pid;

	memset(&l, 0, sizeof(l));
	assert_int_equal(pipe(fds), 0);
	snprintf(pipe_text, sizeof(pipe_text), "%d", fds[1]);
	snprintf(nth_text, sizeof(nth_text), "%u", nth);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "test_disk_resume", f->dir, pipe_text, nth_text,
		      (char *)NULL);
		_exit(1);
	}
	assert_true(pid > 0);
	close(fds[1]);
	while (read(fds[0], &report, sizeof(report)) == (ssize_t)sizeof(report)) {
		l.outcomes[report.attempt] = report.outcome;
		l.attempts = report.attempt + 1;
	}
	close(fds[0]);
	waitpid(pid, &status, 0);
	/* The attempt under way when the process ended was not answered. */
	l.attempts++;
	compare(f->url, &l, NULL, "ended while opening");
	fixture_empty_dir(f);
	if (WIFSIGNALED(status))
		assert_int_equal(WTERMSIG(status), SIGKILL);
	else
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status);
}

static void
process_that_is_ended_while_its_store_is_opened_again_loses_nothing(void **state)
{
	uint32_t nth = 1;

	while (nth < MAX_OPERATIONS && end_at(*state, nth))
		nth++;
	printf("# ended at %u operations in turn\n", nth - 1);
	assert_true(nth > 5 && nth < MAX_OPERATIONS);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(disk_that_fills_up_at_any_operation_loses_nothing_and_brings_nothing_back),
		T(any_operation_that_fails_once_ends_nothing),
		T(read_that_fails_once_in_a_compaction_ends_nothing),
		T(readers_and_writers_go_on_while_the_store_is_opened_again),
		T(process_that_is_ended_while_its_store_is_opened_again_loses_nothing),
	};

	if (argc == 4)
		be_ended(argv);
	if (argc == 2)
		cmocka_set_test_filter(argv[1]); /* for one alone */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
