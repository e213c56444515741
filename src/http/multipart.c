/*
 * A line break in front of a boundary belongs to the boundary and not to the content before it
 * (RFC 2046, section 5.1.1). The reader puts one in front of the whole body, so that a boundary at
 * its very beginning looks like the others.
 */
#include "http/multipart.h"

#include <assert.h>

#include "http/field.h"

#define LINE_END "\r\n"

enum {
	LINE_END_BYTES = 2,
	DASHES_BYTES = 2, /* behind the last boundary */
};

bool
http_is_multipart(struct str content_type)
{
	const struct str prefix = STR("multipart/");

	return content_type.len > prefix.len &&
	       str_eq_nocase(str_of(content_type.ptr, prefix.len), prefix);
}

enum status
http_multipart_init(struct http_multipart *m, struct str content_type,
		    http_multipart_source *source, void *arg, struct err *err)
{
	const struct str before = STR(LINE_END "--");
	struct str boundary = { NULL, 0 };

	*m = (struct http_multipart){
		.source = source,
		.arg = arg,
		.delimiter = BUF_INIT(before.len + HTTP_BOUNDARY_BYTES),
		.in = BUF_INIT(HTTP_MULTIPART_BUFFER_BYTES),
		.head = BUF_INIT(HTTP_PART_HEAD_BYTES + LINE_END_BYTES),
	};
	(void)http_field_param(content_type, STR("boundary"), &boundary);
	buf_append_str(&m->delimiter, before);
	http_unquote(boundary, &m->delimiter);
	if (buf_status(&m->delimiter) == STATUS_LIMIT || m->delimiter.len == before.len)
		return err_set(err, STATUS_INVALID,
			       "A multipart body needs a boundary of 1 to %d characters.",
			       HTTP_BOUNDARY_BYTES);
	TRY(buf_status(&m->delimiter));
	buf_append_cstr(&m->in, LINE_END);
	return buf_status(&m->in);
}

void
http_multipart_fini(struct http_multipart *m)
{
	buf_release(&m->delimiter);
	buf_release(&m->in);
	buf_release(&m->head);
}

/* The part of the body that has been read and not been used. */
static struct str
unused(const struct http_multipart *m)
{
	assert(m->used <= m->in.len);
	return str_of(m->in.ptr + m->used, m->in.len - m->used);
}

/* Reads more of the body behind what is there; texts that were handed out become invalid. */
static enum status
read_more(struct http_multipart *m, struct err *err)
{
	struct str more;
	enum status status;

	buf_consume(&m->in, m->used);
	m->used = 0;
	status = m->source(m->arg, &more, err);
	if (status == STATUS_NOT_FOUND) {
		m->cut_off = true;
		return err_set(err, STATUS_INVALID,
			       "The multipart body ends before its last boundary.");
	}
	TRY(status);
	buf_append_str(&m->in, more);
	return buf_status(&m->in);
}

static enum status
read_at_least(struct http_multipart *m, size_t n, struct err *err)
{
	while (unused(m).len < n)
		TRY(read_more(m, err));
	return STATUS_OK;
}

/* Content up to the next delimiter; steps over that and fails with STATUS_NOT_FOUND when there. */
static enum status
read_content(struct http_multipart *m, struct str *ret, struct err *err)
{
	struct str delimiter = buf_str(&m->delimiter);

	while (m->at == HTTP_MULTIPART_CONTENT) {
		struct str rest = unused(m);
		const char *found = rest.len >= delimiter.len ? memmem(rest.ptr, rest.len,
								       delimiter.ptr, delimiter.len)
							      : NULL;
		size_t n = 0;

		if (found == rest.ptr && found) {
			m->used += delimiter.len;
			m->at = HTTP_MULTIPART_DELIMITER;
			break;
		}
		/* The last bytes may be the beginning of a delimiter whose end is still to come. */
		if (found)
			n = (size_t)(found - rest.ptr);
		else if (rest.len >= delimiter.len)
			n = rest.len - delimiter.len + 1;
		if (n) {
			*ret = str_of(rest.ptr, n);
			m->used += n;
			return STATUS_OK;
		}
		TRY(read_more(m, err));
	}
	return STATUS_NOT_FOUND;
}

enum status
http_multipart_read(void *multipart, struct str *ret, struct err *err)
{
	struct http_multipart *m = multipart;

	return m->in_part ? read_content(m, ret, err) : STATUS_NOT_FOUND;
}

/* Reads the rest of a delimiter's line up to its line break. STATUS_NOT_FOUND: it was the last. */
static enum status
read_delimiter_end(struct http_multipart *m, struct err *err)
{
	TRY(read_at_least(m, DASHES_BYTES, err));
	if (memcmp(unused(m).ptr, "--", DASHES_BYTES) == 0) {
		m->at = HTTP_MULTIPART_END;
		return STATUS_NOT_FOUND;
	}
	while (unused(m).ptr[0] == ' ' || unused(m).ptr[0] == '\t') {
		m->used++;
		TRY(read_at_least(m, LINE_END_BYTES, err));
	}
	if (memcmp(unused(m).ptr, LINE_END, LINE_END_BYTES) != 0)
		return err_set(err, STATUS_INVALID,
			       "A boundary of the multipart body is followed by text.");
	return STATUS_OK;
}

/* A header may go on in a line that begins with white space: its line breaks become spaces. */
static void
unfold_head(struct buf *head)
{
	for (size_t i = 0; i + LINE_END_BYTES < head->len; i++)
		if (head->ptr[i] == '\r' && head->ptr[i + 1] == '\n' &&
		    (head->ptr[i + 2] == ' ' || head->ptr[i + 2] == '\t'))
			head->ptr[i] = head->ptr[i + 1] = ' ';
}

/* Reads the headers, up to the empty line behind them. The delimiter's line break is still there,
 * so that a part without headers has its empty line, too. */
static enum status
read_head(struct http_multipart *m, struct err *err)
{
	for (;;) {
		struct str rest = unused(m);
		const char *end = memmem(rest.ptr, rest.len, LINE_END LINE_END,
					 (size_t)2 * LINE_END_BYTES);
		size_t len = end ? (size_t)(end - rest.ptr) : rest.len;

		/* `len` counts the delimiter's line break, and not that of the last header. */
		if (len > HTTP_PART_HEAD_BYTES)
			return err_set(err, STATUS_INVALID,
				       "A part's headers have more than %d bytes.",
				       HTTP_PART_HEAD_BYTES);
		if (end) {
			buf_clear(&m->head);
			if (len > 0)
				buf_append_str(&m->head, str_of(rest.ptr + LINE_END_BYTES, len));
			TRY(buf_status(&m->head));
			unfold_head(&m->head);
			m->used += len + (size_t)2 * LINE_END_BYTES;
			return STATUS_OK;
		}
		TRY(read_more(m, err));
	}
}

enum status
http_multipart_next(struct http_multipart *m, struct err *err)
{
	struct str skipped;
	enum status status;

	if (m->at == HTTP_MULTIPART_END)
		return STATUS_NOT_FOUND;
	while ((status = read_content(m, &skipped, err)) == STATUS_OK) {
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	assert(m->at == HTTP_MULTIPART_DELIMITER);
	m->in_part = false;
	TRY(read_delimiter_end(m, err));
	TRY(read_head(m, err));
	m->at = HTTP_MULTIPART_CONTENT;
	m->in_part = true;
	return STATUS_OK;
}

struct str
http_multipart_header(const struct http_multipart *m, struct str name)
{
	struct str head = buf_str(&m->head);

	while (head.len) {
		const char *end = memmem(head.ptr, head.len, LINE_END, LINE_END_BYTES);
		size_t len = end ? (size_t)(end - head.ptr) : head.len;
		const char *colon = memchr(head.ptr, ':', len);

		if (colon &&
		    str_eq_nocase(str_trim(str_of(head.ptr, (size_t)(colon - head.ptr))), name))
			return str_trim(str_of(colon + 1, len - (size_t)(colon + 1 - head.ptr)));
		head = str_skip(head, end ? len + LINE_END_BYTES : len);
	}
	return (struct str){ NULL, 0 };
}
