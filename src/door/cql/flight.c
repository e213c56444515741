#include "door/cql/flight.h"

#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"
#include "loop/task.h"
#include "net/beside.h"
#include "serve/beside.h"
#include "net/memory.h"
#include "serve/settle.h"

enum {
	KEPT = 4, /* with their buffers, of a connection that rests */
	IDLE_LOOK_MS = 60 * 60 * 1000,
};

static void
append(struct cql_flight ***end, struct cql_flight *fl)
{
	fl->next = NULL;
	**end = fl;
	*end = &fl->next;
}

static struct cql_flight *
take_first(struct cql_flight **first, struct cql_flight ***end)
{
	struct cql_flight *fl = *first;

	if (!fl)
		return NULL;
	*first = fl->next;
	if (!*first)
		*end = first;
	return fl;
}

/* ---- One ---- */

static void
flight_free(struct cql_flight *fl)
{
	buf_release(&fl->body);
	buf_release(&fl->out);
	mem_free(fl);
}

/* Keeps it for the next one. Clients that send many together mostly do so again at once. */
static void
flight_spare(struct cql_client *c, struct cql_flight *fl)
{
	const struct net_session *session = net_stream_session(c->stream);

	if (c->flights.spare_count >= KEPT && net_session_is_pressed(session)) {
		flight_free(fl);
		return;
	}
	settle_buffer(&fl->out);
	fl->next = c->flights.spare;
	c->flights.spare = fl;
	c->flights.spare_count++;
}

static struct cql_flight *
flight_take(struct cql_client *c)
{
	struct budget_part *part = c->out.part;
	struct cql_flight *fl = c->flights.spare;

	if (fl) {
		c->flights.spare = fl->next;
		c->flights.spare_count--;
		return fl;
	}
	fl = mem_zalloc(sizeof(*fl));
	if (!fl)
		return NULL;
	fl->body = BUF_INIT_OF(CQL_IN_FLIGHT_BYTES, part);
	fl->out = BUF_INIT_OF(CQL_REPLY_BYTES, part);
	return fl;
}

struct cql_flight *
flight_new(struct cql_client *c, const struct input_frame *f)
{
	struct cql_flight *fl = flight_take(c);

	if (!fl)
		return NULL;
	buf_clear(&fl->body);
	buf_append_str(&fl->body, f->body);
	fl->from = frame_begin(&fl->out, f->header.version, f->header.stream, FRAME_RESULT);
	fl->waited = false;
	fl->asked_bytes = 0;
	fl->behind = NULL;
	fl->task = NULL;
	if (buf_status(&fl->body) == STATUS_OK && buf_status(&fl->out) == STATUS_OK)
		return fl;
	flight_spare(c, fl);
	return NULL;
}

void
flight_drop(struct cql_client *c, struct cql_flight *fl)
{
	flight_spare(c, fl);
}

bool
flight_take_fiber(struct cql_client *c, struct cql_flight *fl)
{
	struct net_session *session = net_stream_session(c->stream);
	struct task *task = net_beside_take(session);
	size_t count = 0;

	if (!task)
		return false;
	for (const struct cql_flight *each = fl; each; each = each->behind)
		count++;
	if (!beside_enter(&c->entry, count)) {
		net_beside_put(session, task);
		return false;
	}
	fl->task = task;
	for (; fl; fl = fl->behind)
		fl->arena = task->arena;
	return true;
}

/* The first that waits goes on where all others do, too, and nothing is left to be sent. */
static void
flights_call_next(struct cql_flights *all)
{
	struct cql_flight *fl;

	assert(all->waiting_count <= all->count);
	if (all->waiting_count < all->count)
		return;
	assert(!all->only);
	fl = take_first(&all->waiting, &all->waiting_end);
	if (fl) {
		all->waiting_count--;
		all->only = fl;
		event_set(&fl->turn);
	}
}

static void
flight_run(void *arg)
{
	struct cql_flight *fl = arg;

	fl->run(fl);
}

/* Wakes the connection's fiber where it waits for its flights. */
static void
flights_wake(struct cql_client *c)
{
	struct cql_flights *all = &c->flights;

	if (all->rests)
		clients_signal(&c->entry, 0);
	else if (all->ended)
		event_set(all->ended);
	all->rests = false; /* the first one wakes it */
}

/* On the loop, behind its fiber: nothing can come between. */
static void
flight_done(void *arg)
{
	struct cql_flight *fl = arg;
	struct cql_client *c = fl->r.client;
	struct cql_flights *all = &c->flights;

	net_beside_put(net_stream_session(c->stream), fl->task);
	for (; fl; fl = fl->behind)
		append(&all->done_end, fl);
	flights_wake(c);
}

void
flight_begin(struct cql_flight *fl, void (*run)(struct cql_flight *fl))
{
	struct cql_client *c = fl->r.client;

	fl->run = run;
	for (const struct cql_flight *each = fl; each; each = each->behind)
		c->flights.count++;
	task_start_soon(fl->task, flight_run, flight_done, fl);
}

bool
flight_wait_for_others(struct cql_flight *fl)
{
	struct cql_flights *all = &fl->r.client->flights;

	if (fl->waited || all->count == 1)
		return false;
	fl->waited = true;
	event_init(&fl->turn);
	append(&all->waiting_end, fl);
	all->waiting_count++;
	flights_call_next(all);
	event_wait(&fl->turn, WAIT_FOREVER);
	return true;
}

bool
flight_await_memory(struct cql_flight *fl)
{
	struct cql_client *c = fl->r.client;
	struct cql_flights *all = &c->flights;

	assert(!all->only || all->only == fl);
	assert(all->count == all->waiting_count + 1 && !all->asks);
	all->only = fl; /* no other one begins meanwhile */
	all->asks = fl;
	event_init(&fl->turn);
	flights_wake(c);
	event_wait(&fl->turn, WAIT_FOREVER);
	return fl->gets;
}

/* On the connection's fiber, which alone may wait for memory. */
static void
flights_await_memory(struct cql_client *c)
{
	struct cql_flight *fl = c->flights.asks;
	struct net_session *session = net_stream_session(c->stream);

	flights_trim(c, 0);
	fl->gets = !c->ends && net_memory_await_more(session, &fl->asked_bytes) == STATUS_OK;
	c->flights.asks = NULL;
	event_set(&fl->turn);
}

/* ---- All of a client ---- */

bool
flights_have_room(const struct cql_client *c)
{
	return c->flights.count < CQL_IN_FLIGHT && !c->flights.waiting && !c->flights.only;
}

void
flights_send(struct cql_client *c)
{
	struct cql_flights *all = &c->flights;
	struct cql_flight *fl;

	/* Writing may wait for the client, and others are done meanwhile. */
	while ((fl = take_first(&all->done, &all->done_end))) {
		/* What was set aside and is not used is for others while the client reads. */
		if (all->only == fl)
			budget_settle(fl->out.part);
		if (fl->r.again) {
			append(&all->left_end, fl);
		} else {
			if (!c->ends && cql_client_write(c, buf_str(&fl->out)) != STATUS_OK)
				c->ends = true;
			flight_spare(c, fl);
		}
		all->count--;
		beside_leave(&c->entry);
		if (all->only == fl)
			all->only = NULL;
		flights_call_next(all);
	}
}

struct cql_flight *
flights_take_left(struct cql_client *c)
{
	return take_first(&c->flights.left, &c->flights.left_end);
}

/*
 * Waits until one is done, for a client that says nothing more or whose next frame has to wait;
 * meanwhile waits for the memory that one lacks.
 */
static void
wait_for_done(struct cql_client *c)
{
	struct cql_flights *all = &c->flights;
	struct event ended;

	while (!all->done) {
		if (all->asks) {
			flights_await_memory(c);
			continue;
		}
		event_init(&ended);
		all->ended = &ended; /* on this stack: nobody uses it behind the wait */
		event_wait(&ended, WAIT_FOREVER);
		all->ended = NULL;
	}
}

void
flights_wait(struct cql_client *c)
{
	struct cql_flights *all = &c->flights;
	struct event *wake;

	assert(all->count);
	if (!c->ends && cql_client_send_events(c) != STATUS_OK)
		c->ends = true;
	if (all->done)
		return;
	if (c->ends || !flights_have_room(c) || !cql_input_grows(c) ||
	    net_stream_is_leaving(c->stream)) {
		wait_for_done(c);
		return;
	}
	wake = clients_wait_begin(&c->entry);
	if (wake) {
		all->rests = true;
		net_stream_rest(c->stream, NET_REST_READING, wake, clock_after_ms(IDLE_LOOK_MS));
		all->rests = false;
	}
	(void)clients_wait_end(&c->entry);
}

void
flights_finish_one(struct cql_client *c)
{
	assert(c->flights.count);
	wait_for_done(c);
	flights_send(c);
}

void
flights_finish(struct cql_client *c)
{
	while (c->flights.count)
		flights_finish_one(c);
}

bool
flights_rest(struct cql_client *c)
{
	uint64_t until_ns = clock_after_ms(NET_STREAM_PATIENCE_MS);
	struct event *wake;
	struct str in;

	assert(!c->flights.count);
	if (c->flights.spare_count <= KEPT || !cql_input_grows(c) ||
	    net_stream_is_leaving(c->stream) || net_stream_peek(c->stream, 0, &in) != STATUS_OK ||
	    in.len)
		return false;
	if (cql_client_send_events(c) != STATUS_OK)
		c->ends = true;
	wake = clients_wait_begin(&c->entry);
	if (wake && !c->ends)
		net_stream_rest(c->stream, NET_REST_IDLE, wake, until_ns);
	(void)clients_wait_end(&c->entry);
	if (clock_mono_ns() >= until_ns)
		flights_trim(c, KEPT);
	return true;
}

void
flights_trim(struct cql_client *c, size_t most)
{
	struct cql_flights *all = &c->flights;
	struct cql_flight *fl;

	while (all->spare_count > most) {
		fl = all->spare;
		all->spare = fl->next;
		all->spare_count--;
		flight_free(fl);
	}
}
