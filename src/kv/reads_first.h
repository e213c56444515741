/*
 * A promise of a transaction that may write: it reads nothing once it has written. A cluster's
 * library then need not remember what the transaction writes in order to show it that, which is a
 * third of what a transaction of hundreds of keys costs.
 *
 * A read after a write, and any watch, then fails with STATUS_TX_CONFLICT, so that kv_run() begins
 * again; that attempt has not promised anything, and neither have the next KV_DOUBTED of the
 * store's transactions that try to: there is work under way that breaks the promise. Where the
 * store is no cluster, the promise means nothing.
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_KV_READS_FIRST_H
#define FROND_KV_READS_FIRST_H

#include "kv/kv.h"

enum {
	KV_DOUBTED = 64,
};

/* Before the first read, in each attempt. */
void kv_tx_reads_first(struct kv_tx *tx);

#endif
