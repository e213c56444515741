#include "mql/match/match.h"
#include "mql/schema/schema.h"

#include "mql_case.h"

static enum status
find(struct mql *q, const char *schema, const char *document, bool *ret)
{
	struct str filter = case_bson(q->arena, schema), text = case_bson(q->arena, document);
	struct mql_match *m;
	enum status status = mql_match_compile(q, filter, &m);

	return status == STATUS_OK ? mql_match_run(m, q, text, ret, NULL) : status;
}

/* What a schema for the member `x` says about values. */
struct schema_case {
	const char *schema;
	const char *good[5];
	const char *bad[5];
};

static void
check_value(struct arena *arena, const char *schema, const char *value, bool expected)
{
	struct str filter = arena_printf(arena, "{'$jsonSchema':{'properties':{'x':%s}}}", schema);
	struct str document = arena_printf(arena, "{'x':%s}", value);
	struct str opposite = arena_printf(arena, "{'$nor':[%.*s]}", STR_ARG(filter));
	struct mql q = case_mql(arena);
	bool matches = !expected;

	if (find(&q, filter.ptr, document.ptr, &matches) != STATUS_OK || matches != expected)
		fail_msg("%s on %s: %d %s", schema, value, matches, case_err.text);
	assert_int_equal(find(&q, opposite.ptr, document.ptr, &matches), STATUS_OK);
	assert_int_equal(matches, !expected);
}

static void
check_schemas(struct arena *arena, const struct schema_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t n = 0; n < 5 && cases[i].good[n]; n++)
			check_value(arena, cases[i].schema, cases[i].good[n], true);
		for (size_t n = 0; n < 5 && cases[i].bad[n]; n++)
			check_value(arena, cases[i].schema, cases[i].bad[n], false);
	}
}

static void
types_and_scalars_are_checked(void **state)
{
	static const struct schema_case cases[] = {
		{ "{}", { "1", "null", "{}" }, { 0 } },
		{ "{'bsonType':'int'}", { "1" }, { "1.5", "'a'", "[1]", "null" } },
		{ "{'bsonType':['int','string']}", { "1", "'a'" }, { "true" } },
		{ "{'bsonType':'number'}", { "1", "1.5", "{'$numberDecimal':'1'}" }, { "'1'" } },
		{ "{'type':'boolean'}", { "true" }, { "0" } },
		{ "{'type':'object'}", { "{}" }, { "[]" } },
		{ "{'bsonType':'minKey'}", { "{'$minKey':1}" }, { "{'$maxKey':1}" } },
		{ "{'enum':[1,'a',null,{'b':1}]}",
		  { "1.0", "'a'", "null", "{'b':1}" },
		  { "2", "[1]" } },
		{ "{'minimum':5}", { "5", "6.5", "'a'" }, { "4", "{'$numberDouble':'NaN'}" } },
		{ "{'minimum':5,'exclusiveMinimum':true}", { "6" }, { "5" } },
		{ "{'maximum':5,'exclusiveMaximum':false}", { "5", "null" }, { "5.1" } },
		{ "{'maximum':5,'exclusiveMaximum':true}", { "4" }, { "5" } },
		{ "{'multipleOf':3}", { "9", "0", "-3", "'a'", "[1]" }, { "10", "1.5" } },
		{ "{'multipleOf':0.1}", { "0.3", "0.5" }, { "0.35" } },
		{ "{'minLength':2,'maxLength':3}",
		  { "'ab'", "'\xc3\xa4\xc3\xa4\xc3\xa4'", "1" },
		  { "'a'", "'abcd'" } },
		{ "{'pattern':'^a.c'}", { "'abcd'", "1" }, { "'xabc'" } },
		{ "{'not':{'bsonType':'string'}}", { "1" }, { "'a'" } },
		{ "{'allOf':[{'minimum':1},{'maximum':2}]}", { "1", "'a'" }, { "3" } },
		{ "{'anyOf':[{'bsonType':'int'},{'bsonType':'bool'}]}",
		  { "1", "true" },
		  { "'a'" } },
		{ "{'oneOf':[{'multipleOf':3},{'multipleOf':5}]}", { "3", "5" }, { "15", "7" } },
		{ "{'title':'t','description':'d'}", { "1" }, { 0 } },
	};

	check_schemas(*state, cases, CASES(cases));
}

static void
arrays_and_objects_are_checked(void **state)
{
	static const struct schema_case cases[] = {
		{ "{'minItems':1,'maxItems':2}", { "[1]", "[1,2]", "'a'" }, { "[]", "[1,2,3]" } },
		{ "{'uniqueItems':true}",
		  { "[1,2]", "[0,false]", "[]" },
		  { "[1,1.0]", "[{},{}]" } },
		{ "{'uniqueItems':false}", { "[1,1]" }, { 0 } },
		{ "{'items':{'bsonType':'int'}}", { "[1,2]", "[]", "'a'" }, { "[1,'a']" } },
		{ "{'items':[{'bsonType':'int'}]}", { "[1,'a']", "[]" }, { "['a']" } },
		{ "{'items':[{}],'additionalItems':false}", { "[1]" }, { "[1,2]" } },
		{ "{'items':[{}],'additionalItems':{'minimum':5}}", { "[1,5]" }, { "[1,4]" } },
		{ "{'items':{},'additionalItems':false}", { "[1,2]" }, { 0 } },
		{ "{'minProperties':1,'maxProperties':2}", { "{'a':1}", "[]" }, { "{}" } },
		{ "{'required':['a','']}", { "{'a':null,'':1}", "1" }, { "{'a':1}", "{}" } },
		{ "{'properties':{'a':{'minimum':1},'b':{'bsonType':'bool'}}}",
		  { "{}", "{'a':1,'b':true,'c':0}", "1" },
		  { "{'a':0}", "{'b':1}" } },
		{ "{'patternProperties':{'^S':{'bsonType':'string'}},'additionalProperties':false}",
		  { "{'S1':'a'}" },
		  { "{'S1':1}", "{'a':'a'}" } },
		{ "{'properties':{'a':{}},'additionalProperties':{'bsonType':'int'}}",
		  { "{'a':'x','b':1}" },
		  { "{'b':'x'}" } },
		{ "{'dependencies':{'a':['b','c']}}",
		  { "{'a':1,'b':1,'c':1}", "{'b':1}" },
		  { "{'a':1,'b':1}" } },
		{ "{'dependencies':{'a':{'properties':{'b':{'minimum':0}}}}}",
		  { "{'a':1,'b':0}", "{'b':-1}" },
		  { "{'a':1,'b':-1}" } },
		{ "{'properties':{'y':{'items':{'required':['z']}}}}",
		  { "{'y':[{'z':1}]}", "{'y':1}" },
		  { "{'y':[{'z':1},{}]}" } },
	};

	check_schemas(*state, cases, CASES(cases));
}

static void
the_document_itself_is_an_object(void **state)
{
	struct mql q = case_mql(*state);
	bool matches;

	assert_int_equal(find(&q, "{'$jsonSchema':{'bsonType':'object','required':['a']},'b':1}",
			      "{'a':1,'b':1}", &matches),
			 STATUS_OK);
	assert_true(matches);
	assert_int_equal(find(&q, "{'$jsonSchema':{'bsonType':'int'}}", "{'a':1}", &matches),
			 STATUS_OK);
	assert_false(matches);
}

static void
mistakes_have_mongodbs_codes(void **state)
{
	static const struct {
		const char *schema;
		int code;
		const char *text;
	} cases[] = {
		{ "'a'", 14, "$jsonSchema must be an object" },
		{ "{'x':1}", 9, "Unknown $jsonSchema keyword: x" },
		{ "{'$ref':'a'}", 9, "$jsonSchema keyword '$ref' is not currently supported" },
		{ "{'required':'a'}", 14, "$jsonSchema keyword 'required' must be an array" },
		{ "{'required':[]}", 9, "$jsonSchema keyword 'required' cannot be an empty array" },
		{ "{'required':[1]}", 14,
		  "$jsonSchema keyword 'required' must be an array of str" },
		{ "{'required':['a','a']}", 9, "$jsonSchema keyword 'required' array cannot" },
		{ "{'properties':[]}", 14, "$jsonSchema keyword 'properties' must be an object" },
		{ "{'properties':{'a':1}}", 14, "Nested schema for $jsonSchema property 'a' must" },
		{ "{'additionalProperties':1}", 14, "$jsonSchema keyword 'additionalProperties'" },
		{ "{'patternProperties':{'[':{}}}", 2, "Invalid regular expression" },
		{ "{'bsonType':1}", 14, "$jsonSchema keyword 'bsonType' must be either" },
		{ "{'bsonType':'foo'}", 2, "Unknown type name alias: foo" },
		{ "{'type':'int'}", 2, "Unknown type name alias: int" },
		{ "{'type':'integer'}", 9, "$jsonSchema type 'integer' is not currently" },
		{ "{'type':'string','bsonType':'string'}", 9, "Cannot specify both" },
		{ "{'bsonType':['int','bool','int']}", 9,
		  "$jsonSchema keyword 'bsonType' has duplicate value: int" },
		{ "{'bsonType':['int',1]}", 14, "$jsonSchema keyword 'bsonType' must be either" },
		{ "{'bsonType':[]}", 9, "$jsonSchema keyword 'bsonType' cannot be an empty array" },
		{ "{'enum':[]}", 9, "$jsonSchema keyword 'enum' cannot be an empty array" },
		{ "{'enum':[1,1.0]}", 9, "$jsonSchema keyword 'enum' array cannot contain" },
		{ "{'minimum':'a'}", 14, "$jsonSchema keyword 'minimum' must be a number" },
		{ "{'exclusiveMinimum':true}", 9, "$jsonSchema keyword 'minimum' must be a pre" },
		{ "{'minimum':1,'exclusiveMinimum':1}", 14, "$jsonSchema keyword 'exclusiveMini" },
		{ "{'multipleOf':0}", 9, "$jsonSchema keyword 'multipleOf' must have a positive" },
		{ "{'minLength':-1}", 9, "Expected a non-negative number in: minLength: -1" },
		{ "{'maxItems':1.5}", 9, "Expected an integer: maxItems: 1.5" },
		{ "{'maxProperties':'a'}", 9, "Expected a number in: maxProperties" },
		{ "{'pattern':'['}", 51091, "Regular expression is invalid" },
		{ "{'items':1}", 14, "$jsonSchema keyword 'items' must be an array or an object" },
		{ "{'items':[1]}", 14, "$jsonSchema keyword 'items' requires that each element" },
		{ "{'items':{},'additionalItems':1}", 14,
		  "$jsonSchema keyword 'additionalItems' must be either an object or a boolean" },
		{ "{'uniqueItems':1}", 14, "$jsonSchema keyword 'uniqueItems' must be a boolean" },
		{ "{'allOf':[1]}", 14, "$jsonSchema keyword 'allOf' must be an array of objects" },
		{ "{'anyOf':[]}", 9, "$jsonSchema keyword 'anyOf' cannot be an empty array" },
		{ "{'not':1}", 14, "$jsonSchema keyword 'not' must be an object" },
		{ "{'dependencies':{'a':[]}}", 9, "Property 'a' in $jsonSchema keyword 'depend" },
		{ "{'dependencies':{'a':[1]}}", 14, "Property 'a' in $jsonSchema keyword 'depe" },
		{ "{'title':1}", 14, "$jsonSchema keyword 'title' must be a string" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct str filter = arena_printf(*state, "{'$jsonSchema':%s}", cases[i].schema);
		struct mql q = case_mql(*state);
		bool matches;

		if (find(&q, filter.ptr, "{}", &matches) != STATUS_INVALID)
			fail_msg("%s is not refused", cases[i].schema);
		if (q.code != cases[i].code)
			fail_msg("%s: %d: %s", cases[i].schema, q.code, case_err.text);
		if (strncmp(case_err.text, cases[i].text, strlen(cases[i].text)))
			fail_msg("%s: %s", cases[i].schema, case_err.text);
	}
}

static void
schemas_are_nested_so_far_only(void **state)
{
	struct buf text = BUF_INIT(1 << 16);
	struct mql q = case_mql(*state);
	bool matches;

	buf_append_cstr(&text, "{'$jsonSchema':");
	for (int i = 0; i < MQL_DEPTH; i++)
		buf_append_cstr(&text, "{'additionalItems':");
	buf_append_cstr(&text, "{}");
	for (int i = 0; i < MQL_DEPTH; i++)
		buf_append_cstr(&text, "}");
	buf_append(&text, "}", 2);
	assert_int_equal(find(&q, text.ptr, "{}", &matches), STATUS_INVALID);
	assert_int_equal(q.code, MQL_OVERFLOW);
	buf_release(&text);
}

/* ---- Explaining ---- */

struct explained {
	const char *schema, *document;
	const char *why; /* the rules that are not satisfied */
};

static void
check_explained(struct arena *arena, const struct explained *c)
{
	const struct bson_value schema = BSON_OF_DOCUMENT(case_bson(arena, c->schema));
	const struct bson_value document = BSON_OF_DOCUMENT(case_bson(arena, c->document));
	struct mql q = case_mql(arena);
	struct buf out = BUF_INIT(CASE_BYTES);
	struct bson_builder b;
	struct mql_schema *s;
	const char *wanted = arena_printf(arena,
					  "{'operatorName':'$jsonSchema',"
					  "'schemaRulesNotSatisfied':[%s]}",
					  c->why)
				     .ptr;
	const char *got;

	assert_int_equal(mql_schema_compile(&q, &schema, 0, &s), STATUS_OK);
	bson_builder_init(&b, &out);
	bson_begin(&b);
	assert_int_equal(mql_schema_explain(s, &q, &document, &b), STATUS_OK);
	bson_end(&b);
	got = case_json(arena, buf_str(&out));
	if (strcmp(got, wanted) != 0)
		fail_msg("%s on %s:\n%s\nin place of\n%s", c->schema, c->document, got, wanted);
	buf_release(&out);
}

static void
what_a_value_lacks_is_explained(void **state)
{
	static const struct explained cases[] = {
		{ "{'minimum':1}", "{}", "" },
		{ "{'required':['a','b','c']}", "{'b':1}",
		  ("{'operatorName':'required','specifiedAs':{'required':['a','b','c']},"
		   "'missingProperties':['a','c']}") },
		{ "{'minProperties':2,'maxProperties':5}", "{'b':1}",
		  ("{'operatorName':'minProperties','specifiedAs':{'minProperties':2},"
		   "'reason':'specified number of properties was not satisfied',"
		   "'numberOfProperties':1}") },
		{ "{'maxProperties':1}", "{'a':1,'b':2}",
		  ("{'operatorName':'maxProperties','specifiedAs':{'maxProperties':1},"
		   "'reason':'specified number of properties was not satisfied',"
		   "'numberOfProperties':2}") },
		{ "{'properties':{'a':{'bsonType':'string','title':'T','description':'D'},'b':{}}}",
		  "{'a':1,'b':2}",
		  ("{'operatorName':'properties','propertiesNotSatisfied':[{"
		   "'propertyName':'a','title':'T','description':'D','details':[{"
		   "'operatorName':'bsonType','specifiedAs':{'bsonType':'string'},"
		   "'reason':'type did not match','consideredValue':1,"
		   "'consideredType':'int'}]}]}") },
		{ "{'properties':{'a':{'minimum':3,'exclusiveMinimum':true},'b':{'maximum':3,"
		  "'exclusiveMaximum':true},'c':{'minimum':3}}}",
		  "{'a':3,'b':3,'c':2}",
		  ("{'operatorName':'properties','propertiesNotSatisfied':[{"
		   "'propertyName':'a','details':[{'operatorName':'minimum','specifiedAs':{"
		   "'minimum':3,'exclusiveMinimum':true},'reason':'comparison failed',"
		   "'consideredValue':3}]},{'propertyName':'b','details':[{"
		   "'operatorName':'maximum','specifiedAs':{'maximum':3,"
		   "'exclusiveMaximum':true},'reason':'comparison failed',"
		   "'consideredValue':3}]},{'propertyName':'c','details':[{"
		   "'operatorName':'minimum','specifiedAs':{'minimum':3},'reason':'comparison "
		   "failed','consideredValue':2}]}]}") },
		{ "{'properties':{'a':{'enum':[1,2]},'b':{'multipleOf':2},'c':{'maxLength':1},"
		  "'d':{'pattern':'^x'},'e':{'minItems':2}}}",
		  "{'a':3,'b':3,'c':'ab','d':'y','e':[1]}",
		  ("{'operatorName':'properties','propertiesNotSatisfied':[{"
		   "'propertyName':'a','details':[{'operatorName':'enum','specifiedAs':{"
		   "'enum':[1,2]},'reason':'value was not found in enum',"
		   "'consideredValue':3}]},{'propertyName':'b','details':[{"
		   "'operatorName':'multipleOf','specifiedAs':{'multipleOf':2},"
		   "'reason':'considered value is not a multiple of the specified value',"
		   "'consideredValue':3}]},{'propertyName':'c','details':[{"
		   "'operatorName':'maxLength','specifiedAs':{'maxLength':1},"
		   "'reason':'specified string length was not satisfied',"
		   "'consideredValue':'ab'}]},{'propertyName':'d','details':[{"
		   "'operatorName':'pattern','specifiedAs':{'pattern':'^x'},'reason':'regular "
		   "expression did not match','consideredValue':'y'}]},{'propertyName':'e',"
		   "'details':[{'operatorName':'minItems','specifiedAs':{'minItems':2},"
		   "'reason':'array did not match specified length','consideredValue':[1]}]}]}") },
		{ "{'properties':{'a':{'uniqueItems':true}}}", "{'a':[1,2,3,2]}",
		  ("{'operatorName':'properties','propertiesNotSatisfied':[{"
		   "'propertyName':'a','details':[{'operatorName':'uniqueItems',"
		   "'specifiedAs':{'uniqueItems':true},'reason':'found a duplicate item',"
		   "'consideredValue':[1,2,3,2],'duplicatedValue':2}]}]}") },
		{ "{'properties':{'a':{'items':{'bsonType':'int'}}}}", "{'a':[1,'x','y']}",
		  ("{'operatorName':'properties','propertiesNotSatisfied':[{"
		   "'propertyName':'a','details':[{'operatorName':'items','reason':'At least "
		   "one item did not match the sub-schema','itemIndex':1,'details':[{"
		   "'operatorName':'bsonType','specifiedAs':{'bsonType':'int'},'reason':'type "
		   "did not match','consideredValue':'x','consideredType':'string'}]}]}]}") },
		{ "{'properties':{'a':{'items':[{'bsonType':'int'},{}],'additionalItems':false}}}",
		  "{'a':[1,2,3,4]}",
		  ("{'operatorName':'properties','propertiesNotSatisfied':[{"
		   "'propertyName':'a','details':[{'operatorName':'additionalItems',"
		   "'specifiedAs':{'additionalItems':false},'reason':'found additional items',"
		   "'additionalItems':[3,4]}]}]}") },
		{ "{'properties':{'a':{'items':[{'bsonType':'int'}],"
		  "'additionalItems':{'bsonType':'int'}}}}",
		  "{'a':[1,2,'x']}",
		  ("{'operatorName':'properties','propertiesNotSatisfied':[{"
		   "'propertyName':'a','details':[{'operatorName':'additionalItems',"
		   "'reason':'At least one additional item did not match the sub-schema',"
		   "'itemIndex':2,'details':[{'operatorName':'bsonType','specifiedAs':{"
		   "'bsonType':'int'},'reason':'type did not match','consideredValue':'x',"
		   "'consideredType':'string'}]}]}]}") },
		{ "{'properties':{'a':{'items':[{'bsonType':'int'}]}}}", "{'a':['x',2]}",
		  ("{'operatorName':'properties','propertiesNotSatisfied':[{"
		   "'propertyName':'a','details':[{'operatorName':'items','reason':'At least "
		   "one item did not match the sub-schema','itemIndex':0,'details':[{"
		   "'operatorName':'bsonType','specifiedAs':{'bsonType':'int'},'reason':'type "
		   "did not match','consideredValue':'x','consideredType':'string'}]}]}]}") },
		{ "{'patternProperties':{'^a':{'minimum':5},'b$':{'minimum':6}}}",
		  "{'ab':1,'a':7,'b':7,'c':1}",
		  ("{'operatorName':'patternProperties','details':[{'propertyName':'ab',"
		   "'regexMatched':'^a','details':[{'operatorName':'minimum','specifiedAs':{"
		   "'minimum':5},'reason':'comparison failed','consideredValue':1}]},{"
		   "'propertyName':'ab','regexMatched':'b$','details':[{"
		   "'operatorName':'minimum','specifiedAs':{'minimum':6},'reason':'comparison "
		   "failed','consideredValue':1}]}]}") },
		{ "{'properties':{'a':{}},'patternProperties':{'^b':{}},'additionalProperties':"
		  "false}",
		  "{'a':1,'b':1,'c':1,'d':1}",
		  ("{'operatorName':'additionalProperties','specifiedAs':{"
		   "'additionalProperties':false},'additionalProperties':['c','d']}") },
		{ "{'properties':{'a':{}},'additionalProperties':{'minimum':5}}",
		  "{'a':1,'b':6,'c':1,'d':1}",
		  ("{'operatorName':'additionalProperties','reason':'at least one additional "
		   "property did not match the subschema','failingProperty':'c','details':[{"
		   "'operatorName':'minimum','specifiedAs':{'minimum':5},'reason':'comparison "
		   "failed','consideredValue':1}]}") },
		{ "{'dependencies':{'a':['b','c'],'b':{'required':['z']},'d':['e']}}",
		  "{'a':1,'b':1}",
		  ("{'operatorName':'dependencies','failingDependencies':[{"
		   "'conditionalProperty':'a','missingProperties':['c']},{"
		   "'conditionalProperty':'b','details':[{'operatorName':'required',"
		   "'specifiedAs':{'required':['z']},'missingProperties':['z']}]}]}") },
		{ "{'not':{'required':['a']}}", "{'a':1}",
		  ("{'operatorName':'not','reason':'child expression matched'}") },
		{ "{'allOf':[{'required':['a']},{'title':'T','required':['b']}]}", "{'a':1}",
		  ("{'operatorName':'allOf','schemasNotSatisfied':[{'index':1,'title':'T',"
		   "'details':[{'operatorName':'required','specifiedAs':{'required':['b']},"
		   "'missingProperties':['b']}]}]}") },
		{ "{'anyOf':[{'required':['a']},{'required':['b']}]}", "{}",
		  ("{'operatorName':'anyOf','schemasNotSatisfied':[{'index':0,'details':[{"
		   "'operatorName':'required','specifiedAs':{'required':['a']},"
		   "'missingProperties':['a']}]},{'index':1,'details':[{"
		   "'operatorName':'required','specifiedAs':{'required':['b']},"
		   "'missingProperties':['b']}]}]}") },
		{ "{'oneOf':[{'required':['a']},{'required':['b']}]}", "{}",
		  ("{'operatorName':'oneOf','schemasNotSatisfied':[{'index':0,'details':[{"
		   "'operatorName':'required','specifiedAs':{'required':['a']},"
		   "'missingProperties':['a']}]},{'index':1,'details':[{"
		   "'operatorName':'required','specifiedAs':{'required':['b']},"
		   "'missingProperties':['b']}]}]}") },
		{ "{'oneOf':[{'required':['c']},{'required':['a']},{'required':['b']}]}",
		  "{'a':1,'b':1}",
		  ("{'operatorName':'oneOf','reason':'more than one subschema matched',"
		   "'matchingSchemaIndexes':[1,2]}") },
	};

	for (size_t i = 0; i < CASES(cases); i++)
		check_explained(*state, &cases[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(types_and_scalars_are_checked, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(arrays_and_objects_are_checked, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(the_document_itself_is_an_object, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(mistakes_have_mongodbs_codes, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(what_a_value_lacks_is_explained, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(schemas_are_nested_so_far_only, case_setup,
						case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
