/*
 * The form of rows: paths of columns, which entries a row has and what they carry, which changes of
 * a row leave its entries as they are, and what of stored values is damage.
 */
#include "common.h"

#include <math.h>

#include "base/arena_apart.h"
#include "base/mem.h"
#include "index/engine/entry.h"
#include "index/typed/filter.h"
#include "index/typed/form.h"
#include "index/typed/order.h"

enum {
	COLUMNS = 4,
	ROOM_BYTES = 16 << 10,
};

static const struct catalog_db db = { .prefix = { "\x15\x07", 2 }, .number = 7 };

static struct doc_scalar
number(int64_t n)
{
	return (struct doc_scalar){ .kind = DOC_INT64, .n = n };
}

static struct doc_scalar
text(struct str s)
{
	return (struct doc_scalar){ .kind = DOC_TEXT, .text = s };
}

/* ---- Definitions and rows ---- */

static struct index_column columns[COLUMNS];

static struct index_def
def_of(const struct index_typed_origin *origins, size_t count, size_t carried, uint32_t flags)
{
	for (size_t i = 0; i < count + carried; i++)
		assert_int_equal(index_typed_path(&origins[i], arena, &columns[i]), STATUS_OK);
	return (struct index_def){ .form = &index_typed_form,
				   .number = 1,
				   .state = INDEX_READY,
				   .flags = flags | INDEX_TYPED,
				   .order = DOC_KEY_TYPED,
				   .columns = columns,
				   .column_count = count,
				   .carried = (uint32_t)carried };
}

static enum status
make(const struct index_def *def, const struct index_typed_row *row, struct str id,
     struct index_pairs *ret)
{
	const struct index_source source = { .id = id, .row = row };

	return index_entries_make(&db, def, &source, &work, ret);
}

static struct index_pairs
entries_of(const struct index_def *def, const struct index_typed_row *row)
{
	struct index_pairs pairs;

	assert_int_equal(make(def, row, STR("id"), &pairs), STATUS_OK);
	return pairs;
}

static struct str
tail_of(const struct index_def *def, struct str key)
{
	AUTO(buf_release) struct buf prefix = BUF_INIT(64);

	index_key_entries(&prefix, &db, def->number);
	assert_int_equal(buf_status(&prefix), STATUS_OK);
	return str_skip(key, prefix.len);
}

static enum status
parse(const struct index_def *def, const struct kv_pair *pair, struct str value,
      struct index_entry *ret)
{
	*ret = (struct index_entry){ 0 };
	return index_entry_parse(def, tail_of(def, pair->key), value, arena, ret);
}

static struct index_entry
entry_of(const struct index_def *def, const struct index_typed_row *row)
{
	struct index_pairs pairs = entries_of(def, row);
	struct index_entry entry;

	assert_int_equal(pairs.count, 1);
	assert_int_equal(parse(def, &pairs.pairs[0], pairs.pairs[0].value, &entry), STATUS_OK);
	return entry;
}

/* The flags of an entry. */
static uint64_t
flags_of(const struct kv_pair *pair)
{
	struct tuple_reader r = tuple_reader(pair->value);
	uint64_t format, flags;

	assert_int_equal(tuple_next_u64(&r, &format), STATUS_OK);
	assert_int_equal(tuple_next_u64(&r, &flags), STATUS_OK);
	return flags;
}

/* ---- Paths ---- */

static void
a_path_leads_back_to_its_origin(void **state)
{
	static const struct str steps[] = { STR("a"), STR("0"), STR("b") };
	static const struct str numeric[] = { STR("numeric") };
	const struct index_typed_origin origins[] = {
		{ 0, INDEX_TYPED_COLUMN, NULL, 0 },     { UINT64_MAX, INDEX_TYPED_COLUMN, NULL, 0 },
		{ 3, INDEX_TYPED_KEYS, NULL, 0 },       { 3, INDEX_TYPED_VALUES, NULL, 0 },
		{ 3, INDEX_TYPED_ENTRIES, NULL, 0 },    { 3, INDEX_TYPED_JSON, steps, 1 },
		{ 3, INDEX_TYPED_JSON, steps + 2, 1 },  { 3, INDEX_TYPED_JSON, steps, 3 },
		{ 3, INDEX_TYPED_JSON_TEXT, steps, 3 }, { 3, INDEX_TYPED_ORDER, numeric, 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(origins); i++) {
		struct index_typed_origin read;
		struct index_column column;

		assert_int_equal(index_typed_path(&origins[i], arena, &column), STATUS_OK);
		assert_true(index_typed_path_read(&column, &read));
		for (size_t j = 0; j < COUNT(origins); j++)
			if (index_typed_same_origin(&read, &origins[j]) != (i == j))
				fail_msg("%zu and %zu", i, j);
	}
}

static void
a_path_without_room_is_none(void **state)
{
	static const struct str steps[] = { STR("a"), STR("0") };
	const struct index_typed_origin origin = { 3, INDEX_TYPED_JSON, steps, 2 };
	enum status status = STATUS_LIMIT;

	(void)state;
	for (size_t bytes = 0; status != STATUS_OK; bytes += ROOM_STEP) {
		struct arena *small = arena_new(bytes);
		struct index_column column;

		status = index_typed_path(&origin, small, &column);
		assert_int_equal(status, arena_is_full(small) ? STATUS_LIMIT : STATUS_OK);
		arena_free(small);
		assert_true(bytes < ROOM_BYTES);
	}
	/* Each allocation fails, and none behind it. */
	for (uint64_t nth = 1, failed = 1; failed; nth++) {
		struct arena *whole = arena_new(ROOM_BYTES);
		struct index_column column;

		assert_non_null(whole);
		arena_set_apart(true);
		(void)mem_fail_only(nth);
		status = index_typed_path(&origin, whole, &column);
		failed = mem_fail_only(0) >= nth;
		arena_set_apart(false);
		assert_int_equal(status, failed ? STATUS_LIMIT : STATUS_OK);
		arena_free(whole);
	}
}

static void
what_is_no_path_is_not_read(void **state)
{
	static const struct {
		struct str names[3];
		size_t count;
		bool is_path;
	} cases[] = {
		{ { STR("1") }, 0, false },
		{ { STR("1") }, 1, true },
		{ { STR("x") }, 1, false },
		{ { STR("") }, 1, false },
		{ { STR("1"), STR("keys") }, 2, true },
		{ { STR("1"), STR("keys"), STR("a") }, 3, false },
		{ { STR("1"), STR("other") }, 2, false },
		{ { STR("1"), STR("json") }, 2, false },
		{ { STR("1"), STR("json"), STR("a") }, 3, true },
		{ { STR("1"), STR("order"), STR("a") }, 3, false },
		{ { STR("1"), STR("order"), STR("float") }, 3, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct index_column column = { cases[i].names, cases[i].count, false };
		struct index_typed_origin read;

		if (index_typed_path_read(&column, &read) != cases[i].is_path)
			fail_msg("%zu", i);
	}
}

static void
a_row_has_some_parts_once_at_most(void **state)
{
	(void)state;
	for (unsigned part = INDEX_TYPED_COLUMN; part <= INDEX_TYPED_ORDER; part++) {
		bool is_json = part == INDEX_TYPED_JSON || part == INDEX_TYPED_JSON_TEXT;

		assert_int_equal(index_typed_is_json((enum index_typed_part)part), is_json);
		assert_int_equal(index_typed_is_single((enum index_typed_part)part),
				 is_json || part == INDEX_TYPED_COLUMN ||
					 part == INDEX_TYPED_ORDER);
	}
}

/* ---- Entries ---- */

/* A map {1: "x", 2: "y"}, between columns of one cell each. */
static const struct index_typed_cell map_cells[] = {
	{ .column = 1, .value = { .kind = DOC_INT64, .n = 7 } },
	{ .column = 2,
	  .element = { .kind = DOC_INT64, .n = 1 },
	  .value = { .kind = DOC_TEXT, .text = STR("x") } },
	{ .column = 2,
	  .element = { .kind = DOC_INT64, .n = 2 },
	  .value = { .kind = DOC_TEXT, .text = STR("y") } },
	{ .column = 4, .value = { .kind = DOC_INT64, .n = 9 } },
};
static const struct index_typed_row map_row = { map_cells, COUNT(map_cells) };
static const struct index_typed_row no_row = { NULL, 0 };

static void
each_part_of_a_row_has_its_entries(void **state)
{
	static const struct {
		struct index_typed_origin origin;
		size_t entries;
	} cases[] = {
		{ { 1, INDEX_TYPED_COLUMN, NULL, 0 }, 1 },
		{ { 4, INDEX_TYPED_COLUMN, NULL, 0 }, 1 },
		{ { 0, INDEX_TYPED_COLUMN, NULL, 0 }, 0 },
		{ { 3, INDEX_TYPED_COLUMN, NULL, 0 }, 0 },
		{ { 5, INDEX_TYPED_COLUMN, NULL, 0 }, 0 },
		{ { 2, INDEX_TYPED_KEYS, NULL, 0 }, 2 },
		{ { 2, INDEX_TYPED_VALUES, NULL, 0 }, 2 },
		{ { 2, INDEX_TYPED_ENTRIES, NULL, 0 }, 2 },
	};
	struct str keys[COUNT(cases)];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct index_def def = def_of(&cases[i].origin, 1, 0, 0);
		struct index_pairs pairs = entries_of(&def, &map_row);

		if (pairs.count != cases[i].entries)
			fail_msg("%zu: %zu entries", i, pairs.count);
		if (pairs.count)
			keys[i] = pairs.pairs[0].key;
		assert_int_equal(entries_of(&def, &no_row).count, 0);
	}
	assert_false(str_eq(keys[5], keys[6]));
	assert_false(str_eq(keys[5], keys[7]));
	assert_false(str_eq(keys[6], keys[7]));
}

/* Other columns than the first may be null; of a UNIQUE index such an entry is no duplicate. */
static void
an_entry_with_a_null_is_free_in_a_unique_index(void **state)
{
	const struct index_typed_origin there[] = { { 1, INDEX_TYPED_COLUMN, NULL, 0 },
						    { 4, INDEX_TYPED_COLUMN, NULL, 0 } };
	const struct index_typed_origin lacks[] = { { 1, INDEX_TYPED_COLUMN, NULL, 0 },
						    { 3, INDEX_TYPED_COLUMN, NULL, 0 } };

	(void)state;
	for (uint32_t flags = 0; flags <= INDEX_UNIQUE; flags += INDEX_UNIQUE) {
		struct index_def def = def_of(there, 2, 0, flags);

		assert_int_equal(flags_of(&entries_of(&def, &map_row).pairs[0]), 0);
		def = def_of(lacks, 2, 0, flags);
		assert_int_equal(flags_of(&entries_of(&def, &map_row).pairs[0]),
				 flags ? INDEX_ENTRY_FREE : 0);
	}
}

static void
a_filter_holds_for_rows_that_have_its_columns(void **state)
{
	static const struct {
		struct index_typed_condition condition;
		size_t entries;
	} cases[] = {
		{ { 4, INDEX_TYPED_EQ, { .kind = DOC_INT64, .n = 9 } }, 1 },
		{ { 4, INDEX_TYPED_EQ, { .kind = DOC_INT64, .n = 8 } }, 0 },
		{ { 3, INDEX_TYPED_NE, { .kind = DOC_INT64, .n = 8 } }, 0 },
		{ { 3, INDEX_TYPED_NOT_NULL, { .kind = DOC_NULL } }, 0 },
		{ { 4, INDEX_TYPED_NOT_NULL, { .kind = DOC_NULL } }, 1 },
	};
	const struct index_typed_origin origin = { 1, INDEX_TYPED_COLUMN, NULL, 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct index_typed_condition both[] = { { 1, INDEX_TYPED_NOT_NULL, { 0 } },
							      cases[i].condition };
		struct index_typed_filter filter = { both, 2 };
		struct index_def def = def_of(&origin, 1, 0, 0);

		def.opened = &filter;
		assert_int_equal(entries_of(&def, &map_row).count, cases[i].entries);
	}
}

static void
what_a_definition_has_as_a_filter_is_read_when_it_is_opened(void **state)
{
	struct index_def def = { .form = &index_typed_form };
	struct err err = { 0 };

	(void)state;
	def.filter = STR("1 is ;");
	assert_int_equal(index_typed_form.open(&def, true, arena, &err), STATUS_OK);
	assert_int_equal(((struct index_typed_filter *)def.opened)->count, 1);
	def.filter = STR("1 is");
	assert_int_equal(index_typed_form.open(&def, true, arena, &err), STATUS_OK);
	def.filter = STR("x");
	assert_int_equal(index_typed_form.open(&def, true, arena, &err), STATUS_INVALID);
	assert_string_equal(err.text, "this is no filter of an index of rows");
	for (size_t bytes = 0; bytes < ROOM_BYTES; bytes += ROOM_STEP) {
		struct arena *small = arena_new(bytes);
		enum status status;

		def.filter = STR("1 = 00;");
		def.opened = NULL;
		status = index_typed_form.open(&def, true, small, &err);
		assert_int_equal(status, arena_is_full(small) ? STATUS_LIMIT : STATUS_OK);
		arena_free(small);
	}
}

/* ---- Documents ---- */

static void
what_lies_at_a_path_in_a_document_has_an_entry(void **state)
{
	static const struct {
		const char *document; /* NULL: a number */
		bool there, there_as_text;
		const char
			*equal_text; /* the text that it is equal to; NULL: it is not looked at */
	} cases[] = {
		{ "{\"a\":[1,{\"b\":\"x\"}]}", true, true, "x" },
		{ "{\"a\":[1,{\"b\":\"\\u0078\"}]}", true, true, "x" },
		{ "{\"a\":[1,{\"b\":7}]}", true, true, "7" },
		{ "{\"a\":[1,{\"b\":null}]}", true, false, NULL },
		{ "{\"a\":[1,{\"b\":\"null\"}]}", true, true, "null" },
		{ "{\"a\":[1,{\"c\":7}]}", false, false, NULL },
		{ "{\"a\":[1]}", false, false, NULL },
		{ "{\"a\":7}", false, false, NULL },
		{ "7", false, false, NULL },
		{ "{\"a\":[1,{\"b\":7}]", false, false, NULL },
		{ "", false, false, NULL },
		{ NULL, false, false, NULL },
	};
	static const struct str steps[] = { STR("a"), STR("1"), STR("b") };
	const struct index_typed_origin json = { 1, INDEX_TYPED_JSON, steps, 3 };
	const struct index_typed_origin as_text = { 1, INDEX_TYPED_JSON_TEXT, steps, 3 };
	const struct index_typed_origin plain = { 1, INDEX_TYPED_COLUMN, NULL, 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct index_typed_cell cell = {
			.column = 1,
			.value = cases[i].document ? text(str_from_cstr(cases[i].document))
						   : number(7),
		};
		const struct index_typed_row row = { &cell, 1 };
		struct index_def def = def_of(&json, 1, 0, 0);
		struct index_pairs pairs;

		if (entries_of(&def, &row).count != cases[i].there)
			fail_msg("json of %zu", i);
		def = def_of(&as_text, 1, 0, 0);
		pairs = entries_of(&def, &row);
		if (pairs.count != cases[i].there_as_text)
			fail_msg("text of %zu", i);
		if (cases[i].equal_text) {
			const struct index_typed_cell same = {
				.column = 1, .value = text(str_from_cstr(cases[i].equal_text))
			};
			const struct index_typed_row other = { &same, 1 };
			struct str key = pairs.pairs[0].key;

			def = def_of(&plain, 1, 0, 0);
			assert_true(str_eq(entries_of(&def, &other).pairs[0].key, key));
		}
	}
}

/* ---- Orders ---- */

static void
equal_numbers_of_an_order_are_one(void **state)
{
	const struct doc_scalar doubles[] = { { .kind = DOC_DOUBLE, .d = 0.0 },
					      { .kind = DOC_DOUBLE, .d = -0.0 },
					      { .kind = DOC_DOUBLE, .d = (double)NAN },
					      { .kind = DOC_DOUBLE, .d = -(double)NAN } };
	const struct doc_scalar floats[] = { { .kind = DOC_FLOAT, .f = 0.0f },
					     { .kind = DOC_FLOAT, .f = -0.0f },
					     { .kind = DOC_FLOAT, .f = NAN },
					     { .kind = DOC_FLOAT, .f = -NAN } };
	const struct doc_scalar others[] = { number(1),
					     text(STR("x")),
					     { .kind = DOC_BYTES, .text = STR("\xff") } };
	const struct doc_scalar numerics[] = { { .kind = DOC_BYTES, .text = STR("1.5") },
					       { .kind = DOC_BYTES, .text = STR("1.50") },
					       { .kind = DOC_BYTES, .text = STR("1.500") } };
	static const struct str orders[] = { STR("numeric"), STR("interval"), STR("float") };
	struct doc_scalar got[4];
	bool there;
	int c;

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		for (size_t i = 0; i < 4; i++) {
			assert_int_equal(index_typed_order(STR("float"),
							   k ? &floats[i] : &doubles[i], arena,
							   &got[i], &there),
					 STATUS_OK);
			assert_true(there);
		}
		assert_int_equal(index_typed_compare(&got[0], &got[1], &c), STATUS_OK);
		assert_int_equal(c, 0);
		assert_int_equal(index_typed_compare(&got[2], &got[3], &c), STATUS_OK);
		assert_int_equal(c, 0);
		assert_int_equal(index_typed_compare(&got[1], &got[2], &c), STATUS_OK);
		assert_true(c < 0);
	}
	/* What is no value of the type has no place in the order. */
	for (size_t o = 0; o < COUNT(orders); o++)
		for (size_t i = 0; i < COUNT(others); i++) {
			assert_int_equal(
				index_typed_order(orders[o], &others[i], arena, &got[0], &there),
				STATUS_OK);
			if (there)
				fail_msg("%zu in order %zu", i, o);
		}
	assert_int_equal(index_typed_order(STR("other"), &doubles[0], arena, &got[0], &there),
			 STATUS_OK);
	assert_false(there);
	/* A numeric is written in several ways, and has a place in its own order alone. */
	for (size_t i = 0; i < COUNT(numerics); i++) {
		assert_int_equal(
			index_typed_order(STR("numeric"), &numerics[i], arena, &got[i], &there),
			STATUS_OK);
		assert_true(there);
		assert_true(str_eq(got[i].text, got[0].text));
		assert_int_equal(
			index_typed_order(STR("other"), &numerics[i], arena, &got[1], &there),
			STATUS_OK);
		assert_false(there);
		assert_int_equal(
			index_typed_order(STR("float"), &numerics[i], arena, &got[1], &there),
			STATUS_OK);
		assert_false(there);
	}
	assert_false(index_typed_order_is_known(STR("other")));
}

/* ---- What stays as it is ---- */

static void
a_change_is_seen_where_a_column_of_the_index_has_it(void **state)
{
	static const struct {
		size_t cell;
		struct index_typed_cell other;
		bool same, same_if_carried;
	} cases[] = {
		{ 0, { .column = 1, .value = { .kind = DOC_INT64, .n = 7 } }, true, true },
		{ 0, { .column = 1, .value = { .kind = DOC_INT64, .n = 8 } }, false, false },
		{ 0, { .column = 1, .value = { .kind = DOC_BOOL, .truth = true } }, false, false },
		{ 0,
		  { .column = 1, .value = { .kind = DOC_INT64, .n = 7 }, .expires = true },
		  true,
		  false },
		{ 1,
		  { .column = 2,
		    .element = { .kind = DOC_INT64, .n = 1 },
		    .value = { .kind = DOC_TEXT, .text = STR("z") } },
		  false,
		  false },
		{ 1,
		  { .column = 2,
		    .element = { .kind = DOC_INT64, .n = 0 },
		    .value = { .kind = DOC_TEXT, .text = STR("x") } },
		  false,
		  false },
		{ 2,
		  { .column = 3, .value = { .kind = DOC_TEXT, .text = STR("y") } },
		  false,
		  false },
		/* This column is carried alone. */
		{ 3, { .column = 4, .value = { .kind = DOC_INT64, .n = 10 } }, true, false },
	};
	const struct index_typed_origin origins[] = { { 1, INDEX_TYPED_COLUMN, NULL, 0 },
						      { 2, INDEX_TYPED_ENTRIES, NULL, 0 },
						      { 4, INDEX_TYPED_COLUMN, NULL, 0 } };
	const struct index_source before = { .id = STR("id"), .row = &map_row };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct index_typed_cell cells[COUNT(map_cells)];
		const struct index_typed_row row = { cells, COUNT(cells) };
		const struct index_source after = { .id = STR("id"), .row = &row };

		memcpy(cells, map_cells, sizeof(cells));
		cells[cases[i].cell] = cases[i].other;
		for (size_t carried = 0; carried < 2; carried++) {
			struct index_def def = def_of(origins, 2, carried, 0);
			bool same;

			assert_int_equal(index_typed_form.has_same_columns(&def, &before, &after,
									   &work, &same),
					 STATUS_OK);
			if (same != (carried ? cases[i].same_if_carried : cases[i].same))
				fail_msg("%zu, %zu carried", i, carried);
		}
	}
}

/* ---- What entries carry ---- */

static const struct index_typed_origin carries[] = { { 1, INDEX_TYPED_COLUMN, NULL, 0 },
						     { 2, INDEX_TYPED_COLUMN, NULL, 0 } };

static void
an_entry_carries_values_that_last_as_long_as_it(void **state)
{
	static const struct {
		struct index_typed_cell cells[3];
		size_t count;
		const char *columns; /* whose values are carried; NULL: nothing is */
	} cases[] = {
		{ { { .column = 1, .value = { .kind = DOC_INT64, .n = 7 } },
		    { .column = 2, .value = { .kind = DOC_INT64, .n = 8 } } },
		  2,
		  "12" },
		{ { { .column = 1, .value = { .kind = DOC_INT64, .n = 7 }, .is_key = true },
		    { .column = 2, .value = { .kind = DOC_INT64, .n = 8 } } },
		  2,
		  "2" },
		{ { { .column = 1, .value = { .kind = DOC_INT64, .n = 7 } } }, 1, "1" },
		{ { { .column = 1, .value = { .kind = DOC_INT64, .n = 7 }, .is_key = true } },
		  1,
		  NULL },
		{ { { .column = 1, .value = { .kind = DOC_INT64, .n = 7 }, .is_key = true },
		    { .column = 3, .value = { .kind = DOC_INT64, .n = 8 } } },
		  2,
		  NULL },
		{ { { .column = 1, .value = { .kind = DOC_INT64, .n = 7 } },
		    { .column = 2, .value = { .kind = DOC_INT64, .n = 8 }, .expires = true } },
		  2,
		  NULL },
		{ { { .column = 1, .value = { .kind = DOC_INT64, .n = 7 } },
		    { .column = 3, .value = { .kind = DOC_INT64, .n = 8 }, .expires = true } },
		  2,
		  "1" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct index_typed_row row = { cases[i].cells, cases[i].count };
		struct index_def def = def_of(carries, 1, 1, 0);
		struct index_entry entry = entry_of(&def, &row);
		struct str left = entry.values, scalar;
		const char *expected = cases[i].columns;
		uint64_t column;

		if (!entry.values.ptr != !expected)
			fail_msg("%zu", i);
		for (; expected && *expected; expected++) {
			assert_int_equal(index_typed_carried_next(&left, &column, &scalar),
					 STATUS_OK);
			assert_int_equal(column, *expected - '0');
		}
		if (cases[i].columns)
			assert_int_equal(index_typed_carried_next(&left, &column, &scalar),
					 STATUS_NOT_FOUND);
		/* Without carried columns there is nothing. */
		def = def_of(carries, 1, 0, 0);
		assert_null(entry_of(&def, &row).values.ptr);
	}
}

/* What lies behind the columns of a definition in memory is none of them. */
static void
columns_of_others_are_not_carried(void **state)
{
	const struct index_typed_origin origins[] = { { 1, INDEX_TYPED_COLUMN, NULL, 0 },
						      { 2, INDEX_TYPED_COLUMN, NULL, 0 },
						      { 3, INDEX_TYPED_COLUMN, NULL, 0 },
						      { 4, INDEX_TYPED_COLUMN, NULL, 0 } };
	struct index_typed_cell cells[COLUMNS];
	const struct index_typed_row row = { cells, COLUMNS };

	(void)state;
	for (size_t i = 0; i < COLUMNS; i++)
		cells[i] = (struct index_typed_cell){ .column = i + 1,
						      .value = number((int64_t)i) };
	for (size_t count = 1; count < COLUMNS; count++)
		for (size_t carried = 1; count + carried <= COLUMNS; carried++) {
			struct index_def def = def_of(origins, COLUMNS, 0, 0);
			struct str left, scalar;
			uint64_t column;

			def.column_count = count;
			def.carried = (uint32_t)carried;
			left = entry_of(&def, &row).values;
			for (uint64_t i = 1; i <= count + carried; i++) {
				assert_int_equal(index_typed_carried_next(&left, &column, &scalar),
						 STATUS_OK);
				assert_int_equal(column, i);
			}
			assert_int_equal(left.len, 0);
		}
}

/* Of a part of a column the value is not carried, though the row lives by it. */
static void
a_part_of_a_column_is_not_carried(void **state)
{
	static const struct str steps[] = { STR("a") };
	const struct index_typed_origin origins[] = { { 1, INDEX_TYPED_JSON, steps, 1 },
						      { 2, INDEX_TYPED_COLUMN, NULL, 0 } };
	const struct index_typed_cell cell = { .column = 1, .value = text(STR("{\"a\":1}")) };
	const struct index_typed_row row = { &cell, 1 };
	struct index_def def = def_of(origins, 1, 1, 0);
	struct index_entry entry = entry_of(&def, &row);

	(void)state;
	assert_non_null(entry.values.ptr);
	assert_int_equal(entry.values.len, 0);
}

static void
values_are_carried_up_to_their_limit(void **state)
{
	static char bytes[INDEX_PAYLOAD_BYTES + 1];
	struct index_def def = def_of(carries, 1, 1, 0);
	size_t most = 0;

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	for (size_t len = INDEX_PAYLOAD_BYTES - 32; len <= INDEX_PAYLOAD_BYTES + 1; len++) {
		const struct index_typed_cell cells[] = {
			{ .column = 1, .value = number(7), .is_key = true },
			{ .column = 2, .value = text(str_of(bytes, len)) },
		};
		const struct index_typed_row row = { cells, 2 };
		struct index_entry entry = entry_of(&def, &row);

		if (entry.values.ptr)
			assert_int_equal(len, INDEX_PAYLOAD_BYTES - 32 + most++);
		if (entry.values.ptr)
			assert_true(entry.values.len <= INDEX_PAYLOAD_BYTES);
	}
	/* A column's number, a text's code and its end take four bytes. */
	assert_int_equal(most, 32 - 4 + 1);
}

static void
an_id_has_bytes_up_to_its_limit(void **state)
{
	static char bytes[INDEX_ID_BYTES];
	struct index_def def = def_of(carries, 1, 0, 0);
	struct index_pairs pairs;

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	assert_int_equal(make(&def, &map_row, str_of(bytes, INDEX_ID_BYTES - 2), &pairs),
			 STATUS_OK);
	assert_int_equal(make(&def, &map_row, str_of(bytes, INDEX_ID_BYTES - 1), &pairs),
			 STATUS_UNSUPPORTED);
	/* A NUL takes two. */
	bytes[0] = '\0';
	assert_int_equal(make(&def, &map_row, str_of(bytes, INDEX_ID_BYTES - 3), &pairs),
			 STATUS_OK);
	assert_int_equal(make(&def, &map_row, str_of(bytes, INDEX_ID_BYTES - 2), &pairs),
			 STATUS_UNSUPPORTED);
}

/* Wherever an entry ends, or with anything behind it. */
static void
an_entry_that_is_cut_or_longer_is_corrupt(void **state)
{
	const struct index_typed_cell cells[] = { { .column = 1, .value = number(7) },
						  { .column = 2, .value = text(STR("x")) } };
	const struct index_typed_row row = { cells, 2 };

	(void)state;
	for (size_t carried = 0; carried < 2; carried++) {
		struct index_def def = def_of(carries, 1, carried, 0);
		const struct kv_pair pair = entries_of(&def, &row).pairs[0];
		AUTO(buf_release) struct buf longer = BUF_INIT(4096);
		struct index_entry entry;
		size_t read = 0;

		for (size_t len = 0; len <= pair.value.len; len++) {
			enum status status = parse(&def, &pair, str_of(pair.value.ptr, len),
						   &entry);

			if (status != STATUS_OK)
				assert_int_equal(status, STATUS_CORRUPT);
			read += status == STATUS_OK;
		}
		/* With carried values a shorter one may end behind each of them. */
		assert_int_equal(read, carried ? 3 : 1);
		buf_append_str(&longer, pair.value);
		tuple_put_u64(&longer, 1);
		assert_int_equal(parse(&def, &pair, buf_str(&longer), &entry), STATUS_CORRUPT);
		buf_append_byte(&longer, 0xff);
		assert_int_equal(parse(&def, &pair, buf_str(&longer), &entry), STATUS_CORRUPT);
	}
}

/* Flags say that values are carried, in an index that carries none. */
static void
values_that_nothing_carries_are_corrupt(void **state)
{
	struct index_def def = def_of(carries, 1, 0, 0);
	const struct kv_pair pair = entries_of(&def, &map_row).pairs[0];
	AUTO(buf_release) struct buf value = BUF_INIT(64);
	struct index_entry entry;

	(void)state;
	tuple_put_u64(&value, INDEX_ENTRY_FORMAT);
	tuple_put_u64(&value, INDEX_ENTRY_CARRIES);
	assert_int_equal(parse(&def, &pair, buf_str(&value), &entry), STATUS_CORRUPT);
	def = def_of(carries, 1, 1, 0);
	assert_int_equal(parse(&def, &pair, buf_str(&value), &entry), STATUS_OK);
	assert_non_null(entry.values.ptr);
	assert_int_equal(entry.values.len, 0);
}

/* In an arena of each size, a row has all of its entries or none. */
static void
a_row_without_room_has_no_entries(void **state)
{
	static const struct str steps[] = { STR("a"), STR("b") };
	static const struct str order[] = { STR("float") };
	const struct index_typed_origin origins[] = { { 1, INDEX_TYPED_JSON, steps, 2 },
						      { 2, INDEX_TYPED_ORDER, order, 1 },
						      { 3, INDEX_TYPED_COLUMN, NULL, 0 } };
	const struct index_typed_cell cells[] = {
		{ .column = 1, .value = text(STR("{\"a\":{\"b\":[1,2,3]}}")) },
		{ .column = 2, .value = { .kind = DOC_DOUBLE, .d = 1.5 } },
		{ .column = 3, .value = text(STR("x")) },
	};
	const struct index_typed_row row = { cells, COUNT(cells) };
	const struct index_source source = { .id = STR("id"), .row = &row };
	struct index_def def = def_of(origins, 2, 1, 0);
	enum status status = STATUS_LIMIT;

	(void)state;
	for (size_t bytes = 0; bytes < ROOM_BYTES; bytes += ROOM_STEP) {
		struct index_work small = { .arena = arena_new(bytes) };
		struct index_pairs pairs;

		status = index_entries_make(&db, &def, &source, &small, &pairs);
		assert_int_equal(status, arena_is_full(small.arena) ? STATUS_LIMIT : STATUS_OK);
		if (status == STATUS_OK)
			assert_int_equal(pairs.count, 1);
		arena_free(small.arena);
	}
	assert_int_equal(status, STATUS_OK);
}

/* A condition that holds makes no row fulfil one before it that does not. */
static void
each_condition_of_a_filter_holds_in_any_order(void **state)
{
	static const struct index_typed_condition conditions[] = {
		{ 1, INDEX_TYPED_EQ, { .kind = DOC_INT64, .n = 1 } },
		{ 1, INDEX_TYPED_EQ, { .kind = DOC_INT64, .n = 2 } },
		{ 2, INDEX_TYPED_NOT_NULL, { .kind = DOC_NULL } }, /* the row has no such column */
	};
	const struct index_typed_cell cell = { .column = 1, .value = number(1) };
	const struct index_typed_row row = { &cell, 1 };
	const struct index_typed_origin origin = { 1, INDEX_TYPED_COLUMN, NULL, 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(conditions); i++)
		for (size_t j = 0; j < COUNT(conditions); j++) {
			const struct index_typed_condition both[] = { conditions[i],
								      conditions[j] };
			struct index_typed_filter filter = { both, 2 };
			struct index_def def = def_of(&origin, 1, 0, 0);

			def.opened = &filter;
			assert_int_equal(entries_of(&def, &row).count, i == 0 && j == 0);
		}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_path_leads_back_to_its_origin),
		TEST(a_path_without_room_is_none),
		TEST(what_is_no_path_is_not_read),
		TEST(a_row_has_some_parts_once_at_most),
		TEST(each_part_of_a_row_has_its_entries),
		TEST(an_entry_with_a_null_is_free_in_a_unique_index),
		TEST(a_filter_holds_for_rows_that_have_its_columns),
		TEST(what_a_definition_has_as_a_filter_is_read_when_it_is_opened),
		TEST(what_lies_at_a_path_in_a_document_has_an_entry),
		TEST(equal_numbers_of_an_order_are_one),
		TEST(a_change_is_seen_where_a_column_of_the_index_has_it),
		TEST(an_entry_carries_values_that_last_as_long_as_it),
		TEST(columns_of_others_are_not_carried),
		TEST(a_part_of_a_column_is_not_carried),
		TEST(values_are_carried_up_to_their_limit),
		TEST(an_id_has_bytes_up_to_its_limit),
		TEST(an_entry_that_is_cut_or_longer_is_corrupt),
		TEST(values_that_nothing_carries_are_corrupt),
		TEST(a_row_without_room_has_no_entries),
		TEST(each_condition_of_a_filter_holds_in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
