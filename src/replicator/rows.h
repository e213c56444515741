/*
 * The rows of a long JSON answer, cut out as it arrives.
 *
 * CouchDB's long answers are an object with one array: {"results":[row, row…],"last_seq":…}. What
 * is fed in pieces comes out as the texts of the array's elements, one after another, and, at the
 * end, the object without them. Only the structure is looked at; whoever reads a row's text checks
 * it. One thread's.
 */
#ifndef FROND_REPLICATOR_ROWS_H
#define FROND_REPLICATOR_ROWS_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	ROWS_REST_BYTES = 64 * 1024, /* of the object without its rows */
	ROWS_DEPTH = 1024,
};

enum rows_where {
	ROWS_OUTSIDE, /* of the array: before or behind it */
	ROWS_BETWEEN, /* in the array, before a row or a comma */
	ROWS_IN_ROW,
};

struct rows {
	struct buf rest;
	struct buf row; /* the beginning of a row that goes on in the next piece */
	enum rows_where where;
	unsigned depth; /* containers open around the next byte */
	bool in_string;
	bool escaped; /* the last byte was a backslash in a string */
	bool had_array;
};

/* Rows longer than `row_bytes` are refused. */
void rows_init(struct rows *r, size_t row_bytes);
void rows_release(struct rows *r);

/*
 * Takes bytes from the front of `data` up to the end of the next row, which is valid until the next
 * call (and as long as `data`'s bytes). STATUS_NOT_FOUND: all were taken, feed more. STATUS_LIMIT
 * for a row, a depth or a rest past the limits, STATUS_NOMEM.
 */
MUST_USE enum status rows_next(struct rows *r, struct str *data, struct str *ret);

/* At the answer's end: the object with an empty array. STATUS_JSON_SYNTAX if it is cut off. */
MUST_USE enum status rows_end(struct rows *r, struct str *ret);

#endif
