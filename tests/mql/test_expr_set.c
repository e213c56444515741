/* Sets, trigonometry, bits, timestamps. */
#include "expr_case.h"

static void
arrays_are_sets(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$setEquals':[[1,2,2],[2.0,1]]}", "{}", "true", 0 },
		{ "{'$setEquals':[[1],[1],[2]]}", "{}", "false", 0 },
		{ "{'$setEquals':[[1]]}", "{}", NULL, 17045 },
		{ "{'$setEquals':[[1],null]}", "{}", NULL, 5887502 },
		{ "{'$setEquals':[[1],'$x']}", "{}", NULL, 17044 },
		{ "{'$setIntersection':[[3,1,2,1],[1,3,4]]}", "{}", "[1,3]", 0 },
		{ "{'$setIntersection':[]}", "{}", "[]", 0 },
		{ "{'$setIntersection':[null,1]}", "{}", "null", 0 },
		{ "{'$setIntersection':[[1],1]}", "{}", NULL, 17047 },
		{ "{'$setUnion':[[3,1],'$a',[3]]}", "{'a':['x']}", "[1,3,'x']", 0 },
		{ "{'$setUnion':[[3],'$a']}", "{}", "null", 0 },
		{ "{'$setUnion':[[3],1]}", "{}", NULL, 17043 },
		{ "{'$setDifference':[[3,1,3,2,1],[2]]}", "{}", "[3,1]", 0 },
		{ "{'$setDifference':[null,1]}", "{}", "null", 0 },
		{ "{'$setDifference':[1,[1]]}", "{}", NULL, 17048 },
		{ "{'$setDifference':[[1],1]}", "{}", NULL, 17049 },
		{ "{'$setIsSubset':[[1,1],[2,1]]}", "{}", "true", 0 },
		{ "{'$setIsSubset':[[3],[2,1]]}", "{}", "false", 0 },
		{ "{'$setIsSubset':[[0,1],[1]]}", "{}", "false", 0 },
		{ "{'$setIsSubset':[[1,2],[1]]}", "{}", "false", 0 },
		{ "{'$setIsSubset':[null,[2,1]]}", "{}", NULL, 17046 },
		{ "{'$setIsSubset':[[1],'$x']}", "{}", NULL, 17042 },
		{ "{'$allElementsTrue':[[1,'',[]]]}", "{}", "true", 0 },
		{ "{'$allElementsTrue':[[1,null]]}", "{}", "false", 0 },
		{ "{'$allElementsTrue':[[]]}", "{}", "true", 0 },
		{ "{'$anyElementTrue':[[0,false]]}", "{}", "false", 0 },
		{ "{'$anyElementTrue':['$a']}", "{'a':[0,1]}", "true", 0 },
		{ "{'$allElementsTrue':['$a']}", "{}", NULL, 17040 },
		{ "{'$anyElementTrue':[null]}", "{}", NULL, 17041 },
	};

	EXPR_CASES(*state, cases);
}

static void
angles_are_computed(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$sin':0}", "{}", "0.0", 0 },
		{ "{'$cos':{'$numberLong':'0'}}", "{}", "1.0", 0 },
		{ "{'$tan':null}", "{}", "null", 0 },
		{ "{'$acos':'$x'}", "{}", "null", 0 },
		{ "{'$acos':1}", "{}", "0.0", 0 },
		{ "{'$acos':2}", "{}", NULL, 50989 },
		{ "{'$acosh':0}", "{}", NULL, 50989 },
		{ "{'$atanh':1}", "{}", "{'$numberDouble':'Infinity'}", 0 },
		{ "{'$sin':{'$numberDouble':'Infinity'}}", "{}", NULL, 50989 },
		{ "{'$tanh':{'$numberDouble':'Infinity'}}", "{}", "1.0", 0 },
		{ "{'$sin':{'$numberDouble':'NaN'}}", "{}", "{'$numberDouble':'NaN'}", 0 },
		{ "{'$asin':{'$numberDecimal':'1'}}", "{}",
		  "{'$numberDecimal':'1.570796326794896619231321691639751'}", 0 },
		{ "{'$sinh':'a'}", "{}", NULL, 28765 },
		{ "{'$atan2':[0,1]}", "{}", "0.0", 0 },
		{ "{'$atan2':[{'$numberDecimal':'1'},0]}", "{}",
		  "{'$numberDecimal':'1.570796326794896619231321691639751'}", 0 },
		{ "{'$atan2':[1,{'$numberDecimal':'0'}]}", "{}",
		  "{'$numberDecimal':'1.570796326794896619231321691639751'}", 0 },
		{ "{'$atan2':[0,null]}", "{}", "null", 0 },
		{ "{'$atan2':[0,'a']}", "{}", NULL, 51044 },
		{ "{'$degreesToRadians':180}", "{}", "3.141592653589793", 0 },
		{ "{'$radiansToDegrees':3.141592653589793}", "{}", "180.0", 0 },
		{ "{'$degreesToRadians':{'$numberDecimal':'180'}}", "{}",
		  "{'$numberDecimal':'3.141592653589793238462643383279503'}", 0 },
		{ "{'$degreesToRadians':'a'}", "{}", NULL, 28765 },
	};

	EXPR_CASES(*state, cases);
}

static void
bits_and_parts_are_taken(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$bitAnd':[6,3]}", "{}", "2", 0 },
		{ "{'$bitOr':[6,{'$numberLong':'1'}]}", "{}", "{'$numberLong':'7'}", 0 },
		{ "{'$bitXor':[6,3]}", "{}", "5", 0 },
		{ "{'$bitAnd':[]}", "{}", "-1", 0 },
		{ "{'$bitOr':[]}", "{}", "0", 0 },
		{ "{'$bitNot':5}", "{}", "-6", 0 },
		{ "{'$bitAnd':[1,'$x']}", "{}", "null", 0 },
		{ "{'$bitAnd':[1,1.0]}", "{}", NULL, 14 },
		{ "{'$bitNot':1.0}", "{}", NULL, 14 },
		{ "{'$binarySize':'a\xc3\xa4'}", "{}", "3", 0 },
		{ "{'$binarySize':'$b'}", "{'b':{'$binary':{'base64':'AAAA','subType':'00'}}}", "3",
		  0 },
		{ "{'$binarySize':null}", "{}", "null", 0 },
		{ "{'$binarySize':1}", "{}", NULL, 51276 },
		{ "{'$tsSecond':'$t'}", "{'t':{'$timestamp':{'t':4294967295,'i':2}}}",
		  "{'$numberLong':'4294967295'}", 0 },
		{ "{'$tsIncrement':'$t'}", "{'t':{'$timestamp':{'t':1,'i':2}}}",
		  "{'$numberLong':'2'}", 0 },
		{ "{'$tsSecond':null}", "{}", "null", 0 },
		{ "{'$tsSecond':1}", "{}", NULL, 5687301 },
		{ "{'$tsIncrement':1}", "{}", NULL, 5687302 },
	};

	EXPR_CASES(*state, cases);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(arrays_are_sets, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(angles_are_computed, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(bits_and_parts_are_taken, case_setup,
						case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
