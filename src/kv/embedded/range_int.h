/* One range being read: range.c and read.c, and ahead.c on another thread. */
#ifndef FROND_KV_EMBEDDED_RANGE_INT_H
#define FROND_KV_EMBEDDED_RANGE_INT_H

#include "loop/wait.h"
#include "kv/embedded/embedded_int.h"
#include "kv/embedded/gaps.h"

/* How long a collected pair's key and value are; its bytes follow the pair's before it. */
struct pair_lengths {
	uint32_t key;
	uint32_t value;
};

struct range_job {
	struct emb_disk_read read; /* first: disk.h. Its `run` is emb_range_run() */
	struct emb_tx *tx;
	struct str begin;
	struct str end;
	const struct kv_range_options *options;
	rocksdb_readoptions_t *iterate; /* what is in them is the job's to set */
	struct buf *bytes;              /* of the pairs */
	struct buf *lengths;
	struct err *err;
	bool keys_only;     /* and disregard own writes */
	size_t entity_len;  /* of `begin`, if all of the range is within that entity; else 0 */
	size_t gaps_len;    /* of the name of its gaps: entity_len, or else of its subspace; or 0 */
	bool within_entity; /* and by the transaction's lookup, on whose thread it then is */

	rocksdb_iterator_t *it;
	struct tree_node *entry; /* the next of the overlay's in the range, or NULL */
	const struct span *stamped;
	size_t count;
	bool more;
	enum status status;

	/* What of the range is read in the snapshot: less, where gaps.h knows of nothing else. */
	struct str snapshot_begin;
	struct str snapshot_end;
	bool has_gap;          /* it lies further on within these bounds, and one pair is wanted */
	size_t passed;         /* keys of the overlay, absent ones, in front of the first pair */
	struct gaps_found gap; /* last, since it is large and need not be cleared */
};

/* Reads the range of a job whose fields up to `err` are set, for emb_disk_read(). */
void emb_range_run(struct emb_disk_read *read);

/* Lays the pairs out at `pairs`, over their bytes at `bytes`. */
void emb_range_lay_out(const struct range_job *job, struct kv_pair *pairs, const char *bytes);

/* ---- On another thread: ahead.c ---- */

/* ahead.c says when it belongs to the pool and when to the transaction's fiber. */
struct emb_ahead {
	struct wait_work work;
	struct range_job job;
	struct kv_range_options options;
	struct emb_ahead *next; /* of those that can be used again */
	struct buf bounds;      /* begin and end */
	struct buf bytes;
	struct buf lengths;
	struct buf pairs;
	size_t counted_bytes; /* in the transaction's part of a budget */
	struct err err;
};

/*
 * Has the pool read `job`, which emb_disk_may_read_ahead() has allowed. NULL if there is no memory
 * for it: the range has to be read at once.
 */
struct kv_future *emb_ahead_begin(const struct range_job *job);

/* Waits for the answer, or reads it here if nobody has begun to. */
void emb_ahead_settle(struct emb_future *f);

/* ---- The memory of reads ahead: future.c ---- */

/* Frees a read ahead that the pool has nothing to do with. NULL is fine. */
void emb_ahead_destroy(struct emb_ahead *a);

/*
 * Counts the memory of a read ahead in the part of its transaction's request, in place of what was
 * counted before, and `more` bytes. Before the pool begins the fiber counts what the answer may
 * take, since the part belongs to the fiber's thread.
 */
void emb_ahead_count(struct emb_ahead *a, size_t more);

/* Frees what the transaction keeps for further ones. */
void emb_aheads_release(struct emb_tx *tx);

#endif
