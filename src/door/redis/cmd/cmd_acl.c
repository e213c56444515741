/* ACL: who is who. People are those of every door; they are changed elsewhere. */
#include "access/people.h"
#include "base/rand.h"
#include "door/redis/acl/rules.h"
#include "door/redis/acl/subcommand.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/txn/acl_log.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/wire/error.h"

enum {
	RULES_BYTES = 64 * 1024,
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

/* "user NAME on … rules", of the one who asks. */
static enum status
acl_list(struct call *c)
{
	AUTO(buf_release) struct buf out = BUF_SHORT(RULES_BYTES);

	buf_append_cstr(&out, "user ");
	buf_append_str(&out, client_user_name(c->client));
	buf_append_cstr(&out, c->client->user.name.len ? " on" : " on nopass");
	acl_describe(&c->client->acl, &out);
	TRY(buf_status(&out));
	reply_array(c->reply, 1);
	reply_bulk(c->reply, buf_str(&out));
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

static enum status
acl_getuser(struct call *c)
{
	bool is_default = !c->client->user.name.len; /* nobody has to log in */
	const struct acl *acl = &c->client->acl;

	if (!str_eq(c->argv[2], client_user_name(c->client))) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	reply_map(c->reply, 6);
	reply_bulk_cstr(c->reply, "flags");
	reply_set(c->reply, is_default ? 2 : 1);
	reply_bulk_cstr(c->reply, "on");
	if (is_default)
		reply_bulk_cstr(c->reply, "nopass");
	reply_bulk_cstr(c->reply, "passwords");
	reply_array(c->reply, 0);
	TRY(acl_answer_selector(c, &acl->root));
	reply_bulk_cstr(c->reply, "selectors");
	reply_array(c->reply, acl->other_count);
	for (size_t i = 0; i < acl->other_count; i++) {
		reply_map(c->reply, 3);
		TRY(acl_answer_selector(c, &acl->others[i]));
	}
	return STATUS_OK;
}

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

/* What a person may do now. `*ret_there` is false if there is no such person. */
static enum status
acl_of_person(struct call *c, struct str name, struct acl *ret, bool *ret_there)
{
	struct settings_held *held = settings_live_hold(c->redis->config.live);
	const struct auth_client client = client_of_auth(c->client);
	struct auth_user user = { .name = name, .method = AUTH_METHOD_COOKIE };
	struct err err = { 0 };
	bool open = client_is_open(c->redis);
	enum status status = STATUS_UNAUTHORIZED;

	if (open && str_eq(name, STR("default"))) {
		user.admin = true;
		status = STATUS_OK;
	} else if (!open) {
		status = auth_again(people_of(held), &client, c->arena, &user, &err);
	}
	settings_held_unref(held);
	*ret_there = status == STATUS_OK;
	if (user.admin)
		acl_allow_all(ret);
	else
		acl_of_roles(ret, user.roles, user.roles_count, c->arena);
	return status == STATUS_UNAUTHORIZED ? STATUS_OK : status;
}

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
	struct str object;
	struct acl acl;
	bool there;

	TRY(acl_of_person(c, c->argv[2], &acl, &there));
	if (!there)
		return call_errorf(c, "ERR User '%.*s' not found", STR_ARG(call_shown(c->argv[2])));
	TRY(dryrun_command(c, name, &command));
	denial = acl_check(&acl, command, c->argv + 3, c->argc - 3, c->arena, &object);
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

enum status
cmd_acl(struct call *c)
{
	static const char *const help[] = {
		"CAT [<category>]",
		"    List all commands that belong to <category>, or all command categories",
		"    when no category is specified.",
		"DRYRUN <username> <command> [<arg> ...]",
		("    Returns whether the user can execute the given command without executing "
		 "the command."),
		"GETUSER <username>",
		"    Get the user's details.",
		"GENPASS [<bits>]",
		"    Generate a secure 256-bit user password.",
		"LIST",
		"    Show users details in config file format.",
		"LOG [<count> | RESET]",
		"    Show the ACL log entries.",
		"USERS",
		"    List all the registered usernames.",
		"WHOAMI",
		"    Return the current connection username.",
	};

	if (call_arg_is(c, 1, "help") && c->argc == 2)
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	if (call_arg_is(c, 1, "whoami") && c->argc == 2)
		reply_bulk(c->reply, client_user_name(c->client));
	else if (call_arg_is(c, 1, "cat") && c->argc <= 3)
		return acl_cat(c);
	else if (call_arg_is(c, 1, "list") && c->argc == 2)
		return acl_list(c);
	else if (call_arg_is(c, 1, "users") && c->argc == 2) {
		reply_array(c->reply, 1);
		reply_bulk(c->reply, client_user_name(c->client));
	} else if (call_arg_is(c, 1, "getuser") && c->argc == 3)
		return acl_getuser(c);
	else if (call_arg_is(c, 1, "genpass") && c->argc <= 3)
		return acl_genpass(c);
	else if (call_arg_is(c, 1, "dryrun") && c->argc >= 4)
		return acl_dryrun(c);
	else if (call_arg_is(c, 1, "log") && c->argc <= 3)
		return acl_log(c);
	else if (call_arg_is(c, 1, "setuser") || call_arg_is(c, 1, "deluser") ||
		 call_arg_is(c, 1, "load") || call_arg_is(c, 1, "save"))
		return call_error(
			c, STR("ERR people are those of every door of frond: change them by "
			       "frond user; their rules are roles that begin with \"redis:\""));
	else
		return call_unknown_subcommand(c);
	return STATUS_OK;
}
