#include "base/steady.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/metric.h"

enum {
	US_PER_MS = 1000,
	STEP_US = 10 *
		  1000, /* less is left as it is: readings of two clocks are not simultaneous */
	LOOK_TRIES = 5,
	LOOK_WITHIN_US = 1000, /* the two readings of a look are no further apart */
};

static int64_t steady_read_off(void);

static const char *const directions[] = { "forward", "back" };
METRIC_COUNTERS(steps_metric, "frond_clock_steps_total", METRIC_NUMBER,
		"How often the machine's clock was seen to have been set, by a second or more.",
		"direction", directions);
METRIC_READ(off_metric, METRIC_KIND_GAUGE, "frond_clock_off_seconds", METRIC_SECONDS,
	    "How far the clock that lifetimes are counted by is from the machine's clock.",
	    steady_read_off);

/*
 * What the clocks show from a moment on, until another line replaces it: both are functions of the
 * time since then. A line ends where the wall clock is seen to show something else than it should.
 */
struct line {
	uint64_t boot_us; /* the moment */
	uint64_t steady_us;
	uint64_t date_us; /* at most wall_us */
	uint64_t wall_us;
};

/*
 * The present line, as a sequence lock: `sequence` is odd while the line is being replaced, and 0
 * before there is one. The lock owns the replacing, `steps` and `restored`; whoever holds it only
 * reads clocks.
 */
static struct {
	_Atomic uint64_t sequence;
	_Atomic uint64_t boot_us, steady_us, date_us, wall_us;
	_Atomic uint64_t look_us; /* when the wall clock is to be looked at again */
	pthread_mutex_t lock;
	struct steady_steps steps;
	bool restored;
} steady = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- What a line shows ---- */

static uint64_t
line_wall(const struct line *l, uint64_t boot_us)
{
	return l->wall_us + (boot_us - l->boot_us);
}

static uint64_t
line_steady(const struct line *l, uint64_t boot_us)
{
	uint64_t passed_us = boot_us - l->boot_us;
	uint64_t most_us = passed_us / STEADY_SLEW;

	if (l->wall_us >= l->steady_us) {
		uint64_t off_us = l->wall_us - l->steady_us;

		return l->steady_us + passed_us + (off_us < most_us ? off_us : most_us);
	}
	uint64_t off_us = l->steady_us - l->wall_us;

	return l->steady_us + passed_us - (off_us < most_us ? off_us : most_us);
}

static uint64_t
line_date(const struct line *l, uint64_t boot_us)
{
	uint64_t passed_us = boot_us - l->boot_us;
	uint64_t off_us = l->wall_us - l->date_us;

	return l->date_us + passed_us + (off_us < passed_us ? off_us : passed_us);
}

/* ---- The present line ---- */

static uint64_t
line_load(struct line *ret)
{
	uint64_t sequence;

	do {
		sequence = atomic_load_explicit(&steady.sequence, memory_order_acquire);
		ret->boot_us = atomic_load_explicit(&steady.boot_us, memory_order_acquire);
		ret->steady_us = atomic_load_explicit(&steady.steady_us, memory_order_acquire);
		ret->date_us = atomic_load_explicit(&steady.date_us, memory_order_acquire);
		ret->wall_us = atomic_load_explicit(&steady.wall_us, memory_order_acquire);
	} while (sequence % 2 ||
		 sequence != atomic_load_explicit(&steady.sequence, memory_order_relaxed));
	return sequence;
}

/* With the lock held. */
static void
line_store(const struct line *l)
{
	uint64_t sequence = atomic_load_explicit(&steady.sequence, memory_order_relaxed);

	atomic_store_explicit(&steady.sequence, sequence + 1, memory_order_relaxed);
	atomic_store_explicit(&steady.boot_us, l->boot_us, memory_order_release);
	atomic_store_explicit(&steady.steady_us, l->steady_us, memory_order_release);
	atomic_store_explicit(&steady.date_us, l->date_us, memory_order_release);
	atomic_store_explicit(&steady.wall_us, l->wall_us, memory_order_release);
	atomic_store_explicit(&steady.sequence, sequence + 2, memory_order_release);
}

/*
 * Reads both clocks at one moment. False if the thread was interrupted in between each time; the
 * values are then those of moments further apart.
 */
static bool
clocks_read(uint64_t *ret_boot_us, uint64_t *ret_wall_us)
{
	for (int i = 0; i < LOOK_TRIES; i++) {
		*ret_boot_us = clock_boot_us();
		*ret_wall_us = clock_wall_us();
		if (clock_boot_us() - *ret_boot_us <= LOOK_WITHIN_US)
			return true;
	}
	return false;
}

static uint64_t
later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void
step_note(int64_t step_us)
{
	int64_t ms = step_us / US_PER_MS;

	if (ms > -STEADY_STEP_MS && ms < STEADY_STEP_MS)
		return;
	steady.steps.count++;
	steady.steps.last_ms = ms;
	metric_add_at(&steps_metric, ms < 0, 1);
}

/* With the lock held: begins another line if the wall clock is not where `l` has it. */
static void
line_look(struct line *l)
{
	uint64_t boot_us, wall_us;
	int64_t step_us;

	if (!clocks_read(&boot_us, &wall_us))
		return;
	if (boot_us < l->boot_us) {
		/* The process was taken to another machine: nothing tells how long that took. */
		*l = (struct line){ boot_us, later(l->steady_us, wall_us), wall_us, wall_us };
		line_store(l);
		return;
	}
	step_us = (int64_t)(wall_us - line_wall(l, boot_us));
	if (step_us > -STEP_US && step_us < STEP_US)
		return;
	step_note(step_us);
	*l = (struct line){ .boot_us = boot_us,
			    .steady_us = line_steady(l, boot_us),
			    .date_us = line_date(l, boot_us),
			    .wall_us = wall_us };
	if (l->date_us > wall_us)
		l->date_us = wall_us;
	line_store(l);
}

/* With the lock held. */
static void
line_begin(struct line *l)
{
	(void)clocks_read(&l->boot_us, &l->wall_us);
	l->steady_us = l->date_us = l->wall_us;
	line_store(l);
}

/* The line, and the moment: the wall clock has been looked at lately. */
static uint64_t
line_now(struct line *ret)
{
	uint64_t sequence = line_load(ret);
	uint64_t now_us = clock_boot_us();
	uint64_t look_us = atomic_load_explicit(&steady.look_us, memory_order_relaxed);

	if (sequence && now_us < look_us && now_us >= ret->boot_us)
		return now_us;
	pthread_mutex_lock(&steady.lock);
	if (line_load(ret) == 0)
		line_begin(ret);
	else
		line_look(ret);
	now_us = clock_boot_us();
	atomic_store_explicit(&steady.look_us, now_us + STEADY_LOOK_US, memory_order_relaxed);
	pthread_mutex_unlock(&steady.lock);
	return now_us;
}

/* ---- Reading ---- */

uint64_t
steady_us(void)
{
	struct line l;
	uint64_t now_us = line_now(&l);

	return line_steady(&l, now_us);
}

uint64_t
steady_ms(void)
{
	return steady_us() / US_PER_MS;
}

uint64_t
steady_date_ms(void)
{
	struct line l;
	uint64_t now_us = line_now(&l);

	return line_date(&l, now_us) / US_PER_MS;
}

int64_t
steady_ahead_ms(void)
{
	struct line l;
	uint64_t now_us = line_now(&l);
	int64_t ms = (int64_t)(line_steady(&l, now_us) - line_date(&l, now_us)) / US_PER_MS;

	return ms > -STEADY_STEP_MS && ms < STEADY_STEP_MS ? 0 : ms;
}

static int64_t
steady_read_off(void)
{
	struct line l;
	uint64_t now_us = line_now(&l);
	int64_t us = (int64_t)(line_steady(&l, now_us) - line_wall(&l, now_us));

	return (us < 0 ? -us : us) * US_PER_MS;
}

void
steady_steps(struct steady_steps *ret)
{
	pthread_mutex_lock(&steady.lock);
	*ret = steady.steps;
	pthread_mutex_unlock(&steady.lock);
}

/* ---- From one process to the next ---- */

void
steady_save(struct steady_state *ret)
{
	struct line l;
	uint64_t now_us = line_now(&l);

	*ret = (struct steady_state){ .boot_us = now_us,
				      .steady_us = line_steady(&l, now_us),
				      .date_us = line_date(&l, now_us),
				      .wall_us = line_wall(&l, now_us) };
	clock_boot_id(ret->boot);
}

static struct line
line_of_state(const struct steady_state *state)
{
	return (struct line){ .boot_us = state->boot_us,
			      .steady_us = state->steady_us,
			      .date_us = state->date_us,
			      .wall_us = later(state->wall_us, state->date_us) };
}

static bool
is_near(uint64_t a_us, uint64_t b_us)
{
	return (a_us > b_us ? a_us - b_us : b_us - a_us) < STEP_US;
}

bool
steady_follows(const struct steady_state *then, const struct steady_state *now)
{
	struct line l = line_of_state(then);

	return memcmp(then->boot, now->boot, CLOCK_BOOT_ID_BYTES) == 0 &&
	       then->boot_us <= now->boot_us &&
	       is_near(line_steady(&l, now->boot_us), now->steady_us) &&
	       is_near(line_date(&l, now->boot_us), now->date_us) &&
	       is_near(line_wall(&l, now->boot_us), now->wall_us);
}

static bool
state_is_of_this_boot(const struct steady_state *state, uint64_t now_us)
{
	static const uint8_t unknown[CLOCK_BOOT_ID_BYTES];
	uint8_t boot[CLOCK_BOOT_ID_BYTES];

	clock_boot_id(boot);
	return memcmp(boot, unknown, sizeof(boot)) != 0 &&
	       memcmp(boot, state->boot, sizeof(boot)) == 0 && state->boot_us <= now_us;
}

/*
 * The line of a state that was saved before the machine was started again. A clock that was behind
 * the wall clock stays behind it, by as much: nothing tells whether the wall clock was right then
 * or is now, and what falls due too early is lost.
 */
static void
line_begin_again(struct line *l, const struct steady_state *state)
{
	uint64_t steady_behind_us = state->wall_us > state->steady_us
					    ? state->wall_us - state->steady_us
					    : 0;
	uint64_t date_behind_us = state->wall_us > state->date_us ? state->wall_us - state->date_us
								  : 0;

	line_begin(l);
	l->steady_us = later(state->steady_us, l->wall_us - steady_behind_us);
	l->date_us = l->wall_us - date_behind_us;
	if (l->date_us < state->date_us)
		l->date_us = state->date_us < l->wall_us ? state->date_us : l->wall_us;
	line_store(l);
}

bool
steady_restore(const struct steady_state *state)
{
	struct line l = line_of_state(state);
	bool restores;

	pthread_mutex_lock(&steady.lock);
	restores = !steady.restored;
	steady.restored = true;
	if (restores && state_is_of_this_boot(state, clock_boot_us())) {
		line_store(&l);
		line_look(&l);
	} else if (restores) {
		line_begin_again(&l, state);
	}
	pthread_mutex_unlock(&steady.lock);
	return restores;
}

void
steady_forget(void)
{
	pthread_mutex_lock(&steady.lock);
	steady.restored = false;
	atomic_store(&steady.sequence, 0);
	pthread_mutex_unlock(&steady.lock);
}
