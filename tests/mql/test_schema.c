#include "mql/match/match.h"
#include "mql/schema/schema.h"

#include "mql_case.h"
#include "samples.h"

static enum status
find(struct mql *q, const char *schema, const char *document, bool *ret)
{
	struct str filter = case_bson(q->arena, schema), text = case_bson(q->arena, document);
	struct mql_match *m;
	enum status status = mql_match_compile(q, filter, &m);

	return status == STATUS_OK ? mql_match_run(m, q, text, ret, NULL) : status;
}

struct schema_run {
	struct str filter, document;
};

static enum status
find_again(struct mql *q, const void *arg, struct buf *said)
{
	const struct schema_run *run = arg;
	struct mql_match *m;
	bool matches;

	TRY(mql_match_compile(q, run->filter, &m));
	TRY(mql_match_run(m, q, run->document, &matches, NULL));
	buf_append_cstr(said, matches ? "it matches" : "it does not");
	return buf_status(said);
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
	const struct schema_run run = { case_bson(arena, filter.ptr),
					case_bson(arena, document.ptr) };
	struct mql q = case_mql(arena);
	bool matches = !expected;

	case_memory(find_again, &run, schema);
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
		{ "{'required':['a','b']}", { "{'a':1,'b':1}" }, { "{'b':1}", "{'a':1}" } },
		{ "{'patternProperties':{'^a':{'minimum':5},'b$':{'minimum':2}}}",
		  { "{'ab':5}" },
		  { "{'ab':3}" } },
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

/* Types as schemas name them, against a value of each type. */
static void
each_type_is_told_from_all_others(void **state)
{
	static const struct {
		const char *schema, *good; /* "type:1" for each type that fulfils it */
	} cases[] = {
		{ "{'bsonType':'number'}", "double:1 int:1 long:1 decimal:1" },
		{ "{'type':'number'}", "double:1 int:1 long:1 decimal:1" },
		{ "{'type':'array'}", "array:1" },
		{ "{'type':'boolean'}", "bool:1" },
		{ "{'type':'null'}", "null:1" },
		{ "{'type':'object'}", "object:1" },
		{ "{'type':'string'}", "string:1" },
		{ "{'type':['string','null']}", "string:1 null:1" },
		{ "{'bsonType':['minKey','maxKey','date']}", "minKey:1 maxKey:1 date:1" },
	};
	size_t count = CASES(cases);

	for (size_t i = 0; i < count + CASES(samples); i++) {
		const char *own = i < count ? NULL : samples[i - count].type;
		struct str schema = own ? arena_printf(*state, "{'bsonType':'%s'}", own)
					: str_from_cstr(cases[i].schema);
		struct str good = own ? arena_printf(*state, "%s:1", own)
				      : str_from_cstr(cases[i].good);

		for (size_t k = 0; k < CASES(samples); k++)
			check_value(*state, schema.ptr, samples[k].value,
				    code_of(good.ptr, samples[k].type, 0));
	}
}

/* A rule is about values of a type or two, and all others fulfil it. */
static void
rules_are_about_values_of_their_types(void **state)
{
	static const struct {
		const char *schema;
		const char *bad; /* "type:1" for each type whose sample does not fulfil it */
		int others;
	} cases[] = {
		{ "{'minimum':5}", "double:1 int:1 long:1 decimal:1", 0 },
		{ "{'maximum':0}", "double:1 int:1 long:1 decimal:1", 0 },
		{ "{'multipleOf':7}", "double:1 int:1 long:1 decimal:1", 0 },
		{ "{'minLength':2}", "string:1", 0 },
		{ "{'maxLength':0}", "string:1", 0 },
		{ "{'pattern':'^y'}", "string:1", 0 },
		{ "{'minItems':2}", "array:1", 0 },
		{ "{'maxItems':0}", "array:1", 0 },
		{ "{'uniqueItems':true}", "", 0 },
		{ "{'items':{'minimum':5}}", "array:1", 0 },
		{ "{'items':[],'additionalItems':false}", "array:1", 0 },
		{ "{'minProperties':2}", "object:1", 0 },
		{ "{'maxProperties':0}", "object:1", 0 },
		{ "{'required':['c']}", "object:1", 0 },
		{ "{'properties':{'b':{'minimum':5}}}", "object:1", 0 },
		{ "{'patternProperties':{'b':{'minimum':5}}}", "object:1", 0 },
		{ "{'additionalProperties':false}", "object:1", 0 },
		{ "{'additionalProperties':{'minimum':5}}", "object:1", 0 },
		{ "{'dependencies':{'b':['c']}}", "object:1", 0 },
		{ "{'dependencies':{'b':{'maxProperties':0}}}", "object:1", 0 },
		{ "{'enum':['zz']}", "", 1 },
		{ "{'not':{}}", "", 1 },
		{ "{'allOf':[{},{'not':{}}]}", "", 1 },
		{ "{'anyOf':[{'not':{}},{'not':{}}]}", "", 1 },
		{ "{'anyOf':[{'not':{}},{}]}", "", 0 },
		{ "{'oneOf':[{},{}]}", "", 1 },
		{ "{'oneOf':[{},{'not':{}}]}", "", 0 },
	};

	for (size_t i = 0; i < CASES(cases); i++)
		for (size_t k = 0; k < CASES(samples); k++)
			check_value(*state, cases[i].schema, samples[k].value,
				    !code_of(cases[i].bad, samples[k].type, cases[i].others));
}

static void
values_at_the_edges_of_rules(void **state)
{
	static const struct schema_case cases[] = {
		{ "{'minimum':{'$numberDouble':'NaN'}}",
		  { "{'$numberDouble':'NaN'}", "{'$numberDecimal':'NaN'}", "'a'" },
		  { "1", "{'$numberDouble':'Infinity'}", "{'$numberDouble':'-Infinity'}" } },
		{ "{'maximum':{'$numberDecimal':'NaN'}}", { "{'$numberDouble':'NaN'}" }, { "1" } },
		{ "{'minimum':{'$numberDouble':'NaN'},'exclusiveMinimum':true}",
		  { "'a'" },
		  { "{'$numberDouble':'NaN'}", "1" } },
		{ "{'maximum':5}",
		  { "5", "4", "{'$numberDecimal':'5.0'}" },
		  { "6", "{'$numberDouble':'NaN'}" } },
		{ "{'minimum':5,'exclusiveMinimum':false}", { "5" }, { "4" } },
		{ "{'exclusiveMaximum':true,'maximum':5}", { "4.9" }, { "5", "6" } },
		{ "{'minimum':1,'maximum':3}", { "1", "2", "3" }, { "0", "4" } },
		{ "{'multipleOf':{'$numberDecimal':'0.5'}}",
		  { "1", "1.5", "-0.5", "{'$numberDecimal':'2.50'}" },
		  { "{'$numberDouble':'NaN'}", "{'$numberDouble':'Infinity'}", "0.25" } },
		{ "{'minLength':0}", { "''", "'a'" }, { 0 } },
		{ "{'maxLength':0}", { "''" }, { "'a'" } },
		{ "{'minLength':2}",
		  { "'ab'", "'\xf0\x9f\x98\x80\xf0\x9f\x98\x80'" },
		  { "''", "'\xf0\x9f\x98\x80'", "'\xc3\xa4'" } },
		{ "{'minItems':0}", { "[]" }, { 0 } },
		{ "{'maxItems':2}", { "[1,2]", "[]" }, { "[1,2,3]" } },
		{ "{'minItems':2}", { "[1,2]", "[1,2,3]" }, { "[1]", "[]" } },
		{ "{'minProperties':2}", { "{'a':1,'b':1}" }, { "{'a':1}", "{}" } },
		{ "{'maxProperties':1}", { "{'a':1}", "{}" }, { "{'a':1,'b':1}" } },
		{ "{'minProperties':0,'maxProperties':0}", { "{}" }, { "{'a':1}" } },
		{ "{'uniqueItems':true}",
		  { "[1,'1',[1],{'a':1}]" },
		  { "[1,2,1]", "[{'a':1},0,{'a':1.0}]" } },
		{ "{'items':[{'minimum':1},{'minimum':2}]}",
		  { "[1,2]", "[1]", "[]", "[1,2,0]" },
		  { "[0]", "[1,1]" } },
		{ "{'items':[{}],'additionalItems':true}", { "[1,2]" }, { 0 } },
		{ "{'additionalItems':false}", { "[1,2]" }, { 0 } },
		{ "{'additionalItems':false,'items':[{}]}", { "[1]" }, { "[1,2]" } },
		{ "{'items':{'minimum':2},'additionalItems':{'minimum':9}}",
		  { "[2,3]" },
		  { "[1]", "[2,1]" } },
		{ "{'additionalProperties':true}", { "{'a':1}" }, { 0 } },
		{ "{'additionalProperties':false,'properties':{'a':{}}}",
		  { "{'a':1}", "{}" },
		  { "{'b':1}", "{'a':1,'b':1}" } },
		{ "{'patternProperties':{'^a':{'minimum':1},'b$':{'minimum':2}}}",
		  { "{'ab':2}", "{'a':1}", "{'b':2}", "{'c':0}" },
		  { "{'ab':1}", "{'a':0}", "{'b':1}" } },
		{ "{'properties':{'ab':{'maximum':5}},'patternProperties':{'^a':{'minimum':1}},"
		  "'additionalProperties':{'bsonType':'string'}}",
		  { "{'ab':3}", "{'a':9}", "{'c':'x'}" },
		  { "{'ab':6}", "{'ab':0}", "{'c':1}" } },
		{ "{'properties':{'a':{'minimum':1},'b':{'minimum':2},'c':{'minimum':3},"
		  "'d':{'minimum':4},'e':{'minimum':5}}}",
		  { "{'a':1,'b':2,'c':3,'d':4,'e':5}", "{'f':0,'':0}" },
		  { "{'a':0}", "{'b':1}", "{'c':2}", "{'d':3}", "{'e':4}" } },
		{ "{'dependencies':{'a':['b'],'c':{'required':['d']}}}",
		  { "{}", "{'a':1,'b':1}", "{'c':1,'d':1}", "{'b':1}" },
		  { "{'a':1}", "{'c':1}", "{'a':1,'b':1,'c':1}", "{'a':1,'c':1,'d':1}" } },
		{ "{'oneOf':[{'minimum':1},{'minimum':2},{'minimum':3}]}",
		  { "1" },
		  { "0", "2", "3" } },
		{ "{'not':{'minimum':2}}", { "1" }, { "2", "'a'" } },
		{ "{'enum':[{'$numberDouble':'NaN'},[1],{'a':1}]}",
		  { "{'$numberDecimal':'NaN'}", "[1.0]", "{'a':1}" },
		  { "1", "[]", "{'a':1,'b':1}" } },
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
check_refused(struct arena *arena, const char *schema, int code, const char *text)
{
	struct str filter = arena_printf(arena, "{'$jsonSchema':%s}", schema);
	const struct schema_run run = { case_bson(arena, filter.ptr), BSON_EMPTY };
	struct mql q = case_mql(arena);
	enum status status;
	bool matches;

	case_memory(find_again, &run, schema);
	case_err = (struct err){ 0 };
	status = find(&q, filter.ptr, "{}", &matches);
	if (status != (code ? STATUS_INVALID : STATUS_OK) || q.code != code)
		fail_msg("%s: %s %d, not %d: %s", schema, status_name(status), q.code, code,
			 case_err.text);
	if (strncmp(case_err.text, text, strlen(text)) != 0)
		fail_msg("%s: %s", schema, case_err.text);
}

/* Each keyword with a value of each type. */
static void
keywords_take_values_of_their_types(void **state)
{
	static const struct {
		const char *schema; /* with the value's place */
		int other;
		const char *codes;
	} cases[] = {
		{ "{'bsonType':%s}", 14, "string:2" },
		{ "{'type':%s}", 14, "string:2" },
		{ "{'enum':%s}", 14, "array:0" },
		{ "{'minimum':%s}", 14, "double:0 int:0 long:0 decimal:0" },
		{ "{'maximum':%s}", 14, "double:0 int:0 long:0 decimal:0" },
		{ "{'minimum':1,'exclusiveMinimum':%s}", 14, "bool:0" },
		{ "{'exclusiveMaximum':%s,'maximum':1}", 14, "bool:0" },
		{ "{'exclusiveMinimum':%s}", 14, "bool:9" },
		{ "{'exclusiveMaximum':%s}", 14, "bool:9" },
		{ "{'minimum':1,'exclusiveMaximum':%s}", 14, "bool:9" },
		{ "{'multipleOf':%s}", 14, "double:0 int:0 long:0 decimal:0" },
		{ "{'minLength':%s}", 9, "int:0 long:0 decimal:0" },
		{ "{'maxLength':%s}", 9, "int:0 long:0 decimal:0" },
		{ "{'minItems':%s}", 9, "int:0 long:0 decimal:0" },
		{ "{'maxItems':%s}", 9, "int:0 long:0 decimal:0" },
		{ "{'minProperties':%s}", 9, "int:0 long:0 decimal:0" },
		{ "{'maxProperties':%s}", 9, "int:0 long:0 decimal:0" },
		{ "{'pattern':%s}", 14, "string:0" },
		{ "{'uniqueItems':%s}", 14, "bool:0" },
		{ "{'items':%s}", 14, "object:9" },
		{ "{'additionalItems':%s}", 14, "bool:0 object:9" },
		{ "{'items':[{}],'additionalItems':%s}", 14, "bool:0 object:9" },
		{ "{'items':{},'additionalItems':%s}", 14, "bool:0 object:9" },
		{ "{'required':%s}", 14, "" },
		{ "{'required':['a',%s]}", 14, "string:0" },
		{ "{'properties':%s}", 14, "" },
		{ "{'properties':{'a':%s}}", 14, "object:9" },
		{ "{'patternProperties':%s}", 14, "" },
		{ "{'patternProperties':{'a':%s}}", 14, "object:9" },
		{ "{'additionalProperties':%s}", 14, "bool:0 object:9" },
		{ "{'dependencies':%s}", 14, "" },
		{ "{'dependencies':{'a':%s}}", 14, "object:9" },
		{ "{'dependencies':{'a':['b',%s]}}", 14, "string:0" },
		{ "{'allOf':%s}", 14, "" },
		{ "{'anyOf':[{},%s]}", 14, "object:9" },
		{ "{'oneOf':%s}", 14, "" },
		{ "{'not':%s}", 14, "object:9" },
		{ "{'title':%s}", 14, "string:0" },
		{ "{'description':%s}", 14, "string:0" },
		{ "{'$ref':%s}", 9, "" },
		{ "{'$schema':%s}", 9, "" },
		{ "{'default':%s}", 9, "" },
		{ "{'definitions':%s}", 9, "" },
		{ "{'format':%s}", 9, "" },
		{ "{'id':%s}", 9, "" },
		{ "%s", 14, "object:9" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		const char *place = strstr(cases[i].schema, "%s");

		for (size_t k = 0; k < CASES(samples); k++) {
			struct str schema = arena_printf(
				*state, "%.*s%s%s", (int)(place - cases[i].schema), cases[i].schema,
				samples[k].value, place + 2);

			check_refused(*state, schema.ptr,
				      code_of(cases[i].codes, samples[k].type, cases[i].other), "");
		}
	}
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
		{ "{'description':1}", 14, "$jsonSchema keyword 'description' must be a string" },
		{ "{'multipleOf':-1}", 9, "$jsonSchema keyword 'multipleOf' must have a positive" },
		{ "{'multipleOf':{'$numberDouble':'Infinity'}}", 9,
		  "$jsonSchema keyword 'multipleOf' must have a positive value" },
		{ "{'multipleOf':{'$numberDouble':'NaN'}}", 9,
		  "$jsonSchema keyword 'multipleOf' must have a positive value" },
		{ "{'enum':{}}", 14, "$jsonSchema keyword 'enum' must be an array" },
		{ "{'exclusiveMaximum':true}", 9,
		  "$jsonSchema keyword 'maximum' must be a present if exclusiveMaximum is "
		  "present" },
		{ "{'exclusiveMinimum':false}", 9,
		  "$jsonSchema keyword 'minimum' must be a present if exclusiveMinimum is "
		  "present" },
		{ "{'bsonType':'string','type':'string'}", 9, "Cannot specify both" },
		{ "{'type':['string','string']}", 9,
		  "$jsonSchema keyword 'type' has duplicate value: string" },
		{ "{'type':['integer']}", 9, "$jsonSchema type 'integer' is not currently" },
		{ "{'bsonType':'integer'}", 9, "$jsonSchema type 'integer' is not currently" },
		{ "{'bsonType':'boolean'}", 2, "Unknown type name alias: boolean" },
		{ "{'type':'bool'}", 2, "Unknown type name alias: bool" },
		{ "{'additionalItems':1}", 14,
		  "$jsonSchema keyword 'additionalItems' must be either an object or a boolean, "
		  "but got a int" },
		{ "{'additionalProperties':{'x':1}}", 9, "Unknown $jsonSchema keyword: x" },
		{ "{'dependencies':{'a':1}}", 14,
		  "$jsonSchema keyword 'dependencies' property 'a' must be either an object or an "
		  "array" },
		{ "{'items':[{},{'x':1}]}", 9, "Unknown $jsonSchema keyword: x" },
		{ "{'oneOf':{}}", 14, "$jsonSchema keyword 'oneOf' must be an array" },
		{ "{'properties':{'a':{'patternProperties':{'b':{'x':1}}}}}", 9,
		  "Unknown $jsonSchema keyword: x" },
		{ "{'properties':{},'patternProperties':{'a':1}}", 14,
		  "$jsonSchema keyword 'patternProperties' has property 'a' which is not an "
		  "object" },
		{ "{'minItems':1.5}", 9, "Expected an integer: minItems: 1.5" },
		{ "{'minLength':{'$numberDouble':'NaN'}}", 9,
		  "Expected an integer: minLength: nan" },
	};

	for (size_t i = 0; i < CASES(cases); i++)
		check_refused(*state, cases[i].schema, cases[i].code, cases[i].text);
}

static void
schemas_are_nested_so_far_only(void **state)
{
	for (int more = 0; more <= 1; more++) {
		struct buf text = BUF_INIT(1 << 16);
		struct mql q = case_mql(*state);
		struct mql_schema *s;
		struct bson_value v;

		for (int i = 0; i < MQL_DEPTH + more; i++)
			buf_append_cstr(&text, "{'additionalItems':");
		buf_append_cstr(&text, "{}");
		for (int i = 0; i < MQL_DEPTH + more; i++)
			buf_append_cstr(&text, "}");
		buf_append_byte(&text, 0);
		v = BSON_OF_DOCUMENT(case_bson(*state, text.ptr));
		assert_int_equal(mql_schema_compile(&q, &v, 0, &s),
				 more ? STATUS_INVALID : STATUS_OK);
		assert_int_equal(q.code, more ? MQL_OVERFLOW : 0);
		buf_release(&text);
	}
}

/* Each level is compiled once: twice would be more than there is time for at so many. */
static void
items_inside_items_are_compiled_once(void **state)
{
	enum {
		LEVELS = 60,
	};
	struct buf text = BUF_INIT(1 << 16);
	struct mql q = case_mql(*state);
	struct mql_schema *s;
	struct bson_value v;

	for (int i = 0; i < LEVELS; i++)
		buf_append_cstr(&text, "{'items':[{}],'additionalItems':");
	buf_append_cstr(&text, "{}");
	for (int i = 0; i < LEVELS; i++)
		buf_append_cstr(&text, "}");
	buf_append_byte(&text, 0);
	v = BSON_OF_DOCUMENT(case_bson(*state, text.ptr));
	assert_int_equal(mql_schema_compile(&q, &v, 0, &s), STATUS_OK);
	buf_release(&text);
}

/* ---- Explaining ---- */

struct explained {
	const char *schema, *document;
	const char *why; /* the rules that are not satisfied */
};

static enum status
explain_again(struct mql *q, const void *arg, struct buf *said)
{
	const struct schema_run *run = arg;
	const struct bson_value schema = BSON_OF_DOCUMENT(run->filter);
	const struct bson_value document = BSON_OF_DOCUMENT(run->document);
	struct bson_builder b;
	struct mql_schema *s;

	TRY(mql_schema_compile(q, &schema, 0, &s));
	bson_builder_init(&b, said);
	bson_begin(&b);
	TRY(mql_schema_explain(s, q, &document, &b));
	bson_end(&b);
	return buf_status(said);
}

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

	case_memory(explain_again, &(struct schema_run){ bson_text(&schema), bson_text(&document) },
		    c->schema);
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
		/* A name that only the first pattern matches is no other. */
		{ "{'patternProperties':{'^a':{},'^b':{}},'additionalProperties':false}",
		  "{'a1':1,'b1':1,'c1':1}",
		  ("{'operatorName':'additionalProperties','specifiedAs':{"
		   "'additionalProperties':false},'additionalProperties':['c1']}") },
		{ "{'patternProperties':{'^a':{},'^b':{}},'additionalProperties':{'minimum':2}}",
		  "{'a1':1,'b1':1,'c1':2,'d1':1}",
		  ("{'operatorName':'additionalProperties','reason':'at least one additional "
		   "property did not match the subschema','failingProperty':'d1','details':[{"
		   "'operatorName':'minimum','specifiedAs':{'minimum':2},'reason':'comparison "
		   "failed','consideredValue':1}]}") },
		{ "{'properties':{'a':{'minimum':2}},'patternProperties':{'^a':{'minimum':3},"
		  "'^b':{'minimum':3}},'additionalProperties':false}",
		  "{'a':1,'b':3,'c':1}",
		  ("{'operatorName':'properties','propertiesNotSatisfied':[{'propertyName':'a',"
		   "'details':[{'operatorName':'minimum','specifiedAs':{'minimum':2},"
		   "'reason':'comparison failed','consideredValue':1}]}]},"
		   "{'operatorName':'patternProperties','details':[{'propertyName':'a',"
		   "'regexMatched':'^a','details':[{'operatorName':'minimum','specifiedAs':{"
		   "'minimum':3},'reason':'comparison failed','consideredValue':1}]}]},"
		   "{'operatorName':'additionalProperties','specifiedAs':{"
		   "'additionalProperties':false},'additionalProperties':['c']}") },
		{ "{'properties':{'a':{'minimum':2},'b':{'items':{'minimum':2}}}}",
		  "{'a':2,'b':[2,3,1]}",
		  ("{'operatorName':'properties','propertiesNotSatisfied':[{'propertyName':'b',"
		   "'details':[{'operatorName':'items','reason':'At least one item did not "
		   "match the sub-schema','itemIndex':2,'details':[{'operatorName':'minimum',"
		   "'specifiedAs':{'minimum':2},'reason':'comparison failed',"
		   "'consideredValue':1}]}]}]}") },
		{ "{'properties':{'a':{'items':[{},{'minimum':2}]}}}", "{'a':[1,1,0]}",
		  ("{'operatorName':'properties','propertiesNotSatisfied':[{'propertyName':'a',"
		   "'details':[{'operatorName':'items','reason':'At least one item did not "
		   "match the sub-schema','itemIndex':1,'details':[{'operatorName':'minimum',"
		   "'specifiedAs':{'minimum':2},'reason':'comparison failed',"
		   "'consideredValue':1}]}]}]}") },
		{ "{'properties':{'a':{'maxItems':1,'minLength':3,'not':{'bsonType':'array'}}}}",
		  "{'a':[1,2]}",
		  ("{'operatorName':'properties','propertiesNotSatisfied':[{'propertyName':'a',"
		   "'details':[{'operatorName':'maxItems','specifiedAs':{'maxItems':1},"
		   "'reason':'array did not match specified length','consideredValue':[1,2]},"
		   "{'operatorName':'not','reason':'child expression matched'}]}]}") },
		{ "{'properties':{'a':{'minLength':3}},'minProperties':3}", "{'a':'x','b':1}",
		  ("{'operatorName':'properties','propertiesNotSatisfied':[{'propertyName':'a',"
		   "'details':[{'operatorName':'minLength','specifiedAs':{'minLength':3},"
		   "'reason':'specified string length was not satisfied',"
		   "'consideredValue':'x'}]}]},{'operatorName':'minProperties','specifiedAs':{"
		   "'minProperties':3},'reason':'specified number of properties was not "
		   "satisfied','numberOfProperties':2}") },
		{ "{'anyOf':[{'title':'T','description':'D','required':['a']},"
		  "{'minProperties':2}]}",
		  "{'b':1}",
		  ("{'operatorName':'anyOf','schemasNotSatisfied':[{'index':0,'title':'T',"
		   "'description':'D','details':[{'operatorName':'required','specifiedAs':{"
		   "'required':['a']},'missingProperties':['a']}]},{'index':1,'details':[{"
		   "'operatorName':'minProperties','specifiedAs':{'minProperties':2},"
		   "'reason':'specified number of properties was not satisfied',"
		   "'numberOfProperties':1}]}]}") },
		{ "{'dependencies':{'a':['b'],'c':['d'],'e':{'required':['f']}}}",
		  "{'a':1,'b':1,'c':1,'e':1,'f':1}",
		  ("{'operatorName':'dependencies','failingDependencies':[{"
		   "'conditionalProperty':'c','missingProperties':['d']}]}") },
		{ "{'required':['a'],'properties':{'b':{'bsonType':'int'}},'maxProperties':5}",
		  "{'b':1}",
		  ("{'operatorName':'required','specifiedAs':{'required':['a']},"
		   "'missingProperties':['a']}") },
	};

	for (size_t i = 0; i < CASES(cases); i++)
		check_explained(*state, &cases[i]);
}

/* A duplicate is looked for among the first thousand items of an array. */
static void
duplicates_are_looked_for_so_far_only(void **state)
{
	static const struct {
		int left, right; /* which items are equal */
		bool told;
	} cases[] = {
		{ 0, 999, true },     { 998, 999, true },    { 0, 1000, false },
		{ 999, 1000, false }, { 1000, 1001, false },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		const struct bson_value schema = BSON_OF_DOCUMENT(
			case_bson(*state, "{'properties':{'a':{'uniqueItems':true}}}"));
		struct buf text = BUF_INIT(CASE_BYTES), out = BUF_INIT(CASE_BYTES);
		struct mql q = case_mql(*state);
		struct bson_value document;
		struct bson_builder b;
		struct mql_schema *s;

		buf_append_cstr(&text, "{'a':[");
		for (int k = 0; k < 1002; k++)
			buf_printf(&text, "%s%d", k ? "," : "",
				   k == cases[i].right ? cases[i].left : k);
		buf_append(&text, "]}", 3);
		document = BSON_OF_DOCUMENT(case_bson(*state, text.ptr));
		assert_int_equal(mql_schema_compile(&q, &schema, 0, &s), STATUS_OK);
		bson_builder_init(&b, &out);
		bson_begin(&b);
		assert_int_equal(mql_schema_explain(s, &q, &document, &b), STATUS_OK);
		bson_end(&b);
		assert_int_equal(strstr(case_json(*state, buf_str(&out)), "duplicatedValue") !=
					 NULL,
				 cases[i].told);
		buf_release(&out);
		buf_release(&text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(types_and_scalars_are_checked, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(arrays_and_objects_are_checked, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(each_type_is_told_from_all_others, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(rules_are_about_values_of_their_types, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(values_at_the_edges_of_rules, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(keywords_take_values_of_their_types, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(items_inside_items_are_compiled_once, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(duplicates_are_looked_for_so_far_only, case_setup,
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
