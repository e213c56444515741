/*
 * What other threads may give to a loop: letters. A letter is something that the loop's thread has
 * to do, such as going on with a fiber whose event was set, or serving a socket that another loop
 * accepted.
 *
 * A mailbox is thread-safe, and outlives its loop for as long as somebody might still post: each
 * holds a reference. After mailbox_close() it takes nothing.
 */
#ifndef FROND_LOOP_MAILBOX_H
#define FROND_LOOP_MAILBOX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct letter;

struct letter_ops {
	/* On the loop's thread and off any fiber. The letter is the callee's from then on. */
	void (*deliver)(struct letter *letter);
	/* The loop has ended before the letter was delivered. On the thread that closes it. */
	void (*drop)(struct letter *letter);
};

/* Part of a larger struct, which the ops know. In one queue at a time. */
struct letter {
	struct letter *next;
	const struct letter_ops *ops;
	bool later; /* behind others, see loop_run_later(); the loop's thread alone uses it */
};

/* Oldest first. Belongs to one thread, or to a lock. */
struct letter_queue {
	struct letter *first;
	struct letter *last;
};

void letter_queue_push(struct letter_queue *q, struct letter *letter);
struct letter *letter_queue_pop(struct letter_queue *q); /* NULL if empty */

struct mailbox {
	_Atomic uint32_t refs; /* and MAILBOX_RINGING for each thread that rings */
	pthread_mutex_t lock;  /* guards what follows */
	bool closed;
	struct letter_queue letters;
	/* Wakes the loop, which exists: mailbox_close() waits for threads that ring. */
	void (*ring)(void *arg);
	void *ring_arg;
};

/* With one reference, the loop's. NULL when out of memory. */
struct mailbox *mailbox_new(void (*ring)(void *arg), void *arg);
void mailbox_ref(struct mailbox *m);
void mailbox_unref(struct mailbox *m); /* NULL is fine */

/* Any thread. False if the loop has ended: the letter stays the caller's. */
bool mailbox_post(struct mailbox *m, struct letter *letter);

/* Takes out everything. The loop's thread. */
struct letter_queue mailbox_take(struct mailbox *m);

/* From now on nothing is taken; what was in the box comes back. */
struct letter_queue mailbox_close(struct mailbox *m);

/* The mailbox whose loop runs on the calling thread; NULL: none does. */
void mailbox_set_thread(struct mailbox *m);
bool mailbox_is_thread(const struct mailbox *m);

#endif
