/*
 * What a filter tells whoever plans a query: demands, branches of a $or, the paths that it reads.
 */
#include "mql/match/branches.h"

#include "mql_case.h"

static struct mql_match *
compile(struct mql *q, const char *filter)
{
	struct mql_match *m;

	if (mql_match_compile(q, case_bson(q->arena, filter), &m) != STATUS_OK)
		fail_msg("%s: %s", filter, case_err.text);
	return m;
}

/* "a=1 b>2 c.d<=5#1 …": # the number of an $elemMatch; values as their texts. */
static const char *
demands_text(struct arena *arena, const struct mql_demand *demands, size_t count)
{
	static const char *const ops[] = {
		[MQL_DEMAND_EQ] = "=",    [MQL_DEMAND_GT] = ">",   [MQL_DEMAND_GTE] = ">=",
		[MQL_DEMAND_LT] = "<",    [MQL_DEMAND_LTE] = "<=", [MQL_DEMAND_IN] = " in ",
		[MQL_DEMAND_EXISTS] = "?"
	};
	struct buf out = BUF_INIT(CASE_BYTES);
	const char *kept;

	for (size_t i = 0; i < count; i++) {
		const struct mql_demand *d = &demands[i];

		buf_printf(&out, "%s%.*s%s", i ? " " : "", STR_ARG(d->path), ops[d->op]);
		if (d->op != MQL_DEMAND_EXISTS)
			bson_json_write_value(&out, &d->value, BSON_JSON_RELAXED);
		if (d->element)
			buf_printf(&out, "#%u", d->element);
	}
	kept = arena_printf(arena, "%.*s", STR_ARG(buf_str(&out))).ptr;
	buf_release(&out);
	return kept;
}

static void
each_condition_demands_what_an_index_can_tell(void **state)
{
	static const struct {
		const char *filter, *demands;
	} cases[] = {
		{ "{}", "" },
		{ "{'a':1}", "a=1" },
		{ "{'a':{'$eq':1,'$gt':0,'$gte':0,'$lt':9,'$lte':9}}", "a=1 a>0 a>=0 a<9 a<=9" },
		{ "{'a':{'$in':[1,2]}}", "a in [1,2]" },
		{ "{'a':{'$exists':true}}", "a?" },
		{ "{'a':{'$exists':false}}", "" },
		{ "{'a':{'$ne':1}}", "" },
		{ "{'a':{'$not':{'$gt':1}}}", "" },
		{ "{'$nor':[{'a':1}]}", "" },
		{ "{'$and':[{'a':1},{'$and':[{'b':2},{'c.d':{'$lt':3}}]}]}", "a=1 b=2 c.d<3" },
		/* One branch is no choice. */
		{ "{'$or':[{'a':1,'b':2}]}", "a=1 b=2" },
		{ "{'$or':[{'a':1},{'b':2}]}", "" },
		{ "{'$or':[{'a':1},{'b':2}],'c':3}", "c=3" },
		{ "{'a':{'$elemMatch':{'b':1,'c':{'$gt':2}}}}", "a.b=1#1 a.c>2#1" },
		{ "{'a':{'$elemMatch':{'$gt':1,'$lt':5}}}", "a>1#1 a<5#1" },
		{ "{'a':{'$elemMatch':{'b':1}},'c':{'$elemMatch':{'d':2}}}", "a.b=1#1 c.d=2#2" },
		{ "{'a':{'$elemMatch':{'b':{'$elemMatch':{'c':1}}}}}", "a.b.c=1#1" },
		{ "{'a':{'$elemMatch':{'$elemMatch':{'$gt':1}}}}", "" },
		{ "{'a':{'$size':2}}", "" },
		{ "{'$expr':{'$eq':['$a',1]}}", "" },
		{ "{'a':null}", "a=null" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		const struct mql_demand *demands;
		const char *got;
		size_t count;

		mql_match_demands(compile(&q, cases[i].filter), &demands, &count);
		got = demands_text(*state, demands, count);
		if (strcmp(got, cases[i].demands) != 0)
			fail_msg("%s demands %s, not %s", cases[i].filter, got, cases[i].demands);
	}
}

/* Branches are separated by bars. */
static void
each_branch_of_a_choice_has_its_demands(void **state)
{
	static const struct {
		const char *filter, *branches;
	} cases[] = {
		{ "{'a':1}", "" },
		{ "{'$or':[{'a':1}]}", "a=1" },
		{ "{'$or':[{'a':1},{'b':2,'c':{'$gt':3}}]}", "a=1|b=2 c>3" },
		{ "{'x':1,'$or':[{'a':1},{'b':2}],'y':1}", "a=1|b=2" },
		{ "{'$and':[{'x':1},{'$or':[{'a':1},{'b':{'$ne':2}}]}]}", "a=1|" },
		{ "{'$and':[{'$or':[{'a':1},{'b':1}]},{'$or':[{'c':1},{'d':1}]}]}", "a=1|b=1" },
		{ "{'$or':[{'$and':[{'a':1},{'b':2}]},{'c':3}]}", "a=1 b=2|c=3" },
		{ "{'$nor':[{'a':1},{'b':2}]}", "" },
		/* Numbers of $elemMatch go on from those of the demands. */
		{ "{'a':{'$elemMatch':{'b':1}},'$or':[{'c':{'$elemMatch':{'d':1}}},"
		  "{'e':{'$elemMatch':{'f':1}}}]}",
		  "c.d=1#2|e.f=1#3" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		const struct mql_branch *branches;
		struct str got = STR("");
		size_t count;

		mql_match_branches(compile(&q, cases[i].filter), &branches, &count);
		for (size_t k = 0; k < count; k++)
			got = arena_printf(
				*state, "%.*s%s%s", STR_ARG(got), k ? "|" : "",
				demands_text(*state, branches[k].demands, branches[k].count));
		if (!str_eq(got, str_from_cstr(cases[i].branches)))
			fail_msg("%s has %.*s, not %s", cases[i].filter, STR_ARG(got),
				 cases[i].branches);
	}
}

static void
a_filter_tells_what_it_reads(void **state)
{
	static const struct {
		const char *filter, *paths; /* "*": all of a document */
	} cases[] = {
		{ "{}", "" },
		{ "{'a':1}", "a" },
		{ "{'a.b':{'$gt':1,'$lt':2}}", "a.b a.b" },
		{ "{'$and':[{'a':1},{'$or':[{'b':1},{'$nor':[{'c':1}]}]}]}", "a b c" },
		{ "{'a':{'$not':{'$gt':1}}}", "a" },
		{ "{'a':{'$ne':1}}", "a" },
		{ "{'a':{'$elemMatch':{'b':1}}}", "a" },
		{ "{'$sampleRate':0.5,'a':1}", "a" },
		{ "{'$alwaysTrue':1,'a':1}", "a" },
		{ "{'a':1,'$expr':{'$eq':['$b',1]},'c':1}", "*" },
		{ "{'$jsonSchema':{'required':['a']}}", "*" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct mql_paths paths = { .count = 0 };
		struct str got = STR("");

		mql_match_paths(compile(&q, cases[i].filter), &paths);
		for (size_t k = 0; k < paths.count && !paths.all; k++)
			got = arena_printf(*state, "%.*s%s%.*s", STR_ARG(got), k ? " " : "",
					   STR_ARG(paths.paths[k]));
		if (!str_eq(paths.all ? STR("*") : got, str_from_cstr(cases[i].paths)))
			fail_msg("%s reads %.*s%s, not %s", cases[i].filter, STR_ARG(got),
				 paths.all ? "*" : "", cases[i].paths);
	}
}

static void
so_many_paths_are_told_one_by_one(void **state)
{
	for (size_t more = 0; more < 2; more++) {
		struct buf filter = BUF_INIT(CASE_BYTES);
		struct mql q = case_mql(*state);
		struct mql_paths paths = { .count = 0 };

		buf_append_byte(&filter, '{');
		for (size_t i = 0; i < MQL_PATHS_MOST + more; i++)
			buf_printf(&filter, "%s'p%zu':1", i ? "," : "", i);
		buf_append(&filter, "}", 2);
		mql_match_paths(compile(&q, filter.ptr), &paths);
		assert_int_equal(paths.all, more);
		assert_int_equal(paths.count, MQL_PATHS_MOST);
		buf_release(&filter);
	}
}

/* Conditions on a value by itself are of no path. */
static void
conditions_on_a_value_read_all_of_it(void **state)
{
	struct mql q = case_mql(*state);
	struct mql_paths paths = { .count = 0 };
	const struct mql_demand *demands;
	struct mql_match *m;
	size_t count;

	assert_int_equal(mql_match_compile_value(&q, case_bson(*state, "{'$gt':1}"), &m),
			 STATUS_OK);
	mql_match_paths(m, &paths);
	assert_true(paths.all);
	mql_match_demands(m, &demands, &count);
	assert_int_equal(count, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, case_setup, case_teardown)
		TEST(each_condition_demands_what_an_index_can_tell),
		TEST(each_branch_of_a_choice_has_its_demands),
		TEST(a_filter_tells_what_it_reads),
		TEST(so_many_paths_are_told_one_by_one),
		TEST(conditions_on_a_value_read_all_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
