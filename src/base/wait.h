/*
 * Waiting for something that another thread, or a later turn of this one, will finish.
 *
 * Code that waits does not know what it runs on. On a plain thread it sleeps; on a fiber of a
 * server's loop it parks, and the loop serves others meanwhile. A future of the key-value store is
 * an event underneath, and so are a connection's "writable" and "closed".
 */
#ifndef FROND_BASE_WAIT_H
#define FROND_BASE_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define WAIT_FOREVER UINT64_MAX

struct waiter;

/*
 * Something that happens once. One waiter at a time may wait for it; any thread may set it. The
 * setter does not touch the event after the waiter can see it set, so that the waiter may free it.
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
 * Work that another thread may do while a fiber goes on, until the fiber wants it done. All fields
 * are private; it stays where it is from a wait_begin() that gave true to its wait_end().
 */
struct wait_work {
	void (*fn)(void *arg);
	void *arg;
	struct event done;
	bool (*take_back)(struct wait_work *work);
	void *pool;
	struct wait_work *next; /* of what the pool has not come to yet */
	struct wait_work *prev;
	bool queued;
};

/*
 * Gives `fn(arg)` to the thread pool of the fiber's loop. False on a plain thread, which has none;
 * nothing is done then.
 */
MUST_USE bool wait_begin(struct wait_work *work, void (*fn)(void *arg), void *arg);

/*
 * True: `fn` has returned, which may have been waited for. False: nobody had come to it, and nobody
 * will. From any thread.
 */
bool wait_end(struct wait_work *work);

/* True on a fiber: blocking system calls would hold up others, wait_offload() is in order. */
bool wait_on_fiber(void);

/*
 * True on a fiber whose loop has had nobody else to serve of late: what it might block for a moment
 * would hold up no one. Never on a plain thread, whose callers do not expect it.
 */
bool wait_is_alone(void);

/* Lets others run. On a plain thread it does nothing. */
void wait_yield(void);

/*
 * The other side: whoever can be woken. Loops implement it for their fibers; threads get one of
 * their own on first use.
 */
struct waiter_ops {
	/* Returns after a wake() or at the deadline, or earlier for no reason. Own thread only. */
	void (*park)(struct waiter *w, uint64_t deadline_ns);
	/* Makes the current or the next park() return. Any thread. */
	void (*wake)(struct waiter *w);
	/* As wait_offload(); NULL when parking blocks a thread anyway. */
	void (*offload)(struct waiter *w, void (*fn)(void *arg), void *arg);
	/* As wait_begin(), `fn` and `arg` being filled in; sets `take_back`. NULL likewise. */
	void (*begin)(struct waiter *w, struct wait_work *work);
	void (*yield)(struct waiter *w);    /* NULL likewise */
	bool (*is_alone)(struct waiter *w); /* as wait_is_alone(); NULL: never */
	void (*destroy)(struct waiter *w);  /* the last reference is gone */
};

struct waiter {
	const struct waiter_ops *ops;
	_Atomic uint32_t
		refs; /* a waker holds one, so that it may wake a waiter that has gone on */
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
