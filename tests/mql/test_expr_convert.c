#include "expr_case.h"

#define LONG(text)    "{'$numberLong':'" text "'}"
#define DECIMAL(text) "{'$numberDecimal':'" text "'}"
#define DATE(text)    "{'$date':'" text "'}"
#define BYTES(text)   "{'$binary':{'base64':'" text "','subType':'00'}}"
#define UUID(text)    "{'$binary':{'base64':'" text "','subType':'04'}}"

static void
numbers_are_converted(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$toInt':1.9}", "{}", "1", 0 },
		{ "{'$toInt':" DECIMAL("-2.7") "}", "{}", "-2", 0 },
		{ "{'$toInt':'-7'}", "{}", "-7", 0 },
		{ "{'$toInt':[true]}", "{}", "1", 0 },
		{ "{'$toInt':" LONG("2147483648") "}", "{}", NULL, 241 },
		{ "{'$toInt':{'$numberDouble':'NaN'}}", "{}", NULL, 241 },
		{ "{'$toInt':'1.5'}", "{}", NULL, 241 },
		{ "{'$toInt':" DATE("2024-01-01T00:00:00Z") "}", "{}", NULL, 241 },
		{ "{'$toInt':[1,2]}", "{}", NULL, 50723 },
		{ "{'$toInt':'$x'}", "{}", "null", 0 },
		{ "{'$toLong':" DATE("1970-01-01T00:00:01Z") "}", "{}", LONG("1000"), 0 },
		{ "{'$toLong':1e19}", "{}", NULL, 241 },
		{ "{'$toLong':'9223372036854775808'}", "{}", NULL, 241 },
		{ "{'$toDouble':'0x1.8p1'}", "{}", NULL, 241 },
		{ "{'$toDouble':'0X1'}", "{}", NULL, 241 },
		{ "{'$toDouble':'-0x1.8p1'}", "{}", "-3.0", 0 },
		{ "{'$toDouble':'01.5'}", "{}", "1.5", 0 },
		{ "{'$toDouble':'-inf'}", "{}", "{'$numberDouble':'-Infinity'}", 0 },
		{ "{'$toDouble':'1e309'}", "{}", NULL, 241 },
		{ "{'$toDouble':' 1'}", "{}", NULL, 241 },
		{ "{'$toDouble':''}", "{}", NULL, 241 },
		{ "{'$toDouble':" DECIMAL("1E+400") "}", "{}", NULL, 241 },
		{ "{'$toDecimal':'1.50'}", "{}", DECIMAL("1.50"), 0 },
		{ "{'$toDecimal':true}", "{}", DECIMAL("1"), 0 },
		{ "{'$toDecimal':'x'}", "{}", NULL, 241 },
		{ "{'$toBool':''}", "{}", "true", 0 },
		{ "{'$toBool':0.0}", "{}", "false", 0 },
		{ "{'$isNumber':" DECIMAL("1") "}", "{}", "true", 0 },
		{ "{'$isNumber':'1'}", "{}", "false", 0 },
		{ "{'$type':'$x'}", "{}", "'missing'", 0 },
		{ "{'$type':[1.5]}", "{}", "'double'", 0 },
	};

	EXPR_CASES(*state, cases);
}

static void
strings_dates_and_ids_are_converted(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$toString':3.14}", "{}", "'3.14'", 0 },
		{ "{'$toString':1e15}", "{}", "'1000000000000000'", 0 },
		{ "{'$toString':1e16}", "{}", "'1e+16'", 0 },
		{ "{'$toString':0.0001}", "{}", "'0.0001'", 0 },
		{ "{'$toString':0.00009}", "{}", "'9e-05'", 0 },
		{ "{'$toString':-0.0}", "{}", "'-0'", 0 },
		{ "{'$toString':5e-324}", "{}", "'5e-324'", 0 },
		{ "{'$toString':0.30000000000000004}", "{}", "'0.30000000000000004'", 0 },
		{ "{'$toString':{'$numberDouble':'NaN'}}", "{}", "'NaN'", 0 },
		{ "{'$toString':true}", "{}", "'true'", 0 },
		{ "{'$toString':{'$oid':'65a000000000000000000000'}}", "{}",
		  "'65a000000000000000000000'", 0 },
		{ "{'$toString':" DATE("2024-01-01T00:00:00Z") "}", "{}",
		  "'2024-01-01T00:00:00.000Z'", 0 },
		{ "{'$toString':'$b'}", "{'b':" BYTES("aGVsbG8=") "}", "'aGVsbG8='", 0 },
		{ "{'$toString':[[1]]}", "{}", NULL, 241 },
		{ "{'$toDate':" LONG("1000") "}", "{}", DATE("1970-01-01T00:00:01Z"), 0 },
		{ "{'$toDate':'2024-06-15T12:30:45Z'}", "{}", DATE("2024-06-15T12:30:45Z"), 0 },
		{ "{'$toDate':{'$oid':'65a000000000000000000000'}}", "{}",
		  DATE("2024-01-11T14:49:36Z"), 0 },
		{ "{'$toDate':1}", "{}", NULL, 241 },
		{ "{'$toDate':'x'}", "{}", NULL, 241 },
		{ "{'$toObjectId':'65A000000000000000000000'}", "{}",
		  "{'$oid':'65a000000000000000000000'}", 0 },
		{ "{'$toObjectId':'65'}", "{}", NULL, 241 },
		{ "{'$toUUID':'01020304-0506-0708-090a-0b0c0d0e0f10'}", "{}",
		  UUID("AQIDBAUGBwgJCgsMDQ4PEA=="), 0 },
		{ "{'$toUUID':'01020304'}", "{}", NULL, 241 },
	};

	EXPR_CASES(*state, cases);
}

static void
convert_has_its_arguments(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$convert':{'input':'42','to':'int'}}", "{}", "42", 0 },
		{ "{'$convert':{'input':'42','to':16.0}}", "{}", "42", 0 },
		{ "{'$convert':{'input':'x','to':'int','onError':'bad'}}", "{}", "'bad'", 0 },
		{ "{'$convert':{'input':null,'to':'x','onNull':'none'}}", "{}", "'none'", 0 },
		{ "{'$convert':{'input':1,'to':null,'onError':2}}", "{}", "null", 0 },
		{ "{'$convert':{'input':1,'to':'array'}}", "{}", NULL, 241 },
		{ "{'$convert':{'input':1,'to':0}}", "{}", NULL, 241 },
		{ "{'$convert':{'input':1,'to':'integer'}}", "{}", NULL, 2 },
		{ "{'$convert':{'input':1,'to':99}}", "{}", NULL, 9 },
		{ "{'$convert':{'input':1,'to':true}}", "{}", NULL, 9 },
		{ "{'$convert':{'input':1}}", "{}", NULL, 9 },
		{ "{'$convert':{'input':1,'to':'int','x':1}}", "{}", NULL, 9 },
		{ "{'$convert':1}", "{}", NULL, 9 },
		{ "{'$convert':{'input':42,'to':'binData'}}", "{}", BYTES("KgAAAA=="), 0 },
		{ "{'$convert':{'input':42,'to':'binData','byteOrder':'big'}}", "{}",
		  BYTES("AAAAKg=="), 0 },
		{ "{'$convert':{'input':'$b','to':'int','byteOrder':'big'}}",
		  "{'b':" BYTES("AAAAKg==") "}", "42", 0 },
		{ "{'$convert':{'input':'$b','to':'long'}}", "{'b':" BYTES("/w==") "}", LONG("-1"),
		  0 },
		{ "{'$convert':{'input':'$b','to':'int'}}", "{'b':" BYTES("AAAA") "}", NULL, 241 },
		{ "{'$convert':{'input':'>>','to':'binData','format':'utf8'}}", "{}", BYTES("Pj4="),
		  0 },
		{ "{'$convert':{'input':'68656C','to':'binData','format':'hex'}}", "{}",
		  BYTES("aGVs"), 0 },
		{ "{'$convert':{'input':'a-b_cA','to':'binData','format':'base64url'}}", "{}",
		  BYTES("a+b/cA=="), 0 },
		{ "{'$convert':{'input':'$b','to':'string','format':'hex'}}",
		  "{'b':" BYTES("aGVs") "}", "'68656C'", 0 },
		{ "{'$convert':{'input':'$b','to':'string','format':'uuid'}}",
		  "{'b':" UUID("AQIDBAUGBwgJCgsMDQ4PEA==") "}",
		  "'01020304-0506-0708-090a-0b0c0d0e0f10'", 0 },
		{ "{'$convert':{'input':'x','to':'binData'}}", "{}", NULL, 4341115 },
		{ "{'$convert':{'input':'x','to':'binData','format':'hex'}}", "{}", NULL, 241 },
		{ "{'$convert':{'input':'x','to':'binData','format':'xml'}}", "{}", NULL, 4341125 },
		{ "{'$convert':{'input':'x','to':'binData','format':1}}", "{}", NULL, 4341114 },
		{ "{'$convert':{'input':1,'to':'binData','byteOrder':1}}", "{}", NULL, 9130001 },
		{ "{'$convert':{'input':1,'to':'binData','byteOrder':'x'}}", "{}", NULL, 9130002 },
		{ "{'$convert':{'input':1,'to':{'type':'binData','subtype':1.5}}}", "{}", NULL,
		  4341106 },
		{ "{'$convert':{'input':1,'to':{'type':'binData','subtype':256}}}", "{}", NULL,
		  4341107 },
		{ "{'$convert':{'input':1,'to':{'type':'binData','subtype':-1}}}", "{}", NULL,
		  4341107 },
		{ "{'$convert':{'input':1,'to':{'type':'binData','subtype':'0'}}}", "{}", NULL,
		  4341108 },
		{ "{'$convert':{'input':1,'to':{'subtype':1}}}", "{}", NULL, 9 },
	};

	EXPR_CASES(*state, cases);
}

/* The numbers are MongoDB's own. */
static void
hashes_are_those_of_hashed_indexes(void **state)
{
#define HASH(value, number)                                                                        \
	{                                                                                          \
		"{'$toHashedIndexKey':{'$literal':" value "}}", "{}", LONG(number), 0              \
	}
	static const struct expr_case cases[] = {
		HASH("42", "-944302157085130861"),
		HASH("42.123", "-944302157085130861"),
		HASH(LONG("42"), "-944302157085130861"),
		HASH(DECIMAL("42"), "-944302157085130861"),
		HASH("0.456", "4854801880128277513"),
		HASH("{'$numberDouble':'NaN'}", "4854801880128277513"),
		HASH(DECIMAL("NaN"), "4854801880128277513"),
		HASH("1.987", "5902408780260971510"),
		HASH("-1.789", "1140205862565771219"),
		HASH("-2147483648", "6165898260261354870"),
		HASH("2147483647.0", "1143184177162245883"),
		HASH("1.7976931348623157e308", "921523596458303250"),
		HASH(LONG("9223372036854775807"), "921523596458303250"),
		HASH(DECIMAL("1E+6144"), "921523596458303250"),
		HASH("{'$numberDouble':'Infinity'}", "921523596458303250"),
		HASH("-1.7976931348623157e308", "4532067210535695462"),
		HASH(LONG("-9223372036854775808"), "4532067210535695462"),
		HASH(DECIMAL("-Infinity"), "4532067210535695462"),
		HASH("9223372036854775808.0", "4532067210535695462"),
		HASH("{'$minKey':1}", "7961148599568647290"),
		HASH("{'$maxKey':1}", "5504842513779440750"),
		HASH("{'$undefined':true}", "40158834000849533"),
		HASH("'abc'", "8478485326885698097"),
		HASH("{'$symbol':'abc'}", "8478485326885698097"),
		HASH("''", "2049396243249673340"),
		HASH("'string to hash'", "763543691661428748"),
		HASH("{'a':'abc','b':" LONG("123") "}", "4771603801758380216"),
		HASH("{}", "7980500913326740417"),
		HASH("['bar','baz','qux']", "-2938911267422831539"),
		HASH("[]", "8849948234993459283"),
		HASH("{'$binary':{'base64':'AAECAwQG','subType':'00'}}", "7252465090394235301"),
		HASH("{'$binary':{'base64':'AAECAwQG','subType':'80'}}", "5736670452907618262"),
		HASH("{'$binary':{'base64':'AAECAwQFBgcICQoLDA0ODw==','subType':'04'}}",
		     "6084661258071355978"),
		HASH("{'$oid':'010203040506070809101112'}", "-5588663249627035708"),
		HASH("true", "6405873908747105701"),
		HASH("false", "6289544573401934092"),
		HASH("{'$date':{'$numberLong':'6153737367135073092'}}", "4476222765095560467"),
		HASH("{'$date':{'$numberLong':'0'}}", "-1178696894582842035"),
		HASH("{'$regularExpression':{'pattern':'mongodb','options':''}}",
		     "-7275792090268217043"),
		HASH("{'$regularExpression':{'pattern':'.*','options':'i'}}",
		     "7095855029187981886"),
		HASH("{'$dbPointer':{'$ref':'c','$id':{'$oid':'010203040506070809101112'}}}",
		     "940175826736461384"),
		HASH("{'$code':'func f() { return 1; }'}", "6861638109178014270"),
		HASH("{'$code':'func f() { return 1; }','$scope':{'c':true}}",
		     "501342939894575968"),
		/* An array is no list of arguments; a value that is missing is null. */
		{ "{'$toHashedIndexKey':['bar','$b','qux']}", "{'b':'baz'}",
		  LONG("-2938911267422831539"), 0 },
		{ "{'$eq':[{'$toHashedIndexKey':'$x'},{'$toHashedIndexKey':null}]}", "{}", "true",
		  0 },
		{ "{'$toHashedIndexKey':{'$divide':[1,'$x']}}", "{'x':0}", NULL, 2 },
	};
#undef HASH

	EXPR_CASES(*state, cases);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(numbers_are_converted, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(strings_dates_and_ids_are_converted, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(convert_has_its_arguments, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(hashes_are_those_of_hashed_indexes, case_setup,
						case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
