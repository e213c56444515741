#include "net/host.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/process.h"
#include "base/thread.h"
#include "loop/hurry.h"
#include "loop/pool.h"
#include "loop/wait.h"
#include "net/tcp.h"
#include "net/tls.h"

enum {
	NET_LISTENERS = 16,
	NET_LOOPS = 256,
	/* A loop has little to do for each thing that wakes it. */
	NET_TURN_NS = 200000,
	/* How often fibers that compute continue at once where they are to see that a stop ends. */
	NET_HURRY_MS = 5,
};

struct net_service {
	const struct net_protocol *protocol;
	void *options;
	struct net_tls *tls; /* NULL: not encrypted */
	unsigned context;    /* the service whose contexts it uses; may be itself */
	unsigned loops;      /* the first so many serve it */
	unsigned next_loop;  /* whose turn it is, on the loop that accepts */
};

struct net_listener {
	struct net_host *host;
	struct net_acceptor *acceptor; /* NULL: closed */
	unsigned service;
};

struct net_host {
	struct net_host_config config;
	struct net_service services[NET_SERVICES];
	unsigned service_count;
	struct net_listener listeners[NET_LISTENERS];
	size_t listener_count;
	_Atomic unsigned stops;
	_Atomic uint64_t stop_by_ns; /* when net_host_run() has to have returned */
	_Atomic uint64_t give_up_ns; /* when fibers that have not returned are left alone */
	_Atomic uint64_t connections;
	struct net_addresses addresses; /* whose they are */
	struct budget memory;
	struct pool *pool;
	struct net_host *abandoned; /* see net_abandon() */
	struct metric_collector collector;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned ready; /* loops that have, or could not make, their contexts */
	bool failed;    /* one could not */
	unsigned loop_count;
	struct net_loop loops[];
};

/* A stream on its way to the loop that will serve it. */
struct net_arrival {
	struct letter letter;
	struct net_host *host;
	struct net_loop *loop;
	unsigned service;
	intptr_t handle;
	enum net_refusal refuse;
	char peer[NET_PEER_BYTES];
};

/* ---- What metrics tell ---- */

METRIC_COLLECTED(open_connections, METRIC_KIND_GAUGE, "frond_net_connections", METRIC_NUMBER,
		 "Connections that are open, without those that are only told that there are too "
		 "many.");
METRIC_COLLECTED(accepted_connections, METRIC_KIND_COUNTER, "frond_net_accepted_total",
		 METRIC_NUMBER, "Connections that were accepted, refused ones included.");
METRIC_COLLECTED(loops_running, METRIC_KIND_GAUGE, "frond_loops", METRIC_NUMBER,
		 "Threads that serve connections.");
METRIC_COLLECTED(loops_cpu, METRIC_KIND_COUNTER, "frond_loops_cpu_seconds_total", METRIC_SECONDS,
		 "Processor time of the threads that serve connections, together. Its rate divided "
		 "by frond_loops is how busy they are.");
METRIC_COLLECTED(
	memory_taken, METRIC_KIND_GAUGE, "frond_memory_requests_bytes", METRIC_BYTES,
	"Memory that requests have taken of what all of them share, with a flat amount for "
	"each of them.");
METRIC_COLLECTED(memory_output, METRIC_KIND_GAUGE, "frond_memory_requests_output_bytes",
		 METRIC_BYTES, "Of that, output that waits for clients to read.");
METRIC_COLLECTED(memory_reading, METRIC_KIND_GAUGE, "frond_memory_requests_reading_bytes",
		 METRIC_BYTES, "Of that, memory of listings and feeds for pages that they read.");
METRIC_COLLECTED(memory_waiting, METRIC_KIND_GAUGE, "frond_memory_requests_waiting", METRIC_NUMBER,
		 "Requests that wait for memory.");
METRIC_COLLECTED(memory_parts, METRIC_KIND_GAUGE, "frond_memory_requests", METRIC_NUMBER,
		 "Requests at work, feeds that wait for changes included.");
METRIC_COLLECTED(memory_limit, METRIC_KIND_GAUGE, "frond_memory_requests_limit_bytes", METRIC_BYTES,
		 "What all requests share: the setting memory_bytes.");

static void
net_host_report_loops(struct net_host *h)
{
	for (unsigned i = 0; i < h->loop_count; i++) {
		int64_t cpu_ns = process_thread_cpu_ns(&h->loops[i].cpu);

		if (cpu_ns < 0)
			continue;
		metric_report(&loops_running, 0, 1);
		metric_report(&loops_cpu, 0, (uint64_t)cpu_ns);
	}
}

/* On a thread that asks for metrics. */
static void
net_host_collect(void *arg)
{
	struct net_host *h = arg;
	struct net_host_stats stats = net_host_stats(h);

	metric_report(&open_connections, 0, stats.connections);
	metric_report(&accepted_connections, 0, stats.accepted);
	net_host_report_loops(h);
	metric_report(&memory_taken, 0, budget_held(&h->memory));
	metric_report(&memory_output, 0, h->memory.output_bytes);
	metric_report(&memory_reading, 0, h->memory.read_bytes);
	metric_report(&memory_waiting, 0, h->memory.waiting);
	metric_report(&memory_parts, 0, h->memory.parts);
	metric_report(&memory_limit, 0, h->config.memory_bytes);
}

/* ---- Arrivals, dealt out to the loops by the one that accepts ---- */

static void
net_open_arrival(const struct net_arrival *a)
{
	net_conn_open(a->loop, &a->loop->slots[a->service], a->handle, a->peer, a->refuse);
}

static void
net_deliver_arrival(struct letter *letter)
{
	struct net_arrival *a = (struct net_arrival *)letter;

	net_open_arrival(a);
	mem_free(a);
}

/* Of a stream that no loop will serve. */
static void
net_discard_arrival(const struct net_arrival *a)
{
	a->host->config.io->drop(a->handle);
	if (a->refuse)
		return;
	net_addresses_give(&a->host->addresses, a->peer);
	atomic_fetch_sub(&a->host->connections, 1);
}

static void
net_drop_arrival(struct letter *letter)
{
	struct net_arrival *a = (struct net_arrival *)letter;

	net_discard_arrival(a);
	mem_free(a);
}

static const struct letter_ops net_arrival_ops = {
	.deliver = net_deliver_arrival,
	.drop = net_drop_arrival,
};

/* To the loop whose turn it is; false when the stream could not be given away. */
static bool
net_hand_over(struct net_host *h, struct net_arrival *a)
{
	struct net_service *service = &h->services[a->service];
	struct net_arrival *copy;

	a->loop = &h->loops[service->next_loop++ % service->loops];
	if (a->loop == &h->loops[0]) {
		net_open_arrival(a);
		return true;
	}
	copy = mem_alloc(sizeof(*copy));
	if (!copy)
		return false;
	*copy = *a;
	copy->letter.ops = &net_arrival_ops;
	/* From here on the copy is the other loop's, unless that has ended. */
	if (mailbox_post(a->loop->loop.mailbox, &copy->letter))
		return true;
	mem_free(copy);
	return false;
}

/* Counts the connection of an address if it is admitted. */
static enum net_refusal
net_admit(struct net_host *h, const char *peer)
{
	if (atomic_load(&h->connections) >= h->config.max_connections) {
		METRIC_REFUSED("max_connections");
		return NET_TOO_MANY;
	}
	if (!net_addresses_take(&h->addresses, peer)) {
		METRIC_REFUSED("max_connections_per_address");
		return NET_TOO_MANY_OF_ADDRESS;
	}
	return NET_ADMITTED;
}

static void
net_on_arrived(struct net_acceptor *acceptor, intptr_t handle, const char *peer)
{
	struct net_listener *listener = acceptor->arg;
	struct net_host *h = listener->host;
	struct net_loop *l = &h->loops[0];
	struct net_arrival a = { .host = h, .service = listener->service, .handle = handle };

	snprintf(a.peer, sizeof(a.peer), "%s", peer);
	a.refuse = net_admit(h, a.peer);
	if (a.refuse) {
		atomic_fetch_add_explicit(&l->refused, 1, memory_order_relaxed);
	} else {
		atomic_fetch_add_explicit(&l->accepted, 1, memory_order_relaxed);
		atomic_fetch_add(&h->connections, 1);
	}
	if (!net_hand_over(h, &a))
		net_discard_arrival(&a);
}

/* ---- Stopping, on each loop ---- */

static struct net_host *
net_of(struct net_loop *l)
{
	return (struct net_host *)((char *)(l - l->index) - offsetof(struct net_host, loops));
}

static void
net_close_listeners(struct net_host *h)
{
	for (size_t i = 0; i < h->listener_count; i++) {
		if (h->listeners[i].acceptor)
			h->config.io->close_acceptor(h->listeners[i].acceptor);
		h->listeners[i].acceptor = NULL;
	}
}

/* At `ns` or earlier; any thread. */
static void
net_lower(_Atomic uint64_t *at_ns, uint64_t ns)
{
	uint64_t before = atomic_load(at_ns);

	while (ns < before && !atomic_compare_exchange_weak(at_ns, &before, ns))
		;
}

/* Connections were reset: fibers see it when they continue, and return, or are left alone. */
static void
net_await_fibers(struct timer *t)
{
	struct net_loop *l = (struct net_loop *)((char *)t - offsetof(struct net_loop, drain));

	if (clock_mono_ns() < atomic_load(&net_of(l)->give_up_ns)) {
		loop_hurry(&l->loop);
		loop_set_timer(&l->loop, t, clock_after_ms(NET_HURRY_MS));
		return;
	}
	log_event(LOG_LEVEL_WARN, "server_gave_up", "connections=%zu", l->conn_count);
	loop_stop(&l->loop);
}

/* How long before the end of a stop connections are reset. Their fibers have half of it. */
static uint64_t
net_stop_margin_ns(const struct net_host *h)
{
	uint64_t ms = h->config.drain_timeout_ms / 4;

	return (ms < NET_STOP_MARGIN_MS ? ms : NET_STOP_MARGIN_MS) * CLOCK_NS_PER_MS;
}

static void
net_abort_all(struct net_loop *l)
{
	struct net_host *h = net_of(l);

	net_lower(&h->give_up_ns, clock_mono_ns() + net_stop_margin_ns(h) / 2);
	for (struct net_conn *c = l->conns, *next; c; c = next) {
		/* An abort frees nothing before the stream has been closed, later. */
		next = c->next;
		net_conn_abort(c);
	}
	/* Behind the resets, which have woken the fibers that wait for their peers. */
	l->drain.fire = net_await_fibers;
	loop_set_timer(&l->loop, &l->drain, clock_mono_ns());
}

static void
net_drain_timed_out(struct timer *t)
{
	net_abort_all((struct net_loop *)((char *)t - offsetof(struct net_loop, drain)));
}

static void
net_stop_connections(struct net_loop *l)
{
	for (struct net_conn *c = l->conns, *next; c; c = next) {
		next = c->next;
		if (c->lost)
			continue;
		if (c->lingering)
			net_conn_close(c);
		else
			c->slot->protocol->stop(c);
	}
}

static void
net_on_noticed(struct loop *loop)
{
	struct net_loop *l = (struct net_loop *)loop;
	struct net_host *h = net_of(l);
	unsigned stops = atomic_load(&h->stops);

	if (stops == l->stops_seen)
		return;
	if (l->stops_seen == 0) {
		l->stopping = true;
		if (l->index == 0)
			net_close_listeners(h);
		loop_set_timer(loop, &l->drain,
			       atomic_load(&h->stop_by_ns) - net_stop_margin_ns(h));
		net_stop_connections(l);
	}
	if (stops > 1)
		net_abort_all(l);
	l->stops_seen = stops;
	net_loop_end_if_empty(l);
}

static const struct loop_hooks net_loop_hooks = {
	.noticed = net_on_noticed,
	.is_alone = net_loop_is_alone,
};

void
net_host_stop(struct net_host *h)
{
	net_host_stop_by(h, clock_after_ms(h->config.drain_timeout_ms));
}

void
net_host_stop_by(struct net_host *h, uint64_t at_ns)
{
	/* Before the count, which tells the loops to look at it. */
	net_lower(&h->stop_by_ns, at_ns);
	atomic_fetch_add(&h->stops, 1);
	for (unsigned i = 0; i < h->loop_count; i++)
		loop_notice(&h->loops[i].loop);
}

/* ---- Making ---- */

static unsigned
net_processors(void)
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
net_fill_defaults(struct net_host_config *c)
{
	size_t wanted;
	size_t limit;

	DEFAULT(c->loops, net_processors());
	if (c->loops > NET_LOOPS)
		c->loops = NET_LOOPS;
	DEFAULT(c->pool_threads, NET_POOL_THREADS);
	DEFAULT(c->max_connections, NET_MAX_CONNECTIONS);
	DEFAULT(c->request_bytes, NET_REQUEST_BYTES);
	DEFAULT(c->request_steps, NET_REQUEST_STEPS);
	DEFAULT(c->memory_bytes, NET_MEMORY_BYTES);
	DEFAULT(c->memory_wait_ms, NET_MEMORY_WAIT_MS);
	DEFAULT(c->drain_timeout_ms, NET_DRAIN_TIMEOUT_MS);
	DEFAULT(c->min_rate_bytes, NET_MIN_RATE_BYTES);
	DEFAULT(c->rate_window_ms, NET_RATE_WINDOW_MS);
	DEFAULT(c->idle_timeout_ms, NET_IDLE_TIMEOUT_MS);
	DEFAULT(c->stall_timeout_ms, NET_STALL_TIMEOUT_MS);
	DEFAULT(c->io, &net_tcp);
	wanted = c->max_connections;
	c->max_connections = net_tcp_share(wanted, &limit);
	if (c->max_connections < wanted)
		log_event(LOG_LEVEL_WARN, "connections_limited",
			  "max_connections=%zu instead=%zu file_descriptors=%zu "
			  "hint=\"the system lets this process open so many files; raise ulimit "
			  "-n, or "
			  "lower max_connections\"",
			  c->max_connections, wanted, limit);
}

static enum status
net_loop_init(struct net_host *h, unsigned index, struct err *err)
{
	const struct loop_config config = {
		.ops = h->config.io->loop,
		.hooks = &net_loop_hooks,
		.pool = h->pool,
		.task_bytes = h->config.request_bytes,
	};
	struct net_loop *l = &h->loops[index];

	l->index = index;
	l->io = h->config.io;
	l->memory = &h->memory;
	l->connections = &h->connections;
	l->max_connections = h->config.max_connections;
	l->addresses = &h->addresses;
	l->request_steps = h->config.request_steps;
	l->memory_wait_ms = h->config.memory_wait_ms;
	l->min_rate_bytes = h->config.min_rate_bytes;
	l->rate_window_ms = h->config.rate_window_ms;
	l->idle_timeout_ms = h->config.idle_timeout_ms;
	l->stall_timeout_ms = h->config.stall_timeout_ms;
	TRY(loop_init(&l->loop, &config, err));
	l->read_buffer = mem_alloc(NET_READ_BYTES);
	if (!l->read_buffer ||
	    loop_attach_timer(&l->loop, &l->drain, net_drain_timed_out) != STATUS_OK)
		return err_set(err, STATUS_NOMEM, "out of memory for an event loop");
	return STATUS_OK;
}

enum status
net_host_new(const struct net_host_config *config, struct net_host **ret, struct err *err)
{
	struct net_host_config filled = *config;
	enum status status;
	struct net_host *h;

	net_fill_defaults(&filled);
	h = mem_zalloc(sizeof(*h) + filled.loops * sizeof(struct net_loop));
	if (!h)
		return err_set(err, STATUS_NOMEM, "out of memory for a server");
	h->config = filled;
	atomic_init(&h->stop_by_ns, WAIT_FOREVER);
	atomic_init(&h->give_up_ns, WAIT_FOREVER);
	budget_init(&h->memory, filled.memory_bytes);
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->changed, NULL);
	status = net_addresses_init(&h->addresses, filled.max_connections_per_address,
				    filled.max_connections);
	if (status != STATUS_OK)
		(void)err_set(err, status, "out of memory for a server");
	if (status == STATUS_OK && filled.io->loop->uses_pool)
		status = pool_new(filled.pool_threads, &h->pool, err);
	while (status == STATUS_OK && h->loop_count < filled.loops) {
		status = net_loop_init(h, h->loop_count, err);
		h->loop_count++;
	}
	if (status != STATUS_OK) {
		(void)net_host_free(h);
		return status;
	}
	h->collector = (struct metric_collector){ .collect = net_host_collect, .arg = h };
	metric_collector_add(&h->collector);
	*ret = h;
	return STATUS_OK;
}

/*
 * Fibers that would not return still refer to everything: it stays, and stays reachable. The
 * process is about to end.
 */
static void
net_abandon(struct net_host *h)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct net_host *abandoned;

	pthread_mutex_lock(&lock);
	h->abandoned = abandoned;
	abandoned = h;
	pthread_mutex_unlock(&lock);
}

static bool
net_has_connections(const struct net_host *h)
{
	for (unsigned i = 0; i < h->loop_count; i++)
		if (h->loops[i].conn_count)
			return true;
	return false;
}

bool
net_host_free(struct net_host *h)
{
	if (!h)
		return true;
	metric_collector_remove(&h->collector);
	net_close_listeners(h);
	if (net_has_connections(h)) {
		net_abandon(h);
		return false;
	}
	for (unsigned i = 0; i < h->loop_count; i++) {
		loop_fini(&h->loops[i].loop);
		mem_free(h->loops[i].read_buffer);
		net_tls_loop_free(h->loops[i].tls);
	}
	pool_free(h->pool);
	budget_fini(&h->memory);
	net_addresses_fini(&h->addresses);
	pthread_cond_destroy(&h->changed);
	pthread_mutex_destroy(&h->lock);
	mem_free(h);
	return true;
}

enum status
net_host_add_service(struct net_host *h, const struct net_protocol *protocol, void *options,
		     unsigned *ret, struct err *err)
{
	if (h->service_count == NET_SERVICES)
		return err_set(err, STATUS_LIMIT, "cannot serve more than %d protocols",
			       NET_SERVICES);
	h->services[h->service_count] = (struct net_service){
		.protocol = protocol,
		.options = options,
		.context = h->service_count,
		.loops = h->loop_count,
	};
	*ret = h->service_count++;
	return STATUS_OK;
}

void
net_host_narrow(struct net_host *h, unsigned service, unsigned loops)
{
	assert(service < h->service_count && loops);
	if (loops < h->services[service].loops)
		h->services[service].loops = loops;
}

enum status
net_host_secure(struct net_host *h, unsigned service, struct net_tls *tls, unsigned *ret,
		struct err *err)
{
	const struct net_service *plain = &h->services[service];

	assert(service < h->service_count && !plain->tls);
	for (unsigned i = 0; i < h->loop_count; i++) {
		struct net_loop *l = &h->loops[i];

		if (!l->tls)
			l->tls = net_tls_loop_new();
		if (!l->tls)
			return err_set(err, STATUS_NOMEM, "out of memory for TLS");
	}
	TRY(net_host_add_service(h, plain->protocol, plain->options, ret, err));
	h->services[*ret].tls = tls;
	h->services[*ret].loops = plain->loops;
	h->services[*ret].context = service;
	return STATUS_OK;
}

enum status
net_host_listen(struct net_host *h, unsigned service, const char *host_port, uint16_t *ret_port,
		struct err *err)
{
	struct net_listener *listener = &h->listeners[h->listener_count];

	assert(service < h->service_count);
	if (h->listener_count == NET_LISTENERS)
		return err_set(err, STATUS_INVALID, "cannot listen on more than %d addresses",
			       NET_LISTENERS);
	*listener = (struct net_listener){ .host = h, .service = service };
	TRY(h->config.io->listen(host_port, &listener->acceptor, err));
	listener->acceptor->loop = &h->loops[0].loop;
	listener->acceptor->arrived = net_on_arrived;
	listener->acceptor->arg = listener;
	h->listener_count++;
	if (ret_port)
		*ret_port = h->config.io->port(listener->acceptor);
	return STATUS_OK;
}

/* ---- Running ---- */

static void
net_make_contexts(struct net_loop *l)
{
	struct net_host *h = net_of(l);
	bool failed = false;

	for (unsigned i = 0; i < h->service_count && !failed; i++) {
		const struct net_service *s = &h->services[i];
		struct net_slot *slot = &l->slots[i];

		slot->protocol = s->protocol;
		slot->tls = s->tls;
		slot->io = s->tls ? &net_tls_io : l->io;
		if (s->context == i)
			slot->context = s->protocol->loop_new(l, s->options);
		else
			slot->context = l->slots[s->context].context;
		failed = !slot->context;
	}
	pthread_mutex_lock(&h->lock);
	h->ready++;
	h->failed |= failed;
	pthread_cond_signal(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

static void
net_drop_contexts(struct net_loop *l)
{
	struct net_host *h = net_of(l);

	if (l->conn_count)
		return;
	for (unsigned i = 0; i < h->service_count; i++)
		if (l->slots[i].context && h->services[i].context == i)
			l->slots[i].protocol->loop_free(l->slots[i].context);
}

static void *
net_loop_main(void *arg)
{
	struct net_loop *l = arg;
	char name[THREAD_NAME_BYTES];

	(void)snprintf(name, sizeof(name), "loop %u", l->index);
	thread_set_name(name);
	process_thread_begin(&l->cpu);
	thread_set_turn(NET_TURN_NS);
	net_make_contexts(l);
	loop_run(&l->loop);
	net_drop_contexts(l);
	process_thread_end(&l->cpu);
	return NULL;
}

static enum status
net_accept(struct net_host *h, struct err *err)
{
	for (size_t i = 0; i < h->listener_count; i++)
		TRY(h->config.io->accept(h->listeners[i].acceptor, err));
	return STATUS_OK;
}

/* The first loop's part: it accepts once every loop has its contexts. */
static enum status
net_run_first(struct net_host *h, unsigned started, struct err *err)
{
	struct net_loop *l = &h->loops[0];
	enum status status = STATUS_OK;

	process_thread_begin(&l->cpu);
	thread_set_turn(NET_TURN_NS);
	net_make_contexts(l);
	pthread_mutex_lock(&h->lock);
	while (h->ready < started)
		pthread_cond_wait(&h->changed, &h->lock);
	pthread_mutex_unlock(&h->lock);
	if (h->failed)
		status = err_set(err, STATUS_NOMEM, "out of memory for a loop's context");
	else if (started < h->loop_count)
		status = err_set(err, STATUS_IO, "cannot start a thread for a loop");
	if (status == STATUS_OK)
		status = net_accept(h, err);
	if (status != STATUS_OK)
		net_host_stop(h);
	loop_run(&l->loop);
	net_drop_contexts(l);
	process_thread_end(&l->cpu);
	return status;
}

enum status
net_host_run(struct net_host *h, struct err *err)
{
	pthread_t threads[NET_LOOPS];
	unsigned started = 1;
	enum status status;

	signal(SIGPIPE, SIG_IGN);
	while (started < h->loop_count &&
	       pthread_create(&threads[started], NULL, net_loop_main, &h->loops[started]) == 0)
		started++;
	status = net_run_first(h, started, err);
	for (unsigned i = 1; i < started; i++)
		pthread_join(threads[i], NULL);
	if (status == STATUS_OK && net_has_connections(h))
		status = err_set(err, STATUS_TIMEOUT, "some requests did not end in time");
	return status;
}

/* ---- Figures ---- */

unsigned
net_host_loops(const struct net_host *h)
{
	return h->loop_count;
}

size_t
net_host_max_connections(const struct net_host *h)
{
	return h->config.max_connections;
}

size_t
net_host_memory_bytes(const struct net_host *h)
{
	return h->memory.limit_bytes;
}

size_t
net_host_take_memory_peak(struct net_host *h)
{
	return budget_take_peak(&h->memory);
}

size_t
net_host_take_memory_returned(struct net_host *h)
{
	return budget_take_returned(&h->memory);
}

struct net_host_stats
net_host_stats(const struct net_host *h)
{
	struct net_host_stats sum = { .connections = atomic_load(&h->connections) };

	for (unsigned i = 0; i < h->loop_count; i++) {
		const struct net_loop *l = &h->loops[i];

		sum.accepted += atomic_load_explicit(&l->accepted, memory_order_relaxed);
		sum.refused += atomic_load_explicit(&l->refused, memory_order_relaxed);
	}
	return sum;
}
