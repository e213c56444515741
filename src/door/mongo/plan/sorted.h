/*
 * The documents of a query in another order than that of `_id`: read all, and sorted in memory. If
 * only the first ones are wanted, no more than twice as many are kept.
 */
#ifndef FROND_DOOR_MONGO_PLAN_SORTED_H
#define FROND_DOOR_MONGO_PLAN_SORTED_H

#include "door/mongo/plan/query.h"
#include "mql/sort.h"

enum {
	SORTED_BYTES = 64 * 1024 * 1024, /* of the documents that are kept, and their keys */
	SORTED_LEAST = 16,               /* documents that are kept anyway */
	SORTED_TOO_LARGE = 292,          /* MongoDB's number for a sort without memory */
};

struct sorted_row {
	struct str doc;
	struct mql_sort_key *key;
	int64_t position; /* query_position() */
};

struct sorted {
	struct arena *arena;
	const struct sorted_row **rows;
	size_t count;
	size_t cap;
};

/*
 * Reads the whole query. `most`: so many of the first documents are wanted; UINT64_MAX: all. The
 * rows lie in `ret->arena`. sorted_fini() also after a failure, and for one that is all zero.
 */
MUST_USE enum status sorted_read(struct sorted *ret, struct call *c, struct query *q,
				 struct str sort, uint64_t most);
void sorted_fini(struct sorted *s);

#endif
