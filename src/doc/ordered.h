/*
 * Ordered bytes of values that are stored as they were written: memcmp() of two of them, the
 * shorter one first where it begins the longer, is PostgreSQL's order, and equal ones are equal for
 * it: 1.0 and 1.00, a month and 30 days. ordered.c has them byte by byte. They are stored, in keys
 * and in entries of indexes: they never change.
 *
 *     numeric    "-12.50", "NaN", "Infinity", "-Infinity"
 *     interval   8 bytes: microseconds, 4: days, 4: months, big-endian
 *
 * Plain functions. Threading: none.
 */
#ifndef FROND_DOC_ORDERED_H
#define FROND_DOC_ORDERED_H

#include "base/buf.h"

#define DOC_US_PER_DAY INT64_C(86400000000)

enum {
	DOC_NUMERIC_WHOLE = 131072,   /* digits before the point, as PostgreSQL has them */
	DOC_NUMERIC_FRACTION = 16383, /* and behind it */
	DOC_INTERVAL_BYTES = 16,
	DOC_DAYS_PER_MONTH = 30,
};

/* Whether a text is a numeric. */
bool doc_numeric_check(struct str text);
/* Appends the ordered bytes of one. */
void doc_numeric_put(struct str text, struct buf *out);
/* Appends the numeric of ordered bytes, without zeros behind its last digit. STATUS_CORRUPT for
 * bytes that doc_numeric_put() does not write. */
MUST_USE enum status doc_numeric_read(struct str ordered, struct buf *out);

/* Appends the ordered bytes of an interval. False: the bytes are none. */
bool doc_interval_put(struct str value, struct buf *out);

#endif
