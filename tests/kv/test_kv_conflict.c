/* What may commit beside what: the anomalies that strict serializability rules out, by name. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

/* Both read and then write what they read: the second must not undo the first. */
static void
lost_update_is_refused(void **state)
{
	struct kv_tx *a = begin(store_of(state));
	struct kv_tx *b = begin(store_of(state));

	assert_get(a, "t/n", NULL);
	assert_get(b, "t/n", NULL);
	put(a, "t/n", "1");
	put(b, "t/n", "1");
	commit(a);
	assert_int_equal(try_commit(b), STATUS_TX_CONFLICT);
}

/* Each writes what the other has read. */
static void
write_skew_is_refused(void **state)
{
	struct kv_tx *a = begin(store_of(state));
	struct kv_tx *b = begin(store_of(state));

	assert_get(a, "t/x", NULL);
	put(a, "t/y", "1");
	assert_get(b, "t/y", NULL);
	put(b, "t/x", "1");
	commit(a);
	assert_int_equal(try_commit(b), STATUS_TX_CONFLICT);
	assert_stored(store_of(state), "t/x", NULL);
}

/* A key appears in a range that was read without it. */
static void
phantom_is_refused(void **state)
{
	struct kv_tx *a = begin(store_of(state));

	assert_range(a, "t/a", "t/c", NULL, "");
	put(a, "t/count", "0");
	put_now(store_of(state), "t/b", "1");
	assert_int_equal(try_commit(a), STATUS_TX_CONFLICT);
}

/* Sets without a range of their own, below one range of the transaction. */
static void
range_over_sets_without_conflict_ranges_conflicts(void **state)
{
	struct kv_tx *a = begin(store_of(state));
	struct kv_tx *beside = begin(store_of(state));
	struct kv_tx *absent = begin(store_of(state));
	struct kv_tx *b = begin(store_of(state));

	assert_get(a, "t/d/2", NULL);
	assert_get(absent, "t/d/9", NULL);
	assert_get(beside, "t/e", NULL);
	assert_ok(kv_set_no_conflict(b, STR("t/d/1"), STR("1")));
	assert_ok(kv_add_write_conflict_range(b, STR("t/d/"), STR("t/d0")));
	assert_ok(kv_set_no_conflict(b, STR("t/d/2"), STR("2")));
	commit(b);
	put(a, "t/x", "1");
	put(absent, "t/y", "1");
	put(beside, "t/z", "1");
	assert_int_equal(try_commit(a), STATUS_TX_CONFLICT);
	assert_int_equal(try_commit(absent), STATUS_TX_CONFLICT);
	commit(beside);
	assert_stored(store_of(state), "t/d/2", "2");
}

/* A clear finds what was set so meanwhile: the range says that it has to look again. */
static void
clear_of_a_range_takes_sets_without_conflict_ranges_along(void **state)
{
	struct kv_tx *a = begin(store_of(state));
	struct kv_tx *b = begin(store_of(state));

	put_now(store_of(state), "t/d/1", "1");
	assert_get(a, "t/x", NULL);
	assert_ok(kv_clear_range(a, STR("t/d/"), STR("t/d0")));
	assert_ok(kv_add_write_conflict_range(b, STR("t/d/"), STR("t/d0")));
	assert_ok(kv_set_no_conflict(b, STR("t/d/2"), STR("2")));
	commit(b);
	commit(a);
	assert_stored(store_of(state), "t/d/1", NULL);
	assert_stored(store_of(state), "t/d/2", NULL);
}

static void
key_beside_the_range_read_does_not_conflict(void **state)
{
	struct kv_tx *a = begin(store_of(state));

	assert_range(a, "t/b", "t/c", NULL, "");
	put(a, "t/count", "0");
	put_now(store_of(state), "t/a", "1");
	put_now(store_of(state), "t/c", "1");
	commit(a);
}

/* A limited read has read up to its last pair and no further. */
static void
limited_range_conflicts_up_to_its_last_key(void **state)
{
	const struct kv_range_options first = { .limit = 1 };
	const struct kv_range_options last = { .limit = 1, .reverse = true };
	struct kv_tx *forward;
	struct kv_tx *backward;

	put_now(store_of(state), "t/b", "1");
	put_now(store_of(state), "t/d", "1");
	forward = begin(store_of(state));
	backward = begin(store_of(state));
	assert_range(forward, "t/", "t/z", &first, "t/b=1+");
	assert_range(backward, "t/", "t/z", &last, "t/d=1+");
	put(forward, "t/zf", "");
	put(backward, "t/zb", "");
	put_now(store_of(state), "t/c", "1");
	commit(forward);
	commit(backward);

	forward = begin(store_of(state));
	backward = begin(store_of(state));
	assert_range(forward, "t/", "t/z", &first, "t/b=1+");
	assert_range(backward, "t/", "t/z", &last, "t/d=1+");
	put(forward, "t/zf", "");
	put(backward, "t/zb", "");
	put_now(store_of(state), "t/b", "2");
	put_now(store_of(state), "t/d", "2");
	assert_int_equal(try_commit(forward), STATUS_TX_CONFLICT);
	assert_int_equal(try_commit(backward), STATUS_TX_CONFLICT);
}

static void
cleared_range_conflicts_with_a_read_inside(void **state)
{
	struct kv_tx *a = begin(store_of(state));
	struct kv_tx *b = begin(store_of(state));

	assert_get(a, "t/m", NULL);
	put(a, "t/z", "1");
	assert_ok(kv_clear_range(b, STR("t/a"), STR("t/n")));
	commit(b);
	assert_int_equal(try_commit(a), STATUS_TX_CONFLICT);
}

static void
snapshot_reads_do_not_conflict(void **state)
{
	const struct kv_range_options snapshot = { .mode = KV_SNAPSHOT };
	struct kv_tx *a = begin(store_of(state));

	assert_ok(kv_future_wait(kv_get(a, STR("t/n"), KV_SNAPSHOT)));
	assert_range(a, "t/", "t/n", &snapshot, "");
	put(a, "t/x", "1");
	put_now(store_of(state), "t/n", "1");
	put_now(store_of(state), "t/m", "1");
	commit(a);
}

static void
reading_own_write_does_not_conflict(void **state)
{
	struct kv_tx *a = begin(store_of(state));

	put(a, "t/n", "mine");
	assert_get(a, "t/n", "mine");
	put_now(store_of(state), "t/n", "theirs");
	commit(a);
	assert_stored(store_of(state), "t/n", "mine");
}

static void
blind_writes_never_conflict(void **state)
{
	struct kv_tx *a = begin(store_of(state));
	struct kv_tx *b = begin(store_of(state));

	for (int i = 0; i < 10; i++) {
		put(a, "t/n", "a");
		put(b, "t/n", "b");
		assert_ok(kv_atomic(a, KV_ADD, STR("t/c"), STR("\1")));
		assert_ok(kv_atomic(b, KV_ADD, STR("t/c"), STR("\1")));
	}
	commit(a);
	commit(b);
	assert_stored(store_of(state), "t/n", "b");
	assert_stored(store_of(state), "t/c", "\x14");
}

static void
reader_without_writes_always_commits(void **state)
{
	struct kv_tx *a = begin(store_of(state));

	assert_get(a, "t/n", NULL);
	put_now(store_of(state), "t/n", "1");
	assert_get(a, "t/n", NULL);
	commit(a);
}

static void
reading_an_atomically_changed_key_conflicts(void **state)
{
	struct kv_tx *a = begin(store_of(state));

	assert_ok(kv_atomic(a, KV_ADD, STR("t/n"), STR("\1")));
	assert_get(a, "t/n", "\1");
	put_now(store_of(state), "t/n", "\5");
	assert_int_equal(try_commit(a), STATUS_TX_CONFLICT);
	assert_stored(store_of(state), "t/n", "\5");
}

/* ---- Keys that reads have passed over ---- */

enum {
	PASSED = 30,      /* keys, of which the one in the middle is left */
	PASSED_LEFT = 15, /* from either end a read passes over the others */
};

/*
 * A transaction that clears keys, `compared` one of them if it has its value, and whose reads
 * without conflicts have passed over them twice.
 */
static struct kv_tx *
begin_that_passes(struct kv_store *store, bool reverse, const char *compared)
{
	const struct kv_range_options first = { .limit = 1,
						.reverse = reverse,
						.mode = KV_SNAPSHOT };
	struct kv_tx *tx = begin(store);
	char key[16];

	assert_ok(kv_clear_range(tx, STR("t/"), STR("t0")));
	for (int i = 0; i < PASSED; i++) {
		(void)snprintf(key, sizeof(key), "t/%02d", i);
		put(tx, key, "1");
	}
	commit(tx);
	tx = begin(store);
	for (int i = 0; i < PASSED; i++) {
		(void)snprintf(key, sizeof(key), "t/%02d", i);
		if (strcmp(key, compared) == 0)
			assert_ok(
				kv_atomic(tx, KV_COMPARE_AND_CLEAR, str_from_cstr(key), STR("1")));
		else if (i != PASSED_LEFT)
			assert_ok(kv_clear(tx, str_from_cstr(key)));
	}
	for (int i = 0; i < 2; i++)
		assert_range(tx, "t/", "t0", &first, "t/15=1+");
	return tx;
}

/* A key that is cleared if it has a value depends on that, and an absent one on its writers. */
static void
what_reads_have_passed_over_conflicts_when_it_is_read(void **state)
{
	static const char *const keys[2][2] = { { "t/07", "t/07/" }, { "t/22", "t/22/" } };

	for (int i = 0; i < 4; i++) {
		const bool reverse = i / 2;
		const char *key = keys[reverse][i % 2];
		struct kv_tx *tx = begin_that_passes(store_of(state), reverse, key);

		assert_get(tx, key, NULL);
		put_now(store_of(state), key, "2");
		assert_int_equal(try_commit(tx), STATUS_TX_CONFLICT);
	}
}

/* Two transactions add to a key that neither of them has read but without a conflict. */
static void
no_addition_is_lost_where_reads_have_passed_over(void **state)
{
	for (int reverse = 0; reverse < 2; reverse++) {
		const struct kv_range_options first = { .limit = 1,
							.reverse = reverse,
							.mode = KV_SNAPSHOT };
		const struct str key = reverse ? STR("t/22/") : STR("t/07/");
		struct kv_tx *tx = begin_that_passes(store_of(state), reverse, "");
		struct kv_tx *other = begin(store_of(state));

		assert_ok(kv_atomic(tx, KV_ADD, key, STR("\1")));
		assert_range(tx, "t/", "t0", &first, reverse ? "t/22/=\1+" : "t/07/=\1+");
		assert_ok(kv_atomic(other, KV_ADD, key, STR("\1")));
		commit(other);
		commit(tx);
		assert_stored(store_of(state), key.ptr, "\2");
	}
}

static void
what_is_written_where_reads_have_passed_over_is_found(void **state)
{
	for (int reverse = 0; reverse < 2; reverse++) {
		const struct kv_range_options first = { .limit = 1,
							.reverse = reverse,
							.mode = KV_SNAPSHOT };
		const char *key = reverse ? "t/22" : "t/07";
		const char *absent = reverse ? "t/21/" : "t/08/";
		struct kv_tx *tx = begin_that_passes(store_of(state), reverse, "");

		put(tx, key, "2");
		assert_range(tx, "t/", "t0", &first, reverse ? "t/22=2+" : "t/07=2+");
		assert_ok(kv_clear(tx, str_from_cstr(key)));
		assert_range(tx, "t/", "t0", &first, "t/15=1+");
		assert_ok(kv_atomic(tx, KV_ADD, str_from_cstr(absent), STR("3")));
		assert_range(tx, "t/", "t0", &first, reverse ? "t/21/=3+" : "t/08/=3+");
		assert_range(tx, "t/", "t0", NULL, reverse ? "t/15=1 t/21/=3" : "t/08/=3 t/15=1");
		assert_ok(kv_clear_range(tx, STR("t/"), STR("t/15")));
		assert_ok(kv_clear_range(tx, STR("t/16"), STR("t0")));
		assert_range(tx, "t/", "t0", NULL, "t/15=1");
		commit(tx);
		tx = begin(store_of(state));
		assert_range(tx, "t/", "t0", NULL, "t/15=1");
		commit(tx);
	}
}

static void
read_conflict_by_hand_conflicts(void **state)
{
	struct kv_tx *a = begin(store_of(state));
	uint64_t version;

	/* Since when there must have been no write. */
	assert_ok(kv_get_read_version(a, &version));
	assert_ok(kv_add_read_conflict_range(a, STR("t/a"), STR("t/c")));
	put(a, "t/x", "1");
	put_now(store_of(state), "t/b", "1");
	assert_int_equal(try_commit(a), STATUS_TX_CONFLICT);
}

static void
write_conflict_by_hand_conflicts_without_writing(void **state)
{
	struct kv_tx *a = begin(store_of(state));
	struct kv_tx *b = begin(store_of(state));

	assert_get(a, "t/b", NULL);
	put(a, "t/x", "1");
	assert_ok(kv_add_write_conflict_range(b, STR("t/a"), STR("t/c")));
	commit(b);
	assert_int_equal(try_commit(a), STATUS_TX_CONFLICT);
	assert_stored(store_of(state), "t/b", NULL);
}

static void
stamped_key_conflicts_with_a_range_read(void **state)
{
	struct kv_tx *a = begin(store_of(state));
	struct kv_tx *b = begin(store_of(state));

	assert_range(a, "t/s", "t/t", NULL, "");
	put(a, "t/x", "1");
	assert_ok(kv_set_versionstamped_key(b, STR("t/s.........."), 3, STR("")));
	commit(b);
	assert_int_equal(try_commit(a), STATUS_TX_CONFLICT);
}

/* Commits of one group are judged against each other, in their order. */
static void
transactions_of_one_batch_conflict_with_each_other(void **state)
{
	enum {
		TXS = 50,
	};
	struct kv_tx *tx[TXS];
	struct kv_future *f[TXS];
	int good = 0;

	for (int i = 0; i < TXS; i++) {
		tx[i] = begin(store_of(state));
		assert_get(tx[i], "t/n", NULL);
		put(tx[i], "t/n", "1");
	}
	for (int i = 0; i < TXS; i++)
		f[i] = kv_commit(tx[i]);
	for (int i = 0; i < TXS; i++) {
		enum status status = kv_future_wait(f[i]);

		assert_true(status == STATUS_OK || status == STATUS_TX_CONFLICT);
		good += status == STATUS_OK;
		kv_tx_free(tx[i]);
	}
	assert_int_equal(good, 1);
}

/* Stamps and atomic operations of commits that were made together. */
static void
transactions_of_one_batch_have_their_own_stamps(void **state)
{
	enum {
		TXS = 50,
	};
	struct kv_tx *tx[TXS];
	struct kv_future *f[TXS];
	struct kv_range range;
	char sum[2] = { TXS, 0 };
	struct kv_tx *reader;

	for (int i = 0; i < TXS; i++) {
		tx[i] = begin(store_of(state));
		assert_ok(kv_set_versionstamped_key(tx[i], STR("t/s.........."), 3, STR("")));
		assert_ok(kv_atomic(tx[i], KV_ADD, STR("t/n"), STR("\1")));
		kv_want_versionstamp(tx[i]);
	}
	for (int i = 0; i < TXS; i++)
		f[i] = kv_commit(tx[i]);
	for (int i = 0; i < TXS; i++)
		assert_ok(kv_future_wait(f[i]));
	reader = begin_read(store_of(state));
	f[0] = kv_get_range(reader, STR("t/s"), STR("t/t"), NULL);
	assert_ok(kv_future_wait(f[0]));
	range = kv_future_range(f[0]);
	assert_int_equal(range.count, TXS);
	for (int i = 0; i < TXS; i++) {
		uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];

		/* Commits of one thread are answered in the order they were asked for. */
		assert_ok(kv_versionstamp(tx[i], stamp));
		assert_memory_equal(range.pairs[i].key.ptr + 3, stamp, sizeof(stamp));
		kv_tx_free(tx[i]);
	}
	assert_get(reader, "t/n", sum);
	kv_tx_free(reader);
}

/* Clears of a range that somebody else is filling at the same time, in both orders. */
static void
range_clear_meets_keys_committed_since(void **state)
{
	struct kv_tx *clear;
	struct kv_tx *fill;
	struct kv_future *f[2];

	put_now(store_of(state), "t/a", "1");
	clear = begin(store_of(state));
	assert_ok(kv_future_wait(kv_get(clear, STR("t/x"), KV_SNAPSHOT)));
	put_now(store_of(state), "t/b", "2");
	assert_ok(kv_clear_range(clear, STR("t/"), STR("t0")));
	commit(clear);
	assert_stored(store_of(state), "t/a", NULL);
	assert_stored(store_of(state), "t/b", NULL);

	for (int i = 0; i < 100; i++) {
		fill = begin(store_of(state));
		clear = begin(store_of(state));
		put(fill, "t/c", "3");
		assert_ok(kv_atomic(fill, KV_ADD, STR("t/d"), STR("\1")));
		assert_ok(kv_clear_range(clear, STR("t/"), STR("t0")));
		f[0] = kv_commit(fill);
		f[1] = kv_commit(clear);
		assert_ok(kv_future_wait(f[1]));
		assert_ok(kv_future_wait(f[0]));
		kv_tx_free(fill);
		kv_tx_free(clear);
		fill = begin_read(store_of(state));
		assert_range(fill, "t/", "t0", NULL, "");
		kv_tx_free(fill);
	}
}

static void
own_write_before_a_range_clear_is_cleared(void **state)
{
	struct kv_tx *tx = begin(store_of(state));

	put(tx, "t/a", "1");
	assert_ok(kv_atomic(tx, KV_ADD, STR("t/b"), STR("\1")));
	assert_ok(kv_set_versionstamped_key(tx, STR("t/s.........."), 3, STR("")));
	assert_ok(kv_clear_range(tx, STR("t/"), STR("t/t")));
	assert_ok(kv_atomic(tx, KV_ADD, STR("t/c"), STR("\1")));
	commit(tx);
	tx = begin_read(store_of(state));
	assert_range(tx, "t/", "t0", NULL, "t/c=\1");
	kv_tx_free(tx);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(lost_update_is_refused),
		T(write_skew_is_refused),
		T(phantom_is_refused),
		T(range_over_sets_without_conflict_ranges_conflicts),
		T(clear_of_a_range_takes_sets_without_conflict_ranges_along),
		T(key_beside_the_range_read_does_not_conflict),
		T(limited_range_conflicts_up_to_its_last_key),
		T(cleared_range_conflicts_with_a_read_inside),
		T(snapshot_reads_do_not_conflict),
		T(reading_own_write_does_not_conflict),
		T(blind_writes_never_conflict),
		T(reader_without_writes_always_commits),
		T(reading_an_atomically_changed_key_conflicts),
		T(what_reads_have_passed_over_conflicts_when_it_is_read),
		T(no_addition_is_lost_where_reads_have_passed_over),
		T(what_is_written_where_reads_have_passed_over_is_found),
		T(read_conflict_by_hand_conflicts),
		T(write_conflict_by_hand_conflicts_without_writing),
		T(stamped_key_conflicts_with_a_range_read),
		T(transactions_of_one_batch_conflict_with_each_other),
		T(transactions_of_one_batch_have_their_own_stamps),
		T(range_clear_meets_keys_committed_since),
		T(own_write_before_a_range_clear_is_cleared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
