/*
 * Packed rows: how they lie, what each operation reads and writes, what leaves hide, and what is
 * left when columns go one after the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/store_format.h"
#include "kv/faulty/faulty.h"
#include "kv/tuple.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/packed.h"
#include "model/timed/tables/tables_int.h"
#include "store.h"
#include "test_tables.h"
#include "verified.h"

enum {
	ARENA_BYTES = 64 * 1024 * 1024,
	LOOK_BYTES = 1024 * 1024,
	START_MS = 1000 * 1000,
	TTL_MS = 5000,
	CHANGES = 6,
	/* Ids of the columns of "ks.t", whose key is `k`. */
	A = 2,
	B,
	M,
	C,
};

static const struct table_column columns[] = {
	{ .name = TEXT("k"), .kind = TABLE_HASH },
	{ .name = TEXT("a"), .kind = TABLE_REGULAR },
	{ .name = TEXT("b"), .kind = TABLE_REGULAR },
	{ .name = TEXT("m"), .kind = TABLE_REGULAR, .storage = TABLE_MAP },
	{ .name = TEXT("c"), .kind = TABLE_REGULAR },
};

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

/* ---- Transactions ---- */

typedef enum status work_body(struct timed *t, void *arg);

struct work {
	struct fixture *f;
	work_body *body;
	void *arg;
	struct kv_tx_stats cost; /* of the body alone */
};

static enum status
work_run(struct kv_tx *tx, void *arg)
{
	struct work *w = arg;
	struct kv_tx_stats before, after;
	struct catalog_db *db;
	enum status status;
	struct timed t;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.t"), &db, &w->f->err));
	timed_init(&t, tx, db, &w->f->clock, &w->f->err);
	before = kv_tx_stats(tx);
	status = w->body(&t, w->arg);
	after = kv_tx_stats(tx);
	w->cost.reads = after.reads - before.reads;
	w->cost.sets = after.sets - before.sets;
	w->cost.clears = after.clears - before.clears;
	catalog_db_unref(db);
	return status;
}

static enum status
run(struct fixture *f, work_body *body, void *arg)
{
	struct work w = { .f = f, .body = body, .arg = arg };

	return kv_run(f->store, work_run, &w, NULL, &f->err);
}

/* A write of the row 1, or several in one transaction. */
struct put {
	bool inserts, looks;        /* at the row before, as INSERT of SQL's does */
	struct timed_expiry expiry; /* of all of it */
	bool has_stamp;
	int64_t stamp;
	uint64_t written_us; /* as a load says; 0: now */
	bool other;          /* the row 2 instead */
	struct table_change changes[CHANGES];
	const struct put *then;
};

/* Says that the row is new if no pair of it is there. */
static enum status
look(struct timed *t, struct table_write *write)
{
	const struct table_wanted nothing = { .some = true };
	struct arena *arena = arena_new(LOOK_BYTES);
	struct table_row row = { 0 };
	enum status status = arena ? table_read(t, &write->key, false, &nothing, arena, &row)
				   : STATUS_NOMEM;

	write->is_new = status == STATUS_NOT_FOUND && !row.has_pairs;
	arena_free(arena);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
put_body(struct timed *t, void *arg)
{
	for (const struct put *p = arg; p; p = p->then) {
		const int64_t id = p->other ? 2 : 1;
		const struct doc_scalar k = number(id);
		struct table_change changes[CHANGES];
		struct table_write write = { .key = { id, &k, 1 },
					     .inserts = p->inserts,
					     .expiry = p->expiry,
					     .changes = changes };

		if (p->looks)
			TRY(look(t, &write));
		memcpy(changes, p->changes, sizeof(changes));
		for (; write.change_count < CHANGES && changes[write.change_count].column;
		     write.change_count++)
			changes[write.change_count].expiry = p->expiry;
		if (p->has_stamp)
			TRY(table_stamp_set(t, p->stamp));
		if (p->written_us)
			TRY(timed_written_at(t, p->written_us));
		TRY(table_write(t, &write));
	}
	return STATUS_OK;
}

static enum status
clear_body(struct timed *t, void *arg)
{
	const int64_t *id = arg;
	const struct doc_scalar k = number(id ? *id : 1);

	return table_clear_row(t, &(struct table_key){ k.n, &k, 1 });
}

static struct kv_tx_stats
put(struct fixture *f, struct put p)
{
	struct work w = { .f = f, .body = put_body, .arg = &p };

	assert_int_equal(kv_run(f->store, work_run, &w, NULL, &f->err), STATUS_OK);
	f->now_ms++;
	return w.cost;
}

#define SET(id_, value_)                                                                           \
	{                                                                                          \
		.kind = TABLE_CHANGE_PUT, .column = (id_), .value = value_                         \
	}
#define UNSET(id_)                                                                                 \
	{                                                                                          \
		.kind = TABLE_CHANGE_CLEAR, .column = (id_)                                        \
	}

static enum status
alter_body(struct timed *t, void *arg)
{
	return table_alter(t, arg);
}

static void
alter_packed(struct fixture *f, const char *value)
{
	const struct table_property packed = { STR(TABLE_PROPERTY_PACKED), str_from_cstr(value) };
	struct table_alteration change = { .properties = &packed, .property_count = 1 };

	assert_int_equal(run(f, alter_body, &change), STATUS_OK);
}

static void
sweep(struct fixture *f)
{
	uint64_t done;
	bool more = true;

	for (int i = 0; more && i < 100; i++)
		assert_int_equal(timed_sweep(f->store, &f->clock, 10, &done, &more, &f->err),
				 STATUS_OK);
}

/* ---- What is there ---- */

struct seen {
	struct fixture *f;
	const struct table_wanted *wanted;
	bool scans, reverse;
	struct buf out;
	struct table_row row;
};

static enum status
seen_scan(struct timed *t, struct seen *s)
{
	const struct table_scan_options options = { .reverse = s->reverse, .wanted = s->wanted };
	struct table_scan *scan;
	enum status status;

	TRY(table_scan_open(t, &options, &scan));
	status = table_scan_next(scan, s->f->arena, &s->row);
	table_scan_close(scan);
	return status;
}

static enum status
seen_body(struct timed *t, void *arg)
{
	const struct doc_scalar k = number(1);
	const struct table_key key = { 1, &k, 1 };
	struct seen *s = arg;
	enum status status;

	buf_clear(&s->out);
	status = s->scans ? seen_scan(t, s)
			  : table_read(t, &key, false, s->wanted, s->f->arena, &s->row);
	if (status == STATUS_OK)
		draw_row(&s->row, &s->out);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* By its key, and by scans in both directions. */
static void
expect_wanted(struct fixture *f, const struct table_wanted *wanted, const char *drawn)
{
	for (int i = 0; i < 3; i++) {
		struct seen s = { .f = f,
				  .wanted = wanted,
				  .scans = i > 0,
				  .reverse = i == 2,
				  .out = BUF_INIT(100000) };

		arena_clear(f->arena);
		assert_int_equal(run(f, seen_body, &s), STATUS_OK);
		buf_append_byte(&s.out, 0);
		assert_string_equal(s.out.ptr, drawn);
		buf_release(&s.out);
	}
}

static void
expect_row(struct fixture *f, const char *drawn)
{
	expect_wanted(f, NULL, drawn);
	verified_none(f->store);
}

/* The pairs of rows, without when they were written. */
static void
expect_pairs(struct fixture *f, const char *wanted)
{
	AUTO(buf_release) struct buf drawn = BUF_INIT(100000), line = BUF_INIT(100000);
	AUTO(buf_release) struct buf begin = BUF_INIT(100), end = BUF_INIT(100);
	struct catalog_db *db;
	struct kv_scan scan;
	struct kv_pair pair;
	struct kv_tx *tx;

	assert_int_equal(kv_begin(kv_faulty_inner(f->store), KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.t"), &db, &f->err),
			 STATUS_OK);
	timed_key_space(&begin, db, TIMED_SPACE_ROWS);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	assert_int_equal(kv_scan_init(&scan, tx, buf_str(&begin), buf_str(&end), NULL), STATUS_OK);
	while (kv_scan_next(&scan, &pair) == STATUS_OK) {
		const char *place, *arrow;

		buf_clear(&line);
		assert_true(db->kind->draw_pair(db, TIMED_SPACE_ROWS, str_skip(pair.key, begin.len),
						pair.value, &line));
		buf_append_byte(&line, 0);
		place = strstr(line.ptr, "), ");
		arrow = strstr(line.ptr, " -> ");
		assert_non_null(place);
		assert_non_null(arrow);
		place += strlen("), ");
		buf_append(&drawn, place, strcspn(place, ","));
		buf_append_cstr(&drawn, arrow);
		buf_append_byte(&drawn, '\n');
	}
	buf_append_byte(&drawn, 0);
	assert_string_equal(drawn.ptr, wanted);
	kv_scan_release(&scan);
	catalog_db_unref(db);
	kv_tx_free(tx);
}

/* ---- Tests ---- */

static void
an_inserted_row_is_one_pair(void **state)
{
	struct fixture *f = *state;
	const uint64_t only[] = { B };
	const struct table_wanted wanted = { .some = true, .ids = only, .count = 1 };
	const struct table_wanted none = { .some = true };
	struct kv_tx_stats cost = put(
		f, (struct put){ .inserts = true,
				 .changes = { SET(C, number(3)), SET(A, text("one")),
					      SET(B, number(2)) } });

	expect_pairs(f, "liveness_column_id -> {a_column_id: 'one', b_column_id: 2, "
			"c_column_id: 3}\n");
	expect_row(f, "(1* a=one b=2 c=3)");
	expect_wanted(f, &wanted, "(1* b=2)");
	expect_wanted(f, &none, "(1*)");
	/* Faults cost reads of their own. */
	if (getenv("FROND_TEST_FAULTS"))
		return;
	/* The row, the clock, the key that is watched. */
	assert_int_equal(cost.sets, 3);
	assert_int_equal(cost.clears, 0);
}

static void
an_update_of_a_column_reads_only_the_clock(void **state)
{
	struct fixture *f = *state;
	struct kv_tx_stats cost;

	put(f,
	    (struct put){ .inserts = true, .changes = { SET(A, number(1)), SET(B, number(2)) } });
	cost = put(f, (struct put){ .changes = { SET(A, number(5)) } });
	expect_pairs(f, "liveness_column_id -> {a_column_id: 1, b_column_id: 2}\n"
			"a_column_id -> 5\n");
	expect_row(f, "(1* a=5 b=2)");
	if (getenv("FROND_TEST_FAULTS"))
		return;
	assert_int_equal(cost.reads, 1);
	assert_int_equal(cost.sets, 3);
	assert_int_equal(cost.clears, 0);
}

static void
an_insert_packs_what_leaves_had(void **state)
{
	struct fixture *f = *state;

	put(f, (struct put){ .changes = { SET(A, number(1)), SET(C, number(3)) } });
	put(f,
	    (struct put){ .inserts = true, .changes = { SET(B, number(7)), SET(A, number(8)) } });
	expect_pairs(f, "liveness_column_id -> {a_column_id: 8, b_column_id: 7}\n"
			"c_column_id -> 3\n");
	expect_row(f, "(1* a=8 b=7 c=3)");
	/* What this one has nothing of stays, with the time that it has. */
	put(f, (struct put){ .inserts = true, .changes = { SET(A, number(9)) } });
	expect_pairs(f, "liveness_column_id -> {a_column_id: 9}\n"
			"b_column_id -> 7\n"
			"c_column_id -> 3\n");
	expect_row(f, "(1* a=9 b=7 c=3)");
}

static void
inserts_of_one_transaction_are_packed_together(void **state)
{
	struct fixture *f = *state;
	const struct put last = { .changes = { SET(B, number(4)) } };
	const struct put second = { .inserts = true,
				    .changes = { SET(C, number(3)) },
				    .then = &last };

	put(f, (struct put){ .inserts = true,
			     .changes = { SET(A, number(1)), SET(B, number(2)) },
			     .then = &second });
	expect_pairs(f, "liveness_column_id -> {a_column_id: 1, b_column_id: 2, c_column_id: 3}\n"
			"b_column_id -> 4\n");
	expect_row(f, "(1* a=1 b=4 c=3)");
}

static void
a_null_takes_a_column_out(void **state)
{
	struct fixture *f = *state;

	put(f,
	    (struct put){ .inserts = true, .changes = { SET(A, number(1)), SET(B, number(2)) } });
	put(f, (struct put){ .changes = { SET(A, number(3)) } });
	put(f, (struct put){ .changes = { SET(C, number(4)), UNSET(A) } });
	expect_pairs(f, "liveness_column_id -> {b_column_id: 2}\n"
			"c_column_id -> 4\n");
	expect_row(f, "(1* b=2 c=4)");
	put(f, (struct put){ .inserts = true,
			     .changes = { SET(B, ((struct doc_scalar){ .kind = DOC_NULL })) } });
	expect_pairs(f, "liveness_column_id -> [NULL]\n"
			"c_column_id -> 4\n");
	expect_row(f, "(1* c=4)");
	/* The last change of a column counts. */
	put(f, (struct put){ .inserts = true,
			     .changes = { SET(A, number(1)), UNSET(A), SET(B, number(1)), UNSET(B),
					  SET(B, number(2)) } });
	expect_pairs(f, "liveness_column_id -> {b_column_id: 2}\n"
			"c_column_id -> 4\n");
	expect_row(f, "(1* b=2 c=4)");
}

static void
nothing_older_comes_back_behind_a_leaf_that_has_expired(void **state)
{
	struct fixture *f = *state;

	put(f,
	    (struct put){ .inserts = true, .changes = { SET(A, number(1)), SET(B, number(2)) } });
	put(f, (struct put){ .expiry = { TIMED_EXPIRY_AFTER, 1000 },
			     .changes = { SET(A, number(3)) } });
	expect_row(f, "(1* a=3 b=2)");
	f->now_ms += 1000;
	expect_row(f, "(1* b=2)");
	sweep(f);
	expect_pairs(f, "liveness_column_id -> {b_column_id: 2}\n");
	expect_row(f, "(1* b=2)");
}

static void
a_row_that_is_new_is_not_looked_for_again(void **state)
{
	struct fixture *f = *state;
	const struct put leaf = { .expiry = { TIMED_EXPIRY_AFTER, 1000 },
				  .changes = { SET(A, number(3)) } };
	struct put insert = { .inserts = true, .changes = { SET(B, number(2)) } };
	const uint64_t reads = put(f, insert).reads;

	assert_int_equal(run(f, clear_body, NULL), STATUS_OK);
	insert.looks = true;
	/* The clock, the row, and static columns. Faults cost reads of their own. */
	if (getenv("FROND_TEST_FAULTS")) {
		put(f, insert);
	} else {
		/* On a cluster the leaves and the own cell lie in one range. */
		assert_true(reads > 3 || test_store_is_cluster());
		assert_int_equal(put(f, insert).reads, 3);
	}
	expect_pairs(f, "liveness_column_id -> {b_column_id: 2}\n");
	assert_int_equal(run(f, clear_body, NULL), STATUS_OK);
	/* A leaf that has expired is there all the same, and the row is not new. */
	put(f, leaf);
	f->now_ms += 1000;
	insert.changes[0] = (struct table_change)SET(A, number(4));
	put(f, insert);
	expect_pairs(f, "liveness_column_id -> {a_column_id: 4}\n");
	sweep(f);
	expect_row(f, "(1* a=4)");
}

static void
a_packed_row_expires_as_one(void **state)
{
	struct fixture *f = *state;

	put(f, (struct put){ .inserts = true, .changes = { SET(A, number(1)) } });
	put(f, (struct put){ .inserts = true,
			     .expiry = { TIMED_EXPIRY_AFTER, 1000 },
			     .changes = { SET(B, number(2)), SET(C, number(3)) } });
	put(f, (struct put){ .changes = { SET(C, number(4)) } });
	expect_row(f, "(1* a=1 b=2 c=4)");
	f->now_ms += 1000;
	expect_row(f, "(1 a=1 c=4)");
	sweep(f);
	expect_pairs(f, "a_column_id -> 1\nc_column_id -> 4\n");
	expect_row(f, "(1 a=1 c=4)");
}

static void
what_does_not_fit_is_not_packed(void **state)
{
	static char wide[TABLE_PACKED_BYTES + 1], piece[TIMED_VALUE_BYTES + 1000];
	struct fixture *f = *state;
	struct put p = { .inserts = true, .changes = { SET(A, number(1)), SET(C, number(3)) } };
	char drawn[sizeof(wide) + 100];

	memset(wide, 'w', sizeof(wide) - 1);
	memset(piece, 'p', sizeof(piece) - 1);
	p.changes[2] = (struct table_change)SET(B, text(wide));
	put(f, p);
	(void)snprintf(drawn, sizeof(drawn), "(1* a=1 b=%s c=3)", wide);
	expect_row(f, drawn);
	/* A value in pieces, over one that was packed; such a column is a leaf from then on. */
	p.changes[2].value = text("short");
	put(f, p);
	expect_row(f, "(1* a=1 b=short c=3)");
	expect_pairs(f, "liveness_column_id -> {a_column_id: 1, b_column_id: 'short', "
			"c_column_id: 3}\n");
	put(f, (struct put){ .changes = { SET(B, text(piece)) } });
	put(f, (struct put){ .inserts = true, .changes = { SET(A, number(4)) } });
	put(f, (struct put){ .changes = { SET(B, text("again")) } });
	expect_row(f, "(1* a=4 b=again c=3)");
	put(f, p);
	expect_pairs(f, "liveness_column_id -> {a_column_id: 1, c_column_id: 3}\n"
			"b_column_id -> 'short'\n");
	expect_row(f, "(1* a=1 b=short c=3)");
}

static void
what_no_column_can_have_is_refused(void **state)
{
	struct fixture *f = *state;
	char *value = malloc(TABLE_VALUE_BYTES + 2);
	struct put p = { .inserts = true, .changes = { SET(A, number(1)) } };

	assert_non_null(value);
	memset(value, 'v', TABLE_VALUE_BYTES + 1);
	value[TABLE_VALUE_BYTES + 1] = 0;
	p.changes[1] = (struct table_change)SET(B, text(value));
	assert_int_equal(run(f, put_body, &p), STATUS_VALUE_TOO_LARGE);
	assert_non_null(strstr(f->err.text, "TABLE_VALUE_BYTES"));
	value[TABLE_VALUE_BYTES] = 0;
	p.changes[1].value = text(value);
	put(f, p);
	free(value);
}

static void
a_packed_column_outlives_others_that_get_pieces(void **state)
{
	static char piece[TIMED_VALUE_BYTES + 1000];
	struct fixture *f = *state;

	memset(piece, 'p', sizeof(piece) - 1);
	put(f,
	    (struct put){ .inserts = true, .changes = { SET(A, number(1)), SET(B, number(2)) } });
	put(f, (struct put){ .changes = { SET(B, text(piece)) } });
	put(f, (struct put){ .changes = { UNSET(B) } });
	expect_row(f, "(1* a=1)");
	alter_packed(f, "false");
	put(f, (struct put){ .inserts = true, .changes = { SET(C, number(3)) } });
	expect_pairs(f, "liveness_column_id -> [NULL]\n"
			"a_column_id -> 1\n"
			"c_column_id -> 3\n");
	expect_row(f, "(1* a=1 c=3)");
}

static void
a_dropped_column_is_taken_out(void **state)
{
	struct fixture *f = *state;
	const struct str b[] = { STR("b") };
	const struct table_column again[] = { { .name = STR("b"), .kind = TABLE_REGULAR } };
	struct table_alteration drop = { .drop = b, .drop_count = 1, .add = again, .add_count = 1 };

	put(f,
	    (struct put){ .inserts = true, .changes = { SET(A, number(1)), SET(B, number(2)) } });
	assert_int_equal(run(f, alter_body, &drop), STATUS_OK);
	expect_row(f, "(1* a=1)");
	sweep(f);
	expect_pairs(f, "liveness_column_id -> {a_column_id: 1}\n");
	expect_row(f, "(1* a=1)");
	put(f, (struct put){ .inserts = true, .changes = { SET(C + 1, number(6)) } });
	expect_row(f, "(1* a=1 b=6)");
}

static void
packing_is_switched_on_and_off(void **state)
{
	struct fixture *f = *state;

	alter_packed(f, "false");
	put(f,
	    (struct put){ .inserts = true, .changes = { SET(A, number(1)), SET(B, number(2)) } });
	expect_pairs(f, "liveness_column_id -> [NULL]\n"
			"a_column_id -> 1\n"
			"b_column_id -> 2\n");
	alter_packed(f, "true");
	put(f,
	    (struct put){ .inserts = true, .changes = { SET(B, number(3)), SET(C, number(4)) } });
	expect_pairs(f, "liveness_column_id -> {b_column_id: 3, c_column_id: 4}\n"
			"a_column_id -> 1\n");
	expect_row(f, "(1* a=1 b=3 c=4)");
	alter_packed(f, "false");
	/* What is packed is still known for it. */
	put(f, (struct put){ .inserts = true, .changes = { SET(C, number(5)) } });
	expect_pairs(f, "liveness_column_id -> [NULL]\n"
			"a_column_id -> 1\n"
			"b_column_id -> 3\n"
			"c_column_id -> 5\n");
	expect_row(f, "(1* a=1 b=3 c=5)");
}

/* Two writes may have one time where a load says when they took place. */
static void
nothing_is_packed_again_where_packing_is_off(void **state)
{
	const uint64_t us = START_MS * UINT64_C(1000);
	struct fixture *f = *state;

	put(f, (struct put){ .inserts = true, .written_us = us, .changes = { SET(A, number(1)) } });
	put(f, (struct put){ .inserts = true, .written_us = us, .changes = { SET(B, number(2)) } });
	expect_pairs(f, "liveness_column_id -> {a_column_id: 1, b_column_id: 2}\n");
	alter_packed(f, "false");
	put(f, (struct put){ .inserts = true, .written_us = us, .changes = { SET(C, number(3)) } });
	expect_pairs(f, "liveness_column_id -> [NULL]\n"
			"a_column_id -> 1\n"
			"b_column_id -> 2\n"
			"c_column_id -> 3\n");
	expect_row(f, "(1* a=1 b=2 c=3)");
}

static void
a_stamp_unpacks_a_row(void **state)
{
	struct fixture *f = *state;

	put(f,
	    (struct put){ .inserts = true, .changes = { SET(A, number(1)), SET(B, number(2)) } });
	put(f, (struct put){ .has_stamp = true, .stamp = 5, .changes = { SET(A, number(3)) } });
	expect_pairs(f, "liveness_column_id -> [NULL]\n"
			"a_column_id -> 1\n"
			"b_column_id -> 2\n");
	put(f, (struct put){
		       .has_stamp = true, .stamp = 2000 * 1000 * 1000, .changes = { UNSET(A) } });
	expect_row(f, "(1* b=2)");
	/* And nobody packs it any more. */
	put(f, (struct put){ .inserts = true, .changes = { SET(B, number(4)) } });
	expect_pairs(f, "liveness_column_id -> [NULL]\n"
			"b_column_id -> 4\n");
	expect_row(f, "(1* b=4)");
}

static void
a_map_lies_beside_a_packed_row(void **state)
{
	struct fixture *f = *state;

	put(f, (struct put){ .inserts = true,
			     .changes = { SET(A, number(1)),
					  { .kind = TABLE_CHANGE_PUT_ELEMENT,
					    .column = M,
					    .element = text("x"),
					    .value = number(9) },
					  SET(C, number(3)) } });
	expect_row(f, "(1* a=1 m[x]=9 c=3)");
	put(f, (struct put){ .inserts = true, .changes = { SET(C, number(4)) } });
	expect_pairs(f, "liveness_column_id -> {c_column_id: 4}\n"
			"a_column_id -> 1\n"
			"m_column_id -> 9\n");
	expect_row(f, "(1* a=1 m[x]=9 c=4)");
}

/* ---- Columns that are looked up as keys ---- */

static const uint64_t three_ids[] = { A, B, C };
static const struct table_wanted three = { .some = true, .ids = three_ids, .count = 3 };

static uint64_t
reads_of(struct fixture *f, const struct table_wanted *wanted)
{
	struct seen s = { .f = f, .wanted = wanted, .out = BUF_INIT(100000) };
	struct work w = { .f = f, .body = seen_body, .arg = &s };

	assert_int_equal(kv_run(f->store, work_run, &w, NULL, &f->err), STATUS_OK);
	buf_release(&s.out);
	return w.cost.reads;
}

static void
several_columns_are_looked_up_as_keys(void **state)
{
	const struct table_wanted none = { .some = true };
	struct fixture *f = *state;

	put(f,
	    (struct put){ .inserts = true,
			  .changes = { SET(A, number(1)), SET(B, number(2)), SET(C, number(3)) } });
	expect_wanted(f, &three, "(1* a=1 b=2 c=3)");
	put(f, (struct put){ .changes = { SET(A, number(5)), SET(C, text("six")) } });
	expect_wanted(f, &three, "(1* a=5 b=2 c=six)");
	/* One that has expired hides what is packed. */
	put(f, (struct put){ .expiry = { TIMED_EXPIRY_AFTER, 1000 },
			     .changes = { SET(B, number(7)) } });
	expect_wanted(f, &three, "(1* a=5 b=7 c=six)");
	f->now_ms += 1000;
	expect_wanted(f, &three, "(1* a=5 c=six)");
	/* Faults cost reads of their own; a store with them, or a cluster, is asked for a range. */
	if (!getenv("FROND_TEST_FAULTS") && !test_store_is_cluster())
		assert_int_equal(reads_of(f, &three) - reads_of(f, &none), three.count);
}

struct statics_scan {
	struct fixture *f;
	bool statics;
};

static enum status
statics_scan_body(struct timed *t, void *arg)
{
	const struct statics_scan *s = arg;
	const struct table_scan_options options = { .reverse = true, .statics = s->statics };
	struct table_scan *scan;
	struct table_row row;
	enum status status;

	TRY(table_scan_open(t, &options, &scan));
	status = table_scan_next(scan, s->f->arena, &row);
	table_scan_close(scan);
	return status;
}

static void
a_scan_looks_for_no_statics_where_there_are_none(void **state)
{
	struct fixture *f = *state;
	uint64_t reads[2];

	put(f, (struct put){ .inserts = true, .changes = { SET(A, number(1)) } });
	for (int i = 0; i < 2; i++) {
		struct statics_scan s = { f, i > 0 };
		struct work w = { .f = f, .body = statics_scan_body, .arg = &s };

		assert_int_equal(kv_run(f->store, work_run, &w, NULL, &f->err), STATUS_OK);
		reads[i] = w.cost.reads;
	}
	if (!getenv("FROND_TEST_FAULTS"))
		assert_int_equal(reads[0], reads[1]);
}

static void
a_row_that_no_wanted_column_has_is_there(void **state)
{
	struct fixture *f = *state;

	put(f, (struct put){ .changes = { { .kind = TABLE_CHANGE_PUT_ELEMENT,
					    .column = M,
					    .element = text("x"),
					    .value = number(9) } } });
	expect_wanted(f, &three, "(1)");
	put(f, (struct put){ .changes = { SET(C, number(4)) } });
	expect_wanted(f, &three, "(1 c=4)");
	assert_int_equal(run(f, clear_body, NULL), STATUS_OK);
	expect_wanted(f, &three, "");
}

/* Does something in a transaction, lets another one write the row, and commits. */
static enum status
commit_behind(struct fixture *f, work_body *body, void *arg, struct put between)
{
	struct catalog_db *db;
	enum status status;
	struct kv_tx *tx;
	struct timed t;

	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.t"), &db, &f->err),
			 STATUS_OK);
	timed_init(&t, tx, db, &f->clock, &f->err);
	assert_int_equal(body(&t, arg), STATUS_OK);
	put(f, between);
	assert_int_equal(kv_set(tx, STR("t/other"), STR("")), STATUS_OK);
	status = kv_future_wait(kv_commit(tx));
	catalog_db_unref(db);
	kv_tx_free(tx);
	return status;
}

static enum status
read_and_commit_behind(struct fixture *f, const struct table_wanted *wanted, struct put between)
{
	struct seen s = { .f = f, .wanted = wanted, .out = BUF_INIT(100000) };
	enum status status = commit_behind(f, seen_body, &s, between);

	buf_release(&s.out);
	return status;
}

static void
whoever_reads_columns_meets_their_writers(void **state)
{
	const uint64_t only[] = { B };
	const struct table_wanted b = { .some = true, .ids = only, .count = 1 };
	struct fixture *f = *state;
	struct put row = { .inserts = true, .changes = { SET(A, number(1)) } };

	/* Faults are conflicts, too. */
	if (getenv("FROND_TEST_FAULTS"))
		return;
	put(f, row);
	assert_int_equal(
		read_and_commit_behind(f, &three, (struct put){ .changes = { SET(B, number(2)) } }),
		STATUS_TX_CONFLICT);
	assert_int_equal(
		read_and_commit_behind(f, &three, (struct put){ .changes = { SET(C, number(2)) } }),
		STATUS_TX_CONFLICT);
	assert_int_equal(read_and_commit_behind(f, &three, row), STATUS_TX_CONFLICT);
	/* A single one meets nobody who writes another. */
	assert_int_equal(
		read_and_commit_behind(f, &b, (struct put){ .changes = { SET(B, number(3)) } }),
		STATUS_TX_CONFLICT);
	assert_int_equal(read_and_commit_behind(f, &b, row), STATUS_TX_CONFLICT);
	assert_int_equal(
		read_and_commit_behind(f, &b, (struct put){ .changes = { SET(C, number(3)) } }),
		STATUS_OK);
}

/* What it packs again hides what an update has put into pieces meanwhile. */
static void
an_insert_meets_who_puts_what_was_packed_into_pieces(void **state)
{
	static char piece[TIMED_VALUE_BYTES + 1000];
	struct put insert = { .inserts = true, .changes = { SET(A, number(4)) } };
	struct fixture *f = *state;
	struct put update = { .changes = { { .kind = TABLE_CHANGE_PUT, .column = B } } };
	char drawn[sizeof(piece) + 100];

	if (getenv("FROND_TEST_FAULTS"))
		return;
	memset(piece, 'p', sizeof(piece) - 1);
	update.changes[0].value = text(piece);
	put(f,
	    (struct put){ .inserts = true, .changes = { SET(A, number(1)), SET(B, number(2)) } });
	/* As the column may have pieces from here on, its leaf is looked for by itself. */
	update.other = true;
	put(f, update);
	update.other = false;
	assert_int_equal(commit_behind(f, put_body, &insert, update), STATUS_TX_CONFLICT);
	assert_int_equal(run(f, clear_body, &(int64_t){ 2 }), STATUS_OK);
	(void)snprintf(drawn, sizeof(drawn), "(1* a=1 b=%s)", piece);
	expect_row(f, drawn);
}

/* Each of them packs the other columns again, also the one that the other writer takes out. */
static void
writers_that_take_out_columns_conflict(void **state)
{
	struct fixture *f = *state;
	struct put first = { .changes = { UNSET(A) } };

	if (getenv("FROND_TEST_FAULTS"))
		return;
	put(f,
	    (struct put){ .inserts = true, .changes = { SET(A, number(1)), SET(B, number(2)) } });
	assert_int_equal(
		commit_behind(f, put_body, &first, (struct put){ .changes = { UNSET(B) } }),
		STATUS_TX_CONFLICT);
	expect_row(f, "(1* a=1)");
}

/* As it makes leaves of what is packed, it meets who writes one meanwhile. */
static void
a_stamp_meets_who_updates_what_it_unpacks(void **state)
{
	struct put stamped = { .has_stamp = true, .stamp = 5, .changes = { SET(C, number(3)) } };
	struct fixture *f = *state;

	if (getenv("FROND_TEST_FAULTS"))
		return;
	put(f,
	    (struct put){ .inserts = true, .changes = { SET(A, number(1)), SET(B, number(2)) } });
	stamped.other = true;
	put(f, stamped);
	stamped.other = false;
	assert_int_equal(commit_behind(f, put_body, &stamped,
				       (struct put){ .changes = { SET(A, number(4)) } }),
			 STATUS_TX_CONFLICT);
	assert_int_equal(run(f, clear_body, &(int64_t){ 2 }), STATUS_OK);
	expect_row(f, "(1* a=4 b=2)");
}

static enum status
look_ask_body(struct timed *t, void *arg)
{
	const struct doc_scalar k = number(1);
	const struct table_write write = { .key = { 1, &k, 1 }, .inserts = *(bool *)arg };
	struct arena *arena = arena_new(LOOK_BYTES);
	struct table_look *looked;
	enum status status;

	assert_non_null(arena);
	status = table_look_ask(t, &write, arena, &looked);
	if (status == STATUS_OK)
		assert_int_equal(looked != NULL, write.inserts);
	table_look_end(looked);
	arena_free(arena);
	return status;
}

static void
only_an_insert_is_asked_for_ahead(void **state)
{
	struct fixture *f = *state;

	for (int inserts = 0; inserts < 2; inserts++)
		assert_int_equal(run(f, look_ask_body, &(bool){ inserts }), STATUS_OK);
}

/* Takes the leaf of A out, which has expired, as the sweep does. */
static enum status
expired_body(struct timed *t)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	const struct doc_scalar k = number(1);
	struct timed_cell cell;
	struct kv_future *asked;
	struct str value;

	TRY(table_key_row(t, &(struct table_key){ 1, &k, 1 }, &key));
	TRY(table_key_cell(t, A, NULL, &key));
	asked = kv_get(t->tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(asked));
	assert_true(kv_future_value(asked, &value));
	TRY(timed_cell_parse(value, &cell, t->err));
	TRY(table_expired_clear(t, buf_str(&key), &cell));
	kv_future_free(asked);
	return STATUS_OK;
}

/* It writes what is packed without A, so it has to meet who packs something else meanwhile. */
static void
the_sweep_loses_no_insert(void **state)
{
	struct fixture *f = *state;
	struct catalog_db *db;
	struct kv_tx *tx;
	struct timed t;

	if (getenv("FROND_TEST_FAULTS"))
		return;
	put(f,
	    (struct put){ .inserts = true, .changes = { SET(A, number(1)), SET(B, number(2)) } });
	put(f, (struct put){ .expiry = { TIMED_EXPIRY_AFTER, 1000 },
			     .changes = { SET(A, number(3)) } });
	f->now_ms += 1000;
	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.t"), &db, &f->err),
			 STATUS_OK);
	timed_init(&t, tx, db, &f->clock, &f->err);
	assert_int_equal(expired_body(&t), STATUS_OK);
	put(f, (struct put){ .inserts = true, .changes = { SET(B, number(4)) } });
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_TX_CONFLICT);
	catalog_db_unref(db);
	kv_tx_free(tx);
	expect_row(f, "(1* b=4)");
}

/* ---- What is wrong ---- */

/* Puts something else at the row's own key; NULL: the schema's flag is gone. */
static enum status
damage_body(struct timed *t, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(10000);
	const struct doc_scalar k = number(1);
	const struct table_key row = { 1, &k, 1 };
	struct timed_cell own = { .type = TIMED_INSERTED,
				  .write_us = 1,
				  .packed = *(struct str *)arg };

	TRY(table_key_row(t, &row, &key));
	timed_cell_put(&own, &value);
	return kv_set(t->tx, buf_str(&key), buf_str(&value));
}

static void
expect_damage(struct fixture *f, struct str packed, const char *found)
{
	struct verified v;

	assert_int_equal(run(f, damage_body, &packed), STATUS_OK);
	verified_read(f->store, &v);
	assert_int_equal(v.count, 1);
	assert_string_equal(v.last, found);
}

static void
verify_finds_what_cannot_be_packed(void **state)
{
	AUTO(buf_release) struct buf packed = BUF_INIT(1000);
	struct fixture *f = *state;

	table_packed_put(A, STR("\x15\x01"), &packed);
	table_packed_put(C, STR("\x15\x01"), &packed);
	assert_int_equal(run(f, damage_body, &(struct str){ packed.ptr, packed.len }), STATUS_OK);
	expect_row(f, "(1* a=1 c=1)");
	table_packed_put(99, STR("\x15\x01"), &packed);
	expect_damage(f, buf_str(&packed), "table_cell: a column is packed that is not there");
	buf_clear(&packed);
	table_packed_put(M, STR("\x15\x01"), &packed);
	expect_damage(f, buf_str(&packed), "table_cell: a column is packed that cannot be");
	/* Not in the order of columns; cut. */
	table_packed_put(A, STR("\x15\x01"), &packed);
	buf_consume(&packed, 6);
	table_packed_put(A, STR("\x15\x01"), &packed);
	expect_damage(f, buf_str(&packed), "unreadable_value: not a packed row");
	expect_damage(f, str_of(packed.ptr, 3), "unreadable_value: not a packed row");
}

/* Puts a value where the elements of the map lie. */
static enum status
misplace_body(struct timed *t, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	const struct doc_scalar k = number(1);
	const struct table_key row = { 1, &k, 1 };

	(void)arg;
	TRY(timed_write_begin(t));
	TRY(table_key_row(t, &row, &key));
	TRY(table_key_cell(t, M, NULL, &key));
	return timed_cell_write(t, buf_str(&key), TIMED_LEAF, &k, (struct timed_expiry){ 0 });
}

/* What is cleared in the background is no finding; all else is one, also meanwhile. */
static void
verify_finds_a_misplaced_value_while_a_column_is_dropped(void **state)
{
	struct fixture *f = *state;
	const struct str c = STR("c");
	struct table_alteration drop = { .drop = &c, .drop_count = 1 };
	struct verified v;

	put(f, (struct put){ .inserts = true, .changes = { SET(C, number(2)) } });
	assert_int_equal(run(f, alter_body, &drop), STATUS_OK);
	verified_none(f->store);
	assert_int_equal(run(f, misplace_body, NULL), STATUS_OK);
	verified_read(f->store, &v);
	assert_int_equal(v.count, 1);
	assert_string_equal(v.last, "table_cell: the values of its column do not lie so");
}

/* ---- The store ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	const struct table_property packed = { STR(TABLE_PROPERTY_PACKED), STR("true") };
	const struct table_keyspace ks = { .name = STR("ks") };
	const struct table_schema t = { .columns = columns,
					.column_count = sizeof(columns) / sizeof(*columns),
					.properties = &packed,
					.property_count = 1 };

	(void)arg;
	TRY(table_keyspace_create(tx, &ks, NULL));
	return table_create(tx, STR("ks.t"), &t, 0, NULL);
}

static enum status
create_counters_body(struct kv_tx *tx, void *arg)
{
	static const struct table_column hits[] = {
		{ .name = TEXT("k"), .kind = TABLE_HASH },
		{ .name = TEXT("n"), .kind = TABLE_REGULAR, .storage = TABLE_COUNTER },
	};
	const struct table_property packed = { STR(TABLE_PROPERTY_PACKED), STR("true") };
	const struct table_schema t = {
		.columns = hits, .column_count = 2, .properties = &packed, .property_count = 1
	};

	(void)arg;
	return table_create(tx, STR("ks.hits"), &t, 0, NULL);
}

static enum status
open_counters_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct catalog_db *db;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.hits"), &db, &f->err));
	assert_true(table_schema_of(db)->counters);
	assert_false(table_schema_of(db)->packed);
	catalog_db_unref(db);
	return STATUS_OK;
}

static void
counters_are_not_packed(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(kv_run(f->store, create_counters_body, NULL, NULL, &f->err), STATUS_OK);
	assert_int_equal(kv_run(f->store, open_counters_body, f, NULL, &f->err), STATUS_OK);
}

static int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	test_show_failures();
	tables_register();
	test_make_dir("packed", f->dir, sizeof(f->dir));
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_inserted_row_is_one_pair),
		TEST(an_update_of_a_column_reads_only_the_clock),
		TEST(an_insert_packs_what_leaves_had),
		TEST(inserts_of_one_transaction_are_packed_together),
		TEST(a_null_takes_a_column_out),
		TEST(nothing_older_comes_back_behind_a_leaf_that_has_expired),
		TEST(a_row_that_is_new_is_not_looked_for_again),
		TEST(a_packed_row_expires_as_one),
		TEST(what_does_not_fit_is_not_packed),
		TEST(what_no_column_can_have_is_refused),
		TEST(a_packed_column_outlives_others_that_get_pieces),
		TEST(a_dropped_column_is_taken_out),
		TEST(packing_is_switched_on_and_off),
		TEST(nothing_is_packed_again_where_packing_is_off),
		TEST(a_stamp_unpacks_a_row),
		TEST(a_map_lies_beside_a_packed_row),
		TEST(several_columns_are_looked_up_as_keys),
		TEST(a_scan_looks_for_no_statics_where_there_are_none),
		TEST(a_row_that_no_wanted_column_has_is_there),
		TEST(whoever_reads_columns_meets_their_writers),
		TEST(an_insert_meets_who_puts_what_was_packed_into_pieces),
		TEST(writers_that_take_out_columns_conflict),
		TEST(a_stamp_meets_who_updates_what_it_unpacks),
		TEST(only_an_insert_is_asked_for_ahead),
		TEST(the_sweep_loses_no_insert),
		TEST(verify_finds_what_cannot_be_packed),
		TEST(verify_finds_a_misplaced_value_while_a_column_is_dropped),
		TEST(counters_are_not_packed),
	};

	return cmocka_run_group_tests_name("table_packed", tests, NULL, NULL);
}
