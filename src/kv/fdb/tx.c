/* Transactions: their life and their end. What they read and write is in access.c. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/rand.h"
#include "kv/fdb/fdb_int.h"
#include "kv/fdb/joint.h"

static void
fdb_tx_start_over(struct fdb_tx *tx)
{
	static _Atomic uint64_t lives;

	tx->life = atomic_fetch_add_explicit(&lives, 1, memory_order_relaxed) + 1;
	tx->committing = false;
	atomic_store(&tx->cancelled, false);
	atomic_store(&tx->answered, false);
	atomic_store(&tx->timed_out, false);
	tx->asked_ns = 0;
	tx->version = 0;
	tx->used = false;
	tx->written = false;
	tx->follows = false;
	tx->ranges_open = false;
	tx->touched_metadata = false;
	tx->metadata_known = false;
	tx->noting = false;
	tx->orders = 0;
	tx->notes_owed = 0;
	if (tx->notes.cap > FDB_NOTES_KEPT_BYTES)
		buf_release(&tx->notes);
	buf_clear(&tx->notes);
	tx->futures = NULL;
	tx->commit = NULL;
	tx->stamp = NULL;
}

/*
 * Lets go of all futures but watches. A commit that is under way is waited for first: otherwise a
 * transaction that the owner begins next could be committed before it.
 */
static void
tx_release_futures(struct fdb_tx *tx)
{
	if (tx->commit)
		(void)fdb_future_wait(tx->commit);
	tx->noting = false;
	while (tx->futures)
		fdb_future_release(tx, tx->futures);
}

/* ---- Life ---- */

static struct fdb_tx *
tx_new(struct fdb_store *store)
{
	size_t prefix = store->base.prefix_bytes;
	struct fdb_tx *tx = mem_alloc(sizeof(*tx) + (prefix ? 2 * FDB_KEY_BYTES : 0));

	if (!tx)
		return NULL;
	memset(tx, 0, sizeof(*tx));
	for (size_t i = 0; i < 2 && prefix; i++) {
		tx->keys[i] = (char *)(tx + 1) + i * FDB_KEY_BYTES;
		memcpy(tx->keys[i], store->prefix, prefix);
	}
	pthread_mutex_init(&tx->lock, NULL);
	buf_init(&tx->notes, FDB_NOTES_BYTES);
	return tx;
}

/* The library is asked for a transaction when there is something to ask or to write. */
enum status
fdb_begin(struct kv_store *base, enum kv_tx_kind kind, struct kv_tx **ret)
{
	struct fdb_store *store = (struct fdb_store *)base;
	struct fdb_tx *tx = fdb_spare_take(store);

	if (!tx)
		tx = tx_new(store);
	if (!tx)
		return STATUS_NOMEM;
	tx->base.kind = kind;
	fdb_tx_start_over(tx);
	*ret = &tx->base;
	return STATUS_OK;
}

/* Watches end with a transaction that is not committed. The library does that with its own. */
static void
tx_forget_watches(struct fdb_tx *tx)
{
	if (!tx->follows || (tx->commit && fdb_future_wait(tx->commit) == STATUS_OK))
		return;
	fdb_watches_cancel((struct fdb_store *)tx->base.store, tx->life);
}

/* Lets go of its view, and returns the library's transaction that is its own; NULL: none is. */
static FDBTransaction *
tx_let_go(struct fdb_tx *tx)
{
	FDBTransaction *own = atomic_load(&tx->shares) ? NULL : tx->tx;

	fdb_tx_put_library(tx, NULL, false);
	fdb_view_unref(tx->view);
	tx->view = NULL;
	fdb_joint_unref(tx->joint);
	tx->joint = NULL;
	return own;
}

void
fdb_tx_free(struct kv_tx *base)
{
	struct fdb_tx *tx = (struct fdb_tx *)base;
	struct fdb_store *store = (struct fdb_store *)base->store;
	FDBTransaction *own;

	fdb_count_transaction(&base->stats);
	base->part = NULL; /* kv_tx_free() gives back all that is held */
	tx_forget_watches(tx);
	tx_release_futures(tx);
	fdb_time_end(tx);
	own = tx_let_go(tx);
	if (own)
		fdb_library_give(store, own);
	fdb_spare_give(store, tx);
}

void
fdb_tx_reset(struct kv_tx *base)
{
	struct fdb_tx *tx = (struct fdb_tx *)base;
	struct fdb_store *store = (struct fdb_store *)base->store;
	FDBTransaction *own;

	fdb_count_transaction(&base->stats);
	tx_forget_watches(tx);
	tx_release_futures(tx);
	fdb_time_end(tx);
	own = tx_let_go(tx);
	/* What the next attempt promises is told to the library's transaction when it is taken. */
	if (own)
		fdb_library_give(store, own);
	pthread_mutex_lock(&tx->lock);
	fdb_tx_start_over(tx);
	pthread_mutex_unlock(&tx->lock);
}

/*
 * A commit that is under way is not given to the library to cancel: the library would answer that
 * it is cancelled, and it might take place all the same. Watches are cancelled one by one, since
 * the library does not tell those that have seen their key's value that their transaction has
 * ended.
 *
 * The lock makes sure that `committing` and the library's transaction agree: either the commit has
 * not begun and the library cancels it, or it has begun and goes on.
 */
void
fdb_cancel(struct kv_tx *base)
{
	struct fdb_tx *tx = (struct fdb_tx *)base;
	bool committing;
	uint64_t life;

	pthread_mutex_lock(&tx->lock);
	atomic_store(&tx->cancelled, true);
	committing = tx->committing;
	life = tx->life;
	if (!committing && tx->tx)
		fdb.transaction_cancel(tx->tx);
	pthread_mutex_unlock(&tx->lock);
	if (!committing)
		fdb_watches_cancel((struct fdb_store *)base->store, life);
}

/*
 * Under the lock either kv_cancel() finds the library's transaction, and cancels that, or has come
 * before, and is found here.
 */
static enum status
tx_take_library(struct fdb_tx *tx)
{
	struct fdb_store *store = (struct fdb_store *)tx->base.store;
	FDBTransaction *library;
	bool cancelled;

	TRY(fdb_library_take(store, &library));
	if (tx->base.reads_first)
		(void)fdb.transaction_set_option(library, FDB_TX_READ_YOUR_WRITES_DISABLE, NULL, 0);
	pthread_mutex_lock(&tx->lock);
	cancelled = atomic_load(&tx->cancelled);
	if (!cancelled)
		tx->tx = library;
	pthread_mutex_unlock(&tx->lock);
	if (!cancelled)
		return STATUS_OK;
	fdb_library_give(store, library);
	return STATUS_CANCELLED;
}

enum status
fdb_tx_check(struct fdb_tx *tx)
{
	if (atomic_load_explicit(&tx->cancelled, memory_order_relaxed))
		return STATUS_CANCELLED;
	if (tx->used)
		return err_set(&tx->base.err, STATUS_TX_USED,
			       "the transaction has been committed; reset it first");
	if (atomic_load_explicit(&tx->timed_out, memory_order_relaxed))
		return err_set(&tx->base.err,
			       atomic_load(&tx->answered) ? STATUS_TX_TOO_OLD : STATUS_UNAVAILABLE,
			       "%s", fdb.get_error(FDB_CODE_TIMED_OUT));
	return tx->tx ? STATUS_OK : tx_take_library(tx);
}

void
fdb_tx_set_timeout(struct fdb_tx *tx, uint64_t ms)
{
	uint8_t value[FDB_NUMBER_BYTES];

	if (fdb_tx_check(tx) != STATUS_OK)
		return;
	fdb_put_number(value, ms);
	(void)fdb.transaction_set_option(tx->tx, FDB_TX_TIMEOUT, value, sizeof(value));
}

/* ---- The commit ---- */

/* The library gives the stamp of a commit only if it is asked for before the commit. */
static enum status
tx_ask_stamp(struct fdb_tx *tx)
{
	tx->stamp = fdb_future_new(tx, FDB_STAMP, fdb.transaction_get_versionstamp(tx->tx), 0);
	if (!tx->stamp)
		return STATUS_NOMEM;
	fdb_future_start(tx->stamp);
	return STATUS_OK;
}

/* Its part of a commit of several (joint.c). */
static enum status
tx_commit_joint(struct fdb_tx *tx)
{
	struct fdb_future *f;
	bool cancelled;

	TRY(fdb_tx_note_ranges(tx));
	TRY(buf_status(&tx->notes));
	f = fdb_future_new(tx, FDB_COMMIT, NULL, 0);
	if (!f)
		return STATUS_NOMEM;
	f->counts = true;
	f->shares = false;
	fdb_time_end(tx);
	pthread_mutex_lock(&tx->lock);
	cancelled = atomic_load(&tx->cancelled);
	tx->committing = !cancelled;
	pthread_mutex_unlock(&tx->lock);
	tx->used = true;
	tx->commit = f;
	if (cancelled)
		fdb_future_end_commit(f, STATUS_CANCELLED, 0);
	else
		fdb_joint_commit(tx);
	return STATUS_OK;
}

/* What has only read has nothing to tell the cluster; its watches are sources' (watches.c). */
static enum status
tx_commit_nothing(struct fdb_tx *tx)
{
	struct fdb_future *f;

	fdb_tx_settle_ranges(tx);
	f = fdb_future_new(tx, FDB_COMMIT, NULL, 0);
	if (!f)
		return STATUS_NOMEM;
	fdb_time_end(tx);
	tx->used = true;
	tx->commit = f;
	fdb_future_complete(f, STATUS_OK);
	return STATUS_OK;
}

/*
 * A commit has no timeout. Before the library answers that a result is not known, it commits
 * something that conflicts with the lost commit, so that it can no longer take place afterwards; a
 * timeout would give up before that is done.
 */
static enum status
tx_commit(struct fdb_tx *tx)
{
	struct fdb_future *f;
	bool cancelled;

	TRY(fdb_tx_check(tx));
	if (tx->base.kind == KV_TX_READ_ONLY || (tx->noting && !tx->written))
		return tx_commit_nothing(tx);
	if (fdb_joint_takes(tx))
		return tx_commit_joint(tx);
	TRY(fdb_view_leave(tx));
	fdb_tx_settle_ranges(tx);
	if (tx->written && tx->base.wants_stamp)
		TRY(tx_ask_stamp(tx));
	f = fdb_future_new(tx, FDB_COMMIT, NULL, 0);
	if (!f)
		return STATUS_NOMEM;
	f->counts = tx->written;
	fdb_time_end(tx);
	/* It conflicts again, perhaps, and then kv_run() asks where. */
	if (tx->base.attempts > 0)
		(void)fdb.transaction_set_option(tx->tx, FDB_TX_REPORT_CONFLICTING_KEYS, NULL, 0);
	pthread_mutex_lock(&tx->lock);
	cancelled = atomic_load(&tx->cancelled);
	f->parts[f->part_count++] = fdb.transaction_commit(tx->tx);
	tx->committing = !cancelled;
	pthread_mutex_unlock(&tx->lock);
	tx->used = true;
	tx->commit = f;
	fdb_future_start(f);
	return STATUS_OK;
}

struct kv_future *
fdb_commit(struct kv_tx *base)
{
	struct fdb_tx *tx = (struct fdb_tx *)base;
	enum status status = tx_commit(tx);

	return status == STATUS_OK ? &tx->commit->base : kv_future_failed(status);
}

/*
 * Of a commit that has failed the library itself knows, without asking the cluster, which ranges
 * that were read have been changed: they lie behind this prefix.
 */
enum status
fdb_conflicting_key(struct kv_tx *base, struct buf *key)
{
	const struct str behind = STR("\xff\xff/transaction/conflicting_keys/");
	const struct str end = STR("\xff\xff/transaction/conflicting_keys0");
	struct fdb_tx *tx = (struct fdb_tx *)base;
	struct fdb_future *f;
	enum status status;

	if (!tx->commit || tx->commit->base.status != STATUS_TX_CONFLICT)
		return STATUS_NOT_FOUND;
	f = fdb_future_new(tx, FDB_RANGE, NULL, 0);
	if (!f)
		return STATUS_NOMEM;
	f->begin = behind;
	f->end = f->whole_end = end;
	f->options = (struct kv_range_options){ .limit = 1, .limit_bytes = SIZE_MAX };
	f->snapshot = true;
	fdb_future_start(f);
	status = fdb_future_wait(f);
	if (status == STATUS_OK && !f->base.range.count)
		status = STATUS_NOT_FOUND;
	/* The store's prefix was cut off in front, where it is not, and the key still has it. */
	if (status == STATUS_OK) {
		buf_append_str(key, str_skip(f->base.range.pairs[0].key, behind.len));
		status = buf_status(key);
	}
	fdb_future_release(tx, f);
	return status;
}

static enum status
tx_check_committed(struct fdb_tx *tx)
{
	if (!tx->commit || !tx->written || !kv_future_ready(&tx->commit->base) ||
	    tx->commit->base.status != STATUS_OK)
		return err_set(&tx->base.err, STATUS_NOT_FOUND,
			       "only a commit that wrote something has a version");
	return STATUS_OK;
}

enum status
fdb_committed_version(struct kv_tx *base, uint64_t *ret)
{
	struct fdb_tx *tx = (struct fdb_tx *)base;
	int64_t version;
	int code;

	TRY(tx_check_committed(tx));
	code = fdb.transaction_get_committed_version(
		tx->joint ? fdb_joint_library(tx->joint) : tx->tx, &version);
	if (code != 0)
		return err_set(&tx->base.err, fdb_status(code), "%s", fdb.get_error(code));
	*ret = (uint64_t)version;
	return STATUS_OK;
}

enum status
fdb_versionstamp(struct kv_tx *base, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES])
{
	struct fdb_tx *tx = (struct fdb_tx *)base;

	TRY(tx_check_committed(tx));
	TRY(fdb_future_wait(tx->stamp));
	if (tx->stamp->base.value.len != KV_VERSIONSTAMP_TX_BYTES)
		return STATUS_CORRUPT;
	memcpy(ret, tx->stamp->base.value.ptr, KV_VERSIONSTAMP_TX_BYTES);
	return STATUS_OK;
}

int
fdb_retry_delay_ms(struct kv_tx *tx, enum status status)
{
	enum {
		FIRST_MS = 4,
		LONGEST_DOUBLINGS = 8, /* about a second */
	};
	uint32_t doublings = tx->attempts < LONGEST_DOUBLINGS ? tx->attempts : LONGEST_DOUBLINGS;
	uint32_t random;

	if (status != STATUS_TX_CONFLICT && status != STATUS_TX_TOO_OLD &&
	    status != STATUS_TX_UNKNOWN)
		return -1;
	rand_bytes(&random, sizeof(random));
	return (int)(random % ((FIRST_MS << doublings) + 1));
}
