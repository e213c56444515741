/* Operators of filters with a value of each type, and filters on values of each type. */
#include "mql/match/match.h"

#include "mql_case.h"
#include "samples.h"

struct by_types {
	const char *filter;
	const char *other;    /* the outcome of all types but those that are named: */
	const char *outcomes; /* "type:outcome" */
};

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
	bool matches = false;

	TRY(mql_match_compile(q, run->filter, &m));
	TRY(mql_match_run(m, q, run->document, &matches, &position));
	buf_append_cstr(said, matches ? "yes" : "no");
	return buf_status(said);
}

/* Yes, no, or a code. */
static void
check_outcome(struct arena *arena, const char *filter, const char *document, const char *wanted)
{
	const struct match_run run = { case_bson(arena, filter), case_bson(arena, document) };
	struct buf said = BUF_INIT(CASE_BYTES);
	struct mql q = case_mql(arena);
	const char *got;

	if (match_again(&q, &run, &said) == STATUS_OK)
		got = arena_printf(arena, "%.*s", (int)said.len, said.ptr).ptr;
	else
		got = arena_printf(arena, "%d", q.code).ptr;
	if (strcmp(got, wanted) != 0)
		fail_msg("%s on %s: %s, not %s", filter, document, got, wanted);
	case_memory(match_again, &run, filter);
	buf_release(&said);
}

/* The value's place is %s. */
static void
operators_take_values_of_their_types(void **state)
{
	static const struct by_types cases[] = {
		{ "{'a':%s}", "no", "undefined:2 int:yes long:yes decimal:yes" },
		{ "{'a':[%s]}", "no", "" },
		{ "{'a':{'b':%s}}", "no", "" },
		{ "{'a.b':%s}", "no", "undefined:2 null:yes" },
		{ "{'$and':%s}", "2", "" },
		{ "{'$and':[%s]}", "2", "object:no" },
		{ "{'$or':%s}", "2", "" },
		{ "{'$nor':[%s]}", "2", "object:yes" },
		{ "{'$expr':%s}", "yes", "undefined:no null:no" },
		{ "{'$comment':%s}", "yes", "" },
		{ "{'$sampleRate':%s}", "2", "int:yes long:yes decimal:yes" },
		{ "{'$alwaysTrue':%s}", "9", "int:yes long:yes decimal:yes" },
		{ "{'$alwaysFalse':%s}", "9", "int:no long:no decimal:no" },
		{ "{'$jsonSchema':%s}", "14", "object:9" },
		{ "{'$text':%s}", "115", "" },
		{ "{'$where':%s}", "2", "" },
		{ "{'$bogus':%s}", "2", "" },
		{ "{'a':{'$eq':%s}}", "no", "undefined:2 int:yes long:yes decimal:yes" },
		{ "{'a':{'$ne':%s}}", "yes", "undefined:2 regex:2 int:no long:no decimal:no" },
		{ "{'a':{'$gt':%s}}", "no", "undefined:2 regex:2 minKey:yes" },
		{ "{'a':{'$gte':%s}}", "no",
		  "undefined:2 regex:2 int:yes long:yes decimal:yes minKey:yes" },
		{ "{'a':{'$lt':%s}}", "no", "double:yes undefined:2 regex:2 maxKey:yes" },
		{ "{'a':{'$lte':%s}}", "no",
		  "double:yes undefined:2 regex:2 int:yes long:yes decimal:yes maxKey:yes" },
		{ "{'a':{'$in':%s}}", "2", "array:yes" },
		{ "{'a':{'$nin':%s}}", "2", "array:no" },
		{ "{'a':{'$all':%s}}", "2", "array:yes" },
		{ "{'a':{'$exists':%s}}", "yes", "undefined:no null:no" },
		{ "{'a':{'$type':%s}}", "14",
		  "double:2 string:2 array:no int:no long:no decimal:no" },
		{ "{'a':{'$size':%s}}", "2", "int:no long:no decimal:no" },
		{ "{'a':{'$mod':%s}}", "2", "" },
		{ "{'a':{'$regex':%s}}", "2", "string:no regex:no" },
		{ "{'a':{'$not':%s}}", "2", "regex:yes" },
		{ "{'a':{'$elemMatch':%s}}", "2", "object:no" },
		{ "{'a':{'$bitsAllSet':%s}}", "2",
		  "double:9 array:no binData:yes int:yes long:yes decimal:yes" },
		{ "{'a':{'$bitsAllClear':%s}}", "2",
		  "double:9 array:yes binData:yes int:no long:no decimal:no" },
		{ "{'a':{'$bitsAnySet':%s}}", "2",
		  "double:9 array:no binData:no int:yes long:yes decimal:yes" },
		{ "{'a':{'$bitsAnyClear':%s}}", "2",
		  "double:9 array:yes binData:no int:no long:no decimal:no" },
		{ "{'a':{'$options':%s}}", "2", "" },
		{ "{'a':{'$bogus':%s}}", "2", "" },
		{ "{'a':{'$near':%s}}", "115", "" },
		{ "{'a':{'$expr':%s}}", "2", "" },
		{ "{'a':{'$comment':%s}}", "yes", "" },
		{ "{'a':{'$in':[%s]}}", "no", "undefined:2 int:yes long:yes decimal:yes" },
		{ "{'a':{'$nin':[7,%s]}}", "yes", "undefined:2 int:no long:no decimal:no" },
		{ "{'a':{'$all':[%s]}}", "no", "undefined:2 int:yes long:yes decimal:yes" },
		{ "{'a':{'$all':[1,%s]}}", "no", "undefined:2 int:yes long:yes decimal:yes" },
		{ "{'a':{'$type':[%s]}}", "14", "double:2 string:2 int:no long:no decimal:no" },
		{ "{'a':{'$mod':[%s,1]}}", "2", "double:no int:no long:no decimal:no" },
		{ "{'a':{'$mod':[2,%s]}}", "2", "double:yes int:yes long:yes decimal:yes" },
		{ "{'a':{'$mod':[2,1,%s]}}", "2", "" },
		{ "{'a':{'$bitsAllSet':[%s]}}", "2", "int:no long:no decimal:no" },
		{ "{'a':{'$bitsAnyClear':[0,%s]}}", "2", "int:yes long:yes decimal:yes" },
		{ "{'a':{'$regex':'x','$options':%s}}", "2", "string:no" },
		{ "{'a':{'$regex':%s,'$options':'i'}}", "2", "string:no regex:no" },
		{ "{'a':{'$elemMatch':{'$gt':%s}}}", "no", "undefined:2 regex:2" },
		{ "{'a':{'$elemMatch':{'b':%s}}}", "no", "undefined:2" },
		{ "{'a':{'$not':{'$gt':%s}}}", "yes", "undefined:2 regex:2 minKey:no" },
		{ "{'a':{'$not':{'$in':[%s]}}}", "yes", "undefined:2 int:no long:no decimal:no" },
		{ "{'a':{'$gt':0,'$lt':%s}}", "no", "double:yes undefined:2 regex:2 maxKey:yes" },
		{ "{'a':{'$all':[{'$elemMatch':%s}]}}", "2", "object:no" },
	};

	(void)state;
	for (size_t i = 0; i < CASES(cases); i++) {
		const char *filter = cases[i].filter, *place = strstr(filter, "%s");

		for (size_t k = 0; k < CASES(samples); k++) {
			struct arena *arena = arena_new(CASE_BYTES);
			struct str whole = arena_printf(arena, "%.*s%s%s", (int)(place - filter),
							filter, samples[k].value,
							place + strlen("%s"));

			check_outcome(
				arena, whole.ptr, "{'a':1}",
				word_of(arena, cases[i].outcomes, samples[k].type, cases[i].other));
			arena_free(arena);
		}
	}
}

static void
check_documents(const struct by_types *cases, size_t count, const char *before, const char *behind)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k <= CASES(samples); k++) {
			bool missing = k == CASES(samples);
			const char *type = missing ? "missing" : samples[k].type;
			struct arena *arena = arena_new(CASE_BYTES);
			struct str document = missing ? STR("{}")
						      : arena_printf(arena, "%s%s%s", before,
								     samples[k].value, behind);

			check_outcome(arena, cases[i].filter, document.ptr,
				      word_of(arena, cases[i].outcomes, type, cases[i].other));
			arena_free(arena);
		}
	}
}

static void
values_of_each_type_are_matched(void **state)
{
	static const struct by_types cases[] = {
		{ "{'a':{'$eq':1.5}}", "no", "double:yes" },
		{ "{'a':{'$gt':1.5}}", "no", "" },
		{ "{'a':{'$gte':1.5}}", "no", "double:yes" },
		{ "{'a':{'$lt':1.5}}", "no", "array:yes int:yes long:yes decimal:yes" },
		{ "{'a':{'$lte':1.5}}", "no", "double:yes array:yes int:yes long:yes decimal:yes" },
		{ "{'a':{'$eq':'x'}}", "no", "string:yes symbol:yes" },
		{ "{'a':{'$gt':'x'}}", "no", "" },
		{ "{'a':{'$gte':'x'}}", "no", "string:yes symbol:yes" },
		{ "{'a':{'$lt':'x'}}", "no", "" },
		{ "{'a':{'$lte':'x'}}", "no", "string:yes symbol:yes" },
		{ "{'a':{'$eq':{'b':1}}}", "no", "object:yes" },
		{ "{'a':{'$gt':{'b':1}}}", "no", "" },
		{ "{'a':{'$gte':{'b':1}}}", "no", "object:yes" },
		{ "{'a':{'$lt':{'b':1}}}", "no", "" },
		{ "{'a':{'$lte':{'b':1}}}", "no", "object:yes" },
		{ "{'a':{'$eq':[1]}}", "no", "array:yes" },
		{ "{'a':{'$gt':[1]}}", "no", "" },
		{ "{'a':{'$gte':[1]}}", "no", "array:yes" },
		{ "{'a':{'$lt':[1]}}", "no", "" },
		{ "{'a':{'$lte':[1]}}", "no", "array:yes" },
		{ "{'a':{'$eq':{'$binary':{'base64':'AA==','subType':'00'}}}}", "no",
		  "binData:yes" },
		{ "{'a':{'$gt':{'$binary':{'base64':'AA==','subType':'00'}}}}", "no", "" },
		{ "{'a':{'$gte':{'$binary':{'base64':'AA==','subType':'00'}}}}", "no",
		  "binData:yes" },
		{ "{'a':{'$lt':{'$binary':{'base64':'AA==','subType':'00'}}}}", "no", "" },
		{ "{'a':{'$lte':{'$binary':{'base64':'AA==','subType':'00'}}}}", "no",
		  "binData:yes" },
		{ "{'a':{'$eq':{'$oid':'0123456789abcdef01234567'}}}", "no", "objectId:yes" },
		{ "{'a':{'$gt':{'$oid':'0123456789abcdef01234567'}}}", "no", "" },
		{ "{'a':{'$gte':{'$oid':'0123456789abcdef01234567'}}}", "no", "objectId:yes" },
		{ "{'a':{'$lt':{'$oid':'0123456789abcdef01234567'}}}", "no", "" },
		{ "{'a':{'$lte':{'$oid':'0123456789abcdef01234567'}}}", "no", "objectId:yes" },
		{ "{'a':{'$eq':true}}", "no", "bool:yes" },
		{ "{'a':{'$gt':true}}", "no", "" },
		{ "{'a':{'$gte':true}}", "no", "bool:yes" },
		{ "{'a':{'$lt':true}}", "no", "" },
		{ "{'a':{'$lte':true}}", "no", "bool:yes" },
		{ "{'a':{'$eq':{'$date':'2024-01-01T00:00:00Z'}}}", "no", "date:yes" },
		{ "{'a':{'$gt':{'$date':'2024-01-01T00:00:00Z'}}}", "no", "" },
		{ "{'a':{'$gte':{'$date':'2024-01-01T00:00:00Z'}}}", "no", "date:yes" },
		{ "{'a':{'$lt':{'$date':'2024-01-01T00:00:00Z'}}}", "no", "" },
		{ "{'a':{'$lte':{'$date':'2024-01-01T00:00:00Z'}}}", "no", "date:yes" },
		{ "{'a':{'$eq':null}}", "no", "null:yes missing:yes" },
		{ "{'a':{'$gt':null}}", "no", "" },
		{ "{'a':{'$gte':null}}", "no", "null:yes missing:yes" },
		{ "{'a':{'$lt':null}}", "no", "" },
		{ "{'a':{'$lte':null}}", "no", "null:yes missing:yes" },
		{ "{'a':{'$eq':{'$regularExpression':{'pattern':'x','options':''}}}}", "no",
		  "regex:yes" },
		{ "{'a':{'$eq':1}}", "no", "array:yes int:yes long:yes decimal:yes" },
		{ "{'a':{'$gt':1}}", "no", "double:yes" },
		{ "{'a':{'$gte':1}}", "no", "double:yes array:yes int:yes long:yes decimal:yes" },
		{ "{'a':{'$lt':1}}", "no", "" },
		{ "{'a':{'$lte':1}}", "no", "array:yes int:yes long:yes decimal:yes" },
		{ "{'a':{'$eq':{'$timestamp':{'t':1,'i':1}}}}", "no", "timestamp:yes" },
		{ "{'a':{'$gt':{'$timestamp':{'t':1,'i':1}}}}", "no", "" },
		{ "{'a':{'$gte':{'$timestamp':{'t':1,'i':1}}}}", "no", "timestamp:yes" },
		{ "{'a':{'$lt':{'$timestamp':{'t':1,'i':1}}}}", "no", "" },
		{ "{'a':{'$lte':{'$timestamp':{'t':1,'i':1}}}}", "no", "timestamp:yes" },
		{ "{'a':{'$eq':{'$numberDecimal':'NaN'}}}", "no", "" },
		{ "{'a':{'$gt':{'$numberDecimal':'NaN'}}}", "no", "" },
		{ "{'a':{'$gte':{'$numberDecimal':'NaN'}}}", "no", "" },
		{ "{'a':{'$lt':{'$numberDecimal':'NaN'}}}", "no", "" },
		{ "{'a':{'$lte':{'$numberDecimal':'NaN'}}}", "no", "" },
		{ "{'a':{'$eq':{'$minKey':1}}}", "no", "minKey:yes" },
		{ "{'a':{'$gt':{'$minKey':1}}}", "yes", "minKey:no" },
		{ "{'a':{'$gte':{'$minKey':1}}}", "yes", "" },
		{ "{'a':{'$lt':{'$minKey':1}}}", "no", "" },
		{ "{'a':{'$lte':{'$minKey':1}}}", "no", "minKey:yes" },
		{ "{'a':{'$eq':{'$maxKey':1}}}", "no", "maxKey:yes" },
		{ "{'a':{'$gt':{'$maxKey':1}}}", "no", "" },
		{ "{'a':{'$gte':{'$maxKey':1}}}", "no", "maxKey:yes" },
		{ "{'a':{'$lt':{'$maxKey':1}}}", "yes", "maxKey:no" },
		{ "{'a':{'$lte':{'$maxKey':1}}}", "yes", "" },
		{ "{'a':{'$eq':{'$code':'x'}}}", "no", "javascript:yes" },
		{ "{'a':{'$gt':{'$code':'x'}}}", "no", "" },
		{ "{'a':{'$gte':{'$code':'x'}}}", "no", "javascript:yes" },
		{ "{'a':{'$lt':{'$code':'x'}}}", "no", "" },
		{ "{'a':{'$lte':{'$code':'x'}}}", "no", "javascript:yes" },
		{ "{'a':{'$eq':[]}}", "no", "" },
		{ "{'a':{'$gt':[]}}", "no", "array:yes" },
		{ "{'a':{'$gte':[]}}", "no", "array:yes" },
		{ "{'a':{'$lt':[]}}", "no", "" },
		{ "{'a':{'$lte':[]}}", "no", "" },
		{ "{'a':{'$eq':{}}}", "no", "" },
		{ "{'a':{'$gt':{}}}", "no", "object:yes" },
		{ "{'a':{'$gte':{}}}", "no", "object:yes" },
		{ "{'a':{'$lt':{}}}", "no", "" },
		{ "{'a':{'$lte':{}}}", "no", "" },
		{ "{'a':{'$eq':''}}", "no", "" },
		{ "{'a':{'$gt':''}}", "no", "string:yes symbol:yes" },
		{ "{'a':{'$gte':''}}", "no", "string:yes symbol:yes" },
		{ "{'a':{'$lt':''}}", "no", "" },
		{ "{'a':{'$lte':''}}", "no", "" },
		{ "{'a':{'$eq':false}}", "no", "" },
		{ "{'a':{'$gt':false}}", "no", "bool:yes" },
		{ "{'a':{'$gte':false}}", "no", "bool:yes" },
		{ "{'a':{'$lt':false}}", "no", "" },
		{ "{'a':{'$lte':false}}", "no", "" },
		{ "{'a':{'$ne':null}}", "yes", "null:no missing:no" },
		{ "{'a':{'$in':[1,'x',null]}}", "no",
		  "string:yes array:yes null:yes int:yes long:yes decimal:yes symbol:yes "
		  "missing:yes" },
		{ "{'a':{'$nin':[1,'x']}}", "yes",
		  "string:no array:no int:no long:no decimal:no symbol:no" },
		{ "{'a':{'$exists':true}}", "yes", "missing:no" },
		{ "{'a':{'$exists':false}}", "no", "missing:yes" },
		{ "{'a':{'$not':{'$gt':0}}}", "yes",
		  "double:no array:no int:no long:no decimal:no" },
		{ "{'a':{'$size':1}}", "no", "array:yes" },
		{ "{'a':{'$mod':[2,1]}}", "no",
		  "double:yes array:yes int:yes long:yes decimal:yes" },
		{ "{'a':{'$all':[1]}}", "no", "array:yes int:yes long:yes decimal:yes" },
		{ "{'a':{'$elemMatch':{'$gt':0}}}", "no", "array:yes" },
		{ "{'a':{'$elemMatch':{'b':1}}}", "no", "" },
		{ "{'a':{'$bitsAllSet':[0]}}", "no", "array:yes int:yes long:yes decimal:yes" },
		{ "{'a':{'$bitsAllClear':[0]}}", "no", "binData:yes" },
		{ "{'a':{'$bitsAnySet':[0,1]}}", "no", "array:yes int:yes long:yes decimal:yes" },
		{ "{'a':{'$bitsAnyClear':[0]}}", "no", "binData:yes" },
		{ "{'a.b':1}", "no", "object:yes" },
		{ "{'a.0':1}", "no", "array:yes" },
		{ "{'a.b':null}", "yes", "object:no array:no" },
		{ "{'a.b':{'$exists':false}}", "yes", "object:no" },
		{ "{'a':{'$regularExpression':{'pattern':'x','options':''}}}", "no",
		  "string:yes regex:yes symbol:yes" },
		{ "{'a':{'$in':[{'$regularExpression':{'pattern':'x','options':''}}]}}", "no",
		  "string:yes regex:yes symbol:yes" },
		{ "{'a':{'$not':{'$regularExpression':{'pattern':'x','options':''}}}}", "yes",
		  "string:no regex:no symbol:no" },
		{ "{'a':{'$all':[{'$regularExpression':{'pattern':'x','options':''}}]}}", "no",
		  "string:yes regex:yes symbol:yes" },
		{ "{'a':{'$regex':'^x','$options':'i'}}", "no", "string:yes symbol:yes" },
		{ "{'$expr':'$a'}", "yes", "undefined:no null:no missing:no" },
		{ "{'$expr':{'$gt':['$a',0]}}", "yes",
		  "undefined:no null:no minKey:no missing:no" },
		{ "{'$nor':[{'a':1}]}", "yes", "array:no int:no long:no decimal:no" },
		{ "{'$or':[{'a':1},{'a':'x'}]}", "no",
		  "string:yes array:yes int:yes long:yes decimal:yes symbol:yes" },
		{ "{'a':{'$elemMatch':{'$in':[1]}}}", "no", "array:yes" },
		{ "{'a':{'$elemMatch':{}}}", "no", "" },
		{ "{'a':{'$type':'double'}}", "no", "double:yes" },
		{ "{'a':{'$type':'string'}}", "no", "string:yes" },
		{ "{'a':{'$type':'object'}}", "no", "object:yes" },
		{ "{'a':{'$type':'array'}}", "no", "array:yes" },
		{ "{'a':{'$type':'binData'}}", "no", "binData:yes" },
		{ "{'a':{'$type':'undefined'}}", "no", "undefined:yes" },
		{ "{'a':{'$type':'objectId'}}", "no", "objectId:yes" },
		{ "{'a':{'$type':'bool'}}", "no", "bool:yes" },
		{ "{'a':{'$type':'date'}}", "no", "date:yes" },
		{ "{'a':{'$type':'null'}}", "no", "null:yes" },
		{ "{'a':{'$type':'regex'}}", "no", "regex:yes" },
		{ "{'a':{'$type':'dbPointer'}}", "no", "dbPointer:yes" },
		{ "{'a':{'$type':'javascript'}}", "no", "javascript:yes" },
		{ "{'a':{'$type':'symbol'}}", "no", "symbol:yes" },
		{ "{'a':{'$type':'javascriptWithScope'}}", "no", "javascriptWithScope:yes" },
		{ "{'a':{'$type':'int'}}", "no", "array:yes int:yes" },
		{ "{'a':{'$type':'timestamp'}}", "no", "timestamp:yes" },
		{ "{'a':{'$type':'long'}}", "no", "long:yes" },
		{ "{'a':{'$type':'decimal'}}", "no", "decimal:yes" },
		{ "{'a':{'$type':'minKey'}}", "no", "minKey:yes" },
		{ "{'a':{'$type':'maxKey'}}", "no", "maxKey:yes" },
		{ "{'a':{'$type':'number'}}", "no",
		  "double:yes array:yes int:yes long:yes decimal:yes" },
		{ "{'a':{'$type':1}}", "no", "double:yes" },
		{ "{'a':{'$type':2}}", "no", "string:yes" },
		{ "{'a':{'$type':3}}", "no", "object:yes" },
		{ "{'a':{'$type':4}}", "no", "array:yes" },
		{ "{'a':{'$type':8}}", "no", "bool:yes" },
		{ "{'a':{'$type':16}}", "no", "array:yes int:yes" },
		{ "{'a':{'$type':18}}", "no", "long:yes" },
		{ "{'a':{'$type':19}}", "no", "decimal:yes" },
		{ "{'a':{'$type':-1}}", "no", "minKey:yes" },
		{ "{'a':{'$type':127}}", "no", "maxKey:yes" },
	};

	(void)state;
	check_documents(cases, CASES(cases), "{'a':", "}");
}

static void
elements_of_each_type_are_matched(void **state)
{
	static const struct by_types cases[] = {
		{ "{'a':{'$eq':1.5}}", "no", "double:yes" },
		{ "{'a':{'$gt':1.5}}", "yes", "missing:no" },
		{ "{'a':{'$gte':1.5}}", "yes", "missing:no" },
		{ "{'a':{'$lt':1.5}}", "no", "int:yes long:yes decimal:yes" },
		{ "{'a':{'$lte':1.5}}", "no", "double:yes int:yes long:yes decimal:yes" },
		{ "{'a':{'$eq':'x'}}", "no", "string:yes symbol:yes" },
		{ "{'a':{'$gt':'x'}}", "no", "" },
		{ "{'a':{'$gte':'x'}}", "no", "string:yes symbol:yes" },
		{ "{'a':{'$lt':'x'}}", "no", "" },
		{ "{'a':{'$lte':'x'}}", "no", "string:yes symbol:yes" },
		{ "{'a':{'$eq':{'b':1}}}", "no", "object:yes" },
		{ "{'a':{'$gt':{'b':1}}}", "no", "" },
		{ "{'a':{'$gte':{'b':1}}}", "no", "object:yes" },
		{ "{'a':{'$lt':{'b':1}}}", "no", "" },
		{ "{'a':{'$lte':{'b':1}}}", "no", "object:yes" },
		{ "{'a':{'$eq':[1]}}", "no", "array:yes" },
		{ "{'a':{'$gt':[1]}}", "yes", "missing:no" },
		{ "{'a':{'$gte':[1]}}", "yes", "missing:no" },
		{ "{'a':{'$lt':[1]}}", "no", "" },
		{ "{'a':{'$lte':[1]}}", "no", "array:yes" },
		{ "{'a':{'$eq':{'$binary':{'base64':'AA==','subType':'00'}}}}", "no",
		  "binData:yes" },
		{ "{'a':{'$gt':{'$binary':{'base64':'AA==','subType':'00'}}}}", "no", "" },
		{ "{'a':{'$gte':{'$binary':{'base64':'AA==','subType':'00'}}}}", "no",
		  "binData:yes" },
		{ "{'a':{'$lt':{'$binary':{'base64':'AA==','subType':'00'}}}}", "no", "" },
		{ "{'a':{'$lte':{'$binary':{'base64':'AA==','subType':'00'}}}}", "no",
		  "binData:yes" },
		{ "{'a':{'$eq':{'$oid':'0123456789abcdef01234567'}}}", "no", "objectId:yes" },
		{ "{'a':{'$gt':{'$oid':'0123456789abcdef01234567'}}}", "no", "" },
		{ "{'a':{'$gte':{'$oid':'0123456789abcdef01234567'}}}", "no", "objectId:yes" },
		{ "{'a':{'$lt':{'$oid':'0123456789abcdef01234567'}}}", "no", "" },
		{ "{'a':{'$lte':{'$oid':'0123456789abcdef01234567'}}}", "no", "objectId:yes" },
		{ "{'a':{'$eq':true}}", "no", "bool:yes" },
		{ "{'a':{'$gt':true}}", "no", "" },
		{ "{'a':{'$gte':true}}", "no", "bool:yes" },
		{ "{'a':{'$lt':true}}", "no", "" },
		{ "{'a':{'$lte':true}}", "no", "bool:yes" },
		{ "{'a':{'$eq':{'$date':'2024-01-01T00:00:00Z'}}}", "no", "date:yes" },
		{ "{'a':{'$gt':{'$date':'2024-01-01T00:00:00Z'}}}", "no", "" },
		{ "{'a':{'$gte':{'$date':'2024-01-01T00:00:00Z'}}}", "no", "date:yes" },
		{ "{'a':{'$lt':{'$date':'2024-01-01T00:00:00Z'}}}", "no", "" },
		{ "{'a':{'$lte':{'$date':'2024-01-01T00:00:00Z'}}}", "no", "date:yes" },
		{ "{'a':{'$eq':null}}", "no", "null:yes missing:yes" },
		{ "{'a':{'$gt':null}}", "no", "" },
		{ "{'a':{'$gte':null}}", "no", "null:yes missing:yes" },
		{ "{'a':{'$lt':null}}", "no", "" },
		{ "{'a':{'$lte':null}}", "no", "null:yes missing:yes" },
		{ "{'a':{'$eq':{'$regularExpression':{'pattern':'x','options':''}}}}", "no",
		  "regex:yes" },
		{ "{'a':{'$eq':1}}", "no", "int:yes long:yes decimal:yes" },
		{ "{'a':{'$gt':1}}", "yes", "missing:no" },
		{ "{'a':{'$gte':1}}", "yes", "missing:no" },
		{ "{'a':{'$lt':1}}", "no", "" },
		{ "{'a':{'$lte':1}}", "no", "int:yes long:yes decimal:yes" },
		{ "{'a':{'$eq':{'$timestamp':{'t':1,'i':1}}}}", "no", "timestamp:yes" },
		{ "{'a':{'$gt':{'$timestamp':{'t':1,'i':1}}}}", "no", "" },
		{ "{'a':{'$gte':{'$timestamp':{'t':1,'i':1}}}}", "no", "timestamp:yes" },
		{ "{'a':{'$lt':{'$timestamp':{'t':1,'i':1}}}}", "no", "" },
		{ "{'a':{'$lte':{'$timestamp':{'t':1,'i':1}}}}", "no", "timestamp:yes" },
		{ "{'a':{'$eq':{'$numberDecimal':'NaN'}}}", "no", "" },
		{ "{'a':{'$gt':{'$numberDecimal':'NaN'}}}", "no", "" },
		{ "{'a':{'$gte':{'$numberDecimal':'NaN'}}}", "no", "" },
		{ "{'a':{'$lt':{'$numberDecimal':'NaN'}}}", "no", "" },
		{ "{'a':{'$lte':{'$numberDecimal':'NaN'}}}", "no", "" },
		{ "{'a':{'$eq':{'$minKey':1}}}", "no", "minKey:yes" },
		{ "{'a':{'$gt':{'$minKey':1}}}", "yes", "" },
		{ "{'a':{'$gte':{'$minKey':1}}}", "yes", "" },
		{ "{'a':{'$lt':{'$minKey':1}}}", "no", "" },
		{ "{'a':{'$lte':{'$minKey':1}}}", "no", "minKey:yes" },
		{ "{'a':{'$eq':{'$maxKey':1}}}", "no", "maxKey:yes" },
		{ "{'a':{'$gt':{'$maxKey':1}}}", "no", "" },
		{ "{'a':{'$gte':{'$maxKey':1}}}", "no", "maxKey:yes" },
		{ "{'a':{'$lt':{'$maxKey':1}}}", "yes", "" },
		{ "{'a':{'$lte':{'$maxKey':1}}}", "yes", "" },
		{ "{'a':{'$eq':{'$code':'x'}}}", "no", "javascript:yes" },
		{ "{'a':{'$gt':{'$code':'x'}}}", "no", "" },
		{ "{'a':{'$gte':{'$code':'x'}}}", "no", "javascript:yes" },
		{ "{'a':{'$lt':{'$code':'x'}}}", "no", "" },
		{ "{'a':{'$lte':{'$code':'x'}}}", "no", "javascript:yes" },
		{ "{'a':{'$eq':[]}}", "no", "" },
		{ "{'a':{'$gt':[]}}", "yes", "missing:no" },
		{ "{'a':{'$gte':[]}}", "yes", "missing:no" },
		{ "{'a':{'$lt':[]}}", "no", "" },
		{ "{'a':{'$lte':[]}}", "no", "" },
		{ "{'a':{'$eq':{}}}", "no", "" },
		{ "{'a':{'$gt':{}}}", "no", "object:yes" },
		{ "{'a':{'$gte':{}}}", "no", "object:yes" },
		{ "{'a':{'$lt':{}}}", "no", "" },
		{ "{'a':{'$lte':{}}}", "no", "" },
		{ "{'a':{'$eq':''}}", "no", "" },
		{ "{'a':{'$gt':''}}", "no", "string:yes symbol:yes" },
		{ "{'a':{'$gte':''}}", "no", "string:yes symbol:yes" },
		{ "{'a':{'$lt':''}}", "no", "" },
		{ "{'a':{'$lte':''}}", "no", "" },
		{ "{'a':{'$eq':false}}", "no", "" },
		{ "{'a':{'$gt':false}}", "no", "bool:yes" },
		{ "{'a':{'$gte':false}}", "no", "bool:yes" },
		{ "{'a':{'$lt':false}}", "no", "" },
		{ "{'a':{'$lte':false}}", "no", "" },
		{ "{'a':{'$ne':null}}", "yes", "null:no missing:no" },
		{ "{'a':{'$in':[1,'x',null]}}", "no",
		  "string:yes null:yes int:yes long:yes decimal:yes symbol:yes missing:yes" },
		{ "{'a':{'$nin':[1,'x']}}", "yes",
		  "string:no int:no long:no decimal:no symbol:no" },
		{ "{'a':{'$exists':true}}", "yes", "missing:no" },
		{ "{'a':{'$exists':false}}", "no", "missing:yes" },
		{ "{'a':{'$not':{'$gt':0}}}", "no", "missing:yes" },
		{ "{'a':{'$size':1}}", "no", "" },
		{ "{'a':{'$mod':[2,1]}}", "yes", "missing:no" },
		{ "{'a':{'$all':[1]}}", "no", "int:yes long:yes decimal:yes" },
		{ "{'a':{'$elemMatch':{'$gt':0}}}", "yes", "missing:no" },
		{ "{'a':{'$elemMatch':{'b':1}}}", "no", "object:yes" },
		{ "{'a':{'$bitsAllSet':[0]}}", "yes", "missing:no" },
		{ "{'a':{'$bitsAllClear':[0]}}", "no", "binData:yes" },
		{ "{'a':{'$bitsAnySet':[0,1]}}", "yes", "missing:no" },
		{ "{'a':{'$bitsAnyClear':[0]}}", "no", "binData:yes" },
		{ "{'a.b':1}", "no", "object:yes" },
		{ "{'a.0':1}", "no", "" },
		{ "{'a.b':null}", "no", "missing:yes" },
		{ "{'a.b':{'$exists':false}}", "yes", "object:no" },
		{ "{'a':{'$regularExpression':{'pattern':'x','options':''}}}", "no",
		  "string:yes regex:yes symbol:yes" },
		{ "{'a':{'$in':[{'$regularExpression':{'pattern':'x','options':''}}]}}", "no",
		  "string:yes regex:yes symbol:yes" },
		{ "{'a':{'$not':{'$regularExpression':{'pattern':'x','options':''}}}}", "yes",
		  "string:no regex:no symbol:no" },
		{ "{'a':{'$all':[{'$regularExpression':{'pattern':'x','options':''}}]}}", "no",
		  "string:yes regex:yes symbol:yes" },
		{ "{'a':{'$regex':'^x','$options':'i'}}", "no", "string:yes symbol:yes" },
		{ "{'$expr':'$a'}", "yes", "missing:no" },
		{ "{'$expr':{'$gt':['$a',0]}}", "yes", "missing:no" },
		{ "{'$nor':[{'a':1}]}", "yes", "int:no long:no decimal:no" },
		{ "{'$or':[{'a':1},{'a':'x'}]}", "no",
		  "string:yes int:yes long:yes decimal:yes symbol:yes" },
		{ "{'a':{'$elemMatch':{'$in':[1]}}}", "no", "int:yes long:yes decimal:yes" },
		{ "{'a':{'$elemMatch':{}}}", "no", "object:yes array:yes" },
		{ "{'a':{'$type':'double'}}", "no", "double:yes" },
		{ "{'a':{'$type':'string'}}", "no", "string:yes" },
		{ "{'a':{'$type':'object'}}", "no", "object:yes" },
		{ "{'a':{'$type':'array'}}", "yes", "missing:no" },
		{ "{'a':{'$type':'binData'}}", "no", "binData:yes" },
		{ "{'a':{'$type':'undefined'}}", "no", "undefined:yes" },
		{ "{'a':{'$type':'objectId'}}", "no", "objectId:yes" },
		{ "{'a':{'$type':'bool'}}", "no", "bool:yes" },
		{ "{'a':{'$type':'date'}}", "no", "date:yes" },
		{ "{'a':{'$type':'null'}}", "no", "null:yes" },
		{ "{'a':{'$type':'regex'}}", "no", "regex:yes" },
		{ "{'a':{'$type':'dbPointer'}}", "no", "dbPointer:yes" },
		{ "{'a':{'$type':'javascript'}}", "no", "javascript:yes" },
		{ "{'a':{'$type':'symbol'}}", "no", "symbol:yes" },
		{ "{'a':{'$type':'javascriptWithScope'}}", "no", "javascriptWithScope:yes" },
		{ "{'a':{'$type':'int'}}", "yes", "missing:no" },
		{ "{'a':{'$type':'timestamp'}}", "no", "timestamp:yes" },
		{ "{'a':{'$type':'long'}}", "no", "long:yes" },
		{ "{'a':{'$type':'decimal'}}", "no", "decimal:yes" },
		{ "{'a':{'$type':'minKey'}}", "no", "minKey:yes" },
		{ "{'a':{'$type':'maxKey'}}", "no", "maxKey:yes" },
		{ "{'a':{'$type':'number'}}", "yes", "missing:no" },
		{ "{'a':{'$type':1}}", "no", "double:yes" },
		{ "{'a':{'$type':2}}", "no", "string:yes" },
		{ "{'a':{'$type':3}}", "no", "object:yes" },
		{ "{'a':{'$type':4}}", "yes", "missing:no" },
		{ "{'a':{'$type':8}}", "no", "bool:yes" },
		{ "{'a':{'$type':16}}", "yes", "missing:no" },
		{ "{'a':{'$type':18}}", "no", "long:yes" },
		{ "{'a':{'$type':19}}", "no", "decimal:yes" },
		{ "{'a':{'$type':-1}}", "no", "minKey:yes" },
		{ "{'a':{'$type':127}}", "no", "maxKey:yes" },
	};

	(void)state;
	check_documents(cases, CASES(cases), "{'a':[7,", "]}");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operators_take_values_of_their_types),
		cmocka_unit_test(values_of_each_type_are_matched),
		cmocka_unit_test(elements_of_each_type_are_matched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
