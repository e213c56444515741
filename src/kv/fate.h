/*
 * Commits that go on without their client. A cluster that is away does not answer a commit under
 * way for as long as it stays away. Nobody can say meanwhile whether the commit takes place, so it
 * must be neither given up nor repeated. But its client cannot wait that long: after
 * KV_COMMIT_WAIT_MS the commit is left to the store, and the client hears that the outcome is not
 * known. The store keeps the transaction, and the transaction id that kv_run() wrote in it, until
 * the cluster has answered.
 *
 * The number of such commits is bounded: while the store has KV_LIMIT_FATES of them, no other
 * commit begins. Those that are under way by then may still be added to them: at most one for each
 * request or chore.
 *
 * What such a commit writes may appear after what its client writes next, unless one of the two
 * reads what the other writes. So a caller whose lanes order the writes of its clients
 * (loop/lanes.h) runs by kv_run_in_lanes(): nothing begins in these lanes until the commit is over.
 *
 * No thread waits for the answers: kv_txids_clear(), and each commit that is left, look for those
 * that have come. The embedded engine needs none of this, since its commits always end.
 *
 * Threads: any.
 */
#ifndef FROND_KV_FATE_H
#define FROND_KV_FATE_H

#include "kv/kv.h"

struct lanes;
struct txid;
struct txid_span;

enum {
	KV_COMMIT_WAIT_MS = 10000,
	KV_LIMIT_FATES = 1000,
};

/*
 * Commits, and waits for that, for whoever does not use kv_run(). STATUS_TX_UNKNOWN with
 * `*ret_left`: the cluster has not answered in time, and the transaction is the store's: it is not
 * touched any more. STATUS_UNAVAILABLE, besides: KV_LIMIT_FATES commits have been left, and this
 * one was not begun. Otherwise as kv_commit() and kv_future_wait(). `*ret_left` is set in any case.
 */
MUST_USE enum status kv_commit_in_time(struct kv_tx *tx, bool *ret_left);

/* The lanes that whoever calls kv_run_in_lanes() has. */
struct kv_lanes {
	struct lanes *of;
	uint64_t which; /* may grow while the body runs */
	bool ret_left;  /* the commit was left, and the lanes are owed until it is over */
};

/*
 * As kv_run(). If the commit is left, the lanes are owed before this returns (lanes_owe()), and
 * paid by whichever thread finds that the cluster has answered.
 */
MUST_USE enum status kv_run_in_lanes(struct kv_store *store, kv_body *body, void *arg,
				     struct kv_lanes *lanes, struct err *err);

/* The lanes are about to end: what is owed of them is not paid any more. */
void kv_lanes_forget(struct kv_store *store, const struct lanes *lanes);

/* After so long a commit is left, in this process; KV_COMMIT_WAIT_MS by default. */
void kv_set_commit_wait(uint64_t ms);
uint64_t kv_commit_wait(void);

/* How many commits of the store have been left and are not answered. */
size_t kv_fates(struct kv_store *store);

/* ---- For kv/ ---- */

struct fates;

/* STATUS_UNAVAILABLE, explained in the transaction: too many commits have been left. */
MUST_USE enum status fates_check(struct kv_tx *tx);

/* What a run has left in a transaction. */
struct fate_ids {
	struct txid_span *taken;      /* the span of the run's own id; NULL: it took none */
	struct txid_span *clearing;   /* that the transaction clears; NULL: none */
	const struct kv_lanes *lanes; /* that it was run in; NULL: none */
};

/*
 * Waits for a commit as kv_future_wait() does, but no longer than has been set. Returns true if it
 * was left to the store then, with `ids`. Returns false if it has an answer.
 */
bool fates_wait(struct kv_tx *tx, struct kv_future *commit, const struct fate_ids *ids);

/* Ends those that have been answered. */
void fates_settle(struct kv_store *store);

/*
 * Before a store closes: waits for all of them as long as for one. Returns false if some are still
 * not answered. Their transactions, and the store with them, then last as long as the process.
 */
bool fates_finish(struct kv_store *store);

#endif
