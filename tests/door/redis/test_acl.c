/* What the rules of Redis's people allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "door/redis/acl/acl.h"
#include "door/redis/cmd/commands.h"

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

static void
rights_to_a_key_are_those_that_the_call_needs(void **state)
{
	const struct str role = STR(
		"redis:%R~from %W~to %R~both %W~bot* &news +@all -auth -flushall");
	const struct {
		const char *name;
		struct str argv[4];
		size_t argc;
		bool allowed;
	} calls[] = {
		{ "copy", { STR("COPY"), STR("from"), STR("to") }, 3, true },
		{ "copy", { STR("COPY"), STR("to"), STR("from") }, 3, false },
		{ "rename", { STR("RENAME"), STR("from"), STR("to") }, 3, false },
		{ "set", { STR("SET"), STR("to"), STR("x") }, 3, true },
		{ "set", { STR("SET"), STR("to"), STR("x"), STR("GET") }, 4, false },
		{ "set", { STR("SET"), STR("from"), STR("x") }, 3, false },
		{ "getdel", { STR("GETDEL"), STR("to") }, 2, false },
		{ "getset", { STR("GETSET"), STR("to"), STR("x") }, 3, false },
		{ "lpop", { STR("LPOP"), STR("to") }, 2, false },
		{ "del", { STR("DEL"), STR("to") }, 2, true },
		{ "del", { STR("DEL"), STR("from") }, 2, false },
		{ "exists", { STR("EXISTS"), STR("from"), STR("to") }, 3, true },
		{ "object", { STR("OBJECT"), STR("ENCODING"), STR("to") }, 3, true },
		{ "object", { STR("OBJECT"), STR("ENCODING"), STR("other") }, 3, false },
		{ "bitfield", { STR("BITFIELD"), STR("from") }, 2, true },
		/* One pattern has to allow all of it, as in Redis. */
		{ "incr", { STR("INCR"), STR("both") }, 2, false },
		{ "ssubscribe", { STR("SSUBSCRIBE"), STR("news") }, 2, true },
		{ "ssubscribe", { STR("SSUBSCRIBE"), STR("from") }, 2, false },
		{ "spublish", { STR("SPUBLISH"), STR("news"), STR("x") }, 3, true },
		{ "auth", { STR("AUTH"), STR("ann"), STR("pw") }, 3, true },
		{ "flushall", { STR("FLUSHALL") }, 1, false },
	};
	struct arena *arena = arena_new(ARENA_BYTES);
	struct str object;
	struct acl acl;

	(void)state;
	acl_of_roles(&acl, &role, 1, arena);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		enum acl_denial denial = acl_check(&acl, command_named(calls[i].name),
						   calls[i].argv, calls[i].argc, arena, &object);

		if ((denial == ACL_ALLOWED) != calls[i].allowed)
			fail_msg("call %zu, %s", i, calls[i].name);
	}
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
		cmocka_unit_test(rights_to_a_key_are_those_that_the_call_needs),
		cmocka_unit_test(what_cannot_be_checked_is_denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
