/*
 * Rows: what each operation leaves and reads, expiry, liveness, clocks that step, and random
 * operations against a model that keeps a list.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rand.h"
#include "catalog/store_format.h"
#include "kv/tuple.h"
#include "model/timed/rows/rows.h"
#include "store.h"
#include "verified.h"

enum {
	ARENA_BYTES = 64 * 1024 * 1024,
	START_MS = 1000 * 1000,
	ROUNDS = 1500,
	SPACE_ROWS = 33, /* as it is stored */
	SPACE_EXPIRY = 34,
};

#define TABLE "table"
#define KEYS  "keys"

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
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

/* A table (a, b desc) with the columns c, d, e, and a database without columns. */
static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct timed_key_column key[] = { { .name = STR("a") },
					  { .name = STR("b"), .descending = true } };
	struct str columns[] = { STR("c"), STR("d"), STR("e") };
	const struct timed_schema table = { key, 1, 2, columns, 3 };
	const struct timed_schema keys = { key, 1, 1, NULL, 0 };

	(void)arg;
	TRY(timed_create(tx, STR(TABLE), &table, 0, NULL));
	TRY(timed_create(tx, STR("short"), &table, 5000, NULL));
	return timed_create(tx, STR(KEYS), &keys, 0, NULL);
}

static int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	test_show_failures();
	timed_rows_register();
	test_make_dir("timed", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &f->err), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
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

	arena_free(f->arena);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

/* ---- One operation in a transaction of its own ---- */

enum op_kind {
	OP_INSERT,
	OP_PUT,
	OP_CLEAR,
	OP_SET,
	OP_ADD,
	OP_READ,
	OP_CLEAR_ROWS,
	OP_TTL,
	OP_HISTORY,
};

struct op {
	enum op_kind kind;
	const char *db;
	struct doc_scalar key[2];
	size_t key_count;
	struct timed_step steps[4];
	size_t step_count;
	struct timed_value values[4];
	size_t value_count;
	enum timed_type type;
	struct timed_expiry expiry;
	struct timed_edge from, to;
	uint64_t ms; /* of OP_TTL; seconds of OP_HISTORY */
	bool more;

	struct fixture *f;
	enum status status; /* of the operation */
	struct timed_row row;
	uint64_t now_us;
	struct kv_tx_stats cost;
};

static struct doc_scalar
text(const char *s)
{
	return (struct doc_scalar){ .kind = DOC_TEXT, .text = str_from_cstr(s) };
}

static struct doc_scalar
number(int64_t n)
{
	return (struct doc_scalar){ .kind = DOC_INT64, .n = n };
}

static enum status
op_run(struct op *op, struct timed *t)
{
	const struct timed_key key = { op->key, op->key_count };
	const struct timed_path place = { op->steps, op->step_count };

	switch (op->kind) {
	case OP_INSERT:
		return timed_insert(t, &key, op->expiry);
	case OP_PUT:
		return timed_put(t, &key, &place, op->values, op->value_count, op->expiry);
	case OP_CLEAR:
		return timed_clear(t, &key, &place);
	case OP_SET:
		return timed_set(t, &key, &op->values[0].value, op->expiry);
	case OP_ADD:
		return timed_add(t, &key, op->type, op->values, op->value_count, op->expiry);
	case OP_READ:
		return timed_read(t, &key, &place, op->f->arena, &op->row);
	case OP_CLEAR_ROWS:
		return timed_clear_rows(t, &(struct timed_rows){ &key, op->from, op->to },
					&op->more);
	case OP_TTL:
		return timed_ttl_set(t, op->ms);
	case OP_HISTORY:
		return timed_history_set(t, (struct timed_history_bounds){ .seconds = op->ms });
	}
	return STATUS_INVALID;
}

static bool
is_outcome(enum status status)
{
	return status == STATUS_OK || status == STATUS_NOT_FOUND || status == STATUS_INVALID ||
	       status == STATUS_KEY_TOO_LARGE || status == STATUS_VALUE_TOO_LARGE;
}

static enum status
op_body(struct kv_tx *tx, void *arg)
{
	struct op *op = arg;
	struct kv_tx_stats before;
	struct catalog_db *db;
	struct timed t;
	enum status status;

	status = catalog_open(tx, NULL, CATALOG_SPACE_ROWS, str_from_cstr(op->db), &db, NULL);
	if (status != STATUS_OK)
		return status;
	timed_init(&t, tx, db, &op->f->clock, &op->f->err);
	before = kv_tx_stats(tx);
	status = op_run(op, &t);
	op->cost = kv_tx_stats(tx);
	op->cost.reads -= before.reads;
	op->cost.keys_read -= before.keys_read;
	op->now_us = t.now_us;
	catalog_db_unref(db);
	if (!is_outcome(status))
		return status;
	op->status = status;
	return STATUS_OK;
}

static void
run(struct fixture *f, struct op *op)
{
	op->f = f;
	if (kv_run(f->store, op_body, op, NULL, &f->err) != STATUS_OK)
		fail_msg("the transaction failed: %s", f->err.text);
}

static void
must(struct fixture *f, struct op op)
{
	run(f, &op);
	if (op.status != STATUS_OK)
		fail_msg("%s: %s", status_name(op.status), f->err.text);
}

/* A row of the table. */
#define ROW(db_, a, b) .db = (db_), .key = { text(a), number(b) }, .key_count = 2
#define COLUMN(n)      .steps = { { .column = (n) } }, .step_count = 1
#define ONE(v)         .values = { { .value = (v) } }, .value_count = 1
#define AFTER(ms_)     .expiry = { TIMED_EXPIRY_AFTER, (ms_) }

/* "c=1 d.x=2", "inserted c=1"; "none". */
static const char *
draw(struct fixture *f, const struct op *op)
{
	struct buf out = BUF_INIT(ARENA_BYTES);
	static const char *const types[] = { "updated", "inserted", "value", "hash", "set" };
	struct str ret;

	if (op->status == STATUS_NOT_FOUND)
		return "none";
	buf_append_cstr(&out, types[op->row.type]);
	for (size_t i = 0; i < op->row.leaf_count; i++) {
		const struct timed_leaf *leaf = &op->row.leaves[i];

		buf_append_byte(&out, ' ');
		for (size_t s = 0; s < leaf->path.count; s++) {
			const struct timed_step *step = &leaf->path.steps[s];

			if (s)
				buf_append_byte(&out, '.');
			if (step->column)
				buf_append_byte(&out, (uint8_t)('b' + step->column));
			else if (step->key.kind == DOC_TEXT)
				buf_append_str(&out, step->key.text);
			else
				buf_printf(&out, "%lld", (long long)step->key.n);
		}
		if (leaf->value.kind == DOC_INT64)
			buf_printf(&out, "=%lld", (long long)leaf->value.n);
	}
	ret = arena_dup(f->arena, buf_str(&out));
	buf_release(&out);
	return ret.ptr;
}

static const char *
row_of(struct fixture *f, const char *db, const char *a, int64_t b)
{
	struct op op = { .kind = OP_READ, ROW(db, a, b) };

	run(f, &op);
	return draw(f, &op);
}

static const char *
key_of(struct fixture *f, const char *a)
{
	struct op op = { .kind = OP_READ, .db = KEYS, .key = { text(a) }, .key_count = 1 };

	run(f, &op);
	return draw(f, &op);
}

/* ---- Counting what is stored, and checking it ---- */

struct count {
	const char *db;
	uint64_t space;
	size_t count;
};

static enum status
count_body(struct kv_tx *tx, void *arg)
{
	struct count *c = arg;
	struct buf begin = BUF_INIT(64), end = BUF_INIT(64);
	struct kv_scan scan;
	struct kv_pair pair;
	struct catalog_db *db;
	enum status status;

	c->count = 0;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_ROWS, str_from_cstr(c->db), &db, NULL));
	buf_append_str(&begin, db->prefix);
	tuple_put_u64(&begin, c->space);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	status = kv_scan_init(&scan, tx, buf_str(&begin), buf_str(&end), NULL);
	while (status == STATUS_OK) {
		status = kv_scan_next(&scan, &pair);
		c->count += status == STATUS_OK;
	}
	kv_scan_release(&scan);
	buf_release(&begin);
	buf_release(&end);
	catalog_db_unref(db);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static size_t
stored(struct fixture *f, const char *db, uint64_t space)
{
	struct count c = { .db = db, .space = space };

	assert_int_equal(kv_run_read(f->store, count_body, &c, NULL), STATUS_OK);
	return c.count;
}

static uint64_t
sweep_all(struct fixture *f)
{
	uint64_t done, sum = 0;
	bool more;

	do {
		assert_int_equal(timed_sweep(f->store, &f->clock, 3, &done, &more, &f->err),
				 STATUS_OK);
		sum += done;
	} while (more);
	return sum;
}

/* ---- Rows and maps ---- */

static void
parts_of_a_row_are_written_by_themselves(void **state)
{
	struct fixture *f = *state;

	must(f, (struct op){ OP_INSERT, ROW(TABLE, "u", 10) });
	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 10), COLUMN(1), ONE(number(1)) });
	/* A map of a value and of a map, below the column d. */
	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 10), COLUMN(2),
			     .values = { { { (struct timed_step[]){ { .key = text("x") } }, 1 },
					   number(2) },
					 { { (struct timed_step[]){ { .key = text("y") },
								    { .key = number(7) } },
					     2 },
					   number(3) } },
			     .value_count = 2 });
	assert_string_equal(row_of(f, TABLE, "u", 10), "inserted c=1 d.x=2 d.y.7=3");
	/* One more member, next to the others. */
	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 10),
			     .steps = { { .column = 2 }, { .key = text("a") } }, .step_count = 2,
			     ONE(number(4)) });
	assert_string_equal(row_of(f, TABLE, "u", 10), "inserted c=1 d.a=4 d.x=2 d.y.7=3");
	/* A map where a scalar was, a scalar where a map was. */
	must(f,
	     (struct op){ OP_PUT, ROW(TABLE, "u", 10),
			  .steps = { { .column = 2 }, { .key = text("x") }, { .key = text("z") } },
			  .step_count = 3, ONE(number(5)) });
	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 10),
			     .steps = { { .column = 2 }, { .key = text("y") } }, .step_count = 2,
			     ONE(number(6)) });
	assert_string_equal(row_of(f, TABLE, "u", 10), "inserted c=1 d.a=4 d.x.z=5 d.y=6");
	must(f, (struct op){ OP_CLEAR, ROW(TABLE, "u", 10),
			     .steps = { { .column = 2 }, { .key = text("x") } }, .step_count = 2 });
	assert_string_equal(row_of(f, TABLE, "u", 10), "inserted c=1 d.a=4 d.y=6");
	must(f, (struct op){ OP_CLEAR, ROW(TABLE, "u", 10), COLUMN(2) });
	assert_string_equal(row_of(f, TABLE, "u", 10), "inserted c=1");
	must(f, (struct op){ OP_CLEAR, ROW(TABLE, "u", 10) });
	assert_string_equal(row_of(f, TABLE, "u", 10), "none");
	assert_int_equal(stored(f, TABLE, SPACE_ROWS), 0);
	verified_none(f->store);
}

static void
an_inserted_row_outlives_its_columns_and_an_updated_one_does_not(void **state)
{
	struct fixture *f = *state;

	must(f, (struct op){ OP_INSERT, ROW(TABLE, "i", 1) });
	must(f, (struct op){ OP_PUT, ROW(TABLE, "i", 1), COLUMN(1), ONE(number(1)) });
	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 1), COLUMN(1), ONE(number(1)) });
	assert_string_equal(row_of(f, TABLE, "u", 1), "updated c=1");
	must(f, (struct op){ OP_CLEAR, ROW(TABLE, "i", 1), COLUMN(1) });
	must(f, (struct op){ OP_CLEAR, ROW(TABLE, "u", 1), COLUMN(1) });
	assert_string_equal(row_of(f, TABLE, "i", 1), "inserted");
	assert_string_equal(row_of(f, TABLE, "u", 1), "none");
}

static void
deleting_reads_nothing_and_writing_only_the_clock(void **state)
{
	struct fixture *f = *state;
	struct op clear = { .kind = OP_CLEAR, ROW(TABLE, "u", 1), COLUMN(2) };
	struct op row = { .kind = OP_CLEAR, ROW(TABLE, "u", 1) };
	struct op put = { .kind = OP_PUT, ROW(TABLE, "u", 1), COLUMN(2), ONE(number(1)) };
	struct op insert = { .kind = OP_INSERT, ROW(TABLE, "u", 1) };
	struct op set = {
		.kind = OP_SET, .db = KEYS, .key = { text("k") }, .key_count = 1, ONE(number(1))
	};
	struct op add = { .kind = OP_ADD,
			  .db = KEYS,
			  .key = { text("h") },
			  .key_count = 1,
			  .type = TIMED_HASH,
			  .values = { { { (struct timed_step[]){ { .key = text("x") } }, 1 },
					number(1) } },
			  .value_count = 1 };

	for (int i = 0; i < 2; i++) {
		must(f, insert);
		run(f, &put);
		assert_true(put.cost.reads <= 1 && put.cost.keys_read <= 1);
		run(f, &insert);
		assert_true(insert.cost.reads <= 1 && insert.cost.keys_read <= 1);
		run(f, &clear);
		assert_int_equal(clear.cost.reads, 0);
		run(f, &row);
		assert_int_equal(row.cost.reads, 0);
		run(f, &set);
		assert_true(set.cost.reads <= 1 && set.cost.keys_read <= 1);
		run(f, &add);
		assert_true(add.cost.reads <= 2 && add.cost.keys_read <= 2);
	}
}

/* ---- Ranges of rows ---- */

enum {
	RANGE_ROWS = 700,
	WIDE_KEYS = TIMED_CLEAR_KEYS + 10,
};

static void
a_range_of_rows_is_deleted_without_reading_it(void **state)
{
	const struct doc_scalar edge = { .kind = DOC_INT64, .n = 600 };
	struct fixture *f = *state;
	struct op clear = { .kind = OP_CLEAR_ROWS, ROW(TABLE, "u", 0) };

	for (int i = 0; i < RANGE_ROWS; i++)
		must(f, (struct op){ OP_PUT, ROW(TABLE, "u", i), COLUMN(1), ONE(number(i)) });
	must(f, (struct op){ OP_PUT, ROW(TABLE, "v", 1), COLUMN(1), ONE(number(1)) });
	/* b is descending: what comes before 600 in the order of the rows is greater. */
	clear.key_count = 1;
	clear.to = (struct timed_edge){ TIMED_BOUND_EXCLUSIVE, &edge, 1 };
	run(f, &clear);
	assert_int_equal(clear.status, STATUS_OK);
	assert_false(clear.more);
	assert_int_equal(clear.cost.reads, 0);
	assert_string_equal(row_of(f, TABLE, "u", 601), "none");
	assert_string_equal(row_of(f, TABLE, "u", 600), "updated c=600");
	assert_int_equal(stored(f, TABLE, SPACE_ROWS), 602);
	clear.from = (struct timed_edge){ TIMED_BOUND_INCLUSIVE, &edge, 1 };
	clear.to = clear.from;
	run(f, &clear);
	assert_int_equal(stored(f, TABLE, SPACE_ROWS), 601);
	clear.from = clear.to = (struct timed_edge){ TIMED_BOUND_END, NULL, 0 };
	run(f, &clear);
	assert_int_equal(clear.cost.reads, 0);
	assert_int_equal(stored(f, TABLE, SPACE_ROWS), 1);
	verified_none(f->store);
}

static void
a_range_of_rows_with_a_history_goes_in_bounded_transactions(void **state)
{
	struct fixture *f = *state;
	struct op clear = { .kind = OP_CLEAR_ROWS, ROW(TABLE, "u", 0) };
	/* The first of them has one key, so that transactions end within a row. */
	size_t left = 2 * RANGE_ROWS - 1;
	unsigned transactions = 0;

	must(f, (struct op){ .kind = OP_HISTORY, .db = TABLE, .ms = 3600 });
	(void)sweep_all(f);
	for (int i = 0; i < RANGE_ROWS; i++) {
		must(f, (struct op){ OP_PUT, ROW(TABLE, "u", i), COLUMN(1), ONE(number(i)) });
		if (i < RANGE_ROWS - 1)
			must(f, (struct op){ OP_INSERT, ROW(TABLE, "u", i) });
	}
	clear.key_count = 1;
	do {
		size_t now;

		run(f, &clear);
		assert_int_equal(clear.status, STATUS_OK);
		now = stored(f, TABLE, SPACE_ROWS);
		assert_true(left - now <= TIMED_CLEAR_KEYS);
		assert_int_equal(now % 2, 0); /* whole rows */
		left = now;
		transactions++;
	} while (clear.more);
	assert_int_equal(left, 0);
	assert_true(transactions >= 2);
	verified_none(f->store);
}

static void
a_row_of_more_keys_than_that_goes_at_once(void **state)
{
	struct fixture *f = *state;
	struct op clear = { .kind = OP_CLEAR_ROWS, ROW(TABLE, "u", 0) };

	must(f, (struct op){ .kind = OP_HISTORY, .db = TABLE, .ms = 3600 });
	(void)sweep_all(f);
	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 1), COLUMN(1), ONE(number(1)) });
	for (int i = 0; i < WIDE_KEYS; i++)
		must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 2),
				     .steps = { { .column = 1 }, { .key = number(i) } },
				     .step_count = 2, ONE(number(i)) });
	assert_true(stored(f, TABLE, SPACE_ROWS) > TIMED_CLEAR_KEYS + 1);
	clear.key_count = 1;
	run(f, &clear);
	assert_int_equal(clear.status, STATUS_OK);
	assert_true(clear.more);
	assert_int_equal(stored(f, TABLE, SPACE_ROWS), 1);
	run(f, &clear);
	assert_false(clear.more);
	assert_int_equal(stored(f, TABLE, SPACE_ROWS), 0);
	verified_none(f->store);
}

enum {
	DATABASES = 110, /* more than a page of names that the sweep reads */
	DATABASES_A_TX = 11,
	MOMENTS_MOST = 100 * DATABASES, /* that a sweep of all of them asks for */
};

static enum status
create_many_body(struct kv_tx *tx, void *arg)
{
	struct timed_key_column key[] = { { .name = STR("a") } };
	const struct timed_schema schema = { key, 1, 1, NULL, 0 };
	const unsigned *first = arg;
	char name[16];

	for (unsigned i = *first; i < *first + DATABASES_A_TX; i++) {
		(void)snprintf(name, sizeof(name), "db%03u", i);
		TRY(timed_create(tx, str_from_cstr(name), &schema, 0, NULL));
	}
	return STATUS_OK;
}

static unsigned moments;

static uint64_t
counted_now(void *arg)
{
	assert_true(++moments < MOMENTS_MOST);
	return fixture_now(arg);
}

static void
the_sweep_comes_by_all_databases(void **state)
{
	struct fixture *f = *state;

	for (unsigned first = 0; first < DATABASES; first += DATABASES_A_TX)
		assert_int_equal(kv_run(f->store, create_many_body, &first, NULL, &f->err),
				 STATUS_OK);
	/* Its name is behind all of theirs. */
	must(f, (struct op){ OP_PUT, ROW("short", "u", 1), COLUMN(1), ONE(number(1)) });
	f->now_ms += 5001;
	moments = 0;
	f->clock.now_ms = counted_now;
	(void)sweep_all(f);
	assert_int_equal(stored(f, "short", SPACE_ROWS), 0);
}

static void
a_default_that_is_changed_counts_for_what_is_there(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 2 * TIMED_SWEEP_KEYS; i++)
		must(f, (struct op){ OP_PUT, ROW(TABLE, "u", i), COLUMN(1), ONE(number(i)) });
	must(f, (struct op){ OP_PUT, ROW(TABLE, "v", 1), COLUMN(1), ONE(number(1)),
			     .expiry = { TIMED_EXPIRY_NEVER, 0 } });
	must(f, (struct op){ OP_PUT, ROW("short", "u", 1), COLUMN(1), ONE(number(1)) });
	/* None before; then a shorter one, which expires at once; a longer one. */
	must(f, (struct op){ .kind = OP_TTL, .db = TABLE, .ms = 60000 });
	must(f, (struct op){ .kind = OP_TTL, .db = "short", .ms = 9000 });
	verified_none(f->store);
	(void)sweep_all(f);
	verified_none(f->store);
	assert_true(stored(f, TABLE, SPACE_EXPIRY) >= 2 * TIMED_SWEEP_KEYS);
	f->now_ms += 5000;
	(void)sweep_all(f);
	assert_string_equal(row_of(f, "short", "u", 1), "updated c=1");
	f->now_ms += 4001;
	assert_string_equal(row_of(f, "short", "u", 1), "none");
	assert_string_equal(row_of(f, TABLE, "u", 1), "updated c=1");
	must(f, (struct op){ .kind = OP_TTL, .db = TABLE, .ms = 1000 });
	assert_string_equal(row_of(f, TABLE, "u", 1), "none");
	(void)sweep_all(f);
	assert_int_equal(stored(f, TABLE, SPACE_ROWS), 1);
	assert_int_equal(stored(f, "short", SPACE_ROWS), 0);
	assert_string_equal(row_of(f, TABLE, "v", 1), "updated c=1");
	verified_none(f->store);
}

/* ---- Expiry ---- */

enum {
	RENEWED_ROWS = 400,
	RENEWED_ROWS_CLUSTER = 100, /* where each waits for a commit, and the sweep as often */
	RENEWED_ROUNDS = 3,
};

/* A thread that removes what has expired, as another process would. */
struct sweeper {
	struct fixture f;
	atomic_bool stops;
};

static void *
sweeper_main(void *arg)
{
	struct sweeper *s = arg;

	while (!atomic_load(&s->stops))
		(void)sweep_all(&s->f);
	return NULL;
}

/* The sweep has read that a row has expired, and commits after the row was written again. */
static void
what_is_written_again_is_not_removed(void **state)
{
	int rows = test_store_is_cluster() ? RENEWED_ROWS_CLUSTER : RENEWED_ROWS;
	struct fixture *f = *state;

	for (int round = 0; round < RENEWED_ROUNDS; round++) {
		struct sweeper sweeper;
		pthread_t thread;

		for (int i = 0; i < rows; i++)
			must(f, (struct op){ OP_INSERT, ROW(TABLE, "u", i), AFTER(1000) });
		f->now_ms += 2000;
		sweeper.f = *f;
		sweeper.f.clock.arg = &sweeper.f;
		atomic_init(&sweeper.stops, false);
		assert_int_equal(pthread_create(&thread, NULL, sweeper_main, &sweeper), 0);
		/* The last ones first, so that the sweep has not always been there already. */
		for (int i = rows; i-- > 0;)
			must(f, (struct op){ OP_INSERT, ROW(TABLE, "u", i), AFTER(5000) });
		atomic_store(&sweeper.stops, true);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(stored(f, TABLE, SPACE_ROWS), rows);
		verified_none(f->store);
		f->now_ms += 6000;
		(void)sweep_all(f);
		assert_int_equal(stored(f, TABLE, SPACE_ROWS), 0);
	}
}

static void
what_has_expired_is_hidden_at_once_and_removed_later(void **state)
{
	struct fixture *f = *state;

	must(f, (struct op){ OP_INSERT, ROW(TABLE, "u", 1), AFTER(1000) });
	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 1), COLUMN(1), ONE(number(1)), AFTER(2000) });
	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 1), COLUMN(2), ONE(number(2)) });
	f->now_ms += 999;
	assert_string_equal(row_of(f, TABLE, "u", 1), "inserted c=1 d=2");
	f->now_ms += 1;
	assert_string_equal(row_of(f, TABLE, "u", 1), "updated c=1 d=2");
	f->now_ms += 1000;
	assert_string_equal(row_of(f, TABLE, "u", 1), "updated d=2");
	assert_int_equal(stored(f, TABLE, SPACE_ROWS), 3);
	verified_none(f->store);
	assert_int_equal(sweep_all(f), 2);
	assert_int_equal(stored(f, TABLE, SPACE_ROWS), 1);
	assert_int_equal(stored(f, TABLE, SPACE_EXPIRY), 0);
	assert_string_equal(row_of(f, TABLE, "u", 1), "updated d=2");
}

static void
a_default_expires_what_says_nothing_else(void **state)
{
	struct fixture *f = *state;

	must(f, (struct op){ OP_PUT, ROW("short", "u", 1), COLUMN(1), ONE(number(1)) });
	must(f, (struct op){ OP_PUT, ROW("short", "u", 1), COLUMN(2), ONE(number(2)),
			     .expiry = { TIMED_EXPIRY_NEVER, 0 } });
	must(f,
	     (struct op){ OP_PUT, ROW("short", "u", 1), COLUMN(3), ONE(number(3)), AFTER(9000) });
	f->now_ms += 4999;
	assert_string_equal(row_of(f, "short", "u", 1), "updated c=1 d=2 e=3");
	f->now_ms += 1;
	assert_string_equal(row_of(f, "short", "u", 1), "updated d=2 e=3");
	verified_none(f->store);
	assert_int_equal(sweep_all(f), 1);
	f->now_ms += 5000;
	assert_string_equal(row_of(f, "short", "u", 1), "updated d=2");
}

/* Sets the first cell of a database to what no frond of today can read. */
static enum status
damage_body(struct kv_tx *tx, void *arg)
{
	const struct kv_range_options options = { .limit = 1 };
	struct buf begin = BUF_INIT(64), end = BUF_INIT(64);
	struct catalog_db *db;
	struct kv_future *f;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_ROWS, str_from_cstr(arg), &db, NULL));
	buf_append_str(&begin, db->prefix);
	tuple_put_u64(&begin, SPACE_ROWS);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	f = kv_get_range(tx, buf_str(&begin), buf_str(&end), &options);
	status = kv_future_wait(f);
	if (status == STATUS_OK)
		status = kv_set(tx, kv_future_range(f).pairs[0].key, STR("junk"));
	buf_release(&begin);
	buf_release(&end);
	catalog_db_unref(db);
	return status;
}

static void
what_cannot_be_read_keeps_nothing_else_from_being_removed(void **state)
{
	struct fixture *f = *state;

	for (int64_t i = 0; i < 10; i++) {
		must(f, (struct op){ OP_PUT, ROW(TABLE, "u", i), COLUMN(1), ONE(number(1)),
				     AFTER(1000) });
		must(f, (struct op){ OP_PUT, ROW("short", "u", i), COLUMN(1), ONE(number(1)) });
	}
	assert_int_equal(kv_run(f->store, damage_body, (void *)(uintptr_t)TABLE, NULL, NULL),
			 STATUS_OK);
	assert_int_equal(kv_run(f->store, damage_body, (void *)(uintptr_t) "short", NULL, NULL),
			 STATUS_OK);
	f->now_ms += 6000;
	assert_int_equal(sweep_all(f), 18);
	assert_int_equal(stored(f, TABLE, SPACE_ROWS), 1);
	assert_int_equal(stored(f, "short", SPACE_ROWS), 1);
	assert_int_equal(stored(f, TABLE, SPACE_EXPIRY), 1);
}

static void
what_was_written_again_is_not_removed(void **state)
{
	struct fixture *f = *state;

	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 1), COLUMN(1), ONE(number(1)), AFTER(1000) });
	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 1), COLUMN(1), ONE(number(2)) });
	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 1), COLUMN(2), ONE(number(1)), AFTER(1000) });
	must(f, (struct op){ OP_CLEAR, ROW(TABLE, "u", 1), COLUMN(2) });
	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 1), COLUMN(3), ONE(number(1)), AFTER(1000) });
	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 1), COLUMN(3), ONE(number(3)), AFTER(5000) });
	f->now_ms += 2000;
	assert_int_equal(sweep_all(f), 0);
	assert_string_equal(row_of(f, TABLE, "u", 1), "updated c=2 e=3");
	assert_int_equal(stored(f, TABLE, SPACE_EXPIRY), 1);
	verified_none(f->store);
}

static void
a_collection_expires_with_all_its_members(void **state)
{
	struct fixture *f = *state;
	struct op add = { .kind = OP_ADD,
			  .db = KEYS,
			  .key = { text("s") },
			  .key_count = 1,
			  .type = TIMED_SET,
			  .value_count = 4,
			  AFTER(1000) };
	struct timed_step members[4];
	uint64_t done;
	bool more;

	for (int n = 0; n < 300; n++) {
		for (int i = 0; i < 4; i++) {
			members[i] = (struct timed_step){ .key = number(4 * n + i) };
			add.values[i] = (struct timed_value){ { &members[i], 1 },
							      { .kind = DOC_NULL } };
		}
		must(f, add);
	}
	assert_int_equal(stored(f, KEYS, SPACE_ROWS), 1201);
	f->now_ms += 1000;
	assert_string_equal(key_of(f, "s"), "none");
	/* A slice of it, and then members of a new collection: none of the old ones come back. */
	assert_int_equal(timed_sweep(f->store, &f->clock, 1, &done, &more, &f->err), STATUS_OK);
	assert_true(more);
	assert_int_equal(stored(f, KEYS, SPACE_ROWS), 1201 - TIMED_SWEEP_KEYS);
	assert_string_equal(key_of(f, "s"), "none");
	add.value_count = 1;
	add.expiry = (struct timed_expiry){ .kind = TIMED_EXPIRY_NEVER };
	must(f, add);
	assert_string_equal(key_of(f, "s"), "set 1196");
	(void)sweep_all(f);
	assert_string_equal(key_of(f, "s"), "set 1196");
	assert_int_equal(stored(f, KEYS, SPACE_ROWS), 2);
	verified_none(f->store);
}

static enum status
many_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	const struct timed_step column = { .column = 1 };
	const struct timed_path place = { &column, 1 };
	const struct timed_value value = { .value = number(1) };
	struct catalog_db *db;
	struct timed t;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_ROWS, STR(TABLE), &db, NULL));
	timed_init(&t, tx, db, &f->clock, &f->err);
	status = STATUS_OK;
	for (int i = 0; status == STATUS_OK && i < 2000; i++) {
		const struct doc_scalar parts[] = { number(i), number(0) };
		const struct timed_key key = { parts, 2 };

		status = timed_put(&t, &key, &place, &value, 1,
				   (struct timed_expiry){ TIMED_EXPIRY_AT, START_MS + 5 });
	}
	catalog_db_unref(db);
	return status;
}

static void
many_that_are_due_together_go_in_bounded_slices(void **state)
{
	struct fixture *f = *state;
	size_t left = 2000;
	bool more = true;

	assert_int_equal(kv_run(f->store, many_body, f, NULL, &f->err), STATUS_OK);
	assert_int_equal(stored(f, TABLE, SPACE_EXPIRY), 2000);
	f->now_ms += 5;
	while (more) {
		uint64_t done;

		assert_int_equal(timed_sweep(f->store, &f->clock, 1, &done, &more, &f->err),
				 STATUS_OK);
		assert_true(done <= TIMED_SWEEP_KEYS);
		left -= done;
		assert_int_equal(stored(f, TABLE, SPACE_ROWS), left);
	}
	assert_int_equal(left, 0);
	assert_int_equal(stored(f, TABLE, SPACE_EXPIRY), 0);
}

/* ---- Clocks ---- */

static void
a_clock_that_steps_back_shows_nothing_again(void **state)
{
	struct fixture *f = *state;
	struct op first = { .kind = OP_PUT, ROW(TABLE, "u", 2), COLUMN(1), ONE(number(1)) };
	struct op second = first;

	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 1), COLUMN(1), ONE(number(1)), AFTER(1000) });
	f->now_ms += 1000;
	run(f, &first);
	assert_string_equal(row_of(f, TABLE, "u", 1), "none");
	/* Another process, ten seconds behind. */
	f->now_ms -= 10000;
	assert_string_equal(row_of(f, TABLE, "u", 1), "none");
	run(f, &second);
	assert_true(second.now_us > first.now_us);
	/* What it writes for a second lasts as long. */
	must(f, (struct op){ OP_PUT, ROW(TABLE, "u", 3), COLUMN(1), ONE(number(1)), AFTER(1000) });
	assert_string_equal(row_of(f, TABLE, "u", 3), "updated c=1");
	f->now_ms += 11000;
	assert_string_equal(row_of(f, TABLE, "u", 3), "none");
}

/* ---- What is refused ---- */

static void
what_does_not_fit_is_refused(void **state)
{
	struct fixture *f = *state;
	static char long_text[TIMED_KEY_BYTES + 1];
	static char huge_text[TIMED_VALUE_BYTES + 1];
	struct op refused[] = {
		{ .kind = OP_PUT, ROW(TABLE, "u", 1), COLUMN(4), ONE(number(1)) },
		{ .kind = OP_PUT, ROW(TABLE, "u", 1), ONE(number(1)) },
		{ .kind = OP_SET, ROW(TABLE, "u", 1), ONE(number(1)) },
		{ .kind = OP_INSERT, .db = TABLE, .key = { text("u") }, .key_count = 1 },
		{ .kind = OP_INSERT, .db = KEYS, .key = { text("u") }, .key_count = 1 },
		{ .kind = OP_INSERT, .db = TABLE, .key = { { .kind = DOC_NULL } }, .key_count = 2 },
	};
	struct op set = {
		.kind = OP_SET, .db = KEYS, .key = { text("k") }, .key_count = 1, ONE(number(1))
	};
	struct op add = {
		.kind = OP_ADD, .db = KEYS, .key = { text("k") }, .key_count = 1, .type = TIMED_SET
	};
	struct op op;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		run(f, &refused[i]);
		if (refused[i].status != STATUS_INVALID)
			fail_msg("%zu: %s", i, status_name(refused[i].status));
	}
	must(f, set);
	run(f, &add);
	assert_int_equal(add.status, STATUS_INVALID);
	memset(long_text, 'x', TIMED_KEY_BYTES);
	memset(huge_text, 'x', TIMED_VALUE_BYTES);
	op = (struct op){ .kind = OP_INSERT, ROW(TABLE, long_text, 1) };
	run(f, &op);
	assert_int_equal(op.status, STATUS_KEY_TOO_LARGE);
	op = (struct op){ .kind = OP_PUT, ROW(TABLE, "u", 1), COLUMN(1), ONE(text(huge_text)) };
	run(f, &op);
	assert_int_equal(op.status, STATUS_VALUE_TOO_LARGE);
}

/* ---- Against a model ---- */

struct model_leaf {
	bool there;
	uint64_t expires_ms; /* 0: never */
	int64_t value;
	uint64_t write_us;
};

enum {
	MODEL_A = 3,
	MODEL_B = 3,
	MODEL_COLUMNS = 2, /* c: scalars and maps of one level; d: likewise */
	MODEL_MEMBERS = 3, /* 0: the column itself */
};

struct model_row {
	struct model_leaf own;
	struct model_leaf leaves[MODEL_COLUMNS][MODEL_MEMBERS];
};

static struct model_row model[MODEL_A][MODEL_B];

static bool
is_live(const struct model_leaf *leaf, uint64_t now_us)
{
	return leaf->there && (!leaf->expires_ms || leaf->expires_ms > now_us / 1000);
}

/* As draw() draws a row; a column itself sorts before its members. */
static const char *
model_draw(struct fixture *f, const struct model_row *row, uint64_t now_us)
{
	static const char *const names[] = { "", ".x", ".y" };
	struct buf out = BUF_INIT(4096);
	bool own = is_live(&row->own, now_us), any = own;
	struct str ret;

	buf_append_cstr(&out, own ? "inserted" : "updated");
	for (int c = 0; c < MODEL_COLUMNS; c++)
		for (int m = 0; m < MODEL_MEMBERS; m++)
			if (is_live(&row->leaves[c][m], now_us)) {
				any = true;
				buf_printf(&out, " %c%s=%lld", 'c' + c, names[m],
					   (long long)row->leaves[c][m].value);
			}
	ret = arena_dup(f->arena, buf_str(&out));
	buf_release(&out);
	return any ? ret.ptr : "none";
}

static struct op
model_step(struct rand_seq *r, struct model_row **ret_row, int *ret_column, int *ret_member)
{
	static const char *const as[] = { "p", "q", "r" };
	uint64_t a = rand_seq_below(r, MODEL_A), b = rand_seq_below(r, MODEL_B);
	static const enum op_kind kinds[] = { OP_INSERT, OP_PUT, OP_PUT, OP_PUT, OP_CLEAR };
	struct op op = { .kind = kinds[rand_seq_below(r, 5)], ROW(TABLE, as[a], (int64_t)b) };

	*ret_row = &model[a][b];
	*ret_column = (int)rand_seq_below(r, MODEL_COLUMNS);
	*ret_member = (int)rand_seq_below(r, MODEL_MEMBERS);
	op.steps[0].column = (uint64_t)*ret_column + 1;
	op.steps[1].key = text(*ret_member == 1 ? "x" : "y");
	op.step_count = *ret_member ? 2 : 1;
	if (op.kind == OP_CLEAR && rand_seq_below(r, 4) == 0)
		op.step_count = 0;
	op.values[0].value = number((int64_t)rand_seq_below(r, 1000));
	op.value_count = 1;
	if (rand_seq_below(r, 2))
		op.expiry = (struct timed_expiry){ TIMED_EXPIRY_AFTER,
						   1 + rand_seq_below(r, 3000) };
	return op;
}

static void
model_apply(const struct op *op, struct model_row *row, int column, int member)
{
	struct model_leaf *leaves = row->leaves[column];
	struct model_leaf leaf = { .there = true,
				   .value = op->values[0].value.n,
				   .write_us = op->now_us };

	if (op->expiry.kind == TIMED_EXPIRY_AFTER)
		leaf.expires_ms = op->now_us / 1000 + op->expiry.ms;
	if (op->kind == OP_INSERT) {
		row->own = leaf;
		return;
	}
	if (!op->step_count) {
		*row = (struct model_row){ 0 };
		return;
	}
	if (!member)
		memset(leaves, 0, MODEL_MEMBERS * sizeof(*leaves));
	leaves[member] = leaf;
	if (op->kind == OP_CLEAR)
		leaves[member].there = false;
	else if (member)
		leaves[0].there = false;
}

struct scan_check {
	struct fixture *f;
	size_t rows;
	uint64_t now_us;
};

/* Every row that the model has, in order within its hash component, and no other. */
static enum status
scan_body(struct kv_tx *tx, void *arg)
{
	struct scan_check *check = arg;
	struct catalog_db *db;
	struct timed_scan scan;
	struct timed_row row;
	struct timed t;
	char last_a = 0;
	int64_t last_b = 0;
	enum status status;

	check->rows = 0;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_ROWS, STR(TABLE), &db, NULL));
	timed_init(&t, tx, db, &check->f->clock, &check->f->err);
	status = timed_scan_open(&scan, &t, NULL);
	while (status == STATUS_OK) {
		status = timed_scan_next(&scan, check->f->arena, &row);
		if (status != STATUS_OK)
			break;
		/* b is descending. */
		if (last_a == row.key[0].text.ptr[0])
			assert_true(row.key[1].n < last_b);
		last_a = row.key[0].text.ptr[0];
		last_b = row.key[1].n;
		check->rows++;
	}
	check->now_us = t.now_us;
	timed_scan_close(&scan);
	catalog_db_unref(db);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void
compare_with_model(struct fixture *f)
{
	static const char *const as[] = { "p", "q", "r" };
	struct scan_check check = { .f = f };
	size_t rows = 0;

	for (int a = 0; a < MODEL_A; a++)
		for (int b = 0; b < MODEL_B; b++) {
			struct op read = { .kind = OP_READ, ROW(TABLE, as[a], b) };

			run(f, &read);
			assert_string_equal(draw(f, &read),
					    model_draw(f, &model[a][b], read.now_us));
		}
	assert_int_equal(kv_run_read(f->store, scan_body, &check, &f->err), STATUS_OK);
	for (int a = 0; a < MODEL_A; a++)
		for (int b = 0; b < MODEL_B; b++)
			rows += strcmp(model_draw(f, &model[a][b], check.now_us), "none") != 0;
	assert_int_equal(check.rows, rows);
}

static void
random_operations_leave_what_a_naive_model_has(void **state)
{
	int rounds = test_rounds(ROUNDS);
	struct fixture *f = *state;
	struct rand_seq r = { test_seed() };
	uint64_t before_us = 0;

	memset(model, 0, sizeof(model));
	for (int i = 0; i < rounds; i++) {
		struct model_row *row;
		int column, member;
		struct op op = model_step(&r, &row, &column, &member);

		/* Clocks of several processes: most go on, some are behind. */
		f->now_ms += rand_seq_below(&r, 200);
		if (rand_seq_below(&r, 10) == 0)
			f->now_ms -= rand_seq_below(&r, 1000);
		run(f, &op);
		assert_int_equal(op.status, STATUS_OK);
		if (op.kind != OP_CLEAR) {
			assert_true(op.now_us > before_us);
			before_us = op.now_us;
		}
		model_apply(&op, row, column, member);
		if (rand_seq_below(&r, 20) == 0)
			(void)sweep_all(f);
		if (rand_seq_below(&r, 10) == 0)
			compare_with_model(f);
		arena_clear(f->arena);
	}
	verified_none(f->store);
	/* In the end nothing is left but what never expires. */
	f->now_ms += 10000;
	(void)sweep_all(f);
	compare_with_model(f);
	assert_int_equal(stored(f, TABLE, SPACE_EXPIRY), 0);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(parts_of_a_row_are_written_by_themselves),
		CASE(an_inserted_row_outlives_its_columns_and_an_updated_one_does_not),
		CASE(deleting_reads_nothing_and_writing_only_the_clock),
		CASE(a_range_of_rows_is_deleted_without_reading_it),
		CASE(a_range_of_rows_with_a_history_goes_in_bounded_transactions),
		CASE(a_row_of_more_keys_than_that_goes_at_once),
		CASE(the_sweep_comes_by_all_databases),
		CASE(a_default_that_is_changed_counts_for_what_is_there),
		CASE(what_is_written_again_is_not_removed),
		CASE(what_has_expired_is_hidden_at_once_and_removed_later),
		CASE(a_default_expires_what_says_nothing_else),
		CASE(what_cannot_be_read_keeps_nothing_else_from_being_removed),
		CASE(what_was_written_again_is_not_removed),
		CASE(a_collection_expires_with_all_its_members),
		CASE(many_that_are_due_together_go_in_bounded_slices),
		CASE(a_clock_that_steps_back_shows_nothing_again),
		CASE(what_does_not_fit_is_refused),
		CASE(random_operations_leave_what_a_naive_model_has),
	};

	return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
