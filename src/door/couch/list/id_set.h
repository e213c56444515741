/*
 * A set of document ids, for filters that name many of them: a look-up costs the same however many
 * there are, and nobody outside can choose ids that make it slow (base/hash.h).
 *
 * The memory is the arena's; the ids are borrowed. Threading: that of the arena.
 */
#ifndef FROND_DOOR_COUCH_LIST_ID_SET_H
#define FROND_DOOR_COUCH_LIST_ID_SET_H

#include "base/arena.h"

/* `ids` and `count` may be read; the rest is private. */
struct couch_id_set {
	struct str *ids; /* each once, in the order in which they were added */
	size_t count;
	size_t most;
	uint32_t *slots; /* positions in `ids` plus one; 0: free */
	size_t mask;
};

/* An empty set with room for `most` ids. STATUS_LIMIT when the arena is full. */
MUST_USE enum status couch_id_set_init(struct couch_id_set *set, size_t most, struct arena *arena);

/* Adds an id unless it is there already. */
void couch_id_set_add(struct couch_id_set *set, struct str id);

bool couch_id_set_has(const struct couch_id_set *set, struct str id);

#endif
