/*
 * A set of revisions, to look up many of them: those that a request names, or the heads of a
 * document. Each has a number, in the order in which they were added, for arrays beside the set.
 *
 * The memory is the arena's; the hashes of the revisions are borrowed. Nobody outside can choose
 * revisions that make it slow (base/hash.h). Threading: that of the arena.
 */
#ifndef FROND_MODEL_REV_SET_H
#define FROND_MODEL_REV_SET_H

#include "base/arena.h"
#include "model/revisioned/revision.h"

#define REV_SET_NONE SIZE_MAX /* the number of what is not there */

/* `revs`, `count` and the positions may be read; the rest is private. */
struct rev_set {
	struct rev_id *revs; /* by their numbers */
	size_t count;
	size_t most;
	uint64_t lowest; /* positions of what the set has; of an empty one, lowest > highest */
	uint64_t highest;
	uint32_t *slots; /* numbers plus one; 0: free */
	size_t mask;
};

/* An empty set with room for `most` revisions. STATUS_LIMIT when the arena is full. */
MUST_USE enum status rev_set_init(struct rev_set *set, size_t most, struct arena *arena);

/* Adds a revision unless it is there already. Its number. */
size_t rev_set_add(struct rev_set *set, struct rev_id rev);

/* The number of a revision, or REV_SET_NONE. */
size_t rev_set_find(const struct rev_set *set, struct rev_id rev);

#endif
