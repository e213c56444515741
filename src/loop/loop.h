/*
 * A loop: one thread that runs fibers (loop/task.h), fires timers and takes letters from other
 * threads. It knows nothing of what it is used for: whoever uses a loop embeds the struct in one of
 * his own and gives hooks.
 *
 * What the loop waits on is behind `struct loop_ops`: libuv (loop/libuv.h), or in tests a twin with
 * virtual time. Unless it says otherwise, everything here is the loop's thread's alone.
 */
#ifndef FROND_LOOP_LOOP_H
#define FROND_LOOP_LOOP_H

#include <stddef.h>

#include "base/clock.h"
#include "base/status.h"
#include "loop/mailbox.h"
#include "loop/timers.h"
#include "loop/watchdog.h"

enum {
	LOOP_LATER_PERCENT = 25, /* of the time, for fibers that compute while others want to run */
};

/* Others want to run for so long after one of them has ended. */
#define LOOP_OTHERS_NS (5 * CLOCK_NS_PER_MS)

struct loop;
struct pool;
struct task;
struct wait_work;

/* What a loop calls of its user, on its thread and off any fiber. */
struct loop_hooks {
	/* After one or several calls of loop_notice(). */
	void (*noticed)(struct loop *l);
	/* True if nobody but the one fiber that runs waits for the loop: see wait_is_alone(). */
	bool (*is_alone)(const struct loop *l);
};

/*
 * What a loop runs on. An implementation calls loop_take_mail() after a ring, loop_fire_timers()
 * when the clock has come to what was set, loop_run_ready() before and after it waits, and
 * loop_run_later() once in each turn, before it waits.
 */
struct loop_ops {
	/* Sets `l->driver`. STATUS_NOMEM, STATUS_IO; fini() is called in any case. */
	enum status (*init)(struct loop *l, struct err *err);
	void (*fini)(struct loop *l);
	/* Serves until stop(). */
	void (*run)(struct loop *l);
	void (*stop)(struct loop *l);
	/* Has loop_take_mail() called soon. Any thread, signal handlers. */
	void (*ring)(struct loop *l);
	/* Has loop_fire_timers() called at that moment instead of the one set before. */
	void (*set_clock)(struct loop *l, uint64_t at_ns);
	/* While true, waiting must not sleep: letters are ready. */
	void (*stay_awake)(struct loop *l, bool awake);
	/* True if a thread of the machine, of any process, is ready and waits for a processor. */
	bool (*processors_are_short)(struct loop *l);
	/* Lets a thread that is ready and waits for the loop's own processor have it first. */
	void (*give_way)(struct loop *l);
	bool uses_pool; /* begin_work() needs a pool */
	/* Gives work to other threads; as wait_begin(). */
	void (*begin_work)(struct loop *l, struct wait_work *work);
};

struct loop_config {
	const struct loop_ops *ops; /* NULL: libuv's */
	const struct loop_hooks *hooks;
	struct pool *pool; /* if the ops use one; the caller's, and outlives the loop */
	size_t task_bytes; /* the limit of each fiber's arena */
};

struct loop {
	const struct loop_ops *ops; /* NULL: not initialised */
	const struct loop_hooks *hooks;
	void *driver; /* what `ops` has made */
	struct pool *pool;
	size_t task_bytes;

	struct mailbox *mailbox;
	struct timers timers;
	uint64_t clock_ns; /* what the driver's clock is set to; WAIT_FOREVER: to nothing */
	bool timers_left;  /* timers are due that a call of loop_fire_timers() has left */
	struct letter_queue ready;
	bool awake; /* what stay_awake() was told last */

	/* Letters of fibers that compute for long, and when they had their last turn. */
	struct letter_queue later;
	uint64_t later_end_ns;
	uint64_t later_took_ns;
	bool slice_ended;      /* the fiber that runs, or ran last, has used up a slice */
	uint64_t entries;      /* how often a fiber was entered */
	uint64_t entries_seen; /* what it was at the last loop_run_later() */
	bool computing;        /* `later` had letters at the last loop_run_later() */
	uint64_t small_seen;   /* small fibers of the process that had ended then */
	uint64_t small_ns;     /* when the number was found to have grown; 0: never */
	struct timer nap;      /* its end */
	bool napping;          /* what is in `later` waits for that, and not for a turn */

	struct watchdog_post post;
	struct watchdog_label *spare_labels; /* loop/task.c's, as what follows */

	/* Fibers. */
	struct task *idle_tasks;
	unsigned idle_task_count;
	unsigned running; /* that have begun and not ended */
	unsigned resting; /* of these, between task_rest() and task_rouse() */
	void (*drop_idle_tasks)(struct loop *l);
};

/* Before its thread runs. The hooks and ops stay the caller's. STATUS_NOMEM, STATUS_IO. */
MUST_USE enum status loop_init(struct loop *l, const struct loop_config *config, struct err *err);

/* After its thread has ended, with no task running. Fine on a zeroed loop. */
void loop_fini(struct loop *l);

/* Serves until loop_stop(). Afterwards nothing can reach the loop from outside. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/* Has the hook noticed() called. Any thread, signal handlers. */
void loop_notice(struct loop *l);

/* Makes room for a timer, so that setting it cannot fail. STATUS_NOMEM. */
MUST_USE enum status loop_attach_timer(struct loop *l, struct timer *t,
				       void (*fire)(struct timer *t));
void loop_detach_timer(struct loop *l, struct timer *t);

/* At that moment of the monotonic clock; WAIT_FOREVER switches it off. */
void loop_set_timer(struct loop *l, struct timer *t, uint64_t at_ns);

/*
 * Has a letter delivered: on the loop's own thread at the end of what is ready, from another one
 * through the mailbox. False if the loop has ended; the letter stays the caller's.
 */
bool loop_post(struct loop *l, struct mailbox *mailbox, struct letter *letter);

/* ---- For implementations of struct loop_ops ---- */

void loop_take_mail(struct loop *l);

/* Fires timers whose moment has come, for about a slice; loop_run_ready() fires the rest. */
void loop_fire_timers(struct loop *l);
void loop_run_ready(struct loop *l);

/*
 * Goes on with fibers that compute for long, for one slice (loop/step.h), if it is their turn: all
 * the time when no other fiber of this loop wants to run, and LOOP_LATER_PERCENT of it when others
 * do, here or, while processors are short, on another loop. If it is not, and nothing else is
 * ready, the loop naps until it is.
 */
void loop_run_later(struct loop *l);

/*
 * A fiber has ended that did not use up a slice. While any loop of the process has fibers that
 * compute for long, this is how it learns of others, whatever loop serves them.
 */
void loop_note_small(void);

/* True while letters or timers wait for one of the calls above, and not for the end of a nap. */
bool loop_has_ready(const struct loop *l);

#endif
