#include "server/task.h"

#include <assert.h>

#include "base/mem.h"
#include "server/loop.h"
#include "server/pool.h"

static _Thread_local struct mailbox *thread_mailbox;

void
task_set_thread_mailbox(struct mailbox *m)
{
	thread_mailbox = m;
}

/* ---- Mailbox ---- */

struct mailbox *
mailbox_new(uv_async_t *async)
{
	struct mailbox *m = mem_zalloc(sizeof(*m));

	if (!m)
		return NULL;
	atomic_init(&m->refs, 1);
	pthread_mutex_init(&m->lock, NULL);
	m->async = async;
	return m;
}

void
mailbox_unref(struct mailbox *m)
{
	if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
		return;
	assert(!m->ready.first && !m->arrivals);
	pthread_mutex_destroy(&m->lock);
	mem_free(m);
}

static void
take_locked(struct mailbox *m, struct task_queue *ret_ready, struct arrival **ret_arrivals)
{
	*ret_ready = m->ready;
	*ret_arrivals = m->arrivals;
	m->ready = (struct task_queue){ 0 };
	m->arrivals = NULL;
}

void
mailbox_take(struct mailbox *m, struct task_queue *ret_ready, struct arrival **ret_arrivals)
{
	pthread_mutex_lock(&m->lock);
	take_locked(m, ret_ready, ret_arrivals);
	pthread_mutex_unlock(&m->lock);
}

void
mailbox_close(struct mailbox *m, struct task_queue *ret_ready, struct arrival **ret_arrivals)
{
	pthread_mutex_lock(&m->lock);
	m->closed = true;
	take_locked(m, ret_ready, ret_arrivals);
	pthread_mutex_unlock(&m->lock);
}

/* One signal a batch: whoever finds it empty rings; the loop empties it whole. */
static bool
is_empty(const struct mailbox *m)
{
	return !m->ready.first && !m->arrivals;
}

bool
mailbox_post_arrival(struct mailbox *m, struct arrival *a)
{
	bool open;

	pthread_mutex_lock(&m->lock);
	open = !m->closed;
	if (open) {
		bool ring = is_empty(m);

		a->next = m->arrivals;
		m->arrivals = a;
		if (ring)
			uv_async_send(m->async);
	}
	pthread_mutex_unlock(&m->lock);
	return open;
}

static bool
mailbox_post_task(struct mailbox *m, struct task *t)
{
	bool open;

	pthread_mutex_lock(&m->lock);
	open = !m->closed;
	if (open) {
		bool ring = is_empty(m);

		task_queue_push(&m->ready, t);
		if (ring)
			uv_async_send(m->async);
	}
	pthread_mutex_unlock(&m->lock);
	return open;
}

/* ---- Ready queues ---- */

void
task_queue_push(struct task_queue *q, struct task *t)
{
	t->next = NULL;
	if (q->last)
		q->last->next = t;
	else
		q->first = t;
	q->last = t;
}

struct task *
task_queue_pop(struct task_queue *q)
{
	struct task *t = q->first;

	if (!t)
		return NULL;
	q->first = t->next;
	if (!q->first)
		q->last = NULL;
	t->next = NULL;
	return t;
}

/*
 * ---- The waiter ----
 *
 * A wake puts the task into a ready queue, once; the loop empties the queues when no fiber runs, so
 * that a wake that comes before the park is found there right after it. An entry whose task has
 * gone on to something else enters it for no reason, which every park allows for.
 */

static void
task_wake(struct waiter *w)
{
	struct task *t = (struct task *)w;

	if (atomic_exchange(&t->queued, true))
		return;
	waiter_ref(w);
	if (thread_mailbox == t->mailbox)
		loop_make_ready(t->loop, t);
	else if (!mailbox_post_task(t->mailbox, t))
		waiter_unref(w);
}

static void
task_leave(struct task *t)
{
	t->parked = true;
	fiber_leave(t->fiber);
	t->parked = false;
}

static void
task_park(struct waiter *w, uint64_t deadline_ns)
{
	struct task *t = (struct task *)w;

	loop_set_timer(t->loop, &t->timer, deadline_ns);
	task_leave(t);
	loop_set_timer(t->loop, &t->timer, WAIT_FOREVER);
}

static void
task_yield(struct waiter *w)
{
	task_wake(w);
	task_leave((struct task *)w);
}

static void
task_offload(struct waiter *w, void (*fn)(void *arg), void *arg)
{
	struct task *t = (struct task *)w;

	pool_run(loop_pool(t->loop), fn, arg);
}

static void
task_begin(struct waiter *w, struct wait_work *work)
{
	struct task *t = (struct task *)w;

	pool_begin(loop_pool(t->loop), work);
}

static bool
task_is_alone(struct waiter *w)
{
	return loop_is_alone(((struct task *)w)->loop);
}

/* On whatever thread held the last reference: must not touch the loop. */
static void
task_destroy(struct waiter *w)
{
	struct task *t = (struct task *)w;

	fiber_free(t->fiber);
	arena_free(t->arena);
	mailbox_unref(t->mailbox);
	mem_free(t);
}

static const struct waiter_ops task_ops = {
	.park = task_park,
	.wake = task_wake,
	.offload = task_offload,
	.begin = task_begin,
	.yield = task_yield,
	.is_alone = task_is_alone,
	.destroy = task_destroy,
};

/* ---- Running ---- */

static void
task_enter(struct task *t)
{
	bool done;

	waiter_set_current(&t->waiter);
	done = fiber_enter(t->fiber);
	waiter_set_current(NULL);
	if (done) {
		t->loop->running--;
		t->done(t->arg);
	}
}

static void
task_timer_fired(struct timer *timer)
{
	struct task *t = (struct task *)((char *)timer - offsetof(struct task, timer));

	if (t->parked)
		task_enter(t);
}

struct task *
task_new(struct loop *loop, size_t arena_bytes)
{
	struct task *t = mem_zalloc(sizeof(*t));

	if (!t)
		return NULL;
	t->loop = loop;
	t->fiber = fiber_new();
	t->arena = arena_new(arena_bytes);
	if (!t->fiber || !t->arena ||
	    timers_attach(&loop->timers, &t->timer, task_timer_fired) != STATUS_OK) {
		fiber_free(t->fiber);
		arena_free(t->arena);
		mem_free(t);
		return NULL;
	}
	waiter_init(&t->waiter, &task_ops);
	t->mailbox = loop->mailbox;
	atomic_fetch_add_explicit(&t->mailbox->refs, 1, memory_order_relaxed);
	return t;
}

void
task_drop(struct task *t)
{
	timers_detach(&t->loop->timers, &t->timer);
	waiter_unref(&t->waiter);
}

void
task_start(struct task *t, void (*fn)(void *arg), void (*done)(void *arg), void *arg)
{
	t->done = done;
	t->arg = arg;
	t->loop->running++;
	fiber_start(t->fiber, fn, arg);
	task_enter(t);
}

void
task_continue(struct task *t)
{
	atomic_store(&t->queued, false);
	if (t->parked)
		task_enter(t);
	waiter_unref(&t->waiter);
}
