#include "server/loop.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/conn.h"
#include "server/server_int.h"

static void
on_clock(uv_timer_t *clock)
{
	struct loop *l = clock->data;
	struct timer *t;
	uint64_t next;

	l->clock_ns = WAIT_FOREVER;
	while ((t = timers_pop(&l->timers, clock_mono_ns())))
		t->fire(t);
	next = timers_next_ns(&l->timers);
	if (next < l->clock_ns) {
		uint64_t now = clock_mono_ns();

		l->clock_ns = next;
		uv_update_time(&l->uv);
		uv_timer_start(clock, on_clock, next > now ? (next - now) / CLOCK_NS_PER_MS + 1 : 0,
			       0);
	}
}

void
loop_set_timer(struct loop *l, struct timer *t, uint64_t at_ns)
{
	timers_set(&l->timers, t, at_ns);
	if (at_ns < l->clock_ns) {
		uint64_t now = clock_mono_ns();

		l->clock_ns = at_ns;
		uv_update_time(&l->uv);
		uv_timer_start(&l->clock, on_clock,
			       at_ns > now ? (at_ns - now) / CLOCK_NS_PER_MS + 1 : 0, 0);
	}
}

/* ---- How busy it is ---- */

void
loop_note_request(struct loop *l, const struct conn *c)
{
	atomic_fetch_add_explicit(&l->requests, 1, memory_order_relaxed);
	if (c == l->latest)
		return;
	l->latest = c;
	l->latest_since_ns = clock_mono_ns();
}

bool
loop_is_alone(const struct loop *l)
{
	return l->latest && l->running == 1 &&
	       clock_mono_ns() - l->latest_since_ns >= LOOP_ALONE_MS * CLOCK_NS_PER_MS;
}

/* ---- Ready tasks ---- */

static void
on_idle(uv_idle_t *idle)
{
	(void)idle;
}

/* Runs what is ready now, once; what becomes ready meanwhile waits until sockets had their turn. */
static void
run_ready(struct loop *l)
{
	struct task_queue batch = l->ready;
	struct task *t;

	l->ready = (struct task_queue){ 0 };
	while ((t = task_queue_pop(&batch)))
		task_continue(t);
	if (l->ready.first)
		uv_idle_start(&l->idle, on_idle);
	else
		uv_idle_stop(&l->idle);
}

static void
on_prepare(uv_prepare_t *prepare)
{
	run_ready(prepare->data);
}

static void
on_check(uv_check_t *check)
{
	run_ready(check->data);
}

void
loop_make_ready(struct loop *l, struct task *t)
{
	task_queue_push(&l->ready, t);
}

/* ---- Stopping ---- */

static void
end_if_empty(struct loop *l)
{
	if (l->stopping && l->conn_count == 0)
		uv_stop(&l->uv);
}

void
loop_conn_gone(struct loop *l)
{
	end_if_empty(l);
}

static void
give_up(struct timer *t)
{
	struct loop *l = (struct loop *)((char *)t - offsetof(struct loop, drain));

	log_event(LOG_LEVEL_WARN, "server_gave_up", "connections=%zu", l->conn_count);
	uv_stop(&l->uv);
}

static void
abort_all(struct loop *l)
{
	l->drain.fire = give_up;
	loop_set_timer(l, &l->drain, clock_after_ms(LOOP_ABORT_GRACE_MS));
	for (struct conn *c = l->conns, *next; c; c = next) {
		next = conn_next(c);
		conn_abort(c);
	}
}

static void
drain_timed_out(struct timer *t)
{
	abort_all((struct loop *)((char *)t - offsetof(struct loop, drain)));
}

static void
notice_stops(struct loop *l)
{
	unsigned stops = l->server ? server_stops(l->server) : 0;

	if (stops == l->stops_seen)
		return;
	if (l->stops_seen == 0) {
		l->stopping = true;
		server_close_listeners(l->server, l);
		loop_set_timer(l, &l->drain, clock_after_ms(l->config->drain_timeout_ms));
		for (struct conn *c = l->conns, *next; c; c = next) {
			next = conn_next(c);
			conn_stop(c);
		}
	}
	if (stops > 1)
		abort_all(l);
	l->stops_seen = stops;
	end_if_empty(l);
}

static void
on_async(uv_async_t *async)
{
	struct loop *l = async->data;
	struct task_queue ready;
	struct arrival *arrivals;
	struct task *t;

	mailbox_take(l->mailbox, &ready, &arrivals);
	while ((t = task_queue_pop(&ready)))
		task_queue_push(&l->ready, t);
	while (arrivals) {
		struct arrival *a = arrivals;

		arrivals = a->next;
		conn_open(l, a);
		mem_free(a);
	}
	notice_stops(l);
}

void
loop_notice(struct loop *l)
{
	uv_async_send(&l->async);
}

/* ---- Life ---- */

enum status
loop_init(struct loop *l, struct server *server, const struct server_config *config,
	  struct err *err)
{
	*l = (struct loop){ .server = server, .config = config, .clock_ns = WAIT_FOREVER };
	if (uv_loop_init(&l->uv) != 0)
		return err_set(err, STATUS_IO, "cannot make an event loop");
	l->uv.data = l;
	if (uv_async_init(&l->uv, &l->async, on_async) != 0)
		return err_set(err, STATUS_IO, "cannot make an event loop's signal");
	uv_prepare_init(&l->uv, &l->prepare);
	uv_check_init(&l->uv, &l->check);
	uv_idle_init(&l->uv, &l->idle);
	uv_timer_init(&l->uv, &l->clock);
	l->async.data = l->prepare.data = l->check.data = l->clock.data = l;
	uv_prepare_start(&l->prepare, on_prepare);
	uv_check_start(&l->check, on_check);
	l->mailbox = mailbox_new(&l->async);
	l->read_buffer = mem_alloc(LOOP_READ_BYTES);
	if (!l->mailbox || !l->read_buffer ||
	    timers_attach(&l->timers, &l->drain, drain_timed_out) != STATUS_OK)
		return err_set(err, STATUS_NOMEM, "out of memory for an event loop");
	return STATUS_OK;
}

static void
drop_tasks(struct task *idle)
{
	while (idle) {
		struct task *next = idle->next_idle;

		task_drop(idle);
		idle = next;
	}
}

/* From now on nobody can reach the loop from outside. */
static void
close_mailbox(struct loop *l)
{
	struct task_queue ready;
	struct arrival *arrivals;
	struct task *t;

	mailbox_close(l->mailbox, &ready, &arrivals);
	while ((t = task_queue_pop(&ready)) || (t = task_queue_pop(&l->ready)))
		waiter_unref(&t->waiter);
	while (arrivals) {
		struct arrival *a = arrivals;

		arrivals = a->next;
		close(a->fd);
		server_conn_closed(l->server);
		mem_free(a);
	}
}

static void
on_walk(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void
loop_fini(struct loop *l)
{
	if (!l->uv.data)
		return;
	assert(l->conn_count == 0);
	if (l->mailbox)
		close_mailbox(l);
	drop_tasks(l->idle_tasks);
	conn_drop_spares(l);
	uv_walk(&l->uv, on_walk, NULL);
	uv_run(&l->uv, UV_RUN_DEFAULT);
	uv_loop_close(&l->uv);
	mailbox_unref(l->mailbox);
	timers_fini(&l->timers);
	mem_free(l->read_buffer);
}

void
loop_run(struct loop *l)
{
	task_set_thread_mailbox(l->mailbox);
	uv_run(&l->uv, UV_RUN_DEFAULT);
	close_mailbox(l);
	task_set_thread_mailbox(NULL);
}

struct pool *
loop_pool(struct loop *l)
{
	return l->server ? server_pool(l->server) : l->pool;
}

struct task *
loop_take_task(struct loop *l)
{
	struct task *t = l->idle_tasks;

	if (!t)
		return task_new(l, l->config->request_bytes);
	l->idle_tasks = t->next_idle;
	l->idle_task_count--;
	return t;
}

void
loop_put_task(struct loop *l, struct task *t)
{
	arena_clear(t->arena);
	arena_set_part(t->arena, NULL);
	if (l->idle_task_count >= LOOP_IDLE_TASKS) {
		task_drop(t);
		return;
	}
	t->next_idle = l->idle_tasks;
	l->idle_tasks = t;
	l->idle_task_count++;
}

struct str
loop_date(struct loop *l)
{
	uint64_t now_s = clock_wall_ms() / 1000;

	if (now_s != l->date_s || !l->date[0]) {
		static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
		static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
						  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
		time_t t = (time_t)now_s;
		struct tm tm;

		gmtime_r(&t, &tm);
		snprintf(l->date, sizeof(l->date), "%s, %02d %s %04d %02d:%02d:%02d GMT",
			 days[tm.tm_wday], tm.tm_mday % 100, months[tm.tm_mon],
			 (tm.tm_year + 1900) % 10000, tm.tm_hour % 100, tm.tm_min % 100,
			 tm.tm_sec % 100);
		l->date_s = now_s;
	}
	return str_from_cstr(l->date);
}
