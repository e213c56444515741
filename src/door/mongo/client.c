#include "door/mongo/client.h"

#include <stdio.h>

#include "access/people.h"
#include "base/clock.h"
#include "base/mem.h"
#include "settings/live.h"

struct mongo_client *
mongo_client_new(struct mongo *m, struct net_stream *stream)
{
	struct mongo_client *c = mem_zalloc(sizeof(*c));
	struct str peer = net_stream_peer(stream);
	struct budget_part *part = arena_part(net_stream_arena(stream));

	if (!c)
		return NULL;
	c->mongo = m;
	c->stream = stream;
	c->id = atomic_fetch_add(&m->next_client, 1) + 1;
	snprintf(c->peer, sizeof(c->peer), "%.*s", STR_ARG(peer));
	c->created_ns = clock_mono_ns();
	c->in = BUF_INIT_OF(WIRE_MESSAGE_BYTES, part);
	c->raw = BUF_INIT_OF(WIRE_MESSAGE_BYTES, part);
	/* A failure may be answered behind what was nearly a whole answer. */
	c->out = BUF_INIT_OF(MONGO_REPLY_BYTES + WIRE_ERROR_BYTES, part);
	pthread_mutex_init(&c->lock, NULL);
	event_init(&c->wake);
	mongo_client_become_nobody(c);
	pthread_mutex_lock(&m->clients_lock);
	c->next = m->clients;
	c->link = &m->clients;
	if (c->next)
		c->next->link = &c->next;
	m->clients = c;
	m->client_count++;
	pthread_mutex_unlock(&m->clients_lock);
	atomic_fetch_add(&m->connections, 1);
	return c;
}

void
mongo_client_free(struct mongo_client *c)
{
	struct mongo *m = c->mongo;

	pthread_mutex_lock(&m->clients_lock);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	m->client_count--;
	pthread_mutex_unlock(&m->clients_lock);
	mongo_client_forget_login(c);
	buf_release(&c->in);
	buf_release(&c->raw);
	buf_release(&c->out);
	arena_free(c->user_arena);
	pthread_mutex_destroy(&c->lock);
	mem_free(c);
}

/* ---- What it does ---- */

/* "db.collection", as much of it as there is room for. */
static void
set_op_ns(struct mongo_client *c, struct str db, struct str collection)
{
	const struct str parts[] = { db, collection.len ? STR(".") : STR(""), collection };
	size_t at = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t room = sizeof(c->op_ns) - 1 - at;
		size_t n = parts[i].len < room ? parts[i].len : room;

		if (n)
			memcpy(c->op_ns + at, parts[i].ptr, n);
		at += n;
	}
	c->op_ns[at] = '\0';
}

void
mongo_client_begin_op(struct mongo_client *c, const char *name, struct str body, struct str db,
		      struct str collection, uint64_t began_ns)
{
	pthread_mutex_lock(&c->lock);
	c->op_id = atomic_fetch_add(&c->mongo->next_op, 1) + 1;
	c->op_began_ns = began_ns;
	c->op_name = name;
	c->op_body = body;
	set_op_ns(c, db, collection);
	pthread_mutex_unlock(&c->lock);
}

void
mongo_client_end_op(struct mongo_client *c)
{
	pthread_mutex_lock(&c->lock);
	c->op_id = 0;
	c->op_body = STR("");
	atomic_store_explicit(&c->op_killed, false, memory_order_relaxed);
	pthread_mutex_unlock(&c->lock);
}

/* Ends the operation if it is that one. */
static bool
client_kill(struct mongo_client *c, uint64_t op_id)
{
	bool is_it;

	pthread_mutex_lock(&c->lock);
	is_it = c->op_id == op_id;
	if (is_it) {
		atomic_store_explicit(&c->op_killed, true, memory_order_relaxed);
		if (c->waiting)
			event_set(&c->wake);
		c->waiting = false;
	}
	pthread_mutex_unlock(&c->lock);
	return is_it;
}

bool
mongo_client_kill_op(struct mongo *m, uint64_t op_id, const char *user)
{
	bool found = false;

	pthread_mutex_lock(&m->clients_lock);
	for (struct mongo_client *c = m->clients; op_id && c && !found; c = c->next)
		found = (!user || strcmp(user, c->user_name) == 0) && client_kill(c, op_id);
	pthread_mutex_unlock(&m->clients_lock);
	return found;
}

static bool
client_is_killed(struct mongo_client *c)
{
	return atomic_load_explicit(&c->op_killed, memory_order_relaxed);
}

bool
mongo_client_is_interrupted(struct mongo_client *c)
{
	return client_is_killed(c) || event_is_set(net_stream_closed_event(c->stream)) ||
	       event_is_set(net_stream_stopping_event(c->stream));
}

enum status
mongo_client_check(struct mongo_client *c)
{
	if (mongo_client_is_interrupted(c))
		return STATUS_CANCELLED;
	return c->until_ns && clock_mono_ns() >= c->until_ns ? STATUS_TIMEOUT : STATUS_OK;
}

enum status
mongo_client_ask(void *client)
{
	return mongo_client_check(client);
}

struct event *
mongo_client_wakes(struct mongo_client *c)
{
	bool killed;

	pthread_mutex_lock(&c->lock);
	event_init(&c->wake);
	/* Whoever has ended the operation before now has not seen that the event is wanted. */
	killed = client_is_killed(c);
	c->waiting = !killed;
	pthread_mutex_unlock(&c->lock);
	return killed ? NULL : &c->wake;
}

void
mongo_client_sleeps(struct mongo_client *c)
{
	pthread_mutex_lock(&c->lock);
	c->waiting = false;
	pthread_mutex_unlock(&c->lock);
}

bool
mongo_client_wait(struct mongo_client *c, uint64_t deadline_ns)
{
	struct event *wake;
	struct str in;

	if (c->until_ns && c->until_ns < deadline_ns)
		deadline_ns = c->until_ns;
	while (clock_mono_ns() < deadline_ns) {
		if (mongo_client_is_interrupted(c) ||
		    net_stream_peek(c->stream, 0, &in) != STATUS_OK || in.len)
			return false;
		wake = mongo_client_wakes(c);
		if (wake)
			net_stream_rest(c->stream, true, wake, deadline_ns);
		mongo_client_sleeps(c);
	}
	return !mongo_client_is_interrupted(c);
}

/* ---- Who it is ---- */

struct auth_client
mongo_client_of_auth(struct mongo_client *c)
{
	return (struct auth_client){ .address = str_from_cstr(c->peer),
				     .gone = net_stream_closed_event(c->stream),
				     .store = c->mongo->config.store };
}

void
mongo_client_forget_login(struct mongo_client *c)
{
	auth_scram_free(c->login.scram);
	c->login = (struct mongo_login){ .id = c->login.id };
}

static void
client_set_user_name(struct mongo_client *c)
{
	pthread_mutex_lock(&c->mongo->clients_lock);
	snprintf(c->user_name, sizeof(c->user_name), "%.*s", STR_ARG(c->user.name));
	pthread_mutex_unlock(&c->mongo->clients_lock);
}

void
mongo_client_become(struct mongo_client *c, const struct auth_user *user, struct arena *arena)
{
	arena_free(c->user_arena);
	c->user_arena = arena;
	c->user = *user;
	c->authenticated = true;
	c->follow = (struct follow){ 0 };
	rights_of_roles(&c->rights, user->roles, user->roles_count, user->admin, arena);
	client_set_user_name(c);
}

void
mongo_client_become_nobody(struct mongo_client *c)
{
	struct settings_held *held = settings_live_hold(c->mongo->config.live);

	c->authenticated = !auth_has_admins(people_of(held));
	settings_held_unref(held);
	c->user = (struct auth_user){ .admin = c->authenticated };
	c->follow = (struct follow){ 0 };
	arena_free(c->user_arena);
	c->user_arena = NULL;
	if (c->authenticated)
		rights_of_everybody(&c->rights);
	else
		c->rights = (struct rights){ 0 };
	client_set_user_name(c);
}

void
mongo_client_check_roles(struct mongo_client *c)
{
	const struct mongo_config *config = &c->mongo->config;
	struct auth_client client;
	struct auth_user user;
	struct arena *arena;

	if (!c->authenticated || follow_is_current(&c->follow, config->news))
		return;
	arena = arena_new(CLIENT_USER_BYTES);
	if (!arena)
		return;
	client = mongo_client_of_auth(c);
	switch (follow_look(&c->follow, config->news, config->live, &client, &c->user, arena,
			    &user)) {
	case FOLLOW_SAME:
		arena_free(arena);
		break;
	case FOLLOW_CHANGED: {
		struct follow follow = c->follow;

		mongo_client_become(c, &user, arena);
		c->follow = follow;
		break;
	}
	case FOLLOW_GONE:
		arena_free(arena);
		mongo_client_become_nobody(c);
		break;
	}
}
