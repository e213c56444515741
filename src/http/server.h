/*
 * An HTTP server: a host (net/host.h) with HTTP as its first service, one handler and its options.
 *
 * Made, given its listeners, run and freed by one thread; server_stop(), server_port() and the
 * figures may be called from any. The handler runs on fibers of the loops (http.h).
 */
#ifndef FROND_HTTP_SERVER_H
#define FROND_HTTP_SERVER_H

#include <stdint.h>

#include "base/status.h"
#include "http/http.h"
#include "http/settings.h"
#include "net/host.h"

struct server;

struct server_config {
	/* The members that http/settings.h declares. Zero means the default. */
	SERVER_SETTINGS(server_config, SETTING_MEMBER_NUMBER, SETTING_MEMBER_FLAG,
			SETTING_MEMBER_TEXT)

	const char *server_name; /* of the Server header */
	const struct net_io *io; /* NULL: TCP */

	http_handler *handler;
	void *arg;
	/* A context a loop of the door's own, made and freed on that loop's thread; both may be
	 * NULL. */
	void *(*loop_new)(void *arg);
	void (*loop_free)(void *context);
};

/* Sets the members of `ret` that are settings; the rest is the caller's. */
void server_config_set(struct server_config *ret, const struct server_settings *settings);

/* Copies `config`. STATUS_NOMEM, STATUS_IO. */
MUST_USE enum status server_new(const struct server_config *config, struct server **ret,
				struct err *err);

/* "127.0.0.1:5984", "[::1]:0". STATUS_INVALID, STATUS_IO (in use). Port 0 picks a free one. */
MUST_USE enum status server_listen(struct server *s, const char *host_port, struct err *err);

/*
 * Listens with TLS. `tls` stays the caller's and must outlive the server. At most one call.
 * `ret_port` may be NULL. Errors as above.
 */
MUST_USE enum status server_listen_tls(struct server *s, const char *host_port, struct net_tls *tls,
				       uint16_t *ret_port, struct err *err);

/*
 * Listens for exchanges of another handler, with the same limits and without a context for each
 * loop. Before server_run(), and once at most. `ret_port` may be NULL. Errors as server_listen()'s,
 * and STATUS_LIMIT.
 */
MUST_USE enum status server_listen_apart(struct server *s, const char *host_port,
					 http_handler *handler, void *arg, uint16_t *ret_port,
					 struct err *err);

/* The port of the first listener. */
uint16_t server_port(const struct server *s);

/* What it stands on: its memory, and services of other protocols beside HTTP. The server's. */
struct net_host *server_host(struct server *s);

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
void server_stop_by(struct server *s, uint64_t at_ns); /* see net_host_stop_by() */

/*
 * After server_run() returned; NULL is fine. False: fibers of connections did not return in time.
 * What they refer to has to stay: the doors, the store and all that these use. The process is to
 * end.
 */
MUST_USE bool server_free(struct server *s);

struct server_stats {
	uint64_t connections; /* open now */
	uint64_t accepted;
	uint64_t refused; /* for max_connections */
	uint64_t requests;
	uint64_t malformed; /* answered 400, 408, 431 and the like by the server itself */
	uint64_t aborted;
};

struct server_stats server_stats(const struct server *s);

#endif
