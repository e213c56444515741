/*
 * Time that a wrong clock of the machine does not lead astray.
 *
 * The steady clock counts lifetimes: expiry, write times, how old something is. It shows
 * microseconds since 1970 like the wall clock, and moves by CLOCK_BOOTTIME, which no one sets and
 * which counts suspension. When the wall clock is stepped, by NTP, by hand, on a machine that was
 * resumed, the steady clock goes on as if nothing had happened. It then approaches the wall clock
 * by STEADY_SLEW: one microsecond in 200. So what shall live for 30 seconds lives for 30 seconds,
 * give or take 0.15, whatever the wall clock does. It never goes back.
 *
 * The date is for moments that somebody else has named by a wall clock: a date in a document, the
 * end of a token. It is the wall clock, except that it does not jump forward: after a step forward
 * it goes twice as fast until it has caught up. A wall clock that is wrong for a minute makes the
 * date wrong by a minute at most, and a day that was skipped takes a day to be made up for. A step
 * back is followed at once: while it was not, dates that are still to come would count as past.
 *
 * Both begin as what the wall clock says. A process that continues the work of another one restores
 * what that one had (steady_restore()).
 *
 * Threading: all functions from any thread. Reading takes no lock, except once in 0.1 s when the
 * wall clock is looked at.
 */
#ifndef FROND_BASE_STEADY_H
#define FROND_BASE_STEADY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

enum {
	STEADY_SLEW = 200,       /* the steady clock is off by one part in so many, at most */
	STEADY_STEP_MS = 1000,   /* a smaller step of the wall clock is not worth a word */
	STEADY_LOOK_US = 100000, /* between two looks at the wall clock */
};

/* The steady clock, in units since 1970. */
uint64_t steady_us(void);
uint64_t steady_ms(void);

/* The date, in milliseconds since 1970. */
uint64_t steady_date_ms(void);

/*
 * How many milliseconds the steady clock is ahead of the date, negative if it is behind; 0 if they
 * differ by less than STEADY_STEP_MS, as they do unless the wall clock was stepped. What is a
 * moment M by the date is M + steady_ahead_ms() by the steady clock.
 */
int64_t steady_ahead_ms(void);

/* ---- From one process to the next ---- */

struct steady_state {
	uint8_t boot[CLOCK_BOOT_ID_BYTES];
	/* All at one moment. */
	uint64_t boot_us, steady_us, date_us, wall_us;
};

void steady_save(struct steady_state *ret);

/* True if whoever restores `then` at the moment of `now` has what `now` says. */
bool steady_follows(const struct steady_state *then, const struct steady_state *now);

/*
 * Goes on from a saved state. Since the same start of the machine, exactly: what the wall clock did
 * in between is a step like any other. Else nothing but the wall clock tells how long the machine
 * was off; neither clock is then behind what was saved. Each time at most in a process; false if
 * the clocks have been restored before.
 */
bool steady_restore(const struct steady_state *state);

/*
 * Makes the clocks begin anew, with the wall clock, as in a new process. For tests of what a
 * restart does. No other thread may use them meanwhile.
 */
void steady_forget(void);

/* ---- For operators ---- */

struct steady_steps {
	uint64_t count;  /* of STEADY_STEP_MS or more */
	int64_t last_ms; /* the last one: positive if forward */
};

void steady_steps(struct steady_steps *ret);

#endif
