/*
 * The published version of a store, and the snapshots by which transactions read it.
 *
 * == Why a snapshot and its version number agree ==
 *
 * A RocksDB snapshot shows whatever has been written when it is taken, and a batch is written a
 * little before its version is published. A snapshot that is taken in between would show writes of
 * a version that it does not claim to have. Therefore the committer calls emb_versions_hold()
 * before it writes: from then until emb_versions_publish(), `current` is set, so a transaction that
 * begins takes a reference to it instead of a snapshot of its own. Publishing lets go of `current`,
 * and the next reader takes a new snapshot, at a moment when all that has been written is
 * published: only one batch is written at a time, and the next one holds first.
 *
 * == Why the resolver keeps enough ==
 *
 * The history of writes is needed by read-write transactions that have begun and are still to be
 * judged. Each is counted as a writer of its snapshot from its first read until its batch is
 * published, or until it ends. The snapshots that have writers are a list, in the order of their
 * versions, since a snapshot gets its first writer while it is the newest. emb_versions_publish()
 * gives the version of the first one to the committer, which forgets nothing newer than that.
 *
 * == What becomes of snapshots when the handle is replaced ==
 *
 * A RocksDB snapshot or iterator belongs to the handle that made it. With the gate closed
 * (gate.h), emb_versions_let_go() frees those of all transactions that are open, for which it has
 * two lists: of all snapshots, and of the read-write transactions that have one, since only these
 * keep an iterator. What is left is a snapshot without a RocksDB snapshot: it is stale, and a read
 * through it is STATUS_TX_TOO_OLD.
 */
#include <assert.h>

#include "base/mem.h"
#include "kv/embedded/handle.h"
#include "kv/embedded/refresh.h"

enum {
	READ_TIER_CACHE = 1, /* rocksdb::kBlockCacheTier */
	SPARE_SNAPSHOTS = 8,
};

void
emb_versions_init(struct emb_versions *v, uint64_t published,
		  const uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES])
{
	*v = (struct emb_versions){ .published = published };
	memcpy(v->metadata, metadata, KV_VERSIONSTAMP_TX_BYTES);
	pthread_mutex_init(&v->lock, NULL);
}

static void
snapshot_free(struct emb_snapshot *s)
{
	rocksdb_readoptions_destroy(s->read);
	rocksdb_readoptions_destroy(s->read_cached);
	mem_free(s);
}

static struct emb_snapshot *
snapshot_alloc(void)
{
	struct emb_snapshot *s = mem_zalloc(sizeof(*s));

	if (!s)
		return NULL;
	s->read = rocksdb_readoptions_create();
	s->read_cached = rocksdb_readoptions_create();
	rocksdb_readoptions_set_read_tier(s->read_cached, READ_TIER_CACHE);
	return s;
}

/*
 * Each commit makes a snapshot and lets go of one, so a few are kept with their options. By a
 * thread that is inside the gate or owns the committer. NULL is fine.
 */
static void
snapshot_destroy(struct emb_store *store, struct emb_snapshot *s)
{
	struct emb_versions *v = &store->versions;
	bool keep;

	if (!s)
		return;
	if (s->snapshot)
		rocksdb_release_snapshot(store->db, s->snapshot);
	s->snapshot = NULL;
	pthread_mutex_lock(&v->lock);
	keep = v->spare_count < SPARE_SNAPSHOTS;
	if (keep) {
		s->next = v->spares;
		v->spares = s;
		v->spare_count++;
	}
	pthread_mutex_unlock(&v->lock);
	if (!keep)
		snapshot_free(s);
}

/* With the lock held: a snapshot that shows nothing yet. NULL: no memory. */
static struct emb_snapshot *
snapshot_take_spare(struct emb_versions *v)
{
	struct emb_snapshot *s = v->spares;

	if (!s)
		return snapshot_alloc();
	assert(v->spare_count && !s->snapshot && !s->refs);
	v->spares = s->next;
	v->spare_count--;
	s->older = s->newer = NULL;
	return s;
}

/*
 * With the lock held: lets go of one reference. Returns the snapshot if that was the last one; the
 * caller destroys it after unlocking, since releasing a RocksDB snapshot takes a lock of RocksDB's.
 */
static struct emb_snapshot *
snapshot_unref(struct emb_versions *v, struct emb_snapshot *s)
{
	assert(s->refs > 0);
	if (--s->refs)
		return NULL;
	assert(s->writers == 0);
	v->snapshots--;
	if (s->next)
		s->next->prev = s->prev;
	if (s->prev)
		s->prev->next = s->next;
	else
		v->first = s->next;
	return s;
}

/* With the lock held: counts a transaction that has just taken the current snapshot. */
static void
snapshot_add_writer(struct emb_versions *v, struct emb_tx *tx)
{
	struct emb_snapshot *s = tx->snapshot;

	assert(s == v->current && !tx->counted_writer);
	tx->counted_writer = true;
	if (s->writers++)
		return;
	/*
	 * The first writer of the newest version: at the end, the list stays in order. A stale
	 * snapshot before it may have the same version.
	 */
	assert(!v->newest_writers || v->newest_writers->version <= s->version);
	s->newer = NULL;
	s->older = v->newest_writers;
	if (s->older)
		s->older->newer = s;
	else
		v->oldest_writers = s;
	v->newest_writers = s;
}

/* With the lock held: the transaction has been judged, or has ended without a commit. */
static void
snapshot_drop_writer(struct emb_versions *v, struct emb_tx *tx)
{
	struct emb_snapshot *s = tx->snapshot;

	if (!tx->counted_writer)
		return;
	assert(s->writers > 0 && s->writers <= s->refs);
	tx->counted_writer = false;
	if (--s->writers)
		return;
	assert(v->oldest_writers && v->newest_writers);
	if (s->older)
		s->older->newer = s->newer;
	else
		v->oldest_writers = s->newer;
	if (s->newer)
		s->newer->older = s->older;
	else
		v->newest_writers = s->older;
}

/*
 * With the lock held: sets `current` to a snapshot of the published version, unless it is set. One
 * of the snapshot's references is that of `current` itself. STATUS_NOMEM.
 */
static enum status
versions_make_current(struct emb_store *store)
{
	struct emb_versions *v = &store->versions;
	struct emb_snapshot *s;

	if (v->current)
		return STATUS_OK;
	s = snapshot_take_spare(v);
	if (!s)
		return STATUS_NOMEM;
	s->snapshot = rocksdb_create_snapshot(store->db);
	rocksdb_readoptions_set_snapshot(s->read, s->snapshot);
	rocksdb_readoptions_set_snapshot(s->read_cached, s->snapshot);
	s->version = v->published;
	memcpy(s->metadata, v->metadata, sizeof(s->metadata));
	s->refs = 1;
	v->snapshots++;
	s->prev = NULL;
	s->next = v->first;
	if (s->next)
		s->next->prev = s;
	v->first = s;
	v->current = s;
	return STATUS_OK;
}

/* ---- Transactions that have a snapshot ---- */

/* With the lock held. */
static void
versions_add_open(struct emb_versions *v, struct emb_tx *tx)
{
	tx->open_prev = NULL;
	tx->open_next = v->open;
	if (tx->open_next)
		tx->open_next->open_prev = tx;
	v->open = tx;
}

/* With the lock held. */
static void
versions_remove_open(struct emb_versions *v, struct emb_tx *tx)
{
	if (tx->open_next)
		tx->open_next->open_prev = tx->open_prev;
	if (tx->open_prev)
		tx->open_prev->open_next = tx->open_next;
	else
		v->open = tx->open_next;
}

/* Gives the transaction its snapshot. Waits while the store is being opened again. */
static enum status
tx_take_snapshot(struct emb_tx *tx)
{
	struct emb_store *store = tx->store;
	struct emb_versions *v = &store->versions;
	struct gate_pass pass;
	enum status status;

	TRY(emb_handle_use(store, &pass, &tx->base.err));
	pthread_mutex_lock(&v->lock);
	status = versions_make_current(store);
	if (status == STATUS_OK) {
		tx->snapshot = v->current;
		tx->snapshot->refs++;
		if (tx->base.kind == KV_TX_READ_WRITE)
			snapshot_add_writer(v, tx);
		tx->is_open = tx->base.kind == KV_TX_READ_WRITE || tx->base.brief;
		if (tx->is_open)
			versions_add_open(v, tx);
	}
	pthread_mutex_unlock(&v->lock);
	gate_leave(pass);
	return status;
}

enum status
emb_tx_snapshot(struct emb_tx *tx, struct emb_snapshot **ret)
{
	if (!tx->snapshot)
		TRY(tx_take_snapshot(tx));
	/* The transaction has a reference. The count may be read with the lock only. */
	*ret = tx->snapshot;
	return STATUS_OK;
}

void
emb_tx_snapshot_release(struct emb_tx *tx)
{
	struct emb_store *store = tx->store;
	struct emb_versions *v = &store->versions;
	struct emb_snapshot *dead;
	struct gate_pass pass;

	if (!tx->snapshot)
		return;
	/* Before the snapshot leaves the list: emb_versions_let_go() finds either all or none. */
	gate_enter_when_open(&store->gate, &pass);
	pthread_mutex_lock(&v->lock);
	if (tx->is_open)
		versions_remove_open(v, tx);
	tx->is_open = false;
	snapshot_drop_writer(v, tx);
	dead = snapshot_unref(v, tx->snapshot);
	pthread_mutex_unlock(&v->lock);
	snapshot_destroy(store, dead);
	gate_leave(pass);
	tx->snapshot = NULL;
}

bool
emb_tx_snapshot_renew(struct emb_tx *tx)
{
	struct emb_store *store = tx->store;
	struct emb_versions *v = &store->versions;
	struct emb_snapshot *dead = NULL;
	bool renewed;

	assert(tx->snapshot && tx->counted_writer);
	pthread_mutex_lock(&v->lock);
	renewed = tx->snapshot->snapshot && versions_make_current(store) == STATUS_OK;
	if (renewed && tx->snapshot != v->current) {
		snapshot_drop_writer(v, tx);
		dead = snapshot_unref(v, tx->snapshot);
		tx->snapshot = v->current;
		tx->snapshot->refs++;
		snapshot_add_writer(v, tx);
	}
	pthread_mutex_unlock(&v->lock);
	snapshot_destroy(store, dead);
	return renewed;
}

enum status
emb_versions_hold(struct emb_store *store)
{
	enum status status;

	pthread_mutex_lock(&store->versions.lock);
	status = versions_make_current(store);
	assert(status != STATUS_OK ||
	       store->versions.current->version == store->versions.published);
	pthread_mutex_unlock(&store->versions.lock);
	return status;
}

uint64_t
emb_versions_publish(struct emb_store *store, uint64_t version,
		     const uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES], struct emb_tx *txs)
{
	struct emb_versions *v = &store->versions;
	struct emb_snapshot *dead;
	uint64_t oldest = version;

	pthread_mutex_lock(&v->lock);
	/* The committer has held the version before, and nobody else publishes. */
	assert(version > v->published && v->current && v->current->version == v->published);
	v->published = version;
	memcpy(v->metadata, metadata, KV_VERSIONSTAMP_TX_BYTES);
	for (struct emb_tx *tx = txs; tx; tx = tx->queued_behind)
		snapshot_drop_writer(v, tx);
	if (v->oldest_writers)
		oldest = v->oldest_writers->version;
	assert(oldest <= version);
	dead = snapshot_unref(v, v->current);
	v->current = NULL;
	pthread_mutex_unlock(&v->lock);
	snapshot_destroy(store, dead);
	return oldest;
}

void
emb_versions_let_go(struct emb_store *store)
{
	struct emb_versions *v = &store->versions;

	assert(store->gate.closed);
	pthread_mutex_lock(&v->lock);
	for (struct emb_tx *tx = v->open; tx; tx = tx->open_next) {
		if (tx->lookup)
			rocksdb_iter_destroy(tx->lookup);
		if (tx->finder)
			rocksdb_iter_destroy(tx->finder);
		tx->lookup = tx->finder = NULL;
	}
	for (struct emb_snapshot *s = v->first; s; s = s->next) {
		if (s->snapshot)
			rocksdb_release_snapshot(store->db, s->snapshot);
		s->snapshot = NULL;
	}
	pthread_mutex_unlock(&v->lock);
}

void
emb_versions_reopened(struct emb_store *store, uint64_t version,
		      const uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES])
{
	struct emb_versions *v = &store->versions;
	struct emb_snapshot *dead = NULL;

	pthread_mutex_lock(&v->lock);
	assert(version >= v->published);
	v->published = version;
	memcpy(v->metadata, metadata, KV_VERSIONSTAMP_TX_BYTES);
	/* It is stale. Transactions that begin from now on share a new one. */
	if (v->current)
		dead = snapshot_unref(v, v->current);
	v->current = NULL;
	pthread_mutex_unlock(&v->lock);
	snapshot_destroy(store, dead);
}

void
emb_versions_fini(struct emb_store *store)
{
	struct emb_versions *v = &store->versions;

	struct emb_snapshot *next;

	if (v->current)
		snapshot_destroy(store, snapshot_unref(v, v->current));
	assert(!v->oldest_writers && !v->newest_writers && !v->open);
	assert(v->snapshots == 0 && "every transaction must have been freed");
	for (struct emb_snapshot *s = v->spares; s; s = next) {
		next = s->next;
		snapshot_free(s);
	}
	pthread_mutex_destroy(&v->lock);
}
