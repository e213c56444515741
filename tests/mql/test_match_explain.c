/* Why a document does not match a filter, as MongoDB's errInfo.details have it. */
#include "mql/match/match.h"

#include "mql_case.h"

struct explained {
	struct str filter, document;
};

static enum status
explain_again(struct mql *q, const void *arg, struct buf *said)
{
	const struct explained *e = arg;
	struct bson_builder b;

	bson_builder_init(&b, said);
	bson_begin(&b);
	TRY(mql_match_explain(q, e->filter, e->document, &b));
	bson_end(&b);
	return buf_status(said);
}

static void
conditions_that_do_not_hold_are_told(void **state)
{
	static const struct {
		const char *filter, *document, *said;
	} cases[] = {
		{ "{'a':{'$gt':5,'$lt':9}}", "{'a':2}",
		  ("{'operatorName':'$and','clausesNotSatisfied':[{'index':0,'details':{'"
		   "operatorNam"
		   "e':'$gt','specifiedAs':{'a':{'$gt':5}},'reason':'comparison "
		   "failed','consideredV"
		   "alue':2}}]}") },
		{ "{'a':{'$gt':5,'$lt':9}}", "{'a':10}",
		  ("{'operatorName':'$and','clausesNotSatisfied':[{'index':1,'details':{'"
		   "operatorNam"
		   "e':'$lt','specifiedAs':{'a':{'$lt':9}},'reason':'comparison "
		   "failed','consideredV"
		   "alue':10}}]}") },
		{ "{'a':1,'b':2}", "{'a':1,'b':3}",
		  ("{'operatorName':'$and','clausesNotSatisfied':[{'index':1,'details':{'"
		   "operatorNam"
		   "e':'$eq','specifiedAs':{'b':2},'reason':'comparison "
		   "failed','consideredValue':3}"
		   "}]}") },
		{ "{'a':1,'b':2}", "{'a':2,'b':3}",
		  ("{'operatorName':'$and','clausesNotSatisfied':[{'index':0,'details':{'"
		   "operatorNam"
		   "e':'$eq','specifiedAs':{'a':1},'reason':'comparison "
		   "failed','consideredValue':2}"
		   "},{'index':1,'details':{'operatorName':'$eq','specifiedAs':{'b':2},'reason':'"
		   "com"
		   "parison failed','consideredValue':3}}]}") },
		{ "{'a':1,'b':2,'c':3}", "{'a':2,'b':2,'c':4}",
		  ("{'operatorName':'$and','clausesNotSatisfied':[{'index':0,'details':{'"
		   "operatorNam"
		   "e':'$eq','specifiedAs':{'a':1},'reason':'comparison "
		   "failed','consideredValue':2}"
		   "},{'index':2,'details':{'operatorName':'$eq','specifiedAs':{'c':3},'reason':'"
		   "com"
		   "parison failed','consideredValue':4}}]}") },
		{ "{'$and':[{'a':1},{'b':2}]}", "{'a':1,'b':3}",
		  ("{'operatorName':'$and','clausesNotSatisfied':[{'index':1,'details':{'"
		   "operatorNam"
		   "e':'$eq','specifiedAs':{'b':2},'reason':'comparison "
		   "failed','consideredValue':3}"
		   "}]}") },
		{ "{'$and':[{'a':1},{'b':2}],'c':1}", "{'a':1,'b':2,'c':3}",
		  ("{'operatorName':'$and','clausesNotSatisfied':[{'index':1,'details':{'"
		   "operatorNam"
		   "e':'$eq','specifiedAs':{'c':1},'reason':'comparison "
		   "failed','consideredValue':3}"
		   "}]}") },
		{ "{'$or':[{'a':1},{'b':2}]}", "{'a':2,'b':3}",
		  ("{'operatorName':'$or','clausesNotSatisfied':[{'index':0,'details':{'"
		   "operatorName"
		   "':'$eq','specifiedAs':{'a':1},'reason':'comparison "
		   "failed','consideredValue':2}}"
		   ",{'index':1,'details':{'operatorName':'$eq','specifiedAs':{'b':2},'reason':'"
		   "comp"
		   "arison failed','consideredValue':3}}]}") },
		{ "{'$nor':[{'a':1},{'b':2}]}", "{'a':1,'b':3}",
		  ("{'operatorName':'$nor','clausesSatisfied':[{'index':0,'details':{'operatorName'"
		   ":"
		   "'$eq','specifiedAs':{'a':1},'reason':'comparison "
		   "succeeded','consideredValue':1}"
		   "}]}") },
		{ "{'$nor':[{'a':1},{'b':2}]}", "{'a':1,'b':2}",
		  ("{'operatorName':'$nor','clausesSatisfied':[{'index':0,'details':{'operatorName'"
		   ":"
		   "'$eq','specifiedAs':{'a':1},'reason':'comparison "
		   "succeeded','consideredValue':1}"
		   "},{'index':1,'details':{'operatorName':'$eq','specifiedAs':{'b':2},'reason':'"
		   "com"
		   "parison succeeded','consideredValue':2}}]}") },
		{ "{'a':{'$in':[1,2]}}", "{'a':3}",
		  ("{'operatorName':'$in','specifiedAs':{'a':{'$in':[1,2]}},'reason':'no matching "
		   "va"
		   "lue found in array','consideredValue':3}") },
		{ "{'a':{'$nin':[1,2]}}", "{'a':1}",
		  ("{'operatorName':'$nin','specifiedAs':{'a':{'$nin':[1,2]}},'reason':'matching "
		   "val"
		   "ue found in array','consideredValue':1}") },
		{ "{'a':{'$ne':1}}", "{'a':1}",
		  ("{'operatorName':'$ne','specifiedAs':{'a':{'$ne':1}},'reason':'comparison "
		   "failed'"
		   ",'consideredValue':1}") },
		{ "{'a':{'$exists':true}}", "{'b':1}",
		  ("{'operatorName':'$exists','specifiedAs':{'a':{'$exists':true}},'reason':'path "
		   "do"
		   "es not exist'}") },
		{ "{'a':{'$exists':false}}", "{'a':1}",
		  ("{'operatorName':'$exists','specifiedAs':{'a':{'$exists':false}},'reason':'path "
		   "d"
		   "oes exist'}") },
		{ "{'a':{'$type':'string'}}", "{'a':1}",
		  ("{'operatorName':'$type','specifiedAs':{'a':{'$type':'string'}},'reason':'type "
		   "di"
		   "d not match','consideredValue':1,'consideredType':'int'}") },
		{ "{'a':{'$type':['string','bool']}}", "{'a':1}",
		  ("{'operatorName':'$type','specifiedAs':{'a':{'$type':['string','bool']}},'"
		   "reason'"
		   ":'type did not match','consideredValue':1,'consideredType':'int'}") },
		{ "{'a':{'$size':2}}", "{'a':[1]}",
		  ("{'operatorName':'$size','specifiedAs':{'a':{'$size':2}},'reason':'array length "
		   "w"
		   "as not equal to given size','consideredValues':[1,[1]]}") },
		{ "{'a':{'$size':2}}", "{'a':1}",
		  ("{'operatorName':'$size','specifiedAs':{'a':{'$size':2}},'reason':'array length "
		   "w"
		   "as not equal to given size','consideredValue':1}") },
		{ "{'a':{'$mod':[2,1]}}", "{'a':4}",
		  ("{'operatorName':'$mod','specifiedAs':{'a':{'$mod':[2,1]}},'reason':'$mod did "
		   "not"
		   " evaluate to expected remainder','consideredValue':4}") },
		{ "{'a':{'$mod':[2,1]}}", "{'a':'x'}",
		  ("{'operatorName':'$mod','specifiedAs':{'a':{'$mod':[2,1]}},'reason':'$mod did "
		   "not"
		   " evaluate to expected remainder','consideredValue':'x'}") },
		{ "{'a':{'$regex':'^x'}}", "{'a':'yx'}",
		  ("{'operatorName':'$regex','specifiedAs':{'a':{'$regex':'^x'}},'reason':'regular "
		   "e"
		   "xpression did not match','consideredValue':'yx'}") },
		{ "{'a':{'$regex':'^x','$options':'i'}}", "{'a':'yx'}",
		  ("{'operatorName':'$regex','specifiedAs':{'a':{'$regularExpression':{'pattern':'^"
		   "x"
		   "','options':'i'}}},'reason':'regular expression did not "
		   "match','consideredValue'"
		   ":'yx'}") },
		{ "{'a':{'$all':[1,2]}}", "{'a':[1,3]}",
		  ("{'operatorName':'$all','specifiedAs':{'a':{'$all':[1,2]}},'reason':'array did "
		   "no"
		   "t contain all specified values','consideredValues':[1,3,[1,3]]}") },
		{ "{'a':{'$elemMatch':{'$gt':5}}}", "{'a':[1,3]}",
		  ("{'operatorName':'$elemMatch','specifiedAs':{'a':{'$elemMatch':{'$gt':5}}},'"
		   "reaso"
		   "n':'array did not satisfy the child "
		   "predicate','consideredValues':[1,3,[1,3]]}") },
		{ "{'a':{'$elemMatch':{'b':1}}}", "{'a':[{'b':2}]}",
		  ("{'operatorName':'$elemMatch','specifiedAs':{'a':{'$elemMatch':{'b':1}}},'"
		   "reason'"
		   ":'array did not satisfy the child "
		   "predicate','consideredValues':[{'b':2},[{'b':2"
		   "}]]}") },
		{ "{'a':{'$bitsAllSet':[0,1]}}", "{'a':1}",
		  ("{'operatorName':'$bitsAllSet','specifiedAs':{'a':{'$bitsAllSet':[0,1]}},'"
		   "reason'"
		   ":'bitwise operator failed to match','consideredValue':1}") },
		{ "{'a':{'$bitsAnyClear':[0]}}", "{'a':1}",
		  ("{'operatorName':'$bitsAnyClear','specifiedAs':{'a':{'$bitsAnyClear':[0]}},'"
		   "reaso"
		   "n':'bitwise operator failed to match','consideredValue':1}") },
		{ "{'a':{'$not':{'$gt':1}}}", "{'a':2}",
		  ("{'operatorName':'$not','details':{'operatorName':'$gt','specifiedAs':{'a':{'$"
		   "gt'"
		   ":1}},'reason':'comparison succeeded','consideredValue':2}}") },
		{ "{'a':{'$not':{'$gt':1,'$lt':5}}}", "{'a':2}",
		  ("{'operatorName':'$not','details':{'operatorName':'$and','clausesSatisfied':[{'"
		   "in"
		   "dex':0,'details':{'operatorName':'$gt','specifiedAs':{'a':{'$gt':1}},'reason':'"
		   "c"
		   "omparison "
		   "succeeded','consideredValue':2}},{'index':1,'details':{'operatorName':"
		   "'$lt','specifiedAs':{'a':{'$lt':5}},'reason':'comparison "
		   "succeeded','consideredV"
		   "alue':2}}]}}") },
		{ "{'$expr':{'$eq':['$a',1]}}", "{'a':2}",
		  ("{'operatorName':'$expr','specifiedAs':{'$expr':{'$eq':['$a',1]}},'reason':'"
		   "expre"
		   "ssion did not match','expressionResult':false}") },
		{ "{'$jsonSchema':{'required':['b']}}", "{'a':2}",
		  ("{'operatorName':'$jsonSchema','schemaRulesNotSatisfied':[{'operatorName':'"
		   "requir"
		   "ed','specifiedAs':{'required':['b']},'missingProperties':['b']}]}") },
		{ "{'$alwaysFalse':1}", "{'a':2}",
		  ("{'operatorName':'$alwaysFalse','specifiedAs':{'$alwaysFalse':1},'reason':'"
		   "expres"
		   "sion did not match'}") },
		{ "{'a':1,'$expr':{'$eq':['$b',1]}}", "{'a':1,'b':2}",
		  ("{'operatorName':'$and','clausesNotSatisfied':[{'index':1,'details':{'"
		   "operatorNam"
		   "e':'$expr','specifiedAs':{'$expr':{'$eq':['$b',1]}},'reason':'expression did "
		   "not"
		   " match','expressionResult':false}}]}") },
		{ "{'a':1}", "{}",
		  ("{'operatorName':'$eq','specifiedAs':{'a':1},'reason':'field was missing'}") },
		{ "{'a.b':1}", "{'a':{'c':1}}",
		  ("{'operatorName':'$eq','specifiedAs':{'a.b':1},'reason':'field was missing'}") },
		{ "{'a.b':1}", "{'a':[{'b':2},{'b':3},{'c':1}]}",
		  ("{'operatorName':'$eq','specifiedAs':{'a.b':1},'reason':'comparison "
		   "failed','cons"
		   "ideredValues':[2,3]}") },
		{ "{'a':1}", "{'a':[2,3]}",
		  ("{'operatorName':'$eq','specifiedAs':{'a':1},'reason':'comparison "
		   "failed','consid"
		   "eredValues':[2,3,[2,3]]}") },
		{ "{'a.b':{'$gt':5}}", "{'a':[{'b':[1,2]},{'b':3}]}",
		  ("{'operatorName':'$gt','specifiedAs':{'a.b':{'$gt':5}},'reason':'comparison "
		   "faile"
		   "d','consideredValues':[1,2,[1,2],3]}") },
		{ "{'a':1}", "{'a':[]}",
		  ("{'operatorName':'$eq','specifiedAs':{'a':1},'reason':'comparison "
		   "failed','consid"
		   "eredValue':[]}") },
		{ "{'a.b':1}", "{'a':5}",
		  ("{'operatorName':'$eq','specifiedAs':{'a.b':1},'reason':'field was missing'}") },
		{ "{'a':{'b':1}}", "{'a':{'b':2}}",
		  ("{'operatorName':'$eq','specifiedAs':{'a':{'b':1}},'reason':'comparison "
		   "failed','"
		   "consideredValue':{'b':2}}") },
		{ "{'$or':[{'a':1,'b':1},{'$and':[{'c':1}]}]}", "{'a':1,'b':2,'c':2}",
		  ("{'operatorName':'$or','clausesNotSatisfied':[{'index':0,'details':{'"
		   "operatorName"
		   "':'$and','clausesNotSatisfied':[{'index':1,'details':{'operatorName':'$eq','"
		   "spec"
		   "ifiedAs':{'b':1},'reason':'comparison "
		   "failed','consideredValue':2}}]}},{'index':"
		   "1,'details':{'operatorName':'$and','clausesNotSatisfied':[{'index':0,'details':"
		   "{"
		   "'operatorName':'$eq','specifiedAs':{'c':1},'reason':'comparison "
		   "failed','conside"
		   "redValue':2}}]}}]}") },
		{ "{'$nor':[{'$or':[{'a':1},{'b':1}]}]}", "{'a':1,'b':2}",
		  ("{'operatorName':'$nor','clausesSatisfied':[{'index':0,'details':{'operatorName'"
		   ":"
		   "'$or','clausesSatisfied':[{'index':0,'details':{'operatorName':'$eq','"
		   "specifiedA"
		   "s':{'a':1},'reason':'comparison succeeded','consideredValue':1}}]}}]}") },
		{ "{'$nor':[{'a':1,'b':2}]}", "{'a':1,'b':2}",
		  ("{'operatorName':'$nor','clausesSatisfied':[{'index':0,'details':{'operatorName'"
		   ":"
		   "'$and','clausesSatisfied':[{'index':0,'details':{'operatorName':'$eq','"
		   "specified"
		   "As':{'a':1},'reason':'comparison "
		   "succeeded','consideredValue':1}},{'index':1,'de"
		   "tails':{'operatorName':'$eq','specifiedAs':{'b':2},'reason':'comparison "
		   "succeede"
		   "d','consideredValue':2}}]}}]}") },
		{ "{'$nor':[{'a':{'$gt':1}}]}", "{'a':2}",
		  ("{'operatorName':'$nor','clausesSatisfied':[{'index':0,'details':{'operatorName'"
		   ":"
		   "'$gt','specifiedAs':{'a':{'$gt':1}},'reason':'comparison "
		   "succeeded','consideredV"
		   "alue':2}}]}") },
		{ "{'$and':[{'$or':[{'a':1}]},{'$nor':[{'b':1}]}]}", "{'a':2,'b':1}",
		  ("{'operatorName':'$and','clausesNotSatisfied':[{'index':0,'details':{'"
		   "operatorNam"
		   "e':'$or','clausesNotSatisfied':[{'index':0,'details':{'operatorName':'$eq','"
		   "spec"
		   "ifiedAs':{'a':1},'reason':'comparison "
		   "failed','consideredValue':2}}]}},{'index':"
		   "1,'details':{'operatorName':'$nor','clausesSatisfied':[{'index':0,'details':{'"
		   "op"
		   "eratorName':'$eq','specifiedAs':{'b':1},'reason':'comparison "
		   "succeeded','conside"
		   "redValue':1}}]}}]}") },
		{ "{'a':{'$not':{'$regex':'x'}}}", "{'a':'x'}",
		  ("{'operatorName':'$not','details':{'operatorName':'$regex','specifiedAs':{'a':{'"
		   "$"
		   "regex':'x'}},'reason':'regular expression did "
		   "match','consideredValue':'x'}}") },
		{ "{'a':{'$not':{'$exists':true}}}", "{'a':'x'}",
		  ("{'operatorName':'$not','details':{'operatorName':'$exists','specifiedAs':{'a':{"
		   "'"
		   "$exists':true}},'reason':'path does exist'}}") },
		{ "{'a':{'$not':{'$in':[1]}}}", "{'a':1}",
		  ("{'operatorName':'$not','details':{'operatorName':'$in','specifiedAs':{'a':{'$"
		   "in'"
		   ":[1]}},'reason':'matching value found in array','consideredValue':1}}") },
		{ "{'a':{'$eq':1}}", "{'a':2}",
		  ("{'operatorName':'$eq','specifiedAs':{'a':{'$eq':1}},'reason':'comparison "
		   "failed'"
		   ",'consideredValue':2}") },
		{ "{'a':{'$lte':1,'$gte':0}}", "{'a':2}",
		  ("{'operatorName':'$and','clausesNotSatisfied':[{'index':0,'details':{'"
		   "operatorNam"
		   "e':'$lte','specifiedAs':{'a':{'$lte':1}},'reason':'comparison "
		   "failed','considere"
		   "dValue':2}}]}") },
		{ "{'a':{'$lt':1}}", "{'a':'x'}",
		  ("{'operatorName':'$lt','specifiedAs':{'a':{'$lt':1}},'reason':'comparison "
		   "failed'"
		   ",'consideredValue':'x'}") },
		{ "{'a':{'$gt':'a','$regex':'x','$options':'i'}}", "{'a':'y'}",
		  "{'operatorName':'$and','clausesNotSatisfied':[{'index':1,'details':{"
		  "'operatorName':'$regex','specifiedAs':{'a':{'$regex':'x','$options':'i'}},"
		  "'reason':'regular expression did not match','consideredValue':'y'}}]}" },
		{ "{'a':{'$gt':'z','$options':'i','$regex':'x'}}", "{'a':'X'}",
		  "{'operatorName':'$and','clausesNotSatisfied':[{'index':0,'details':{"
		  "'operatorName':'$gt','specifiedAs':{'a':{'$gt':'z'}},'reason':'comparison "
		  "failed','consideredValue':'X'}}]}" },
		{ "{'$nor':[{'$jsonSchema':{'required':['a']}}]}", "{'a':2}",
		  "{'operatorName':'$nor','clausesSatisfied':[{'index':0,'details':{"
		  "'operatorName':'$jsonSchema','reason':'schema matched'}}]}" },
		{ "{'$comment':'c','a':1}", "{'a':2}",
		  ("{'operatorName':'$eq','specifiedAs':{'a':1},'reason':'comparison "
		   "failed','consid"
		   "eredValue':2}") },
	};

	(void)state;
	for (size_t i = 0; i < CASES(cases); i++) {
		struct arena *arena = arena_new(CASE_BYTES);
		const struct explained e = { case_bson(arena, cases[i].filter),
					     case_bson(arena, cases[i].document) };
		struct buf out = BUF_INIT(CASE_BYTES);
		struct mql q = case_mql(arena);
		const char *got;

		assert_int_equal(explain_again(&q, &e, &out), STATUS_OK);
		got = case_json(arena, buf_str(&out));
		if (strcmp(got, cases[i].said) != 0)
			fail_msg("%s on %s:\n%s\nin place of\n%s", cases[i].filter,
				 cases[i].document, got, cases[i].said);
		case_memory(explain_again, &e, cases[i].filter);
		buf_release(&out);
		arena_free(arena);
	}
}

/* Of an array the first values are shown. */
static void
values_are_shown_up_to_a_limit(void **state)
{
	enum {
		SHOWN = 10,
	};

	(void)state;
	for (int count = SHOWN - 2; count <= SHOWN + 2; count++) {
		struct arena *arena = arena_new(CASE_BYTES);
		struct buf text = BUF_INIT(CASE_BYTES), out = BUF_INIT(CASE_BYTES);
		struct mql q = case_mql(arena);
		struct bson_value values;
		struct explained e;
		int wanted = count + 1 < SHOWN ? count + 1 : SHOWN;

		buf_append_cstr(&text, "{'a':[");
		for (int i = 0; i < count; i++)
			buf_printf(&text, "%s2", i ? "," : "");
		buf_append(&text, "]}", 3);
		e = (struct explained){ case_bson(arena, "{'a':1}"), case_bson(arena, text.ptr) };
		assert_int_equal(explain_again(&q, &e, &out), STATUS_OK);
		assert_true(bson_find(buf_str(&out), STR("consideredValues"), &values));
		assert_int_equal(bson_count(bson_text(&values)), wanted);
		assert_int_equal(bson_find(buf_str(&out), STR("consideredValuesTruncated"), NULL),
				 count + 1 > SHOWN);
		buf_release(&text);
		buf_release(&out);
		arena_free(arena);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conditions_that_do_not_hold_are_told),
		cmocka_unit_test(values_are_shown_up_to_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
