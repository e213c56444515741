/* How much a peer may leave unread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/unread.h"

enum {
	KB = 1024,
	MOST = 1024 * KB,
	FREE = NET_UNREAD_FREE_BYTES,
	LONG_S = 1000,
};

static void
more_than_the_hard_limit_is_too_much_at_once(void **state)
{
	struct net_unread_limit limit = { .hard_bytes = 100 * KB };
	struct net_unread u = { .answer_bytes = 100 * KB };

	(void)state;
	u.waiting_bytes = FREE;
	assert_true(net_unread_keeps(&u, &limit, MOST));
	assert_int_equal(net_unread_until_ns(&u, &limit), UINT64_MAX);
	u.flying_bytes = 1;
	assert_int_equal(net_unread_bytes(&u), 100 * KB + FREE + 1);
	assert_false(net_unread_keeps(&u, &limit, MOST));
	/* The limit may be changed meanwhile. */
	atomic_store(&limit.hard_bytes, 0);
	assert_true(net_unread_keeps(&u, &limit, MOST));
}

static void
the_soft_limit_may_be_exceeded_for_its_time(void **state)
{
	struct net_unread_limit limit = { .soft_bytes = 10 * KB, .soft_s = LONG_S };
	struct net_unread u = { .waiting_bytes = FREE + 10 * KB };
	uint64_t before_ns = clock_mono_ns();

	(void)state;
	assert_true(net_unread_keeps(&u, &limit, MOST));
	assert_int_equal(u.over_ns, 0);
	u.waiting_bytes++;
	assert_true(net_unread_keeps(&u, &limit, MOST));
	assert_true(u.over_ns >= before_ns);
	assert_int_equal(net_unread_until_ns(&u, &limit),
			 u.over_ns + LONG_S * 1000 * CLOCK_NS_PER_MS);
	/* Of that time, as it is set now, nothing is left. */
	atomic_store(&limit.soft_s, 0);
	u.over_ns--;
	assert_false(net_unread_keeps(&u, &limit, MOST));
	/* Who has read enough begins anew. */
	u.waiting_bytes--;
	assert_true(net_unread_keeps(&u, &limit, MOST));
	assert_int_equal(net_unread_until_ns(&u, &limit), UINT64_MAX);
}

static void
messages_have_a_limit_that_no_setting_lifts(void **state)
{
	const struct net_unread_limit limit = { 0 };
	struct net_unread u = { .waiting_bytes = MOST - 1,
				.flying_bytes = 1,
				.answer_bytes = MOST };

	(void)state;
	assert_true(net_unread_keeps(&u, &limit, MOST));
	u.flying_bytes++;
	assert_false(net_unread_keeps(&u, &limit, MOST));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_than_the_hard_limit_is_too_much_at_once),
		cmocka_unit_test(the_soft_limit_may_be_exceeded_for_its_time),
		cmocka_unit_test(messages_have_a_limit_that_no_setting_lifts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
