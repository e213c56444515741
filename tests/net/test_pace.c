#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "net/pace.h"

static const struct net_pace_limits limits = {
	.stall_ms = 5000,
	.min_rate_bytes = 100,
	.window_ms = 10000,
};

static enum net_verdict
after_ms(struct net_pace *p, uint64_t ms, uint64_t bytes)
{
	return net_pace_count(p, &limits, ms * CLOCK_NS_PER_MS, bytes);
}

static void
silence_is_a_stall(void **state)
{
	struct net_pace p = { 0 };

	(void)state;
	assert_int_equal(after_ms(&p, 4999, 0), NET_KEEPS_UP);
	assert_int_equal(after_ms(&p, 1, 1), NET_KEEPS_UP);
	assert_int_equal(after_ms(&p, 4999, 0), NET_KEEPS_UP);
	assert_int_equal(after_ms(&p, 1, 0), NET_STALLS);
}

static void
trickle_is_slow_at_the_end_of_a_window(void **state)
{
	struct net_pace p = { 0 };

	(void)state;
	for (int second = 1; second < 10; second++)
		assert_int_equal(after_ms(&p, 1000, 99), NET_KEEPS_UP);
	assert_int_equal(after_ms(&p, 1000, 99), NET_IS_SLOW);
}

static void
least_rate_keeps_up_for_ever(void **state)
{
	struct net_pace p = { 0 };

	(void)state;
	for (int second = 1; second < 100; second++)
		assert_int_equal(after_ms(&p, 1000, 100), NET_KEEPS_UP);
}

static void
burst_is_fine_and_no_credit_for_the_next_window(void **state)
{
	struct net_pace p = { 0 };

	(void)state;
	assert_int_equal(after_ms(&p, 4000, 1000), NET_KEEPS_UP);
	assert_int_equal(after_ms(&p, 4000, 1), NET_KEEPS_UP);
	assert_int_equal(after_ms(&p, 2000, 1000000), NET_KEEPS_UP);
	assert_int_equal(after_ms(&p, 4000, 1), NET_KEEPS_UP);
	assert_int_equal(after_ms(&p, 4000, 1), NET_KEEPS_UP);
	assert_int_equal(after_ms(&p, 2000, 1), NET_IS_SLOW);
}

static void
next_look_is_at_the_nearer_of_both(void **state)
{
	struct net_pace p = { 0 };

	(void)state;
	assert_int_equal(net_pace_left_ns(&p, &limits), 5000 * CLOCK_NS_PER_MS);
	assert_int_equal(after_ms(&p, 4000, 0), NET_KEEPS_UP);
	assert_int_equal(net_pace_left_ns(&p, &limits), 1000 * CLOCK_NS_PER_MS);
	assert_int_equal(after_ms(&p, 4000, 1), NET_KEEPS_UP);
	assert_int_equal(net_pace_left_ns(&p, &limits), 2000 * CLOCK_NS_PER_MS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence_is_a_stall),
		cmocka_unit_test(trickle_is_slow_at_the_end_of_a_window),
		cmocka_unit_test(least_rate_keeps_up_for_ever),
		cmocka_unit_test(burst_is_fine_and_no_credit_for_the_next_window),
		cmocka_unit_test(next_look_is_at_the_nearer_of_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
