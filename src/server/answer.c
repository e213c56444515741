/* The answer: status line and headers, framing, and how it gets into the socket. */
#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "server/conn.h"
#include "server/gzip.h"

enum {
	CHUNK_HEAD_BYTES = 6,         /* "7fff\r\n": filled in when the chunk is closed */
	GZIP_SLICE_BYTES = 64 * 1024, /* compressed at once, before others have their turn */
};

static const struct {
	int status;
	const char *phrase;
	const char *error; /* how CouchDB names it */
} phrases[] = {
	{ 200, "OK", NULL },
	{ 201, "Created", NULL },
	{ 202, "Accepted", NULL },
	{ 204, "No Content", NULL },
	{ 206, "Partial Content", NULL },
	{ 301, "Moved Permanently", NULL },
	{ 302, "Found", NULL },
	{ 304, "Not Modified", NULL },
	{ 400, "Bad Request", "bad_request" },
	{ 401, "Unauthorized", "unauthorized" },
	{ 403, "Forbidden", "forbidden" },
	{ 404, "Object Not Found", "not_found" },
	{ 405, "Method Not Allowed", "method_not_allowed" },
	{ 406, "Not Acceptable", "not_acceptable" },
	{ 408, "Request Timeout", "request_timeout" },
	{ 409, "Conflict", "conflict" },
	{ 410, "Gone", "gone" },
	{ 411, "Length Required", "length_required" },
	{ 412, "Precondition Failed", "precondition_failed" },
	{ 413, "Request Entity Too Large", "too_large" },
	{ 414, "Request-URI Too Long", "uri_too_long" },
	{ 415, "Unsupported Media Type", "bad_content_type" },
	{ 416, "Requested Range Not Satisfiable", "requested_range_not_satisfiable" },
	{ 417, "Expectation Failed", "expectation_failed" },
	{ 429, "Too Many Requests", "too_many_requests" },
	{ 431, "Request Header Fields Too Large", "headers_too_large" },
	{ 500, "Internal Server Error", "internal_server_error" },
	{ 501, "Not Implemented", "not_implemented" },
	{ 503, "Service Unavailable", "service_unavailable" },
	{ 504, "Gateway Timeout", "timeout" },
	{ 505, "HTTP Version Not Supported", "http_version_not_supported" },
};

static size_t
find_phrase(int status)
{
	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
		if (phrases[i].status == status)
			return i;
	return SIZE_MAX;
}

/* ---- Into the socket ---- */

size_t
exchange_unsent(const struct http_exchange *x)
{
	size_t flying = uv_stream_get_write_queue_size((const uv_stream_t *)&x->conn->tcp);

	/* Even when all is written, the buffer is in use until on_written() was called. */
	if (x->flying.len && !flying)
		flying = 1;
	return x->out.len + flying;
}

/* Writes the open chunk's size; empty chunks would end the body and are taken back. */
static void
close_chunk(struct http_exchange *x)
{
	char size[CHUNK_HEAD_BYTES + 1];
	size_t n;

	if (x->chunk_at == SIZE_MAX)
		return;
	n = x->out.len - x->chunk_at - CHUNK_HEAD_BYTES;
	if (n == 0) {
		x->out.len = x->chunk_at;
	} else {
		snprintf(size, sizeof(size), "%04x\r\n", (unsigned)n & 0xffff);
		memcpy(x->out.ptr + x->chunk_at, size, CHUNK_HEAD_BYTES);
		buf_append_str(&x->out, STR("\r\n"));
	}
	x->chunk_at = SIZE_MAX;
}

static void
on_written(uv_write_t *write, int status)
{
	struct http_exchange *x = write->data;
	struct conn *c = x->conn;

	buf_clear(&x->flying);
	if (c->state == CONN_STATE_CLOSING)
		return;
	if (status != 0) {
		conn_abort(c);
		return;
	}
	exchange_send(x);
	exchange_progress(x);
	if (c->state == CONN_STATE_FINISH)
		conn_settle(c);
}

/* What the kernel takes at once of `out` and then `data`; SIZE_MAX if the connection is lost. */
static size_t
try_write(struct http_exchange *x, struct str data)
{
	union {
		const char *in;
		char *out;
	} base = { .in = data.ptr }; /* libuv only reads it */
	uv_buf_t bufs[2] = {
		uv_buf_init(x->out.ptr, (unsigned)x->out.len),
		uv_buf_init(base.out, (unsigned)data.len),
	};
	unsigned skip = x->out.len == 0;
	int n;

	n = uv_try_write((uv_stream_t *)&x->conn->tcp, bufs + skip, (data.len ? 2 : 1) - skip);
	if (n == UV_EAGAIN)
		return 0;
	if (n < 0) {
		conn_abort(x->conn);
		return SIZE_MAX;
	}
	return (size_t)n;
}

/* Sends `out` and of `data` what the kernel takes right behind it. Returns how much of `data`. */
static size_t
send_both(struct http_exchange *x, struct str data)
{
	struct conn *c = x->conn;
	struct buf spare;
	uv_buf_t rest;
	size_t n;

	if (c->lost || x->flying.len)
		return 0;
	if (x->out.len + data.len == 0)
		return 0;
	if (data.len > INT32_MAX)
		data.len = INT32_MAX;
	n = try_write(x, data);
	if (n == SIZE_MAX)
		return 0;
	if (n >= x->out.len) {
		n -= x->out.len;
		buf_clear(&x->out);
		return n;
	}
	rest = uv_buf_init(x->out.ptr + n, (unsigned)(x->out.len - n));
	spare = x->flying;
	x->flying = x->out;
	x->out = spare;
	buf_clear(&x->out);
	if (uv_write(&x->write, (uv_stream_t *)&c->tcp, &rest, 1, on_written) != 0)
		conn_abort(c);
	return 0;
}

void
exchange_send(struct http_exchange *x)
{
	close_chunk(x);
	(void)send_both(x, (struct str){ 0 });
}

/*
 * How much may be unsent before the handler parks: little, unless the memory that all exchanges
 * share has room for more.
 */
static size_t
output_limit(struct http_exchange *x)
{
	size_t limit = x->loop->config->output_bytes;

	if (limit <= CONN_SPARE_BYTES || x->output_counted)
		return limit;
	if (exchange_unsent(x) + CONN_CHUNK_BYTES <= CONN_SPARE_BYTES)
		return CONN_SPARE_BYTES;
	x->output_counted = budget_use(&x->part, limit);
	return x->output_counted ? limit : CONN_SPARE_BYTES;
}

/*
 * Parks until no more than `most` bytes are unsent. A slow reader has body_timeout_ms for some
 * progress, not for all of it.
 */
static enum status
wait_unsent(struct http_exchange *x, size_t most)
{
	while (!x->conn->lost && exchange_unsent(x) > most) {
		size_t before;

		exchange_send(x);
		before = exchange_unsent(x);
		if (before > most && !exchange_wait(x) && exchange_unsent(x) >= before)
			http_abort(x);
	}
	return x->conn->lost ? STATUS_CANCELLED : STATUS_OK;
}

/* Bytes as they are, behind what is buffered. */
static enum status
put(struct http_exchange *x, struct str data)
{
	if (x->out.len + data.len >= CONN_FLUSH_BYTES)
		data = str_skip(data, send_both(x, data));
	while (!x->conn->lost && data.len) {
		size_t limit = output_limit(x);
		size_t room = exchange_unsent(x) < limit ? limit - exchange_unsent(x) : 0;
		size_t n = data.len < room ? data.len : room;

		buf_append(&x->out, data.ptr, n);
		if (buf_status(&x->out) != STATUS_OK) {
			http_abort(x);
			return STATUS_CANCELLED;
		}
		data = str_skip(data, n);
		if (x->out.len >= CONN_FLUSH_BYTES)
			(void)send_both(x, (struct str){ 0 });
		if (data.len)
			TRY(wait_unsent(x, limit / 2));
	}
	return x->conn->lost ? STATUS_CANCELLED : STATUS_OK;
}

/* ---- Headers ---- */

void
http_set_status(struct http_exchange *x, int status)
{
	if (status >= 200 && status <= 999)
		x->status = status;
	else
		x->broken = true;
}

static bool
is_plain(struct str s)
{
	return !memchr(s.ptr, '\r', s.len) && !memchr(s.ptr, '\n', s.len) &&
	       !memchr(s.ptr, '\0', s.len);
}

static bool
is_name(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] == ':' || s.ptr[i] == 0x7f)
			return false;
	return s.len > 0;
}

static bool
is_servers_own(struct str name)
{
	return str_eq_nocase(name, STR("Date")) || str_eq_nocase(name, STR("Server")) ||
	       str_eq_nocase(name, STR("Content-Length")) ||
	       str_eq_nocase(name, STR("Transfer-Encoding")) ||
	       str_eq_nocase(name, STR("Connection"));
}

void
http_add_header(struct http_exchange *x, struct str name, struct str value)
{
	struct http_header h;

	if (x->started || is_servers_own(name))
		return;
	if (!is_name(name) || (value.len && !is_plain(value)) ||
	    x->header_count == EXCHANGE_HEADERS) {
		x->broken = true;
		return;
	}
	h.name = arena_dup(http_arena(x), name);
	h.value = arena_dup(http_arena(x), value);
	if (!h.name.ptr || !h.value.ptr)
		x->broken = true;
	else
		x->headers[x->header_count++] = h;
}

void
http_set_header(struct http_exchange *x, struct str name, struct str value)
{
	size_t kept = 0;

	if (x->started)
		return;
	for (size_t i = 0; i < x->header_count; i++)
		if (!str_eq_nocase(x->headers[i].name, name))
			x->headers[kept++] = x->headers[i];
	x->header_count = kept;
	http_add_header(x, name, value);
}

bool
http_started(const struct http_exchange *x)
{
	return x->started;
}

static void
put_header(struct buf *out, struct str name, struct str value)
{
	buf_append_str(out, name);
	buf_append_str(out, STR(": "));
	buf_append_str(out, value);
	buf_append_str(out, STR("\r\n"));
}

/* How the body's end will be told. */
static void
put_framing(struct http_exchange *x, uint64_t length)
{
	bool counts = x->status != 204 && x->status != 304;

	x->bodiless = !counts || str_eq(http_method(x), STR("HEAD"));
	x->remaining = length;
	if (!counts)
		return;
	if (length != HTTP_LENGTH_UNKNOWN) {
		buf_append_str(&x->out, STR("Content-Length: "));
		buf_append_u64(&x->out, length);
		buf_append_str(&x->out, STR("\r\n"));
	} else if (parser_minor_version(&x->parser) > 0) {
		x->chunked = true;
		put_header(&x->out, STR("Transfer-Encoding"), STR("chunked"));
	} else if (!x->bodiless) {
		x->conn->keep = false;
	}
}

/* Whether another request can follow is settled when the client is told. */
static void
put_connection(struct http_exchange *x)
{
	struct conn *c = x->conn;
	uint64_t unread = x->parser.content_length > x->body_taken
				  ? x->parser.content_length - x->body_taken
				  : 0;

	if (!x->continued || x->parser.refusal || c->loop->stopping ||
	    (!x->parser.complete && unread > CONN_SKIP_BYTES))
		c->keep = false;
	if (!c->keep)
		put_header(&x->out, STR("Connection"), STR("close"));
	else if (parser_minor_version(&x->parser) == 0)
		put_header(&x->out, STR("Connection"), STR("keep-alive"));
}

static void
put_head(struct http_exchange *x, uint64_t length)
{
	size_t phrase = find_phrase(x->status);

	buf_append_str(&x->out, STR("HTTP/1.1 "));
	buf_append_u64(&x->out, (uint64_t)x->status);
	buf_append_byte(&x->out, ' ');
	if (phrase != SIZE_MAX)
		buf_append_cstr(&x->out, phrases[phrase].phrase);
	buf_append_str(&x->out, STR("\r\n"));
	put_header(&x->out, STR("Date"), loop_date(x->loop));
	put_header(&x->out, STR("Server"), str_from_cstr(x->loop->config->server_name));
	for (size_t i = 0; i < x->header_count; i++)
		put_header(&x->out, x->headers[i].name, x->headers[i].value);
	put_framing(x, length);
	put_connection(x);
	buf_append_str(&x->out, STR("\r\n"));
}

void
http_allow_gzip(struct http_exchange *x, int level)
{
	x->gzip_level = level;
}

static bool
has_header(const struct http_exchange *x, struct str name)
{
	for (size_t i = 0; i < x->header_count; i++)
		if (str_eq_nocase(x->headers[i].name, name))
			return true;
	return false;
}

/* Whether the body, `*length` bytes long, is going to be compressed. */
static void
begin_gzip(struct http_exchange *x, uint64_t *length)
{
	if (!x->gzip_level || *length < HTTP_GZIP_LEAST_BYTES || x->status == 204 ||
	    x->status == 304 || parser_minor_version(&x->parser) == 0 ||
	    has_header(x, STR("Content-Encoding")))
		return;
	http_add_header(x, STR("Vary"), STR("Accept-Encoding"));
	if (!gzip_accepted(http_request_header(x, STR("Accept-Encoding"))))
		return;
	/* Without the memory it goes as it is. */
	x->gzip = gzip_new(x->gzip_level);
	if (!x->gzip)
		return;
	http_set_header(x, STR("Content-Encoding"), STR("gzip"));
	*length = HTTP_LENGTH_UNKNOWN;
}

enum status
http_start(struct http_exchange *x, uint64_t length)
{
	size_t before = x->out.len;

	if (x->started)
		return STATUS_INVALID;
	if (x->conn->lost)
		return STATUS_CANCELLED;
	begin_gzip(x, &length);
	if (x->broken) {
		x->status = 500;
		x->header_count = 0;
		length = 0;
	}
	x->started = true;
	put_head(x, length);
	if (buf_status(&x->out) != STATUS_OK) {
		x->out.len = before;
		http_abort(x);
		return STATUS_CANCELLED;
	}
	return STATUS_OK;
}

/* ---- Body ---- */

static enum status
put_chunked(struct http_exchange *x, struct str data)
{
	while (data.len) {
		struct str part;
		size_t used;

		if (x->chunk_at == SIZE_MAX) {
			x->chunk_at = x->out.len;
			buf_append(&x->out, "0000\r\n", CHUNK_HEAD_BYTES);
		}
		used = x->out.len - x->chunk_at - CHUNK_HEAD_BYTES;
		part = str_of(data.ptr, data.len < CONN_CHUNK_BYTES - used
						? data.len
						: CONN_CHUNK_BYTES - used);
		data = str_skip(data, part.len);
		buf_append_str(&x->out, part);
		if (buf_status(&x->out) != STATUS_OK) {
			http_abort(x);
			return STATUS_CANCELLED;
		}
		if (used + part.len >= CONN_FLUSH_BYTES)
			exchange_send(x);
		TRY(wait_unsent(x, output_limit(x)));
	}
	return x->conn->lost ? STATUS_CANCELLED : STATUS_OK;
}

/* Data as the client is to get it. */
static enum status
put_body(struct http_exchange *x, struct str data)
{
	return x->chunked ? put_chunked(x, data) : put(x, data);
}

static enum status
put_gzip(struct http_exchange *x, enum gzip_step step, struct str data)
{
	struct str out;

	while ((out = gzip_next(x->gzip, step, &data)).len)
		TRY(put_body(x, out));
	return STATUS_OK;
}

/* A slice at a time, because compressing is slow beside everything else on a loop. */
static enum status
put_compressed(struct http_exchange *x, struct str data)
{
	while (data.len) {
		size_t n = data.len < GZIP_SLICE_BYTES ? data.len : GZIP_SLICE_BYTES;

		TRY(put_gzip(x, GZIP_MORE, str_of(data.ptr, n)));
		data = str_skip(data, n);
		if (data.len)
			wait_yield();
	}
	return x->conn->lost ? STATUS_CANCELLED : STATUS_OK;
}

enum status
http_write(struct http_exchange *x, struct str data)
{
	if (!x->started || x->finished)
		return STATUS_INVALID;
	if (x->conn->lost)
		return STATUS_CANCELLED;
	if (x->broken)
		return STATUS_OK; /* the 500 in this answer's place has no body */
	if (x->remaining != HTTP_LENGTH_UNKNOWN) {
		if (data.len > x->remaining) {
			http_abort(x);
			return STATUS_INVALID;
		}
		x->remaining -= data.len;
	}
	if (x->bodiless)
		return STATUS_OK;
	return x->gzip ? put_compressed(x, data) : put_body(x, data);
}

void
http_flush(struct http_exchange *x)
{
	if (!x->started)
		return;
	if (x->gzip && !x->bodiless && !x->finished &&
	    put_gzip(x, GZIP_FLUSH, (struct str){ NULL, 0 }) != STATUS_OK)
		return; /* the client has gone, as the next write will tell */
	exchange_send(x);
}

enum status
http_finish(struct http_exchange *x)
{
	if (!x->started || x->finished)
		return STATUS_INVALID;
	if (x->conn->lost)
		return STATUS_CANCELLED;
	if (!x->broken && !x->bodiless && x->remaining != HTTP_LENGTH_UNKNOWN && x->remaining > 0) {
		http_abort(x);
		return STATUS_INVALID;
	}
	if (x->gzip && !x->broken && !x->bodiless)
		TRY(put_gzip(x, GZIP_END, (struct str){ NULL, 0 }));
	x->finished = true;
	if (x->chunked && !x->bodiless) {
		close_chunk(x);
		buf_append_str(&x->out, STR("0\r\n\r\n"));
		if (buf_status(&x->out) != STATUS_OK)
			http_abort(x);
	}
	exchange_send(x);
	return x->conn->lost ? STATUS_CANCELLED : STATUS_OK;
}

enum status
http_send(struct http_exchange *x, struct str body)
{
	TRY(http_start(x, body.len));
	TRY(http_write(x, body));
	return http_finish(x);
}

void
http_abort(struct http_exchange *x)
{
	conn_abort(x->conn);
}

void
exchange_refuse(struct http_exchange *x, int status, const char *reason)
{
	size_t phrase = find_phrase(status);
	char body[256];
	int n;

	assert(phrase != SIZE_MAX && phrases[phrase].error);
	n = snprintf(body, sizeof(body), "{\"error\":\"%s\",\"reason\":\"%s\"}\n",
		     phrases[phrase].error, reason);
	x->conn->keep = false;
	x->skipping = true;
	x->started = x->finished = true;
	buf_printf(&x->out, "HTTP/1.1 %d %s\r\n", status, phrases[phrase].phrase);
	put_header(&x->out, STR("Date"), loop_date(x->loop));
	put_header(&x->out, STR("Server"), str_from_cstr(x->loop->config->server_name));
	put_header(&x->out, STR("Content-Type"), STR("application/json"));
	buf_printf(&x->out, "Content-Length: %d\r\nConnection: close\r\n\r\n%s", n, body);
	if (buf_status(&x->out) != STATUS_OK)
		conn_abort(x->conn);
	else
		exchange_send(x);
}
