/* Scans: a range in as many answers as it takes, ahead of who reads it or not. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "kv/few.h"

enum {
	SCAN_PAIRS = 300,
	SCAN_VALUE_BYTES = 40000, /* in all more than one answer may have */
	SCAN_TRIES_MOST = 10,
};

static void
put_large_pairs(struct kv_store *store)
{
	char *value = calloc(1, SCAN_VALUE_BYTES);

	for (int i = 0; i < SCAN_PAIRS; i += 100) {
		struct kv_tx *tx = begin(store);

		for (int j = i; j < i + 100; j++) {
			char key[16];

			snprintf(key, sizeof(key), "t/%04d", j);
			assert_ok(kv_set(tx, str_from_cstr(key), str_of(value, SCAN_VALUE_BYTES)));
		}
		commit(tx);
	}
	free(value);
}

/* A busy cluster can take longer for all these pairs than it keeps a version. */
static bool
cluster_was_slow(enum status status)
{
	return status == STATUS_TX_TOO_OLD && test_store_is_cluster();
}

/* Whoever reads begins anew then, as the contract says; but not for ever. */
static bool
must_read_again(enum status status, int *tries)
{
	assert_in_range(++*tries, 1, SCAN_TRIES_MOST);
	return cluster_was_slow(status);
}

static enum status
try_scan(struct kv_store *store, const struct kv_range_options *options, int expected,
	 uint64_t stretches)
{
	struct kv_tx *tx = begin_read(store);
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;
	int n = 0;

	assert_ok(kv_scan_init(&scan, tx, STR("t/"), STR("t0"), options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		char key[16];

		snprintf(key, sizeof(key), "t/%04d",
			 options && options->reverse ? SCAN_PAIRS - 1 - n : n);
		assert_true(str_eq(pair.key, str_from_cstr(key)));
		assert_int_equal(pair.value.len, SCAN_VALUE_BYTES);
		n++;
	}
	if (!cluster_was_slow(status)) {
		assert_int_equal(status, STATUS_NOT_FOUND);
		assert_int_equal(kv_scan_next(&scan, &pair), STATUS_NOT_FOUND);
		assert_int_equal(n, expected);
		assert_int_equal(kv_tx_stats(tx).round_trips, stretches);
	}
	kv_scan_release(&scan);
	kv_scan_release(&scan);
	kv_tx_free(tx);
	return status;
}

static void
scan_and_count(struct kv_store *store, const struct kv_range_options *options, int expected,
	       uint64_t stretches)
{
	int tries = 0;

	while (must_read_again(try_scan(store, options, expected, stretches), &tries))
		;
}

static void
scan_goes_on_past_the_size_of_one_answer(void **state)
{
	struct kv_store *store = store_of(state);

	assert_true((size_t)SCAN_PAIRS * SCAN_VALUE_BYTES > 2 * (size_t)KV_LIMIT_RANGE_BYTES);
	put_large_pairs(store);
	scan_and_count(store, NULL, SCAN_PAIRS, 3);
	scan_and_count(store, &(struct kv_range_options){ .reverse = true }, SCAN_PAIRS, 3);
	scan_and_count(store, &(struct kv_range_options){ .limit = 200 }, 200, 2);
	scan_and_count(store, &(struct kv_range_options){ .limit = 1 }, 1, 1);
	scan_and_count(store,
		       &(struct kv_range_options){ .limit_bytes = 900000, .mode = KV_SNAPSHOT },
		       SCAN_PAIRS, 14);
}

/* Everything, by some at a time. */
static enum status
try_take(struct kv_store *store, const struct kv_range_options *options, size_t most, int expected)
{
	struct kv_tx *tx = begin_read(store);
	struct kv_scan scan;
	struct kv_range range;
	enum status status;
	int n = 0;

	assert_ok(kv_scan_init(&scan, tx, STR("t/"), STR("t0"), options));
	while ((status = kv_scan_take(&scan, most, &range)) == STATUS_OK) {
		assert_in_range(range.count, 1, most);
		for (size_t i = 0; i < range.count; i++) {
			char key[16];

			snprintf(key, sizeof(key), "t/%04d",
				 options->reverse ? SCAN_PAIRS - 1 - n : n);
			assert_true(str_eq(range.pairs[i].key, str_from_cstr(key)));
			assert_int_equal(range.pairs[i].value.len, SCAN_VALUE_BYTES);
			n++;
		}
		assert_true(range.more || n == expected);
	}
	if (!cluster_was_slow(status)) {
		assert_int_equal(status, STATUS_NOT_FOUND);
		assert_int_equal(n, expected);
	}
	kv_scan_release(&scan);
	kv_tx_free(tx);
	return status;
}

static void
take_and_count(struct kv_store *store, const struct kv_range_options *options, size_t most,
	       int expected)
{
	int tries = 0;

	while (must_read_again(try_take(store, options, most, expected), &tries))
		;
}

static void
scan_ahead_gives_the_same_in_more_stretches(void **state)
{
	struct kv_store *store = store_of(state);
	struct kv_range_options options = { .limit_bytes = 900000, .ahead = true };

	put_large_pairs(store);
	/* 112,501 bytes, twice as many, four times, and then as many as may be. */
	scan_and_count(store, &options, SCAN_PAIRS, 16);
	take_and_count(store, &options, SIZE_MAX, SCAN_PAIRS);
	take_and_count(store, &options, 7, SCAN_PAIRS);
	options.reverse = true;
	scan_and_count(store, &options, SCAN_PAIRS, 16);
	take_and_count(store, &options, 7, SCAN_PAIRS);
	options.limit = 100;
	take_and_count(store, &options, 7, 100);
	options.ahead = false;
	take_and_count(store, &options, 7, 100);
}

static enum status
try_scan_few(struct kv_store *store, const struct kv_range_options *options, size_t first)
{
	struct kv_tx *tx = begin_read(store);
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;
	int n = 0;

	assert_ok(kv_scan_init_few(&scan, tx, STR("t/"), STR("t0"), options, first));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		char key[16];

		snprintf(key, sizeof(key), "t/%04d", options->reverse ? SCAN_PAIRS - 1 - n : n);
		assert_true(str_eq(pair.key, str_from_cstr(key)));
		if (++n == 1 && first == 1) {
			assert_int_equal(kv_tx_stats(tx).keys_read, 1);
			assert_int_equal(kv_tx_stats(tx).round_trips, 1);
		}
	}
	if (!cluster_was_slow(status)) {
		assert_int_equal(status, STATUS_NOT_FOUND);
		assert_int_equal(n, options->limit ? (int)options->limit : SCAN_PAIRS);
	}
	kv_scan_release(&scan);
	kv_tx_free(tx);
	return status;
}

/* The first stretch has as many pairs as are wanted, and no other is asked for ahead. */
static void
scan_begins_with_as_many_as_are_wanted(void **state)
{
	struct kv_store *store = store_of(state);
	struct kv_range_options options = { .limit_bytes = 900000, .ahead = true };

	put_large_pairs(store);
	for (size_t first = 1; first < 2000; first *= 3) {
		int tries = 0;

		while (must_read_again(try_scan_few(store, &options, first), &tries))
			;
		options.reverse = !options.reverse;
		options.limit = options.limit ? 0 : 100;
	}
}

/* ---- How large the stretches of a scan of few are ---- */

static const struct few_case {
	size_t first; /* that are likely to be wanted */
	size_t limit;
	bool expects; /* `more` of them, once the first stretch has come */
	size_t more;
	size_t stretches[6];
} few_cases[] = {
	{ .first = 0, .stretches = { 3000 } },
	{ .first = 1, .stretches = { 1, 8, 64, 512, 2415 } },
	{ .first = 125, .stretches = { 125, 1000, 1875 } },
	{ .first = 126, .stretches = { 126, 2874 } },
	{ .first = 1000, .stretches = { 1000, 2000 } },
	{ .first = 1001, .stretches = { 1001, 1000, 999 } },
	{ .first = 4, .limit = 10, .stretches = { 4, 6 } },
	{ .first = 4, .limit = 4, .stretches = { 4 } },
	{ .first = 4, .expects = true, .more = 0, .stretches = { 4, 8, 64, 512, 2412 } },
	{ .first = 4, .expects = true, .more = 7, .stretches = { 4, 8, 64, 512, 2412 } },
	{ .first = 4, .expects = true, .more = 8, .stretches = { 4, 16, 128, 2852 } },
	{ .first = 4, .expects = true, .more = 16, .stretches = { 4, 24, 192, 2780 } },
};

static void
put_small_pairs(struct kv_store *store)
{
	enum {
		PAIRS = 3000,
		PAIRS_A_TX = 500,
	};

	for (int done = 0; done < PAIRS; done += PAIRS_A_TX) {
		struct kv_tx *tx = begin(store);

		for (int i = done; i < done + PAIRS_A_TX; i++) {
			char key[16];

			snprintf(key, sizeof(key), "t/%04d", i);
			assert_ok(kv_set(tx, str_from_cstr(key), STR("v")));
		}
		commit(tx);
	}
}

static enum status
try_stretches(struct kv_store *store, const struct few_case *c)
{
	const struct kv_range_options options = { .limit = c->limit };
	struct kv_tx *tx = begin_read(store);
	struct kv_scan scan;
	struct kv_range range;
	enum status status;
	size_t i = 0;

	assert_ok(kv_scan_init_few(&scan, tx, STR("t/"), STR("t0"), &options, c->first));
	while ((status = kv_scan_take(&scan, SIZE_MAX, &range)) == STATUS_OK) {
		assert_int_equal(range.count, c->stretches[i]);
		if (i++ == 0 && c->expects)
			kv_scan_expect(&scan, c->more);
	}
	if (!cluster_was_slow(status)) {
		assert_int_equal(status, STATUS_NOT_FOUND);
		assert_int_equal(c->stretches[i], 0);
	}
	kv_scan_release(&scan);
	kv_tx_free(tx);
	return status;
}

static void
scan_of_few_grows_while_more_are_wanted(void **state)
{
	struct kv_store *store = store_of(state);

	put_small_pairs(store);
	for (size_t i = 0; i < sizeof(few_cases) / sizeof(few_cases[0]); i++) {
		int tries = 0;

		while (must_read_again(try_stretches(store, &few_cases[i]), &tries))
			;
	}
}

/* A scan that is given up, or whose transaction is, may have asked for what nobody has read. */
static void
scan_ahead_may_end_early(void **state)
{
	struct kv_store *store = store_of(state);
	const struct kv_range_options options = { .limit_bytes = 900000, .ahead = true };

	put_large_pairs(store);
	for (int way = 0; way < 3; way++) {
		struct kv_tx *tx = begin_read(store);
		struct kv_scan scan;
		struct kv_pair pair;

		assert_ok(kv_scan_init(&scan, tx, STR("t/"), STR("t0"), &options));
		for (int i = 0; i < 20; i++)
			assert_ok(kv_scan_next(&scan, &pair));
		if (way == 1) {
			enum status status = STATUS_OK;

			kv_cancel(tx);
			while (status == STATUS_OK)
				status = kv_scan_next(&scan, &pair);
			assert_int_equal(status, STATUS_CANCELLED);
		}
		if (way == 2) {
			assert_ok(kv_scan_retry(&scan, STATUS_TX_CONFLICT));
			assert_ok(kv_scan_next(&scan, &pair));
		}
		kv_scan_release(&scan);
		kv_tx_free(tx);
	}
}

/*
 * A loop's thread serves others, too: what it reads itself comes in answers that take it no longer
 * than two slices. Four pairs are more than 128 KiB, which is when such an answer ends.
 */
static void
scan_on_fiber(void *arg)
{
	struct kv_store *store = arg;
	const struct kv_range_options options[] = { { 0 }, { .reverse = true } };
	enum kv_tx_kind kinds[] = { KV_TX_READ_ONLY, KV_TX_READ_WRITE };

	for (size_t i = 0; i < 4; i++) {
		struct kv_tx *tx;
		struct kv_scan scan;
		struct kv_range range;
		int n = 0;

		assert_ok(kv_begin(store, kinds[i / 2], &tx));
		assert_ok(kv_scan_init(&scan, tx, STR("t/"), STR("t0"), &options[i % 2]));
		while (n < 100) {
			assert_ok(kv_scan_take(&scan, SIZE_MAX, &range));
			if (!kv_is_shared(store))
				assert_in_range(range.count, 1, 4);
			n += (int)range.count;
		}
		kv_scan_release(&scan);
		kv_tx_free(tx);
	}
}

static void
a_loop_reads_little_at_a_time(void **state)
{
	put_large_pairs(store_of(state));
	run_on_fibers(1, scan_on_fiber, store_of(state), 0);
}

static void
scan_of_nothing_ends_at_once(void **state)
{
	struct kv_tx *tx = begin_read(store_of(state));
	struct kv_scan scan;
	struct kv_pair pair;

	assert_ok(kv_scan_init(&scan, tx, STR("t/"), STR("t0"), NULL));
	assert_int_equal(kv_scan_next(&scan, &pair), STATUS_NOT_FOUND);
	kv_scan_release(&scan);
	kv_tx_free(tx);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(scan_goes_on_past_the_size_of_one_answer),
		T(scan_ahead_gives_the_same_in_more_stretches),
		T(scan_begins_with_as_many_as_are_wanted),
		T(scan_of_few_grows_while_more_are_wanted),
		T(scan_ahead_may_end_early),
		T(a_loop_reads_little_at_a_time),
		T(scan_of_nothing_ends_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
