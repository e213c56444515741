/*
 * The columns that a request wants of rows.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_DOOR_ROWS_DATA_PICK_H
#define FROND_DOOR_ROWS_DATA_PICK_H

#include "door/rows/data/txn.h"

struct pick {
	const struct column **columns; /* in the order of the request */
	size_t count;
	struct table_wanted wanted; /* of what lies outside of the key */
	bool statics;               /* static columns are among them */
	uint64_t *ids;
};

/* Finds the columns, with room for `more` further ones, which rows_pick_want() adds. */
MUST_USE enum status rows_pick_make(struct rows_request *r, const struct table *t,
				    const uint32_t *ids, size_t count, size_t more,
				    struct pick *ret);
/* The column is read, too, and not given. */
void rows_pick_want(struct pick *p, const struct column *c);
/* All columns are there: puts what is wanted in order. */
void rows_pick_end(struct pick *p);

/* Appends the column's value in a row that was read. */
MUST_USE enum status rows_pick_put(struct rows_request *r, const struct table *t,
				   const struct column *c, const struct table_row *row,
				   struct buf *out);

#endif
