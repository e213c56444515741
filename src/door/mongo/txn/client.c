#include "door/mongo/txn/client.h"

#include <string.h>

#include "access/people.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/memory.h"
#include "settings/live.h"

static const char *const kinds[USAGE_KINDS] = {
	[USAGE_COMMAND] = "command",  [USAGE_CHANGE] = "change", [USAGE_QUERY] = "query",
	[USAGE_GET_MORE] = "getmore", [USAGE_INSERT] = "insert", [USAGE_UPDATE] = "update",
	[USAGE_DELETE] = "delete",
};

static void
mongo_op_end(struct ops_op *op)
{
	clients_signal(op->client, MONGO_CLIENT_KILLED);
}

OPS_DOOR(mongo_ops, "mongo", kinds, LOG_LEVEL_WARN, mongo_op_end);

struct mongo_client *
mongo_client_new(struct mongo *m, struct net_stream *stream)
{
	struct mongo_client *c = mem_zalloc(sizeof(*c));
	struct budget_part *part = arena_part(net_stream_arena(stream));

	if (!c)
		return NULL;
	c->mongo = m;
	c->stream = stream;
	clients_entry_init(&c->entry, &m->clients, net_stream_peer(stream));
	c->in = BUF_INIT_OF(WIRE_MESSAGE_BYTES, part);
	c->raw = BUF_INIT_OF(WIRE_MESSAGE_BYTES, part);
	/* A failure may be answered behind what was nearly a whole answer. */
	c->out = BUF_INIT_OF(MONGO_REPLY_BYTES + WIRE_ERROR_BYTES, part);
	mongo_client_become_nobody(c);
	clients_add(&c->entry);
	return c;
}

void
mongo_client_free(struct mongo_client *c)
{
	clients_remove(&c->entry);
	mongo_client_forget_login(c);
	buf_release(&c->in);
	buf_release(&c->raw);
	buf_release(&c->out);
	arena_free(c->user_arena);
	clients_entry_fini(&c->entry);
	mem_free(c);
}

/* ---- What it does ---- */

/* True if somebody has ended the operation, or the peer is gone, or the process stops. */
static bool
mongo_client_is_interrupted(struct mongo_client *c)
{
	return clients_signals(&c->entry) & MONGO_CLIENT_KILLED ||
	       event_is_set(net_stream_closed_event(c->stream)) ||
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

enum status
mongo_client_last(struct mongo_client *c, struct err *err)
{
	struct net_session *session = net_stream_session(c->stream);
	enum status status = net_memory_turn_to_last(session, 0);

	return status == STATUS_LIMIT ? net_memory_refuse(session, err) : status;
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
		wake = clients_wait_begin(&c->entry);
		if (wake)
			net_stream_rest(c->stream, true, wake, deadline_ns);
		(void)clients_wait_end(&c->entry);
	}
	return !mongo_client_is_interrupted(c);
}

/* ---- Who it is ---- */

struct audit_by
mongo_client_audit_by(const struct mongo_client *c)
{
	return (struct audit_by){ .door = "mongo",
				  .address = str_from_cstr(c->entry.peer),
				  .user = c->user.name };
}

struct auth_client
mongo_client_of_auth(struct mongo_client *c)
{
	return (struct auth_client){ .by = mongo_client_audit_by(c),
				     .gone = net_stream_closed_event(c->stream),
				     .store = c->mongo->config.store };
}

void
mongo_client_forget_login(struct mongo_client *c)
{
	auth_scram_free(c->login.scram);
	c->login = (struct mongo_login){ .id = c->login.id };
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
	clients_set_user(&c->entry, c->user.name, c->user.name.len && !user->admin);
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
	clients_set_user(&c->entry, c->user.name, false);
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
