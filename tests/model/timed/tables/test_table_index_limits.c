/*
 * Indexes of a table at their limits, and one beyond: how many there are, which columns one can
 * have, what it includes and by what it chooses rows. And what tables need that leave their store.
 */
#include "limits_world.h"

#include "model/timed/tables/index.h"
#include "model/timed/tables/keyspaces.h"
#include "store.h"
#include "test_tables.h"
#include "verified.h"

enum {
	WIDE_VALUES = 20, /* single values behind the key */
	WIDE_COLUMNS = 2 + WIDE_VALUES + 3,

	/* Ids in "ks.wide": the key, values, and then these. */
	WIDE_VALUE = 3,
	WIDE_SET = WIDE_VALUE + WIDE_VALUES,
	WIDE_STATIC,
	WIDE_LIST,
};

static enum status
wide_body(struct timed *t, void *arg)
{
	struct table_column columns[WIDE_COLUMNS] = {
		{ .name = STR("h"), .kind = TABLE_HASH },
		{ .name = STR("r"), .kind = TABLE_RANGE },
	};
	const struct table_schema schema = { .columns = columns, .column_count = WIDE_COLUMNS };
	struct fixture *f = arg;

	for (unsigned i = 0; i < WIDE_VALUES; i++)
		columns[2 + i] = (struct table_column){ .name = arena_printf(f->arena, "c%u", i),
							.kind = TABLE_REGULAR };
	columns[WIDE_SET - 1] = (struct table_column){ .name = STR("set"),
						       .kind = TABLE_REGULAR,
						       .storage = TABLE_SET };
	columns[WIDE_STATIC - 1] = (struct table_column){ .name = STR("st"), .kind = TABLE_STATIC };
	columns[WIDE_LIST - 1] = (struct table_column){ .name = STR("l"),
							.kind = TABLE_REGULAR,
							.storage = TABLE_LIST };
	return table_create(t->tx, STR("ks.wide"), &schema, 0, t->err);
}

static enum status
create_body(struct timed *t, void *arg)
{
	uint64_t number;

	return table_index_create(t, arg, &number);
}

static enum status
drop_body(struct timed *t, void *arg)
{
	const struct str *name = arg;

	return table_index_drop(t, table_index_named(t->db, *name));
}

/* An index of one name, which is dropped again if it was made. */
static void
try_index(struct fixture *f, const char *table, struct table_index terms, const char *refusal)
{
	struct str name = STR("tried");

	terms.name = name;
	expect(f, table, create_body, &terms, refusal);
	if (!refusal)
		expect(f, table, drop_body, &name, NULL);
}

static const struct str step = TEXT("a");

static void
try_part(struct fixture *f, uint64_t column, enum index_typed_part part, const char *refusal)
{
	const bool has_steps = part == INDEX_TYPED_JSON || part == INDEX_TYPED_JSON_TEXT;
	const struct table_index_column c = {
		.column = column, .part = part, .steps = &step, .step_count = has_steps
	};

	try_index(f, "ks.wide", (struct table_index){ .columns = &c, .column_count = 1 }, refusal);
}

static void
an_index_has_a_name_of_its_own(void **state)
{
	const struct table_index_column column = { .column = MSG };
	struct table_index terms = { .columns = &column, .column_count = 1 };
	struct fixture *f = *state;

	terms.name = letters(f, TABLE_COLUMN_BYTES + 1);
	expect(f, "ks.msgs", create_body, &terms, "the name of an index has 1 to 100 bytes");
	terms.name = STR("");
	expect(f, "ks.msgs", create_body, &terms, "the name of an index has 1 to 100 bytes");
	terms.name = letters(f, TABLE_COLUMN_BYTES);
	expect(f, "ks.msgs", create_body, &terms, NULL);
	expect(f, "ks.msgs", create_body, &terms, "there is an index \"xxx");
	terms.name.len--;
	expect(f, "ks.msgs", create_body, &terms, NULL);
}

static void
a_table_has_as_many_indexes_as_it_may(void **state)
{
	const struct table_index_column column = { .column = MSG };
	struct table_index terms = { .columns = &column, .column_count = 1 };
	struct fixture *f = *state;
	struct str name = STR("i7");

	for (unsigned i = 0; i < TABLE_INDEXES; i++) {
		terms.name = arena_printf(f->arena, "i%u", i);
		expect(f, "ks.msgs", create_body, &terms, NULL);
	}
	terms.name = STR("more");
	assert_int_equal(run(f, "ks.msgs", create_body, &terms), STATUS_LIMIT);
	assert_non_null(strstr(f->err.text, "a table may have 64 indexes (TABLE_INDEXES)"));
	/* One that is being cleared counts. */
	expect(f, "ks.msgs", drop_body, &name, NULL);
	assert_int_equal(run(f, "ks.msgs", create_body, &terms), STATUS_LIMIT);
}

static void
an_index_has_columns_that_can_be_indexed(void **state)
{
	static const enum index_typed_part singles[] = { INDEX_TYPED_COLUMN, INDEX_TYPED_JSON,
							 INDEX_TYPED_JSON_TEXT };
	static const enum index_typed_part parts[] = { INDEX_TYPED_KEYS, INDEX_TYPED_VALUES,
						       INDEX_TYPED_ENTRIES };
	static const char way[] = "cannot be indexed in this way";
	const struct table_index_column counter = { .column = HITS_N };
	const struct table_index_column day = { .column = 2 };
	const struct table_index_column stepped = { .column = WIDE_VALUE,
						    .steps = &step,
						    .step_count = 1 };
	const struct table_index_column bare = { .column = WIDE_VALUE, .part = INDEX_TYPED_JSON };
	struct fixture *f = *state;

	expect(f, NULL, wide_body, f, NULL);
	try_index(f, "ks.hits", (struct table_index){ .columns = &counter, .column_count = 1 },
		  "counters cannot be indexed");
	try_index(f, "ks.hits", (struct table_index){ .columns = &day, .column_count = 1 },
		  "counters cannot be indexed");
	try_index(f, "ks.wide", (struct table_index){ .columns = &stepped, .column_count = 1 },
		  way);
	try_index(f, "ks.wide", (struct table_index){ .columns = &bare, .column_count = 1 }, way);
	for (size_t i = 0; i < COUNT(singles); i++) {
		try_part(f, 1, singles[i], NULL);
		try_part(f, 2, singles[i], NULL);
		try_part(f, WIDE_VALUE, singles[i], NULL);
		try_part(f, WIDE_STATIC, singles[i], NULL);
		try_part(f, WIDE_SET, singles[i], way);
		try_part(f, WIDE_LIST, singles[i], way);
	}
	for (size_t i = 0; i < COUNT(parts); i++) {
		try_part(f, 1, parts[i], way);
		try_part(f, WIDE_VALUE, parts[i], way);
		try_part(f, WIDE_SET, parts[i], parts[i] == INDEX_TYPED_KEYS ? NULL : way);
		try_part(f, WIDE_LIST, parts[i], parts[i] == INDEX_TYPED_VALUES ? NULL : way);
	}
	try_part(f, WIDE_LIST + 1, INDEX_TYPED_COLUMN, "no column of the table has the id 26");
	try_part(f, 0, INDEX_TYPED_COLUMN, "no column of the table has the id 0");
}

static void
parts_are_indexed_alone(void **state)
{
	const struct table_index_column set[] = {
		{ .column = WIDE_SET, .part = INDEX_TYPED_KEYS },
		{ .column = WIDE_VALUE },
	};
	const struct table_index_column fixed[] = { { .column = WIDE_STATIC },
						    { .column = WIDE_VALUE } };
	const struct table_index_column twice[] = { { .column = WIDE_VALUE },
						    { .column = WIDE_VALUE, .descending = true } };
	const struct table_index_column behind[] = { { .column = WIDE_VALUE },
						     { .column = WIDE_STATIC } };
	struct fixture *f = *state;
	struct table_index terms = { .columns = set, .column_count = 1 };

	expect(f, NULL, wide_body, f, NULL);
	try_index(f, "ks.wide", terms, NULL);
	terms.is_unique = true;
	try_index(f, "ks.wide", terms, "an index of parts of the column \"set\" cannot be unique");
	terms.is_unique = false;
	terms.column_count = 2;
	try_index(f, "ks.wide", terms, "\"set\" cannot be in an index of several columns");
	terms.columns = fixed;
	try_index(f, "ks.wide", terms, "\"st\" cannot be in an index of several columns");
	terms.columns = behind;
	try_index(f, "ks.wide", terms, "\"st\" cannot be in an index of several columns");
	terms.columns = twice;
	try_index(f, "ks.wide", terms, "the column \"c0\" is in the index twice");
	terms.column_count = 1;
	try_index(f, "ks.wide", terms, NULL);
}

static void
an_index_has_as_many_columns_as_it_may(void **state)
{
	struct table_index_column columns[TABLE_INDEX_COLUMNS + 1] = { 0 };
	uint64_t carried[TABLE_INDEX_CARRIED + 1];
	struct index_typed_condition conditions[INDEX_TYPED_CONDITIONS + 1] = { 0 };
	struct table_index terms = { .columns = columns };
	struct fixture *f = *state;

	expect(f, NULL, wide_body, f, NULL);
	for (size_t i = 0; i <= TABLE_INDEX_COLUMNS; i++)
		columns[i].column = i + 1;
	for (size_t i = 0; i <= TABLE_INDEX_CARRIED; i++)
		carried[i] = WIDE_VALUE + 1 + i;
	for (size_t i = 0; i <= INDEX_TYPED_CONDITIONS; i++)
		conditions[i] = (struct index_typed_condition){ .column = WIDE_VALUE,
								.value = number((int64_t)i) };
	try_index(f, "ks.wide", terms, "an index has 1 to 16 columns (TABLE_INDEX_COLUMNS)");
	terms.column_count = TABLE_INDEX_COLUMNS + 1;
	try_index(f, "ks.wide", terms, "an index has 1 to 16 columns (TABLE_INDEX_COLUMNS)");
	terms.column_count = TABLE_INDEX_COLUMNS;
	try_index(f, "ks.wide", terms, NULL);
	terms.column_count = 1;
	terms.carried = carried;
	terms.carried_count = TABLE_INDEX_CARRIED + 1;
	try_index(f, "ks.wide", terms, "(TABLE_INDEX_CARRIED)");
	terms.carried_count--;
	try_index(f, "ks.wide", terms, NULL);
	terms.carried_count = 0;
	terms.conditions = conditions;
	terms.condition_count = INDEX_TYPED_CONDITIONS + 1;
	try_index(f, "ks.wide", terms, "(INDEX_TYPED_CONDITIONS)");
	terms.condition_count--;
	try_index(f, "ks.wide", terms, NULL);
}

static void
an_index_includes_single_values(void **state)
{
	static const char single[] = "an index includes single values in the row, behind its key";
	static const char parts[] = "an index of parts of collections or of a static column";
	struct table_index_column columns[] = { { .column = WIDE_VALUE }, { .column = 2 } };
	uint64_t carried[] = { WIDE_VALUE + 1, 0 };
	struct table_index terms = {
		.columns = columns, .column_count = 2, .carried = carried, .carried_count = 2
	};
	static const struct {
		uint64_t column;
		const char *refusal;
	} cases[] = {
		{ 0, single },
		{ 1, single },
		{ 2, single },
		{ WIDE_SET, single },
		{ WIDE_STATIC, single },
		{ WIDE_LIST, single },
		{ WIDE_LIST + 1, single },
		{ WIDE_VALUE, "the column \"c0\" is in the index twice" },
		{ WIDE_VALUE + 1, "the column \"c1\" is in the index twice" },
		{ WIDE_VALUE + 2, NULL },
		{ WIDE_VALUE + WIDE_VALUES - 1, NULL },
	};
	struct fixture *f = *state;

	expect(f, NULL, wide_body, f, NULL);
	for (size_t i = 0; i < COUNT(cases); i++) {
		carried[1] = cases[i].column;
		try_index(f, "ks.wide", terms, cases[i].refusal);
	}
	/* A part of a value is not the value. */
	columns[0].part = INDEX_TYPED_JSON;
	columns[0].steps = &step;
	columns[0].step_count = 1;
	carried[1] = WIDE_VALUE;
	try_index(f, "ks.wide", terms, NULL);
	terms.column_count = 1;
	columns[0] = (struct table_index_column){ .column = WIDE_SET, .part = INDEX_TYPED_KEYS };
	try_index(f, "ks.wide", terms, parts);
	columns[0] = (struct table_index_column){ .column = WIDE_STATIC };
	try_index(f, "ks.wide", terms, parts);
	terms.carried_count = 0;
	try_index(f, "ks.wide", terms, NULL);
}

static void
rows_are_chosen_by_single_values(void **state)
{
	static const char single[] = "rows of an index are chosen by single values in the row";
	static const struct {
		uint64_t column;
		const char *refusal;
	} cases[] = {
		{ 0, single },
		{ 1, NULL },
		{ 2, NULL },
		{ WIDE_VALUE, NULL },
		{ WIDE_SET, single },
		{ WIDE_STATIC, single },
		{ WIDE_LIST, single },
		{ WIDE_LIST + 1, single },
		{ WIDE_SET - 1, NULL },
	};
	struct table_index_column column = { .column = WIDE_VALUE };
	struct index_typed_condition condition = { .value = number(5) };
	struct table_index terms = { .columns = &column,
				     .column_count = 1,
				     .conditions = &condition,
				     .condition_count = 1 };
	struct fixture *f = *state;

	expect(f, NULL, wide_body, f, NULL);
	for (size_t i = 0; i < COUNT(cases); i++) {
		condition.column = cases[i].column;
		try_index(f, "ks.wide", terms, cases[i].refusal);
	}
	condition.column = WIDE_VALUE;
	column.column = WIDE_STATIC;
	try_index(f, "ks.wide", terms, single);
}

/* ---- The past ---- */

static enum status
past_body(struct timed *t, void *arg)
{
	const struct table_index *index = table_index_named(t->db, STR("i"));
	const struct table_index_options options = { .rows = 1 };
	struct table_index_scan *scan;

	timed_at_us(t, *(uint64_t *)arg);
	return table_index_open(t, index, &options, &scan);
}

static void
an_index_is_not_read_in_the_past(void **state)
{
	const struct table_index_column column = { .column = MSG };
	struct table_index terms = { .name = STR("i"), .columns = &column, .column_count = 1 };
	struct fixture *f = *state;
	uint64_t us = f->now_ms * 1000;

	expect(f, "ks.msgs", create_body, &terms, NULL);
	expect(f, "ks.msgs", past_body, &us, "an index knows nothing of the past");
}

/* ---- Rows that are asked for first ---- */

static enum status
write_body(struct timed *t, void *arg)
{
	struct doc_scalar parts[] = { text("u"), number(4) };
	const struct table_change change = { .column = MSG, .value = text("m") };
	const struct table_change owner = { .column = OWNER, .value = text("o") };
	struct table_write write = { .inserts = true, .changes = &change, .change_count = 1 };

	(void)arg;
	write.key = (struct table_key){ .token = 7, .parts = parts, .count = 2 };
	TRY(table_write(t, &write));
	write = (struct table_write){ .changes = &owner, .change_count = 1 };
	write.key = (struct table_key){ .token = 7, .parts = parts, .count = 1 };
	return table_write(t, &write);
}

static enum status
ask_body(struct timed *t, void *arg)
{
	static const char *const drawn[] = { "(u/4* msg=m owner=o)", "(u owner=o)", NULL };
	struct doc_scalar parts[3][2] = { { text("u"), number(4) },
					  { text("u"), number(5) },
					  { text("v"), number(4) } };
	struct table_asked *asked[3];
	struct table_key keys[3];
	struct fixture *f = arg;

	for (size_t i = 0; i < 3; i++) {
		keys[i] = (struct table_key){ .token = 7, .parts = parts[i], .count = 2 };
		TRY(table_ask(t, &keys[i], true, NULL, &asked[i]));
	}
	for (size_t i = 0; i < 3; i++) {
		AUTO(buf_release) struct buf said = BUF_INIT(1000);
		struct table_row row = { 0 };
		enum status status = table_asked_read(asked[i], f->arena, &row);

		assert_int_equal(status, drawn[i] ? STATUS_OK : STATUS_NOT_FOUND);
		assert_int_equal(row.has_pairs, i == 0);
		if (drawn[i]) {
			draw_row(&row, &said);
			buf_append_byte(&said, '\0');
			assert_string_equal(said.ptr, drawn[i]);
		}
		table_asked_free(asked[i]);
	}
	table_asked_free(NULL);
	return STATUS_OK;
}

static void
rows_are_asked_for_together(void **state)
{
	struct fixture *f = *state;

	expect(f, "ks.msgs", write_body, NULL, NULL);
	expect(f, "ks.msgs", ask_body, f, NULL);
}

static void
cells_of_a_column_are_found(void **state)
{
	enum {
		IDS = 9
	};
	static const uint64_t ids[] = { 1, 3, 3, 3, 4, 6, 6 };
	static const size_t counts[IDS] = { 0, 1, 0, 3, 1, 0, 2, 0, 0 };
	struct table_column columns[IDS] = { 0 };
	struct table_cell cells[COUNT(ids)] = { 0 };
	size_t count;

	(void)state;
	for (size_t i = 0; i < IDS; i++)
		columns[i].id = i;
	for (size_t i = 0; i < COUNT(ids); i++)
		cells[i].column = &columns[ids[i]];
	for (size_t used = 0; used <= COUNT(ids); used++) {
		for (size_t id = 0; id < IDS; id++) {
			const struct table_cell *found = table_cells_of(cells, used, &columns[id],
									&count);
			size_t first = 0, want = 0;

			while (first < used && ids[first] < id)
				first++;
			while (first + want < used && ids[first + want] == id)
				want++;
			assert_int_equal(count, want);
			assert_ptr_equal(found, &cells[first]);
			if (used == COUNT(ids))
				assert_int_equal(count, counts[id]);
		}
	}
	assert_null(table_cells_of(NULL, 0, &columns[1], &count));
	assert_int_equal(count, 0);
}

static enum status
count_body(struct timed *t, void *arg)
{
	const struct doc_scalar parts[] = { text("p"), number(1) };
	const struct table_change change = { .kind = TABLE_CHANGE_ADD,
					     .column = HITS_N,
					     .value = number(3) };
	struct table_write write = { .changes = &change, .change_count = 1 };

	(void)arg;
	write.key = (struct table_key){ .token = 7, .parts = parts, .count = 2 };
	return table_write(t, &write);
}

static enum status
counted_body(struct timed *t, void *arg)
{
	const struct doc_scalar parts[] = { text("p"), number(1) };
	const struct table_key key = { .token = 7, .parts = parts, .count = 2 };
	const uint64_t ids[] = { HITS_N };
	const struct table_wanted none = { .some = true },
				  some = { .some = true, .ids = ids, .count = 1 };
	struct fixture *f = arg;
	struct table_row row;

	TRY(table_read(t, &key, false, NULL, f->arena, &row));
	assert_int_equal(row.cell_count, 1);
	assert_int_equal(row.cells[0].value.n, 3);
	TRY(table_read(t, &key, false, &some, f->arena, &row));
	assert_int_equal(row.cell_count, 1);
	TRY(table_read(t, &key, false, &none, f->arena, &row));
	assert_int_equal(row.cell_count, 0);
	assert_true(row.has_pairs);
	return STATUS_OK;
}

static void
counters_that_are_not_wanted_are_not_told(void **state)
{
	expect(*state, "ks.hits", count_body, NULL, NULL);
	expect(*state, "ks.hits", counted_body, *state, NULL);
}

/* ---- Names, keyspaces ---- */

static void
a_table_is_called_by_its_keyspace(void **state)
{
	AUTO(buf_release) struct buf name = BUF_INIT(1000);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(table_name(STR("ks"), STR("msgs"), &name, &err), STATUS_OK);
	assert_true(str_eq(buf_str(&name), STR("ks.msgs")));
	buf_clear(&name);
	assert_int_equal(table_name(STR("k s"), STR("msgs"), &name, &err), STATUS_INVALID);
	assert_non_null(strstr(err.text, "a keyspace"));
	assert_int_equal(table_name(STR("ks"), STR("ms.gs"), &name, &err), STATUS_INVALID);
	assert_non_null(strstr(err.text, "a table"));
	assert_int_equal(name.len, 0);
	assert_int_equal(table_kind.check_name(STR("ks.msgs"), &err), STATUS_OK);
	assert_int_equal(table_kind.check_name(STR("ks"), &err), STATUS_INVALID);
	assert_int_equal(table_kind.check_name(STR("ks."), &err), STATUS_INVALID);
	assert_int_equal(table_kind.check_name(STR(".msgs"), &err), STATUS_INVALID);
	assert_int_equal(table_kind.check_name(STR("ks.msgs.x"), &err), STATUS_INVALID);
}

static enum status
ensure_body(struct timed *t, void *arg)
{
	uint8_t before[TABLE_STAMP_BYTES], after[TABLE_STAMP_BYTES];
	struct table_keyspace there;
	struct fixture *f = arg;

	TRY(table_schemas_stamp(t->tx, before));
	TRY(table_keyspace_ensure(t->tx, STR("ks")));
	TRY(table_schemas_stamp(t->tx, after));
	assert_memory_equal(before, after, sizeof(before));
	TRY_WANT(STATUS_NOT_FOUND,
		 table_keyspace_read(t->tx, STR("new"), f->arena, &there, t->err));
	TRY(table_keyspace_ensure(t->tx, STR("new")));
	TRY(table_keyspace_read(t->tx, STR("new"), f->arena, &there, t->err));
	assert_true(str_eq(there.name, STR("new")));
	assert_int_equal(there.property_count, 0);
	return STATUS_OK;
}

static void
a_keyspace_is_made_where_it_is_missing(void **state)
{
	expect(*state, NULL, ensure_body, *state, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		TEST(an_index_has_a_name_of_its_own),
		TEST(a_table_has_as_many_indexes_as_it_may),
		TEST(an_index_has_columns_that_can_be_indexed),
		TEST(parts_are_indexed_alone),
		TEST(an_index_has_as_many_columns_as_it_may),
		TEST(an_index_includes_single_values),
		TEST(rows_are_chosen_by_single_values),
		TEST(an_index_is_not_read_in_the_past),
		TEST(rows_are_asked_for_together),
		cmocka_unit_test(cells_of_a_column_are_found),
		TEST(counters_that_are_not_wanted_are_not_told),
		cmocka_unit_test(a_table_is_called_by_its_keyspace),
		TEST(a_keyspace_is_made_where_it_is_missing),
	};

	return cmocka_run_group_tests_name("table index limits", tests, NULL, NULL);
}
