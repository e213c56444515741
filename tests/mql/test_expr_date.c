#include "expr_case.h"

#define DATE(text) "{'$date':'" text "'}"

static void
dates_have_parts(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$year':'$d'}", "{'d':" DATE("2024-02-29T23:59:58.123Z") "}", "2024", 0 },
		{ "{'$month':['$d']}", "{'d':" DATE("2024-02-29T23:59:58.123Z") "}", "2", 0 },
		{ "{'$dayOfMonth':{'date':'$d','timezone':'+05:30'}}",
		  "{'d':" DATE("2024-02-29T23:59:58.123Z") "}", "1", 0 },
		{ "{'$hour':{'date':'$d','timezone':'America/New_York'}}",
		  "{'d':" DATE("2024-07-01T12:00:00Z") "}", "8", 0 },
		{ "{'$hour':{'date':'$d','timezone':'America/New_York'}}",
		  "{'d':" DATE("2024-01-01T12:00:00Z") "}", "7", 0 },
		{ "{'$millisecond':'$d'}", "{'d':" DATE("1969-12-31T23:59:59.999Z") "}", "999", 0 },
		{ "{'$dayOfWeek':'$d'}", "{'d':" DATE("2024-06-15T00:00:00Z") "}", "7", 0 },
		{ "{'$isoDayOfWeek':'$d'}", "{'d':" DATE("2024-06-16T00:00:00Z") "}", "7", 0 },
		{ "{'$dayOfYear':'$d'}", "{'d':" DATE("2024-12-31T00:00:00Z") "}", "366", 0 },
		{ "{'$week':'$d'}", "{'d':" DATE("2022-01-01T00:00:00Z") "}", "0", 0 },
		{ "{'$week':'$d'}", "{'d':" DATE("2018-01-06T00:00:00Z") "}", "0", 0 },
		{ "{'$week':'$d'}", "{'d':" DATE("2018-01-07T00:00:00Z") "}", "1", 0 },
		{ "{'$isoWeek':'$d'}", "{'d':" DATE("2021-01-03T00:00:00Z") "}", "53", 0 },
		{ "{'$isoWeekYear':'$d'}", "{'d':" DATE("2021-01-03T00:00:00Z") "}",
		  "{'$numberLong':'2020'}", 0 },
		{ "{'$year':'$t'}", "{'t':{'$timestamp':{'t':0,'i':1}}}", "1970", 0 },
		{ "{'$year':{'$oid':'65a000000000000000000000'}}", "{}", "2024", 0 },
		{ "{'$year':null}", "{}", "null", 0 },
		{ "{'$year':{'date':'$d','timezone':null}}",
		  "{'d':" DATE("2024-01-01T00:00:00Z") "}", "null", 0 },
		{ "{'$year':1}", "{}", NULL, 16006 },
		{ "{'$year':[1,2]}", "{}", NULL, 40536 },
		{ "{'$year':{'timezone':'UTC'}}", "{}", NULL, 40539 },
		{ "{'$year':{'date':1,'x':1}}", "{}", NULL, 40535 },
		{ "{'$year':{'date':'$d','timezone':'Nowhere'}}",
		  "{'d':" DATE("2024-01-01T00:00:00Z") "}", NULL, 40485 },
		{ "{'$year':{'date':'$d','timezone':'america/new_york'}}",
		  "{'d':" DATE("2024-01-01T00:00:00Z") "}", NULL, 40485 },
		{ "{'$year':{'date':'$d','timezone':1}}", "{'d':" DATE("2024-01-01T00:00:00Z") "}",
		  NULL, 40517 },
		{ "{'$dateToParts':{'date':'$d'}}", "{'d':" DATE("2024-02-29T23:59:58.123Z") "}",
		  "{'year':2024,'month':2,'day':29,'hour':23,'minute':59,'second':58,"
		  "'millisecond':123}",
		  0 },
		{ "{'$dateToParts':{'date':'$d','iso8601':true}}",
		  "{'d':" DATE("2021-01-03T01:00:00Z") "}",
		  "{'isoWeekYear':2020,'isoWeek':53,'isoDayOfWeek':7,'hour':1,'minute':0,"
		  "'second':0,'millisecond':0}",
		  0 },
		{ "{'$dateToParts':{'date':'$d','iso8601':1}}",
		  "{'d':" DATE("2021-01-03T01:00:00Z") "}", NULL, 40521 },
	};

	EXPR_CASES(*state, cases);
}

static void
dates_are_made_of_parts(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$dateFromParts':{'year':2024,'month':14,'day':0}}", "{}",
		  DATE("2025-01-31T00:00:00Z"), 0 },
		{ "{'$dateFromParts':{'year':2024,'hour':2,'timezone':'+02:00'}}", "{}",
		  DATE("2024-01-01T00:00:00Z"), 0 },
		{ "{'$dateFromParts':{'isoWeekYear':2020,'isoWeek':53,'isoDayOfWeek':7}}", "{}",
		  DATE("2021-01-03T00:00:00Z"), 0 },
		/* Clocks were put forward from 2 to 3, and back from 2 to 1. */
		{ "{'$dateFromParts':{'year':2024,'month':3,'day':10,'hour':2,'minute':30,"
		  "'timezone':'America/New_York'}}",
		  "{}", DATE("2024-03-10T07:30:00Z"), 0 },
		{ "{'$dateFromParts':{'year':2024,'month':11,'day':3,'hour':1,'minute':30,"
		  "'timezone':'America/New_York'}}",
		  "{}", DATE("2024-11-03T05:30:00Z"), 0 },
		{ "{'$dateFromParts':{'year':2024,'month':null}}", "{}", "null", 0 },
		{ "{'$dateFromParts':{'year':2024,'timezone':null}}", "{}", "null", 0 },
		{ "{'$dateFromParts':{'year':2024.5}}", "{}", NULL, 40515 },
		{ "{'$dateFromParts':{'year':0}}", "{}", NULL, 40523 },
		{ "{'$dateFromParts':{'year':1}}", "{}",
		  "{'$date':{'$numberLong':'-62135596800000'}}", 0 },
		{ "{'$dateFromParts':{'year':9999}}", "{}", "{'$date':'9999-01-01T00:00:00Z'}", 0 },
		{ "{'$dateFromParts':{'year':10000}}", "{}", NULL, 40523 },
		{ "{'$dateFromParts':{'isoWeekYear':0}}", "{}", NULL, 40523 },
		{ "{'$dateFromParts':{'isoWeekYear':9999}}", "{}",
		  "{'$date':'9999-01-04T00:00:00Z'}", 0 },
		{ "{'$dateFromParts':{'isoWeekYear':10000}}", "{}", NULL, 40523 },
		{ "{'$dateFromParts':{'year':2024,'day':40000}}", "{}", NULL, 31034 },
		{ "{'$dateFromParts':{'month':1}}", "{}", NULL, 40516 },
		{ "{'$dateFromParts':{'year':2024,'isoWeekYear':2024}}", "{}", NULL, 40489 },
		{ "{'$dateFromParts':{'year':2024,'isoWeek':1}}", "{}", NULL, 40489 },
		{ "{'$dateFromParts':{'year':2024,'isoDayOfWeek':1}}", "{}", NULL, 40489 },
		{ "{'$dateFromParts':{'isoWeekYear':2024,'month':1}}", "{}", NULL, 40525 },
		{ "{'$dateFromParts':{'isoWeekYear':2024,'day':1}}", "{}", NULL, 40525 },
		{ "{'$dateFromParts':1}", "{}", NULL, 40519 },
		{ "{'$dateFromParts':{'year':1,'x':1}}", "{}", NULL, 40518 },
	};

	EXPR_CASES(*state, cases);
}

static void
dates_become_texts(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$dateToString':{'date':'$d'}}", "{'d':" DATE("2024-02-29T03:04:05.006Z") "}",
		  "'2024-02-29T03:04:05.006Z'", 0 },
		{ "{'$dateToString':{'date':'$d','timezone':'-03:30'}}",
		  "{'d':" DATE("2024-02-29T03:04:05.006Z") "}", "'2024-02-28T23:34:05.006'", 0 },
		{ "{'$dateToString':{'date':'$d','format':'%G-W%V-%u %j %U %w %b %B %z %Z%%',"
		  "'timezone':'Asia/Kolkata'}}",
		  "{'d':" DATE("2024-06-15T00:00:00Z") "}",
		  "'2024-W24-6 167 23 7 Jun June +0530 +330%'", 0 },
		{ "{'$dateToString':{'date':null,'onNull':'x'}}", "{}", "'x'", 0 },
		{ "{'$dateToString':{'date':'$d','format':null}}",
		  "{'d':" DATE("2024-06-15T00:00:00Z") "}", "null", 0 },
		{ "{'$dateToString':{'date':'$d','format':'%q'}}",
		  "{'d':" DATE("2024-06-15T00:00:00Z") "}", NULL, 18536 },
		{ "{'$dateToString':{'date':'$d','format':'%'}}",
		  "{'d':" DATE("2024-06-15T00:00:00Z") "}", NULL, 18535 },
		{ "{'$dateToString':{'date':'$d','format':1}}",
		  "{'d':" DATE("2024-06-15T00:00:00Z") "}", NULL, 18533 },
		{ "{'$dateToString':{'date':'$d'}}",
		  "{'d':{'$date':{'$numberLong':'9223372036854775807'}}}", NULL, 18537 },
		{ "{'$dateToString':{'date':'$d','format':'%Y'}}",
		  "{'d':" DATE("9999-12-31T00:00:00Z") "}", "'9999'", 0 },
		{ "{'$dateToString':{'date':'$d','format':'%G'}}",
		  "{'d':" DATE("0000-01-03T00:00:00Z") "}", "'0000'", 0 },
		{ "{'$dateToString':{'date':{'$add':['$d',86400000]},'format':'%Y'}}",
		  "{'d':" DATE("9999-12-31T00:00:00Z") "}", NULL, 18537 },
		{ "{'$dateToString':{'date':{'$subtract':['$d',86400000]},'format':'%Y'}}",
		  "{'d':" DATE("0000-01-01T00:00:00Z") "}", NULL, 18537 },
		{ "{'$dateToString':{'date':{'$add':['$d',86400000]},'format':'%m'}}",
		  "{'d':" DATE("9999-12-31T00:00:00Z") "}", "'01'", 0 },
		{ "{'$dateToString':{}}", "{}", NULL, 18628 },
	};

	EXPR_CASES(*state, cases);
}

static void
texts_become_dates(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40.787Z'}}", "{}",
		  DATE("2017-02-08T12:10:40.787Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40+0500'}}", "{}",
		  DATE("2017-02-08T07:10:40Z"), 0 },
		{ "{'$dateFromString':{'dateString':'20170208'}}", "{}",
		  DATE("2017-02-08T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08 12:10','timezone':"
		  "'America/New_York'}}",
		  "{}", DATE("2017-02-08T17:10:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'October 20, 2020'}}", "{}",
		  DATE("2020-10-20T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'15/06-2018','format':'%d/%m-%Y'}}", "{}",
		  DATE("2018-06-15T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2024 167','format':'%Y %j'}}", "{}",
		  DATE("2024-06-15T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2024-W24-6','format':'%G-W%V-%u'}}", "{}",
		  DATE("2024-06-15T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2024-06-15 +330','format':'%Y-%m-%d %Z'}}",
		  "{}", DATE("2024-06-14T18:30:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08t12:10Z'}}", "{}",
		  DATE("2017-02-08T12:10:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12Z'}}", "{}",
		  DATE("2017-02-08T12:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T1210Z'}}", "{}",
		  DATE("2017-02-08T12:10:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T121059Z'}}", "{}",
		  DATE("2017-02-08T12:10:59Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:59,5Z'}}", "{}",
		  DATE("2017-02-08T12:10:59.500Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T24:00:00Z'}}", "{}",
		  DATE("2017-02-09T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08 '}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T24:00Z'}}", "{}",
		  DATE("2017-02-09T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T23:59:60Z'}}", "{}",
		  DATE("2017-02-09T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T24:01Z'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T24:00:01Z'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T25:00Z'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:60Z'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:61Z'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:1Z'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12UTC'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40Z','timezone':'UTC'}}",
		  "{}", DATE("2017-02-08T12:10:40Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40Z','timezone':'GMT'}}",
		  "{}", DATE("2017-02-08T12:10:40Z"), 0 },
		{ "{'$dateFromString':{'dateString':null,'onNull':1}}", "{}", "1", 0 },
		{ "{'$dateFromString':{'dateString':'x','onError':1}}", "{}", "1", 0 },
		{ "{'$dateFromString':{'dateString':1,'onError':'$x'}}", "{}", NULL, 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-30'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-00-08'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-13-08'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-00'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40Z','timezone':'+01:00'}}",
		  "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017','format':1}}", "{}", NULL, 40684 },
		{ "{'$dateFromString':{'dateString':'2017','format':'%q'}}", "{}", NULL, 18536 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40.Z'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40.1234567891Z'}}", "{}",
		  NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40+'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40+1'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40+01:'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40+01:x'}}", "{}", NULL,
		  241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40+01x'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:4'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T121'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-W'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-W5'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-W05-'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017/1'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017/x/1'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017/1/'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-x'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-01-'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'20171'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017013'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'1/2'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'1/x/2017'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'1/2/'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'1/2/17'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'July'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'July x'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'July 20'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'July 20,2017'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'July 20, 17'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'20 x'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'20 July'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'20 July 17'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'20July 2017'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'Julx 20, 2017'}}", "{}", NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40.5Z'}}", "{}",
		  DATE("2017-02-08T12:10:40.500Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40.123456789Z'}}", "{}",
		  DATE("2017-02-08T12:10:40.123Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40-01'}}", "{}",
		  DATE("2017-02-08T13:10:40Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02-08T12:10:40+01:30'}}", "{}",
		  DATE("2017-02-08T10:40:40Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-W06-3'}}", "{}",
		  DATE("2017-02-08T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017W06'}}", "{}",
		  DATE("2017-02-06T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017/2/8'}}", "{}",
		  DATE("2017-02-08T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-2-8'}}", "{}",
		  DATE("2017-02-08T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-02'}}", "{}",
		  DATE("2017-02-01T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2/8/2017'}}", "{}",
		  DATE("2017-02-08T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'8 February 2017'}}", "{}",
		  DATE("2017-02-08T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'Feb 8 2017'}}", "{}",
		  DATE("2017-02-08T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-1-2x','format':'%Y-%m-%dx'}}", "{}",
		  DATE("2017-01-02T00:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017 +1','format':'%Y %Z'}}", "{}", NULL,
		  241 },
		{ "{'$dateFromString':{'dateString':'2017-01-01 +','format':'%Y-%m-%d %Z'}}", "{}",
		  NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-01-01 x','format':'%Y-%m-%d %Z'}}", "{}",
		  NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-01-01 -90','format':'%Y-%m-%d %Z'}}",
		  "{}", DATE("2017-01-01T01:30:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-01-01 +01','format':'%Y-%m-%d %z'}}",
		  "{}", DATE("2016-12-31T23:00:00Z"), 0 },
		{ "{'$dateFromString':{'dateString':'2017-01-01 +x','format':'%Y-%m-%d %z'}}", "{}",
		  NULL, 241 },
		{ "{'$dateFromString':{'dateString':'2017-01-01','format':'%Y-%m'}}", "{}", NULL,
		  241 },
		{ "{'$dateFromString':{'dateString':'2017-01','format':'%Y-%m-%d'}}", "{}", NULL,
		  241 },
		{ "{'$dateFromString':{'format':'%Y'}}", "{}", NULL, 40542 },
	};

	EXPR_CASES(*state, cases);
}

static void
spans_are_added_counted_and_cut(void **state)
{
	static const struct expr_case cases[] = {
		{ "{'$dateAdd':{'startDate':'$d','unit':'month','amount':1}}",
		  "{'d':" DATE("2024-01-31T10:00:00Z") "}", DATE("2024-02-29T10:00:00Z"), 0 },
		{ "{'$dateSubtract':{'startDate':'$d','unit':'quarter','amount':1}}",
		  "{'d':" DATE("2024-05-31T10:00:00Z") "}", DATE("2024-02-29T10:00:00Z"), 0 },
		/* A day is as long as the zone has it. */
		{ "{'$dateAdd':{'startDate':'$d','unit':'day','amount':1,'timezone':"
		  "'America/New_York'}}",
		  "{'d':" DATE("2024-03-09T17:00:00Z") "}", DATE("2024-03-10T16:00:00Z"), 0 },
		{ "{'$dateAdd':{'startDate':'$d','unit':'hour','amount':24,'timezone':"
		  "'America/New_York'}}",
		  "{'d':" DATE("2024-03-09T17:00:00Z") "}", DATE("2024-03-10T17:00:00Z"), 0 },
		{ "{'$dateAdd':{'startDate':'$d','unit':'day','amount':null}}",
		  "{'d':" DATE("2024-03-09T17:00:00Z") "}", "null", 0 },
		{ "{'$dateAdd':{'startDate':'$d','unit':'day','amount':1.5}}",
		  "{'d':" DATE("2024-03-09T17:00:00Z") "}", NULL, 5166405 },
		{ "{'$dateAdd':{'startDate':1,'unit':'day','amount':1}}", "{}", NULL, 5166403 },
		{ "{'$dateAdd':{'startDate':'$d','unit':'eon','amount':1}}",
		  "{'d':" DATE("2024-03-09T17:00:00Z") "}", NULL, 9 },
		{ "{'$dateAdd':{'startDate':'$d','unit':'month','amount':{'$numberLong':"
		  "'-30000000000'}}}",
		  "{'d':" DATE("2024-03-09T17:00:00Z") "}", NULL, 5976500 },
		{ "{'$dateAdd':{'startDate':'$d','unit':'millisecond','amount':{'$numberLong':"
		  "'9223372036854775807'}}}",
		  "{'d':" DATE("2024-03-09T17:00:00Z") "}", NULL, 5166406 },
		{ "{'$dateAdd':{'startDate':'$d','unit':'day'}}", "{}", NULL, 5166402 },
		{ "{'$dateDiff':{'startDate':'$a','endDate':'$b','unit':'year'}}",
		  "{'a':" DATE("2023-12-31T23:59:59Z") ",'b':" DATE("2024-01-01T00:00:00Z") "}",
		  "{'$numberLong':'1'}", 0 },
		{ "{'$dateDiff':{'startDate':'$a','endDate':'$b','unit':'week'}}",
		  "{'a':" DATE("2024-06-15T00:00:00Z") ",'b':" DATE("2024-06-16T00:00:00Z") "}",
		  "{'$numberLong':'1'}", 0 },
		{ "{'$dateDiff':{'startDate':'$a','endDate':'$b','unit':'week','startOfWeek':"
		  "'Mon'}}",
		  "{'a':" DATE("2024-06-15T00:00:00Z") ",'b':" DATE("2024-06-16T00:00:00Z") "}",
		  "{'$numberLong':'0'}", 0 },
		{ "{'$dateDiff':{'startDate':'$a','endDate':'$b','unit':'hour','timezone':"
		  "'America/New_York'}}",
		  "{'a':" DATE("2024-03-10T05:00:00Z") ",'b':" DATE("2024-03-11T04:00:00Z") "}",
		  "{'$numberLong':'23'}", 0 },
		{ "{'$dateDiff':{'startDate':1,'endDate':'$a','unit':'day'}}",
		  "{'a':" DATE("2024-03-10T05:00:00Z") "}", NULL, 5166307 },
		{ "{'$dateDiff':{'startDate':'$a','endDate':'$a','unit':1}}",
		  "{'a':" DATE("2024-03-10T05:00:00Z") "}", NULL, 5439013 },
		{ "{'$dateDiff':{'startDate':'$a','unit':'day'}}", "{}", NULL, 5166304 },
		{ "{'$dateTrunc':{'date':'$d','unit':'month'}}",
		  "{'d':" DATE("2024-06-15T10:11:12Z") "}", DATE("2024-06-01T00:00:00Z"), 0 },
		{ "{'$dateTrunc':{'date':'$d','unit':'week'}}",
		  "{'d':" DATE("2024-06-15T10:11:12Z") "}", DATE("2024-06-09T00:00:00Z"), 0 },
		{ "{'$dateTrunc':{'date':'$d','unit':'hour','binSize':6}}",
		  "{'d':" DATE("1999-12-31T17:11:12Z") "}", DATE("1999-12-31T12:00:00Z"), 0 },
		{ "{'$dateTrunc':{'date':'$d','unit':'day','timezone':'America/New_York'}}",
		  "{'d':" DATE("2024-06-15T03:11:12Z") "}", DATE("2024-06-14T04:00:00Z"), 0 },
		{ "{'$dateTrunc':{'date':'$d','unit':'quarter','binSize':2}}",
		  "{'d':" DATE("2024-09-15T03:11:12Z") "}", DATE("2024-07-01T00:00:00Z"), 0 },
		{ "{'$dateTrunc':{'date':{'$date':{'$numberLong':'-9223372036854775808'}},"
		  "'unit':'year'}}",
		  "{}", NULL, 15 },
		{ "{'$dateTrunc':{'date':'$d','unit':'day','binSize':0}}",
		  "{'d':" DATE("2024-06-15T03:11:12Z") "}", NULL, 5439018 },
		{ "{'$dateTrunc':{'date':'$d','unit':'day','binSize':'1'}}",
		  "{'d':" DATE("2024-06-15T03:11:12Z") "}", NULL, 5439017 },
		{ "{'$dateTrunc':{'date':'$d','unit':'week','startOfWeek':'x'}}",
		  "{'d':" DATE("2024-06-15T03:11:12Z") "}", NULL, 5439016 },
		{ "{'$dateTrunc':{'unit':'day'}}", "{}", NULL, 5439009 },
	};

	EXPR_CASES(*state, cases);
}

static void
zones_are_written_with_signs_and_digits(void **state)
{
	static const struct {
		const char *zone;
		const char *hour; /* of what is midnight in UTC; NULL: it is no zone */
	} cases[] = {
		{ "+01", "1" },     { "+19", "19" },   { "-01", "23" },     { "+0130", "1" },
		{ "-0030", "23" },  { "+09:59", "9" }, { "UTC", "0" },      { "", NULL },
		{ "+1", NULL },     { "01", NULL },    { "+0/", NULL },     { "+0:", NULL },
		{ "+/0", NULL },    { "+:0", NULL },   { "+010", NULL },    { "+01:0", NULL },
		{ "+01:0/", NULL }, { "+01/", NULL },  { "+01:3:", NULL },  { "+01://", NULL },
		{ "+01::3", NULL }, { "+0a", NULL },   { "+01:300", NULL }, { "*01", NULL },
		{ "+01300", NULL }, { ",01", NULL },   { "+01:30 ", NULL },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		const struct expr_case c = { arena_printf(*state,
							  "{'$hour':{'date':'$d','timezone':'%s'}}",
							  cases[i].zone)
						     .ptr,
					     "{'d':" DATE("2024-01-01T00:00:00Z") "}",
					     cases[i].hour, cases[i].hour ? 0 : 40485 };

		case_check(*state, &c);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(dates_have_parts, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(dates_are_made_of_parts, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(dates_become_texts, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(texts_become_dates, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(spans_are_added_counted_and_cut, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(zones_are_written_with_signs_and_digits, case_setup,
						case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
