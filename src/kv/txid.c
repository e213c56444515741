#include "kv/txid.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/big_endian.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/steady.h"
#include "base/mem.h"
#include "base/rand.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"

/*
 * The spans of a process are a list in the order of their numbers. All but the last are full: no
 * further id is taken from them. Neighbours whose runs have all ended become one span, so the list
 * is never much longer than the number of runs under way.
 *
 * == Safety ==
 *
 * An id must not be cleared while its run may still ask for it. `running` counts the runs that have
 * taken an id from the span and have not released it; it only falls once the span is full, so a
 * full span with `running` at 0 stays so. txids_claim() gives out nothing else.
 */
struct txid_span {
	struct txid_span *next;
	uint64_t first; /* its number, and those of the spans that were added to it */
	uint64_t last;
	uint64_t since_ns; /* when its first id was taken; 0: none has been */
	uint64_t ids;      /* taken so far */
	uint64_t running;  /* of those, the ones that are not released */
	bool claimed;
};

struct txids {
	uint8_t owner[TXID_OWNER_BYTES];
	pthread_mutex_t lock; /* of all below but `due_ns` */
	struct txid_span *oldest;
	struct txid_span *newest; /* the one that ids are taken from */
	/* Before this moment there is nothing to claim: saves the lock at most transactions. */
	_Atomic uint64_t due_ns;
};

/* ---- Keys ---- */

static void
put_prefix(struct buf *b)
{
	tuple_put_u64(b, KV_ROOT);
	tuple_put_u64(b, KV_ROOT_TXIDS);
}

static enum status
copy_key(struct buf *b, char ret_bytes[TXID_KEY_MAX_BYTES], struct str *ret)
{
	TRY(buf_status(b));
	memcpy(ret_bytes, b->ptr, b->len);
	*ret = str_of(ret_bytes, b->len);
	return STATUS_OK;
}

/* The key of an id; with `id_bytes` less than all, the beginning of the keys of a span. */
static enum status
make_key(const struct txids *ids, uint64_t span, uint64_t number, size_t id_bytes,
	 char ret_bytes[TXID_KEY_MAX_BYTES], struct str *ret)
{
	struct buf b AUTO(buf_release) = BUF_INIT(TXID_KEY_MAX_BYTES);
	uint8_t id[TXID_BYTES];

	memcpy(id, ids->owner, TXID_OWNER_BYTES);
	big_endian_put_64(id + TXID_OWNER_BYTES, span);
	big_endian_put_64(id + TXID_OWNER_BYTES + sizeof(span), number);
	put_prefix(&b);
	tuple_put_bytes(&b, str_of((const char *)id, id_bytes));
	return copy_key(&b, ret_bytes, ret);
}

enum status
txid_range_init(struct txid_range *ret)
{
	struct buf b AUTO(buf_release) = BUF_INIT(TXID_KEY_MAX_BYTES);
	struct buf end AUTO(buf_release) = BUF_INIT(TXID_KEY_MAX_BYTES);
	char owner[TXID_OWNER_BYTES];

	put_prefix(&b);
	TRY(copy_key(&b, ret->begin_bytes, &ret->begin));
	TRY(tuple_prefix_end(buf_str(&b), &end));
	TRY(copy_key(&end, ret->end_bytes, &ret->end));
	rand_bytes(owner, sizeof(owner));
	tuple_put_bytes(&b, str_of(owner, sizeof(owner)));
	return copy_key(&b, ret->middle_bytes, &ret->middle);
}

/* ---- The record ---- */

enum status
txid_write(struct kv_tx *tx, const struct txid *id)
{
	static const uint8_t zero[KV_VERSIONSTAMP_BYTES];
	struct buf b AUTO(buf_release) = BUF_INIT(TXID_VALUE_MAX_BYTES);
	size_t offset;

	tuple_put_u64(&b, steady_ms());
	offset = tuple_put_versionstamp(&b, zero);
	tuple_put_u64(&b, TXID_FORMAT);
	TRY(buf_status(&b));
	return kv_set_versionstamped_value(tx, id->key, buf_str(&b), offset);
}

enum status
txid_record_parse(struct str value, struct txid_record *ret)
{
	struct tuple_reader r = tuple_reader(value);

	TRY(tuple_next_u64(&r, &ret->ms));
	TRY(tuple_next_versionstamp(&r, &ret->stamp));
	ret->format = TXID_FORMAT;
	if (r.rest.len)
		TRY(tuple_next_u64(&r, &ret->format));
	return ret->format == TXID_FORMAT && r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

/* ---- The ids of a process ---- */

struct txids *
txids_new(void)
{
	struct txids *ids = mem_zalloc(sizeof(*ids));

	if (!ids)
		return NULL;
	ids->newest = mem_zalloc(sizeof(*ids->newest));
	if (!ids->newest) {
		mem_free(ids);
		return NULL;
	}
	ids->oldest = ids->newest;
	rand_bytes(ids->owner, sizeof(ids->owner));
	pthread_mutex_init(&ids->lock, NULL);
	atomic_init(&ids->due_ns, UINT64_MAX);
	return ids;
}

void
txids_free(struct txids *ids)
{
	struct txid_span *next;

	if (!ids)
		return;
	for (struct txid_span *span = ids->oldest; span; span = next) {
		assert(span->running == 0);
		next = span->next;
		mem_free(span);
	}
	pthread_mutex_destroy(&ids->lock);
	mem_free(ids);
}

/* True if all its ids can be cleared: none of them can be asked for, or taken, any more. */
static bool
is_free(const struct txids *ids, const struct txid_span *span)
{
	return span && span != ids->newest && span->running == 0 && !span->claimed;
}

/*
 * With the lock held: the next moment at which there is something to claim, unless it changes
 * earlier by an id that is taken or released.
 */
static uint64_t
next_due_ns(const struct txids *ids)
{
	for (const struct txid_span *span = ids->oldest; span; span = span->next)
		if (is_free(ids, span))
			return 0;
	return ids->newest->ids ? ids->newest->since_ns + TXIDS_SPAN_MS * CLOCK_NS_PER_MS
				: UINT64_MAX;
}

enum status
txid_take(struct txids *ids, struct txid *ret)
{
	struct txid_span *span;
	uint64_t number;

	pthread_mutex_lock(&ids->lock);
	span = ids->newest;
	number = span->ids++;
	span->running++;
	if (number == 0) {
		span->since_ns = clock_mono_ns();
		atomic_store(&ids->due_ns, next_due_ns(ids));
	}
	pthread_mutex_unlock(&ids->lock);
	ret->span = span;
	return make_key(ids, span->first, number, TXID_BYTES, ret->key_bytes, &ret->key);
}

void
txid_release(struct txids *ids, struct txid *id)
{
	struct txid_span *span = id->span;

	if (!span)
		return;
	pthread_mutex_lock(&ids->lock);
	assert(span->running > 0);
	if (--span->running == 0 && span != ids->newest)
		atomic_store(&ids->due_ns, 0);
	pthread_mutex_unlock(&ids->lock);
	id->span = NULL;
}

/* With the lock held: ids are taken from a new span from now on. Without memory nothing changes. */
static void
fill_newest(struct txids *ids)
{
	struct txid_span *span = mem_zalloc(sizeof(*span));

	if (!span)
		return;
	span->first = span->last = ids->newest->last + 1;
	ids->newest->next = span;
	ids->newest = span;
}

/* With the lock held: the oldest free span, as one with all free ones that follow it. */
static struct txid_span *
find_free(struct txids *ids)
{
	struct txid_span *span = ids->oldest;

	while (span && !is_free(ids, span))
		span = span->next;
	while (span && is_free(ids, span->next)) {
		struct txid_span *next = span->next;

		/* What lies between them has been cleared, and gets no more ids. */
		assert(next->first > span->last);
		span->last = next->last;
		span->next = next->next;
		mem_free(next);
	}
	return span;
}

struct txid_span *
txids_claim(struct txids *ids, bool last_of_all)
{
	struct txid_span *newest, *span;
	uint64_t now_ns = clock_mono_ns();

	if (!last_of_all && now_ns < atomic_load_explicit(&ids->due_ns, memory_order_relaxed))
		return NULL;
	pthread_mutex_lock(&ids->lock);
	newest = ids->newest;
	if (newest->ids &&
	    (last_of_all || now_ns >= newest->since_ns + TXIDS_SPAN_MS * CLOCK_NS_PER_MS))
		fill_newest(ids);
	span = find_free(ids);
	if (span)
		span->claimed = true;
	atomic_store(&ids->due_ns, next_due_ns(ids));
	pthread_mutex_unlock(&ids->lock);
	return span;
}

void
txids_cleared(struct txids *ids, struct txid_span *span)
{
	struct txid_span **link = &ids->oldest;

	pthread_mutex_lock(&ids->lock);
	assert(span->claimed && span->running == 0 && span != ids->newest);
	while (*link != span)
		link = &(*link)->next;
	*link = span->next;
	pthread_mutex_unlock(&ids->lock);
	mem_free(span);
}

void
txids_not_cleared(struct txids *ids, struct txid_span *span)
{
	pthread_mutex_lock(&ids->lock);
	span->claimed = false;
	atomic_store(&ids->due_ns, 0);
	pthread_mutex_unlock(&ids->lock);
}

enum status
txid_span_clear(const struct txids *ids, const struct txid_span *span, struct kv_tx *tx)
{
	enum {
		SPAN_BYTES = TXID_OWNER_BYTES + sizeof(uint64_t),
	};
	char begin_bytes[TXID_KEY_MAX_BYTES], end_bytes[TXID_KEY_MAX_BYTES];
	struct str begin, end;

	/* The owner and a number alone sort before every id of that span. */
	TRY(make_key(ids, span->first, 0, SPAN_BYTES, begin_bytes, &begin));
	TRY(make_key(ids, span->last + 1, 0, SPAN_BYTES, end_bytes, &end));
	return kv_clear_range(tx, begin, end);
}
