/* The keeper is the thread that reads the workers' messages and supervises them. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/thread.h"
#include "js/pool_int.h"

enum {
	LINGER_MS = 1000, /* so long after a call the next one need not wake it */
	LONG_CALL_MS = 1, /* a call that has taken less cannot have left much memory behind */
	EVENTS_AT_ONCE = 16,
	LOG_LINES_A_SECOND = 100, /* of log() of functions */
};

/* ---- Messages of workers. The keeper's thread, without the lock ---- */

/* Logs a message that a function wrote by log(). */
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

/* Reads the outcome of a call out of its answer. False if the answer is malformed. */
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

/* Handles one message of a worker. False if the worker was killed for it. */
static bool
handle_letter(struct js *js, struct js_worker *w, const struct js_worker_letter *letter)
{
	bool good = true;
	uint64_t now;

	if (letter->news == JS_WORKER_LOG) {
		log_text(js, w, letter->text);
		return true;
	}
	if (letter->news == JS_WORKER_ANSWERED)
		good = read_answer(w->run, letter);
	pthread_mutex_lock(&js->lock);
	/*
	 * An answer is refused if the call was not sent completely. If `sending` is still set, the
	 * caller has sent everything and has only not cleared the flag yet. A hostile worker that
	 * answers early loses the rest of the call, which harms nobody else.
	 */
	if (letter->news == JS_WORKER_GARBAGE || !good ||
	    (letter->news == JS_WORKER_ANSWERED && !w->sending && !js_worker_has_sent_run(w))) {
		pool_worker_fail(js, w, JS_END_GARBAGE);
		good = false;
	} else {
		if (letter->news == JS_WORKER_ANSWERED)
			pool_worker_finish_run(js, w);
		js->start_status = STATUS_OK;
		now = clock_mono_ns();
		if (now - w->since_ns >= LONG_CALL_MS * CLOCK_NS_PER_MS)
			js->check_ns = 0;
		js_worker_advance(w, now);
		if (w->gave_way) {
			pool_worker_retire(js, w);
			good = false;
		}
	}
	pool_pump(js);
	pthread_mutex_unlock(&js->lock);
	return good;
}

static void
lose_worker(struct js *js, struct js_worker *w, enum js_worker_news news)
{
	pthread_mutex_lock(&js->lock);
	pool_worker_fail(js, w, news == JS_WORKER_LOST ? JS_END_LOST : JS_END_GARBAGE);
	pool_pump(js);
	pthread_mutex_unlock(&js->lock);
}

/* Sends the part of a call that did not fit into the socket before. */
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
	pool_wait_for_socket(js, w);
	pool_pump(js);
	pthread_mutex_unlock(&js->lock);
}

/* Reads the worker's next message. Needs the lock, because it looks at the worker's state. */
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

/* The time to wait for sockets; -1: without a limit. Called with the lock held. */
static int
wait_ms(const struct js *js)
{
	uint64_t now = clock_mono_ns();
	uint64_t until = UINT64_MAX;

	if (js->dying || js->ending || now < js->busy_ns + LINGER_MS * CLOCK_NS_PER_MS)
		return POOL_TICK_MS;
	for (size_t i = 0; i < JS_LANES; i++)
		for (const struct js_worker *w = js->lanes[i].workers; w; w = w->next) {
			uint64_t end = w->since_ns + js->config.idle_ms * CLOCK_NS_PER_MS;

			if (w->state != JS_WORKER_IDLE)
				return POOL_TICK_MS;
			until = end < until ? end : until;
		}
	if (until == UINT64_MAX)
		return -1;
	until = until > now ? (until - now) / CLOCK_NS_PER_MS + 1 : 0;
	return until < INT_MAX ? (int)until : INT_MAX;
}

/* True if the keeper has nothing left to do. Called with the lock held. */
bool
pool_is_needless(const struct js *js)
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
			pool_worker_fail(js, js->lanes[i].workers, JS_END_STOP);
}

/* Reading how much memory workers have takes longer than most calls. */
static void
check_workers_in_time(struct js *js)
{
	uint64_t now = clock_mono_ns();

	if (now < js->check_ns)
		return;
	js->check_ns = now + POOL_TICK_MS * CLOCK_NS_PER_MS;
	pool_check_workers(js);
}

static void *
keeper_main(void *arg)
{
	struct js *js = arg;
	struct epoll_event events[EVENTS_AT_ONCE];
	uint64_t rings;

	thread_set_name("js keeper");
	pthread_mutex_lock(&js->lock);
	for (;;) {
		int timeout_ms;
		int n;

		if (js->ending)
			kill_all(js);
		else
			pool_grow_lanes(js);
		pool_free_dead(js);
		check_workers_in_time(js);
		pool_pump(js);
		if (pool_is_needless(js))
			break;
		timeout_ms = wait_ms(js);
		js->ticking = timeout_ms == POOL_TICK_MS;
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
enum status
pool_keeper_start(struct js *js, struct err *err)
{
	struct epoll_event bell = { .events = EPOLLIN };

	if (js->keeper_runs)
		return STATUS_OK;
	/* The keeper ends without the lock, so joining it while holding the lock cannot block. */
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
