/*
 * The kinds of values that rows have: one for every type of PostgreSQL that may be a key, each with
 * the bytes of its values in messages, and with ordered bytes whose order is PostgreSQL's.
 *
 * Numbers are big-endian. docs/ROWS.md has the table of kinds with their bytes. Ordered bytes are
 * stored: they never change.
 *
 *     bool       0, 1                          as it is
 *     int…       the number                    its sign inverted
 *     float…     IEEE 754                      -0 as 0, every NaN as one, negative ones inverted
 *     numeric    "-12.50", "NaN", "-Infinity"  class, exponent, pairs of digits: doc/ordered.c
 *     text       UTF-8                         as it is, which is the order of the collation "C"
 *     bytes      any                           as they are
 *     date       4: days since 2000            its sign inverted
 *     time       8: µs since midnight          its sign inverted
 *     timetz     8: µs, 4: seconds west        the moment of the day in UTC, then the zone
 *     timestamp… 8: µs since 2000              its sign inverted
 *     interval   8: µs, 4: days, 4: months     16: µs, a day of 24 hours, a month of 30 days
 *     uuid       16                            as it is
 *     inet       family, bits, address         family, network, bits, address
 *     macaddr…   6, 8                          as it is
 *     bits       4: how many, bytes            the bytes, each 0 as 0 255, an end 0 0; how many
 *     other      UTF-8                         none: it cannot be a key
 *
 * Dates and timestamps have infinities: the least and the greatest number.
 *
 * Threading: none.
 */
#ifndef FROND_DOOR_ROWS_WIRE_KIND_H
#define FROND_DOOR_ROWS_WIRE_KIND_H

#include "base/buf.h"
#include "doc/ordered.h"

/* In messages: never renumber. */
enum rows_kind {
	ROWS_NONE = 0, /* of a column that this protocol cannot read: a collection, a counter … */
	ROWS_BOOL = 1,
	ROWS_INT2 = 2,
	ROWS_INT4 = 3,
	ROWS_INT8 = 4,
	ROWS_FLOAT4 = 5,
	ROWS_FLOAT8 = 6,
	ROWS_NUMERIC = 7,
	ROWS_TEXT = 8,
	ROWS_BYTES = 9,
	ROWS_DATE = 10,
	ROWS_TIME = 11,
	ROWS_TIMETZ = 12,
	ROWS_TIMESTAMP = 13,
	ROWS_TIMESTAMPTZ = 14,
	ROWS_INTERVAL = 15,
	ROWS_UUID = 16,
	ROWS_INET = 17,
	ROWS_MACADDR = 18,
	ROWS_MACADDR8 = 19,
	ROWS_BITS = 20,
	ROWS_OTHER = 21, /* any other type, as its text */
	ROWS_KINDS,
};

enum {
	/* Of a numeric's text. */
	ROWS_NUMERIC_BYTES = DOC_NUMERIC_WHOLE + DOC_NUMERIC_FRACTION + 2,
	ROWS_ORDERED_BYTES = 192 * 1024, /* of the ordered bytes of one value, at most */
};

/* "numeric"; "none" for what is no kind. Static. */
const char *rows_kind_name(enum rows_kind kind);
/* False if there is no kind of that name; "none" is not one. */
bool rows_kind_named(struct str name, enum rows_kind *ret);

/* True if values of the kind may be components of a key. */
bool rows_kind_is_key(enum rows_kind kind);

/* True if the bytes are a value of the kind, as messages have it. */
bool rows_value_check(enum rows_kind kind, struct str value);

/*
 * Appends the ordered bytes of a value that was checked: memcmp() of two of them, the shorter one
 * first where it begins the longer, is PostgreSQL's order. Equal ones are equal for PostgreSQL.
 * STATUS_INVALID for a kind that is no key; STATUS_LIMIT when the buffer is full.
 */
MUST_USE enum status rows_ordered_put(enum rows_kind kind, struct str value, struct buf *out);

/*
 * Appends the value of ordered bytes: the same, or an equal one of these: a numeric without zeros
 * behind its last digit, 0 for -0, an interval in days. STATUS_CORRUPT for bytes that
 * rows_ordered_put() does not write.
 */
MUST_USE enum status rows_ordered_read(enum rows_kind kind, struct str ordered, struct buf *out);

#endif
