/*
 * The steady clock and the date, over clocks that the test sets: they stand in for base/clock.c.
 * Times are in milliseconds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/steady.h"

#define START_MS INT64_C(1800000000000)
#define SECOND   INT64_C(1000)
#define MINUTE   (60 * SECOND)
#define HOUR     (60 * MINUTE)
#define DAY      (24 * HOUR)

/* The machine: what its clocks show, and what happened in truth. */
static struct {
	int64_t boot_ms, wall_off_ms;
	uint8_t boot_id;
} machine;

uint64_t
clock_mono_ns(void)
{
	return (uint64_t)machine.boot_ms * CLOCK_NS_PER_MS;
}

uint64_t
clock_cpu_ns(void)
{
	return clock_mono_ns();
}

uint64_t
clock_boot_us(void)
{
	return (uint64_t)machine.boot_ms * 1000;
}

void
clock_boot_id(uint8_t ret[CLOCK_BOOT_ID_BYTES])
{
	memset(ret, machine.boot_id, CLOCK_BOOT_ID_BYTES);
}

uint64_t
clock_wall_us(void)
{
	return (uint64_t)(machine.boot_ms + machine.wall_off_ms) * 1000;
}

uint64_t
clock_wall_ms(void)
{
	return clock_wall_us() / 1000;
}

/* What the clocks show beyond the time since the start of the case. */
static int64_t begun_ms;

static int64_t
true_ms(void)
{
	return machine.boot_ms - begun_ms;
}

static int64_t
steady_off(void)
{
	return (int64_t)steady_ms() - START_MS - true_ms();
}

static int64_t
date_off(void)
{
	return (int64_t)steady_date_ms() - START_MS - true_ms();
}

/* Time passes, in which somebody reads the clocks now and then. */
static void
pass(int64_t ms)
{
	for (int i = 0; i < 100; i++) {
		uint64_t before = steady_us();

		machine.boot_ms += ms / 100;
		assert_true(steady_us() >= before);
	}
}

static void
wall_step(int64_t ms)
{
	machine.wall_off_ms += ms;
}

/* Another process, on the same machine, which takes over the clocks from the one before. */
static void
process_restart(void)
{
	struct steady_state state;

	steady_save(&state);
	steady_forget();
	assert_true(steady_restore(&state));
	assert_false(steady_restore(&state));
}

/* The same after the machine was off for that long, and its wall clock stepped by `step_ms`. */
static void
machine_restart(int64_t off_ms, int64_t step_ms)
{
	struct steady_state state;
	int64_t wall_ms = machine.boot_ms + machine.wall_off_ms + off_ms + step_ms;

	steady_save(&state);
	begun_ms -= machine.boot_ms + off_ms - MINUTE;
	machine.boot_ms = MINUTE;
	machine.wall_off_ms = wall_ms - machine.boot_ms;
	machine.boot_id++;
	steady_forget();
	assert_true(steady_restore(&state));
}

static int
machine_set_up(void **state)
{
	(void)state;
	begun_ms = HOUR;
	machine.boot_ms = begun_ms;
	machine.wall_off_ms = START_MS - machine.boot_ms;
	machine.boot_id = 7;
	steady_forget();
	assert_int_equal(steady_off(), 0);
	return 0;
}

static void
both_are_the_wall_clock_as_long_as_that_is_not_stepped(void **state)
{
	(void)state;
	pass(DAY);
	assert_int_equal(steady_off(), 0);
	assert_int_equal(date_off(), 0);
	assert_int_equal(steady_ahead_ms(), 0);
}

static void
a_step_back_does_not_stop_lifetimes(void **state)
{
	(void)state;
	pass(MINUTE);
	wall_step(-2 * MINUTE);
	assert_int_equal(steady_off(), 0);
	pass(30 * SECOND);
	/* Thirty seconds are thirty seconds, but for a part in 200. */
	assert_in_range(steady_off() + 150, 0, 150);
	/* The date is what the wall clock says. */
	assert_int_equal(date_off(), -2 * MINUTE);
	assert_in_range(steady_ahead_ms(), 2 * MINUTE - 150, 2 * MINUTE);
	/* In the end they agree again. */
	pass(2 * MINUTE * STEADY_SLEW);
	assert_int_equal(steady_off(), -2 * MINUTE);
	assert_int_equal(steady_ahead_ms(), 0);
}

static void
a_day_forward_for_a_minute_makes_nothing_due_that_is_not(void **state)
{
	struct steady_steps steps, before;

	(void)state;
	steady_steps(&before);
	pass(MINUTE);
	wall_step(DAY);
	pass(MINUTE);
	assert_in_range(steady_off(), 0, 300);
	assert_in_range(date_off(), 0, MINUTE);
	wall_step(-DAY);
	pass(SECOND);
	assert_in_range(steady_off(), 0, 305);
	assert_int_equal(date_off(), 0);
	/* And nothing stands still. */
	pass(HOUR);
	assert_in_range(steady_off(), 0, 305);
	assert_int_equal(date_off(), 0);
	steady_steps(&steps);
	assert_int_equal(steps.count - before.count, 2);
	assert_int_equal(steps.last_ms, -DAY);
}

static void
the_date_makes_up_for_a_day_that_was_skipped_in_a_day(void **state)
{
	(void)state;
	wall_step(DAY);
	pass(HOUR);
	assert_in_range(date_off(), HOUR - MINUTE, HOUR);
	pass(24 * HOUR);
	assert_int_equal(date_off(), DAY);
	/* What is counted in lifetimes hardly notices. */
	assert_in_range(steady_off(), 0, 25 * HOUR / STEADY_SLEW + 1);
}

static void
many_steps_do_not_add_up(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		wall_step(i % 2 ? -DAY : DAY);
		pass(10 * SECOND);
	}
	assert_in_range(steady_off() + 5 * SECOND, 0, 10 * SECOND);
	assert_int_equal(date_off(), 0);
}

static void
a_small_step_is_followed_and_not_counted(void **state)
{
	struct steady_steps steps, before;

	(void)state;
	steady_steps(&before);
	wall_step(400);
	pass(5 * MINUTE);
	assert_int_equal(steady_off(), 400);
	assert_int_equal(date_off(), 400);
	steady_steps(&steps);
	assert_int_equal(steps.count, before.count);
}

static void
another_process_goes_on_where_the_first_one_was(void **state)
{
	(void)state;
	wall_step(-2 * MINUTE);
	pass(10 * SECOND);
	process_restart();
	assert_in_range(steady_off() + 50, 0, 50);
	assert_int_equal(date_off(), -2 * MINUTE);
	pass(20 * SECOND);
	assert_in_range(steady_off() + 150, 0, 150);
}

static void
a_step_while_no_process_ran_is_a_step_like_others(void **state)
{
	struct steady_state saved;

	(void)state;
	steady_save(&saved);
	machine.boot_ms += 10 * SECOND;
	wall_step(DAY);
	steady_forget();
	assert_true(steady_restore(&saved));
	assert_int_equal(steady_off(), 0);
	assert_int_equal(date_off(), 0);
	pass(MINUTE);
	assert_in_range(steady_off(), 0, 300);
	assert_in_range(date_off(), 0, MINUTE);
}

static void
a_machine_that_was_off_is_told_by_its_wall_clock(void **state)
{
	(void)state;
	pass(MINUTE);
	machine_restart(HOUR, 0);
	assert_int_equal(steady_off(), 0);
	assert_int_equal(date_off(), 0);
}

static void
a_machine_that_starts_in_the_past_does_not_go_back(void **state)
{
	(void)state;
	pass(MINUTE);
	machine_restart(MINUTE, -HOUR);
	/* The minute in which it was off is not known. */
	assert_int_equal(steady_off(), -MINUTE);
	pass(SECOND);
	assert_in_range(steady_off() + MINUTE + 10, 0, 10);
}

static void
a_machine_that_starts_with_another_clock_makes_nothing_due_early(void **state)
{
	(void)state;
	/* Behind the wall clock, which is right when the machine has started again. */
	wall_step(DAY);
	pass(SECOND);
	machine_restart(MINUTE, -DAY);
	assert_in_range(steady_off() + MINUTE, 0, 5);
	assert_true(date_off() <= 0);
	/* Ahead of it, likewise. */
	machine_set_up(NULL);
	wall_step(-DAY);
	pass(SECOND);
	machine_restart(MINUTE, DAY);
	assert_int_equal(steady_off(), 0);
	assert_int_equal(date_off(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(both_are_the_wall_clock_as_long_as_that_is_not_stepped,
				       machine_set_up),
		cmocka_unit_test_setup(a_step_back_does_not_stop_lifetimes, machine_set_up),
		cmocka_unit_test_setup(a_day_forward_for_a_minute_makes_nothing_due_that_is_not,
				       machine_set_up),
		cmocka_unit_test_setup(the_date_makes_up_for_a_day_that_was_skipped_in_a_day,
				       machine_set_up),
		cmocka_unit_test_setup(many_steps_do_not_add_up, machine_set_up),
		cmocka_unit_test_setup(a_small_step_is_followed_and_not_counted, machine_set_up),
		cmocka_unit_test_setup(another_process_goes_on_where_the_first_one_was,
				       machine_set_up),
		cmocka_unit_test_setup(a_step_while_no_process_ran_is_a_step_like_others,
				       machine_set_up),
		cmocka_unit_test_setup(a_machine_that_was_off_is_told_by_its_wall_clock,
				       machine_set_up),
		cmocka_unit_test_setup(a_machine_that_starts_in_the_past_does_not_go_back,
				       machine_set_up),
		cmocka_unit_test_setup(
			a_machine_that_starts_with_another_clock_makes_nothing_due_early,
			machine_set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
