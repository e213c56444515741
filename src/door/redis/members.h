/* What commands on hashes, sets and sorted sets share: going through members, removing, drawing. */
#ifndef FROND_DOOR_REDIS_MEMBERS_H
#define FROND_DOOR_REDIS_MEMBERS_H

#include "door/redis/data.h"

#define MEMBERS_RANDOM_MOST (INT64_C(1) << 40)

/* Goes through all members, page by page. */
struct members_walk {
	struct timed_item *item;
	struct arena *arena;
	struct timed_members page;
	size_t at;
	bool begun;
};

void members_walk_init(struct members_walk *w, struct timed_item *item, struct arena *arena);
/* STATUS_NOT_FOUND at the end. */
MUST_USE enum status members_walk_next(struct members_walk *w, struct timed_member *ret);

/* All of them. */
MUST_USE enum status members_all(struct timed_item *item, struct arena *arena,
				 struct timed_member **ret, size_t *ret_count);

MUST_USE enum status members_delete(struct call *c, struct timed_item *item,
				    const struct str *names, size_t count, size_t *ret_removed);

/*
 * Draws at random: at most `wanted` different ones, or, if it is negative, exactly that many of
 * which some may be the same.
 */
MUST_USE enum status members_random(struct call *c, struct timed_item *item, int64_t wanted,
				    struct timed_member **ret, size_t *ret_count);

/* HSCAN, SSCAN, ZSCAN. */
MUST_USE enum status members_scan(struct call *c, enum timed_type type);

/* A number below `n`, at random. */
uint64_t members_draw(uint64_t n);

#endif
