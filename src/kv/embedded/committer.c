/*
 * The committer: takes every waiting transaction at once, judges them in order, writes the good
 * ones as one batch with one sync, publishes, and answers. While it waits for the disk the next
 * batch gathers. It is one thread's, except for a batch that a lone writer makes by itself
 * (commit.c): whoever has set the queue busy has the committer.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kv/embedded/embedded_int.h"

enum {
	/* A batch's memory is kept for the next one: up to the first, and from the second on not
	 * for longer than the third says. */
	BATCH_KEEP_BYTES = 4 * 1024 * 1024,
	BATCH_KEEP_IDLE_BYTES = 256 * 1024,
	BATCH_IDLE_MS = 1000,
	BATCH_ARENA_BYTES = 1024 * 1024 * 1024, /* far above what the transactions' limits allow */
};

void (*emb_step_hook)(enum emb_step step);

struct committer {
	struct emb_store *store;
	pthread_t thread;
	struct resolver resolver;
	uint64_t version; /* of the last batch */
	struct batch batch;
	size_t kept_bytes; /* that the batch's memory has grown to */
};

static void
reach(enum emb_step step)
{
	if (emb_step_hook)
		emb_step_hook(step);
}

/* A cleared batch keeps its memory; more than `bytes` of it are given back. */
static void
keep(struct committer *c, size_t bytes)
{
	if (c->kept_bytes <= bytes)
		return;
	rocksdb_writebatch_destroy(c->batch.writes);
	c->batch.writes = rocksdb_writebatch_create();
	c->kept_bytes = 0;
}

/*
 * With the queue's lock held: until it is filled or closing, and nobody else makes a batch, whose
 * the committer is as long as it does.
 */
static void
wait_for_txs(struct committer *c, struct emb_queue *q)
{
	while (q->busy || (!q->first && !q->closing)) {
		struct timespec until;
		uint64_t until_ns;

		if (!q->busy && c->kept_bytes <= BATCH_KEEP_IDLE_BYTES) {
			pthread_cond_wait(&q->filled, &q->lock);
			continue;
		}
		until_ns = clock_after_ms(BATCH_IDLE_MS);
		until.tv_sec = (time_t)(until_ns / (1000 * CLOCK_NS_PER_MS));
		until.tv_nsec = (long)(until_ns % (1000 * CLOCK_NS_PER_MS));
		if (pthread_cond_timedwait(&q->filled, &q->lock, &until) == ETIMEDOUT && !q->busy)
			keep(c, BATCH_KEEP_IDLE_BYTES);
	}
}

/*
 * By the committer's thread when it has made a batch: waits for transactions, and takes as many as
 * one may have. NULL when the store closes.
 */
static struct emb_tx *
take(struct committer *c)
{
	struct emb_queue *q = &c->store->queue;
	struct emb_tx *first;
	struct emb_tx *last;
	size_t bytes;
	size_t txs = 1;

	pthread_mutex_lock(&q->lock);
	q->busy = false;
	wait_for_txs(c, q);
	first = q->first;
	if (first) {
		q->busy = true;
		last = first;
		bytes = last->bytes;
		while (last->queued_behind && txs < EMB_BATCH_TXS &&
		       bytes + last->queued_behind->bytes <= EMB_BATCH_BYTES) {
			last = last->queued_behind;
			bytes += last->bytes;
			txs++;
		}
		q->first = last->queued_behind;
		if (!q->first)
			q->last = NULL;
		q->txs -= txs;
		q->bytes -= bytes;
		last->queued_behind = NULL;
	}
	pthread_mutex_unlock(&q->lock);
	return first;
}

/* May this transaction commit after all that the resolver knows? */
static enum status
judge(struct committer *c, struct emb_tx *tx)
{
	if (atomic_load_explicit(&tx->cancelled, memory_order_relaxed))
		return STATUS_CANCELLED;
	if (!tx->read_conflicts.first)
		return STATUS_OK;
	if (tx->snapshot->version < c->resolver.oldest)
		return err_set(&tx->base.err, STATUS_TX_TOO_OLD,
			       "too much has been written since the transaction began");
	for (const struct emb_conflict *r = tx->read_conflicts.first; r; r = r->next)
		if (batch_written_since(&c->batch, r->begin, r->end, tx->snapshot->version))
			return err_set(&tx->base.err, STATUS_TX_CONFLICT,
				       "something that the transaction read has changed");
	return STATUS_OK;
}

/* Judges all in order and enters the good ones into the batch. */
static enum status
resolve(struct committer *c, struct emb_tx *txs, size_t *ret_accepted)
{
	struct batch *b = &c->batch;

	*ret_accepted = 0;
	batch_begin(b, ++c->version);
	for (struct emb_tx *tx = txs; tx; tx = tx->queued_behind) {
		tx->commit.status = judge(c, tx);
		if (tx->commit.status != STATUS_OK)
			continue;
		emb_watches_judge(tx, b);
		TRY(batch_apply(b, tx));
		tx->committed_version = b->version;
		tx->committed_order = b->order++;
		++*ret_accepted;
	}
	if (*ret_accepted)
		batch_finish(b);
	return STATUS_OK;
}

/* Forgets what the history has in excess: of keys that were written again, then the older half. */
static void
bound_history(struct resolver *r)
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
 * After publishing, when whoever begins sees the batch: it has to be remembered only if there are
 * transactions that have begun before and are still to be judged.
 */
static void
remember(struct committer *c, uint64_t oldest_writer)
{
	const struct batch *b = &c->batch;
	struct resolver *r = &c->resolver;

	resolver_forget(r, oldest_writer);
	if (oldest_writer < b->version)
		resolver_add(r, &b->keys, &b->ranges, b->version);
	bound_history(r);
	atomic_store_explicit(&c->store->oldest_judged, r->oldest, memory_order_relaxed);
	atomic_store_explicit(&c->store->history_bytes, r->bytes, memory_order_relaxed);
}

/*
 * After a failed write or sync nobody knows what the disk has, and a later sync would not tell:
 * nothing is acknowledged any more until the store has been reopened. STATUS_UNAVAILABLE: RocksDB
 * wants writers to slow down, which the options forbid; nothing is written.
 */
static enum status
write_batch(struct committer *c, struct emb_tx *txs, const rocksdb_writeoptions_t *options)
{
	struct emb_store *store = c->store;
	char *error = NULL;

	if (atomic_load_explicit(&store->failed, memory_order_relaxed))
		return err_set(&c->batch.err, STATUS_IO,
			       "a write to the disk failed earlier: the store has to be reopened");
	TRY(emb_versions_hold(store));
	rocksdb_write(store->db, options, c->batch.writes, &error);
	if (error && options == store->write_at_once && emb_is_incomplete(error)) {
		rocksdb_free(error);
		return STATUS_UNAVAILABLE;
	}
	if (error) {
		atomic_store_explicit(&store->failed, true, memory_order_relaxed);
		emb_error(error, "writing to the disk", &c->batch.err);
		return STATUS_IO;
	}
	reach(EMB_STEP_WRITTEN);
	remember(c, emb_versions_publish(store, c->batch.version, c->batch.metadata, txs));
	reach(EMB_STEP_PUBLISHED);
	return STATUS_OK;
}

static void
answer(struct committer *c, struct emb_tx *txs, enum status status)
{
	struct emb_store *store = c->store;
	struct emb_tx *next;

	for (struct emb_tx *tx = txs; tx; tx = next) {
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
		}
		/* From here on its owner may free it. */
		event_set(&tx->commit.event);
	}
}

/* False if it is not to be with these options: nothing has happened, and nobody is answered. */
static bool
make_batch(struct committer *c, struct emb_tx *txs, const rocksdb_writeoptions_t *options)
{
	size_t accepted, bytes;
	enum status status;

	reach(EMB_STEP_TAKEN);
	status = resolve(c, txs, &accepted);
	if (status == STATUS_OK && accepted) {
		reach(EMB_STEP_RESOLVED);
		status = write_batch(c, txs, options);
		if (status == STATUS_UNAVAILABLE)
			return false;
		atomic_fetch_add_explicit(&c->store->batches, 1, memory_order_relaxed);
	}
	answer(c, txs, status);
	reach(EMB_STEP_ANSWERED);
	rocksdb_writebatch_data(c->batch.writes, &bytes);
	if (bytes > c->kept_bytes)
		c->kept_bytes = bytes;
	keep(c, BATCH_KEEP_BYTES);
	return true;
}

bool
emb_committer_lead(struct emb_store *store, struct emb_tx *tx)
{
	emb_count_nothing();
	tx->queued_behind = NULL;
	return make_batch(store->committer, tx, store->write_at_once);
}

static void *
committer_main(void *arg)
{
	struct committer *c = arg;
	struct emb_tx *txs;

	emb_count_nothing();
	while ((txs = take(c)))
		make_batch(c, txs, c->store->write_options);
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
	resolver_init(&c->resolver, c->version);
	atomic_store_explicit(&store->oldest_judged, c->version, memory_order_relaxed);
	c->batch.store = store;
	c->batch.resolver = &c->resolver;
	c->batch.writes = rocksdb_writebatch_create();
	c->batch.arena = arena_new(BATCH_ARENA_BYTES);
	store->committer = c;
	store->queue.busy = true; /* until its thread waits */
	if (!c->batch.arena || pthread_create(&c->thread, NULL, committer_main, c) != 0) {
		rocksdb_writebatch_destroy(c->batch.writes);
		arena_free(c->batch.arena);
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
	rocksdb_writebatch_destroy(c->batch.writes);
	arena_free(c->batch.arena);
	mem_free(c);
	store->committer = NULL;
}
