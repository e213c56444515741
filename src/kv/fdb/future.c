/*
 * Futures. The library calls back when an answer is there, from its own thread or, if it was there
 * already, from the one that asks.
 *
 * A future has two holders: its owner, and the callback until it has run for the last time. The
 * library's futures are destroyed with the last of the two, so that an owner can cancel one that is
 * being answered.
 *
 * One answer of the library's to a range may be shorter than its limits; the contract's is not. The
 * callback asks for the next stretch until it is complete.
 */
#include "base/mem.h"
#include "kv/fdb/fdb_int.h"

enum {
	FIRST_PAIRS = 64,
	/* What the library counts a pair with, beside its key and value. */
	PAIR_OVERHEAD_BYTES = 8,
};

/* ---- Lists ---- */

static void
link_into(struct fdb_future **first, struct fdb_future *f)
{
	f->prev = NULL;
	f->next = *first;
	if (f->next)
		f->next->prev = f;
	*first = f;
	f->linked = true;
}

static void
unlink_from(struct fdb_future **first, struct fdb_future *f)
{
	if (f->prev)
		f->prev->next = f->next;
	else
		*first = f->next;
	if (f->next)
		f->next->prev = f->prev;
	f->linked = false;
}

/* Takes a watch out of its store's list, once. */
static void
unlink_watch(struct fdb_future *f)
{
	struct fdb_store *store = f->store;

	pthread_mutex_lock(&store->lock);
	if (f->linked) {
		unlink_from(&store->watches, f);
		store->watch_count--;
	}
	pthread_mutex_unlock(&store->lock);
}

/* ---- Life ---- */

static void
unref(struct fdb_future *f)
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

static enum kv_future_kind
kind_of(enum fdb_op op)
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
	return KV_FUTURE_COMMIT; /* of no count in statistics */
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
	f->base.kind = kind_of(op);
	event_init(&f->base.event);
	event_init(&f->settled);
	f->op = op;
	atomic_init(&f->refs, 2);
	pthread_mutex_init(&f->lock, NULL);
	f->store = (struct fdb_store *)tx->base.store;
	f->tx = tx->tx;
	f->life = tx->life;
	f->parts = f->inline_parts;
	f->part_cap = FDB_PARTS_INLINE;
	if (part)
		f->parts[f->part_count++] = part;
	if (op == FDB_WATCH) {
		atomic_fetch_add(&f->store->refs, 1);
		pthread_mutex_lock(&f->store->lock);
		link_into(&f->store->watches, f);
		f->store->watch_count++;
		pthread_mutex_unlock(&f->store->lock);
	} else {
		link_into(&tx->futures, f);
	}
	return f;
}

/* ---- Answers, with the lock held ---- */

static bool
add_part(struct fdb_future *f, FDBFuture *part)
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
reserve_pairs(struct fdb_future *f, size_t count)
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

/* Takes over what the limits allow. */
static void
take_pairs(struct fdb_future *f, const struct fdb_pair *pairs, size_t count)
{
	struct kv_range_options *left = &f->options;
	size_t n = 0;

	while (n < count && left->limit && left->limit_bytes) {
		struct kv_pair pair = {
			.key = str_of(pairs[n].key, (size_t)pairs[n].key_len),
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

/* Goes on behind the last pair. */
static void
advance(struct fdb_future *f)
{
	struct str last;

	if (f->base.range.count == 0)
		return;
	last = f->pairs[f->base.range.count - 1].key;
	if (f->options.reverse)
		f->end = last;
	else
		f->begin = last;
	f->begun = true;
}

/*
 * The next stretch of the range. Selectors: the first key not below a bound, or, once there is a
 * last pair, above it. Byte limits of zero mean none to the library; this one's is never zero.
 */
static FDBFuture *
ask_range(const struct fdb_future *f)
{
	const struct kv_range_options *left = &f->options;
	bool after = f->begun && !left->reverse;
	size_t limit = left->limit < INT32_MAX ? left->limit : 0;
	size_t bytes = left->limit_bytes < INT32_MAX ? left->limit_bytes : INT32_MAX;

	/* The limit is of keys and values: with the overhead a small pair still fits at once. */
	if (bytes < KV_LIMIT_KEY_BYTES)
		bytes += PAIR_OVERHEAD_BYTES;
	return fdb.transaction_get_range(f->tx, fdb_ptr(f->begin), (int)f->begin.len, after, 1,
					 fdb_ptr(f->end), (int)f->end.len, 0, 1, (int)limit,
					 (int)bytes, FDB_MODE_EXACT, 0, f->snapshot, left->reverse);
}

/* Of a reverse range: from the last pair, if a limit ended it there, to the end. */
static void
add_range_conflict(struct fdb_future *f)
{
	const struct kv_range *range = &f->base.range;
	struct str begin = range->more ? f->pairs[range->count - 1].key : f->begin;
	struct str end = f->whole_end;

	if (str_cmp(begin, end) >= 0)
		return;
	f->code = fdb.transaction_add_conflict_range(f->tx, fdb_ptr(begin), (int)begin.len,
						     fdb_ptr(end), (int)end.len, FDB_CONFLICT_READ);
	f->base.status = fdb_status(f->code);
}

/* Returns what to wait for next, or NULL when the range is complete. */
static FDBFuture *
answer_range(struct fdb_future *f, FDBFuture *part)
{
	const struct fdb_pair *pairs;
	FDBFuture *next;
	int count;
	int more;
	bool full;

	f->code = fdb.future_get_keyvalue_array(part, &pairs, &count, &more);
	f->base.status = fdb_status(f->code);
	if (f->code != 0)
		return NULL;
	if (!reserve_pairs(f, (size_t)count)) {
		f->base.status = STATUS_NOMEM;
		return NULL;
	}
	take_pairs(f, pairs, (size_t)count);
	full = !f->options.limit || !f->options.limit_bytes;
	f->base.range.pairs = f->pairs;
	f->base.range.more = full || more;
	if (full || !more) {
		if (f->conflicts)
			add_range_conflict(f);
		return NULL;
	}
	advance(f);
	next = ask_range(f);
	if (add_part(f, next))
		return next;
	fdb.future_destroy(next);
	f->base.status = STATUS_NOMEM;
	return NULL;
}

static void
answer_value(struct fdb_future *f, FDBFuture *part)
{
	const uint8_t *bytes = NULL;
	int present = 0;
	int len = 0;

	if (f->op == FDB_STAMP)
		f->code = fdb.future_get_key(part, &bytes, &len);
	else
		f->code = fdb.future_get_value(part, &present, &bytes, &len);
	f->base.status = fdb_status(f->code);
	if (f->code != 0)
		return;
	f->base.present = present || f->op == FDB_STAMP;
	f->base.value = str_of(bytes, (size_t)len);
}

/* Of commits: a cancelled one may go on, and the library's own word for that is another. */
static void
answer_commit(struct fdb_future *f, FDBFuture *part)
{
	f->code = fdb.future_get_error(part);
	f->base.status = fdb_status(f->code);
	if (f->base.status == STATUS_OK && f->counts)
		atomic_fetch_add_explicit(&f->store->commits, 1, memory_order_relaxed);
	else if (f->base.status == STATUS_TX_CONFLICT)
		atomic_fetch_add_explicit(&f->store->conflicts, 1, memory_order_relaxed);
}

/* A watch has happened, is gone with its transaction, or is lost. */
static enum status
watch_status(int code)
{
	enum status status = fdb_status(code);

	if (status == STATUS_OK || status == STATUS_LIMIT)
		return status;
	if (status == STATUS_CANCELLED || status == STATUS_TX_CONFLICT ||
	    status == STATUS_TX_TOO_OLD || status == STATUS_TX_UNKNOWN ||
	    status == STATUS_TX_TOO_LARGE)
		return STATUS_CANCELLED;
	return STATUS_UNAVAILABLE;
}

/*
 * A transaction that times out has either not reached the cluster or lasted longer than a read
 * version does.
 */
static void
note_age(struct fdb_future *f)
{
	enum {
		TIMED_OUT = 1031,
	};
	struct fdb_tx *tx = (struct fdb_tx *)f->base.tx;

	if (f->base.status == STATUS_OK)
		atomic_store_explicit(&tx->answered, true, memory_order_relaxed);
	else if (f->code == TIMED_OUT && atomic_load_explicit(&tx->answered, memory_order_relaxed))
		f->base.status = STATUS_TX_TOO_OLD;
}

/* Puts the answer in place. Returns what else to wait for, or NULL. */
static FDBFuture *
answer(struct fdb_future *f, FDBFuture *part)
{
	FDBFuture *next = NULL;

	switch (f->op) {
	case FDB_RANGE:
		next = answer_range(f, part);
		break;
	case FDB_GET:
	case FDB_STAMP:
		answer_value(f, part);
		break;
	case FDB_COMMIT:
		answer_commit(f, part);
		break;
	case FDB_WATCH:
		f->code = fdb.future_get_error(part);
		f->base.status = watch_status(f->code);
		break;
	case FDB_NUMBER:
		f->code = fdb.future_get_int64(part, &f->number);
		f->base.status = fdb_status(f->code);
		break;
	}
	if (f->op == FDB_GET || f->op == FDB_RANGE || f->op == FDB_NUMBER)
		note_age(f);
	return next;
}

static void on_ready(FDBFuture *part, void *arg);

/* Fails only for lack of memory, which the library does not survive anyway. */
static void
call_back(struct fdb_future *f, FDBFuture *part)
{
	if (fdb.future_set_callback(part, on_ready, f) != 0)
		on_ready(part, f);
}

static void
on_ready(FDBFuture *part, void *arg)
{
	struct fdb_future *f = arg;
	FDBFuture *next = NULL;

	pthread_mutex_lock(&f->lock);
	if (!f->abandoned)
		next = answer(f, part);
	pthread_mutex_unlock(&f->lock);
	if (next) {
		call_back(f, next);
		return;
	}
	if (f->op == FDB_WATCH)
		unlink_watch(f);
	event_set(&f->base.event);
	event_set(&f->settled);
	unref(f);
}

/* ---- The owner's calls ---- */

void
fdb_future_start(struct fdb_future *f)
{
	FDBFuture *part;

	if (f->op == FDB_RANGE)
		f->parts[f->part_count++] = ask_range(f);
	part = f->parts[0];
	call_back(f, part);
}

enum status
fdb_future_wait(struct fdb_future *f)
{
	(void)event_wait(&f->settled, WAIT_FOREVER);
	return f->base.status;
}

/* Has the callback leave `f` alone, apart from its reference. */
static void
abandon(struct fdb_future *f)
{
	FDBFuture *pending = NULL;

	pthread_mutex_lock(&f->lock);
	f->abandoned = true;
	if (!event_is_set(&f->base.event))
		pending = f->parts[f->part_count - 1];
	pthread_mutex_unlock(&f->lock);
	if (pending)
		fdb.future_cancel(pending);
	unref(f);
}

void
fdb_future_release(struct fdb_tx *tx, struct fdb_future *f)
{
	unlink_from(&tx->futures, f);
	abandon(f);
}

void
fdb_future_free(struct kv_future *base)
{
	struct fdb_future *f = (struct fdb_future *)base;

	switch (f->op) {
	case FDB_WATCH:
		unlink_watch(f);
		abandon(f);
		break;
	case FDB_GET:
	case FDB_RANGE:
		fdb_future_release((struct fdb_tx *)base->tx, f);
		break;
	case FDB_COMMIT:
	case FDB_NUMBER:
	case FDB_STAMP:
		break; /* the transaction still asks it */
	}
}

void
fdb_future_explain(struct kv_future *base)
{
	struct fdb_future *f = (struct fdb_future *)base;

	if (f->base.tx && f->code != 0)
		err_write(&f->base.tx->err, f->base.status, "%s", fdb.get_error(f->code));
}

void
fdb_watches_cancel(struct fdb_store *store, uint64_t life)
{
	for (;;) {
		struct fdb_future *f;

		pthread_mutex_lock(&store->lock);
		for (f = store->watches; f && life && f->life != life;)
			f = f->next;
		if (f) {
			unlink_from(&store->watches, f);
			store->watch_count--;
			atomic_fetch_add(&f->refs, 1);
		}
		pthread_mutex_unlock(&store->lock);
		if (!f)
			return;
		fdb.future_cancel(f->parts[0]);
		unref(f);
	}
}
