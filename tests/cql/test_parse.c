#include "cql/statement.h"

#include "cql_case.h"

static void
statements_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		enum cql_statement_kind kind;
	} cases[] = {
		{ "USE \"Ks\"", CQL_USE },
		{ "select * from t;", CQL_SELECT },
		{ "SELECT json FROM t", CQL_SELECT },
		{ "SELECT JSON DISTINCT a, b FROM ks.t", CQL_SELECT },
		{ "SELECT a AS x, ttl(b), writetime(c), count(*), max(d) FROM t WHERE k = 1 AND "
		  "(c, d) > "
		  "(1, 2) AND e IN (1, 2) AND token(k) >= token(5) ALLOW FILTERING",
		  CQL_SELECT },
		{ "SELECT a FROM t WHERE k = ? GROUP BY k, c ORDER BY c DESC, d ASC PER PARTITION "
		  "LIMIT ? "
		  "LIMIT :n OFFSET 3",
		  CQL_SELECT },
		{ "SELECT m['a'], m['a'..'c'], m[..'c'], s.f.g, j->'a'->>'b' FROM t WHERE "
		  "j->'a'->>'b' = "
		  "'x' AND l CONTAINS 1 AND m CONTAINS KEY 'k' AND m['a'] = 1",
		  CQL_SELECT },
		{ "SELECT CAST(a AS text), (int) ?, -a, a + b * 2 % 3 FROM t AS OF '2020-01-01'",
		  CQL_SELECT },
		{ "SELECT a FROM t WHERE a NOT IN (1, 2) AND b != 3 AND c IS NOT NULL",
		  CQL_SELECT },
		{ "INSERT INTO t (a, b) VALUES (1, 'it''s') IF NOT EXISTS USING TTL 5 AND "
		  "TIMESTAMP ?",
		  CQL_INSERT },
		{ "INSERT INTO t JSON '{}' DEFAULT UNSET", CQL_INSERT },
		{ "INSERT INTO t (a) VALUES ($$it's$$) RETURNS STATUS AS ROW", CQL_INSERT },
		{ "INSERT INTO t (a,b,c,d,e,f,g,h) VALUES ([1,2], {1,2}, {'a':1}, {x: 1, y: {z: "
		  "2}}, "
		  "(1,'a',null), 0xCAFE, 550e8400-e29b-41d4-a716-446655440000, 1h30m)",
		  CQL_INSERT },
		{ "INSERT INTO t (a,b,c,d) VALUES (NaN, -Infinity, P1Y2M3DT4H, -1.5e-3)",
		  CQL_INSERT },
		{ "UPDATE t USING TTL 10 SET a = 1, l = l + [1], l2 = [0] + l2, s -= {1}, m['k'] = "
		  "2, "
		  "u.f = 3, c = c - 1, j->'a'->'b' = '1' WHERE k = 1 IF x = 1 AND y.z > 2 AND m[1] "
		  "IN (1,2)",
		  CQL_UPDATE },
		{ "UPDATE t SET a = ? WHERE k = ? IF EXISTS", CQL_UPDATE },
		{ "DELETE FROM t USING TIMESTAMP 5 WHERE k = 1", CQL_DELETE },
		{ "DELETE a, m['k'], l[0], u.f FROM t WHERE k IN (1,2) IF a = null", CQL_DELETE },
		{ "BEGIN UNLOGGED BATCH USING TIMESTAMP 1 INSERT INTO t(a) VALUES(1); UPDATE t SET "
		  "b=1 "
		  "WHERE a=1 DELETE FROM t WHERE a=1; APPLY BATCH;",
		  CQL_BATCH },
		{ "BEGIN TRANSACTION UPDATE t SET b = 1 WHERE a = 1; END TRANSACTION;",
		  CQL_TRANSACTION },
		{ "START TRANSACTION; UPDATE t SET b = 1 WHERE a = 1; COMMIT;", CQL_TRANSACTION },
		{ "BEGIN TRANSACTION", CQL_TRANSACTION_BEGIN },
		{ "start transaction;", CQL_TRANSACTION_BEGIN },
		{ "END TRANSACTION;", CQL_TRANSACTION_END },
		{ "commit", CQL_TRANSACTION_END },
		{ "TRUNCATE TABLE ks.t", CQL_TRUNCATE },
		{ "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', "
		  "'replication_factor': 1} AND durable_writes = true",
		  CQL_CREATE_KEYSPACE },
		{ "DROP SCHEMA IF EXISTS ks", CQL_DROP_KEYSPACE },
		{ "CREATE TABLE t (a int PRIMARY KEY, b frozen<map<text, list<int>>>, c tuple<int, "
		  "text>, d "
		  "\"U\" STATIC)",
		  CQL_CREATE_TABLE },
		{ "CREATE TABLE ks.t (a int, b int, c set<text>, PRIMARY KEY ((a, b), c, d)) WITH "
		  "COMPACT "
		  "STORAGE AND CLUSTERING ORDER BY (c DESC, d ASC) AND comment = 'x' AND "
		  "gc_grace_seconds = 5",
		  CQL_CREATE_TABLE },
		{ "ALTER TABLE t ADD (a int, b text static)", CQL_ALTER_TABLE },
		{ "ALTER TABLE t DROP a USING TIMESTAMP 5", CQL_ALTER_TABLE },
		{ "ALTER TABLE t RENAME a TO b AND c TO d", CQL_ALTER_TABLE },
		{ "ALTER TABLE t ALTER a TYPE blob", CQL_ALTER_TABLE },
		{ "ALTER TABLE t WITH default_time_to_live = 5", CQL_ALTER_TABLE },
		{ "CREATE TYPE ks.u (a int, b frozen<v>)", CQL_CREATE_TYPE },
		{ "ALTER TYPE u ADD c int", CQL_ALTER_TYPE },
		{ "ALTER TYPE u RENAME a TO b", CQL_ALTER_TYPE },
		{ "DROP TYPE IF EXISTS u", CQL_DROP_TYPE },
		{ "CREATE UNIQUE INDEX IF NOT EXISTS i ON t ((a, b), c) INCLUDE (d, e) WHERE a = 1",
		  CQL_CREATE_INDEX },
		{ "CREATE INDEX ON t (entries(m))", CQL_CREATE_INDEX },
		{ "CREATE INDEX i ON t (j->'a'->>'b')", CQL_CREATE_INDEX },
		{ "CREATE CUSTOM INDEX i ON t (full(l)) USING 'x.y.Z' WITH OPTIONS = {'a': 'b'}",
		  CQL_CREATE_INDEX },
		{ "DROP INDEX ks.i", CQL_DROP_INDEX },
		{ "CREATE ROLE IF NOT EXISTS r WITH PASSWORD = 'x' AND LOGIN = true AND SUPERUSER "
		  "= false",
		  CQL_CREATE_ROLE },
		{ "CREATE USER u WITH PASSWORD 'x' NOSUPERUSER", CQL_CREATE_ROLE },
		{ "ALTER ROLE 'r' WITH ACCESS TO DATACENTERS {'a'}", CQL_ALTER_ROLE },
		{ "DROP ROLE IF EXISTS r", CQL_DROP_ROLE },
		{ "GRANT SELECT, MODIFY ON KEYSPACE ks TO r", CQL_GRANT },
		{ "GRANT ALL PERMISSIONS ON ALL KEYSPACES TO r", CQL_GRANT },
		{ "GRANT a TO b", CQL_GRANT },
		{ "REVOKE ALL ON ks.t FROM r", CQL_REVOKE },
		{ "LIST ROLES OF r NORECURSIVE", CQL_LIST_ROLES },
		{ "LIST ALL PERMISSIONS ON TABLE t OF r", CQL_LIST_PERMISSIONS },
		{ "DESCRIBE KEYSPACES", CQL_DESCRIBE },
		{ "DESC FULL SCHEMA", CQL_DESCRIBE },
		{ "DESCRIBE ONLY KEYSPACE ks WITH INTERNALS", CQL_DESCRIBE },
		{ "DESC TABLE ks.t", CQL_DESCRIBE },
		{ "DESC t", CQL_DESCRIBE },
		{ "CREATE OR REPLACE FUNCTION f (a int) RETURNS int LANGUAGE java AS $$x$$",
		  CQL_REFUSED },
		{ "CREATE MATERIALIZED VIEW v AS SELECT * FROM t WHERE a IS NOT NULL PRIMARY KEY "
		  "(a)",
		  CQL_REFUSED },
		{ "DROP AGGREGATE a", CQL_REFUSED },
		{ "-- a comment\nSELECT /* another */ a // third\nFROM t", CQL_SELECT },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct cql q = case_cql(*state);
		struct cql_statement *s;

		if (cql_parse(&q, str_from_cstr(cases[i].text), &s) != STATUS_OK)
			fail_msg("%s: %s", cases[i].text, case_err.text);
		if (s->kind != cases[i].kind)
			fail_msg("%s is of kind %d", cases[i].text, (int)s->kind);
	}
}

static void
what_is_no_statement_is_a_syntax_error(void **state)
{
	static const char *const cases[] = {
		"",
		"x",
		"SELECT",
		"SELECT FROM t",
		"SELECT a, FROM t",
		"SELECT * FROM t WHERE",
		"SELECT * FROM t LIMIT x",
		"SELECT * FROM t; SELECT * FROM t",
		"SELECT * FROM t WHERE a = b",
		"INSERT INTO t (a) VALUES (b)",
		"INSERT INTO t (a) VALUES ('x)",
		"INSERT INTO t (a) VALUES (1h30x)",
		"UPDATE t SET a = b WHERE k = 1",
		"UPDATE t SET a = a * 2 WHERE k = 1",
		"UPDATE t SET a = b + 1 WHERE k = 1",
		"UPDATE t SET a = 1",
		"DELETE FROM t",
		"CREATE TABLE t a int",
		"CREATE TABLE select (a int PRIMARY KEY)",
		"CREATE TABLE t (a map<int>)",
		"BEGIN BATCH SELECT * FROM t APPLY BATCH",
		"SELECT a FROM t WHERE a = \xc2\xa7",
		"USE ?",
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct cql q = case_cql(*state);
		struct cql_statement *s;

		if (cql_parse(&q, str_from_cstr(cases[i]), &s) != STATUS_INVALID)
			fail_msg("%s is taken", cases[i]);
		if (q.code != CQL_CODE_SYNTAX || !case_err.text[0])
			fail_msg("%s: %x %s", cases[i], (unsigned)q.code, case_err.text);
	}
}

static void
errors_tell_line_and_column(void **state)
{
	struct cql q = case_cql(*state);
	struct cql_statement *s;

	assert_int_equal(cql_parse(&q, STR("SELECT *\nFROM t WHERE a = ]"), &s), STATUS_INVALID);
	assert_string_equal(case_err.text, "line 2:17 no viable alternative at input ']'");
	assert_int_equal(cql_parse(&q, STR("SELECT * FROM t t"), &s), STATUS_INVALID);
	assert_string_equal(case_err.text, "line 1:16 extraneous input 't' expecting <EOF>");
	assert_int_equal(cql_parse(&q,
				   STR("CREATE TABLE "
				       "a234567890123456789012345678901234567890123456789 (a int)"),
				   &s),
			 STATUS_INVALID);
	assert_int_equal(q.code, CQL_CODE_INVALID);
}

static void
terms_are_printed_as_they_were(void **state)
{
	static const struct {
		const char *text, *printed;
		enum cql_term_kind kind;
	} cases[] = {
		{ "count(*)", "count", CQL_TERM_COUNT },
		{ "COUNT(1)", "count", CQL_TERM_COUNT },
		{ "max( A )", "system.max(a)", CQL_TERM_FUNCTION },
		{ "WRITETIME(v)", "writetime(v)", CQL_TERM_FUNCTION },
		{ "cast(a as TEXT)", "cast(a as text)", CQL_TERM_CAST },
		{ "a+b*-2", "a + b * -2", CQL_TERM_ADD },
		{ "a-1", "a - 1", CQL_TERM_SUBTRACT },
		{ "(int)-1", "(int)-1", CQL_TERM_HINT },
		{ "(a)", "(a)", CQL_TERM_TUPLE },
		{ "(a) - 1", "(a) - 1", CQL_TERM_SUBTRACT },
		{ "(list<int>)[1]", "(list<int>)[1]", CQL_TERM_HINT },
		{ "m['k']", "m['k']", CQL_TERM_ELEMENT },
		{ "m[1..2]", "m[1..2]", CQL_TERM_SLICE },
		{ "u.f", "u.f", CQL_TERM_FIELD },
		{ "j->'a'->>0", "j->'a'->>0", CQL_TERM_JSON_TEXT },
		{ "{a: 1, \"B\": 'x'}", "{a: 1, \"B\": 'x'}", CQL_TERM_UDT },
		{ "{1: 2}", "{1: 2}", CQL_TERM_MAP },
		{ "{(false): (1, 2)}", "{(false): (1, 2)}", CQL_TERM_MAP },
		{ "(TRUE)", "(true)", CQL_TERM_TUPLE },
		{ "(boolean)true", "(boolean)true", CQL_TERM_HINT },
		{ "{}", "{}", CQL_TERM_SET },
		{ "$$a'b$$", "'a''b'", CQL_TERM_STRING },
		{ "-1y2mo", "-1y2mo", CQL_TERM_DURATION },
		{ "1.", "1.", CQL_TERM_FLOAT },
		{ "TRUE", "true", CQL_TERM_BOOLEAN },
		{ "deadbeef-dead-4ead-8ead-deadbeefdead", "deadbeef-dead-4ead-8ead-deadbeefdead",
		  CQL_TERM_UUID },
	};

	for (size_t i = 0; i < CASES(cases); i++) {
		struct cql q = case_cql(*state);
		struct cql_term *t;

		if (cql_parse_term(&q, str_from_cstr(cases[i].text), &t) != STATUS_OK)
			fail_msg("%s: %s", cases[i].text, case_err.text);
		assert_int_equal(t->kind, cases[i].kind);
		assert_string_equal(cql_term_text(&q, t).ptr, cases[i].printed);
	}
}

static void
assignments_have_their_kinds(void **state)
{
	static const enum cql_assign_kind kinds[] = {
		CQL_ASSIGN_SET,      CQL_ASSIGN_ADD,     CQL_ASSIGN_PREPEND,
		CQL_ASSIGN_SUBTRACT, CQL_ASSIGN_ELEMENT, CQL_ASSIGN_FIELD,
		CQL_ASSIGN_JSON,     CQL_ASSIGN_ADD,     CQL_ASSIGN_SUBTRACT,
	};
	struct cql q = case_cql(*state);
	struct cql_statement *s;

	assert_int_equal(
		cql_parse(&q,
			  STR("UPDATE t SET a=1,b=b+?,c=?+c,d=d-1,e[1]=:n,f.g=1,j->'x'='1',"
			      "h+=1,i-=1 WHERE k=? IF z = ?"),
			  &s),
		STATUS_OK);
	assert_int_equal(s->update.count, CASES(kinds));
	for (size_t i = 0; i < CASES(kinds); i++)
		assert_int_equal(s->update.assignments[i].kind, kinds[i]);
	assert_int_equal(s->marker_count, 5);
	assert_true(str_eq(s->marker_names[2], STR("n")));
	assert_null(s->marker_names[0].ptr);
	assert_int_equal(s->update.assignments[2].value->marker, 1);
	assert_int_equal(s->update.where.list[0].values[0]->marker, 3);
	assert_int_equal(s->update.condition.conditions.list[0].values[0]->marker, 4);
}

static void
depth_is_bounded(void **state)
{
	static const char *const repeated[] = { "[", "(", "-a", "a+", "f(", "{" };

	for (size_t i = 0; i < CASES(repeated); i++) {
		struct cql q = case_cql(*state);
		struct buf b = BUF_INIT(CASE_BYTES);
		struct cql_term *t;

		for (size_t n = 0; n < 50000; n++)
			buf_append_cstr(&b, repeated[i]);
		buf_append_cstr(&b, "1");
		assert_int_equal(cql_parse_term(&q, buf_str(&b), &t), STATUS_INVALID);
		buf_release(&b);
	}
}

static void
passwords_are_not_logged(void **state)
{
	struct cql q = case_cql(*state);
	struct cql_statement *s;
	struct buf b = BUF_INIT(CASE_BYTES);
	const char *text;

	assert_int_equal(cql_parse(&q, STR("CREATE ROLE r WITH PASSWORD = 'secret'"), &s),
			 STATUS_OK);
	cql_statement_print_safe(&b, s);
	text = case_text(*state, &b);
	assert_null(strstr(text, "secret"));
	assert_non_null(strstr(text, "CREATE ROLE r"));
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, case_setup, case_teardown)
	const struct CMUnitTest tests[] = {
		CASE(statements_are_told_apart),    CASE(what_is_no_statement_is_a_syntax_error),
		CASE(errors_tell_line_and_column),  CASE(terms_are_printed_as_they_were),
		CASE(assignments_have_their_kinds), CASE(depth_is_bounded),
		CASE(passwords_are_not_logged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
