/*
 * HTTP/1.1 as a door sees it: one exchange is one request and its answer.
 *
 * The handler runs on a fiber of the connection's loop, from top to bottom. The fiber parks where
 * the handler has to wait: for the body, for the client to read what was sent, for the store. A
 * handler must not block the thread (loop/wait.h). Connections are kept alive, and pipelined
 * requests wait for the answers of the requests before them.
 *
 * Everything here belongs to the exchange, and only its handler uses it, except
 * http_closed_event(). The functions of the answer copy or send the strings that they are given
 * before they return.
 */
#ifndef FROND_HTTP_HTTP_H
#define FROND_HTTP_HTTP_H

#include "base/arena.h"
#include "base/budget.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "loop/wait.h"
#include "net/wait_hook.h"

struct http_exchange;

/* ---- The request ---- */

struct http_header {
	struct str name; /* as the client wrote it; compare with str_eq_nocase() */
	struct str value;
};

struct str http_method(const struct http_exchange *x); /* "GET", in upper case */
struct str http_target(const struct http_exchange *x); /* "/db/doc?rev=1-a", still escaped */
struct str http_path(const struct http_exchange *x);   /* the part before '?' */
struct str http_query(const struct http_exchange *x);  /* the part behind it, or empty */

/* Returns the value of the first header with that name; `ptr` is NULL if there is none. */
struct str http_request_header(const struct http_exchange *x, struct str name);
size_t http_request_header_count(const struct http_exchange *x);
struct http_header http_request_header_at(const struct http_exchange *x, size_t i);

/* True if the connection to this server is TLS. A proxy's claim does not count. */
bool http_is_secure(const struct http_exchange *x);

/* "127.0.0.1:40312", for logs and _session. */
struct str http_peer(const struct http_exchange *x);

/*
 * Returns the next piece of the body that has arrived; it is valid until the next call. Returns
 * STATUS_NOT_FOUND at the end of the body, STATUS_CANCELLED when the client went away or stalled,
 * STATUS_INVALID when the body is malformed, STATUS_NOMEM when memory for it is short. The first
 * call sends "100 Continue" to a client that expects it. The server skips a body that the handler
 * leaves unread before it reads the next request; if more than a limit is unread, it closes the
 * connection.
 */
MUST_USE enum status http_read(struct http_exchange *x, struct str *ret);

/* Whether all of the body is here, or there is none: reading it waits for nothing. */
bool http_body_has_come(const struct http_exchange *x);

/*
 * Reads the whole body into memory that the exchange owns. Returns STATUS_LIMIT when the body is,
 * or is announced to be, larger than `max_bytes` (the caller answers 413 and need not read more),
 * or when the memory that all exchanges share does not become free in time (`refused` of
 * http_memory() is then true, and the caller answers 503). Otherwise returns what http_read()
 * returns. For a large body this first waits until HTTP_BODY_COST times its length is free: memory
 * for the body and for what a handler makes of it.
 */
MUST_USE enum status http_read_all(struct http_exchange *x, size_t max_bytes, struct str *ret);

/*
 * The exchange's own memory, which is freed after the handler returns. server_config.request_bytes
 * limits it.
 */
struct arena *http_arena(struct http_exchange *x);

/*
 * The exchange's part of the memory that all exchanges share (server_config.memory_bytes). The
 * arena counts towards it; a handler's large buffers should, too. If `refused` is true, something
 * failed because other exchanges held too much memory: the caller answers 503, because the client
 * may succeed later.
 */
struct budget_part *http_memory(struct http_exchange *x);

enum {
	HTTP_BODY_COST = 4,
};

/*
 * Sets memory aside for what the handler is going to hold beside its arena, and waits until that
 * memory is free. A handler calls this before it reads a body piece by piece. A small body needs no
 * memory set aside. Returns STATUS_LIMIT as http_read_all() does when the memory does not become
 * free in time, or STATUS_CANCELLED.
 */
MUST_USE enum status http_ask_memory(struct http_exchange *x, size_t bytes);

/*
 * Waits for a turn to read: for `n` bytes of the shared memory beside what the exchange holds now
 * (base/budget.h). The handler gives them back before it waits for anything but the store: it calls
 * budget_settle(), or has http_on_wait() do so. Fails as http_ask_memory() does.
 */
MUST_USE enum status http_ask_to_read(struct http_exchange *x, size_t n);

/*
 * Waits for a turn to last. A handler calls it before an answer that takes as long as its client
 * likes. `n` bytes, which it is expected to take soon, count as used until it calls budget_unuse().
 * It does not wait the second time. Fails as http_ask_memory() does.
 */
MUST_USE enum status http_ask_to_last(struct http_exchange *x, size_t n);

/*
 * From now on the hook's `let_go(arg)` is called on the handler's fiber whenever a write has to
 * wait for the client for more than a moment, or at all if memory is short. It frees everything
 * that the handler can read again, so that a client that does not read costs little, but not the
 * bytes that are being written, and must not use the exchange. It may be called again before the
 * write returns. Returns the hook of before.
 */
struct net_wait_hook http_on_wait(struct http_exchange *x, struct net_wait_hook hook);

/*
 * Gives back the buffers of output that has been sent. A handler calls it before it waits for long
 * for something else than its client.
 */
void http_rest(struct http_exchange *x);

/* Returns what server_config.loop_new() made for the loop that this exchange runs on. */
void *http_loop_context(struct http_exchange *x);

/*
 * This event is set when the connection has been lost, or when the client has ended its sending
 * side, so that a handler that waits for something else can stop. In the second case the handler
 * can still send an answer: a client may shut down its sending side and wait for it.
 */
struct event *http_closed_event(struct http_exchange *x);

/*
 * Ends the work of an exchange for somebody else than its client, on any thread that knows that the
 * handler has not returned. Handlers find out as they do when the client leaves. The connection
 * goes on if the handler has not begun to answer and now does so.
 */
void http_interrupt(struct http_exchange *x);
bool http_is_interrupted(const struct http_exchange *x);

/*
 * This event is set when the server is stopping; a handler then ends a long answer soon. Each
 * exchange has an event of its own.
 */
struct event *http_stopping_event(struct http_exchange *x);

/* ---- The answer: status and headers, then start, writes, finish; or one http_send() ---- */

/*
 * Sets the status of the answer, which is 200 otherwise. It can be changed until the answer starts.
 */
void http_set_status(struct http_exchange *x, int status);

/*
 * Adds a header, or replaces the header of the same name. Only the server itself sets Date, Server,
 * Content-Length, Transfer-Encoding and Connection. A name or value with CR, LF or NUL, or more
 * headers than an answer may have, turns the answer into a 500 that gives this reason, and the
 * server logs it.
 */
void http_set_header(struct http_exchange *x, struct str name, struct str value);
/* Adds a header even if there is one of the same name (for Set-Cookie). */
void http_add_header(struct http_exchange *x, struct str name, struct str value);

/*
 * Lets the server compress the answer's body (Content-Encoding: gzip) for a client that accepts it,
 * unless the body is shorter than HTTP_GZIP_LEAST_BYTES or the handler has set a Content-Encoding
 * of its own. Call this before the start. `level` is zlib's, 1 to 9. A compressed answer is
 * chunked. After http_flush() a client can read all that was written.
 */
void http_allow_gzip(struct http_exchange *x, int level);

enum {
	HTTP_GZIP_LEAST_BYTES = 1024,
};

/*
 * Sends the whole answer, with a Content-Length. For a HEAD request the length is sent and the body
 * is not.
 */
MUST_USE enum status http_send(struct http_exchange *x, struct str body);

#define HTTP_LENGTH_UNKNOWN UINT64_MAX

/*
 * Begins an answer of `length` bytes. If the length is HTTP_LENGTH_UNKNOWN, the answer is chunked;
 * for HTTP/1.0 it ends when the connection closes.
 */
MUST_USE enum status http_start(struct http_exchange *x, uint64_t length);

/*
 * Sends more of the body. Parks while the unsent bytes exceed the output limit of the connection
 * (backpressure). Returns STATUS_CANCELLED when the client has gone; the handler then stops.
 */
MUST_USE enum status http_write(struct http_exchange *x, struct str data);

/*
 * Sends as much of the next bytes of the body as the kernel takes at once, and returns how much
 * that was; the rest is for http_write(). 0 for an answer that is chunked or compressed. Never
 * waits for the client, so the hook of http_on_wait() is not called meanwhile.
 */
size_t http_write_now(struct http_exchange *x, struct str data);

/*
 * Sends the buffered bytes now, even if they are few; feeds need this. Does not wait, unless the
 * answer is compressed and the client reads too slowly.
 */
void http_flush(struct http_exchange *x);

MUST_USE enum status http_finish(struct http_exchange *x);

/*
 * Closes the connection at once, so that the client cannot take a part of an answer for the whole.
 */
void http_abort(struct http_exchange *x);

/* Returns true once the status line and the headers can no longer change. */
bool http_started(const struct http_exchange *x);

/* Returns the status of the answer: the one that was sent once http_started() is true. */
int http_status(const struct http_exchange *x);

/* Returns true if the connection was lost before the answer was complete. */
bool http_is_cut(const struct http_exchange *x);

/* Returns the value of a header that was set for the answer; `ptr` is NULL if there is none. */
struct str http_answer_header(const struct http_exchange *x, struct str name);

/*
 * Returns how many bytes of the request's body have come, and how many of the answer's body the
 * handler has written, before compression.
 */
uint64_t http_bytes_in(const struct http_exchange *x);
uint64_t http_bytes_out(const struct http_exchange *x);

/*
 * If a handler returns without having started an answer, the server sends a 500 that says so, and
 * logs it; the same if a handler sends a 5xx without a body. If it returns after a start but without http_finish(), the server aborts the connection.
 */
typedef void http_handler(struct http_exchange *x, void *arg);

#endif
