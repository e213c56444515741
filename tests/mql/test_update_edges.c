/* Updates by class: arguments and values of each type, paths of each form, many members. */
#include "base/rand.h"
#include "mql/update/update_int.h"

#include "samples.h"
#include "update_case.h"

enum {
	PATHS_BYTES = 1 << 27,
};

static enum status
run_one(struct mql *q, struct str change, struct str document, struct mql_updated *ret)
{
	const struct mql_update_on on = { document, -1, false };
	struct mql_update *u;

	TRY(mql_update_compile(q, change, BSON_EMPTY, &u));
	return mql_update_run(u, q, &on, ret);
}

static void
check_code(struct arena *arena, const char *change, const char *document, int code)
{
	const struct update_run run = { case_bson(arena, change), case_bson(arena, document) };
	struct mql q = case_mql(arena);
	struct mql_updated u;
	enum status status;

	case_memory(update_again, &run, change);
	case_err = (struct err){ 0 };
	status = update(&q, change, NULL, document, 1, false, &u);
	if (status != (code ? STATUS_INVALID : STATUS_OK) || q.code != code)
		fail_msg("%s on %s: %s %d, not %d: %s", change, document, status_name(status),
			 q.code, code, case_err.text);
}

static void
arguments_are_of_the_types_that_operators_take(void **state)
{
	static const struct {
		const char *operator;
		int other;
		const char *codes;
	} cases[] = {
		{ "$set", 0, "" },
		{ "$setOnInsert", 0, "" },
		{ "$unset", 0, "" },
		{ "$inc", 14, "double:0 int:0 long:0 decimal:0" },
		{ "$mul", 14, "double:0 int:0 long:0 decimal:0" },
		{ "$min", 0, "" },
		{ "$max", 0, "" },
		{ "$rename", 2, "string:0" },
		{ "$currentDate", 2, "bool:0" },
		{ "$push", 0, "" },
		{ "$addToSet", 0, "" },
		{ "$pop", 9, "int:0 long:0 decimal:0" },
		{ "$pull", 0, "" },
		{ "$pullAll", 2, "array:0" },
		{ "$bit", 2, "" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		for (size_t k = 0; k < CASES(samples); k++) {
			struct str change = arena_printf(*state, "{'%s':{'a':%s}}",
							 cases[i].operator, samples[k].value);

			check_code(*state, change.ptr, "{'c':1}",
				   code_of(cases[i].codes, samples[k].type, cases[i].other));
		}
	}
}

static void
values_are_of_the_types_that_operators_change(void **state)
{
	static const struct {
		const char *update;
		int other;
		const char *codes;
	} cases[] = {
		{ "{'$set':{'a':7}}", 0, "" },
		{ "{'$unset':{'a':7}}", 0, "" },
		{ "{'$inc':{'a':7}}", 14, "double:0 int:0 long:0 decimal:0" },
		{ "{'$mul':{'a':7}}", 14, "double:0 int:0 long:0 decimal:0" },
		{ "{'$min':{'a':7}}", 0, "" },
		{ "{'$max':{'a':7}}", 0, "" },
		{ "{'$rename':{'a':'d'}}", 0, "" },
		{ "{'$currentDate':{'a':true}}", 0, "" },
		{ "{'$push':{'a':7}}", 2, "array:0" },
		{ "{'$push':{'a':{'$each':[7],'$slice':1}}}", 2, "array:0" },
		{ "{'$addToSet':{'a':7}}", 2, "array:0" },
		{ "{'$addToSet':{'a':{'$each':[7]}}}", 2, "array:0" },
		{ "{'$pop':{'a':1}}", 14, "array:0" },
		{ "{'$pull':{'a':1}}", 2, "array:0" },
		{ "{'$pullAll':{'a':[1]}}", 2, "array:0" },
		{ "{'$bit':{'a':{'or':1}}}", 2, "int:0 long:0" },
		{ "{'$set':{'a.$[]':7}}", 2, "array:0" },
		{ "{'$set':{'a.$[].b':7}}", 2, "array:28" },
		{ "{'$set':{'a.b':7}}", 28, "object:0" },
		{ "{'$set':{'a.1':7}}", 28, "object:0 array:0" },
		{ "{'$unset':{'a.b':7}}", 0, "" },
		{ "{'$inc':{'a.b':7}}", 28, "object:0" },
		{ "{'$pop':{'a.c':1}}", 28, "object:0" },
		{ "{'$pull':{'a.c':1}}", 28, "object:0" },
		{ "{'$pullAll':{'a.c':[1]}}", 28, "object:0" },
		{ "{'$rename':{'a.b':'d'}}", 28, "object:0" },
		{ "{'$rename':{'c':'a.d'}}", 28, "object:0 array:2" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		for (size_t k = 0; k < CASES(samples); k++) {
			struct str doc = arena_printf(*state, "{'a':%s,'c':1}", samples[k].value);

			check_code(*state, cases[i].update, doc.ptr,
				   code_of(cases[i].codes, samples[k].type, cases[i].other));
		}
	}
}

/* The least or the most of two values of any types: the type's place in the order decides. */
static void
least_and_most_are_of_all_types(void **state)
{
	/* In the order of types; the numbers are equal to each other but for the first. */
	static const char *const order[] = {
		"{'$minKey':1}",
		"null",
		"1",
		"1.5",
		"'x'",
		"{'b':1}",
		"[1]",
		"{'$binary':{'base64':'AA==','subType':'00'}}",
		"{'$oid':'0123456789abcdef01234567'}",
		"true",
		"{'$date':'2024-01-01T00:00:00Z'}",
		"{'$timestamp':{'t':1,'i':1}}",
		"{'$maxKey':1}",
	};

	for (size_t i = 0; i < CASES(order); i++) {
		for (size_t k = 0; k < CASES(order); k++) {
			const char *left = order[i < k ? i : k], *right = order[i < k ? k : i];
			struct str doc = arena_printf(*state, "{'a':%s,'b':%s}", order[i],
						      order[i]);
			struct str change = arena_printf(
				*state, "{'$min':{'a':%s},'$max':{'b':%s}}", order[k], order[k]);
			struct str wanted = arena_printf(*state, "{'a':%s,'b':%s}", left, right);
			struct mql q = case_mql(*state);
			struct mql_updated u;

			assert_int_equal(update(&q, change.ptr, NULL, doc.ptr, -1, false, &u),
					 STATUS_OK);
			assert_string_equal(case_json(*state, u.document),
					    case_json(*state, case_bson(*state, wanted.ptr)));
			assert_string_equal(paths_of(*state, &u), i < k ? "b" : i > k ? "a" : "");
		}
	}
}

static void
numbers_at_their_edges(void **state)
{
	static const struct update_case cases[] = {
		{ "{'$inc':{'a':-1}}", "{'a':-2147483648}", "{'a':-2147483649}", "a" },
		{ "{'$mul':{'a':2}}", "{'a':1073741823}", "{'a':2147483646}", "a" },
		{ "{'$mul':{'a':2}}", "{'a':1073741824}", "{'a':2147483648}", "a" },
		{ "{'$mul':{'a':1.5}}", "{}", "{'a':0.0}", "a" },
		{ "{'$mul':{'a':{'$numberLong':'5'}}}", "{}", "{'a':0}", "a" },
		{ "{'$mul':{'a':1}}", "{'a':{'$numberDecimal':'1.0'}}",
		  "{'a':{'$numberDecimal':'1.0'}}", "" },
		{ "{'$inc':{'a':0}}", "{'a':{'$numberDouble':'NaN'}}",
		  "{'a':{'$numberDouble':'NaN'}}", "" },
		{ "{'$inc':{'a':{'$numberDouble':'NaN'}}}", "{'a':1.5}",
		  "{'a':{'$numberDouble':'NaN'}}", "a" },
		{ "{'$inc':{'a':0.0}}", "{'a':1.5}", "{'a':1.5}", "" },
		{ "{'$inc':{'a':1.0}}", "{'a':1.5}", "{'a':2.5}", "a" },
		{ "{'$inc':{'a':-1.0}}", "{'a':1.5}", "{'a':0.5}", "a" },
		{ "{'$inc':{'a':{'$numberDecimal':'NaN'}}}", "{'a':{'$numberDecimal':'1'}}",
		  "{'a':{'$numberDecimal':'NaN'}}", "a" },
		{ "{'$inc':{'a':{'$numberDecimal':'1'}}}", "{'a':{'$numberDecimal':'1'}}",
		  "{'a':{'$numberDecimal':'2'}}", "a" },
		{ "{'$inc':{'a':{'$numberLong':'0'}}}", "{'a':1}", "{'a':1}", "a" },
		{ "{'$min':{'a':1},'$max':{'b':1}}", "{'a':1.0,'b':1.0}", "{'a':1.0,'b':1.0}", "" },
		{ "{'$bit':{'a':{'xor':5}}}", "{'a':6}", "{'a':3}", "a" },
		{ "{'$bit':{'a':{'xor':5,'and':6,'or':8}}}", "{'a':1}", "{'a':12}", "a" },
		{ "{'$bit':{'a':{'or':{'$numberLong':'1'}}}}", "{}", "{'a':1}", "a" },
		{ "{'$bit':{'a':{'or':0}}}", "{'a':1}", "{'a':1}", "" },
		{ "{'$bit':{'a':{'and':{'$numberLong':'-1'}}}}", "{'a':1}", "{'a':1}", "a" },
		{ "{'$currentDate':{'a':false}}", "{'a':1}",
		  "{'a':{'$date':'2023-11-14T22:13:20.123Z'}}", "a" },
		{ "{'$currentDate':{'a':{'$type':'date'}}}", "{'a':1}",
		  "{'a':{'$date':'2023-11-14T22:13:20.123Z'}}", "a" },
		{ "{'$currentDate':{'a':{'$type':'timestamp'}}}", "{'a':1}",
		  "{'a':{'$timestamp':{'t':0,'i':0}}}", "a" },
		{ "{'$pop':{'a':{'$numberLong':'-1'},'b':1.0}}", "{'a':[1,2],'b':[3,4]}",
		  "{'a':[2],'b':[3]}", "a b" },
		{ "{'$pop':{'a':1}}", "{'a':[1]}", "{'a':[]}", "a" },
		{ "{'$pop':{'a':-1}}", "{'a':[]}", "{'a':[]}", "" },
	};

	check_updates(*state, cases, CASES(cases));
}

/* Each kind of name at the end of a path and within it, in documents and in arrays. */
static void
paths_lead_through_documents_and_arrays(void **state)
{
	static const struct update_case cases[] = {
		{ "{'$set':{'a.0':1}}", "{'a':[]}", "{'a':[1]}", "a.0" },
		{ "{'$set':{'a.0.b':1}}", "{'a':[]}", "{'a':[{'b':1}]}", "a.0" },
		{ "{'$set':{'a.1.b':1}}", "{'a':[]}", "{'a':[null,{'b':1}]}", "a.0 a.1" },
		{ "{'$set':{'a.01':1}}", "{'a':{}}", "{'a':{'01':1}}", "a.01" },
		{ "{'$set':{'a.10':1,'a.9':2,'a.b':3,'a.-':4}}", "{'a':{}}",
		  "{'a':{'-':4,'9':2,'10':1,'b':3}}", "a.- a.9 a.10 a.b" },
		{ "{'$set':{'a.b':1,'a.b-':2,'a.bc':3,'a.b c':4}}", "{'a':{}}",
		  "{'a':{'b':1,'b c':4,'b-':2,'bc':3}}", "a.b a.b c a.b- a.bc" },
		{ "{'$set':{'b.c':1,'b!':2,'b.d':3}}", "{}", "{'b':{'c':1,'d':3},'b!':2}", "b b!" },
		{ "{'$set':{'a.2147483647':1,'a.2147483648':2}}", "{'a':{}}",
		  "{'a':{'2147483647':1,'2147483648':2}}", "a.2147483647 a.2147483648" },
		{ "{'$set':{'a.$.b':1}}", "{'a':[{'b':1},{'b':2}]}", "{'a':[{'b':1},{'b':1}]}",
		  "a.1.b" },
		{ "{'$set':{'a.$':1}}", "{'a':[5]}", "{'a':[5,1]}", "a.1" },
		{ "{'$set':{'a.$':1}}", "{'a':{'1':5}}", "{'a':{'1':1}}", "a.1" },
		{ "{'$set':{'a.$[].$[]':1}}", "{'a':[[2,3],[],[4]]}", "{'a':[[1,1],[],[1]]}",
		  "a.0.0 a.0.1 a.2.0" },
		{ "{'$set':{'a.$[].$':1}}", "{'a':[[2,3],[4]]}", "{'a':[[2,1],[4,1]]}",
		  "a.0.1 a.1.1" },
		{ "{'$set':{'a.$[]':1}}", "{'a':[]}", "{'a':[]}", "" },
		{ "{'$unset':{'a.$[]':1}}", "{'a':[1,null,[2]]}", "{'a':[null,null,null]}",
		  "a.0 a.2" },
		{ "{'$unset':{'a.$[].b':1}}", "{'a':[1,{'b':1,'c':2},{'c':1}]}",
		  "{'a':[1,{'c':2},{'c':1}]}", "a.1.b" },
		{ "{'$unset':{'a.x':1}}", "{'a':[1]}", "{'a':[1]}", "" },
		{ "{'$unset':{'a.7':1}}", "{'a':[1]}", "{'a':[1]}", "" },
		{ "{'$unset':{'a.1':1}}", "{'a':[1]}", "{'a':[1]}", "" },
		{ "{'$unset':{'a':1,'b':1,'c':1}}", "{'a':1,'b':2,'c':3}", "{}", "a b c" },
		{ "{'$unset':{'b':1}}", "{'a':1,'b':2,'c':3}", "{'a':1,'c':3}", "b" },
		{ "{'$unset':{'c':1}}", "{'a':1,'b':2,'c':3}", "{'a':1,'b':2}", "c" },
		{ "{'$unset':{'c':1},'$set':{'d':1}}", "{'a':1,'c':3}", "{'a':1,'d':1}", "c d" },
		{ "{'$push':{'a.$[]':9}}", "{'a':[[1],[]]}", "{'a':[[1,9],[9]]}", "a.0.1 a.1.0" },
		{ "{'$pull':{'a.$[].b':1}}", "{'a':[{'b':[1,2]},{'b':[2]},{}]}",
		  "{'a':[{'b':[2]},{'b':[2]},{}]}", "a.0.b" },
		{ "{'$pullAll':{'a':[]}}", "{'a':[1]}", "{'a':[1]}", "" },
		{ "{'$pullAll':{'a':[1,1.0,'x']}}", "{'a':[1,{'$numberLong':'1'},'x','X',[1]]}",
		  "{'a':['X',[1]]}", "a" },
		{ "{'$pull':{'a':{'$regularExpression':{'pattern':'^x','options':'i'}}}}",
		  "{'a':['xa','Xb','ax',1]}", "{'a':['ax',1]}", "a" },
		{ "{'$pull':{'a':[1]}}", "{'a':[1,[1],[1,2]]}", "{'a':[1,[1,2]]}", "a" },
		{ "{'$pull':{'a':1}}", "{'a':[1,1]}", "{'a':[]}", "a" },
		{ "{'$pull':{'a':1}}", "{}", "{}", "" },
		{ "{'$pullAll':{'a':[1]}}", "{}", "{}", "" },
		{ "{'$pop':{'a':1}}", "{}", "{}", "" },
		{ "{'$pull':{'a.7':1},'$pop':{'b.7':1}}", "{'a':[1],'b':[]}", "{'a':[1],'b':[]}",
		  "" },
		{ "{'$addToSet':{'a':1}}", "{'a':[1.0]}", "{'a':[1.0]}", "" },
		{ "{'$addToSet':{'a':1}}", "{'a':[2,3]}", "{'a':[2,3,1]}", "a.2" },
		{ "{'$addToSet':{'a':1}}", "{}", "{'a':[1]}", "a" },
		{ "{'$addToSet':{'a':{'$each':[3,1,3,2,1.0]}}}", "{'a':[2]}", "{'a':[2,3,1]}",
		  "a.1 a.2" },
		{ "{'$addToSet':{'a':{'$each':[3,1,3]}}}", "{}", "{'a':[3,1]}", "a" },
		{ "{'$addToSet':{'a':{'$each':[]}}}", "{}", "{'a':[]}", "a" },
		{ "{'$addToSet':{'a':{'$each':[]}}}", "{'a':[1]}", "{'a':[1]}", "" },
		{ "{'$addToSet':{'a':{'b':1}}}", "{'a':[{'b':1.0}]}", "{'a':[{'b':1.0}]}", "" },
		{ "{'$push':{'a':{'$each':[]}}}", "{}", "{'a':[]}", "a" },
		{ "{'$push':{'a':{'b':1,'$x':1}}}", "{}", "{'a':[{'b':1,'$x':1}]}", "a" },
		{ "{'$addToSet':{'a':{'b':1,'$x':1}}}", "{}", "{'a':[{'b':1,'$x':1}]}", "a" },
		/* Bytes that would be a document with $each. */
		{ "{'$push':{'a':{'$binary':{'base64':'GAAAAAQkZWFjaAAMAAAAEDAAAQAAAAAA','subType':"
		  "'00'}}}}",
		  "{}",
		  "{'a':[{'$binary':{'base64':'GAAAAAQkZWFjaAAMAAAAEDAAAQAAAAAA','subType':'00'}}]"
		  "}",
		  "a" },
		/* Bytes that would be a document with the key: they are not looked into. */
		{ "{'$push':{'a':{'$each':[{'b':0}],'$sort':{'b':1}}}}",
		  "{'a':[{'$binary':{'base64':'DAAAABBiAAEAAAAA','subType':'00'}}]}",
		  "{'a':[{'$binary':{'base64':'DAAAABBiAAEAAAAA','subType':'00'}},{'b':0}]}",
		  "a.1" },
		{ "{'$push':{'a':{'$each':[],'$slice':2}}}", "{'a':[1,2,3]}", "{'a':[1,2]}", "a" },
		{ "{'$push':{'a':{'$each':[],'$slice':-2}}}", "{'a':[1,2,3]}", "{'a':[2,3]}", "a" },
		{ "{'$addToSet':{'a':1}}", "{'a':[1,2]}", "{'a':[1,2]}", "" },
		{ "{'$set':{'a.0':null}}", "{'a':[1]}", "{'a':[null]}", "a.0" },
		{ "{'$set':{'a.b]':1,'a.[b]':2,'a.]':3}}", "{'a':{}}",
		  "{'a':{'[b]':2,']':3,'b]':1}}", "a.[b] a.] a.b]" },
		{ "{'$rename':{'a':'b]'}}", "{'a':1}", "{'b]':1}", "a b]" },
		{ "{'$rename':{'a':'b'}}", "{'a':1,'b':2,'c':3}", "{'b':1,'c':3}", "a b" },
		{ "{'$rename':{'a':'b'}}", "{'a':1,'b':1}", "{'b':1}", "a" },
		{ "{'$rename':{'a.b':'a.c'}}", "{'a':{'b':1,'d':2}}", "{'a':{'d':2,'c':1}}",
		  "a.b a.c" },
		{ "{'$rename':{'a.b':'c.d'}}", "{'a':{}}", "{'a':{}}", "" },
		{ "{'$rename':{'a.0':'c'}}", "{'a':{'0':1}}", "{'a':{},'c':1}", "a.0 c" },
		{ "{'$rename':{'a':'c','b':'d'}}", "{'a':1,'b':2}", "{'c':1,'d':2}", "a b c d" },
		{ "{'$rename':{'b':'a'},'$set':{'c':1}}", "{'b':{'x':1}}", "{'a':{'x':1},'c':1}",
		  "a b c" },
		{ "{'$rename':{'a.$b':'c'}}", "{'a':{'$b':1}}", "{'a':{},'c':1}", "a.$b c" },
		{ "{'$rename':{'a':'b.$c'}}", "{'a':1}", "{'b':{'$c':1}}", "a b" },
		{ "{'$set':{'_id':1}}", "{'_id':1}", "{'_id':1}", "" },
		{ "{'$set':{'_id':1.0}}", "{'_id':1}", "{'_id':1.0}", "_id" },
		{ "{'$set':{'_id':1}}", "{'a':1}", "{'a':1,'_id':1}", "_id" },
		{ "{'$set':{'_id.a':1}}", "{'_id':{'a':1},'b':1}", "{'_id':{'a':1},'b':1}", "" },
		{ "{'$set':{'b':1}}", "{'a':1,'_id':1}", "{'a':1,'_id':1,'b':1}", "b" },
		{ "{'$set':{}}", "{'a':1}", "{'a':1}", "" },
	};

	check_updates(*state, cases, CASES(cases));
}

static void
more_mistakes_have_mongodbs_codes(void **state)
{
	static const struct {
		const char *update, *document;
		int code;
		const char *text;
	} cases[] = {
		{ "{'$mul':{'a':'x'}}", "{}", 14,
		  "Cannot multiply with non-numeric argument: {a: \"x\"}" },
		{ "{'$mul':{'a':1}}", "{'a':'x'}", 14,
		  "Cannot apply $mul to a value of non-numeric type. The document has the field "
		  "'a' of non-numeric type string" },
		{ "{'$mul':{'a':2}}", "{'a':{'$numberLong':'9223372036854775807'}}", 2,
		  "Failed to apply $mul operations to current value (9223372036854775807)" },
		{ "{'$pop':{'a':-2}}", "{}", 9, "$pop expects 1 or -1, found: -2" },
		{ "{'$pop':{'a':0}}", "{}", 9, "$pop expects 1 or -1, found: 0" },
		{ "{'$pop':{'a':1.5}}", "{}", 9, "$pop expects 1 or -1, found: 1.5" },
		{ "{'$pop':{'a':'x'}}", "{}", 9, "Expected a number in: a: \"x\"" },
		{ "{'$bit':{'a':{}}}", "{}", 2, "You must pass in at least one bitwise operation" },
		{ "{'$bit':{'a':1}}", "{}", 2, "The $bit modifier is not compatible with a int" },
		{ "{'$bit':{'a':{'and':1,'or':1.0}}}", "{}", 2,
		  "The $bit modifier field must be an Integer(32/64 bit); a 'double' is not "
		  "supported here: {or: 1.0}" },
		{ "{'$currentDate':{'a':{'$type':{'$code':'date'}}}}", "{}", 2,
		  "The '$type' string field is required to be 'date' or 'timestamp'" },
		{ "{'$currentDate':{'a':{'$type':{'$code':'timestamp'}}}}", "{}", 2,
		  "The '$type' string field is required to be 'date' or 'timestamp'" },
		{ "{'$push':{'a':{'$each':[1],'$position':true}}}", "{}", 2,
		  "The value for $position must be an integer value, not of type: bool" },
		{ "{'$push':{'a':{'$each':[1],'$slice':{'$numberDouble':'NaN'}}}}", "{}", 2,
		  "The value for $slice must be an integer value but was given type: double" },
		{ "{'$push':{'a':{'$each':[1],'$sort':1.5}}}", "{}", 2,
		  "The $sort element value must be either 1 or -1" },
		{ "{'$pullAll':{'a':1}}", "{}", 2,
		  "$pullAll requires an array argument but was given a int" },
		{ "{'$rename':{'a':'a'}}", "{}", 2,
		  "The source and target field for $rename must differ: a: \"a\"" },
		{ "{'$rename':{'a':''}}", "{}", 56, "An empty update path is not valid." },
		{ "{'$rename':{'':'a'}}", "{}", 56, "An empty update path is not valid." },
		{ "{'$rename':{'a':'a.b'}}", "{}", 40, "Updating the path" },
		{ "{'$rename':{'a':'b','c':'b'}}", "{}", 40, "Updating the path 'b'" },
		{ "{'$rename':{'a':'b'},'$set':{'a':1}}", "{}", 40,
		  "Updating the path 'a' would create a conflict at 'a'" },
		{ "{'$set':{'a.b':1},'$inc':{'a':1}}", "{}", 40,
		  "Updating the path 'a' would create a conflict at 'a'" },
		{ "{'$set':{'a.b':1},'$unset':{'a.b.c':1}}", "{}", 40,
		  "Updating the path 'a.b.c' would create a conflict at 'a.b'" },
		{ "{'$set':{'a.2':1,'a.10':1,'a.1x':1},'$inc':{'a.2':1}}", "{}", 40,
		  "Updating the path 'a.2' would create a conflict at 'a.2'" },
		{ "{'$set':{'a.b.':1}}", "{}", 56,
		  "The update path 'a.b.' contains an empty field name" },
		{ "{'$set':{'.a':1}}", "{}", 56, "The update path '.a' contains an empty" },
		{ "{'$set':{'a.$.b.$':1}}", "{}", 2,
		  "Too many positional (i.e. '$') elements found in path 'a.$.b.$'" },
		{ "{'$set':{'a.18446744073709551617':1}}", "{'a':[0,0]}", 28,
		  "Cannot create field '18446744073709551617' in element {a: [ 0, 0 ]}" },
		{ "{'$set':{'a.4294967297':1}}", "{'a':[0,0]}", 28, "Cannot create field" },
		{ "{'$set':{'a.00':1}}", "{'a':[0,0]}", 28, "Cannot create field '00'" },
		{ "{'$set':{'a./':1}}", "{'a':[0,0]}", 28, "Cannot create field '/'" },
		{ "{'$set':{'a.1:':1}}", "{'a':[0,0]}", 28, "Cannot create field '1:'" },
		{ "{'$set':{'$[]':1}}", "{}", 2,
		  "Cannot have positional (i.e. '$') element in the first position in path '$[]'" },
		{ "{'$set':{'$[x].a':1}}", "{}", 2, "Cannot have positional (i.e. '$') element" },
		{ "{'$set':{'a.$':1}}", "{}", 2, "The path 'a' must exist in the document" },
		{ "{'$set':{'a.$[]':1}}", "{}", 2, "The path 'a' must exist in the document" },
		{ "{'$set':{'a.$':1}}", "{'a':1}", 28,
		  "Cannot create field '1' in element {a: 1}" },
		{ "{'$set':{'a.$[]':1}}", "{'a':{'b':1}}", 2,
		  "Cannot apply array updates to non-array element a: { b: 1 }" },
		{ "{'$pull':{'a':{'$x':1}}}", "{'a':[1]}", 2, "unknown operator: $x" },
		{ "{'$pull':{'a':{'$regularExpression':{'pattern':'[','options':''}}}}",
		  "{'a':['x']}", 51091, "Regular expression is invalid" },
		{ "{'$rename':{'a.b':'c'}}", "{'a':[]}", 28,
		  "Cannot use the part (b) of (a.b) to traverse the element ({a: []})" },
		{ "{'$set':{'$x':1}}", "{'$x':1}", 52,
		  "The dollar ($) prefixed field '$x' in '$x'" },
		{ "{'a':1,'$b':1}", "{}", 52, "The dollar ($) prefixed field '$b' in '$b'" },
		{ "{'$set':[]}", "{}", 9,
		  "Modifiers operate on fields but we found type array instead. For example: "
		  "{$mod: {<field>: ...}} not {$set: []}" },
		{ "{'$set':{'a':1},'b':1}", "{}", 9, "Unknown modifier: b. Expected a valid" },
		{ "{'$set':{'_id.a':2}}", "{'_id':{'a':1}}", 66,
		  "Performing an update on the path '_id'" },
		{ "{'$rename':{'_id':'a'}}", "{'_id':1}", 66, "Performing an update on" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		check_code(*state, cases[i].update, cases[i].document, cases[i].code);
		if (strncmp(case_err.text, cases[i].text, strlen(cases[i].text)) != 0)
			fail_msg("%s: %s", cases[i].update, case_err.text);
	}
}

static void
array_filters_are_of_all_forms(void **state)
{
	static const struct {
		const char *update, *filters, *document, *expected, *paths;
	} cases[] = {
		{ "{'$inc':{'a.$[x]':10}}", "{'f':[{'x':{'$gte':2}}]}", "{'a':[1,2,3]}",
		  "{'a':[1,12,13]}", "a.1 a.2" },
		{ "{'$set':{'a.$[x].b.$[y]':0}}", "{'f':[{'x.c':1},{'y':{'$gt':1}}]}",
		  "{'a':[{'c':1,'b':[1,2]},{'c':2,'b':[3]},{'c':1,'b':[4]}]}",
		  "{'a':[{'c':1,'b':[1,0]},{'c':2,'b':[3]},{'c':1,'b':[0]}]}", "a.0.b.1 a.2.b.0" },
		{ "{'$set':{'a.$[x]':0,'b.$[x]':1}}", "{'f':[{'x':2}]}", "{'a':[2],'b':[1,2]}",
		  "{'a':[0],'b':[1,1]}", "a.0 b.1" },
		{ "{'$set':{'a.$[x]':0}}", "{'f':[{'$or':[{'x':1},{'x':3}]}]}", "{'a':[1,2,3]}",
		  "{'a':[0,2,0]}", "a.0 a.2" },
		{ "{'$set':{'a.$[x]':0}}", "{'f':[{'$nor':[{'x':1}]}]}", "{'a':[1,2]}",
		  "{'a':[1,0]}", "a.1" },
		{ "{'$set':{'a.$[x]':0}}", "{'f':[{'x':9}]}", "{'a':[1,2]}", "{'a':[1,2]}", "" },
		{ "{'$pop':{'a.$[x9Y]':1}}", "{'f':[{'x9Y.0':1}]}", "{'a':[[1,2],[2,3]]}",
		  "{'a':[[1],[2,3]]}", "a.0" },
		{ "{'$unset':{'a.$[x]':1}}", "{'f':[{'x':1}]}", "{'a':[1,2]}", "{'a':[null,2]}",
		  "a.0" },
		{ "{'$set':{'a.$[].b.$[x]':0}}", "{'f':[{'x':1}]}", "{'a':[{'b':[1]},{'b':[2,1]}]}",
		  "{'a':[{'b':[0]},{'b':[2,0]}]}", "a.0.b.0 a.1.b.1" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct mql_updated u;

		if (update(&q, cases[i].update, cases[i].filters, cases[i].document, -1, false,
			   &u) != STATUS_OK)
			fail_msg("%s: %s", cases[i].update, case_err.text);
		assert_string_equal(case_json(*state, u.document), cases[i].expected);
		assert_string_equal(paths_of(*state, &u), cases[i].paths);
	}
}

/* Two operators that have come to the same element by different ways. */
static void
conflicts_are_found_where_operators_meet(void **state)
{
	static const struct {
		const char *update, *filters, *document, *text;
	} cases[] = {
		{ "{'$set':{'a.$[x]':0,'a.1':2}}", "{'f':[{'x':2}]}", "{'a':[1,2]}",
		  "Updating the path 'a.1' would create a conflict at 'a.1'" },
		{ "{'$set':{'a.$[x].b':0,'a.1':2}}", "{'f':[{'x.b':2}]}", "{'a':[1,{'b':2}]}",
		  "Updating the path 'a.1.b' would create a conflict at 'a.1'" },
		{ "{'$set':{'a.$[].b':0,'a.$[x].b.c':2}}", "{'f':[{'x.d':2}]}",
		  "{'a':[{'b':{},'d':2}]}", NULL },
		{ "{'$set':{'a.$[x]':0},'$inc':{'a.$[y]':1}}", "{'f':[{'x':2},{'y':{'$lt':3}}]}",
		  "{'a':[1,2]}", "Updating the path 'a.1' would create a conflict at 'a.1'" },
		{ "{'$set':{'a.$':0},'$inc':{'a.$[]':1}}", "{'f':[]}", "{'a':[1,2]}",
		  "Updating the path 'a.1' would create a conflict at 'a.1'" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct mql_updated u;

		if (update(&q, cases[i].update, cases[i].filters, cases[i].document, 1, false,
			   &u) != STATUS_INVALID)
			fail_msg("%s is not refused", cases[i].update);
		if (cases[i].text) {
			assert_int_equal(q.code, MQL_CONFLICTING_UPDATE);
			assert_string_equal(case_err.text, cases[i].text);
		}
	}
}

/* Filters within $and, almost as deep as BSON may be. */
static void
array_filters_may_be_nested(void **state)
{
	enum {
		NESTING = BSON_DEPTH / 2 - 3,
	};
	struct buf text = BUF_INIT(CASE_BYTES);
	struct mql q = case_mql(*state);
	struct mql_updated u;

	buf_append_cstr(&text, "{'f':[");
	for (int i = 0; i < NESTING; i++)
		buf_append_cstr(&text, "{'$and':[");
	buf_append_cstr(&text, "{'x':1}");
	for (int i = 0; i < NESTING; i++)
		buf_append_cstr(&text, "]}");
	buf_append(&text, "]}", 3);
	assert_int_equal(
		update(&q, "{'$set':{'a.$[x]':0}}", text.ptr, "{'a':[1,2]}", -1, false, &u),
		STATUS_OK);
	assert_string_equal(case_json(*state, u.document), "{'a':[0,2]}");
	buf_release(&text);
}

static void
the_position_has_to_be_known(void **state)
{
	struct mql q = case_mql(*state);
	struct mql_updated u;

	assert_int_equal(update(&q, "{'$set':{'a.$':1}}", NULL, "{'a':[5]}", 0, false, &u),
			 STATUS_OK);
	assert_string_equal(case_json(*state, u.document), "{'a':[1]}");
	assert_int_equal(update(&q, "{'$set':{'a.$':1}}", NULL, "{'a':[5]}", -1, false, &u),
			 STATUS_INVALID);
	assert_int_equal(q.code, MQL_BAD_VALUE);
	assert_string_equal(
		case_err.text,
		"The positional operator did not find the match needed from the query.");
}

static void
inserted_documents_have_their_id_first(void **state)
{
	static const struct {
		const char *update, *document, *expected;
	} cases[] = {
		{ "{'$set':{'a':1,'_id':2}}", "{}", "{'_id':2,'a':1}" },
		{ "{'$set':{'_id':2}}", "{'a':1}", "{'_id':2,'a':1}" },
		{ "{'$set':{'_id':2}}", "{'a':1,'_id':3}", "{'_id':2,'a':1}" },
		{ "{'$setOnInsert':{'b':1}}", "{'a':1}", "{'a':1,'b':1}" },
		{ "{'$setOnInsert':{'a.b':1}}", "{'a':{'c':1}}", "{'a':{'c':1,'b':1}}" },
		{ "{'b':1}", "{'a':1}", "{'b':1}" },
		{ "{'b':1}", "{'a':1,'_id':3}", "{'_id':3,'b':1}" },
		{ "{'b':1,'_id':4}", "{'a':1,'_id':3}", "{'_id':4,'b':1}" },
		{ "{}", "{'_id':3,'a':1}", "{'_id':3}" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct mql_updated u;

		if (update(&q, cases[i].update, NULL, cases[i].document, -1, true, &u) != STATUS_OK)
			fail_msg("%s: %s", cases[i].update, case_err.text);
		assert_string_equal(case_json(*state, u.document), cases[i].expected);
	}
}

static void
replacements_say_whether_they_change(void **state)
{
	static const struct {
		const char *update, *document, *expected;
		bool changed;
	} cases[] = {
		{ "{'a':1}", "{'_id':1,'a':1}", "{'_id':1,'a':1}", false },
		{ "{'a':1,'_id':1}", "{'_id':1,'a':1}", "{'_id':1,'a':1}", false },
		{ "{'a':1.0}", "{'_id':1,'a':1}", "{'_id':1,'a':1.0}", true },
		{ "{'a':1}", "{'a':1}", "{'a':1}", false },
		{ "{'_id':1,'a':1}", "{'a':1}", "{'_id':1,'a':1}", true },
		{ "{}", "{'a':1}", "{}", true },
		{ "{}", "{}", "{}", false },
	};
	struct mql q = case_mql(*state);
	struct mql_updated u;

	for (size_t i = 0; i < CASES(cases); i++) {
		const struct update_run run = { case_bson(*state, cases[i].update),
						case_bson(*state, cases[i].document) };

		case_memory(update_again, &run, cases[i].update);
		assert_int_equal(
			update(&q, cases[i].update, NULL, cases[i].document, -1, false, &u),
			STATUS_OK);
		assert_string_equal(case_json(*state, u.document), cases[i].expected);
		assert_int_equal(u.changed, cases[i].changed);
		assert_true(u.replaced);
	}
	assert_int_equal(update(&q, "{'_id':8}", NULL, "{'_id':7}", -1, false, &u), STATUS_INVALID);
	assert_string_equal(case_err.text, "After applying the update, the (immutable) field '_id' "
					   "was found to have been altered to _id: 8");
}

static void
upserts_take_what_is_equal_once(void **state)
{
	static const struct {
		const char *filter, *expected; /* NULL: refused */
	} cases[] = {
		{ "{}", "{}" },
		{ "{'a':1}", "{'a':1}" },
		{ "{'b':1,'a':{'c':2},'_id':3}", "{'_id':3,'a':{'c':2},'b':1}" },
		{ "{'a.b':1,'a.c':2}", "{'a':{'b':1,'c':2}}" },
		{ "{'a.10':1,'a.9':2}", "{'a':{'9':2,'10':1}}" },
		{ "{'a':{'$in':[1]}}", "{}" },
		{ "{'a':{'$in':[1,2]}}", "{}" },
		{ "{'a':{'$all':[1]}}", "{'a':1}" },
		{ "{'':1}", "{}" },
		{ "{'a':{'$ne':1},'b':{'$mod':[2,1]},'c':{'$type':'int'},'d':{'$size':1}}", "{}" },
		{ "{'a':{'$regex':'x'},'b':{'$not':{'$gt':1}},'c':{'$bitsAllSet':[1]}}", "{}" },
		{ "{'a':{'$nin':[1]},'b':{'$exists':true},'$nor':[{'c':1}],'d':4}", "{'d':4}" },
		{ "{'a.$b':1,'c':2}", "{'c':2}" },
		{ "{'a':{'$gte':1,'$lt':3}}", "{}" },
		{ "{'a':{'$elemMatch':{'b':1}}}", "{}" },
		{ "{'$or':[{'a':1},{'b':2}]}", "{}" },
		{ "{'$and':[{'a':1},{'b':2}]}", "{'a':1,'b':2}" },
		{ "{'a':1,'$and':[{'a':1}]}", NULL },
		{ "{'a':{'b':1},'a.b':1}", NULL },
		{ "{'a.b':1,'a':{'b':1}}", NULL },
		{ "{'a.b':1,'b':1,'a.c':1,'$and':[{'b':2}]}", NULL },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct mql_match *m;
		struct str document;
		enum status status;

		assert_int_equal(mql_match_compile(&q, case_bson(*state, cases[i].filter), &m),
				 STATUS_OK);
		status = mql_upsert_document(m, &q, &document);
		if (status != (cases[i].expected ? STATUS_OK : STATUS_INVALID))
			fail_msg("%s: %s: %s", cases[i].filter, status_name(status), case_err.text);
		if (cases[i].expected)
			assert_string_equal(case_json(*state, document), cases[i].expected);
		else
			assert_int_equal(q.code, MQL_NOT_SINGLE_VALUE);
	}
}

static void
paths_know_what_is_below_them(void **state)
{
	static const struct {
		const char *left, *right;
		int order;
		bool below;
	} cases[] = {
		{ "a", "a", 0, true },          { "a.b", "a.b", 0, true },
		{ "a", "a.b", -1, true },       { "a", "a.b.c", -1, true },
		{ "a.b", "a.c", -1, false },    { "a", "ab", -1, false },
		{ "a.b", "ab", -1, false },     { "a.9", "a.10", -1, false },
		{ "a.9", "a.10.b", -1, false }, { "9", "1x", -1, false },
		{ "9", "01", -1, false },       { "9", "a", -1, false },
		{ "!", "9", -1, false },        { "10", "10.a", -1, true },
		{ "01", "1x", -1, false },
	};

	(void)state;
	for (size_t i = 0; i < CASES(cases); i++) {
		struct str left = str_from_cstr(cases[i].left),
			   right = str_from_cstr(cases[i].right);
		bool below;
		int order = mql_update_compare_paths(left, right, &below);

		if ((order > 0) - (order < 0) != cases[i].order || below != cases[i].below)
			fail_msg("%s and %s: %d %d", cases[i].left, cases[i].right, order, below);
		order = mql_update_compare_paths(right, left, &below);
		if ((order > 0) - (order < 0) != -cases[i].order || below != cases[i].below)
			fail_msg("%s and %s: %d %d", cases[i].right, cases[i].left, order, below);
	}
}

/*
 * Members of documents and of arrays that are found, made, and found again, in which the first of
 * two with one name counts; more of each than are looked for one by one.
 */
static void
members_are_found_again(void **state)
{
	enum {
		MEMBERS = 40, /* that are there */
		AFTER = 120,  /* with those that are made */
	};
	struct buf text = BUF_INIT(CASE_BYTES), change = BUF_INIT(CASE_BYTES);
	struct mql q = case_mql(*state);
	struct bson_value v;
	struct mql_updated u;

	buf_append_cstr(&text, "{'a':[");
	for (int i = 0; i < MEMBERS; i++)
		buf_printf(&text, "%s{}", i ? "," : "");
	buf_append_cstr(&text, "],'d':{");
	for (int i = 0; i < MEMBERS; i++)
		buf_printf(&text, "'f%d':{},", i);
	buf_append(&text, "'f7':0,'f0':0}}", 16);
	buf_append_cstr(&change, "{'$set':{");
	for (int i = 0; i < AFTER; i++)
		buf_printf(&change, "%s'a.%d.x':%d,'a.%d.y':%d,'d.f%d.x':%d,'d.f%d.y':%d",
			   i ? "," : "", i, i, i, i, i, i, i, i);
	buf_append(&change, "}}", 3);
	if (update(&q, change.ptr, NULL, text.ptr, -1, false, &u) != STATUS_OK)
		fail_msg("%s", case_err.text);
	for (int i = 0; i < AFTER; i++) {
		for (int k = 0; k < 4; k++) {
			struct str path = arena_printf(*state, "%s%d.%s", k < 2 ? "a." : "d.f", i,
						       k % 2 ? "y" : "x");

			assert_true(bson_find_path(u.document, path, &v));
			assert_int_equal(bson_integer(&v), i);
		}
	}
	assert_true(bson_find(u.document, STR("a"), &v));
	assert_int_equal(bson_count(bson_text(&v)), AFTER);
	assert_true(bson_find(u.document, STR("d"), &v));
	assert_int_equal(bson_count(bson_text(&v)), AFTER + 2);
	buf_release(&text);
	buf_release(&change);
}

/* With each size of an arena that is too small for the index, or for anything else. */
static void
an_index_of_members_needs_memory(void **state)
{
	struct buf text = BUF_INIT(CASE_BYTES), change = BUF_INIT(CASE_BYTES);
	struct mql_updated u;
	struct str before, updates;
	bool full = true;

	buf_append_cstr(&text, "{'a':0");
	for (int i = 0; i < 40; i++)
		buf_printf(&text, ",'f%d':0", i);
	buf_append(&text, "}", 2);
	buf_append_cstr(&change, "{'$set':{'a':1");
	for (int i = 0; i < 12; i++)
		buf_printf(&change, ",'f%d':1", i);
	buf_append(&change, "}}", 3);
	before = case_bson(*state, text.ptr);
	updates = case_bson(*state, change.ptr);
	for (size_t bytes = 0; full; bytes += 8) {
		struct arena *arena = arena_new(bytes);
		struct mql q = case_mql(arena);

		enum status status = run_one(&q, updates, before, &u);

		full = arena_is_full(arena);
		assert_int_equal(status, full ? STATUS_LIMIT : STATUS_OK);
		arena_free(arena);
	}
	buf_release(&text);
	buf_release(&change);
}

/* ---- Limits ---- */

/* Of a value MQL_TEXT_BYTES are shown, and dots in the place of more. */
static void
values_are_shown_so_far_only(void **state)
{
	static const char before[] = "Expected a number in: ";

	for (int more = -1; more <= 1; more++) {
		/* a: "…" */
		int letters = MQL_TEXT_BYTES + more - 5;
		struct buf text = BUF_INIT(CASE_BYTES);
		struct mql q = case_mql(*state);
		struct mql_updated u;
		size_t len;

		buf_append_cstr(&text, "{'$pop':{'a':'");
		for (int i = 0; i < letters; i++)
			buf_append_byte(&text, 'x');
		buf_append(&text, "'}}", 4);
		assert_int_equal(update(&q, text.ptr, NULL, "{}", -1, false, &u), STATUS_INVALID);
		len = strlen(case_err.text) - strlen(before);
		assert_int_equal(len, more > 0 ? MQL_TEXT_BYTES + 3 : MQL_TEXT_BYTES + more);
		assert_int_equal(case_err.text[strlen(case_err.text) - 1], more > 0 ? '.' : '"');
		buf_release(&text);
	}
}

static void
paths_have_so_many_names_only(void **state)
{
	for (int more = 0; more <= 1; more++) {
		struct buf text = BUF_INIT(CASE_BYTES);
		struct mql q = case_mql(*state);
		struct mql_update *u;
		enum status status;

		buf_append_cstr(&text, "{'$set':{'a");
		for (int i = 1; i < MQL_UPDATE_STEPS + more; i++)
			buf_append_cstr(&text, ".a");
		buf_append(&text, "':1}}", 6);
		status = mql_update_compile(&q, case_bson(*state, text.ptr), BSON_EMPTY, &u);
		assert_int_equal(status, more ? STATUS_INVALID : STATUS_OK);
		assert_int_equal(q.code, more ? MQL_OVERFLOW : 0);
		buf_release(&text);
	}
}

static void
updates_have_so_many_paths_only(void **state)
{
	(void)state;
	for (int more = 0; more <= 1; more++) {
		struct arena *arena = arena_new(PATHS_BYTES);
		struct buf out = BUF_INIT(PATHS_BYTES);
		struct mql q = case_mql(arena);
		struct bson_builder b;
		struct mql_update *u;
		enum status status;
		char name[16];

		bson_builder_init(&b, &out);
		bson_begin(&b);
		bson_begin_document(&b, STR("$set"));
		for (int i = 0; i < MQL_UPDATE_PATHS + more; i++) {
			(void)snprintf(name, sizeof(name), "a%d", i);
			bson_put_int32(&b, str_from_cstr(name), i);
		}
		bson_end(&b);
		bson_end(&b);
		status = mql_update_compile(&q, buf_str(&out), BSON_EMPTY, &u);
		assert_int_equal(status, more ? STATUS_INVALID : STATUS_OK);
		assert_int_equal(q.code, more ? MQL_BAD_VALUE : 0);
		buf_release(&out);
		arena_free(arena);
	}
}

static void
elements_are_padded_so_far_only(void **state)
{
	static const struct {
		const char *document;
		int position;
		bool good;
	} cases[] = {
		{ "{'a':[]}", MQL_UPDATE_PADDING, true },
		{ "{'a':[]}", MQL_UPDATE_PADDING + 1, false },
		{ "{'a':[1]}", MQL_UPDATE_PADDING + 1, true },
		{ "{'a':[1]}", MQL_UPDATE_PADDING + 2, false },
	};

	(void)state;
	for (size_t i = 0; i < CASES(cases); i++) {
		struct arena *arena = arena_new(PATHS_BYTES);
		struct mql q = case_mql(arena);
		struct mql_updated u;
		struct bson_value a;
		struct str change = arena_printf(arena, "{'$set':{'a.%d':7}}", cases[i].position);

		if (update(&q, change.ptr, NULL, cases[i].document, -1, false, &u) == STATUS_OK) {
			assert_true(cases[i].good);
			assert_true(bson_find(u.document, STR("a"), &a));
			assert_int_equal(bson_count(bson_text(&a)), cases[i].position + 1);
		} else {
			assert_false(cases[i].good);
			assert_int_equal(q.code, MQL_BAD_VALUE);
		}
		arena_free(arena);
	}
}

/* ---- Documents with many members ---- */

enum {
	DRAWS = 300,
	DRAWN_NAMES = 100,
	DRAWN_PATHS = 60,
};

struct drawn {
	const char *operator;
	int name; /* of the field or the element */
	int to;   /* where $rename puts it */
	bool in_array;
};

static void
put_drawn(struct buf *text, const struct drawn *d)
{
	if (d->in_array)
		buf_printf(text, "{'%s':{'a.%d':7}}", d->operator, d->name);
	else if (!strcmp(d->operator, "$rename"))
		buf_printf(text, "{'$rename':{'f%02d':'f%02d'}}", d->name, d->to);
	else
		buf_printf(text, "{'%s':{'f%02d':7}}", d->operator, d->name);
	buf_append_byte(text, 0);
}

/* Each path is drawn once, and of an array positions near its end, too. */
static size_t
draw_paths(struct rand_seq *r, struct drawn *ret)
{
	static const char *const operators[] = { "$set", "$unset", "$inc", "$rename", "$set" };
	bool used[2][DRAWN_NAMES] = { 0 };
	size_t count = 1 + rand_seq_below(r, DRAWN_PATHS), n = 0;

	while (n < count) {
		struct drawn d = { operators[rand_seq_below(r, CASES(operators))],
				   (int)rand_seq_below(r, DRAWN_NAMES),
				   (int)rand_seq_below(r, DRAWN_NAMES), rand_seq_below(r, 3) == 0 };
		bool renames = !strcmp(d.operator, "$rename");

		d.in_array = d.in_array && !renames;
		count--;
		if (used[d.in_array][d.name] || (renames && (d.to == d.name || used[0][d.to])))
			continue;
		used[d.in_array][d.name] = true;
		if (renames)
			used[0][d.to] = true;
		ret[n++] = d;
		count++;
		if (n == DRAWN_PATHS)
			break;
	}
	return n;
}

static struct str
draw_members(struct rand_seq *r, struct arena *arena)
{
	struct buf text = BUF_INIT(CASE_BYTES);
	uint64_t fields = rand_seq_below(r, DRAWN_NAMES), items = rand_seq_below(r, 80);
	struct str document;

	buf_append_cstr(&text, "{'a':[");
	for (uint64_t i = 0; i < items; i++)
		buf_printf(&text, "%s%d", i ? "," : "", (int)i);
	buf_append_byte(&text, ']');
	/* Names now and then twice. */
	for (uint64_t i = 0; i < fields; i++)
		buf_printf(&text, ",'f%02d':%d",
			   (int)(rand_seq_below(r, 8) ? i : rand_seq_below(r, DRAWN_NAMES)),
			   (int)i);
	buf_append(&text, "}", 2);
	document = case_bson(arena, text.ptr);
	buf_release(&text);
	return document;
}

/* In the order in which an update goes through its paths. */
static int
compare_drawn(const void *a, const void *b)
{
	const struct drawn *left = a, *right = b;
	int x = strcmp(left->operator, "$rename") ? left->name : left->to;
	int y = strcmp(right->operator, "$rename") ? right->name : right->to;

	if (left->in_array != right->in_array)
		return left->in_array ? -1 : 1;
	return (x > y) - (x < y);
}

/* An update of many paths does what one update for each of them does, one after the other. */
static void
many_paths_are_as_one_by_one(void **state)
{
	struct rand_seq r = { 20261129 };

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct arena *arena = arena_new(CASE_BYTES * 4);
		struct drawn drawn[DRAWN_PATHS];
		size_t count = draw_paths(&r, drawn);
		struct buf whole = BUF_INIT(CASE_BYTES);
		struct str document = draw_members(&r, arena), one = document;
		struct mql q = case_mql(arena);
		struct mql_updated all, u;
		struct bson_builder b;

		bson_builder_init(&b, &whole);
		bson_begin(&b);
		for (size_t k = 0; k < count; k++) {
			struct buf text = BUF_INIT(CASE_BYTES);
			struct bson_element e;
			struct bson_iter iter;

			put_drawn(&text, &drawn[k]);
			bson_iter_begin(&iter, case_bson(arena, text.ptr));
			assert_true(bson_iter_read(&iter, &e));
			bson_put(&b, e.name, &e.value);
			buf_release(&text);
		}
		bson_end(&b);
		assert_int_equal(run_one(&q, buf_str(&whole), document, &all), STATUS_OK);
		qsort(drawn, count, sizeof(*drawn), compare_drawn);
		for (size_t k = 0; k < count; k++) {
			struct buf text = BUF_INIT(CASE_BYTES);

			put_drawn(&text, &drawn[k]);
			assert_int_equal(run_one(&q, case_bson(arena, text.ptr), one, &u),
					 STATUS_OK);
			one = u.document;
			buf_release(&text);
		}
		if (!str_eq(all.document, one))
			fail_msg("%s on %s: %s, not %s", case_json(arena, buf_str(&whole)),
				 case_json(arena, document), case_json(arena, all.document),
				 case_json(arena, one));
		buf_release(&whole);
		arena_free(arena);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, case_setup, case_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(arguments_are_of_the_types_that_operators_take),
		CASE(values_are_of_the_types_that_operators_change),
		CASE(least_and_most_are_of_all_types),
		CASE(numbers_at_their_edges),
		CASE(paths_lead_through_documents_and_arrays),
		CASE(more_mistakes_have_mongodbs_codes),
		CASE(array_filters_are_of_all_forms),
		CASE(conflicts_are_found_where_operators_meet),
		CASE(array_filters_may_be_nested),
		CASE(the_position_has_to_be_known),
		CASE(inserted_documents_have_their_id_first),
		CASE(replacements_say_whether_they_change),
		CASE(upserts_take_what_is_equal_once),
		CASE(paths_know_what_is_below_them),
		CASE(members_are_found_again),
		CASE(an_index_of_members_needs_memory),
		CASE(values_are_shown_so_far_only),
		CASE(paths_have_so_many_names_only),
		CASE(updates_have_so_many_paths_only),
		CASE(elements_are_padded_so_far_only),
		CASE(many_paths_are_as_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
