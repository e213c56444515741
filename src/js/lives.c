/* Starts and ends workers. Everything runs on the keeper's thread with the lock held. */
#include <assert.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/quote.h"
#include "js/pool_int.h"

enum {
	START_MS = 20 * 1000,  /* until a new worker is ready; see start_ms() */
	START_AGAIN_MS = 1000, /* pause after a failed start */
	ANSWER_BYTES = 8 * 1024 * 1024,
	RETIRE_SHARE = 2, /* a worker that keeps 1/RETIRE_SHARE of its memory limit is replaced */
	LONG_CALL_SLICES = 2,
	BEHIND_MS = 10, /* so long after a call has begun, those behind it go to other workers */
	LONG_CALL_NICE = 19, /* above the server's nice value */
};

static const char *const end_names[] = { "idle",    "timeout", "memory", "lost",
					 "garbage", "retired", "stop" };
static const char reason_stopped[] = "\"OS process was stopped.\"";
static const char *const op_names[] = { "map", "reduce", "validate", "filter", "update", "script" };
static const char *const outcome_names[] = { "answered", "failed" };
static const char *const lane_names[] = { "request", "index" };

METRIC_GAUGES(workers_gauge, "frond_js_workers", METRIC_NUMBER,
	      "Worker processes for functions of design documents, by lane.", "lane", lane_names);
METRIC_COUNTER(starts, "frond_js_worker_starts_total", METRIC_NUMBER,
	       "Worker processes that were started.");
METRIC_COUNTERS(
	ends, "frond_js_worker_ends_total", METRIC_NUMBER,
	"Worker processes that ended, by reason. Timeout, memory: they were killed for what "
	"a function did.",
	"reason", end_names);
METRIC_COUNTERS2(calls, "frond_js_calls_total", METRIC_NUMBER,
		 "Calls of functions of design documents, a batch being one, by what they do and "
		 "how they end.",
		 "op", op_names, "outcome", outcome_names);
METRIC_COUNTER(elements, "frond_js_documents_total", METRIC_NUMBER,
	       "Documents that functions of design documents were given, and groups of rows to be "
	       "reduced.");
METRIC_HISTOGRAMS(durations, "frond_js_call_duration_seconds", METRIC_SECONDS,
		  "Time that a worker had a call, by what it does.", METRIC_TIME_LEAST,
		  METRIC_TIME_BUCKETS, "op", op_names);

static size_t
op_of(const struct js_run *run)
{
	assert(run->shape.kind >= WIRE_MAP && run->shape.kind <= WIRE_SCRIPT);
	return (size_t)(run->shape.kind - WIRE_MAP);
}

static void
log_call(const struct js *js, const struct js_run *run)
{
	static struct log_limit limit;
	uint64_t before;

	if (!js->config.slow_ms || run->took_ns < js->config.slow_ms * CLOCK_NS_PER_MS ||
	    !log_limit_pass(&limit, &before))
		return;
	log_event(LOG_LEVEL_WARN, "slow_js_call",
		  "design=\"%s\" op=%s documents=%zu ms=%llu left_out=%llu",
		  QUOTE_SHOW(str_from_cstr(run->name)), op_names[op_of(run)], run->shape.elements,
		  (unsigned long long)(run->took_ns / CLOCK_NS_PER_MS), (unsigned long long)before);
}

static void
count_call(const struct js *js, const struct js_run *run)
{
	metric_add(&elements, run->shape.elements);
	metric_add_at(&calls,
		      op_of(run) * METRIC_COUNT_OF(outcome_names) + (run->status != STATUS_OK), 1);
	metric_observe_at(&durations, op_of(run), run->took_ns);
	log_call(js, run);
}

/* Ends the call of a worker; the call has its outcome. */
void
pool_worker_finish_run(struct js *js, struct js_worker *w)
{
	struct js_run *run = w->run;

	w->run = NULL;
	js->busy_ns = clock_mono_ns();
	run->took_ns = js->busy_ns - run->began_ns;
	/* The call that it stands in for is counted when it is done. */
	if (!run->stands_in)
		count_call(js, run);
	pool_run_finish(run);
}

/* The call has no part in what has become of its worker. */
static void
call_put_back(struct js *js, struct js_run *run, bool stops)
{
	if (!stops && !run->abandoned) {
		pool_lane_put_back(js, run);
		return;
	}
	run->status = err_set(&run->err, STATUS_CANCELLED, "%s", reason_stopped);
	pool_run_finish(run);
}

/* Each goes in front of those that wait, so the list begins with the last one. */
static void
calls_put_back(struct js *js, struct js_run *last_first, bool stops)
{
	while (last_first) {
		struct js_run *run = last_first;

		last_first = run->next;
		call_put_back(js, run, stops);
	}
}

/* Takes all calls from behind the one under way. The list begins with the last one. */
static struct js_run *
worker_take_behind(struct js_worker *w)
{
	struct js_run *taken = NULL;

	while (w->behind) {
		struct js_run *run = w->behind;

		w->behind = run->next;
		run->next = taken;
		taken = run;
	}
	w->behind_count = 0;
	return taken;
}

/*
 * True if it may be another call's fault that the worker is killed, or has ended. One in front may
 * have used up the memory or damaged the worker, but took no time from this one. If the worker has
 * ended by itself, this one may even be done, and its answer lost: answers are sent together, and
 * so it may be the fault of one behind.
 */
static bool
worker_has_others(const struct js_worker *w, enum js_end end)
{
	if (w->run->followed)
		return end != JS_END_TIMEOUT;
	return end == JS_END_LOST && w->behind && (!w->sending || w->run->request.len);
}

static void
worker_step_back(struct js_worker *w)
{
	js_worker_return_request(w);
	w->run->next = w->behind;
	w->behind = w->run;
	w->behind_count++;
	w->run = NULL;
}

/*
 * Kills a worker. If its call has failed by its own fault, the caller has written down the outcome
 * before. If it may be another call's fault, the call waits again, and is then alone with a worker.
 * Calls behind it wait again, too. When the process stops, all of them end.
 */
static void
worker_kill(struct js *js, struct js_worker *w, enum js_end end)
{
	struct lane *lane = &js->lanes[w->lane];
	struct js_worker **at = &lane->workers;
	bool quiet = end == JS_END_IDLE || end == JS_END_RETIRED || end == JS_END_STOP;

	log_event(quiet ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN, "js_worker_ended",
		  "reason=%s pid=%ld lane=%s resident=%lld design=\"%s\"", end_names[end],
		  (long)w->process.pid, lane_names[w->lane],
		  (long long)js_process_resident_bytes(&w->process),
		  w->run ? QUOTE_SHOW(str_from_cstr(w->run->name)) : "");
	metric_add_at(&ends, end, 1);
	metric_gauge_add_at(&workers_gauge, w->lane, -1);
	if (w->run && end != JS_END_STOP && worker_has_others(w, end))
		worker_step_back(w);
	else if (w->run)
		pool_worker_finish_run(js, w);
	calls_put_back(js, worker_take_behind(w), end == JS_END_STOP);
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	lane->count--;
	(void)epoll_ctl(js->epoll, EPOLL_CTL_DEL, w->process.socket, NULL);
	js_process_signal(&w->process);
	w->state = JS_WORKER_DYING;
	w->next = js->dying;
	js->dying = w;
}

/* Handles a failed start: waiting calls fail, unless the lane has other workers. */
static void
note_failed_start(struct js *js, enum status status, const struct err *why)
{
	static struct log_limit limit;
	uint64_t before;

	js->start_status = status;
	js->start_err = *why;
	js->start_after_ns = clock_after_ms(START_AGAIN_MS);
	if (log_limit_pass(&limit, &before))
		log_event(LOG_LEVEL_ERROR, "js_worker_not_started", "reason=\"%s\" left_out=%llu",
			  QUOTE_SHOW(str_from_cstr(why->text)), (unsigned long long)before);
	for (size_t i = 0; i < JS_LANES; i++)
		if (js->lanes[i].count == 0)
			pool_lane_fail_waiting(js, &js->lanes[i], status, why);
}

/* Kills a worker that misbehaved, and fails its call or its start. */
void
pool_worker_fail(struct js *js, struct js_worker *w, enum js_end end)
{
	static const char *const reasons[] = {
		[JS_END_TIMEOUT] = JS_TIMED_OUT,
		[JS_END_MEMORY] = "\"OS process took more memory than [js] max_memory.\"",
		[JS_END_LOST] = "\"OS process died.\"",
		[JS_END_GARBAGE] = "\"OS process gave a bad answer.\"",
	};
	bool was_starting = w->state == JS_WORKER_STARTING;
	struct err err;

	/* No function has failed when all stop: nobody is to remember that of it. */
	if (w->run && end == JS_END_STOP)
		w->run->status = err_set(&w->run->err, STATUS_CANCELLED, "%s", reason_stopped);
	else if (w->run && !worker_has_others(w, end))
		js_run_fail(w->run, STR(JS_LOST), str_from_cstr(reasons[end]));
	worker_kill(js, w, end);
	if (was_starting && end != JS_END_STOP)
		note_failed_start(js,
				  err_set(&err, STATUS_UNAVAILABLE, "%s does not start: %s",
					  js->path, end_names[end]),
				  &err);
}

void
pool_worker_retire(struct js *js, struct js_worker *w)
{
	worker_kill(js, w, JS_END_RETIRED);
}

/*
 * The call under way takes long, so those behind it are taken back, and go to other workers or wait
 * as everybody does. This worker has been sent them, and will answer them, too: runs that stand in
 * for them take these answers.
 */
static void
worker_take_back(struct js *js, struct js_worker *w)
{
	struct js_run **at = &w->behind, *taken = NULL;

	while (*at) {
		struct js_run *run = *at;
		struct js_run *stands_in = run->abandoned ? NULL : js_run_stand_in(run);

		if (!stands_in) {
			at = &run->next;
			continue;
		}
		stands_in->next = run->next;
		*at = stands_in;
		at = &stands_in->next;
		run->next = taken;
		taken = run;
	}
	calls_put_back(js, taken, false);
}

static void
start_worker(struct js *js, enum js_lane lane)
{
	const struct wire_limits limits = { .slice_ms = POOL_SLICE_MS,
					    .output_bytes = js->config.output_bytes,
					    .answer_bytes = ANSWER_BYTES };
	struct epoll_event event = { .events = EPOLLIN };
	struct js_process process;
	struct js_worker *w;
	struct err err = { 0 };
	enum status status;

	/*
	 * Only this thread changes the lane's number of workers, so the number stays valid without
	 * the lock.
	 */
	pthread_mutex_unlock(&js->lock);
	status = js_process_start(js->path, &process, &err);
	pthread_mutex_lock(&js->lock);
	if (status != STATUS_OK) {
		note_failed_start(js, status, &err);
		return;
	}
	w = js_worker_new(&process, lane, &limits);
	event.data.ptr = w;
	if (!w || epoll_ctl(js->epoll, EPOLL_CTL_ADD, process.socket, &event) != 0) {
		js_process_signal(&process);
		js_process_close(&process);
		while (!js_process_is_gone(&process))
			usleep(1000);
		if (w)
			js_worker_free(w);
		note_failed_start(js, err_set(&err, STATUS_UNAVAILABLE, "no room for a worker"),
				  &err);
		return;
	}
	metric_add(&starts, 1);
	metric_gauge_add_at(&workers_gauge, lane, 1);
	w->since_ns = clock_mono_ns();
	w->next = js->lanes[lane].workers;
	js->lanes[lane].workers = w;
	js->lanes[lane].count++;
	(void)js_worker_send(w); /* cannot block: a HELLO fits into an empty socket */
}

void
pool_grow_lanes(struct js *js)
{
	for (size_t i = 0; i < JS_LANES; i++) {
		struct lane *lane = &js->lanes[i];

		if (!lane->grow)
			continue;
		lane->grow = false;
		if (js->start_status == STATUS_OK || clock_mono_ns() >= js->start_after_ns)
			start_worker(js, (enum js_lane)i);
		else if (lane->count == 0)
			pool_lane_fail_waiting(js, lane, js->start_status, &js->start_err);
	}
}

void
pool_free_dead(struct js *js)
{
	struct js_worker **at = &js->dying;

	while (*at) {
		struct js_worker *w = *at;

		if (w->sending || !js_process_is_gone(&w->process)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		js_process_close(&w->process);
		js_worker_free(w);
	}
}

/*
 * A worker answers after a slice, so one that has taken two computes one document for long. By the
 * priority that all workers have it would take a processor from the server's loops every few
 * milliseconds, and their clients would wait as long for each of those turns. One that has not
 * computed for a slice waits for a processor itself: with a lower priority, and then as a new
 * worker that has to start, it would wait longer still.
 */
static void
worker_give_way(struct js_worker *w, uint64_t now)
{
	if (w->gave_way || w->state != JS_WORKER_BUSY ||
	    now - w->since_ns < LONG_CALL_SLICES * POOL_SLICE_MS * CLOCK_NS_PER_MS ||
	    js_process_computed_ns(&w->process) < w->computed_ns + POOL_SLICE_MS * CLOCK_NS_PER_MS)
		return;
	js_process_give_way(&w->process, LONG_CALL_NICE);
	w->gave_way = true;
}

/* Where a call may take longer than a start, the machine is expected to be slow. */
static uint64_t
start_ms(const struct js *js)
{
	return js->config.timeout_ms > START_MS ? js->config.timeout_ms : START_MS;
}

/* Finds a reason to kill the worker; false if there is none. */
static bool
worker_is_over(const struct js *js, const struct js_worker *w, uint64_t now, enum js_end *ret)
{
	uint64_t ms = (now - w->since_ns) / CLOCK_NS_PER_MS;
	int64_t resident;

	if (w->state == JS_WORKER_IDLE && ms >= js->config.idle_ms) {
		*ret = JS_END_IDLE;
		return true;
	}
	/* A call that nobody waits for any more has one slice left in which to answer. */
	if ((w->state == JS_WORKER_BUSY && ms >= js->config.timeout_ms + POOL_SLICE_MS) ||
	    (w->state == JS_WORKER_BUSY && w->run && w->run->abandoned && ms >= 2 * POOL_SLICE_MS &&
	     now - w->run->abandoned_ns >= 2 * POOL_SLICE_MS * CLOCK_NS_PER_MS) ||
	    (w->state == JS_WORKER_STARTING && ms >= start_ms(js))) {
		*ret = JS_END_TIMEOUT;
		return true;
	}
	resident = js_process_resident_bytes(&w->process);
	if (resident > (int64_t)js->config.memory_bytes) {
		*ret = JS_END_MEMORY;
		return true;
	}
	/*
	 * Memory that a worker keeps between calls is no call's fault, but the next call would be
	 * blamed.
	 */
	*ret = JS_END_RETIRED;
	return w->state == JS_WORKER_IDLE &&
	       resident > (int64_t)js->config.memory_bytes / RETIRE_SHARE;
}

void
pool_check_workers(struct js *js)
{
	uint64_t now = clock_mono_ns();

	for (size_t i = 0; i < JS_LANES; i++) {
		struct js_worker *next;

		for (struct js_worker *w = js->lanes[i].workers; w; w = next) {
			enum js_end end;

			next = w->next;
			worker_give_way(w, now);
			if (w->behind && now - w->since_ns >= BEHIND_MS * CLOCK_NS_PER_MS)
				worker_take_back(js, w);
			if (w->sending || !worker_is_over(js, w, now, &end))
				continue;
			if (end == JS_END_IDLE || end == JS_END_RETIRED)
				worker_kill(js, w, end);
			else
				pool_worker_fail(js, w, end);
		}
	}
}
