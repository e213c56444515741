/*
 * A hint for the commit of a transaction whose caller does not wait for it, but goes on with other
 * transactions (kv_run_begin()). The engine then lets the commit wait a moment for others, and
 * writes and syncs them together. Without the hint it commits at once on the caller's thread, which
 * is quickest for a single writer that waits for each commit.
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_KV_OVERLAP_H
#define FROND_KV_OVERLAP_H

#include "kv/kv.h"

/* Before the commit, such as in the body. Holds for all attempts. */
void kv_tx_overlap(struct kv_tx *tx);

#endif
