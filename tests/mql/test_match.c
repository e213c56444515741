#include "mql/match/match.h"

#include "mql_case.h"

/* What all random bytes are; -1: random. */
static int drawn = -1;

void __real_rand_bytes(void *ret, size_t n);
void __wrap_rand_bytes(void *ret, size_t n);

void
__wrap_rand_bytes(void *ret, size_t n)
{
	if (drawn < 0)
		__real_rand_bytes(ret, n);
	else
		memset(ret, drawn, n);
}

struct match_case {
	const char *filter;
	const char *document;
	bool matches;
};

static bool
match(struct arena *arena, const char *filter, const char *document, int64_t *position)
{
	struct mql q = case_mql(arena);
	struct mql_match *m;
	bool matches = false;

	if (mql_match_compile(&q, case_bson(arena, filter), &m) != STATUS_OK)
		fail_msg("%s: %s", filter, case_err.text);
	if (mql_match_run(m, &q, case_bson(arena, document), &matches, position) != STATUS_OK)
		fail_msg("%s on %s: %s", filter, document, case_err.text);
	return matches;
}

struct match_run {
	struct str filter;
	struct str document;
};

static enum status
match_again(struct mql *q, const void *arg, struct buf *said)
{
	const struct match_run *run = arg;
	struct mql_match *m;
	int64_t position;
	bool matches;

	TRY(mql_match_compile(q, run->filter, &m));
	TRY(mql_match_run(m, q, run->document, &matches, &position));
	buf_printf(said, "%d", matches);
	return buf_status(said);
}

static void
check_matches(struct arena *arena, const struct match_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct match_case *c = &cases[i];

		const struct match_run run = { case_bson(arena, c->filter),
					       case_bson(arena, c->document) };

		if (match(arena, c->filter, c->document, NULL) != c->matches)
			fail_msg("%s on %s is not %d", c->filter, c->document, c->matches);
		case_memory(match_again, &run, c->filter);
	}
}

static void
values_are_compared_within_their_kind(void **state)
{
	static const struct match_case cases[] = {
		{ "{}", "{'a':1}", true },
		{ "{'a':1}", "{'a':{'$numberLong':'1'}}", true },
		{ "{'a':1}", "{'a':{'$numberDecimal':'1.00'}}", true },
		{ "{'a':1}", "{'a':'1'}", false },
		{ "{'a':{'$gt':1}}", "{'a':'b'}", false },
		{ "{'a':{'$gt':1}}", "{'a':1.5}", true },
		{ "{'a':{'$lt':'b'}}", "{'a':'a'}", true },
		{ "{'a':{'$gte':2,'$lt':3}}", "{'a':2}", true },
		{ "{'a':{'$gte':2,'$lt':3}}", "{'a':3}", false },
		{ "{'a':{'$lte':2}}", "{'a':2.0}", true },
		{ "{'a':{'$lte':2}}", "{'a':2.5}", false },
		{ "{'a':{'$lt':5}}", "{'a':{'$numberDouble':'NaN'}}", false },
		{ "{'a':{'$gte':{'$numberDouble':'NaN'}}}", "{'a':5}", false },
		{ "{'a':{'$lte':{'$numberDouble':'NaN'}}}", "{'a':5}", false },
		{ "{'a':{'$lte':{'$numberDecimal':'NaN'}}}", "{'a':{'$numberDouble':'NaN'}}",
		  true },
		{ "{'a':{'$lt':{'$numberDecimal':'NaN'}}}", "{'a':5}", false },
		{ "{'a':{'$gt':{'$numberDecimal':'NaN'}}}", "{'a':5}", false },
		/* Behind the last byte comes a member, whose type would be a bit. */
		{ "{'a':{'$bitsAnySet':[12]}}",
		  "{'a':{'$binary':{'base64':'/w==','subType':'00'}},'b':1}", false },
		{ "{'a':{'$bitsAllSet':[0,7]}}",
		  "{'a':{'$binary':{'base64':'/w==','subType':'00'}},'b':1}", true },
		{ "{'a':{'$gte':{'$numberDouble':'NaN'}}}", "{'a':{'$numberDouble':'NaN'}}", true },
		{ "{'a':{'$gt':{'$numberDouble':'NaN'}}}", "{'a':{'$numberDouble':'NaN'}}", false },
		{ "{'a':{'$lt':{'$numberDouble':'NaN'}}}", "{'a':{'$numberDouble':'NaN'}}", false },
		{ "{'a':{'$gte':{'$minKey':1}}}", "{'a':'x'}", true },
		{ "{'a':{'$lt':{'$maxKey':1}}}", "{'a':[]}", true },
		{ "{'a':{'b':1}}", "{'a':{'b':1}}", true },
		{ "{'a':{'b':1}}", "{'a':{'b':1,'c':2}}", false },
		{ "{'a':{'$ne':1}}", "{'a':2}", true },
		{ "{'a':{'$ne':1}}", "{}", true },
		{ "{'a':{'$ne':1}}", "{'a':[1,2]}", false },
		{ "{'a':{'$gt':[1]}}", "{'a':[2]}", true },
	};

	check_matches(*state, cases, CASES(cases));
}

static void
null_also_is_what_is_missing(void **state)
{
	static const struct match_case cases[] = {
		{ "{'a':null}", "{}", true },
		{ "{'a':null}", "{'a':null}", true },
		{ "{'a':null}", "{'a':[1,null]}", true },
		{ "{'a':null}", "{'a':[]}", false },
		{ "{'a':null}", "{'a':{'$undefined':true}}", false },
		{ "{'a':{'$ne':null}}", "{}", false },
		{ "{'a':{'$gte':null}}", "{}", true },
		{ "{'a':{'$gt':null}}", "{}", false },
		{ "{'a':{'$in':[null]}}", "{}", true },
		{ "{'a':{'$nin':[null,1]}}", "{'a':2}", true },
		{ "{'a.b':null}", "{'a':1}", true },
		{ "{'a.b':null}", "{'a':[]}", false },
		{ "{'a.b':null}", "{'a':[1]}", false },
		{ "{'a.b':null}", "{'a':[{}]}", true },
		{ "{'a':{'$exists':false}}", "{}", true },
		{ "{'a':{'$exists':true}}", "{'a':null}", true },
		{ "{'a.b':{'$exists':true}}", "{'a':[1,{'b':1}]}", true },
		{ "{'a.b':{'$exists':false}}", "{'a':[1]}", true },
	};

	check_matches(*state, cases, CASES(cases));
}

static void
paths_go_through_arrays(void **state)
{
	static const struct match_case cases[] = {
		{ "{'a':1}", "{'a':[2,1]}", true },
		{ "{'a':[2,1]}", "{'a':[2,1]}", true },
		{ "{'a':[2,1]}", "{'a':[[2,1]]}", true },
		{ "{'a.b':1}", "{'a':[{'b':2},{'b':[1]}]}", true },
		{ "{'a.b':1}", "{'a':[[{'b':1}]]}", false },
		{ "{'a.0':5}", "{'a':[5,6]}", true },
		{ "{'a.0':6}", "{'a':[5,6]}", false },
		{ "{'a.1.b':6}", "{'a':[5,{'b':6}]}", true },
		{ "{'a.0.b':1}", "{'a':[[{'b':1}]]}", true },
		{ "{'a.0.1':7}", "{'a':[[6,7]]}", true },
		{ "{'a.0':1}", "{'a':[{'0':1}]}", true },
		{ "{'a.00':1}", "{'a':[1]}", false },
		{ "{'a.':1}", "{'a':[1]}", false },
		{ "{'a.':1}", "{'a':{'':1}}", true },
		{ "{'a':{'$gt':1,'$lt':3}}", "{'a':[0,5]}", true },
		{ "{'a':{'$elemMatch':{'$gt':1,'$lt':3}}}", "{'a':[0,5]}", false },
		{ "{'a':{'$elemMatch':{'$gt':1,'$lt':3}}}", "{'a':[0,2]}", true },
		{ "{'a':{'$elemMatch':{'b':1,'c':2}}}", "{'a':[{'b':1},{'c':2}]}", false },
		{ "{'a':{'$elemMatch':{'b':1,'c':2}}}", "{'a':[{'b':1,'c':2}]}", true },
		{ "{'a':{'$elemMatch':{'b':1}}}", "{'a':{'b':1}}", false },
		{ "{'a':{'$elemMatch':{'$gt':1}}}", "{'a':[[2]]}", false },
		{ "{'a':{'$elemMatch':{'0':2}}}", "{'a':[[2]]}", true },
		{ "{'a':{'$elemMatch':{'$ref':'c','$id':1}}}", "{'a':[{'$ref':'c','$id':2}]}",
		  false },
		{ "{'a':{'$elemMatch':{'$ref':'c','$id':1}}}",
		  "{'a':[{'$ref':'d','$id':1},{'$ref':'c','$id':1}]}", true },
		{ "{'a':{'$elemMatch':{'$or':[{'$id':1},{'b':2}]}}}", "{'a':[{'$id':1}]}", true },
		{ "{'a':{'$size':2}}", "{'a':[1,2]}", true },
		{ "{'a':{'$size':2}}", "{'a':[[1,2]]}", false },
		{ "{'a':{'$all':[1,2]}}", "{'a':[2,3,1]}", true },
		{ "{'a':{'$all':[1,2]}}", "{'a':[2,3]}", false },
		{ "{'a':{'$all':[]}}", "{'a':[]}", false },
		{ "{'a':{'$all':[1]}}", "{'a':1}", true },
		{ "{'a':{'$all':[{'$elemMatch':{'$gt':3}},{'$elemMatch':{'$lt':2}}]}}",
		  "{'a':[1,4]}", true },
		{ "{'a':{'$all':[[1,2]]}}", "{'a':[1,2]}", true },
	};

	check_matches(*state, cases, CASES(cases));
}

static void
operators_mean_what_they_do_in_mongodb(void **state)
{
	static const struct match_case cases[] = {
		{ "{'a':{'$in':[1,'x',{'$regularExpression':{'pattern':'^b','options':''}}]}}",
		  "{'a':'bc'}", true },
		{ "{'a':{'$in':[3,1,2]}}", "{'a':2.0}", true },
		{ "{'a':{'$in':[3,1,2]}}", "{'a':[9,3]}", true },
		{ "{'a':{'$in':[]}}", "{'a':1}", false },
		{ "{'a':{'$type':'number'}}", "{'a':1.5}", true },
		{ "{'a':{'$type':'array'}}", "{'a':[]}", true },
		{ "{'a':{'$type':['int','string']}}", "{'a':[true,'x']}", true },
		{ "{'a':{'$type':-1}}", "{'a':{'$minKey':1}}", true },
		{ "{'a':{'$type':'null'}}", "{}", false },
		{ "{'a':{'$type':127}}", "{'a':{'$maxKey':1}}", true },
		{ "{'a':{'$type':127}}", "{'a':{'$minKey':1}}", false },
		{ "{'a':{'$type':1}}", "{'a':1.5}", true },
		{ "{'a':{'$type':1}}", "{'a':1}", false },
		{ "{'a':{'$type':19}}", "{'a':{'$numberDecimal':'1'}}", true },
		{ "{'a':{'$type':'minKey'}}", "{'a':{'$minKey':1}}", true },
		{ "{'a':{'$type':'minKey'}}", "{'a':{'$maxKey':1}}", false },
		{ "{'a':{'$size':0}}", "{'a':[]}", true },
		{ "{'a':{'$size':1}}", "{'a':[]}", false },
		{ "{'a':{'$size':1}}", "{'a':1}", false },
		{ "{'a':{'$mod':[4.9,{'$numberDecimal':'1.9'}]}}", "{'a':5}", true },
		{ "{'a':{'$mod':[4,1]}}", "{'a':5}", true },
		{ "{'a':{'$mod':[4,-1]}}", "{'a':-5.7}", true },
		{ "{'a':{'$mod':[-1,0]}}", "{'a':{'$numberLong':'-9223372036854775808'}}", true },
		{ "{'a':{'$mod':[4.9,1]}}", "{'a':'5'}", false },
		/* 2^63 is the least number that is too large for an integer. */
		{ "{'a':{'$mod':[2,0]}}", "{'a':-9223372036854775808.0}", true },
		{ "{'a':{'$mod':[2,0]}}", "{'a':9223372036854774784.0}", true },
		{ "{'a':{'$mod':[2,0]}}", "{'a':9223372036854775808.0}", false },
		{ "{'a':{'$mod':[2,0]}}", "{'a':-9223372036854777856.0}", false },
		{ "{'a':{'$mod':[2,0]}}", "{'a':{'$numberDouble':'NaN'}}", false },
		{ "{'a':{'$regex':'^a.c$'}}", "{'a':['xx','abc']}", true },
		{ "{'a':{'$regex':'ABC','$options':'i'}}", "{'a':'xabcx'}", true },
		{ "{'a':{'$options':'i','$regex':'ABC'}}", "{'a':'abc'}", true },
		{ "{'a':{'$regex':'^.$'}}", "{'a':'ä'}", true },
		{ "{'a':{'$regex':'1'}}", "{'a':1}", false },
		{ "{'a':{'$not':{'$regex':'^a'}}}", "{'a':'ab'}", false },
		{ "{'a':{'$not':{'$gt':3}}}", "{'a':'x'}", true },
		{ "{'a':{'$not':{'$gt':3}}}", "{'a':[1,4]}", false },
		{ "{'$and':[{'a':1},{'b':2}]}", "{'a':1,'b':2}", true },
		{ "{'$or':[{'a':1},{'b':3}]}", "{'a':2,'b':3}", true },
		{ "{'$nor':[{'a':1},{'b':3}]}", "{'a':2,'b':4}", true },
		{ "{'$nor':[{'a':1},{'b':3}]}", "{'a':1}", false },
		{ "{'$comment':'x','a':1}", "{'a':1}", true },
		{ "{'$alwaysFalse':1}", "{}", false },
		{ "{'a':{'$bitsAllSet':6}}", "{'a':7}", true },
		{ "{'a':{'$bitsAllSet':[]}}", "{'a':7}", true },
		{ "{'a':{'$bitsAnySet':[]}}", "{'a':7}", false },
		{ "{'a':{'$bitsAllSet':[1,5]}}", "{'a':54}", true },
		{ "{'a':{'$bitsAllSet':[1,5]}}", "{'a':20}", false },
		{ "{'a':{'$bitsAnySet':[0,100]}}", "{'a':-2}", true },
		{ "{'a':{'$bitsAnyClear':3}}", "{'a':1}", true },
		{ "{'a':{'$bitsAllClear':3}}", "{'a':4.0}", true },
		{ "{'a':{'$bitsAllClear':3}}", "{'a':4.5}", false },
		{ "{'a':{'$bitsAllSet':[8]}}", "{'a':{'$binary':{'base64':'AAE=','subType':'00'}}}",
		  true },
		{ "{'a':{'$bitsAllSet':{'$binary':{'base64':'AAE=','subType':'00'}}}}", "{'a':255}",
		  false },
		{ "{'a':{'$bitsAnySet':{'$binary':{'base64':'BQE=','subType':'00'}}}}", "{'a':4}",
		  true },
		{ "{'a':{'$bitsAnySet':{'$binary':{'base64':'BQE=','subType':'00'}}}}",
		  "{'a':-262}", false },
		{ "{'a':{'$bitsAllClear':{'$binary':{'base64':'BQE=','subType':'00'}}}}",
		  "{'a':-262}", true },
		{ "{'a':{'$bitsAnyClear':{'$binary':{'base64':'BQE=','subType':'00'}}}}",
		  "{'a':261}", false },
		{ "{'a':{'$bitsAllSet':{'$binary':{'base64':'AAE=','subType':'00'}}}}", "{'a':256}",
		  true },
	};

	check_matches(*state, cases, CASES(cases));
}

static void
mistakes_have_mongodbs_codes(void **state)
{
	static const struct {
		const char *filter;
		int code;
		const char *text;
	} cases[] = {
		{ "{'$foo':1}", 2, "unknown top level operator: $foo. If you have" },
		{ "{'a':{'$foo':1}}", 2, "unknown operator: $foo" },
		{ "{'a':{'$gt':1,'b':1}}", 2, "unknown operator: b" },
		{ "{'$or':[]}", 2, "$and/$or/$nor must be a nonempty array" },
		{ "{'$or':[1]}", 2, "$or/$and/$nor entries need to be full objects" },
		{ "{'a':{'$in':1}}", 2, "$in needs an array" },
		{ "{'a':{'$in':[{'$gt':1}]}}", 2, "cannot nest $ under $in" },
		{ "{'a':{'$size':-1}}", 2,
		  "Failed to parse $size. Expected a non-negative number in: $size: -1" },
		{ "{'a':{'$size':'x'}}", 2,
		  "Failed to parse $size. Expected a number in: $size: \"x\"" },
		{ "{'a':{'$type':'foo'}}", 2, "Unknown type name alias: foo" },
		{ "{'a':{'$type':0}}", 2, "Invalid numerical type code: " },
		{ "{'a':{'$type':20}}", 2, "Invalid numerical type code: " },
		{ "{'a':{'$type':126}}", 2, "Invalid numerical type code: " },
		{ "{'a':{'$type':-2}}", 2, "Invalid numerical type code: " },
		{ "{'a':{'$type':1.5}}", 2, "Invalid numerical type code: " },
		{ "{'a':{'$type':[1,'foo']}}", 2, "Unknown type name alias: foo" },
		{ "{'a':{'$size':1.5}}", 2,
		  "Failed to parse $size. Expected an integer: $size: 1.5" },
		{ "{'a':{'$mod':1}}", 2, "malformed mod, needs to be an array" },
		{ "{'a':{'$mod':[1,2,3]}}", 2, "malformed mod, too many elements" },
		{ "{'a':{'$mod':['x',1]}}", 2, "malformed mod, divisor not a number" },
		{ "{'a':{'$mod':[1,'x']}}", 2, "malformed mod, remainder not a number" },
		{ "{'a':{'$mod':[1e19,1]}}", 2, "malformed mod, divisor value is invalid" },
		{ "{'a':{'$mod':[1,1e19]}}", 2, "malformed mod, remainder value is invalid" },
		{ "{'a':{'$mod':[0.9,1]}}", 2, "divisor cannot be 0" },
		{ "{'a':{'$regex':1}}", 2, "$regex has to be a string" },
		{ "{'a':{'$regex':'a','$options':1}}", 2, "$options has to be a string" },
		{ "{'a':{'$options':'i','$regex':{'$regularExpression':{'pattern':'a',"
		  "'options':'i'}}}}",
		  51074, "options set in both" },
		{ "{'a':{'$regex':{'$regularExpression':{'pattern':'a','options':'i'}},"
		  "'$options':'i'}}",
		  51075, "options set in both" },
		{ "{'a':{'$type':{}}}", 14, "type must be represented as a number or a string" },
		{ "{'a':{'$type':[]}}", 9, "a must match at least one type" },
		{ "{'a':{'$mod':[0,1]}}", 2, "divisor cannot be 0" },
		{ "{'a':{'$mod':[1]}}", 2, "malformed mod, not enough elements" },
		{ "{'a':{'$regex':'('}}", 51091, "Regular expression is invalid: " },
		{ "{'a':{'$regex':'a','$options':'g'}}", 51108,
		  "invalid flag in regex options: g" },
		{ "{'a':{'$options':'i'}}", 2, "$options needs a $regex" },
		{ "{'a':{'$not':{}}}", 2, "$not cannot be empty" },
		{ "{'a':{'$not':1}}", 2, "$not needs a regex or a document" },
		{ "{'a':{'$elemMatch':1}}", 2, "$elemMatch needs an Object" },
		{ "{'$id':1}", 2, "unknown top level operator: $id" },
		{ "{'a':{'$bitsAllSet':-1}}", 9,
		  "Expected a non-negative number in: $bitsAllSet: -1" },
		{ "{'a':{'$bitsAllSet':[1,-1]}}", 2,
		  "Failed to parse bit position. Expected a non-negative number in: 1: -1" },
		{ "{'a':{'$undefined':true}}", 2, "cannot compare to undefined" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct mql_match *m;

		if (mql_match_compile(&q, case_bson(*state, cases[i].filter), &m) != STATUS_INVALID)
			fail_msg("%s is not refused", cases[i].filter);
		if (q.code != cases[i].code)
			fail_msg("%s: %d", cases[i].filter, q.code);
		assert_memory_equal(case_err.text, cases[i].text, strlen(cases[i].text));
	}
}

static void
filters_have_a_depth(void **state)
{
	struct mql q = case_mql(*state);
	struct buf text = BUF_INIT(CASE_BYTES);
	struct mql_match *m;

	for (int i = 0; i < 90; i++)
		buf_append_cstr(&text, "{'$and':[");
	buf_append_cstr(&text, "{'a':{'$not':{'$not':{'$not':{'$not':{'$not':{'$not':{'$not':"
			       "{'$not':{'$not':{'$not':{'$not':{'$gt':1}}}}}}}}}}}}}");
	for (int i = 0; i < 90; i++)
		buf_append_cstr(&text, "]}");
	buf_append_byte(&text, 0);
	assert_int_equal(mql_match_compile(&q, case_bson(*state, text.ptr), &m), STATUS_INVALID);
	assert_int_equal(q.code, MQL_BAD_VALUE);
	buf_release(&text);
}

static void
the_place_in_an_array_is_told(void **state)
{
	int64_t position;

	assert_true(match(*state, "{'a':3}", "{'a':[1,3]}", &position));
	assert_int_equal(position, 1);
	assert_true(match(*state, "{'a.b':3}", "{'a':[{},{},{'b':[0,3]}]}", &position));
	assert_int_equal(position, 2);
	assert_true(match(*state, "{'a':{'$elemMatch':{'b':1}}}", "{'a':[{},{'b':1}]}", &position));
	assert_int_equal(position, 1);
	assert_true(match(*state, "{'a.b.c':3}", "{'a':[{'b':[{'c':1},{'c':3}]}]}", &position));
	assert_int_equal(position, 0);
	assert_true(match(*state, "{'a.b':3}", "{'a':[{'b':[1,3]}]}", &position));
	assert_int_equal(position, 0);
	assert_true(match(*state, "{'a.0.b':3}", "{'a':[{'b':[1,3]}]}", &position));
	assert_true(match(*state, "{'a':3}", "{'a':3}", &position));
	assert_int_equal(position, -1);
	/* A choice tells none, unless there is nothing to choose. */
	assert_true(match(*state, "{'$or':[{'a':3},{'b':1}]}", "{'a':[1,3]}", &position));
	assert_int_equal(position, -1);
	assert_true(match(*state, "{'a':3,'$or':[{'c':9},{'b':1}]}", "{'a':[1,3],'b':[0,0,1]}",
			  &position));
	assert_int_equal(position, 1);
	assert_true(match(*state, "{'$or':[{'a':3}]}", "{'a':[1,3]}", &position));
	assert_int_equal(position, 1);
}

static void
values_are_matched_by_themselves(void **state)
{
	struct mql q = case_mql(*state);
	struct mql_match *m;
	struct bson_value v = BSON_OF_INT32(4);
	bool matches;

	assert_int_equal(mql_match_compile_value(&q, case_bson(*state, "{'$gte':3}"), &m),
			 STATUS_OK);
	assert_int_equal(mql_match_run_value(m, &q, &v, &matches), STATUS_OK);
	assert_true(matches);
	assert_int_equal(mql_match_compile_value(&q, case_bson(*state, "{'b':4}"), &m), STATUS_OK);
	assert_int_equal(mql_match_run_value(m, &q, &v, &matches), STATUS_OK);
	assert_false(matches);
	v = BSON_OF_DOCUMENT(case_bson(*state, "{'b':4}"));
	assert_int_equal(mql_match_run_value(m, &q, &v, &matches), STATUS_OK);
	assert_true(matches);
}

static void
planners_see_what_is_demanded(void **state)
{
	struct mql q = case_mql(*state);
	const struct mql_demand *demands;
	struct mql_match *m;
	size_t count;

	assert_int_equal(
		mql_match_compile(&q,
				  case_bson(*state,
					    "{'_id':7,'$or':[{'x':1},{'y':1}],'a':{'$elemMatch':"
					    "{'b':{'$gt':1},'c':{'$ne':2}}}}"),
				  &m),
		STATUS_OK);
	mql_match_demands(m, &demands, &count);
	assert_int_equal(count, 2);
	assert_true(str_eq(demands[0].path, STR("_id")));
	assert_int_equal(demands[0].op, MQL_DEMAND_EQ);
	assert_int_equal(demands[0].element, 0);
	assert_true(str_eq(demands[1].path, STR("a.b")));
	assert_int_equal(demands[1].op, MQL_DEMAND_GT);
	assert_int_equal(demands[1].element, 1);
}

/* The least and the greatest number that can be drawn. */
static void
samples_of_nothing_and_of_all_are_exact(void **state)
{
	static const int bytes[] = { 0, 0xff };

	for (size_t i = 0; i < CASES(bytes); i++) {
		drawn = bytes[i];
		assert_false(match(*state, "{'$sampleRate':0}", "{}", NULL));
		assert_true(match(*state, "{'$sampleRate':1.0}", "{}", NULL));
		assert_int_equal(match(*state, "{'$sampleRate':0.5}", "{}", NULL), !bytes[i]);
	}
	drawn = -1;
}

static void
expressions_are_conditions(void **state)
{
	static const struct match_case cases[] = {
		{ "{'$expr':{'$gt':['$a','$b']}}", "{'a':2,'b':1}", true },
		{ "{'$expr':{'$gt':['$a','$b']}}", "{'a':1,'b':1}", false },
		{ "{'$expr':'$a'}", "{}", false },
		{ "{'$expr':{'$eq':['$a.b',[1,2]]}}", "{'a':[{'b':1},{'b':2}]}", true },
		{ "{'$or':[{'c':1},{'$expr':{'$eq':['$a',{'$add':['$b',1]}]}}]}", "{'a':2,'b':1}",
		  true },
		{ "{'$nor':[{'$expr':true}]}", "{}", false },
		{ "{'$sampleRate':0}", "{}", false },
		{ "{'$sampleRate':1.0}", "{}", true },
	};
	static const struct {
		const char *filter;
		int code;
	} mistakes[] = {
		{ "{'$expr':{'$nothing':1}}", 168 },
		{ "{'a':{'$elemMatch':{'$expr':1}}}", 2 },
		{ "{'a':{'$elemMatch':{'b':1,'$expr':1}}}", 2 },
		{ "{'$sampleRate':2}", 2 },
		{ "{'$sampleRate':'x'}", 2 },
		{ "{'$alwaysTrue':2}", 9 },
		{ "{'$alwaysTrue':1.5}", 9 },
		{ "{'$alwaysFalse':true}", 9 },
		{ "{'$sampleRate':-0.5}", 2 },
		{ "{'$sampleRate':{'$numberDouble':'NaN'}}", 2 },
	};
	struct mql q = case_mql(*state);
	const struct mql_scope *scope;
	const struct mql_bound let = { .value = BSON_OF_INT32(5) };
	struct mql_match *m;
	bool matches;

	check_matches(*state, cases, CASES(cases));
	for (size_t i = 0; i < CASES(mistakes); i++) {
		if (mql_match_compile(&q, case_bson(*state, mistakes[i].filter), &m) !=
			    STATUS_INVALID ||
		    q.code != mistakes[i].code)
			fail_msg("%s: %d", mistakes[i].filter, q.code);
	}
	assert_int_equal(mql_scope_add(&q, NULL, STR("x"), &scope), STATUS_OK);
	assert_int_equal(mql_match_compile_scoped(
				 &q, case_bson(*state, "{'$and':[{'$expr':{'$eq':['$a','$$x']}}]}"),
				 scope, &m),
			 STATUS_OK);
	assert_int_equal(
		mql_match_run_scoped(m, &q, case_bson(*state, "{'a':5}"), &let, &matches, NULL),
		STATUS_OK);
	assert_true(matches);
}

/* As MongoDB's errInfo.details have it. */
static void
it_is_told_why_a_document_does_not_match(void **state)
{
	static const struct {
		const char *filter;
		const char *document;
		const char *said;
	} cases[] = {
		{ "{'a':1}", "{'a':2}",
		  "{'operatorName':'$eq','specifiedAs':{'a':1},'reason':'comparison failed',"
		  "'consideredValue':2}" },
		{ "{'a':{'$gt':5}}", "{'a':2}",
		  "{'operatorName':'$gt','specifiedAs':{'a':{'$gt':5}},"
		  "'reason':'comparison failed','consideredValue':2}" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct buf out = BUF_INIT(CASE_BYTES);
		struct mql q = case_mql(*state);
		struct bson_builder b;

		bson_builder_init(&b, &out);
		bson_begin(&b);
		assert_int_equal(mql_match_explain(&q, case_bson(*state, cases[i].filter),
						   case_bson(*state, cases[i].document), &b),
				 STATUS_OK);
		bson_end(&b);
		assert_string_equal(case_json(*state, buf_str(&out)), cases[i].said);
		buf_release(&out);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(values_are_compared_within_their_kind, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(null_also_is_what_is_missing, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(paths_go_through_arrays, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(operators_mean_what_they_do_in_mongodb, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(mistakes_have_mongodbs_codes, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(samples_of_nothing_and_of_all_are_exact, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(expressions_are_conditions, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(filters_have_a_depth, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(the_place_in_an_array_is_told, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(values_are_matched_by_themselves, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(it_is_told_why_a_document_does_not_match,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(planners_see_what_is_demanded, case_setup,
						case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
