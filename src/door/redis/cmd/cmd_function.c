/* FUNCTION: libraries of functions. FCALL is in cmd_script.c. */
#include "door/redis/cmd/commands.h"
#include "door/redis/script/eval.h"
#include "door/redis/script/library.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/wire/glob.h"
#include "rdb/rdb.h"

enum {
	PAYLOAD_BYTES = 512 * 1024 * 1024,
};

/* What a status of library.h's means to the client; others are the transaction's. */
static enum status
function_fail(struct call *c, enum status status, const struct err *err)
{
	if (status == STATUS_INVALID || status == STATUS_EXISTS || status == STATUS_LIMIT)
		return call_errorf(c, "ERR %s", err->text[0] ? err->text : "the limit of memory");
	return status == STATUS_OK ? STATUS_OK : err_set(c->x->err, status, "%s", err->text);
}

/* ---- Loading ---- */

static enum status
function_load(struct call *c)
{
	enum library_policy policy = LIBRARY_ADD;
	struct libraries there;
	struct err err = { 0 };
	struct library lib, old;
	enum status status;
	size_t at;

	for (at = 2; at + 1 < c->argc; at++) {
		if (!call_arg_is(c, at, "replace"))
			return call_errorf(c, "ERR Unknown option given: %.*s",
					   (int)(c->argv[at].len < CALL_SHOWN_BYTES
							 ? c->argv[at].len
							 : CALL_SHOWN_BYTES),
					   c->argv[at].ptr);
		policy = LIBRARY_REPLACE;
	}
	status = library_learn(c->argv[at], c->client->part, c->arena, &lib, &err);
	TRY(libraries_of_call(c, &there));
	if (status == STATUS_OK && policy == LIBRARY_ADD) {
		TRY(library_get(&there, lib.name, &old));
		if (old.name.ptr)
			return call_errorf(c, "ERR Library '%.*s' already exists",
					   STR_ARG(lib.name));
	}
	if (status == STATUS_OK)
		status = library_check(&there, &lib, 1, policy, &err);
	if (status != STATUS_OK)
		return function_fail(c, status, &err);
	TRY(libraries_to_write(c, &there));
	TRY(library_write(&there, &lib, 1, policy));
	reply_bulk(c->reply, lib.name);
	return STATUS_OK;
}

static enum status
function_delete(struct call *c)
{
	struct libraries libs;
	enum status status;

	TRY(libraries_of_call(c, &libs));
	status = library_delete(&libs, c->argv[2]);
	if (status == STATUS_NOT_FOUND)
		return call_error(c, STR("ERR Library not found"));
	TRY(status);
	reply_ok(c->reply);
	return STATUS_OK;
}

static enum status
function_flush(struct call *c)
{
	struct libraries libs;

	if (c->argc > 3)
		return call_unknown_subcommand(c);
	if (c->argc == 3 && !call_arg_is(c, 2, "sync") && !call_arg_is(c, 2, "async"))
		return call_error(c, STR("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
	TRY(libraries_of_call(c, &libs));
	TRY(library_flush(&libs));
	reply_ok(c->reply);
	return STATUS_OK;
}

/* ---- Telling ---- */

static void
reply_function(struct call *c, const struct library_function *f)
{
	reply_map(c->reply, 3);
	reply_bulk_cstr(c->reply, "name");
	reply_bulk(c->reply, f->name);
	reply_bulk_cstr(c->reply, "description");
	if (f->description.ptr)
		reply_bulk(c->reply, f->description);
	else
		reply_null(c->reply);
	reply_bulk_cstr(c->reply, "flags");
	reply_set(c->reply, (size_t)__builtin_popcount(f->flags));
	for (unsigned i = 0; library_flag_name(i); i++)
		if (f->flags & 1u << i)
			reply_simple(c->reply, library_flag_name(i));
}

static void
reply_library(struct call *c, const struct library *lib, bool with_code)
{
	reply_map(c->reply, with_code ? 4 : 3);
	reply_bulk_cstr(c->reply, "library_name");
	reply_bulk(c->reply, lib->name);
	reply_bulk_cstr(c->reply, "engine");
	reply_bulk_cstr(c->reply, "LUA");
	reply_bulk_cstr(c->reply, "functions");
	reply_array(c->reply, lib->count);
	for (size_t i = 0; i < lib->count; i++)
		reply_function(c, &lib->functions[i]);
	if (with_code) {
		reply_bulk_cstr(c->reply, "library_code");
		reply_bulk(c->reply, lib->code);
	}
}

static enum status
function_list(struct call *c)
{
	struct str pattern = { 0 };
	bool with_code = false;
	struct libraries there;
	struct library *libs;
	size_t count, told = 0, place;

	for (size_t i = 2; i < c->argc; i++) {
		if (!with_code && call_arg_is(c, i, "withcode")) {
			with_code = true;
		} else if (!pattern.ptr && call_arg_is(c, i, "libraryname")) {
			if (++i == c->argc)
				return call_error(c, STR("ERR library name argument was not "
							 "given"));
			pattern = c->argv[i];
		} else {
			return call_errorf(c, "ERR Unknown argument %.*s",
					   (int)(c->argv[i].len < CALL_SHOWN_BYTES
							 ? c->argv[i].len
							 : CALL_SHOWN_BYTES),
					   c->argv[i].ptr);
		}
	}
	TRY(libraries_of_call(c, &there));
	TRY(library_all(&there, &libs, &count));
	place = reply_later(c->reply);
	for (size_t i = 0; i < count; i++) {
		if (pattern.ptr && !glob_matches(pattern, libs[i].name, true))
			continue;
		reply_library(c, &libs[i], with_code);
		told++;
	}
	reply_later_end(c->reply, place, '*', told);
	return STATUS_OK;
}

static enum status
function_stats(struct call *c)
{
	uint64_t libraries, functions;
	struct libraries there;

	TRY(libraries_of_call(c, &there));
	TRY(library_counts(&there, &libraries, &functions));
	reply_map(c->reply, 2);
	reply_bulk_cstr(c->reply, "running_script");
	if (!eval_tell_function(c->redis, c->reply))
		reply_null(c->reply);
	reply_bulk_cstr(c->reply, "engines");
	reply_map(c->reply, 1);
	reply_bulk_cstr(c->reply, "LUA");
	reply_map(c->reply, 2);
	reply_bulk_cstr(c->reply, "libraries_count");
	reply_int(c->reply, (int64_t)libraries);
	reply_bulk_cstr(c->reply, "functions_count");
	reply_int(c->reply, (int64_t)functions);
	return STATUS_OK;
}

static enum status
function_kill(struct call *c)
{
	if (!eval_kill_all(c->redis, true))
		return call_error(c, STR("NOTBUSY No scripts in execution right now."));
	reply_ok(c->reply);
	return STATUS_OK;
}

/* ---- Payloads ---- */

static enum status
function_dump(struct call *c)
{
	struct buf AUTO(buf_release) payload = BUF_INIT_OF(PAYLOAD_BYTES, arena_part(c->arena));
	struct libraries there;
	struct library *libs;
	size_t count;

	TRY(libraries_of_call(c, &there));
	TRY(library_all(&there, &libs, &count));
	for (size_t i = 0; i < count; i++) {
		buf_append_byte(&payload, RDB_FUNCTION);
		rdb_put_string(&payload, libs[i].code);
	}
	rdb_put_footer(&payload, 0, RDB_VERSION);
	TRY(buf_status(&payload));
	reply_bulk(c->reply, buf_str(&payload));
	return STATUS_OK;
}

/* The libraries of a payload, each of which is run once. */
static enum status
restore_read(struct call *c, struct str payload, struct library **ret, size_t *ret_count,
	     struct err *err)
{
	struct rdb_input in = { .rest = payload, .arena = c->arena, .err = err };
	size_t cap = 0;

	*ret = NULL;
	*ret_count = 0;
	while (in.rest.len) {
		struct str code;

		if ((uint8_t)*in.rest.ptr != RDB_FUNCTION)
			return err_set(err, STATUS_INVALID, "given type is not a function");
		in.rest = str_skip(in.rest, 1);
		if (rdb_read_string(&in, &code) != STATUS_OK)
			return err_set(err, STATUS_INVALID,
				       "failed loading the given functions payload");
		if (*ret_count == LIBRARY_COUNT)
			return err_set(err, STATUS_LIMIT,
				       "there can be %d libraries (LIBRARY_COUNT)", LIBRARY_COUNT);
		TRY(arena_room(c->arena, ret, *ret_count, &cap, sizeof(**ret)));
		TRY(library_learn(code, c->client->part, c->arena, &(*ret)[*ret_count], err));
		++*ret_count;
	}
	return STATUS_OK;
}

static enum status
function_restore(struct call *c)
{
	static const char *const policies[] = { "append", "replace", "flush" };
	enum library_policy policy = LIBRARY_ADD;
	struct libraries there;
	struct err err = { 0 };
	struct library *libs;
	struct str payload;
	enum status status;
	size_t count;

	if (c->argc > 4)
		return call_unknown_subcommand(c);
	while (c->argc == 4 && !call_arg_is(c, 3, policies[policy]))
		if (++policy > LIBRARY_FLUSH)
			return call_error(c, STR("ERR Wrong restore policy given, value should be "
						 "either FLUSH, APPEND or REPLACE."));
	if (!rdb_payload_is_sound(c->argv[2], &payload))
		return call_error(c, STR("ERR DUMP payload version or checksum are wrong"));
	status = restore_read(c, payload, &libs, &count, &err);
	TRY(libraries_of_call(c, &there));
	if (status == STATUS_OK)
		status = library_check(&there, libs, count, policy, &err);
	if (status != STATUS_OK)
		return function_fail(c, status, &err);
	TRY(libraries_to_write(c, &there));
	TRY(library_write(&there, libs, count, policy));
	reply_ok(c->reply);
	return STATUS_OK;
}

/* ---- The command ---- */

enum status
cmd_function(struct call *c)
{
	static const char *const help[] = {
		"DELETE <library>",
		"    Delete the library and its functions.",
		"DUMP",
		"    Return all libraries as a payload for RESTORE.",
		"FLUSH [ASYNC|SYNC]",
		"    Delete all libraries.",
		"KILL",
		"    End the functions that run now.",
		"LIST [LIBRARYNAME <pattern>] [WITHCODE]",
		"    Return the libraries and their functions.",
		"LOAD [REPLACE] <code>",
		"    Create a library out of its code.",
		"RESTORE <payload> [FLUSH|APPEND|REPLACE]",
		"    Create the libraries of a payload, together with those that are there, in the",
		"    place of those with the same names, or of all of them.",
		"STATS",
		"    Return the function that runs now, and how many there are.",
	};
	static const struct {
		const char *name;
		enum status (*run)(struct call *c);
		size_t argc; /* at least */
	} subcommands[] = {
		{ "delete", function_delete, 3 },   { "dump", function_dump, 2 },
		{ "flush", function_flush, 2 },     { "kill", function_kill, 2 },
		{ "list", function_list, 2 },       { "load", function_load, 3 },
		{ "restore", function_restore, 3 }, { "stats", function_stats, 2 },
	};

	if (call_arg_is(c, 1, "help") && c->argc == 2)
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++)
		if (call_arg_is(c, 1, subcommands[i].name) && c->argc >= subcommands[i].argc)
			return subcommands[i].run(c);
	return call_unknown_subcommand(c);
}
