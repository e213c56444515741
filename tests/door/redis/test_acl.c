/* What the rules of Redis's people allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "door/redis/acl.h"
#include "door/redis/commands.h"

enum {
	ARENA_BYTES = 64 * 1024,
	KEYS = 1000,
};

static const struct command *
command_named(const char *name)
{
	for (size_t i = 0; i < command_count; i++)
		if (strcmp(command_table[i].name, name) == 0)
			return &command_table[i];
	fail_msg("there is no %s", name);
	return NULL;
}

static void
keys_and_channels_are_checked_behind_the_command(void **state)
{
	const struct str role = STR("redis:~mine:* &news +get +mget +publish");
	const struct str mget[] = { STR("MGET"), STR("mine:1"), STR("yours:1") };
	const struct str publish[] = { STR("PUBLISH"), STR("gossip"), STR("text") };
	struct arena *arena = arena_new(ARENA_BYTES);
	struct str object;
	struct acl acl;

	(void)state;
	acl_of_roles(&acl, &role, 1, arena);
	assert_int_equal(acl_check(&acl, command_named("set"), mget, 3, arena, &object),
			 ACL_DENIED_COMMAND);
	assert_int_equal(acl_check(&acl, command_named("mget"), mget, 2, arena, &object),
			 ACL_ALLOWED);
	assert_int_equal(acl_check(&acl, command_named("mget"), mget, 3, arena, &object),
			 ACL_DENIED_KEY);
	assert_true(str_eq(object, STR("yours:1")));
	assert_int_equal(acl_check(&acl, command_named("publish"), publish, 3, arena, &object),
			 ACL_DENIED_CHANNEL);
	assert_true(str_eq(object, STR("gossip")));
	arena_free(arena);
}

/* Who has used up the memory of a script or a batch must not get past the rules by that. */
static void
what_cannot_be_checked_is_denied(void **state)
{
	const struct str role = STR("redis:~mine:* +mget");
	struct str argv[KEYS + 1] = { STR("MGET") }, object;
	struct arena *arena = arena_new(ARENA_BYTES);
	struct acl acl;

	(void)state;
	acl_of_roles(&acl, &role, 1, arena);
	for (size_t i = 1; i <= KEYS; i++)
		argv[i] = STR("mine:1");
	assert_int_equal(acl_check(&acl, command_named("mget"), argv, KEYS + 1, arena, &object),
			 ACL_ALLOWED);
	while (arena_alloc(arena, KEYS * sizeof(size_t)))
		;
	assert_int_equal(acl_check(&acl, command_named("mget"), argv, KEYS + 1, arena, &object),
			 ACL_DENIED_KEY);
	acl_allow_all(&acl);
	assert_int_equal(acl_check(&acl, command_named("mget"), argv, KEYS + 1, arena, &object),
			 ACL_ALLOWED);
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_and_channels_are_checked_behind_the_command),
		cmocka_unit_test(what_cannot_be_checked_is_denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
