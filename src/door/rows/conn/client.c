#include "door/rows/conn/client.h"

#include "access/people.h"
#include "base/mem.h"
#include "door/rows/wire/frame.h"
#include "net/memory.h"
#include "settings/live.h"

static const char *const classes[ROWS_CLASSES] = {
	[ROWS_CLASS_CONNECTION] = "connection",
	[ROWS_CLASS_TRANSACTION] = "transaction",
	[ROWS_CLASS_SCHEMA] = "schema",
	[ROWS_CLASS_SCAN] = "scan",
	[ROWS_CLASS_GET] = "get",
	[ROWS_CLASS_WRITE] = "write",
};

static void
rows_op_end(struct ops_op *op)
{
	clients_signal(op->client, ROWS_CLIENT_KILLED);
}

OPS_DOOR(rows_ops, "rows", classes, LOG_LEVEL_WARN, rows_op_end);

struct rows_client *
rows_client_new(struct rows_door *door, struct net_stream *stream)
{
	struct rows_client *c = mem_zalloc(sizeof(*c));
	struct budget_part *part = arena_part(net_stream_arena(stream));

	if (!c)
		return NULL;
	c->door = door;
	c->stream = stream;
	clients_entry_init(&c->entry, &door->clients, net_stream_peer(stream));
	net_stream_give_up_on(stream, (struct net_patience){ .event = &c->entry.ended });
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
	net_stream_give_up_on(c->stream, (struct net_patience){ 0 });
	buf_release(&c->in);
	buf_release(&c->out);
	arena_free(c->user_arena);
	clients_entry_fini(&c->entry);
	mem_free(c);
}

enum status
rows_client_ask(void *client)
{
	struct rows_client *c = client;

	if (clients_signals(&c->entry) & ROWS_CLIENT_KILLED ||
	    event_is_set(net_stream_closed_event(c->stream)) || net_stream_is_lost(c->stream))
		return STATUS_CANCELLED;
	return STATUS_OK;
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
				  .user = c->user.name };
}

static struct auth_client
client_of_auth(struct rows_client *c)
{
	return (struct auth_client){ .by = rows_client_audit_by(c),
				     .gone = net_stream_closed_event(c->stream),
				     .store = c->door->config.store };
}

/* Makes `user` the client's. The arena, in which it lies, becomes the client's. */
static void
client_become(struct rows_client *c, const struct auth_user *user, struct arena *arena)
{
	arena_free(c->user_arena);
	c->user_arena = arena;
	c->user = *user;
	c->authenticated = true;
	rows_rights_of_roles(&c->rights, user->roles, user->roles_count, user->admin, arena);
	clients_set_user(&c->entry, c->user.name, c->user.name.len && !user->admin);
}

void
rows_client_become_nobody(struct rows_client *c)
{
	struct settings_held *held = settings_live_hold(c->door->config.live);

	c->authenticated = !auth_has_admins(people_of(held));
	settings_held_unref(held);
	c->user = (struct auth_user){ .admin = c->authenticated };
	c->follow = (struct follow){ 0 };
	arena_free(c->user_arena);
	c->user_arena = NULL;
	c->rights = (struct rows_rights){ .everything = c->authenticated };
	clients_set_user(&c->entry, c->user.name, false);
}

enum status
rows_client_login(struct rows_client *c, struct str name, struct str password, struct err *err)
{
	struct settings_held *held = settings_live_hold(c->door->config.live);
	struct auth_client client = client_of_auth(c);
	struct arena *arena = arena_new(ROWS_USER_BYTES);
	struct auth_user user = { 0 };
	enum status status = STATUS_NOMEM;

	if (arena)
		status = auth_login(people_of(held), "password", name, password, &client, arena,
				    &user, err);
	settings_held_unref(held);
	if (status != STATUS_OK) {
		arena_free(arena);
		return status;
	}
	client_become(c, &user, arena);
	c->follow = (struct follow){ 0 };
	return STATUS_OK;
}

void
rows_client_check_roles(struct rows_client *c)
{
	const struct rows_config *config = &c->door->config;
	struct auth_client client;
	struct auth_user user;
	struct follow follow;
	struct arena *arena;

	if (!c->authenticated || follow_is_current(&c->follow, config->news))
		return;
	arena = arena_new(ROWS_USER_BYTES);
	if (!arena)
		return;
	client = client_of_auth(c);
	switch (follow_look(&c->follow, config->news, config->live, &client, &c->user, arena,
			    &user)) {
	case FOLLOW_SAME:
		arena_free(arena);
		break;
	case FOLLOW_CHANGED:
		follow = c->follow;
		client_become(c, &user, arena);
		c->follow = follow;
		break;
	case FOLLOW_GONE:
		arena_free(arena);
		rows_client_become_nobody(c);
		break;
	}
}
