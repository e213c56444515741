/*
 * A store in memory, for tests on the twin: an engine of its own ("memory:") whose answers take
 * virtual time, and of which each process of a test has a handle that can be cut off for a while.
 *
 * It has what the replicator's own records need: reads, ranges, sets, clears and watches. A
 * transaction conflicts if anything has been written since it began to read. Ranges do not see the
 * transaction's own writes.
 */
#ifndef FROND_TESTS_REPLICATOR_MEMORY_H
#define FROND_TESTS_REPLICATOR_MEMORY_H

#include "kv/kv.h"

/* An empty store, with no handles open. */
void memory_begin(void);
void memory_end(void);

/* One process's handle, `shared` as kv_is_shared() has it; kv_close() ends it. */
struct kv_store *memory_open(bool shared);

/* Until that moment no answer reaches the handle, and no request of it the store. */
void memory_cut_off(struct kv_store *store, uint64_t until_ns);

/* True if there is a record under that key. */
bool memory_has(struct str key);

#endif
