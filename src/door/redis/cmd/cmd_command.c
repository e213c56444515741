/* COMMAND: what the table says. */
#include <assert.h>
#include <stdio.h>

#include "door/redis/acl/acl.h"
#include "door/redis/acl/docs.h"
#include "door/redis/acl/key_specs.h"
#include "door/redis/acl/subcommand.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/wire/error.h"
#include "door/redis/wire/glob.h"

enum {
	FLAG_BYTES = 64, /* of a flag or a category, and the NUL behind it */
};

static const struct {
	unsigned flag;
	const char *name;
} flag_names[] = {
	{ COMMAND_WRITE, "write" },
	{ COMMAND_READONLY, "readonly" },
	{ COMMAND_DENYOOM, "denyoom" },
	{ COMMAND_ADMIN, "admin" },
	{ COMMAND_PUBSUB, "pubsub" },
	{ COMMAND_NOSCRIPT, "noscript" },
	{ COMMAND_BLOCKING, "blocking" },
	{ COMMAND_LOADING, "loading" },
	{ COMMAND_STALE, "stale" },
	{ COMMAND_FAST, "fast" },
	{ COMMAND_NO_AUTH, "no_auth" },
	{ COMMAND_NO_MULTI, "no_multi" },
	{ COMMAND_ALLOW_BUSY, "allow_busy" },
	{ COMMAND_MOVABLE_KEYS, "movablekeys" },
	{ COMMAND_NO_ASYNC_LOADING, "no_async_loading" },
	{ COMMAND_SKIP_MONITOR, "skip_monitor" },
	{ COMMAND_SKIP_SLOWLOG, "skip_slowlog" },
	{ COMMAND_ASKING, "asking" },
	{ COMMAND_NO_MANDATORY_KEYS, "no_mandatory_keys" },
};

static void
answer_flags(struct reply *r, unsigned flags)
{
	size_t place = reply_later(r);
	size_t count = 0;

	for (size_t i = 0; i < sizeof(flag_names) / sizeof(flag_names[0]); i++) {
		if (!(flags & flag_names[i].flag))
			continue;
		reply_simple(r, flag_names[i].name);
		count++;
	}
	reply_later_end(r, place, '~', count);
}

/* A set of words that have spaces between them. */
static void
answer_words(struct reply *r, struct str words)
{
	size_t at = reply_later(r);
	size_t count = 0;

	for (; words.len; count++) {
		struct str word = str_cut(&words, ' ');
		char text[FLAG_BYTES];

		snprintf(text, sizeof(text), "%.*s", STR_ARG(word));
		reply_simple(r, text);
	}
	reply_later_end(r, at, '~', count);
}

static void
answer_tips(struct reply *r, const char *words)
{
	struct str tips = words ? str_from_cstr(words) : STR("");
	size_t at = reply_later(r);
	size_t count = 0;

	for (; tips.len; count++)
		reply_bulk(r, str_cut(&tips, ' '));
	reply_later_end(r, at, '~', count);
}

static void
answer_named(struct reply *r, const char *name, int n)
{
	reply_bulk_cstr(r, name);
	reply_int(r, n);
}

/* How a search is done. The caller adds `members` more, each a name and a value. */
static void
answer_search(struct reply *r, const char *name, const char *type, size_t members)
{
	reply_bulk_cstr(r, name);
	reply_map(r, 2);
	reply_bulk_cstr(r, "type");
	reply_bulk_cstr(r, type);
	reply_bulk_cstr(r, "spec");
	reply_map(r, members);
}

static void
answer_spec_begin(struct reply *r, const struct key_spec *s)
{
	const char *const name = "begin_search";

	if (s->unknown) {
		answer_search(r, name, "unknown", 0);
	} else if (s->word) {
		answer_search(r, name, "keyword", 2);
		reply_bulk_cstr(r, "keyword");
		reply_bulk_cstr(r, s->word);
		answer_named(r, "startfrom", s->at);
	} else {
		answer_search(r, name, "index", 1);
		answer_named(r, "index", s->at);
	}
}

static void
answer_spec_find(struct reply *r, const struct key_spec *s)
{
	const char *const name = "find_keys";

	if (s->unknown) {
		answer_search(r, name, "unknown", 0);
	} else if (s->counted) {
		answer_search(r, name, "keynum", 3);
		answer_named(r, "keynumidx", 0);
		answer_named(r, "firstkey", 1);
		answer_named(r, "keystep", s->step);
	} else {
		answer_search(r, name, "range", 3);
		answer_named(r, "lastkey", s->last);
		answer_named(r, "keystep", s->step);
		answer_named(r, "limit", s->limit);
	}
}

/* Of the command, or of one of its subcommands unless that is NULL. */
static void
answer_specs(struct reply *r, const struct command *command, const struct subcommand *sub)
{
	struct key_spec specs[KEY_SPECS];
	size_t count = key_specs_of(command, sub, specs);

	reply_set(r, count);
	for (size_t i = 0; i < count; i++) {
		reply_map(r, specs[i].notes ? 4 : 3);
		if (specs[i].notes) {
			reply_bulk_cstr(r, "notes");
			reply_bulk_cstr(r, specs[i].notes);
		}
		reply_bulk_cstr(r, "flags");
		answer_words(r, specs[i].flags);
		answer_spec_begin(r, &specs[i]);
		answer_spec_find(r, &specs[i]);
	}
}

/* Of the command, or of one of its subcommands unless that is NULL. */
static void
answer_categories(struct reply *r, const struct command *command, const struct subcommand *sub)
{
	size_t place = reply_later(r);
	size_t count = 0;
	char name[FLAG_BYTES];

	for (size_t i = 0; i < acl_category_count; i++) {
		if (sub ? !acl_has_subcommand(command, sub, i) : !acl_is_in_category(command, i))
			continue;
		snprintf(name, sizeof(name), "@%s", acl_categories[i]);
		reply_simple(r, name);
		count++;
	}
	reply_later_end(r, place, '~', count);
}

static void
answer_subcommand(struct reply *r, const struct command *command, const struct subcommand *sub)
{
	char name[SUBCOMMAND_NAME_BYTES];

	reply_array(r, 10);
	reply_bulk(r, subcommand_name(command, sub, name));
	reply_int(r, sub->arity);
	answer_flags(r, sub->flags);
	reply_int(r, sub->key);
	reply_int(r, sub->key);
	reply_int(r, sub->key > 0);
	answer_categories(r, command, sub);
	answer_tips(r, sub->tips);
	answer_specs(r, command, sub);
	reply_set(r, 0); /* subcommands */
}

static void
answer_info(struct reply *r, const struct command *command)
{
	size_t subs;
	const struct subcommand *sub = subcommands_of(command, &subs);

	reply_array(r, 10);
	reply_bulk_cstr(r, command->name);
	reply_int(r, command->arity);
	/* Redis does not say of such a command that it only reads: its subcommands say so. */
	answer_flags(r, subs ? command->flags & ~(unsigned)COMMAND_READONLY : command->flags);
	reply_int(r, command->first_key);
	reply_int(r, command->last_key);
	reply_int(r, command->step);
	answer_categories(r, command, NULL);
	answer_tips(r, command->tips);
	answer_specs(r, command, NULL);
	if (subs)
		reply_array(r, subs);
	else
		reply_set(r, 0);
	for (size_t i = 0; i < subs; i++)
		answer_subcommand(r, command, &sub[i]);
}

/* Of a command, or of one of its subcommands; how many members that has made. */
static size_t
answer_docs_members(struct reply *r, const struct command *command, const struct subcommand *sub)
{
	const struct command_docs *docs = docs_find(command->name, sub ? sub->name : NULL);
	size_t count = 3;

	assert(docs); /* a test looks that the table has all of them */
	reply_bulk_cstr(r, "summary");
	reply_bulk_cstr(r, sub ? docs->summary : command->summary);
	reply_bulk_cstr(r, "since");
	reply_bulk_cstr(r, sub ? docs->since : command->since);
	reply_bulk_cstr(r, "group");
	reply_bulk_cstr(r, command_groups[command->group]);
	if (docs->deprecated) {
		reply_bulk_cstr(r, "doc_flags");
		reply_set(r, 1);
		reply_simple(r, "deprecated");
		reply_bulk_cstr(r, "deprecated_since");
		reply_bulk_cstr(r, docs->deprecated);
		count += 2;
	}
	if (docs->syntax) {
		bool sound;

		reply_bulk_cstr(r, "arguments");
		sound = docs_answer_syntax(r, docs->syntax);
		assert(sound);
		(void)sound;
		count++;
	}
	return count;
}

static void
answer_subcommand_docs(struct reply *r, const struct command *command, const struct subcommand *sub)
{
	char name[SUBCOMMAND_NAME_BYTES];
	size_t place;

	(void)snprintf(name, sizeof(name), "%s|%s", command->name, sub->name);
	reply_bulk_cstr(r, name);
	place = reply_later(r);
	reply_later_end(r, place, '%', answer_docs_members(r, command, sub));
}

static void
answer_docs(struct reply *r, const struct command *command)
{
	size_t place, subs, count;
	const struct subcommand *sub = subcommands_of(command, &subs);

	reply_bulk_cstr(r, command->name);
	place = reply_later(r);
	count = answer_docs_members(r, command, NULL);
	if (subs) {
		reply_bulk_cstr(r, "subcommands");
		reply_map(r, subs);
		count++;
	}
	for (size_t i = 0; i < subs; i++)
		answer_subcommand_docs(r, command, &sub[i]);
	reply_later_end(r, place, '%', count);
}

/* Of "config", or of "config|get". */
static void
answer_info_named(struct call *c, struct str name)
{
	struct str rest = name;
	const struct command *command = command_find(str_cut(&rest, '|'));
	const struct subcommand *sub = command ? subcommand_find(command, rest) : NULL;

	if (sub)
		answer_subcommand(c->reply, command, sub);
	else if (command && command_is_named(command, name))
		answer_info(c->reply, command);
	else
		reply_null_array(c->reply);
}

static enum status
command_info(struct call *c)
{
	if (c->argc <= 2) {
		reply_array(c->reply, command_count);
		for (size_t i = 0; i < command_count; i++)
			answer_info(c->reply, &command_table[i]);
		return STATUS_OK;
	}
	reply_array(c->reply, c->argc - 2);
	for (size_t i = 2; i < c->argc; i++)
		answer_info_named(c, c->argv[i]);
	return STATUS_OK;
}

static enum status
command_docs(struct call *c)
{
	size_t place = reply_later(c->reply);
	size_t count = 0;

	for (size_t i = 0; c->argc == 2 && i < command_count; i++, count++)
		answer_docs(c->reply, &command_table[i]);
	for (size_t i = 2; i < c->argc; i++) {
		struct str rest = c->argv[i];
		const struct command *command = command_find(str_cut(&rest, '|'));
		const struct subcommand *sub = command ? subcommand_find(command, rest) : NULL;

		if (sub)
			answer_subcommand_docs(c->reply, command, sub);
		else if (command && command_is_named(command, c->argv[i]))
			answer_docs(c->reply, command);
		else
			continue;
		count++;
	}
	reply_later_end(c->reply, place, '%', count);
	return STATUS_OK;
}

static enum status
no_keys(struct call *c)
{
	return call_error(c, STR("ERR The command has no key arguments"));
}

/* A key, and what the command does with it. */
static void
answer_key_flags(struct call *c, const struct command *command, size_t key, size_t place)
{
	reply_array(c->reply, 2);
	reply_bulk(c->reply, c->argv[2 + place]);
	answer_words(c->reply, key_flags_of(command, c->argv + 2, c->argc - 2, key));
}

static enum status
command_getkeys(struct call *c, bool with_flags)
{
	const struct command *command = command_find(c->argv[2]);
	size_t argc = c->argc - 2;
	enum status status;
	size_t *places;
	size_t count;

	if (!command || (command->flags & COMMAND_CONTAINER && argc > 1 &&
			 !subcommand_find(command, c->argv[3])))
		return call_error(c, STR("ERR Invalid command specified"));
	if (command->flags & COMMAND_PUBSUB ||
	    (!command->first_key && !(command->flags & (COMMAND_MOVABLE_KEYS | COMMAND_CONTAINER))))
		return no_keys(c);
	if (!command_takes(command, argc))
		return call_error(c, STR("ERR Invalid number of arguments specified for command"));
	status = command_keys(command, c->argv + 2, argc, c->arena, &places, &count);
	if (status == STATUS_INVALID && command->flags & COMMAND_NO_MANDATORY_KEYS) {
		reply_array(c->reply, 0);
		return STATUS_OK;
	}
	if (status != STATUS_OK)
		return call_error(c, STR("ERR Invalid arguments specified for command"));
	if (!count && command->flags & COMMAND_CONTAINER)
		return no_keys(c);
	reply_array(c->reply, count);
	for (size_t i = 0; i < count; i++) {
		if (with_flags)
			answer_key_flags(c, command, i, places[i]);
		else
			reply_bulk(c->reply, c->argv[2 + places[i]]);
	}
	return STATUS_OK;
}

/* Which commands COMMAND LIST tells; a category that there is not is acl_category_count. */
struct list_filter {
	struct str pattern; /* ptr is NULL: all names */
	bool by_category;
	size_t category;
	bool by_module;
};

/* The command, or one of its subcommands unless that is NULL. */
static bool
filter_takes(const struct list_filter *f, const struct command *command,
	     const struct subcommand *sub, struct str name)
{
	if (f->by_module || (f->by_category && f->category == acl_category_count))
		return false;
	if (f->by_category)
		return sub ? acl_has_subcommand(command, sub, f->category)
			   : acl_is_in_category(command, f->category);
	return !f->pattern.ptr || glob_matches(f->pattern, name, true);
}

/* The command and its subcommands; how many of them there are. */
static size_t
list_command(struct call *c, const struct list_filter *f, const struct command *command)
{
	struct str name = str_from_cstr(command->name);
	size_t subs, count = filter_takes(f, command, NULL, name);
	const struct subcommand *sub = subcommands_of(command, &subs);

	if (count)
		reply_bulk(c->reply, name);
	for (size_t i = 0; i < subs; i++) {
		char room[SUBCOMMAND_NAME_BYTES];

		name = subcommand_name(command, &sub[i], room);
		if (!filter_takes(f, command, &sub[i], name))
			continue;
		reply_bulk(c->reply, name);
		count++;
	}
	return count;
}

static enum status
command_list(struct call *c)
{
	struct list_filter f = { .category = acl_category_count };
	size_t place, count = 0;

	if (c->argc != 2 && (c->argc != 5 || !call_arg_is(c, 2, "filterby")))
		return call_syntax_error(c);
	f.by_category = call_arg_is(c, 3, "aclcat");
	f.by_module = call_arg_is(c, 3, "module");
	if (call_arg_is(c, 3, "pattern"))
		f.pattern = c->argv[4];
	else if (c->argc == 5 && !f.by_category && !f.by_module)
		return call_syntax_error(c);
	for (size_t i = 0; f.by_category && i < acl_category_count; i++)
		if (call_arg_is(c, 4, acl_categories[i]))
			f.category = i;
	place = reply_later(c->reply);
	for (size_t i = 0; i < command_count; i++)
		count += list_command(c, &f, &command_table[i]);
	reply_later_end(c->reply, place, '*', count);
	return STATUS_OK;
}

enum status
cmd_command(struct call *c)
{
	static const char *const help[] = {
		"(no subcommand)",
		"    Return details about all Redis commands.",
		"COUNT",
		"    Return the total number of commands in this Redis server.",
		"LIST",
		"    Return a list of all commands in this Redis server.",
		"INFO [<command-name> ...]",
		"    Return details about multiple Redis commands.",
		"    If no command names are given, documentation details for all",
		"    commands are returned.",
		"DOCS [<command-name> ...]",
		"    Return documentation details about multiple Redis commands.",
		"    If no command names are given, documentation details for all",
		"    commands are returned.",
		"GETKEYS <full-command>",
		"    Return the keys from a full Redis command.",
		"GETKEYSANDFLAGS <full-command>",
		"    Return the keys and the access flags from a full Redis command.",
	};

	if (c->argc == 1 || call_arg_is(c, 1, "info"))
		return command_info(c);
	if (call_arg_is(c, 1, "help") && c->argc == 2)
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	if (call_arg_is(c, 1, "count") && c->argc == 2) {
		reply_int(c->reply, (int64_t)command_count);
		return STATUS_OK;
	}
	if (call_arg_is(c, 1, "docs"))
		return command_docs(c);
	if (call_arg_is(c, 1, "list"))
		return command_list(c);
	if (call_arg_is(c, 1, "getkeys") && c->argc >= 3)
		return command_getkeys(c, false);
	if (call_arg_is(c, 1, "getkeysandflags") && c->argc >= 3)
		return command_getkeys(c, true);
	return call_unknown_subcommand(c);
}
