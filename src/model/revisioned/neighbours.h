/*
 * Finds out which of many documents are new, by one read for all of them.
 *
 * An edit that may begin a document reads the document's branches, of which there are none. Whoever
 * loads documents mostly sends them in the order of their ids, with few others in between. So edits
 * with ascending ids share a read of all that lies from the first document to the last, by which a
 * document without a pair there is new. The read stops after a few pairs, behind which it tells
 * nothing. It is a snapshot read: the transaction conflicts with whoever writes branches of the
 * documents that were looked at, and not of those in between.
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_MODEL_NEIGHBOURS_H
#define FROND_MODEL_NEIGHBOURS_H

#include "base/buf.h"
#include "catalog/catalog.h"
#include "kv/kv.h"

enum {
	/* Documents that share a read. Eight ids in no order hardly ever ascend. */
	REV_NEIGHBOURS_LEAST = 8,
	/* What a read takes that finds others there, before it stops. */
	REV_NEIGHBOURS_PAIRS = 8,
	REV_NEIGHBOURS_BYTES = 16 * 1024,
};

/* All fields are private. */
struct rev_neighbours {
	struct kv_future *future;
	size_t at; /* the first pair that does not lie before the document looked at last */
};

/* Asks for what lies between. Both ids have passed the checks of edits, and `key` is used. */
MUST_USE enum status rev_neighbours_ask(struct rev_neighbours *n, struct kv_tx *tx,
					const struct catalog_db *db, struct str first,
					struct str last, struct buf *key);

/*
 * Whether the document is new, from `first` to `last` in ascending order. If `*ret_is_new` is
 * false, nothing is known of the document, and there is no conflict with those who write it.
 */
MUST_USE enum status rev_neighbours_look(struct rev_neighbours *n, struct kv_tx *tx,
					 const struct catalog_db *db, struct str id,
					 struct buf *key, bool *ret_is_new);

/* Lets go of the answer. */
void rev_neighbours_release(struct rev_neighbours *n);

#endif
