#include "server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/conn.h"
#include "server/loop.h"
#include "server/pool.h"
#include "server/server_int.h"

enum {
	SERVER_LISTENERS = 16,
	SERVER_LOOPS = 256,
	SERVER_BACKLOG = 1024,
	SERVER_ACCEPTS = 64,              /* in a row, before other sockets have their turn */
	SERVER_ACCEPT_PAUSE_MS = 100,     /* when there are no file descriptors left */
	SERVER_ACCEPT_LOG_MS = 10 * 1000, /* between two lines about that */
};

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct listener {
	struct server *server;
	int fd;
	bool polled; /* `poll` is a handle of the first loop */
	uv_poll_t poll;
};

struct server {
	struct server_config config;
	char *name;
	struct listener listeners[SERVER_LISTENERS];
	size_t listener_count;
	struct timer accept_pause;
	uint64_t accept_log_ns; /* not to tell of failures before */
	int fd_limit;           /* the first descriptor that is no socket's any more */
	unsigned next_loop;
	_Atomic unsigned stops;
	_Atomic uint64_t connections;
	struct budget memory; /* of all exchanges */
	struct pool *pool;
	struct server *abandoned; /* see abandon() */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned ready; /* loops that have, or could not make, their context */
	bool failed;    /* one could not */
	unsigned loop_count;
	struct loop loops[];
};

/* ---- Making ---- */

static unsigned
processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : (unsigned)n;
}

#define DEFAULT(field, value)                                                                      \
	do {                                                                                       \
		if (!(field))                                                                      \
			(field) = (value);                                                         \
	} while (0)

static void
fill_defaults(struct server_config *c)
{
	DEFAULT(c->loops, processors());
	DEFAULT(c->pool_threads, SERVER_POOL_THREADS);
	DEFAULT(c->max_connections, SERVER_MAX_CONNECTIONS);
	DEFAULT(c->header_bytes, SERVER_HEADER_BYTES);
	DEFAULT(c->request_bytes, SERVER_REQUEST_BYTES);
	DEFAULT(c->memory_bytes, SERVER_MEMORY_BYTES);
	DEFAULT(c->output_bytes, SERVER_OUTPUT_BYTES);
	DEFAULT(c->header_timeout_ms, SERVER_HEADER_TIMEOUT_MS);
	DEFAULT(c->idle_timeout_ms, SERVER_IDLE_TIMEOUT_MS);
	DEFAULT(c->body_timeout_ms, SERVER_BODY_TIMEOUT_MS);
	DEFAULT(c->drain_timeout_ms, SERVER_DRAIN_TIMEOUT_MS);
	DEFAULT(c->memory_timeout_ms, SERVER_MEMORY_TIMEOUT_MS);
	DEFAULT(c->server_name, "frond/" FROND_VERSION);
}

/*
 * A store that cannot open a file cannot go on writing. So connections get five eighths of the
 * descriptors, and an eighth is beyond the reach of sockets even while many are being refused.
 */
static void
share_descriptors(struct server *s)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };
	size_t connections = s->config.max_connections;

	getrlimit(RLIMIT_NOFILE, &limit);
	s->fd_limit = INT_MAX;
	if (limit.rlim_cur >= INT_MAX)
		return;
	s->fd_limit = (int)(limit.rlim_cur - limit.rlim_cur / 8);
	if (connections <= limit.rlim_cur / 8 * 5)
		return;
	s->config.max_connections = limit.rlim_cur / 8 * 5;
	log_event(LOG_LEVEL_WARN, "connections_limited",
		  "max_connections=%zu instead=%zu file_descriptors=%llu",
		  s->config.max_connections, connections, (unsigned long long)limit.rlim_cur);
}

enum status
server_new(const struct server_config *config, struct server **ret, struct err *err)
{
	struct server_config filled = *config;
	struct server *s;
	enum status status;

	fill_defaults(&filled);
	if (filled.loops > SERVER_LOOPS)
		filled.loops = SERVER_LOOPS;
	s = mem_zalloc(sizeof(*s) + filled.loops * sizeof(struct loop));
	if (!s)
		return err_set(err, STATUS_NOMEM, "out of memory for a server");
	s->config = filled;
	share_descriptors(s);
	budget_init(&s->memory, filled.memory_bytes);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->name = mem_strdup(str_from_cstr(filled.server_name));
	s->config.server_name = s->name;
	status = s->name ? pool_new(filled.pool_threads, &s->pool, err)
			 : err_set(err, STATUS_NOMEM, "out of memory for a server");
	while (status == STATUS_OK && s->loop_count < filled.loops) {
		status = loop_init(&s->loops[s->loop_count], s, &s->config, err);
		s->loop_count++;
	}
	if (status != STATUS_OK) {
		server_free(s);
		return status;
	}
	*ret = s;
	return STATUS_OK;
}

/*
 * Handlers that would not return still refer to everything: it stays, and stays reachable. The
 * process is about to end.
 */
static void
abandon(struct server *s)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct server *abandoned;

	pthread_mutex_lock(&lock);
	s->abandoned = abandoned;
	abandoned = s;
	pthread_mutex_unlock(&lock);
}

static bool
has_connections(const struct server *s)
{
	for (unsigned i = 0; i < s->loop_count; i++)
		if (s->loops[i].conn_count)
			return true;
	return false;
}

void
server_free(struct server *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->listener_count; i++)
		if (s->listeners[i].fd >= 0 && !s->listeners[i].polled)
			close(s->listeners[i].fd);
	if (has_connections(s)) {
		abandon(s);
		return;
	}
	for (unsigned i = 0; i < s->loop_count; i++)
		loop_fini(&s->loops[i]);
	pool_free(s->pool);
	budget_fini(&s->memory);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	mem_free(s->name);
	mem_free(s);
}

/* ---- Listening ---- */

static bool
parse_address(const char *host_port, union address *ret)
{
	struct str text = str_from_cstr(host_port);
	const char *colon = strrchr(host_port, ':');
	char host[64];
	struct str name;
	uint64_t port;

	if (!colon || !str_to_u64(str_from_cstr(colon + 1), &port) || port > UINT16_MAX)
		return false;
	name = str_of(text.ptr, (size_t)(colon - text.ptr));
	if (name.len > 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']') {
		name = str_of(name.ptr + 1, name.len - 2);
		snprintf(host, sizeof(host), "%.*s", STR_ARG(name));
		return name.len < sizeof(host) && uv_ip6_addr(host, (int)port, &ret->in6) == 0;
	}
	snprintf(host, sizeof(host), "%.*s", STR_ARG(name));
	return name.len < sizeof(host) && uv_ip4_addr(host, (int)port, &ret->in) == 0;
}

enum status
server_listen(struct server *s, const char *host_port, struct err *err)
{
	union address address = { 0 };
	int one = 1;
	int fd;

	if (!parse_address(host_port, &address))
		return err_set(err, STATUS_INVALID,
			       "cannot listen on \"%s\": not an address and port, as in "
			       "127.0.0.1:5984 or [::1]:5984",
			       host_port);
	if (s->listener_count == SERVER_LISTENERS)
		return err_set(err, STATUS_INVALID, "cannot listen on more than %d addresses",
			       SERVER_LISTENERS);
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, STATUS_IO, "cannot make a socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (address.any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, &address.any,
		 address.any.sa_family == AF_INET ? sizeof(struct sockaddr_in)
						  : sizeof(struct sockaddr_in6)) != 0 ||
	    listen(fd, SERVER_BACKLOG) != 0) {
		int error = errno;

		close(fd);
		return err_set(err, STATUS_IO, "cannot listen on %s: %s", host_port,
			       strerror(error));
	}
	s->listeners[s->listener_count++] = (struct listener){ .server = s, .fd = fd };
	return STATUS_OK;
}

uint16_t
server_port(const struct server *s)
{
	union address address = { 0 };
	socklen_t len = sizeof(address);

	if (!s->listener_count || getsockname(s->listeners[0].fd, &address.any, &len) != 0)
		return 0;
	return ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port
						       : address.in.sin_port);
}

/* ---- Accepting, on the first loop ---- */

static void
format_peer(const union address *address, char *ret, size_t n)
{
	char host[INET6_ADDRSTRLEN] = "";

	if (address->any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &address->in6.sin6_addr, host, sizeof(host));
		snprintf(ret, n, "[%s]:%u", host, ntohs(address->in6.sin6_port));
	} else {
		inet_ntop(AF_INET, &address->in.sin_addr, host, sizeof(host));
		snprintf(ret, n, "%s:%u", host, ntohs(address->in.sin_port));
	}
}

/* To the loop whose turn it is; false when the socket could not be given away. */
static bool
hand_over(struct server *s, const struct arrival *a)
{
	struct loop *l = &s->loops[s->next_loop++ % s->loop_count];
	struct arrival *copy;

	if (l == &s->loops[0]) {
		conn_open(l, a);
		return true;
	}
	copy = mem_alloc(sizeof(*copy));
	if (!copy)
		return false;
	*copy = *a;
	if (mailbox_post_arrival(l->mailbox, copy))
		return true;
	mem_free(copy);
	return false;
}

static void
admit(struct server *s, int fd, const union address *address)
{
	struct arrival a = { .fd = fd };
	struct loop *l = &s->loops[0];

	format_peer(address, a.peer, sizeof(a.peer));
	a.refuse = atomic_load(&s->connections) >= s->config.max_connections;
	if (a.refuse) {
		atomic_fetch_add_explicit(&l->refused, 1, memory_order_relaxed);
	} else {
		atomic_fetch_add_explicit(&l->accepted, 1, memory_order_relaxed);
		atomic_fetch_add(&s->connections, 1);
	}
	if (hand_over(s, &a))
		return;
	close(fd);
	if (!a.refuse)
		server_conn_closed(s);
}

static void on_acceptable(uv_poll_t *poll, int status, int events);

static void
accept_again(struct timer *t)
{
	struct server *s = (struct server *)((char *)t - offsetof(struct server, accept_pause));

	for (size_t i = 0; i < s->listener_count; i++)
		if (s->listeners[i].polled)
			uv_poll_start(&s->listeners[i].poll, UV_READABLE, on_acceptable);
}

/* Without descriptors every poll would report the same connection again, at once. */
static void
pause_accepting(struct server *s, int error)
{
	uint64_t now = clock_mono_ns();

	if (now >= s->accept_log_ns) {
		log_event(LOG_LEVEL_WARN, "accept_failed", "error=\"%s\"", strerror(error));
		s->accept_log_ns = now + SERVER_ACCEPT_LOG_MS * CLOCK_NS_PER_MS;
	}
	for (size_t i = 0; i < s->listener_count; i++)
		uv_poll_stop(&s->listeners[i].poll);
	loop_set_timer(&s->loops[0], &s->accept_pause, clock_after_ms(SERVER_ACCEPT_PAUSE_MS));
}

static void
on_acceptable(uv_poll_t *poll, int status, int events)
{
	struct listener *l = poll->data;

	(void)status;
	(void)events;
	for (int i = 0; i < SERVER_ACCEPTS; i++) {
		union address address = { 0 };
		socklen_t len = sizeof(address);
		int fd = accept4(l->fd, &address.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= l->server->fd_limit) {
			close(fd);
			pause_accepting(l->server, EMFILE);
			break;
		}
		if (fd >= 0) {
			admit(l->server, fd, &address);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno != EAGAIN)
			pause_accepting(l->server, errno);
		break;
	}
}

static void
on_poll_closed(uv_handle_t *handle)
{
	struct listener *l = handle->data;

	close(l->fd);
	l->fd = -1;
}

void
server_close_listeners(struct server *s, struct loop *l)
{
	if (l != &s->loops[0])
		return;
	timers_set(&l->timers, &s->accept_pause, WAIT_FOREVER);
	for (size_t i = 0; i < s->listener_count; i++)
		if (s->listeners[i].polled)
			uv_close((uv_handle_t *)&s->listeners[i].poll, on_poll_closed);
}

void
server_conn_closed(struct server *s)
{
	atomic_fetch_sub(&s->connections, 1);
}

/* ---- Running ---- */

static void
announce(struct server *s, bool failed)
{
	pthread_mutex_lock(&s->lock);
	s->ready++;
	s->failed |= failed;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void
make_context(struct loop *l)
{
	const struct server_config *config = l->config;

	if (config->loop_new)
		l->context = config->loop_new(config->arg);
	announce(l->server, config->loop_new && !l->context);
}

static void
drop_context(struct loop *l)
{
	if (!l->context || !l->config->loop_free || l->conn_count)
		return;
	l->config->loop_free(l->context);
	l->context = NULL;
}

static void *
loop_main(void *arg)
{
	struct loop *l = arg;

	make_context(l);
	loop_run(l);
	drop_context(l);
	return NULL;
}

static enum status
start_listening(struct server *s, struct err *err)
{
	for (size_t i = 0; i < s->listener_count; i++) {
		struct listener *l = &s->listeners[i];

		if (uv_poll_init(&s->loops[0].uv, &l->poll, l->fd) != 0)
			return err_set(err, STATUS_IO, "cannot poll a listening socket");
		l->polled = true;
		l->poll.data = l;
	}
	accept_again(&s->accept_pause);
	return STATUS_OK;
}

/* The first loop's part: it listens once every loop has its context. */
static enum status
run_first(struct server *s, unsigned started, struct err *err)
{
	struct loop *l = &s->loops[0];
	enum status status = STATUS_OK;

	make_context(l);
	pthread_mutex_lock(&s->lock);
	while (s->ready < started)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
	if (s->failed)
		status = err_set(err, STATUS_NOMEM, "out of memory for a loop's context");
	else if (started < s->loop_count)
		status = err_set(err, STATUS_IO, "cannot start a thread for a loop");
	if (status == STATUS_OK)
		status = start_listening(s, err);
	if (status != STATUS_OK)
		server_stop(s);
	loop_run(l);
	drop_context(l);
	return status;
}

enum status
server_run(struct server *s, struct err *err)
{
	pthread_t threads[SERVER_LOOPS];
	unsigned started = 1;
	enum status status;

	signal(SIGPIPE, SIG_IGN);
	if (timers_attach(&s->loops[0].timers, &s->accept_pause, accept_again) != STATUS_OK)
		return err_set(err, STATUS_NOMEM, "out of memory for a server");
	while (started < s->loop_count &&
	       pthread_create(&threads[started], NULL, loop_main, &s->loops[started]) == 0)
		started++;
	status = run_first(s, started, err);
	for (unsigned i = 1; i < started; i++)
		pthread_join(threads[i], NULL);
	if (status == STATUS_OK && has_connections(s))
		status = err_set(err, STATUS_TIMEOUT, "some requests did not end in time");
	return status;
}

void
server_stop(struct server *s)
{
	atomic_fetch_add(&s->stops, 1);
	for (unsigned i = 0; i < s->loop_count; i++)
		loop_notice(&s->loops[i]);
}

unsigned
server_stops(const struct server *s)
{
	return atomic_load(&s->stops);
}

struct budget *
server_memory(struct server *s)
{
	return &s->memory;
}

size_t
server_take_memory_peak(struct server *s)
{
	return budget_take_peak(&s->memory);
}

struct pool *
server_pool(const struct server *s)
{
	return s->pool;
}

struct server_stats
server_stats(const struct server *s)
{
	struct server_stats sum = { .connections = atomic_load(&s->connections) };

	for (unsigned i = 0; i < s->loop_count; i++) {
		const struct loop *l = &s->loops[i];

		sum.accepted += atomic_load_explicit(&l->accepted, memory_order_relaxed);
		sum.refused += atomic_load_explicit(&l->refused, memory_order_relaxed);
		sum.requests += atomic_load_explicit(&l->requests, memory_order_relaxed);
		sum.malformed += atomic_load_explicit(&l->malformed, memory_order_relaxed);
		sum.aborted += atomic_load_explicit(&l->aborted, memory_order_relaxed);
	}
	return sum;
}
