#include "http/conn.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "net/memory.h"

/* The stream's state and malloc's own come on top; tests/http measures the whole. */
_Static_assert(sizeof(struct conn) <= 192, "thousands of idle connections have to be cheap");

#define BIT(state) (1U << CONN_STATE_##state)

/* Which states may follow which. */
static const unsigned followers[CONN_STATE_COUNT] = {
	[CONN_STATE_IDLE] = BIT(HEAD) | BIT(CLOSING),
	[CONN_STATE_HEAD] = BIT(RUN) | BIT(FINISH) | BIT(CLOSING),
	[CONN_STATE_RUN] = BIT(FINISH) | BIT(CLOSING),
	[CONN_STATE_FINISH] = BIT(IDLE) | BIT(LINGER) | BIT(CLOSING),
	[CONN_STATE_LINGER] = BIT(CLOSING),
	[CONN_STATE_CLOSING] = 0,
};

static struct conn *
conn_of(struct net_conn *net)
{
	return (struct conn *)net;
}

static void
conn_set_state(struct conn *c, enum conn_state state)
{
	const struct server_config *config = conn_loop(c)->config;

	if (!(followers[c->state] & 1U << state))
		abort(); /* going on would serve one client another's bytes */
	c->state = state;
	switch (state) {
	case CONN_STATE_IDLE:
		net_conn_set_timer(&c->net, clock_after_ms(c->net.loop->idle_timeout_ms));
		break;
	case CONN_STATE_HEAD:
		net_conn_set_timer(&c->net, clock_after_ms(config->header_timeout_ms));
		break;
	case CONN_STATE_FINISH:
		c->x->body_looked = c->x->body_taken;
		net_conn_set_timer(&c->net, net_session_watch(&c->x->session));
		break;
	case CONN_STATE_RUN: /* the handler's waits have deadlines of their own */
		net_conn_set_timer(&c->net, WAIT_FOREVER);
		break;
	case CONN_STATE_LINGER: /* the timer is net's from now on */
	case CONN_STATE_CLOSING:
	case CONN_STATE_COUNT:
		break;
	}
}

static void
conn_count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* ---- Closing ---- */

/* Puts the exchange back. Nothing runs for it any more. */
static void
conn_drop_exchange(struct conn *c)
{
	struct http_exchange *x = c->x;

	c->x = NULL;
	if (x)
		exchange_put(x);
}

static void
conn_lost(struct net_conn *net)
{
	struct conn *c = conn_of(net);

	conn_set_state(c, CONN_STATE_CLOSING);
	c->keep = false;
	if (!c->x)
		return;
	if (c->x->session.task || c->x->started)
		conn_count(&conn_loop(c)->counters->aborted);
	net_session_lost(&c->x->session);
}

static bool
conn_closed(struct net_conn *net)
{
	struct conn *c = conn_of(net);

	/* A handler that is still at work frees the connection when it returns: conn_settle(). */
	if (c->x && c->x->session.task)
		return false;
	conn_drop_exchange(c);
	buf_release(&c->pending);
	return true;
}

/* Everything is sent, and the client may still be sending: closing now could destroy the answer. */
static void
conn_linger(struct conn *c)
{
	buf_release(&c->pending);
	if (net_conn_linger(&c->net))
		conn_set_state(c, CONN_STATE_LINGER);
}

static void conn_settle(struct conn *c);

static void
conn_stop(struct net_conn *net)
{
	struct conn *c = conn_of(net);

	switch (c->state) {
	case CONN_STATE_IDLE:
		net_conn_close(net);
		break;
	case CONN_STATE_HEAD:
		net_conn_set_timer(net, clock_after_ms(NET_STOP_STALL_MS));
		event_set(&c->x->session.stopping);
		break;
	case CONN_STATE_RUN:
		net_session_stop(&c->x->session);
		break;
	case CONN_STATE_FINISH:
		c->keep = false; /* it need not wait for the rest of a body that nobody reads */
		net_session_stop(&c->x->session);
		conn_settle(c);
		break;
	case CONN_STATE_LINGER:
	case CONN_STATE_CLOSING:
	case CONN_STATE_COUNT:
		break;
	}
}

/* ---- Requests ---- */

/* On the loop again, with the fiber idle: the handler has returned. */
static void
conn_handled(void *arg)
{
	struct http_exchange *x = arg;
	struct conn *c = x->conn;

	x->skipping = true;
	if (x->parser.complete) {
		buf_clear(&x->body_in);
	} else {
		/* The rest of the body is dropped as it comes, and that may take long. */
		buf_release(&x->body_in);
		buf_release(&x->body_out);
	}
	buf_release(&x->body_whole);
	exchange_count_input(x);
	net_session_returned(&x->session);
	if (c->state != CONN_STATE_CLOSING)
		conn_set_state(c, CONN_STATE_FINISH);
	conn_settle(c);
}

/* Starts the handler; false when out of memory. It may have returned when this does. */
static bool
conn_run_handler(struct conn *c)
{
	struct http_exchange *x = c->x;

	x->continued = !x->parser.expect_continue || x->parser.complete;
	conn_count(&conn_loop(c)->counters->requests);
	return net_session_run(&x->session, c->burst++ >= CONN_BURST, exchange_handle, conn_handled,
			       x);
}

static void
conn_start_exchange(struct conn *c)
{
	struct http_exchange *x = exchange_take(c);

	if (!x) {
		net_conn_close(&c->net);
		return;
	}
	assert(!c->x);
	c->x = x;
	conn_set_state(c, CONN_STATE_HEAD);
}

static void
conn_refuse_request(struct conn *c, int status, const char *reason)
{
	conn_count(&conn_loop(c)->counters->malformed);
	conn_set_state(c, CONN_STATE_FINISH);
	exchange_refuse(c->x, status, reason);
	conn_settle(c);
}

/*
 * In FINISH: whether the client keeps up with reading the rest of the answer, or with sending what
 * nobody reads any more. False: it has been cut off.
 */
static bool
conn_look_after_client(struct conn *c)
{
	struct http_exchange *x = c->x;
	uint64_t came = x->body_taken - x->body_looked;

	x->body_looked = x->body_taken;
	net_conn_set_timer(&c->net, net_session_look(&x->session, came));
	return !c->net.lost;
}

/*
 * A long head counts. Until it is complete it takes as long as its client likes, so it counts like
 * input of a request that lasts.
 */
static void
conn_count_head(struct conn *c)
{
	struct http_exchange *x = c->x;

	if (x->parser.text.len <= NET_MEMORY_INPUT_LEAST_BYTES)
		return;
	if (x->parser.head_done)
		budget_part_end_lasting(&x->input_part);
	else
		budget_part_last(&x->input_part);
	exchange_count_input(x);
}

/*
 * True if a head that is not complete is long, and memory is short. Every connection may have such
 * a head, so together they could take all of the memory.
 */
static bool
conn_head_is_too_long(const struct conn *c)
{
	const struct budget *b = c->net.loop->memory;

	return c->x->parser.text.len > NET_MEMORY_INPUT_LEAST_BYTES && b && budget_is_short(b);
}

/* What the parser's outcome means for the exchange. */
static void
conn_after_parse(struct conn *c, enum parser_result result)
{
	struct http_exchange *x = c->x;

	if (c->state == CONN_STATE_HEAD) {
		conn_count_head(c);
		if (result == PARSER_RESULT_BAD) {
			conn_refuse_request(c, x->parser.refusal, x->parser.reason);
		} else if (x->parser.head_done) {
			c->keep = x->parser.keep_alive && !c->net.loop->stopping;
			conn_set_state(c, CONN_STATE_RUN);
			/*
			 * The handler runs inside this call, and may be through when it returns:
			 * then the exchange is another's already, and `x` must not be used.
			 */
			if (!conn_run_handler(c))
				conn_refuse_request(c, 503, "Out of memory.");
		} else if (conn_head_is_too_long(c)) {
			METRIC_REFUSED("memory_bytes");
			c->keep = false;
			conn_refuse_request(c, 503, "There is no memory for so long a head.");
		}
		return;
	}
	if (result == PARSER_RESULT_BAD) {
		conn_count(&conn_loop(c)->counters->malformed);
		c->keep = false;
	}
	net_session_progress(&x->session);
	if (c->state == CONN_STATE_FINISH) {
		if (!conn_look_after_client(c))
			return;
		/* Of a body without a known length; of others the answer has said it. */
		if (x->body_taken - x->body_answered > CONN_SKIP_BYTES)
			c->keep = false;
		conn_settle(c);
	}
}

/* Parses as far as requests can be served now. Returns how much was used. */
static size_t
conn_feed(struct conn *c, struct str data)
{
	size_t used = 0;

	assert(!c->feeding);
	c->feeding = true;
	c->burst = 0;
	while (used < data.len) {
		enum parser_result result;
		size_t n;

		if (c->state == CONN_STATE_IDLE)
			conn_start_exchange(c);
		if (c->state == CONN_STATE_LINGER || c->state == CONN_STATE_CLOSING) {
			used = data.len;
			break;
		}
		if (c->x->parser.complete)
			break;
		if (c->x->parser.refusal) {
			used = data.len; /* behind something that made no sense, nothing does */
			break;
		}
		result = parser_feed(&c->x->parser, str_skip(data, used), &n);
		used += n;
		conn_after_parse(c, result);
	}
	c->feeding = false;
	return used;
}

static void
conn_input(struct net_conn *net, struct str data)
{
	struct conn *c = conn_of(net);
	size_t used = 0;

	if (c->pending.len == 0)
		used = conn_feed(c, data);
	if (c->state == CONN_STATE_LINGER || c->state == CONN_STATE_CLOSING)
		return;
	buf_append_str(&c->pending, str_skip(data, used));
	if (c->x)
		exchange_count_input(c->x);
	if (buf_status(&c->pending) != STATUS_OK)
		net_conn_abort(net);
}

/* Goes on with what came while the last request was served. */
static void
conn_continue(struct conn *c)
{
	if (c->pending.len) {
		/*
		 * The bytes are taken out of the connection while they are parsed: what a handler
		 * leaves of them is put back below, and nothing else appends to them meanwhile.
		 */
		struct buf pending = c->pending;
		size_t used;

		buf_init(&c->pending, CONN_PENDING_BYTES + NET_READ_BYTES);
		used = conn_feed(c, buf_str(&pending));
		if (c->state == CONN_STATE_LINGER || c->state == CONN_STATE_CLOSING ||
		    used == pending.len) {
			buf_release(&pending);
		} else {
			assert(c->pending.len == 0);
			buf_consume(&pending, used);
			c->pending = pending;
		}
	}
	if (c->net.eof && (c->state == CONN_STATE_IDLE || c->state == CONN_STATE_HEAD))
		net_conn_close(&c->net);
	net_conn_update_reading(&c->net);
}

/* The handler has returned on a lost connection. */
static void
conn_settle_lost(struct conn *c)
{
	if (!c->net.gone || (c->x && c->x->session.task))
		return;
	conn_drop_exchange(c);
	buf_release(&c->pending);
	net_conn_free(&c->net);
}

/*
 * Goes on after something that FINISH waits for has happened: the handler has returned, output has
 * gone, or more of an unread body has come.
 */
static void
conn_settle(struct conn *c)
{
	struct http_exchange *x = c->x;

	if (c->state == CONN_STATE_CLOSING) {
		conn_settle_lost(c);
		return;
	}
	assert(c->state == CONN_STATE_FINISH);
	if (net_session_unsent(&x->session) > 0)
		return;
	if (c->keep && !x->parser.complete) {
		/* The rest of the body may take its time, if there is memory for those who do. */
		if (!x->session.part.lasts) {
			budget_part_last(&x->session.part);
			net_conn_set_timer(&c->net, net_session_watch(&x->session));
		}
		net_conn_update_reading(&c->net);
		return;
	}
	if (!c->keep || c->net.loop->stopping) {
		bool more = !x->parser.complete || c->pending.len || c->feeding;

		conn_drop_exchange(c);
		if (more)
			conn_linger(c);
		else
			net_conn_close(&c->net);
		return;
	}
	conn_drop_exchange(c);
	conn_set_state(c, CONN_STATE_IDLE);
	/* Inside conn_feed() its loop goes on with the next request; a call here would recurse. */
	if (!c->feeding)
		conn_continue(c);
}

/* ---- The stream ---- */

static void
conn_ended(struct net_conn *net)
{
	struct conn *c = conn_of(net);

	if (c->state == CONN_STATE_IDLE || c->state == CONN_STATE_HEAD) {
		net_conn_close(net);
	} else if (c->x && !c->x->parser.complete) {
		if (c->state == CONN_STATE_RUN && !c->x->parser.refusal) {
			net_conn_abort(net);
			return;
		}
		c->keep = false;
		event_set(&c->x->session.closed);
		if (c->state == CONN_STATE_FINISH)
			conn_settle(c);
	} else if (c->x) {
		/* It may have shut down its side only, and still wait for the answer. */
		event_set(&c->x->session.closed);
	}
}

static bool
conn_wants_input(const struct net_conn *net)
{
	const struct conn *c = (const struct conn *)net;

	if (!c->x)
		return true;
	if (c->x->parser.complete)
		return c->pending.len < net_memory_input_bytes(net->loop, CONN_PENDING_BYTES);
	return c->x->skipping ||
	       c->x->body_in.len < net_memory_input_bytes(net->loop, CONN_BODY_BYTES);
}

static void
conn_written(struct net_conn *net)
{
	struct conn *c = conn_of(net);
	struct http_exchange *x = c->x;

	assert(x);
	net_session_written(&x->session);
	if (net->lost)
		return;
	exchange_send(x);
	net_session_progress(&x->session);
	if (c->state == CONN_STATE_FINISH)
		conn_settle(c);
}

static void
conn_timed_out(struct net_conn *net)
{
	struct conn *c = conn_of(net);
	char reason[160];

	switch (c->state) {
	case CONN_STATE_HEAD:
		if (net->loop->stopping) { /* nothing was asked yet */
			net_conn_close(net);
			break;
		}
		METRIC_REFUSED("header_timeout_ms");
		(void)snprintf(reason, sizeof(reason),
			       "The request's headers did not arrive in time: the limit, "
			       "header_timeout_ms, is %llu ms.",
			       (unsigned long long)conn_loop(c)->config->header_timeout_ms);
		conn_refuse_request(c, 408, reason);
		break;
	case CONN_STATE_FINISH:
		(void)conn_look_after_client(c);
		break;
	case CONN_STATE_IDLE:
		net_conn_close(net);
		break;
	case CONN_STATE_LINGER:
	case CONN_STATE_RUN:
	case CONN_STATE_CLOSING:
	case CONN_STATE_COUNT:
		break;
	}
}

static void
conn_refuse_connection(struct conn *c)
{
	const struct net_loop *l = c->net.loop;
	char reason[120];

	conn_start_exchange(c);
	if (c->state != CONN_STATE_HEAD)
		return;
	conn_set_state(c, CONN_STATE_FINISH);
	if (c->net.refused == NET_TOO_MANY) {
		(void)snprintf(reason, sizeof(reason),
			       "Too many connections: the limit, max_connections, is %zu.",
			       l->max_connections);
		exchange_refuse(c->x, 503, reason);
	} else {
		(void)snprintf(reason, sizeof(reason),
			       "Too many connections from this address: the limit, "
			       "max_connections_per_address, is %zu.",
			       l->addresses->limit);
		exchange_refuse(c->x, 429, reason);
	}
	conn_settle(c);
}

static void
conn_opened(struct net_conn *net)
{
	struct conn *c = conn_of(net);

	assert(c->state == CONN_STATE_IDLE);
	buf_init(&c->pending, CONN_PENDING_BYTES + NET_READ_BYTES);
	net_conn_set_timer(net, clock_after_ms(net->loop->idle_timeout_ms));
	if (net->refused)
		conn_refuse_connection(c);
}

/* ---- What the exchanges of a loop share ---- */

static void
http_loop_free(void *context)
{
	struct http_loop *l = context;

	exchange_drop_spares(l);
	if (l->context && l->config->loop_free)
		l->config->loop_free(l->context);
	mem_free(l);
}

static void *
http_loop_new(struct net_loop *net, void *options)
{
	const struct http_service *service = options;
	const struct server_config *config = service->config;
	struct http_loop *l = mem_zalloc(sizeof(*l));

	if (!l)
		return NULL;
	l->config = config;
	l->counters = &service->counters[net->index];
	if (!config->loop_new)
		return l;
	l->context = config->loop_new(config->arg);
	if (l->context)
		return l;
	http_loop_free(l);
	return NULL;
}

/* The answer to a client that speaks plain HTTP at a port with TLS. */
#define HTTP_IN_CLEAR_TEXT                                                                         \
	"{\"error\":\"bad_request\",\"reason\":\"This port speaks TLS: the URL begins with "       \
	"https://.\"}\n"
#define HTTP_IN_CLEAR                                                                              \
	"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json\r\n"      \
	"\r\n" HTTP_IN_CLEAR_TEXT

const struct net_protocol http_protocol = {
	.name = "http",
	.alpn = "http/1.1",
	.in_clear = HTTP_IN_CLEAR,
	.conn_bytes = sizeof(struct conn),
	.loop_new = http_loop_new,
	.loop_free = http_loop_free,
	.opened = conn_opened,
	.input = conn_input,
	.wants_input = conn_wants_input,
	.ended = conn_ended,
	.written = conn_written,
	.timed_out = conn_timed_out,
	.stop = conn_stop,
	.lost = conn_lost,
	.closed = conn_closed,
};
