/* Transactions that promise to read nothing once they have written (kv/reads_first.h). */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "kv/reads_first.h"

enum {
	THREADS = 4,
	ROUNDS = 40,
	PLACES = 3,
	ALL = 30, /* together in all places, from the beginning to the end */
	NUMBER_BYTES = 16,
};

static struct kv_tx *
begin_promising(struct kv_store *store)
{
	struct kv_tx *tx = begin(store);

	kv_tx_reads_first(tx);
	return tx;
}

/* ---- Kept ---- */

static void
what_is_read_first_and_written_then_is_as_without(void **state)
{
	struct kv_store *store = store_of(state);
	struct kv_tx *tx;

	put_now(store, "t/a", "1");
	put_now(store, "t/r/1", "x");
	put_now(store, "t/r/2", "y");
	tx = begin_promising(store);
	assert_get(tx, "t/a", "1");
	assert_get(tx, "t/none", NULL);
	assert_range(tx, "t/r/", "t/r0", NULL, "t/r/1=x t/r/2=y");
	put(tx, "t/a", "2");
	put(tx, "t/a", "3");
	assert_ok(kv_clear(tx, STR("t/r/1")));
	assert_ok(kv_set_no_conflict(tx, STR("t/n/1"), STR("n")));
	assert_ok(kv_add_write_conflict_range(tx, STR("t/n/"), STR("t/n0")));
	assert_ok(kv_atomic(tx, KV_ADD, STR("t/sum"), STR("\1")));
	assert_ok(kv_atomic(tx, KV_ADD, STR("t/sum"), STR("\1")));
	assert_ok(kv_clear_range(tx, STR("t/c/"), STR("t/c0")));
	put(tx, "t/c/1", "new");
	commit(tx);
	assert_stored(store, "t/a", "3");
	assert_stored(store, "t/r/1", NULL);
	assert_stored(store, "t/r/2", "y");
	assert_stored(store, "t/n/1", "n");
	assert_stored(store, "t/sum", "\2");
	assert_stored(store, "t/c/1", "new");
}

static void
the_stamp_is_that_of_the_commit(void **state)
{
	struct str template = STR("t/s/0123456789");
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
	struct kv_tx *tx = begin_promising(store_of(state));
	struct kv_range range;
	struct kv_future *f;

	kv_want_versionstamp(tx);
	assert_ok(kv_set_versionstamped_key(tx, template, 4, STR("v")));
	assert_ok(kv_future_wait(kv_commit(tx)));
	assert_ok(kv_versionstamp(tx, stamp));
	kv_tx_free(tx);
	tx = begin_read(store_of(state));
	f = kv_get_range(tx, STR("t/s/"), STR("t/s0"), NULL);
	assert_ok(kv_future_wait(f));
	range = kv_future_range(f);
	assert_int_equal(range.count, 1);
	assert_memory_equal(range.pairs[0].key.ptr + 4, stamp, sizeof(stamp));
	kv_tx_free(tx);
}

static enum status
status_behind(struct kv_store *store, struct kv_tx *tx, const char *changed)
{
	put(tx, "t/mine", "m");
	put_now(store, changed, "changed");
	return try_commit(tx);
}

static void
what_it_has_read_conflicts_as_without(void **state)
{
	const struct kv_range_options last = { .limit = 1, .reverse = true };
	const struct kv_range_options snapshot = { .mode = KV_SNAPSHOT };
	struct kv_store *store = store_of(state);
	struct kv_tx *tx;

	tx = begin_promising(store);
	assert_get(tx, "t/k", NULL);
	assert_int_equal(status_behind(store, tx, "t/k"), STATUS_TX_CONFLICT);
	tx = begin_promising(store);
	assert_range(tx, "t/r/", "t/r0", NULL, "");
	assert_int_equal(status_behind(store, tx, "t/r/1"), STATUS_TX_CONFLICT);
	tx = begin_promising(store);
	assert_range(tx, "t/r/", "t/r0", &last, "t/r/1=changed+");
	assert_int_equal(status_behind(store, tx, "t/r/2"), STATUS_TX_CONFLICT);
	tx = begin_promising(store);
	assert_range(tx, "t/r/", "t/r0", &last, "t/r/2=changed+");
	assert_int_equal(status_behind(store, tx, "t/r/0"), STATUS_OK);
	tx = begin_promising(store);
	assert_range(tx, "t/q/", "t/q0", &snapshot, "");
	assert_int_equal(status_behind(store, tx, "t/q/1"), STATUS_OK);
	tx = begin_promising(store);
	assert_ok(kv_add_read_conflict_range(tx, STR("t/q/"), STR("t/q0")));
	assert_get(tx, "t/k", "changed");
	assert_int_equal(status_behind(store, tx, "t/q/2"), STATUS_TX_CONFLICT);
	tx = begin_promising(store);
	assert_get(tx, "t/k", "changed");
	assert_int_equal(status_behind(store, tx, "t/elsewhere"), STATUS_OK);
}

/* ---- Broken ---- */

static void
a_read_after_a_write_fails_where_the_answer_would_lack_it(void **state)
{
	struct kv_store *store = store_of(state);
	enum status expected = kv_is_shared(store) ? STATUS_TX_CONFLICT : STATUS_OK;
	struct kv_tx *tx = begin_promising(store);

	put(tx, "t/a", "1");
	assert_int_equal(kv_future_wait(kv_get(tx, STR("t/a"), KV_READ)), expected);
	/* Nothing is committed that was decided without an answer. */
	assert_int_equal(try_commit(tx), expected);
	assert_stored(store, "t/a", expected == STATUS_OK ? "1" : NULL);
}

static void
so_does_a_range_and_a_watch(void **state)
{
	struct kv_store *store = store_of(state);
	enum status expected = kv_is_shared(store) ? STATUS_TX_CONFLICT : STATUS_OK;
	struct kv_tx *tx = begin_promising(store);
	struct kv_future *watch;

	assert_ok(kv_clear(tx, STR("t/a")));
	assert_int_equal(kv_future_wait(kv_get_range(tx, STR("t/"), STR("t0"), NULL)), expected);
	kv_tx_free(tx);
	for (size_t i = 0; i < KV_DOUBTED && kv_is_shared(store); i++)
		kv_tx_free(begin_promising(store));
	tx = begin_promising(store);
	watch = kv_watch(tx, STR("t/w"));
	if (kv_is_shared(store))
		assert_int_equal(kv_future_wait(watch), STATUS_TX_CONFLICT);
	kv_future_free(watch);
	kv_tx_free(tx);
}

struct looking_back {
	size_t attempts;
};

static enum status
look_back_body(struct kv_tx *tx, void *arg)
{
	struct looking_back *l = arg;
	struct kv_future *f;
	struct str value;

	l->attempts++;
	kv_tx_reads_first(tx);
	TRY(kv_set(tx, STR("t/back"), STR("mine")));
	f = kv_get(tx, STR("t/back"), KV_READ);
	TRY(kv_future_wait(f));
	assert_true(kv_future_value(f, &value) && str_eq(value, STR("mine")));
	return STATUS_OK;
}

static void
the_next_attempt_sees_its_writes_and_so_do_the_next_transactions(void **state)
{
	struct kv_store *store = store_of(state);
	size_t first = kv_is_shared(store) ? 2 : 1;
	struct looking_back l = { 0 };

	assert_ok(kv_run(store, look_back_body, &l, NULL, NULL));
	assert_int_equal(l.attempts, first);
	for (size_t i = 0; i < KV_DOUBTED; i++) {
		l.attempts = 0;
		assert_ok(kv_run(store, look_back_body, &l, NULL, NULL));
		assert_int_equal(l.attempts, 1);
	}
	l.attempts = 0;
	assert_ok(kv_run(store, look_back_body, &l, NULL, NULL));
	assert_int_equal(l.attempts, first);
}

static void
a_reset_transaction_has_promised_nothing(void **state)
{
	struct kv_tx *tx = begin_promising(store_of(state));

	assert_get(tx, "t/a", NULL);
	put(tx, "t/a", "1");
	kv_tx_reset(tx);
	assert_get(tx, "t/a", NULL);
	put(tx, "t/a", "2");
	assert_get(tx, "t/a", "2");
	commit(tx);
	assert_stored(store_of(state), "t/a", "2");
}

/* ---- Many at once ---- */

struct mover {
	struct kv_store *store;
	unsigned number;
	unsigned round;
};

static enum status
place_read(struct kv_future *f, unsigned *ret)
{
	char text[NUMBER_BYTES] = { 0 };
	struct str value;

	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value) || value.len >= sizeof(text))
		return STATUS_CORRUPT;
	memcpy(text, value.ptr, value.len);
	*ret = (unsigned)strtoul(text, NULL, 10);
	return STATUS_OK;
}

/* Moves one from a place to another. */
static enum status
move_body(struct kv_tx *tx, void *arg)
{
	const struct mover *m = arg;
	struct kv_future *asked[2];
	char keys[2][NUMBER_BYTES];
	unsigned have[2];

	kv_tx_reads_first(tx);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(keys[i], sizeof(keys[i]), "t/%u", (m->number + m->round + i) % PLACES);
		asked[i] = kv_get(tx, str_from_cstr(keys[i]), KV_READ);
	}
	for (unsigned i = 0; i < 2; i++)
		TRY(place_read(asked[i], &have[i]));
	if (have[0] == 0)
		return STATUS_OK;
	have[0]--;
	have[1]++;
	for (unsigned i = 0; i < 2; i++) {
		char text[NUMBER_BYTES];

		snprintf(text, sizeof(text), "%u", have[i]);
		TRY(kv_set(tx, str_from_cstr(keys[i]), str_from_cstr(text)));
	}
	return STATUS_OK;
}

static void *
move_many(void *arg)
{
	struct mover *m = arg;

	for (m->round = 0; m->round < ROUNDS; m->round++)
		if (kv_run(m->store, move_body, m, NULL, NULL) != STATUS_OK)
			return arg; /* it has failed */
	return NULL;
}

static void
nothing_is_lost_among_many(void **state)
{
	struct kv_store *store = store_of(state);
	struct mover movers[THREADS];
	pthread_t threads[THREADS];
	struct kv_tx *tx;
	unsigned sum = 0;
	void *failed;

	for (unsigned i = 0; i < PLACES; i++) {
		char key[NUMBER_BYTES];

		snprintf(key, sizeof(key), "t/%u", i);
		put_now(store, key, "10");
	}
	for (unsigned i = 0; i < THREADS; i++) {
		movers[i] = (struct mover){ .store = store, .number = i };
		assert_int_equal(pthread_create(&threads[i], NULL, move_many, &movers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	tx = begin_read(store);
	for (unsigned i = 0; i < PLACES; i++) {
		char key[NUMBER_BYTES];
		unsigned have;

		snprintf(key, sizeof(key), "t/%u", i);
		assert_ok(place_read(kv_get(tx, str_from_cstr(key), KV_READ), &have));
		sum += have;
	}
	kv_tx_free(tx);
	assert_int_equal(sum, ALL);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_is_read_first_and_written_then_is_as_without),
		TEST(the_stamp_is_that_of_the_commit),
		TEST(what_it_has_read_conflicts_as_without),
		TEST(a_read_after_a_write_fails_where_the_answer_would_lack_it),
		TEST(so_does_a_range_and_a_watch),
		TEST(the_next_attempt_sees_its_writes_and_so_do_the_next_transactions),
		TEST(a_reset_transaction_has_promised_nothing),
		TEST(nothing_is_lost_among_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
