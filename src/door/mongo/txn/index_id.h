/*
 * The index by `_id` of a collection with a collation.
 *
 * The documents are the index by `_id`, in the order of bytes. A collection with a collation has
 * another one beside them, by the same name, which makes `_id`s unique by the collation and finds
 * them by strings. Clients are told of one. A collection that lacks it gets it (index_supply.h).
 */
#ifndef FROND_DOOR_MONGO_TXN_INDEX_ID_H
#define FROND_DOOR_MONGO_TXN_INDEX_ID_H

#include "model/plain/index.h"

/* All that are kept: BUILDING, READY or STALE. NULL behind the last. */
const struct index_def *index_live_at(const struct catalog_db *db, size_t at);

/* Among those that are kept; NULL: there is none. */
const struct index_def *index_of_id(const struct catalog_db *db);
bool index_def_is_of_id(const struct index_def *def);
/* Makes it for a collection that has none, if that has a collation. */
MUST_USE enum status index_create_of_id(struct kv_tx *tx, const struct catalog_db *db,
					struct arena *arena, struct err *err);

#endif
