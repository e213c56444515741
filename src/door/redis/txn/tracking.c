#include "door/redis/txn/tracking.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/metric.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/wire/reply.h"
#include "net/memory.h"

enum {
	FRAME_BYTES = 128,    /* of a message beside its keys */
	KEY_FRAME_BYTES = 32, /* of one of them beside its bytes */
	FEW_KEYS = 16,        /* of a commit, for which no memory is asked */
};

#define CHANNEL STR("__redis__:invalidate")

struct tracked_key;

/* One client's note of one key. */
struct track {
	struct tracker *tracker;
	struct tracked_key *key;
	struct track *next_same; /* of the key */
	struct track **link_same;
	struct track *next; /* of the client */
	struct track **link;
};

struct tracked_key {
	struct hash_entry entry; /* first */
	struct track *tracks;
	size_t len;
	char bytes[];
};

struct tracking_prefix {
	struct tracking_prefix *next;
	size_t len;
	char bytes[];
};

/* A client that tracks. The table's lock owns it, but the pointer to it is its client's fiber's. */
struct tracker {
	struct client *client;
	unsigned flags;
	uint64_t redirect;
	struct client *to; /* NULL: it does not redirect, or whom it redirects to has left */
	struct tracking_prefix *prefixes;
	size_t prefix_count;
	struct track *tracks;
	struct budget_part part; /* that counts its tracks */
	struct tracker *next;
	struct tracker **link;
};

struct tracking {
	pthread_mutex_t lock;
	struct hash_table keys;
	size_t cursor; /* of the slot in which room is made next */
	size_t items;
	size_t prefixes;
	struct tracker *trackers;
	_Atomic size_t clients;
	_Atomic uint64_t most_keys;
	_Atomic uint64_t moment; /* counts changes while anybody tracks */
	/* When a key of the slot was changed last; 0: not since somebody tracks. */
	_Atomic uint64_t changed[TRACKING_SLOTS];
};

struct tracking *
tracking_new(void)
{
	struct tracking *t = mem_zalloc(sizeof(*t));

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	atomic_store(&t->most_keys, TRACKING_KEYS);
	return t;
}

void
tracking_free(struct tracking *t)
{
	if (!t)
		return;
	assert(!t->trackers && t->items == 0);
	hash_table_clear(&t->keys);
	mem_free(t->keys.slots);
	pthread_mutex_destroy(&t->lock);
	mem_free(t);
}

/* ---- Messages: with the lock ---- */

/* Who gets the client's messages; NULL: nobody can. */
static struct client *
tracker_receiver(struct tracker *k)
{
	struct client *to = k->redirect ? k->to : k->client;

	if (!to)
		return NULL;
	if (atomic_load_explicit(&to->version, memory_order_relaxed) == 3)
		return to;
	/* RESP2 has no messages but those of channels. */
	return k->redirect && client_has_subscriptions(to) ? to : NULL;
}

static void
tracker_tell_broken(struct tracker *k)
{
	struct reply reply = { .version = 3 };
	struct push *p;

	if (atomic_load_explicit(&k->client->version, memory_order_relaxed) != 3)
		return;
	p = push_new(k->client->part, FRAME_BYTES, true);
	if (p) {
		reply.out = &p->bytes;
		reply_push(&reply, 2);
		reply_bulk_cstr(&reply, "tracking-redir-broken");
		reply_int(&reply, (int64_t)k->redirect);
	}
	client_push(k->client, p);
	push_unref(p);
}

/* Tells the client of keys; none: of all keys. */
static void
tracker_tell(struct tracker *k, const struct str *keys, size_t count)
{
	struct client *to = tracker_receiver(k);
	struct reply reply = { 0 };
	size_t most = FRAME_BYTES;
	struct push *p;

	if (k->redirect && !k->to)
		tracker_tell_broken(k);
	if (!to)
		return;
	reply.version = atomic_load_explicit(&to->version, memory_order_relaxed);
	for (size_t i = 0; i < count; i++)
		most += KEY_FRAME_BYTES + keys[i].len;
	p = push_new(to->part, most, true);
	if (!p)
		METRIC_REFUSED("memory_bytes");
	if (p) {
		reply.out = &p->bytes;
		reply_push(&reply, reply.version == 3 ? 2 : 3);
		if (reply.version == 3) {
			reply_bulk_cstr(&reply, "invalidate");
		} else {
			reply_bulk_cstr(&reply, "message");
			reply_bulk(&reply, CHANNEL);
		}
		if (count)
			reply_array(&reply, count);
		else
			reply_null_array(&reply);
		for (size_t i = 0; i < count; i++)
			reply_bulk(&reply, keys[i]);
	}
	/* Without one the client has missed a change, and its connection ends. */
	client_push(to, p);
	push_unref(p);
}

/* ---- The table: with the lock ---- */

static size_t
track_bytes(const struct tracked_key *key)
{
	return sizeof(struct track) + sizeof(*key) + key->len;
}

static struct tracked_key *
key_find(struct tracking *t, struct str key, uint64_t hash)
{
	struct hash_entry *e = hash_table_find(&t->keys, hash);

	for (; e; e = e->next) {
		struct tracked_key *k = (struct tracked_key *)e;

		if (e->hash == hash && str_eq(str_of(k->bytes, k->len), key))
			return k;
	}
	return NULL;
}

static void
key_drop_if_empty(struct tracking *t, struct tracked_key *key)
{
	if (key->tracks)
		return;
	hash_table_remove(&t->keys, &key->entry);
	mem_free(key);
}

static void
track_remove(struct tracking *t, struct track *track)
{
	*track->link = track->next;
	if (track->next)
		track->next->link = track->link;
	*track->link_same = track->next_same;
	if (track->next_same)
		track->next_same->link_same = track->link_same;
	budget_unuse(&track->tracker->part, track_bytes(track->key));
	t->items--;
	mem_free(track);
}

/* Tells all who have noted the key, but `by` if it wants to hear nothing of its own. */
static void
key_tell(struct tracking *t, struct tracked_key *key, const struct client *by)
{
	struct str name = str_of(key->bytes, key->len);

	while (key->tracks) {
		struct tracker *k = key->tracks->tracker;

		track_remove(t, key->tracks);
		if (k->client != by || !(k->flags & TRACKING_NOLOOP))
			tracker_tell(k, &name, 1);
	}
	key_drop_if_empty(t, key);
}

/* Makes room where there are too many keys: those who have noted one are told of it. */
static void
keys_make_room(struct tracking *t)
{
	uint64_t most = atomic_load(&t->most_keys);

	while (most && t->keys.count > most) {
		struct hash_entry *e;

		t->cursor = (t->cursor + 1) % t->keys.slot_count;
		e = t->keys.slots[t->cursor];
		if (e)
			key_tell(t, (struct tracked_key *)e, NULL);
	}
}

static bool
tracker_has(const struct tracker *k, const struct tracked_key *key)
{
	for (const struct track *track = key->tracks; track; track = track->next_same)
		if (track->tracker == k)
			return true;
	return false;
}

/* False: there is no memory for the note. */
static bool
key_note(struct tracking *t, struct tracker *k, struct str name, uint64_t hash)
{
	struct tracked_key *key = key_find(t, name, hash);
	struct track *track;

	if (key && tracker_has(k, key))
		return true;
	if (!key) {
		key = mem_zalloc(sizeof(*key) + name.len);
		if (!key)
			return false;
		key->entry.hash = hash;
		key->len = name.len;
		memcpy(key->bytes, name.ptr, name.len);
		if (!hash_table_add(&t->keys, &key->entry)) {
			mem_free(key);
			return false;
		}
	}
	track = mem_alloc(sizeof(*track));
	if (!track || !budget_use(&k->part, track_bytes(key))) {
		mem_free(track);
		key_drop_if_empty(t, key);
		return false;
	}
	*track = (struct track){ .tracker = k,
				 .key = key,
				 .next_same = key->tracks,
				 .link_same = &key->tracks,
				 .next = k->tracks,
				 .link = &k->tracks };
	if (track->next_same)
		track->next_same->link_same = &track->next_same;
	if (track->next)
		track->next->link = &track->next;
	key->tracks = k->tracks = track;
	t->items++;
	return true;
}

/* ---- Beginning and ending ---- */

struct searched {
	uint64_t id;
	struct client *found;
};

static void
search_one(void *arg, struct clients_entry *e)
{
	struct searched *s = arg;

	if (e->id == s->id && !((struct client *)e)->leaves)
		s->found = (struct client *)e;
}

static bool
prefixes_overlap(struct str a, struct str b)
{
	return str_starts_with(a, b) || str_starts_with(b, a);
}

static enum status
check_prefixes(const struct tracker *k, const struct tracking_options *o, struct err *err)
{
	for (size_t i = 0; i < o->prefix_count; i++) {
		for (const struct tracking_prefix *p = k ? k->prefixes : NULL; p; p = p->next)
			if (prefixes_overlap(o->prefixes[i], str_of(p->bytes, p->len)))
				return err_set(err, STATUS_INVALID,
					       "ERR Prefix '%.*s' overlaps with an existing prefix "
					       "'%.*s'. Prefixes for a single client must not "
					       "overlap.",
					       STR_ARG(o->prefixes[i]), (int)p->len, p->bytes);
		for (size_t j = i + 1; j < o->prefix_count; j++)
			if (prefixes_overlap(o->prefixes[i], o->prefixes[j]))
				return err_set(err, STATUS_INVALID,
					       "ERR Prefix '%.*s' overlaps with another provided "
					       "prefix '%.*s'. Prefixes for a single client must "
					       "not overlap.",
					       STR_ARG(o->prefixes[i]), STR_ARG(o->prefixes[j]));
	}
	if ((k ? k->prefix_count : 0) + o->prefix_count > TRACKING_PREFIXES)
		return err_set(err, STATUS_LIMIT,
			       "ERR a connection may have %d prefixes (TRACKING_PREFIXES)",
			       TRACKING_PREFIXES);
	return STATUS_OK;
}

static enum status
tracker_add_prefixes(struct tracking *t, struct tracker *k, const struct tracking_options *o)
{
	const struct str all = STR("");
	const struct str *prefixes = o->prefixes;
	size_t count = o->prefix_count;

	/* Without any, of every key. */
	if (count == 0 && k->prefix_count == 0) {
		prefixes = &all;
		count = 1;
	}
	for (size_t i = 0; i < count; i++) {
		struct tracking_prefix *p = mem_alloc(sizeof(*p) + prefixes[i].len);

		if (!p || !budget_use(&k->part, sizeof(*p) + prefixes[i].len)) {
			mem_free(p);
			return STATUS_NOMEM;
		}
		p->len = prefixes[i].len;
		memcpy(p->bytes, prefixes[i].ptr, prefixes[i].len);
		p->next = k->prefixes;
		k->prefixes = p;
		k->prefix_count++;
		t->prefixes++;
	}
	return STATUS_OK;
}

static struct tracker *
tracker_new(struct tracking *t, struct client *c)
{
	struct tracker *k = mem_zalloc(sizeof(*k));

	if (!k)
		return NULL;
	k->client = c;
	net_memory_part_init(&k->part, c->part, false);
	k->next = t->trackers;
	k->link = &t->trackers;
	if (k->next)
		k->next->link = &k->next;
	t->trackers = k;
	atomic_fetch_add(&t->clients, 1);
	return k;
}

static void
tracker_free(struct tracking *t, struct tracker *k)
{
	while (k->tracks) {
		struct tracked_key *key = k->tracks->key;

		track_remove(t, k->tracks);
		key_drop_if_empty(t, key);
	}
	while (k->prefixes) {
		struct tracking_prefix *p = k->prefixes;

		k->prefixes = p->next;
		budget_unuse(&k->part, sizeof(*p) + p->len);
		mem_free(p);
		t->prefixes--;
	}
	*k->link = k->next;
	if (k->next)
		k->next->link = k->link;
	budget_part_release(&k->part);
	mem_free(k);
	atomic_fetch_sub(&t->clients, 1);
}

/* With the lock. */
static enum status
tracking_set(struct tracking *t, struct client *c, const struct tracking_options *o,
	     struct err *err)
{
	struct searched searched = { .id = o->redirect };

	if (o->redirect) {
		clients_each(&c->redis->clients, search_one, &searched);
		if (!searched.found)
			return err_set(err, STATUS_NOT_FOUND,
				       "ERR The client ID you want redirect to does not exist");
	}
	TRY(check_prefixes(c->tracker, o, err));
	if (!c->tracker)
		c->tracker = tracker_new(t, c);
	if (!c->tracker)
		return STATUS_NOMEM;
	c->tracker->flags = o->flags;
	c->tracker->redirect = o->redirect;
	c->tracker->to = searched.found;
	atomic_store(&c->tracks_to, o->redirect);
	atomic_store(&c->tracks, o->flags & TRACKING_BCAST ? CLIENT_TRACKS | CLIENT_TRACKS_PREFIXES
							   : CLIENT_TRACKS);
	return o->flags & TRACKING_BCAST ? tracker_add_prefixes(t, c->tracker, o) : STATUS_OK;
}

enum status
tracking_begin(struct client *c, const struct tracking_options *o, struct err *err)
{
	struct tracking *t = c->redis->tracking;
	enum status status;

	pthread_mutex_lock(&t->lock);
	status = tracking_set(t, c, o, err);
	pthread_mutex_unlock(&t->lock);
	if (status == STATUS_NOMEM) {
		METRIC_REFUSED("memory_bytes");
		tracking_end(c);
		return err_set(err, status, "OOM there is no memory for it (memory_bytes)");
	}
	return status;
}

void
tracking_end(struct client *c)
{
	struct tracking *t = c->redis->tracking;

	if (!c->tracker)
		return;
	pthread_mutex_lock(&t->lock);
	tracker_free(t, c->tracker);
	pthread_mutex_unlock(&t->lock);
	c->tracker = NULL;
	atomic_store(&c->tracks, 0);
	c->caching = CACHING_UNSAID;
}

void
tracking_leave(struct client *c)
{
	struct tracking *t = c->redis->tracking;

	tracking_end(c);
	pthread_mutex_lock(&t->lock);
	c->leaves = true;
	for (struct tracker *k = t->trackers; k; k = k->next)
		if (k->to == c) {
			k->to = NULL;
			atomic_fetch_or(&k->client->tracks, CLIENT_TRACKS_BROKEN);
		}
	pthread_mutex_unlock(&t->lock);
}

bool
tracking_state(struct client *c, struct tracking_state *ret)
{
	struct tracking *t = c->redis->tracking;

	if (!c->tracker)
		return false;
	pthread_mutex_lock(&t->lock);
	*ret = (struct tracking_state){ .flags = c->tracker->flags,
					.redirect = c->tracker->redirect,
					.broken = c->tracker->redirect && !c->tracker->to };
	pthread_mutex_unlock(&t->lock);
	return true;
}

size_t
tracking_prefixes(struct client *c, void (*take)(void *arg, struct str prefix), void *arg)
{
	/* Only its own fiber changes them. */
	if (!c->tracker)
		return 0;
	for (const struct tracking_prefix *p = c->tracker->prefixes; take && p; p = p->next)
		take(arg, str_of(p->bytes, p->len));
	return c->tracker->prefix_count;
}

/* ---- Reads ---- */

bool
tracking_is_on(const struct redis *r)
{
	return atomic_load_explicit(&r->tracking->clients, memory_order_acquire);
}

uint64_t
tracking_moment(const struct redis *r)
{
	return atomic_load_explicit(&r->tracking->moment, memory_order_acquire);
}

static void
note_key(struct tracking *t, struct tracker *k, struct str key, uint64_t moment)
{
	uint64_t hash = hash_keyed(0, key);
	bool noted;

	pthread_mutex_lock(&t->lock);
	noted = atomic_load(&t->changed[hash % TRACKING_SLOTS]) <= moment &&
		key_note(t, k, key, hash);
	if (noted)
		keys_make_room(t);
	else
		tracker_tell(k, &key, 1);
	pthread_mutex_unlock(&t->lock);
}

/* The flags are this client's, which waits for its command. */
static bool
notes_keys(const struct call *c, const struct tracker *k)
{
	return !(k->flags & TRACKING_BCAST) &&
	       !(k->flags & TRACKING_OPTIN && c->x->caching != CACHING_YES) &&
	       !(k->flags & TRACKING_OPTOUT && c->x->caching == CACHING_NO);
}

void
tracking_note(struct call *c)
{
	struct tracker *k = c->client->tracker;
	struct arena_mark mark = arena_mark(c->arena);
	size_t *places;
	size_t count;

	if (!(c->command->flags & COMMAND_READONLY) || c->command->flags & COMMAND_SCRIPT ||
	    !notes_keys(c, k))
		return;
	if (command_keys(c->command, c->argv, c->argc, c->arena, &places, &count) == STATUS_OK)
		for (size_t i = 0; i < count; i++)
			note_key(c->redis->tracking, k, c->argv[places[i]], c->x->moment);
	arena_reset(c->arena, mark);
}

void
tracking_note_keys(struct call *c, const struct str *keys, size_t count)
{
	struct tracker *k = c->client->tracker;

	for (size_t i = 0; i < count && notes_keys(c, k); i++)
		note_key(c->redis->tracking, k, keys[i], c->x->moment);
}

/* ---- Changes: with the lock, but the first ---- */

bool
tracking_is_about(const struct effect *e)
{
	return e->kind == EFFECT_EVENT &&
	       (e->changes || e->class == EVENT_EXPIRED || e->class == EVENT_HASH);
}

static void
key_changed(struct tracking *t, const struct effect *e)
{
	uint64_t hash = hash_keyed(0, e->key);
	struct tracked_key *noted = key_find(t, e->key, hash);

	atomic_store(&t->changed[hash % TRACKING_SLOTS], atomic_fetch_add(&t->moment, 1) + 1);
	if (noted)
		key_tell(t, noted, e->client);
}

/* All keys are gone, or other ones. */
static void
keys_flushed(struct tracking *t)
{
	uint64_t now = atomic_fetch_add(&t->moment, 1) + 1;

	for (size_t i = 0; i < TRACKING_SLOTS; i++)
		atomic_store(&t->changed[i], now);
	for (struct tracker *k = t->trackers; k; k = k->next) {
		while (k->tracks) {
			struct tracked_key *key = k->tracks->key;

			track_remove(t, k->tracks);
			key_drop_if_empty(t, key);
		}
		tracker_tell(k, NULL, 0);
	}
}

/* Tells in one message of all keys of the effects that begin with the prefix. */
static void
prefix_tell(struct tracker *k, struct str prefix, const struct effect *first, struct str *keys)
{
	size_t count = 0;

	for (const struct effect *e = first; e; e = e->next)
		if (tracking_is_about(e) && str_starts_with(e->key, prefix) &&
		    !(k->flags & TRACKING_NOLOOP && e->client == k->client) &&
		    !(count && str_eq(keys[count - 1], e->key)))
			keys[count++] = e->key;
	if (count)
		tracker_tell(k, keys, count);
}

static void
prefixes_tell(struct tracking *t, const struct effect *first)
{
	struct str few[FEW_KEYS], *keys = few;
	size_t count = 0;

	for (const struct effect *e = first; e; e = e->next)
		count += tracking_is_about(e);
	if (count > FEW_KEYS)
		keys = mem_alloc(count * sizeof(*keys));
	for (struct tracker *k = t->trackers; k; k = k->next)
		for (const struct tracking_prefix *p = k->prefixes; p; p = p->next) {
			/* Without memory a client would miss some: it is told of all keys. */
			if (keys)
				prefix_tell(k, str_of(p->bytes, p->len), first, keys);
			else
				tracker_tell(k, NULL, 0);
		}
	if (keys != few)
		mem_free(keys);
}

void
tracking_happen(struct redis *r, const struct effect *first)
{
	struct tracking *t = r->tracking;

	if (!first || !tracking_is_on(r))
		return;
	pthread_mutex_lock(&t->lock);
	for (const struct effect *e = first; e; e = e->next) {
		if (tracking_is_about(e))
			key_changed(t, e);
		else if (e->kind == EFFECT_FLUSH || e->kind == EFFECT_SWAP)
			keys_flushed(t);
	}
	if (t->prefixes)
		prefixes_tell(t, first);
	pthread_mutex_unlock(&t->lock);
}

void
tracking_doubt(struct redis *r)
{
	tracking_happen(r, &(struct effect){ .kind = EFFECT_FLUSH });
}

void
tracking_limit(struct redis *r, uint64_t keys)
{
	struct tracking *t = r->tracking;

	atomic_store(&t->most_keys, keys);
	pthread_mutex_lock(&t->lock);
	keys_make_room(t);
	pthread_mutex_unlock(&t->lock);
}

struct tracking_counts
tracking_count(struct redis *r)
{
	struct tracking *t = r->tracking;
	struct tracking_counts counts;

	pthread_mutex_lock(&t->lock);
	counts = (struct tracking_counts){ .clients = atomic_load(&t->clients),
					   .keys = t->keys.count,
					   .items = t->items,
					   .prefixes = t->prefixes };
	pthread_mutex_unlock(&t->lock);
	return counts;
}
