/* Operators on arrays, documents and numbers, and those that bind variables. */
#include "expr_case.h"

#define LONG(n)   "{'$numberLong':'" n "'}"
#define DOUBLE(n) "{'$numberDouble':'" n "'}"
#define DEC(n)    "{'$numberDecimal':'" n "'}"

static void
functions_of_numbers(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$abs':-5}", "{}", "5", 0 },
		{ "{'$abs':{'$numberInt':'-2147483648'}}", "{}", LONG("2147483648"), 0 },
		{ "{'$abs':{'$numberLong':'-9223372036854775808'}}", "{}", NULL, 28680 },
		{ "{'$abs':'x'}", "{}", NULL, 28765 },
		{ "{'$abs':null}", "{}", "null", 0 },
		{ "{'$ceil':1.2}", "{}", "2.0", 0 },
		{ "{'$floor':{'$numberDecimal':'-1.2'}}", "{}", DEC("-2"), 0 },
		{ "{'$exp':0}", "{}", "1.0", 0 },
		{ "{'$ln':1}", "{}", "0.0", 0 },
		{ "{'$ln':0}", "{}", NULL, 28766 },
		{ "{'$log10':100}", "{}", "2.0", 0 },
		{ "{'$log10':-1}", "{}", NULL, 28761 },
		{ "{'$log':[8,2]}", "{}", "3.0", 0 },
		{ "{'$log':[8,1]}", "{}", NULL, 28759 },
		{ "{'$log':[0,2]}", "{}", NULL, 28758 },
		{ "{'$sqrt':16}", "{}", "4.0", 0 },
		{ "{'$sqrt':-1}", "{}", NULL, 28714 },
		{ "{'$pow':[2,10]}", "{}", "1024", 0 },
		{ "{'$pow':[2,40]}", "{}", LONG("1099511627776"), 0 },
		{ "{'$pow':[2,-1]}", "{}", "0.5", 0 },
		{ "{'$pow':[3,60]}", "{}", DOUBLE("4.2391158275216201e28"), 0 },
		{ "{'$pow':[-1,3]}", "{}", "-1", 0 },
		{ "{'$pow':[-1,-4]}", "{}", "1", 0 },
		{ "{'$pow':[1,-1]}", "{}", "1", 0 },
		{ "{'$pow':[0,0]}", "{}", "1", 0 },
		{ "{'$pow':[{'$numberDecimal':'2'},3]}", "{}",
		  DEC("8.000000000000000000000000000000000"), 0 },
		{ "{'$floor':{'$numberDecimal':'Infinity'}}", "{}", DEC("NaN"), 0 },
		{ "{'$trunc':{'$numberDecimal':'1E+6144'}}", "{}",
		  DEC("1.000000000000000000000000000000000E+6144"), 0 },
		{ "{'$sigmoid':[0]}", "{}", NULL, 14 },
		{ "{'$pow':[0,-1]}", "{}", NULL, 28764 },
		{ "{'$round':2.5}", "{}", "2.0", 0 },
		{ "{'$round':[1.2345,2]}", "{}", "1.23", 0 },
		{ "{'$round':[1250,-2]}", "{}", "1200", 0 },
		{ "{'$round':[1,101]}", "{}", NULL, 51083 },
		{ "{'$round':[1,1.5]}", "{}", NULL, 51082 },
		{ "{'$round':['x']}", "{}", NULL, 51081 },
		{ "{'$round':[null]}", "{}", "null", 0 },
		{ "{'$round':['$none',2]}", "{}", "null", 0 },
		{ "{'$round':[1.5,null]}", "{}", "null", 0 },
		{ "{'$trunc':[null]}", "{}", "null", 0 },
		{ "{'$trunc':[-1.29,1]}", "{}", "-1.2", 0 },
		{ "{'$sigmoid':0}", "{}", "0.5", 0 },
	};

	EXPR_CASES(*state, cases);
}

static void
elements_are_found(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$arrayElemAt':['$a',1]}", "{'a':[1,2,3]}", "2", 0 },
		{ "{'$arrayElemAt':['$a',-1]}", "{'a':[1,2,3]}", "3", 0 },
		{ "{'$arrayElemAt':['$a',3]}", "{'a':[1,2,3]}", NULL, 0 },
		{ "{'$arrayElemAt':['$a',-4]}", "{'a':[1,2,3]}", NULL, 0 },
		{ "{'$arrayElemAt':['$a',0]}", "{}", "null", 0 },
		{ "{'$arrayElemAt':['$a',0]}", "{'a':1}", NULL, 28689 },
		{ "{'$arrayElemAt':['$a','x']}", "{'a':[]}", NULL, 28690 },
		{ "{'$arrayElemAt':['$a',1.5]}", "{'a':[]}", NULL, 28691 },
		{ "{'$first':'$a'}", "{'a':[1,2]}", "1", 0 },
		{ "{'$last':'$a'}", "{'a':[1,2]}", "2", 0 },
		{ "{'$last':'$a'}", "{'a':[]}", NULL, 0 },
		{ "{'$size':'$a'}", "{'a':[1,[2]]}", "2", 0 },
		{ "{'$size':'$a'}", "{}", NULL, 17124 },
		{ "{'$isArray':'$a'}", "{'a':[]}", "true", 0 },
		{ "{'$isArray':['$a']}", "{'a':1}", "false", 0 },
		{ "{'$in':[2.0,'$a']}", "{'a':[1,2]}", "true", 0 },
		{ "{'$in':[1,'$a']}", "{'a':1}", NULL, 40081 },
		{ "{'$indexOfArray':['$a',2]}", "{'a':[1,2,2]}", "1", 0 },
		{ "{'$indexOfArray':['$a',2,2]}", "{'a':[1,2,2]}", "2", 0 },
		{ "{'$indexOfArray':['$a',2,0,1]}", "{'a':[1,2,2]}", "-1", 0 },
		{ "{'$indexOfArray':['$a',2,-1]}", "{'a':[1,2,2]}", NULL, 9711601 },
		{ "{'$indexOfArray':['$a',2,'x']}", "{'a':[1,2,2]}", NULL, 9711600 },
	};

	EXPR_CASES(*state, cases);
}

static void
arrays_are_made_of_arrays(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$concatArrays':['$a',[3],'$a']}", "{'a':[1,2]}", "[1,2,3,1,2]", 0 },
		{ "{'$concatArrays':['$a',[3]]}", "{}", "null", 0 },
		{ "{'$concatArrays':[[3],1]}", "{}", NULL, 28664 },
		{ "{'$reverseArray':'$a'}", "{'a':[1,2,3]}", "[3,2,1]", 0 },
		{ "{'$slice':['$a',2]}", "{'a':[1,2,3]}", "[1,2]", 0 },
		{ "{'$slice':['$a',-2]}", "{'a':[1,2,3]}", "[2,3]", 0 },
		{ "{'$slice':['$a',-9]}", "{'a':[1,2,3]}", "[1,2,3]", 0 },
		{ "{'$slice':['$a',1,1]}", "{'a':[1,2,3]}", "[2]", 0 },
		{ "{'$slice':['$a',-9,2]}", "{'a':[1,2,3]}", "[1,2]", 0 },
		{ "{'$slice':['$a',5,2]}", "{'a':[1,2,3]}", "[]", 0 },
		{ "{'$slice':['$a',1,0]}", "{'a':[1,2,3]}", NULL, 28729 },
		{ "{'$slice':['$a','x']}", "{'a':[1,2,3]}", NULL, 28725 },
		{ "{'$slice':[1,1]}", "{}", NULL, 28724 },
		{ "{'$range':[0,5,2]}", "{}", "[0,2,4]", 0 },
		{ "{'$range':[5,0,-2]}", "{}", "[5,3,1]", 0 },
		{ "{'$range':[5,0]}", "{}", "[]", 0 },
		{ "{'$range':[0,5,0]}", "{}", NULL, 34449 },
		{ "{'$range':['x',5]}", "{}", NULL, 34443 },
		{ "{'$range':[0,1.5]}", "{}", NULL, 34446 },
		{ "{'$firstN':{'n':2,'input':'$a'}}", "{'a':[3,null,1]}", "[3,null]", 0 },
		{ "{'$lastN':{'n':2,'input':'$a'}}", "{'a':[3,null,1]}", "[null,1]", 0 },
		{ "{'$maxN':{'n':2,'input':'$a'}}", "{'a':[3,null,1,7]}", "[7,3]", 0 },
		{ "{'$minN':{'n':9,'input':'$a'}}", "{'a':[3,null,1,7]}", "[1,3,7]", 0 },
		{ "{'$minN':{'input':'$a'}}", "{}", NULL, 5787906 },
		{ "{'$sortArray':{'input':'$a','sortBy':1}}", "{'a':[3,'x',1]}", "[1,3,'x']", 0 },
		{ "{'$sortArray':{'input':'$a','sortBy':{'b':-1}}}",
		  "{'a':[{'b':1},{'b':3},{'b':2}]}", "[{'b':3},{'b':2},{'b':1}]", 0 },
		{ "{'$sortArray':{'input':'$a','sortBy':{'b':1}}}", "{'a':[{'b':[3,1]},{'b':[2]}]}",
		  "[{'b':[2]},{'b':[3,1]}]", 0 },
		{ "{'$sortArray':{'input':'$a','sortBy':2}}", "{}", NULL, 2942506 },
		{ "{'$sortArray':{'input':'$a','sortBy':{'b':0}}}", "{}", NULL, 2942505 },
		{ "{'$sortArray':'$a'}", "{}", NULL, 2942500 },
		{ "{'$sortArray':{'input':'$a','sortBy':1,'x':1}}", "{}", NULL, 2942501 },
		{ "{'$sortArray':{'sortBy':1}}", "{}", NULL, 2942502 },
		{ "{'$sortArray':{'input':'$a'}}", "{}", NULL, 2942503 },
		{ "{'$zip':{'inputs':['$a',[4,5]]}}", "{'a':[1,2,3]}", "[[1,4],[2,5]]", 0 },
		{ "{'$zip':{'inputs':['$a',[4]],'useLongestLength':true,'defaults':[0,9]}}",
		  "{'a':[1,2]}", "[[1,4],[2,9]]", 0 },
		{ "{'$zip':{'inputs':['$a',[4]],'useLongestLength':true}}", "{'a':[1,2]}",
		  "[[1,4],[2,null]]", 0 },
		{ "{'$zip':{'inputs':['$a']}}", "{}", "null", 0 },
		{ "{'$zip':{'inputs':[],'useLongestLength':true}}", "{}", NULL, 34465 },
		{ "{'$zip':{'inputs':[[1]],'defaults':[1]}}", "{}", NULL, 34466 },
	};

	EXPR_CASES(*state, cases);
}

static void
variables_are_bound(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$let':{'vars':{'x':'$a','y':2},'in':{'$add':['$$x','$$y']}}}", "{'a':1}", "3",
		  0 },
		{ "{'$let':{'vars':{'x':'$none'},'in':'$$x'}}", "{}", NULL, 0 },
		{ "{'$let':{'vars':{'CURRENT':'$a'},'in':'$b'}}", "{'a':{'b':7}}", "7", 0 },
		{ "{'$let':{'vars':{'x':1,'y':'$$x'},'in':1}}", "{}", NULL, 17276 },
		{ "{'$let':{'vars':{'X':1},'in':1}}", "{}", NULL, 9 },
		{ "{'$let':{'vars':1,'in':1}}", "{}", NULL, 10065 },
		{ "{'$let':{'vars':{'x':1},'in':'$$x.'}}", "{}", NULL, 40353 },
		{ "{'$let':{'in':1}}", "{}", NULL, 16876 },
		{ "{'$let':{'vars':{}}}", "{}", NULL, 16877 },
		{ "{'$map':{'input':'$a','as':'x','in':{'$add':['$$x','$b']}}}",
		  "{'a':[1,2],'b':10}", "[11,12]", 0 },
		{ "{'$map':{'input':'$a','in':{'$map':{'input':'$$this','as':'y','in':"
		  "{'$multiply':['$$y',{'$size':'$$this'}]}}}}}",
		  "{'a':[[1,2],[3]]}", "[[2,4],[3]]", 0 },
		{ "{'$map':{'input':'$a','in':'$$this.b'}}", "{'a':[{'b':1},{}]}", "[1,null]", 0 },
		{ "{'$map':{'input':'$a','in':1}}", "{}", "null", 0 },
		{ "{'$map':{'input':1,'in':1}}", "{}", NULL, 16883 },
		{ "{'$map':{'in':1}}", "{}", NULL, 16880 },
		{ "{'$map':{'input':1}}", "{}", NULL, 16882 },
		{ "{'$map':{'input':1,'in':1,'x':1}}", "{}", NULL, 16879 },
		{ "{'$map':1}", "{}", NULL, 16878 },
		{ "{'$filter':{'input':'$a','cond':{'$gt':['$$this',1]}}}", "{'a':[1,2,3]}",
		  "[2,3]", 0 },
		{ "{'$filter':{'input':'$a','as':'x','cond':'$$x.k','limit':1}}",
		  "{'a':[{},{'k':1},{'k':2}]}", "[{'k':1}]", 0 },
		{ "{'$filter':{'input':'$a','cond':1,'limit':0}}", "{'a':[1]}", NULL, 327392 },
		{ "{'$filter':{'input':1,'cond':1}}", "{}", NULL, 28651 },
		{ "{'$filter':{'input':1}}", "{}", NULL, 28650 },
		{ "{'$reduce':{'input':'$a','initialValue':0,'in':{'$add':['$$value','$$this']}}}",
		  "{'a':[1,2,3]}", "6", 0 },
		{ "{'$reduce':{'input':[],'initialValue':'$none','in':1}}", "{}", NULL, 0 },
		{ "{'$reduce':{'input':null,'initialValue':0,'in':1}}", "{}", "null", 0 },
		{ "{'$reduce':{'input':1,'initialValue':0,'in':1}}", "{}", NULL, 40080 },
		{ "{'$reduce':{'input':1,'in':1}}", "{}", NULL, 40078 },
	};

	EXPR_CASES(*state, cases);
}

static void
documents_are_changed(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$objectToArray':'$a'}", "{'a':{'x':1,'y':[2]}}",
		  "[{'k':'x','v':1},{'k':'y','v':[2]}]", 0 },
		{ "{'$objectToArray':[1]}", "{}", NULL, 40390 },
		{ "{'$arrayToObject':'$a'}", "{'a':[['x',1],['y',2],['x',3]]}", "{'x':3,'y':2}",
		  0 },
		{ "{'$arrayToObject':'$a'}", "{'a':[{'k':'x','v':1}]}", "{'x':1}", 0 },
		{ "{'$arrayToObject':'$a'}", "{'a':[{'k':'x','v':1},['y',2]]}", NULL, 40391 },
		{ "{'$arrayToObject':'$a'}", "{'a':[['y',2],{'k':'x','v':1}]}", NULL, 40396 },
		{ "{'$arrayToObject':'$a'}", "{'a':[['y']]}", NULL, 40397 },
		{ "{'$arrayToObject':'$a'}", "{'a':[{'k':1,'v':2}]}", NULL, 40394 },
		{ "{'$arrayToObject':'$a'}", "{'a':[1]}", NULL, 40398 },
		{ "{'$mergeObjects':['$a',null,{'y':5},{'z':6}]}", "{'a':{'x':1,'y':2}}",
		  "{'x':1,'y':5,'z':6}", 0 },
		{ "{'$mergeObjects':'$a'}", "{'a':[{'x':1},{'x':2}]}", "{'x':2}", 0 },
		{ "{'$mergeObjects':['$a']}", "{'a':1}", NULL, 40400 },
		{ "{'$getField':'a.b'}", "{'a.b':1}", "1", 0 },
		{ "{'$getField':{'field':{'$literal':'$x'},'input':'$a'}}", "{'a':{'$x':1}}", "1",
		  0 },
		{ "{'$getField':{'field':'x','input':'$none'}}", "{}", NULL, 0 },
		{ "{'$getField':{'field':'x','input':null}}", "{}", "null", 0 },
		{ "{'$getField':1}", "{}", NULL, 3041704 },
		{ "{'$getField':{'input':1}}", "{}", NULL, 3041702 },
		{ "{'$setField':{'field':'a.b','input':'$$ROOT','value':2}}", "{'x':1}",
		  "{'x':1,'a.b':2}", 0 },
		{ "{'$setField':{'field':'x','input':'$$ROOT','value':'$$REMOVE'}}",
		  "{'x':1,'y':2}", "{'y':2}", 0 },
		{ "{'$setField':{'field':'$x','input':'$$ROOT','value':1}}", "{}", NULL, 4161108 },
		{ "{'$setField':{'field':'x','input':1,'value':1}}", "{}", NULL, 4161105 },
		{ "{'$setField':{'field':{'$literal':'$x'},'input':'$$ROOT','value':1}}", "{'a':2}",
		  "{'a':2,'$x':1}", 0 },
		{ "{'$setField':{'field':{'$const':'y'},'input':null,'value':1}}", "{}", "null",
		  0 },
		{ "{'$setField':1}", "{}", NULL, 4161100 },
		{ "{'$setField':{'field':'x','input':1,'value':1,'y':1}}", "{}", NULL, 4161101 },
		{ "{'$setField':{'input':1,'value':1}}", "{}", NULL, 4161102 },
		{ "{'$setField':{'field':'x','input':1}}", "{}", NULL, 4161103 },
		{ "{'$setField':{'field':'x','value':1}}", "{}", NULL, 4161109 },
		{ "{'$setField':{'field':['x'],'input':1,'value':1}}", "{}", NULL, 4161106 },
		{ "{'$setField':{'field':{'$concat':['x','y']},'input':1,'value':1}}", "{}", NULL,
		  4161106 },
		{ "{'$setField':{'field':{},'input':1,'value':1}}", "{}", NULL, 4161107 },
		{ "{'$setField':{'field':1,'input':1,'value':1}}", "{}", NULL, 4161107 },
		{ "{'$setField':{'field':'x\\u0000','input':1,'value':1}}", "{}", NULL, 9534700 },
		{ "{'$unsetField':{'field':'x','input':'$$ROOT'}}", "{'x':1,'y':2}", "{'y':2}", 0 },
		{ "{'$bsonSize':'$$ROOT'}", "{'x':1}", "12", 0 },
		{ "{'$bsonSize':1}", "{}", NULL, 31393 },
	};

	EXPR_CASES(*state, cases);
}

static void
accumulators_go_through_values(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$sum':'$a'}", "{'a':[1,2,'x',[9],3]}", "6", 0 },
		{ "{'$sum':['$a',2]}", "{'a':[1,2]}", "2", 0 },
		{ "{'$sum':[0.1,0.2,0.3]}", "{}", DOUBLE("0.6"), 0 },
		{ "{'$sum':'$none'}", "{}", "0", 0 },
		/* The narrowest type that holds it. */
		{ "{'$sum':[-2147483647,-1]}", "{}", "-2147483648", 0 },
		{ "{'$sum':[-2147483647,-2]}", "{}", LONG("-2147483649"), 0 },
		{ "{'$sum':[2147483646,1]}", "{}", "2147483647", 0 },
		{ "{'$sum':[2147483646,2]}", "{}", LONG("2147483648"), 0 },
		{ "{'$sum':[{'$numberLong':'9223372036854775807'},1,-1]}", "{}",
		  LONG("9223372036854775807"), 0 },
		{ "{'$sum':[{'$numberDecimal':'1.5'},1]}", "{}", DEC("2.5"), 0 },
		{ "{'$sum':[{'$numberDecimal':'-0'}]}", "{}", DEC("0"), 0 },
		{ "{'$avg':[1,2]}", "{}", "1.5", 0 },
		{ "{'$avg':'$none'}", "{}", "null", 0 },
		{ "{'$max':'$a'}", "{'a':[1,'x',null,3]}", "'x'", 0 },
		{ "{'$min':'$a'}", "{'a':[1,'x',null,3]}", "1", 0 },
		{ "{'$min':'$none'}", "{}", "null", 0 },
		{ "{'$stdDevPop':[1,3]}", "{}", "1.0", 0 },
		{ "{'$stdDevSamp':[1]}", "{}", "null", 0 },
		{ "{'$median':{'input':'$a','method':'approximate'}}", "{'a':[5,1,3]}", "3.0", 0 },
		{ "{'$percentile':{'input':'$a','p':[0,0.5,1],'method':'approximate'}}",
		  "{'a':[5,1,3,7]}", "[1.0,3.0,7.0]", 0 },
		{ "{'$percentile':{'input':1,'p':[2],'method':'approximate'}}", "{}", NULL,
		  7750303 },
		{ "{'$median':{'input':1,'method':'exact'}}", "{}", NULL, 2 },
	};

	EXPR_CASES(*state, cases);
}

static void
random_numbers_are_never_constants(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$rand':1}", "{}", NULL, 10065 },
		{ "{'$rand':{'a':1}}", "{}", NULL, 3040501 },
		{ "{'$meta':1}", "{}", NULL, 17307 },
		{ "{'$meta':'x'}", "{}", NULL, 17308 },
		{ "{'$meta':'textScore'}", "{}", NULL, MQL_NOT_SUPPORTED },
		{ "{'$function':{}}", "{}", NULL, 31261 },
		{ "{'$function':{'body':'1','args':[],'lang':'js'}}", "{}", NULL, MQL_BAD_VALUE },
	};
	struct mql q = case_mql(*state);
	struct bson_value v, a, b;
	struct mql_expr *e;
	const struct mql_env env = { .root = BSON_EMPTY };

	v = case_value(*state, "{'$rand':{}}");
	assert_int_equal(mql_expr_compile(&q, &v, NULL, &e), STATUS_OK);
	assert_false(mql_expr_constant(e, NULL));
	assert_int_equal(mql_expr_run(e, &q, &env, &a), STATUS_OK);
	assert_int_equal(mql_expr_run(e, &q, &env, &b), STATUS_OK);
	assert_true(bson_real(&a) >= 0 && bson_real(&a) < 1 && bson_real(&a) != bson_real(&b));
	EXPR_CASES(*state, cases);
}

/* Each round makes an array of what the rounds before it have made, and one more. */
static void
reduce_frees_what_its_rounds_leave(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$size':{'$reduce':{'input':{'$range':[0,2000]},'initialValue':'$none2','in':"
		  "{'$concatArrays':[{'$ifNull':['$$value',[]]},['$$this']]}}}}",
		  "{}", "2000", 0 },
	};

	EXPR_CASES(*state, cases);
}

/* Each round puts what there is into one array more. */
static void
what_is_made_is_never_deeper_than_documents(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$size':[{'$reduce':{'input':{'$range':[0,198]},'initialValue':[],'in':"
		  "['$$value']}}]}",
		  "{}", "1", 0 },
		{ "{'$size':[{'$reduce':{'input':{'$range':[0,200]},'initialValue':[],'in':"
		  "['$$value']}}]}",
		  "{}", NULL, MQL_OVERFLOW },
	};

	EXPR_CASES(*state, cases);
}

#define T(name) cmocka_unit_test_setup_teardown(name, case_setup, case_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(functions_of_numbers),
		T(elements_are_found),
		T(arrays_are_made_of_arrays),
		T(variables_are_bound),
		T(documents_are_changed),
		T(accumulators_go_through_values),
		T(random_numbers_are_never_constants),
		T(reduce_frees_what_its_rounds_leave),
		T(what_is_made_is_never_deeper_than_documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
