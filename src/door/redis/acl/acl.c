#include "door/redis/acl/acl.h"

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
	/* What a command does with data its subcommands say. */
	unsigned flags = command->flags & COMMAND_CONTAINER
				 ? command->flags & ~(unsigned)(COMMAND_READONLY | COMMAND_WRITE)
				 : command->flags;
	bool is_in = flags_say(flags, name);

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

/* ---- Asking ---- */

void
acl_allow_all(struct acl *a)
{
	*a = (struct acl){ .root = { .all_keys = true, .all_channels = true } };
	memset(a->root.commands, 0xff, sizeof(a->root.commands));
}

/* Commands come first, and subcommands behind all of them. */
size_t
acl_bit(const struct command *command, const struct subcommand *sub)
{
	return sub ? command_count + (size_t)(sub - subcommand_table)
		   : (size_t)(command - command_table);
}

/* A call, and what is known of it already. */
struct acl_call {
	const struct command *command;
	const struct str *argv;
	size_t argc;
	struct arena *arena;
	/* The places of its keys; looked for once, for all selectors. */
	bool looked;
	enum status found;
	size_t *places;
	size_t count;
	size_t denied; /* the argument that was, behind the command */
};

static bool
selector_allows_command(const struct acl_selector *s, const struct command *command,
			const struct str *argv, size_t argc)
{
	/* AUTH and its like: a user without any right may still log in as another one. */
	if (command->flags & COMMAND_NO_AUTH ||
	    acl_has_bit(s->commands, acl_bit(command, subcommand_called(command, argv, argc))))
		return true;
	for (size_t i = 0; argc > 1 && i < s->first_arg_count; i++)
		if (s->first_args[i].command == acl_bit(command, NULL) &&
		    str_eq_nocase(s->first_args[i].arg, argv[1]))
			return true;
	return false;
}

bool
acl_allows_command(const struct acl *a, const struct command *command, const struct str *argv,
		   size_t argc)
{
	bool allows = selector_allows_command(&a->root, command, argv, argc);

	for (size_t i = 0; !allows && i < a->other_count; i++)
		allows = selector_allows_command(&a->others[i], command, argv, argc);
	return allows;
}

/*
 * Checks the call's key number `number`, counted from 0. One pattern has to allow all that the call
 * does with it.
 */
static bool
selector_allows_key(const struct acl_selector *s, const struct acl_call *c, size_t number)
{
	bool reads, writes, known = false;

	for (size_t i = 0; i < s->pattern_count; i++) {
		const struct acl_pattern *p = &s->patterns[i];

		if (p->channel || !glob_matches(p->glob, c->argv[c->places[number]], false))
			continue;
		if (p->read && p->write)
			return true;
		if (!known)
			key_rights_of(c->command, c->argv, c->argc, number, &reads, &writes);
		known = true;
		if ((p->read || !reads) && (p->write || !writes))
			return true;
	}
	return false;
}

static bool
selector_allows_channel(const struct acl_selector *s, struct str channel, bool is_pattern)
{
	for (size_t i = 0; i < s->pattern_count; i++)
		if (s->patterns[i].channel &&
		    (is_pattern ? str_eq(s->patterns[i].glob, channel)
				: glob_matches(s->patterns[i].glob, channel, false)))
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
selector_check_keys(const struct acl_selector *s, struct acl_call *c)
{
	if (!c->looked)
		c->found = command_keys(c->command, c->argv, c->argc, c->arena, &c->places,
					&c->count);
	c->looked = true;
	/* There is no memory to look for the keys: the call is denied. */
	if (c->found == STATUS_LIMIT) {
		c->denied = 0;
		return ACL_DENIED_KEY;
	}
	/* A call whose keys cannot be found is refused by its command. */
	for (size_t i = 0; c->found == STATUS_OK && i < c->count; i++)
		if (!selector_allows_key(s, c, i)) {
			c->denied = c->places[i];
			return ACL_DENIED_KEY;
		}
	return ACL_ALLOWED;
}

static enum acl_denial
selector_check(const struct acl_selector *s, struct acl_call *c)
{
	size_t end;
	bool patterns;

	if (!selector_allows_command(s, c->command, c->argv, c->argc))
		return ACL_DENIED_COMMAND;
	if (!s->all_keys) {
		enum acl_denial denial = selector_check_keys(s, c);

		if (denial != ACL_ALLOWED)
			return denial;
	}
	if (!s->all_channels && channels_of(c->command, c->argc, &end, &patterns))
		for (size_t i = 1; i < end && i < c->argc; i++)
			if (!selector_allows_channel(s, c->argv[i], patterns)) {
				c->denied = i;
				return ACL_DENIED_CHANNEL;
			}
	return ACL_ALLOWED;
}

static const struct acl_selector *
selector_at(const struct acl *a, size_t i)
{
	return i ? &a->others[i - 1] : &a->root;
}

enum acl_denial
acl_check(const struct acl *a, const struct command *command, const struct str *argv, size_t argc,
	  struct arena *arena, struct str *ret_object)
{
	struct acl_call c = { .command = command, .argv = argv, .argc = argc, .arena = arena };
	enum acl_denial worst = ACL_DENIED_COMMAND;
	size_t last = 0;

	*ret_object = (struct str){ 0 };
	for (size_t i = 0; i <= a->other_count; i++) {
		enum acl_denial denial = selector_check(selector_at(a, i), &c);

		if (denial == ACL_ALLOWED)
			return ACL_ALLOWED;
		if (denial == ACL_DENIED_COMMAND)
			continue;
		if (denial > worst || (denial == worst && c.denied > last)) {
			worst = denial;
			last = c.denied;
		}
	}
	if (worst != ACL_DENIED_COMMAND)
		*ret_object = argv[last];
	return worst;
}

static bool
selector_reads_all_keys(const struct acl_selector *s)
{
	for (size_t i = 0; i < s->pattern_count; i++) {
		const struct acl_pattern *p = &s->patterns[i];

		if (!p->channel && p->read && str_eq(p->glob, STR("*")))
			return true;
	}
	return s->all_keys;
}

bool
acl_allows_reading_all(const struct acl *a, const struct command *command, const struct str *argv,
		       size_t argc, struct arena *arena)
{
	struct acl_call c = { .command = command, .argv = argv, .argc = argc, .arena = arena };

	for (size_t i = 0; i <= a->other_count; i++)
		if (selector_reads_all_keys(selector_at(a, i)) &&
		    selector_check(selector_at(a, i), &c) == ACL_ALLOWED)
			return true;
	return false;
}
