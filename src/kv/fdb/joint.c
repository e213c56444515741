/*
 * Joint commits: several transactions of this process, its members, are committed in one
 * transaction of the library's. To the library and to the cluster a transaction costs much more
 * than a key. A transaction commits at once while fewer than FDB_JOINTS_UNDER_WAY commits are under
 * way. Otherwise it joins the one joint commit that is open, which begins when one of those ends.
 *
 * == Why it is right ==
 *
 * The members take place in the order in which they joined, as if each had been committed by
 * itself, one right after the other:
 *
 * - The joint commit has the oldest read version of its members. The cluster refuses it if anything
 *   that a member has read has changed since then.
 * - The cluster does not compare a member's reads with the writes of members that joined before it.
 *   So this is done here, and a transaction whose reads meet such writes does not join.
 *
 * All members have the same version and versionstamp. Each one's orders, the two bytes behind a
 * stamp, continue those of the member before, so stamped keys and values differ, and ascend in the
 * order of the members.
 *
 * A transaction may have read what an open or pending joint commit writes. In that commit, or in
 * the next one, it would conflict, and all members would be refused with it. So it waits until that
 * commit has ended. If that took place at a later version than the transaction has read at, it
 * conflicts; otherwise it is committed by itself.
 *
 * If the cluster refuses a joint commit, nothing of it has taken place, and each member is
 * committed by itself, at its own read version. So a member that conflicts does not harm the
 * others. The next FDB_JOINT_DOUBTED transactions then do not join. If the result of a joint commit
 * is unknown, each member's is.
 *
 * Transactions do not join that are at a later attempt, are large, have touched the metadata
 * version, or want to know their stamp.
 *
 * == Threads ==
 *
 * The store's lock guards the open joint commit and the list of those under way, and in each of
 * them its keys, its ranges, and the transactions that wait for it. Once its result is known, a
 * joint commit is taken off the list and belongs to the thread that has the result. A member may be
 * freed as soon as its future is complete, so whatever is needed afterwards is copied before.
 */
#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "kv/fdb/fdb_int.h"
#include "kv/fdb/joint.h"

METRIC_COUNTER(commits, "frond_cluster_joint_commits_total", METRIC_NUMBER,
	       "Commits at a cluster that were those of several transactions.");
METRIC_COUNTER(members, "frond_cluster_joint_transactions_total", METRIC_NUMBER,
	       "Transactions that were committed in these.");
METRIC_COUNTER(parted, "frond_cluster_joint_refused_total", METRIC_NUMBER,
	       "Of these commits those that the cluster refused, so that each transaction was then "
	       "committed by itself.");

struct joint_range {
	struct str begin;
	struct str end;
};

struct fdb_joint {
	_Atomic uint32_t refs; /* the members', and one until its result is known */
	struct fdb_store *store;
	FDBTransaction *tx; /* in which it is committed; NULL before, or if it was refused */
	struct fdb_tx *members[FDB_JOINT_MEMBERS];
	size_t count;
	/* Those that wait for its result, and are none of its members. */
	struct fdb_tx *behind[FDB_JOINT_BEHIND];
	size_t behind_count;
	struct fdb_joint *next; /* of those under way */
	uint64_t since_ns;      /* its first member has come */
	size_t bytes;
	uint32_t orders;
	uint64_t version; /* the oldest of the members' */
	/* What they write, once somebody wants to know: keys in order, and ranges. */
	bool indexed;
	bool unknown; /* there was no room for all of it */
	struct str *keys;
	size_t key_count;
	size_t key_cap;
	struct joint_range ranges[FDB_JOINT_RANGES];
	size_t range_count;
};

/* ---- Life ---- */

static struct fdb_joint *
joint_new(struct fdb_store *store)
{
	struct fdb_joint *j = mem_alloc(sizeof(*j));

	if (!j)
		return NULL;
	/* The arrays are written before they are read. */
	atomic_init(&j->refs, 1);
	j->store = store;
	j->tx = NULL;
	j->next = NULL;
	j->count = j->behind_count = j->bytes = j->orders = 0;
	j->version = UINT64_MAX;
	j->since_ns = clock_mono_ns();
	j->indexed = j->unknown = false;
	j->keys = NULL;
	j->key_count = j->key_cap = j->range_count = 0;
	return j;
}

void
fdb_joint_unref(struct fdb_joint *j)
{
	if (!j || atomic_fetch_sub(&j->refs, 1) > 1)
		return;
	if (j->tx)
		fdb_library_give(j->store, j->tx);
	mem_free(j->keys);
	mem_free(j);
}

FDBTransaction *
fdb_joint_library(const struct fdb_joint *j)
{
	return j->tx;
}

/* ---- What the members write ---- */

/* The place of the first key that is not below `key`. */
static size_t
joint_place(const struct fdb_joint *j, struct str key)
{
	size_t low = 0, high = j->key_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (str_cmp(j->keys[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* False where there is no room for it, or no memory. */
static bool
joint_add_key(struct fdb_joint *j, struct str key)
{
	size_t place = joint_place(j, key);

	if (place < j->key_count && str_eq(j->keys[place], key))
		return true;
	if (j->key_count == j->key_cap) {
		size_t cap = j->key_cap ? 2 * j->key_cap : FDB_JOINT_KEYS_FIRST;
		struct str *keys = cap > FDB_JOINT_KEYS ? NULL
							: mem_realloc(j->keys, cap * sizeof(*keys));

		if (!keys)
			return false;
		j->keys = keys;
		j->key_cap = cap;
	}
	memmove(&j->keys[place + 1], &j->keys[place], (j->key_count - place) * sizeof(*j->keys));
	j->keys[place] = key;
	j->key_count++;
	return true;
}

static bool
joint_add_range(struct fdb_joint *j, struct str begin, struct str end)
{
	if (j->range_count == FDB_JOINT_RANGES)
		return false;
	j->ranges[j->range_count++] = (struct joint_range){ begin, end };
	return true;
}

/*
 * A stamped key is not known before the commit. It counts as every key with the same bytes in front
 * of the stamp, which is a range without an `end`. `key` has the place of the stamp appended.
 */
static bool
joint_add_stamped(struct fdb_joint *j, struct str key)
{
	struct str begin = fdb_note_before_stamp(key);

	for (size_t i = 0; i < j->range_count; i++)
		if (!j->ranges[i].end.ptr && str_eq(j->ranges[i].begin, begin))
			return true;
	return joint_add_range(j, begin, (struct str){ 0 });
}

static bool
joint_add_note(struct fdb_joint *j, const struct fdb_note *note)
{
	switch (note->kind) {
	case FDB_NOTE_SET:
	case FDB_NOTE_CLEAR:
		return joint_add_key(j, note->first);
	case FDB_NOTE_MUTATION:
		return note->mutation == FDB_MUTATION_STAMPED_KEY
			       ? joint_add_stamped(j, note->first)
			       : joint_add_key(j, note->first);
	case FDB_NOTE_CLEAR_RANGE:
	case FDB_NOTE_WRITE_CONFLICT:
		return joint_add_range(j, note->first, note->second);
	case FDB_NOTE_SET_NO_CONFLICT: /* a range of the caller's covers it */
	case FDB_NOTE_READ_CONFLICT:
		break;
	}
	return true;
}

static bool
joint_add_notes(struct fdb_joint *j, const struct fdb_tx *tx)
{
	struct str rest = buf_str(&tx->notes);
	struct fdb_note note;
	bool fits = true;

	while (fits && fdb_notes_next(&rest, &note))
		fits = joint_add_note(j, &note);
	return fits;
}

/* True if a member writes what lies from `begin` on and below `end`. */
static bool
joint_writes(const struct fdb_joint *j, struct str begin, struct str end)
{
	size_t place = joint_place(j, begin);

	if (place < j->key_count && str_cmp(j->keys[place], end) < 0)
		return true;
	for (size_t i = 0; i < j->range_count; i++) {
		const struct joint_range *range = &j->ranges[i];

		/* Without an end: all keys that begin with its `begin`. */
		if (str_cmp(range->begin, end) < 0 &&
		    (range->end.ptr ? str_cmp(begin, range->end) < 0
				    : str_cmp(begin, range->begin) < 0 ||
					      str_starts_with(begin, range->begin)))
			return true;
	}
	return false;
}

/* True if a member is known to write what the transaction has read (see `unknown`). */
static bool
joint_is_in_the_way(struct fdb_joint *j, const struct fdb_tx *tx)
{
	struct str rest = buf_str(&tx->notes);
	struct fdb_note note;
	bool writes = false;

	/* A joint commit with one member may end without anybody asking, so it is indexed late. */
	if (!j->indexed)
		j->unknown = !joint_add_notes(j, j->members[0]);
	j->indexed = true;
	while (!writes && fdb_notes_next(&rest, &note))
		writes = note.kind == FDB_NOTE_READ_CONFLICT &&
			 joint_writes(j, note.first, note.second);
	return writes;
}

/* ---- Joining ---- */

static bool
joint_has_room(const struct fdb_joint *j, const struct fdb_tx *tx)
{
	uint64_t apart = tx->version > j->version ? tx->version - j->version
						  : j->version - tx->version;

	return j->count < FDB_JOINT_MEMBERS && !j->unknown &&
	       j->bytes + tx->notes.len <= FDB_JOINT_BYTES &&
	       j->orders + tx->orders <= FDB_JOINT_ORDERS && apart <= FDB_JOINT_APART;
}

static void
joint_add(struct fdb_joint *j, struct fdb_tx *tx)
{
	assert(j->count < FDB_JOINT_MEMBERS);
	if (j->indexed)
		j->unknown = !joint_add_notes(j, tx);
	fdb_notes_raise_orders(tx, j->orders);
	j->members[j->count++] = tx;
	j->bytes += tx->notes.len;
	j->orders += tx->orders;
	if (tx->version < j->version)
		j->version = tx->version;
	atomic_fetch_add(&j->refs, 1);
	tx->joint = j;
}

/* ---- The commit ---- */

/* Commits it in a library's transaction of its own. It may have been freed when this returns. */
static void
member_commit_alone(struct fdb_tx *tx)
{
	struct fdb_future *f = tx->commit;
	FDBTransaction *own;
	enum status status;
	int code;

	status = fdb_view_library(tx->version, true, (struct fdb_store *)tx->base.store, &own);
	if (status != STATUS_OK) {
		fdb_future_end_commit(f, status, 0);
		return;
	}
	fdb_tx_put_library(tx, own, false);
	code = fdb_notes_do(tx, own);
	if (code != 0) {
		fdb_future_end_commit(f, fdb_status(code), code);
		return;
	}
	f->parts[f->part_count++] = fdb.transaction_commit(own);
	fdb_future_start(f);
}

/*
 * Chooses the library's transaction for the commit. Its read version is the oldest one of all
 * members. If a member has a view of that version in which no other transaction reads, the view's
 * transaction is taken; otherwise a new one.
 */
static enum status
joint_take_library(struct fdb_joint *j)
{
	for (size_t i = 0; i < j->count && !j->tx; i++)
		if (j->members[i]->version == j->version)
			j->tx = fdb_view_take_library(j->members[i]);
	return j->tx ? STATUS_OK : fdb_view_library(j->version, true, j->store, &j->tx);
}

/*
 * In the order of the notes. fdb_notes_do() puts reads first, for a library that compares them
 * with the transaction's own writes; with FDB_TX_READ_YOUR_WRITES_DISABLE it does not.
 */
static int
joint_do_notes(struct fdb_joint *j)
{
	struct fdb_fold fold;
	int code = 0;

	fdb_fold_init(&fold, j->tx);
	for (size_t i = 0; i < j->count; i++) {
		struct str rest = buf_str(&j->members[i]->notes);
		struct fdb_note note;

		while (code == 0 && fdb_notes_next(&rest, &note))
			code = fdb_fold_note(&fold, &note);
	}
	if (code == 0)
		code = fdb_fold_end(&fold);
	return code ? code : fdb_notes_do_metadata(j->tx);
}

static void joint_on_answer(FDBFuture *part, void *arg);
static void joint_end(struct fdb_joint *j, enum status status, int code);

static void
joint_commit(struct fdb_joint *j)
{
	enum status status = joint_take_library(j);
	int code = status == STATUS_OK ? joint_do_notes(j) : 0;
	FDBFuture *part;

	if (status != STATUS_OK || code != 0) {
		joint_end(j, status == STATUS_OK ? fdb_status(code) : status, code);
		return;
	}
	if (j->count > 1) {
		metric_add(&commits, 1);
		metric_add(&members, j->count);
	}
	part = fdb.transaction_commit(j->tx);
	if (fdb.future_set_callback(part, joint_on_answer, j) != 0)
		joint_on_answer(part, j);
}

/*
 * With the store's lock held: moves it to those under way, so nobody joins it any more. The caller
 * then calls joint_commit() without the lock.
 */
static void
joint_begin_locked(struct fdb_store *store, struct fdb_joint *j)
{
	if (store->joint == j)
		store->joint = NULL;
	j->next = store->joints;
	store->joints = j;
	store->joints_under_way++;
}

/*
 * With the store's lock held: takes it off those under way. Returns the open joint commit if that
 * may begin now, which the caller then passes to joint_commit() without the lock; otherwise NULL.
 */
static struct fdb_joint *
joint_end_locked(struct fdb_store *store, struct fdb_joint *j)
{
	struct fdb_joint **at = &store->joints;
	struct fdb_joint *next = store->joint;

	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	store->joints_under_way--;
	if (!next || store->joints_under_way >= FDB_JOINTS_UNDER_WAY)
		return NULL;
	joint_begin_locked(store, next);
	return next;
}

/* What a joint commit's result means for a member, or for one that has waited for it. */
struct joint_told {
	struct fdb_tx *tx; /* is committed by itself now; NULL: `f` ends with the status and code */
	struct fdb_future *f;
	enum status status;
	int code;
};

/* Copies what the result means for each, and returns how many there are. */
static size_t
joint_tell(const struct fdb_joint *j, bool parts, enum status status, int code,
	   struct joint_told ret[static FDB_JOINT_MEMBERS + FDB_JOINT_BEHIND])
{
	int64_t version = 0;
	size_t n = 0;

	for (size_t i = 0; i < j->count; i++)
		ret[n++] = (struct joint_told){
			.tx = parts ? j->members[i] : NULL,
			.f = j->members[i]->commit,
			.status = status,
			.code = code,
		};
	if (status == STATUS_OK && j->behind_count)
		(void)fdb.transaction_get_committed_version(j->tx, &version);
	for (size_t i = 0; i < j->behind_count; i++) {
		struct fdb_tx *tx = j->behind[i];
		bool conflicts = status == STATUS_OK && tx->version < (uint64_t)version;

		ret[n++] = (struct joint_told){
			.tx = conflicts ? NULL : tx,
			.f = tx->commit,
			.status = STATUS_TX_CONFLICT,
		};
	}
	return n;
}

/* Lets go of all members, before each of them is committed by itself. */
static void
joint_part(struct fdb_joint *j)
{
	size_t count = j->count;

	metric_add(&parted, count > 1);
	if (j->tx)
		fdb_library_give(j->store, j->tx);
	j->tx = NULL;
	for (size_t i = 0; i < count; i++) {
		j->members[i]->joint = NULL;
		fdb_joint_unref(j);
	}
}

/* The result of the whole; `code` is the library's, or 0. */
static void
joint_end(struct fdb_joint *j, enum status status, int code)
{
	struct joint_told told[FDB_JOINT_MEMBERS + FDB_JOINT_BEHIND];
	struct fdb_store *store = j->store;
	struct fdb_joint *next;
	size_t count;
	/* The library's transaction may be a view's, which another reader may have cancelled. */
	bool parts = status != STATUS_OK && status != STATUS_TX_UNKNOWN &&
		     (j->count > 1 || status == STATUS_CANCELLED);

	pthread_mutex_lock(&store->lock);
	next = joint_end_locked(store, j);
	if (parts)
		store->joint_doubted = FDB_JOINT_DOUBTED;
	pthread_mutex_unlock(&store->lock);
	count = joint_tell(j, parts, status, code, told);
	if (parts)
		joint_part(j);
	/* Not later: once the last future has ended the store may be closed. */
	fdb_joint_unref(j);
	if (next)
		joint_commit(next);
	for (size_t i = 0; i < count; i++)
		if (told[i].tx)
			member_commit_alone(told[i].tx);
		else
			fdb_future_end_commit(told[i].f, told[i].status, told[i].code);
}

/* In the library's thread. */
static void
joint_on_answer(FDBFuture *part, void *arg)
{
	int code = fdb.future_get_error(part);

	fdb.future_destroy(part);
	joint_end(arg, fdb_status(code), code);
}

/* ---- Joining ---- */

bool
fdb_joint_takes(struct fdb_tx *tx)
{
	struct fdb_store *store = (struct fdb_store *)tx->base.store;
	bool takes = tx->noting && !tx->base.wants_stamp && !tx->touched_metadata &&
		     tx->base.attempts == 0 && tx->orders <= FDB_JOINT_ORDERS;

	if (!takes)
		return false;
	pthread_mutex_lock(&store->lock);
	if (store->joint_doubted) {
		store->joint_doubted--;
		takes = false;
	}
	pthread_mutex_unlock(&store->lock);
	return takes;
}

/*
 * With the store's lock held: finds the joint commit that writes what the transaction has read.
 * NULL if there is none; `*ret_unknown` is then set if one of them writes more than was indexed.
 */
static struct fdb_joint *
joint_in_the_way_locked(struct fdb_store *store, const struct fdb_tx *tx, bool *ret_unknown)
{
	for (struct fdb_joint *j = store->joints; j; j = j->next) {
		if (joint_is_in_the_way(j, tx))
			return j;
		*ret_unknown |= j->unknown;
	}
	return store->joint && joint_is_in_the_way(store->joint, tx) ? store->joint : NULL;
}

/*
 * With the store's lock held: adds the transaction to the open joint commit, or to a new one if
 * there is none or it has no room. `ret` gets those that the caller has to pass to joint_commit().
 * False when out of memory.
 */
static bool
joint_join_locked(struct fdb_store *store, struct fdb_tx *tx, struct fdb_joint *ret[static 2])
{
	struct fdb_joint *j = store->joint;

	if (j && !joint_has_room(j, tx)) {
		/* It is full, so it begins although enough are under way. */
		joint_begin_locked(store, j);
		ret[0] = j;
		j = NULL;
	}
	if (!j)
		j = store->joint = joint_new(store);
	if (!j)
		return false;
	joint_add(j, tx);
	if (store->joints_under_way < FDB_JOINTS_UNDER_WAY) {
		joint_begin_locked(store, j);
		ret[1] = j;
	}
	return true;
}

void
fdb_joint_commit(struct fdb_tx *tx)
{
	struct fdb_store *store = (struct fdb_store *)tx->base.store;
	struct fdb_joint *now[2] = { NULL, NULL };
	bool alone = false, done = true;
	struct fdb_joint *j;

	pthread_mutex_lock(&store->lock);
	j = joint_in_the_way_locked(store, tx, &alone);
	if (j && j->behind_count < FDB_JOINT_BEHIND) {
		j->behind[j->behind_count++] = tx;
		alone = false;
	} else if (j) {
		alone = true;
	} else if (!alone) {
		done = joint_join_locked(store, tx, now);
	}
	pthread_mutex_unlock(&store->lock);
	for (size_t i = 0; i < 2; i++)
		if (now[i])
			joint_commit(now[i]);
	if (alone)
		member_commit_alone(tx);
	else if (!done)
		fdb_future_end_commit(tx->commit, STATUS_NOMEM, 0);
}

void
fdb_joint_hurry(struct fdb_store *store, uint64_t now_ns)
{
	struct fdb_joint *j;

	pthread_mutex_lock(&store->lock);
	j = store->joint;
	if (j && now_ns < j->since_ns + FDB_JOINT_WAIT_MS * CLOCK_NS_PER_MS)
		j = NULL;
	if (j)
		joint_begin_locked(store, j);
	pthread_mutex_unlock(&store->lock);
	if (j)
		joint_commit(j);
}
