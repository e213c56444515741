/*
 * What is known of many rows without reading each: how many there are, who ends that count and what
 * a check finds, how many there are about, and which rows of several are new; and where scans of
 * many pause. Also the notes that a caller leaves at the description of a table.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <endian.h>

#include "catalog/keys.h"
#include "catalog/store_format.h"
#include "kv/faulty/faulty.h"
#include "kv/tuple.h"
#include "model/timed/tables/estimate.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/row.h"
#include "store.h"
#include "test_tables.h"
#include "verified.h"

enum {
	START_MS = 1000 * 1000,
	SPACE_COUNT = 39, /* as it is stored */
	SPACE_ROWS = 33,  /* likewise */
	A = 3,            /* the id of the column of "ks.t", whose key is `k` and `r` */
};

static const struct table_column columns[] = {
	{ .name = TEXT("k"), .kind = TABLE_HASH },
	{ .name = TEXT("r"), .kind = TABLE_RANGE },
	{ .name = TEXT("a"), .kind = TABLE_REGULAR },
};

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct timed_clock clock;
	uint64_t now_ms;
	struct err err;
};

static uint64_t
fixture_now(void *arg)
{
	const struct fixture *f = arg;

	return f->now_ms;
}

/* ---- Transactions ---- */

typedef enum status work_body(struct timed *t, void *arg);

struct work {
	struct fixture *f;
	work_body *body;
	void *arg;
	unsigned runs;
};

static enum status
work_run(struct kv_tx *tx, void *arg)
{
	struct work *w = arg;
	struct catalog_db *db;
	enum status status;
	struct timed t;

	w->runs++;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.t"), &db, &w->f->err));
	timed_init(&t, tx, db, &w->f->clock, &w->f->err);
	status = w->body(&t, w->arg);
	catalog_db_unref(db);
	return status;
}

/* How often it was run. */
static unsigned
run(struct fixture *f, work_body *body, void *arg)
{
	struct work w = { .f = f, .body = body, .arg = arg };
	enum status status = kv_run(f->store, work_run, &w, NULL, &f->err);

	if (status != STATUS_OK)
		print_error("%s\n", f->err.text);
	assert_int_equal(status, STATUS_OK);
	return w.runs;
}

/* A store with faults lets it begin once more. */
static void
run_once(struct fixture *f, work_body *body, void *arg)
{
	unsigned runs = run(f, body, arg);

	if (!test_store_fails())
		assert_int_equal(runs, 1);
}

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	const struct table_keyspace ks = { .name = STR("ks") };
	const struct table_property packed = { STR(TABLE_PROPERTY_PACKED), STR("true") };
	const struct table_schema schema = { .columns = columns,
					     .column_count = 3,
					     .properties = &packed,
					     .property_count = 1,
					     .counts = true };

	(void)arg;
	TRY(table_keyspace_create(tx, &ks, NULL));
	return table_create(tx, STR("ks.t"), &schema, 0, NULL);
}

/* Of a row, or of its partition. Tokens are in the order of the numbers. */
static struct table_key
key_of(int64_t n, bool is_partition, struct doc_scalar parts[2])
{
	parts[0] = number(n);
	parts[1] = number(0);
	return (struct table_key){ .token = n, .parts = parts, .count = is_partition ? 1 : 2 };
}

static enum status
write_row(struct timed *t, int64_t n, bool is_new, bool tells)
{
	struct doc_scalar parts[2];
	const struct table_change change = { .kind = TABLE_CHANGE_PUT,
					     .column = A,
					     .value = number(n) };
	const struct table_write write = { .key = key_of(n, false, parts),
					   .inserts = true,
					   .is_new = is_new,
					   .tells_count = tells,
					   .changes = &change,
					   .change_count = 1 };

	return table_write(t, &write);
}

/* ---- Counting ---- */

struct counted {
	int64_t from, to; /* rows that are written */
	bool known;
	uint64_t rows;
};

static enum status
add_body(struct timed *t, void *arg)
{
	struct counted *c = arg;

	for (int64_t n = c->from; n < c->to; n++)
		TRY(write_row(t, n, true, true));
	TRY(table_count_add(t, c->to - c->from));
	return table_count_read(t, KV_READ, &c->rows, &c->known);
}

static void
add(struct fixture *f, int64_t from, int64_t to, uint64_t expected)
{
	struct counted c = { .from = from, .to = to };

	run_once(f, add_body, &c);
	assert_true(c.known);
	assert_int_equal(c.rows, expected);
}

/* How many there are; -1: that is not known. */
static int64_t
count(struct fixture *f)
{
	struct counted c = { 0 };

	run_once(f, add_body, &c);
	return c.known ? (int64_t)c.rows : -1;
}

static enum status
remove_told_body(struct timed *t, void *arg)
{
	struct doc_scalar parts[2];
	const struct table_key key = key_of(3, false, parts);

	(void)arg;
	TRY(table_clear_told_row(t, &key));
	return table_count_add(t, -1);
}

static enum status
truncate_body(struct timed *t, void *arg)
{
	(void)arg;
	return table_truncate(t->tx, STR("ks.t"), t->clock, t->err);
}

static void
rows_are_counted_by_whoever_tells(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(count(f), 0);
	add(f, 0, 100, 100);
	add(f, 100, 105, 105);
	run_once(f, remove_told_body, NULL);
	assert_int_equal(count(f), 104);
	verified_none(f->store);
	run_once(f, truncate_body, NULL);
	assert_int_equal(count(f), 0);
	add(f, 0, 3, 3);
	verified_none(f->store);
}

static enum status
write_untold_body(struct timed *t, void *arg)
{
	(void)arg;
	return write_row(t, 7, false, false);
}

static enum status
clear_row_body(struct timed *t, void *arg)
{
	struct doc_scalar parts[2];
	const struct table_key key = key_of(1, false, parts);

	(void)arg;
	return table_clear_row(t, &key);
}

static enum status
clear_range_body(struct timed *t, void *arg)
{
	struct doc_scalar parts[2];
	const struct table_key key = key_of(1, true, parts);
	const struct doc_scalar r = number(0);
	const struct table_edge from = { .kind = TIMED_BOUND_INCLUSIVE, .parts = &r, .count = 1 },
				to = { .kind = TIMED_BOUND_END };
	bool more;

	(void)arg;
	return table_clear_range(t, &key, &from, &to, &more);
}

static enum status
clear_partition_body(struct timed *t, void *arg)
{
	struct doc_scalar parts[2];
	const struct table_key key = key_of(1, true, parts);
	bool more;

	(void)arg;
	return table_clear_partition(t, &key, &more);
}

static enum status
live_body(struct timed *t, void *arg)
{
	const struct table_alteration change = { .sets_ttl = true, .ttl_ms = 1000 * 1000 };

	(void)arg;
	return table_alter(t, &change);
}

static void
whoever_does_not_tell_ends_the_count(void **state)
{
	static work_body *const bodies[] = { write_untold_body, clear_row_body, clear_range_body,
					     clear_partition_body };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		add(f, 0, 5, 5);
		/* Once to no avail, but for the flag. */
		assert_in_range(run(f, bodies[i], NULL), 2, test_store_fails() ? UINT_MAX : 2);
		assert_int_equal(count(f), -1);
		run_once(f, bodies[i], NULL);
		verified_none(f->store);
		run_once(f, truncate_body, NULL);
	}
	add(f, 0, 5, 5);
	run_once(f, live_body, NULL);
	assert_int_equal(count(f), -1);
	run_once(f, truncate_body, NULL);
	assert_int_equal(count(f), -1);
	verified_none(f->store);
}

static enum status
history_body(struct timed *t, void *arg)
{
	const struct timed_history_bounds bounds = { .seconds = 1000 };

	return arg ? timed_history_begin(t) : timed_history_set(t, bounds);
}

/* What a listing has. */
struct listed {
	uint64_t at_ms;
	const struct catalog_db *db;
	unsigned rows[TIMED_LISTED_DELETION + 1], counters; /* lines, of each kind */
	uint64_t count;                                     /* what the last counter says */
};

static enum status
list_line(void *arg, const struct timed_line *line)
{
	struct listed *l = arg;
	struct tuple_reader r = tuple_reader(str_skip(line->pair.key, l->db->prefix.len));
	uint64_t space = 0;

	TRY(tuple_next_u64(&r, &space));
	if (space != SPACE_COUNT) {
		l->rows[line->kind]++;
		return STATUS_OK;
	}
	if (line->pair.value.len != sizeof(l->count))
		return STATUS_CORRUPT;
	l->counters++;
	memcpy(&l->count, line->pair.value.ptr, sizeof(l->count));
	l->count = le64toh(l->count);
	return STATUS_OK;
}

static enum status
list_body(struct timed *t, void *arg)
{
	struct listed *l = arg;

	*l = (struct listed){ .at_ms = l->at_ms, .db = t->db };
	timed_at(t, l->at_ms);
	return timed_list(t, list_line, l);
}

static void
a_table_with_a_past_is_counted(void **state)
{
	struct fixture *f = *state;
	struct listed listed;

	add(f, 0, 5, 5);
	run_once(f, history_body, NULL);
	run_once(f, history_body, f);
	f->now_ms += 1000;
	add(f, 5, 7, 7);
	f->now_ms += 1000;
	run_once(f, remove_told_body, NULL);
	assert_int_equal(count(f), 6);
	verified_none(f->store);
	/* The rows, also the one that was removed, and how many there were at that moment. */
	for (int removed = 0; removed < 2; removed++) {
		listed.at_ms = START_MS + (removed ? 3000 : 1500);
		run_once(f, list_body, &listed);
		assert_int_equal(listed.rows[TIMED_LISTED_LIVE], 7 - removed);
		assert_int_equal(listed.rows[TIMED_LISTED_STRUCK], removed);
		assert_int_equal(listed.counters, 1);
		assert_int_equal(listed.count, 7 - removed);
	}
}

/* Adds to the counter what was not written; `arg`: what follows the counter's key. */
static enum status
damage_body(struct timed *t, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	buf_append_str(&key, t->db->prefix);
	tuple_put_u64(&key, SPACE_COUNT);
	buf_append_cstr(&key, arg);
	return kv_atomic(t->tx, KV_ADD, buf_str(&key), STR("\2\0\0\0\0\0\0\0"));
}

static void
verify_finds_a_wrong_count(void **state)
{
	struct fixture *f = *state;
	struct verified v;
	char more[] = "\x15\x01", nothing[] = "";

	add(f, 0, 5, 5);
	verified_none(f->store);
	run(f, damage_body, more);
	verified_read(f->store, &v);
	assert_non_null(strstr(v.all, "unknown_key: nothing can be at this place"));
	run(f, damage_body, nothing);
	assert_int_equal(count(f), 7);
	verified_read(f->store, &v);
	assert_non_null(strstr(v.all, "table_count: the counter says 7, and there are 5 rows"));
}

/* ---- Rows that are new ---- */

struct looking {
	const int64_t *rows; /* in this order */
	size_t count;
	bool is_new[32];
	uint64_t reads;
};

static enum status
look(struct timed *t, struct looking *l, struct table_gap *g)
{
	struct doc_scalar parts[2];
	const struct table_key last = key_of(l->rows[l->count - 1], false, parts);

	TRY(table_gap_begin(g, t, &last));
	for (size_t i = 0; i < l->count; i++) {
		const struct table_key key = key_of(l->rows[i], false, parts);
		uint64_t before = kv_tx_stats(t->tx).reads;

		TRY(table_gap_look(g, t, &key, &l->is_new[i]));
		l->reads += kv_tx_stats(t->tx).reads - before;
		TRY(write_row(t, l->rows[i], l->is_new[i], true));
	}
	return STATUS_OK;
}

static enum status
look_body(struct timed *t, void *arg)
{
	struct looking *l = arg;
	struct table_gap g;
	enum status status;

	l->reads = 0;
	table_gap_init(&g);
	status = look(t, l, &g);
	table_gap_release(&g);
	return status;
}

static void
one_read_tells_of_all_rows_up_to_the_next(void **state)
{
	static const int64_t rising[] = { 1, 2, 3, 9, 10, 11, 12, 20 };
	struct fixture *f = *state;
	struct looking l = { .rows = rising, .count = 8 };

	add(f, 10, 11, 1);
	run(f, look_body, &l);
	/* Up to 10, of 10 itself, and up to the end. */
	assert_int_equal(l.reads, 3);
	for (size_t i = 0; i < l.count; i++)
		assert_int_equal(l.is_new[i], rising[i] != 10);
	/* All of them are there. */
	run(f, look_body, &l);
	for (size_t i = 0; i < l.count; i++)
		assert_false(l.is_new[i]);
	/* Where there is no order it gives up. */
	assert_int_equal(l.reads, 4);
}

static void
rows_that_come_in_no_order_are_not_looked_for_long(void **state)
{
	static const int64_t falling[] = { 5, 4, 3, 2, 1, 30 };
	static const int64_t again[] = { 41, 42, 42, 41, 43 };
	struct fixture *f = *state;
	struct looking l = { .rows = falling, .count = 6 };

	run(f, look_body, &l);
	assert_int_equal(l.reads, 4);
	for (size_t i = 0; i < l.count; i++)
		assert_int_equal(l.is_new[i], i < 4);
	/* Its own rows are there, too. */
	l = (struct looking){ .rows = again, .count = 5 };
	run(f, look_body, &l);
	assert_true(l.is_new[0] && l.is_new[1] && !l.is_new[2] && !l.is_new[3]);
	/* Rows behind the one that was called the last one are not looked for. */
	l = (struct looking){ .rows = (const int64_t[]){ 60, 50 }, .count = 2 };
	run(f, look_body, &l);
	assert_false(l.is_new[0]);
}

/* What becomes of a transaction that finds rows new, of which another one writes `n` meanwhile. */
static enum status
commit_beside(struct fixture *f, const struct looking *looking, int64_t n)
{
	struct looking l = *looking;
	struct work w = { .f = f, .body = look_body, .arg = &l };
	enum status status;
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(work_run(tx, &w), STATUS_OK);
	assert_true(l.is_new[0] && l.is_new[1] && l.is_new[2]);
	assert_int_equal(l.reads, 1);
	add(f, n, n + 1, (uint64_t)count(f) + 1);
	status = kv_future_wait(kv_commit(tx));
	kv_tx_free(tx);
	return status;
}

static void
only_rows_that_were_asked_for_conflict(void **state)
{
	static const int64_t rows[] = { 10, 20, 30 };
	struct fixture *f = *state;
	const struct looking l = { .rows = rows, .count = 3 };

	/* With faults nobody knows what becomes of a commit. */
	if (test_store_fails())
		return;
	assert_int_equal(commit_beside(f, &l, 20), STATUS_TX_CONFLICT);
	run_once(f, truncate_body, NULL);
	assert_int_equal(commit_beside(f, &l, 21), STATUS_OK);
}

/* ---- Pauses ---- */

enum {
	PAUSE_ROWS = 6,
};

/* A scan of all rows, which are one pair each. */
struct pausing {
	struct table_scan_options options;
	size_t rows;
	bool paused;
	size_t pair_bytes; /* of each */
};

static enum status
pair_bytes_body(struct timed *t, void *arg)
{
	struct pausing *p = arg;
	AUTO(buf_release) struct buf begin = BUF_INIT(100), end = BUF_INIT(100);
	struct kv_future *f;
	struct kv_range range;

	buf_append_str(&begin, t->db->prefix);
	tuple_put_u64(&begin, SPACE_ROWS);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	f = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), NULL);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	assert_int_equal(range.count, PAUSE_ROWS);
	p->pair_bytes = range.pairs[0].key.len + range.pairs[0].value.len;
	for (size_t i = 1; i < range.count; i++)
		assert_int_equal(range.pairs[i].key.len + range.pairs[i].value.len, p->pair_bytes);
	return STATUS_OK;
}

static enum status
pausing_body(struct timed *t, void *arg)
{
	struct pausing *p = arg;
	struct arena *arena;
	struct table_scan *scan;
	struct table_row row;
	enum status status;

	p->rows = 0;
	TRY(table_scan_open(t, &p->options, &scan));
	arena = arena_new(SIZE_MAX);
	while ((status = table_scan_next(scan, arena, &row)) == STATUS_OK)
		p->rows++;
	p->paused = table_scan_paused(scan);
	table_scan_close(scan);
	arena_free(arena);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void
expect_rows(struct fixture *f, size_t pairs_most, size_t bytes_most, size_t rows)
{
	for (int reverse = 0; reverse < 2; reverse++) {
		struct pausing p = { .options = { .pairs_most = pairs_most,
						  .bytes_most = bytes_most,
						  .reverse = reverse } };

		run(f, pausing_body, &p);
		assert_int_equal(p.rows, rows);
		assert_int_equal(p.paused, rows < PAUSE_ROWS);
	}
}

/* It reads one pair more than it returns, to know that rows are left, and at least one row. */
static void
a_scan_pauses_where_it_has_read_so_much(void **state)
{
	struct fixture *f = *state;
	struct pausing p = { 0 };

	/* Numbers and keys of as many bytes each. */
	add(f, 10, 10 + PAUSE_ROWS, PAUSE_ROWS);
	run(f, pair_bytes_body, &p);
	expect_rows(f, 0, 0, PAUSE_ROWS);
	for (size_t n = 1; n <= PAUSE_ROWS; n++) {
		expect_rows(f, n, 0, n);
		expect_rows(f, 0, n * p.pair_bytes, n);
		expect_rows(f, 0, (n + 1) * p.pair_bytes - 1, n);
		/* Whichever comes first. */
		expect_rows(f, n, PAUSE_ROWS * p.pair_bytes, n);
		expect_rows(f, PAUSE_ROWS, n * p.pair_bytes, n);
	}
	expect_rows(f, 0, 1, 1);
}

/* ---- Estimates ---- */

enum {
	ESTIMATE_ARENA_BYTES = 192 * 1024, /* has no room for many rows */
	ESTIMATE_LONG_BYTES = 60 * 1000,   /* of a value: a leaf beside its row */
	ESTIMATE_LONG_ROWS = 12,
	ESTIMATE_MANY_ROWS = 3 * TABLE_ESTIMATE_PAIRS,
};

struct estimating {
	int64_t from, to; /* rows that are written before, of `bytes` each */
	size_t bytes;
	struct table_estimate estimate;
	uint64_t reads;
};

static enum status
fill_body(struct timed *t, void *arg)
{
	struct estimating *e = arg;
	char *bytes = malloc(e->bytes + 1);
	const struct table_change change = {
		.kind = TABLE_CHANGE_PUT,
		.column = A,
		.value = { .kind = DOC_TEXT, .text = str_of(bytes, e->bytes) },
	};
	enum status status = STATUS_OK;
	struct doc_scalar parts[2];

	assert_non_null(bytes);
	memset(bytes, 'a', e->bytes);
	for (int64_t n = e->from; n < e->to && status == STATUS_OK; n++) {
		const struct table_write write = { .key = key_of(n, false, parts),
						   .inserts = true,
						   .is_new = true,
						   .changes = &change,
						   .change_count = 1 };

		status = table_write(t, &write);
	}
	free(bytes);
	return status;
}

static enum status
estimate_body(struct timed *t, void *arg)
{
	struct arena *arena = arena_new(ESTIMATE_ARENA_BYTES);
	struct estimating *e = arg;
	uint64_t before = kv_tx_stats(t->tx).reads;
	enum status status;

	assert_non_null(arena);
	status = table_estimate_rows(t, arena, &e->estimate);
	e->reads = kv_tx_stats(t->tx).reads - before;
	/* Nothing of the rows stays in the arena. */
	assert_non_null(arena_bytes(arena, ESTIMATE_ARENA_BYTES / 2));
	arena_free(arena);
	return status;
}

static struct estimating
estimate(struct fixture *f)
{
	struct estimating e = { 0 };

	run(f, estimate_body, &e);
	return e;
}

static void
expect_exactly(struct fixture *f, uint64_t rows)
{
	const struct estimating e = estimate(f);

	assert_true(e.estimate.is_exact);
	assert_int_equal(e.estimate.rows, rows);
}

static void
expect_about(struct fixture *f, uint64_t least, uint64_t most)
{
	const struct estimating e = estimate(f);

	assert_false(e.estimate.is_exact);
	assert_in_range(e.estimate.rows, least, most);
}

static void
fill(struct fixture *f, int64_t from, int64_t to, size_t bytes)
{
	run(f, fill_body, &(struct estimating){ .from = from, .to = to, .bytes = bytes });
}

/* Where rows are counted that is the number, and one read. */
static void
a_counted_table_is_not_estimated(void **state)
{
	struct fixture *f = *state;

	expect_exactly(f, 0);
	add(f, 0, TABLE_ESTIMATE_PAIRS + 5, TABLE_ESTIMATE_PAIRS + 5);
	expect_exactly(f, TABLE_ESTIMATE_PAIRS + 5);
	assert_int_equal(estimate(f).reads, 1);
}

static void
the_first_rows_are_counted(void **state)
{
	struct fixture *f = *state;

	run(f, write_untold_body, NULL);
	expect_exactly(f, 1);
	run(f, clear_partition_body, NULL);
	fill(f, 100, 100 + TABLE_ESTIMATE_PAIRS - 1, 1);
	expect_exactly(f, TABLE_ESTIMATE_PAIRS);
	/* One more, and some are left that are not counted. */
	fill(f, 0, 1, 1);
	expect_about(f, TABLE_ESTIMATE_PAIRS + 1, 2 * TABLE_ESTIMATE_PAIRS);
	fill(f, 10000, 10000 + ESTIMATE_MANY_ROWS, 1);
	expect_about(f, ESTIMATE_MANY_ROWS / 2, 3 * ESTIMATE_MANY_ROWS);
	run(f, truncate_body, NULL);
	expect_exactly(f, 0);
}

static void
no_more_bytes_are_counted_than_are_told(void **state)
{
	struct fixture *f = *state;
	size_t counted = TABLE_ESTIMATE_BYTES / ESTIMATE_LONG_BYTES;

	fill(f, 0, (int64_t)counted, ESTIMATE_LONG_BYTES);
	expect_exactly(f, counted);
	fill(f, (int64_t)counted, ESTIMATE_LONG_ROWS, ESTIMATE_LONG_BYTES);
	expect_about(f, counted + 1, 2 * ESTIMATE_LONG_ROWS);
}

/* Whoever estimates, and then writes, conflicts with nobody who counts, nor with other rows. */
static void
an_estimate_meets_nobody(void **state)
{
	struct fixture *f = *state;

	/* With faults nobody knows what becomes of a commit. */
	if (test_store_fails())
		return;
	for (int counts = 0; counts < 2; counts++) {
		struct estimating e = { .from = 50, .to = 51, .bytes = 1 };
		struct work w = { .f = f, .body = estimate_body, .arg = &e };
		struct kv_tx *tx;

		if (counts)
			add(f, 0, 5, 5);
		else
			fill(f, 0, 5, 1);
		assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
		assert_int_equal(work_run(tx, &w), STATUS_OK);
		assert_int_equal(e.estimate.rows, 5);
		assert_int_equal(kv_set(tx, STR("t/written"), STR("")), STATUS_OK);
		if (counts)
			add(f, 5, 6, 6);
		assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_OK);
		kv_tx_free(tx);
		run(f, truncate_body, NULL);
	}
}

/* ---- Tests: notes ---- */

struct test_note {
	struct table_note note;
	unsigned *freed;
};

static void
test_note_free(struct table_note *note)
{
	(*((struct test_note *)note)->freed)++;
	free(note);
}

static struct table_note *
test_note_new(unsigned *freed)
{
	struct test_note *n = calloc(1, sizeof(*n));

	*n = (struct test_note){ .note = { .free = test_note_free }, .freed = freed };
	return &n->note;
}

struct opening {
	struct catalog_cache *cache;
	struct catalog_db *db;
	struct err *err;
};

static enum status
opening_body(struct kv_tx *tx, void *arg)
{
	struct opening *o = arg;

	return catalog_open(tx, o->cache, CATALOG_SPACE_TABLE, STR("ks.t"), &o->db, o->err);
}

static struct catalog_db *
opened(struct fixture *f, struct catalog_cache *cache)
{
	struct opening o = { .cache = cache, .err = &f->err };

	assert_int_equal(kv_run_read(f->store, opening_body, &o, &f->err), STATUS_OK);
	return o.db;
}

static enum status
column_add_body(struct timed *t, void *arg)
{
	const struct table_column added = { .name = STR("b"), .kind = TABLE_REGULAR };

	(void)arg;
	return table_alter(t, &(struct table_alteration){ .add = &added, .add_count = 1 });
}

static void
a_note_lasts_as_long_as_the_table_is_what_it_was(void **state)
{
	struct fixture *f = *state;
	struct catalog_cache *cache = catalog_cache_new();
	struct catalog_db *db = opened(f, cache), *again;
	const struct table_note *first;
	unsigned freed = 0, freed_late = 0;

	assert_null(table_note_of(db));
	first = table_note_leave(db, test_note_new(&freed));
	assert_ptr_equal(table_note_of(db), first);
	/* Whoever comes late uses the one that is there. */
	assert_ptr_equal(table_note_leave(db, test_note_new(&freed_late)), first);
	assert_int_equal(freed_late, 1);
	again = opened(f, cache);
	assert_ptr_equal(table_note_of(again), first);
	catalog_db_unref(again);
	run(f, column_add_body, NULL);
	again = opened(f, cache);
	assert_null(table_note_of(again));
	assert_int_equal(table_schema_of(again)->column_count, 4);
	/* One who has the table open as it was still has the note. */
	assert_int_equal(freed, 0);
	catalog_db_unref(db);
	assert_int_equal(freed, 1);
	catalog_db_unref(again);
	catalog_cache_free(cache);
}

/* ---- A row that is not there ---- */

enum {
	MISSING_ARENA_BYTES = 64 * 1024,
};

struct missing {
	int64_t n;
	bool is_there;
	uint64_t reads;
};

static enum status
read_missing_body(struct timed *t, void *arg)
{
	const struct table_wanted nothing = { .some = true };
	struct arena *arena = arena_new(MISSING_ARENA_BYTES);
	struct missing *m = arg;
	struct doc_scalar parts[2];
	const struct table_key key = key_of(m->n, false, parts);
	uint64_t before = kv_tx_stats(t->tx).reads;
	struct table_row row;
	enum status status;

	assert_non_null(arena);
	status = table_read(t, &key, false, &nothing, arena, &row);
	arena_free(arena);
	m->reads = kv_tx_stats(t->tx).reads - before;
	m->is_there = status == STATUS_OK;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* A write of columns alone: of CQL's UPDATE. */
static enum status
update_body(struct timed *t, void *arg)
{
	struct doc_scalar parts[2];
	const struct table_change change = { .kind = TABLE_CHANGE_PUT,
					     .column = A,
					     .value = number(1) };
	const struct table_write write = { .key = key_of(*(const int64_t *)arg, false, parts),
					   .changes = &change,
					   .change_count = 1 };

	return table_write(t, &write);
}

static void
where_rows_are_counted_one_without_its_own_pair_is_not_looked_for(void **state)
{
	struct fixture *f = *state;
	struct missing counted = { .n = 7 }, other = { .n = 8 }, updated = { .n = 7 };

	add(f, 0, 5, 5);
	run(f, read_missing_body, &counted);
	assert_false(counted.is_there);
	run(f, update_body, &updated.n);
	assert_int_equal(count(f), -1);
	run(f, read_missing_body, &updated);
	assert_true(updated.is_there);
	run(f, read_missing_body, &other);
	assert_false(other.is_there);
	assert_int_equal(other.reads, counted.reads + 1);
}

static void
who_found_no_row_meets_whoever_inserts_it(void **state)
{
	struct fixture *f = *state;
	struct missing m = { .n = 7 };
	struct work w = { .f = f, .body = read_missing_body, .arg = &m };
	struct kv_tx *tx;

	if (test_store_fails()) /* it may fail for another reason then */
		return;
	for (int64_t n = 7; n < 9; n++) {
		assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
		m.n = n;
		assert_int_equal(work_run(tx, &w), STATUS_OK);
		assert_false(m.is_there);
		/* The row, and then the one behind it. */
		add(f, 7 + 2 * (n - 7), 8 + 2 * (n - 7), (uint64_t)(n - 6));
		assert_int_equal(kv_set(tx, STR("any key"), STR("")), STATUS_OK);
		assert_int_equal(kv_future_wait(kv_commit(tx)),
				 n == 7 ? STATUS_TX_CONFLICT : STATUS_OK);
		kv_tx_free(tx);
	}
}

/* ---- All of them ---- */

static int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	test_show_failures();
	tables_register();
	test_make_dir("many", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &f->err), STATUS_OK);
	f->clock = (struct timed_clock){ .now_ms = fixture_now, .arg = f };
	f->now_ms = START_MS;
	assert_int_equal(kv_run(f->store, create_body, NULL, NULL, &f->err), STATUS_OK);
	*state = f;
	return 0;
}

static int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rows_are_counted_by_whoever_tells),
		TEST(whoever_does_not_tell_ends_the_count),
		TEST(a_table_with_a_past_is_counted),
		TEST(verify_finds_a_wrong_count),
		TEST(one_read_tells_of_all_rows_up_to_the_next),
		TEST(rows_that_come_in_no_order_are_not_looked_for_long),
		TEST(only_rows_that_were_asked_for_conflict),
		TEST(a_scan_pauses_where_it_has_read_so_much),
		TEST(a_counted_table_is_not_estimated),
		TEST(the_first_rows_are_counted),
		TEST(no_more_bytes_are_counted_than_are_told),
		TEST(an_estimate_meets_nobody),
		TEST(a_note_lasts_as_long_as_the_table_is_what_it_was),
		TEST(where_rows_are_counted_one_without_its_own_pair_is_not_looked_for),
		TEST(who_found_no_row_meets_whoever_inserts_it),
	};

	return cmocka_run_group_tests_name("table_many", tests, NULL, NULL);
}
