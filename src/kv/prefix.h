/*
 * The numbers that the keys of databases begin with. A process takes them from the store in blocks,
 * so that two creations do not conflict. (ROOT, 2) is the first number behind all taken blocks.
 * Blocks grow from one number to PREFIX_BLOCK_MAX, so a store with few databases has small numbers.
 * Numbers left in a block when the process ends are never used.
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
 * Takes a number that no other call returns, in any process, ever. May take a block in a
 * transaction of its own, independent of any transaction that the caller has open.
 */
MUST_USE enum status kv_prefix_take(struct kv_store *store, uint64_t *ret, struct err *err);

/* Called by kv_close(). NULL is fine. */
struct prefixes;
void prefixes_free(struct prefixes *prefixes);

#endif
