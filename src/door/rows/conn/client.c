#include "door/rows/conn/client.h"

#include "base/mem.h"
#include "door/rows/wire/frame.h"
#include "net/memory.h"

static const char *const classes[ROWS_CLASSES] = {
	[ROWS_CLASS_CONNECTION] = "connection",
	[ROWS_CLASS_TRANSACTION] = "transaction",
	[ROWS_CLASS_SCHEMA] = "schema",
	[ROWS_CLASS_SCAN] = "scan",
	[ROWS_CLASS_GET] = "get",
	[ROWS_CLASS_WRITE] = "write",
};

OPS_DOOR(rows_ops, "rows", classes, LOG_LEVEL_WARN, clients_end_op_of);

struct rows_client *
rows_client_new(struct rows_door *door, struct net_stream *stream)
{
	struct rows_client *c = mem_zalloc(sizeof(*c));
	struct budget_part *part = arena_part(net_stream_arena(stream));

	if (!c)
		return NULL;
	c->door = door;
	c->stream = stream;
	clients_entry_init(&c->entry, &door->clients, stream);
	c->in = BUF_INIT_OF(ROWS_FRAME_BYTES, part);
	c->out = BUF_INIT_OF(ROWS_REPLY_BYTES, part);
	rows_client_become_nobody(c);
	clients_add(&c->entry);
	return c;
}

void
rows_client_free(struct rows_client *c)
{
	clients_remove(&c->entry);
	buf_release(&c->in);
	buf_release(&c->out);
	visitor_release(&c->who);
	clients_entry_fini(&c->entry);
	mem_free(c);
}

enum status
rows_client_send(struct rows_client *c)
{
	enum status status = buf_status(&c->out);

	if (status == STATUS_OK && c->out.len) {
		ops_moved(&c->entry.op, c->out.len);
		status = net_stream_write(c->stream, buf_str(&c->out));
	}
	buf_clear(&c->out);
	return status;
}

/* ---- Who it is ---- */

struct audit_by
rows_client_audit_by(const struct rows_client *c)
{
	return (struct audit_by){ .door = "rows",
				  .address = str_from_cstr(c->entry.peer),
				  .user = c->who.user.name };
}

static struct auth_client
client_of_auth(struct rows_client *c)
{
	return (struct auth_client){ .by = rows_client_audit_by(c),
				     .gone = net_stream_closed_event(c->stream),
				     .store = c->door->config.store };
}

/* What the person may, and whom others see. */
static void
client_know(struct rows_client *c)
{
	const struct visitor *who = &c->who;

	rows_rights_of_roles(&c->rights, who->user.roles, who->user.roles_count, who->user.admin,
			     who->arena);
	clients_set_user(&c->entry, who->user.name, visitor_is_limited(who));
}

void
rows_client_become_nobody(struct rows_client *c)
{
	visitor_reset(&c->who, c->door->config.live);
	c->rights = (struct rows_rights){ .everything = c->who.authenticated };
	clients_set_user(&c->entry, STR(""), false);
}

enum status
rows_client_login(struct rows_client *c, struct str name, struct str password, struct err *err)
{
	struct auth_client client = client_of_auth(c);
	struct visitor_found found;

	TRY(visitor_login(c->door->config.live, "password", name, password, &client, &found, err));
	visitor_enter(&c->who, &found);
	client_know(c);
	return STATUS_OK;
}

void
rows_client_check_roles(struct rows_client *c)
{
	const struct rows_config *config = &c->door->config;
	struct visitor_found found;
	struct auth_client client;

	if (visitor_is_current(&c->who, config->news))
		return;
	client = client_of_auth(c);
	switch (visitor_look(&c->who, config->news, config->live, &client, &found)) {
	case FOLLOW_SAME:
		break;
	case FOLLOW_CHANGED:
		visitor_change(&c->who, &found);
		client_know(c);
		break;
	case FOLLOW_GONE:
		rows_client_become_nobody(c);
		break;
	}
}
