/* The transaction contract, call by call. Nothing here knows which engine is behind it. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"

/* ---- Opening ---- */

static void
unknown_url_is_invalid(void **state)
{
	struct kv_store *store = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(kv_open("leveldb:/tmp/x", NULL, &store, &err), STATUS_INVALID);
	assert_non_null(strstr(err.text, "leveldb"));
	assert_int_equal(kv_open("nothing", NULL, &store, &err), STATUS_INVALID);
	assert_int_equal(kv_open("embedded:", NULL, &store, &err), STATUS_INVALID);
	assert_null(store);
}

static void
absent_client_library_is_unsupported(void **state)
{
	const char *before = getenv("FROND_LIBFDB_C");
	char *library = before ? strdup(before) : NULL;
	struct kv_store *store = NULL;
	struct err err = { 0 };

	(void)state;
	setenv("FROND_LIBFDB_C", "/nowhere/libfdb_c.so", 1);
	assert_int_equal(kv_open("fdb:/etc/fdb.cluster", NULL, &store, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "FoundationDB"));
	assert_non_null(strstr(err.text, "/nowhere/libfdb_c.so"));
	assert_null(store);
	if (library)
		setenv("FROND_LIBFDB_C", library, 1);
	else
		unsetenv("FROND_LIBFDB_C");
	free(library);
}

/* ---- Single keys ---- */

static void
committed_value_is_read_back(void **state)
{
	put_now(store_of(state), "t/a", "1");
	assert_stored(store_of(state), "t/a", "1");
	assert_stored(store_of(state), "t/b", NULL);
}

static void
empty_value_is_not_absence(void **state)
{
	put_now(store_of(state), "t/a", "");
	assert_stored(store_of(state), "t/a", "");
}

static void
uncommitted_write_is_seen_by_its_transaction_alone(void **state)
{
	struct kv_tx *tx = begin(store_of(state));

	put(tx, "t/a", "1");
	assert_get(tx, "t/a", "1");
	assert_stored(store_of(state), "t/a", NULL);
	kv_tx_free(tx);
	assert_stored(store_of(state), "t/a", NULL);
}

static void
read_version_is_fixed_by_the_first_read(void **state)
{
	struct kv_tx *early = begin_read(store_of(state));
	struct kv_tx *late = begin_read(store_of(state));
	uint64_t version;
	uint64_t again;

	put_now(store_of(state), "t/a", "1");
	assert_get(early, "t/a", "1");
	assert_ok(kv_get_read_version(early, &version));
	put_now(store_of(state), "t/a", "2");
	assert_get(early, "t/a", "1");
	assert_ok(kv_get_read_version(early, &again));
	assert_int_equal(version, again);
	assert_get(late, "t/a", "2");
	kv_tx_free(early);
	kv_tx_free(late);
}

static void
reset_transaction_is_as_new(void **state)
{
	struct kv_tx *tx = begin(store_of(state));

	put(tx, "t/a", "1");
	assert_get(tx, "t/b", NULL);
	put_now(store_of(state), "t/b", "2");
	kv_tx_reset(tx);
	assert_get(tx, "t/a", NULL);
	assert_get(tx, "t/b", "2");
	assert_int_equal(kv_tx_stats(tx).sets, 0);
	assert_int_equal(kv_tx_stats(tx).reads, 2);
	assert_ptr_equal(kv_tx_store(tx), store_of(state));
	commit(tx);
}

/* What was read is held until it is forgotten, or the transaction is over. */
static void
answers_are_counted_while_they_are_held(void **state)
{
	enum {
		ROUNDS = 3,
		READS = 300,
		VALUE_BYTES = 4000,
		HELD_BYTES = READS * VALUE_BYTES,
	};
	struct budget budget;
	struct budget_part part = { .budget = &budget };
	char value[VALUE_BYTES + 1];
	struct kv_tx *tx;
	size_t before;

	/* The engine of faults keeps copies, and does not count what lies beneath it. */
	if (getenv("FROND_TEST_FAULTS"))
		return;
	memset(value, 'v', VALUE_BYTES);
	value[VALUE_BYTES] = '\0';
	put_now(store_of(state), "t/a", value);
	budget_init(&budget, 64 << 20);
	budget_enter(&part);
	tx = begin_read(store_of(state));
	kv_tx_set_memory(tx, &part, 0);
	before = part.used_bytes;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t mark = kv_reads_mark(tx);

		for (int i = 0; i < READS; i++) {
			struct kv_future *f = i % 2 ? kv_get(tx, STR("t/a"), KV_READ)
						    : kv_get_range(tx, STR("t/"), STR("t0"), NULL);

			assert_ok(kv_future_wait(f));
			assert_ok(kv_future_wait(f));
		}
		assert_in_range(part.used_bytes - before, HELD_BYTES, HELD_BYTES / 5 * 9);
		if (round == 0) {
			kv_reads_forget(tx, mark);
		} else if (round == 1) {
			kv_tx_reset(tx);
			assert_int_equal(part.used_bytes, before);
		}
	}
	kv_tx_free(tx);
	assert_int_equal(part.used_bytes, 0);
	budget_part_release(&part);
	budget_fini(&budget);
}

static void
value_outlives_later_reads_and_writes(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	struct kv_future *f;
	struct str value;

	put(tx, "t/a", "first");
	f = kv_get(tx, STR("t/a"), KV_READ);
	assert_ok(kv_future_wait(f));
	put(tx, "t/a", "other");
	for (int i = 0; i < 100; i++)
		assert_get(tx, "t/a", "other");
	assert_true(kv_future_value(f, &value));
	assert_true(str_eq(value, STR("first")));
	kv_future_free(f);
	kv_future_free(NULL);
	kv_tx_free(tx);
	kv_tx_free(NULL);
}

/* ---- Limits and refusals ---- */

static void
check_url(const char *url, bool fine)
{
	struct err err = { 0 };

	assert_int_equal(kv_check_url(url, &err), fine ? STATUS_OK : STATUS_INVALID);
	if (!fine)
		assert_non_null(strstr(err.text, "prefix"));
}

static void
store_in_a_cluster_has_a_prefix_of_few_characters(void **state)
{
	(void)state;
	check_url("fdb:", true);
	check_url("fdb:/a/fdb.cluster", true);
	check_url("fdb:/a/fdb.cluster?prefix=a", true);
	check_url("fdb:?prefix=App_1.test-2", true);
	check_url("fdb:?prefix=12345678901234567890123456789012", true);
	check_url("fdb:?prefix=123456789012345678901234567890123", false);
	check_url("fdb:?prefix=", false);
	check_url("fdb:?prefix=a/b", false);
	check_url("fdb:?prefix=a&prefix=b", false);
	check_url("fdb:?tenant=a", false);
	check_url("fdb:?", false);
}

static void
keys_over_the_limit_are_refused(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	static char bytes[KV_LIMIT_KEY_BYTES + 2];
	struct str fits = str_of(bytes, kv_key_limit(tx));
	struct str over = str_of(bytes, kv_key_limit(tx) + 1);
	struct str far_over = str_of(bytes, kv_key_limit(tx) + 2);
	char limit[32];

	(void)snprintf(limit, sizeof(limit), "the limit of %zu", fits.len);
	memset(bytes, 't', sizeof(bytes));
	assert_ok(kv_set(tx, fits, STR("v")));
	assert_int_equal(kv_set(tx, over, STR("v")), STATUS_KEY_TOO_LARGE);
	assert_non_null(strstr(kv_tx_error(tx), limit));
	assert_int_equal(kv_clear(tx, over), STATUS_KEY_TOO_LARGE);
	assert_int_equal(kv_atomic(tx, KV_ADD, over, STR("v")), STATUS_KEY_TOO_LARGE);
	assert_int_equal(kv_set_versionstamped_key(tx, over, 0, STR("")), STATUS_KEY_TOO_LARGE);
	assert_int_equal(get_status(tx, over), STATUS_KEY_TOO_LARGE);
	/* The bound behind the longest key is a bound. */
	assert_ok(kv_clear_range(tx, fits, over));
	assert_int_equal(kv_clear_range(tx, fits, far_over), STATUS_KEY_TOO_LARGE);
	assert_int_equal(kv_add_read_conflict_range(tx, fits, far_over), STATUS_KEY_TOO_LARGE);
	assert_int_equal(kv_future_wait(kv_get_range(tx, fits, far_over, NULL)),
			 STATUS_KEY_TOO_LARGE);
	assert_int_equal(kv_future_wait(kv_watch(tx, over)), STATUS_KEY_TOO_LARGE);
	kv_tx_free(tx);
}

static void
largest_key_and_value_are_stored(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	char *bytes = calloc(1, KV_LIMIT_VALUE_BYTES + 1);
	struct str key;
	struct kv_future *f;
	struct str value;

	memset(bytes, 't', KV_LIMIT_KEY_BYTES);
	key = str_of(bytes, kv_key_limit(tx));
	assert_ok(kv_set(tx, key, str_of(bytes, KV_LIMIT_VALUE_BYTES)));
	assert_int_equal(kv_set(tx, STR("t/a"), str_of(bytes, KV_LIMIT_VALUE_BYTES + 1)),
			 STATUS_VALUE_TOO_LARGE);
	assert_int_equal(
		kv_atomic(tx, KV_BYTE_MAX, STR("t/a"), str_of(bytes, KV_LIMIT_VALUE_BYTES + 1)),
		STATUS_VALUE_TOO_LARGE);
	commit(tx);
	tx = begin(store_of(state));
	f = kv_get(tx, key, KV_READ);
	assert_ok(kv_future_wait(f));
	assert_true(kv_future_value(f, &value));
	assert_true(str_eq(value, str_of(bytes, KV_LIMIT_VALUE_BYTES)));
	assert_ok(kv_clear(tx, key));
	commit(tx);
	free(bytes);
}

static void
set_without_conflict_range_is_like_any_other(void **state)
{
	struct kv_tx *tx = begin(store_of(state));

	put(tx, "t/a", "old");
	assert_ok(kv_set_no_conflict(tx, STR("t/a"), STR("1")));
	assert_ok(kv_set_no_conflict(tx, STR("t/b"), STR("2")));
	assert_ok(kv_add_write_conflict_range(tx, STR("t/"), STR("t0")));
	assert_get(tx, "t/a", "1");
	assert_range(tx, "t/", "t0", NULL, "t/a=1 t/b=2");
	assert_ok(kv_clear(tx, STR("t/b")));
	assert_range(tx, "t/", "t0", NULL, "t/a=1");
	commit(tx);
	assert_stored(store_of(state), "t/a", "1");
	assert_stored(store_of(state), "t/b", NULL);
}

static void
system_keys_are_refused(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	struct str system = STR("\xff/x");

	assert_int_equal(kv_set(tx, system, STR("v")), STATUS_INVALID);
	assert_int_equal(kv_set(tx, STR("\xff"), STR("v")), STATUS_INVALID);
	assert_int_equal(kv_set_no_conflict(tx, system, STR("v")), STATUS_INVALID);
	assert_int_equal(kv_clear(tx, system), STATUS_INVALID);
	assert_int_equal(kv_clear_range(tx, STR("t/"), system), STATUS_INVALID);
	assert_int_equal(kv_atomic(tx, KV_ADD, system, STR("v")), STATUS_INVALID);
	assert_int_equal(get_status(tx, system), STATUS_INVALID);
	assert_int_equal(kv_future_wait(kv_get_range(tx, STR(""), system, NULL)), STATUS_INVALID);
	assert_int_equal(kv_add_write_conflict_range(tx, system, system), STATUS_INVALID);
	assert_int_equal(kv_future_wait(kv_watch(tx, system)), STATUS_INVALID);
	assert_ok(kv_future_wait(kv_get_range(tx, STR("\xfe"), STR("\xff"), NULL)));
	/* The empty key is none of them, whatever lies in memory there. */
	system.len = 0;
	assert_ok(get_status(tx, system));
	assert_ok(kv_future_wait(kv_get_range(tx, system, STR("t/"), NULL)));
	assert_ok(kv_add_read_conflict_range(tx, system, STR("t/")));
	assert_ok(kv_clear(tx, system));
	kv_tx_free(tx);
}

static void
read_only_transaction_refuses_every_write(void **state)
{
	struct kv_tx *tx = begin_read(store_of(state));
	struct str key = STR("t/aaaaaaaaaaaa");

	assert_int_equal(kv_set(tx, key, STR("v")), STATUS_FORBIDDEN);
	assert_int_equal(kv_set_no_conflict(tx, key, STR("v")), STATUS_FORBIDDEN);
	assert_int_equal(kv_clear(tx, key), STATUS_FORBIDDEN);
	assert_int_equal(kv_clear_range(tx, STR("t/"), key), STATUS_FORBIDDEN);
	assert_int_equal(kv_atomic(tx, KV_ADD, key, STR("v")), STATUS_FORBIDDEN);
	assert_int_equal(kv_set_versionstamped_key(tx, key, 2, STR("v")), STATUS_FORBIDDEN);
	assert_int_equal(kv_set_versionstamped_value(tx, key, key, 2), STATUS_FORBIDDEN);
	assert_int_equal(kv_add_write_conflict_range(tx, STR("t/"), key), STATUS_FORBIDDEN);
	assert_int_equal(kv_touch_metadata_version(tx), STATUS_FORBIDDEN);
	assert_int_equal(kv_tx_stats(tx).sets + kv_tx_stats(tx).clears, 0);
	commit(tx);
}

static void
stamp_that_does_not_fit_is_invalid(void **state)
{
	struct kv_tx *tx = begin(store_of(state));

	assert_int_equal(kv_set_versionstamped_key(tx, STR("t/012345678"), 2, STR("")),
			 STATUS_INVALID);
	assert_int_equal(kv_set_versionstamped_key(tx, STR("short"), 0, STR("")), STATUS_INVALID);
	assert_int_equal(kv_set_versionstamped_value(tx, STR("t/a"), STR("0123456789"), 1),
			 STATUS_INVALID);
	assert_int_equal(kv_set_versionstamped_value(tx, STR("t/a"), STR("0123456789"), SIZE_MAX),
			 STATUS_INVALID);
	assert_ok(kv_set_versionstamped_value(tx, STR("t/a"), STR("0123456789"), 0));
	kv_tx_free(tx);
}

/* ---- After the end ---- */

static void
committed_transaction_can_only_be_asked_reset_or_freed(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	uint64_t version;

	put(tx, "t/a", "1");
	assert_ok(kv_future_wait(kv_commit(tx)));
	assert_int_equal(kv_set(tx, STR("t/b"), STR("v")), STATUS_TX_USED);
	assert_int_equal(get_status(tx, STR("t/a")), STATUS_TX_USED);
	assert_int_equal(kv_future_wait(kv_get_range(tx, STR("t/"), STR("t0"), NULL)),
			 STATUS_TX_USED);
	assert_int_equal(kv_clear_range(tx, STR("x"), STR("t")), STATUS_TX_USED);
	assert_int_equal(kv_get_read_version(tx, &version), STATUS_TX_USED);
	assert_int_equal(kv_future_wait(kv_watch(tx, STR("t/a"))), STATUS_TX_USED);
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_TX_USED);
	assert_ok(kv_committed_version(tx, &version));
	kv_tx_reset(tx);
	assert_get(tx, "t/a", "1");
	put(tx, "t/b", "2");
	commit(tx);
	assert_stored(store_of(state), "t/b", "2");
}

static void
commit_without_writes_has_no_version(void **state)
{
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
	struct kv_tx *tx = begin(store_of(state));
	uint64_t version;

	assert_int_equal(kv_committed_version(tx, &version), STATUS_NOT_FOUND);
	assert_get(tx, "t/a", NULL);
	kv_want_versionstamp(tx);
	assert_ok(kv_future_wait(kv_commit(tx)));
	assert_int_equal(kv_committed_version(tx, &version), STATUS_NOT_FOUND);
	assert_int_equal(kv_versionstamp(tx, stamp), STATUS_NOT_FOUND);
	kv_tx_free(tx);
}

static void
cancelled_transaction_answers_nothing_but_that(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	struct kv_future *watch;

	put(tx, "t/a", "1");
	watch = kv_watch(tx, STR("t/b"));
	assert_false(kv_future_ready(watch));
	kv_cancel(tx);
	assert_int_equal(kv_future_wait(watch), STATUS_CANCELLED);
	kv_future_free(watch);
	assert_int_equal(get_status(tx, STR("t/a")), STATUS_CANCELLED);
	assert_int_equal(kv_set(tx, STR("t/a"), STR("")), STATUS_CANCELLED);
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_CANCELLED);
	kv_tx_reset(tx);
	assert_get(tx, "t/a", NULL);
	kv_tx_free(tx);
}

/* ---- Ranges ---- */

static void
put_letters(struct kv_store *store)
{
	struct kv_tx *tx = begin(store);

	put(tx, "t/a", "1");
	put(tx, "t/b", "2");
	put(tx, "t/c", "3");
	put(tx, "t/d", "4");
	commit(tx);
}

static void
range_has_its_beginning_and_not_its_end(void **state)
{
	struct kv_tx *tx;

	put_letters(store_of(state));
	tx = begin_read(store_of(state));
	assert_range(tx, "t/b", "t/d", NULL, "t/b=2 t/c=3");
	assert_range(tx, "t/", "t0", NULL, "t/a=1 t/b=2 t/c=3 t/d=4");
	assert_range(tx, "t/b", "t/b", NULL, "");
	assert_range(tx, "t/d", "t/a", NULL, "");
	assert_range(tx, "t/x", "t/z", NULL, "");
	kv_tx_free(tx);
}

static void
range_limits_end_an_answer_early(void **state)
{
	struct kv_tx *tx;

	put_letters(store_of(state));
	tx = begin_read(store_of(state));
	assert_range(tx, "t/", "t0", &(struct kv_range_options){ .limit = 2 }, "t/a=1 t/b=2+");
	assert_range(tx, "t/", "t0", &(struct kv_range_options){ .limit = 2, .reverse = true },
		     "t/d=4 t/c=3+");
	assert_range(tx, "t/", "t0", &(struct kv_range_options){ .reverse = true },
		     "t/d=4 t/c=3 t/b=2 t/a=1");
	/* Each pair has four bytes; the one that reaches the limit is the last. */
	assert_range(tx, "t/", "t0", &(struct kv_range_options){ .limit_bytes = 5 },
		     "t/a=1 t/b=2+");
	assert_range(tx, "t/", "t0", &(struct kv_range_options){ .limit_bytes = 4 }, "t/a=1+");
	assert_range(tx, "t/", "t0", &(struct kv_range_options){ .limit = 5 },
		     "t/a=1 t/b=2 t/c=3 t/d=4");
	kv_tx_free(tx);
}

static void
range_sees_own_writes(void **state)
{
	const struct kv_range_options reverse = { .reverse = true };
	struct kv_tx *tx;

	put_letters(store_of(state));
	tx = begin(store_of(state));
	put(tx, "t/aa", "5");
	put(tx, "t/b", "6");
	assert_ok(kv_clear(tx, STR("t/c")));
	put(tx, "t/e", "7");
	assert_range(tx, "t/", "t0", NULL, "t/a=1 t/aa=5 t/b=6 t/d=4 t/e=7");
	assert_range(tx, "t/", "t0", &reverse, "t/e=7 t/d=4 t/b=6 t/aa=5 t/a=1");
	assert_range(tx, "t/aa", "t/d", &reverse, "t/b=6 t/aa=5");
	assert_ok(kv_clear_range(tx, STR("t/a"), STR("t/b")));
	assert_range(tx, "t/", "t0", NULL, "t/b=6 t/d=4 t/e=7");
	assert_ok(kv_clear_range(tx, STR("t/b"), STR("t/dd")));
	assert_range(tx, "t/", "t0", NULL, "t/e=7");
	assert_range(tx, "t/", "t0", &reverse, "t/e=7");
	put(tx, "t/bb", "8");
	assert_range(tx, "t/", "t0", NULL, "t/bb=8 t/e=7");
	assert_range(tx, "t/", "t0", &reverse, "t/e=7 t/bb=8");
	commit(tx);
	tx = begin_read(store_of(state));
	assert_range(tx, "t/", "t0", NULL, "t/bb=8 t/e=7");
	kv_tx_free(tx);
}

static void
range_sees_own_atomic_operations(void **state)
{
	struct kv_tx *tx;

	put_letters(store_of(state));
	tx = begin(store_of(state));
	assert_ok(kv_atomic(tx, KV_BYTE_MAX, STR("t/b"), STR("9")));
	assert_ok(kv_atomic(tx, KV_BYTE_MAX, STR("t/b"), STR("8")));
	assert_ok(kv_atomic(tx, KV_COMPARE_AND_CLEAR, STR("t/c"), STR("3")));
	assert_ok(kv_atomic(tx, KV_BYTE_MIN, STR("t/bb"), STR("5")));
	assert_range(tx, "t/", "t0", NULL, "t/a=1 t/b=9 t/bb=5 t/d=4");
	assert_range(tx, "t/", "t0", &(struct kv_range_options){ .reverse = true, .limit = 3 },
		     "t/d=4 t/bb=5 t/b=9+");
	assert_get(tx, "t/b", "9");
	assert_get(tx, "t/c", NULL);
	commit(tx);
	tx = begin_read(store_of(state));
	assert_range(tx, "t/", "t0", NULL, "t/a=1 t/b=9 t/bb=5 t/d=4");
	kv_tx_free(tx);
}

static void
clear_and_set_again_keeps_the_later_one(void **state)
{
	struct kv_tx *tx;

	put_letters(store_of(state));
	tx = begin(store_of(state));
	put(tx, "t/b", "x");
	assert_ok(kv_clear_range(tx, STR("t/"), STR("t0")));
	put(tx, "t/c", "y");
	assert_ok(kv_clear(tx, STR("t/d")));
	assert_ok(kv_atomic(tx, KV_BYTE_MAX, STR("t/d"), STR("0")));
	assert_range(tx, "t/", "t0", NULL, "t/c=y t/d=0");
	commit(tx);
	tx = begin(store_of(state));
	assert_range(tx, "t/", "t0", NULL, "t/c=y t/d=0");
	/* Inverted and empty ranges clear nothing. */
	assert_ok(kv_clear_range(tx, STR("t0"), STR("t/")));
	assert_ok(kv_clear_range(tx, STR("t/c"), STR("t/c")));
	commit(tx);
	assert_stored(store_of(state), "t/c", "y");
}

static void
large_range_is_cleared_whole(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	char key[32];

	for (int i = 0; i < 500; i++) {
		snprintf(key, sizeof(key), "t/%03d", i);
		put(tx, key, "v");
	}
	commit(tx);
	tx = begin(store_of(state));
	assert_ok(kv_clear_range(tx, STR("t/001"), STR("t/499")));
	commit(tx);
	tx = begin_read(store_of(state));
	assert_range(tx, "t/", "t0", NULL, "t/000=v t/499=v");
	kv_tx_free(tx);
}

/* ---- Atomic operations ---- */

struct atomic_case {
	enum kv_atomic op;
	struct str old; /* NULL: absent */
	struct str operand;
	struct str expected; /* NULL: absent */
};

static const struct atomic_case atomic_cases[] = {
	{ KV_ADD, { 0 }, { "\x05\x00", 2 }, { "\x05\x00", 2 } },
	{ KV_ADD, { "\xff\x00", 2 }, { "\x01\x00", 2 }, { "\x00\x01", 2 } },
	{ KV_ADD, { "\xff", 1 }, { "\x01\x00", 2 }, { "\x00\x01", 2 } },
	{ KV_ADD, { "\xff\xff\x07", 3 }, { "\x01\x00", 2 }, { "\x00\x00", 2 } },
	{ KV_ADD, { "\x05", 1 }, { "\xff", 1 }, { "\x04", 1 } },
	{ KV_ADD, { "\x05", 1 }, { "", 0 }, { "", 0 } },
	{ KV_MAX, { 0 }, { "\x05", 1 }, { "\x05", 1 } },
	{ KV_MAX, { "\x00\x01", 2 }, { "\xff\x00", 2 }, { "\x00\x01", 2 } },
	{ KV_MAX, { "\x07", 1 }, { "\x05\x00", 2 }, { "\x07\x00", 2 } },
	{ KV_MAX, { "\x07\x09", 2 }, { "\x05", 1 }, { "\x07", 1 } },
	{ KV_MAX, { "\x07", 1 }, { "\x09", 1 }, { "\x09", 1 } },
	{ KV_MIN, { 0 }, { "\x05", 1 }, { "\x05", 1 } },
	{ KV_MIN, { "\x00\x01", 2 }, { "\xff\x00", 2 }, { "\xff\x00", 2 } },
	{ KV_MIN, { "\x02", 1 }, { "\x05\x00", 2 }, { "\x02\x00", 2 } },
	{ KV_MIN, { "\x02\x09", 2 }, { "\x05", 1 }, { "\x02", 1 } },
	{ KV_BYTE_MAX, { 0 }, { "b", 1 }, { "b", 1 } },
	{ KV_BYTE_MAX, { "ba", 2 }, { "b", 1 }, { "ba", 2 } },
	{ KV_BYTE_MAX, { "b", 1 }, { "ba", 2 }, { "ba", 2 } },
	{ KV_BYTE_MIN, { 0 }, { "b", 1 }, { "b", 1 } },
	{ KV_BYTE_MIN, { "", 0 }, { "b", 1 }, { "", 0 } },
	{ KV_BYTE_MIN, { "ba", 2 }, { "b", 1 }, { "b", 1 } },
	{ KV_COMPARE_AND_CLEAR, { "x", 1 }, { "x", 1 }, { 0 } },
	{ KV_COMPARE_AND_CLEAR, { "x", 1 }, { "xx", 2 }, { "x", 1 } },
	{ KV_COMPARE_AND_CLEAR, { 0 }, { "", 0 }, { 0 } },
	{ KV_COMPARE_AND_CLEAR, { "", 0 }, { "", 0 }, { 0 } },
};

static void
assert_cell(struct kv_tx *tx, struct str expected, size_t i)
{
	struct kv_future *f = kv_get(tx, STR("t/n"), KV_READ);
	struct str value = { 0 };
	bool present;

	assert_ok(kv_future_wait(f));
	present = kv_future_value(f, &value);
	if (present != (expected.ptr != NULL) || !str_eq(value, expected))
		fail_msg("case %zu", i);
}

/*
 * Each case four ways: over what is stored, over the transaction's own set, read before the commit
 * and after it.
 */
static void
atomic_operations_do_as_documented(void **state)
{
	for (size_t i = 0; i < sizeof(atomic_cases) / sizeof(atomic_cases[0]); i++) {
		const struct atomic_case *c = &atomic_cases[i];

		for (int own = 0; own < 2; own++) {
			struct kv_tx *tx = begin(store_of(state));

			assert_ok(kv_clear(tx, STR("t/n")));
			if (c->old.ptr)
				assert_ok(kv_set(tx, STR("t/n"), c->old));
			if (!own) {
				commit(tx);
				tx = begin(store_of(state));
			}
			assert_ok(kv_atomic(tx, c->op, STR("t/n"), c->operand));
			assert_cell(tx, c->expected, i);
			commit(tx);
			tx = begin_read(store_of(state));
			assert_cell(tx, c->expected, i);
			kv_tx_free(tx);
		}
	}
}

static void
atomic_operations_of_one_transaction_add_up(void **state)
{
	struct kv_tx *tx = begin(store_of(state));

	for (int i = 0; i < 10; i++)
		assert_ok(kv_atomic(tx, KV_ADD, STR("t/n"), STR("\x01\x00")));
	commit(tx);
	tx = begin(store_of(state));
	for (int i = 0; i < 5; i++)
		assert_ok(kv_atomic(tx, KV_ADD, STR("t/n"), STR("\x01\x00")));
	assert_cell(tx, STR("\x0f\x00"), 0);
	assert_ok(kv_atomic(tx, KV_MAX, STR("t/n"), STR("\x20\x00")));
	assert_ok(kv_atomic(tx, KV_ADD, STR("t/n"), STR("\x01\x00")));
	assert_cell(tx, STR("\x21\x00"), 1);
	commit(tx);
	tx = begin_read(store_of(state));
	assert_cell(tx, STR("\x21\x00"), 2);
	kv_tx_free(tx);
}

static void
assert_key(struct kv_tx *tx, const char *key, struct str expected)
{
	struct kv_future *f = kv_get(tx, str_from_cstr(key), KV_SNAPSHOT);
	struct str value;

	assert_ok(kv_future_wait(f));
	assert_true(kv_future_value(f, &value));
	assert_true(str_eq(value, expected));
}

static void
additions_of_one_transaction_come_to_their_sum(void **state)
{
	struct kv_tx *tx = begin(store_of(state));

	assert_ok(kv_set(tx, STR("t/old"), STR("\x10\x00")));
	commit(tx);
	tx = begin(store_of(state));
	for (int i = 0; i < 300; i++) {
		assert_ok(kv_atomic(tx, KV_ADD, STR("t/old"), STR("\x01\x00")));
		assert_ok(kv_atomic(tx, KV_ADD, STR("t/new"), STR("\x02\x00")));
		assert_ok(kv_atomic(tx, KV_ADD, STR("t/set"), STR("\x01\x00")));
		assert_ok(kv_atomic(tx, KV_ADD, STR("t/gone"), STR("\x01\x00")));
		assert_ok(kv_atomic(tx, KV_ADD, STR("t/most"), STR("\x01\x00")));
		if (i == 99) {
			assert_key(tx, "t/old", STR("\x74\x00"));
			assert_key(tx, "t/new", STR("\xc8\x00"));
			assert_ok(kv_set(tx, STR("t/set"), STR("\x00\x01")));
			assert_ok(kv_clear_range(tx, STR("t/g"), STR("t/h")));
			assert_ok(kv_atomic(tx, KV_MAX, STR("t/most"), STR("\xe8\x03")));
		}
		if (i == 199) {
			assert_key(tx, "t/set", STR("\x64\x01"));
			assert_key(tx, "t/gone", STR("\x64\x00"));
			/* Of another length, it cuts what there was. */
			assert_ok(kv_atomic(tx, KV_ADD, STR("t/new"), STR("\x01")));
		}
	}
	commit(tx);
	tx = begin(store_of(state));
	assert_key(tx, "t/old", STR("\x3c\x01"));
	assert_key(tx, "t/set", STR("\xc8\x01"));
	assert_key(tx, "t/gone", STR("\xc8\x00"));
	assert_key(tx, "t/most", STR("\xb0\x04"));
	assert_key(tx, "t/new", STR("\x59\x01"));
	kv_tx_free(tx);
}

/* ---- Versionstamps ---- */

static void
stamped_key_and_value_get_the_commits_stamp(void **state)
{
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
	struct kv_tx *tx = begin(store_of(state));
	struct kv_range range;
	struct kv_future *f;
	uint64_t version;
	uint64_t stamped = 0;

	/* Several of one transaction are told apart by the caller's two bytes. */
	assert_ok(kv_set_versionstamped_key(tx, STR("t/k..........\0\1"), 3, STR("one")));
	assert_ok(kv_set_versionstamped_key(tx, STR("t/k..........\0\2"), 3, STR("two")));
	assert_ok(kv_set_versionstamped_value(tx, STR("t/v"), STR("<..........>"), 1));
	kv_want_versionstamp(tx);
	assert_ok(kv_future_wait(kv_commit(tx)));
	assert_ok(kv_versionstamp(tx, stamp));
	assert_ok(kv_committed_version(tx, &version));
	for (int i = 0; i < 8; i++)
		stamped = stamped << 8 | stamp[i];
	assert_int_equal(stamped, version);
	kv_tx_reset(tx);

	f = kv_get_range(tx, STR("t/k"), STR("t/l"), NULL);
	assert_ok(kv_future_wait(f));
	range = kv_future_range(f);
	assert_int_equal(range.count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(range.pairs[i].key.len, 15);
		assert_memory_equal(range.pairs[i].key.ptr + 3, stamp, sizeof(stamp));
		assert_int_equal(range.pairs[i].key.ptr[14], i + 1);
	}
	f = kv_get(tx, STR("t/v"), KV_READ);
	assert_ok(kv_future_wait(f));
	assert_int_equal(f != NULL, 1);
	{
		struct str value;

		assert_true(kv_future_value(f, &value));
		assert_int_equal(value.len, 12);
		assert_int_equal(value.ptr[0], '<');
		assert_memory_equal(value.ptr + 1, stamp, sizeof(stamp));
		assert_int_equal(value.ptr[11], '>');
	}
	kv_tx_free(tx);
}

static void
stamps_ascend_and_lie_above_the_read_version(void **state)
{
	uint8_t last[KV_VERSIONSTAMP_TX_BYTES] = { 0 };
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];

	for (int i = 0; i < 20; i++) {
		struct kv_tx *tx = begin(store_of(state));
		uint64_t read;
		uint64_t committed;

		assert_ok(kv_get_read_version(tx, &read));
		put(tx, "t/a", "1");
		kv_want_versionstamp(tx);
		assert_ok(kv_future_wait(kv_commit(tx)));
		assert_ok(kv_versionstamp(tx, stamp));
		assert_ok(kv_committed_version(tx, &committed));
		assert_true(committed > read);
		assert_true(memcmp(stamp, last, sizeof(stamp)) > 0);
		memcpy(last, stamp, sizeof(stamp));
		kv_tx_reset(tx);
		/* What has been acknowledged is seen by whoever begins afterwards. */
		assert_ok(kv_get_read_version(tx, &read));
		assert_true(read >= committed);
		kv_tx_free(tx);
	}
}

static void
what_the_commit_will_stamp_is_unreadable(void **state)
{
	struct kv_tx *tx;

	put_letters(store_of(state));
	tx = begin(store_of(state));
	assert_ok(kv_set_versionstamped_value(tx, STR("t/c"), STR(".........."), 0));
	assert_int_equal(get_status(tx, STR("t/c")), STATUS_TX_UNREADABLE);
	assert_int_equal(kv_future_wait(kv_get_range(tx, STR("t/"), STR("t0"), NULL)),
			 STATUS_TX_UNREADABLE);
	/* A limit that is reached before it makes the range readable. */
	assert_range(tx, "t/", "t0", &(struct kv_range_options){ .limit = 2 }, "t/a=1 t/b=2+");
	assert_range(tx, "t/", "t0", &(struct kv_range_options){ .limit = 1, .reverse = true },
		     "t/d=4+");
	assert_ok(kv_atomic(tx, KV_ADD, STR("t/c"), STR("\1")));
	assert_int_equal(get_status(tx, STR("t/c")), STATUS_TX_UNREADABLE);
	kv_tx_free(tx);
}

/* On a cluster it stays unreadable. */
static void
later_write_makes_it_readable_again(void **state)
{
	struct kv_tx *tx;

	put_letters(store_of(state));
	tx = begin(store_of(state));
	assert_ok(kv_set_versionstamped_value(tx, STR("t/c"), STR(".........."), 0));
	put(tx, "t/c", "x");
	assert_get(tx, "t/c", "x");
	assert_range(tx, "t/", "t0", NULL, "t/a=1 t/b=2 t/c=x t/d=4");
	kv_tx_free(tx);
}

static void
where_a_stamped_key_may_come_to_lie_is_unreadable(void **state)
{
	const struct kv_range_options reverse = { .limit = 1, .reverse = true };
	struct kv_tx *tx;

	put_letters(store_of(state));
	tx = begin(store_of(state));
	assert_get(tx, "t/a", "1");
	assert_ok(kv_set_versionstamped_key(tx, STR("t/bb.........."), 4, STR("v")));
	assert_int_equal(get_status(tx, STR("t/bb\x7f")), STATUS_TX_UNREADABLE);
	assert_get(tx, "t/b", "2");
	assert_get(tx, "t/bc", NULL);
	assert_int_equal(kv_future_wait(kv_get_range(tx, STR("t/"), STR("t0"), NULL)),
			 STATUS_TX_UNREADABLE);
	assert_range(tx, "t/bc", "t0", NULL, "t/c=3 t/d=4");
	assert_range(tx, "t/", "t/bb", NULL, "t/a=1 t/b=2");
	assert_range(tx, "t/", "t0", &(struct kv_range_options){ .limit = 2 }, "t/a=1 t/b=2+");
	assert_range(tx, "t/", "t0", &reverse, "t/d=4+");
	/* A range clear behind it removes it. */
	assert_ok(kv_clear_range(tx, STR("t/bb"), STR("t/bc")));
	assert_range(tx, "t/", "t0", NULL, "t/a=1 t/b=2 t/c=3 t/d=4");
	if (test_store_is_cluster()) {
		/* Whoever has met the unreadable there cannot commit. */
		assert_int_equal(try_commit(tx), STATUS_TX_UNREADABLE);
		return;
	}
	commit(tx);
	tx = begin_read(store_of(state));
	assert_range(tx, "t/", "t0", NULL, "t/a=1 t/b=2 t/c=3 t/d=4");
	kv_tx_free(tx);
}

/* An index by stamp: the old entry is read and cleared where the new one is going to be. */
static void
entries_stamped_earlier_stay_readable(void **state)
{
	struct kv_range range;
	struct kv_future *f;
	struct kv_tx *tx = begin(store_of(state));

	assert_ok(kv_set_versionstamped_key(tx, STR("t/s.........."), 3, STR("old")));
	commit(tx);
	put_now(store_of(state), "t/a",
		"1"); /* what was stamped at the read version itself may not */
	tx = begin(store_of(state));
	assert_get(tx, "t/x", NULL);
	assert_ok(kv_set_versionstamped_key(tx, STR("t/s.........."), 3, STR("new")));
	f = kv_get_range(tx, STR("t/s"), STR("t/t"), &(struct kv_range_options){ .limit = 1 });
	assert_ok(kv_future_wait(f));
	range = kv_future_range(f);
	assert_int_equal(range.count, 1);
	assert_ok(kv_clear(tx, range.pairs[0].key));
	commit(tx);
	tx = begin_read(store_of(state));
	f = kv_get_range(tx, STR("t/s"), STR("t/t"), NULL);
	assert_ok(kv_future_wait(f));
	range = kv_future_range(f);
	assert_int_equal(range.count, 1);
	assert_true(str_eq(range.pairs[0].value, STR("new")));
	kv_tx_free(tx);
}

/* ---- The metadata version ---- */

static void
metadata_version_changes_with_each_touch(void **state)
{
	uint8_t before[KV_VERSIONSTAMP_TX_BYTES];
	uint8_t after[KV_VERSIONSTAMP_TX_BYTES];
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
	struct kv_tx *old = begin_read(store_of(state));
	struct kv_tx *tx = begin(store_of(state));

	assert_ok(kv_get_metadata_version(old, before));
	assert_ok(kv_touch_metadata_version(tx));
	assert_int_equal(kv_get_metadata_version(tx, after), STATUS_TX_UNREADABLE);
	kv_want_versionstamp(tx);
	assert_ok(kv_future_wait(kv_commit(tx)));
	assert_ok(kv_versionstamp(tx, stamp));
	kv_tx_reset(tx);
	assert_ok(kv_get_metadata_version(tx, after));
	assert_memory_equal(after, stamp, sizeof(stamp));
	assert_int_equal(kv_tx_stats(tx).keys_read + kv_tx_stats(tx).round_trips, 0);
	/* The other transaction reads at its own version. */
	assert_ok(kv_get_metadata_version(old, after));
	assert_memory_equal(after, before, sizeof(before));
	kv_tx_free(old);
	kv_tx_free(tx);
	put_now(store_of(state), "t/a", "1");
	tx = begin_read(store_of(state));
	assert_ok(kv_get_metadata_version(tx, after));
	assert_memory_equal(after, stamp, sizeof(stamp));
	kv_tx_free(tx);
}

static void
reading_the_metadata_version_conflicts_with_a_touch(void **state)
{
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct kv_tx *reader = begin(store_of(state));
	struct kv_tx *toucher = begin(store_of(state));

	assert_ok(kv_get_metadata_version(reader, version));
	put(reader, "t/a", "1");
	assert_ok(kv_touch_metadata_version(toucher));
	commit(toucher);
	assert_int_equal(try_commit(reader), STATUS_TX_CONFLICT);
}

/* ---- Statistics ---- */

static void
reads_issued_together_share_a_round_trip(void **state)
{
	struct kv_future *f[4];
	struct kv_tx_stats stats;
	struct kv_tx *tx;

	put_letters(store_of(state));
	tx = begin_read(store_of(state));
	f[0] = kv_get(tx, STR("t/a"), KV_READ);
	f[1] = kv_get_range(tx, STR("t/b"), STR("t/d"), NULL);
	f[2] = kv_get(tx, STR("t/x"), KV_SNAPSHOT);
	assert_int_equal(kv_tx_stats(tx).round_trips, 0);
	assert_ok(kv_future_wait(f[0]));
	assert_int_equal(kv_tx_stats(tx).round_trips, 1);
	assert_ok(kv_future_wait(f[1]));
	f[3] = kv_get(tx, STR("t/d"), KV_READ);
	assert_ok(kv_future_wait(f[2]));
	assert_ok(kv_future_wait(f[2]));
	assert_int_equal(kv_tx_stats(tx).round_trips, 1);
	assert_ok(kv_future_wait(f[3]));
	stats = kv_tx_stats(tx);
	assert_int_equal(stats.round_trips, 2);
	assert_int_equal(stats.reads, 4);
	assert_int_equal(stats.keys_read, 4);
	assert_int_equal(stats.bytes_read, 16);
	kv_tx_free(tx);
}

static void
writes_are_counted_when_they_are_accepted(void **state)
{
	struct kv_tx *tx = begin(store_of(state));
	struct kv_tx_stats stats;

	put(tx, "t/a", "12");
	assert_ok(kv_atomic(tx, KV_ADD, STR("t/b"), STR("1")));
	assert_ok(kv_clear(tx, STR("t/c")));
	assert_ok(kv_clear_range(tx, STR("t/d"), STR("t/e")));
	assert_int_equal(kv_set(tx, STR("\xff"), STR("")), STATUS_INVALID);
	stats = kv_tx_stats(tx);
	assert_int_equal(stats.sets, 2);
	assert_int_equal(stats.clears, 2);
	assert_int_equal(stats.bytes_written, 5 + 4 + 3 + 6);
	kv_tx_free(tx);
}

static void
store_tells_about_commits(void **state)
{
	struct kv_store_stats before = kv_store_stats(store_of(state));
	struct kv_store_stats after;
	struct kv_tx *tx;
	uint64_t bytes;

	put_now(store_of(state), "t/a", "1");
	tx = begin(store_of(state));
	assert_get(tx, "t/a", "1");
	put(tx, "t/a", "2");
	put_now(store_of(state), "t/a", "3");
	assert_int_equal(try_commit(tx), STATUS_TX_CONFLICT);
	after = kv_store_stats(store_of(state));
	assert_int_equal(after.commits - before.commits, 2);
	assert_int_equal(after.conflicts - before.conflicts, 1);
	assert_ok(kv_estimate_bytes(store_of(state), STR("t/"), STR("t0"), &bytes));
	assert_ok(kv_estimate_bytes(store_of(state), STR("t0"), STR("t/"), &bytes));
	assert_int_equal(bytes, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_url_is_invalid),
		cmocka_unit_test(absent_client_library_is_unsupported),
		T(committed_value_is_read_back),
		T(empty_value_is_not_absence),
		T(uncommitted_write_is_seen_by_its_transaction_alone),
		T(read_version_is_fixed_by_the_first_read),
		T(reset_transaction_is_as_new),
		T(answers_are_counted_while_they_are_held),
		T(value_outlives_later_reads_and_writes),
		T(store_in_a_cluster_has_a_prefix_of_few_characters),
		T(keys_over_the_limit_are_refused),
		T(largest_key_and_value_are_stored),
		T(set_without_conflict_range_is_like_any_other),
		T(system_keys_are_refused),
		T(read_only_transaction_refuses_every_write),
		T(stamp_that_does_not_fit_is_invalid),
		T(committed_transaction_can_only_be_asked_reset_or_freed),
		T(commit_without_writes_has_no_version),
		T(cancelled_transaction_answers_nothing_but_that),
		T(range_has_its_beginning_and_not_its_end),
		T(range_limits_end_an_answer_early),
		T(range_sees_own_writes),
		T(range_sees_own_atomic_operations),
		T(clear_and_set_again_keeps_the_later_one),
		T(large_range_is_cleared_whole),
		T(atomic_operations_do_as_documented),
		T(atomic_operations_of_one_transaction_add_up),
		T(additions_of_one_transaction_come_to_their_sum),
		T(stamped_key_and_value_get_the_commits_stamp),
		T(stamps_ascend_and_lie_above_the_read_version),
		T(what_the_commit_will_stamp_is_unreadable),
		T(where_a_stamped_key_may_come_to_lie_is_unreadable),
		T(entries_stamped_earlier_stay_readable),
		T(metadata_version_changes_with_each_touch),
		T(reading_the_metadata_version_conflicts_with_a_touch),
		T(reads_issued_together_share_a_round_trip),
		T(writes_are_counted_when_they_are_accepted),
		T(store_tells_about_commits),
		/* Not on a cluster. */
		T(later_write_makes_it_readable_again),
	};

	return _cmocka_run_group_tests("tests", tests,
				       test_store_cases(tests, sizeof(tests) / sizeof(tests[0]), 1),
				       NULL, NULL);
}
