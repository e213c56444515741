/*
 * The deadlines of one loop, in a heap. Nearly every deadline is put off or cancelled long before
 * it passes, so the heap is not touched then: the entry keeps its old place, and is moved when it
 * comes to the top. Used by the loop's thread alone. A timer is its user's, and stays where it is
 * from timers_attach() to timers_detach().
 */
#ifndef FROND_LOOP_TIMERS_H
#define FROND_LOOP_TIMERS_H

#include "base/status.h"
#include "loop/wait.h"

struct timer {
	uint64_t at_ns;  /* when it is wanted; WAIT_FOREVER: not at all */
	uint64_t key_ns; /* its place in the heap: never later than at_ns */
	size_t slot;     /* in the heap, from 1; 0: not in it */
	void (*fire)(struct timer *t);
};

struct timers {
	struct timer **heap; /* from index 1 */
	size_t count;
	size_t attached;
	size_t cap;
};

void timers_fini(struct timers *ts);

/* Makes room for one more timer, so that setting it cannot fail. STATUS_NOMEM. */
MUST_USE enum status timers_attach(struct timers *ts, struct timer *t,
				   void (*fire)(struct timer *t));
void timers_detach(struct timers *ts, struct timer *t);

/* `at_ns` by the monotonic clock, WAIT_FOREVER to switch it off. */
void timers_set(struct timers *ts, struct timer *t, uint64_t at_ns);

/* No timer fires before this moment; WAIT_FOREVER if there is none. */
uint64_t timers_next_ns(const struct timers *ts);

/* Takes out one timer whose moment has come; NULL if there is none. */
struct timer *timers_pop(struct timers *ts, uint64_t now_ns);

#endif
