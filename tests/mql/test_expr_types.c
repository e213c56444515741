/* What each expression makes of a value of each type, in the place of each of its arguments. */
#include "expr_case.h"
#include "samples.h"

struct by_types {
	const char *expression; /* '$a' is the value's place */
	const char *other;      /* the outcome of all types but those that are named: */
	const char *outcomes;   /* "type:outcome" */
};

/* A code, or a type, with the value where that is short. */
static const char *
outcome_of(struct arena *arena, const struct mql *q, enum status status, const struct bson_value *v)
{
	if (status != STATUS_OK)
		return arena_printf(arena, "%d", q->code).ptr;
	switch ((int)v->type) {
	case MQL_MISSING:
		return "none";
	case BSON_INT32:
	case BSON_INT64:
		return arena_printf(arena, "%s(%lld)", bson_type_name(v->type),
				    (long long)bson_integer(v))
			.ptr;
	case BSON_DOUBLE:
		return arena_printf(arena, "double(%.4g)", bson_real(v)).ptr;
	case BSON_BOOL:
		return bson_truth(v) ? "bool(true)" : "bool(false)";
	default:
		return bson_type_name(v->type);
	}
}

static void
check_outcome(struct arena *arena, const char *expression, const char *document, const char *wanted)
{
	const struct expr_run run = { case_value(arena, expression), case_bson(arena, document) };
	struct mql q = case_mql(arena);
	struct bson_value v;
	enum status status = case_run_on(&q, &run, &v);
	const char *got = outcome_of(arena, &q, status, &v);

	if (strcmp(got, wanted) != 0)
		fail_msg("%s on %s: %s, not %s", expression, document, got, wanted);
	case_memory(case_run_again, &run, expression);
}

/* Of a field, and in the place of a constant, which may be computed once for all documents. */
static void
check_types(struct arena *shared, const struct by_types *cases, size_t count)
{
	(void)shared;
	for (size_t i = 0; i < count; i++) {
		const struct by_types *c = &cases[i];
		const char *place = strstr(c->expression, "'$a'");

		for (size_t k = 0; k <= CASES(samples); k++) {
			const char *type = k < CASES(samples) ? samples[k].type : "missing";
			struct arena *arena = arena_new(CASE_BYTES);
			const char *wanted = word_of(arena, c->outcomes, type, c->other);

			if (k == CASES(samples)) {
				check_outcome(arena, c->expression, "{}", wanted);
				arena_free(arena);
				break;
			}
			check_outcome(arena, c->expression,
				      arena_printf(arena, "{'a':%s}", samples[k].value).ptr,
				      wanted);
			if (place && !strstr(c->expression, "$setEquals"))
				check_outcome(arena,
					      arena_printf(arena, "%.*s{'$literal':%s}%s",
							   (int)(place - c->expression),
							   c->expression, samples[k].value,
							   place + strlen("'$a'"))
						      .ptr,
					      "{}", wanted);
			arena_free(arena);
		}
	}
}

static void
numbers_and_lists_of_arguments(void **state)
{
	static const struct by_types cases[] = {
		{ "{'$abs':['$a']}", "28765",
		  "double:double(1.5) undefined:null null:null int:int(1) long:long(1) "
		  "decimal:decimal missing:null" },
		{ "{'$ceil':['$a']}", "28765",
		  "double:double(2) undefined:null null:null int:int(1) long:long(1) "
		  "decimal:decimal missing:null" },
		{ "{'$exp':['$a']}", "28765",
		  "double:double(4.482) undefined:null null:null int:double(2.718) "
		  "long:double(2.718) decimal:decimal missing:null" },
		{ "{'$floor':['$a']}", "28765",
		  "double:double(1) undefined:null null:null int:int(1) long:long(1) "
		  "decimal:decimal missing:null" },
		{ "{'$ln':['$a']}", "28765",
		  "double:double(0.4055) undefined:null null:null int:double(0) long:double(0) "
		  "decimal:decimal missing:null" },
		{ "{'$log10':['$a']}", "28765",
		  "double:double(0.1761) undefined:null null:null int:double(0) long:double(0) "
		  "decimal:decimal missing:null" },
		{ "{'$sigmoid':['$a']}", "14", "" },
		{ "{'$sqrt':['$a']}", "28765",
		  "double:double(1.225) undefined:null null:null int:double(1) long:double(1) "
		  "decimal:decimal missing:null" },
		{ "{'$round':['$a']}", "51081",
		  "double:double(2) undefined:null null:null int:int(1) long:long(1) "
		  "decimal:decimal missing:null" },
		{ "{'$trunc':['$a']}", "51081",
		  "double:double(1) undefined:null null:null int:int(1) long:long(1) "
		  "decimal:decimal missing:null" },
		{ "{'$acos':['$a']}", "28765",
		  "double:50989 undefined:null null:null int:double(0) long:double(0) "
		  "decimal:decimal missing:null" },
		{ "{'$acosh':['$a']}", "28765",
		  "double:double(0.9624) undefined:null null:null int:double(0) long:double(0) "
		  "decimal:decimal missing:null" },
		{ "{'$asin':['$a']}", "28765",
		  "double:50989 undefined:null null:null int:double(1.571) long:double(1.571) "
		  "decimal:decimal missing:null" },
		{ "{'$asinh':['$a']}", "28765",
		  "double:double(1.195) undefined:null null:null int:double(0.8814) "
		  "long:double(0.8814) decimal:decimal missing:null" },
		{ "{'$atan':['$a']}", "28765",
		  "double:double(0.9828) undefined:null null:null int:double(0.7854) "
		  "long:double(0.7854) decimal:decimal missing:null" },
		{ "{'$atanh':['$a']}", "28765",
		  "double:50989 undefined:null null:null int:double(inf) long:double(inf) "
		  "decimal:decimal missing:null" },
		{ "{'$cos':['$a']}", "28765",
		  "double:double(0.07074) undefined:null null:null int:double(0.5403) "
		  "long:double(0.5403) decimal:decimal missing:null" },
		{ "{'$cosh':['$a']}", "28765",
		  "double:double(2.352) undefined:null null:null int:double(1.543) "
		  "long:double(1.543) decimal:decimal missing:null" },
		{ "{'$sin':['$a']}", "28765",
		  "double:double(0.9975) undefined:null null:null int:double(0.8415) "
		  "long:double(0.8415) decimal:decimal missing:null" },
		{ "{'$sinh':['$a']}", "28765",
		  "double:double(2.129) undefined:null null:null int:double(1.175) "
		  "long:double(1.175) decimal:decimal missing:null" },
		{ "{'$tan':['$a']}", "28765",
		  "double:double(14.1) undefined:null null:null int:double(1.557) "
		  "long:double(1.557) decimal:decimal missing:null" },
		{ "{'$tanh':['$a']}", "28765",
		  "double:double(0.9051) undefined:null null:null int:double(0.7616) "
		  "long:double(0.7616) decimal:decimal missing:null" },
		{ "{'$degreesToRadians':['$a']}", "28765",
		  "double:double(0.02618) undefined:null null:null int:double(0.01745) "
		  "long:double(0.01745) decimal:decimal missing:null" },
		{ "{'$radiansToDegrees':['$a']}", "28765",
		  "double:double(85.94) undefined:null null:null int:double(57.3) "
		  "long:double(57.3) decimal:decimal missing:null" },
		{ "{'$first':['$a']}", "28689",
		  "array:int(1) undefined:null null:null missing:null" },
		{ "{'$last':['$a']}", "28689",
		  "array:int(1) undefined:null null:null missing:null" },
		{ "{'$isArray':['$a']}", "bool(false)", "array:bool(true)" },
		{ "{'$reverseArray':['$a']}", "34435",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$size':['$a']}", "17124", "array:int(1)" },
		{ "{'$binarySize':['$a']}", "51276",
		  "string:int(1) binData:int(1) undefined:null null:null missing:null" },
		{ "{'$bitAnd':['$a']}", "14",
		  "undefined:null null:null int:int(1) long:long(1) missing:null" },
		{ "{'$bitOr':['$a']}", "14",
		  "undefined:null null:null int:int(1) long:long(1) missing:null" },
		{ "{'$bitXor':['$a']}", "14",
		  "undefined:null null:null int:int(1) long:long(1) missing:null" },
		{ "{'$bitNot':['$a']}", "14",
		  "undefined:null null:null int:int(-2) long:long(-2) missing:null" },
		{ "{'$tsIncrement':['$a']}", "5687302",
		  "undefined:null null:null timestamp:long(1) missing:null" },
		{ "{'$tsSecond':['$a']}", "5687301",
		  "undefined:null null:null timestamp:long(1) missing:null" },
		{ "{'$isNumber':['$a']}", "bool(false)",
		  "double:bool(true) int:bool(true) long:bool(true) decimal:bool(true)" },
		{ "{'$toBool':['$a']}", "bool(true)", "undefined:null null:null missing:null" },
		{ "{'$toDate':['$a']}", "241",
		  "double:date undefined:null objectId:date date:date null:null timestamp:date "
		  "long:date decimal:date missing:null" },
		{ "{'$toDecimal':['$a']}", "241",
		  "double:decimal undefined:null bool:decimal date:decimal null:null int:decimal "
		  "long:decimal decimal:decimal missing:null" },
		{ "{'$toDouble':['$a']}", "241",
		  "double:double(1.5) undefined:null bool:double(1) date:double(1.704e+12) "
		  "null:null int:double(1) long:double(1) decimal:double(1) missing:null" },
		{ "{'$toInt':['$a']}", "241",
		  "double:int(1) binData:int(0) undefined:null bool:int(1) null:null int:int(1) "
		  "long:int(1) decimal:int(1) missing:null" },
		{ "{'$toLong':['$a']}", "241",
		  "double:long(1) binData:long(0) undefined:null bool:long(1) "
		  "date:long(1704067200000) null:null int:long(1) long:long(1) decimal:long(1) "
		  "missing:null" },
		{ "{'$toObjectId':['$a']}", "241",
		  "undefined:null objectId:objectId null:null missing:null" },
		{ "{'$toString':['$a']}", "241",
		  "double:string string:string binData:string undefined:null objectId:string "
		  "bool:string date:string null:null int:string long:string decimal:string "
		  "missing:null" },
		{ "{'$toUUID':['$a']}", "241",
		  "double:binData undefined:null null:null int:binData long:binData missing:null" },
		{ "{'$type':['$a']}", "string", "" },
		{ "{'$dayOfMonth':['$a']}", "16006",
		  "undefined:null objectId:int(9) date:int(1) null:null timestamp:int(1) "
		  "missing:null" },
		{ "{'$dayOfWeek':['$a']}", "16006",
		  "undefined:null objectId:int(1) date:int(2) null:null timestamp:int(5) "
		  "missing:null" },
		{ "{'$dayOfYear':['$a']}", "16006",
		  "undefined:null objectId:int(221) date:int(1) null:null timestamp:int(1) "
		  "missing:null" },
		{ "{'$hour':['$a']}", "16006",
		  "undefined:null objectId:int(22) date:int(0) null:null timestamp:int(0) "
		  "missing:null" },
		{ "{'$isoDayOfWeek':['$a']}", "16006",
		  "undefined:null objectId:int(7) date:int(1) null:null timestamp:int(4) "
		  "missing:null" },
		{ "{'$isoWeek':['$a']}", "16006",
		  "undefined:null objectId:int(32) date:int(1) null:null timestamp:int(1) "
		  "missing:null" },
		{ "{'$isoWeekYear':['$a']}", "16006",
		  "undefined:null objectId:long(1970) date:long(2024) null:null "
		  "timestamp:long(1970) missing:null" },
		{ "{'$millisecond':['$a']}", "16006",
		  "undefined:null objectId:int(0) date:int(0) null:null timestamp:int(0) "
		  "missing:null" },
		{ "{'$minute':['$a']}", "16006",
		  "undefined:null objectId:int(25) date:int(0) null:null timestamp:int(0) "
		  "missing:null" },
		{ "{'$month':['$a']}", "16006",
		  "undefined:null objectId:int(8) date:int(1) null:null timestamp:int(1) "
		  "missing:null" },
		{ "{'$second':['$a']}", "16006",
		  "undefined:null objectId:int(43) date:int(0) null:null timestamp:int(1) "
		  "missing:null" },
		{ "{'$week':['$a']}", "16006",
		  "undefined:null objectId:int(32) date:int(0) null:null timestamp:int(0) "
		  "missing:null" },
		{ "{'$year':['$a']}", "16006",
		  "undefined:null objectId:int(1970) date:int(2024) null:null timestamp:int(1970) "
		  "missing:null" },
		{ "{'$dateToParts':{'date':'$a'}}", "16006",
		  "undefined:null objectId:object date:object null:null timestamp:object "
		  "missing:null" },
		{ "{'$dateToString':{'date':'$a'}}", "16006",
		  "undefined:null objectId:string date:string null:null timestamp:string "
		  "missing:null" },
		{ "{'$toHashedIndexKey':['$a']}", "long(2057342063119257436)",
		  "string:long(3618846942122629776) object:long(-6704717516784891778) "
		  "array:long(-4334179859190550950) binData:long(-8568920334971434124) "
		  "undefined:long(1745334896425974398) objectId:long(3616763922881996604) "
		  "bool:long(2764750161083509760) date:long(6798918735932207810) "
		  "null:long(8693821054885483359) regex:long(-2870851773200268196) "
		  "javascript:long(-5218917229573234638) timestamp:long(-8174864659668189890) "
		  "minKey:long(5311562503379046768) maxKey:long(5956866894735146476) "
		  "dbPointer:long(-1570372708709496140) symbol:long(3618846942122629776) "
		  "javascriptWithScope:long(3626662072857891041) "
		  "missing:long(8693821054885483359)" },
		{ "{'$not':['$a']}", "bool(false)",
		  "undefined:bool(true) null:bool(true) missing:bool(true)" },
		{ "{'$and':['$a']}", "bool(true)",
		  "undefined:bool(false) null:bool(false) missing:bool(false)" },
		{ "{'$or':['$a']}", "bool(true)",
		  "undefined:bool(false) null:bool(false) missing:bool(false)" },
		{ "{'$arrayToObject':['$a']}", "40386",
		  "array:40398 undefined:null null:null missing:null" },
		{ "{'$bsonSize':['$a']}", "31393",
		  "object:int(12) undefined:null null:null missing:null" },
		{ "{'$objectToArray':['$a']}", "40390",
		  "object:array undefined:null null:null missing:null" },
		{ "{'$mergeObjects':['$a']}", "40400",
		  "object:object undefined:object null:object missing:object" },
		{ "{'$allElementsTrue':['$a']}", "17040", "array:bool(true)" },
		{ "{'$anyElementTrue':['$a']}", "17041", "array:bool(true)" },
		{ "{'$setUnion':['$a']}", "17043",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$setIntersection':['$a']}", "17047",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$concat':['$a']}", "16702",
		  "string:string undefined:null null:null missing:null" },
		{ "{'$concatArrays':['$a']}", "28664",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$strLenBytes':['$a']}", "34473", "string:int(1)" },
		{ "{'$strLenCP':['$a']}", "34471", "string:int(1)" },
		{ "{'$toLower':['$a']}", "string",
		  "object:16007 array:16007 binData:16007 objectId:16007 bool:16007 regex:16007 "
		  "minKey:16007 maxKey:16007 dbPointer:16007 javascriptWithScope:16007" },
		{ "{'$toUpper':['$a']}", "string",
		  "object:16007 array:16007 binData:16007 objectId:16007 bool:16007 regex:16007 "
		  "minKey:16007 maxKey:16007 dbPointer:16007 javascriptWithScope:16007" },
		{ "{'$avg':['$a']}", "null",
		  "double:double(1.5) array:double(1) int:double(1) long:double(1) "
		  "decimal:decimal" },
		{ "{'$sum':['$a']}", "int(0)",
		  "double:double(1.5) array:int(1) int:int(1) long:long(1) decimal:decimal" },
		{ "{'$max':['$a']}", "null",
		  "double:double(1.5) string:string object:object array:int(1) binData:binData "
		  "objectId:objectId bool:bool(true) date:date regex:regex javascript:javascript "
		  "int:int(1) timestamp:timestamp long:long(1) decimal:decimal minKey:minKey "
		  "maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope" },
		{ "{'$min':['$a']}", "null",
		  "double:double(1.5) string:string object:object array:int(1) binData:binData "
		  "objectId:objectId bool:bool(true) date:date regex:regex javascript:javascript "
		  "int:int(1) timestamp:timestamp long:long(1) decimal:decimal minKey:minKey "
		  "maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope" },
		{ "{'$stdDevPop':['$a']}", "null",
		  "double:double(0) array:double(0) int:double(0) long:double(0) "
		  "decimal:double(0)" },
		{ "{'$stdDevSamp':['$a']}", "null", "" },
		{ "{'$add':['$a',1]}", "14",
		  "double:double(2.5) undefined:null date:date null:null int:int(2) long:long(2) "
		  "decimal:decimal missing:null" },
		{ "{'$add':[1,'$a']}", "14",
		  "double:double(2.5) undefined:null date:date null:null int:int(2) long:long(2) "
		  "decimal:decimal missing:null" },
		{ "{'$add':['$a',{'$date':0}]}", "14",
		  "double:date undefined:null date:16612 null:null int:date long:date "
		  "decimal:date missing:null" },
		{ "{'$add':[{'$date':0},'$a']}", "14",
		  "double:date undefined:null date:16612 null:null int:date long:date "
		  "decimal:date missing:null" },
		{ "{'$add':['$a',{'$numberDecimal':'1'}]}", "14",
		  "double:decimal undefined:null date:date null:null int:decimal long:decimal "
		  "decimal:decimal missing:null" },
		{ "{'$add':[{'$numberDecimal':'1'},'$a']}", "14",
		  "double:decimal undefined:null date:date null:null int:decimal long:decimal "
		  "decimal:decimal missing:null" },
		{ "{'$subtract':['$a',1]}", "14",
		  "double:double(0.5) undefined:null date:date null:null int:int(0) long:long(0) "
		  "decimal:decimal missing:null" },
		{ "{'$subtract':[1,'$a']}", "14",
		  "double:double(-0.5) undefined:null null:null int:int(0) long:long(0) "
		  "decimal:decimal missing:null" },
		{ "{'$subtract':['$a',{'$date':0}]}", "14",
		  "undefined:null date:long(1704067200000) null:null missing:null" },
		{ "{'$subtract':[{'$date':0},'$a']}", "14",
		  "double:date undefined:null date:long(-1704067200000) null:null int:date "
		  "long:date decimal:date missing:null" },
		{ "{'$multiply':['$a',2]}", "14",
		  "double:double(3) undefined:null null:null int:int(2) long:long(2) "
		  "decimal:decimal missing:null" },
		{ "{'$multiply':[2,'$a']}", "14",
		  "double:double(3) undefined:null null:null int:int(2) long:long(2) "
		  "decimal:decimal missing:null" },
		{ "{'$multiply':['$a',{'$numberDecimal':'2'}]}", "14",
		  "double:decimal undefined:null null:null int:decimal long:decimal "
		  "decimal:decimal missing:null" },
		{ "{'$multiply':[{'$numberDecimal':'2'},'$a']}", "14",
		  "double:decimal undefined:null null:null int:decimal long:decimal "
		  "decimal:decimal missing:null" },
		{ "{'$divide':['$a',2]}", "14",
		  "double:double(0.75) undefined:null null:null int:double(0.5) long:double(0.5) "
		  "decimal:decimal missing:null" },
		{ "{'$divide':[2,'$a']}", "14",
		  "double:double(1.333) undefined:null null:null int:double(2) long:double(2) "
		  "decimal:decimal missing:null" },
		{ "{'$mod':['$a',2]}", "16611",
		  "double:double(1.5) undefined:null null:null int:int(1) long:long(1) "
		  "decimal:decimal missing:null" },
		{ "{'$mod':[2,'$a']}", "16611",
		  "double:double(0.5) undefined:null null:null int:int(0) long:long(0) "
		  "decimal:decimal missing:null" },
		{ "{'$pow':['$a',2]}", "28762",
		  "double:double(2.25) undefined:null null:null int:int(1) long:long(1) "
		  "decimal:decimal missing:null" },
		{ "{'$pow':[2,'$a']}", "28763",
		  "double:double(2.828) undefined:null null:null int:int(2) long:long(2) "
		  "decimal:decimal missing:null" },
		{ "{'$log':['$a',2]}", "28756",
		  "double:double(0.585) undefined:null null:null int:double(0) long:double(0) "
		  "decimal:decimal missing:null" },
		{ "{'$log':[2,'$a']}", "28757",
		  "double:double(1.71) undefined:null null:null int:28759 long:28759 "
		  "decimal:28759 missing:null" },
		{ "{'$round':['$a',1]}", "51081",
		  "double:double(1.5) undefined:null null:null int:int(1) long:long(1) "
		  "decimal:decimal missing:null" },
		{ "{'$round':[1,'$a']}", "16004",
		  "double:51082 undefined:null null:null int:int(1) long:int(1) decimal:int(1) "
		  "missing:null" },
		{ "{'$trunc':['$a',1]}", "51081",
		  "double:double(1.5) undefined:null null:null int:int(1) long:long(1) "
		  "decimal:decimal missing:null" },
		{ "{'$trunc':[1,'$a']}", "16004",
		  "double:51082 undefined:null null:null int:int(1) long:int(1) decimal:int(1) "
		  "missing:null" },
		{ "{'$atan2':['$a',1]}", "51044",
		  "double:double(0.9828) undefined:null null:null int:double(0.7854) "
		  "long:double(0.7854) decimal:decimal missing:null" },
		{ "{'$atan2':[1,'$a']}", "51044",
		  "double:double(0.588) undefined:null null:null int:double(0.7854) "
		  "long:double(0.7854) decimal:decimal missing:null" },
		{ "{'$arrayElemAt':['$a',0]}", "28689",
		  "array:int(1) undefined:null null:null missing:null" },
		{ "{'$arrayElemAt':[0,'$a']}", "28689", "undefined:null null:null missing:null" },
		{ "{'$arrayElemAt':['$a',[1,2]]}", "28689",
		  "array:28690 undefined:null null:null missing:null" },
		{ "{'$arrayElemAt':[[1,2],'$a']}", "28690",
		  "double:28691 undefined:null null:null int:int(2) long:int(2) decimal:int(2) "
		  "missing:null" },
		{ "{'$in':['$a',[1]]}", "bool(false)",
		  "int:bool(true) long:bool(true) decimal:bool(true)" },
		{ "{'$in':[[1],'$a']}", "40081", "array:bool(false)" },
		{ "{'$in':['$a',1]}", "40081", "" },
		{ "{'$in':[1,'$a']}", "40081", "array:bool(true)" },
		{ "{'$indexOfArray':['$a',[1]]}", "40090",
		  "array:int(-1) undefined:null null:null missing:null" },
		{ "{'$indexOfArray':[[1],'$a']}", "int(-1)",
		  "int:int(0) long:int(0) decimal:int(0)" },
		{ "{'$indexOfArray':['$a',1]}", "40090",
		  "array:int(0) undefined:null null:null missing:null" },
		{ "{'$indexOfArray':[1,'$a']}", "40090", "" },
		{ "{'$slice':['$a',[1,2]]}", "28724",
		  "array:28725 undefined:null null:null missing:null" },
		{ "{'$slice':[[1,2],'$a']}", "28725",
		  "double:28726 undefined:null null:null int:array long:array decimal:array "
		  "missing:null" },
		{ "{'$slice':['$a',1]}", "28724",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$slice':[1,'$a']}", "28724", "undefined:null null:null missing:null" },
		{ "{'$range':['$a',1]}", "34443",
		  "double:34444 int:array long:array decimal:array" },
		{ "{'$range':[1,'$a']}", "34445",
		  "double:34446 int:array long:array decimal:array" },
		{ "{'$concatArrays':['$a',[1]]}", "28664",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$concatArrays':[[1],'$a']}", "28664",
		  "array:array undefined:null null:null missing:null" },
	};

	check_types(*state, cases, CASES(cases));
}

static void
texts_dates_and_named_arguments(void **state)
{
	static const struct by_types cases[] = {
		{ "{'$setDifference':['$a',[1]]}", "17048",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$setDifference':[[1],'$a']}", "17049",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$setEquals':['$a',[1]]}", "17044", "array:bool(true)" },
		{ "{'$setEquals':[[1],'$a']}", "17044", "array:bool(true)" },
		{ "{'$setIsSubset':['$a',[1]]}", "17046", "array:bool(true)" },
		{ "{'$setIsSubset':[[1],'$a']}", "17042", "array:bool(true)" },
		{ "{'$setUnion':['$a',[1]]}", "17043",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$setUnion':[[1],'$a']}", "17043",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$setIntersection':['$a',[1]]}", "17047",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$setIntersection':[[1],'$a']}", "17047",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$bitAnd':['$a',1]}", "14",
		  "undefined:null null:null int:int(1) long:long(1) missing:null" },
		{ "{'$bitAnd':[1,'$a']}", "14",
		  "undefined:null null:null int:int(1) long:long(1) missing:null" },
		{ "{'$bitAnd':['$a',{'$numberLong':'1'}]}", "14",
		  "undefined:null null:null int:long(1) long:long(1) missing:null" },
		{ "{'$bitAnd':[{'$numberLong':'1'},'$a']}", "14",
		  "undefined:null null:null int:long(1) long:long(1) missing:null" },
		{ "{'$bitOr':['$a',1]}", "14",
		  "undefined:null null:null int:int(1) long:long(1) missing:null" },
		{ "{'$bitOr':[1,'$a']}", "14",
		  "undefined:null null:null int:int(1) long:long(1) missing:null" },
		{ "{'$bitXor':['$a',1]}", "14",
		  "undefined:null null:null int:int(0) long:long(0) missing:null" },
		{ "{'$bitXor':[1,'$a']}", "14",
		  "undefined:null null:null int:int(0) long:long(0) missing:null" },
		{ "{'$concat':['$a','x']}", "16702",
		  "string:string undefined:null null:null missing:null" },
		{ "{'$concat':['x','$a']}", "16702",
		  "string:string undefined:null null:null missing:null" },
		{ "{'$indexOfBytes':['$a','x']}", "40091",
		  "string:int(0) undefined:null null:null missing:null" },
		{ "{'$indexOfBytes':['x','$a']}", "40092", "string:int(0)" },
		{ "{'$indexOfCP':['$a','x']}", "40093",
		  "string:int(0) undefined:null null:null missing:null" },
		{ "{'$indexOfCP':['x','$a']}", "40094", "string:int(0)" },
		{ "{'$split':['$a','x']}", "40085",
		  "string:array undefined:null null:null missing:null" },
		{ "{'$split':['x','$a']}", "10503900",
		  "string:array undefined:null null:null missing:null" },
		{ "{'$strcasecmp':['$a','x']}", "16007",
		  "double:int(-1) string:int(0) undefined:int(-1) date:int(-1) null:int(-1) "
		  "javascript:int(0) int:int(-1) timestamp:int(-1) long:int(-1) decimal:int(-1) "
		  "symbol:int(0) missing:int(-1)" },
		{ "{'$strcasecmp':['x','$a']}", "16007",
		  "double:int(1) string:int(0) undefined:int(1) date:int(1) null:int(1) "
		  "javascript:int(0) int:int(1) timestamp:int(1) long:int(1) decimal:int(1) "
		  "symbol:int(0) missing:int(1)" },
		{ "{'$mergeObjects':['$a',{'z':1}]}", "40400",
		  "object:object undefined:object null:object missing:object" },
		{ "{'$mergeObjects':[{'z':1},'$a']}", "40400",
		  "object:object undefined:object null:object missing:object" },
		{ "{'$ifNull':['$a',1]}", "int(1)",
		  "double:double(1.5) string:string object:object array:array binData:binData "
		  "objectId:objectId bool:bool(true) date:date regex:regex javascript:javascript "
		  "timestamp:timestamp long:long(1) decimal:decimal minKey:minKey maxKey:maxKey "
		  "dbPointer:dbPointer symbol:symbol javascriptWithScope:javascriptWithScope" },
		{ "{'$ifNull':[1,'$a']}", "int(1)", "" },
		{ "{'$cmp':['$a',1]}", "int(1)",
		  "undefined:int(-1) null:int(-1) int:int(0) long:int(0) decimal:int(0) "
		  "minKey:int(-1) missing:int(-1)" },
		{ "{'$cmp':[1,'$a']}", "int(-1)",
		  "undefined:int(1) null:int(1) int:int(0) long:int(0) decimal:int(0) "
		  "minKey:int(1) missing:int(1)" },
		{ "{'$cmp':['$a',null]}", "int(1)",
		  "undefined:int(-1) null:int(0) minKey:int(-1) missing:int(-1)" },
		{ "{'$cmp':[null,'$a']}", "int(-1)",
		  "undefined:int(1) null:int(0) minKey:int(1) missing:int(1)" },
		{ "{'$max':['$a',1]}", "int(1)",
		  "double:double(1.5) string:string object:object array:array binData:binData "
		  "objectId:objectId bool:bool(true) date:date regex:regex javascript:javascript "
		  "timestamp:timestamp long:long(1) decimal:decimal maxKey:maxKey "
		  "dbPointer:dbPointer symbol:symbol javascriptWithScope:javascriptWithScope" },
		{ "{'$max':[1,'$a']}", "int(1)",
		  "double:double(1.5) string:string object:object array:array binData:binData "
		  "objectId:objectId bool:bool(true) date:date regex:regex javascript:javascript "
		  "timestamp:timestamp maxKey:maxKey dbPointer:dbPointer symbol:symbol "
		  "javascriptWithScope:javascriptWithScope" },
		{ "{'$min':['$a',1]}", "int(1)", "long:long(1) decimal:decimal minKey:minKey" },
		{ "{'$min':[1,'$a']}", "int(1)", "minKey:minKey" },
		{ "{'$sum':['$a',1]}", "int(1)",
		  "double:double(2.5) int:int(2) long:long(2) decimal:decimal" },
		{ "{'$sum':[1,'$a']}", "int(1)",
		  "double:double(2.5) int:int(2) long:long(2) decimal:decimal" },
		{ "{'$avg':['$a',1]}", "double(1)", "double:double(1.25) decimal:decimal" },
		{ "{'$avg':[1,'$a']}", "double(1)", "double:double(1.25) decimal:decimal" },
		{ "{'$range':[0,3,'$a']}", "34447",
		  "double:34448 int:array long:array decimal:array" },
		{ "{'$slice':[[1,2],0,'$a']}", "28727",
		  "double:28728 undefined:null null:null int:array long:array decimal:array "
		  "missing:null" },
		{ "{'$slice':[[1,2],'$a',1]}", "28725",
		  "double:28726 undefined:null null:null int:array long:array decimal:array "
		  "missing:null" },
		{ "{'$indexOfArray':[[1],1,'$a']}", "9711600",
		  "int:int(-1) long:int(-1) decimal:int(-1)" },
		{ "{'$indexOfArray':[[1],1,0,'$a']}", "9711600",
		  "int:int(0) long:int(0) decimal:int(0)" },
		{ "{'$indexOfBytes':['xx','x','$a']}", "40096",
		  "int:int(1) long:int(1) decimal:int(1)" },
		{ "{'$indexOfBytes':['xx','x',0,'$a']}", "40096",
		  "int:int(0) long:int(0) decimal:int(0)" },
		{ "{'$indexOfCP':['xx','x','$a']}", "40096",
		  "int:int(1) long:int(1) decimal:int(1)" },
		{ "{'$indexOfCP':['xx','x',0,'$a']}", "40096",
		  "int:int(0) long:int(0) decimal:int(0)" },
		{ "{'$substr':['$a',0,1]}", "string",
		  "object:16007 array:16007 binData:16007 objectId:16007 bool:16007 regex:16007 "
		  "minKey:16007 maxKey:16007 dbPointer:16007 javascriptWithScope:16007" },
		{ "{'$substr':['xx','$a',1]}", "16034",
		  "double:string int:string long:string decimal:string" },
		{ "{'$substr':['xx',0,'$a']}", "16035",
		  "double:string int:string long:string decimal:string" },
		{ "{'$substrCP':['$a',0,1]}", "string",
		  "object:16007 array:16007 binData:16007 objectId:16007 bool:16007 regex:16007 "
		  "minKey:16007 maxKey:16007 dbPointer:16007 javascriptWithScope:16007" },
		{ "{'$substrCP':['xx','$a',1]}", "34450",
		  "double:34451 int:string long:string decimal:string" },
		{ "{'$substrCP':['xx',0,'$a']}", "34452",
		  "double:34453 int:string long:string decimal:string" },
		{ "{'$substrBytes':['xx',0,'$a']}", "16035",
		  "double:string int:string long:string decimal:string" },
		{ "{'$cond':['$a','t','f']}", "string", "" },
		{ "{'$switch':{'branches':[{'case':'$a','then':'t'}],'default':'f'}}", "string",
		  "" },
		{ "{'$firstN':{'input':'$a','n':1}}", "5788200", "array:array" },
		{ "{'$firstN':{'input':[1],'n':'$a'}}", "7548606",
		  "int:array long:array decimal:array" },
		{ "{'$lastN':{'input':'$a','n':1}}", "5788200", "array:array" },
		{ "{'$maxN':{'input':'$a','n':1}}", "5788200", "array:array" },
		{ "{'$minN':{'input':[1,2],'n':'$a'}}", "7548606",
		  "int:array long:array decimal:array" },
		{ "{'$filter':{'input':'$a','cond':1}}", "28651",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$filter':{'input':[1],'cond':'$a'}}", "array", "" },
		{ "{'$filter':{'input':[1],'cond':1,'limit':'$a'}}", "327391",
		  "undefined:array null:array int:array long:array decimal:array missing:array" },
		{ "{'$map':{'input':'$a','in':1}}", "16883",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$reduce':{'input':'$a','initialValue':0,'in':1}}", "40080",
		  "array:int(1) undefined:null null:null missing:null" },
		{ "{'$zip':{'inputs':['$a',[1]]}}", "34468",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$zip':{'inputs':[[1]],'useLongestLength':true,'defaults':'$a'}}", "34462",
		  "" },
		{ "{'$sortArray':{'input':'$a','sortBy':1}}", "2942504",
		  "array:array undefined:null null:null missing:null" },
		{ "{'$trim':{'input':'$a'}}", "50699",
		  "string:string undefined:null null:null missing:null" },
		{ "{'$trim':{'input':'x','chars':'$a'}}", "50700",
		  "string:string undefined:null null:null missing:null" },
		{ "{'$ltrim':{'input':'$a'}}", "50699",
		  "string:string undefined:null null:null missing:null" },
		{ "{'$replaceOne':{'input':'$a','find':'x','replacement':'y'}}", "10503904",
		  "string:string undefined:null null:null missing:null" },
		{ "{'$replaceOne':{'input':'x','find':'$a','replacement':'y'}}", "10503901",
		  "string:string undefined:null null:null missing:null" },
		{ "{'$replaceAll':{'input':'x','find':'x','replacement':'$a'}}", "10503902",
		  "string:string undefined:null null:null missing:null" },
		{ "{'$replaceOne':{'input':'x','find':'x','replacement':'$a'}}", "10503902",
		  "string:string undefined:null null:null missing:null" },
		{ "{'$regexMatch':{'input':'$a','regex':'x'}}", "51104",
		  "string:bool(true) undefined:bool(false) null:bool(false) missing:bool(false)" },
		{ "{'$regexMatch':{'input':'x','regex':'$a'}}", "51105",
		  "string:bool(true) undefined:bool(false) null:bool(false) regex:bool(true) "
		  "missing:bool(false)" },
		{ "{'$regexMatch':{'input':'x','regex':'x','options':'$a'}}", "51106",
		  "string:bool(true) undefined:bool(true) null:bool(true) missing:bool(true)" },
		{ "{'$regexFind':{'input':'$a','regex':'x'}}", "51104",
		  "string:object undefined:null null:null missing:null" },
		{ "{'$regexFindAll':{'input':'$a','regex':'x'}}", "51104",
		  "string:array undefined:array null:array missing:array" },
		{ "{'$dateAdd':{'startDate':'$a','unit':'day','amount':1}}", "5166403",
		  "undefined:null objectId:date date:date null:null timestamp:date missing:null" },
		{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'$a','amount':1}}", "5439013",
		  "string:9 undefined:null null:null missing:null" },
		{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'day','amount':'$a'}}", "5166405",
		  "undefined:null null:null int:date long:date decimal:date missing:null" },
		{ "{'$dateAdd':{'startDate':{'$date':0},'unit':'day','amount':1,'timezone':'$a'"
		  "}}",
		  "40517", "string:40485 undefined:null null:null missing:null" },
		{ "{'$dateSubtract':{'startDate':'$a','unit':'day','amount':1}}", "5166403",
		  "undefined:null objectId:date date:date null:null timestamp:date missing:null" },
		{ "{'$dateSubtract':{'startDate':{'$date':0},'unit':'day','amount':'$a'}}",
		  "5166405",
		  "undefined:null null:null int:date long:date decimal:date missing:null" },
		{ "{'$dateDiff':{'startDate':'$a','endDate':{'$date':0},'unit':'day'}}", "5166307",
		  "undefined:null objectId:long(-220) date:long(-19723) null:null "
		  "timestamp:long(0) missing:null" },
		{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':'$a','unit':'day'}}", "5166307",
		  "undefined:null objectId:long(220) date:long(19723) null:null timestamp:long(0) "
		  "missing:null" },
		{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':{'$date':0},'unit':'$a'}}",
		  "5439013", "string:9 undefined:null null:null missing:null" },
		{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':{'$date':0},'unit':'week','s"
		  "tartOfWeek':'$a'}}",
		  "5439015", "string:5439016 undefined:null null:null missing:null" },
		{ "{'$dateDiff':{'startDate':{'$date':0},'endDate':{'$date':0},'unit':'day','ti"
		  "mezone':'$a'}}",
		  "40517", "string:40485 undefined:null null:null missing:null" },
		{ "{'$dateTrunc':{'date':'$a','unit':'day'}}", "16006",
		  "undefined:null objectId:date date:date null:null timestamp:date missing:null" },
		{ "{'$dateTrunc':{'date':{'$date':0},'unit':'$a'}}", "5439013",
		  "string:9 undefined:null null:null missing:null" },
		{ "{'$dateTrunc':{'date':{'$date':0},'unit':'day','binSize':'$a'}}", "5439017",
		  "undefined:null null:null int:date long:date decimal:date missing:null" },
		{ "{'$dateTrunc':{'date':{'$date':0},'unit':'day','timezone':'$a'}}", "40517",
		  "string:40485 undefined:null null:null missing:null" },
		{ "{'$dateTrunc':{'date':{'$date':0},'unit':'week','startOfWeek':'$a'}}", "5439015",
		  "string:5439016 undefined:null null:null missing:null" },
		{ "{'$dateTrunc':{'date':{'$date':0},'unit':'day','startOfWeek':'$a'}}", "date",
		  "" },
		{ "{'$dateFromParts':{'year':'$a'}}", "40515",
		  "undefined:null null:null int:date long:date decimal:date missing:null" },
		{ "{'$dateFromParts':{'year':2024,'month':'$a'}}", "40515",
		  "undefined:null null:null int:date long:date decimal:date missing:null" },
		{ "{'$dateFromParts':{'isoWeekYear':'$a'}}", "40515",
		  "undefined:null null:null int:date long:date decimal:date missing:null" },
		{ "{'$dateFromParts':{'year':2024,'timezone':'$a'}}", "40517",
		  "string:40485 undefined:null null:null missing:null" },
		{ "{'$dateToParts':{'date':{'$date':0},'timezone':'$a'}}", "40517",
		  "string:40485 undefined:null null:null missing:null" },
		{ "{'$dateToParts':{'date':{'$date':0},'iso8601':'$a'}}", "40521",
		  "undefined:null bool:object null:null missing:null" },
		{ "{'$dateToString':{'date':{'$date':0},'format':'$a'}}", "18533",
		  "string:string undefined:null null:null missing:null" },
		{ "{'$dateToString':{'date':{'$date':0},'timezone':'$a'}}", "40517",
		  "string:40485 undefined:null null:null missing:null" },
		{ "{'$dateToString':{'date':'$a','onNull':'n'}}", "16006",
		  "undefined:string objectId:string date:string null:string timestamp:string "
		  "missing:string" },
		{ "{'$dateFromString':{'dateString':'$a'}}", "241",
		  "undefined:null null:null missing:null" },
		{ "{'$dateFromString':{'dateString':'$a','onError':'e','onNull':'n'}}", "string",
		  "" },
		{ "{'$dateFromString':{'dateString':'2024-01-01','format':'$a'}}", "40684",
		  "string:241 undefined:null null:null missing:null" },
		{ "{'$dateFromString':{'dateString':'2024-01-01','timezone':'$a'}}", "40517",
		  "string:40485 undefined:null null:null missing:null" },
		{ "{'$hour':{'date':{'$date':0},'timezone':'$a'}}", "40517",
		  "string:40485 undefined:null null:null missing:null" },
		{ "{'$convert':{'input':'$a','to':'int'}}", "241",
		  "double:int(1) binData:int(0) undefined:null bool:int(1) null:null int:int(1) "
		  "long:int(1) decimal:int(1) missing:null" },
		{ "{'$convert':{'input':'$a','to':'string','onError':'e','onNull':'n'}}", "string",
		  "" },
		{ "{'$convert':{'input':1,'to':'$a'}}", "9",
		  "string:2 undefined:null null:null int:double(1) long:double(1) "
		  "decimal:double(1) missing:null" },
		{ "{'$convert':{'input':'x','to':{'type':'binData','subtype':'$a'},'format':'ut"
		  "f8'}}",
		  "4341108",
		  "double:4341106 undefined:binData null:binData int:binData long:binData "
		  "decimal:binData missing:binData" },
		{ "{'$convert':{'input':'eA==','to':'binData','format':'$a'}}", "4341114",
		  "string:4341125 undefined:4341115 null:4341115 missing:4341115" },
		{ "{'$convert':{'input':'$a','to':'bool'}}", "bool(true)",
		  "undefined:null null:null missing:null" },
		{ "{'$convert':{'input':'$a','to':'binData'}}", "241",
		  "double:binData string:4341115 binData:binData undefined:null null:null "
		  "int:binData long:binData missing:null" },
		{ "{'$getField':{'field':'b','input':'$a'}}", "none",
		  "object:int(1) undefined:null null:null" },
		{ "{'$getField':{'field':'$a','input':{'x':1}}}", "3041704", "string:int(1)" },
		{ "{'$setField':{'field':'b','input':'$a','value':1}}", "4161105",
		  "object:object undefined:null null:null missing:null" },
		{ "{'$setField':{'field':'b','input':{},'value':'$a'}}", "object", "" },
		{ "{'$unsetField':{'field':'b','input':'$a'}}", "4161105",
		  "object:object undefined:null null:null missing:null" },
		{ "{'$median':{'input':'$a','method':'approximate'}}", "null",
		  "double:double(1.5) array:double(1) int:double(1) long:double(1) "
		  "decimal:double(1)" },
		{ "{'$percentile':{'input':'$a','p':[0.5],'method':'approximate'}}", "array", "" },
		{ "{'$let':{'vars':{'v':'$a'},'in':'$$v.b'}}", "none",
		  "object:int(1) array:array" },
		{ "'$a.b'", "none", "object:int(1) array:array" },
	};

	check_types(*state, cases, CASES(cases));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(numbers_and_lists_of_arguments, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(texts_dates_and_named_arguments, case_setup,
						case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
