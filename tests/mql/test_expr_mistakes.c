/* Arguments that expressions refuse, each with its code, and those at the edge of it. */
#include "expr_case.h"

static void
arguments_have_mongodbs_codes(void **state)
{
	static const struct {
		const char *expression;
		int code;
	} cases[] = {
		{ "{'$mod':[1,{'$numberDecimal':'0'}]}", 5733415 },
		{ "{'$mod':[{'$numberDecimal':'1'},0]}", 5733415 },
		{ "{'$mod':[1,0]}", 16610 },
		{ "{'$mod':['x',1]}", 16611 },
		{ "{'$mod':[1,'x']}", 16611 },
		{ "{'$indexOfArray':[1,1]}", 40090 },
		{ "{'$reverseArray':1}", 34435 },
		{ "{'$slice':[[1],'x']}", 28725 },
		{ "{'$slice':[[1],0,'x']}", 28727 },
		{ "{'$slice':[[1],0,0]}", 28729 },
		{ "{'$slice':[1,0]}", 28724 },
		{ "{'$range':['x',1]}", 34443 },
		{ "{'$range':[0,'x']}", 34445 },
		{ "{'$range':[0,1,'x']}", 34447 },
		{ "{'$range':[0,1,0]}", 34449 },
		{ "{'$firstN':1}", 5787900 },
		{ "{'$firstN':{'input':[1],'n':1,'x':1}}", 5787901 },
		{ "{'$firstN':{'input':[1]}}", 5787906 },
		{ "{'$firstN':{'n':1}}", 5787907 },
		{ "{'$firstN':{'input':[1],'n':0}}", 7548606 },
		{ "{'$firstN':{'input':[1],'n':'x'}}", 7548606 },
		{ "{'$firstN':{'input':[1],'n':1.5}}", 7548606 },
		{ "{'$firstN':{'input':1,'n':1}}", 5788200 },
		{ "{'$maxN':{'input':1,'n':1}}", 5788200 },
		{ "{'$sortArray':{'input':1,'sortBy':1}}", 2942504 },
		{ "{'$sortArray':{'input':[1],'sortBy':'x'}}", 2942507 },
		{ "{'$zip':1}", 34460 },
		{ "{'$zip':{'inputs':[[1]],'x':1}}", 34464 },
		{ "{'$zip':{}}", 34465 },
		{ "{'$zip':{'inputs':[]}}", 34465 },
		{ "{'$zip':{'inputs':1}}", 34461 },
		{ "{'$zip':{'inputs':[[1]],'useLongestLength':true,'defaults':1}}", 34462 },
		{ "{'$zip':{'inputs':[[1]],'useLongestLength':1}}", 34463 },
		{ "{'$zip':{'inputs':[[1]],'defaults':[1]}}", 34466 },
		{ "{'$zip':{'inputs':[[1]],'useLongestLength':true,'defaults':[1,2]}}", 34467 },
		{ "{'$zip':{'inputs':[[1],1]}}", 34468 },
		{ "{'$filter':1}", 28646 },
		{ "{'$filter':{'input':[],'cond':1,'x':1}}", 28647 },
		{ "{'$filter':{'cond':1}}", 28648 },
		{ "{'$filter':{'input':[]}}", 28650 },
		{ "{'$filter':{'input':[1],'cond':1,'limit':'x'}}", 327391 },
		{ "{'$filter':{'input':[1],'cond':1,'limit':0}}", 327392 },
		{ "{'$let':1}", 16874 },
		{ "{'$let':{'vars':{},'in':1,'x':1}}", 16875 },
		{ "{'$let':{'in':1}}", 16876 },
		{ "{'$let':{'vars':{}}}", 16877 },
		{ "{'$map':1}", 16878 },
		{ "{'$map':{'input':[],'in':1,'x':1}}", 16879 },
		{ "{'$map':{'in':1}}", 16880 },
		{ "{'$map':{'input':[]}}", 16882 },
		{ "{'$reduce':1}", 40075 },
		{ "{'$reduce':{'input':[],'initialValue':1,'in':1,'x':1}}", 40076 },
		{ "{'$reduce':{'initialValue':1,'in':1}}", 40077 },
		{ "{'$reduce':{'input':[],'in':1}}", 40078 },
		{ "{'$reduce':{'input':[],'initialValue':1}}", 40079 },
		{ "{'$arrayToObject':1}", 40386 },
		{ "{'$arrayToObject':[[1]]}", 40398 },
		{ "{'$arrayToObject':[[{'k':'a','v':1},['b',1]]]}", 40391 },
		{ "{'$arrayToObject':[[['a',1],{'k':'b','v':1}]]}", 40396 },
		{ "{'$arrayToObject':[[{'k':'a'}]]}", 40392 },
		{ "{'$arrayToObject':[[{'k':'a','x':1}]]}", 40393 },
		{ "{'$arrayToObject':[[{'x':'a','v':1}]]}", 40393 },
		{ "{'$arrayToObject':[[{'k':1,'v':1}]]}", 40394 },
		{ "{'$arrayToObject':[[{'k':'a\\u0000','v':1}]]}", 4940401 },
		{ "{'$arrayToObject':[[['a']]]}", 40397 },
		{ "{'$arrayToObject':[[['a',1,2]]]}", 40397 },
		{ "{'$arrayToObject':[[[1,1]]]}", 40395 },
		{ "{'$arrayToObject':[[['a\\u0000',1]]]}", 4940400 },
		{ "{'$getField':{'field':'a','input':{},'x':1}}", 3041701 },
		{ "{'$getField':{'input':{}}}", 3041702 },
		{ "{'$getField':{'field':'a'}}", 3041703 },
		{ "{'$log':['x',2]}", 28756 },
		{ "{'$log':[2,'x']}", 28757 },
		{ "{'$log':[2,0]}", 28759 },
		{ "{'$log':[2,-1]}", 28759 },
		{ "{'$log':[-1,2]}", 28758 },
		{ "{'$pow':['x',1]}", 28762 },
		{ "{'$pow':[1,'x']}", 28763 },
		{ "{'$pow':[{'$numberDecimal':'0'},{'$numberDecimal':'-1'}]}", 28764 },
		{ "{'$round':[1,'x']}", 16004 },
		{ "{'$round':[1,1e30]}", 31109 },
		{ "{'$round':[1,{'$numberDouble':'NaN'}]}", 31109 },
		{ "{'$round':[1,-9.3e18]}", 31109 },
		{ "{'$round':[1,0.5]}", 51082 },
		{ "{'$round':[1,-21]}", 51083 },
		{ "{'$round':[{'$numberLong':'9223372036854775807'},-1]}", 51080 },
		{ "{'$dateAdd':1}", 5166400 },
		{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'day','amount':1,'x':1}}", 5166401 },
		{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'day'}}", 5166402 },
		{ "{'$dateAdd':{'startDate':1,'unit':'day','amount':1}}", 5166403 },
		{ "{'$dateAdd':{'startDate':{'$date':0},'unit':1,'amount':1}}", 5439013 },
		{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'x','amount':1}}", 9 },
		{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'day','amount':'x'}}", 5166405 },
		{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'day','amount':1.5}}", 5166405 },
		{ "{'$dateSubtract':{'startDate':{'$date':0},'unit':'day','amount':{'$numberLong':'"
		  "-9223372036854775808'}}}",
		  6045000 },
		{ "{'$dateDiff':1}", 5166301 },
		{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':{'$date':0},'unit':'day','x':1}"
		  "}",
		  5166302 },
		{ "{'$dateDiff':{'endDate':{'$date':0},'unit':'day'}}", 5166303 },
		{ "{'$dateDiff':{'startDate':{'$date':0},'unit':'day'}}", 5166304 },
		{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':{'$date':0}}}", 5166305 },
		{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':{'$date':0},'unit':'week','"
		  "startOfWeek':1}}",
		  5439015 },
		{ "{'$dateTrunc':1}", 5439007 },
		{ "{'$dateTrunc':{'date':{'$date':0},'unit':'day','x':1}}", 5439008 },
		{ "{'$dateTrunc':{'unit':'day'}}", 5439009 },
		{ "{'$dateTrunc':{'date':{'$date':0}}}", 5439010 },
		{ "{'$dateTrunc':{'date':{'$date':0},'unit':'month','binSize':{'$numberLong':'"
		  "9223372036854775807'}}}",
		  5439006 },
		{ "{'$dateTrunc':{'date':{'$date':0},'unit':'day','binSize':{'$numberLong':'"
		  "9223372036854775807'}}}",
		  5439002 },
		{ "{'$dateTrunc':{'date':{'$date':0},'unit':'hour','binSize':{'$numberLong':'"
		  "9223372036854775807'}}}",
		  5439002 },
		{ "{'$indexOfBytes':[1,'x']}", 40091 },
		{ "{'$indexOfBytes':['x',1]}", 40092 },
		{ "{'$indexOfCP':[1,'x']}", 40093 },
		{ "{'$indexOfCP':['x',1]}", 40094 },
		{ "{'$indexOfCP':['x','x','x']}", 40096 },
		{ "{'$indexOfCP':['x','x',-1]}", 40097 },
		{ "{'$indexOfCP':['x','x',0,-1]}", 40097 },
		{ "{'$substrCP':['x','x',1]}", 34450 },
		{ "{'$substrCP':['x',1.5,1]}", 34451 },
		{ "{'$substrCP':['x',-1,1]}", 34455 },
		{ "{'$substrCP':['x',0,'x']}", 34452 },
		{ "{'$substrCP':['x',0,1.5]}", 34453 },
		{ "{'$substrCP':['x',0,-1]}", 34454 },
		{ "{'$split':[1,'x']}", 40085 },
		{ "{'$split':['x',1]}", 10503900 },
		{ "{'$split':['x','']}", 40087 },
		{ "{'$replaceOne':1}", 51751 },
		{ "{'$replaceOne':{'input':'x','find':'x','replacement':'x','y':1}}", 51750 },
		{ "{'$replaceOne':{'find':'x','replacement':'x'}}", 51749 },
		{ "{'$replaceOne':{'input':'x','replacement':'x'}}", 51748 },
		{ "{'$replaceOne':{'input':'x','find':'x'}}", 51747 },
		{ "{'$percentile':{'input':[1],'method':'approximate','p':'$a'}}", 7750300 },
		{ "{'$percentile':1}", 7429703 },
		{ "{'$median':1}", 7436100 },
		{ "{'$rand':1}", 10065 },
		{ "{'$rand':{'a':1}}", 3040501 },
		{ "{'$dateFromString':1}", 40540 },
		{ "{'$dateFromString':{'dateString':'x','y':1}}", 40541 },
		{ "{'$dateFromString':{}}", 40542 },
		{ "{'$dateFromParts':1}", 40519 },
		{ "{'$dateFromParts':{'year':1,'x':1}}", 40518 },
		{ "{'$dateFromParts':{}}", 40516 },
		{ "{'$dateToParts':1}", 40524 },
		{ "{'$dateToParts':{'date':{'$date':0},'x':1}}", 40520 },
		{ "{'$dateToParts':{}}", 40522 },
		{ "{'$dateToString':1}", 18629 },
		{ "{'$dateToString':{'date':{'$date':0},'x':1}}", 18534 },
		{ "{'$dateToString':{}}", 18628 },
		/* Whose bits would be a NaN's, were it a double. */
		{ "{'$ln':{'$numberLong':'-2251799813685247'}}", 28766 },
		{ "{'$log10':{'$numberLong':'-2251799813685247'}}", 28761 },
		{ "{'$log':[{'$numberLong':'-2251799813685247'},2]}", 28758 },
		{ "{'$log':[2,{'$numberLong':'-2251799813685247'}]}", 28759 },
		{ "{'$sqrt':{'$numberLong':'-2251799813685247'}}", 28714 },
		{ "{'$pow':[0,{'$numberLong':'-2251799813685247'}]}", 28764 },
		{ "{'$hour':{'date':{'$date':0},'timezone':''}}", 40485 },
		{ "{'$hour':{'date':{'$date':0},'timezone':'x'}}", 40485 },
		{ "{'$cond':[1]}", 16020 },
		{ "{'$cond':[1,2,3,4]}", 16020 },
		{ "{'$slice':[[1]]}", 28667 },
		{ "{'$slice':[[1],1,1,1]}", 28667 },
		{ "{'$function':1}", 31260 },
		{ "{'$strLenCP':1}", 34471 },
		{ "{'$strLenBytes':1}", 34473 },
		{ "{'$ln':'x'}", 28765 },
		{ "{'$ln':-1}", 28766 },
		{ "{'$ln':{'$numberDecimal':'0'}}", 28766 },
		{ "{'$log10':0}", 28761 },
		{ "{'$sqrt':{'$numberDecimal':'-1'}}", 28714 },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		const struct expr_case c = { cases[i].expression, "{'a':[0.5]}", NULL,
					     cases[i].code };

		case_check(*state, &c);
	}
}

static void
arguments_at_the_edge_have_a_value(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$sqrt':{'$numberDouble':'NaN'}}", "{}", "{'$numberDouble':'NaN'}", 0 },
		{ "{'$ln':{'$numberDouble':'NaN'}}", "{}", "{'$numberDouble':'NaN'}", 0 },
		{ "{'$log10':{'$numberDouble':'NaN'}}", "{}", "{'$numberDouble':'NaN'}", 0 },
		{ "{'$log':[{'$numberDouble':'NaN'},2]}", "{}", "{'$numberDouble':'NaN'}", 0 },
		{ "{'$log':[2,{'$numberDouble':'NaN'}]}", "{}", "{'$numberDouble':'NaN'}", 0 },
		{ "{'$sqrt':{'$numberDecimal':'NaN'}}", "{}", "{'$numberDecimal':'NaN'}", 0 },
		{ "{'$ln':{'$numberDecimal':'NaN'}}", "{}", "{'$numberDecimal':'NaN'}", 0 },
		{ "{'$sqrt':0}", "{}", "0.0", 0 },
		{ "{'$sqrt':{'$numberLong':'4'}}", "{}", "2.0", 0 },
		{ "{'$pow':[0,{'$numberDouble':'NaN'}]}", "{}", "{'$numberDouble':'NaN'}", 0 },
		{ "{'$pow':[0,0]}", "{}", "1", 0 },
		{ "{'$pow':[0,1]}", "{}", "0", 0 },
		{ "{'$pow':[-2,31]}", "{}", "-2147483648", 0 },
		{ "{'$pow':[2,31]}", "{}", "{'$numberLong':'2147483648'}", 0 },
		{ "{'$pow':[-2,{'$numberLong':'3'}]}", "{}", "{'$numberLong':'-8'}", 0 },
		{ "{'$pow':[-2,63]}", "{}", "{'$numberLong':'-9223372036854775808'}", 0 },
		{ "{'$pow':[2,63]}", "{}", "{'$numberDouble':'9223372036854775808'}", 0 },
		{ "{'$add':[-2147483647,-1]}", "{}", "-2147483648", 0 },
		{ "{'$add':[-2147483648,-1]}", "{}", "{'$numberLong':'-2147483649'}", 0 },
		{ "{'$add':[2147483646,1]}", "{}", "2147483647", 0 },
		{ "{'$add':[2147483647,1]}", "{}", "{'$numberLong':'2147483648'}", 0 },
		{ "{'$subtract':[-2147483647,1]}", "{}", "-2147483648", 0 },
		{ "{'$multiply':[-1073741824,2]}", "{}", "-2147483648", 0 },
		{ "{'$multiply':[1073741824,2]}", "{}", "{'$numberLong':'2147483648'}", 0 },
		{ "{'$round':[1,100]}", "{}", "1", 0 },
		{ "{'$round':[1,-20]}", "{}", "0", 0 },
		{ "{'$filter':{'input':[1,2,3],'cond':true,'limit':1}}", "{}", "[1]", 0 },
		{ "{'$filter':{'input':[1,2,3],'cond':true,'limit':null}}", "{}", "[1,2,3]", 0 },
		{ "{'$firstN':{'input':[1,2],'n':1}}", "{}", "[1]", 0 },
		{ "{'$slice':[[1,2,3],0,1]}", "{}", "[1]", 0 },
		{ "{'$zip':{'inputs':[[1],[2,3]]}}", "{}", "[[1,2]]", 0 },
		{ "{'$zip':{'inputs':[[1,4],[2]],'useLongestLength':true}}", "{}",
		  "[[1,2],[4,null]]", 0 },
		{ "{'$zip':{'inputs':[[1,4],[2]],'useLongestLength':true,'defaults':[8,9]}}", "{}",
		  "[[1,2],[4,9]]", 0 },
		{ "{'$zip':{'inputs':[[1],null]}}", "{}", "null", 0 },
		{ "{'$mergeObjects':[{'a':1},{'b':2}]}", "{}", "{'a':1,'b':2}", 0 },
		{ "{'$mergeObjects':[[{'a':1},{'b':2}]]}", "{}", "{'a':1,'b':2}", 0 },
		{ "{'$stdDevPop':[]}", "{}", "null", 0 },
		{ "{'$stdDevPop':[5]}", "{}", "0.0", 0 },
		{ "{'$stdDevSamp':[5]}", "{}", "null", 0 },
		{ "{'$stdDevSamp':[1,3]}", "{}", "1.4142135623730951", 0 },
		{ "{'$stdDevPop':[1,'x',3]}", "{}", "1.0", 0 },
		{ "{'$indexOfCP':['','']}", "{}", "0", 0 },
		{ "{'$indexOfCP':['abc','c',2]}", "{}", "2", 0 },
		{ "{'$indexOfCP':['abc','c',3]}", "{}", "-1", 0 },
		{ "{'$indexOfCP':['abc','c',0,2]}", "{}", "-1", 0 },
		{ "{'$indexOfCP':['abc','c',0,3]}", "{}", "2", 0 },
	};

	EXPR_CASES(*state, cases);
}

static void
values_are_told_from_those_beside_them(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$trim':{'input':'   '}}", "{}", "''", 0 },
		{ "{'$cos':{'$numberDouble':'Infinity'}}", "{}", NULL, 50989 },
		{ "{'$cos':{'$numberDouble':'-Infinity'}}", "{}", NULL, 50989 },
		{ "{'$sin':{'$numberDouble':'Infinity'}}", "{}", NULL, 50989 },
		{ "{'$sin':{'$numberDouble':'-Infinity'}}", "{}", NULL, 50989 },
		{ "{'$tan':{'$numberDouble':'Infinity'}}", "{}", NULL, 50989 },
		{ "{'$tan':{'$numberDouble':'-Infinity'}}", "{}", NULL, 50989 },
		{ "{'$acos':1}", "{}", "0.0", 0 },
		{ "{'$asin':0}", "{}", "0.0", 0 },
		{ "{'$acosh':1}", "{}", "0.0", 0 },
		{ "{'$atanh':1}", "{}", "{'$numberDouble':'Infinity'}", 0 },
		{ "{'$atanh':-1}", "{}", "{'$numberDouble':'-Infinity'}", 0 },
		{ "{'$acos':1.0001}", "{}", NULL, 50989 },
		{ "{'$acos':-1.0001}", "{}", NULL, 50989 },
		{ "{'$asin':1.0001}", "{}", NULL, 50989 },
		{ "{'$acosh':0.9999}", "{}", NULL, 50989 },
		{ "{'$atanh':1.0001}", "{}", NULL, 50989 },
		{ "{'$toLong':-1e300}", "{}", NULL, 241 },
		{ "{'$toInt':-1e300}", "{}", NULL, 241 },
		{ "{'$toUUID':'01234567-89ab-cdef-0123-45678-abcdef'}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2024-01-01T/2:00:00Z'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2024-05-00','format':'%G-%V-%d'}}", "{}", NULL,
		  241 },
		{ "{'$dateFromString':{'dateString':'2024-05','format':'%G-%V'}}", "{}",
		  "{'$date':'2024-01-29T00:00:00Z'}", 0 },
		{ "{'$let':{'vars':{'a1':5,'b_c':6,'dE':7},'in':['$$a1','$$b_c','$$dE']}}", "{}",
		  "[5,6,7]", 0 },
		{ "{'$let':{'vars':{'a9':5},'in':'$$a9'}}", "{}", "5", 0 },
		{ "{'$let':{'vars':{'a0':{'x':5}},'in':'$$a0.x'}}", "{}", "5", 0 },
		{ "{'$let':{'vars':{'a/':5},'in':1}}", "{}", NULL, 9 },
		{ "{'$let':{'vars':{'a:':5},'in':1}}", "{}", NULL, 9 },
		{ "{'$let':{'vars':{'1a':5},'in':1}}", "{}", NULL, 9 },
		{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':{'$date':0},'unit':'day',"
		  "'startOfWeek':'bogus'}}",
		  "{}", "{'$numberLong':'0'}", 0 },
		{ "{'$dateTrunc':{'date':{'$date':0},'unit':'day','startOfWeek':'bogus'}}", "{}",
		  "{'$date':0}", 0 },
		{ "{'$dateToString':{'date':{'$date':0},'format':'%z %Z'}}", "{}", "'+0000 +0'",
		  0 },
		{ "{'$dateToString':{'date':{'$date':0},'format':'%z %Z','timezone':'-00:30'}}",
		  "{}", "'-0030 -30'", 0 },
		{ "{'$mergeObjects':[[{'a':1}],{'b':1}]}", "{}", NULL, 40400 },
		{ "{'$mergeObjects':['$a']}", "{'a':[{'b':1},{'c':1}]}", "{'b':1,'c':1}", 0 },
		{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'second','amount':{'$numberLong':"
		  "'18446744073709550'}}}",
		  "{}", NULL, 5166406 },
		{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'second','amount':{'$numberLong':"
		  "'18446744073709551'}}}",
		  "{}", NULL, 5976500 },
		{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'second','amount':{'$numberLong':"
		  "'-18446744073709550'}}}",
		  "{}", NULL, 5166406 },
		{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'second','amount':{'$numberLong':"
		  "'-18446744073709551'}}}",
		  "{}", NULL, 5976500 },
		{ "{'$convert':{'input':'1.5','to':'double','onError':'e'}}", "{}", "1.5", 0 },
		{ "{'$convert':{'input':'$a','to':'double','onError':'e'}}", "{'a':'1.5'}", "1.5",
		  0 },
		{ "{'$cmp':[1,1]}", "{}", "0", 0 },
		{ "{'$lte':[1,1]}", "{}", "true", 0 },
		{ "{'$lt':[1,1]}", "{}", "false", 0 },
		{ "{'$gte':[1,1]}", "{}", "true", 0 },
		{ "{'$gt':[1,1]}", "{}", "false", 0 },
		{ "{'$substrCP':['abc',3,1]}", "{}", "''", 0 },
		{ "{'$substrCP':['abc',9,1]}", "{}", "''", 0 },
		{ "{'$dateToParts':{'date':{'$date':0},'iso8601':false}}", "{}",
		  "{'year':1970,'month':1,'day':1,'hour':0,'minute':0,'second':0,"
		  "'millisecond':0}",
		  0 },
		{ "{'$dateToParts':{'date':{'$date':0},'iso8601':true}}", "{}",
		  "{'isoWeekYear':1970,'isoWeek':1,'isoDayOfWeek':4,'hour':0,'minute':0,"
		  "'second':0,'millisecond':0}",
		  0 },
		{ "{'$ltrim':{'input':'  '}}", "{}", "''", 0 },
		{ "{'$rtrim':{'input':'  '}}", "{}", "''", 0 },
		{ "{'$ltrim':{'input':'aab','chars':'a'}}", "{}", "'b'", 0 },
		{ "{'$ltrim':{'input':'','chars':'a'}}", "{}", "''", 0 },
		{ "{'$convert':{'input':{'$binary':{'base64':'/w==','subType':'00'}},"
		  "'to':'string','format':'base64'}}",
		  "{}", "'/w=='", 0 },
		{ "{'$convert':{'input':{'$binary':{'base64':'/w==','subType':'00'}},"
		  "'to':'string','format':'hex'}}",
		  "{}", "'FF'", 0 },
		{ "{'$convert':{'input':{'$binary':{'base64':'/w==','subType':'00'}},"
		  "'to':'string','format':'utf8'}}",
		  "{}", NULL, 241 },
		{ "{'$regexFind':{'input':'xaby','regex':'(a)(b)(y)?'}}", "{}",
		  "{'match':'aby','idx':1,'captures':['a','b','y']}", 0 },
		{ "{'$regexFind':{'input':'abc de','regex':'(\\\\w+) (\\\\w)'}}", "{}",
		  "{'match':'abc d','idx':0,'captures':['abc','d']}", 0 },
		{ "{'$hour':{'date':{'$date':0},'timezone':'+09:00'}}", "{}", "9", 0 },
		{ "{'$hour':{'date':{'$date':0},'timezone':'+0900'}}", "{}", "9", 0 },
		{ "{'$hour':{'date':{'$date':0},'timezone':'+09'}}", "{}", "9", 0 },
		{ "{'$minute':{'date':{'$date':0},'timezone':'+00:59'}}", "{}", "59", 0 },
		{ "{'$minute':{'date':{'$date':0},'timezone':'+00:49'}}", "{}", "49", 0 },
		{ "{'$hour':{'date':{'$date':0},'timezone':'-01:00'}}", "{}", "23", 0 },
		{ "{'$hour':{'date':{'$date':0},'timezone':'+0:00'}}", "{}", NULL, 40485 },
		{ "{'$hour':{'date':{'$date':0},'timezone':'+/9:00'}}", "{}", NULL, 40485 },
		{ "{'$hour':{'date':{'$date':0},'timezone':'+0::00'}}", "{}", NULL, 40485 },
		{ "{'$dateFromString':{'dateString':'2024-05-00','format':'%G-%V-%m'}}", "{}", NULL,
		  241 },
		{ "{'$setField':{'field':{'$code':'$x'},'input':{},'value':1}}", "{}", NULL,
		  4161107 },
		{ "{'$setField':{'field':'$x','input':{},'value':1}}", "{}", NULL, 4161108 },
		{ "'$$CLUSTER_TIME'", "{}", NULL, 10071200 },
		{ "'$$NOW'", "{}", "{'$date':'2023-11-14T22:13:20.123Z'}", 0 },
		{ "'$$ROOT.a'", "{'a':1}", "1", 0 },
		{ "'$$CURRENT.a'", "{'a':1}", "1", 0 },
		{ "'$$REMOVE'", "{'a':1}", NULL, 0 },
		{ "'$$USER_ROLES'", "{'a':1}", "[]", 0 },
		{ "'$$PRUNE'", "{'a':1}", "'prune'", 0 },
		{ "'$$KEEP'", "{'a':1}", "'keep'", 0 },
		{ "'$$DESCEND'", "{'a':1}", "'descend'", 0 },
		{ "'$$BOGUS'", "{'a':1}", NULL, 17276 },
		{ "{'$setEquals':[[1,2],[1,2,3],[1,2]]}", "{}", "false", 0 },
		{ "{'$setEquals':[[1,2],[2,1],[1,1,2]]}", "{}", "true", 0 },
		{ "{'$setEquals':[[1],[2],[1]]}", "{}", "false", 0 },
		{ "{'$convert':{'input':'x','to':{'type':'binData','subtype':9},'format':'utf8'}}",
		  "{}", "{'$binary':{'base64':'eA==','subType':'09'}}", 0 },
		{ "{'$convert':{'input':'x','to':{'type':'binData','subtype':10},'format':'utf8'}}",
		  "{}", NULL, 4341107 },
		{ "{'$convert':{'input':'x','to':{'type':'binData','subtype':127},'format':'utf8'}"
		  "}",
		  "{}", NULL, 4341107 },
		{ "{'$convert':{'input':'x','to':{'type':'binData','subtype':128},'format':'utf8'}"
		  "}",
		  "{}", "{'$binary':{'base64':'eA==','subType':'80'}}", 0 },
		{ "{'$convert':{'input':'x','to':{'type':'binData','subtype':255},'format':'utf8'}"
		  "}",
		  "{}", "{'$binary':{'base64':'eA==','subType':'ff'}}", 0 },
		{ "{'$convert':{'input':'x','to':{'type':'binData','subtype':256},'format':'utf8'}"
		  "}",
		  "{}", NULL, 4341107 },
		{ "{'$convert':{'input':1,'to':19}}", "{}", "{'$numberDecimal':'1'}", 0 },
		{ "{'$convert':{'input':1,'to':20}}", "{}", NULL, 9 },
		{ "{'$convert':{'input':1,'to':-1}}", "{}", NULL, 241 },
		{ "{'$convert':{'input':1,'to':-2}}", "{}", NULL, 9 },
		{ "{'$convert':{'input':1,'to':127}}", "{}", NULL, 241 },
		{ "{'$convert':{'input':1,'to':126}}", "{}", NULL, 9 },
		{ "{'$sum':[{'$numberDecimal':'1'},1e16,1,-1e16]}", "{}", "{'$numberDecimal':'2'}",
		  0 },
		{ "{'$sum':[{'$numberDecimal':'1'},0.5,-0.5]}", "{}", "{'$numberDecimal':'1'}", 0 },
		{ "{'$sum':[{'$numberDecimal':'1'},{'$numberDouble':'NaN'}]}", "{}",
		  "{'$numberDecimal':'NaN'}", 0 },
		{ "{'$sum':[{'$numberDecimal':'1'},{'$numberDouble':'Infinity'}]}", "{}",
		  "{'$numberDecimal':'Infinity'}", 0 },
	};

	EXPR_CASES(*state, cases);
}

static void
texts_say_what_was_found(void **state)
{
	static const struct {
		const char *expression, *text;
	} cases[] = {
		{ "{'$map':{'input':1,'in':1}}", "input to $map must be an array not int" },
		{ "{'$filter':{'input':'x','cond':1}}",
		  "input to $filter must be an array not string" },
		{ "{'$reduce':{'input':1,'initialValue':1,'in':1}}",
		  "$reduce requires that 'input' be an array, found: int" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct mql q = case_mql(*state);
		struct bson_value v;

		assert_int_equal(case_run(&q, cases[i].expression, "{}", &v), STATUS_INVALID);
		assert_string_equal(case_err.text, cases[i].text);
	}
}

static void
the_cluster_s_time_is_known_where_there_is_one(void **state)
{
	struct mql q = case_mql(*state);
	struct bson_value v;

	q.cluster_time = UINT64_C(5) << 32 | 7;
	assert_int_equal(case_run(&q, "'$$CLUSTER_TIME'", "{}", &v), STATUS_OK);
	assert_int_equal(v.type, BSON_TIMESTAMP);
	assert_true(bson_integer(&v) == (INT64_C(5) << 32 | 7));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(values_are_told_from_those_beside_them, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(texts_say_what_was_found, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(the_cluster_s_time_is_known_where_there_is_one,
						case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(arguments_have_mongodbs_codes, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(arguments_at_the_edge_have_a_value, case_setup,
						case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
