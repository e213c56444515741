/* What every library of scripts uses. On the script's stack. */
#include "door/redis/script.h"
#include "loop/fiber.h"

struct script *
script_of(lua_State *L)
{
	void *ud;

	(void)lua_getallocf(L, &ud);
	return ud;
}

void
script_leave(struct script *s, enum script_want wants)
{
	s->wants = wants;
	fiber_leave(s->fiber);
}

void
script_work(lua_State *L, size_t steps)
{
	struct script *s = script_of(L);

	s->work += steps;
	if (s->work < SCRIPT_SLICE_INSTRUCTIONS)
		return;
	s->work = 0;
	script_leave(s, SCRIPT_WANTS_PAUSE);
}

void
script_push_error(lua_State *L, const char *text)
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
script_mark_told(lua_State *L)
{
	lua_pushboolean(L, true);
	lua_setfield(L, -2, TOLD_FIELD);
}

bool
script_error_is_told(lua_State *L)
{
	bool told;

	lua_pushliteral(L, TOLD_FIELD);
	lua_rawget(L, -2);
	told = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return told;
}

struct buf *
script_scratch(lua_State *L)
{
	struct script *s = script_of(L);

	buf_clear(&s->scratch);
	return &s->scratch;
}

int
script_push_scratch(lua_State *L)
{
	struct script *s = script_of(L);

	if (buf_status(&s->scratch) != STATUS_OK)
		return luaL_error(L, "the text needs more memory than a script may use "
				     "(SCRIPT_MEMORY_BYTES)");
	lua_pushlstring(L, s->scratch.ptr ? s->scratch.ptr : "", s->scratch.len);
	return 1;
}

void
script_new_library(lua_State *L, const luaL_Reg *functions, size_t count)
{
	lua_newtable(L);
	for (size_t i = 0; i < count; i++) {
		lua_pushcfunction(L, functions[i].func);
		lua_setfield(L, -2, functions[i].name);
	}
}
