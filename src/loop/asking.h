/*
 * A wait for something that may take long, such as a worker for functions, the turn to hash a
 * password, or memory. Now and then the owner of the fiber's work is asked whether the work is
 * still to go on (step_set_owner()). So the wait ends when somebody ends the operation, when its
 * time is over, and when its person may no longer have it, and the code that waits need not know of
 * any of these.
 *
 * Threading: as event_wait_any().
 */
#ifndef FROND_LOOP_ASKING_H
#define FROND_LOOP_ASKING_H

#include "loop/wait.h"

enum {
	WAIT_ASK_MS = 250, /* how often the owner is asked */
};

/*
 * As event_wait_any(), whose result is `*ret_which`. The owner is asked while nothing has come:
 * what it fails with is returned, and `*ret_which` is `n`.
 */
MUST_USE enum status wait_asking(struct event *const *events, size_t n, uint64_t deadline_ns,
				 size_t *ret_which);

#endif
