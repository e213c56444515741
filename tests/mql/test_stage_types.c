/* Options of stages of each type, and what stages make of values of each type. */
#include "samples.h"
#include "stages_case.h"

struct by_types {
	const char *pipeline;
	const char *other;    /* the outcome of all types but those that are named: */
	const char *outcomes; /* "type:outcome" */
};

/* A code, 0 where there is none; of what was made the type, with the value where that is short. */
static const char *
outcome_of(struct arena *arena, const struct bson_value *v)
{
	switch ((int)v->type) {
	case BSON_INT32:
	case BSON_INT64:
		return arena_printf(arena, "%s(%lld)", bson_type_name(v->type),
				    (long long)bson_integer(v))
			.ptr;
	case BSON_DOUBLE:
		return arena_printf(arena, "double(%.4g)", bson_real(v)).ptr;
	case BSON_BOOL:
		return bson_truth(v) ? "bool(true)" : "bool(false)";
	case BSON_ARRAY:
		return arena_printf(arena, "array(%zu)", bson_count(bson_text(v))).ptr;
	default:
		return bson_type_name(v->type);
	}
}

/* Runs a pipeline, or only compiles it if it writes: there is nothing to write to. */
static enum status
run_or_compile(struct mql *q, const char *pipeline, const char *documents, struct buf *out)
{
	const struct mql_pipeline_options options = { .scope = NULL };
	struct bson_value stages, docs;
	struct mql_pipeline *p;
	struct str both = case_bson(
		q->arena, arena_printf(q->arena, "{'p':[%s],'d':[%s]}", pipeline, documents).ptr);

	assert_true(bson_find(both, STR("p"), &stages) && bson_find(both, STR("d"), &docs));
	if (strstr(pipeline, "{'$merge'") || strstr(pipeline, "{'$out'"))
		return mql_pipeline_compile(q, bson_text(&stages), &options, &p);
	return run_stages(q, bson_text(&stages), bson_text(&docs), RUN_DEFAULT, out);
}

static int
code_of_option(struct arena *arena, const char *pipeline, const char *value)
{
	const char *place = strstr(pipeline, "%s");
	struct str whole = arena_printf(arena, "%.*s%s%s", (int)(place - pipeline), pipeline, value,
					place + strlen("%s"));
	struct buf out = BUF_INIT(CASE_BYTES);
	struct mql q = case_mql(arena);
	enum status status = run_or_compile(&q, whole.ptr, "{'n':1,'a':1,'d':{'$date':0}}", &out);

	if (status != STATUS_OK && !q.code)
		fail_msg("%s: %s", whole.ptr, status_name(status));
	buf_release(&out);
	return q.code;
}

/* The value's place is %s. */
static const struct by_types options_of_stages[] = {
	{ "{'$match':%s}", "15959", "object:0" },
	{ "{'$limit':%s}", "5107201", "int:0 long:0 decimal:0" },
	{ "{'$skip':%s}", "5107200", "int:0 long:0 decimal:0" },
	{ "{'$sort':%s}", "15973", "object:0" },
	{ "{'$sort':{'a':%s}}", "15974", "double:0 object:17312 int:0 long:0 decimal:0" },
	{ "{'$unwind':%s}", "15981", "string:28818 object:28811" },
	{ "{'$unwind':{'path':%s}}", "28808", "string:28818" },
	{ "{'$unwind':{'path':'$a','preserveNullAndEmptyArrays':%s}}", "28809", "bool:0" },
	{ "{'$unwind':{'path':'$a','includeArrayIndex':%s}}", "28810", "string:0" },
	{ "{'$group':%s}", "15947", "object:40234" },
	{ "{'$group':{'_id':%s}}", "0", "" },
	{ "{'$group':{'_id':1,'x':%s}}", "40234", "" },
	{ "{'$replaceRoot':%s}", "40229", "object:40415" },
	{ "{'$replaceRoot':{'newRoot':%s}}", "40228", "object:0" },
	{ "{'$replaceWith':%s}", "40228", "object:0" },
	{ "{'$redact':%s}", "17053", "" },
	{ "{'$sample':%s}", "28745", "object:28748" },
	{ "{'$sample':{'size':%s}}", "28746", "double:0 int:0 long:0 decimal:0" },
	{ "{'$count':%s}", "40156", "string:0" },
	{ "{'$sortByCount':%s}", "40149", "string:40148 object:40147" },
	{ "{'$facet':%s}", "40169", "object:40170" },
	{ "{'$facet':{'a':%s}}", "40170", "array:40171" },
	{ "{'$facet':{'a':[%s]}}", "40171", "object:40324" },
	{ "{'$project':%s}", "15969", "object:0" },
	{ "{'$project':{'a':%s}}", "0", "" },
	{ "{'$set':%s}", "40272", "object:0" },
	{ "{'$unset':%s}", "31002", "string:0 array:31120" },
	{ "{'$unset':['c',%s]}", "31120", "string:0" },
	{ "{'$documents':%s}", "5858203", "array:40228" },
	{ "{'$documents':[%s]}", "40228", "object:0" },
	{ "{'$bucket':%s}", "40201", "object:40197" },
	{ "{'$bucket':{'groupBy':%s,'boundaries':[0,9]}}", "40202", "object:40066" },
	{ "{'$bucket':{'groupBy':'$n','boundaries':%s}}", "40200", "array:40192" },
	{ "{'$bucket':{'groupBy':'$n','boundaries':[%s,9]}}", "40193",
	  "double:40066 int:0 long:0 decimal:0" },
	{ "{'$bucket':{'groupBy':'$n','boundaries':[0,%s]}}", "40193",
	  "double:0 int:40066 long:40066 decimal:40066" },
	{ "{'$bucket':{'groupBy':'$n','boundaries':[0,9],'default':%s}}", "0",
	  "double:40199 int:40199 long:40199 decimal:40199" },
	{ "{'$bucket':{'groupBy':'$n','boundaries':[0,9],'output':%s}}", "40196", "object:40234" },
	{ "{'$bucketAuto':%s}", "40240", "object:40245" },
	{ "{'$bucketAuto':{'groupBy':%s,'buckets':1}}", "40239", "" },
	{ "{'$bucketAuto':{'groupBy':'$n','buckets':%s}}", "40241",
	  "double:40242 int:0 long:0 decimal:0" },
	{ "{'$bucketAuto':{'groupBy':'$n','buckets':1,'output':%s}}", "40244", "object:40234" },
	{ "{'$bucketAuto':{'groupBy':'$n','buckets':1,'granularity':%s}}", "40261",
	  "string:40257" },
	{ "{'$lookup':%s}", "9", "" },
	{ "{'$lookup':{'from':%s,'as':'r','pipeline':[]}}", "9", "string:0" },
	{ "{'$lookup':{'from':'o','as':%s,'pipeline':[]}}", "9", "string:0" },
	{ "{'$lookup':{'from':'o','as':'r','pipeline':%s}}", "14", "" },
	{ "{'$lookup':{'from':'o','as':'r','pipeline':[%s]}}", "14", "object:40324" },
	{ "{'$lookup':{'from':'o','as':'r','pipeline':[],'let':%s}}", "9", "object:0" },
	{ "{'$lookup':{'from':'o','as':'r','localField':%s,'foreignField':'b'}}", "9", "string:0" },
	{ "{'$lookup':{'from':'o','as':'r','localField':'a','foreignField':%s}}", "9", "string:0" },
	{ "{'$lookup':{'from':{'coll':%s,'db':''},'as':'r','pipeline':[]}}", "9", "string:0" },
	{ "{'$unionWith':%s}", "9", "string:0 object:40415" },
	{ "{'$unionWith':{'coll':%s}}", "14", "string:0" },
	{ "{'$unionWith':{'coll':'o','pipeline':%s}}", "14", "" },
	{ "{'$unionWith':{'coll':'o','pipeline':[%s]}}", "14", "object:40324" },
	{ "{'$graphLookup':%s}", "9", "object:40104" },
	{ "{'$graphLookup':{'from':%s,'startWith':'$n','connectFromField':'n','connectT"
	  "oField':'b','as':'r'}}",
	  "9", "string:0" },
	{ "{'$graphLookup':{'from':'o','startWith':%s,'connectFromField':'n','connectTo"
	  "Field':'b','as':'r'}}",
	  "0", "undefined:2" },
	{ "{'$graphLookup':{'from':'o','startWith':'$n','connectFromField':%s,'connectT"
	  "oField':'b','as':'r'}}",
	  "40103", "string:0" },
	{ "{'$graphLookup':{'from':'o','startWith':'$n','connectFromField':'n','connect"
	  "ToField':%s,'as':'r'}}",
	  "40103", "string:0" },
	{ "{'$graphLookup':{'from':'o','startWith':'$n','connectFromField':'n','connect"
	  "ToField':'b','as':%s}}",
	  "40103", "string:0" },
	{ "{'$graphLookup':{'from':'o','startWith':'$n','connectFromField':'n','connect"
	  "ToField':'b','as':'r','maxDepth':%s}}",
	  "40100", "double:40102 int:0 long:0 decimal:0" },
	{ "{'$graphLookup':{'from':'o','startWith':'$n','connectFromField':'n','connect"
	  "ToField':'b','as':'r','depthField':%s}}",
	  "40103", "string:0" },
	{ "{'$graphLookup':{'from':'o','startWith':'$n','connectFromField':'n','connect"
	  "ToField':'b','as':'r','restrictSearchWithMatch':%s}}",
	  "40185", "object:0" },
	{ "{'$setWindowFields':%s}", "9", "object:40415" },
	{ "{'$setWindowFields':{'output':%s}}", "14", "object:9" },
	{ "{'$setWindowFields':{'output':{'x':%s}}}", "9", "" },
	{ "{'$setWindowFields':{'sortBy':%s,'output':{}}}", "14", "object:0 null:0" },
	{ "{'$setWindowFields':{'sortBy':{'n':%s},'output':{}}}", "15974",
	  "double:0 object:17312 int:0 long:0 decimal:0" },
	{ "{'$setWindowFields':{'partitionBy':%s,'output':{}}}", "0", "array:14" },
	{ "{'$setWindowFields':{'partitionBy':%s,'output':{'x':{'$sum':1}}}}", "0", "array:14" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$sum':1,'window':%s}}}"
	  "}",
	  "9", "" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$sum':1,'window':{'doc"
	  "uments':%s}}}}}",
	  "9", "" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$sum':1,'window':{'doc"
	  "uments':[%s,5]}}}}}",
	  "9", "int:0 long:0 decimal:0" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$sum':1,'window':{'doc"
	  "uments':[-5,%s]}}}}}",
	  "9", "int:0 long:0 decimal:0" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$sum':1,'window':{'ran"
	  "ge':[%s,5]}}}}}",
	  "9", "double:0 int:0 long:0 decimal:0" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$sum':1,'window':{'ran"
	  "ge':[-5,%s]}}}}}",
	  "9", "double:0 int:0 long:0 decimal:0" },
	{ "{'$setWindowFields':{'sortBy':{'d':1},'output':{'x':{'$sum':1,'window':{'ran"
	  "ge':[-5,5],'unit':%s}}}}}",
	  "9", "" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$shift':%s}}}}", "9", "" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$shift':{'output':%s,'"
	  "by':1}}}}}",
	  "0", "" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$shift':{'output':'$n'"
	  ",'by':%s}}}}}",
	  "9", "int:0 long:0 decimal:0" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$shift':{'output':'$n'"
	  ",'by':1,'default':%s}}}}}",
	  "0", "" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$rank':%s}}}}", "5371603", "" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$denseRank':%s}}}}", "5371603",
	  "" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$documentNumber':%s}}}"
	  "}",
	  "5371603", "" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$derivative':%s,'windo"
	  "w':{'documents':[-1,0]}}}}}",
	  "9", "" },
	{ "{'$setWindowFields':{'sortBy':{'d':1},'output':{'x':{'$derivative':{'input':"
	  "'$n','unit':%s},'window':{'documents':[-1,0]}}}}}",
	  "9", "" },
	{ "{'$setWindowFields':{'sortBy':{'d':1},'output':{'x':{'$integral':{'input':'$"
	  "n','unit':%s},'window':{'documents':[-1,0]}}}}}",
	  "9", "" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$integral':%s}}}}", "9", "" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$expMovingAvg':%s}}}}", "9", "" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$expMovingAvg':{'input"
	  "':'$n','N':%s}}}}}",
	  "9", "int:0 long:0 decimal:0" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$expMovingAvg':{'input"
	  "':'$n','alpha':%s}}}}}",
	  "9", "" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$linearFill':%s}}}}", "14",
	  "double:0 undefined:0 null:0 int:0 long:0 decimal:0" },
	{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$locf':%s}}}}", "0", "" },
	{ "{'$fill':%s}", "9", "object:40415" },
	{ "{'$fill':{'output':%s}}", "14", "" },
	{ "{'$fill':{'output':{'z':%s}}}", "14", "object:6050200" },
	{ "{'$fill':{'output':{'z':{'value':%s}}}}", "0", "" },
	{ "{'$fill':{'sortBy':{'n':1},'output':{'z':{'method':%s}}}}", "6050202", "" },
	{ "{'$fill':{'partitionBy':%s,'output':{'z':{'value':1}}}}", "14", "string:0 object:0" },
	{ "{'$fill':{'partitionByFields':%s,'output':{'z':{'value':1}}}}", "14", "" },
	{ "{'$fill':{'partitionByFields':[%s],'output':{'z':{'value':1}}}}", "14", "string:0" },
	{ "{'$fill':{'sortBy':%s,'output':{'z':{'method':'locf'}}}}", "14", "object:0" },
	{ "{'$densify':%s}", "5733200", "object:40415" },
	{ "{'$densify':{'field':%s,'range':{'step':1,'bounds':'full'}}}", "14", "string:0" },
	{ "{'$densify':{'field':'n','range':%s}}", "14", "object:40415" },
	{ "{'$densify':{'field':'n','range':{'step':%s,'bounds':'full'}}}", "5733401",
	  "double:0 int:0 long:0 decimal:0" },
	{ "{'$densify':{'field':'n','range':{'step':1,'bounds':%s}}}", "5733402",
	  "string:5946802 array:5733403" },
	{ "{'$densify':{'field':'n','range':{'step':1,'bounds':[%s,5]}}}", "5733402",
	  "double:0 int:0 long:0 decimal:0" },
	{ "{'$densify':{'field':'n','range':{'step':1,'bounds':[0,%s]}}}", "5733402",
	  "double:0 int:0 long:0 decimal:0" },
	{ "{'$densify':{'field':'d','range':{'step':1,'bounds':'full','unit':%s}}}", "9", "" },
	{ "{'$densify':{'field':'n','partitionByFields':%s,'range':{'step':1,'bounds':'"
	  "full'}}}",
	  "14", "" },
	{ "{'$densify':{'field':'n','partitionByFields':[%s],'range':{'step':1,'bounds'"
	  ":'full'}}}",
	  "14", "string:0" },
	{ "{'$merge':%s}", "51182", "string:0 object:40415" },
	{ "{'$merge':{'into':%s}}", "51178", "string:0 object:40415" },
	{ "{'$merge':{'into':'z','on':%s}}", "51186", "string:0 array:51134" },
	{ "{'$merge':{'into':'z','on':[%s]}}", "51134", "string:0" },
	{ "{'$merge':{'into':'z','let':%s}}", "14", "object:51199 undefined:0 null:0" },
	{ "{'$merge':{'into':'z','whenMatched':%s}}", "51191", "string:2 array:14" },
	{ "{'$merge':{'into':'z','whenMatched':[%s]}}", "14", "object:40324" },
	{ "{'$merge':{'into':'z','whenNotMatched':%s}}", "14", "string:2 undefined:0 null:0" },
	{ "{'$merge':{'into':{'coll':%s}}}", "14", "string:0 undefined:5786801 null:5786801" },
	{ "{'$merge':{'into':{'coll':'z','db':%s}}}", "14", "string:0 undefined:0 null:0" },
	{ "{'$out':%s}", "16990", "string:0 object:40415" },
	{ "{'$out':{'db':%s,'coll':'z'}}", "14", "string:0" },
	{ "{'$out':{'db':'y','coll':%s}}", "14", "string:0" },
	{ "{'$collStats':%s}", "5447000", "object:0" },
	{ "{'$indexStats':%s}", "28803", "" },
	{ "{'$group':{'_id':1,'x':{'$sum':%s}}}", "0", "" },
	{ "{'$group':{'_id':1,'x':{'$avg':%s}}}", "0", "" },
	{ "{'$group':{'_id':1,'x':{'$min':%s}}}", "0", "" },
	{ "{'$group':{'_id':1,'x':{'$max':%s}}}", "0", "" },
	{ "{'$group':{'_id':1,'x':{'$first':%s}}}", "0", "" },
	{ "{'$group':{'_id':1,'x':{'$last':%s}}}", "0", "" },
	{ "{'$group':{'_id':1,'x':{'$push':%s}}}", "0", "" },
	{ "{'$group':{'_id':1,'x':{'$addToSet':%s}}}", "0", "" },
	{ "{'$group':{'_id':1,'x':{'$stdDevPop':%s}}}", "0", "" },
	{ "{'$group':{'_id':1,'x':{'$stdDevSamp':%s}}}", "0", "" },
	{ "{'$group':{'_id':1,'x':{'$mergeObjects':%s}}}", "40400", "object:0 undefined:0 null:0" },
	{ "{'$group':{'_id':1,'x':{'$count':%s}}}", "14", "" },
	{ "{'$group':{'_id':1,'x':{'$concatArrays':%s}}}", "14", "" },
	{ "{'$group':{'_id':1,'x':{'$setUnion':%s}}}", "14", "" },
	{ "{'$group':{'_id':1,'x':{'$firstN':%s}}}", "5787900", "object:5787901" },
	{ "{'$group':{'_id':1,'x':{'$firstN':{'input':'$n','n':%s}}}}", "5787902",
	  "int:0 long:0 decimal:0" },
	{ "{'$group':{'_id':1,'x':{'$lastN':%s}}}", "5787900", "object:5787901" },
	{ "{'$group':{'_id':1,'x':{'$lastN':{'input':'$n','n':%s}}}}", "5787902",
	  "int:0 long:0 decimal:0" },
	{ "{'$group':{'_id':1,'x':{'$minN':%s}}}", "5787900", "object:5787901" },
	{ "{'$group':{'_id':1,'x':{'$minN':{'input':'$n','n':%s}}}}", "5787902",
	  "int:0 long:0 decimal:0" },
	{ "{'$group':{'_id':1,'x':{'$maxN':%s}}}", "5787900", "object:5787901" },
	{ "{'$group':{'_id':1,'x':{'$maxN':{'input':'$n','n':%s}}}}", "5787902",
	  "int:0 long:0 decimal:0" },
	{ "{'$group':{'_id':1,'x':{'$top':%s}}}", "5788001", "object:5787901" },
	{ "{'$group':{'_id':1,'x':{'$top':{'output':'$n','sortBy':%s}}}}", "10065", "object:0" },
	{ "{'$group':{'_id':1,'x':{'$top':{'output':%s,'sortBy':{'n':1}}}}}", "0", "" },
	{ "{'$group':{'_id':1,'x':{'$bottom':%s}}}", "5788001", "object:5787901" },
	{ "{'$group':{'_id':1,'x':{'$bottom':{'output':'$n','sortBy':%s}}}}", "10065", "object:0" },
	{ "{'$group':{'_id':1,'x':{'$bottom':{'output':%s,'sortBy':{'n':1}}}}}", "0", "" },
	{ "{'$group':{'_id':1,'x':{'$topN':{'n':%s,'output':'$n','sortBy':{'n':1}}}}}", "5787902",
	  "int:0 long:0 decimal:0" },
	{ "{'$group':{'_id':1,'x':{'$bottomN':{'n':%s,'output':'$n','sortBy':{'n':1}}}}"
	  "}",
	  "5787902", "int:0 long:0 decimal:0" },
	{ "{'$group':{'_id':1,'x':{'$median':%s}}}", "7436100", "object:40415" },
	{ "{'$group':{'_id':1,'x':{'$median':{'input':'$n','method':%s}}}}", "14", "string:2" },
	{ "{'$group':{'_id':1,'x':{'$percentile':{'input':'$n','method':'approximate','"
	  "p':%s}}}}",
	  "7750301", "array:0" },
	{ "{'$group':{'_id':1,'x':{'$percentile':{'input':'$n','method':'approximate','"
	  "p':[%s]}}}}",
	  "7750303", "int:0 long:0 decimal:0" },
	{ "{'$group':{'_id':1,'x':{'$percentile':{'input':'$n','p':[0.5],'method':%s}}}"
	  "}",
	  "14", "string:2" },
};

static void
options_are_of_the_types_that_stages_take(void **state)
{
	(void)state;
	other_documents = "{'o':[{'b':1},{'b':'x'}]}";
	for (size_t i = 0; i < CASES(options_of_stages); i++) {
		const struct by_types *c = &options_of_stages[i];

		for (size_t k = 0; k < CASES(samples); k++) {
			struct arena *arena = arena_new(4 * CASE_BYTES);
			int code = code_of_option(arena, c->pipeline, samples[k].value);
			int wanted = code_of(c->outcomes, samples[k].type, atoi(c->other));

			if (code != wanted)
				fail_msg("%s with %s: %d, not %d: %s", c->pipeline,
					 samples[k].value, code, wanted, case_err.text);
			arena_free(arena);
		}
	}
}

/* Code in JavaScript is no string, also if its text is a word that an option knows. */
static void
words_are_strings(void **state)
{
	static const char *const words[] = {
		"full",        "partition", "unbounded", "current", "insert", "discard", "fail",
		"replace",     "merge",     "$$ROOT",    "locf",    "linear", "day",     "R5",
		"approximate", "$n",        "o",         "1",       "$$KEEP",
	};

	(void)state;
	other_documents = "{'o':[{'b':1},{'b':'x'}]}";
	for (size_t i = 0; i < CASES(options_of_stages); i++) {
		const char *pipeline = options_of_stages[i].pipeline;

		for (size_t k = 0; k < CASES(words); k++) {
			struct arena *arena = arena_new(4 * CASE_BYTES);
			struct str code = arena_printf(arena, "{'$code':'%s'}", words[k]);
			struct str symbol = arena_printf(arena, "{'$symbol':'%s'}", words[k]);

			if (code_of_option(arena, pipeline, code.ptr) !=
			    code_of_option(arena, pipeline, "{'$code':'x'}"))
				fail_msg("%s with %s", pipeline, code.ptr);
			if (code_of_option(arena, pipeline, symbol.ptr) !=
			    code_of_option(arena, pipeline, "{'$symbol':'x'}"))
				fail_msg("%s with %s", pipeline, symbol.ptr);
			arena_free(arena);
		}
	}
}

/* Of two documents whose `a` is the value: the member `x` of the first one that comes. */
static void
values_of_each_type_go_through_stages(void **state)
{
	static const struct by_types cases[] = {
		{ "{'$group':{'_id':1,'x':{'$sum':'$a'}}}", "int(0)",
		  "double:double(3) int:int(2) long:long(2) decimal:decimal" },
		{ "{'$group':{'_id':1,'x':{'$avg':'$a'}}}", "null",
		  "double:double(1.5) int:double(1) long:double(1) decimal:decimal" },
		{ "{'$group':{'_id':1,'x':{'$min':'$a'}}}", "null",
		  "double:double(1.5) string:string object:object array:array(1) binData:binData "
		  "objectId:objectId bool:bool(true) date:date regex:regex javascript:javascript "
		  "int:int(1) timestamp:timestamp long:long(1) decimal:decimal minKey:minKey "
		  "maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope" },
		{ "{'$group':{'_id':1,'x':{'$max':'$a'}}}", "null",
		  "double:double(1.5) string:string object:object array:array(1) binData:binData "
		  "objectId:objectId bool:bool(true) date:date regex:regex javascript:javascript "
		  "int:int(1) timestamp:timestamp long:long(1) decimal:decimal minKey:minKey "
		  "maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope" },
		{ "{'$group':{'_id':1,'x':{'$first':'$a'}}}", "null",
		  "double:double(1.5) string:string object:object array:array(1) binData:binData "
		  "undefined:undefined objectId:objectId bool:bool(true) date:date regex:regex "
		  "javascript:javascript int:int(1) timestamp:timestamp long:long(1) "
		  "decimal:decimal minKey:minKey maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope" },
		{ "{'$group':{'_id':1,'x':{'$last':'$a'}}}", "null",
		  "double:double(1.5) string:string object:object array:array(1) binData:binData "
		  "undefined:undefined objectId:objectId bool:bool(true) date:date regex:regex "
		  "javascript:javascript int:int(1) timestamp:timestamp long:long(1) "
		  "decimal:decimal minKey:minKey maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope" },
		{ "{'$group':{'_id':1,'x':{'$push':'$a'}}}", "array(2)", "missing:array(0)" },
		{ "{'$group':{'_id':1,'x':{'$addToSet':'$a'}}}", "array(1)", "missing:array(0)" },
		{ "{'$group':{'_id':1,'x':{'$stdDevPop':'$a'}}}", "null",
		  "double:double(0) int:double(0) long:double(0) decimal:double(0)" },
		{ "{'$group':{'_id':1,'x':{'$stdDevSamp':'$a'}}}", "null",
		  "double:double(0) int:double(0) long:double(0) decimal:double(0)" },
		{ "{'$group':{'_id':1,'x':{'$mergeObjects':'$a'}}}", "40400",
		  "object:object undefined:object null:object missing:object" },
		{ "{'$group':{'_id':1,'x':{'$concatArrays':'$a'}}}", "14",
		  "array:array(2) missing:array(0)" },
		{ "{'$group':{'_id':1,'x':{'$setUnion':'$a'}}}", "14",
		  "array:array(1) missing:array(0)" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$sum':'$a','window':{'"
		  "documents':[-1,0]}}}}}",
		  "int(0)", "double:double(1.5) int:int(1) long:long(1) decimal:decimal" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$avg':'$a','window':{'"
		  "documents':[-1,0]}}}}}",
		  "null", "double:double(1.5) int:double(1) long:double(1) decimal:decimal" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$min':'$a','window':{'"
		  "documents':[-1,0]}}}}}",
		  "null",
		  "double:double(1.5) string:string object:object array:array(1) binData:binData "
		  "objectId:objectId bool:bool(true) date:date regex:regex javascript:javascript "
		  "int:int(1) timestamp:timestamp long:long(1) decimal:decimal minKey:minKey "
		  "maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$max':'$a','window':{'"
		  "documents':[-1,0]}}}}}",
		  "null",
		  "double:double(1.5) string:string object:object array:array(1) binData:binData "
		  "objectId:objectId bool:bool(true) date:date regex:regex javascript:javascript "
		  "int:int(1) timestamp:timestamp long:long(1) decimal:decimal minKey:minKey "
		  "maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$first':'$a','window':"
		  "{'documents':[-1,0]}}}}}",
		  "null",
		  "double:double(1.5) string:string object:object array:array(1) binData:binData "
		  "undefined:undefined objectId:objectId bool:bool(true) date:date regex:regex "
		  "javascript:javascript int:int(1) timestamp:timestamp long:long(1) "
		  "decimal:decimal minKey:minKey maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$last':'$a','window':{"
		  "'documents':[-1,0]}}}}}",
		  "null",
		  "double:double(1.5) string:string object:object array:array(1) binData:binData "
		  "undefined:undefined objectId:objectId bool:bool(true) date:date regex:regex "
		  "javascript:javascript int:int(1) timestamp:timestamp long:long(1) "
		  "decimal:decimal minKey:minKey maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$push':'$a','window':{"
		  "'documents':[-1,0]}}}}}",
		  "array(1)", "missing:array(0)" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$addToSet':'$a','windo"
		  "w':{'documents':[-1,0]}}}}}",
		  "array(1)", "missing:array(0)" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$stdDevPop':'$a','wind"
		  "ow':{'documents':[-1,0]}}}}}",
		  "null", "double:double(0) int:double(0) long:double(0) decimal:double(0)" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$stdDevSamp':'$a','win"
		  "dow':{'documents':[-1,0]}}}}}",
		  "null", "" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$concatArrays':'$a','w"
		  "indow':{'documents':[-1,0]}}}}}",
		  "14", "array:array(1) missing:array(0)" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$setUnion':'$a','windo"
		  "w':{'documents':[-1,0]}}}}}",
		  "14", "array:array(1) missing:array(0)" },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$sum':'$n','window':{'"
		  "range':[-1,0]}}}}}",
		  "5429414", "double:int(3) date:5429413 int:int(3) long:int(3) decimal:int(3)" },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$sum':'$n','window':{'"
		  "range':[-1,0],'unit':'day'}}}}}",
		  "5429513", "date:int(3)" },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$rank':{}}}}}", "int(1)",
		  "" },
		{ "{'$setWindowFields':{'partitionBy':'$a','sortBy':{'n':1},'output':{'x':{'$do"
		  "cumentNumber':{}}}}}",
		  "int(1)", "array:14" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$expMovingAvg':{'input"
		  "':'$a','N':2}}}}}",
		  "null", "double:double(1.5) int:double(1) long:double(1) decimal:decimal" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$derivative':{'input':"
		  "'$a'},'window':{'documents':[-1,0]}}}}}",
		  "5624902",
		  "double:null undefined:null null:null int:null long:null decimal:null "
		  "missing:null" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$integral':{'input':'$"
		  "a'}}}}}",
		  "5624902", "double:double(1.5) int:double(1) long:double(1) decimal:double(1)" },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$integral':{'input':'$"
		  "n'}}}}}",
		  "5624901", "double:double(0) int:double(0) long:double(0) decimal:double(0)" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$linearFill':'$a'}}}}",
		  "14",
		  "double:double(1.5) undefined:null null:null int:int(1) long:long(1) "
		  "decimal:decimal missing:null" },
		{ "{'$setWindowFields':{'sortBy':{'n':1},'output':{'x':{'$locf':'$a'}}}}", "null",
		  "double:double(1.5) string:string object:object array:array(1) binData:binData "
		  "objectId:objectId bool:bool(true) date:date regex:regex javascript:javascript "
		  "int:int(1) timestamp:timestamp long:long(1) decimal:decimal minKey:minKey "
		  "maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope" },
		{ "{'$unwind':'$a'},{'$project':{'x':'$a'}}", "none",
		  "double:double(1.5) string:string object:object array:int(1) binData:binData "
		  "objectId:objectId bool:bool(true) date:date regex:regex javascript:javascript "
		  "int:int(1) timestamp:timestamp long:long(1) decimal:decimal minKey:minKey "
		  "maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope" },
		{ "{'$unwind':{'path':'$a','preserveNullAndEmptyArrays':true}},{'$project':{'x'"
		  ":'$a'}}",
		  "int(1)",
		  "double:double(1.5) string:string object:object binData:binData "
		  "undefined:undefined objectId:objectId bool:bool(true) date:date null:null "
		  "regex:regex javascript:javascript timestamp:timestamp long:long(1) "
		  "decimal:decimal minKey:minKey maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope missing:none" },
		{ "{'$unwind':{'path':'$a','includeArrayIndex':'x'}}", "null",
		  "array:long(0) undefined:none null:none missing:none" },
		{ "{'$match':{'a':{'$gte':1}}},{'$project':{'x':'$a'}}", "none",
		  "double:double(1.5) array:array(1) int:int(1) long:long(1) decimal:decimal" },
		{ "{'$match':{'a':{'$type':'number'}}},{'$project':{'x':'$a'}}", "none",
		  "double:double(1.5) array:array(1) int:int(1) long:long(1) decimal:decimal" },
		{ "{'$project':{'x':'$a.b'}}", "none", "object:int(1) array:array(0)" },
		{ "{'$project':{'a.b':1}},{'$project':{'x':'$a'}}", "none",
		  "object:object array:array(0)" },
		{ "{'$project':{'a.b':0}},{'$project':{'x':'$a'}}", "double(1.5)",
		  "string:string object:object array:array(1) binData:binData undefined:undefined "
		  "objectId:objectId bool:bool(true) date:date null:null regex:regex "
		  "javascript:javascript int:int(1) timestamp:timestamp long:long(1) "
		  "decimal:decimal minKey:minKey maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope missing:none" },
		{ "{'$set':{'a.c':1}},{'$project':{'x':'$a'}}", "object", "array:array(1)" },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[0,9]}},{'$project':{'x':'$count'}}",
		  "40066", "double:int(2) int:int(2) long:int(2) decimal:int(2)" },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[0,9],'default':'x'}},{'$project':{'"
		  "x':'$_id'}}",
		  "string", "double:int(0) int:int(0) long:int(0) decimal:int(0)" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1}},{'$project':{'x':'$count'}}",
		  "int(2)", "" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1,'granularity':'R5'}},{'$project':"
		  "{'x':'$_id.max'}}",
		  "40258", "double:double(1.6) int:double(1.6) long:double(1.6) decimal:decimal" },
		{ "{'$densify':{'field':'a','range':{'step':1,'bounds':[0,2]}}},{'$count':'x'}",
		  "5733201",
		  "double:int(4) undefined:int(4) null:int(4) int:int(3) long:int(3) "
		  "decimal:int(3) missing:int(4)" },
		{ "{'$densify':{'field':'a','range':{'step':1,'bounds':'full','unit':'day'}}},{"
		  "'$count':'x'}",
		  "6053600", "undefined:int(2) date:int(2) null:int(2) missing:int(2)" },
		{ "{'$replaceRoot':{'newRoot':'$a'}},{'$project':{'x':'$b'}}", "40228",
		  "object:int(1)" },
		{ "{'$sortByCount':'$a'},{'$project':{'x':'$count'}}", "int(2)", "" },
		{ "{'$lookup':{'from':'o','localField':'a','foreignField':'b','as':'r'}},{'$pro"
		  "ject':{'x':{'$size':'$r'}}}",
		  "int(0)",
		  "string:int(1) array:int(1) undefined:2 int:int(1) long:int(1) decimal:int(1) "
		  "symbol:int(1)" },
		{ "{'$graphLookup':{'from':'o','startWith':'$a','connectFromField':'b','connect"
		  "ToField':'b','as':'r'}},{'$project':{'x':{'$size':'$r'}}}",
		  "int(0)",
		  "string:int(1) array:int(1) undefined:2 int:int(1) long:int(1) decimal:int(1) "
		  "symbol:int(1)" },
		{ "{'$fill':{'output':{'a':{'value':7}}}},{'$project':{'x':'$a'}}", "int(7)",
		  "double:double(1.5) string:string object:object array:array(1) binData:binData "
		  "objectId:objectId bool:bool(true) date:date regex:regex javascript:javascript "
		  "int:int(1) timestamp:timestamp long:long(1) decimal:decimal minKey:minKey "
		  "maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope" },
		{ "{'$group':{'_id':1,'x':{'$maxN':{'input':'$a','n':2}}}},{'$project':{'x':{'$"
		  "size':'$x'}}}",
		  "int(2)", "undefined:int(0) null:int(0) missing:int(0)" },
		{ "{'$group':{'_id':1,'x':{'$firstN':{'input':'$a','n':2}}}},{'$project':{'x':{"
		  "'$size':'$x'}}}",
		  "int(2)", "" },
		{ "{'$group':{'_id':1,'x':{'$firstN':{'input':'$n','n':'$a'}}}},{'$project':{'x"
		  "':{'$size':'$x'}}}",
		  "5787902", "" },
		{ "{'$group':{'_id':'$a','x':{'$firstN':{'input':'$n','n':'$_id'}}}}", "5787902",
		  "" },
		{ "{'$group':{'_id':1,'x':{'$median':{'input':'$a','method':'approximate'}}}}",
		  "null", "double:double(1.5) int:double(1) long:double(1) decimal:double(1)" },
		{ "{'$redact':'$a'}", "17053", "" },
	};

	(void)state;
	for (size_t i = 0; i < CASES(cases); i++) {
		for (size_t k = 0; k <= CASES(samples); k++) {
			struct arena *arena = arena_new(4 * CASE_BYTES);
			struct buf out = BUF_INIT(CASE_BYTES);
			struct mql q = case_mql(arena);
			bool missing = k == CASES(samples);
			const char *value = missing ? "" : samples[k].value;
			struct str docs = missing ? STR("{'n':1},{'n':2}")
						  : arena_printf(arena,
								 "{'n':1,'a':%s},{'n':2,'a':%s}",
								 value, value);
			const char *wanted = word_of(arena, cases[i].outcomes,
						     missing ? "missing" : samples[k].type,
						     cases[i].other);
			const char *got = "none";
			struct bson_value x;

			if (run_or_compile(&q, cases[i].pipeline, docs.ptr, &out) != STATUS_OK)
				got = arena_printf(arena, "%d", q.code).ptr;
			else if (bson_find_path(buf_str(&out), STR("d.0.x"), &x))
				got = outcome_of(arena, &x);
			if (strcmp(got, wanted) != 0)
				fail_msg("%s with %s: %s, not %s", cases[i].pipeline, value, got,
					 wanted);
			buf_release(&out);
			arena_free(arena);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_of_the_types_that_stages_take),
		cmocka_unit_test(words_are_strings),
		cmocka_unit_test(values_of_each_type_go_through_stages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
