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
	visit_reset(&c->entry);
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

/* True if what waits goes on, or its time is over. */
static bool
client_goes_on(struct mongo_client *c)
{
	enum status status = mongo_client_check_waiting(c);

	return status == STATUS_OK || status == STATUS_TIMEOUT;
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
		if (!client_goes_on(c) || net_stream_peek(c->stream, 0, &in) != STATUS_OK || in.len)
			return false;
		wake = clients_wait_begin(&c->entry);
		if (wake)
			net_stream_rest(c->stream, NET_REST_READING, wake, deadline_ns);
		(void)clients_wait_end(&c->entry);
	}
	return client_goes_on(c);
}

/* ---- Who it is ---- */

void
mongo_client_forget_login(struct mongo_client *c)
{
	auth_scram_free(c->login.scram);
	c->login = (struct mongo_login){ .id = c->login.id };
}

static enum status
client_know(struct clients_entry *e, const struct visitor_found *found, struct err *err)
{
	const struct auth_user *user = &found->user;

	(void)err;
	rights_of_roles(&((struct mongo_client *)e)->rights, user->roles, user->roles_count,
			user->admin, found->arena);
	return STATUS_OK;
}

static void
client_forget(struct clients_entry *e)
{
	struct rights *rights = &((struct mongo_client *)e)->rights;

	if (e->who.authenticated)
		rights_of_everybody(rights);
	else
		*rights = (struct rights){ 0 };
}

struct visit_rules
mongo_visit_rules(const struct mongo_config *config)
{
	return (struct visit_rules){
		.door = "mongo",
		.store = config->store,
		.live = config->live,
		.news = config->news,
		.know = client_know,
		.forget = client_forget,
	};
}
