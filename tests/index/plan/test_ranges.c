/*
 * What all languages share of planning (index/plan): sets of values against lists of numbers, and
 * ranges of keys against the keys of documents that have the values.
 */
#include "../common.h"

#include "base/arena_apart.h"
#include "base/mem.h"
#include "bson/bson.h"
#include "index/bson/form.h"
#include "index/json/form.h"
#include "index/plan/key_ranges.h"

enum {
	ROUNDS = 3000,
	NUMBERS = 8, /* bounds are whole numbers below this one; values lie between them, too */
	HALVES = 2 * NUMBERS + 1,
	INTERVALS = 4,
	COLUMNS = 3,
};

static const struct catalog_db db = { .prefix = { "\x15\x07", 2 }, .number = 7 };
static struct leaf_value halves[HALVES]; /* -0.5, 0, 0.5, … */
static struct value_order order;

static int
setup_values(void **state)
{
	if (setup(state))
		return -1;
	order = (struct value_order){ .form = &index_json_form, .w = &work };
	for (int i = 0; i < HALVES; i++)
		halves[i] = value_of(
			arena_printf(arena, "%d.%d", (i - 1) / 2, (i - 1) % 2 ? 5 : 0).ptr);
	halves[0] = value_of("-0.5");
	return 0;
}

/* ---- Sets of values ---- */

/* The number of a bound among the halves. */
static int
place_of(const void *value)
{
	return (int)((const struct leaf_value *)value - halves);
}

static bool
interval_has(const struct value_interval *i, int value)
{
	if (i->low.value && value < place_of(i->low.value) + i->low.exclusive)
		return false;
	return !i->high.value || value <= place_of(i->high.value) - i->high.exclusive;
}

static bool
set_has(const struct value_set *set, int value)
{
	for (size_t i = 0; i < set->count; i++)
		if (interval_has(&set->items[i], value))
			return true;
	return false;
}

/* Intervals are in ascending order and have something in them; a point is known to be one. */
static void
assert_is_set(const struct value_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct value_interval *v = &set->items[i];
		bool point = v->low.value && v->high.value && !v->low.exclusive &&
			     !v->high.exclusive &&
			     place_of(v->low.value) == place_of(v->high.value);

		assert_int_equal(v->point, point);
		if (v->low.value && v->high.value)
			assert_true(place_of(v->low.value) + v->low.exclusive <=
				    place_of(v->high.value) - v->high.exclusive);
		if (i == 0)
			continue;
		assert_non_null(v->low.value);
		assert_non_null(v[-1].high.value);
		assert_true(place_of(v[-1].high.value) - v[-1].high.exclusive <
			    place_of(v->low.value) + v->low.exclusive);
	}
}

static struct value_bound
random_bound(struct rand_seq *rand)
{
	if (rand_seq_below(rand, 6) == 0)
		return (struct value_bound){ 0 };
	return (struct value_bound){ &halves[1 + 2 * rand_seq_below(rand, NUMBERS)],
				     rand_seq_below(rand, 2) };
}

/* A union of a few intervals, some of which are points. */
static struct value_set
random_set(struct rand_seq *rand)
{
	struct value_set sets[INTERVALS], ret;
	size_t count = rand_seq_below(rand, INTERVALS), kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct value_interval one = { .low = random_bound(rand),
					      .high = random_bound(rand) };
		bool empty;

		if (rand_seq_below(rand, 2) && one.low.value) {
			one.low.exclusive = false;
			one.high = one.low;
		}
		assert_int_equal(value_interval_settle(&order, &one, &empty), STATUS_OK);
		if (!empty)
			assert_int_equal(value_set_of(&order, &one, &sets[kept++]), STATUS_OK);
	}
	assert_int_equal(value_sets_unite(&order, sets, kept, &ret), STATUS_OK);
	for (int v = 0; v < HALVES; v++) {
		bool any = false;

		for (size_t i = 0; i < kept; i++)
			any = any || set_has(&sets[i], v);
		assert_int_equal(set_has(&ret, v), any);
	}
	assert_is_set(&ret);
	return ret;
}

static void
sets_are_joined_as_their_values_are(void **state)
{
	struct rand_seq rand = { .state = 1 };

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct arena_mark mark = arena_mark(arena);
		struct value_set a = random_set(&rand), b = random_set(&rand), both;
		bool contains, all = true;

		assert_int_equal(value_set_intersect(&order, &a, &b, &both), STATUS_OK);
		assert_is_set(&both);
		for (int v = 0; v < HALVES; v++) {
			assert_int_equal(set_has(&both, v), set_has(&a, v) && set_has(&b, v));
			all = all && (set_has(&a, v) || !set_has(&b, v));
		}
		/* Two intervals that touch are not seen to be one. */
		assert_int_equal(value_set_contains(&order, &a, &b, &contains), STATUS_OK);
		assert_true(all || !contains);
		assert_int_equal(value_set_contains(&order, &a, &both, &contains), STATUS_OK);
		assert_true(contains);
		arena_reset(arena, mark);
	}
}

static void
points_come_in_order_and_once(void **state)
{
	const void *values[] = { &halves[5], &halves[1], &halves[5], &halves[9], &halves[1] };
	struct value_set set;

	(void)state;
	assert_int_equal(value_set_of_points(&order, values, COUNT(values), &set), STATUS_OK);
	assert_int_equal(set.count, 3);
	assert_is_set(&set);
	for (size_t i = 0; i < set.count; i++)
		assert_int_equal(place_of(set.items[i].low.value), 1 + 4 * i);
	value_set_span(&set);
	assert_is_set(&set);
	assert_true(set_has(&set, 3));
	assert_false(set_has(&set, 10));
}

static void
of_equal_bounds_the_tighter_one_stays(void **state)
{
	const struct leaf_value one = value_of("1"), real = value_of("1.0");
	struct value_interval i = { .low = { &one, false } };
	const struct value_interval same = { .low = { &real, false } };
	const struct value_interval open = { .low = { &real, true }, .high = { &real, true } };
	bool empty;

	(void)state;
	assert_int_equal(value_interval_narrow(&order, &i, &same), STATUS_OK);
	assert_ptr_equal(i.low.value, &one);
	assert_int_equal(value_interval_narrow(&order, &i, &open), STATUS_OK);
	assert_true(i.low.exclusive);
	assert_int_equal(value_interval_settle(&order, &i, &empty), STATUS_OK);
	assert_true(empty);
}

static void
a_union_of_too_many_values_is_their_span(void **state)
{
	static struct value_set sets[VALUE_INTERVALS + 1];
	struct value_set all;

	(void)state;
	for (size_t i = 0; i < COUNT(sets); i++) {
		struct leaf_value *v = arena_alloc(arena, sizeof(*v));
		const void *value = v;

		*v = value_of(arena_printf(arena, "%zu", i).ptr);
		assert_int_equal(value_set_of_points(&order, &value, 1, &sets[i]), STATUS_OK);
	}
	assert_int_equal(value_sets_unite(&order, sets, VALUE_INTERVALS, &all), STATUS_OK);
	assert_int_equal(all.count, VALUE_INTERVALS);
	assert_int_equal(value_sets_unite(&order, sets, COUNT(sets), &all), STATUS_OK);
	assert_int_equal(all.count, 1);
	assert_false(all.items[0].point);
	assert_ptr_equal(all.items[0].high.value, sets[VALUE_INTERVALS].items[0].high.value);
}

/* ---- Ranges of keys ---- */

static struct index_def
def_of(const struct index_form *form, const struct index_column *columns, size_t count)
{
	return (struct index_def){
		.form = form,
		.number = 1,
		.state = INDEX_READY,
		.flags = form->flag,
		.order = form == &index_json_form ? DOC_KEY_COUCH : DOC_KEY_BSON,
		.columns = columns,
		.column_count = count,
	};
}

/* The key of an entry with these values, from its beginning. */
static struct str
key_of(const struct index_def *def, const void *const *values)
{
	const struct index_interval interval = { .equal = values,
						 .equal_count = def->column_count };
	struct index_range range;

	assert_int_equal(index_range_make(&db, def, &interval, &work, &range), STATUS_OK);
	return range.begin;
}

/* The range that has the key; NULL: none. Asserts that ranges are in order and lie apart. */
static const struct index_range *
range_with(const struct key_ranges *ranges, struct str key)
{
	const struct index_range *found = NULL;

	for (size_t i = 0; i < ranges->count; i++) {
		const struct index_range *r = &ranges->items[i];

		assert_true(str_cmp(r->begin, r->end) < 0);
		if (i)
			assert_true(str_cmp(r[-1].end, r->begin) <= 0);
		if (str_cmp(r->begin, key) <= 0 && str_cmp(key, r->end) < 0)
			found = r;
	}
	return found;
}

/* Which columns narrow: those of single values, and what a document has in the next one. */
static bool
columns_allow(const struct value_set *sets, size_t used, const int *at)
{
	for (size_t i = 0; i < used; i++)
		if (!set_has(&sets[i], at[i]))
			return false;
	return true;
}

/* True if all columns are used, and each by a single value. */
static bool
columns_are_points(const struct value_set *sets, size_t used, const int *at)
{
	bool all = used == COLUMNS;

	for (size_t i = 0; i < COLUMNS && all; i++) {
		all = false;
		for (size_t k = 0; k < sets[i].count; k++)
			all = all || (sets[i].items[k].point &&
				      place_of(sets[i].items[k].low.value) == at[i]);
	}
	return all;
}

static void
ranges_have_the_keys_of_values_that_are_allowed(void **state)
{
	struct rand_seq rand = { .state = 2 };

	(void)state;
	for (int round = 0; round < ROUNDS / 3; round++) {
		struct arena_mark mark = arena_mark(arena);
		struct index_column columns[COLUMNS] = { 0 };
		struct value_set allowed[COLUMNS], certain[COLUMNS];
		const struct index_def def = def_of(&index_json_form, columns, COLUMNS);
		struct key_columns asked = { .allowed = allowed };
		struct key_ranges ranges;
		bool none = false;

		for (size_t i = 0; i < COLUMNS; i++) {
			columns[i].descending = rand_seq_below(&rand, 2);
			allowed[i] = random_set(&rand);
			certain[i] = random_set(&rand);
			none = none || !allowed[i].count;
		}
		asked.used = key_columns_choose(&def, allowed);
		asked.certain = rand_seq_below(&rand, 2) ? certain : NULL;
		assert_int_equal(key_ranges_make(&db, &def, &asked, &order, &ranges), STATUS_OK);
		assert_int_equal(ranges.marked, asked.certain != NULL);
		assert_true(!none || !ranges.count);
		for (int draw = 0; draw < 50; draw++) {
			const struct index_range *r;
			const void *values[COLUMNS];
			int at[COLUMNS];

			for (size_t i = 0; i < COLUMNS; i++) {
				at[i] = (int)rand_seq_below(&rand, HALVES);
				values[i] = &halves[at[i]];
			}
			r = range_with(&ranges, key_of(&def, values));
			if (columns_allow(allowed, COLUMNS, at))
				assert_non_null(r);
			if (r && asked.used)
				assert_true(set_has(&allowed[0], at[0]));
			if (r)
				assert_int_equal(r->point,
						 columns_are_points(allowed, asked.used, at));
			if (r && r->certain)
				assert_true(columns_allow(certain, COLUMNS, at));
		}
		arena_reset(arena, mark);
	}
}

/* Where sets of matches are those of what is asked, and all behind them matches, all ranges do. */
static void
ranges_are_certain_if_nothing_behind_them_is_to_be_looked_at(void **state)
{
	struct rand_seq rand = { .state = 3 };

	(void)state;
	for (int round = 0; round < ROUNDS / 10; round++) {
		struct arena_mark mark = arena_mark(arena);
		struct index_column columns[COLUMNS] = { 0 };
		/* Behind the sets of the columns is one that has no value. */
		struct value_set allowed[COLUMNS], certain[COLUMNS + 1] = { 0 };
		const struct index_def def = def_of(&index_json_form, columns, COLUMNS);
		struct key_columns asked = { .allowed = allowed, .certain = certain };

		for (size_t i = 0; i < COLUMNS; i++)
			do
				allowed[i] = random_set(&rand);
			while (!allowed[i].count);
		asked.used = key_columns_choose(&def, allowed);
		for (size_t some = 0; some <= COLUMNS; some++) {
			struct key_ranges ranges;

			for (size_t i = 0; i < COLUMNS; i++) {
				certain[i] = allowed[i];
				if (i >= asked.used)
					assert_int_equal(value_set_all(&order, &certain[i]),
							 STATUS_OK);
			}
			/* Of one column not all values match. */
			if (some < COLUMNS)
				certain[some] = (struct value_set){ .items = NULL };
			assert_int_equal(key_ranges_make(&db, &def, &asked, &order, &ranges),
					 STATUS_OK);
			for (size_t i = 0; i < ranges.count; i++) {
				const struct index_range *r = &ranges.items[i];

				if (some == 0 || (some >= asked.used && some < COLUMNS))
					assert_false(r->certain);
				if (some == COLUMNS && (r->point || asked.used == 1))
					assert_true(r->certain);
			}
		}
		arena_reset(arena, mark);
	}
}

/* All that a plan is made of. */
static enum status
plan_make(const struct key_columns *asked, const struct index_def *def, struct index_work *w,
	  struct key_ranges *ret)
{
	const struct value_order o = { .form = def->form, .w = w };
	struct value_set both, all;
	bool has;

	TRY(value_set_contains(&o, &asked->allowed[0], &asked->allowed[1], &has));
	TRY(value_set_intersect(&o, &asked->allowed[0], &asked->allowed[1], &both));
	TRY(value_sets_unite(&o, asked->allowed, COLUMNS, &all));
	return key_ranges_make(&db, def, asked, &o, ret);
}

/* Once each, while those behind it do not. */
static void
each_allocation_fails(const struct key_columns *asked, const struct index_def *def,
		      const struct key_ranges *wanted)
{
	bool failed = true;

	for (uint64_t nth = 1; failed; nth++) {
		struct index_work own = { .arena = arena_new(TEST_ARENA_BYTES) };
		struct key_ranges ranges = { .count = 0 };
		enum status status;

		arena_set_apart(true);
		(void)mem_fail_only(nth);
		status = plan_make(asked, def, &own, &ranges);
		failed = mem_fail_only(0) >= nth;
		arena_set_apart(false);
		if (!failed || status == STATUS_OK)
			assert_int_equal(ranges.count, wanted->count);
		if (failed)
			assert_true(status == STATUS_NOMEM || status == STATUS_LIMIT);
		else
			assert_int_equal(status, STATUS_OK);
		arena_free(own.arena);
	}
}

static void
a_plan_has_all_ranges_or_memory_is_short(void **state)
{
	struct rand_seq rand = { .state = 3 };

	(void)state;
	for (int round = 0; round < 20; round++) {
		struct arena_mark mark = arena_mark(arena);
		const struct index_column columns[COLUMNS] = { { .descending = round % 2 } };
		const struct index_def def = def_of(&index_json_form, columns, COLUMNS);
		struct value_set allowed[COLUMNS], certain[COLUMNS];
		struct key_columns asked = { .allowed = allowed,
					     .certain = round % 3 ? certain : NULL };
		struct key_ranges wanted;
		bool full = true;

		for (size_t i = 0; i < COLUMNS; i++) {
			allowed[i] = random_set(&rand);
			certain[i] = random_set(&rand);
		}
		asked.used = key_columns_choose(&def, allowed);
		assert_int_equal(plan_make(&asked, &def, &work, &wanted), STATUS_OK);
		for (size_t bytes = 0; full; bytes += 16) {
			struct arena *small = arena_new(bytes);
			struct index_work w = { .arena = small };
			struct key_ranges ranges = { .count = 0 };
			enum status status = plan_make(&asked, &def, &w, &ranges);

			full = arena_is_full(small);
			assert_int_equal(status, full ? STATUS_LIMIT : STATUS_OK);
			if (!full)
				assert_int_equal(ranges.count, wanted.count);
			arena_free(small);
		}
		each_allocation_fails(&asked, &def, &wanted);
		arena_reset(arena, mark);
	}
}

/*
 * Two texts of which keys have the same beginning: ranges of the first one with values of another
 * column lie inside of the range of all that is behind the second one.
 */
static void
ranges_that_meet_because_values_were_cut_are_one(void **state)
{
	enum {
		LONG = 3000
	};
	struct index_column columns[2] = { 0 };
	const struct index_def def = def_of(&index_json_form, columns, 2);
	char *text = arena_bytes(arena, LONG + 1);
	struct leaf_value first, second, third;
	struct value_interval items[2] = { { .point = true } };
	struct value_interval others[2] = { { .point = true }, { .point = true } };
	const struct value_set allowed[2] = { { items, 2 }, { others, 2 } };
	const struct key_columns asked = { .allowed = allowed, .used = 2 };
	struct key_ranges ranges;

	(void)state;
	memset(text, 'k', LONG);
	text[LONG] = 0;
	first = value_of(arena_printf(arena, "\"%sa\"", text).ptr);
	second = value_of(arena_printf(arena, "\"%sb\"", text).ptr);
	third = value_of(arena_printf(arena, "\"%sc\"", text).ptr);
	items[0].low.value = items[0].high.value = &first;
	items[1].low = (struct value_bound){ &second, true };
	others[0].low.value = others[0].high.value = &halves[1];
	others[1].low.value = others[1].high.value = &halves[5];
	assert_int_equal(key_ranges_make(&db, &def, &asked, &order, &ranges), STATUS_OK);
	for (size_t i = 0; i < HALVES; i++) {
		const void *values[] = { &third, &halves[i] };

		assert_non_null(range_with(&ranges, key_of(&def, values)));
	}
	for (size_t i = 0; i < ranges.count; i++)
		assert_true(ranges.items[i].cut && !ranges.items[i].certain &&
			    !ranges.items[i].point);
}

static void
values_of_a_hashed_column_are_in_the_order_of_hashes(void **state)
{
	struct index_column column = { 0 };
	struct index_def def = def_of(&index_bson_form, &column, 1);
	const struct value_order of_bson = { .form = &index_bson_form, .w = &work };
	struct bson_value numbers[40];
	const void *values[COUNT(numbers)];
	struct value_set allowed;
	const struct key_columns asked = { .allowed = &allowed, .used = 1 };
	struct key_ranges ranges;

	(void)state;
	def.hashed = 1;
	for (size_t i = 0; i < COUNT(numbers); i++) {
		numbers[i] = BSON_OF_INT32((int)i);
		values[i] = &numbers[i];
	}
	assert_int_equal(value_set_of_points(&of_bson, values, COUNT(values), &allowed), STATUS_OK);
	assert_int_equal(key_ranges_make(&db, &def, &asked, &of_bson, &ranges), STATUS_OK);
	assert_int_equal(ranges.count, COUNT(numbers));
	for (size_t i = 0; i < COUNT(numbers); i++)
		assert_true(range_with(&ranges, key_of(&def, &values[i]))->point);
}

static void
no_more_columns_are_used_than_ranges_are_made_for(void **state)
{
	static struct value_interval points[KEY_RANGES], all;
	struct index_column columns[COLUMNS] = { 0 };
	const struct index_def def = def_of(&index_json_form, columns, COLUMNS);
	struct value_set allowed[COLUMNS] = { { points, KEY_RANGES },
					      { points, 1 },
					      { points, 2 } };

	(void)state;
	for (size_t i = 0; i < KEY_RANGES; i++)
		points[i] = (struct value_interval){ .low = { .value = &halves[1] },
						     .point = true };
	assert_int_equal(key_columns_choose(&def, allowed), 2);
	allowed[1] = (struct value_set){ &all, 1 };
	assert_int_equal(key_columns_choose(&def, allowed), 1);
	allowed[2].count = 0;
	assert_int_equal(key_columns_choose(&def, allowed), COLUMNS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_values, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sets_are_joined_as_their_values_are),
		TEST(points_come_in_order_and_once),
		TEST(of_equal_bounds_the_tighter_one_stays),
		TEST(a_union_of_too_many_values_is_their_span),
		TEST(ranges_have_the_keys_of_values_that_are_allowed),
		TEST(ranges_are_certain_if_nothing_behind_them_is_to_be_looked_at),
		TEST(a_plan_has_all_ranges_or_memory_is_short),
		TEST(ranges_that_meet_because_values_were_cut_are_one),
		TEST(values_of_a_hashed_column_are_in_the_order_of_hashes),
		TEST(no_more_columns_are_used_than_ranges_are_made_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
