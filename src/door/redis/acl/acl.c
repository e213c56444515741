#include "door/redis/acl/acl.h"

#include <assert.h>

#include "door/redis/acl/command.h"
#include "door/redis/acl/key_specs.h"
#include "door/redis/acl/subcommand.h"
#include "door/redis/wire/glob.h"

/* ---- Categories ---- */

const char *const acl_categories[] = {
	"keyspace", "read",   "write",       "set",       "sortedset",  "list",        "hash",
	"string",   "bitmap", "hyperloglog", "geo",       "stream",     "pubsub",      "admin",
	"fast",     "slow",   "blocking",    "dangerous", "connection", "transaction", "scripting",
};
const size_t acl_category_count = sizeof(acl_categories) / sizeof(acl_categories[0]);

/* The category of a command's group; NULL: it has none. */
static const char *
category_of_group(const struct command *command)
{
	static const char *const groups[COMMAND_GROUPS] = {
#define GROUP_CATEGORY(group, name, category) category,
		COMMAND_GROUPS_ALL(GROUP_CATEGORY)
	};

	/* It is in the group of the server, but has the category of another. */
	if (strcmp(command->name, "command") == 0)
		return "connection";
	return groups[command->group];
}

/* The categories that the flags of a command or of a subcommand say. */
static bool
flags_say(unsigned flags, const char *category)
{
	static const struct {
		const char *category;
		unsigned flag;
	} by_flag[] = {
		{ "read", COMMAND_READONLY }, { "write", COMMAND_WRITE },
		{ "admin", COMMAND_ADMIN },   { "dangerous", COMMAND_ADMIN },
		{ "fast", COMMAND_FAST },     { "blocking", COMMAND_BLOCKING },
		{ "pubsub", COMMAND_PUBSUB },
	};

	if (strcmp(category, "slow") == 0)
		return !(flags & COMMAND_FAST);
	for (size_t i = 0; i < sizeof(by_flag) / sizeof(by_flag[0]); i++)
		if (strcmp(category, by_flag[i].category) == 0)
			return flags & by_flag[i].flag;
	return false;
}

bool
acl_is_in_category(const struct command *command, size_t category)
{
	const char *name = acl_categories[category];
	const char *group = category_of_group(command);
	struct str rest = command->categories ? str_from_cstr(command->categories) : STR("");
	bool is_in = flags_say(command->flags, name);

	/* Of a command with subcommands these are in the category of its group. */
	if (group && !(command->flags & COMMAND_CONTAINER))
		is_in |= strcmp(name, group) == 0;
	while (rest.len) {
		struct str word = str_cut(&rest, ' ');
		bool is_not = word.ptr[0] == '-';

		if (str_eq(str_skip(word, is_not), str_from_cstr(name)))
			is_in = !is_not;
	}
	return is_in;
}

bool
acl_has_subcommand(const struct command *command, const struct subcommand *sub, size_t category)
{
	const char *name = acl_categories[category];
	const char *group = category_of_group(command);

	/* What helps with messages is no message. */
	if (command->group == GROUP_PUBSUB || !group)
		return flags_say(sub->flags, name);
	return flags_say(sub->flags, name) || strcmp(name, group) == 0;
}

/* ---- Rules ---- */

void
acl_allow_all(struct acl *a)
{
	*a = (struct acl){ .all_keys = true, .all_channels = true };
	memset(a->commands, 0xff, sizeof(a->commands));
}

/* Commands come first, and subcommands behind all of them. */
static size_t
bit_of_subcommand(const struct subcommand *sub)
{
	return command_count + (size_t)(sub - subcommand_table);
}

static void
acl_set_bit(struct acl *a, size_t index, bool allowed)
{
	uint64_t bit = UINT64_C(1) << index % 64;

	assert(index < ACL_COMMANDS);
	if (allowed)
		a->commands[index / 64] |= bit;
	else
		a->commands[index / 64] &= ~bit;
}

static bool
acl_has_bit(const struct acl *a, size_t index)
{
	return a->commands[index / 64] >> index % 64 & 1;
}

/* A command with all of its subcommands. */
static void
acl_set_command(struct acl *a, const struct command *command, bool allowed)
{
	size_t count;
	const struct subcommand *sub = subcommands_of(command, &count);

	acl_set_bit(a, (size_t)(command - command_table), allowed);
	for (size_t i = 0; i < count; i++)
		acl_set_bit(a, bit_of_subcommand(&sub[i]), allowed);
}

/* Behind @: the commands and subcommands of a category, or all. */
static void
acl_rule_category(struct acl *a, struct str name, bool allowed)
{
	bool all = str_eq_nocase(name, STR("all"));
	size_t category = 0;

	while (category < acl_category_count &&
	       !str_eq_nocase(name, str_from_cstr(acl_categories[category])))
		category++;
	if (!all && category == acl_category_count)
		return;
	for (size_t i = 0; i < command_count; i++) {
		const struct command *command = &command_table[i];
		size_t count;
		const struct subcommand *sub = subcommands_of(command, &count);

		if (all || acl_is_in_category(command, category))
			acl_set_command(a, command, allowed);
		for (size_t k = 0; !all && k < count; k++)
			if (acl_has_subcommand(command, &sub[k], category))
				acl_set_bit(a, bit_of_subcommand(&sub[k]), allowed);
	}
}

/* Behind + or -: a command, command|subcommand, @category, @all. */
static void
acl_rule_command(struct acl *a, struct str rule, bool allowed)
{
	struct str rest = rule;
	struct str name = str_cut(&rest, '|');
	const struct command *command = command_find(name);
	const struct subcommand *sub;

	if (rule.len && rule.ptr[0] == '@') {
		acl_rule_category(a, str_skip(rule, 1), allowed);
	} else if (command && name.len == rule.len) {
		acl_set_command(a, command, allowed);
	} else if (command) {
		sub = subcommand_find(command, rest);
		if (sub)
			acl_set_bit(a, bit_of_subcommand(sub), allowed);
	}
}

static void
acl_rule_pattern(struct acl *a, struct str glob, bool channel, bool read, bool write,
		 struct arena *arena)
{
	if (str_eq(glob, STR("*")) && (channel || (read && write))) {
		if (channel)
			a->all_channels = true;
		else
			a->all_keys = true;
		return;
	}
	if (!a->patterns)
		a->patterns = arena_alloc(arena, ACL_PATTERNS * sizeof(*a->patterns));
	if (!a->patterns || a->pattern_count == ACL_PATTERNS)
		return; /* a pattern less allows less */
	a->patterns[a->pattern_count++] = (struct acl_pattern){
		.glob = glob, .channel = channel, .read = read, .write = write
	};
}

/* "%RW~glob" */
static void
acl_rule_split(struct acl *a, struct str rule, struct arena *arena)
{
	bool read = false, write = false;
	size_t i = 1;

	for (; i < rule.len && rule.ptr[i] != '~'; i++) {
		read |= rule.ptr[i] == 'R' || rule.ptr[i] == 'r';
		write |= rule.ptr[i] == 'W' || rule.ptr[i] == 'w';
	}
	if (i < rule.len)
		acl_rule_pattern(a, str_skip(rule, i + 1), false, read, write, arena);
}

static void
acl_rule(struct acl *a, struct str rule, struct arena *arena)
{
	if (str_eq_nocase(rule, STR("allkeys"))) {
		a->all_keys = true;
	} else if (str_eq_nocase(rule, STR("allchannels"))) {
		a->all_channels = true;
	} else if (str_eq_nocase(rule, STR("allcommands"))) {
		acl_rule_command(a, STR("@all"), true);
	} else if (str_eq_nocase(rule, STR("nocommands"))) {
		acl_rule_command(a, STR("@all"), false);
	} else if (rule.len > 1) {
		struct str rest = str_skip(rule, 1);

		if (rule.ptr[0] == '+' || rule.ptr[0] == '-')
			acl_rule_command(a, rest, rule.ptr[0] == '+');
		else if (rule.ptr[0] == '~')
			acl_rule_pattern(a, rest, false, true, true, arena);
		else if (rule.ptr[0] == '&')
			acl_rule_pattern(a, rest, true, true, true, arena);
		else if (rule.ptr[0] == '%')
			acl_rule_split(a, rule, arena);
	}
}

void
acl_of_roles(struct acl *a, const struct str *roles, size_t count, struct arena *arena)
{
	*a = (struct acl){ 0 };
	for (size_t i = 0; i < count; i++) {
		struct str rest = roles[i];

		if (!str_starts_with(rest, STR(ACL_ROLE)))
			continue;
		rest = str_skip(rest, sizeof(ACL_ROLE) - 1);
		while (rest.len) {
			struct str rule = str_cut(&rest, ' ');

			acl_rule(a, rule, arena);
		}
	}
}

/* ---- Asking ---- */

bool
acl_allows_command(const struct acl *a, const struct command *command, const struct str *argv,
		   size_t argc)
{
	const struct subcommand *sub = subcommand_called(command, argv, argc);

	/* AUTH and its like: a user without any right may still log in as another one. */
	if (command->flags & COMMAND_NO_AUTH)
		return true;
	return acl_has_bit(a, sub ? bit_of_subcommand(sub) : (size_t)(command - command_table));
}

/*
 * Checks the key that is `argv[place]`, the call's key number `number`, counted from 0. One pattern
 * has to allow all that the call does with it.
 */
static bool
acl_allows_key(const struct acl *a, const struct command *command, const struct str *argv,
	       size_t argc, size_t number, size_t place)
{
	bool reads, writes, known = false;

	if (a->all_keys)
		return true;
	for (size_t i = 0; i < a->pattern_count; i++) {
		const struct acl_pattern *p = &a->patterns[i];

		if (p->channel || !glob_matches(p->glob, argv[place], false))
			continue;
		if (p->read && p->write)
			return true;
		if (!known)
			key_rights_of(command, argv, argc, number, &reads, &writes);
		known = true;
		if ((p->read || !reads) && (p->write || !writes))
			return true;
	}
	return false;
}

bool
acl_reads_all_keys(const struct acl *a)
{
	for (size_t i = 0; i < a->pattern_count; i++) {
		const struct acl_pattern *p = &a->patterns[i];

		if (!p->channel && p->read && str_eq(p->glob, STR("*")))
			return true;
	}
	return a->all_keys;
}

static bool
acl_allows_channel(const struct acl *a, struct str channel, bool is_pattern)
{
	if (a->all_channels)
		return true;
	for (size_t i = 0; i < a->pattern_count; i++)
		if (a->patterns[i].channel &&
		    (is_pattern ? str_eq(a->patterns[i].glob, channel)
				: glob_matches(a->patterns[i].glob, channel, false)))
			return true;
	return false;
}

/*
 * The arguments that are channels begin at 1 and end in front of `*ret_end`; `*ret_patterns`: they
 * are patterns. False: the call has none that need a right.
 */
static bool
channels_of(const struct command *command, size_t argc, size_t *ret_end, bool *ret_patterns)
{
	const char *name = command->name;

	if (!(command->flags & COMMAND_PUBSUB))
		return false;
	*ret_patterns = strcmp(name, "psubscribe") == 0;
	*ret_end = argc;
	if (*ret_patterns || strcmp(name, "subscribe") == 0 || strcmp(name, "ssubscribe") == 0)
		return true;
	*ret_end = 2;
	return command->flags & COMMAND_PUBLISH;
}

static enum acl_denial
check_keys(const struct acl *a, const struct command *command, const struct str *argv, size_t argc,
	   struct arena *arena, struct str *ret_object)
{
	size_t *places;
	size_t count;
	enum status status = command_keys(command, argv, argc, arena, &places, &count);

	/* There is no memory to look for the keys: the call is denied. */
	if (status == STATUS_LIMIT) {
		*ret_object = argv[0];
		return ACL_DENIED_KEY;
	}
	/* A call whose keys cannot be found is refused by its command. */
	for (size_t i = 0; status == STATUS_OK && i < count; i++) {
		*ret_object = argv[places[i]];
		if (!acl_allows_key(a, command, argv, argc, i, places[i]))
			return ACL_DENIED_KEY;
	}
	return ACL_ALLOWED;
}

enum acl_denial
acl_check(const struct acl *a, const struct command *command, const struct str *argv, size_t argc,
	  struct arena *arena, struct str *ret_object)
{
	size_t end;
	bool patterns;

	*ret_object = (struct str){ 0 };
	if (!acl_allows_command(a, command, argv, argc))
		return ACL_DENIED_COMMAND;
	if (!a->all_keys) {
		enum acl_denial denial = check_keys(a, command, argv, argc, arena, ret_object);

		if (denial != ACL_ALLOWED)
			return denial;
	}
	if (!a->all_channels && channels_of(command, argc, &end, &patterns)) {
		for (size_t i = 1; i < end && i < argc; i++) {
			*ret_object = argv[i];
			if (!acl_allows_channel(a, *ret_object, patterns))
				return ACL_DENIED_CHANNEL;
		}
	}
	return ACL_ALLOWED;
}

/* ---- As text ---- */

static void
describe_patterns(const struct acl *a, bool channel, struct buf *ret)
{
	if (channel ? a->all_channels : a->all_keys)
		buf_append_cstr(ret, channel ? " &*" : " ~*");
	for (size_t i = 0; i < a->pattern_count; i++) {
		const struct acl_pattern *p = &a->patterns[i];

		if (p->channel != channel)
			continue;
		buf_append_cstr(ret, channel               ? " &"
				     : p->read && p->write ? " ~"
				     : p->read             ? " %R~"
							   : " %W~");
		buf_append_str(ret, p->glob);
	}
}

/* A command, or those of its subcommands that are allowed. */
static void
describe_command(const struct acl *a, const struct command *command, struct buf *ret)
{
	size_t count;
	const struct subcommand *sub = subcommands_of(command, &count);
	bool whole = acl_has_bit(a, (size_t)(command - command_table));

	if (whole)
		buf_printf(ret, " +%s", command->name);
	for (size_t i = 0; i < count; i++)
		if (acl_has_bit(a, bit_of_subcommand(&sub[i])) != whole)
			buf_printf(ret, " %c%s|%s", whole ? '-' : '+', command->name, sub[i].name);
}

void
acl_describe_keys(const struct acl *a, struct buf *ret)
{
	describe_patterns(a, false, ret);
}

void
acl_describe_channels(const struct acl *a, struct buf *ret)
{
	describe_patterns(a, true, ret);
}

void
acl_describe(const struct acl *a, struct buf *ret)
{
	acl_describe_keys(a, ret);
	acl_describe_channels(a, ret);
	acl_describe_commands(a, ret);
}

void
acl_describe_commands(const struct acl *a, struct buf *ret)
{
	size_t allowed = 0;

	for (size_t i = 0; i < command_count + subcommand_count; i++)
		allowed += acl_has_bit(a, i);
	if (allowed == command_count + subcommand_count) {
		buf_append_cstr(ret, " +@all");
		return;
	}
	buf_append_cstr(ret, " -@all");
	for (size_t i = 0; i < command_count; i++)
		describe_command(a, &command_table[i], ret);
}
