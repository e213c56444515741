/*
 * A door that reads and writes a connection from top to bottom, on a fiber.
 *
 * The fiber begins when bytes have come, serves what they ask for, and returns; a connection that
 * nobody asks anything holds no fiber and no buffers. A door that keeps something with each
 * connection does not return, and rests between two requests (net_stream_rest()). In between the
 * door reads and writes as it likes: reading parks until bytes come, writing parks while the peer
 * is behind. Everything here belongs to the connection's loop and is used on the fiber alone.
 */
#ifndef FROND_NET_STREAM_H
#define FROND_NET_STREAM_H

#include "net/conn.h"
#include "net/patience.h"

struct arena;
struct buf;
struct event;
struct net_session;
struct net_stream;

enum {
	NET_STREAM_INPUT_BYTES = 64 * 1024,
	NET_STREAM_OUTPUT_BYTES = 64 * 1024,
	NET_STREAM_PATIENCE_MS = 100, /* of a rest, before memory is given back */
	/*
	 * All memory of a connection whose peer nobody knows: its request, as it comes and
	 * unpacked, and the answer. A buffer grows by doubling, so a request may have a quarter.
	 */
	NET_STRANGER_BYTES = 256 * 1024,
};

/* Zero in a number means its default, above. The options of net_stream_protocol. */
struct net_stream_options {
	/*
	 * Serves what the connection asks, and returns. True: it goes on, and is called again for
	 * bytes that were not taken, or when more come. False: everything that was written is sent,
	 * and the connection closes.
	 */
	bool (*serve)(struct net_stream *s, void *arg);
	void *arg;
	size_t input_bytes;  /* that came and were not taken; more stay with the peer */
	size_t output_bytes; /* unsent output before a write parks */
	struct str refusal;  /* what a connection is told when there are too many */
};

extern const struct net_protocol net_stream_protocol;

/*
 * Waits until at least `n` bytes have come that were not taken, and gives all of them; they stay
 * valid until the next peek. STATUS_NOT_FOUND: the peer has ended, and fewer are there (`ret` has
 * them). STATUS_LIMIT: `n` is more than `input_bytes`. STATUS_TIMEOUT: the peer
 * stalls. STATUS_CANCELLED: the connection is lost.
 */
MUST_USE enum status net_stream_peek(struct net_stream *s, size_t n, struct str *ret);

/*
 * Where a request begins: gives what has come, as net_stream_peek() of 0 bytes, which may be
 * nothing yet. STATUS_CANCELLED: no further request is served, because the process stops, or since
 * the peer has ended and all that it has sent was served. So a stop waits for the request under
 * way, however many have come together with it and still come.
 */
MUST_USE enum status net_stream_next(struct net_stream *s, struct str *ret);

/* Takes `n` of the bytes that net_stream_peek() gave. */
void net_stream_take(struct net_stream *s, size_t n);

/*
 * Reads the next `n` bytes, a message whose length is known, behind what `ret` has, which counts in
 * the part of the connection's arena. If it costs much, with what its door makes of it, `cost`
 * bytes are set aside before it is read, for which it waits (net/memory.h); budget_settle() ends
 * that. STATUS_LIMIT: there is no memory for it, as `refused` or `exceeded` of the part says; its
 * bytes were taken and dropped, and the connection may go on. Otherwise fails as net_stream_peek().
 */
MUST_USE enum status net_stream_read(struct net_stream *s, size_t n, size_t cost, struct buf *ret);

/*
 * Writes; parks while more than `output_bytes` are unsent. What is small is gathered until a peek
 * has to wait, net_stream_flush(), or until serve() returns. STATUS_CANCELLED: the connection is
 * lost.
 */
MUST_USE enum status net_stream_write(struct net_stream *s, struct str data);
void net_stream_flush(struct net_stream *s);

/*
 * From now on the connection is lost when a write or a peek waits for the peer and `patience` says
 * to give up. At first it never does. What `patience` refers to is borrowed until the next such
 * call, or until the connection has ended.
 */
void net_stream_give_up_on(struct net_stream *s, struct net_patience patience);

/* What a rest of a door's fiber is (net_stream_rest()). */
enum net_rest {
	/* Between two requests: bytes that come end the rest, and begin the next request. */
	NET_REST_IDLE,
	/* A request is under way, and goes on after the rest. Bytes that come end the rest. */
	NET_REST_READING,
	/* The same, but bytes that come are left for later. */
	NET_REST_WAITING,
};

/*
 * For a door whose fiber stays with its connection: sends what was written, and waits for as long
 * as the peer likes, or until the deadline. Returns when the peer has ended or is lost, when the
 * process stops, when `other` is set (it may be NULL), and, unless the rest is NET_REST_WAITING,
 * when bytes have come that net_stream_peek() has not given; now and then for no reason. Gives
 * memory back that is not in use meanwhile. `other` is not referred to any more afterwards. While
 * it rests, wait_is_alone() of other connections takes it for one that asks for nothing.
 *
 * A connection that a rest leaves idle does not count as a request at work. Otherwise thousands
 * of clients that are told something at once, and ask nothing, would keep out those who ask.
 */
void net_stream_rest(struct net_stream *s, enum net_rest rest, struct event *other,
		     uint64_t deadline_ns);

/*
 * Says whether something is kept that the peer has begun and not ended, such as half of a request,
 * by the door or in what it has not taken. A peer that rests then is waited for, but not while
 * others need the memory (NET_UNWELCOME_MS, BUDGET_STALL_MS): then net_stream_rest() returns, or
 * net_stream_peek() fails, and net_stream_is_unwanted() is true. The door tells the peer so, in its
 * protocol, and ends.
 */
void net_stream_keep(struct net_stream *s, bool keeps);
bool net_stream_is_unwanted(const struct net_stream *s);

/* True while net_stream_peek() would give bytes that it has not given yet. */
bool net_stream_has_input(const struct net_stream *s);

/*
 * True once the connection is lost, by the peer or because a stop has had its time: nothing more
 * can be sent. On the fiber.
 */
bool net_stream_is_lost(const struct net_stream *s);

/*
 * Says whether the peer is a stranger, which it is until somebody has logged in. A stranger's
 * connection may use no more than NET_STRANGER_BYTES of memory. Only serve/visit.c calls this: when
 * somebody logs in, and when that person is gone.
 */
void net_stream_set_stranger(struct net_stream *s, bool is_stranger);

/* "127.0.0.1:40312". */
struct str net_stream_peer(const struct net_stream *s);

/* True if the connection is encrypted. */
bool net_stream_is_secure(const struct net_stream *s);

/* The address at which the peer has reached this process, as text; empty: not known. */
void net_stream_local(const struct net_stream *s, char ret[static NET_PEER_BYTES]);

/* For turns of memory (net/memory.h). */
struct net_session *net_stream_session(struct net_stream *s);

/* The fiber's own memory, cleared when serve() returns. */
struct arena *net_stream_arena(struct net_stream *s);

/* Set when the connection is lost or the peer sends nothing more. One waits at a time. */
struct event *net_stream_closed_event(struct net_stream *s);

/* Set when the process is stopping: what goes on for ever should come to an end. */
struct event *net_stream_stopping_event(struct net_stream *s);

/* True if one of the two is set: the peer is not kept waiting for others (net/session.h). */
bool net_stream_is_leaving(const struct net_stream *s);

#endif
