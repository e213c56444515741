#include "door/mongo/txn/client.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/memory.h"

static const char *const kinds[USAGE_KINDS] = {
	[USAGE_COMMAND] = "command",  [USAGE_CHANGE] = "change", [USAGE_QUERY] = "query",
	[USAGE_GET_MORE] = "getmore", [USAGE_INSERT] = "insert", [USAGE_UPDATE] = "update",
	[USAGE_DELETE] = "delete",
};

OPS_DOOR(mongo_ops, "mongo", kinds, LOG_LEVEL_WARN, clients_end_op_of);

struct mongo_client *
mongo_client_new(struct mongo *m, struct net_stream *stream)
{
	struct mongo_client *c = mem_zalloc(sizeof(*c));
	struct budget_part *part = arena_part(net_stream_arena(stream));

	if (!c)
		return NULL;
	c->mongo = m;
	c->stream = stream;
	clients_entry_init(&c->entry, &m->clients, stream);
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
	visitor_release(&c->who);
	clients_entry_fini(&c->entry);
	mem_free(c);
}

/* ---- What it does ---- */

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
	const struct ops_op *op = &c->entry.op;
	struct event *wake;
	struct str in;

	if (op->until_ns && op->until_ns < deadline_ns)
		deadline_ns = op->until_ns;
	while (clock_mono_ns() < deadline_ns) {
		if (wanted_check_waiting(op) == STATUS_CANCELLED ||
		    net_stream_peek(c->stream, 0, &in) != STATUS_OK || in.len)
			return false;
		wake = clients_wait_begin(&c->entry);
		if (wake)
			net_stream_rest(c->stream, true, wake, deadline_ns);
		(void)clients_wait_end(&c->entry);
	}
	return wanted_check_waiting(op) != STATUS_CANCELLED;
}

/* ---- Who it is ---- */

struct audit_by
mongo_client_audit_by(const struct mongo_client *c)
{
	return (struct audit_by){ .door = "mongo",
				  .address = str_from_cstr(c->entry.peer),
				  .user = c->who.user.name };
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

/* What the person may, and whom others see. */
static void
client_know(struct mongo_client *c)
{
	const struct visitor *who = &c->who;

	rights_of_roles(&c->rights, who->user.roles, who->user.roles_count, who->user.admin,
			who->arena);
	clients_set_user(&c->entry, who->user.name, visitor_is_limited(who));
}

void
mongo_client_become(struct mongo_client *c, const struct visitor_found *found)
{
	visitor_enter(&c->who, found);
	client_know(c);
}

void
mongo_client_become_nobody(struct mongo_client *c)
{
	visitor_reset(&c->who, c->mongo->config.live);
	if (c->who.authenticated)
		rights_of_everybody(&c->rights);
	else
		c->rights = (struct rights){ 0 };
	clients_set_user(&c->entry, STR(""), false);
}

void
mongo_client_check_roles(struct mongo_client *c)
{
	const struct mongo_config *config = &c->mongo->config;
	struct visitor_found found;
	struct auth_client client;

	if (visitor_is_current(&c->who, config->news))
		return;
	client = mongo_client_of_auth(c);
	switch (visitor_look(&c->who, config->news, config->live, &client, &found)) {
	case FOLLOW_SAME:
		break;
	case FOLLOW_CHANGED:
		visitor_change(&c->who, &found);
		client_know(c);
		break;
	case FOLLOW_GONE:
		mongo_client_become_nobody(c);
		break;
	}
}
