/*
 * Checks that each block of a skip list (blocks.c) counts what lies between its beginning and the
 * next one, and that it begins with what the level below has there: for `frond verify`.
 */
#ifndef FROND_MODEL_TIMED_ITEMS_BLOCKS_CHECK_H
#define FROND_MODEL_TIMED_ITEMS_BLOCKS_CHECK_H

#include "catalog/check.h"
#include "model/timed/items/item_int.h"

struct blocks_check {
	unsigned level; /* that is being gone through; 0: none is */
	bool is_list;   /* entries of level 0 may be runs */
	bool wrong;     /* a block of the level; the numbers are the first such one's */
	uint64_t wrong_counts, wrong_has;

	struct catalog_verify_cursor below; /* of the level below, beside it */
	bool is_open;
	uint64_t counts, has; /* of the block that the cursor is in */
};

/*
 * The next block in the order of keys. `body` is what the body's keys begin with, `order` what
 * follows the level in the block's key. With another level than before, the caller has called
 * blocks_check_end().
 */
MUST_USE enum status blocks_check_take(struct catalog_verify *v, struct blocks_check *c,
				       struct str body, unsigned level, struct str order,
				       uint64_t counts);
/* There is no other block of the level. `wrong` tells whether all were right. */
MUST_USE enum status blocks_check_end(struct catalog_verify *v, struct blocks_check *c);
/* Ends a check wherever it is; one that was zeroed may be released. */
void blocks_check_release(struct blocks_check *c);

#endif
