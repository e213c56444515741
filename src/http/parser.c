#include "http/parser.h"

#include <assert.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/metric.h"
#include "http/escape.h"

enum {
	PARSER_FIRST_SPANS = 16,
};

static int
parser_refuse(struct parser *p, int status, const char *reason)
{
	if (!p->refusal) {
		p->refusal = status;
		p->reason = reason;
	}
	return -1;
}

/* Refuses a request that exceeds a limit. The reason names `what` and the value of the limit. */
static int
parser_refuse_limit(struct parser *p, int status, const char *what, size_t limit, const char *unit)
{
	(void)snprintf(p->limit_reason, sizeof(p->limit_reason), "%s: the limit is %zu%s.", what,
		       limit, unit);
	return parser_refuse(p, status, p->limit_reason);
}

/* ---- The check of line ends ---- */

/*
 * Replaces an earlier refusal: what this check finds lies before the byte at which llhttp stopped.
 */
static bool
parser_refuse_framing(struct parser *p, int status, const char *reason)
{
	p->refusal = status;
	p->reason = reason;
	return false;
}

/* The first byte in [at, end) that is not greater than CR; `end` if there is none. */
static const char *
parser_skip_plain(const char *at, const char *end)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t word;

	for (; end - at >= (ptrdiff_t)sizeof(word); at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		/* A borrow may mark a byte that is greater, but only beside one that is not. */
		if ((word - ones * ('\r' + 1)) & ~word & ones * 0x80)
			break;
	}
	while (at < end && (unsigned char)*at > '\r')
		at++;
	return at;
}

/*
 * Checks the bytes that are not body: CR and LF come together, no line begins with white space and
 * there is no NUL.
 */
static bool
parser_check_framing(struct parser *p, const char *end)
{
	bool after_cr = p->after_cr;
	bool after_lf = p->after_lf;

	for (const char *at = p->unseen; at < end; at++) {
		unsigned char c;

		/* Nearly every byte neither ends nor begins a line, so it cannot be wrong. */
		if (!after_cr && !after_lf && (at = parser_skip_plain(at, end)) == end)
			break;
		c = (unsigned char)*at;
		if (c == '\n' ? !after_cr : after_cr)
			return parser_refuse_framing(p, 400, "Lines have to end in CR LF.");
		if (c == '\0')
			return parser_refuse_framing(p, 400, "NUL in a request.");
		if (after_lf && (c == ' ' || c == '\t'))
			return parser_refuse_framing(p, 400, "Folded lines are not accepted.");
		after_cr = c == '\r';
		after_lf = c == '\n';
	}
	p->after_cr = after_cr;
	p->after_lf = after_lf;
	p->gap += (size_t)(end - p->unseen);
	if (p->gap > 2 * p->header_bytes) {
		METRIC_REFUSED("header_bytes");
		p->refusal = 0; /* this lies before the byte at which llhttp stopped */
		(void)parser_refuse_limit(p, 431, "Chunk extensions or trailers are too large",
					  2 * p->header_bytes, " bytes");
		return false;
	}
	p->unseen = end;
	return true;
}

/* ---- What llhttp calls ---- */

static bool
parser_take_text(struct parser *p, const char *at, size_t n)
{
	buf_append(&p->text, at, n);
	if (buf_status(&p->text) == STATUS_OK)
		return true;
	/* What has been fed to llhttp is counted, and it is no more than the text may hold. */
	assert(buf_status(&p->text) == STATUS_NOMEM);
	parser_refuse(p, 503, "Out of memory.");
	return false;
}

static int
parser_on_url(llhttp_t *llhttp, const char *at, size_t n)
{
	struct parser *p = llhttp->data;

	if (p->text.len + n > PARSER_TARGET_BYTES)
		return parser_refuse_limit(p, 414, "The request's target is too long",
					   PARSER_TARGET_BYTES, " bytes");
	if (!parser_take_text(p, at, n))
		return -1;
	p->target_len = p->text.len;
	return 0;
}

static int
parser_on_url_complete(llhttp_t *llhttp)
{
	struct parser *p = llhttp->data;

	p->target_done = true;
	return 0;
}

static struct parser_span *
parser_new_span(struct parser *p)
{
	if (p->span_count == PARSER_HEADERS) {
		parser_refuse_limit(p, 431, "The request has too many headers", PARSER_HEADERS, "");
		return NULL;
	}
	if (p->span_count == p->span_cap) {
		size_t cap = p->span_cap ? p->span_cap * 2 : PARSER_FIRST_SPANS;
		struct parser_span *spans = mem_realloc(p->spans, cap * sizeof(*spans));

		if (!spans) {
			parser_refuse(p, 503, "Out of memory.");
			return NULL;
		}
		p->spans = spans;
		p->span_cap = cap;
	}
	p->spans[p->span_count] = (struct parser_span){ .name_at = (uint32_t)p->text.len };
	return &p->spans[p->span_count++];
}

static int
parser_on_header_field(llhttp_t *llhttp, const char *at, size_t n)
{
	struct parser *p = llhttp->data;
	struct parser_span *span;

	if (p->head_done)
		return 0; /* trailers are ignored; parser_check_framing() limits their size */
	if (p->in_value || p->span_count == 0) {
		p->in_value = false;
		span = parser_new_span(p);
		if (!span)
			return -1;
	} else {
		span = &p->spans[p->span_count - 1];
	}
	span->name_len += (uint32_t)n;
	return parser_take_text(p, at, n) ? 0 : -1;
}

static int
parser_on_header_field_complete(llhttp_t *llhttp)
{
	struct parser *p = llhttp->data;

	if (!p->head_done &&
	    (p->in_value || p->span_count == 0 || p->spans[p->span_count - 1].name_len == 0))
		return parser_refuse(p, 400, "A header has no name.");
	return 0;
}

static int
parser_on_header_value(llhttp_t *llhttp, const char *at, size_t n)
{
	struct parser *p = llhttp->data;
	struct parser_span *span;

	if (p->head_done)
		return 0;
	assert(p->span_count > 0);
	span = &p->spans[p->span_count - 1];
	if (!p->in_value)
		span->value_at = (uint32_t)p->text.len;
	p->in_value = true;
	span->value_len += (uint32_t)n;
	return parser_take_text(p, at, n) ? 0 : -1;
}

/*
 * llhttp gives no value callback for a header without a value. This callback marks the value as
 * seen, so that the next name is not appended to the name of this header.
 */
static int
parser_on_header_value_complete(llhttp_t *llhttp)
{
	struct parser *p = llhttp->data;

	p->in_value = true;
	return 0;
}

/* True if the header is called so. Most are told apart by the length of their names. */
static bool
parser_header_is(const struct parser *p, size_t i, struct str name)
{
	const struct parser_span *span = &p->spans[i];

	return span->name_len == name.len &&
	       str_eq_nocase(str_of(p->text.ptr + span->name_at, span->name_len), name);
}

static size_t
parser_count_headers(const struct parser *p, struct str name)
{
	size_t n = 0;

	for (size_t i = 0; i < p->span_count; i++)
		n += parser_header_is(p, i, name);
	return n;
}

/*
 * Accepts the origin form, the absolute form, and the asterisk of OPTIONS (RFC 9112, section 3.2).
 */
static int
parser_check_target(struct parser *p)
{
	struct str target = parser_target(p);
	struct str rest;
	const char *slash;

	p->path_at = 0;
	if (memchr(target.ptr, '#', target.len))
		return parser_refuse(p, 400, "A request's target has no fragment.");
	if (target.ptr[0] == '/' || str_eq(target, STR("*")))
		return 0;
	if (target.len > 7 && str_eq_nocase(str_of(target.ptr, 7), STR("http://")))
		rest = str_skip(target, 7);
	else if (target.len > 8 && str_eq_nocase(str_of(target.ptr, 8), STR("https://")))
		rest = str_skip(target, 8);
	else
		return parser_refuse(p, 400, "The request's target has to be a path.");
	slash = memchr(rest.ptr, '/', rest.len);
	if (!slash)
		return parser_refuse(p, 400, "The request's target has to be a path.");
	p->path_at = (size_t)(slash - target.ptr);
	return 0;
}

/* Refuses a request whose body two readers could give two lengths (RFC 9112, section 6.3). */
static int
parser_check_length(struct parser *p)
{
	struct str coding = parser_find_header(p, STR("Transfer-Encoding"));
	size_t lengths = parser_count_headers(p, STR("Content-Length"));

	if (lengths > 1 || (lengths && coding.ptr))
		return parser_refuse(p, 400, "The body's length is given more than once.");
	if (coding.ptr) {
		if (p->llhttp.http_minor == 0)
			return parser_refuse(p, 400, "HTTP/1.0 has no Transfer-Encoding.");
		if (parser_count_headers(p, STR("Transfer-Encoding")) > 1)
			return parser_refuse(p, 400, "More than one Transfer-Encoding.");
		if (!str_eq_nocase(coding, STR("chunked")))
			return parser_refuse(p, 501,
					     "Only the transfer coding \"chunked\" is known.");
	}
	p->chunked = coding.ptr != NULL;
	p->content_length = lengths ? p->llhttp.content_length : 0;
	return 0;
}

static int
parser_check_expect(struct parser *p)
{
	struct str expect = parser_find_header(p, STR("Expect"));

	if (!expect.ptr || p->llhttp.http_minor == 0)
		return 0;
	if (!str_eq_nocase(expect, STR("100-continue")))
		return parser_refuse(p, 417, "Only the expectation \"100-continue\" can be met.");
	p->expect_continue = p->chunked || p->content_length > 0;
	return 0;
}

static int
parser_on_headers_complete(llhttp_t *llhttp)
{
	struct parser *p = llhttp->data;
	size_t hosts;

	if (llhttp->http_major != 1 || llhttp->http_minor > 1)
		return parser_refuse(p, 505, "Only HTTP/1.0 and HTTP/1.1 are spoken here.");
	if (llhttp->method == HTTP_CONNECT)
		return parser_refuse(p, 501, "This is not a proxy.");
	if (p->target_len == 0)
		return parser_refuse(p, 400, "The request has no target.");
	/* frond offers no upgrade to another protocol, so the request is read as HTTP. */
	llhttp->upgrade = 0;
	hosts = parser_count_headers(p, STR("Host"));
	if (hosts > 1)
		return parser_refuse(p, 400, "More than one Host header.");
	if (llhttp->http_minor == 1 && hosts == 0)
		return parser_refuse(p, 400, "A Host header is required.");
	if (parser_check_target(p) || parser_check_length(p) || parser_check_expect(p))
		return -1;
	p->keep_alive = llhttp_should_keep_alive(llhttp);
	p->head_done = true;
	return 0;
}

static int
parser_on_body(llhttp_t *llhttp, const char *at, size_t n)
{
	struct parser *p = llhttp->data;

	if (!parser_check_framing(p, at))
		return -1;
	p->unseen = at + n;
	p->gap = 0;
	p->after_cr = false;
	p->after_lf = false;
	if (!p->body(p->body_arg, str_of(at, n)))
		return parser_refuse(p, 503, "Out of memory.");
	return 0;
}

static int
parser_on_message_complete(llhttp_t *llhttp)
{
	(void)llhttp;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_url = parser_on_url,
	.on_url_complete = parser_on_url_complete,
	.on_header_field = parser_on_header_field,
	.on_header_value = parser_on_header_value,
	.on_header_field_complete = parser_on_header_field_complete,
	.on_header_value_complete = parser_on_header_value_complete,
	.on_headers_complete = parser_on_headers_complete,
	.on_body = parser_on_body,
	.on_message_complete = parser_on_message_complete,
};

/* ---- */

void
parser_init(struct parser *p, size_t header_bytes, bool (*body)(void *arg, struct str data),
	    void *body_arg)
{
	*p = (struct parser){ .header_bytes = header_bytes, .body = body, .body_arg = body_arg };
	buf_init(&p->text, header_bytes);
	parser_clear(p);
}

void
parser_clear(struct parser *p)
{
	struct parser kept = *p;

	*p = (struct parser){
		.header_bytes = kept.header_bytes,
		.body = kept.body,
		.body_arg = kept.body_arg,
		.text = kept.text,
		.spans = kept.spans,
		.span_cap = kept.span_cap,
	};
	buf_clear(&p->text);
	llhttp_init(&p->llhttp, HTTP_REQUEST, &settings);
	p->llhttp.data = p;
}

void
parser_release(struct parser *p)
{
	buf_release(&p->text);
	mem_free(p->spans);
	p->spans = NULL;
	p->span_count = p->span_cap = 0;
}

/* Refuses the request with the status that belongs to an error of llhttp. */
static void
parser_refuse_syntax(struct parser *p, llhttp_errno_t error, struct str at)
{
	if (error == HPE_INVALID_METHOD && at.len && at.ptr[0] >= 'A' && at.ptr[0] <= 'Z')
		parser_refuse(p, 501, "The method is not known.");
	else if (error == HPE_INVALID_METHOD)
		parser_refuse(p, 400, "This is not an HTTP request.");
	else if (error == HPE_PAUSED_H2_UPGRADE)
		parser_refuse(p, 505, "Only HTTP/1.0 and HTTP/1.1 are spoken here.");
	else if (error == HPE_UNEXPECTED_CONTENT_LENGTH || error == HPE_INVALID_TRANSFER_ENCODING)
		parser_refuse(p, 400, "The body's length cannot be told.");
	else
		parser_refuse(p, 400, llhttp_get_error_reason(&p->llhttp));
}

/*
 * Parses bytes that lie all within the limit of the head or all behind the head, and returns how
 * many were used.
 */
static size_t
parser_feed_some(struct parser *p, struct str data)
{
	llhttp_errno_t error;
	const char *end = data.ptr + data.len;

	p->unseen = data.ptr;
	error = llhttp_execute(&p->llhttp, data.ptr, data.len);
	if (error != HPE_OK)
		end = llhttp_get_error_pos(&p->llhttp);
	if (end > p->unseen)
		(void)parser_check_framing(p, end);
	if (error == HPE_PAUSED && !p->refusal)
		p->complete = true;
	else if (error != HPE_OK)
		parser_refuse_syntax(p, error, str_skip(data, (size_t)(end - data.ptr)));
	return (size_t)(end - data.ptr);
}

/* Counts the ASCII bytes at the start of `data`, up to and including the first line end. */
static size_t
parser_count_plain(struct str data)
{
	size_t n = 0;

	while (n < data.len && !(data.ptr[n] & 0x80))
		if (data.ptr[n++] == '\n')
			break;
	return n;
}

/*
 * Parses bytes up to the end of the target and returns how many were used. Clients of CouchDB may
 * send UTF-8 in a target without escapes, which llhttp refuses. So llhttp gets each byte beyond
 * ASCII as an escape. The limit of the head counts the three bytes of the escape, which is what
 * llhttp gets, so that a request is refused in the same way however its bytes arrive. Elsewhere in
 * the request line llhttp refuses the escape just as it would refuse the byte.
 */
static size_t
parser_feed_target(struct parser *p, struct str data)
{
	size_t n = parser_count_plain(data);
	size_t room = p->header_bytes - p->head_used;
	char escape[HTTP_ESCAPE_BYTES];

	if (n > 0)
		return parser_feed_some(p, str_of(data.ptr, n));
	if (room <= sizeof(escape)) {
		p->head_used += room - 1;
		return 1;
	}
	http_escape_byte((uint8_t)data.ptr[0], escape);
	(void)parser_feed_some(p, str_of(escape, sizeof(escape)));
	p->head_used += sizeof(escape) - 1;
	return 1;
}

enum parser_result
parser_feed(struct parser *p, struct str data, size_t *ret_used)
{
	size_t used = 0;

	while (used < data.len && !p->complete && !p->refusal) {
		struct str stretch = str_skip(data, used);
		size_t n;

		if (!p->head_done && stretch.len > p->header_bytes - p->head_used)
			stretch.len = p->header_bytes - p->head_used;
		n = p->target_done ? parser_feed_some(p, stretch) : parser_feed_target(p, stretch);
		used += n;
		if (p->head_done)
			continue;
		p->head_used += n;
		if (p->head_used >= p->header_bytes) {
			METRIC_REFUSED("header_bytes");
			parser_refuse_limit(p, 431, "The request's headers are too large",
					    p->header_bytes, " bytes");
		}
	}
	*ret_used = used;
	if (p->refusal)
		return PARSER_RESULT_BAD;
	return p->complete ? PARSER_RESULT_DONE : PARSER_RESULT_MORE;
}

struct str
parser_method(const struct parser *p)
{
	return str_from_cstr(llhttp_method_name((llhttp_method_t)p->llhttp.method));
}

struct str
parser_target(const struct parser *p)
{
	return str_of(p->text.ptr + p->path_at, p->target_len - p->path_at);
}

unsigned
parser_minor_version(const struct parser *p)
{
	return p->llhttp.http_minor;
}

struct http_header
parser_header(const struct parser *p, size_t i)
{
	const struct parser_span *span = &p->spans[i];

	return (struct http_header){
		.name = str_of(p->text.ptr + span->name_at, span->name_len),
		.value = str_trim(str_of(p->text.ptr + span->value_at, span->value_len)),
	};
}

struct str
parser_find_header(const struct parser *p, struct str name)
{
	for (size_t i = 0; i < p->span_count; i++)
		if (parser_header_is(p, i, name))
			return parser_header(p, i).value;
	return (struct str){ 0 };
}
