#include "server/parser.h"

#include <assert.h>

#include "base/mem.h"

enum {
	PARSER_FIRST_SPANS = 16,
};

static int
refuse(struct parser *p, int status, const char *reason)
{
	if (!p->refusal) {
		p->refusal = status;
		p->reason = reason;
	}
	return -1;
}

/* ---- The check of line ends ---- */

/* What it finds lies before anything that llhttp has stumbled over. */
static bool
refuse_framing(struct parser *p, int status, const char *reason)
{
	p->refusal = status;
	p->reason = reason;
	return false;
}

/* Of everything that is not body: CR and LF come together, no line begins with white space. */
static bool
check_framing(struct parser *p, const char *end)
{
	for (const char *at = p->unseen; at < end; at++) {
		char c = *at;

		if (c == '\n' ? !p->after_cr : p->after_cr)
			return refuse_framing(p, 400, "Lines have to end in CR LF.");
		if (c == '\0')
			return refuse_framing(p, 400, "NUL in a request.");
		if (p->after_lf && (c == ' ' || c == '\t'))
			return refuse_framing(p, 400, "Folded lines are not accepted.");
		p->after_cr = c == '\r';
		p->after_lf = c == '\n';
	}
	p->gap += (size_t)(end - p->unseen);
	if (p->gap > 2 * p->header_bytes)
		return refuse_framing(p, 431, "Chunk extensions or trailers are too large.");
	p->unseen = end;
	return true;
}

/* ---- What llhttp calls ---- */

static bool
take_text(struct parser *p, const char *at, size_t n)
{
	buf_append(&p->text, at, n);
	if (buf_status(&p->text) == STATUS_OK)
		return true;
	if (buf_status(&p->text) == STATUS_LIMIT)
		refuse(p, 431, "The request's headers are too large.");
	else
		refuse(p, 503, "Out of memory.");
	return false;
}

static int
on_url(llhttp_t *llhttp, const char *at, size_t n)
{
	struct parser *p = llhttp->data;

	if (p->text.len + n > PARSER_TARGET_BYTES)
		return refuse(p, 414, "The request's target is too long.");
	if (!take_text(p, at, n))
		return -1;
	p->target_len = p->text.len;
	return 0;
}

static int
on_url_complete(llhttp_t *llhttp)
{
	struct parser *p = llhttp->data;

	p->target_done = true;
	return 0;
}

static struct parser_span *
new_span(struct parser *p)
{
	if (p->span_count == PARSER_HEADERS) {
		refuse(p, 431, "The request has too many headers.");
		return NULL;
	}
	if (p->span_count == p->span_cap) {
		size_t cap = p->span_cap ? p->span_cap * 2 : PARSER_FIRST_SPANS;
		struct parser_span *spans = mem_realloc(p->spans, cap * sizeof(*spans));

		if (!spans) {
			refuse(p, 503, "Out of memory.");
			return NULL;
		}
		p->spans = spans;
		p->span_cap = cap;
	}
	p->spans[p->span_count] = (struct parser_span){ .name_at = (uint32_t)p->text.len };
	return &p->spans[p->span_count++];
}

static int
on_header_field(llhttp_t *llhttp, const char *at, size_t n)
{
	struct parser *p = llhttp->data;
	struct parser_span *span;

	if (p->head_done)
		return 0; /* trailers mean nothing here; check_framing() bounds them */
	if (p->in_value || p->span_count == 0) {
		p->in_value = false;
		span = new_span(p);
		if (!span)
			return -1;
	} else {
		span = &p->spans[p->span_count - 1];
	}
	span->name_len += (uint32_t)n;
	return take_text(p, at, n) ? 0 : -1;
}

static int
on_header_field_complete(llhttp_t *llhttp)
{
	struct parser *p = llhttp->data;

	if (!p->head_done &&
	    (p->in_value || p->span_count == 0 || p->spans[p->span_count - 1].name_len == 0))
		return refuse(p, 400, "A header has no name.");
	return 0;
}

static int
on_header_value(llhttp_t *llhttp, const char *at, size_t n)
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
	return take_text(p, at, n) ? 0 : -1;
}

/*
 * A header without a value has no value callback, and the next name must not be glued to its name.
 */
static int
on_header_value_complete(llhttp_t *llhttp)
{
	struct parser *p = llhttp->data;

	p->in_value = true;
	return 0;
}

static size_t
count_headers(const struct parser *p, struct str name)
{
	size_t n = 0;

	for (size_t i = 0; i < p->span_count; i++)
		n += str_eq_nocase(parser_header(p, i).name, name);
	return n;
}

/* Origin form, absolute form, or the asterisk of OPTIONS; RFC 9112, section 3.2. */
static int
check_target(struct parser *p)
{
	struct str target = parser_target(p);
	struct str rest;
	const char *slash;

	p->path_at = 0;
	if (memchr(target.ptr, '#', target.len))
		return refuse(p, 400, "A request's target has no fragment.");
	if (target.ptr[0] == '/' || str_eq(target, STR("*")))
		return 0;
	if (target.len > 7 && str_eq_nocase(str_of(target.ptr, 7), STR("http://")))
		rest = str_skip(target, 7);
	else if (target.len > 8 && str_eq_nocase(str_of(target.ptr, 8), STR("https://")))
		rest = str_skip(target, 8);
	else
		return refuse(p, 400, "The request's target has to be a path.");
	slash = memchr(rest.ptr, '/', rest.len);
	if (!slash)
		return refuse(p, 400, "The request's target has to be a path.");
	p->path_at = (size_t)(slash - target.ptr);
	return 0;
}

/* RFC 9112, section 6.3: a length that two readers could take for two lengths is none. */
static int
check_length(struct parser *p)
{
	struct str coding = parser_find_header(p, STR("Transfer-Encoding"));
	size_t lengths = count_headers(p, STR("Content-Length"));

	if (lengths > 1 || (lengths && coding.ptr))
		return refuse(p, 400, "The body's length is given more than once.");
	if (coding.ptr) {
		if (p->llhttp.http_minor == 0)
			return refuse(p, 400, "HTTP/1.0 has no Transfer-Encoding.");
		if (count_headers(p, STR("Transfer-Encoding")) > 1)
			return refuse(p, 400, "More than one Transfer-Encoding.");
		if (!str_eq_nocase(coding, STR("chunked")))
			return refuse(p, 501, "Only the transfer coding \"chunked\" is known.");
	}
	p->chunked = coding.ptr != NULL;
	p->content_length = lengths ? p->llhttp.content_length : 0;
	return 0;
}

static int
check_expect(struct parser *p)
{
	struct str expect = parser_find_header(p, STR("Expect"));

	if (!expect.ptr || p->llhttp.http_minor == 0)
		return 0;
	if (!str_eq_nocase(expect, STR("100-continue")))
		return refuse(p, 417, "Only the expectation \"100-continue\" can be met.");
	p->expect_continue = p->chunked || p->content_length > 0;
	return 0;
}

static int
on_headers_complete(llhttp_t *llhttp)
{
	struct parser *p = llhttp->data;

	if (llhttp->http_major != 1 || llhttp->http_minor > 1)
		return refuse(p, 505, "Only HTTP/1.0 and HTTP/1.1 are spoken here.");
	if (llhttp->method == HTTP_CONNECT)
		return refuse(p, 501, "This is not a proxy.");
	if (p->target_len == 0)
		return refuse(p, 400, "The request has no target.");
	/* No other protocol is offered, so the request stands as it is. */
	llhttp->upgrade = 0;
	if (count_headers(p, STR("Host")) > 1)
		return refuse(p, 400, "More than one Host header.");
	if (llhttp->http_minor == 1 && count_headers(p, STR("Host")) == 0)
		return refuse(p, 400, "A Host header is required.");
	if (check_target(p) || check_length(p) || check_expect(p))
		return -1;
	p->keep_alive = llhttp_should_keep_alive(llhttp);
	p->head_done = true;
	return 0;
}

static int
on_body(llhttp_t *llhttp, const char *at, size_t n)
{
	struct parser *p = llhttp->data;

	if (!check_framing(p, at))
		return -1;
	p->unseen = at + n;
	p->gap = 0;
	p->after_cr = false;
	p->after_lf = false;
	if (!p->body(p->body_arg, str_of(at, n)))
		return refuse(p, 503, "Out of memory.");
	return 0;
}

static int
on_message_complete(llhttp_t *llhttp)
{
	(void)llhttp;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_url = on_url,
	.on_url_complete = on_url_complete,
	.on_header_field = on_header_field,
	.on_header_value = on_header_value,
	.on_header_field_complete = on_header_field_complete,
	.on_header_value_complete = on_header_value_complete,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_message_complete = on_message_complete,
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

/* Translates what llhttp found into the status of a refusal. */
static void
refuse_syntax(struct parser *p, llhttp_errno_t error, struct str at)
{
	if (error == HPE_INVALID_METHOD && at.len && at.ptr[0] >= 'A' && at.ptr[0] <= 'Z')
		refuse(p, 501, "The method is not known.");
	else if (error == HPE_INVALID_METHOD)
		refuse(p, 400, "This is not an HTTP request.");
	else if (error == HPE_PAUSED_H2_UPGRADE)
		refuse(p, 505, "Only HTTP/1.0 and HTTP/1.1 are spoken here.");
	else if (error == HPE_UNEXPECTED_CONTENT_LENGTH || error == HPE_INVALID_TRANSFER_ENCODING)
		refuse(p, 400, "The body's length cannot be told.");
	else
		refuse(p, 400, llhttp_get_error_reason(&p->llhttp));
}

/* One stretch that lies in the head's limit, or behind the head. */
static size_t
feed_some(struct parser *p, struct str data)
{
	llhttp_errno_t error;
	const char *end = data.ptr + data.len;

	p->unseen = data.ptr;
	error = llhttp_execute(&p->llhttp, data.ptr, data.len);
	if (error != HPE_OK)
		end = llhttp_get_error_pos(&p->llhttp);
	if (end > p->unseen)
		(void)check_framing(p, end);
	if (error == HPE_PAUSED && !p->refusal)
		p->complete = true;
	else if (error != HPE_OK)
		refuse_syntax(p, error, str_skip(data, (size_t)(end - data.ptr)));
	return (size_t)(end - data.ptr);
}

/* What of `data` lies in its first line and has no bytes beyond ASCII. */
static size_t
count_plain(struct str data)
{
	size_t n = 0;

	while (n < data.len && !(data.ptr[n] & 0x80))
		if (data.ptr[n++] == '\n')
			break;
	return n;
}

/*
 * Up to the end of the target. CouchDB's clients may send UTF-8 in it as it is, which llhttp does
 * not take: it gets such bytes escaped, and so does everything behind it. In any other place of the
 * request's line an escape is as wrong as the byte is.
 */
static size_t
feed_target(struct parser *p, struct str data)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t n = count_plain(data);
	unsigned char c;

	if (n > 0)
		return feed_some(p, str_of(data.ptr, n));
	c = (unsigned char)data.ptr[0];
	(void)feed_some(p, str_of((char[]){ '%', digits[c >> 4], digits[c & 15] }, 3));
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
		n = p->target_done ? feed_some(p, stretch) : feed_target(p, stretch);
		used += n;
		if (p->head_done)
			continue;
		p->head_used += n;
		if (p->head_used >= p->header_bytes)
			refuse(p, 431, "The request's headers are too large.");
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
	for (size_t i = 0; i < p->span_count; i++) {
		struct http_header h = parser_header(p, i);

		if (str_eq_nocase(h.name, name))
			return h.value;
	}
	return (struct str){ 0 };
}
