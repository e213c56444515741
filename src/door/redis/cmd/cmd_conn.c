/* A connection: who it is, which protocol and which database it speaks of. */
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/users.h"
#include "door/redis/txn/acl_log.h"
#include "door/redis/txn/effects.h"
#include "door/redis/txn/monitor.h"
#include "door/redis/txn/pubsub.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/standing.h"
#include "door/redis/txn/user.h"
#include "door/redis/wire/error.h"

enum status
cmd_ping(struct call *c)
{
	if (c->argc > 2)
		return call_wrong_arity(c);
	if (client_is_subscriber(c->client)) {
		reply_array(c->reply, 2);
		reply_bulk_cstr(c->reply, "pong");
		reply_bulk(c->reply, c->argc == 2 ? c->argv[1] : STR(""));
	} else if (c->argc == 2) {
		reply_bulk(c->reply, c->argv[1]);
	} else {
		reply_simple(c->reply, "PONG");
	}
	return STATUS_OK;
}

enum status
cmd_echo(struct call *c)
{
	reply_bulk(c->reply, c->argv[1]);
	return STATUS_OK;
}

enum status
cmd_quit(struct call *c)
{
	reply_ok(c->reply);
	c->client->end = CLIENT_ENDS;
	return STATUS_OK;
}

enum status
cmd_reset(struct call *c)
{
	struct client *client = c->client;

	client_forget_multi(client);
	effects_unwatch_all(client);
	pubsub_unsubscribe_all(client);
	monitor_end(client);
	tracking_end(client);
	client->version = 2;
	client->reply_off = client->reply_skip = client->reply_skip_next = false;
	client->no_evict = client->no_touch = false;
	c->db = 0;
	clients_set_text(&client->entry, &client->entry.name, STR(""));
	visit_reset(&client->entry);
	reply_simple(c->reply, "RESET");
	return STATUS_OK;
}

enum status
cmd_select(struct call *c)
{
	int64_t db;

	TRY(call_int(c, 1, &db));
	if (db < 0 || db >= REDIS_DATABASES)
		return call_error(c, STR("ERR DB index is out of range"));
	c->db = (unsigned)db;
	reply_ok(c->reply);
	return STATUS_OK;
}

/* ---- Logging in ---- */

static enum status
log_in(struct call *c, struct str name, struct str password)
{
	struct err err = { 0 };
	struct user user;
	enum status status;

	/* As in Redis without a password: any is right for those who may do everything. */
	if (str_eq(name, USER_DEFAULT) && users_are_open(c->redis)) {
		TRY(users_failed(c, user_read(c->redis, name, c->arena, &user, &err), &err));
		if (user.is_initial) {
			visit_reset(&c->client->entry);
			return STATUS_OK;
		}
	}
	status = visit_login(&c->client->entry, "auth", name, password, &err);
	if (status == STATUS_OK)
		return STATUS_OK;
	acl_log_add(c->client,
		    &(struct acl_refusal){ .denial = ACL_DENIED_AUTH,
					   .context = c->client->multi ? "multi" : "toplevel",
					   .object = c->argv[0],
					   .user = name });
	if (status == STATUS_UNAUTHORIZED)
		return call_error(
			c, STR("WRONGPASS invalid username-password pair or user is disabled."));
	error_reply_status(c->reply, status, &err);
	return STATUS_ANSWERED;
}

/* False for AUTH with a password alone where `default` needs none. */
static enum status
auth_needs_password(struct call *c, bool *ret)
{
	bool open = users_are_open(c->redis);
	struct err err = { 0 };
	struct user user;

	*ret = true;
	if (c->argc > 2 || !open)
		return STATUS_OK;
	TRY(users_failed(c, user_read(c->redis, USER_DEFAULT, c->arena, &user, &err), &err));
	*ret = !user_needs_no_password(&user, open);
	return STATUS_OK;
}

enum status
cmd_auth(struct call *c)
{
	bool needs;

	if (c->argc > 3)
		return call_syntax_error(c);
	TRY(auth_needs_password(c, &needs));
	if (!needs)
		return call_error(
			c, STR("ERR AUTH <password> called without any password configured for "
			       "the default user. Are you sure your configuration is correct?"));
	TRY(log_in(c, c->argc == 3 ? c->argv[1] : USER_DEFAULT, c->argv[c->argc - 1]));
	reply_ok(c->reply);
	return STATUS_OK;
}

static void
hello_answer(struct call *c)
{
	struct reply *r = c->reply;

	reply_map(r, 7);
	reply_bulk_cstr(r, "server");
	reply_bulk_cstr(r, "redis");
	reply_bulk_cstr(r, "version");
	reply_bulk_cstr(r, REDIS_VERSION);
	reply_bulk_cstr(r, "proto");
	reply_int(r, r->version);
	reply_bulk_cstr(r, "id");
	reply_int(r, (int64_t)c->client->entry.id);
	reply_bulk_cstr(r, "mode");
	reply_bulk_cstr(r, "standalone");
	reply_bulk_cstr(r, "role");
	reply_bulk_cstr(r, standing_of(c->redis).replica ? "replica" : "master");
	reply_bulk_cstr(r, "modules");
	reply_array(r, 0);
}

bool
conn_name_is_sound(struct str name)
{
	for (size_t i = 0; i < name.len; i++)
		if (name.ptr[i] < '!' || name.ptr[i] > '~')
			return false;
	return name.len < CLIENTS_TEXT_BYTES;
}

enum status
cmd_hello(struct call *c)
{
	struct client *client = c->client;
	struct str name = { 0 };
	size_t auth = 0;
	int64_t version = client->version;

	if (c->argc > 1)
		TRY(call_int_range(c, 1, INT64_MIN, INT64_MAX,
				   "Protocol version is not an integer or out of range", &version));
	if (version < 2 || version > 3)
		return call_error(c, STR("NOPROTO unsupported protocol version"));
	for (size_t i = 2; i < c->argc; i++) {
		if (call_arg_is(c, i, "auth") && i + 2 < c->argc) {
			auth = i + 1;
			i += 2;
		} else if (call_arg_is(c, i, "setname") && i + 1 < c->argc) {
			name = c->argv[++i];
		} else {
			return call_errorf(c, "ERR Syntax error in HELLO option '%.*s'",
					   STR_ARG(call_shown(c->argv[i])));
		}
	}
	if (auth)
		TRY(log_in(c, c->argv[auth], c->argv[auth + 1]));
	if (!client->entry.who.authenticated)
		return call_error(
			c, STR("NOAUTH HELLO must be called with the client already "
			       "authenticated, otherwise the HELLO <proto> AUTH <user> <pass> "
			       "option can be used to authenticate the client and select the "
			       "RESP protocol version at the same time"));
	if (!conn_name_is_sound(name))
		return call_error(c, STR("ERR Client names cannot contain spaces, newlines or "
					 "special characters."));
	if (name.ptr)
		clients_set_text(&client->entry, &client->entry.name, name);
	client->version = (int)version;
	c->reply->version = (int)version;
	hello_answer(c);
	return STATUS_OK;
}
