#include "kv/tuple.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

enum {
	DRAW_BYTES = 32,     /* longer byte strings are cut... */
	DRAW_CUT_BYTES = 16, /* ...to this many, and their length is told */
	DRAW_NUMBER_BYTES = 32,
};

static void
draw_hex(struct str s, struct buf *ret)
{
	for (size_t i = 0; i < s.len; i++) {
		buf_append(ret, "\\x", 2);
		buf_append_hex(ret, str_of(s.ptr + i, 1));
	}
}

static void
draw_bytes(struct str s, struct buf *ret)
{
	if (!s.len) {
		buf_append_cstr(ret, "''");
	} else if (s.len <= DRAW_BYTES) {
		draw_hex(s, ret);
	} else {
		draw_hex(str_of(s.ptr, DRAW_CUT_BYTES), ret);
		buf_printf(ret, "...(%zu bytes)", s.len);
	}
}

/* Control characters, quotes and backslashes escaped; other ASCII and valid UTF-8 as they are. */
static void
draw_text(struct str s, struct buf *ret)
{
	while (s.len) {
		uint8_t c = (uint8_t)s.ptr[0];
		size_t valid = utf8_valid_prefix(str_of(s.ptr, s.len < 4 ? s.len : 4));
		size_t n = 1;

		if (c == '"' || c == '\\') {
			buf_append_byte(ret, '\\');
			buf_append_byte(ret, c);
		} else if (c == '\n') {
			buf_append(ret, "\\n", 2);
		} else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !valid)) {
			draw_hex(str_of(s.ptr, 1), ret);
		} else {
			while (n < valid && ((uint8_t)s.ptr[n] & 0xc0) == 0x80)
				n++;
			buf_append(ret, s.ptr, n);
		}
		s = str_skip(s, n);
	}
}

static void
draw_string(const struct tuple_elem *e, struct buf *ret)
{
	struct buf content = BUF_INIT(e->raw.len);

	tuple_unescape(e, &content);
	if (buf_status(&content) != STATUS_OK) {
		ret->failed = ret->failed == STATUS_OK ? content.failed : ret->failed;
	} else if (e->kind == TUPLE_BYTES) {
		draw_bytes(buf_str(&content), ret);
	} else {
		buf_append_byte(ret, '"');
		draw_text(buf_str(&content), ret);
		buf_append_byte(ret, '"');
	}
	buf_release(&content);
}

/* Always with a point or an exponent, so that it does not pass for an integer. */
static void
draw_number(const char *text, struct buf *ret)
{
	buf_append_cstr(ret, text);
	if (!strpbrk(text, ".en"))
		buf_append(ret, ".0", 2);
}

static void
draw_float(float f, struct buf *ret)
{
	char text[DRAW_NUMBER_BYTES];
	int digits = 6;

	do
		snprintf(text, sizeof(text), "%.*g", digits, (double)f);
	while (digits++ < 9 && isfinite(f) && strtof(text, NULL) != f);
	draw_number(text, ret);
}

static void
draw_double(double d, struct buf *ret)
{
	char text[DRAW_NUMBER_BYTES];
	int digits = 15;

	do
		snprintf(text, sizeof(text), "%.*g", digits, d);
	while (digits++ < 17 && isfinite(d) && strtod(text, NULL) != d);
	draw_number(text, ret);
}

static void
draw_int(const struct tuple_elem *e, struct buf *ret)
{
	size_t at;

	if (e->negative)
		buf_append_byte(ret, '-');
	if (e->kind == TUPLE_INT) {
		buf_append_u64(ret, e->magnitude);
		return;
	}
	buf_append(ret, "0x", 2);
	for (at = 0; at < e->raw.len; at++) {
		char c = (char)(e->negative ? ~e->raw.ptr[at] : e->raw.ptr[at]);

		buf_append_hex(ret, str_of(&c, 1));
	}
}

static void
draw_uuid(struct str s, struct buf *ret)
{
	static const uint8_t groups[] = { 4, 2, 2, 2, 6 };

	buf_append_cstr(ret, "uuid:");
	for (size_t i = 0; i < sizeof(groups); i++) {
		if (i)
			buf_append_byte(ret, '-');
		buf_append_hex(ret, str_of(s.ptr, groups[i]));
		s = str_skip(s, groups[i]);
	}
}

static enum status draw_elements(struct tuple_reader r, struct buf *ret);

static enum status
draw_element(const struct tuple_elem *e, struct buf *ret)
{
	switch (e->kind) {
	case TUPLE_NULL:
		buf_append_cstr(ret, "null");
		break;
	case TUPLE_BYTES:
	case TUPLE_STRING:
		draw_string(e, ret);
		break;
	case TUPLE_NESTED:
		return draw_elements(tuple_reader_nested(e), ret);
	case TUPLE_INT:
	case TUPLE_BIGINT:
		draw_int(e, ret);
		break;
	case TUPLE_FLOAT:
		draw_float(e->f, ret);
		break;
	case TUPLE_DOUBLE:
		draw_double(e->d, ret);
		break;
	case TUPLE_FALSE:
		buf_append_cstr(ret, "false");
		break;
	case TUPLE_TRUE:
		buf_append_cstr(ret, "true");
		break;
	case TUPLE_UUID:
		draw_uuid(e->raw, ret);
		break;
	case TUPLE_VERSIONSTAMP:
		buf_append_cstr(ret, "versionstamp:");
		buf_append_hex(ret, e->raw);
		break;
	}
	return STATUS_OK;
}

/* Recursion is bounded by TUPLE_MAX_DEPTH, which the reader refuses to exceed. */
static enum status
draw_elements(struct tuple_reader r, struct buf *ret)
{
	struct tuple_elem e;
	enum status status;
	bool first = true;

	buf_append_byte(ret, '(');
	while ((status = tuple_next(&r, &e)) == STATUS_OK) {
		if (!first)
			buf_append(ret, ", ", 2);
		first = false;
		TRY(draw_element(&e, ret));
	}
	buf_append_byte(ret, ')');
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

void
tuple_draw(struct str encoded, struct buf *ret)
{
	size_t at = ret->len;

	if (draw_elements(tuple_reader(encoded), ret) == STATUS_OK || ret->failed != STATUS_OK)
		return;
	ret->len = at;
	draw_text(encoded, ret);
}
