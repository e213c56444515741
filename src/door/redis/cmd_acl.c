/* ACL: who is who. People are those of every door; they are changed elsewhere. */
#include <stdio.h>

#include "base/rand.h"
#include "door/redis/commands.h"
#include "door/redis/error.h"
#include "door/redis/redis_int.h"
#include "door/redis/subcommand.h"

enum {
	RULES_BYTES = 64 * 1024,
	NAME_BYTES = 64, /* of a command with its subcommand */
	GENPASS_BITS = 256,
	GENPASS_BITS_MOST = 4096,
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
		char name[NAME_BYTES];

		if (!acl_has_subcommand(command, &sub[i], category))
			continue;
		snprintf(name, sizeof(name), "%s|%s", command->name, sub[i].name);
		reply_bulk_cstr(c->reply, name);
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
	if (category == acl_category_count) {
		reply_errorf(c->reply, "ERR Unknown category '%.*s'",
			     (int)(c->argv[2].len < 128 ? c->argv[2].len : 128), c->argv[2].ptr);
		return STATUS_OK;
	}
	for (size_t i = 0; i < command_count; i++)
		count += acl_cat_command(c, &command_table[i], category);
	reply_later_end(c->reply, place, '*', count);
	return STATUS_OK;
}

/* "user NAME on … rules", of the one who asks. */
static enum status
acl_list(struct call *c)
{
	AUTO(buf_release) struct buf out = BUF_INIT(RULES_BYTES);

	buf_append_cstr(&out, "user ");
	buf_append_str(&out, client_user_name(c->client));
	buf_append_cstr(&out, c->client->user.name.len ? " on" : " on nopass");
	acl_describe(&c->client->acl, &out);
	TRY(buf_status(&out));
	reply_array(c->reply, 1);
	reply_bulk(c->reply, buf_str(&out));
	return STATUS_OK;
}

static enum status
acl_getuser(struct call *c)
{
	AUTO(buf_release) struct buf out = BUF_INIT(RULES_BYTES);
	bool everything;

	if (!str_eq(c->argv[2], client_user_name(c->client))) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	acl_describe(&c->client->acl, &out);
	TRY(buf_status(&out));
	everything = c->client->acl.all_keys && c->client->acl.all_channels;
	reply_map(c->reply, 6);
	reply_bulk_cstr(c->reply, "flags");
	reply_set(c->reply, 1);
	reply_bulk_cstr(c->reply, "on");
	reply_bulk_cstr(c->reply, "passwords");
	reply_array(c->reply, 0);
	reply_bulk_cstr(c->reply, "commands");
	reply_bulk(c->reply, str_trim(buf_str(&out)));
	reply_bulk_cstr(c->reply, "keys");
	reply_bulk_cstr(c->reply, everything ? "~*" : "");
	reply_bulk_cstr(c->reply, "channels");
	reply_bulk_cstr(c->reply, everything ? "&*" : "");
	reply_bulk_cstr(c->reply, "selectors");
	reply_array(c->reply, 0);
	return STATUS_OK;
}

static enum status
acl_genpass(struct call *c)
{
	uint8_t bytes[GENPASS_BITS_MOST / 8];
	AUTO(buf_release) struct buf hex = BUF_INIT(2 * sizeof(bytes));
	int64_t bits = GENPASS_BITS;

	if (c->argc == 3 && !call_int(c, 2, &bits))
		return STATUS_OK;
	if (c->argc == 3 &&
	    !call_int_range(c, 2, 1, GENPASS_BITS_MOST,
			    "ACL GENPASS argument must be the number of bits for the output "
			    "password, a positive number up to 4096",
			    &bits))
		return STATUS_OK;
	rand_bytes(bytes, sizeof(bytes));
	buf_append_hex(&hex, str_of(bytes, sizeof(bytes)));
	TRY(buf_status(&hex));
	reply_bulk(c->reply, str_of(hex.ptr, (size_t)(bits + 3) / 4));
	return STATUS_OK;
}

enum status
cmd_acl(struct call *c)
{
	static const char *const help[] = {
		"CAT [<category>]",
		"    List all commands that belong to <category>, or all command categories",
		"    when no category is specified.",
		"GETUSER <username>",
		"    Get the user's details.",
		"GENPASS [<bits>]",
		"    Generate a secure 256-bit user password.",
		"LIST",
		"    Show users details in config file format.",
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
	else if (call_arg_is(c, 1, "setuser") || call_arg_is(c, 1, "deluser") ||
		 call_arg_is(c, 1, "load") || call_arg_is(c, 1, "save") ||
		 call_arg_is(c, 1, "log") || call_arg_is(c, 1, "dryrun"))
		reply_error(c->reply,
			    STR("ERR people are those of every door of frond: change them by "
				"frond user; their rules are roles that begin with \"redis:\""));
	else
		return call_unknown_subcommand(c);
	return STATUS_OK;
}
