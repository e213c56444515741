/*
 * Clients that wait for something at a key. They look in the order in which they came: when a key
 * may have something, the first of them looks. When it has got it, the next one looks, since more
 * may be there; when it has found nothing, nobody else looks, or a client could get what came in
 * between for the one before it.
 */
#include "base/mem.h"
#include "door/redis/effects.h"
#include "door/redis/redis_int.h"

/* A client at one of the keys that it waits for. */
struct blocked {
	struct blocked *next_same; /* of the slot, the one who came first in front */
	struct blocked **link_same;
	struct blocked *next; /* of the client */
	struct client *client;
	unsigned db;
	struct waited *waited; /* where several processes serve the store; else NULL */
	struct str key;        /* behind the struct */
};

static struct blocked **
blocked_slot(struct redis *r, unsigned db, struct str key)
{
	return &r->blocked[(str_hash(key) + db) % REDIS_BLOCKED_SLOTS];
}

/* The lock is held. `*first` is set if nobody waits for the key yet. */
static enum status
blocked_add(struct client *c, unsigned db, struct str key, bool *first)
{
	struct blocked **at = blocked_slot(c->redis, db, key);
	struct blocked *b = mem_zalloc(sizeof(*b) + key.len);
	char *bytes = (char *)(b + 1);
	bool alone = true;

	if (!b)
		return STATUS_NOMEM;
	if (c->redis->others) {
		enum status status = waited_take(&c->redis->waited, db, key, &b->waited);

		if (status != STATUS_OK) {
			mem_free(b);
			return status;
		}
	}
	memcpy(bytes, key.ptr, key.len);
	b->client = c;
	b->db = db;
	b->key = str_of(bytes, key.len);
	while (*at && (*at)->client->ticket <= c->ticket) {
		alone &= (*at)->client == c || (*at)->db != db || !str_eq((*at)->key, key);
		at = &(*at)->next_same;
	}
	*first |= alone;
	b->next_same = *at;
	b->link_same = at;
	if (*at)
		(*at)->link_same = &b->next_same;
	*at = b;
	b->next = c->blocked_on;
	c->blocked_on = b;
	return STATUS_OK;
}

/* The lock is held. */
static void
blocked_clear(struct client *c)
{
	struct blocked *b = c->blocked_on;

	c->blocked_on = NULL;
	while (b) {
		struct blocked *next = b->next;

		*b->link_same = b->next_same;
		if (b->next_same)
			b->next_same->link_same = b->link_same;
		waited_give(&c->redis->waited, b->waited);
		mem_free(b);
		b = next;
	}
}

enum status
effects_block(struct client *c, unsigned db, const struct str *argv, const size_t *places,
	      size_t count, bool *ret_first)
{
	struct redis *r = c->redis;
	enum status status = STATUS_OK;

	*ret_first = false;
	pthread_mutex_lock(&r->blocked_lock);
	if (!c->ticket) {
		c->ticket = ++r->next_ticket;
		atomic_fetch_add(&r->blocked_count, 1);
	}
	for (size_t i = 0; i < count && status == STATUS_OK; i++)
		status = blocked_add(c, db, argv[places[i]], ret_first);
	pthread_mutex_unlock(&r->blocked_lock);
	if (status != STATUS_OK)
		effects_unblock(c);
	else if (r->others)
		bell_ring(&r->waited.bell);
	return status;
}

void
effects_unblock(struct client *c)
{
	struct redis *r = c->redis;

	pthread_mutex_lock(&r->blocked_lock);
	blocked_clear(c);
	if (c->ticket)
		atomic_fetch_sub(&r->blocked_count, 1);
	c->ticket = 0;
	pthread_mutex_unlock(&r->blocked_lock);
}

/* The lock is held. Signals the first behind `ticket` that waits for the key. */
static void
ready_key(struct redis *r, unsigned db, struct str key, uint64_t ticket)
{
	for (struct blocked *b = *blocked_slot(r, db, key); b; b = b->next_same) {
		if (b->db != db || b->client->ticket <= ticket || !str_eq(b->key, key))
			continue;
		client_signal(b->client, CLIENT_READY);
		return;
	}
}

void
effects_ready(struct redis *r, unsigned db, struct str key)
{
	if (!atomic_load_explicit(&r->blocked_count, memory_order_acquire))
		return;
	pthread_mutex_lock(&r->blocked_lock);
	ready_key(r, db, key, 0);
	pthread_mutex_unlock(&r->blocked_lock);
}

void
effects_ready_all(struct redis *r, unsigned db)
{
	if (!atomic_load_explicit(&r->blocked_count, memory_order_acquire))
		return;
	pthread_mutex_lock(&r->blocked_lock);
	for (size_t i = 0; i < REDIS_BLOCKED_SLOTS; i++)
		for (const struct blocked *b = r->blocked[i]; b; b = b->next_same)
			if (b->db == db)
				ready_key(r, db, b->key, 0);
	pthread_mutex_unlock(&r->blocked_lock);
}

void
effects_pass_on(struct client *c)
{
	struct redis *r = c->redis;

	pthread_mutex_lock(&r->blocked_lock);
	for (struct blocked *b = c->blocked_on; b; b = b->next)
		ready_key(r, b->db, b->key, c->ticket);
	pthread_mutex_unlock(&r->blocked_lock);
}
