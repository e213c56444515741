#include "mql/stage/project.h"

#include "mql_case.h"

enum how {
	FIND,
	PROJECT,
	SET,
	UNSET,
};

static enum status
project(struct mql *q, enum how how, const char *spec, const char *filter, const char *document,
	struct str *ret)
{
	struct str doc = case_bson(q->arena, document), text = case_bson(q->arena, spec);
	struct bson_value v = BSON_OF_DOCUMENT(text);
	struct mql_match *match = NULL;
	struct mql_projection *p;
	int64_t position = -1;
	bool matches;

	if (filter) {
		assert_int_equal(mql_match_compile(q, case_bson(q->arena, filter), &match),
				 STATUS_OK);
		assert_int_equal(mql_match_run(match, q, doc, &matches, &position), STATUS_OK);
	}
	if (how == UNSET)
		assert_true(bson_find(text, STR("u"), &v));
	switch (how) {
	case FIND:
		TRY(mql_projection_compile(q, text, match, NULL, &p));
		break;
	case PROJECT:
		TRY(mql_projection_compile_project(q, &v, NULL, &p));
		break;
	case SET:
		TRY(mql_projection_compile_set(q, STR("$set"), &v, NULL, &p));
		break;
	case UNSET:
		TRY(mql_projection_compile_unset(q, &v, &p));
		break;
	}
	return mql_projection_run(p, q, doc, position, NULL, ret);
}

struct project_case {
	enum how how;
	const char *spec;
	const char *filter;
	const char *document;
	const char *expected;
};

static void
check_projections(struct arena *arena, const struct project_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct project_case *c = &cases[i];
		struct mql q = case_mql(arena);
		struct str ret;

		if (project(&q, c->how, c->spec, c->filter, c->document, &ret) != STATUS_OK)
			fail_msg("%s on %s: %s", c->spec, c->document, case_err.text);
		assert_int_equal(bson_check(ret, NULL), STATUS_OK);
		assert_string_equal(case_json(arena, ret), c->expected);
	}
}

static void
members_are_included_and_excluded(void **state)
{
	static const struct project_case cases[] = {
		{ FIND, "{}", NULL, "{'_id':1,'a':2}", "{'_id':1,'a':2}" },
		{ FIND, "{'a':1}", NULL, "{'_id':1,'b':3,'a':2}", "{'_id':1,'a':2}" },
		{ FIND, "{'b':1,'a':true}", NULL, "{'a':2,'_id':1,'b':3}",
		  "{'a':2,'_id':1,'b':3}" },
		{ FIND, "{'_id':0,'a':1}", NULL, "{'_id':1,'a':2}", "{'a':2}" },
		{ FIND, "{'_id':1}", NULL, "{'_id':1,'a':2}", "{'_id':1}" },
		{ FIND, "{'_id':0}", NULL, "{'_id':1,'a':2}", "{'a':2}" },
		{ FIND, "{'a':0}", NULL, "{'_id':1,'a':2,'b':3}", "{'_id':1,'b':3}" },
		{ FIND, "{'a':0,'_id':1}", NULL, "{'_id':1,'a':2}", "{'_id':1}" },
		{ FIND, "{'a.b':1}", NULL, "{'a':{'b':1,'c':2}}", "{'a':{'b':1}}" },
		{ FIND, "{'a':{'b':1}}", NULL, "{'a':{'b':1,'c':2}}", "{'a':{'b':1}}" },
		{ FIND, "{'a.b':1}", NULL, "{'a':[{'b':1,'c':2},5,[{'b':3}],{'c':1}]}",
		  "{'a':[{'b':1},[{'b':3}],{}]}" },
		{ FIND, "{'a.b':1}", NULL, "{'a':5}", "{}" },
		{ FIND, "{'a.b':0}", NULL, "{'a':[{'b':1,'c':2},5]}", "{'a':[{'c':2},5]}" },
		{ FIND, "{'a.b':0,'a.c':0}", NULL, "{'a':{'b':1,'c':2,'d':3}}", "{'a':{'d':3}}" },
		{ UNSET, "{'u':'a'}", NULL, "{'_id':1,'a':2,'b':1}", "{'_id':1,'b':1}" },
		{ UNSET, "{'u':['a.b','c']}", NULL, "{'a':{'b':1,'x':2},'c':1}", "{'a':{'x':2}}" },
	};

	check_projections(*state, cases, CASES(cases));
}

static void
members_are_computed(void **state)
{
	static const struct project_case cases[] = {
		{ PROJECT, "{'x':'$a','b':1}", NULL, "{'_id':1,'a':2,'b':3}",
		  "{'_id':1,'b':3,'x':2}" },
		{ PROJECT, "{'a':'$b'}", NULL, "{'_id':1,'a':2,'b':3}", "{'_id':1,'a':3}" },
		{ PROJECT, "{'_id':0,'x':'$no'}", NULL, "{'_id':1}", "{}" },
		{ PROJECT, "{'_id':'$a'}", NULL, "{'_id':1,'a':2}", "{'_id':2}" },
		{ PROJECT, "{'a.x':'$b','a.c':1}", NULL, "{'a':{'c':1,'d':2},'b':7}",
		  "{'a':{'c':1,'x':7}}" },
		{ PROJECT, "{'a.x':'$b'}", NULL, "{'a':[{'c':1},5],'b':7}", "{'a':[{'x':7}]}" },
		{ PROJECT, "{'a.x':'$b'}", NULL, "{'a':5,'b':7}", "{'a':{'x':7}}" },
		{ SET, "{'b':'$a','c':1}", NULL, "{'_id':1,'b':0,'a':2}",
		  "{'_id':1,'b':2,'a':2,'c':1}" },
		{ SET, "{'b':'$$REMOVE'}", NULL, "{'a':1,'b':2}", "{'a':1}" },
		{ SET, "{'a.b':1}", NULL, "{'a':[1,{'c':2}]}", "{'a':[{'b':1},{'c':2,'b':1}]}" },
		{ SET, "{'a':{'b':1,'c':true}}", NULL, "{'a':{'x':0}}",
		  "{'a':{'x':0,'b':1,'c':true}}" },
		{ SET, "{'a.b.c':1}", NULL, "{}", "{'a':{'b':{'c':1}}}" },
		{ SET, "{'a':[1,'$b']}", NULL, "{'b':2}", "{'b':2,'a':[1,2]}" },
	};

	check_projections(*state, cases, CASES(cases));
}

static void
find_chooses_elements_of_arrays(void **state)
{
	static const struct project_case cases[] = {
		{ FIND, "{'a':{'$slice':2}}", NULL, "{'_id':1,'a':[1,2,3],'b':1}",
		  "{'_id':1,'a':[1,2],'b':1}" },
		{ FIND, "{'a':{'$slice':-2}}", NULL, "{'a':[1,2,3]}", "{'a':[2,3]}" },
		{ FIND, "{'a':{'$slice':[1,1]},'_id':1}", NULL, "{'_id':1,'a':[1,2,3],'b':1}",
		  "{'_id':1,'a':[2]}" },
		{ FIND, "{'a':{'$slice':[-2,1]}}", NULL, "{'a':[1,2,3]}", "{'a':[2]}" },
		{ FIND, "{'a.b':{'$slice':1}}", NULL, "{'a':[{'b':[1,2]},{'b':[3,4]}]}",
		  "{'a':[{'b':[1]},{'b':[3]}]}" },
		{ FIND, "{'a':{'$elemMatch':{'$gt':1}},'c':1}", NULL,
		  "{'_id':1,'a':[1,2,3],'b':1,'c':2}", "{'_id':1,'c':2,'a':[2]}" },
		{ FIND, "{'a':{'$elemMatch':{'x':2}}}", NULL, "{'_id':1,'a':[{'x':1},{'x':2}]}",
		  "{'_id':1,'a':[{'x':2}]}" },
		/* By itself it leaves the other members out, and $slice does not. */
		{ FIND, "{'a':{'$elemMatch':{'x':2}}}", NULL, "{'_id':1,'a':[{'x':2}],'b':3}",
		  "{'_id':1,'a':[{'x':2}]}" },
		{ FIND, "{'a':{'$elemMatch':{'x':2}},'_id':0}", NULL,
		  "{'_id':1,'a':[{'x':2}],'b':3}", "{'a':[{'x':2}]}" },
		{ FIND, "{'a':{'$slice':1},'b':{'$elemMatch':{'x':1}}}", NULL,
		  "{'_id':1,'a':[1,2],'b':[{'x':1}],'c':3}", "{'_id':1,'a':[1],'b':[{'x':1}]}" },
		{ FIND, "{'a':{'$slice':1},'_id':0}", NULL, "{'_id':1,'a':[1,2],'b':3}",
		  "{'a':[1],'b':3}" },
		{ FIND, "{'a':{'$slice':1}}", NULL, "{'a':[]}", "{'a':[]}" },
		{ FIND, "{'a':{'$slice':1}}", NULL, "{'a':5}", "{'a':5}" },
		{ FIND, "{'a':{'$elemMatch':{'x':1}}}", NULL, "{'_id':1,'a':5}", "{'_id':1}" },
		{ FIND, "{'a':{'$elemMatch':{'x':1}}}", NULL, "{'_id':1}", "{'_id':1}" },
		{ FIND, "{'a':{'$elemMatch':{'x':1}}}", NULL, "{'_id':1,'a':{'0':{'x':1}}}",
		  "{'_id':1}" },
		{ FIND, "{'a':{'$slice':3}}", NULL, "{'a':[1,2,3]}", "{'a':[1,2,3]}" },
		{ FIND, "{'a':{'$slice':-3}}", NULL, "{'a':[1,2,3]}", "{'a':[1,2,3]}" },
		{ FIND, "{'a':{'$slice':-4}}", NULL, "{'a':[1,2,3]}", "{'a':[1,2,3]}" },
		{ FIND, "{'a':{'$slice':0}}", NULL, "{'a':[1,2,3]}", "{'a':[]}" },
		{ FIND, "{'a':{'$slice':[3,1]}}", NULL, "{'a':[1,2,3]}", "{'a':[]}" },
		{ FIND, "{'a':{'$slice':[2,9]}}", NULL, "{'a':[1,2,3]}", "{'a':[3]}" },
		{ FIND, "{'a':{'$slice':[-9,2]}}", NULL, "{'a':[1,2,3]}", "{'a':[1,2]}" },
		{ FIND, "{'a':{'$slice':{'$numberDouble':'NaN'}}}", NULL, "{'a':[1,2]}",
		  "{'a':[]}" },
		{ FIND, "{'a':{'$slice':1e300}}", NULL, "{'a':[1,2]}", "{'a':[1,2]}" },
		{ FIND, "{'a':{'$slice':-1e300}}", NULL, "{'a':[1,2]}", "{'a':[1,2]}" },
		/* What is no pair of numbers is the expression. */
		{ FIND, "{'a':{'$slice':['$a',1]}}", NULL, "{'a':[1,2],'b':1}", "{'a':[1]}" },
		{ FIND, "{'a':{'$slice':['$a',1,1]}}", NULL, "{'a':[1,2],'b':1}", "{'a':[2]}" },
		{ FIND, "{'a':{'$elemMatch':{'x':9}}}", NULL, "{'_id':1,'a':[{'x':1}]}",
		  "{'_id':1}" },
		{ FIND, "{'a':{'$elemMatch':{'$gt':1}},'c':0}", NULL,
		  "{'_id':1,'a':[2],'b':1,'c':2}", "{'_id':1,'a':[2],'b':1}" },
		{ FIND, "{'a.$':1}", "{'a':{'$gt':0}}", "{'a':[1,2,3]}", "{'a':[1]}" },
		{ FIND, "{'a.$':1}", "{'a':{'$gt':1}}", "{'_id':1,'a':[1,2,3],'b':1}",
		  "{'_id':1,'a':[2]}" },
		{ FIND, "{'a.b.$':1}", "{'a.b':2}", "{'a':[{'b':1,'c':1},{'b':2,'c':2}]}",
		  "{'a':[{'b':2}]}" },
		{ FIND, "{'a.b.$':1}", "{'a.b':2}", "{'a':{'b':[1,2]}}", "{'a':{'b':[2]}}" },
		/* One array is cut, and no other inside of it. */
		{ FIND, "{'a.b.$':1}", "{'a.b':4}", "{'a':[{'b':[1,2]},{'b':[3,4]}]}",
		  "{'a':[{'b':[3,4]}]}" },
	};

	check_projections(*state, cases, CASES(cases));
}

static void
mistakes_have_mongodbs_codes(void **state)
{
	static const struct {
		enum how how;
		const char *spec;
		int code;
	} cases[] = {
		{ FIND, "{'a':1,'b':0}", 31254 },
		{ FIND, "{'a':0,'b':1}", 31253 },
		{ PROJECT, "{'a':0,'b':'$a'}", 31310 },
		{ PROJECT, "{'a':0,'b':{'$add':[1]}}", 31252 },
		{ FIND, "{'a':1,'a.b':1}", 31249 },
		{ FIND, "{'a.b':1,'a':1}", 31250 },
		{ FIND, "{'a':{}}", 51270 },
		{ PROJECT, "{}", 51272 },
		{ PROJECT, "{'a.$':1}", 31324 },
		{ FIND, "{'a.$.b':1}", 31394 },
		{ PROJECT, "{'a.$.b':1}", 16410 },
		{ SET, "{'a.$.b':1}", 16410 },
		{ FIND, "{'a.$':1,'b.$':1}", 31276 },
		{ FIND, "{'a.$':{'b':1}}", 31271 },
		{ FIND, "{'a.$':'x'}", 31308 },
		{ FIND, "{'a.$':0}", 31395 },
		{ FIND, "{'a.$':false}", 31395 },
		{ FIND, "{'a..$':1}", 40353 },
		{ FIND, "{'a':{'$slice':[1]}}", 28667 },
		{ FIND, "{'a':{'$slice':[0,-1]}}", 28724 },
		{ FIND, "{'a':{'b':{}}}", 51270 },
		{ FIND, "{'a':{'b..c':1}}", 15998 },
		{ FIND, "{'a':{'$elemMatch':{'$bogus':1}}}", 2 },
		{ PROJECT, "{'a':{'$elemMatch':{'b':1}}}", 31325 },
		{ FIND, "{'a':0,'b':'x'}", 31310 },
		{ FIND, "{'a':1,'b':{'c':0}}", 31254 },
		{ FIND, "{'a':0,'b':{'c':1}}", 31253 },
		{ FIND, "{'a':'x','b':0}", 31254 },
		{ SET, "{'a':{'$bogus':1}}", 168 },
		{ SET, "{'a.b':1,'a':1}", 40176 },
		{ UNSET, "{'u':['a','']}", 40352 },
		{ UNSET, "{'u':['a','a.b']}", 31249 },
		{ FIND, "{'a.$':1,'b':{'$elemMatch':{'c':1}}}", 31255 },
		{ FIND, "{'b':{'$elemMatch':{'c':1}},'a.$':1}", 31256 },
		{ FIND, "{'a':{'$elemMatch':5}}", 31274 },
		{ FIND, "{'a.b':{'$elemMatch':{'c':1}}}", 31275 },
		{ FIND, "{'a':{'$slice':[0,0]}}", 28724 },
		{ FIND, "{'a':{'$bogus':1}}", 31325 },
		{ FIND, "{'$a':1}", 16410 },
		{ FIND, "{'a..b':1}", 15998 },
		{ SET, "{'a':1,'a.b':1}", 40176 },
		{ SET, "{'a':{'b.c':1}}", 40183 },
		{ UNSET, "{'u':[]}", 31119 },
		{ UNSET, "{'u':[1]}", 31120 },
		{ UNSET, "{'u':1}", 31002 },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct str ret;

		assert_int_not_equal(
			project(&q, cases[i].how, cases[i].spec, "{'a':1}", "{'a':[1]}", &ret),
			STATUS_OK);
		if (q.code != cases[i].code)
			fail_msg("%s: %d, %s", cases[i].spec, q.code, case_err.text);
	}
}

static void
an_element_that_no_query_has_found_is_an_error(void **state)
{
	struct mql q = case_mql(*state);
	struct str ret;

	assert_int_not_equal(
		project(&q, FIND, "{'b.$':1}", "{'a':3}", "{'a':[1,2,3],'b':[1]}", &ret),
		STATUS_OK);
	assert_int_equal(q.code, 51247);
	assert_int_not_equal(project(&q, FIND, "{'b.$':1}", "{'a':3}", "{'a':3,'b':[1]}", &ret),
			     STATUS_OK);
	assert_int_equal(q.code, 51246);
}

static void
a_position_needs_a_filter(void **state)
{
	struct mql q = case_mql(*state);
	struct str ret;

	assert_int_not_equal(project(&q, FIND, "{'a.$':1}", NULL, "{'a':[1]}", &ret), STATUS_OK);
	assert_int_equal(q.code, 51050);
}

/* The paths that a projection looks at, with blanks between; NULL: all of the document. */
static void
paths_are_told_unless_all_of_it_is_needed(void **state)
{
	static const struct {
		const char *spec, *paths;
	} cases[] = {
		{ "{'a':1}", "a _id" },
		{ "{'a':1,'_id':0}", "a" },
		{ "{'a':{'b':1,'c':{'d':1}},'x.y':1,'_id':0}", "a.b a.c.d x.y" },
		{ "{'a':{'$elemMatch':{'b':1}},'_id':0}", "a" },
		{ "{'a':{'$slice':1},'b':1,'_id':0}", "a b" },
		{ "{'a':1,'b':'$c'}", NULL },
		{ "{'a':0}", NULL },
		{ "{'_id':0}", NULL },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct mql_paths looks = { .all = false };
		struct mql_projection *p;
		struct str all = STR("");

		assert_int_equal(mql_projection_compile(&q, case_bson(*state, cases[i].spec), NULL,
							NULL, &p),
				 STATUS_OK);
		assert_int_equal(mql_projection_paths(p, &q, &looks), STATUS_OK);
		if (looks.all != !cases[i].paths)
			fail_msg("%s: all %d", cases[i].spec, looks.all);
		for (size_t n = 0; n < looks.count; n++)
			all = arena_printf(*state, "%.*s%s%.*s", STR_ARG(all), n ? " " : "",
					   STR_ARG(looks.paths[n]));
		if (cases[i].paths)
			assert_string_equal(all.ptr, cases[i].paths);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(members_are_included_and_excluded, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(members_are_computed, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(find_chooses_elements_of_arrays, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(mistakes_have_mongodbs_codes, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(an_element_that_no_query_has_found_is_an_error,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(a_position_needs_a_filter, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(paths_are_told_unless_all_of_it_is_needed,
						case_setup, case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
