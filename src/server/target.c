/* Escapes and parameters of a request's target. */
#include "server/http.h"

enum {
	HTTP_PARAMS = 256,
};

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

/* Takes what is in front of the next `separator` off `s`. */
static struct str
cut(struct str *s, char separator)
{
	const char *end = s->len ? memchr(s->ptr, separator, s->len) : NULL;
	struct str part = *s;

	if (end) {
		part.len = (size_t)(end - s->ptr);
		*s = str_skip(*s, part.len + 1);
	} else {
		*s = str_skip(*s, s->len);
	}
	return part;
}

static size_t
count_params(struct str query)
{
	size_t n = 0;

	while (query.len)
		n += cut(&query, '&').len > 0;
	return n;
}

enum status
http_parse_query(struct str query, struct arena *arena, struct http_param **ret, size_t *ret_count)
{
	size_t count = count_params(query);
	struct http_param *params;
	size_t n = 0;

	if (count > HTTP_PARAMS)
		return STATUS_LIMIT;
	params = arena_alloc(arena, (count ? count : 1) * sizeof(*params));
	if (!params)
		return STATUS_NOMEM;
	while (query.len) {
		struct str value = cut(&query, '&');
		struct str name;

		if (!value.len)
			continue;
		name = cut(&value, '=');
		TRY(http_unescape(name, true, arena, &params[n].name));
		TRY(http_unescape(value, true, arena, &params[n].value));
		n++;
	}
	*ret = params;
	*ret_count = count;
	return STATUS_OK;
}
