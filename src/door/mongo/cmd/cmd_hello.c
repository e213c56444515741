/*
 * hello: what drivers ask first, and again every few seconds. They take the server for a standalone
 * one, or for the only member, and so the primary, of a replica set.
 */
#include <stdio.h>

#include "base/clock.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cluster_time.h"

enum {
	ELECTION_TERM = 1,
};

#define ARGS_HELLO(ARG)                                                                            \
	ARG(ARG_CLIENT, "client", ARG_OBJECT)                                                      \
	ARG(ARG_COMPRESSION, "compression", ARG_ARRAY)                                             \
	ARG(ARG_SPECULATIVE, "speculativeAuthenticate", ARG_OBJECT)                                \
	ARG(ARG_MECHANISMS, "saslSupportedMechs", ARG_ANY)                                         \
	ARG(ARG_TOPOLOGY, "topologyVersion", ARG_OBJECT)                                           \
	ARG(ARG_AWAIT, "maxAwaitTimeMS", ARG_NUMBER)                                               \
	ARG(ARG_HELLO_OK, "helloOk", ARG_BOOL)
ARGS_DEFINE(args_hello, ARGS_HELLO);

/* What the client says about itself, which it may say once. */
static enum status
take_metadata(struct call *c)
{
	struct mongo_client *client = c->client;
	struct bson_value name;
	struct str app;

	if (!call_has(c, ARG_CLIENT))
		return STATUS_OK;
	if (client->greeted)
		return call_fail(
			c, MONGO_METADATA_CANNOT_CHANGE,
			"The client metadata document may only be sent in the first hello");
	client->greeted = true;
	if (!bson_find_path(bson_text(&c->args[ARG_CLIENT].value), STR("application.name"),
			    &name) ||
	    name.type != BSON_STRING)
		return STATUS_OK;
	app = bson_text(&name);
	if (app.len > CLIENT_APP_BYTES)
		app.len = CLIENT_APP_BYTES;
	clients_set_text(&client->entry, &client->entry.name, app);
	return STATUS_OK;
}

/* Waits while nothing changes, as nothing does, if the client knows what there is. */
static enum status
await_change(struct call *c)
{
	struct bson_value process, counter;
	int64_t ms = call_i64(c, ARG_AWAIT, 0);
	enum status status;
	struct str known;

	if (call_has(c, ARG_TOPOLOGY) != call_has(c, ARG_AWAIT))
		return call_fail(
			c, 31368,
			"A request with a 'topologyVersion' must include 'maxAwaitTimeMS', "
			"and the other way round");
	if (!call_has(c, ARG_TOPOLOGY))
		return STATUS_OK;
	known = bson_text(&c->args[ARG_TOPOLOGY].value);
	if (ms < 0)
		return call_fail(c, 31373, "maxAwaitTimeMS must be a non-negative integer");
	if (!bson_find(known, STR("processId"), &process) || process.type != BSON_OBJECT_ID ||
	    !bson_find(known, STR("counter"), &counter) || counter.type != BSON_INT64)
		return call_fail(c, MONGO_FIELD_MISSING,
				 "BSON field 'topologyVersion.processId' or 'counter' is missing "
				 "but a required field");
	c->again = c->exhaust;
	if (memcmp(bson_text(&process).ptr, c->mongo->process_id, BSON_OBJECT_ID_BYTES) != 0)
		return STATUS_OK;
	/*
	 * Whoever waits for another answer leaves, or sends something else, as it likes. Without
	 * room for one more that waits it is answered now: an error would say that the server is
	 * down.
	 */
	status = mongo_client_last(c->client, &c->err);
	if (status == STATUS_CANCELLED)
		return status;
	c->err = (struct err){ 0 };
	if (status != STATUS_OK ||
	    !mongo_client_wait(
		    c->client,
		    clock_after_ms((uint64_t)(ms < MONGO_AWAIT_MS ? ms : MONGO_AWAIT_MS))))
		c->again = false;
	return STATUS_OK;
}

static void
put_set(struct call *c)
{
	/* The greatest first bytes: never older than another one that a driver may have seen. */
	static const char election[BSON_OBJECT_ID_BYTES] = {
		0x7f, (char)0xff, (char)0xff, (char)0xff, 0, 0, 0, 0, 0, 0, 0, 1
	};
	struct str host = str_from_cstr(c->mongo->host);
	const char *name = c->mongo->set;

	if (!name)
		return;
	bson_begin_array(c->reply, STR("hosts"));
	bson_put_string(c->reply, STR(""), host);
	bson_end(c->reply);
	bson_put_string(c->reply, STR("setName"), str_from_cstr(name));
	bson_put_int32(c->reply, STR("setVersion"), 1);
	bson_put_bool(c->reply, STR("secondary"), mongo_is_secondary(c->mongo));
	if (!mongo_is_secondary(c->mongo))
		bson_put_string(c->reply, STR("primary"), host);
	bson_put_string(c->reply, STR("me"), host);
	bson_put_object_id(c->reply, STR("electionId"), str_of(election, sizeof(election)));
}

static void
put_last_write(struct call *c)
{
	uint64_t now_ms = clock_wall_ms();

	if (!c->mongo->set)
		return;
	bson_begin_document(c->reply, STR("lastWrite"));
	for (int i = 0; i < 2; i++) {
		bson_begin_document(c->reply, i ? STR("majorityOpTime") : STR("opTime"));
		bson_put_timestamp(c->reply, STR("ts"), time_of_version(time_now(c)));
		bson_put_int64(c->reply, STR("t"), ELECTION_TERM);
		bson_end(c->reply);
		bson_put_date(c->reply, i ? STR("majorityWriteDate") : STR("lastWriteDate"),
			      (int64_t)(now_ms / 1000 * 1000));
	}
	bson_end(c->reply);
}

/* Those of the client's list that are here, in its order. */
static void
put_compression(struct call *c)
{
	struct bson_element e;
	struct bson_iter i;
	enum compressor by;

	if (!call_has(c, ARG_COMPRESSION))
		return;
	memset(c->client->compressors, 0, sizeof(c->client->compressors));
	bson_begin_array(c->reply, STR("compression"));
	for (bson_iter_begin(&i, bson_text(&c->args[ARG_COMPRESSION].value));
	     bson_iter_read(&i, &e);) {
		if (e.value.type != BSON_STRING || !compressor_find(bson_text(&e.value), &by) ||
		    c->client->compressors[by])
			continue;
		c->client->compressors[by] = true;
		bson_put_string(c->reply, STR(""), bson_text(&e.value));
	}
	bson_end(c->reply);
}

/* The first step of a login. If it fails there is no answer to it, and the client tries again. */
static void
put_speculation(struct call *c)
{
	struct buf AUTO(buf_release) answer = BUF_SHORT(2 * AUTH_SCRAM_MESSAGE_BYTES);
	struct bson_builder b;

	if (!call_has(c, ARG_SPECULATIVE))
		return;
	bson_open(&b, &answer);
	if (sasl_start(c, bson_text(&c->args[ARG_SPECULATIVE].value), &b) != STATUS_OK) {
		c->code = 0;
		c->err = (struct err){ 0 };
		return;
	}
	bson_end(&b);
	if (buf_status(&answer) == STATUS_OK)
		bson_put_document(c->reply, STR("speculativeAuthenticate"), buf_str(&answer));
}

static void
put_mechanisms(struct call *c)
{
	if (!call_has(c, ARG_MECHANISMS))
		return;
	/* The same for all names: it must not tell who there is. */
	bson_begin_array(c->reply, STR("saslSupportedMechs"));
	bson_put_string(c->reply, STR(""), STR("SCRAM-SHA-256"));
	bson_end(c->reply);
}

static bool
is_called(const struct call *c, const char *name)
{
	struct bson_element e;
	struct bson_iter i;

	bson_iter_begin(&i, c->body);
	return bson_iter_read(&i, &e) && str_eq(e.name, str_from_cstr(name));
}

enum status
mongo_run_hello(struct call *c)
{
	TRY(take_metadata(c));
	TRY(await_change(c));
	bson_begin_document(c->reply, STR("topologyVersion"));
	bson_put_object_id(c->reply, STR("processId"),
			   str_of(c->mongo->process_id, BSON_OBJECT_ID_BYTES));
	bson_put_int64(c->reply, STR("counter"), 0);
	bson_end(c->reply);
	if (call_bool(c, ARG_HELLO_OK, false))
		bson_put_bool(c->reply, STR("helloOk"), true);
	put_set(c);
	bson_put_bool(c->reply, is_called(c, "hello") ? STR("isWritablePrimary") : STR("ismaster"),
		      !mongo_is_secondary(c->mongo));
	put_last_write(c);
	bson_put_int32(c->reply, STR("maxBsonObjectSize"), MONGO_DOCUMENT_BYTES);
	bson_put_int32(c->reply, STR("maxMessageSizeBytes"), WIRE_MESSAGE_BYTES);
	bson_put_int32(c->reply, STR("maxWriteBatchSize"), MONGO_BATCH_WRITES);
	bson_put_date(c->reply, STR("localTime"), (int64_t)clock_wall_ms());
	bson_put_int32(c->reply, STR("logicalSessionTimeoutMinutes"), MONGO_SESSION_MINUTES);
	bson_put_int32(c->reply, STR("connectionId"), (int32_t)(c->client->entry.id & INT32_MAX));
	bson_put_int32(c->reply, STR("minWireVersion"), 0);
	bson_put_int32(c->reply, STR("maxWireVersion"), MONGO_WIRE_VERSION);
	bson_put_bool(c->reply, STR("readOnly"), false);
	put_compression(c);
	put_mechanisms(c);
	put_speculation(c);
	return STATUS_OK;
}
