/*
 * A host is the network side of a process: loops (a thread each), listeners, connections, a pool
 * for work that blocks, one budget of memory for all connections. A listener names the protocol
 * that its connections speak (net/conn.h), so that one process can serve several, each on ports of
 * its own.
 *
 * Made, given its services and listeners, run and freed by one thread. net_host_stop() and the
 * figures may be called from any.
 */
#ifndef FROND_NET_HOST_H
#define FROND_NET_HOST_H

#include "net/conn.h"

enum {
	NET_POOL_THREADS = 4,
	NET_MAX_CONNECTIONS = 20000,
	NET_REQUEST_BYTES = 256 * 1024 * 1024,
	NET_REQUEST_STEPS = 500 * 1000 * 1000, /* about 25 s */
	NET_MEMORY_BYTES = 384 * 1024 * 1024,
	NET_MEMORY_WAIT_MS = 60 * 1000,
	NET_DRAIN_TIMEOUT_MS = 30 * 1000,
	NET_MIN_RATE_BYTES = 512,
	NET_RATE_WINDOW_MS = 60 * 1000,
	NET_IDLE_TIMEOUT_MS = 5 * 60 * 1000,
	NET_STALL_TIMEOUT_MS = 60 * 1000,
	NET_STOP_MARGIN_MS = 2000, /* of a stop: for resetting what does not end by itself */
};

struct net_host;

/* Zero in a number means its default: one loop a processor, otherwise the number above. */
struct net_host_config {
	unsigned loops;        /* threads */
	unsigned pool_threads; /* for work that blocks */
	/* Of one address; 0: see net/addresses.h. */
	size_t max_connections_per_address;
	size_t max_connections;    /* of all listeners; 5/8 of RLIMIT_NOFILE at most */
	size_t request_bytes;      /* memory of one fiber's arena */
	uint64_t request_steps;    /* work of one unit of a session (loop/step.h) */
	size_t memory_bytes;       /* of all connections together (base/budget.h) */
	uint64_t memory_wait_ms;   /* of a request of any protocol, for a part of that */
	uint64_t min_rate_bytes;   /* of a peer that is waited for, in a second (net/pace.h), */
	uint64_t rate_window_ms;   /* on average over so much waiting */
	uint64_t idle_timeout_ms;  /* a connection without a request */
	uint64_t stall_timeout_ms; /* between two stretches of a request, or of output being read */
	uint64_t drain_timeout_ms; /* what a stop takes at most */
	const struct net_io *io;   /* NULL: TCP */
};

/* Copies `config`. STATUS_NOMEM, STATUS_IO. */
MUST_USE enum status net_host_new(const struct net_host_config *config, struct net_host **ret,
				  struct err *err);

/*
 * A protocol with its options, which stay the caller's and outlive the host. `ret` names it for
 * net_host_listen(). Several listeners may share one. Before net_host_run(). STATUS_LIMIT.
 */
MUST_USE enum status net_host_add_service(struct net_host *h, const struct net_protocol *protocol,
					  void *options, unsigned *ret, struct err *err);

/*
 * Limits the service to the first `loops` of the host's loops; all of them serve it if there are
 * not so many. What net_host_secure() makes of the service afterwards is limited likewise. Must be
 * called before net_host_run().
 */
void net_host_narrow(struct net_host *h, unsigned service, unsigned loops);

/*
 * Adds a service that is `service` with TLS, for net_host_listen(). `service` itself is not
 * encrypted; both share its contexts. `tls` stays the caller's and must outlive the host. Must be
 * called before net_host_run(). STATUS_LIMIT, STATUS_NOMEM.
 */
MUST_USE enum status net_host_secure(struct net_host *h, unsigned service, struct net_tls *tls,
				     unsigned *ret, struct err *err);

/*
 * "[::1]:0", or a path (net/path.h). Port 0 picks a free one, which `ret_port` tells (may be
 * NULL). Before net_host_run(). STATUS_INVALID, STATUS_IO (in use), STATUS_NOMEM.
 */
MUST_USE enum status net_host_listen(struct net_host *h, unsigned service, const char *host_port,
				     uint16_t *ret_port, struct err *err);

/*
 * Serves until net_host_stop(); returns once every connection has ended or the drain timed out.
 * STATUS_TIMEOUT when work for some connections did not end even after they were reset: it, and
 * what it refers to, stays as it is, and the process should end. STATUS_NOMEM, STATUS_IO.
 */
MUST_USE enum status net_host_run(struct net_host *h, struct err *err);

/*
 * Stops: no new connections, idle ones close, work under way comes to its end. What has not after
 * `drain_timeout_ms`, less a quarter of it and less NET_STOP_MARGIN_MS at most, is reset; so
 * net_host_run() returns within that time. From any thread or signal handler. A second call gives
 * up waiting.
 */
void net_host_stop(struct net_host *h);
/* The same with a moment of the monotonic clock in place of the timeout. An earlier one wins. */
void net_host_stop_by(struct net_host *h, uint64_t at_ns);

/*
 * After net_host_run() returned; NULL is fine. False if work for some connections has not ended:
 * what it refers to stays, the services and their options among it, and is never freed.
 */
bool net_host_free(struct net_host *h);

unsigned net_host_loops(const struct net_host *h);
/* How many connections may be open at once: the setting, or fewer for want of descriptors. */
size_t net_host_max_connections(const struct net_host *h);

struct net_host_stats {
	uint64_t connections; /* open now */
	uint64_t accepted;
	uint64_t refused; /* for max_connections or max_connections_per_address */
};

struct net_host_stats net_host_stats(const struct net_host *h);

/*
 * The most memory that connections have taken together since the last such call, beyond the little
 * that each has for nothing.
 */
size_t net_host_take_memory_peak(struct net_host *h);
/* What they have given back of that since the last such call. */
size_t net_host_take_memory_returned(struct net_host *h);
/* What connections may take: the setting memory_bytes. */
size_t net_host_memory_bytes(const struct net_host *h);

#endif
