#include "base/quote.h"

#include <assert.h>

#include "base/utf8.h"

static const char hex[] = "0123456789abcdef";

/* Returns the length of the UTF-8 character at the start of `s`, or 0 if there is none. */
static size_t
quote_character(struct str s)
{
	size_t most = s.len < 4 ? s.len : 4;

	for (size_t n = 1; n <= most; n++) {
		if (utf8_valid_prefix(str_of(s.ptr, n)) == n)
			return n;
	}
	return 0;
}

const char *
quote_show(struct str s, char room[QUOTE_SHOWN_BYTES])
{
	const struct str dots = STR("...");
	size_t len = 0;
	size_t fits = 0; /* what may stay if the dots have to follow */

	while (s.len) {
		size_t n = quote_character(s);
		uint8_t c = (uint8_t)s.ptr[0];
		bool plain = n && c >= ' ' && c != 0x7f;
		size_t add = plain ? n : 4;

		if (len + add >= QUOTE_SHOWN_BYTES) {
			memcpy(room + fits, dots.ptr, dots.len);
			len = fits + dots.len;
			break;
		}
		if (plain)
			memcpy(room + len, s.ptr, n);
		else
			memcpy(room + len, (char[4]){ '\\', 'x', hex[c >> 4], hex[c & 15] }, 4);
		len += add;
		if (len + dots.len < QUOTE_SHOWN_BYTES)
			fits = len;
		s = str_skip(s, plain ? n : 1);
	}
	assert(len < QUOTE_SHOWN_BYTES);
	room[len] = '\0';
	return room;
}

void
quote_word(struct buf *out, struct str s, size_t most)
{
	static const char upper[] = "0123456789ABCDEF";
	size_t end = out->len + most;

	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if (out->len + 3 > end) {
			buf_append_cstr(out, "...");
			return;
		}
		if (c > ' ' && c < 0x7f && c != '"' && c != '\\') {
			buf_append_byte(out, c);
		} else {
			buf_append_byte(out, '%');
			buf_append_byte(out, (uint8_t)upper[c >> 4]);
			buf_append_byte(out, (uint8_t)upper[c & 15]);
		}
	}
}

static void
quote_json_byte(struct buf *out, uint8_t c)
{
	if (c == '"' || c == '\\') {
		buf_append_byte(out, '\\');
		buf_append_byte(out, c);
	} else if (c < ' ') {
		buf_append_cstr(out, "\\u00");
		buf_append_byte(out, (uint8_t)hex[c >> 4]);
		buf_append_byte(out, (uint8_t)hex[c & 15]);
	} else {
		buf_append_byte(out, c);
	}
}

const char *
quote_value(struct str s, char room[QUOTE_SHOWN_BYTES])
{
	struct buf out = { .ptr = room, .cap = QUOTE_SHOWN_BYTES, .max_bytes = QUOTE_SHOWN_BYTES };

	quote_word(&out, s, QUOTE_SHOWN_BYTES - sizeof("..."));
	room[out.len] = '\0';
	return room;
}

void
quote_json(struct buf *out, struct str s)
{
	buf_append_byte(out, '"');
	while (s.len) {
		size_t valid = utf8_valid_prefix(s);

		for (size_t i = 0; i < valid; i++)
			quote_json_byte(out, (uint8_t)s.ptr[i]);
		s = str_skip(s, valid);
		if (s.len) {
			buf_append_cstr(out, "\xef\xbf\xbd");
			s = str_skip(s, 1);
		}
	}
	buf_append_byte(out, '"');
}
