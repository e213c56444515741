#include "door/redis/txn/client.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>

#include "access/people.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "door/redis/acl/rules.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/user.h"
#include "model/timed/items/item.h"
#include "net/memory.h"

METRIC_COUNTER(overflows, "frond_redis_output_overflows_total", METRIC_NUMBER,
	       "Clients of Redis's protocol that were closed since they left more unread than "
	       "client-output-buffer-limit says.");

static void
redis_op_end(struct ops_op *op)
{
	clients_signal(op->client, CLIENT_KILLED);
}

/* A setting of milliseconds says what is slow here: that is no warning yet. */
OPS_DOOR(redis_ops, "redis", command_groups, LOG_LEVEL_INFO, redis_op_end);

enum {
	NS_PER_S = 1000000000,
};

/* ---- How much it leaves unread ---- */

bool
client_has_subscriptions(const struct client *c)
{
	for (size_t i = 0; i < sizeof(c->subscription_count) / sizeof(c->subscription_count[0]);
	     i++)
		if (atomic_load_explicit(&c->subscription_count[i], memory_order_relaxed))
			return true;
	return false;
}

/* The limit of the class that Redis would have the client in. */
static const struct net_unread_limit *
client_limit(const struct client *c)
{
	return &c->redis->output[client_has_subscriptions(c) ? OUTPUT_PUBSUB : OUTPUT_NORMAL];
}

/* Gives up the references that a buffer of messages has from byte `from` on. */
static void
pushes_unref(const struct buf *pushes, size_t from)
{
	for (size_t at = from; at < pushes->len; at += sizeof(struct push *)) {
		struct push *p;

		memcpy(&p, pushes->ptr + at, sizeof(p));
		push_unref(p);
	}
}

/* Ends a client that has left too much unread, and drops its messages. Its lock is held. */
static void
client_overflow(struct client *c)
{
	if (clients_signals(&c->entry) & CLIENT_OVERFLOWED)
		return;
	metric_add(&overflows, 1);
	pushes_unref(&c->push, 0);
	buf_release(&c->push);
	c->unread.waiting_bytes = 0;
	c->entry.pending = false;
	clients_tell(&c->entry, CLIENT_OVERFLOWED);
}

/*
 * Checks the limit of its class, which may be none, and the one that no class exceeds. False: the
 * client has overflowed, now or before. Its lock is held.
 */
static bool
client_keeps_limit(struct client *c)
{
	if (!net_unread_keeps(&c->unread, client_limit(c), CLIENT_PUSH_BYTES))
		client_overflow(c);
	return !(clients_signals(&c->entry) & CLIENT_OVERFLOWED);
}

/*
 * When its fiber stops waiting for the client to read (struct net_patience). Other clients'
 * messages may bring it over its soft limit while the fiber waits, so that the answer changes.
 */
static uint64_t
client_until_ns(void *client)
{
	struct client *c = client;
	uint64_t until_ns;

	pthread_mutex_lock(&c->entry.lock);
	(void)client_keeps_limit(c);
	until_ns = net_unread_until_ns(&c->unread, client_limit(c));
	pthread_mutex_unlock(&c->entry.lock);
	return until_ns;
}

bool
client_gets_more(const struct client *c)
{
	return c->blocked || atomic_load(&c->monitors) || client_has_subscriptions(c);
}

/* ---- Its life ---- */

struct client *
client_new(struct redis *r, struct net_stream *stream)
{
	struct client *c = mem_zalloc(sizeof(*c));

	if (!c)
		return NULL;
	c->redis = r;
	c->stream = stream;
	c->part = arena_part(net_stream_arena(stream));
	clients_entry_init(&c->entry, &r->clients, stream);
	net_stream_local(stream, c->local);
	c->created_ms = clock_wall_ms();
	atomic_store(&c->last_ns, c->entry.created_ns);
	atomic_store(&c->version, 2);
	net_stream_give_up_on(stream, (struct net_patience){ &c->entry.ended, client_until_ns, c });
	net_memory_part_init(&c->push_part, c->part, false);
	c->push = BUF_INIT_OF(CLIENT_PUSH_BYTES, &c->push_part);
	c->out = BUF_INIT_OF(REDIS_REPLY_BYTES, c->part);
	net_memory_part_init(&c->served_part, c->part, false);
	c->served_out = BUF_INIT_OF(REDIS_REPLY_BYTES, &c->served_part);
	c->block_ids = BUF_INIT_OF(REQUEST_ARGS * sizeof(struct timed_stream_id), c->part);
	c->big = BUF_INIT_OF(REDIS_REQUEST_BYTES, c->part);
	c->lib_name = BUF_SHORT(CLIENTS_TEXT_BYTES);
	c->lib_version = BUF_SHORT(CLIENTS_TEXT_BYTES);
	request_init(&c->request, c->part);
	visit_reset(&c->entry);
	clients_add(&c->entry);
	atomic_fetch_add(&r->connections, 1);
	return c;
}

void
client_forget_multi(struct client *c)
{
	c->multi = false;
	c->multi_failed = false;
	c->queued = NULL;
	c->queued_count = c->queued_cap = 0;
	arena_free(c->multi_arena);
	c->multi_arena = NULL;
}

void
client_free(struct client *c)
{
	/* Nobody else refers to it any more: it waits for no key, watches none, hears nothing. */
	assert(!c->ticket && !c->offered && !c->watches && !client_gets_more(c));
	clients_remove(&c->entry);
	client_forget_multi(c);
	request_fini(&c->request);
	pushes_unref(&c->push, 0);
	buf_release(&c->push);
	budget_part_release(&c->push_part);
	buf_release(&c->out);
	buf_release(&c->big);
	buf_release(&c->served_out);
	budget_part_release(&c->served_part);
	buf_release(&c->block_ids);
	buf_release(&c->lib_name);
	buf_release(&c->lib_version);
	clients_entry_fini(&c->entry);
	mem_free(c);
}

void
client_note_command(struct client *c, const struct command *command, const struct str *argv,
		    size_t argc)
{
	bool container = command->flags & COMMAND_CONTAINER && argc > 1;
	size_t len = 0;

	atomic_store_explicit(&c->last_command, command, memory_order_relaxed);
	if (!container && !c->subcommand[0])
		return;
	pthread_mutex_lock(&c->entry.lock);
	if (container)
		for (; len < argv[1].len && len + 1 < sizeof(c->subcommand); len++) {
			char ch = argv[1].ptr[len];

			c->subcommand[len] = (char)(ch > ' ' && ch <= '~' ? tolower(ch) : '?');
		}
	c->subcommand[len] = '\0';
	pthread_mutex_unlock(&c->entry.lock);
}

uint64_t
client_after_ms(uint64_t ms)
{
	uint64_t ns;

	if (__builtin_mul_overflow(ms, CLOCK_NS_PER_MS, &ns) ||
	    __builtin_add_overflow(ns, clock_mono_ns(), &ns))
		return WAIT_FOREVER;
	return ns;
}

/* ---- Signals and messages ---- */

/* Its lock is held. */
static void
client_append_push(struct client *c, struct push *message)
{
	if (clients_signals(&c->entry) & CLIENT_OVERFLOWED)
		return;
	if (message && buf_reserve(&c->push, sizeof(message))) {
		/* A few are free, so that a message to many who read takes no lock of all. */
		if (c->push.cap > CLIENT_BEHIND_BYTES)
			net_memory_part_keep(&c->push_part);
		push_ref(message);
		buf_append(&c->push, &message, sizeof(message));
		c->unread.waiting_bytes += message->bytes.len;
		c->entry.pending = true;
		(void)client_keeps_limit(c);
	} else {
		client_overflow(c);
	}
}

void
client_push(struct client *c, struct push *message)
{
	pthread_mutex_lock(&c->entry.lock);
	client_append_push(c, message);
	clients_tell(&c->entry, 0);
	pthread_mutex_unlock(&c->entry.lock);
}

void
client_end_if_behind(struct client *c)
{
	pthread_mutex_lock(&c->entry.lock);
	if (c->push.len || c->unread.flying_bytes)
		client_overflow(c);
	pthread_mutex_unlock(&c->entry.lock);
}

unsigned
client_wait(struct client *c, bool input, uint64_t deadline_ns)
{
	struct event *wake = clients_wait_begin(&c->entry);

	if (wake)
		net_stream_rest(c->stream, input ? NET_REST_IDLE : NET_REST_WAITING, wake,
				deadline_ns);
	return clients_wait_end(&c->entry);
}

/*
 * Notes how many bytes its fiber has yet to write, of messages and of answers. False: it has
 * overflowed.
 */
static bool
client_fly(struct client *c, size_t messages, size_t answers)
{
	bool fine;

	pthread_mutex_lock(&c->entry.lock);
	c->unread.flying_bytes = messages;
	c->unread.answer_bytes = answers;
	fine = client_keeps_limit(c);
	pthread_mutex_unlock(&c->entry.lock);
	return fine;
}

/* Messages that are written. After each slice of them less counts as unread. */
struct flight {
	struct client *client;
	size_t left;  /* bytes that were not written */
	size_t slice; /* bytes that were, since the client's limit was looked at */
};

static enum status
flight_write(struct flight *f, struct str message)
{
	while (message.len) {
		size_t n = message.len;

		if (f->slice == 0 && !client_fly(f->client, f->left, 0))
			return STATUS_LIMIT;
		if (n > CLIENT_SLICE_BYTES - f->slice)
			n = CLIENT_SLICE_BYTES - f->slice;
		TRY(net_stream_write(f->client->stream, str_of(message.ptr, n)));
		message = str_skip(message, n);
		f->left -= n;
		f->slice = (f->slice + n) % CLIENT_SLICE_BYTES;
	}
	return STATUS_OK;
}

/* Gives each message up when it is written. */
static enum status
client_write_messages(struct client *c, struct buf *pushes, size_t bytes)
{
	struct flight f = { .client = c, .left = bytes };
	enum status status = STATUS_OK;
	size_t at = 0;

	while (status == STATUS_OK && at < pushes->len) {
		struct push *p;

		memcpy(&p, pushes->ptr + at, sizeof(p));
		at += sizeof(p);
		status = flight_write(&f, buf_str(&p->bytes));
		push_unref(p);
	}
	pushes_unref(pushes, at);
	/* Under the lock: others count what comes meanwhile in the same part. */
	pthread_mutex_lock(&c->entry.lock);
	buf_release(pushes);
	if (!c->push_part.used_bytes)
		net_memory_part_unkeep(&c->push_part);
	pthread_mutex_unlock(&c->entry.lock);
	(void)client_fly(c, 0, 0);
	return status;
}

enum status
client_flush_push(struct client *c)
{
	struct buf mine;
	size_t bytes;

	pthread_mutex_lock(&c->entry.lock);
	/* Its fiber writes one thing at a time, and has counted that off when it was written. */
	assert(!c->unread.flying_bytes && !c->unread.answer_bytes);
	if (!c->entry.pending) {
		assert(!c->push.len && !c->unread.waiting_bytes);
		pthread_mutex_unlock(&c->entry.lock);
		return STATUS_OK;
	}
	mine = c->push;
	bytes = c->unread.waiting_bytes;
	assert(mine.len);
	c->push = BUF_INIT_OF(CLIENT_PUSH_BYTES, &c->push_part);
	c->unread.waiting_bytes = 0;
	c->entry.pending = false;
	/*
	 * In this lock: a message that comes next would otherwise find that less is unread than
	 * there is, and the time over the soft limit would begin anew.
	 */
	c->unread.flying_bytes = bytes;
	pthread_mutex_unlock(&c->entry.lock);
	return client_write_messages(c, &mine, bytes);
}

enum status
client_write_answers(struct client *c, struct str answers)
{
	enum status status = STATUS_LIMIT;

	ops_moved(&c->entry.op, answers.len);
	if (answers.len <= NET_UNREAD_FREE_BYTES)
		return net_stream_write(c->stream, answers);
	if (client_fly(c, 0, answers.len))
		status = net_stream_write(c->stream, answers);
	(void)client_fly(c, 0, 0);
	return status;
}

bool
client_is_subscriber(const struct client *c)
{
	return c->version == 2 && client_has_subscriptions(c);
}

/* ---- Who it is ---- */

struct str
client_user_name(const struct client *c)
{
	return c->entry.who.user.name.len ? c->entry.who.user.name : USER_DEFAULT;
}

/*
 * What a connection may do that nobody has logged in to, on a server without administrators:
 * everything, unless there is something to be said of the user `default`. False: the store cannot
 * tell.
 */
static bool
client_meet_default(struct client *c)
{
	struct visitor *who = &c->entry.who;
	struct redis *r = c->redis;
	uint64_t count = people_news_count(r->config.news);
	struct arena *arena;
	struct user user;

	/* Nothing was to be said when people changed last. */
	if (count && atomic_load(&r->free_default) == count)
		return true;
	arena = arena_new(VISITOR_BYTES);
	if (!arena || user_read(r, USER_DEFAULT, arena, &user, NULL) != STATUS_OK) {
		arena_free(arena);
		return false;
	}
	if (user.is_initial) {
		atomic_store(&r->free_default, count);
		arena_free(arena);
		return true;
	}
	who->authenticated = !user.at.off && user.at.by == PERSON_DOOR_BY_ANY;
	who->user = (struct auth_user){ .name = user.name };
	c->acl = user.acl;
	who->arena = arena;
	return true;
}

static void
client_forget(struct clients_entry *e)
{
	struct client *c = (struct client *)e;

	acl_allow_all(&c->acl);
	e->who.undecided = e->who.authenticated && !client_meet_default(c);
	if (e->who.undecided)
		e->who.authenticated = false;
}

static enum status
client_know(struct clients_entry *e, const struct visitor_found *found, struct err *err)
{
	struct client *c = (struct client *)e;
	const struct auth_user *user = &found->user;

	(void)err;
	if (user->admin)
		acl_allow_all(&c->acl);
	else
		acl_of_roles(&c->acl, user->roles, user->roles_count, found->arena);
	return STATUS_OK;
}

struct visit_rules
client_visit_rules(const struct redis_config *config)
{
	return (struct visit_rules){
		.door = "redis",
		.own = USER_DOOR,
		.nobody = USER_DEFAULT,
		.no_login = "NOAUTH",
		.no_right = "NOPERM",
		.store = config->store,
		.live = config->live,
		.news = config->news,
		.know = client_know,
		.forget = client_forget,
		.ends_with_person = true,
	};
}

/* ---- As text ---- */

void
client_describe(struct client *c, struct buf *out)
{
	uint64_t now = clock_mono_ns();
	const struct command *last = atomic_load(&c->last_command);
	size_t subs = atomic_load(&c->subscription_count[0]);
	size_t patterns = atomic_load(&c->subscription_count[1]);
	size_t shards = atomic_load(&c->subscription_count[2]);
	bool multi = atomic_load(&c->multi);
	unsigned tracks = atomic_load(&c->tracks);
	size_t flags;

	buf_printf(out, "id=%llu addr=%s laddr=%s fd=-1 name=%.*s age=%llu idle=%llu flags=",
		   (unsigned long long)c->entry.id, c->entry.peer, c->local,
		   STR_ARG(buf_str(&c->entry.name)),
		   (unsigned long long)((now - c->entry.created_ns) / NS_PER_S),
		   (unsigned long long)((now - atomic_load(&c->last_ns)) / NS_PER_S));
	flags = out->len;
	if (atomic_load(&c->monitors))
		buf_append_byte(out, 'O');
	if (subs || patterns || shards)
		buf_append_byte(out, 'P');
	if (multi)
		buf_append_byte(out, 'x');
	if (c->blocked)
		buf_append_byte(out, 'b');
	if (tracks & CLIENT_TRACKS)
		buf_append_byte(out, 't');
	if (tracks & CLIENT_TRACKS_BROKEN)
		buf_append_byte(out, 'R');
	if (tracks & CLIENT_TRACKS_PREFIXES)
		buf_append_byte(out, 'B');
	if (atomic_load(&c->no_evict))
		buf_append_byte(out, 'e');
	if (atomic_load(&c->no_touch))
		buf_append_byte(out, 'T');
	if (out->len == flags)
		buf_append_byte(out, 'N');
	buf_printf(out,
		   " db=%u sub=%zu psub=%zu ssub=%zu multi=%lld qbuf=%zu qbuf-free=0 argv-mem=0 "
		   "multi-mem=0 rbs=0 rbp=0 obl=%zu oll=0 omem=0 tot-mem=0 events=r cmd=%s%s%s "
		   "user=%s redir=%lld resp=%d lib-name=%.*s lib-ver=%.*s",
		   atomic_load(&c->db), subs, patterns, shards,
		   multi ? (long long)atomic_load(&c->queued_count) : -1LL,
		   atomic_load(&c->request_bytes), net_unread_bytes(&c->unread),
		   last ? last->name : "NULL", c->subcommand[0] ? "|" : "", c->subcommand,
		   c->entry.user,
		   tracks & CLIENT_TRACKS ? (long long)atomic_load(&c->tracks_to) : -1LL,
		   atomic_load(&c->version), STR_ARG(buf_str(&c->lib_name)),
		   STR_ARG(buf_str(&c->lib_version)));
}
