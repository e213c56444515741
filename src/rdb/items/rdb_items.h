/*
 * Makes items of RDB's values, and RDB's values of items, for RESTORE, DUMP and `frond load --rdb`.
 * Nothing here commits. Threading: that of the item's transaction.
 */
#ifndef FROND_RDB_ITEMS_RDB_ITEMS_H
#define FROND_RDB_ITEMS_RDB_ITEMS_H

#include "model/timed/items/group.h"
#include "rdb/rdb.h"

/* Parts of a value, copied. */
struct rdb_batch {
	enum rdb_type type;
	struct rdb_part *parts;
	size_t count;
	size_t bytes;  /* of what they write, about */
	bool complete; /* the value has no more */
};

/*
 * Copies parts of the value to the arena, which is not that of its input, until they have `bytes`.
 */
MUST_USE enum status rdb_batch_read(struct rdb_value *v, struct arena *arena, size_t bytes,
				    struct rdb_batch *ret);
/*
 * Adds what is in the batch to the item, whose type is that of the value unless it is not there.
 * The batch is no string's. Fields that have expired are left out. What is read meanwhile lies in
 * `arena`.
 */
MUST_USE enum status rdb_batch_put(struct timed_item *item, const struct rdb_batch *batch,
				   struct arena *arena);

/*
 * Reads a value, whose type's code has been read, to its end, and makes the item of it, which is
 * not there; it never expires. A string that is not compressed may be staged. The input has no
 * arena. Check the value first (rdb_value_skip()): some of what is damaged is written before that
 * is found. A hash, all of whose fields have expired, is not there afterwards.
 */
MUST_USE enum status rdb_restore(struct rdb_input *in, unsigned code, struct timed_item *item);

/* Appends a payload: the item, which is there, a version, a checksum. */
MUST_USE enum status rdb_dump(struct timed_item *item, struct buf *out);

#endif
