/*
 * The numbers that the keys of databases begin with. A process takes them from the store in blocks,
 * so that creations do not conflict: (ROOT, 2) is the number behind the last block. Blocks grow
 * from one number to PREFIX_BLOCK_MAX, so a store with few databases has small numbers. What is
 * left of a block when the process ends is never used.
 *
 * Threading: from any thread or fiber.
 */
#ifndef FROND_KV_PREFIX_H
#define FROND_KV_PREFIX_H

#include "kv/kv.h"

enum {
	PREFIX_BLOCK_MAX = 256,
};

/*
 * A number that nobody else gets, now or later. May take a block in a transaction of its own, which
 * does not depend on any transaction that the caller has open.
 */
MUST_USE enum status kv_prefix_take(struct kv_store *store, uint64_t *ret, struct err *err);

/* What kv_close() frees. NULL is fine. */
struct prefixes;
void prefixes_free(struct prefixes *prefixes);

#endif
