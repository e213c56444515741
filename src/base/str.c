#include "base/str.h"

uint64_t
str_hash(struct str s)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < s.len; i++)
		hash = (hash ^ (uint8_t)s.ptr[i]) * UINT64_C(1099511628211);
	return hash ^ hash >> 32;
}

/* The eight bytes of the word with each 'A' … 'Z' among them in lower case. */
static inline uint64_t
word_lower(uint64_t word)
{
	const uint64_t each = UINT64_C(0x0101010101010101), high = each << 7;
	uint64_t low = word & ~high;
	/* No sum carries into the next byte. Its high bit tells: from 'A' on, behind 'Z'. */
	uint64_t from_a = low + each * (0x80 - 'A');
	uint64_t behind_z = low + each * (0x7f - 'Z');

	return word | (from_a & ~behind_z & ~word & high) >> 2;
}

static inline bool
words_eq_nocase(uint64_t a, uint64_t b)
{
	return a == b || word_lower(a) == word_lower(b);
}

bool
str_bytes_eq_nocase(const char *a, const char *b, size_t len)
{
	uint64_t x, y;

	if (len < sizeof(x))
		return !len || words_eq_nocase(str_few_bytes(a, len), str_few_bytes(b, len));
	for (size_t at = 0; at + sizeof(x) < len; at += sizeof(x)) {
		memcpy(&x, a + at, sizeof(x));
		memcpy(&y, b + at, sizeof(y));
		if (!words_eq_nocase(x, y))
			return false;
	}
	/* The rest, with some of the bytes in front of it again. */
	memcpy(&x, a + len - sizeof(x), sizeof(x));
	memcpy(&y, b + len - sizeof(y), sizeof(y));
	return words_eq_nocase(x, y);
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
