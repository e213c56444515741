/*
 * HTTP/1.1 as a door sees it: one exchange is one request and its answer.
 *
 * The handler runs on a fiber of the connection's loop, from top to bottom, and parks where it has
 * to wait: for the body, for the client to read what was sent, for the store. It must not block the
 * thread (base/wait.h). Connections are kept alive and pipelined requests wait their turn.
 *
 * Everything here belongs to the exchange and is used by its handler alone, except
 * http_closed_event(). Strings given to the answer's functions are copied or sent before the call
 * returns.
 */
#ifndef FROND_SERVER_HTTP_H
#define FROND_SERVER_HTTP_H

#include "base/arena.h"
#include "base/budget.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "base/wait.h"

struct http_exchange;

/* ---- The request ---- */

struct http_header {
	struct str name; /* as it came; compare with str_eq_nocase() */
	struct str value;
};

struct str http_method(const struct http_exchange *x); /* "GET"; upper case as it came */
struct str http_target(const struct http_exchange *x); /* "/db/doc?rev=1-a", still escaped */
struct str http_path(const struct http_exchange *x);   /* the part before '?' */
struct str http_query(const struct http_exchange *x);  /* the part behind it, or empty */

/* The first header of that name; ptr NULL if there is none. */
struct str http_request_header(const struct http_exchange *x, struct str name);
size_t http_request_header_count(const struct http_exchange *x);
struct http_header http_request_header_at(const struct http_exchange *x, size_t i);

/* "127.0.0.1:40312", for logs and _session. */
struct str http_peer(const struct http_exchange *x);

/*
 * The next stretch of the body, as it comes; valid until the next call. STATUS_NOT_FOUND at its
 * end; STATUS_CANCELLED when the client went away or stalled; STATUS_INVALID for a broken one. The
 * first call sends "100 Continue" to a client that expects it. A body that the handler leaves
 * unread is skipped, up to a limit, before the next request; past the limit the connection closes.
 */
MUST_USE enum status http_read(struct http_exchange *x, struct str *ret);

/*
 * The whole body, in memory that the exchange owns. STATUS_LIMIT when it is, or is announced to be,
 * larger than `max_bytes` (answer 413; nothing more need be read), or when the memory of all
 * exchanges does not become free in time (`refused` of http_memory(); answer 503); otherwise as
 * http_read(). A large body waits until there is memory for HTTP_BODY_COST times its length, itself
 * and what a handler makes of it.
 */
MUST_USE enum status http_read_all(struct http_exchange *x, size_t max_bytes, struct str *ret);

/* The exchange's own memory, freed after the handler returns. Limited by
 * server_config.request_bytes. */
struct arena *http_arena(struct http_exchange *x);

/*
 * The exchange's part of the memory that all of them share (server_config.memory_bytes). The arena
 * counts towards it; so should a handler's large buffers. `refused` tells that something failed for
 * the lack of it: answer 503, it is worth trying again.
 */
struct budget_part *http_memory(struct http_exchange *x);

enum {
	HTTP_BODY_COST = 4,
};

/*
 * Before a body is taken piece by piece: sets memory aside for what the handler is going to hold
 * beside its arena, and waits for it; a small body needs none. STATUS_LIMIT as above;
 * STATUS_CANCELLED.
 */
MUST_USE enum status http_ask_memory(struct http_exchange *x, size_t bytes);

/* What server_config.loop_new() made for the loop that this exchange runs on. */
void *http_loop_context(struct http_exchange *x);

/*
 * Set when the connection has been lost, or the client has ended its side of it, so that a handler
 * that waits for something else can stop. In the second case an answer can still be sent: a client
 * may shut down its sending side and wait.
 */
struct event *http_closed_event(struct http_exchange *x);

/* Set when the server is stopping: long answers should come to an end. Each exchange has one. */
struct event *http_stopping_event(struct http_exchange *x);

/* ---- The answer: status and headers, then start, writes, finish; or one http_send() ---- */

/* May be called again until the start; 200 unless set. */
void http_set_status(struct http_exchange *x, int status);

/*
 * Adds a header, or replaces one of the same name. Date, Server, Content-Length, Transfer-Encoding
 * and Connection are the server's own. A name or value with CR, LF or NUL is dropped and makes
 * the answer a 500.
 */
void http_set_header(struct http_exchange *x, struct str name, struct str value);
/* Adds one even if there is one of that name (Set-Cookie). */
void http_add_header(struct http_exchange *x, struct str name, struct str value);

/*
 * Lets the server compress the answer's body (Content-Encoding: gzip) for a client that accepts it,
 * unless it is shorter than HTTP_GZIP_LEAST_BYTES or the handler has set a Content-Encoding of its
 * own. Before the start; `level` is zlib's, 1 to 9. A compressed answer is chunked, and http_flush()
 * lets a client read all that was written.
 */
void http_allow_gzip(struct http_exchange *x, int level);

enum {
	HTTP_GZIP_LEAST_BYTES = 1024,
};

/* Whole answer at once, with a Content-Length. For a HEAD the body is counted and not sent. */
MUST_USE enum status http_send(struct http_exchange *x, struct str body);

#define HTTP_LENGTH_UNKNOWN UINT64_MAX

/* Begins an answer of `length` bytes, or of a length not known yet (chunked; until close for 1.0).
 */
MUST_USE enum status http_start(struct http_exchange *x, uint64_t length);

/*
 * Sends more of the body; parks while the client is behind by more than the connection's output
 * limit (backpressure). STATUS_CANCELLED when it has gone: stop, there is nobody to tell.
 */
MUST_USE enum status http_write(struct http_exchange *x, struct str data);

/*
 * Sends what is buffered now rather than when it is worthwhile: for feeds. Does not wait, unless
 * the answer is compressed and the client behind.
 */
void http_flush(struct http_exchange *x);

MUST_USE enum status http_finish(struct http_exchange *x);

/* Breaks the connection off, so that a cut answer cannot be taken for a whole one. */
void http_abort(struct http_exchange *x);

/* True once status line and headers can no longer change. */
bool http_started(const struct http_exchange *x);

/*
 * A handler that returns without having started an answer makes it an empty 500; one that returns
 * after a start without a finish makes it an abort.
 */
typedef void http_handler(struct http_exchange *x, void *arg);

/* ---- Helpers for doors ---- */

/* Undoes %XX (and '+' when `plus` is set); STATUS_INVALID for a broken escape. In the arena. */
MUST_USE enum status http_unescape(struct str s, bool plus, struct arena *arena, struct str *ret);

struct http_param {
	struct str name;
	struct str value;
};

/* The query's parameters in their order, unescaped. STATUS_INVALID; STATUS_LIMIT past 256. */
MUST_USE enum status http_parse_query(struct str query, struct arena *arena,
				      struct http_param **ret, size_t *ret_count);

#endif
