/*
 * The process: loops (a thread each), listeners, connections, a pool for work that blocks.
 */
#ifndef FROND_SERVER_SERVER_H
#define FROND_SERVER_SERVER_H

#include <stdint.h>

#include "base/status.h"
#include "server/http.h"

struct server;

/* Zero in a number means its default, named below. */
struct server_config {
	unsigned loops;             /* threads; default: one a processor */
	unsigned pool_threads;      /* for work that blocks; default SERVER_POOL_THREADS */
	size_t max_connections;     /* more are answered 503; 5/8 of RLIMIT_NOFILE at most */
	size_t header_bytes;        /* request line and headers; 431 past it */
	size_t request_bytes;       /* memory of one exchange's arena */
	size_t memory_bytes;        /* of all exchanges together (base/budget.h); 503 past it */
	size_t output_bytes;        /* a connection's unsent output before its handler parks */
	uint64_t header_timeout_ms; /* from the first byte to the end of the headers: 408 */
	uint64_t idle_timeout_ms;   /* a kept-alive connection without a request */
	uint64_t body_timeout_ms;   /* between two stretches of a body, or of output being read */
	uint64_t drain_timeout_ms;  /* what a stop waits for answers under way */
	uint64_t memory_timeout_ms; /* what a large request waits for memory to become free */
	const char *server_name;    /* of the Server header */

	http_handler *handler;
	void *arg;
	/* A context a loop of the door's own, made and freed on that loop's thread; both may be
	 * NULL. */
	void *(*loop_new)(void *arg);
	void (*loop_free)(void *context);
};

enum {
	SERVER_POOL_THREADS = 4,
	SERVER_MAX_CONNECTIONS = 20000,
	SERVER_HEADER_BYTES = 64 * 1024,
	SERVER_REQUEST_BYTES = 256 * 1024 * 1024,
	SERVER_MEMORY_BYTES = 384 * 1024 * 1024,
	SERVER_OUTPUT_BYTES = 256 * 1024,
	SERVER_HEADER_TIMEOUT_MS = 30 * 1000,
	SERVER_IDLE_TIMEOUT_MS = 5 * 60 * 1000,
	SERVER_BODY_TIMEOUT_MS = 60 * 1000,
	SERVER_DRAIN_TIMEOUT_MS = 30 * 1000,
	SERVER_MEMORY_TIMEOUT_MS = 60 * 1000,
};

/* Copies `config`. STATUS_NOMEM, STATUS_IO. */
MUST_USE enum status server_new(const struct server_config *config, struct server **ret,
				struct err *err);

/* "127.0.0.1:5984", "[::1]:0". STATUS_INVALID, STATUS_IO (in use). Port 0 picks a free one. */
MUST_USE enum status server_listen(struct server *s, const char *host_port, struct err *err);

/* The port of the first listener. */
uint16_t server_port(const struct server *s);

/*
 * Serves until server_stop(); returns once every connection has ended or the drain timed out.
 * STATUS_TIMEOUT when handlers did not return even after their connections were reset: they, and
 * what they refer to, stay as they are, and the process should end. STATUS_NOMEM, STATUS_IO.
 */
MUST_USE enum status server_run(struct server *s, struct err *err);

/*
 * Stops: no new connections, idle ones close, requests under way finish. From any thread or signal
 * handler. A second call gives up waiting.
 */
void server_stop(struct server *s);

void server_free(struct server *s); /* after server_run() returned; NULL is fine */

struct server_stats {
	uint64_t connections; /* open now */
	uint64_t accepted;
	uint64_t refused; /* for max_connections */
	uint64_t requests;
	uint64_t malformed; /* answered 400, 408, 431 and the like by the server itself */
	uint64_t aborted;
};

struct server_stats server_stats(const struct server *s);

/*
 * The most memory that exchanges have taken together since the last such call, beyond the little
 * that each has for nothing.
 */
size_t server_take_memory_peak(struct server *s);

#endif
