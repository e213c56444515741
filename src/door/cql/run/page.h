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
	PAGE_PLACE_BYTES = 2 * TABLE_PLACE_BYTES + 8, /* of an index, and in a partition */
	PAGE_STATE_BYTES = PAGE_PLACE_BYTES + 200,
};

struct page {
	uint64_t partition; /* of the plan: the one that the place is in */
	uint64_t range;     /* of that partition */
	uint64_t left;      /* rows that LIMIT lets follow; UINT64_MAX: any */
	uint64_t part_left; /* and PER PARTITION LIMIT, in the partition of the place */
	uint64_t skip;      /* rows that OFFSET still leaves out */
	uint64_t at_us;     /* the moment of all pages, by the table's time; 0: the present */
	int64_t token;      /* of the row before the place */
	uint64_t index;     /* the number of the index that is read; 0: none */
	/*
	 * Of a scan; with an index two places, in it and in the partition that an entry names
	 * (page_put_places()); of a table that is made up, how many rows there were.
	 */
	struct str place;
};

/* What a state is of: the statement's text, the values of its markers, and the table. */
uint64_t page_owner(const struct run *run);

/* Appends a state. */
void page_put(struct buf *out, uint64_t owner, const struct page *p);

/*
 * The index that the page before has read; false: the bytes are no state. Whether the statement
 * owns the state is page_read()'s to say.
 */
bool page_read_index(struct str state, uint64_t *ret);

/* A place in an index, and one in a partition, as one. */
void page_put_places(struct buf *out, struct str in_index, struct str in_partition);
/* STATUS_INVALID: it is none. Both may be empty. */
MUST_USE enum status page_read_places(struct str place, struct str *ret_in_index,
				      struct str *ret_in_partition);

/* Reads one; the place is borrowed. STATUS_INVALID: it is none, or another statement's. */
MUST_USE enum status page_read(struct str state, uint64_t owner, struct page *ret);

#endif
