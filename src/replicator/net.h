/*
 * HTTP requests from fibers: libcurl's multi interface on the libuv loop of a struct loop.
 *
 * A call is one request and its answer. The fiber that makes a call parks where it has to wait, so
 * its code reads from top to bottom. The transfer itself goes on in callbacks of the loop, and
 * stops (backpressure) while NET_BUFFER_BYTES wait to be read or to be sent.
 *
 * A server may be hostile. Its answer is inflated piece by piece as it is read, its head and its
 * redirects are limited, and it must send and take bytes at a minimum rate. The code that reads the
 * answer bounds its length.
 *
 * A scope ties together calls that are to end together: cancelling it makes every call of the scope
 * fail and ends every pause in it. Everything here belongs to the loop's thread.
 */
#ifndef FROND_REPLICATOR_NET_H
#define FROND_REPLICATOR_NET_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "loop/wait.h"

struct budget_part;
struct loop;
struct net;
struct net_call;
struct net_waiter;

enum {
	NET_BUFFER_BYTES = 256 * 1024, /* that a call holds in each direction */
	NET_HEADERS = 16,              /* that a request may add */
	NET_TYPE_BYTES = 512,          /* kept of an answer's Content-Type */
	NET_REDIRECTS = 10,
	NET_HEAD_BYTES = 256 * 1024, /* of all heads of an answer: redirects and 1xx included */
};

/*
 * How the client proves itself and what it trusts. Texts are the caller's and outlive the client.
 * NULL means none.
 */
struct net_config {
	bool verify;             /* certificates of servers */
	const char *trusted;     /* a file of certificates, instead of the system's */
	const char *certificate; /* the client's own */
	const char *key;
	const char *key_password;
	/*
	 * The bytes that must move in a second, on the average of as long as a call may stall; 0:
	 * as few as the server likes.
	 */
	uint64_t minimum_rate;
};

MUST_USE enum status net_new(struct loop *loop, const struct net_config *config, struct net **ret,
			     struct err *err);
/* Every call must have been closed before. NULL is fine. */
void net_free(struct net *n);

/* ---- Fibers of one loop that wait for each other ---- */

/*
 * A bell wakes the fibers that wait for it. It has no memory: a fiber checks what it waits for
 * before it waits, and again when the wait returns. Zeroed, nobody waits.
 */
struct net_bell {
	struct net_waiter *waiters;
};

/* Parks until somebody rings the bell or the deadline passes. May return for no reason. */
void net_bell_wait(struct net_bell *bell, uint64_t deadline_ns);
void net_bell_ring(struct net_bell *bell);

struct net_scope {
	struct net_call *calls;
	struct net_bell bell;
	bool cancelled;
};

/* From now on calls of the scope fail with STATUS_CANCELLED, and pauses in it end at once. */
void net_scope_cancel(struct net_scope *scope);
/* Waits for `ms`. STATUS_CANCELLED, at once, when the scope is cancelled. */
MUST_USE enum status net_pause(struct net_scope *scope, uint64_t ms);

/* ---- Calls ---- */

struct net_header {
	struct str name;
	struct str value;
};

struct net_request {
	const char *method;
	const char *url;  /* without a name and password */
	const char *user; /* Basic credentials; NULL: none */
	const char *password;
	const char *proxy; /* NULL: none */
	struct net_header headers[NET_HEADERS];
	size_t headers_count;
	struct str body; /* ptr NULL: none. Stays the caller's until the call is closed. */
	/* Instead of `body`: net_write() is going to bring `stream_bytes` bytes. */
	bool streams;
	uint64_t stream_bytes;
	bool own;            /* this server itself, so its certificate is not checked */
	bool inflate;        /* accept a compressed answer, and give out its inflated bytes */
	bool heartbeats;     /* the answer may wait for long, and sends newlines meanwhile */
	uint64_t connect_ms; /* the longest that connecting may take */
	uint64_t stall_ms;   /* the longest time in which no byte moves in either direction */
	struct net_scope *scope;
	struct budget_part *part; /* counts the memory of the call; NULL: nothing does */
};

/*
 * Starts a call without waiting for anything. The caller closes it with net_close().
 * STATUS_CANCELLED, STATUS_INVALID, STATUS_NOMEM.
 */
MUST_USE enum status net_open(struct net *n, const struct net_request *request,
			      struct net_call **ret, struct err *err);

/*
 * Sends more of a streamed body and parks while the server is behind. STATUS_NOT_FOUND: the server
 * has answered before it read the whole body, so no more need be sent. STATUS_IO, STATUS_TIMEOUT,
 * STATUS_CANCELLED.
 */
MUST_USE enum status net_write(struct net_call *c, struct str data, struct err *err);

/*
 * Waits for the headers and gives the HTTP status. STATUS_IO, STATUS_TIMEOUT, STATUS_CANCELLED;
 * STATUS_INVALID for a redirect that is not followed (replicator/redirect.h), and for a head past
 * NET_HEAD_BYTES.
 */
MUST_USE enum status net_answer(struct net_call *c, int *ret_status, struct err *err);

/* The answer's Content-Type, after net_answer(). Empty if it has none; cut to NET_TYPE_BYTES. */
struct str net_content_type(const struct net_call *c);

/*
 * The next piece of the answer's body, valid until the next net_read() of this call.
 * STATUS_NOT_FOUND at the end of the body; STATUS_IO if the answer breaks off or is not what its
 * Content-Encoding says; STATUS_TIMEOUT also if it comes slower than the minimum rate;
 * STATUS_LIMIT, STATUS_CANCELLED.
 */
MUST_USE enum status net_read(struct net_call *c, struct str *ret, struct err *err);

/* Ends a call, whether it is complete or not, and frees it. NULL is fine. */
void net_close(struct net_call *c);

/* ---- URLs ---- */

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

/*
 * Takes a URL apart; its parts live in the arena. STATUS_INVALID, explained, for what is no URL,
 * has no host, or has a scheme that is neither http nor https. STATUS_NOMEM.
 */
MUST_USE enum status net_url_parse(struct str text, struct arena *arena, struct net_url *ret,
				   struct err *err);

#endif
