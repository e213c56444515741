#include "http/server.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "http/conn.h"

struct server {
	struct server_config config;
	struct http_service http; /* as the host's service of that number */
	unsigned http_number;
	/* Of server_listen_apart(). */
	struct server_config apart_config;
	struct http_service apart;
	struct http_counters *counters; /* one for each loop */
	struct net_host *host;
	char *name;
	uint16_t port;
	bool listening;
};

/* A row of SERVER_SETTINGS as a statement. */
#define FILL_NUMBER(S, member, section, name, unit, least, most, fallback, ...)                    \
	if (!c->member)                                                                            \
		c->member = fallback;
#define COPY_NUMBER(S, member, ...) ret->member = settings->member;
#define NO_SUCH_ROW(S, member, ...) _Static_assert(false, "write how such a setting is copied");

static void
server_fill_defaults(struct server_config *c)
{
	SERVER_SETTINGS(server_config, FILL_NUMBER, NO_SUCH_ROW, NO_SUCH_ROW)
	if (!c->server_name)
		c->server_name = "frond/" FROND_VERSION;
}

static enum status
server_add_http(struct server *s, struct err *err)
{
	size_t bytes = net_host_loops(s->host) * sizeof(struct http_counters);

	/* Aligned, so that two loops never write to one cache line. */
	s->counters = aligned_alloc(_Alignof(struct http_counters), bytes);
	s->name = mem_strdup(str_from_cstr(s->config.server_name));
	if (!s->counters || !s->name)
		return err_set(err, STATUS_NOMEM, "out of memory for a server");
	memset(s->counters, 0, bytes);
	s->config.server_name = s->name;
	s->http = (struct http_service){ .config = &s->config, .counters = s->counters };
	return net_host_add_service(s->host, &http_protocol, &s->http, &s->http_number, err);
}

void
server_config_set(struct server_config *ret, const struct server_settings *settings)
{
	SERVER_SETTINGS(server_config, COPY_NUMBER, NO_SUCH_ROW, NO_SUCH_ROW)
}

enum status
server_new(const struct server_config *config, struct server **ret, struct err *err)
{
	const struct net_host_config net = {
		.loops = (unsigned)config->loops,
		.pool_threads = (unsigned)config->pool_threads,
		.max_connections = config->max_connections,
		.max_connections_per_address = config->max_connections_per_address,
		.request_bytes = config->request_bytes,
		.request_steps = config->request_steps,
		.memory_bytes = config->memory_bytes,
		.memory_wait_ms = config->memory_timeout_ms,
		.min_rate_bytes = config->min_rate_bytes,
		.rate_window_ms = config->rate_window_ms,
		.idle_timeout_ms = config->idle_timeout_ms,
		.stall_timeout_ms = config->body_timeout_ms,
		.drain_timeout_ms = config->drain_timeout_ms,
		.io = config->io,
	};
	struct server *s = mem_zalloc(sizeof(*s));
	enum status status;

	if (!s)
		return err_set(err, STATUS_NOMEM, "out of memory for a server");
	s->config = *config;
	server_fill_defaults(&s->config);
	status = net_host_new(&net, &s->host, err);
	if (status == STATUS_OK)
		status = server_add_http(s, err);
	if (status != STATUS_OK) {
		(void)!server_free(s); /* it has served nobody */
		return status;
	}
	*ret = s;
	return STATUS_OK;
}

bool
server_free(struct server *s)
{
	if (!s)
		return true;
	/*
	 * What connections of an abandoned net refer to stays with it: their handlers have not
	 * returned, and the process is about to end.
	 */
	if (!net_host_free(s->host))
		return false;
	free(s->counters);
	mem_free(s->name);
	mem_free(s);
	return true;
}

enum status
server_listen(struct server *s, const char *host_port, struct err *err)
{
	TRY(net_host_listen(s->host, s->http_number, host_port, s->listening ? NULL : &s->port,
			    err));
	s->listening = true;
	return STATUS_OK;
}

enum status
server_listen_tls(struct server *s, const char *host_port, struct net_tls *tls, uint16_t *ret_port,
		  struct err *err)
{
	unsigned number;

	TRY(net_host_secure(s->host, s->http_number, tls, &number, err));
	return net_host_listen(s->host, number, host_port, ret_port, err);
}

enum status
server_listen_apart(struct server *s, const char *host_port, http_handler *handler, void *arg,
		    uint16_t *ret_port, struct err *err)
{
	unsigned number;

	assert(!s->apart.config);
	s->apart_config = s->config;
	s->apart_config.handler = handler;
	s->apart_config.arg = arg;
	s->apart_config.loop_new = NULL;
	s->apart_config.loop_free = NULL;
	s->apart = (struct http_service){ .config = &s->apart_config, .counters = s->counters };
	TRY(net_host_add_service(s->host, &http_protocol, &s->apart, &number, err));
	return net_host_listen(s->host, number, host_port, ret_port, err);
}

uint16_t
server_port(const struct server *s)
{
	return s->port;
}

struct net_host *
server_host(struct server *s)
{
	return s->host;
}

enum status
server_run(struct server *s, struct err *err)
{
	return net_host_run(s->host, err);
}

void
server_stop_by(struct server *s, uint64_t at_ns)
{
	net_host_stop_by(s->host, at_ns);
}

void
server_stop(struct server *s)
{
	net_host_stop(s->host);
}

struct server_stats
server_stats(const struct server *s)
{
	struct net_host_stats net = net_host_stats(s->host);
	struct server_stats sum = {
		.connections = net.connections,
		.accepted = net.accepted,
		.refused = net.refused,
	};

	for (unsigned i = 0; i < net_host_loops(s->host); i++) {
		const struct http_counters *c = &s->counters[i];

		sum.requests += atomic_load_explicit(&c->requests, memory_order_relaxed);
		sum.malformed += atomic_load_explicit(&c->malformed, memory_order_relaxed);
		sum.aborted += atomic_load_explicit(&c->aborted, memory_order_relaxed);
	}
	return sum;
}
