#include "door/mongo/serve.h"

#include <assert.h>
#include <stdio.h>

#include "base/clear.h"
#include "base/clock.h"
#include "base/err_clear.h"
#include "base/metric.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cluster_time.h"
#include "door/mongo/txn/command.h"
#include "door/mongo/txn/cursor.h"
#include "door/mongo/txn/data.h"
#include "door/mongo/txn/mongo_int.h"
#include "loop/step.h"
#include "net/memory.h"
#include "serve/settle.h"

enum {
	IDLE_LOOK_MS = 60 * 60 * 1000,
	COST_BYTES = WIRE_HEADER_BYTES + 8, /* of a message, that tell what it costs */
	SLOW_BYTES = 160,                   /* of what is said of a slow command */
};

#define REQUIRES_LOGIN "Command %s requires authentication"

METRIC_COUNTER(commands, "frond_mongo_commands_total", METRIC_NUMBER,
	       "Commands of MongoDB's door, those that failed included.");
METRIC_COUNTER(failures, "frond_mongo_failures_total", METRIC_NUMBER,
	       "Commands of MongoDB's door that were answered with an error.");
METRIC_COUNTER(refusals, "frond_mongo_broken_messages_total", METRIC_NUMBER,
	       "Connections of MongoDB's door that were closed for a message that cannot be read.");

/* A message that is being served. */
struct request {
	struct mongo_client *client;
	int32_t id;
	int32_t op;
	bool compressed;
	enum compressor by;
	struct wire_msg msg;
	struct bson_builder reply;
	size_t from; /* of the answer in the client's output */
	size_t document;
};

/* ---- Input ---- */

/* Waits for the beginning of a message. STATUS_CANCELLED: there will be none. */
static enum status
wait_for_message(struct mongo_client *c)
{
	struct str in;

	for (;;) {
		TRY(net_stream_next(c->stream, &in));
		if (in.len)
			return STATUS_OK;
		net_stream_rest(c->stream, NET_REST_IDLE, NULL, clock_after_ms(IDLE_LOOK_MS));
	}
}

/*
 * Reads one message into its client's `in`. STATUS_INVALID: it is no such message; STATUS_LIMIT:
 * there is no memory for it, and it was dropped.
 */
static enum status
read_message(struct request *q)
{
	struct mongo_client *c = q->client;
	struct wire_header header;
	size_t cost;
	struct str in;

	TRY(net_stream_peek(c->stream, WIRE_HEADER_BYTES, &in));
	header = wire_header_read(in);
	if (header.length < WIRE_HEADER_BYTES || header.length > WIRE_MESSAGE_BYTES)
		return STATUS_INVALID;
	q->id = header.request_id;
	q->op = header.op;
	cost = header.length;
	if (in.len < COST_BYTES && header.length >= COST_BYTES)
		TRY(net_stream_peek(c->stream, COST_BYTES, &in));
	if (in.len >= COST_BYTES && q->op == WIRE_OP_MSG)
		q->msg.flags = wire_u32(in.ptr + WIRE_HEADER_BYTES);
	if (in.len >= COST_BYTES && q->op == WIRE_OP_COMPRESSED)
		cost += wire_u32(in.ptr + WIRE_HEADER_BYTES + 4);
	/* Buffers grow by doubling. */
	if (cost > WIRE_MESSAGE_BYTES)
		cost = WIRE_MESSAGE_BYTES;
	return net_stream_read(c->stream, header.length, 2 * cost, &c->in);
}

/* ---- Answers ---- */

static void
answer_begin(struct request *q, uint32_t flags)
{
	struct mongo_client *c = q->client;

	buf_clear(&c->out);
	if (q->op == WIRE_OP_QUERY)
		q->from = wire_begin_reply(&c->out, q->id, WIRE_REPLY_AWAIT_CAPABLE);
	else
		q->from = wire_begin_msg(&c->out, q->id,
					 flags | (q->msg.flags & WIRE_CHECKSUM_PRESENT));
	q->document = c->out.len;
	bson_open(&q->reply, &c->out);
}

/* Drops what was answered, and begins again with nothing. */
static void
answer_restart(struct request *q)
{
	struct mongo_client *c = q->client;

	/* Without memory for a header there is no answer, and the connection ends. */
	if (q->document < q->from + WIRE_HEADER_BYTES)
		return;
	assert(q->document <= c->out.len);
	c->out.failed = STATUS_OK;
	c->out.len = q->document;
	bson_open(&q->reply, &c->out);
}

static void
answer_failure(struct request *q, int code, const char *text)
{
	char name[32];

	metric_add(&failures, 1);
	answer_restart(q);
	bson_put_double(&q->reply, STR("ok"), 0);
	mongo_put_errmsg(&q->reply, text);
	bson_put_int32(&q->reply, STR("code"), code);
	bson_put_string(&q->reply, STR("codeName"), str_from_cstr(mongo_code_name(code, name)));
}

/* Ends the answer and writes it, unless the client wants none. False: it does not know it. */
static bool
answer_send(struct request *q, bool silent)
{
	struct mongo_client *c = q->client;
	int32_t id = atomic_fetch_add(&c->mongo->next_request, 1) + 1;

	bson_end(&q->reply);
	/* What was set aside and is not used is for others while the client reads. */
	budget_settle(c->out.part);
	if (silent)
		return false;
	wire_finish(&c->out, q->from, id);
	if (q->compressed && c->compressors[q->by])
		compress_pack(&c->out, q->from, q->by);
	if (buf_status(&c->out) != STATUS_OK ||
	    net_stream_write(c->stream, buf_str(&c->out)) != STATUS_OK) {
		c->ends = true;
		return false;
	}
	atomic_fetch_add_explicit(&c->mongo->bytes_out, c->out.len, memory_order_relaxed);
	ops_moved(&c->entry.op, c->out.len);
	q->id = id; /* what more there is answers this one */
	return true;
}

/* ---- Commands ---- */

static enum status
check_rights(struct call *c)
{
	const struct command *command = c->command;

	if (command->flags & COMMAND_ADMIN_DB && !str_eq(c->db, STR("admin")))
		return call_fail(c, MONGO_UNAUTHORIZED,
				 "%s may only be run against the admin database.", command->name);
	return command->needs ? call_check_rights(c, c->db, command->needs) : STATUS_OK;
}

/* True if the failure is one of memory that others hold, or that nobody may have. */
static bool
lacks_memory(const struct call *c, enum status status)
{
	const struct budget_part *part = c->client->out.part;

	return (status == STATUS_LIMIT || status == STATUS_NOMEM) && budget_has_failed(part);
}

/* The command has run. What is logged of it are none of the values that the client has sent. */
static void
count_call(const struct call *c, enum status status)
{
	struct clients_entry *entry = &c->client->entry;
	uint64_t took_ns = clock_mono_ns() - c->began_ns, computed_ns = ops_computed_ns(&entry->op);
	/* What waits by design is slow only by what it computes. */
	bool waits = c->is_watch || c->command->run == mongo_run_hello;
	int code = c->code ? c->code : (int)mongo_code_of(status);
	char more[SLOW_BYTES];

	usage_count(&c->mongo->usages, c, (c->is_watch ? computed_ns : took_ns) / 1000,
		    status == STATUS_OK);
	if ((waits ? computed_ns : took_ns) <= atomic_load(&c->mongo->slow_ms) * CLOCK_NS_PER_MS ||
	    !ops_count_slow(&mongo_ops))
		return;
	snprintf(more, sizeof(more), "computed_ms=%llu code=%d bytes_in=%zu bytes_out=%zu",
		 (unsigned long long)(computed_ns / CLOCK_NS_PER_MS),
		 status == STATUS_OK ? 0 : code, c->client->in.len, c->client->out.len);
	clients_note_slow(entry, &entry->op,
			  (struct ops_slow){ .took_ns = took_ns,
					     .more = str_from_cstr(more),
					     .keep = OPS_SLOW_KEPT });
}

static enum status
check_login(struct call *c)
{
	if (c->client->entry.who.authenticated || c->command->flags & COMMAND_NO_AUTH)
		return STATUS_OK;
	return call_fail(c, MONGO_UNAUTHORIZED, REQUIRES_LOGIN, c->command->name);
}

/* For visit_may(). */
static enum status
command_may(void *call)
{
	TRY(check_login(call));
	return check_rights(call);
}

/* When the command has had its time, by its maxTimeMS. */
static void
set_time(struct call *c)
{
	bool has_limit = c->max_ns && !(c->command->flags & COMMAND_OWN_TIME);

	c->client->entry.op.until_ns = has_limit ? c->began_ns + c->max_ns : 0;
}

/*
 * From now on others see the command, which is stopped when somebody kills the operation, when the
 * client has closed its connection, when its maxTimeMS is over, or if it waits and its person may
 * not run it any more.
 */
static void
begin_op(struct call *c)
{
	struct clients_entry *entry = &c->client->entry;

	clients_op_begin(entry, &mongo_ops, c->command->name,
			 c->command->flags & COMMAND_PRIVATE ? STR("") : c->body, c->began_ns,
			 c->db, c->collection);
	visit_may(entry, command_may, c);
	set_time(c);
}

static void
end_op(struct call *c)
{
	struct clients_entry *entry = &c->client->entry;
	const struct visit_refused refused = { .on = c->db, .on_more = c->collection };

	visit_op_end(entry, &entry->op, c->code == MONGO_UNAUTHORIZED ? &refused : NULL);
}

/* What the operation has ended by, in words. */
static enum status
explain_end(struct call *c, enum status status)
{
	struct mongo_client *client = c->client;

	if (c->code)
		return status;
	if (lacks_memory(c, status) && !c->err.text[0])
		return net_memory_refuse(net_stream_session(client->stream), &c->err);
	if (status == STATUS_TIMEOUT)
		return err_set(&c->err, status, "operation exceeded time limit");
	if (status == STATUS_CANCELLED)
		return err_set(&c->err, status, "operation was interrupted");
	if (status == STATUS_STEPS)
		return err_set(&c->err, status,
			       "the command needs more computing than one may take: the limit, "
			       "request_steps, is %llu steps",
			       (unsigned long long)step_limit());
	return status;
}

/* What may have to be waited for, or is refused, before the command runs. */
static enum status
enter_command(struct call *c)
{
	TRY(time_check_concern(c));
	TRY(fail_begin(c));
	set_time(c); /* a failure that a test has asked for may have changed it */
	TRY(txn_enter(c));
	return snapshot_enter(c);
}

/* The operation ends with the command. */
static enum status
run_handler(struct call *c)
{
	struct mongo_client *client = c->client;
	struct call_mark mark = call_mark(c);
	enum status status;
	unsigned runs = 0;

	status = client->entry.op.until_ns ? mongo_client_check(client) : STATUS_OK;
	if (status == STATUS_OK) {
		do
			status = c->command->run(c);
		while (call_runs_again(c, mark, &runs));
	}
	end_op(c);
	count_call(c, status);
	return explain_end(c, status);
}

static enum status
run_command(struct call *c)
{
	enum status status;

	TRY(call_read_args(c));
	TRY(api_check(c));
	begin_op(c);
	status = command_may(c);
	if (status == STATUS_OK)
		status = enter_command(c);
	if (status != STATUS_OK) {
		end_op(c);
		return explain_end(c, status);
	}
	status = run_handler(c);
	snapshot_leave(c);
	return txn_leave(c, status);
}

/*
 * Labels tell drivers what they may send again: this command, the whole transaction, or the
 * aggregate of a change stream.
 */
static void
put_labels(struct request *q, const struct call *c, int code)
{
	bool gone = mongo_code_is_passing(code);
	bool ends = c->command->flags & COMMAND_ENDS_TRANSACTION;
	bool transient = c->in_transaction && (mongo_code_is_transient(code) || (gone && !ends));
	bool resumable = c->is_watch && mongo_code_is_resumable(code);
	bool retryable = gone && c->has_number &&
			 (ends || (!c->in_transaction && c->command->flags & COMMAND_WRITES));

	bool fatal = c->is_watch && code == MONGO_CHANGE_STREAM_FATAL;

	/* A test may say which ones there are. */
	if (c->failing.labels.ptr ||
	    (!transient && !retryable && !resumable && !fatal && !c->is_unknown))
		return;
	bson_begin_array(&q->reply, STR("errorLabels"));
	if (transient)
		bson_put_string(&q->reply, STR(""), STR("TransientTransactionError"));
	if (c->is_unknown)
		bson_put_string(&q->reply, STR(""), STR("UnknownTransactionCommitResult"));
	if (retryable)
		bson_put_string(&q->reply, STR(""), STR("RetryableWriteError"));
	if (resumable)
		bson_put_string(&q->reply, STR(""), STR("ResumableChangeStreamError"));
	if (fatal)
		bson_put_string(&q->reply, STR(""), STR("NonResumableChangeStreamError"));
	bson_end(&q->reply);
}

/* Returns true if the command has succeeded, also for its client. */
static bool
answer_call(struct request *q, struct call *c, enum status status)
{
	enum status written = buf_status(&q->client->out);
	int code;

	if (status == STATUS_OK && lacks_memory(c, written))
		status = net_memory_refuse(net_stream_session(q->client->stream), &c->err);
	code = c->code ? c->code : (int)mongo_code_of(status);
	if (status == STATUS_OK && written == STATUS_OK) {
		bson_put_double(&q->reply, STR("ok"), 1);
		fail_put(c);
		time_put(c);
		return true;
	}
	if (status == STATUS_OK) {
		c->again = false;
		answer_failure(q, MONGO_BSON_TOO_LARGE,
			       "the answer is larger than a message may be (MONGO_REPLY_BYTES)");
		return false;
	}
	answer_failure(q, code, c->err.text[0] ? c->err.text : status_name(status));
	if (code == MONGO_DOCUMENT_VALIDATION && c->err_info.ptr)
		bson_put_document(&q->reply, STR("errInfo"), c->err_info);
	if (code == MONGO_DUPLICATE_KEY && c->duplicate.ptr)
		bson_put_elements(&q->reply, c->duplicate);
	put_labels(q, c, code);
	if (c->writes && !c->failing.concern.ptr)
		data_put_concern(c);
	fail_put(c);
	time_put(c);
	return false;
}

/*
 * True if a command that only reads has failed because others hold the memory: it is run again once
 * there is some. What a transaction or a cursor has read cannot be read again.
 */
static bool
may_run_again(const struct call *c, enum status status)
{
	bool lacks = c->code ? c->code == MONGO_EXCEEDED_MEMORY_LIMIT : lacks_memory(c, status);

	return lacks && c->client->out.part->refused && !c->in_transaction && !c->writes &&
	       c->command->flags & COMMAND_SNAPSHOT;
}

/*
 * Clears a call but for what is most of it: the values of arguments that are not given, and what is
 * behind the end of its error's text.
 */
static void
call_clear(struct call *c)
{
	CLEAR_BEFORE(c, args);
	for (size_t i = 0; i < COMMAND_ARGS; i++)
		c->args[i].given = false;
	CLEAR_BETWEEN(c, args, collation, err);
	err_clear(&c->err);
	CLEAR_BEHIND(c, err, code);
}

/*
 * Runs the command of a call that begins here, again and again while it may have more memory than
 * in its last attempt, of which nothing is left meanwhile.
 */
static enum status
run_attempts(struct request *q, struct call *c, const struct command *command,
	     struct arena_mark mark)
{
	struct mongo_client *client = q->client;
	struct net_session *session = net_stream_session(client->stream);
	uint64_t began_ns = clock_mono_ns();
	enum status status;
	size_t asked = 0;

	for (;;) {
		call_clear(c);
		c->mongo = client->mongo;
		c->client = client;
		c->command = command;
		c->msg = &q->msg;
		c->body = q->msg.body;
		c->reply = &q->reply;
		c->arena = net_stream_arena(client->stream);
		c->began_ns = began_ns;
		c->exhaust = q->msg.flags & WIRE_EXHAUST_ALLOWED;
		if (q->op == WIRE_OP_QUERY)
			c->db = STR("admin");
		budget_forgive(&session->part);
		answer_begin(q, 0);
		status = run_command(c);
		if (!may_run_again(c, status))
			return status;
		buf_release(&client->out);
		arena_reset(c->arena, mark);
		if (net_memory_await_more(session, &asked) != STATUS_OK ||
		    visit_follow(&client->entry) != STATUS_OK) {
			c->failing = (struct fail_effect){ 0 }; /* it was in the arena */
			answer_begin(q, 0);
			return status;
		}
	}
}

/* The document of a command was checked. Answers it, more than once if it is meant to. */
static void
serve_command(struct request *q, const struct command *command)
{
	struct mongo_client *client = q->client;
	struct arena *arena = net_stream_arena(client->stream);
	struct arena_mark mark = arena_mark(arena);
	bool silent = q->msg.flags & WIRE_MORE_TO_COME;
	struct call c;
	bool knows;

	do {
		metric_add(&commands, 1);
		knows = answer_call(q, &c, run_attempts(q, &c, command, mark));
		c.again = c.again && c.exhaust && knows;
		if (c.again)
			wire_put_u32(client->out.ptr + q->from + WIRE_HEADER_BYTES,
				     WIRE_MORE_TO_COME | (q->msg.flags & WIRE_CHECKSUM_PRESENT));
		knows &= answer_send(q, silent || c.failing.closes);
		/* Nobody could end a cursor whose number no client knows. */
		if (c.cursor && !knows)
			(void)cursor_kill(client->mongo, c.cursor, c.cursor_ns, client->entry.user);
		client->ends = client->ends || c.failing.closes;
		arena_reset(arena, mark);
	} while (c.again && !client->ends && visit_follow(&client->entry) == STATUS_OK);
}

static enum status
check_documents(const struct wire_msg *msg, struct err *err)
{
	TRY(bson_check(msg->body, err));
	for (size_t i = 0; i < msg->count; i++) {
		struct str rest = msg->sequences[i].docs;
		struct str doc;

		while (wire_document_cut(&rest, &doc))
			TRY(bson_check(doc, err));
	}
	return STATUS_OK;
}

/*
 * The address or the person asks too often, or for too much ([limits]). As MongoDB's own limit of
 * requests says it: newer drivers wait and send the command again, even if it writes, since it has
 * not begun.
 */
static void
refuse_for_limits(struct request *q, const struct err *err)
{
	answer_begin(q, 0);
	answer_failure(q, MONGO_REQUEST_RATE, err->text);
	bson_begin_array(&q->reply, STR("errorLabels"));
	bson_put_string(&q->reply, STR(""), STR("SystemOverloadedError"));
	bson_put_string(&q->reply, STR(""), STR("RetryableError"));
	bson_end(&q->reply);
	answer_send(q, q->msg.flags & WIRE_MORE_TO_COME);
}

static void
refuse_stranger(struct request *q, const struct command *command)
{
	struct err err;

	err_clear(&err);
	err_set(&err, STATUS_UNAUTHORIZED, REQUIRES_LOGIN, command->name);
	answer_begin(q, 0);
	answer_failure(q, MONGO_UNAUTHORIZED, err.text);
	answer_send(q, q->msg.flags & WIRE_MORE_TO_COME);
}

/*
 * A hello is never refused: drivers take that for a server that is not there, and drop all of their
 * connections to it.
 */
static bool
admit_command(struct request *q, const struct command *command)
{
	const struct visit_command asked = {
		.name = command ? str_from_cstr(command->name) : STR(""),
		.is_open = !command || command->flags & COMMAND_NO_AUTH,
		.always = command && command->run == mongo_run_hello,
	};
	struct err err;
	enum status status;

	err_clear(&err);
	status = visit_admit(&q->client->entry, &asked, &err);
	if (status == STATUS_UNAUTHORIZED)
		refuse_stranger(q, command);
	else if (status != STATUS_OK && !asked.always)
		refuse_for_limits(q, &err);
	return status == STATUS_OK;
}

static void
serve_msg(struct request *q)
{
	struct bson_element first = { 0 };
	const struct command *command;
	struct bson_iter i;
	struct err err;

	err_clear(&err);
	if (check_documents(&q->msg, &err) != STATUS_OK) {
		answer_begin(q, 0);
		answer_failure(q, MONGO_INVALID_BSON, err.text);
		answer_send(q, q->msg.flags & WIRE_MORE_TO_COME);
		return;
	}
	bson_iter_begin(&i, q->msg.body);
	command = bson_iter_read(&i, &first) ? mongo_command_find(first.name) : NULL;
	if (!admit_command(q, command))
		return;
	if (command) {
		serve_command(q, command);
		return;
	}
	answer_begin(q, 0);
	err_set(&err, STATUS_NOT_FOUND, "no such command: '%.*s'",
		(int)(first.name.len < 100 ? first.name.len : 100), first.name.ptr);
	answer_failure(q, MONGO_COMMAND_NOT_FOUND, err.text);
	answer_send(q, q->msg.flags & WIRE_MORE_TO_COME);
}

/* Drivers send their first hello in this form, since any server can read it. */
static enum status
serve_query(struct request *q, struct str message)
{
	struct bson_element first = { 0 };
	const struct command *command;
	struct wire_query query;
	struct err err = { 0 };
	struct bson_iter i;

	TRY(wire_query_read(message, &query));
	TRY(bson_check(query.body, NULL));
	bson_iter_begin(&i, query.body);
	command = bson_iter_read(&i, &first) ? mongo_command_find(first.name) : NULL;
	q->msg = (struct wire_msg){ .body = query.body };
	if (command && command->run == mongo_run_hello) {
		if (admit_command(q, command))
			serve_command(q, command);
		return STATUS_OK;
	}
	answer_begin(q, 0);
	err_set(&err, STATUS_UNSUPPORTED,
		"Unsupported OP_QUERY command: %.*s. The client driver may require an upgrade. For "
		"more details see https://dochub.mongodb.org/core/legacy-opcode-removal",
		(int)(first.name.len < 100 ? first.name.len : 100), first.name.ptr);
	answer_failure(q, MONGO_UNSUPPORTED_OP_QUERY, err.text);
	answer_send(q, false);
	return STATUS_OK;
}

/* ---- Messages ---- */

static bool
error_is_fatal(int code)
{
	return code == WIRE_ILLEGAL_FLAG || code == WIRE_TOO_MANY_SEQUENCES ||
	       code == WIRE_CHECKSUM_MISMATCH;
}

/* A whole message. STATUS_INVALID: it cannot be read, and the connection closes, as MongoDB's. */
static enum status
serve_message(struct request *q, struct str message)
{
	struct mongo_client *c = q->client;
	struct wire_error error;

	if (q->op == WIRE_OP_COMPRESSED) {
		TRY(compress_unpack(message, WIRE_MESSAGE_BYTES, &c->raw, &q->by, NULL));
		q->compressed = true;
		message = buf_str(&c->raw);
		q->op = wire_header_read(message).op;
	}
	if (q->op == WIRE_OP_QUERY)
		return serve_query(q, message);
	if (q->op != WIRE_OP_MSG)
		return STATUS_INVALID;
	if (wire_msg_read(message, &q->msg, &error) == STATUS_OK) {
		serve_msg(q);
		return STATUS_OK;
	}
	if (error_is_fatal(error.code))
		return STATUS_INVALID;
	q->msg = (struct wire_msg){ 0 };
	answer_begin(q, 0);
	answer_failure(q, error.code, error.text);
	answer_send(q, false);
	return STATUS_OK;
}

/*
 * A message for which there is no memory was dropped. Of one that came compressed nobody knows
 * whether its client waits for an answer, and the connection ends behind that.
 */
static void
refuse_message(struct request *q)
{
	struct mongo_client *c = q->client;
	struct err err = { 0 };

	c->ends = c->ends || q->op == WIRE_OP_COMPRESSED;
	(void)net_memory_refuse(net_stream_session(c->stream), &err);
	answer_begin(q, 0);
	answer_failure(q, MONGO_EXCEEDED_MEMORY_LIMIT, err.text);
	answer_send(q, q->msg.flags & WIRE_MORE_TO_COME);
}

/* Serves one message. False: the connection ends. */
static bool
serve_turn(struct mongo_client *c)
{
	struct request q = { .client = c };
	enum status status;

	if (wait_for_message(c) != STATUS_OK)
		return false;
	budget_forgive(c->out.part);
	status = read_message(&q);
	if (status == STATUS_OK) {
		step_unit();
		atomic_fetch_add_explicit(&c->mongo->requests, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&c->mongo->bytes_in, c->in.len, memory_order_relaxed);
		status = serve_message(&q, buf_str(&c->in));
	}
	c->ends = c->ends || net_stream_is_unwanted(c->stream);
	if (net_stream_is_unwanted(c->stream) ||
	    (status == STATUS_LIMIT && budget_has_failed(c->out.part))) {
		refuse_message(&q);
		status = STATUS_OK;
	}
	if (status == STATUS_INVALID)
		metric_add(&refusals, 1);
	settle_request(&c->entry);
	settle_buffer(&c->in);
	settle_buffer(&c->raw);
	settle_buffer(&c->out);
	return status == STATUS_OK && !c->ends;
}

bool
mongo_serve(struct net_stream *s, void *mongo)
{
	struct mongo_client *c = mongo_client_new(mongo, s);

	if (!c)
		return false;
	while (serve_turn(c))
		;
	mongo_client_free(c);
	return false;
}
