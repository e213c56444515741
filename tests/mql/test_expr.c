/* What all expressions share: paths, variables, literals, arguments; and arithmetic and logic. */
#include "expr_case.h"

static void
paths_go_through_documents_and_arrays(void **state)
{
	static const struct expr_case cases[] = {
		{ "'$a'", "{'a':1}", "1", 0 },
		{ "'$a'", "{}", NULL, 0 },
		{ "'$a.b'", "{'a':{'b':'x'}}", "'x'", 0 },
		{ "'$a.b'", "{'a':1}", NULL, 0 },
		{ "'$a.b'", "{'a':[{'b':1},{'c':2},3,[{'b':4}],{'b':[5]}]}", "[1,[5]]", 0 },
		{ "'$a.b.c'", "{'a':[{'b':{'c':1}},{'b':[{'c':2},{'c':3}]},{'b':4}]}", "[1,[2,3]]",
		  0 },
		{ "'$a.0'", "{'a':[1,2]}", "[]", 0 },
		{ "'$a.b'", "{'a':[]}", "[]", 0 },
		{ "'$a.0'", "{'a':{'0':1}}", "1", 0 },
		{ "'$$ROOT'", "{'a':1}", "{'a':1}", 0 },
		{ "'$$CURRENT.a'", "{'a':1}", "1", 0 },
		{ "'$$ROOT.a.b'", "{'a':[{'b':1}]}", "[1]", 0 },
		{ "'$$NOW'", "{}", "{'$date':{'$numberLong':'1700000000123'}}", 0 },
		{ "'$$REMOVE'", "{}", NULL, 0 },
		{ "'$$REMOVE.a.b'", "{}", NULL, 0 },
		{ "'$'", "{}", NULL, 16872 },
		{ "'$$'", "{}", NULL, 9 },
		{ "'$a.'", "{}", NULL, 40353 },
		{ "'$a..b'", "{}", NULL, 15998 },
		{ "'$a.$b'", "{}", NULL, 16410 },
		{ "'$a.$ref'", "{}", NULL, 0 },
		{ "'$a.$db'", "{}", NULL, 0 },
		{ "'$a.$id'", "{}", NULL, 0 },
		{ "'$a\\u0000b'", "{}", NULL, 16419 },
		{ "'$$nothing'", "{}", NULL, 17276 },
		{ "'$$1a'", "{}", NULL, 9 },
		{ "'$$a-b'", "{}", NULL, 9 },
	};

	EXPR_CASES(*state, cases);
}

static void
objects_and_arrays_are_computed(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'x':'$a','y':'$none','z':[1,'$none','$a']}", "{'a':5}",
		  "{'x':5,'z':[1,null,5]}", 0 },
		{ "{}", "{}", "{}", 0 },
		{ "[]", "{}", "[]", 0 },
		{ "{'a':{'b':{'$add':[1,2]}}}", "{}", "{'a':{'b':3}}", 0 },
		{ "['$a','$a','$a','$a','$a','$a','$a','$a','$a','$a','$a']", "{'a':1}",
		  "[1,1,1,1,1,1,1,1,1,1,1]", 0 },
		{ "{'$literal':{'$add':[1,'$a']}}", "{}", "{'$add':[1,'$a']}", 0 },
		{ "{'$literal':'$a'}", "{'a':1}", "'$a'", 0 },
		{ "{'$nothing':1}", "{}", NULL, 168 },
		{ "{'$add':[1],'$subtract':[2]}", "{}", NULL, 15983 },
		{ "{'a':1,'$add':[2]}", "{}", NULL, 16410 },
		{ "{'a.b':1}", "{}", NULL, 16412 },
		{ "{'':1}", "{}", NULL, 15998 },
		{ "{'a':1,'a':2}", "{}", NULL, 16406 },
		{ "{'$not':[1,2]}", "{}", NULL, 16020 },
		{ "{'$eq':1}", "{}", NULL, 16020 },
	};

	EXPR_CASES(*state, cases);
}

static void
arithmetic_has_the_wider_type(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$add':[1,2]}", "{}", "3", 0 },
		{ "{'$add':[]}", "{}", "0", 0 },
		{ "{'$add':'$a'}", "{'a':4}", "4", 0 },
		{ "{'$add':[1,2.5]}", "{}", "3.5", 0 },
		{ "{'$add':[2147483647,1]}", "{}", "{'$numberLong':'2147483648'}", 0 },
		{ "{'$add':[{'$numberLong':'9223372036854775807'},1]}", "{}",
		  "{'$numberDouble':'9.2233720368547758e18'}", 0 },
		{ "{'$add':[{'$numberDecimal':'1.10'},1]}", "{}", "{'$numberDecimal':'2.10'}", 0 },
		{ "{'$add':[0.1,0.2,{'$numberDouble':'-0.3'}]}", "{}",
		  "{'$numberDouble':'2.7755575615628914E-17'}", 0 },
		{ "{'$add':[1,null,'x']}", "{}", "null", 0 },
		{ "{'$add':[1,'$none']}", "{}", "null", 0 },
		{ "{'$add':[1,'x']}", "{}", NULL, 14 },
		{ "{'$add':['$a',1000]}", "{'a':{'$date':{'$numberLong':'5'}}}",
		  "{'$date':{'$numberLong':'1005'}}", 0 },
		{ "{'$add':['$a',2.5]}", "{'a':{'$date':{'$numberLong':'5'}}}",
		  "{'$date':{'$numberLong':'8'}}", 0 },
		{ "{'$add':['$a','$a']}", "{'a':{'$date':{'$numberLong':'5'}}}", NULL, 16612 },
		{ "{'$add':['$a',{'$numberDouble':'-0.5'}]}", "{'a':{'$date':{'$numberLong':'5'}}}",
		  "{'$date':{'$numberLong':'4'}}", 0 },
		{ "{'$add':['$a',{'$numberDecimal':'NaN'}]}", "{'a':{'$date':{'$numberLong':'5'}}}",
		  NULL, 15 },
		{ "{'$add':[{'$numberDecimal':'1'},3.0]}", "{}",
		  "{'$numberDecimal':'4.00000000000000'}", 0 },
		{ "{'$subtract':[5,7]}", "{}", "-2", 0 },
		{ "{'$subtract':['$a','$a']}", "{'a':{'$date':{'$numberLong':'5'}}}",
		  "{'$numberLong':'0'}", 0 },
		{ "{'$subtract':['$a',3]}", "{'a':{'$date':{'$numberLong':'5'}}}",
		  "{'$date':{'$numberLong':'2'}}", 0 },
		{ "{'$subtract':['x',3]}", "{}", NULL, 14 },
		{ "{'$multiply':[3,4]}", "{}", "12", 0 },
		{ "{'$multiply':[]}", "{}", "1", 0 },
		{ "{'$multiply':[65536,65536]}", "{}", "{'$numberLong':'4294967296'}", 0 },
		{ "{'$multiply':[3,null]}", "{}", "null", 0 },
		{ "{'$multiply':[3,true]}", "{}", NULL, 14 },
		{ "{'$divide':[1,4]}", "{}", "0.25", 0 },
		{ "{'$divide':[1,0]}", "{}", NULL, 2 },
		{ "{'$divide':[null,0]}", "{}", "null", 0 },
		{ "{'$mod':[-7,3]}", "{}", "-1", 0 },
		{ "{'$mod':[7,3.0]}", "{}", "1.0", 0 },
		{ "{'$mod':[7.5,3]}", "{}", "1.5", 0 },
		{ "{'$mod':[{'$numberLong':'-9223372036854775808'},-1]}", "{}",
		  "{'$numberLong':'0'}", 0 },
		{ "{'$mod':[7,0]}", "{}", NULL, 16610 },
		{ "{'$mod':['x',1]}", "{}", NULL, 16611 },
	};

	EXPR_CASES(*state, cases);
}

static void
comparisons_order_all_types(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$cmp':[1,2]}", "{}", "-1", 0 },
		{ "{'$cmp':['a',2]}", "{}", "1", 0 },
		{ "{'$cmp':[2,{'$numberDouble':'2'}]}", "{}", "0", 0 },
		{ "{'$eq':[1,1.0]}", "{}", "true", 0 },
		{ "{'$eq':['$a',null]}", "{}", "false", 0 },
		{ "{'$lt':['$a',null]}", "{}", "true", 0 },
		{ "{'$eq':['$a','$b']}", "{}", "true", 0 },
		/* What is missing comes behind MinKey, and in front of all others. */
		{ "{'$cmp':[null,'$a']}", "{}", "1", 0 },
		{ "{'$cmp':['$a',null]}", "{}", "-1", 0 },
		{ "{'$cmp':[{'$minKey':1},'$a']}", "{}", "-1", 0 },
		{ "{'$cmp':['$a',{'$minKey':1}]}", "{}", "1", 0 },
		{ "{'$gt':[[2],[1,5]]}", "{}", "true", 0 },
		{ "{'$gte':[2,2]}", "{}", "true", 0 },
		{ "{'$lte':[3,2]}", "{}", "false", 0 },
		{ "{'$ne':[3,2]}", "{}", "true", 0 },
	};

	EXPR_CASES(*state, cases);
}

/* The division by zero tells whether it was evaluated. */
static void
what_does_not_decide_is_not_evaluated(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$and':[]}", "{}", "true", 0 },
		{ "{'$or':[]}", "{}", "false", 0 },
		{ "{'$and':['$a',{'$divide':[1,0]}]}", "{'a':0}", "false", 0 },
		{ "{'$or':['$a',{'$divide':[1,0]}]}", "{'a':'x'}", "true", 0 },
		{ "{'$or':['$a',{'$divide':[1,0]}]}", "{}", NULL, 2 },
		{ "{'$or':[{'$divide':[1,'$a']},true]}", "{'a':0}", "true", 0 },
		{ "{'$not':['$a']}", "{'a':[]}", "false", 0 },
		{ "{'$cond':['$a','yes',{'$divide':[1,0]}]}", "{'a':1}", "'yes'", 0 },
		{ "{'$cond':{'if':false,'then':{'$divide':[1,0]},'else':'$a'}}", "{'a':1}", "1",
		  0 },
		{ "{'$cond':[1,2]}", "{}", NULL, 16020 },
		{ "{'$cond':{'then':1,'else':2}}", "{}", NULL, 17080 },
		{ "{'$cond':{'if':1,'else':2}}", "{}", NULL, 17081 },
		{ "{'$cond':{'if':1,'then':2}}", "{}", NULL, 17082 },
		{ "{'$cond':{'if':1,'then':2,'more':3}}", "{}", NULL, 17083 },
		{ "{'$ifNull':['$a',null,7,{'$divide':[1,0]}]}", "{}", "7", 0 },
		{ "{'$ifNull':['$a','$b']}", "{}", NULL, 0 },
		{ "{'$ifNull':['$a']}", "{}", NULL, 1257300 },
		{ "{'$switch':{'branches':[{'case':'$a','then':1},{'case':'$b','then':2}],"
		  "'default':3}}",
		  "{'b':true}", "2", 0 },
		{ "{'$switch':{'branches':[{'case':'$a','then':1}],'default':3}}", "{}", "3", 0 },
		{ "{'$switch':{'branches':[{'case':'$a','then':1}]}}", "{}", NULL, 40066 },
		{ "{'$switch':{'branches':[{'case':false,'then':1}]}}", "{}", NULL, 40069 },
		{ "{'$switch':{'branches':[{'case':'$a','then':1},{'case':false,'then':1}]}}", "{}",
		  NULL, 40066 },
		{ "{'$switch':{'branches':[{'case':false,'then':1},{'case':'$a','then':1}]}}", "{}",
		  NULL, 40066 },
		{ "{'$switch':{'branches':[]}}", "{}", NULL, 40068 },
		{ "{'$switch':{'branches':1}}", "{}", NULL, 40061 },
		{ "{'$switch':{'branches':[1]}}", "{}", NULL, 40062 },
		{ "{'$switch':{'branches':[{'case':1,'then':2,'x':3}]}}", "{}", NULL, 40063 },
		{ "{'$switch':{'branches':[{'then':2}]}}", "{}", NULL, 40064 },
		{ "{'$switch':{'branches':[{'case':2}]}}", "{}", NULL, 40065 },
		{ "{'$switch':{'branches':[],'x':1}}", "{}", NULL, 40067 },
		{ "{'$switch':1}", "{}", NULL, 40060 },
	};

	EXPR_CASES(*state, cases);
}

static void
constants_are_folded(void **state)
{
	struct mql q = case_mql(*state);
	struct bson_value v;
	struct mql_expr *e;

	v = case_value(*state, "{'$cond':[{'$and':[1,{'$not':[0]}]},{'x':[1,{'$add':[1,2]}]},0]}");
	assert_int_equal(mql_expr_compile(&q, &v, NULL, &e), STATUS_OK);
	assert_true(mql_expr_constant(e, &v));
	assert_string_equal(case_json(*state, bson_text(&v)), "{'x':[1,3]}");

	/* What cannot be computed fails only where it is run. */
	v = case_value(*state, "{'$divide':[1,0]}");
	assert_int_equal(mql_expr_compile(&q, &v, NULL, &e), STATUS_OK);
	assert_false(mql_expr_constant(e, NULL));
	assert_int_equal(q.code, 0);
}

static void
variables_have_the_values_that_are_bound(void **state)
{
	struct mql q = case_mql(*state);
	const struct mql_scope *outer, *scope;
	const struct mql_bound a = { .value = case_value(*state, "{'b':[{'c':1}]}") };
	const struct mql_bound z = { .value = BSON_OF_INT32(2), .outer = &a };
	const struct mql_env env = { .root = BSON_EMPTY, .bound = &z };
	struct bson_value v = case_value(*state, "['$$a.b.c','$$z']");
	struct mql_expr *e;

	assert_int_equal(mql_scope_add(&q, NULL, STR("a"), &outer), STATUS_OK);
	assert_int_equal(mql_scope_add(&q, outer, STR("z"), &scope), STATUS_OK);
	assert_int_equal(mql_expr_compile(&q, &v, scope, &e), STATUS_OK);
	assert_int_equal(mql_expr_run(e, &q, &env, &v), STATUS_OK);
	assert_string_equal(case_text(*state, &v),
			    "[[{\"$numberInt\":\"1\"}],{\"$numberInt\":\"2\"}]");

	v = BSON_OF_STRING(STR("$$z"));
	assert_int_equal(mql_expr_compile(&q, &v, outer, &e), STATUS_INVALID);
	assert_int_equal(q.code, 17276);
}

static void
depth_is_bounded(void **state)
{
	struct buf text = BUF_INIT(1 << 20);
	struct mql q = case_mql(*state);
	struct bson_value v;

	for (int i = 0; i < MQL_DEPTH + 1; i++)
		buf_append_cstr(&text, "{'$not':");
	buf_append_cstr(&text, "1");
	for (int i = 0; i < MQL_DEPTH + 1; i++)
		buf_append_cstr(&text, "}");
	buf_append_byte(&text, 0);
	assert_int_equal(case_run(&q, text.ptr, "{}", &v), STATUS_INVALID);
	assert_int_equal(q.code, MQL_OVERFLOW);
	assert_int_equal(q.depth, 0);
	buf_release(&text);
}

#define T(name) cmocka_unit_test_setup_teardown(name, case_setup, case_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(paths_go_through_documents_and_arrays),
		T(objects_and_arrays_are_computed),
		T(arithmetic_has_the_wider_type),
		T(comparisons_order_all_types),
		T(what_does_not_decide_is_not_evaluated),
		T(constants_are_folded),
		T(variables_have_the_values_that_are_bound),
		T(depth_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
