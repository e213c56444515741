/* A worker that computes gives way again and again, and one that waits does not (turns.h). */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "js/worker/turns.h"

#define PATIENCE_NS UINT64_C(60000000000)

/*
 * Looks at the clock in each round, for the limit, and because TSan hands signals on in calls of
 * the C library alone: a loop without one would never end.
 */
static void
compute_until_given(uint64_t count)
{
	uint64_t until_ns = clock_mono_ns() + PATIENCE_NS;

	while (turns_given() < count)
		assert_true(clock_mono_ns() < until_ns);
}

static void
who_computes_gives_way_until_the_end(void **state)
{
	uint64_t begun_ns = clock_mono_ns(), until_ns;
	uint64_t given;

	(void)state;
	assert_true(turns_prepare(NULL, NULL));
	assert_int_equal(turns_given(), 0);
	turns_begin();
	compute_until_given(10);
	turns_end();
	/* The turns are as long as they say: not one of them is a moment early. */
	assert_true(clock_mono_ns() - begun_ns >= UINT64_C(9) * TURN_NS);
	given = turns_given();
	until_ns = clock_mono_ns() + UINT64_C(10) * TURN_NS;
	while (clock_mono_ns() < until_ns)
		;
	assert_int_equal(turns_given(), given);
	/* And once more. */
	turns_begin();
	compute_until_given(given + 2);
	turns_end();
}

/* As a worker on a busy machine, which has the signal of a turn whenever it gets a processor. */
static void
who_has_waited_keeps_its_turn(void **state)
{
	const struct timespec two_turns = { 0, 2 * TURN_NS };
	uint64_t before_ns = clock_cpu_ns();
	uint64_t before = turns_given();
	sigset_t turn_ends;

	(void)state;
	sigemptyset(&turn_ends);
	sigaddset(&turn_ends, SIGALRM);
	turns_begin();
	for (int i = 0; i < 200; i++) {
		assert_int_equal(sigprocmask(SIG_BLOCK, &turn_ends, NULL), 0);
		assert_int_equal(clock_nanosleep(CLOCK_MONOTONIC, 0, &two_turns, NULL), 0);
		assert_int_equal(sigprocmask(SIG_UNBLOCK, &turn_ends, NULL), 0);
	}
	turns_end();
	assert_true(turns_given() - before <= 1 + (clock_cpu_ns() - before_ns) / TURN_LEAST_NS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_computes_gives_way_until_the_end),
		cmocka_unit_test(who_has_waited_keeps_its_turn),
	};

	return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
