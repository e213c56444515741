/* What connections do now. */
#include <stdio.h>

#include "base/clock.h"
#include "door/mongo/client.h"
#include "door/mongo/commands.h"

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

/* A long command is shown by its name and what it is about. With the client's lock. */
static void
put_command(struct bson_builder *b, const struct mongo_client *one)
{
	struct bson_element e;
	struct bson_iter i;

	bson_begin_document(b, STR("command"));
	bson_iter_begin(&i, one->op_body);
	if (!one->op_body.len || !bson_iter_read(&i, &e)) {
		bson_put_int32(b, str_from_cstr(one->op_name), 1);
	} else if (one->op_body.len <= OP_COMMAND_BYTES) {
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

/* With the client's lock. */
static void
put_op(struct call *c, struct bson_builder *b, const struct mongo_client *one)
{
	char desc[OP_DESC_BYTES];
	uint64_t us = (clock_mono_ns() - one->op_began_ns) / 1000;

	snprintf(desc, sizeof(desc), "conn%llu", (unsigned long long)one->id);
	bson_begin_document(b, STR(""));
	bson_put_string(b, STR("type"), STR("op"));
	bson_put_string(b, STR("host"), str_from_cstr(c->mongo->host));
	bson_put_string(b, STR("desc"), str_from_cstr(desc));
	bson_put_int64(b, STR("connectionId"), (int64_t)one->id);
	bson_put_string(b, STR("client"), str_from_cstr(one->peer));
	if (one->app[0])
		bson_put_string(b, STR("appName"), str_from_cstr(one->app));
	bson_put_bool(b, STR("active"), one->op_id != 0);
	if (one->user_name[0]) {
		bson_begin_array(b, STR("effectiveUsers"));
		bson_begin_document(b, STR(""));
		bson_put_string(b, STR("user"), str_from_cstr(one->user_name));
		bson_put_string(b, STR("db"), STR("admin"));
		bson_end(b);
		bson_end(b);
	}
	if (one->op_id) {
		bson_put_int64(b, STR("opid"), (int64_t)one->op_id);
		bson_put_int64(b, STR("secs_running"), (int64_t)(us / 1000000));
		bson_put_int64(b, STR("microsecs_running"), (int64_t)us);
		bson_put_string(b, STR("op"), STR("command"));
		bson_put_string(b, STR("ns"), str_from_cstr(one->op_ns));
		put_command(b, one);
	}
	bson_end(b);
}

enum status
mongo_put_ops(struct call *c, struct bson_builder *b, bool own, bool idle)
{
	if (!own && !(c->client->rights.any & RIGHT_MONITOR))
		return call_fail(c, MONGO_UNAUTHORIZED,
				 "not authorized on admin to execute command currentOp");
	pthread_mutex_lock(&c->mongo->clients_lock);
	for (struct mongo_client *one = c->mongo->clients; one; one = one->next) {
		if (own && strcmp(one->user_name, c->client->user_name) != 0)
			continue;
		pthread_mutex_lock(&one->lock);
		if (one->op_id || idle)
			put_op(c, b, one);
		pthread_mutex_unlock(&one->lock);
	}
	pthread_mutex_unlock(&c->mongo->clients_lock);
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
					   any ? NULL : c->client->user_name);
	bson_put_string(c->reply, STR("info"), STR("attempting to kill op"));
	return STATUS_OK;
}
