/*
 * The table `coroutine` of scripts. Its functions do what Lua's do, and also tell the script which
 * coroutine runs, because Lua counts the instructions of each one separately. Nothing may raise an
 * error between the two calls that tell it.
 */
#include "lua/script.h"

enum coroutine_status {
	COROUTINE_RUNNING,
	COROUTINE_SUSPENDED,
	COROUTINE_NORMAL, /* it has resumed another one */
	COROUTINE_DEAD,
};

static const char *const coroutine_names[] = { "running", "suspended", "normal", "dead" };

static enum coroutine_status
coroutine_status(lua_State *L, lua_State *co)
{
	lua_Debug ar;

	if (L == co)
		return COROUTINE_RUNNING;
	if (lua_status(co) == LUA_YIELD)
		return COROUTINE_SUSPENDED;
	if (lua_status(co) != 0)
		return COROUTINE_DEAD;
	if (lua_getstack(co, 0, &ar))
		return COROUTINE_NORMAL;
	return lua_gettop(co) == 0 ? COROUTINE_DEAD : COROUTINE_SUSPENDED;
}

/*
 * Takes `args` from the stack. True: its values are on the stack, and `*ret` is how many; false: an
 * error is.
 */
static bool
coroutine_resume(lua_State *L, lua_State *co, int args, int *ret)
{
	enum coroutine_status status = coroutine_status(L, co);
	struct script *s = script_of(L);
	int result;

	if (!lua_checkstack(co, args))
		return luaL_error(L, "too many arguments to resume");
	if (status != COROUTINE_SUSPENDED) {
		lua_pushfstring(L, "cannot resume %s coroutine", coroutine_names[status]);
		return false;
	}
	lua_xmove(L, co, args);
	lua_setlevel(L, co); /* its calls nest in those of this one, on one stack */
	script_run_thread(s, co);
	result = lua_resume(co, args);
	script_run_thread(s, L);
	if (result != 0 && result != LUA_YIELD) {
		lua_xmove(co, L, 1);
		return false;
	}
	*ret = lua_gettop(co);
	if (!lua_checkstack(L, *ret + 1))
		return luaL_error(L, "too many results to resume");
	lua_xmove(co, L, *ret);
	return true;
}

static lua_State *
coroutine_check(lua_State *L)
{
	lua_State *co = lua_tothread(L, 1);

	luaL_argcheck(L, co, 1, "coroutine expected");
	return co;
}

static int
coroutine_call_resume(lua_State *L)
{
	lua_State *co = coroutine_check(L);
	int count = 1;
	bool fine = coroutine_resume(L, co, lua_gettop(L) - 1, &count);

	lua_pushboolean(L, fine);
	lua_insert(L, -(count + 1));
	return count + 1;
}

/* What coroutine.wrap() has returned: upvalue 1 is the coroutine. */
static int
coroutine_call_wrapped(lua_State *L)
{
	lua_State *co = lua_tothread(L, lua_upvalueindex(1));
	int count;

	if (coroutine_resume(L, co, lua_gettop(L), &count))
		return count;
	if (lua_isstring(L, -1)) {
		luaL_where(L, 1);
		lua_insert(L, -2);
		lua_concat(L, 2);
	}
	return lua_error(L);
}

/* It counts its own instructions from 0, so making one ends a slice. */
static int
coroutine_create(lua_State *L)
{
	lua_State *co;

	luaL_argcheck(L, lua_isfunction(L, 1) && !lua_iscfunction(L, 1), 1,
		      "Lua function expected");
	script_work(L, SCRIPT_SLICE_INSTRUCTIONS);
	co = lua_newthread(L);
	lua_pushvalue(L, 1);
	lua_xmove(L, co, 1);
	return 1;
}

static int
coroutine_wrap(lua_State *L)
{
	(void)coroutine_create(L);
	lua_pushcclosure(L, coroutine_call_wrapped, 1);
	return 1;
}

void
script_mend_coroutines(lua_State *L)
{
	static const luaL_Reg own[] = { { "create", coroutine_create },
					{ "wrap", coroutine_wrap },
					{ "resume", coroutine_call_resume } };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		lua_pushcfunction(L, own[i].func);
		lua_setfield(L, -2, own[i].name);
	}
}
