#include "loop/mailbox.h"

#include <assert.h>

#include "base/mem.h"

static _Thread_local const struct mailbox *thread_mailbox;

void
mailbox_set_thread(struct mailbox *m)
{
	thread_mailbox = m;
}

bool
mailbox_is_thread(const struct mailbox *m)
{
	return thread_mailbox == m;
}

/* ---- Queues ---- */

void
letter_queue_push(struct letter_queue *q, struct letter *letter)
{
	assert((q->first == NULL) == (q->last == NULL));
	letter->next = NULL;
	if (q->last)
		q->last->next = letter;
	else
		q->first = letter;
	q->last = letter;
}

struct letter *
letter_queue_pop(struct letter_queue *q)
{
	struct letter *letter = q->first;

	if (!letter)
		return NULL;
	q->first = letter->next;
	if (!q->first)
		q->last = NULL;
	letter->next = NULL;
	return letter;
}

/* ---- The box ---- */

struct mailbox *
mailbox_new(void (*ring)(void *arg), void *arg)
{
	struct mailbox *m = mem_zalloc(sizeof(*m));

	if (!m)
		return NULL;
	atomic_init(&m->refs, 1);
	pthread_mutex_init(&m->lock, NULL);
	m->ring = ring;
	m->ring_arg = arg;
	return m;
}

void
mailbox_ref(struct mailbox *m)
{
	atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
}

void
mailbox_unref(struct mailbox *m)
{
	if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
		return;
	/* A letter holds no reference to the box, so each must have left it before the last one. */
	assert(!m->letters.first);
	pthread_mutex_destroy(&m->lock);
	mem_free(m);
}

bool
mailbox_post(struct mailbox *m, struct letter *letter)
{
	bool open;

	pthread_mutex_lock(&m->lock);
	open = !m->closed;
	if (open) {
		/*
		 * One ring a batch. The loop empties the box under the same lock, so a box that is
		 * not empty here has been rung for, and the loop has not come to it yet.
		 */
		bool first = !m->letters.first;

		letter_queue_push(&m->letters, letter);
		if (first)
			m->ring(m->ring_arg);
	}
	pthread_mutex_unlock(&m->lock);
	return open;
}

struct letter_queue
mailbox_take(struct mailbox *m)
{
	struct letter_queue taken;

	pthread_mutex_lock(&m->lock);
	taken = m->letters;
	m->letters = (struct letter_queue){ 0 };
	pthread_mutex_unlock(&m->lock);
	return taken;
}

struct letter_queue
mailbox_close(struct mailbox *m)
{
	struct letter_queue taken;

	/*
	 * Closing and taking is one step under the lock: a letter that is posted at the same moment
	 * is either in what comes back, or refused. None can be left behind.
	 */
	pthread_mutex_lock(&m->lock);
	m->closed = true;
	taken = m->letters;
	m->letters = (struct letter_queue){ 0 };
	pthread_mutex_unlock(&m->lock);
	return taken;
}
