/*
 * What other tests of filters, expressions, stages and updates do not come by: limits of lengths
 * and numbers at their edges, dates and sums at the ends of their types, options that are missing.
 */
#include "mql/match/match.h"
#include "mql/regex.h"
#include "mql/update/update.h"

#include "expr_case.h"
#include "stages_case.h"

static void
expressions_at_the_ends_of_their_types(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$subtract':[{'$date':{'$numberLong':'9223372036854775807'}},"
		  "{'$date':{'$numberLong':'-1'}}]}",
		  "{}", NULL, MQL_OVERFLOW },
		{ "{'$subtract':[{'$date':{'$numberLong':'9223372036854775807'}},{'$date':0}]}",
		  "{}", "{'$numberLong':'9223372036854775807'}", 0 },
		{ "{'$sortArray':{'input':[{'a':2},{'b':1},5,{'a':1}],'sortBy':{'a':1}}}", "{}",
		  "[{'b':1},5,{'a':1},{'a':2}]", 0 },
		{ "{'$sortArray':{'input':[],'sortBy':{}}}", "{}", NULL, 2942505 },
		{ "{'$sortArray':{'input':[],'sortBy':{'a':2}}}", "{}", NULL, 2942505 },
		{ "{'$sigmoid':{'$numberDecimal':'0'}}", "{}", "{'$numberDecimal':'0.5'}", 0 },
		{ "{'$sigmoid':{'$numberDecimal':'Infinity'}}", "{}", "{'$numberDecimal':'1'}", 0 },
		{ "{'$sigmoid':null}", "{}", "null", 0 },
		{ "{'$sigmoid':'$x'}", "{}", "null", 0 },
		{ "{'$getField':{'field':'b','input':{'a':1}}}", "{}", NULL, 0 },
		{ "{'$getField':{'field':'b','input':5}}", "{}", NULL, 0 },
		{ "{'$let':{'vars':{'':1},'in':1}}", "{}", NULL, MQL_FAILED_TO_PARSE },
		{ "{'$median':{'input':[1],'method':'approximate','x':1}}", "{}", NULL, 40415 },
		{ "{'$median':{'input':[1]}}", "{}", NULL, 40414 },
		{ "{'$percentile':{'input':[1],'method':'approximate'}}", "{}", NULL, 40414 },
		{ "{'$percentile':{'input':[1],'p':[],'method':'approximate'}}", "{}", NULL,
		  7750301 },
		{ "{'$percentile':{'input':[1],'p':1,'method':'approximate'}}", "{}", NULL,
		  7750301 },
		{ "{'$percentile':{'input':[1],'p':[1.1],'method':'approximate'}}", "{}", NULL,
		  7750303 },
		{ "{'$percentile':{'input':[1],'p':[-0.1],'method':'approximate'}}", "{}", NULL,
		  7750303 },
		{ "{'$convert':{'input':'01234567-89ab-cdef-0123-456789abcde','to':{'type':'"
		  "binData',"
		  "'subtype':4},'format':'uuid'}}",
		  "{}", NULL, 241 },
		{ "{'$convert':{'input':'01234567089ab-cdef-0123-456789abcdef','to':{'type':"
		  "'binData','subtype':4},'format':'uuid'}}",
		  "{}", NULL, 241 },
		{ "{'$convert':{'input':'0123456g-89ab-cdef-0123-456789abcdef','to':{'type':"
		  "'binData','subtype':4},'format':'uuid'}}",
		  "{}", NULL, 241 },
		{ "{'$dateDiff':{'startDate':{'$date':{'$numberLong':'-9223372036854775808'}},"
		  "'endDate':{'$date':0},'unit':'millisecond'}}",
		  "{}", NULL, 5166308 },
		{ "{'$dateDiff':{'startDate':{'$date':{'$numberLong':'-9223372036854775807'}},"
		  "'endDate':{'$date':0},'unit':'millisecond'}}",
		  "{}", "{'$numberLong':'9223372036854775807'}", 0 },
		/* The years that texts have. */
		{ "{'$toString':{'$date':{'$numberLong':'253402300799999'}}}", "{}",
		  "'9999-12-31T23:59:59.999Z'", 0 },
		{ "{'$toString':{'$date':{'$numberLong':'253402300800000'}}}", "{}", NULL, 18537 },
		{ "{'$toString':{'$date':{'$numberLong':'-62167219200000'}}}", "{}",
		  "'0000-01-01T00:00:00.000Z'", 0 },
		{ "{'$toString':{'$date':{'$numberLong':'-62167219200001'}}}", "{}", NULL, 18537 },
		{ "{'$dateToString':{'date':{'$date':{'$numberLong':'253402300799999'}},'format':"
		  "'%Y %G'}}",
		  "{}", "'9999 9999'", 0 },
		{ "{'$dateToString':{'date':{'$date':{'$numberLong':'253402300800000'}},'format':"
		  "'%Y'}}",
		  "{}", NULL, 18537 },
		{ "{'$dateToString':{'date':{'$date':{'$numberLong':'253402300800000'}},'format':"
		  "'%G'}}",
		  "{}", NULL, 18537 },
		{ "{'$dateToString':{'date':{'$date':{'$numberLong':'-62167219200001'}},'format':"
		  "'%G'}}",
		  "{}", NULL, 18537 },
		{ "{'$dateToString':{'date':{'$date':{'$numberLong':'253402300800000'}},'format':"
		  "'%m'}}",
		  "{}", "'01'", 0 },
		{ "'$a\\u0000b'", "{}", NULL, 16419 },
		/* Offsets lead beyond the ends, where dates stay as they are. */
		{ "{'$hour':{'date':{'$date':{'$numberLong':'9223372036854775807'}},"
		  "'timezone':'+01:00'}}",
		  "{}", "7", 0 },
		{ "{'$hour':{'date':{'$date':{'$numberLong':'9223372036854775807'}},"
		  "'timezone':'-01:00'}}",
		  "{}", "6", 0 },
		{ "{'$reduce':{'input':{'$range':[0,3000]},'initialValue':0,'in':'$$REMOVE'}}",
		  "{}", NULL, 0 },
	};

	EXPR_CASES(*state, cases);
}

/* As many units as all of time has, from the middle of it on, and one more. */
static void
dates_are_moved_by_amounts_that_there_are(void **state)
{
	static const struct expr_case cases[] = {
#define SPAN(unit, amount, code)                                                                   \
	{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'" unit                                     \
	  "','amount':{'$numberLong':'" amount "'}}}",                                             \
	  "{}", NULL, code }
		SPAN("second", "18446744073709550", 5166406),
		SPAN("second", "18446744073709551", 5976500),
		SPAN("second", "-18446744073709550", 5166406),
		SPAN("second", "-18446744073709551", 5976500),
		SPAN("minute", "307445734561824", 5166406),
		SPAN("minute", "307445734561825", 5976500),
		SPAN("minute", "-307445734561824", 5166406),
		SPAN("minute", "-307445734561825", 5976500),
		SPAN("hour", "5124095576030", 5166406),
		SPAN("hour", "5124095576031", 5976500),
		SPAN("hour", "-5124095576030", 5166406),
		SPAN("hour", "-5124095576031", 5976500),
		SPAN("day", "214088924622", 5166406),
		SPAN("day", "214088924623", 5976500),
		SPAN("day", "-214088924622", 5166406),
		SPAN("day", "-214088924623", 5976500),
		SPAN("week", "31001948101", 5166406),
		SPAN("week", "31001948102", 5976500),
		SPAN("week", "-31001948101", 5166406),
		SPAN("week", "-31001948102", 5976500),
		SPAN("month", "7019309004", 5166406),
		SPAN("month", "7019309005", 5976500),
		SPAN("month", "-7019309004", 5166406),
		SPAN("month", "-7019309005", 5976500),
		SPAN("quarter", "2339769668", 5166406),
		SPAN("quarter", "2339769669", 5976500),
		SPAN("quarter", "-2339769668", 5166406),
		SPAN("quarter", "-2339769669", 5976500),
		SPAN("year", "584942417", 5166406),
		SPAN("year", "584942418", 5976500),
		SPAN("year", "-584942417", 5166406),
		SPAN("year", "-584942418", 5976500),
		{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'millisecond','amount':"
		  "{'$numberLong':'-9223372036854775808'}}}",
		  "{}", "{'$date':{'$numberLong':'-9223372036854775808'}}", 0 },
		{ "{'$dateAdd':{'startDate':{'$date':1},'unit':'millisecond','amount':"
		  "{'$numberLong':'9223372036854775807'}}}",
		  "{}", NULL, 5166406 },
		{ "{'$dateSubtract':{'startDate':{'$date':0},'unit':'millisecond','amount':"
		  "{'$numberLong':'-9223372036854775808'}}}",
		  "{}", NULL, 6045000 },
		{ "{'$dateSubtract':{'startDate':{'$date':0},'unit':'millisecond','amount':"
		  "{'$numberLong':'-9223372036854775807'}}}",
		  "{}", "{'$date':{'$numberLong':'9223372036854775807'}}", 0 },
	};

	EXPR_CASES(*state, cases);
}

/* More zones than are kept open, each used again. */
static void
zones_take_turns(void **state)
{
	static const struct {
		const char *name;
		int hour;
	} zones[] = {
		{ "Europe/Berlin", 13 },  { "America/New_York", 7 }, { "Asia/Tokyo", 21 },
		{ "Asia/Shanghai", 20 },  { "Europe/London", 12 },   { "America/Chicago", 6 },
		{ "Europe/Athens", 14 },  { "Asia/Dubai", 16 },      { "Asia/Karachi", 17 },
		{ "Asia/Dhaka", 18 },     { "Asia/Bangkok", 19 },    { "America/Denver", 5 },
		{ "Pacific/Noumea", 23 }, { "America/Caracas", 8 },  { "Africa/Lagos", 13 },
		{ "Africa/Cairo", 14 },   { "Europe/Moscow", 15 },   { "America/Lima", 7 },
		{ "Africa/Accra", 12 },   { "Asia/Manila", 20 },
	};

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < CASES(zones); i++) {
			struct mql q = case_mql(*state);
			struct bson_value v;
			struct str expression = arena_printf(*state,
							     "{'$hour':{'date':{'$date':'2024-01-"
							     "15T12:00:00Z'},'timezone':'%s'}}",
							     zones[i].name);

			assert_int_equal(case_run(&q, expression.ptr, "{}", &v), STATUS_OK);
			if (bson_integer(&v) != zones[i].hour)
				fail_msg("%s: %lld", zones[i].name, (long long)bson_integer(&v));
		}
	}
}

static void
filters_are_refused_with_mongodbs_codes(void **state)
{
	static const char *const filters[] = {
		"{'a':{'$bitsAllSet':[2147483648]}}",
		"{'a':{'$bitsAllSet':[-1]}}",
		"{'a':{'$all':[{'$gt':1}]}}",
		"{'a':{'$all':[{'$elemMatch':{'b':1}},1]}}",
		"{'a':{'$all':[{'$elemMatch':{'b':1}},{'b':1}]}}",
		"{'a':{'$all':[{'$elemMatch':{'b':1}},{}]}}",
		"{'a':{'$elemMatch':{'$expr':true}}}",
		"{'$where':'1'}",
	};
	static const char *const of_where[] = {
		"{'a':{'$elemMatch':{'$where':'1'}}}",
		"{'$where':1}",
		"{'$where':null}",
	};
	struct mql_match *m;

	for (size_t i = 0; i < CASES(filters); i++) {
		struct mql q = case_mql(*state);

		if (mql_match_compile(&q, case_bson(*state, filters[i]), &m) != STATUS_INVALID ||
		    q.code != MQL_BAD_VALUE)
			fail_msg("%s has code %d", filters[i], q.code);
	}
	for (size_t i = 0; i < CASES(of_where); i++) {
		struct mql q = case_mql(*state);

		q.takes_where = true;
		if (mql_match_compile(&q, case_bson(*state, of_where[i]), &m) != STATUS_INVALID ||
		    q.code != MQL_BAD_VALUE)
			fail_msg("%s has code %d", of_where[i], q.code);
	}
}

/* A text of that many letters, between two others. */
static struct str
lettered(struct arena *arena, const char *before, size_t len, const char *behind)
{
	char *text = arena_bytes(arena, strlen(before) + len + strlen(behind) + 1);
	size_t at = strlen(before);

	assert_non_null(text);
	memcpy(text, before, at);
	memset(text + at, 'x', len);
	memcpy(text + at + len, behind, strlen(behind) + 1);
	return str_from_cstr(text);
}

static void
patterns_have_options_and_a_length(void **state)
{
	static const struct {
		const char *pattern, *options, *text;
		bool matches;
	} cases[] = {
		{ "a.b", "", "a\nb", false },   { "a.b", "s", "a\nb", true },
		{ "a b", "", "ab", false },     { "a b", "x", "ab", true },
		{ "^b", "", "a\nb", false },    { "^b", "m", "a\nb", true },
		{ "A", "", "a", false },        { "A", "i", "a", true },
		{ "A.B", "isu", "a\nb", true }, { "a", "u", "a", true },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct mql_regex *regex;
		bool matches;

		assert_int_equal(mql_regex_compile(&q, str_from_cstr(cases[i].pattern),
						   str_from_cstr(cases[i].options), &regex),
				 STATUS_OK);
		assert_int_equal(
			mql_regex_match(regex, &q, str_from_cstr(cases[i].text), 0, &matches, NULL),
			STATUS_OK);
		if (matches != cases[i].matches)
			fail_msg("/%s/%s", cases[i].pattern, cases[i].options);
	}
	for (size_t more = 0; more < 2; more++) {
		struct mql q = case_mql(*state);
		struct mql_regex *regex;

		assert_int_equal(mql_regex_compile(
					 &q, lettered(*state, "[", MQL_REGEX_BYTES - 2 + more, "]"),
					 STR(""), &regex),
				 more ? STATUS_INVALID : STATUS_OK);
		assert_int_equal(q.code, more ? 51091 : 0);
		q.code = 0;
		assert_int_equal(mql_regex_compile(&q, STR("a\0b"), STR(""), &regex),
				 STATUS_INVALID);
		assert_int_equal(q.code, 51109);
		assert_int_equal(mql_regex_compile(&q, STR("a"), STR("g"), &regex), STATUS_INVALID);
		assert_int_equal(q.code, 51108);
	}
}

/* Steps of a match from the first byte on; `*ret`: whether there is one. */
static int64_t
regex_steps(struct arena *arena, struct str pattern, const char *options, struct str text,
	    bool *ret)
{
	struct arena_mark mark = arena_mark(arena);
	struct mql q = case_mql(arena);
	struct mql_regex *regex;
	int64_t before;

	if (mql_regex_compile(&q, pattern, str_from_cstr(options), &regex) != STATUS_OK)
		fail_msg("%.40s: %s", pattern.ptr, case_err.text);
	step_pause(1);
	before = step_credit;
	if (mql_regex_match(regex, &q, text, 0, ret, NULL) != STATUS_OK)
		fail_msg("%.40s: %s", pattern.ptr, case_err.text);
	arena_reset(arena, mark);
	return before - step_credit;
}

/* Of the characters that take most of PCRE2's room, a pattern as long as patterns may be. */
static void
the_longest_patterns_of_plain_characters_match(void **state)
{
	static const struct {
		const char *chars, *options;
	} cases[] = {
		{ "x", "" },         { "k", "i" }, { "s", "ix" },
		{ "\xc3\xa4", "i" }, { ".", "" },  { "\xf0\x9f\x98\x80", "" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		size_t len = strlen(cases[i].chars);
		char *bytes = arena_bytes(*state, MQL_REGEX_BYTES);
		struct str pattern = { bytes, MQL_REGEX_BYTES };
		struct str text = { bytes + 1, MQL_REGEX_BYTES - 1 };
		bool matches = false;

		memset(bytes, 'x', MQL_REGEX_BYTES);
		bytes[0] = '^';
		for (size_t at = 1; at + len <= MQL_REGEX_BYTES; at += len)
			memcpy(bytes + at, cases[i].chars, len);
		assert_true(regex_steps(*state, pattern, cases[i].options, text, &matches) >=
			    (int64_t)(MQL_REGEX_BYTES / len / 8));
		assert_true(matches);
		text.len--;
		(void)regex_steps(*state, pattern, cases[i].options, text, &matches);
		assert_false(matches);
	}
}

/* Whatever follows a long text, and wherever: no place in it may become another item. */
static void
long_patterns_mean_the_same_as_short_ones(void **state)
{
	static const struct {
		const char *pattern, *text, *other;
	} cases[] = {
		{ "a{2}$", "aa", "a" },   { "ab*$", "abb", "ba" }, { "ab+$", "abb", "a" },
		{ "ab?$", "a", "abb" },   { "[a]$", "a", "?" },    { "(?:a)$", "a", "b" },
		{ "\\x61$", "a", "x" },   { "ab|c", "ab", "b" },   { "\xc3\xa4$", "\xc3\xa4", "a" },
		{ ".$", "\xc3\xa4", "" }, { "a#b$", "a#b", "a" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		for (size_t more = 0; more < 9; more++) {
			struct arena_mark mark = arena_mark(*state);
			size_t len = 7000 + more;
			bool matches = false;

			(void)regex_steps(*state, lettered(*state, "^", len, cases[i].pattern), "",
					  lettered(*state, "", len, cases[i].text), &matches);
			if (!matches)
				fail_msg("%s behind %zu letters", cases[i].pattern, len);
			(void)regex_steps(*state, lettered(*state, "^", len, cases[i].pattern), "",
					  lettered(*state, "", len, cases[i].other), &matches);
			if (matches)
				fail_msg("%s behind %zu letters", cases[i].pattern, len);
			arena_reset(*state, mark);
		}
	}
}

/* Groups that repeat what may be taken in two ways: too many ways to look at. */
static void
a_match_that_takes_too_many_steps_fails(void **state)
{
	struct mql q = case_mql(*state);
	struct mql_regex *regex;
	bool matches;

	assert_int_equal(mql_regex_compile(&q, STR("(a|aa)+$"), STR(""), &regex), STATUS_OK);
	assert_int_equal(
		mql_regex_match(regex, &q, lettered(*state, "aab", 9, "aa"), 0, &matches, NULL),
		STATUS_OK);
	assert_true(matches);
	assert_int_equal(mql_regex_match(regex, &q,
					 STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"),
					 0, &matches, NULL),
			 STATUS_INVALID);
	assert_int_equal(q.code, 51156);
}

/* More zones than calendars are kept, and all of them once more. */
static void
zones_are_opened_again(void **state)
{
	for (int i = 0; i < 2 * (14 + 1 + 12); i++) {
		int west = i % (14 + 1 + 12) - 14;
		struct mql q = case_mql(*state);
		struct bson_value v;

		assert_int_equal(case_run(&q,
					  arena_printf(*state,
						       "{'$hour':{'date':{'$date':0},'timezone':"
						       "'Etc/GMT%+d'}}",
						       west)
						  .ptr,
					  "{}", &v),
				 STATUS_OK);
		assert_int_equal(bson_integer(&v), (24 - west) % 24);
	}
}

/* A path of `names` names of one letter. */
static struct str
path_of(struct arena *arena, size_t names)
{
	char *path = arena_bytes(arena, 2 * names);

	for (size_t i = 0; i < names; i++) {
		path[2 * i] = 'a';
		path[2 * i + 1] = '.';
	}
	path[2 * names - 1] = '\0';
	return str_from_cstr(path);
}

static void
paths_and_sorts_have_their_limits(void **state)
{
	struct str longest = path_of(*state, BSON_DEPTH + 1);

	for (size_t more = 0; more < 2; more++) {
		struct mql q = case_mql(*state);

		longest.len = 2 * (BSON_DEPTH + more) - 1;
		(void)run_text(&q, arena_printf(*state, "{'$unset':'%.*s'}", STR_ARG(longest)).ptr,
			       "{}");
		assert_int_equal(q.code, more ? 5984700 : 0);
	}
	for (size_t more = 0; more < 2; more++) {
		struct buf stage = BUF_INIT(CASE_BYTES);
		struct mql q = case_mql(*state);
		const char *got;

		buf_append_cstr(&stage, "{'$sort':{");
		for (size_t i = 0; i < 32 + more; i++)
			buf_printf(&stage, "%s'p%zu':1", i ? "," : "", i);
		buf_append(&stage, "}}", 3);
		got = run_text(&q, stage.ptr, "{'a':1}");
		assert_string_equal(got, more ? "13103 too many compound keys" : "{'a':1}");
		buf_release(&stage);
		q = case_mql(*state);
		got = run_text(&q,
			       lettered(*state, "{'$setWindowFields':{'sortBy':{'",
					MQL_SORT_NAME_BYTES + more,
					"':1},'output':{'n':{'$documentNumber':{}}}}}")
				       .ptr,
			       "{}");
		assert_string_equal(got, more ? "2 A path of a sort has more than 2048 bytes "
						"(MQL_SORT_NAME_BYTES)"
					      : "{'n':1}");
	}
}

static void
stages_at_the_ends_of_their_types(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$group':{'_id':0,'p':{'$stdDevPop':'$a'},'s':{'$stdDevSamp':'$a'}}}",
		  "{'a':1},{'a':{'$numberDouble':'Infinity'}}",
		  "{'_id':0,'p':{'$numberDouble':'NaN'},'s':{'$numberDouble':'NaN'}}" },
		{ "{'$densify':{'field':'t','range':{'step':{'$numberLong':'9223372036854775807'},"
		  "'bounds':[1,2]}}}",
		  "{'t':1}", "{'t':1}" },
		{ "{'$densify':{'field':'t','range':{'step':1,'bounds':'full'}}}",
		  "{'t':1e300},{'t':2e300}",
		  "2 $densify's step is too small for the values of its field" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'a':{'$push':'$t','window':{"
		  "'documents':[{'$numberLong':'-9223372036854775808'},0]}},'b':{'$push':'$t',"
		  "'window':{'documents':[0,{'$numberLong':'9223372036854775807'}]}},'c':{'$push':"
		  "'$t','window':{'documents':[{'$numberLong':'9223372036854775807'},"
		  "{'$numberLong':'9223372036854775807'}]}}}}}",
		  "{'t':1},{'t':2}",
		  "{'t':1,'a':[1],'b':[1,2],'c':[]},{'t':2,'a':[1,2],'b':[2],'c':[]}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'a':{'$count':{},'window':{"
		  "'range':[0,{'$numberLong':'9223372036854775807'}]}}}}}",
		  "{'t':1},{'t':{'$numberLong':'9223372036854775807'}}",
		  "{'t':1,'a':2},{'t':9223372036854775807,'a':1}" },
		{ "{'$lookup':{'from':'o','localField':'a.b','foreignField':'k','as':'r'}}",
		  "{'a':{'b':1}},{'a':[{'b':1},5,{'b':2},{'c':3}]},{'a':5},{'a':{}}",
		  "{'a':{'b':1},'r':[{'k':1}]},{'a':[{'b':1},5,{'b':2},{'c':3}],'r':[{'k':1},{'k'"
		  ":2}]},{'a':5,'r':[{'v':3}]},{'a':{},'r':[{'v':3}]}" },
		{ "{'$lookup':{'from':'o','localField':'a','foreignField':'k','as':'r'}}",
		  "{'a':[{'$regularExpression':{'pattern':'x','options':''}},2]}",
		  "{'a':[{'$regularExpression':{'pattern':'x','options':''}},2],'r':[{'k':2}]}" },
		{ "{'$lookup':{'from':'','localField':'a','foreignField':'k','as':'r'}}", "{}",
		  "73 Invalid namespace specified: an empty collection name" },
		{ "{'$lookup':{'from':'o','pipeline':5,'as':'r'}}", "{}",
		  "14 'pipeline' option must be specified as an array" },
		{ "{'$facet':{'a':5}}", "{}",
		  "40170 arguments to $facet must be arrays, a is type int" },
		{ "{'$unionWith':{'coll':'o','pipeline':5}}", "{}",
		  "14 BSON field '$unionWith.pipeline' is the wrong type 'int', expected type "
		  "'array'" },
		{ "{'$nothing':1}", "{}", "40324 Unrecognized pipeline stage name: '$nothing'" },
		{ "{'$sort':{'a':1}},{'$match':{'$comment':'x','a':1}}", "{'a':2},{'a':1}",
		  "{'a':1}" },
		{ "{'$set':{'b':1}},{'$match':{'a':1,'$comment':'x'}}", "{'a':2},{'a':1}",
		  "{'a':1,'b':1}" },
		{ "{'$unset':'a.b'}", "{'a':5},{'a':{'b':1,'c':2}}", "{'a':5},{'a':{'c':2}}" },
		{ "{'$sort':{'a':1}},{'$skip':1},{'$limit':1}", "{'a':2}", "" },
	};

	other_documents = "{'o':[{'k':1},{'k':2},{'v':3}]}";
	check_pipelines(*state, cases, CASES(cases));
}

static void
names_of_stages_are_checked_by_themselves(void **state)
{
	static const struct {
		const char *pipeline;
		int code;
	} cases[] = {
		{ "{'p':[]}", 0 },
		{ "{'p':[{'$match':1},{'$out':5}]}", 0 }, /* whatever is in them */
		{ "{'p':[{'$match':1},{'$nothing':5}]}", 40324 },
		{ "{'p':[{'$match':1,'$limit':1}]}", 40323 },
		{ "{'p':[{}]}", 40323 },
		{ "{'p':[1]}", MQL_TYPE_MISMATCH },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct bson_value p;

		assert_true(bson_find(case_bson(*state, cases[i].pipeline), STR("p"), &p));
		assert_int_equal(mql_pipeline_check_names(&q, bson_text(&p)),
				 cases[i].code ? STATUS_INVALID : STATUS_OK);
		assert_int_equal(q.code, cases[i].code);
	}
}

static void
replacements_are_told_from_changes(void **state)
{
	static const struct {
		const char *update;
		bool replaces;
	} cases[] = {
		{ "{'a':1}", true },
		{ "{}", true },
		{ "{'$set':{'a':1}}", false },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct mql_update *u;

		assert_int_equal(
			mql_update_compile(&q, case_bson(*state, cases[i].update), BSON_EMPTY, &u),
			STATUS_OK);
		assert_int_equal(mql_update_is_replacement(u), cases[i].replaces);
	}
}

static struct mql_pipeline *
pipeline_of(struct mql *q, const char *text)
{
	const struct mql_pipeline_options options = { .scope = NULL };
	struct mql_pipeline *p = NULL;
	struct bson_value stages;

	assert_true(bson_find(case_bson(q->arena, arena_printf(q->arena, "{'p':[%s]}", text).ptr),
			      STR("p"), &stages));
	if (mql_pipeline_compile(q, bson_text(&stages), &options, &p) != STATUS_OK)
		fail_msg("%s: %s", text, q->err->text);
	return p;
}

static void
a_group_says_which_members_it_needs(void **state)
{
	enum {
		MOST = 3
	};
	static const struct {
		const char *pipeline;
		const char *needs; /* NULL: that is not known */
	} cases[] = {
		{ "{'$group':{'_id':null}}", "" },
		{ "{'$group':{'_id':'$a'}}", "a" },
		{ "{'$group':{'_id':'$a.b','n':{'$sum':'$a.c'}}}", "a" },
		{ "{'$group':{'_id':{'x':'$a','y':['$b',{'$add':['$c',1]}]}}}", "a b c" },
		{ "{'$group':{'_id':{'x':'$a','y':['$b','$c','$d']}}}", NULL },
		{ "{'$group':{'_id':'a','n':{'$sum':1}}}", "" },
		{ "{'$group':{'_id':'$$NOW'}}", "" },
		{ "{'$group':{'_id':'$$ROOT'}}", NULL },
		{ "{'$group':{'_id':'$$ROOT.a'}}", NULL },
		{ "{'$group':{'_id':'$$CURRENT'}}", NULL },
		{ "{'$group':{'_id':'$$CURRENT.a'}}", NULL },
		{ "{'$group':{'_id':{'$getField':'a'}}}", NULL },
		{ "{'$group':{'_id':{'$let':{'vars':{'CURRENT':'$a'},'in':'$b'}}}}", NULL },
		{ "{'$group':{'_id':{'$let':{'vars':{'v':'$a'},'in':'$$v.b'}}}}", "a" },
		{ "{'$match':{'a':1}}", NULL },
		{ "{'$limit':1}", NULL },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		AUTO(buf_release) struct buf said = BUF_INIT(1000);
		struct mql q = case_mql(*state);
		const struct mql_pipeline *p = pipeline_of(&q, cases[i].pipeline);
		struct str names[MOST];
		size_t count;
		bool known = mql_pipeline_needs(p, 0, names, MOST, &count);

		if (known != (cases[i].needs != NULL))
			fail_msg("%s", cases[i].pipeline);
		assert_true(count <= MOST);
		for (size_t n = 0; known && n < count; n++)
			buf_printf(&said, "%s%.*s", n ? " " : "", STR_ARG(names[n]));
		buf_append_byte(&said, '\0');
		if (known)
			assert_string_equal(said.ptr, cases[i].needs);
		assert_false(mql_pipeline_needs(p, 1, names, MOST, &count));
	}
}

static void
filters_and_limits_go_to_the_front(void **state)
{
	static const struct {
		const char *pipeline;
		size_t filters;
		int64_t limit;
		bool sorted;
	} cases[] = {
		{ "{'$match':{'a':1}}", 1, 0, false },
		{ "{'$match':{'a':1}},{'$match':{'b':1}},{'$limit':2}", 2, 2, false },
		{ "{'$match':{'$expr':true}}", 0, 0, false },
		{ "{'$match':{'a':1}},{'$match':{'$or':[{'a':1},{'$expr':true}]}}", 1, 0, false },
		{ "{'$sort':{'a':1}},{'$match':{'a':1}}", 1, 0, true },
		{ "{'$sort':{'a':1}},{'$match':{'$expr':true}}", 0, 0, false },
		{ "{'$project':{'a':1}},{'$match':{'a':1}}", 1, 0, false },
		{ "{'$project':{'a':1}},{'$match':{'a.b':1}}", 1, 0, false },
		{ "{'$project':{'a':1}},{'$match':{'b':1}}", 0, 0, false },
		{ "{'$project':{'a.b':1}},{'$match':{'a':1}}", 0, 0, false },
		{ "{'$project':{'a':0}},{'$match':{'a':1}}", 0, 0, false },
		{ "{'$project':{'a':0}},{'$match':{'b':1}}", 1, 0, false },
		{ "{'$project':{'a':{'$add':[1,1]}}},{'$match':{'a':2}}", 0, 0, false },
		{ "{'$project':{'a':1}},{'$match':{'$and':[{'a':1},{'b':1}]}}", 0, 0, false },
		{ "{'$project':{'a':1}},{'$match':{'$and':[{'a':1},{'_id':1}]}}", 1, 0, false },
		{ "{'$project':{'a':1}},{'$match':{'$nor':[{'a':1}]}}", 1, 0, false },
		{ "{'$project':{'a':1}},{'$match':{'$comment':'x','a':1}}", 1, 0, false },
		{ "{'$project':{'a':1}},{'$match':{'$jsonSchema':{}}}", 0, 0, false },
		{ "{'$addFields':{'a':1}},{'$match':{'b':1}}", 1, 0, false },
		{ "{'$addFields':{'a':1}},{'$match':{'a':1}}", 0, 0, false },
		{ "{'$unwind':'$a.b'},{'$match':{'a':1}}", 0, 0, false },
		{ "{'$unwind':'$a.b'},{'$match':{'ab':1}}", 1, 0, false },
		{ "{'$unwind':{'path':'$a','includeArrayIndex':'i.j'}},{'$match':{'i':1}}", 0, 0,
		  false },
		{ "{'$unwind':{'path':'$a','includeArrayIndex':'i.j'}},{'$match':{'j':1}}", 1, 0,
		  false },
		{ "{'$limit':3},{'$match':{'a':1}}", 0, 3, false },
		{ "{'$skip':2},{'$match':{'a':1}}", 0, 0, false },
		{ "{'$skip':2},{'$limit':3}", 0, 5, false },
		{ "{'$skip':2},{'$skip':4},{'$project':{'a':1}},{'$limit':3}", 0, 9, false },
		{ "{'$skip':9223372036854775807},{'$limit':1}", 0, 0, false },
		{ "{'$skip':9223372036854775806},{'$limit':1}", 0, INT64_MAX, false },
		{ "{'$skip':9223372036854775807},{'$skip':1},{'$limit':1}", 0, 0, false },
		{ "{'$unwind':'$a'},{'$limit':1}", 0, 0, false },
		{ "{'$sort':{'a':1}},{'$limit':4}", 0, 4, true },
		{ "{'$replaceRoot':{'newRoot':'$a'}},{'$limit':4}", 0, 4, false },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct mql_pipeline_front front;

		mql_pipeline_front(pipeline_of(&q, cases[i].pipeline), &front);
		if (front.filter_stages != cases[i].filters || front.limit != cases[i].limit ||
		    (front.sort.ptr != NULL) != cases[i].sorted)
			fail_msg("%s: %zu filters, %lld, %zu", cases[i].pipeline,
				 front.filter_stages, (long long)front.limit, front.sort.len);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, case_setup, case_teardown)
		TEST(expressions_at_the_ends_of_their_types),
		TEST(dates_are_moved_by_amounts_that_there_are),
		TEST(zones_take_turns),
		TEST(filters_are_refused_with_mongodbs_codes),
		TEST(patterns_have_options_and_a_length),
		TEST(the_longest_patterns_of_plain_characters_match),
		TEST(long_patterns_mean_the_same_as_short_ones),
		TEST(a_match_that_takes_too_many_steps_fails),
		TEST(zones_are_opened_again),
		TEST(paths_and_sorts_have_their_limits),
		TEST(stages_at_the_ends_of_their_types),
		TEST(names_of_stages_are_checked_by_themselves),
		TEST(replacements_are_told_from_changes),
		TEST(a_group_says_which_members_it_needs),
		TEST(filters_and_limits_go_to_the_front),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
