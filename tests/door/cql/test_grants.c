/* What roles of people allow at Cassandra's door. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "door/cql/people/grants.h"

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

static bool
allows(struct str role, unsigned wanted, struct grant_resource on)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct grants g;
	bool allowed;

	grants_of_roles(&g, &role, 1, false, arena);
	allowed = grants_allow_on(&g, wanted, &on);
	arena_free(arena);
	return allowed;
}

static void
permissions_on_roles_are_not_those_on_keyspaces(void **state)
{
	const struct grant_resource roles = { .of_roles = true };
	const struct grant_resource ann = { .of_roles = true, .role = STR("ann") };
	const struct grant_resource keyspace = { .tables = { .keyspace = STR("roles") } };

	(void)state;
	assert_true(allows(STR("cql:alter@roles/"), GRANT_ALTER, ann));
	assert_true(allows(STR("cql:alter@roles/ann"), GRANT_ALTER, ann));
	assert_false(allows(STR("cql:alter@roles/ann"), GRANT_ALTER, roles));
	assert_false(allows(STR("cql:alter@roles/a"), GRANT_ALTER, ann));
	assert_false(allows(STR("cql:alter@roles/"), GRANT_ALTER, keyspace));
	assert_true(allows(STR("cql:alter@roles"), GRANT_ALTER, keyspace));
	assert_false(allows(STR("cql:alter@roles"), GRANT_ALTER, ann));
	assert_false(allows(STR("cql:all"), GRANT_ALTER, ann));
	/* What cannot be given on a resource is not there. */
	assert_false(allows(STR("cql:all@shop.orders"), GRANT_CREATE,
			    (struct grant_resource){ .tables = { STR("shop"), STR("orders") } }));
	assert_false(allows(STR("cql:all@roles/ann"), GRANT_CREATE, ann));
	assert_true(allows(STR("cql:superuser"), GRANT_CREATE, roles));
	assert_false(allows(STR("cql:superuser@shop"), GRANT_SELECT, keyspace));
	assert_false(allows(STR("cql:superusers"), GRANT_SELECT, keyspace));
}

static void
somebody_who_was_dropped_may_nothing(void **state)
{
	const struct str roles[] = { STR("cql:superuser"), STR("cql:role@clerks"),
				     STR("cql:dropped"), STR("cql:all") };
	struct arena *arena = arena_new(ARENA_BYTES);
	struct grants g;

	(void)state;
	grants_of_roles(&g, roles, 4, false, arena);
	assert_false(g.everything);
	assert_int_equal(g.count, 0);
	assert_int_equal(g.role_count, 0);
	arena_free(arena);
}

static void
roles_of_roles_are_bounded_and_each_is_there_once(void **state)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct grants g = { 0 };

	(void)state;
	for (int i = 0; i < 2 * GRANTS_ROLES; i++) {
		struct str role = arena_printf(arena, "cql:role@r%d", i);

		grants_add(&g, &role, 1, arena);
		grants_add(&g, &role, 1, arena);
		assert_int_equal(g.role_count, i < GRANTS_ROLES ? i + 1 : GRANTS_ROLES);
	}
	assert_true(str_eq(g.roles[5], STR("r5")));
	arena_free(arena);
}

/* What is written of permissions is read as the same. */
static void
permissions_are_texts_and_back(void **state)
{
	const struct grant_resource resources[] = {
		{ 0 },
		{ .tables = { .keyspace = STR("shop") } },
		{ .tables = { STR("shop"), STR("orders") } },
		{ .of_roles = true },
		{ .of_roles = true, .role = STR("a@b/c.d") },
	};
	struct arena *arena = arena_new(ARENA_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
		unsigned all = grant_applicable(&resources[i]);

		for (unsigned grants = 1; grants <= GRANT_ALL; grants++) {
			struct str texts[16];
			size_t count = 0;
			unsigned read = 0;

			if (grants & ~all)
				continue;
			arena_clear(arena);
			assert_int_equal(
				grants_text_put(grants, &resources[i], arena, texts, &count),
				STATUS_OK);
			for (size_t j = 0; j < count; j++) {
				struct grants_text t = grants_text_read(texts[j]);

				assert_int_equal(t.kind, GRANTS_GRANT);
				assert_true(grant_resource_is(&t.on, &resources[i]));
				read |= t.grants;
			}
			assert_int_equal(read, grants);
			assert_true(grants != all || count == 1);
		}
	}
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roles_allow_what_they_name_and_nothing_else),
		cmocka_unit_test(permissions_on_roles_are_not_those_on_keyspaces),
		cmocka_unit_test(somebody_who_was_dropped_may_nothing),
		cmocka_unit_test(roles_of_roles_are_bounded_and_each_is_there_once),
		cmocka_unit_test(permissions_are_texts_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
