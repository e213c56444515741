/*
 * Watches: the table in watch.c, and what transactions and commits do with it. The table's lock
 * guards the links of a watch; its key never changes. The owner of a watch frees its future, and
 * the table lives on until the last of the futures is freed.
 */
#ifndef FROND_KV_EMBEDDED_WATCH_INT_H
#define FROND_KV_EMBEDDED_WATCH_INT_H

#include "kv/embedded/embedded_int.h"

struct batch;
struct watch_key;

struct emb_watch {
	struct kv_future base;
	struct watches *table;
	/* While pending: the other watches of its transaction. While armed: those of its key. */
	struct emb_watch *next;
	struct emb_watch *prev;
	struct emb_watch *next_armed; /* the list of those that a commit without writes arms */
	struct emb_tx *tx;            /* set while pending, and only then */
	struct watch_key *armed;      /* set while armed, and only then */
	bool changed;                 /* the key has been written since the snapshot */
	struct str key;
	char bytes[];
};

/* The first pending watch of the transaction, or NULL. */
static inline struct emb_watch *
watches_pending(struct emb_tx *tx)
{
	return atomic_load_explicit(&tx->watches, memory_order_relaxed);
}

struct watches *watches_new(void);
/*
 * Completes all watches with STATUS_CANCELLED. The table lives on until the last of their futures
 * is freed.
 */
void watches_close(struct watches *w);
uint64_t watches_count(struct watches *w);
/* Completes all watches that are armed: their keys may have changed. */
void watches_complete_all(struct watches *w);
/*
 * A standby has published what another store has committed: completes the watches of the key, or if
 * `end` is not empty of the keys from there to in front of `end`.
 */
void watches_written(struct watches *w, struct str key, struct str end);

struct kv_future *emb_watch(struct kv_tx *base, struct str key);
void emb_watch_free(struct kv_future *f);

/* The transaction ends without a commit: its watches are cancelled. */
void emb_watches_cancel(struct emb_tx *tx);

/*
 * By the committer, before the transaction's writes enter the batch: notes which of its watches
 * have seen their keys change already.
 */
void emb_watches_judge(struct emb_tx *tx, const struct batch *b);

/*
 * By the committer, after publishing: completes the watches of keys that the transaction has
 * written, and arms its own.
 */
void emb_watches_committed(struct emb_tx *tx);

/*
 * For the commit of a transaction that has written nothing: arms its watches, and gives a list of
 * them by `next_armed`. The list stays valid while the commit runs: only the owner of the watches
 * frees them, and the commit runs on its thread.
 */
struct emb_watch *emb_watches_arm(struct emb_tx *tx);

/* Completes a watch whose key has changed, unless a commit has done so in the meantime. */
void emb_watch_changed(struct emb_watch *w);

#endif
