#include "door/redis/script/eval.h"

#include "base/clock.h"
#include "door/redis/script/library.h"
#include "door/redis/txn/redis_int.h"
#include "loop/step.h"

/* In Lua's registry, which no script sees. */
#define REGISTRY_GLOBALS "frond globals" /* those behind the table that scripts see */
#define REGISTRY_SCRIPT  "frond script"  /* the text as a function */

/* ---- On the script's stack ---- */

/* How errors call it: by its hash, or a function by its name. */
static struct str
eval_name(const struct eval *e)
{
	return e->function.ptr ? e->function : str_from_cstr(e->sha);
}

/* The same on Lua's stack. */
static const char *
eval_push_name(lua_State *L, const struct eval *e)
{
	struct str name = eval_name(e);

	lua_pushlstring(L, name.ptr, name.len);
	return lua_tostring(L, -1);
}

static void
eval_fail(struct eval *e, const char *text)
{
	reply_error(e->call->reply, str_from_cstr(text));
}

/* The error is on top of the stack. */
static void
eval_answer_error(lua_State *L, struct eval *e)
{
	const char *text, *source, *line, *name;

	if (!lua_istable(L, -1)) {
		text = lua_isstring(L, -1) ? lua_tostring(L, -1) : "execution failure";
		name = eval_push_name(L, e);
		lua_pushfstring(L, "ERR Error running script %s, %s", name, text);
		eval_fail(e, lua_tostring(L, -1));
		return;
	}
	e->call->told = eval_error_is_told(L);
	lua_pushliteral(L, "err");
	lua_rawget(L, -2);
	lua_pushliteral(L, "source");
	lua_rawget(L, -3);
	lua_pushliteral(L, "line");
	lua_rawget(L, -4);
	text = lua_tostring(L, -3);
	source = lua_tostring(L, -2);
	line = lua_tostring(L, -1);
	name = eval_push_name(L, e);
	if (source && line)
		lua_pushfstring(L, "%s script: %s, on %s:%s.", text ? text : "ERR", name, source,
				line);
	else
		lua_pushstring(L, text ? text : "ERR");
	eval_fail(e, lua_tostring(L, -1));
}

/* Runs what lies on top of the stack, with its arguments, and answers what that returns. */
static void
eval_run_top(lua_State *L, struct eval *e, int args)
{
	size_t from = e->reply.out->len;

	if (script_pcall(L, args, 1, 1) == 0) {
		eval_reply(L, e, 0);
		return;
	}
	e->reply.out->len = from;
	eval_answer_error(L, e);
}

static void
eval_push_array(lua_State *L, const struct str *elems, size_t count)
{
	lua_createtable(L, (int)count, 0);
	for (size_t i = 0; i < count; i++) {
		lua_pushlstring(L, elems[i].ptr, elems[i].len);
		lua_rawseti(L, -2, (int)i + 1);
	}
}

static int
eval_prepare(lua_State *L)
{
	struct eval *e = lua_touserdata(L, 1);
	struct str text = str_skip(e->text, e->flags.shebang_bytes);

	lua_settop(L, 0);
	script_open_libs(L);
	lua_pushcfunction(L, eval_pcall);
	lua_setfield(L, -2, "pcall");
	eval_open_redis(L);
	lua_setfield(L, -2, "redis");
	script_close_library(L, "redis");
	lua_pushvalue(L, -1);
	lua_setfield(L, LUA_REGISTRYINDEX, REGISTRY_GLOBALS);
	script_protect_globals(L);
	if (script_compile(L, text, "@user_script") != 0) {
		lua_pushfstring(L, "ERR Error compiling script (new function): %s",
				lua_tostring(L, -1));
		eval_fail(e, lua_tostring(L, -1));
		e->script.is_over = true;
		return 0;
	}
	lua_setfield(L, LUA_REGISTRYINDEX, REGISTRY_SCRIPT);
	return 0;
}

static int
eval_body(lua_State *L)
{
	struct eval *e = lua_touserdata(L, 1);

	e->is_sound = true;
	if (e->compiles_only)
		return 0;
	lua_settop(L, 0);
	lua_pushcfunction(L, eval_note_error);
	lua_getfield(L, LUA_REGISTRYINDEX, REGISTRY_GLOBALS);
	eval_push_array(L, e->keys, e->key_count);
	lua_setfield(L, -2, "KEYS");
	eval_push_array(L, e->args, e->arg_count);
	lua_setfield(L, -2, "ARGV");
	lua_pop(L, 1);
	lua_getfield(L, LUA_REGISTRYINDEX, REGISTRY_SCRIPT);
	eval_run_top(L, e, 0);
	return 0;
}

/* FCALL: the library's body registers its functions, as it has when it was loaded. */
static int
eval_function_prepare(lua_State *L)
{
	struct eval *e = lua_touserdata(L, 1);

	lua_settop(L, 0);
	library_open(L, NULL);
	if (library_run(L, e->text) != 0) {
		eval_answer_error(L, e);
		e->script.is_over = true;
		return 0;
	}
	library_close(L);
	return 0;
}

static int
eval_function_body(lua_State *L)
{
	struct eval *e = lua_touserdata(L, 1);

	lua_settop(L, 0);
	lua_pushcfunction(L, eval_note_error);
	library_find(L, e->function);
	eval_push_array(L, e->keys, e->key_count);
	eval_push_array(L, e->args, e->arg_count);
	eval_run_top(L, e, 2);
	return 0;
}

static void
eval_failed(struct script *s)
{
	struct eval *e = (struct eval *)s;

	if (e->reply.out)
		e->reply.out->len = e->reply_from;
	eval_fail(e, "ERR the script needs more memory than a script may use "
		     "(SCRIPT_MEMORY_BYTES)");
}

/* ---- On the fiber ---- */

static void
eval_enlist(struct eval *e)
{
	struct redis *r = e->call->redis;

	pthread_mutex_lock(&r->scripts_lock);
	e->next = r->scripts;
	e->link = &r->scripts;
	if (e->next)
		e->next->link = &e->next;
	r->scripts = e;
	pthread_mutex_unlock(&r->scripts_lock);
}

static void
eval_delist(struct eval *e)
{
	struct redis *r = e->call->redis;

	pthread_mutex_lock(&r->scripts_lock);
	*e->link = e->next;
	if (e->next)
		e->next->link = e->link;
	pthread_mutex_unlock(&r->scripts_lock);
}

bool
eval_kill_all(struct redis *r, bool functions)
{
	bool any = false;

	pthread_mutex_lock(&r->scripts_lock);
	for (struct eval *e = r->scripts; e; e = e->next)
		if (functions == (e->function.ptr != NULL)) {
			atomic_store(&e->script.killed, true);
			any = true;
		}
	pthread_mutex_unlock(&r->scripts_lock);
	return any;
}

bool
eval_tell_function(struct redis *r, struct reply *reply)
{
	struct eval *e;

	pthread_mutex_lock(&r->scripts_lock);
	for (e = r->scripts; e && !e->function.ptr; e = e->next)
		;
	if (e) {
		reply_map(reply, 3);
		reply_bulk_cstr(reply, "name");
		reply_bulk(reply, e->function);
		reply_bulk_cstr(reply, "command");
		reply_array(reply, e->call->argc);
		for (size_t i = 0; i < e->call->argc; i++)
			reply_bulk(reply, e->call->argv[i]);
		reply_bulk_cstr(reply, "duration_ms");
		reply_int(reply, (int64_t)((clock_mono_ns() - e->began_ns) / CLOCK_NS_PER_MS));
	}
	pthread_mutex_unlock(&r->scripts_lock);
	return e;
}

/* The status of a script that was ended from outside, in this attempt or in one before. */
static enum status
eval_ended(struct eval *e)
{
	struct err *err = e->call->x ? e->call->x->err : &e->err;

	if (e->call->script_end == EVAL_KILLED)
		return err_set(err, STATUS_CANCELLED,
			       "Script killed by user with SCRIPT KILL; nothing of it has "
			       "happened. script: %.*s",
			       STR_ARG(eval_name(e)));
	return err_set(err, STATUS_CANCELLED,
		       "the script has run for longer than %llu ms (lua-time-limit); "
		       "nothing of it has happened. script: %.*s",
		       (unsigned long long)e->script.limit_ms, STR_ARG(eval_name(e)));
}

/*
 * Looks whether the script must not go on. Then its transaction fails, so that nothing of it
 * happens. It may be run again, alone: that it is over stays known.
 */
static enum status
eval_look(struct script *s)
{
	struct eval *e = (struct eval *)s;

	switch (script_must_end(s)) {
	case SCRIPT_GOES_ON:
		break;
	case SCRIPT_KILLED:
		e->call->script_end = EVAL_KILLED;
		return eval_ended(e);
	case SCRIPT_TOOK_LONG:
		e->call->script_end = EVAL_TOOK_LONG;
		return eval_ended(e);
	case SCRIPT_LACKS_MEMORY:
		/* Not kept in the call: alone, or when others have ended, there may be room. */
		return err_set(e->call->x ? e->call->x->err : &e->err, STATUS_NOMEM,
			       "there is no memory for the script (memory_bytes); nothing of it "
			       "has happened. script: %.*s",
			       STR_ARG(eval_name(e)));
	}
	return STATUS_OK;
}

static enum status
eval_serve_call(struct script *s)
{
	struct eval *e = (struct eval *)s;
	uint64_t began_ns = clock_mono_ns();

	step_unit();
	buf_clear(&e->answer);
	if (e->inner.command->flags & COMMAND_WRITE &&
	    run_lanes(e->inner.command, e->inner.argv, e->inner.argc, e->db, e->call->arena) &
		    ~e->call->lanes) {
		e->call->strays = true;
		return STATUS_CANCELLED;
	}
	TRY(command_run(&e->inner));
	if (e->inner.client->tracker)
		tracking_note(&e->inner);
	e->reads |= (e->inner.command->flags & COMMAND_READONLY) != 0;
	e->db = e->inner.db;
	TRY(buf_status(&e->answer));
	return txn_called(&e->inner, buf_str(&e->answer), clock_mono_ns() - began_ns, false);
}

enum status
eval_run(struct eval *e)
{
	static const struct script_owner owners[] = {
		{ eval_prepare, eval_body, eval_failed, eval_look, eval_serve_call },
		{ eval_function_prepare, eval_function_body, eval_failed, eval_look,
		  eval_serve_call },
	};
	struct call *c = e->call;
	enum status status;

	e->resp = 2;
	e->began_ns = clock_mono_ns();
	/* A text of either kind could be one of the other as well. */
	memcpy(e->image_key, e->sha, EVAL_SHA_CHARS);
	e->image_key[EVAL_SHA_CHARS] = e->function.ptr ? 'f' : 's';
	e->script.key = str_of(e->image_key, sizeof(e->image_key));
	e->script.images = c->redis->script_images;
	e->reply_from = e->reply.out ? e->reply.out->len : 0;
	e->answer = BUF_INIT_OF(SCRIPT_MEMORY_BYTES, c->client->part);
	e->script.part = c->client->part;
	e->script.limit_ms = atomic_load_explicit(&c->redis->script_ms, memory_order_relaxed);
	if (c->script_end != EVAL_GOES_ON)
		return eval_ended(e);
	eval_enlist(e);
	status = script_run(&e->script, &owners[e->function.ptr != NULL]);
	eval_delist(e);
	buf_release(&e->answer);
	/* What a client makes of a script's answer may hang on each key that it has named. */
	if (status == STATUS_OK && e->reads && c->client->tracker)
		tracking_note_keys(c, e->keys, e->key_count);
	return status;
}
