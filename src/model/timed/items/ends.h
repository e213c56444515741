/*
 * What the pops and draws of one transaction have read of an item and may take later:
 * item->popping. It lies in the item's arena. list.c, zset.c and draw.c each use it for items of
 * their own type, and any other change of the item drops it.
 */
#ifndef FROND_MODEL_TIMED_ITEMS_ENDS_H
#define FROND_MODEL_TIMED_ITEMS_ENDS_H

#include "model/timed/items/item_int.h"

struct timed_ends {
	bool last;                    /* at the greatest or the right end, else at the other */
	size_t taken;                 /* so many of what was read are gone */
	struct timed_members members; /* of a sorted set: at that end of the order */

	/* Of a list. */
	struct timed_elements elements;
	size_t popped;               /* at this end, one pop after the other */
	const struct timed_run *run; /* that was popped from last, as it was read */
	struct timed_run left;       /* what is left of it */

	/* Of a set. */
	size_t draws;      /* without knowing all names */
	struct str *names; /* of all members; NULL: they were not read */
	size_t count;      /* of the names that are left */
	size_t bytes;      /* of those that were read */
	size_t drawn;      /* the place of the name that was drawn last */
};

#endif
