/*
 * Steps: how the work of a fiber is counted, so that no request computes for long while others
 * wait.
 *
 * Code with a loop that a client can make long calls step_count() in it. One step is what costs
 * very roughly 50 ns: a value compared, a revision looked up, a key parsed, 64 bytes hashed. When
 * the fiber has used a slice of the loop's time, the call lets other fibers run and returns later.
 * It also is where a request ends that nobody waits for any more, or that has used up its limit.
 *
 * Any code on any thread may count. On a plain thread nothing happens: commands and the pool's
 * threads hold up nobody.
 *
 * Another fiber of the same thread runs during a call. So never call with a lock held, nor between
 * two uses of memory that belongs to the thread or to the loop.
 */
#ifndef FROND_LOOP_STEP_H
#define FROND_LOOP_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/status.h"

/* How long a fiber computes before others have their turn. */
#define STEP_SLICE_NS (150 * CLOCK_NS_PER_MS / 1000)
/* How often the clock is looked at meanwhile, about. */
#define STEP_LOOK_NS (STEP_SLICE_NS / 4)

enum {
	/* Steps between two looks at the clock: at first, and the bounds of the adaptation. */
	STEP_CREDIT_FIRST = 512,
	STEP_CREDIT_LEAST = 16,
	STEP_CREDIT_MOST = 1024,
	/* As many bytes are compared or copied for what one step costs. */
	STEP_COPIED_BYTES = 64,
	/* A slice ends after so many steps, whatever the clock says. */
	STEP_SLICE_STEPS = 64 * 1024,
	/*
	 * A fiber is hot from its first used slice on, at once or in parts: it then continues
	 * behind others (loop_run_later()). It cools down by a slice each time it waits after
	 * little work, less than STEP_LOOK_NS, and has to do so this often at most.
	 */
	STEP_HEAT_MOST = 8,
	/*
	 * Of the waits that follow more work, this many do not cool the fiber down. A listing
	 * waits two or three times after each page that it has computed, and does little in
	 * between: it waits for its turn, for memory and for its client.
	 */
	STEP_RESTS = 4,
};

/*
 * Counts `n` steps. STATUS_CANCELLED: nobody waits for the work any more, because the client has
 * gone or the server gives up on the request. STATUS_STEPS: the unit of work has used more than
 * step_limit(). After a failure the caller returns; what it then counts on its way fails again,
 * but not at once.
 */
MUST_USE static inline enum status step_count(uint32_t n);

/* Counts one step, and one more for each STEP_COPIED_BYTES of `bytes`. */
MUST_USE static inline enum status step_count_bytes(size_t bytes);

/* step_count() for code that cannot fail: a later step_count() tells. */
static inline void step_pause(uint32_t n);

/*
 * A new unit of work begins, such as a row of a listing: the count towards the limit starts anew.
 * A request that never calls this is one unit.
 */
static inline void step_unit(void);

/* The most steps of one unit of the running fiber; 0: there is no limit, as on a plain thread. */
uint64_t step_limit(void);

/*
 * Between these two, step_cpu_ns() says how long the processor has worked for the running fiber
 * since the first, whatever others did meanwhile. Each switch to the fiber and from it then costs
 * a call of the system. On a plain thread it is 0.
 */
void step_cpu_begin(void);
uint64_t step_cpu_ns(void);
void step_cpu_end(void);

/*
 * To be called before the running fiber waits for something that many fibers wait for, and after
 * which each of them computes: it is hot from now on, as if it had used up a slice. Does nothing on
 * a plain thread.
 */
void step_expect_slice(void);

/* ---- For whoever runs fibers (loop/task.c) and owns their work ---- */

/* Who says whether the work of a fiber is to go on: STATUS_OK if it is. Zeroed: it always is. */
struct step_owner {
	enum status (*ask)(void *arg); /* after each slice of computing; may be NULL */
	/* Now and then while the fiber waits in wait_asking() (loop/asking.h); may be NULL. */
	enum status (*ask_waiting)(void *arg);
	void *arg;
};

/*
 * From now on the running fiber asks this one. Returns who was asked before. Nothing on a plain
 * thread, whose work always goes on.
 */
struct step_owner step_set_owner(struct step_owner owner);

/*
 * Each asks at once, without counting: STATUS_OK also on a plain thread, and where nobody is to be
 * asked.
 */
MUST_USE enum status step_ask(void);
MUST_USE enum status step_ask_waiting(void);

/* What is counted of one fiber. Its loop's thread alone uses it. */
struct step_meter {
	uint64_t limit; /* of one unit; 0: none */
	uint64_t used;  /* steps of this unit that were settled */
	struct step_owner owner;

	int64_t granted;      /* the credit that was given last */
	int64_t credit;       /* how much to give: adapted to what a step costs */
	uint64_t slice_ns;    /* when the slice began; 0: the clock was not read since */
	uint64_t look_ns;     /* when the clock was read last */
	uint64_t slice_steps; /* steps of this slice */
	uint64_t computed_ns; /* of the whole run, in slices that were used up */
	uint64_t unit_ns;     /* of this unit, likewise */
	uint64_t longest_ns;  /* the largest `unit_ns` so far */
	unsigned heat;        /* slices used up, less the waits that have cooled it down */
	unsigned rests;       /* waits since the last larger piece of work, up to STEP_RESTS */
	unsigned slices;      /* used up in the whole run, at once or in parts */
	uint64_t parts_ns;    /* of slices that waits have ended, since they came to a slice */

	bool is_to_ask;          /* a slice has ended, and the owner has not been asked since */
	bool clocks_cpu;         /* step_cpu_begin() was called */
	uint64_t cpu_ns;         /* of the times before */
	uint64_t cpu_entered_ns; /* the thread's clock when the fiber was entered */
};

/* For a fiber that begins: no limit, nobody to ask. */
void step_init(struct step_meter *m);

/* Around each switch to a fiber, on the loop: what the thread counts from now on is the fiber's. */
void step_enter(struct step_meter *m);
void step_leave(void);

/* The running fiber is about to wait or to yield, `took_ns` after it was entered; 0: not known. */
void step_rest(struct step_meter *m, uint64_t took_ns);

/* True if the fiber has computed for long and is to continue behind others. */
static inline bool
step_is_hot(const struct step_meter *m)
{
	return m->heat > 0;
}

/* The meter of the running fiber; NULL on a plain thread. */
struct step_meter *step_current(void);

/* ---- Inline: a few instructions on variables of the thread ---- */

/* Steps that the thread may count before step_spend() is called. */
extern _Thread_local int64_t step_credit __attribute__((tls_model("initial-exec")));

/* The credit that was left when the last unit began. What it means for the meter: step.c. */
extern _Thread_local int64_t step_unit_credit __attribute__((tls_model("initial-exec")));

/* The credit is used up. `may_fail`: of step_count(). */
enum status step_spend(bool may_fail);

static inline enum status
step_count(uint32_t n)
{
	step_credit -= n;
	if (__builtin_expect(step_credit > 0, 1))
		return STATUS_OK;
	return step_spend(true);
}

static inline enum status
step_count_bytes(size_t bytes)
{
	size_t n = 1 + bytes / STEP_COPIED_BYTES;

	return step_count(n > UINT32_MAX ? UINT32_MAX : (uint32_t)n);
}

static inline void
step_unit(void)
{
	step_unit_credit = step_credit;
}

static inline void
step_pause(uint32_t n)
{
	step_credit -= n;
	if (__builtin_expect(step_credit <= 0, 0))
		(void)step_spend(false);
}

#endif
