/* What connections do now. */
#include <stdio.h>

#include "base/clock.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/txn/client.h"

enum {
	OP_DESC_BYTES = 32,
	OP_NS_BYTES = 256,      /* of what it works on, as it is shown */
	OP_COMMAND_BYTES = 512, /* of a command that is shown whole */
};

#define ARGS_CURRENT_OP(ARG)                                                                       \
	ARG(OP_ALL, "$all", ARG_BOOL)                                                              \
	ARG(OP_OWN, "$ownOps", ARG_BOOL)
ARGS_DEFINE(args_current_op, ARGS_CURRENT_OP);

#define ARGS_KILL_OP(ARG) ARG(KILL_OP, "op", ARG_NUMBER | ARG_REQUIRED)
ARGS_DEFINE(args_kill_op, ARGS_KILL_OP);

/*
 * A long command is shown by its name and what it is about, and one that is private by its name;
 * what another door does by its name and what it works on.
 */
static void
put_command(struct bson_builder *b, const struct ops_op *op)
{
	struct bson_element e;
	struct bson_iter i;

	bson_begin_document(b, STR("command"));
	bson_iter_begin(&i, op->body);
	if (!op->body.len || !bson_iter_read(&i, &e)) {
		if (op->door == &mongo_ops)
			bson_put_int32(b, op->name, 1);
		else
			bson_put_string(b, op->name, op->on);
	} else if (op->body.len <= OP_COMMAND_BYTES) {
		do {
			/* A login may have a password in clear. */
			if (!str_eq(e.name, STR("speculativeAuthenticate")))
				bson_put_element(b, &e);
		} while (bson_iter_read(&i, &e));
	} else {
		if (e.value.type == BSON_STRING && bson_text(&e.value).len < OP_COMMAND_BYTES)
			bson_put(b, e.name, &e.value);
		else
			bson_put_int32(b, e.name, 1);
		bson_put_string(b, STR("$truncated"), STR("the command is too long to be shown"));
	}
	bson_end(b);
}

/* What is shown, and to whom. */
struct ops {
	struct call *call;
	struct bson_builder *b;
	bool own;  /* what the caller's person does */
	bool idle; /* connections that do nothing, too, and what other doors do */
};

static bool
is_shown(const struct ops *ops, const struct clients_view *v)
{
	const struct mongo_client *client = ops->call->client;

	if (v->of != &ops->call->mongo->clients)
		return ops->idle && !ops->own && client->entry.who.user.admin;
	return !ops->own || str_eq(v->user, str_from_cstr(client->entry.user));
}

static void
put_who(const struct clients_view *v, bool other, struct bson_builder *b)
{
	char desc[OP_DESC_BYTES];

	if (other) {
		bson_put_string(b, STR("desc"), str_from_cstr(v->op->door->name));
		bson_put_string(b, STR("door"), str_from_cstr(v->op->door->name));
	} else {
		snprintf(desc, sizeof(desc), "conn%llu", (unsigned long long)v->entry->id);
		bson_put_string(b, STR("desc"), str_from_cstr(desc));
		bson_put_int64(b, STR("connectionId"), (int64_t)v->entry->id);
	}
	bson_put_string(b, STR("client"), str_from_cstr(v->peer));
	if (v->entry && v->entry->name.len)
		bson_put_string(b, STR("appName"), buf_str(&v->entry->name));
	bson_put_bool(b, STR("active"), v->op != NULL);
	if (v->user.len) {
		bson_begin_array(b, STR("effectiveUsers"));
		bson_begin_document(b, STR(""));
		bson_put_string(b, STR("user"), v->user);
		bson_put_string(b, STR("db"), STR("admin"));
		bson_end(b);
		bson_end(b);
	}
}

static void
put_op(void *arg, const struct clients_view *v)
{
	const struct ops *ops = arg;
	const struct ops_op *op = v->op;
	struct bson_builder *b = ops->b;
	char ns[OP_NS_BYTES];

	if (!is_shown(ops, v))
		return;
	bson_begin_document(b, STR(""));
	bson_put_string(b, STR("type"), STR("op"));
	bson_put_string(b, STR("host"), str_from_cstr(ops->call->mongo->host));
	put_who(v, v->of != &ops->call->mongo->clients, b);
	if (op) {
		uint64_t us = (clock_mono_ns() - op->began_ns) / 1000;

		snprintf(ns, sizeof(ns), "%.*s%s%.*s", STR_ARG(op->on), op->on_more.len ? "." : "",
			 STR_ARG(op->on_more));
		bson_put_int64(b, STR("opid"), (int64_t)op->id);
		bson_put_int64(b, STR("secs_running"), (int64_t)(us / 1000000));
		bson_put_int64(b, STR("microsecs_running"), (int64_t)us);
		bson_put_string(b, STR("op"), STR("command"));
		bson_put_string(b, STR("ns"), str_from_cstr(ns));
		put_command(b, op);
	}
	bson_end(b);
}

enum status
mongo_put_ops(struct call *c, struct bson_builder *b, bool own, bool idle)
{
	if (!own && !(c->client->rights.any & RIGHT_MONITOR))
		return call_fail(c, MONGO_UNAUTHORIZED,
				 "not authorized on admin to execute command currentOp");
	clients_each_op(idle ? &c->mongo->clients : NULL, put_op, &(struct ops){ c, b, own, idle });
	return STATUS_OK;
}

enum status
mongo_run_current_op(struct call *c)
{
	bool own = call_bool(c, OP_OWN, false);
	bool idle = call_bool(c, OP_ALL, false);

	bson_begin_array(c->reply, STR("inprog"));
	TRY(mongo_put_ops(c, c->reply, own, idle));
	mongo_put_idle_sessions(c, c->reply, own);
	bson_end(c->reply);
	return STATUS_OK;
}

/* Operations of other doors are ended by administrators. */
static bool
may_kill(void *arg, const struct clients_view *v)
{
	const struct mongo_client *client = arg;

	if (v->of != &client->mongo->clients)
		return client->entry.who.user.admin;
	return client->rights.any & RIGHT_HOST ||
	       str_eq(v->user, str_from_cstr(client->entry.user));
}

enum status
mongo_run_kill_op(struct call *c)
{
	int64_t op = call_i64(c, KILL_OP, 0);

	/* As MongoDB: also where there is no such operation, or it has ended meanwhile. */
	if (op > 0)
		clients_end_op((uint64_t)op, may_kill, c->client);
	bson_put_string(c->reply, STR("info"), STR("attempting to kill op"));
	return STATUS_OK;
}
