#include "replicator/parts.h"

bool
parts_is_multipart(struct str type)
{
	return type.len > 10 && str_eq_nocase(str_of(type.ptr, 10), STR("multipart/"));
}

/* The value of a header's parameter, without its quotes. */
static struct str
parameter(struct str header, struct str name)
{
	for (size_t i = 0; i + name.len < header.len; i++) {
		struct str rest = str_skip(header, i);
		size_t n = 0;

		if (!str_eq_nocase(str_of(rest.ptr, name.len), name) ||
		    (i && rest.ptr[-1] != ';' && rest.ptr[-1] != ' '))
			continue;
		rest = str_skip(rest, name.len);
		if (rest.len && rest.ptr[0] == '"') {
			rest = str_skip(rest, 1);
			while (n < rest.len && rest.ptr[n] != '"')
				n++;
		} else {
			while (n < rest.len && rest.ptr[n] != ';' && rest.ptr[n] != ' ')
				n++;
		}
		return str_of(rest.ptr, n);
	}
	return (struct str){ NULL, 0 };
}

enum status
parts_init(struct parts *p, struct str type, parts_source *source, void *arg, struct err *err)
{
	struct str boundary = parameter(type, STR("boundary="));

	*p = (struct parts){ .source = source, .arg = arg };
	buf_init(&p->buffer, PARTS_BUFFER_BYTES);
	buf_init(&p->head, PARTS_HEAD_BYTES);
	if (boundary.len == 0 || boundary.len > PARTS_BOUNDARY_BYTES)
		return err_set(err, STATUS_INVALID, "a multipart answer without a boundary");
	memcpy(p->boundary, "\r\n--", 4);
	memcpy(p->boundary + 4, boundary.ptr, boundary.len);
	p->boundary_len = boundary.len + 4;
	/* As if a line had ended before the first boundary. */
	buf_append_cstr(&p->buffer, "\r\n");
	return buf_status(&p->buffer);
}

void
parts_release(struct parts *p)
{
	buf_release(&p->buffer);
	buf_release(&p->head);
}

static enum status
fill(struct parts *p, struct err *err)
{
	struct str more;
	enum status status = p->source(p->arg, &more, err);

	if (status == STATUS_NOT_FOUND)
		return err_set(err, STATUS_INVALID, "a multipart answer is cut off");
	TRY(status);
	buf_append_str(&p->buffer, more);
	return buf_status(&p->buffer);
}

static void
drop_given(struct parts *p)
{
	buf_consume(&p->buffer, p->given);
	p->given = 0;
}

enum status
parts_read(void *arg, struct str *ret, struct err *err)
{
	struct parts *p = arg;

	if (!p->in_part)
		return STATUS_NOT_FOUND;
	drop_given(p);
	for (;;) {
		const char *found = p->buffer.len ? memmem(p->buffer.ptr, p->buffer.len,
							   p->boundary, p->boundary_len)
						  : NULL;
		size_t n = found ? (size_t)(found - p->buffer.ptr) : 0;

		if (found && n == 0) {
			p->in_part = false;
			return STATUS_NOT_FOUND;
		}
		/* A boundary may begin in the last bytes and go on in those to come. */
		if (!found && p->buffer.len >= p->boundary_len)
			n = p->buffer.len - p->boundary_len + 1;
		if (n) {
			p->given = n;
			*ret = str_of(p->buffer.ptr, n);
			return STATUS_OK;
		}
		TRY(fill(p, err));
	}
}

/* Takes the headers' lines apart; the buffer begins behind the boundary's line. */
static enum status
read_head(struct parts *p, struct err *err)
{
	const char *end;
	struct str head;

	/* Without any header, the empty line comes at once. */
	while (!(end = p->buffer.len ? memmem(p->buffer.ptr, p->buffer.len, "\r\n\r\n", 4) : NULL))
		TRY(fill(p, err));
	buf_clear(&p->head);
	buf_append(&p->head, p->buffer.ptr, (size_t)(end - p->buffer.ptr));
	if (buf_status(&p->head) != STATUS_OK)
		return err_set(err, STATUS_INVALID, "the headers of a part are too long");
	buf_consume(&p->buffer, (size_t)(end - p->buffer.ptr) + 4);
	p->type = p->disposition = (struct str){ NULL, 0 };
	head = buf_str(&p->head);
	while (head.len) {
		const char *eol = memmem(head.ptr, head.len, "\r\n", 2);
		struct str line = str_of(head.ptr, eol ? (size_t)(eol - head.ptr) : head.len);
		const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;

		head = str_skip(head, line.len + (eol ? 2 : 0));
		if (!colon)
			continue;
		struct str name = str_of(line.ptr, (size_t)(colon - line.ptr));
		struct str value = str_trim(str_skip(line, name.len + 1));

		if (str_eq_nocase(name, STR("Content-Type")))
			p->type = value;
		else if (str_eq_nocase(name, STR("Content-Disposition")))
			p->disposition = value;
	}
	return STATUS_OK;
}

enum status
parts_next(struct parts *p, struct err *err)
{
	struct str skipped;
	enum status status;

	if (p->over)
		return STATUS_NOT_FOUND;
	/* What comes before the first boundary is a part of no interest. */
	if (!p->in_part && !p->head.ptr)
		p->in_part = true;
	while ((status = parts_read(p, &skipped, err)) == STATUS_OK)
		;
	if (status != STATUS_NOT_FOUND)
		return status;
	while (p->buffer.len < p->boundary_len + 2)
		TRY(fill(p, err));
	if (memcmp(p->buffer.ptr + p->boundary_len, "--", 2) == 0) {
		p->over = true;
		return STATUS_NOT_FOUND;
	}
	/* The line of the boundary ends; CR LF stays, so that no header at all is an empty line. */
	buf_consume(&p->buffer, p->boundary_len);
	TRY(read_head(p, err));
	p->in_part = true;
	return STATUS_OK;
}
