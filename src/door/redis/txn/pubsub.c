#include "door/redis/txn/pubsub.h"

#include <assert.h>
#include <stddef.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/metric.h"
#include "door/redis/txn/effects.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/wire/glob.h"
#include "loop/step.h"

METRIC_COUNTER(patterns_compared, "frond_redis_patterns_compared_total", METRIC_NUMBER,
	       "Patterns of subscribers that a channel's name was compared with.");

enum {
	/* Of a message beside its texts: headers and ends of lines, the word "pmessage". */
	MESSAGE_FRAME_BYTES = 160,
};

struct channel {
	struct hash_entry entry; /* of struct redis */
	struct subscription *subscriptions;
	size_t count;
	struct str name; /* behind the struct */
	/* Of a pattern: its place among those that begin alike. */
	struct beginning *beginning;
	struct channel *next_alike;
	struct channel **link_alike;
};

/* What patterns begin with. */
struct beginning {
	struct hash_entry entry; /* of struct redis */
	struct channel *patterns;
	struct str name; /* behind the struct */
};

struct subscription {
	struct hash_entry entry; /* of the client */
	struct client *client;
	struct channel *channel;
	struct subscription *next; /* of the client */
	struct subscription **link;
	struct subscription *next_same; /* of the channel */
	struct subscription **link_same;
};

static_assert(offsetof(struct channel, entry) == 0 && offsetof(struct subscription, entry) == 0 &&
		      offsetof(struct beginning, entry) == 0,
	      "an entry is what it is of");

enum {
	REMOVED_AT_ONCE = 64, /* subscriptions of a client that ends, while others wait */
};

static uint64_t
channel_hash(struct str name)
{
	return hash_keyed(0, name);
}

static struct channel *
channel_of(struct hash_entry *entry)
{
	return (struct channel *)entry;
}

static struct channel *
channel_find(struct redis *r, enum pubsub_kind kind, struct str name)
{
	uint64_t hash = channel_hash(name);
	struct hash_entry *e = hash_table_find(&r->channels[kind], hash);

	while (e && (e->hash != hash || !str_eq(channel_of(e)->name, name)))
		e = e->next;
	return channel_of(e);
}

/* ---- Patterns by what they begin with ---- */

/* What all names begin with that the pattern matches: up to its first special character. */
static struct str
pattern_beginning(struct str pattern)
{
	size_t n = 0;

	while (n < pattern.len && n < PUBSUB_BEGINNING_BYTES &&
	       !memchr("*?[\\", pattern.ptr[n], strlen("*?[\\")))
		n++;
	return str_of(pattern.ptr, n);
}

static struct beginning *
beginning_find(struct redis *r, struct str name)
{
	uint64_t hash = channel_hash(name);
	struct hash_entry *e = hash_table_find(&r->beginnings, hash);

	while (e && (e->hash != hash || !str_eq(((struct beginning *)e)->name, name)))
		e = e->next;
	return (struct beginning *)e;
}

static struct beginning *
beginning_make(struct redis *r, struct str name)
{
	struct beginning *b = mem_zalloc(sizeof(*b) + name.len);
	char *bytes = (char *)(b + 1);

	if (!b)
		return NULL;
	if (name.len)
		memcpy(bytes, name.ptr, name.len);
	b->name = str_of(bytes, name.len);
	b->entry.hash = channel_hash(name);
	if (!hash_table_add(&r->beginnings, &b->entry)) {
		mem_free(b);
		return NULL;
	}
	r->beginning_lengths[name.len]++;
	return b;
}

static bool
pattern_add(struct redis *r, struct channel *ch)
{
	struct str name = pattern_beginning(ch->name);
	struct beginning *b = beginning_find(r, name);

	if (!b)
		b = beginning_make(r, name);
	if (!b)
		return false;
	ch->beginning = b;
	ch->next_alike = b->patterns;
	ch->link_alike = &b->patterns;
	if (b->patterns)
		b->patterns->link_alike = &ch->next_alike;
	b->patterns = ch;
	return true;
}

static void
pattern_remove(struct redis *r, struct channel *ch)
{
	struct beginning *b = ch->beginning;

	*ch->link_alike = ch->next_alike;
	if (ch->next_alike)
		ch->next_alike->link_alike = ch->link_alike;
	if (b->patterns)
		return;
	hash_table_remove(&r->beginnings, &b->entry);
	r->beginning_lengths[b->name.len]--;
	mem_free(b);
}

/* Goes through the patterns that begin as the name does. The lock is held. */
static void
patterns_each(struct redis *r, struct str name, void (*take)(struct channel *ch, void *arg),
	      void *arg)
{
	for (size_t n = 0; n <= name.len && n <= PUBSUB_BEGINNING_BYTES; n++) {
		struct beginning *b = NULL;

		if (r->beginning_lengths[n])
			b = beginning_find(r, str_of(name.ptr, n));
		for (struct channel *ch = b ? b->patterns : NULL; ch; ch = ch->next_alike)
			take(ch, arg);
	}
}

/* ---- Channels ---- */

static struct channel *
channel_make(struct redis *r, enum pubsub_kind kind, struct str name)
{
	struct channel *ch = mem_zalloc(sizeof(*ch) + name.len);
	char *bytes = (char *)(ch + 1);

	if (!ch)
		return NULL;
	memcpy(bytes, name.ptr, name.len);
	ch->name = str_of(bytes, name.len);
	ch->entry.hash = channel_hash(name);
	if (kind == PUBSUB_PATTERN && !pattern_add(r, ch)) {
		mem_free(ch);
		return NULL;
	}
	if (!hash_table_add(&r->channels[kind], &ch->entry)) {
		if (kind == PUBSUB_PATTERN)
			pattern_remove(r, ch);
		mem_free(ch);
		return NULL;
	}
	return ch;
}

static void
channel_drop_if_empty(struct redis *r, enum pubsub_kind kind, struct channel *ch)
{
	if (ch->count)
		return;
	if (kind == PUBSUB_PATTERN)
		pattern_remove(r, ch);
	hash_table_remove(&r->channels[kind], &ch->entry);
	mem_free(ch);
}

/* ---- Subscribing ---- */

static struct subscription *
subscription_find(struct client *c, enum pubsub_kind kind, struct str name)
{
	uint64_t hash = channel_hash(name);
	struct hash_entry *e = hash_table_find(&c->subscribed[kind], hash);

	while (e && (e->hash != hash || !str_eq(((struct subscription *)e)->channel->name, name)))
		e = e->next;
	return (struct subscription *)e;
}

/* What counts for a subscription, as if nobody else had the channel. */
static size_t
subscription_bytes(struct str name)
{
	return sizeof(struct subscription) + sizeof(struct channel) + name.len;
}

static enum status
subscription_add(struct client *c, enum pubsub_kind kind, struct str name)
{
	struct subscription *s = mem_zalloc(sizeof(*s));
	struct channel *ch = channel_find(c->redis, kind, name);

	if (s && !ch)
		ch = channel_make(c->redis, kind, name);
	if (s && ch) {
		s->client = c;
		s->channel = ch;
		s->entry.hash = ch->entry.hash;
	}
	if (!s || !ch || !hash_table_add(&c->subscribed[kind], &s->entry)) {
		if (ch)
			channel_drop_if_empty(c->redis, kind, ch);
		mem_free(s);
		return STATUS_NOMEM;
	}
	s->next = c->subscriptions[kind];
	s->link = &c->subscriptions[kind];
	if (s->next)
		s->next->link = &s->next;
	c->subscriptions[kind] = s;
	s->next_same = ch->subscriptions;
	s->link_same = &ch->subscriptions;
	if (s->next_same)
		s->next_same->link_same = &s->next_same;
	ch->subscriptions = s;
	ch->count++;
	atomic_fetch_add(&c->subscription_count[kind], 1);
	return STATUS_OK;
}

static void
subscription_remove(struct client *c, enum pubsub_kind kind, struct subscription *s)
{
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	*s->link_same = s->next_same;
	if (s->next_same)
		s->next_same->link_same = s->link_same;
	hash_table_remove(&c->subscribed[kind], &s->entry);
	budget_unuse(c->part, subscription_bytes(s->channel->name));
	s->channel->count--;
	channel_drop_if_empty(c->redis, kind, s->channel);
	atomic_fetch_sub(&c->subscription_count[kind], 1);
	mem_free(s);
}

enum status
pubsub_subscribe(struct client *c, enum pubsub_kind kind, struct str name, struct err *err)
{
	size_t bytes = subscription_bytes(name);
	enum status status = STATUS_OK;
	bool known;

	if (atomic_load(&c->subscription_count[kind]) >= PUBSUB_SUBSCRIPTIONS)
		return err_set(err, STATUS_LIMIT,
			       "a connection may have %d subscriptions (PUBSUB_SUBSCRIPTIONS)",
			       PUBSUB_SUBSCRIPTIONS);
	if (!budget_use(c->part, bytes)) {
		METRIC_REFUSED("memory_bytes");
		return err_set(err, STATUS_NOMEM,
			       "there is no memory for the subscription (memory_bytes)");
	}
	pthread_rwlock_wrlock(&c->redis->pubsub_lock);
	known = subscription_find(c, kind, name);
	if (!known)
		status = subscription_add(c, kind, name);
	pthread_rwlock_unlock(&c->redis->pubsub_lock);
	if (known || status != STATUS_OK)
		budget_unuse(c->part, bytes);
	return status;
}

void
pubsub_unsubscribe(struct client *c, enum pubsub_kind kind, struct str name)
{
	struct subscription *s;

	pthread_rwlock_wrlock(&c->redis->pubsub_lock);
	s = subscription_find(c, kind, name);
	if (s)
		subscription_remove(c, kind, s);
	pthread_rwlock_unlock(&c->redis->pubsub_lock);
}

bool
pubsub_any(struct client *c, enum pubsub_kind kind, struct str *ret)
{
	/* Only the client's own fiber changes its list. */
	if (!c->subscriptions[kind])
		return false;
	*ret = c->subscriptions[kind]->channel->name;
	return true;
}

bool
pubsub_all(struct client *c, enum pubsub_kind kind, bool (*fine)(void *arg, struct str name),
	   void *arg)
{
	/* As above. */
	for (const struct subscription *s = c->subscriptions[kind]; s; s = s->next)
		if (!fine(arg, s->channel->name))
			return false;
	return true;
}

void
pubsub_unsubscribe_all(struct client *c)
{
	for (int kind = 0; kind < PUBSUB_KINDS; kind++) {
		/* Only the client's own fiber changes its list. */
		while (c->subscriptions[kind]) {
			pthread_rwlock_wrlock(&c->redis->pubsub_lock);
			for (int i = 0; i < REMOVED_AT_ONCE && c->subscriptions[kind]; i++)
				subscription_remove(c, (enum pubsub_kind)kind,
						    c->subscriptions[kind]);
			pthread_rwlock_unlock(&c->redis->pubsub_lock);
			step_pause(REMOVED_AT_ONCE * PUBSUB_STEPS);
		}
	}
}

bool
pubsub_has_subscribers(struct redis *r)
{
	bool has = false;

	pthread_rwlock_rdlock(&r->pubsub_lock);
	for (int kind = 0; kind < PUBSUB_KINDS; kind++)
		has |= r->channels[kind].count > 0;
	pthread_rwlock_unlock(&r->pubsub_lock);
	return has;
}

/* The lock is held. */
static void
channels_each(struct redis *r, enum pubsub_kind kind, void (*take)(struct channel *ch, void *arg),
	      void *arg)
{
	const struct hash_table *t = &r->channels[kind];

	for (size_t i = 0; i < t->slot_count; i++)
		for (struct hash_entry *e = t->slots[i]; e; e = e->next)
			take(channel_of(e), arg);
}

static void
channel_close(struct channel *ch, void *arg)
{
	(void)arg;
	for (struct subscription *s = ch->subscriptions; s; s = s->next_same)
		client_signal(s->client, CLIENT_OVERFLOWED);
}

void
pubsub_close_all(struct redis *r)
{
	pthread_rwlock_rdlock(&r->pubsub_lock);
	for (int kind = 0; kind < PUBSUB_KINDS; kind++)
		channels_each(r, (enum pubsub_kind)kind, channel_close, NULL);
	pthread_rwlock_unlock(&r->pubsub_lock);
}

/* ---- Messages ---- */

/* A message as those who have subscribed get it. */
struct message {
	const char *word;
	const struct str *pattern; /* NULL: they have subscribed to the channel itself */
	struct str channel;
	struct str text;
};

/* Those that have not read what they were sent make room for a message; they are slow. */
static void
channel_end_those_behind(const struct channel *ch)
{
	for (const struct subscription *s = ch->subscriptions; s; s = s->next_same)
		client_end_if_behind(s->client);
}

/*
 * What is sent to a client of that version of RESP. NULL: there is no memory, even after the slow
 * ones of the channel have been ended.
 */
static struct push *
message_make(const struct channel *ch, const struct message *m, int version)
{
	size_t most = m->channel.len + m->text.len + MESSAGE_FRAME_BYTES;
	const struct budget_part *of = ch->subscriptions->client->part;
	struct reply reply = { .version = version };
	struct push *p;

	if (m->pattern)
		most += m->pattern->len;
	p = push_new(of, most, false);
	if (!p) {
		METRIC_REFUSED("memory_bytes");
		channel_end_those_behind(ch);
		p = push_new(of, most, true);
	}
	if (!p)
		return NULL;
	reply.out = &p->bytes;
	reply_push(&reply, m->pattern ? 4 : 3);
	reply_bulk_cstr(&reply, m->word);
	if (m->pattern)
		reply_bulk(&reply, *m->pattern);
	reply_bulk(&reply, m->channel);
	reply_bulk(&reply, m->text);
	assert(buf_status(&p->bytes) == STATUS_OK);
	return p;
}

static void
message_send(const struct channel *ch, const struct message *m)
{
	/* For each version of RESP, of which it is made once, also if that fails. */
	struct push *made[2] = { NULL, NULL };
	bool tried[2] = { false, false };

	for (const struct subscription *s = ch->subscriptions; s; s = s->next_same) {
		int version = atomic_load_explicit(&s->client->version, memory_order_relaxed);
		size_t i = version == 3;

		if (!tried[i])
			made[i] = message_make(ch, m, version);
		tried[i] = true;
		client_push(s->client, made[i]);
	}
	push_unref(made[0]);
	push_unref(made[1]);
}

struct publishing {
	struct str name;
	const struct str *message; /* NULL: those who would get one are counted */
	size_t count;
};

static void
publish_to_pattern(struct channel *ch, void *arg)
{
	struct publishing *p = arg;

	metric_add(&patterns_compared, 1);
	if (!glob_matches(ch->name, p->name, false))
		return;
	p->count += ch->count;
	if (p->message)
		message_send(ch, &(struct message){ .word = "pmessage",
						    .pattern = &ch->name,
						    .channel = p->name,
						    .text = *p->message });
}

/* Goes through those who get it; sends if there is a message. */
static size_t
publish(struct redis *r, bool shard, struct str name, const struct str *message)
{
	enum pubsub_kind kind = shard ? PUBSUB_SHARD : PUBSUB_CHANNEL;
	struct publishing p = { .name = name, .message = message };
	struct channel *ch;

	pthread_rwlock_rdlock(&r->pubsub_lock);
	ch = channel_find(r, kind, name);
	if (ch) {
		p.count += ch->count;
		if (message)
			message_send(ch, &(struct message){ .word = shard ? "smessage" : "message",
							    .channel = name,
							    .text = *message });
	}
	if (!shard)
		patterns_each(r, name, publish_to_pattern, &p);
	pthread_rwlock_unlock(&r->pubsub_lock);
	return p.count;
}

size_t
effects_publish(struct redis *r, bool shard, struct str channel, struct str message)
{
	return publish(r, shard, channel, &message);
}

size_t
pubsub_receivers(struct redis *r, bool shard, struct str channel)
{
	return publish(r, shard, channel, NULL);
}

size_t
pubsub_subscribers(struct redis *r, enum pubsub_kind kind, struct str name)
{
	const struct channel *ch;
	size_t count;

	pthread_rwlock_rdlock(&r->pubsub_lock);
	ch = channel_find(r, kind, name);
	count = ch ? ch->count : 0;
	pthread_rwlock_unlock(&r->pubsub_lock);
	return count;
}

struct naming {
	void (*take)(void *arg, struct str name);
	void *arg;
};

static void
channel_name(struct channel *ch, void *arg)
{
	const struct naming *n = arg;

	n->take(n->arg, ch->name);
}

void
pubsub_each(struct redis *r, enum pubsub_kind kind, void (*take)(void *arg, struct str name),
	    void *arg)
{
	struct naming n = { .take = take, .arg = arg };

	pthread_rwlock_rdlock(&r->pubsub_lock);
	channels_each(r, kind, channel_name, &n);
	pthread_rwlock_unlock(&r->pubsub_lock);
}
