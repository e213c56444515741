#include "loop/mailbox.h"

#include <assert.h>
#include <sched.h>

#include "base/mem.h"

/*
 * == Ringing ==
 *
 * The loop is rung for when the lock has been given back. Under it, the thread that rings would
 * often lose its processor to the loop that it wakes, which then waits for the lock: two more
 * switches. What it adds to `refs` under the lock keeps the loop and the box until it has rung.
 */
enum {
	MAILBOX_RINGING = 1 << 21, /* above all references */
};

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

/* Gives up a reference, or MAILBOX_RINGING. The last one to go frees the box. */
static void
mailbox_drop(struct mailbox *m, uint32_t count)
{
	if (atomic_fetch_sub_explicit(&m->refs, count, memory_order_acq_rel) != count)
		return;
	/* A letter holds no reference to the box, so each must have left it before the last one. */
	assert(!m->letters.first);
	pthread_mutex_destroy(&m->lock);
	mem_free(m);
}

void
mailbox_unref(struct mailbox *m)
{
	if (m)
		mailbox_drop(m, 1);
}

bool
mailbox_post(struct mailbox *m, struct letter *letter)
{
	bool rings;
	bool open;

	pthread_mutex_lock(&m->lock);
	open = !m->closed;
	/*
	 * One ring a batch. The loop empties the box under the same lock, so a box that is not
	 * empty here has been rung for, or is about to be, and the loop has not come to it yet.
	 */
	rings = open && !m->letters.first;
	if (open)
		letter_queue_push(&m->letters, letter);
	if (rings)
		atomic_fetch_add_explicit(&m->refs, MAILBOX_RINGING, memory_order_relaxed);
	pthread_mutex_unlock(&m->lock);
	/* The letter, and what it belongs to, may be gone by now. */
	if (rings) {
		m->ring(m->ring_arg);
		mailbox_drop(m, MAILBOX_RINGING);
	}
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
	/* From here on nobody begins to ring; whoever has begun is done in a moment. */
	while (atomic_load_explicit(&m->refs, memory_order_acquire) >= MAILBOX_RINGING)
		sched_yield();
	return taken;
}
