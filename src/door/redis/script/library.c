#include "door/redis/script/library.h"

#include <ctype.h>
#include <stdlib.h>

#include "door/redis/script/eval.h"

/* In Lua's registry, which no script sees. */
#define REGISTRY_FUNCTIONS "frond functions" /* name → function */
#define REGISTRY_GLOBALS   "frond globals"   /* those that functions see when they are called */
#define REGISTRY_LEARNER   "frond learner"   /* while functions may be registered */

struct library_learner {
	struct script script; /* first */
	struct str code;
	struct arena *arena;
	struct library *library;
	size_t cap;
	enum status status; /* why it has failed */
	struct err *err;
};

/* ---- Flags ---- */

static const char *const flags[] = { "no-writes", "allow-oom", "allow-stale", "no-cluster",
				     "allow-cross-slot-keys" };

unsigned
library_flag(struct str name)
{
	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (str_eq_nocase(name, str_from_cstr(flags[i])))
			return 1u << i;
	return 0;
}

const char *
library_flag_name(unsigned at)
{
	return at < sizeof(flags) / sizeof(flags[0]) ? flags[at] : NULL;
}

/* ---- The first line ---- */

static bool
is_name(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!isalnum((unsigned char)s.ptr[i]) && s.ptr[i] != '_')
			return false;
	return s.len > 0 && s.len <= LIBRARY_NAME_BYTES;
}

#define NAME_RULE                                                                                  \
	"Library names can only contain letters, numbers, or underscores(_) and must be at least " \
	"one character long"

static size_t
head_bytes(struct str code)
{
	const char *end = code.len ? memchr(code.ptr, '\n', code.len) : NULL;

	return end ? (size_t)(end - code.ptr) : code.len;
}

/* Without the quotes around it. */
static struct str
unquoted(struct str s)
{
	if (s.len > 1 && (s.ptr[0] == '"' || s.ptr[0] == '\'') && s.ptr[s.len - 1] == s.ptr[0])
		return str_of(s.ptr + 1, s.len - 2);
	return s;
}

/* "#!lua name=mylib". */
static enum status
read_head(struct str code, struct str *ret_name, struct err *err)
{
	struct str line = str_of(code.ptr, head_bytes(code)), word;

	*ret_name = (struct str){ 0 };
	if (!str_starts_with(code, STR("#!")))
		return err_set(err, STATUS_INVALID, "Missing library metadata");
	if (line.len == code.len)
		return err_set(err, STATUS_INVALID, "Invalid library metadata");
	line = str_trim(line);
	word = str_cut(&line, ' ');
	if (!str_eq_nocase(word, STR("#!lua")))
		return err_set(err, STATUS_INVALID, "Engine '%.*s' not found",
			       (int)(word.len < CALL_SHOWN_BYTES ? word.len - 2 : CALL_SHOWN_BYTES),
			       word.ptr + 2);
	while (line.len) {
		word = str_cut(&line, ' ');
		if (!word.len)
			continue;
		if (word.len < 5 || !str_eq_nocase(str_of(word.ptr, 5), STR("name=")))
			return err_set(
				err, STATUS_INVALID, "Invalid metadata value given: %.*s",
				(int)(word.len < CALL_SHOWN_BYTES ? word.len : CALL_SHOWN_BYTES),
				word.ptr);
		if (ret_name->ptr)
			return err_set(err, STATUS_INVALID,
				       "Invalid metadata value, name argument was given multiple "
				       "times");
		*ret_name = unquoted(str_skip(word, 5));
	}
	if (!ret_name->ptr)
		return err_set(err, STATUS_INVALID, "Library name was not given");
	return is_name(*ret_name) ? STATUS_OK : err_set(err, STATUS_INVALID, "%s", NAME_RULE);
}

/* ---- redis.register_function ---- */

static _Noreturn void
refuse(lua_State *L, const char *text)
{
	eval_push_error(L, text);
	(void)lua_error(L);
	abort(); /* lua_error() does not return */
}

static struct str
text_at(lua_State *L, int index)
{
	return str_of(lua_tostring(L, index), lua_objlen(L, index));
}

/* The flags in the table on top of the stack. */
static bool
read_flags(lua_State *L, unsigned *ret)
{
	for (int i = 1;; i++) {
		unsigned flag;

		lua_rawgeti(L, -1, i);
		if (lua_isnil(L, -1)) {
			lua_pop(L, 1);
			return true;
		}
		flag = lua_type(L, -1) == LUA_TSTRING ? library_flag(text_at(L, -1)) : 0;
		lua_pop(L, 1);
		if (!flag)
			return false;
		*ret |= flag;
	}
}

/* One of the named arguments: its name lies below its value on the stack. */
static void
read_named(lua_State *L, struct library_function *ret)
{
	struct str key;

	if (lua_type(L, -2) != LUA_TSTRING)
		refuse(L, "named argument key given to redis.register_function is not a string");
	key = text_at(L, -2);
	if (str_eq_nocase(key, STR("function_name"))) {
		if (lua_type(L, -1) != LUA_TSTRING)
			refuse(L, "function_name argument given to redis.register_function must be "
				  "a string");
		ret->name = text_at(L, -1);
	} else if (str_eq_nocase(key, STR("description"))) {
		if (lua_type(L, -1) != LUA_TSTRING)
			refuse(L, "description argument given to redis.register_function must be a "
				  "string");
		ret->description = text_at(L, -1);
	} else if (str_eq_nocase(key, STR("callback"))) {
		if (!lua_isfunction(L, -1))
			refuse(L, "callback argument given to redis.register_function must be a "
				  "function");
		lua_pushvalue(L, -1);
		lua_replace(L, 2);
	} else if (str_eq_nocase(key, STR("flags"))) {
		if (!lua_istable(L, -1))
			refuse(L, "flags argument to redis.register_function must be a table "
				  "representing function flags");
		if (!read_flags(L, &ret->flags))
			refuse(L, "unknown flag given");
	} else {
		refuse(L, "unknown argument given to redis.register_function");
	}
}

/* Reads the arguments, and leaves the function at index 2 of the stack; texts are Lua's. */
static void
read_registered(lua_State *L, struct library_function *ret)
{
	*ret = (struct library_function){ 0 };
	if (lua_gettop(L) == 2) {
		if (lua_type(L, 1) != LUA_TSTRING)
			refuse(L, "first argument to redis.register_function must be a string");
		if (!lua_isfunction(L, 2))
			refuse(L, "second argument to redis.register_function must be a function");
		ret->name = text_at(L, 1);
		return;
	}
	if (lua_gettop(L) != 1)
		refuse(L, "wrong number of arguments to redis.register_function");
	if (!lua_istable(L, 1))
		refuse(L, "calling redis.register_function with a single argument is only "
			  "applicable to Lua table (representing named arguments).");
	lua_pushnil(L); /* the function's place */
	lua_pushnil(L);
	while (lua_next(L, 1)) {
		read_named(L, ret);
		lua_pop(L, 1);
	}
	if (!ret->name.ptr)
		refuse(L, "redis.register_function must get a function name argument");
	if (!lua_isfunction(L, 2))
		refuse(L, "redis.register_function must get a callback argument");
}

/* Adds it to the library that is learned. */
static void
learn_function(lua_State *L, struct library_learner *l, const struct library_function *f)
{
	struct library *lib = l->library;
	struct library_function *copy;

	if (lib->count == LIBRARY_FUNCTIONS)
		refuse(L, "a library has too many functions (LIBRARY_FUNCTIONS)");
	if (f->description.len > LIBRARY_DESCRIPTION_BYTES)
		refuse(L, "the description of a function is too long (LIBRARY_DESCRIPTION_BYTES)");
	if (arena_room(l->arena, &lib->functions, lib->count, &l->cap, sizeof(*copy)) != STATUS_OK)
		refuse(L, "there is no memory for the functions of a library");
	copy = &lib->functions[lib->count];
	*copy = *f;
	copy->name = arena_dup(l->arena, f->name);
	if (f->description.ptr)
		copy->description = arena_dup(l->arena, f->description);
	if (!copy->name.ptr || (f->description.ptr && !copy->description.ptr))
		refuse(L, "there is no memory for the functions of a library");
	lib->count++;
}

static int
register_function(lua_State *L)
{
	struct library_function f;
	void *learner;

	lua_getfield(L, LUA_REGISTRYINDEX, REGISTRY_LEARNER);
	if (lua_isnil(L, -1))
		refuse(L, "redis.register_function can only be called on FUNCTION LOAD command");
	learner = lua_touserdata(L, -1);
	lua_pop(L, 1);
	read_registered(L, &f);
	if (!is_name(f.name))
		refuse(L, NAME_RULE);
	lua_getfield(L, LUA_REGISTRYINDEX, REGISTRY_FUNCTIONS);
	lua_pushlstring(L, f.name.ptr, f.name.len);
	lua_rawget(L, -2);
	if (!lua_isnil(L, -1))
		refuse(L, "Function already exists in the library");
	lua_pop(L, 1);
	if (learner)
		learn_function(L, learner, &f);
	lua_pushlstring(L, f.name.ptr, f.name.len);
	lua_pushvalue(L, 2);
	lua_rawset(L, -3);
	return 0;
}

/* ---- Running bodies ---- */

void
library_open(lua_State *L, struct library_learner *learner)
{
	lua_pushlightuserdata(L, learner);
	lua_setfield(L, LUA_REGISTRYINDEX, REGISTRY_LEARNER);
	lua_newtable(L);
	lua_setfield(L, LUA_REGISTRYINDEX, REGISTRY_FUNCTIONS);
	script_open_libs(L);
	lua_pushcfunction(L, eval_pcall);
	lua_setfield(L, -2, "pcall");
	lua_setfield(L, LUA_REGISTRYINDEX, REGISTRY_GLOBALS);
	/* Bodies see nothing but this. */
	lua_newtable(L);
	eval_open_redis_to_load(L, register_function);
	lua_setfield(L, -2, "redis");
	script_close_strictly(L, "redis");
	script_protect_globals(L);
	lua_pushcfunction(L, eval_note_error);
}

int
library_run(lua_State *L, struct str code)
{
	int result = script_compile(L, str_skip(code, head_bytes(code)), "@user_function");

	return result ? result : script_pcall(L, 0, 0, 1);
}

void
library_close(lua_State *L)
{
	lua_pushnil(L);
	lua_setfield(L, LUA_REGISTRYINDEX, REGISTRY_LEARNER);
	lua_getfield(L, LUA_REGISTRYINDEX, REGISTRY_GLOBALS);
	eval_open_redis(L);
	lua_setfield(L, -2, "redis");
	script_close_library(L, "redis");
	script_replace_globals(L);
}

void
library_find(lua_State *L, struct str function)
{
	lua_getfield(L, LUA_REGISTRYINDEX, REGISTRY_FUNCTIONS);
	lua_pushlstring(L, function.ptr, function.len);
	lua_rawget(L, -2);
	lua_remove(L, -2);
}

/* ---- Learning ---- */

static int
learn_body(lua_State *L)
{
	struct library_learner *l = lua_touserdata(L, 1);
	int result;

	lua_settop(L, 0);
	library_open(L, l);
	result = library_run(L, l->code);
	if (result == 0)
		return 0;
	if (lua_istable(L, -1))
		lua_getfield(L, -1, "err");
	l->status = err_set(l->err, STATUS_INVALID, "Error %s: %.*s",
			    result == LUA_ERRSYNTAX ? "compiling function"
						    : "registering functions",
			    CALL_SHOWN_BYTES * 2,
			    lua_isstring(L, -1) ? lua_tostring(L, -1) : "execution failure");
	return 0;
}

static void
learn_failed(struct script *s)
{
	struct library_learner *l = (struct library_learner *)s;

	l->status = err_set(l->err, STATUS_INVALID,
			    "Error registering functions: the library needs more memory than a "
			    "script may use (SCRIPT_MEMORY_BYTES)");
}

static enum status
learn_look(struct script *s)
{
	struct library_learner *l = (struct library_learner *)s;

	switch (script_must_end(s)) {
	case SCRIPT_LACKS_MEMORY:
		return err_set(l->err, STATUS_NOMEM,
			       "there is no memory for the library (memory_bytes)");
	case SCRIPT_TOOK_LONG:
		return err_set(l->err, STATUS_INVALID,
			       "Error registering functions: FUNCTION LOAD timeout");
	case SCRIPT_KILLED:
	case SCRIPT_GOES_ON:
		break;
	}
	return STATUS_OK;
}

static enum status
learn_call(struct script *s)
{
	(void)s;
	abort(); /* nothing that a body can reach wants a call */
}

enum status
library_learn(struct str code, struct budget_part *part, struct arena *arena, struct library *ret,
	      struct err *err)
{
	static const struct script_owner owner = {
		.body = learn_body, .failed = learn_failed, .look = learn_look, .call = learn_call
	};
	struct library_learner l = {
		.script = { .part = part, .limit_ms = LIBRARY_LOAD_MS },
		.code = code,
		.arena = arena,
		.library = ret,
		.err = err,
	};

	*ret = (struct library){ .code = code };
	if (code.len > SCRIPT_BYTES)
		return err_set(err, STATUS_INVALID, "a library may have %d bytes (SCRIPT_BYTES)",
			       SCRIPT_BYTES);
	TRY(read_head(code, &ret->name, err));
	TRY(script_run(&l.script, &owner));
	TRY(l.status);
	return ret->count ? STATUS_OK : err_set(err, STATUS_INVALID, "No functions registered");
}
