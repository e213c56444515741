/* Errors as the scripts of Redis have them: tables with a text, `err`. */
#include "door/redis/script/eval.h"

void
eval_push_error(lua_State *L, const char *text)
{
	lua_createtable(L, 0, 3);
	if (text[0] != '-')
		lua_pushfstring(L, "ERR %s", text);
	else if (strchr(text, ' '))
		lua_pushstring(L, text + 1);
	else
		lua_pushfstring(L, "ERR %s", text + 1);
	lua_setfield(L, -2, "err");
}

/* As Redis calls it: a script can see the field. */
#define TOLD_FIELD "ignore_error_stats_update"

void
eval_mark_told(lua_State *L)
{
	lua_pushboolean(L, true);
	lua_setfield(L, -2, TOLD_FIELD);
}

bool
eval_error_is_told(lua_State *L)
{
	bool told;

	lua_pushliteral(L, TOLD_FIELD);
	lua_rawget(L, -2);
	told = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return told;
}

int
eval_pcall(lua_State *L)
{
	int args = lua_gettop(L);

	luaL_checkany(L, 1);
	lua_pushboolean(L, 1);
	lua_insert(L, 1);
	if (lua_pcall(L, args - 1, LUA_MULTRET, 0) == 0)
		return lua_gettop(L);
	lua_remove(L, 1);
	if (lua_istable(L, -1)) {
		lua_pushliteral(L, "err");
		lua_rawget(L, -2);
		if (lua_isstring(L, -1))
			lua_replace(L, -2);
		else
			lua_pop(L, 1);
	}
	lua_pushboolean(L, 0);
	lua_insert(L, -2);
	return 2;
}

int
eval_note_error(lua_State *L)
{
	lua_Debug ar;

	if (!lua_istable(L, 1)) {
		const char *text = lua_tostring(L, 1);

		lua_createtable(L, 0, 3);
		lua_pushfstring(L, "ERR %s", text ? text : luaL_typename(L, 1));
		lua_setfield(L, -2, "err");
		lua_replace(L, 1);
	}
	for (int level = 1; level <= 2; level++) {
		if (!lua_getstack(L, level, &ar) || !lua_getinfo(L, "Sl", &ar))
			break;
		if (strcmp(ar.what, "C") == 0 && level == 1)
			continue;
		lua_pushstring(L, ar.source);
		lua_setfield(L, 1, "source");
		lua_pushinteger(L, ar.currentline);
		lua_setfield(L, 1, "line");
		break;
	}
	lua_settop(L, 1);
	return 1;
}
