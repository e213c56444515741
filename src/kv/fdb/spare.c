/*
 * Transactions that wait for the next ones of their store: ours, and the library's, which take it
 * longer to make than to reset.
 */
#include "base/mem.h"
#include "kv/fdb/fdb_int.h"

enum status
fdb_library_take(struct fdb_store *store, FDBTransaction **ret)
{
	FDBTransaction *tx = NULL;
	int code = 0;

	pthread_mutex_lock(&store->lock);
	if (store->spare_library_count)
		tx = store->spare_library[--store->spare_library_count];
	pthread_mutex_unlock(&store->lock);
	if (!tx)
		code = fdb.database_create_transaction(store->database, &tx);
	if (code != 0)
		return fdb_status(code);
	*ret = tx;
	return STATUS_OK;
}

/*
 * The library takes calls in their order, also from several threads, as long as one has returned
 * before the other begins. So it has been reset before whoever takes it uses it.
 */
void
fdb_library_give(struct fdb_store *store, FDBTransaction *tx)
{
	bool kept;

	fdb.transaction_reset(tx);
	pthread_mutex_lock(&store->lock);
	kept = !store->closing && store->spare_library_count < FDB_SPARE_TXS;
	if (kept)
		store->spare_library[store->spare_library_count++] = tx;
	pthread_mutex_unlock(&store->lock);
	if (!kept)
		fdb.transaction_destroy(tx);
}

struct fdb_tx *
fdb_spare_take(struct fdb_store *store)
{
	struct fdb_tx *tx;

	pthread_mutex_lock(&store->lock);
	tx = store->spares;
	if (tx) {
		store->spares = tx->next_spare;
		store->spare_count--;
	}
	pthread_mutex_unlock(&store->lock);
	return tx;
}

static void
tx_destroy(struct fdb_tx *tx)
{
	pthread_mutex_destroy(&tx->lock);
	buf_release(&tx->notes);
	mem_free(tx);
}

void
fdb_spare_give(struct fdb_store *store, struct fdb_tx *tx)
{
	bool kept;

	pthread_mutex_lock(&store->lock);
	kept = store->spare_count < FDB_SPARE_TXS;
	if (kept) {
		tx->next_spare = store->spares;
		store->spares = tx;
		store->spare_count++;
	}
	pthread_mutex_unlock(&store->lock);
	if (!kept)
		tx_destroy(tx);
}

void
fdb_spares_free(struct fdb_store *store)
{
	struct fdb_tx *tx;

	while ((tx = fdb_spare_take(store)))
		tx_destroy(tx);
	while (store->spare_library_count)
		fdb.transaction_destroy(store->spare_library[--store->spare_library_count]);
}
