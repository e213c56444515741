#include "expr_case.h"

static void
strings_are_joined_and_cased(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$concat':['a','$b','']}", "{'b':'x'}", "'ax'", 0 },
		{ "{'$concat':['a',null]}", "{}", "null", 0 },
		{ "{'$concat':['a','$b']}", "{}", "null", 0 },
		{ "{'$concat':[]}", "{}", "''", 0 },
		{ "{'$concat':['a',1]}", "{}", NULL, 16702 },
		{ "{'$toUpper':'aZ9\xc3\xa4'}", "{}", "'AZ9\xc3\xa4'", 0 },
		{ "{'$toLower':'AbC'}", "{}", "'abc'", 0 },
		{ "{'$toLower':null}", "{}", "''", 0 },
		{ "{'$toLower':{'$numberLong':'12'}}", "{}", "'12'", 0 },
		{ "{'$toLower':123456.789}", "{}", "'123457'", 0 },
		{ "{'$toLower':1000000.0}", "{}", "'1e+06'", 0 },
		{ "{'$toLower':-0.0}", "{}", "'-0'", 0 },
		{ "{'$toLower':{'$numberDecimal':'1E+5'}}", "{}", "'1e+5'", 0 },
		{ "{'$toUpper':'$d'}", "{'d':{'$date':'1969-12-31T23:59:59Z'}}",
		  "'1969-12-31T23:59:59.000Z'", 0 },
		{ "{'$toLower':'$t'}", "{'t':{'$timestamp':{'t':0,'i':7}}}", "'jan  1 00:00:00:7'",
		  0 },
		{ "{'$toLower':true}", "{}", NULL, 16007 },
		{ "{'$strcasecmp':['aB','Ab']}", "{}", "0", 0 },
		{ "{'$strcasecmp':['ab','abc']}", "{}", "-1", 0 },
		{ "{'$strcasecmp':['abc','ab']}", "{}", "1", 0 },
		/* What lies behind a part of a text is none of it. */
		{ "{'$strcasecmp':[{'$substrBytes':['$t',0,2]},'ab']}", "{'t':'abz'}", "0", 0 },
		{ "{'$strcasecmp':['ab',{'$substrBytes':['$t',0,2]}]}", "{'t':'abz'}", "0", 0 },
		{ "{'$strcasecmp':[42,'9']}", "{}", "-1", 0 },
		{ "{'$strcasecmp':['b',null]}", "{}", "1", 0 },
	};

	EXPR_CASES(*state, cases);
}

static void
strings_have_lengths_and_places(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$strLenBytes':'a\xc3\xa4'}", "{}", "3", 0 },
		{ "{'$strLenCP':'a\xc3\xa4'}", "{}", "2", 0 },
		{ "{'$strLenBytes':null}", "{}", NULL, 34473 },
		{ "{'$strLenCP':1}", "{}", NULL, 34471 },
		{ "{'$indexOfBytes':['\xc3\xa4"
		  "bcb','b']}",
		  "{}", "2", 0 },
		{ "{'$indexOfCP':['\xc3\xa4"
		  "bcb','b']}",
		  "{}", "1", 0 },
		{ "{'$indexOfBytes':['abcb','b',2]}", "{}", "3", 0 },
		{ "{'$indexOfBytes':['hello','lo',0,4]}", "{}", "-1", 0 },
		{ "{'$indexOfBytes':['hello','',5]}", "{}", "5", 0 },
		{ "{'$indexOfCP':['hello','',5]}", "{}", "-1", 0 },
		{ "{'$indexOfCP':['','']}", "{}", "0", 0 },
		{ "{'$indexOfCP':['hello','lo',4,2]}", "{}", "-1", 0 },
		{ "{'$indexOfBytes':[null,1]}", "{}", "null", 0 },
		{ "{'$indexOfBytes':[1,'a']}", "{}", NULL, 40091 },
		{ "{'$indexOfCP':['a',null]}", "{}", NULL, 40094 },
		{ "{'$indexOfBytes':['a','a',1.5]}", "{}", NULL, 40096 },
		{ "{'$indexOfBytes':['a','a',0,-1]}", "{}", NULL, 40097 },
	};

	EXPR_CASES(*state, cases);
}

static void
strings_are_cut(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$substr':['hello',1,3]}", "{}", "'ell'", 0 },
		{ "{'$substrBytes':['hello',2,-1]}", "{}", "'llo'", 0 },
		{ "{'$substrBytes':['hello',9,1]}", "{}", "''", 0 },
		{ "{'$substrBytes':[null,0,1]}", "{}", "''", 0 },
		{ "{'$substrBytes':['hello',1.9,2]}", "{}", "'el'", 0 },
		{ "{'$substrBytes':['\xc3\xa4',1,1]}", "{}", NULL, 28656 },
		{ "{'$substrBytes':['\xc3\xa4',0,1]}", "{}", NULL, 28657 },
		{ "{'$substrBytes':['a',-1,1]}", "{}", NULL, 50752 },
		{ "{'$substrBytes':['a','0',1]}", "{}", NULL, 16034 },
		{ "{'$substrBytes':['a',0,null]}", "{}", NULL, 16035 },
		{ "{'$substrBytes':['a',{'$numberDouble':'NaN'},1]}", "{}", NULL, 31109 },
		{ "{'$substrCP':['\xc3\xa4"
		  "bc',1,9]}",
		  "{}", "'bc'", 0 },
		{ "{'$substrCP':['\xc3\xa4"
		  "bc',0,1]}",
		  "{}", "'\xc3\xa4'", 0 },
		{ "{'$substrCP':['a',-1,1]}", "{}", NULL, 34455 },
		{ "{'$substrCP':['a',0,-1]}", "{}", NULL, 34454 },
		{ "{'$substrCP':['a',0.5,1]}", "{}", NULL, 34451 },
		{ "{'$split':['a--b','-']}", "{}", "['a','','b']", 0 },
		{ "{'$split':['hello','hello']}", "{}", "['','']", 0 },
		{ "{'$split':['a','x']}", "{}", "['a']", 0 },
		{ "{'$split':[1,null]}", "{}", "null", 0 },
		{ "{'$split':['a','']}", "{}", NULL, 40087 },
		{ "{'$split':['a',1]}", "{}", NULL, 10503900 },
		{ "{'$trim':{'input':' \\u00a0x y\\n\\u0000'}}", "{}", "'x y'", 0 },
		{ "{'$ltrim':{'input':'abxab','chars':'ba'}}", "{}", "'xab'", 0 },
		{ "{'$rtrim':{'input':'abx\xc3\xa4','chars':'\xc3\xa4x'}}", "{}", "'ab'", 0 },
		{ "{'$trim':{'input':'$x','chars':1}}", "{}", "null", 0 },
		{ "{'$trim':{'input':'a','chars':'$x'}}", "{}", "null", 0 },
		{ "{'$trim':{'input':1}}", "{}", NULL, 50699 },
		{ "{'$trim':{'input':'a','chars':1}}", "{}", NULL, 50700 },
		{ "{'$trim':{'chars':'a'}}", "{}", NULL, 50695 },
		{ "{'$trim':{'input':'a','x':1}}", "{}", NULL, 50694 },
		{ "{'$trim':'a'}", "{}", NULL, 50696 },
		{ "{'$replaceOne':{'input':'aaa','find':'a','replacement':'b'}}", "{}", "'baa'",
		  0 },
		{ "{'$replaceAll':{'input':'aaa','find':'aa','replacement':'b'}}", "{}", "'ba'",
		  0 },
		{ "{'$replaceAll':{'input':'\xc3\xa4"
		  "b','find':'','replacement':'-'}}",
		  "{}", "'-\xc3\xa4-b-'", 0 },
		{ "{'$replaceOne':{'input':'a','find':'','replacement':'-'}}", "{}", "'-a'", 0 },
		{ "{'$replaceOne':{'input':'a','find':null,'replacement':'-'}}", "{}", "null", 0 },
		{ "{'$replaceOne':{'input':null,'find':1,'replacement':'-'}}", "{}", NULL,
		  10503901 },
		{ "{'$replaceOne':{'input':1,'find':2,'replacement':'-'}}", "{}", NULL, 10503904 },
		{ "{'$replaceOne':{'input':'a','find':'a'}}", "{}", NULL, 51747 },
		{ "{'$replaceOne':{'find':'a','replacement':'a'}}", "{}", NULL, 51749 },
		{ "{'$replaceOne':1}", "{}", NULL, 51751 },
	};

	EXPR_CASES(*state, cases);
}

static void
regular_expressions_are_found(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$regexMatch':{'input':'$a','regex':'^B','options':'i'}}", "{'a':'bc'}", "true",
		  0 },
		{ "{'$regexMatch':{'input':'$a','regex':'x'}}", "{}", "false", 0 },
		{ "{'$regexMatch':{'input':'ab','regex':'$r'}}",
		  "{'r':{'$regularExpression':{'pattern':'A','options':'i'}}}", "true", 0 },
		{ "{'$regexFind':{'input':'$a','regex':'(b)(x)?'}}",
		  "{'a':'\xc3\xa4"
		  "bb'}",
		  "{'match':'b','idx':1,'captures':['b',null]}", 0 },
		{ "{'$regexFind':{'input':'a','regex':'x'}}", "{}", "null", 0 },
		{ "{'$regexFindAll':{'input':'a1b22','regex':'[0-9]+'}}", "{}",
		  "[{'match':'1','idx':1,'captures':[]},{'match':'22','idx':3,'captures':[]}]", 0 },
		{ "{'$regexFindAll':{'input':'\xc3\xa4','regex':''}}", "{}",
		  "[{'match':'','idx':0,'captures':[]},{'match':'','idx':1,'captures':[]}]", 0 },
		{ "{'$regexFindAll':{'input':null,'regex':'a'}}", "{}", "[]", 0 },
		{ "{'$regexFind':{'input':'a','regex':null,'options':'z'}}", "{}", "null", 0 },
		{ "{'$regexMatch':{'input':1,'regex':'a'}}", "{}", NULL, 51104 },
		{ "{'$regexMatch':{'input':1,'regex':1}}", "{}", NULL, 51105 },
		{ "{'$regexMatch':{'input':null,'regex':'a','options':1}}", "{}", NULL, 51106 },
		{ "{'$regexMatch':{'input':'a','regex':{'$regularExpression':{'pattern':'A',"
		  "'options':'i'}},'options':''}}",
		  "{}", NULL, 51107 },
		{ "{'$regexMatch':{'input':'a','regex':'a','options':'z'}}", "{}", NULL, 51108 },
		{ "{'$regexMatch':{'input':'a','regex':'a\\u0000'}}", "{}", NULL, 51109 },
		{ "{'$regexMatch':{'input':'a','regex':'a','options':'\\u0000'}}", "{}", NULL,
		  51110 },
		{ "{'$regexMatch':{'input':'a','regex':'['}}", "{}", NULL, 51111 },
		{ "{'$regexMatch':'a'}", "{}", NULL, 51103 },
		{ "{'$regexMatch':{'regex':'a'}}", "{}", NULL, 31022 },
		{ "{'$regexMatch':{'input':'a'}}", "{}", NULL, 31023 },
		{ "{'$regexMatch':{'input':'a','regex':'a','x':1}}", "{}", NULL, 31024 },
	};

	EXPR_CASES(*state, cases);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(strings_are_joined_and_cased, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(strings_have_lengths_and_places, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(strings_are_cut, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(regular_expressions_are_found, case_setup,
						case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
