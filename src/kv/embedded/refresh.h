/*
 * A read-write transaction moves to the newest version: kv/refresh.h. committer.c has that, since
 * it knows what was written; versions.c gives the new snapshot. Threading: the transaction's.
 */
#ifndef FROND_KV_EMBEDDED_REFRESH_H
#define FROND_KV_EMBEDDED_REFRESH_H

#include "kv/kv.h"

struct emb_tx;

/*
 * In the gate: gives the transaction, which has a snapshot, the newest one in its place. False: its
 * snapshot is stale, or there is no memory; it keeps that.
 */
bool emb_tx_snapshot_renew(struct emb_tx *tx);

#endif
