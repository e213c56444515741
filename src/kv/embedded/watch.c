/*
 * Watches. A watch is pending until its transaction commits; then it is armed, which means entered
 * in the table under its key, until a commit writes that key; from then on it is done. The table
 * outlives the store for as long as futures of its watches exist.
 *
 * A watch may complete without a change. So wherever memory or the disk fails, it is completed.
 *
 * == Why no change is missed ==
 *
 * A watch must complete if the key's value is ever another one than its transaction has seen. The
 * changes before the watch is armed are the question; later ones find it in the table.
 *
 * A transaction that writes is armed by the committer, after its batch is published. Writes of
 * earlier batches, and of transactions before it in its own batch, are found by
 * emb_watches_judge(), which runs before the transaction's writes are entered and asks the batch
 * and the history for writes since the transaction's snapshot. Writes of transactions behind it in
 * the same batch come to emb_watches_committed() after it, so they find its watches armed.
 *
 * A transaction that writes nothing has no place in a batch. Its commit, commit_begin_watches() in
 * commit.c, arms its watches first and then compares the value at its snapshot with the value now.
 * A commit that is published before the comparison is seen by it, one that is published afterwards
 * finds the watch armed, and one in between may do both, which is why only a watch that is still
 * armed is completed.
 */
#include <assert.h>

#include "base/mem.h"
#include "kv/embedded/batch.h"
#include "kv/embedded/watch_int.h"

struct watches {
	pthread_mutex_t lock;
	uint64_t refs;          /* the store's, and one a future */
	_Atomic uint64_t count; /* pending and armed */
	struct tree keys;
};

/* The armed watches of one key. */
struct watch_key {
	struct tree_node node;
	struct emb_watch *first;
	char bytes[];
};

struct watches *
watches_new(void)
{
	struct watches *w = mem_zalloc(sizeof(*w));

	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	w->refs = 1;
	tree_init(&w->keys);
	return w;
}

/* Unlocks the table and lets go of one reference to it. */
static void
watches_unlock_unref(struct watches *w)
{
	bool last;

	assert(w->refs > 0);
	last = --w->refs == 0;

	pthread_mutex_unlock(&w->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&w->lock);
	mem_free(w);
}

uint64_t
watches_count(struct watches *w)
{
	return atomic_load_explicit(&w->count, memory_order_relaxed);
}

/* ---- With the lock held ---- */

/* Takes the watch out of its transaction's or its key's list. A watch that is done is in none. */
static void
watch_unlink(struct emb_watch *w)
{
	struct watch_key *key = w->armed;

	assert(!w->tx || !key);
	if (!w->tx && !key)
		return;
	assert(watches_count(w->table) > 0);
	if (w->next)
		w->next->prev = w->prev;
	if (w->prev)
		w->prev->next = w->next;
	else if (w->tx)
		atomic_store_explicit(&w->tx->watches, w->next, memory_order_relaxed);
	else
		key->first = w->next;
	if (key && !key->first) {
		tree_remove(&w->table->keys, &key->node);
		mem_free(key);
	}
	w->tx = NULL;
	w->armed = NULL;
	atomic_fetch_sub_explicit(&w->table->count, 1, memory_order_relaxed);
}

static void
watch_complete(struct emb_watch *w, enum status status)
{
	watch_unlink(w);
	w->base.status = status;
	event_set(&w->base.event);
}

/* The entry of a key in the table, which is made if there is none. NULL: out of memory. */
static struct watch_key *
watch_key_at(struct watches *table, struct str key)
{
	struct tree_node *n = tree_find(&table->keys, key);
	struct watch_key *k;

	if (n)
		return (struct watch_key *)n;
	k = mem_alloc(sizeof(*k) + key.len);
	if (!k)
		return NULL;
	if (key.len)
		memcpy(k->bytes, key.ptr, key.len);
	k->node.key = str_of(k->bytes, key.len);
	k->first = NULL;
	tree_insert(&table->keys, &k->node);
	return k;
}

/* Enters a pending watch under its key, or completes it if the key has changed already. */
static void
watch_arm(struct emb_watch *w)
{
	struct watches *table = w->table;
	struct watch_key *key = w->changed ? NULL : watch_key_at(table, w->key);

	assert(w->tx && !w->armed); /* it is pending */
	if (!key) {
		watch_complete(w, STATUS_OK);
		return;
	}
	watch_unlink(w);
	atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
	assert(!w->tx && !w->armed && str_eq(key->node.key, w->key));
	w->armed = key;
	w->prev = NULL;
	w->next = key->first;
	if (w->next)
		w->next->prev = w;
	key->first = w;
}

/* Completes the watches of one key. Its node goes with the last of them. */
static void
watches_complete_node(struct tree_node *n)
{
	struct emb_watch *w = ((struct watch_key *)n)->first;

	assert(w); /* a key without watches is removed */
	while (w) {
		struct emb_watch *following = w->next;

		watch_complete(w, STATUS_OK);
		w = following;
	}
}

/* Completes the watches of all keys in [begin, end). */
static void
watches_complete_range(struct watches *table, struct str begin, struct str end)
{
	struct tree_node *n = tree_at_or_after(&table->keys, begin);

	while (n && str_cmp(n->key, end) < 0) {
		struct tree_node *next = tree_next(n);

		watches_complete_node(n);
		n = next;
	}
}

static void
watches_complete_key(struct watches *table, struct str key)
{
	struct tree_node *n = tree_at_or_after(&table->keys, key);

	if (n && str_eq(n->key, key))
		watches_complete_node(n);
}

/* ---- For the rest of the engine ---- */

void
watches_close(struct watches *table)
{
	struct tree_node *n;

	pthread_mutex_lock(&table->lock);
	/* Completing the last watch of a key removes the key. */
	while ((n = tree_first(&table->keys)))
		watch_complete(((struct watch_key *)n)->first, STATUS_CANCELLED);
	watches_unlock_unref(table);
}

void
watches_complete_all(struct watches *table)
{
	struct tree_node *n;

	pthread_mutex_lock(&table->lock);
	while ((n = tree_first(&table->keys)))
		watch_complete(((struct watch_key *)n)->first, STATUS_OK);
	pthread_mutex_unlock(&table->lock);
}

void
watches_written(struct watches *table, struct str key, struct str end)
{
	pthread_mutex_lock(&table->lock);
	if (end.len)
		watches_complete_range(table, key, end);
	else
		watches_complete_key(table, key);
	pthread_mutex_unlock(&table->lock);
}

struct kv_future *
emb_watch(struct kv_tx *base, struct str key)
{
	struct emb_tx *tx = (struct emb_tx *)base;
	struct watches *table = tx->store->watches;
	struct emb_snapshot *snapshot;
	struct emb_watch *w;
	enum status status = emb_tx_check(tx);

	if (status == STATUS_OK)
		status = emb_tx_snapshot(tx, &snapshot);
	if (status != STATUS_OK)
		return kv_future_failed(status);
	w = mem_zalloc(sizeof(*w) + key.len + 1);
	if (!w)
		return kv_future_failed(STATUS_NOMEM);
	if (key.len)
		memcpy(w->bytes, key.ptr, key.len);
	w->key = str_of(w->bytes, key.len);
	w->base = (struct kv_future){ .engine = base->engine, .kind = KV_FUTURE_WATCH };
	event_init(&w->base.event);
	w->table = table;

	pthread_mutex_lock(&table->lock);
	if (watches_count(table) >= KV_LIMIT_WATCHES) {
		pthread_mutex_unlock(&table->lock);
		mem_free(w);
		err_set(&base->err, STATUS_BUSY, "%d keys are being watched already",
			KV_LIMIT_WATCHES);
		return kv_future_failed(STATUS_BUSY);
	}
	table->refs++;
	atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
	w->tx = tx;
	w->next = watches_pending(tx);
	if (w->next)
		w->next->prev = w;
	atomic_store_explicit(&tx->watches, w, memory_order_relaxed);
	pthread_mutex_unlock(&table->lock);
	return &w->base;
}

void
emb_watch_free(struct kv_future *f)
{
	struct emb_watch *w = (struct emb_watch *)f;
	struct watches *table = w->table;

	pthread_mutex_lock(&table->lock);
	watch_unlink(w);
	watches_unlock_unref(table);
	mem_free(w);
}

void
emb_watches_cancel(struct emb_tx *tx)
{
	struct watches *table = tx->store->watches;
	struct emb_watch *w;

	if (!watches_pending(tx))
		return;
	pthread_mutex_lock(&table->lock);
	while ((w = watches_pending(tx)))
		watch_complete(w, STATUS_CANCELLED);
	pthread_mutex_unlock(&table->lock);
}

void
emb_watches_judge(struct emb_tx *tx, const struct batch *b)
{
	if (!watches_pending(tx))
		return;
	assert(tx->snapshot); /* emb_watch() has taken it */
	pthread_mutex_lock(&tx->store->watches->lock);
	for (struct emb_watch *w = watches_pending(tx); w; w = w->next)
		w->changed = batch_written_since(b, w->key, str_of(w->bytes, w->key.len + 1),
						 tx->snapshot->version);
	pthread_mutex_unlock(&tx->store->watches->lock);
}

void
emb_watches_committed(struct emb_tx *tx)
{
	struct watches *table = tx->store->watches;
	struct emb_watch *w;

	if (watches_count(table) == 0)
		return;
	pthread_mutex_lock(&table->lock);
	for (const struct mutation *m = tx->first; m; m = m->next)
		if (m->kind == MUTATION_CLEAR_RANGE)
			watches_complete_range(table, m->key, m->value);
		else
			watches_complete_key(table, m->key);
	while ((w = watches_pending(tx)))
		watch_arm(w);
	pthread_mutex_unlock(&table->lock);
}

struct emb_watch *
emb_watches_arm(struct emb_tx *tx)
{
	struct watches *table = tx->store->watches;
	struct emb_watch *armed = NULL;
	struct emb_watch *w;

	pthread_mutex_lock(&table->lock);
	while ((w = watches_pending(tx))) {
		w->next_armed = armed;
		armed = w;
		watch_arm(w);
	}
	pthread_mutex_unlock(&table->lock);
	return armed;
}

void
emb_watch_changed(struct emb_watch *w)
{
	pthread_mutex_lock(&w->table->lock);
	/*
	 * A commit may have completed it in the meantime; then its owner may be reading its
	 * status, and nothing may be written to it any more.
	 */
	if (w->armed)
		watch_complete(w, STATUS_OK);
	pthread_mutex_unlock(&w->table->lock);
}
