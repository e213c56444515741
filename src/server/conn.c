#include "server/conn.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/server_int.h"

_Static_assert(sizeof(struct conn) <= 1024, "thousands of idle connections have to be cheap");

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

static void
set_timer(struct conn *c, uint64_t at_ns)
{
	loop_set_timer(c->loop, &c->timer, at_ns);
}

static void
set_state(struct conn *c, enum conn_state state)
{
	const struct server_config *config = c->loop->config;

	if (!(followers[c->state] & 1U << state))
		abort(); /* going on would serve one client another's bytes */
	c->state = state;
	switch (state) {
	case CONN_STATE_IDLE:
		set_timer(c, clock_after_ms(config->idle_timeout_ms));
		break;
	case CONN_STATE_HEAD:
		set_timer(c, clock_after_ms(config->header_timeout_ms));
		break;
	case CONN_STATE_FINISH:
		set_timer(c, clock_after_ms(config->body_timeout_ms));
		break;
	case CONN_STATE_LINGER:
		c->linger_until_ns = clock_after_ms(CONN_LINGER_MS);
		set_timer(c, clock_after_ms(CONN_LINGER_IDLE_MS));
		break;
	case CONN_STATE_RUN: /* the handler's waits have deadlines of their own */
	case CONN_STATE_CLOSING:
	case CONN_STATE_COUNT:
		set_timer(c, WAIT_FOREVER);
		break;
	}
}

/* ---- Closing ---- */

static void
conn_free(struct conn *c)
{
	struct loop *l = c->loop;

	assert(c->closed && !c->x);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	timers_detach(&l->timers, &c->timer);
	l->conn_count--;
	if (c->refused)
		l->refused_count--;
	else
		server_conn_closed(l->server);
	buf_release(&c->pending);
	mem_free(c);
	loop_conn_gone(l);
}

static void
on_closed(uv_handle_t *handle)
{
	struct conn *c = handle->data;

	c->closed = true;
	/* A handler that is still at it frees the connection when it returns. */
	if (c->x && c->x->task)
		return;
	if (c->x)
		exchange_put(c->x);
	c->x = NULL;
	conn_free(c);
}

static void
tell_handler(struct conn *c)
{
	c->lost = true;
	c->keep = false;
	if (!c->x)
		return;
	if (c->x->task || c->x->started)
		atomic_fetch_add_explicit(&c->loop->aborted, 1, memory_order_relaxed);
	event_set(&c->x->closed);
	exchange_progress(c->x);
}

void
conn_close(struct conn *c)
{
	if (c->state == CONN_STATE_CLOSING)
		return;
	set_state(c, CONN_STATE_CLOSING);
	tell_handler(c);
	uv_close((uv_handle_t *)&c->tcp, on_closed);
}

void
conn_abort(struct conn *c)
{
	if (c->state == CONN_STATE_CLOSING)
		return;
	set_state(c, CONN_STATE_CLOSING);
	tell_handler(c);
	if (uv_tcp_close_reset(&c->tcp, on_closed) != 0)
		uv_close((uv_handle_t *)&c->tcp, on_closed);
}

/* Everything is sent, and the client may still be sending: closing now could destroy the answer. */
static void
linger(struct conn *c)
{
	int fd;

	buf_release(&c->pending);
	if (c->eof || uv_fileno((uv_handle_t *)&c->tcp, &fd) != 0 || shutdown(fd, SHUT_WR) != 0) {
		conn_close(c);
		return;
	}
	set_state(c, CONN_STATE_LINGER);
	conn_update_reading(c);
}

void
conn_stop(struct conn *c)
{
	if (c->state == CONN_STATE_IDLE || c->state == CONN_STATE_LINGER)
		conn_close(c);
	else if (c->x)
		event_set(&c->x->stopping);
}

/* ---- Requests ---- */

static void
start_exchange(struct conn *c)
{
	struct http_exchange *x = exchange_take(c);

	if (!x) {
		conn_close(c);
		return;
	}
	c->x = x;
	if (c->loop->stopping)
		event_set(&x->stopping);
	set_state(c, CONN_STATE_HEAD);
}

static void
refuse_request(struct conn *c, int status, const char *reason)
{
	atomic_fetch_add_explicit(&c->loop->malformed, 1, memory_order_relaxed);
	set_state(c, CONN_STATE_FINISH);
	exchange_refuse(c->x, status, reason);
	conn_settle(c);
}

/* What the parser's outcome means for the exchange. */
static void
after_parse(struct conn *c, enum parser_result result)
{
	struct http_exchange *x = c->x;

	if (c->state == CONN_STATE_HEAD) {
		if (result == PARSER_RESULT_BAD) {
			refuse_request(c, x->parser.refusal, x->parser.reason);
		} else if (x->parser.head_done) {
			c->keep = x->parser.keep_alive && !c->loop->stopping;
			set_state(c, CONN_STATE_RUN);
			if (!exchange_run(x))
				refuse_request(c, 503, "Out of memory.");
		}
		return;
	}
	if (result == PARSER_RESULT_BAD) {
		atomic_fetch_add_explicit(&c->loop->malformed, 1, memory_order_relaxed);
		c->keep = false;
	}
	exchange_progress(x);
	if (c->state == CONN_STATE_FINISH) {
		set_timer(c, clock_after_ms(c->loop->config->body_timeout_ms));
		if (x->body_taken > CONN_SKIP_BYTES)
			c->keep = false;
		conn_settle(c);
	}
}

/* Parses as far as requests can be served now. Returns how much was used. */
static size_t
conn_feed(struct conn *c, struct str data)
{
	size_t used = 0;

	c->feeding = true;
	while (used < data.len) {
		enum parser_result result;
		size_t n;

		if (c->state == CONN_STATE_IDLE)
			start_exchange(c);
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
		after_parse(c, result);
	}
	c->feeding = false;
	return used;
}

static void
conn_input(struct conn *c, struct str data)
{
	size_t used = 0;

	if (c->pending.len == 0)
		used = conn_feed(c, data);
	if (c->state == CONN_STATE_LINGER || c->state == CONN_STATE_CLOSING)
		return;
	buf_append_str(&c->pending, str_skip(data, used));
	if (buf_status(&c->pending) != STATUS_OK)
		conn_abort(c);
}

/* Goes on with what came while the last request was served. */
static void
conn_continue(struct conn *c)
{
	if (c->pending.len) {
		struct buf pending = c->pending;
		size_t used;

		buf_init(&c->pending, CONN_PENDING_BYTES + LOOP_READ_BYTES);
		used = conn_feed(c, buf_str(&pending));
		if (c->state == CONN_STATE_LINGER || c->state == CONN_STATE_CLOSING ||
		    used == pending.len) {
			buf_release(&pending);
		} else {
			buf_consume(&pending, used);
			c->pending = pending;
		}
	}
	if (c->eof && (c->state == CONN_STATE_IDLE || c->state == CONN_STATE_HEAD))
		conn_close(c);
	conn_update_reading(c);
}

void
conn_settle(struct conn *c)
{
	struct http_exchange *x = c->x;

	if (c->state == CONN_STATE_CLOSING) {
		/* The handler has returned on a lost connection. */
		if (c->closed && x && !x->task) {
			c->x = NULL;
			exchange_put(x);
			conn_free(c);
		}
		return;
	}
	assert(c->state == CONN_STATE_FINISH);
	if (exchange_unsent(x) > 0)
		return;
	if (c->keep && !x->parser.complete) {
		conn_update_reading(c);
		return;
	}
	c->x = NULL;
	if (!c->keep || c->loop->stopping) {
		bool more = !x->parser.complete || c->pending.len || c->feeding;

		exchange_put(x);
		if (more)
			linger(c);
		else
			conn_close(c);
		return;
	}
	exchange_put(x);
	set_state(c, CONN_STATE_IDLE);
	if (!c->feeding)
		conn_continue(c);
}

void
conn_finish(struct conn *c)
{
	if (c->state != CONN_STATE_CLOSING)
		set_state(c, CONN_STATE_FINISH);
	conn_settle(c);
}

/* ---- The socket ---- */

static void
on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
	struct conn *c = handle->data;

	(void)size;
	*ret = uv_buf_init(c->loop->read_buffer, LOOP_READ_BYTES);
}

static void
conn_eof(struct conn *c)
{
	c->eof = true;
	c->reading = false;
	if (c->state == CONN_STATE_IDLE || c->state == CONN_STATE_HEAD ||
	    c->state == CONN_STATE_LINGER) {
		conn_close(c);
	} else if (c->x && !c->x->parser.complete) {
		if (c->state == CONN_STATE_RUN && !c->x->parser.refusal) {
			conn_abort(c);
			return;
		}
		c->keep = false;
		event_set(&c->x->closed);
		if (c->state == CONN_STATE_FINISH)
			conn_settle(c);
	} else if (c->x) {
		/* It may have shut down its side only, and still wait for the answer. */
		event_set(&c->x->closed);
	}
}

static void
on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct conn *c = stream->data;

	if (n > 0 && c->state == CONN_STATE_LINGER) {
		uint64_t at_ns = clock_after_ms(CONN_LINGER_IDLE_MS);

		set_timer(c, at_ns < c->linger_until_ns ? at_ns : c->linger_until_ns);
	} else if (n > 0) {
		conn_input(c, str_of(buf->base, (size_t)n));
		conn_update_reading(c);
	} else if (n == UV_EOF) {
		conn_eof(c);
	} else if (n < 0) {
		c->reading = false;
		conn_abort(c);
	}
}

static bool
wants_bytes(const struct conn *c)
{
	if (c->eof || c->lost || c->state == CONN_STATE_CLOSING)
		return false;
	if (!c->x || c->state == CONN_STATE_LINGER)
		return true;
	if (c->x->parser.complete)
		return c->pending.len < CONN_PENDING_BYTES;
	return c->x->skipping || c->x->body_in.len < CONN_BODY_BYTES;
}

void
conn_update_reading(struct conn *c)
{
	bool want = wants_bytes(c);

	if (want == c->reading || c->state == CONN_STATE_CLOSING)
		return;
	c->reading = want;
	if (!want)
		uv_read_stop((uv_stream_t *)&c->tcp);
	else if (uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) != 0)
		conn_abort(c);
}

static void
on_timer(struct timer *timer)
{
	struct conn *c = (struct conn *)((char *)timer - offsetof(struct conn, timer));
	size_t left;

	switch (c->state) {
	case CONN_STATE_HEAD:
		refuse_request(c, 408, "The request's headers did not arrive in time.");
		break;
	case CONN_STATE_FINISH:
		/* One large write reports nothing before its end: look whether it moves. */
		left = exchange_unsent(c->x);
		if (left && left != c->x->flying_left) {
			c->x->flying_left = left;
			set_timer(c, clock_after_ms(c->loop->config->body_timeout_ms));
			break;
		}
		conn_abort(c);
		break;
	case CONN_STATE_IDLE:
	case CONN_STATE_LINGER:
		conn_close(c);
		break;
	case CONN_STATE_RUN:
	case CONN_STATE_CLOSING:
	case CONN_STATE_COUNT:
		break;
	}
}

static void
refuse_connection(struct conn *c)
{
	start_exchange(c);
	if (c->state != CONN_STATE_HEAD)
		return;
	set_state(c, CONN_STATE_FINISH);
	exchange_refuse(c->x, 503, "Too many connections.");
	conn_settle(c);
}

static void
drop_arrival(struct loop *l, const struct arrival *a)
{
	close(a->fd);
	if (!a->refuse)
		server_conn_closed(l->server);
}

void
conn_open(struct loop *l, const struct arrival *a)
{
	struct conn *c;

	c = a->refuse && l->refused_count >= CONN_REFUSED ? NULL : mem_zalloc(sizeof(*c));
	if (!c || timers_attach(&l->timers, &c->timer, on_timer) != STATUS_OK) {
		mem_free(c);
		drop_arrival(l, a);
		return;
	}
	c->loop = l;
	c->refused = a->refuse;
	l->refused_count += a->refuse;
	memcpy(c->peer, a->peer, sizeof(c->peer));
	buf_init(&c->pending, CONN_PENDING_BYTES + LOOP_READ_BYTES);
	c->next = l->conns;
	c->link = &l->conns;
	if (c->next)
		c->next->link = &c->next;
	l->conns = c;
	l->conn_count++;

	uv_tcp_init(&l->uv, &c->tcp);
	c->tcp.data = c;
	set_timer(c, clock_after_ms(l->config->idle_timeout_ms));
	if (uv_tcp_open(&c->tcp, a->fd) != 0) {
		close(a->fd);
		conn_close(c);
		return;
	}
	uv_tcp_nodelay(&c->tcp, 1);
	if (c->refused)
		refuse_connection(c);
	else if (l->stopping)
		conn_close(c);
	conn_update_reading(c);
}

struct conn *
conn_next(const struct conn *c)
{
	return c->next;
}
