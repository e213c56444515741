/* Expressions on numbers at the edges of their types. */
#include "edges_case.h"

/* Numbers at the edges of their types. A name that begins with d is that of a Decimal128. */
static const struct edge edge_numbers[] = {
	{ "0", "0" },
	{ "-1", "-1" },
	{ "max32", "2147483647" },
	{ "min32", "-2147483648" },
	{ "over32", "{'$numberLong':'2147483648'}" },
	{ "under32", "{'$numberLong':'-2147483649'}" },
	{ "max64", "{'$numberLong':'9223372036854775807'}" },
	{ "min64", "{'$numberLong':'-9223372036854775808'}" },
	{ "0.5", "0.5" },
	{ "-0.5", "-0.5" },
	{ "2.5", "2.5" },
	{ "-0.0", "{'$numberDouble':'-0.0'}" },
	{ "2^31", "2147483648.0" },
	{ "-2^31", "-2147483648.0" },
	{ "2^63", "9223372036854775808.0" },
	{ "-2^63", "-9223372036854775808.0" },
	{ "1e300", "1e300" },
	{ "NaN", "{'$numberDouble':'NaN'}" },
	{ "Inf", "{'$numberDouble':'Infinity'}" },
	{ "-Inf", "{'$numberDouble':'-Infinity'}" },
	{ "d0", "{'$numberDecimal':'0'}" },
	{ "d-2.5", "{'$numberDecimal':'-2.5'}" },
	{ "d0.5", "{'$numberDecimal':'0.5'}" },
	{ "d2^31", "{'$numberDecimal':'2147483648'}" },
	{ "dmax64", "{'$numberDecimal':'9223372036854775807'}" },
	{ "d2^63", "{'$numberDecimal':'9223372036854775808'}" },
	{ "dmin64", "{'$numberDecimal':'-9223372036854775808'}" },
	{ "d1E400", "{'$numberDecimal':'1E+400'}" },
	{ "dNaN", "{'$numberDecimal':'NaN'}" },
	{ "dInf", "{'$numberDecimal':'Infinity'}" },
	{ "d-Inf", "{'$numberDecimal':'-Infinity'}" },
};

static const struct edge_case numbers_are_computed_at_their_edges_cases[] = {
	{ "{'$abs':'$a'}", "decimal(92233720368547)",
	  "0:int(0) -1:int(1) max32:int(2147483647) min32:long(2147483648) "
	  "over32:long(2147483648) under32:long(2147483649) max64:long(9223372036854775807) "
	  "min64:28680 0.5:double(0.5) -0.5:double(0.5) 2.5:double(2.5) -0.0:double(0) "
	  "2^31:double(2147483648) -2^31:double(2147483648) 2^63:double(9.223372037e+18) "
	  "-2^63:double(9.223372037e+18) 1e300:double(1e+300) NaN:double(NaN) Inf:double(inf) "
	  "-Inf:double(inf) d0:decimal(0) d-2.5:decimal(2.5) d0.5:decimal(0.5) "
	  "d2^31:decimal(2147483648) d1E400:decimal(1E+400) dNaN:decimal(NaN) "
	  "dInf:decimal(Infinity) d-Inf:decimal(Infinity)" },
	{ "{'$ceil':'$a'}", "decimal(NaN)",
	  "0:int(0) -1:int(-1) max32:int(2147483647) min32:int(-2147483648) "
	  "over32:long(2147483648) under32:long(-2147483649) max64:long(9223372036854775807) "
	  "min64:long(-9223372036854775808) 0.5:double(1) -0.5:double(-0) 2.5:double(3) "
	  "-0.0:double(-0) 2^31:double(2147483648) -2^31:double(-2147483648) "
	  "2^63:double(9.223372037e+18) -2^63:double(-9.223372037e+18) 1e300:double(1e+300) "
	  "NaN:double(NaN) Inf:double(inf) -Inf:double(-inf) d0:decimal(0) d-2.5:decimal(-2) "
	  "d0.5:decimal(1) d2^31:decimal(2147483648) dmax64:decimal(92233720368547) "
	  "d2^63:decimal(92233720368547) dmin64:decimal(-9223372036854)" },
	{ "{'$floor':'$a'}", "decimal(NaN)",
	  "0:int(0) -1:int(-1) max32:int(2147483647) min32:int(-2147483648) "
	  "over32:long(2147483648) under32:long(-2147483649) max64:long(9223372036854775807) "
	  "min64:long(-9223372036854775808) 0.5:double(0) -0.5:double(-1) 2.5:double(2) "
	  "-0.0:double(-0) 2^31:double(2147483648) -2^31:double(-2147483648) "
	  "2^63:double(9.223372037e+18) -2^63:double(-9.223372037e+18) 1e300:double(1e+300) "
	  "NaN:double(NaN) Inf:double(inf) -Inf:double(-inf) d0:decimal(0) d-2.5:decimal(-3) "
	  "d0.5:decimal(0) d2^31:decimal(2147483648) dmax64:decimal(92233720368547) "
	  "d2^63:decimal(92233720368547) dmin64:decimal(-9223372036854)" },
	{ "{'$ln':'$a'}", "28766",
	  "max32:double(21.4875626) over32:double(21.4875626) max64:double(43.66827238) "
	  "0.5:double(-0.6931471806) 2.5:double(0.9162907319) 2^31:double(21.4875626) "
	  "2^63:double(43.66827238) 1e300:double(690.7755279) NaN:double(NaN) Inf:double(inf) "
	  "d0.5:decimal(-0.69314718055) d2^31:decimal(21.48756259735) "
	  "dmax64:decimal(43.66827237527) d2^63:decimal(43.66827237527) "
	  "d1E400:decimal(921.0340371976) dNaN:decimal(NaN) dInf:decimal(Infinity)" },
	{ "{'$sqrt':'$a'}", "28714",
	  "0:double(0) max32:double(46340.95) over32:double(46340.95001) "
	  "max64:double(3037000500) 0.5:double(0.7071067812) 2.5:double(1.58113883) "
	  "-0.0:double(-0) 2^31:double(46340.95001) 2^63:double(3037000500) "
	  "1e300:double(1e+150) NaN:double(NaN) Inf:double(inf) d0:decimal(0) "
	  "d0.5:decimal(0.707106781186) d2^31:decimal(46340.95001184) "
	  "dmax64:decimal(3037000499.976) d2^63:decimal(3037000499.976) d1E400:decimal(1E+200) "
	  "dNaN:decimal(NaN) dInf:decimal(Infinity)" },
	{ "{'$round':'$a'}", "double(-0)",
	  "0:int(0) -1:int(-1) max32:int(2147483647) min32:int(-2147483648) "
	  "over32:long(2147483648) under32:long(-2147483649) max64:long(9223372036854775807) "
	  "min64:long(-9223372036854775808) 0.5:double(0) 2.5:double(2) 2^31:double(2147483648) "
	  "-2^31:double(-2147483648) 2^63:double(9.223372037e+18) "
	  "-2^63:double(-9.223372037e+18) 1e300:double(1e+300) NaN:double(NaN) Inf:double(inf) "
	  "-Inf:double(-inf) d0:decimal(0) d-2.5:decimal(-2) d0.5:decimal(0) "
	  "d2^31:decimal(2147483648) dmax64:decimal(92233720368547) "
	  "d2^63:decimal(92233720368547) dmin64:decimal(-9223372036854) d1E400:decimal(1E+400) "
	  "dNaN:decimal(NaN) dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$acos':'$a'}", "50989",
	  "0:double(1.570796327) -1:double(3.141592654) 0.5:double(1.047197551) "
	  "-0.5:double(2.094395102) -0.0:double(1.570796327) NaN:double(NaN) "
	  "d0:decimal(1.570796326794) d0.5:decimal(1.047197551196) dNaN:decimal(NaN)" },
	{ "{'$acosh':'$a'}", "50989",
	  "max32:double(22.18070978) over32:double(22.18070978) max64:double(44.36141956) "
	  "2.5:double(1.566799237) 2^31:double(22.18070978) 2^63:double(44.36141956) "
	  "1e300:double(691.4686751) NaN:double(NaN) Inf:double(inf) "
	  "d2^31:decimal(22.18070977791) dmax64:decimal(44.36141955583) "
	  "d2^63:decimal(44.36141955583) d1E400:decimal(921.7271843781) dNaN:decimal(NaN) "
	  "dInf:decimal(Infinity)" },
	{ "{'$atanh':'$a'}", "50989",
	  "0:double(0) -1:double(-inf) 0.5:double(0.5493061443) -0.5:double(-0.5493061443) "
	  "-0.0:double(-0) NaN:double(NaN) d0:decimal(0E-6176) d0.5:decimal(0.549306144334) "
	  "dNaN:decimal(NaN)" },
	{ "{'$bitNot':'$a'}", "14",
	  "0:int(-1) -1:int(0) max32:int(-2147483648) min32:int(2147483647) "
	  "over32:long(-2147483649) under32:long(2147483648) max64:long(-9223372036854775808) "
	  "min64:long(9223372036854775807)" },
	{ "{'$add':['$a',1]}", "double(9.223372037e+18)",
	  "0:int(1) -1:int(0) max32:long(2147483648) min32:int(-2147483647) "
	  "over32:long(2147483649) under32:long(-2147483648) min64:long(-9223372036854775807) "
	  "0.5:double(1.5) -0.5:double(0.5) 2.5:double(3.5) -0.0:double(1) "
	  "2^31:double(2147483649) -2^31:double(-2147483647) -2^63:double(-9.223372037e+18) "
	  "1e300:double(1e+300) NaN:double(NaN) Inf:double(inf) -Inf:double(-inf) d0:decimal(1) "
	  "d-2.5:decimal(-1.5) d0.5:decimal(1.5) d2^31:decimal(2147483649) "
	  "dmax64:decimal(92233720368547) d2^63:decimal(92233720368547) "
	  "dmin64:decimal(-9223372036854) d1E400:decimal(1.000000000000) dNaN:decimal(NaN) "
	  "dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$subtract':['$a',1]}", "double(-9.223372037e+18)",
	  "0:int(-1) -1:int(-2) max32:int(2147483646) min32:long(-2147483649) "
	  "over32:long(2147483647) under32:long(-2147483650) max64:long(9223372036854775806) "
	  "0.5:double(-0.5) -0.5:double(-1.5) 2.5:double(1.5) -0.0:double(-1) "
	  "2^31:double(2147483647) -2^31:double(-2147483649) 2^63:double(9.223372037e+18) "
	  "1e300:double(1e+300) NaN:double(NaN) Inf:double(inf) -Inf:double(-inf) "
	  "d0:decimal(-1) d-2.5:decimal(-3.5) d0.5:decimal(-0.5) d2^31:decimal(2147483647) "
	  "dmax64:decimal(92233720368547) d2^63:decimal(92233720368547) "
	  "dmin64:decimal(-9223372036854) d1E400:decimal(1.000000000000) dNaN:decimal(NaN) "
	  "dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$subtract':[1,'$a']}", "double(9.223372037e+18)",
	  "0:int(1) -1:int(2) max32:int(-2147483646) min32:long(2147483649) "
	  "over32:long(-2147483647) under32:long(2147483650) max64:long(-9223372036854775806) "
	  "0.5:double(0.5) -0.5:double(1.5) 2.5:double(-1.5) -0.0:double(1) "
	  "2^31:double(-2147483647) -2^31:double(2147483649) 2^63:double(-9.223372037e+18) "
	  "1e300:double(-1e+300) NaN:double(NaN) Inf:double(-inf) -Inf:double(inf) "
	  "d0:decimal(1) d-2.5:decimal(3.5) d0.5:decimal(0.5) d2^31:decimal(-2147483647) "
	  "dmax64:decimal(-9223372036854) d2^63:decimal(-9223372036854) "
	  "dmin64:decimal(92233720368547) d1E400:decimal(-1.00000000000) dNaN:decimal(NaN) "
	  "dInf:decimal(-Infinity) d-Inf:decimal(Infinity)" },
	{ "{'$multiply':['$a',1]}", "decimal(92233720368547)",
	  "0:int(0) -1:int(-1) max32:int(2147483647) min32:int(-2147483648) "
	  "over32:long(2147483648) under32:long(-2147483649) max64:long(9223372036854775807) "
	  "min64:long(-9223372036854775808) 0.5:double(0.5) -0.5:double(-0.5) 2.5:double(2.5) "
	  "-0.0:double(-0) 2^31:double(2147483648) -2^31:double(-2147483648) "
	  "2^63:double(9.223372037e+18) -2^63:double(-9.223372037e+18) 1e300:double(1e+300) "
	  "NaN:double(NaN) Inf:double(inf) -Inf:double(-inf) d0:decimal(0) d-2.5:decimal(-2.5) "
	  "d0.5:decimal(0.5) d2^31:decimal(2147483648) dmin64:decimal(-9223372036854) "
	  "d1E400:decimal(1E+400) dNaN:decimal(NaN) dInf:decimal(Infinity) "
	  "d-Inf:decimal(-Infinity)" },
	{ "{'$divide':['$a',1]}", "double(-2147483648)",
	  "0:double(0) -1:double(-1) max32:double(2147483647) over32:double(2147483648) "
	  "under32:double(-2147483649) max64:double(9.223372037e+18) "
	  "min64:double(-9.223372037e+18) 0.5:double(0.5) -0.5:double(-0.5) 2.5:double(2.5) "
	  "-0.0:double(-0) 2^31:double(2147483648) 2^63:double(9.223372037e+18) "
	  "-2^63:double(-9.223372037e+18) 1e300:double(1e+300) NaN:double(NaN) Inf:double(inf) "
	  "-Inf:double(-inf) d0:decimal(0) d-2.5:decimal(-2.5) d0.5:decimal(0.5) "
	  "d2^31:decimal(2147483648) dmax64:decimal(92233720368547) "
	  "d2^63:decimal(92233720368547) dmin64:decimal(-9223372036854) d1E400:decimal(1E+400) "
	  "dNaN:decimal(NaN) dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$divide':[1,'$a']}", "2",
	  "-1:double(-1) max32:double(4.656612875e-10) min32:double(-4.656612873e-10) "
	  "over32:double(4.656612873e-10) under32:double(-4.656612871e-10) "
	  "max64:double(1.084202172e-19) min64:double(-1.084202172e-19) 0.5:double(2) "
	  "-0.5:double(-2) 2.5:double(0.4) 2^31:double(4.656612873e-10) "
	  "-2^31:double(-4.656612873e-10) 2^63:double(1.084202172e-19) "
	  "-2^63:double(-1.084202172e-19) 1e300:double(1e-300) NaN:double(NaN) Inf:double(0) "
	  "-Inf:double(-0) d-2.5:decimal(-0.4) d0.5:decimal(2) d2^31:decimal(4.656612873077) "
	  "dmax64:decimal(1.084202172485) d2^63:decimal(1.084202172485) "
	  "dmin64:decimal(-1.08420217248) d1E400:decimal(1E-400) dNaN:decimal(NaN) "
	  "dInf:decimal(0E-6176) d-Inf:decimal(-0E-6176)" },
	{ "{'$mod':['$a',1]}", "decimal(0)",
	  "0:int(0) -1:int(0) max32:int(0) min32:int(0) over32:long(0) under32:long(0) "
	  "max64:long(0) min64:long(0) 0.5:double(0.5) -0.5:double(-0.5) 2.5:double(0.5) "
	  "-0.0:double(-0) 2^31:double(0) -2^31:double(-0) 2^63:double(0) -2^63:double(-0) "
	  "1e300:double(0) NaN:double(NaN) Inf:double(NaN) -Inf:double(NaN) d-2.5:decimal(-0.5) "
	  "d0.5:decimal(0.5) dmin64:decimal(-0) dNaN:decimal(NaN) dInf:decimal(NaN) "
	  "d-Inf:decimal(NaN)" },
	{ "{'$mod':[1,'$a']}", "double(1)",
	  "0:16610 -1:int(0) max32:int(1) min32:int(1) over32:long(1) under32:long(1) "
	  "max64:long(1) min64:long(1) 0.5:double(0) -0.5:double(0) -0.0:16610 NaN:double(NaN) "
	  "d0:5733415 d-2.5:decimal(1.0) d0.5:decimal(0.0) d2^31:decimal(1) dmax64:decimal(1) "
	  "d2^63:decimal(1) dmin64:decimal(1) d1E400:decimal(1) dNaN:decimal(NaN) "
	  "dInf:decimal(1) d-Inf:decimal(1)" },
	{ "{'$pow':['$a',1]}", "decimal(92233720368547)",
	  "0:int(0) -1:int(-1) max32:int(2147483647) min32:int(-2147483648) "
	  "over32:long(2147483648) under32:long(-2147483649) max64:long(9223372036854775807) "
	  "min64:long(-9223372036854775808) 0.5:double(0.5) -0.5:double(-0.5) 2.5:double(2.5) "
	  "-0.0:double(-0) 2^31:double(2147483648) -2^31:double(-2147483648) "
	  "2^63:double(9.223372037e+18) -2^63:double(-9.223372037e+18) 1e300:double(1e+300) "
	  "NaN:double(NaN) Inf:double(inf) -Inf:double(-inf) d0:decimal(0E-6176) "
	  "d-2.5:decimal(-2.50000000000) d0.5:decimal(0.500000000000) "
	  "d2^31:decimal(2147483648.000) dmin64:decimal(-9223372036854) "
	  "d1E400:decimal(1.000000000000) dNaN:decimal(NaN) dInf:decimal(Infinity) "
	  "d-Inf:decimal(-Infinity)" },
	{ "{'$pow':[1,'$a']}", "double(1)",
	  "0:int(1) -1:int(1) max32:int(1) min32:int(1) over32:long(1) under32:long(1) "
	  "max64:long(1) min64:long(1) d0:decimal(1.000000000000) d-2.5:decimal(1.000000000000) "
	  "d0.5:decimal(1.000000000000) d2^31:decimal(1.000000000000) "
	  "dmax64:decimal(1.000000000000) d2^63:decimal(1.000000000000) "
	  "dmin64:decimal(1.000000000000) d1E400:decimal(1.000000000000) "
	  "dNaN:decimal(1.000000000000) dInf:decimal(1.000000000000) "
	  "d-Inf:decimal(1.000000000000)" },
	{ "{'$add':['$a',{'$numberLong':'9223372036854775807'}]}", "double(9.223372037e+18)",
	  "0:long(9223372036854775807) -1:long(9223372036854775806) "
	  "max32:double(9.223372039e+18) min32:long(9223372034707292159) "
	  "over32:double(9.223372039e+18) under32:long(9223372034707292158) "
	  "max64:double(1.844674407e+19) min64:long(-1) 2^31:double(9.223372039e+18) "
	  "-2^31:double(9.223372035e+18) 2^63:double(1.844674407e+19) -2^63:double(-1) "
	  "1e300:double(1e+300) NaN:double(NaN) Inf:double(inf) -Inf:double(-inf) "
	  "d0:decimal(92233720368547) d-2.5:decimal(92233720368547) "
	  "d0.5:decimal(92233720368547) d2^31:decimal(92233720390022) "
	  "dmax64:decimal(18446744073709) d2^63:decimal(18446744073709) dmin64:decimal(-1) "
	  "d1E400:decimal(1.000000000000) dNaN:decimal(NaN) dInf:decimal(Infinity) "
	  "d-Inf:decimal(-Infinity)" },
	{ "{'$subtract':['$a',{'$numberLong':'9223372036854775807'}]}", "double(-9.223372037e+18)",
	  "0:long(-9223372036854775807) -1:long(-9223372036854775808) "
	  "max32:long(-9223372034707292160) min32:double(-9.223372039e+18) "
	  "over32:long(-9223372034707292159) under32:double(-9.223372039e+18) max64:long(0) "
	  "min64:double(-1.844674407e+19) 2^31:double(-9.223372035e+18) "
	  "-2^31:double(-9.223372039e+18) 2^63:double(0) -2^63:double(-1.844674407e+19) "
	  "1e300:double(1e+300) NaN:double(NaN) Inf:double(inf) -Inf:double(-inf) "
	  "d0:decimal(-9223372036854) d-2.5:decimal(-9223372036854) "
	  "d0.5:decimal(-9223372036854) d2^31:decimal(-9223372034707) dmax64:decimal(0) "
	  "d2^63:decimal(1) dmin64:decimal(-1844674407370) d1E400:decimal(1.000000000000) "
	  "dNaN:decimal(NaN) dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$subtract':[{'$numberLong':'9223372036854775807'},'$a']}", "double(9.223372037e+18)",
	  "0:long(9223372036854775807) max32:long(9223372034707292160) "
	  "min32:double(9.223372039e+18) over32:long(9223372034707292159) "
	  "under32:double(9.223372039e+18) max64:long(0) min64:double(1.844674407e+19) "
	  "2^31:double(9.223372035e+18) -2^31:double(9.223372039e+18) 2^63:double(0) "
	  "-2^63:double(1.844674407e+19) 1e300:double(-1e+300) NaN:double(NaN) Inf:double(-inf) "
	  "-Inf:double(inf) d0:decimal(92233720368547) d-2.5:decimal(92233720368547) "
	  "d0.5:decimal(92233720368547) d2^31:decimal(92233720347072) dmax64:decimal(0) "
	  "d2^63:decimal(-1) dmin64:decimal(18446744073709) d1E400:decimal(-1.00000000000) "
	  "dNaN:decimal(NaN) dInf:decimal(-Infinity) d-Inf:decimal(Infinity)" },
	{ "{'$multiply':['$a',{'$numberLong':'9223372036854775807'}]}", "double(-1.980704063e+28)",
	  "0:long(0) -1:long(-9223372036854775807) max32:double(1.980704062e+28) "
	  "over32:double(1.980704063e+28) under32:double(-1.980704064e+28) "
	  "max64:double(8.507059173e+37) min64:double(-8.507059173e+37) "
	  "0.5:double(4.611686018e+18) -0.5:double(-4.611686018e+18) "
	  "2.5:double(2.305843009e+19) -0.0:double(-0) 2^31:double(1.980704063e+28) "
	  "2^63:double(8.507059173e+37) -2^63:double(-8.507059173e+37) 1e300:double(inf) "
	  "NaN:double(NaN) Inf:double(inf) -Inf:double(-inf) d0:decimal(0) "
	  "d-2.5:decimal(-2305843009213) d0.5:decimal(46116860184273) "
	  "d2^31:decimal(19807040628566) dmax64:decimal(8.507059173023) "
	  "d2^63:decimal(8.507059173023) dmin64:decimal(-8.50705917302) "
	  "d1E400:decimal(9.223372036854) dNaN:decimal(NaN) dInf:decimal(Infinity) "
	  "d-Inf:decimal(-Infinity)" },
	{ "{'$divide':['$a',{'$numberLong':'9223372036854775807'}]}", "double(-2.328306437e-10)",
	  "0:double(0) -1:double(-1.084202172e-19) max32:double(2.328306435e-10) "
	  "over32:double(2.328306437e-10) under32:double(-2.328306438e-10) max64:double(1) "
	  "min64:double(-1) 0.5:double(5.421010862e-20) -0.5:double(-5.421010862e-20) "
	  "2.5:double(2.710505431e-19) -0.0:double(-0) 2^31:double(2.328306437e-10) "
	  "2^63:double(1) -2^63:double(-1) 1e300:double(1.084202172e+281) NaN:double(NaN) "
	  "Inf:double(inf) -Inf:double(-inf) d0:decimal(0) d-2.5:decimal(-2.71050543121) "
	  "d0.5:decimal(5.421010862427) d2^31:decimal(2.328306436538) dmax64:decimal(1) "
	  "d2^63:decimal(1.000000000000) dmin64:decimal(-1.00000000000) "
	  "d1E400:decimal(1.084202172485) dNaN:decimal(NaN) dInf:decimal(Infinity) "
	  "d-Inf:decimal(-Infinity)" },
	{ "{'$divide':[{'$numberLong':'9223372036854775807'},'$a']}", "2",
	  "-1:double(-9.223372037e+18) max32:double(4294967298) min32:double(-4294967296) "
	  "over32:double(4294967296) under32:double(-4294967294) max64:double(1) "
	  "min64:double(-1) 0.5:double(1.844674407e+19) -0.5:double(-1.844674407e+19) "
	  "2.5:double(3.689348815e+18) 2^31:double(4294967296) -2^31:double(-4294967296) "
	  "2^63:double(1) -2^63:double(-1) 1e300:double(9.223372037e-282) NaN:double(NaN) "
	  "Inf:double(0) -Inf:double(-0) d-2.5:decimal(-3689348814741) "
	  "d0.5:decimal(18446744073709) d2^31:decimal(4294967295.999) dmax64:decimal(1) "
	  "d2^63:decimal(0.999999999999) dmin64:decimal(-0.99999999999) "
	  "d1E400:decimal(9.223372036854) dNaN:decimal(NaN) dInf:decimal(0E-6176) "
	  "d-Inf:decimal(-0E-6176)" },
	{ "{'$mod':['$a',{'$numberLong':'9223372036854775807'}]}", "double(NaN)",
	  "0:long(0) -1:long(-1) max32:long(2147483647) min32:long(-2147483648) "
	  "over32:long(2147483648) under32:long(-2147483649) max64:long(0) min64:long(-1) "
	  "0.5:double(0.5) -0.5:double(-0.5) 2.5:double(2.5) -0.0:double(-0) "
	  "2^31:double(2147483648) -2^31:double(-2147483648) 2^63:double(0) -2^63:double(-0) "
	  "1e300:double(0) d0:decimal(0) d-2.5:decimal(-2.5) d0.5:decimal(0.5) "
	  "d2^31:decimal(2147483648) dmax64:decimal(0) d2^63:decimal(1) dmin64:decimal(-1) "
	  "d1E400:decimal(19463322483753) dNaN:decimal(NaN) dInf:decimal(NaN) "
	  "d-Inf:decimal(NaN)" },
	{ "{'$mod':[{'$numberLong':'9223372036854775807'},'$a']}", "double(0)",
	  "0:16610 -1:long(0) max32:long(1) min32:long(2147483647) over32:long(2147483647) "
	  "under32:long(1) max64:long(0) min64:long(9223372036854775807) 2.5:double(0.5) "
	  "-0.0:16610 1e300:double(9.223372037e+18) NaN:double(NaN) Inf:double(9.223372037e+18) "
	  "-Inf:double(9.223372037e+18) d0:5733415 d-2.5:decimal(2.0) d0.5:decimal(0.0) "
	  "d2^31:decimal(2147483647) dmax64:decimal(0) d2^63:decimal(92233720368547) "
	  "dmin64:decimal(92233720368547) d1E400:decimal(92233720368547) dNaN:decimal(NaN) "
	  "dInf:decimal(92233720368547) d-Inf:decimal(92233720368547)" },
	{ "{'$pow':['$a',{'$numberLong':'9223372036854775807'}]}", "double(inf)",
	  "0:long(0) -1:long(-1) 0.5:double(0) -0.5:double(0) -0.0:double(0) NaN:double(NaN) "
	  "d0:decimal(0E-6176) d-2.5:decimal(Infinity) d0.5:decimal(0E-6176) "
	  "d2^31:decimal(Infinity) dmax64:decimal(Infinity) d2^63:decimal(Infinity) "
	  "dmin64:decimal(Infinity) d1E400:decimal(Infinity) dNaN:decimal(NaN) "
	  "dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$pow':[{'$numberLong':'9223372036854775807'},'$a']}", "double(inf)",
	  "0:long(1) -1:double(1.084202172e-19) min32:double(0) under32:double(0) "
	  "min64:double(0) 0.5:double(3037000500) -0.5:double(3.29272254e-10) "
	  "2.5:double(2.583594296e+47) -0.0:double(1) -2^31:double(0) -2^63:double(0) "
	  "NaN:double(NaN) -Inf:double(0) d0:decimal(1.000000000000) "
	  "d-2.5:decimal(3.870576744493) d0.5:decimal(3037000499.976) d2^31:decimal(Infinity) "
	  "dmax64:decimal(Infinity) d2^63:decimal(Infinity) dmin64:decimal(0E-6176) "
	  "d1E400:decimal(Infinity) dNaN:decimal(NaN) dInf:decimal(Infinity) "
	  "d-Inf:decimal(0E-6176)" },
	{ "{'$add':['$a',{'$numberLong':'-9223372036854775808'}]}", "double(-9.223372037e+18)",
	  "0:long(-9223372036854775808) max32:long(-9223372034707292161) "
	  "min32:double(-9.223372039e+18) over32:long(-9223372034707292160) "
	  "under32:double(-9.223372039e+18) max64:long(-1) min64:double(-1.844674407e+19) "
	  "2^31:double(-9.223372035e+18) -2^31:double(-9.223372039e+18) 2^63:double(0) "
	  "-2^63:double(-1.844674407e+19) 1e300:double(1e+300) NaN:double(NaN) Inf:double(inf) "
	  "-Inf:double(-inf) d0:decimal(-9223372036854) d-2.5:decimal(-9223372036854) "
	  "d0.5:decimal(-9223372036854) d2^31:decimal(-9223372034707) dmax64:decimal(-1) "
	  "d2^63:decimal(0) dmin64:decimal(-1844674407370) d1E400:decimal(1.000000000000) "
	  "dNaN:decimal(NaN) dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$subtract':['$a',{'$numberLong':'-9223372036854775808'}]}", "double(9.223372037e+18)",
	  "-1:long(9223372036854775807) max32:double(9.223372039e+18) "
	  "min32:long(9223372034707292160) over32:double(9.223372039e+18) "
	  "under32:long(9223372034707292159) max64:double(1.844674407e+19) min64:long(0) "
	  "2^31:double(9.223372039e+18) -2^31:double(9.223372035e+18) "
	  "2^63:double(1.844674407e+19) -2^63:double(0) 1e300:double(1e+300) NaN:double(NaN) "
	  "Inf:double(inf) -Inf:double(-inf) d0:decimal(92233720368547) "
	  "d-2.5:decimal(92233720368547) d0.5:decimal(92233720368547) "
	  "d2^31:decimal(92233720390022) dmax64:decimal(18446744073709) "
	  "d2^63:decimal(18446744073709) dmin64:decimal(0) d1E400:decimal(1.000000000000) "
	  "dNaN:decimal(NaN) dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$subtract':[{'$numberLong':'-9223372036854775808'},'$a']}", "double(-9.223372037e+18)",
	  "0:long(-9223372036854775808) -1:long(-9223372036854775807) "
	  "max32:double(-9.223372039e+18) min32:long(-9223372034707292160) "
	  "over32:double(-9.223372039e+18) under32:long(-9223372034707292159) "
	  "max64:double(-1.844674407e+19) min64:long(0) 2^31:double(-9.223372039e+18) "
	  "-2^31:double(-9.223372035e+18) 2^63:double(-1.844674407e+19) -2^63:double(0) "
	  "1e300:double(-1e+300) NaN:double(NaN) Inf:double(-inf) -Inf:double(inf) "
	  "d0:decimal(-9223372036854) d-2.5:decimal(-9223372036854) "
	  "d0.5:decimal(-9223372036854) d2^31:decimal(-9223372039002) "
	  "dmax64:decimal(-1844674407370) d2^63:decimal(-1844674407370) dmin64:decimal(0) "
	  "d1E400:decimal(-1.00000000000) dNaN:decimal(NaN) dInf:decimal(-Infinity) "
	  "d-Inf:decimal(Infinity)" },
	{ "{'$multiply':['$a',{'$numberLong':'-9223372036854775808'}]}", "double(1.980704063e+28)",
	  "0:long(0) -1:double(9.223372037e+18) max32:double(-1.980704062e+28) "
	  "over32:double(-1.980704063e+28) under32:double(1.980704064e+28) "
	  "max64:double(-8.507059173e+37) min64:double(8.507059173e+37) "
	  "0.5:double(-4.611686018e+18) -0.5:double(4.611686018e+18) "
	  "2.5:double(-2.305843009e+19) -0.0:double(0) 2^31:double(-1.980704063e+28) "
	  "2^63:double(-8.507059173e+37) -2^63:double(8.507059173e+37) 1e300:double(-inf) "
	  "NaN:double(NaN) Inf:double(-inf) -Inf:double(inf) d0:decimal(-0) "
	  "d-2.5:decimal(23058430092136) d0.5:decimal(-4611686018427) "
	  "d2^31:decimal(-1980704062856) dmax64:decimal(-8.50705917302) "
	  "d2^63:decimal(-8.50705917302) dmin64:decimal(8.507059173023) "
	  "d1E400:decimal(-9.22337203685) dNaN:decimal(NaN) dInf:decimal(-Infinity) "
	  "d-Inf:decimal(Infinity)" },
	{ "{'$divide':['$a',{'$numberLong':'-9223372036854775808'}]}", "double(2.328306437e-10)",
	  "0:double(-0) -1:double(1.084202172e-19) max32:double(-2.328306435e-10) "
	  "over32:double(-2.328306437e-10) under32:double(2.328306438e-10) max64:double(-1) "
	  "min64:double(1) 0.5:double(-5.421010862e-20) -0.5:double(5.421010862e-20) "
	  "2.5:double(-2.710505431e-19) -0.0:double(0) 2^31:double(-2.328306437e-10) "
	  "2^63:double(-1) -2^63:double(1) 1e300:double(-1.084202172e+281) NaN:double(NaN) "
	  "Inf:double(-inf) -Inf:double(inf) d0:decimal(-0) d-2.5:decimal(2.710505431213) "
	  "d0.5:decimal(-5.42101086242) d2^31:decimal(-2.32830643653) "
	  "dmax64:decimal(-0.99999999999) d2^63:decimal(-1) dmin64:decimal(1) "
	  "d1E400:decimal(-1.08420217248) dNaN:decimal(NaN) dInf:decimal(-Infinity) "
	  "d-Inf:decimal(Infinity)" },
	{ "{'$divide':[{'$numberLong':'-9223372036854775808'},'$a']}", "2",
	  "-1:double(9.223372037e+18) max32:double(-4294967298) min32:double(4294967296) "
	  "over32:double(-4294967296) under32:double(4294967294) max64:double(-1) "
	  "min64:double(1) 0.5:double(-1.844674407e+19) -0.5:double(1.844674407e+19) "
	  "2.5:double(-3.689348815e+18) 2^31:double(-4294967296) -2^31:double(4294967296) "
	  "2^63:double(-1) -2^63:double(1) 1e300:double(-9.223372037e-282) NaN:double(NaN) "
	  "Inf:double(-0) -Inf:double(0) d-2.5:decimal(36893488147419) "
	  "d0.5:decimal(-1844674407370) d2^31:decimal(-4294967296) "
	  "dmax64:decimal(-1.00000000000) d2^63:decimal(-1) dmin64:decimal(1) "
	  "d1E400:decimal(-9.22337203685) dNaN:decimal(NaN) dInf:decimal(-0E-6176) "
	  "d-Inf:decimal(0E-6176)" },
	{ "{'$mod':['$a',{'$numberLong':'-9223372036854775808'}]}", "double(NaN)",
	  "0:long(0) -1:long(-1) max32:long(2147483647) min32:long(-2147483648) "
	  "over32:long(2147483648) under32:long(-2147483649) max64:long(9223372036854775807) "
	  "min64:long(0) 0.5:double(0.5) -0.5:double(-0.5) 2.5:double(2.5) -0.0:double(-0) "
	  "2^31:double(2147483648) -2^31:double(-2147483648) 2^63:double(0) -2^63:double(-0) "
	  "1e300:double(0) d0:decimal(0) d-2.5:decimal(-2.5) d0.5:decimal(0.5) "
	  "d2^31:decimal(2147483648) dmax64:decimal(92233720368547) d2^63:decimal(0) "
	  "dmin64:decimal(-0) d1E400:decimal(0) dNaN:decimal(NaN) dInf:decimal(NaN) "
	  "d-Inf:decimal(NaN)" },
	{ "{'$mod':[{'$numberLong':'-9223372036854775808'},'$a']}", "double(-0)",
	  "0:16610 -1:long(0) max32:long(-2) min32:long(0) over32:long(0) under32:long(-2) "
	  "max64:long(-1) min64:long(0) 2.5:double(-0.5) -0.0:16610 "
	  "1e300:double(-9.223372037e+18) NaN:double(NaN) Inf:double(-9.223372037e+18) "
	  "-Inf:double(-9.223372037e+18) d0:5733415 d-2.5:decimal(-0.5) d0.5:decimal(-0.0) "
	  "d2^31:decimal(-0) dmax64:decimal(-1) d2^63:decimal(-0) dmin64:decimal(-0) "
	  "d1E400:decimal(-9223372036854) dNaN:decimal(NaN) dInf:decimal(-9223372036854) "
	  "d-Inf:decimal(-9223372036854)" },
	{ "{'$pow':['$a',{'$numberLong':'-9223372036854775808'}]}", "double(0)",
	  "0:28764 -1:long(1) 0.5:double(inf) -0.5:double(inf) -0.0:28764 NaN:double(NaN) "
	  "d0:28764 d-2.5:decimal(0E-6176) d0.5:decimal(Infinity) d2^31:decimal(0E-6176) "
	  "dmax64:decimal(0E-6176) d2^63:decimal(0E-6176) dmin64:decimal(0E-6176) "
	  "d1E400:decimal(0E-6176) dNaN:decimal(NaN) dInf:decimal(0E-6176) "
	  "d-Inf:decimal(0E-6176)" },
	{ "{'$pow':[{'$numberLong':'-9223372036854775808'},'$a']}", "double(inf)",
	  "0:long(1) -1:double(-1.084202172e-19) max32:double(-inf) min32:double(0) "
	  "under32:double(-0) min64:double(0) 0.5:double(NaN) -0.5:double(NaN) 2.5:double(NaN) "
	  "-0.0:double(1) -2^31:double(0) -2^63:double(0) NaN:double(NaN) -Inf:double(0) "
	  "d0:decimal(1.000000000000) d-2.5:decimal(NaN) d0.5:decimal(NaN) "
	  "d2^31:decimal(Infinity) dmax64:decimal(Infinity) d2^63:decimal(Infinity) "
	  "dmin64:decimal(0E-6176) d1E400:decimal(Infinity) dNaN:decimal(NaN) "
	  "dInf:decimal(Infinity) d-Inf:decimal(0E-6176)" },
	{ "{'$add':['$a',{'$numberDecimal':'2.5'}]}", "decimal(92233720368547)",
	  "0:decimal(2.5) -1:decimal(1.5) max32:decimal(2147483649.5) "
	  "min32:decimal(-2147483645.5) over32:decimal(2147483650.5) "
	  "under32:decimal(-2147483646.5) min64:decimal(-9223372036854) "
	  "0.5:decimal(3.000000000000) -0.5:decimal(2.000000000000) 2.5:decimal(5.000000000000) "
	  "-0.0:decimal(2.5) 2^31:decimal(2147483650.500) -2^31:decimal(-2147483645.50) "
	  "-2^63:decimal(-9223372036854) 1e300:decimal(1.000000000000) NaN:decimal(NaN) "
	  "Inf:decimal(Infinity) -Inf:decimal(-Infinity) d0:decimal(2.5) d-2.5:decimal(0.0) "
	  "d0.5:decimal(3.0) d2^31:decimal(2147483650.5) dmin64:decimal(-9223372036854) "
	  "d1E400:decimal(1.000000000000) dNaN:decimal(NaN) dInf:decimal(Infinity) "
	  "d-Inf:decimal(-Infinity)" },
	{ "{'$subtract':['$a',{'$numberDecimal':'2.5'}]}", "decimal(92233720368547)",
	  "0:decimal(-2.5) -1:decimal(-3.5) max32:decimal(2147483644.5) "
	  "min32:decimal(-2147483650.5) over32:decimal(2147483645.5) "
	  "under32:decimal(-2147483651.5) min64:decimal(-9223372036854) "
	  "0.5:decimal(-2.00000000000) -0.5:decimal(-3.00000000000) 2.5:decimal(0E-14) "
	  "-0.0:decimal(-2.5) 2^31:decimal(2147483645.500) -2^31:decimal(-2147483650.50) "
	  "-2^63:decimal(-9223372036854) 1e300:decimal(1.000000000000) NaN:decimal(NaN) "
	  "Inf:decimal(Infinity) -Inf:decimal(-Infinity) d0:decimal(-2.5) d-2.5:decimal(-5.0) "
	  "d0.5:decimal(-2.0) d2^31:decimal(2147483645.5) dmin64:decimal(-9223372036854) "
	  "d1E400:decimal(1.000000000000) dNaN:decimal(NaN) dInf:decimal(Infinity) "
	  "d-Inf:decimal(-Infinity)" },
	{ "{'$subtract':[{'$numberDecimal':'2.5'},'$a']}", "decimal(-9223372036854)",
	  "0:decimal(2.5) -1:decimal(3.5) max32:decimal(-2147483644.5) "
	  "min32:decimal(2147483650.5) over32:decimal(-2147483645.5) "
	  "under32:decimal(2147483651.5) min64:decimal(92233720368547) "
	  "0.5:decimal(2.000000000000) -0.5:decimal(3.000000000000) 2.5:decimal(0E-14) "
	  "-0.0:decimal(2.5) 2^31:decimal(-2147483645.50) -2^31:decimal(2147483650.500) "
	  "-2^63:decimal(92233720368547) 1e300:decimal(-1.00000000000) NaN:decimal(NaN) "
	  "Inf:decimal(-Infinity) -Inf:decimal(Infinity) d0:decimal(2.5) d-2.5:decimal(5.0) "
	  "d0.5:decimal(2.0) d2^31:decimal(-2147483645.5) dmin64:decimal(92233720368547) "
	  "d1E400:decimal(-1.00000000000) dNaN:decimal(NaN) dInf:decimal(-Infinity) "
	  "d-Inf:decimal(Infinity)" },
	{ "{'$multiply':['$a',{'$numberDecimal':'2.5'}]}", "decimal(23058430092136)",
	  "0:decimal(0.0) -1:decimal(-2.5) max32:decimal(5368709117.5) "
	  "min32:decimal(-5368709120.0) over32:decimal(5368709120.0) "
	  "under32:decimal(-5368709122.5) min64:decimal(-2305843009213) "
	  "0.5:decimal(1.250000000000) -0.5:decimal(-1.25000000000) 2.5:decimal(6.250000000000) "
	  "-0.0:decimal(-0.0) 2^31:decimal(5368709120.000) -2^31:decimal(-5368709120.00) "
	  "2^63:decimal(2.305843009213) -2^63:decimal(-2.30584300921) "
	  "1e300:decimal(2.500000000000) NaN:decimal(NaN) Inf:decimal(Infinity) "
	  "-Inf:decimal(-Infinity) d0:decimal(0.0) d-2.5:decimal(-6.25) d0.5:decimal(1.25) "
	  "d2^31:decimal(5368709120.0) dmin64:decimal(-2305843009213) d1E400:decimal(2.5E+400) "
	  "dNaN:decimal(NaN) dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$divide':['$a',{'$numberDecimal':'2.5'}]}", "decimal(36893488147419)",
	  "0:decimal(0E+1) -1:decimal(-0.4) max32:decimal(858993458.8) "
	  "min32:decimal(-858993459.2) over32:decimal(858993459.2) "
	  "under32:decimal(-858993459.6) min64:decimal(-3689348814741) "
	  "0.5:decimal(0.200000000000) -0.5:decimal(-0.20000000000) 2.5:decimal(1.000000000000) "
	  "-0.0:decimal(-0E+1) 2^31:decimal(858993459.2000) -2^31:decimal(-858993459.200) "
	  "2^63:decimal(3.689348814741) -2^63:decimal(-3.68934881474) "
	  "1e300:decimal(4.000000000000) NaN:decimal(NaN) Inf:decimal(Infinity) "
	  "-Inf:decimal(-Infinity) d0:decimal(0E+1) d-2.5:decimal(-1) d0.5:decimal(0.2) "
	  "d2^31:decimal(858993459.2) dmin64:decimal(-3689348814741) d1E400:decimal(4E+399) "
	  "dNaN:decimal(NaN) dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$divide':[{'$numberDecimal':'2.5'},'$a']}", "decimal(2.710505431213)",
	  "0:2 -1:decimal(-2.5) max32:decimal(1.164153218811) min32:decimal(-1.16415321826) "
	  "over32:decimal(1.164153218269) under32:decimal(-1.16415321772) "
	  "min64:decimal(-2.71050543121) 0.5:decimal(5) -0.5:decimal(-5) 2.5:decimal(1) -0.0:2 "
	  "2^31:decimal(1.164153218269) -2^31:decimal(-1.16415321826) "
	  "-2^63:decimal(-2.71050543121) 1e300:decimal(2.5E-300) NaN:decimal(NaN) "
	  "Inf:decimal(0E-6176) -Inf:decimal(-0E-6176) d0:2 d-2.5:decimal(-1) d0.5:decimal(5) "
	  "d2^31:decimal(1.164153218269) dmin64:decimal(-2.71050543121) "
	  "d1E400:decimal(2.5E-400) dNaN:decimal(NaN) dInf:decimal(0E-6176) "
	  "d-Inf:decimal(-0E-6176)" },
	{ "{'$mod':['$a',{'$numberDecimal':'2.5'}]}", "decimal(NaN)",
	  "0:decimal(0.0) -1:decimal(-1.0) max32:decimal(2.0) min32:decimal(-0.5) "
	  "over32:decimal(0.5) under32:decimal(-1.5) max64:decimal(2.0) min64:decimal(-0.5) "
	  "0.5:decimal(0.500000000000) -0.5:decimal(-0.50000000000) 2.5:decimal(0E-14) "
	  "-0.0:decimal(-0.0) 2^31:decimal(0.50000) -2^31:decimal(-0.50000) 2^63:decimal(0.0) "
	  "-2^63:decimal(-0.0) 1e300:decimal(0.0) d0:decimal(0.0) d-2.5:decimal(-0.0) "
	  "d0.5:decimal(0.5) d2^31:decimal(0.5) dmax64:decimal(2.0) d2^63:decimal(0.5) "
	  "dmin64:decimal(-0.5) d1E400:decimal(0.0)" },
	{ "{'$mod':[{'$numberDecimal':'2.5'},'$a']}", "decimal(2.5)",
	  "0:5733415 -1:decimal(0.5) 0.5:decimal(0E-15) -0.5:decimal(0E-15) 2.5:decimal(0E-14) "
	  "-0.0:5733415 2^31:decimal(2.50000) -2^31:decimal(2.50000) NaN:decimal(NaN) "
	  "d0:5733415 d-2.5:decimal(0.0) d0.5:decimal(0.0) dNaN:decimal(NaN)" },
	{ "{'$pow':['$a',{'$numberDecimal':'2.5'}]}", "decimal(NaN)",
	  "0:decimal(0E-6176) max32:decimal(21370991100146) over32:decimal(21370991125025) "
	  "max64:decimal(2.583594296179) 0.5:decimal(0.176776695296) "
	  "2.5:decimal(9.882117688026) -0.0:decimal(0E-6176) 2^31:decimal(21370991125025) "
	  "2^63:decimal(2.583594296179) 1e300:decimal(9.999999999999) Inf:decimal(Infinity) "
	  "-Inf:decimal(Infinity) d0:decimal(0E-6176) d0.5:decimal(0.176776695296) "
	  "d2^31:decimal(21370991125025) dmax64:decimal(2.583594296179) "
	  "d2^63:decimal(2.583594296179) d1E400:decimal(1.000000000000) dInf:decimal(Infinity) "
	  "d-Inf:decimal(Infinity)" },
	{ "{'$pow':[{'$numberDecimal':'2.5'},'$a']}", "decimal(Infinity)",
	  "0:decimal(1.000000000000) -1:decimal(0.400000000000) min32:decimal(0E-6176) "
	  "under32:decimal(0E-6176) min64:decimal(0E-6176) 0.5:decimal(1.581138830084) "
	  "-0.5:decimal(0.632455532033) 2.5:decimal(9.882117688026) "
	  "-0.0:decimal(1.000000000000) -2^31:decimal(0E-6176) -2^63:decimal(0E-6176) "
	  "NaN:decimal(NaN) -Inf:decimal(0E-6176) d0:decimal(1.000000000000) "
	  "d-2.5:decimal(0.101192885125) d0.5:decimal(1.581138830084) dmin64:decimal(0E-6176) "
	  "dNaN:decimal(NaN) d-Inf:decimal(0E-6176)" },
	{ "{'$round':['$a',1]}", "double(NaN)",
	  "0:int(0) -1:int(-1) max32:int(2147483647) min32:int(-2147483648) "
	  "over32:long(2147483648) under32:long(-2147483649) max64:long(9223372036854775807) "
	  "min64:long(-9223372036854775808) 0.5:double(0.5) -0.5:double(-0.5) 2.5:double(2.5) "
	  "-0.0:double(-0) 2^31:double(2147483648) -2^31:double(-2147483648) "
	  "2^63:double(9.223372037e+18) -2^63:double(-9.223372037e+18) Inf:double(inf) "
	  "-Inf:double(-inf) d0:decimal(0.0) d-2.5:decimal(-2.5) d0.5:decimal(0.5) "
	  "d2^31:decimal(2147483648.0) dmax64:decimal(92233720368547) "
	  "d2^63:decimal(92233720368547) dmin64:decimal(-9223372036854) d1E400:decimal(1E+400) "
	  "dNaN:decimal(NaN) dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$trunc':['$a',1]}", "double(NaN)",
	  "0:int(0) -1:int(-1) max32:int(2147483647) min32:int(-2147483648) "
	  "over32:long(2147483648) under32:long(-2147483649) max64:long(9223372036854775807) "
	  "min64:long(-9223372036854775808) 0.5:double(0.5) -0.5:double(-0.5) 2.5:double(2.5) "
	  "-0.0:double(-0) 2^31:double(2147483648) -2^31:double(-2147483648) "
	  "2^63:double(9.223372037e+18) -2^63:double(-9.223372037e+18) Inf:double(inf) "
	  "-Inf:double(-inf) d0:decimal(0.0) d-2.5:decimal(-2.5) d0.5:decimal(0.5) "
	  "d2^31:decimal(2147483648.0) dmax64:decimal(92233720368547) "
	  "d2^63:decimal(92233720368547) dmin64:decimal(-9223372036854) d1E400:decimal(1E+400) "
	  "dNaN:decimal(NaN) dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$round':['$a',-1]}", "int(0)",
	  "max32:long(2147483650) min32:long(-2147483650) over32:long(2147483650) "
	  "under32:long(-2147483650) max64:51080 min64:51080 0.5:double(0) -0.5:double(-0) "
	  "2.5:double(0) -0.0:double(-0) 2^31:double(2147483650) -2^31:double(-2147483650) "
	  "2^63:double(9.223372037e+18) -2^63:double(-9.223372037e+18) 1e300:double(NaN) "
	  "NaN:double(NaN) Inf:double(inf) -Inf:double(-inf) d0:decimal(0E+1) "
	  "d-2.5:decimal(-0E+1) d0.5:decimal(0E+1) d2^31:decimal(2.14748365E+9) "
	  "dmax64:decimal(9.223372036854) d2^63:decimal(9.223372036854) "
	  "dmin64:decimal(-9.22337203685) d1E400:decimal(1E+400) dNaN:decimal(NaN) "
	  "dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$trunc':['$a',-1]}", "int(0)",
	  "max32:int(2147483640) min32:int(-2147483640) over32:long(2147483640) "
	  "under32:long(-2147483640) max64:long(9223372036854775800) "
	  "min64:long(-9223372036854775800) 0.5:double(0) -0.5:double(-0) 2.5:double(0) "
	  "-0.0:double(-0) 2^31:double(2147483640) -2^31:double(-2147483640) "
	  "2^63:double(9.223372037e+18) -2^63:double(-9.223372037e+18) 1e300:double(NaN) "
	  "NaN:double(NaN) Inf:double(inf) -Inf:double(-inf) d0:decimal(0E+1) "
	  "d-2.5:decimal(-0E+1) d0.5:decimal(0E+1) d2^31:decimal(2.14748364E+9) "
	  "dmax64:decimal(9.223372036854) d2^63:decimal(9.223372036854) "
	  "dmin64:decimal(-9.22337203685) d1E400:decimal(1E+400) dNaN:decimal(NaN) "
	  "dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$add':[{'$date':0},'$a']}", "15",
	  "0:date(0) -1:date(-1) max32:date(2147483647) min32:date(-2147483648) "
	  "over32:date(2147483648) under32:date(-2147483649) max64:date(9223372036854775807) "
	  "min64:date(-9223372036854775808) 0.5:date(1) -0.5:date(-1) 2.5:date(3) -0.0:date(0) "
	  "2^31:date(2147483648) -2^31:date(-2147483648) -2^63:date(-9223372036854775808) "
	  "d0:date(0) d-2.5:date(-2) d0.5:date(0) d2^31:date(2147483648) "
	  "dmax64:date(9223372036854775807) dmin64:date(-9223372036854775808)" },
	{ "{'$subtract':[{'$date':0},'$a']}", "15",
	  "0:date(0) -1:date(1) max32:date(-2147483647) min32:date(2147483648) "
	  "over32:date(-2147483648) under32:date(2147483649) max64:date(-9223372036854775807) "
	  "0.5:date(-1) -0.5:date(1) 2.5:date(-3) -0.0:date(0) 2^31:date(-2147483648) "
	  "-2^31:date(2147483648) d0:date(0) d-2.5:date(2) d0.5:date(0) d2^31:date(-2147483648) "
	  "dmax64:date(-9223372036854775807)" },
	{ "{'$range':[0,'$a',1073741824]}", "34446",
	  "0:array(0) -1:array(0) max32:array(2) min32:array(0) -0.0:array(0) -2^31:array(0) "
	  "d0:array(0)" },
	{ "{'$slice':[[1,2,3],'$a']}", "28726",
	  "0:array(0) -1:array(1) max32:array(3) min32:array(3) -0.0:array(0) -2^31:array(3) "
	  "d0:array(0)" },
	{ "{'$slice':[[1,2,3],'$a',1]}", "28726",
	  "0:array(1) -1:array(1) max32:array(0) min32:array(1) -0.0:array(1) -2^31:array(1) "
	  "d0:array(1)" },
	{ "{'$slice':[[1,2,3],1,'$a']}", "28728",
	  "0:28729 -1:28729 max32:array(2) min32:28729 -0.0:28729 -2^31:28729 d0:28729" },
	{ "{'$arrayElemAt':[[1,2,3],'$a']}", "28691",
	  "0:int(1) -1:int(3) max32:none min32:none -0.0:int(1) -2^31:none d0:int(1)" },
	{ "{'$substrCP':['abc','$a',1]}", "34451",
	  "0:string(a) -1:34455 max32:string() min32:34455 -0.0:string(a) -2^31:34455 "
	  "d0:string(a)" },
	{ "{'$substrCP':['abc',0,'$a']}", "34453",
	  "0:string() -1:34454 max32:string(abc) min32:34454 -0.0:string() -2^31:34454 "
	  "d0:string()" },
	{ "{'$substrBytes':['abc','$a',1]}", "31109",
	  "0:string(a) -1:50752 max32:string() min32:50752 over32:string() under32:50752 "
	  "max64:string() min64:50752 0.5:string(a) -0.5:string(a) 2.5:string(c) -0.0:string(a) "
	  "2^31:string() -2^31:50752 -2^63:50752 d0:string(a) d-2.5:50752 d0.5:string(a) "
	  "d2^31:string() dmax64:string() dmin64:50752" },
	{ "{'$substrBytes':['abc',0,'$a']}", "string(abc)",
	  "0:string() 0.5:string() -0.5:string() 2.5:string(ab) -0.0:string() 2^63:31109 "
	  "1e300:31109 NaN:31109 Inf:31109 -Inf:31109 d0:string() d0.5:string() d2^63:31109 "
	  "d1E400:31109 dNaN:31109 dInf:31109 d-Inf:31109" },
	{ "{'$indexOfArray':[[1,2,3],2,'$a']}", "9711600",
	  "0:int(1) -1:9711601 max32:int(-1) min32:9711601 -0.0:int(1) -2^31:9711601 d0:int(1)" },
	{ "{'$indexOfBytes':['abc','b','$a']}", "40096",
	  "0:int(1) -1:40097 max32:int(-1) min32:40097 -0.0:int(1) -2^31:40097 d0:int(1)" },
	{ "{'$indexOfCP':['abc','b',0,'$a']}", "40096",
	  "0:int(-1) -1:40097 max32:int(1) min32:40097 -0.0:int(-1) -2^31:40097 d0:int(-1)" },
	{ "{'$firstN':{'input':[1,2,3],'n':'$a'}}", "7548606",
	  "max32:array(3) over32:array(3) max64:array(3) 2^31:array(3) d2^31:array(3) "
	  "dmax64:array(3)" },
	{ "{'$filter':{'input':[1,2,3],'cond':true,'limit':'$a'}}", "327391",
	  "0:327392 -1:327392 max32:array(3) min32:327392 -0.0:327392 -2^31:327392 d0:327392" },
	{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'millisecond','amount':'$a'}}", "5166405",
	  "0:date(0) -1:date(-1) max32:date(2147483647) min32:date(-2147483648) "
	  "over32:date(2147483648) under32:date(-2147483649) max64:date(9223372036854775807) "
	  "min64:date(-9223372036854775808) -0.0:date(0) 2^31:date(2147483648) "
	  "-2^31:date(-2147483648) -2^63:date(-9223372036854775808) d0:date(0) "
	  "d2^31:date(2147483648) dmax64:date(9223372036854775807) "
	  "dmin64:date(-9223372036854775808)" },
	{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'second','amount':'$a'}}", "5166405",
	  "0:date(0) -1:date(-1000) max32:date(2147483647000) min32:date(-2147483648000) "
	  "over32:date(2147483648000) under32:date(-2147483649000) max64:5976500 min64:5976500 "
	  "-0.0:date(0) 2^31:date(2147483648000) -2^31:date(-2147483648000) -2^63:5976500 "
	  "d0:date(0) d2^31:date(2147483648000) dmax64:5976500 dmin64:5976500" },
	{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'day','amount':'$a'}}", "5166405",
	  "0:date(0) -1:date(-86400000) max32:date(185542587100800000) "
	  "min32:date(-185542587187200000) over32:date(185542587187200000) "
	  "under32:date(-185542587273600000) max64:5976500 min64:5976500 -0.0:date(0) "
	  "2^31:date(185542587187200000) -2^31:date(-185542587187200000) -2^63:5976500 "
	  "d0:date(0) d2^31:date(185542587187200000) dmax64:5976500 dmin64:5976500" },
	{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'month','amount':'$a'}}", "5166405",
	  "0:date(0) -1:date(-2678400000) max32:date(5647336530739200000) "
	  "min32:date(-5647336533504000000) over32:date(5647336533417600000) "
	  "under32:date(-5647336536096000000) max64:5976500 min64:5976500 -0.0:date(0) "
	  "2^31:date(5647336533417600000) -2^31:date(-5647336533504000000) -2^63:5976500 "
	  "d0:date(0) d2^31:date(5647336533417600000) dmax64:5976500 dmin64:5976500" },
	{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'year','amount':'$a'}}", "5166405",
	  "0:date(0) -1:date(-31536000000) max32:5976500 min32:5976500 over32:5976500 "
	  "under32:5976500 max64:5976500 min64:5976500 -0.0:date(0) 2^31:5976500 -2^31:5976500 "
	  "-2^63:5976500 d0:date(0) d2^31:5976500 dmax64:5976500 dmin64:5976500" },
	{ "{'$dateSubtract':{'startDate':{'$date':0},'unit':'week','amount':'$a'}}", "5166405",
	  "0:date(0) -1:date(604800000) max32:date(-1298798109705600000) "
	  "min32:date(1298798110310400000) over32:date(-1298798110310400000) "
	  "under32:date(1298798110915200000) max64:5976500 min64:6045000 -0.0:date(0) "
	  "2^31:date(-1298798110310400000) -2^31:date(1298798110310400000) -2^63:6045000 "
	  "d0:date(0) d2^31:date(-1298798110310400000) dmax64:5976500 dmin64:6045000" },
	{ "{'$dateFromParts':{'year':'$a'}}", "40523",
	  "0.5:40515 -0.5:40515 2.5:40515 2^63:40515 1e300:40515 NaN:40515 Inf:40515 -Inf:40515 "
	  "d-2.5:40515 d0.5:40515 d2^63:40515 d1E400:40515 dNaN:40515 dInf:40515 d-Inf:40515" },
	{ "{'$dateFromParts':{'year':2024,'month':'$a'}}", "40515",
	  "0:date(1701388800000) -1:date(1698796800000) max32:31034 min32:31034 over32:31034 "
	  "under32:31034 max64:31034 min64:31034 -0.0:date(1701388800000) 2^31:31034 "
	  "-2^31:31034 -2^63:31034 d0:date(1701388800000) d2^31:31034 dmax64:31034 dmin64:31034" },
	{ "{'$dateFromParts':{'year':2024,'day':'$a'}}", "40515",
	  "0:date(1703980800000) -1:date(1703894400000) max32:31034 min32:31034 over32:31034 "
	  "under32:31034 max64:31034 min64:31034 -0.0:date(1703980800000) 2^31:31034 "
	  "-2^31:31034 -2^63:31034 d0:date(1703980800000) d2^31:31034 dmax64:31034 dmin64:31034" },
	{ "{'$dateFromParts':{'year':2024,'millisecond':'$a'}}", "40515",
	  "0:date(1704067200000) -1:date(1704067199999) max32:date(1706214683647) "
	  "min32:date(1701919716352) over32:date(1706214683648) under32:date(1701919716351) "
	  "max64:15 min64:date(-9223370332787575808) -0.0:date(1704067200000) "
	  "2^31:date(1706214683648) -2^31:date(1701919716352) -2^63:date(-9223370332787575808) "
	  "d0:date(1704067200000) d2^31:date(1706214683648) dmax64:15 "
	  "dmin64:date(-9223370332787575808)" },
	{ "{'$dateFromParts':{'isoWeekYear':2024,'isoWeek':'$a'}}", "40515",
	  "0:date(1703462400000) -1:date(1702857600000) max32:31034 min32:31034 over32:31034 "
	  "under32:31034 max64:31034 min64:31034 -0.0:date(1703462400000) 2^31:31034 "
	  "-2^31:31034 -2^63:31034 d0:date(1703462400000) d2^31:31034 dmax64:31034 dmin64:31034" },
	{ "{'$dateTrunc':{'date':{'$date':'2024-02-29T12:30:45.678Z'},'unit':'day','bin"
	  "Size':'$a'}}",
	  "5439017",
	  "0:5439018 -1:5439018 max32:date(946684800000) min32:5439018 "
	  "over32:date(946684800000) under32:5439018 max64:5439002 min64:5439018 -0.0:5439018 "
	  "2^31:date(946684800000) -2^31:5439018 -2^63:5439018 d0:5439018 "
	  "d2^31:date(946684800000) dmax64:5439002 dmin64:5439018" },
	{ "{'$bitAnd':['$a',-1]}", "14",
	  "0:int(0) -1:int(-1) max32:int(2147483647) min32:int(-2147483648) "
	  "over32:long(2147483648) under32:long(-2147483649) max64:long(9223372036854775807) "
	  "min64:long(-9223372036854775808)" },
	{ "{'$bitXor':['$a',{'$numberLong':'-1'}]}", "14",
	  "0:long(-1) -1:long(0) max32:long(-2147483648) min32:long(2147483647) "
	  "over32:long(-2147483649) under32:long(2147483648) max64:long(-9223372036854775808) "
	  "min64:long(9223372036854775807)" },
	{ "{'$log':['$a',2]}", "28758",
	  "max32:double(31) over32:double(31) max64:double(63) 0.5:double(-1) "
	  "2.5:double(1.321928095) 2^31:double(31) 2^63:double(63) 1e300:double(996.5784285) "
	  "NaN:double(NaN) Inf:double(inf) d0.5:decimal(-1) d2^31:decimal(30.99999999999) "
	  "dmax64:decimal(62.99999999999) d2^63:decimal(62.99999999999) "
	  "d1E400:decimal(1328.771237954) dNaN:decimal(NaN) dInf:decimal(Infinity)" },
	{ "{'$log':[2,'$a']}", "28759",
	  "max32:double(0.03225806452) over32:double(0.03225806452) max64:double(0.01587301587) "
	  "0.5:double(-1) 2.5:double(0.7564707974) 2^31:double(0.03225806452) "
	  "2^63:double(0.01587301587) 1e300:double(0.001003433319) NaN:double(NaN) "
	  "Inf:double(0) d0.5:decimal(-1) d2^31:decimal(0.032258064516) "
	  "dmax64:decimal(0.015873015873) d2^63:decimal(0.015873015873) "
	  "d1E400:decimal(0.000752574989) dNaN:decimal(NaN) dInf:decimal(0E-6176)" },
	{ "{'$atan2':['$a',1]}", "double(1.570796327)",
	  "0:double(0) -1:double(-0.7853981634) max32:double(1.570796326) "
	  "min32:double(-1.570796326) over32:double(1.570796326) under32:double(-1.570796326) "
	  "min64:double(-1.570796327) 0.5:double(0.463647609) -0.5:double(-0.463647609) "
	  "2.5:double(1.19028995) -0.0:double(-0) 2^31:double(1.570796326) "
	  "-2^31:double(-1.570796326) -2^63:double(-1.570796327) NaN:double(NaN) "
	  "-Inf:double(-1.570796327) d0:decimal(0E-6176) d-2.5:decimal(-1.19028994968) "
	  "d0.5:decimal(0.463647609000) d2^31:decimal(1.570796326329) "
	  "dmax64:decimal(1.570796326794) d2^63:decimal(1.570796326794) "
	  "dmin64:decimal(-1.57079632679) d1E400:decimal(1.570796326794) dNaN:decimal(NaN) "
	  "dInf:decimal(1.570796326794) d-Inf:decimal(-1.57079632679)" },
	{ "{'$atan2':[{'$numberDecimal':'1'},'$a']}", "decimal(3.141592653589)",
	  "0:decimal(1.570796326794) -1:decimal(2.356194490192) max32:decimal(4.656612875245) "
	  "min32:decimal(3.141592653124) over32:decimal(4.656612873077) "
	  "under32:decimal(3.141592653124) max64:decimal(1.084202172485) "
	  "0.5:decimal(1.107148717794) -0.5:decimal(2.034443935795) 2.5:decimal(0.380506377112) "
	  "-0.0:decimal(1.570796326794) 2^31:decimal(4.656612873077) "
	  "-2^31:decimal(3.141592653124) 2^63:decimal(1.084202172485) 1e300:decimal(1E-300) "
	  "NaN:decimal(NaN) Inf:decimal(0E-6176) d0:decimal(1.570796326794) "
	  "d-2.5:decimal(2.761086276477) d0.5:decimal(1.107148717794) "
	  "d2^31:decimal(4.656612873077) dmax64:decimal(1.084202172485) "
	  "d2^63:decimal(1.084202172485) d1E400:decimal(1E-400) dNaN:decimal(NaN) "
	  "dInf:decimal(0E-6176)" },
	{ "{'$sum':['$a',1]}", "double(9.223372037e+18)",
	  "0:int(1) -1:int(0) max32:long(2147483648) min32:int(-2147483647) "
	  "over32:long(2147483649) under32:long(-2147483648) min64:long(-9223372036854775807) "
	  "0.5:double(1.5) -0.5:double(0.5) 2.5:double(3.5) -0.0:double(1) "
	  "2^31:double(2147483649) -2^31:double(-2147483647) -2^63:double(-9.223372037e+18) "
	  "1e300:double(1e+300) NaN:double(NaN) Inf:double(inf) -Inf:double(-inf) d0:decimal(1) "
	  "d-2.5:decimal(-1.5) d0.5:decimal(1.5) d2^31:decimal(2147483649) "
	  "dmax64:decimal(92233720368547) d2^63:decimal(92233720368547) "
	  "dmin64:decimal(-9223372036854) d1E400:decimal(1.000000000000) dNaN:decimal(NaN) "
	  "dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$avg':['$a',1]}", "double(1073741824)",
	  "0:double(0.5) -1:double(0) min32:double(-1073741824) under32:double(-1073741824) "
	  "max64:double(4.611686018e+18) min64:double(-4.611686018e+18) 0.5:double(0.75) "
	  "-0.5:double(0.25) 2.5:double(1.75) -0.0:double(0.5) -2^31:double(-1073741824) "
	  "2^63:double(4.611686018e+18) -2^63:double(-4.611686018e+18) 1e300:double(5e+299) "
	  "NaN:double(NaN) Inf:double(inf) -Inf:double(-inf) d0:decimal(0.5) "
	  "d-2.5:decimal(-0.75) d0.5:decimal(0.75) d2^31:decimal(1073741824.5) "
	  "dmax64:decimal(46116860184273) d2^63:decimal(46116860184273) "
	  "dmin64:decimal(-4611686018427) d1E400:decimal(5.000000000000) dNaN:decimal(NaN) "
	  "dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$max':['$a',1]}", "int(1)",
	  "max32:int(2147483647) over32:long(2147483648) max64:long(9223372036854775807) "
	  "2.5:double(2.5) 2^31:double(2147483648) 2^63:double(9.223372037e+18) "
	  "1e300:double(1e+300) Inf:double(inf) d2^31:decimal(2147483648) "
	  "dmax64:decimal(92233720368547) d2^63:decimal(92233720368547) d1E400:decimal(1E+400) "
	  "dInf:decimal(Infinity)" },
	{ "{'$stdDevPop':['$a',1]}", "double(4.611686018e+18)",
	  "0:double(0.5) -1:double(1) max32:double(1073741823) min32:double(1073741824) "
	  "over32:double(1073741824) under32:double(1073741825) 0.5:double(0.25) "
	  "-0.5:double(0.75) 2.5:double(0.75) -0.0:double(0.5) 2^31:double(1073741824) "
	  "-2^31:double(1073741824) 1e300:double(inf) NaN:double(NaN) Inf:double(NaN) "
	  "-Inf:double(NaN) d0:double(0.5) d-2.5:double(1.75) d0.5:double(0.25) "
	  "d2^31:double(1073741824) d1E400:double(NaN) dNaN:double(NaN) dInf:double(NaN) "
	  "d-Inf:double(NaN)" },
	{ "{'$cmp':['$a',1]}", "int(-1)",
	  "max32:int(1) over32:int(1) max64:int(1) 2.5:int(1) 2^31:int(1) 2^63:int(1) "
	  "1e300:int(1) Inf:int(1) d2^31:int(1) dmax64:int(1) d2^63:int(1) d1E400:int(1) "
	  "dInf:int(1)" },
	{ "{'$cmp':['$a',{'$numberDecimal':'2147483648'}]}", "int(-1)",
	  "over32:int(0) max64:int(1) 2^31:int(0) 2^63:int(1) 1e300:int(1) Inf:int(1) "
	  "d2^31:int(0) dmax64:int(1) d2^63:int(1) d1E400:int(1) dInf:int(1)" },
	{ "{'$isNumber':'$a'}", "bool(true)", "" },
	{ "{'$not':'$a'}", "bool(false)", "0:bool(true) -0.0:bool(true) d0:bool(true)" },
	{ "{'$dateFromParts':{'year':2024,'hour':'$a'}}", "40515",
	  "0:date(1704067200000) -1:date(1704063600000) max32:31034 min32:31034 over32:31034 "
	  "under32:31034 max64:31034 min64:31034 -0.0:date(1704067200000) 2^31:31034 "
	  "-2^31:31034 -2^63:31034 d0:date(1704067200000) d2^31:31034 dmax64:31034 dmin64:31034" },
};

static void
numbers_are_computed_at_their_edges(void **state)
{
	(void)state;
	check_edges(edge_numbers, CASES(edge_numbers), numbers_are_computed_at_their_edges_cases,
		    CASES(numbers_are_computed_at_their_edges_cases));
}

static const struct edge_case numbers_are_converted_at_their_edges_cases[] = {
	{ "{'$toBool':'$a'}", "bool(true)", "0:bool(false) -0.0:bool(false) d0:bool(false)" },
	{ "{'$toDate':'$a'}", "241",
	  "over32:date(2147483648) under32:date(-2147483649) max64:date(9223372036854775807) "
	  "min64:date(-9223372036854775808) 0.5:date(0) -0.5:date(0) 2.5:date(2) -0.0:date(0) "
	  "2^31:date(2147483648) -2^31:date(-2147483648) -2^63:date(-9223372036854775808) "
	  "d0:date(0) d-2.5:date(-2) d0.5:date(0) d2^31:date(2147483648) "
	  "dmax64:date(9223372036854775807) dmin64:date(-9223372036854775808)" },
	{ "{'$toDecimal':'$a'}", "decimal(92233720368547)",
	  "0:decimal(0) -1:decimal(-1) max32:decimal(2147483647) min32:decimal(-2147483648) "
	  "over32:decimal(2147483648) under32:decimal(-2147483649) "
	  "min64:decimal(-9223372036854) 0.5:decimal(0.500000000000) "
	  "-0.5:decimal(-0.50000000000) 2.5:decimal(2.500000000000) -0.0:decimal(-0) "
	  "2^31:decimal(2147483648.000) -2^31:decimal(-2147483648.00) "
	  "2^63:decimal(9.223372036854) -2^63:decimal(-9.22337203685) "
	  "1e300:decimal(1.000000000000) NaN:decimal(NaN) Inf:decimal(Infinity) "
	  "-Inf:decimal(-Infinity) d0:decimal(0) d-2.5:decimal(-2.5) d0.5:decimal(0.5) "
	  "d2^31:decimal(2147483648) dmin64:decimal(-9223372036854) d1E400:decimal(1E+400) "
	  "dNaN:decimal(NaN) dInf:decimal(Infinity) d-Inf:decimal(-Infinity)" },
	{ "{'$toDouble':'$a'}", "double(9.223372037e+18)",
	  "0:double(0) -1:double(-1) max32:double(2147483647) min32:double(-2147483648) "
	  "over32:double(2147483648) under32:double(-2147483649) min64:double(-9.223372037e+18) "
	  "0.5:double(0.5) -0.5:double(-0.5) 2.5:double(2.5) -0.0:double(-0) "
	  "2^31:double(2147483648) -2^31:double(-2147483648) -2^63:double(-9.223372037e+18) "
	  "1e300:double(1e+300) NaN:double(NaN) Inf:double(inf) -Inf:double(-inf) d0:double(0) "
	  "d-2.5:double(-2.5) d0.5:double(0.5) d2^31:double(2147483648) "
	  "dmin64:double(-9.223372037e+18) d1E400:241 dNaN:double(NaN) dInf:double(inf) "
	  "d-Inf:double(-inf)" },
	{ "{'$toInt':'$a'}", "241",
	  "0:int(0) -1:int(-1) max32:int(2147483647) min32:int(-2147483648) 0.5:int(0) "
	  "-0.5:int(0) 2.5:int(2) -0.0:int(0) -2^31:int(-2147483648) d0:int(0) d-2.5:int(-2) "
	  "d0.5:int(0)" },
	{ "{'$toLong':'$a'}", "241",
	  "0:long(0) -1:long(-1) max32:long(2147483647) min32:long(-2147483648) "
	  "over32:long(2147483648) under32:long(-2147483649) max64:long(9223372036854775807) "
	  "min64:long(-9223372036854775808) 0.5:long(0) -0.5:long(0) 2.5:long(2) -0.0:long(0) "
	  "2^31:long(2147483648) -2^31:long(-2147483648) -2^63:long(-9223372036854775808) "
	  "d0:long(0) d-2.5:long(-2) d0.5:long(0) d2^31:long(2147483648) "
	  "dmax64:long(9223372036854775807) dmin64:long(-9223372036854775808)" },
	{ "{'$toObjectId':'$a'}", "241", "" },
	{ "{'$toString':'$a'}", "string(2147483648)",
	  "0:string(0) -1:string(-1) max32:string(2147483647) min32:string(-2147483648) "
	  "under32:string(-2147483649) max64:string(9223372036854775807) "
	  "min64:string(-9223372036854775808) 0.5:string(0.5) -0.5:string(-0.5) 2.5:string(2.5) "
	  "-0.0:string(-0) -2^31:string(-2147483648) 2^63:string(9.223372036854776e+18) "
	  "-2^63:string(-9.223372036854776e+18) 1e300:string(1e+300) NaN:string(NaN) "
	  "Inf:string(Infinity) -Inf:string(-Infinity) d0:string(0) d-2.5:string(-2.5) "
	  "d0.5:string(0.5) dmax64:string(9223372036854775807) "
	  "d2^63:string(9223372036854775808) dmin64:string(-9223372036854775808) "
	  "d1E400:string(1E+400) dNaN:string(NaN) dInf:string(Infinity) d-Inf:string(-Infinity)" },
	{ "{'$toUUID':'$a'}", "binData(8,4)",
	  "0:binData(4,4) -1:binData(4,4) max32:binData(4,4) min32:binData(4,4) d0:241 "
	  "d-2.5:241 d0.5:241 d2^31:241 dmax64:241 d2^63:241 dmin64:241 d1E400:241 dNaN:241 "
	  "dInf:241 d-Inf:241" },
	{ "{'$convert':{'input':'$a','to':'binData','byteOrder':'big'}}", "binData(8,0)",
	  "0:binData(4,0) -1:binData(4,0) max32:binData(4,0) min32:binData(4,0) d0:241 "
	  "d-2.5:241 d0.5:241 d2^31:241 dmax64:241 d2^63:241 dmin64:241 d1E400:241 dNaN:241 "
	  "dInf:241 d-Inf:241" },
	{ "{'$convert':{'input':0,'to':'$a'}}", "9", "0:241 -1:241 -0.0:241 d0:241" },
	{ "{'$convert':{'input':'x','to':{'type':'binData','subtype':'$a'},'format':'ut"
	  "f8'}}",
	  "4341106",
	  "0:binData(1,0) -1:4341107 max32:4341107 min32:4341107 -0.0:binData(1,0) "
	  "-2^31:4341107 d0:binData(1,0)" },
	{ "{'$toHashedIndexKey':'$a'}", "long(4854801880128277513)",
	  "-1:long(1140205862565771219) max32:long(1143184177162245883) "
	  "min32:long(6165898260261354870) over32:long(-6026746251351052787) "
	  "under32:long(-3022243851680959062) max64:long(921523596458303250) "
	  "min64:long(4532067210535695462) 2.5:long(848411777775835583) "
	  "2^31:long(-6026746251351052787) -2^31:long(6165898260261354870) "
	  "2^63:long(4532067210535695462) -2^63:long(4532067210535695462) "
	  "1e300:long(921523596458303250) Inf:long(921523596458303250) "
	  "-Inf:long(4532067210535695462) d-2.5:long(4563317049361071164) "
	  "d2^31:long(-6026746251351052787) dmax64:long(921523596458303250) "
	  "d2^63:long(921523596458303250) dmin64:long(4532067210535695462) "
	  "d1E400:long(921523596458303250) dInf:long(921523596458303250) "
	  "d-Inf:long(4532067210535695462)" },
};

static void
numbers_are_converted_at_their_edges(void **state)
{
	(void)state;
	check_edges(edge_numbers, CASES(edge_numbers), numbers_are_converted_at_their_edges_cases,
		    CASES(numbers_are_converted_at_their_edges_cases));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_computed_at_their_edges),
		cmocka_unit_test(numbers_are_converted_at_their_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
