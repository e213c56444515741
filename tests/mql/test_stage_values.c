/* What stages give at the edges of their windows, bounds and limits, and of values of all types. */
#include "stages_case.h"

static void
documents_are_unwound_and_redacted(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$unwind':{'path':'$a.b','includeArrayIndex':'a.i'}}",
		  "{'a':{'b':[7,8],'c':1}}",
		  "{'a':{'b':7,'c':1,'i':0}},{'a':{'b':8,'c':1,'i':1}}" },
		{ "{'$unwind':{'path':'$a','includeArrayIndex':'x.i'}}",
		  "{'a':[7],'x':3},{'a':[8],'x':{'y':1}}",
		  "{'a':7,'x':{'i':0}},{'a':8,'x':{'y':1,'i':0}}" },
		{ "{'$unwind':{'path':'$a','includeArrayIndex':'i','preserveNullAndEmptyArrays'"
		  ":true}}",
		  "{'a':[]},{'a':null},{},{'a':5}",
		  "{'i':null},{'a':null,'i':null},{'i':null},{'a':5,'i':null}" },
		{ "{'$unwind':'$a.b'}",
		  "{'a':[{'b':[1]}]},{'a':{'b':{'$undefined':true}}},{'a':{'b':[[1,2],null]}}",
		  "{'a':{'b':[1,2]}},{'a':{'b':null}}" },
		{ "{'$unwind':'$a'},{'$unwind':'$a'}", "{'a':[[1,2],[3]]}",
		  "{'a':1},{'a':2},{'a':3}" },
		{ "{'$redact':{'$cond':[{'$eq':['$x',1]},'$$KEEP','$$DESCEND']}}",
		  "{'x':1,'a':{'x':0}},{'a':{'x':1,'b':2},'c':[{'x':1,'d':{'e':1}},[{'x':1}]]}",
		  "{'x':1,'a':{'x':0}},{'a':{'x':1,'b':2},'c':[{'x':1,'d':{'e':1}},[{'x':1}]]}" },
		{ "{'$redact':{'$cond':[{'$eq':['$x',1]},'$$PRUNE','$$DESCEND']}}",
		  "{'a':[[{'x':1},{'x':2}]]},{'x':1},{'b':1}", "{'a':[[{'x':2}]]},{'b':1}" },
		{ "{'$skip':1},{'$skip':1}", "{'a':1},{'a':2},{'a':3}", "{'a':3}" },
		{ "{'$limit':1},{'$limit':2}", "{'a':1},{'a':2}", "{'a':1}" },
		{ "{'$sample':{'size':3}},{'$sort':{'a':1}}", "{'a':1},{'a':3},{'a':2}",
		  "{'a':1},{'a':2},{'a':3}" },
		{ "{'$sample':{'size':1}}", "{'a':1}", "{'a':1}" },
		{ "{'$skip':9}", "{'a':1}", "" },
		{ "{'$documents':[]}", "", "" },
		{ "{'$replaceRoot':{'newRoot':{'$mergeObjects':['$a',{'z':1}]}}}",
		  "{'a':{'b':1}},{'a':{'z':0}}", "{'b':1,'z':1},{'z':1}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

static void
accumulators_take_values_of_all_types(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$group':{'_id':0,'f':{'$first':'$a'},'l':{'$last':'$a'},'m':{'$min':'$a'},"
		  "'n':{'$max':'$a'},'p':{'$push':'$a'},'s':{'$addToSet':'$a'}}}",
		  "{'a':{'$regularExpression':{'pattern':'ab','options':'i'}}},{'a':{'$regularE"
		  "xpression':{'pattern':'abc','options':'im'}}},{'a':{'$regularExpression':{'p"
		  "attern':'ab','options':'i'}}}",
		  "{'_id':0,'f':{'$regularExpression':{'pattern':'ab','options':'i'}},'l':{'$re"
		  "gularExpression':{'pattern':'ab','options':'i'}},'m':{'$regularExpression':{"
		  "'pattern':'ab','options':'i'}},'n':{'$regularExpression':{'pattern':'abc','o"
		  "ptions':'im'}},'p':[{'$regularExpression':{'pattern':'ab','options':'i'}},{'"
		  "$regularExpression':{'pattern':'abc','options':'im'}},{'$regularExpression':"
		  "{'pattern':'ab','options':'i'}}],'s':[{'$regularExpression':{'pattern':'ab',"
		  "'options':'i'}},{'$regularExpression':{'pattern':'abc','options':'im'}}]}" },
		{ "{'$group':{'_id':0,'f':{'$first':'$a'},'l':{'$last':'$a'},'p':{'$push':'$a'}"
		  "}}",
		  "{'a':{'$dbPointer':{'$ref':'c','$id':{'$oid':'0123456789abcdef01234567'}}}},"
		  "{'a':{'$code':'f()','$scope':{'x':1}}},{'a':{'$code':'g()','$scope':{'yy':22"
		  "}}}",
		  "{'_id':0,'f':{'$dbPointer':{'$ref':'c','$id':{'$oid':'0123456789abcdef012345"
		  "67'}}},'l':{'$code':'g()','$scope':{'yy':22}},'p':[{'$dbPointer':{'$ref':'c'"
		  ",'$id':{'$oid':'0123456789abcdef01234567'}}},{'$code':'f()','$scope':{'x':1}"
		  "},{'$code':'g()','$scope':{'yy':22}}]}" },
		{ "{'$group':{'_id':0,'f':{'$first':'$a'},'l':{'$last':'$a'},'p':{'$push':'$a'}"
		  "}}",
		  "{'a':{'$code':'f()'}},{'a':{'$symbol':'s'}},{'a':{'$timestamp':{'t':1,'i':2}"
		  "}},{'a':{'$binary':{'base64':'AAE=','subType':'05'}}},{'a':{'$minKey':1}}",
		  "{'_id':0,'f':{'$code':'f()'},'l':{'$minKey':1},'p':[{'$code':'f()'},{'$symbo"
		  "l':'s'},{'$timestamp':{'t':1,'i':2}},{'$binary':{'base64':'AAE=','subType':'"
		  "05'}},{'$minKey':1}]}" },
		{ "{'$group':{'_id':0,'f':{'$first':'$a'},'l':{'$last':'$a'},'m':{'$min':'$a'},"
		  "'n':{'$max':'$a'},'p':{'$push':'$a'},'s':{'$addToSet':'$a'},'t':{'$sum':'$a'"
		  "},'v':{'$avg':'$a'}}}",
		  "{},{'a':null},{'a':'x'},{}",
		  "{'_id':0,'f':null,'l':null,'m':'x','n':'x','p':[null,'x'],'s':[null,'x'],'t'"
		  ":0,'v':null}" },
		{ "{'$group':{'_id':0,'l':{'$last':'$a'},'n':{'$max':'$a'},'m':{'$min':'$a'}}}",
		  "{'a':'a longer text'},{'a':'z'},{'a':'zz'},{'a':''}",
		  "{'_id':0,'l':'','n':'zz','m':''}" },
		{ "{'$group':{'_id':0,'m':{'$min':'$a'},'n':{'$max':'$a'}}}",
		  "{'a':1},{'a':1.0},{'a':null}", "{'_id':0,'m':1,'n':1}" },
		{ "{'$group':{'_id':0,'a':{'$minN':{'input':'$a','n':2}},'b':{'$maxN':{'input':"
		  "'$a','n':2}},'c':{'$firstN':{'input':'$a','n':2}},'d':{'$lastN':{'input':'$a"
		  "','n':2}}}}",
		  "{},{'a':null},{'a':3},{'a':1},{'a':2}",
		  "{'_id':0,'a':[1,2],'b':[3,2],'c':[null,null],'d':[1,2]}" },
		{ "{'$group':{'_id':0,'a':{'$minN':{'input':'$a','n':9}},'b':{'$lastN':{'input'"
		  ":'$a','n':9}}}}",
		  "{'a':2},{'a':1}", "{'_id':0,'a':[1,2],'b':[2,1]}" },
		{ "{'$group':{'_id':0,'a':{'$top':{'sortBy':{'a':1,'b':-1},'output':'$c'}},'b':"
		  "{'$bottom':{'sortBy':{'a':1,'b':-1},'output':'$c'}},'t':{'$topN':{'n':2,'sor"
		  "tBy':{'a':-1},'output':'$c'}},'u':{'$bottomN':{'n':2,'sortBy':{'a':-1},'outp"
		  "ut':'$c'}}}}",
		  "{'a':1,'b':1,'c':1},{'a':1,'b':2,'c':2},{'a':2,'b':1,'c':3},{'a':2,'b':1,'c'"
		  ":4},{'a':1,'b':1}",
		  "{'_id':0,'a':2,'b':4,'t':[3,4],'u':[2,null]}" },
		{ "{'$group':{'_id':0,'p':{'$stdDevPop':'$a'},'s':{'$stdDevSamp':'$a'}}}",
		  "{'a':5},{'a':'x'},{}", "{'_id':0,'p':0.0,'s':null}" },
		{ "{'$group':{'_id':0,'p':{'$stdDevPop':'$a'},'s':{'$stdDevSamp':'$a'}}}", "{}",
		  "{'_id':0,'p':null,'s':null}" },
		{ "{'$group':{'_id':0,'m':{'$median':{'input':'$a','method':'approximate'}},'p'"
		  ":{'$percentile':{'input':'$a','p':[0,0.25,0.26,0.5,0.75,0.99,1],'method':'ap"
		  "proximate'}}}}",
		  "{'a':4},{'a':{'$numberDouble':'NaN'}},{'a':2},{'a':'x'},{'a':1},{'a':3},{}",
		  "{'_id':0,'m':2.0,'p':[1.0,1.0,2.0,2.0,3.0,4.0,4.0]}" },
		{ "{'$group':{'_id':0,'m':{'$median':{'input':'$a','method':'approximate'}},'p'"
		  ":{'$percentile':{'input':'$a','p':[0.5],'method':'approximate'}}}}",
		  "{}", "{'_id':0,'m':null,'p':[null]}" },
		{ "{'$group':{'_id':0,'m':{'$mergeObjects':'$a'}}}",
		  "{'a':{'x':1,'y':1}},{},{'a':null},{'a':{'y':2,'z':3}}",
		  "{'_id':0,'m':{'x':1,'y':2,'z':3}}" },
		{ "{'$group':{'_id':0,'c':{'$concatArrays':'$a'},'u':{'$setUnion':'$a'}}}",
		  "{'a':[1]},{},{'a':[1,2]}", "{'_id':0,'c':[1,1,2],'u':[1,2]}" },
		{ "{'$group':{'_id':{'$mod':['$a',3]},'n':{'$sum':'$a'}}}",
		  "{'a':1},{'a':4},{'a':2},{'a':-1},{'a':3}",
		  "{'_id':1,'n':5},{'_id':2,'n':2},{'_id':-1,'n':-1},{'_id':0,'n':3}" },
		{ "{'$group':{'_id':'$a','n':{'$count':{}}}}",
		  "{'a':[1]},{'a':{'b':1}},{'a':[1]},{'a':{'b':1.0}},{'a':1.5},{'a':1.5},{'a':{"
		  "'$numberDecimal':'1.5'}}",
		  "{'_id':[1],'n':2},{'_id':{'b':1},'n':2},{'_id':1.5,'n':3}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

/* Powers of two are of the least type that has them. */
static void
powers_of_two_have_the_type_of_their_size(void **state)
{
#define POWERS                                                                                     \
	"{'$bucketAuto':{'groupBy':'$a','buckets':1,'granularity':'POWERSOF2'}},{'$project':{"     \
	"'_id':0,'min':'$_id.min','max':'$_id.max','types':[{'$type':'$_id.min'},"                 \
	"{'$type':'$_id.max'}]}}"
	static const struct stage_case cases[] = {
		{ POWERS, "{'a':0.3}", "{'min':0.25,'max':0.5,'types':['double','double']}" },
		{ POWERS, "{'a':0.7}", "{'min':0.5,'max':1,'types':['double','int']}" },
		{ POWERS, "{'a':1073741823}",
		  "{'min':536870912,'max':1073741824,'types':['int','int']}" },
		{ POWERS, "{'a':1073741825}",
		  "{'min':1073741824,'max':2147483648,'types':['int','long']}" },
		{ POWERS, "{'a':{'$numberLong':'3458764513820540928'}}",
		  "{'min':2305843009213693952,'max':4611686018427387904,'types':['long','long']}" },
		{ POWERS, "{'a':{'$numberLong':'6917529027641081856'}}",
		  "{'min':4611686018427387904,'max':9223372036854776000.0,'types':['long',"
		  "'double']}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

static void
buckets_end_where_their_bounds_are(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$bucket':{'groupBy':'$a','boundaries':[0,5,10],'default':10}}",
		  "{'a':0},{'a':5},{'a':10},{'a':4.9},{'a':-1},{}",
		  "{'_id':0,'count':2},{'_id':5,'count':1},{'_id':10,'count':3}" },
		{ "{'$bucket':{'groupBy':{'$add':['$a',1]},'boundaries':[0,5],'default':'z','ou"
		  "tput':{'l':{'$push':'$a'}}}}",
		  "{'a':-1},{'a':3},{'a':4}", "{'_id':0,'l':[-1,3]},{'_id':'z','l':[4]}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':2,'granularity':'R5'}}",
		  "{'a':1},{'a':1.6},{'a':2},{'a':2.5}",
		  "{'_id':{'min':0.63,'max':2.5},'count':3},{'_id':{'min':2.5,'max':4.0},'count"
		  "':1}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':2,'granularity':'1-2-5'}}",
		  "{'a':10},{'a':19},{'a':20},{'a':50}",
		  "{'_id':{'min':5.0,'max':20.0},'count':2},{'_id':{'min':20.0,'max':100.0},'co"
		  "unt':2}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':2,'granularity':'POWERSOF2'}}",
		  "{'a':1},{'a':2},{'a':4},{'a':8}",
		  "{'_id':{'min':0.5,'max':4},'count':2},{'_id':{'min':4,'max':16},'count':2}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1,'granularity':'POWERSOF2'}}",
		  "{'a':1},{'a':1073741824}", "{'_id':{'min':0.5,'max':2147483648},'count':2}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1,'granularity':'POWERSOF2'}}",
		  "{'a':3},{'a':{'$numberLong':'4611686018427387904'}}",
		  "{'_id':{'min':2,'max':9223372036854776000.0},'count':2}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1,'granularity':'POWERSOF2'}}",
		  "{'a':0.3},{'a':{'$numberDouble':'Infinity'}}",
		  "{'_id':{'min':0.25,'max':{'$numberDouble':'Infinity'}},'count':2}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1,'granularity':'POWERSOF2'}}",
		  "{'a':{'$numberDecimal':'0.3'}},{'a':{'$numberDecimal':'5'}}",
		  "{'_id':{'min':{'$numberDecimal':'0.25'},'max':{'$numberDecimal':'8'}},'count"
		  "':2}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1,'granularity':'E6'}}",
		  "{'a':0.1},{'a':1000}", "{'_id':{'min':0.068,'max':1500.0},'count':2}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':1,'granularity':'R5'}}",
		  "{'a':0},{'a':0}", "{'_id':{'min':0,'max':0},'count':2}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':2}}", "{'a':1},{'a':1},{'a':1},{'a':2}",
		  "{'_id':{'min':1,'max':2},'count':3},{'_id':{'min':2,'max':2},'count':1}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':3}}",
		  "{'a':1},{'a':2},{'a':3},{'a':4},{'a':5},{'a':6},{'a':7}",
		  "{'_id':{'min':1,'max':3},'count':2},{'_id':{'min':3,'max':5},'count':2},{'_i"
		  "d':{'min':5,'max':7},'count':3}" },
		{ "{'$bucketAuto':{'groupBy':'$a','buckets':4}}",
		  "{'a':1},{'a':2},{'a':3},{'a':4},{'a':5},{'a':6}",
		  "{'_id':{'min':1,'max':3},'count':2},{'_id':{'min':3,'max':5},'count':2},{'_i"
		  "d':{'min':5,'max':6},'count':2}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

static void
windows_begin_and_end_between_documents(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'d':{'$derivative':{'input':"
		  "'$v'},'window':{'documents':[-1,0]}}}}}",
		  "{'t':1,'v':1},{'t':1,'v':5},{'t':2},{'t':4,'v':9},{'t':6,'v':5}",
		  "{'t':1,'v':1,'d':null},{'t':1,'v':5,'d':null},{'t':2,'d':null},{'t':4,'v':9,"
		  "'d':null},{'t':6,'v':5,'d':-2.0}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'d':{'$derivative':{'input':"
		  "'$v'},'window':{'documents':[1,2]}},'i':{'$integral':{'input':'$v'},'window'"
		  ":{'documents':[1,2]}}}}}",
		  "{'t':1,'v':1},{'t':2,'v':5},{'t':4,'v':6}",
		  "{'t':1,'v':1,'d':0.5,'i':11.0},{'t':2,'v':5,'d':null,'i':0.0},{'t':4,'v':6,'"
		  "d':null,'i':null}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'d':{'$derivative':{'input':"
		  "'$v','unit':'second'},'window':{'range':[-1,0],'unit':'second'}}}}},{'$unset"
		  "':'t'}",
		  "{'t':{'$date':0},'v':1},{'t':{'$date':500},'v':2},{'t':{'$date':1500},'v':4}",
		  "{'v':1,'d':null},{'v':2,'d':2.0},{'v':4,'d':2.0}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'s':{'$sum':'$v','window':{'"
		  "documents':[-1,1]}},'m':{'$max':'$v','window':{'documents':['current','unbou"
		  "nded']}},'i':{'$integral':{'input':'$v'},'window':{'documents':[-1,1]}}}}}",
		  "{'t':1,'v':1},{'t':2,'v':9},{'t':3,'v':2},{'t':4,'v':5}",
		  "{'t':1,'v':1,'s':10,'m':9,'i':5.0},{'t':2,'v':9,'s':12,'m':9,'i':10.5},{'t':"
		  "3,'v':2,'s':16,'m':5,'i':9.0},{'t':4,'v':5,'s':7,'m':5,'i':3.5}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'s':{'$push':'$v','window':{"
		  "'documents':['unbounded',-2]}},'m':{'$push':'$v','window':{'documents':[-2,-"
		  "1]}},'o':{'$push':'$v','window':{'documents':[5,6]}}}}}",
		  "{'t':1,'v':1},{'t':2,'v':9},{'t':3,'v':2}",
		  "{'t':1,'v':1,'s':[],'m':[],'o':[]},{'t':2,'v':9,'s':[],'m':[1],'o':[]},{'t':"
		  "3,'v':2,'s':[1],'m':[1,9],'o':[]}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'s':{'$push':'$t','window':{"
		  "'range':[-1,1]}},'m':{'$push':'$t','window':{'range':['unbounded',{'$numberD"
		  "ecimal':'0.5'}]}}}}}",
		  "{'t':1},{'t':1.5},{'t':{'$numberDecimal':'2.5'}},{'t':{'$numberLong':'3'}}",
		  "{'t':1,'s':[1,1.5],'m':[1,1.5]},{'t':1.5,'s':[1,1.5,{'$numberDecimal':'2.5'}"
		  "],'m':[1,1.5]},{'t':{'$numberDecimal':'2.5'},'s':[1.5,{'$numberDecimal':'2.5"
		  "'},3],'m':[1,1.5,{'$numberDecimal':'2.5'},3]},{'t':3,'s':[{'$numberDecimal':"
		  "'2.5'},3],'m':[1,1.5,{'$numberDecimal':'2.5'},3]}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'c':{'$covariancePop':['$x',"
		  "'$y']},'s':{'$covarianceSamp':['$x','$y'],'window':{'documents':['unbounded'"
		  ",'current']}}}}}",
		  "{'t':1,'x':1,'y':2},{'t':2,'x':{'$numberDecimal':'2'},'y':5},{'t':3,'x':3,'y"
		  "':'z'},{'t':4,'x':4,'y':{'$numberDecimal':'8'}}",
		  "{'t':1,'x':1,'y':2,'c':{'$numberDecimal':'3.0000000000000000000000000000'},'"
		  "s':null},{'t':2,'x':{'$numberDecimal':'2'},'y':5,'c':{'$numberDecimal':'3.00"
		  "00000000000000000000000000'},'s':{'$numberDecimal':'1.5000000000000000000000"
		  "000000'}},{'t':3,'x':3,'y':'z','c':{'$numberDecimal':'3.00000000000000000000"
		  "00000000'},'s':{'$numberDecimal':'1.5000000000000000000000000000'}},{'t':4,'"
		  "x':4,'y':{'$numberDecimal':'8'},'c':{'$numberDecimal':'3.0000000000000000000"
		  "000000000'},'s':{'$numberDecimal':'4.5000000000000000000000000000'}}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'e':{'$expMovingAvg':{'input"
		  "':'$v','alpha':0.5}}}}}",
		  "{'t':1},{'t':2,'v':4},{'t':3,'v':'x'},{'t':4,'v':8},{'t':5,'v':{'$numberDeci"
		  "mal':'2'}},{'t':6,'v':2}",
		  "{'t':1,'e':null},{'t':2,'v':4,'e':4.0},{'t':3,'v':'x','e':null},{'t':4,'v':8"
		  ",'e':6.0},{'t':5,'v':{'$numberDecimal':'2'},'e':{'$numberDecimal':'4.0000000"
		  "0000000000000000000000'}},{'t':6,'v':2,'e':{'$numberDecimal':'3.000000000000"
		  "000000000000000000000'}}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'e':{'$expMovingAvg':{'input"
		  "':'$v','alpha':{'$numberDecimal':'0.5'}}}}}}",
		  "{'t':1,'v':4},{'t':2,'v':8}",
		  "{'t':1,'v':4,'e':4.0},{'t':2,'v':8,'e':{'$numberDecimal':'6.000000000000000'"
		  "}}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'e':{'$expMovingAvg':{'input"
		  "':'$v','N':1}}}}}",
		  "{'t':1,'v':4},{'t':2,'v':8}", "{'t':1,'v':4,'e':4.0},{'t':2,'v':8,'e':8.0}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'l':{'$linearFill':'$v'}}}}",
		  "{'t':{'$date':0}},{'t':{'$date':1},'v':2},{'t':{'$date':3}},{'t':{'$date':5}"
		  ",'v':{'$numberDecimal':'4'}},{'t':{'$date':7}}",
		  "{'t':{'$date':'1970-01-01T00:00:00Z'},'l':null},{'t':{'$date':'1970-01-01T00"
		  ":00:00.001Z'},'v':2,'l':2},{'t':{'$date':'1970-01-01T00:00:00.003Z'},'l':{'$"
		  "numberDecimal':'3.0'}},{'t':{'$date':'1970-01-01T00:00:00.005Z'},'v':{'$numb"
		  "erDecimal':'4'},'l':{'$numberDecimal':'4'}},{'t':{'$date':'1970-01-01T00:00:"
		  "00.007Z'},'l':null}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'l':{'$linearFill':'$v'}}}}",
		  "{'t':1,'v':1},{'t':{'$numberDecimal':'2'}},{'t':3,'v':3},{'t':4},{'t':5},{'t"
		  "':6,'v':6}",
		  "{'t':1,'v':1,'l':1},{'t':{'$numberDecimal':'2'},'l':{'$numberDecimal':'2'}},"
		  "{'t':3,'v':3,'l':3},{'t':4,'l':4.0},{'t':5,'l':5.0},{'t':6,'v':6,'l':6}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'l':{'$linearFill':'$v'}}}}",
		  "{'t':1,'v':1},{'t':2},{'t':3,'v':'x'}",
		  "14 Value to be filled must be numeric or null" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'l':{'$linearFill':'$v'}}}}",
		  "{'t':'a','v':1},{'t':'b'},{'t':'c','v':3}",
		  "14 $linearFill requires sortBy values to be numeric or dates, but found stri"
		  "ng" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'l':{'$locf':'$v'},'s':{'$sh"
		  "ift':{'output':'$v','by':1}},'z':{'$shift':{'output':'$v','by':0}}}}}",
		  "{'t':1},{'t':2,'v':1},{'t':3,'v':null},{'t':4,'v':2}",
		  "{'t':1,'l':null,'s':1},{'t':2,'v':1,'l':1,'s':null,'z':1},{'t':3,'v':null,'l"
		  "':1,'s':2,'z':null},{'t':4,'v':2,'l':2,'s':null,'z':2}" },
		{ "{'$setWindowFields':{'partitionBy':'$p','sortBy':{'t':1},'output':{'l':{'$lo"
		  "cf':'$v'},'r':{'$rank':{}},'d':{'$denseRank':{}},'n':{'$documentNumber':{}},"
		  "'s':{'$sum':'$v','window':{'documents':['unbounded','current']}}}}}",
		  "{'p':1,'t':1,'v':1},{'p':1,'t':1,'v':2},{'p':1,'t':2,'v':3},{'p':2,'t':1},{'"
		  "p':2,'t':1,'v':4}",
		  "{'p':1,'t':1,'v':1,'l':1,'r':1,'d':1,'n':1,'s':1},{'p':1,'t':1,'v':2,'l':2,'"
		  "r':1,'d':1,'n':2,'s':3},{'p':1,'t':2,'v':3,'l':3,'r':3,'d':2,'n':3,'s':6},{'"
		  "p':2,'t':1,'l':null,'r':1,'d':1,'n':1,'s':0},{'p':2,'t':1,'v':4,'l':4,'r':1,"
		  "'d':1,'n':2,'s':4}" },
		{ "{'$setWindowFields':{'sortBy':{'a':1},'output':{'a':{'$sum':'$a'},'b.c':{'$f"
		  "irst':'$a'}}}}",
		  "{'a':1,'b':{'d':1}},{'a':2}", "{'a':3,'b':{'d':1,'c':1}},{'a':3,'b':{'c':1}}" },
		{ "{'$setWindowFields':{'sortBy':{'t':1},'output':{'n':{'$count':{},'window':{'"
		  "range':[-1,1],'unit':'day'}}}}},{'$unset':'t'}",
		  "{'t':{'$date':0}},{'t':{'$date':86400000}},{'t':{'$date':86400001}},{'t':{'$"
		  "date':172800001}}",
		  "{'n':2},{'n':3},{'n':3},{'n':2}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

static void
gaps_end_where_their_bounds_are(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$densify':{'field':'t','range':{'step':2,'bounds':[0,4]}}}",
		  "{'t':-1},{'t':0},{'t':1},{'t':4}", "{'t':-1},{'t':0},{'t':1},{'t':2},{'t':4}" },
		{ "{'$densify':{'field':'t','range':{'step':2,'bounds':[3,3]}}}", "{'t':1},{'t':5}",
		  "{'t':1},{'t':5}" },
		{ "{'$densify':{'field':'t','range':{'step':{'$numberDecimal':'0.5'},'bounds':'"
		  "full'}}}",
		  "{'t':1},{'t':2}", "{'t':1},{'t':{'$numberDecimal':'1.5'}},{'t':2}" },
		{ "{'$densify':{'field':'t','range':{'step':1,'bounds':'full'}}}",
		  "{'t':null},{'t':1},{'t':1},{'t':3}",
		  "{'t':null},{'t':1},{'t':1},{'t':2},{'t':3}" },
		{ "{'$densify':{'field':'t','partitionByFields':['p','q.r'],'range':{'step':1,'"
		  "bounds':'partition'}}}",
		  "{'p':1,'q':{'r':1},'t':1},{'p':1,'q':{'r':1},'t':3},{'p':1,'t':1},{'p':1,'t'"
		  ":2},{'t':7}",
		  "{'t':7},{'p':1,'t':1},{'p':1,'t':2},{'p':1,'q':{'r':1},'t':1},{'p':1,'q':{'r"
		  "':1},'t':2},{'p':1,'q':{'r':1},'t':3}" },
		{ "{'$densify':{'field':'t','range':{'step':1,'unit':'millisecond','bounds':'fu"
		  "ll'}}},{'$set':{'t':{'$toLong':'$t'}}}",
		  "{'t':{'$date':1}},{'t':{'$date':3}}", "{'t':1},{'t':2},{'t':3}" },
		{ "{'$densify':{'field':'t','range':{'step':12,'unit':'hour','bounds':[{'$date'"
		  ":0},{'$date':86400000}]}}},{'$set':{'t':{'$toLong':'$t'}}}",
		  "{'t':{'$date':43200000}}", "{'t':0},{'t':43200000}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

static void
stages_are_moved_only_past_what_they_do_not_read(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$lookup':{'from':'o','let':{'x':'$a','y':2},'pipeline':[{'$match':{'$expr'"
		  ":{'$eq':['$k',{'$add':['$$x','$$y']}]}}}],'as':'r'}}",
		  "{'a':-1},{'a':0}", "{'a':-1,'r':[{'k':1,'v':1}]},{'a':0,'r':[{'k':2,'v':2}]}" },
		{ "{'$lookup':{'from':'o','localField':'a','foreignField':'k','as':'r'}}",
		  "{'a':null},{'a':[1,null]}",
		  "{'a':null,'r':[{'v':3}]},{'a':[1,null],'r':[{'k':1,'v':1},{'v':3}]}" },
		{ "{'$graphLookup':{'from':'g','startWith':'$a','connectFromField':'to','connec"
		  "tToField':'n','as':'r','maxDepth':1,'depthField':'d','restrictSearchWithMatc"
		  "h':{'n':{'$lt':3}}}},{'$set':{'r':{'$sortArray':{'input':'$r','sortBy':{'n':"
		  "1}}}}}",
		  "{'a':1},{'a':[1,4]},{}",
		  "{'a':1,'r':[{'_id':1,'n':1,'to':2,'d':0},{'_id':2,'n':2,'to':3,'d':1}]},{'a'"
		  ":[1,4],'r':[{'_id':1,'n':1,'to':2,'d':0},{'_id':2,'n':2,'to':3,'d':1}]},{'r'"
		  ":[]}" },
		{ "{'$facet':{'a':[{'$limit':1}],'b':[{'$sort':{'a':-1}},{'$limit':1}]}}",
		  "{'a':1},{'a':2}", "{'a':[{'a':1}],'b':[{'a':2}]}" },
		{ "{'$facet':{'a':[]}}", "", "{'a':[]}" },
		{ "{'$sort':{'a':-1}},{'$skip':1},{'$skip':1},{'$limit':1}",
		  "{'a':1},{'a':2},{'a':3},{'a':4}", "{'a':2}" },
		{ "{'$sort':{'a':1}},{'$set':{'b':1}},{'$limit':2}", "{'a':2},{'a':1},{'a':3}",
		  "{'a':1,'b':1},{'a':2,'b':1}" },
		{ "{'$sort':{'a':1}},{'$match':{'a':{'$gt':1}}},{'$limit':1}",
		  "{'a':2},{'a':1},{'a':3}", "{'a':2}" },
		{ "{'$sort':{'a':1}},{'$unwind':'$a'},{'$limit':1}", "{'a':[]},{'a':[2]},{'a':[1]}",
		  "{'a':1}" },
		{ "{'$sort':{'a':1}},{'$skip':{'$numberLong':'9223372036854775807'}},{'$limit':"
		  "1}",
		  "{'a':2},{'a':1}", "" },
		{ "{'$unwind':{'path':'$a','includeArrayIndex':'i'}},{'$match':{'i':1}}",
		  "{'a':[5,6],'i':7}", "{'a':6,'i':1}" },
		{ "{'$unwind':{'path':'$a','includeArrayIndex':'i.j'}},{'$match':{'i.j':1}}",
		  "{'a':[5,6],'i':{'j':0}}", "{'a':6,'i':{'j':1}}" },
		{ "{'$unwind':'$a.b'},{'$match':{'a.c':1}}", "{'a':{'b':[1,2],'c':1}}",
		  "{'a':{'b':1,'c':1}},{'a':{'b':2,'c':1}}" },
		{ "{'$replaceWith':'$a'},{'$match':{'b':1}}", "{'a':{'b':1},'b':2}", "{'b':1}" },
		{ "{'$group':{'_id':'$a'}},{'$match':{'_id':1}}", "{'a':1,'_id':5}", "{'_id':1}" },
		{ "{'$set':{'b':'$a'}},{'$match':{'b':1}}", "{'a':1},{'a':2,'b':1}",
		  "{'a':1,'b':1}" },
		{ "{'$project':{'b':'$a'}},{'$match':{'b':1}}", "{'a':1},{'a':2,'b':1}",
		  "{'b':1}" },
		{ "{'$unset':'b'},{'$match':{'b':1}}", "{'b':1}", "" },
		{ "{'$set':{'b':'$a'}},{'$match':{'$or':[{'b':1},{'c':1}]}}",
		  "{'a':1},{'a':2,'b':1}", "{'a':1,'b':1}" },
		{ "{'$set':{'b':'$a'}},{'$match':{'$nor':[{'c':1},{'b':2}]}}",
		  "{'a':1},{'a':2,'b':1}", "{'a':1,'b':1}" },
		{ "{'$set':{'b':'$a'}},{'$match':{'$expr':{'$eq':['$b',1]}}}",
		  "{'a':1},{'a':2,'b':1}", "{'a':1,'b':1}" },
	};

	other_documents = "{'o':[{'k':1,'v':1},{'k':2,'v':2},{'v':3}],'g':[{'_id':1,'n':1,'to':2},"
			  "{'_id':2,'n':2,'to':3},{'_id':3,'n':3,'to':1},{'_id':4,'n':4,'to':1}]}";
	check_pipelines(*state, cases, CASES(cases));
}

/* Each group is found again among many others, whatever its id is. */
static void
groups_of_many_ids_are_told_apart(void **state)
{
	static const char *const ids[] = {
		"'$a'",
		"{'$toLong':'$a'}",
		"{'$toDate':{'$toLong':'$a'}}",
		"{'$toString':'$a'}",
		"{'$toDouble':'$a'}",
		"['$a']",
		("{'$concat':['a text that is longer than those that are found by themselves, of ',"
		 "{'$toString':'$a'}]}"),
	};

	for (size_t i = 0; i < CASES(ids); i++) {
		struct mql q = case_mql(*state);
		const char *pipeline =
			arena_printf(*state,
				     "{'$documents':[{'r':{'$range':[0,2000]}}]},{'$unwind':'$r'},"
				     "{'$set':{'a':{'$mod':['$r',1000]}}},"
				     "{'$group':{'_id':%s,'n':{'$sum':1},'s':{'$sum':'$a'}}},"
				     "{'$group':{'_id':'$n','k':{'$sum':1},'s':{'$sum':'$s'}}}",
				     ids[i])
				.ptr;
		const char *text = run_text(&q, pipeline, "");

		if (strcmp(text, "{'_id':2,'k':1000,'s':999000}") != 0)
			fail_msg("%s: %s", ids[i], text);
	}
}

static struct mql_pipeline *
compile_pipeline(struct mql *q, const char *pipeline)
{
	const struct mql_pipeline_options options = { .scope = NULL };
	struct mql_pipeline *p = NULL;
	struct bson_value stages;

	assert_true(
		bson_find(case_bson(q->arena, arena_printf(q->arena, "{'p':[%s]}", pipeline).ptr),
			  STR("p"), &stages));
	if (mql_pipeline_compile(q, bson_text(&stages), &options, &p) != STATUS_OK)
		fail_msg("%s: %s", pipeline, case_err.text);
	return p;
}

static void
merges_make_one_document_of_two(void **state)
{
	static const struct {
		const char *merge, *merged; /* NULL: an error */
	} cases[] = {
		{ "{'$merge':'x'}", "{'_id':1,'a':2,'b':1,'c':3}" },
		{ "{'$merge':{'into':'x','whenMatched':'merge'}}", "{'_id':1,'a':2,'b':1,'c':3}" },
		{ "{'$merge':{'into':'x','whenMatched':'replace'}}", "{'_id':1,'a':2,'c':3}" },
		{ "{'$merge':{'into':'x','whenMatched':'keepExisting'}}", "{'_id':1,'a':1,'b':1}" },
		{ "{'$merge':{'into':'x','whenMatched':'fail'}}", NULL },
		{ "{'$merge':{'into':'x','whenMatched':[{'$set':{'z':'$$new.a'}}]}}",
		  "{'_id':1,'a':1,'b':1,'z':2}" },
		{ "{'$merge':{'into':'x','let':{'y':'$c','w':7,'new':'$$ROOT'},"
		  "'whenMatched':[{'$set':{'z':['$$new.a','$$y','$$w','$a']}}]}}",
		  "{'_id':1,'a':1,'b':1,'z':[2,3,7,1]}" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		const struct mql_pipeline *p = compile_pipeline(&q, cases[i].merge);
		struct str ret;
		enum status status = mql_write_merge(
			mql_pipeline_write(p), &q, case_bson(*state, "{'_id':1,'a':1,'b':1}"),
			case_bson(*state, "{'_id':1,'a':2,'c':3}"), &ret);

		assert_int_equal(status, cases[i].merged ? STATUS_OK : STATUS_INVALID);
		if (cases[i].merged)
			assert_string_equal(case_json(*state, ret), cases[i].merged);
		else
			assert_int_equal(q.code, 11000);
	}
}

static void
writes_say_where_and_how(void **state)
{
	struct mql q = case_mql(*state);
	const struct mql_write *w;

	w = mql_pipeline_write(compile_pipeline(&q, "{'$out':'x'}"));
	assert_true(w->replaces && str_eq(w->collection, STR("x")) && !w->db.len);
	w = mql_pipeline_write(compile_pipeline(&q, "{'$out':{'db':'d','coll':'c'}}"));
	assert_true(w->replaces && str_eq(w->collection, STR("c")) && str_eq(w->db, STR("d")));
	w = mql_pipeline_write(
		compile_pipeline(&q, "{'$merge':{'into':{'db':'d','coll':'c'},'on':['a','b'],"
				     "'whenMatched':'replace','whenNotMatched':'discard'}}"));
	assert_true(!w->replaces && str_eq(w->collection, STR("c")) && str_eq(w->db, STR("d")));
	assert_int_equal(w->on_count, 2);
	assert_true(str_eq(w->on[0], STR("a")) && str_eq(w->on[1], STR("b")));
	assert_int_equal(w->matched, MQL_MERGE_REPLACE);
	assert_int_equal(w->not_matched, MQL_MERGE_DISCARD);
	w = mql_pipeline_write(
		compile_pipeline(&q, "{'$merge':{'into':{'db':null,'coll':'c'},'on':'a','let':null,"
				     "'whenNotMatched':'fail'}}"));
	assert_true(!w->db.len && w->on_count == 1 && str_eq(w->on[0], STR("a")));
	assert_int_equal(w->matched, MQL_MERGE_MERGE);
	assert_int_equal(w->not_matched, MQL_MERGE_FAIL);
	w = mql_pipeline_write(compile_pipeline(&q, "{'$merge':'x'}"));
	assert_int_equal(w->not_matched, MQL_MERGE_INSERT);
}

/* Ids of each type that come again and again, with others between them. */
static void
groups_of_each_type_are_found_again(void **state)
{
	static const struct {
		const char *type, *values[3];
	} cases[] = {
		{ "bool", { "true", "false", "null" } },
		{ "int", { "1", "2", "-1" } },
		{ "long",
		  { "{'$numberLong':'4294967297'}", "{'$numberLong':'1'}",
		    "{'$numberLong':'-4294967295'}" } },
		{ "date", { "{'$date':0}", "{'$date':1}", "{'$date':-1}" } },
		{ "string", { "'a'", "'b'", "'ab'" } },
		{ "objectId",
		  { "{'$oid':'0123456789abcdef01234567'}", "{'$oid':'0123456789abcdef01234568'}",
		    "{'$oid':'1123456789abcdef01234567'}" } },
		{ "mixed", { "1.5", "{'$numberDecimal':'2'}", "[1]" } },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		const char *const *v = cases[i].values;
		struct mql q = case_mql(*state);
		struct str docs = arena_printf(
			*state, "{'a':%s},{'a':%s},{'a':%s},{'a':%s},{'a':%s},{'a':%s},{'a':%s}",
			v[0], v[1], v[0], v[2], v[1], v[0], v[0]);
		const char *got = run_text(&q,
					   "{'$group':{'_id':'$a','n':{'$sum':1}}},{'$sort':{'n':1}"
					   "},{'$project':{'_id':0}}",
					   docs.ptr);

		if (strcmp(got, "{'n':1},{'n':2},{'n':4}") != 0)
			fail_msg("%s: %s", cases[i].type, got);
	}
}

/* What a group keeps of documents that a stage before it makes, and makes again in their place. */
static void
groups_keep_all_of_a_value(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$set':{'b':'$a'}},{'$group':{'_id':1,'f':{'$first':'$b'},'l':{'$last':'$b'},"
		  "'m':{'$max':'$b'},'p':{'$push':'$b'}}}",
		  "{'a':{'$code':'f','$scope':{'x':1}}},{'a':{'$code':'f','$scope':{'x':2}}}",
		  "{'_id':1,'f':{'$code':'f','$scope':{'x':1}},'l':{'$code':'f','$scope':{'x':2}},"
		  "'m':{'$code':'f','$scope':{'x':2}},'p':[{'$code':'f','$scope':{'x':1}},{'$code':"
		  "'f','$scope':{'x':2}}]}" },
		{ "{'$set':{'b':'$a'}},{'$group':{'_id':1,'f':{'$first':'$b'},'l':{'$last':'$b'},"
		  "'m':{'$max':'$b'}}}",
		  "{'a':{'$regularExpression':{'pattern':'ab','options':'im'}}},"
		  "{'a':{'$regularExpression':{'pattern':'ab','options':'ix'}}}",
		  "{'_id':1,'f':{'$regularExpression':{'pattern':'ab','options':'im'}},"
		  "'l':{'$regularExpression':{'pattern':'ab','options':'ix'}},"
		  "'m':{'$regularExpression':{'pattern':'ab','options':'ix'}}}" },
		{ "{'$set':{'b':'$a'}},{'$group':{'_id':1,'f':{'$first':'$b'},'l':{'$last':'$b'}}}",
		  "{'a':{'$dbPointer':{'$ref':'c','$id':{'$oid':'0123456789abcdef01234567'}}}},"
		  "{'a':{'$dbPointer':{'$ref':'d','$id':{'$oid':'1123456789abcdef01234567'}}}}",
		  "{'_id':1,'f':{'$dbPointer':{'$ref':'c','$id':{'$oid':"
		  "'0123456789abcdef01234567'}}},'l':{'$dbPointer':{'$ref':'d','$id':{'$oid':"
		  "'1123456789abcdef01234567'}}}}" },
		{ "{'$set':{'b':'$a'}},{'$setWindowFields':{'sortBy':{'n':1},'output':{'f':{'$"
		  "first':"
		  "'$b','window':{'documents':[-1,0]}}}}},{'$project':{'f':1,'_id':0}}",
		  "{'n':1,'a':{'$code':'f','$scope':{'x':1}}},{'n':2,'a':{'$code':'f','$scope':{'x'"
		  ":"
		  "2}}}",
		  "{'f':{'$code':'f','$scope':{'x':1}}},{'f':{'$code':'f','$scope':{'x':1}}}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

/* Filters with a condition on the field without a name are moved like others. */
static void
fields_without_a_name_are_fields(void **state)
{
	static const struct stage_case cases[] = {
		{ "{'$set':{'b':1}},{'$match':{'':1}}", "{'':1},{'':2}", "{'':1,'b':1}" },
		{ "{'$sort':{'a':1}},{'$match':{'':1}}", "{'':1,'a':2},{'':1,'a':1},{'':2}",
		  "{'':1,'a':1},{'':1,'a':2}" },
	};

	check_pipelines(*state, cases, CASES(cases));
}

static void
stages_and_collections_are_listed(void **state)
{
	struct mql q = case_mql(*state);
	const struct mql_pipeline *p = compile_pipeline(
		&q, "{'$match':{'a':1}},{'$lookup':{'from':'o','as':'r','pipeline':["
		    "{'$unionWith':'u'}]}},{'$limit':3}");
	struct str name, db, collection;
	struct bson_value spec;

	assert_true(mql_pipeline_stage(p, 0, &name, &spec) && str_eq(name, STR("$match")));
	assert_true(mql_pipeline_stage(p, 2, &name, &spec) && str_eq(name, STR("$limit")));
	assert_int_equal(bson_integer(&spec), 3);
	assert_false(mql_pipeline_stage(p, 3, &name, &spec));
	assert_true(mql_pipeline_reads(p, 0, &db, &collection));
	assert_true(!db.len && str_eq(collection, STR("u")));
	assert_true(mql_pipeline_reads(p, 1, &db, &collection));
	assert_true(!db.len && str_eq(collection, STR("o")));
	assert_false(mql_pipeline_reads(p, 2, &db, &collection));
	assert_null(mql_pipeline_write(p));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(documents_are_unwound_and_redacted, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(accumulators_take_values_of_all_types, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(powers_of_two_have_the_type_of_their_size,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(buckets_end_where_their_bounds_are, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(windows_begin_and_end_between_documents, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(gaps_end_where_their_bounds_are, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(stages_are_moved_only_past_what_they_do_not_read,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(groups_of_many_ids_are_told_apart, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(merges_make_one_document_of_two, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(writes_say_where_and_how, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(stages_and_collections_are_listed, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(groups_of_each_type_are_found_again, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(groups_keep_all_of_a_value, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(fields_without_a_name_are_fields, case_setup,
						case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
