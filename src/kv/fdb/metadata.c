/*
 * Reading together. Requests that a loop finds in one turn begin their transactions within
 * microseconds, and each of them first wants the metadata version, by which it knows whether what
 * it remembers of databases still holds. To the library every transaction costs much more than a
 * read: it is made, is given a version, and ends. So the first that wants the metadata version
 * waits until the others of the turn have come, and asks for all of them.
 *
 * == What they may see ==
 *
 * Whoever joins has begun before the leader asks for the version: the gathering is closed under the
 * store's lock first. So a transaction sees whatever was acknowledged, by any frond, before it
 * began, as it does alone.
 *
 * They go on in the library's transaction that was asked in. One that may write notes what it reads
 * and writes (notes.c), with a conflict with changes of the metadata version.
 */
#include <assert.h>

#include "base/clock.h"
#include "kv/fdb/fdb_int.h"
#include "kv/fdb/joint.h"

struct fdb_joiner {
	struct fdb_joiner *next;
	struct event woken;
	struct err *err; /* of its transaction */
	enum status status;
	struct fdb_view *view; /* with a reference for it */
};

/* On the leader's stack. */
struct fdb_gathering {
	struct fdb_joiner *joiners;
};

/* ---- Alone ---- */

/*
 * Waits for a read of the metadata version. The library answers it together with the transaction's
 * read version, and does not answer it at all if that fails, as in a locked database. So if the
 * answer is late, this asks for the read version, whose failure is the answer then.
 */
static enum status
tx_wait_for_metadata(struct fdb_tx *tx, struct fdb_future *f)
{
	uint64_t version;
	enum status status;

	if (!event_wait(&f->settled, clock_after_ms(FDB_METADATA_LATE_MS)))
		TRY(fdb_tx_wait_for_number(tx, fdb.transaction_get_read_version(tx->tx), &version));
	status = fdb_future_wait(f);
	if (status != STATUS_OK)
		fdb_future_explain(&f->base);
	return status;
}

/* Takes it out of an answer. It is all zero as long as nobody has touched it. */
static enum status
tx_keep_metadata(struct fdb_tx *tx, const struct kv_future *f)
{
	if (f->present && f->value.len != sizeof(tx->metadata))
		return STATUS_CORRUPT;
	if (f->present)
		memcpy(tx->metadata, f->value.ptr, sizeof(tx->metadata));
	else
		memset(tx->metadata, 0, sizeof(tx->metadata));
	return STATUS_OK;
}

static enum status
tx_read_metadata(struct fdb_tx *tx, bool with_version)
{
	struct fdb_future *f;
	enum status status;

	TRY(fdb_tx_get(tx, FDB_KEY_METADATA, KV_READ, &f));
	/* Both are asked for before either is waited for; the library answers them together. */
	status = with_version ? fdb_get_read_version(&tx->base, &tx->version) : STATUS_OK;
	if (status == STATUS_OK)
		status = tx_wait_for_metadata(tx, f);
	if (status == STATUS_OK)
		status = tx_keep_metadata(tx, &f->base);
	fdb_future_release(tx, f);
	tx->metadata_known = status == STATUS_OK;
	return status;
}

/* ---- What comes of it ---- */

/* Takes the reference. */
static enum status
tx_take_view(struct fdb_tx *tx, struct fdb_view *view)
{
	memcpy(tx->metadata, view->metadata, sizeof(tx->metadata));
	tx->metadata_known = true;
	tx->version = view->version;
	atomic_store(&tx->answered, true);
	tx->view = view;
	fdb_tx_put_library(tx, view->tx, true);
	tx->noting = tx->base.kind == KV_TX_READ_WRITE;
	/* Others have changed what it had read, so it is committed by itself. */
	return tx->base.attempts > 0 ? fdb_view_leave(tx) : STATUS_OK;
}

/* ---- Gathering ---- */

/* Asks in the view, as the leader's transaction; its own library's one is made afterwards. */
static enum status
view_ask(struct fdb_tx *tx, struct fdb_view *view)
{
	enum status status;

	fdb_tx_put_library(tx, view->tx, true);
	status = tx_read_metadata(tx, true);
	fdb_tx_put_library(tx, NULL, false);
	view->version = tx->version;
	memcpy(view->metadata, tx->metadata, sizeof(view->metadata));
	return status;
}

static void
joiners_tell(struct fdb_joiner *first, struct fdb_view *view, enum status status, const char *why)
{
	/* The leader alone was cancelled: they begin again. */
	if (status == STATUS_CANCELLED)
		status = STATUS_TX_TOO_OLD;
	while (first) {
		struct fdb_joiner *joiner = first;

		first = joiner->next; /* the joiner is gone as soon as it is woken */
		joiner->status = status;
		if (status == STATUS_OK) {
			atomic_fetch_add(&view->refs, 1);
			joiner->view = view;
		} else {
			err_write(joiner->err, status, "%s", why);
		}
		event_set(&joiner->woken);
	}
}

static enum status
gathering_lead(struct fdb_tx *tx, struct fdb_gathering *mine)
{
	struct fdb_store *store = (struct fdb_store *)tx->base.store;
	struct fdb_view *view = NULL;
	enum status status;

	if (!wait_is_alone())
		wait_yield();
	pthread_mutex_lock(&store->lock);
	assert(store->gathering == mine);
	store->gathering = NULL;
	pthread_mutex_unlock(&store->lock);
	if (!mine->joiners && tx->base.kind == KV_TX_READ_ONLY)
		return STATUS_OK;
	status = fdb_view_new(store, &view);
	if (status == STATUS_OK)
		status = view_ask(tx, view);
	joiners_tell(mine->joiners, view, status, tx->base.err.text);
	if (status == STATUS_OK)
		return tx_take_view(tx, view);
	/* The answers that have not come are let go of before their transaction is another's. */
	fdb_view_unref(view);
	return status;
}

static enum status
gathering_follow(struct fdb_tx *tx, struct fdb_joiner *joiner)
{
	(void)event_wait(&joiner->woken, WAIT_FOREVER);
	TRY(joiner->status);
	return tx_take_view(tx, joiner->view);
}

static enum status
tx_read_together(struct fdb_tx *tx)
{
	struct fdb_store *store = (struct fdb_store *)tx->base.store;
	struct fdb_gathering mine = { 0 };
	struct fdb_joiner joiner = { .err = &tx->base.err };
	bool leads;

	assert(!tx->tx && !tx->asked_ns && !tx->metadata_known);
	event_init(&joiner.woken);
	pthread_mutex_lock(&store->lock);
	leads = !store->gathering;
	if (leads) {
		store->gathering = &mine;
	} else {
		joiner.next = store->gathering->joiners;
		store->gathering->joiners = &joiner;
	}
	pthread_mutex_unlock(&store->lock);
	return leads ? gathering_lead(tx, &mine) : gathering_follow(tx, &joiner);
}

enum status
fdb_get_metadata_version(struct kv_tx *base, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES])
{
	struct fdb_tx *tx = (struct fdb_tx *)base;

	if (!tx->tx && !tx->used && !tx->asked_ns && !atomic_load(&tx->cancelled))
		TRY(tx_read_together(tx));
	TRY(fdb_tx_check(tx));
	/* The library would say the same, and would refuse the commit because of the read. */
	if (tx->touched_metadata)
		return err_set(&base->err, STATUS_TX_UNREADABLE,
			       "the transaction has touched the metadata version");
	if (!tx->metadata_known)
		TRY(tx_read_metadata(tx, false));
	memcpy(ret, tx->metadata, KV_VERSIONSTAMP_TX_BYTES);
	return STATUS_OK;
}
