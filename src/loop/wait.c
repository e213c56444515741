#include "loop/wait.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/timespec.h"
#include "loop/pause.h"

/*
 * ---- The states of an event ----
 *
 *   NULL ──register──→ waiter ──set──→ EVENT_SET        NULL ──set──→ EVENT_SET
 *     ↑──unregister──────┘
 *
 * `state` moves by atomic exchanges only. While it holds a waiter, it owns one reference to it. The
 * setter that takes the waiter out owns that reference from then on, and with it the right to wake
 * the waiter. It never looks at the event again: as soon as the exchange has put EVENT_SET there,
 * the waiter may return and free the event.
 *
 * The exchanges are acquire and release, so what a thread wrote before event_set() is visible to
 * the thread that sees the event set.
 */
#define EVENT_SET ((struct waiter *)(uintptr_t)1)

struct thread_waiter {
	struct waiter base;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool woken;
};

static _Thread_local struct waiter *current;
static _Thread_local struct thread_waiter *own;
static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void
thread_park(struct waiter *w, uint64_t deadline_ns)
{
	struct thread_waiter *t = (struct thread_waiter *)w;
	const struct timespec until = timespec_of_ns(deadline_ns);

	pthread_mutex_lock(&t->lock);
	while (!t->woken) {
		if (deadline_ns == WAIT_FOREVER)
			pthread_cond_wait(&t->cond, &t->lock);
		else if (pthread_cond_timedwait(&t->cond, &t->lock, &until) == ETIMEDOUT)
			break;
	}
	t->woken = false;
	pthread_mutex_unlock(&t->lock);
}

static void
thread_wake(struct waiter *w)
{
	struct thread_waiter *t = (struct thread_waiter *)w;

	pthread_mutex_lock(&t->lock);
	t->woken = true;
	pthread_cond_signal(&t->cond);
	pthread_mutex_unlock(&t->lock);
}

static void
thread_destroy(struct waiter *w)
{
	struct thread_waiter *t = (struct thread_waiter *)w;

	pthread_cond_destroy(&t->cond);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static const struct waiter_ops thread_ops = {
	.park = thread_park,
	.wake = thread_wake,
	.destroy = thread_destroy,
};

static void
thread_drop_waiter(void *arg)
{
	own = NULL;
	waiter_unref(arg);
}

static void
thread_create_key(void)
{
	if (pthread_key_create(&own_key, thread_drop_waiter) != 0)
		abort();
}

/*
 * Waiting has no way to fail, and a thread cannot wait without a waiter. So the process ends if
 * there is no memory for these few bytes when a thread first waits.
 */
static struct waiter *
thread_own_waiter(void)
{
	pthread_condattr_t attr;

	if (own)
		return &own->base;
	pthread_once(&own_once, thread_create_key);
	own = malloc(sizeof(*own));
	if (!own)
		abort();
	waiter_init(&own->base, &thread_ops);
	own->woken = false;
	pthread_mutex_init(&own->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&own->cond, &attr);
	pthread_condattr_destroy(&attr);
	pthread_setspecific(own_key, own);
	return &own->base;
}

void
waiter_init(struct waiter *w, const struct waiter_ops *ops)
{
	w->ops = ops;
	atomic_init(&w->refs, 1);
}

void
waiter_ref(struct waiter *w)
{
	atomic_fetch_add_explicit(&w->refs, 1, memory_order_relaxed);
}

void
waiter_unref(struct waiter *w)
{
	if (atomic_fetch_sub_explicit(&w->refs, 1, memory_order_acq_rel) == 1)
		w->ops->destroy(w);
}

void
waiter_set_current(struct waiter *w)
{
	current = w;
}

void
event_init(struct event *e)
{
	atomic_init(&e->state, NULL);
}

bool
event_is_set(const struct event *e)
{
	return atomic_load_explicit(&e->state, memory_order_acquire) == EVENT_SET;
}

void
event_set(struct event *e)
{
	struct waiter *w = atomic_exchange_explicit(&e->state, EVENT_SET, memory_order_acq_rel);

	if (!w || w == EVENT_SET)
		return; /* nobody waits, or it was set before */
	assert(atomic_load(&w->refs) > 0);
	/* `e` may be gone by now. The reference that it held keeps the waiter until the wake. */
	w->ops->wake(w);
	waiter_unref(w);
}

/* False if the event is set already; then nothing is registered. */
static bool
event_register(struct event *e, struct waiter *w)
{
	struct waiter *expected = NULL;

	waiter_ref(w);
	if (atomic_compare_exchange_strong_explicit(&e->state, &expected, w, memory_order_acq_rel,
						    memory_order_acquire))
		return true;
	waiter_unref(w); /* never the last reference: the caller is this waiter, and has one */
	assert(expected == EVENT_SET && "an event has one waiter at a time");
	return false;
}

static void
event_unregister(struct event *e, struct waiter *w)
{
	struct waiter *expected = w;

	/*
	 * If the exchange fails, a setter has taken the waiter and its reference out, and its wake
	 * may still come. The waiter then returns from a later park for no reason, which every loop
	 * around park() allows for.
	 */
	if (atomic_compare_exchange_strong_explicit(&e->state, &expected, NULL,
						    memory_order_acq_rel, memory_order_acquire))
		waiter_unref(w);
}

size_t
event_wait_any(struct event *const *events, size_t n, uint64_t deadline_ns)
{
	struct waiter *w = current ? current : thread_own_waiter();
	size_t registered = 0;
	size_t found = n;

	/*
	 * Register with all before looking at any: an event that is set after that wakes this
	 * waiter, also if it has not parked yet. So nothing is missed between look and park.
	 */
	while (registered < n) {
		if (!event_register(events[registered], w)) {
			found = registered;
			break;
		}
		registered++;
	}
	while (found == n) {
		for (size_t i = 0; i < n && found == n; i++)
			if (event_is_set(events[i]))
				found = i;
		if (found < n || (deadline_ns != WAIT_FOREVER && clock_mono_ns() >= deadline_ns))
			break;
		w->ops->park(w, deadline_ns);
	}
	for (size_t i = 0; i < registered; i++)
		event_unregister(events[i], w);
	return found;
}

bool
event_wait(struct event *e, uint64_t deadline_ns)
{
	if (event_is_set(e))
		return true;
	return event_wait_any(&e, 1, deadline_ns) == 0;
}

/* ---- Pauses ---- */

void
wait_pause_until(uint64_t until_ns)
{
	struct event never;

	event_init(&never);
	if (clock_mono_ns() < until_ns)
		(void)event_wait(&never, until_ns);
}

void
wait_pause(uint64_t ms)
{
	wait_pause_until(clock_after_ms(ms));
}

void
wait_offload(void (*fn)(void *arg), void *arg)
{
	if (current && current->ops->offload)
		current->ops->offload(current, fn, arg);
	else
		fn(arg);
}

void
wait_compute(void (*fn)(void *arg), void *arg)
{
	/* On the fiber's stack: the fiber does not return before `done` is set. */
	struct wait_work work = { .fn = fn, .arg = arg, .computes = true };

	if (!current || !current->ops->begin) {
		fn(arg);
		return;
	}
	event_init(&work.done);
	current->ops->begin(current, &work);
	event_wait(&work.done, WAIT_FOREVER);
}

bool
wait_begin(struct wait_work *work, void (*fn)(void *arg), void *arg)
{
	if (!current || !current->ops->begin)
		return false;
	*work = (struct wait_work){ .fn = fn, .arg = arg };
	event_init(&work->done);
	current->ops->begin(current, work);
	return true;
}

bool
wait_end(struct wait_work *work)
{
	/*
	 * The pool's lock decides: either the work was still queued and is taken back here, or a
	 * thread has begun it and will set `done`. Until then `work` must stay where it is.
	 */
	if (!event_is_set(&work->done) && work->take_back(work))
		return false;
	event_wait(&work->done, WAIT_FOREVER);
	return true;
}

bool
wait_on_fiber(void)
{
	return current && current->ops->offload;
}

bool
wait_is_alone(void)
{
	return current && current->ops->is_alone && current->ops->is_alone(current);
}

void
wait_yield(void)
{
	if (current && current->ops->yield)
		current->ops->yield(current);
}

void
wait_trim(void)
{
	if (current && current->ops->trim)
		current->ops->trim(current);
}
