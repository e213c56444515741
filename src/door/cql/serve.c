#include "door/cql/serve.h"

#include <assert.h>
#include <stdio.h>

#include "base/clear.h"
#include "base/clock.h"
#include "base/err_clear.h"
#include "base/metric.h"
#include "door/cql/conn/request.h"
#include "door/cql/flight.h"
#include "door/cql/input.h"
#include "door/cql/run/joint.h"
#include "door/cql/run/news.h"
#include "door/cql/run/run.h"
#include "door/cql/wire/params.h"
#include "loop/step.h"
#include "loop/wait.h"
#include "net/memory.h"
#include "serve/beside.h"
#include "serve/explain.h"
#include "serve/settle.h"

enum {
	SLOW_BYTES = 120,   /* of what is said of a slow request */
	SLOW_READ_MS = 1,   /* a read that takes longer is better run beside others */
	BESIDE_LATELY = 64, /* statements that have fibers after one that was not alone */
};

METRIC_COUNTER(requests, "frond_cql_requests_total", METRIC_NUMBER,
	       "Requests of Cassandra's door, those that failed included.");
METRIC_COUNTER(failures, "frond_cql_failures_total", METRIC_NUMBER,
	       "Requests of Cassandra's door that were answered with an error.");
METRIC_COUNTER(broken, "frond_cql_broken_frames_total", METRIC_NUMBER,
	       "Connections of Cassandra's door that were closed for a frame that cannot be read, "
	       "or of a version that is not served.");
METRIC_COUNTER(alone_reads, "frond_cql_alone_reads_total", METRIC_NUMBER,
	       "SELECTs of one row of Cassandra's door that ran on their connection's fiber, since "
	       "nothing else of it was under way.");

#define AUTHENTICATOR "org.apache.cassandra.auth.PasswordAuthenticator"

/* ---- Names ---- */

struct opcode {
	const char *name;
	bool before_startup, before_login; /* it may come then */
};

static const struct opcode opcodes[] = {
	[FRAME_STARTUP] = { "STARTUP", true, true },
	[FRAME_OPTIONS] = { "OPTIONS", true, true },
	[FRAME_QUERY] = { "QUERY", false, false },
	[FRAME_PREPARE] = { "PREPARE", false, false },
	[FRAME_EXECUTE] = { "EXECUTE", false, false },
	[FRAME_REGISTER] = { "REGISTER", false, false },
	[FRAME_BATCH] = { "BATCH", false, false },
	[FRAME_AUTH_RESPONSE] = { "AUTH_RESPONSE", false, true },
};

static const struct opcode *
opcode_find(unsigned code)
{
	if (code >= sizeof(opcodes) / sizeof(opcodes[0]) || !opcodes[code].name)
		return NULL;
	return &opcodes[code];
}

/* ---- Beginning ---- */

static enum status
serve_options(struct cql_request *r)
{
	struct buf *out = r->out;

	r->answer = FRAME_SUPPORTED;
	frame_put_u16(out, 3);
	frame_put_short(out, STR("CQL_VERSION"));
	frame_put_u16(out, 1);
	frame_put_short(out, STR(CQL_LANGUAGE_VERSION));
	frame_put_short(out, STR("COMPRESSION"));
	frame_put_u16(out, 2);
	frame_put_short(out, STR("snappy"));
	frame_put_short(out, STR("lz4"));
	frame_put_short(out, STR("PROTOCOL_VERSIONS"));
	frame_put_u16(out, 3);
	frame_put_short(out, STR("3/v3"));
	frame_put_short(out, STR("4/v4"));
	frame_put_short(out, STR("5/v5"));
	return STATUS_OK;
}

static enum status
malformed(struct cql_request *r)
{
	return request_fail(r, CQL_CODE_PROTOCOL, "Message is truncated or malformed");
}

static enum status
startup_compression(struct cql_request *r, struct str name)
{
	enum cql_compressor by;

	if (!name.len)
		return STATUS_OK;
	if (!cql_compressor_find(name, &by))
		return request_fail(r, CQL_CODE_PROTOCOL, "Unknown compression algorithm: %.*s",
				    (int)(name.len < 100 ? name.len : 100), name.ptr);
	if (r->header.version >= 5 && by != CQL_COMPRESSOR_LZ4)
		return request_fail(r, CQL_CODE_PROTOCOL,
				    "Compression algorithm %.*s is not supported in version 5 of "
				    "the protocol",
				    STR_ARG(name));
	r->client->compressor = by;
	return STATUS_OK;
}

static enum status
serve_startup(struct cql_request *r, struct frame_in *in)
{
	struct cql_client *c = r->client;
	struct str compression = STR(""), version = STR(""), driver = STR("");
	size_t count = frame_u16(in);

	if (c->started)
		return request_fail(r, CQL_CODE_PROTOCOL,
				    "Unexpected message STARTUP: the connection has begun already");
	for (size_t i = 0; i < count && !in->bad; i++) {
		struct str name = frame_short(in), value = frame_short(in);

		if (str_eq_nocase(name, STR("CQL_VERSION")))
			version = value;
		else if (str_eq_nocase(name, STR("COMPRESSION")))
			compression = value;
		else if (str_eq_nocase(name, STR("DRIVER_NAME")))
			driver = value;
	}
	if (in->bad)
		return malformed(r);
	if (!version.len)
		return request_fail(r, CQL_CODE_PROTOCOL,
				    "Missing value CQL_VERSION in STARTUP message");
	if (version.ptr[0] < '3')
		return request_fail(r, CQL_CODE_PROTOCOL,
				    "CQL version %.*s is not supported by the binary protocol "
				    "(supported version are >= 3.0.0)",
				    (int)(version.len < 100 ? version.len : 100), version.ptr);
	TRY(startup_compression(r, compression));
	clients_set_text(&c->entry, &c->entry.name, driver);
	c->started = true;
	if (c->entry.who.authenticated) {
		r->answer = FRAME_READY;
		return STATUS_OK;
	}
	r->answer = FRAME_AUTHENTICATE;
	frame_put_short(r->out, STR(AUTHENTICATOR));
	return STATUS_OK;
}

/* "\0name\0password", as SASL PLAIN has it; something may stand in front of the first zero. */
static enum status
serve_login(struct cql_request *r, struct frame_in *in)
{
	struct str token, name, password;
	enum status status;

	if (frame_value(in, &token) != FRAME_BYTES_VALUE || in->bad)
		return request_fail(r, CQL_CODE_LOGIN, "Password must not be null");
	if (!memchr(token.ptr, '\0', token.len))
		return request_fail(r, CQL_CODE_LOGIN, "Authentication ID must not be null");
	(void)str_cut(&token, '\0');
	name = str_cut(&token, '\0');
	password = token;
	status = visit_login(&r->client->entry, "password", name, password, &r->err);
	if (status == STATUS_UNAUTHORIZED)
		return request_fail(r, CQL_CODE_LOGIN,
				    "Provided username %.*s and/or password are incorrect",
				    (int)(name.len < 100 ? name.len : 100), name.ptr);
	if (status == STATUS_FORBIDDEN)
		r->q.code = CQL_CODE_LOGIN;
	if (status != STATUS_OK)
		return status;
	r->answer = FRAME_AUTH_SUCCESS;
	frame_put_null(r->out);
	return STATUS_OK;
}

static enum status
serve_register(struct cql_request *r, struct frame_in *in)
{
	size_t count = frame_u16(in);
	unsigned kinds = 0;

	for (size_t i = 0; i < count && !in->bad; i++) {
		struct str name = frame_short(in);

		if (str_eq(name, STR("SCHEMA_CHANGE")))
			kinds |= CQL_EVENT_SCHEMA;
		else if (str_eq(name, STR("STATUS_CHANGE")))
			kinds |= CQL_EVENT_STATUS;
		else if (str_eq(name, STR("TOPOLOGY_CHANGE")))
			kinds |= CQL_EVENT_TOPOLOGY;
		else
			return request_fail(r, CQL_CODE_PROTOCOL, "Invalid value '%.*s' for Type",
					    (int)(name.len < 100 ? name.len : 100), name.ptr);
	}
	if (in->bad)
		return malformed(r);
	cql_client_register(r->client, kinds);
	r->answer = FRAME_READY;
	return kinds & CQL_EVENT_SCHEMA ? cql_news_begin(r->door, &r->err) : STATUS_OK;
}

/* ---- Statements ---- */

static enum status
bad_params(struct cql_request *r, enum status status)
{
	if (status == STATUS_INVALID)
		r->q.code = CQL_CODE_PROTOCOL;
	return status;
}

/* In the arena. */
static enum status
read_params(struct cql_request *r, struct frame_in *in, struct params **ret)
{
	struct params *p = arena_alloc(r->arena, sizeof(*p));
	enum status status;

	if (!p)
		return STATUS_LIMIT;
	status = params_read(in, r->header.version, r->arena, p, &r->err);
	r->more.consistency = p->consistency;
	*ret = p;
	return bad_params(r, status);
}

static enum status
serve_query(struct cql_request *r, struct frame_in *in)
{
	struct str text = frame_long(in);
	struct params *p;

	TRY(read_params(r, in, &p));
	return run_query(r, text, p);
}

static enum status
serve_prepare(struct cql_request *r, struct frame_in *in)
{
	struct str text = frame_long(in), keyspace = STR("");

	r->class = CQL_CLASS_PREPARE;
	if (r->header.version >= 5 && frame_i32(in) & 1)
		keyspace = frame_short(in);
	return in->bad ? malformed(r) : run_prepare(r, text, keyspace);
}

static enum status
serve_execute(struct cql_request *r, struct frame_in *in)
{
	struct str id = frame_short(in);
	struct params *p;

	/* Which metadata the client knows: those of now, or its statement is no longer prepared. */
	if (r->header.version >= 5)
		(void)frame_short(in);
	TRY(read_params(r, in, &p));
	return run_execute(r, id, p);
}

static enum status
serve_batch(struct cql_request *r, struct frame_in *in)
{
	struct batch *b = arena_alloc(r->arena, sizeof(*b));
	enum status status;

	if (!b)
		return STATUS_LIMIT;
	status = batch_read(in, r->header.version, r->arena, b, &r->err);
	r->class = CQL_CLASS_BATCH;
	r->more.consistency = b->params.consistency;
	r->more.write = ERROR_WRITE_BATCH;
	TRY(bad_params(r, status));
	return run_batch(r, b);
}

static enum status
dispatch(struct cql_request *r, struct frame_in *in)
{
	switch (r->header.opcode) {
	case FRAME_OPTIONS:
		return serve_options(r);
	case FRAME_STARTUP:
		return serve_startup(r, in);
	case FRAME_AUTH_RESPONSE:
		return serve_login(r, in);
	case FRAME_REGISTER:
		return serve_register(r, in);
	case FRAME_QUERY:
		return serve_query(r, in);
	case FRAME_PREPARE:
		return serve_prepare(r, in);
	case FRAME_EXECUTE:
		return serve_execute(r, in);
	default:
		return serve_batch(r, in);
	}
}

/* What stands in front of the body by the frame's flags: a map that clients may send is unread. */
static void
skip_payload(const struct frame_header *h, struct frame_in *in)
{
	struct str ignored;

	if (!(h->flags & FRAME_PAYLOAD))
		return;
	for (size_t n = frame_u16(in); n && !in->bad; n--) {
		(void)frame_short(in);
		(void)frame_value(in, &ignored);
	}
}

/* ---- A request ---- */

static void
count_request(struct cql_request *r, enum status status)
{
	uint64_t took_ns = clock_mono_ns() - r->began_ns;
	char more[SLOW_BYTES];

	ops_count(&cql_ops, r->class, took_ns);
	if (took_ns <= r->door->config.settings->slow_ms * CLOCK_NS_PER_MS ||
	    !ops_count_slow(&cql_ops))
		return;
	snprintf(more, sizeof(more), "code=%d bytes_in=%zu bytes_out=%zu",
		 status == STATUS_OK ? -1 : (int)r->q.code, r->header.length, r->out->len);
	clients_note_slow(&r->client->entry, r->op,
			  (struct ops_slow){ .took_ns = took_ns,
					     .more = str_from_cstr(more),
					     .keep = OPS_SLOW_KEPT });
}

/* The status of a request whose answer found no room. */
static enum status
check_answer(struct cql_request *r)
{
	const struct budget_part *part = r->out->part;
	enum status status = buf_status(r->out);

	if (status == STATUS_OK)
		return STATUS_OK;
	if (budget_has_failed(part))
		return status;
	return request_fail(r, CQL_CODE_INVALID,
			    "the answer has more than %d bytes (CQL_REPLY_BYTES): ask for pages",
			    CQL_REPLY_BYTES);
}

static void
explain(struct cql_request *r, enum status status)
{
	if (!r->q.code)
		r->q.code = error_code_of(status, r->writes);
	explain_failure(net_stream_session(r->client->stream), r->out->part, status, &r->err);
}

/*
 * Waits until the other statements of its connection, which may have the memory that it lacks, are
 * done; or, if none is, until others have given some back. False: there is none for it.
 */
static bool
await_memory(struct cql_request *r, bool lacks, size_t *asked)
{
	if (r->flight && flight_wait_for_others(r->flight))
		return true;
	/* What writes is refused at once, as by the other doors. */
	if (!lacks || !request_may_wait(r))
		return false;
	if (r->flight)
		return flight_await_memory(r->flight);
	return net_memory_await_more(net_stream_session(r->client->stream), asked) == STATUS_OK;
}

/*
 * True if the request has failed for memory, and may have more now: it is to be run again. What it
 * has made is dropped before it waits for that.
 */
static bool
may_run_again(struct cql_request *r, enum status status, size_t begun, struct arena_mark mark,
	      size_t *asked)
{
	struct budget_part *part = r->out->part;
	struct buf head = BUF_INIT_OF(CQL_REPLY_BYTES, part);
	bool lacks = part->refused;

	if (status != STATUS_LIMIT && status != STATUS_NOMEM)
		return false;
	/* On the fiber of a group, which cannot wait for the others of that. */
	if (r->joint) {
		r->again = true;
		return false;
	}
	if (!r->flight && !(lacks && request_may_wait(r)))
		return false;
	/* The beginning of the frame stays in any case: the answer may be an error. */
	buf_append(&head, r->out->ptr, begun);
	if (buf_status(&head) != STATUS_OK) {
		buf_release(&head);
		return false;
	}
	arena_reset(r->arena, mark);
	buf_release(r->out);
	*r->out = head;
	if (!await_memory(r, lacks, asked))
		return false;
	budget_forgive(part);
	return true;
}

/* Runs the request, again as long as it lacks memory only because of others. */
static enum status
run_attempts(struct cql_request *r, const struct frame_in *in)
{
	const struct arena_mark mark = arena_mark(r->arena);
	size_t begun = r->out->len, asked = 0;
	struct frame_in from;
	enum status status;

	for (;;) {
		from = *in;
		status = dispatch(r, &from);
		if (status == STATUS_OK)
			status = check_answer(r);
		if (!may_run_again(r, status, begun, mark, &asked))
			return status;
		step_unit();
		r->q.code = (enum cql_code)0;
		r->err.text[0] = '\0';
	}
}

static void
begin_op(struct cql_request *r, const struct opcode *opcode)
{
	struct clients_entry *entry = &r->client->entry;

	if (r->flight)
		beside_op_begin(entry, r->op, &cql_ops, opcode->name, r->began_ns);
	else
		clients_op_begin(entry, &cql_ops, opcode->name, STR(""), r->began_ns, STR(""),
				 STR(""));
}

static enum status
run_request(struct cql_request *r, const struct opcode *opcode, const struct frame_in *in)
{
	struct visit_refused refused;
	enum status status;

	begin_op(r, opcode);
	status = run_attempts(r, in);
	if (!r->again)
		count_request(r, status);
	refused = (struct visit_refused){ .on = r->keyspace, .on_more = r->table };
	visit_op_end(&r->client->entry, r->op,
		     r->q.code == CQL_CODE_UNAUTHORIZED ? &refused : NULL);
	return status;
}

/* Whether the message may come now. */
static enum status
check_order(struct cql_request *r, const struct opcode *opcode)
{
	struct cql_client *c = r->client;

	if (!opcode)
		return request_fail(r, CQL_CODE_PROTOCOL, "Unknown opcode %u", r->header.opcode);
	if (!c->started && !opcode->before_startup)
		return request_fail(r, CQL_CODE_PROTOCOL,
				    "Unexpected message %s, expecting STARTUP or OPTIONS",
				    opcode->name);
	return STATUS_OK;
}

/*
 * The address or the person may ask too often, or for too much ([limits]). What begins a connection
 * and what keeps it alive is never refused: drivers would take the server for one that is gone.
 */
static enum status
statement_admit(struct cql_request *r, const struct opcode *opcode)
{
	struct clients_entry *entry = &r->client->entry;
	bool begins = opcode && opcode->before_startup;
	const struct visit_command asked = {
		.name = opcode ? str_from_cstr(opcode->name) : STR(""),
		.is_open = !opcode || opcode->before_login || !r->client->started,
		/* One that runs again was admitted before, but perhaps by another operation. */
		.always = begins || r->admitted,
	};
	enum status status = r->flight ? beside_admit(entry, r->op, &asked, &r->err)
				       : visit_admit(entry, &asked, &r->err);

	r->admitted |= !begins;
	if (status == STATUS_UNAUTHORIZED)
		return request_fail(r, CQL_CODE_PROTOCOL,
				    "Unexpected message %s, expecting AUTH_RESPONSE", opcode->name);
	if (status != STATUS_OK)
		r->q.code = CQL_CODE_OVERLOADED;
	return status;
}

static enum status
serve_body(struct cql_request *r, struct str body)
{
	const struct opcode *opcode = opcode_find(r->header.opcode);
	struct frame_in in = frame_in_of(body);

	TRY(statement_admit(r, opcode));
	TRY(check_order(r, opcode));
	skip_payload(&r->header, &in);
	return run_request(r, opcode, &in);
}

/* ---- Traces ---- */

_Static_assert(TRACE_KEY_BYTES == sizeof(((struct auth_user *)NULL)->key), "a credential's key");

/*
 * Begins a trace if the client asks for one and the message has a statement: the answer's body
 * begins with its id. When memory is short there is none.
 */
static void
trace_request(struct cql_request *r, size_t from)
{
	const struct opcode *opcode = opcode_find(r->header.opcode);

	if (!(r->header.flags & FRAME_TRACING) || !opcode || opcode->before_login ||
	    !r->client->entry.who.authenticated)
		return;
	r->trace = trace_begin(r->arena, opcode->name, r->client->entry.who.user.name);
	if (!r->trace)
		return;
	memcpy(r->trace->key, r->client->entry.who.user.key, sizeof(r->trace->key));
	cql_client_peer(r->client, r->trace->client, &r->trace->client_len);
	frame_set_flags(r->out, from, FRAME_TRACING);
	buf_append(r->out, r->trace->id, TRACE_ID_BYTES);
}

/* The body is there: what is left is sending it. */
static void
trace_answer(struct cql_request *r, enum status status, size_t bytes)
{
	if (!r->trace)
		return;
	if (status == STATUS_OK)
		trace_note(r->trace, "Answered with %zu bytes", bytes);
	else if (r->trace->text_len)
		trace_note(r->trace, "Failed: %s", r->err.text);
	else /* the reason may quote what is not to be told of the statement */
		trace_note(r->trace, "Failed");
	trace_keep(&r->door->traces, r->trace);
}

/* ---- Answers ---- */

/* Ends an answer whose body is there, or becomes an error. */
static void
finish_answer(struct cql_request *r, size_t from, enum status status)
{
	struct cql_client *c = r->client;

	if (status != STATUS_OK) {
		metric_add(&failures, 1);
		explain(r, status);
		/* The frame has been begun before, so that there is room for its header. */
		r->out->failed = STATUS_OK;
		r->out->len = from + FRAME_HEADER_BYTES + (r->trace ? TRACE_ID_BYTES : 0);
		r->answer = FRAME_ERROR;
		error_put(r->out, r->q.code, str_from_cstr(r->err.text), &r->more);
	}
	frame_set_opcode(r->out, from, r->answer);
	trace_answer(r, status, r->out->len - from - FRAME_HEADER_BYTES);
	if (!c->segmented)
		cql_body_pack(c->started ? c->compressor : CQL_COMPRESSOR_NONE, r->out, from);
	frame_end(r->out, from);
}

/* The same, and sends it. */
static void
answer(struct cql_request *r, size_t from, enum status status)
{
	struct cql_client *c = r->client;

	finish_answer(r, from, status);
	/* What was set aside and is not used is for others while the client reads. */
	if (!c->flights.count)
		budget_settle(r->out->part);
	if (cql_client_send(c, r->out) != STATUS_OK)
		c->ends = true;
}

/* Begins a request in place. Bytes behind the end of its error's text are not set. */
static void
request_init(struct cql_request *r, struct cql_client *c, const struct input_frame *f,
	     struct arena *arena, struct buf *out, struct ops_op *op)
{
	const struct frame_header *h = &f->header;
	bool is_statement = h->opcode == FRAME_QUERY || h->opcode == FRAME_EXECUTE;

	metric_add(&requests, !f->again);
	CLEAR_BEFORE(r, err);
	err_clear(&r->err);
	CLEAR_BEHIND(r, err, more);
	r->door = c->door;
	r->client = c;
	r->header = *h;
	r->admitted = f->admitted;
	r->arena = arena;
	r->out = out;
	r->answer = FRAME_RESULT;
	r->class = is_statement ? CQL_CLASS_OTHER : CQL_CLASS_CONNECTION;
	r->op = op;
	r->began_ns = clock_mono_ns();
}

static void
serve_frame(struct cql_client *c, const struct input_frame *f)
{
	struct arena *arena = net_stream_arena(c->stream);
	struct arena_mark mark = arena_mark(arena);
	struct cql_request r;
	enum status status;
	size_t from;

	request_init(&r, c, f, arena, &c->out, &c->entry.op);
	r.q = (struct cql){ .arena = arena, .err = &r.err };
	buf_clear(&c->out);
	from = frame_begin(&c->out, f->header.version, f->header.stream, FRAME_RESULT);
	if (buf_status(&c->out) != STATUS_OK) {
		c->ends = true;
		return;
	}
	trace_request(&r, from);
	r.beside = cql_input_has_next(c);
	status = serve_body(&r, f->body);
	answer(&r, from, status);
	/* READY and AUTHENTICATE are the last frames that go without a segment. */
	c->segmented = c->started && f->header.version >= 5;
	arena_reset(arena, mark);
}

/* ---- Several under way ---- */

/* On the fiber of the flight. */
static void
serve_flight(struct cql_flight *fl)
{
	struct cql_request *r = &fl->r;
	enum status status;

	trace_request(r, fl->from);
	status = serve_body(r, buf_str(&fl->body));
	if (!r->again) {
		finish_answer(r, fl->from, status);
		if (buf_status(&fl->out) != STATUS_OK)
			r->client->ends = true;
		ops_moved(r->op, fl->out.len);
	}
	ops_leave(r->op);
}

static bool
is_slow(uint64_t began_ns)
{
	return clock_mono_ns() - began_ns > SLOW_READ_MS * CLOCK_NS_PER_MS;
}

/* The same of a group: one after the other, in a transaction of them all. */
static void
serve_group(struct cql_flight *first)
{
	const struct arena_mark mark = arena_mark(first->arena);
	struct joint joint = { 0 };
	bool slow = false;

	for (struct cql_flight *fl = first; fl; fl = fl->behind) {
		uint64_t began_ns = clock_mono_ns();

		if (slow) {
			fl->r.again = true;
			continue;
		}
		fl->r.joint = &joint;
		step_unit();
		serve_flight(fl);
		arena_reset(first->arena, mark);
		/* It has waited for the disk, as others that run beside each other may together. */
		slow = is_slow(began_ns);
	}
	joint_end(&joint);
}

/* The first words of the statements that leave the connection and the schema as they are. */
static bool
is_of_data(struct str text)
{
	static const char *const words[] = { "SELECT", "INSERT", "UPDATE", "DELETE", "BEGIN" };
	size_t blank = 0, len = 0;
	struct str word;

	while (blank < text.len && strchr(" \t\r\n", text.ptr[blank]))
		blank++;
	word = str_skip(text, blank);
	while (len < word.len && ((unsigned char)word.ptr[len] | 0x20) >= 'a' &&
	       ((unsigned char)word.ptr[len] | 0x20) <= 'z')
		len++;
	word.len = len;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (str_eq_nocase(word, str_from_cstr(words[i])))
			return true;
	return false;
}

/* True if the frame may be served beside others: a small statement that works on rows. */
static bool
may_overlap(const struct cql_client *c, const struct input_frame *f)
{
	struct frame_in in = frame_in_of(f->body);

	if (!c->started || !c->entry.who.authenticated || f->body.len > CQL_IN_FLIGHT_BYTES)
		return false;
	if (f->header.opcode != FRAME_QUERY)
		return f->header.opcode == FRAME_EXECUTE || f->header.opcode == FRAME_BATCH;
	skip_payload(&f->header, &in);
	return is_of_data(frame_long(&in));
}

/*
 * True if the frame is served at once while statements are under way: it changes nothing that they
 * use, and clients take a server for dead that does not answer OPTIONS.
 */
static bool
is_aside(const struct input_frame *f)
{
	return f->header.opcode == FRAME_OPTIONS || f->header.opcode == FRAME_PREPARE ||
	       f->header.opcode == FRAME_REGISTER;
}

/* A flight of the frame, which has no fiber yet. NULL: there is no memory for it. */
static struct cql_flight *
new_flight(struct cql_client *c, const struct input_frame *f)
{
	struct cql_flight *fl = flight_new(c, f);

	if (!fl)
		return NULL;
	request_init(&fl->r, c, f, NULL, &fl->out, &fl->op);
	fl->r.flight = fl;
	return fl;
}

/* Begins a flight, or a group. False: there is no memory or fiber for that: nothing was done. */
static bool
begin_flights(struct cql_client *c, struct cql_flight *first)
{
	bool more = cql_input_has_next(c), beside = more || c->flights.count || first->behind;

	if (!flight_take_fiber(c, first))
		return false;
	for (struct cql_flight *fl = first; fl; fl = fl->behind) {
		fl->r.arena = fl->arena;
		fl->r.q = (struct cql){ .arena = fl->arena, .err = &fl->r.err };
		fl->r.beside = beside;
	}
	flight_begin(first, first->behind ? serve_group : serve_flight);
	/* It has its turn before the next one, which then finds its stack and buffers warm. */
	if (more)
		wait_yield();
	return true;
}

static bool
begin_flight(struct cql_client *c, const struct input_frame *f)
{
	struct cql_flight *fl = new_flight(c, f);

	if (!fl)
		return false;
	if (begin_flights(c, fl))
		return true;
	flight_drop(c, fl);
	return false;
}

/* Serves a frame by itself. */
static void
serve_alone(struct cql_client *c, const struct input_frame *f)
{
	/* With many fibers at work it waits for one of its own, or else does the work itself. */
	while (may_overlap(c, f)) {
		/* One may have begun to wait for the others since the frame was read. */
		if (flights_have_room(c) && begin_flight(c, f))
			return;
		if (!c->flights.count)
			break;
		flights_finish_one(c);
	}
	if (!is_aside(f)) {
		flights_finish(c);
		budget_forgive(c->in.part);
	}
	serve_frame(c, f);
}

/* Serves a flight that was not run, or whose answer was dropped, as a frame that comes now. */
static void
serve_again(struct cql_client *c, struct cql_flight *fl)
{
	const struct input_frame f = { .header = fl->r.header,
				       .body = buf_str(&fl->body),
				       .again = true,
				       .admitted = fl->r.admitted };

	/* It was run, and lacked memory, which others under way may have. */
	if (f.admitted) {
		flights_finish(c);
		budget_forgive(c->in.part);
	}
	if (!c->ends)
		serve_alone(c, &f);
	flight_drop(c, fl);
}

/* Serves what groups have left. False: there was nothing. */
static bool
serve_left(struct cql_client *c)
{
	struct cql_flight *fl;
	bool any = false;

	for (; (fl = flights_take_left(c)); any = true)
		serve_again(c, fl);
	return any;
}

/* Nothing is under way when this returns. */
static void
finish_all(struct cql_client *c)
{
	do
		flights_finish(c);
	while (serve_left(c));
}

/* Who the client is, and what it may, changes between statements only. */
static void
follow_person(struct cql_client *c)
{
	if (visit_is_current(&c->entry))
		return;
	/* Statements under way read the person and its rights without a lock: they end first. */
	finish_all(c);
	c->ends |= visit_follow(&c->entry) != STATUS_OK;
}

/* ---- Reads that have come together ---- */

/* The id of the prepared statement that an EXECUTE names. */
static struct str
id_of(const struct frame_header *h, struct str body)
{
	struct frame_in in = frame_in_of(body);

	skip_payload(h, &in);
	return frame_short(&in);
}

/*
 * True if the frame may be run in a group: a prepared SELECT of one row. `before`: the last one of
 * the group so far, or NULL. Mostly both are the same statement.
 */
static bool
may_join(const struct cql_client *c, const struct input_frame *f, const struct cql_flight *before)
{
	struct str id;

	if (f->header.opcode != FRAME_EXECUTE || !may_overlap(c, f))
		return false;
	id = id_of(&f->header, f->body);
	return (before && str_eq(id, id_of(&before->r.header, buf_str(&before->body)))) ||
	       joint_takes(c->door, id);
}

/* Begins a group. Without memory or a fiber for it, each is served by itself. */
static void
begin_group(struct cql_client *c, struct cql_flight *first)
{
	struct cql_flight *fl;

	if (begin_flights(c, first))
		return;
	while ((fl = first)) {
		first = fl->behind;
		serve_again(c, fl);
	}
}

/*
 * Begins `*f`, which may join, as a group with the frames that are there behind it and may, too.
 * `*ret_over`: `*f` is a frame now that is still to be served. Returns what cql_input_next() has
 * said last.
 */
static enum input_result
serve_group_of(struct cql_client *c, struct input_frame *f, bool *ret_over)
{
	struct cql_flight *first = NULL, *last = NULL, **end = &first;
	enum input_result result = INPUT_FRAME;
	bool joins = true;
	size_t count = 0;

	do {
		bool room = flights_have_room(c) && c->flights.count + count < CQL_IN_FLIGHT;

		*end = room && joins ? new_flight(c, f) : NULL;
		*ret_over = !*end;
		if (*ret_over)
			break;
		last = *end;
		end = &last->behind;
		cql_input_done(c);
		if (++count == CQL_TOGETHER || !cql_input_has_next(c))
			break;
		result = cql_input_next(c, f);
		joins = result == INPUT_FRAME && may_join(c, f, last);
	} while (result == INPUT_FRAME);
	if (first)
		begin_group(c, first);
	return result;
}

/*
 * True if the frame is served on the connection's fiber, which reads no others meanwhile: a SELECT
 * of one row, of a client that waits for each answer. `more`: another frame has come behind it. A
 * fiber of its own costs a tenth of what such a SELECT does. So a statement gets one only if
 * its client has lately sent several together, or if its reads take long.
 */
static bool
is_served_at_once(struct cql_client *c, const struct input_frame *f, bool more)
{
	if (c->flights.count || more) {
		c->beside_lately = BESIDE_LATELY;
		return false;
	}
	if (c->beside_lately) {
		c->beside_lately--;
		return false;
	}
	return may_join(c, f, NULL);
}

static void
serve_at_once(struct cql_client *c, const struct input_frame *f)
{
	uint64_t began_ns = clock_mono_ns();

	metric_add(&alone_reads, 1);
	budget_forgive(c->in.part);
	serve_frame(c, f);
	/* It has waited for the disk, which others could have used meanwhile. */
	if (is_slow(began_ns))
		c->beside_lately = BESIDE_LATELY;
}

/* Serves a frame that has come, and others behind it; returns as serve_group_of() does. */
static enum input_result
serve_next(struct cql_client *c, struct input_frame *f)
{
	enum input_result result = INPUT_FRAME;
	bool over = true, more;

	follow_person(c);
	more = cql_input_has_next(c);
	if (is_served_at_once(c, f, more)) {
		serve_at_once(c, f);
		return result;
	}
	if (more && may_join(c, f, NULL))
		result = serve_group_of(c, f, &over);
	if (over)
		serve_alone(c, f);
	return result;
}

/* Answers a frame that cannot be served. */
static void
answer_unread_frame(struct cql_client *c, struct input_frame *f, enum cql_code code,
		    const struct err *err)
{
	struct cql_request r = { .door = c->door,
				 .client = c,
				 .header = f->header,
				 .arena = net_stream_arena(c->stream),
				 .out = &c->out,
				 .op = &c->entry.op,
				 .err = *err };
	unsigned version = f->header.version;
	size_t from;

	if (version < FRAME_VERSION_LEAST || version > FRAME_VERSION_MOST)
		version = FRAME_VERSION_MOST;
	r.q = (struct cql){ .arena = r.arena, .err = &r.err, .code = code };
	buf_clear(&c->out);
	from = frame_begin(&c->out, version, f->header.stream, FRAME_ERROR);
	if (buf_status(&c->out) == STATUS_OK)
		answer(&r, from, err->status);
	else
		c->ends = true;
}

/* False: the connection ends behind what was answered. */
static bool
refuse_input(struct cql_client *c, struct input_frame *f, enum input_result result)
{
	struct err err = { 0 };

	switch (result) {
	case INPUT_VERSION:
		metric_add(&broken, 1);
		err_set(&err, STATUS_INVALID,
			"Invalid or unsupported protocol version (%u); supported versions are "
			"(3/v3, 4/v4, 5/v5)",
			f->header.version);
		answer_unread_frame(c, f, CQL_CODE_PROTOCOL, &err);
		return false;
	case INPUT_MIXED:
		metric_add(&broken, 1);
		err_set(&err, STATUS_INVALID,
			"Invalid message version. Got %u/v%u but previous messages on this "
			"connection had version %u/v%u",
			f->header.version, f->header.version, c->version, c->version);
		f->header.version = c->version;
		answer_unread_frame(c, f, CQL_CODE_PROTOCOL, &err);
		return false;
	case INPUT_LENGTH:
		METRIC_REFUSED("FRAME_BYTES");
		err_set(&err, STATUS_INVALID,
			"Request is too big: length %zu exceeds maximum allowed length %d "
			"(FRAME_BYTES)",
			f->header.length, FRAME_BYTES);
		answer_unread_frame(c, f, CQL_CODE_INVALID, &err);
		return !c->ends;
	case INPUT_MEMORY:
		(void)net_memory_refuse(net_stream_session(c->stream), &err);
		err.status = STATUS_LIMIT;
		answer_unread_frame(c, f, CQL_CODE_OVERLOADED, &err);
		return !c->ends && !net_stream_is_unwanted(c->stream);
	case INPUT_CORRUPT:
		metric_add(&broken, 1);
		err_set(&err, STATUS_INVALID, "the bytes are no frame that can be read");
		answer_unread_frame(c, f, CQL_CODE_PROTOCOL, &err);
		return false;
	case INPUT_FRAME:
	case INPUT_ENDED:
		break;
	}
	return false;
}

/* Nothing is under way: what is kept for the next request is little. */
static void
client_settle(struct cql_client *c)
{
	/* The part is that of all fibers of the connection: none may be using what it has. */
	assert(!c->flights.count);
	settle_request(&c->entry);
}

/* Serves one frame, or sends what is there to be sent. False: the connection ends. */
static bool
cql_serve_turn(struct cql_client *c)
{
	enum input_result result;
	struct input_frame f;

	/* Also without a request: events that wait are for those who may hear them. */
	follow_person(c);
	flights_send(c);
	(void)serve_left(c);
	if (c->ends)
		return false;
	if (c->flights.count && !(flights_have_room(c) && cql_input_has_next(c))) {
		flights_wait(c);
		return true;
	}
	if (!c->flights.count) {
		client_settle(c);
		if (flights_rest(c))
			return true;
	}
	result = cql_input_next(c, &f);
	if (result == INPUT_FRAME) {
		step_unit();
		result = serve_next(c, &f);
		cql_input_done(c);
		if (result == INPUT_FRAME)
			return !c->ends;
	}
	finish_all(c);
	if (!refuse_input(c, &f, result))
		return false;
	cql_input_done(c);
	return !c->ends;
}

bool
cql_serve(struct net_stream *s, void *door)
{
	struct cql_client *c = cql_client_new(door, s);

	if (!c)
		return false;
	while (cql_serve_turn(c))
		;
	finish_all(c);
	flights_trim(c, 0);
	cql_client_free(c);
	return false;
}
