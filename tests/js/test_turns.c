/* A worker that computes gives way again and again, and one that waits does not (turns.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "js/worker/turns.h"

static void
who_computes_gives_way_until_the_end(void **state)
{
	uint64_t begun_ns = clock_mono_ns(), until_ns;
	uint64_t given;

	(void)state;
	turns_prepare();
	assert_int_equal(turns_given(), 0);
	turns_begin();
	while (turns_given() < 10)
		;
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
	while (turns_given() < given + 2)
		;
	turns_end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_computes_gives_way_until_the_end),
	};

	return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
