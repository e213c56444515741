/*
 * Many keys and pairs at once, and beginnings of values: the same on all engines, and how the
 * embedded one reads them.
 */
#include "fixture.h"

#include <stdio.h>

#include "kv/embedded/embedded_int.h"
#include "kv/few.h"
#include "kv/head.h"
#include "kv/many.h"

/* ---- On all engines ---- */

static void
assert_got(struct kv_future *f, const char *value)
{
	struct str got;

	assert_ok(kv_future_wait(f));
	assert_int_equal(kv_future_value(f, &got), value != NULL);
	if (value)
		assert_true(str_eq(got, str_from_cstr(value)));
}

static void
many_keys_are_read_as_one_after_the_other(void **state)
{
	const struct str keys[] = { STR("t/c"), STR("t/a"), STR("t/absent"),
				    STR("t/e"), STR("t/a"), STR("t/z") };
	const char *const stored[] = { "3", "1", NULL, "", "1", NULL };
	const char *const own[] = { "3", "new", NULL, NULL, "new", "9" };
	struct kv_future *futures[6];
	struct kv_tx *tx;

	put_now(store_of(state), "t/a", "1");
	put_now(store_of(state), "t/c", "3");
	put_now(store_of(state), "t/e", "");
	tx = begin(store_of(state));
	kv_get_many(tx, keys, 6, KV_READ, futures);
	for (size_t i = 0; i < 6; i++)
		assert_got(futures[i], stored[i]);
	assert_int_equal(kv_tx_stats(tx).reads, 6);
	assert_int_equal(kv_tx_stats(tx).keys_read, 4);
	assert_int_equal(kv_tx_stats(tx).round_trips, 1);
	put(tx, "t/a", "new");
	put(tx, "t/z", "9");
	assert_ok(kv_clear(tx, STR("t/e")));
	kv_get_many(tx, keys, 6, KV_READ, futures);
	for (size_t i = 0; i < 6; i++)
		assert_got(futures[i], own[i]);
	kv_get_many(tx, keys, 0, KV_READ, NULL);
	/* Beside a key that is none the others are answered. */
	kv_get_many(tx, (const struct str[]){ STR("t/c"), STR("\xff/x") }, 2, KV_READ, futures);
	assert_got(futures[0], "3");
	assert_int_equal(kv_future_wait(futures[1]), STATUS_INVALID);
	kv_tx_free(tx);
}

static void
many_keys_conflict_as_single_ones(void **state)
{
	const struct str keys[] = { STR("t/a"), STR("t/b") };
	struct kv_tx *reads = begin(store_of(state));
	struct kv_tx *looks = begin(store_of(state));
	struct kv_future *futures[2];

	kv_get_many(reads, keys, 2, KV_READ, futures);
	assert_got(futures[0], NULL);
	kv_get_many(looks, keys, 2, KV_SNAPSHOT, futures);
	assert_got(futures[0], NULL);
	put(reads, "t/x", "1");
	put(looks, "t/y", "1");
	put_now(store_of(state), "t/b", "2");
	assert_int_equal(try_commit(reads), STATUS_TX_CONFLICT);
	commit(looks);
	reads = begin(store_of(state));
	kv_get_many(reads, keys, 2, KV_READ, futures);
	assert_got(futures[1], "2");
	put(reads, "t/x", "1");
	put_now(store_of(state), "t/aa", "3");
	commit(reads);
}

static void
many_keys_of_a_transaction_that_is_over_fail(void **state)
{
	const struct str keys[] = { STR("t/a"), STR("t/b") };
	struct kv_tx *tx = begin_read(store_of(state));
	struct kv_future *futures[2];

	kv_cancel(tx);
	kv_get_many(tx, keys, 2, KV_READ, futures);
	assert_int_equal(kv_future_wait(futures[0]), STATUS_CANCELLED);
	assert_int_equal(kv_future_wait(futures[1]), STATUS_CANCELLED);
	kv_tx_free(tx);
}

/* The value begins with `len` bytes of `first`, which is all that was asked for. */
static void
assert_got_head(struct kv_future *f, char first, size_t len)
{
	struct str got;

	assert_ok(kv_future_wait(f));
	assert_true(kv_future_value(f, &got));
	assert_true(got.len >= len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(got.ptr[i], first);
}

static void
beginnings_of_values_are_read_as_values_are(void **state)
{
	struct kv_tx *tx, *reads;
	char value[1001] = { 0 };
	struct str whole;

	memset(value, 'v', sizeof(value) - 1);
	put_now(store_of(state), "t/long", value);
	put_now(store_of(state), "t/short", "ss");
	/* Again and again, since the engine may know it from the second time on. */
	for (int i = 0; i < 4; i++) {
		struct kv_future *f;

		tx = begin(store_of(state));
		assert_got_head(kv_get_head(tx, STR("t/long"), KV_READ), 'v', KV_HEAD_BYTES);
		assert_got(kv_get_head(tx, STR("t/short"), KV_READ), "ss");
		assert_got(kv_get_head(tx, STR("t/absent"), KV_READ), NULL);
		assert_int_equal(kv_tx_stats(tx).reads, 3);
		assert_int_equal(kv_tx_stats(tx).keys_read, 2);
		if (i > 1) {
			f = kv_get(tx, STR("t/long"), KV_SNAPSHOT);
			assert_ok(kv_future_wait(f));
			assert_true(kv_future_value(f, &whole));
			assert_int_equal(whole.len, sizeof(value) - 1);
		}
		/* What the transaction has written itself it sees, too. */
		put(tx, "t/long", "own");
		assert_got(kv_get_head(tx, STR("t/long"), KV_READ), "own");
		assert_ok(kv_clear(tx, STR("t/short")));
		assert_got(kv_get_head(tx, STR("t/short"), KV_READ), NULL);
		kv_tx_free(tx);
	}
	reads = begin(store_of(state));
	assert_got_head(kv_get_head(reads, STR("t/long"), KV_READ), 'v', KV_HEAD_BYTES);
	put(reads, "t/x", "1");
	memset(value, 'w', sizeof(value) - 1);
	put_now(store_of(state), "t/long", value);
	assert_int_equal(try_commit(reads), STATUS_TX_CONFLICT);
	tx = begin_read(store_of(state));
	assert_got_head(kv_get_head(tx, STR("t/long"), KV_READ), 'w', KV_HEAD_BYTES);
	kv_tx_free(tx);
}

/* What an atomic operation makes of a value wants all of it. */
static void
beginning_of_a_number_that_the_transaction_adds_to_is_its_sum(void **state)
{
	struct kv_tx *tx;
	struct str got;
	struct kv_future *f;
	char number[100] = { 1 }, one[100] = { 1 };

	tx = begin(store_of(state));
	assert_ok(kv_set(tx, STR("t/n"), str_of(number, sizeof(number))));
	commit(tx);
	tx = begin(store_of(state));
	assert_got_head(kv_get_head(tx, STR("t/n"), KV_SNAPSHOT), 1, 1);
	assert_ok(kv_atomic(tx, KV_ADD, STR("t/n"), str_of(one, sizeof(one))));
	f = kv_get_head(tx, STR("t/n"), KV_READ);
	assert_ok(kv_future_wait(f));
	assert_true(kv_future_value(f, &got));
	assert_int_equal(got.ptr[0], 2);
	f = kv_get(tx, STR("t/n"), KV_READ);
	assert_ok(kv_future_wait(f));
	assert_true(kv_future_value(f, &got));
	assert_int_equal(got.len, sizeof(number));
	kv_tx_free(tx);
}

/* ---- Of the embedded engine ---- */

static const struct kv_options fresh = { .create = true, .no_sync = true };

/* The embedded engine itself, also where the other tests run over one with faults. */
static int
embedded_setup(void **state)
{
	struct fixture *f;

	(void)fixture_dir_setup(state);
	f = *state;
	(void)snprintf(f->url, sizeof(f->url), "embedded:%s", f->dir);
	return 0;
}

static void
store_that_is_only_read_gives_many_keys(void **state)
{
	struct kv_store *store = fixture_open(url_of(state), fresh);
	const struct str keys[] = { STR("t/a"), STR("t/b") };
	struct kv_future *futures[2];
	struct kv_tx *tx;

	put_now(store, "t/a", "1");
	kv_close(store);
	store = fixture_open(url_of(state), (struct kv_options){ .read_only = true });
	tx = begin(store);
	kv_get_many(tx, keys, 2, KV_READ, futures);
	assert_got(futures[0], "1");
	assert_got(futures[1], NULL);
	kv_tx_free(tx);
	kv_close(store);
}

/* A waiter that counts what is left to others. */
struct counting_waiter {
	struct waiter base;
	int offloads;
};

static void
counting_offload(struct waiter *w, void (*fn)(void *arg), void *arg)
{
	((struct counting_waiter *)w)->offloads++;
	/* As a thread that runs no fiber. */
	waiter_set_current(NULL);
	fn(arg);
	waiter_set_current(w);
}

static void
counting_destroy(struct waiter *w)
{
	(void)w;
}

/* Reads go to RocksDB again. Nobody else uses the store meanwhile. */
static void
forget_what_was_read(struct kv_store *base)
{
	struct emb_store *store = (struct emb_store *)base;

	recent_free(store->recent);
	store->recent = recent_new(FIXTURE_RECENT_BYTES);
	assert_non_null(store->recent);
}

static void
fiber_leaves_many_keys_to_others_while_the_disk_is_slow(void **state)
{
	static const struct waiter_ops ops = { .offload = counting_offload,
					       .destroy = counting_destroy };
	const struct str keys[] = { STR("t/a"), STR("t/b"), STR("t/c") };
	struct kv_store *store = fixture_open(url_of(state), fresh);
	struct counting_waiter w = { .offloads = 0 };
	struct kv_future *futures[3];
	struct kv_tx *tx;

	put_now(store, "t/a", "1");
	put_now(store, "t/c", "3");
	waiter_init(&w.base, &ops);
	tx = begin_read(store);
	waiter_set_current(&w.base);
	for (int slow = 0; slow < 2; slow++) {
		atomic_store(&((struct emb_store *)store)->disk.slow_until_ns,
			     slow ? UINT64_MAX : 0);
		forget_what_was_read(store);
		kv_get_many(tx, keys, 3, KV_READ, futures);
		assert_int_equal(w.offloads, slow);
		assert_got(futures[0], "1");
		assert_got(futures[1], NULL);
		assert_got(futures[2], "3");
	}
	/* What was read lately is answered without looking at any disk. */
	kv_get_many(tx, keys, 3, KV_READ, futures);
	assert_int_equal(w.offloads, 1);
	assert_got(futures[0], "1");
	assert_got(futures[1], NULL);
	assert_got(futures[2], "3");
	waiter_set_current(NULL);
	kv_tx_free(tx);
	kv_close(store);
}

/* ---- Scans of many pairs ---- */

/* Who wants many pairs, and does not ask ahead, is given so many, and then some. */
static void
scan_of_many_reads_no_more_than_are_wanted(void **state)
{
	enum {
		PAIRS = 5000,
		WANTED = 2000,
		MORE = 1000, /* FEW_PAIRS */
	};
	struct kv_store *store = store_of(state);
	struct kv_tx *tx = begin(store);
	struct kv_scan scan;
	struct kv_pair pair;
	int n = 0;

	for (int i = 0; i < PAIRS; i++) {
		char key[16];

		snprintf(key, sizeof(key), "t/%04d", i);
		put(tx, key, "v");
	}
	commit(tx);
	tx = begin_read(store);
	assert_ok(kv_scan_init_few(&scan, tx, STR("t/"), STR("t0"), NULL, WANTED));
	for (; n < WANTED; n++)
		assert_ok(kv_scan_next(&scan, &pair));
	assert_int_equal(kv_tx_stats(tx).keys_read, WANTED);
	assert_int_equal(kv_tx_stats(tx).round_trips, 1);
	assert_ok(kv_scan_next(&scan, &pair));
	assert_int_equal(kv_tx_stats(tx).keys_read, WANTED + MORE);
	for (n++; kv_scan_next(&scan, &pair) == STATUS_OK;)
		n++;
	assert_int_equal(n, PAIRS);
	assert_int_equal(kv_tx_stats(tx).round_trips, 3);
	kv_scan_release(&scan);
	kv_tx_free(tx);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define E(name) cmocka_unit_test_setup_teardown(name, embedded_setup, fixture_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(many_keys_are_read_as_one_after_the_other),
		T(many_keys_conflict_as_single_ones),
		T(many_keys_of_a_transaction_that_is_over_fail),
		T(beginnings_of_values_are_read_as_values_are),
		T(beginning_of_a_number_that_the_transaction_adds_to_is_its_sum),
		T(scan_of_many_reads_no_more_than_are_wanted),
		E(store_that_is_only_read_gives_many_keys),
		E(fiber_leaves_many_keys_to_others_while_the_disk_is_slow),
	};

	return cmocka_run_group_tests_name("many", tests, NULL, NULL);
}
