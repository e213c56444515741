/*
 * The side of a commit that runs on the caller's thread: what can be prepared before the committer
 * gets the transaction, the queue, and the commits of lone writers.
 *
 * == How a batch finds a thread ==
 *
 * Every transaction in the queue must come into a batch, and at most one thread may make batches.
 * The queue's lock guards `busy`, which is set while a thread does. commit_enqueue() decides under
 * the lock, and there are three cases:
 *
 *   the queue is empty and not busy, and      this thread sets `busy` and makes the batch itself,
 *   this thread may commit here (disk.h,      of this transaction alone
 *   and no kv/overlap.h)
 *   the queue is empty and not busy           the committer's thread sleeps, or is about to: the
 *                                             transaction is queued and the thread is woken
 *   otherwise                                 the transaction is queued. No wake-up is needed: the
 *                                             thread that is committing, or that has been woken,
 *                                             looks at the queue again before it sleeps
 *
 * A thread that has made a batch itself clears `busy` and, if transactions have come meanwhile,
 * wakes the committer's thread, which has been waiting for `busy` to be cleared. So a queue that is
 * not empty always has a thread that will look at it.
 */
#include <assert.h>

#include "base/clock.h"
#include "base/metric.h"
#include "loop/wait.h"
#include "kv/embedded/reopen.h"
#include "kv/embedded/watch_int.h"

/*
 * A range is better cleared key by key, since a deleted range costs later reads. Its keys are
 * looked up here, on the threads of the callers, where many transactions can do so at once. The
 * committer uses them if nothing has been written in the range since the transaction's snapshot.
 */
static enum status
commit_find_cleared_keys(struct emb_tx *tx)
{
	struct emb_snapshot *snapshot;
	bool has_put = false;

	assert(tx->has_range_clears && !tx->queued);
	TRY(emb_tx_snapshot(tx, &snapshot));
	for (const struct mutation *m = tx->first; m; m = m->next) {
		if (m->kind == MUTATION_CLEAR_RANGE && has_put) {
			/*
			 * A clear behind a write of the same transaction. The overlay finds out
			 * which clears meet such writes: for these the snapshot's keys are not all.
			 */
			TRY(emb_tx_enter_writes(tx));
			break;
		}
		has_put = has_put || (m->kind != MUTATION_CLEAR && m->kind != MUTATION_CLEAR_RANGE);
	}
	for (struct mutation *m = tx->first; m; m = m->next)
		if (m->kind == MUTATION_CLEAR_RANGE && !m->meets_own_write)
			TRY(emb_find_keys(tx, m));
	return STATUS_OK;
}

static enum status
commit_prepare(struct emb_tx *tx)
{
	TRY(emb_reopen_refuse(tx->store, &tx->base.err));
	TRY(emb_tx_check_age(tx));
	return tx->has_range_clears ? commit_find_cleared_keys(tx) : STATUS_OK;
}

/* ---- The queue ---- */

/* With the lock held: appends the transaction. */
static void
queue_push(struct emb_queue *q, struct emb_tx *tx)
{
	assert(!q->first == !q->last && (q->first || q->txs == 0));
	tx->queued_behind = NULL;
	if (q->last)
		q->last->queued_behind = tx;
	else
		q->first = tx;
	q->last = tx;
	q->txs++;
	q->bytes += tx->bytes;
}

/* With the lock held: puts a transaction back in front of those that have come since. */
static void
queue_push_first(struct emb_queue *q, struct emb_tx *tx)
{
	assert(tx->queued && tx->queued_behind == NULL);
	tx->queued_behind = q->first;
	q->first = tx;
	if (!q->last)
		q->last = tx;
	q->txs++;
	q->bytes += tx->bytes;
}

/*
 * Commits on the calling thread, which has set the queue busy. If nothing could be written now, the
 * transaction goes to the committer's thread, in front of those that have come later, so that
 * transactions still commit in the order in which they were given.
 */
static void
commit_here(struct emb_tx *tx)
{
	struct emb_store *store = tx->store;
	struct emb_queue *q = &store->queue;
	uint64_t began_ns = clock_mono_ns();
	bool done = emb_committer_lead(store, tx);
	bool wake;

	emb_disk_has_committed_here(store, began_ns, done);
	pthread_mutex_lock(&q->lock);
	assert(q->busy);
	q->busy = false;
	if (!done)
		queue_push_first(q, tx);
	/* The committer's thread opens the store again if the commit has failed. */
	wake = q->first || emb_reopen_state(store) != KV_STORE_OPEN;
	pthread_mutex_unlock(&q->lock);
	if (wake)
		pthread_cond_signal(&q->filled);
}

static enum status
commit_enqueue(struct emb_tx *tx)
{
	struct emb_queue *q = &tx->store->queue;
	bool leads = !tx->base.overlaps && emb_disk_may_commit_here(tx->store, tx->bytes);
	bool wakes = false;

	assert(tx->state == EMB_TX_COMMITTED && !tx->queued);
	pthread_mutex_lock(&q->lock);
	assert(!q->closing); /* every transaction is freed before its store is closed */
	if (q->txs >= EMB_QUEUE_TXS || q->bytes >= EMB_QUEUE_BYTES) {
		size_t txs = q->txs;

		pthread_mutex_unlock(&q->lock);
		METRIC_REFUSED("commit_queue");
		return err_set(&tx->base.err, STATUS_BUSY,
			       "%zu transactions are waiting to be committed", txs);
	}
	tx->queued = true;
	leads = leads && !q->busy && !q->first;
	if (leads) {
		q->busy = true;
	} else {
		wakes = !q->busy && !q->first;
		queue_push(q, tx);
	}
	pthread_mutex_unlock(&q->lock);
	if (leads)
		commit_here(tx);
	else if (wakes)
		pthread_cond_signal(&q->filled);
	return STATUS_OK;
}

/* ---- Watches of a transaction that has written nothing ---- */

/*
 * Compares the value of the key at the transaction's version with the one that `now`, a transaction
 * of a later version, reads. True if they differ or one cannot be read.
 */
static bool
commit_value_differs_now(struct emb_tx *tx, struct kv_tx *now, struct str key)
{
	struct kv_future *f = emb_get(now, key, KV_SNAPSHOT);
	struct emb_found seen;
	bool same;

	if (f->status != STATUS_OK || emb_read_key(tx, key, false, &seen) != STATUS_OK)
		return true;
	same = f->present == seen.cell.present && str_eq(f->value, seen.cell.value);
	emb_found_release(&seen);
	return !same;
}

/* watch.c says why the watches are armed before the values are compared. */
static enum status
commit_begin_watches(struct emb_tx *tx)
{
	struct kv_tx *now;

	if (!watches_pending(tx))
		return STATUS_OK;
	TRY(emb_begin(&tx->store->base, KV_TX_READ_ONLY, &now));
	now->engine = tx->base.engine;
	now->err.text[0] = '\0';
	for (struct emb_watch *w = emb_watches_arm(tx); w; w = w->next_armed)
		if (commit_value_differs_now(tx, now, w->key))
			emb_watch_changed(w);
	emb_tx_free(now);
	return STATUS_OK;
}

/* ---- The commit ---- */

static enum status
commit_begin(struct emb_tx *tx)
{
	TRY(emb_tx_check(tx));
	tx->state = EMB_TX_COMMITTED;
	tx->commit = (struct kv_future){ .engine = tx->base.engine,
					 .tx = &tx->base,
					 .kind = KV_FUTURE_COMMIT };
	/* Without writes there is nothing to judge: it takes place at its snapshot. */
	if (!tx->first && !tx->write_conflicts.first) {
		TRY(commit_begin_watches(tx));
		tx->commit.done = true;
		return STATUS_OK;
	}
	TRY(commit_prepare(tx));
	/* The iterator holds the memory and the files of its snapshot, and the commit may wait. */
	emb_lookup_release(tx);
	event_init(&tx->commit.event);
	return commit_enqueue(tx);
}

struct kv_future *
emb_commit(struct kv_tx *base)
{
	struct emb_tx *tx = (struct emb_tx *)base;
	enum status status;

	status = commit_begin(tx);
	return status == STATUS_OK ? &tx->commit : kv_future_failed(status);
}
