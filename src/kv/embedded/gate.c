#include "kv/embedded/gate.h"

#include <assert.h>

#include "base/clock.h"
#include "loop/pause.h"
#include "loop/wait.h"

enum {
	CLOSE_LOOK_MS = 1, /* between two looks at the counters; uses take microseconds */
};

struct gate_waiter {
	struct event opened;
	struct gate_waiter *next;
};

void
gate_init(struct gate *g)
{
	atomic_init(&g->closed, false);
	for (size_t i = 0; i < METRIC_SHARDS; i++)
		atomic_init(&g->stripes[i].users, 0);
	pthread_mutex_init(&g->lock, NULL);
	g->waiters = NULL;
}

void
gate_fini(struct gate *g)
{
	assert(!g->waiters);
	pthread_mutex_destroy(&g->lock);
}

static bool
gate_is_empty(const struct gate *g)
{
	for (size_t i = 0; i < METRIC_SHARDS; i++)
		if (atomic_load_explicit(&g->stripes[i].users, memory_order_seq_cst))
			return false;
	return true;
}

/* Takes the waiter out of the list, unless gate_open() has emptied it. */
static void
gate_forget_waiter(struct gate *g, const struct gate_waiter *waiter)
{
	struct gate_waiter **at = &g->waiters;

	pthread_mutex_lock(&g->lock);
	while (*at && *at != waiter)
		at = &(*at)->next;
	if (*at)
		*at = waiter->next;
	pthread_mutex_unlock(&g->lock);
}

bool
gate_wait(struct gate *g, uint64_t deadline_ns)
{
	struct gate_waiter waiter;
	bool opened;

	event_init(&waiter.opened);
	pthread_mutex_lock(&g->lock);
	/* gate_open() clears `closed` under the lock: who enters the list here will be woken. */
	opened = !atomic_load_explicit(&g->closed, memory_order_seq_cst);
	if (!opened) {
		waiter.next = g->waiters;
		g->waiters = &waiter;
	}
	pthread_mutex_unlock(&g->lock);
	if (opened)
		return true;
	opened = event_wait(&waiter.opened, deadline_ns);
	/* Also if it was woken: the event is set under the lock, which must have been released. */
	gate_forget_waiter(g, &waiter);
	return opened;
}

void
gate_enter_when_open(struct gate *g, struct gate_pass *ret)
{
	while (!gate_enter(g, ret)) {
		bool opened = gate_wait(g, WAIT_FOREVER);

		assert(opened && "there is no deadline");
	}
}

bool
gate_close(struct gate *g, uint64_t deadline_ns)
{
	assert(!atomic_load_explicit(&g->closed, memory_order_relaxed));
	atomic_store_explicit(&g->closed, true, memory_order_seq_cst);
	while (!gate_is_empty(g)) {
		if (clock_mono_ns() >= deadline_ns) {
			gate_open(g);
			return false;
		}
		wait_pause(CLOSE_LOOK_MS);
	}
	return true;
}

void
gate_open(struct gate *g)
{
	struct gate_waiter *next;

	pthread_mutex_lock(&g->lock);
	atomic_store_explicit(&g->closed, false, memory_order_seq_cst);
	for (struct gate_waiter *w = g->waiters; w; w = next) {
		/* Read first: the waiter's stack is gone when it has seen the event. */
		next = w->next;
		event_set(&w->opened);
	}
	g->waiters = NULL;
	pthread_mutex_unlock(&g->lock);
}
