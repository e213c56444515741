#include "door/redis/pubsub.h"

#include "base/mem.h"
#include "door/redis/effects.h"
#include "door/redis/redis_int.h"
#include "door/redis/wire/glob.h"

struct channel {
	struct channel *next; /* of the slot */
	struct channel **link;
	struct subscription *subscriptions;
	size_t count;
	struct str name; /* behind the struct */
};

struct subscription {
	struct client *client;
	struct channel *channel;
	struct subscription *next; /* of the client */
	struct subscription **link;
	struct subscription *next_same; /* of the channel */
	struct subscription **link_same;
};

static struct channel **
channel_slot(struct redis *r, enum pubsub_kind kind, struct str name)
{
	return &r->channels[kind][str_hash(name) % REDIS_CHANNEL_SLOTS];
}

static struct channel *
channel_find(struct redis *r, enum pubsub_kind kind, struct str name)
{
	struct channel *ch = *channel_slot(r, kind, name);

	while (ch && !str_eq(ch->name, name))
		ch = ch->next;
	return ch;
}

static struct channel *
channel_make(struct redis *r, enum pubsub_kind kind, struct str name)
{
	struct channel **slot = channel_slot(r, kind, name);
	struct channel *ch = mem_zalloc(sizeof(*ch) + name.len);
	char *bytes = (char *)(ch + 1);

	if (!ch)
		return NULL;
	memcpy(bytes, name.ptr, name.len);
	ch->name = str_of(bytes, name.len);
	ch->next = *slot;
	ch->link = slot;
	if (*slot)
		(*slot)->link = &ch->next;
	*slot = ch;
	r->channel_count[kind]++;
	return ch;
}

static void
channel_drop_if_empty(struct redis *r, enum pubsub_kind kind, struct channel *ch)
{
	if (ch->count)
		return;
	*ch->link = ch->next;
	if (ch->next)
		ch->next->link = ch->link;
	r->channel_count[kind]--;
	mem_free(ch);
}

/* ---- Subscribing ---- */

static struct subscription *
subscription_find(struct client *c, enum pubsub_kind kind, struct str name)
{
	struct subscription *s = c->subscriptions[kind];

	while (s && !str_eq(s->channel->name, name))
		s = s->next;
	return s;
}

static enum status
subscription_add(struct client *c, enum pubsub_kind kind, struct str name)
{
	struct subscription *s = mem_zalloc(sizeof(*s));
	struct channel *ch = channel_find(c->redis, kind, name);

	if (s && !ch)
		ch = channel_make(c->redis, kind, name);
	if (!s || !ch) {
		mem_free(s);
		return STATUS_NOMEM;
	}
	s->client = c;
	s->channel = ch;
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
	s->channel->count--;
	channel_drop_if_empty(c->redis, kind, s->channel);
	atomic_fetch_sub(&c->subscription_count[kind], 1);
	mem_free(s);
}

enum status
pubsub_subscribe(struct client *c, enum pubsub_kind kind, struct str name, struct err *err)
{
	enum status status = STATUS_OK;

	if (atomic_load(&c->subscription_count[kind]) >= PUBSUB_SUBSCRIPTIONS)
		return err_set(err, STATUS_LIMIT,
			       "a connection may have %d subscriptions (PUBSUB_SUBSCRIPTIONS)",
			       PUBSUB_SUBSCRIPTIONS);
	pthread_rwlock_wrlock(&c->redis->pubsub_lock);
	if (!subscription_find(c, kind, name))
		status = subscription_add(c, kind, name);
	pthread_rwlock_unlock(&c->redis->pubsub_lock);
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
	pthread_rwlock_wrlock(&c->redis->pubsub_lock);
	for (int kind = 0; kind < PUBSUB_KINDS; kind++)
		while (c->subscriptions[kind])
			subscription_remove(c, (enum pubsub_kind)kind, c->subscriptions[kind]);
	pthread_rwlock_unlock(&c->redis->pubsub_lock);
}

bool
pubsub_has_subscribers(struct redis *r)
{
	bool has = false;

	pthread_rwlock_rdlock(&r->pubsub_lock);
	for (int kind = 0; kind < PUBSUB_KINDS; kind++)
		has |= r->channel_count[kind] > 0;
	pthread_rwlock_unlock(&r->pubsub_lock);
	return has;
}

void
pubsub_close_all(struct redis *r)
{
	pthread_rwlock_rdlock(&r->pubsub_lock);
	for (int kind = 0; kind < PUBSUB_KINDS; kind++)
		for (size_t i = 0; i < REDIS_CHANNEL_SLOTS; i++)
			for (struct channel *ch = r->channels[kind][i]; ch; ch = ch->next)
				for (struct subscription *s = ch->subscriptions; s;
				     s = s->next_same)
					client_signal(s->client, CLIENT_OVERFLOWED);
	pthread_rwlock_unlock(&r->pubsub_lock);
}

/* ---- Messages ---- */

static void
message_send(const struct channel *ch, const char *word, const struct str *pattern,
	     struct str channel, struct str message)
{
	AUTO(buf_release) struct buf out2 = BUF_INIT(REDIS_REQUEST_BYTES);
	AUTO(buf_release) struct buf out3 = BUF_INIT(REDIS_REQUEST_BYTES);

	for (const struct subscription *s = ch->subscriptions; s; s = s->next_same) {
		int version = atomic_load_explicit(&s->client->version, memory_order_relaxed);
		struct reply reply = { .out = version == 3 ? &out3 : &out2, .version = version };

		if (!reply.out->len) {
			reply_push(&reply, pattern ? 4 : 3);
			reply_bulk_cstr(&reply, word);
			if (pattern)
				reply_bulk(&reply, *pattern);
			reply_bulk(&reply, channel);
			reply_bulk(&reply, message);
		}
		if (buf_status(reply.out) == STATUS_OK)
			client_push(s->client, buf_str(reply.out));
	}
}

/* Goes through those who get it; sends if there is a message. */
static size_t
publish(struct redis *r, bool shard, struct str name, const struct str *message)
{
	enum pubsub_kind kind = shard ? PUBSUB_SHARD : PUBSUB_CHANNEL;
	struct channel *ch;
	size_t count = 0;

	pthread_rwlock_rdlock(&r->pubsub_lock);
	ch = channel_find(r, kind, name);
	if (ch) {
		count += ch->count;
		if (message)
			message_send(ch, shard ? "smessage" : "message", NULL, name, *message);
	}
	for (size_t i = 0; !shard && r->channel_count[PUBSUB_PATTERN] && i < REDIS_CHANNEL_SLOTS;
	     i++) {
		for (ch = r->channels[PUBSUB_PATTERN][i]; ch; ch = ch->next) {
			if (!glob_matches(ch->name, name, false))
				continue;
			count += ch->count;
			if (message)
				message_send(ch, "pmessage", &ch->name, name, *message);
		}
	}
	pthread_rwlock_unlock(&r->pubsub_lock);
	return count;
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

void
pubsub_each(struct redis *r, enum pubsub_kind kind, void (*take)(void *arg, struct str name),
	    void *arg)
{
	pthread_rwlock_rdlock(&r->pubsub_lock);
	for (size_t i = 0; i < REDIS_CHANNEL_SLOTS; i++)
		for (const struct channel *ch = r->channels[kind][i]; ch; ch = ch->next)
			take(arg, ch->name);
	pthread_rwlock_unlock(&r->pubsub_lock);
}
