/* Streams and listeners in memory. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/conn.h"
#include "twin.h"

enum {
	TWIN_WIRE_MAX = 64 * 1024, /* the most that is under way in one direction */
	TWIN_DELAY_NS = 1000 * 1000,
	TWIN_LONG_DELAY_NS = 40 * 1000 * 1000,
	TWIN_DATA_BYTES = 1024 * 1024 * 1024,
};

/* One direction of a connection. */
struct twin_wire {
	struct twin_link *link;
	struct buf flying;  /* written, and on its way */
	struct buf arrived; /* can be read */
	size_t room;        /* the most of both together */
	bool ending;        /* nothing more will be written */
	bool ended;         /* and all of it has arrived */
	bool reset;         /* broken off: what has not been read is lost */
	bool moving;        /* an event will move bytes from `flying` to `arrived` */
};

/* A connection. It lives as long as the world, since events refer to it. */
struct twin_link {
	struct twin_link *next;
	unsigned number;
	uint16_t port;
	uint64_t delay_ns;
	struct twin_wire up;   /* from the client to the server */
	struct twin_wire down; /* and back */

	/* The server's end. */
	struct net_conn *conn; /* NULL: not opened yet, or closed */
	bool reading;
	bool delivering; /* an event will give it what has arrived */
	bool told_end;
	bool closing;
	struct str unwritten; /* of io->write() */
	bool writing;
	bool pushing; /* an event will go on with it */

	/* The client's end. */
	/* Set when anything changes: one script may send while another one receives. */
	struct event *sending;
	struct event *receiving;
	bool client_closed;
};

struct twin_client {
	struct twin_link link;
};

struct twin_acceptor {
	struct net_acceptor base;
	struct twin_acceptor *next;
	uint16_t port;
	bool accepts;
};

static struct twin_link *links;
static struct twin_acceptor *acceptors;
static unsigned link_numbers;

/* ---- Wires ---- */

static void
wire_init(struct twin_wire *w, struct twin_link *link, enum twin_way way)
{
	w->link = link;
	w->room = twin_chance(30) ? 1 + twin_draw(256) : 1 + twin_draw(TWIN_WIRE_MAX);
	if (way == TWIN_WAY_SHORT)
		w->room = TWIN_WIRE_MAX;
	buf_init(&w->flying, TWIN_DATA_BYTES);
	buf_init(&w->arrived, TWIN_DATA_BYTES);
}

static size_t
wire_space(const struct twin_wire *w)
{
	size_t used = w->flying.len + w->arrived.len;

	return used < w->room ? w->room - used : 0;
}

static uint64_t
link_delay(const struct twin_link *l)
{
	return twin_now_ns() + twin_draw(l->delay_ns);
}

static void
link_wake_client(struct twin_link *l)
{
	if (l->sending)
		event_set(l->sending);
	if (l->receiving)
		event_set(l->receiving);
}

static void link_deliver_soon(struct twin_link *l);
static void link_push_soon(struct twin_link *l);

static void
wire_moved(struct twin_wire *w)
{
	if (w == &w->link->up)
		link_deliver_soon(w->link);
	else
		link_wake_client(w->link);
}

static void wire_move_soon(struct twin_wire *w);
static void link_break(struct twin_link *l);

static void
wire_move(void *arg)
{
	struct twin_wire *w = arg;

	w->moving = false;
	if (w->reset)
		return;
	if (w->flying.len) {
		size_t n = twin_chance(50) ? w->flying.len : 1 + twin_draw(w->flying.len);

		buf_append(&w->arrived, w->flying.ptr, n);
		buf_consume(&w->flying, n);
		twin_note(w == &w->link->up ? "up" : "down", w->link->number, n);
		if (w == &w->link->down && w->link->client_closed) {
			link_break(w->link); /* bytes for an end that is gone are answered so */
			return;
		}
	}
	if (!w->flying.len && w->ending)
		w->ended = true;
	wire_moved(w);
	wire_move_soon(w);
}

static void
wire_move_soon(struct twin_wire *w)
{
	if (w->moving || w->reset || (!w->flying.len && (!w->ending || w->ended)))
		return;
	w->moving = true;
	/* The outside loop's thread: a client's end is woken there; the server's has its own event.
	 */
	twin_at(link_delay(w->link), twin_outside(), wire_move, w);
}

static void
wire_write(struct twin_wire *w, const char *data, size_t n)
{
	assert(!w->ending && n <= wire_space(w));
	buf_append(&w->flying, data, n);
	wire_move_soon(w);
}

static void
wire_end(struct twin_wire *w)
{
	w->ending = true;
	wire_move_soon(w);
}

/* What has arrived can still be read, or is lost, too: both happen. */
static void
wire_break(struct twin_wire *w)
{
	if (w->reset)
		return;
	w->reset = true;
	buf_clear(&w->flying);
	if (twin_chance(50))
		buf_clear(&w->arrived);
	wire_moved(w);
}

static void
link_break(struct twin_link *l)
{
	twin_note("break", l->number, 0);
	wire_break(&l->up);
	wire_break(&l->down);
	link_push_soon(l);
}

/* ---- The server's end ---- */

static struct twin_link *
link_of(const struct net_conn *c)
{
	return *(struct twin_link **)net_conn_stream(c);
}

static void
link_deliver(void *arg)
{
	struct twin_link *l = arg;
	struct net_conn *c = l->conn;
	struct buf *arrived = &l->up.arrived;

	l->delivering = false;
	if (!c || !l->reading || l->closing)
		return;
	if (arrived->len) {
		size_t room = net_conn_read_bytes(c);
		size_t most = arrived->len < room ? arrived->len : room;
		size_t n = twin_chance(50) ? most : 1 + twin_draw(most);

		memcpy(c->loop->read_buffer, arrived->ptr, n);
		buf_consume(arrived, n);
		link_wake_client(l);
		twin_note("read", l->number, n);
		net_conn_on_read(c, (ssize_t)n);
	} else if (l->up.reset) {
		l->reading = false;
		net_conn_on_read(c, -1);
	} else if (l->up.ended && !l->told_end) {
		l->told_end = true;
		l->reading = false;
		twin_note("end", l->number, 0);
		net_conn_on_read(c, 0);
	}
	if (l->conn)
		link_deliver_soon(l);
}

static void
link_deliver_soon(struct twin_link *l)
{
	bool something = l->up.arrived.len || l->up.reset || (l->up.ended && !l->told_end);

	if (!l->conn || !l->reading || l->delivering || l->closing || !something)
		return;
	l->delivering = true;
	twin_at(twin_now_ns(), &l->conn->loop->loop, link_deliver, l);
}

static void
link_push(void *arg)
{
	struct twin_link *l = arg;
	size_t n = wire_space(&l->down);

	l->pushing = false;
	if (!l->writing || !l->conn)
		return;
	if (l->closing || l->down.reset) {
		l->writing = false;
		net_conn_on_written(l->conn, false);
		return;
	}
	n = n < l->unwritten.len ? n : l->unwritten.len;
	if (n && twin_chance(50))
		n = 1 + twin_draw(n);
	wire_write(&l->down, l->unwritten.ptr, n);
	l->unwritten = str_skip(l->unwritten, n);
	if (l->unwritten.len) {
		if (wire_space(&l->down))
			link_push_soon(l);
		return; /* otherwise the reader makes room and comes back here */
	}
	l->writing = false;
	net_conn_on_written(l->conn, true);
}

static void
link_push_soon(struct twin_link *l)
{
	if (!l->writing || l->pushing || !l->conn)
		return;
	l->pushing = true;
	twin_at(link_delay(l), &l->conn->loop->loop, link_push, l);
}

static void
twin_drop(intptr_t handle)
{
	link_break((struct twin_link *)handle);
}

static bool
twin_open(struct net_conn *c, intptr_t handle)
{
	struct twin_link *l = (struct twin_link *)handle;

	*(struct twin_link **)net_conn_stream(c) = l;
	l->conn = c;
	twin_note("open", l->number, 0);
	return true;
}

static bool
twin_read(struct net_conn *c, bool on)
{
	struct twin_link *l = link_of(c);

	l->reading = on;
	link_deliver_soon(l);
	return true;
}

static enum net_peer
twin_probe(const struct net_conn *c)
{
	const struct twin_link *l = link_of(c);

	if (l->up.reset)
		return NET_PEER_GONE;
	return l->up.ended ? NET_PEER_ENDED : NET_PEER_THERE;
}

static ssize_t
twin_try_write(struct net_conn *c, const struct str *pieces, size_t n)
{
	struct twin_link *l = link_of(c);
	size_t room = wire_space(&l->down);
	ssize_t went = 0;

	if (l->down.reset)
		return -1;
	if (twin_chance(30))
		room = twin_draw(room + 1);
	for (size_t i = 0; i < n && room; i++) {
		size_t some = pieces[i].len < room ? pieces[i].len : room;

		wire_write(&l->down, pieces[i].ptr, some);
		room -= some;
		went += (ssize_t)some;
	}
	twin_note("write", l->number, (uint64_t)went);
	return went;
}

static bool
twin_write(struct net_conn *c, struct net_write *w, struct str data)
{
	struct twin_link *l = link_of(c);

	assert(!l->writing && w->conn == c && data.len);
	l->writing = true;
	l->unwritten = data;
	link_push_soon(l);
	return true;
}

static size_t
twin_unwritten(const struct net_conn *c)
{
	const struct twin_link *l = link_of(c);

	return l->writing ? l->unwritten.len : 0;
}

static bool
twin_end_sending(struct net_conn *c)
{
	struct twin_link *l = link_of(c);

	if (l->down.reset)
		return false;
	wire_end(&l->down);
	return true;
}

static void
link_closed(void *arg)
{
	struct twin_link *l = arg;
	struct net_conn *c = l->conn;

	if (l->writing) {
		l->writing = false;
		net_conn_on_written(c, false);
	}
	twin_note("closed", l->number, 0);
	l->conn = NULL;
	net_conn_on_closed(c);
}

static void
twin_close_stream(struct net_conn *c, bool reset)
{
	struct twin_link *l = link_of(c);

	assert(!l->closing);
	l->closing = true;
	/* As TCP does it: bytes that nobody reads any more make a reset of the end. */
	if (reset || l->up.arrived.len || l->up.flying.len)
		link_break(l);
	else if (!l->down.ending)
		wire_end(&l->down);
	twin_at(twin_now_ns(), &c->loop->loop, link_closed, l);
}

/* ---- Listeners ---- */

static enum status
twin_listen(const char *host_port, struct net_acceptor **ret, struct err *err)
{
	struct twin_acceptor *a = mem_zalloc(sizeof(*a));
	unsigned port;

	if (!a || sscanf(host_port, "twin:%u", &port) != 1) {
		mem_free(a);
		return err_set(err, STATUS_INVALID, "the twin listens on twin:PORT");
	}
	a->port = (uint16_t)port;
	a->next = acceptors;
	acceptors = a;
	*ret = &a->base;
	return STATUS_OK;
}

static uint16_t
twin_port(const struct net_acceptor *a)
{
	return ((const struct twin_acceptor *)a)->port;
}

static enum status
twin_accept(struct net_acceptor *a, struct err *err)
{
	(void)err;
	((struct twin_acceptor *)a)->accepts = true;
	return STATUS_OK;
}

static void
twin_close_acceptor(struct net_acceptor *base)
{
	struct twin_acceptor **at = &acceptors;

	while (*at != (struct twin_acceptor *)base)
		at = &(*at)->next;
	*at = (*at)->next;
	mem_free(base);
}

const struct net_io twin_io = {
	.loop = &twin_loop_ops,
	.stream_bytes = sizeof(struct twin_link *),
	.listen = twin_listen,
	.port = twin_port,
	.accept = twin_accept,
	.close_acceptor = twin_close_acceptor,
	.drop = twin_drop,
	.open = twin_open,
	.read = twin_read,
	.probe = twin_probe,
	.try_write = twin_try_write,
	.write = twin_write,
	.unwritten = twin_unwritten,
	.shutdown = twin_end_sending,
	.close = twin_close_stream,
};

/* ---- The client's end ---- */

static void
link_give(void *arg)
{
	struct twin_link *l = arg;
	char peer[NET_PEER_BYTES];

	snprintf(peer, sizeof(peer), "twin:%u", l->number);
	for (struct twin_acceptor *a = acceptors; a; a = a->next) {
		if (a->port == l->port && a->accepts) {
			mailbox_set_thread(a->base.loop->mailbox);
			a->base.arrived(&a->base, (intptr_t)l, peer);
			return;
		}
	}
	link_break(l);
}

struct twin_client *
twin_connect(uint16_t port, enum twin_way way)
{
	struct twin_client *c = mem_zalloc(sizeof(*c));
	struct twin_link *l = &c->link;

	if (!c)
		abort();
	l->number = link_numbers++;
	l->port = port;
	l->delay_ns = way == TWIN_WAY_SHORT || twin_chance(80) ? 1 + twin_draw(TWIN_DELAY_NS)
							       : 1 + twin_draw(TWIN_LONG_DELAY_NS);
	wire_init(&l->up, l, way);
	wire_init(&l->down, l, way);
	l->next = links;
	links = l;
	twin_note("connect", l->number, port);
	twin_at(link_delay(l), NULL, link_give, l);
	return c;
}

static bool
link_wait(struct event **waiting, uint64_t deadline_ns)
{
	struct event changed;
	bool set;

	assert(!*waiting);
	event_init(&changed);
	*waiting = &changed;
	set = event_wait(&changed, deadline_ns);
	*waiting = NULL;
	return set;
}

bool
twin_send(struct twin_client *c, struct str data)
{
	struct twin_link *l = &c->link;

	while (data.len) {
		size_t n = wire_space(&l->up);

		if (l->up.reset || l->closing || l->up.ending)
			return false;
		if (!n) {
			(void)link_wait(&l->sending, WAIT_FOREVER);
			continue;
		}
		n = n < data.len ? n : data.len;
		wire_write(&l->up, data.ptr, n);
		data = str_skip(data, n);
	}
	return true;
}

bool
twin_send_slowly(struct twin_client *c, struct str data, uint64_t pause_ms)
{
	while (data.len) {
		size_t n = 1 + twin_draw(data.len);

		if (!twin_send(c, str_of(data.ptr, n)))
			return false;
		data = str_skip(data, n);
		if (data.len)
			twin_sleep_ms(twin_draw(pause_ms + 1));
	}
	return true;
}

enum twin_got
twin_receive(struct twin_client *c, char *ret, size_t max, size_t *ret_n, uint64_t deadline_ns)
{
	struct twin_link *l = &c->link;
	struct buf *arrived = &l->down.arrived;

	*ret_n = 0;
	while (!arrived->len) {
		if (l->down.reset)
			return TWIN_GOT_RESET;
		if (l->down.ended)
			return TWIN_GOT_END;
		if (!link_wait(&l->receiving, deadline_ns))
			return TWIN_GOT_NOTHING;
	}
	*ret_n = arrived->len < max ? arrived->len : max;
	memcpy(ret, arrived->ptr, *ret_n);
	buf_consume(arrived, *ret_n);
	link_push_soon(l);
	return TWIN_GOT_BYTES;
}

void
twin_shutdown(struct twin_client *c)
{
	if (!c->link.up.reset && !c->link.up.ending)
		wire_end(&c->link.up);
}

void
twin_close(struct twin_client *c, bool reset)
{
	struct twin_link *l = &c->link;

	if (l->client_closed)
		return;
	l->client_closed = true;
	if (reset || l->down.arrived.len || l->down.flying.len)
		link_break(l);
	else
		twin_shutdown(c);
	/* What the server still sends finds nobody. */
	l->down.room = SIZE_MAX / 2;
	link_push_soon(l);
}

void
twin_drop_streams(void)
{
	while (links) {
		struct twin_link *l = links;

		links = l->next;
		buf_release(&l->up.flying);
		buf_release(&l->up.arrived);
		buf_release(&l->down.flying);
		buf_release(&l->down.arrived);
		mem_free((struct twin_client *)l);
	}
	link_numbers = 0;
	twin_check(!acceptors && "every listener is closed");
}
