/*
 * Clients that wait for something at a key. They look in the order in which they came: when a key
 * may have something, the first of them looks. When it has got it, the next one looks, since more
 * may be there; when it has found nothing, nobody else looks, or a client could get what came in
 * between for the one before it.
 */
#include <assert.h>

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

static bool
blocked_waits_for(const struct blocked *b, unsigned db, struct str key)
{
	return b->db == db && str_eq(b->key, key);
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
		const struct client *other = (*at)->client;

		alone &= other == c || other->served || other->claimed_by ||
			 !blocked_waits_for(*at, db, key);
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
		atomic_fetch_add(&r->ticket_count, 1);
	}
	for (size_t i = 0; i < count && status == STATUS_OK; i++)
		status = blocked_add(c, db, argv[places[i]], ret_first);
	pthread_mutex_unlock(&r->blocked_lock);
	if (status != STATUS_OK)
		(void)effects_unblock(c);
	else if (r->others)
		bell_ring(&r->waited.bell);
	return status;
}

bool
effects_unblock(struct client *c)
{
	struct redis *r = c->redis;
	bool others_look;

	pthread_mutex_lock(&r->blocked_lock);
	assert(!c->offered && !c->claimed_by);
	blocked_clear(c);
	if (c->ticket)
		atomic_fetch_sub(&r->ticket_count, 1);
	c->ticket = 0;
	others_look = !c->served || c->missed;
	c->served = c->missed = false;
	pthread_mutex_unlock(&r->blocked_lock);
	return others_look;
}

/* ---- Jobs that groups run for clients that wait ---- */

void
effects_offer(struct client *c, struct job *job)
{
	pthread_mutex_lock(&c->redis->blocked_lock);
	c->offered = job;
	pthread_mutex_unlock(&c->redis->blocked_lock);
}

bool
effects_withdraw(struct client *c)
{
	struct redis *r = c->redis;
	struct event returned;
	bool waits, served;

	event_init(&returned);
	pthread_mutex_lock(&r->blocked_lock);
	waits = c->claimed_by;
	if (waits)
		c->returned = &returned;
	else
		c->offered = NULL;
	pthread_mutex_unlock(&r->blocked_lock);
	if (waits)
		(void)event_wait(&returned, WAIT_FOREVER);
	/* With the lock, since effects_release() holds it until it has left `returned` alone. */
	pthread_mutex_lock(&r->blocked_lock);
	assert(!c->offered && !c->claimed_by);
	served = c->served;
	pthread_mutex_unlock(&r->blocked_lock);
	return served;
}

/* The lock is held. True if the client gets nothing more: its command is about to end. */
static bool
blocked_is_leaving(struct client *c)
{
	unsigned signals = clients_signals(&c->entry);

	return signals & (CLIENT_ENDED | CLIENT_UNBLOCKED | CLIENT_UNBLOCKED_ERR) ||
	       event_is_set(net_stream_closed_event(c->stream)) ||
	       event_is_set(net_stream_stopping_event(c->stream));
}

/*
 * The lock is held. True if the client's rights may have changed: then its fiber has to look them
 * up before its command is run.
 */
static bool
blocked_has_news(const struct client *c)
{
	return c->authenticated && !follow_is_current(&c->follow, c->redis->config.news);
}

/* The lock is held. As effects_claim(), for one client that waits for the key. */
static struct job *
blocked_claim(struct client *c, const void *group, bool *ret_busy)
{
	struct job *job = c->offered;

	if (c->claimed_by == group)
		return job->end == job->count ? NULL : job;
	if (c->claimed_by || c->served) {
		c->missed = true;
		return NULL;
	}
	*ret_busy = !job;
	if (!job || blocked_is_leaving(c))
		return NULL;
	*ret_busy = blocked_has_news(c);
	if (*ret_busy)
		return NULL;
	c->claimed_by = group;
	return job;
}

struct job *
effects_claim(struct redis *r, struct effect *e, const void *group, uint64_t *ticket)
{
	struct job *job = NULL;
	bool busy = false;

	pthread_mutex_lock(&r->blocked_lock);
	for (struct blocked *b = *blocked_slot(r, e->db, e->key); b && !job && !busy;
	     b = b->next_same) {
		if (b->client->ticket <= *ticket || !blocked_waits_for(b, e->db, e->key))
			continue;
		*ticket = b->client->ticket;
		job = blocked_claim(b->client, group, &busy);
	}
	e->served = !job && !busy;
	e->served_ticket = r->next_ticket;
	pthread_mutex_unlock(&r->blocked_lock);
	return job;
}

void
effects_release(struct redis *r, struct job *claimed)
{
	if (!claimed)
		return;
	pthread_mutex_lock(&r->blocked_lock);
	for (struct job *job = claimed; job; job = job->next_claimed) {
		struct client *c = job->client;

		job->claimed = false;
		c->claimed_by = NULL;
		c->served = job->done == job->count;
		if (c->served || c->returned)
			c->offered = NULL;
		if (c->returned)
			event_set(c->returned);
		if (c->served || c->missed)
			client_signal(c, CLIENT_READY);
		c->returned = NULL;
		c->missed &= c->served;
	}
	pthread_mutex_unlock(&r->blocked_lock);
}

/* ---- Clients that look themselves ---- */

/* The lock is held. Signals the first behind `ticket` that waits for the key. */
static void
ready_key(struct redis *r, unsigned db, struct str key, uint64_t ticket)
{
	for (struct blocked *b = *blocked_slot(r, db, key); b; b = b->next_same) {
		struct client *c = b->client;

		if (c->ticket <= ticket || !blocked_waits_for(b, db, key))
			continue;
		if (!c->claimed_by && !c->served) {
			client_signal(c, CLIENT_READY);
			return;
		}
		c->missed = true;
	}
}

/*
 * The lock is held. The group has run the commands of the clients up to the effect's ticket. A
 * client that came later is signalled, unless one of those before it still waits: that one found
 * nothing at the key, so nothing is there for the later one either.
 */
static void
ready_newcomer(struct redis *r, const struct effect *e)
{
	for (struct blocked *b = *blocked_slot(r, e->db, e->key); b; b = b->next_same) {
		struct client *c = b->client;

		if (c->claimed_by || c->served || !blocked_waits_for(b, e->db, e->key))
			continue;
		if (c->ticket > e->served_ticket)
			client_signal(c, CLIENT_READY);
		return;
	}
}

void
effects_ready_left(struct redis *r, const struct effect *e)
{
	if (!atomic_load_explicit(&r->ticket_count, memory_order_acquire))
		return;
	pthread_mutex_lock(&r->blocked_lock);
	if (e->served)
		ready_newcomer(r, e);
	else
		ready_key(r, e->db, e->key, 0);
	pthread_mutex_unlock(&r->blocked_lock);
}

void
effects_ready(struct redis *r, unsigned db, struct str key)
{
	if (!atomic_load_explicit(&r->ticket_count, memory_order_acquire))
		return;
	pthread_mutex_lock(&r->blocked_lock);
	ready_key(r, db, key, 0);
	pthread_mutex_unlock(&r->blocked_lock);
}

void
effects_ready_all(struct redis *r, unsigned db)
{
	if (!atomic_load_explicit(&r->ticket_count, memory_order_acquire))
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
