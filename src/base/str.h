/*
 * A str is borrowed bytes: `{ptr, len}`, which need not end in NUL. Keys, values and text all use
 * it. A str does not own its bytes; a function that keeps a str after it has returned says so.
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

/* Makes a str of a string literal. */
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

/* Compares by bytes; a prefix comes first. This is the order of keys. Returns <0, 0 or >0. */
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

/* Returns `s` without its first `n` bytes; `n` must not exceed its length. */
static inline struct str
str_skip(struct str s, size_t n)
{
	return (struct str){ s.ptr + n, s.len - n };
}

/*
 * Packs one to seven bytes into a number. Two texts of the same length give the same number only
 * if they are equal.
 */
static inline uint64_t
str_few_bytes(const char *s, size_t len)
{
	uint32_t first, last;

	if (len < sizeof(first))
		return (uint64_t)(uint8_t)s[0] | (uint64_t)(uint8_t)s[len / 2] << 8 |
		       (uint64_t)(uint8_t)s[len - 1] << 16;
	memcpy(&first, s, sizeof(first));
	memcpy(&last, s + len - sizeof(last), sizeof(last));
	return first | (uint64_t)last << 32;
}

/*
 * FNV-1a for tables in memory, mixed so that any bits of the hash can choose a slot. It does not
 * protect against an attacker who chooses the keys.
 */
uint64_t str_hash(struct str s);

/*
 * Returns the text before the first `separator`, and removes that text and the separator from
 * `*rest`. Without a separator it returns all of `*rest`, which is then empty.
 */
struct str str_cut(struct str *rest, char separator);

/*
 * Removes the next element from a list with commas, such as the value of a setting. The element
 * comes without the white space around it, and empty elements are skipped. Returns false at the end
 * of the list. http/field.h reads lists in headers, whose elements may be in quotes.
 */
bool str_list_next(struct str *rest, struct str *ret);

/* The rest of str_eq_nocase(), for two texts of one length. */
bool str_bytes_eq_nocase(const char *a, const char *b, size_t len);

/* Ignores the case of ASCII letters only, as protocols do for their tokens. */
static inline bool
str_eq_nocase(struct str a, struct str b)
{
	return a.len == b.len && str_bytes_eq_nocase(a.ptr, b.ptr, a.len);
}

/* Returns `s` without leading and trailing ASCII white space. */
struct str str_trim(struct str s);

/*
 * Parses all of `s` as a decimal number with an optional sign. Returns false and leaves *ret alone
 * if `s` is empty, holds anything else or does not fit.
 */
bool str_to_i64(struct str s, int64_t *ret);
bool str_to_u64(struct str s, uint64_t *ret);

/* Returns the value of a hexadecimal digit, in upper or lower case, or -1. */
int str_hex_digit(char c);

/*
 * Decodes the hexadecimal digits of `s` into s.len / 2 bytes. Returns false if `s` holds any other
 * character or has an odd length; it may have written some bytes then.
 */
bool str_from_hex(struct str s, void *ret);

#endif
