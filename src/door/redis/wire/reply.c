#include "door/redis/wire/reply.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "door/redis/wire/number.h"

enum {
	ERROR_BYTES = 1024, /* of a text that is put together here */
	HEADER_BYTES = 32,
	BULK_BYTES = 5, /* of a bulk string beside its bytes and the digits of its length */
};

/* Writes the number so that it ends where `end` points. Returns where it begins. */
static char *
number_write(int64_t n, char *end)
{
	uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n;

	do
		*--end = (char)('0' + left % 10);
	while (left /= 10);
	if (n < 0)
		*--end = '-';
	return end;
}

static void
reply_line(struct reply *r, char type, int64_t n)
{
	char line[HEADER_BYTES];
	char *end = line + sizeof(line);
	char *begin;

	end[-2] = '\r';
	end[-1] = '\n';
	begin = number_write(n, end - 2);
	*--begin = type;
	buf_append(r->out, begin, (size_t)(end - begin));
}

void
reply_simple(struct reply *r, const char *text)
{
	buf_append_byte(r->out, '+');
	buf_append_cstr(r->out, text);
	buf_append_cstr(r->out, "\r\n");
}

void
reply_ok(struct reply *r)
{
	buf_append_cstr(r->out, "+OK\r\n");
}

void
reply_error(struct reply *r, struct str text)
{
	size_t from;

	buf_append_byte(r->out, '-');
	from = r->out->len;
	buf_append_str(r->out, text);
	for (size_t i = from; i < r->out->len; i++)
		if (r->out->ptr[i] == '\r' || r->out->ptr[i] == '\n')
			r->out->ptr[i] = ' ';
	buf_append_cstr(r->out, "\r\n");
}

void
reply_errorf(struct reply *r, const char *fmt, ...)
{
	char text[ERROR_BYTES];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (len < 0)
		len = 0;
	reply_error(r, str_of(text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1));
}

void
reply_int(struct reply *r, int64_t n)
{
	reply_line(r, ':', n);
}

void
reply_bulk(struct reply *r, struct str s)
{
	unsigned digits = 1;
	char *to;

	for (size_t n = s.len; n >= 10; n /= 10)
		digits++;
	/* Long answers are made of these, so that room is asked for once. */
	if (!buf_reserve(r->out, s.len + digits + BULK_BYTES))
		return;
	to = r->out->ptr + r->out->len;
	*to++ = '$';
	to += digits;
	(void)number_write((int64_t)s.len, to);
	*to++ = '\r';
	*to++ = '\n';
	if (s.len)
		memcpy(to, s.ptr, s.len);
	to += s.len;
	*to++ = '\r';
	*to++ = '\n';
	r->out->len = (size_t)(to - r->out->ptr);
}

void
reply_bulk_begin(struct reply *r, size_t len)
{
	reply_line(r, '$', (int64_t)len);
	(void)buf_reserve(r->out, len + 2);
}

void
reply_bulk_end(struct reply *r)
{
	buf_append_cstr(r->out, "\r\n");
}

void
reply_bulk_if(struct reply *r, bool there, struct str s)
{
	if (there)
		reply_bulk(r, s);
	else
		reply_null(r);
}

void
reply_bulk_cstr(struct reply *r, const char *s)
{
	reply_bulk(r, str_from_cstr(s));
}

void
reply_bulk_int(struct reply *r, int64_t n)
{
	char text[HEADER_BYTES];
	char *end = text + sizeof(text);
	char *begin = number_write(n, end);

	reply_bulk(r, str_of(begin, (size_t)(end - begin)));
}

void
reply_verbatim(struct reply *r, struct str s)
{
	if (r->version == 2) {
		reply_bulk(r, s);
		return;
	}
	reply_line(r, '=', (int64_t)s.len + 4);
	buf_append_cstr(r->out, "txt:");
	buf_append_str(r->out, s);
	buf_append_cstr(r->out, "\r\n");
}

void
reply_null(struct reply *r)
{
	buf_append_cstr(r->out, r->version == 2 ? "$-1\r\n" : "_\r\n");
}

void
reply_null_array(struct reply *r)
{
	buf_append_cstr(r->out, r->version == 2 ? "*-1\r\n" : "_\r\n");
}

void
reply_bool(struct reply *r, bool b)
{
	if (r->version == 2)
		reply_int(r, b);
	else
		buf_append_cstr(r->out, b ? "#t\r\n" : "#f\r\n");
}

/* A double that is written already. */
static void
reply_double_text(struct reply *r, struct str s)
{
	if (r->version == 2) {
		reply_bulk(r, s);
		return;
	}
	buf_append_byte(r->out, ',');
	buf_append_str(r->out, s);
	buf_append_cstr(r->out, "\r\n");
}

void
reply_double(struct reply *r, double d)
{
	char text[64];

	reply_double_text(r, number_write_double(d, text));
}

void
reply_human_double(struct reply *r, double d)
{
	char text[NUMBER_TEXT_BYTES];

	reply_double_text(r, number_write_long_double(d, text));
}

void
reply_array(struct reply *r, size_t n)
{
	reply_line(r, '*', (int64_t)n);
}

void
reply_map(struct reply *r, size_t n)
{
	if (r->version == 2)
		reply_line(r, '*', 2 * (int64_t)n);
	else
		reply_line(r, '%', (int64_t)n);
}

void
reply_set(struct reply *r, size_t n)
{
	reply_line(r, r->version == 2 ? '*' : '~', (int64_t)n);
}

void
reply_push(struct reply *r, size_t n)
{
	reply_line(r, r->version == 2 ? '*' : '>', (int64_t)n);
}

size_t
reply_later(const struct reply *r)
{
	return r->out->len;
}

void
reply_later_end(struct reply *r, size_t at, char type, size_t n)
{
	char line[HEADER_BYTES];
	bool map = type == '%' && r->version == 2;
	char shown = r->version == 2 ? '*' : type;
	int len = snprintf(line, sizeof(line), "%c%zu\r\n", shown, map ? 2 * n : n);
	size_t tail = r->out->len - at;

	if (!buf_reserve(r->out, (size_t)len))
		return;
	memmove(r->out->ptr + at + len, r->out->ptr + at, tail);
	memcpy(r->out->ptr + at, line, (size_t)len);
	r->out->len += (size_t)len;
}

void
reply_move_before(struct reply *r, size_t at, size_t from)
{
	char moved[REPLY_MOVE_BYTES];
	size_t len = r->out->len - from;

	assert(at <= from && from <= r->out->len && len <= sizeof(moved));
	memcpy(moved, r->out->ptr + from, len);
	memmove(r->out->ptr + at + len, r->out->ptr + at, from - at);
	memcpy(r->out->ptr + at, moved, len);
}
