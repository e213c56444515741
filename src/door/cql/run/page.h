/*
 * Paging states: where a SELECT goes on. A state is bytes that a client keeps and sends back, to
 * any process, after any time. It names the statement and its table, and is refused by another one.
 * Nothing that it says gives a client rows that its statement does not.
 *
 * Threading: none.
 */
#ifndef FROND_DOOR_CQL_RUN_PAGE_H
#define FROND_DOOR_CQL_RUN_PAGE_H

#include "door/cql/run/context.h"

enum {
	PAGE_STATE_BYTES = TABLE_PLACE_BYTES + 200,
};

struct page {
	uint64_t partition; /* of the plan: the one that the place is in */
	uint64_t range;     /* of that partition */
	uint64_t left;      /* rows that LIMIT lets follow; UINT64_MAX: any */
	uint64_t part_left; /* and PER PARTITION LIMIT, in the partition of the place */
	uint64_t skip;      /* rows that OFFSET still leaves out */
	uint64_t at_us;     /* the moment of all pages, by the table's time; 0: the present */
	int64_t token;      /* of the row before the place */
	struct str place;   /* of a scan; of a table that is made up, how many rows there were */
};

/* What a state is of: the statement's text, the values of its markers, and the table. */
uint64_t page_owner(const struct run *run);

/* Appends a state. */
void page_put(struct buf *out, uint64_t owner, const struct page *p);

/* Reads one; the place is borrowed. STATUS_INVALID: it is none, or another statement's. */
MUST_USE enum status page_read(struct str state, uint64_t owner, struct page *ret);

#endif
