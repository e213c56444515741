/* Functions of design documents: validation, filters, updates. */
#include "functions.h"

#define FORM                                                                                       \
	"Content-Type: multipart/form-data; boundary=abc\r\nReferer: "                             \
	"http://localhost:5984/page\r\n"
#define RELATED    "Content-Type: multipart/related; boundary=abc\r\n"
#define JSON_PATCH "Content-Type: application/json-patch+json\r\n"
#define TEXT       "Content-Type: text/plain\r\n"
#define HELLO      "\"data\":\"aGVsbG8=\",\"content_type\":\"text/plain\""

static void
validators_refuse_in_couchdbs_words(void **state)
{
	NEEDS_WORKER();
	create_with("words", "function(n, o, u, s) {"
			     "  if (n.a == 1) throw({forbidden: 'not ' + n._id});"
			     "  if (n.a == 2) throw({unauthorized: 'log in'});"
			     "  if (n.a == 3) throw({forbidden: {why: [1]}});"
			     "  if (n.a == 4) throw({other: 'word'});"
			     "  if (n.a == 5) nothing.there;"
			     "}");
	door_expect_body(d, "PUT", "/words/d", "{\"a\":1}", 403,
			 "{\"error\":\"forbidden\",\"reason\":\"not d\"}");
	door_expect_body(d, "PUT", "/words/d", "{\"a\":2}", 401,
			 "{\"error\":\"unauthorized\",\"reason\":\"log in\"}");
	door_expect_body(d, "PUT", "/words/d", "{\"a\":3}", 403,
			 "{\"error\":\"forbidden\",\"reason\":{\"why\":[1]}}");
	door_expect_body(d, "PUT", "/words/d", "{\"a\":4}", 500,
			 "{\"error\":\"unknown_error\",\"reason\":\"word\"}");
	door_expect(d, "PUT", "/words/d", "{\"a\":5}", 500, "\"error\":\"ReferenceError\"");
	door_expect(d, "GET", "/words/d", NULL, 404, "missing");
	door_expect(d, "PUT", "/words/d", "{\"a\":6}", 201, "ok");
	/* A conflict is told before a validator is asked. */
	door_expect(d, "PUT", "/words/d", "{\"a\":1}", 409, "conflict");
	door_expect(d, "POST", "/words/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"x\"},{\"_id\":\"y\",\"a\":1},{\"_id\":\"z\",\"a\":2}]}",
		    201, "{\"id\":\"y\",\"error\":\"forbidden\",\"reason\":\"not y\"}");
	door_has(d, "{\"ok\":true,\"id\":\"x\"");
	door_has(d, "{\"id\":\"z\",\"error\":\"unauthorized\",\"reason\":\"log in\"}");
}

/* A document that a validator says no to, whatever is done with it. */
struct route {
	const char *name;
	const char *headers;
	const char *method;
	const char *target; /* %s: the document's revision */
	const char *body;   /* likewise */
	int status;
};

static const struct route routes[] = {
	{ "PUT", NULL, "PUT", "/all/l?rev=%s", "{\"b\":1}", 403 },
	{ "batch", NULL, "PUT", "/all/l?batch=ok&rev=%s", "{\"b\":1}", 403 },
	{ "POST", NULL, "POST", "/all", "{\"_id\":\"l\",\"_rev\":\"%s\"}", 403 },
	{ "DELETE", NULL, "DELETE", "/all/l?rev=%s", NULL, 403 },
	{ "tombstone", NULL, "PUT", "/all/l?rev=%s", "{\"_deleted\":true}", 403 },
	{ "merge patch", MERGE_PATCH, "PATCH", "/all/l", "{\"b\":1}", 403 },
	{ "JSON patch", JSON_PATCH, "PATCH", "/all/l",
	  "[{\"op\":\"add\",\"path\":\"/b\",\"value\":1}]", 403 },
	{ "attachment", TEXT, "PUT", "/all/l/new?rev=%s", "text", 403 },
	{ "attachment's end", NULL, "DELETE", "/all/l/f?rev=%s", NULL, 403 },
	{ "new_edits", NULL, "PUT", "/all/l?new_edits=false",
	  "{\"_rev\":\"9-abc\",\"_revisions\":{\"start\":9,\"ids\":[\"abc\"]},\"no\":true}", 403 },
	{ "related", RELATED, "PUT", "/all/l?rev=%s",
	  "--abc\r\nContent-Type: application/json\r\n\r\n{\"_attachments\":{\"g\":{\"follows\":"
	  "true,\"length\":5,\"content_type\":\"text/plain\"}}}\r\n--abc\r\n\r\nhello\r\n--abc--",
	  403 },
	{ "form", FORM, "POST", "/all/l",
	  "--abc\r\nContent-Disposition: form-data; name=\"_attachments\"; filename=\"g\"\r\n\r\n"
	  "bytes\r\n--abc\r\nContent-Disposition: form-data; "
	  "name=\"_rev\"\r\n\r\n%s\r\n--abc--\r\n",
	  403 },
	{ "COPY over it", "Destination: l?rev=%s\r\n", "COPY", "/all/free", NULL, 403 },
	{ "COPY of what is refused", "Destination: other\r\n", "COPY", "/all/no", NULL, 403 },
	{ "bulk", NULL, "POST", "/all/_bulk_docs", "{\"docs\":[{\"_id\":\"l\",\"_rev\":\"%s\"}]}",
	  201 },
	{ "replication", NULL, "POST", "/all/_bulk_docs",
	  "{\"new_edits\":false,\"docs\":[{\"_id\":\"l\",\"_rev\":\"9-abc\",\"no\":true}]}", 201 },
	{ "atomic bulk", NULL, "POST", "/all/_bulk_docs",
	  "{\"atomic\":true,\"docs\":[{\"_id\":\"free2\"},{\"_id\":\"l\",\"_rev\":\"%s\"}]}", 403 },
};

/* The text with the revision in it, if there is room for one. */
static const char *
with_rev(const char *text, const char *rev)
{
	const char *at = text ? strstr(text, "%s") : NULL;

	return at ? format("%.*s%s%s", (int)(at - text), text, rev, at + 2) : text;
}

static void
every_way_to_write_asks_the_validators(void **state)
{
	char rev[64];

	NEEDS_WORKER();
	door_create(d, "all");
	door_expect(d, "PUT", "/all/l", "{\"locked\":true,\"_attachments\":{\"f\":{" HELLO "}}}",
		    201, "ok");
	(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "rev"));
	door_expect(d, "PUT", "/all/free", "{}", 201, "ok");
	door_expect(d, "PUT", "/all/no", "{\"no\":true}", 201, "ok");
	put_validator(
		"all", "v",
		"function(n, o) { if (n.no || o && o.locked) throw({forbidden: 'locked'}); }");
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		const struct route *t = &routes[i];

		door_request(d, t->method, with_rev(t->target, rev), with_rev(t->headers, rev),
			     with_rev(t->body, rev));
		if (d->last.status != t->status ||
		    !strstr(d->last.body, "\"error\":\"forbidden\",\"reason\":\"locked\""))
			fail_msg("%s: %d %s", t->name, d->last.status, d->last.body);
		assert_string_equal(rev_of("/all/l"), rev);
	}
	door_expect(d, "GET", "/all/other", NULL, 404, "missing");
	door_expect(d, "GET", "/all/free2", NULL, 404, "missing");
	door_expect(d, "GET", "/all", NULL, 200, "\"doc_count\":4,");
	/* What is no document's: no validator is asked. */
	door_expect(d, "PUT", "/all/_local/l", "{\"no\":true}", 201, "ok");
	door_expect(d, "PUT", "/all/_design/other", "{\"no\":true}", 201, "ok");
}

static void
all_validators_must_agree(void **state)
{
	NEEDS_WORKER();
	create_with("two", "function(n) { if (!n.a) throw({forbidden: 'no a'}); }");
	put_validator("two", "w", "function(n) { if (!n.b) throw({forbidden: 'no b'}); }");
	door_expect(d, "PUT", "/two/d", "{\"b\":1}", 403, "no a");
	door_expect(d, "PUT", "/two/d", "{\"a\":1}", 403, "no b");
	door_expect(d, "PUT", "/two/d", "{\"a\":1,\"b\":1}", 201, "ok");
	door_expect(d, "POST", "/two/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"x\",\"a\":1},{\"_id\":\"y\",\"b\":1}]}", 201, "no a");
	door_has(d, "no b");
	door_expect(d, "DELETE", format("/two/_design/v?rev=%s", rev_of("/two/_design/v")), NULL,
		    200, "ok");
	door_expect(d, "PUT", "/two/e", "{\"b\":1}", 201, "ok");
	door_expect(d, "PUT", "/two/f", "{\"a\":1}", 403, "no b");
	door_expect(d, "POST", "/two/_purge",
		    format("{\"_design/w\":[\"%s\"]}", rev_of("/two/_design/w")), 201, "purged");
	door_expect(d, "PUT", "/two/f", "{}", 201, "ok");
}

/* What a validator was called with, which it throws. */
static void
validators_see_what_couchdb_shows(void **state)
{
	char rev[64];

	NEEDS_WORKER();
	create_with("seen", "function(n, o, u, s) {"
			    " if (n.show) throw({forbidden: [n, o, u, s]}); }");
	door_expect_body(
		d, "PUT", "/seen/d", "{\"show\":1}", 403,
		"{\"error\":\"forbidden\",\"reason\":[{\"_id\":\"d\",\"show\":1},null,"
		"{\"db\":\"seen\",\"name\":null,\"roles\":[\"_admin\"]},"
		"{\"members\":{\"roles\":[\"_admin\"]},\"admins\":{\"roles\":[\"_admin\"]}}"
		"]}");
	door_expect(d, "PUT", "/seen/_security", "{\"x\":[1]}", 200, "ok");
	door_expect(d, "PUT", "/seen/d", "{\"_attachments\":{\"f\":{" HELLO "}}}", 201, "ok");
	(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "rev"));
	door_expect(d, "PUT", "/seen/d",
		    format("{\"_rev\":\"%s\",\"show\":1,\"_attachments\":{\"f\":{\"stub\":true},"
			   "\"g\":{" HELLO "}}}",
			   rev),
		    403,
		    format("[{\"_id\":\"d\",\"_rev\":\"%s\",\"_revisions\":{\"start\":1,"
			   "\"ids\":[\"%s\"]},\"show\":1,\"_attachments\":{",
			   rev, rev + 2));
	door_has(d, format("},{\"_id\":\"d\",\"_rev\":\"%s\",\"_revisions\":{\"start\":1,\"ids\":"
			   "[\"%s\"]},\"_attachments\":{\"f\":{\"content_type\":\"text/plain\","
			   "\"revpos\":1,",
			   rev, rev + 2));
	door_has(d, "\"g\":{\"content_type\":\"text/plain\",\"revpos\":2,");
	door_has(d, ",{\"x\":[1]}]");
	/* A replicated revision is compared with its nearest ancestor that is there. */
	door_expect(d, "PUT", "/seen/d?new_edits=false",
		    format("{\"show\":1,\"_revisions\":{\"start\":3,\"ids\":[\"c\",\"b\",\"%s\"]}}",
			   rev + 2),
		    403, format("},{\"_id\":\"d\",\"_rev\":\"%s\"", rev));
	door_has(d, format("[{\"_id\":\"d\",\"_rev\":\"3-c\",\"_revisions\":{\"start\":3,\"ids\":"
			   "[\"c\",\"b\",\"%s\"]},\"show\":1}",
			   rev + 2));
	/* One that is known is shown to nobody, and one that begins again is compared with none. */
	door_expect(d, "PUT", "/seen/d?new_edits=false",
		    format("{\"show\":1,\"_rev\":\"%s\"}", rev), 201, "ok");
	door_expect(d, "DELETE", format("/seen/d?rev=%s", rev), NULL, 200, "ok");
	door_expect(d, "PUT", "/seen/d", "{\"show\":1}", 403, "[{\"_id\":\"d\",\"show\":1},null,");
}

/* ---- Functions that fail ---- */

static void
validators_that_fail_let_nothing_pass(void **state)
{
	NEEDS_WORKER();
	create_with("broken", "function(n { }");
	door_expect(d, "PUT", "/broken/d", "{}", 500, "\"error\":\"compilation_error\"");
	door_expect(d, "POST", "/broken/_bulk_docs", "{\"docs\":[{},{}]}", 201,
		    "\"error\":\"compilation_error\"");
	put_validator("broken", "v", "function(n) { for (;;) ; }");
	door_expect(d, "PUT", "/broken/d", "{}", 500,
		    "{\"error\":\"os_process_error\",\"reason\":\"OS process timed out.\"}");
	put_validator("broken", "v", "function(n) { }");
	door_expect(d, "PUT", "/broken/d", "{}", 201, "ok");
}

static void
one_document_that_loops_fails_alone(void **state)
{
	NEEDS_WORKER();
	create_with("alone",
		    "function(n) { if (n.loop) for (;;) ; if (n.no) throw({forbidden: 1}); }");
	door_expect(
		d, "POST", "/alone/_bulk_docs",
		"{\"docs\":[{\"_id\":\"a\"},{\"_id\":\"b\",\"no\":1},{\"_id\":\"c\",\"loop\":1},"
		"{\"_id\":\"d\"}]}",
		201, "{\"ok\":true,\"id\":\"a\"");
	door_has(d, "{\"id\":\"b\",\"error\":\"forbidden\"");
	door_has(d, "{\"id\":\"c\",\"error\":\"os_process_error\"");
	door_has(d, "{\"ok\":true,\"id\":\"d\"");
}

/* ---- Functions that do not compile ---- */

#define BAD_MAP_MEMBERS                                                                            \
	"\"views\":{\"good\":{\"map\":\"function(d) {}\"},\"v\":{\"map\":\"function(d { }\"}}"
#define BAD_MAP "{" BAD_MAP_MEMBERS "}"

static void
views_that_do_not_compile_are_refused(void **state)
{
	const char *rev;

	NEEDS_WORKER();
	door_create(d, "compiled");
	door_expect(d, "PUT", "/compiled/_design/a", BAD_MAP, 400,
		    "{\"error\":\"compilation_error\",\"reason\":\"Compilation of the map function "
		    "in the 'v' view failed: SyntaxError");
	door_expect(d, "PUT", "/compiled/_design/a",
		    "{\"views\":{\"v\":{\"map\":\"5\",\"reduce\":\"function() {}\"}}}", 400,
		    "Expression does not eval to a function. (5)");
	door_expect(d, "PUT", "/compiled/_design/a",
		    "{\"views\":{\"v\":{\"map\":\"function(d) {}\",\"reduce\":\"(\"},"
		    "\"w\":{\"map\":\"function(d) {}\",\"reduce\":\"_count\"}}}",
		    400, "Compilation of the reduce function in the 'v' view failed: ");
	door_expect(d, "GET", "/compiled/_design/a", NULL, 404, "missing");
	door_expect(d, "POST", "/compiled/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"x\"},{\"_id\":\"_design/b\"," BAD_MAP_MEMBERS "}]}", 201,
		    "{\"ok\":true,\"id\":\"x\"");
	door_has(d, "{\"id\":\"_design/"
		    "b\",\"error\":\"compilation_error\",\"reason\":\"Compilation of");
	door_expect(d, "POST", "/compiled/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"_design/"
		    "b\",\"_rev\":\"1-a\"," BAD_MAP_MEMBERS "}]}",
		    201, "\"error\":\"compilation_error\"");
	door_expect(d, "PUT", "/compiled/_design/c",
		    "{\"views\":{\"v\":{\"map\":\"d => emit(1)\"}}}", 201, "ok");
	rev = format("%s", rev_of("/compiled/_design/c"));
	door_request(d, "PATCH", format("/compiled/_design/c?rev=%s", rev), MERGE_PATCH,
		     "{\"views\":{\"v\":{\"map\":\"d => (\"}}}");
	assert_int_equal(d->last.status, 400);
	door_has(d, "compilation_error");
	door_expect(d, "GET", "/compiled/_design/c/_view/v", NULL, 200, "rows");
}

static void
what_is_not_run_is_not_compiled(void **state)
{
	NEEDS_WORKER();
	door_create(d, "stored");
	door_expect(d, "PUT", "/stored/_design/a", "{\"_deleted\":true," BAD_MAP_MEMBERS "}", 200,
		    "ok");
	door_expect(d, "PUT", "/stored/_design/b", "{\"language\":\"erlang\"," BAD_MAP_MEMBERS "}",
		    201, "ok");
	door_expect(d, "PUT", "/stored/_design/c",
		    "{\"validate_doc_update\":\"function(\",\"filters\":{\"f\":\"(\"},"
		    "\"updates\":{\"u\":\"(\"}}",
		    201, "ok");
}

/* ---- Filters ---- */

static void
put_filters(const char *db)
{
	door_create(d, db);
	door_expect(d, "PUT", format("/%s/_design/f", db),
		    "{\"filters\":{"
		    "\"big\":\"function(doc, req) { return doc.n >= (req.query.least || 2); }\","
		    "\"all\":\"function() { return true; }\","
		    "\"gone\":\"function(doc) { return doc._deleted; }\","
		    "\"req\":\"function(doc, req) { throw(['error', 'seen', ["
		    "req.method, req.path, req.query, req.userCtx, req.secObj.members, req.id,"
		    " req.info.db_name, req.body, req.headers['X-Mine'], req.cookie]]); }\","
		    "\"bad\":\"function(doc) { return nothing.there; }\","
		    "\"broken\":\"function(doc {\"},"
		    "\"views\":{\"odd\":{\"map\":\"function(doc) { if (doc.n % 2) emit(1); }\"}}}",
		    201, "ok");
	for (int n = 0; n < 5; n++)
		door_expect(d, "PUT", format("/%s/d%d", db, n), format("{\"n\":%d}", n), 201, "ok");
}

/* How many rows the last answer has. */
static unsigned
rows(void)
{
	unsigned n = 0;

	for (const char *at = d->last.body; (at = strstr(at, "\"changes\":")) != NULL; at++)
		n++;
	return n;
}

static void
feeds_are_filtered_by_functions(void **state)
{
	NEEDS_WORKER();
	put_filters("filtered");
	door_expect(d, "GET", "/filtered/_changes?filter=f/big", NULL, 200, "\"d2\"");
	assert_int_equal(rows(), 3);
	door_expect(d, "GET", "/filtered/_changes?filter=f/big&least=4", NULL, 200, "\"d4\"");
	assert_int_equal(rows(), 1);
	door_expect(d, "POST", "/filtered/_changes?filter=f/big&limit=2&include_docs=true", "{}",
		    200, "\"n\":3}");
	assert_int_equal(rows(), 2);
	door_expect(d, "GET", "/filtered/_changes?filter=f/big&descending=true&limit=1", NULL, 200,
		    "\"d4\"");
	assert_int_equal(rows(), 1);
	door_expect(d, "GET", "/filtered/_changes?filter=_view&view=f/odd", NULL, 200, "\"d3\"");
	assert_int_equal(rows(), 2);
	door_expect(d, "DELETE", format("/filtered/d1?rev=%s", rev_of("/filtered/d1")), NULL, 200,
		    "ok");
	door_expect(d, "GET", "/filtered/_changes?filter=f/gone", NULL, 200, "\"deleted\":true");
	assert_int_equal(rows(), 1);
	door_expect(d, "GET", "/filtered/_changes?filter=f/all", NULL, 200, "\"_design/f\"");
	assert_int_equal(rows(), 6);
}

static void
a_filter_says_yes_to_each_head(void **state)
{
	NEEDS_WORKER();
	put_filters("heads");
	door_expect(d, "POST", "/heads/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"h\",\"_rev\":\"1-a\",\"n\":1},"
		    "{\"_id\":\"h\",\"_rev\":\"1-b\",\"n\":9},{\"_id\":\"h\",\"_rev\":\"1-c\","
		    "\"n\":0}]}",
		    201, "[]");
	door_expect(d, "GET", "/heads/_changes?filter=f/big&least=5&style=all_docs", NULL, 200,
		    "\"changes\":[{\"rev\":\"1-b\"}]");
	door_expect(d, "GET", "/heads/_changes?filter=f/big&least=5", NULL, 200, "\"results\":[");
	assert_int_equal(rows(), 0);
}

static void
filters_see_the_request(void **state)
{
	NEEDS_WORKER();
	put_filters("asked");
	expect_as("X-Mine: yes\r\nCookie: a=b; c=d\r\n", "GET",
		  "/asked/_changes?filter=f/req&a=b&key=%5B1%5D", NULL, 500,
		  "{\"error\":\"seen\",\"reason\":[\"GET\",[\"asked\",\"_changes\"],"
		  "{\"filter\":\"f/req\",\"a\":\"b\",\"key\":[1]},"
		  "{\"db\":\"asked\",\"name\":null,\"roles\":[\"_admin\"]},"
		  "{\"roles\":[\"_admin\"]},null,\"asked\",\"undefined\",\"yes\","
		  "{\"a\":\"b\",\"c\":\"d\"}]}");
}

static void
filters_that_are_not_there_or_fail(void **state)
{
	NEEDS_WORKER();
	put_filters("failing");
	door_expect(d, "GET", "/failing/_changes?filter=f/none", NULL, 404,
		    "missing json key: none");
	door_expect(d, "GET", "/failing/_changes?filter=none/none", NULL, 404, "missing");
	door_expect(d, "GET", "/failing/_changes?filter=_view&view=f/none", NULL, 404,
		    "missing json key: none");
	door_expect(d, "GET", "/failing/_changes?filter=_view", NULL, 400,
		    "`view` filter parameter is not provided.");
	door_expect(d, "GET", "/failing/_changes?filter=f/g/h", NULL, 400, "designname/filtername");
	door_expect(d, "GET", "/failing/_changes?filter=_none", NULL, 400,
		    "unknown builtin filter name");
	door_expect(d, "GET", "/failing/_changes?filter=f/bad", NULL, 500, "ReferenceError");
	door_expect(d, "GET", "/failing/_changes?filter=f/broken", NULL, 500, "compilation_error");
}

static void
feeds_that_wait_are_filtered(void **state)
{
	struct client *c;
	struct response head;
	const char *line;

	NEEDS_WORKER();
	put_filters("live");
	c = client_open(d->port);
	client_send(c, "GET", "/live/_changes?feed=continuous&filter=f/big&heartbeat=60000", NULL,
		    NULL);
	head = client_receive_head(c);
	assert_int_equal(head.status, 200);
	response_release(&head);
	for (int n = 2; n < 5; n++) {
		line = client_line(c, 5000);
		assert_non_null(line);
		assert_non_null(strstr(line, format("\"d%d\"", n)));
	}
	door_expect(d, "PUT", "/live/x", "{\"n\":1}", 201, "ok");
	door_expect(d, "PUT", "/live/y", "{\"n\":7}", 201, "ok");
	line = client_line(c, 5000);
	assert_non_null(line);
	assert_non_null(strstr(line, "\"y\""));
	client_close(c);
}

/* More documents than one call has. */
static void
a_long_feed_is_filtered_in_batches(void **state)
{
	static char body[200000];
	size_t len;

	NEEDS_WORKER();
	put_filters("long");
	len = (size_t)snprintf(body, sizeof(body), "{\"docs\":[");
	for (int n = 10; n < 1210; n++)
		len += (size_t)snprintf(body + len, sizeof(body) - len,
					"%s{\"_id\":\"e%d\",\"n\":%d}", n > 10 ? "," : "", n, n);
	(void)snprintf(body + len, sizeof(body) - len, "]}");
	door_expect(d, "POST", "/long/_bulk_docs", body, 201, "ok");
	door_expect(d, "GET", "/long/_changes?filter=f/big&least=110", NULL, 200, "\"e110\"");
	assert_int_equal(rows(), 1100);
	door_has(d, "\"e1209\"");
	door_expect(d, "GET", "/long/_changes?filter=f/big&least=1205", NULL, 200, "\"e1205\"");
	assert_int_equal(rows(), 5);
}

/* ---- Updates ---- */

static void
put_updates(const char *db)
{
	door_create(d, db);
	door_expect(
		d, "PUT", format("/%s/_design/u", db),
		"{\"updates\":{"
		"\"hello\":\"function(doc, req) { return [null, 'hi ' + (doc ? doc.n : req.id)]; "
		"}\","
		"\"make\":\"function(doc, req) { doc = doc || {_id: req.id || req.uuid, n: 0}; "
		"doc.n++; doc.body = req.body; doc.form = req.form; return [doc, 'n=' + doc.n]; "
		"}\","
		"\"code\":\"function(doc, req) { return [null, {code: 418, headers: {'X-Tea': "
		"'pot', 'Content-Type': 'text/plain'}, body: 'short'}]; }\","
		"\"json\":\"function() { return [null, {json: {a: [1]}}]; }\","
		"\"method\":\"function(doc, req) { return [null, req.method]; }\","
		"\"base64\":\"function() { return [null, {base64: 'aGVsbG8='}]; }\","
		"\"lines\":\"function() { return [null, {headers: {'X-A': 'b\\\\r\\\\nX-C: d'}}]; "
		"}\","
		"\"member\":\"function() { return [null, {other: 1}]; }\","
		"\"stale\":\"function(doc) { return [{_id: doc._id, _rev: '1-abc'}, '']; }\","
		"\"nameless\":\"function() { return [{}, '']; }\","
		"\"nothing\":\"function() { }\","
		"\"design\":\"function() { return [{_id: '_design/made'}, 'made']; }\","
		"\"broken\":\"function( {\"}}",
		201, "ok");
}

/* An answer that a function has made: there is no newline behind it. */
static void
expect_made(const char *method, const char *target, const char *body, int status, const char *text)
{
	door_request(d, method, target, NULL, body);
	if (d->last.status != status || strcmp(d->last.body, text) != 0)
		fail_msg("%s %s: expected %d with %s, got %d: %s", method, target, status, text,
			 d->last.status, d->last.body);
}

static void
updates_write_what_functions_make(void **state)
{
	NEEDS_WORKER();
	put_updates("made");
	expect_made("POST", "/made/_design/u/_update/hello", "", 200, "hi null");
	assert_string_equal(response_header(&d->last, "Content-Type"), "text/html; charset=utf-8");
	expect_made("PUT", "/made/_design/u/_update/make/a%20b", "text", 201, "n=1");
	assert_string_equal(response_header(&d->last, "X-Couch-Id"), "a%20b");
	assert_int_equal(strncmp(response_header(&d->last, "X-Couch-Update-NewRev"), "1-", 2), 0);
	door_expect(d, "GET", "/made/a%20b", NULL, 200, "\"body\":\"text\"");
	expect_as("Content-Type: application/x-www-form-urlencoded\r\n", "POST",
		  "/made/_design/u/_update/make/a%20b", "x=1&y=a%20z", 201, "n=2");
	door_expect(d, "GET", "/made/a%20b", NULL, 200, "\"form\":{\"x\":\"1\",\"y\":\"a z\"}");
	expect_made("POST", "/made/_design/u/_update/make", "", 201, "n=1");
	expect_made("PUT", "/made/_design/u/_update/make/x/y", "", 201, "n=1");
	assert_string_equal(response_header(&d->last, "X-Couch-Id"), "x%2Fy");
	expect_made("PUT", "/made/_design/u/_update/hello/x/y", "", 200, "hi 1");
	expect_made("PUT", "/made/_design/u/_update/make/_local/l", "", 201, "n=1");
	door_expect(d, "GET", "/made/_local/l", NULL, 200, "\"n\":1");
	expect_made("POST", "/made/_design/u/_update/design", "", 201, "made");
	door_expect(d, "GET", "/made/_design/made", NULL, 200, "_rev");
}

static void
updates_answer_in_all_forms(void **state)
{
	NEEDS_WORKER();
	put_updates("forms");
	expect_made("POST", "/forms/_design/u/_update/code", "", 418, "short");
	assert_string_equal(response_header(&d->last, "X-Tea"), "pot");
	assert_string_equal(response_header(&d->last, "Content-Type"), "text/plain");
	expect_made("POST", "/forms/_design/u/_update/json", "", 200, "{\"a\":[1]}");
	assert_string_equal(response_header(&d->last, "Content-Type"), "application/json");
	expect_made("POST", "/forms/_design/u/_update/base64", "", 200, "hello");
	assert_string_equal(response_header(&d->last, "Content-Type"), "application/binary");
	door_expect(d, "POST", "/forms/_design/u/_update/lines", "", 500,
		    "external_response_error");
	assert_null(response_header(&d->last, "X-C"));
	door_expect(d, "POST", "/forms/_design/u/_update/member", "", 500,
		    "external_response_error");
}

/* GET and HEAD are safe: a proxy or a browser may send them by itself. */
static void
no_method_that_is_safe_runs_an_update(void **state)
{
	static const char *const targets[] = { "/safe/_design/u/_update/make/made",
					       "/safe/_design/u/_update/make" };

	NEEDS_WORKER();
	put_updates("safe");
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		assert_int_equal(door_request(d, "HEAD", targets[i], NULL, NULL)->status, 405);
		assert_int_equal(door_request(d, "GET", targets[i], NULL, NULL)->status, 405);
		/* What a POST stands for counts. */
		door_request(d, "POST", targets[i], "X-HTTP-Method-Override: GET\r\n", "");
		assert_int_equal(d->last.status, 405);
		door_request(d, "POST", targets[i], "X-HTTP-Method-Override: HEAD\r\n", "");
		assert_int_equal(d->last.status, 405);
	}
	door_expect(d, "GET", "/safe/_all_docs", NULL, 200, "\"total_rows\":1,");
	door_request(d, "POST", "/safe/_design/u/_update/method", "X-HTTP-Method-Override: PUT\r\n",
		     "");
	assert_string_equal(d->last.body, "PUT");
}

static void
updates_that_are_refused(void **state)
{
	NEEDS_WORKER();
	put_updates("refused");
	door_expect(d, "PUT", "/refused/d", "{}", 201, "ok");
	door_expect(d, "GET", "/refused/_design/u/_update/make", NULL, 405, "method_not_allowed");
	door_expect(d, "POST", "/refused/_design/u/_update/none", "", 404,
		    "missing json key: none");
	door_expect(d, "POST", "/refused/_design/none/_update/none", "", 404, "not_found");
	door_expect(d, "POST", "/refused/_design/u/_update", "", 404, "Invalid path.");
	door_expect(d, "PUT", "/refused/_design/u/_update/stale/d", "", 409, "conflict");
	door_expect(d, "POST", "/refused/_design/u/_update/nameless", "", 400, "illegal_docid");
	door_expect(d, "POST", "/refused/_design/u/_update/nothing", "", 500, "render_error");
	door_expect(d, "POST", "/refused/_design/u/_update/broken", "", 500, "compilation_error");
	put_validator("refused", "v", "function(n) { if (n.n) throw({forbidden: 'no n'}); }");
	door_expect(d, "PUT", "/refused/_design/u/_update/make/e", "", 403, "no n");
}

static const door_setting functions_settings[] = {
	{ "couchdb", "os_process_timeout", "3000" },
	{ NULL, NULL, NULL },
};

static int
setup_functions(void **state)
{
	(void)state;
	d = door_start_with(false, functions_settings, NULL);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(validators_refuse_in_couchdbs_words),
		cmocka_unit_test(every_way_to_write_asks_the_validators),
		cmocka_unit_test(all_validators_must_agree),
		cmocka_unit_test(validators_see_what_couchdb_shows),
		cmocka_unit_test(validators_that_fail_let_nothing_pass),
		cmocka_unit_test(one_document_that_loops_fails_alone),
		cmocka_unit_test(views_that_do_not_compile_are_refused),
		cmocka_unit_test(what_is_not_run_is_not_compiled),
		cmocka_unit_test(feeds_are_filtered_by_functions),
		cmocka_unit_test(a_filter_says_yes_to_each_head),
		cmocka_unit_test(filters_see_the_request),
		cmocka_unit_test(filters_that_are_not_there_or_fail),
		cmocka_unit_test(feeds_that_wait_are_filtered),
		cmocka_unit_test(a_long_feed_is_filtered_in_batches),
		cmocka_unit_test(updates_write_what_functions_make),
		cmocka_unit_test(updates_answer_in_all_forms),
		cmocka_unit_test(no_method_that_is_safe_runs_an_update),
		cmocka_unit_test(updates_that_are_refused),
	};

	return cmocka_run_group_tests(tests, setup_functions, teardown);
}
