/* One range being read: range.c, and ahead.c on another thread. */
#ifndef FROND_KV_EMBEDDED_RANGE_INT_H
#define FROND_KV_EMBEDDED_RANGE_INT_H

#include "kv/embedded/embedded_int.h"

/* How long a collected pair's key and value are; its bytes follow the pair's before it. */
struct pair_lengths {
	uint32_t key;
	uint32_t value;
};

struct range_job {
	struct emb_tx *tx;
	struct str begin;
	struct str end;
	const struct kv_range_options *options;
	rocksdb_readoptions_t *iterate; /* its bounds and tier are the job's to set */
	struct buf *bytes;              /* of the pairs */
	struct buf *lengths;
	struct err *err;
	bool keys_only;     /* and disregard own writes */
	bool from_cache;    /* do not touch the disk */
	bool within_entity; /* and by the transaction's lookup, on whose thread it then is */
	/* When a loop's thread began to read files, or 0: it gives up when that proves slow. */
	uint64_t begin_ns;

	rocksdb_iterator_t *it;
	struct tree_node *entry; /* the next of the overlay's in the range, or NULL */
	const struct span *stamped;
	size_t count;
	bool more;
	bool incomplete; /* the disk would have been needed, or is slow */
	enum status status;
};

/* Reads it on this thread, whatever that takes; with its fields up to `err` set. */
void emb_range_read(struct range_job *job);

/* The same where it suits: on a loop's thread only as long as that is quick. */
void emb_range_read_on_loop(struct range_job *job);

/* Lays the pairs out at `pairs`, over their bytes at `bytes`. */
void emb_range_lay_out(const struct range_job *job, struct kv_pair *pairs, const char *bytes);

/* Options for the iterators of a transaction that has a snapshot. */
rocksdb_readoptions_t *emb_range_options(const struct emb_tx *tx);

/* ---- On another thread: ahead.c ---- */

/*
 * Has the pool read `job`, of a transaction that cannot write. NULL if there is no pool, or no room
 * for it: it is to be read at once.
 */
struct kv_future *emb_ahead_begin(const struct range_job *job);

/* Waits for the answer, or reads it here if nobody has begun to. */
void emb_ahead_settle(struct emb_future *f);

/* Lets go of all that `f` has, which may still be on its way. */
void emb_ahead_free(struct emb_future *f);

/* Frees what the transaction keeps for further ones. */
void emb_aheads_release(struct emb_tx *tx);

#endif
