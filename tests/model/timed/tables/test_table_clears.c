/*
 * Writing and clearing at the edges: changes that fit a column and those that do not, how many rows
 * of a range one transaction clears, marks of deletions that others make needless, and for how long
 * marks are kept.
 */
#include "limits_world.h"

#include "model/timed/tables/deletions.h"
#include "model/timed/tables/index.h"
#include "model/timed/tables/packed.h"
#include "model/timed/tables/stamps.h"
#include "test_tables.h"
#include "verified.h"

/* ---- Changes of each kind ---- */

enum { /* of "ks.all" */
	ALL_HASH = 1,
	ALL_RANGE,
	ALL_SINGLE,
	ALL_MAP,
	ALL_SET,
	ALL_LIST,
	ALL_STATIC,
};

static enum status
create_body(struct timed *t, void *arg)
{
	static const struct table_column columns[] = {
		{ .name = TEXT("h"), .kind = TABLE_HASH },
		{ .name = TEXT("r"), .kind = TABLE_RANGE },
		{ .name = TEXT("single"), .kind = TABLE_REGULAR },
		{ .name = TEXT("map"), .kind = TABLE_REGULAR, .storage = TABLE_MAP },
		{ .name = TEXT("set"), .kind = TABLE_REGULAR, .storage = TABLE_SET },
		{ .name = TEXT("list"), .kind = TABLE_REGULAR, .storage = TABLE_LIST },
		{ .name = TEXT("static"), .kind = TABLE_STATIC },
	};
	struct table_schema schema = { .columns = columns, .column_count = COUNT(columns) };
	struct table_property grace = { STR(TABLE_PROPERTY_GRACE), { NULL, 0 } };

	if (arg) {
		grace.value = str_from_cstr(arg);
		schema.properties = &grace;
		schema.property_count = 1;
	}
	return table_create(t->tx, STR("ks.all"), &schema, 0, t->err);
}

static int
setup(void **state)
{
	(void)fixture_setup(state);
	expect(*state, NULL, create_body, NULL, NULL);
	return 0;
}

static enum status
write_body(struct timed *t, void *arg)
{
	return table_write(t, arg);
}

static struct doc_scalar
bytes(const char *text, size_t len)
{
	return (struct doc_scalar){ .kind = DOC_BYTES, .text = { text, len } };
}

static void
a_change_fits_how_its_column_lies(void **state)
{
	static const char place[] = "0123456789abcdefg";
	/* By kind: of a single value, a map, a set, a list, a counter. */
	static const bool fits[][5] = {
		[TABLE_CHANGE_PUT] = { 1, 0, 0, 0, 0 },
		[TABLE_CHANGE_CLEAR] = { 1, 1, 1, 1, 1 },
		[TABLE_CHANGE_PUT_ELEMENT] = { 0, 1, 1, 0, 0 },
		[TABLE_CHANGE_CLEAR_ELEMENT] = { 0, 1, 1, 1, 0 },
		[TABLE_CHANGE_APPEND] = { 0, 0, 0, 1, 0 },
		[TABLE_CHANGE_PREPEND] = { 0, 0, 0, 1, 0 },
		[TABLE_CHANGE_PUT_PLACE] = { 0, 0, 0, 1, 0 },
		[TABLE_CHANGE_ADD] = { 0, 0, 0, 0, 1 },
	};
	const struct doc_scalar key[] = { text("a"), number(1) };
	struct fixture *f = *state;

	for (size_t kind = 0; kind < COUNT(fits); kind++) {
		for (uint64_t i = 0; i < 5; i++) {
			struct table_change c = { .kind = (enum table_change_kind)kind,
						  .column = i == 4 ? HITS_N : ALL_SINGLE + i,
						  .element = bytes(place, TABLE_LIST_PLACE_BYTES),
						  .value = number(1) };
			struct table_write w = { .key = { 97, key, 2 },
						 .changes = &c,
						 .change_count = 1 };
			bool by_place = i == 3 && (kind == TABLE_CHANGE_CLEAR_ELEMENT ||
						   kind == TABLE_CHANGE_PUT_PLACE);

			expect(f, i == 4 ? "ks.hits" : "ks.all", write_body, &w,
			       fits[kind][i] ? NULL : "cannot be changed in this way");
			/* Only the places in lists have a length. */
			for (size_t len = TABLE_LIST_PLACE_BYTES - 1; fits[kind][i] && len < 18;
			     len += 2) {
				c.element = bytes(place, len);
				expect(f, i == 4 ? "ks.hits" : "ks.all", write_body, &w,
				       by_place ? "cannot be changed in this way" : NULL);
			}
			c.element = (struct doc_scalar){ .kind = DOC_TEXT, .text = { place, 16 } };
			if (by_place)
				expect(f, "ks.all", write_body, &w,
				       "cannot be changed in this way");
		}
	}
	verified_none(f->store);
}

static void
a_write_is_one_of_a_row_or_of_a_partition(void **state)
{
	const struct doc_scalar key[] = { text("a"), number(1) };
	struct table_change c = { .column = ALL_SINGLE, .value = number(1) };
	struct table_write w = { .key = { 97, key, 2 }, .changes = &c, .change_count = 1 };
	struct fixture *f = *state;

	expect(f, "ks.all", write_body, &w, NULL);
	c.column = ALL_STATIC;
	expect(f, "ks.all", write_body, &w, "no column with the id 7 is in such rows");
	w.key.count = 1;
	expect(f, "ks.all", write_body, &w, NULL);
	c.column = ALL_SINGLE;
	expect(f, "ks.all", write_body, &w, "no column with the id 3 is in such rows");
	c.column = ALL_RANGE;
	expect(f, "ks.all", write_body, &w, "no column with the id 2 is in such rows");
	w.key.count = 0;
	expect(f, "ks.all", write_body, &w, "a row's key has 2 components here");
	w = (struct table_write){ .key = { 97, key, 1 }, .inserts = true };
	expect(f, "ks.all", write_body, &w,
	       "static columns are not inserted: only what is in them counts");
	w.key.count = 2;
	expect(f, "ks.all", write_body, &w, NULL);
	expect(f, "ks.hits", write_body, &w,
	       "rows of counters are not inserted: only what is in them counts");
	w.inserts = false;
	w.changes = &c;
	w.change_count = 1;
	c = (struct table_change){ .kind = TABLE_CHANGE_ADD, .column = HITS_N, .value = text("1") };
	expect(f, "ks.hits", write_body, &w, "a counter is changed by an integer");
	c.value = (struct doc_scalar){ .kind = DOC_NULL };
	expect(f, "ks.hits", write_body, &w, "a counter is changed by an integer");
	c.value = number(-1);
	expect(f, "ks.hits", write_body, &w, NULL);
}

/* ---- As many rows as one transaction clears ---- */

struct filling {
	struct fixture *f;
	const size_t *elements; /* of each row: in its map; its own pair comes with them */
	size_t rows;
};

static enum status
fill_body(struct timed *t, void *arg)
{
	const struct filling *fill = arg;

	for (size_t i = 0; i < fill->rows; i++) {
		const struct doc_scalar key[] = { text("a"), number((int64_t)i) };
		size_t elements = fill->elements ? fill->elements[i] : 0;
		struct table_change *changes = arena_zalloc(fill->f->arena,
							    (elements + 1) * sizeof(*changes));
		const struct table_write w = { .key = { 97, key, 2 },
					       .inserts = true,
					       .changes = changes,
					       .change_count = elements };

		assert_non_null(changes);
		for (size_t k = 0; k < elements; k++)
			changes[k] = (struct table_change){ .kind = TABLE_CHANGE_PUT_ELEMENT,
							    .column = ALL_MAP,
							    .element = number((int64_t)k),
							    .value = number(1) };
		TRY(table_write(t, &w));
	}
	return STATUS_OK;
}

static enum status
clear_body(struct timed *t, void *arg)
{
	const struct doc_scalar key[] = { text("a") };
	const struct table_key partition = { 97, key, 1 };
	bool *more = arg;

	return table_clear_partition(t, &partition, more);
}

static enum status
count_body(struct timed *t, void *arg)
{
	const struct table_scan_options options = { .partition = NULL };
	struct arena *arena = arena_new(1 << 20);
	struct table_scan *scan;
	struct table_row row;
	enum status status;
	size_t *rows = arg;

	*rows = 0;
	assert_non_null(arena);
	TRY(table_scan_open(t, &options, &scan));
	while ((status = table_scan_next(scan, arena, &row)) == STATUS_OK) {
		arena_clear(arena);
		++*rows;
	}
	table_scan_close(scan);
	arena_free(arena);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* What has a transaction clear a range row by row. */
enum manner {
	BESIDE_INDEX,
	BESIDE_STAMPS,
	BESIDE_PAST,
	MANNERS,
};

static enum status
index_body(struct timed *t, void *arg)
{
	const struct table_index_column columns[] = { { .column = ALL_SINGLE } };
	const struct table_index terms = { .name = STR("i"),
					   .columns = columns,
					   .column_count = 1 };
	uint64_t number;

	(void)arg;
	return table_index_create(t, &terms, &number);
}

static enum status
stamp_body(struct timed *t, void *arg)
{
	const struct doc_scalar key[] = { text("b"), number(1) };
	const struct table_key row = { 98, key, 2 };
	enum status status;

	(void)arg;
	TRY(table_stamp_set(t, INT64_MAX / 2)); /* ahead of the clock */
	status = table_clear_row(t, &row);
	table_stamp_unset(t);
	return status;
}

static enum status
past_body(struct timed *t, void *arg)
{
	(void)arg;
	return timed_history_set(t, (struct timed_history_bounds){ .seconds = 1000 });
}

/* How many rows are left, and whether there may be some. */
struct left {
	size_t rows;
	bool more;
};

static void
expect_cleared(struct fixture *f, enum manner manner, const struct filling *fill,
	       struct left wanted)
{
	struct filling arg = *fill;
	struct left left;

	arg.f = f;
	expect(f, "ks.all", fill_body, &arg, NULL);
	expect(f, "ks.all", clear_body, &left.more, NULL);
	expect(f, "ks.all", count_body, &left.rows, NULL);
	if (left.rows != wanted.rows || left.more != wanted.more)
		fail_msg("manner %d, %zu rows: %zu are left%s", manner, fill->rows, left.rows,
			 left.more ? ", and more" : "");
	/* What is left goes with the next one. */
	expect(f, "ks.all", clear_body, &left.more, NULL);
	expect(f, "ks.all", count_body, &left.rows, NULL);
	assert_int_equal(left.rows, 0);
	assert_false(left.more);
}

static void
a_transaction_clears_rows_up_to_a_number_of_pairs(void **state)
{
	static work_body *const prepare[MANNERS] = { index_body, stamp_body, past_body };
	/* Each row has one pair more than elements. */
	static const size_t long_one[] = { TIMED_CLEAR_KEYS + 5, 0 };
	static const size_t full_one[] = { TIMED_CLEAR_KEYS - 1, 0 };
	static const size_t nearly[] = { TIMED_CLEAR_KEYS - 2, 0, 0 };
	static const size_t long_second[] = { 600, 600, 0 };
	/* A past is kept of what is cleared by a range, which a read of that many pairs bounds. */
	const struct {
		struct filling fill;
		struct left left[MANNERS];
	} cases[] = {
		{ { .rows = TIMED_CLEAR_KEYS - 1 }, { { 0, 0 }, { 0, 0 }, { 0, 0 } } },
		{ { .rows = TIMED_CLEAR_KEYS }, { { 0, 0 }, { 0, 0 }, { 1, 1 } } },
		{ { .rows = TIMED_CLEAR_KEYS + 1 }, { { 1, 1 }, { 1, 1 }, { 2, 1 } } },
		{ { .elements = long_one, .rows = 1 }, { { 0, 0 }, { 0, 0 }, { 0, 1 } } },
		{ { .elements = long_one, .rows = 2 }, { { 1, 1 }, { 1, 1 }, { 1, 1 } } },
		{ { .elements = full_one, .rows = 2 }, { { 1, 1 }, { 1, 1 }, { 1, 1 } } },
		{ { .elements = nearly, .rows = 2 }, { { 0, 0 }, { 0, 0 }, { 1, 1 } } },
		{ { .elements = nearly, .rows = 3 }, { { 1, 1 }, { 1, 1 }, { 2, 1 } } },
		{ { .elements = long_second, .rows = 3 }, { { 1, 1 }, { 1, 1 }, { 2, 1 } } },
	};
	struct fixture *f = *state;

	for (enum manner m = 0; m < MANNERS; m++) {
		uint64_t done;
		bool more;

		expect(f, "ks.all", prepare[m], NULL, NULL);
		assert_int_equal(timed_sweep(f->store, &f->clock, 10, &done, &more, &f->err),
				 STATUS_OK);
		for (size_t i = 0; i < COUNT(cases); i++)
			expect_cleared(f, m, &cases[i].fill, cases[i].left[m]);
		verified_none(f->store);
		fixture_teardown(state);
		setup(state);
		f = *state;
	}
}

/* ---- Ranges ---- */

struct clearing {
	struct table_edge from, to;
	int64_t stamp; /* 0: none */
	bool more;
};

static enum status
clear_range_body(struct timed *t, void *arg)
{
	const struct doc_scalar key[] = { text("a") };
	const struct table_key partition = { 97, key, 1 };
	struct clearing *c = arg;
	enum status status;

	if (c->stamp)
		TRY(table_stamp_set(t, c->stamp));
	status = table_clear_range(t, &partition, &c->from, &c->to, &c->more);
	table_stamp_unset(t);
	return status;
}

static void
a_range_has_edges_of_range_components(void **state)
{
	const struct doc_scalar edge[] = { number(4), number(5) };
	struct fixture *f = *state;
	const struct filling fill = { .f = f, .rows = 8 };
	struct clearing c = { .from = { TIMED_BOUND_INCLUSIVE, edge, 1 },
			      .to = { TIMED_BOUND_EXCLUSIVE, edge, 1 } };
	size_t rows;

	expect(f, "ks.all", fill_body, (void *)(uintptr_t)&fill, NULL);
	for (enum timed_bound_kind kind = TIMED_BOUND_INCLUSIVE; kind <= TIMED_BOUND_EXCLUSIVE;
	     kind++) {
		/* Nothing lies in front of what is not in it. */
		c.from.kind = kind;
		expect(f, "ks.all", clear_range_body, &c, NULL);
		assert_false(c.more);
	}
	expect(f, "ks.all", count_body, &rows, NULL);
	assert_int_equal(rows, 8);
	c.from = (struct table_edge){ TIMED_BOUND_INCLUSIVE, edge, 0 };
	expect(f, "ks.all", clear_range_body, &c, "an edge of a range has 1 to 1 components here");
	c.from.count = 2;
	expect(f, "ks.all", clear_range_body, &c, "an edge of a range has 1 to 1 components here");
	c.from.count = 1;
	c.to.count = 2;
	expect(f, "ks.all", clear_range_body, &c, "an edge of a range has 1 to 1 components here");
	c.to = (struct table_edge){ TIMED_BOUND_INCLUSIVE, edge, 1 };
	expect(f, "ks.all", clear_range_body, &c, NULL);
	expect(f, "ks.all", count_body, &rows, NULL);
	assert_int_equal(rows, 7);
}

/* ---- Marks ---- */

struct marks {
	size_t count;
	int64_t stamp; /* of the last one */
};

static enum status
marks_body(struct timed *t, void *arg)
{
	struct arena *arena = arena_new(1 << 20);
	struct table_deletions *all;
	struct table_deletion d;
	struct marks *ret = arg;
	enum status status;

	assert_non_null(arena);
	*ret = (struct marks){ 0 };
	TRY(table_deletions_open(t, &all));
	while ((status = table_deletions_next(all, arena, &d)) == STATUS_OK) {
		ret->count++;
		ret->stamp = d.stamp;
		arena_clear(arena);
	}
	table_deletions_close(all);
	arena_free(arena);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void
a_mark_that_says_no_more_than_another_one_is_not_kept(void **state)
{
	static const struct {
		int64_t from, to, stamp;
		struct marks left;
	} steps[] = {
		{ 10, 20, 10, { 1, 10 } },
		{ 10, 20, 10, { 1, 10 } },
		{ 10, 20, 9, { 1, 10 } },
		{ 10, 20, 11, { 1, 11 } },
		{ 10, 15, 11, { 1, 11 } }, /* with one end of the other's */
		{ 15, 20, 11, { 1, 11 } },
		{ 12, 15, 10, { 1, 11 } },
		{ 12, 15, 12, { 2, 12 } },
		{ 9, 20, 11, { 2, 11 } },
		{ 9, 21, 11, { 2, 11 } },
		{ 9, 20, 12, { 2, 12 } }, /* beside that of 9 to 21 with 11 */
		{ 8, 20, 11, { 3, 11 } },
		{ 8, 21, 11, { 2, 11 } },
		{ 8, 21, 12, { 1, 12 } },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(steps); i++) {
		struct doc_scalar from = number(steps[i].from), to = number(steps[i].to);
		struct clearing c = { .from = { TIMED_BOUND_INCLUSIVE, &from, 1 },
				      .to = { TIMED_BOUND_EXCLUSIVE, &to, 1 },
				      .stamp = steps[i].stamp };
		struct marks left;

		expect(f, "ks.all", clear_range_body, &c, NULL);
		expect(f, "ks.all", marks_body, &left, NULL);
		if (left.count != steps[i].left.count || left.stamp != steps[i].left.stamp)
			fail_msg("step %zu: %zu marks, the last with %lld", i, left.count,
				 (long long)left.stamp);
	}
	verified_none(f->store);
}

/* So many marks of ranges that are side by side, as if each had been made by a transaction. */
static enum status
many_marks_body(struct timed *t, void *arg)
{
	const struct doc_scalar key[] = { text("a"), number(1) };
	const struct table_key row = { 97, key, 2 };
	AUTO(buf_release) struct buf of = CATALOG_KEY_INIT, at = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf due = CATALOG_KEY_INIT, value = BUF_INIT(1000);
	const size_t *count = arg;
	size_t partition;

	TRY(table_key_row(t, &row, &of));
	TRY(table_mark_partition_key(t->db, buf_str(&of), &at));
	partition = at.len;
	for (size_t i = 0; i < *count; i++) {
		struct table_mark mark = { .stamp = 5, .made_us = 7 };
		char begin[16], end[16];

		(void)snprintf(begin, sizeof(begin), "\1%06zu", 2 * i);
		(void)snprintf(end, sizeof(end), "\1%06zu", 2 * i + 1);
		mark.begin = str_from_cstr(begin);
		mark.end = str_from_cstr(end);
		at.len = partition;
		tuple_put_u64(&at, i);
		buf_clear(&value);
		table_mark_encode(&mark, true, &value);
		TRY(kv_set(t->tx, buf_str(&at), buf_str(&value)));
		buf_clear(&due);
		TRY(table_mark_due_key(t->db, mark.made_us, buf_str(&at), &due));
		TRY(kv_set(t->tx, buf_str(&due), STR("")));
	}
	return STATUS_OK;
}

static void
a_partition_remembers_so_many_ranges(void **state)
{
	struct doc_scalar from = number(1), to = number(2);
	struct clearing c = { .from = { TIMED_BOUND_INCLUSIVE, &from, 1 },
			      .to = { TIMED_BOUND_EXCLUSIVE, &to, 1 },
			      .stamp = 9 };
	struct fixture *f = *state;
	size_t count = TABLE_RANGE_MARKS - 1;
	struct marks left;

	expect(f, "ks.all", stamp_body, NULL, NULL);
	expect(f, "ks.all", many_marks_body, &count, NULL);
	expect(f, "ks.all", clear_range_body, &c, NULL);
	to = number(3);
	/* One that another one makes needless goes first. */
	expect(f, "ks.all", clear_range_body, &c, NULL);
	from = number(4);
	to = number(5);
	expect(f, "ks.all", clear_range_body, &c,
	       "10000 deletions of ranges are remembered of a partition at most");
	expect(f, "ks.all", marks_body, &left, NULL);
	assert_int_equal(left.count, TABLE_RANGE_MARKS + 1); /* and that of stamp_body() */
}

static enum status
drop_body(struct timed *t, void *arg)
{
	(void)arg;
	return table_drop(t->tx, STR("ks.all"), t->err);
}

/* Marks after so many microseconds. */
static void
expect_marks(struct fixture *f, uint64_t after_ms, size_t count)
{
	uint64_t before_ms = f->now_ms, done;
	struct marks left;
	bool more = true;

	f->now_ms += after_ms;
	while (more)
		assert_int_equal(timed_sweep(f->store, &f->clock, 10, &done, &more, &f->err),
				 STATUS_OK);
	expect(f, "ks.all", marks_body, &left, NULL);
	if (left.count != count)
		fail_msg("%zu marks after %llu ms", left.count, (unsigned long long)after_ms);
	f->now_ms = before_ms;
}

static void
marks_are_kept_as_long_as_the_table_says(void **state)
{
	enum {
		DAY_S = 24 * 60 * 60,
		SLACK_MS = 100, /* the moments of transactions rise, whatever the clock says */
	};
	static const struct {
		const char *said;
		uint64_t seconds;
	} cases[] = {
		{ "0", 0 },
		{ "1", 1 },
		{ "60", 60 },
		{ NULL, 10 * DAY_S },
		{ "-1", 10 * DAY_S },
		{ "x", 10 * DAY_S },
		{ "", 10 * DAY_S },
		{ "2147483647", INT32_MAX },
		{ "2147483648", 10 * DAY_S },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		expect(f, NULL, drop_body, NULL, NULL);
		expect(f, NULL, create_body, (void *)(uintptr_t)cases[i].said, NULL);
		expect(f, "ks.all", stamp_body, NULL, NULL);
		if (cases[i].seconds)
			expect_marks(f, cases[i].seconds * 1000 - 1, 1);
		f->now_ms += cases[i].seconds * 1000;
		expect_marks(f, SLACK_MS, 0);
		f->now_ms += 2 * SLACK_MS;
	}
}

/* ---- What has expired ---- */

static enum status
expiring_body(struct timed *t, void *arg)
{
	const struct doc_scalar key[] = { text("a"), number(1) };
	const struct timed_expiry soon = { TIMED_EXPIRY_AFTER, 1000 };
	const struct table_change single = { .column = ALL_SINGLE,
					     .value = number(1),
					     .expiry = soon };
	const struct table_change shared = { .column = ALL_STATIC, .value = number(7) };
	const struct table_write row = { .key = { 97, key, 2 },
					 .inserts = true,
					 .expiry = soon,
					 .changes = &single,
					 .change_count = 1 };
	const struct table_write partition = { .key = { 97, key, 1 },
					       .changes = &shared,
					       .change_count = 1 };

	(void)arg;
	TRY(table_write(t, &row));
	return table_write(t, &partition);
}

struct seen {
	struct fixture *f;
	bool statics;
	enum status status;
	bool is_row, has_pairs;
	size_t key_count, cells, static_cells;
};

static enum status
see_body(struct timed *t, void *arg)
{
	const struct doc_scalar parts[] = { text("a"), number(1) };
	const struct table_key key = { 97, parts, 2 };
	struct table_row row = { .key_count = 0 };
	struct seen *s = arg;

	s->status = table_read(t, &key, s->statics, NULL, s->f->arena, &row);
	s->is_row = row.is_row;
	s->has_pairs = row.has_pairs;
	s->key_count = row.key_count;
	s->cells = row.cell_count;
	s->static_cells = row.static_count;
	return s->status == STATUS_NOT_FOUND ? STATUS_OK : s->status;
}

static void
an_expired_row_is_none_beside_static_columns(void **state)
{
	struct fixture *f = *state;
	struct seen s = { .f = f, .statics = true };

	expect(f, "ks.all", expiring_body, NULL, NULL);
	expect(f, "ks.all", see_body, &s, NULL);
	assert_int_equal(s.status, STATUS_OK);
	assert_true(s.is_row && s.has_pairs);
	assert_int_equal(s.key_count, 2);
	assert_int_equal(s.cells, 1);
	assert_int_equal(s.static_cells, 1);
	f->now_ms += 1000;
	/* What is left is the partition's, though pairs of the row are there still. */
	expect(f, "ks.all", see_body, &s, NULL);
	assert_int_equal(s.status, STATUS_OK);
	assert_true(!s.is_row && s.has_pairs);
	assert_int_equal(s.key_count, 1);
	assert_int_equal(s.cells, 0);
	assert_int_equal(s.static_cells, 1);
	s.statics = false;
	expect(f, "ks.all", see_body, &s, NULL);
	assert_int_equal(s.status, STATUS_NOT_FOUND);
	assert_true(!s.is_row && s.has_pairs);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_change_fits_how_its_column_lies),
		TEST(a_write_is_one_of_a_row_or_of_a_partition),
		TEST(a_transaction_clears_rows_up_to_a_number_of_pairs),
		TEST(a_range_has_edges_of_range_components),
		TEST(a_mark_that_says_no_more_than_another_one_is_not_kept),
		TEST(a_partition_remembers_so_many_ranges),
		TEST(marks_are_kept_as_long_as_the_table_says),
		TEST(an_expired_row_is_none_beside_static_columns),
	};

	return cmocka_run_group_tests_name("table_clears", tests, NULL, NULL);
}
