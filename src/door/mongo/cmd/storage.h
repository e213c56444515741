/*
 * The figures of a collection's storage, as collStats, $collStats and dbStats tell them.
 *
 * A collection's bytes are the store's estimate of all that it has, entries of indexes among them.
 * The documents lie in the order of their `_id`, so the index `_id_` takes no bytes of its own,
 * unless the collection has a collation (index_id.h).
 *
 * Plain functions on the caller's memory and transaction.
 */
#ifndef FROND_DOOR_MONGO_CMD_STORAGE_H
#define FROND_DOOR_MONGO_CMD_STORAGE_H

#include "bson/bson.h"
#include "door/mongo/txn/data.h"

struct storage_index {
	struct str name;
	uint64_t bytes;
};

struct storage {
	bool is_clustered;
	uint64_t documents;
	uint64_t bytes;
	struct storage_index *indexes; /* those that clients are told of, that of `_id` first */
	size_t index_count;
	uint64_t index_bytes; /* of all of them */
};

/*
 * Reads the figures of an opened collection, or zeros if it is not there; `indexes` is NULL and
 * counts none unless they are asked for. Names are in the arena. STATUS_LIMIT.
 */
MUST_USE enum status storage_read(struct kv_tx *tx, struct data *d, bool indexes,
				  struct arena *arena, struct storage *ret);

/* Adds up the bytes of a collection's indexes. */
MUST_USE enum status storage_measure_indexes(struct kv_tx *tx, const struct catalog_db *db,
					     uint64_t *ret_bytes);

/* Puts the members of collStats, from `size` to `scaleFactor`. `scale` is greater than 0. */
void storage_put(struct bson_builder *b, const struct storage *s, int64_t scale);

#endif
