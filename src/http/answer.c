/*
 * The answer: the status line, the headers, and the framing of the body. The session sends the
 * bytes.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/quote.h"
#include "http/conn.h"
#include "http/gzip.h"

enum {
	CHUNK_TAIL_BYTES = 2, /* "\r\n" */
	CHUNK_HEAD_BYTES = 6, /* "7fff\r\n"; answer_close_chunk() writes it */
	/* compressed without a pause; then other fibers have their turn */
	GZIP_SLICE_BYTES = 4 * 1024,
	GZIP_BYTES_A_STEP = 4,
	WRITE_BYTES_A_STEP = 64,
	HEADERS_BEYOND_BYTES = 64 * 1024, /* that headers may pass the request's memory by */
	HEADER_SHOWN_BYTES = 40, /* bytes of a header's name that the reason of a 500 shows */
};

/* A status, its phrase, and the name that CouchDB gives the error. */
/* clang-format off */
#define ANSWER_PHRASES(P)                                                                          \
	P(200, "OK", NULL)                                                                         \
	P(201, "Created", NULL)                                                                    \
	P(202, "Accepted", NULL)                                                                   \
	P(204, "No Content", NULL)                                                                 \
	P(206, "Partial Content", NULL)                                                            \
	P(301, "Moved Permanently", NULL)                                                          \
	P(302, "Found", NULL)                                                                      \
	P(304, "Not Modified", NULL)                                                               \
	P(400, "Bad Request", "bad_request")                                                       \
	P(401, "Unauthorized", "unauthorized")                                                     \
	P(403, "Forbidden", "forbidden")                                                           \
	P(404, "Object Not Found", "not_found")                                                    \
	P(405, "Method Not Allowed", "method_not_allowed")                                         \
	P(406, "Not Acceptable", "not_acceptable")                                                 \
	P(408, "Request Timeout", "request_timeout")                                               \
	P(409, "Conflict", "conflict")                                                             \
	P(410, "Gone", "gone")                                                                     \
	P(411, "Length Required", "length_required")                                               \
	P(412, "Precondition Failed", "precondition_failed")                                       \
	P(413, "Request Entity Too Large", "too_large")                                            \
	P(414, "Request-URI Too Long", "uri_too_long")                                             \
	P(415, "Unsupported Media Type", "bad_content_type")                                       \
	P(416, "Requested Range Not Satisfiable", "requested_range_not_satisfiable")               \
	P(417, "Expectation Failed", "expectation_failed")                                         \
	P(429, "Too Many Requests", "too_many_requests")                                           \
	P(431, "Request Header Fields Too Large", "headers_too_large")                             \
	P(500, "Internal Server Error", "internal_server_error")                                   \
	P(501, "Not Implemented", "not_implemented")                                               \
	P(503, "Service Unavailable", "service_unavailable")                                       \
	P(504, "Gateway Timeout", "timeout")                                                       \
	P(505, "HTTP Version Not Supported", "http_version_not_supported") \
	P(507, "Insufficient Storage", "insufficient_storage")
/* clang-format on */

#define ANSWER_PHRASE_ROW(status_, phrase_, error_)                                                \
	{ .status = (status_), .phrase = (phrase_), .error = (error_) },
#define ANSWER_PHRASE_CODE(status_, phrase_, error_) #status_,

static const struct {
	int status;
	const char *phrase;
	const char *error;
} phrases[] = { ANSWER_PHRASES(ANSWER_PHRASE_ROW) };

static const char *const codes[] = { ANSWER_PHRASES(ANSWER_PHRASE_CODE) "other" };

METRIC_COUNTERS(answers, "frond_http_answers_total", METRIC_NUMBER,
		"Answers by their status code; other: a code that has no name here.", "code",
		codes);

static size_t
answer_find_phrase(int status)
{
	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
		if (phrases[i].status == status)
			return i;
	return SIZE_MAX;
}

/* ---- Chunks ---- */

/*
 * Writes the size of the open chunk in front of it. A chunk grows at the end of the output until it
 * is closed, so its size is known only now. An empty chunk would end the body, so this removes it.
 */
static void
answer_close_chunk(struct http_exchange *x)
{
	char size[CHUNK_HEAD_BYTES + 1];
	size_t n;

	if (x->chunk_at == SIZE_MAX)
		return;
	assert(x->chunk_at + CHUNK_HEAD_BYTES <= x->session.out.len);
	n = x->session.out.len - x->chunk_at - CHUNK_HEAD_BYTES;
	assert(n <= CONN_CHUNK_BYTES && "its size has four digits");
	if (n == 0) {
		x->session.out.len = x->chunk_at;
	} else {
		snprintf(size, sizeof(size), "%04x\r\n", (unsigned)n & 0xffff);
		memcpy(x->session.out.ptr + x->chunk_at, size, CHUNK_HEAD_BYTES);
		buf_append_str(&x->session.out, STR("\r\n"));
	}
	x->chunk_at = SIZE_MAX;
}

void
exchange_send(struct http_exchange *x)
{
	answer_close_chunk(x);
	net_session_send(&x->session);
}

/* ---- Headers ---- */

/*
 * Turns the answer into an error with this reason; a status of 500 or more that was set stays. Only
 * the first reason counts.
 */
PRINTF(3, 4)
static void
answer_break_with(struct http_exchange *x, int status, const char *fmt, ...)
{
	va_list args;

	if (x->broken)
		return;
	x->broken = true;
	x->broken_status = status;
	va_start(args, fmt);
	(void)vsnprintf(x->broken_reason, sizeof(x->broken_reason), fmt, args);
	va_end(args);
}

#define answer_break(x, ...) answer_break_with((x), 500, __VA_ARGS__)

void
http_set_status(struct http_exchange *x, int status)
{
	if (status >= 200 && status <= 999)
		x->status = status;
	else
		answer_break(x, "The answer's status is %d.", status);
}

static bool
answer_is_plain(struct str s)
{
	return !memchr(s.ptr, '\r', s.len) && !memchr(s.ptr, '\n', s.len) &&
	       !memchr(s.ptr, '\0', s.len);
}

/* A byte in each of the eight of a word. */
#define EIGHT(byte) (UINT64_C(0x0101010101010101) * (byte))

/*
 * True if each byte of the word is a visible ASCII character other than the colon. Each term of
 * `wrong` sets the high bit of a byte that is not: the first of one beyond ASCII, the second of one
 * below '!', the third of 0x7f, the fourth of a colon. A borrow from a wrong byte may set the high
 * bit of its neighbour too, which does not matter, since the word is refused then anyway.
 */
static bool
answer_is_name_word(uint64_t word)
{
	uint64_t del = word ^ EIGHT(0x7f), colon = word ^ EIGHT(':');
	uint64_t wrong = word | (word - EIGHT('!')) | (del - EIGHT(1)) | (colon - EIGHT(1));

	return !(wrong & EIGHT(0x80));
}

/* True if `s` is not empty and consists of visible ASCII characters other than the colon. */
static bool
answer_is_name(struct str s)
{
	static const bool allowed[256] = {
		['!' ... ':' - 1] = true,
		[':' + 1 ... '~'] = true,
	};
	size_t i = 0;

	for (uint64_t word; s.len - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, s.ptr + i, sizeof(word));
		if (!answer_is_name_word(word))
			return false;
	}
	for (; i < s.len; i++)
		if (!allowed[(uint8_t)s.ptr[i]])
			return false;
	return s.len > 0;
}

static bool
answer_is_servers_own(struct str name)
{
	return str_eq_nocase(name, STR("Date")) || str_eq_nocase(name, STR("Server")) ||
	       str_eq_nocase(name, STR("Content-Length")) ||
	       str_eq_nocase(name, STR("Transfer-Encoding")) ||
	       str_eq_nocase(name, STR("Connection"));
}

/* True if the request's own limit of memory would let so many bytes of headers be kept. */
static bool
answer_has_room(const struct http_exchange *x, size_t bytes)
{
	const struct arena *arena = x->session.task->arena;

	return arena_used_bytes(arena) + bytes <= arena_limit_bytes(arena);
}

void
http_add_header(struct http_exchange *x, struct str name, struct str value)
{
	struct http_header h;

	if (x->started || answer_is_servers_own(name))
		return;
	if (!answer_is_name(name)) {
		answer_break(x, "The answer has a header with a name that cannot be sent.");
		return;
	}
	if (value.len && !answer_is_plain(value)) {
		answer_break(x, "The answer's header %.*s has a value that cannot be sent.",
			     HEADER_SHOWN_BYTES < name.len ? HEADER_SHOWN_BYTES : (int)name.len,
			     name.ptr);
		return;
	}
	if (x->header_count == EXCHANGE_HEADERS) {
		answer_break(x, "The answer has too many headers: the limit is %d.",
			     EXCHANGE_HEADERS);
		return;
	}
	/* The answer that says that the request has taken too much memory has headers, too. */
	h.name = arena_dup_beyond(x->session.task->arena, name, HEADERS_BEYOND_BYTES);
	h.value = arena_dup_beyond(x->session.task->arena, value, HEADERS_BEYOND_BYTES);
	if (h.name.ptr && h.value.ptr)
		x->headers[x->header_count++] = h;
	else if (answer_has_room(x, name.len + value.len))
		answer_break_with(x, 503, "out of memory");
	else
		answer_break(x,
			     "The answer's headers need too much memory: the limit is %zu bytes.",
			     arena_limit_bytes(x->session.task->arena));
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

int
http_status(const struct http_exchange *x)
{
	return x->status;
}

bool
http_is_cut(const struct http_exchange *x)
{
	return !x->finished && x->conn->net.lost;
}

struct str
http_answer_header(const struct http_exchange *x, struct str name)
{
	for (size_t i = 0; i < x->header_count; i++)
		if (str_eq_nocase(x->headers[i].name, name))
			return x->headers[i].value;
	return (struct str){ 0 };
}

uint64_t
http_bytes_in(const struct http_exchange *x)
{
	return x->body_taken;
}

uint64_t
http_bytes_out(const struct http_exchange *x)
{
	return x->body_given;
}

static void
answer_put_header(struct buf *out, struct str name, struct str value)
{
	char *to;

	if (!buf_reserve(out, name.len + value.len + 4))
		return;
	to = out->ptr + out->len;
	memcpy(to, name.ptr, name.len);
	to += name.len;
	*to++ = ':';
	*to++ = ' ';
	if (value.len)
		memcpy(to, value.ptr, value.len);
	to += value.len;
	*to++ = '\r';
	*to++ = '\n';
	out->len = (size_t)(to - out->ptr);
}

/* Returns the current time as the Date header writes it. */
static struct str
answer_date(struct http_loop *l)
{
	uint64_t now_s = clock_wall_ms() / 1000;

	if (now_s != l->date_s || !l->date[0]) {
		static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
		static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
						  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
		time_t t = (time_t)now_s;
		struct tm tm;

		gmtime_r(&t, &tm);
		snprintf(l->date, sizeof(l->date), "%s, %02d %s %04d %02d:%02d:%02d GMT",
			 days[tm.tm_wday], tm.tm_mday % 100, months[tm.tm_mon],
			 (tm.tm_year + 1900) % 10000, tm.tm_hour % 100, tm.tm_min % 100,
			 tm.tm_sec % 100);
		l->date_s = now_s;
	}
	return str_from_cstr(l->date);
}

/* Tells the client how to find the end of the body. */
static void
answer_put_framing(struct http_exchange *x, uint64_t length)
{
	bool counts = x->status != 204 && x->status != 304;

	x->bodiless = !counts || str_eq(parser_method(&x->parser), STR("HEAD"));
	x->remaining = length;
	if (!counts)
		return;
	if (length != HTTP_LENGTH_UNKNOWN) {
		buf_append_str(&x->session.out, STR("Content-Length: "));
		buf_append_u64(&x->session.out, length);
		buf_append_str(&x->session.out, STR("\r\n"));
	} else if (parser_minor_version(&x->parser) > 0) {
		x->chunked = true;
		answer_put_header(&x->session.out, STR("Transfer-Encoding"), STR("chunked"));
	} else if (!x->bodiless) {
		x->conn->keep = false;
	}
}

/* Decides whether the connection can carry another request, and tells the client. */
static void
answer_put_connection(struct http_exchange *x)
{
	struct conn *c = x->conn;
	uint64_t unread = x->parser.content_length > x->body_taken
				  ? x->parser.content_length - x->body_taken
				  : 0;

	x->body_answered = x->body_taken;
	if (!x->continued || x->parser.refusal || c->net.loop->stopping ||
	    (!x->parser.complete && unread > CONN_SKIP_BYTES))
		c->keep = false;
	if (!c->keep)
		answer_put_header(&x->session.out, STR("Connection"), STR("close"));
	else if (parser_minor_version(&x->parser) == 0)
		answer_put_header(&x->session.out, STR("Connection"), STR("keep-alive"));
}

static void
answer_put_head(struct http_exchange *x, uint64_t length)
{
	size_t phrase = answer_find_phrase(x->status);

	metric_add_at(&answers,
		      phrase < METRIC_COUNT_OF(phrases) ? phrase : METRIC_COUNT_OF(phrases), 1);
	buf_append_str(&x->session.out, STR("HTTP/1.1 "));
	buf_append_u64(&x->session.out, (uint64_t)x->status);
	buf_append_byte(&x->session.out, ' ');
	if (phrase != SIZE_MAX)
		buf_append_cstr(&x->session.out, phrases[phrase].phrase);
	buf_append_str(&x->session.out, STR("\r\n"));
	answer_put_header(&x->session.out, STR("Date"), answer_date(x->loop));
	answer_put_header(&x->session.out, STR("Server"),
			  str_from_cstr(x->loop->config->server_name));
	for (size_t i = 0; i < x->header_count; i++)
		answer_put_header(&x->session.out, x->headers[i].name, x->headers[i].value);
	answer_put_framing(x, length);
	answer_put_connection(x);
	buf_append_str(&x->session.out, STR("\r\n"));
}

void
http_allow_gzip(struct http_exchange *x, int level)
{
	x->gzip_level = level;
}

static bool
answer_has_header(const struct http_exchange *x, struct str name)
{
	return http_answer_header(x, name).ptr != NULL;
}

/* If memory is short, the body is sent uncompressed: returns false, and nothing is refused. */
static bool
answer_take_gzip(struct http_exchange *x)
{
	struct budget_part *part = &x->session.part;
	bool refused = part->refused, exceeded = part->exceeded;

	if (!budget_use(part, GZIP_MEMORY_BYTES)) {
		part->refused = refused;
		part->exceeded = exceeded;
		return false;
	}
	x->gzip = gzip_new(x->gzip_level);
	if (!x->gzip)
		budget_unuse(part, GZIP_MEMORY_BYTES);
	return x->gzip;
}

/* Decides whether the body is compressed. If it is, `*length` becomes HTTP_LENGTH_UNKNOWN. */
static void
answer_begin_gzip(struct http_exchange *x, uint64_t *length)
{
	if (!x->gzip_level || *length < HTTP_GZIP_LEAST_BYTES || x->status == 204 ||
	    x->status == 304 || parser_minor_version(&x->parser) == 0 ||
	    answer_has_header(x, STR("Content-Encoding")))
		return;
	http_add_header(x, STR("Vary"), STR("Accept-Encoding"));
	if (!gzip_accepted(parser_find_header(&x->parser, STR("Accept-Encoding"))))
		return;
	if (!answer_take_gzip(x))
		return;
	http_set_header(x, STR("Content-Encoding"), STR("gzip"));
	*length = HTTP_LENGTH_UNKNOWN;
}

/* ---- Errors that the server answers in its own name ---- */

enum {
	/* of the body of such an answer: the reason may need an escape for each byte */
	ANSWER_ERROR_BYTES = 2 * QUOTE_SHOWN_BYTES + 128,
};

/* Seconds after which a client may try again that was refused because the server is busy. */
#define ANSWER_RETRY_AFTER_S "5"

/* Logs an answer that means that the server has failed, at most one line in LOG_LIMIT_NS. */
static void
answer_log_failure(const char *event, int status, const char *reason)
{
	static struct log_limit limit;
	uint64_t before;

	if (status >= 500 && log_limit_pass(&limit, &before))
		log_event(status == 500 ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, event,
			  "code=%d reason=\"%s\" before=%llu", status,
			  QUOTE_SHOW(str_from_cstr(reason)), (unsigned long long)before);
}

/*
 * Writes the JSON of an error. The reason may hold bytes that a client sent. The buffer's memory is
 * the caller's, and always suffices.
 */
static struct str
answer_write_error(int status, const char *reason, char room[ANSWER_ERROR_BYTES])
{
	struct buf body = { .ptr = room,
			    .cap = ANSWER_ERROR_BYTES,
			    .max_bytes = ANSWER_ERROR_BYTES };
	size_t phrase = answer_find_phrase(status);

	assert(phrase != SIZE_MAX && phrases[phrase].error);
	buf_append_cstr(&body, "{\"error\":\"");
	buf_append_cstr(&body, phrases[phrase].error);
	buf_append_cstr(&body, "\",\"reason\":");
	quote_json(&body, str_from_cstr(QUOTE_SHOW(str_from_cstr(reason))));
	buf_append_cstr(&body, "}\n");
	assert(buf_status(&body) == STATUS_OK);
	return buf_str(&body);
}

/*
 * Answers that memory is short, from what exchange_take() has set aside, and ends the connection.
 * `before` is how long the output was before the answer that could not be written. Resets the
 * connection if even that memory is in use, by output that has not been sent.
 */
static enum status
answer_out_of_memory(struct http_exchange *x, size_t before)
{
	static const char body[] =
		"{\"error\":\"service_unavailable\",\"reason\":\"out of memory\"}\n";
	struct buf *out = &x->session.out;

	answer_log_failure("answer_out_of_memory", 503, "out of memory");
	out->len = before;
	out->failed = STATUS_OK;
	x->chunk_at = SIZE_MAX;
	x->status = 503;
	x->started = x->finished = x->out_of_memory = true;
	x->conn->keep = false;
	buf_append_cstr(out, "HTTP/1.1 503 Service Unavailable\r\n"
			     "Content-Type: application/json\r\nConnection: close\r\n"
			     "Content-Length: ");
	buf_append_u64(out, sizeof(body) - 1);
	buf_append_cstr(out, "\r\n\r\n");
	if (!str_eq(parser_method(&x->parser), STR("HEAD")))
		buf_append_cstr(out, body);
	if (buf_status(out) != STATUS_OK) {
		out->len = before;
		net_conn_abort(&x->conn->net);
	} else {
		exchange_send(x);
	}
	return STATUS_CANCELLED;
}

/*
 * Sends a 5xx with a reason in place of an answer that cannot be sent or has no body, and logs the
 * reason.
 */
static enum status
answer_start_broken(struct http_exchange *x, size_t before)
{
	struct http_header type = { STR("Content-Type"), STR("application/json") };
	char room[ANSWER_ERROR_BYTES];
	struct str body;

	if (x->status < 500 || answer_find_phrase(x->status) == SIZE_MAX)
		x->status = x->broken_status;
	answer_log_failure("answer_broken", x->status, x->broken_reason);
	body = answer_write_error(x->status, x->broken_reason, room);
	x->headers[0] = type;
	x->header_count = 1;
	x->started = true;
	answer_put_head(x, body.len);
	if (!x->bodiless)
		buf_append_str(&x->session.out, body);
	return buf_status(&x->session.out) == STATUS_OK ? STATUS_OK
							: answer_out_of_memory(x, before);
}

enum status
http_start(struct http_exchange *x, uint64_t length)
{
	size_t before = x->session.out.len;

	if (x->started)
		return STATUS_INVALID;
	if (x->conn->net.lost)
		return STATUS_CANCELLED;
	/* Nobody is told that the server has failed without being told why. */
	if (x->status >= 500 && length == 0)
		answer_break(x, "The request has failed, and no reason was given.");
	if (!x->broken)
		answer_begin_gzip(x, &length);
	if (x->broken)
		return answer_start_broken(x, before);
	x->started = true;
	answer_put_head(x, length);
	return buf_status(&x->session.out) == STATUS_OK ? STATUS_OK
							: answer_out_of_memory(x, before);
}

/* ---- Body ---- */

/* Parks while more bytes are unsent than the connection may hold. */
static enum status
answer_wait_unsent(struct http_exchange *x, size_t most)
{
	if (net_session_unsent(&x->session) <= most)
		return x->conn->net.lost ? STATUS_CANCELLED : STATUS_OK;
	/*
	 * The loop sends the output while this fiber waits, so the output must end with a whole
	 * chunk.
	 */
	answer_close_chunk(x);
	return net_session_wait_unsent(&x->session, most);
}

/* There is no memory for the next bytes. The chunk that is open is not finished. */
static enum status
answer_cut_chunks(struct http_exchange *x)
{
	x->chunk_at = SIZE_MAX;
	answer_log_failure("answer_cut", 500, "out of memory");
	http_abort(x);
	return STATUS_CANCELLED;
}

static enum status
answer_put_chunked(struct http_exchange *x, struct str data)
{
	size_t most = net_session_output_limit(&x->session);
	/* With little output allowed, a chunk is half of it: its buffers are smaller. */
	size_t half = most / 2 - CHUNK_HEAD_BYTES - CHUNK_TAIL_BYTES;
	size_t chunk = half < CONN_CHUNK_BYTES ? half : CONN_CHUNK_BYTES;

	while (data.len) {
		struct str part;
		size_t used;

		if (x->chunk_at == SIZE_MAX) {
			x->chunk_at = x->session.out.len;
			buf_append(&x->session.out, "0000\r\n", CHUNK_HEAD_BYTES);
			if (buf_status(&x->session.out) != STATUS_OK)
				return answer_cut_chunks(x);
		}
		used = x->session.out.len - x->chunk_at - CHUNK_HEAD_BYTES;
		if (used >= chunk) {
			answer_close_chunk(x);
			continue;
		}
		part = str_of(data.ptr, data.len < chunk - used ? data.len : chunk - used);
		data = str_skip(data, part.len);
		buf_append_str(&x->session.out, part);
		if (buf_status(&x->session.out) != STATUS_OK)
			return answer_cut_chunks(x);
		if (used + part.len >= NET_FLUSH_BYTES)
			exchange_send(x);
		TRY(answer_wait_unsent(x, most));
	}
	return x->conn->net.lost ? STATUS_CANCELLED : STATUS_OK;
}

/* Sends bytes of the body as they are, in chunks if the answer is chunked. */
static enum status
answer_put_body(struct http_exchange *x, struct str data)
{
	return x->chunked ? answer_put_chunked(x, data) : net_session_put(&x->session, data);
}

static enum status
answer_put_gzip(struct http_exchange *x, enum gzip_step step, struct str data)
{
	struct str out;

	while ((out = gzip_next(x->gzip, step, &data)).len)
		TRY(answer_put_body(x, out));
	return STATUS_OK;
}

/*
 * Compresses one slice at a time and counts steps between slices, because compressing is slow
 * compared with everything else on a loop.
 */
static enum status
answer_put_compressed(struct http_exchange *x, struct str data)
{
	while (data.len) {
		size_t n = data.len < GZIP_SLICE_BYTES ? data.len : GZIP_SLICE_BYTES;

		TRY(answer_put_gzip(x, GZIP_MORE, str_of(data.ptr, n)));
		data = str_skip(data, n);
		step_pause(GZIP_SLICE_BYTES / GZIP_BYTES_A_STEP);
	}
	return x->conn->net.lost ? STATUS_CANCELLED : STATUS_OK;
}

enum status
http_write(struct http_exchange *x, struct str data)
{
	if (!x->started || x->finished)
		return STATUS_INVALID;
	if (x->conn->net.lost)
		return STATUS_CANCELLED;
	if (x->broken)
		return STATUS_OK; /* the client has got a complete 500 instead of this answer */
	if (x->remaining != HTTP_LENGTH_UNKNOWN) {
		if (data.len > x->remaining) {
			http_abort(x);
			return STATUS_INVALID;
		}
		x->remaining -= data.len;
	}
	if (x->bodiless)
		return STATUS_OK;
	x->body_given += data.len;
	/*
	 * A client that reads as fast as the body is written never makes this fiber wait. This
	 * must not fail for the limit of steps: it may be the answer that tells of it.
	 */
	step_pause((uint32_t)(1 + data.len / WRITE_BYTES_A_STEP));
	if (x->conn->net.lost)
		return STATUS_CANCELLED;
	return x->gzip ? answer_put_compressed(x, data) : answer_put_body(x, data);
}

size_t
http_write_now(struct http_exchange *x, struct str data)
{
	size_t n;

	if (!x->started || x->finished || x->broken || x->bodiless || x->chunked || x->gzip)
		return 0;
	if (x->remaining != HTTP_LENGTH_UNKNOWN && data.len > x->remaining)
		return 0;
	n = net_session_put_now(&x->session, data);
	if (x->remaining != HTTP_LENGTH_UNKNOWN)
		x->remaining -= n;
	x->body_given += n;
	step_pause((uint32_t)(1 + n / WRITE_BYTES_A_STEP));
	return n;
}

void
http_flush(struct http_exchange *x)
{
	if (!x->started)
		return;
	if (x->gzip && !x->bodiless && !x->finished &&
	    answer_put_gzip(x, GZIP_FLUSH, (struct str){ NULL, 0 }) != STATUS_OK)
		return; /* the client has gone; the next write will return STATUS_CANCELLED */
	exchange_send(x);
}

enum status
http_finish(struct http_exchange *x)
{
	if (!x->started || x->finished)
		return STATUS_INVALID;
	if (x->conn->net.lost)
		return STATUS_CANCELLED;
	if (!x->broken && !x->bodiless && x->remaining != HTTP_LENGTH_UNKNOWN && x->remaining > 0) {
		http_abort(x);
		return STATUS_INVALID;
	}
	if (x->gzip && !x->broken && !x->bodiless)
		TRY(answer_put_gzip(x, GZIP_END, (struct str){ NULL, 0 }));
	x->finished = true;
	if (x->chunked && !x->bodiless) {
		answer_close_chunk(x);
		buf_append_str(&x->session.out, STR("0\r\n\r\n"));
		if (buf_status(&x->session.out) != STATUS_OK)
			http_abort(x);
	}
	exchange_send(x);
	return x->conn->net.lost ? STATUS_CANCELLED : STATUS_OK;
}

enum status
http_send(struct http_exchange *x, struct str body)
{
	size_t before = x->session.out.len;

	TRY(http_start(x, body.len));
	/* While nothing was sent, a lack of memory for the body can still be answered. */
	if (body.len < NET_FLUSH_BYTES && !x->bodiless && !x->chunked && !x->broken &&
	    !buf_reserve(&x->session.out, body.len))
		return answer_out_of_memory(x, before);
	TRY(http_write(x, body));
	return http_finish(x);
}

void
http_abort(struct http_exchange *x)
{
	/*
	 * The handler ends because the server has answered in its place: for lack of memory, or
	 * because the body came too slowly. That answer is complete.
	 */
	if (!x->out_of_memory && !x->given_up)
		net_conn_abort(&x->conn->net);
}

void
exchange_refuse(struct http_exchange *x, int status, const char *reason)
{
	size_t before = x->session.out.len;
	char room[ANSWER_ERROR_BYTES];
	struct str body = answer_write_error(status, reason, room);

	answer_log_failure("request_refused", status, reason);
	metric_add_at(&answers, answer_find_phrase(status), 1);
	x->conn->keep = false;
	x->skipping = true;
	x->started = x->finished = true;
	buf_printf(&x->session.out, "HTTP/1.1 %d %s\r\n", status,
		   phrases[answer_find_phrase(status)].phrase);
	answer_put_header(&x->session.out, STR("Date"), answer_date(x->loop));
	answer_put_header(&x->session.out, STR("Server"),
			  str_from_cstr(x->loop->config->server_name));
	answer_put_header(&x->session.out, STR("Content-Type"), STR("application/json"));
	/* The server is busy with other requests, so the client should not try again at once. */
	if (status == 429 || status == 503)
		answer_put_header(&x->session.out, STR("Retry-After"), STR(ANSWER_RETRY_AFTER_S));
	buf_append_cstr(&x->session.out, "Content-Length: ");
	buf_append_u64(&x->session.out, body.len);
	buf_append_cstr(&x->session.out, "\r\nConnection: close\r\n\r\n");
	buf_append_str(&x->session.out, body);
	if (buf_status(&x->session.out) != STATUS_OK)
		(void)answer_out_of_memory(x, before);
	else
		exchange_send(x);
}

void
exchange_give_up(struct http_exchange *x, int status, const char *limit, const char *reason)
{
	log_event(LOG_LEVEL_INFO, "slow_body", "peer=%s limit=%s bytes=%llu", x->conn->net.peer,
		  limit, (unsigned long long)x->body_taken);
	if (x->conn->net.lost)
		return;
	if (x->started) {
		net_conn_abort(&x->conn->net);
		return;
	}
	x->given_up = true;
	x->status = status;
	exchange_refuse(x, status, reason);
}
