#include "kv/tuple.h"

#include <endian.h>

#include "base/big_endian.h"

/* Type codes (FoundationDB's design/tuple.md). Stored: never renumber. */
enum {
	CODE_NULL = 0x00,
	CODE_BYTES = TUPLE_CODE_BYTES,
	CODE_STRING = TUPLE_CODE_STRING,
	CODE_NESTED = 0x05,
	CODE_BIGINT_NEGATIVE = 0x0b,
	CODE_INT_LEAST = TUPLE_CODE_INT_LEAST,
	CODE_INT_ZERO =
		TUPLE_CODE_INT_ZERO, /* +n: n bytes, -n: n bytes of a negative one, complemented */
	CODE_INT_MOST = TUPLE_CODE_INT_MOST,
	CODE_BIGINT = 0x1d,
	CODE_FLOAT = 0x20,
	CODE_DOUBLE = 0x21,
	CODE_FALSE = TUPLE_CODE_FALSE,
	CODE_TRUE = TUPLE_CODE_TRUE,
	CODE_UUID = 0x30,
	CODE_VERSIONSTAMP = 0x33,
	CODE_ESCAPE = TUPLE_CODE_ESCAPE,
};

enum {
	UUID_BYTES = 16,
	VERSIONSTAMP_BYTES = 12,
};

static uint32_t
load_be32(const uint8_t *p)
{
	uint32_t n;

	memcpy(&n, p, sizeof(n));
	return be32toh(n);
}

/* ---- Writing ---- */

void
tuple_put_null(struct buf *b)
{
	buf_append_byte(b, CODE_NULL);
}

void
tuple_put_nested_null(struct buf *b)
{
	static const uint8_t escaped[2] = { CODE_NULL, CODE_ESCAPE };

	buf_append(b, escaped, sizeof(escaped));
}

/*
 * Puts a string that has NULs, each of which is escaped. `first` is the place of the first one, and
 * is often near the end; what lies in front of it is copied as it is. This is not inlined, so that
 * the caller's code stays short for strings without a NUL, which most are.
 */
__attribute__((noinline, cold)) static void
tuple_put_escaped(struct buf *b, uint8_t code, struct str s, size_t first)
{
	size_t len = s.len + 2;
	char *to;

	for (size_t i = first; i < s.len; i++)
		len += !s.ptr[i];
	if (!buf_reserve(b, len))
		return;
	to = b->ptr + b->len;
	b->len += len;
	*to++ = (char)code;
	memcpy(to, s.ptr, first);
	to += first;
	for (size_t i = first; i < s.len; i++) {
		*to++ = s.ptr[i];
		if (!s.ptr[i])
			*to++ = (char)CODE_ESCAPE;
	}
	*to = '\0';
}

static inline void
tuple_put_text(struct buf *b, uint8_t code, struct str s)
{
	const char *nul = s.len ? memchr(s.ptr, 0, s.len) : NULL;
	char *to;

	if (nul) {
		tuple_put_escaped(b, code, s, (size_t)(nul - s.ptr));
		return;
	}
	if (!buf_reserve(b, s.len + 2))
		return;
	to = b->ptr + b->len;
	b->len += s.len + 2;
	*to++ = (char)code;
	to[s.len] = '\0';
	if (s.len)
		memcpy(to, s.ptr, s.len);
}

void
tuple_put_bytes(struct buf *b, struct str s)
{
	tuple_put_text(b, CODE_BYTES, s);
}

void
tuple_put_str(struct buf *b, struct str utf8)
{
	tuple_put_text(b, CODE_STRING, utf8);
}

/* Not inlined: the few bytes of most numbers need no memory on the stack, and no guard of it. */
__attribute__((noinline)) static void
tuple_put_int(struct buf *b, bool negative, uint64_t magnitude)
{
	uint8_t encoded[1 + sizeof(magnitude)];
	unsigned n;

	if (!magnitude) {
		buf_append_byte(b, CODE_INT_ZERO);
		return;
	}
	n = (unsigned)(71 - __builtin_clzll(magnitude)) / 8;
	encoded[0] = (uint8_t)(negative ? CODE_INT_ZERO - n : CODE_INT_ZERO + n);
	big_endian_put_64(encoded + 1, (negative ? ~magnitude : magnitude) << (64 - 8 * n));
	buf_append(b, encoded, 1 + n);
}

void
tuple_put_u64(struct buf *b, uint64_t n)
{
	if (n - 1 >= UINT8_MAX) {
		tuple_put_int(b, false, n);
	} else if (buf_reserve(b, 2)) {
		b->ptr[b->len] = CODE_INT_ZERO + 1;
		b->ptr[b->len + 1] = (char)n;
		b->len += 2;
	}
}

void
tuple_put_i64(struct buf *b, int64_t n)
{
	tuple_put_int(b, n < 0, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

void
tuple_put_bigint(struct buf *b, bool negative, struct str magnitude)
{
	uint8_t encoded[2 + TUPLE_INT_MAX_BYTES];

	while (magnitude.len && !magnitude.ptr[0])
		magnitude = str_skip(magnitude, 1);
	if (magnitude.len > TUPLE_INT_MAX_BYTES) {
		if (b->failed == STATUS_OK)
			b->failed = STATUS_LIMIT;
		return;
	}
	if (magnitude.len <= sizeof(uint64_t)) {
		uint64_t n = 0;

		for (size_t i = 0; i < magnitude.len; i++)
			n = n << 8 | (uint8_t)magnitude.ptr[i];
		tuple_put_int(b, negative, n);
		return;
	}
	encoded[0] = negative ? CODE_BIGINT_NEGATIVE : CODE_BIGINT;
	encoded[1] = (uint8_t)magnitude.len;
	memcpy(encoded + 2, magnitude.ptr, magnitude.len);
	if (negative)
		for (size_t i = 1; i < 2 + magnitude.len; i++)
			encoded[i] = (uint8_t)~encoded[i];
	buf_append(b, encoded, 2 + magnitude.len);
}

void
tuple_put_float(struct buf *b, float f)
{
	uint8_t encoded[1 + sizeof(uint32_t)] = { CODE_FLOAT };
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	bits = bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
	bits = htobe32(bits);
	memcpy(encoded + 1, &bits, sizeof(bits));
	buf_append(b, encoded, sizeof(encoded));
}

void
tuple_put_double(struct buf *b, double d)
{
	uint8_t encoded[1 + sizeof(uint64_t)] = { CODE_DOUBLE };
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	big_endian_put_64(encoded + 1, bits >> 63 ? ~bits : bits | UINT64_C(1) << 63);
	buf_append(b, encoded, sizeof(encoded));
}

void
tuple_put_bool(struct buf *b, bool value)
{
	buf_append_byte(b, value ? CODE_TRUE : CODE_FALSE);
}

void
tuple_put_uuid(struct buf *b, const uint8_t uuid[16])
{
	if (!buf_reserve(b, 1 + UUID_BYTES))
		return;
	buf_append_byte(b, CODE_UUID);
	buf_append(b, uuid, UUID_BYTES);
}

size_t
tuple_put_versionstamp(struct buf *b, const uint8_t stamp[12])
{
	size_t offset = b->len + 1;

	if (!buf_reserve(b, 1 + VERSIONSTAMP_BYTES))
		return 0;
	buf_append_byte(b, CODE_VERSIONSTAMP);
	buf_append(b, stamp, VERSIONSTAMP_BYTES);
	return offset;
}

void
tuple_open(struct buf *b)
{
	buf_append_byte(b, CODE_NESTED);
}

void
tuple_close(struct buf *b)
{
	buf_append_byte(b, 0);
}

/* ---- Reading ---- */

struct tuple_reader
tuple_reader_nested(const struct tuple_elem *nested)
{
	return (struct tuple_reader){ nested->raw, true };
}

/* tuple_string_len() of a string whose first NUL is content. */
__attribute__((noinline, cold)) static size_t
tuple_escaped_len(struct str s, const char *nul)
{
	const char *end = s.ptr + s.len;

	while (nul && end - nul >= 2 && (uint8_t)nul[1] == CODE_ESCAPE) {
		const char *at = nul + 2;

		nul = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
	}
	return nul ? (size_t)(nul - s.ptr) : SIZE_MAX;
}

/*
 * The length of the content of the string that `s` continues with, 00 FF included; its end is a
 * single NUL. SIZE_MAX if there is none.
 */
static inline size_t
tuple_string_len(struct str s, bool *ret_escaped)
{
	const char *nul = s.len ? memchr(s.ptr, 0, s.len) : NULL;

	*ret_escaped = false;
	if (!nul)
		return SIZE_MAX;
	if (nul + 1 == s.ptr + s.len || (uint8_t)nul[1] != CODE_ESCAPE)
		return (size_t)(nul - s.ptr);
	*ret_escaped = true;
	return tuple_escaped_len(s, nul);
}

size_t
tuple_skip_escaped(struct str encoded, size_t nul)
{
	size_t len = tuple_escaped_len(encoded, encoded.ptr + nul);

	return len == SIZE_MAX ? 0 : len + 1;
}

/*
 * The bytes behind the type code of an element that is no integer, if the code alone tells how many
 * there are; otherwise -1.
 */
static int
tuple_fixed_len(uint8_t code)
{
	switch (code) {
	case CODE_FALSE:
	case CODE_TRUE:
		return 0;
	case CODE_FLOAT:
		return 4;
	case CODE_DOUBLE:
		return 8;
	case CODE_UUID:
		return UUID_BYTES;
	case CODE_VERSIONSTAMP:
		return VERSIONSTAMP_BYTES;
	default:
		return -1;
	}
}

/* The `n` bytes behind the code of an integer, which are there. */
static inline uint64_t
tuple_int_bytes(struct str s, unsigned n)
{
	uint64_t v = 0;

	if (s.len > sizeof(v))
		return big_endian_64((const uint8_t *)s.ptr + 1) >> (64 - 8 * n);
	for (unsigned i = 1; i <= n; i++)
		v = v << 8 | (uint8_t)s.ptr[i];
	return v;
}

/* One integer has one encoding: none with leading zeros. */
static inline bool
tuple_int_is_whole(uint64_t v, unsigned n)
{
	return v >> (8 * (n - 1));
}

static enum status
tuple_read_int(struct str s, struct tuple_elem *ret)
{
	uint8_t code = (uint8_t)s.ptr[0];
	unsigned n = (unsigned)(code < CODE_INT_ZERO ? CODE_INT_ZERO - code : code - CODE_INT_ZERO);
	uint64_t v;

	ret->kind = TUPLE_INT;
	ret->negative = code < CODE_INT_ZERO;
	ret->magnitude = 0;
	ret->encoding = str_of(s.ptr, 1 + n);
	if (s.len <= n)
		return STATUS_CORRUPT;
	if (!n)
		return STATUS_OK;
	v = tuple_int_bytes(s, n);
	if (ret->negative)
		v = ~v & UINT64_MAX >> (64 - 8 * n);
	if (!tuple_int_is_whole(v, n))
		return STATUS_CORRUPT;
	if (ret->negative && v > UINT64_C(1) << 63) {
		ret->kind = TUPLE_BIGINT;
		ret->raw = str_of(s.ptr + 1, n);
	} else {
		ret->magnitude = v;
	}
	return STATUS_OK;
}

static enum status
tuple_read_bigint(struct str s, struct tuple_elem *ret)
{
	size_t len;

	ret->kind = TUPLE_BIGINT;
	ret->negative = s.ptr[0] == CODE_BIGINT_NEGATIVE;
	if (s.len < 2)
		return STATUS_CORRUPT;
	len = 2 + (size_t)(ret->negative ? (uint8_t)~s.ptr[1] : (uint8_t)s.ptr[1]);
	if (s.len < len)
		return STATUS_CORRUPT;
	ret->raw = str_of(s.ptr + 2, len - 2);
	ret->encoding = str_of(s.ptr, len);
	if (ret->raw.len <= sizeof(uint64_t) ||
	    (uint8_t)ret->raw.ptr[0] == (ret->negative ? 0xff : 0))
		return STATUS_CORRUPT;
	return STATUS_OK;
}

static void
tuple_read_float(const uint8_t *p, struct tuple_elem *ret)
{
	uint32_t bits = load_be32(p);

	bits = bits >> 31 ? bits & ~(UINT32_C(1) << 31) : ~bits;
	memcpy(&ret->f, &bits, sizeof(bits));
}

static void
tuple_read_double(const uint8_t *p, struct tuple_elem *ret)
{
	uint64_t bits = big_endian_64(p);

	bits = bits >> 63 ? bits & ~(UINT64_C(1) << 63) : ~bits;
	memcpy(&ret->d, &bits, sizeof(bits));
}

static inline enum status
tuple_read_string(struct str s, struct tuple_elem *ret)
{
	size_t n = tuple_string_len(str_skip(s, 1), &ret->escaped);

	if (n == SIZE_MAX)
		return STATUS_CORRUPT;
	ret->kind = s.ptr[0] == CODE_BYTES ? TUPLE_BYTES : TUPLE_STRING;
	ret->raw = str_of(s.ptr + 1, n);
	ret->encoding = str_of(s.ptr, n + 2);
	return STATUS_OK;
}

static enum status
tuple_read_null(const struct tuple_reader *r, struct tuple_elem *ret)
{
	if (r->nested && (r->rest.len < 2 || (uint8_t)r->rest.ptr[1] != CODE_ESCAPE))
		return STATUS_CORRUPT;
	ret->kind = TUPLE_NULL;
	ret->encoding = str_of(r->rest.ptr, r->nested ? 2 : 1);
	return STATUS_OK;
}

/* Reads an element that is no integer and whose type code tells its length. */
static enum status
tuple_read_fixed(struct str s, struct tuple_elem *ret)
{
	const uint8_t *content = (const uint8_t *)s.ptr + 1;
	int len = tuple_fixed_len((uint8_t)s.ptr[0]);

	if (len < 0 || s.len <= (size_t)len)
		return STATUS_CORRUPT;
	ret->encoding = str_of(s.ptr, 1 + (size_t)len);
	switch ((uint8_t)s.ptr[0]) {
	case CODE_FLOAT:
		ret->kind = TUPLE_FLOAT;
		tuple_read_float(content, ret);
		return STATUS_OK;
	case CODE_DOUBLE:
		ret->kind = TUPLE_DOUBLE;
		tuple_read_double(content, ret);
		return STATUS_OK;
	case CODE_FALSE:
		ret->kind = TUPLE_FALSE;
		return STATUS_OK;
	case CODE_TRUE:
		ret->kind = TUPLE_TRUE;
		return STATUS_OK;
	case CODE_UUID:
		ret->kind = TUPLE_UUID;
		ret->raw = str_of(content, UUID_BYTES);
		return STATUS_OK;
	case CODE_VERSIONSTAMP:
		ret->kind = TUPLE_VERSIONSTAMP;
		ret->raw = str_of(content, VERSIONSTAMP_BYTES);
		return STATUS_OK;
	default:
		return STATUS_CORRUPT;
	}
}

/* Reads an element that is neither null nor a nested tuple. */
static enum status
tuple_read_flat(struct str s, struct tuple_elem *ret)
{
	uint8_t code = (uint8_t)s.ptr[0];

	if (code == CODE_BYTES || code == CODE_STRING)
		return tuple_read_string(s, ret);
	if (code >= CODE_INT_LEAST && code <= CODE_INT_MOST)
		return tuple_read_int(s, ret);
	if (code == CODE_BIGINT || code == CODE_BIGINT_NEGATIVE)
		return tuple_read_bigint(s, ret);
	return tuple_read_fixed(s, ret);
}

/* The length of the elements of the nested tuple that `s` continues with, without the NUL that
 * ends it; SIZE_MAX if it does not end, is too deep or holds what is no element. */
static size_t
tuple_nested_len(struct str s)
{
	unsigned depth = 1;
	size_t at = 0;

	while (at < s.len) {
		struct str rest = str_skip(s, at);
		size_t n = 1;

		if (rest.ptr[0] == CODE_NULL) {
			if (rest.len > 1 && (uint8_t)rest.ptr[1] == CODE_ESCAPE)
				n = 2;
			else if (!--depth)
				return at;
		} else if (rest.ptr[0] == CODE_NESTED) {
			if (++depth > TUPLE_MAX_DEPTH)
				return SIZE_MAX;
		} else {
			struct tuple_elem e;

			if (tuple_read_flat(rest, &e) != STATUS_OK)
				return SIZE_MAX;
			n = e.encoding.len;
		}
		at += n;
	}
	return SIZE_MAX;
}

static enum status
tuple_read_nested(struct str s, struct tuple_elem *ret)
{
	size_t n = tuple_nested_len(str_skip(s, 1));

	if (n == SIZE_MAX)
		return STATUS_CORRUPT;
	ret->kind = TUPLE_NESTED;
	ret->raw = str_of(s.ptr + 1, n);
	ret->encoding = str_of(s.ptr, n + 2);
	return STATUS_OK;
}

enum status
tuple_next(struct tuple_reader *r, struct tuple_elem *ret)
{
	struct str s = r->rest;

	if (!s.len)
		return STATUS_NOT_FOUND;
	if (s.ptr[0] == CODE_STRING || s.ptr[0] == CODE_BYTES)
		TRY(tuple_read_string(s, ret)); /* as most are */
	else if (s.ptr[0] == CODE_NULL)
		TRY(tuple_read_null(r, ret));
	else if (s.ptr[0] == CODE_NESTED)
		TRY(tuple_read_nested(s, ret));
	else
		TRY(tuple_read_flat(s, ret));
	r->rest = str_skip(s, ret->encoding.len);
	return STATUS_OK;
}

static size_t
tuple_skip_any(struct str encoded, size_t at)
{
	struct tuple_reader r = tuple_reader(str_skip(encoded, at));
	struct tuple_elem e;

	return tuple_next(&r, &e) == STATUS_OK ? encoded.len - r.rest.len : 0;
}

size_t
tuple_skip(struct str encoded, size_t at, enum tuple_skip kind)
{
	switch (kind) {
	case TUPLE_SKIP_INT:
		return tuple_skip_int(encoded, at);
	case TUPLE_SKIP_BOOL:
		return tuple_skip_bool(encoded, at);
	case TUPLE_SKIP_TEXT:
		return tuple_skip_text(encoded, at);
	case TUPLE_SKIP_ANY:
		return at < encoded.len ? tuple_skip_any(encoded, at) : 0;
	}
	return 0;
}

/* As tuple_next(); the end, or another kind than `kind`, is STATUS_CORRUPT and moves nothing. */
static enum status
tuple_next_of_kind(struct tuple_reader *r, enum tuple_kind kind, struct tuple_elem *ret)
{
	struct tuple_reader next = *r;

	if (tuple_next(&next, ret) != STATUS_OK || ret->kind != kind)
		return STATUS_CORRUPT;
	*r = next;
	return STATUS_OK;
}

enum status
tuple_next_u64_any(struct tuple_reader *r, uint64_t *ret)
{
	struct str s = r->rest;
	unsigned n;
	uint64_t v;

	if (!s.len || s.ptr[0] < CODE_INT_ZERO || s.ptr[0] > CODE_INT_MOST)
		return STATUS_CORRUPT;
	n = (unsigned)s.ptr[0] - CODE_INT_ZERO;
	if (s.len <= n)
		return STATUS_CORRUPT;
	v = n ? tuple_int_bytes(s, n) : 0;
	if (n && !tuple_int_is_whole(v, n))
		return STATUS_CORRUPT;
	r->rest = str_skip(s, 1 + n);
	*ret = v;
	return STATUS_OK;
}

enum status
tuple_next_i64(struct tuple_reader *r, int64_t *ret)
{
	struct tuple_reader next = *r;
	struct tuple_elem e;

	TRY(tuple_next_of_kind(&next, TUPLE_INT, &e));
	if (!e.negative && e.magnitude > INT64_MAX)
		return STATUS_CORRUPT;
	*r = next;
	*ret = (int64_t)(e.negative ? -e.magnitude : e.magnitude);
	return STATUS_OK;
}

enum status
tuple_next_bool(struct tuple_reader *r, bool *ret)
{
	struct str s = r->rest;

	if (!s.len || (s.ptr[0] != CODE_FALSE && s.ptr[0] != CODE_TRUE))
		return STATUS_CORRUPT;
	*ret = s.ptr[0] == CODE_TRUE;
	r->rest = str_skip(s, 1);
	return STATUS_OK;
}

static enum status
tuple_next_content(struct tuple_reader *r, enum tuple_kind kind, struct buf *scratch,
		   struct str *ret)
{
	struct tuple_reader next = *r;
	struct tuple_elem e;
	size_t at = scratch->len;

	TRY(tuple_next_of_kind(&next, kind, &e));
	if (e.escaped) {
		tuple_unescape(&e, scratch);
		TRY(buf_status(scratch));
		*ret = str_of(scratch->ptr + at, scratch->len - at);
	} else {
		*ret = e.raw;
	}
	*r = next;
	return STATUS_OK;
}

enum status
tuple_next_bytes(struct tuple_reader *r, struct buf *scratch, struct str *ret)
{
	/* Strings are accepted, too: the caller wants the content, whatever its kind. */
	if (r->rest.len && r->rest.ptr[0] == CODE_STRING)
		return tuple_next_content(r, TUPLE_STRING, scratch, ret);
	return tuple_next_content(r, TUPLE_BYTES, scratch, ret);
}

enum status
tuple_next_str(struct tuple_reader *r, struct buf *scratch, struct str *ret)
{
	return tuple_next_content(r, TUPLE_STRING, scratch, ret);
}

enum status
tuple_next_versionstamp(struct tuple_reader *r, const uint8_t **ret)
{
	struct str s = r->rest;

	if (s.len <= VERSIONSTAMP_BYTES || s.ptr[0] != CODE_VERSIONSTAMP)
		return STATUS_CORRUPT;
	*ret = (const uint8_t *)s.ptr + 1;
	r->rest = str_skip(s, 1 + VERSIONSTAMP_BYTES);
	return STATUS_OK;
}

enum status
tuple_next_nested(struct tuple_reader *r, struct tuple_reader *ret)
{
	struct tuple_elem e;

	TRY(tuple_next_of_kind(r, TUPLE_NESTED, &e));
	*ret = tuple_reader_nested(&e);
	return STATUS_OK;
}

enum status
tuple_last_nested(struct tuple_reader *r, struct tuple_reader *ret)
{
	uint8_t last = r->rest.len ? (uint8_t)r->rest.ptr[r->rest.len - 1] : 0;
	size_t n = r->rest.len - (last == CODE_TRUE || last == CODE_FALSE);

	if (n < 2 || (uint8_t)r->rest.ptr[0] != CODE_NESTED || r->rest.ptr[n - 1] != '\0')
		return STATUS_CORRUPT;
	*ret = (struct tuple_reader){ str_of(r->rest.ptr + 1, n - 2), true };
	r->rest = str_skip(r->rest, n);
	return STATUS_OK;
}

enum status
tuple_skip_strings(struct tuple_reader *r, size_t n, struct str *ret_encoding)
{
	struct str s = r->rest;
	bool escaped;

	for (; n && s.len; n--) {
		size_t len = tuple_string_len(str_skip(s, 1), &escaped);

		if (((uint8_t)s.ptr[0] != CODE_BYTES && (uint8_t)s.ptr[0] != CODE_STRING) ||
		    len == SIZE_MAX)
			return STATUS_CORRUPT;
		s = str_skip(s, len + 2);
	}
	*ret_encoding = str_of(r->rest.ptr, r->rest.len - s.len);
	r->rest = s;
	return STATUS_OK;
}

void
tuple_unescape(const struct tuple_elem *e, struct buf *ret)
{
	struct str s = e->raw;

	if (!e->escaped) {
		buf_append_str(ret, s);
		return;
	}
	while (s.len) {
		const char *nul = memchr(s.ptr, 0, s.len);
		size_t n = nul ? (size_t)(nul - s.ptr) + 1 : s.len;

		buf_append(ret, s.ptr, n);
		s = str_skip(s, nul ? n + 1 : n);
	}
}

void
tuple_bigint(const struct tuple_elem *e, struct buf *ret)
{
	uint8_t bytes[sizeof(e->magnitude)];
	size_t zeros;

	if (e->kind == TUPLE_INT) {
		big_endian_put_64(bytes, e->magnitude);
		zeros = e->magnitude ? (size_t)__builtin_clzll(e->magnitude) / 8 : sizeof(bytes);
		buf_append(ret, bytes + zeros, sizeof(bytes) - zeros);
		return;
	}
	if (!buf_reserve(ret, e->raw.len))
		return;
	for (size_t i = 0; i < e->raw.len; i++)
		ret->ptr[ret->len++] = (char)(e->negative ? ~e->raw.ptr[i] : e->raw.ptr[i]);
}

/* ---- Ranges ---- */

enum status
tuple_prefix_end(struct str prefix, struct buf *ret)
{
	while (prefix.len && (uint8_t)prefix.ptr[prefix.len - 1] == 0xff)
		prefix.len--;
	if (!prefix.len)
		return STATUS_INVALID;
	buf_append(ret, prefix.ptr, prefix.len - 1);
	buf_append_byte(ret, (uint8_t)(prefix.ptr[prefix.len - 1] + 1));
	return buf_status(ret);
}
