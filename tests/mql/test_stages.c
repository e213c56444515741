#include "base/mem.h"
#include "mql/stage/accum.h"

#include "stages_case.h"

enum {
	MANY_FIELDS = 40, /* of a $group */
};

static void
documents_are_chosen_and_changed_one_by_one(void **state)
{
	static const struct stage_case cases[] = {
		{ "", "{'a':1},{'a':2}", "{'a':1},{'a':2}" },
		{ "{'$match':{'a':{'$gt':1}}}", "{'a':1},{'a':2}", "{'a':2}" },
		{ "{'$match':{'$expr':{'$gt':['$a','$b']}}}", "{'a':1,'b':2},{'a':2,'b':1}",
		  "{'a':2,'b':1}" },
		{ "{'$skip':1},{'$limit':1}", "{'a':1},{'a':2},{'a':3}", "{'a':2}" },
		{ "{'$skip':0}", "{'a':1},{'a':2}", "{'a':1},{'a':2}" },
		{ "{'$set':{'b':'$a'}},{'$unset':'a'}", "{'a':1}", "{'b':1}" },
		{ "{'$project':{'_id':0,'b':1}},{'$match':{'b':2}}", "{'_id':1,'b':2},{'b':3}",
		  "{'b':2}" },
		{ "{'$replaceRoot':{'newRoot':'$a'}}", "{'a':{'b':1}}", "{'b':1}" },
		{ "{'$replaceWith':'$a'}", "{'a':{'b':1}}", "{'b':1}" },
		{ "{'$unwind':'$a'}", "{'a':[1,2],'b':0},{'a':[]},{'a':null},{},{'a':5}",
		  "{'a':1,'b':0},{'a':2,'b':0},{'a':5}" },
		{ "{'$unwind':{'path':'$a','preserveNullAndEmptyArrays':true}}",
		  "{'a':[1]},{'a':[],'b':1},{'a':null},{}", "{'a':1},{'b':1},{'a':null},{}" },
		{ "{'$unwind':{'path':'$a.b','preserveNullAndEmptyArrays':true}}",
		  "{'a':{'b':[],'c':1}}", "{'a':{'c':1}}" },
		{ "{'$unwind':{'path':'$a.b','includeArrayIndex':'i'}}",
		  "{'a':{'b':[7,8],'c':1}},{'a':{'b':3}}",
		  "{'a':{'b':7,'c':1},'i':0},{'a':{'b':8,'c':1},'i':1},{'a':{'b':3},'i':null}" },
		{ "{'$redact':{'$cond':[{'$eq':['$x',1]},'$$PRUNE','$$DESCEND']}}",
		  "{'a':{'x':1},'b':{'y':2},'c':[{'x':1},{'x':2},3]},{'x':1}",
		  "{'b':{'y':2},'c':[{'x':2},3]}" },
		{ "{'$count':'n'}", "{},{},{}", "{'n':3}" },
		{ "{'$count':'n'}", "", "" },
		{ "{'$indexStats':{}}", "{'a':1}", "" },
		{ "{'$sample':{'size':2}},{'$count':'n'}", "{},{},{}", "{'n':2}" },
		{ "{'$sample':{'size':9}},{'$count':'n'}", "{},{},{}", "{'n':3}" },
		{ "{'$documents':[{'a':1},{'a':{'$add':[1,1]}}]}", "", "{'a':1},{'a':2}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

static void
documents_are_sorted_and_grouped(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$sort':{'a':-1}}", "{'a':1},{'a':3},{'a':2}", "{'a':3},{'a':2},{'a':1}" },
		{ "{'$sort':{'a':1}},{'$skip':1},{'$limit':1}", "{'a':1},{'a':3},{'a':2}",
		  "{'a':2}" },
		{ "{'$sort':{'a':1}}", "{'a':1,'b':1},{'a':0},{'a':1,'b':2}",
		  "{'a':0},{'a':1,'b':1},{'a':1,'b':2}" },
		{ "{'$group':{'_id':'$a','n':{'$sum':'$b'},'m':{'$avg':'$b'}}},{'$sort':{'_id':1}}",
		  "{'a':1,'b':2},{'a':2,'b':5},{'a':1,'b':4},{'b':1}",
		  "{'_id':null,'n':1,'m':1.0},{'_id':1,'n':6,'m':3.0},{'_id':2,'n':5,'m':5.0}" },
		{ "{'$group':{'_id':null,'a':{'$min':'$a'},'b':{'$max':'$a'},'c':{'$first':'$a'},"
		  "'d':{'$last':'$a'},'e':{'$push':'$a'},'f':{'$addToSet':'$b'},'g':{'$count':{}}}"
		  "}",
		  "{'a':2,'b':1},{'a':1,'b':1},{'a':3,'b':2}",
		  "{'_id':null,'a':1,'b':3,'c':2,'d':3,'e':[2,1,3],'f':[1,2],'g':3}" },
		{ "{'$group':{'_id':null,'a':{'$firstN':{'input':'$a','n':2}},"
		  "'b':{'$lastN':{'input':'$a','n':2}},'c':{'$minN':{'input':'$a','n':2}},"
		  "'d':{'$maxN':{'input':'$a','n':2}},'e':{'$top':{'sortBy':{'a':-1},'output':'$a'}"
		  "},"
		  "'f':{'$bottomN':{'sortBy':{'a':1},'output':'$a','n':2}}}}",
		  "{'a':2},{'a':1},{'a':4},{'a':3}",
		  "{'_id':null,'a':[2,1],'b':[4,3],'c':[1,2],'d':[4,3],'e':4,'f':[3,4]}" },
		{ "{'$group':{'_id':null,'a':{'$stdDevPop':'$a'},'b':{'$stdDevSamp':'$a'},"
		  "'c':{'$mergeObjects':'$b'},'d':{'$median':{'input':'$a','method':'approximate'}}"
		  ","
		  "'e':{'$percentile':{'input':'$a','p':[0.5,1],'method':'approximate'}}}}",
		  "{'a':1,'b':{'x':1}},{'a':3,'b':{'x':2,'y':1}}",
		  "{'_id':null,'a':1.0,'b':1.4142135623730951,'c':{'x':2,'y':1},'d':1.0,"
		  "'e':[1.0,3.0]}" },
		{ "{'$group':{'_id':{'x':'$a'}}}", "{'a':1},{'a':1.0}", "{'_id':{'x':1}}" },
		{ "{'$group':{'_id':null,'a':{'$concatArrays':'$a'},'b':{'$setUnion':'$a'}}}",
		  "{'a':[1,2]},{},{'a':[]},{'a':[2,1.0,3]}",
		  "{'_id':null,'a':[1,2,2,1.0,3],'b':[1,2,3]}" },
		/* Equal values are one group, whatever their types; so are nothing and null. */
		{ "{'$group':{'_id':'$a','n':{'$sum':1}}}",
		  "{'a':1},{'a':true},{'a':1.0},{'a':{'$numberLong':'1'}},{'a':1},{},{'a':null},"
		  "{'a':'1'},{'a':{'$date':{'$numberLong':'1'}}},{'a':'1'},{'a':1.0},{'a':false},"
		  "{'a':true},{'b':1},{'a':{'$symbol':'1'}},{'a':{'$date':{'$numberLong':'1'}}}",
		  "{'_id':1,'n':5},{'_id':true,'n':2},{'_id':null,'n':3},{'_id':'1','n':3},"
		  "{'_id':{'$date':'1970-01-01T00:00:00.001Z'},'n':2},{'_id':false,'n':1}" },
		{ "{'$sortByCount':'$a'}", "{'a':1},{'a':2},{'a':2}",
		  "{'_id':2,'count':2},{'_id':1,'count':1}" },
		{ "{'$sortByCount':{'$add':['$a',1]}}", "{'a':1},{'a':2},{'a':2}",
		  "{'_id':3,'count':2},{'_id':2,'count':1}" },
		{ "{'$bucket':{'groupBy':'$a','boundaries':[0,5,10],'default':'x'}}",
		  "{'a':1},{'a':7},{'a':5},{'a':20}",
		  "{'_id':0,'count':1},{'_id':5,'count':2},{'_id':'x','count':1}" },
		{ "{'$facet':{'a':[{'$match':{'a':1}}],'b':[{'$count':'n'}],'c':[]}}",
		  "{'a':1},{'a':2}", "{'a':[{'a':1}],'b':[{'n':2}],'c':[{'a':1},{'a':2}]}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

static void
buckets_have_about_the_same_size(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':3}}",
		  "{'a':6},{'a':2},{'a':3},{'a':4},{'a':5},{'a':1}",
		  "{'_id':{'min':1,'max':3},'count':2},{'_id':{'min':3,'max':5},'count':2},"
		  "{'_id':{'min':5,'max':6},'count':2}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':2,'output':{'l':{'$push':'$b'}}}}",
		  "{'a':1,'b':1},{'b':2},{'a':null,'b':3},{'a':1,'b':4},{'a':'x','b':5}",
		  "{'_id':{'min':null,'max':'x'},'l':[2,3,1,4]},"
		  "{'_id':{'min':'x','max':'x'},'l':[5]}" },
		{ "{'$bucketAuto':{'groupBy':{'$add':['$a',1]},'buckets':10}}", "{'a':1},{'a':2}",
		  "{'_id':{'min':2,'max':3},'count':1},{'_id':{'min':3,'max':3},'count':1}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1}}", "{'a':[3,1]},{'a':[2,9]}",
		  "{'_id':{'min':[2,9],'max':[3,1]},'count':2}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1,'output':{}}}", "{'a':1}",
		  "{'_id':{'min':1,'max':1},'count':1}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':3}}", "", "" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':3,'granularity':'R5'}}",
		  "{'a':1},{'a':10},{'a':100},{'a':1000}",
		  "{'_id':{'min':0.63,'max':1.6},'count':1},{'_id':{'min':1.6,'max':16.0},"
		  "'count':1},{'_id':{'min':16.0,'max':1600.0},'count':2}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':3,'granularity':'POWERSOF2'}}",
		  "{'a':1},{'a':10},{'a':100},{'a':1000}",
		  "{'_id':{'min':0.5,'max':2},'count':1},{'_id':{'min':2,'max':16},'count':1},"
		  "{'_id':{'min':16,'max':1024},'count':2}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1,'granularity':'E6'}}",
		  "{'a':{'$numberDecimal':'0.8'}},{'a':{'$numberDecimal':'120'}}",
		  "{'_id':{'min':{'$numberDecimal':'0.68'},'max':{'$numberDecimal':'150'}},"
		  "'count':2}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1,'granularity':'1-2-5'}}",
		  "{'a':0},{'a':0.3}", "{'_id':{'min':0,'max':0.5},'count':2}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

static void
windows_are_computed_by_partition(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$setWindowFields':{'partitionBy':'$p','sortBy':{'a':1},'output':{"
		  "'s':{'$sum':'$a','window':{'documents':['unbounded','current']}},"
		  "'t':{'$sum':'$a'},'n.m':{'$push':'$a','window':{'documents':[-1,1]}}}}}",
		  "{'p':2,'a':5},{'p':1,'a':3},{'p':1,'a':1},{'p':1.0,'a':2}",
		  "{'p':1,'a':1,'s':1,'t':6,'n':{'m':[1,2]}},{'p':1.0,'a':2,'s':3,'t':6,'n':{'m':["
		  "1,2,3]}},{'p':1,'a':3,'s':6,'t':6,'n':{'m':[2,3]}},{'p':2,'a':5,'s':5,'t':5,'n'"
		  ":{'m':[5]}}" },
		{ "{'$setWindowFields':{'sortBy':{'a':-1},'output':{'r':{'$rank':{}},"
		  "'d':{'$denseRank':{}},'n':{'$documentNumber':{}}}}}",
		  "{'a':1},{'a':2},{'a':2},{'a':3}",
		  "{'a':3,'r':1,'d':1,'n':1},{'a':2,'r':2,'d':2,'n':2},{'a':2,'r':2,'d':2,'n':3},"
		  "{'a':1,'r':4,'d':3,'n':4}" },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{"
		  "'p':{'$push':'$a','window':{'range':[-1,0]}},"
		  "'q':{'$count':{},'window':{'range':['current','unbounded']}},"
		  "'e':{'$max':'$a','window':{'documents':[2,3]}}}}}",
		  "{'a':1},{'a':2},{'a':2},{'a':4.5}",
		  "{'a':1,'p':[1],'q':4,'e':4.5},{'a':2,'p':[1,2,2],'q':3,'e':4.5},"
		  "{'a':2,'p':[1,2,2],'q':3,'e':null},{'a':4.5,'p':[4.5],'q':1,'e':null}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'n':{'$count':{},'window':"
		  "{'range':[-1,0],'unit':'month'}}}}},{'$unset':'t'}",
		  "{'i':1,'t':{'$date':'2024-01-31T00:00:00Z'}},{'i':2,'t':{'$date':"
		  "'2024-02-29T00:00:00Z'}},{'i':3,'t':{'$date':'2024-03-30T00:00:00Z'}}",
		  "{'i':1,'n':1},{'i':2,'n':2},{'i':3,'n':2}" },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{"
		  "'p':{'$shift':{'output':'$a','by':-1}},"
		  "'n':{'$shift':{'output':'$a','by':1,'default':'x'}}}}}",
		  "{'a':1},{'a':2}", "{'a':1,'p':null,'n':2},{'a':2,'p':1,'n':'x'}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{"
		  "'d':{'$derivative':{'input':'$v'},'window':{'documents':[-1,0]}},"
		  "'i':{'$integral':{'input':'$v'},'window':{'documents':['unbounded','current']}},"
		  "'e':{'$expMovingAvg':{'input':'$v','N':3}}}}}",
		  "{'t':0,'v':1},{'t':2,'v':5},{'t':3,'v':5}",
		  "{'t':0,'v':1,'d':null,'i':0.0,'e':1.0},{'t':2,'v':5,'d':2.0,'i':6.0,'e':3.0},"
		  "{'t':3,'v':5,'d':0.0,'i':11.0,'e':4.0}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{"
		  "'e':{'$expMovingAvg':{'input':'$v','alpha':0.75}}}}}",
		  "{'t':0,'v':1},{'t':1,'v':5}", "{'t':0,'v':1,'e':1.0},{'t':1,'v':5,'e':4.0}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{"
		  "'i':{'$integral':{'input':'$v','unit':'second'},'window':{'documents':"
		  "[-1,0]}}}}},{'$unset':'t'}",
		  "{'t':{'$date':0},'v':1},{'t':{'$date':2000},'v':3}",
		  "{'v':1,'i':0.0},{'v':3,'i':4.0}" },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'s':{'$sum':'$a',"
		  "'window':{'documents':[0,0]}}}}}",
		  "{'a':1},{'a':2}", "{'a':1,'s':1},{'a':2,'s':2}" },
		{ "{'$setWindowFields':{'output':{'c':{'$covariancePop':['$x','$y']},"
		  "'d':{'$covarianceSamp':['$x','$y']}}}},{'$limit':1}",
		  "{'x':1,'y':2},{'x':2,'y':4},{'x':3,'y':6},{'x':'a','y':0}",
		  "{'x':1,'y':2,'c':1.3333333333333333,'d':2.0}" },
		{ "{'$setWindowFields':{'output':{'c':{'$covariancePop':{'0':'$x','1':'$y'}}}}},"
		  "{'$limit':1}",
		  "{'x':1,'y':2},{'x':2,'y':4}", "{'x':1,'y':2,'c':null}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'l':{'$linearFill':'$v'},"
		  "'c':{'$locf':'$v'}}}}",
		  "{'t':0},{'t':1,'v':1},{'t':2},{'t':4,'v':null},{'t':5,'v':9},{'t':6}",
		  "{'t':0,'l':null,'c':null},{'t':1,'v':1,'l':1,'c':1},{'t':2,'l':3.0,'c':1},"
		  "{'t':4,'v':null,'l':7.0,'c':1},{'t':5,'v':9,'l':9,'c':9},{'t':6,'l':null,'c':"
		  "9}" },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$topN':{'n':2,'sortBy':"
		  "{'b':-1},'output':'$b'},'window':{'documents':[-1,1]}}}}}",
		  "{'a':1,'b':3},{'a':2,'b':7},{'a':3,'b':5}",
		  "{'a':1,'b':3,'x':[7,3]},{'a':2,'b':7,'x':[7,5]},{'a':3,'b':5,'x':[7,5]}" },
		{ "{'$setWindowFields':{'sortBy':{},'output':{'s':{'$sum':'$a','window':{"
		  "'documents':[-1,0]}},'t':{'$sum':['$a',1]},'p':{'$push':['$a',1]}}}}",
		  "{'a':1}", "{'a':1,'s':1,'t':0,'p':[[1,1]]}" },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{}}}", "{'a':2},{'a':1}",
		  "{'a':1},{'a':2}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

static void
windows_of_a_range_end_in_front_of_all_rows_or_behind_them(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$push':'$a','window':{"
		  "'range':[2,3]}}}}}",
		  "{'a':1},{'a':2},{'a':3},{'a':4},{'a':5},{'a':6},{'a':7},{'a':8}",
		  "{'a':1,'x':[3,4]},{'a':2,'x':[4,5]},{'a':3,'x':[5,6]},{'a':4,'x':[6,7]},"
		  "{'a':5,'x':[7,8]},{'a':6,'x':[8]},{'a':7,'x':[]},{'a':8,'x':[]}" },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'x':{'$push':'$a','window':{"
		  "'range':[-3,-2]}}}}}",
		  "{'a':1},{'a':2},{'a':3},{'a':4}",
		  "{'a':1,'x':[]},{'a':2,'x':[]},{'a':3,'x':[1]},{'a':4,'x':[1,2]}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

static void
missing_values_are_filled(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$fill':{'output':{'a':{'value':0},'b.c':{'value':'$x'}}}}",
		  "{'x':1},{'a':null,'x':2},{'a':3,'b':{'c':4}}",
		  "{'x':1,'a':0,'b':{'c':1}},{'a':0,'x':2,'b':{'c':2}},{'a':3,'b':{'c':4}}" },
		{ "{'$fill':{'output':{'a':{'method':'locf'}}}}", "{'a':1},{'a':null},{},{'a':2}",
		  "{'a':1},{'a':1},{'a':1},{'a':2}" },
		{ "{'$fill':{'partitionByFields':['p','q.r'],'sortBy':{'t':1},'output':{"
		  "'a':{'method':'linear'},'b':{'value':7}}}}",
		  "{'p':1,'t':3,'a':9},{'p':2,'t':2},{'p':1,'t':2},{'p':1,'t':1,'a':5,'b':6}",
		  "{'p':1,'t':1,'a':5,'b':6},{'p':1,'t':2,'a':7.0,'b':7},"
		  "{'p':1,'t':3,'a':9,'b':7},{'p':2,'t':2,'a':null,'b':7}" },
		{ "{'$fill':{'partitionBy':{'$mod':['$t',2]},'sortBy':{'t':-1},'output':{"
		  "'a':{'method':'locf'}}}}",
		  "{'t':1},{'t':2},{'t':3,'a':3},{'t':4,'a':4}",
		  "{'t':4,'a':4},{'t':2,'a':4},{'t':3,'a':3},{'t':1,'a':3}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

static void
gaps_between_values_are_closed(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$densify':{'field':'t','range':{'step':1,'bounds':'full'}}}",
		  "{'t':5,'x':2},{'t':2.5},{'t':1,'x':1},{'x':0}",
		  "{'x':0},{'t':1,'x':1},{'t':2},{'t':2.5},{'t':3},{'t':4},{'t':5,'x':2}" },
		{ "{'$densify':{'field':'a.t','partitionByFields':['p'],'range':{'step':2,"
		  "'bounds':'partition'}}}",
		  "{'p':2,'a':{'t':4}},{'p':2,'a':{'t':0}},{'p':1,'a':{'t':1}},{'p':1,'a':{'t':5}}",
		  "{'p':1,'a':{'t':1}},{'p':1,'a':{'t':3}},{'p':1,'a':{'t':5}},{'p':2,'a':{'t':0}},"
		  "{'p':2,'a':{'t':2}},{'p':2,'a':{'t':4}}" },
		{ "{'$densify':{'field':'t','partitionByFields':['p'],'range':{'step':1,"
		  "'bounds':'full'}}}",
		  "{'p':1,'t':2},{'p':2,'t':1},{'p':2,'t':3}",
		  "{'p':1,'t':1},{'p':1,'t':2},{'p':1,'t':3},{'p':2,'t':1},{'p':2,'t':2},"
		  "{'p':2,'t':3}" },
		{ "{'$densify':{'field':'t','range':{'step':1,'bounds':[2,5]}}}",
		  "{'t':1},{'t':4},{'t':9}", "{'t':1},{'t':2},{'t':3},{'t':4},{'t':9}" },
		{ "{'$densify':{'field':'t','range':{'step':1,'bounds':[2,4]}}}", "",
		  "{'t':2},{'t':3}" },
		{ "{'$densify':{'field':'t','partitionByFields':['p'],'range':{'step':1,"
		  "'bounds':[0,2]}}}",
		  "{'p':1,'t':0},{'p':2,'t':1}",
		  "{'p':1,'t':0},{'p':1,'t':1},{'p':2,'t':0},{'p':2,'t':1}" },
		{ "{'$densify':{'field':'t','range':{'step':1,'unit':'month','bounds':'full'}}},"
		  "{'$project':{'m':{'$dateToString':{'date':'$t','format':'%Y-%m-%d'}}}}",
		  "{'t':{'$date':'2024-01-15T00:00:00Z'}},{'t':{'$date':'2024-03-20T00:00:00Z'}}",
		  "{'m':'2024-01-15'},{'m':'2024-02-15'},{'m':'2024-03-15'},{'m':'2024-03-20'}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

static void
other_collections_are_read(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$lookup':{'from':'o','localField':'a','foreignField':'k','as':'r'}}",
		  "{'a':1},{'a':[2,3]},{}",
		  "{'a':1,'r':[{'k':1,'v':1}]},{'a':[2,3],'r':[{'k':2,'v':2}]},{'r':[{'v':3}]}" },
		{ "{'$lookup':{'from':'o','let':{'x':'$a'},'pipeline':[{'$match':{'$expr':"
		  "{'$eq':['$k','$$x']}}},{'$project':{'v':1}}],'as':'r.s'}}",
		  "{'a':1},{'a':9}", "{'a':1,'r':{'s':[{'v':1}]}},{'a':9,'r':{'s':[]}}" },
		{ "{'$lookup':{'from':'o','localField':'a','foreignField':'k','pipeline':["
		  "{'$match':{'v':2}}],'as':'r'}}",
		  "{'a':1},{'a':2}", "{'a':1,'r':[]},{'a':2,'r':[{'k':2,'v':2}]}" },
		{ "{'$lookup':{'from':{'coll':'o'},'localField':'a','foreignField':'k','as':'r'}}",
		  "{'a':2}", "{'a':2,'r':[{'k':2,'v':2}]}" },
		{ "{'$lookup':{'from':'o','pipeline':[{'$count':'n'}],'as':'r'}}", "{},{}",
		  "{'r':[{'n':3}]},{'r':[{'n':3}]}" },
		{ "{'$unionWith':'o'}", "{'a':1}", "{'a':1},{'k':1,'v':1},{'k':2,'v':2},{'v':3}" },
		{ "{'$unionWith':{'coll':'o','pipeline':[{'$match':{'v':3}}]}}", "{'a':1}",
		  "{'a':1},{'v':3}" },
		{ "{'$graphLookup':{'from':'g','startWith':'$a','connectFromField':'to',"
		  "'connectToField':'n','as':'r','depthField':'d'}},{'$unwind':'$r'},"
		  "{'$sort':{'r.n':1}},{'$replaceWith':{'n':'$r.n','d':'$r.d'}}",
		  "{'a':1}", "{'n':1,'d':0},{'n':2,'d':1},{'n':3,'d':2}" },
		{ "{'$graphLookup':{'from':'g','startWith':'$a','connectFromField':'to',"
		  "'connectToField':'n','as':'r','maxDepth':0}}",
		  "{'a':3}", "{'a':3,'r':[{'_id':3,'n':3,'to':1}]}" },
	};

	other_documents = "{'o':[{'k':1,'v':1},{'k':2,'v':2},{'v':3}],'g':[{'_id':1,'n':1,'to':2},"
			  "{'_id':2,'n':2,'to':3},{'_id':3,'n':3,'to':1},{'_id':4,'n':4,'to':1}]}";
	check_pipelines(*state, cases, CASES(cases));
}

/* Documents {_id, a, b, pad}: 3,000 fill a stage's memory, and MQL_SPILL_BYTES more than once. */
static struct str
many_documents(struct arena *arena, int count)
{
	struct buf out = BUF_INIT(CASE_BYTES);
	struct bson_builder b;
	char pad[800];
	struct str kept;

	memset(pad, 'x', sizeof(pad));
	bson_builder_init(&b, &out);
	bson_begin_outer_array(&b);
	for (int i = 0; i < count; i++) {
		bson_begin_document(&b, STR(""));
		bson_put_int32(&b, STR("_id"), i);
		bson_put_int32(&b, STR("a"), (int)((unsigned)i * 7919 % 1009));
		bson_put_int32(&b, STR("b"), i % 10);
		bson_put_string(&b, STR("pad"), str_of(pad, sizeof(pad)));
		bson_end(&b);
	}
	bson_end(&b);
	kept = arena_dup(arena, buf_str(&out));
	buf_release(&out);
	return kept;
}

static void
stages_whose_memory_is_full_use_a_file(void **state)
{
	static const char *const pipelines[] = {
		"{'p':[{'$sort':{'a':1,'_id':-1}},{'$project':{'pad':0}}]}",
		"{'p':[{'$sort':{'b':1}},{'$project':{'pad':0}}]}",
		("{'p':[{'$group':{'_id':'$a','n':{'$sum':1},'f':{'$first':'$_id'},"
		 "'l':{'$last':'$_id'},'p':{'$max':'$pad'}}},{'$project':{'p':0}},"
		 "{'$sort':{'_id':1}}]}"),
		("{'p':[{'$setWindowFields':{'partitionBy':'$b','sortBy':{'_id':1},'output':{"
		 "'s':{'$sum':'$a','window':{'documents':[-3,3]}}}}},{'$project':{'pad':0}}]}"),
		("{'p':[{'$densify':{'field':'a','partitionByFields':['b'],'range':{'step':50,"
		 "'bounds':'full'}}},{'$project':{'pad':0}}]}"),
		("{'p':[{'$bucketAuto':{'groupBy':'$a','buckets':7,'output':{'n':{'$sum':1},"
		 "'l':{'$last':'$_id'}}}}]}"),
		"{'p':[{'$facet':{'x':[{'$count':'n'}],'y':[{'$skip':2990},{'$unset':'pad'}]}}]}",
	};

	for (size_t i = 0; i < CASES(pipelines); i++) {
		struct buf whole = BUF_INIT(CASE_BYTES), parts = BUF_INIT(CASE_BYTES);
		struct arena *arena = arena_new(16 * CASE_BYTES);
		struct str docs = many_documents(arena, 3000);
		struct mql q = case_mql(arena);

		(void)state;
		assert_int_equal(run_documents(&q, pipelines[i], docs, RUN_DEFAULT, &whole),
				 STATUS_OK);
		if (run_documents(&q, pipelines[i], docs, RUN_SMALL, &parts) != STATUS_OK)
			fail_msg("%s: %s", pipelines[i], case_err.text);
		assert_true(str_eq(buf_str(&whole), buf_str(&parts)));
		buf_clear(&parts);
		assert_int_equal(run_documents(&q, pipelines[i], docs, RUN_NO_DISK, &parts),
				 STATUS_INVALID);
		assert_int_equal(q.code, MQL_NO_DISK_USE);
		buf_clear(&parts);
		assert_int_equal(run_documents(&q, pipelines[i], docs, RUN_NOWHERE, &parts),
				 STATUS_IO);
		assert_non_null(strstr(case_err.text, "/tmp/frond/none: No such file"));
		buf_release(&whole);
		buf_release(&parts);
		arena_free(arena);
	}
}

/*
 * Runs with each amount of memory up to what is enough: nothing is lost by too little, and a run
 * that fails has one of the codes of full memory, where `code` is the other one.
 */
static void
check_stage_memory(struct arena *arena, const char *pipeline, const char *documents, bool disk,
		   int code)
{
	struct str both = case_bson(
		arena, arena_printf(arena, "{'p':[%s],'d':[%s]}", pipeline, documents).ptr);
	struct bson_value stages = BSON_OF_ARRAY(BSON_EMPTY), docs = BSON_OF_ARRAY(BSON_EMPTY);
	struct mql_run_options options = { .store = &other_store,
					   .disk = disk,
					   .directory = "/tmp" };
	struct buf whole = BUF_INIT(CASE_BYTES), out = BUF_INIT(CASE_BYTES);
	struct mql q = case_mql(arena);
	enum status status;
	bool failed = false;

	assert_true(bson_find(both, STR("p"), &stages) && bson_find(both, STR("d"), &docs));
	assert_int_equal(
		run_stages_with(&q, bson_text(&stages), bson_text(&docs), &options, &whole),
		STATUS_OK);
	do {
		options.stage_bytes += 16 + options.stage_bytes / 32;
		buf_clear(&out);
		q.code = 0;
		status = run_stages_with(&q, bson_text(&stages), bson_text(&docs), &options, &out);
		if (status == STATUS_OK ? !str_eq(buf_str(&out), buf_str(&whole))
					: q.code != MQL_MEMORY_LIMIT && q.code != code)
			fail_msg("%s with %zu bytes: %s %d %s", pipeline, options.stage_bytes,
				 status_name(status), q.code, case_err.text);
		failed |= status != STATUS_OK;
	} while (status != STATUS_OK || options.stage_bytes < STAGE_BYTES);
	assert_true(failed);
	buf_release(&whole);
	buf_release(&out);
}

/* A file has room for documents of other groups only. */
static void
a_group_without_room_for_itself_fails(void **state)
{
	static const char group[] = "{'$group':{'_id':'$a','f':{'$first':'$b'},'l':{'$last':'$b'},"
				    "'n':{'$sum':1},'p':{'$push':'$b'}}},{'$sort':{'_id':1}}";
	struct arena *arena = *state;
	struct str id = arena_printf(arena, "'%0*d'", 2000, 0);
	const char *one = arena_printf(arena, "{'a':%.*s,'b':1},{'a':%.*s,'b':2}", STR_ARG(id),
				       STR_ARG(id))
				  .ptr;
	const char *several = arena_printf(arena, "%s,{'a':1,'b':3},{'a':2,'b':4},%s,{'a':1,'b':5}",
					   one, one)
				      .ptr;

	check_stage_memory(arena, group, "{'a':1,'b':1},{'a':1,'b':2}", false, 0);
	check_stage_memory(arena, group, one, false, 0);
	check_stage_memory(arena, group, one, true, 0);
	check_stage_memory(arena, group, several, true, 0);
	check_stage_memory(arena, group, several, false, MQL_NO_DISK_USE);
}

static void
stages_with_little_memory_lose_no_document(void **state)
{
	static const char *const pipelines[] = {
		"{'$sort':{'a':1,'_id':-1}}",
		"{'$sort':{'a':1,'_id':-1}},{'$limit':3}",
		("{'$setWindowFields':{'partitionBy':'$b','sortBy':{'_id':1},'output':{'s':{'$sum':"
		 "'$a','window':{'documents':[-3,3]}},'p':{'$push':'$a','window':{'documents':["
		 "'unbounded','current']}},'r':{'$rank':{}},'m':{'$min':'$a','window':{'documents':"
		 "[-2,2]}}}}}"),
		("{'$densify':{'field':'a','partitionByFields':['b'],'range':{'step':2,'bounds':"
		 "'full'}}}"),
		("{'$bucketAuto':{'groupBy':'$a','buckets':3,'output':{'n':{'$sum':1},'l':{'$last':"
		 "'$_id'},'p':{'$push':'$a'}}}}"),
	};
	static const char documents[] =
		"{'_id':1,'a':1,'b':1},{'_id':2,'a':7,'b':1},{'_id':3,'a':3,'b':2},"
		"{'_id':4,'a':4,'b':1},{'_id':5,'a':4,'b':2}";

	for (size_t i = 0; i < CASES(pipelines); i++) {
		check_stage_memory(*state, pipelines[i], documents, false, MQL_NO_DISK_USE);
		check_stage_memory(*state, pipelines[i], documents, true, MQL_NO_DISK_USE);
	}
}

/* With so little that a sort writes its documents to a file, in several runs. */
static enum status
stages_in_a_file(struct mql *q, const void *arg, struct buf *said)
{
	const struct mql_run_options options = {
		.store = &other_store, .disk = true, .directory = "/tmp", .stage_bytes = 512
	};
	const struct stages_run *run = arg;

	return run_stages_with(q, run->stages, run->documents, &options, said);
}

static void
a_sort_in_a_file_tells_that_memory_is_short(void **state)
{
	static const char documents[] = "{'p':[{'$sort':{'a':1}}],'d':[{'a':7},{'a':6},{'a':5},"
					"{'a':4},{'a':3},{'a':2},{'a':1}]}";
	struct str both = case_bson(*state, documents);
	struct bson_value stages, docs;
	struct stages_run run;

	assert_true(bson_find(both, STR("p"), &stages) && bson_find(both, STR("d"), &docs));
	run = (struct stages_run){ bson_text(&stages), bson_text(&docs) };
	case_memory(stages_in_a_file, &run, "a sort in a file");
}

static void
a_sort_with_a_limit_keeps_few_documents(void **state)
{
	struct buf out = BUF_INIT(CASE_BYTES);
	struct arena *arena = arena_new(4 * CASE_BYTES);
	struct mql q = case_mql(arena);

	(void)state;
	assert_int_equal(run_documents(&q,
				       "{'p':[{'$sort':{'_id':-1}},{'$project':{'_id':1}},"
				       "{'$limit':2}]}",
				       many_documents(arena, 3000), RUN_NO_DISK, &out),
			 STATUS_OK);
	assert_string_equal(case_json(arena, buf_str(&out)), "{'d':[{'_id':2999},{'_id':2998}]}");
	buf_release(&out);
	arena_free(arena);
}

/* A pipeline with `depth` pipelines inside each other. */
static const char *
nested(struct arena *arena, const char *begin, const char *end, int depth)
{
	struct buf text = BUF_INIT(CASE_BYTES);
	const char *ret;

	for (int i = 0; i < depth; i++)
		buf_append_cstr(&text, begin);
	buf_append_cstr(&text, "{'$limit':1}");
	for (int i = 0; i < depth; i++)
		buf_append_cstr(&text, end);
	ret = arena_printf(arena, "%.*s", STR_ARG(buf_str(&text))).ptr;
	buf_release(&text);
	return ret;
}

static void
pipelines_are_inside_each_other_up_to_their_limit(void **state)
{
	static const struct {
		const char *begin, *end;
	} cases[] = {
		{ "{'$unionWith':{'coll':'none','pipeline':[", "]}}" },
		{ "{'$lookup':{'from':'none','as':'r','pipeline':[", "]}}" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql fits = case_mql(*state);
		struct mql more = case_mql(*state);
		const char *text = run_text(
			&fits, nested(*state, cases[i].begin, cases[i].end, MQL_PIPELINE_NESTING),
			"{'_id':1}");

		assert_int_equal(fits.code, 0);
		assert_non_null(strstr(text, "'_id':1"));
		(void)run_text(
			&more,
			nested(*state, cases[i].begin, cases[i].end, MQL_PIPELINE_NESTING + 1),
			"{'_id':1}");
		assert_int_equal(more.code, 232);
	}
}

/* So many that each of its arrays is too long for some of the arenas that are tried. */
static void
a_group_of_many_fields_tells_that_memory_is_short(void **state)
{
	struct buf pipeline = BUF_INIT(CASE_BYTES);

	buf_append_cstr(&pipeline, "{'$group':{'_id':null");
	for (int i = 0; i < MANY_FIELDS; i++)
		buf_printf(&pipeline, ",'f%d':{'$sum':'$a'}", i);
	buf_append_cstr(&pipeline, "}}");
	check_memory(*state, arena_printf(*state, "%.*s", STR_ARG(buf_str(&pipeline))).ptr,
		     "{'a':1},{'a':2}");
	buf_release(&pipeline);
}

static void
filters_go_to_the_front(void **state)
{
	static const struct {
		const char *pipeline;
		const char *filter;
		const char *sort;
		int limit;
	} cases[] = {
		{ "{'p':[{'$match':{'a':1}},{'$match':{'b':1}}]}", "{'$and':[{'a':1},{'b':1}]}",
		  NULL, 0 },
		{ "{'p':[{'$sort':{'a':1}},{'$match':{'a':1}},{'$limit':3}]}", "{'a':1}", "{'a':1}",
		  3 },
		{ "{'p':[{'$set':{'b':1}},{'$match':{'a.x':1}}]}", "{'a.x':1}", NULL, 0 },
		{ "{'p':[{'$set':{'b':1}},{'$match':{'$and':[{'a':1}]}}]}", "{'$and':[{'a':1}]}",
		  NULL, 0 },
		{ "{'p':[{'$set':{'b':1}},{'$match':{'$nor':[{'a':1}]}}]}", "{'$nor':[{'a':1}]}",
		  NULL, 0 },
		{ "{'p':[{'$unwind':'$a'},{'$match':{'':1}}]}", "{'':1}", NULL, 0 },
		{ "{'p':[{'$set':{'b':1}},{'$match':{'$or':[{'a':1}]}}]}", "{'$or':[{'a':1}]}",
		  NULL, 0 },
		{ "{'p':[{'$set':{'b':1}},{'$match':{'$or':[{'a':1},{'b':1}]}}]}", "{}", NULL, 0 },
		{ "{'p':[{'$set':{'b':1}},{'$match':{'$and':[{'b':1}]}}]}", "{}", NULL, 0 },
		{ "{'p':[{'$set':{'a.y':1}},{'$match':{'a.x':1}}]}", "{}", NULL, 0 },
		{ "{'p':[{'$project':{'a':1}},{'$match':{'a':1}}]}", "{'a':1}", NULL, 0 },
		{ "{'p':[{'$project':{'b':1}},{'$match':{'a':1}}]}", "{}", NULL, 0 },
		{ "{'p':[{'$unwind':'$a'},{'$match':{'b':1}}]}", "{'b':1}", NULL, 0 },
		{ "{'p':[{'$unwind':'$a'},{'$match':{'$or':[{'b':1},{'a':1}]}}]}", "{}", NULL, 0 },
		{ "{'p':[{'$limit':5},{'$match':{'b':1}}]}", "{}", NULL, 5 },
		{ "{'p':[{'$match':{'$expr':{'$eq':['$a',1]}}}]}", "{}", NULL, 0 },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		const struct mql_pipeline_options options = { .scope = NULL };
		struct mql q = case_mql(*state);
		struct mql_pipeline_front front;
		struct bson_value stages;
		struct mql_pipeline *p;

		assert_true(bson_find(case_bson(*state, cases[i].pipeline), STR("p"), &stages));
		assert_int_equal(mql_pipeline_compile(&q, bson_text(&stages), &options, &p),
				 STATUS_OK);
		mql_pipeline_front(p, &front);
		assert_string_equal(case_json(*state, front.filter), cases[i].filter);
		assert_int_equal(front.limit, cases[i].limit);
		if (cases[i].sort)
			assert_string_equal(case_json(*state, front.sort), cases[i].sort);
		else
			assert_null(front.sort.ptr);
	}
}

static void
a_group_needs_some_members(void **state)
{
	static const struct {
		const char *group;
		size_t count; /* 0: it may need all */
		const char *names[3];
	} cases[] = {
		{ "{'p':[{'$group':{'_id':'$a.b','n':{'$sum':'$c'},'m':{'$max':'$a'}}}]}",
		  2,
		  { "a", "c" } },
		{ "{'p':[{'$group':{'_id':'$a','n':{'$sum':{'$add':['$b','$c']}}}}]}",
		  3,
		  { "a", "b", "c" } },
		{ "{'p':[{'$group':{'_id':'$a','n':{'$sum':{'$add':['$b','$c','$d']}}}}]}",
		  0,
		  { 0 } },
		{ "{'p':[{'$group':{'_id':'$$ROOT'}}]}", 0, { 0 } },
		{ "{'p':[{'$sort':{'a':1}}]}", 0, { 0 } },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		const struct mql_pipeline_options options = { .scope = NULL };
		struct mql q = case_mql(*state);
		struct bson_value stages;
		struct mql_pipeline *p;
		struct str names[3];
		size_t count;
		bool known;

		assert_true(bson_find(case_bson(*state, cases[i].group), STR("p"), &stages));
		assert_int_equal(mql_pipeline_compile(&q, bson_text(&stages), &options, &p),
				 STATUS_OK);
		known = mql_pipeline_needs(p, 0, names, CASES(names), &count);
		assert_int_equal(known, cases[i].count > 0);
		for (size_t n = 0; known && n < count; n++)
			assert_true(str_eq(names[n], str_from_cstr(cases[i].names[n])));
		if (known)
			assert_int_equal(count, cases[i].count);
	}
}

static void
variables_of_a_merge_are_compiled(void **state)
{
	const struct mql_pipeline_options options = { .scope = NULL };
	struct mql q = case_mql(*state);
	struct bson_value stages;
	struct mql_pipeline *p;

	assert_true(bson_find(case_bson(*state, "{'p':[{'$merge':{'into':'x','let':{'y':'$a'},"
						"'whenMatched':[{'$set':{'b':'$$y'}}]}}]}"),
			      STR("p"), &stages));
	assert_int_equal(mql_pipeline_compile(&q, bson_text(&stages), &options, &p), STATUS_OK);
	assert_non_null(mql_pipeline_write(p));
}

static void
a_pipeline_updates_a_document(void **state)
{
	const struct mql_pipeline_options options = { .update = true };
	struct mql q = case_mql(*state);
	struct bson_value stages;
	struct mql_pipeline *p;
	struct str ret;

	assert_true(bson_find(case_bson(*state, "{'p':[{'$set':{'b':'$a'}},{'$unset':'a'}]}"),
			      STR("p"), &stages));
	assert_int_equal(mql_pipeline_compile(&q, bson_text(&stages), &options, &p), STATUS_OK);
	assert_int_equal(
		mql_pipeline_apply(p, &q, case_bson(*state, "{'_id':1,'a':2}"), NULL, &ret),
		STATUS_OK);
	assert_string_equal(case_json(*state, ret), "{'_id':1,'b':2}");
	assert_true(
		bson_find(case_bson(*state, "{'p':[{'$group':{'_id':1}}]}"), STR("p"), &stages));
	assert_int_equal(mql_pipeline_compile(&q, bson_text(&stages), &options, &p),
			 STATUS_INVALID);
}

/* Takes documents until the arena of the state is full, and tells their result otherwise. */
static enum status
accumulate(struct arena *arena, const struct mql_accumulator *acc, struct str docs,
	   struct arena *keep, const char **ret)
{
	struct mql_accumulator_state *state = arena_alloc(arena, mql_accumulator_bytes());
	struct mql_env env = { .root = BSON_EMPTY, .current = MQL_NO_VALUE };
	struct mql q = case_mql(arena);
	struct buf out = BUF_INIT(CASE_BYTES);
	struct bson_builder b;
	struct bson_iter i;
	struct bson_element doc;

	TRY(mql_accumulator_begin(acc, &q, &env, keep, state));
	for (bson_iter_begin(&i, docs); bson_iter_read(&i, &doc);) {
		env.root = bson_text(&doc.value);
		TRY(mql_accumulator_add(acc, &q, &env, keep, state));
	}
	bson_builder_init(&b, &out);
	bson_begin(&b);
	assert_int_equal(mql_accumulator_put(acc, &q, state, STR("r"), &b), STATUS_OK);
	bson_end(&b);
	*ret = case_json(arena, buf_str(&out));
	buf_release(&out);
	return STATUS_OK;
}

static void
accumulators_with_little_memory_lose_no_document(void **state)
{
	static const char *const specs[] = {
		"{'$push':'$a'}",
		"{'$addToSet':'$a'}",
		"{'$concatArrays':'$l'}",
		"{'$setUnion':'$l'}",
		"{'$mergeObjects':'$d'}",
		"{'$min':'$a'}",
		"{'$max':'$a'}",
		"{'$first':'$a'}",
		"{'$last':'$a'}",
		"{'$firstN':{'input':'$a','n':20}}",
		"{'$lastN':{'input':'$a','n':20}}",
		"{'$minN':{'input':'$a','n':20}}",
		"{'$maxN':{'input':'$a','n':20}}",
		"{'$top':{'sortBy':{'a':1},'output':'$a'}}",
		"{'$topN':{'sortBy':{'a':1},'output':'$a','n':20}}",
		"{'$bottomN':{'sortBy':{'a':1},'output':'$a','n':20}}",
		"{'$median':{'input':'$n','method':'approximate'}}",
		"{'$percentile':{'input':'$n','p':[0.5,1],'method':'approximate'}}",
	};
	struct buf text = BUF_INIT(CASE_BYTES);
	struct str docs;

	buf_append_cstr(&text, "{");
	for (int i = 0; i < 20; i++)
		buf_printf(&text,
			   "%s'%d':{'a':'the text %d','n':%d,'l':['one %d','two'],'d':{'f%d':%d}}",
			   i ? "," : "", i, i * 7 % 20, i, i, i, i);
	buf_append(&text, "}", 2);
	docs = case_bson(*state, text.ptr);
	buf_release(&text);
	for (size_t n = 0; n < CASES(specs); n++) {
		struct bson_value spec = BSON_OF_DOCUMENT(case_bson(*state, specs[n]));
		struct arena *enough = arena_new(CASE_BYTES);
		struct mql q = case_mql(*state);
		const char *wanted = NULL, *got = NULL;
		struct mql_accumulator *acc;
		bool full = true;

		assert_int_equal(mql_accumulator_compile(&q, STR("r"), &spec, NULL, &acc),
				 STATUS_OK);
		assert_int_equal(accumulate(*state, acc, docs, enough, &wanted), STATUS_OK);
		for (size_t bytes = 0; full; bytes += 8 + bytes / 32) {
			struct arena *arena = arena_new(CASE_BYTES), *keep = arena_new(bytes);
			enum status status = accumulate(arena, acc, docs, keep, &got);

			full = arena_is_full(keep);
			if (status != (full ? STATUS_LIMIT : STATUS_OK))
				fail_msg("%s with %zu bytes: %s", specs[n], bytes,
					 status_name(status));
			if (!full)
				assert_string_equal(got, wanted);
			arena_free(keep);
			arena_free(arena);
		}
		arena_free(enough);
	}
}

/* Each of the allocations fails in turn, and those after it do not. */
static void
a_run_without_the_memory_for_one_stage_is_none(void **state)
{
	const struct mql_pipeline_options compile = { .scope = NULL };
	struct mql q = case_mql(*state);
	struct str text = case_bson(q.arena, "{'p':[{'$set':{'b':1}},{'$unset':'a'},{'$limit':9},"
					     "{'$sort':{'a':1}},{'$skip':1}],'d':[]}");
	struct bson_value stages, docs;
	enum status status = STATUS_NOMEM;
	struct mql_pipeline *p;

	assert_true(bson_find(text, STR("p"), &stages) && bson_find(text, STR("d"), &docs));
	assert_int_equal(mql_pipeline_compile(&q, bson_text(&stages), &compile, &p), STATUS_OK);
	for (uint64_t n = 1; status == STATUS_NOMEM; n++) {
		struct source source = { .source = { source_next, source_close } };
		const struct mql_run_options options = { .directory = "/tmp" };
		struct mql_run *run;
		uint64_t made;

		bson_iter_begin(&source.iter, bson_text(&docs));
		(void)mem_fail_only(n);
		status = mql_run_new(p, &q, &options, &source.source, &run);
		made = mem_fail_only(0);
		assert_int_equal(status, n <= made ? STATUS_NOMEM : STATUS_OK);
		if (status == STATUS_OK)
			mql_run_free(run);
		assert_true(source.closed);
	}
}

/* A store that counts what it is given to write. */
struct counting {
	struct mql_store store;
	size_t calls;
	size_t documents;
	struct str collection;
};

static enum status
counting_write(const struct mql_store *store, struct mql *q, const struct mql_write *w,
	       struct mql_source *from)
{
	struct counting *c = (struct counting *)(void *)(uintptr_t)store;
	enum status status;
	struct str doc;

	(void)q;
	c->calls++;
	c->collection = w->collection;
	while ((status = from->next(from, &doc)) == STATUS_OK)
		c->documents++;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Runs a pipeline until it ends, and asks once more. `c` NULL: there is no store. */
static enum status
run_writing(struct mql *q, const char *pipeline, struct counting *c)
{
	const struct mql_run_options options = { .store = c ? &c->store : NULL };
	const struct mql_pipeline_options compile = { .scope = NULL };
	struct source source = { .source = { source_next, source_close } };
	struct bson_value stages, docs;
	struct mql_pipeline *p;
	struct mql_run *run;
	enum status status;
	struct str doc;

	assert_true(bson_find(case_bson(q->arena, pipeline), STR("p"), &stages));
	assert_true(
		bson_find(case_bson(q->arena, "{'d':[{'a':1},{'a':2},{'a':3}]}"), STR("d"), &docs));
	bson_iter_begin(&source.iter, bson_text(&docs));
	assert_int_equal(mql_pipeline_compile(q, bson_text(&stages), &compile, &p), STATUS_OK);
	assert_int_equal(mql_run_new(p, q, &options, &source.source, &run), STATUS_OK);
	status = mql_run_next(run, q, &doc);
	if (status == STATUS_NOT_FOUND)
		assert_int_equal(mql_run_next(run, q, &doc), STATUS_NOT_FOUND);
	mql_run_free(run);
	return status;
}

static void
what_a_pipeline_makes_is_written_once(void **state)
{
	static const char *const pipelines[] = {
		"{'p':[{'$match':{'a':{'$gt':1}}},{'$out':'x'}]}",
		"{'p':[{'$match':{'a':{'$gt':1}}},{'$merge':'x'}]}",
	};

	for (size_t i = 0; i < CASES(pipelines); i++) {
		struct counting c = { .store = { .write = counting_write } };
		struct mql q = case_mql(*state);

		assert_int_equal(run_writing(&q, pipelines[i], &c), STATUS_NOT_FOUND);
		assert_int_equal(c.calls, 1);
		assert_int_equal(c.documents, 2);
		assert_true(str_eq(c.collection, STR("x")));
	}
}

static void
stages_of_other_collections_need_a_store(void **state)
{
	static const char *const pipelines[] = {
		"{'p':[{'$out':'x'}]}",
		"{'p':[{'$merge':'x'}]}",
		"{'p':[{'$lookup':{'from':'x','localField':'a','foreignField':'b','as':'c'}}]}",
		"{'p':[{'$unionWith':'x'},{'$match':{'a':4}}]}",
	};

	for (size_t i = 0; i < CASES(pipelines); i++) {
		struct mql q = case_mql(*state);

		if (run_writing(&q, pipelines[i], NULL) != STATUS_INVALID ||
		    q.code != MQL_BAD_VALUE)
			fail_msg("%s: %d %s", pipelines[i], q.code, case_err.text);
	}
}

/* So many, each once, and any of them. */
static void
a_sample_has_each_document_once_at_most(void **state)
{
	static const char pipeline[] =
		"{'$sample':{'size':3}},{'$group':{'_id':null,'n':{'$sum':1},'s':{'$addToSet':"
		"'$a'}}},{'$set':{'d':{'$size':'$s'}}},{'$unwind':'$s'},{'$project':{'_id':0}}";
	bool seen[8] = { false };

	for (int i = 0; i < 200; i++) {
		struct arena *arena = arena_new(CASE_BYTES);
		struct mql q = case_mql(arena);
		const char *text = run_text(&q, pipeline,
					    "{'a':0},{'a':1},{'a':2},{'a':3},{'a':4},{'a':5},"
					    "{'a':6},{'a':7}");

		for (int k = 0; k < 3; k++) {
			const char *at = strstr(text, "{'n':3,'s':");

			assert_non_null(at);
			at += strlen("{'n':3,'s':");
			assert_in_range(*at, '0', '7');
			seen[*at - '0'] = true;
			assert_true(!strncmp(at + 1, ",'d':3}", 7));
			text = at;
		}
		arena_free(arena);
	}
	for (size_t i = 0; i < 8; i++)
		assert_true(seen[i]);
	(void)state;
}

/* A store that notes which filter it is asked with, and has nothing. */
struct noting {
	struct mql_store store;
	struct arena *arena;
	const char *filter;
};

static enum status
noting_open(const struct mql_store *store, struct mql *q, struct str db, struct str collection,
	    struct str filter, struct mql_source **ret)
{
	struct noting *n = (struct noting *)(void *)(uintptr_t)store;

	n->filter = case_json(n->arena, filter);
	return other_open(store, q, db, collection, filter, ret);
}

static void
other_collections_are_asked_for_what_is_wanted(void **state)
{
	static const struct {
		const char *pipeline, *filter;
	} cases[] = {
		{ "{'p':[{'$unionWith':'o'}]}", "{}" },
		{ "{'p':[{'$unionWith':{'coll':'o','pipeline':[{'$match':{'v':1}}]}}]}",
		  "{'v':1}" },
		{ "{'p':[{'$lookup':{'from':'o','localField':'a','foreignField':'k','as':'r'}}]}",
		  "{'k':{'$eq':1}}" },
		{ "{'p':[{'$lookup':{'from':'o','as':'r','pipeline':[{'$match':{'v':1}}]}}]}",
		  "{'v':1}" },
		{ "{'p':[{'$lookup':{'from':'o','localField':'a','foreignField':'k','as':'r',"
		  "'pipeline':[{'$match':{'v':1}}]}}]}",
		  "{'$and':[{'k':{'$eq':1}},{'v':1}]}" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct noting n = { .store = { .open = noting_open }, .arena = *state };
		const struct mql_run_options options = { .store = &n.store };
		struct str both = case_bson(*state, "{'d':[{'a':1}]}");
		struct buf out = BUF_INIT(CASE_BYTES);
		struct mql q = case_mql(*state);
		struct bson_value stages, docs;

		assert_true(bson_find(case_bson(*state, cases[i].pipeline), STR("p"), &stages));
		assert_true(bson_find(both, STR("d"), &docs));
		assert_int_equal(
			run_stages_with(&q, bson_text(&stages), bson_text(&docs), &options, &out),
			STATUS_OK);
		assert_non_null(n.filter);
		assert_string_equal(n.filter, cases[i].filter);
		buf_release(&out);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(documents_are_chosen_and_changed_one_by_one,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(documents_are_sorted_and_grouped, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(buckets_have_about_the_same_size, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(windows_are_computed_by_partition, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(
			windows_of_a_range_end_in_front_of_all_rows_or_behind_them, case_setup,
			case_teardown),
		cmocka_unit_test_setup_teardown(missing_values_are_filled, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(gaps_between_values_are_closed, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(other_collections_are_read, case_setup,
						case_teardown),
		cmocka_unit_test(stages_whose_memory_is_full_use_a_file),
		cmocka_unit_test_setup_teardown(a_group_without_room_for_itself_fails, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(stages_with_little_memory_lose_no_document,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(a_sort_in_a_file_tells_that_memory_is_short,
						case_setup, case_teardown),
		cmocka_unit_test(a_sample_has_each_document_once_at_most),
		cmocka_unit_test_setup_teardown(other_collections_are_asked_for_what_is_wanted,
						case_setup, case_teardown),
		cmocka_unit_test(a_sort_with_a_limit_keeps_few_documents),
		cmocka_unit_test_setup_teardown(pipelines_are_inside_each_other_up_to_their_limit,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(filters_go_to_the_front, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(a_group_of_many_fields_tells_that_memory_is_short,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(a_group_needs_some_members, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(variables_of_a_merge_are_compiled, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(a_pipeline_updates_a_document, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(accumulators_with_little_memory_lose_no_document,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(what_a_pipeline_makes_is_written_once, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(stages_of_other_collections_need_a_store,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(a_run_without_the_memory_for_one_stage_is_none,
						case_setup, case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
