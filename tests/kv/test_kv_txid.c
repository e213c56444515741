/*
 * Transaction ids in the store: who clears them, and when. Every writing transaction leaves one
 * where results can be unknown, which is so for the faulty engine, also when it injects nothing.
 */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "kv/faulty/faulty.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "kv/txid.h"

static struct fixture f;
static struct kv_store *store;

static void
open_with(const char *settings)
{
	char url[sizeof(f.dir) + 128];

	if (!f.dir[0])
		fixture_make_dir(&f);
	snprintf(url, sizeof(url), "faulty:%s,seed=%llu:embedded:%s", settings,
		 (unsigned long long)test_seed(), f.dir);
	store = fixture_open(url, (struct kv_options){ .create = true, .no_sync = true });
}

static int
teardown(void **state)
{
	(void)state;
	kv_close(store);
	store = NULL;
	if (f.dir[0])
		fixture_remove_dir(&f);
	f.dir[0] = '\0';
	return 0;
}

static void
sleep_ms(uint64_t ms)
{
	struct event never;

	event_init(&never);
	event_wait(&never, clock_after_ms(ms));
}

/* All ids; the inner store has no faults that could hide some. */
static size_t
count_ids(void)
{
	struct kv_tx *tx = begin_read(kv_faulty_inner(store));
	struct txid_range range;
	struct kv_future *ids;
	size_t n;

	assert_ok(txid_range_init(&range));
	ids = kv_get_range(tx, range.begin, range.end, NULL);
	assert_ok(kv_future_wait(ids));
	assert_false(kv_future_range(ids).more);
	n = kv_future_range(ids).count;
	kv_tx_free(tx);
	return n;
}

static enum status
set_one(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return kv_set(tx, STR("t/a"), STR("1"));
}

static void
write_often(int times)
{
	for (int i = 0; i < times; i++)
		assert_ok(kv_run(store, set_one, NULL, NULL, NULL));
}

/* ---- By their owner ---- */

static void
later_transactions_clear_the_ids_of_earlier_ones(void **state)
{
	(void)state;
	open_with("rate=0,delay=0,watch=0");
	write_often(3000);
	sleep_ms(TXIDS_SPAN_MS + 50);
	/* The first of these clears what the 3,000 have left, and leaves its own. */
	write_often(2);
	assert_in_range(count_ids(), 1, 2);
}

static void
ids_are_cleared_when_nobody_writes(void **state)
{
	(void)state;
	open_with("rate=0,delay=0,watch=0");
	write_often(100);
	assert_ok(kv_txids_clear(store, NULL));
	sleep_ms(TXIDS_SPAN_MS + 50);
	assert_ok(kv_txids_clear(store, NULL));
	assert_int_equal(count_ids(), 0);
	/* The clearing leaves none itself, and there is nothing more to do. */
	assert_ok(kv_txids_clear(store, NULL));
	assert_int_equal(count_ids(), 0);
}

static void
closing_a_store_leaves_no_id(void **state)
{
	(void)state;
	open_with("rate=0,delay=0,watch=0");
	write_often(100);
	assert_true(count_ids() > 0);
	kv_close(store);
	open_with("rate=0,delay=0,watch=0");
	assert_int_equal(count_ids(), 0);
}

/* Its span waits for it; the ids of others are cleared meanwhile. */
static void
id_of_a_run_under_way_stays(void **state)
{
	struct kv_running *running;

	(void)state;
	open_with("rate=0,delay=0,watch=0");
	assert_ok(kv_run_begin(store, set_one, NULL, &running, NULL));
	write_often(10);
	sleep_ms(TXIDS_SPAN_MS + 50);
	write_often(10);
	sleep_ms(TXIDS_SPAN_MS + 50);
	assert_ok(kv_txids_clear(store, NULL));
	assert_int_equal(count_ids(), 11);
	assert_ok(kv_run_end(running, NULL));
	assert_ok(kv_txids_clear(store, NULL));
	assert_int_equal(count_ids(), 0);
}

static enum status
fail_body(struct kv_tx *tx, void *arg)
{
	TRY(kv_set(tx, STR("t/a"), STR("1")));
	++*(int *)arg;
	return *(int *)arg == 1 ? STATUS_TX_CONFLICT : STATUS_NOT_FOUND;
}

static void
run_that_fails_holds_up_nothing(void **state)
{
	int runs = 0;

	(void)state;
	open_with("rate=0,delay=0,watch=0");
	assert_int_equal(kv_run(store, fail_body, &runs, NULL, NULL), STATUS_NOT_FOUND);
	write_often(1);
	sleep_ms(TXIDS_SPAN_MS + 50);
	assert_ok(kv_txids_clear(store, NULL));
	assert_int_equal(count_ids(), 0);
}

/* A clearing whose commit has failed, or ended without anybody knowing how, is done again. */
static void
ids_are_cleared_in_spite_of_faults(void **state)
{
	(void)state;
	open_with("rate=0.4,delay=0.2,watch=0");
	for (int i = 0; i < 3; i++) {
		write_often(50);
		sleep_ms(TXIDS_SPAN_MS + 50);
		write_often(50);
	}
	/* At most those of the last span and of the last writers are left. */
	assert_in_range(count_ids(), 1, 100);
	sleep_ms(TXIDS_SPAN_MS + 50);
	assert_ok(kv_txids_clear(store, NULL));
	assert_int_equal(count_ids(), 0);
}

/* ---- By the sweep ---- */

static void
put_id(struct kv_tx *tx, int n, uint64_t ms, uint64_t format, bool with_format)
{
	static const uint8_t stamp[KV_VERSIONSTAMP_BYTES];
	struct buf key AUTO(buf_release) = BUF_INIT(64), value AUTO(buf_release) = BUF_INIT(64);
	char id[32];

	/* Owners of any bytes: the sweep begins anywhere. */
	snprintf(id, sizeof(id), "%c%d", (char)(n * 37), n);
	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_TXIDS);
	tuple_put_bytes(&key, str_of(id, 1 + strlen(id + 1)));
	tuple_put_u64(&value, ms);
	(void)tuple_put_versionstamp(&value, stamp);
	if (with_format)
		tuple_put_u64(&value, format);
	assert_ok(buf_status(&key));
	assert_ok(kv_set(tx, buf_str(&key), buf_str(&value)));
}

static void
sweep_keeps_pace_with_what_dead_owners_have_left(void **state)
{
	enum {
		OLD = 25000,
		YOUNG = 50,
	};
	uint64_t now_ms = clock_wall_ms();
	struct kv_tx *tx;
	bool more = true;
	int calls = 0;

	(void)state;
	open_with("rate=0,delay=0,watch=0");
	for (int done = 0; done < OLD; done += 5000) {
		tx = begin(kv_faulty_inner(store));
		for (int i = done; i < done + 5000; i++)
			put_id(tx, i, now_ms - 60 * 1000, TXID_FORMAT, true);
		commit(tx);
	}
	tx = begin(kv_faulty_inner(store));
	for (int i = OLD; i < OLD + YOUNG; i++)
		put_id(tx, i, now_ms + 60 * 1000, TXID_FORMAT, true);
	commit(tx);
	while (more) {
		assert_true(++calls < 10);
		assert_ok(kv_txids_sweep(store, 1000, &more, NULL));
	}
	assert_int_equal(count_ids(), YOUNG);
	/* Without anything to remove it need not be called again. */
	assert_ok(kv_txids_sweep(store, 1000, &more, NULL));
	assert_false(more);
}

/* Servers of several versions may share a cluster. */
static void
sweep_knows_ids_of_earlier_and_later_formats(void **state)
{
	struct kv_tx *tx;
	bool more;

	(void)state;
	open_with("rate=0,delay=0,watch=0");
	tx = begin(kv_faulty_inner(store));
	put_id(tx, 1, 1, 0, false);
	put_id(tx, 2, 1, TXID_FORMAT + 1, true);
	commit(tx);
	assert_ok(kv_txids_sweep(store, 1000, &more, NULL));
	assert_int_equal(count_ids(), 1);
}

static void
value_of_an_id_is_read_in_each_format(void **state)
{
	static const uint8_t stamp[KV_VERSIONSTAMP_BYTES] = { 1, 2, 3 };
	struct buf value AUTO(buf_release) = BUF_INIT(64);
	struct txid_record record;

	(void)state;
	tuple_put_u64(&value, 1700000000000);
	assert_int_not_equal(txid_record_parse(buf_str(&value), &record), STATUS_OK);
	(void)tuple_put_versionstamp(&value, stamp);
	assert_ok(txid_record_parse(buf_str(&value), &record));
	assert_int_equal(record.ms, 1700000000000);
	assert_memory_equal(record.stamp, stamp, sizeof(stamp));
	assert_int_equal(record.format, 1);
	tuple_put_u64(&value, 1);
	assert_ok(txid_record_parse(buf_str(&value), &record));
	assert_int_equal(record.format, 1);
	tuple_put_u64(&value, 7);
	assert_int_equal(txid_record_parse(buf_str(&value), &record), STATUS_CORRUPT);
	buf_clear(&value);
	tuple_put_u64(&value, 1);
	(void)tuple_put_versionstamp(&value, stamp);
	tuple_put_u64(&value, 2);
	tuple_put_u64(&value, 7);
	assert_ok(txid_record_parse(buf_str(&value), &record));
	assert_int_equal(record.format, 2);
}

/* ---- Spans ---- */

/* As many ids as there are, each in a span of its own, which is full. */
static void
take_apart(struct txids *ids, struct txid *ret, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		ret[i] = (struct txid){ 0 };
		assert_ok(txid_take(ids, &ret[i]));
		assert_null(txids_claim(ids, true));
		for (size_t k = 0; k < i; k++)
			assert_false(str_eq(ret[k].key, ret[i].key));
	}
}

static void
a_span_is_claimed_by_one_once_its_runs_have_ended(void **state)
{
	struct txids *ids = txids_new();
	struct txid_span *span;
	struct txid both[2] = { 0 };

	(void)state;
	assert_non_null(ids);
	/* There is nothing to clear, and nothing that ends. */
	assert_null(txids_claim(ids, false));
	assert_null(txids_claim(ids, true));
	txid_release(ids, &both[0]);
	assert_ok(txid_take(ids, &both[0]));
	assert_ok(txid_take(ids, &both[1]));
	assert_true(both[0].span == both[1].span && !str_eq(both[0].key, both[1].key));
	assert_null(txids_claim(ids, true));
	txid_release(ids, &both[0]);
	assert_null(both[0].span);
	assert_null(txids_claim(ids, true));
	txid_release(ids, &both[1]);
	span = txids_claim(ids, false);
	assert_non_null(span);
	assert_null(txids_claim(ids, false));
	assert_null(txids_claim(ids, true));
	txids_not_cleared(ids, span);
	assert_ptr_equal(txids_claim(ids, false), span);
	txids_cleared(ids, span);
	assert_null(txids_claim(ids, false));
	assert_null(txids_claim(ids, true));
	txids_free(ids);
	txids_free(NULL);
}

static void
neighbours_whose_runs_have_ended_are_claimed_as_one(void **state)
{
	struct txids *ids = txids_new();
	struct txid_span *span, *other;
	struct txid each[5];

	(void)state;
	assert_non_null(ids);
	take_apart(ids, each, 5);
	/* The third is under way: those in front of it are one, and those behind it another. */
	for (size_t i = 0; i < 5; i++)
		if (i != 2)
			txid_release(ids, &each[i]);
	span = txids_claim(ids, false);
	other = txids_claim(ids, false);
	assert_true(span && other && span != other);
	assert_null(txids_claim(ids, true));
	txids_cleared(ids, other);
	/* The third and one that is claimed do not become one. */
	txid_release(ids, &each[2]);
	other = txids_claim(ids, false);
	assert_true(other && other != span);
	txids_cleared(ids, other);
	txids_cleared(ids, span);
	assert_null(txids_claim(ids, true));
	txids_free(ids);
}

#define T(name) cmocka_unit_test_setup_teardown(name, NULL, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(later_transactions_clear_the_ids_of_earlier_ones),
		T(ids_are_cleared_when_nobody_writes),
		T(closing_a_store_leaves_no_id),
		T(id_of_a_run_under_way_stays),
		T(run_that_fails_holds_up_nothing),
		T(ids_are_cleared_in_spite_of_faults),
		T(sweep_keeps_pace_with_what_dead_owners_have_left),
		T(sweep_knows_ids_of_earlier_and_later_formats),
		T(value_of_an_id_is_read_in_each_format),
		T(a_span_is_claimed_by_one_once_its_runs_have_ended),
		T(neighbours_whose_runs_have_ended_are_claimed_as_one),
	};

	kv_faulty_register();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
