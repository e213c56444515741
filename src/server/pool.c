#include "server/pool.h"

#include <assert.h>
#include <pthread.h>

#include "base/mem.h"
#include "base/wait.h"

/* Lives on the stack of whoever waits for it: there are never more of them than fibers. */
struct pool_job {
	struct pool_job *next;
	void (*fn)(void *arg);
	void *arg;
	struct event done;
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct pool_job *first;
	struct pool_job **last;
	bool ending;
	unsigned threads;
	pthread_t thread[];
};

static void *
pool_main(void *arg)
{
	struct pool *p = arg;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct pool_job *job = p->first;

		if (!job) {
			if (p->ending)
				break;
			pthread_cond_wait(&p->filled, &p->lock);
			continue;
		}
		p->first = job->next;
		if (!p->first)
			p->last = &p->first;
		pthread_mutex_unlock(&p->lock);
		job->fn(job->arg);
		event_set(&job->done);
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
	p->last = &p->first;
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

void
pool_run(struct pool *p, void (*fn)(void *arg), void *arg)
{
	struct pool_job job = { .fn = fn, .arg = arg };

	event_init(&job.done);
	pthread_mutex_lock(&p->lock);
	*p->last = &job;
	p->last = &job.next;
	pthread_cond_signal(&p->filled);
	pthread_mutex_unlock(&p->lock);
	event_wait(&job.done, WAIT_FOREVER);
}
