/*
 * Redis's packed containers, one entry after the other: ziplists, listpacks, intsets and zipmaps,
 * which are strings inside of an RDB. Bounds are checked at each step, so any bytes may be given.
 * Threading: none.
 */
#ifndef FROND_RDB_PACK_H
#define FROND_RDB_PACK_H

#include "base/status.h"
#include "base/str.h"

enum rdb_pack_kind {
	RDB_PACK_NONE,
	RDB_ZIPLIST,
	RDB_LISTPACK,
	RDB_INTSET,
	RDB_ZIPMAP,
};

struct rdb_pack {
	enum rdb_pack_kind kind;
	struct str rest;
	unsigned width; /* of an intset's numbers, in bytes */
	bool is_value;  /* zipmap: a value comes next, which has a byte that the key has not */
};

struct rdb_entry {
	bool is_number;
	int64_t number;
	struct str text; /* of what is no number: borrowed from the container */
};

/* How many bytes behind an entry of a listpack say how long the entry is. Redis's bounds. */
static inline unsigned
rdb_listpack_back_bytes(size_t len)
{
	return len <= 127 ? 1 : len < 16383 ? 2 : len < 2097151 ? 3 : len < 268435455 ? 4 : 5;
}

/* STATUS_INVALID: these bytes are no such container. */
MUST_USE enum status rdb_pack_begin(enum rdb_pack_kind kind, struct str bytes,
				    struct rdb_pack *ret);
/* STATUS_NOT_FOUND: there is no other entry. STATUS_INVALID. */
MUST_USE enum status rdb_pack_next(struct rdb_pack *p, struct rdb_entry *ret);

#endif
