/* Whole answers and their headers. */
#include <stdio.h>

#include "doc/json.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "http/escape.h"
#include "http/field.h"
#include "kv/kv.h"

struct buf
couch_buf(struct couch_req *r, size_t max_bytes)
{
	return BUF_INIT_OF(max_bytes, http_memory(r->x));
}

void
couch_json_headers(struct couch_req *r)
{
	http_set_header(r->x, STR("Content-Type"), STR("application/json"));
	http_set_header(r->x, STR("Cache-Control"), STR("must-revalidate"));
	/*
	 * Feeds are not compressed: a client reads them line by line, and there may be thousands of
	 * them.
	 */
	if (r->settings && !r->feed)
		http_allow_gzip(r->x, (int)r->settings->answer_gzip_level);
}

enum status
couch_reply(struct couch_req *r, int code, struct buf *body)
{
	buf_append_byte(body, '\n');
	TRY(buf_status(body));
	couch_json_headers(r);
	http_set_status(r->x, code);
	return http_send(r->x, buf_str(body));
}

enum status
couch_reply_str(struct couch_req *r, int code, struct str body)
{
	couch_json_headers(r);
	http_set_status(r->x, code);
	return http_send(r->x, body);
}

enum status
couch_reply_ok(struct couch_req *r, int code)
{
	return couch_reply_str(r, code, STR("{\"ok\":true}\n"));
}

/*
 * Tells a client that has no right how it may log in. A browser that is told of Basic asks for a
 * name and a password in a window of its own.
 */
static void
reply_tell_how_to_log_in(struct couch_req *r)
{
	struct str how = http_request_header(r->x, STR("X-CouchDB-WWW-Authenticate"));

	/* The form of a page shows by itself that a password was wrong. */
	if (r->method == COUCH_POST && r->parts_count == 1 && str_eq(r->parts[0], STR("_session")))
		return;
	/* A page with its own login form sends this header, so that the browser does not ask. */
	if (!how.len && r->settings && r->settings->www_authenticate)
		how = str_from_cstr(r->settings->www_authenticate);
	if (!how.len && r->settings && r->settings->valid_user)
		how = STR("Basic realm=\"server\"");
	if (how.len)
		http_set_header(r->x, STR("WWW-Authenticate"), how);
}

void
couch_reply_fail(struct couch_req *r, enum status status)
{
	struct couch_answer answer = couch_fail_answer(status, &r->fail);
	/*
	 * Not from the heap: a failure for lack of memory has a body, too. A byte of the reason
	 * takes six here at most.
	 */
	char room[14 * ERR_TEXT_BYTES];
	struct buf body = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };

	if (answer.code == 401)
		reply_tell_how_to_log_in(r);
	/* What the request alone has too much of is a 413: no 503 stays one for ever. */
	if (answer.code == 503 || answer.code == 429) {
		char seconds[24];

		(void)snprintf(seconds, sizeof(seconds), "%llu",
			       (unsigned long long)r->op.claim.retry_s);
		http_set_header(r->x, STR("Retry-After"),
				r->op.claim.retry_s ? str_from_cstr(seconds)
						    : STR(COUCH_RETRY_AFTER_S));
	}
	buf_append_byte(&body, '{');
	couch_fail_write(status, &r->fail, &body);
	buf_append_byte(&body, '}');
	if (couch_reply(r, answer.code, &body) != STATUS_OK && !http_started(r->x))
		http_abort(r->x);
}

enum status
couch_reply_written(struct couch_req *r, int code, struct str id, struct rev_id rev)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);

	buf_append_cstr(&out, "{\"ok\":true,\"id\":");
	json_write_str(&out, id);
	buf_append_cstr(&out, ",\"rev\":");
	couch_rev_write(rev, &out);
	buf_append_byte(&out, '}');
	return couch_reply(r, code, &out);
}

bool
couch_wants_batch(const struct couch_req *r)
{
	struct str value;

	return couch_param(r, "batch", &value) && str_eq(value, STR("ok"));
}

enum status
couch_reply_batched(struct couch_req *r, struct str id, enum status status)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);

	if (status != STATUS_OK && status != STATUS_DOC_CONFLICT)
		return status;
	buf_append_cstr(&out, "{\"ok\":true,\"id\":");
	json_write_str(&out, id);
	buf_append_byte(&out, '}');
	return couch_reply(r, 202, &out);
}

enum status
couch_method_refused(struct couch_req *r, const char *allow)
{
	http_set_header(r->x, STR("Allow"), str_from_cstr(allow));
	return couch_fail_set(&r->fail, COUCH_ERROR_METHOD, "Only %s allowed", allow);
}

/* True if the text may stand between the quotes of an ETag (RFC 9110, section 8.8.3). */
static bool
reply_etag_fits(struct str name)
{
	static const bool refused[256] = { [0 ... ' '] = true, ['"'] = true, [0x7f] = true };

	for (size_t i = 0; i < name.len; i++)
		if (refused[(uint8_t)name.ptr[i]])
			return false;
	return true;
}

bool
couch_etag_is(struct str tag, struct str name)
{
	return tag.len == name.len + 2 && tag.ptr[0] == '"' && tag.ptr[tag.len - 1] == '"' &&
	       str_eq(str_of(tag.ptr + 1, name.len), name);
}

/*
 * Ends the tag that was begun with a quote in `tag`. Returns false if no header can hold it: older
 * versions of this server stored revisions that no header can hold.
 */
static bool
reply_end_etag(struct buf *tag)
{
	if (buf_status(tag) != STATUS_OK || !reply_etag_fits(str_skip(buf_str(tag), 1)))
		return false;
	buf_append_byte(tag, '"');
	return buf_status(tag) == STATUS_OK;
}

static bool
reply_write_etag(struct str name, struct buf *tag)
{
	buf_append_byte(tag, '"');
	buf_append_str(tag, name);
	return reply_end_etag(tag);
}

static bool
reply_write_etag_of_rev(struct rev_id rev, struct buf *tag)
{
	buf_append_byte(tag, '"');
	rev_id_write(rev, tag);
	return reply_end_etag(tag);
}

void
couch_set_etag_of(struct couch_req *r, struct str name)
{
	struct buf AUTO(buf_release) tag = BUF_SHORT(2 * REV_HASH_LIMIT_BYTES);

	if (reply_write_etag(name, &tag))
		http_set_header(r->x, STR("ETag"), buf_str(&tag));
}

void
couch_set_etag(struct couch_req *r, struct rev_id rev)
{
	struct buf AUTO(buf_release) tag = BUF_SHORT(2 * REV_HASH_LIMIT_BYTES);

	if (reply_write_etag_of_rev(rev, &tag))
		http_set_header(r->x, STR("ETag"), buf_str(&tag));
}

/* Sets the ETag. If the client has that version already, answers 304, which *ret_sent tells. */
static enum status
reply_send_etag(struct couch_req *r, struct str tag, bool *ret_sent)
{
	struct str given = http_request_header(r->x, STR("If-None-Match"));

	http_set_header(r->x, STR("ETag"), tag);
	if (!given.ptr || !http_etag_listed(given, tag))
		return STATUS_OK;
	http_set_status(r->x, 304);
	TRY(http_send(r->x, (struct str){ "", 0 }));
	*ret_sent = true;
	return STATUS_OK;
}

enum status
couch_reply_etag(struct couch_req *r, struct str name, bool *ret_sent)
{
	struct buf AUTO(buf_release) tag = BUF_SHORT(2 * REV_HASH_LIMIT_BYTES);

	*ret_sent = false;
	return reply_write_etag(name, &tag) ? reply_send_etag(r, buf_str(&tag), ret_sent)
					    : STATUS_OK;
}

enum status
couch_reply_etag_of_rev(struct couch_req *r, struct rev_id rev, bool *ret_sent)
{
	struct buf AUTO(buf_release) tag = BUF_SHORT(2 * REV_HASH_LIMIT_BYTES);

	*ret_sent = false;
	return reply_write_etag_of_rev(rev, &tag) ? reply_send_etag(r, buf_str(&tag), ret_sent)
						  : STATUS_OK;
}

/* Appends one segment of a Location. CouchDB does not escape the colon. */
static void
reply_append_segment(struct buf *url, struct str name)
{
	buf_append_byte(url, '/');
	http_escape_keeping(url, name, ":");
}

struct str
couch_host(const struct couch_req *r)
{
	struct str name = str_from_cstr(r->settings->forwarded_host);
	struct str host = http_request_header(r->x, name);

	return host.len ? host : http_request_header(r->x, STR("Host"));
}

bool
couch_is_secure(const struct couch_req *r)
{
	struct str proto = http_request_header(r->x, str_from_cstr(r->settings->forwarded_proto));
	struct str tls = http_request_header(r->x, str_from_cstr(r->settings->forwarded_tls));

	return http_is_secure(r->x) || str_eq(proto, STR("https")) || str_eq(tls, STR("on"));
}

/* Appends scheme and host as the client wrote them; nothing if the request has no host. */
static void
reply_append_origin(const struct couch_req *r, struct buf *url)
{
	struct str host = couch_host(r);

	if (!host.ptr)
		return;
	buf_append_cstr(url, couch_is_secure(r) ? "https://" : "http://");
	buf_append_str(url, host);
}

void
couch_set_location_path(struct couch_req *r, struct str path)
{
	struct buf AUTO(buf_release) url = BUF_SHORT(2 * COUCH_SMALL_BODY_BYTES);

	reply_append_origin(r, &url);
	buf_append_str(&url, path);
	if (buf_status(&url) == STATUS_OK)
		http_set_header(r->x, STR("Location"), buf_str(&url));
}

void
couch_set_location(struct couch_req *r, struct str db, struct str doc, struct str att)
{
	struct buf AUTO(buf_release) url = BUF_SHORT(4 * (CATALOG_NAME_BYTES + KV_LIMIT_KEY_BYTES) +
						     COUCH_SMALL_BODY_BYTES);

	reply_append_origin(r, &url);
	reply_append_segment(&url, db);
	if (doc.ptr)
		reply_append_segment(&url, doc);
	if (att.ptr)
		reply_append_segment(&url, att);
	if (buf_status(&url) == STATUS_OK)
		http_set_header(r->x, STR("Location"), buf_str(&url));
}
