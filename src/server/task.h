/*
 * A task is a fiber that a loop runs: the waiter (base/wait.h) behind everything that waits while
 * a request is served. It belongs to its loop for life; wakers on any thread hold references, so
 * that a late wake finds it, or the mailbox of a loop that has ended, and does no harm.
 */
#ifndef FROND_SERVER_TASK_H
#define FROND_SERVER_TASK_H

#include <pthread.h>
#include <uv.h>

#include "base/arena.h"
#include "base/fiber.h"
#include "base/wait.h"
#include "server/timers.h"

struct loop;
struct task;

struct task_queue {
	struct task *first;
	struct task *last;
};

/* A socket on its way to the loop that will serve it. */
struct arrival {
	struct arrival *next;
	int fd;
	bool refuse; /* there are too many connections: answer 503 */
	char peer[56];
};

/* What other threads may give to a loop; outlives the loop as long as somebody might still try. */
struct mailbox {
	_Atomic uint32_t refs;
	pthread_mutex_t lock;
	bool closed;
	uv_async_t *async;
	struct task_queue ready;
	struct arrival *arrivals; /* newest first */
};

struct mailbox *mailbox_new(uv_async_t *async); /* NULL when out of memory */
void mailbox_unref(struct mailbox *m);          /* NULL is fine */
/* Nothing is taken any more; what is in it comes back. */
void mailbox_close(struct mailbox *m, struct task_queue *ret_ready, struct arrival **ret_arrivals);
/* Takes out everything. */
void mailbox_take(struct mailbox *m, struct task_queue *ret_ready, struct arrival **ret_arrivals);
/* False if the loop has ended: the arrival stays the caller's. */
bool mailbox_post_arrival(struct mailbox *m, struct arrival *a);

struct task {
	struct waiter waiter;
	struct loop *loop;
	struct mailbox *mailbox;
	struct fiber *fiber;
	struct arena *arena; /* empty between two runs */
	struct timer timer;
	struct task *next; /* in a ready queue; a stale wake may put it there at any time */
	struct task *next_idle;
	_Atomic bool queued; /* in a ready queue, which then holds a reference */
	bool parked;
	void (*done)(void *arg); /* called on the loop after the function has returned */
	void *arg;
};

struct task *task_new(struct loop *loop, size_t arena_bytes); /* NULL when out of memory */
/* Takes the idle task out of its loop's hands; late wakers may keep it a little longer. */
void task_drop(struct task *t);

/*
 * Runs `fn(arg)` on the task's fiber until it parks or returns; `done(arg)` follows, off the fiber,
 * once it has returned. On the loop's thread, not from inside a fiber.
 */
void task_start(struct task *t, void (*fn)(void *arg), void (*done)(void *arg), void *arg);

/* Goes on with a task taken from a ready queue and drops the queue's reference. */
void task_continue(struct task *t);

void task_queue_push(struct task_queue *q, struct task *t);
struct task *task_queue_pop(struct task_queue *q); /* NULL if empty */

/* The mailbox whose loop runs on the calling thread; NULL: none does. */
void task_set_thread_mailbox(struct mailbox *m);

#endif
