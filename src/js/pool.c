/*
 * ---- Who does what ----
 *
 * A call is queued in its lane and given to a worker under the lock, by whichever thread finds that
 * both are free: the caller's, or the keeper. The keeper is a thread that lives for as long as
 * there are workers. It alone starts workers, reads from them, kills and frees them. It waits on
 * their sockets. While anything is under way it also looks every TICK_MS for calls that have taken
 * too long, workers that have too much memory, and killed ones that the system has cleared away.
 *
 * The thread that assigned a call sends it, outside the lock and without blocking, while
 * `worker->sending` is set. If the socket is full, the keeper sends the rest. Until `sending` is
 * cleared, no other thread sends to that worker, nor closes its socket.
 */
#include "js/pool.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/quote.h"
#include "js/worker.h"

enum {
	TICK_MS = 10,
	LINGER_MS = 1000, /* the keeper ticks on for so long, so that a call need not wake it */
	SLICE_MS = 200,
	START_MS = 20 * 1000,  /* in which a worker must be ready */
	START_AGAIN_MS = 1000, /* after one could not be started */
	GROW_MS = 20,          /* that a call waits before a further worker is started */
	ANSWER_BYTES = 8 * 1024 * 1024,
	QUEUE_MOST = 4096, /* calls that wait, in each lane */
	EVENTS_AT_ONCE = 16,
	LOG_LINES_A_SECOND = 100, /* of log() of functions */
	SHARE = 2,                /* an owner has that part of a lane at most */
	RETIRE_SHARE = 2,         /* a worker that keeps that part of its memory is replaced */
};

#define WORKER_PROGRAM "frond-js"

enum js_end {
	JS_END_IDLE,
	JS_END_TIMEOUT,
	JS_END_MEMORY,
	JS_END_LOST,
	JS_END_GARBAGE,
	JS_END_RETIRED,
	JS_END_STOP,
};

static const char *const end_names[] = { "idle",    "timeout", "memory", "lost",
					 "garbage", "retired", "stop" };
static const char *const op_names[] = { "map", "reduce", "validate", "filter", "update" };
static const char *const outcome_names[] = { "answered", "failed" };
static const char *const lane_names[] = { "request", "index" };

METRIC_GAUGES(workers_gauge, "frond_js_workers", METRIC_NUMBER,
	      "Worker processes for functions of design documents, by lane.", "lane", lane_names);
METRIC_GAUGES(waiting_gauge, "frond_js_calls_waiting", METRIC_NUMBER,
	      "Calls of functions that wait for a worker, by lane.", "lane", lane_names);
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

struct lane {
	struct js_run *first; /* those that wait, oldest first */
	struct js_run *last;
	size_t waiting;
	struct js_worker *workers; /* but for dying ones */
	unsigned count;
	bool grow; /* the keeper is to start another one */
};

struct js {
	struct js_config config;
	char path[PATH_MAX]; /* of the worker's program */

	pthread_mutex_t lock; /* guards what follows */
	struct lane lanes[JS_LANES];
	struct js_worker *dying;
	uint64_t contexts; /* so many numbers of contexts were given out */
	uint64_t busy_ns;  /* when the last call began or ended */
	uint64_t start_after_ns;
	struct err start_err;     /* why the last start failed */
	enum status start_status; /* STATUS_OK: it has not failed */
	pthread_t keeper;
	bool keeper_runs;
	bool keeper_made; /* it runs, or is to be joined */
	bool ticking;     /* the keeper looks again soon without being woken */
	bool ending;

	int epoll; /* -1: there was no keeper yet */
	int bell;  /* wakes the keeper */

	/* The keeper's. */
	uint64_t log_second;
	unsigned log_lines;
};

static size_t
op_of(const struct js_run *run)
{
	assert(run->shape.kind >= WIRE_MAP && run->shape.kind <= WIRE_UPDATE);
	return (size_t)(run->shape.kind - WIRE_MAP);
}

/* ---- Calls, with the lock held ---- */

static unsigned
lane_limit(const struct js *js)
{
	return js->config.workers >= 2 * JS_LANES ? js->config.workers / JS_LANES : 1;
}

static void
lane_append(struct js *js, struct js_run *run)
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

static void
lane_remove(struct js *js, struct js_run *run)
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

/* The run has its outcome. Nobody but its owner touches it from here on. */
static void
run_finish(struct js_run *run)
{
	if (run->abandoned)
		js_run_free(run);
	else
		event_set(&run->done);
}

static void
lane_fail_waiting(struct js *js, struct lane *lane, enum status status, const struct err *why)
{
	while (lane->first) {
		struct js_run *run = lane->first;

		lane_remove(js, run);
		run->status = status;
		run->err = *why;
		run_finish(run);
	}
}

/* How many workers of the lane do what that owner wants. */
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

/* One that is free, if possible one that has loaded the design document; NULL: none is free. */
static struct js_worker *
lane_find_idle(struct lane *lane, struct str key)
{
	struct js_worker *found = NULL;

	for (struct js_worker *w = lane->workers; w; w = w->next) {
		/* A bad worker may have answered a call that it has not read yet. */
		if (w->state != JS_WORKER_IDLE || w->sending || !js_worker_has_sent(w))
			continue;
		if (js_worker_has(w, key))
			return w;
		found = w;
	}
	return found;
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
 * One more worker at a time, and only when a call has waited for longer than most calls take: to
 * start one costs as much as some thousand calls.
 */
static bool
lane_has_to_grow(const struct js *js, const struct lane *lane, const struct js_run *oldest)
{
	if (!oldest || lane->count >= lane_limit(js) || lane_is_starting(lane))
		return false;
	return lane->count == 0 || clock_mono_ns() >= oldest->queued_ns + GROW_MS * CLOCK_NS_PER_MS;
}

static void
ring(const struct js *js)
{
	uint64_t one = 1;
	ssize_t n = write(js->bell, &one, sizeof(one));

	/* EAGAIN: it has been rung for so often that it is awake. */
	(void)n;
}

/*
 * Gives waiting calls to idle workers, which are then in a list, to be sent to. Says whether the
 * keeper is to start one more.
 */
static struct js_worker *
lane_assign(struct js *js, struct lane *lane)
{
	struct js_worker *to_send = NULL;
	struct js_run *next;
	struct js_run *oldest = NULL; /* of those that no worker is free for */

	for (struct js_run *run = lane->first; run; run = next) {
		struct js_worker *w;

		next = run->next;
		if (!owner_may_begin(js, lane, run->owner))
			continue;
		w = lane_find_idle(lane, run->design->key);
		if (!w) {
			oldest = oldest ? oldest : run;
			continue;
		}
		lane_remove(js, run);
		if (js_worker_assign(w, run, ++js->contexts) != STATUS_OK) {
			run->status = err_set(&run->err, STATUS_NOMEM, "out of memory");
			run_finish(run);
			continue;
		}
		run->began_ns = w->since_ns = js->busy_ns = clock_mono_ns();
		w->sending = true;
		w->next_to_send = to_send;
		to_send = w;
	}
	lane->grow = lane_has_to_grow(js, lane, oldest);
	return to_send;
}

static void
wait_for_socket(const struct js *js, struct js_worker *w)
{
	struct epoll_event event = {
		.events = js_worker_has_sent(w) ? EPOLLIN : EPOLLIN | EPOLLOUT,
		.data.ptr = w,
	};

	(void)epoll_ctl(js->epoll, EPOLL_CTL_MOD, w->process.socket, &event);
}

/* Assigns what can be assigned, and sends it. The lock is held, and given up meanwhile. */
static void
pump(struct js *js)
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
					wait_for_socket(js, w);
			}
		}
	}
}

/* ---- The keeper. All of these with the lock held ---- */

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

/* Takes the call of a worker, which has its outcome now. */
static void
worker_finish_run(struct js *js, struct js_worker *w)
{
	struct js_run *run = w->run;

	w->run = NULL;
	js->busy_ns = clock_mono_ns();
	run->took_ns = js->busy_ns - run->began_ns;
	metric_add(&elements, run->shape.elements);
	metric_add_at(&calls,
		      op_of(run) * METRIC_COUNT_OF(outcome_names) + (run->status != STATUS_OK), 1);
	metric_observe_at(&durations, op_of(run), run->took_ns);
	log_call(js, run);
	run_finish(run);
}

/* Kills a worker. A call that it has must have been given an outcome before. */
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
	if (w->run)
		worker_finish_run(js, w);
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

/* Workers cannot be started: whoever waits is told, unless other workers are left. */
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
			lane_fail_waiting(js, &js->lanes[i], status, why);
}

/* Kills a worker that has done wrong: its call fails, or the start of it. */
static void
worker_fail(struct js *js, struct js_worker *w, enum js_end end)
{
	static const char *const reasons[] = {
		[JS_END_TIMEOUT] = "\"OS process timed out.\"",
		[JS_END_MEMORY] = "\"OS process took more memory than [js] max_memory.\"",
		[JS_END_LOST] = "\"OS process died.\"",
		[JS_END_GARBAGE] = "\"OS process gave a bad answer.\"",
		[JS_END_STOP] = "\"OS process was stopped.\"",
	};
	bool was_starting = w->state == JS_WORKER_STARTING;
	struct err err;

	if (w->run)
		js_run_fail(w->run, STR("os_process_error"), str_from_cstr(reasons[end]));
	worker_kill(js, w, end);
	if (was_starting && end != JS_END_STOP)
		note_failed_start(js,
				  err_set(&err, STATUS_UNAVAILABLE, "%s does not start: %s",
					  js->path, end_names[end]),
				  &err);
}

static void
start_worker(struct js *js, enum js_lane lane)
{
	const struct wire_limits limits = { .slice_ms = SLICE_MS,
					    .output_bytes = js->config.output_bytes,
					    .answer_bytes = ANSWER_BYTES };
	struct epoll_event event = { .events = EPOLLIN };
	struct js_process process;
	struct js_worker *w;
	struct err err = { 0 };
	enum status status;

	/* Only this thread changes the lane's number of workers, so that it holds meanwhile. */
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
	(void)js_worker_send(w); /* an empty socket takes a HELLO */
}

static void
grow_lanes(struct js *js)
{
	for (size_t i = 0; i < JS_LANES; i++) {
		struct lane *lane = &js->lanes[i];

		if (!lane->grow)
			continue;
		lane->grow = false;
		if (js->start_status == STATUS_OK || clock_mono_ns() >= js->start_after_ns)
			start_worker(js, (enum js_lane)i);
		else if (lane->count == 0)
			lane_fail_waiting(js, lane, js->start_status, &js->start_err);
	}
}

static void
free_dead(struct js *js)
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

/* What one worker has to be killed for; false: nothing. */
static bool
worker_is_over(const struct js *js, const struct js_worker *w, uint64_t now, enum js_end *ret)
{
	uint64_t ms = (now - w->since_ns) / CLOCK_NS_PER_MS;
	int64_t resident;

	if (w->state == JS_WORKER_IDLE && ms >= js->config.idle_ms) {
		*ret = JS_END_IDLE;
		return true;
	}
	if ((w->state == JS_WORKER_BUSY && ms >= js->config.timeout_ms + SLICE_MS) ||
	    (w->state == JS_WORKER_STARTING && ms >= START_MS)) {
		*ret = JS_END_TIMEOUT;
		return true;
	}
	resident = js_process_resident_bytes(&w->process);
	if (resident > (int64_t)js->config.memory_bytes) {
		*ret = JS_END_MEMORY;
		return true;
	}
	/* What it keeps is nobody's fault, but the next call would be blamed for it. */
	*ret = JS_END_RETIRED;
	return w->state == JS_WORKER_IDLE &&
	       resident > (int64_t)js->config.memory_bytes / RETIRE_SHARE;
}

static void
check_workers(struct js *js)
{
	uint64_t now = clock_mono_ns();

	for (size_t i = 0; i < JS_LANES; i++) {
		struct js_worker *next;

		for (struct js_worker *w = js->lanes[i].workers; w; w = next) {
			enum js_end end;

			next = w->next;
			if (w->sending || !worker_is_over(js, w, now, &end))
				continue;
			if (end == JS_END_IDLE || end == JS_END_RETIRED)
				worker_kill(js, w, end);
			else
				worker_fail(js, w, end);
		}
	}
}

/* ---- What workers say. The keeper, without the lock ---- */

/* What a function has said by log(). */
static void
log_text(struct js *js, const struct js_worker *w, struct str text)
{
	uint64_t second = clock_mono_ns() / (1000 * CLOCK_NS_PER_MS);

	if (second != js->log_second) {
		if (js->log_lines > LOG_LINES_A_SECOND)
			log_event(LOG_LEVEL_INFO, "js_log", "left_out=%u",
				  js->log_lines - LOG_LINES_A_SECOND);
		js->log_second = second;
		js->log_lines = 0;
	}
	if (++js->log_lines <= LOG_LINES_A_SECOND)
		log_event(LOG_LEVEL_INFO, "js_log", "design=\"%s\" text=\"%s\"",
			  QUOTE_SHOW(str_from_cstr(w->run->name)), QUOTE_SHOW(text));
}

/* The outcome of a call out of its answer; false: the answer is bad. */
static bool
read_answer(struct js_run *run, const struct js_worker_letter *letter)
{
	buf_clear(&run->answer);
	buf_append_str(&run->answer, letter->text);
	if (buf_status(&run->answer) != STATUS_OK) {
		run->status = err_set(&run->err, buf_status(&run->answer),
				      "no memory for what a function has answered");
		return true;
	}
	if (letter->kind == WIRE_ERROR) {
		run->status = STATUS_FUNCTION;
		return answer_read_error(buf_str(&run->answer), &run->error_name,
					 &run->error_reason);
	}
	run->status = STATUS_OK;
	return answer_is_good(&run->shape, buf_str(&run->answer));
}

/* Takes one letter of a worker; false: it has been killed. */
static bool
handle_letter(struct js *js, struct js_worker *w, const struct js_worker_letter *letter)
{
	bool good = true;

	if (letter->news == JS_WORKER_LOG) {
		log_text(js, w, letter->text);
		return true;
	}
	if (letter->news == JS_WORKER_ANSWERED)
		good = read_answer(w->run, letter);
	pthread_mutex_lock(&js->lock);
	/*
	 * An answer before the whole call was sent is none. While the caller still sends, it has
	 * only not come to clear `sending`: what it sends to a hostile worker may be lost.
	 */
	if (letter->news == JS_WORKER_GARBAGE || !good ||
	    (letter->news == JS_WORKER_ANSWERED && !w->sending && !js_worker_has_sent(w))) {
		worker_fail(js, w, JS_END_GARBAGE);
		good = false;
	} else {
		if (letter->news == JS_WORKER_ANSWERED)
			worker_finish_run(js, w);
		js->start_status = STATUS_OK;
		w->state = JS_WORKER_IDLE;
		w->since_ns = clock_mono_ns();
	}
	pump(js);
	pthread_mutex_unlock(&js->lock);
	return good;
}

static void
lose_worker(struct js *js, struct js_worker *w, enum js_worker_news news)
{
	pthread_mutex_lock(&js->lock);
	worker_fail(js, w, news == JS_WORKER_LOST ? JS_END_LOST : JS_END_GARBAGE);
	pump(js);
	pthread_mutex_unlock(&js->lock);
}

/* Sends more of what the socket did not take at once. */
static void
send_rest(struct js *js, struct js_worker *w)
{
	bool sends;

	pthread_mutex_lock(&js->lock);
	sends = !w->sending;
	w->sending = true;
	pthread_mutex_unlock(&js->lock);
	if (!sends)
		return;
	(void)js_worker_send(w);
	pthread_mutex_lock(&js->lock);
	w->sending = false;
	wait_for_socket(js, w);
	pump(js);
	pthread_mutex_unlock(&js->lock);
}

/* The next thing that the worker has said. Its state is looked at, so the lock is held. */
static struct js_worker_letter
next_letter(struct js *js, struct js_worker *w, size_t *at)
{
	struct js_worker_letter letter;

	pthread_mutex_lock(&js->lock);
	letter = js_worker_next(w, at);
	pthread_mutex_unlock(&js->lock);
	return letter;
}

static void
handle_socket(struct js *js, struct js_worker *w, uint32_t events)
{
	struct js_worker_letter letter;
	enum js_worker_news news;
	size_t at = 0;

	if (events & EPOLLOUT)
		send_rest(js, w);
	if (!(events & ~(uint32_t)EPOLLOUT))
		return;
	news = js_worker_receive(w);
	while ((letter = next_letter(js, w, &at)).news != JS_WORKER_NOTHING)
		if (!handle_letter(js, w, &letter))
			return;
	if (news != JS_WORKER_NOTHING)
		lose_worker(js, w, news);
}

/* ---- The keeper ---- */

/* How long to wait for sockets; -1: for as long as it takes. With the lock held. */
static int
wait_ms(const struct js *js)
{
	uint64_t now = clock_mono_ns();
	uint64_t until = UINT64_MAX;

	if (js->dying || js->ending || now < js->busy_ns + LINGER_MS * CLOCK_NS_PER_MS)
		return TICK_MS;
	for (size_t i = 0; i < JS_LANES; i++)
		for (const struct js_worker *w = js->lanes[i].workers; w; w = w->next) {
			uint64_t end = w->since_ns + js->config.idle_ms * CLOCK_NS_PER_MS;

			if (w->state != JS_WORKER_IDLE)
				return TICK_MS;
			until = end < until ? end : until;
		}
	if (until == UINT64_MAX)
		return -1;
	until = until > now ? (until - now) / CLOCK_NS_PER_MS + 1 : 0;
	return until < INT_MAX ? (int)until : INT_MAX;
}

/* True if there is nothing left to keep. With the lock held. */
static bool
is_needless(const struct js *js)
{
	for (size_t i = 0; i < JS_LANES; i++)
		if (js->lanes[i].workers || js->lanes[i].first)
			return false;
	return !js->dying;
}

static void
kill_all(struct js *js)
{
	for (size_t i = 0; i < JS_LANES; i++)
		while (js->lanes[i].workers)
			worker_fail(js, js->lanes[i].workers, JS_END_STOP);
}

static void *
keeper_main(void *arg)
{
	struct js *js = arg;
	struct epoll_event events[EVENTS_AT_ONCE];
	uint64_t rings;

	pthread_mutex_lock(&js->lock);
	for (;;) {
		int timeout_ms;
		int n;

		if (js->ending)
			kill_all(js);
		else
			grow_lanes(js);
		free_dead(js);
		check_workers(js);
		pump(js);
		if (is_needless(js))
			break;
		timeout_ms = wait_ms(js);
		js->ticking = timeout_ms == TICK_MS;
		if (js->lanes[0].grow || js->lanes[1].grow)
			timeout_ms = 0;
		pthread_mutex_unlock(&js->lock);
		n = epoll_wait(js->epoll, events, EVENTS_AT_ONCE, timeout_ms);
		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr)
				handle_socket(js, events[i].data.ptr, events[i].events);
			else if (read(js->bell, &rings, sizeof(rings)) < 0)
				continue;
		}
		pthread_mutex_lock(&js->lock);
	}
	js->keeper_runs = false;
	pthread_mutex_unlock(&js->lock);
	return NULL;
}

/* With the lock held. */
static enum status
keeper_start(struct js *js, struct err *err)
{
	struct epoll_event bell = { .events = EPOLLIN };

	if (js->keeper_runs)
		return STATUS_OK;
	/* It has let go of the lock for good, so that it ends without it. */
	if (js->keeper_made)
		pthread_join(js->keeper, NULL);
	js->keeper_made = false;
	if (js->epoll < 0) {
		js->epoll = epoll_create1(EPOLL_CLOEXEC);
		js->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (js->epoll < 0 || js->bell < 0 ||
		    epoll_ctl(js->epoll, EPOLL_CTL_ADD, js->bell, &bell) != 0)
			return err_set(err, STATUS_UNAVAILABLE, "no files are left for workers");
	}
	if (pthread_create(&js->keeper, NULL, keeper_main, js) != 0)
		return err_set(err, STATUS_UNAVAILABLE, "no thread is left to keep workers");
	js->keeper_runs = true;
	js->keeper_made = true;
	js->ticking = false;
	return STATUS_OK;
}

/* ---- What callers see ---- */

/*
 * The program beside this one, or in libexec beside this one's folder. An empty path if that cannot
 * be told.
 */
static void
find_program(char path[PATH_MAX])
{
	static const char *const places[] = { "../libexec/" WORKER_PROGRAM, WORKER_PROGRAM };
	char self[PATH_MAX] = "";
	char *slash;

	path[0] = '\0';
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return;
	slash = strrchr(self, '/');
	if (!slash)
		return;
	slash[1] = '\0';
	/* The last place is the one that is named if the program is nowhere. */
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int n = snprintf(path, PATH_MAX, "%s%s", self, places[i]);

		if (n < 0 || n >= PATH_MAX)
			path[0] = '\0';
		else if (access(path, X_OK) == 0)
			return;
	}
}

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
		find_program(js->path);
	js->config.worker = js->path;
	pthread_mutex_init(&js->lock, NULL);
	*ret = js;
	return STATUS_OK;
}

void
js_free(struct js *js)
{
	if (!js)
		return;
	pthread_mutex_lock(&js->lock);
	js->ending = true;
	if (js->keeper_runs)
		ring(js);
	pthread_mutex_unlock(&js->lock);
	if (js->keeper_made)
		pthread_join(js->keeper, NULL);
	assert(is_needless(js));
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

	if (lane->waiting >= QUEUE_MOST) {
		METRIC_REFUSED("js_queue");
		return err_set(err, STATUS_TOO_MANY,
			       "too many calls of functions wait for a worker");
	}
	TRY(keeper_start(js, err));
	lane_append(js, run);
	pump(js);
	if (lane->grow || !js->ticking)
		ring(js);
	return STATUS_OK;
}

/* The caller gives up. False: the outcome has come meanwhile. With the lock held. */
static bool
give_up(struct js *js, struct js_run **run)
{
	if (event_is_set(&(*run)->done))
		return false;
	if ((*run)->queued) {
		lane_remove(js, *run);
	} else {
		(*run)->abandoned = true;
		*run = NULL;
	}
	return true;
}

enum status
js_pool_run(struct js_call *call, struct js_run **run, struct err *err)
{
	struct js *js = call->js;
	struct event *events[] = { &(*run)->done, call->stop };
	enum status status;
	bool gave_up = false;
	size_t which;

	pthread_mutex_lock(&js->lock);
	status = enqueue(js, *run, err);
	pthread_mutex_unlock(&js->lock);
	if (status != STATUS_OK)
		return status;
	which = event_wait_any(events, call->stop ? 2 : 1, call->deadline_ns);
	/* Also for its own sake: whoever has set the event may still hold the lock. */
	pthread_mutex_lock(&js->lock);
	if (which != 0)
		gave_up = give_up(js, run);
	pthread_mutex_unlock(&js->lock);
	if (!gave_up) {
		if ((*run)->status != STATUS_OK && err)
			*err = (*run)->err;
		return (*run)->status;
	}
	if (call->stop && event_is_set(call->stop))
		return err_set(err, STATUS_CANCELLED, "nobody waits for the function any more");
	return err_set(err, STATUS_TIMEOUT, "no worker was free for the function in time");
}
