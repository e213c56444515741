#include "door/mongo/serve.h"

#include <assert.h>

#include "base/clock.h"
#include "base/metric.h"
#include "door/mongo/slow.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cluster_time.h"
#include "door/mongo/txn/command.h"
#include "door/mongo/txn/data.h"
#include "door/mongo/txn/mongo_int.h"
#include "loop/step.h"

enum {
	KEPT_BYTES = 16 * 1024, /* of a buffer that is kept for the next message */
	IDLE_LOOK_MS = 60 * 60 * 1000,
};

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

static void
buf_shrink(struct buf *b)
{
	if (b->cap > KEPT_BYTES)
		buf_release(b);
	buf_clear(b);
}

/* Waits for the beginning of a message. STATUS_CANCELLED: there will be none. */
static enum status
wait_for_message(struct mongo_client *c)
{
	struct event *closed = net_stream_closed_event(c->stream);
	struct event *stopping = net_stream_stopping_event(c->stream);

	struct str in;

	for (;;) {
		TRY(net_stream_peek(c->stream, 0, &in));
		if (in.len)
			return STATUS_OK;
		if (event_is_set(closed) || event_is_set(stopping))
			return STATUS_CANCELLED;
		net_stream_rest(c->stream, true, NULL, clock_after_ms(IDLE_LOOK_MS));
	}
}

/* Reads one message into `c->in`. STATUS_INVALID: it is no such message. */
static enum status
read_message(struct mongo_client *c)
{
	struct str in;
	size_t length;
	size_t most = c->authenticated ? WIRE_MESSAGE_BYTES : MONGO_STRANGER_BYTES;

	TRY(net_stream_peek(c->stream, WIRE_HEADER_BYTES, &in));
	length = wire_u32(in.ptr);
	if (length < WIRE_HEADER_BYTES || length > most)
		return STATUS_INVALID;
	while (c->in.len < length) {
		size_t n = length - c->in.len;

		TRY(net_stream_peek(c->stream, 1, &in));
		if (n > in.len)
			n = in.len;
		buf_append(&c->in, in.ptr, n);
		TRY(buf_status(&c->in));
		net_stream_take(c->stream, n);
	}
	return STATUS_OK;
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

/* Ends the answer and writes it, unless the client wants none. */
static void
answer_send(struct request *q, bool silent)
{
	struct mongo_client *c = q->client;
	int32_t id = atomic_fetch_add(&c->mongo->next_request, 1) + 1;

	bson_end(&q->reply);
	if (silent)
		return;
	wire_finish(&c->out, q->from, id);
	if (q->compressed && c->compressors[q->by])
		compress_pack(&c->out, q->from, q->by);
	if (buf_status(&c->out) != STATUS_OK ||
	    net_stream_write(c->stream, buf_str(&c->out)) != STATUS_OK) {
		c->ends = true;
		return;
	}
	atomic_fetch_add_explicit(&c->mongo->bytes_out, c->out.len, memory_order_relaxed);
	q->id = id; /* what more there is answers this one */
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

/*
 * Runs the command. It is stopped when somebody kills the operation, when the client has closed
 * its connection, or when its maxTimeMS is over.
 */
static enum status
run_handler(struct call *c)
{
	struct mongo_client *client = c->client;
	const struct step_meter *steps = step_current();
	uint64_t before_ns = steps ? steps->computed_ns : 0;
	uint64_t took_ns, computed_ns;
	struct call_mark mark = call_mark(c);
	enum status status;
	unsigned runs = 0;

	if (c->max_ns && !(c->command->flags & COMMAND_OWN_TIME))
		client->until_ns = c->began_ns + c->max_ns;
	clients_op_begin(&client->entry, c->command->name,
			 c->command->flags & COMMAND_PRIVATE ? STR("") : c->body, c->began_ns,
			 c->db, c->collection);
	step_set_ask(mongo_client_ask, client);
	status = client->until_ns ? mongo_client_check(client) : STATUS_OK;
	if (status == STATUS_OK) {
		do
			status = c->command->run(c);
		while (call_runs_again(c, mark, &runs));
	}
	step_set_ask(NULL, NULL);
	clients_op_end(&client->entry);
	client->until_ns = 0;
	took_ns = clock_mono_ns() - c->began_ns;
	computed_ns = steps ? steps->computed_ns - before_ns : 0;
	usage_count(&c->mongo->usages, c, (c->is_watch ? computed_ns : took_ns) / 1000,
		    status == STATUS_OK);
	slow_look(c, took_ns, computed_ns, status);
	if (c->code)
		return status;
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

static void
audit_refusal(const struct call *c)
{
	const struct audit_by by = mongo_client_audit_by(c->client);
	AUTO(buf_release) struct buf on = BUF_INIT(2 * AUDIT_VALUE_BYTES);

	buf_printf(&on, "%.*s%s%.*s", STR_ARG(c->db), c->collection.len ? "." : "",
		   STR_ARG(c->collection));
	audit_refused(&by, str_from_cstr(c->command->name), buf_str(&on), "Unauthorized");
}

static enum status
run_permitted(struct call *c)
{
	enum status status;

	mongo_client_check_roles(c->client);
	if (!c->client->authenticated && !(c->command->flags & COMMAND_NO_AUTH))
		return call_fail(c, MONGO_UNAUTHORIZED, "Command %s requires authentication",
				 c->command->name);
	TRY(call_read_args(c));
	TRY(api_check(c));
	TRY(check_rights(c));
	TRY(time_check_concern(c));
	TRY(fail_begin(c));
	TRY(txn_enter(c));
	TRY(snapshot_enter(c));
	status = run_handler(c);
	snapshot_leave(c);
	txn_leave(c, status);
	return status;
}

static enum status
run_command(struct call *c)
{
	enum status status = run_permitted(c);

	if (c->code == MONGO_UNAUTHORIZED)
		audit_refusal(c);
	return status;
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

static void
answer_call(struct request *q, struct call *c, enum status status)
{
	int code = c->code ? c->code : (int)mongo_code_of(status);

	if (status == STATUS_OK && buf_status(&q->client->out) == STATUS_OK) {
		bson_put_double(&q->reply, STR("ok"), 1);
		fail_put(c);
		time_put(c);
		return;
	}
	if (status == STATUS_OK) {
		c->again = false;
		answer_failure(q, MONGO_BSON_TOO_LARGE,
			       "the answer is larger than a message may be (MONGO_REPLY_BYTES)");
		return;
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

	do {
		enum status status;

		c = (struct call){ .mongo = client->mongo,
				   .client = client,
				   .command = command,
				   .msg = &q->msg,
				   .body = q->msg.body,
				   .reply = &q->reply,
				   .arena = arena,
				   .began_ns = clock_mono_ns(),
				   .exhaust = q->msg.flags & WIRE_EXHAUST_ALLOWED };
		if (q->op == WIRE_OP_QUERY)
			c.db = STR("admin");
		answer_begin(q, 0);
		metric_add(&commands, 1);
		status = run_command(&c);
		answer_call(q, &c, status);
		c.again = c.again && c.exhaust && status == STATUS_OK;
		if (c.again && buf_status(&client->out) == STATUS_OK)
			wire_put_u32(client->out.ptr + q->from + WIRE_HEADER_BYTES,
				     WIRE_MORE_TO_COME | (q->msg.flags & WIRE_CHECKSUM_PRESENT));
		answer_send(q, silent || c.failing.closes);
		client->ends = client->ends || c.failing.closes;
		arena_reset(arena, mark);
	} while (c.again && !client->ends);
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

static void
serve_msg(struct request *q)
{
	struct bson_element first = { 0 };
	const struct command *command;
	struct err err = { 0 };
	struct bson_iter i;

	if (check_documents(&q->msg, &err) != STATUS_OK) {
		answer_begin(q, 0);
		answer_failure(q, MONGO_INVALID_BSON, err.text);
		answer_send(q, q->msg.flags & WIRE_MORE_TO_COME);
		return;
	}
	bson_iter_begin(&i, q->msg.body);
	command = bson_iter_read(&i, &first) ? mongo_command_find(first.name) : NULL;
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
	if (command && strcmp(command->name, "hello") == 0) {
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
serve_message(struct mongo_client *c, struct str message)
{
	struct wire_header header = wire_header_read(message);
	struct request q = { .client = c, .id = header.request_id, .op = header.op };
	struct wire_error error;

	if (q.op == WIRE_OP_COMPRESSED) {
		size_t most = c->authenticated ? WIRE_MESSAGE_BYTES : MONGO_STRANGER_BYTES;

		TRY(compress_unpack(message, most, &c->raw, &q.by, NULL));
		q.compressed = true;
		message = buf_str(&c->raw);
		q.op = wire_header_read(message).op;
	}
	if (q.op == WIRE_OP_QUERY)
		return serve_query(&q, message);
	if (q.op != WIRE_OP_MSG)
		return STATUS_INVALID;
	if (wire_msg_read(message, &q.msg, &error) == STATUS_OK) {
		serve_msg(&q);
		return STATUS_OK;
	}
	if (error_is_fatal(error.code))
		return STATUS_INVALID;
	q.msg = (struct wire_msg){ 0 };
	answer_begin(&q, 0);
	answer_failure(&q, error.code, error.text);
	answer_send(&q, false);
	return STATUS_OK;
}

/* Serves one message. False: the connection ends. */
static bool
serve_turn(struct mongo_client *c)
{
	enum status status;

	if (wait_for_message(c) != STATUS_OK)
		return false;
	status = read_message(c);
	if (status == STATUS_OK) {
		step_unit();
		atomic_fetch_add_explicit(&c->mongo->requests, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&c->mongo->bytes_in, c->in.len, memory_order_relaxed);
		status = serve_message(c, buf_str(&c->in));
	}
	if (status == STATUS_INVALID)
		metric_add(&refusals, 1);
	buf_shrink(&c->in);
	buf_shrink(&c->raw);
	buf_shrink(&c->out);
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
