#include "loop/pool.h"

#include <assert.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "loop/wait.h"
#include "loop/watchdog.h"

METRIC_GAUGE(queued_works, "frond_pool_queue_length", METRIC_NUMBER,
	     "Pieces of work that blocks which no thread of the pool has begun.");
METRIC_HISTOGRAM(wait_time, "frond_pool_wait_duration_seconds", METRIC_SECONDS,
		 "Time that work waited for a thread of the pool.", METRIC_TIME_LEAST,
		 METRIC_TIME_BUCKETS);

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	/* No thread has begun these. Their number is bounded: a fiber has a few at most. */
	struct wait_work *first;
	struct wait_work *last;
	bool ending;
	unsigned threads;
	pthread_t thread[];
};

/* With the lock held. */
static void
pool_append_locked(struct pool *p, struct wait_work *work)
{
	work->prev = p->last;
	if (p->last)
		p->last->next = work;
	else
		p->first = work;
	p->last = work;
	work->queued = true;
	work->queued_ns = clock_mono_ns();
	metric_gauge_add(&queued_works, 1);
}

/* With the lock held. */
static void
pool_remove_locked(struct pool *p, struct wait_work *work)
{
	if (work->prev)
		work->prev->next = work->next;
	else
		p->first = work->next;
	if (work->next)
		work->next->prev = work->prev;
	else
		p->last = work->prev;
	work->queued = false;
	metric_gauge_add(&queued_works, -1);
}

static void *
pool_main(void *arg)
{
	static const struct watchdog_label unnamed;
	struct pool *p = arg;
	struct watchdog_post post;

	watchdog_add(&post, "pool", true);
	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct wait_work *work = p->first;

		if (!work) {
			if (p->ending)
				break;
			pthread_cond_wait(&p->filled, &p->lock);
			continue;
		}
		pool_remove_locked(p, work);
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

enum status
pool_new(unsigned threads, struct pool **ret, struct err *err)
{
	struct pool *p = mem_zalloc(sizeof(*p) + threads * sizeof(pthread_t));

	if (!p)
		return err_set(err, STATUS_NOMEM, "out of memory for a pool of threads");
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->filled, NULL);
	for (; p->threads < threads; p->threads++) {
		if (pthread_create(&p->thread[p->threads], NULL, pool_main, p) != 0) {
			pool_free(p);
			return err_set(err, STATUS_IO, "cannot start a thread of the pool");
		}
	}
	*ret = p;
	return STATUS_OK;
}

void
pool_free(struct pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->ending = true;
	pthread_cond_broadcast(&p->filled);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->threads; i++)
		pthread_join(p->thread[i], NULL);
	assert(!p->first);
	pthread_cond_destroy(&p->filled);
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
		pool_remove_locked(p, work);
	pthread_mutex_unlock(&p->lock);
	return taken;
}

void
pool_begin(struct pool *p, struct wait_work *work)
{
	work->pool = p;
	work->take_back = pool_take_back;
	pthread_mutex_lock(&p->lock);
	pool_append_locked(p, work);
	pthread_cond_signal(&p->filled);
	pthread_mutex_unlock(&p->lock);
}
