#include "door/rows/serve.h"

#include <stdio.h>

#include "base/clear.h"
#include "base/clock.h"
#include "base/err_clear.h"
#include "base/metric.h"
#include "door/rows/conn/request.h"
#include "door/rows/data/rows.h"
#include "loop/step.h"
#include "net/memory.h"
#include "serve/explain.h"
#include "serve/settle.h"

enum {
	SLOW_BYTES = 120, /* of what is said of a slow request */
	HELLO_BYTES = 64, /* a longer one is none */
	IDLE_LOOK_MS = 60 * 60 * 1000,
	TXN_LOOK_MS = 1000, /* between two looks whether others need a transaction's memory */
};

METRIC_COUNTER(requests, "frond_rows_requests_total", METRIC_NUMBER,
	       "Requests of the protocol for rows, those that failed included.");
METRIC_COUNTER(failures, "frond_rows_failures_total", METRIC_NUMBER,
	       "Requests of the protocol for rows that were answered with an error.");

/* ---- What begins a connection ---- */

static enum status
fail_malformed(struct rows_request *r)
{
	return rows_fail(r, ROWS_STATE_PROTOCOL, "the request is malformed");
}

static enum status
serve_hello(struct rows_request *r)
{
	struct rows_in in = { .rest = r->body };
	uint32_t magic = rows_in_u32(&in);
	unsigned least = rows_in_u16(&in), most = rows_in_u16(&in);

	if (in.bad || magic != ROWS_MAGIC)
		return fail_malformed(r);
	if (least > ROWS_VERSION || most < ROWS_VERSION_LEAST || least > most)
		return rows_fail(r, ROWS_STATE_PROTOCOL,
				 "versions %u to %u of the protocol are not served; %d to %d are",
				 least, most, ROWS_VERSION_LEAST, ROWS_VERSION);
	r->client->greeted = true;
	r->client->version = most < ROWS_VERSION ? most : ROWS_VERSION;
	rows_put_u16(r->out, r->client->version);
	rows_put_u32(r->out, ROWS_FRAME_BYTES);
	rows_put_u8(r->out, !r->client->entry.who.authenticated);
	rows_put_str(r->out, STR("frond " FROND_VERSION));
	return buf_status(r->out);
}

static enum status
serve_login(struct rows_request *r)
{
	struct str name, password;
	enum status status;

	TRY(rows_names_read(r->body, &name, &password, &r->err));
	/* What one person has written another one does not commit. */
	TRY(rows_txn_check_none(r));
	status = visit_login(&r->client->entry, "password", name, password, &r->err);
	if (status != STATUS_UNAUTHORIZED)
		return status;
	return rows_fail(r, ROWS_STATE_PASSWORD, "the name or the password is wrong");
}

static enum status
serve_ping(struct rows_request *r)
{
	return r->body.len ? fail_malformed(r) : STATUS_OK;
}

/* ---- All requests ---- */

struct kind_of_request {
	const char *name;
	enum status (*serve)(struct rows_request *r);
	enum rows_class class;
	bool by_strangers; /* it may come from one who has not logged in */
};

static const struct kind_of_request kinds[ROWS_REQUESTS] = {
	[ROWS_HELLO] = { "HELLO", serve_hello, ROWS_CLASS_CONNECTION, true },
	[ROWS_LOGIN] = { "LOGIN", serve_login, ROWS_CLASS_CONNECTION, true },
	[ROWS_PING] = { "PING", serve_ping, ROWS_CLASS_CONNECTION, true },
	[ROWS_BEGIN] = { "BEGIN", rows_txn_begin, ROWS_CLASS_TRANSACTION, false },
	[ROWS_COMMIT] = { "COMMIT", rows_txn_commit, ROWS_CLASS_TRANSACTION, false },
	[ROWS_ROLLBACK] = { "ROLLBACK", rows_txn_rollback, ROWS_CLASS_TRANSACTION, false },
	[ROWS_SAVEPOINT] = { "SAVEPOINT", rows_txn_savepoint, ROWS_CLASS_TRANSACTION, false },
	[ROWS_RELEASE] = { "RELEASE", rows_txn_release, ROWS_CLASS_TRANSACTION, false },
	[ROWS_ROLLBACK_TO] = { "ROLLBACK_TO", rows_txn_rollback_to, ROWS_CLASS_TRANSACTION, false },
	[ROWS_SCHEMAS] = { "SCHEMAS", rows_serve_schemas, ROWS_CLASS_SCHEMA, false },
	[ROWS_SCHEMA_CREATE] = { "SCHEMA_CREATE", rows_serve_schema_create, ROWS_CLASS_SCHEMA,
				 false },
	[ROWS_SCHEMA_DROP] = { "SCHEMA_DROP", rows_serve_schema_drop, ROWS_CLASS_SCHEMA, false },
	[ROWS_TABLES] = { "TABLES", rows_serve_tables, ROWS_CLASS_SCHEMA, false },
	[ROWS_TABLE] = { "TABLE", rows_serve_table, ROWS_CLASS_SCHEMA, false },
	[ROWS_TABLE_CREATE] = { "TABLE_CREATE", rows_serve_table_create, ROWS_CLASS_SCHEMA, false },
	[ROWS_TABLE_ALTER] = { "TABLE_ALTER", rows_serve_table_alter, ROWS_CLASS_SCHEMA, false },
	[ROWS_TABLE_DROP] = { "TABLE_DROP", rows_serve_table_drop, ROWS_CLASS_SCHEMA, false },
	[ROWS_TABLE_EMPTY] = { "TABLE_EMPTY", rows_serve_table_empty, ROWS_CLASS_SCHEMA, false },
	[ROWS_SCAN] = { "SCAN", rows_serve_scan, ROWS_CLASS_SCAN, false },
	[ROWS_GET] = { "GET", rows_serve_get, ROWS_CLASS_GET, false },
	[ROWS_WRITE] = { "WRITE", rows_serve_write, ROWS_CLASS_WRITE, false },
	[ROWS_INDEXES] = { "INDEXES", rows_serve_indexes, ROWS_CLASS_SCHEMA, false },
	[ROWS_INDEX_CREATE] = { "INDEX_CREATE", rows_serve_index_create, ROWS_CLASS_SCHEMA, false },
	[ROWS_INDEX_BUILD] = { "INDEX_BUILD", rows_serve_index_build, ROWS_CLASS_SCHEMA, false },
	[ROWS_INDEX_DROP] = { "INDEX_DROP", rows_serve_index_drop, ROWS_CLASS_SCHEMA, false },
	[ROWS_INDEX_FIND] = { "INDEX_FIND", rows_serve_index_find, ROWS_CLASS_SCHEMA, false },
	[ROWS_ESTIMATE] = { "ESTIMATE", rows_serve_estimate, ROWS_CLASS_SCHEMA, false },
	[ROWS_REFRESH] = { "REFRESH", rows_txn_refresh, ROWS_CLASS_TRANSACTION, false },
};

static const struct kind_of_request *
kind_find(unsigned code)
{
	return code < ROWS_REQUESTS && kinds[code].serve ? &kinds[code] : NULL;
}

/* ---- One request ---- */

static void
count_request(struct rows_request *r, const struct kind_of_request *kind, enum status status)
{
	struct clients_entry *entry = &r->client->entry;
	uint64_t took_ns = clock_mono_ns() - r->began_ns;
	char more[SLOW_BYTES];

	ops_count(&rows_ops, kind->class, took_ns);
	if (took_ns <= r->door->config.settings->slow_ms * CLOCK_NS_PER_MS ||
	    !ops_count_slow(&rows_ops))
		return;
	snprintf(more, sizeof(more), "status=%s bytes_in=%zu bytes_out=%zu", status_name(status),
		 r->body.len, r->out->len);
	clients_note_slow(entry, &entry->op,
			  (struct ops_slow){ .took_ns = took_ns,
					     .more = str_from_cstr(more),
					     .keep = OPS_SLOW_KEPT });
}

static void
explain(struct rows_request *r, enum status status)
{
	if (!r->state)
		r->state = rows_state_of(status);
	/* In PostgreSQL's words: clients look for these. */
	if (!r->err.text[0] && (status == STATUS_TX_CONFLICT || status == STATUS_TX_TOO_OLD))
		err_set(&r->err, status,
			"could not serialize access: another transaction has changed what this one "
			"has read");
	explain_failure(net_stream_session(r->client->stream), r->out->part, status, &r->err);
}

/* The status of a request whose answer found no room. */
static enum status
check_answer(struct rows_request *r)
{
	const struct budget_part *part = r->out->part;
	enum status status = buf_status(r->out);

	if (status == STATUS_OK || budget_has_failed(part))
		return status;
	return rows_fail(r, ROWS_STATE_TOO_LARGE,
			 "the answer has more than %d bytes (ROWS_REPLY_BYTES)", ROWS_REPLY_BYTES);
}

static enum status
run_request(struct rows_request *r, const struct kind_of_request *kind)
{
	struct rows_client *c = r->client;
	struct visit_refused refused;
	enum status status;
	bool is_refused;

	clients_op_begin(&c->entry, &rows_ops, kind->name, STR(""), r->began_ns, STR(""), STR(""));
	status = kind->serve(r);
	if (status == STATUS_OK || (status == STATUS_LIMIT && !r->err.text[0]))
		status = buf_status(r->out) == STATUS_OK ? status : check_answer(r);
	count_request(r, kind, status);
	is_refused = status != STATUS_OK && r->state && strcmp(r->state, ROWS_STATE_RIGHT) == 0;
	refused = (struct visit_refused){ .on = r->schema, .on_more = r->table };
	visit_op_end(&c->entry, &c->entry.op, is_refused ? &refused : NULL);
	return status;
}

/* Whether the request may come now. */
static enum status
check_order(struct rows_request *r, const struct kind_of_request *kind)
{
	struct rows_client *c = r->client;

	if (!kind || r->header.reserved)
		return rows_fail(r, ROWS_STATE_PROTOCOL, "there is no request %u", r->header.code);
	if (c->greeted == (r->header.code == ROWS_HELLO))
		return rows_fail(r, ROWS_STATE_PROTOCOL, "a connection begins with HELLO, once");
	return rows_txn_check_begun(r);
}

/*
 * The address or the person may ask too often, or for too much ([limits]). What ends a transaction
 * is never refused: it takes no more, and gives back what others wait for.
 */
static enum status
request_admit(struct rows_request *r, const struct kind_of_request *kind)
{
	struct rows_client *c = r->client;
	const struct visit_command asked = {
		.name = kind ? str_from_cstr(kind->name) : STR(""),
		.is_open = !kind || kind->by_strangers || !c->greeted,
		.always = r->header.code == ROWS_HELLO || r->header.code == ROWS_ROLLBACK,
	};
	enum status status = visit_admit(&c->entry, &asked, &r->err);

	/* Whoever is gone leaves nothing that a later login could commit. */
	if (!c->entry.who.authenticated)
		rows_txn_free(c);
	if (status == STATUS_UNAUTHORIZED)
		r->state = "28000";
	else if (status != STATUS_OK && !asked.always)
		r->state = ROWS_STATE_BUSY;
	return status;
}

static enum status
serve_body(struct rows_request *r)
{
	const struct kind_of_request *kind = kind_find(r->header.code);

	TRY(request_admit(r, kind));
	TRY(check_order(r, kind));
	return run_request(r, kind);
}

/* ---- Answers ---- */

/* Begins a request in place. Bytes behind the end of its error's text are not set. */
static void
request_init(struct rows_request *r, struct rows_client *c, const struct rows_header *h)
{
	CLEAR_BEFORE(r, err);
	err_clear(&r->err);
	CLEAR_BEHIND(r, err, schema);
	r->door = c->door;
	r->client = c;
	r->header = *h;
	r->arena = net_stream_arena(c->stream);
	r->out = &c->out;
	r->at = ROWS_NOWHERE;
	r->schema = r->table = r->unique = STR("");
	r->began_ns = clock_mono_ns();
}

/* Ends an answer whose body is there, or becomes an error. Sends it. */
static void
answer(struct rows_request *r, size_t from, enum status status)
{
	struct rows_client *c = r->client;

	if (status != STATUS_OK) {
		metric_add(&failures, 1);
		if (r->header.code == ROWS_BEGIN)
			rows_txn_refused(c);
		explain(r, status);
		/* The frame has been begun before, so that there is room for its header. */
		r->out->failed = STATUS_OK;
		r->out->len = r->out_from;
		rows_frame_set_code(r->out, from, ROWS_ERROR);
		buf_append(r->out, r->state, ROWS_STATE_BYTES);
		rows_put_u32(r->out, (uint32_t)r->at);
		rows_put_str(r->out, str_from_cstr(r->err.text));
		if (c->version > ROWS_VERSION_LEAST)
			rows_put_str(r->out, r->unique);
	}
	rows_frame_end(r->out, from);
	/* What was set aside and is not used is for others while the client reads. */
	budget_settle(r->out->part);
	if (rows_client_send(c) != STATUS_OK)
		c->ends = true;
}

/* Begins the answer. False: there is no memory for it, and the connection ends. */
static bool
answer_begin(struct rows_request *r, size_t *ret_from)
{
	buf_clear(r->out);
	*ret_from = rows_frame_begin(r->out, r->header.number, ROWS_DONE);
	r->out_from = r->out->len;
	if (buf_status(r->out) == STATUS_OK)
		return true;
	r->client->ends = true;
	return false;
}

static void
serve_frame(struct rows_client *c, const struct rows_header *h)
{
	struct arena_mark mark;
	struct rows_request r;
	enum status status;
	size_t from;

	request_init(&r, c, h);
	mark = arena_mark(r.arena);
	metric_add(&requests, 1);
	r.body = buf_str(&c->in);
	if (!answer_begin(&r, &from))
		return;
	status = serve_body(&r);
	answer(&r, from, status);
	arena_reset(r.arena, mark);
}

/* ---- Input ---- */

/* Waits until something comes; meanwhile a transaction may have had its time. */
static enum status
wait_for_bytes(struct rows_client *c)
{
	uint64_t until_ns, look_ns;
	struct str in;

	for (;;) {
		TRY(net_stream_next(c->stream, &in));
		if (in.len)
			return STATUS_OK;
		rows_txn_expire(c);
		until_ns = rows_txn_until_ns(c);
		look_ns = clock_after_ms(until_ns ? TXN_LOOK_MS : IDLE_LOOK_MS);
		net_stream_rest(c->stream, NET_REST_IDLE, NULL,
				until_ns && until_ns < look_ns ? until_ns : look_ns);
	}
}

/* Drops `c->skips` bytes as they come. */
static enum status
skip_bytes(struct rows_client *c)
{
	struct str in;
	size_t n;

	while (c->skips) {
		TRY(net_stream_peek(c->stream, 1, &in));
		n = in.len < c->skips ? in.len : c->skips;
		net_stream_take(c->stream, n);
		c->skips -= n;
	}
	return STATUS_OK;
}

/* Answers a request whose body is not read. */
static void
answer_unread(struct rows_client *c, const struct rows_header *h, const char *state,
	      const struct err *err)
{
	struct rows_request r;
	size_t from;

	request_init(&r, c, h);
	metric_add(&requests, 1);
	r.state = state;
	r.err = *err;
	if (answer_begin(&r, &from))
		answer(&r, from, err->status);
}

/* A body that is longer than it may be: it is passed over as it comes. */
static void
refuse_length(struct rows_client *c, const struct rows_header *h)
{
	struct err err = { 0 };

	METRIC_REFUSED("ROWS_FRAME_BYTES");
	err_set(&err, STATUS_LIMIT, "the request has %zu bytes; the limit, ROWS_FRAME_BYTES, is %d",
		h->length, ROWS_FRAME_BYTES);
	c->skips = h->length;
	answer_unread(c, h, ROWS_STATE_TOO_LARGE, &err);
}

static bool
lacks_memory(struct rows_client *c)
{
	return budget_has_failed(c->in.part) || net_stream_is_unwanted(c->stream);
}

static void
refuse_memory(struct rows_client *c, const struct rows_header *h)
{
	struct err err = { 0 };

	(void)net_memory_refuse(net_stream_session(c->stream), &err);
	err.status = STATUS_LIMIT;
	answer_unread(c, h, ROWS_STATE_MEMORY, &err);
	c->ends |= net_stream_is_unwanted(c->stream);
}

/*
 * Reads one request into `in`. STATUS_LIMIT: it was refused, and the connection goes on; another
 * failure: it ends.
 */
static enum status
read_frame(struct rows_client *c, struct rows_header *ret)
{
	enum status status;
	struct str in;

	budget_forgive(c->in.part);
	buf_clear(&c->in);
	TRY(skip_bytes(c));
	TRY(wait_for_bytes(c));
	TRY(net_stream_peek(c->stream, ROWS_HEADER_BYTES, &in));
	*ret = rows_header_read(in);
	net_stream_take(c->stream, ROWS_HEADER_BYTES);
	/* Whoever does not begin with a short HELLO speaks another protocol. */
	if (!c->greeted && (ret->code != ROWS_HELLO || ret->length > HELLO_BYTES))
		return STATUS_INVALID;
	if (ret->length > ROWS_FRAME_BYTES) {
		refuse_length(c, ret);
		return STATUS_LIMIT;
	}
	/* Buffers grow by doubling. */
	status = net_stream_read(c->stream, ret->length, 2 * ret->length, &c->in);
	if (status == STATUS_OK || !lacks_memory(c))
		return status;
	refuse_memory(c, ret);
	return STATUS_LIMIT;
}

/* Serves one request. False: the connection ends. */
static bool
rows_serve_turn(struct rows_client *c)
{
	struct rows_header h;
	enum status status = read_frame(c, &h);

	if (status == STATUS_OK) {
		step_unit();
		serve_frame(c, &h);
	}
	settle_request(&c->entry);
	settle_buffer(&c->in);
	settle_buffer(&c->out);
	return (status == STATUS_OK || status == STATUS_LIMIT) && !c->ends;
}

bool
rows_serve(struct net_stream *s, void *door)
{
	struct rows_client *c = rows_client_new(door, s);

	if (!c)
		return false;
	net_stream_give_up_on(s, (struct net_patience){ .event = &c->entry.ended,
							.until_ns = rows_txn_look,
							.arg = c });
	while (rows_serve_turn(c))
		;
	rows_txn_free(c);
	rows_client_free(c);
	return false;
}
