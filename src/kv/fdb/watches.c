/* Watches: those of transactions that only read follow sources (source.c). */
#include "kv/fdb/fdb_int.h"
#include "kv/fdb/joint.h"

/* With those that others have set, and without asking the cluster if there are any. */
static enum status
watch_follow(struct fdb_tx *tx, struct str key, struct fdb_future **ret)
{
	struct fdb_store *store = (struct fdb_store *)tx->base.store;
	struct fdb_source *made = NULL;
	struct fdb_source *s;
	struct fdb_future *f;
	bool full;

	if (!tx->version)
		TRY(fdb_get_read_version(&tx->base, &tx->version));
	f = fdb_future_new(tx, FDB_WATCH, NULL, 0);
	if (!f)
		return STATUS_NOMEM;
	for (;;) {
		pthread_mutex_lock(&store->lock);
		full = store->watch_count > KV_LIMIT_WATCHES;
		s = fdb_source_find_locked(store, key, tx->version);
		if (!s && made && !full) {
			s = made;
			fdb_source_list_locked(s);
		}
		if (s && !full)
			fdb_source_follow_locked(s, f);
		pthread_mutex_unlock(&store->lock);
		if (s || full)
			break;
		if (fdb_source_new(store, key, tx->version, fdb_future_complete, &made) !=
		    STATUS_OK)
			break;
	}
	if (made) {
		fdb_source_start(made);
		/* Somebody else's was there meanwhile: nobody will ever follow this one. */
		if (made != s)
			fdb_source_cancel(made);
		fdb_source_unref(made);
	}
	if (s && !full) {
		tx->follows = true;
		*ret = f;
		return STATUS_OK;
	}
	fdb_future_complete(f, STATUS_BUSY);
	fdb_future_free(&f->base);
	return full ? STATUS_BUSY : STATUS_NOMEM;
}

struct kv_future *
fdb_watch(struct kv_tx *base, struct str key)
{
	struct fdb_tx *tx = (struct fdb_tx *)base;
	struct fdb_store *store = (struct fdb_store *)base->store;
	enum status status = fdb_tx_check(tx);
	struct fdb_future *f;
	bool full;

	if (status == STATUS_OK && base->kind == KV_TX_READ_ONLY) {
		status = watch_follow(tx, fdb_tx_key(tx, 0, key), &f);
		if (status == STATUS_OK && atomic_load(&tx->cancelled))
			fdb_watches_cancel(store, tx->life);
		return status == STATUS_OK ? &f->base : kv_future_failed(status);
	}
	if (status == STATUS_OK)
		status = fdb_view_leave(tx);
	if (status != STATUS_OK)
		return kv_future_failed(status);
	pthread_mutex_lock(&store->lock);
	full = store->watch_count >= KV_LIMIT_WATCHES;
	pthread_mutex_unlock(&store->lock);
	if (full)
		return kv_future_failed(STATUS_BUSY);
	key = fdb_tx_key(tx, 0, key);
	f = fdb_future_new(tx, FDB_WATCH, fdb.transaction_watch(tx->tx, fdb_ptr(key), (int)key.len),
			   0);
	if (!f)
		return kv_future_failed(STATUS_NOMEM);
	fdb_future_start(f);
	/*
	 * Another thread may have cancelled the transaction while the watch was made. It has then
	 * cancelled the watches in the store's list, and this one may not have been among them.
	 */
	if (atomic_load(&tx->cancelled))
		fdb_watches_cancel(store, tx->life);
	return &f->base;
}
