/* How answers look: headers, whole bodies, streams. */
#include "base/wait.h"
#include "door/couch/couch_int.h"

struct buf
couch_buf(struct couch_req *r, size_t max_bytes)
{
	return BUF_INIT_OF(max_bytes, http_memory(r->x));
}

void
couch_json_headers(struct couch_req *r)
{
	struct str feed;

	http_set_header(r->x, STR("Content-Type"), STR("application/json"));
	http_set_header(r->x, STR("Cache-Control"), STR("must-revalidate"));
	/* A feed is to be read line by line, and may be one of thousands. */
	if (r->settings && (!couch_param(r, "feed", &feed) || str_eq(feed, STR("normal"))))
		http_allow_gzip(r->x, r->settings->door.answer_gzip_level);
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

void
couch_reply_fail(struct couch_req *r, enum status status)
{
	struct couch_answer answer = couch_fail_answer(status, &r->fail);
	struct buf body = BUF_INIT(8 * ERR_TEXT_BYTES);

	if (answer.code == 401) {
		struct str how = http_request_header(r->x, STR("X-CouchDB-WWW-Authenticate"));

		/* A page that has a form of its own keeps the browser from asking. */
		if (how.len)
			http_set_header(r->x, STR("WWW-Authenticate"), how);
	}
	buf_append_byte(&body, '{');
	couch_fail_write(status, &r->fail, &body);
	buf_append_byte(&body, '}');
	if (couch_reply(r, answer.code, &body) != STATUS_OK && !http_started(r->x))
		http_abort(r->x);
	buf_release(&body);
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

enum status
couch_method_refused(struct couch_req *r, const char *allow)
{
	http_set_header(r->x, STR("Allow"), str_from_cstr(allow));
	return couch_fail_set(&r->fail, COUCH_ERROR_METHOD, "Only %s allowed", allow);
}

/* If-None-Match: a list of tags, each perhaps marked weak, or "*". */
static bool
etag_matches(struct str list, struct str tag)
{
	while (list.len) {
		const char *comma = memchr(list.ptr, ',', list.len);
		size_t len = comma ? (size_t)(comma - list.ptr) : list.len;
		struct str one = str_trim(str_of(list.ptr, len));

		if (str_starts_with(one, STR("W/")))
			one = str_skip(one, 2);
		if (str_eq(one, tag))
			return true;
		list = str_skip(list, comma ? len + 1 : len);
	}
	return false;
}

enum status
couch_reply_etag(struct couch_req *r, struct str tag, bool *ret_sent)
{
	struct str given = http_request_header(r->x, STR("If-None-Match"));

	http_set_header(r->x, STR("ETag"), tag);
	*ret_sent = false;
	if (!given.ptr || !etag_matches(given, tag))
		return STATUS_OK;
	http_set_status(r->x, 304);
	TRY(http_send(r->x, (struct str){ "", 0 }));
	*ret_sent = true;
	return STATUS_OK;
}

void
couch_set_etag_of(struct couch_req *r, struct str name)
{
	struct buf AUTO(buf_release) tag = BUF_INIT(2 * REV_HASH_LIMIT_BYTES);

	buf_append_byte(&tag, '"');
	buf_append_str(&tag, name);
	buf_append_byte(&tag, '"');
	if (buf_status(&tag) == STATUS_OK)
		http_set_header(r->x, STR("ETag"), buf_str(&tag));
}

void
couch_set_etag(struct couch_req *r, struct rev_id rev)
{
	struct buf AUTO(buf_release) name = BUF_INIT(2 * REV_HASH_LIMIT_BYTES);

	rev_id_write(rev, &name);
	if (buf_status(&name) == STATUS_OK)
		couch_set_etag_of(r, buf_str(&name));
}

static void
append_escaped(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    c == '-' || c == '_' || c == '.' || c == '~' || c == ':')
			buf_append_byte(b, c);
		else
			buf_printf(b, "%%%02X", c);
	}
}

struct str
couch_host(const struct couch_req *r)
{
	struct str host = http_request_header(r->x, STR("X-Forwarded-Host"));

	return host.len ? host : http_request_header(r->x, STR("Host"));
}

/* Scheme and host, as the client has them; nothing for one that has not told its host. */
static void
append_origin(const struct couch_req *r, struct buf *url)
{
	struct str host = couch_host(r);
	struct str proto = http_request_header(r->x, STR("X-Forwarded-Proto"));
	struct str tls = http_request_header(r->x, STR("X-Forwarded-Ssl"));

	if (!host.ptr)
		return;
	buf_append_cstr(url, str_eq(proto, STR("https")) || str_eq(tls, STR("on")) ? "https://"
										   : "http://");
	buf_append_str(url, host);
}

void
couch_set_location_path(struct couch_req *r, struct str path)
{
	struct buf AUTO(buf_release) url = BUF_INIT(2 * COUCH_SMALL_BODY_BYTES);

	append_origin(r, &url);
	buf_append_str(&url, path);
	if (buf_status(&url) == STATUS_OK)
		http_set_header(r->x, STR("Location"), buf_str(&url));
}

void
couch_set_location(struct couch_req *r, struct str db, struct str doc, struct str att)
{
	struct buf AUTO(buf_release) url = BUF_INIT(4 * (REV_DB_NAME_BYTES + KV_LIMIT_KEY_BYTES) +
						    COUCH_SMALL_BODY_BYTES);

	append_origin(r, &url);
	buf_append_byte(&url, '/');
	append_escaped(&url, db);
	if (doc.ptr) {
		buf_append_byte(&url, '/');
		append_escaped(&url, doc);
	}
	if (att.ptr) {
		buf_append_byte(&url, '/');
		append_escaped(&url, att);
	}
	if (buf_status(&url) == STATUS_OK)
		http_set_header(r->x, STR("Location"), buf_str(&url));
}

void
couch_stream_init(struct couch_stream *s, struct couch_req *r)
{
	*s = (struct couch_stream){
		.r = r,
		.out = couch_buf(r, COUCH_ROW_BYTES),
		.holes = COUCH_HOLES_INIT,
	};
}

void
couch_stream_release(struct couch_stream *s)
{
	buf_release(&s->out);
	couch_holes_release(&s->holes);
}

void
couch_stream_cut(struct couch_stream *s, size_t len)
{
	s->out.len = len;
	couch_holes_cut(&s->holes, len);
}

static enum status
send_out(struct couch_stream *s)
{
	enum status status = STATUS_OK;

	if (s->out.len && !s->r->head)
		status = couch_holes_send(&s->holes, s->r, s->snapshot, buf_str(&s->out));
	buf_clear(&s->out);
	couch_holes_cut(&s->holes, 0);
	return status;
}

static enum status
stream_start(struct couch_stream *s)
{
	if (s->content_type)
		http_set_header(s->r->x, STR("Content-Type"), str_from_cstr(s->content_type));
	else
		couch_json_headers(s->r);
	if (s->out.len < HTTP_GZIP_LEAST_BYTES)
		http_allow_gzip(s->r->x, 0); /* all of it, or a stream that is to flow */
	s->started = true;
	return http_start(s->r->x, HTTP_LENGTH_UNKNOWN);
}

enum status
couch_stream_push(struct couch_stream *s, bool now)
{
	TRY(buf_status(&s->out));
	if (!now && s->out.len < COUCH_CHUNK_BYTES && !couch_holes_any(&s->holes))
		return STATUS_OK;
	if (!s->started)
		TRY(stream_start(s));
	TRY(send_out(s));
	if (now)
		http_flush(s->r->x);
	/* A fast reader of a long answer must not keep the loop from its other connections. */
	wait_yield();
	return STATUS_OK;
}

enum status
couch_stream_end(struct couch_stream *s)
{
	TRY(buf_status(&s->out));
	if (!s->started)
		TRY(stream_start(s));
	TRY(send_out(s));
	return http_finish(s->r->x);
}
