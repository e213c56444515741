/*
 * The committer: takes all waiting transactions at once, judges them in order, writes those that
 * may commit as one batch with one sync, publishes the batch's version, and completes the commits.
 * While it waits for the disk the next transactions gather in the queue.
 *
 * == Who owns the committer ==
 *
 * `struct committer`, the batch and the resolver in it have no lock. They belong to the thread that
 * has set `busy` in the queue, under the queue's lock: the committer's own thread, or the thread of
 * a lone writer (commit.c). `busy` is set by one thread at a time and cleared by the same thread
 * when its batch is done, so two batches are never made at once, and all that one batch has written
 * to the committer is visible to the next one through the queue's lock.
 *
 * One thing more looks at the resolver: a transaction that asks whether what it has read is still
 * so (emb_refresh()). Therefore the owner changes it with `history` locked, and publishes a version
 * within the same lock: whoever has the lock finds in the resolver all that is published, as far as
 * open transactions need it. The owner itself reads it without.
 *
 * == Who owns a transaction ==
 *
 * From emb_commit() until `commit.event` is set, a queued transaction belongs to the queue and then
 * to the thread that makes its batch; its owner only waits (tx_wait_for_commit()). Setting the
 * event is the last thing that is done with a transaction: its owner may free it at once.
 *
 * == What is on disk when ==
 *
 * A version is published, and commits are completed, only after RocksDB has written and synced the
 * batch. If that fails, the batch is taken back, and nothing is written any more until the store
 * has been opened again, which this thread does (reopen.h). It does so while it owns the committer,
 * so no batch is made meanwhile.
 */
#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/err_clear.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/thread.h"
#include "base/timespec.h"
#include "kv/embedded/batch.h"
#include "kv/embedded/handle.h"
#include "kv/embedded/refresh.h"
#include "kv/embedded/reopen.h"
#include "kv/embedded/watch_int.h"
#include "kv/refresh.h"

enum {
	TURN_NS = 200000, /* it computes little, and clients wait for it */
	/* The memory of a batch is kept for the next one, up to so many bytes. */
	BATCH_KEEP_BYTES = 4 * 1024 * 1024,
	/* When there has been no batch for so long, all but so many are given back. */
	BATCH_IDLE_MS = 1000,
	BATCH_KEEP_IDLE_BYTES = 256 * 1024,
	BATCH_ARENA_BYTES = 1024 * 1024 * 1024, /* far above what the transactions' limits allow */
};

METRIC_HISTOGRAM(batch_txs, "frond_store_batch_transactions", METRIC_NUMBER,
		 "Transactions that were written with one write and one sync.", 0, 14);
METRIC_HISTOGRAM(batch_bytes, "frond_store_batch_size_bytes", METRIC_BYTES,
		 "Bytes of such a batch.", 8, 17);
METRIC_HISTOGRAM(batch_time, "frond_store_batch_write_duration_seconds", METRIC_SECONDS,
		 "Time that writing and syncing a batch took, as far as RocksDB's log.",
		 METRIC_TIME_LEAST, METRIC_TIME_BUCKETS);
METRIC_COUNTER(refused_txs, "frond_store_conflicts_total", METRIC_NUMBER,
	       "Transactions that were refused because something that they had read had changed.");

void (*emb_step_hook)(enum emb_step step);

struct committer {
	struct emb_store *store;
	pthread_t thread;
	pthread_mutex_t history; /* of changes of the resolver, and of publishing */
	struct resolver resolver;
	uint64_t version; /* of the last batch */
	struct batch batch;
	size_t kept_bytes; /* that the batch's memory has grown to */
	bool made_again;   /* since the last batch that was written, one was made a second time */
};

static void
committer_reach(enum emb_step step)
{
	if (emb_step_hook)
		emb_step_hook(step);
}

/*
 * A cleared write batch of RocksDB keeps its memory. Gives it back if it is more than `bytes`. The
 * batch must be of no use any more.
 */
static void
batch_keep_memory(struct committer *c, size_t bytes)
{
	if (c->kept_bytes <= bytes)
		return;
	rocksdb_writebatch_destroy(c->batch.writes);
	c->batch.writes = rocksdb_writebatch_create();
	c->kept_bytes = 0;
}

/*
 * By the committer's thread, with the queue's lock held: blocks until the queue has a transaction,
 * the store is closing, or it is time to open the store again. While a lone writer commits on its
 * own thread (`q->busy`), that thread owns the committer, so this one keeps waiting, whatever the
 * queue has.
 */
static void
queue_wait(struct committer *c, struct emb_queue *q)
{
	while (q->busy || (!q->first && !q->closing)) {
		uint64_t until_ns = WAIT_FOREVER;
		struct timespec until;
		bool idle;

		/* Only the owner of the committer may look at when that is, or at the batch. */
		if (!q->busy) {
			until_ns = emb_reopen_due_ns(c->store);
			if (until_ns <= clock_mono_ns())
				return;
		}
		idle = !q->busy && c->kept_bytes > BATCH_KEEP_IDLE_BYTES;
		if (idle && until_ns > clock_after_ms(BATCH_IDLE_MS))
			until_ns = clock_after_ms(BATCH_IDLE_MS);
		if (until_ns == WAIT_FOREVER) {
			pthread_cond_wait(&q->filled, &q->lock);
			continue;
		}
		until = timespec_of_ns(until_ns);
		/* Not while `busy`: the memory is in use by the thread that owns the batch. */
		if (pthread_cond_timedwait(&q->filled, &q->lock, &until) == ETIMEDOUT && idle &&
		    !q->busy)
			batch_keep_memory(c, BATCH_KEEP_IDLE_BYTES);
	}
}

/*
 * With the queue's lock held: takes as many transactions out of the queue as one batch may have.
 * Returns the first of them, linked by `queued_behind`.
 */
static struct emb_tx *
queue_take_batch(struct emb_queue *q)
{
	struct emb_tx *first = q->first;
	struct emb_tx *last = first;
	size_t bytes = last->bytes;
	size_t txs = 1;

	while (last->queued_behind && txs < EMB_BATCH_TXS &&
	       bytes + last->queued_behind->bytes <= EMB_BATCH_BYTES) {
		last = last->queued_behind;
		bytes += last->bytes;
		txs++;
	}
	q->first = last->queued_behind;
	if (!q->first)
		q->last = NULL;
	assert(txs <= q->txs && bytes <= q->bytes);
	q->txs -= txs;
	q->bytes -= bytes;
	last->queued_behind = NULL;
	return first;
}

/*
 * By the committer's thread, which owns the committer and is done: gives the committer up, waits
 * for something to do, and takes it again, with the next batch in `*ret`, or NULL if the store is
 * to be opened again. Returns false if the store is closing, and then the queue is empty.
 */
static bool
queue_take(struct committer *c, struct emb_tx **ret)
{
	struct emb_queue *q = &c->store->queue;
	bool goes_on;

	*ret = NULL;
	pthread_mutex_lock(&q->lock);
	assert(q->busy);
	q->busy = false;
	queue_wait(c, q);
	assert(!q->busy);
	goes_on = q->first || !q->closing;
	if (goes_on) {
		q->busy = true;
		/* Opening comes first: transactions could only be refused. */
		if (q->first && emb_reopen_due_ns(c->store) > clock_mono_ns())
			*ret = queue_take_batch(q);
	}
	pthread_mutex_unlock(&q->lock);
	return goes_on;
}

/*
 * Decides whether the transaction may commit: not if a key that it has read has been written since
 * its snapshot, by an earlier batch or by a transaction in front of it in this one.
 */
static enum status
committer_judge(struct committer *c, struct emb_tx *tx)
{
	if (atomic_load_explicit(&tx->cancelled, memory_order_relaxed))
		return STATUS_CANCELLED;
	if (!tx->read_conflicts.first)
		return STATUS_OK;
	/* A read conflict comes from a read, and a read from a snapshot. */
	assert(tx->snapshot && tx->snapshot->version < c->batch.version);
	if (tx->snapshot->version < c->resolver.oldest)
		return err_set(&tx->base.err, STATUS_TX_TOO_OLD,
			       "too much has been written since the transaction began");
	for (const struct emb_conflict *r = tx->read_conflicts.first; r; r = r->next)
		if (batch_written_since(&c->batch, r->begin, r->end, tx->snapshot->version))
			return err_set(&tx->base.err, STATUS_TX_CONFLICT,
				       "something that the transaction read has changed");
	return STATUS_OK;
}

/*
 * Judges the transactions in order, and enters the writes of those that may commit into the batch.
 * The verdict is in `commit.status` of each. STATUS_NOMEM or STATUS_IO: the batch is of no use, and
 * none of them has committed.
 */
static enum status
committer_resolve(struct committer *c, struct emb_tx *txs, size_t *ret_accepted)
{
	struct batch *b = &c->batch;

	*ret_accepted = 0;
	batch_begin(b, ++c->version);
	/* A batch's version is above all that is published, so no snapshot has it yet. */
	assert(b->version > c->store->versions.published);
	for (struct emb_tx *tx = txs; tx; tx = tx->queued_behind) {
		tx->commit.status = committer_judge(c, tx);
		if (tx->commit.status != STATUS_OK)
			continue;
		/* Before its writes are entered: its own writes are not a change to its watches. */
		emb_watches_judge(tx, b);
		TRY(batch_apply(b, tx));
		tx->committed_version = b->version;
		assert(b->order < EMB_BATCH_TXS);
		tx->committed_order = b->order++;
		++*ret_accepted;
	}
	if (*ret_accepted)
		batch_finish(b);
	return STATUS_OK;
}

/*
 * Keeps the history below its limit: first drops what newer writes of the same keys have made
 * useless, then the older half of the versions, then everything. Transactions that would have
 * needed it get STATUS_TX_TOO_OLD.
 */
static void
history_bound(struct resolver *r)
{
	if (r->bytes < EMB_RESOLVER_BYTES)
		return;
	resolver_compact(r);
	if (r->bytes < EMB_RESOLVER_BYTES / 2)
		return;
	resolver_forget(r, r->oldest + (r->newest - r->oldest) / 2);
	resolver_compact(r);
	if (r->bytes >= EMB_RESOLVER_BYTES / 2)
		resolver_forget(r, r->newest);
}

/*
 * After publishing, with `history` locked: adds the batch to it. A transaction that begins from now
 * on sees the batch, so the batch matters only to transactions that have begun before and are still
 * to be judged; the oldest of them reads at `oldest_writer`. If there are none, that is the batch's
 * own version, and nothing has to be remembered: a lone writer leaves no history.
 */
static void
committer_remember(struct committer *c, uint64_t oldest_writer)
{
	const struct batch *b = &c->batch;
	struct resolver *r = &c->resolver;

	assert(oldest_writer <= b->version);
	resolver_forget(r, oldest_writer);
	if (oldest_writer < b->version)
		resolver_add(r, &b->keys, &b->ranges, b->version);
	history_bound(r);
	assert(r->oldest <= r->newest && r->bytes < EMB_RESOLVER_BYTES);
	atomic_store_explicit(&c->store->oldest_judged, r->oldest, memory_order_relaxed);
	atomic_store_explicit(&c->store->history_bytes, r->bytes, memory_order_relaxed);
}

/* The sync need not bring a new size of the log to the disk if the log is that long already. */
static void
committer_fill_log(struct committer *c)
{
	struct emb_store *store = c->store;
	uint64_t entries = 0;
	size_t bytes;

	if (!store->health.syncs)
		return;
	rocksdb_writebatch_data(c->batch.writes, &bytes);
	if (!fill_is_short(&store->fill, bytes))
		return;
	(void)rocksdb_property_int(store->db, "rocksdb.num-entries-active-mem-table", &entries);
	fill_append(&store->fill, store->path, entries, bytes);
}

/*
 * Writes and syncs the batch, then publishes it. STATUS_FULL, STATUS_IO: the write has failed, and
 * so will all others until the store has been opened again. STATUS_UNAVAILABLE: nothing has been
 * written, and the batch may be made again: with `write_at_once`, because RocksDB would have made
 * the writer wait; otherwise because of a failure that may not come again.
 */
static enum status
committer_write(struct committer *c, struct emb_tx *txs, const rocksdb_writeoptions_t *options)
{
	struct emb_store *store = c->store;
	char *error = NULL;

	TRY(emb_versions_hold(store));
	committer_fill_log(c);
	rocksdb_write(store->db, options, c->batch.writes, &error);
	if (error && options == store->write_at_once && emb_is_incomplete(error)) {
		rocksdb_free(error);
		return STATUS_UNAVAILABLE;
	}
	if (error) {
		bool known;
		enum status status = emb_reopen_write_failed(store, error, &known, &c->batch.err);

		/*
		 * RocksDB stops writing after a failure in the background, too, which a new handle
		 * need not meet. A batch that has been taken back is tried once more with it.
		 */
		if (!known || status == STATUS_FULL || c->made_again ||
		    emb_reopen_due_ns(store) > clock_mono_ns())
			return status;
		c->made_again = true;
		return STATUS_UNAVAILABLE;
	}
	c->made_again = false;
	committer_reach(EMB_STEP_WRITTEN);
	batch_enter_recent(&c->batch);
	pthread_mutex_lock(&c->history);
	committer_remember(c,
			   emb_versions_publish(store, c->batch.version, c->batch.metadata, txs));
	pthread_mutex_unlock(&c->history);
	committer_reach(EMB_STEP_PUBLISHED);
	return STATUS_OK;
}

/*
 * Completes the commits of all transactions of the batch. `status` is that of the batch; those that
 * were refused before have a status of their own.
 */
static void
committer_answer(struct committer *c, struct emb_tx *txs, enum status status)
{
	struct emb_store *store = c->store;
	struct emb_tx *next;

	for (struct emb_tx *tx = txs; tx; tx = next) {
		assert(tx->queued && tx->state == EMB_TX_COMMITTED);
		/* Read before the event is set: afterwards the transaction may be gone. */
		next = tx->queued_behind;
		if (status != STATUS_OK && tx->commit.status == STATUS_OK) {
			tx->commit.status = status;
			if (c->batch.err.status != STATUS_OK)
				err_set(&tx->base.err, status, "%s", c->batch.err.text);
		}
		if (tx->commit.status == STATUS_OK) {
			atomic_fetch_add_explicit(&store->commits, 1, memory_order_relaxed);
			emb_watches_committed(tx);
		} else if (tx->commit.status == STATUS_TX_CONFLICT) {
			atomic_fetch_add_explicit(&store->conflicts, 1, memory_order_relaxed);
			metric_add(&refused_txs, 1);
		}
		event_set(&tx->commit.event);
	}
}

/* For transactions that are not even judged: their status is that of the batch. */
static void
committer_refuse_all(struct emb_tx *txs)
{
	for (struct emb_tx *tx = txs; tx; tx = tx->queued_behind)
		tx->commit.status = STATUS_OK;
}

/*
 * Makes one batch of the transactions, from judging to answering. Returns false if nothing was
 * written and no commit was completed, because RocksDB is stalling or the store has to be opened
 * again first. The caller then has the transactions judged again, by a batch with a version of its
 * own.
 */
static bool
committer_make_batch(struct committer *c, struct emb_tx *txs, const rocksdb_writeoptions_t *options)
{
	size_t accepted = 0, bytes;
	uint64_t began_ns;
	enum status status;

	/* This thread has set it, so it need not ask under the lock. */
	assert(txs && c->store->queue.busy);
	committer_reach(EMB_STEP_TAKEN);
	err_clear(&c->batch.err);
	status = emb_reopen_refuse(c->store, &c->batch.err);
	if (status == STATUS_OK)
		status = committer_resolve(c, txs, &accepted);
	else
		committer_refuse_all(txs);
	if (status == STATUS_OK && accepted) {
		committer_reach(EMB_STEP_RESOLVED);
		began_ns = clock_mono_ns();
		status = committer_write(c, txs, options);
		if (status == STATUS_UNAVAILABLE)
			return false;
		atomic_fetch_add_explicit(&c->store->batches, 1, memory_order_relaxed);
		metric_observe(&batch_txs, accepted);
		metric_observe(&batch_time, clock_mono_ns() - began_ns);
	}
	committer_answer(c, txs, status);
	committer_reach(EMB_STEP_ANSWERED);
	rocksdb_writebatch_data(c->batch.writes, &bytes);
	if (accepted)
		metric_observe(&batch_bytes, bytes);
	if (bytes > c->kept_bytes)
		c->kept_bytes = bytes;
	batch_keep_memory(c, BATCH_KEEP_BYTES);
	return true;
}

bool
emb_committer_lead(struct emb_store *store, struct emb_tx *tx)
{
	emb_count_nothing();
	/* The caller has set `busy`, which makes it the owner of the committer. */
	tx->queued_behind = NULL;
	return committer_make_batch(store->committer, tx, store->write_at_once);
}

/* Tries to open the store again. The handle that follows has a history of its own. */
static void
committer_reopen(struct committer *c)
{
	struct emb_store *store = c->store;
	uint64_t version;

	if (!emb_reopen_try(store))
		return;
	version = store->versions.published;
	if (c->version < version)
		c->version = version;
	/* What has been read through the old handle can be judged if nothing has come since. */
	pthread_mutex_lock(&c->history);
	resolver_forget(&c->resolver, version);
	pthread_mutex_unlock(&c->history);
	atomic_store_explicit(&store->oldest_judged, c->resolver.oldest, memory_order_relaxed);
}

/* ---- Transactions that move to a later version ---- */

/*
 * Whether all that the transaction holds is right at a later version, too. Reads at the snapshot
 * may have noted that keys are absent, and others may have written these keys since.
 */
static bool
tx_can_move(struct emb_tx *tx)
{
	return emb_tx_check(tx) == STATUS_OK && !tx->overlay.cleared.root &&
	       !tx->overlay.passed.root && tx->bytes <= KV_REFRESH_BYTES;
}

/* With `history` locked. */
static bool
committer_sees_unchanged(const struct committer *c, const struct emb_tx *tx)
{
	for (const struct emb_conflict *r = tx->read_conflicts.first; r; r = r->next)
		if (resolver_written_since(&c->resolver, r->begin, r->end, tx->snapshot->version))
			return false;
	return true;
}

bool
emb_refresh(struct kv_tx *base)
{
	struct emb_tx *tx = (struct emb_tx *)base;
	struct gate_pass pass;
	struct committer *c;
	bool moved;

	if (!tx_can_move(tx))
		return false;
	c = tx->store->committer;
	if (!c)
		return false;
	/* Its first read is still to come. */
	if (!tx->snapshot)
		return true;
	emb_lookup_release(tx);
	/* Before the lock, since it may wait. */
	if (emb_handle_use(tx->store, &pass, &tx->base.err) != STATUS_OK)
		return false;
	pthread_mutex_lock(&c->history);
	moved = committer_sees_unchanged(c, tx) && emb_tx_snapshot_renew(tx);
	pthread_mutex_unlock(&c->history);
	gate_leave(pass);
	return moved;
}

/* ---- The thread ---- */

static void *
committer_main(void *arg)
{
	struct committer *c = arg;
	struct emb_tx *txs;

	emb_count_nothing();
	thread_set_turn(TURN_NS);
	thread_set_name("committer");
	while (queue_take(c, &txs)) {
		if (!txs)
			committer_reopen(c);
		while (txs && !committer_make_batch(c, txs, c->store->write_options))
			committer_reopen(c);
	}
	return NULL;
}

enum status
emb_committer_start(struct emb_store *store, struct err *err)
{
	struct committer *c = mem_zalloc(sizeof(*c));

	if (!c)
		return STATUS_NOMEM;
	c->store = store;
	c->version = store->versions.published;
	pthread_mutex_init(&c->history, NULL);
	resolver_init(&c->resolver, c->version);
	atomic_store_explicit(&store->oldest_judged, c->version, memory_order_relaxed);
	c->batch.store = store;
	c->batch.resolver = &c->resolver;
	c->batch.writes = rocksdb_writebatch_create();
	c->batch.arena = arena_new(BATCH_ARENA_BYTES);
	store->committer = c;
	/* The new thread owns the committer until it first waits for transactions. */
	store->queue.busy = true;
	if (!c->batch.arena || pthread_create(&c->thread, NULL, committer_main, c) != 0) {
		rocksdb_writebatch_destroy(c->batch.writes);
		arena_free(c->batch.arena);
		pthread_mutex_destroy(&c->history);
		mem_free(c);
		store->committer = NULL;
		return err_set(err, STATUS_NOMEM, "the committer's thread cannot start");
	}
	return STATUS_OK;
}

void
emb_committer_stop(struct emb_store *store)
{
	struct committer *c = store->committer;
	struct emb_queue *q = &store->queue;

	if (!c)
		return;
	pthread_mutex_lock(&q->lock);
	q->closing = true;
	pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->lock);
	pthread_join(c->thread, NULL);
	resolver_fini(&c->resolver);
	pthread_mutex_destroy(&c->history);
	rocksdb_writebatch_destroy(c->batch.writes);
	arena_free(c->batch.arena);
	mem_free(c);
	store->committer = NULL;
}
