/*
 * Documents whose time is over: an index of one field with `expireAfterSeconds` says how long after
 * the date in that field, or after the earliest of the dates in an array of it.
 */
#ifndef FROND_DOOR_MONGO_INDEX_EXPIRE_H
#define FROND_DOOR_MONGO_INDEX_EXPIRE_H

#include "base/buf.h"
#include "kv/kv.h"

#define EXPIRE_CHORE "expire_mongo_documents"

enum {
	EXPIRE_PLACE_BYTES = 1024,     /* a collection's name */
	EXPIRE_SECONDS = INT32_MAX,    /* expireAfterSeconds at most, as MongoDB's */
	EXPIRE_COLLECTIONS = 100,      /* that one turn looks at */
	EXPIRE_PAGE = 200,             /* documents that one transaction removes, */
	EXPIRE_PAGE_BYTES = 4 << 20,   /* or so much of them and one more */
	EXPIRE_TRANSACTIONS = 20,      /* of one turn */
	EXPIRE_ARENA_BYTES = 64 << 20, /* of one transaction */
};

/*
 * One turn: removes documents of collections behind `*place` whose time is over at `now_ms`, since
 * 1970, and notes in `place` where to go on. `*ret_more`: there is more to look at; otherwise the
 * next turn begins again at the first collection. `*ret_removed`: how many documents.
 *
 * Threading: a thread that may wait, one at a time for each `place`.
 */
MUST_USE enum status expire_turn(struct kv_store *store, uint64_t now_ms, struct buf *place,
				 bool *ret_more, uint64_t *ret_removed, struct err *err);

#endif
