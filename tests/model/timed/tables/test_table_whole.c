/*
 * Tables whose rows are whole: what is read and written of them, what ends that, whom that meets,
 * and random operations beside a table with the same rows as leaves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rand.h"
#include "catalog/store_format.h"
#include "kv/tuple.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/packed.h"
#include "model/timed/tables/tables_int.h"
#include "store.h"
#include "test_tables.h"
#include "verified.h"

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
	DRAWN_BYTES = 1024 * 1024,
	START_MS = 1000 * 1000,
	TTL_MS = 5000,
	CHANGES = 3,
	OPERATIONS = 1500,
	ROWS = 6,
	PARTITIONS = 3,
	LEAF_EVERY = 200,  /* one of so many operations writes a leaf */
	LONG_BYTES = 9000, /* two of these do not fit into what is packed */
	/* Ids of the columns, whose key is (k, c). */
	A = 3,
	B,
	D,
};

static const struct table_column columns[] = {
	{ .name = TEXT("k"), .kind = TABLE_HASH },    { .name = TEXT("c"), .kind = TABLE_RANGE },
	{ .name = TEXT("a"), .kind = TABLE_REGULAR }, { .name = TEXT("b"), .kind = TABLE_REGULAR },
	{ .name = TEXT("d"), .kind = TABLE_REGULAR },
};

static const char *const names[] = { "ks.whole", "ks.plain" };

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct timed_clock clock;
	uint64_t now_ms;
	struct rand_seq rand;
	struct err err;
};

static uint64_t
fixture_now(void *arg)
{
	return ((const struct fixture *)arg)->now_ms;
}

/* ---- Transactions ---- */

struct step {
	enum {
		WRITE,
		CLEAR,
		CLEAR_PARTITION,
		READ,
		SCAN,
		SCAN_BACKWARD,
		TRUNCATE,
		ALTER,
	} what;
	const char *name;
	int64_t k, c;
	struct table_write write;
	const struct table_wanted *wanted;
	bool has_stamp;
	const struct table_alteration *alteration;
	struct buf *out;
	struct kv_tx_stats cost; /* of the step alone */
};

struct work {
	struct fixture *f;
	struct step *step;
};

static enum status
step_scan(struct timed *t, const struct work *w)
{
	const struct table_scan_options options = { .reverse = w->step->what == SCAN_BACKWARD,
						    .wanted = w->step->wanted };
	struct table_scan *scan;
	struct table_row row;
	enum status status;

	TRY(table_scan_open(t, &options, &scan));
	while ((status = table_scan_next(scan, w->f->arena, &row)) == STATUS_OK)
		draw_row(&row, w->step->out);
	table_scan_close(scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
step_read(struct timed *t, const struct work *w, const struct table_key *key)
{
	struct table_row row;
	enum status status = table_read(t, key, false, w->step->wanted, w->f->arena, &row);

	if (status != STATUS_OK)
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	draw_row(&row, w->step->out);
	for (size_t i = 0; i < row.cell_count; i++)
		buf_printf(w->step->out, " %llu", (unsigned long long)row.cells[i].expires_ms);
	return STATUS_OK;
}

static enum status
step_do(struct timed *t, struct work *w)
{
	struct step *s = w->step;
	const struct doc_scalar parts[] = { number(s->k), number(s->c) };
	const struct table_key key = { s->k, parts, 2 }, partition = { s->k, parts, 1 };
	bool more;

	switch (s->what) {
	case WRITE:
		s->write.key = key;
		if (s->has_stamp)
			TRY(table_stamp_set(t, 7));
		return table_write(t, &s->write);
	case CLEAR:
		return table_clear_row(t, &key);
	case CLEAR_PARTITION:
		return table_clear_partition(t, &partition, &more);
	case READ:
		return step_read(t, w, &key);
	case SCAN:
	case SCAN_BACKWARD:
		return step_scan(t, w);
	case TRUNCATE:
		return table_truncate(t->tx, str_from_cstr(s->name), t->clock, t->err);
	case ALTER:
		return table_alter(t, s->alteration);
	}
	return STATUS_OK;
}

static enum status
step_body(struct kv_tx *tx, void *arg)
{
	struct kv_tx_stats before, after;
	struct work *w = arg;
	struct catalog_db *db;
	enum status status;
	struct timed t;

	if (w->step->out)
		buf_clear(w->step->out);
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, str_from_cstr(w->step->name), &db,
			 &w->f->err));
	timed_init(&t, tx, db, &w->f->clock, &w->f->err);
	before = kv_tx_stats(tx);
	status = step_do(&t, w);
	after = kv_tx_stats(tx);
	w->step->cost.reads = after.reads - before.reads;
	w->step->cost.sets = after.sets - before.sets;
	w->step->cost.clears = after.clears - before.clears;
	catalog_db_unref(db);
	return status;
}

static struct kv_tx_stats
take(struct fixture *f, struct step s)
{
	struct work w = { .f = f, .step = &s };

	assert_int_equal(kv_run(f->store, step_body, &w, NULL, &f->err), STATUS_OK);
	return s.cost;
}

/* The value of a column; NULL and a kind of DOC_NULL: none. */
static struct table_change
change_of(uint64_t column, struct doc_scalar value)
{
	return (struct table_change){ .kind = TABLE_CHANGE_PUT, .column = column, .value = value };
}

/* Writes columns of the row (1, 1) of "ks.whole": 0 is no value. */
static struct kv_tx_stats
put(struct fixture *f, bool inserts, int64_t a, int64_t b, int64_t d)
{
	const int64_t values[] = { a, b, d };
	struct table_change changes[CHANGES];
	struct step s = { .name = names[0], .k = 1, .c = 1 };

	s.write = (struct table_write){ .inserts = inserts, .changes = changes };
	for (uint64_t i = 0; i < CHANGES; i++)
		if (values[i])
			changes[s.write.change_count++] = change_of(A + i, number(values[i]));
	return take(f, s);
}

/* ---- What the description says ---- */

struct described {
	struct fixture *f;
	bool whole;
	uint64_t format;
};

static enum status
describe_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct described *d = arg;
	struct tuple_reader r;
	struct catalog_db *db;
	enum status status;
	struct kv_future *record;
	struct str value;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, str_from_cstr(names[0]), &db, &d->f->err));
	d->whole = table_schema_of(db)->whole;
	status = table_schema_key(db, &key);
	catalog_db_unref(db);
	TRY(status);
	record = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(record));
	assert_true(kv_future_value(record, &value));
	r = tuple_reader(value);
	return tuple_next_u64(&r, &d->format);
}

static struct described
describe(struct fixture *f)
{
	struct described d = { .f = f };

	assert_int_equal(kv_run(f->store, describe_body, &d, NULL, &f->err), STATUS_OK);
	return d;
}

static bool
is_whole(struct fixture *f)
{
	return describe(f).whole;
}

static void
expect(struct fixture *f, const char *drawn)
{
	AUTO(buf_release) struct buf out = BUF_INIT(DRAWN_BYTES);
	AUTO(buf_release) struct buf wanted = BUF_INIT(DRAWN_BYTES);

	buf_append_cstr(&wanted, drawn);
	take(f, (struct step){ .what = SCAN, .name = names[0], .out = &out });
	assert_true(str_eq(buf_str(&out), buf_str(&wanted)));
	verified_none(f->store);
}

/* ---- Tests ---- */

static void
whole_rows_are_not_looked_for(void **state)
{
	static const uint64_t only[] = { B };
	static const struct table_wanted wanted = { .some = true, .ids = only, .count = 1 };
	AUTO(buf_release) struct buf out = BUF_INIT(DRAWN_BYTES);
	struct step read = { .what = READ, .name = names[0], .k = 1, .c = 1, .out = &out };
	struct fixture *f = *state;
	struct kv_tx_stats cost = put(f, true, 1, 2, 3);

	/* The clock, and the row. */
	assert_int_equal(cost.reads, 1);
	assert_int_equal(cost.clears, 0);
	assert_int_equal(put(f, true, 4, 5, 6).reads, 1);
	expect(f, "(1/1* a=4 b=5 d=6)");
	assert_int_equal(take(f, read).reads, 2);
	read.wanted = &wanted;
	assert_int_equal(take(f, read).reads, 2);
	assert_true(str_starts_with(buf_str(&out), STR("(1/1* b=5)")));
	cost = take(f, (struct step){ .what = CLEAR, .name = names[0], .k = 1, .c = 1 });
	assert_int_equal(cost.reads, 0);
	assert_int_equal(cost.clears, 1);
	expect(f, "");
	/* A row without some columns, where nothing was, leaves no leaf either. */
	assert_int_equal(put(f, true, 1, 0, 0).reads, 2);
	expect(f, "(1/1* a=1)");
	assert_true(is_whole(f));
}

static void
a_null_makes_no_leaf(void **state)
{
	struct table_change null = change_of(B, (struct doc_scalar){ .kind = DOC_NULL });
	struct step s = { .name = names[0], .k = 1, .c = 1 };
	struct fixture *f = *state;
	struct kv_tx_stats cost;

	put(f, true, 1, 2, 3);
	s.write = (struct table_write){ .changes = &null, .change_count = 1 };
	cost = take(f, s);
	/* The clock, and the row's own cell. */
	assert_int_equal(cost.reads, 2);
	assert_int_equal(cost.clears, 0);
	expect(f, "(1/1* a=1 d=3)");
	null.column = A;
	null.kind = TABLE_CHANGE_CLEAR;
	cost = take(f, s);
	assert_int_equal(cost.reads, 2);
	assert_int_equal(cost.clears, 0);
	expect(f, "(1/1* d=3)");
	assert_true(is_whole(f));
}

static void
the_first_leaf_ends_it(void **state)
{
	struct fixture *f = *state;
	const uint64_t whole = describe(f).format;

	put(f, true, 1, 2, 3);
	put(f, false, 4, 0, 0);
	assert_false(is_whole(f));
	/* A frond that knows nothing of it may have the table again. */
	assert_true(describe(f).format < whole);
	expect(f, "(1/1* a=4 b=2 d=3)");
	assert_true(put(f, true, 5, 6, 7).clears > 0);
	expect(f, "(1/1* a=5 b=6 d=7)");
	take(f, (struct step){ .what = TRUNCATE, .name = names[0] });
	assert_true(is_whole(f));
	expect(f, "");
	/* What stays of an older INSERT has its own times. */
	put(f, true, 1, 2, 3);
	f->now_ms++;
	put(f, true, 4, 0, 0);
	assert_false(is_whole(f));
	expect(f, "(1/1* a=4 b=2 d=3)");
}

static void
alterations_end_it(void **state)
{
	const struct table_property off = { STR(TABLE_PROPERTY_PACKED), STR("false") };
	const struct table_column fixed = { .name = TEXT("s"), .kind = TABLE_STATIC };
	const struct table_alteration stop = { .properties = &off, .property_count = 1 };
	const struct table_alteration add = { .add = &fixed, .add_count = 1 };
	struct fixture *f = *state;

	put(f, true, 1, 2, 3);
	take(f, (struct step){ .what = ALTER, .name = names[0], .alteration = &add });
	assert_false(is_whole(f));
	expect(f, "(1/1* a=1 b=2 d=3)");
	take(f, (struct step){ .what = TRUNCATE, .name = names[0] });
	assert_false(is_whole(f));
	take(f, (struct step){ .what = ALTER, .name = names[0], .alteration = &stop });
	put(f, true, 1, 2, 3);
	expect(f, "(1/1* a=1 b=2 d=3)");
	assert_false(is_whole(f));
}

static uint64_t
sets_of(struct fixture *f, const struct table_alteration *alteration)
{
	return take(f, (struct step){ .what = ALTER, .name = names[1], .alteration = alteration })
		.sets;
}

/* Nor does it begin to look through all rows for those that expire at another time. */
static void
the_same_lifetime_is_not_written(void **state)
{
	const struct table_alteration nothing = { 0 }, never = { .sets_ttl = true },
				      later = { .sets_ttl = true, .ttl_ms = TTL_MS };
	struct fixture *f = *state;
	uint64_t sets = sets_of(f, &nothing);

	assert_int_equal(sets_of(f, &never), sets);
	assert_true(sets_of(f, &later) > sets);
	assert_int_equal(sets_of(f, &later), sets);
	assert_true(sets_of(f, &never) > sets);
}

static void
a_stamp_ends_it(void **state)
{
	struct table_change change = change_of(A, number(9));
	struct step s = { .name = names[0], .k = 1, .c = 1, .has_stamp = true };
	struct fixture *f = *state;

	put(f, true, 1, 2, 3);
	s.write = (struct table_write){ .inserts = true, .changes = &change, .change_count = 1 };
	take(f, s);
	assert_false(is_whole(f));
	/* The stamp is older than what was written without one. */
	expect(f, "(1/1* a=1 b=2 d=3)");
}

/* Whoever has seen that there are no leaves meets whoever writes the first one. */
static void
who_looks_for_no_leaf_meets_who_writes_the_first(void **state)
{
	struct table_change change = change_of(A, number(8));
	struct step s = { .name = names[0], .k = 1, .c = 1 };
	struct fixture *f = *state;
	struct work w = { .f = f, .step = &s };
	struct kv_tx *tx;

	if (test_store_fails()) /* it may fail for another reason then */
		return;
	put(f, true, 1, 2, 3);
	s.write = (struct table_write){ .inserts = true, .changes = &change, .change_count = 1 };
	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	s.k = 2;
	assert_int_equal(step_body(tx, &w), STATUS_OK);
	put(f, false, 4, 0, 0);
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_TX_CONFLICT);
	kv_tx_free(tx);
	expect(f, "(1/1* a=4 b=2 d=3)");
}

static enum status
metadata_body(struct kv_tx *tx, void *ret)
{
	return kv_get_metadata_version(tx, ret);
}

/* After a touch of that version every process would read its descriptions again. */
static void
a_writer_that_finds_it_ended_touches_no_metadata(void **state)
{
	struct table_change change = change_of(B, number(8));
	uint8_t before[KV_VERSIONSTAMP_TX_BYTES], after[KV_VERSIONSTAMP_TX_BYTES];
	struct step s = { .name = names[0], .k = 1, .c = 1 };
	struct fixture *f = *state;
	struct work w = { .f = f, .step = &s };
	struct kv_tx *tx;

	if (test_store_fails()) /* it may fail before it has found that */
		return;
	put(f, true, 1, 2, 3);
	s.write = (struct table_write){ .changes = &change, .change_count = 1 };
	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(metadata_body(tx, before), STATUS_OK);
	put(f, false, 4, 0, 0);
	assert_int_equal(kv_run_read(f->store, metadata_body, before, NULL), STATUS_OK);
	/* What this transaction reads says still that rows are whole. */
	assert_int_equal(step_body(tx, &w), STATUS_TX_CONFLICT);
	kv_tx_free(tx);
	assert_int_equal(kv_run_read(f->store, metadata_body, after, NULL), STATUS_OK);
	assert_memory_equal(before, after, sizeof(before));
}

/* What becomes of an INSERT of `count` columns of the row (1, 1), which another one inserts. */
static enum status
insert_beside(struct fixture *f, size_t count)
{
	const struct table_change changes[] = { change_of(A, number(7)), change_of(B, number(8)),
						change_of(D, number(9)) };
	struct step s = { .name = names[0], .k = 1, .c = 1 };
	struct work w = { .f = f, .step = &s };
	enum status status;
	struct kv_tx *tx;

	s.write = (struct table_write){ .inserts = true,
					.changes = changes,
					.change_count = count };
	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(step_body(tx, &w), STATUS_OK);
	put(f, true, 4, 5, 6);
	status = kv_future_wait(kv_commit(tx));
	kv_tx_free(tx);
	return status;
}

/* It would keep other columns that were there, so none must have come. */
static void
an_insert_of_some_columns_meets_who_writes_the_row(void **state)
{
	struct fixture *f = *state;

	if (test_store_fails()) /* it may fail for another reason then */
		return;
	assert_int_equal(insert_beside(f, CHANGES), STATUS_OK);
	assert_true(is_whole(f));
	expect(f, "(1/1* a=7 b=8 d=9)");
	take(f, (struct step){ .what = TRUNCATE, .name = names[0] });
	assert_int_equal(insert_beside(f, 1), STATUS_TX_CONFLICT);
	expect(f, "(1/1* a=4 b=5 d=6)");
}

/* Puts a leaf beside a row that is whole. */
static enum status
damage_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	const struct doc_scalar parts[] = { number(1), number(1) };
	const struct table_key row = { 1, parts, 2 };
	struct fixture *f = arg;
	struct catalog_db *db;
	enum status status;
	struct timed t;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, str_from_cstr(names[0]), &db, &f->err));
	timed_init(&t, tx, db, &f->clock, &f->err);
	status = timed_write_begin(&t);
	if (status == STATUS_OK)
		status = table_key_row(&t, &row, &key);
	if (status == STATUS_OK)
		status = table_key_cell(&t, A, NULL, &key);
	if (status == STATUS_OK)
		status = timed_cell_write(&t, buf_str(&key), TIMED_LEAF, parts,
					  (struct timed_expiry){ 0 });
	catalog_db_unref(db);
	return status;
}

static void
verify_finds_a_leaf(void **state)
{
	struct fixture *f = *state;
	struct verified v;

	put(f, true, 1, 2, 3);
	assert_int_equal(kv_run(f->store, damage_body, f, NULL, &f->err), STATUS_OK);
	verified_read(f->store, &v);
	assert_int_equal(v.count, 1);
	assert_string_equal(v.last, "table_cell: a cell beside a row that is whole");
}

/* ---- Beside a table with leaves ---- */

static uint64_t
below(struct fixture *f, uint64_t n)
{
	return rand_seq_below(&f->rand, n);
}

/* What both tables answer. */
static void
compare(struct fixture *f, struct step s)
{
	AUTO(buf_release) struct buf one = BUF_INIT(DRAWN_BYTES);
	AUTO(buf_release) struct buf other = BUF_INIT(DRAWN_BYTES);

	s.name = names[0];
	s.out = &one;
	take(f, s);
	s.name = names[1];
	s.out = &other;
	take(f, s);
	assert_true(str_eq(buf_str(&one), buf_str(&other)));
	arena_clear(f->arena);
}

static void
compare_all(struct fixture *f)
{
	static const uint64_t ids[] = { A, D };
	static const struct table_wanted some = { .some = true, .ids = ids, .count = 2 };
	const struct table_wanted *wanted = below(f, 2) ? &some : NULL;

	compare(f, (struct step){ .what = READ,
				  .k = (int64_t)below(f, PARTITIONS),
				  .c = (int64_t)below(f, ROWS),
				  .wanted = wanted });
	compare(f, (struct step){ .what = SCAN, .wanted = wanted });
	compare(f, (struct step){ .what = SCAN_BACKWARD, .wanted = wanted });
}

/* A value that is short, long, or none. */
static struct doc_scalar
value_of(struct fixture *f)
{
	static char room[LONG_BYTES];

	memset(room, 'x', sizeof(room));
	if (!below(f, 4))
		return (struct doc_scalar){ .kind = DOC_NULL };
	if (!below(f, 60))
		return (struct doc_scalar){ .kind = DOC_TEXT, .text = str_of(room, LONG_BYTES) };
	return number((int64_t)below(f, 1000));
}

/* Some columns of a write; one that is no INSERT mostly takes values away, which makes no leaf. */
static void
draw_write(struct fixture *f, struct table_change changes[static CHANGES], struct step *s)
{
	bool leaf = !below(f, LEAF_EVERY);

	s->write = (struct table_write){ .inserts = !leaf && below(f, 5) != 0, .changes = changes };
	if (!below(f, 4))
		s->write.expiry = (struct timed_expiry){ .kind = TIMED_EXPIRY_AT,
							 .ms = f->now_ms + 1 + below(f, TTL_MS) };
	for (uint64_t id = A; id <= D; id++) {
		struct table_change *c = &changes[s->write.change_count];

		/* Mostly a row has all columns at once, so that it stays whole. */
		if (!below(f, s->write.inserts ? 100 : 3))
			continue;
		*c = change_of(id, value_of(f));
		if (!s->write.inserts && !leaf)
			c->value = (struct doc_scalar){ .kind = DOC_NULL };
		if (leaf)
			c->value = number(1);
		c->expiry = s->write.expiry;
		s->write.change_count++;
	}
}

static void
operate(struct fixture *f)
{
	struct table_change changes[CHANGES];
	struct step s = { .k = (int64_t)below(f, PARTITIONS), .c = (int64_t)below(f, ROWS) };
	uint64_t which = below(f, 100);

	draw_write(f, changes, &s);
	if (which < 10)
		s.what = CLEAR;
	else if (which < 12)
		s.what = CLEAR_PARTITION;
	else if (which < 13)
		s.what = TRUNCATE;
	for (size_t i = 0; i < 2; i++) {
		s.name = names[i];
		take(f, s);
	}
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

static void
whole_rows_are_as_others(void **state)
{
	const char *seed = getenv("FROND_TEST_SEED");
	struct fixture *f = *state;
	size_t whole = 0;

	if (seed)
		f->rand.state = strtoull(seed, NULL, 10);
	else
		rand_bytes(&f->rand.state, sizeof(f->rand.state));
	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)f->rand.state);
	for (int i = 0; i < OPERATIONS; i++) {
		operate(f);
		f->now_ms += below(f, 50);
		if (!below(f, 40))
			sweep(f);
		compare_all(f);
		whole += is_whole(f);
	}
	assert_in_range(whole, OPERATIONS / 10, OPERATIONS - 1);
	verified_none(f->store);
}

/* ---- The program ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	const struct table_property packed = { STR(TABLE_PROPERTY_PACKED), STR("true") };
	struct table_schema schema = { .columns = columns,
				       .column_count = sizeof(columns) / sizeof(*columns),
				       .hash_count = 1,
				       .key_count = 2 };

	(void)arg;
	TRY(table_keyspace_create(tx, &(struct table_keyspace){ .name = STR("ks") }, NULL));
	TRY(table_create(tx, str_from_cstr(names[1]), &schema, 0, NULL));
	schema.properties = &packed;
	schema.property_count = 1;
	return table_create(tx, str_from_cstr(names[0]), &schema, 0, NULL);
}

static int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	test_show_failures();
	tables_register();
	test_make_dir("whole", f->dir, sizeof(f->dir));
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
		TEST(whole_rows_are_not_looked_for),
		TEST(a_null_makes_no_leaf),
		TEST(the_first_leaf_ends_it),
		TEST(alterations_end_it),
		TEST(the_same_lifetime_is_not_written),
		TEST(a_stamp_ends_it),
		TEST(who_looks_for_no_leaf_meets_who_writes_the_first),
		TEST(a_writer_that_finds_it_ended_touches_no_metadata),
		TEST(an_insert_of_some_columns_meets_who_writes_the_row),
		TEST(verify_finds_a_leaf),
		TEST(whole_rows_are_as_others),
	};

	return cmocka_run_group_tests_name("table_whole", tests, NULL, NULL);
}
