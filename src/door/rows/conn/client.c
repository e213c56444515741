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
	visit_reset(&c->entry);
	clients_add(&c->entry);
	return c;
}

void
rows_client_free(struct rows_client *c)
{
	clients_remove(&c->entry);
	buf_release(&c->in);
	buf_release(&c->out);
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

static enum status
client_know(struct clients_entry *e, const struct visitor_found *found, struct err *err)
{
	const struct auth_user *user = &found->user;

	(void)err;
	rows_rights_of_roles(&((struct rows_client *)e)->rights, user->roles, user->roles_count,
			     user->admin, found->arena);
	return STATUS_OK;
}

static void
client_forget(struct clients_entry *e)
{
	((struct rows_client *)e)->rights = (struct rows_rights){
		.everything = e->who.authenticated
	};
}

struct visit_rules
rows_visit_rules(const struct rows_config *config)
{
	return (struct visit_rules){
		.door = "rows",
		.store = config->store,
		.live = config->live,
		.news = config->news,
		.know = client_know,
		.forget = client_forget,
	};
}
