/* What the rules of Redis's people allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "door/redis/acl/rules.h"
#include "door/redis/acl/subcommand.h"
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

/* ---- Selectors ---- */

static void
one_selector_has_to_allow_all_of_a_call(void **state)
{
	const struct str role = STR(
		"redis:~r1 +get +mget (+mget ~r1 ~m2) (+@write ~w* &w) (%R~* +sort)");
	const struct {
		struct str argv[4];
		size_t argc;
		enum acl_denial denial;
		struct str object;
	} calls[] = {
		{ { STR("get"), STR("r1") }, 2, ACL_ALLOWED, STR("") },
		{ { STR("mget"), STR("r1"), STR("m2") }, 3, ACL_ALLOWED, STR("") },
		{ { STR("get"), STR("m2") }, 2, ACL_DENIED_KEY, STR("m2") },
		{ { STR("mget"), STR("m2"), STR("x") }, 3, ACL_DENIED_KEY, STR("x") },
		{ { STR("mget"), STR("r1"), STR("m2"), STR("y") }, 4, ACL_DENIED_KEY, STR("y") },
		{ { STR("set"), STR("w1"), STR("1") }, 3, ACL_ALLOWED, STR("") },
		{ { STR("set"), STR("r1"), STR("1") }, 3, ACL_DENIED_KEY, STR("r1") },
		{ { STR("publish"), STR("w"), STR("1") }, 3, ACL_DENIED_COMMAND, STR("") },
		{ { STR("ping") }, 1, ACL_DENIED_COMMAND, STR("") },
	};
	struct arena *arena = arena_new(ARENA_BYTES);
	const struct str sort[] = { STR("sort"), STR("w"), STR("by"), STR("x*") };
	const struct str get[] = { STR("get"), STR("r1") };
	struct str object;
	struct acl acl;

	(void)state;
	acl_of_roles(&acl, &role, 1, arena);
	assert_int_equal(acl.other_count, 3);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		enum acl_denial denial = acl_check(&acl, command_find(calls[i].argv[0]),
						   calls[i].argv, calls[i].argc, arena, &object);

		if (denial != calls[i].denial || !str_eq(object, calls[i].object))
			fail_msg("call %zu: %d %.*s", i, denial, STR_ARG(object));
	}
	/* What may be looked up is what the selector of the call allows. */
	assert_true(acl_allows_reading_all(&acl, command_find(sort[0]), sort, 4, arena));
	assert_false(acl_allows_reading_all(&acl, command_find(get[0]), get, 2, arena));
	arena_free(arena);
}

/* Reads the rules one by one; the last one has to have that outcome. */
static enum acl_rule_error
apply(struct acl *acl, const char *rules, struct arena *arena)
{
	enum acl_rule_error error = ACL_RULE_OK;
	struct str rest = str_from_cstr(rules);

	*acl = (struct acl){ 0 };
	while (rest.len) {
		assert_int_equal(error, ACL_RULE_OK);
		error = acl_rule_apply(acl, str_cut(&rest, ','), false, arena);
	}
	return error;
}

static void
rules_that_cannot_be_kept_are_told(void **state)
{
	static const struct {
		const char *rules; /* with commas between them */
		enum acl_rule_error error;
	} cases[] = {
		{ "+get", ACL_RULE_OK },
		{ "+GeT", ACL_RULE_OK },
		{ "+nosuch", ACL_RULE_UNKNOWN },
		{ "-nosuch", ACL_RULE_UNKNOWN },
		{ "+@nosuch", ACL_RULE_UNKNOWN },
		{ "+@ALL", ACL_RULE_OK },
		{ "+config|get", ACL_RULE_OK },
		{ "-config|get", ACL_RULE_OK },
		{ "+config|nosuch", ACL_RULE_UNKNOWN },
		{ "+config|get|x", ACL_RULE_FIRST_ARG },
		{ "+get|a|b", ACL_RULE_UNKNOWN },
		{ "-config|get|x", ACL_RULE_UNKNOWN },
		{ "+select|0", ACL_RULE_OK },
		{ "+select|0 1", ACL_RULE_SYNTAX },
		{ "-select|0", ACL_RULE_UNKNOWN },
		{ "+select|", ACL_RULE_SYNTAX },
		{ "~a b", ACL_RULE_SYNTAX },
		{ "&a\tb", ACL_RULE_SYNTAX },
		{ "%RW~a", ACL_RULE_OK },
		{ "%RR~a", ACL_RULE_SYNTAX },
		{ "%X~a", ACL_RULE_SYNTAX },
		{ "%~a", ACL_RULE_SYNTAX },
		{ "%R", ACL_RULE_SYNTAX },
		{ "~*,~a", ACL_RULE_ALL_KEYS },
		{ "~*,%R~a", ACL_RULE_ALL_KEYS },
		{ "allkeys,resetkeys,~a", ACL_RULE_OK },
		{ "&*,&a", ACL_RULE_ALL_CHANNELS },
		{ "allchannels,resetchannels,&a", ACL_RULE_OK },
		{ "(+get ~a)", ACL_RULE_OK },
		{ "()", ACL_RULE_OK },
		{ "( +get\t~a )", ACL_RULE_OK },
		{ "(", ACL_RULE_SYNTAX },
		{ ")", ACL_RULE_SYNTAX },
		{ "(+get", ACL_RULE_SYNTAX },
		{ " ()", ACL_RULE_SYNTAX },
		{ "(~a) +get)", ACL_RULE_SYNTAX },
		{ "(on)", ACL_RULE_SYNTAX },
		{ "(&* &a)", ACL_RULE_ALL_CHANNELS },
		{ "~\xff", ACL_RULE_TEXT },
		{ "x", ACL_RULE_SYNTAX },
	};
	struct arena *arena = arena_new(ARENA_BYTES);
	struct acl acl;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum acl_rule_error error = apply(&acl, cases[i].rules, arena);

		if (error != cases[i].error)
			fail_msg("%s: %s", cases[i].rules, acl_rule_errors[error]);
	}
	assert_int_equal(acl_rule_apply(&acl, STR(""), false, arena), ACL_RULE_SYNTAX);
	arena_free(arena);
}

static void
numbers_of_patterns_and_selectors_have_limits(void **state)
{
	struct arena *arena = arena_new(16 * ARENA_BYTES);
	struct acl acl = { 0 };

	(void)state;
	for (int i = 0; i < ACL_PATTERNS; i++)
		assert_int_equal(acl_rule_apply(&acl, arena_printf(arena, "~%d", i), false, arena),
				 ACL_RULE_OK);
	assert_int_equal(acl_rule_apply(&acl, STR("~more"), false, arena), ACL_RULE_TOO_MANY);
	assert_int_equal(acl_rule_apply(&acl, STR("(&more)"), false, arena), ACL_RULE_TOO_MANY);
	assert_int_equal(acl_rule_apply(&acl, STR("~1"), false, arena), ACL_RULE_OK);
	assert_int_equal(acl_rule_apply(&acl, STR("resetkeys"), false, arena), ACL_RULE_OK);
	for (int i = 0; i < ACL_SELECTORS; i++)
		assert_int_equal(acl_rule_apply(&acl, STR("(~a)"), false, arena), ACL_RULE_OK);
	assert_int_equal(acl_rule_apply(&acl, STR("(~a)"), false, arena), ACL_RULE_TOO_MANY);
	assert_int_equal(acl_rule_apply(&acl, STR("clearselectors"), false, arena), ACL_RULE_OK);
	assert_int_equal(acl.other_count, 0);
	for (int i = 0; i < ACL_FIRST_ARGS; i++)
		assert_int_equal(
			acl_rule_apply(&acl, arena_printf(arena, "+select|%d", i), false, arena),
			ACL_RULE_OK);
	assert_int_equal(acl_rule_apply(&acl, STR("+select|x"), false, arena), ACL_RULE_TOO_MANY);
	assert_int_equal(acl_rule_apply(&acl, STR("-select"), false, arena), ACL_RULE_OK);
	assert_int_equal(acl.root.first_arg_count, 0);
	arena_free(arena);
}

static void
first_arguments_of_a_command_that_is_denied_are_allowed(void **state)
{
	const struct str zero[] = { STR("select"), STR("0") }, one[] = { STR("select"), STR("1") };
	const struct command *command = command_find(STR("select"));
	struct arena *arena = arena_new(ARENA_BYTES);
	struct acl acl;

	(void)state;
	assert_int_equal(apply(&acl, "-@all,+select|0", arena), ACL_RULE_OK);
	assert_true(acl_allows_command(&acl, command, zero, 2));
	assert_false(acl_allows_command(&acl, command, one, 2));
	assert_false(acl_allows_command(&acl, command, zero, 1));
	assert_int_equal(apply(&acl, "+select|0,-@connection", arena), ACL_RULE_OK);
	assert_false(acl_allows_command(&acl, command, zero, 2));
	arena_free(arena);
}

/* ---- As text ---- */

static void
rules_are_written_as_redis_writes_them(void **state)
{
	static const struct {
		const char *rules;
		const char *text, *role;
	} cases[] = {
		{ "~a*,%R~b,&x,+get,+client|id,+select|0,(+set ~y)",
		  " ~a* %R~b resetchannels &x -@all +client|id +get +select|0 "
		  "(~y resetchannels -@all +set)",
		  "redis:~a* %R~b &x +client|id +get +select|0 (~y +set)" },
		{ "allkeys,allchannels,+@all", " ~* &* +@all", "redis:~* &* +@all" },
		{ "+@all,-client,+client|id", " resetchannels +@all -client +client|id",
		  "redis:+@all -client +client|id" },
		{ "+@all,-client|kill", " resetchannels +@all -client|kill",
		  "redis:+@all -client|kill" },
		{ "%R~foo,%W~foo,%RW~bar:,~z", " ~foo ~bar: ~z resetchannels -@all",
		  "redis:~foo ~bar: ~z" },
		{ "~a,%R~*,%W~*,~b", " ~a ~* ~b resetchannels -@all", "redis:~a %RW~* ~b" },
		{ "()", " resetchannels -@all (resetchannels -@all)", "redis: ()" },
		{ "-@all", " resetchannels -@all", "redis:" },
		{ "+@string,-incr,+acl,+debug|digest,+debug|segfault",
		  " resetchannels -@all +@string +acl +debug|digest +debug|segfault -incr",
		  "redis:+@string +acl +debug|digest +debug|segfault -incr" },
		{ "+@all,-@string,+incr,-debug,+debug|digest",
		  " resetchannels +@all -@string -debug +debug|digest +incr",
		  "redis:+@all -@string -debug +debug|digest +incr" },
	};
	struct arena *arena = arena_new(ARENA_BYTES);
	struct acl acl;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(buf_release) struct buf text = BUF_INIT(1000);
		AUTO(buf_release) struct buf role = BUF_INIT(1000);

		assert_int_equal(apply(&acl, cases[i].rules, arena), ACL_RULE_OK);
		acl_describe(&acl, &text);
		acl_describe_role(&acl, &role);
		buf_append_byte(&text, '\0');
		buf_append_byte(&role, '\0');
		assert_string_equal(text.ptr, cases[i].text);
		assert_string_equal(role.ptr, cases[i].role);
	}
	arena_free(arena);
}

/* A category is told as that, and not as what is in it. */
static void
every_category_is_written_as_itself(void **state)
{
	struct arena *arena = arena_new(16 * ARENA_BYTES);

	(void)state;
	for (size_t i = 0; i < 2 * acl_category_count; i++) {
		const char *category = acl_categories[i / 2];
		struct str rule = arena_printf(arena, "%c@%s", i % 2 ? '+' : '-', category);
		AUTO(buf_release) struct buf text = BUF_INIT(1000);
		struct acl acl;

		assert_int_equal(apply(&acl, i % 2 ? "-@all" : "+@all", arena), ACL_RULE_OK);
		assert_int_equal(acl_rule_apply(&acl, rule, false, arena), ACL_RULE_OK);
		acl_describe_commands(&acl.root, &text);
		if (!str_eq(buf_str(&text), arena_printf(arena, " %s %.*s",
							 i % 2 ? "-@all" : "+@all", STR_ARG(rule))))
			fail_msg("%.*s", STR_ARG(buf_str(&text)));
	}
	arena_free(arena);
}

/* What one role gives another one does not take away by how it begins. */
static void
roles_of_a_person_add_up(void **state)
{
	const struct str roles[] = { STR("redis:~a &a +get"), STR("cook"),
				     STR("redis:(~c +del) +nosuch ~b +set (~d"), STR("redis:") };
	AUTO(buf_release) struct buf text = BUF_INIT(1000);
	struct arena *arena = arena_new(ARENA_BYTES);
	struct acl acl;

	(void)state;
	acl_of_roles(&acl, roles, 4, arena);
	acl_describe_role(&acl, &text);
	assert_true(str_eq(buf_str(&text), STR("redis:~a ~b &a +get +set (~c +del)")));
	arena_free(arena);
}

static void
parts_of_a_selector_may_be_arguments(void **state)
{
	const struct str args[] = { STR("(~a"),   STR("+get"),   STR(")"),   STR("on"), STR("(~b"),
				    STR("+set)"), STR("(+del)"), STR("(~c"), STR("~d") };
	struct arena *arena = arena_new(ARENA_BYTES);
	struct str rule;
	size_t at = 0;

	(void)state;
	assert_true(acl_rule_next(args, 9, &at, arena, &rule));
	assert_true(str_eq(rule, STR("(~a +get )")));
	assert_true(acl_rule_next(args, 9, &at, arena, &rule));
	assert_true(str_eq(rule, STR("on")));
	assert_true(acl_rule_next(args, 9, &at, arena, &rule));
	assert_true(str_eq(rule, STR("(~b +set)")));
	assert_true(acl_rule_next(args, 9, &at, arena, &rule));
	assert_true(str_eq(rule, STR("(+del)")));
	assert_false(acl_rule_next(args, 9, &at, arena, &rule));
	arena_free(arena);
}

/* What is known of one key must be what a look at all places finds. */
static void
calls_of_one_key_name_it_where_all_keys_are_looked_for(void **state)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct str argv[] = { STR("x"), STR("1"), STR("b"), STR("1"), STR("d"), STR("e") };
	size_t seen = 0;

	(void)state;
	assert_non_null(arena);
	for (size_t i = 0; i < command_count; i++) {
		const struct command *command = &command_table[i];

		for (size_t argc = 1; argc <= sizeof(argv) / sizeof(argv[0]); argc++) {
			size_t *places, count;

			if (!command_has_one_key(command, argc))
				continue;
			arena_clear(arena);
			assert_int_equal(command_keys(command, argv, argc, arena, &places, &count),
					 STATUS_OK);
			assert_int_equal(count, 1);
			assert_int_equal(places[0], command->first_key);
			seen++;
		}
	}
	assert_true(seen > command_count);
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_selector_has_to_allow_all_of_a_call),
		cmocka_unit_test(rules_that_cannot_be_kept_are_told),
		cmocka_unit_test(numbers_of_patterns_and_selectors_have_limits),
		cmocka_unit_test(first_arguments_of_a_command_that_is_denied_are_allowed),
		cmocka_unit_test(rules_are_written_as_redis_writes_them),
		cmocka_unit_test(every_category_is_written_as_itself),
		cmocka_unit_test(roles_of_a_person_add_up),
		cmocka_unit_test(parts_of_a_selector_may_be_arguments),
		cmocka_unit_test(keys_and_channels_are_checked_behind_the_command),
		cmocka_unit_test(rights_to_a_key_are_those_that_the_call_needs),
		cmocka_unit_test(what_cannot_be_checked_is_denied),
		cmocka_unit_test(calls_of_one_key_name_it_where_all_keys_are_looked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
