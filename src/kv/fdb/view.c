/*
 * Versions that several transactions read at, in one transaction of the library's, whose last
 * reader gives it back. What one of them writes meanwhile is noted (notes.c).
 */
#include "base/mem.h"
#include "kv/fdb/fdb_int.h"
#include "kv/fdb/joint.h"

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
	if (view->tx)
		fdb_library_give(view->store, view->tx);
	mem_free(view);
}

FDBTransaction *
fdb_view_take_library(struct fdb_tx *tx)
{
	struct fdb_view *view = tx->view;
	FDBTransaction *library;

	/* Nobody joins a view later, so that who is alone in it stays so. */
	if (!view || !atomic_load(&tx->shares) || atomic_load(&view->refs) > 1)
		return NULL;
	library = view->tx;
	view->tx = NULL;
	return library;
}

enum status
fdb_view_library(uint64_t version, bool reads_first, struct fdb_store *store, FDBTransaction **ret)
{
	TRY(fdb_library_take(store, ret));
	if (reads_first)
		(void)fdb.transaction_set_option(*ret, FDB_TX_READ_YOUR_WRITES_DISABLE, NULL, 0);
	fdb.transaction_set_read_version(*ret, (int64_t)version);
	return STATUS_OK;
}

enum status
fdb_view_leave(struct fdb_tx *tx)
{
	FDBTransaction *own;
	int code = 0;

	if (!atomic_load(&tx->shares))
		return STATUS_OK;
	if (tx->noting) {
		TRY(fdb_tx_note_ranges(tx));
		/* fdb_future_release() leaves a failure in the notes. */
		TRY(buf_status(&tx->notes));
	}
	TRY(fdb_view_library(tx->version, tx->base.reads_first, (struct fdb_store *)tx->base.store,
			     &own));
	/* What was asked in the view is still to be answered: its end is the transaction's. */
	fdb_tx_put_library(tx, own, false);
	if (tx->noting)
		code = fdb_notes_do(tx, own);
	tx->noting = false;
	if (code != 0)
		return err_set(&tx->base.err, fdb_status(code), "%s", fdb.get_error(code));
	return STATUS_OK;
}
