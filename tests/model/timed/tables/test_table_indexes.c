/*
 * Indexes of tables: unique values, what has expired, two writers of one value, builds that end
 * after any step, and damage, which the check finds in both directions; what is read of a row for
 * an index, and for some of its columns. The random test
 * (test_tables_random.c) has the rest.
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
#include <unistd.h>

#include <cmocka.h>

#include "catalog/store_format.h"
#include "index/engine/build.h"
#include "model/timed/tables/index.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/tables_int.h"
#include "packing.h"
#include "store.h"
#include "test_tables.h"
#include "verified.h"

enum {
	K = 1, /* ids of columns */
	V,
	W,
	MANY = 2500, /* rows: more than a step of a build takes */
	ARENA_BYTES = 64 * 1024 * 1024,
};

static const struct table_column columns[] = {
	{ .name = TEXT("k"), .kind = TABLE_HASH },
	{ .name = TEXT("v"), .kind = TABLE_REGULAR },
	{ .name = TEXT("w"), .kind = TABLE_REGULAR },
};

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct err err;
};

/* Any text of the caller's: quotes, and letters beyond ASCII. */
#define SPEC "the caller's \"Ã¤\"\t\\"

/* One transaction: what it does, and how it ends. */
struct step {
	struct fixture *f;
	enum status (*run)(struct timed *t, struct step *s);
	int64_t k, v, w; /* negative: null */
	size_t count;
	uint64_t ttl_ms;
	bool unique, both, updates;
	uint64_t number;
	uint64_t pairs; /* that the attempt under way has read */
	struct table_row row;
	char found[200];
};

static enum status
step_body(struct kv_tx *tx, void *arg)
{
	struct step *s = arg;
	struct catalog_db *db;
	struct timed t;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.t"), &db, &s->f->err));
	timed_init(&t, tx, db, NULL, &s->f->err);
	status = s->run(&t, s);
	catalog_db_unref(db);
	return status;
}

static enum status
run(struct fixture *f, struct step s)
{
	s.f = f;
	return kv_run(f->store, step_body, &s, NULL, &f->err);
}

static struct doc_scalar
value(int64_t n)
{
	return n < 0 ? (struct doc_scalar){ .kind = DOC_NULL } : number(n);
}

static enum status
put(struct timed *t, struct step *s)
{
	for (size_t i = 0; i <= s->count; i++) {
		const struct doc_scalar k = number(s->k + (int64_t)i);
		const struct timed_expiry expiry = { s->ttl_ms ? TIMED_EXPIRY_AFTER
							       : TIMED_EXPIRY_NEVER,
						     s->ttl_ms };
		const struct table_change changes[] = {
			{ .column = V, .value = value(s->v), .expiry = expiry },
			{ .column = W, .value = value(s->w), .expiry = expiry },
		};
		const struct table_write write = { .key = { s->k + (int64_t)i, &k, 1 },
						   .inserts = !s->updates,
						   .changes = changes,
						   .change_count = 2 };

		TRY(table_write(t, &write));
	}
	return STATUS_OK;
}

static enum status
clear(struct timed *t, struct step *s)
{
	const struct doc_scalar k = number(s->k);

	return table_clear_row(t, &(struct table_key){ s->k, &k, 1 });
}

static enum status
create(struct timed *t, struct step *s)
{
	static const struct table_index_column both[] = { { .column = V }, { .column = W } };
	const struct table_index terms = { .name = STR("i"),
					   .spec = STR(SPEC),
					   .is_unique = s->unique,
					   .columns = both,
					   .column_count = s->both ? 2 : 1 };

	TRY(table_index_create(t, &terms, &s->number));
	return STATUS_OK;
}

static enum status
drop(struct timed *t, struct step *s)
{
	(void)s;
	return table_index_drop(t, table_index_named(t->db, STR("i")));
}

static uint64_t
create_index(struct fixture *f, bool unique, bool both)
{
	struct step s = { .f = f, .run = create, .unique = unique, .both = both };

	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	return s.number;
}

static enum status
state(struct timed *t, struct step *s)
{
	const struct table_index *index = table_index_named(t->db, STR("i"));

	snprintf(s->found, sizeof(s->found), "%s",
		 index->is_ready     ? "ready"
		 : index->has_failed ? "failed"
				     : "building");
	return STATUS_OK;
}

static enum status
has_spec(struct timed *t, struct step *s)
{
	(void)s;
	assert_true(str_eq(table_index_named(t->db, STR("i"))->spec, STR(SPEC)));
	return STATUS_OK;
}

static enum status
find(struct timed *t, struct step *s)
{
	const struct index_typed_value v = { .first = number(s->v) };
	const struct table_index_options options = { .interval = { .equal = &v,
								   .equal_count = 1 } };
	struct table_index_scan *scan;
	struct table_row row;
	enum status status;

	s->count = 0;
	TRY(table_index_open(t, table_index_named(t->db, STR("i")), &options, &scan));
	while ((status = table_index_next(scan, s->f->arena, &row)) == STATUS_OK) {
		size_t n;
		const struct table_cell *cell = table_cells_of(
			row.cells, row.cell_count, table_column_by_id(table_schema_of(t->db), V),
			&n);

		s->count += n && cell->value.n == s->v;
	}
	table_index_close(scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static size_t
count(struct fixture *f, int64_t v)
{
	struct step s = { .f = f, .run = find, .v = v };

	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	return s.count;
}

static void
assert_state(struct fixture *f, const char *wanted)
{
	struct step s = { .f = f, .run = state };

	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	assert_string_equal(s.found, wanted);
}

static enum status
build(struct fixture *f, uint64_t number, unsigned steps)
{
	return table_index_build(f->store, STR("ks.t"), number, steps, &f->err);
}

/* ---- Tests ---- */

static void
unique_values_are_refused(void **arg)
{
	struct fixture *f = *arg;

	create_index(f, true, false);
	assert_int_equal(run(f, (struct step){ .run = has_spec }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 1, .v = 5 }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 2, .v = 5 }), STATUS_DUPLICATE);
	assert_non_null(strstr(f->err.text, "unique index i"));
	assert_int_equal(run(f, (struct step){ .run = put, .k = 1, .v = 5 }), STATUS_OK);
	/* Within one transaction, too. */
	assert_int_equal(run(f, (struct step){ .run = put, .k = 7, .v = 6, .count = 1 }),
			 STATUS_DUPLICATE);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 1, .v = 6 }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 2, .v = 5 }), STATUS_OK);
	assert_int_equal(count(f, 5), 1);
	assert_int_equal(count(f, 6), 1);
	verified_none(f->store);
}

static void
nulls_are_no_duplicates(void **arg)
{
	struct fixture *f = *arg;

	create_index(f, true, true);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 1, .v = 5, .w = -1 }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 2, .v = 5, .w = -1 }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 3, .v = -1, .w = 3 }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 4, .v = -1, .w = 3 }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 5, .v = 5, .w = 3 }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 6, .v = 5, .w = 3 }),
			 STATUS_DUPLICATE);
	verified_none(f->store);
}

/* ---- A check in ranges, beside a writer ---- */

enum {
	WRITER_ROWS = 20,
	WRITER_LEAST = 60, /* transactions */
};

struct writer {
	struct fixture *f;
	_Atomic unsigned written;
	_Atomic bool ends;
	enum status status;
};

static void *
writer_main(void *arg)
{
	struct writer *w = arg;
	struct fixture own = *w->f; /* with an error of its own */

	for (unsigned i = 0; !atomic_load(&w->ends) && w->status == STATUS_OK; i++) {
		w->status = run(&own, (struct step){ .run = i % 4 == 3 ? clear : put,
						     .k = i * 7 % WRITER_ROWS,
						     .v = i % 5,
						     .w = i,
						     .ttl_ms = i % 2 ? 1000000 : 0 });
		atomic_fetch_add(&w->written, 1);
	}
	return NULL;
}

static void
rows_and_entries_fit_beside_a_writer(void **arg)
{
	struct writer w = { .f = *arg };
	pthread_t thread;

	create_index(w.f, false, true);
	assert_int_equal(pthread_create(&thread, NULL, writer_main, &w), 0);
	do
		verified_beside_writers(w.f->store);
	while (atomic_load(&w.written) < WRITER_LEAST);
	atomic_store(&w.ends, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(w.status, STATUS_OK);
	verified_none(w.f->store);
}

static enum status
put_counted(struct timed *t, struct step *s)
{
	const uint64_t before = kv_tx_stats(t->tx).keys_read;
	enum status status = put(t, s);

	s->number = kv_tx_stats(t->tx).keys_read - before;
	return status;
}

/* How many pairs are read to write the row, in a transaction of its own. */
static uint64_t
pairs_read(struct fixture *f, struct step s)
{
	s.f = f;
	s.run = put_counted;
	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	return s.number;
}

static enum status
create_of_w(struct timed *t, struct step *s)
{
	static const struct table_index_column w = { .column = W };
	const struct table_index terms = {
		.name = STR("j"), .spec = STR(SPEC), .columns = &w, .column_count = 1
	};

	return table_index_create(t, &terms, &s->number);
}

static enum status
put_w_counted(struct timed *t, struct step *s)
{
	const uint64_t before = kv_tx_stats(t->tx).keys_read;
	const struct doc_scalar k = number(s->k);
	const struct table_change change = { .column = W, .value = value(s->w) };
	const struct table_write write = { .key = { s->k, &k, 1 },
					   .changes = &change,
					   .change_count = 1 };
	enum status status = table_write(t, &write);

	s->number = kv_tx_stats(t->tx).keys_read - before;
	return status;
}

/* Which columns are read depends on the indexes of those that change, and on no other. */
static void
an_index_of_other_columns_reads_nothing(void **arg)
{
	struct fixture *f = *arg;
	struct step s = { .f = f, .run = put_w_counted, .k = 1, .w = 7 };
	uint64_t alone;

	assert_int_equal(run(f, (struct step){ .run = put, .k = 1, .v = 5, .w = 6 }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = create_of_w }), STATUS_OK);
	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	/* From now on the entry of before is there. */
	s.w = 8;
	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	alone = s.number;
	create_index(f, false, false);
	s.w = 9;
	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	/* An attempt that has taken place unseen has left no entry to be read. */
	if (!test_store_fails())
		assert_int_equal(s.number, alone);
	verified_none(f->store);
}

static void
only_what_an_index_looks_at_is_read(void **arg)
{
	struct fixture *f = *arg;
	uint64_t narrow, wide;

	assert_int_equal(build(f, create_index(f, false, false), 5), STATUS_OK);
	assert_state(f, "ready");
	assert_int_equal(run(f, (struct step){ .run = put, .k = 1, .v = 6, .w = -1 }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 2, .v = 6, .w = 4 }), STATUS_OK);
	/* What the other column has makes no difference, before and behind the write; a packed row
	 * is read as one. */
	narrow = pairs_read(f, (struct step){ .k = 1, .v = 5, .w = -1 });
	wide = pairs_read(f, (struct step){ .k = 2, .v = 5, .w = 3 });
	if (!getenv("FROND_TEST_FAULTS") && !getenv("FROND_TEST_PACKED"))
		assert_int_equal(wide, narrow);
	assert_int_equal(count(f, 5), 2);
	assert_int_equal(count(f, 6), 0);
	verified_none(f->store);
}

/* An index of one column, `number`. */
static enum status
create_of_column(struct timed *t, struct step *s)
{
	const struct table_index_column column = { .column = s->number };
	const struct table_index terms = { .name = s->number == V ? STR("i") : STR("j"),
					   .spec = STR(SPEC),
					   .columns = &column,
					   .column_count = 1 };

	return table_index_create(t, &terms, &s->number);
}

/* Also where the column of a later index comes before that of an earlier one. */
static void
all_that_the_indexes_look_at_is_read(void **arg)
{
	struct fixture *f = *arg;

	assert_int_equal(run(f, (struct step){ .run = create_of_column, .number = W }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = create_of_column, .number = V }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 1, .v = 5, .w = 3 }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 1, .v = 6, .w = 4 }), STATUS_OK);
	assert_int_equal(count(f, 5), 0);
	assert_int_equal(count(f, 6), 1);
	verified_none(f->store);
}

/* What two indexes look at is read as often as what one does. */
static void
a_column_of_two_indexes_is_read_once(void **arg)
{
	struct fixture *f = *arg;
	uint64_t apart, shared;

	assert_int_equal(run(f, (struct step){ .run = create_of_w }), STATUS_OK);
	create_index(f, false, false);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 1, .v = 5, .w = 3 }), STATUS_OK);
	apart = pairs_read(f, (struct step){ .k = 1, .v = 6, .w = 4 });
	assert_int_equal(run(f, (struct step){ .run = drop }), STATUS_OK);
	assert_int_equal(build(f, create_index(f, false, true), 5), STATUS_OK);
	shared = pairs_read(f, (struct step){ .k = 1, .v = 7, .w = 5 });
	if (!test_store_fails())
		assert_int_equal(shared, apart);
	assert_int_equal(count(f, 6), 0);
	assert_int_equal(count(f, 7), 1);
	verified_none(f->store);
}

/* ---- Which of many columns are read ---- */

/* The names of the columns of "ks.wide", whose ids are 1, 2 …: its key's first. */
static const char wide_names[] = "kabcdefghij";

enum {
	WIDE = sizeof(wide_names) - 1,
};

/* What is done with the row `k` of "ks.wide", or with its table, and those of its columns. */
struct wide {
	struct fixture *f;
	int64_t k, value;
	const char *letters; /* of columns, in order */
	uint64_t pairs;      /* that the attempt under way has read */
};

static uint64_t
wide_id(char name)
{
	return (uint64_t)(strchr(wide_names, name) - wide_names) + 1;
}

static enum status
wide_create(struct kv_tx *tx, void *arg)
{
	struct table_column all[WIDE] = { 0 };
	const struct table_schema schema = { .columns = all, .column_count = WIDE };

	(void)arg;
	for (size_t i = 0; i < WIDE; i++) {
		all[i].name = str_of(&wide_names[i], 1);
		all[i].kind = i ? TABLE_REGULAR : TABLE_HASH;
	}
	return packing_create(tx, STR("ks.wide"), &schema, 0);
}

/* An index for each of the columns. */
static enum status
wide_create_indexes(struct timed *t, struct wide *w)
{
	for (const char *name = w->letters; *name; name++) {
		const struct table_index_column column = { .column = wide_id(*name) };
		const struct table_index terms = { .name = str_of(name, 1),
						   .spec = STR(SPEC),
						   .columns = &column,
						   .column_count = 1 };
		uint64_t number;

		TRY(table_index_create(t, &terms, &number));
	}
	return STATUS_OK;
}

static enum status
wide_put(struct timed *t, struct wide *w)
{
	const uint64_t before = kv_tx_stats(t->tx).keys_read;
	const struct doc_scalar k = number(w->k);
	struct table_change changes[WIDE];
	struct table_write write = { .key = { w->k, &k, 1 }, .changes = changes };

	for (const char *name = w->letters; *name; name++)
		changes[write.change_count++] = (struct table_change){ .column = wide_id(*name),
								       .value = number(w->value) };
	TRY(table_write(t, &write));
	w->pairs = kv_tx_stats(t->tx).keys_read - before;
	return STATUS_OK;
}

static enum status
wide_body(struct kv_tx *tx, void *arg)
{
	struct wide *w = arg;
	struct catalog_db *db;
	struct timed t;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.wide"), &db, &w->f->err));
	timed_init(&t, tx, db, NULL, &w->f->err);
	status = w->k ? wide_put(&t, w) : wide_create_indexes(&t, w);
	catalog_db_unref(db);
	return status;
}

/* The pairs that are read to write what indexes look at, in a row that has these columns. */
static uint64_t
wide_pairs_read(struct fixture *f, int64_t k, const char *letters, const char *indexed)
{
	struct wide w = { .f = f, .k = k, .letters = letters, .value = 1 };

	assert_int_equal(kv_run(f->store, wide_body, &w, NULL, &f->err), STATUS_OK);
	w.letters = indexed;
	w.value = 2;
	assert_int_equal(kv_run(f->store, wide_body, &w, NULL, &f->err), STATUS_OK);
	verified_none(f->store);
	return w.pairs;
}

static void
expect_same_pairs_read(struct fixture *f, const char *indexed, const char *some)
{
	struct wide w = { .f = f, .letters = indexed };
	uint64_t pairs_of_some, pairs_of_all;

	assert_int_equal(kv_run(f->store, wide_create, NULL, NULL, &f->err), STATUS_OK);
	assert_int_equal(kv_run(f->store, wide_body, &w, NULL, &f->err), STATUS_OK);
	pairs_of_some = wide_pairs_read(f, 1, some, indexed);
	pairs_of_all = wide_pairs_read(f, 2, wide_names + 1, indexed);
	if (!test_store_fails())
		assert_int_equal(pairs_of_all, pairs_of_some);
}

static void
what_lies_between_few_columns_of_indexes_is_not_read(void **arg)
{
	expect_same_pairs_read(*arg, "bdfh", "bdfh");
}

/* They are read as a range, with what lies between. */
static void
what_lies_beyond_many_columns_of_indexes_is_not_read(void **arg)
{
	/* What is packed lies in front of all columns, so these are read from the first one on. */
	expect_same_pairs_read(*arg, "bcdfi",
			       getenv("FROND_TEST_PACKED") ? "abcdefghi" : "bcdefghi");
}

/* Reads one column of the row: how many pairs that takes, and whether it has a value. */
static enum status
read_one(struct timed *t, struct step *s)
{
	const struct doc_scalar k = number(s->k);
	const struct table_key key = { s->k, &k, 1 };
	const uint64_t ids[] = { s->number };
	const struct table_wanted wanted = { .some = true, .ids = ids, .count = s->number != 0 };
	const uint64_t before = kv_tx_stats(t->tx).keys_read;
	enum status status = table_read(t, &key, false, &wanted, s->f->arena, &s->row);

	s->pairs = kv_tx_stats(t->tx).keys_read - before;
	return status;
}

/* The pairs for a column of row 1, or for none (0); the row has so many of its cells. */
static uint64_t
pairs_of(struct fixture *f, uint64_t column, size_t cells)
{
	struct step s = { .f = f, .run = read_one, .k = 1, .number = column };

	assert_int_equal(kv_run_read(f->store, step_body, &s, &f->err), STATUS_OK);
	assert_int_equal(s.row.cell_count, cells);
	assert_true(s.row.is_row);
	return s.pairs;
}

static void
what_lies_beside_wanted_columns_is_not_read(void **arg)
{
	struct fixture *f = *arg;
	uint64_t none, v, w;

	assert_int_equal(run(f, (struct step){ .run = put, .k = 1, .v = 5, .w = 3 }), STATUS_OK);
	none = pairs_of(f, 0, 0);
	v = pairs_of(f, V, 1);
	w = pairs_of(f, W, 1);
	if (!getenv("FROND_TEST_FAULTS")) {
		assert_int_equal(v, none + 1);
		assert_int_equal(w, none + 1);
	}
	/* It is there by a column that is not wanted, before and behind the one that is. */
	assert_int_equal(run(f, (struct step){ .run = clear, .k = 1 }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = read_one, .k = 1, .number = V }),
			 STATUS_NOT_FOUND);
	assert_int_equal(
		run(f, (struct step){ .run = put, .k = 1, .v = -1, .w = 3, .updates = true }),
		STATUS_OK);
	(void)pairs_of(f, V, 0);
	(void)pairs_of(f, 0, 0);
	assert_int_equal(
		run(f, (struct step){ .run = put, .k = 1, .v = 5, .w = -1, .updates = true }),
		STATUS_OK);
	(void)pairs_of(f, W, 0);
}

static void
what_has_expired_makes_way(void **arg)
{
	struct fixture *f = *arg;
	uint64_t number;

	number = create_index(f, true, false);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 1, .v = 5, .ttl_ms = 30 }),
			 STATUS_OK);
	usleep(60 * 1000);
	assert_int_equal(count(f, 5), 0);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 2, .v = 5 }), STATUS_OK);
	assert_int_equal(count(f, 5), 1);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 3, .v = 5 }), STATUS_DUPLICATE);
	assert_true(number > 0);
	verified_none(f->store);
}

static void
what_has_expired_fails_no_build(void **arg)
{
	struct fixture *f = *arg;
	uint64_t number;

	assert_int_equal(run(f, (struct step){ .run = put, .k = 1, .v = 5, .ttl_ms = 30 }),
			 STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 2, .v = 5 }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 3, .v = 5, .ttl_ms = 30 }),
			 STATUS_OK);
	usleep(60 * 1000);
	number = create_index(f, true, false);
	assert_int_equal(build(f, number, 5), STATUS_OK);
	assert_state(f, "ready");
	assert_int_equal(count(f, 5), 1);
	verified_none(f->store);
}

static void
a_build_over_duplicates_fails(void **arg)
{
	struct fixture *f = *arg;
	uint64_t number;

	assert_int_equal(run(f, (struct step){ .run = put, .k = 1, .v = 5, .count = 3 }),
			 STATUS_OK);
	number = create_index(f, true, false);
	assert_int_equal(build(f, number, 5), STATUS_OK);
	assert_state(f, "failed");
	/* Nobody keeps it. */
	assert_int_equal(run(f, (struct step){ .run = put, .k = 9, .v = 5 }), STATUS_OK);
	verified_none(f->store);
}

static void
a_build_goes_on_where_it_ended(void **arg)
{
	struct fixture *f = *arg;
	uint64_t number;

	for (int64_t k = 0; k < MANY; k += 500)
		assert_int_equal(run(f, (struct step){ .run = put, .k = k, .v = 1, .count = 499 }),
				 STATUS_OK);
	number = create_index(f, false, false);
	assert_int_equal(build(f, number, 1), STATUS_OK);
	assert_state(f, "building");
	/* Before the place where it has come to, and behind it. */
	assert_int_equal(run(f, (struct step){ .run = put, .k = 0, .v = 2 }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = put, .k = MANY - 1, .v = 2 }), STATUS_OK);
	verified_none(f->store);
	assert_int_equal(build(f, number, 100), STATUS_OK);
	assert_state(f, "ready");
	assert_int_equal(count(f, 1), MANY - 2);
	assert_int_equal(count(f, 2), 2);
	verified_none(f->store);
}

/* ---- A build with rows that come between those it has read ---- */

enum {
	BETWEEN = 50, /* rows between two that come in one attempt */
};

static struct obstacle {
	struct fixture *f;
	const struct index_documents *rows;
	unsigned attempts;
	unsigned again; /* of these, for a stretch that there was an attempt for before */
	char after[KV_LIMIT_KEY_BYTES];
	size_t after_bytes;
} * obstacle;

static enum status
find_documents(struct timed *t, struct step *s)
{
	(void)s;
	obstacle->rows = index_documents_of(t->db);
	return STATUS_OK;
}

static enum status
put_between(struct timed *t, struct step *s)
{
	struct step one = *s;

	for (int64_t k = 1 + 2 * (int64_t)obstacle->attempts; k < 2 * MANY; k += 2 * BETWEEN) {
		one.k = k;
		TRY(put(t, &one));
	}
	return STATUS_OK;
}

static enum status
obstructed_visit(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
		 const struct index_stretch *stretch, struct arena *arena, index_visitor *visitor,
		 void *arg, struct index_passed *ret)
{
	if (obstacle->attempts &&
	    str_eq(stretch->after, str_of(obstacle->after, obstacle->after_bytes)))
		obstacle->again++;
	obstacle->after_bytes = stretch->after.len;
	if (stretch->after.len)
		memcpy(obstacle->after, stretch->after.ptr, stretch->after.len);
	TRY(obstacle->rows->visit(tx, db, def, stretch, arena, visitor, arg, ret));
	assert_int_equal(run(obstacle->f, (struct step){ .run = put_between, .v = 2 }), STATUS_OK);
	obstacle->attempts++;
	return STATUS_OK;
}

/*
 * The first attempt meets one of them, since it conflicts with all rows of its stretch. From then
 * on only rows that were read can be in the way, and none of these is written.
 */
static void
new_rows_are_in_the_way_of_a_build_once(void **arg)
{
	struct fixture *f = *arg;
	struct obstacle o = { .f = f };
	struct index_documents obstructed;
	uint64_t number;

	for (int64_t k = 0; k < MANY; k++)
		assert_int_equal(run(f, (struct step){ .run = put, .k = 2 * k, .v = 1 }),
				 STATUS_OK);
	number = create_index(f, false, false);
	obstacle = &o;
	assert_int_equal(run(f, (struct step){ .run = find_documents }), STATUS_OK);
	obstructed = *o.rows;
	obstructed.visit = obstructed_visit;
	index_documents_register(&obstructed);
	assert_int_equal(build(f, number, 100), STATUS_OK);
	index_documents_register(o.rows);
	assert_state(f, "ready");
	/*
	 * What is slow gets smaller steps, and a busy cluster may have some of them begin again.
	 * With faults the first attempt may have failed before it could meet anything.
	 */
	if (!test_store_fails())
		assert_in_range(o.again, 1, 1 + o.attempts / 4);
	assert_int_equal(count(f, 1), MANY);
	verified_none(f->store);
}

/* Two transactions that have both seen that nobody has a value. */
static void
two_writers_of_a_unique_value_conflict(void **arg)
{
	struct fixture *f = *arg;
	struct step a = { .f = f, .run = put, .k = 1, .v = 5 }, b = a;
	struct kv_tx *x, *y;

	if (test_store_fails()) /* either may fail for another reason then */
		return;
	create_index(f, true, false);
	/* The first leaf of a table changes its description, and whoever writes it begins again. */
	assert_int_equal(run(f, (struct step){ .run = put, .k = 3, .v = 6 }), STATUS_OK);
	b.k = 2;
	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &x), STATUS_OK);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &y), STATUS_OK);
	assert_int_equal(step_body(x, &a), STATUS_OK);
	assert_int_equal(step_body(y, &b), STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(x)), STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(y)), STATUS_TX_CONFLICT);
	kv_tx_free(x);
	kv_tx_free(y);
	verified_none(f->store);
}

/* Clears the first entry, or adds one that no row has. */
static enum status
damage(struct timed *t, struct step *s)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(KV_LIMIT_KEY_BYTES);
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	const struct kv_range_options options = { .limit = 1, .mode = KV_READ };
	struct kv_range range;
	struct kv_future *found;

	index_key_entries(&begin, t->db, table_index_named(t->db, STR("i"))->number);
	buf_append_str(&key, buf_str(&begin));
	buf_append_byte(&key, 0xff);
	found = kv_get_range(t->tx, buf_str(&begin), buf_str(&key), &options);
	TRY(kv_future_wait(found));
	range = kv_future_range(found);
	assert_int_equal(range.count, 1);
	if (s->unique)
		return kv_clear(t->tx, range.pairs[0].key);
	buf_clear(&key);
	buf_append_str(&key, range.pairs[0].key);
	/* The component is another one, of the same length. */
	key.ptr[begin.len + 3] ^= 1;
	return kv_set(t->tx, buf_str(&key), range.pairs[0].value);
}

static void
the_check_finds_what_is_missing_and_what_is_too_much(void **arg)
{
	struct fixture *f = *arg;
	struct verified found;

	create_index(f, false, false);
	assert_int_equal(run(f, (struct step){ .run = put, .k = 1, .v = 5 }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = damage }), STATUS_OK);
	verified_read(f->store, &found);
	assert_non_null(strstr(found.all, "table_index_stray: no document has this entry"));
	assert_non_null(strstr(found.all, "table_index: the counter says"));
	assert_int_equal(run(f, (struct step){ .run = damage, .unique = true }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = damage, .unique = true }), STATUS_OK);
	verified_read(f->store, &found);
	assert_non_null(strstr(found.all, "table_index: the document has no entry in the index"));
}

/* ---- Paths into documents ---- */

static const struct str path[] = { TEXT("a"), TEXT("1") };

/* Of a text what it says; or, for a unique one, the JSON that lies there. */
static enum status
create_of_path(struct timed *t, struct step *s)
{
	const struct table_index_column column = { .column = W,
						   .part = s->unique ? INDEX_TYPED_JSON
								     : INDEX_TYPED_JSON_TEXT,
						   .steps = path,
						   .step_count = 2 };
	const struct table_index terms = { .name = STR("i"),
					   .columns = &column,
					   .column_count = 1 };

	return table_index_create(t, &terms, &s->number);
}

/* A path of no steps, or with a part that has none. */
static enum status
create_of_no_path(struct timed *t, struct step *s)
{
	const struct table_index_column column = { .column = W,
						   .part = s->unique ? INDEX_TYPED_JSON
								     : INDEX_TYPED_COLUMN,
						   .steps = path,
						   .step_count = s->unique ? 0 : 2 };
	const struct table_index terms = { .name = STR("i"),
					   .columns = &column,
					   .column_count = 1 };

	return table_index_create(t, &terms, &s->number);
}

/* Row k has the document, or a value that is none. */
static enum status
put_document(struct timed *t, struct step *s)
{
	const struct doc_scalar k = number(s->k);
	const struct table_change change = {
		.column = W, .value = { .kind = DOC_TEXT, .text = str_from_cstr(s->found) }
	};
	const struct table_write write = {
		.key = { s->k, &k, 1 }, .inserts = true, .changes = &change, .change_count = 1
	};

	return table_write(t, &write);
}

static void
put_text(struct fixture *f, int64_t k, const char *text)
{
	struct step s = { .run = put_document, .k = k };

	snprintf(s.found, sizeof(s.found), "%s", text);
	assert_int_equal(run(f, s), STATUS_OK);
}

/* Counts the rows that have the text at the path. */
static enum status
find_text(struct timed *t, struct step *s)
{
	const struct index_typed_value v = { .first = { .kind = DOC_TEXT,
							.text = str_from_cstr(s->found) } };
	const struct table_index_options options = { .interval = { .equal = &v,
								   .equal_count = 1 } };
	struct table_index_scan *scan;
	struct table_row row;
	enum status status;

	s->count = 0;
	TRY(table_index_open(t, table_index_named(t->db, STR("i")), &options, &scan));
	while ((status = table_index_next(scan, s->f->arena, &row)) == STATUS_OK)
		s->count++;
	table_index_close(scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static size_t
count_text(struct fixture *f, const char *text)
{
	struct step s = { .f = f, .run = find_text };

	snprintf(s.found, sizeof(s.found), "%s", text);
	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	return s.count;
}

static void
a_path_leads_into_documents(void **arg)
{
	struct fixture *f = *arg;
	struct step s = { .f = f, .run = create_of_path };
	struct verified found;

	put_text(f, 1, "{\"a\":[0,\"x\"]}");
	put_text(f, 2, "{\"a\":{\"1\":7}}");
	/* There is nothing in these. */
	put_text(f, 3, "{\"a\":[0]}");
	put_text(f, 4, "{\"a\":[0,null]}");
	put_text(f, 5, "this is no document");
	put_text(f, 6, "{\"a\":{\"01\":1}}");
	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	assert_int_equal(build(f, s.number, 5), STATUS_OK);
	assert_state(f, "ready");
	put_text(f, 7, "{\"a\":[0,\"x\"]}");
	put_text(f, 2, "{\"a\":[0,[1,2]]}");
	assert_int_equal(count_text(f, "x"), 2);
	assert_int_equal(count_text(f, "7"), 0);
	assert_int_equal(count_text(f, "[1,2]"), 1);
	assert_int_equal(count_text(f, "null"), 0);
	assert_int_equal(count_text(f, "1"), 0);
	verified_none(f->store);
	/* One entry of another text, and one that is not there. */
	assert_int_equal(run(f, (struct step){ .run = damage }), STATUS_OK);
	verified_read(f->store, &found);
	assert_non_null(strstr(found.all, "table_index_stray: no document has this entry"));
	assert_int_equal(run(f, (struct step){ .run = damage, .unique = true }), STATUS_OK);
	assert_int_equal(run(f, (struct step){ .run = damage, .unique = true }), STATUS_OK);
	verified_read(f->store, &found);
	assert_non_null(strstr(found.all, "table_index: the document has no entry in the index"));
}

/* A null is JSON, though no text. */
static void
a_path_leads_to_json(void **arg)
{
	struct fixture *f = *arg;
	struct step s = { .f = f, .run = create_of_path, .unique = true };

	put_text(f, 1, "{\"a\":[0,\"x\"]}");
	put_text(f, 2, "{\"a\":[0,null]}");
	put_text(f, 3, "{\"a\":[0]}");
	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	assert_int_equal(build(f, s.number, 5), STATUS_OK);
	put_text(f, 4, "{\"a\":[0, null]}");
	assert_int_equal(count_text(f, "null"), 2);
	assert_int_equal(count_text(f, "\"x\""), 1);
	assert_int_equal(count_text(f, "x"), 0);
	verified_none(f->store);
}

static void
a_path_has_steps_and_leads_into_a_document(void **arg)
{
	struct fixture *f = *arg;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(run(f, (struct step){ .run = create_of_no_path, .unique = i }),
				 STATUS_INVALID);
		assert_non_null(strstr(f->err.text, "cannot be indexed in this way"));
	}
}

/* The format that the definition is stored in: the first element of its record. */
static enum status
read_format(struct timed *t, struct step *s)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct kv_future *record;
	struct tuple_reader r;
	struct str value;

	index_key_def(&key, t->db, table_index_named(t->db, STR("i"))->number);
	record = kv_get(t->tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(record));
	assert_true(kv_future_value(record, &value));
	r = tuple_reader(value);
	return tuple_next_u64(&r, &s->number);
}

static enum status
draw_definition(struct timed *t, struct step *s)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	AUTO(buf_release) struct buf space = BUF_INIT(KV_LIMIT_KEY_BYTES);
	AUTO(buf_release) struct buf drawn = BUF_INIT(10000);
	struct kv_future *record;
	struct str value, tail;

	buf_append_str(&space, t->db->prefix);
	tuple_put_u64(&space, INDEX_SPACE_DEFS);
	index_key_def(&key, t->db, table_index_named(t->db, STR("i"))->number);
	tail = str_skip(buf_str(&key), space.len);
	record = kv_get(t->tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(record));
	assert_true(kv_future_value(record, &value));
	assert_true(t->db->kind->draw_pair(t->db, INDEX_SPACE_DEFS, tail, value, &drawn));
	snprintf(s->found, sizeof(s->found), "%.*s", STR_ARG(buf_str(&drawn)));
	/* Another pair of that subspace. */
	tuple_put_u64(&key, 1);
	tail = str_skip(buf_str(&key), space.len);
	assert_false(t->db->kind->draw_pair(t->db, INDEX_SPACE_DEFS, tail, value, &drawn));
	return STATUS_OK;
}

static void
a_definition_is_drawn(void **arg)
{
	struct fixture *f = *arg;
	struct step s = { .f = f, .run = draw_definition };
	char wanted[32];

	snprintf(wanted, sizeof(wanted),
		 "index %llu: ", (unsigned long long)create_index(f, false, false));
	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	assert_true(str_starts_with(str_from_cstr(s.found), str_from_cstr(wanted)));
}

/* A frond that knows nothing of paths takes the format for a newer one's, and not for damage. */
static void
only_paths_raise_the_format(void **arg)
{
	struct fixture *f = *arg;
	struct step s = { .f = f, .run = create };

	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	s.run = read_format;
	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	assert_int_equal(s.number, INDEX_FORMAT_MORE);
	s.run = drop;
	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	s.run = create_of_path;
	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	s.run = read_format;
	assert_int_equal(kv_run(f->store, step_body, &s, NULL, &f->err), STATUS_OK);
	assert_int_equal(s.number, INDEX_FORMAT_PATHS);
}

/* ---- The store ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	const struct table_keyspace ks = { .name = STR("ks") };
	const struct table_schema t = { .columns = columns, .column_count = 3 };

	(void)arg;
	TRY(table_keyspace_create(tx, &ks, NULL));
	return packing_create(tx, STR("ks.t"), &t, 0);
}

static int
fixture_setup(void **state_arg)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	test_show_failures();
	tables_register();
	test_make_dir("table_indexes", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &f->err), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
	assert_int_equal(kv_run(f->store, create_body, NULL, NULL, &f->err), STATUS_OK);
	*state_arg = f;
	return 0;
}

static int
fixture_teardown(void **state_arg)
{
	struct fixture *f = *state_arg;

	arena_free(f->arena);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

static void
names_have_letters_digits_and_underscores(void **state)
{
	static char text[TABLE_NAME_BYTES + 1];
	struct err err = { 0 };

	(void)state;
	for (int c = 1; c < 256; c++) {
		const char name[2] = { 'a', (char)c };
		bool good = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' ||
			    (c >= 'a' && c <= 'z');

		assert_int_equal(table_check_name("a table", str_of(name, 2), &err),
				 good ? STATUS_OK : STATUS_INVALID);
	}
	memset(text, 'a', sizeof(text));
	assert_int_equal(table_check_name("a table", str_of(text, 0), &err), STATUS_INVALID);
	for (size_t more = 0; more < 2; more++)
		assert_int_equal(
			table_check_name("a table", str_of(text, TABLE_NAME_BYTES + more), &err),
			more ? STATUS_INVALID : STATUS_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_index_of_other_columns_reads_nothing),
		TEST(unique_values_are_refused),
		TEST(nulls_are_no_duplicates),
		TEST(rows_and_entries_fit_beside_a_writer),
		TEST(only_what_an_index_looks_at_is_read),
		TEST(all_that_the_indexes_look_at_is_read),
		TEST(a_column_of_two_indexes_is_read_once),
		TEST(what_lies_between_few_columns_of_indexes_is_not_read),
		TEST(what_lies_beyond_many_columns_of_indexes_is_not_read),
		TEST(what_lies_beside_wanted_columns_is_not_read),
		TEST(what_has_expired_makes_way),
		TEST(what_has_expired_fails_no_build),
		TEST(a_build_over_duplicates_fails),
		TEST(a_build_goes_on_where_it_ended),
		TEST(new_rows_are_in_the_way_of_a_build_once),
		TEST(two_writers_of_a_unique_value_conflict),
		TEST(the_check_finds_what_is_missing_and_what_is_too_much),
		TEST(a_path_leads_into_documents),
		TEST(a_path_leads_to_json),
		TEST(a_path_has_steps_and_leads_into_a_document),
		TEST(only_paths_raise_the_format),
		TEST(a_definition_is_drawn),
		cmocka_unit_test(names_have_letters_digits_and_underscores),
	};

	return cmocka_run_group_tests_name("table_indexes", tests, NULL, NULL);
}
