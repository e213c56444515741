/*
 * Connections: byte streams that belong to one loop for life. This is the level of callbacks, for
 * protocols that read bytes as they come, in the loop's own buffer, and for which an idle
 * connection must be cheap. net/session.h adds a fiber that writes with backpressure, and
 * net/stream.h a door that reads and writes from top to bottom.
 *
 * Everything here is called on the connection's loop.
 */
#ifndef FROND_NET_CONN_H
#define FROND_NET_CONN_H

#include "base/budget.h"
#include "base/process.h"
#include "loop/loop.h"
#include "net/addresses.h"
#include "net/io.h"

enum {
	NET_READ_BYTES = 64 * 1024,      /* the read buffer that a loop's connections share */
	NET_READ_LEAST_BYTES = 4 * 1024, /* at once, when memory is short */
	NET_UPPER_BYTES = 18 * 1024,     /* the part of it for streams on top of others */
	NET_LINGER_MS = 10 * 1000,       /* for a client to read the last it was sent, at most, */
	NET_LINGER_IDLE_MS = 2 * 1000,   /* and without sending anything more */
	NET_ALONE_MS = 100, /* after this time with one connection it is the only one */
	NET_SERVICES = 16,  /* of a process: protocols with their options */
};

/* A peer that is silent for so many seconds is probed. A macro, because CONFIG shows it as text. */
#define NET_KEEPALIVE_S 300

struct net_conn;
struct net_loop;
struct net_tls;
struct net_tls_loop;

/*
 * How a kind of connection behaves. A listener names one; several, with different options, live in
 * one process.
 *
 * A connection's callbacks come in this order: opened; then input, written, stop and the timer's
 * in any order; ended at most once; lost at most once, after which only closed follows. None is
 * called from inside another one for the same connection, but for lost and written, which
 * net_conn_close(), net_conn_abort() and a write may call before they return.
 */
struct net_protocol {
	const char *name;  /* in logs */
	size_t conn_bytes; /* of its struct for a connection, which begins with a struct net_conn */
	/* The protocol's name in the ALPN extension of TLS; NULL: it has none. */
	const char *alpn;
	/* Sent unencrypted to a peer that does not speak TLS where TLS is required. May be NULL. */
	const char *in_clear;

	/*
	 * A context for each loop, made and freed on its thread. NULL from loop_new(): it could not
	 * be made, and the process does not start. loop_free() is not called while a connection of
	 * the loop still refers to the context.
	 */
	void *(*loop_new)(struct net_loop *l, void *options);
	void (*loop_free)(void *context);

	/*
	 * A connection is there, with zeroed memory behind the struct net_conn. If `c->refused` is
	 * set there are too many: the protocol may say so, and closes it.
	 */
	void (*opened)(struct net_conn *c);
	/* Bytes came. They are in the loop's buffer, and valid during the call. */
	void (*input)(struct net_conn *c, struct str data);
	/* True while more bytes are wanted; asked by net_conn_update_reading(). */
	bool (*wants_input)(const struct net_conn *c);
	/* The peer sends nothing more. It may still read. */
	void (*ended)(struct net_conn *c);
	/* A write has come to its end. */
	void (*written)(struct net_conn *c);
	/* Its timer has fired. */
	void (*timed_out)(struct net_conn *c);
	/* The process is stopping: close what is idle, let the rest come to an end. */
	void (*stop)(struct net_conn *c);
	/* Nothing can be sent any more: wake what works for the connection. */
	void (*lost)(struct net_conn *c);
	/*
	 * The stream is gone. True if nothing refers to the connection any more: it is freed.
	 * Otherwise the protocol calls net_conn_free() when its work has ended.
	 */
	bool (*closed)(struct net_conn *c);
};

/* A service as one loop has it. */
struct net_slot {
	const struct net_protocol *protocol;
	void *context;           /* of loop_new() */
	const struct net_io *io; /* the loop's streams, or TLS on top of them */
	struct net_tls *tls;     /* NULL: its connections are not encrypted */
};

/* One loop that serves connections. */
struct net_loop {
	struct loop loop; /* first: the loop's hooks are given this */
	unsigned index;
	const struct net_io *io;  /* the implementation that accepts connections */
	struct net_tls_loop *tls; /* shared by its connections with TLS; NULL: there are none */
	struct budget *memory;    /* of all connections of the process */
	_Atomic uint64_t *connections;   /* of the process, those that were not refused */
	size_t max_connections;          /* the limit of those, which a refusal names */
	struct net_addresses *addresses; /* how many of them each address has */
	uint64_t min_rate_bytes;         /* of a peer that is waited for, in a second, */
	uint64_t rate_window_ms;         /* on average over so much waiting */
	uint64_t idle_timeout_ms;        /* a connection without a request */
	uint64_t stall_timeout_ms;       /* between two stretches of a request, or of output */
	uint64_t request_steps;          /* the limit of one unit of a session's work */
	uint64_t memory_wait_ms;         /* of a request, for a part of that memory */
	struct net_slot slots[NET_SERVICES];
	char *read_buffer; /* NET_READ_BYTES that all its connections read into */

	struct net_conn *conns; /* all that are open */
	size_t conn_count;
	size_t refused_count; /* of them, those that are only told that there are too many */
	const struct net_conn *latest; /* whose requests have been the latest ones... */
	uint64_t latest_since_ns;      /* ...since then; only for comparing, it may be gone */

	bool stopping;       /* connections come to their end; the last one stops the loop */
	unsigned stops_seen; /* of net_host_stop() */
	struct timer drain;
	_Atomic uint64_t accepted;
	_Atomic uint64_t refused;
	struct process_thread cpu; /* of the loop's thread, while it runs */
};

struct net_conn {
	struct net_loop *loop;
	const struct net_slot *slot;
	struct net_conn *next;
	struct net_conn **link;
	struct timer timer;       /* the protocol's until the connection lingers or is lost */
	uint32_t linger_until_ms; /* the last bits of that moment: there are many connections */
	bool reading;             /* the stream delivers what comes */
	bool eof;                 /* the peer sends nothing more */
	bool lost;                /* nothing can be sent any more; the stream is being closed */
	bool gone;                /* the stream is closed */
	bool lingering;           /* everything is sent; what still comes is dropped */
	uint8_t refused;          /* an enum net_refusal: over a limit of connections */
	char peer[NET_PEER_BYTES];
};

/* ---- For protocols ---- */

/* Asks the protocol whether it wants more bytes, and reads from the stream if, and only if, so. */
void net_conn_update_reading(struct net_conn *c);

/* At that moment timed_out() is called; WAIT_FOREVER: not. */
void net_conn_set_timer(struct net_conn *c, uint64_t at_ns);

/* Closes the stream without more ado. lost() is called first. */
void net_conn_close(struct net_conn *c);

/* Breaks it off, so that the peer cannot take what it got for everything. As above. */
void net_conn_abort(struct net_conn *c);

/*
 * Everything is sent, and the peer may still be sending: closing now would reset the stream and
 * could destroy what the peer has not read. Ends the sending direction, drops what comes, and
 * closes when the peer has ended, too, or after NET_LINGER_MS. Where the peer has ended already,
 * it only waits until the end of TLS is written. False if the stream is closed at once.
 */
bool net_conn_linger(struct net_conn *c);

/* After closed() has returned false: nothing refers to the connection any more. */
void net_conn_free(struct net_conn *c);

/* A request of that connection begins: what net_loop_is_alone() goes by. */
void net_conn_note_request(struct net_conn *c);

/* ---- For host.c ---- */

/*
 * Makes a connection of a stream, which is closed if that fails. `refused`: it is one too many, and
 * is not counted among `connections`.
 */
void net_conn_open(struct net_loop *l, const struct net_slot *slot, intptr_t handle,
		   const char *peer, enum net_refusal refused);

/* True if the connection is encrypted. */
static inline bool
net_conn_is_secure(const struct net_conn *c)
{
	return c->slot->tls;
}

/* Hook of a loop: all requests of the last NET_ALONE_MS have been one connection's. */
bool net_loop_is_alone(const struct loop *l);

/* Ends the loop if it is stopping and no connection is left. */
void net_loop_end_if_empty(struct net_loop *l);

/* ---- For implementations of struct net_io ---- */

/* The state that the loop's stream implementation keeps in the connection. */
void *net_conn_stream(const struct net_conn *c);
/* How many bytes may be read at once. */
size_t net_conn_read_bytes(const struct net_conn *c);
/* `n` bytes have come into the loop's read buffer; 0: the peer sends no more; negative: broken. */
void net_conn_on_read(struct net_conn *c, ssize_t n);
void net_conn_on_written(struct net_conn *c, bool ok);
void net_conn_on_closed(struct net_conn *c);

/* ---- For a stream implementation on top of another ---- */

/* The state of the upper implementation, behind that of the lower one. */
void *net_conn_upper_stream(const struct net_conn *c);
/* Pass events up to the protocol; same meaning as the three functions above. */
void net_conn_deliver(struct net_conn *c, ssize_t n);
void net_conn_wrote(struct net_conn *c, bool ok);
void net_conn_gone(struct net_conn *c);

#endif
