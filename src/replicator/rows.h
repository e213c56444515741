/*
 * The rows of a long JSON answer, cut out as it arrives.
 *
 * CouchDB's long answers are an object with one array: {"results":[row, row…],"last_seq":…}. The
 * reader is fed with pieces of it and gives out the texts of the array's elements, one after
 * another, and at the end the object without them. It only looks at brackets, strings and commas:
 * the code that reads a row's text finds any other error. A reader belongs to one thread.
 */
#ifndef FROND_REPLICATOR_ROWS_H
#define FROND_REPLICATOR_ROWS_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

struct budget_part;

enum {
	ROWS_REST_BYTES = 64 * 1024, /* of the object without its rows */
	ROWS_DEPTH = 1024,
	ROWS_BETWEEN_BYTES = 1 << 20, /* spaces, newlines and commas between two rows */
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
	size_t between; /* bytes since the last row */
	unsigned depth; /* containers open around the next byte */
	bool in_string;
	bool escaped; /* the last byte was a backslash in a string */
	bool had_array;
};

/* Rows longer than `row_bytes` are STATUS_LIMIT. `part` counts the memory; NULL: nothing does. */
void rows_init(struct rows *r, size_t row_bytes, struct budget_part *part);
void rows_release(struct rows *r);

/*
 * Takes bytes from the front of `data` up to the end of the next row, which is valid until the next
 * call (and as long as `data`'s bytes). STATUS_NOT_FOUND: all were taken, feed more. STATUS_LIMIT
 * for a row, a rest or a stretch between two rows past the limits, STATUS_NOMEM.
 */
MUST_USE enum status rows_next(struct rows *r, struct str *data, struct str *ret);

/* At the answer's end: the object with an empty array. STATUS_JSON_SYNTAX if it is cut off. */
MUST_USE enum status rows_end(struct rows *r, struct str *ret);

#endif
