/*
 * Which order an index gives, what it covers, and which of several is chosen (index/plan). Orders
 * are compared with those of entries that are really sorted.
 */
#include "../common.h"

#include "index/plan/choice.h"
#include "index/plan/cover.h"
#include "index/plan/order.h"

enum {
	COLUMNS = 3,
	VALUES = 3, /* of each column */
	ENTRIES = VALUES * VALUES * VALUES,
	ROUNDS = 3000,
	LARGE = 1000,
};

/* ---- Orders ---- */

static struct order_column
column_look(const void *arg, size_t column)
{
	return ((const struct order_column *)arg)[column];
}

static struct order
order_of(const struct order_column *columns, size_t count)
{
	return (struct order){
		.look = column_look, .arg = columns, .count = count, .id = STR("_id")
	};
}

static void
columns_in_their_directions_or_all_against_them_are_an_order(void **state)
{
	const struct order_column columns[] = { { STR("a"), 0 }, { STR("b"), ORDER_DESCENDING } };
	struct order forwards = order_of(columns, 2), backwards = forwards, mixed = forwards;

	(void)state;
	assert_true(order_take(&forwards, STR("a"), false));
	assert_true(order_take(&forwards, STR("b"), true));
	assert_false(forwards.reverse);
	assert_true(order_take(&backwards, STR("a"), true));
	assert_true(order_take(&backwards, STR("b"), false));
	assert_true(backwards.reverse);
	assert_true(order_take(&mixed, STR("a"), false));
	assert_false(order_take(&mixed, STR("b"), false));
}

static void
only_columns_of_one_value_are_passed(void **state)
{
	const struct order_column columns[] = { { STR("a"), ORDER_FIXED },
						{ STR("b"), 0 },
						{ STR("c"), ORDER_FIXED },
						{ STR("d"), 0 },
						{ STR("e"), 0 } };
	struct order order = order_of(columns, 5), other = order;

	(void)state;
	assert_true(order_take(&order, STR("b"), false));
	assert_true(order_take(&order, STR("d"), false));
	assert_false(order.merges);
	assert_true(order_take(&other, STR("b"), false));
	assert_false(order_take(&other, STR("e"), false));
}

static void
adjacent_fields_pass_columns_only_in_front_of_the_first(void **state)
{
	const struct order_column columns[] = { { STR("a"), ORDER_FIXED },
						{ STR("b"), 0 },
						{ STR("c"), ORDER_FIXED },
						{ STR("d"), 0 } };
	struct order order = order_of(columns, 4), constant = order;

	(void)state;
	order.adjacent = constant.adjacent = true;
	assert_true(order_take(&order, STR("b"), false));
	assert_true(order_take(&order, STR("c"), false));
	assert_true(order_take(&order, STR("d"), false));
	order = constant;
	assert_true(order_take(&order, STR("b"), false));
	assert_false(order_take(&order, STR("d"), false));
	assert_true(order_take(&constant, STR("b"), false));
	assert_false(order_take(&constant, STR("a"), false));
}

static void
a_field_of_one_value_stands_anywhere_unless_documents_have_several_entries(void **state)
{
	const struct order_column columns[] = { { STR("a"), ORDER_FIXED },
						{ STR("m"), ORDER_FIXED | ORDER_MANY },
						{ STR("b"), 0 } };
	struct order order = order_of(columns, 3);

	(void)state;
	assert_true(order_take(&order, STR("b"), true));
	assert_true(order_take(&order, STR("a"), false));
	assert_false(order_take(&order, STR("m"), false));
}

static void
nothing_behind_the_id_decides_anything(void **state)
{
	const struct order_column column = { STR("a"), 0 };
	struct order order = order_of(&column, 1), unknown = order, early = order;

	(void)state;
	assert_true(order_take(&order, STR("a"), true));
	assert_true(order_take(&order, STR("_id"), true));
	assert_true(order_take(&order, STR("other"), false));
	assert_true(order.reverse);
	unknown.id = STR("");
	assert_true(order_take(&unknown, STR("a"), true));
	assert_false(order_take(&unknown, STR("_id"), true));
	assert_false(order_take(&early, STR("_id"), false));
}

static void
cut_values_are_no_order_but_one_of_them_is_passed(void **state)
{
	const struct order_column columns[] = { { STR("a"), ORDER_FIXED | ORDER_CUT },
						{ STR("b"), ORDER_CUT } };
	struct order order = order_of(columns, 2);

	(void)state;
	assert_true(order_take(&order, STR("a"), false));
	assert_false(order_take(&order, STR("b"), false));
}

static void
hashes_are_no_order_even_of_one_value(void **state)
{
	const struct order_column column = { STR("a"), ORDER_FIXED | ORDER_NONE };
	struct order order = order_of(&column, 1);

	(void)state;
	assert_false(order_take(&order, STR("a"), false));
}

static void
ranges_of_several_values_are_merged_only_in_front_of_the_order(void **state)
{
	const unsigned points = ORDER_POINTS | ORDER_MERGES;
	const struct order_column columns[] = { { STR("a"), points },
						{ STR("b"), points },
						{ STR("c"), 0 } };
	struct order order = order_of(columns, 3), other = order, third = order;

	(void)state;
	assert_true(order_take(&order, STR("c"), false));
	assert_true(order.merges);
	/* Ranges of `b` are in its order as they are, so they cannot be merged behind it. */
	assert_true(order_take(&other, STR("a"), false));
	assert_false(order_take(&other, STR("c"), false));
	assert_false(order_take(&third, STR("b"), false));
}

static void
no_column_is_passed_behind_one_of_points(void **state)
{
	const struct order_column columns[] = { { STR("a"), ORDER_POINTS },
						{ STR("b"), 0 },
						{ STR("c"), ORDER_MERGES },
						{ STR("d"), 0 } };
	struct order order = order_of(columns, 4);

	(void)state;
	assert_true(order_take(&order, STR("a"), false));
	assert_true(order_take(&order, STR("b"), false));
	assert_false(order_take(&order, STR("d"), false));
}

/* Entries of all values, but of FIXED columns of one and of POINTS of several. */
struct entry {
	int values[COLUMNS];
};

static const struct order_column *sorted_by; /* for the comparison */
static size_t sorted_from;

static int
entries_compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	for (size_t i = sorted_from; i < COLUMNS; i++) {
		int c = x->values[i] - y->values[i];

		if (c)
			return sorted_by[i].facts & ORDER_DESCENDING ? -c : c;
	}
	return 0;
}

static size_t
entries_make(const struct order_column *columns, struct entry *ret)
{
	size_t count = 0;

	for (int n = 0; n < ENTRIES; n++) {
		struct entry e = { { n % VALUES, n / VALUES % VALUES, n / VALUES / VALUES } };
		bool asked = true;

		for (size_t i = 0; i < COLUMNS; i++) {
			int most = columns[i].facts & ORDER_FIXED    ? 1
				   : columns[i].facts & ORDER_POINTS ? 2
								     : VALUES;

			asked = asked && e.values[i] < most;
		}
		if (asked)
			ret[count++] = e;
	}
	return count;
}

/* A field that is asked for: that of a column. */
struct wanted {
	size_t column;
	bool descending;
};

static void
assert_in_order(const struct entry *a, const struct entry *b, const struct wanted *wanted,
		size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int c = a->values[wanted[i].column] - b->values[wanted[i].column];

		if (wanted[i].descending)
			c = -c;
		assert_true(c <= 0);
		if (c)
			return;
	}
}

static void
entries_come_in_the_order_that_is_promised(void **state)
{
	struct rand_seq rand = { .state = 4 };
	size_t given = 0, merged = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		static const char names[] = "abc";
		struct order_column columns[COLUMNS];
		struct wanted wanted[COLUMNS];
		struct entry entries[ENTRIES];
		struct order order = order_of(columns, COLUMNS);
		size_t points = rand_seq_below(&rand, COLUMNS + 1), count;
		size_t fields = 1 + rand_seq_below(&rand, COLUMNS);
		bool gives = true;

		for (size_t i = 0; i < COLUMNS; i++) {
			columns[i].name = str_of(&names[i], 1);
			columns[i].facts = rand_seq_below(&rand, 2) ? ORDER_DESCENDING : 0;
			if (i < points)
				columns[i].facts |= ORDER_POINTS |
						    (rand_seq_below(&rand, 2) ? ORDER_FIXED
									      : ORDER_MERGES);
		}
		for (size_t i = 0; i < fields && gives; i++) {
			wanted[i] = (struct wanted){ rand_seq_below(&rand, COLUMNS),
						     rand_seq_below(&rand, 2) };
			gives = order_take(&order, columns[wanted[i].column].name,
					   wanted[i].descending);
		}
		if (!gives)
			continue;
		given++;
		merged += order.merges;
		sorted_by = columns;
		sorted_from = order.merges ? points : 0;
		count = entries_make(columns, entries);
		qsort(entries, count, sizeof(*entries), entries_compare);
		for (size_t i = 1; i < count; i++)
			assert_in_order(&entries[order.reverse ? i : i - 1],
					&entries[order.reverse ? i - 1 : i], wanted, fields);
	}
	assert_true(given > ROUNDS / 10);
	assert_true(merged > 0);
}

/* ---- Covers ---- */

static void
an_index_covers_fields_that_are_all_columns(void **state)
{
	const struct str columns[] = { STR("a"), STR("b.c") };
	const struct str both[] = { STR("b.c"), STR("a") }, more[] = { STR("a"), STR("b") };
	const struct cover cover = { columns, 2, { 0 } };

	(void)state;
	assert_true(cover_has_all(&cover, both, 2));
	assert_false(cover_has_all(&cover, more, 2));
	assert_true(cover_has_all(&cover, more, 1));
	assert_true(cover_has_all(&cover, NULL, 0));
}

static void
the_id_of_an_entry_is_covered_where_it_is_the_documents(void **state)
{
	const struct str column = STR("a");
	const struct cover without = { &column, 1, { 0 } }, with = { &column, 1, STR("_id") };

	(void)state;
	assert_false(cover_has(&without, STR("_id")));
	assert_false(cover_has(&without, STR("")));
	assert_true(cover_has(&with, STR("_id")));
	assert_true(cover_has(&with, STR("a")));
}

/* ---- Choices ---- */

static void
the_first_merit_that_differs_decides(void **state)
{
	const struct choice_merits a = { { 1, 2, -3 } }, b = { { 1, 2, -4 } }, c = { { 1, 3, -9 } };

	(void)state;
	assert_true(choice_prefers(&a, &b));
	assert_false(choice_prefers(&b, &a));
	assert_true(choice_prefers(&c, &a));
	assert_false(choice_prefers(&a, &c));
	assert_false(choice_prefers(&a, &a));
}

static void
a_walk_costs_the_part_up_to_what_is_wanted(void **state)
{
	(void)state;
	assert_true(choice_cost_until(LARGE, 10, 100) == LARGE / 10);
	assert_true(choice_cost_until(LARGE, 100, 100) == LARGE);
	assert_true(choice_cost_until(LARGE, UINT64_MAX, 0) == LARGE);
	assert_true(choice_cost_until(LARGE, 0, 1) == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(columns_in_their_directions_or_all_against_them_are_an_order),
		TEST(only_columns_of_one_value_are_passed),
		TEST(adjacent_fields_pass_columns_only_in_front_of_the_first),
		TEST(a_field_of_one_value_stands_anywhere_unless_documents_have_several_entries),
		TEST(nothing_behind_the_id_decides_anything),
		TEST(cut_values_are_no_order_but_one_of_them_is_passed),
		TEST(hashes_are_no_order_even_of_one_value),
		TEST(ranges_of_several_values_are_merged_only_in_front_of_the_order),
		TEST(no_column_is_passed_behind_one_of_points),
		TEST(entries_come_in_the_order_that_is_promised),
		TEST(an_index_covers_fields_that_are_all_columns),
		TEST(the_id_of_an_entry_is_covered_where_it_is_the_documents),
		TEST(the_first_merit_that_differs_decides),
		TEST(a_walk_costs_the_part_up_to_what_is_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
