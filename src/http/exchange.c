/* The life of an exchange, and its request as the handler sees it. */
#include <assert.h>
#include <stdio.h>

#include "base/budget_room.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "http/conn.h"
#include "http/gzip.h"
#include "loop/step.h"
#include "net/memory.h"

/* ---- Life ---- */

void
exchange_count_input(struct http_exchange *x)
{
	net_memory_count_input(&x->input_part, &x->session,
			       x->parser.text.cap + x->body_in.cap + x->body_out.cap +
				       x->conn->pending.cap);
}

static bool
exchange_take_body(void *arg, struct str data)
{
	struct http_exchange *x = arg;

	x->body_taken += data.len;
	if (x->skipping)
		return true;
	buf_append_str(&x->body_in, data);
	exchange_count_input(x);
	return buf_status(&x->body_in) == STATUS_OK;
}

static void
exchange_trim(struct buf *b)
{
	if (b->cap > NET_SPARE_BYTES)
		buf_release(b);
	else
		buf_clear(b);
}

static void
exchange_end_gzip(struct http_exchange *x)
{
	if (!x->gzip)
		return;
	gzip_free(x->gzip);
	x->gzip = NULL;
	budget_unuse(&x->session.part, GZIP_MEMORY_BYTES);
}

static void
exchange_free(struct http_exchange *x)
{
	exchange_end_gzip(x);
	parser_release(&x->parser);
	buf_release(&x->body_in);
	buf_release(&x->body_out);
	buf_release(&x->body_whole);
	net_session_fini(&x->session);
	mem_free(x);
}

struct http_exchange *
exchange_take(struct conn *c)
{
	struct http_loop *l = conn_loop(c);
	const struct server_config *config = l->config;
	struct http_exchange *x = l->spare;

	if (x) {
		l->spare = x->next_spare;
		l->spare_count--;
	} else {
		x = mem_zalloc(sizeof(*x));
		if (!x)
			return NULL;
		parser_init(&x->parser, config->header_bytes, exchange_take_body, x);
		buf_init(&x->body_in, CONN_BODY_BYTES + NET_READ_BYTES);
		buf_init(&x->body_out, CONN_BODY_BYTES + NET_READ_BYTES);
		net_session_init(&x->session, config->output_bytes);
	}
	/* So much is set aside for the answer that memory is short. */
	if (!buf_reserve(&x->session.out, EXCHANGE_RESERVE_BYTES)) {
		exchange_free(x);
		return NULL;
	}
	x->conn = c;
	x->loop = l;
	net_session_begin(&x->session, &c->net);
	budget_part_init(&x->input_part, c->net.loop->memory);
	exchange_count_input(x);
	x->status = 200;
	x->chunk_at = SIZE_MAX;
	return x;
}

void
exchange_put(struct http_exchange *x)
{
	struct http_loop *l = x->loop;

	assert(!x->session.task);
	budget_part_release(&x->input_part);
	exchange_end_gzip(x); /* the session's part of the budget ends with the session */
	if (l->spare_count >= EXCHANGE_SPARES) {
		exchange_free(x);
		return;
	}
	net_session_end(&x->session);
	if (x->parser.text.cap > NET_SPARE_BYTES / 4)
		parser_release(&x->parser);
	parser_clear(&x->parser);
	exchange_trim(&x->body_in);
	exchange_trim(&x->body_out);
	buf_release(&x->body_whole);
	x->gzip_level = 0;
	x->conn = NULL;
	x->body_taken = 0;
	x->body_looked = 0;
	x->body_answered = 0;
	x->sending = (struct net_pace){ 0 };
	x->continued = x->skipping = x->given_up = false;
	x->header_count = 0;
	x->broken = x->started = x->finished = x->bodiless = x->chunked = false;
	x->out_of_memory = false;
	x->remaining = x->body_given = 0;
	x->next_spare = l->spare;
	l->spare = x;
	l->spare_count++;
}

void
exchange_drop_spares(struct http_loop *l)
{
	while (l->spare) {
		struct http_exchange *x = l->spare;

		l->spare = x->next_spare;
		exchange_free(x);
	}
	l->spare_count = 0;
}

/* ---- The handler ---- */

void
exchange_handle(void *arg)
{
	struct http_exchange *x = arg;

	task_set_doing(http_method(x), http_path(x));
	x->loop->config->handler(x, x->loop->config->arg);
	if (!x->started) {
		/* A 500 without a body becomes one that says that no reason was given. */
		x->header_count = 0;
		http_set_status(x, 500);
		if (http_send(x, STR("")) != STATUS_OK)
			http_abort(x);
	} else if (!x->finished) {
		http_abort(x);
	}
}

/* ---- The request ---- */

struct str
http_method(const struct http_exchange *x)
{
	return parser_method(&x->parser);
}

struct str
http_target(const struct http_exchange *x)
{
	return parser_target(&x->parser);
}

struct str
http_path(const struct http_exchange *x)
{
	struct str target = http_target(x);
	const char *mark = memchr(target.ptr, '?', target.len);

	return mark ? str_of(target.ptr, (size_t)(mark - target.ptr)) : target;
}

struct str
http_query(const struct http_exchange *x)
{
	struct str target = http_target(x);
	const char *mark = memchr(target.ptr, '?', target.len);

	return str_skip(target, mark ? (size_t)(mark - target.ptr) + 1 : target.len);
}

struct str
http_request_header(const struct http_exchange *x, struct str name)
{
	return parser_find_header(&x->parser, name);
}

size_t
http_request_header_count(const struct http_exchange *x)
{
	return x->parser.span_count;
}

struct http_header
http_request_header_at(const struct http_exchange *x, size_t i)
{
	assert(i < x->parser.span_count);
	return parser_header(&x->parser, i);
}

bool
http_is_secure(const struct http_exchange *x)
{
	return net_conn_is_secure(&x->conn->net);
}

struct str
http_peer(const struct http_exchange *x)
{
	return str_from_cstr(x->conn->net.peer);
}

struct arena *
http_arena(struct http_exchange *x)
{
	return x->session.task->arena;
}

struct budget_part *
http_memory(struct http_exchange *x)
{
	return &x->session.part;
}

void *
http_loop_context(struct http_exchange *x)
{
	return x->loop->context;
}

struct event *
http_closed_event(struct http_exchange *x)
{
	return &x->session.closed;
}

void
http_interrupt(struct http_exchange *x)
{
	net_session_interrupt(&x->session);
}

bool
http_is_interrupted(const struct http_exchange *x)
{
	return net_session_is_interrupted(&x->session);
}

struct event *
http_stopping_event(struct http_exchange *x)
{
	return &x->session.stopping;
}

/* ---- Its body ---- */

bool
http_body_has_come(const struct http_exchange *x)
{
	return x->parser.complete;
}

static void
exchange_send_continue(struct http_exchange *x)
{
	x->continued = true;
	if (x->parser.complete || x->body_taken > 0 || x->started)
		return;
	buf_append_str(&x->session.out, STR("HTTP/1.1 100 Continue\r\n\r\n"));
	exchange_send(x);
}

/* Frees buffers of the body that have nothing in them, if memory is short, and counts the rest. */
static void
exchange_release_input(struct http_exchange *x)
{
	if (budget_is_half_held(x->conn->net.loop->memory)) {
		buf_release(&x->body_out);
		if (!x->body_in.len)
			buf_release(&x->body_in);
	}
	exchange_count_input(x);
}

/* How much of the body has come since the last such call. */
static uint64_t
exchange_came(struct http_exchange *x)
{
	uint64_t came = x->body_taken - x->body_looked;

	x->body_looked = x->body_taken;
	return came;
}

/* The body has stalled: tells the client by which limit. */
static void
exchange_give_up_stalled(struct http_exchange *x, uint64_t stall_ms)
{
	char reason[160];

	switch (net_session_stall_of(&x->session, &x->sending)) {
	case NET_STALL_MEMORY:
		METRIC_REFUSED("memory_bytes");
		exchange_give_up(x, 503, "memory_bytes",
				 "The memory for requests, memory_bytes, is in use by others, and "
				 "the request's body did not come at once: try again later.");
		return;
	case NET_STALL_STOP:
		METRIC_REFUSED("drain_timeout_ms");
		exchange_give_up(x, 503, "drain_timeout_ms",
				 "This server stops, and the request's body did not come.");
		return;
	case NET_STALL_SETTING:
		break;
	}
	METRIC_REFUSED("body_timeout_ms");
	(void)snprintf(reason, sizeof(reason),
		       "Nothing came of the request's body for body_timeout_ms, %llu ms.",
		       (unsigned long long)stall_ms);
	exchange_give_up(x, 408, "body_timeout_ms", reason);
}

/* Waits for bytes of the body. False: the client does not keep up, and has been told so. */
static bool
exchange_wait_body(struct http_exchange *x)
{
	struct net_pace_limits limits = x->session.limits;
	enum net_verdict verdict;
	char reason[160];

	/* What came while nobody waited is to the client's credit, but ends no silence to come. */
	(void)net_pace_count(&x->sending, &limits, 0, exchange_came(x));
	exchange_release_input(x);
	verdict = net_memory_wait_for_request(&x->session, &x->sending, &x->body_taken);
	x->body_looked = x->body_taken;
	switch (verdict) {
	case NET_KEEPS_UP:
		return true;
	case NET_STALLS:
		exchange_give_up_stalled(x, limits.stall_ms);
		return false;
	case NET_IS_SLOW:
		break;
	}
	METRIC_REFUSED("min_rate_bytes");
	(void)snprintf(
		reason, sizeof(reason),
		"The request's body came too slowly: the limit, min_rate_bytes, is %llu bytes "
		"a second on average over %llu ms.",
		(unsigned long long)limits.min_rate_bytes, (unsigned long long)limits.window_ms);
	exchange_give_up(x, 408, "min_rate_bytes", reason);
	return false;
}

enum status
http_read(struct http_exchange *x, struct str *ret)
{
	if (!x->continued)
		exchange_send_continue(x);
	for (;;) {
		if (x->conn->net.lost)
			return STATUS_CANCELLED;
		if (x->body_in.len) {
			struct buf taken = x->body_in;

			x->body_in = x->body_out;
			x->body_out = taken;
			buf_clear(&x->body_in);
			net_conn_update_reading(&x->conn->net);
			*ret = buf_str(&x->body_out);
			return STATUS_OK;
		}
		if (x->parser.complete)
			return STATUS_NOT_FOUND;
		if (x->parser.refusal)
			return x->parser.refusal == 503 ? STATUS_NOMEM : STATUS_INVALID;
		if (!exchange_wait_body(x))
			return STATUS_CANCELLED;
	}
}

enum status
http_ask_memory(struct http_exchange *x, size_t bytes)
{
	if (!x->parser.chunked && x->parser.content_length <= BUDGET_FREE_BYTES)
		return STATUS_OK;
	return net_memory_reserve(&x->session, bytes);
}

enum status
http_ask_to_read(struct http_exchange *x, size_t n)
{
	return net_memory_turn_to_read(&x->session, n);
}

enum status
http_ask_to_last(struct http_exchange *x, size_t n)
{
	return net_memory_turn_to_last(&x->session, n);
}

struct net_wait_hook
http_on_wait(struct http_exchange *x, struct net_wait_hook hook)
{
	return net_session_on_wait(&x->session, hook);
}

void
http_rest(struct http_exchange *x)
{
	net_session_rest(&x->session);
}

/*
 * Waits for memory before a large body is read: for the body and for what the handler makes of it.
 * Until then the client gets no "100 Continue", or the loop stops reading from it. A chunked body
 * does not say how long it is; its buffer takes memory as it grows, if there is any.
 */
static enum status
exchange_ask_memory(struct http_exchange *x)
{
	uint64_t length = x->parser.content_length;

	if (x->parser.chunked)
		return STATUS_OK;
	if (length > SIZE_MAX / HTTP_BODY_COST)
		return STATUS_LIMIT;
	return http_ask_memory(x, (size_t)length * HTTP_BODY_COST);
}

/*
 * Moves the body to a buffer of twice the size. The bytes are copied in pieces, so that other
 * fibers run in between. The new buffer's pages are fresh, so realloc() of a body of 8 MiB would
 * hold the loop for milliseconds.
 */
static void
exchange_grow_body(struct http_exchange *x)
{
	struct buf *whole = &x->body_whole;
	struct buf larger = BUF_INIT_OF(whole->max_bytes, whole->part);
	size_t cap = whole->cap > whole->max_bytes / 2 ? whole->max_bytes : whole->cap * 2;

	if (buf_reserve(&larger, cap))
		for (size_t n; larger.len < whole->len;) {
			n = whole->len - larger.len;
			n = n < CONN_COPY_BYTES ? n : CONN_COPY_BYTES;
			buf_append(&larger, whole->ptr + larger.len, n);
			step_pause(CONN_COPY_STEPS);
		}
	buf_release(whole);
	*whole = larger;
}

/*
 * Makes room for what has come. The buffer of a long body grows with it, so that a body that was
 * only announced takes no memory.
 */
static bool
exchange_keep(struct http_exchange *x, struct str part)
{
	struct buf *whole = &x->body_whole;
	size_t first = whole->max_bytes < CONN_BODY_FIRST_BYTES ? whole->max_bytes
								: CONN_BODY_FIRST_BYTES;

	if (!whole->cap && !x->parser.chunked)
		buf_reserve(whole, first);
	if (whole->len >= CONN_COPY_BYTES && whole->cap - whole->len < part.len &&
	    whole->len + part.len <= whole->max_bytes)
		exchange_grow_body(x);
	buf_append_str(whole, part);
	return buf_status(whole) == STATUS_OK;
}

enum status
http_read_all(struct http_exchange *x, size_t max_bytes, struct str *ret)
{
	size_t limit = x->loop->config->request_bytes;
	struct str part;
	enum status s;

	if (max_bytes > limit)
		max_bytes = limit;
	if (!x->parser.chunked && x->parser.content_length > max_bytes)
		return STATUS_LIMIT;
	/* The common case: the whole body came with the head, and is in the exchange's buffer. */
	if (x->parser.complete) {
		s = http_read(x, &part);
		if (s == STATUS_OK && part.len > max_bytes)
			return STATUS_LIMIT;
		*ret = s == STATUS_OK ? part : (struct str){ "", 0 };
		return s == STATUS_NOT_FOUND ? STATUS_OK : s;
	}
	TRY(exchange_ask_memory(x));
	if (!x->parser.chunked)
		max_bytes = (size_t)x->parser.content_length;
	x->body_whole = BUF_INIT_OF(max_bytes, &x->session.part);
	while ((s = http_read(x, &part)) == STATUS_OK)
		if (!exchange_keep(x, part))
			return buf_status(&x->body_whole);
	if (s != STATUS_NOT_FOUND)
		return s;
	TRY(net_memory_reserve_again(&x->session, x->body_whole.len * HTTP_BODY_COST));
	*ret = x->body_whole.len ? buf_str(&x->body_whole) : (struct str){ "", 0 };
	return STATUS_OK;
}
