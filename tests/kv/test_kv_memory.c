/*
 * Memory of transactions: whichever allocation fails, a call fails for want of memory or does what
 * it does with it; what answers hold is counted, and given back with them; and what is kept of
 * cleared ranges is bounded.
 */
#include "fixture.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena_apart.h"
#include "base/buf.h"
#include "base/budget.h"
#include "base/mem.h"
#include "kv/brief.h"
#include "kv/embedded/embedded_int.h"
#include "kv/embedded/spares.h"
#include "kv/few.h"
#include "kv/head.h"
#include "kv/many.h"
#include "kv/refresh.h"

enum {
	SAID_BYTES = 1 << 20,
	LARGE_BYTES = 9000, /* too many for a transaction's own memory */
	PAIRS = 60,
	LARGE_EVERY = 20, /* of them one is large */
	BUDGET_BYTES = 64 * 1024 * 1024,
	RUNS_MOST = 2000,
};

static const struct kv_options fresh = { .create = true, .no_sync = true };

/* ---- What is done in one transaction ---- */

typedef enum status memory_run(struct kv_tx *tx, struct buf *said);

static void
say(struct buf *said, struct str s)
{
	/* Of a large value its end is enough. */
	if (s.len > LARGE_BYTES / 2)
		s = str_skip(s, s.len - 1);
	buf_append_str(said, s);
	buf_append_byte(said, '|');
}

static enum status
say_value(struct kv_future *f, struct buf *said)
{
	enum status status = kv_future_wait(f);
	struct str value;

	if (status == STATUS_OK)
		say(said, kv_future_value(f, &value) ? value : STR("none"));
	kv_future_free(f);
	return status;
}

static enum status
say_range(struct kv_future *f, struct buf *said)
{
	enum status status = kv_future_wait(f);
	struct kv_range range;

	if (status == STATUS_OK) {
		range = kv_future_range(f);
		for (size_t i = 0; i < range.count; i++) {
			say(said, range.pairs[i].key);
			say(said, range.pairs[i].value);
		}
		buf_append_byte(said, range.more ? '+' : '.');
	}
	kv_future_free(f);
	return status;
}

static enum status
get_one(struct kv_tx *tx, struct buf *said)
{
	TRY(say_value(kv_get(tx, STR("t/01"), KV_READ), said));
	return say_value(kv_get(tx, STR("t/nowhere"), KV_SNAPSHOT), said);
}

static enum status
get_large(struct kv_tx *tx, struct buf *said)
{
	TRY(say_value(kv_get(tx, STR("t/20"), KV_READ), said));
	return say_value(kv_get(tx, STR("t/20"), KV_READ), said);
}

static enum status
get_head(struct kv_tx *tx, struct buf *said)
{
	struct kv_future *f = kv_get_head(tx, STR("t/20"), KV_READ);
	enum status status = kv_future_wait(f);
	struct str value;

	if (status == STATUS_OK && kv_future_value(f, &value))
		say(said, str_of(value.ptr, KV_HEAD_BYTES));
	kv_future_free(f);
	return status;
}

static enum status
get_many(struct kv_tx *tx, struct buf *said)
{
	const struct str keys[] = { STR("t/01"), STR("t/20"), STR("t/nowhere"), STR("t/40") };
	struct kv_future *f[4];
	enum status status = STATUS_OK;

	kv_get_many(tx, keys, 4, KV_READ, f);
	for (size_t i = 0; i < 4; i++) {
		enum status one = say_value(f[i], said);

		status = status == STATUS_OK ? one : status;
	}
	return status;
}

static enum status
get_own(struct kv_tx *tx, struct buf *said)
{
	TRY(kv_set(tx, STR("t/01"), STR("own")));
	TRY(kv_set(tx, STR("t/new"), STR("new")));
	TRY(kv_clear(tx, STR("t/02")));
	TRY(kv_clear_range(tx, STR("t/03"), STR("t/05")));
	TRY(say_value(kv_get(tx, STR("t/01"), KV_READ), said));
	TRY(say_value(kv_get(tx, STR("t/02"), KV_READ), said));
	TRY(say_value(kv_get(tx, STR("t/04"), KV_READ), said));
	TRY(say_value(kv_get(tx, STR("t/new"), KV_READ), said));
	return say_value(kv_get(tx, STR("t/05"), KV_READ), said);
}

static enum status
atomics(struct kv_tx *tx, struct buf *said)
{
	static const enum kv_atomic ops[] = { KV_ADD, KV_MAX, KV_BYTE_MAX };
	static const struct str keys[] = { { "t/n", 3 }, { "t/01", 4 }, { "t/nowhere", 9 } };

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
			TRY(kv_atomic(tx, ops[i], keys[k], STR("\1\2\3")));
			TRY(say_value(kv_get(tx, keys[k], KV_SNAPSHOT), said));
		}
	}
	TRY(kv_atomic(tx, KV_ADD, STR("t/20"), STR("\1\0\0\0\0\0\0\0")));
	TRY(kv_atomic(tx, KV_ADD, STR("t/20"), STR("\1\0\0\0\0\0\0\0")));
	return say_value(kv_get(tx, STR("t/20"), KV_READ), said);
}

static enum status
ranges(struct kv_tx *tx, struct buf *said)
{
	const struct kv_range_options few = { .limit = 3, .reverse = true };
	const struct kv_range_options bytes = { .limit_bytes = LARGE_BYTES };

	TRY(say_range(kv_get_range(tx, STR("t/"), STR("t0"), NULL), said));
	TRY(say_range(kv_get_range(tx, STR("t/"), STR("t0"), &few), said));
	TRY(say_range(kv_get_range(tx, STR("t/19"), STR("t0"), &bytes), said));
	return say_range(kv_get_range(tx, STR("x"), STR("y"), NULL), said);
}

static enum status
own_ranges(struct kv_tx *tx, struct buf *said)
{
	const struct kv_range_options reverse = { .reverse = true, .limit = 20 };

	TRY(kv_set(tx, STR("t/001"), STR("own")));
	TRY(kv_set(tx, STR("t/01"), STR("own")));
	TRY(kv_set(tx, STR("t/zz"), STR("own")));
	TRY(kv_clear_range(tx, STR("t/03"), STR("t/41")));
	TRY(kv_set(tx, STR("t/04"), STR("own")));
	TRY(kv_atomic(tx, KV_ADD, STR("t/42"), STR("\1")));
	TRY(kv_clear(tx, STR("t/43")));
	TRY(say_range(kv_get_range(tx, STR("t/"), STR("t0"), NULL), said));
	return say_range(kv_get_range(tx, STR("t/"), STR("t0"), &reverse), said);
}

static enum status
scan_with(struct kv_tx *tx, const struct kv_range_options *options, size_t first, struct buf *said)
{
	struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status = kv_scan_init_few(&scan, tx, STR("t/"), STR("t0"), options, first);

	while (status == STATUS_OK) {
		status = kv_scan_next(&scan, &pair);
		if (status == STATUS_OK) {
			say(said, pair.key);
			say(said, pair.value);
		}
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
scans(struct kv_tx *tx, struct buf *said)
{
	const struct kv_range_options stretches = { .limit_bytes = 2000 };
	const struct kv_range_options ahead = { .limit_bytes = 2000, .ahead = true };

	TRY(scan_with(tx, &stretches, 0, said));
	TRY(scan_with(tx, &ahead, 0, said));
	return scan_with(tx, NULL, 2, said);
}

static enum status
brief_scans(struct kv_tx *tx, struct buf *said)
{
	kv_tx_brief(tx);
	TRY(scans(tx, said));
	return get_one(tx, said);
}

static enum status
conflicts(struct kv_tx *tx, struct buf *said)
{
	uint64_t version;

	(void)said;
	TRY(kv_add_read_conflict_range(tx, STR("t/1"), STR("t/2")));
	TRY(kv_add_write_conflict_range(tx, STR("u/1"), STR("u/2")));
	TRY(kv_set_no_conflict(tx, STR("u/1"), STR("1")));
	return kv_get_read_version(tx, &version);
}

static enum status
commit_all(struct kv_tx *tx, struct buf *said)
{
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
	char value[16] = { 0 };

	kv_want_versionstamp(tx);
	TRY(say_value(kv_get(tx, STR("t/01"), KV_READ), said));
	TRY(kv_set(tx, STR("c/set"), STR("1")));
	TRY(kv_atomic(tx, KV_ADD, STR("c/count"), STR("\1\0\0\0\0\0\0\0")));
	TRY(kv_clear(tx, STR("c/cleared")));
	TRY(kv_clear_range(tx, STR("c/r"), STR("c/s")));
	TRY(kv_atomic(tx, KV_MAX, STR("c/n"), STR("\1\0\0\0\0\0\0\0")));
	TRY(kv_set_versionstamped_value(tx, STR("c/stamped"), str_of(value, sizeof(value)), 2));
	TRY(kv_touch_metadata_version(tx));
	TRY(kv_future_wait(kv_commit(tx)));
	return kv_versionstamp(tx, stamp);
}

static enum status
commit_late(struct kv_tx *tx, struct buf *said)
{
	TRY(say_value(kv_get(tx, STR("t/01"), KV_READ), said));
	TRY(kv_set(tx, STR("c/late"), STR("1")));
	buf_append_byte(said, (uint8_t)('0' + kv_refresh(tx)));
	return kv_future_wait(kv_commit(tx));
}

static enum status
again(struct kv_tx *tx, struct buf *said)
{
	TRY(get_own(tx, said));
	TRY(kv_on_error(tx, STATUS_TX_CONFLICT));
	TRY(get_one(tx, said));
	kv_tx_reset(tx);
	return get_large(tx, said);
}

static enum status
watch(struct kv_tx *tx, struct buf *said)
{
	struct kv_future *f = kv_watch(tx, STR("w"));
	enum status status;

	(void)said;
	status = kv_future_wait(kv_commit(tx));
	if (status == STATUS_OK && kv_future_ready(f))
		status = kv_future_wait(f);
	kv_future_free(f);
	return status;
}

static const struct {
	const char *name;
	memory_run *run;
	bool writes;
	bool refreshes; /* whether it can may depend on memory */
} runs[] = {
	{ "get one", get_one, false, false },
	{ "get a large one", get_large, false, false },
	{ "get a head", get_head, false, false },
	{ "get many", get_many, false, false },
	{ "get own writes", get_own, true, false },
	{ "atomic operations", atomics, true, false },
	{ "ranges", ranges, false, false },
	{ "ranges over own writes", own_ranges, true, false },
	{ "scans", scans, false, false },
	{ "brief scans", brief_scans, false, false },
	{ "conflicts", conflicts, true, false },
	{ "commit", commit_all, true, false },
	{ "refresh", commit_late, true, true },
	{ "again", again, true, false },
	{ "watch", watch, false, false },
};

/* ---- The tests ---- */

struct counted {
	struct budget budget;
	struct budget_part part;
};

static void
counted_begin(struct counted *c)
{
	budget_init(&c->budget, BUDGET_BYTES);
	c->part = (struct budget_part){ .budget = &c->budget };
	budget_enter(&c->part);
}

static void
counted_end(struct counted *c)
{
	budget_part_release(&c->part);
	budget_fini(&c->budget);
}

static void
fill(struct kv_store *store)
{
	char *large = calloc(1, LARGE_BYTES);
	struct kv_tx *tx = begin(store);

	assert_non_null(large);
	for (int i = 0; i < PAIRS; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "t/%02d", i);
		assert_ok(
			kv_set(tx, str_from_cstr(key),
			       i % LARGE_EVERY ? str_from_cstr(key) : str_of(large, LARGE_BYTES)));
	}
	put(tx, "t/n", "\1\1\1");
	commit(tx);
	free(large);
}

/* All that the store keeps of transactions that have ended: the next one is made anew. */
static void
spares_take(struct kv_store *store, struct kv_tx *taken[EMB_SPARE_TXS])
{
	for (size_t i = 0; i < EMB_SPARE_TXS; i++)
		taken[i] = begin_read(store);
}

static void
spares_give(struct kv_tx *taken[EMB_SPARE_TXS])
{
	for (size_t i = 0; i < EMB_SPARE_TXS; i++)
		kv_tx_free(taken[i]);
}

/* One transaction; `nth` is the allocation that fails, 0: none. False: there are fewer. */
static bool
run_once(struct kv_store *store, size_t at, enum kv_tx_kind kind, uint64_t nth, struct buf *said,
	 enum status *ret)
{
	struct kv_tx *taken[EMB_SPARE_TXS];
	struct kv_tx *tx = NULL;
	struct counted c;
	uint64_t made;
	size_t used;

	spares_take(store, taken);
	counted_begin(&c);
	used = c.part.used_bytes;
	buf_clear(said);
	arena_set_apart(nth > 0);
	(void)mem_fail_only(nth);
	*ret = kv_begin(store, kind, &tx);
	if (*ret == STATUS_OK) {
		kv_tx_set_memory(tx, &c.part, 0);
		*ret = runs[at].run(tx, said);
	}
	made = mem_fail_only(0);
	arena_set_apart(false);
	spares_give(taken);
	kv_tx_free(tx);
	if (c.part.used_bytes != used)
		fail_msg("%s: %zu bytes stay counted", runs[at].name, c.part.used_bytes - used);
	counted_end(&c);
	return made >= nth;
}

/* Of a commit that has failed nothing is there. */
static void
assert_commits(struct kv_store *store, uint64_t commits)
{
	struct kv_tx *tx = begin_read(store);
	struct kv_future *f = kv_get(tx, STR("c/count"), KV_READ);
	uint64_t count = 0;
	struct str value;

	assert_ok(kv_future_wait(f));
	assert_true(kv_future_value(f, &value) && value.len == sizeof(count));
	memcpy(&count, value.ptr, sizeof(count));
	assert_int_equal(le64toh(count), commits);
	kv_tx_free(tx);
}

static void
each_allocation_fails(struct kv_store *store, enum kv_tx_kind kind)
{
	uint64_t commits = 0;
	struct buf said = BUF_INIT(SAID_BYTES), wanted = BUF_INIT(SAID_BYTES);

	/* Their own allocations are none of those that fail. */
	assert_true(buf_reserve(&said, SAID_BYTES) && buf_reserve(&wanted, SAID_BYTES));
	for (size_t at = 0; at < sizeof(runs) / sizeof(runs[0]); at++) {
		enum status status;

		if (runs[at].writes && kind == KV_TX_READ_ONLY)
			continue;
		/* What is kept of reads is there in all further runs. */
		for (int i = 0; i < 3; i++) {
			(void)run_once(store, at, kind, 0, &wanted, &status);
			assert_int_equal(status, STATUS_OK);
			commits += runs[at].run == commit_all;
		}
		assert_int_equal(buf_status(&wanted), STATUS_OK);
		for (uint64_t nth = 1; run_once(store, at, kind, nth, &said, &status); nth++) {
			assert_true(nth < RUNS_MOST);
			if (status == STATUS_NOMEM || status == STATUS_LIMIT)
				continue;
			commits += runs[at].run == commit_all;
			if (status != STATUS_OK)
				fail_msg("%s, allocation %d: %s", runs[at].name, (int)nth,
					 status_name(status));
			if (!runs[at].refreshes && !str_eq(buf_str(&said), buf_str(&wanted)))
				fail_msg("%s, allocation %d: another answer", runs[at].name,
					 (int)nth);
		}
	}
	if (kind == KV_TX_READ_WRITE)
		assert_commits(store, commits + 1); /* the run that has enough */
	buf_release(&said);
	buf_release(&wanted);
}

static void
each_transaction_fails_for_want_of_memory_or_does_all(void **state)
{
	struct kv_store *store = fixture_open(url_of(state), fresh);

	fill(store);
	each_allocation_fails(store, KV_TX_READ_ONLY);
	each_allocation_fails(store, KV_TX_READ_WRITE);
	kv_close(store);
}

static void
on_fiber(void *arg)
{
	struct kv_store **store = arg;

	each_allocation_fails(*store, KV_TX_READ_ONLY);
	each_allocation_fails(*store, KV_TX_READ_WRITE);
}

/* On a fiber stretches are read ahead, whose memory is counted, too. */
static void
so_does_each_on_a_fiber(void **state)
{
	struct kv_store *store = fixture_open(url_of(state), fresh);

	fill(store);
	run_on_fibers(1, on_fiber, &store, sizeof(store));
	kv_close(store);
}

/* While answers are held, and no longer. */
static void
large_answers_are_counted_while_they_are_held(void **state)
{
	struct kv_store *store = fixture_open(url_of(state), fresh);
	struct kv_tx *tx;
	struct kv_future *f;
	struct counted c;
	size_t none, before;

	fill(store);
	counted_begin(&c);
	none = c.part.used_bytes;
	tx = begin_read(store);
	kv_tx_set_memory(tx, &c.part, 0);
	before = c.part.used_bytes;
	f = kv_get(tx, STR("t/20"), KV_READ);
	assert_ok(kv_future_wait(f));
	assert_in_range(c.part.used_bytes - before, LARGE_BYTES, LARGE_BYTES + 4096);
	kv_future_free(f);
	assert_int_equal(c.part.used_bytes, before);
	f = kv_get_range(tx, STR("t/"), STR("t0"), NULL);
	assert_ok(kv_future_wait(f));
	assert_true(c.part.used_bytes - before >= (size_t)LARGE_BYTES * PAIRS / LARGE_EVERY);
	kv_tx_free(tx);
	assert_true(none < before);
	assert_int_equal(c.part.used_bytes, none);
	counted_end(&c);
	kv_close(store);
}

/* Of these one takes no memory to speak of; together they do until they are freed. */
static void
many_small_answers_are_counted_until_the_transaction_ends(void **state)
{
	enum {
		READS = 4000,
		LEAST_BYTES = 256, /* of each */
	};
	struct kv_store *store = fixture_open(url_of(state), fresh);
	struct kv_tx *tx;
	struct counted c;
	size_t none, before, held;
	uint64_t mark;

	counted_begin(&c);
	none = c.part.used_bytes;
	tx = begin_read(store);
	kv_tx_set_memory(tx, &c.part, 0);
	before = c.part.used_bytes;
	mark = kv_reads_mark(tx);
	for (int i = 0; i < READS; i++)
		assert_ok(kv_future_wait(kv_get(tx, STR("none"), KV_READ)));
	held = c.part.used_bytes - before;
	assert_in_range(held, READS * LEAST_BYTES - 16 * 1024, 2 * READS * LEAST_BYTES);
	/* What is forgotten is used again: nothing more is held. */
	kv_reads_forget(tx, mark);
	for (int i = 0; i < READS; i++)
		assert_ok(kv_future_wait(kv_get(tx, STR("none"), KV_READ)));
	assert_int_equal(c.part.used_bytes - before, held);
	kv_tx_reset(tx);
	assert_int_equal(c.part.used_bytes, before);
	for (int i = 0; i < READS; i++)
		assert_ok(kv_future_wait(kv_get(tx, STR("none"), KV_READ)));
	kv_tx_free(tx);
	assert_int_equal(c.part.used_bytes, none);
	counted_end(&c);
	kv_close(store);
}

/* However many keys its ranges have together: a transaction keeps them in memory up to a limit. */
static void
ranges_with_many_keys_are_cleared_as_often_as_one_likes(void **state)
{
	enum {
		KEYS = 900,
		KEY_BYTES = 9900,
		CLEARS = EMB_TX_ARENA_BYTES / (KEYS * KEY_BYTES) + 2,
	};
	struct kv_store *store = fixture_open(url_of(state), fresh);
	static char key[KEY_BYTES];
	struct kv_tx *tx = begin(store);

	assert_true(KEYS * KEY_BYTES <= EMB_CLEAR_BYTES);
	memset(key, 'k', sizeof(key));
	for (int i = 0; i < KEYS; i++) {
		(void)snprintf(key, sizeof(key), "t/%03d", i);
		assert_ok(kv_set_no_conflict(tx, str_of(key, sizeof(key)), STR("")));
	}
	put(tx, "t0", "stays");
	commit(tx);
	tx = begin(store);
	for (int i = 0; i < CLEARS; i++)
		assert_ok(kv_clear_range(tx, STR("t/"), STR("t0")));
	commit(tx);
	tx = begin_read(store);
	assert_range(tx, "t/", "t1", NULL, "t0=stays");
	kv_tx_free(tx);
	kv_close(store);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_dir_setup, fixture_dir_teardown)
	const struct CMUnitTest tests[] = {
		CASE(each_transaction_fails_for_want_of_memory_or_does_all),
		CASE(so_does_each_on_a_fiber),
		CASE(large_answers_are_counted_while_they_are_held),
		CASE(many_small_answers_are_counted_until_the_transaction_ends),
		CASE(ranges_with_many_keys_are_cleared_as_often_as_one_likes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
