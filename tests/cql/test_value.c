#include "cql/value.h"

#include "cql/json.h"
#include "cql_case.h"
#include "doc/key_read.h"

static const struct cql_type *
type_of(struct cql *q, const char *text)
{
	const struct cql_type *type;

	if (cql_type_parse(q, str_from_cstr(text), &type) != STATUS_OK)
		fail_msg("%s: %s", text, case_err.text);
	return type;
}

static void
types_are_printed_as_the_schema_has_them(void **state)
{
	static const struct {
		const char *text, *printed;
	} cases[] = {
		{ "INT", "int" },
		{ "varchar", "text" },
		{ "frozen<list<list<int>>>", "frozen<list<frozen<list<int>>>>" },
		{ "map<text,frozen<set<uuid>>>", "map<text, frozen<set<uuid>>>" },
		{ "tuple<int,list<text>>", "frozen<tuple<int, frozen<list<text>>>>" },
		{ "frozen<\"My\">", "frozen<\"My\">" },
		{ "frozen<frozen<tuple<tuple<int>>>>", "frozen<tuple<frozen<tuple<int>>>>" },
		{ "ks.u", "u" },
		{ "'org.apache.cassandra.db.marshal.Int32Type'", "int" },
		{ "'x.y.Z'", "'x.y.Z'" },
		{ "jsonb", "jsonb" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct cql q = case_cql(*state);

		assert_string_equal(cql_type_text(&q, type_of(&q, cases[i].text)).ptr,
				    cases[i].printed);
	}
}

static void
types_that_cannot_be_are_refused(void **state)
{
	static const char *const unparsed[] = { "list", "frozen<int>", "map<int>",
						"int>", "list<int",    "",
						"set<>" };
	static const char *const unchecked[] = { "list<list<int>>",          "set<duration>",
						 "map<duration, int>",       "list<counter>",
						 "map<text, map<int, int>>", "'x.y.Z'" };

	for (size_t i = 0; i < CASES(unparsed); i++) {
		struct cql q = case_cql(*state);
		const struct cql_type *type;

		if (i == 0)
			continue; /* "list" by itself is a name of a user type */
		assert_int_equal(cql_type_parse(&q, str_from_cstr(unparsed[i]), &type),
				 STATUS_INVALID);
	}
	for (size_t i = 0; i < CASES(unchecked); i++) {
		struct cql q = case_cql(*state);

		assert_int_equal(cql_type_check(&q, type_of(&q, unchecked[i])), STATUS_INVALID);
		assert_int_equal(q.code, CQL_CODE_INVALID);
	}
}

static const char *
option_of(struct cql *q, const char *text, unsigned version)
{
	struct buf b = BUF_INIT(CASE_BYTES);
	const char *hex;

	cql_type_put_option(&b, type_of(q, text), version);
	hex = case_hex_of(q->arena, buf_str(&b));
	buf_release(&b);
	return hex;
}

static void
options_are_the_protocols(void **state)
{
	struct cql q = case_cql(*state);

	assert_string_equal(option_of(&q, "int", 4), "0009");
	assert_string_equal(option_of(&q, "map<text, frozen<list<bigint>>>", 4),
			    "0021000d00200002");
	assert_string_equal(option_of(&q, "tuple<int, uuid>", 4), "003100020009000c");
	assert_string_equal(option_of(&q, "duration", 5), "0015");
	assert_memory_equal(option_of(&q, "duration", 4), "0000002c6f7267", 14);
}

/* ---- Texts and bytes ---- */

static void
texts_become_bytes_and_texts_again(void **state)
{
	static const struct {
		const char *type, *text, *hex, *cast, *json;
	} cases[] = {
		{ "int", "-1", "ffffffff", "-1", "-1" },
		{ "tinyint", "127", "7f", "127", "127" },
		{ "bigint", "-9223372036854775808", "8000000000000000", "-9223372036854775808",
		  "-9223372036854775808" },
		{ "varint", "0", "00", "0", "0" },
		{ "varint", "128", "0080", "128", "128" },
		{ "varint", "-129", "ff7f", "-129", "-129" },
		{ "varint", "18446744073709551616", "010000000000000000", "18446744073709551616",
		  "18446744073709551616" },
		{ "varint", "-18446744073709551616", "ff0000000000000000", "-18446744073709551616",
		  "-18446744073709551616" },
		{ "decimal", "1.10", "000000026e", "1.10", "1.10" },
		{ "decimal", "-0.001", "00000003ff", "-0.001", "-0.001" },
		{ "decimal", "1E+3", "fffffffd01", "1E+3", "1E+3" },
		{ "decimal", "0.0000001", "0000000701", "1E-7", "1E-7" },
		{ "double", "1", "3ff0000000000000", "1.0", "1.0" },
		{ "double", "1e7", "416312d000000000", "1.0E7", "1.0E7" },
		{ "double", "0.001", "3f50624dd2f1a9fc", "0.001", "0.001" },
		{ "double", "NaN", "7ff8000000000000", "NaN", "null" },
		{ "double", "-Infinity", "fff0000000000000", "-Infinity", "null" },
		{ "float", "1.1", "3f8ccccd", "1.1", "1.1" },
		{ "float", "1234567.5", "4996b43c", "1234567.5", "1234567.5" },
		{ "boolean", "TRUE", "01", "true", "true" },
		{ "blob", "0xCAFE", "cafe", "0xcafe", "\"0xcafe\"" },
		{ "text", "h\xc3\xa9", "68c3a9", "h\xc3\xa9", "\"h\xc3\xa9\"" },
		{ "date", "1970-01-02", "80000001", "1970-01-02", "\"1970-01-02\"" },
		{ "date", "2147483648", "80000000", "1970-01-01", "\"1970-01-01\"" },
		{ "time", "01:02:03.000000004", "00000362d417ae04", "01:02:03.000000004",
		  "\"01:02:03.000000004\"" },
		{ "timestamp", "2011-02-03T04:05:00+0000", "0000012de9b1cde0",
		  "2011-02-03T04:05:00.000Z", "\"2011-02-03 04:05:00.000Z\"" },
		{ "timestamp", "2011-02-03 04:05+01:00", "0000012de97adf60",
		  "2011-02-03T03:05:00.000Z", "\"2011-02-03 03:05:00.000Z\"" },
		{ "timestamp", "-1", "ffffffffffffffff", "1969-12-31T23:59:59.999Z",
		  "\"1969-12-31 23:59:59.999Z\"" },
		{ "inet", "127.0.0.1", "7f000001", "127.0.0.1", "\"127.0.0.1\"" },
		{ "inet", "::1", "00000000000000000000000000000001", "::1", "\"::1\"" },
		{ "uuid", "550e8400-e29b-41d4-a716-446655440000",
		  "550e8400e29b41d4a716446655440000", "550e8400-e29b-41d4-a716-446655440000",
		  "\"550e8400-e29b-41d4-a716-446655440000\"" },
		{ "duration", "1y2mo3d4h5m6s7ms8us9ns", "1c06fc1ac004a5c612",
		  "1y2mo3d4h5m6s7ms8us9ns", "\"1y2mo3d4h5m6s7ms8us9ns\"" },
		{ "duration", "-P1Y", "170000", "-1y", "\"-1y\"" },
		{ "duration", "P1Y2M3DT4H", NULL, "1y2mo3d4h", "\"1y2mo3d4h\"" },
		{ "duration", "P0001-02-03T04:05:06", NULL, "1y2mo3d4h5m6s", "\"1y2mo3d4h5m6s\"" },
		{ "duration", "2w", "001c00", "14d", "\"14d\"" },
		{ "jsonb", "{\"b\": 1, \"a\" : [ 1, 2 ]}", NULL, "{\"a\":[1,2],\"b\":1}",
		  "{\"a\":[1,2],\"b\":1}" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct cql q = case_cql(*state);
		const struct cql_type *type = type_of(&q, cases[i].type);
		struct buf cast = BUF_INIT(CASE_BYTES), json = BUF_INIT(CASE_BYTES);
		struct str bytes;

		if (cql_value_from_text(&q, type, str_from_cstr(cases[i].text), &bytes) !=
		    STATUS_OK)
			fail_msg("%s %s: %s", cases[i].type, cases[i].text, case_err.text);
		if (cases[i].hex && strcmp(case_hex_of(*state, bytes), cases[i].hex) != 0)
			fail_msg("%s %s: %s", cases[i].type, cases[i].text,
				 case_hex_of(*state, bytes));
		assert_int_equal(cql_value_check(&q, type, bytes), STATUS_OK);
		cql_value_print(&cast, type, CQL_VALUE(bytes), CQL_FORM_CAST);
		assert_string_equal(case_text(*state, &cast), cases[i].cast);
		cql_json_print(&json, type, CQL_VALUE(bytes));
		assert_string_equal(case_text(*state, &json), cases[i].json);
	}
}

static void
texts_of_no_value_are_refused(void **state)
{
	static const struct {
		const char *type, *text, *error;
	} cases[] = {
		{ "int", "2147483648", "Unable to make int from '2147483648'" },
		{ "tinyint", "128", "Unable to make byte from '128'" },
		{ "boolean", "yes", "Unable to make boolean from 'yes'" },
		{ "date", "2011-02-29",
		  "Unable to coerce '2011-02-29' to a formatted date (long)" },
		{ "time", "24:00:00", "Unable to coerce '24:00:00' to a formatted time (long)" },
		{ "timestamp", "x", "Unable to coerce 'x' to a formatted date (long)" },
		{ "timeuuid", "550e8400-e29b-41d4-a716-446655440000",
		  "TimeUUID supports only version 1 UUIDs" },
		{ "uuid", "550e8400", "Unable to make UUID from '550e8400'" },
		{ "inet", "1.2.3", "Unable to make inet address from '1.2.3'" },
		{ "duration", "1d1y",
		  "Invalid duration. The units should be in the following order: years, months," },
		{ "duration", "1d2d", "Invalid duration. The days are specified multiple times" },
		{ "duration", "5", "Unable to convert '5' to a duration" },
		{ "blob", "0xabc", "An hex string must be even length" },
		{ "ascii", "\xc3\xa9", "Invalid byte for ascii" },
		{ "jsonb", "{", "Invalid JSON value for jsonb" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct cql q = case_cql(*state);
		struct str bytes;

		assert_int_equal(cql_value_from_text(&q, type_of(&q, cases[i].type),
						     str_from_cstr(cases[i].text), &bytes),
				 STATUS_INVALID);
		if (!strstr(case_err.text, cases[i].error))
			fail_msg("%s %s: %s", cases[i].type, cases[i].text, case_err.text);
	}
}

static void
bytes_of_no_value_are_refused(void **state)
{
	static const struct {
		const char *type, *hex, *error;
	} cases[] = {
		{ "int", "000001", "Expected 4 or 0 byte int (3)" },
		{ "tinyint", "", "Expected 1 byte for a tinyint (0)" },
		{ "text", "ff", "String didn't validate." },
		{ "inet", "7f0000", "inetaddress (3)" },
		{ "decimal", "00000001", "at least 4 bytes" },
		{ "list<int>", "00000001", "Not enough bytes to read list" },
		{ "list<int>", "00000001ffffffff", "null is not supported inside collections" },
		{ "list<int>", "000000010000000100", "Expected 4 or 0 byte int (1)" },
		{ "set<int>", "0000000000", "Unexpected extraneous bytes after set" },
		{ "map<int, text>", "000000010000000400000001", "Not enough bytes to read map" },
		{ "map<int, text>", "00000001000000040000000100000900",
		  "Not enough bytes to read map" },
		{ "list<text>", "0000000100000001", "Not enough bytes to read list" },
		{ "tuple<int, text>", "000000040000000100000900",
		  "Not enough bytes to read a tuple" },
		{ "tuple<int>", "00000004000000010000", "Invalid remaining data" },
		{ "duration", "0001", "duration (2)" },
		{ "duration", "020100", "must be all of the same sign (1, -1, 0)" },
		{ "duration", "f801000000000000", "The duration months must be a 32 bits integer" },
		{ "timeuuid", "550e8400e29b41d4a716446655440000", "version 1" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct cql q = case_cql(*state);

		if (cql_value_check(&q, type_of(&q, cases[i].type),
				    case_hex(*state, cases[i].hex)) != STATUS_INVALID)
			fail_msg("%s %s is taken", cases[i].type, cases[i].hex);
		if (!strstr(case_err.text, cases[i].error))
			fail_msg("%s %s: %s", cases[i].type, cases[i].hex, case_err.text);
	}
}

/* ---- Order ---- */

/* A component that was read as a scalar is the same value as the component. */
static void
check_part(struct cql *q, const struct cql_type *type, struct str key, struct str wanted)
{
	struct doc_scalar s;
	struct str bytes;
	size_t len;

	if (type->kind >= CQL_NATIVE_COUNT)
		return;
	assert_int_equal(doc_key_read(key, false, q->arena, &s, &len), STATUS_OK);
	assert_int_equal(cql_value_of_part(q, type, &s, &bytes), STATUS_OK);
	assert_true(str_eq(bytes, wanted));
}

static void
values_and_their_keys_have_cassandras_order(void **state)
{
	/* Each row is in ascending order. */
	static const struct {
		const char *type;
		const char *values[8];
	} cases[] = {
		{ "int", { "", "80000000", "ffffffff", "00000000", "7fffffff" } },
		{ "varint", { "", "ff00", "80", "ff", "00", "7f", "0080", "010000000000000000" } },
		{ "decimal",
		  { "", "00000000ff", "00000001ff", "0000000000", "0000000101", "0000000001",
		    "fffffffd01" } },
		{ "double",
		  { "", "fff0000000000000", "8000000000000000", "0000000000000000",
		    "7ff0000000000000", "7ff8000000000000" } },
		{ "float", { "", "ff800000", "80000000", "00000000", "7f800000", "7fc00000" } },
		{ "text", { "", "61", "6100", "6101", "62", "c3a9" } },
		{ "boolean", { "", "00", "01" } },
		{ "date", { "00000000", "7fffffff", "80000000", "ffffffff" } },
		{ "timestamp", { "", "ffffffffffffffff", "0000000000000000", "0000000000000001" } },
		{ "inet", { "", "01000000", "7f000001", "ff000000" } },
		{ "timeuuid",
		  { "", "00000001000010008000000000000000", "0000000100001000ff00000000000000",
		    "000000010000100000000000000000ff", "0000000200001000800000000000007f",
		    "00000000000010018000000000000000" } },
		{ "uuid",
		  { "", "00000001000010000000000000000000", "0000000100001000ff00000000000000",
		    "00000000000040000000000000000001", "00000001000040000000000000000000" } },
		{ "frozen<list<int>>",
		  { "00000000", "000000010000000400000001",
		    "00000002000000040000000100000004ffffffff", "000000010000000400000002" } },
		{ "frozen<map<int, text>>",
		  { "00000000", "00000001000000040000000100000000",
		    "0000000100000004000000010000000161" } },
		{ "tuple<int, text>",
		  { "", "ffffffff0000000161", "00000000", "0000000400000001",
		    "000000040000000100000000", "00000004000000010000000161" } },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct cql q = case_cql(*state);
		const struct cql_type *type = type_of(&q, cases[i].type);
		struct buf keys[8];
		struct str bytes[8];
		size_t count = 0;

		for (; count < 8 && cases[i].values[count]; count++) {
			struct str back;
			size_t len;

			keys[count] = BUF_INIT(CASE_BYTES);
			bytes[count] = case_hex(*state, cases[i].values[count]);
			if (cql_value_check(&q, type, bytes[count]) != STATUS_OK)
				fail_msg("%s %s: %s", cases[i].type, cases[i].values[count],
					 case_err.text);
			assert_int_equal(cql_value_put_key(&q, &keys[count], type, bytes[count]),
					 STATUS_OK);
			assert_int_equal(cql_value_of_key(&q, type, buf_str(&keys[count]), false,
							  &back, &len),
					 STATUS_OK);
			assert_int_equal(len, keys[count].len);
			assert_int_equal(cql_value_compare(type, back, bytes[count]), 0);
			check_part(&q, type, buf_str(&keys[count]), back);
			doc_key_invert(&keys[count], 0);
			assert_int_equal(cql_value_of_key(&q, type, buf_str(&keys[count]), true,
							  &back, &len),
					 STATUS_OK);
			assert_int_equal(cql_value_compare(type, back, bytes[count]), 0);
			doc_key_invert(&keys[count], 0);
		}
		for (size_t a = 0; a < count; a++) {
			for (size_t b = 0; b < count; b++) {
				int wanted = (a > b) - (a < b);
				int order = cql_value_compare(type, bytes[a], bytes[b]);
				int key_order = str_cmp(buf_str(&keys[a]), buf_str(&keys[b]));

				if (((order > 0) - (order < 0)) != wanted)
					fail_msg("%s: %s and %s compare as %d", cases[i].type,
						 cases[i].values[a], cases[i].values[b], order);
				if (((key_order > 0) - (key_order < 0)) != wanted)
					fail_msg("%s: keys of %s and %s compare as %d",
						 cases[i].type, cases[i].values[a],
						 cases[i].values[b], key_order);
			}
		}
		for (size_t a = 0; a < count; a++)
			buf_release(&keys[a]);
	}
}

static void
scalars_give_the_same_bytes_back(void **state)
{
	static const struct {
		const char *type, *hex;
	} cases[] = {
		{ "int", "80000000" },
		{ "int", "" },
		{ "text", "" },
		{ "tinyint", "ff" },
		{ "smallint", "8000" },
		{ "bigint", "ffffffffffffffff" },
		{ "varint", "ff0000000000000000" },
		{ "varint", "00" },
		{ "decimal", "00000002ff7f" },
		{ "double", "8000000000000000" },
		{ "float", "7fc00001" },
		{ "boolean", "01" },
		{ "date", "00000000" },
		{ "time", "0000000000000001" },
		{ "timestamp", "8000000000000000" },
		{ "duration", "1c06fc1ac004a5c612" },
		{ "inet", "7f000001" },
		{ "uuid", "550e8400e29b41d4a716446655440000" },
		{ "blob", "00ff" },
		{ "list<int>", "000000010000000400000001" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct cql q = case_cql(*state);
		const struct cql_type *type = type_of(&q, cases[i].type);
		struct str bytes = case_hex(*state, cases[i].hex), back;
		struct doc_scalar s;
		struct buf leaf = BUF_INIT(CASE_BYTES);

		assert_int_equal(cql_value_to_scalar(&q, type, bytes, &s), STATUS_OK);
		doc_scalar_put(&leaf, &s);
		assert_int_equal(cql_value_of_scalar(&q, type, &s, &back), STATUS_OK);
		assert_string_equal(case_hex_of(*state, back), cases[i].hex);
		buf_release(&leaf);
	}
}

static void
sets_and_maps_are_sorted(void **state)
{
	static const struct {
		const char *type, *before, *after;
	} cases[] = {
		{ "set<int>",
		  "000000030000000400000002000000040000000100000004"
		  "00000002",
		  "000000020000000400000001"
		  "0000000400000002" },
		{ "map<int, int>",
		  "0000000200000004000000010000000400000001"
		  "00000004000000010000000400000002",
		  "0000000100000004000000010000000400000002" },
		{ "duration", "1c06fc01000025c612", "1c06f9000025c612" },
		{ "list<varint>", "00000001000000020001", "000000010000000101" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct cql q = case_cql(*state);
		struct str after;

		assert_int_equal(cql_value_normalize(&q, type_of(&q, cases[i].type),
						     case_hex(*state, cases[i].before), &after),
				 STATUS_OK);
		assert_string_equal(case_hex_of(*state, after), cases[i].after);
	}
}

/* ---- JSON ---- */

static void
json_is_read_as_cassandra_does(void **state)
{
	static const struct {
		const char *type, *json, *literal; /* or the error, behind a ! */
	} cases[] = {
		{ "int", "5", "5" },
		{ "int", "'5'", "5" },
		{ "int", "null", "null" },
		{ "int", "5.5", "!Expected an int value, but got a Double: 5.5" },
		{ "text", "5", "!Expected a UTF-8 string, but got a Integer: 5" },
		{ "boolean", "'true'", "true" },
		{ "list<int>", "[1, '2']", "[1, 2]" },
		{ "list<int>", "[1, null]", "!Invalid null element in list" },
		{ "set<int>", "[2, 1, 2]", "{1, 2}" },
		{ "map<int, text>", "{'2': 'b', '1': 'a'}", "{1: 'a', 2: 'b'}" },
		{ "map<frozen<list<int>>, int>", "{'[1, 2]': 3}", "{[1, 2]: 3}" },
		{ "tuple<int, text>", "[1, null]", "(1, null)" },
		{ "list<int>", "{}", "!Expected a list, but got a LinkedHashMap: {}" },
		{ "blob", "'cafe'", "!missing 0x prefix" },
		{ "list<int>", "[", "!Error decoding JSON value for list<int>" },
		{ "timestamp", "0", "'1970-01-01T00:00:00.000Z'" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct cql q = case_cql(*state);
		const struct cql_type *type = type_of(&q, cases[i].type);
		struct buf literal = BUF_INIT(CASE_BYTES);
		struct str json = arena_dup(*state, str_from_cstr(cases[i].json));
		char *text = arena_bytes(*state, json.len + 1);
		struct cql_value v;
		enum status status;

		for (size_t c = 0; c <= json.len; c++)
			text[c] = (char)(json.ptr[c] == '\'' ? '"' : json.ptr[c]);
		status = cql_json_read(&q, type, str_of(text, json.len), &v);
		if (cases[i].literal[0] == '!') {
			assert_int_equal(status, STATUS_INVALID);
			if (!strstr(case_err.text, cases[i].literal + 1))
				fail_msg("%s: %s", cases[i].json, case_err.text);
			continue;
		}
		if (status != STATUS_OK)
			fail_msg("%s: %s", cases[i].json, case_err.text);
		cql_value_print(&literal, type, v, CQL_FORM_LITERAL);
		assert_string_equal(case_text(*state, &literal), cases[i].literal);
	}
}

static void
jsonb_is_read_and_set_at_paths(void **state)
{
	struct cql q = case_cql(*state);
	struct str json = STR("{\"a\":{\"b\":\"x\"},\"c\":[1,2]}");
	const struct str ab[] = { STR("a"), STR("b") }, c1[] = { STR("c"), STR("1") };
	const struct str missing[] = { STR("z"), STR("y") };
	struct str got;

	assert_int_equal(cql_jsonb_get(&q, json, ab, 2, true, &got), STATUS_OK);
	assert_true(str_eq(got, STR("x")));
	assert_int_equal(cql_jsonb_get(&q, json, ab, 2, false, &got), STATUS_OK);
	assert_true(str_eq(got, STR("\"x\"")));
	assert_int_equal(cql_jsonb_get(&q, json, missing, 2, true, &got), STATUS_OK);
	assert_null(got.ptr);
	assert_int_equal(cql_jsonb_set(&q, json, c1, 2, STR("{\"n\": 1}"), &got), STATUS_OK);
	assert_true(str_eq(got, STR("{\"a\":{\"b\":\"x\"},\"c\":[1,{\"n\":1}]}")));
	assert_int_equal(cql_jsonb_set(&q, json, missing, 1, STR("1"), &got), STATUS_OK);
	assert_true(str_eq(got, STR("{\"a\":{\"b\":\"x\"},\"c\":[1,2],\"z\":1}")));
	assert_int_equal(cql_jsonb_set(&q, json, missing, 2, STR("1"), &got), STATUS_INVALID);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, case_setup, case_teardown)
	const struct CMUnitTest tests[] = {
		CASE(types_are_printed_as_the_schema_has_them),
		CASE(types_that_cannot_be_are_refused),
		CASE(options_are_the_protocols),
		CASE(texts_become_bytes_and_texts_again),
		CASE(texts_of_no_value_are_refused),
		CASE(bytes_of_no_value_are_refused),
		CASE(values_and_their_keys_have_cassandras_order),
		CASE(scalars_give_the_same_bytes_back),
		CASE(sets_and_maps_are_sorted),
		CASE(json_is_read_as_cassandra_does),
		CASE(jsonb_is_read_and_set_at_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
