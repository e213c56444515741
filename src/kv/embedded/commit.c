/* The caller's side of a commit: what can be prepared before the committer's turn; the queue. */
#include "base/clock.h"
#include "base/wait.h"
#include "kv/embedded/embedded_int.h"

/*
 * A cleared range is best written key by key (a deleted range costs later reads), so its keys are
 * looked up here, where many transactions can do so at once. The committer uses them if nobody has
 * written in the range since.
 */
static enum status
prepare_range_clears(struct emb_tx *tx)
{
	struct emb_snapshot *snapshot;
	bool has_put = false;

	TRY(emb_tx_snapshot(tx, &snapshot));
	for (const struct mutation *m = tx->first; m; m = m->next) {
		if (m->kind == MUTATION_CLEAR_RANGE && has_put) {
			/* The overlay knows which clears meet a write before them. */
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
prepare(struct emb_tx *tx)
{
	if (atomic_load_explicit(&tx->store->failed, memory_order_relaxed))
		return err_set(&tx->base.err, STATUS_IO,
			       "a write to the disk failed earlier: the store has to be reopened");
	if (tx->bytes > KV_LIMIT_TX_BYTES)
		return err_set(&tx->base.err, STATUS_TX_TOO_LARGE,
			       "writes and conflict ranges of %zu bytes exceed the limit of %d",
			       tx->bytes, KV_LIMIT_TX_BYTES);
	TRY(emb_tx_check_age(tx));
	return tx->has_range_clears ? prepare_range_clears(tx) : STATUS_OK;
}

/* ---- The queue ---- */

/* With the lock held. */
static void
push(struct emb_queue *q, struct emb_tx *tx)
{
	tx->queued_behind = NULL;
	if (q->last)
		q->last->queued_behind = tx;
	else
		q->first = tx;
	q->last = tx;
	q->txs++;
	q->bytes += tx->bytes;
}

/* With the lock held: in front of those that have come since. */
static void
push_first(struct emb_queue *q, struct emb_tx *tx)
{
	tx->queued_behind = q->first;
	q->first = tx;
	if (!q->last)
		q->last = tx;
	q->txs++;
	q->bytes += tx->bytes;
}

/*
 * Whether to make the batch right here, if there is nobody to share it with. Handing over to the
 * committer's thread and back costs two wake-ups, which is a sixth of a lone writer's time; but the
 * loop of this thread stands still while the disk works, which must hold up nobody, nor for long.
 */
static bool
may_lead(struct emb_tx *tx)
{
	return tx->bytes <= EMB_LEAD_BYTES && wait_is_alone() &&
	       emb_disk_is_quick(&tx->store->log, clock_mono_ns());
}

static void
lead(struct emb_tx *tx)
{
	struct emb_store *store = tx->store;
	struct emb_queue *q = &store->queue;
	uint64_t begin_ns = clock_mono_ns(), took_ns;
	bool done = emb_committer_lead(store, tx);
	bool wake;

	took_ns = clock_mono_ns() - begin_ns;
	if (!done || emb_disk_sync_was_slow(&store->log, took_ns))
		emb_disk_pause(&store->log, begin_ns + took_ns, took_ns);
	pthread_mutex_lock(&q->lock);
	q->busy = false;
	if (!done)
		push_first(q, tx);
	wake = q->first;
	pthread_mutex_unlock(&q->lock);
	if (wake)
		pthread_cond_signal(&q->filled);
}

static enum status
enqueue(struct emb_tx *tx)
{
	struct emb_queue *q = &tx->store->queue;
	bool leads = may_lead(tx), wakes = false;

	pthread_mutex_lock(&q->lock);
	if (q->txs >= EMB_QUEUE_TXS || q->bytes >= EMB_QUEUE_BYTES) {
		size_t txs = q->txs;

		pthread_mutex_unlock(&q->lock);
		return err_set(&tx->base.err, STATUS_LIMIT,
			       "%zu transactions are waiting to be committed", txs);
	}
	tx->queued = true;
	leads = leads && !q->busy && !q->first;
	if (leads) {
		q->busy = true;
	} else {
		/* Who makes a batch looks at the queue when it is done. */
		wakes = !q->busy && !q->first;
		push(q, tx);
	}
	pthread_mutex_unlock(&q->lock);
	if (leads)
		lead(tx);
	else if (wakes)
		pthread_cond_signal(&q->filled);
	return STATUS_OK;
}

static enum status
commit(struct emb_tx *tx)
{
	TRY(emb_tx_check(tx));
	tx->state = EMB_TX_COMMITTED;
	tx->commit = (struct kv_future){ .engine = tx->base.engine,
					 .tx = &tx->base,
					 .kind = KV_FUTURE_COMMIT };
	if (!tx->first && !tx->write_conflicts.first) {
		TRY(emb_watches_begin(tx));
		tx->commit.done = true;
		return STATUS_OK;
	}
	TRY(prepare(tx));
	emb_lookup_release(tx);
	event_init(&tx->commit.event);
	return enqueue(tx);
}

struct kv_future *
emb_commit(struct kv_tx *base)
{
	struct emb_tx *tx = (struct emb_tx *)base;
	enum status status;

	status = commit(tx);
	return status == STATUS_OK ? &tx->commit : kv_future_failed(status);
}

void
emb_commit_wait(struct emb_tx *tx)
{
	if (tx->queued)
		event_wait(&tx->commit.event, WAIT_FOREVER);
}
