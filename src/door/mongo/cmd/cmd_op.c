/* What connections do now. */
#include <stdio.h>

#include "base/clock.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/txn/client.h"

enum {
	OP_ALL,
	OP_OWN,
	KILL_OP = 0,
	OP_DESC_BYTES = 32,
	OP_COMMAND_BYTES = 512, /* of a command that is shown whole */
};

const struct arg args_current_op[] = {
	[OP_ALL] = { "$all", ARG_BOOL },
	[OP_OWN] = { "$ownOps", ARG_BOOL },
	{ NULL, 0 },
};

const struct arg args_kill_op[] = {
	[KILL_OP] = { "op", ARG_NUMBER | ARG_REQUIRED },
	{ NULL, 0 },
};

/* A long command is shown by its name and what it is about. With the entry's lock. */
static void
put_command(struct bson_builder *b, const struct clients_op *op)
{
	struct bson_element e;
	struct bson_iter i;

	bson_begin_document(b, STR("command"));
	bson_iter_begin(&i, op->body);
	if (!op->body.len || !bson_iter_read(&i, &e)) {
		bson_put_int32(b, str_from_cstr(op->name), 1);
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
	bool idle; /* connections that do nothing, too */
};

/* With the entry's lock and the list's. */
static void
put_op(void *arg, struct clients_entry *one)
{
	const struct ops *ops = arg;
	const struct clients_op *op = &one->op;
	uint64_t us = (clock_mono_ns() - op->began_ns) / 1000;
	struct bson_builder *b = ops->b;
	char desc[OP_DESC_BYTES];

	if (ops->own && strcmp(one->user, ops->call->client->entry.user) != 0)
		return;
	if (!op->id && !ops->idle)
		return;
	snprintf(desc, sizeof(desc), "conn%llu", (unsigned long long)one->id);
	bson_begin_document(b, STR(""));
	bson_put_string(b, STR("type"), STR("op"));
	bson_put_string(b, STR("host"), str_from_cstr(ops->call->mongo->host));
	bson_put_string(b, STR("desc"), str_from_cstr(desc));
	bson_put_int64(b, STR("connectionId"), (int64_t)one->id);
	bson_put_string(b, STR("client"), str_from_cstr(one->peer));
	if (one->name.len)
		bson_put_string(b, STR("appName"), buf_str(&one->name));
	bson_put_bool(b, STR("active"), op->id != 0);
	if (one->user[0]) {
		bson_begin_array(b, STR("effectiveUsers"));
		bson_begin_document(b, STR(""));
		bson_put_string(b, STR("user"), str_from_cstr(one->user));
		bson_put_string(b, STR("db"), STR("admin"));
		bson_end(b);
		bson_end(b);
	}
	if (op->id) {
		bson_put_int64(b, STR("opid"), (int64_t)op->id);
		bson_put_int64(b, STR("secs_running"), (int64_t)(us / 1000000));
		bson_put_int64(b, STR("microsecs_running"), (int64_t)us);
		bson_put_string(b, STR("op"), STR("command"));
		bson_put_string(b, STR("ns"), str_from_cstr(op->on));
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
	clients_each(&c->mongo->clients, put_op, &(struct ops){ c, b, own, idle });
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

enum status
mongo_run_kill_op(struct call *c)
{
	bool any = c->client->rights.any & RIGHT_HOST;
	int64_t op = call_i64(c, KILL_OP, 0);

	/* As MongoDB: also where there is no such operation, or it has ended meanwhile. */
	if (op > 0)
		(void)mongo_client_kill_op(c->mongo, (uint64_t)op,
					   any ? NULL : c->client->entry.user);
	bson_put_string(c->reply, STR("info"), STR("attempting to kill op"));
	return STATUS_OK;
}
