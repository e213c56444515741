#include "stages_case.h"

/* What each expression is in the place of: no operator, and a conversion that fails. */
#define UNKNOWN            "{'$bogus':1}"
#define FAILS              "{'$toInt':'$s'}"
#define GROUP(accumulator) "{'$group':{'_id':1,'x':" accumulator "}}"
#define BUCKETS(accumulator)                                                                       \
	"{'$bucketAuto':{'groupBy':'$a','buckets':1,'output':{'x':" accumulator "}}}"
#define WINDOWS(field)        "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':" field "}}}"
#define JOIN(stage, pipeline) "{'" stage "':{'from':'o','as':'r','pipeline':[" pipeline "]}}"
#define GRAPH(more)                                                                                \
	"{'$graphLookup':{'from':'o','startWith':'$a','connectFromField':'a',"                     \
	"'connectToField':'b','as':'r'," more "}}"

#define MEDIAN(options)     "{'$group':{'_id':1,'x':{'$median':{'input':'$a'," options "}}}}"
#define PERCENTILE(options) "{'$group':{'_id':1,'x':{'$percentile':{'input':'$a'," options "}}}}"

static void
mistakes_have_mongodbs_codes(void **state)
{
	static const struct {
		const char *pipeline;
		int code;
	} cases[] = {
		{ "{'$bogus':1}", 40324 },
		{ "{'$match':{},'$limit':1}", 40323 },
		{ "{'$match':1}", 15959 },
		{ "{'$limit':0}", 15958 },
		{ "{'$limit':-1}", 5107201 },
		{ "{'$limit':'x'}", 5107201 },
		{ "{'$skip':1.5}", 5107200 },
		{ "{'$skip':0.0}", 0 },
		{ "{'$skip':-1.0}", 5107200 },
		{ "{'$sort':{}}", 15976 },
		{ "{'$sort':1}", 15973 },
		{ "{'$unwind':1}", 15981 },
		{ "{'$unwind':'a'}", 28818 },
		{ "{'$unwind':{}}", 28812 },
		{ "{'$group':1}", 15947 },
		{ "{'$group':{'a':{'$sum':1}}}", 15955 },
		{ "{'$group':{'_id':1,'a':{'$bogus':1}}}", 15952 },
		{ "{'$group':{'_id':1,'a':1}}", 40234 },
		{ "{'$group':{'_id':1,'a':{'$sum':1,'$avg':1}}}", 40238 },
		{ "{'$group':{'_id':1,'a':{'$sum':[1,2]}}}", 40237 },
		{ "{'$group':{'_id':1,'a.b':{'$sum':1}}}", 40235 },
		{ MEDIAN("'method':'approximate'"), 0 },
		{ MEDIAN("'method':'discrete'"), MQL_BAD_VALUE },
		{ MEDIAN("'method':'continuous'"), MQL_BAD_VALUE },
		{ MEDIAN("'method':1"), MQL_TYPE_MISMATCH },
		{ MEDIAN("'p':[1],'method':'approximate'"), 40415 },
		{ MEDIAN("'n':1"), 40415 },
		{ PERCENTILE("'p':[1],'method':'approximate'"), 0 },
		{ PERCENTILE("'method':'approximate','p':[0.5]"), 0 },
		{ PERCENTILE("'p':[1]"), 40414 },
		{ PERCENTILE("'method':'approximate'"), 40414 },
		{ PERCENTILE("'method':'approximate','p':[]"), 7750301 },
		{ PERCENTILE("'method':'approximate','p':null"), 7750301 },
		{ PERCENTILE("'method':'approximate','p':['$a']"), 7750301 },
		{ PERCENTILE("'method':'approximate','p':[0,'x']"), 7750303 },
		{ PERCENTILE("'method':'approximate','p':[1.5]"), 7750303 },
		{ "{'$replaceRoot':{'newRoot':1}}", 40228 },
		{ "{'$redact':1}", 17053 },
		{ "{'$sample':{'size':0}}", 28747 },
		{ "{'$count':''}", 40157 },
		{ "{'$count':'a.b'}", 40160 },
		{ "{'$sortByCount':'a'}", 40148 },
		{ "{'$sortByCount':''}", 40148 },
		{ "{'$sortByCount':1}", 40149 },
		{ "{'$sortByCount':{}}", 40147 },
		{ "{'$sortByCount':{'a':1}}", 40147 },
		{ "{'$facet':{}}", 40169 },
		{ "{'$facet':1}", 40169 },
		{ "{'$facet':[{'$match':{}}]}", 40169 },
		{ "{'$facet':{'a':1}}", 40170 },
		{ "{'$facet':{'a':[{'$out':'x'}]}}", 40600 },
		{ "{'$out':'x'},{'$limit':1}", 40601 },
		{ "{'$limit':1},{'$documents':[]}", 40602 },
		{ "{'$lookup':{'from':'x'}}", MQL_FAILED_TO_PARSE },
		{ "{'$lookup':{'from':{'coll':1},'as':'r'}}", MQL_FAILED_TO_PARSE },
		{ "{'$lookup':{'from':{'db':5,'coll':'x'},'as':'r','pipeline':[]}}",
		  MQL_TYPE_MISMATCH },
		{ "{'$lookup':{'from':{'db':null,'coll':'x'},'as':'r','pipeline':[]}}", 0 },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[2,1]}}", 40194 },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[1,1]}}", 40194 },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[1,'a']}}", 40193 },
		{ "{'$setWindowFields':1}", 9 },
		{ "{'$setWindowFields':{}}", 40414 },
		{ "{'$setWindowFields':{'output':1}}", 14 },
		{ "{'$setWindowFields':{'output':{},'x':1}}", 40415 },
		{ "{'$setWindowFields':{'output':{},'sortBy':1}}", 14 },
		{ "{'$setWindowFields':{'output':{},'sortBy':{'a':2}}}", 15975 },
		{ "{'$setWindowFields':{'output':{'x':{}}}}", 9 },
		{ "{'$setWindowFields':{'output':{'x':{'$bogus':1}}}}", 9 },
		{ "{'$setWindowFields':{'output':{},'partitionBy':['$a']}}", 14 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$sum':1,'window':{'"
		  "documents':[1]}}}}}",
		  9 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$sum':1,'window':{'"
		  "documents':[1,0]}}}}}",
		  5339900 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$sum':1,'window':{'"
		  "documents':[0.5,1]}}}}}",
		  9 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$sum':1,'window':{'"
		  "documents':[0,1],'range':[0,1]}}}}}",
		  9 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$sum':1,'window':{'"
		  "documents':[0,1],'unit':'day'}}}}}",
		  9 },
		{ "{'$setWindowFields':{'output':{'x':{'$sum':1,'window':{'documents':[0,1]}}}}}",
		  5339901 },
		{ "{'$setWindowFields':{'output':{'x':{'$sum':1,'window':{'range':[0,1]}}}}}",
		  5339902 },
		{ "{'$setWindowFields':{'sortBy':{'a':-1},'output':{'x':{'$sum':1,'window':{'range'"
		  ":[0,1]}}}}}",
		  8947401 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$sum':1,'window':{'range':"
		  "[0,1],'unit':'day'}}}}}",
		  5429513 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$sum':1,'window':{'range':"
		  "[0,1],'unit':'x'}}}}}",
		  9 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$sum':1,'window':{'range':"
		  "[0.5,1],'unit':'year'}}}}}",
		  9 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$sum':1,'window':{'range':"
		  "[0.5,1],'unit':'day'}}}}}",
		  9 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$sum':1,'window':{'range':"
		  "[0.5,1],'unit':'millisecond'}}}}}",
		  9 },
		{ "{'$setWindowFields':{'sortBy':{'b':1},'output':{'x':{'$sum':1,'window':{'range':"
		  "[0,1]}}}}}",
		  5429414 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$rank':{},'window':{}}}}}",
		  5371601 },
		{ "{'$setWindowFields':{'output':{'x':{'$rank':{}}}}}", 5371602 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$rank':1}}}}", 5371603 },
		{ "{'$setWindowFields':{'output':{'x':{'$linearFill':'$a'}}}}", 605001 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$derivative':{'input':'$a'"
		  "}}}}}",
		  9 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$expMovingAvg':{'input':"
		  "'$a','alpha':0}}}}}",
		  9 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$expMovingAvg':{'input':"
		  "'$a','alpha':1}}}}}",
		  9 },
		{ "{'$fill':1}", 9 },
		{ "{'$fill':{}}", 40414 },
		{ "{'$fill':{'output':1}}", 14 },
		{ "{'$fill':{'output':{},'x':1}}", 40415 },
		{ "{'$fill':{'output':{'a':{}}}}", 6050200 },
		{ "{'$fill':{'output':{'a':{'value':1,'method':'locf'}}}}", 6050200 },
		{ "{'$fill':{'output':{'a':{'method':'x'}}}}", 6050202 },
		{ "{'$fill':{'output':{},'partitionBy':'$a','partitionByFields':['a']}}", 6050204 },
		{ "{'$fill':{'output':{},'partitionByFields':['$a']}}", 6050203 },
		{ "{'$fill':{'output':{'a':{'method':'linear'}}}}", 605001 },
		{ "{'$densify':1}", 5733200 },
		{ "{'$densify':{'field':'a'}}", 40414 },
		{ "{'$densify':{'field':1,'range':{}}}", 14 },
		{ "{'$densify':{'field':'a','range':{'step':1}}}", 40414 },
		{ "{'$densify':{'field':'a','range':{'step':0,'bounds':'full'}}}", 5733401 },
		{ "{'$densify':{'field':'a','range':{'step':1,'bounds':1}}}", 5733402 },
		{ "{'$densify':{'field':'a','range':{'step':1,'bounds':'x'}}}", 5946802 },
		{ "{'$densify':{'field':'a','range':{'step':1,'bounds':[1]}}}", 5733403 },
		{ "{'$densify':{'field':'a','range':{'step':1,'bounds':[2,1]}}}", 5733402 },
		{ "{'$densify':{'field':'a','range':{'step':1,'bounds':'partition'}}}", 5733408 },
		{ "{'$densify':{'field':'a','range':{'step':1,'bounds':'full','unit':'x'}}}", 9 },
		{ "{'$densify':{'field':'a','range':{'step':1.5,'bounds':'full','unit':'day'}}}",
		  6586400 },
		{ "{'$densify':{'field':'a','range':{'step':1,'bounds':'full','unit':'day'}}}",
		  6053600 },
		{ "{'$densify':{'field':'a','range':{'step':1,'bounds':[0,1000000]}}}", 5897900 },
		{ "{'$set':{'a':'x'}},{'$densify':{'field':'a','range':{'step':1,'bounds':'full'}}"
		  "}",
		  5733201 },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$rank':{},'y':1}}}}",
		  5371601 },
		{ "{'$bucketAuto':1}", 40240 },
		{ "{'$bucketAuto':{'groupBy':'a','buckets':1}}", 40239 },
		{ "{'$bucketAuto':{'groupBy':'$a'}}", 40246 },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':'x'}}", 40241 },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1.5}}", 40242 },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':0}}", 40243 },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1,'output':1}}", 40244 },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1,'x':1}}", 40245 },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1,'granularity':'x'}}", 40257 },
		{ "{'$bucketAuto':{'groupBy':'x$','buckets':1,'granularity':'R5'}}", 40239 },
		{ "{'$bucketAuto':{'groupBy':'$b','buckets':1,'granularity':'R5'}}", 40258 },
		{ "{'$bucketAuto':{'groupBy':{'$subtract':[0,'$a']},'buckets':1,"
		  "'granularity':'R5'}}",
		  40260 },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1,'granularity':1}}", 40261 },
		{ "{'$merge':{'into':'x','whenMatched':'bad'}}", MQL_BAD_VALUE },
		{ "{'$merge':{'into':null}}", 51178 },
		{ "{'$merge':{'into':'x','on':null}}", 51186 },
		{ "{'$merge':{'into':'x','on':[]}}", 51187 },
		{ "{'$merge':{'into':'x','whenMatched':null}}", 51191 },
		{ "{'$merge':{'into':'x','let':1}}", MQL_TYPE_MISMATCH },
		{ "{'$merge':{'into':'x','whenNotMatched':1}}", MQL_TYPE_MISMATCH },
		{ "{'$merge':{'into':{'coll':5}}}", MQL_TYPE_MISMATCH },
		{ "{'$merge':{'into':{'coll':'x','db':5}}}", MQL_TYPE_MISMATCH },
		{ "{'$merge':{'into':{'coll':null}}}", 5786801 },
		{ "{'$merge':{'into':{'coll':'x','y':1}}}", 40415 },
		{ "{'$lookup':{'from':'x','as':'y','let':null,'pipeline':[]}}", 9 },
		{ "{'$lookup':{'from':'x','as':null,'pipeline':[]}}", 9 },
		{ "{'$lookup':{'from':null,'as':'y','pipeline':[]}}", 9 },
		{ "{'$lookup':{'from':'x','as':'y','pipeline':null}}", MQL_TYPE_MISMATCH },
		{ "{'$lookup':{'from':'x','as':'y','localField':null,'foreignField':'a'}}", 9 },
		{ "{'$geoNear':{}}", MQL_NOT_SUPPORTED },
		{ "{'$indexStats':1}", 28803 },
		{ "{'$indexStats':{'a':1}}", 28803 },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		const char *text = run_text(&q, cases[i].pipeline, "{'a':1}");

		if (q.code != cases[i].code)
			fail_msg("%s: %d, %s", cases[i].pipeline, q.code, text);
	}
}

struct mistake {
	const char *pipeline;
	int code;
	const char *said; /* a part of what the error says; NULL: whatever it does */
};

static void
check_mistakes(struct arena *arena, const struct mistake *cases, size_t count,
	       const char *documents)
{
	other_documents = "{'o':[{'b':1,'s':'x'}]}";
	for (size_t i = 0; i < count; i++) {
		struct mql q = case_mql(arena);
		const char *text = run_text(&q, cases[i].pipeline, documents);

		if (q.code != cases[i].code)
			fail_msg("%s: %d, %s", cases[i].pipeline, q.code, text);
		if (cases[i].said && !strstr(text, cases[i].said))
			fail_msg("%s: %s", cases[i].pipeline, text);
	}
}

static void
options_of_stages_are_checked_one_by_one(void **state)
{
	static const struct mistake cases[] = {
		{ "1", MQL_TYPE_MISMATCH, "Each element" },
		{ "{}", 40323, NULL },
		{ "{'$search':{}}", MQL_NO_SEARCH, NULL },
		{ "{'$vectorSearch':{}}", MQL_NO_SEARCH, NULL },
		{ "{'$planCacheStats':{}}", MQL_NOT_SUPPORTED, NULL },
		{ "{'$shardedDataDistribution':{}}", MQL_NOT_SUPPORTED, NULL },
		{ "{'$limit':1.5}", 5107201, "Expected an integer" },
		{ "{'$limit':{'$numberDouble':'NaN'}}", 5107201, "Expected an integer" },
		{ "{'$limit':-1.5}", 5107201, "Expected an integer" },
		{ "{'$limit':-1e19}", 5107201, "Expected an integer" },
		{ "{'$limit':1e19}", 5107201, "Cannot represent" },
		{ "{'$skip':'x'}", 5107200, "Expected a number" },
		{ "{'$skip':-1}", 5107200, "Expected a non-negative" },
		{ "{'$replaceRoot':1}", 40229, NULL },
		{ "{'$replaceRoot':{}}", 40414, NULL },
		{ "{'$replaceRoot':{'newRoot':{},'x':1}}", 40415, NULL },
		{ "{'$replaceRoot':{'newRoot':'$none'}}", 40228, "MISSING" },
		{ "{'$replaceWith':'$a'}", 40228, "'int'" },
		{ "{'$unwind':''}", 28812, NULL },
		{ "{'$unwind':{'path':1}}", 28808, NULL },
		{ "{'$unwind':{'path':'$a','preserveNullAndEmptyArrays':1}}", 28809, NULL },
		{ "{'$unwind':{'path':'$a','includeArrayIndex':1}}", 28810, NULL },
		{ "{'$unwind':{'path':'$a','includeArrayIndex':''}}", 28810, NULL },
		{ "{'$unwind':{'path':'$a','includeArrayIndex':'$i'}}", 28822, NULL },
		{ "{'$unwind':{'path':'$a','includeArrayIndex':'i.'}}", 40353, NULL },
		{ "{'$unwind':{'path':'$a','x':1}}", 28811, NULL },
		{ "{'$unwind':'$a.'}", 40353, NULL },
		{ "{'$unwind':'$'}", 40352, NULL },
		{ "{'$sample':1}", 28745, NULL },
		{ "{'$sample':{}}", 28749, NULL },
		{ "{'$sample':{'size':'x'}}", 28746, NULL },
		{ "{'$sample':{'size':{'$numberDouble':'NaN'}}}", 28747, NULL },
		{ "{'$sample':{'size':0.9}}", 28747, NULL },
		{ "{'$sample':{'size':1,'x':1}}", 28748, NULL },
		{ "{'$documents':1}", 5858203, NULL },
		{ "{'$documents':'$$REMOVE'}", 5858203, "missing" },
		{ "{'$documents':[{},1]}", 40228, NULL },
		{ "{'$redact':'$none'}", 17053, "missing" },
		{ "{'$redact':'x'}", 17053, NULL },
		{ "{'$redact':{'$literal':{'$code':'keep'}}}", 17053, NULL },
		{ "{'$redact':{'$literal':{'$code':'prune'}}}", 17053, NULL },
		{ "{'$redact':{'$literal':{'$code':'descend'}}}", 17053, NULL },
		{ "{'$densify':{'field':'a','range':{'step':1.5,'bounds':'full','unit':"
		  "'millisecond'}}}",
		  6586400, NULL },
		{ "{'$count':1}", 40156, NULL },
		{ "{'$count':'$a'}", 40158, NULL },
		{ "{'$count':'a\\u0000b'}", 40159, NULL },
		{ "{'$count':'_id'}", 9039800, NULL },
		{ "{'$group':{'_id':1,'$a':{'$sum':1}}}", 40236, NULL },
		{ "{'$bucket':1}", 40201, NULL },
		{ "{'$bucket':{'groupBy':'$a'}}", 40198, NULL },
		{ "{'$bucket':{'boundaries':[1,2]}}", 40198, NULL },
		{ "{'$bucket':{'groupBy':'a','boundaries':[1,2]}}", 40202, NULL },
		{ "{'$bucket':{'groupBy':'','boundaries':[1,2]}}", 40202, NULL },
		{ "{'$bucket':{'groupBy':1,'boundaries':[1,2]}}", 40202, NULL },
		{ "{'$bucket':{'groupBy':'$a','boundaries':1}}", 40200, NULL },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[1]}}", 40192, NULL },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[1,'$a']}}", 40191, NULL },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[1,2],'output':1}}", 40196, NULL },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[1,2],'x':1}}", 40197, NULL },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[1,2],'default':'$a'}}", 40195, NULL },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[1,3],'default':1}}", 40199, NULL },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[1,3],'default':2}}", 40199, NULL },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[1,3],'default':3}}", 0, NULL },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[1,3],'default':0}}", 0, NULL },
		/* A value beyond all boundaries. */
		{ "{'$bucket':{'groupBy':'$a','boundaries':[2,3]}}", 40066, NULL },
		{ "{'$bucketAuto':{'buckets':1}}", 40246, NULL },
		{ "{'$bucketAuto':{'groupBy':1,'buckets':1}}", 40239, NULL },
		{ "{'$bucketAuto':{'groupBy':{},'buckets':1}}", 40239, NULL },
		{ "{'$bucketAuto':{'groupBy':{'a':1},'buckets':1}}", 40239, NULL },
		{ "{'$bucketAuto':{'groupBy':'','buckets':1}}", 40239, NULL },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':2147483648}}", 40242, NULL },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':-2147483649}}", 40242, NULL },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':2147483647}}", 0, NULL },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':-2147483648}}", 40243, NULL },
		{ "{'$set':{'a':{'$numberDouble':'NaN'}}},"
		  "{'$bucketAuto':{'groupBy':'$a','buckets':1,'granularity':'R5'}}",
		  40259, NULL },
		{ "{'$project':1}", 15969, NULL },
		{ "{'$set':1}", 40272, "$set specification" },
		{ "{'$addFields':1}", 40272, "$addFields specification" },
		{ "{'$facet':{'a':[1]}}", 40171, NULL },
		{ "{'$facet':{'a':[{}]}}", 40323, NULL },
		{ "{'$facet':{'a.b':[]}}", 16412, NULL },
		{ "{'$facet':{'$a':[]}}", 16410, NULL },
		{ "{'$facet':{'':[]}}", 15998, NULL },
		{ "{'$facet':{'a':[{'$facet':{'b':[]}}]}}", 40600, NULL },
		{ "{'$facet':{'a':[{'$unionWith':{'coll':'o','pipeline':[{'$facet':{'b':[]}}]}}]}}",
		  40600, NULL },
		{ "{'$collStats':1}", 5447000, NULL },
		{ "{'$currentOp':1}", MQL_FAILED_TO_PARSE, NULL },
		{ "{'$out':1}", 16990, NULL },
		{ "{'$out':{'db':'d'}}", 40414, "$out.coll" },
		{ "{'$out':{'coll':'c'}}", 40414, "$out.db" },
		{ "{'$out':{'db':1,'coll':'c'}}", MQL_TYPE_MISMATCH, NULL },
		{ "{'$out':{'db':'d','coll':'c','x':1}}", 40415, NULL },
		{ "{'$out':{'db':'d','coll':'c','timeseries':{}}}", MQL_NOT_SUPPORTED, NULL },
	};
	struct buf many = BUF_INIT(CASE_BYTES);
	struct mistake length = { .code = 7749501 };

	check_mistakes(*state, cases, CASES(cases), "{'a':1}");
	for (int i = 0; i < MQL_STAGES; i++)
		buf_append_cstr(&many, i ? ",{'$skip':0}" : "{'$skip':0}");
	length.pipeline = arena_printf(*state, "%.*s", STR_ARG(buf_str(&many))).ptr;
	length.code = 0;
	check_mistakes(*state, &length, 1, "{'a':1}");
	buf_append_cstr(&many, ",{'$skip':0}");
	length.pipeline = arena_printf(*state, "%.*s", STR_ARG(buf_str(&many))).ptr;
	length.code = 7749501;
	check_mistakes(*state, &length, 1, "{'a':1}");
	buf_release(&many);
}

static void
options_of_joins_and_writes_are_checked_one_by_one(void **state)
{
	static const struct mistake cases[] = {
		{ "{'$lookup':1}", MQL_FAILED_TO_PARSE, "must be an object" },
		{ "{'$lookup':{'from':'o','as':'r','pipeline':[],'x':1}}", MQL_FAILED_TO_PARSE,
		  "unknown argument" },
		{ "{'$lookup':{'from':'o','pipeline':[]}}", MQL_FAILED_TO_PARSE, "'as'" },
		{ "{'$lookup':{'from':'o','as':'r','localField':'a'}}", MQL_FAILED_TO_PARSE,
		  "either 'pipeline' or both" },
		{ "{'$lookup':{'from':'o','as':'r','foreignField':'a'}}", MQL_FAILED_TO_PARSE,
		  "either 'pipeline' or both" },
		{ "{'$lookup':{'from':'o','as':'r','localField':'a','pipeline':[]}}",
		  MQL_FAILED_TO_PARSE, "both or neither" },
		{ "{'$lookup':{'from':'o','as':'r','foreignField':'a','pipeline':[]}}",
		  MQL_FAILED_TO_PARSE, "both or neither" },
		{ "{'$lookup':{'from':'o','as':'r','localField':'a','foreignField':'b','let':{}}}",
		  MQL_FAILED_TO_PARSE, "must also specify 'pipeline'" },
		{ "{'$lookup':{'from':'o','as':'r.','pipeline':[]}}", 40353, NULL },
		{ "{'$lookup':{'from':'o','as':'r','localField':'a.','foreignField':'b'}}", 40353,
		  NULL },
		{ "{'$lookup':{'from':'o','as':'r','localField':'a','foreignField':'b.'}}", 40353,
		  NULL },
		{ "{'$lookup':{'from':'o','as':'r','localField':1,'foreignField':'b'}}",
		  MQL_FAILED_TO_PARSE, "'localField' must be a string" },
		{ "{'$lookup':{'from':'o','as':'r','localField':'a','foreignField':1}}",
		  MQL_FAILED_TO_PARSE, "'foreignField' must be a string" },
		{ "{'$lookup':{'as':'r','pipeline':[]}}", MQL_FAILED_TO_PARSE, "'from'" },
		{ "{'$lookup':{'as':'r','localField':'a','foreignField':'b'}}", MQL_FAILED_TO_PARSE,
		  "'from'" },
		{ "{'$lookup':{'as':'r','pipeline':[{'$documents':[{'x':1}]}]}}", 0, "'x':1" },
		{ JOIN("$lookup", "{'$out':'z'}"), 51047, NULL },
		{ JOIN("$lookup", "{'$limit':0}"), 15958, NULL },
		{ "{'$unionWith':1}", MQL_FAILED_TO_PARSE, NULL },
		{ "{'$unionWith':{}}", MQL_FAILED_TO_PARSE, NULL },
		{ "{'$unionWith':{'pipeline':[{'$limit':1}]}}", MQL_FAILED_TO_PARSE, NULL },
		{ "{'$unionWith':{'pipeline':[{'$documents':[{'x':1}]}]}}", 0, "'x':1" },
		{ "{'$unionWith':{'coll':1}}", MQL_TYPE_MISMATCH, "coll" },
		{ "{'$unionWith':{'coll':'o','pipeline':1}}", MQL_TYPE_MISMATCH, "pipeline" },
		{ "{'$unionWith':{'coll':'o','x':1}}", 40415, NULL },
		{ "{'$unionWith':{'coll':'o','pipeline':[{'$out':'z'}]}}", 31441, NULL },
		{ "{'$unionWith':{'coll':'o','pipeline':[{'$limit':0}]}}", 15958, NULL },
		{ "{'$graphLookup':1}", MQL_FAILED_TO_PARSE, "must be an object" },
		{ "{'$graphLookup':{'startWith':'$a','connectFromField':'a',"
		  "'connectToField':'b','as':'r'}}",
		  MQL_FAILED_TO_PARSE, "'from'" },
		{ "{'$graphLookup':{'from':'o','connectFromField':'a','connectToField':'b',"
		  "'as':'r'}}",
		  40105, NULL },
		{ "{'$graphLookup':{'from':'o','startWith':'$a','connectToField':'b','as':'r'}}",
		  40105, NULL },
		{ "{'$graphLookup':{'from':'o','startWith':'$a','connectFromField':'a','as':'r'}}",
		  40105, NULL },
		{ "{'$graphLookup':{'from':'o','startWith':'$a','connectFromField':'a',"
		  "'connectToField':'b'}}",
		  40105, NULL },
		{ GRAPH("'maxDepth':'x'"), 40100, NULL },
		{ GRAPH("'maxDepth':1.5"), 40102, NULL },
		{ GRAPH("'maxDepth':-1"), 40101, NULL },
		{ GRAPH("'maxDepth':0"), 0, NULL },
		{ GRAPH("'restrictSearchWithMatch':1"), 40185, NULL },
		{ GRAPH("'restrictSearchWithMatch':{'a':{'$bogus':1}}"), MQL_BAD_VALUE, NULL },
		{ GRAPH("'depthField':1"), 40103, "depthField" },
		{ GRAPH("'depthField':'a.'"), 40353, NULL },
		{ GRAPH("'x':1"), 40104, NULL },
		{ "{'$merge':1}", 51182, NULL },
		{ "{'$merge':{}}", 40414, NULL },
		{ "{'$merge':{'into':'x','y':1}}", 40415, NULL },
		{ "{'$merge':''}", 5786800, NULL },
		{ "{'$merge':{'into':'x','on':'a.'}}", 40353, NULL },
		{ "{'$merge':{'into':'x','on':['a',1]}}", 51134, NULL },
		{ "{'$merge':{'into':'x','on':['a','']}}", 40352, NULL },
		{ "{'$merge':{'into':'x','on':['a','b','a']}}", 31465, NULL },
		{ "{'$merge':{'into':'x','let':{}}}", 51199, NULL },
		{ "{'$merge':{'into':'x','let':{},'whenMatched':'merge'}}", 51199, NULL },
		{ "{'$merge':{'into':'x','let':{'new':1},'whenMatched':[]}}", 51273, NULL },
		{ "{'$merge':{'into':'x','let':{'new':'$a'},'whenMatched':[]}}", 51273, NULL },
		{ "{'$merge':{'into':'x','let':{'A':1},'whenMatched':[]}}", 9, "'A' starts with" },
		{ "{'$merge':{'into':'x','let':{'y':" UNKNOWN "},'whenMatched':[]}}", 168, NULL },
		{ "{'$merge':{'into':'x','whenMatched':[{'$group':{'_id':1}}]}}", MQL_BAD_VALUE,
		  "not allowed to be used within an update" },
		{ "{'$merge':{'into':'x','whenNotMatched':'x'}}", MQL_BAD_VALUE,
		  "$merge.whenNotMatched" },
		{ "{'$merge':{'into':'x','whenMatched':'fail','whenNotMatched':'discard'}}", 51181,
		  NULL },
		{ "{'$merge':{'into':'x','whenMatched':'keepExisting','whenNotMatched':'fail'}}",
		  51181, NULL },
	};

	check_mistakes(*state, cases, CASES(cases), "{'a':1}");
}

static void
options_of_accumulators_are_checked_one_by_one(void **state)
{
	static const struct mistake cases[] = {
		{ GROUP("{}"), 40234, NULL },
		{ GROUP("{'':1}"), 40234, NULL },
		{ GROUP("{'a':1}"), 40234, NULL },
		{ GROUP("{'$sum':[]}"), 40237, NULL },
		{ GROUP("{'$sum':['$a']}"), 0, "'x':1" },
		{ GROUP("{'$count':1}"), MQL_TYPE_MISMATCH, NULL },
		{ GROUP("{'$count':{'a':1}}"), MQL_TYPE_MISMATCH, NULL },
		{ GROUP("{'$firstN':1}"), 5787900, NULL },
		{ GROUP("{'$topN':1}"), 5788001, NULL },
		{ GROUP("{'$median':1}"), 7436100, NULL },
		{ GROUP("{'$firstN':{'input':'$a'}}"), 5787906, NULL },
		{ GROUP("{'$topN':{'output':'$a','sortBy':{'a':1}}}"), 5788003, NULL },
		{ GROUP("{'$firstN':{'n':1}}"), 5787907, NULL },
		{ GROUP("{'$top':{'sortBy':{'a':1}}}"), 5788004, NULL },
		{ GROUP("{'$top':{'output':'$a'}}"), 5788005, NULL },
		{ GROUP("{'$bottom':{'output':'$a'}}"), 5788005, NULL },
		{ GROUP("{'$bottomN':{'output':'$a','n':1}}"), 5788005, NULL },
		{ GROUP("{'$median':{'method':'approximate'}}"), 40414, NULL },
		{ GROUP("{'$top':{'output':'$a','sortBy':{'a':1},'n':1}}"), 5787901, NULL },
		{ GROUP("{'$bottom':{'output':'$a','sortBy':{'a':1},'n':1}}"), 5787901, NULL },
		{ GROUP("{'$top':{'input':'$a','sortBy':{'a':1}}}"), 5787901, NULL },
		{ GROUP("{'$firstN':{'output':'$a','n':1}}"), 5787901, NULL },
		{ GROUP("{'$firstN':{'input':'$a','n':1,'sortBy':{'a':1}}}"), 5787901, NULL },
		{ GROUP("{'$firstN':{'input':'$a','n':1,'method':'approximate'}}"), 5787901, NULL },
		{ GROUP("{'$top':{'output':'$a','sortBy':1}}"), 10065, NULL },
		{ GROUP("{'$top':{'output':'$a','sortBy':{'a':2}}}"), 15975, NULL },
		{ GROUP("{'$percentile':{'input':'$a','method':'approximate','p':[-0.1]}}"),
		  7750303, NULL },
		{ GROUP("{'$percentile':{'input':'$a','method':'approximate','p':[0,1]}}"), 0,
		  "'x':[1.0,1.0]" },
		/* These are looked at when a group begins. */
		{ GROUP("{'$firstN':{'input':'$a','n':'x'}}"), 5787902, NULL },
		{ GROUP("{'$firstN':{'input':'$a','n':1.5}}"), 5787902, NULL },
		{ GROUP("{'$firstN':{'input':'$a','n':'$none'}}"), 5787902, "missing" },
		{ GROUP("{'$firstN':{'input':'$a','n':0}}"), 5787908, NULL },
		{ GROUP("{'$topN':{'output':'$a','sortBy':{'a':1},'n':-1}}"), 5787908, NULL },
		{ GROUP("{'$firstN':{'input':'$a','n':1}}"), 0, "'x':[1]" },
		{ BUCKETS("{'$firstN':{'input':'$a','n':0}}"), 5787908, NULL },
		{ WINDOWS("{'$firstN':{'input':'$a','n':0}}"), 5787908, NULL },
		/* And these with a value. */
		{ GROUP("{'$concatArrays':'$a'}"), MQL_TYPE_MISMATCH, NULL },
		{ GROUP("{'$setUnion':'$a'}"), MQL_TYPE_MISMATCH, NULL },
		{ GROUP("{'$mergeObjects':'$a'}"), 40400, NULL },
		{ GROUP("{'$mergeObjects':'$none'}"), 0, "'x':{}" },
		{ BUCKETS("{'$mergeObjects':'$a'}"), 40400, NULL },
		{ WINDOWS("{'$mergeObjects':'$a'}"), 40400, NULL },
	};

	check_mistakes(*state, cases, CASES(cases), "{'a':1}");
}

static void
options_of_windows_are_checked_one_by_one(void **state)
{
	static const struct mistake cases[] = {
		{ "{'$setWindowFields':{'sortBy':null,'output':{}}}", 0, NULL },
		{ WINDOWS("1"), 9, "must be an object" },
		{ "{'$setWindowFields':{'output':{'x.':{'$sum':1}}}}", 40353, NULL },
		{ WINDOWS("{'y':1}"), 9, "unknown argument: y" },
		{ WINDOWS("{'$sum':1,'$avg':1}"), 9, "one window function" },
		{ WINDOWS("{'window':{'documents':[0,0]}}"), 9, "Expected a $-prefixed" },
		{ WINDOWS("{'$minMaxScaler':{'input':'$a'}}"), MQL_NOT_SUPPORTED, NULL },
		{ WINDOWS("{'$denseRank':{},'window':{}}"), 5371601, NULL },
		{ WINDOWS("{'window':{},'$rank':{}}"), 5371601, NULL },
		{ WINDOWS("{'$rank':{},'$sum':1}"), 5371601, NULL },
		{ WINDOWS("{'$denseRank':{},'$sum':1}"), 5371601, NULL },
		{ WINDOWS("{'$documentNumber':{},'$sum':1}"), 5371601, NULL },
		{ WINDOWS("{'$rank':{'a':1}}"), 5371603, NULL },
		{ "{'$setWindowFields':{'sortBy':{'a':1,'b':1},'output':{'x':{'$rank':{}}}}}",
		  5371602, NULL },
		{ WINDOWS("{'$sum':1,'window':1}"), 9, "'window' field must be an object" },
		{ WINDOWS("{'$sum':1,'window':{'x':1}}"), 9, "unknown argument: x" },
		{ WINDOWS("{'$sum':1,'window':{'documents':1}}"), 9, "2-element array" },
		{ WINDOWS("{'$sum':1,'window':{'documents':[0,1,2]}}"), 9, "2-element array" },
		{ WINDOWS("{'$sum':1,'window':{'documents':['x',1]}}"), 9, "Window bounds must" },
		{ WINDOWS("{'$sum':1,'window':{'documents':[0,true]}}"), 9, "Window bounds must" },
		{ WINDOWS("{'$sum':1,'window':{'documents':[0,0.5]}}"), 9, "must be an integer" },
		{ WINDOWS("{'$sum':1,'window':{'range':[0.25,0.5]}}"), 0, NULL },
		{ WINDOWS("{'$sum':1,'window':{'range':[0,1],'unit':1}}"), 9, "must be a string" },
		{ WINDOWS("{'$sum':1,'window':{'range':[0,0.5],'unit':'day'}}"), 9, "integer" },
		{ WINDOWS("{'$sum':1,'window':{'documents':['unbounded',-1]}}"), 0, "'x':0" },
		{ WINDOWS("{'$sum':1,'window':{'documents':[1,'unbounded']}}"), 0, "'x':0" },
		{ "{'$setWindowFields':{'output':{'x':{'$sum':1,'window':{'documents':["
		  "'unbounded','unbounded']}}}}}",
		  0, "'x':1" },
		{ "{'$setWindowFields':{'output':{'x':{'$sum':1,'window':{'documents':["
		  "'unbounded',0]}}}}}",
		  5339901, NULL },
		{ "{'$setWindowFields':{'output':{'x':{'$sum':1,'window':{'documents':["
		  "0,'unbounded']}}}}}",
		  5339901, NULL },
		{ "{'$setWindowFields':{'sortBy':{'a':1,'b':1},'output':{'x':{'$sum':1,'window':{"
		  "'range':[0,1]}}}}}",
		  5339902, NULL },
		{ WINDOWS("{'$shift':1}"), 9, "must be an object" },
		{ WINDOWS("{'$shift':{'by':1}}"), 9, "'output'" },
		{ WINDOWS("{'$shift':{'output':'$a'}}"), 9, "'by'" },
		{ WINDOWS("{'$shift':{'output':'$a','by':0.5}}"), 9, "'$shift:by'" },
		{ WINDOWS("{'$shift':{'output':'$a','by':2147483648}}"), 9, "'$shift:by'" },
		{ WINDOWS("{'$shift':{'output':'$a','by':-2147483649}}"), 9, "'$shift:by'" },
		{ WINDOWS("{'$shift':{'output':'$a','by':2147483647}}"), 0, "'x':null" },
		{ WINDOWS("{'$shift':{'output':'$a','by':-2147483648}}"), 0, "'x':null" },
		{ WINDOWS("{'$shift':{'output':'$a','by':0,'default':'$a'}}"), 9, "constant" },
		{ WINDOWS("{'$shift':{'output':'$a','by':0,'x':1}}"), 9, "unexpected argument: x" },
		{ WINDOWS("{'$shift':{'output':'$a','by':0},'window':{}}"), 9, "does not accept" },
		{ WINDOWS("{'$locf':'$a','window':{}}"), 9, "does not accept" },
		{ "{'$setWindowFields':{'output':{'x':{'$shift':{'output':'$a','by':1}}}}}", 9,
		  "requires a sortBy" },
		{ "{'$setWindowFields':{'output':{'x':{'$expMovingAvg':{'input':'$a','N':1}}}}}", 9,
		  "requires a sortBy" },
		{ "{'$setWindowFields':{'sortBy':{'a':1,'b':1},'output':{'x':{'$integral':{"
		  "'input':'$a'}}}}}",
		  9, "exactly one element" },
		{ "{'$setWindowFields':{'sortBy':{'a':1,'b':1},'output':{'x':{'$linearFill':'$a'}"
		  "}}}",
		  605001, NULL },
		{ WINDOWS("{'$derivative':{'input':'$a','unit':'month'},'window':{}}"), 5490704,
		  NULL },
		{ WINDOWS("{'$derivative':{'input':'$a','unit':'x'},'window':{}}"), 9,
		  "unknown time unit" },
		{ WINDOWS("{'$derivative':{'input':'$a','x':1},'window':{}}"), 9,
		  "unexpected argument: x" },
		{ WINDOWS("{'$derivative':{},'window':{}}"), 9, "'input'" },
		{ WINDOWS("{'$expMovingAvg':{'input':'$a'}}"), 9, "exactly two fields" },
		{ WINDOWS("{'$expMovingAvg':{'N':1}}"), 9, "'input'" },
		{ WINDOWS("{'$expMovingAvg':{'input':'$a','N':1,'alpha':0.5}}"), 9,
		  "exactly two fields" },
		{ WINDOWS("{'$expMovingAvg':{'input':'$a','N':0}}"), 9, "greater than zero" },
		{ WINDOWS("{'$expMovingAvg':{'input':'$a','N':1.5}}"), 9, "greater than zero" },
		{ WINDOWS("{'$expMovingAvg':{'input':'$a','x':1}}"), 9, "unexpected argument: x" },
		{ WINDOWS("{'$expMovingAvg':{'input':'$a','N':1}}"), 0, "'x':1.0" },
	};
	/* Of these the first document is sorted first. */
	static const struct mistake dates[] = {
		{ WINDOWS("{'$sum':1,'window':{'range':[0,1]}}"), 5429413, NULL },
		{ WINDOWS("{'$integral':{'input':'$s'}}"), 5624901, "requires a 'unit'" },
		{ WINDOWS("{'$integral':{'input':'$s','unit':'day'}}"), 5624902, NULL },
		{ WINDOWS("{'$linearFill':'$s'}"), MQL_TYPE_MISMATCH, "numeric or null" },
		{ "{'$set':{'a':1}}," WINDOWS("{'$linearFill':'$none'}"), 6050106, NULL },
	};
	static const struct mistake numbers[] = {
		{ WINDOWS("{'$integral':{'input':'$a','unit':'day'}}"), 5624900, NULL },
		{ WINDOWS("{'$derivative':{'input':'$s'},'window':{'documents':[-1,0]}}"), 5624902,
		  NULL },
		{ WINDOWS("{'$sum':1,'window':{'range':[0,1],'unit':'day'}}"), 5429513, NULL },
		{ WINDOWS("{'$sum':1,'window':{'range':[0,1],'unit':'millisecond'}}"), 5429513,
		  NULL },
		{ "{'$set':{'a':'x'}}," WINDOWS("{'$integral':{'input':'$s'}}"), 5624901,
		  "to be numeric" },
		{ "{'$set':{'a':{'$cond':[{'$eq':['$a',1]},1,'x']}}}," WINDOWS(
			  "{'$sum':1,'window':{'range':[0,1]}}"),
		  5429414, NULL },
		{ "{'$set':{'a':{'$cond':[{'$eq':['$a',1]},1,'x']}}}," WINDOWS(
			  "{'$sum':1,'window':{'range':[1,2]}}"),
		  5429414, NULL },
	};

	check_mistakes(*state, cases, CASES(cases), "{'a':1}");
	check_mistakes(*state, dates, CASES(dates),
		       "{'a':{'$date':0},'s':'x'},{'a':{'$date':1},'s':'x'}");
	check_mistakes(*state, numbers, CASES(numbers), "{'a':1,'s':'x'},{'a':2,'s':'x'}");
}

static void
options_of_densify_and_fill_are_checked_one_by_one(void **state)
{
#define DENSIFY(range) "{'$densify':{'field':'a','range':{" range "}}}"
#define PARTED(fields)                                                                             \
	"{'$densify':{'field':'a','partitionByFields':" fields                                     \
	",'range':{'step':1,'bounds':'full'}}}"
	static const struct mistake cases[] = {
		{ "{'$densify':{'field':'a','range':{'step':1,'bounds':'full'},'x':1}}", 40415,
		  "$densify.x" },
		{ "{'$densify':{'range':{'step':1,'bounds':'full'}}}", 40414, "$densify.field" },
		{ "{'$densify':{'field':'a','range':1}}", MQL_TYPE_MISMATCH, "$densify.range" },
		{ "{'$densify':{'field':'a.','range':{'step':1,'bounds':'full'}}}", 40353, NULL },
		{ DENSIFY("'bounds':'full'"), 40414, "range.step" },
		{ DENSIFY("'step':1"), 40414, "range.bounds" },
		{ DENSIFY("'step':1,'bounds':'full','x':1"), 40415, "range.x" },
		{ DENSIFY("'step':1,'bounds':'full','unit':1"), 9, "unknown time unit" },
		{ DENSIFY("'step':'x','bounds':'full'"), 5733401, NULL },
		{ DENSIFY("'step':{'$numberDouble':'NaN'},'bounds':'full'"), 5733401, NULL },
		{ DENSIFY("'step':1,'bounds':[1,2,3]"), 5733403, NULL },
		{ DENSIFY("'step':1,'bounds':[1,{'$date':1}]"), 5733402, NULL },
		{ DENSIFY("'step':1,'bounds':[{'$date':1},1]"), 5733402, NULL },
		{ DENSIFY("'step':1,'unit':'day','bounds':[1,2]"), 5733409, "may not" },
		{ DENSIFY("'step':1,'bounds':[{'$date':1},{'$date':2}]"), 5733409, "must" },
		{ DENSIFY("'step':1,'bounds':[1,1]"), 0, NULL },
		{ DENSIFY("'step':1,'bounds':[0,1000000]"), 5897900, "Generated 500001 documents" },
		{ PARTED("1"), MQL_TYPE_MISMATCH, "expected type 'array'" },
		{ PARTED("[1]"), MQL_TYPE_MISMATCH, "expected type 'string'" },
		{ PARTED("['b.']"), 40353, NULL },
		{ PARTED("['b','a']"), 8993000, NULL },
		{ "{'$densify':{'field':'a','partitionByFields':[],'range':{'step':1,"
		  "'bounds':'partition'}}}",
		  5733408, NULL },
		{ "{'$fill':{'output':{'b':1}}}", MQL_TYPE_MISMATCH, "output field 'b'" },
		{ "{'$fill':{'output':{'b.':{'value':1}}}}", 40353, NULL },
		{ "{'$fill':{'output':{'b':{'x':1}}}}", 6050200, NULL },
		{ "{'$fill':{'output':{'b':{'method':1}}}}", 6050202, NULL },
		{ "{'$fill':{'sortBy':1,'output':{}}}", MQL_TYPE_MISMATCH, "sortBy" },
		{ "{'$fill':{'partitionBy':1,'output':{}}}", MQL_TYPE_MISMATCH, "partitionBy" },
		{ "{'$fill':{'partitionBy':{},'output':{}}}", 0, NULL },
		{ "{'$fill':{'partitionByFields':'b','output':{}}}", MQL_TYPE_MISMATCH,
		  "partitionByFields" },
		{ "{'$fill':{'partitionByFields':[1],'output':{}}}", MQL_TYPE_MISMATCH,
		  "partitionByFields.0" },
		{ "{'$fill':{'partitionByFields':['b',''],'output':{}}}", 40352, NULL },
	};
#undef DENSIFY
#undef PARTED

	check_mistakes(*state, cases, CASES(cases), "{'a':1}");
}

/* Wherever an expression may be, one that cannot be compiled is an error, and one that fails. */
static void
expressions_fail_wherever_they_are(void **state)
{
#define EXPRESSION(before, after)                                                                  \
	{                                                                                          \
		before UNKNOWN after, before FAILS after                                           \
	}
#define ACCUMULATOR(before, after)                                                                 \
	EXPRESSION("{'$group':{'_id':1,'y':{'$sum':1},'x':{" before, after "}}}"),                 \
		EXPRESSION("{'$bucketAuto':{'groupBy':'$a','buckets':1,'output':{'y':{'$sum':1},'" \
			   "x':{" before,                                                          \
			   after "}}}}"),                                                          \
		EXPRESSION("{'$setWindowFields':{'sortBy':{'a':1},'output':{'y':{'$sum':1},'x':"   \
			   "{" before,                                                             \
			   after "}}}}")
#define WINDOW(before, after)                                                                      \
	EXPRESSION("{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{" before, after "}}}}")
	static const struct {
		const char *unknown, *fails;
	} cases[] = {
		EXPRESSION("{'$match':{'$expr':", "}}"),
		EXPRESSION("{'$project':{'b':1,'x':[1,", "]}}"),
		EXPRESSION("{'$set':{'b':1,'x':[1,", "]}}"),
		EXPRESSION("{'$set':{'b':{'c':", "}}}"),
		EXPRESSION("{'$replaceWith':", "}"),
		EXPRESSION("{'$replaceRoot':{'newRoot':", "}}"),
		EXPRESSION("{'$redact':", "}"),
		EXPRESSION("{'$redact':{'$cond':[{'$eq':[{'$type':'$a'},'missing']},",
			   ",'$$DESCEND']}}"),
		EXPRESSION("{'$group':{'_id':", "}}"),
		EXPRESSION("{'$group':{'_id':{'b':1,'x':", "}}}"),
		EXPRESSION("{'$sortByCount':", "}"),
		EXPRESSION("{'$bucket':{'groupBy':", ",'boundaries':[0,1]}}"),
		EXPRESSION("{'$bucket':{'groupBy':'$a','boundaries':[0,2],'output':{'x':{'$sum':",
			   "}}}}"),
		EXPRESSION("{'$bucketAuto':{'groupBy':", ",'buckets':1}}"),
		EXPRESSION("{'$setWindowFields':{'partitionBy':", ",'output':{'x':{'$sum':1}}}}"),
		ACCUMULATOR("'$sum':", ""),
		ACCUMULATOR("'$push':[", "]"),
		ACCUMULATOR("'$first':", ""),
		ACCUMULATOR("'$lastN':{'n':1,'input':", "}"),
		ACCUMULATOR("'$minN':{'n':1,'input':", "}"),
		ACCUMULATOR("'$top':{'sortBy':{'a':1},'output':", "}"),
		ACCUMULATOR("'$median':{'method':'approximate','input':", "}"),
		WINDOW("'$shift':{'by':1,'output':", "}"),
		WINDOW("'$integral':{'input':", "}"),
		WINDOW("'$derivative':{'input':", "},'window':{}"),
		WINDOW("'$expMovingAvg':{'N':2,'input':", "}"),
		WINDOW("'$covariancePop':[", ",1]"),
		WINDOW("'$covarianceSamp':[1,", "]"),
		WINDOW("'$linearFill':", ""),
		WINDOW("'$locf':", ""),
		EXPRESSION("{'$fill':{'output':{'x':{'value':", "}}}}"),
		EXPRESSION("{'$fill':{'partitionBy':",
			   ",'sortBy':{'a':1},'output':{'x':{'method':'locf'}}}}"),
		EXPRESSION("{'$lookup':{'from':'o','as':'r','pipeline':[],'let':{'y':1,'x':",
			   "}}}"),
		EXPRESSION("{'$lookup':{'from':'o','as':'r','pipeline':[{'$set':{'x':", "}}]}}"),
		EXPRESSION("{'$unionWith':{'coll':'o','pipeline':[{'$set':{'x':", "}}]}}"),
		EXPRESSION("{'$graphLookup':{'from':'o','as':'r','connectFromField':'a',"
			   "'connectToField':'b','startWith':",
			   "}}"),
		EXPRESSION("{'$facet':{'y':[],'x':[{'$set':{'x':", "}}]}}"),
	};

	other_documents = "{'o':[{'b':1,'s':'x'}]}";
	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql unknown = case_mql(*state), fails = case_mql(*state);
		const char *text = run_text(&unknown, cases[i].unknown, "{'a':1,'s':'x'}");

		/* A projection has a code of its own for it. */
		if (unknown.code != 168 && unknown.code != 31325)
			fail_msg("%s: %s", cases[i].unknown, text);
		text = run_text(&fails, cases[i].fails, "{'a':1,'s':'x'},{'s':'y'}");
		if (fails.code != 241)
			fail_msg("%s: %s", cases[i].fails, text);
	}
#undef EXPRESSION
#undef ACCUMULATOR
#undef WINDOW
}

/* Each array alone is within the limit of memory, and no document may have it. */
static void
arrays_too_long_for_a_document_are_an_error(void **state)
{
#define MANY "{'$set':{'r':{'$range':[0,60]}}},{'$unwind':'$r'},"
	static const char *const pipelines[] = {
		MANY "{'$group':{'_id':1,'x':{'$push':'$p'}}}",
		MANY "{'$bucketAuto':{'groupBy':'$r','buckets':1,'output':{'x':{'$push':'$p'}}}}",
		MANY "{'$setWindowFields':{'output':{'x':{'$push':'$p'}}}}",
		MANY "{'$facet':{'x':[]}}",
	};
#undef MANY
	struct arena *arena = arena_new(4 * CASE_BYTES);
	char *text = arena_bytes(arena, 300001);
	const char *documents;

	(void)state;
	memset(text, 'x', 300000);
	text[300000] = '\0';
	documents = arena_printf(arena, "{'p':'%s'}", text).ptr;
	for (size_t i = 0; i < CASES(pipelines); i++) {
		struct mql q = case_mql(arena);
		const char *said = run_text(&q, pipelines[i], documents);

		if (q.code != MQL_TOO_LARGE)
			fail_msg("%s: %.100s", pipelines[i], said);
	}
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(mistakes_have_mongodbs_codes, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(options_of_stages_are_checked_one_by_one,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(options_of_joins_and_writes_are_checked_one_by_one,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(options_of_accumulators_are_checked_one_by_one,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(options_of_windows_are_checked_one_by_one,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(options_of_densify_and_fill_are_checked_one_by_one,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(expressions_fail_wherever_they_are, case_setup,
						case_teardown),
		cmocka_unit_test(arrays_too_long_for_a_document_are_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
