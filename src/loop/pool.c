#include "loop/pool.h"

#include <assert.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/thread.h"
#include "loop/wait.h"
#include "loop/watchdog.h"

METRIC_GAUGE(queued_works, "frond_pool_queue_length", METRIC_NUMBER,
	     "Pieces of work that blocks which no thread of the pool has begun.");
METRIC_HISTOGRAM(wait_time, "frond_pool_wait_duration_seconds", METRIC_SECONDS,
		 "Time that work waited for a thread of the pool.", METRIC_TIME_LEAST,
		 METRIC_TIME_BUCKETS);

/*
 * Work that blocks and work that computes have threads of their own, so that no read waits behind a
 * hash. A client waits for either, so both have the priority of the loops: at a lower one the work
 * would starve as soon as other processes keep all processors busy. Loops have shorter turns
 * (thread_set_turn()) and are woken before a thread that computes. Threads for computing are
 * started when the first such work comes.
 */
struct pool_lane {
	struct pool *pool;
	pthread_cond_t filled;
	/* No thread has begun these. Their number is bounded: a fiber has a few at most. */
	struct wait_work *first;
	struct wait_work *last;
	unsigned threads;
	pthread_t *thread; /* room for the pool's `threads` */
};

struct pool {
	pthread_mutex_t lock;
	struct pool_lane blocks;
	struct pool_lane computes;
	bool ending;
	unsigned threads; /* of each lane, at most */
	pthread_t thread[];
};

static struct pool_lane *
pool_lane_of(struct wait_work *work)
{
	struct pool *p = work->pool;

	return work->computes ? &p->computes : &p->blocks;
}

/* With the lock held. */
static void
pool_append_locked(struct pool_lane *lane, struct wait_work *work)
{
	work->prev = lane->last;
	if (lane->last)
		lane->last->next = work;
	else
		lane->first = work;
	lane->last = work;
	work->queued = true;
	work->queued_ns = clock_mono_ns();
	metric_gauge_add(&queued_works, 1);
}

/* With the lock held. */
static void
pool_remove_locked(struct pool_lane *lane, struct wait_work *work)
{
	if (work->prev)
		work->prev->next = work->next;
	else
		lane->first = work->next;
	if (work->next)
		work->next->prev = work->prev;
	else
		lane->last = work->prev;
	work->queued = false;
	metric_gauge_add(&queued_works, -1);
}

static void *
pool_main(void *arg)
{
	static const struct watchdog_label unnamed;
	struct pool_lane *lane = arg;
	struct pool *p = lane->pool;
	struct watchdog_post post;

	/* A loop may have started the thread: its short turns are not for work that computes. */
	thread_clear_turn();
	thread_set_name(lane == &p->computes ? "pool computes" : "pool blocks");
	watchdog_add(&post, "pool", true);
	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct wait_work *work = lane->first;

		if (!work) {
			if (p->ending)
				break;
			pthread_cond_wait(&lane->filled, &p->lock);
			continue;
		}
		pool_remove_locked(lane, work);
		pthread_mutex_unlock(&p->lock);
		metric_observe(&wait_time, clock_mono_ns() - work->queued_ns);
		assert(!work->queued);
		watchdog_begin(&post, work->label ? work->label : &unnamed);
		work->fn(work->arg);
		watchdog_end(&post);
		event_set(&work->done); /* its fiber may go on at once: `work` may be gone */
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	watchdog_remove(&post);
	return NULL;
}

static void
pool_init_lane(struct pool *p, struct pool_lane *lane, pthread_t *thread)
{
	*lane = (struct pool_lane){ .pool = p, .thread = thread };
	pthread_cond_init(&lane->filled, NULL);
}

/* Starts the threads that the lane has not got; false if it has fewer than the pool's number. */
static bool
pool_start_lane(struct pool_lane *lane)
{
	while (lane->threads < lane->pool->threads &&
	       pthread_create(&lane->thread[lane->threads], NULL, pool_main, lane) == 0)
		lane->threads++;
	return lane->threads == lane->pool->threads;
}

enum status
pool_new(unsigned threads, struct pool **ret, struct err *err)
{
	struct pool *p = mem_zalloc(sizeof(*p) + 2 * threads * sizeof(pthread_t));

	if (!p)
		return err_set(err, STATUS_NOMEM, "out of memory for a pool of threads");
	pthread_mutex_init(&p->lock, NULL);
	p->threads = threads;
	pool_init_lane(p, &p->blocks, p->thread);
	pool_init_lane(p, &p->computes, p->thread + threads);
	if (!pool_start_lane(&p->blocks)) {
		pool_free(p);
		return err_set(err, STATUS_IO, "cannot start a thread of the pool");
	}
	*ret = p;
	return STATUS_OK;
}

static void
pool_end_lane(struct pool_lane *lane)
{
	for (unsigned i = 0; i < lane->threads; i++)
		pthread_join(lane->thread[i], NULL);
	assert(!lane->first);
	pthread_cond_destroy(&lane->filled);
}

void
pool_free(struct pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->ending = true;
	pthread_cond_broadcast(&p->blocks.filled);
	pthread_cond_broadcast(&p->computes.filled);
	pthread_mutex_unlock(&p->lock);
	pool_end_lane(&p->blocks);
	pool_end_lane(&p->computes);
	pthread_mutex_destroy(&p->lock);
	mem_free(p);
}

static bool
pool_take_back(struct wait_work *work)
{
	struct pool *p = work->pool;
	bool taken;

	pthread_mutex_lock(&p->lock);
	taken = work->queued;
	if (taken)
		pool_remove_locked(pool_lane_of(work), work);
	pthread_mutex_unlock(&p->lock);
	return taken;
}

void
pool_begin(struct pool *p, struct wait_work *work)
{
	struct pool_lane *lane;

	work->pool = p;
	work->take_back = pool_take_back;
	pthread_mutex_lock(&p->lock);
	/* Without a single thread of its own, work that computes takes one of the others. */
	if (work->computes && !pool_start_lane(&p->computes) && !p->computes.threads)
		work->computes = false;
	lane = pool_lane_of(work);
	pool_append_locked(lane, work);
	pthread_cond_signal(&lane->filled);
	pthread_mutex_unlock(&p->lock);
}
