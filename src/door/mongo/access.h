/*
 * How often operations have used each index, in the memory of this process since it has started:
 * what $indexStats tells.
 *
 * Threading: any thread.
 */
#ifndef FROND_DOOR_MONGO_ACCESS_H
#define FROND_DOOR_MONGO_ACCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
	ACCESS_INDEXES = 64 * 1024, /* that are counted; of further ones nothing is known */
	ACCESS_STRIPES = 16,
	ACCESS_USES = 16, /* of one transaction; what is beyond is counted before its end */
};

/* An index of a collection, by their numbers, which are never used again; 0: that of `_id`. */
struct access {
	uint64_t db;
	uint64_t index;
	uint64_t ops; /* 0: an empty slot */
};

struct accesses {
	struct access_stripe {
		pthread_mutex_t lock;
		struct access *slots; /* open addressing; at least half of them are empty */
		size_t size, count;
	} stripes[ACCESS_STRIPES];
};

/* What one attempt of a transaction has used, which counts once it has ended well. */
struct access_uses {
	struct access all[ACCESS_USES];
	size_t count;
};

void accesses_init(struct accesses *a);
void accesses_fini(struct accesses *a);

void access_count(struct accesses *a, uint64_t db, uint64_t index, uint64_t ops);
/* False if nothing is known of it: there are too many, or memory was short. */
bool access_read(struct accesses *a, uint64_t db, uint64_t index, uint64_t *ret_ops);

/* Notes a use. `u` NULL: counts it. */
void access_use(struct accesses *a, struct access_uses *u, uint64_t db, uint64_t index);
void access_count_uses(struct accesses *a, const struct access_uses *u);

#endif
