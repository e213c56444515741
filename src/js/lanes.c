/* Queues calls and assigns them to workers. Everything here runs with the lock held. */
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metric.h"
#include "js/pool_int.h"

enum {
	GROW_MS = 20, /* how long a call waits before a further worker is started */
	SHARE = 2,    /* an owner uses at most 1/SHARE of a lane's workers */
	/* Calls are sent behind one that has taken no longer, if the one before was as quick. */
	QUICK_MS = 2,
};

static const char *const lane_names[] = { "request", "index" };

METRIC_GAUGES(waiting_gauge, "frond_js_calls_waiting", METRIC_NUMBER,
	      "Calls of functions that wait for a worker, by lane.", "lane", lane_names);
METRIC_COUNTER(behind, "frond_js_calls_behind_total", METRIC_NUMBER,
	       "Calls of functions that were sent to a worker behind another one.");

static unsigned
lane_limit(const struct js *js)
{
	return js->config.workers >= 2 * JS_LANES ? js->config.workers / JS_LANES : 1;
}

void
pool_lane_append(struct js *js, struct js_run *run)
{
	struct lane *lane = &js->lanes[run->lane];

	run->next = NULL;
	if (lane->last)
		lane->last->next = run;
	else
		lane->first = run;
	lane->last = run;
	lane->waiting++;
	run->queued = true;
	run->queued_ns = clock_mono_ns();
	metric_gauge_add_at(&waiting_gauge, run->lane, 1);
}

void
pool_lane_put_back(struct js *js, struct js_run *run)
{
	struct lane *lane = &js->lanes[run->lane];

	run->next = lane->first;
	lane->first = run;
	if (!lane->last)
		lane->last = run;
	lane->waiting++;
	run->queued = true;
	run->alone = true;
	metric_gauge_add_at(&waiting_gauge, run->lane, 1);
}

void
pool_lane_remove(struct js *js, struct js_run *run)
{
	struct lane *lane = &js->lanes[run->lane];
	struct js_run *before = NULL;

	for (struct js_run *r = lane->first; r != run; r = r->next)
		before = r;
	if (before)
		before->next = run->next;
	else
		lane->first = run->next;
	if (lane->last == run)
		lane->last = before;
	lane->waiting--;
	run->queued = false;
	metric_gauge_add_at(&waiting_gauge, run->lane, -1);
}

/*
 * Wakes the owner of a run that has its outcome. The owner may free the run at once, so it must not
 * be touched afterwards.
 */
void
pool_run_finish(struct js_run *run)
{
	if (run->abandoned)
		js_run_free(run);
	else
		event_set(&run->done);
}

void
pool_lane_fail_waiting(struct js *js, struct lane *lane, enum status status, const struct err *why)
{
	while (lane->first) {
		struct js_run *run = lane->first;

		pool_lane_remove(js, run);
		run->status = status;
		run->err = *why;
		pool_run_finish(run);
	}
}

/* Counts the workers of the lane that run calls of that owner. */
static unsigned
lane_count_owner(const struct lane *lane, uint64_t owner)
{
	unsigned n = 0;

	for (const struct js_worker *w = lane->workers; w; w = w->next)
		if (w->state == JS_WORKER_BUSY && w->run->owner == owner)
			n++;
	return n;
}

static bool
owner_may_begin(const struct js *js, const struct lane *lane, uint64_t owner)
{
	unsigned limit = lane_limit(js);
	unsigned share = limit > SHARE ? limit / SHARE : 1;

	return lane_count_owner(lane, owner) < share;
}

/* Finds a free worker, preferably one that has loaded the design document; NULL: none is free. */
static struct js_worker *
lane_find_idle(struct lane *lane, struct str key)
{
	struct js_worker *found = NULL;

	for (struct js_worker *w = lane->workers; w; w = w->next) {
		/* A hostile worker may have answered a call before it read all of it. */
		if (w->state != JS_WORKER_IDLE || w->sending || !js_worker_has_sent(w))
			continue;
		if (js_worker_has(w, key))
			return w;
		found = w;
	}
	return found;
}

/*
 * Finds a busy worker that the call can be sent to behind others of the same owner: one that will
 * soon be done with them. Meanwhile the worker reads and the keeper hears of several at a time, and
 * the processor does not go to and fro for each. NULL: there is none.
 */
static struct js_worker *
lane_find_quick(struct lane *lane, const struct js_run *run)
{
	uint64_t now = clock_mono_ns(), quick = QUICK_MS * CLOCK_NS_PER_MS;

	if (run->alone || run->shape.elements != 1 || run->request.len > JS_BEHIND_BYTES)
		return NULL;
	for (struct js_worker *w = lane->workers; w; w = w->next)
		if (w->state == JS_WORKER_BUSY && !w->gave_way && !w->run->alone &&
		    (w->to_send || (!w->sending && js_worker_has_sent(w))) &&
		    w->behind_count < JS_BEHIND_MOST && w->run->owner == run->owner &&
		    w->run->shape.elements == 1 && w->took_ns <= quick &&
		    now - w->since_ns <= quick && js_worker_has(w, run->design->key))
			return w;
	return NULL;
}

static bool
lane_is_starting(const struct lane *lane)
{
	for (const struct js_worker *w = lane->workers; w; w = w->next)
		if (w->state == JS_WORKER_STARTING)
			return true;
	return false;
}

/*
 * True if the lane should get one more worker. Starting one costs as much as a thousand calls, so
 * workers are started one at a time, and only when a call has waited for longer than most calls
 * take.
 */
static bool
lane_has_to_grow(const struct js *js, const struct lane *lane, const struct js_run *oldest)
{
	if (!oldest || lane->count >= lane_limit(js) || lane_is_starting(lane))
		return false;
	return lane->count == 0 || clock_mono_ns() >= oldest->queued_ns + GROW_MS * CLOCK_NS_PER_MS;
}

void
pool_ring(const struct js *js)
{
	uint64_t one = 1;
	ssize_t n = write(js->bell, &one, sizeof(one));

	/* EAGAIN means that the counter is full, so the keeper has enough wake-ups. */
	(void)n;
}

/* Gives the worker the call. The list is of workers that calls have to be sent to. */
static void
lane_give(struct js *js, struct js_worker *w, struct js_run *run, struct js_worker **list)
{
	bool idle = w->state == JS_WORKER_IDLE;

	pool_lane_remove(js, run);
	if ((idle ? js_worker_assign(w, run, ++js->contexts) : js_worker_follow(w, run)) !=
	    STATUS_OK) {
		run->status = err_set(&run->err, STATUS_NOMEM, "out of memory");
		pool_run_finish(run);
		return;
	}
	js->busy_ns = clock_mono_ns();
	if (idle) {
		run->began_ns = w->since_ns = js->busy_ns;
		w->computed_ns = js_process_computed_ns(&w->process);
	} else {
		metric_add(&behind, 1);
	}
	if (w->to_send)
		return;
	w->sending = w->to_send = true;
	w->next_to_send = *list;
	*list = w;
}

/*
 * Gives waiting calls to workers and returns these as a list; the caller then sends the calls. Also
 * tells whether the keeper should start one more worker.
 */
static struct js_worker *
lane_assign(struct js *js, struct lane *lane)
{
	struct js_worker *to_send = NULL;
	struct js_run *next;
	struct js_run *oldest = NULL; /* the oldest call for which no worker is free */

	for (struct js_run *run = lane->first; run; run = next) {
		struct js_worker *w = NULL;
		bool may_begin = owner_may_begin(js, lane, run->owner);

		next = run->next;
		if (may_begin)
			w = lane_find_idle(lane, run->design->key);
		if (!w)
			w = lane_find_quick(lane, run);
		if (w)
			lane_give(js, w, run, &to_send);
		else if (may_begin && !oldest)
			oldest = run;
	}
	for (struct js_worker *w = to_send; w; w = w->next_to_send)
		w->to_send = false;
	lane->grow = lane_has_to_grow(js, lane, oldest);
	return to_send;
}

void
pool_wait_for_socket(const struct js *js, struct js_worker *w)
{
	struct epoll_event event = {
		.events = js_worker_has_sent(w) ? EPOLLIN : EPOLLIN | EPOLLOUT,
		.data.ptr = w,
	};

	(void)epoll_ctl(js->epoll, EPOLL_CTL_MOD, w->process.socket, &event);
}

/* Assigns waiting calls and sends them. Called with the lock held; releases it while sending. */
void
pool_pump(struct js *js)
{
	for (size_t i = 0; i < JS_LANES; i++) {
		struct js_worker *w;

		while ((w = lane_assign(js, &js->lanes[i])) != NULL) {
			struct js_worker *next;

			pthread_mutex_unlock(&js->lock);
			for (next = w; next; next = next->next_to_send)
				(void)js_worker_send(next);
			pthread_mutex_lock(&js->lock);
			for (; w; w = next) {
				next = w->next_to_send;
				w->sending = false;
				if (w->state != JS_WORKER_DYING && !js_worker_has_sent(w))
					pool_wait_for_socket(js, w);
			}
		}
	}
}
