/* Attachments over the wire, as CouchDB's clients know them. */
#include "base/buf.h"
#include "common.h"

#define HELLO     "\"data\":\"aGVsbG8=\"" /* "hello" */
#define HELLO_MD5 "XUFAKrxLKna5cZ2REBfFkg=="

/* A document with one attachment of a type that is not compressed; its revision. */
static const char *
make(const char *path)
{
	door_expect(d, "PUT", path,
		    "{\"n\":1,\"_attachments\":{\"f\":{\"content_type\":\"image/png\"," HELLO "}}}",
		    201, "\"ok\":true");
	return door_member(d, "rev");
}

static const struct response *
get(const char *path, const char *headers)
{
	return door_request(d, "GET", path, headers, NULL);
}

static void
header_is(const char *name, const char *value)
{
	const char *got = response_header(&d->last, name);

	if (!value) {
		if (got)
			fail_msg("%s: %s", name, got);
		return;
	}
	if (!got || strcmp(got, value) != 0)
		fail_msg("%s: expected %s, got %s", name, value, got ? got : "none");
}

static void
body_is(int status, const char *body)
{
	if (d->last.status != status || strcmp(d->last.body, body) != 0)
		fail_msg("expected %d %s, got %d %s", status, body, d->last.status, d->last.body);
}

static void
body_has(int status, const char *text)
{
	assert_int_equal(d->last.status, status);
	door_has(d, text);
}

/* ---- In documents ---- */

static void
inline_data_comes_back_as_a_stub(void **state)
{
	(void)state;
	door_create(d, "inline");
	make("/inline/d");
	door_expect(d, "GET", "/inline/d", NULL, 200,
		    "\"n\":1,\"_attachments\":{\"f\":{\"content_type\":\"image/png\",\"revpos\":1,"
		    "\"digest\":\"md5-" HELLO_MD5 "\",\"length\":5,\"stub\":true}}}");
	door_expect(d, "GET", "/inline/d?attachments=true", NULL, 200,
		    "\"digest\":\"md5-" HELLO_MD5 "\",\"data\":\"aGVsbG8=\"}}}");
	assert_string_equal(response_header(&d->last, "Content-Type"), "application/json");
	/* Escapes and white space in the text do not matter. */
	door_expect(d, "PUT", "/inline/e",
		    "{\"_attachments\":{\"f\":{\"data\":\"aGVs\\nbG\\u0038=\"}}}", 201, "ok");
	door_expect(d, "GET", "/inline/e?attachments=true", NULL, 200,
		    "\"content_type\":\"application/octet-stream\"");
	door_has(d, "\"data\":\"aGVsbG8=\"");
	door_expect(d, "PUT", "/inline/f", "{\"_attachments\":{}}", 201, "ok");
	door_expect(d, "GET", "/inline/f", NULL, 200, "{");
	door_has_not(d, "_attachments");
}

static void
bad_attachments_are_told(void **state)
{
	(void)state;
	door_create(d, "bad");
	door_expect(d, "PUT", "/bad/d", "{\"_attachments\":{\"f\":{\"data\":\"!\"}}}", 400,
		    "{\"error\":\"bad_request\",\"reason\":\"Invalid attachment data for f\"}");
	door_expect(d, "PUT", "/bad/d", "{\"_attachments\":{\"f\":{}}}", 400,
		    "Invalid attachment data for f");
	door_expect(d, "PUT", "/bad/d", "{\"_attachments\":{\"f\":7}}", 400, "bad_request");
	door_expect(d, "PUT", "/bad/d", "{\"_attachments\":{\"_f\":{" HELLO "}}}", 400,
		    "Attachment name '_f' starts with prohibited character '_'");
	door_expect(d, "PUT", "/bad/d", "{\"_attachments\":{\"f\":{" HELLO "},\"f\":{" HELLO "}}}",
		    400, "Duplicate attachments");
	door_expect(d, "PUT", "/bad/d",
		    "{\"_attachments\":{\"f\":{\"follows\":true,\"length\":1}}}", 400,
		    "bad_request");
	door_expect(d, "PUT", "/bad/d",
		    "{\"_attachments\":{\"f\":{" HELLO ",\"content_type\":\"a\\r\\nb: c\"}}}", 400,
		    "bad_request");
	door_expect(d, "GET", "/bad/d", NULL, 404, "missing");
}

static void
stubs_keep_what_is_there(void **state)
{
	const char *rev;

	(void)state;
	door_create(d, "stubs");
	rev = make("/stubs/d");
	door_expect(d, "PUT", "/stubs/d",
		    format("{\"_rev\":\"%s\",\"_attachments\":{\"g\":{" HELLO
			   "},\"f\":{\"stub\":true,\"revpos\":1}}}",
			   rev),
		    201, "ok");
	rev = door_member(d, "rev");
	door_expect(d, "GET", "/stubs/d", NULL, 200, "{\"g\":{");
	door_has(d, "\"f\":{\"content_type\":\"image/png\",\"revpos\":1");
	door_has(d, "\"revpos\":2");
	/* Neither a name that is not there nor one of another revision. */
	door_expect_body(
		d, "PUT", "/stubs/d",
		format("{\"_rev\":\"%s\",\"_attachments\":{\"h\":{\"stub\":true}}}", rev), 412,
		"{\"error\":\"missing_stub\",\"reason\":\"Invalid attachment stub in d for "
		"h\"}");
	door_expect(
		d, "PUT", "/stubs/d",
		format("{\"_rev\":\"%s\",\"_attachments\":{\"f\":{\"stub\":true,\"revpos\":2}}}",
		       rev),
		412, "missing_stub");
	door_expect(d, "PUT", "/stubs/new", "{\"_attachments\":{\"f\":{\"stub\":true}}}", 412,
		    "missing_stub");
	door_expect(d, "PUT", "/stubs/d",
		    "{\"_rev\":\"1-abc\",\"_attachments\":{\"f\":{\"stub\":true}}}", 409,
		    "conflict");
	/* Not named, it goes. */
	door_expect(d, "PUT", "/stubs/d", format("{\"_rev\":\"%s\"}", rev), 201, "ok");
	door_expect(d, "GET", "/stubs/d", NULL, 200, "{");
	door_has_not(d, "_attachments");
}

static void
bulk_docs_take_attachments_each_for_itself(void **state)
{
	(void)state;
	door_create(d, "bulkatt");
	door_expect(d, "POST", "/bulkatt/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"a\",\"_attachments\":{\"f\":{" HELLO "}}},"
		    "{\"_id\":\"a\",\"_attachments\":{\"f\":{" HELLO "}}},"
		    "{\"_id\":\"_local/c\",\"_attachments\":{\"f\":{" HELLO "}}},{\"_id\":\"e\"}]}",
		    201, "[{\"ok\":true,\"id\":\"a\"");
	door_has(d, "{\"id\":\"a\",\"error\":\"conflict\"");
	door_has(d, "{\"ok\":true,\"id\":\"_local/c\"");
	door_has(d, "{\"ok\":true,\"id\":\"e\"");
	/* With their revisions, as a replication brings them. */
	door_expect(
		d, "POST", "/bulkatt/_bulk_docs",
		"{\"new_edits\":false,\"docs\":[{\"_id\":\"r\",\"_rev\":\"3-c\",\"_revisions\":"
		"{\"start\":3,\"ids\":[\"c\",\"b\",\"a\"]},\"_attachments\":{\"f\":{\"revpos\":2,"
		"\"digest\":\"md5-xxxx\"," HELLO "}}}]}",
		201, "[]");
	door_expect(d, "GET", "/bulkatt/r", NULL, 200, "\"revpos\":2");
	door_expect(d, "POST", "/bulkatt/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"r\",\"_rev\":\"4-d\",\"_revisions\":"
		    "{\"start\":4,\"ids\":[\"d\",\"c\"]},\"_attachments\":{\"f\":{\"stub\":true,"
		    "\"revpos\":2}}}]}",
		    201, "[]");
	door_expect(d, "GET", "/bulkatt/r?attachments=true", NULL, 200, "aGVsbG8=");
	door_expect(d, "POST", "/bulkatt/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"x\",\"_attachments\":{\"f\":{\"data\":\"?\"}}}]}", 400,
		    "Invalid attachment data for f");
}

static void
copy_shares_attachments(void **state)
{
	const char *rev;

	(void)state;
	door_create(d, "copyatt");
	rev = make("/copyatt/d");
	door_request(d, "COPY", "/copyatt/d", "Destination: e\r\n", NULL);
	assert_int_equal(d->last.status, 201);
	door_request(d, "DELETE", format("/copyatt/d?rev=%s", rev), NULL, NULL);
	assert_int_equal(d->last.status, 200);
	get("/copyatt/e/f", NULL);
	body_is(200, "hello");
}

static void
patch_keeps_attachments(void **state)
{
	const char *rev;

	(void)state;
	door_create(d, "patchatt");
	rev = make("/patchatt/d");
	door_request(d, "PATCH", format("/patchatt/d?rev=%s", rev),
		     "Content-Type: application/merge-patch+json\r\n", "{\"n\":2}");
	assert_int_equal(d->last.status, 200);
	door_expect(d, "GET", "/patchatt/d", NULL, 200, "\"n\":2,\"_attachments\":{\"f\":{");
	door_expect(d, "GET", "/patchatt/d?path=", NULL, 200, "{\"n\":2}");
	door_has_not(d, "_attachments");
}

/* ---- By themselves ---- */

static void
attachment_is_put_got_and_deleted(void **state)
{
	const char *rev;

	(void)state;
	door_create(d, "alone");
	door_request(d, "PUT", "/alone/d/dir/na%20me.txt", "Content-Type: image/png\r\n", "hello");
	assert_int_equal(d->last.status, 201);
	header_is("Location", "http://localhost:5984/alone/d/dir%2Fna%20me.txt");
	rev = door_member(d, "rev");
	door_expect(d, "GET", "/alone/d", NULL, 200, "\"dir/na me.txt\":{");
	get("/alone/d/dir/na%20me.txt", NULL);
	body_is(200, "hello");
	header_is("Content-Type", "image/png");
	header_is("ETag", "\"" HELLO_MD5 "\"");
	header_is("Content-MD5", HELLO_MD5);
	header_is("Accept-Ranges", "bytes");
	header_is("Content-Length", "5");
	header_is("Content-Encoding", NULL);
	get("/alone/d/dir%2Fna%20me.txt", NULL);
	body_is(200, "hello");
	door_request(d, "HEAD", "/alone/d/dir/na%20me.txt", NULL, NULL);
	assert_int_equal(d->last.status, 200);
	header_is("Content-Length", "5");
	get("/alone/d/dir/na%20me.txt", "If-None-Match: W/\"" HELLO_MD5 "\"\r\n");
	assert_int_equal(d->last.status, 304);
	get(format("/alone/d/dir/na%%20me.txt?rev=%s", rev), NULL);
	body_is(200, "hello");

	door_expect(d, "GET", "/alone/d/other", NULL, 404,
		    "{\"error\":\"not_found\",\"reason\":\"Document is missing attachment\"}");
	door_expect(d, "GET", "/alone/none/f", NULL, 404, "missing");
	door_expect(d, "GET", "/alone/d/dir/na%20me.txt?rev=1-abc", NULL, 404, "missing");
	door_expect(d, "DELETE", "/alone/d/other", NULL, 404, "Document is missing attachment");
	door_expect(d, "DELETE", "/alone/d/dir/na%20me.txt", NULL, 409, "conflict");
	door_expect(d, "DELETE", "/alone/d/dir/na%20me.txt?rev=1-abc", NULL, 409, "missing_rev");
	door_request(d, "DELETE", format("/alone/d/dir/na%%20me.txt?rev=%s", rev), NULL, NULL);
	assert_int_equal(d->last.status, 200);
	door_expect(d, "GET", "/alone/d/dir/na%20me.txt", NULL, 404,
		    "Document is missing attachment");
	door_expect(d, "POST", "/alone/d/f", "x", 405, "Only DELETE,GET,HEAD,PUT allowed");
}

/* Somebody else was faster: that is a conflict, and not a revision that never was. */
static void
attachment_for_a_replaced_revision_is_a_conflict(void **state)
{
	const char *rev;

	(void)state;
	door_create(d, "replaced");
	rev = make("/replaced/d");
	door_expect(d, "PUT", format("/replaced/d?rev=%s", rev), "{\"n\":1}", 201, "\"rev\":\"2-");
	door_expect(d, "PUT", format("/replaced/d/g?rev=%s", rev), "x", 409,
		    "\"error\":\"conflict\"");
	door_expect(d, "DELETE", format("/replaced/d/f?rev=%s", rev), NULL, 409,
		    "\"error\":\"conflict\"");
	door_expect(d, "PUT", "/replaced/d/g?rev=1-abc", "x", 409, "missing_rev");
	door_expect(d, "PUT", "/replaced/none/g?rev=1-abc", "x", 409, "missing_rev");
}

static void
put_of_an_attachment_needs_the_revision(void **state)
{
	const char *rev;

	(void)state;
	door_create(d, "putrev");
	rev = make("/putrev/d");
	door_expect_body(d, "PUT", "/putrev/d/g?rev=1-abc", "x", 409,
			 "{\"error\":\"not_found\",\"reason\":\"missing_rev\"}");
	door_expect(d, "PUT", "/putrev/d/g", "x", 409, "conflict");
	door_request(d, "PUT", format("/putrev/d/g?rev=%s", rev), "If-Match: \"1-abc\"\r\n", "x");
	assert_int_equal(d->last.status, 400);
	door_has(d, "Document rev and etag have different values");
	door_request(d, "PUT", "/putrev/d/g", format("If-Match: \"%s\"\r\n", rev), "x");
	assert_int_equal(d->last.status, 201);
	/* The body and the other attachments stay. */
	door_expect(d, "GET", "/putrev/d", NULL, 200, "\"n\":1,\"_attachments\":{\"g\":{");
	door_has(d, "\"f\":{\"content_type\":\"image/png\",\"revpos\":1");
	rev = door_member(d, "_rev");
	/* The same name is replaced. */
	door_request(d, "PUT", format("/putrev/d/f?rev=%s", rev), "Content-Type: a/b\r\n", "new");
	assert_int_equal(d->last.status, 201);
	get("/putrev/d/f", NULL);
	body_is(200, "new");
	header_is("Content-Type", "a/b");
	door_expect(d, "PUT", "/putrev/_x/f", "x", 400, "Only reserved document ids");
	door_expect(d, "PUT", "/putrev/d/_f", "x", 400, "prohibited character");
	door_expect(d, "PUT", "/putrev/_local/d/f", "x", 400,
		    "_local documents do not accept attachments.");
	door_expect(d, "PUT", "/nowhere/d/f", "x", 404, "Database does not exist.");
	door_expect(d, "PUT", "/putrev/d/%ff", "x", 400, "Attachment name is not UTF-8 encoded");
}

static void
digest_of_an_upload_is_checked(void **state)
{
	(void)state;
	door_create(d, "digests");
	door_request(d, "PUT", "/digests/d/f", "Content-MD5: " HELLO_MD5 "\r\n", "hello");
	assert_int_equal(d->last.status, 201);
	door_request(d, "PUT", "/digests/e/f", "Content-MD5: " HELLO_MD5 "\r\n", "hallo");
	assert_int_equal(d->last.status, 400);
	door_has(d, "{\"error\":\"content_md5_mismatch\",\"reason\":\"Possible message "
		    "corruption.\"}");
	door_expect(d, "GET", "/digests/e", NULL, 404, "missing");
}

static void
text_is_compressed_as_couchdb_does(void **state)
{
	static const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	char digest[64];

	(void)state;
	door_create(d, "gzip");
	door_request(d, "PUT", "/gzip/d/f", "Content-Type: TEXT/html; charset=utf-8\r\n", text);
	assert_int_equal(d->last.status, 201);
	door_expect(d, "GET", "/gzip/d", NULL, 200, "\"length\":60,\"stub\":true}");
	door_has_not(d, "encoding");
	(void)snprintf(digest, sizeof(digest), "%s", door_member(d, "digest"));
	door_expect(d, "GET", "/gzip/d?att_encoding_info=true", NULL, 200,
		    "\"stub\":true,\"encoding\":\"gzip\",\"encoded_length\":24}");
	door_expect(
		d, "GET", "/gzip/d?attachments=true", NULL, 200,
		"\"data\":\"YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh"
		"YWFhYWFhYWFh\"");
	get("/gzip/d/f", NULL);
	body_is(200, text);
	header_is("Content-Length", "60");
	header_is("Content-Encoding", NULL);
	header_is("Content-MD5", NULL);
	header_is("Accept-Ranges", "none");
	header_is("Content-Type", "TEXT/html; charset=utf-8");
	/* Ranges of what is made while it is sent are not offered. */
	get("/gzip/d/f", "Range: bytes=1-2\r\n");
	body_is(200, text);
	get("/gzip/d/f", "Accept-Encoding: deflate, gzip;q=0.5\r\n");
	assert_int_equal(d->last.status, 200);
	header_is("Content-Encoding", "gzip");
	header_is("Content-Length", "24");
	header_is("Content-MD5", digest + 4);
	assert_int_equal((unsigned char)d->last.body[0], 0x1f);
	get("/gzip/d/f", "Accept-Encoding: gzip;q=0\r\n");
	body_is(200, text);
	get("/gzip/d/f", "Accept-Encoding: *\r\n");
	header_is("Content-Encoding", "gzip");
	get("/gzip/d/f", "Accept-Encoding: identity;q=0\r\n");
	assert_int_equal(d->last.status, 406);
	/* Types that have been compressed already are left alone. */
	door_request(d, "PUT", "/gzip/e/f", "Content-Type: image/jpeg\r\n", text);
	get("/gzip/e/f", "Accept-Encoding: gzip\r\n");
	body_is(200, text);
	header_is("Content-Encoding", NULL);
	door_request(d, "PUT", "/gzip/g/f", "Content-Encoding: br\r\n", text);
	assert_int_equal(d->last.status, 415);
	door_has(d, "Only gzip and identity content-encodings are supported");
}

/* Stores what is no gzip as gzip, and reads it in each form. */
static void
broken_gzip_is_refused(const char *doc, const char *att, const char *body)
{
	char inline_path[64];
	char att_path[64];

	(void)snprintf(inline_path, sizeof(inline_path), "%s?attachments=true", doc);
	(void)snprintf(att_path, sizeof(att_path), "%s/%s", doc, att);
	door_request(d, "PUT", att_path, "Content-Encoding: gzip\r\nContent-Type: text/x\r\n",
		     body);
	assert_int_equal(d->last.status, 201);
	get(att_path, NULL);
	assert_int_equal(d->last.status, 406);
	header_is("Content-Type", "application/json");
	header_is("Content-Encoding", NULL);
	door_has(d, "{\"error\":\"not_acceptable\",\"reason\":\"The attachment ");
	door_has(d, att);
	door_has(d, "is stored as gzip and is not valid gzip.");
	get(att_path, "Accept-Encoding: gzip\r\n");
	body_is(200, body);
	header_is("Content-Encoding", "gzip");
	get(inline_path, "Accept: application/json\r\n");
	assert_int_equal(d->last.status, 406);
	door_has(d, att);
	door_has(d, "is stored as gzip and is not valid gzip.");
	get(inline_path, "Accept: multipart/related\r\n");
	assert_int_equal(d->last.status, 200);
	door_has(d, body);
	door_expect(d, "GET", doc, NULL, 200, "\"stub\":true");
}

static void
gzip_that_is_none_is_told_before_the_answer(void **state)
{
	(void)state;
	door_create(d, "nogzip");
	broken_gzip_is_refused("/nogzip/a", "text.html", "<p>This is no gzip file.</p>");
	/* The beginning of what gzip makes of "aaa", without the end and the checksum. */
	broken_gzip_is_refused("/nogzip/b", "cut.gz", "\x1f\x8b\x08\x01zzzz\x02\x03KL");
	/* The whole of it, with another checksum and length. */
	broken_gzip_is_refused("/nogzip/c", "sum.gz",
			       "\x1f\x8b\x08\x01zzzz\x02\x03KLL\x04\xfc"
			       "abcdefgh");
}

/* Writes a gzip file of `blocks` stored blocks, of which the last is followed by none. */
static void
write_gzip_that_breaks(struct buf *body, int blocks)
{
	enum {
		BLOCK_BYTES = 0x7f7f, /* whose length and its complement have no NUL */
	};

	buf_clear(body);
	buf_append_cstr(body, "\x1f\x8b\x08\x01zzzz\x02\x03");
	for (int i = 0; i < blocks; i++) {
		/* A stored block that is not the last one. */
		buf_append_cstr(body, "\xf8\x7f\x7f\x80\x80");
		for (int k = 0; k < BLOCK_BYTES; k++)
			buf_append_byte(body, 'x');
	}
	buf_append_cstr(body, "\xff\xff"); /* there is no block of this kind */
	buf_append_byte(body, '\0');
	assert_int_equal(buf_status(body), STATUS_OK);
}

static void
expect_cut(const char *path)
{
	struct client *c = client_open(d->port);
	struct response r;

	client_send(c, "GET", path, "Accept: application/json\r\n", NULL);
	r = client_receive_or_end(c, false);
	assert_true(r.broken);
	response_release(&r);
	client_close(c);
}

static void
gzip_that_breaks_further_in_is_told_before_the_answer(void **state)
{
	AUTO(buf_release) struct buf body = BUF_INIT(1 << 20);

	(void)state;
	write_gzip_that_breaks(&body, 4);
	door_create(d, "farin");
	broken_gzip_is_refused("/farin/d", "f", body.ptr);
}

/* Other documents of the answer are shown as they are, and the answer is whole. */
static void
gzip_that_is_broken_is_a_stub_among_several_documents(void **state)
{
	static const char stub[] = "\"stub\":true";
	static const char whole[] = "\"data\":\"aGFsbG8=\"";
	AUTO(buf_release) struct buf body = BUF_INIT(1 << 20);

	(void)state;
	door_create(d, "several");
	write_gzip_that_breaks(&body, 4);
	door_request(d, "PUT", "/several/a/near", "Content-Encoding: gzip\r\n", "no gzip");
	assert_int_equal(d->last.status, 201);
	door_request(d, "PUT", "/several/b/far", "Content-Encoding: gzip\r\n", body.ptr);
	assert_int_equal(d->last.status, 201);
	door_expect(d, "PUT", "/several/c",
		    "{\"_attachments\":{\"t\":{\"content_type\":\"text/plain\",\"data\":"
		    "\"aGFsbG8=\"}}}",
		    201, "ok");
	for (int i = 0; i < 2; i++) {
		const char *att = i ? "far" : "near";

		get(format("/several/%s?open_revs=all&attachments=true", i ? "b" : "a"),
		    "Accept: application/json\r\n");
		body_has(200, att);
		door_has(d, stub);
		door_has_not(d, "\"data\":");
		expect_as("Accept: application/json\r\n", "POST",
			  "/several/_bulk_get?attachments=true",
			  format("{\"docs\":[{\"id\":\"%s\"},{\"id\":\"c\"}]}", i ? "b" : "a"), 200,
			  whole);
		door_has(d, att);
		door_has(d, stub);
	}
	door_expect(d, "GET", "/several/_all_docs?include_docs=true&attachments=true", NULL, 200,
		    whole);
	door_has(d, stub);
	door_has(d, "\"near\"");
	door_has(d, "\"far\"");
	door_expect(d, "GET", "/several/_changes?include_docs=true&attachments=true", NULL, 200,
		    whole);
	door_has(d, stub);
	/* As parts they are sent as they are stored. */
	get("/several/a?open_revs=all", "Accept: multipart/mixed\r\n");
	body_has(200, "no gzip");
	get("/several/b?open_revs=all", "Accept: multipart/mixed\r\n");
	body_has(200, "\xff\xff");
}

static void
gzip_that_breaks_behind_what_is_checked_cuts_the_answer(void **state)
{
	AUTO(buf_release) struct buf body = BUF_INIT(4 << 20);

	(void)state;
	write_gzip_that_breaks(&body, 40);
	door_create(d, "cutgzip");
	door_request(d, "PUT", "/cutgzip/d/f", "Content-Encoding: gzip\r\n", body.ptr);
	assert_int_equal(d->last.status, 201);
	expect_cut("/cutgzip/d/f");
	expect_cut("/cutgzip/d?attachments=true");
	expect_cut("/cutgzip/d?open_revs=all&attachments=true");
	expect_cut("/cutgzip/_all_docs?include_docs=true&attachments=true");
	expect_cut("/cutgzip/_changes?include_docs=true&attachments=true");
	get("/cutgzip/d/f", "Accept-Encoding: gzip\r\n");
	body_is(200, body.ptr);
}

/* CouchDB takes the data of _attachments for what it is, whatever else is said of it. */
static void
the_encoding_of_inline_data_is_ignored(void **state)
{
	(void)state;
	door_create(d, "inlined");
	door_expect(
		d, "PUT", "/inlined/d",
		"{\"_attachments\":{\"f\":{\"content_type\":\"image/png\",\"data\":\"aGFsbG8=\","
		"\"encoding\":\"gzip\",\"encoded_length\":3,\"length\":77}}}",
		201, "ok");
	get("/inlined/d/f", "Accept-Encoding: gzip\r\n");
	body_is(200, "hallo");
	header_is("Content-Encoding", NULL);
	door_expect(d, "GET", "/inlined/d?att_encoding_info=true", NULL, 200,
		    "\"length\":5,\"stub\":true}");
}

static void
ranges_are_answered_as_couchdb_does(void **state)
{
	static const struct {
		const char *range;
		int status;
		const char *body;
		const char *content_range;
	} cases[] = {
		{ "bytes=0-28", 206, "This is a base64 encoded text", "bytes 0-28/29" },
		{ "bytes=0-", 200, "This is a base64 encoded text", NULL },
		{ "bytes=0-,0-,0-", 200, "This is a base64 encoded text", NULL },
		{ "bytes:0-", 200, "This is a base64 encoded text", NULL },
		{ "bytes=x-3", 200, "This is a base64 encoded text", NULL },
		{ "bytes=2-", 206, "is is a base64 encoded text", "bytes 2-28/29" },
		{ "bytes=0-3", 206, "This", "bytes 0-3/29" },
		{ "bytes=10-15", 206, "base64", "bytes 10-15/29" },
		{ "bytes=-3", 206, "ext", "bytes 26-28/29" },
		{ "bytes=-300", 206, "This is a base64 encoded text", "bytes 0-28/29" },
		{ "bytes=20-300", 206, "oded text", "bytes 20-28/29" },
		{ "bytes=0-1,0-1,0-1,0-1,0-1,0-1,0-1,0-1,0-1,0-1", 200,
		  "This is a base64 encoded text", NULL },
	};
	const char *boundary;

	(void)state;
	door_create(d, "ranges");
	door_request(d, "PUT", "/ranges/d/f", "Content-Type: application/octet-stream\r\n",
		     "This is a base64 encoded text");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		get("/ranges/d/f", format("Range: %s\r\n", cases[i].range));
		body_is(cases[i].status, cases[i].body);
		header_is("Content-Range", cases[i].content_range);
	}
	get("/ranges/d/f", "Range: bytes=5-3\r\n");
	assert_int_equal(d->last.status, 416);
	header_is("Content-Range", "bytes */29");
	door_has(d, "\"error\":\"requested_range_not_satisfiable\"");
	get("/ranges/d/f", "Range: bytes=300-310\r\n");
	assert_int_equal(d->last.status, 416);
	/* A client that has another version of it wants all of this one. */
	get("/ranges/d/f", "Range: bytes=0-3\r\nIf-Range: \"other\"\r\n");
	body_is(200, "This is a base64 encoded text");

	get("/ranges/d/f", "Range: bytes=0-3,10-15\r\n");
	assert_int_equal(d->last.status, 206);
	boundary = strstr(response_header(&d->last, "Content-Type"), "boundary=\"") + 10;
	boundary = format("%.32s", boundary);
	assert_string_equal(d->last.body,
			    format("--%s\r\nContent-Type: application/octet-stream\r\n"
				   "Content-Range: bytes 0-3/29\r\n\r\nThis\r\n--%s\r\n"
				   "Content-Type: application/octet-stream\r\n"
				   "Content-Range: bytes 10-15/29\r\n\r\nbase64\r\n--%s--",
				   boundary, boundary, boundary));
}

static void
empty_attachments_are_attachments(void **state)
{
	(void)state;
	door_create(d, "empty");
	door_request(d, "PUT", "/empty/d/f", "Content-Type: image/png\r\n", "");
	assert_int_equal(d->last.status, 201);
	get("/empty/d/f", NULL);
	body_is(200, "");
	header_is("Content-Length", "0");
	door_request(d, "PUT", "/empty/e/f", "Content-Type: text/plain\r\n", "");
	get("/empty/e/f", NULL);
	body_is(200, "");
	door_expect(d, "GET", "/empty/e?attachments=true", NULL, 200, "\"data\":\"\"");
}

/* ---- Multipart ---- */

#define RELATED "Content-Type: multipart/related; boundary=\"abc\"\r\n"

static void
parts_follow_a_document(void **state)
{
	(void)state;
	door_create(d, "parts");
	door_request(
		d, "PUT", "/parts/d", RELATED,
		"preamble\r\n--abc\r\nContent-Type: application/json\r\n\r\n"
		"{\"n\":1,\"_attachments\":{\"a\":{\"follows\":true,\"content_type\":\"a/b\","
		"\"length\":5},\"i\":{" HELLO "},"
		"\"b\":{\"follows\":true,\"length\":6,\"digest\":\"md5-sN8FaREMNA+FmWlZjO4GAg==\""
		"}}}\r\n"
		"--abc\r\nContent-Disposition: attachment; filename=\"other\"\r\n"
		"Content-Type: x/y\r\n\r\nfirst\r\n--abc\r\n\r\nse\r\nnd\r\n--abc--\r\nepilogue");
	if (d->last.status != 400) /* the digest is of something else */
		fail_msg("%d %s", d->last.status, d->last.body);
	door_has(d, "content_md5_mismatch");
	door_request(d, "PUT", "/parts/d", RELATED,
		     "--abc\r\nContent-Type: application/json\r\n\r\n"
		     "{\"n\":1,\"_attachments\":{\"a\":{\"follows\":true,\"content_type\":\"a/b\","
		     "\"length\":5},\"i\":{" HELLO "},\"b\":{\"follows\":true,\"length\":6}}}\r\n"
		     "--abc\r\nContent-Disposition: attachment; filename=\"other\"\r\n"
		     "Content-Type: x/y\r\n\r\nfirst\r\n--abc\r\n\r\nse\r\nnd\r\n--abc--");
	if (d->last.status != 201)
		fail_msg("%d %s", d->last.status, d->last.body);
	get("/parts/d/a", NULL);
	body_is(200, "first");
	header_is("Content-Type", "a/b");
	get("/parts/d/b", NULL);
	body_is(200, "se\r\nnd");
	get("/parts/d/i", NULL);
	body_is(200, "hello");
}

static void
broken_multipart_bodies_are_told(void **state)
{
	static const struct {
		const char *body;
		int status;
		const char *text;
	} cases[] = {
		{ "no parts at all", 400, "bad_request" },
		{ "--abc--", 400, "bad_request" },
		{ "--abc\r\nContent-Type: text/plain\r\n\r\n{}\r\n--abc--", 415,
		  "Content-Type must be application/json" },
		{ "--abc\r\nContent-Type: application/json\r\n\r\n{\"_attachments\":{\"f\":"
		  "{\"follows\":true,\"length\":5}}}\r\n--abc--",
		  400, "attachment shorter than expected" },
		{ "--abc\r\nContent-Type: application/json\r\n\r\n{\"_attachments\":{\"f\":"
		  "{\"follows\":true,\"length\":5}}}\r\n--abc\r\n\r\nfour\r\n--abc--",
		  400, "attachment shorter than expected" },
		{ "--abc\r\nContent-Type: application/json\r\n\r\n{\"_attachments\":{\"f\":"
		  "{\"follows\":true,\"length\":5}}}\r\n--abc\r\n\r\nsixsix\r\n--abc--",
		  400, "attachment longer than expected" },
		{ "--abc\r\nContent-Type: application/json\r\n\r\n{\"_attachments\":{\"f\":"
		  "{\"follows\":true,\"length\":5}}}\r\n--abc\r\n\r\ncut",
		  400, "attachment shorter than expected" },
		{ "--abc\r\nContent-Type: application/json\r\n\r\n{\"_att", 400, "bad_request" },
		{ "--abcd\r\n\r\n", 400, "bad_request" },
	};

	(void)state;
	door_create(d, "brokenparts");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		door_request(d, "PUT", "/brokenparts/d", RELATED, cases[i].body);
		if (d->last.status != cases[i].status || !strstr(d->last.body, cases[i].text))
			fail_msg("%zu: %d %s", i, d->last.status, d->last.body);
	}
	door_request(d, "PUT", "/brokenparts/d", "Content-Type: multipart/related\r\n", "x");
	assert_int_equal(d->last.status, 400);
	door_expect(d, "GET", "/brokenparts/d", NULL, 404, "missing");
}

/* What follows "boundary=" in the header of the last answer. */
static const char *
boundary_of(const char *in)
{
	const char *at = strstr(in, "boundary=\"");

	assert_non_null(at);
	return format("%.32s", at + 10);
}

static void
documents_go_out_in_parts_where_they_are_asked_for(void **state)
{
	const char *boundary;

	(void)state;
	door_create(d, "outparts");
	make("/outparts/d");
	get("/outparts/d?attachments=true", "Accept: multipart/related, application/json\r\n");
	assert_int_equal(d->last.status, 200);
	assert_int_equal(atoi(response_header(&d->last, "Content-Length")), d->last.body_len);
	boundary = boundary_of(response_header(&d->last, "Content-Type"));
	assert_int_equal(
		strncmp(response_header(&d->last, "Content-Type"), "multipart/related;", 18), 0);
	assert_int_equal(
		strncmp(d->last.body,
			format("--%s\r\nContent-Type: application/json\r\n\r\n{", boundary), 30),
		0);
	door_has(d, "\"length\":5,\"follows\":true}}}\r\n--");
	door_has(d, format("\r\n--%s\r\nContent-Disposition: attachment; filename=\"f\"\r\n"
			   "Content-Type: image/png\r\nContent-Length: 5\r\n\r\nhello\r\n--%s--",
			   boundary, boundary));
	/* Who takes anything gets parts, as from CouchDB. */
	get("/outparts/d?attachments=true", "Accept: */*\r\n");
	assert_int_equal(
		strncmp(response_header(&d->last, "Content-Type"), "multipart/related;", 18), 0);
	/* Without attachments there is nothing to put into parts. */
	door_expect(d, "PUT", "/outparts/plain", "{}", 201, "ok");
	get("/outparts/plain?attachments=true", "Accept: multipart/related\r\n");
	assert_string_equal(response_header(&d->last, "Content-Type"), "application/json");
}

static void
open_revs_come_as_mixed_and_related_parts(void **state)
{
	const char *inner;

	(void)state;
	door_create(d, "mixed");
	make("/mixed/d");
	get("/mixed/d?revs=true&open_revs=%5B%22" /* ["1-…","1-abc"] */ "1-abc%22%5D",
	    "Accept: multipart/mixed\r\n");
	door_has(d, "\r\nContent-Type: application/json; error=\"true\"\r\n\r\n"
		    "{\"missing\":\"1-abc\"}\r\n--");
	get("/mixed/d?revs=true&open_revs=all", "Accept: multipart/mixed\r\n");
	assert_int_equal(d->last.status, 200);
	door_has(d, "\r\nContent-Type: multipart/related; boundary=\"");
	inner = boundary_of(d->last.body);
	door_has(d, format("--%s\r\nContent-Type: application/json\r\n\r\n{\"_id\":\"d\"", inner));
	door_has(d, format("Content-Length: 5\r\n\r\nhello\r\n--%s--\r\n--", inner));
	/* JSON has stubs unless attachments are asked for. */
	door_expect(d, "GET", "/mixed/d?open_revs=all", NULL, 200, "\"stub\":true");
	door_expect(d, "GET", "/mixed/d?open_revs=all&attachments=true", NULL, 200, "aGVsbG8=");
}

static void
atts_since_leaves_out_what_the_client_has(void **state)
{
	const char *first;
	const char *second;

	(void)state;
	door_create(d, "since");
	first = make("/since/d");
	door_request(d, "PUT", format("/since/d/g?rev=%s", first), "Content-Type: a/b\r\n", "new");
	second = door_member(d, "rev");
	door_expect(d, "GET", format("/since/d?atts_since=%%5B%%22%s%%22%%5D", first), NULL, 200,
		    "\"g\":{\"content_type\":\"a/b\",\"revpos\":2,\"digest\":\"md5-");
	door_has(d, "\"data\":\"bmV3\"");
	door_has(d, "\"length\":5,\"stub\":true");
	door_expect(d, "GET", format("/since/d?atts_since=%%5B%%22%s%%22%%5D", second), NULL, 200,
		    "\"length\":5,\"stub\":true");
	door_has_not(d, "\"data\"");
	door_expect(d, "GET", "/since/d?atts_since=%5B%221-abc%22%5D", NULL, 200, "aGVsbG8=");
	door_expect(d, "GET", "/since/d?atts_since=7", NULL, 400, "Invalid list of revisions");
	door_expect(d, "POST", "/since/_bulk_get",
		    format("{\"docs\":[{\"id\":\"d\",\"atts_since\":[\"%s\"]}]}", first), 200,
		    "\"data\":\"bmV3\"");
	door_has_not(d, "aGVsbG8=");
	door_expect(d, "POST", "/since/_bulk_get",
		    "{\"docs\":[{\"id\":\"d\",\"rev\":\"1-x\",\"atts_since\":7}]}", 200,
		    "att_since value must be array of revs.");
}

static void
bulk_get_has_attachments(void **state)
{
	(void)state;
	door_create(d, "bulkget");
	make("/bulkget/d");
	door_expect(d, "POST", "/bulkget/_bulk_get", "{\"docs\":[{\"id\":\"d\"},{\"id\":\"n\"}]}",
		    200, "\"stub\":true}}}}]},{\"id\":\"n\",\"docs\":[{\"error\":{\"id\":\"n\",");
	door_expect(d, "POST", "/bulkget/_bulk_get?attachments=true",
		    "{\"docs\":[{\"id\":\"d\"},{\"id\":\"d\"}]}", 200,
		    "{\"results\":[{\"id\":\"d\",\"docs\":[{\"ok\":{\"_id\":\"d\"");
	door_has(d, "\"data\":\"aGVsbG8=\"}}}}]},{\"id\":\"d\",\"docs\":[{\"ok\":{");
	door_has(d, "\"data\":\"aGVsbG8=\"}}}}]}]}\n");
	door_request(d, "POST", "/bulkget/_bulk_get",
		     "Accept: multipart/mixed\r\n"
		     "Content-Type: application/json\r\n",
		     "{\"docs\":[{\"id\":\"d\"},{\"id\":\"n\"}]}");
	assert_int_equal(d->last.status, 200);
	door_has(d, "\r\nX-Doc-Id: d\r\nX-Rev-Id: 1-");
	door_has(d, "\r\n\r\nhello\r\n--");
	door_has(d, "\r\nContent-Type: application/json; error=\"true\"\r\n\r\n{\"id\":\"n\"");
}

static void
feeds_and_listings_have_attachments(void **state)
{
	(void)state;
	door_create(d, "feeds");
	make("/feeds/a");
	make("/feeds/b");
	door_expect(d, "GET", "/feeds/_changes?include_docs=true", NULL, 200, "\"stub\":true}}}}");
	door_expect(d, "GET", "/feeds/_changes?include_docs=true&attachments=true", NULL, 200,
		    "\"data\":\"aGVsbG8=\"}}}},\r\n{\"seq\":");
	door_has(d, "\"data\":\"aGVsbG8=\"}}}}\n],\n\"last_seq\":");
	door_expect(d, "GET", "/feeds/_all_docs?include_docs=true&attachments=true", NULL, 200,
		    "\"data\":\"aGVsbG8=\"}}}},\r\n{\"id\":\"b\"");
	door_expect(d, "GET", "/feeds/_all_docs?include_docs=true", NULL, 200, "\"stub\":true");
}

#define FORM     "Content-Type: multipart/form-data; boundary=abc\r\n"
#define OWN_PAGE "Referer: http://localhost:5984/page?x\r\n"

static void
forms_of_other_pages_are_refused(void **state)
{
	static const char part[] =
		"--abc\r\nContent-Disposition: form-data; name=\"_attachments\"; "
		"filename=\"f\"\r\n\r\nbytes\r\n--abc--\r\n";
	static const char *const referers[] = {
		"Referer: http://evil.example/page\r\n",
		"Referer: http://localhost:59845/page\r\n",
		"Referer: http://localhost\r\n",
		"Referer: localhost:5984\r\n",
		"Referer: \r\n",
	};

	(void)state;
	door_create(d, "others");
	door_request(d, "POST", "/others/d", FORM, part);
	assert_int_equal(d->last.status, 400);
	door_has(d, "Referer header required.");
	for (size_t i = 0; i < sizeof(referers) / sizeof(referers[0]); i++) {
		door_request(d, "POST", "/others/d", format("%s%s", FORM, referers[i]), part);
		assert_int_equal(d->last.status, 400);
		door_has(d, "Referer header must match host.");
	}
	door_expect(d, "GET", "/others/d", NULL, 404, "missing");
	door_request(d, "POST", "/others/d", FORM "Referer: https://LocalHost:5984\r\n", part);
	assert_int_equal(d->last.status, 201);
}

static void
forms_attach_files(void **state)
{
	const char *rev;

	(void)state;
	door_create(d, "forms");
	rev = make("/forms/d");
	door_request(d, "POST", "/forms/d", FORM OWN_PAGE,
		     format("--abc\r\nContent-Disposition: form-data; name=\"_attachments\"; "
			    "filename=\"a b.png\"\r\nContent-Type: image/png\r\n\r\nbytes\r\n"
			    "--abc\r\nContent-Disposition: form-data; name=\"_rev\"\r\n\r\n%s\r\n"
			    "--abc--\r\n",
			    rev));
	if (d->last.status != 201)
		fail_msg("%d %s", d->last.status, d->last.body);
	get("/forms/d/a%20b.png", NULL);
	body_is(200, "bytes");
	get("/forms/d/f", NULL);
	body_is(200, "hello");
	door_request(d, "POST", "/forms/e", FORM OWN_PAGE,
		     "--abc\r\nContent-Disposition: form-data; name=\"_doc\"\r\n\r\n"
		     "{\"n\":2,\"_attachments\":{\"i\":{" HELLO "}}}\r\n"
		     "--abc\r\nContent-Disposition: form-data; name=\"_attachments\"; "
		     "filename=\"f\"\r\n\r\nbytes\r\n--abc--\r\n");
	assert_int_equal(d->last.status, 201);
	door_expect(d, "GET", "/forms/e", NULL, 200, "\"n\":2,\"_attachments\":{\"f\":{");
	door_has(d, "\"i\":{");
	door_request(d, "POST", "/forms/e", OWN_PAGE, "{}");
	assert_int_equal(d->last.status, 415);
	door_has(d, "Content-Type must be multipart/form-data");
}

/* ---- Large ones ---- */

static void
large_upload_and_download_are_the_same(void **state)
{
	enum {
		BYTES = 5 * 1000 * 1000 + 123
	};
	char *text = malloc(BYTES + 1);
	struct response *r = &d->last;

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < BYTES; i++)
		text[i] = (char)('!' + (i * i >> 9) % 90);
	text[BYTES] = '\0';
	door_create(d, "large");
	door_request(d, "PUT", "/large/d/f", "Content-Type: image/png\r\n", text);
	assert_int_equal(r->status, 201);
	get("/large/d/f", NULL);
	assert_int_equal(r->body_len, BYTES);
	assert_memory_equal(r->body, text, BYTES);
	get("/large/d/f", "Range: bytes=89998-180002\r\n");
	assert_int_equal(r->body_len, 90005);
	assert_memory_equal(r->body, text + 89998, 90005);
	/* Compressed on the way in, unpacked on the way out. */
	door_request(d, "PUT", "/large/e/f", "Content-Type: text/plain\r\n", text);
	assert_int_equal(r->status, 201);
	get("/large/e/f", NULL);
	assert_int_equal(r->body_len, BYTES);
	assert_memory_equal(r->body, text, BYTES);
	/* A conflict leaves nothing of it behind. */
	door_request(d, "PUT", "/large/e/g", "Content-Type: image/png\r\n", text);
	assert_int_equal(r->status, 409);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inline_data_comes_back_as_a_stub),
		cmocka_unit_test(bad_attachments_are_told),
		cmocka_unit_test(stubs_keep_what_is_there),
		cmocka_unit_test(bulk_docs_take_attachments_each_for_itself),
		cmocka_unit_test(copy_shares_attachments),
		cmocka_unit_test(patch_keeps_attachments),
		cmocka_unit_test(attachment_is_put_got_and_deleted),
		cmocka_unit_test(attachment_for_a_replaced_revision_is_a_conflict),
		cmocka_unit_test(put_of_an_attachment_needs_the_revision),
		cmocka_unit_test(digest_of_an_upload_is_checked),
		cmocka_unit_test(text_is_compressed_as_couchdb_does),
		cmocka_unit_test(gzip_that_is_none_is_told_before_the_answer),
		cmocka_unit_test(gzip_that_breaks_further_in_is_told_before_the_answer),
		cmocka_unit_test(gzip_that_is_broken_is_a_stub_among_several_documents),
		cmocka_unit_test(gzip_that_breaks_behind_what_is_checked_cuts_the_answer),
		cmocka_unit_test(the_encoding_of_inline_data_is_ignored),
		cmocka_unit_test(ranges_are_answered_as_couchdb_does),
		cmocka_unit_test(empty_attachments_are_attachments),
		cmocka_unit_test(parts_follow_a_document),
		cmocka_unit_test(broken_multipart_bodies_are_told),
		cmocka_unit_test(documents_go_out_in_parts_where_they_are_asked_for),
		cmocka_unit_test(open_revs_come_as_mixed_and_related_parts),
		cmocka_unit_test(atts_since_leaves_out_what_the_client_has),
		cmocka_unit_test(bulk_get_has_attachments),
		cmocka_unit_test(feeds_and_listings_have_attachments),
		cmocka_unit_test(forms_of_other_pages_are_refused),
		cmocka_unit_test(forms_attach_files),
		cmocka_unit_test(large_upload_and_download_are_the_same),
	};

	return cmocka_run_group_tests_name("couch attachments", tests, setup, teardown);
}
