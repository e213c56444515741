/*
 * Multipart bodies (RFC 2046) as they come: parts are handed on in pieces, whatever their length.
 * The line break in front of a delimiter belongs to it; one is put before the body, so that the
 * first delimiter looks like the others.
 */
#include "door/couch/att.h"

enum {
	IN_BYTES = 1024 * 1024, /* buffered: a stretch of the body and what was left of the last */
};

/* What is in front of the next ';' outside of quotes; takes it off. */
static struct str
cut_param(struct str *s)
{
	struct str part = *s;
	bool quoted = false;

	for (size_t i = 0; i < s->len; i++) {
		if (s->ptr[i] == '"')
			quoted = !quoted;
		if (s->ptr[i] == ';' && !quoted) {
			part.len = i;
			*s = str_skip(*s, i + 1);
			return str_trim(part);
		}
	}
	*s = str_skip(*s, s->len);
	return str_trim(part);
}

struct str
couch_header_param(struct str value, struct str name)
{
	(void)cut_param(&value);
	while (value.len) {
		struct str one = cut_param(&value);
		const char *equals = one.len ? memchr(one.ptr, '=', one.len) : NULL;
		struct str content;

		if (!equals ||
		    !str_eq_nocase(str_trim(str_of(one.ptr, (size_t)(equals - one.ptr))), name))
			continue;
		content = str_trim(str_skip(one, (size_t)(equals - one.ptr) + 1));
		if (content.len >= 2 && content.ptr[0] == '"' &&
		    content.ptr[content.len - 1] == '"')
			content = str_of(content.ptr + 1, content.len - 2);
		return content;
	}
	return (struct str){ NULL, 0 };
}

struct str
couch_part_header(struct str headers, struct str name)
{
	while (headers.ptr && headers.len) {
		const char *end = memmem(headers.ptr, headers.len, "\r\n", 2);
		size_t len = end ? (size_t)(end - headers.ptr) : headers.len;
		const char *colon = len ? memchr(headers.ptr, ':', len) : NULL;

		if (colon &&
		    str_eq_nocase(str_trim(str_of(headers.ptr, (size_t)(colon - headers.ptr))),
				  name))
			return str_trim(str_of(colon + 1, len - (size_t)(colon + 1 - headers.ptr)));
		headers = str_skip(headers, end ? len + 2 : len);
	}
	return (struct str){ NULL, 0 };
}

enum status
couch_multipart_init(struct couch_multipart *m, struct str type, couch_multipart_source *source,
		     void *arg, struct couch_fail *fail)
{
	struct str boundary = couch_header_param(type, STR("boundary"));

	*m = (struct couch_multipart){
		.source = source,
		.arg = arg,
		.fail = fail,
		.in = BUF_INIT(IN_BYTES),
	};
	if (boundary.len == 0 || boundary.len > COUCH_BOUNDARY_BYTES)
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST,
				      "A multipart body needs a boundary of 1 to %d characters.",
				      COUCH_BOUNDARY_BYTES);
	memcpy(m->delimiter, "\r\n--", 4);
	memcpy(m->delimiter + 4, boundary.ptr, boundary.len);
	m->delimiter_len = 4 + boundary.len;
	buf_append_cstr(&m->in, "\r\n");
	return buf_status(&m->in);
}

static enum status
read_request(void *arg, struct str *ret)
{
	return http_read(arg, ret);
}

enum status
couch_multipart_open(struct couch_multipart *m, struct couch_req *r)
{
	return couch_multipart_init(m, http_request_header(r->x, STR("Content-Type")), read_request,
				    r->x, &r->fail);
}

void
couch_multipart_release(struct couch_multipart *m)
{
	buf_release(&m->in);
}

/* More of the body behind what is there. */
static enum status
fill(struct couch_multipart *m)
{
	struct str more;
	enum status status;

	buf_consume(&m->in, m->at);
	m->at = 0;
	status = m->source(m->arg, &more);
	if (status == STATUS_NOT_FOUND) {
		m->broken = true;
		return couch_fail_set(m->fail, COUCH_ERROR_BAD_REQUEST,
				      "The multipart body ends before its last boundary.");
	}
	if (status == STATUS_INVALID)
		return couch_fail_set(m->fail, COUCH_ERROR_BAD_REQUEST,
				      "The body of the request is broken.");
	TRY(status);
	buf_append_str(&m->in, more);
	return buf_status(&m->in);
}

/* At least `n` bytes to look at. */
static enum status
need(struct couch_multipart *m, size_t n)
{
	while (m->in.len - m->at < n)
		TRY(fill(m));
	return STATUS_OK;
}

enum status
couch_multipart_read(struct couch_multipart *m, struct str *ret)
{
	while (!m->at_delimiter) {
		struct str rest = str_of(m->in.ptr + m->at, m->in.len - m->at);
		const char *found = rest.len >= m->delimiter_len
					    ? memmem(rest.ptr, rest.len, m->delimiter,
						     m->delimiter_len)
					    : NULL;
		size_t n;

		if (found && found == rest.ptr) {
			m->at += m->delimiter_len;
			m->at_delimiter = true;
			break;
		}
		/* The end of what is there may be the beginning of a delimiter. */
		if (found)
			n = (size_t)(found - rest.ptr);
		else
			n = rest.len >= m->delimiter_len ? rest.len - m->delimiter_len + 1 : 0;
		if (n) {
			*ret = str_of(rest.ptr, n);
			m->at += n;
			return STATUS_OK;
		}
		TRY(fill(m));
	}
	return STATUS_NOT_FOUND;
}

/* Behind a delimiter: the rest of its line. STATUS_NOT_FOUND if it was the last. */
static enum status
end_delimiter(struct couch_multipart *m)
{
	TRY(need(m, 2));
	if (memcmp(m->in.ptr + m->at, "--", 2) == 0)
		return STATUS_NOT_FOUND;
	while (m->in.ptr[m->at] == ' ' || m->in.ptr[m->at] == '\t') {
		m->at++;
		TRY(need(m, 2));
	}
	if (memcmp(m->in.ptr + m->at, "\r\n", 2) != 0)
		return couch_fail_set(m->fail, COUCH_ERROR_BAD_REQUEST,
				      "A boundary of the multipart body is followed by text.");
	return STATUS_OK;
}

enum status
couch_multipart_next(struct couch_multipart *m, struct str *ret_headers)
{
	struct str skipped;
	enum status status;

	/* To the end of the part before, or of what comes before the first. */
	while ((status = couch_multipart_read(m, &skipped)) == STATUS_OK) {
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(end_delimiter(m));
	for (;;) {
		struct str rest = str_of(m->in.ptr + m->at, m->in.len - m->at);
		const char *end = memmem(rest.ptr, rest.len, "\r\n\r\n", 4);

		if (end) {
			size_t len = (size_t)(end - rest.ptr);

			/* Behind the delimiter's line break, if there are headers at all. */
			*ret_headers = len > 2 ? str_of(rest.ptr + 2, len - 2)
					       : (struct str){ "", 0 };
			m->at += len + 4;
			m->at_delimiter = false;
			return STATUS_OK;
		}
		if (rest.len > COUCH_PART_HEADER_BYTES)
			return couch_fail_set(m->fail, COUCH_ERROR_BAD_REQUEST,
					      "A part's headers have more than %d bytes.",
					      COUCH_PART_HEADER_BYTES);
		TRY(fill(m));
	}
}
