/*
 * Waiting for something that another thread, or this thread later, will finish.
 *
 * Code that waits does not know what it runs on. On a plain thread it sleeps. On a fiber of a loop
 * it parks: the fiber stops, and the loop runs other fibers until it is woken. A future of the
 * key-value store has an event inside, and so do a connection's "progress" and "closed".
 *
 * An event belongs to the code that waits for it, usually on its stack. event_set() may be called
 * on any thread; everything else is called by the thread or fiber that waits.
 */
#ifndef FROND_LOOP_WAIT_H
#define FROND_LOOP_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define WAIT_FOREVER UINT64_MAX

struct waiter;
struct watchdog_label;

/*
 * Something that happens once. One waiter at a time may wait for it; any thread may set it. The
 * setter does not touch the event after the waiter can see that it is set, so the waiter may then
 * free it.
 */
struct event {
	_Atomic(struct waiter *) state;
};

void event_init(struct event *e);
bool event_is_set(const struct event *e);
void event_set(struct event *e); /* setting it again changes nothing */

/*
 * Waits until one of `events` is set or the monotonic clock passes `deadline_ns`. Returns the index
 * of the first that is set, or `n` at the deadline.
 */
size_t event_wait_any(struct event *const *events, size_t n, uint64_t deadline_ns);

/* True if it was set by the deadline. */
bool event_wait(struct event *e, uint64_t deadline_ns);

/*
 * Runs `fn(arg)` where blocking is allowed: on a fiber, in its loop's thread pool while the fiber
 * is parked; on a plain thread, right here. Returns when `fn` has returned.
 */
void wait_offload(void (*fn)(void *arg), void *arg);

/*
 * The same for a function that computes for long, such as hashing a password. The pool has threads
 * of their own for that, so that what others read does not wait behind it. They have the priority
 * of the loops, whose clients wait for them, and longer turns.
 */
void wait_compute(void (*fn)(void *arg), void *arg);

/*
 * Work that another thread may do while a fiber goes on, until the fiber wants it done. All fields
 * are private; it stays where it is from a wait_begin() that gave true to its wait_end().
 */
struct wait_work {
	void (*fn)(void *arg);
	void *arg;
	struct event done;
	bool (*take_back)(struct wait_work *work);
	const struct watchdog_label *label; /* of the fiber; NULL: it has none */
	void *pool;
	struct wait_work *next; /* of the work that no thread has begun */
	struct wait_work *prev;
	uint64_t queued_ns; /* since then */
	bool queued;
	bool computes; /* of wait_compute() */
};

/*
 * Gives `fn(arg)` to the thread pool of the fiber's loop. False on a plain thread, which has none;
 * nothing is done then.
 */
MUST_USE bool wait_begin(struct wait_work *work, void (*fn)(void *arg), void *arg);

/*
 * Ends it. True: `fn` has returned; this call may have waited for that. False: no thread had begun
 * it, and none will. Any thread.
 */
bool wait_end(struct wait_work *work);

/* True on a fiber: a system call that blocks would hold up other fibers; use wait_offload(). */
bool wait_on_fiber(void);

/*
 * True on a fiber whose loop has served nobody else for a while: the fiber may block the thread for
 * a moment without holding anybody up. Always false on a plain thread.
 */
bool wait_is_alone(void);

/* Lets others run. On a plain thread it does nothing. */
void wait_yield(void);

/*
 * Before a wait that may be long, where there may be thousands of them: gives the system back the
 * pages of the fiber's stack that are not in use now. On a plain thread it does nothing.
 */
void wait_trim(void);

/*
 * The other side: a waiter is what can be woken. A loop implements it for its fibers (task.c). A
 * plain thread gets one of its own when it first waits.
 */
struct waiter_ops {
	/* Returns after a wake() or at the deadline, or earlier for no reason. Own thread only. */
	void (*park)(struct waiter *w, uint64_t deadline_ns);
	/* Makes the current or the next park() return. Any thread. */
	void (*wake)(struct waiter *w);
	/* As wait_offload(); NULL when parking blocks a thread anyway. */
	void (*offload)(struct waiter *w, void (*fn)(void *arg), void *arg);
	/* As wait_begin(), with `fn` and `arg` filled in; sets `take_back`. NULL likewise. */
	void (*begin)(struct waiter *w, struct wait_work *work);
	void (*yield)(struct waiter *w);    /* NULL likewise */
	bool (*is_alone)(struct waiter *w); /* as wait_is_alone(); NULL: never */
	void (*trim)(struct waiter *w);     /* as wait_trim(); NULL: nothing to do */
	void (*destroy)(struct waiter *w);  /* the last reference is gone */
};

struct waiter {
	const struct waiter_ops *ops;
	/* A waker holds one, so that the waiter exists when it is woken late. */
	_Atomic uint32_t refs;
};

/* Starts with one reference, the owner's. */
void waiter_init(struct waiter *w, const struct waiter_ops *ops);
void waiter_ref(struct waiter *w);
void waiter_unref(struct waiter *w);

/*
 * The waiter that waits of the calling thread park from now on; NULL: the thread's own. A loop
 * calls this around each switch to a fiber.
 */
void waiter_set_current(struct waiter *w);

#endif
