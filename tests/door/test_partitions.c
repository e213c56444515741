/* Partitioned databases: their ids, what is listed and counted of a partition, its limit. */
#include "common.h"

#include "kv/faulty/faulty.h"
#include "verified.h"

#define ILLEGAL(reason)       "{\"error\":\"illegal_docid\",\"reason\":\"" reason "\"}"
#define NO_PARTITION          ILLEGAL("Doc id must be of form partition:id")
#define UNDERSCORE            ILLEGAL("Only reserved document ids may start with underscore.")
#define EMPTY_ID              ILLEGAL("Document id must not be empty")
#define BAD_PARTITION(reason) "{\"error\":\"illegal_partition\",\"reason\":\"" reason "\"}"
#define BAD_REQUEST(reason)   "{\"error\":\"bad_request\",\"reason\":\"" reason "\"}"

/* What frond verify says of the whole store: nothing. */
static int
check_store(void **state)
{
	(void)state;
	verified_none(kv_faulty_inner(d->store));
	return 0;
}

/* A partitioned database, made anew. */
static void
create_partitioned(const char *name)
{
	(void)door_request(d, "DELETE", format("/%s", name), NULL, NULL);
	door_expect_body(d, "PUT", format("/%s?partitioned=true", name), NULL, 201,
			 "{\"ok\":true}");
}

/* A hundred documents, the even ones in "foo", the odd ones in "bar". */
static void
put_hundred(const char *db)
{
	char body[8192];
	int len = snprintf(body, sizeof(body), "{\"docs\":[");

	for (int i = 1; i <= 100; i++)
		len += snprintf(body + len, sizeof(body) - (size_t)len,
				"%s{\"_id\":\"%s:%d\",\"value\":%d}", i > 1 ? "," : "",
				i % 2 ? "bar" : "foo", i, i);
	(void)snprintf(body + len, sizeof(body) - (size_t)len, "]}");
	door_expect(d, "POST", format("/%s/_bulk_docs", db), body, 201, "\"id\":\"foo:100\"");
}

/* How often the text is in the last answer. */
static int
count_in_answer(const char *text)
{
	int n = 0;

	for (const char *at = strstr(d->last.body, text); at; at = strstr(at + 1, text))
		n++;
	return n;
}

static unsigned long long
number_in_answer(const char *name)
{
	const char *at = strstr(d->last.body, name);

	assert_non_null(at);
	return strtoull(at + strlen(name), NULL, 10);
}

struct info {
	unsigned long long docs, deleted, active, external;
};

static struct info
info_of(const char *db, const char *partition)
{
	struct info info;

	door_expect(d, "GET", format("/%s/_partition/%s", db, partition), NULL, 200,
		    format("\"partition\":\"%s\"", partition));
	info.docs = number_in_answer("\"doc_count\":");
	info.deleted = number_in_answer("\"doc_del_count\":");
	info.active = number_in_answer("\"active\":");
	info.external = number_in_answer("\"external\":");
	return info;
}

/* ---- The database ---- */

static void
partitioned_is_a_property_of_the_database(void **state)
{
	(void)state;
	create_partitioned("p");
	door_expect(d, "GET", "/p", NULL, 200, "\"props\":{\"partitioned\":true,");
	(void)door_request(d, "DELETE", "/q", NULL, NULL);
	door_expect(d, "PUT", "/q?partitioned=false", NULL, 201, "ok");
	door_expect(d, "GET", "/q", NULL, 200, "\"props\":{");
	door_has_not(d, "partitioned");
	door_expect_body(d, "PUT", "/bad-db?partitioned=tru", NULL, 400,
			 BAD_REQUEST("Invalid `partitioned` parameter"));
	door_expect_body(d, "PUT", "/_replicator?partitioned=true", NULL, 400,
			 BAD_REQUEST("Cannot partition a system database"));
	door_expect_body(d, "PUT", "/a%2F_users?partitioned=true", NULL, 400,
			 BAD_REQUEST("Cannot partition a system database"));
	/* Other settings leave it alone. */
	door_expect(d, "PUT", "/p/_revs_limit", "5", 200, "ok");
	door_expect(d, "PUT", "/p/_scheme", "\"exploded\"", 200, "ok");
	door_expect(d, "GET", "/p", NULL, 200, "\"partitioned\":true,\"scheme\":\"exploded\"");
	door_expect_body(d, "GET", "/p/_revs_limit", NULL, 200, "5");
}

/* ---- Ids ---- */

static void
ids_name_a_partition(void **state)
{
	(void)state;
	create_partitioned("p");
	door_expect(d, "PUT", "/p/my-partition:doc", "{\"partitioned_doc\":true}", 201,
		    "\"id\":\"my-partition:doc\"");
	door_expect(d, "GET", "/p/my-partition:doc", NULL, 200, "\"_id\":\"my-partition:doc\"");
	door_expect(d, "POST", "/p", "{\"_id\":\"post:doc\"}", 201, "\"id\":\"post:doc\"");
	door_expect(d, "PUT", "/p/a:b:c", "{}", 201, "a:b:c");
	door_expect(d, "PUT", "/p/a:_design%2Fx", "{}", 201, "a:_design/x");
	door_expect(d, "PUT", "/p/_design/free", "{}", 201, "_design/free");
	door_expect(d, "PUT", "/p/_local/free", "{}", 201, "_local/free");

	door_expect_body(d, "PUT", "/p/not-partitioned", "{}", 400, NO_PARTITION);
	door_expect_body(d, "PUT", "/p/_bad:partitioned", "{}", 400, UNDERSCORE);
	door_expect_body(d, "PUT", "/p/bad:", "{}", 400, EMPTY_ID);
	door_expect_body(d, "PUT", "/p/bad:_x", "{}", 400, UNDERSCORE);
	door_expect_body(d, "PUT", "/p/bad:_design%2F", "{}", 400,
			 ILLEGAL("Illegal document id `_design/`"));
	door_expect_body(d, "PUT", "/p/:x", "{}", 400,
			 BAD_PARTITION("Partition must not be empty"));
	door_expect_body(d, "POST", "/p", "{\"_id\":\"not-partitioned\"}", 400, NO_PARTITION);
	/* A new id of the server's has no partition. */
	door_expect_body(d, "POST", "/p", "{\"x\":1}", 400, NO_PARTITION);
	door_expect_body(d, "PUT", "/p/x?new_edits=false", "{\"_rev\":\"1-a\"}", 400, NO_PARTITION);
	door_expect(d, "GET", "/p", NULL, 200, "\"doc_count\":5");
}

static void
every_way_in_checks_ids(void **state)
{
	char rev[64];

	(void)state;
	create_partitioned("p");
	door_expect(d, "PUT", "/p/a:1", "{\"n\":1}", 201, "ok");
	(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "rev"));
	expect_as("Destination: copy\r\n", "COPY", "/p/a:1", NULL, 400, NO_PARTITION);
	expect_as("Destination: a:copy\r\n", "COPY", "/p/a:1", NULL, 201, "a:copy");
	expect_as("Content-Type: text/plain\r\n", "PUT", "/p/x/att", "abc", 400, NO_PARTITION);
	expect_as("Content-Type: text/plain\r\n", "PUT", format("/p/a:1/att?rev=%s", rev), "abc",
		  201, "a:1");
	expect_as("Content-Type: application/json-patch+json\r\n", "PATCH", "/p/x?rev=1-a", "[]",
		  400, NO_PARTITION);
	door_expect_body(d, "DELETE", "/p/x?rev=1-a", NULL, 400, NO_PARTITION);
	door_expect_body(d, "DELETE", "/p/x", NULL, 400, NO_PARTITION);
	door_expect_body(d, "DELETE", "/p/x/att", NULL, 400, NO_PARTITION);
	door_expect_body(d, "POST", "/p/_purge", "{\"x\":[\"1-a\"]}", 400, NO_PARTITION);
}

static void
ids_without_a_partition_are_not_looked_up(void **state)
{
	(void)state;
	create_partitioned("p");
	door_expect_body(d, "GET", "/p/x", NULL, 400, NO_PARTITION);
	door_expect_body(d, "GET", "/p/x?open_revs=all", NULL, 400, NO_PARTITION);
	door_expect_body(d, "GET", "/p/x?paths=%5B%22/a%22%5D", NULL, 400, NO_PARTITION);
	door_expect_body(d, "GET", "/p/x/att", NULL, 400, NO_PARTITION);
	door_expect(d, "GET", "/p/a:x", NULL, 404, "missing");
	door_expect(d, "GET", "/p/_design/x", NULL, 404, "missing");
	door_expect(d, "GET", "/p/_local/x", NULL, 404, "missing");
	door_expect_body(
		d, "POST", "/p/_bulk_get", "{\"docs\":[{\"id\":\"my-post\"}]}", 200,
		"{\"results\":[{\"id\":\"my-post\",\"docs\":[{\"error\":{\"id\":\"my-post\","
		"\"rev\":null,\"error\":\"illegal_docid\",\"reason\":\"Doc id must be of "
		"form partition:id\"}}]}]}");
	door_expect_body(d, "POST", "/p/_all_docs", "{\"keys\":[\"x\"]}", 400, NO_PARTITION);
	door_expect(d, "POST", "/p/_revs_diff", "{\"x\":[\"1-a\"]}", 200, "1-a");
}

static void
bulk_refuses_the_request_for_an_id(void **state)
{
	(void)state;
	create_partitioned("p");
	door_expect(d, "POST", "/p/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"foo:1\"},{\"_id\":\"bar:1\"}]}", 201,
		    "\"id\":\"bar:1\"");
	door_expect_body(d, "POST", "/p/_bulk_docs",
			 "{\"docs\":[{\"_id\":\"foo:2\"},{\"_id\":\"foo1\"}]}", 400, NO_PARTITION);
	door_expect_body(d, "POST", "/p/_bulk_docs", "{\"docs\":[{\"_id\":\"_foo:1\"}]}", 400,
			 UNDERSCORE);
	door_expect_body(d, "POST", "/p/_bulk_docs", "{\"docs\":[{\"_id\":\"foo:\"}]}", 400,
			 EMPTY_ID);
	door_expect_body(d, "POST", "/p/_bulk_docs", "{\"docs\":[{\"x\":1}]}", 400, NO_PARTITION);
	door_expect_body(d, "POST", "/p/_bulk_docs",
			 "{\"atomic\":true,\"docs\":[{\"_id\":\"foo:3\"},{\"_id\":\"x\"}]}", 400,
			 NO_PARTITION);
	door_expect(d, "GET", "/p", NULL, 200, "\"doc_count\":2");
	/* What another server has taken does not keep out the others. */
	door_expect_body(
		d, "POST", "/p/_bulk_docs",
		"{\"new_edits\":false,\"docs\":[{\"_id\":\"x\",\"_rev\":\"1-a\"},"
		"{\"_id\":\"foo:9\",\"_rev\":\"1-a\"}]}",
		201,
		"[{\"id\":\"x\",\"rev\":\"1-a\",\"error\":\"illegal_docid\",\"reason\":\"Doc "
		"id must be of form partition:id\"}]");
	door_expect(d, "GET", "/p/foo:9", NULL, 200, "1-a");
}

static void
an_id_late_in_a_large_request_refuses_all_of_it(void **state)
{
	static char body[64 * 1024];
	int len = snprintf(body, sizeof(body), "{\"docs\":[");

	(void)state;
	create_partitioned("p");
	for (int i = 0; i < 1500; i++)
		len += snprintf(body + len, sizeof(body) - (size_t)len, "{\"_id\":\"a:%d\"},", i);
	(void)snprintf(body + len, sizeof(body) - (size_t)len, "{\"_id\":\"x\"}]}");
	door_expect_body(d, "POST", "/p/_bulk_docs", body, 400, NO_PARTITION);
	door_expect(d, "GET", "/p", NULL, 200, "\"doc_count\":0");
}

static void
purging_takes_documents_out_of_their_partition(void **state)
{
	const char *rev;

	(void)state;
	create_partitioned("p");
	door_expect(d, "POST", "/p", "{\"_id\":\"foo:bar\",\"value\":\"some value\"}", 201, "ok");
	rev = door_member(d, "rev");
	assert_true(info_of("p", "foo").external > 0);
	door_expect(d, "POST", "/p/_purge", format("{\"foo:bar\":[\"%s\"]}", rev), 201, rev);
	door_expect_body(d, "GET", "/p/foo:bar", NULL, 404,
			 "{\"error\":\"not_found\",\"reason\":\"missing\"}");
	door_expect_body(d, "GET", "/p/_partition/foo", NULL, 200,
			 "{\"db_name\":\"p\",\"sizes\":{\"active\":0,\"external\":0},\"partition\":"
			 "\"foo\",\"doc_count\":0,\"doc_del_count\":0}");
}

static void
design_documents_say_whether_they_are_partitioned(void **state)
{
	(void)state;
	create_partitioned("p");
	door_expect(d, "PUT", "/p/_design/a", "{\"options\":{\"partitioned\":true}}", 201, "ok");
	door_expect(d, "PUT", "/p/_design/b", "{\"options\":{\"partitioned\":false}}", 201, "ok");
	door_expect(d, "PUT", "/p/_design/c", "{\"options\":{\"partitioned\":1}}", 400,
		    "invalid_design_doc");
	(void)door_request(d, "DELETE", "/q", NULL, NULL);
	door_create(d, "q");
	door_expect_body(d, "PUT", "/q/_design/a", "{\"options\":{\"partitioned\":true}}", 400,
			 "{\"error\":\"invalid_design_doc\",\"reason\":\"partitioned option cannot "
			 "be true in a non-partitioned database.\"}");
}

/* ---- Paths ---- */

static void
paths_of_partitions_answer_as_couchdb_does(void **state)
{
	(void)state;
	create_partitioned("p");
	(void)door_request(d, "DELETE", "/q", NULL, NULL);
	door_create(d, "q");
	door_expect_body(d, "GET", "/p/_partition", NULL, 400,
			 BAD_REQUEST("invalid_partition_req"));
	door_expect_body(d, "GET", "/p/_partition//_all_docs", NULL, 400,
			 BAD_PARTITION("Partition must not start with an underscore"));
	door_expect_body(d, "POST", "/p/_partition//_all_docs", "{}", 400,
			 BAD_PARTITION("Partition must not start with an underscore"));
	door_expect_body(d, "GET", "/p/_partition/_bar/_all_docs", NULL, 400,
			 BAD_PARTITION("Partition must not start with an underscore"));
	door_expect_body(d, "GET", "/p/_partition/a%3Ab/_all_docs", NULL, 400,
			 BAD_PARTITION("Partition must not contain a colon"));
	door_expect_body(d, "GET", "/p/_partition/a%3Ab", NULL, 400,
			 BAD_PARTITION("Partition must not contain a colon"));
	door_expect_body(d, "GET", "/p/_partition/%ff", NULL, 400,
			 BAD_PARTITION("Partition must be valid UTF-8"));
	door_expect(d, "PUT", "/p/_partition/foo", "{}", 405, "Only GET allowed");
	door_expect(d, "GET", "/p/_partition/fakekey/_design/mrtest/_view/some", NULL, 404,
		    "missing");
	door_expect(d, "GET", "/p/_partition/foo/_design/mrtest", NULL, 404, "missing");
	door_expect(d, "GET", "/p/_partition/foo/_design/fakekey/_info", NULL, 404, "missing");
	door_expect_body(d, "GET", "/q/_partition/foo/_design/mrtest/_info", NULL, 400,
			 BAD_REQUEST("database is not partitioned"));
	door_expect(d, "GET", "/p/_partition/foo/_changes", NULL, 404, "missing");
	door_expect(d, "GET", "/p/_partition/foo/a:b", NULL, 404, "missing");
	door_expect_body(d, "GET", "/q/_partition/foo", NULL, 400,
			 BAD_REQUEST("database is not partitioned"));
	door_expect_body(d, "GET", "/q/_partition/foo/_all_docs", NULL, 400,
			 BAD_REQUEST("database is not partitioned"));
	door_expect_body(d, "GET", "/q/_partition/_foo/_all_docs", NULL, 400,
			 BAD_REQUEST("database is not partitioned"));
	door_expect(d, "GET", "/nothing/_partition/foo", NULL, 404, "Database does not exist.");
	door_expect(d, "GET", "/nothing/_partition/foo/_all_docs", NULL, 404,
		    "Database does not exist.");
}

/* ---- _all_docs ---- */

/* What belongs to a design document is the same from inside a partition. */
static void
functions_of_design_documents_are_there_in_partitions(void **state)
{
	static char info[4096];

	(void)state;
	if (!getenv("FROND_JS_WORKER"))
		skip();
	create_partitioned("inside");
	door_expect(d, "PUT", "/inside/_design/d",
		    "{\"views\":{\"v\":{\"map\":\"function(doc) { emit(doc.n); }\"}},"
		    "\"updates\":{\"u\":\"function(doc, req) { return [{_id: 'foo:new', path: "
		    "req.path}, 'made']; }\"}}",
		    201, "ok");
	door_expect(d, "GET", "/inside/_design/d/_info", NULL, 200, "\"name\":\"d\"");
	(void)snprintf(info, sizeof(info), "%s", d->last.body);
	door_expect(d, "GET", "/inside/_partition/foo/_design/d/_info", NULL, 200, "view_index");
	assert_string_equal(d->last.body, info);
	door_expect(d, "GET", "/inside/_partition/_foo/_design/d/_info", NULL, 400,
		    "Partition must not start with an underscore");
	door_expect(d, "POST", "/inside/_partition/foo/_design/d/_info", "{}", 405,
		    "Only GET allowed");
	door_expect(d, "GET", "/inside/_partition/foo/_design/d/_update/u", NULL, 405,
		    "method_not_allowed");
	door_expect(d, "POST", "/inside/_partition/foo/_design/d/_update/none", "", 404,
		    "missing json key: none");
	door_request(d, "POST", "/inside/_partition/foo/_design/d/_update/u", NULL, "");
	assert_int_equal(d->last.status, 201);
	assert_string_equal(d->last.body, "made");
	door_expect(d, "GET", "/inside/foo:new", NULL, 200,
		    "\"path\":[\"inside\",\"_design\",\"d\",\"_update\",\"u\"]");
}

static void
all_docs_is_confined_to_the_partition(void **state)
{
	(void)state;
	create_partitioned("p");
	put_hundred("p");
	door_expect(d, "PUT", "/p/fo:1", "{}", 201, "ok");
	door_expect(d, "PUT", "/p/foo;:1", "{}", 201, "ok");
	door_expect(d, "PUT", "/p/foo!:1", "{}", 201, "ok");
	door_expect(d, "PUT", "/p/_design/x", "{}", 201, "ok");
	door_expect(d, "GET", "/p/_partition/foo/_all_docs", NULL, 200, "\"id\":\"foo:100\"");
	assert_int_equal(count_in_answer("\"id\":\"foo:"), 50);
	assert_int_equal(count_in_answer("\"id\":"), 50);
	door_has(d, "{\"total_rows\":104,\"offset\":53,");
	door_expect(d, "GET", "/p/_partition/bar/_all_docs", NULL, 200, "\"id\":\"bar:99\"");
	assert_int_equal(count_in_answer("\"id\":"), 50);
	door_expect(d, "GET", "/p/_partition/none/_all_docs", NULL, 200, "\"rows\":[\r\n\r\n]");
	door_request(d, "HEAD", "/p/_partition/foo/_all_docs", NULL, NULL);
	assert_int_equal(d->last.status, 200);
}

static void
all_docs_of_a_partition_has_all_options(void **state)
{
	(void)state;
	create_partitioned("p");
	put_hundred("p");
	door_expect(d, "GET",
		    "/p/_partition/foo/_all_docs?start_key=%22foo:12%22&end_key=%22foo:2%22", NULL,
		    200, "foo:12");
	assert_int_equal(count_in_answer("\"id\":\"foo:"), 5);
	door_expect(d, "POST", "/p/_partition/foo/_all_docs",
		    "{\"keys\":[\"foo:2\",\"foo:4\",\"foo:6\"]}", 200, "foo:6");
	assert_int_equal(count_in_answer("\"id\":"), 3);
	door_expect(d, "GET", "/p/_partition/foo/_all_docs?limit=5", NULL, 200, "foo:16");
	assert_int_equal(count_in_answer("\"id\":\"foo:"), 5);
	door_expect(d, "GET", "/p/_partition/foo/_all_docs?descending=true&limit=5", NULL, 200,
		    "foo:98");
	door_has(d, "foo:90");
	assert_int_equal(count_in_answer("\"id\":\"foo:"), 5);
	door_expect(d, "GET", "/p/_partition/foo/_all_docs?skip=5&limit=5", NULL, 200, "foo:18");
	door_has(d, "foo:24");
	assert_int_equal(count_in_answer("\"id\":\"foo:"), 5);
	door_expect(d, "GET", "/p/_partition/foo/_all_docs?key=%22foo:22%22", NULL, 200, "foo:22");
	assert_int_equal(count_in_answer("\"id\":"), 1);
	door_expect(d, "GET", "/p/_partition/foo/_all_docs?include_docs=true&limit=1", NULL, 200,
		    "\"value\":10}");
	door_expect(d, "POST", "/p/_partition/foo/_all_docs/queries",
		    "{\"queries\":[{\"limit\":1},{\"descending\":true,\"limit\":1}]}", 200,
		    "\"id\":\"foo:10\"");
	door_has(d, "\"id\":\"foo:98\"");
	assert_int_equal(count_in_answer("\"id\":"), 2);
}

static void
bounds_outside_of_the_partition_are_narrowed(void **state)
{
	(void)state;
	create_partitioned("p");
	put_hundred("p");
	door_expect(d, "GET", "/p/_partition/foo/_all_docs?startkey=%22a%22&endkey=%22z%22", NULL,
		    200, "foo:10");
	assert_int_equal(count_in_answer("\"id\":\"foo:"), 50);
	assert_int_equal(count_in_answer("\"id\":"), 50);
	door_expect(d, "GET", "/p/_partition/foo/_all_docs?startkey=5", NULL, 200, "foo:10");
	assert_int_equal(count_in_answer("\"id\":"), 50);
	door_expect(d, "GET",
		    "/p/_partition/foo/_all_docs?descending=true&startkey=%22z%22&endkey=%22a%22",
		    NULL, 200, "foo:10");
	assert_int_equal(count_in_answer("\"id\":"), 50);
	door_expect(d, "GET", "/p/_partition/foo/_all_docs?key=%22bar:1%22", NULL, 200,
		    "\"rows\":[\r\n\r\n]");
	door_expect(d, "GET", "/p/_partition/foo/_all_docs?startkey=%22z%22", NULL, 200,
		    "\"rows\":[\r\n\r\n]");
	door_expect(d, "GET", "/p/_partition/foo/_all_docs?endkey=%22a%22", NULL, 200,
		    "\"rows\":[\r\n\r\n]");
	/* CouchDB looks keys up wherever they are. */
	door_expect(d, "POST", "/p/_partition/foo/_all_docs", "{\"keys\":[\"bar:1\"]}", 200,
		    "\"id\":\"bar:1\"");
}

static void
partition_is_a_parameter_too(void **state)
{
	(void)state;
	create_partitioned("p");
	put_hundred("p");
	(void)door_request(d, "DELETE", "/q", NULL, NULL);
	door_create(d, "q");
	door_expect(d, "GET", "/p/_all_docs?partition=foo", NULL, 200, "foo:10");
	assert_int_equal(count_in_answer("\"id\":"), 50);
	door_expect(d, "GET", "/p/_partition/foo/_all_docs?partition=foo", NULL, 200, "foo:10");
	door_expect_body(d, "GET", "/p/_partition/foo/_all_docs?partition=bar", NULL, 400,
			 BAD_REQUEST("Conflicting value for `partition` in query string"));
	door_expect_body(d, "GET", "/p/_all_docs?partition=_x", NULL, 400,
			 BAD_PARTITION("Partition must not start with an underscore"));
	door_expect_body(d, "GET", "/p/_all_docs?partition=", NULL, 400,
			 BAD_PARTITION("Partition must not be empty"));
	door_expect_body(d, "GET", "/q/_all_docs?partition=foo", NULL, 400,
			 "{\"error\":\"query_parse_error\",\"reason\":\"`partition` parameter is "
			 "not supported on this db\"}");
	door_expect(d, "POST", "/p/_all_docs/queries", "{\"queries\":[{\"partition\":\"foo\"}]}",
		    200, "foo:10");
	assert_int_equal(count_in_answer("\"id\":"), 50);
	door_expect(d, "POST", "/q/_all_docs/queries", "{\"queries\":[{},{\"partition\":\"foo\"}]}",
		    400, "not supported on this db");
}

static void
limits_of_lists_are_settings(void **state)
{
	(void)state;
	create_partitioned("p");
	put_hundred("p");
	door_expect(d, "PUT", "/_node/_local/_config/query_server_config/partition_query_limit",
		    "\"40\"", 200, "");
	door_expect(d, "GET", "/p/_partition/foo/_all_docs?limit=20", NULL, 200, "foo");
	assert_int_equal(count_in_answer("\"id\":"), 20);
	door_expect(d, "GET", "/p/_partition/foo/_all_docs", NULL, 200, "foo");
	assert_int_equal(count_in_answer("\"id\":"), 40);
	door_expect(d, "GET", "/p/_partition/foo/_all_docs?limit=40&skip=25", NULL, 200, "foo");
	assert_int_equal(count_in_answer("\"id\":"), 25);
	door_expect_body(
		d, "GET", "/p/_partition/foo/_all_docs?limit=41", NULL, 400,
		"{\"error\":\"query_parse_error\",\"reason\":\"Limit is too large, must not "
		"exceed 40\"}");
	door_expect(d, "GET", "/p/_all_docs?limit=41", NULL, 200, "bar:1");
	door_expect(d, "DELETE", "/_node/_local/_config/query_server_config/partition_query_limit",
		    NULL, 200, "");
}

/* ---- Counts and sizes ---- */

static void
a_partition_counts_its_documents(void **state)
{
	struct info before, after;
	char rev[64];

	(void)state;
	create_partitioned("p");
	before = info_of("p", "unknown");
	assert_int_equal(before.docs + before.deleted + before.active + before.external, 0);
	door_expect(d, "POST", "/p", "{\"_id\":\"foo:bar\",\"val\":\"some stuff here\"}", 201,
		    "ok");
	(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "rev"));
	before = info_of("p", "foo");
	assert_int_equal(before.docs, 1);
	assert_int_equal(before.deleted, 0);
	assert_true(before.external > 0 && before.active > 0);
	door_expect(d, "POST", "/p", "{\"_id\":\"foo:baz\",\"val\":24}", 201, "ok");
	after = info_of("p", "foo");
	assert_int_equal(after.docs, 2);
	assert_true(after.external > before.external && after.active > before.active);
	door_expect(d, "DELETE", format("/p/foo:bar?rev=%s", rev), NULL, 200, "ok");
	before = info_of("p", "foo");
	assert_int_equal(before.docs, 1);
	assert_int_equal(before.deleted, 1);
	assert_true(before.external < after.external);
	/* A deleted document comes back. */
	door_expect(d, "PUT", "/p/foo:bar", "{\"val\":\"some stuff here\"}", 201, "ok");
	before = info_of("p", "foo");
	assert_int_equal(before.docs, 2);
	assert_int_equal(before.deleted, 0);
	assert_int_equal(before.external, after.external);
}

static void
updates_change_sizes(void **state)
{
	unsigned long long first, second, third;

	(void)state;
	create_partitioned("p");
	door_expect(d, "POST", "/p", "{\"_id\":\"foo:bar\",\"val\":\"\"}", 201, "ok");
	first = info_of("p", "foo").external;
	door_expect(d, "GET", "/p/foo:bar", NULL, 200, "val");
	door_expect(
		d, "POST", "/p",
		format("{\"_id\":\"foo:bar\",\"_rev\":\"%s\",\"val\":\"this is a very long string "
		       "that is so super long its beyond long\"}",
		       door_member(d, "_rev")),
		201, "ok");
	second = info_of("p", "foo").external;
	door_expect(d, "GET", "/p/foo:bar", NULL, 200, "val");
	door_expect(
		d, "POST", "/p",
		format("{\"_id\":\"foo:bar\",\"_rev\":\"%s\",\"val\":\"this string is shorter\"}",
		       door_member(d, "_rev")),
		201, "ok");
	third = info_of("p", "foo").external;
	assert_true(third > first && second > third);
	assert_int_equal(info_of("p", "foo").docs, 1);
}

static void
conflicts_and_attachments_count(void **state)
{
	struct info plain, other, with;

	(void)state;
	create_partitioned("p");
	door_expect(d, "PUT", "/p/bar:1", "{\"x\":1}", 201, "ok");
	other = info_of("p", "bar");
	door_expect(d, "POST", "/p/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"foo:1\",\"_rev\":\"1-a\",\"x\":1},"
		    "{\"_id\":\"foo:1\",\"_rev\":\"1-b\",\"x\":22}]}",
		    201, "[]");
	plain = info_of("p", "foo");
	assert_int_equal(plain.docs, 1);
	assert_true(plain.external > other.external);
	door_expect(d, "PUT", "/p/foo:att",
		    "{\"_attachments\":{\"foo.txt\":{\"content_type\":\"text/plain\",\"data\":"
		    "\"VGhpcyBpcyBhIHRleHQgZG9jdW1lbnQgdG8gc2F2ZQ==\"}}}",
		    201, "ok");
	with = info_of("p", "foo");
	assert_true(with.external >= plain.external + 31);
	assert_true(with.active > plain.active);
	assert_int_equal(with.docs, 2);
	plain = info_of("p", "bar");
	assert_memory_equal(&plain, &other, sizeof(plain));
	/* All partitions together are the database. */
	door_expect(d, "GET", "/p", NULL, 200, "sizes");
	assert_int_equal(number_in_answer("\"external\":"), with.external + other.external);
	assert_int_equal(number_in_answer("\"active\":"), with.active + other.active);
}

static void
design_documents_belong_to_no_partition(void **state)
{
	struct info before, after;

	(void)state;
	create_partitioned("p");
	put_hundred("p");
	before = info_of("p", "foo");
	assert_int_equal(before.docs, 50);
	door_expect(d, "PUT", "/p/_design/00000", "{\"value\":\"some stuff here\"}", 201, "ok");
	after = info_of("p", "foo");
	assert_memory_equal(&before, &after, sizeof(after));
}

/* ---- max_partition_size ---- */

static void
set_limit(const char *bytes)
{
	door_expect(d, "PUT", "/_node/_local/_config/couchdb/max_partition_size",
		    format("\"%s\"", bytes), 200, "");
}

/* Fifteen documents of a kilobyte. */
static void
fill(const char *partition)
{
	static char body[32 * 1024];
	int len = snprintf(body, sizeof(body), "{\"docs\":[");

	for (int i = 1; i <= 15; i++)
		len += snprintf(body + len, sizeof(body) - (size_t)len,
				"%s{\"_id\":\"%s:%04d\",\"value\":\"%01024d\"}", i > 1 ? "," : "",
				partition, i, 0);
	(void)snprintf(body + len, sizeof(body) - (size_t)len, "]}");
	door_expect(d, "POST", "/p/_bulk_docs", body, 201, "\"ok\":true");
	door_has_not(d, "error");
}

#define OVERFLOW(id)                                                                               \
	"\"error\":\"partition_overflow\",\"reason\":\"Partition limit exceeded due to update on " \
	"'" id "'\""

static void
a_full_partition_takes_nothing_that_grows(void **state)
{
	char rev[64];

	(void)state;
	create_partitioned("p");
	set_limit("10240");
	fill("foo");
	door_expect_body(d, "POST", "/p", "{\"_id\":\"foo:bar\",\"value\":\"stuff\"}", 403,
			 "{" OVERFLOW("foo:bar") "}");
	door_expect_body(d, "PUT", "/p/foo:bar", "{\"value\":\"stuff\"}", 403,
			 "{" OVERFLOW("foo:bar") "}");
	door_expect(d, "POST", "/p/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"foo:bar\",\"n\":1},{\"_id\":\"baz:bang\"}]}", 201,
		    "{\"id\":\"foo:bar\"," OVERFLOW("foo:bar") "}");
	door_has(d, "{\"ok\":true,\"id\":\"baz:bang\"");
	expect_as("Destination: foo:copy\r\n", "COPY", "/p/foo:0001", NULL, 403,
		  "partition_overflow");
	/* It can be read, and become smaller. */
	door_expect(d, "GET", "/p/foo:0001", NULL, 200, "value");
	(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "_rev"));
	expect_as("Content-Type: text/plain\r\n", "PUT", format("/p/foo:0001/att?rev=%s", rev),
		  "abc", 403, "partition_overflow");
	door_expect(d, "POST", "/p",
		    format("{\"_id\":\"foo:0001\",\"_rev\":\"%s\",\"value\":\"\"}", rev), 201,
		    "ok");
	(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "rev"));
	door_expect(d, "DELETE", format("/p/foo:0001?rev=%s", rev), NULL, 200, "ok");
	/* Others are not concerned. */
	door_expect(d, "POST", "/p", "{\"_id\":\"bar:foo\",\"value\":\"stuff\"}", 201, "ok");
	door_expect(d, "PUT", "/p/_design/foo", "{\"value\":\"stuff\"}", 201, "ok");
	/* Replication brings what another server has taken. */
	door_expect(d, "PUT", "/p/foo:bar?new_edits=false",
		    "{\"_rev\":\"1-23202479633c2b380f79507a776743d5\",\"value\":\"stuff\"}", 201,
		    "ok");
	set_limit("10240000");
	door_expect(d, "PUT", "/p/foo:more", "{}", 201, "ok");
	set_limit("10240");
	door_expect(d, "PUT", "/p/foo:none", "{}", 403, "partition_overflow");
	door_expect(d, "PUT", "/p/foo:no", "{\"n\":1}", 403, "partition_overflow");
	set_limit("0");
	door_expect(d, "PUT", "/p/foo:no", "{\"n\":1}", 201, "ok");
}

static void
an_empty_document_has_a_size(void **state)
{
	static const char *const schemes[] = { "\"packed\"", "\"exploded\"" };
	char rev[64];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		create_partitioned("p");
		door_expect(d, "PUT", "/p/_scheme", schemes[i], 200, "ok");
		door_expect(d, "PUT", "/p/foo:a", "{}", 201, "ok");
		assert_int_equal(info_of("p", "foo").external, 2);
		door_expect(d, "PUT", "/p/foo:b", "{\"_attachments\":{\"f\":{\"data\":\"aGk=\"}}}",
			    201, "ok");
		assert_int_equal(info_of("p", "foo").external, 2 + 4);
		door_expect(d, "GET", "/p/foo:a", NULL, 200, "_rev");
		(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "_rev"));
		door_expect(d, "DELETE", format("/p/foo:a?rev=%s", rev), NULL, 200, "ok");
		assert_int_equal(info_of("p", "foo").external, 4);
		assert_int_equal(check_store(NULL), 0);
	}
}

static void
purging_makes_room(void **state)
{
	char body[2048];
	int len = snprintf(body, sizeof(body), "{");
	const char *at;

	(void)state;
	create_partitioned("p");
	set_limit("10240");
	fill("foo");
	door_expect(d, "GET", "/p/_partition/foo/_all_docs?limit=14", NULL, 200, "foo:0014");
	at = d->last.body;
	for (int i = 1; i <= 14; i++) {
		at = strstr(at, "\"rev\":\"") + 7;
		len += snprintf(body + len, sizeof(body) - (size_t)len,
				"%s\"foo:%04d\":[\"%.34s\"]", i > 1 ? "," : "", i, at);
	}
	(void)snprintf(body + len, sizeof(body) - (size_t)len, "}");
	door_expect(d, "POST", "/p/_purge", body, 201, "foo:0014");
	assert_int_equal(info_of("p", "foo").docs, 1);
	door_expect(d, "PUT", "/p/foo:bar", "{}", 201, "ok");
	set_limit("0");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(partitioned_is_a_property_of_the_database, check_store),
		cmocka_unit_test_teardown(ids_name_a_partition, check_store),
		cmocka_unit_test_teardown(every_way_in_checks_ids, check_store),
		cmocka_unit_test_teardown(ids_without_a_partition_are_not_looked_up, check_store),
		cmocka_unit_test_teardown(bulk_refuses_the_request_for_an_id, check_store),
		cmocka_unit_test_teardown(an_id_late_in_a_large_request_refuses_all_of_it,
					  check_store),
		cmocka_unit_test_teardown(purging_takes_documents_out_of_their_partition,
					  check_store),
		cmocka_unit_test_teardown(design_documents_say_whether_they_are_partitioned,
					  check_store),
		cmocka_unit_test_teardown(paths_of_partitions_answer_as_couchdb_does, check_store),
		cmocka_unit_test_teardown(functions_of_design_documents_are_there_in_partitions,
					  check_store),
		cmocka_unit_test_teardown(all_docs_is_confined_to_the_partition, check_store),
		cmocka_unit_test_teardown(all_docs_of_a_partition_has_all_options, check_store),
		cmocka_unit_test_teardown(bounds_outside_of_the_partition_are_narrowed,
					  check_store),
		cmocka_unit_test_teardown(partition_is_a_parameter_too, check_store),
		cmocka_unit_test_teardown(limits_of_lists_are_settings, check_store),
		cmocka_unit_test_teardown(a_partition_counts_its_documents, check_store),
		cmocka_unit_test_teardown(updates_change_sizes, check_store),
		cmocka_unit_test_teardown(conflicts_and_attachments_count, check_store),
		cmocka_unit_test_teardown(design_documents_belong_to_no_partition, check_store),
		cmocka_unit_test_teardown(a_full_partition_takes_nothing_that_grows, check_store),
		cmocka_unit_test_teardown(an_empty_document_has_a_size, check_store),
		cmocka_unit_test_teardown(purging_makes_room, check_store),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
