/* What is the embedded engine's own: restarts, crashes, a failing disk, fibers. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rocksdb/c.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "kv/embedded/range_int.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"

static const struct kv_options fresh = { .create = true, .no_sync = true };

/* ---- Restarts ---- */

static void
committed_data_is_there_after_a_restart(void **state)
{
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	uint64_t last = 0;

	for (int i = 0; i < 5; i++) {
		struct kv_store *store = fixture_open(url_of(state), fresh);
		struct kv_tx *tx = begin(store);
		uint64_t version;

		assert_ok(kv_get_read_version(tx, &version));
		assert_true(version >= last);
		assert_get(tx, "t/a", i ? "1" : NULL);
		assert_ok(kv_get_metadata_version(tx, metadata));
		if (i)
			assert_memory_equal(metadata, stamp, sizeof(stamp));
		put(tx, "t/a", "1");
		assert_ok(kv_touch_metadata_version(tx));
		kv_want_versionstamp(tx);
		assert_ok(kv_future_wait(kv_commit(tx)));
		assert_ok(kv_committed_version(tx, &version));
		assert_ok(kv_versionstamp(tx, stamp));
		assert_true(version > last);
		last = version;
		kv_tx_free(tx);
		kv_close(store);
	}
}

/* ---- Crashes ---- */

enum {
	WRITERS = 4,
	KILLS = 3,
	RUN_MS = 150,
	LEAVES = 20, /* keys of one transaction */
	PAUSE_US = 1000,
};

struct writer {
	struct kv_store *store;
	int id;
	int pipe;
};

/* Each transaction of writer w rewrites w's leaves with one number; acknowledged ones are told. */
static void *
write_until_killed(void *arg)
{
	struct writer *w = arg;

	for (uint32_t n = 1;; n++) {
		struct kv_tx *tx;
		uint32_t ack[2] = { (uint32_t)w->id, n };
		char key[32];

		if (kv_begin(w->store, KV_TX_READ_WRITE, &tx) != STATUS_OK)
			abort();
		for (int i = 0; i < LEAVES; i++) {
			snprintf(key, sizeof(key), "t/%d/%02d", w->id, i);
			if (kv_set(tx, str_from_cstr(key), str_of(&n, sizeof(n))) != STATUS_OK)
				abort();
		}
		if (kv_future_wait(kv_commit(tx)) != STATUS_OK ||
		    write(w->pipe, ack, sizeof(ack)) != (ssize_t)sizeof(ack))
			abort();
		kv_tx_free(tx);
	}
	return NULL;
}

static void
write_from_threads(const char *url, int out)
{
	struct kv_store *store = fixture_open(url, (struct kv_options){ .create = true });
	struct writer writers[WRITERS];
	pthread_t threads[WRITERS];

	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){ store, i, out };
		pthread_create(&threads[i], NULL, write_until_killed, &writers[i]);
	}
	pthread_join(threads[0], NULL);
}

/* Leaves everything in the log. */
static void
write_and_die(const char *url)
{
	struct kv_store *store = fixture_open(url, fresh);

	for (int i = 0; i < 50; i++)
		put_now(store, "t/a", "a value that takes some room in the log");
	kill(getpid(), SIGKILL);
}

/* This program again, as another process in one of the roles above. */
static pid_t
spawn(const char *role, const char *url, int out)
{
	char fd[16];
	pid_t pid;

	snprintf(fd, sizeof(fd), "%d", out);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "test_kv_embedded", role, url, fd, (char *)NULL);
		_exit(1);
	}
	assert_true(pid > 0);
	return pid;
}

static int
play_role(char **argv)
{
	if (strcmp(argv[1], "threads") == 0)
		write_from_threads(argv[2], atoi(argv[3]));
	else
		write_and_die(argv[2]);
	return 1;
}

static bool
read_one(int in, uint32_t last[WRITERS])
{
	uint32_t ack[2];

	if (read(in, ack, sizeof(ack)) != (ssize_t)sizeof(ack))
		return false;
	last[ack[0]] = ack[1];
	return true;
}

static void
read_acknowledged(int in, uint32_t last[WRITERS])
{
	while (read_one(in, last))
		;
}

static void
check_after_kill(const char *url, const uint32_t last[WRITERS])
{
	struct kv_store *store = fixture_open(url, (struct kv_options){ .create = true });
	struct kv_tx *tx = begin_read(store);

	for (int w = 0; w < WRITERS; w++) {
		char begin_key[16];
		char end_key[16];
		struct kv_range range;
		struct kv_future *f;
		uint32_t n;

		snprintf(begin_key, sizeof(begin_key), "t/%d/", w);
		snprintf(end_key, sizeof(end_key), "t/%d0", w);
		f = kv_get_range(tx, str_from_cstr(begin_key), str_from_cstr(end_key), NULL);
		assert_ok(kv_future_wait(f));
		range = kv_future_range(f);
		if (range.count == 0) {
			assert_int_equal(last[w], 0);
			continue;
		}
		assert_int_equal(range.count, LEAVES);
		memcpy(&n, range.pairs[0].value.ptr, sizeof(n));
		/* Nothing acknowledged is lost, at most the one under way is there as well... */
		assert_true(n == last[w] || n == last[w] + 1);
		/* ...and no half of it. */
		for (size_t i = 1; i < range.count; i++)
			assert_memory_equal(range.pairs[i].value.ptr, &n, sizeof(n));
	}
	kv_tx_free(tx);
	kv_close(store);
}

static void
kill_loses_nothing_acknowledged_and_shows_no_half(void **state)
{
	uint32_t total = 0;

	for (int round = 0; round < KILLS; round++) {
		uint32_t last[WRITERS] = { 0 };
		struct kv_store *store = fixture_open(url_of(state), fresh);
		struct kv_tx *tx = begin(store);
		struct event never;
		int fds[2];
		pid_t pid;

		assert_ok(kv_clear_range(tx, STR("t/"), STR("t0")));
		commit(tx);
		kv_close(store);
		assert_int_equal(pipe(fds), 0);
		pid = spawn("threads", url_of(state), fds[1]);
		close(fds[1]);
		/* However slowly it starts, it has acknowledged something. */
		read_one(fds[0], last);
		event_init(&never);
		event_wait(&never, clock_after_ms(RUN_MS + (uint64_t)round * 37));
		kill(pid, SIGKILL);
		read_acknowledged(fds[0], last);
		waitpid(pid, NULL, 0);
		close(fds[0]);
		check_after_kill(url_of(state), last);
		for (int w = 0; w < WRITERS; w++)
			total += last[w];
	}
	assert_true(total > 0);
}

/* ---- A failing disk ---- */

static void
failed_write_is_never_acknowledged_and_stops_the_store_until_it_was_reopened(void **state)
{
	struct kv_store *store = fixture_open(url_of(state), (struct kv_options){ .create = true });
	char *bytes = calloc(1, KV_LIMIT_VALUE_BYTES);
	struct rlimit before;
	struct rlimit small;
	struct kv_tx *tx;

	put_now(store, "t/a", "1");
	/* Files cannot grow past this: the log refuses what comes next, as on a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 64 * 1024;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	tx = begin(store);
	put(tx, "t/b", "2");
	for (int i = 0; i < 5; i++) {
		char key[4] = { 't', '/', 'x', (char)i };

		assert_ok(kv_set(tx, str_of(key, 4), str_of(bytes, KV_LIMIT_VALUE_BYTES)));
	}
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_UNAVAILABLE);
	assert_true(kv_tx_error(tx)[0] != '\0');
	kv_tx_free(tx);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	/* The disk is well again; but nothing is written before the store has been reopened. */
	assert_int_not_equal(kv_store_stats(store).state, KV_STORE_OPEN);
	tx = begin(store);
	assert_get(tx, "t/a", "1");
	assert_get(tx, "t/b", NULL);
	put(tx, "t/c", "3");
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_UNAVAILABLE);
	assert_non_null(strstr(kv_tx_error(tx), "reopened"));
	kv_tx_free(tx);
	while (kv_store_stats(store).state != KV_STORE_OPEN)
		usleep(PAUSE_US);
	assert_stored(store, "t/c", NULL);
	put_now(store, "t/c", "3");
	kv_close(store);

	store = fixture_open(url_of(state), fresh);
	assert_stored(store, "t/a", "1");
	assert_stored(store, "t/b", NULL);
	assert_stored(store, "t/c", "3");
	kv_close(store);
	free(bytes);
}

/* The newest log of the store. */
static void
log_path(const struct fixture *f, char *ret, size_t size)
{
	char command[400];
	FILE *ls;

	snprintf(command, sizeof(command), "ls -S %s/*.log", f->dir);
	ls = popen(command, "r");
	assert_non_null(ls);
	assert_non_null(fgets(ret, (int)size, ls));
	pclose(ls);
	ret[strcspn(ret, "\n")] = '\0';
}

/* Damage in the middle of the log must not pass for its end. */
static void
damaged_log_is_corrupt_and_not_a_shorter_history(void **state)
{
	const struct fixture *f = *state;
	struct kv_store *store = fixture_open(f->url, fresh);
	char path[400];
	struct err err = { 0 };
	int fd;

	kv_close(store);
	waitpid(spawn("one", f->url, 0), NULL, 0);
	log_path(f, path, sizeof(path));
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "damage", 6, 1000), 6);
	close(fd);
	assert_int_equal(open_status(f->url, (struct kv_options){ 0 }, &err), STATUS_CORRUPT);
}

/* ---- Bounds ---- */

static void
transaction_that_outlives_the_resolver_is_too_old(void **state)
{
	struct kv_store *store = fixture_open(url_of(state), fresh);
	struct kv_tx *old = begin(store);
	struct kv_tx *reader = begin_read(store);
	static char key[KV_LIMIT_KEY_BYTES];

	assert_get(old, "t/a", NULL);
	assert_get(reader, "t/a", NULL);
	put(old, "t/b", "1");
	memset(key, 't', sizeof(key));
	for (int i = 0; i < 16; i++) {
		struct kv_tx *tx = begin(store);

		for (int j = 0; j < 300; j++) {
			snprintf(key + 2, 16, "%d/%03d", i, j);
			assert_ok(kv_set(tx, str_of(key, sizeof(key)), STR("")));
		}
		commit(tx);
	}
	assert_int_equal(try_commit(old), STATUS_TX_TOO_OLD);
	/* Reading goes on for as long as it likes. */
	assert_get(reader, "t/a", NULL);
	kv_tx_free(reader);
	kv_close(store);
}

static void
long_reading_transaction_does_not_grow(void **state)
{
	struct kv_store *store = fixture_open(url_of(state), fresh);
	struct kv_tx *tx;

	put_now(store, "t/a", "a value of some bytes");
	tx = begin_read(store);
	/* All answers together exceed what a transaction may hold by far. */
	for (int i = 0; i < 600000; i++) {
		struct kv_future *f = kv_get(tx, STR("t/a"), KV_READ);

		assert_ok(kv_future_wait(f));
		kv_future_free(f);
	}
	kv_tx_free(tx);
	kv_close(store);
}

/* ---- Short of memory ---- */

static enum status
use_everything(struct kv_store *store)
{
	struct kv_future *watch;
	struct kv_tx *tx = NULL;
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;

	TRY(kv_begin(store, KV_TX_READ_WRITE, &tx));
	status = kv_set(tx, STR("t/a"), STR("1"));
	if (status == STATUS_OK)
		status = kv_atomic(tx, KV_ADD, STR("t/n"), STR("\1"));
	if (status == STATUS_OK)
		status = get_status(tx, STR("t/b"));
	if (status == STATUS_OK)
		status = kv_clear_range(tx, STR("t/c"), STR("t/d"));
	watch = kv_watch(tx, STR("t/w"));
	if (status == STATUS_OK)
		status = kv_scan_init(&scan, tx, STR("t/"), STR("t0"), NULL);
	if (status == STATUS_OK) {
		while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK)
			;
		status = status == STATUS_NOT_FOUND ? STATUS_OK : status;
		kv_scan_release(&scan);
	}
	if (status == STATUS_OK)
		status = kv_future_wait(kv_commit(tx));
	kv_future_free(watch);
	kv_tx_free(tx);
	return status;
}

static void
every_failed_allocation_is_reported(void **state)
{
	struct kv_store *store = fixture_open(url_of(state), fresh);
	enum status status = STATUS_NOMEM;
	char *big = calloc(1, 6000);
	struct kv_tx *tx = begin(store);
	int n;

	/* Too large an answer for the transaction's own memory. */
	assert_ok(kv_set(tx, STR("t/b"), str_of(big, 6000)));
	commit(tx);
	for (n = 1; status != STATUS_OK; n++) {
		assert_true(n < 1000);
		mem_fail_after((uint64_t)n);
		status = use_everything(store);
		mem_fail_after(0);
		assert_true(status == STATUS_OK || status == STATUS_NOMEM);
	}
	assert_true(n > 5);
	free(big);
	kv_close(store);

	/* Opening, too. */
	status = STATUS_NOMEM;
	for (n = 1; status != STATUS_OK; n++) {
		struct err err;

		assert_true(n < 1000);
		mem_fail_after((uint64_t)n);
		status = kv_open(url_of(state), &fresh, &store, &err);
		mem_fail_after(0);
		assert_true(status == STATUS_OK || status == STATUS_NOMEM);
	}
	assert_true(n > 3);
	kv_close(store);
}

/* ---- Fibers ---- */

enum {
	MANY_KEYS = 200000, /* in one table of some megabytes */
	SMALL_CACHE_BYTES = 64 * 1024,
	FEW_DESCRIPTORS = 256, /* of which tables get a quarter */
	TABLES = 150,
};

/* A waiter that counts what is offloaded, and offloads it to another thread. */
struct counting_waiter {
	struct waiter base;
	int offloads;
};

struct call {
	void (*fn)(void *arg);
	void *arg;
};

static void *
call_run(void *arg)
{
	struct call *c = arg;

	c->fn(c->arg);
	return NULL;
}

static void
counting_offload(struct waiter *w, void (*fn)(void *arg), void *arg)
{
	struct call c = { fn, arg };
	pthread_t t;

	((struct counting_waiter *)w)->offloads++;
	assert_int_equal(pthread_create(&t, NULL, call_run, &c), 0);
	pthread_join(t, NULL);
}

static void
counting_destroy(struct waiter *w)
{
	(void)w;
}

static struct emb_disk *
disk_of(struct kv_store *store)
{
	return &((struct emb_store *)store)->disk;
}

static void
fiber_reads_files_itself_while_that_is_quick(void **state)
{
	static const struct waiter_ops ops = { .offload = counting_offload,
					       .destroy = counting_destroy };
	struct kv_store *store = fixture_open(url_of(state), fresh);
	struct counting_waiter w = { .offloads = 0 };
	struct kv_tx *tx;

	put_now(store, "t/a", "1");
	put_now(store, "t/b", "2");
	kv_close(store);
	store = fixture_open(url_of(state), fresh);
	waiter_init(&w.base, &ops);
	tx = begin_read(store);
	waiter_set_current(&w.base);
	for (int i = 0; i < 100; i++) {
		atomic_store(&disk_of(store)->slow_until_ns, 0); /* whatever the machine does */
		assert_get(tx, "t/a", "1");
		atomic_store(&disk_of(store)->slow_until_ns, 0);
		assert_range(tx, "t/", "t0", NULL, "t/a=1 t/b=2");
	}
	assert_int_equal(w.offloads, 0);
	waiter_set_current(NULL);
	kv_tx_free(tx);
	kv_close(store);
}

static void
fiber_leaves_files_to_others_after_a_slow_read(void **state)
{
	static const struct waiter_ops ops = { .offload = counting_offload,
					       .destroy = counting_destroy };
	struct kv_store *store = fixture_open(url_of(state), fresh);
	struct counting_waiter w = { .offloads = 0 };
	struct kv_tx *tx;

	put_now(store, "t/a", "1");
	disk_of(store)->suspicious = true;
	waiter_init(&w.base, &ops);
	tx = begin_read(store);
	waiter_set_current(&w.base);
	assert_true(emb_disk_is_quick(disk_of(store), clock_mono_ns()));
	assert_get(tx, "t/a", "1");
	assert_true(atomic_load(&disk_of(store)->slow_until_ns) > 0);
	atomic_store(&disk_of(store)->slow_until_ns, 0);
	assert_range(tx, "t/", "t0", NULL, "t/a=1");
	assert_true(atomic_load(&disk_of(store)->slow_until_ns) > 0);
	waiter_set_current(NULL);
	kv_tx_free(tx);
	kv_close(store);
}

/* What was collected is not kept while others have not come to the range. */
static void
empty_offload(struct waiter *w, void (*fn)(void *arg), void *arg)
{
	const struct range_job *job = arg;

	assert_null(job->bytes->ptr);
	assert_null(job->lengths->ptr);
	counting_offload(w, fn, arg);
}

/* The pairs that were collected till then are not given twice, nor any left out. */
static void
fiber_leaves_a_range_that_proves_slow_to_others(void **state)
{
	static const struct waiter_ops ops = { .offload = empty_offload,
					       .destroy = counting_destroy };
	struct kv_store *store = fixture_open(url_of(state), fresh);
	struct counting_waiter w = { .offloads = 0 };
	struct kv_tx *tx = begin(store);
	struct kv_future *f;
	char key[32];

	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "t/%03d", i);
		assert_ok(kv_set(tx, str_from_cstr(key), STR("x")));
	}
	commit(tx);
	disk_of(store)->suspicious = true;
	waiter_init(&w.base, &ops);
	waiter_set_current(&w.base);
	for (int own = 0; own < 2; own++) {
		tx = begin(store);
		if (own)
			assert_ok(kv_set(tx, STR("t/own"), STR("y")));
		w.offloads = 0;
		atomic_store(&disk_of(store)->slow_until_ns, 0);
		f = kv_get_range(tx, STR("t/"), STR("t0"), NULL);
		assert_ok(kv_future_wait(f));
		assert_int_equal(kv_future_range(f).count, 100 + own);
		assert_int_equal(w.offloads, 1);
		kv_tx_free(tx);
	}
	waiter_set_current(NULL);
	kv_close(store);
}

static void
slow_reads_pause_reads_on_the_loop_for_a_share_of_the_time(void **state)
{
	struct emb_disk d = { .slow_until_ns = 0 };

	(void)state;
	assert_true(emb_disk_is_quick(&d, 0));
	assert_false(emb_disk_was_slow(&d, EMB_DISK_QUICK_NS, 0, 0));
	assert_false(emb_disk_was_slow(&d, EMB_DISK_QUICK_NS + EMB_DISK_QUICK_PAIR_NS, 1, 0));
	assert_true(emb_disk_was_slow(&d, EMB_DISK_SLOW_NS + 1, 0, 0));
	emb_disk_pause(&d, 1000, 7);
	assert_false(emb_disk_is_quick(&d, 1000 + 7 * EMB_DISK_PAUSE - 1));
	assert_true(emb_disk_is_quick(&d, 1000 + 7 * EMB_DISK_PAUSE));
}

static void
fiber_leaves_the_disk_and_ranges_to_others_and_finds_keys_in_memory_itself(void **state)
{
	static const struct waiter_ops ops = { .offload = counting_offload,
					       .destroy = counting_destroy };
	struct kv_store *store = fixture_open(url_of(state), fresh);
	struct counting_waiter w = { .offloads = 0 };
	static char filling[20000];
	struct kv_tx *tx;

	put_now(store, "t/a", "1");
	put_now(store, "t/b", "2");
	/* Opening reads the first and the last block: keeps these keys out of both. */
	memset(filling, '.', sizeof(filling) - 1);
	put_now(store, "s", filling);
	put_now(store, "u", filling);
	kv_close(store);
	/* Opening empties the log into a file, and nothing of that is cached yet. */
	store = fixture_open(url_of(state), fresh);
	atomic_store(&disk_of(store)->slow_until_ns, UINT64_MAX);
	waiter_init(&w.base, &ops);
	tx = begin_read(store);
	waiter_set_current(&w.base);
	assert_get(tx, "t/a", "1");
	assert_true(w.offloads > 0);
	w.offloads = 0;
	assert_get(tx, "t/b", "2");
	assert_int_equal(w.offloads, 0);
	/* An iterator might end where the file goes on, and tell nobody. */
	assert_range(tx, "t/", "t0", NULL, "t/a=1 t/b=2");
	assert_int_equal(w.offloads, 1);
	assert_range(tx, "t/", "t0", &(struct kv_range_options){ .reverse = true }, "t/b=2 t/a=1");
	assert_int_equal(w.offloads, 2);
	waiter_set_current(NULL);
	kv_tx_free(tx);
	kv_close(store);
}

/* A waiter whose work is begun by a thread for each, or by nobody. */
struct beginning_waiter {
	struct waiter base;
	bool begins;
	int begun;
	int taken_back;
};

static struct beginning_waiter beginning;

static void *
work_run(void *arg)
{
	struct wait_work *work = arg;

	work->fn(work->arg);
	event_set(&work->done);
	return NULL;
}

static bool
work_take_back(struct wait_work *work)
{
	(void)work;
	if (beginning.begins)
		return false;
	beginning.taken_back++;
	return true;
}

static void
beginning_begin(struct waiter *w, struct wait_work *work)
{
	pthread_t t;

	(void)w;
	work->take_back = work_take_back;
	beginning.begun++;
	if (!beginning.begins)
		return;
	assert_int_equal(pthread_create(&t, NULL, work_run, work), 0);
	pthread_detach(t);
}

/* The event of another thread's work: this waiter has no loop to go on with meanwhile. */
static void
beginning_park(struct waiter *w, uint64_t deadline_ns)
{
	(void)w;
	(void)deadline_ns;
	usleep(100);
}

static void
beginning_wake(struct waiter *w)
{
	(void)w;
}

/* A read that turns out slow, as it may at any time, is left to the pool. */
static void
beginning_offload(struct waiter *w, void (*fn)(void *arg), void *arg)
{
	(void)w;
	fn(arg);
}

static void
wait_as_beginning(void)
{
	static const struct waiter_ops ops = { .park = beginning_park,
					       .wake = beginning_wake,
					       .offload = beginning_offload,
					       .begin = beginning_begin,
					       .destroy = counting_destroy };

	/* Once: a thread that has set its event may still have to let go of the waiter. */
	if (!beginning.base.ops)
		waiter_init(&beginning.base, &ops);
	waiter_set_current(&beginning.base);
}

enum {
	AHEAD_PAIRS = 5000,
	AHEAD_KEY_BYTES = 100,
};

static void
ahead_key(char *key, int n)
{
	snprintf(key, AHEAD_KEY_BYTES + 1, "t/%0*d", AHEAD_KEY_BYTES - 2, n);
}

/* Pairs whose values are their keys. */
static void
put_ahead_pairs(struct kv_store *store)
{
	struct kv_tx *tx = begin(store);
	char key[AHEAD_KEY_BYTES + 1];

	for (int i = 0; i < AHEAD_PAIRS; i++) {
		ahead_key(key, i);
		assert_ok(kv_set(tx, str_from_cstr(key), str_from_cstr(key)));
	}
	commit(tx);
}

/* A stretch that a pool reads, or has not come to, has the pairs that it would have had. */
static void
fiber_scans_with_the_next_stretch_on_its_way(void **state)
{
	const struct kv_range_options options = { .limit_bytes = 20000, .ahead = true };
	struct kv_store *store = fixture_open(url_of(state), fresh);
	char key[AHEAD_KEY_BYTES + 1];

	put_ahead_pairs(store);
	wait_as_beginning();
	for (int round = 0; round < 4; round++) {
		struct kv_tx *tx = begin_read(store);
		struct kv_scan scan;
		struct kv_pair pair;
		int n = 0;

		beginning.begins = round % 2;
		beginning.begun = beginning.taken_back = 0;
		assert_ok(kv_scan_init(&scan, tx, STR("t/"), STR("t0"), &options));
		while (n < (round < 2 ? AHEAD_PAIRS : 1000)) {
			ahead_key(key, n++);
			assert_ok(kv_scan_next(&scan, &pair));
			assert_true(str_eq(pair.key, str_from_cstr(key)));
			assert_true(str_eq(pair.value, pair.key));
		}
		if (round < 2)
			assert_int_equal(kv_scan_next(&scan, &pair), STATUS_NOT_FOUND);
		/* In the later rounds one is on its way, and goes with its scan or transaction. */
		if (round != 3)
			kv_scan_release(&scan);
		kv_tx_free(tx);
		if (round == 3) {
			scan.future = scan.following = NULL;
			kv_scan_release(&scan);
		}
		assert_true(beginning.begun > (round < 2 ? 20 : 2));
		assert_int_equal(beginning.taken_back, round % 2 ? 0 : beginning.begun);
	}
	waiter_set_current(NULL);
	kv_close(store);
}

/* Handing it to another thread and back would take longer. */
static void
small_stretch_is_read_when_it_is_asked_for(void **state)
{
	const struct kv_range_options options = { .limit_bytes = 2000, .ahead = true };
	struct kv_store *store = fixture_open(url_of(state), fresh);
	struct kv_scan scan;
	struct kv_pair pair;
	struct kv_tx *tx;

	put_ahead_pairs(store);
	wait_as_beginning();
	beginning.begins = true;
	beginning.begun = 0;
	tx = begin_read(store);
	assert_ok(kv_scan_init(&scan, tx, STR("t/"), STR("t0"), &options));
	for (int i = 0; i < AHEAD_PAIRS; i++)
		assert_ok(kv_scan_next(&scan, &pair));
	assert_int_equal(kv_scan_next(&scan, &pair), STATUS_NOT_FOUND);
	assert_int_equal(beginning.begun, 0);
	kv_scan_release(&scan);
	kv_tx_free(tx);
	waiter_set_current(NULL);
	kv_close(store);
}

/* Whoever has room for so much gets no more at a time, ahead or not. */
static void
scan_asks_for_no_more_than_its_transaction_may(void **state)
{
	enum {
		STRETCH_BYTES = 100
	};
	struct kv_store *store = fixture_open(url_of(state), fresh);

	put_ahead_pairs(store);
	for (int ahead = 0; ahead < 2; ahead++) {
		struct kv_range_options options = { .ahead = ahead };
		struct kv_tx *tx = begin_read(store);
		struct kv_scan scan;
		struct kv_pair pair;

		kv_tx_set_memory(tx, NULL, STRETCH_BYTES);
		assert_ok(kv_scan_init(&scan, tx, STR("t/"), STR("t0"), &options));
		assert_ok(kv_scan_next(&scan, &pair));
		/* The pair that reaches the limit is the last. */
		assert_in_range(kv_tx_stats(tx).bytes_read, 1,
				STRETCH_BYTES + pair.key.len + pair.value.len);
		kv_scan_release(&scan);
		kv_tx_free(tx);
	}
	kv_close(store);
}

static void
range_on_its_way_is_cancelled_with_its_transaction(void **state)
{
	const struct kv_range_options options = { .ahead = true };
	struct kv_store *store = fixture_open(url_of(state), fresh);

	put_now(store, "t/a", "1");
	wait_as_beginning();
	for (int begins = 0; begins < 2; begins++) {
		struct kv_tx *tx = begin_read(store);
		struct kv_future *f;

		beginning.begins = begins;
		f = kv_get_range(tx, STR("t/"), STR("t0"), &options);
		kv_cancel(tx);
		assert_int_equal(kv_future_wait(f), STATUS_CANCELLED);
		kv_tx_reset(tx);
		f = kv_get_range(tx, STR("t/"), STR("t0"), &options);
		assert_null(kv_future_event(f));
		assert_ok(kv_future_wait(f));
		assert_int_equal(kv_future_range(f).count, 1);
		kv_tx_free(tx);
	}
	waiter_set_current(NULL);
	kv_close(store);
}

/* A table of each key, which stay as they are. */
static void
make_tables(struct kv_store *store)
{
	const char *const names[] = { "disable_auto_compactions", "level0_slowdown_writes_trigger",
				      "level0_stop_writes_trigger" };
	const char *const values[] = { "true", "1000", "1000" };
	rocksdb_t *db = ((struct emb_store *)store)->db;
	rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
	char *error = NULL;

	rocksdb_set_options(db, (int)(sizeof(names) / sizeof(*names)), names, values, &error);
	assert_null(error);
	for (int i = 0; i < TABLES; i++) {
		char key[16];

		snprintf(key, sizeof(key), "t/%03d", i);
		put_now(store, key, "x");
		rocksdb_flush(db, flush, &error);
		assert_null(error);
	}
	rocksdb_flushoptions_destroy(flush);
}

/*
 * With few descriptors tables are open one after another; RocksDB itself would give an empty value,
 * from memory, for any key that may be in a table that is not open.
 */
static void
fiber_misses_nothing_in_a_table_that_is_not_open(void **state)
{
	static const struct waiter_ops ops = { .offload = counting_offload,
					       .destroy = counting_destroy };
	struct rlimit before;
	struct rlimit few;
	struct counting_waiter w = { .offloads = 0 };
	struct kv_store *store;
	struct kv_tx *tx;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ .rlim_cur = FEW_DESCRIPTORS, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	store = fixture_open(url_of(state), fresh);
	make_tables(store);
	atomic_store(&disk_of(store)->slow_until_ns, UINT64_MAX);
	waiter_init(&w.base, &ops);
	tx = begin_read(store);
	waiter_set_current(&w.base);
	assert_get(tx, "t/!", NULL);
	for (int i = 0; i < TABLES; i++) {
		char key[16];

		snprintf(key, sizeof(key), "t/%03d", i);
		assert_get(tx, key, "x");
	}
	assert_get(tx, "t/000+", NULL);
	assert_true(w.offloads > 0);
	waiter_set_current(NULL);
	kv_tx_free(tx);
	kv_close(store);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/*
 * With a cache that is far too small, most reads meet blocks, index and filter partitions that are
 * not in memory: what is there must not pass for all there is.
 */
static void
fiber_misses_nothing_that_is_not_in_memory(void **state)
{
	static const struct waiter_ops ops = { .offload = counting_offload,
					       .destroy = counting_destroy };
	const struct kv_options small = { .create = true,
					  .no_sync = true,
					  .cache_bytes = SMALL_CACHE_BYTES };
	struct kv_store *store = fixture_open(url_of(state), fresh);
	struct rand_seq rand = { test_seed() };
	struct counting_waiter w = { .offloads = 0 };
	struct kv_tx *tx;

	for (uint32_t i = 0; i < MANY_KEYS;) {
		tx = begin(store);
		do {
			char key[32];

			snprintf(key, sizeof(key), "t/%016x%08u", i / 100 * 0x9e3779b9u, i);
			assert_ok(kv_set(tx, str_from_cstr(key), str_of(&i, sizeof(i))));
		} while (++i % 1000);
		commit(tx);
	}
	kv_close(store);
	store = fixture_open(url_of(state), small);
	atomic_store(&disk_of(store)->slow_until_ns, UINT64_MAX);
	waiter_init(&w.base, &ops);
	waiter_set_current(&w.base);
	tx = begin_read(store);
	for (int i = 0; i < 300; i++) {
		uint32_t n = (uint32_t)rand_seq_below(&rand, MANY_KEYS);
		const struct kv_range_options options = { .reverse = i % 2 };
		struct kv_future *f;
		struct str value;
		char key[32];
		char end[32];

		snprintf(key, sizeof(key), "t/%016x%08u", n / 100 * 0x9e3779b9u, n);
		f = kv_get(tx, str_from_cstr(key), KV_READ);
		assert_ok(kv_future_wait(f));
		assert_true(kv_future_value(f, &value));
		assert_memory_equal(value.ptr, &n, sizeof(n));
		/* All keys with the same beginning. */
		snprintf(key, sizeof(key), "t/%016x", n / 100 * 0x9e3779b9u);
		snprintf(end, sizeof(end), "%s:", key);
		f = kv_get_range(tx, str_from_cstr(key), str_from_cstr(end), &options);
		assert_ok(kv_future_wait(f));
		assert_int_equal(kv_future_range(f).count, 100);
	}
	assert_true(w.offloads > 0);
	waiter_set_current(NULL);
	kv_tx_free(tx);
	kv_close(store);
}

/* ---- The memory of reads ---- */

static void
reads_that_are_forgotten_take_no_more_memory(void **state)
{
	enum {
		/* Without forgetting, the futures of so many reads fill the arena. */
		READS = EMB_TX_ARENA_BYTES / 200,
	};
	struct kv_store *store;
	struct kv_tx *tx;
	struct kv_future *kept;
	struct str value;

	assert_int_equal(kv_open(url_of(state), &fresh, &store, NULL), STATUS_OK);
	assert_int_equal(kv_begin(store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	kept = kv_get(tx, STR("kept"), KV_READ);
	for (int i = 0; i < READS; i++) {
		uint64_t mark = kv_reads_mark(tx);
		struct kv_future *freed = kv_get(tx, STR("a"), KV_READ);
		struct kv_future *f = kv_get(tx, STR("b"), KV_READ);

		assert_int_equal(kv_future_wait(f), STATUS_OK);
		kv_future_free(freed);
		kv_reads_forget(tx, mark);
	}
	assert_int_equal(kv_future_wait(kept), STATUS_OK);
	assert_false(kv_future_value(kept, &value));
	kv_tx_reset(tx);
	kv_reads_forget(tx, 0); /* the reset has freed them all */
	kv_tx_free(tx);
	kv_close(store);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_dir_setup, fixture_dir_teardown)

enum {
	ESTIMATE_PAIRS = 200,
	ESTIMATE_VALUE_BYTES = 1000,
};

static void
estimate_counts_what_is_not_in_files_yet(void **state)
{
	struct kv_store *store = fixture_open(url_of(state), fresh);
	char value[ESTIMATE_VALUE_BYTES];
	struct err err = { 0 };
	struct kv_tx *tx = begin(store);
	uint64_t bytes;

	for (int i = 0; i < ESTIMATE_PAIRS; i++) {
		char key[8];

		(void)snprintf(key, sizeof(key), "e/%04d", i);
		rand_bytes(value, sizeof(value)); /* which no compression makes smaller */
		assert_ok(kv_set(tx, str_from_cstr(key), str_of(value, sizeof(value))));
	}
	assert_ok(kv_future_wait(kv_commit(tx)));
	kv_tx_free(tx);
	for (int flushed = 0; flushed < 2; flushed++) {
		assert_ok(kv_estimate_bytes(store, STR("e/"), STR("e0"), &bytes));
		assert_in_range(bytes, ESTIMATE_PAIRS * ESTIMATE_VALUE_BYTES * 9 / 10,
				ESTIMATE_PAIRS * ESTIMATE_VALUE_BYTES * 12 / 10);
		assert_ok(kv_estimate_bytes(store, STR("e/0100"), STR("e0"), &bytes));
		assert_in_range(bytes, ESTIMATE_PAIRS * ESTIMATE_VALUE_BYTES * 4 / 10,
				ESTIMATE_PAIRS * ESTIMATE_VALUE_BYTES * 6 / 10);
		assert_ok(kv_estimate_bytes(store, STR("f"), STR("g"), &bytes));
		assert_int_equal(bytes, 0);
		assert_ok(kv_compact(store, &err));
	}
	kv_close(store);
}

static void
estimate_tells_small_neighbours_apart(void **state)
{
	struct kv_store *store = fixture_open(url_of(state), fresh);
	struct err err = { 0 };
	uint64_t bytes;

	put_now(store, "a/1", "1234567");
	put_now(store, "b/1", "12345678901234567");
	for (int flushed = 0; flushed < 2; flushed++) {
		assert_ok(kv_estimate_bytes(store, STR("a/"), STR("a0"), &bytes));
		assert_int_equal(bytes, 10);
		assert_ok(kv_estimate_bytes(store, STR("b/"), STR("b0"), &bytes));
		assert_int_equal(bytes, 20);
		assert_ok(kv_compact(store, &err));
	}
	kv_close(store);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(reads_that_are_forgotten_take_no_more_memory),
		T(estimate_counts_what_is_not_in_files_yet),
		T(estimate_tells_small_neighbours_apart),
		T(committed_data_is_there_after_a_restart),
		T(kill_loses_nothing_acknowledged_and_shows_no_half),
		T(failed_write_is_never_acknowledged_and_stops_the_store_until_it_was_reopened),
		T(damaged_log_is_corrupt_and_not_a_shorter_history),
		T(transaction_that_outlives_the_resolver_is_too_old),
		T(long_reading_transaction_does_not_grow),
		T(every_failed_allocation_is_reported),
		T(fiber_reads_files_itself_while_that_is_quick),
		T(fiber_leaves_files_to_others_after_a_slow_read),
		T(fiber_leaves_a_range_that_proves_slow_to_others),
		cmocka_unit_test(slow_reads_pause_reads_on_the_loop_for_a_share_of_the_time),
		T(fiber_leaves_the_disk_and_ranges_to_others_and_finds_keys_in_memory_itself),
		T(fiber_scans_with_the_next_stretch_on_its_way),
		T(small_stretch_is_read_when_it_is_asked_for),
		T(scan_asks_for_no_more_than_its_transaction_may),
		T(range_on_its_way_is_cancelled_with_its_transaction),
		T(fiber_misses_nothing_in_a_table_that_is_not_open),
		T(fiber_misses_nothing_that_is_not_in_memory),
	};

	if (argc == 4)
		return play_role(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
