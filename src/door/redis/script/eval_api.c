/* The table "redis" of scripts. */
#include <openssl/sha.h>
#include <stdio.h>

#include "base/log.h"
#include "door/redis/acl/subcommand.h"
#include "door/redis/script/eval.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/wire/number.h"

#define VERSION_NUMBER 0x0007000f

enum {
	NUMBER_BYTES = 64,
	LOG_LEVELS = 4,
	LOG_BYTES = 1024, /* of a line */
	SHA_BYTES_A_STEP = 16,
};

/* ---- redis.call ---- */

/* The arguments in the arena of the transaction, which keeps keys; NULL: the error is pushed. */
static struct str *
api_args(lua_State *L, size_t *ret_count)
{
	struct arena *arena = eval_of(L)->call->arena;
	int count = lua_gettop(L);
	struct str *argv;

	if (!count) {
		eval_push_error(L, "Please specify at least one argument for this redis lib call");
		return NULL;
	}
	argv = arena_alloc(arena, (size_t)count * sizeof(*argv));
	for (int i = 0; argv && i < count; i++) {
		char text[NUMBER_BYTES];
		struct str arg;

		if (lua_type(L, i + 1) == LUA_TNUMBER) {
			arg.len = (size_t)snprintf(text, sizeof(text), "%.17g",
						   lua_tonumber(L, i + 1));
			arg.ptr = text;
		} else if (lua_type(L, i + 1) == LUA_TSTRING) {
			arg.ptr = lua_tolstring(L, i + 1, &arg.len);
		} else {
			eval_push_error(
				L, "Lua redis lib command arguments must be strings or integers");
			return NULL;
		}
		argv[i] = arena_dup(arena, arg);
		if (!argv[i].ptr)
			argv = NULL;
	}
	if (!argv)
		eval_push_error(L, "the calls of a script are too long together for the memory "
				   "of a connection");
	*ret_count = (size_t)count;
	return argv;
}

/*
 * Why the script may not run the command; NULL if it may. If its user lacks a right, `*ret_denial`
 * and `*ret_object` say which one; else they keep their values.
 */
static const char *
api_refusal(struct eval *e, const struct command *command, struct str *argv, size_t argc,
	    enum acl_denial *ret_denial, struct str *ret_object)
{
	const struct subcommand *sub = command ? subcommand_called(command, argv, argc) : NULL;

	if (!command || (command->flags & COMMAND_CONTAINER && argc > 1 && !sub &&
			 !command_is_refused(command)))
		return "Unknown Redis command called from script";
	if (!command_takes(command, argc) || (sub && !command_arity_takes(sub->arity, argc)))
		return "Wrong number of args calling Redis command from script";
	if (command->flags & COMMAND_NOSCRIPT || command->not_in_scripts)
		return "This Redis command is not allowed from script";
	*ret_denial = acl_check(&e->call->client->acl, command, argv, argc, e->call->arena,
				ret_object);
	if (*ret_denial == ACL_DENIED_COMMAND)
		return "The user executing the script can't run this command or subcommand";
	if (*ret_denial == ACL_DENIED_KEY)
		return "The user executing the script can't access at least one of the keys "
		       "mentioned in the command arguments";
	if (*ret_denial == ACL_DENIED_CHANNEL)
		return "The user executing the script can't publish to the channel mentioned in "
		       "the command";
	if (e->read_only &&
	    (command->flags & COMMAND_WRITE || strcmp(command->name, "publish") == 0 ||
	     strcmp(command->name, "spublish") == 0))
		return "Write commands are not allowed from read-only scripts.";
	return NULL;
}

/* The error is on top of the stack. Without memory it is counted as the script's, if at all. */
static void
api_count_refusal(lua_State *L, struct eval *e, const char *why)
{
	const char *text = lua_pushfstring(L, "-ERR %s", why);

	if (txn_called(&e->inner, str_from_cstr(text), 0, true) == STATUS_OK) {
		lua_pop(L, 1);
		eval_mark_told(L);
		return;
	}
	lua_pop(L, 1);
}

static int
api_run(lua_State *L, bool raises)
{
	struct eval *e = eval_of(L);
	const struct command *command;
	enum acl_denial denial = ACL_ALLOWED;
	struct str object;
	const char *why;
	size_t argc;
	struct str *argv = api_args(L, &argc);

	if (!argv)
		return raises ? lua_error(L) : 1;
	lua_settop(L, 0);
	command = command_find(argv[0]);
	why = api_refusal(e, command, argv, argc, &denial, &object);
	e->inner = *e->call;
	e->inner.command = command;
	e->inner.argv = argv;
	e->inner.argc = argc;
	e->inner_reply = (struct reply){ .out = &e->answer, .version = e->resp };
	e->inner.reply = &e->inner_reply;
	e->inner.db = e->db;
	e->inner.in_exec = true;
	e->inner.in_script = true;
	if (why) {
		eval_push_error(L, why);
		/* Without memory for it, nothing is noted. */
		if (denial != ACL_ALLOWED)
			(void)!txn_denied(&e->inner, denial, object);
		if (command)
			api_count_refusal(L, e, why);
		return raises ? lua_error(L) : 1;
	}
	script_leave(&e->script, SCRIPT_WANTS_CALL);
	eval_push_answer(L, buf_str(&e->answer));
	if (!e->answer.len || e->answer.ptr[0] != '-')
		return 1;
	eval_mark_told(L);
	return raises ? lua_error(L) : 1;
}

static int
api_call(lua_State *L)
{
	return api_run(L, true);
}

static int
api_pcall(lua_State *L)
{
	return api_run(L, false);
}

/* ---- The rest ---- */

static int
api_raise(lua_State *L, const char *text)
{
	eval_push_error(L, text);
	return lua_error(L);
}

static int
api_sha1hex(lua_State *L)
{
	char sha[EVAL_SHA_CHARS + 1];
	struct str text = { "", 0 };

	if (lua_gettop(L) != 1)
		return api_raise(L, "wrong number of arguments");
	if (lua_isstring(L, 1))
		text.ptr = lua_tolstring(L, 1, &text.len);
	eval_sha(text, sha);
	script_work(L, text.len / SHA_BYTES_A_STEP);
	lua_pushstring(L, sha);
	return 1;
}

static int
api_error_reply(lua_State *L)
{
	const char *text;

	if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TSTRING) {
		eval_push_error(L, "wrong number or type of arguments");
		return 1;
	}
	text = lua_tostring(L, 1);
	eval_push_error(L, text[0] == '-' ? text : lua_pushfstring(L, "-%s", text));
	return 1;
}

static int
api_status_reply(lua_State *L)
{
	if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TSTRING) {
		eval_push_error(L, "wrong number or type of arguments");
		return 1;
	}
	lua_createtable(L, 0, 1);
	lua_pushvalue(L, 1);
	lua_setfield(L, -2, "ok");
	return 1;
}

/* What can stand in a line of the log, between quotes. */
static const char *
api_log_text(const struct buf *line, char ret[static LOG_BYTES])
{
	size_t len = line->len < LOG_BYTES - 1 ? line->len : LOG_BYTES - 1;

	for (size_t i = 0; i < len; i++) {
		char c = line->ptr[i];

		ret[i] = (char)(c < ' ' || c == '"' || c == '\\' || c == 0x7f ? '.' : c);
	}
	ret[len] = '\0';
	return ret;
}

static int
api_log(lua_State *L)
{
	static const enum log_level levels[LOG_LEVELS] = { LOG_LEVEL_DEBUG, LOG_LEVEL_DEBUG,
							   LOG_LEVEL_INFO, LOG_LEVEL_WARN };
	static struct log_limit limit;
	struct buf *line = script_scratch(L);
	int count = lua_gettop(L);
	char text[LOG_BYTES];
	lua_Number level;
	uint64_t before;

	if (count < 2)
		return api_raise(L, "redis.log() requires two arguments or more.");
	if (!lua_isnumber(L, 1))
		return api_raise(L, "First argument must be a number (log level).");
	level = lua_tonumber(L, 1);
	if (!(level >= 0 && level < LOG_LEVELS))
		return api_raise(L, "Invalid debug level.");
	for (int i = 2; i <= count; i++) {
		if (i > 2)
			buf_append_byte(line, ' ');
		if (lua_isstring(L, i))
			buf_append(line, lua_tostring(L, i), lua_objlen(L, i));
	}
	if (buf_status(line) == STATUS_OK && log_limit_pass(&limit, &before))
		log_event(levels[(int)level], "redis_script", "text=\"%s\" left_out=%llu",
			  api_log_text(line, text), (unsigned long long)before);
	return 0;
}

static int
api_setresp(lua_State *L)
{
	lua_Number version;

	if (lua_gettop(L) != 1)
		return api_raise(L, "redis.setresp() requires one argument.");
	version = lua_tonumber(L, 1);
	if (version != 2 && version != 3)
		return api_raise(L, "RESP version must be 2 or 3.");
	eval_of(L)->resp = (int)version;
	return 0;
}

static int
api_acl_check_cmd(lua_State *L)
{
	struct eval *e = eval_of(L);
	const struct command *command;
	struct str object;
	size_t argc;
	struct str *argv = api_args(L, &argc);

	if (!argv)
		return lua_error(L);
	command = command_find(argv[0]);
	if (!command)
		return api_raise(L, "Invalid command passed to redis.acl_check_cmd()");
	lua_pushboolean(L, acl_check(&e->call->client->acl, command, argv, argc, e->call->arena,
				     &object) == ACL_ALLOWED);
	return 1;
}

/* There is no replication by commands: all of a script is one transaction. */
static int
api_set_repl(lua_State *L)
{
	lua_Number flags;

	if (lua_gettop(L) != 1)
		return api_raise(L, "redis.set_repl() requires two arguments.");
	flags = lua_tonumber(L, 1);
	if (!(flags >= 0 && flags <= 3))
		return api_raise(L, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, "
				    "REPL_ALL or REPL_NONE.");
	return 0;
}

/* There is no debugger: it does not stop, and prints nothing. */
static int
api_breakpoint(lua_State *L)
{
	lua_pushboolean(L, 0);
	return 1;
}

static int
api_debug(lua_State *L)
{
	(void)L;
	return 0;
}

static int
api_replicate_commands(lua_State *L)
{
	lua_pushboolean(L, 1);
	return 1;
}

/* Numbers of the table on top of the stack. */
static void
api_add_numbers(lua_State *L)
{
	static const struct {
		const char *name;
		int value;
	} numbers[] = { { "LOG_DEBUG", 0 },  { "LOG_VERBOSE", 1 },
			{ "LOG_NOTICE", 2 }, { "LOG_WARNING", 3 },
			{ "REPL_NONE", 0 },  { "REPL_AOF", 1 },
			{ "REPL_SLAVE", 2 }, { "REPL_REPLICA", 2 },
			{ "REPL_ALL", 3 },   { "REDIS_VERSION_NUM", VERSION_NUMBER } };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		lua_pushinteger(L, numbers[i].value);
		lua_setfield(L, -2, numbers[i].name);
	}
	lua_pushliteral(L, REDIS_VERSION);
	lua_setfield(L, -2, "REDIS_VERSION");
}

void
eval_open_redis(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{ "call", api_call },
		{ "pcall", api_pcall },
		{ "sha1hex", api_sha1hex },
		{ "error_reply", api_error_reply },
		{ "status_reply", api_status_reply },
		{ "log", api_log },
		{ "setresp", api_setresp },
		{ "acl_check_cmd", api_acl_check_cmd },
		{ "set_repl", api_set_repl },
		{ "replicate_commands", api_replicate_commands },
		{ "breakpoint", api_breakpoint },
		{ "debug", api_debug },
	};

	script_new_library(L, functions, sizeof(functions) / sizeof(functions[0]));
	api_add_numbers(L);
}

void
eval_open_redis_to_load(lua_State *L, lua_CFunction registering)
{
	const luaL_Reg functions[] = { { "register_function", registering }, { "log", api_log } };

	script_new_library(L, functions, sizeof(functions) / sizeof(functions[0]));
	api_add_numbers(L);
}
