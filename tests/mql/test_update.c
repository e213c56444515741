#include "update_case.h"

static void
fields_are_set_and_taken_away(void **state)
{
	static const struct update_case cases[] = {
		{ "{'$set':{'b':2,'a':1}}", "{'_id':1}", "{'_id':1,'a':1,'b':2}", "a b" },
		{ "{'$set':{'a':1}}", "{'_id':1,'a':1}", "{'_id':1,'a':1}", "" },
		{ "{'$set':{'a':{'$numberLong':'1'}}}", "{'a':1.5}", "{'a':1}", "a" },
		{ "{'$set':{'a.b.c':1}}", "{'a':{'x':1}}", "{'a':{'x':1,'b':{'c':1}}}", "a.b" },
		{ "{'$set':{'a.10':1,'a.9':2}}", "{}", "{'a':{'9':2,'10':1}}", "a" },
		{ "{'$set':{'a.2':1}}", "{'a':[0]}", "{'a':[0,null,1]}", "a.1 a.2" },
		{ "{'$set':{'a.0.b':1}}", "{'a':[{}]}", "{'a':[{'b':1}]}", "a.0.b" },
		{ "{'$set':{'a.$b':1,'a.$c.d':2}}", "{'a':{'$b':0}}", "{'a':{'$b':1,'$c':{'d':2}}}",
		  "a.$b a.$c" },
		{ "{'$set':{'a.$b':1}}", "{}", "{'a':{'$b':1}}", "a" },
		{ "{'$set':{'a.$[':1,'a.$[x':2}}", "{'a':{}}", "{'a':{'$[':1,'$[x':2}}",
		  "a.$[ a.$[x" },
		{ "{'$setOnInsert':{'$a':1}}", "{'b':1}", "{'b':1}", "" },
		{ "{'$unset':{'a.b':'','c':1}}", "{'a':{'b':1}}", "{'a':{}}", "a.b" },
		{ "{'$unset':{'a.0':1}}", "{'a':[1,2]}", "{'a':[null,2]}", "a.0" },
		{ "{'$unset':{'a.0':1}}", "{'a':[null,2]}", "{'a':[null,2]}", "" },
		{ "{'$unset':{'a.b':1}}", "{'a':3}", "{'a':3}", "" },
		{ "{'$unset':{'a.b':1}}", "{'a':{'b':null}}", "{'a':{}}", "a.b" },
		{ "{'$rename':{'a':'c.d'}}", "{'a':1,'b':2}", "{'b':2,'c':{'d':1}}", "a c" },
		{ "{'$rename':{'x':'y'}}", "{'a':1}", "{'a':1}", "" },
		{ "{'$rename':{'a.1.b':'y'}}", "{'a':[1]}", "{'a':[1]}", "" },
		{ "{'$pop':{'a.b':1,'c.5':1}}", "{'a':{},'c':[]}", "{'a':{},'c':[]}", "" },
		{ "{'$setOnInsert':{'a':1}}", "{'b':1}", "{'b':1}", "" },
		{ "{'$set':{'a.$.b':1}}", "{'a':[{},{}]}", "{'a':[{},{'b':1}]}", "a.1.b" },
		{ "{'$inc':{'a.$[]':1}}", "{'a':[1,2]}", "{'a':[2,3]}", "a.0 a.1" },
		{ "{'$set':{'a.$[]':0,'x.a':1,'x.b':2}}", "{'a':[1]}",
		  "{'a':[0],'x':{'a':1,'b':2}}", "a.0 x" },
		{ "{'$currentDate':{'a':true}}", "{}", "{'a':{'$date':'2023-11-14T22:13:20.123Z'}}",
		  "a" },
	};

	check_updates(*state, cases, CASES(cases));
}

static void
numbers_become_as_wide_as_needed(void **state)
{
	static const struct update_case cases[] = {
		{ "{'$inc':{'a':1}}", "{'a':2147483647}", "{'a':2147483648}", "a" },
		{ "{'$inc':{'a':0.5}}", "{'a':1}", "{'a':1.5}", "a" },
		{ "{'$inc':{'a':0}}", "{'a':1}", "{'a':1}", "" },
		{ "{'$inc':{'a':5}}", "{}", "{'a':5}", "a" },
		{ "{'$inc':{'a':{'$numberDecimal':'0.1'}}}", "{'a':1}",
		  "{'a':{'$numberDecimal':'1.1'}}", "a" },
		{ "{'$inc':{'a':0.0}}", "{'a':{'$numberDouble':'-0.0'}}", "{'a':-0.0}", "" },
		{ "{'$mul':{'a':{'$numberDouble':'-1.0'}}}", "{'a':{'$numberDouble':'0.0'}}",
		  "{'a':0.0}", "" },
		{ "{'$inc':{'a':{'$numberDouble':'-0.0'}}}", "{'a':0}", "{'a':0.0}", "a" },
		{ "{'$inc':{'a':{'$numberDecimal':'0.00'}}}", "{'a':{'$numberDecimal':'1.0'}}",
		  "{'a':{'$numberDecimal':'1.0'}}", "" },
		{ "{'$mul':{'a':3}}", "{'a':4}", "{'a':12}", "a" },
		{ "{'$mul':{'a':3}}", "{}", "{'a':0}", "a" },
		{ "{'$min':{'a':3}}", "{'a':4}", "{'a':3}", "a" },
		{ "{'$min':{'a':'x'}}", "{'a':4}", "{'a':4}", "" },
		{ "{'$max':{'a':'x'}}", "{'a':4}", "{'a':'x'}", "a" },
		{ "{'$bit':{'a':{'and':12,'or':3}}}", "{'a':6}", "{'a':7}", "a" },
		{ "{'$bit':{'a':{'or':1}}}", "{'a':{'$numberLong':'4294967296'}}",
		  "{'a':4294967297}", "a" },
	};

	check_updates(*state, cases, CASES(cases));
}

static void
arrays_grow_and_shrink(void **state)
{
	static const struct update_case cases[] = {
		{ "{'$push':{'a':3}}", "{'a':[1]}", "{'a':[1,3]}", "a.1" },
		{ "{'$push':{'a':3}}", "{}", "{'a':[3]}", "a" },
		{ "{'$push':{'a':{'$each':[3,4]}}}", "{'a':[1]}", "{'a':[1,3,4]}", "a.1 a.2" },
		{ "{'$push':{'a':{'$each':[]}}}", "{'a':[1]}", "{'a':[1]}", "" },
		{ "{'$addToSet':{'a':{'$each':[1.0,2,2]}}}", "{'a':[1]}", "{'a':[1,2]}", "a.1" },
		{ "{'$addToSet':{'a':[1]}}", "{'a':[1]}", "{'a':[1,[1]]}", "a.1" },
		{ "{'$pop':{'a':1}}", "{'a':[1,2,3]}", "{'a':[1,2]}", "a" },
		{ "{'$pop':{'a':-1}}", "{'a':[1,2,3]}", "{'a':[2,3]}", "a" },
		{ "{'$pull':{'a':{'$gte':2}}}", "{'a':[1,2,3]}", "{'a':[1]}", "a" },
		{ "{'$pull':{'a':{'b':1}}}", "{'a':[{'b':1,'c':2},{'b':2},1]}", "{'a':[{'b':2},1]}",
		  "a" },
		{ "{'$pull':{'a':2}}", "{'a':[1,2,2.0]}", "{'a':[1]}", "a" },
		{ "{'$pull':{'a':{'$or':[{'b':1},{'c':2}]}}}",
		  "{'a':[{'b':1},{'b':2,'c':2},{'b':3},1]}", "{'a':[{'b':3},1]}", "a" },
		{ "{'$pull':{'a':{'$nor':[{'b':1}]}}}", "{'a':[{'b':1},{},1]}", "{'a':[{'b':1},1]}",
		  "a" },
		{ "{'$pull':{'a':{'$id':1}}}", "{'a':[{'$ref':'c','$id':1},{'$id':2}]}",
		  "{'a':[{'$id':2}]}", "a" },
		{ "{'$pull':{'a':9}}", "{'a':[1]}", "{'a':[1]}", "" },
		{ "{'$pull':{'a':{'$all':[1,2]}}}", "{'a':[[2,1],[1],1]}", "{'a':[[1],1]}", "a" },
		{ "{'$pull':{'a':{'$all':[1]}}}", "{'a':[[2,1],[2],1]}", "{'a':[[2]]}", "a" },
		{ "{'$pull':{'a':{'$gte':2}}}", "{'a':[[1,2],[1],2]}", "{'a':[[1]]}", "a" },
		{ "{'$pull':{'a':{'$elemMatch':{'$gte':2}}}}", "{'a':[[1,2],[[2]],2]}",
		  "{'a':[[[2]],2]}", "a" },
		{ "{'$pullAll':{'a':[1,3]}}", "{'a':[1,2,3]}", "{'a':[2]}", "a" },
	};

	check_updates(*state, cases, CASES(cases));
}

static void
pushed_elements_are_placed_sorted_and_cut(void **state)
{
	static const struct update_case cases[] = {
		{ "{'$push':{'a':{'$each':[8,9],'$position':1}}}", "{'a':[1,2]}", "{'a':[1,8,9,2]}",
		  "a" },
		{ "{'$push':{'a':{'$position':-1,'$each':[8,9]}}}", "{'a':[1,2]}",
		  "{'a':[1,8,9,2]}", "a" },
		{ "{'$push':{'a':{'$each':[8],'$position':-9}}}", "{'a':[1,2]}", "{'a':[8,1,2]}",
		  "a" },
		{ "{'$push':{'a':{'$each':[8],'$position':9.0}}}", "{'a':[1,2]}", "{'a':[1,2,8]}",
		  "a.2" },
		{ "{'$push':{'a':{'$each':[8],'$position':1}}}", "{}", "{'a':[8]}", "a" },
		{ "{'$push':{'a':{'$each':[3,4],'$slice':3}}}", "{'a':[1,2]}", "{'a':[1,2,3]}",
		  "a.2" },
		{ "{'$push':{'a':{'$each':[3,4],'$slice':-3}}}", "{'a':[1,2]}", "{'a':[2,3,4]}",
		  "a" },
		{ "{'$push':{'a':{'$each':[3],'$slice':0}}}", "{'a':[1,2]}", "{'a':[]}", "a" },
		{ "{'$push':{'a':{'$each':[3],'$slice':-9}}}", "{'a':[1]}", "{'a':[1,3]}", "a.1" },
		{ "{'$push':{'a':{'$each':[3],'$slice':2}}}", "{'a':[1,2]}", "{'a':[1,2]}", "" },
		{ "{'$push':{'a':{'$each':[1],'$slice':-1}}}", "{'a':[1]}", "{'a':[1]}", "" },
		{ "{'$push':{'a':{'$each':[],'$slice':1}}}", "{}", "{'a':[]}", "a" },
		{ "{'$push':{'a':{'$each':[2],'$sort':1}}}", "{'a':[3,1,'x',null,[0],{'b':1}]}",
		  "{'a':[null,1,2,3,'x',{'b':1},[0]]}", "a" },
		{ "{'$push':{'a':{'$each':[2],'$sort':-1}}}", "{'a':[3,1]}", "{'a':[3,2,1]}", "a" },
		{ "{'$push':{'a':{'$each':[2],'$sort':1}}}", "{'a':[1,1.5]}", "{'a':[1,1.5,2]}",
		  "a.2" },
		{ "{'$push':{'a':{'$each':[],'$sort':1}}}", "{'a':[1,2]}", "{'a':[1,2]}", "" },
		{ "{'$push':{'a':{'$each':[{'b':{'c':1}}],'$sort':{'b.c':1}}}}",
		  "{'a':[{'b':{'c':2}},{'b':3},7]}",
		  "{'a':[{'b':3},7,{'b':{'c':1}},{'b':{'c':2}}]}", "a" },
		{ "{'$push':{'a':{'$each':[],'$sort':{'b.0':-1}}}}",
		  "{'a':[{'b':[1,9]},{'b':[2,0]}]}", "{'a':[{'b':[2,0]},{'b':[1,9]}]}", "a" },
		{ "{'$push':{'a':{'$each':[],'$sort':{'b':1,'c':-1}}}}",
		  "{'a':[{'b':1,'c':1},{'b':0},{'b':1,'c':2},{'b':1,'c':1,'d':0}]}",
		  "{'a':[{'b':0},{'b':1,'c':2},{'b':1,'c':1},{'b':1,'c':1,'d':0}]}", "a" },
		{ "{'$push':{'a':{'$each':[5,4],'$sort':-1,'$slice':2,'$position':0}}}",
		  "{'a':[1,9]}", "{'a':[9,5]}", "a" },
		{ "{'$push':{'a':{'$sort':1}}}", "{'a':[3,1]}", "{'a':[3,1,{'$sort':1}]}", "a.2" },
	};

	check_updates(*state, cases, CASES(cases));
}

static void
array_filters_choose_elements(void **state)
{
	struct mql q = case_mql(*state);
	struct mql_updated u;

	assert_int_equal(update(&q, "{'$set':{'a.$[x].b':9}}", "{'f':[{'x.b':{'$gt':1}}]}",
				"{'a':[{'b':1},{'b':2},{'b':3}]}", -1, false, &u),
			 STATUS_OK);
	assert_string_equal(case_json(*state, u.document), "{'a':[{'b':1},{'b':9},{'b':9}]}");
	assert_string_equal(paths_of(*state, &u), "a.1.b a.2.b");
}

static void
replacements_keep_the_id(void **state)
{
	struct mql q = case_mql(*state);
	struct mql_updated u;

	assert_int_equal(update(&q, "{'b':2}", NULL, "{'_id':7,'a':1}", -1, false, &u), STATUS_OK);
	assert_true(u.replaced && u.changed);
	assert_string_equal(case_json(*state, u.document), "{'_id':7,'b':2}");
	assert_int_equal(update(&q, "{'_id':8}", NULL, "{'_id':7}", -1, false, &u), STATUS_INVALID);
	assert_int_equal(q.code, MQL_IMMUTABLE_FIELD);
}

/* A door reads these paths of a document, or all of it. */
static void
paths_of_modifiers_are_looked_at_or_all(void **state)
{
	static const struct {
		const char *update, *paths; /* NULL: all */
	} cases[] = {
		{ "{'$set':{'a.b':1},'$inc':{'c':1}}", "a.b c" },
		{ "{'$push':{'a.0.b':1}}", "a.0.b" },
		{ "{'$unset':{'a':1}}", "a" },
		{ "{'$set':{'a.$.b':1}}", NULL },
		{ "{'$set':{'a.b':1,'c.$[].d':1}}", NULL },
		{ "{'b':2}", NULL },
		{ "{}", NULL },
	};
	struct mql q = case_mql(*state);

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql_paths looks = { .all = false };
		struct mql_updated u = { .paths = looks.paths };
		struct mql_update *made;

		assert_int_equal(mql_update_compile(&q, case_bson(*state, cases[i].update),
						    BSON_EMPTY, &made),
				 STATUS_OK);
		mql_update_paths(made, &looks);
		assert_int_equal(looks.all, !cases[i].paths);
		u.count = looks.count;
		if (cases[i].paths)
			assert_string_equal(paths_of(*state, &u), cases[i].paths);
		/* Others may look at more of it. */
		looks = (struct mql_paths){ .all = true };
		mql_update_paths(made, &looks);
		assert_true(looks.all);
	}
}

static void
more_paths_than_there_is_room_for_are_all(void **state)
{
	for (unsigned extra = 0; extra < 2; extra++) {
		struct mql q = case_mql(*state);
		struct mql_paths looks = { .all = false };
		struct str fields = STR("'a0':1");
		struct mql_update *made;

		for (unsigned i = 1; i < MQL_PATHS_MOST + extra; i++)
			fields = arena_printf(*state, "%.*s,'a%u':1", STR_ARG(fields), i);
		fields = arena_printf(*state, "{'$set':{%.*s}}", STR_ARG(fields));
		assert_int_equal(
			mql_update_compile(&q, case_bson(*state, fields.ptr), BSON_EMPTY, &made),
			STATUS_OK);
		mql_update_paths(made, &looks);
		assert_int_equal(looks.all, extra);
		assert_int_equal(looks.count, MQL_PATHS_MOST);
	}
}

static void
upserts_begin_with_what_the_filter_says(void **state)
{
	struct mql q = case_mql(*state);
	struct mql_match *m;
	struct mql_updated u;
	struct str document;

	assert_int_equal(mql_match_compile(&q,
					   case_bson(*state, "{'b.c':2,'$and':[{'_id':5}],"
							     "'d':{'$gt':1},'e':{'$eq':3},"
							     "'$or':[{'f':4}]}"),
					   &m),
			 STATUS_OK);
	assert_int_equal(mql_upsert_document(m, &q, &document), STATUS_OK);
	assert_string_equal(case_json(*state, document), "{'_id':5,'b':{'c':2},'e':3,'f':4}");
	assert_int_equal(update(&q, "{'$set':{'$a.b':1}}", NULL, "{}", -1, true, &u), STATUS_OK);
	assert_non_null(strstr(case_json(*state, u.document), "'$a':{'b':1}"));
	assert_int_equal(update(&q, "{'$setOnInsert':{'z':1},'$inc':{'n':1}}", NULL,
				case_json(*state, document), -1, true, &u),
			 STATUS_OK);
	assert_string_equal(case_json(*state, u.document),
			    "{'_id':5,'b':{'c':2},'e':3,'f':4,'n':1,'z':1}");
	assert_int_equal(mql_match_compile(&q, case_bson(*state, "{'$and':[{'a':1},{'a':2}]}"), &m),
			 STATUS_OK);
	assert_int_equal(mql_upsert_document(m, &q, &document), STATUS_INVALID);
	assert_int_equal(q.code, MQL_NOT_SINGLE_VALUE);
}

static void
mistakes_have_mongodbs_codes(void **state)
{
	static const struct {
		const char *update, *document;
		int code;
		const char *text;
	} cases[] = {
		{ "{'$foo':{'a':1}}", "{}", 9, "Unknown modifier: $foo. Expected a valid update" },
		{ "{'$set':1}", "{}", 9, "Modifiers operate on fields but we found type int" },
		{ "{'$set':{'a':1},'$inc':{'a.b':1}}", "{}", 40,
		  "Updating the path 'a.b' would create a conflict at 'a'" },
		{ "{'$set':{'a.$.b':1,'a.1.b':2}}", "{'a':[{},{}]}", 40, "Updating the path" },
		{ "{'$set':{'':1}}", "{}", 56, "An empty update path is not valid." },
		{ "{'$set':{'a..b':1}}", "{}", 56, "The update path 'a..b' contains an empty" },
		{ "{'$set':{'$.a':1}}", "{}", 2, "Cannot have positional" },
		{ "{'$set':{'a.$[x]':1}}", "{}", 2, "No array filter found for identifier 'x'" },
		{ "{'$set':{'a.b':1}}", "{'a':1}", 28,
		  "Cannot create field 'b' in element {a: 1}" },
		{ "{'$set':{'a.b':1}}", "{'a':[]}", 28, "Cannot create field 'b'" },
		{ "{'$pop':{'a.b':1}}", "{'a':1}", 28,
		  "Cannot use the part (b) of (a.b) to traverse the element ({a: 1})" },
		{ "{'$pull':{'a.b.c':1}}", "{'a':'x'}", 28, "Cannot use the part (b) of (a.b.c)" },
		{ "{'$pullAll':{'a.b':[1]}}", "{'a':[]}", 28, "Cannot use the part (b)" },
		{ "{'$rename':{'a.b':'c'}}", "{'a':1}", 28,
		  "Cannot use the part (b) of (a.b) to traverse the element ({a: 1})" },
		{ "{'$rename':{'a.b':'c'}}", "{'a':[{'b':1}]}", 28, "Cannot use the part (b)" },
		{ "{'$rename':{'a.0.b':'c'}}", "{'a':[{'b':1}]}", 2, "The source field cannot be" },
		{ "{'$rename':{'a':'b.c'}}", "{'a':1,'b':2}", 28, "Cannot create field 'c'" },
		{ "{'$rename':{'a.$':'b'}}", "{'a':[1]}", 2,
		  "The source and target field for $rename may not be dynamic: a.$" },
		{ "{'$rename':{'a':'b.$[]'}}", "{'a':1}", 2,
		  "The source and target field for $rename may not be dynamic: a" },
		{ "{'$set':{'_id':2}}", "{'_id':1}", 66, "Performing an update on the path '_id'" },
		{ "{'$unset':{'_id':2}}", "{'_id':1}", 66, "Performing an update" },
		{ "{'$inc':{'a':'x'}}", "{}", 14,
		  "Cannot increment with non-numeric argument: {a:" },
		{ "{'$inc':{'a':1}}", "{'a':'x'}", 14, "Cannot apply $inc to a value of non-num" },
		{ "{'$inc':{'a':1}}", "{'a':{'$numberLong':'9223372036854775807'}}", 2,
		  "Failed to apply $inc operations to current value" },
		{ "{'$push':{'a':1}}", "{'a':1}", 2, "The field 'a' must be an array" },
		{ "{'$push':{'a':{'$each':[1],'$sort':1}}}", "{'a':1}", 2,
		  "The field 'a' must be an array" },
		{ "{'$push':{'a':{'$each':[],'$position':1.5}}}", "{}", 2,
		  "The value for $position must be an integer value, not of type: double" },
		{ "{'$push':{'a':{'$each':[],'$slice':'x'}}}", "{}", 2,
		  "The value for $slice must be an integer value but was given type: string" },
		{ "{'$push':{'a':{'$each':[],'$sort':2}}}", "{}", 2,
		  "The $sort element value must be either 1 or -1" },
		{ "{'$push':{'a':{'$each':[],'$sort':{'b':'x'}}}}", "{}", 2,
		  "The $sort element value must be either 1 or -1" },
		{ "{'$push':{'a':{'$each':[],'$sort':{}}}}", "{}", 2,
		  "The $sort pattern is empty when it should be a set of fields." },
		{ "{'$push':{'a':{'$each':[],'$sort':true}}}", "{}", 2, "The $sort is invalid" },
		{ "{'$push':{'a':{'$each':[],'$sort':{'b.':1}}}}", "{}", 2,
		  "The $sort field is a dotted field but has an empty part: b." },
		{ "{'$push':{'a':{'$each':[],'$sort':{'':1}}}}", "{}", 2,
		  "The $sort field cannot be empty" },
		{ "{'$push':{'a':{'$each':[],'$x':1}}}", "{}", 2,
		  "Unrecognized clause in $push: $x" },
		{ "{'$push':{'a':{'$each':[],'$sort':{'b':1,'c':1},'$sort':{'d':1}}}}", "{}", 2,
		  "Only one $sort is supported." },
		{ "{'$push':{'a':{'$slice':1,'$each':[],'$slice':1}}}", "{}", 2,
		  "Only one $slice is supported." },
		{ "{'$push':{'a':{'$each':[],'$each':[]}}}", "{}", 2,
		  "Only one $each is supported." },
		{ "{'$addToSet':{'a':{'$each':[],'$slice':1}}}", "{}", 2,
		  "Unrecognized clause in $addToSet: $slice" },
		{ "{'$addToSet':{'a':1}}", "{'a':1}", 2, "Cannot apply $addToSet to non-array" },
		{ "{'$pop':{'a':2}}", "{}", 9, "$pop expects 1 or -1, found: 2" },
		{ "{'$pop':{'a':1}}", "{'a':1}", 14, "Path 'a' contains an element of non-array" },
		{ "{'$pull':{'a':1}}", "{'a':1}", 2, "Cannot apply $pull to a non-array value" },
		{ "{'$rename':{'a':1}}", "{}", 2, "The 'to' field for $rename must be a string" },
		{ "{'$rename':{'a':'b\\u0000c'}}", "{}", 2,
		  "The 'to' field for $rename cannot contain an embedded null byte" },
		{ "{'$currentDate':{'a':1}}", "{}", 2, "int is not valid type for $currentDate" },
		{ "{'$currentDate':{'a':{'$type':'x'}}}", "{}", 2,
		  "The '$type' string field is required to be 'date' or 'timestamp'" },
		{ "{'$currentDate':{'a':{'$type':1}}}", "{}", 2, "The '$type' string field is" },
		{ "{'$currentDate':{'a':{}}}", "{}", 2, "The '$type' string field is" },
		{ "{'$currentDate':{'a':{'$type':'date','x':1}}}", "{}", 2,
		  "The '$type' string field is" },
		{ "{'$push':{'a':{'$each':1}}}", "{}", 2,
		  "The argument to $each in $push must be an array but it was of type: int" },
		{ "{'$addToSet':{'a':{'$each':'x'}}}", "{}", 14,
		  "The argument to $each in $addToSet must be an array but it was of type: str" },
		{ "{'$bit':{'a':{'not':1}}}", "{}", 2, "The $bit modifier only supports" },
		{ "{'$bit':{'a':{'or':1}}}", "{'a':1.0}", 2,
		  "Cannot apply $bit to a value of non-integral type." },
		{ "{'$set':{'a.20000':1}}", "{'a':[]}", 2, "Cannot put more than 10000 nulls" },
		{ "{'a':1,'$set':{'b':1}}", "{}", 52, "The dollar ($) prefixed field '$set'" },
		{ "{'$set':{'$a':1}}", "{}", 52, "The dollar ($) prefixed field '$a' in '$a'" },
		{ "{'$inc':{'$a.b':1}}", "{'$a':{}}", 52,
		  "The dollar ($) prefixed field '$a' in '$a.b'" },
		{ "{'$rename':{'a':'$b'}}", "{'a':1}", 52,
		  "The dollar ($) prefixed field '$b' in '$b'" },
		{ "{'$rename':{'a.$[]':'b'}}", "{'a':[]}", 2,
		  "The source and target field for $rename may not be dynamic: a.$[]" },
		{ "{'$set':{'b.a.$[]':1}}", "{}", 2, "The path 'b.a' must exist in the document" },
		{ "{'$set':{'$':1}}", "{}", 2, "Cannot have positional (i.e. '$') element" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct mql_updated u;

		if (update(&q, cases[i].update, NULL, cases[i].document, 1, false, &u) !=
		    STATUS_INVALID)
			fail_msg("%s is not refused", cases[i].update);
		if (q.code != cases[i].code)
			fail_msg("%s: %d: %s", cases[i].update, q.code, case_err.text);
		if (strncmp(case_err.text, cases[i].text, strlen(cases[i].text)))
			fail_msg("%s: %s", cases[i].update, case_err.text);
	}
}

static void
mistakes_in_array_filters_have_mongodbs_codes(void **state)
{
	static const struct {
		const char *filters;
		int code; /* 0: none */
		const char *text;
	} cases[] = {
		{ "{'f':[{'x.b':1}]}", 0, "" },
		{ "{'f':[{'x.b':1},{'x1B':1}]}", 9,
		  "The array filter for identifier 'x1B' was not used" },
		{ "{'f':[{'$or':[{'x.b':1},{'x.b':2}]}]}", 0, "" },
		{ "{'f':[{'$and':[{'$nor':[{'x.b':1}]}]}]}", 0, "" },
		{ "{'f':[{'x':1},{'y':1}]}", 9,
		  "The array filter for identifier 'y' was not used" },
		{ "{'f':[{'x':1},{'x':2}]}", 9,
		  "Found multiple array filters with the same top-level field name x" },
		{ "{'f':[1]}", 14, "BSON field 'arrayFilters.0' is the wrong type 'int'" },
		{ "{'f':[{}]}", 9, "Cannot use an expression without a top-level field name" },
		{ "{'f':[{'$and':[{}]}]}", 9, "Cannot use an expression without a top-level" },
		{ "{'f':[{'$expr':true}]}", 224, "Error parsing array filter" },
		{ "{'f':[{'$and':[]}]}", 2, "Error parsing array filter" },
		{ "{'f':[{'$and':1}]}", 2, "Error parsing array filter" },
		{ "{'f':[{'$and':{'0':{'x':1}}}]}", 2, "Error parsing array filter" },
		{ "{'f':[{'.x':1}]}", 2, "Error parsing array filter" },
		{ "{'f':[{'$and':[1]}]}", 2, "Error parsing array filter" },
		{ "{'f':[{'X.b':1}]}", 2,
		  "Error parsing array filter :: caused by :: The top-level field name must be an "
		  "alphanumeric string beginning with a lowercase letter, found 'X'" },
		{ "{'f':[{'1x':1}]}", 2, "Error parsing array filter" },
		{ "{'f':[{'{x':1}]}", 2, "Error parsing array filter" },
		{ "{'f':[{'':1}]}", 2, "Error parsing array filter" },
		{ "{'f':[{'x_y':1}]}", 2,
		  "Error parsing array filter :: caused by :: The top-level field name must be an "
		  "alphanumeric string beginning with a lowercase letter, found 'x_y'" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct mql_updated u;
		enum status status = update(&q, "{'$set':{'a.$[x].b':1}}", cases[i].filters,
					    "{'a':[{'b':1}]}", -1, false, &u);

		if (status != (cases[i].code ? STATUS_INVALID : STATUS_OK))
			fail_msg("%s: %s", cases[i].filters, status_name(status));
		if (q.code != cases[i].code)
			fail_msg("%s: %d: %s", cases[i].filters, q.code, case_err.text);
		if (cases[i].code &&
		    strncmp(case_err.text, cases[i].text, strlen(cases[i].text)) != 0)
			fail_msg("%s: %s", cases[i].filters, case_err.text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fields_are_set_and_taken_away, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(numbers_become_as_wide_as_needed, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(arrays_grow_and_shrink, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(pushed_elements_are_placed_sorted_and_cut,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(array_filters_choose_elements, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(replacements_keep_the_id, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(paths_of_modifiers_are_looked_at_or_all, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(more_paths_than_there_is_room_for_are_all,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(upserts_begin_with_what_the_filter_says, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(mistakes_have_mongodbs_codes, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(mistakes_in_array_filters_have_mongodbs_codes,
						case_setup, case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
