/*
 * A hint for the commit of a transaction whose caller goes on with others meanwhile
 * (kv_run_begin()): the engine had better commit them together than block the caller's thread for
 * this one alone, which is what is quickest for a lone writer that waits.
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_KV_OVERLAP_H
#define FROND_KV_OVERLAP_H

#include "kv/kv.h"

/* Before the commit, such as in the body. Holds for all attempts. */
void kv_tx_overlap(struct kv_tx *tx);

#endif
