/* _bulk_docs, _bulk_get, _revs_diff, _local: what replication is made of. */
#include "common.h"
#include "model/revisioned/revisioned.h"

static void
bulk_docs_answers_in_order(void **state)
{
	(void)state;
	door_create(d, "bulk");
	door_expect_body(d, "POST", "/bulk/_bulk_docs", "{\"docs\":[]}", 201, "[]");
	door_expect(d, "POST", "/bulk/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"b\",\"n\":1},{\"_id\":\"a\",\"n\":2},{\"n\":3}]}", 201,
		    "[{\"ok\":true,\"id\":\"b\",\"rev\":\"1-");
	door_has(d, "},{\"ok\":true,\"id\":\"a\",\"rev\":\"1-");
	door_expect_body(d, "POST", "/bulk/_bulk_docs",
			 "{\"docs\":[{\"_id\":\"a\"},{\"_id\":\"c\",\"_rev\":\"1-x\"}]}", 201,
			 "[{\"id\":\"a\",\"error\":\"conflict\",\"reason\":\"Document update "
			 "conflict.\"},{\"id\":\"c\",\"error\":\"conflict\",\"reason\":\"Document "
			 "update conflict.\"}]");
	door_expect(d, "GET", "/bulk", NULL, 200, "\"doc_count\":3");
}

static void
bulk_docs_checks_the_request_first(void **state)
{
	(void)state;
	door_create(d, "check");
	door_expect(d, "POST", "/check/_bulk_docs", "{}", 400,
		    "POST body must include `docs` parameter.");
	door_expect(d, "POST", "/check/_bulk_docs", "{\"docs\":1}", 400,
		    "`docs` parameter must be an array.");
	door_expect(d, "POST", "/check/_bulk_docs", "{\"docs\":[1]}", 400,
		    "Document must be a JSON object");
	door_expect(d, "POST", "/check/_bulk_docs", "{\"docs\":[],\"new_edits\":1}", 400,
		    "`new_edits` parameter must be a boolean.");
	door_expect(d, "POST", "/check/_bulk_docs", "[]", 400,
		    "Request body must be a JSON object");
	door_expect(d, "POST", "/check/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"a\"},{\"_id\":\"b\",\"_x\":1}]}", 400, "doc_validation");
	door_expect(d, "GET", "/check/a", NULL, 404, "missing");
	door_expect(d, "POST", "/check/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"a\"}]}", 400,
		    "When `new_edits: false`");
	door_request(d, "POST", "/check/_bulk_docs", "Content-Type: text/plain\r\n", "{}");
	assert_int_equal(d->last.status, 415);
	door_expect(d, "POST", "/nowhere/_bulk_docs", "{\"docs\":[]}", 404,
		    "Database does not exist.");
}

/* What would make a malformed ETag is no revision, wherever a client names it. */
static void
a_revision_that_no_header_can_hold_is_refused(void **state)
{
	static const char *const hashes[] = { "\\u0000x", "a\\\"b",           "a b",
					      "\\u0001",  "a\\r\\nX-Evil: 1", "\\u007f" };
	static const char *const escaped[] = { "%00x", "a%22b",           "a%20b",
					       "%01",  "a%0d%0aX-Evil:1", "%7f" };

	(void)state;
	door_create(d, "hashes");
	for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++) {
		door_expect(
			d, "POST", "/hashes/_bulk_docs",
			format("{\"new_edits\":false,\"docs\":[{\"_id\":\"a\",\"_rev\":\"2-%s\"},"
			       "{\"_id\":\"b%zu\",\"_rev\":\"1-b\"}]}",
			       hashes[i], i),
			201, "\"error\":\"bad_request\"");
		door_has(d, "\"id\":\"a\"");
		door_expect(d, "POST", "/hashes/_bulk_docs",
			    format("{\"new_edits\":false,\"docs\":[{\"_id\":\"a\",\"_revisions\":"
				   "{\"start\":2,\"ids\":[\"%s\",\"x\"]}}]}",
				   hashes[i]),
			    201, "\"error\":\"doc_validation\"");
		door_expect(d, "PUT", "/hashes/a?new_edits=false",
			    format("{\"_rev\":\"2-%s\"}", hashes[i]), 400, "Invalid rev format");
		door_expect(d, "GET", format("/hashes/a?rev=2-%s", escaped[i]), NULL, 400,
			    "Invalid rev format");
	}
	door_expect(d, "GET", "/hashes/a", NULL, 404, "missing");
	door_expect(d, "GET", "/hashes", NULL, 200, "\"doc_count\":6,");
}

struct stored_revision {
	struct str hash;
};

static enum status
store_revision(struct kv_tx *tx, void *arg)
{
	const struct stored_revision *stored = arg;
	struct str history[] = { stored->hash };
	const struct rev_edit edit = {
		.kind = REV_EDIT_REPLICATED,
		.id = STR("old"),
		.start = 2,
		.parent = { 2, stored->hash },
		.history = history,
		.history_count = 1,
	};
	struct arena *arena = arena_new(1 << 20);
	struct rev_result result;
	struct catalog_db *db = NULL;
	enum status status = rev_db_open(tx, NULL, STR("older"), &db, NULL);

	if (status == STATUS_OK)
		status = rev_write(tx, db, &edit, 1, 0, arena, &result, NULL);
	catalog_db_unref(db);
	arena_free(arena);
	return status;
}

/* A store may have such a revision from before it was refused. It is shown, without the header. */
static void
a_stored_revision_that_no_header_can_hold_is_shown_without_one(void **state)
{
	struct stored_revision stored = { str_of("\0x\"\n", 4) };

	(void)state;
	door_create(d, "older");
	assert_int_equal(kv_run(d->store, store_revision, &stored, NULL, NULL), STATUS_OK);
	door_expect(d, "GET", "/older/old", NULL, 200, "\"_rev\":\"2-\\u0000x\\\"\\n\"");
	assert_null(response_header(&d->last, "ETag"));
	door_expect(d, "GET", "/older/old?paths=[\"\"]", NULL, 200, "{\"\":{}}");
	assert_null(response_header(&d->last, "ETag"));
	door_expect(d, "GET", "/older/_all_docs?include_docs=true", NULL, 200, "\"old\"");
}

static void
a_later_edit_of_a_document_sees_the_earlier_one(void **state)
{
	(void)state;
	door_create(d, "twice");
	door_expect(d, "POST", "/twice/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"a\"},{\"_id\":\"b\"},{\"_id\":\"a\",\"n\":1},"
		    "{\"_id\":\"a\",\"_rev\":\"1-967a00dff5e02add41819138abb3284d\",\"n\":2}]}",
		    201, "{\"id\":\"a\",\"error\":\"conflict\"");
	door_has(d, "{\"ok\":true,\"id\":\"a\",\"rev\":\"1-967a00dff5e02add41819138abb3284d\"},");
	door_has(d, "{\"ok\":true,\"id\":\"a\",\"rev\":\"2-");
	door_expect(d, "GET", "/twice/a", NULL, 200, "\"n\":2");
}

static void
replicated_bulk_docs_answers_errors_alone(void **state)
{
	(void)state;
	door_create(d, "errors");
	door_expect_body(
		d, "POST", "/errors/_bulk_docs",
		"{\"docs\":[{\"_id\":\"a\",\"_revisions\":{\"start\":2,\"ids\":[\"b\",\"a\"]}},"
		"{\"_id\":\"t\",\"_rev\":\"1-t\",\"_deleted\":true}],\"new_edits\":false}",
		201, "[]");
	door_expect(d, "GET", "/errors/a", NULL, 200, "\"_rev\":\"2-b\"");
	door_expect(d, "GET", "/errors/t", NULL, 404, "deleted");
}

/* As in CouchDB, where a document that lacks its attachment would be lost among the errors. */
static void
what_local_documents_have_no_use_for_is_left_out(void **state)
{
	(void)state;
	door_create(d, "leftout");
	door_expect(d, "PUT", "/leftout/_local/a",
		    "{\"n\":1,\"_attachments\":{\"f\":{\"data\":\"\"}}}", 201, "\"rev\":\"0-1\"");
	door_expect_body(d, "GET", "/leftout/_local/a?attachments=true", NULL, 200,
			 "{\"_id\":\"_local/a\",\"_rev\":\"0-1\",\"n\":1}");
	door_expect(d, "PUT", "/leftout/_local/a",
		    "{\"_revisions\":{\"start\":0,\"ids\":[\"1\",\"0\"]}}", 201, "\"rev\":\"0-2\"");
	door_expect(d, "POST", "/leftout/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"_local/b\",\"_attachments\":{\"f\":{\"stub\":true}}}]}",
		    201, "\"rev\":\"0-1\"");
	door_expect_body(d, "POST", "/leftout", "{\"_id\":\"_local/c\",\"n\":3}", 201,
			 "{\"ok\":true,\"id\":\"_local/c\",\"rev\":\"0-1\"}");
	door_expect(d, "GET", "/leftout/_local/c", NULL, 200, "\"n\":3");
}

static void
a_missing_stub_refuses_the_request(void **state)
{
	(void)state;
	door_create(d, "stub");
	door_expect_body(d, "POST", "/stub/_bulk_docs",
			 "{\"new_edits\":false,\"docs\":[{\"_id\":\"y\",\"_rev\":\"1-y\"},"
			 "{\"_id\":\"z\",\"_rev\":\"1-z\","
			 "\"_attachments\":{\"f\":{\"stub\":true,\"revpos\":1}}}]}",
			 412,
			 "{\"error\":\"missing_stub\",\"reason\":"
			 "\"Invalid attachment stub in z for f\"}");
	door_expect(d, "GET", "/stub/y", NULL, 404, "missing");
	door_expect(d, "GET", "/stub/z", NULL, 404, "missing");
}

/* Documents "000000" and so on, each in the order of its id. */
static void
places_are_told(const char *db, int docs)
{
	int left = docs - 1900;

	for (int at = 0; at < docs; at += 1777) {
		door_expect(d, "GET", format("/%s/_all_docs?limit=1&startkey=%%22%06d%%22", db, at),
			    NULL, 200, format("\"offset\":%d,", at));
		door_expect(d, "GET",
			    format("/%s/_all_docs?descending=true&limit=1&skip=1&startkey="
				   "%%22%06d%%22",
				   db, at),
			    NULL, 200, format("\"offset\":%d,", docs - at));
	}
	door_expect(d, "GET", format("/%s/_changes?limit=1900", db), NULL, 200,
		    format("\"pending\":%d}", left));
	while (left) {
		int next = left > 1900 ? left - 1900 : 0;

		door_expect(
			d, "GET",
			format("/%s/_changes?limit=1900&since=%s", db, door_member(d, "last_seq")),
			NULL, 200, format("\"pending\":%d}", next));
		left = next;
	}
}

static void
a_large_request_is_split_over_transactions(void **state)
{
	enum {
		DOCS = 12000,
		TEXT = 900
	};
	char *body = malloc((size_t)DOCS * (TEXT + 64));
	size_t at = 0;
	size_t rows = 0;

	(void)state;
	assert_non_null(body);
	door_create(d, "split");
	at += (size_t)sprintf(body, "{\"docs\":[");
	for (int i = 0; i < DOCS; i++)
		at += (size_t)sprintf(body + at, "%s{\"_id\":\"%06d\",\"t\":\"%0*d\"}",
				      i ? "," : "", i, TEXT, i);
	(void)strcpy(body + at, "]}");
	door_expect(d, "POST", "/split/_bulk_docs", body, 201, "\"id\":\"011999\"");
	free(body);
	door_has_not(d, "error");
	for (const char *p = d->last.body; (p = strstr(p, "{\"ok\":true")); p++)
		rows++;
	assert_int_equal(rows, DOCS);
	door_expect(d, "GET", "/split", NULL, 200, "\"doc_count\":12000");

	/* The answers that read them all go over several pages, and in chunks. */
	door_expect(d, "GET", "/split/_all_docs?include_docs=true", NULL, 200,
		    "{\"total_rows\":12000,\"offset\":0,\"rows\":[\r\n{\"id\":\"000000\"");
	assert_false(d->last.broken);
	rows = 0;
	for (const char *p = d->last.body; (p = strstr(p, "\"doc\":{\"_id\":")); p++)
		rows++;
	assert_int_equal(rows, DOCS);
	door_expect(d, "GET", "/split/_changes", NULL, 200, "\"pending\":0}");
	rows = 0;
	for (const char *p = d->last.body; (p = strstr(p, "{\"seq\":\"")); p++)
		rows++;
	assert_int_equal(rows, DOCS);
	door_expect(d, "GET", "/split/_all_docs?descending=true&skip=11999", NULL, 200,
		    "\"rows\":[\r\n{\"id\":\"000000\"");
	places_are_told("split", DOCS);
	for (bool more = true; more;)
		assert_int_equal(couch_tend(d->couch, &more, NULL), STATUS_OK);
	places_are_told("split", DOCS);
}

enum {
	CHUNKED_DOCS = 3000, /* over many transactions */
	STEP = 1871,         /* through their numbers: prime to it */
	TWIN_AFTER = 300,    /* another edit of the same document */
};

static void
changes_come_in_the_order_of_the_request(void **state)
{
	AUTO(buf_release) struct buf body = BUF_INIT(1 << 20);
	const char *at;

	(void)state;
	door_create(d, "ordered");
	buf_append_cstr(&body, "{\"docs\":[");
	for (int i = 0; i < CHUNKED_DOCS; i++)
		buf_printf(&body, "%s{\"_id\":\"%04d\"}", i ? "," : "", i * STEP % CHUNKED_DOCS);
	buf_append(&body, "]}", 3);
	door_expect(d, "POST", "/ordered/_bulk_docs", body.ptr, 201, "\"ok\":true");
	at = d->last.body;
	for (int i = 0; i < CHUNKED_DOCS; i++) {
		at = strstr(at, format("\"id\":\"%04d\"", i * STEP % CHUNKED_DOCS));
		assert_non_null(at);
	}
	/* A transaction that is tried again may come after its successors. */
	if (getenv("FROND_TEST_FAULTS"))
		return;
	door_expect(d, "GET", "/ordered/_changes", NULL, 200, "\"pending\":0}");
	at = d->last.body;
	for (int i = 0; i < CHUNKED_DOCS; i++) {
		at = strstr(at, format("\"id\":\"%04d\"", i * STEP % CHUNKED_DOCS));
		assert_non_null(at);
	}
}

/* However far apart they are, and whether or not the earlier one is still being committed. */
static void
later_edits_of_many_documents_see_the_earlier_ones(void **state)
{
	AUTO(buf_release) struct buf body = BUF_INIT(1 << 20);
	size_t conflicts = 0;
	size_t oks = 0;

	(void)state;
	door_create(d, "twins");
	buf_append_cstr(&body, "{\"docs\":[");
	for (int i = 0; i < CHUNKED_DOCS; i++)
		buf_printf(&body, "%s{\"_id\":\"%04d\",\"edit\":%d}", i ? "," : "",
			   i % (2 * TWIN_AFTER) < TWIN_AFTER ? i : i - TWIN_AFTER, i);
	buf_append(&body, "]}", 3);
	door_expect(d, "POST", "/twins/_bulk_docs", body.ptr, 201, "\"ok\":true");
	for (const char *p = d->last.body; (p = strstr(p, "\"ok\":true")); p++)
		oks++;
	for (const char *p = d->last.body; (p = strstr(p, "\"conflict\"")); p++)
		conflicts++;
	assert_int_equal(oks, CHUNKED_DOCS / 2);
	assert_int_equal(conflicts, CHUNKED_DOCS / 2);
	door_expect(d, "GET", "/twins", NULL, 200, format("\"doc_count\":%d", CHUNKED_DOCS / 2));
	door_expect(d, "GET", "/twins/0611", NULL, 200, "\"edit\":611}");
}

/* Without new_edits the same document comes with other revisions, and all of them are kept. */
static void
branches_of_one_request_meet_in_one_document(void **state)
{
	AUTO(buf_release) struct buf body = BUF_INIT(1 << 20);

	(void)state;
	door_create(d, "branches");
	buf_append_cstr(&body, "{\"new_edits\":false,\"docs\":[");
	for (int i = 0; i < 700; i++)
		buf_printf(&body, "%s{\"_id\":\"%d\",\"_rev\":\"1-%04d\"}", i ? "," : "", i % 350,
			   i);
	buf_append(&body, "]}", 3);
	door_expect_body(d, "POST", "/branches/_bulk_docs", body.ptr, 201, "[]");
	door_expect(d, "GET", "/branches", NULL, 200, "\"doc_count\":350");
	door_expect(d, "GET", "/branches/349?conflicts=true", NULL, 200,
		    "\"_rev\":\"1-0699\",\"_conflicts\":[\"1-0349\"]");
}

static void
bulk_get_answers_in_order_of_the_request(void **state)
{
	(void)state;
	door_create(d, "get");
	door_expect(d, "POST", "/get/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"a\",\"_revisions\":{\"start\":2,"
		    "\"ids\":[\"b\",\"a\"]},\"n\":1},{\"_id\":\"c\",\"_rev\":\"1-c\"},"
		    "{\"_id\":\"c\",\"_rev\":\"1-d\"},{\"_id\":\"t\",\"_rev\":\"1-t\","
		    "\"_deleted\":true}]}",
		    201, "[]");
	door_expect_body(
		d, "POST", "/get/_bulk_get",
		"{\"docs\":[{\"id\":\"c\"},{\"id\":\"a\",\"rev\":\"2-b\"},{\"id\":\"none\"},"
		"{\"id\":\"a\",\"rev\":\"9-x\"},{\"id\":\"t\",\"rev\":\"1-t\"},{\"id\":\"a\","
		"\"rev\":\"1-a\"}]}",
		200,
		"{\"results\":[{\"id\":\"c\",\"docs\":[{\"ok\":{\"_id\":\"c\",\"_rev\":\"1-d\"}},"
		"{\"ok\":{\"_id\":\"c\",\"_rev\":\"1-c\"}}]},"
		"{\"id\":\"a\",\"docs\":[{\"ok\":{\"_id\":\"a\",\"_rev\":\"2-b\",\"n\":1}}]},"
		"{\"id\":\"none\",\"docs\":[{\"error\":{\"id\":\"none\",\"rev\":\"undefined\","
		"\"error\":\"not_found\",\"reason\":\"missing\"}}]},"
		"{\"id\":\"a\",\"docs\":[{\"error\":{\"id\":\"a\",\"rev\":\"9-x\",\"error\":"
		"\"not_found\",\"reason\":\"missing\"}}]},"
		"{\"id\":\"t\",\"docs\":[{\"ok\":{\"_id\":\"t\",\"_rev\":\"1-t\",\"_deleted\":true}"
		"}]},"
		"{\"id\":\"a\",\"docs\":[{\"error\":{\"id\":\"a\",\"rev\":\"1-a\",\"error\":"
		"\"not_found\",\"reason\":\"missing\"}}]}]}");
	door_expect_body(
		d, "POST", "/get/_bulk_get?revs=true&latest=true",
		"{\"docs\":[{\"id\":\"a\",\"rev\":\"1-a\"}]}", 200,
		"{\"results\":[{\"id\":\"a\",\"docs\":[{\"ok\":{\"_id\":\"a\",\"_rev\":"
		"\"2-b\",\"_revisions\":{\"start\":2,\"ids\":[\"b\",\"a\"]},\"n\":1}}]}]}");
	door_expect_body(
		d, "POST", "/get/_bulk_get", "{\"docs\":[1,{\"rev\":\"1-a\"},{\"id\":1}]}", 200,
		"{\"results\":[{\"id\":null,\"docs\":[{\"error\":{\"id\":null,\"rev\":null,"
		"\"error\":\"bad_request\",\"reason\":\"document must be a JSON object\"}}]},"
		"{\"id\":null,\"docs\":[{\"error\":{\"id\":null,\"rev\":null,\"error\":"
		"\"bad_request\",\"reason\":\"document id missed\"}}]},"
		"{\"id\":1,\"docs\":[{\"error\":{\"id\":1,\"rev\":null,\"error\":"
		"\"illegal_docid\",\"reason\":\"Document id must be a string\"}}]}]}");
	door_expect_body(d, "POST", "/get/_bulk_get", "{\"docs\":[]}", 200, "{\"results\":[]}");
	door_expect(d, "POST", "/get/_bulk_get", "{}", 400, "Missing JSON list of 'docs'.");
	door_expect(d, "POST", "/get/_bulk_get?rev=1-a", "{\"docs\":[]}", 400,
		    "\\\"rev\\\" query parameter is not acceptable");
}

/* Items of one document are looked up together, and answered where they stand. */
static void
bulk_get_finds_many_revisions_of_a_document(void **state)
{
	enum {
		BRANCHES = 300,
	};
	AUTO(buf_release) struct buf body = BUF_INIT(1 << 20);
	AUTO(buf_release) struct buf want = BUF_INIT(1 << 20);

	(void)state;
	door_create(d, "heads");
	buf_append_cstr(&body, "{\"new_edits\":false,\"docs\":[{\"_id\":\"b\",\"_rev\":\"1-b\"}");
	for (int i = 0; i < BRANCHES; i++)
		buf_printf(&body,
			   ",{\"_id\":\"a\",\"_revisions\":{\"start\":3,\"ids\":[\"c%d\",\"b%d\","
			   "\"a\"]},\"n\":%d}",
			   i, i / 2, i);
	buf_append(&body, "]}", 3);
	door_expect_body(d, "POST", "/heads/_bulk_docs", body.ptr, 201, "[]");

	buf_clear(&body);
	buf_append_cstr(&body, "{\"docs\":[{\"id\":\"b\"}");
	buf_append_cstr(&want, "{\"results\":[{\"id\":\"b\",\"docs\":[{\"ok\":{\"_id\":\"b\","
			       "\"_rev\":\"1-b\"}}]}");
	for (int i = 0; i < BRANCHES; i++) {
		buf_printf(&body, ",{\"id\":\"a\",\"rev\":\"3-c%d\"}", i);
		buf_printf(&want,
			   ",{\"id\":\"a\",\"docs\":[{\"ok\":{\"_id\":\"a\",\"_rev\":\"3-c%d\","
			   "\"n\":%d}}]}",
			   i, i);
	}
	buf_append_cstr(&body, ",{\"id\":\"a\",\"rev\":\"2-b7\"}]}");
	buf_append_cstr(&want, ",{\"id\":\"a\",\"docs\":[{\"error\":{\"id\":\"a\",\"rev\":\"2-b7\","
			       "\"error\":\"not_found\",\"reason\":\"missing\"}}]}]}");
	buf_append_byte(&body, 0);
	buf_append_byte(&want, 0);
	door_expect_body(d, "POST", "/heads/_bulk_get", body.ptr, 200, want.ptr);
	door_expect_body(
		d, "POST", "/heads/_bulk_get?latest=true&revs=true",
		"{\"docs\":[{\"id\":\"a\",\"rev\":\"2-b2\"},{\"id\":\"a\",\"rev\":\"2-no\"},"
		"{\"id\":\"a\",\"rev\":\"3-c9\"},{\"id\":\"b\",\"rev\":\"1-b\"}]}",
		200,
		"{\"results\":[{\"id\":\"a\",\"docs\":["
		"{\"ok\":{\"_id\":\"a\",\"_rev\":\"3-c5\",\"_revisions\":{\"start\":3,\"ids\":"
		"[\"c5\",\"b2\",\"a\"]},\"n\":5}},"
		"{\"ok\":{\"_id\":\"a\",\"_rev\":\"3-c4\",\"_revisions\":{\"start\":3,\"ids\":"
		"[\"c4\",\"b2\",\"a\"]},\"n\":4}}]},"
		"{\"id\":\"a\",\"docs\":[{\"error\":{\"id\":\"a\",\"rev\":\"2-no\",\"error\":"
		"\"not_found\",\"reason\":\"missing\"}}]},"
		"{\"id\":\"a\",\"docs\":[{\"ok\":{\"_id\":\"a\",\"_rev\":\"3-c9\",\"_revisions\":"
		"{\"start\":3,\"ids\":[\"c9\",\"b4\",\"a\"]},\"n\":9}}]},"
		"{\"id\":\"b\",\"docs\":[{\"ok\":{\"_id\":\"b\",\"_rev\":\"1-b\",\"_revisions\":"
		"{\"start\":1,\"ids\":[\"b\"]}}}]}]}");
}

/* More documents than are read at once, and revisions of one than are sent at once. */
static void
revs_diff_answers_long_requests(void **state)
{
	AUTO(buf_release) struct buf body = BUF_INIT(4 << 20);
	AUTO(buf_release) struct buf want = BUF_INIT(4 << 20);

	(void)state;
	door_create(d, "longdiff");
	door_expect(d, "PUT", "/longdiff/7", "{}", 201, "ok");
	buf_append_byte(&body, '{');
	buf_append_byte(&want, '{');
	for (int i = 0; i < 2300; i++) {
		buf_printf(&body, "\"%d\":[\"2-x\"],", i);
		if (i == 7)
			buf_printf(&want,
				   "\"7\":{\"missing\":[\"2-x\"],\"possible_ancestors\":[\"%s\"]},",
				   door_member(d, "rev"));
		else
			buf_printf(&want, "\"%d\":{\"missing\":[\"2-x\"]},", i);
	}
	buf_append_cstr(&body, "\"long\":[");
	buf_append_cstr(&want, "\"long\":{\"missing\":[");
	for (int i = 0; i < 30000; i++) {
		buf_printf(&body, "%s\"1-%d\"", i ? "," : "", i);
		buf_printf(&want, "%s\"1-%d\"", i ? "," : "", i);
	}
	buf_append(&body, "]}", 3);
	buf_append(&want, "]}}", 4);
	door_expect_body(d, "POST", "/longdiff/_revs_diff", body.ptr, 200, want.ptr);
}

static void
revs_diff_tells_what_is_missing(void **state)
{
	(void)state;
	door_create(d, "diff");
	door_expect(d, "POST", "/diff/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"a\",\"_revisions\":{\"start\":3,"
		    "\"ids\":[\"c\",\"b\",\"a\"]}}]}",
		    201, "[]");
	door_expect_body(d, "POST", "/diff/_revs_diff",
			 "{\"a\":[\"3-c\",\"2-b\",\"4-d\"],\"n\":[\"1-x\"],\"b\":[]}", 200,
			 "{\"a\":{\"missing\":[\"4-d\"],\"possible_ancestors\":[\"3-c\"]},"
			 "\"n\":{\"missing\":[\"1-x\"]}}");
	door_expect_body(d, "POST", "/diff/_revs_diff", "{\"a\":[\"3-c\"]}", 200, "{}");
	door_expect_body(d, "POST", "/diff/_missing_revs", "{\"a\":[\"3-c\",\"4-d\"]}", 200,
			 "{\"missing_revs\":{\"a\":[\"4-d\"]}}");
	door_expect(d, "POST", "/diff/_revs_diff", "{\"a\":[1]}", 400, "Invalid rev format");
	door_expect(d, "POST", "/diff/_revs_diff", "{\"a\":1}", 400, "Invalid list of revisions");
}

static void
local_documents_count_their_revisions(void **state)
{
	(void)state;
	door_create(d, "local");
	door_expect(d, "GET", "/local/_local/x", NULL, 404, "\"reason\":\"missing\"");
	door_expect_body(d, "PUT", "/local/_local/x", "{\"history\":[{\"a\":1.50}],\"s\":\"\"}",
			 201, "{\"ok\":true,\"id\":\"_local/x\",\"rev\":\"0-1\"}");
	door_expect_body(d, "GET", "/local/_local/x", NULL, 200,
			 "{\"_id\":\"_local/x\",\"_rev\":\"0-1\",\"history\":[{\"a\":1.50}],\"s\":"
			 "\"\"}");
	door_expect(d, "PUT", "/local/_local/x", "{\"_rev\":\"0-1\",\"n\":2}", 201,
		    "\"rev\":\"0-2\"");
	door_expect(d, "PUT", "/local/_local/y", "{\"_rev\":\"0-7\"}", 201, "\"rev\":\"0-8\"");
	door_expect(d, "PUT", "/local/_local/y", "{}", 201, "\"rev\":\"0-1\"");
	door_expect(d, "DELETE", "/local/_local/y", NULL, 200, "\"rev\":\"0-0\"");
	door_expect(d, "GET", "/local/_local%2Fx", NULL, 200, "\"n\":2");
	door_expect(
		d, "GET", "/local/_local_docs", NULL, 200,
		"{\"total_rows\":null,\"offset\":null,\"rows\":[\r\n{\"id\":\"_local/x\",\"key\":"
		"\"_local/x\",\"value\":{\"rev\":\"0-2\"}}\r\n]}");
	door_expect(d, "GET", "/local/_local_docs?include_docs=true", NULL, 200,
		    "\"doc\":{\"_id\":\"_local/x\",\"_rev\":\"0-2\",\"n\":2}");
	door_expect(d, "GET", "/local/_all_docs", NULL, 200, "\"total_rows\":0");
	door_expect(d, "GET", "/local/_changes", NULL, 200, "{\"results\":[\n\n],");
	door_expect_body(d, "DELETE", "/local/_local/x?rev=0-2", NULL, 200,
			 "{\"ok\":true,\"id\":\"_local/x\",\"rev\":\"0-0\"}");
	door_expect(d, "DELETE", "/local/_local/x?rev=0-2", NULL, 404, "missing");
	door_expect(d, "PUT", "/local/_local/x", "{\"_deleted\":true}", 200, "\"rev\":\"0-0\"");
	door_expect(d, "GET", "/local/_local%2F", NULL, 400, "Invalid _local document id.");
	door_expect(d, "GET", "/local/_local", NULL, 400, "Invalid _local document id.");
	door_expect(d, "GET", "/local/_local/x/y", NULL, 400,
		    "_local documents do not accept attachments.");
	door_expect(d, "POST", "/local/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"_local/b\",\"n\":1},{\"_id\":\"d\"}]}", 201,
		    "[{\"ok\":true,\"id\":\"_local/b\",\"rev\":\"0-1\"},{\"ok\":true,\"id\":\"d\"");
	door_expect(d, "GET", "/local/_local/b", NULL, 200, "\"n\":1");
}

/* By hand what a replicator does: changes, diff, fetch, store, checkpoint. */
static void
a_database_replicates_into_another(void **state)
{
	char *body;
	const char *source_changes;

	(void)state;
	door_create(d, "source");
	door_create(d, "target");
	door_expect(d, "POST", "/source/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"a\",\"_revisions\":{\"start\":2,"
		    "\"ids\":[\"b\",\"a\"]},\"n\":1},{\"_id\":\"a\",\"_revisions\":{\"start\":2,"
		    "\"ids\":[\"x\",\"a\"]},\"n\":2},{\"_id\":\"t\",\"_revisions\":{\"start\":2,"
		    "\"ids\":[\"z\",\"y\"]},\"_deleted\":true}]}",
		    201, "[]");
	door_expect(d, "GET", "/target/_local/checkpoint", NULL, 404, "missing");
	door_expect(d, "GET", "/source/_changes?style=all_docs&since=0&feed=normal", NULL, 200,
		    "\"id\":\"a\",\"changes\":[{\"rev\":\"2-x\"},{\"rev\":\"2-b\"}]}");
	door_has(d, "\"id\":\"t\",\"changes\":[{\"rev\":\"2-z\"}],\"deleted\":true}");
	source_changes = door_member(d, "last_seq");
	door_expect_body(d, "POST", "/target/_revs_diff",
			 "{\"a\":[\"2-x\",\"2-b\"],\"t\":[\"2-z\"]}", 200,
			 "{\"a\":{\"missing\":[\"2-x\",\"2-b\"]},\"t\":{\"missing\":[\"2-z\"]}}");
	door_expect(d, "POST", "/source/_bulk_get?revs=true&latest=true",
		    "{\"docs\":[{\"id\":\"a\",\"rev\":\"2-x\"},{\"id\":\"a\",\"rev\":\"2-b\"},"
		    "{\"id\":\"t\",\"rev\":\"2-z\"}]}",
		    200, "\"results\"");

	body = malloc(d->last.body_len + 64);
	assert_non_null(body);
	(void)strcpy(body, "{\"new_edits\":false,\"docs\":[");
	for (const char *p = d->last.body; (p = strstr(p, "{\"ok\":")); p++) {
		const char *end = strstr(p, "}]}");

		if (body[strlen(body) - 1] != '[')
			(void)strcat(body, ",");
		assert_non_null(end);
		(void)strncat(body, p + 6, (size_t)(end - p) - 6);
	}
	(void)strcat(body, "]}");
	door_expect_body(d, "POST", "/target/_bulk_docs", body, 201, "[]");
	free(body);
	door_expect_body(d, "POST", "/target/_ensure_full_commit", "", 201,
			 "{\"ok\":true,\"instance_start_time\":\"0\"}");
	door_expect(d, "PUT", "/target/_local/checkpoint",
		    format("{\"last_seq\":\"%s\"}", source_changes), 201, "0-1");

	door_expect_body(d, "POST", "/target/_revs_diff",
			 "{\"a\":[\"2-x\",\"2-b\"],\"t\":[\"2-z\"]}", 200, "{}");
	door_expect(d, "GET", "/target/a?conflicts=true&revs=true", NULL, 200,
		    "\"_rev\":\"2-x\",\"_revisions\":{\"start\":2,\"ids\":[\"x\",\"a\"]},"
		    "\"_conflicts\":[\"2-b\"],\"n\":2}");
	door_expect(d, "GET", format("/source/_changes?since=%s", source_changes), NULL, 200,
		    "{\"results\":[\n\n],");
	/* A losing branch that is deleted leaves the document alive. */
	door_expect(d, "DELETE", "/source/a?rev=2-b", NULL, 200, "ok");
	door_expect(d, "GET", format("/source/_changes?since=%s", source_changes), NULL, 200,
		    "\"id\":\"a\",\"changes\":[{\"rev\":\"2-x\"}]}");
	door_expect(d, "GET", "/source/_all_docs", NULL, 200, "\"value\":{\"rev\":\"2-x\"}");
}

/* ---- All or nothing ---- */

static void
atomic_writes_all_of_them(void **state)
{
	(void)state;
	door_create(d, "atomic");
	door_expect(d, "POST", "/atomic/_bulk_docs",
		    "{\"atomic\":true,\"docs\":[{\"_id\":\"a\",\"n\":1},{\"_id\":\"b\"},{\"n\":3},"
		    "{\"_id\":\"_local/c\"}]}",
		    201, "[{\"ok\":true,\"id\":\"a\",\"rev\":\"1-");
	door_has(d, "{\"ok\":true,\"id\":\"b\",\"rev\":\"1-");
	door_has(d, "{\"ok\":true,\"id\":\"_local/c\",\"rev\":\"0-1\"}");
	door_expect(d, "GET", "/atomic", NULL, 200, "\"doc_count\":3");
	door_expect_body(d, "POST", "/atomic/_bulk_docs", "{\"docs\":[],\"atomic\":true}", 201,
			 "[]");
	door_expect_body(d, "POST", "/atomic/_bulk_docs",
			 "{\"atomic\":true,\"new_edits\":false,\"docs\":[{\"_id\":\"r\",\"_rev\":"
			 "\"1-x\"},{\"_id\":\"s\",\"_rev\":\"2-y\"}]}",
			 201, "[]");
	door_expect(d, "GET", "/atomic/s", NULL, 200, "\"_rev\":\"2-y\"");
}

static void
atomic_writes_nothing_if_one_is_a_conflict(void **state)
{
	(void)state;
	door_expect_body(d, "POST", "/atomic/_bulk_docs",
			 "{\"atomic\":true,\"docs\":[{\"_id\":\"x\"},{\"_id\":\"a\",\"n\":2},"
			 "{\"_id\":\"b\"}]}",
			 409,
			 "{\"id\":\"a\",\"error\":\"conflict\",\"reason\":\"Document update "
			 "conflict: nothing was written.\"}");
	door_expect(d, "GET", "/atomic/x", NULL, 404, "missing");
	door_expect(d, "GET", "/atomic/a", NULL, 200, "\"n\":1");
	door_expect(d, "POST", "/atomic/_bulk_docs",
		    "{\"atomic\":true,\"docs\":[{\"_id\":\"x\"},{\"_id\":\"y\",\"_rev\":\"0-1\"}]}",
		    409, "{\"id\":\"y\",\"error\":\"conflict\"");
	door_expect(d, "POST", "/atomic/_bulk_docs",
		    "{\"atomic\":true,\"docs\":[{\"_id\":\"x\"},{\"_id\":\"y\",\"_attachments\":"
		    "{\"f\":{\"stub\":true}}}]}",
		    412, "{\"id\":\"y\",\"error\":\"missing_stub\"");
	door_expect(d, "GET", "/atomic/x", NULL, 404, "missing");
	door_expect(d, "GET", "/atomic", NULL, 200, "\"doc_count\":5");
}

static void
atomic_refuses_what_is_no_one_transaction(void **state)
{
	struct buf large = BUF_INIT(16 << 20);

	(void)state;
	door_expect(d, "POST", "/atomic/_bulk_docs",
		    "{\"atomic\":true,\"docs\":[{\"_id\":\"x\"},{\"_id\":\"x\"}]}", 400,
		    "The same document twice");
	door_expect(d, "POST", "/atomic/_bulk_docs", "{\"atomic\":1,\"docs\":[]}", 400,
		    "`atomic` parameter must be a boolean.");
	door_expect(d, "POST", "/none/_bulk_docs", "{\"atomic\":true,\"docs\":[]}", 404,
		    "Database does not exist.");
	buf_append_cstr(&large, "{\"atomic\":true,\"docs\":[{\"_id\":\"x\"}");
	for (int i = 0; i < 12; i++) {
		buf_printf(&large, ",{\"_id\":\"large%d\",\"a\":\"", i);
		for (int j = 0; j < 900000; j++)
			buf_append_byte(&large, 'x');
		buf_append_cstr(&large, "\"}");
	}
	buf_append(&large, "]}", 3);
	door_expect(d, "POST", "/atomic/_bulk_docs", large.ptr, 413,
		    "An atomic request must fit a transaction");
	door_expect(d, "GET", "/atomic", NULL, 200, "\"doc_count\":5");
	buf_release(&large);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bulk_docs_answers_in_order),
		cmocka_unit_test(bulk_docs_checks_the_request_first),
		cmocka_unit_test(a_revision_that_no_header_can_hold_is_refused),
		cmocka_unit_test(a_stored_revision_that_no_header_can_hold_is_shown_without_one),
		cmocka_unit_test(a_later_edit_of_a_document_sees_the_earlier_one),
		cmocka_unit_test(replicated_bulk_docs_answers_errors_alone),
		cmocka_unit_test(what_local_documents_have_no_use_for_is_left_out),
		cmocka_unit_test(a_missing_stub_refuses_the_request),
		cmocka_unit_test(a_large_request_is_split_over_transactions),
		cmocka_unit_test(changes_come_in_the_order_of_the_request),
		cmocka_unit_test(later_edits_of_many_documents_see_the_earlier_ones),
		cmocka_unit_test(branches_of_one_request_meet_in_one_document),
		cmocka_unit_test(bulk_get_answers_in_order_of_the_request),
		cmocka_unit_test(bulk_get_finds_many_revisions_of_a_document),
		cmocka_unit_test(revs_diff_answers_long_requests),
		cmocka_unit_test(revs_diff_tells_what_is_missing),
		cmocka_unit_test(local_documents_count_their_revisions),
		cmocka_unit_test(a_database_replicates_into_another),
		cmocka_unit_test(atomic_writes_all_of_them),
		cmocka_unit_test(atomic_writes_nothing_if_one_is_a_conflict),
		cmocka_unit_test(atomic_refuses_what_is_no_one_transaction),
	};

	return cmocka_run_group_tests_name("couch bulk", tests, setup, teardown);
}
