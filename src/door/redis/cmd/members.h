/* What commands on hashes, sets and sorted sets share: going through members, removing, drawing. */
#ifndef FROND_DOOR_REDIS_CMD_MEMBERS_H
#define FROND_DOOR_REDIS_CMD_MEMBERS_H

#include "door/redis/cmd/data.h"

#define MEMBERS_RANDOM_MOST (INT64_C(1) << 40)

/*
 * Goes through all members, page by page. A member stays as long as the item's arena, or, if the
 * walk forgets it, until the next one is asked for. A walk that forgets has memory of its own, of
 * the same budget.
 */
struct members_walk {
	struct timed_item *item;
	bool forgets;
	struct arena *pages; /* if it forgets, from the first page on */
	struct timed_members page;
	size_t at;
	bool begun;
};

void members_walk_init(struct members_walk *w, struct timed_item *item, bool forgets);
/* For a walk that forgets; one that is all zero may be ended. */
void members_walk_end(struct members_walk *w);
/* STATUS_NOT_FOUND at the end. */
MUST_USE enum status members_walk_next(struct members_walk *w, struct timed_member *ret);
/* The same, and with it all others of its page: `ret_count` is not 0. They may be changed. */
MUST_USE enum status members_walk_rest(struct members_walk *w, struct timed_member **ret,
				       size_t *ret_count);

/*
 * Looks for members of a page in another item. What that takes is forgotten with the page, `pages`
 * of its walk; but a member that is looked up alone is remembered by its item.
 */
MUST_USE enum status members_find(struct timed_item *item, struct arena *pages,
				  struct timed_member *members, size_t count);

/* All of them. */
MUST_USE enum status members_all(struct timed_item *item, struct arena *arena,
				 struct timed_member **ret, size_t *ret_count);

/* Makes these members the collection at the key of the first argument, and answers how many. */
MUST_USE enum status members_store(struct call *c, enum timed_type type,
				   struct timed_member *members, size_t count);

/*
 * Looks for the members that the arguments from the second on name, in the key of the first. In the
 * call's arena. Without `values` the
 * long values of a hash are not read: only which fields there are, and how long their values are.
 */
MUST_USE enum status members_look_up(struct call *c, enum timed_type type, bool values,
				     struct timed_member **ret, size_t *ret_count);

/*
 * Draws at random: at most `wanted` different ones, or, if it is negative, exactly that many of
 * which some may be the same.
 */
MUST_USE enum status members_random(struct call *c, struct timed_item *item, int64_t wanted,
				    struct timed_member **ret, size_t *ret_count);

/* What SCAN and its kin take behind the cursor. */
struct scan_options {
	struct str pattern;
	struct str type; /* ptr NULL: any */
	size_t least;    /* COUNT */
};

/* Reads them from argument `at` on. */
MUST_USE enum status scan_parse(struct call *c, size_t at, bool takes_type,
				struct scan_options *ret);

#endif
