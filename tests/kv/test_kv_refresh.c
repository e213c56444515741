/* Transactions that move to a later version: what they read then, and what may commit. */
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv/engine.h"
#include "kv/refresh.h"

enum {
	THREADS = 4,
	ROUNDS = 200,
	PLACES = 3,
	NUMBER_BYTES = 16,
};

static void
sees_what_others_have_written_and_its_own(void **state)
{
	struct kv_tx *tx = begin(store_of(state));

	put_now(store_of(state), "t/hot", "1");
	assert_get(tx, "t/cold", NULL);
	assert_range(tx, "t/c", "t/d", NULL, "");
	put(tx, "t/mine", "m");
	assert_get(tx, "t/mine", "m");
	put_now(store_of(state), "t/hot", "2");
	assert_get(tx, "t/late", NULL);
	assert_true(kv_refresh(tx));
	assert_get(tx, "t/hot", "2");
	assert_get(tx, "t/mine", "m");
	assert_range(tx, "t/h", "t/n", NULL, "t/hot=2 t/mine=m");
	put(tx, "t/hot", "3");
	commit(tx);
	assert_stored(store_of(state), "t/hot", "3");
	assert_stored(store_of(state), "t/mine", "m");
}

static void
moves_whatever_was_written_elsewhere_before_and_after_its_first_read(void **state)
{
	struct kv_tx *tx = begin(store_of(state));

	/* Nothing was read: its first read is at the newest version in any case. */
	assert_true(kv_refresh(tx));
	put_now(store_of(state), "t/a", "1");
	assert_get(tx, "t/a", "1");
	/* Nothing was written since. */
	assert_true(kv_refresh(tx));
	assert_true(kv_refresh(tx));
	for (int i = 0; i < 10; i++) {
		char value[] = { (char)('0' + i), 0 };

		put_now(store_of(state), "t/b", value);
		assert_true(kv_refresh(tx));
	}
	assert_get(tx, "t/b", "9");
	put(tx, "t/b", "x");
	commit(tx);
}

/* A key, a range without the key that comes, and a range that another one clears. */
static void
stays_where_something_that_it_has_read_has_changed(void **state)
{
	struct kv_store *store = store_of(state);
	struct kv_tx *key = begin(store), *range = begin(store), *cleared = begin(store), *other;

	put_now(store, "t/r/1", "1");
	assert_get(key, "t/a", NULL);
	assert_range(range, "t/b", "t/c", NULL, "");
	assert_get(cleared, "t/r/1", "1");
	put_now(store, "t/a", "1");
	put_now(store, "t/bb", "1");
	other = begin(store);
	assert_ok(kv_clear_range(other, STR("t/r/"), STR("t/r0")));
	commit(other);
	put_now(store, "t/z", "1");
	assert_false(kv_refresh(key));
	assert_false(kv_refresh(range));
	assert_false(kv_refresh(cleared));
	/* They go on reading what was there. */
	assert_get(key, "t/z", NULL);
	assert_get(key, "t/a", NULL);
	assert_range(range, "t/b", "t/c", NULL, "");
	assert_get(cleared, "t/r/1", "1");
	put(key, "t/k", "1");
	put(range, "t/l", "1");
	assert_int_equal(try_commit(key), STATUS_TX_CONFLICT);
	assert_int_equal(try_commit(range), STATUS_TX_CONFLICT);
	kv_tx_free(cleared);
}

static void
snapshot_reads_do_not_hold_it_back(void **state)
{
	struct kv_tx *tx = begin(store_of(state));

	assert_ok(kv_future_wait(kv_get(tx, STR("t/a"), KV_SNAPSHOT)));
	put_now(store_of(state), "t/a", "1");
	assert_true(kv_refresh(tx));
	assert_get(tx, "t/a", "1");
	kv_tx_free(tx);
}

/* What was read before it has moved is judged from there on. */
static void
what_changes_behind_it_is_a_conflict(void **state)
{
	struct kv_tx *tx = begin(store_of(state));

	assert_get(tx, "t/a", NULL);
	put_now(store_of(state), "t/b", "1");
	assert_true(kv_refresh(tx));
	put_now(store_of(state), "t/a", "1");
	assert_false(kv_refresh(tx));
	put(tx, "t/c", "1");
	assert_int_equal(try_commit(tx), STATUS_TX_CONFLICT);
}

static void
touched_metadata_holds_it_back(void **state)
{
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct kv_tx *tx = begin(store_of(state)), *other = begin(store_of(state));

	assert_ok(kv_get_metadata_version(tx, version));
	assert_ok(kv_touch_metadata_version(other));
	commit(other);
	assert_false(kv_refresh(tx));
	kv_tx_free(tx);
}

static void
an_engine_s_table_says_whether_it_can(void **state)
{
	struct kv_engine other = kv_engine_embedded;
	struct kv_tx *tx = begin(store_of(state));

	tx->engine = &other;
	assert_get(tx, "t/a", NULL);
	put_now(store_of(state), "t/b", "1");
	assert_true(kv_refresh(tx));
	assert_get(tx, "t/b", "1");
	other.refresh = NULL;
	assert_false(kv_refresh(tx));
	kv_tx_free(tx);
}

static void
whoever_only_reads_or_has_read_much_stays(void **state)
{
	char key[KV_LIMIT_KEY_BYTES];
	struct kv_tx *reader = begin_read(store_of(state)), *tx = begin(store_of(state));

	assert_get(reader, "t/a", NULL);
	assert_false(kv_refresh(reader));
	kv_tx_free(reader);
	memset(key, 'k', sizeof(key));
	for (size_t i = 0; i <= KV_REFRESH_BYTES / sizeof(key); i++)
		assert_ok(kv_future_wait(kv_get(tx, str_of(key, sizeof(key) - i), KV_READ)));
	assert_false(kv_refresh(tx));
	kv_tx_free(tx);
}

/* Where a read has passed over cleared keys, others may come later. */
static void
what_reads_have_noted_of_cleared_keys_holds_it_back(void **state)
{
	const struct kv_range_options snapshot = { .mode = KV_SNAPSHOT };
	struct kv_tx *tx;
	char key[] = "t/q/a";

	for (char c = 'a'; c < 'z'; c++) {
		key[4] = c;
		put_now(store_of(state), key, "1");
	}
	tx = begin(store_of(state));
	for (char c = 'a'; c < 'z'; c++) {
		key[4] = c;
		assert_ok(kv_clear(tx, str_from_cstr(key)));
	}
	assert_range(tx, "t/q/", "t/q0", &snapshot, "");
	put_now(store_of(state), "t/q/bb", "new");
	if (kv_refresh(tx)) {
		assert_range(tx, "t/q/", "t/q0", &snapshot, "t/q/bb=new");
		assert_get(tx, "t/q/bb", "new");
	}
	kv_tx_free(tx);
}

/* ---- Many at once ---- */

static int
number_of(struct kv_tx *tx, const char *key)
{
	struct kv_future *f = kv_get(tx, str_from_cstr(key), KV_READ);
	char text[NUMBER_BYTES] = "0";
	struct str value;

	assert_ok(kv_future_wait(f));
	if (kv_future_value(f, &value)) {
		assert_true(value.len < sizeof(text));
		memcpy(text, value.ptr, value.len);
		text[value.len] = '\0';
	}
	return atoi(text);
}

static void
number_put(struct kv_tx *tx, const char *key, int n)
{
	char text[NUMBER_BYTES];

	snprintf(text, sizeof(text), "%d", n);
	put(tx, key, text);
}

/* Moves one from place to place, reading each at another version. The sum has to stay zero. */
static void *
move_ones(void *arg)
{
	struct kv_store *store = arg;
	unsigned random = (unsigned)(uintptr_t)&store;

	for (int done = 0; done < ROUNDS;) {
		char from[] = "t/0", to[] = "t/1";
		struct kv_tx *tx = begin(store);

		from[2] = (char)('0' + rand_r(&random) % PLACES);
		to[2] = (char)('0' + rand_r(&random) % PLACES);
		number_put(tx, from, number_of(tx, from) - 1);
		(void)kv_refresh(tx);
		number_put(tx, to, number_of(tx, to) + 1);
		(void)kv_refresh(tx);
		done += try_commit(tx) == STATUS_OK;
	}
	return NULL;
}

static void
no_write_is_lost_among_many(void **state)
{
	struct kv_store *store = store_of(state);
	pthread_t threads[THREADS];
	struct kv_tx *tx;
	int sum = 0;

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, move_ones, store), 0);
	for (int i = 0; i < THREADS; i++) {
		tx = begin(store);
		for (int place = 0; place < PLACES; place++) {
			char key[] = { 't', '/', (char)('0' + place), 0 };

			/* Whatever is read before and behind a move is one state. */
			sum += number_of(tx, key);
			(void)kv_refresh(tx);
		}
		assert_int_equal(sum, 0);
		kv_tx_free(tx);
		pthread_join(threads[i], NULL);
	}
	tx = begin(store);
	for (int place = 0; place < PLACES; place++) {
		char key[] = { 't', '/', (char)('0' + place), 0 };

		sum += number_of(tx, key);
	}
	assert_int_equal(sum, 0);
	kv_tx_free(tx);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(sees_what_others_have_written_and_its_own),
		T(moves_whatever_was_written_elsewhere_before_and_after_its_first_read),
		T(stays_where_something_that_it_has_read_has_changed),
		T(snapshot_reads_do_not_hold_it_back),
		T(what_changes_behind_it_is_a_conflict),
		T(touched_metadata_holds_it_back),
		T(an_engine_s_table_says_whether_it_can),
		T(whoever_only_reads_or_has_read_much_stays),
		T(what_reads_have_noted_of_cleared_keys_holds_it_back),
		T(no_write_is_lost_among_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
