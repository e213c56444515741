/*
 * Versions that several transactions read at. Those that only read do so in one transaction of the
 * library's, whose last reader gives it back.
 */
#include "base/mem.h"
#include "kv/fdb/fdb_int.h"

void
fdb_tx_put_library(struct fdb_tx *tx, FDBTransaction *library, bool shares)
{
	pthread_mutex_lock(&tx->lock);
	tx->tx = library;
	atomic_store(&tx->shares, shares);
	pthread_mutex_unlock(&tx->lock);
}

enum status
fdb_view_new(struct fdb_store *store, struct fdb_view **ret)
{
	struct fdb_view *view = mem_zalloc(sizeof(*view));
	enum status status;

	if (!view)
		return STATUS_NOMEM;
	status = fdb_library_take(store, &view->tx);
	if (status != STATUS_OK) {
		mem_free(view);
		return status;
	}
	/* Nothing is written in it. The library keeps what it reads otherwise. */
	(void)fdb.transaction_set_option(view->tx, FDB_TX_READ_YOUR_WRITES_DISABLE, NULL, 0);
	view->store = store;
	atomic_init(&view->refs, 1);
	*ret = view;
	return STATUS_OK;
}

void
fdb_view_unref(struct fdb_view *view)
{
	if (!view || atomic_fetch_sub(&view->refs, 1) > 1)
		return;
	fdb_library_give(view->store, view->tx);
	mem_free(view);
}

enum status
fdb_view_leave(struct fdb_tx *tx)
{
	FDBTransaction *own;

	if (!atomic_load(&tx->shares))
		return STATUS_OK;
	TRY(fdb_library_take((struct fdb_store *)tx->base.store, &own));
	fdb.transaction_set_read_version(own, (int64_t)tx->version);
	/* What was asked in the view is still to be answered: its end is the transaction's. */
	fdb_tx_put_library(tx, own, false);
	return STATUS_OK;
}
