/*
 * Borrowed bytes: `{ptr, len}`, never assumed to end in NUL. Keys, values and text alike.
 * The bytes belong to whoever made them; a function that keeps a str beyond its own return says so.
 */
#ifndef FROND_BASE_STR_H
#define FROND_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *ptr;
	size_t len;
};

/* A str over a string literal. */
#define STR(literal) ((struct str){ "" literal, sizeof(literal) - 1 })

/* printf arguments for "%.*s". */
#define STR_ARG(s) (int)(s).len, (s).ptr

static inline struct str
str_of(const void *ptr, size_t len)
{
	return (struct str){ ptr, len };
}

static inline struct str
str_from_cstr(const char *cstr)
{
	return (struct str){ cstr, strlen(cstr) };
}

static inline bool
str_eq(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Byte order, a prefix first: the order of keys. Returns <0, 0 or >0. */
static inline int
str_cmp(struct str a, struct str b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int c = n ? memcmp(a.ptr, b.ptr, n) : 0;

	if (c)
		return c;
	return (a.len > b.len) - (a.len < b.len);
}

static inline bool
str_starts_with(struct str s, struct str prefix)
{
	return s.len >= prefix.len &&
	       (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

/* `s` without its first `n` bytes; `n` must not exceed its length. */
static inline struct str
str_skip(struct str s, size_t n)
{
	return (struct str){ s.ptr + n, s.len - n };
}

/* FNV-1a, for tables in memory; mixed so that any of its bits will do. Not against attackers. */
uint64_t str_hash(struct str s);

/* ASCII only, as protocol tokens are. */
bool str_eq_nocase(struct str a, struct str b);

/* `s` without leading and trailing ASCII white space. */
struct str str_trim(struct str s);

/*
 * Parses a whole decimal number, with an optional sign. False, leaving *ret alone, when `s` is
 * empty, holds anything else or does not fit.
 */
bool str_to_i64(struct str s, int64_t *ret);
bool str_to_u64(struct str s, uint64_t *ret);

/* The value of a hexadecimal digit of either case, or -1. */
int str_hex_digit(char c);

/*
 * Writes the s.len / 2 bytes that `s` spells in hexadecimal. False, having written some of them,
 * when `s` holds anything else or has an odd length.
 */
bool str_from_hex(struct str s, void *ret);

#endif
