/*
 * HTTP requests from fibers: libcurl's multi interface on a loop's libuv.
 *
 * A call is one request. Its fiber parks where it waits, so that code reads from top to bottom; the
 * transfer goes on in the loop's callbacks and stops (backpressure) once NET_BUFFER_BYTES wait to
 * be read or sent. Everything belongs to the loop's thread. A scope ties calls together that end
 * together: cancelling it wakes whoever waits in one of them, or in a pause of it.
 */
#ifndef FROND_REPLICATOR_NET_H
#define FROND_REPLICATOR_NET_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "base/wait.h"

struct loop;
struct net;
struct net_call;
struct net_waiter;

enum {
	NET_BUFFER_BYTES = 256 * 1024, /* of a call, each way */
	NET_HEADERS = 16,              /* that a request may add */
	NET_TYPE_BYTES = 512,          /* of a Content-Type that is kept */
	NET_REDIRECTS = 10,
};

/* How servers are spoken to; texts are the caller's, and outlive the client. NULL: none. */
struct net_config {
	bool verify;             /* certificates of servers */
	const char *trusted;     /* a file of certificates, instead of the system's */
	const char *certificate; /* the client's own */
	const char *key;
	const char *key_password;
};

MUST_USE enum status net_new(struct loop *loop, const struct net_config *config, struct net **ret,
			     struct err *err);
/* Every call must have been closed. NULL is fine. */
void net_free(struct net *n);

/* ---- Waiting for each other, on one loop ---- */

/* A place to wait for something that another fiber of the loop does. Zeroed: nobody waits. */
struct net_bell {
	struct net_waiter *waiters;
};

/* Parks until the bell is rung or the deadline passes; may return for no reason. */
void net_bell_wait(struct net_bell *bell, uint64_t deadline_ns);
void net_bell_ring(struct net_bell *bell);

struct net_scope {
	struct net_call *calls;
	struct net_bell bell;
	bool cancelled;
};

/* Calls of the scope fail with STATUS_CANCELLED from now on, pauses end. */
void net_scope_cancel(struct net_scope *scope);
/* STATUS_CANCELLED if the scope is cancelled before `ms` have passed. */
MUST_USE enum status net_pause(struct net_scope *scope, uint64_t ms);

/* ---- Calls ---- */

struct net_header {
	struct str name;
	struct str value;
};

struct net_request {
	const char *method;
	const char *url;  /* without name and password */
	const char *user; /* Basic credentials; NULL: none */
	const char *password;
	const char *proxy; /* NULL: none */
	struct net_header headers[NET_HEADERS];
	size_t headers_count;
	struct str body; /* ptr NULL: none. Stays the caller's until the call is closed. */
	/* Instead of `body`: so many bytes come by net_write(). */
	bool streams;
	uint64_t stream_bytes;
	bool inflate;        /* accept a compressed answer, and read it inflated */
	uint64_t connect_ms; /* to be connected in */
	uint64_t stall_ms;   /* longest wait for a byte to move either way */
	struct net_scope *scope;
};

/* Starts it; nothing is waited for. STATUS_NOMEM, STATUS_INVALID, STATUS_CANCELLED. */
MUST_USE enum status net_open(struct net *n, const struct net_request *request,
			      struct net_call **ret, struct err *err);

/*
 * Sends more of a streamed body; parks while the server is behind. STATUS_NOT_FOUND: the server has
 * answered before it had all of it, and needs no more. STATUS_IO, STATUS_TIMEOUT, STATUS_CANCELLED.
 */
MUST_USE enum status net_write(struct net_call *c, struct str data, struct err *err);

/* Waits for the answer's headers: its status. STATUS_IO, STATUS_TIMEOUT, STATUS_CANCELLED. */
MUST_USE enum status net_answer(struct net_call *c, int *ret_status, struct err *err);

/* After net_answer(). Empty if there is none; cut to NET_TYPE_BYTES. */
struct str net_content_type(const struct net_call *c);

/*
 * The next stretch of the answer's body, valid until the next call. STATUS_NOT_FOUND at its end;
 * STATUS_IO for one that breaks off; STATUS_TIMEOUT, STATUS_CANCELLED.
 */
MUST_USE enum status net_read(struct net_call *c, struct str *ret, struct err *err);

/* Ends it, be it complete or not. NULL is fine. */
void net_close(struct net_call *c);

/* Whether a URL is one; "http" or "https", a host. Its parts live in the arena. */
struct arena;
struct net_url {
	struct str scheme;
	struct str host;
	uint16_t port;       /* the scheme's own where none is given */
	struct str path;     /* as it was written, from '/' on */
	struct str user;     /* ptr NULL: none */
	struct str password; /* likewise */
	struct str bare;     /* the URL without name and password */
};
MUST_USE enum status net_url_parse(struct str text, struct arena *arena, struct net_url *ret,
				   struct err *err);

/* Appends `s` as one segment of a path or a query's value. */
void net_escape(struct buf *b, struct str s);

#endif
