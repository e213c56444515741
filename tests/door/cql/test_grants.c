/* What roles of people allow at Cassandra's door. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "door/cql/conn/grants.h"

enum {
	ARENA_BYTES = 64 * 1024,
};

static void
roles_allow_what_they_name_and_nothing_else(void **state)
{
	const struct str roles[] = { STR("cql:select@shop"), STR("cql:modify@shop.orders"),
				     STR("mongo:root"), STR("cql:everything"), STR("cql:create") };
	struct arena *arena = arena_new(ARENA_BYTES);
	struct grants g;

	(void)state;
	grants_of_roles(&g, roles, 5, false, arena);
	assert_int_equal(g.count, 3);
	assert_true(grants_allow(&g, GRANT_SELECT, STR("shop"), STR("orders")));
	assert_true(grants_allow(&g, GRANT_MODIFY, STR("shop"), STR("orders")));
	assert_false(grants_allow(&g, GRANT_MODIFY, STR("shop"), STR("people")));
	assert_false(grants_allow(&g, GRANT_SELECT, STR("other"), STR("orders")));
	assert_false(grants_allow(&g, GRANT_MODIFY, STR("shop"), STR("")));
	assert_true(grants_allow(&g, GRANT_CREATE, STR(""), STR("")));
	assert_false(grants_allow(&g, GRANT_DROP, STR("shop"), STR("orders")));
	grants_of_roles(&g, roles, 0, true, arena);
	assert_true(grants_allow(&g, GRANT_DROP, STR("shop"), STR("orders")));
	grants_of_roles(&g, roles, 0, false, arena);
	assert_false(grants_allow(&g, GRANT_SELECT, STR("shop"), STR("orders")));
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roles_allow_what_they_name_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
