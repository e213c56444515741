/* _all_docs and its like, and the lists of databases. */
#include "common.h"

#define ROW(id) "{\"id\":\"" id "\",\"key\":\"" id "\",\"value\":{\"rev\":\"1-" id "\"}}"
#define ROWS(total, offset, rows)                                                                  \
	"{\"total_rows\":" total ",\"offset\":" offset ",\"rows\":[\r\n" rows "\r\n]}"

static int
setup_docs(void **state)
{
	(void)setup(state);
	door_create(d, "l");
	door_expect(
		d, "POST", "/l/_bulk_docs",
		"{\"new_edits\":false,\"docs\":[{\"_id\":\"a\",\"_rev\":\"1-a\"},{\"_id\":\"b\","
		"\"_rev\":\"1-b\",\"n\":2},{\"_id\":\"c\",\"_rev\":\"1-c\"},{\"_id\":\"d\","
		"\"_rev\":\"1-d\",\"_deleted\":true},{\"_id\":\"_design/x\",\"_rev\":\"1-x\"},"
		"{\"_id\":\"b\",\"_rev\":\"1-aa\"}]}",
		201, "[]");
	return 0;
}

static void
all_docs_lists_in_byte_order(void **state)
{
	(void)state;
	door_expect_body(
		d, "GET", "/l/_all_docs", NULL, 200,
		ROWS("4", "0",
		     "{\"id\":\"_design/x\",\"key\":\"_design/x\",\"value\":{\"rev\":\"1-x\""
		     "}},\r\n" ROW("a") ",\r\n" ROW("b") ",\r\n" ROW("c")));
	door_expect_body(d, "GET", "/l/_all_docs?descending=true&limit=2", NULL, 200,
			 ROWS("4", "0", ROW("c") ",\r\n" ROW("b")));
	door_expect_body(d, "GET", "/l/_all_docs?limit=0", NULL, 200, ROWS("4", "0", ""));
	door_expect_body(d, "GET", "/l/_all_docs?skip=3", NULL, 200, ROWS("4", "3", ROW("c")));
	door_expect_body(d, "GET", "/l/_all_docs?skip=9", NULL, 200, ROWS("4", "4", ""));
	door_request(d, "HEAD", "/l/_all_docs", NULL, NULL);
	assert_int_equal(d->last.status, 200);
}

static void
of_what_is_said_twice_the_query_counts(void **state)
{
	(void)state;
	door_expect_body(d, "POST", "/l/_all_docs?limit=1", "{\"keys\":[\"b\",\"a\"],\"limit\":2}",
			 200, ROWS("4", "null", ROW("b")));
	door_expect_body(d, "POST", "/l/_all_docs?limit=0", "{\"limit\":2}", 200,
			 ROWS("4", "0", ""));
}

static void
ids_of_rows_are_keys(void **state)
{
	(void)state;
	door_expect_body(d, "GET", "/l/_all_docs?startkey_docid=b&endkey_docid=b", NULL, 200,
			 ROWS("4", "2", ROW("b")));
	door_expect_body(d, "GET",
			 "/l/_all_docs?startkey=%22c%22&start_key_doc_id=b&end_key_doc_id=c", NULL,
			 200, ROWS("4", "3", ROW("c")));
}

static void
parameters_of_views_are_checked(void **state)
{
	static const struct {
		const char *query, *reason;
	} refused[] = {
		{ "group_level=1", "Invalid use of grouping on a map view." },
		{ "group_level=x", "Invalid value for integer" },
		{ "stale=x", "Invalid value for `stale`." },
		{ "update=x", "Invalid value for `update`." },
		{ "stable=x", "Invalid value for `stable`." },
		{ "partition=x", "`partition` parameter is not supported on this db" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		door_expect(d, "GET", format("/l/_all_docs?%s", refused[i].query), NULL, 400,
			    refused[i].reason);
	door_expect(d, "GET", "/l/_all_docs?limit=0&group_level=0&stale=ok&update=lazy&stable=true",
		    NULL, 200, "\"rows\":[");
}

static void
ranges_are_honoured(void **state)
{
	(void)state;
	door_expect_body(d, "GET", "/l/_all_docs?startkey=%22b%22", NULL, 200,
			 ROWS("4", "2", ROW("b") ",\r\n" ROW("c")));
	door_expect_body(d, "GET", "/l/_all_docs?start_key=%22a%22&end_key=%22b%22", NULL, 200,
			 ROWS("4", "1", ROW("a") ",\r\n" ROW("b")));
	door_expect_body(d, "GET",
			 "/l/_all_docs?startkey=%22a%22&endkey=%22b%22&inclusive_end=false", NULL,
			 200, ROWS("4", "1", ROW("a")));
	door_expect_body(d, "GET", "/l/_all_docs?startkey=%22b%22&endkey=%22a%22&descending=true",
			 NULL, 200, ROWS("4", "1", ROW("b") ",\r\n" ROW("a")));
	door_expect_body(d, "GET", "/l/_all_docs?key=%22b%22", NULL, 200, ROWS("4", "2", ROW("b")));
	door_expect_body(d, "POST", "/l/_all_docs?limit=1", "{\"startkey\":\"b\"}", 200,
			 ROWS("4", "2", ROW("b")));
	door_expect(d, "GET", "/l/_all_docs?key=%22zz%22", NULL, 200, "\"rows\":[\r\n\r\n]}");
	door_expect(d, "GET", "/l/_all_docs?key=1", NULL, 200, "\"rows\":[\r\n\r\n]}");
	door_expect(d, "GET", "/l/_all_docs?startkey=1&endkey=%22a%22", NULL, 200, "_design/x");
	door_expect(d, "GET", "/l/_all_docs?update_seq=true&limit=1", NULL, 200,
		    ",\"update_seq\":\"");
	door_expect_body(d, "GET", "/l/_design_docs", NULL, 200,
			 ROWS("1", "0",
			      "{\"id\":\"_design/x\",\"key\":\"_design/x\",\"value\":{\"rev\":"
			      "\"1-x\"}}"));
}

static void
documents_are_included(void **state)
{
	(void)state;
	door_expect_body(d, "GET", "/l/_all_docs?key=%22b%22&include_docs=true", NULL, 200,
			 ROWS("4", "2",
			      "{\"id\":\"b\",\"key\":\"b\",\"value\":{\"rev\":\"1-b\"},\"doc\":{"
			      "\"_id\":\"b\",\"_rev\":\"1-b\",\"n\":2}}"));
	door_expect(d, "GET", "/l/_all_docs?key=%22b%22&include_docs=true&conflicts=true", NULL,
		    200, "\"_conflicts\":[\"1-aa\"]");
}

static void
keys_are_answered_one_by_one(void **state)
{
	(void)state;
	door_expect_body(
		d, "POST", "/l/_all_docs", "{\"keys\":[\"c\",\"nope\",\"d\",\"a\",7]}", 200,
		ROWS("4", "null",
		     ROW("c") ",\r\n{\"key\":\"nope\",\"error\":\"not_found\"},\r\n"
			      "{\"id\":\"d\",\"key\":\"d\",\"value\":{\"rev\":\"1-d\","
			      "\"deleted\":true}},\r\n" ROW("a") ",\r\n{\"key\":7,"
								 "\"error\":\"not_found\"}"));
	door_expect(d, "POST", "/l/_all_docs?include_docs=true", "{\"keys\":[\"d\"]}", 200,
		    "\"deleted\":true},\"doc\":null}");
	door_expect_body(d, "GET", "/l/_all_docs?keys=[%22c%22,%22a%22]&descending=true", NULL, 200,
			 ROWS("4", "null", ROW("a") ",\r\n" ROW("c")));
	door_expect_body(d, "POST", "/l/_all_docs",
			 "{\"keys\":[\"a\",\"b\",\"c\"],\"skip\":1,"
			 "\"limit\":1}",
			 200, ROWS("4", "null", ROW("b")));
	door_expect_body(d, "POST", "/l/_all_docs", "{\"keys\":[]}", 200, ROWS("4", "null", ""));
	door_expect(d, "POST", "/l/_all_docs?key=%22a%22", "{\"keys\":[\"a\",\"b\"]}", 400,
		    "{\"error\":\"query_parse_error\",\"reason\":\"`keys` is incompatible with "
		    "`key`, `start_key` and `end_key`\"}");
	/* As in CouchDB: one key counts alone. */
	door_expect_body(d, "POST", "/l/_all_docs", "{\"keys\":[\"a\"],\"startkey\":\"b\"}", 200,
			 ROWS("4", "null", ROW("a")));
	door_expect(d, "POST", "/l/_all_docs", "{\"keys\":null}", 400,
		    "`keys` body member must be an array.");
	door_expect(d, "POST", "/l/_all_docs", "{\"keys\":1}", 400,
		    "`keys` body member must be an array.");
	door_expect(d, "GET", "/l/_all_docs?keys=1", NULL, 400,
		    "`keys` parameter must be an array.");
}

/* The keys "k0", "k1", …, of which only every third is there, in the order of `step`. */
static void
expect_many_keys(const char *query, size_t count, size_t skip, size_t limit, bool descending)
{
	struct buf body = BUF_INIT(1 << 20);
	struct buf rows = BUF_INIT(1 << 20);
	const char *at;

	buf_append_cstr(&body, "{\"keys\":[");
	for (size_t i = 0; i < count; i++)
		buf_printf(&body, "%s\"k%zu\"", i ? "," : "", i);
	buf_append(&body, "]}", 3);
	for (size_t i = skip; i < count && i - skip < limit; i++) {
		size_t k = descending ? count - 1 - i : i;

		buf_append_cstr(&rows, i > skip ? ",\r\n" : "");
		if (k % 3)
			buf_printf(&rows, "{\"key\":\"k%zu\",\"error\":\"not_found\"}", k);
		else
			buf_printf(&rows,
				   "{\"id\":\"k%zu\",\"key\":\"k%zu\",\"value\":{\"rev\":"
				   "\"1-967a00dff5e02add41819138abb3284d\"}}",
				   k, k);
	}
	buf_append_cstr(&rows, "\r\n]}\n");
	buf_append_byte(&rows, '\0');
	door_request(d, "POST", query, NULL, body.ptr);
	assert_int_equal(d->last.status, 200);
	at = strstr(d->last.body, "[\r\n");
	assert_non_null(at);
	assert_string_equal(at + 3, rows.ptr);
	buf_release(&body);
	buf_release(&rows);
}

static void
many_keys_are_answered_in_order(void **state)
{
	struct buf docs = BUF_INIT(1 << 20);

	(void)state;
	door_create(d, "many");
	buf_append_cstr(&docs, "{\"docs\":[");
	for (int i = 0; i < 1000; i += 3)
		buf_printf(&docs, "%s{\"_id\":\"k%d\"}", i ? "," : "", i);
	buf_append(&docs, "]}", 3);
	door_expect(d, "POST", "/many/_bulk_docs", docs.ptr, 201, "ok");
	buf_release(&docs);
	expect_many_keys("/many/_all_docs", 1000, 0, 1000, false);
	expect_many_keys("/many/_all_docs?descending=true", 1000, 0, 1000, true);
	expect_many_keys("/many/_all_docs?skip=200&limit=300", 1000, 200, 300, false);
	expect_many_keys("/many/_all_docs?skip=127&limit=130&descending=true", 700, 127, 130, true);
	expect_many_keys("/many/_all_docs?skip=128", 256, 128, 1000, false);
	door_expect(d, "DELETE", "/many", NULL, 200, "ok");
}

/* All queries are checked before the answer begins, and there may be many. */
static void
many_queries_are_answered_in_order(void **state)
{
	enum {
		QUERIES = 300,
	};
	struct buf body = BUF_INIT(1 << 20);
	const char *at;

	(void)state;
	buf_append_cstr(&body, "{\"queries\":[");
	for (int i = 0; i < QUERIES; i++)
		buf_printf(&body, "{\"keys\":[\"q%d\"]},", i);
	buf_append(&body, "{\"limit\":-1}]}", 15);
	door_expect(d, "POST", "/l/_all_docs/queries", body.ptr, 400, "query_parse_error");
	body.len -= 15;
	buf_append(&body, "{\"limit\":1}]}", 14);
	door_expect(d, "POST", "/l/_all_docs/queries", body.ptr, 200, "{\"results\":[\r\n");
	at = d->last.body;
	for (int i = 0; i < QUERIES; i++) {
		at = strstr(at, format("{\"key\":\"q%d\",\"error\":\"not_found\"}\r\n]},\r\n", i));
		assert_non_null(at);
	}
	buf_release(&body);
}

static void
parameters_that_make_no_sense_are_refused(void **state)
{
	(void)state;
	door_expect(d, "GET", "/l/_all_docs?limit=x", NULL, 400,
		    "{\"error\":\"query_parse_error\",\"reason\":\"Invalid value for integer: "
		    "\\\"x\\\"\"}");
	door_expect(d, "GET", "/l/_all_docs?skip=-1", NULL, 400,
		    "Invalid value for positive integer");
	door_expect(d, "GET", "/l/_all_docs?descending=maybe", NULL, 400,
		    "Invalid boolean parameter: \\\"maybe\\\"");
	door_expect(d, "GET", "/l/_all_docs?startkey=b", NULL, 400, "invalid UTF-8 JSON");
	door_expect(d, "GET", "/l/_all_docs?reduce=true", NULL, 400,
		    "Reduce is invalid for map-only views.");
	door_expect(d, "GET", "/none/_all_docs", NULL, 404, "Database does not exist.");
	door_request(d, "POST", "/l/_all_docs", "Content-Type: text/plain\r\n", "{}");
	assert_int_equal(d->last.status, 415);
}

static void
several_queries_are_answered_together(void **state)
{
	(void)state;
	door_expect_body(d, "POST", "/l/_all_docs/queries",
			 "{\"queries\":[{\"keys\":[\"a\"]},{\"startkey\":\"c\",\"limit\":1}]}", 200,
			 "{\"results\":[\r\n" ROWS("4", "null", ROW("a")) ",\r\n" ROWS(
				 "4", "3", ROW("c")) "\r\n]}");
	door_expect(d, "POST", "/l/_all_docs/queries", "{}", 400,
		    "POST body must include `queries` parameter.");
	door_expect(d, "GET", "/l/_all_docs/queries", NULL, 405, "Only POST allowed");
}

static void
databases_are_listed_by_name(void **state)
{
	(void)state;
	door_create(d, "zz1");
	door_create(d, "zz2");
	door_create(d, "zz3");
	door_expect_body(d, "GET", "/_all_dbs", NULL, 200, "[\"l\",\"zz1\",\"zz2\",\"zz3\"]");
	door_expect_body(d, "GET", "/_all_dbs?descending=true&limit=2", NULL, 200,
			 "[\"zz3\",\"zz2\"]");
	door_expect_body(d, "GET", "/_all_dbs?startkey=%22zz1%22&endkey=%22zz2%22", NULL, 200,
			 "[\"zz1\",\"zz2\"]");
	door_expect_body(d, "GET", "/_all_dbs?skip=3", NULL, 200, "[\"zz3\"]");
	door_expect_body(d, "GET", "/_all_dbs?limit=0", NULL, 200, "[]");
	door_expect(d, "GET", "/_all_dbs?limit=x", NULL, 400, "query_parse_error");
	door_expect(d, "POST", "/_dbs_info", "{\"keys\":[\"l\",\"none\"]}", 200,
		    "[{\"key\":\"l\",\"info\":{\"db_name\":\"l\"");
	door_has(d, ",{\"key\":\"none\",\"error\":\"not_found\"}]");
	door_expect(d, "GET", "/_dbs_info?startkey=%22zz3%22", NULL, 200,
		    "[{\"key\":\"zz3\",\"info\":{\"db_name\":\"zz3\"");
}

enum {
	MANY_DATABASES = 520, /* more than a page of either list */
};

/* Lists of databases are read page by page: each database is there once, in both directions. */
static void
lists_of_databases_go_on_over_pages(void **state)
{
	const char *at;

	(void)state;
	for (int i = 0; i < MANY_DATABASES; i++)
		door_create(d, format("many%03d", i));
	for (int info = 0; info < 2; info++) {
		const char *path = info ? "/_dbs_info" : "/_all_dbs";

		door_expect(d, "GET", format("%s?startkey=%%22many%%22&endkey=%%22manyz%%22", path),
			    NULL, 200, "]\n");
		at = d->last.body;
		for (int i = 0; i < MANY_DATABASES; i++) {
			at = strstr(at, format("\"many%03d\"", i));
			assert_non_null(at);
		}
		assert_null(strstr(at + 1, "\"many000\""));
		door_expect(d, "GET", format("%s?key=%%22many%03d%%22", path, MANY_DATABASES - 1),
			    NULL, 200, format("\"many%03d\"", MANY_DATABASES - 1));
		door_expect(
			d, "GET",
			format("%s?descending=true&startkey=%%22manyz%%22&skip=3&limit=510", path),
			NULL, 200, format("\"many%03d\"", MANY_DATABASES - 4));
		door_has(d, format("\"many%03d\"", MANY_DATABASES - 3 - 510));
		door_has_not(d, format("\"many%03d\"", MANY_DATABASES - 3));
		door_has_not(d, format("\"many%03d\"", MANY_DATABASES - 4 - 510));
	}
	door_request(d, "HEAD", "/_all_dbs", NULL, NULL);
	assert_int_equal(d->last.status, 200);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_docs_lists_in_byte_order),
		cmocka_unit_test(of_what_is_said_twice_the_query_counts),
		cmocka_unit_test(ids_of_rows_are_keys),
		cmocka_unit_test(parameters_of_views_are_checked),
		cmocka_unit_test(ranges_are_honoured),
		cmocka_unit_test(documents_are_included),
		cmocka_unit_test(keys_are_answered_one_by_one),
		cmocka_unit_test(many_keys_are_answered_in_order),
		cmocka_unit_test(many_queries_are_answered_in_order),
		cmocka_unit_test(parameters_that_make_no_sense_are_refused),
		cmocka_unit_test(several_queries_are_answered_together),
		cmocka_unit_test(databases_are_listed_by_name),
		cmocka_unit_test(lists_of_databases_go_on_over_pages),
	};

	return cmocka_run_group_tests_name("couch listings", tests, setup_docs, teardown);
}
