/* EVAL and its kin, and SCRIPT. */
#include <ctype.h>

#include "door/redis/cmd/commands.h"
#include "door/redis/script/eval.h"
#include "door/redis/script/library.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/wire/error.h"
#include "door/redis/wire/number.h"

#define NO_SCRIPT "NOSCRIPT No matching script. Please use EVAL."

enum {
	SHOWN_BYTES = 64, /* of what is wrong in a script's first line, in an error */
};

/* ---- The first line: STATUS_INVALID, with the answer ---- */

/* "flags=no-writes,allow-stale". */
static enum status
shebang_flags(struct str flags, struct eval_flags *ret, struct err *err)
{
	static const char *const known[] = { "allow-oom", "allow-stale", "no-cluster",
					     "allow-cross-slot-keys" };

	while (flags.len) {
		struct str flag = str_cut(&flags, ',');
		size_t i = 0;

		if (str_eq(flag, STR("no-writes"))) {
			ret->no_writes = true;
			continue;
		}
		while (i < sizeof(known) / sizeof(known[0]) &&
		       !str_eq(flag, str_from_cstr(known[i])))
			i++;
		if (i == sizeof(known) / sizeof(known[0]))
			return err_set(
				err, STATUS_INVALID, "ERR Unexpected flag in script shebang: %.*s",
				(int)(flag.len < SHOWN_BYTES ? flag.len : SHOWN_BYTES), flag.ptr);
	}
	return STATUS_OK;
}

/* "#!lua flags=…". */
static enum status
shebang_read(struct str text, struct eval_flags *ret, struct err *err)
{
	struct str line, word;
	const char *end;

	*ret = (struct eval_flags){ 0 };
	if (!str_starts_with(text, STR("#!")))
		return STATUS_OK;
	end = memchr(text.ptr, '\n', text.len);
	if (!end)
		return err_set(err, STATUS_INVALID, "ERR Invalid script shebang");
	line = str_of(text.ptr, (size_t)(end - text.ptr));
	ret->shebang_bytes = line.len;
	line = str_trim(line);
	word = str_cut(&line, ' ');
	if (!str_eq(word, STR("#!lua")))
		return err_set(err, STATUS_INVALID, "ERR Unexpected engine in script shebang: %.*s",
			       (int)(word.len < SHOWN_BYTES ? word.len : SHOWN_BYTES), word.ptr);
	while (line.len) {
		word = str_cut(&line, ' ');
		if (!word.len)
			continue;
		if (!str_starts_with(word, STR("flags=")))
			return err_set(err, STATUS_INVALID, "ERR Unknown lua shebang option: %.*s",
				       (int)(word.len < SHOWN_BYTES ? word.len : SHOWN_BYTES),
				       word.ptr);
		TRY(shebang_flags(str_skip(word, 6), ret, err));
	}
	return STATUS_OK;
}

/* Fills in what is known of a text. `sha`: its hash; NULL: it has to be computed. */
static enum status
script_prepare(struct call *c, struct str text, const char *sha, struct eval *e)
{
	struct err err = { 0 };

	if (text.len > SCRIPT_BYTES)
		return call_errorf(c, "ERR a script may have %d bytes (SCRIPT_BYTES)",
				   SCRIPT_BYTES);
	e->call = c;
	e->text = text;
	if (sha)
		memcpy(e->sha, sha, EVAL_SHA_CHARS);
	else
		eval_sha(text, e->sha);
	if (shebang_read(text, &e->flags, &err) != STATUS_OK)
		return call_error(c, str_from_cstr(err.text));
	return STATUS_OK;
}

/* ---- EVAL ---- */

/* Finds the number of keys, and where they begin. */
static enum status
eval_keys(struct call *c, struct eval *e)
{
	int64_t count;

	TRY(call_int(c, 2, &count));
	if (count > (int64_t)c->argc - 3)
		return call_error(c,
				  STR("ERR Number of keys can't be greater than number of args"));
	if (count < 0)
		return call_error(c, STR("ERR Number of keys can't be negative"));
	e->keys = c->argv + 3;
	e->key_count = (size_t)count;
	e->args = c->argv + 3 + count;
	e->arg_count = c->argc - 3 - (size_t)count;
	return STATUS_OK;
}

static enum status
eval_text(struct call *c, struct str text, const char *sha)
{
	struct eval e = { .reply = *c->reply, .db = c->db };
	enum status status;

	TRY(eval_keys(c, &e));
	TRY(script_prepare(c, text, sha, &e));
	e.read_only = c->command->flags & COMMAND_READONLY || e.flags.no_writes;
	e.script.random = c->script_seed;
	status = eval_run(&e);
	if (e.is_sound && status == STATUS_OK)
		status = eval_cache_add(c->redis->script_cache, e.sha, text);
	return status;
}

enum status
cmd_eval(struct call *c)
{
	return eval_text(c, c->argv[1], NULL);
}

/* Reads a name of EVALSHA's; false for what is none. */
static bool
read_sha(struct str s, char ret[static EVAL_SHA_CHARS])
{
	if (s.len != EVAL_SHA_CHARS)
		return false;
	for (size_t i = 0; i < s.len; i++)
		ret[i] = (char)tolower((unsigned char)s.ptr[i]);
	return true;
}

/*
 * The text that EVALSHA knows by the name, in the arena, and its hash; ptr NULL: there is none.
 */
static struct str
text_of_sha(struct redis *r, struct str name, struct arena *arena, char ret_sha[EVAL_SHA_CHARS])
{
	return read_sha(name, ret_sha)
		       ? eval_cache_find(r->script_cache, str_of(ret_sha, EVAL_SHA_CHARS), arena)
		       : (struct str){ 0 };
}

enum status
cmd_evalsha(struct call *c)
{
	struct eval keys = { 0 };
	char sha[EVAL_SHA_CHARS];
	struct str text;

	/*
	 * What is no name is refused before the number of keys is looked at, and others after it.
	 */
	if (c->argv[1].len == EVAL_SHA_CHARS)
		TRY(eval_keys(c, &keys));
	text = text_of_sha(c->redis, c->argv[1], c->arena, sha);
	if (text.ptr)
		return eval_text(c, text, sha);
	return call_error(c, STR(NO_SCRIPT));
}

/* ---- FCALL ---- */

enum status
cmd_fcall(struct call *c)
{
	struct eval e = { .reply = *c->reply, .db = c->db };
	struct libraries libs;
	struct library lib;
	int64_t keys;
	size_t at;

	TRY(libraries_of_call(c, &libs));
	TRY(library_of(&libs, c->argv[1], &lib, &at));
	if (!lib.name.ptr)
		return call_error(c, STR("ERR Function not found"));
	if (!str_to_i64(c->argv[2], &keys))
		return call_error(c, STR("ERR Bad number of keys provided"));
	TRY(eval_keys(c, &e));
	e.function = lib.functions[at].name;
	e.read_only = lib.functions[at].flags & LIBRARY_NO_WRITES;
	if (c->command->flags & COMMAND_READONLY && !e.read_only)
		return call_error(c, STR("ERR Can not execute a script with write flag using *_ro "
					 "command."));
	e.call = c;
	e.text = lib.code;
	eval_sha(lib.code, e.sha);
	e.script.random = c->script_seed;
	return eval_run(&e);
}

/* ---- What they say of themselves ---- */

bool
script_says_no_writes(struct redis *r, const struct command *command, const struct str *argv,
		      size_t argc, struct arena *arena)
{
	struct eval_flags flags = { 0 };
	struct err ignored = { 0 };
	struct str text = { 0 };
	char sha[EVAL_SHA_CHARS];

	if (argc < 2)
		return false;
	if (command->run == cmd_fcall)
		return library_says_no_writes(r->config.store, argv[1], arena);
	if (command->run == cmd_eval)
		text = argv[1];
	else if (command->run == cmd_evalsha)
		text = text_of_sha(r, argv[1], arena, sha);
	return text.ptr && shebang_read(text, &flags, &ignored) == STATUS_OK && flags.no_writes;
}

/* ---- SCRIPT ---- */

static enum status
script_load(struct call *c)
{
	struct eval e = { .compiles_only = true };
	enum status status;

	TRY(script_prepare(c, c->argv[2], NULL, &e));
	status = eval_run(&e);
	if (status != STATUS_OK) {
		error_reply_status(c->reply, status, &e.err);
		return STATUS_OK;
	}
	if (!e.is_sound)
		return STATUS_OK;
	TRY(eval_cache_add(c->redis->script_cache, e.sha, c->argv[2]));
	reply_bulk_cstr(c->reply, e.sha);
	return STATUS_OK;
}

static enum status
script_exists(struct call *c)
{
	char sha[EVAL_SHA_CHARS];

	reply_array(c->reply, c->argc - 2);
	for (size_t i = 2; i < c->argc; i++)
		reply_int(c->reply,
			  read_sha(c->argv[i], sha) &&
				  eval_cache_has(c->redis->script_cache, str_of(sha, sizeof(sha))));
	return STATUS_OK;
}

static enum status
script_flush(struct call *c)
{
	if (c->argc > 3 ||
	    (c->argc == 3 && !call_arg_is(c, 2, "sync") && !call_arg_is(c, 2, "async")))
		return call_error(c, STR("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
	eval_cache_clear(c->redis->script_cache);
	script_images_clear(c->redis->script_images);
	reply_ok(c->reply);
	return STATUS_OK;
}

enum status
cmd_script(struct call *c)
{
	static const char *const help[] = {
		"EXISTS <sha1> [<sha1> ...]",
		"    Return information about the existence of the scripts in the script cache.",
		"FLUSH [ASYNC|SYNC]",
		"    Flush the Lua scripts cache.",
		"KILL",
		"    Kill all scripts that are executing.",
		"LOAD <script>",
		"    Load a script into the scripts cache without executing it.",
	};

	if (call_arg_is(c, 1, "help") && c->argc == 2)
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	if (call_arg_is(c, 1, "load") && c->argc == 3)
		return script_load(c);
	if (call_arg_is(c, 1, "exists") && c->argc >= 3)
		return script_exists(c);
	if (call_arg_is(c, 1, "flush"))
		return script_flush(c);
	if (call_arg_is(c, 1, "kill") && c->argc == 2) {
		if (eval_kill_all(c->redis, false))
			reply_ok(c->reply);
		else
			return call_error(c, STR("NOTBUSY No scripts in execution right now."));
		return STATUS_OK;
	}
	if (call_arg_is(c, 1, "debug")) {
		if (call_arg_is(c, 2, "no"))
			reply_ok(c->reply);
		else
			return call_error(c, STR("ERR frond has no debugger of scripts"));
		return STATUS_OK;
	}
	return call_unknown_subcommand(c);
}
