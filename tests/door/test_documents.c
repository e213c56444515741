/* Databases and single documents over HTTP. */
#include "common.h"
#include "model/revisioned/revisioned_int.h"

static void
welcome_says_what_clients_look_for(void **state)
{
	(void)state;
	door_expect(d, "GET", "/", NULL, 200, "{\"couchdb\":\"Welcome\",\"version\":\"3.");
	door_has(d, "\"vendor\":{\"name\":\"frond\"");
	assert_string_equal(response_header(&d->last, "Content-Type"), "application/json");
	assert_string_equal(response_header(&d->last, "Cache-Control"), "must-revalidate");
	door_expect(d, "GET", "/_up", NULL, 200, "\"status\":\"ok\"");
	door_expect(d, "GET", "/_active_tasks", NULL, 200, "[]");
	door_expect(d, "GET", "/_membership", NULL, 200, "\"all_nodes\":[");
	door_expect(d, "GET", "/_cluster_setup", NULL, 200, "{\"state\":\"single_node_enabled\"}");
	door_expect(d, "POST", "/_cluster_setup", "{\"action\":\"enable_single_node\"}", 400,
		    "Cluster is already finished");
	door_expect(d, "POST", "/_cluster_setup", "{\"action\":\"enable_cluster\"}", 400,
		    "Cluster is already enabled");
	door_expect(d, "POST", "/_cluster_setup", "{\"action\":\"x\"}", 400, "Invalid Action'");
	door_expect(d, "POST", "/_cluster_setup", "{\"action\":1}", 400, "Invalid Action'");
	door_expect(d, "POST", "/_cluster_setup", "{}", 400, "Invalid Action'");
	door_expect(d, "GET", "/_reshard", NULL, 501, "says what to use instead");
	assert_int_equal(door_request(d, "HEAD", "/", NULL, NULL)->status, 200);
}

static void
uuids_are_counted_and_never_cached(void **state)
{
	(void)state;
	door_expect(d, "GET", "/_uuids?count=3", NULL, 200, "{\"uuids\":[\"");
	assert_int_equal(d->last.body_len, strlen("{\"uuids\":[]}\n") + 3 * 34 + 2);
	assert_non_null(strstr(response_header(&d->last, "Cache-Control"), "no-cache"));
	door_expect(d, "GET", "/_uuids?count=1001", NULL, 400, "count parameter too large");
	door_expect(d, "GET", "/_uuids?count=-1", NULL, 400, "count must be a positive integer");
	door_expect(d, "POST", "/_uuids", "{}", 405, "Only GET allowed");
	assert_string_equal(response_header(&d->last, "Allow"), "GET");
}

static void
database_is_created_described_and_deleted(void **state)
{
	(void)state;
	door_expect_body(d, "PUT", "/db-a", NULL, 201, "{\"ok\":true}");
	assert_string_equal(response_header(&d->last, "Location"), "http://localhost:5984/db-a");
	door_expect_body(d, "PUT", "/db-a", NULL, 412,
			 "{\"error\":\"file_exists\",\"reason\":\"The database could not be "
			 "created, the file already exists.\"}");
	door_expect(d, "GET", "/db-a", NULL, 200, "\"db_name\":\"db-a\"");
	door_has(d, "\"instance_start_time\":\"0\"");
	door_has(d, "\"doc_count\":0");
	door_has(d, "\"doc_del_count\":0");
	door_has(d, "\"update_seq\":\"");
	door_has(d, "\"cluster\":{\"q\":1,\"n\":1,\"w\":1,\"r\":1}");
	assert_int_equal(door_request(d, "HEAD", "/db-a", NULL, NULL)->status, 200);
	door_expect(d, "DELETE", "/db-a?rev=1-a", NULL, 400, "DELETE a database with a ?=rev");
	door_expect_body(d, "DELETE", "/db-a", NULL, 200, "{\"ok\":true}");
	door_expect_body(d, "GET", "/db-a", NULL, 404,
			 "{\"error\":\"not_found\",\"reason\":\"Database does not exist.\"}");
	door_expect(d, "DELETE", "/db-a", NULL, 404, "Database does not exist.");
	assert_int_equal(door_request(d, "HEAD", "/db-a", NULL, NULL)->status, 404);
	door_expect(d, "PUT", "/db-a/doc", "{}", 404, "Database does not exist.");
}

static void
database_names_are_checked(void **state)
{
	(void)state;
	door_expect_body(
		d, "PUT", "/Upper", NULL, 400,
		"{\"error\":\"illegal_database_name\",\"reason\":\"Name: 'Upper'. Only "
		"lowercase characters (a-z), digits (0-9), and any of the characters _, $, "
		"(, ), +, -, and / are allowed. Must begin with a letter.\"}");
	door_expect(d, "PUT", "/_nope", NULL, 400, "illegal_database_name");
	door_expect(d, "PUT", "/a%2Fb", NULL, 201, "ok");
	door_expect(d, "GET", "/a%2Fb", NULL, 200, "\"db_name\":\"a/b\"");
	door_expect(d, "PUT", "/q?q=0", NULL, 400, "The `q` value should be a positive integer.");
	door_expect(d, "PATCH", "/a%2Fb", NULL, 405, "Only DELETE,GET,HEAD,POST allowed");
}

static void
document_comes_back_as_it_was_put(void **state)
{
	const char *rev = "1-4c6114c65e295552ab1019e2b046b10e";

	(void)state;
	door_create(d, "docs");
	door_expect_body(d, "PUT", "/docs/a", "{\"foo\":\"bar\"}", 201,
			 format("{\"ok\":true,\"id\":\"a\",\"rev\":\"%s\"}", rev));
	assert_string_equal(response_header(&d->last, "ETag"), format("\"%s\"", rev));
	assert_string_equal(response_header(&d->last, "Location"), "http://localhost:5984/docs/a");
	door_expect_body(d, "GET", "/docs/a", NULL, 200,
			 format("{\"_id\":\"a\",\"_rev\":\"%s\",\"foo\":\"bar\"}", rev));
	assert_string_equal(response_header(&d->last, "ETag"), format("\"%s\"", rev));
	door_request(d, "HEAD", "/docs/a", NULL, NULL);
	assert_int_equal(d->last.status, 200);
	assert_string_equal(response_header(&d->last, "ETag"), format("\"%s\"", rev));
	door_expect(d, "PUT", "/docs/all",
		    "{\"n\":1.10,\"big\":123456789012345678901234567890,\"e\":{},\"l\":[],\"x\":"
		    "[1,{\"y\":null}],\"t\":true,\"u\":\"\\u00e9\\n\"}",
		    201, "ok");
	door_expect(
		d, "GET", "/docs/all", NULL, 200,
		"\"big\":123456789012345678901234567890,\"e\":{},\"l\":[],\"n\":1.10,\"t\":true,"
		"\"u\":\"\xc3\xa9\\n\",\"x\":[1,{\"y\":null}]}");
}

static void
etag_that_matches_is_not_modified(void **state)
{
	char header[128];

	(void)state;
	door_create(d, "etag");
	door_expect(d, "PUT", "/etag/a", "{}", 201, "1-967a00dff5e02add41819138abb3284d");
	(void)snprintf(header, sizeof(header), "If-None-Match: \"x\", W/\"%s\"\r\n",
		       door_member(d, "rev"));
	assert_int_equal(door_request(d, "GET", "/etag/a", header, NULL)->status, 304);
	assert_int_equal(d->last.body_len, 0);
	assert_int_equal(
		door_request(d, "GET", "/etag/a", "If-None-Match: \"1-x\"\r\n", NULL)->status, 200);
	/* Metadata is not covered by the tag. */
	door_request(d, "GET", "/etag/a?local_seq=true", header, NULL);
	assert_int_equal(d->last.status, 200);
	assert_null(response_header(&d->last, "ETag"));
	door_has(d, "\"_local_seq\":\"");
}

static void
put_with_stale_rev_is_conflict(void **state)
{
	const char *first;

	(void)state;
	door_create(d, "conflict");
	door_expect(d, "PUT", "/conflict/a", "{\"_rev\":\"1-a\"}", 409,
		    "{\"error\":\"conflict\",\"reason\":\"Document update conflict.\"}");
	door_expect(d, "PUT", "/conflict/a", "{}", 201, "ok");
	first = door_member(d, "rev");
	door_expect(d, "PUT", "/conflict/a", "{\"n\":1}", 409, "Document update conflict.");
	door_expect(d, "PUT", format("/conflict/a?rev=%s", first), "{\"n\":1}", 201,
		    "\"rev\":\"2-");
	door_expect(d, "PUT", format("/conflict/a?rev=%s", first), "{\"n\":2}", 409, "conflict");
	door_expect(d, "PUT", format("/conflict/a?rev=%s", first), "{\"_rev\":\"2-b\"}", 400,
		    "Document rev from request body and query string have different values");
	door_request(d, "PUT", "/conflict/a", "If-Match: \"9-x\"\r\n", "{\"_rev\":\"2-b\"}");
	assert_int_equal(d->last.status, 400);
	door_has(d, "Document rev and etag have different values");
	/* No document has a revision at position 0. */
	door_expect(d, "PUT", "/conflict/b", "{\"_rev\":\"0-1\"}", 409, "conflict");
	door_expect(d, "POST", "/conflict/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"b\",\"_rev\":\"0-1\"}]}", 201, "\"error\":\"conflict\"");
	door_expect(d, "PUT", "/conflict/a?rev=zzz", "{}", 400, "Invalid rev format");
	door_expect(d, "PUT", "/conflict/a", "{\"_rev\":\"1-zz6114c65e295552ab1019e2b046b10e\"}",
		    400, "Invalid rev format");
}

static void
if_match_names_the_revision(void **state)
{
	char header[128];

	(void)state;
	door_create(d, "match");
	door_expect(d, "PUT", "/match/a", "{}", 201, "ok");
	(void)snprintf(header, sizeof(header), "If-Match: \"%s\"\r\n", door_member(d, "rev"));
	door_request(d, "PUT", "/match/a", header, "{\"n\":1}");
	assert_int_equal(d->last.status, 201);
	(void)snprintf(header, sizeof(header), "If-Match: %s\r\n", door_member(d, "rev"));
	door_request(d, "DELETE", "/match/a", header, NULL);
	assert_int_equal(d->last.status, 200);
}

static void
delete_of_what_is_not_there_is_404(void **state)
{
	const char *rev;

	(void)state;
	door_create(d, "del");
	door_expect_body(d, "DELETE", "/del/a?rev=1-x", NULL, 404,
			 "{\"error\":\"not_found\",\"reason\":\"missing\"}");
	door_expect(d, "PUT", "/del/a", "{}", 201, "ok");
	rev = door_member(d, "rev");
	door_expect(d, "DELETE", "/del/a", NULL, 409, "conflict");
	door_expect(d, "DELETE", "/del/a?rev=1-x", NULL, 409, "conflict");
	door_expect(d, "DELETE", format("/del/a?rev=%s", rev), NULL, 200,
		    "2-eec205a9d413992850a6e32678485900");
	door_expect_body(d, "GET", "/del/a", NULL, 404,
			 "{\"error\":\"not_found\",\"reason\":\"deleted\"}");
	door_expect(d, "DELETE", format("/del/a?rev=%s", rev), NULL, 404, "deleted");
	door_expect(d, "GET", "/del/a?rev=2-eec205a9d413992850a6e32678485900", NULL, 200,
		    "\"_deleted\":true");
	door_expect_body(d, "GET", format("/del/a?rev=%s", rev), NULL, 404,
			 "{\"error\":\"not_found\",\"reason\":\"missing\"}");
	door_expect(d, "GET", "/del/b", NULL, 404, "missing");
	door_expect(d, "GET", "/del", NULL, 200, "\"doc_del_count\":1");
	/* It can be created anew, on top of its tombstone. */
	door_expect(d, "PUT", "/del/a", "{\"n\":1}", 201, "\"rev\":\"3-");
	door_expect(d, "PUT", format("/del/a?rev=%s", door_member(d, "rev")),
		    "{\"_deleted\":true,\"why\":\"x\"}", 200, "\"rev\":\"4-");
	door_expect(d, "GET", format("/del/a?rev=%s", door_member(d, "rev")), NULL, 200,
		    "\"why\":\"x\"");
}

static void
special_members_are_checked(void **state)
{
	(void)state;
	door_create(d, "special");
	door_expect_body(d, "PUT", "/special/a", "{\"_x\":1}", 400,
			 "{\"error\":\"doc_validation\",\"reason\":\"Bad special document member: "
			 "_x\"}");
	door_expect(
		d, "PUT", "/special/a",
		"{\"_conflicts\":[],\"_revs_info\":1,\"_local_seq\":2,\"_deleted_conflicts\":3}",
		201, "1-967a00dff5e02add41819138abb3284d");
	door_expect(d, "PUT", "/special/b", "{\"_deleted\":1}", 400,
		    "Bad special document member: _deleted");
	door_expect(d, "PUT", "/special/b", "{\"_id\":7}", 400, "Document id must be a string");
	door_expect(d, "PUT", "/special/b", "{\"_revisions\":{\"start\":\"x\",\"ids\":[]}}", 400,
		    "_revisions.start isn't an integer.");
	door_expect(d, "PUT", "/special/b", "{\"_revisions\":{\"start\":1,\"ids\":2}}", 400,
		    "_revisions.ids isn't a array.");
	door_expect(d, "PUT", "/special/b", "{\"_revisions\":{\"start\":1,\"ids\":[2]}}", 400,
		    "RevId isn't a string");
	door_expect(d, "PUT", "/special/b",
		    "{\"_revisions\":{\"start\":1,\"ids\":[\"zz6114c65e295552ab1019e2b046b10e\"]}}",
		    400, "RevId isn't a valid hexadecimal");
	door_expect(d, "PUT", "/special/b", "[]", 400, "Document must be a JSON object");
	door_expect(d, "PUT", "/special/b", "{\"a\":", 400, "\"reason\":\"invalid UTF-8 JSON");
	door_expect(d, "PUT", "/special/b", "{} {}", 400, "bad_request");
	door_expect(d, "PUT", "/special/_bad", "{}", 400,
		    "Only reserved document ids may start with underscore.");
	door_expect(d, "PUT", "/special/%FF", "{}", 400, "Document id must be valid UTF-8");
}

static void
ids_travel_escaped(void **state)
{
	(void)state;
	door_create(d, "ids");
	door_expect(d, "PUT", "/ids/a%2Fb%20c", "{}", 201, "\"id\":\"a/b c\"");
	assert_string_equal(response_header(&d->last, "Location"),
			    "http://localhost:5984/ids/a%2Fb%20c");
	door_expect(d, "GET", "/ids/a%2Fb%20c", NULL, 200, "\"_id\":\"a/b c\"");
	door_expect(d, "GET", "/ids/a+b", NULL, 404, "missing");
	door_expect(d, "PUT", "/ids/_design/x", "{\"views\":{}}", 201, "\"id\":\"_design/x\"");
	door_expect(d, "GET", "/ids/_design/x", NULL, 200, "\"_id\":\"_design/x\"");
	door_expect(d, "GET", "/ids/_design%2Fx", NULL, 200, "\"_id\":\"_design/x\"");
	door_expect(d, "PUT", "/ids/%E2%82%AC", "{}", 201, "\"id\":\"\xe2\x82\xac\"");
}

static void
post_makes_an_id_if_there_is_none(void **state)
{
	(void)state;
	door_create(d, "post");
	door_expect(d, "POST", "/post", "{\"n\":1}", 201, "\"rev\":\"1-");
	assert_int_equal(strlen(door_member(d, "id")), 32);
	door_expect(d, "POST", "/post", "{\"_id\":\"mine\"}", 201, "\"id\":\"mine\"");
	door_expect(d, "POST", "/post", "{\"_id\":\"mine\"}", 409, "conflict");
	door_expect_body(d, "POST", "/post?batch=ok", "{\"_id\":\"later\"}", 202,
			 "{\"ok\":true,\"id\":\"later\"}");
	door_expect(d, "GET", "/post/later", NULL, 200, "\"_id\":\"later\"");
	door_expect_body(d, "PUT", "/post/b?batch=ok", "{}", 202, "{\"ok\":true,\"id\":\"b\"}");
	door_request(d, "POST", "/post", "Content-Type: text/plain\r\n", "{}");
	assert_int_equal(d->last.status, 415);
	door_has(d, "{\"error\":\"bad_content_type\",\"reason\":\"Content-Type must be "
		    "application/json\"}");
	/* PUT of a document does not look at it. */
	door_request(d, "PUT", "/post/c", "Content-Type: text/plain\r\n", "{}");
	assert_int_equal(d->last.status, 201);
}

static void
replicated_put_keeps_its_revision(void **state)
{
	(void)state;
	door_create(d, "repl");
	door_expect(d, "PUT", "/repl/a?new_edits=false", "{}", 400,
		    "When `new_edits: false`, the document needs `_rev` or `_revisions` specified");
	door_expect(d, "PUT", "/repl/a?new_edits=false",
		    "{\"_rev\":\"9-zz\",\"_revisions\":{\"start\":3,\"ids\":[\"ccc\",\"bbb\","
		    "\"aaa\"]},\"n\":3}",
		    201, "\"rev\":\"3-ccc\"");
	door_expect(d, "GET", "/repl/a?revs=true", NULL, 200,
		    "\"_revisions\":{\"start\":3,\"ids\":[\"ccc\",\"bbb\",\"aaa\"]}");
	door_expect(d, "PUT", "/repl/a?new_edits=false",
		    "{\"_revisions\":{\"start\":3,\"ids\":[\"ddd\",\"bbb\",\"aaa\"]}}", 201,
		    "3-ddd");
	door_expect(d, "GET", "/repl/a?conflicts=true", NULL, 200, "\"_conflicts\":[\"3-ccc\"]");
	door_has(d, "\"_rev\":\"3-ddd\"");
	assert_null(response_header(&d->last, "ETag"));
	door_expect(d, "DELETE", "/repl/a?rev=3-ccc", NULL, 200, "\"rev\":\"4-");
	door_expect(d, "GET", "/repl/a?meta=true", NULL, 200,
		    "\"_revs_info\":[{\"rev\":\"3-ddd\",\"status\":\"available\"},"
		    "{\"rev\":\"2-bbb\",\"status\":\"missing\"},"
		    "{\"rev\":\"1-aaa\",\"status\":\"missing\"}]");
	door_has(d, "\"_deleted_conflicts\":[\"4-");
	door_has_not(d, "\"_conflicts\"");
}

static void
open_revs_lists_leaves(void **state)
{
	static const char *const accepts[] = {
		NULL,
		"Accept: */*\r\n",
		"Accept: application/json, multipart/mixed\r\n",
	};
	const struct response *r;

	(void)state;
	door_create(d, "open");
	door_expect(d, "PUT", "/open/a?new_edits=false",
		    "{\"_revisions\":{\"start\":2,\"ids\":[\"b\",\"a\"]},\"n\":1}", 201, "2-b");
	door_expect(d, "PUT", "/open/a?new_edits=false",
		    "{\"_revisions\":{\"start\":2,\"ids\":[\"c\",\"a\"]},\"n\":2}", 201, "2-c");
	door_expect_body(d, "GET", "/open/a?open_revs=all", NULL, 200,
			 "[{\"ok\":{\"_id\":\"a\",\"_rev\":\"2-c\",\"n\":2}},"
			 "{\"ok\":{\"_id\":\"a\",\"_rev\":\"2-b\",\"n\":1}}]");
	door_expect_body(d, "GET", "/open/a?open_revs=[%222-b%22,%229-z%22,%221-a%22]&revs=true",
			 NULL, 200,
			 "[{\"ok\":{\"_id\":\"a\",\"_rev\":\"2-b\",\"_revisions\":{\"start\":2,"
			 "\"ids\":[\"b\",\"a\"]},\"n\":1}},{\"missing\":\"9-z\"},{\"missing\":"
			 "\"1-a\"}]");
	/* Every leaf that descends from one of them, once; then what is missing, once. */
	door_expect_body(d, "GET",
			 "/open/a?open_revs=[%229-z%22,%221-a%22,%222-b%22,%229-z%22]&latest=true",
			 NULL, 200,
			 "[{\"ok\":{\"_id\":\"a\",\"_rev\":\"2-c\",\"n\":2}},"
			 "{\"ok\":{\"_id\":\"a\",\"_rev\":\"2-b\",\"n\":1}},"
			 "{\"missing\":\"9-z\"}]");
	door_expect_body(d, "GET", "/open/a?open_revs=[%222-b%22,%222-b%22]", NULL, 200,
			 "[{\"ok\":{\"_id\":\"a\",\"_rev\":\"2-b\",\"n\":1}}]");
	door_expect_body(d, "POST", "/open/_bulk_get?latest=true",
			 "{\"docs\":[{\"id\":\"a\",\"rev\":\"1-a\"}]}", 200,
			 "{\"results\":[{\"id\":\"a\",\"docs\":["
			 "{\"ok\":{\"_id\":\"a\",\"_rev\":\"2-c\",\"n\":2}},"
			 "{\"ok\":{\"_id\":\"a\",\"_rev\":\"2-b\",\"n\":1}}]}]}");
	door_expect_body(d, "GET", "/open/none?open_revs=[%221-a%22]", NULL, 200,
			 "[{\"missing\":\"1-a\"}]");
	door_expect(d, "GET", "/open/none?open_revs=all", NULL, 404, "missing");
	door_expect(d, "GET", "/open/a?open_revs=nope", NULL, 400, "bad_request");
	door_expect(d, "GET", "/open/a?rev=1-a&latest=true", NULL, 200, "\"_rev\":\"2-c\"");
	door_expect(d, "GET", "/open/a?rev=1-a", NULL, 404, "missing");

	/* In parts unless they are excluded. */
	r = door_request(d, "GET", "/open/a?open_revs=all",
			 "Accept: application/json, multipart/mixed;q=0\r\n", NULL);
	assert_string_equal(response_header(r, "Content-Type"), "application/json");
	for (size_t i = 0; i < sizeof(accepts) / sizeof(accepts[0]); i++) {
		r = door_request(d, "GET", "/open/a?open_revs=all", accepts[i], NULL);
		assert_non_null(strstr(response_header(r, "Content-Type"), "multipart/mixed; "));
	}
	r = door_request(d, "GET", "/open/a?open_revs=[%222-b%22,%229-z%22]",
			 "Accept: multipart/mixed\r\n", NULL);
	assert_int_equal(r->status, 200);
	assert_non_null(strstr(response_header(r, "Content-Type"), "multipart/mixed; boundary=\""));
	door_has(d, "\r\nContent-Type: application/json\r\n\r\n{\"_id\":\"a\",\"_rev\":\"2-b\"");
	door_has(d,
		 "\r\nContent-Type: application/json; error=\"true\"\r\n\r\n{\"missing\":\"9-z\"}");
	assert_string_equal(r->body + r->body_len - 2, "--");
}

static void
path_reads_one_value(void **state)
{
	const char *rev;

	(void)state;
	door_create(d, "path");
	door_expect(d, "PUT", "/path/a",
		    "{\"a\":{\"b\":[10,{\"c\":\"x\"}]},\"7\":\"seven\",\"m~n\":1,\"s/t\":2}", 201,
		    "ok");
	rev = door_member(d, "rev");
	door_expect_body(d, "GET", "/path/a?path=/a/b/0", NULL, 200, "10");
	door_expect_body(d, "GET", "/path/a?path=/a/b/1/c", NULL, 200, "\"x\"");
	door_expect_body(d, "GET", "/path/a?path=/a", NULL, 200, "{\"b\":[10,{\"c\":\"x\"}]}");
	door_expect_body(d, "GET", "/path/a?path=/7", NULL, 200, "\"seven\"");
	door_expect_body(d, "GET", "/path/a?path=/m~0n", NULL, 200, "1");
	door_expect_body(d, "GET", "/path/a?path=/s~1t", NULL, 200, "2");
	door_expect_body(d, "GET", format("/path/a?path=/a/b/0&rev=%s", rev), NULL, 200, "10");
	door_expect(d, "GET", "/path/a?path=/a/b/9", NULL, 404,
		    "\"reason\":\"The document has nothing at path /a/b/9\"");
	door_expect(d, "GET", "/path/none?path=/a", NULL, 404, "\"reason\":\"missing\"");
	door_expect(d, "GET", "/path/a?path=a", NULL, 400, "query_parse_error");
}

/* A tombstone's body is found by its revision, in whole and in part, though it is no winner's. */
static void
path_reads_what_a_tombstone_says(void **state)
{
	const char *rev;
	char empty[64];

	(void)state;
	door_create(d, "tomb");
	door_expect(d, "PUT", "/tomb/a",
		    "{\"_deleted\":true,\"why\":\"old\",\"list\":[1,{\"x\":2}]}", 200, "ok");
	rev = door_member(d, "rev");
	door_expect(d, "GET", format("/tomb/a?rev=%s", rev), NULL, 200, "\"why\":\"old\"");
	door_expect_body(d, "GET", format("/tomb/a?rev=%s&path=/list/1/x", rev), NULL, 200, "2");
	door_expect_body(d, "GET", format("/tomb/a?rev=%s&path=", rev), NULL, 200,
			 "{\"list\":[1,{\"x\":2}],\"why\":\"old\"}");
	door_expect(d, "GET", format("/tomb/a?rev=%s&path=/none", rev), NULL, 404,
		    "The document has nothing at path /none");
	door_expect_body(d, "GET", format("/tomb/a?rev=%s&paths=[\"/why\",\"/none\"]", rev), NULL,
			 200, "{\"/why\":\"old\"}");
	door_expect(d, "GET", "/tomb/a?path=/why", NULL, 404, "\"reason\":\"deleted\"");

	/* One that says nothing has an empty body. */
	door_expect(d, "PUT", "/tomb/b", "{}", 201, "ok");
	door_expect(d, "DELETE", format("/tomb/b?rev=%s", door_member(d, "rev")), NULL, 200, "ok");
	(void)snprintf(empty, sizeof(empty), "%s", door_member(d, "rev"));
	door_expect_body(d, "GET", format("/tomb/b?rev=%s&path=", empty), NULL, 200, "{}");
	door_expect(d, "GET", format("/tomb/b?rev=%s&path=/a", empty), NULL, 404,
		    "The document has nothing at path /a");
	/* A revision that was replaced has no body, and one that never was is not there. */
	door_expect(d, "GET", "/tomb/b?rev=1-967a00dff5e02add41819138abb3284d&path=/a", NULL, 404,
		    "\"reason\":\"missing\"");
	door_expect(d, "GET", "/tomb/b?rev=7-x&paths=[\"/a\"]", NULL, 404,
		    "\"reason\":\"missing\"");
	door_expect_body(d, "GET",
			 "/tomb/b?rev=1-967a00dff5e02add41819138abb3284d&latest=true&path=", NULL,
			 200, "{}");
}

static void
copy_makes_a_new_document(void **state)
{
	char header[160];

	(void)state;
	door_create(d, "copy");
	door_expect(d, "PUT", "/copy/a", "{\"foo\":\"bar\"}", 201, "ok");
	door_request(d, "COPY", "/copy/a", "Destination: b\r\n", NULL);
	assert_int_equal(d->last.status, 201);
	door_has(d, "{\"ok\":true,\"id\":\"b\",\"rev\":\"1-4c6114c65e295552ab1019e2b046b10e\"}");
	door_request(d, "COPY", "/copy/a", "Destination: b\r\n", NULL);
	assert_int_equal(d->last.status, 409);
	(void)snprintf(header, sizeof(header), "Destination: b?rev=%s\r\n",
		       "1-4c6114c65e295552ab1019e2b046b10e");
	door_request(d, "COPY", "/copy/a", header, NULL);
	assert_int_equal(d->last.status, 201);
	door_has(d, "\"rev\":\"2-");
	door_expect(d, "GET", "/copy/b", NULL, 200, "\"foo\":\"bar\"");
	door_request(d, "COPY", "/copy/a", NULL, NULL);
	assert_int_equal(d->last.status, 400);
	door_has(d, "Destination header is mandatory for COPY.");
	door_request(d, "COPY", "/copy/none", "Destination: c\r\n", NULL);
	assert_int_equal(d->last.status, 404);
}

/* An array of numbers within the limit, whose leaves would be too many for a transaction. */
static void
document_of_many_values_is_stored_and_read_by_path(void **state)
{
	enum {
		NUMBERS = 240000
	};
	char *body = malloc(2 * NUMBERS + 64);
	char *bulk = malloc(3 * (2 * NUMBERS + 64));
	const char *rev;
	size_t n;

	(void)state;
	assert_non_null(body);
	assert_non_null(bulk);
	n = (size_t)sprintf(body, "{\"m\":1,\"a\":[7");
	for (int i = 1; i < NUMBERS; i++) {
		body[n++] = ',';
		body[n++] = '7';
	}
	(void)strcpy(body + n, "]}");
	door_create(d, "many");
	door_expect(d, "PUT", "/many/d", body, 201, "\"rev\":\"1-");
	door_expect(d, "GET", "/many/d?path=/a/239999", NULL, 200, "7");
	door_expect(d, "GET", "/many/d?path=/a/240000", NULL, 404, "not_found");
	door_expect(d, "GET", "/many/d?paths=%5B%22/m%22,%22/a/5%22%5D", NULL, 200,
		    "{\"/m\":1,\"/a/5\":7}");
	expect_as("Content-Type: application/merge-patch+json\r\n", "PATCH", "/many/d", "{\"m\":2}",
		  200, "\"rev\":\"2-");
	rev = door_member(d, "rev");
	door_expect(d, "GET", "/many/d?path=/m", NULL, 200, "2");
	expect_as("Destination: e\r\n", "COPY", "/many/d", NULL, 201, "\"rev\":\"1-");
	door_expect(d, "PUT", format("/many/d/note?rev=%s", rev), "text", 201, "\"rev\":\"3-");
	rev = door_member(d, "rev");
	door_expect(d, "DELETE", format("/many/d?rev=%s", rev), NULL, 200, "ok");
	door_expect(d, "GET", "/many/e", NULL, 200, "\"m\":2}");
	door_expect(d, "GET", "/many/_all_docs?include_docs=true", NULL, 200, "\"m\":2}");
	door_expect(d, "PUT", "/many/_local/l", body, 201, "ok");
	door_expect(d, "GET", "/many/_local/l", NULL, 200, "\"m\":1}");
	(void)sprintf(bulk, "{\"docs\":[{\"_id\":\"x\",%s,{\"_id\":\"y\",%s]}", body + 1, body + 1);
	door_expect(d, "POST", "/many/_bulk_docs", bulk, 201, "\"ok\":true,\"id\":\"y\"");
	door_expect(d, "GET", "/many/y?path=/m", NULL, 200, "1");
	free(bulk);
	free(body);
}

static void
too_large_a_document_is_413(void **state)
{
	size_t n = 8100000;
	char *body = malloc(n + 32);

	(void)state;
	assert_non_null(body);
	(void)strcpy(body, "{\"a\":\"");
	memset(body + 6, 'x', n);
	(void)strcpy(body + 6 + n, "\"}");
	door_create(d, "large");
	door_expect(d, "PUT", "/large/a", body, 413, "\"error\":\"document_too_large\"");
	/* 900,000 bytes are within the limit, and longer than a value of the store. */
	(void)strcpy(body + 900000, "\"}");
	door_expect(d, "PUT", "/large/a", body, 201, "ok");
	door_expect(d, "GET", "/large/a", NULL, 200, "xxxxx\"}");
	assert_int_equal(d->last.body_len,
			 900000 + 2 + strlen("\"_id\":\"a\",\"_rev\":\"\",") + 34 + 1);
	free(body);
}

static void
override_header_turns_a_post_into_another_method(void **state)
{
	(void)state;
	door_create(d, "over");
	door_request(d, "POST", "/over/a", "X-HTTP-Method-Override: PUT\r\n", "{}");
	assert_int_equal(d->last.status, 201);
	door_request(d, "GET", "/over/a", "X-HTTP-Method-Override: DELETE\r\n", NULL);
	assert_int_equal(d->last.status, 200);
}

static void
what_is_not_offered_says_so(void **state)
{
	char design[64];

	(void)state;
	door_create(d, "no");
	door_expect(d, "GET", "/no/_auto_purge", NULL, 501, "not_implemented");
	door_expect(d, "GET", "/no/_design/x/_view/y", NULL, 404, "missing");
	door_expect(d, "GET", "/no/_design/x/_info", NULL, 404, "missing");
	door_expect(d, "PUT", "/no/_design/x", "{}", 201, "ok");
	(void)snprintf(design, sizeof(design), "%s", door_member(d, "rev"));
	door_expect(d, "GET", "/no/_design/x/_view/y", NULL, 404, "missing_named_view");
	door_expect(d, "GET", "/no/_design/x/_search/y", NULL, 501, "_search");
	door_expect(d, "GET", "/no/_design/x/_show/y", NULL, 410, "\"error\":\"gone\"");
	door_expect(d, "GET", "/no/_design/x/_list/y", NULL, 410, "gone");
	door_expect(d, "DELETE", format("/no/_design/x?rev=%s", design), NULL, 200, "ok");
	door_expect(d, "GET", "/no/_design/x/_view/y", NULL, 404, "deleted");
	door_expect(d, "POST", "/_replicate", "{}", 501, "_replicate");
	door_expect(d, "GET", "/_all_dbs/x", NULL, 404, "not_found");
	door_expect(d, "PUT", "/no/_all_docs", "{}", 405, "Only GET,HEAD,POST allowed");
	door_expect(d, "GET", "/no/_bulk_docs", NULL, 405, "Only POST allowed");
	assert_string_equal(response_header(&d->last, "Allow"), "POST");
}

static void
settings_of_a_database(void **state)
{
	(void)state;
	door_create(d, "set");
	door_expect_body(d, "GET", "/set/_revs_limit", NULL, 200, "1000");
	door_expect_body(d, "PUT", "/set/_revs_limit", "5", 200, "{\"ok\":true}");
	door_expect_body(d, "GET", "/set/_revs_limit", NULL, 200, "5");
	/* What has been stored before is told no longer. */
	door_expect(d, "PUT", "/set/h?new_edits=false",
		    "{\"_revisions\":{\"start\":4,\"ids\":[\"d\",\"c\",\"b\",\"a\"]}}", 201, "4-d");
	door_expect(d, "GET", "/set/h?revs=true", NULL, 200, "\"ids\":[\"d\",\"c\",\"b\",\"a\"]");
	door_expect_body(d, "PUT", "/set/_revs_limit", "2", 200, "{\"ok\":true}");
	door_expect(d, "GET", "/set/h?revs=true", NULL, 200, "\"start\":4,\"ids\":[\"d\",\"c\"]");
	door_expect(d, "GET", "/set/h?open_revs=all&revs=true", NULL, 200, "\"ids\":[\"d\",\"c\"]");
	door_expect(d, "POST", "/set/_bulk_get?revs=true", "{\"docs\":[{\"id\":\"h\"}]}", 200,
		    "\"ids\":[\"d\",\"c\"]");
	door_expect(d, "GET", "/set/h?revs_info=true", NULL, 200, "{\"rev\":\"1-a\"");
	door_expect(d, "PUT", "/set/_revs_limit", "0", 400, "bad_request");
	door_expect(d, "PUT", "/set/_revs_limit", "4001", 400, "bad_request");
	door_expect_body(d, "POST", "/set/_ensure_full_commit", "", 201,
			 "{\"ok\":true,\"instance_start_time\":\"0\"}");
	door_expect_body(d, "POST", "/set/_compact", "", 202, "{\"ok\":true}");
	door_expect_body(d, "POST", "/set/_view_cleanup", "", 202, "{\"ok\":true}");
	door_request(d, "POST", "/set/_compact", NULL, NULL);
	assert_int_equal(d->last.status, 415);
	door_expect_body(
		d, "GET", "/set/_security", NULL, 200,
		"{\"members\":{\"roles\":[\"_admin\"]},\"admins\":{\"roles\":[\"_admin\"]}}");
	door_expect_body(d, "PUT", "/set/_security", "{\"members\":{\"names\":[\"x\"]}}", 200,
			 "{\"ok\":true}");
	door_expect_body(d, "GET", "/set/_security", NULL, 200,
			 "{\"members\":{\"names\":[\"x\"]}}");
	door_expect(d, "PUT", "/set/_security", "{\"members\":{\"names\":[1]}}", 400,
		    "names must be a JSON list of strings");
}

static void
password_is_a_member_like_any_other_but_among_users(void **state)
{
	(void)state;
	door_create(d, "_users");
	door_expect(d, "PUT", "/_users/org.couchdb.user:a", "{\"name\":\"a\",\"password\":\"p\"}",
		    403, "doc.type must be user");
	door_expect(d, "GET", "/_users/_all_docs", NULL, 200, "\"total_rows\":0");
	door_create(d, "users");
	door_expect(d, "PUT", "/users/a", "{\"password\":\"p\"}", 201, "1-");
	door_expect(d, "GET", "/users/a", NULL, 200, "\"password\":\"p\"");
}

/* The replicator's and others' own members are part of the document, as in CouchDB. */
static void
members_of_replications_are_kept(void **state)
{
	(void)state;
	door_create(d, "replications");
	/* The revision is CouchDB's. */
	door_expect(d, "PUT", "/replications/a",
		    "{\"_replication_id\":\"x\",\"_replication_state\":\"triggered\","
		    "\"_replication_state_time\":1,\"_replication_state_reason\":\"r\","
		    "\"_replication_stats\":{\"a\":[]},\"_access\":[\"b\"],\"z\":1}",
		    201, "1-194164b3f5d6d96973a9ead8748723c1");
	door_expect(
		d, "GET", "/replications/a", NULL, 200,
		"\"_access\":[\"b\"],\"_replication_id\":\"x\",\"_replication_state\":"
		"\"triggered\",\"_replication_state_reason\":\"r\",\"_replication_state_time\":1,"
		"\"_replication_stats\":{\"a\":[]},\"z\":1}");
	door_expect(d, "PUT", "/replications/b", "{\"_replication_x\":1}", 400,
		    "Bad special document member: _replication_x");
}

static void
a_revision_may_have_no_hash(void **state)
{
	(void)state;
	door_create(d, "bare");
	door_expect_body(d, "POST", "/bare/_bulk_docs",
			 "{\"new_edits\":false,\"docs\":[{\"_id\":\"a\",\"_rev\":\"1-\",\"n\":1}]}",
			 201, "[]");
	door_expect_body(
		d, "GET", "/bare/a?revs=true", NULL, 200,
		"{\"_id\":\"a\",\"_rev\":\"1-\",\"_revisions\":{\"start\":1,\"ids\":[\"\"]},"
		"\"n\":1}");
	door_expect(d, "GET", "/bare/a?rev=1-", NULL, 200, "\"n\":1");
	door_expect(d, "POST", "/bare/_revs_diff", "{\"a\":[\"1-\",\"2-\"]}", 200,
		    "{\"missing\":[\"2-\"],\"possible_ancestors\":[\"1-\"]}");
	door_expect(d, "PUT", "/bare/a?rev=1-", "{\"n\":2}", 201, "\"rev\":\"2-");
	door_expect(d, "GET", "/bare/a?revs=true", NULL, 200, "\"\"]},\"n\":2}");
	door_expect(d, "GET", "/bare/a?rev=-a", NULL, 400, "Invalid rev format");
}

static void
options_of_the_server_are_no_database_s(void **state)
{
	(void)state;
	door_request(d, "OPTIONS", "*", NULL, NULL);
	assert_int_equal(d->last.status, 204);
	assert_non_null(strstr(response_header(&d->last, "Allow"), "PATCH"));
	door_expect(d, "OPTIONS", "/", NULL, 405, "Only GET,HEAD allowed");
}

static void
location_is_what_a_proxy_says(void **state)
{
	(void)state;
	door_create(d, "proxied");
	door_request(d, "PUT", "/proxied/a:b", "X-Forwarded-Host: example.org\r\n", "{}");
	assert_string_equal(response_header(&d->last, "Location"),
			    "http://example.org/proxied/a:b");
	door_request(d, "PUT", "/proxied/c",
		     "X-Forwarded-Host: example.org\r\nX-Forwarded-Ssl: on\r\n", "{}");
	assert_string_equal(response_header(&d->last, "Location"), "https://example.org/proxied/c");
	door_request(d, "PUT", "/proxied/d", "X-Forwarded-Proto: https\r\n", "{}");
	assert_string_equal(response_header(&d->last, "Location"),
			    "https://localhost:5984/proxied/d");
}

static void
plus_is_a_space(void **state)
{
	(void)state;
	door_create(d, "p%2Bl%2Bus");
	door_expect(d, "PUT", "/p%2Bl%2Bus/a+b", "{}", 201, "\"id\":\"a b\"");
	door_expect(d, "PUT", "/p%2Bl%2Bus/a%2Bb", "{}", 201, "\"id\":\"a+b\"");
	door_expect(d, "GET", "/p%2Bl%2Bus/a%20b", NULL, 200, "\"_id\":\"a b\"");
	door_request(d, "COPY", "/p%2Bl%2Bus/a+b", "Destination: c+d%2Be\r\n", NULL);
	door_has(d, "\"id\":\"c d+e\"");
}

static void
answers_carry_what_is_measured_and_told(void **state)
{
	(void)state;
	door_request(d, "GET", "/_uuids", NULL, NULL);
	assert_non_null(response_header(&d->last, "ETag"));
	assert_string_equal(response_header(&d->last, "X-CouchDB-Body-Time"), "0");
	assert_non_null(response_header(&d->last, "X-Couch-Request-ID"));
	door_expect(d, "PUT", "/measured?partitioned=x", NULL, 400,
		    "Invalid `partitioned` parameter");
	door_expect(d, "PUT", "/measured?partitioned=true", NULL, 201, "ok");
	door_expect_body(d, "PUT", "/measured/a", "{\"a\":x}", 400,
			 "{\"error\":\"bad_request\",\"reason\":\"invalid UTF-8 JSON\",\"detail\":"
			 "\"line 1 column 6: unexpected 'x'\"}");
	door_request(d, "POST", "/nowhere", "Content-Type: text/plain\r\n", "{}");
	door_has(d, "Database does not exist.");
	door_request(d, "POST", "/measured", "Content-Type: text/plain\r\n", "{}");
	door_has(d, "bad_content_type");
	door_expect(d, "POST", "/_dbs_info", "{}", 400, "`keys` member must exist.");
	door_expect(d, "POST", "/_dbs_info", "{\"keys\":3}", 400,
		    "`keys` member must be an array.");
	door_expect(d, "GET", "/_all_dbs?limit=x", NULL, 400, "Invalid value for integer: \\\"x");
	door_expect(d, "GET", "/_all_dbs?limit=-1", NULL, 400,
		    "Invalid value for positive integer");
	door_expect(d, "POST", "/measured/_compact/none", "{}", 404, "missing");
	door_expect(d, "PUT", "/measured/_design/some", "{}", 201, "ok");
	door_expect(d, "POST", "/measured/_compact/some", "{}", 202, "ok");
}

/* A document of `depth` objects inside each other, and what is around it. */
static char *
nested(const char *before, int depth, const char *behind)
{
	size_t room = strlen(before) + 6 * (size_t)depth + strlen(behind) + 1;
	char *text = malloc(room);
	char *at = text;

	assert_non_null(text);
	at += snprintf(at, room, "%s", before);
	for (int i = 1; i < depth; i++)
		at += snprintf(at, 6, "{\"a\":");
	at += snprintf(at, 3, "{}");
	for (int i = 1; i < depth; i++)
		*at++ = '}';
	(void)snprintf(at, room - (size_t)(at - text), "%s", behind);
	return text;
}

static void
a_document_is_as_deep_in_a_batch_as_alone(void **state)
{
	char *alone = nested("", 512, "");
	char *batch = nested("{\"docs\":[", 512, "]}");
	char *too_deep = nested("", 513, "");
	char *too_deep_batch = nested("{\"docs\":[", 513, "]}");

	(void)state;
	door_create(d, "deep");
	door_expect(d, "PUT", "/deep/a", alone, 201, "ok");
	door_expect(d, "POST", "/deep/_bulk_docs", batch, 201, "\"ok\":true");
	door_expect(d, "PUT", "/deep/b", too_deep, 400, "nested too deeply");
	door_expect(d, "POST", "/deep/_bulk_docs", too_deep_batch, 400, "nested too deeply");
	free(alone);
	free(batch);
	free(too_deep);
	free(too_deep_batch);
}

static void
what_is_too_long_for_a_key_is_told(void **state)
{
	static char name[9981];
	static char target[10000];

	(void)state;
	door_create(d, "toolong");
	memset(name, 'n', sizeof(name) - 1);
	(void)snprintf(target, sizeof(target), "/toolong/d/%s", name);
	door_expect(d, "PUT", target, "x", 400, "an attachment's name, are too long together");
}

/* ---- Records of a newer frond ---- */

enum {
	NEWER_FORMAT = 9,
};

/* Gives every record in one subspace of "newer" a format number that this frond does not know. */
static enum status
raise_formats(struct kv_tx *tx, void *arg)
{
	const enum rev_subspace *space = arg;
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	const struct kv_range_options options = { .limit = 10 };
	struct catalog_db *db;
	struct kv_future *f;

	TRY(rev_db_open(tx, NULL, STR("newer"), &db, NULL));
	rev_key_space(&begin, db, *space);
	rev_key_space(&end, db, *space);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	catalog_db_unref(db);
	f = kv_get_range(tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	for (size_t i = 0; i < kv_future_range(f).count; i++) {
		struct kv_pair pair = kv_future_range(f).pairs[i];
		struct tuple_reader r = tuple_reader(pair.value);
		uint64_t format;

		if (tuple_next_u64(&r, &format) != STATUS_OK)
			continue; /* a leaf, which has no format number */
		buf_clear(&value);
		tuple_put_u64(&value, NEWER_FORMAT);
		buf_append_str(&value, r.rest);
		TRY(kv_set(tx, pair.key, buf_str(&value)));
	}
	return STATUS_OK;
}

static void
store_with_raised_formats(enum rev_subspace space)
{
	door_request(d, "DELETE", "/newer", NULL, NULL);
	door_create(d, "newer");
	door_expect(d, "PUT", "/newer/a", "{}", 201, "");
	door_expect(d, "PUT", "/newer/_local/a", "{}", 201, "");
	assert_int_equal(kv_run(d->store, raise_formats, &space, NULL, NULL), STATUS_OK);
}

static void
a_record_of_a_newer_frond_is_answered_with_both_numbers(void **state)
{
	static const char entry[] = "\"reason\":\"the entry of _all_docs was written by a newer "
				    "frond: format 9, this one reads up to 1\"";
	static const char branch[] = "\"reason\":\"the branch of a document was written by a newer "
				     "frond: format 9, this one reads up to 3\"";
	static const char change[] = "written by a newer frond: format 9, this one reads up to 1";
	static const char body[] = "\"reason\":\"the body of a document was written by a newer "
				   "frond: form 9, this one reads up to 3\"";

	(void)state;
	store_with_raised_formats(REV_SUBSPACE_ALL_DOCS);
	door_expect(d, "GET", "/newer/a", NULL, 500, entry);
	door_expect(d, "GET", "/newer/_all_docs", NULL, 500, entry);
	store_with_raised_formats(REV_SUBSPACE_REVISIONS);
	door_expect(d, "GET", "/newer/a?revs=true", NULL, 500, branch);
	door_expect(d, "PUT", "/newer/a", "{}", 500, branch);
	store_with_raised_formats(REV_SUBSPACE_CHANGES);
	door_expect(d, "GET", "/newer/_changes", NULL, 500, change);
	store_with_raised_formats(REV_SUBSPACE_DOCUMENTS);
	door_expect(d, "GET", "/newer/a", NULL, 500, body);
	store_with_raised_formats(REV_SUBSPACE_LOCAL);
	door_expect(d, "GET", "/newer/_local/a", NULL, 500, body);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(welcome_says_what_clients_look_for),
		cmocka_unit_test(uuids_are_counted_and_never_cached),
		cmocka_unit_test(database_is_created_described_and_deleted),
		cmocka_unit_test(database_names_are_checked),
		cmocka_unit_test(document_comes_back_as_it_was_put),
		cmocka_unit_test(etag_that_matches_is_not_modified),
		cmocka_unit_test(put_with_stale_rev_is_conflict),
		cmocka_unit_test(if_match_names_the_revision),
		cmocka_unit_test(delete_of_what_is_not_there_is_404),
		cmocka_unit_test(special_members_are_checked),
		cmocka_unit_test(ids_travel_escaped),
		cmocka_unit_test(post_makes_an_id_if_there_is_none),
		cmocka_unit_test(replicated_put_keeps_its_revision),
		cmocka_unit_test(open_revs_lists_leaves),
		cmocka_unit_test(path_reads_one_value),
		cmocka_unit_test(path_reads_what_a_tombstone_says),
		cmocka_unit_test(copy_makes_a_new_document),
		cmocka_unit_test(a_record_of_a_newer_frond_is_answered_with_both_numbers),
		cmocka_unit_test(document_of_many_values_is_stored_and_read_by_path),
		cmocka_unit_test(too_large_a_document_is_413),
		cmocka_unit_test(override_header_turns_a_post_into_another_method),
		cmocka_unit_test(what_is_not_offered_says_so),
		cmocka_unit_test(settings_of_a_database),
		cmocka_unit_test(password_is_a_member_like_any_other_but_among_users),
		cmocka_unit_test(members_of_replications_are_kept),
		cmocka_unit_test(a_revision_may_have_no_hash),
		cmocka_unit_test(options_of_the_server_are_no_database_s),
		cmocka_unit_test(location_is_what_a_proxy_says),
		cmocka_unit_test(plus_is_a_space),
		cmocka_unit_test(answers_carry_what_is_measured_and_told),
		cmocka_unit_test(a_document_is_as_deep_in_a_batch_as_alone),
		cmocka_unit_test(what_is_too_long_for_a_key_is_told),
	};

	return cmocka_run_group_tests_name("couch documents", tests, setup, teardown);
}
