/* The replicator of a process: its thread, its loop, and the HTTP client that its runs share. */
#include <assert.h>

#include "base/mem.h"
#include "base/thread.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "replicator/job.h"

enum {
	HOST_POOL_THREADS = 4,
	HOST_TASK_BYTES = 1 << 20, /* of a fiber's own arena, which jobs do not use */
};

/* What doors and commands know as a struct replicator is the first member of this. */
struct host {
	struct replicator replicator;
	struct loop loop;
	struct pool *pool;
	struct net *net;
	char *self;
	pthread_t thread;
	bool running; /* `thread` is to be joined */
};

static struct host *
host_of(struct replicator *r)
{
	return (struct host *)r;
}

static void *
host_thread(void *arg)
{
	struct host *h = arg;

	thread_set_name("replicator");
	loop_run(&h->loop);
	return NULL;
}

static enum status
host_open(struct host *h, const struct replicator_config *config, struct err *err)
{
	struct loop_config loop = { .task_bytes = HOST_TASK_BYTES };

	TRY(pool_new(HOST_POOL_THREADS, &h->pool, err));
	loop.pool = h->pool;
	TRY(loop_init(&h->loop, &loop, err));
	return net_new(&h->loop, &config->net, &h->net, err);
}

enum status
replicator_new(const struct replicator_config *config, struct replicator **ret, struct err *err)
{
	struct host *h = mem_zalloc(sizeof(*h));
	enum status status;

	if (!h)
		return err_set(err, STATUS_NOMEM, "out of memory for the replicator");
	replicator_init(&h->replicator, config, &h->loop, run_replication);
	status = host_open(h, config, err);
	if (status != STATUS_OK) {
		replicator_free(&h->replicator);
		return status;
	}
	*ret = &h->replicator;
	return STATUS_OK;
}

enum status
replicator_start(struct replicator *r, const char *self, replicator_cookie *cookie, void *arg,
		 struct err *err)
{
	struct host *h = host_of(r);
	struct peer_env env = {
		.net = h->net,
		.cookie = cookie,
		.cookie_arg = arg,
		.job_bytes = r->config.job_bytes,
		.http_allowed = r->config.http_allowed,
		.https_allowed = r->config.https_allowed,
	};

	assert(!h->running);
	h->self = mem_strdup(str_from_cstr(self));
	if (!h->self)
		return err_set(err, STATUS_NOMEM, "out of memory for the replicator");
	env.self = h->self;
	TRY(replicator_begin(r, &env, err));
	h->running = pthread_create(&h->thread, NULL, host_thread, h) == 0;
	return h->running ? STATUS_OK : err_set(err, STATUS_LIMIT, "cannot start a thread");
}

void
replicator_stop(struct replicator *r)
{
	struct host *h = r ? host_of(r) : NULL;

	if (!h || !h->running)
		return;
	replicator_end(r);
	pthread_join(h->thread, NULL);
	h->running = false;
}

void
replicator_free(struct replicator *r)
{
	struct host *h = r ? host_of(r) : NULL;

	if (!h)
		return;
	assert(!h->running);
	replicator_fini(r);
	net_free(h->net);
	loop_fini(&h->loop);
	pool_free(h->pool);
	mem_free(h->self);
	mem_free(h);
}
