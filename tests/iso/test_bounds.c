/*
 * Memory has bounds: of the conflict history, of waiting commits, of write buffers and snapshots;
 * and a transaction that is open for long costs others nothing.
 */
#include "../kv/fixture.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv/embedded/embedded_int.h"

enum {
	HOT_KEYS = 1000,
	WRITERS = 4,
	WRITES = 50000, /* of each writer */
	WRITES_A_TX = 50,
	VALUE_BYTES = 20,
	LONG_KEYS = 450,                  /* of one transaction, each of the largest size */
	MEMORY_BYTES = 160 * 1024 * 1024, /* cache, write buffers and history together */
	BUFFER_BYTES = 70 * 1024 * 1024,  /* three of 16 MiB, one overfilled by a batch */
	BIG_COMMITS = 130,                /* of BIG_VALUES large values */
	BIG_VALUES = 10,
	MAX_QUEUED = 40,
};

static struct emb_store *
embedded(struct kv_store *store)
{
	return (struct emb_store *)store;
}

static uint64_t
property(struct kv_store *store, const char *name)
{
	uint64_t value = 0;

	assert_int_equal(rocksdb_property_int(embedded(store)->db, name, &value), 0);
	return value;
}

/* ---- Snapshots ---- */

struct writer {
	struct kv_store *store;
	uint32_t id;
	int failures;
};

static struct str
hot_key(uint32_t i, char ret[16])
{
	return str_of(ret, (size_t)snprintf(ret, 16, "t/hot/%04u", i % HOT_KEYS));
}

static enum status
write_some(struct kv_store *store, uint32_t first, char letter)
{
	char value[VALUE_BYTES];
	enum status status;
	struct kv_tx *tx;

	memset(value, letter, sizeof(value));
	TRY(kv_begin(store, KV_TX_READ_WRITE, &tx));
	status = STATUS_OK;
	for (uint32_t i = 0; i < WRITES_A_TX && status == STATUS_OK; i++) {
		char key[16];

		status = kv_set(tx, hot_key(first + i, key), str_of(value, sizeof(value)));
	}
	if (status == STATUS_OK)
		status = kv_future_wait(kv_commit(tx));
	kv_tx_free(tx);
	return status;
}

static void *
writer_main(void *arg)
{
	struct writer *w = arg;

	for (uint32_t i = 0; i < WRITES; i += WRITES_A_TX)
		if (write_some(w->store, w->id * WRITES + i, 'n') != STATUS_OK)
			w->failures++;
	return NULL;
}

/* All hot keys, as they were before the writers came. */
static void
assert_old(struct kv_tx *tx)
{
	struct kv_future *f = kv_get_range(tx, STR("t/hot/"), STR("t/hot0"), NULL);
	struct kv_range range;

	assert_ok(kv_future_wait(f));
	range = kv_future_range(f);
	assert_int_equal(range.count, HOT_KEYS);
	for (size_t i = 0; i < range.count; i++) {
		assert_int_equal(range.pairs[i].value.len, VALUE_BYTES);
		assert_int_equal(range.pairs[i].value.ptr[0], 'o');
	}
	kv_future_free(f);
}

static void
snapshot_held_through_many_writes_keeps_its_version_and_stops_nobody(void **state)
{
	struct kv_store *store = store_of(state);
	struct writer writers[WRITERS];
	pthread_t threads[WRITERS];
	uint64_t version;
	uint64_t later;
	struct kv_tx *held;
	struct kv_tx *tx;

	for (uint32_t i = 0; i < HOT_KEYS; i += WRITES_A_TX)
		assert_ok(write_some(store, i, 'o'));
	held = begin_read(store);
	assert_ok(kv_get_read_version(held, &version));
	for (uint32_t i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){ store, i, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, writer_main, &writers[i]), 0);
	}
	assert_old(held);
	for (int i = 0; i < WRITERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(writers[i].failures, 0);
	}
	assert_old(held);
	assert_ok(kv_get_read_version(held, &later));
	assert_int_equal(later, version);
	/* Beside it only that of the newest version is kept, however many there have been. */
	assert_true(property(store, "rocksdb.num-snapshots") <= 2);
	assert_true(embedded(store)->history_bytes < EMB_RESOLVER_BYTES);
	assert_true(kv_store_stats(store).memory_bytes < MEMORY_BYTES);
	tx = begin_read(store);
	assert_ok(kv_get_read_version(tx, &later));
	assert_true(later > version);
	kv_tx_free(tx);
	kv_tx_free(held);
	put_now(store, "t/a", "1");
	assert_true(property(store, "rocksdb.num-snapshots") <= 1);
}

/* ---- Write buffers ---- */

static void
write_buffers_do_not_grow_with_what_is_written(void **state)
{
	struct kv_store *store = store_of(state);
	char *value = calloc(1, KV_LIMIT_VALUE_BYTES);
	uint64_t largest = 0;

	for (int i = 0; i < BIG_COMMITS; i++) {
		struct kv_tx *tx = begin(store);
		uint64_t bytes;

		for (int j = 0; j < BIG_VALUES; j++) {
			char key[24];

			snprintf(key, sizeof(key), "t/big/%d/%d", i % 10, j);
			assert_ok(kv_set(tx, str_from_cstr(key),
					 str_of(value, KV_LIMIT_VALUE_BYTES)));
		}
		commit(tx);
		bytes = property(store, "rocksdb.cur-size-all-mem-tables");
		largest = bytes > largest ? bytes : largest;
	}
	assert_true(largest > 0 && largest < BUFFER_BYTES);
	free(value);
}

/* ---- The conflict history ---- */

/* Writes nothing, and conflicts with as much as one transaction can. */
static struct kv_tx *
begin_wide(struct kv_store *store, int n)
{
	static char key[KV_LIMIT_KEY_BYTES];
	struct kv_tx *tx = begin(store);
	size_t most = kv_key_limit(tx);

	memset(key, 'w', sizeof(key));
	key[0] = 't';
	key[1] = '/';
	for (int i = 0; i < LONG_KEYS; i++) {
		struct str range_begin = str_of(key, most - 1);
		struct str range_end = str_of(key, most);

		snprintf(key + 2, 32, "%06d/%06d", n, i);
		key[15] = 'w';
		assert_ok(kv_add_write_conflict_range(tx, range_begin, range_end));
	}
	return tx;
}

static void
transaction_that_can_only_fail_is_told_at_once(void **state)
{
	struct kv_store *store = store_of(state);
	struct kv_tx *old = begin(store);
	struct kv_tx *reading = begin(store);
	struct kv_tx *snapshot = begin(store);

	assert_get(old, "t/a", NULL);
	put(old, "t/b", "1");
	assert_get(reading, "t/a", NULL);
	assert_ok(kv_future_wait(kv_get(snapshot, STR("t/a"), KV_SNAPSHOT)));
	put(snapshot, "t/c", "1");
	for (int i = 0; i < 12; i++) {
		commit(begin_wide(store, i));
		assert_true(embedded(store)->history_bytes < EMB_RESOLVER_BYTES);
	}
	/* At its next read, of whatever kind; not only when it commits. */
	assert_int_equal(get_status(old, STR("t/x")), STATUS_TX_TOO_OLD);
	assert_int_equal(kv_future_wait(kv_get_range(old, STR("t/"), STR("t0"), NULL)),
			 STATUS_TX_TOO_OLD);
	assert_true(kv_tx_error(old)[0] != '\0');
	/* The others have nothing that could be judged: neither writes nor reads that conflict. */
	assert_get(reading, "t/a", NULL);
	assert_get(reading, "t/x", NULL);
	commit(reading);
	commit(snapshot);
	assert_int_equal(try_commit(old), STATUS_TX_TOO_OLD);
}

static void
history_of_one_batch_is_bounded(void **state)
{
	struct arena *arena = arena_new((size_t)1 << 30);
	struct tree_node *last = NULL;
	struct resolver r;
	struct tree keys, spans;

	(void)state;
	resolver_init(&r, 1);
	tree_init(&keys);
	tree_init(&spans);
	for (uint32_t i = 0; i < 2000000; i++) {
		struct tree_node *n = arena_alloc(arena, sizeof(*n));

		n->key = arena_printf(arena, "%07u", i);
		assert_null(tree_insert_near(&keys, last, n));
		last = n;
	}
	resolver_add(&r, &keys, &spans, 2);
	assert_true(r.bytes <= RESOLVER_MAX_BYTES);
	/* Refuses too much, never too little. */
	assert_true(resolver_written_since(&r, STR("0000000"), STR("0000001"), 1));
	assert_int_equal(r.oldest, 2);
	resolver_fini(&r);
	arena_free(arena);
}

/* ---- Waiting commits ---- */

static atomic_bool committer_held;
static sem_t committer_waits;
static sem_t committer_goes_on;

static void
hold_committer(enum emb_step step)
{
	if (step != EMB_STEP_TAKEN || !atomic_load(&committer_held))
		return;
	sem_post(&committer_waits);
	sem_wait(&committer_goes_on);
}

static void
waiting_commits_are_bounded(void **state)
{
	struct kv_store *store;
	struct kv_tx *txs[MAX_QUEUED];
	struct kv_future *commits[MAX_QUEUED];
	enum status status = STATUS_OK;
	void *fixture = NULL;
	int count = 0;

	(void)state;
	sem_init(&committer_waits, 0, 0);
	sem_init(&committer_goes_on, 0, 0);
	emb_step_hook = hold_committer;
	assert_int_equal(fixture_setup(&fixture), 0);
	store = store_of(&fixture);
	atomic_store(&committer_held, true);
	txs[count] = begin_wide(store, 0);
	commits[count] = kv_commit(txs[count]);
	count++;
	sem_wait(&committer_waits);
	while (count < MAX_QUEUED) {
		txs[count] = begin_wide(store, count);
		commits[count] = kv_commit(txs[count]);
		count++;
		if (kv_future_ready(commits[count - 1])) {
			status = kv_future_wait(commits[count - 1]);
			break;
		}
	}
	assert_int_equal(status, STATUS_BUSY);
	assert_non_null(strstr(kv_tx_error(txs[count - 1]), "waiting"));
	atomic_store(&committer_held, false);
	sem_post(&committer_goes_on);
	for (int i = 0; i < count; i++) {
		if (i < count - 1)
			assert_ok(kv_future_wait(commits[i]));
		kv_tx_free(txs[i]);
	}
	assert_true(embedded(store)->history_bytes <= RESOLVER_MAX_BYTES);
	fixture_teardown(&fixture);
	emb_step_hook = NULL;
	sem_destroy(&committer_waits);
	sem_destroy(&committer_goes_on);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(snapshot_held_through_many_writes_keeps_its_version_and_stops_nobody),
		T(write_buffers_do_not_grow_with_what_is_written),
		T(transaction_that_can_only_fail_is_told_at_once),
		cmocka_unit_test(history_of_one_batch_is_bounded),
		cmocka_unit_test(waiting_commits_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
