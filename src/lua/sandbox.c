/* The sandbox: Lua's libraries without what reaches out of a script, and globals that stay. */
#include <lualib.h>
#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "lua/script.h"

#define READONLY "Attempt to modify a readonly table"
#define MARK     "frond readonly" /* in the metatable of a protected table: the one behind it */

enum {
	ELEMENTS_A_STEP = 16,    /* of a table that are moved or looked at */
	COLLECTOR_PERCENT = 200, /* what Lua says of its collector if nobody has tuned it */
	INSERT_BELOW = 8000,     /* a position of table.insert may be so far below the first one */
};

/* ---- Tables that cannot be changed ---- */

static int
lib_refuse_change(lua_State *L)
{
	return luaL_error(L, READONLY);
}

/* Puts a table that cannot be changed in the place of the one on top of the stack. */
static void
script_protect(lua_State *L)
{
	lua_newtable(L);          /* the table that scripts see */
	lua_createtable(L, 0, 4); /* its metatable */
	lua_pushvalue(L, -3);
	lua_setfield(L, -2, "__index");
	lua_pushcfunction(L, lib_refuse_change);
	lua_setfield(L, -2, "__newindex");
	lua_pushvalue(L, -3);
	lua_setfield(L, -2, MARK);
	/* getmetatable() gives one that cannot be changed either. */
	lua_newtable(L);
	lua_createtable(L, 0, 2);
	lua_pushcfunction(L, lib_refuse_change);
	lua_setfield(L, -2, "__newindex");
	lua_pushboolean(L, 1);
	lua_setfield(L, -2, MARK);
	lua_setmetatable(L, -2);
	lua_setfield(L, -2, "__metatable");
	lua_setmetatable(L, -2);
	lua_replace(L, -2);
}

void
script_close_library(lua_State *L, const char *name)
{
	lua_getfield(L, -1, name);
	script_protect(L);
	lua_setfield(L, -2, name);
}

static bool
lib_is_protected(lua_State *L, int index)
{
	bool is = false;

	if (lua_getmetatable(L, index)) {
		lua_pushliteral(L, MARK);
		lua_rawget(L, -2);
		is = lua_toboolean(L, -1);
		lua_pop(L, 2);
	}
	return is;
}

/* The __index of the globals: upvalue 1 has them. */
static int
lib_global(lua_State *L)
{
	lua_pushvalue(L, 2);
	lua_rawget(L, lua_upvalueindex(1));
	if (lua_isnil(L, -1))
		return luaL_error(L, "Script attempted to access nonexistent global variable '%s'",
				  lua_isstring(L, 2) ? lua_tostring(L, 2) : luaL_typename(L, 2));
	return 1;
}

void
script_close_strictly(lua_State *L, const char *name)
{
	lua_getfield(L, -1, name);
	lua_pushvalue(L, -1);
	script_protect(L);
	lua_getmetatable(L, -1);
	lua_pushvalue(L, -3);
	lua_pushcclosure(L, lib_global, 1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_setfield(L, -3, name);
	lua_pop(L, 1);
}

void
script_protect_globals(lua_State *L)
{
	int real = lua_gettop(L);

	lua_pushvalue(L, real);
	script_protect(L); /* the table that scripts see */
	lua_pushvalue(L, -1);
	lua_setfield(L, real, "_G");
	lua_getmetatable(L, -1);
	lua_pushvalue(L, real);
	lua_pushcclosure(L, lib_global, 1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_replace(L, LUA_GLOBALSINDEX);
	lua_pop(L, 1);
}

void
script_replace_globals(lua_State *L)
{
	int real = lua_gettop(L);

	lua_pushvalue(L, LUA_GLOBALSINDEX); /* the table that scripts see */
	lua_pushvalue(L, -1);
	lua_setfield(L, real, "_G");
	lua_getmetatable(L, -1);
	lua_pushvalue(L, real);
	lua_pushcclosure(L, lib_global, 1);
	lua_setfield(L, -2, "__index");
	lua_settop(L, real - 1);
}

/* ---- What replaces Lua's own ---- */

/* Calls what upvalue 1 is: Lua's own function. */
static int
lib_call_own(lua_State *L)
{
	int args = lua_gettop(L);

	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_call(L, args, LUA_MULTRET);
	return lua_gettop(L);
}

/* setmetatable, rawset */
static int
lib_change(lua_State *L)
{
	if (lua_gettop(L) && lib_is_protected(L, 1)) {
		lua_pushliteral(L, READONLY);
		return lua_error(L);
	}
	return lib_call_own(L);
}

static int
lib_loadstring(lua_State *L)
{
	size_t len;
	const char *text = luaL_checklstring(L, 1, &len);
	const char *name = luaL_optstring(L, 2, text);

	if (len > SCRIPT_BYTES) {
		lua_pushnil(L);
		lua_pushliteral(L, "the text is too long (SCRIPT_BYTES)");
		return 2;
	}
	if (script_compile(L, str_of(text, len), name) == 0)
		return 1;
	lua_pushnil(L);
	lua_insert(L, -2);
	return 2;
}

static int
lib_load(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TFUNCTION);
	lua_settop(L, 2);
	lua_pushliteral(L, "");
	for (;;) {
		size_t len;

		lua_pushvalue(L, 1);
		lua_call(L, 0, 1);
		if (lua_isnil(L, -1) || (lua_tolstring(L, -1, &len) && !len))
			break;
		if (!lua_isstring(L, -1))
			return luaL_error(L, "reader function must return a string");
		lua_concat(L, 2);
		if (lua_objlen(L, -1) > SCRIPT_BYTES)
			break;
	}
	lua_settop(L, 3);
	if (lua_isnil(L, 2)) {
		lua_pushliteral(L, "=(load)");
		lua_replace(L, 2);
	}
	lua_remove(L, 1);
	lua_insert(L, 1);
	return lib_loadstring(L);
}

/* A long text is refused before it is made. */
static int
lib_rep(lua_State *L)
{
	size_t len;

	(void)luaL_checklstring(L, 1, &len);
	if (luaL_checknumber(L, 2) > (lua_Number)(SCRIPT_MEMORY_BYTES / (len ? len : 1))) {
		if (len)
			return luaL_error(L, "the text needs more memory than a script may use "
					     "(SCRIPT_MEMORY_BYTES)");
		lua_settop(L, 1);
		return 1;
	}
	return lib_call_own(L);
}

/* ---- The collector ---- */

/*
 * What it does at once goes through all memory, so that counts. How eager it is stays as it is: it
 * would do all of it for each value that is made.
 */
static int
lib_collectgarbage(lua_State *L)
{
	static const char *const tunes[] = { "setpause", "setstepmul" };
	const char *what = luaL_optstring(L, 1, "collect");

	for (size_t i = 0; i < sizeof(tunes) / sizeof(tunes[0]); i++)
		if (strcmp(what, tunes[i]) == 0) {
			lua_pushinteger(L, COLLECTOR_PERCENT);
			return 1;
		}
	if (strcmp(what, "collect") == 0 || strcmp(what, "step") == 0)
		script_work(L, script_of(L)->bytes / SCRIPT_STEP_BYTES);
	return lib_call_own(L);
}

/* ---- Tables ---- */

/* table.concat, table.maxn: they go through the table. */
static int
lib_through_table(lua_State *L)
{
	if (lua_istable(L, 1))
		script_work(L, lua_objlen(L, 1) / ELEMENTS_A_STEP);
	return lib_call_own(L);
}

/*
 * unpack: Lua's own computes how many values that are as an int, and its check for an overflow is
 * one that compilers leave out. It would then write far behind the end of its stack.
 */
static int
lib_unpack(lua_State *L)
{
	lua_Integer first, last;

	luaL_checktype(L, 1, LUA_TTABLE);
	first = luaL_optint(L, 2, 1);
	last = lua_isnoneornil(L, 3) ? (lua_Integer)lua_objlen(L, 1) : luaL_checkint(L, 3);
	if (last - first >= LUAI_MAXCSTACK)
		return luaL_error(L, "too many results to unpack");
	return lib_call_own(L);
}

/*
 * table.insert with a position, upvalue 2 being 3, and table.remove, being 2. Lua moves what is
 * between the position and the end one by one, also where a table has nothing.
 */
static int
lib_shift_table(lua_State *L)
{
	luaL_argcheck(L, lua_gettop(L) != 3 || luaL_checkint(L, 2) > -INSERT_BELOW, 2,
		      "position out of bounds");
	if (lua_gettop(L) == lua_tointeger(L, lua_upvalueindex(2)) && lua_istable(L, 1))
		script_work(L, lua_objlen(L, 1) / ELEMENTS_A_STEP);
	return lib_call_own(L);
}

/* ---- table.sort: by functions that count ---- */

static int
lib_is_less(lua_State *L)
{
	size_t len = 0;

	if (lua_type(L, 1) == LUA_TSTRING && lua_type(L, 2) == LUA_TSTRING)
		len = lua_objlen(L, 1) < lua_objlen(L, 2) ? lua_objlen(L, 1) : lua_objlen(L, 2);
	script_work(L, 1 + len / SCRIPT_STEP_BYTES);
	lua_pushboolean(L, lua_lessthan(L, 1, 2));
	return 1;
}

/* By a function of C, which upvalue 1 is. */
static int
lib_is_less_by(lua_State *L)
{
	script_work(L, 1);
	return lib_call_own(L);
}

/* A function of Lua's counts its instructions anyway. */
static int
lib_sort(lua_State *L)
{
	if (lua_isnoneornil(L, 2)) {
		lua_settop(L, 1);
		lua_pushcfunction(L, lib_is_less);
	} else if (lua_iscfunction(L, 2)) {
		lua_settop(L, 2);
		lua_pushcclosure(L, lib_is_less_by, 1);
	}
	return lib_call_own(L);
}

/* ---- pairs ---- */

/* The same for tables that cannot be changed, of which it takes the one behind. */
static int
lib_next(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 2);
	if (lua_getmetatable(L, 1)) {
		lua_pushliteral(L, MARK);
		lua_rawget(L, -2);
		if (lua_istable(L, -1))
			lua_replace(L, 1);
		lua_settop(L, 2);
	}
	if (lua_next(L, 1))
		return 2;
	lua_pushnil(L);
	return 1;
}

/* Upvalue 1 is `next`. */
static int
lib_pairs(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_pushvalue(L, 1);
	lua_pushnil(L);
	return 3;
}

/* ---- Chance and time ---- */

/* The generator of lrand48(), as Redis has it. */
static int
lib_random(lua_State *L)
{
	struct script *s = script_of(L);
	lua_Number r, low = 1, high;

	s->random = (s->random * UINT64_C(0x5deece66d) + 11) & UINT64_C(0xffffffffffff);
	r = (lua_Number)((s->random >> 17) % INT32_MAX) / INT32_MAX;
	if (lua_gettop(L) == 0) {
		lua_pushnumber(L, r);
		return 1;
	}
	if (lua_gettop(L) > 2)
		return luaL_error(L, "wrong number of arguments");
	if (lua_gettop(L) == 2)
		low = luaL_checkint(L, 1);
	high = luaL_checkint(L, lua_gettop(L));
	luaL_argcheck(L, low <= high, lua_gettop(L), "interval is empty");
	lua_pushnumber(L, floor(r * (high - low + 1)) + low);
	return 1;
}

static int
lib_randomseed(lua_State *L)
{
	script_of(L)->random = ((uint64_t)(uint32_t)luaL_checkint(L, 1) << 16) + 0x330e;
	return 0;
}

static int
lib_clock(lua_State *L)
{
	lua_pushnumber(L, (lua_Number)(clock_mono_ns() - script_of(L)->began_ns) / 1e9);
	return 1;
}

/* ---- Opening ---- */

/* Puts `fn` into the table on top of the stack, with what was there before as its upvalue. */
static void
lib_wrap(lua_State *L, const char *name, lua_CFunction fn)
{
	lua_getfield(L, -1, name);
	lua_pushcclosure(L, fn, 1);
	lua_setfield(L, -2, name);
}

/* The same of a function that moves all of a table if it has so many arguments. */
static void
lib_wrap_shift(lua_State *L, const char *name, int args)
{
	lua_getfield(L, -1, name);
	lua_pushinteger(L, args);
	lua_pushcclosure(L, lib_shift_table, 2);
	lua_setfield(L, -2, name);
}

static void
lib_remove(lua_State *L, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		lua_pushnil(L);
		lua_setfield(L, -2, names[i]);
	}
}

static void
lib_open_lua(lua_State *L)
{
	static const lua_CFunction opens[] = { luaopen_base, luaopen_table, luaopen_string,
					       luaopen_math };

	for (size_t i = 0; i < sizeof(opens) / sizeof(opens[0]); i++) {
		lua_pushcfunction(L, opens[i]);
		lua_pushliteral(L, "");
		lua_call(L, 1, 0);
	}
}

static void
lib_mend(lua_State *L)
{
	lua_getfield(L, -1, "string");
	lib_wrap(L, "rep", lib_rep);
	script_mend_patterns(L);
	lua_pop(L, 1);
	lua_getfield(L, -1, "table");
	lib_wrap(L, "sort", lib_sort);
	lib_wrap(L, "concat", lib_through_table);
	lib_wrap(L, "maxn", lib_through_table);
	lib_wrap_shift(L, "insert", 3);
	lib_wrap_shift(L, "remove", 2);
	lua_pop(L, 1);
	lua_getfield(L, -1, "coroutine");
	script_mend_coroutines(L);
	lua_pop(L, 1);
	lib_wrap(L, "collectgarbage", lib_collectgarbage);
	lib_wrap(L, "unpack", lib_unpack);
}

/* Pushes a library, and puts it into the table below. */
static void
lib_add(lua_State *L, const char *name, void (*open)(lua_State *L))
{
	open(L);
	lua_setfield(L, -2, name);
}

void
script_open_libs(lua_State *L)
{
	/*
	 * newproxy() makes the only values that can have a finalizer, and Lua calls no hook while
	 * one runs: nothing could end it.
	 */
	static const char *const removed[] = { "dofile",  "loadfile", "print",
					       "require", "module",   "newproxy" };
	static const char *const closed[] = { "coroutine", "string", "math",     "table", "cjson",
					      "bit",       "os",     "cmsgpack", "struct" };
	static const luaL_Reg os[] = { { "clock", lib_clock }, { NULL, NULL } };

	lib_open_lua(L);
	luaL_register(L, "os", os);
	lua_pop(L, 1);
	lua_pushvalue(L, LUA_GLOBALSINDEX);
	lib_remove(L, removed, sizeof(removed) / sizeof(removed[0]));
	lua_pushcfunction(L, lib_loadstring);
	lua_setfield(L, -2, "loadstring");
	lua_pushcfunction(L, lib_load);
	lua_setfield(L, -2, "load");
	lua_pushcfunction(L, lib_next);
	lua_pushvalue(L, -1);
	lua_setfield(L, -3, "next");
	lua_pushcclosure(L, lib_pairs, 1);
	lua_setfield(L, -2, "pairs");
	lib_wrap(L, "setmetatable", lib_change);
	lib_wrap(L, "rawset", lib_change);
	lib_mend(L);
	lua_getfield(L, -1, "math");
	lua_pushcfunction(L, lib_random);
	lua_setfield(L, -2, "random");
	lua_pushcfunction(L, lib_randomseed);
	lua_setfield(L, -2, "randomseed");
	lua_pop(L, 1);
	lib_add(L, "cjson", script_open_json);
	lib_add(L, "bit", script_open_bit);
	lib_add(L, "cmsgpack", script_open_msgpack);
	lib_add(L, "struct", script_open_struct);
	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
		script_close_library(L, closed[i]);
}
