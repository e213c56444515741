/*
 * Sources of watches. Hundreds of feeds wait for the same database, and to the cluster each watch
 * is a request that waits there. So those of one key that transactions which only read have set
 * (watches.c) follow one of the library's, a source, and all of them complete when it does.
 *
 * A source fires when its key has another value than at its version. Whoever has read at that
 * version or a later one may follow it: had the key changed in between, it would fire at once, and
 * a watch may complete without a change. One who has read before that gets a source of its own.
 *
 * == Who owns what ==
 *
 * A source belongs to its two callbacks, of the watch and of the commit that makes the watch take
 * effect; the last one frees it, and whoever makes or cancels it holds a reference meanwhile. It is
 * in the store's table while others may follow it. A follower is a future without a part of the
 * library's: its second reference, elsewhere the callback's, is that of whoever takes it out of its
 * source's list, which happens under the store's lock, and completes it.
 */
#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"
#include "kv/fdb/fdb_int.h"

struct fdb_source {
	struct fdb_store *store; /* with a reference */
	_Atomic uint32_t refs;
	void (*complete)(struct fdb_future *f, enum status status); /* fdb_future_complete() */
	uint64_t version;
	FDBFuture *part;
	FDBFuture *commit;
	FDBTransaction *tx; /* until that has ended */

	/* The store's lock. */
	struct fdb_source *next; /* in the table */
	bool listed;
	struct fdb_future *followers;

	size_t key_len;
	char key[];
};

/* ---- Life ---- */

void
fdb_source_unref(struct fdb_source *s)
{
	if (atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	assert(!s->listed && !s->followers);
	fdb.future_destroy(s->part);
	fdb.future_destroy(s->commit);
	fdb_store_unref(s->store);
	mem_free(s);
}

static struct fdb_source **
source_chain(struct fdb_store *store, struct str key)
{
	return &store->sources[(hash_quick(key) >> 32) % FDB_SOURCE_CHAINS];
}

/* With the store's lock held: nobody joins it any more. */
static void
source_unlist_locked(struct fdb_source *s)
{
	struct fdb_source **at = source_chain(s->store, str_of(s->key, s->key_len));

	if (!s->listed)
		return;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	s->listed = false;
}

/* The library's thread, or the one that sets the callback. */
static void
source_on_fired(FDBFuture *part, void *arg)
{
	struct fdb_source *s = arg;
	enum status status = fdb_watch_status(fdb.future_get_error(part));
	struct fdb_future *first;

	/* Nobody has cancelled it who is told of it: to its followers it is lost. */
	if (status == STATUS_CANCELLED)
		status = STATUS_UNAVAILABLE;

	pthread_mutex_lock(&s->store->lock);
	source_unlist_locked(s);
	first = s->followers;
	s->followers = NULL;
	for (struct fdb_future *f = first; f; f = f->later_follower)
		f->source = NULL;
	pthread_mutex_unlock(&s->store->lock);
	while (first) {
		struct fdb_future *f = first;

		first = f->later_follower; /* it may be gone as soon as it is complete */
		s->complete(f, status);
	}
	fdb_source_unref(s);
}

/*
 * The commit has ended. The watch goes on without the transaction, which can be used again; if the
 * commit has failed, the watch fails as well, which source_on_fired() is told.
 */
static void
source_on_committed(FDBFuture *commit, void *arg)
{
	struct fdb_source *s = arg;

	(void)commit;
	fdb_library_give(s->store, s->tx);
	fdb_source_unref(s);
}

enum status
fdb_source_new(struct fdb_store *store, struct str key, uint64_t version,
	       void (*complete)(struct fdb_future *f, enum status status), struct fdb_source **ret)
{
	struct fdb_source *s = mem_zalloc(sizeof(*s) + key.len);
	enum status status;

	if (!s)
		return STATUS_NOMEM;
	status = fdb_library_take(store, &s->tx);
	if (status != STATUS_OK) {
		mem_free(s);
		return status;
	}
	atomic_fetch_add(&store->refs, 1);
	s->store = store;
	s->complete = complete;
	s->version = version;
	s->key_len = key.len;
	memcpy(s->key, key.ptr, key.len);
	/* Those of both callbacks, and the caller's. */
	atomic_init(&s->refs, 3);
	fdb.transaction_set_read_version(s->tx, (int64_t)version);
	s->part = fdb.transaction_watch(s->tx, fdb_ptr(key), (int)key.len);
	s->commit = fdb.transaction_commit(s->tx);
	*ret = s;
	return STATUS_OK;
}

void
fdb_source_start(struct fdb_source *s)
{
	if (fdb.future_set_callback(s->part, source_on_fired, s) != 0)
		source_on_fired(s->part, s);
	if (fdb.future_set_callback(s->commit, source_on_committed, s) != 0)
		source_on_committed(s->commit, s);
}

/* ---- Those who follow it ---- */

struct fdb_source *
fdb_source_find_locked(struct fdb_store *store, struct str key, uint64_t version)
{
	struct fdb_source *s = *source_chain(store, key);

	while (s && (s->version > version || !str_eq(str_of(s->key, s->key_len), key)))
		s = s->next;
	return s;
}

void
fdb_source_follow_locked(struct fdb_source *s, struct fdb_future *f)
{
	assert(!f->source);
	f->source = s;
	f->earlier_follower = NULL;
	f->later_follower = s->followers;
	if (s->followers)
		s->followers->earlier_follower = f;
	s->followers = f;
}

void
fdb_source_list_locked(struct fdb_source *s)
{
	struct fdb_source **at = source_chain(s->store, str_of(s->key, s->key_len));

	s->next = *at;
	*at = s;
	s->listed = true;
}

/* The library may call back before this returns. */
void
fdb_source_cancel(struct fdb_source *s)
{
	fdb.future_cancel(s->part);
}

bool
fdb_source_leave(struct fdb_future *f)
{
	struct fdb_store *store = f->store;
	struct fdb_source *unused = NULL;
	struct fdb_source *s;

	pthread_mutex_lock(&store->lock);
	s = f->source;
	if (s) {
		if (f->earlier_follower)
			f->earlier_follower->later_follower = f->later_follower;
		else
			s->followers = f->later_follower;
		if (f->later_follower)
			f->later_follower->earlier_follower = f->earlier_follower;
		f->source = NULL;
		if (!s->followers) {
			source_unlist_locked(s);
			atomic_fetch_add(&s->refs, 1);
			unused = s;
		}
	}
	pthread_mutex_unlock(&store->lock);
	if (unused) {
		fdb_source_cancel(unused);
		fdb_source_unref(unused);
	}
	return s != NULL;
}
