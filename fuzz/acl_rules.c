/*
 * Any bytes as rules of Redis's people, a line for each argument of ACL SETUSER, and as a role:
 * what was read of them is read again of the role that is written of it, and allows the same.
 */
#include <stdlib.h>

#include "door/redis/acl/command.h"
#include "door/redis/acl/rules.h"
#include "door/redis/acl/subcommand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ARENA_BYTES = 4 * 1024 * 1024,
	TEXT_BYTES = 1024 * 1024,
	ARGS = 64,
};

static struct arena *arena;

static size_t
patterns_of(const struct acl *a)
{
	size_t count = a->root.pattern_count;

	for (size_t i = 0; i < a->other_count; i++)
		count += a->others[i].pattern_count;
	return count;
}

static void
compare_selectors(const struct acl_selector *a, const struct acl_selector *b)
{
	/* Bits that stand for no command come with ACL_LATER, or not at all. */
	if (a->all_keys != b->all_keys || a->all_channels != b->all_channels ||
	    memcmp(a->commands, b->commands, sizeof(a->commands)) != 0 ||
	    a->pattern_count != b->pattern_count || a->first_arg_count < b->first_arg_count)
		abort();
	for (size_t i = 0; i < command_count + subcommand_count; i++)
		if (acl_has_bit(a->commands, i) != acl_has_bit(b->commands, i))
			abort();
}

/* Some calls are allowed by both, or by neither. */
static void
compare_calls(const struct acl *a, const struct acl *b)
{
	static const struct str calls[][4] = {
		{ STR("get"), STR("a") },
		{ STR("set"), STR("a"), STR("1") },
		{ STR("select"), STR("0") },
		{ STR("copy"), STR("a"), STR("b") },
		{ STR("publish"), STR("a"), STR("x") },
		{ STR("config"), STR("get"), STR("a") },
		{ STR("ping") },
		{ STR("psubscribe"), STR("a*") },
		{ STR("eval"), STR("x"), STR("1"), STR("a") },
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const struct command *command = command_find(calls[i][0]);
		struct str one, two;
		size_t argc = 0;

		while (argc < 4 && calls[i][argc].ptr)
			argc++;
		if (acl_check(a, command, calls[i], argc, arena, &one) !=
			    acl_check(b, command, calls[i], argc, arena, &two) ||
		    !str_eq(one, two))
			abort();
	}
}

/* Writes a role of it, and reads that. */
static void
check_again(const struct acl *a)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
	AUTO(buf_release) struct buf again = BUF_INIT(TEXT_BYTES);
	struct str role;
	struct acl b;

	if (a->other_count > ACL_SELECTORS || patterns_of(a) > ACL_PATTERNS)
		abort();
	acl_describe_role(a, &text);
	if (buf_status(&text) != STATUS_OK)
		abort();
	role = buf_str(&text);
	acl_of_roles(&b, &role, 1, arena);
	if (a->other_count != b.other_count)
		abort();
	compare_selectors(&a->root, &b.root);
	for (size_t i = 0; i < a->other_count; i++)
		compare_selectors(&a->others[i], &b.others[i]);
	compare_calls(a, &b);
	acl_describe_role(&b, &again);
	if (!str_eq(buf_str(&text), buf_str(&again)))
		abort();
}

/* The lines as arguments of ACL SETUSER. An error must have changed nothing. */
static void
check_args(struct str in)
{
	struct str args[ARGS], rule;
	struct acl a = { 0 };
	size_t count = 0, at = 0;

	while (in.len && count < ARGS)
		args[count++] = str_cut(&in, '\n');
	while (at < count && acl_rule_next(args, count, &at, arena, &rule)) {
		AUTO(buf_release) struct buf before = BUF_INIT(TEXT_BYTES);
		AUTO(buf_release) struct buf after = BUF_INIT(TEXT_BYTES);
		struct acl copy;

		acl_describe(&a, &before);
		if (!acl_copy(&a, &copy, arena))
			return;
		if (acl_rule_apply(&copy, rule, false, arena) != ACL_RULE_OK) {
			acl_describe(&copy, &after);
			if (!str_eq(buf_str(&before), buf_str(&after)))
				abort();
			continue;
		}
		acl_describe(&a, &after);
		if (!str_eq(buf_str(&before), buf_str(&after)))
			abort();
		a = copy;
	}
	check_again(&a);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_release) struct buf role = BUF_INIT(TEXT_BYTES);
	struct acl a;

	if (!arena)
		arena = arena_new(ARENA_BYTES);
	buf_append_cstr(&role, ACL_ROLE);
	buf_append(&role, data, size);
	acl_of_roles(&a, &(struct str){ role.ptr, role.len }, 1, arena);
	check_again(&a);
	arena_clear(arena);
	check_args(str_of(data, size));
	arena_clear(arena);
	return 0;
}
