#include "base/str.h"

static char
char_lower(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c | 0x20);
	return c;
}

uint64_t
str_hash(struct str s)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < s.len; i++)
		hash = (hash ^ (uint8_t)s.ptr[i]) * UINT64_C(1099511628211);
	return hash ^ hash >> 32;
}

bool
str_eq_nocase(struct str a, struct str b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (char_lower(a.ptr[i]) != char_lower(b.ptr[i]))
			return false;
	return true;
}

static bool
char_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str
str_trim(struct str s)
{
	while (s.len && char_is_space(s.ptr[0]))
		s = str_skip(s, 1);
	while (s.len && char_is_space(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

struct str
str_cut(struct str *rest, char separator)
{
	const char *end = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
	struct str part = *rest;

	if (end) {
		part.len = (size_t)(end - rest->ptr);
		*rest = str_skip(*rest, part.len + 1);
	} else {
		rest->len = 0;
	}
	return part;
}

bool
str_list_next(struct str *rest, struct str *ret)
{
	while (rest->len) {
		struct str element = str_trim(str_cut(rest, ','));

		if (element.len) {
			*ret = element;
			return true;
		}
	}
	return false;
}

bool
str_to_u64(struct str s, uint64_t *ret)
{
	uint64_t n = 0;

	if (s.len == 0)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (c < '0' || c > '9')
			return false;
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(c - '0'), &n))
			return false;
	}
	*ret = n;
	return true;
}

bool
str_to_i64(struct str s, int64_t *ret)
{
	bool negative = s.len && s.ptr[0] == '-';
	uint64_t n;

	if (s.len && (s.ptr[0] == '-' || s.ptr[0] == '+'))
		s = str_skip(s, 1);
	if (!str_to_u64(s, &n))
		return false;
	if (n > (uint64_t)INT64_MAX + (negative ? 1 : 0))
		return false;
	*ret = negative ? (int64_t)(0 - n) : (int64_t)n;
	return true;
}

int
str_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool
str_from_hex(struct str s, void *ret)
{
	uint8_t *to = ret;

	if (s.len % 2)
		return false;
	for (size_t i = 0; i < s.len; i += 2) {
		int high = str_hex_digit(s.ptr[i]);
		int low = str_hex_digit(s.ptr[i + 1]);

		if (high < 0 || low < 0)
			return false;
		*to++ = (uint8_t)(high << 4 | low);
	}
	return true;
}
