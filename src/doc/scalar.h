/*
 * Scalars: the values at the ends of paths, of every model, each with the type that its client gave
 * it, and how a leaf holds them.
 *
 * A scalar is a plain value. Its texts and bytes are borrowed: from the caller where it was made,
 * from the leaf or the scratch buffer where it was read. Nothing here knows a syntax; JSON's
 * numbers are a kind of their own because JSON keeps them as text.
 *
 * README.md has the encoding of each kind, byte by byte. The numbers of kinds are stored.
 */
#ifndef FROND_DOC_SCALAR_H
#define FROND_DOC_SCALAR_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

/* Kinds from DOC_INT32 on are stored with their number in front: never renumber those. */
enum doc_kind {
	DOC_NULL = -12,
	DOC_BOOL,         /* truth */
	DOC_TEXT,         /* text: valid UTF-8 */
	DOC_BYTES,        /* text: any bytes */
	DOC_INT64,        /* n */
	DOC_DOUBLE,       /* d, every bit of it: NaNs, infinities, -0 */
	DOC_FLOAT,        /* f, likewise */
	DOC_NUMBER,       /* text: a JSON number that is no other kind; d: the nearest double */
	DOC_UUID,         /* text: 16 bytes */
	DOC_EMPTY_ARRAY,  /* not a scalar, but a leaf's value */
	DOC_EMPTY_OBJECT, /* not a scalar, but a leaf's value */

	DOC_INT32 = 1,   /* n */
	DOC_INT16 = 2,   /* n */
	DOC_INT8 = 3,    /* n */
	DOC_INTEGER = 4, /* of any length. negative; text: big-endian magnitude, no leading zeros */
	DOC_DECIMAL128 = 5, /* high, low: IEEE 754-2008 in its binary integer encoding, as BSON's */
	/* (negative, text as INTEGER's) times 10^-n; n fits an int32_t; of any length. */
	DOC_DECIMAL = 6,
	DOC_BINARY = 7,      /* text: bytes; n: BSON's subtype, 1 to 255 */
	DOC_DATE = 8,        /* n: milliseconds since 1970 */
	DOC_DAY = 9,         /* n: days since 1970, an int32_t */
	DOC_TIME = 10,       /* n: nanoseconds since midnight, less than a day */
	DOC_DURATION = 11,   /* months, days, n: nanoseconds; none positive if any is negative */
	DOC_TIMEUUID = 12,   /* text: 16 bytes, a UUID of version 1 */
	DOC_OBJECT_ID = 13,  /* text: 12 bytes */
	DOC_TIMESTAMP = 14,  /* n, taken as unsigned: seconds and increment, 32 bits each */
	DOC_REGEX = 15,      /* text: pattern; more: options; UTF-8 without NUL */
	DOC_CODE = 16,       /* text: UTF-8 */
	DOC_CODE_SCOPE = 17, /* text: UTF-8; more: a BSON document's bytes */
	DOC_SYMBOL = 18,     /* text: UTF-8 */
	DOC_DB_POINTER = 19, /* text: a name space, UTF-8; more: 12 bytes */
	DOC_UNDEFINED = 20,
	DOC_MIN_KEY = 21,
	DOC_MAX_KEY = 22,
	DOC_INET = 23, /* text: 4 or 16 bytes */
	DOC_KINDS_END,
};

enum {
	DOC_UUID_BYTES = 16,
	DOC_OBJECT_ID_BYTES = 12,
	DOC_DECIMAL128_BYTES = 16,
	DOC_INET4_BYTES = 4,
	DOC_INET6_BYTES = 16,
};

struct doc_scalar {
	enum doc_kind kind;
	bool truth;
	bool negative;
	int32_t months;
	int32_t days;
	union {
		int64_t n;
		double d;
		float f;
		struct {
			uint64_t high;
			uint64_t low;
		};
	};
	struct str text;
	struct str more;
};

/*
 * Appends the leaf's value: one tuple element. Each scalar has exactly one encoding. The scalar
 * must be as its kind says, which is asserted: a door checks what its client sends before it makes
 * one.
 */
void doc_scalar_put(struct buf *value, const struct doc_scalar *s);

/*
 * Reads a leaf's value. Sets the members that its kind has, and no others. What cannot be borrowed
 * from the value is put together in `scratch`, whose content is lost. STATUS_CORRUPT for bytes that
 * doc_scalar_put() does not write; STATUS_NOMEM, STATUS_LIMIT when `scratch` is full.
 */
MUST_USE enum status doc_scalar_read(struct str value, struct buf *scratch, struct doc_scalar *ret);

#endif
