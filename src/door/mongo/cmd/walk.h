/* Going through the collections of a database or of all of them. */
#ifndef FROND_DOOR_MONGO_CMD_WALK_H
#define FROND_DOOR_MONGO_CMD_WALK_H

#include "door/mongo/txn/command.h"

struct kv_tx;

/* Takes a collection by its name, "db.coll", in a transaction that only reads. */
typedef enum status walk_take(struct call *c, void *arg, struct kv_tx *tx, struct str name);

/*
 * Calls `take` for each collection whose name begins with the prefix, "db." or empty, in the order
 * of their names; a page of names is read in one transaction. A page that has to be read again is
 * not given twice. Returns the first error that `take` has returned, or one of the store.
 */
MUST_USE enum status walk_collections(struct call *c, struct str prefix, walk_take *take,
				      void *arg);

#endif
