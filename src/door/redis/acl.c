#include "door/redis/acl.h"

#include "door/redis/command.h"
#include "door/redis/wire/glob.h"

/* ---- Categories ---- */

const char *const acl_categories[] = {
	"keyspace",  "read",       "write",       "set",       "sortedset", "list", "hash",
	"string",    "bitmap",     "pubsub",      "admin",     "fast",      "slow", "blocking",
	"dangerous", "connection", "transaction", "scripting", "stream",
};
const size_t acl_category_count = sizeof(acl_categories) / sizeof(acl_categories[0]);

/* Commands that Redis counts among the dangerous ones, administrators' aside. */
static bool
is_dangerous(const struct command *command)
{
	static const char *const names[] = { "flushall", "flushdb", "info",    "keys",
					     "role",     "sort",    "sort_ro", "swapdb" };

	if (command->flags & COMMAND_ADMIN)
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(command->name, names[i]) == 0)
			return true;
	return false;
}

bool
acl_is_in_category(const struct command *command, size_t category)
{
	static const enum command_group groups[] = {
		GROUP_GENERIC, COMMAND_GROUPS, COMMAND_GROUPS, GROUP_SET,    GROUP_ZSET,
		GROUP_LIST,    GROUP_HASH,     GROUP_STRING,   GROUP_BITMAP, GROUP_PUBSUB,
	};
	const char *name = acl_categories[category];

	if (category < sizeof(groups) / sizeof(groups[0]) && groups[category] != COMMAND_GROUPS)
		return command->group == groups[category];
	if (strcmp(name, "read") == 0)
		return command->flags & COMMAND_READONLY && command->group != GROUP_CONNECTION;
	if (strcmp(name, "write") == 0)
		return command->flags & COMMAND_WRITE;
	if (strcmp(name, "admin") == 0)
		return command->flags & COMMAND_ADMIN;
	if (strcmp(name, "fast") == 0)
		return command->flags & COMMAND_FAST;
	if (strcmp(name, "slow") == 0)
		return !(command->flags & COMMAND_FAST);
	if (strcmp(name, "blocking") == 0)
		return command->flags & COMMAND_BLOCKING;
	if (strcmp(name, "dangerous") == 0)
		return is_dangerous(command);
	if (strcmp(name, "connection") == 0)
		return command->group == GROUP_CONNECTION;
	if (strcmp(name, "transaction") == 0)
		return command->group == GROUP_TRANSACTIONS;
	if (strcmp(name, "stream") == 0)
		return command->group == GROUP_STREAM;
	return command->group == GROUP_SCRIPTING;
}

/* ---- Rules ---- */

void
acl_allow_all(struct acl *a)
{
	*a = (struct acl){ .all_keys = true, .all_channels = true };
	memset(a->commands, 0xff, sizeof(a->commands));
}

static void
acl_set_command(struct acl *a, size_t index, bool allowed)
{
	uint64_t bit = UINT64_C(1) << index % 64;

	if (allowed)
		a->commands[index / 64] |= bit;
	else
		a->commands[index / 64] &= ~bit;
}

/* Behind + or -: a command, @category, @all. */
static void
acl_rule_command(struct acl *a, struct str rule, bool allowed)
{
	bool category = rule.len && rule.ptr[0] == '@';

	if (category)
		rule = str_skip(rule, 1);
	for (size_t i = 0; i < command_count; i++) {
		const struct command *command = &command_table[i];
		bool meant = !category && str_eq_nocase(rule, str_from_cstr(command->name));

		if (category && str_eq_nocase(rule, STR("all")))
			meant = true;
		for (size_t k = 0; category && !meant && k < acl_category_count; k++)
			meant = str_eq_nocase(rule, str_from_cstr(acl_categories[k])) &&
				acl_is_in_category(command, k);
		if (meant)
			acl_set_command(a, i, allowed);
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
acl_allows_command(const struct acl *a, const struct command *command)
{
	size_t index = (size_t)(command - command_table);

	return a->commands[index / 64] >> index % 64 & 1;
}

bool
acl_allows_key(const struct acl *a, struct str key, const struct command *command)
{
	bool writes = command->flags & COMMAND_WRITE;

	if (a->all_keys)
		return true;
	for (size_t i = 0; i < a->pattern_count; i++) {
		const struct acl_pattern *p = &a->patterns[i];

		if (!p->channel && (writes ? p->write : p->read) &&
		    glob_matches(p->glob, key, false))
			return true;
	}
	return false;
}

bool
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

void
acl_describe(const struct acl *a, struct buf *ret)
{
	size_t allowed = 0;

	for (size_t i = 0; i < command_count; i++)
		allowed += acl_allows_command(a, &command_table[i]);
	describe_patterns(a, false, ret);
	describe_patterns(a, true, ret);
	buf_append_cstr(ret, allowed == command_count ? " +@all" : " -@all");
	for (size_t i = 0; allowed != command_count && i < command_count; i++)
		if (acl_allows_command(a, &command_table[i]))
			buf_printf(ret, " +%s", command_table[i].name);
}
