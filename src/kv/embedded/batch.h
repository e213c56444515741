/*
 * One group commit while it is made: the writes of many transactions, and what they come to.
 * batch.c says why the result is that of one transaction after another.
 */
#ifndef FROND_KV_EMBEDDED_BATCH_H
#define FROND_KV_EMBEDDED_BATCH_H

#include "kv/embedded/embedded_int.h"

enum {
	BATCH_NEAR = 8, /* places in the order of keys where the batch has written last */
};

/* One group commit, while it is made. It belongs to the thread that owns the committer. */
struct batch {
	struct emb_store *store;
	const struct resolver *resolver; /* the history: the writes of the batches before */
	rocksdb_writebatch_t *writes;
	struct arena *arena;
	struct tree keys;    /* struct batch_key: what each key that is written comes to */
	struct tree ranges;  /* struct span: ranges that were cleared, or conflict as if written */
	struct tree deleted; /* struct span: those among them that RocksDB deletes as ranges */
	struct batch_key *spare;            /* for the next key that is new; NULL: none yet */
	struct tree_node *near[BATCH_NEAR]; /* where to begin looking for a key's place */
	uint64_t version;
	uint16_t order; /* of the transaction being applied */
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	struct err err;
};

void batch_begin(struct batch *b, uint64_t version);

/* True if a key in [begin, end) has been written after `version`, in this batch or before it. */
bool batch_written_since(const struct batch *b, struct str begin, struct str end, uint64_t version);

/* Enters the transaction's writes. STATUS_NOMEM, STATUS_IO: the batch is of no use any more. */
MUST_USE enum status batch_apply(struct batch *b, struct emb_tx *tx);

/* Puts what the keys have come to, and the version, into RocksDB's write batch. */
void batch_finish(struct batch *b);

/*
 * Tells the pairs in front of RocksDB, and the gaps, what the batch has written: when RocksDB has
 * it, and before its version is published.
 */
void batch_enter_recent(const struct batch *b);

#endif
