/* ACL: who is who, and who may what. People are those of every door (txn/user.h). */
#include "base/rand.h"
#include "door/redis/acl/rules.h"
#include "door/redis/acl/subcommand.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/users.h"
#include "door/redis/txn/acl_log.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/user.h"
#include "door/redis/txn/user_change.h"
#include "door/redis/wire/error.h"
#include "loop/step.h"

enum {
	RULES_BYTES = 128 * 1024, /* of a user as text */
	GENPASS_BITS = 256,
	GENPASS_BITS_MOST = 4096,
	ACL_LOG_SHOWN = 10, /* entries, where nobody says how many */
};

/* The command and its subcommands, as far as they are in the category; how many they are. */
static size_t
acl_cat_command(struct call *c, const struct command *command, size_t category)
{
	size_t subs, count = acl_is_in_category(command, category);
	const struct subcommand *sub = subcommands_of(command, &subs);

	if (count)
		reply_bulk_cstr(c->reply, command->name);
	for (size_t i = 0; i < subs; i++) {
		char name[SUBCOMMAND_NAME_BYTES];

		if (!acl_has_subcommand(command, &sub[i], category))
			continue;
		reply_bulk(c->reply, subcommand_name(command, &sub[i], name));
		count++;
	}
	return count;
}

static enum status
acl_cat(struct call *c)
{
	size_t place = reply_later(c->reply);
	size_t category = 0;
	size_t count = 0;

	if (c->argc == 2) {
		reply_array(c->reply, acl_category_count);
		for (size_t i = 0; i < acl_category_count; i++)
			reply_bulk_cstr(c->reply, acl_categories[i]);
		return STATUS_OK;
	}
	while (category < acl_category_count && !call_arg_is(c, 2, acl_categories[category]))
		category++;
	if (category == acl_category_count)
		return call_errorf(c, "ERR Unknown category '%.*s'",
				   STR_ARG(call_shown(c->argv[2])));
	for (size_t i = 0; i < command_count; i++)
		count += acl_cat_command(c, &command_table[i], category);
	reply_later_end(c->reply, place, '*', count);
	return STATUS_OK;
}

/* ---- Telling of users ---- */

/* Whoever may not change people learns of nobody else. */
static bool
acl_may_see(const struct call *c, struct str name)
{
	return str_eq(name, client_user_name(c->client)) || user_may_change(c->client);
}

/* Listing users: what becomes of each. */
struct acl_listing {
	struct call *call;
	bool names_only;
	bool sees_all;
	bool open;
	size_t count;
};

/* " on nopass", " off #hash #hash", " on ownpass" */
static void
describe_login(const struct user *user, bool open, struct buf *out)
{
	buf_append_cstr(out, user->at.off ? " off" : " on");
	if (user_needs_no_password(user, open))
		buf_append_cstr(out, " nopass");
	if (user->at.by == PERSON_DOOR_BY_OWN)
		buf_append_cstr(out, " ownpass");
	for (size_t i = 0; i < user->at.count; i++) {
		buf_append_cstr(out, " #");
		user_password_text(&user->at, i, out);
	}
}

static enum status
acl_list_one(void *arg, const struct user *user)
{
	AUTO(buf_release) struct buf out = BUF_SHORT(RULES_BYTES);
	struct acl_listing *l = arg;

	if (!l->sees_all && !str_eq(user->name, client_user_name(l->call->client)))
		return STATUS_OK;
	l->count++;
	if (l->names_only) {
		reply_bulk(l->call->reply, user->name);
		return STATUS_OK;
	}
	buf_append_cstr(&out, "user ");
	buf_append_str(&out, user->name);
	describe_login(user, l->open, &out);
	acl_describe(&user->acl, &out);
	TRY(buf_status(&out));
	reply_bulk(l->call->reply, buf_str(&out));
	return STATUS_OK;
}

static enum status
acl_list(struct call *c, bool names_only)
{
	struct acl_listing l = { .call = c,
				 .names_only = names_only,
				 .sees_all = user_may_change(c->client),
				 .open = users_are_open(c->redis) };
	size_t place = reply_later(c->reply);
	struct err err = { 0 };

	TRY(user_each(c->redis, c->client->part, acl_list_one, &l, &err));
	reply_later_end(c->reply, place, '*', l.count);
	return STATUS_OK;
}

/* Rules of one kind, as one text. */
static enum status
acl_answer_rules(struct call *c, const char *name, const struct acl_selector *s,
		 void (*describe)(const struct acl_selector *s, struct buf *ret))
{
	AUTO(buf_release) struct buf out = BUF_SHORT(RULES_BYTES);

	describe(s, &out);
	TRY(buf_status(&out));
	reply_bulk_cstr(c->reply, name);
	reply_bulk(c->reply, str_trim(buf_str(&out)));
	return STATUS_OK;
}

/* Three names and what belongs to them. */
static enum status
acl_answer_selector(struct call *c, const struct acl_selector *s)
{
	TRY(acl_answer_rules(c, "commands", s, acl_describe_commands));
	TRY(acl_answer_rules(c, "keys", s, acl_describe_keys));
	return acl_answer_rules(c, "channels", s, acl_describe_channels);
}

/* Flags and passwords. */
static void
acl_answer_login(struct call *c, const struct user *user)
{
	bool nopass = user_needs_no_password(user, users_are_open(c->redis));
	bool ownpass = user->at.by == PERSON_DOOR_BY_OWN;

	reply_bulk_cstr(c->reply, "flags");
	reply_set(c->reply, 1 + (size_t)nopass + (size_t)ownpass);
	reply_bulk_cstr(c->reply, user->at.off ? "off" : "on");
	if (nopass)
		reply_bulk_cstr(c->reply, "nopass");
	if (ownpass)
		reply_bulk_cstr(c->reply, "ownpass");
	reply_bulk_cstr(c->reply, "passwords");
	reply_array(c->reply, user->at.count);
	for (size_t i = 0; i < user->at.count; i++) {
		AUTO(buf_release) struct buf text = BUF_SHORT(USER_PASSWORD_TEXT_BYTES);

		user_password_text(&user->at, i, &text);
		reply_bulk(c->reply, buf_str(&text));
	}
}

static enum status
acl_getuser(struct call *c)
{
	struct err err = { 0 };
	struct user user;

	TRY(users_failed(c, user_read(c->redis, c->argv[2], c->arena, &user, &err), &err));
	if (!user.known || !acl_may_see(c, user.name)) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	reply_map(c->reply, 6);
	acl_answer_login(c, &user);
	TRY(acl_answer_selector(c, &user.acl.root));
	reply_bulk_cstr(c->reply, "selectors");
	reply_array(c->reply, user.acl.other_count);
	for (size_t i = 0; i < user.acl.other_count; i++) {
		reply_map(c->reply, 3);
		TRY(acl_answer_selector(c, &user.acl.others[i]));
	}
	return STATUS_OK;
}

/* ---- Changing users ---- */

static enum status
acl_setuser(struct call *c)
{
	struct err err = { 0 };

	TRY(users_may_change(c, "acl|setuser"));
	TRY(users_failed(
		c, user_change(c->client, c->argv[2], c->argv + 3, c->argc - 3, c->arena, &err),
		&err));
	reply_ok(c->reply);
	return STATUS_OK;
}

static enum status
acl_deluser(struct call *c)
{
	struct err err = { 0 };
	int64_t count = 0;

	TRY(users_may_change(c, "acl|deluser"));
	/* Whoever cannot be removed is refused before anybody is removed. */
	for (size_t i = 2; i < c->argc; i++) {
		TRY(step_count(1));
		TRY(users_failed(c, user_may_be_removed(c->redis, c->argv[i], &err), &err));
	}
	for (size_t i = 2; i < c->argc; i++) {
		bool removed = false;

		TRY(visit_goes_on(&c->client->entry, c->client->end != CLIENT_GOES_ON));
		TRY(users_may_change(c, "acl|deluser"));
		TRY(users_failed(c, user_remove(c->client, c->argv[i], c->arena, &removed, &err),
				 &err));
		count += removed;
	}
	reply_int(c->reply, count);
	return STATUS_OK;
}

/* ---- GENPASS ---- */

static enum status
acl_genpass(struct call *c)
{
	uint8_t bytes[GENPASS_BITS_MOST / 8];
	AUTO(buf_release) struct buf hex = BUF_SHORT(2 * sizeof(bytes));
	int64_t bits = GENPASS_BITS;

	if (c->argc == 3)
		TRY(call_int(c, 2, &bits));
	if (c->argc == 3)
		TRY(call_int_range(c, 2, 1, GENPASS_BITS_MOST,
				   "ACL GENPASS argument must be the number of bits for the output "
				   "password, a positive number up to 4096",
				   &bits));
	rand_bytes(bytes, sizeof(bytes));
	buf_append_hex(&hex, str_of(bytes, sizeof(bytes)));
	TRY(buf_status(&hex));
	reply_bulk(c->reply, str_of(hex.ptr, (size_t)(bits + 3) / 4));
	return STATUS_OK;
}

/* ---- DRYRUN ---- */

/* The command that is tried, with that many arguments. */
static enum status
dryrun_command(struct call *c, char name[static SUBCOMMAND_NAME_BYTES], const struct command **ret)
{
	const struct command *command = command_find(c->argv[3]);
	const struct subcommand *sub;

	sub = command ? subcommand_called(command, c->argv + 3, c->argc - 3) : NULL;
	if (!command || (command->flags & COMMAND_CONTAINER && c->argc > 4 && !sub &&
			 !command_is_refused(command)))
		return call_errorf(c, "ERR Command '%.*s' not found",
				   STR_ARG(call_shown(c->argv[3])));
	subcommand_name_call(command, c->argv + 3, c->argc - 3, name);
	if (!command_takes(command, c->argc - 3) ||
	    (sub && !command_arity_takes(sub->arity, c->argc - 3)))
		return call_errorf(c, "ERR wrong number of arguments for '%s' command", name);
	*ret = command;
	return STATUS_OK;
}

static enum status
acl_dryrun(struct call *c)
{
	static const struct {
		const char *verb, *noun;
	} words[] = { [ACL_DENIED_COMMAND] = { "run", "command" },
		      [ACL_DENIED_KEY] = { "access", "key" },
		      [ACL_DENIED_CHANNEL] = { "access", "channel" } };
	AUTO(buf_release) struct buf text = BUF_SHORT(RULES_BYTES);
	const struct command *command;
	enum acl_denial denial;
	char name[SUBCOMMAND_NAME_BYTES];
	struct err err = { 0 };
	struct str object;
	struct user user;

	TRY(users_failed(c, user_read(c->redis, c->argv[2], c->arena, &user, &err), &err));
	if (!user.known || !acl_may_see(c, user.name))
		return call_errorf(c, "ERR User '%.*s' not found", STR_ARG(call_shown(c->argv[2])));
	TRY(dryrun_command(c, name, &command));
	denial = acl_check(&user.acl, command, c->argv + 3, c->argc - 3, c->arena, &object);
	if (denial == ACL_ALLOWED) {
		reply_ok(c->reply);
		return STATUS_OK;
	}
	if (denial == ACL_DENIED_COMMAND)
		object = str_from_cstr(name);
	buf_printf(&text, "This user has no permissions to %s the '", words[denial].verb);
	buf_append_str(&text, object);
	buf_printf(&text, "' %s", words[denial].noun);
	TRY(buf_status(&text));
	reply_bulk(c->reply, buf_str(&text));
	return STATUS_OK;
}

/* ---- The log ---- */

static enum status
acl_log(struct call *c)
{
	int64_t most = ACL_LOG_SHOWN;

	if (call_arg_is(c, 2, "reset")) {
		recent_clear(&c->redis->acl_log);
		reply_ok(c->reply);
		return STATUS_OK;
	}
	if (c->argc == 3)
		TRY(call_int(c, 2, &most));
	acl_log_get(c->redis, most, c->reply);
	return STATUS_OK;
}

/* ---- The rest ---- */

static enum status
acl_tell_all(struct call *c)
{
	return acl_list(c, false);
}

static enum status
acl_tell_names(struct call *c)
{
	return acl_list(c, true);
}

static enum status
acl_whoami(struct call *c)
{
	reply_bulk(c->reply, client_user_name(c->client));
	return STATUS_OK;
}

static enum status
acl_no_file(struct call *c)
{
	return call_error(c, STR("ERR This Redis instance is not configured to use an ACL file: "
				 "people are in the store, where each change of them is kept at "
				 "once"));
}

enum status
cmd_acl(struct call *c)
{
	static const char *const help[] = {
		"CAT [<category>]",
		"    List all commands that belong to <category>, or all command categories",
		"    when no category is specified.",
		"DELUSER <username> [<username> ...]",
		"    Delete a list of users.",
		"DRYRUN <username> <command> [<arg> ...]",
		("    Returns whether the user can execute the given command without executing "
		 "the command."),
		"GETUSER <username>",
		"    Get the user's details.",
		"GENPASS [<bits>]",
		"    Generate a secure 256-bit user password. The optional `bits` argument can",
		"    be used to specify a different size.",
		"LIST",
		"    Show users details in config file format.",
		"LOAD",
		"    Reload users from the ACL file.",
		"LOG [<count> | RESET]",
		"    Show the ACL log entries.",
		"SAVE",
		"    Save the current config to the ACL file.",
		"SETUSER <username> <attribute> [<attribute> ...]",
		"    Create or modify a user with the specified attributes.",
		"USERS",
		"    List all the registered usernames.",
		"WHOAMI",
		"    Return the current connection username.",
	};

	/* `most` are the arguments that it takes; the table of subcommands knows the least. */
	static const struct {
		const char *name;
		enum status (*run)(struct call *c);
		size_t most;
	} subcommands[] = {
		{ "cat", acl_cat, 3 },
		{ "deluser", acl_deluser, SIZE_MAX },
		{ "dryrun", acl_dryrun, SIZE_MAX },
		{ "genpass", acl_genpass, 3 },
		{ "getuser", acl_getuser, 3 },
		{ "list", acl_tell_all, 2 },
		{ "load", acl_no_file, 2 },
		{ "log", acl_log, 3 },
		{ "save", acl_no_file, 2 },
		{ "setuser", acl_setuser, SIZE_MAX },
		{ "users", acl_tell_names, 2 },
		{ "whoami", acl_whoami, 2 },
	};

	if (call_arg_is(c, 1, "help"))
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++)
		if (call_arg_is(c, 1, subcommands[i].name) && c->argc <= subcommands[i].most)
			return subcommands[i].run(c);
	return call_unknown_subcommand(c);
}
