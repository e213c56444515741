#include "server/pool.h"

#include <assert.h>
#include <pthread.h>

#include "base/mem.h"
#include "base/wait.h"

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	/* There are no more of them than fibers, each of which has at most a few. */
	struct wait_work *first;
	struct wait_work *last;
	bool ending;
	unsigned threads;
	pthread_t thread[];
};

/* With the lock held. */
static void
append(struct pool *p, struct wait_work *work)
{
	work->prev = p->last;
	if (p->last)
		p->last->next = work;
	else
		p->first = work;
	p->last = work;
	work->queued = true;
}

/* With the lock held. */
static void
take(struct pool *p, struct wait_work *work)
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
}

static void *
pool_main(void *arg)
{
	struct pool *p = arg;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct wait_work *work = p->first;

		if (!work) {
			if (p->ending)
				break;
			pthread_cond_wait(&p->filled, &p->lock);
			continue;
		}
		take(p, work);
		pthread_mutex_unlock(&p->lock);
		work->fn(work->arg);
		event_set(&work->done);
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
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
take_back(struct wait_work *work)
{
	struct pool *p = work->pool;
	bool taken;

	pthread_mutex_lock(&p->lock);
	taken = work->queued;
	if (taken)
		take(p, work);
	pthread_mutex_unlock(&p->lock);
	return taken;
}

void
pool_begin(struct pool *p, struct wait_work *work)
{
	work->pool = p;
	work->take_back = take_back;
	pthread_mutex_lock(&p->lock);
	append(p, work);
	pthread_cond_signal(&p->filled);
	pthread_mutex_unlock(&p->lock);
}

void
pool_run(struct pool *p, void (*fn)(void *arg), void *arg)
{
	struct wait_work work = { .fn = fn, .arg = arg };

	event_init(&work.done);
	pool_begin(p, &work);
	event_wait(&work.done, WAIT_FOREVER);
}
