/*
 * HTTP on a connection: the states that it goes through, and the exchange on it. See README.md.
 * Everything here runs on the connection's loop; the handler on its fiber calls in through http.h.
 */
#ifndef FROND_HTTP_CONN_H
#define FROND_HTTP_CONN_H

#include "http/parser.h"
#include "http/server.h"
#include "net/session.h"

enum {
	CONN_PENDING_BYTES = 64 * 1024, /* of pipelined requests kept while one is served */
	CONN_BURST =
		8, /* pipelined requests that are begun in a row, before others have their turn */
	CONN_BODY_BYTES = 128 * 1024,       /* of a body kept for a handler that is slower */
	CONN_BODY_FIRST_BYTES = 128 * 1024, /* that a long body's buffer begins with */
	CONN_COPY_BYTES = 64 *
			  1024, /* bytes that are copied to a larger buffer between two pauses */
	CONN_COPY_STEPS = 400,  /* steps that copying so many bytes costs, into fresh pages */
	CONN_SKIP_BYTES = 1024 * 1024, /* of an unread body skipped to keep a connection */
	CONN_CHUNK_BYTES = 32 * 1024, /* the largest chunk of an answer; its size has four digits */
	EXCHANGE_HEADERS = 64,        /* of an answer */
	EXCHANGE_RESERVE_BYTES = 512, /* of output, for the answer that memory is short */
	EXCHANGE_SPARES = 128,        /* that a loop keeps for reuse, with their smaller buffers */
};

enum conn_state {
	CONN_STATE_IDLE,    /* no byte of a request */
	CONN_STATE_HEAD,    /* some bytes of one; an exchange exists */
	CONN_STATE_RUN,     /* its handler runs or waits */
	CONN_STATE_FINISH,  /* the answer is complete, output or unread body is on its way */
	CONN_STATE_LINGER,  /* everything is sent; what still comes is dropped */
	CONN_STATE_CLOSING, /* the stream is being closed; the handler may still run */
	CONN_STATE_COUNT
};

/* What happened on one loop. Written there, read anywhere; on a cache line of its own. */
struct http_counters {
	_Alignas(64) _Atomic uint64_t requests;
	_Atomic uint64_t malformed;
	_Atomic uint64_t aborted;
};

/* HTTP with its options, as a service of a host: what http_protocol is given. */
struct http_service {
	const struct server_config *config; /* with every default filled in */
	struct http_counters *counters;     /* one for each loop */
};

extern const struct net_protocol http_protocol;

/* What the exchanges of one loop share. */
struct http_loop {
	const struct server_config *config;
	struct http_counters *counters;
	void *context; /* of config->loop_new() */
	struct http_exchange *spare;
	unsigned spare_count;
	uint64_t date_s; /* the second that `date` tells */
	char date[40];   /* the Date header's value */
};

struct http_exchange {
	struct conn *conn;
	struct http_loop *loop;
	struct http_exchange *next_spare;
	struct net_session
		session; /* its task is NULL until the handler starts, and for refusals */
	struct parser parser;

	/* The body: `in` is being filled, `out` is what the handler was given last. */
	struct buf body_in;
	struct buf body_out;
	struct buf body_whole;
	struct budget_part input_part; /* counts the bytes that have come and are kept */
	uint64_t body_taken;           /* bytes that came, read or skipped */
	uint64_t body_looked;          /* of `body_taken`, when the client was judged last */
	uint64_t body_answered;        /* `body_taken` when the head of the answer was made */
	struct net_pace sending;       /* of the body, while the handler waits for it */
	bool continued;                /* "100 Continue" was sent, or is no longer due */
	bool skipping;                 /* the handler has gone: drop what comes */

	/* The answer. */
	int status;
	struct http_header headers[EXCHANGE_HEADERS];
	size_t header_count;
	bool broken; /* what was set cannot be sent: a 5xx */
	int broken_status;
	char broken_reason[128]; /* what it was, for the client and the log */
	bool started;
	bool finished;
	bool out_of_memory; /* and that was answered, instead of what the handler wanted */
	bool given_up;      /* the server has answered 408 in the handler's place */
	bool bodiless;      /* HEAD, 204, 304 */
	bool chunked;
	uint64_t body_given; /* bytes that the handler has written */
	uint64_t remaining;  /* of the announced length */
	int gzip_level;      /* 0: the handler does not want it compressed */
	struct gzip *gzip;   /* the answer is being compressed */
	size_t chunk_at;     /* where in the output the open chunk begins; SIZE_MAX: none is open */
};

struct conn {
	struct net_conn net; /* first: the protocol's callbacks are given this */
	struct http_exchange *x;
	struct buf pending; /* came, and is not parsed yet */
	enum conn_state state;
	bool feeding;        /* inside conn_feed(): what is pending is being dealt with */
	bool keep;           /* another request may follow this one */
	unsigned char burst; /* pipelined requests that were begun in one call of conn_feed() */
};

static inline struct http_loop *
conn_loop(const struct conn *c)
{
	return c->net.slot->context;
}

/* Exchanges, with their memory, from and to the loop's spare ones. NULL when out of memory. */
struct http_exchange *exchange_take(struct conn *c);
void exchange_put(struct http_exchange *x);
/* Counts what the buffers of input take now. Call this when one has grown or shrunk. */
void exchange_count_input(struct http_exchange *x);
void exchange_drop_spares(struct http_loop *l);

/* Runs the handler, on its fiber. `exchange` is the struct http_exchange. */
void exchange_handle(void *exchange);

/* Answers in the server's own name, as CouchDB words it, and closes. */
void exchange_refuse(struct http_exchange *x, int status, const char *reason);

/*
 * On the fiber: the client does not keep up with sending. Answers with that status and reason in
 * place of the handler, or aborts if the answer has begun. `limit` is the name of the limit, for
 * the log.
 */
void exchange_give_up(struct http_exchange *x, int status, const char *limit, const char *reason);

/* Gives what is buffered to the kernel, as far as it takes it; the rest follows on its own. */
void exchange_send(struct http_exchange *x);

#endif
