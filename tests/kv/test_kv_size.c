/*
 * The size of a transaction: what each call adds to it, and where commits are refused. It is part
 * of the contract that these numbers are the same on every engine.
 */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

/* Of a key, as the store keeps it. */
static size_t
stored_bytes(struct kv_tx *tx, size_t key_bytes)
{
	return key_bytes + KV_LIMIT_KEY_BYTES - kv_key_limit(tx);
}

/*
 * How much a call has added to the transaction's size since the last question, without what the
 * store puts before the keys, of which the call has added so many.
 */
static uint64_t
grown(struct kv_tx *tx, uint64_t *known, size_t keys)
{
	uint64_t before = *known;

	*known = kv_tx_stats(tx).size_bytes;
	return *known - before - keys * stored_bytes(tx, 0);
}

/* Each has to be the same on every engine, so the numbers are written down here. */
static void
each_write_adds_its_share_to_the_size(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	uint64_t known = 0;

	assert_ok(kv_set(tx, STR("t/a"), STR("12345")));
	assert_int_equal(grown(tx, &known, 3), (28 + 3 + 5) + (28 + 3 + 4));
	assert_ok(kv_set_no_conflict(tx, STR("t/b"), STR("12345")));
	assert_int_equal(grown(tx, &known, 1), 28 + 3 + 5);
	assert_ok(kv_add_write_conflict_range(tx, STR("t/b"), STR("t/bb")));
	assert_int_equal(grown(tx, &known, 2), 28 + 3 + 4);
	assert_ok(kv_add_write_conflict_range(tx, STR("t/b"), STR("t/b")));
	assert_int_equal(grown(tx, &known, 0), 0);
	assert_ok(kv_clear(tx, STR("t/c")));
	assert_int_equal(grown(tx, &known, 4), 2 * (28 + 3 + 4));
	assert_ok(kv_clear_range(tx, STR("t/d"), STR("t/ee")));
	assert_int_equal(grown(tx, &known, 4), 2 * (28 + 3 + 4));
	assert_ok(kv_atomic(tx, KV_ADD, STR("t/f"), STR("1")));
	assert_int_equal(grown(tx, &known, 3), (28 + 3 + 1) + (28 + 3 + 4));
	assert_ok(kv_set_versionstamped_value(tx, STR("t/g"), STR("1234567890"), 0));
	assert_int_equal(grown(tx, &known, 3), (28 + 3 + 10 + 4) + (28 + 3 + 4));
	assert_ok(kv_set_versionstamped_key(tx, STR("t/1234567890"), 2, STR("1")));
	assert_int_equal(grown(tx, &known, 3), (28 + 12 + 4 + 1) + (28 + 12 + 13));
	assert_ok(kv_touch_metadata_version(tx));
	assert_int_equal(grown(tx, &known, 0), (28 + 17 + 14) + (28 + 17 + 18));
	kv_tx_reset(tx);
	assert_int_equal(kv_tx_stats(tx).size_bytes, 0);
	kv_tx_free(tx);
}

static void
each_read_that_conflicts_adds_its_share_to_the_size(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	const struct kv_range_options snapshot = { .mode = KV_SNAPSHOT };
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct kv_future *watch;
	uint64_t known = 0;

	assert_get(tx, "t/a", NULL);
	assert_int_equal(grown(tx, &known, 2), 28 + 3 + 4);
	assert_range(tx, "t/a", "t/bb", NULL, "");
	assert_int_equal(grown(tx, &known, 2), 28 + 3 + 4);
	assert_ok(kv_future_wait(kv_get(tx, STR("t/a"), KV_SNAPSHOT)));
	assert_range(tx, "t/a", "t/bb", &snapshot, "");
	assert_int_equal(grown(tx, &known, 0), 0);
	assert_ok(kv_add_read_conflict_range(tx, STR("t/a"), STR("t/bb")));
	assert_int_equal(grown(tx, &known, 2), 28 + 3 + 4);
	watch = kv_watch(tx, STR("t/a"));
	assert_int_equal(grown(tx, &known, 2), 28 + 3 + 4);
	kv_future_free(watch);
	assert_ok(kv_get_metadata_version(tx, version));
	assert_int_equal(grown(tx, &known, 0), 28 + 17 + 18);
	kv_tx_free(tx);
	tx = begin_read(store_of(state));
	assert_get(tx, "t/a", NULL);
	assert_ok(kv_get_metadata_version(tx, version));
	watch = kv_watch(tx, STR("t/a"));
	assert_int_equal(kv_tx_stats(tx).size_bytes, 0);
	kv_future_free(watch);
	kv_tx_free(tx);
}

/* FoundationDB makes two clears of one that has a set in its middle. */
static void
set_within_a_cleared_range_adds_a_range_to_the_size(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	static char far[400];
	uint64_t known;

	assert_ok(kv_clear_range(tx, STR("t/d"), STR("t/e")));
	assert_ok(kv_clear_range(tx, STR("t/g"), STR("t/h")));
	known = kv_tx_stats(tx).size_bytes;
	assert_ok(kv_set_no_conflict(tx, STR("t/c"), STR("12345")));
	assert_int_equal(grown(tx, &known, 1), 28 + 3 + 5);
	assert_ok(kv_set_no_conflict(tx, STR("t/h"), STR("12345")));
	assert_int_equal(grown(tx, &known, 1), 28 + 3 + 5);
	assert_ok(kv_set_no_conflict(tx, STR("t/d"), STR("12345")));
	assert_int_equal(grown(tx, &known, 3), (28 + 3 + 5) + (28 + 3 + 4));
	/* Also for a key that has no more than its beginning in common with the end. */
	memset(far, 't', sizeof(far));
	assert_ok(kv_clear_range(tx, STR("t/d"), str_of(far, sizeof(far))));
	known = kv_tx_stats(tx).size_bytes;
	assert_ok(kv_set_no_conflict(tx, str_of(far, 350), STR("1")));
	assert_int_equal(grown(tx, &known, 3), (28 + 350 + 1) + (28 + 350 + 351));
	assert_ok(kv_set_no_conflict(tx, STR("tz"), STR("1")));
	assert_int_equal(grown(tx, &known, 1), 28 + 2 + 1);
	kv_tx_free(tx);
}

static void
transaction_over_the_limit_is_refused(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	char *bytes = calloc(1, KV_LIMIT_VALUE_BYTES);
	enum status status = STATUS_OK;

	for (uint32_t i = 0; i < 200 && status == STATUS_OK; i++) {
		char key[4] = { 't', '/', (char)i, 0 };

		status = kv_set(tx, str_of(key, 3), str_of(bytes, KV_LIMIT_VALUE_BYTES));
	}
	if (status == STATUS_OK)
		status = kv_future_wait(kv_commit(tx));
	assert_int_equal(status, STATUS_TX_TOO_LARGE);
	kv_tx_free(tx);
	free(bytes);
	assert_stored(store_of(state), "t/a", NULL);
}

static void
conflict_ranges_count_towards_the_limit(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	static char bytes[KV_LIMIT_KEY_BYTES];
	struct str longest = str_of(bytes, kv_key_limit(tx));

	memset(bytes, 't', sizeof(bytes));
	put(tx, "t/a", "1");
	for (int i = 0; i < 600; i++)
		assert_ok(kv_add_read_conflict_range(tx, STR("t"), longest));
	for (int i = 0; i < 600; i++)
		assert_ok(kv_add_write_conflict_range(tx, STR("t"), longest));
	assert_int_equal(try_commit(tx), STATUS_TX_TOO_LARGE);
	assert_stored(store_of(state), "t/a", NULL);
}

/* Room for one more set with a key of three bytes and no range of its own. */
static size_t
room_left(struct kv_tx *tx)
{
	uint64_t limit = KV_LIMIT_TX_BYTES - KV_SIZE_RUN_BYTES;

	return (size_t)(limit - kv_tx_stats(tx).size_bytes);
}

/* To the byte, and what fits is committed: FoundationDB counts no more than that. */
static void
transaction_may_be_as_large_as_the_limit(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	char *bytes = calloc(1, KV_LIMIT_VALUE_BYTES);
	char key[3] = "t/";
	size_t key_bytes = stored_bytes(tx, sizeof(key));
	uint8_t n = 0;

	assert_ok(kv_add_write_conflict_range(tx, STR("t/"), STR("t0")));
	while (room_left(tx) > KV_LIMIT_VALUE_BYTES + 2 * KV_SIZE_EACH_BYTES + 2 * key_bytes) {
		key[2] = (char)n++;
		assert_ok(kv_set_no_conflict(tx, str_of(key, sizeof(key)),
					     str_of(bytes, KV_LIMIT_VALUE_BYTES)));
	}
	key[2] = (char)n++;
	assert_ok(kv_set_no_conflict(
		tx, str_of(key, sizeof(key)),
		str_of(bytes, room_left(tx) - 2 * KV_SIZE_EACH_BYTES - 2 * key_bytes)));
	assert_int_equal(room_left(tx), KV_SIZE_EACH_BYTES + key_bytes);
	key[2] = (char)n++;
	assert_int_equal(kv_set_no_conflict(tx, str_of(key, sizeof(key)), STR("1")),
			 STATUS_TX_TOO_LARGE);
	assert_int_equal(kv_set(tx, str_of(key, sizeof(key)), STR("")), STATUS_TX_TOO_LARGE);
	assert_ok(kv_set_no_conflict(tx, str_of(key, sizeof(key)), STR("")));
	assert_int_equal(room_left(tx), 0);
	commit(tx);
	free(bytes);
}

/* The smallest of leaves: what each adds beside its bytes is what counts. */
static void
transaction_of_many_small_sets_is_committed_up_to_the_limit(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	enum status status = STATUS_OK;
	size_t before = stored_bytes(tx, 0); /* each key */
	uint32_t n = 0;

	assert_ok(kv_clear_range(tx, STR("t/"), STR("t0")));
	for (; status == STATUS_OK; n++) {
		const char key[6] = { 't',    '/', (char)(n >> 24), (char)(n >> 16), (char)(n >> 8),
				      (char)n };

		/* Every other one lies in the cleared range, which FoundationDB cuts there. */
		status = n % 2 ? kv_set_no_conflict(tx, str_of(key, sizeof(key)), STR("1"))
			       : kv_set(tx, str_of(key, sizeof(key)), STR("1"));
	}
	assert_int_equal(status, STATUS_TX_TOO_LARGE);
	/* A pair of a mutation and a range for each. */
	assert_int_equal(n - 1,
			 (KV_LIMIT_TX_BYTES - KV_SIZE_RUN_BYTES - 2 * (28 + 4 + 2 * before)) /
				 ((28 + 6 + 1) + (28 + 6 + 7) + 3 * before));
	commit(tx);
}

static enum status
as_large_as_the_limit_body(struct kv_tx *tx, void *arg)
{
	char key[3] = "t/";

	TRY(kv_add_write_conflict_range(tx, STR("t/"), STR("t0")));
	for (uint8_t n = 0; room_left(tx) > KV_LIMIT_VALUE_BYTES; n++) {
		key[2] = (char)n;
		TRY(kv_set_no_conflict(tx, str_of(key, sizeof(key)),
				       str_of(arg, KV_LIMIT_VALUE_BYTES - 1000)));
	}
	key[2] = (char)0xff;
	return kv_set_no_conflict(
		tx, str_of(key, sizeof(key)),
		str_of(arg, room_left(tx) - KV_SIZE_EACH_BYTES - stored_bytes(tx, sizeof(key))));
}

/* The id that it leaves on some engines has room that no body can take. */
static void
run_has_room_for_its_id(void **state)
{
	char *bytes = calloc(1, KV_LIMIT_VALUE_BYTES);

	assert_ok(kv_run(store_of(state), as_large_as_the_limit_body, bytes, NULL, NULL));
	free(bytes);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_write_adds_its_share_to_the_size),
		T(each_read_that_conflicts_adds_its_share_to_the_size),
		T(set_within_a_cleared_range_adds_a_range_to_the_size),
		T(transaction_over_the_limit_is_refused),
		T(conflict_ranges_count_towards_the_limit),
		T(transaction_may_be_as_large_as_the_limit),
		T(transaction_of_many_small_sets_is_committed_up_to_the_limit),
		T(run_has_room_for_its_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
