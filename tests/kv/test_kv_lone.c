/* Commits that the embedded engine makes on the thread of a fiber whose loop serves nobody else. */
#include "fixture.h"

#include <dlfcn.h>
#include <pthread.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/wait.h"
#include "kv/embedded/embedded_int.h"

enum {
	VALUE_BYTES = 90 * 1000,
	VALUES = 10,                 /* together more than a committer at rest keeps */
	LONG_PAUSE_US = 1300 * 1000, /* in which it would give that back */
};

static pthread_t written_by;
static useconds_t pause_us; /* before a batch is written */

static void
note_writer(enum emb_step step)
{
	if (step == EMB_STEP_RESOLVED && pause_us)
		usleep(pause_us);
	if (step == EMB_STEP_WRITTEN)
		written_by = pthread_self();
}

/* Who has been answered may still be ahead of the committer's thread. */
static void
await_idle_committer(struct kv_store *store)
{
	struct emb_queue *q = &((struct emb_store *)store)->queue;
	bool busy = true;

	while (busy) {
		usleep(100);
		pthread_mutex_lock(&q->lock);
		busy = q->busy;
		pthread_mutex_unlock(&q->lock);
	}
}

/* Commits as a lone fiber does; true if this thread has made the batch. */
static bool
commits_itself(struct kv_store *store, const char *key, size_t value_bytes)
{
	char *value = calloc(1, value_bytes + 1);
	struct kv_tx *tx = begin(store);
	struct kv_future *f;
	bool ready;

	memset(value, 'v', value_bytes);
	await_idle_committer(store);
	be_alone_begin();
	assert_get(tx, key, NULL);
	assert_ok(kv_set(tx, str_from_cstr(key), str_of(value, value_bytes)));
	assert_ok(kv_set_versionstamped_key(tx, STR("t/stamped/.........."), 10, STR("1")));
	written_by = 0;
	f = kv_commit(tx);
	ready = kv_future_ready(f);
	assert_ok(kv_future_wait(f));
	be_alone_end();
	assert_true(ready || !pthread_equal(written_by, pthread_self()));
	kv_tx_free(tx);
	assert_stored(store, key, value);
	free(value);
	return pthread_equal(written_by, pthread_self());
}

static void
lone_fiber_commits_on_its_own_thread_while_that_is_quick(void **state)
{
	struct kv_store *store = store_of(state);
	struct emb_disk *log = &((struct emb_store *)store)->log;
	char key[16];

	for (int i = 0; i < 20; i++) {
		atomic_store(&log->slow_until_ns, 0); /* whatever the machine does */
		snprintf(key, sizeof(key), "t/%02d", i);
		assert_true(commits_itself(store, key, 1));
	}
	/* What is large takes long anyway. */
	atomic_store(&log->slow_until_ns, 0);
	assert_false(commits_itself(store, "t/large", EMB_DISK_INLINE_COMMIT_BYTES));
	put_now(store, "t/by-others", "1");
	assert_false(pthread_equal(written_by, pthread_self()));
	log->suspicious = true;
	atomic_store(&log->slow_until_ns, 0);
	assert_true(commits_itself(store, "t/slow", 1));
	assert_true(atomic_load(&log->slow_until_ns) > 0);
	atomic_store(&log->slow_until_ns, UINT64_MAX);
	assert_false(commits_itself(store, "t/after", 1));
}

static bool writes_stall;

/* Stands before RocksDB's: what that says to who does not want to be slowed down. */
void
rocksdb_write(rocksdb_t *db, const rocksdb_writeoptions_t *options, rocksdb_writebatch_t *batch,
	      char **error)
{
	static void (*real)(rocksdb_t *, const rocksdb_writeoptions_t *, rocksdb_writebatch_t *,
			    char **);
	rocksdb_writeoptions_t *asked = (rocksdb_writeoptions_t *)(uintptr_t)options;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "rocksdb_write");
	if (writes_stall && rocksdb_writeoptions_get_no_slowdown(asked))
		*error = strdup("Result incomplete: Write stall");
	else
		real(db, options, batch, error);
}

static void
lone_fiber_leaves_a_write_that_would_stall_to_the_committer(void **state)
{
	struct kv_store *store = store_of(state);
	struct emb_store *embedded = (struct emb_store *)store;

	assert_true(commits_itself(store, "t/before", 1));
	writes_stall = true;
	atomic_store(&embedded->log.slow_until_ns, 0);
	assert_false(commits_itself(store, "t/stalled", 1));
	assert_true(atomic_load(&embedded->log.slow_until_ns) > 0);
	assert_int_equal(kv_store_stats(&embedded->base).state, KV_STORE_OPEN);
	writes_stall = false;
	atomic_store(&embedded->log.slow_until_ns, 0);
	assert_true(commits_itself(store, "t/after", 1));
}

static void
memory_of_a_batch_is_not_given_back_while_a_lone_fiber_makes_it(void **state)
{
	struct kv_store *store = store_of(state);
	char *value = calloc(1, VALUE_BYTES);
	struct kv_tx *tx = begin(store);
	char key[16];

	for (int i = 0; i < VALUES; i++) {
		snprintf(key, sizeof(key), "t/large%d", i);
		assert_ok(kv_set(tx, str_from_cstr(key), str_of(value, VALUE_BYTES)));
	}
	commit(tx);
	free(value);
	pause_us = LONG_PAUSE_US;
	assert_true(commits_itself(store, "t/after", 1));
	pause_us = 0;
}

#define T(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(lone_fiber_commits_on_its_own_thread_while_that_is_quick),
		T(lone_fiber_leaves_a_write_that_would_stall_to_the_committer),
		T(memory_of_a_batch_is_not_given_back_while_a_lone_fiber_makes_it),
	};

	emb_step_hook = note_writer; /* before there is another thread */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
