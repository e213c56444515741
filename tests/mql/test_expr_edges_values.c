/* Expressions on texts, bytes and dates at the edges of what they may be. */
#include "edges_case.h"

/* Texts that are almost a number, a date, an id, or are one. */
static const struct edge edge_texts[] = {
	{ "empty", "''" },
	{ "s0", "'0'" },
	{ "s-1", "'-1'" },
	{ "s+1", "'+1'" },
	{ "s1.5", "'1.5'" },
	{ "smax32", "'2147483647'" },
	{ "sover32", "'2147483648'" },
	{ "smin32", "'-2147483648'" },
	{ "sunder32", "'-2147483649'" },
	{ "smax64", "'9223372036854775807'" },
	{ "sover64", "'9223372036854775808'" },
	{ "sx", "'x'" },
	{ "s1x", "'1x'" },
	{ "sblank", "' 1'" },
	{ "shex", "'0x1F'" },
	{ "sNaN", "'NaN'" },
	{ "sInf", "'Infinity'" },
	{ "s1e400", "'1e400'" },
	{ "s1e7000", "'1e7000'" },
	{ "sdate", "'2024-02-29T12:30:45.678Z'" },
	{ "sday", "'2024-02-29'" },
	{ "sbadday", "'2023-02-29'" },
	{ "sid", "'0123456789abcdef01234567'" },
	{ "slongid", "'0123456789abcdef012345678'" },
	{ "sbadid", "'0123456789abcdef0123456g'" },
	{ "suuid", "'01234567-89ab-cdef-0123-456789abcdef'" },
	{ "sbaduuid", "'01234567-89ab-cdef-0123_456789abcdef'" },
	{ "sUpper", "'ABC'" },
	{ "sutf", "'\\u00e4\\u20ac'" },
};

/* Bytes of as many as a number or a UUID has, and of one more. */
static const struct edge edge_bytes[] = {
	{ "b0", "{'$binary':{'base64':'','subType':'00'}}" },
	{ "b1", "{'$binary':{'base64':'AQ==','subType':'00'}}" },
	{ "b2", "{'$binary':{'base64':'AQI=','subType':'00'}}" },
	{ "b3", "{'$binary':{'base64':'AQID','subType':'00'}}" },
	{ "b4", "{'$binary':{'base64':'AQIDBA==','subType':'00'}}" },
	{ "b5", "{'$binary':{'base64':'AQIDBAU=','subType':'00'}}" },
	{ "b8", "{'$binary':{'base64':'AQIDBAUGBwg=','subType':'00'}}" },
	{ "b9", "{'$binary':{'base64':'AQIDBAUGBwgJ','subType':'00'}}" },
	{ "b16", "{'$binary':{'base64':'AQIDBAUGBwgJCgsMDQ4PEA==','subType':'00'}}" },
	{ "uuid16", "{'$binary':{'base64':'AQIDBAUGBwgJCgsMDQ4PEA==','subType':'04'}}" },
	{ "uuid15", "{'$binary':{'base64':'AQIDBAUGBwgJCgsMDQ4P','subType':'04'}}" },
};

/* Dates, what is taken for one, and a few others. */
static const struct edge edge_dates[] = {
	{ "false", "false" },
	{ "true", "true" },
	{ "date0", "{'$date':0}" },
	{ "date-1", "{'$date':-1}" },
	{ "datemax", "{'$date':{'$numberLong':'9223372036854775807'}}" },
	{ "datemin", "{'$date':{'$numberLong':'-9223372036854775808'}}" },
	{ "datefar", "{'$date':{'$numberLong':'253402300800000'}}" },
	{ "date2000", "{'$date':'2000-02-29T23:59:59.999Z'}" },
	{ "date2021", "{'$date':'2021-01-03T00:00:00Z'}" },
	{ "ts", "{'$timestamp':{'t':4294967295,'i':4294967295}}" },
	{ "id", "{'$oid':'ffffffffffffffffffffffff'}" },
	{ "[]", "[]" },
	{ "[1]", "[1]" },
	{ "{}", "{}" },
};

static const struct edge_case texts_at_their_edges_cases[] = {
	{ "{'$toBool':'$a'}", "bool(true)", "" },
	{ "{'$toDate':'$a'}", "241", "sdate:date(1709209845678) sday:date(1709164800000)" },
	{ "{'$toDecimal':'$a'}", "241",
	  "s0:decimal(0) s-1:decimal(-1) s+1:decimal(1) s1.5:decimal(1.5) "
	  "smax32:decimal(2147483647) sover32:decimal(2147483648) smin32:decimal(-2147483648) "
	  "sunder32:decimal(-2147483649) smax64:decimal(92233720368547) "
	  "sover64:decimal(92233720368547) sNaN:decimal(NaN) sInf:decimal(Infinity) "
	  "s1e400:decimal(1E+400)" },
	{ "{'$toDouble':'$a'}", "241",
	  "s0:double(0) s-1:double(-1) s+1:double(1) s1.5:double(1.5) smax32:double(2147483647) "
	  "sover32:double(2147483648) smin32:double(-2147483648) sunder32:double(-2147483649) "
	  "smax64:double(9.223372037e+18) sover64:double(9.223372037e+18) "
	  "sNaN:double(NaN) sInf:double(inf)" },
	{ "{'$toInt':'$a'}", "241",
	  "s0:int(0) s-1:int(-1) s+1:int(1) smax32:int(2147483647) smin32:int(-2147483648)" },
	{ "{'$toLong':'$a'}", "241",
	  "s0:long(0) s-1:long(-1) s+1:long(1) smax32:long(2147483647) sover32:long(2147483648) "
	  "smin32:long(-2147483648) sunder32:long(-2147483649) smax64:long(9223372036854775807)" },
	{ "{'$toObjectId':'$a'}", "241", "sid:objectId" },
	{ "{'$toString':'$a'}", "string()",
	  "s0:string(0) s-1:string(-1) s+1:string(+1) s1.5:string(1.5) "
	  "smax32:string(2147483647) sover32:string(2147483648) smin32:string(-2147483648) "
	  "sunder32:string(-2147483649) smax64:string(9223372036854775807) "
	  "sover64:string(9223372036854775808) sx:string(x) s1x:string(1x) sblank:string[2] "
	  "shex:string(0x1F) sNaN:string(NaN) sInf:string(Infinity) s1e400:string(1e400) "
	  "s1e7000:string(1e7000) sdate:string(2024-02-29T12:30:45.678Z) "
	  "sday:string(2024-02-29) sbadday:string(2023-02-29) "
	  "sid:string(0123456789abcdef01234567) slongid:string(0123456789abcdef012345678) "
	  "sbadid:string(0123456789abcdef0123456g) "
	  "suuid:string(01234567-89ab-cdef-0123-456789abcdef) "
	  "sbaduuid:string(01234567-89ab-cdef-0123_456789abcdef) sUpper:string(ABC) "
	  "sutf:string[5]" },
	{ "{'$toUUID':'$a'}", "241", "suuid:binData(16,4)" },
	{ "{'$convert':{'input':'$a','to':'binData','format':'base64'}}", "241",
	  "empty:binData(0,0) shex:binData(3,0) sInf:binData(6,0) sid:binData(18,0) "
	  "sbadid:binData(18,0)" },
	{ "{'$convert':{'input':'$a','to':'binData','format':'base64url'}}", "241",
	  "empty:binData(0,0) smin32:binData(8,0) sover64:binData(14,0) shex:binData(3,0) "
	  "sInf:binData(6,0) sid:binData(18,0) sbadid:binData(18,0) suuid:binData(27,0) "
	  "sbaduuid:binData(27,0)" },
	{ "{'$convert':{'input':'$a','to':'binData','format':'hex'}}", "241",
	  "empty:binData(0,0) smax32:binData(5,0) sover32:binData(5,0) s1e7000:binData(3,0) "
	  "sid:binData(12,0)" },
	{ "{'$convert':{'input':'$a','to':'binData','format':'utf8'}}", "binData(2,0)",
	  "empty:binData(0,0) s0:binData(1,0) s1.5:binData(3,0) smax32:binData(10,0) "
	  "sover32:binData(10,0) smin32:binData(11,0) sunder32:binData(11,0) "
	  "smax64:binData(19,0) sover64:binData(19,0) sx:binData(1,0) shex:binData(4,0) "
	  "sNaN:binData(3,0) sInf:binData(8,0) s1e400:binData(5,0) s1e7000:binData(6,0) "
	  "sdate:binData(24,0) sday:binData(10,0) sbadday:binData(10,0) sid:binData(24,0) "
	  "slongid:binData(25,0) sbadid:binData(24,0) suuid:binData(36,0) "
	  "sbaduuid:binData(36,0) sUpper:binData(3,0) sutf:binData(5,0)" },
	{ "{'$convert':{'input':'$a','to':'binData','format':'uuid'}}", "241", "" },
	{ "{'$convert':{'input':'$a','to':'binData','format':'auto'}}", "binData(2,0)",
	  "empty:binData(0,0) s0:binData(1,0) s1.5:binData(3,0) smax32:binData(10,0) "
	  "sover32:binData(10,0) smin32:binData(11,0) sunder32:binData(11,0) "
	  "smax64:binData(19,0) sover64:binData(19,0) sx:binData(1,0) shex:binData(4,0) "
	  "sNaN:binData(3,0) sInf:binData(8,0) s1e400:binData(5,0) s1e7000:binData(6,0) "
	  "sdate:binData(24,0) sday:binData(10,0) sbadday:binData(10,0) sid:binData(24,0) "
	  "slongid:binData(25,0) sbadid:binData(24,0) suuid:binData(36,0) "
	  "sbaduuid:binData(36,0) sUpper:binData(3,0) sutf:binData(5,0)" },
	{ "{'$strLenBytes':'$a'}", "int(2)",
	  "empty:int(0) s0:int(1) s1.5:int(3) smax32:int(10) sover32:int(10) smin32:int(11) "
	  "sunder32:int(11) smax64:int(19) sover64:int(19) sx:int(1) shex:int(4) sNaN:int(3) "
	  "sInf:int(8) s1e400:int(5) s1e7000:int(6) sdate:int(24) sday:int(10) sbadday:int(10) "
	  "sid:int(24) slongid:int(25) sbadid:int(24) suuid:int(36) sbaduuid:int(36) "
	  "sUpper:int(3) sutf:int(5)" },
	{ "{'$strLenCP':'$a'}", "int(2)",
	  "empty:int(0) s0:int(1) s1.5:int(3) smax32:int(10) sover32:int(10) smin32:int(11) "
	  "sunder32:int(11) smax64:int(19) sover64:int(19) sx:int(1) shex:int(4) sNaN:int(3) "
	  "sInf:int(8) s1e400:int(5) s1e7000:int(6) sdate:int(24) sday:int(10) sbadday:int(10) "
	  "sid:int(24) slongid:int(25) sbadid:int(24) suuid:int(36) sbaduuid:int(36) "
	  "sUpper:int(3)" },
	{ "{'$toLower':'$a'}", "string()",
	  "s0:string(0) s-1:string(-1) s+1:string(+1) s1.5:string(1.5) "
	  "smax32:string(2147483647) sover32:string(2147483648) smin32:string(-2147483648) "
	  "sunder32:string(-2147483649) smax64:string(9223372036854775807) "
	  "sover64:string(9223372036854775808) sx:string(x) s1x:string(1x) sblank:string[2] "
	  "shex:string(0x1f) sNaN:string(nan) sInf:string(infinity) s1e400:string(1e400) "
	  "s1e7000:string(1e7000) sdate:string(2024-02-29t12:30:45.678z) "
	  "sday:string(2024-02-29) sbadday:string(2023-02-29) "
	  "sid:string(0123456789abcdef01234567) slongid:string(0123456789abcdef012345678) "
	  "sbadid:string(0123456789abcdef0123456g) "
	  "suuid:string(01234567-89ab-cdef-0123-456789abcdef) "
	  "sbaduuid:string(01234567-89ab-cdef-0123_456789abcdef) sUpper:string(abc) "
	  "sutf:string[5]" },
	{ "{'$toUpper':'$a'}", "string()",
	  "s0:string(0) s-1:string(-1) s+1:string(+1) s1.5:string(1.5) "
	  "smax32:string(2147483647) sover32:string(2147483648) smin32:string(-2147483648) "
	  "sunder32:string(-2147483649) smax64:string(9223372036854775807) "
	  "sover64:string(9223372036854775808) sx:string(X) s1x:string(1X) sblank:string[2] "
	  "shex:string(0X1F) sNaN:string(NAN) sInf:string(INFINITY) s1e400:string(1E400) "
	  "s1e7000:string(1E7000) sdate:string(2024-02-29T12:30:45.678Z) "
	  "sday:string(2024-02-29) sbadday:string(2023-02-29) "
	  "sid:string(0123456789ABCDEF01234567) slongid:string(0123456789ABCDEF012345678) "
	  "sbadid:string(0123456789ABCDEF0123456G) "
	  "suuid:string(01234567-89AB-CDEF-0123-456789ABCDEF) "
	  "sbaduuid:string(01234567-89AB-CDEF-0123_456789ABCDEF) sUpper:string(ABC) "
	  "sutf:string[5]" },
	{ "{'$binarySize':'$a'}", "int(2)",
	  "empty:int(0) s0:int(1) s1.5:int(3) smax32:int(10) sover32:int(10) smin32:int(11) "
	  "sunder32:int(11) smax64:int(19) sover64:int(19) sx:int(1) shex:int(4) sNaN:int(3) "
	  "sInf:int(8) s1e400:int(5) s1e7000:int(6) sdate:int(24) sday:int(10) sbadday:int(10) "
	  "sid:int(24) slongid:int(25) sbadid:int(24) suuid:int(36) sbaduuid:int(36) "
	  "sUpper:int(3) sutf:int(5)" },
	{ "{'$split':['$a','1']}", "array(2)",
	  "empty:array(1) s0:array(1) smax64:array(1) sover64:array(1) sx:array(1) "
	  "sNaN:array(1) sInf:array(1) sday:array(1) sbadday:array(1) sid:array(3) "
	  "slongid:array(3) sbadid:array(3) suuid:array(3) sbaduuid:array(3) sUpper:array(1) "
	  "sutf:array(1)" },
	{ "{'$trim':{'input':'$a'}}", "string()",
	  "s0:string(0) s-1:string(-1) s+1:string(+1) s1.5:string(1.5) "
	  "smax32:string(2147483647) sover32:string(2147483648) smin32:string(-2147483648) "
	  "sunder32:string(-2147483649) smax64:string(9223372036854775807) "
	  "sover64:string(9223372036854775808) sx:string(x) s1x:string(1x) sblank:string(1) "
	  "shex:string(0x1F) sNaN:string(NaN) sInf:string(Infinity) s1e400:string(1e400) "
	  "s1e7000:string(1e7000) sdate:string(2024-02-29T12:30:45.678Z) "
	  "sday:string(2024-02-29) sbadday:string(2023-02-29) "
	  "sid:string(0123456789abcdef01234567) slongid:string(0123456789abcdef012345678) "
	  "sbadid:string(0123456789abcdef0123456g) "
	  "suuid:string(01234567-89ab-cdef-0123-456789abcdef) "
	  "sbaduuid:string(01234567-89ab-cdef-0123_456789abcdef) sUpper:string(ABC) "
	  "sutf:string[5]" },
	{ "{'$trim':{'input':'$a','chars':'01'}}", "string()",
	  "s-1:string(-) s+1:string(+) s1.5:string(.5) smax32:string(2147483647) "
	  "sover32:string(2147483648) smin32:string(-2147483648) sunder32:string(-2147483649) "
	  "smax64:string(9223372036854775807) sover64:string(9223372036854775808) sx:string(x) "
	  "s1x:string(x) sblank:string[1] shex:string(x1F) sNaN:string(NaN) "
	  "sInf:string(Infinity) s1e400:string(e4) s1e7000:string(e7) "
	  "sdate:string(2024-02-29T12:30:45.678Z) sday:string(2024-02-29) "
	  "sbadday:string(2023-02-29) sid:string(23456789abcdef01234567) "
	  "slongid:string(23456789abcdef012345678) sbadid:string(23456789abcdef0123456g) "
	  "suuid:string(234567-89ab-cdef-0123-456789abcdef) "
	  "sbaduuid:string(234567-89ab-cdef-0123_456789abcdef) sUpper:string(ABC) "
	  "sutf:string[5]" },
	{ "{'$strcasecmp':['$a','abc']}", "int(-1)",
	  "sx:int(1) sNaN:int(1) sInf:int(1) sUpper:int(0) sutf:int(1)" },
	{ "{'$substrCP':['$a',1,2]}", "string(12)",
	  "empty:string() s0:string() s-1:string(1) s+1:string(1) s1.5:string(.5) "
	  "smax32:string(14) sover32:string(14) smin32:string(21) sunder32:string(21) "
	  "smax64:string(22) sover64:string(22) sx:string() s1x:string(x) sblank:string(1) "
	  "shex:string(x1) sNaN:string(aN) sInf:string(nf) s1e400:string(e4) s1e7000:string(e7) "
	  "sdate:string(02) sday:string(02) sbadday:string(02) sUpper:string(BC) sutf:string[3]" },
	{ "{'$indexOfCP':['$a','x']}", "int(-1)", "sx:int(0) s1x:int(1) shex:int(1)" },
	{ "{'$dateFromString':{'dateString':'$a'}}", "241",
	  "sdate:date(1709209845678) sday:date(1709164800000)" },
	{ "{'$concat':['$a','!']}", "string(!)",
	  "s0:string(0!) s-1:string(-1!) s+1:string(+1!) s1.5:string(1.5!) "
	  "smax32:string(2147483647!) sover32:string(2147483648!) smin32:string(-2147483648!) "
	  "sunder32:string(-2147483649!) smax64:string(9223372036854775807!) "
	  "sover64:string(9223372036854775808!) sx:string(x!) s1x:string(1x!) sblank:string[3] "
	  "shex:string(0x1F!) sNaN:string(NaN!) sInf:string(Infinity!) s1e400:string(1e400!) "
	  "s1e7000:string(1e7000!) sdate:string(2024-02-29T12:30:45.678Z!) "
	  "sday:string(2024-02-29!) sbadday:string(2023-02-29!) "
	  "sid:string(0123456789abcdef01234567!) slongid:string(0123456789abcdef012345678!) "
	  "sbadid:string(0123456789abcdef0123456g!) "
	  "suuid:string(01234567-89ab-cdef-0123-456789abcdef!) "
	  "sbaduuid:string(01234567-89ab-cdef-0123_456789abcdef!) sUpper:string(ABC!) "
	  "sutf:string[6]" },
	{ "{'$replaceAll':{'input':'$a','find':'1','replacement':'22'}}", "string()",
	  "s0:string(0) s-1:string(-22) s+1:string(+22) s1.5:string(22.5) "
	  "smax32:string(22247483647) sover32:string(22247483648) smin32:string(-22247483648) "
	  "sunder32:string(-22247483649) smax64:string(9223372036854775807) "
	  "sover64:string(9223372036854775808) sx:string(x) s1x:string(22x) sblank:string[3] "
	  "shex:string(0x22F) sNaN:string(NaN) sInf:string(Infinity) s1e400:string(22e400) "
	  "s1e7000:string(22e7000) sdate:string(2024-02-29T222:30:45.678Z) "
	  "sday:string(2024-02-29) sbadday:string(2023-02-29) "
	  "sid:string(02223456789abcdef022234567) slongid:string(02223456789abcdef0222345678) "
	  "sbadid:string(02223456789abcdef02223456g) "
	  "suuid:string(022234567-89ab-cdef-02223-456789abcdef) "
	  "sbaduuid:string(022234567-89ab-cdef-02223_456789abcdef) sUpper:string(ABC) "
	  "sutf:string[5]" },
	{ "{'$regexMatch':{'input':'$a','regex':'^[0-9]+$'}}", "bool(false)",
	  "s0:bool(true) smax32:bool(true) sover32:bool(true) smax64:bool(true) "
	  "sover64:bool(true)" },
};

static void
texts_at_their_edges(void **state)
{
	(void)state;
	check_edges(edge_texts, CASES(edge_texts), texts_at_their_edges_cases,
		    CASES(texts_at_their_edges_cases));
}

static const struct edge_case bytes_at_their_edges_cases[] = {
	{ "{'$toBool':'$a'}", "bool(true)", "" },
	{ "{'$toDate':'$a'}", "241", "" },
	{ "{'$toDecimal':'$a'}", "241", "" },
	{ "{'$toDouble':'$a'}", "241", "b4:double(1.539989614e-36) b8:double(5.447603722e-270)" },
	{ "{'$toInt':'$a'}", "241", "b1:int(1) b2:int(513) b4:int(67305985)" },
	{ "{'$toLong':'$a'}", "241",
	  "b1:long(1) b2:long(513) b4:long(67305985) b8:long(578437695752307201)" },
	{ "{'$toObjectId':'$a'}", "241", "" },
	{ "{'$toString':'$a'}", "string()",
	  "b1:string(AQ==) b2:string(AQI=) b3:string(AQID) b4:string(AQIDBA==) "
	  "b5:string(AQIDBAU=) b8:string(AQIDBAUGBwg=) b9:string(AQIDBAUGBwgJ) "
	  "b16:string(AQIDBAUGBwgJCgsMDQ4PEA==) "
	  "uuid16:string(01020304-0506-0708-090a-0b0c0d0e0f10) "
	  "uuid15:string(AQIDBAUGBwgJCgsMDQ4P)" },
	{ "{'$toUUID':'$a'}", "241", "uuid16:binData(16,4) uuid15:binData(15,4)" },
	{ "{'$convert':{'input':'$a','to':'string','format':'base64'}}",
	  "string(AQIDBAUGBwgJCgsMDQ4PEA==)",
	  "b0:string() b1:string(AQ==) b2:string(AQI=) b3:string(AQID) b4:string(AQIDBA==) "
	  "b5:string(AQIDBAU=) b8:string(AQIDBAUGBwg=) b9:string(AQIDBAUGBwgJ) "
	  "uuid15:string(AQIDBAUGBwgJCgsMDQ4P)" },
	{ "{'$convert':{'input':'$a','to':'string','format':'base64url'}}",
	  "string(AQIDBAUGBwgJCgsMDQ4PEA)",
	  "b0:string() b1:string(AQ) b2:string(AQI) b3:string(AQID) b4:string(AQIDBA) "
	  "b5:string(AQIDBAU) b8:string(AQIDBAUGBwg) b9:string(AQIDBAUGBwgJ) "
	  "uuid15:string(AQIDBAUGBwgJCgsMDQ4P)" },
	{ "{'$convert':{'input':'$a','to':'string','format':'hex'}}",
	  "string(0102030405060708090A0B0C0D0E0F10)",
	  "b0:string() b1:string(01) b2:string(0102) b3:string(010203) b4:string(01020304) "
	  "b5:string(0102030405) b8:string(0102030405060708) b9:string(010203040506070809) "
	  "uuid15:string(0102030405060708090A0B0C0D0E0F)" },
	{ "{'$convert':{'input':'$a','to':'string','format':'utf8'}}", "string[16]",
	  "b0:string() b1:string[1] b2:string[2] b3:string[3] b4:string[4] b5:string[5] "
	  "b8:string[8] b9:string[9] uuid15:string[15]" },
	{ "{'$convert':{'input':'$a','to':'string','format':'uuid'}}", "241",
	  "uuid16:string(01020304-0506-0708-090a-0b0c0d0e0f10)" },
	{ "{'$convert':{'input':'$a','to':'string','format':'auto'}}", "string()",
	  "b1:string(AQ==) b2:string(AQI=) b3:string(AQID) b4:string(AQIDBA==) "
	  "b5:string(AQIDBAU=) b8:string(AQIDBAUGBwg=) b9:string(AQIDBAUGBwgJ) "
	  "b16:string(AQIDBAUGBwgJCgsMDQ4PEA==) "
	  "uuid16:string(01020304-0506-0708-090a-0b0c0d0e0f10) "
	  "uuid15:string(AQIDBAUGBwgJCgsMDQ4P)" },
	{ "{'$convert':{'input':'$a','to':'int','byteOrder':'big'}}", "241",
	  "b1:int(1) b2:int(258) b4:int(16909060)" },
	{ "{'$convert':{'input':'$a','to':'int','byteOrder':'little'}}", "241",
	  "b1:int(1) b2:int(513) b4:int(67305985)" },
	{ "{'$convert':{'input':'$a','to':'long','byteOrder':'big'}}", "241",
	  "b1:long(1) b2:long(258) b4:long(16909060) b8:long(72623859790382856)" },
	{ "{'$convert':{'input':'$a','to':'long','byteOrder':'little'}}", "241",
	  "b1:long(1) b2:long(513) b4:long(67305985) b8:long(578437695752307201)" },
	{ "{'$convert':{'input':'$a','to':'double','byteOrder':'big'}}", "241",
	  "b4:double(2.387939261e-38) b8:double(8.207880399e-304)" },
	{ "{'$convert':{'input':'$a','to':'double','byteOrder':'little'}}", "241",
	  "b4:double(1.539989614e-36) b8:double(5.447603722e-270)" },
	{ "{'$binarySize':'$a'}", "int(16)",
	  "b0:int(0) b1:int(1) b2:int(2) b3:int(3) b4:int(4) b5:int(5) b8:int(8) b9:int(9) "
	  "uuid15:int(15)" },
};

static void
bytes_at_their_edges(void **state)
{
	(void)state;
	check_edges(edge_bytes, CASES(edge_bytes), bytes_at_their_edges_cases,
		    CASES(bytes_at_their_edges_cases));
}

static const struct edge_case dates_at_their_edges_cases[] = {
	{ "{'$toBool':'$a'}", "bool(true)", "false:bool(false)" },
	{ "{'$toDate':'$a'}", "241",
	  "date0:date(0) date-1:date(-1) datemax:date(9223372036854775807) "
	  "datemin:date(-9223372036854775808) datefar:date(253402300800000) "
	  "date2000:date(951868799999) date2021:date(1609632000000) ts:date(4294967295000) "
	  "id:date(4294967295000)" },
	{ "{'$toDecimal':'$a'}", "241",
	  "false:decimal(0) true:decimal(1) date0:decimal(0) date-1:decimal(-1) "
	  "datemax:decimal(92233720368547) datemin:decimal(-9223372036854) "
	  "datefar:decimal(25340230080000) date2000:decimal(951868799999) "
	  "date2021:decimal(1609632000000)" },
	{ "{'$toDouble':'$a'}", "241",
	  "false:double(0) true:double(1) date0:double(0) date-1:double(-1) "
	  "datemax:double(9.223372037e+18) datemin:double(-9.223372037e+18) "
	  "datefar:double(2.534023008e+14) date2000:double(9.518688e+11) "
	  "date2021:double(1.609632e+12)" },
	{ "{'$toInt':'$a'}", "241", "false:int(0) true:int(1)" },
	{ "{'$toLong':'$a'}", "241",
	  "false:long(0) true:long(1) date0:long(0) date-1:long(-1) "
	  "datemax:long(9223372036854775807) datemin:long(-9223372036854775808) "
	  "datefar:long(253402300800000) date2000:long(951868799999) "
	  "date2021:long(1609632000000)" },
	{ "{'$toObjectId':'$a'}", "241", "id:objectId" },
	{ "{'$toString':'$a'}", "241",
	  "false:string(false) true:string(true) date0:string(1970-01-01T00:00:00.000Z) "
	  "date-1:string(1969-12-31T23:59:59.999Z) datemax:18537 datemin:18537 datefar:18537 "
	  "date2000:string(2000-02-29T23:59:59.999Z) date2021:string(2021-01-03T00:00:00.000Z) "
	  "id:string(ffffffffffffffffffffffff)" },
	{ "{'$toUUID':'$a'}", "241", "" },
	{ "{'$dayOfMonth':'$a'}", "16006",
	  "date0:int(1) date-1:int(31) datemax:int(17) datemin:int(16) datefar:int(1) "
	  "date2000:int(29) date2021:int(3) ts:int(7) id:int(7)" },
	{ "{'$dayOfWeek':'$a'}", "16006",
	  "date0:int(5) date-1:int(4) datemax:int(1) datemin:int(1) datefar:int(7) "
	  "date2000:int(3) date2021:int(1) ts:int(1) id:int(1)" },
	{ "{'$dayOfYear':'$a'}", "16006",
	  "date0:int(1) date-1:int(365) datemax:int(229) datemin:int(136) datefar:int(1) "
	  "date2000:int(60) date2021:int(3) ts:int(38) id:int(38)" },
	{ "{'$hour':'$a'}", "16006",
	  "date0:int(0) date-1:int(23) datemax:int(7) datemin:int(16) datefar:int(0) "
	  "date2000:int(23) date2021:int(0) ts:int(6) id:int(6)" },
	{ "{'$isoDayOfWeek':'$a'}", "16006",
	  "date0:int(4) date-1:int(3) datemax:int(7) datemin:int(7) datefar:int(6) "
	  "date2000:int(2) date2021:int(7) ts:int(7) id:int(7)" },
	{ "{'$isoWeek':'$a'}", "16006",
	  "date0:int(1) date-1:int(1) datemax:int(33) datemin:int(19) datefar:int(52) "
	  "date2000:int(9) date2021:int(53) ts:int(5) id:int(5)" },
	{ "{'$isoWeekYear':'$a'}", "16006",
	  "date0:long(1970) date-1:long(1970) datemax:long(292278994) datemin:long(-292275055) "
	  "datefar:long(9999) date2000:long(2000) date2021:long(2020) ts:long(2106) "
	  "id:long(2106)" },
	{ "{'$millisecond':'$a'}", "16006",
	  "date0:int(0) date-1:int(999) datemax:int(807) datemin:int(192) datefar:int(0) "
	  "date2000:int(999) date2021:int(0) ts:int(0) id:int(0)" },
	{ "{'$minute':'$a'}", "16006",
	  "date0:int(0) date-1:int(59) datemax:int(12) datemin:int(47) datefar:int(0) "
	  "date2000:int(59) date2021:int(0) ts:int(28) id:int(28)" },
	{ "{'$month':'$a'}", "16006",
	  "date0:int(1) date-1:int(12) datemax:int(8) datemin:int(5) datefar:int(1) "
	  "date2000:int(2) date2021:int(1) ts:int(2) id:int(2)" },
	{ "{'$second':'$a'}", "16006",
	  "date0:int(0) date-1:int(59) datemax:int(55) datemin:int(4) datefar:int(0) "
	  "date2000:int(59) date2021:int(0) ts:int(15) id:int(15)" },
	{ "{'$week':'$a'}", "16006",
	  "date0:int(0) date-1:int(52) datemax:int(33) datemin:int(20) datefar:int(0) "
	  "date2000:int(9) date2021:int(1) ts:int(6) id:int(6)" },
	{ "{'$year':'$a'}", "16006",
	  "date0:int(1970) date-1:int(1969) datemax:int(292278994) datemin:int(-292275055) "
	  "datefar:int(10000) date2000:int(2000) date2021:int(2021) ts:int(2106) id:int(2106)" },
	{ "{'$dateToString':{'date':'$a'}}", "16006",
	  "date0:string(1970-01-01T00:00:00.000Z) date-1:string(1969-12-31T23:59:59.999Z) "
	  "datemax:18537 datemin:18537 datefar:18537 date2000:string(2000-02-29T23:59:59.999Z) "
	  "date2021:string(2021-01-03T00:00:00.000Z) ts:string(2106-02-07T06:28:15.000Z) "
	  "id:string(2106-02-07T06:28:15.000Z)" },
	{ "{'$dateTrunc':{'date':'$a','unit':'year'}}", "16006",
	  "date0:date(0) date-1:date(-31536000000) datemax:date(9223372017129600000) datemin:15 "
	  "datefar:date(253402300800000) date2000:date(946684800000) "
	  "date2021:date(1609459200000) ts:date(4291747200000) id:date(4291747200000)" },
	{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':'$a','unit':'year'}}", "5166307",
	  "date0:long(0) date-1:long(-1) datemax:long(292277024) datemin:long(-292277025) "
	  "datefar:long(8030) date2000:long(30) date2021:long(51) ts:long(136) id:long(136)" },
	{ "{'$dateAdd':{'startDate':'$a','unit':'year','amount':1}}", "5166403",
	  "date0:date(31536000000) date-1:date(31535999999) datemax:5166406 "
	  "datemin:date(-9223372005318775808) datefar:date(253433923200000) "
	  "date2000:date(983404799999) date2021:date(1641168000000) ts:date(4326503295000) "
	  "id:date(4326503295000)" },
	{ "{'$dateTrunc':{'date':'$a','unit':'quarter'}}", "16006",
	  "date0:date(0) date-1:date(-7948800000) datemax:date(9223372032768000000) datemin:15 "
	  "datefar:date(253402300800000) date2000:date(946684800000) "
	  "date2021:date(1609459200000) ts:date(4291747200000) id:date(4291747200000)" },
	{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':'$a','unit':'quarter'}}", "5166307",
	  "date0:long(0) date-1:long(-1) datemax:long(1169108098) datemin:long(-1169108099) "
	  "datefar:long(32120) date2000:long(120) date2021:long(204) ts:long(544) id:long(544)" },
	{ "{'$dateAdd':{'startDate':'$a','unit':'quarter','amount':1}}", "5166403",
	  "date0:date(7776000000) date-1:date(7775999999) datemax:5166406 "
	  "datemin:date(-9223372028905975808) datefar:date(253410163200000) "
	  "date2000:date(959644799999) date2021:date(1617408000000) ts:date(4302656895000) "
	  "id:date(4302656895000)" },
	{ "{'$dateTrunc':{'date':'$a','unit':'month'}}", "16006",
	  "date0:date(0) date-1:date(-2678400000) datemax:date(9223372035446400000) datemin:15 "
	  "datefar:date(253402300800000) date2000:date(949363200000) "
	  "date2021:date(1609459200000) ts:date(4294425600000) id:date(4294425600000)" },
	{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':'$a','unit':'month'}}", "5166307",
	  "date0:long(0) date-1:long(-1) datemax:long(3507324295) datemin:long(-3507324296) "
	  "datefar:long(96360) date2000:long(361) date2021:long(612) ts:long(1633) "
	  "id:long(1633)" },
	{ "{'$dateAdd':{'startDate':'$a','unit':'month','amount':1}}", "5166403",
	  "date0:date(2678400000) date-1:date(2678399999) datemax:5166406 "
	  "datemin:date(-9223372034176375808) datefar:date(253404979200000) "
	  "date2000:date(954374399999) date2021:date(1612310400000) ts:date(4297386495000) "
	  "id:date(4297386495000)" },
	{ "{'$dateTrunc':{'date':'$a','unit':'week'}}", "16006",
	  "date0:date(-345600000) date-1:date(-345600000) datemax:date(9223372036828800000) "
	  "datemin:15 datefar:date(253401782400000) date2000:date(951609600000) "
	  "date2021:date(1609632000000) ts:date(4294944000000) id:date(4294944000000)" },
	{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':'$a','unit':'week'}}", "5166307",
	  "date0:long(0) date-1:long(0) datemax:long(15250284453) datemin:long(-15250284452) "
	  "datefar:long(418985) date2000:long(1574) date2021:long(2662) ts:long(7102) "
	  "id:long(7102)" },
	{ "{'$dateAdd':{'startDate':'$a','unit':'week','amount':1}}", "5166403",
	  "date0:date(604800000) date-1:date(604799999) datemax:5166406 "
	  "datemin:date(-9223372036249975808) datefar:date(253402905600000) "
	  "date2000:date(952473599999) date2021:date(1610236800000) ts:date(4295572095000) "
	  "id:date(4295572095000)" },
	{ "{'$dateTrunc':{'date':'$a','unit':'day'}}", "16006",
	  "date0:date(0) date-1:date(-86400000) datemax:date(9223372036828800000) datemin:15 "
	  "datefar:date(253402300800000) date2000:date(951782400000) "
	  "date2021:date(1609632000000) ts:date(4294944000000) id:date(4294944000000)" },
	{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':'$a','unit':'day'}}", "5166307",
	  "date0:long(0) date-1:long(-1) datemax:long(106751991167) datemin:long(-106751991168) "
	  "datefar:long(2932897) date2000:long(11016) date2021:long(18630) ts:long(49710) "
	  "id:long(49710)" },
	{ "{'$dateAdd':{'startDate':'$a','unit':'day','amount':1}}", "5166403",
	  "date0:date(86400000) date-1:date(86399999) datemax:5166406 "
	  "datemin:date(-9223372036768375808) datefar:date(253402387200000) "
	  "date2000:date(951955199999) date2021:date(1609718400000) ts:date(4295053695000) "
	  "id:date(4295053695000)" },
	{ "{'$dateTrunc':{'date':'$a','unit':'hour'}}", "16006",
	  "date0:date(0) date-1:date(-3600000) datemax:date(9223372036854000000) datemin:15 "
	  "datefar:date(253402300800000) date2000:date(951865200000) "
	  "date2021:date(1609632000000) ts:date(4294965600000) id:date(4294965600000)" },
	{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':'$a','unit':'hour'}}", "5166307",
	  "date0:long(0) date-1:long(-1) datemax:long(2562047788015) "
	  "datemin:long(-2562047788016) datefar:long(70389528) date2000:long(264407) "
	  "date2021:long(447120) ts:long(1193046) id:long(1193046)" },
	{ "{'$dateAdd':{'startDate':'$a','unit':'hour','amount':1}}", "5166403",
	  "date0:date(3600000) date-1:date(3599999) datemax:5166406 "
	  "datemin:date(-9223372036851175808) datefar:date(253402304400000) "
	  "date2000:date(951872399999) date2021:date(1609635600000) ts:date(4294970895000) "
	  "id:date(4294970895000)" },
	{ "{'$dateTrunc':{'date':'$a','unit':'minute'}}", "16006",
	  "date0:date(0) date-1:date(-60000) datemax:date(9223372036854720000) datemin:15 "
	  "datefar:date(253402300800000) date2000:date(951868740000) "
	  "date2021:date(1609632000000) ts:date(4294967280000) id:date(4294967280000)" },
	{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':'$a','unit':'minute'}}", "5166307",
	  "date0:long(0) date-1:long(-1) datemax:long(153722867280912) "
	  "datemin:long(-153722867280913) datefar:long(4223371680) date2000:long(15864479) "
	  "date2021:long(26827200) ts:long(71582788) id:long(71582788)" },
	{ "{'$dateAdd':{'startDate':'$a','unit':'minute','amount':1}}", "5166403",
	  "date0:date(60000) date-1:date(59999) datemax:5166406 "
	  "datemin:date(-9223372036854715808) datefar:date(253402300860000) "
	  "date2000:date(951868859999) date2021:date(1609632060000) ts:date(4294967355000) "
	  "id:date(4294967355000)" },
	{ "{'$dateTrunc':{'date':'$a','unit':'second'}}", "16006",
	  "date0:date(0) date-1:date(-1000) datemax:date(9223372036854775000) datemin:15 "
	  "datefar:date(253402300800000) date2000:date(951868799000) "
	  "date2021:date(1609632000000) ts:date(4294967295000) id:date(4294967295000)" },
	{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':'$a','unit':'second'}}", "5166307",
	  "date0:long(0) date-1:long(-1) datemax:long(9223372036854775) "
	  "datemin:long(-9223372036854776) datefar:long(253402300800) date2000:long(951868799) "
	  "date2021:long(1609632000) ts:long(4294967295) id:long(4294967295)" },
	{ "{'$dateAdd':{'startDate':'$a','unit':'second','amount':1}}", "5166403",
	  "date0:date(1000) date-1:date(999) datemax:5166406 datemin:date(-9223372036854774808) "
	  "datefar:date(253402300801000) date2000:date(951868800999) "
	  "date2021:date(1609632001000) ts:date(4294967296000) id:date(4294967296000)" },
	{ "{'$dateTrunc':{'date':'$a','unit':'millisecond'}}", "16006",
	  "date0:date(0) date-1:date(-1) datemax:date(9223372036854775807) "
	  "datemin:date(-9223372036854775808) datefar:date(253402300800000) "
	  "date2000:date(951868799999) date2021:date(1609632000000) ts:date(4294967295000) "
	  "id:date(4294967295000)" },
	{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':'$a','unit':'millisecond'}}", "5166307",
	  "date0:long(0) date-1:long(-1) datemax:long(9223372036854775807) "
	  "datemin:long(-9223372036854775808) datefar:long(253402300800000) "
	  "date2000:long(951868799999) date2021:long(1609632000000) ts:long(4294967295000) "
	  "id:long(4294967295000)" },
	{ "{'$dateAdd':{'startDate':'$a','unit':'millisecond','amount':1}}", "5166403",
	  "date0:date(1) date-1:date(0) datemax:5166406 datemin:date(-9223372036854775807) "
	  "datefar:date(253402300800001) date2000:date(951868800000) "
	  "date2021:date(1609632000001) ts:date(4294967295001) id:date(4294967295001)" },
};

static void
dates_at_their_edges(void **state)
{
	(void)state;
	check_edges(edge_dates, CASES(edge_dates), dates_at_their_edges_cases,
		    CASES(dates_at_their_edges_cases));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_at_their_edges),
		cmocka_unit_test(bytes_at_their_edges),
		cmocka_unit_test(dates_at_their_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
