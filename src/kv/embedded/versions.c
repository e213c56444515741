/*
 * Published versions and the snapshots that transactions read them by.
 *
 * A RocksDB snapshot shows whatever has been written when it is taken, so one taken while the
 * committer writes would show writes that are not published yet. Hence the committer takes the
 * snapshot of the published version before it writes (hold), and everybody who begins meanwhile
 * shares that one.
 */
#include <assert.h>

#include "base/mem.h"
#include "kv/embedded/embedded_int.h"

enum {
	READ_TIER_CACHE = 1, /* rocksdb::kBlockCacheTier */
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
snapshot_destroy(struct emb_store *store, struct emb_snapshot *s)
{
	if (!s)
		return;
	rocksdb_readoptions_destroy(s->read);
	rocksdb_readoptions_destroy(s->read_cached);
	rocksdb_release_snapshot(store->db, s->snapshot);
	mem_free(s);
}

/* With the lock held: one reference less; what has to be destroyed after unlocking, or NULL. */
static struct emb_snapshot *
drop(struct emb_versions *v, struct emb_snapshot *s)
{
	assert(s->refs > 0);
	if (--s->refs)
		return NULL;
	assert(s->writers == 0);
	v->snapshots--;
	return s;
}

/* With the lock held. Whoever begins reads the newest version, so the list stays in order. */
static void
add_writer(struct emb_versions *v, struct emb_tx *tx)
{
	struct emb_snapshot *s = tx->snapshot;

	tx->counted_writer = true;
	if (s->writers++)
		return;
	s->newer = NULL;
	s->older = v->newest_writers;
	if (s->older)
		s->older->newer = s;
	else
		v->oldest_writers = s;
	v->newest_writers = s;
}

/* With the lock held: once the transaction has been judged, or is over. */
static void
drop_writer(struct emb_versions *v, struct emb_tx *tx)
{
	struct emb_snapshot *s = tx->snapshot;

	if (!tx->counted_writer)
		return;
	tx->counted_writer = false;
	if (--s->writers)
		return;
	if (s->older)
		s->older->newer = s->newer;
	else
		v->oldest_writers = s->newer;
	if (s->newer)
		s->newer->older = s->older;
	else
		v->newest_writers = s->older;
}

/* With the lock held: the published version's snapshot, which the versions hold a reference of. */
static enum status
make_current(struct emb_store *store)
{
	struct emb_versions *v = &store->versions;
	struct emb_snapshot *s;

	if (v->current)
		return STATUS_OK;
	s = mem_zalloc(sizeof(*s));
	if (!s)
		return STATUS_NOMEM;
	s->snapshot = rocksdb_create_snapshot(store->db);
	s->read = rocksdb_readoptions_create();
	s->read_cached = rocksdb_readoptions_create();
	rocksdb_readoptions_set_snapshot(s->read, s->snapshot);
	rocksdb_readoptions_set_snapshot(s->read_cached, s->snapshot);
	rocksdb_readoptions_set_read_tier(s->read_cached, READ_TIER_CACHE);
	s->version = v->published;
	memcpy(s->metadata, v->metadata, sizeof(s->metadata));
	s->refs = 1;
	v->snapshots++;
	v->current = s;
	return STATUS_OK;
}

enum status
emb_tx_snapshot(struct emb_tx *tx, struct emb_snapshot **ret)
{
	struct emb_versions *v = &tx->store->versions;
	enum status status;

	if (!tx->snapshot) {
		pthread_mutex_lock(&v->lock);
		status = make_current(tx->store);
		if (status == STATUS_OK) {
			tx->snapshot = v->current;
			tx->snapshot->refs++;
			if (tx->base.kind == KV_TX_READ_WRITE)
				add_writer(v, tx);
		}
		pthread_mutex_unlock(&v->lock);
		TRY(status);
	}
	*ret = tx->snapshot;
	return STATUS_OK;
}

void
emb_tx_snapshot_release(struct emb_tx *tx)
{
	struct emb_versions *v = &tx->store->versions;
	struct emb_snapshot *dead;

	if (!tx->snapshot)
		return;
	pthread_mutex_lock(&v->lock);
	drop_writer(v, tx);
	dead = drop(v, tx->snapshot);
	pthread_mutex_unlock(&v->lock);
	snapshot_destroy(tx->store, dead);
	tx->snapshot = NULL;
}

enum status
emb_versions_hold(struct emb_store *store)
{
	enum status status;

	pthread_mutex_lock(&store->versions.lock);
	status = make_current(store);
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
	assert(version > v->published && v->current);
	v->published = version;
	memcpy(v->metadata, metadata, KV_VERSIONSTAMP_TX_BYTES);
	for (struct emb_tx *tx = txs; tx; tx = tx->queued_behind)
		drop_writer(v, tx);
	if (v->oldest_writers)
		oldest = v->oldest_writers->version;
	dead = drop(v, v->current);
	v->current = NULL;
	pthread_mutex_unlock(&v->lock);
	snapshot_destroy(store, dead);
	return oldest;
}

void
emb_versions_fini(struct emb_store *store)
{
	struct emb_versions *v = &store->versions;

	if (v->current)
		snapshot_destroy(store, drop(v, v->current));
	assert(v->snapshots == 0 && "every transaction must have been freed");
	pthread_mutex_destroy(&v->lock);
}
