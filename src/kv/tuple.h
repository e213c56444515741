/*
 * The tuple codec: typed values to bytes whose order is the values' order. Byte for byte
 * FoundationDB's tuple layer (its design/tuple.md), so that every binding of it can read our keys.
 *
 * Writing appends to a struct buf, which remembers a failure, so the caller asks for it once at the
 * end. Reading goes through an encoded tuple element by element and borrows its bytes. Nothing here
 * owns memory, and everything may be called from any thread.
 *
 * Order: null < bytes < strings < nested tuples < integers < floats < doubles < false < true <
 * UUIDs < versionstamps; strings by their UTF-8 bytes.
 */
#ifndef FROND_KV_TUPLE_H
#define FROND_KV_TUPLE_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	TUPLE_INT_MAX_BYTES = 255, /* of an integer's magnitude */
	TUPLE_MAX_DEPTH = 64,      /* nested tuples that a reader follows */
};

/* ---- Writing ---- */

void tuple_put_null(struct buf *b);
void tuple_put_nested_null(struct buf *b); /* inside tuple_open(): nulls are escaped there */
void tuple_put_bytes(struct buf *b, struct str s);
void tuple_put_str(struct buf *b, struct str utf8);
void tuple_put_u64(struct buf *b, uint64_t n);
void tuple_put_i64(struct buf *b, int64_t n);
/* Big-endian magnitude, at most TUPLE_INT_MAX_BYTES after its leading zeros; else b fails
 * (STATUS_LIMIT). */
void tuple_put_bigint(struct buf *b, bool negative, struct str magnitude);
void tuple_put_float(struct buf *b, float f);
void tuple_put_double(struct buf *b, double d); /* keeps the bits of NaNs and of negative zero */
void tuple_put_bool(struct buf *b, bool value);
void tuple_put_uuid(struct buf *b, const uint8_t uuid[16]);
/*
 * All twelve bytes. For a stamp that the commit will fill in, any ten and the caller's two: the
 * stamp's offset in the buffer is what this returns.
 */
size_t tuple_put_versionstamp(struct buf *b, const uint8_t stamp[12]);
void tuple_open(struct buf *b);
void tuple_close(struct buf *b);

/* ---- Reading ---- */

enum tuple_kind {
	TUPLE_NULL,
	TUPLE_BYTES,
	TUPLE_STRING,
	TUPLE_NESTED,
	TUPLE_INT,    /* fits an int64_t, or a uint64_t when not negative */
	TUPLE_BIGINT, /* does not */
	TUPLE_FLOAT,
	TUPLE_DOUBLE,
	TUPLE_FALSE,
	TUPLE_TRUE,
	TUPLE_UUID,
	TUPLE_VERSIONSTAMP,
};

struct tuple_elem {
	enum tuple_kind kind;
	/*
	 * BYTES, STRING: the content as encoded, a NUL in it as 00 FF (see `escaped`); NESTED: the
	 * encoded elements, for tuple_reader_nested(); BIGINT: the big-endian magnitude,
	 * complemented when negative (tuple_bigint() undoes that); UUID, VERSIONSTAMP: the bytes.
	 */
	struct str raw;
	bool escaped;       /* BYTES, STRING: `raw` holds escaped NULs */
	bool negative;      /* INT, BIGINT */
	uint64_t magnitude; /* INT: the absolute value */
	float f;
	double d;
	struct str encoding; /* the whole element, type code included */
};

struct tuple_reader {
	struct str rest;
	bool nested; /* nulls are escaped */
};

static inline struct tuple_reader
tuple_reader(struct str encoded)
{
	return (struct tuple_reader){ encoded, false };
}

struct tuple_reader tuple_reader_nested(const struct tuple_elem *nested);

/*
 * STATUS_NOT_FOUND at the end; STATUS_CORRUPT for bytes that are not a tuple (the reader then
 * stays). A value has one encoding: integers that are not in their shortest form are corrupt, too.
 * Whether a STRING is valid UTF-8 is not looked at.
 */
MUST_USE enum status tuple_next(struct tuple_reader *r, struct tuple_elem *ret);

/* The same of an element that must be there: the end is STATUS_CORRUPT, too. */
MUST_USE static inline enum status
tuple_next_elem(struct tuple_reader *r, struct tuple_elem *ret)
{
	return r->rest.len ? tuple_next(r, ret) : STATUS_CORRUPT;
}

/*
 * The next element, which must be there, be of this kind and fit, or STATUS_CORRUPT; the reader
 * then stays.
 */
MUST_USE static inline enum status tuple_next_u64(struct tuple_reader *r, uint64_t *ret);
MUST_USE enum status tuple_next_i64(struct tuple_reader *r, int64_t *ret);
MUST_USE enum status tuple_next_bool(struct tuple_reader *r, bool *ret);
/* Bytes or a string; NULs are unescaped into `scratch` (appended) where there are any. */
MUST_USE enum status tuple_next_bytes(struct tuple_reader *r, struct buf *scratch, struct str *ret);
MUST_USE enum status tuple_next_str(struct tuple_reader *r, struct buf *scratch, struct str *ret);
MUST_USE enum status tuple_next_versionstamp(struct tuple_reader *r, const uint8_t **ret);
MUST_USE enum status tuple_next_nested(struct tuple_reader *r, struct tuple_reader *ret);
/*
 * The same for a nested tuple that is the last element, or the last but one with a boolean behind
 * it, which is then the next. The nested tuple is not gone through, however long it is, so what is
 * wrong with it shows only when it is read.
 */
MUST_USE enum status tuple_last_nested(struct tuple_reader *r, struct tuple_reader *ret);
/* Passes over `n` elements that are bytes or strings, or over all if there are fewer. */
MUST_USE enum status tuple_skip_strings(struct tuple_reader *r, size_t n, struct str *ret_encoding);

/* Appends the content of a BYTES or STRING element, NULs unescaped. */
void tuple_unescape(const struct tuple_elem *e, struct buf *ret);

/* The big-endian magnitude of a BIGINT or INT element; appended. */
void tuple_bigint(const struct tuple_elem *e, struct buf *ret);

/* ---- Ranges ---- */

/*
 * The end of the range of every key that starts with `prefix` (the beginning is the prefix itself):
 * the prefix with its last byte below FF incremented. Appended to `ret`; STATUS_INVALID when all
 * are FF.
 */
MUST_USE enum status tuple_prefix_end(struct str prefix, struct buf *ret);

/* ---- Kinds of elements ---- */

enum tuple_skip {
	TUPLE_SKIP_INT,  /* of at most eight bytes */
	TUPLE_SKIP_TEXT, /* bytes or a string */
	TUPLE_SKIP_BOOL,
	TUPLE_SKIP_ANY, /* any element there is, nested tuples as a whole */
};

enum {
	/* Type codes of FoundationDB's design/tuple.md. Stored: never renumber. */
	TUPLE_CODE_BYTES = 0x01,
	TUPLE_CODE_STRING = 0x02,
	TUPLE_CODE_INT_LEAST = 0x0c, /* 8 bytes, negative */
	TUPLE_CODE_INT_ZERO = 0x14,
	TUPLE_CODE_INT_MOST = 0x1c, /* 8 bytes */
	TUPLE_CODE_FALSE = 0x26,
	TUPLE_CODE_TRUE = 0x27,
	TUPLE_CODE_ESCAPE = 0xff, /* behind a NUL: the NUL is content */
};

/* ---- Inline: what nearly every record and key holds ---- */

/* The rest of tuple_next_u64(), for any integer. */
MUST_USE enum status tuple_next_u64_any(struct tuple_reader *r, uint64_t *ret);

static inline enum status
tuple_next_u64(struct tuple_reader *r, uint64_t *ret)
{
	struct str s = r->rest;

	/* Most integers have one byte, which is not 0: that has an encoding of its own. */
	if (s.len > 1 && s.ptr[0] == TUPLE_CODE_INT_ZERO + 1 && s.ptr[1]) {
		*ret = (uint8_t)s.ptr[1];
		r->rest = str_skip(s, 2);
		return STATUS_OK;
	}
	return tuple_next_u64_any(r, ret);
}

/*
 * Reads an element of that kind, TUPLE_BYTES or TUPLE_STRING, whose content has no NUL; `*ret` is
 * the content. Returns false for everything else, and the reader then stays: tuple_next() tells.
 */
static inline bool
tuple_next_plain(struct tuple_reader *r, enum tuple_kind kind, struct str *ret)
{
	struct str s = r->rest;
	const char *nul;

	if (!s.len || s.ptr[0] != (kind == TUPLE_BYTES ? TUPLE_CODE_BYTES : TUPLE_CODE_STRING))
		return false;
	nul = memchr(s.ptr + 1, 0, s.len - 1);
	if (!nul || (nul + 1 < s.ptr + s.len && (uint8_t)nul[1] == TUPLE_CODE_ESCAPE))
		return false;
	*ret = str_of(s.ptr + 1, (size_t)(nul - s.ptr) - 1);
	r->rest = str_skip(s, ret->len + 2);
	return true;
}

/* tuple_skip() of TUPLE_SKIP_INT, inline for the embedded engine, which asks about every key. */
static inline size_t
tuple_skip_int(struct str encoded, size_t at)
{
	uint8_t code;
	size_t len;

	if (at >= encoded.len)
		return 0;
	code = (uint8_t)encoded.ptr[at];
	if (code == TUPLE_CODE_INT_ZERO + 1) /* as most are */
		return at + 2 <= encoded.len ? at + 2 : 0;
	if (code < TUPLE_CODE_INT_LEAST || code > TUPLE_CODE_INT_MOST)
		return 0;
	len = code < TUPLE_CODE_INT_ZERO ? (size_t)(TUPLE_CODE_INT_ZERO - code)
					 : (size_t)(code - TUPLE_CODE_INT_ZERO);
	return at + 1 + len <= encoded.len ? at + 1 + len : 0;
}

/* The same of TUPLE_SKIP_BOOL. */
static inline size_t
tuple_skip_bool(struct str encoded, size_t at)
{
	return at < encoded.len && ((uint8_t)encoded.ptr[at] == TUPLE_CODE_FALSE ||
				    (uint8_t)encoded.ptr[at] == TUPLE_CODE_TRUE)
		       ? at + 1
		       : 0;
}

/* The rest of tuple_skip_text(): the first NUL of the content, at `nul`, may be escaped. */
size_t tuple_skip_escaped(struct str encoded, size_t nul);

/* The same of TUPLE_SKIP_TEXT. */
static inline size_t
tuple_skip_text(struct str encoded, size_t at)
{
	const char *nul;
	size_t end;

	if (at >= encoded.len ||
	    (encoded.ptr[at] != TUPLE_CODE_BYTES && encoded.ptr[at] != TUPLE_CODE_STRING))
		return 0;
	nul = memchr(encoded.ptr + at, 0, encoded.len - at);
	if (!nul)
		return 0;
	end = (size_t)(nul - encoded.ptr) + 1;
	if (end < encoded.len && (uint8_t)nul[1] == TUPLE_CODE_ESCAPE)
		return tuple_skip_escaped(encoded, end - 1);
	return end;
}

/*
 * Where the element ends that begins at `at`; 0 if no element of that kind begins there. Looks at
 * nothing behind the element but the next byte, and may be given any bytes.
 */
size_t tuple_skip(struct str encoded, size_t at, enum tuple_skip kind);

/*
 * Draws an encoded tuple for people: ("revisions", "mydoc", true, 3, \x9b...).
 * Byte strings of up to 32 bytes are drawn in full, longer ones cut with their length behind.
 * Bytes that are not a tuple are drawn as escaped bytes.
 */
void tuple_draw(struct str encoded, struct buf *ret);

#endif
