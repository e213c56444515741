/*
 * Watches. One is pending until its transaction commits, then armed under its key until somebody
 * commits a write there, and done from then on. The table outlives the store for as long as futures
 * of it exist.
 *
 * Spurious completion is allowed, which settles what to do when memory or the disk fails: complete.
 */
#include "base/mem.h"
#include "kv/embedded/embedded_int.h"

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

struct emb_watch {
	struct kv_future base;
	struct watches *table;
	struct emb_watch *next; /* of the same transaction while pending, key while armed */
	struct emb_watch *prev;
	struct emb_watch *next_armed; /* the list of those that a commit without writes arms */
	struct emb_tx *tx;            /* while pending */
	struct watch_key *armed;      /* while armed */
	bool changed;                 /* somebody has written the key since the snapshot */
	struct str key;
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

/* Unlocks, and lets go of one reference. */
static void
unlock_unref(struct watches *w)
{
	bool last = --w->refs == 0;

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

static struct emb_watch *
pending_of(struct emb_tx *tx)
{
	return atomic_load_explicit(&tx->watches, memory_order_relaxed);
}

/* Takes it out of its list, if it is in one. */
static void
unlink_watch(struct emb_watch *w)
{
	struct watch_key *key = w->armed;

	if (!w->tx && !key)
		return;
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
complete(struct emb_watch *w, enum status status)
{
	unlink_watch(w);
	w->base.status = status;
	event_set(&w->base.event);
}

static struct watch_key *
key_at(struct watches *table, struct str key)
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

static void
arm(struct emb_watch *w)
{
	struct watches *table = w->table;
	struct watch_key *key = w->changed ? NULL : key_at(table, w->key);

	if (!key) {
		complete(w, STATUS_OK);
		return;
	}
	unlink_watch(w);
	atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
	w->armed = key;
	w->prev = NULL;
	w->next = key->first;
	if (w->next)
		w->next->prev = w;
	key->first = w;
}

/* Completes the watches of all keys in [begin, end). */
static void
wake_range(struct watches *table, struct str begin, struct str end)
{
	struct tree_node *n = tree_at_or_after(&table->keys, begin);

	while (n && str_cmp(n->key, end) < 0) {
		struct tree_node *next = tree_next(n);
		struct emb_watch *w = ((struct watch_key *)n)->first;

		while (w) {
			struct emb_watch *following = w->next;

			complete(w, STATUS_OK);
			w = following;
		}
		n = next;
	}
}

/* ---- The calls ---- */

void
watches_close(struct watches *table)
{
	struct tree_node *n;

	pthread_mutex_lock(&table->lock);
	while ((n = tree_first(&table->keys)))
		complete(((struct watch_key *)n)->first, STATUS_CANCELLED);
	unlock_unref(table);
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
		err_set(&base->err, STATUS_LIMIT, "%d keys are being watched already",
			KV_LIMIT_WATCHES);
		return kv_future_failed(STATUS_LIMIT);
	}
	table->refs++;
	atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
	w->tx = tx;
	w->next = pending_of(tx);
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
	unlink_watch(w);
	unlock_unref(table);
	mem_free(w);
}

void
emb_watches_cancel(struct emb_tx *tx)
{
	struct watches *table = tx->store->watches;
	struct emb_watch *w;

	if (!pending_of(tx))
		return;
	pthread_mutex_lock(&table->lock);
	while ((w = pending_of(tx)))
		complete(w, STATUS_CANCELLED);
	pthread_mutex_unlock(&table->lock);
}

void
emb_watches_judge(struct emb_tx *tx, const struct batch *b)
{
	if (!pending_of(tx))
		return;
	pthread_mutex_lock(&tx->store->watches->lock);
	for (struct emb_watch *w = pending_of(tx); w; w = w->next)
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
	for (const struct mutation *m = tx->first; m; m = m->next) {
		/* Copies of keys have a zero byte behind them: the next key. */
		struct str end = m->kind == MUTATION_CLEAR_RANGE
					 ? m->value
					 : str_of(m->key.ptr, m->key.len + 1);

		wake_range(table, m->key, end);
	}
	while ((w = pending_of(tx)))
		arm(w);
	pthread_mutex_unlock(&table->lock);
}

/* True unless the key has the same value at the transaction's version as it has now. */
static bool
differs_now(struct emb_tx *tx, struct kv_tx *now, struct str key)
{
	struct kv_future *f = emb_get(now, key, KV_SNAPSHOT);
	rocksdb_pinnableslice_t *slice = NULL;
	struct cell seen = { 0 };
	bool same;

	if (f->status != STATUS_OK ||
	    emb_read_key(tx, tx->snapshot, key, &slice, &seen) != STATUS_OK)
		return true;
	same = f->present == seen.present && str_eq(f->value, seen.value);
	rocksdb_pinnableslice_destroy(slice);
	return !same;
}

/*
 * Arms first and compares afterwards: a commit in between is seen by one or by both, never by
 * neither.
 */
enum status
emb_watches_begin(struct emb_tx *tx)
{
	struct watches *table = tx->store->watches;
	struct emb_watch *armed = NULL;
	struct emb_watch *w;
	struct kv_tx *now;

	if (!pending_of(tx))
		return STATUS_OK;
	TRY(emb_begin(&tx->store->base, KV_TX_READ_ONLY, &now));
	now->engine = tx->base.engine;
	now->err.text[0] = '\0';
	pthread_mutex_lock(&table->lock);
	while ((w = pending_of(tx))) {
		w->next_armed = armed;
		armed = w;
		arm(w);
	}
	pthread_mutex_unlock(&table->lock);
	for (w = armed; w; w = w->next_armed) {
		if (!differs_now(tx, now, w->key))
			continue;
		pthread_mutex_lock(&table->lock);
		/* A commit may have completed it by now, and its owner be reading what it says. */
		if (w->armed)
			complete(w, STATUS_OK);
		pthread_mutex_unlock(&table->lock);
	}
	emb_tx_free(now);
	return STATUS_OK;
}
