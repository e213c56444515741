/* The public functions of the pool of workers. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/process.h"
#include "loop/asking.h"
#include "js/pool_int.h"

enum {
	QUEUE_MOST = 4096, /* calls that wait, in each lane */
};

#define WORKER_PROGRAM "frond-js"

enum status
js_new(const struct js_config *config, struct js **ret, struct err *err)
{
	struct js *js = mem_zalloc(sizeof(*js));

	if (!js)
		return err_set(err, STATUS_NOMEM, "out of memory");
	js->config = *config;
	js->epoll = -1;
	js->bell = -1;
	if (config->worker)
		snprintf(js->path, sizeof(js->path), "%s", config->worker);
	else
		process_find_beside(WORKER_PROGRAM, js->path);
	js->config.worker = js->path;
	pthread_mutex_init(&js->lock, NULL);
	*ret = js;
	return STATUS_OK;
}

static enum status
set_stopped(struct err *err)
{
	return err_set(err, STATUS_CANCELLED, "the process stops, and runs no functions any more");
}

void
js_stop(struct js *js)
{
	enum status status;
	struct err why;

	if (!js)
		return;
	status = set_stopped(&why);
	pthread_mutex_lock(&js->lock);
	js->ending = true;
	for (size_t i = 0; i < JS_LANES; i++)
		pool_lane_fail_waiting(js, &js->lanes[i], status, &why);
	/* The keeper kills the workers, which ends the calls that they have. */
	if (js->keeper_runs)
		pool_ring(js);
	pthread_mutex_unlock(&js->lock);
}

void
js_free(struct js *js)
{
	if (!js)
		return;
	js_stop(js);
	if (js->keeper_made)
		pthread_join(js->keeper, NULL);
	assert(pool_is_needless(js));
	if (js->epoll >= 0)
		close(js->epoll);
	if (js->bell >= 0)
		close(js->bell);
	pthread_mutex_destroy(&js->lock);
	mem_free(js);
}

enum status
js_check(const struct js *js, struct err *err)
{
	if (access(js->path, X_OK) == 0)
		return STATUS_OK;
	return err_set(err, STATUS_UNSUPPORTED, "this server cannot run functions: %s: %s",
		       js->path, strerror(errno));
}

size_t
js_workers(struct js *js, long *ret_pids, size_t most)
{
	size_t n = 0;

	pthread_mutex_lock(&js->lock);
	for (size_t i = 0; i < JS_LANES; i++)
		for (const struct js_worker *w = js->lanes[i].workers; w; w = w->next)
			if (n < most)
				ret_pids[n++] = (long)w->process.pid;
	pthread_mutex_unlock(&js->lock);
	return n;
}

static enum status
enqueue(struct js *js, struct js_run *run, struct err *err)
{
	struct lane *lane = &js->lanes[run->lane];

	if (js->ending)
		return set_stopped(err);
	if (lane->waiting >= QUEUE_MOST) {
		METRIC_REFUSED("js_queue");
		return err_set(err, STATUS_TOO_MANY,
			       "too many calls of functions wait for a worker");
	}
	TRY(pool_keeper_start(js, err));
	pool_lane_append(js, run);
	pool_pump(js);
	if (lane->grow || !js->ticking)
		pool_ring(js);
	return STATUS_OK;
}

/* The caller gives up. False: the outcome has come meanwhile. With the lock held. */
static bool
give_up(struct js *js, struct js_run **run)
{
	if (event_is_set(&(*run)->done))
		return false;
	if ((*run)->queued) {
		pool_lane_remove(js, *run);
	} else {
		(*run)->abandoned = true;
		(*run)->abandoned_ns = clock_mono_ns();
		*run = NULL;
	}
	return true;
}

/* As wait_asking(), and tells the caller if the answer is slow to come. */
static enum status
await_outcome(struct js_call *call, struct event *const *events, size_t n, size_t *ret_which)
{
	if (call->on_slow && call->patience_ns < call->deadline_ns) {
		TRY(wait_asking(events, n, call->patience_ns, ret_which));
		if (*ret_which < n)
			return STATUS_OK;
		call->on_slow(call->slow_arg);
		call->on_slow = NULL; /* a call may be several requests */
	}
	return wait_asking(events, n, call->deadline_ns, ret_which);
}

enum status
js_pool_run(struct js_call *call, struct js_run **run, struct err *err)
{
	struct js *js = call->js;
	struct event *events[3] = { &(*run)->done };
	size_t event_count = 1;
	enum status status;
	bool gave_up = false;
	size_t which = 0;

	pthread_mutex_lock(&js->lock);
	status = enqueue(js, *run, err);
	pthread_mutex_unlock(&js->lock);
	if (status != STATUS_OK)
		return status;
	if (call->stop)
		events[event_count++] = call->stop;
	if (call->gone)
		events[event_count++] = call->gone;
	status = await_outcome(call, events, event_count, &which);
	/* With an outcome no lock is needed: whoever has set the event is done with the run. */
	if (status != STATUS_OK || which != 0) {
		pthread_mutex_lock(&js->lock);
		gave_up = give_up(js, run);
		pthread_mutex_unlock(&js->lock);
	}
	if (!gave_up) {
		if ((*run)->status != STATUS_OK && err)
			*err = (*run)->err;
		return (*run)->status;
	}
	/* Whoever has said that the work ends for another reason has explained it. */
	if (status != STATUS_OK && status != STATUS_CANCELLED && status != STATUS_TIMEOUT)
		return status;
	if (which < event_count || status == STATUS_CANCELLED)
		return err_set(err, STATUS_CANCELLED, "nobody waits for the function any more");
	return err_set(err, STATUS_TIMEOUT, "no worker was free for the function in time");
}
