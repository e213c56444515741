#include "net/conn.h"

#include <assert.h>

#include "base/budget_room.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "loop/wait.h"

enum {
	NET_REFUSED = 64, /* connections a loop tells that there are too many; others just close */
};

/* ---- Closing ---- */

void
net_loop_end_if_empty(struct net_loop *l)
{
	if (l->stopping && l->conn_count == 0)
		loop_stop(&l->loop);
}

/* A connection that was admitted has come to its end. */
static void
net_loop_uncount(struct net_loop *l, const char *peer)
{
	net_addresses_give(l->addresses, peer);
	atomic_fetch_sub(l->connections, 1);
}

void
net_conn_free(struct net_conn *c)
{
	struct net_loop *l = c->loop;

	assert(c->gone && c->lost && l->conn_count > 0);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	loop_detach_timer(&l->loop, &c->timer);
	l->conn_count--;
	if (c->refused)
		l->refused_count--;
	else
		net_loop_uncount(l, c->peer);
	mem_free(c);
	net_loop_end_if_empty(l);
}

void
net_conn_gone(struct net_conn *c)
{
	assert(c->lost && !c->gone);
	c->gone = true;
	/* A fiber may still be at work for the connection, and then frees it when it returns. */
	if (c->slot->protocol->closed(c))
		net_conn_free(c);
}

static void
net_conn_end(struct net_conn *c, bool reset)
{
	if (c->lost)
		return;
	/* Set before the protocol hears of it, so that nothing it does tries to send. */
	c->lost = true;
	loop_set_timer(&c->loop->loop, &c->timer, WAIT_FOREVER);
	c->slot->protocol->lost(c);
	c->slot->io->close(c, reset);
}

void
net_conn_close(struct net_conn *c)
{
	net_conn_end(c, false);
}

void
net_conn_abort(struct net_conn *c)
{
	net_conn_end(c, true);
}

static uint32_t
net_now_ms(void)
{
	return (uint32_t)(clock_mono_ns() / CLOCK_NS_PER_MS);
}

bool
net_conn_linger(struct net_conn *c)
{
	const struct net_io *io = c->slot->io;

	assert(!c->lingering);
	/* A peer that has ended sends no more, but TLS may still have its own end to write. */
	if (c->lost || !io->shutdown(c) || (c->eof && io->unwritten(c) == 0)) {
		net_conn_close(c);
		return false;
	}
	c->lingering = true;
	c->linger_until_ms = net_now_ms() + NET_LINGER_MS;
	loop_set_timer(&c->loop->loop, &c->timer, clock_after_ms(NET_LINGER_IDLE_MS));
	net_conn_update_reading(c);
	return true;
}

/* ---- Timer ---- */

void
net_conn_set_timer(struct net_conn *c, uint64_t at_ns)
{
	assert(!c->lingering || at_ns == WAIT_FOREVER);
	if (!c->lost)
		loop_set_timer(&c->loop->loop, &c->timer, at_ns);
}

static void
net_conn_timer_fired(struct timer *timer)
{
	struct net_conn *c = (struct net_conn *)((char *)timer - offsetof(struct net_conn, timer));

	assert(!c->lost);
	if (c->lingering)
		net_conn_close(c);
	else
		c->slot->protocol->timed_out(c);
}

/* ---- Bytes ---- */

void
net_conn_update_reading(struct net_conn *c)
{
	bool want;

	if (c->lost)
		return;
	want = !c->eof && (c->lingering || c->slot->protocol->wants_input(c));
	if (want == c->reading)
		return;
	c->reading = want;
	if (!c->slot->io->read(c, want))
		net_conn_abort(c);
}

static void
net_conn_linger_on(struct net_conn *c)
{
	/* Right also where the bits begin anew: the difference is small. */
	int32_t left_ms = (int32_t)(c->linger_until_ms - net_now_ms());

	if (left_ms > NET_LINGER_IDLE_MS)
		left_ms = NET_LINGER_IDLE_MS;
	loop_set_timer(&c->loop->loop, &c->timer,
		       clock_after_ms(left_ms > 0 ? (uint64_t)left_ms : 0));
}

METRIC_COUNTER(received, "frond_net_received_bytes_total", METRIC_BYTES,
	       "Bytes that clients have sent.");

void
net_conn_deliver(struct net_conn *c, ssize_t n)
{
	assert(!c->lost && c->reading && n <= NET_READ_BYTES);
	if (n > 0)
		metric_add(&received, (uint64_t)n);
	if (n > 0 && c->lingering) {
		net_conn_linger_on(c);
	} else if (n > 0) {
		c->slot->protocol->input(c, str_of(c->loop->read_buffer, (size_t)n));
		net_conn_update_reading(c);
	} else if (n == 0) {
		c->eof = true;
		c->reading = false;
		if (c->lingering)
			net_conn_close(c);
		else
			c->slot->protocol->ended(c);
	} else {
		c->reading = false;
		net_conn_abort(c);
	}
}

void
net_conn_wrote(struct net_conn *c, bool ok)
{
	if (!ok && !c->lost)
		net_conn_abort(c);
	/* Also of a lost connection: the write's memory is free again. */
	c->slot->protocol->written(c);
}

/* ---- Opening ---- */

static size_t
net_aligned(size_t bytes)
{
	size_t align = _Alignof(max_align_t);

	return (bytes + align - 1) / align * align;
}

static size_t
net_stream_offset(const struct net_protocol *protocol)
{
	return net_aligned(protocol->conn_bytes);
}

static size_t
net_upper_offset(const struct net_loop *l, const struct net_slot *slot)
{
	return net_stream_offset(slot->protocol) + net_aligned(l->io->stream_bytes);
}

static void *
net_conn_at(const struct net_conn *c, size_t offset)
{
	union {
		const struct net_conn *in;
		char *out;
	} at = { .in = c };

	return at.out + offset;
}

void *
net_conn_stream(const struct net_conn *c)
{
	return net_conn_at(c, net_stream_offset(c->slot->protocol));
}

void *
net_conn_upper_stream(const struct net_conn *c)
{
	assert(c->slot->io != c->loop->io);
	return net_conn_at(c, net_upper_offset(c->loop, c->slot));
}

/* The size of a connection with its stream's state. */
static size_t
net_conn_bytes(const struct net_loop *l, const struct net_slot *slot)
{
	if (slot->io == l->io)
		return net_stream_offset(slot->protocol) + l->io->stream_bytes;
	return net_upper_offset(l, slot) + slot->io->stream_bytes;
}

/* ---- Called by the loop's streams ---- */

size_t
net_conn_read_bytes(const struct net_conn *c)
{
	const struct budget *b = c->loop->memory;

	if (c->slot->io->on_read)
		return NET_READ_BYTES - NET_UPPER_BYTES;
	/*
	 * What comes is kept until it is served. Thousands of connections may send at the same
	 * moment, so the room for it shrinks before the memory is short.
	 */
	if (!budget_is_half_held(b))
		return NET_READ_BYTES;
	return budget_portion(b, NET_READ_BYTES, NET_READ_LEAST_BYTES);
}

void
net_conn_on_read(struct net_conn *c, ssize_t n)
{
	if (c->slot->io->on_read)
		c->slot->io->on_read(c, n);
	else
		net_conn_deliver(c, n);
}

void
net_conn_on_written(struct net_conn *c, bool ok)
{
	if (c->slot->io->on_written)
		c->slot->io->on_written(c, ok);
	else
		net_conn_wrote(c, ok);
}

void
net_conn_on_closed(struct net_conn *c)
{
	if (c->slot->io->on_closed)
		c->slot->io->on_closed(c);
	else
		net_conn_gone(c);
}

static void
net_conn_link(struct net_conn *c)
{
	struct net_loop *l = c->loop;

	c->next = l->conns;
	c->link = &l->conns;
	if (c->next)
		c->next->link = &c->next;
	l->conns = c;
	l->conn_count++;
	l->refused_count += c->refused != NET_ADMITTED;
}

void
net_conn_open(struct net_loop *l, const struct net_slot *slot, intptr_t handle, const char *peer,
	      enum net_refusal refused)
{
	struct net_conn *c = NULL;

	if (!refused || l->refused_count < NET_REFUSED)
		c = mem_zalloc(net_conn_bytes(l, slot));
	if (!c || loop_attach_timer(&l->loop, &c->timer, net_conn_timer_fired) != STATUS_OK) {
		mem_free(c);
		l->io->drop(handle);
		if (!refused)
			net_loop_uncount(l, peer);
		return;
	}
	c->loop = l;
	c->slot = slot;
	c->refused = (uint8_t)refused;
	memcpy(c->peer, peer, sizeof(c->peer));
	net_conn_link(c);
	if (!slot->io->open(c, handle)) {
		net_conn_close(c);
		return;
	}
	slot->protocol->opened(c);
	if (l->stopping && !c->refused)
		net_conn_close(c);
	net_conn_update_reading(c);
}

/* ---- How busy the loop is ---- */

void
net_conn_note_request(struct net_conn *c)
{
	struct net_loop *l = c->loop;

	if (c == l->latest)
		return;
	l->latest = c;
	l->latest_since_ns = clock_mono_ns();
}

bool
net_loop_is_alone(const struct loop *loop)
{
	const struct net_loop *l = (const struct net_loop *)loop;

	return l->latest && clock_mono_ns() - l->latest_since_ns >= NET_ALONE_MS * CLOCK_NS_PER_MS;
}
