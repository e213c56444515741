#include "door/mongo/txn/hold.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "door/mongo/txn/client.h"

struct hold {
	struct hold *next;     /* in its bucket */
	struct hold *next_own; /* of the same holder */
	struct holder *holder;
	size_t len;
	char key[];
};

/* A write that waits for a holder's end. It lies on the stack of its fiber. */
struct hold_waiter {
	struct hold_waiter *next;
	const struct holder *holder; /* NULL: it has ended */
	struct event ended;
};

void
holds_init(struct holds *all)
{
	pthread_mutex_init(&all->lock, NULL);
}

void
holds_fini(struct holds *all)
{
	pthread_mutex_destroy(&all->lock);
}

/* ---- With the lock ---- */

static struct hold **
hold_bucket(struct holds *all, struct str key)
{
	return &all->buckets[hash_keyed(0, key) % HOLD_BUCKETS];
}

static struct holder *
hold_find(struct holds *all, struct str key)
{
	for (struct hold *h = *hold_bucket(all, key); h; h = h->next)
		if (str_eq(str_of(h->key, h->len), key) && clock_mono_ns() < h->holder->until_ns)
			return h->holder;
	return NULL;
}

static void
hold_put(struct holds *all, struct holder *holder, struct str key)
{
	struct hold **bucket = hold_bucket(all, key);
	size_t bytes = sizeof(struct hold) + key.len;
	struct hold *h = all->bytes + bytes <= HOLD_BYTES ? mem_alloc(bytes) : NULL;

	holder->overflows = holder->overflows || !h;
	if (!h)
		return;
	*h = (struct hold){
		.next = *bucket, .next_own = holder->first, .holder = holder, .len = key.len
	};
	memcpy(h->key, key.ptr, key.len);
	*bucket = holder->first = h;
	all->bytes += bytes;
}

static void
hold_remove(struct holds *all, struct hold *h)
{
	struct hold **at = hold_bucket(all, str_of(h->key, h->len));

	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	all->bytes -= sizeof(*h) + h->len;
	mem_free(h);
}

static void
waiter_remove(struct holds *all, struct hold_waiter *w)
{
	struct hold_waiter **at = &all->waiters;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
}

/* ---- For all ---- */

void
holder_release(struct holds *all, struct holder *holder)
{
	struct hold *next;

	if (!holder->first)
		return;
	pthread_mutex_lock(&all->lock);
	for (struct hold *h = holder->first; h; h = next) {
		next = h->next_own;
		hold_remove(all, h);
	}
	for (struct hold_waiter *w = all->waiters; w; w = w->next)
		if (w->holder == holder) {
			w->holder = NULL;
			event_set(&w->ended);
		}
	pthread_mutex_unlock(&all->lock);
	*holder = (struct holder){ 0 };
}

/* Compares the document's first value with what the transaction sees, before it writes. */
static enum status
check_unchanged(struct kv_tx *tx, struct str key)
{
	struct str then = { 0 }, now = { 0 };
	struct kv_future *seen, *found;
	struct kv_tx *fresh;
	enum status status;
	bool was, is;

	TRY(kv_begin(kv_tx_store(tx), KV_TX_READ_ONLY, &fresh));
	found = kv_get(fresh, key, KV_SNAPSHOT);
	seen = kv_get(tx, key, KV_SNAPSHOT);
	status = kv_future_wait(found);
	if (status == STATUS_OK)
		status = kv_future_wait(seen);
	if (status == STATUS_OK) {
		is = kv_future_value(found, &now);
		was = kv_future_value(seen, &then);
		if (is != was || (is && !str_eq(now, then)))
			status = STATUS_TX_CONFLICT;
	}
	kv_future_free(seen);
	kv_tx_free(fresh);
	return status;
}

enum status
hold_take(struct holds *all, struct holder *h, struct kv_tx *tx, struct str key)
{
	struct holder *other;

	/* What it has written already would not be told from what others have. */
	if (h->overflows)
		return STATUS_OK;
	pthread_mutex_lock(&all->lock);
	other = hold_find(all, key);
	if (!other)
		hold_put(all, h, key);
	pthread_mutex_unlock(&all->lock);
	if (other)
		return other == h ? STATUS_OK : STATUS_TX_CONFLICT;
	return h->overflows || kv_is_shared(kv_tx_store(tx)) ? STATUS_OK : check_unchanged(tx, key);
}

enum status
hold_await(struct holds *all, struct mongo_client *client, struct str key)
{
	struct hold_waiter w = { 0 };
	enum status status = STATUS_OK;
	uint64_t until_ns = 0;

	if (!atomic_load_explicit(&all->bytes, memory_order_relaxed))
		return STATUS_OK;
	event_init(&w.ended);
	pthread_mutex_lock(&all->lock);
	w.holder = hold_find(all, key);
	if (w.holder) {
		until_ns = w.holder->until_ns;
		w.next = all->waiters;
		all->waiters = &w;
	}
	pthread_mutex_unlock(&all->lock);
	if (!until_ns)
		return STATUS_OK;
	while (status == STATUS_OK && clock_mono_ns() < until_ns) {
		uint64_t look_ns = clock_after_ms(HOLD_LOOK_MS);

		if (event_wait(&w.ended, look_ns < until_ns ? look_ns : until_ns))
			break;
		status = mongo_client_check_waiting(client);
	}
	pthread_mutex_lock(&all->lock);
	waiter_remove(all, &w);
	pthread_mutex_unlock(&all->lock);
	return status == STATUS_OK ? STATUS_TX_CONFLICT : status;
}
