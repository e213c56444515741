#include "http/escape.h"

/* RFC 3986, section 2.3. */
static bool
is_unreserved(char c)
{
	/* clang-format off */
	static const bool unreserved[UINT8_MAX + 1] = {
		['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true,
		['-'] = true, ['.'] = true, ['_'] = true, ['~'] = true,
	};
	/* clang-format on */

	return unreserved[(uint8_t)c];
}

void
http_escape_byte(uint8_t byte, char ret[HTTP_ESCAPE_BYTES])
{
	static const char digits[] = "0123456789ABCDEF";

	ret[0] = '%';
	ret[1] = digits[byte >> 4];
	ret[2] = digits[byte & 15];
}

void
http_escape_keeping(struct buf *b, struct str s, const char *keep)
{
	while (s.len) {
		char escape[HTTP_ESCAPE_BYTES];
		size_t n = 0;

		/* Most names need no escape: append them at once. strchr() would find a NUL. */
		while (n < s.len &&
		       (is_unreserved(s.ptr[n]) || (s.ptr[n] && strchr(keep, s.ptr[n]))))
			n++;
		buf_append(b, s.ptr, n);
		if (n == s.len)
			break;
		http_escape_byte((uint8_t)s.ptr[n], escape);
		buf_append(b, escape, sizeof(escape));
		s = str_skip(s, n + 1);
	}
}

void
http_escape(struct buf *b, struct str s)
{
	http_escape_keeping(b, s, "");
}

enum status
http_unescape(struct str s, bool plus, struct arena *arena, struct str *ret)
{
	char *to;
	size_t n = 0;

	if (!memchr(s.ptr, '%', s.len) && !(plus && memchr(s.ptr, '+', s.len))) {
		*ret = arena_dup(arena, s);
		return ret->ptr ? STATUS_OK : STATUS_NOMEM;
	}
	to = arena_bytes(arena, s.len);
	if (!to)
		return STATUS_NOMEM;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (c == '+' && plus) {
			c = ' ';
		} else if (c == '%') {
			int high = i + 2 < s.len ? str_hex_digit(s.ptr[i + 1]) : -1;
			int low = i + 2 < s.len ? str_hex_digit(s.ptr[i + 2]) : -1;

			if (high < 0 || low < 0)
				return STATUS_INVALID;
			c = (char)(high << 4 | low);
			i += 2;
		}
		to[n++] = c;
	}
	*ret = str_of(to, n);
	return STATUS_OK;
}

struct str
http_cut_param(struct str *query)
{
	size_t n = 0;
	struct str param;

	while (n < query->len && query->ptr[n] != '&' && query->ptr[n] != ';')
		n++;
	param = str_of(query->ptr, n);
	*query = str_skip(*query, n < query->len ? n + 1 : n);
	return param;
}

static size_t
count_params(struct str query)
{
	size_t n = 0;

	while (query.len)
		n += http_cut_param(&query).len > 0;
	return n;
}

enum status
http_parse_query(struct str query, struct arena *arena, struct http_param **ret, size_t *ret_count)
{
	size_t count = count_params(query);
	struct http_param *params;
	size_t n = 0;

	if (count > HTTP_QUERY_PARAMS)
		return STATUS_LIMIT;
	params = arena_alloc(arena, (count ? count : 1) * sizeof(*params));
	if (!params)
		return STATUS_NOMEM;
	while (query.len) {
		struct str value = http_cut_param(&query);
		struct str name;

		if (!value.len)
			continue;
		name = str_cut(&value, '=');
		TRY(http_unescape(name, true, arena, &params[n].name));
		TRY(http_unescape(value, true, arena, &params[n].value));
		n++;
	}
	*ret = params;
	*ret_count = count;
	return STATUS_OK;
}
