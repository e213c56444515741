/*
 * Sums of JSON numbers: exact for integers of any length, as near as doubles allow for the others.
 *
 * A sum is a plain value, which begins as { 0 }. Long integers need memory, which every call takes
 * from the arena that it is given: the same one each time, which has to outlive the sum. Threading:
 * that of the arena.
 */
#ifndef FROND_DOOR_COUCH_QUERY_EXACT_SUM_H
#define FROND_DOOR_COUCH_QUERY_EXACT_SUM_H

#include "base/buf.h"
#include "index/leaf.h"

/* An integer of any length: groups of nine decimal digits, the lowest first. */
struct exact_integer {
	uint32_t *groups;
	size_t count; /* the highest group is not 0 */
	size_t cap;
	bool negative;
};

struct exact_sum {
	uint64_t numbers;               /* that were added */
	__int128 small;                 /* of integers of at most 64 bits */
	struct exact_integer long_ones; /* of all other integers */
	bool any_double;
	double doubles;
	double lost; /* what adding to `doubles` has rounded away */
};

/*
 * Adds a number. Steps of long ones are counted in `w`, whose arena holds what is needed meanwhile.
 * STATUS_LIMIT when an arena is full; the failures of index_count().
 */
MUST_USE enum status exact_sum_add(struct exact_sum *s, const struct leaf_number *n,
				   struct arena *arena, struct index_work *w);

/*
 * Appends the sum as a JSON number: 0 of no numbers, an integer if all of them were integers. The
 * arena holds what is needed meanwhile.
 */
MUST_USE enum status exact_sum_write(const struct exact_sum *s, struct arena *arena,
				     struct buf *out);

/* Appends the mean: null of no numbers, an integer if it is one exactly. */
MUST_USE enum status exact_sum_write_mean(const struct exact_sum *s, struct arena *arena,
					  struct buf *out);

#endif
