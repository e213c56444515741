/*
 * A connection and the exchange on it. See README.md for the states. Everything here runs on the
 * connection's loop; the handler on its fiber calls in through http.h.
 */
#ifndef FROND_SERVER_CONN_H
#define FROND_SERVER_CONN_H

#include <uv.h>

#include "base/budget.h"
#include "server/loop.h"
#include "server/parser.h"

enum {
	CONN_PENDING_BYTES = 64 * 1024, /* of pipelined requests kept while one is served */
	CONN_BODY_BYTES = 128 * 1024,   /* of a body kept for a handler that is slower */
	CONN_SKIP_BYTES = 1024 * 1024,  /* of an unread body skipped to keep a connection */
	CONN_FLUSH_BYTES = 16 * 1024,   /* of an answer gathered before it is sent */
	CONN_CHUNK_BYTES = 32 * 1024, /* the largest chunk of an answer; its size has four digits */
	CONN_SPARE_BYTES = 64 * 1024, /* larger buffers are not kept for the next exchange */
	CONN_LINGER_MS = 10 * 1000,   /* for a client to read why it was refused, at most, */
	CONN_LINGER_IDLE_MS = 2 * 1000, /* and without sending anything more */
	CONN_REFUSED = 64,     /* connections per loop that are being told 503; others just close */
	EXCHANGE_HEADERS = 64, /* of an answer */
};

enum conn_state {
	CONN_STATE_IDLE,    /* no byte of a request */
	CONN_STATE_HEAD,    /* some bytes of one; an exchange exists */
	CONN_STATE_RUN,     /* its handler runs or waits */
	CONN_STATE_FINISH,  /* the answer is complete, output or unread body is on its way */
	CONN_STATE_LINGER,  /* everything is sent; what still comes is dropped */
	CONN_STATE_CLOSING, /* the socket is being closed; the handler may still run */
	CONN_STATE_COUNT
};

struct http_exchange {
	struct conn *conn;
	struct loop *loop;
	struct task *task; /* NULL until the handler starts, and for refusals */
	struct http_exchange *next_spare;
	struct parser parser;

	/* The body: `in` is being filled, `out` is what the handler was given last. */
	struct buf body_in;
	struct buf body_out;
	struct buf body_whole;
	uint64_t body_taken; /* bytes that came, read or skipped */
	bool continued;      /* "100 Continue" was sent, or is no longer due */
	bool skipping;       /* the handler has gone: drop what comes */

	struct budget_part part; /* of the server's memory */
	bool output_counted;     /* config->output_bytes of it are for output */

	/* The answer. */
	int status;
	struct http_header headers[EXCHANGE_HEADERS];
	size_t header_count;
	bool broken; /* what was set cannot be sent: 500 */
	bool started;
	bool finished;
	bool bodiless; /* HEAD, 204, 304 */
	bool chunked;
	uint64_t remaining; /* of the announced length */
	int gzip_level;     /* 0: the handler does not want it compressed */
	struct gzip *gzip;  /* the answer is being compressed */
	struct buf out;
	size_t chunk_at;    /* where in `out` the open chunk begins; SIZE_MAX: none is open */
	struct buf flying;  /* what `write` is writing */
	size_t flying_left; /* bytes of it libuv had not written when last looked at */
	uv_write_t write;

	struct event progress; /* set anew for each wait of the handler for the connection */
	struct event closed;
	struct event stopping;
};

struct conn {
	uv_tcp_t tcp;
	struct loop *loop;
	struct conn *next;
	struct conn **link;
	struct http_exchange *x;
	struct buf pending; /* came, and is not parsed yet */
	struct timer timer;
	uint64_t linger_until_ns;
	enum conn_state state;
	bool reading;
	bool feeding; /* inside conn_feed(): what is pending is being dealt with */
	bool eof;     /* the client sends nothing more */
	bool lost;    /* nothing can be sent any more */
	bool closed;  /* the socket is gone */
	bool keep;    /* another request may follow this one */
	bool refused; /* over max_connections */
	char peer[56];
};

/* Takes over the socket. */
void conn_open(struct loop *l, const struct arrival *a);
struct conn *conn_next(const struct conn *c);
/* The server stops: close if idle, tell the handler otherwise. */
void conn_stop(struct conn *c);
/* Breaks the connection off. */
void conn_abort(struct conn *c);
/* Closes it without more ado. */
void conn_close(struct conn *c);
/* Reads from the socket if, and only if, there is room for more. */
void conn_update_reading(struct conn *c);
/* After the handler returned, or more of what FINISH waits for has happened. */
void conn_settle(struct conn *c);

/* The handler has returned. */
void conn_finish(struct conn *c);

/* Exchanges, with their memory, from and to the loop's spare ones. NULL when out of memory. */
struct http_exchange *exchange_take(struct conn *c);
void exchange_put(struct http_exchange *x);
void conn_drop_spares(struct loop *l);

/* Starts the handler; false when out of memory. */
bool exchange_run(struct http_exchange *x);

/* Answers in the server's own name, as CouchDB words it, and closes. */
void exchange_refuse(struct http_exchange *x, int status, const char *reason);

/* Wakes the handler if it waits for the connection. */
void exchange_progress(struct http_exchange *x);

/* Parks the handler until then; false if body_timeout_ms pass first. */
bool exchange_wait(struct http_exchange *x);

/* Bytes of the answer that the kernel has not taken yet. */
size_t exchange_unsent(const struct http_exchange *x);

/* Gives what is buffered to the kernel, as far as it takes it; libuv writes the rest. */
void exchange_send(struct http_exchange *x);

#endif
