#include "cql/copy.h"

#include "cql_case.h"

static const struct cql_type *
type_of(struct cql *q, const char *text)
{
	static const struct str fields[] = { { "name", 4 }, { "a: b", 4 }, { "no", 2 } };
	static const struct cql_type *const args[] = { CQL_NATIVE(TEXT), CQL_NATIVE(INT),
						       CQL_NATIVE(TIME) };
	const struct cql_type *type;

	if (strcmp(text, "person") == 0)
		return cql_type_udt(q, STR("ks"), STR("person"), true, fields, args, CASES(fields));
	if (cql_type_parse(q, str_from_cstr(text), &type) != STATUS_OK)
		fail_msg("%s: %s", text, case_err.text);
	return type;
}

static const char *
printed(struct cql *q, const struct cql_type *type, struct str bytes)
{
	struct buf out = BUF_INIT(CASE_BYTES);

	cql_copy_print(&out, type, bytes);
	return case_text(q->arena, &out);
}

/* What is written of a value is read as the same value. */
static void
texts_come_back(void **state)
{
	static const struct {
		const char *type, *text;
	} cases[] = {
		{ "int", "-7" },
		{ "bigint", "9223372036854775807" },
		{ "tinyint", "-128" },
		{ "smallint", "0" },
		{ "counter", "12" },
		{ "varint", "-123456789012345678901234567890" },
		{ "decimal", "-1.50" },
		{ "decimal", "1E+400" },
		{ "decimal", "4.4E+2147483648" },
		{ "double", "0.1" },
		{ "double", "-0.0" },
		{ "double", "NaN" },
		{ "double", "-Infinity" },
		{ "float", "1.5" },
		{ "float", "1.1754944E-38" },
		{ "boolean", "True" },
		{ "boolean", "False" },
		{ "text", "it's, \"so\" [\\" },
		{ "text", "" },
		{ "ascii", "null" },
		{ "blob", "0x00ff" },
		{ "blob", "0x" },
		{ "date", "-5877641-06-23" },
		{ "date", "2026-11-26" },
		{ "time", "23:59:59.999999999" },
		{ "timestamp", "2026-11-26 12:00:00.123+0000" },
		{ "timestamp", "0001-01-01 00:00:00.000+0000" },
		{ "timestamp", "9999-12-31 23:59:59.999+0000" },
		{ "timestamp", "-62135596800001" },
		{ "timestamp", "253402300800000" },
		{ "timestamp", "-9223372036854775808" },
		{ "duration", "-1mo2d3ns" },
		{ "inet", "10.0.0.1" },
		{ "inet", "::1" },
		{ "uuid", "00000000-0000-0000-0000-000000000000" },
		{ "timeuuid", "50554d6e-29bb-11e5-b345-feff819cdc9f" },
		{ "jsonb", "{\"a\":[1,\"b'c\"]}" },
		{ "int", "" },
		{ "list<int>", "[3, 1, 3]" },
		{ "list<int>", "[]" },
		{ "list<int>", "['', 1]" },
		{ "list<text>", "['', 'a, ''b''', ']']" },
		{ "set<inet>", "{'::1', '10.0.0.1'}" },
		{ "set<boolean>", "{False, True}" },
		{ "set<blob>", "{0x, 0xff}" },
		{ "map<text, frozen<list<double>>>", "{'': [], 'x': [1.5, 2.0]}" },
		{ "map<time, timestamp>",
		  "{'01:02:03.000000000': '1970-01-01 00:00:00.000+0000'}" },
		{ "map<frozen<list<int>>, frozen<map<int, date>>>",
		  "{[1]: {1: 2026-11-26}, [1, 2]: {}}" },
		{ "tuple<int, text, int>", "(1, , )" },
		{ "tuple<int, text>", "(, '')" },
		{ "tuple<frozen<tuple<int, int>>, int>", "((1, ), 2)" },
		{ "list<frozen<tuple<jsonb, duration>>>", "[('{\"a\":\"''\"}', 1y2mo3h)]" },
		{ "person", "{name: 'ann', 'a: b': 1, no: '10:00:00.000000000'}" },
		{ "person", "{name: '', 'a: b': , no: }" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct cql q = case_cql(*state);
		const struct cql_type *type = type_of(&q, cases[i].type);
		struct str bytes, again;

		if (cql_copy_read(&q, type, str_from_cstr(cases[i].text), &bytes) != STATUS_OK)
			fail_msg("%s %s: %s", cases[i].type, cases[i].text, case_err.text);
		assert_string_equal(printed(&q, type, bytes), cases[i].text);
		assert_int_equal(
			cql_copy_read(&q, type, str_from_cstr(printed(&q, type, bytes)), &again),
			STATUS_OK);
		assert_true(str_eq(again, bytes));
	}
}

/* Other spellings, cqlsh's own among them. */
static void
other_spellings_are_read(void **state)
{
	static const struct {
		const char *type, *text, *printed;
	} cases[] = {
		{ "boolean", "true", "True" },
		{ "blob", "00FF", "0x00ff" },
		{ "timestamp", "-0044-03-15", "-63549360000000" },
		{ "timestamp", "0", "1970-01-01 00:00:00.000+0000" },
		{ "timestamp", "2026-11-26 13:00+01:00", "2026-11-26 12:00:00.000+0000" },
		{ "set<int>", "{3,1 , 3}", "{1, 3}" },
		{ "list<text>", "[ab c , 'd']", "['ab c', 'd']" },
		{ "list<int>", "['1', 2]", "[1, 2]" },
		{ "list<time>", "[01:02:03.0]", "['01:02:03.000000000']" },
		{ "map<time, time>", "{01:02:03.0: 04:05:06.0, 02:00:00: 03:00:00}",
		  "{'01:02:03.000000000': '04:05:06.000000000', "
		  "'02:00:00.000000000': '03:00:00.000000000'}" },
		{ "map<int, int>", "{1:2}", "{1: 2}" },
		{ "tuple<int, text>", "()", "(, )" },
		{ "tuple<int, text>", "(1)", "(1, )" },
		{ "person", "{no:'10:00:00',name:'x'}",
		  "{name: 'x', 'a: b': , no: '10:00:00.000000000'}" },
		{ "person", "{}", "{name: , 'a: b': , no: }" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct cql q = case_cql(*state);
		const struct cql_type *type = type_of(&q, cases[i].type);
		struct str bytes;

		if (cql_copy_read(&q, type, str_from_cstr(cases[i].text), &bytes) != STATUS_OK)
			fail_msg("%s %s: %s", cases[i].type, cases[i].text, case_err.text);
		assert_string_equal(printed(&q, type, bytes), cases[i].printed);
	}
}

static void
what_is_no_value_is_refused(void **state)
{
	static const struct {
		const char *type, *text;
	} cases[] = {
		{ "int", "x" },
		{ "tinyint", "128" },
		{ "boolean", "yes" },
		{ "ascii", "\xc3\xa4" },
		{ "text", "\xff" },
		{ "list<int>", "" },
		{ "list<int>", "1" },
		{ "list<int>", "[1" },
		{ "list<int>", "[1, ]" },
		{ "list<int>", "[,1]" },
		{ "list<int>", "[1] 2" },
		{ "list<int>", "{1}" },
		{ "list<text>", "['a]" },
		{ "list<text>", "['a'b]" },
		{ "set<int>", "{1, two}" },
		{ "map<int, int>", "{1}" },
		{ "map<int, int>", "{1: }" },
		{ "map<int, int>", "{: 1}" },
		{ "tuple<int, int>", "(1, 2, 3)" },
		{ "list<frozen<list<int>>>", "['[1]']" },
		{ "person", "{name 'x'}" },
		{ "person", "{other: 'x'}" },
		{ "person", "{name: 'x', name: 'y'}" },
		{ "'x.y.Z'", "0x00" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct cql q = case_cql(*state);
		struct str bytes;

		if (cql_copy_read(&q, type_of(&q, cases[i].type), str_from_cstr(cases[i].text),
				  &bytes) != STATUS_INVALID)
			fail_msg("%s %s is taken", cases[i].type, cases[i].text);
		assert_int_equal(q.code, CQL_CODE_INVALID);
		assert_true(case_err.text[0]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(texts_come_back, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(other_spellings_are_read, case_setup,
						case_teardown),
		cmocka_unit_test_setup_teardown(what_is_no_value_is_refused, case_setup,
						case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
