/* What clients are told where whoever failed has said nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "net/session.h"
#include "serve/explain.h"

enum {
	BUDGET_BYTES = 1024 * 1024,
};

static struct budget budget;

static int
setup(void **state)
{
	(void)state;
	budget_init(&budget, BUDGET_BYTES);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	budget_fini(&budget);
	return 0;
}

/* `said` is what there is before; `refused`: the budget had no memory. */
static void
check(enum status status, const char *said, bool refused, const char *told)
{
	struct net_session session = { .part = { .budget = &budget, .refused = refused } };
	struct err err = { 0 };

	if (said)
		err_set(&err, status, "%s", said);
	explain_failure(&session, &session.part, status, &err);
	if (!strstr(err.text, told))
		fail_msg("%s: told \"%s\", expected \"%s\"", status_name(status), err.text, told);
}

static void
an_explanation_is_kept(void **state)
{
	(void)state;
	check(STATUS_LIMIT, "a row has more than 3 columns", true, "a row has more than 3 columns");
	check(STATUS_TX_CONFLICT, "gave up after 100 attempts", false, "gave up after 100");
}

static void
a_lack_of_memory_names_its_limit(void **state)
{
	(void)state;
	check(STATUS_LIMIT, NULL, true, "memory_bytes, is 1048576");
	/* As kv_run() leaves it. */
	check(STATUS_LIMIT, status_name(STATUS_LIMIT), true, "memory_bytes, is 1048576");
	check(STATUS_NOMEM, status_name(STATUS_NOMEM), true, "memory_bytes, is 1048576");
}

static void
the_name_of_a_status_explains_nothing(void **state)
{
	(void)state;
	check(STATUS_LIMIT, status_name(STATUS_LIMIT), false, "more memory than one may take");
	check(STATUS_STEPS, status_name(STATUS_STEPS), false, "request_steps");
	check(STATUS_TX_TOO_LARGE, status_name(STATUS_TX_TOO_LARGE), false, "KV_LIMIT_TX_BYTES");
	check(STATUS_IO, NULL, false, status_name(STATUS_IO));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_explanation_is_kept),
		cmocka_unit_test(a_lack_of_memory_names_its_limit),
		cmocka_unit_test(the_name_of_a_status_explains_nothing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
