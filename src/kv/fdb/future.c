/*
 * Futures. The library calls future_on_ready() when an answer is there: from its own thread or, if
 * the answer is there already, from the thread that sets the callback.
 *
 * An answer of the library to a range may end before the limits of the range are reached; an answer
 * of the contract may not. So the callback asks for the next part until the range is complete, and
 * the owner sees one answer.
 *
 * == Who owns what ==
 *
 * A future has two references: one of its owner, and one of the callback, until the callback has
 * run for the last time. The last one to go frees it and destroys the library's futures in it, so
 * the owner may cancel a future of the library while the callback is reading its answer.
 *
 * The lock guards `abandoned` and everything that an answer is put into. The callback puts an
 * answer in only if the owner is still there, and all of that happens under the lock; so once the
 * owner has abandoned the future, nothing of its transaction is touched any more, and the
 * transaction may be freed. `base.event` is set after the last answer, and from then on the owner
 * reads without the lock: nobody writes to it again.
 *
 * `settled` is set after `base.event`, for waits of the engine itself, since the owner may be
 * waiting for `base.event` at the same time and an event has one waiter.
 */
#include <assert.h>

#include "base/mem.h"
#include "kv/fdb/fdb_int.h"
#include "kv/fdb/joint.h"

enum {
	FIRST_PAIRS = 64,
	/* The library counts so much for a pair, besides its key and value. */
	PAIR_OVERHEAD_BYTES = 8,
	/* What the library keeps of a question, about: a future, the key, an answer's place. */
	LIBRARY_BYTES = 512,

	CODE_TOO_OLD = 1007,
	CODE_CANCELLED = 1025,
};

/* ---- Lists ---- */

static void
future_link(struct fdb_future **first, struct fdb_future *f)
{
	f->prev = NULL;
	f->next = *first;
	if (f->next)
		f->next->prev = f;
	*first = f;
	f->linked = true;
}

static void
future_unlink(struct fdb_future **first, struct fdb_future *f)
{
	assert(f->linked && (f->prev ? f->prev->next == f : *first == f));
	if (f->prev)
		f->prev->next = f->next;
	else
		*first = f->next;
	if (f->next)
		f->next->prev = f->prev;
	f->linked = false;
}

/* Takes a watch out of its store's list, unless fdb_watches_cancel() has done so. */
static void
future_unlink_watch(struct fdb_future *f)
{
	struct fdb_store *store = f->store;

	pthread_mutex_lock(&store->lock);
	if (f->linked) {
		future_unlink(&store->watches, f);
		store->watch_count--;
	}
	pthread_mutex_unlock(&store->lock);
}

/* ---- Life ---- */

static void
future_unref(struct fdb_future *f)
{
	if (atomic_fetch_sub(&f->refs, 1) > 1)
		return;
	for (size_t i = 0; i < f->part_count; i++)
		fdb.future_destroy(f->parts[i]);
	if (f->parts != f->inline_parts)
		mem_free(f->parts);
	mem_free(f->pairs);
	if (f->op == FDB_WATCH)
		fdb_store_unref(f->store);
	pthread_mutex_destroy(&f->lock);
	mem_free(f);
}

/* How much memory the future has, with the answer, if that is there. On the owner's thread. */
static size_t
future_bytes(const struct fdb_future *f)
{
	size_t n = sizeof(*f) + f->bounds_bytes + LIBRARY_BYTES;

	if (!event_is_set(&f->base.event))
		return n;
	n += f->base.value.len + f->pair_cap * (sizeof(*f->pairs) + sizeof(struct fdb_pair));
	for (size_t i = 0; i < f->base.range.count; i++)
		n += f->pairs[i].key.len + f->pairs[i].value.len;
	return n;
}

/* The future holds `bytes` from now on, which its transaction counts. On the owner's thread. */
static void
future_hold(struct fdb_future *f, size_t bytes)
{
	struct kv_tx *tx = f->base.tx;

	if (!tx || !tx->part)
		return;
	kv_tx_hold(tx, tx->held_bytes - f->held_bytes + bytes);
	f->held_bytes = bytes;
}

static enum kv_future_kind
future_kind_of(enum fdb_op op)
{
	switch (op) {
	case FDB_GET:
		return KV_FUTURE_VALUE;
	case FDB_RANGE:
		return KV_FUTURE_RANGE;
	case FDB_WATCH:
		return KV_FUTURE_WATCH;
	case FDB_COMMIT:
	case FDB_NUMBER:
	case FDB_STAMP:
		break;
	}
	return KV_FUTURE_COMMIT; /* the statistics do not count these */
}

struct fdb_future *
fdb_future_new(struct fdb_tx *tx, enum fdb_op op, FDBFuture *part, size_t bounds_bytes)
{
	struct fdb_future *f = mem_zalloc(sizeof(*f) + bounds_bytes);

	if (!f) {
		if (part)
			fdb.future_destroy(part);
		return NULL;
	}
	f->base.engine = tx->base.engine;
	f->base.tx = op == FDB_WATCH ? NULL : &tx->base;
	f->base.kind = future_kind_of(op);
	event_init(&f->base.event);
	event_init(&f->settled);
	f->op = op;
	atomic_init(&f->refs, 2);
	pthread_mutex_init(&f->lock, NULL);
	f->store = (struct fdb_store *)tx->base.store;
	f->tx = tx->tx;
	f->shares = atomic_load_explicit(&tx->shares, memory_order_relaxed);
	f->life = tx->life;
	f->bounds_bytes = bounds_bytes;
	f->parts = f->inline_parts;
	f->part_cap = FDB_PARTS_INLINE;
	if (part)
		f->parts[f->part_count++] = part;
	if (op == FDB_WATCH) {
		atomic_fetch_add(&f->store->refs, 1);
		pthread_mutex_lock(&f->store->lock);
		future_link(&f->store->watches, f);
		f->store->watch_count++;
		pthread_mutex_unlock(&f->store->lock);
	} else {
		future_link(&tx->futures, f);
	}
	future_hold(f, future_bytes(f));
	return f;
}

/* ---- Answers, with the lock held ---- */

/*
 * With the lock held: the code for an answer's end. The library's transaction was cancelled because
 * its time was over, or another one that shares it was cancelled; then this one begins again.
 */
static int
future_code(const struct fdb_future *f, int code)
{
	const struct fdb_tx *tx = (const struct fdb_tx *)f->base.tx;

	if (code != CODE_CANCELLED || f->op == FDB_WATCH)
		return code;
	if (atomic_load(&tx->timed_out))
		return FDB_CODE_TIMED_OUT;
	return f->shares && !atomic_load(&tx->cancelled) ? CODE_TOO_OLD : code;
}

static bool
future_add_part(struct fdb_future *f, FDBFuture *part)
{
	if (f->part_count == f->part_cap) {
		size_t cap = 2 * f->part_cap;
		FDBFuture **parts = mem_alloc(cap * sizeof(FDBFuture *));

		if (!parts)
			return false;
		memcpy(parts, f->parts, f->part_count * sizeof(FDBFuture *));
		if (f->parts != f->inline_parts)
			mem_free(f->parts);
		f->parts = parts;
		f->part_cap = cap;
	}
	f->parts[f->part_count++] = part;
	return true;
}

static bool
future_reserve_pairs(struct fdb_future *f, size_t count)
{
	size_t needed = f->base.range.count + count;
	size_t cap = f->pair_cap ? f->pair_cap : FIRST_PAIRS;
	struct kv_pair *pairs;

	if (needed <= f->pair_cap)
		return true;
	while (cap < needed)
		cap *= 2;
	pairs = mem_realloc(f->pairs, cap * sizeof(*pairs));
	if (!pairs)
		return false;
	f->pairs = pairs;
	f->pair_cap = cap;
	return true;
}

/* Adds the pairs to the answer, as many as the limits allow, and subtracts them from the limits. */
static void
future_take_pairs(struct fdb_future *f, const struct fdb_pair *pairs, size_t count)
{
	struct kv_range_options *left = &f->options;
	size_t prefix = f->store->base.prefix_bytes;
	size_t n = 0;

	assert(f->base.range.count + count <= f->pair_cap);
	while (n < count && left->limit && left->limit_bytes) {
		struct kv_pair pair = {
			.key = str_of(pairs[n].key + prefix, (size_t)pairs[n].key_len - prefix),
			.value = str_of(pairs[n].value, (size_t)pairs[n].value_len),
		};
		size_t bytes = pair.key.len + pair.value.len;

		f->pairs[f->base.range.count++] = pair;
		if (left->limit != SIZE_MAX)
			left->limit--;
		left->limit_bytes -= bytes < left->limit_bytes ? bytes : left->limit_bytes;
		n++;
	}
}

/* The last pair's key as the cluster has it: the prefix lies before what the owner sees. */
static struct str
future_last_key(const struct fdb_future *f)
{
	size_t prefix = f->store->base.prefix_bytes;
	struct str key = f->pairs[f->base.range.count - 1].key;

	return str_of(key.ptr - prefix, key.len + prefix);
}

/* The next part of the range begins behind the last pair; of a reverse one it ends before it. */
static void
future_advance_range(struct fdb_future *f)
{
	struct str last;

	if (f->base.range.count == 0)
		return;
	last = future_last_key(f);
	if (f->options.reverse)
		f->end = last;
	else
		f->begin = last;
	f->begun = true;
}

/*
 * Asks the library for the next part of the range. It begins at the first key that is not below
 * `begin` or, once there is a last pair, at the first one above that. For the library a limit of 0
 * bytes is none; this limit is never 0, since the range would be complete.
 */
static FDBFuture *
future_ask_range(const struct fdb_future *f)
{
	const struct kv_range_options *left = &f->options;
	bool after = f->begun && !left->reverse;
	size_t limit = left->limit < INT32_MAX ? left->limit : 0;
	size_t bytes = left->limit_bytes < INT32_MAX ? left->limit_bytes : INT32_MAX;

	assert(left->limit > 0 && left->limit_bytes > 0);
	/*
	 * The contract's limit counts keys, without a prefix, and values alone. With the overhead
	 * added, one small pair still fits into the first part.
	 */
	if (bytes < KV_LIMIT_KEY_BYTES)
		bytes += PAIR_OVERHEAD_BYTES + f->store->base.prefix_bytes;
	return fdb.transaction_get_range(f->tx, fdb_ptr(f->begin), (int)f->begin.len, after, 1,
					 fdb_ptr(f->end), (int)f->end.len, 0, 1, (int)limit,
					 (int)bytes, FDB_MODE_EXACT, 0, f->snapshot, left->reverse);
}

/*
 * Adds the read conflict of a reverse range, which was read as a snapshot read: from the last pair,
 * if a limit ended the range there, or else from its beginning, to its end.
 */
static void
future_add_range_conflict(struct fdb_future *f)
{
	const struct kv_range *range = &f->base.range;
	struct str begin = range->more ? future_last_key(f) : f->begin;
	struct str end = f->whole_end;

	if (str_cmp(begin, end) >= 0)
		return;
	f->code = fdb.transaction_add_conflict_range(f->tx, fdb_ptr(begin), (int)begin.len,
						     fdb_ptr(end), (int)end.len, FDB_CONFLICT_READ);
	f->base.status = fdb_status(f->code);
}

/*
 * Adds a part to the answer of a range. Returns the library's future of the next part; NULL when
 * the range is complete or has failed.
 */
static FDBFuture *
future_answer_range(struct fdb_future *f, FDBFuture *part)
{
	const struct fdb_pair *pairs;
	FDBFuture *next;
	int count;
	int more;
	bool full;

	f->code = future_code(f, fdb.future_get_keyvalue_array(part, &pairs, &count, &more));
	f->base.status = fdb_status(f->code);
	if (f->code != 0)
		return NULL;
	if (!future_reserve_pairs(f, (size_t)count)) {
		f->base.status = STATUS_NOMEM;
		return NULL;
	}
	future_take_pairs(f, pairs, (size_t)count);
	full = !f->options.limit || !f->options.limit_bytes;
	f->base.range.pairs = f->pairs;
	f->base.range.more = full || more;
	if (full || !more) {
		if (f->conflicts)
			future_add_range_conflict(f);
		return NULL;
	}
	future_advance_range(f);
	next = future_ask_range(f);
	if (future_add_part(f, next))
		return next;
	fdb.future_destroy(next);
	f->base.status = STATUS_NOMEM;
	return NULL;
}

static void
future_answer_value(struct fdb_future *f, FDBFuture *part)
{
	const uint8_t *bytes = NULL;
	int present = 0;
	int len = 0;

	if (f->op == FDB_STAMP)
		f->code = fdb.future_get_key(part, &bytes, &len);
	else
		f->code = fdb.future_get_value(part, &present, &bytes, &len);
	f->code = future_code(f, f->code);
	f->base.status = fdb_status(f->code);
	if (f->code != 0)
		return;
	f->base.present = present || f->op == FDB_STAMP;
	f->base.value = str_of(bytes, (size_t)len);
}

/* With the lock held. */
static void
future_take_commit(struct fdb_future *f, enum status status)
{
	f->base.status = status;
	fdb_count_failure(f->code);
	if (f->base.status == STATUS_OK && f->counts)
		atomic_fetch_add_explicit(&f->store->commits, 1, memory_order_relaxed);
	else if (f->base.status == STATUS_TX_CONFLICT)
		atomic_fetch_add_explicit(&f->store->conflicts, 1, memory_order_relaxed);
}

static void
future_answer_commit(struct fdb_future *f, FDBFuture *part)
{
	f->code = future_code(f, fdb.future_get_error(part));
	future_take_commit(f, fdb_status(f->code));
}

/*
 * There are two kinds of timeout: the cluster has not answered at all, or the transaction has
 * lasted longer than a read version is kept. In the second case it has had answers before.
 */
static void
future_note_age(struct fdb_future *f)
{
	struct fdb_tx *tx = (struct fdb_tx *)f->base.tx;
	bool answered = atomic_load_explicit(&tx->answered, memory_order_relaxed);

	if (f->base.status == STATUS_OK && !answered) {
		atomic_store_explicit(&tx->answered, true, memory_order_relaxed);
		fdb_count_answer(tx->asked_ns);
	} else if (f->code == FDB_CODE_TIMED_OUT && answered) {
		f->base.status = STATUS_TX_TOO_OLD;
	} else {
		fdb_count_failure(f->code);
	}
}

/*
 * With the lock held: puts the answer in place. Returns the library's future that has to be waited
 * for next; NULL if this was the last answer.
 */
static FDBFuture *
future_answer(struct fdb_future *f, FDBFuture *part)
{
	FDBFuture *next = NULL;

	switch (f->op) {
	case FDB_RANGE:
		next = future_answer_range(f, part);
		break;
	case FDB_GET:
	case FDB_STAMP:
		future_answer_value(f, part);
		break;
	case FDB_COMMIT:
		future_answer_commit(f, part);
		break;
	case FDB_WATCH:
		f->code = fdb.future_get_error(part);
		f->base.status = fdb_watch_status(f->code);
		break;
	case FDB_NUMBER:
		f->code = future_code(f, fdb.future_get_int64(part, &f->number));
		f->base.status = fdb_status(f->code);
		break;
	}
	if (f->op == FDB_GET || f->op == FDB_RANGE || f->op == FDB_NUMBER)
		future_note_age(f);
	return next;
}

/* The last answer is in place. Gives up the callback's reference, which is not needed any more. */
static void
future_tell(struct fdb_future *f)
{
	event_set(&f->base.event);
	event_set(&f->settled);
	future_unref(f);
}

static void future_on_ready(FDBFuture *part, void *arg);

/*
 * Has the library call future_on_ready() when `part` is there. Setting a callback fails only
 * without memory, which the library does not survive either.
 */
static void
future_await(struct fdb_future *f, FDBFuture *part)
{
	if (fdb.future_set_callback(part, future_on_ready, f) != 0)
		future_on_ready(part, f);
}

static void
future_on_ready(FDBFuture *part, void *arg)
{
	struct fdb_future *f = arg;
	FDBFuture *next = NULL;

	pthread_mutex_lock(&f->lock);
	assert(!event_is_set(&f->base.event));
	if (!f->abandoned)
		next = future_answer(f, part);
	pthread_mutex_unlock(&f->lock);
	if (next) {
		future_await(f, next);
		return;
	}
	if (f->op == FDB_WATCH)
		future_unlink_watch(f);
	future_tell(f);
}

void
fdb_future_complete(struct fdb_future *f, enum status status)
{
	assert(!f->part_count);
	pthread_mutex_lock(&f->lock);
	if (!f->abandoned)
		f->base.status = status;
	pthread_mutex_unlock(&f->lock);
	if (f->op == FDB_WATCH)
		future_unlink_watch(f);
	future_tell(f);
}

void
fdb_future_end_commit(struct fdb_future *f, enum status status, int code)
{
	assert(f->op == FDB_COMMIT && !f->part_count);
	pthread_mutex_lock(&f->lock);
	if (!f->abandoned) {
		f->code = code;
		future_take_commit(f, status);
	}
	pthread_mutex_unlock(&f->lock);
	future_tell(f);
}

/* ---- The owner's calls ---- */

void
fdb_future_start(struct fdb_future *f)
{
	FDBFuture *part;

	if (f->op == FDB_RANGE)
		f->parts[f->part_count++] = future_ask_range(f);
	part = f->parts[0];
	future_await(f, part);
}

enum status
fdb_future_wait(struct fdb_future *f)
{
	(void)event_wait(&f->settled, WAIT_FOREVER);
	return f->base.status;
}

/*
 * Gives up the owner's reference. The callback puts no answer into the future any more, and the
 * library is told to answer soon.
 */
static void
future_abandon(struct fdb_future *f)
{
	FDBFuture *pending = NULL;

	pthread_mutex_lock(&f->lock);
	f->abandoned = true;
	if (!event_is_set(&f->base.event) && f->part_count)
		pending = f->parts[f->part_count - 1];
	pthread_mutex_unlock(&f->lock);
	if (pending)
		fdb.future_cancel(pending);
	future_unref(f);
}

/*
 * A range that goes on in several stretches must not see what is written after it was asked for.
 */
void
fdb_tx_settle_ranges(struct fdb_tx *tx)
{
	if (!tx->ranges_open)
		return;
	for (struct fdb_future *f = tx->futures; f; f = f->next)
		if (f->op == FDB_RANGE)
			(void)fdb_future_wait(f);
	tx->ranges_open = false;
}

/*
 * Notes the read conflict of a range: the whole range, or if a limit ended it, only the part up to
 * the last pair that was read (from that pair on, if it was read in reverse).
 */
static enum status
future_note_range(struct fdb_tx *tx, struct fdb_future *f)
{
	struct fdb_note note = {
		.kind = FDB_NOTE_READ_CONFLICT,
		.first = f->whole_begin,
		.second = f->whole_end,
	};
	bool limited = event_is_set(&f->base.event) && f->base.status == STATUS_OK &&
		       f->base.range.more;
	char end[FDB_KEY_BYTES + 1];
	struct str last = limited ? future_last_key(f) : (struct str){ 0 };

	f->notes = false;
	fdb_notes_pay(tx, note.first.len + note.second.len);
	/* Where there is no room for another bound, there is for those that it was asked with. */
	limited = limited && fdb_notes_fit(tx, note.first.len + note.second.len + last.len + 1);
	if (limited && f->options.reverse) {
		note.first = last;
	} else if (limited) {
		memcpy(end, last.ptr, last.len);
		end[last.len] = 0;
		note.second = str_of(end, last.len + 1);
	}
	return str_cmp(note.first, note.second) < 0 ? fdb_notes_add(tx, note) : STATUS_OK;
}

enum status
fdb_tx_note_ranges(struct fdb_tx *tx)
{
	enum status status = STATUS_OK;

	fdb_tx_settle_ranges(tx);
	for (struct fdb_future *f = tx->futures; f && status == STATUS_OK; f = f->next)
		if (f->notes)
			status = future_note_range(tx, f);
	return status;
}

void
fdb_future_release(struct fdb_tx *tx, struct fdb_future *f)
{
	/* Without memory the notes remember that, and the commit fails. */
	if (f->notes && tx->noting)
		(void)future_note_range(tx, f);
	future_unlink(&tx->futures, f);
	future_hold(f, 0);
	future_abandon(f);
}

void
fdb_future_free(struct kv_future *base)
{
	struct fdb_future *f = (struct fdb_future *)base;

	switch (f->op) {
	case FDB_WATCH:
		future_unlink_watch(f);
		if (fdb_source_leave(f))
			future_unref(f); /* nobody completes it any more */
		future_abandon(f);
		break;
	case FDB_GET:
	case FDB_RANGE:
		fdb_future_release((struct fdb_tx *)base->tx, f);
		break;
	case FDB_COMMIT:
	case FDB_NUMBER:
	case FDB_STAMP:
		break; /* the transaction keeps it until it ends */
	}
}

/*
 * Answers to what was asked for together come one after the other. Whoever waits for one of them
 * wants the others next, so this waits for the last: the fiber is woken once, and not for each.
 */
void
fdb_future_settle(struct kv_future *base)
{
	struct kv_future *newest = base->tx ? base->tx->reads : NULL;

	if (base->kind != KV_FUTURE_VALUE || event_is_set(&base->event) || !newest)
		return;
	if (newest != base && newest->kind == KV_FUTURE_VALUE && newest->wave == base->wave)
		(void)event_wait(&newest->event, WAIT_FOREVER);
}

void
fdb_future_explain(struct kv_future *base)
{
	struct fdb_future *f = (struct fdb_future *)base;

	/* The owner has its answer now, and calls this first. */
	if (!f->base.counted)
		future_hold(f, future_bytes(f));
	if (f->base.tx && f->code != 0)
		err_write(&f->base.tx->err, f->base.status, "%s", fdb.get_error(f->code));
}

void
fdb_watches_cancel(struct fdb_store *store, uint64_t life)
{
	/* One at a time: the library may call back while it cancels, and that takes the lock. */
	for (;;) {
		struct fdb_future *f;

		pthread_mutex_lock(&store->lock);
		for (f = store->watches; f && life && f->life != life;)
			f = f->next;
		if (f) {
			future_unlink(&store->watches, f);
			store->watch_count--;
			atomic_fetch_add(&f->refs, 1);
		}
		pthread_mutex_unlock(&store->lock);
		if (!f)
			return;
		if (f->part_count)
			fdb.future_cancel(f->parts[0]);
		else if (fdb_source_leave(f))
			fdb_future_complete(f, STATUS_CANCELLED);
		future_unref(f);
	}
}
