#include "door/mongo/txn/scripts.h"

#include <openssl/sha.h>

#include "door/mongo/txn/client.h"
#include "door/mongo/txn/command.h"
#include "js/js.h"

enum {
	/* Set in the numbers that owners have here, so that they are not those of databases. */
	OWNER_BIT = 63,
};

static enum status
scripts_check(const struct mql_scripts *scripts, struct err *err)
{
	const struct call_scripts *s = (const struct call_scripts *)scripts;
	const struct mongo_config *config = &s->call->mongo->config;

	if (!config->settings->javascript)
		return err_set(err, STATUS_UNSUPPORTED, "[mongo] javascript of this server is off");
	if (!config->js)
		return err_set(err, STATUS_UNSUPPORTED, "this process runs no functions");
	return js_check(config->js, err);
}

/* Names of ways to call the functions, as worker/mongo.js has them. */
static struct str
how_of(enum mql_script_kind kind)
{
	switch (kind) {
	case MQL_SCRIPT_WHERE:
		return STR("where");
	case MQL_SCRIPT_CALL:
		return STR("call");
	case MQL_SCRIPT_ACCUMULATE:
		break;
	}
	return STR("accumulate");
}

/*
 * Functions of one text share a context in a worker, in which they may leave something for later
 * calls. So people and databases have contexts of their own.
 */
static enum status
make_design(const struct call *c, struct arena *arena, const struct mql_script *script,
	    struct js_design *ret)
{
	struct str user = str_from_cstr(c->client->entry.user);
	struct str whole = arena_printf(arena, "%zu,%zu,%.*s%.*s%.*s", c->db.len, user.len,
					STR_ARG(c->db), STR_ARG(user), STR_ARG(script->text));
	char *key = arena_bytes(arena, SHA256_DIGEST_LENGTH);
	struct str name = arena_printf(arena, "%.*s (MongoDB)", STR_ARG(c->db));

	if (!whole.ptr || !key || !name.ptr)
		return STATUS_LIMIT;
	SHA256((const uint8_t *)whole.ptr, whole.len, (uint8_t *)key);
	*ret = (struct js_design){ .owner = str_hash(c->db) | 1ULL << OWNER_BIT,
				   .name = name,
				   .key = str_of(key, SHA256_DIGEST_LENGTH),
				   .language = JS_SCRIPTS,
				   .text = script->text };
	return STATUS_OK;
}

static enum status
explain_failure(struct mql *q, const struct js_call *js)
{
	if (!str_eq(js->error.name, STR(JS_LOST)))
		return mql_script_fail(q, js->error.name, js->error.reason);
	q->code = str_eq(js->error.reason, STR(JS_TIMED_OUT)) ? MQL_SCRIPT_INTERRUPTED
							      : MQL_SCRIPT_FAILED;
	return err_set(q->err, STATUS_INVALID, "JavaScript execution terminated: %.*s",
		       STR_ARG(js->error.reason));
}

static enum status
scripts_run(const struct mql_scripts *scripts, struct mql *q, const struct mql_script *script,
	    const struct str *asks, size_t count, struct mql_script_result *ret)
{
	struct call *c = ((const struct call_scripts *)scripts)->call;
	struct mongo_client *client = c->client;
	struct js_script_result *results = arena_alloc(q->arena, count * sizeof(*results));
	struct js_design design;
	struct js_call js = {
		.js = c->mongo->config.js,
		.design = &design,
		.lane = JS_LANE_REQUEST,
		.deadline_ns = client->entry.op.until_ns ? client->entry.op.until_ns : WAIT_FOREVER,
		.gone = net_stream_closed_event(client->stream),
		.arena = q->arena,
	};
	enum status status;

	if (!results)
		return STATUS_LIMIT;
	TRY(make_design(c, q->arena, script, &design));
	js.stop = clients_wait_begin(&client->entry);
	if (!js.stop)
		return STATUS_CANCELLED;
	status = js_script(&js, how_of(script->kind), asks, count, results, q->err);
	(void)clients_wait_end(&client->entry);
	if (status == STATUS_FUNCTION)
		return explain_failure(q, &js);
	TRY(status);
	for (size_t i = 0; i < count; i++)
		ret[i] = (struct mql_script_result){ .text = results[i].text,
						     .error_name = results[i].error.name,
						     .error_reason = results[i].error.reason };
	return STATUS_OK;
}

void
scripts_init(struct call_scripts *s, struct call *c)
{
	*s = (struct call_scripts){ .scripts = { scripts_check, scripts_run }, .call = c };
}
