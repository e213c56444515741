#include "cql/expr.h"

#include "cql_case.h"

/* A table with a column of each of these types, and the values of its one row. */
static const struct {
	const char *name, *type, *value;
} columns[] = {
	{ "k", "int", "5" },
	{ "i", "int", "7" },
	{ "b", "bigint", "10" },
	{ "t", "tinyint", "3" },
	{ "v", "varint", "100000000000000000000" },
	{ "d", "decimal", "1.50" },
	{ "f", "float", "1.5" },
	{ "g", "double", "2.5" },
	{ "s", "text", "abc" },
	{ "n", "int", NULL },
	{ "ts", "timestamp", "2011-02-28 01:02:03.004+0000" },
	{ "dt", "date", "2012-01-31" },
	{ "u", "timeuuid", "d2177dd0-eaa2-11de-a572-001b779c76e3" },
	{ "j", "jsonb", "{\"a\":{\"b\":[1,\"x\"]}}" },
	{ "c", "counter", "9" },
	{ "l", "list<int>", NULL },
};

enum {
	COLUMNS = sizeof(columns) / sizeof(columns[0]),
};

struct world {
	struct cql q;
	struct cql_scope scope;
	struct cql_env env;
	struct cql_marker markers[8];
	const struct cql_type *types[COLUMNS];
	struct cql_value values[COLUMNS];
	const struct cql_type *key;
};

static bool
world_column(void *arg, struct str name, struct cql_known_column *ret)
{
	struct world *w = arg;

	for (unsigned i = 0; i < COLUMNS; i++) {
		if (!str_eq(name, str_from_cstr(columns[i].name)))
			continue;
		*ret = (struct cql_known_column){ .index = i,
						  .type = w->types[i],
						  .is_key = i == 0 };
		return true;
	}
	return false;
}

/* The user type "point": x and y. */
static enum status
world_find_type(void *arg, struct cql *q, struct str keyspace, struct str name,
		const struct cql_type **ret)
{
	static const struct cql_type *const args[] = { CQL_NATIVE(INT), CQL_NATIVE(TEXT) };
	static const struct str fields[] = { { "x", 1 }, { "y", 1 } };

	(void)arg;
	*ret = NULL;
	if (!str_eq(name, STR("point")))
		return STATUS_OK;
	*ret = cql_type_udt(q, keyspace, name, true, fields, args, 2);
	return *ret ? STATUS_OK : STATUS_LIMIT;
}

static enum status
world_get(void *arg, struct cql *q, unsigned column, struct cql_value *ret)
{
	struct world *w = arg;

	(void)q;
	*ret = w->values[column];
	return STATUS_OK;
}

static enum status
world_cell(void *arg, struct cql *q, unsigned column, enum cql_cell_part part,
	   struct cql_value *ret)
{
	struct str bytes;

	(void)arg;
	TRY(cql_int_put(q, part == CQL_CELL_TTL ? 60 : 1000 + column, part == CQL_CELL_TTL ? 4 : 8,
			&bytes));
	*ret = CQL_VALUE(bytes);
	return STATUS_OK;
}

static void
world_init(struct world *w, struct arena *arena)
{
	*w = (struct world){ .q = case_cql(arena) };
	for (unsigned i = 0; i < COLUMNS; i++) {
		struct str bytes;

		assert_int_equal(
			cql_type_parse(&w->q, str_from_cstr(columns[i].type), &w->types[i]),
			STATUS_OK);
		w->values[i] = CQL_VALUE_NULL;
		if (!columns[i].value)
			continue;
		if (cql_value_from_text(&w->q, w->types[i], str_from_cstr(columns[i].value),
					&bytes) != STATUS_OK)
			fail_msg("%s: %s", columns[i].value, case_err.text);
		w->values[i] = CQL_VALUE(bytes);
	}
	w->key = w->types[0];
	w->scope = (struct cql_scope){
		.keyspace = STR("ks"),
		.table = STR("t"),
		.column = world_column,
		.find_type = world_find_type,
		.arg = w,
		.markers = w->markers,
		.marker_count = 8,
		.partition_count = 1,
		.partition = &w->key,
		.allows_aggregates = true,
	};
	w->env = (struct cql_env){
		.get = world_get,
		.cell = world_cell,
		.arg = w,
		.now_us = INT64_C(1300000000123456),
	};
}

/* "type value", or the error's text behind a "!". */
static const char *
outcome(struct world *w, const char *text, const struct cql_type *receiver)
{
	struct buf out = BUF_INIT(CASE_BYTES);
	struct cql_value v = CQL_VALUE_NULL;
	struct cql_term *term;
	struct cql_expr *e;
	enum status status = cql_parse_term(&w->q, str_from_cstr(text), &term);

	if (status == STATUS_OK && receiver)
		status = cql_compile(&w->q, &w->scope, term, receiver, STR("r"), &e);
	else if (status == STATUS_OK)
		status = cql_compile_selector(&w->q, &w->scope, term, &e);
	if (status == STATUS_OK)
		status = cql_run(e, &w->q, &w->env, &v);
	if (status != STATUS_OK) {
		buf_append_byte(&out, '!');
		buf_append_cstr(&out, case_err.text);
		return case_text(w->q.arena, &out);
	}
	cql_type_print(&out, cql_expr_type(e));
	buf_append_byte(&out, ' ');
	cql_value_print(&out, cql_expr_type(e), v, CQL_FORM_LITERAL);
	return case_text(w->q.arena, &out);
}

static void
selectors_are_computed(void **state)
{
	static const struct {
		const char *text, *outcome;
	} cases[] = {
		{ "i", "int 7" },
		{ "i + 1", "int 8" },
		{ "t + 1", "int 4" },
		{ "t + t", "tinyint 6" },
		{ "b * i", "bigint 70" },
		{ "i / 2", "int 3" },
		{ "-i % 4", "int -3" },
		{ "i + b", "bigint 17" },
		{ "f + i", "float 8.5" },
		{ "f + b", "double 11.5" },
		{ "v + i", "varint 100000000000000000007" },
		{ "v * v", "varint 10000000000000000000000000000000000000000" },
		{ "v / 3", "varint 33333333333333333333" },
		{ "-v % 7", "varint -2" },
		{ "d + i", "decimal 8.50" },
		{ "d * d", "decimal 2.2500" },
		{ "d / 3", "decimal 0.5" },
		{ "d / 7", "decimal 0.21428571428571428571428571428571" },
		{ "g * 2", "double 5.0" },
		{ "g % 2", "double 0.5" },
		{ "n + 1", "int null" },
		{ "(i + 1) * 2", "int 16" },
		{ "i / 0", "!the operation 'int / int' failed: / by zero" },
		{ "v / 0", "!the operation 'varint / int' failed: BigInteger divide by zero" },
		{ "d % 0", "!the operation 'decimal % int' failed: BigInteger divide by zero" },
		{ "s + 1", "!the '+' operation is not supported between s and 1" },
		{ "ts + 1mo", "timestamp '2011-03-28T01:02:03.004Z'" },
		{ "ts - 1h2m", "timestamp '2011-02-28T00:00:03.004Z'" },
		{ "dt + 1mo", "date '2012-02-29'" },
		{ "dt - 1d", "date '2012-01-30'" },
		{ "dt + 1h", "!the operation 'date + duration' failed: The duration must have a "
			     "day precision. Was: 1h" },
		{ "ts + 1us", "!the operation 'timestamp + duration' failed: The duration must "
			      "have a millisecond precision. Was: 1us" },
		{ "d + NaN", "!the operation 'decimal + double' failed: A NaN cannot be "
			     "converted into a decimal" },
		{ "d + (float) Infinity", "!the operation 'decimal + float' failed: An infinite "
					  "number cannot be converted into a decimal" },
		{ "s + s", "text 'abcabc'" },
		{ "s + n", "!the '+' operation is not supported between s and n" },
		{ "? + 1", "!Ambiguous '+' operation with args ? and 1" },
		{ "cast(i as int)", "int 7" },
		{ "l[1..2]", "!Slice selection is only allowed on sets and maps, but l is a list" },
		{ "cast(i as text)", "text '7'" },
		{ "cast(d as int)", "int 1" },
		{ "cast(f as decimal)", "decimal 1.5" },
		{ "cast(v as bigint)", "bigint 7766279631452241920" },
		{ "cast(g as varint)", "varint 2" },
		{ "cast(ts as date)", "date '2011-02-28'" },
		{ "cast(u as timestamp)", "timestamp '2009-12-17T00:26:29.805Z'" },
		{ "cast(s as int)", "!text cannot be cast to int" },
		{ "todate(u)", "date '2009-12-17'" },
		{ "totimestamp(dt)", "timestamp '2012-01-31T00:00:00.000Z'" },
		{ "tounixtimestamp(ts)", "bigint 1298854923004" },
		{ "dateOf(u)", "timestamp '2009-12-17T00:26:29.805Z'" },
		{ "mintimeuuid('2009-12-17 00:26:29.805+0000')",
		  "timeuuid d2177dd0-eaa2-11de-8080-808080808080" },
		{ "currenttimestamp()", "timestamp '2011-03-13T07:06:40.123Z'" },
		{ "currentdate()", "date '2011-03-13'" },
		{ "intasblob(i)", "blob 0x00000007" },
		{ "blobasint(0x00000008)", "int 8" },
		{ "blobasint(0x08)",
		  "!In call to function system.blobasint, value 0x08 is not a valid binary" },
		{ "token(k)", "bigint -7509452495886106294" },
		{ "token(1, 2)",
		  "!Invalid number of arguments in call to function system.token: 1 required" },
		{ "tojson(s)", "text '\"abc\"'" },
		{ "tojson(n)", "text 'null'" },
		{ "ttl(i)", "int 60" },
		{ "writetime(i)", "bigint 1001" },
		{ "ttl(k)", "!Cannot use selection function ttl on PRIMARY KEY part k" },
		{ "writetime(l)",
		  "!Cannot use selection function writetime on non-frozen collection" },
		{ "j->'a'->'b'", "jsonb '[1,\"x\"]'" },
		{ "j->'a'->'b'->>1", "text 'x'" },
		{ "j->'z'", "jsonb null" },
		{ "s->'a'", "!The operators -> and ->> need a jsonb column" },
		{ "(map<int, text>){1: 'a', 2: 'b'}", "map<int, text> {1: 'a', 2: 'b'}" },
		{ "((map<int, text>){1: 'a', 2: 'b'})[2]", "text 'b'" },
		{ "((map<int, text>){1: 'a', 2: 'b', 3: 'c'})[2..]",
		  "map<int, text> {2: 'b', 3: 'c'}" },
		{ "((set<int>){3, 1, 2})[..2]", "set<int> {1, 2}" },
		{ "((set<int>){3, 1, 2})[5]", "int null" },
		{ "[i, 1, 2]", "frozen<list<int>> [7, 1, 2]" },
		{ "(i, s)", "frozen<tuple<int, text>> (7, 'abc')" },
		{ "((point){x: 1, y: 'a'}).y", "text 'a'" },
		{ "i.x", "!Invalid field selection: i of type int is not a user type" },
		{ "?", "!Cannot infer type for term ? in selection clause" },
		{ "nothing(i)", "!Unknown function 'nothing'" },
		{ "todate(?)", "!Ambiguous call to function todate" },
		{ "todate(i)",
		  "!Invalid call to function todate, none of its type signatures match" },
		{ "now(1)",
		  "!Invalid number of arguments in call to function now: 0 required but 1" },
		{ "x", "!Undefined column name x in table t" },
		{ "l[1]", "!Element selection is only allowed on sets and maps, but l is a list" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct world w;
		const char *got;

		world_init(&w, *state);
		got = outcome(&w, cases[i].text, NULL);
		if (cases[i].outcome[0] == '!' ? !strstr(got, cases[i].outcome)
					       : strcmp(got, cases[i].outcome) != 0)
			fail_msg("%s: %s", cases[i].text, got);
	}
}

static void
values_are_typed_for_their_receivers(void **state)
{
	static const struct {
		const char *type, *text, *outcome;
	} cases[] = {
		{ "bigint", "5", "bigint 5" },
		{ "bigint", "1 + 2", "bigint 3" },
		{ "int", "'5'", "!Invalid STRING constant (5) for \"r\" of type int" },
		{ "text", "5", "!Invalid INTEGER constant (5) for \"r\" of type text" },
		{ "boolean", "true", "boolean true" },
		{ "int", "1.5", "!Invalid FLOAT constant (1.5) for \"r\" of type int" },
		{ "timeuuid", "550e8400-e29b-41d4-a716-446655440000", "!TimeUUID supports only" },
		{ "timestamp", "''", "timestamp ''" },
		{ "float", "NaN", "float NaN" },
		{ "list<bigint>", "[1, 2]", "list<bigint> [1, 2]" },
		{ "list<int>", "{1}", "!Invalid set literal for r of type list<int>" },
		{ "list<int>", "[1, null]", "!null is not supported inside collections" },
		{ "list<int>", "['a']",
		  "!Invalid list literal for r: value 'a' is not of type int" },
		{ "list<tuple<int, text>>", "[(1, 'a', 2)]",
		  "!Invalid list literal for r: value (1, 'a', 2) is not of type "
		  "frozen<tuple<int, text>>" },
		{ "map<int, text>", "{'a': 'b'}",
		  "!Invalid map literal for r: key 'a' is not of type int" },
		{ "tuple<int, text>", "(1, 2)",
		  "!Invalid tuple literal for r: component 1 is not of type text" },
		{ "text", "s + 'x'", "text 'abcx'" },
		{ "int", "? + 1", "!Ambiguous '+' operation with args ? and 1" },
		{ "int", "2 * (1 + ?)", "!Ambiguous '+' operation with args 1 and ?" },
		{ "int", "cast(? as int)", "!Ambiguous call to function system.castAsInt" },
		{ "timestamp", "'2011-02-28 01:02:03+0000' + 1d",
		  "timestamp '2011-03-01T01:02:03.000Z'" },
		{ "set<int>", "{2, 1, 2}", "set<int> {1, 2}" },
		{ "map<text, int>", "{}", "map<text, int> {}" },
		{ "map<text, int>", "{'b': 1, 'a': 2}", "map<text, int> {'a': 2, 'b': 1}" },
		{ "tuple<int, text>", "(1, null)", "frozen<tuple<int, text>> (1, null)" },
		{ "tuple<int, text>", "(1)", "frozen<tuple<int, text>> (1, null)" },
		{ "tuple<int, text>", "(1, 'a', 2)",
		  "!too many elements. Type frozen<tuple<int, text>> "
		  "expects 2 but got 3" },
		{ "int", "(5)", "int 5" },
		{ "point", "{y: 'a'}", "point {x: null, y: 'a'}" },
		{ "point", "{z: 1}", "!Unknown field 'z' in value of user defined type point" },
		{ "int", "(int) 5", "int 5" },
		{ "int", "(text) 'a'", "!Cannot assign value (text)'a' to r of type int" },
		{ "int", "now()",
		  "!Type error: cannot assign result of function system.now() (type "
		  "timeuuid) to r (type int)" },
		{ "uuid", "now() + 1", "!operation is not supported between system.now() and 1" },
		{ "list<int>", "fromjson('[1, 2]')", "list<int> [1, 2]" },
		{ "int", "fromjson('x')", "!execution of 'system.fromjson[text]' failed" },
		{ "int", "count(*)", "bigint" },
		{ "duration", "1h", "duration 1h" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct world w;
		const struct cql_type *type;
		const char *got;

		world_init(&w, *state);
		w.scope.allows_aggregates = false;
		assert_int_equal(cql_type_parse(&w.q, str_from_cstr(cases[i].type), &type),
				 STATUS_OK);
		assert_int_equal(
			cql_type_resolve(&w.q, STR("ks"), type, world_find_type, &w, &type),
			STATUS_OK);
		if (strcmp(cases[i].text, "count(*)") == 0) {
			assert_int_equal(outcome(&w, cases[i].text, type)[0], '!');
			continue;
		}
		got = outcome(&w, cases[i].text, type);
		if (cases[i].outcome[0] == '!' ? got[0] != '!' || !strstr(got, cases[i].outcome + 1)
					       : strcmp(got, cases[i].outcome) != 0)
			fail_msg("%s for %s: %s", cases[i].text, cases[i].type, got);
	}
}

static void
markers_get_names_and_types(void **state)
{
	static const struct {
		unsigned marker;
		const char *name, *type;
	} wanted[] = {
		{ 0, "value(r)", "int" },
	};
	struct world w;
	struct cql_term *term;
	struct cql_expr *e;
	struct cql_value v, values[2] = { CQL_VALUE_UNSET, CQL_VALUE_UNSET };
	const struct cql_type *type;

	world_init(&w, *state);
	assert_int_equal(cql_type_parse(&w.q, STR("list<int>"), &type), STATUS_OK);
	assert_int_equal(cql_parse_term(&w.q, STR("[?, 1]"), &term), STATUS_OK);
	assert_int_equal(cql_compile(&w.q, &w.scope, term, type, STR("r"), &e), STATUS_OK);
	assert_true(str_eq(w.markers[0].name, str_from_cstr(wanted[0].name)));
	assert_true(cql_type_eq(w.markers[0].type, CQL_NATIVE(INT)));
	w.env.markers = values;
	w.env.marker_count = 1;
	assert_int_equal(cql_run(e, &w.q, &w.env, &v), STATUS_INVALID);
	assert_non_null(strstr(case_err.text, "unset value"));

	assert_int_equal(cql_parse_term(&w.q, STR("?"), &term), STATUS_OK);
	assert_int_equal(cql_compile(&w.q, &w.scope, term, CQL_NATIVE(INT), STR("r"), &e),
			 STATUS_OK);
	assert_int_equal(cql_run(e, &w.q, &w.env, &v), STATUS_OK);
	assert_int_equal(v.presence, CQL_UNSET);
	assert_int_equal(cql_parse_term(&w.q, STR("i + ?"), &term), STATUS_OK);
	assert_int_equal(cql_compile_selector(&w.q, &w.scope, term, &e), STATUS_OK);
	assert_true(cql_type_eq(w.markers[0].type, CQL_NATIVE(INT)));
}

static void
aggregates_run_over_rows(void **state)
{
	static const struct {
		const char *text, *none, *three; /* of no row, and of i = 1, 2, 4 */
	} cases[] = {
		{ "count(*)", "0", "3" },
		{ "count(i)", "0", "3" },
		{ "count(n)", "0", "0" },
		{ "min(i)", "null", "1" },
		{ "max(i)", "null", "4" },
		{ "sum(i)", "0", "7" },
		{ "avg(i)", "0", "2" },
		{ "sum(i + 1)", "0", "10" },
		{ "sum(g)", "0.0", "7.5" },
		{ "avg(d)", "0", "1.5" },
		{ "sum(v)", "0", "300000000000000000000" },
		{ "max(i) + 1", "null", "5" },
		{ "tojson(max(s))", "'null'", "'\"abc\"'" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		static const char rows[] = { 1, 2, 4 };
		struct world w;
		struct cql_term *term;
		struct cql_expr *e;
		struct cql_aggregate_state s;
		struct cql_value v, result;

		world_init(&w, *state);
		assert_int_equal(cql_parse_term(&w.q, str_from_cstr(cases[i].text), &term),
				 STATUS_OK);
		if (cql_compile_selector(&w.q, &w.scope, term, &e) != STATUS_OK)
			fail_msg("%s: %s", cases[i].text, case_err.text);
		assert_int_equal(w.scope.aggregate_count, 1);
		assert_true(cql_expr_has_aggregate(e));
		cql_aggregate_init(&s, w.scope.aggregates[0], &w.q);
		w.env.aggregates = &result;
		for (size_t row = 0; row <= sizeof(rows); row++) {
			struct buf out = BUF_INIT(CASE_BYTES);
			const char *wanted = row == 0 ? cases[i].none : cases[i].three;

			assert_int_equal(
				cql_aggregate_result(w.scope.aggregates[0], &s, &w.q, &result),
				STATUS_OK);
			assert_int_equal(cql_run(e, &w.q, &w.env, &v), STATUS_OK);
			cql_value_print(&out, cql_expr_type(e), v, CQL_FORM_LITERAL);
			if (row == 0 || row == sizeof(rows))
				assert_string_equal(case_text(*state, &out), wanted);
			buf_release(&out);
			if (row == sizeof(rows))
				break;
			w.values[1].bytes = str_of((const char[]){ 0, 0, 0, rows[row] }, 4);
			assert_int_equal(cql_aggregate_add(w.scope.aggregates[0], &s, &w.q, &w.env),
					 STATUS_OK);
		}
		cql_aggregate_release(&s);
	}
}

static void
aggregates_are_refused_inside_of_others(void **state)
{
	struct world w;

	world_init(&w, *state);
	assert_string_equal(
		outcome(&w, "max(min(i))", NULL),
		"!aggregate functions cannot be used as arguments of aggregate functions");
}

/* A call in a literal in a call … is compiled once on each level. */
static void
nested_terms_are_compiled_in_time(void **state)
{
	struct buf text = BUF_INIT(CASE_BYTES);
	struct world w;
	struct cql_term *term;
	struct cql_expr *e;

	world_init(&w, *state);
	for (size_t i = 0; i < 30; i++)
		buf_append_cstr(&text, "tojson([");
	buf_append_cstr(&text, "i");
	for (size_t i = 0; i < 30; i++)
		buf_append_cstr(&text, "])");
	assert_int_equal(cql_parse_term(&w.q, buf_str(&text), &term), STATUS_OK);
	assert_int_equal(cql_compile_selector(&w.q, &w.scope, term, &e), STATUS_OK);
	buf_release(&text);
}

static void
now_differs_in_each_call(void **state)
{
	struct world w;
	struct cql_term *term;
	struct cql_expr *e;
	struct cql_value first, second;

	world_init(&w, *state);
	assert_int_equal(cql_parse_term(&w.q, STR("now()"), &term), STATUS_OK);
	assert_int_equal(cql_compile_selector(&w.q, &w.scope, term, &e), STATUS_OK);
	assert_int_equal(cql_run(e, &w.q, &w.env, &first), STATUS_OK);
	assert_int_equal(cql_run(e, &w.q, &w.env, &second), STATUS_OK);
	assert_int_equal(cql_value_check(&w.q, CQL_NATIVE(TIMEUUID), first.bytes), STATUS_OK);
	assert_true(cql_value_compare(CQL_NATIVE(TIMEUUID), first.bytes, second.bytes) < 0);
}

/* With an arena of each size, what does not end well ends with STATUS_LIMIT. */
static void
memory_that_ends_is_told(void **state)
{
	static const struct {
		const char *type, *text;
	} cases[] = {
		{ "list<frozen<map<int, text>>>", "[{2: 'b', 1: 'a'}, {}, {3: 'it''s'}]" },
		{ "set<varint>", "{100000000000000000000 * 7, 3, 2 + 1, 1}" },
		{ "decimal", "1.5 / 7 + -(2.25)" },
		{ "text", "tojson(((map<int, text>){1: 'a', 2: 'b'})[2..])" },
		{ "map<text, int>", "fromjson('{\"b\": 1, \"a\": \"2\"}')" },
		{ "text", "cast(cast(1 as decimal) as text)" },
		{ "timeuuid", "mintimeuuid('2011-02-03')" },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		bool full = true;

		for (size_t bytes = 0; full; bytes += 8 + bytes / 16) {
			struct arena *arena = arena_new(bytes);
			struct cql q = case_cql(arena);
			struct cql_scope scope = { .table = STR("t") };
			struct cql_env env = { .now_us = 1 };
			const struct cql_type *type;
			struct cql_term *term;
			struct cql_expr *e;
			struct cql_value v;
			enum status status;

			status = cql_type_parse(&q, str_from_cstr(cases[i].type), &type);
			if (status == STATUS_OK)
				status = cql_parse_term(&q, str_from_cstr(cases[i].text), &term);
			if (status == STATUS_OK)
				status = cql_compile(&q, &scope, term, type, STR("r"), &e);
			if (status == STATUS_OK)
				status = cql_run(e, &q, &env, &v);
			full = arena_is_full(arena);
			if (status != STATUS_OK && (status != STATUS_LIMIT || !full))
				fail_msg("%s with %zu bytes: %s %s", cases[i].text, bytes,
					 status_name(status), case_err.text);
			arena_free(arena);
		}
	}
	(void)state;
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, case_setup, case_teardown)
	const struct CMUnitTest tests[] = {
		CASE(selectors_are_computed),
		CASE(values_are_typed_for_their_receivers),
		CASE(markers_get_names_and_types),
		CASE(aggregates_run_over_rows),
		CASE(aggregates_are_refused_inside_of_others),
		CASE(nested_terms_are_compiled_in_time),
		CASE(now_differs_in_each_call),
		CASE(memory_that_ends_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
