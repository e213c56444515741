/* Filters of indexes of rows: their text, and which values fulfil a condition. */
#include "common.h"

#include "index/typed/filter.h"
#include "index/typed/form.h"

enum {
	FILTER_BYTES = 4096,
};

static struct doc_scalar
number(int64_t n)
{
	return (struct doc_scalar){ .kind = DOC_INT64, .n = n };
}

static struct str
filter_text(const struct index_typed_condition *conditions, size_t count)
{
	AUTO(buf_release) struct buf text = BUF_INIT(FILTER_BYTES);

	assert_int_equal(index_typed_filter_put(conditions, count, &text), STATUS_OK);
	return arena_dup(arena, buf_str(&text));
}

/* A path leads into JSON, an order has its name, and all the rest has no steps. */
static void
steps_are_those_of_a_part(void **state)
{
	static const struct str steps[] = { STR("numeric"), STR("interval") };
	static const struct str unknown[] = { STR("alphabetic") };
	static const struct {
		enum index_typed_part part;
		const struct str *steps;
		size_t count;
		bool fit;
	} cases[] = {
		{ INDEX_TYPED_ORDER, steps, 1, true },
		{ INDEX_TYPED_ORDER, unknown, 1, false },
		{ INDEX_TYPED_ORDER, steps, 0, false },
		{ INDEX_TYPED_ORDER, steps, 2, false },
		{ INDEX_TYPED_JSON, unknown, 1, true },
		{ INDEX_TYPED_JSON, steps, 0, false },
		{ INDEX_TYPED_JSON_TEXT, steps, 2, true },
		{ INDEX_TYPED_JSON_TEXT, steps, 0, false },
		{ INDEX_TYPED_COLUMN, steps, 0, true },
		{ INDEX_TYPED_COLUMN, steps, 1, false },
		{ INDEX_TYPED_KEYS, steps, 0, true },
		{ INDEX_TYPED_KEYS, steps, 1, false },
		{ INDEX_TYPED_VALUES, steps, 1, false },
		{ INDEX_TYPED_ENTRIES, steps, 1, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (index_typed_steps_fit(cases[i].part, cases[i].steps, cases[i].count) !=
		    cases[i].fit)
			fail_msg("case %zu", i);
}

static void
a_filter_is_read_as_it_was_written(void **state)
{
	const struct index_typed_condition conditions[] = {
		{ 4, INDEX_TYPED_EQ, number(-1) },
		{ 5, INDEX_TYPED_NE, { .kind = DOC_TEXT, .text = STR("a;b c") } },
		{ 6, INDEX_TYPED_LT, number(2) },
		{ UINT64_MAX, INDEX_TYPED_LE, number(3) },
		{ 7, INDEX_TYPED_GT, number(4) },
		{ 8, INDEX_TYPED_GE, { .kind = DOC_BYTES, .text = STR("\0\xff") } },
		{ 9, INDEX_TYPED_NOT_NULL, { .kind = DOC_NULL } },
	};
	struct index_typed_filter filter;
	struct str text = filter_text(conditions, COUNT(conditions));

	(void)state;
	assert_int_equal(index_typed_filter_read(text, arena, &filter), STATUS_OK);
	assert_int_equal(filter.count, COUNT(conditions));
	for (size_t i = 0; i < COUNT(conditions); i++) {
		assert_int_equal(filter.conditions[i].column, conditions[i].column);
		assert_int_equal(filter.conditions[i].op, conditions[i].op);
		assert_int_equal(filter.conditions[i].value.kind, conditions[i].value.kind);
	}
	assert_int_equal(filter.conditions[0].value.n, -1);
	assert_true(str_eq(filter.conditions[1].value.text, STR("a;b c")));
	assert_true(str_eq(filter.conditions[5].value.text, STR("\0\xff")));
	assert_true(str_eq(filter_text(filter.conditions, filter.count), text));
}

static void
what_is_no_filter_is_refused(void **state)
{
	static const char *const texts[] = {
		"",       ";",       "x is ;",  "1 is 00;", "1 ~ ;",   "1 = ;",
		"1 = 0;", "1 = 0g;", "1 = ff;", "1 is ;2",  "1 is ;;",
	};
	struct index_typed_filter filter;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		if (index_typed_filter_read(str_from_cstr(texts[i]), arena, &filter) !=
		    STATUS_INVALID)
			fail_msg("%s is a filter", texts[i]);
}

static void
a_filter_has_so_many_conditions_at_most(void **state)
{
	struct index_typed_condition conditions[INDEX_TYPED_CONDITIONS + 1];
	struct index_typed_filter filter;

	(void)state;
	for (size_t i = 0; i < COUNT(conditions); i++)
		conditions[i] = (struct index_typed_condition){ .column = i, INDEX_TYPED_NOT_NULL };
	assert_int_equal(index_typed_filter_read(filter_text(conditions, INDEX_TYPED_CONDITIONS),
						 arena, &filter),
			 STATUS_OK);
	assert_int_equal(filter.count, INDEX_TYPED_CONDITIONS);
	assert_int_equal(filter.conditions[INDEX_TYPED_CONDITIONS - 1].column,
			 INDEX_TYPED_CONDITIONS - 1);
	assert_int_equal(
		index_typed_filter_read(filter_text(conditions, COUNT(conditions)), arena, &filter),
		STATUS_INVALID);
}

/* In an arena of each size, up to one that is enough. */
static void
a_filter_without_room_is_none(void **state)
{
	const struct index_typed_condition condition = {
		1, INDEX_TYPED_EQ, { .kind = DOC_TEXT, .text = STR("some words") }
	};
	struct str text = filter_text(&condition, 1);
	enum status status = STATUS_LIMIT;

	(void)state;
	for (size_t bytes = 0; status != STATUS_OK; bytes += 8) {
		struct arena *little = arena_new(bytes);
		struct index_typed_filter filter;

		status = index_typed_filter_read(text, little, &filter);
		assert_int_equal(status, arena_is_full(little) ? STATUS_LIMIT : STATUS_OK);
		if (status == STATUS_OK)
			assert_true(str_eq(filter.conditions[0].value.text, STR("some words")));
		arena_free(little);
	}
}

static void
a_value_fulfils_a_condition_as_it_compares(void **state)
{
	static const struct {
		enum index_typed_operator op;
		bool of_less, of_same, of_more;
	} cases[] = {
		{ INDEX_TYPED_EQ, false, true, false },     { INDEX_TYPED_NE, true, false, true },
		{ INDEX_TYPED_LT, true, false, false },     { INDEX_TYPED_LE, true, true, false },
		{ INDEX_TYPED_GT, false, false, true },     { INDEX_TYPED_GE, false, true, true },
		{ INDEX_TYPED_NOT_NULL, true, true, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct index_typed_condition condition = { 1, cases[i].op, number(0) };
		const bool expected[] = { cases[i].of_less, cases[i].of_same, cases[i].of_more };

		for (int n = -1; n <= 1; n++) {
			struct doc_scalar value = number(n);
			bool holds = !expected[n + 1];

			assert_int_equal(index_typed_holds(&condition, &value, &holds), STATUS_OK);
			assert_int_equal(holds, expected[n + 1]);
		}
	}
}

static void
bytes_of_no_length_are_less_than_others_and_more_than_nothing(void **state)
{
	const struct doc_scalar nothing = { .kind = DOC_UNDEFINED }, null = { .kind = DOC_NULL };
	const struct doc_scalar empty = { .kind = DOC_BYTES, .text = STR("") };
	const struct doc_scalar some = { .kind = DOC_BYTES, .text = STR("\0") };
	int order;

	(void)state;
	assert_int_equal(index_typed_compare(&empty, &some, &order), STATUS_OK);
	assert_true(order < 0);
	assert_int_equal(index_typed_compare(&empty, &nothing, &order), STATUS_OK);
	assert_true(order > 0);
	assert_int_equal(index_typed_compare(&empty, &null, &order), STATUS_OK);
	assert_int_equal(order, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(steps_are_those_of_a_part),
		TEST(a_filter_is_read_as_it_was_written),
		TEST(what_is_no_filter_is_refused),
		TEST(a_filter_has_so_many_conditions_at_most),
		TEST(a_filter_without_room_is_none),
		TEST(a_value_fulfils_a_condition_as_it_compares),
		TEST(bytes_of_no_length_are_less_than_others_and_more_than_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
