/*
 * The chore that gives collections the index by `_id` of their collation (index_id.h) where they
 * have none: frond's first versions did not make it, and dumps of theirs do not have it.
 *
 * The index is built as any other, and `_id`s that are written are unique from then on. If the
 * collection has `_id`s already that its collation holds equal, the build fails; that is logged,
 * and tried again when the process starts anew.
 */
#ifndef FROND_DOOR_MONGO_INDEX_INDEX_SUPPLY_H
#define FROND_DOOR_MONGO_INDEX_INDEX_SUPPLY_H

#include "base/buf.h"
#include "kv/kv.h"

#define INDEX_SUPPLY_CHORE "supply_mongo_indexes"

enum {
	INDEX_SUPPLY_PLACE_BYTES = 1024,     /* a collection's name */
	INDEX_SUPPLY_COLLECTIONS = 100,      /* that one turn looks at */
	INDEX_SUPPLY_ARENA_BYTES = 16 << 20, /* of one transaction, and of the turn's names */
};

/*
 * One turn: looks at collections behind `*place`, and notes there where to go on. `renews`: an
 * index that could not be built is built again. `*ret_more`: there is more to look at; otherwise
 * the next turn begins again at the first collection. `*ret_made`: how many indexes.
 *
 * Threading: a thread that may wait, one at a time for each `place`.
 */
MUST_USE enum status index_supply_turn(struct kv_store *store, bool renews, struct buf *place,
				       bool *ret_more, uint64_t *ret_made, struct err *err);

#endif
