/*
 * How often operations have used each index, in the memory of this process since it has started:
 * what $indexStats tells.
 *
 * Threading: any thread.
 */
#ifndef FROND_DOOR_MONGO_TXN_ACCESS_H
#define FROND_DOOR_MONGO_TXN_ACCESS_H

#include "serve/counts.h"

enum {
	ACCESS_INDEXES = 64 * 1024, /* that are counted; of further ones nothing is known */
	ACCESS_USES = 16, /* of one transaction; what is beyond is counted before its end */
};

/* An index of a collection, by their numbers, which are never used again; 0: that of `_id`. */
struct access {
	uint64_t db;
	uint64_t index;
	uint64_t ops;
};

/* What one attempt of a transaction has used, which counts once it has ended well. */
struct access_uses {
	struct access all[ACCESS_USES];
	size_t count;
};

void accesses_init(struct counts *accesses);

/* False if nothing is known of it: there are too many, or memory was short. */
bool access_read(struct counts *accesses, uint64_t db, uint64_t index, uint64_t *ret_ops);

/* Notes a use. `u` NULL: counts it. */
void access_use(struct counts *accesses, struct access_uses *u, uint64_t db, uint64_t index);
void access_count_uses(struct counts *accesses, const struct access_uses *u);

#endif
