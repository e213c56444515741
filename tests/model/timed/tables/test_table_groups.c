/*
 * Rows that are counted by their entries in an index: in groups, in an interval, in parts, with
 * what the transaction itself has written, and whom the transaction meets.
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
#include "catalog/tally.h"
#include "kv/faulty/faulty.h"
#include "model/timed/tables/groups.h"
#include "model/timed/tables/keyspaces.h"
#include "store.h"
#include "test_tables.h"
#include "verified.h"

enum {
	START_MS = 1000 * 1000,
	K = 1, /* the ids of columns of "ks.t", whose key is `k` and `r` */
	A = 3,
	GROUPS = 4,
	ROWS_AT_ONCE = 1000,
	RANGE_KEYS = 64, /* of a counter: small, so that a group has many */
	ALL = 1000 * 1000,
};

static const struct catalog_tally_sizes sizes = { RANGE_KEYS, 2 };

static const struct table_column columns[] = {
	{ .name = TEXT("k"), .kind = TABLE_HASH },
	{ .name = TEXT("r"), .kind = TABLE_RANGE },
	{ .name = TEXT("a"), .kind = TABLE_REGULAR },
};

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct timed_clock clock;
	struct arena *arena;
	struct err err;
};

static uint64_t
fixture_now(void *arg)
{
	(void)arg;
	return START_MS;
}

/* Of rows: on a cluster a quarter, since each row that is written asks it for what was there. */
static int64_t
scaled(int64_t count)
{
	return test_store_is_cluster() ? count / 4 : count;
}

/* ---- Transactions ---- */

struct work {
	struct fixture *f;
	enum status (*body)(struct work *w, struct timed *t);
	int64_t from, to; /* rows that are written or removed */
	int64_t group;    /* of them; -1: their number tells */
	/* What is counted: in one group all, unless `grouped`; at least this value. */
	bool grouped, bounded;
	int64_t low;
	int64_t below; /* of the second group the numbers below this; 0: of all groups */
	size_t most;   /* entries that a part of it reads */
	uint64_t counts[GROUPS], all;
	uint64_t read, asked; /* keys, and how often the store was asked */
	unsigned parts;
	bool more; /* the next part is counted in another transaction, behind `place` */
	char place[TABLE_PLACE_BYTES];
	size_t place_bytes;
};

static enum status
work_run(struct kv_tx *tx, void *arg)
{
	struct work *w = arg;
	struct catalog_db *db;
	enum status status;
	struct timed t;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.t"), &db, &w->f->err));
	timed_init(&t, tx, db, &w->f->clock, &w->f->err);
	status = w->body(w, &t);
	catalog_db_unref(db);
	return status;
}

static void
run_once(struct work *w)
{
	enum status status = kv_run(w->f->store, work_run, w, NULL, &w->f->err);

	if (status != STATUS_OK)
		print_error("%s\n", w->f->err.text);
	assert_int_equal(status, STATUS_OK);
}

/* All parts of what it counts. */
static void
run(struct work *w)
{
	struct work sum = *w;

	sum.place_bytes = 0;
	sum.parts = 0;
	do {
		/* Each attempt of a part counts from nothing. */
		struct work part = sum;

		part.more = false;
		run_once(&part);
		for (size_t i = 0; i < GROUPS; i++)
			part.counts[i] += sum.parts ? sum.counts[i] : 0;
		part.all += sum.parts ? sum.all : 0;
		part.read += sum.parts ? sum.read : 0;
		part.asked += sum.parts ? sum.asked : 0;
		sum = part;
		sum.parts++;
	} while (sum.more);
	*w = sum;
}

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	const struct table_keyspace ks = { .name = STR("ks") };
	const struct table_schema schema = { .columns = columns,
					     .column_count = 3,
					     .counts = true };

	(void)arg;
	TRY(table_keyspace_create(tx, &ks, NULL));
	return table_create(tx, STR("ks.t"), &schema, 0, NULL);
}

static enum status
create_index(struct work *w, struct timed *t)
{
	static const struct table_index_column both[] = { { .column = A }, { .column = K } };
	const struct table_index terms = { .name = STR("i"), .columns = both, .column_count = 2 };
	uint64_t number;

	(void)w;
	return table_index_create(t, &terms, &number);
}

static struct table_key
key_of(int64_t n, struct doc_scalar parts[2])
{
	parts[0] = number(n);
	parts[1] = number(0);
	return (struct table_key){ .token = n, .parts = parts, .count = 2 };
}

static enum status
write_rows(struct work *w, struct timed *t)
{
	for (int64_t n = w->from; n < w->to; n++) {
		struct doc_scalar parts[2];
		const struct table_change change = {
			.kind = TABLE_CHANGE_PUT,
			.column = A,
			.value = number(w->group < 0 ? n % GROUPS : w->group),
		};
		const struct table_write write = { .key = key_of(n, parts),
						   .inserts = true,
						   .is_new = true,
						   .tells_count = true,
						   .changes = &change,
						   .change_count = 1 };

		TRY(table_write(t, &write));
	}
	return table_count_add(t, w->to - w->from);
}

static enum status
remove_rows(struct work *w, struct timed *t)
{
	for (int64_t n = w->from; n < w->to; n++) {
		struct doc_scalar parts[2];
		const struct table_key key = key_of(n, parts);

		TRY(table_clear_told_row(t, &key));
	}
	return table_count_add(t, w->from - w->to);
}

static void
change(struct fixture *f, enum status (*body)(struct work *, struct timed *), int64_t from,
       int64_t to, int64_t group)
{
	while (from < to) {
		struct work w = { .f = f, .body = body, .from = from, .to = to, .group = group };

		if (w.to - w.from > ROWS_AT_ONCE)
			w.to = w.from + ROWS_AT_ONCE;
		from = w.to;
		run(&w);
	}
}

/* ---- Counting ---- */

/* One part, which goes on behind `place`, and leaves there where the next one does. */
static enum status
count_part(struct work *w, struct timed *t, struct buf *place, bool *ret_more)
{
	const struct index_typed_value low = { .first = number(w->low) };
	const struct index_typed_value second = { .first = number(1) };
	const struct index_typed_value below = { .first = number(w->below) };
	const struct table_index_groups_options options = {
		.interval = { .low = w->bounded ? &low : NULL,
			      .equal = &second,
			      .equal_count = w->below ? 1 : 0,
			      .high = w->below ? &below : NULL,
			      .high_exclusive = true },
		.columns = w->grouped,
		.after = buf_str(place),
		.most = w->most,
	};
	struct table_index_groups *g;
	enum status status;
	struct table_row row;
	uint64_t rows;

	TRY(table_index_groups_open(t, table_index_named(t->db, STR("i")), &options, &g));
	buf_clear(place);
	while ((status = table_index_groups_next(g, w->f->arena, &row, &rows)) == STATUS_OK) {
		size_t n;
		const struct table_cell *cell = table_cells_of(
			row.cells, row.cell_count, table_column_by_id(table_schema_of(t->db), A),
			&n);

		assert_int_equal(n, 1);
		w->counts[cell->value.n] += rows;
		w->all += rows;
	}
	*ret_more = table_index_groups_paused(g);
	if (*ret_more && status == STATUS_NOT_FOUND)
		assert_int_equal(table_index_groups_place(g, place), STATUS_OK);
	table_index_groups_close(g);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* The part behind the place; a cluster keeps no version long enough for all of them. */
static enum status
count_body(struct work *w, struct timed *t)
{
	AUTO(buf_release) struct buf place = BUF_INIT(TABLE_PLACE_BYTES);
	uint64_t before = kv_tx_stats(t->tx).keys_read, asked = kv_tx_stats(t->tx).reads;
	bool more;

	memset(w->counts, 0, sizeof(w->counts));
	w->all = 0;
	assert_true(table_index_stands_for_rows(t, table_index_named(t->db, STR("i"))));
	buf_append(&place, w->place, w->place_bytes);
	TRY(count_part(w, t, &place, &more));
	TRY(buf_status(&place));
	w->more = more;
	w->place_bytes = place.len;
	if (place.len)
		memcpy(w->place, place.ptr, place.len);
	w->read = kv_tx_stats(t->tx).keys_read - before;
	w->asked = kv_tx_stats(t->tx).reads - asked;
	return STATUS_OK;
}

static struct work
count(struct fixture *f, size_t most)
{
	struct work w = { .f = f, .body = count_body, .grouped = true, .most = most };

	run(&w);
	return w;
}

static void
assert_counts(const struct work *w, int64_t a, int64_t b, int64_t c, int64_t d)
{
	assert_int_equal(w->counts[0], scaled(a));
	assert_int_equal(w->counts[1], scaled(b));
	assert_int_equal(w->counts[2], scaled(c));
	assert_int_equal(w->counts[3], scaled(d));
}

/* Splits the counters until none has many entries. */
static void
tend(struct fixture *f)
{
	bool more = true;

	while (more) {
		struct catalog_db *db;
		struct kv_tx *tx;

		assert_int_equal(kv_begin(kv_faulty_inner(f->store), KV_TX_READ_ONLY, &tx),
				 STATUS_OK);
		assert_int_equal(
			catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.t"), &db, &f->err),
			STATUS_OK);
		kv_tx_free(tx);
		assert_int_equal(catalog_tally_tend(f->store, db, &sizes, &more, &f->err),
				 STATUS_OK);
		catalog_db_unref(db);
	}
}

/* ---- Tests ---- */

static void
groups_are_counted_with_and_without_counters(void **state)
{
	struct fixture *f = *state;
	struct work w;
	uint64_t read;

	w = count(f, ALL);
	assert_int_equal(w.all, 0);
	change(f, write_rows, 0, scaled(8000), -1);
	change(f, write_rows, scaled(10000), scaled(14000), 1);
	change(f, remove_rows, scaled(100), scaled(500), -1);
	w = count(f, ALL);
	assert_counts(&w, 1900, 5900, 1900, 1900);
	read = w.read;
	tend(f);
	w = count(f, ALL);
	assert_counts(&w, 1900, 5900, 1900, 1900);
	/* Most entries are not read, where a group has many more than a counter. */
	assert_true(w.read < (test_store_is_cluster() ? read : read * 2 / 3));
	/* Counters that are behind what was written since. */
	change(f, write_rows, scaled(20000), scaled(22000), 2);
	change(f, remove_rows, scaled(10000), scaled(14000), -1);
	w = count(f, ALL);
	assert_counts(&w, 1900, 1900, 3900, 1900);
	verified_none(f->store);
}

static void
parts_and_intervals_add_up(void **state)
{
	static const size_t most[] = { 1, 7, 501, 1500 };
	/* Each part is a transaction, and some round trips to a cluster. */
	const size_t first = test_store_is_cluster() ? 2 : 0;
	struct fixture *f = *state;
	struct work w = { .f = f, .body = count_body, .bounded = true, .low = 2, .most = ALL };
	/* The range ends in the group. */
	struct work begun = {
		.f = f, .body = count_body, .grouped = true, .below = scaled(4000), .most = ALL
	};

	change(f, write_rows, 0, scaled(6000), -1);
	for (unsigned i = 0; i < 2; i++) {
		for (size_t j = first; j < sizeof(most) / sizeof(*most); j++) {
			struct work part = count(f, (size_t)scaled((int64_t)most[j]));

			assert_counts(&part, 1500, 1500, 1500, 1500);
			assert_true(i || part.parts > 1);
		}
		run(&w);
		assert_int_equal(w.all, scaled(3000));
		run(&begun);
		assert_counts(&begun, 0, 1000, 0, 0);
		tend(f);
	}
}

static enum status
drop_index(struct work *w, struct timed *t)
{
	(void)w;
	return table_index_drop(t, table_index_named(t->db, STR("i")));
}

static enum status
create_numbered(struct work *w, struct timed *t)
{
	static const struct table_index_column both[] = { { .column = A }, { .column = K } };
	const struct table_index terms = { .name = STR("i"), .columns = both, .column_count = 2 };

	return table_index_create(t, &terms, &w->read);
}

/* The build of an index whose rows are there splits the counters between groups. */
static void
rebuild_index(struct fixture *f)
{
	enum {
		STEPS = 100,
	};
	struct work w = { .f = f, .body = drop_index };

	run(&w);
	w.body = create_numbered;
	run(&w);
	assert_int_equal(table_index_build(f->store, STR("ks.t"), w.read, STEPS, &f->err),
			 STATUS_OK);
}

static void
build_index(struct fixture *f, int64_t rows)
{
	change(f, write_rows, 0, rows, -1);
	rebuild_index(f);
}

/* Nobody has to split the counters before groups are counted. */
static void
groups_of_an_index_that_was_just_built_are_not_read(void **state)
{
	enum {
		FIRST = 500,   /* entries that are read before the counters are */
		OTHERS = 1500, /* entries and rows beside them, and counters */
	};
	struct fixture *f = *state;
	struct work w;

	build_index(f, scaled(12000));
	w = count(f, ALL);
	assert_counts(&w, 3000, 3000, 3000, 3000);
	assert_in_range(w.read, 1, FIRST + OTHERS);
	/* The first entries, the counters; of each group the entry behind it, and a row. */
	if (!test_store_is_cluster() && !getenv("FROND_TEST_FAULTS"))
		assert_in_range(w.asked, 1, 2 + 3 * GROUPS);
	verified_none(f->store);
}

static enum status
write_and_count(struct work *w, struct timed *t)
{
	TRY(write_rows(w, t));
	TRY(count_body(w, t));
	return STATUS_OK;
}

static void
a_transaction_counts_what_it_has_written(void **state)
{
	struct fixture *f = *state;
	struct work w = { .f = f,
			  .body = write_and_count,
			  .from = scaled(9000),
			  .to = scaled(9100),
			  .group = 3,
			  .grouped = true,
			  .most = ALL };

	change(f, write_rows, 0, scaled(8000), -1);
	tend(f);
	run(&w);
	assert_counts(&w, 2000, 2000, 2000, 2100);
}

/* Another transaction commits a row behind the count of this one, which writes, too. */
static enum status
commit_count_beside(struct fixture *f, int64_t n, int64_t group)
{
	struct work w = { .f = f, .body = count_body, .grouped = true, .most = ALL };
	enum status status;
	struct kv_tx *tx;

	/* The faulty store would add outcomes of its own to the two that are looked for. */
	assert_int_equal(kv_begin(kv_faulty_inner(f->store), KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(work_run(tx, &w), STATUS_OK);
	assert_int_equal(kv_set(tx, STR("\x02mark"), STR("")), STATUS_OK);
	if (group < GROUPS)
		change(f, write_rows, n, n + 1, group);
	status = kv_future_wait(kv_commit(tx));
	kv_tx_free(tx);
	return status;
}

/* Wherever they write: where entries are read, and where counters tell how many there are. */
static void
whoever_has_counted_meets_those_who_write(void **state)
{
	struct fixture *f = *state;
	const int64_t places[] = { -1, scaled(4500), scaled(9500) };

	change(f, write_rows, 0, scaled(4000), -1);
	change(f, write_rows, scaled(5000), scaled(9000), -1);
	tend(f);
	assert_int_equal(commit_count_beside(f, 0, GROUPS), STATUS_OK);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		for (int64_t group = 0; group < GROUPS; group++)
			assert_int_equal(commit_count_beside(f, places[i] - group, group),
					 STATUS_TX_CONFLICT);
}

/* Where counters end between two groups, what is behind the first one is read beside them. */
static void
whoever_has_counted_a_built_index_meets_those_who_write(void **state)
{
	struct fixture *f = *state;

	build_index(f, scaled(8000));
	assert_int_equal(commit_count_beside(f, 0, GROUPS), STATUS_OK);
	for (int64_t group = 0; group < GROUPS; group++)
		assert_int_equal(commit_count_beside(f, -1 - group, group), STATUS_TX_CONFLICT);
}

/*
 * The entry behind a large group is found by a look of its own, and nothing else reads what is in
 * front of it: the groups behind are small, so that none of their counters is taken.
 */
static void
whoever_has_counted_meets_who_writes_in_front_of_the_entry_behind(void **state)
{
	enum {
		LARGE = 4000,
		SMALL = 2,
	};
	struct fixture *f = *state;
	int64_t end = scaled(LARGE);

	change(f, write_rows, 0, end, 0);
	change(f, write_rows, end, end + SMALL, 1);
	change(f, write_rows, end + SMALL, end + 2 * SMALL, 2);
	change(f, write_rows, end + 2 * SMALL, 2 * end, 3);
	rebuild_index(f);
	assert_int_equal(commit_count_beside(f, 0, GROUPS), STATUS_OK);
	assert_int_equal(commit_count_beside(f, -1, 1), STATUS_TX_CONFLICT);
}

/* ---- Which indexes stand for rows ---- */

enum {
	S = 4, /* the id of a static column that is added */
};

static enum status
add_static(struct work *w, struct timed *t)
{
	const struct table_column added = { .name = STR("s"), .kind = TABLE_STATIC };

	(void)w;
	return table_alter(t, &(struct table_alteration){ .add = &added, .add_count = 1 });
}

static enum status
index_static(struct work *w, struct timed *t)
{
	static const struct table_index_column of_s = { .column = S };
	const struct table_index terms = { .name = STR("s"), .columns = &of_s, .column_count = 1 };
	uint64_t number;

	(void)w;
	return table_index_create(t, &terms, &number);
}

static enum status
tell_which(struct work *w, struct timed *t)
{
	const struct table_index *of_rows = table_index_named(t->db, STR("i"));
	const struct table_index *of_statics = table_index_named(t->db, STR("s"));

	(void)w;
	assert_true(table_schema_of(t->db)->counted && of_statics->is_ready);
	assert_true(table_index_stands_for_rows(t, of_rows));
	assert_false(table_index_stands_for_rows(t, of_statics));
	timed_at_us(t, 1);
	assert_false(table_index_stands_for_rows(t, of_rows));
	return STATUS_OK;
}

/* Static columns are of partitions: their index has an entry of each of these. */
static void
an_index_of_static_columns_stands_for_no_rows(void **state)
{
	struct fixture *f = *state;

	run_once(&(struct work){ .f = f, .body = add_static });
	run_once(&(struct work){ .f = f, .body = index_static });
	run_once(&(struct work){ .f = f, .body = tell_which });
}

/* ---- All of them ---- */

static int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	struct work w = { .f = f, .body = create_index };
	char url[256];

	test_show_failures();
	tables_register();
	test_make_dir("groups", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &f->err), STATUS_OK);
	f->clock = (struct timed_clock){ .now_ms = fixture_now, .arg = f };
	f->arena = arena_new(64 * 1024 * 1024);
	assert_int_equal(kv_run(f->store, create_body, NULL, NULL, &f->err), STATUS_OK);
	run(&w);
	*state = f;
	return 0;
}

static int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	kv_close(f->store);
	arena_free(f->arena);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(groups_are_counted_with_and_without_counters),
		TEST(parts_and_intervals_add_up),
		TEST(groups_of_an_index_that_was_just_built_are_not_read),
		TEST(a_transaction_counts_what_it_has_written),
		TEST(an_index_of_static_columns_stands_for_no_rows),
		TEST(whoever_has_counted_meets_those_who_write),
		TEST(whoever_has_counted_a_built_index_meets_those_who_write),
		TEST(whoever_has_counted_meets_who_writes_in_front_of_the_entry_behind),
	};

	return cmocka_run_group_tests_name("table_groups", tests, NULL, NULL);
}
