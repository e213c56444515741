/*
 * Clients that wait for something at a key. They look in the order in which they came: when a key
 * may have something, the first of them looks. When it has got it, the next one looks, since more
 * may be there; when it has found nothing, nobody else looks, or a client could get what came in
 * between for the one before it.
 */
#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/metric.h"
#include "door/redis/txn/effects.h"
#include "door/redis/txn/redis_int.h"

METRIC_COUNTER(looks, "frond_redis_waiters_looked_at_total", METRIC_NUMBER,
	       "Clients in lists of those who wait for a key, each time that one is looked at.");

/* A client at one of the keys that it waits for. */
struct blocked {
	struct blocked *next_same, *prev_same; /* of the key, the one who came first in front */
	struct blocked *next;                  /* of the client */
	struct client *client;
	struct blocked_key *at;
	struct waited *waited; /* where several processes serve the store; else NULL */
};

/* A key that clients wait for. */
struct blocked_key {
	struct hash_entry entry;
	struct blocked *first, *last;
	/*
	 * Whoever stands before this one has got something, in `front_group`, which has claimed
	 * it, or in one that has ended: a look for the next who waits need not begin before. NULL:
	 * that is so of all of them.
	 */
	struct blocked *front;
	const void *front_group;
	unsigned db;
	struct str key; /* behind the struct */
};

/* ---- The lists, with the lock held ---- */

static uint64_t
blocked_hash(unsigned db, struct str key)
{
	return hash_keyed(db, key);
}

/* NULL: nobody waits for the key. */
static struct blocked_key *
blocked_find(struct redis *r, unsigned db, struct str key)
{
	uint64_t hash = blocked_hash(db, key);
	struct hash_entry *e = hash_table_find(&r->blocked, hash);

	for (; e; e = e->next) {
		struct blocked_key *k = (struct blocked_key *)e;

		if (e->hash == hash && k->db == db && str_eq(k->key, key))
			return k;
	}
	return NULL;
}

static struct blocked_key *
blocked_key_add(struct redis *r, unsigned db, struct str key)
{
	struct blocked_key *k = mem_zalloc(sizeof(*k) + key.len);
	char *bytes = (char *)(k + 1);

	if (!k)
		return NULL;
	memcpy(bytes, key.ptr, key.len);
	k->db = db;
	k->key = str_of(bytes, key.len);
	k->entry.hash = blocked_hash(db, key);
	if (hash_table_add(&r->blocked, &k->entry))
		return k;
	mem_free(k);
	return NULL;
}

/* A key for which nobody waits any more is dropped. */
static void
blocked_key_settle(struct redis *r, struct blocked_key *k)
{
	if (k->first)
		return;
	hash_table_remove(&r->blocked, &k->entry);
	mem_free(k);
}

/* The next look for who waits begins with the first. */
static void
blocked_key_restart(struct blocked_key *k)
{
	k->front = k->first;
	k->front_group = NULL;
}

/* True if nobody can stand in the way of one who comes now. */
static bool
blocked_key_is_free(const struct blocked_key *k)
{
	const struct blocked *b = k->front;
	uint64_t count = 0;

	for (; b && (b->client->served || b->client->claimed_by); b = b->next_same)
		count++;
	metric_add(&looks, count + (b != NULL));
	return !b;
}

/* `*first` is set if nobody waits for the key yet. The client has come last. */
static enum status
blocked_add(struct client *c, unsigned db, struct str key, bool *first)
{
	struct redis *r = c->redis;
	struct blocked_key *k = blocked_find(r, db, key);
	enum status status = STATUS_OK;
	struct blocked *b;

	if (k && k->last->client == c)
		return STATUS_OK; /* its command names the key twice */
	if (!k)
		k = blocked_key_add(r, db, key);
	if (!k)
		return STATUS_NOMEM;
	b = mem_zalloc(sizeof(*b));
	if (!b)
		status = STATUS_NOMEM;
	else if (r->others)
		status = waited_take(&r->waited, db, key, &b->waited);
	if (status != STATUS_OK) {
		mem_free(b);
		blocked_key_settle(r, k);
		return status;
	}
	assert(!k->last || k->last->client->ticket < c->ticket);
	*first |= blocked_key_is_free(k);
	b->client = c;
	b->at = k;
	b->prev_same = k->last;
	*(k->last ? &k->last->next_same : &k->first) = b;
	k->last = b;
	if (!k->front)
		k->front = b;
	b->next = c->blocked_on;
	c->blocked_on = b;
	return STATUS_OK;
}

static void
blocked_clear(struct client *c)
{
	struct blocked *b = c->blocked_on;

	c->blocked_on = NULL;
	while (b) {
		struct blocked *next = b->next;
		struct blocked_key *k = b->at;

		*(b->prev_same ? &b->prev_same->next_same : &k->first) = b->next_same;
		*(b->next_same ? &b->next_same->prev_same : &k->last) = b->prev_same;
		if (k->front == b)
			k->front = b->next_same;
		waited_give(&c->redis->waited, b->waited);
		mem_free(b);
		blocked_key_settle(c->redis, k);
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
	assert(!c->ticket);
	c->ticket = ++r->next_ticket;
	atomic_fetch_add(&r->ticket_count, 1);
	if (c->group)
		atomic_fetch_add(&r->group_count, 1);
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
	if (c->ticket && c->group)
		atomic_fetch_sub(&r->group_count, 1);
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
	/* From here on a group may run the job on its own fiber, until effects_withdraw(). */
	assert(c->ticket && !c->offered && !c->claimed_by);
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
	       net_stream_is_leaving(c->stream);
}

/*
 * The lock is held. True if the client's rights may have changed: then its fiber has to look them
 * up before its command is run.
 */
static bool
blocked_has_news(const struct client *c)
{
	return !visit_is_current(&c->entry);
}

/* The lock is held. As effects_claim(), for one client that waits for the key. */
static struct job *
blocked_claim(struct client *c, const void *group, bool *ret_busy)
{
	struct job *job = c->offered;

	if (c->claimed_by == group)
		return job->end == job->count ? NULL : job;
	if (c->claimed_by || c->served) {
		c->missed |= !c->served; /* that group may fail */
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

/* The lock is held. True if a look for the next who waits may pass over this one for good. */
static bool
blocked_is_behind(struct blocked *b, const void *group)
{
	struct client *c = b->client;

	if (c->claimed_by)
		return c->claimed_by == group && c->offered->end == c->offered->count;
	return c->served;
}

/*
 * The lock is held. The first who may wait for the key, where a look of this group begins. Clients
 * that others have claimed are to be told that they have missed something: only the group whose
 * clients are at the front moves that.
 */
static struct blocked *
blocked_front(struct blocked_key *k, const void *group)
{
	uint64_t count = 1;

	if (k->front_group != group) {
		if (k->front_group && k->front != k->first)
			return k->first;
		k->front_group = group;
	}
	for (; k->front && blocked_is_behind(k->front, group); k->front = k->front->next_same)
		count++;
	metric_add(&looks, count);
	return k->front;
}

/* True if a client of the same group of consumers has found nothing at this key. */
static bool
blocked_finds_nothing(const struct client *c, const struct effects_empty *empty)
{
	for (size_t i = 0; c->group && i < empty->count; i++)
		if (empty->groups[i] == c->group)
			return true;
	return false;
}

struct job *
effects_claim(struct redis *r, struct effect *e, const void *group,
	      const struct effects_empty *empty, struct blocked **at)
{
	struct job *job = NULL;
	struct blocked_key *k;
	struct blocked *b;
	uint64_t count = 0;
	bool busy = false;

	pthread_mutex_lock(&r->blocked_lock);
	k = blocked_find(r, e->db, e->key);
	if (*at)
		b = (*at)->next_same;
	else
		b = k ? blocked_front(k, group) : NULL;
	for (; b && !job && !busy; b = b->next_same) {
		count++;
		if (blocked_finds_nothing(b->client, empty))
			continue;
		job = blocked_claim(b->client, group, &busy);
		*at = job ? b : *at;
	}
	e->served = !job && !busy;
	e->served_ticket = r->next_ticket;
	pthread_mutex_unlock(&r->blocked_lock);
	metric_add(&looks, count);
	return job;
}

/* The lock is held. Clients that a group has claimed may wait again, or be gone soon. */
static void
blocked_restart(struct client *c)
{
	for (struct blocked *b = c->blocked_on; b; b = b->next)
		blocked_key_restart(b->at);
}

void
effects_claim_anew(struct redis *r, struct job *claimed)
{
	if (!claimed)
		return;
	pthread_mutex_lock(&r->blocked_lock);
	for (struct job *job = claimed; job; job = job->next_claimed)
		blocked_restart(job->client);
	pthread_mutex_unlock(&r->blocked_lock);
}

void
effects_release(struct redis *r, struct job *claimed)
{
	if (!claimed)
		return;
	pthread_mutex_lock(&r->blocked_lock);
	for (struct job *job = claimed; job; job = job->next_claimed) {
		struct client *c = job->client;

		blocked_restart(c);
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

/*
 * The lock is held. Signals the first who waits for the key, from `b` on. If a group has claimed
 * that one, it looks again, or passes on what it was told, when it is released: that group may have
 * found nothing for it, and who came later must not get what is there before.
 */
static void
ready_from(struct blocked *b)
{
	uint64_t count = 1;

	for (; b && b->client->served; b = b->next_same)
		count++;
	if (b && b->client->claimed_by)
		b->client->missed = true;
	else if (b)
		client_signal(b->client, CLIENT_READY);
	metric_add(&looks, count);
}

static void
ready_key(struct redis *r, unsigned db, struct str key)
{
	const struct blocked_key *k = blocked_find(r, db, key);

	if (k)
		ready_from(k->first);
}

/*
 * The lock is held. The group has run the commands of the clients up to the effect's ticket. A
 * client that came later is signalled, too, unless one that came before it still waits: that one
 * has found nothing at the key, so the later one would find nothing either. Readers of a stream
 * are signalled in any case, since each of them waits for entries behind another id.
 */
static void
ready_newcomer(struct redis *r, const struct effect *e)
{
	struct blocked_key *k = blocked_find(r, e->db, e->key);
	uint64_t count = 1;
	struct blocked *b;

	if (!k)
		return;
	b = blocked_front(k, k->front_group);
	for (; b && (b->client->claimed_by || b->client->served); b = b->next_same)
		count++;
	if (b && b->client->ticket > e->served_ticket)
		client_signal(b->client, CLIENT_READY);
	for (b = k->last; b && b->client->ticket > e->served_ticket; b = b->prev_same, count++)
		if (b->client->shares)
			client_signal(b->client, CLIENT_READY);
	metric_add(&looks, count);
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
		ready_key(r, e->db, e->key);
	pthread_mutex_unlock(&r->blocked_lock);
}

void
effects_ready(struct redis *r, unsigned db, struct str key)
{
	if (!atomic_load_explicit(&r->ticket_count, memory_order_acquire))
		return;
	pthread_mutex_lock(&r->blocked_lock);
	ready_key(r, db, key);
	pthread_mutex_unlock(&r->blocked_lock);
}

void
effects_ready_all(struct redis *r, unsigned db)
{
	if (!atomic_load_explicit(&r->ticket_count, memory_order_acquire))
		return;
	pthread_mutex_lock(&r->blocked_lock);
	for (size_t i = 0; i < r->blocked.slot_count; i++) {
		for (struct hash_entry *e = r->blocked.slots[i]; e; e = e->next) {
			const struct blocked_key *k = (struct blocked_key *)e;

			if (k->db == db)
				ready_from(k->first);
		}
	}
	pthread_mutex_unlock(&r->blocked_lock);
}

/* The lock is held. Signals those who wait for the key and read its stream in a group. */
static void
ready_groups(const struct blocked_key *k)
{
	uint64_t count = 0;

	for (struct blocked *b = k->first; b; b = b->next_same, count++)
		if (b->client->group)
			client_signal(b->client, CLIENT_READY);
	metric_add(&looks, count);
}

void
effects_ready_groups(struct redis *r, unsigned db, const struct str *key)
{
	const struct blocked_key *k;

	if (!atomic_load_explicit(&r->group_count, memory_order_acquire))
		return;
	pthread_mutex_lock(&r->blocked_lock);
	if (key) {
		k = blocked_find(r, db, *key);
		if (k)
			ready_groups(k);
	}
	for (size_t i = 0; !key && i < r->blocked.slot_count; i++) {
		for (struct hash_entry *e = r->blocked.slots[i]; e; e = e->next) {
			k = (struct blocked_key *)e;
			if (k->db == db)
				ready_groups(k);
		}
	}
	pthread_mutex_unlock(&r->blocked_lock);
}

void
effects_pass_on(struct client *c)
{
	struct redis *r = c->redis;

	pthread_mutex_lock(&r->blocked_lock);
	for (struct blocked *b = c->blocked_on; b; b = b->next) {
		struct blocked *next = b->next_same;

		while (next && c->group && next->client->group == c->group)
			next = next->next_same;
		ready_from(next);
	}
	pthread_mutex_unlock(&r->blocked_lock);
}
