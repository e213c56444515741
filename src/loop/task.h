/*
 * A task is a fiber that a loop runs: the waiter (loop/wait.h) behind everything that waits on it.
 * It belongs to its loop for life, and is kept for reuse when its function has returned. Wakers on
 * any thread hold references, so that a late wake finds the task, or the mailbox of a loop that has
 * ended, and does no harm.
 */
#ifndef FROND_LOOP_TASK_H
#define FROND_LOOP_TASK_H

#include "base/arena.h"
#include "loop/fiber.h"
#include "loop/loop.h"
#include "loop/step.h"
#include "loop/wait.h"

enum {
	TASK_IDLE_MAX = 128, /* fibers that a loop keeps for reuse */
};

struct task {
	struct waiter waiter;
	struct letter letter; /* in a ready queue or the mailbox while `queued` */
	struct loop *loop;
	struct mailbox *mailbox; /* holds a reference */
	struct fiber *fiber;
	struct watchdog_label *label; /* what it does */
	struct arena *arena;          /* empty between two runs */
	struct timer timer;           /* of the deadline that it is parked with */
	struct step_meter steps; /* of this run; whoever starts it sets a limit and whom to ask */
	struct task *next_idle;
	_Atomic bool queued; /* the letter is on its way, and holds a reference to the waiter */
	uint64_t
		entered_ns; /* when it was woken last; 0: its run has begun, and it was not woken */
	bool parked;
	bool fresh;              /* `fn` has been given to it, and has not begun */
	void (*fn)(void *arg);   /* of task_start_soon() */
	void (*done)(void *arg); /* called on the loop after the function has returned */
	void *arg;
	void (*spawn_fn)(void *arg); /* of task_spawn() */
	void *spawn_arg;
	void *works_for; /* of task_work_for() */
};

/* An idle task, NULL when out of memory; and back. */
struct task *task_take(struct loop *l);
void task_put(struct task *t);

/*
 * Runs `fn(arg)` on the task's fiber until it parks or returns; `done(arg)` follows, off the fiber,
 * once it has returned. On the loop's thread, not from inside a fiber.
 */
void task_start(struct task *t, void (*fn)(void *arg), void (*done)(void *arg), void *arg);

/*
 * The same, but not at once: in its turn among what is ready. If the loop ends first, the function
 * never runs, and the task goes back.
 */
void task_start_soon(struct task *t, void (*fn)(void *arg), void (*done)(void *arg), void *arg);

/*
 * For functions that call themselves as deep as somebody's request says: how many bytes of the
 * fiber's stack are left below the caller. On a plain thread SIZE_MAX.
 */
size_t task_stack_left(void);

/*
 * Tells the watchdog what the running fiber does from now on; fibers that it spawns do the same.
 * Nothing on a plain thread.
 */
void task_set_doing(struct str verb, struct str object);

/*
 * For whom the running fiber works from now on, until it says otherwise or its function returns;
 * NULL, as in the beginning: for nobody. The room above that says so knows what it points to.
 * Returns who it was before. On a plain thread both do nothing and return NULL.
 */
void *task_work_for(void *whom);
void *task_works_for(void);

/*
 * The running fiber calls task_rest() before it waits for a client that has sent no request, and
 * task_rouse() after that wait. In between wait_is_alone() of other fibers does not count it: one
 * of them may block the loop's thread for a moment, which delays only what the resting fiber waits
 * for. On a plain thread both do nothing.
 */
void task_rest(void);
void task_rouse(void);

/*
 * Has `fn(arg)` run on a fiber of its own, soon: also from inside another fiber, and before the
 * loop runs. If the loop ends first, the function never runs. STATUS_NOMEM.
 */
MUST_USE enum status task_spawn(struct loop *l, void (*fn)(void *arg), void *arg);

#endif
