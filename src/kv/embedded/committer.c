/*
 * The committer: one thread that takes every waiting transaction at once, judges them in order,
 * writes the good ones as one batch with one sync, publishes, and answers. While it waits for the
 * disk the next batch gathers.
 */
#include "base/mem.h"
#include "kv/embedded/embedded_int.h"

enum {
	BATCH_KEEP_BYTES = 256 * 1024,
	BATCH_ARENA_BYTES = 1024 * 1024 * 1024, /* far above what the transactions' limits allow */
};

void (*emb_step_hook)(enum emb_step step);

struct committer {
	struct emb_store *store;
	pthread_t thread;
	struct resolver resolver;
	size_t forget_at; /* steps of the resolver */
	uint64_t version; /* of the last batch */
	struct batch batch;
};

static void
reach(enum emb_step step)
{
	if (emb_step_hook)
		emb_step_hook(step);
}

/* Waits for transactions and takes as many as one batch may have. NULL when the store closes. */
static struct emb_tx *
take(struct emb_queue *q)
{
	struct emb_tx *first;
	struct emb_tx *last;
	size_t bytes;
	size_t txs = 1;

	pthread_mutex_lock(&q->lock);
	while (!q->first && !q->closing)
		pthread_cond_wait(&q->filled, &q->lock);
	first = q->first;
	if (first) {
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
		if (resolver_written_since(&c->resolver, r->begin, r->end, tx->snapshot->version))
			return err_set(&tx->base.err, STATUS_TX_CONFLICT,
				       "something that the transaction read has changed");
	return STATUS_OK;
}

static enum status
batch_begin(struct committer *c, struct emb_tx *txs)
{
	struct batch *b = &c->batch;

	b->version = ++c->version;
	b->order = 0;
	b->err = (struct err){ 0 };
	memcpy(b->metadata, c->store->versions.metadata, sizeof(b->metadata));
	batch_begin_writes(b);
	arena_clear(b->arena);
	tree_init(&b->cells, NULL);
	for (struct emb_tx *tx = txs; tx; tx = tx->queued_behind)
		TRY(batch_announce(b, tx));
	return STATUS_OK;
}

/* Judges all in order and appends the good ones to the batch. */
static enum status
resolve(struct committer *c, struct emb_tx *txs, size_t *ret_accepted)
{
	struct batch *b = &c->batch;

	*ret_accepted = 0;
	TRY(batch_begin(c, txs));
	for (struct emb_tx *tx = txs; tx; tx = tx->queued_behind) {
		tx->commit.status = judge(c, tx);
		if (tx->commit.status != STATUS_OK)
			continue;
		emb_watches_judge(tx, &c->resolver);
		TRY(batch_apply(b, tx));
		tx->committed_version = b->version;
		tx->committed_order = b->order++;
		++*ret_accepted;
	}
	return batch_finish(b);
}

/*
 * After a failed write or sync nobody knows what the disk has, and a later sync would not tell:
 * nothing is acknowledged any more until the store has been reopened.
 */
static enum status
write_batch(struct committer *c)
{
	struct emb_store *store = c->store;
	char *error = NULL;

	if (atomic_load_explicit(&store->failed, memory_order_relaxed))
		return err_set(&c->batch.err, STATUS_IO,
			       "a write to the disk failed earlier: the store has to be reopened");
	TRY(emb_versions_hold(store));
	rocksdb_write(store->db, store->write_options, c->batch.writes, &error);
	if (error) {
		atomic_store_explicit(&store->failed, true, memory_order_relaxed);
		emb_error(error, "writing to the disk", &c->batch.err);
		return STATUS_IO;
	}
	reach(EMB_STEP_WRITTEN);
	emb_versions_publish(store, c->batch.version, c->batch.metadata);
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

/* A cleared batch keeps its memory; that of an unusually large one is given back. */
static void
shrink(struct batch *b)
{
	size_t bytes;

	rocksdb_writebatch_data(b->writes, &bytes);
	if (bytes <= BATCH_KEEP_BYTES)
		return;
	rocksdb_writebatch_destroy(b->writes);
	batch_release_writes(b);
	b->writes = rocksdb_writebatch_create();
}

/* Keeps the resolver to what open transactions need, and that within bounds. */
static void
forget(struct committer *c)
{
	struct resolver *r = &c->resolver;

	if (r->count < c->forget_at && r->bytes < EMB_RESOLVER_BYTES)
		return;
	resolver_forget(r, emb_versions_oldest_writer(c->store));
	if (r->bytes >= EMB_RESOLVER_BYTES)
		resolver_forget(r, r->oldest + (r->newest - r->oldest) / 2);
	if (r->bytes >= EMB_RESOLVER_BYTES)
		resolver_forget(r, r->newest);
	c->forget_at = 2 * r->count > EMB_RESOLVER_STEPS ? 2 * r->count : EMB_RESOLVER_STEPS;
}

/* Lets everybody else know what the resolver has come to. */
static void
tell_history(struct committer *c)
{
	atomic_store_explicit(&c->store->oldest_judged, c->resolver.oldest, memory_order_relaxed);
	atomic_store_explicit(&c->store->history_bytes, c->resolver.bytes, memory_order_relaxed);
}

static void *
committer_main(void *arg)
{
	struct committer *c = arg;
	struct emb_tx *txs;

	emb_count_nothing();
	while ((txs = take(&c->store->queue))) {
		size_t accepted;
		enum status status;

		reach(EMB_STEP_TAKEN);
		status = resolve(c, txs, &accepted);
		if (status == STATUS_OK && accepted) {
			reach(EMB_STEP_RESOLVED);
			status = write_batch(c);
			atomic_fetch_add_explicit(&c->store->batches, 1, memory_order_relaxed);
		}
		answer(c, txs, status);
		reach(EMB_STEP_ANSWERED);
		shrink(&c->batch);
		forget(c);
		tell_history(c);
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
	c->forget_at = EMB_RESOLVER_STEPS;
	resolver_init(&c->resolver, c->version);
	tell_history(c);
	c->batch.store = store;
	c->batch.resolver = &c->resolver;
	c->batch.writes = rocksdb_writebatch_create();
	c->batch.arena = arena_new(BATCH_ARENA_BYTES);
	store->committer = c;
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
	batch_release_writes(&c->batch);
	rocksdb_writebatch_destroy(c->batch.writes);
	arena_free(c->batch.arena);
	mem_free(c);
	store->committer = NULL;
}
