#include "script_run.h"

#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/budget.h"
#include "lua/script.h"

enum {
	SLICES_MOST = 200,
};

struct run {
	struct script script; /* first */
	int slices;
	const char *text;
	struct str data;
};

/* The table on top of the stack gets a copy of Lua's own library of strings. */
static void
keep_plain_strings(lua_State *L)
{
	lua_newtable(L);
	lua_pushcfunction(L, luaopen_string);
	lua_pushliteral(L, "");
	lua_call(L, 1, 1);
	lua_pushnil(L);
	while (lua_next(L, -2)) {
		lua_pushvalue(L, -2);
		lua_insert(L, -2);
		lua_rawset(L, -5);
	}
	lua_pop(L, 1);
	lua_setglobal(L, "plain");
}

static int
run_body(lua_State *L)
{
	const struct run *run = lua_touserdata(L, 1);

	lua_settop(L, 0);
	keep_plain_strings(L);
	script_open_libs(L);
	lua_pushlstring(L, run->data.ptr, run->data.len);
	lua_setfield(L, -2, "D");
	script_protect_globals(L);
	if (luaL_loadstring(L, run->text) != 0)
		return lua_error(L);
	lua_call(L, 0, 0);
	return 0;
}

static void
run_failed(struct script *s)
{
	if (!s->lua)
		abort();
	if (lua_istable(s->lua, -1))
		lua_getfield(s->lua, -1, "err");
	fprintf(stderr, "script: %s\n", lua_tostring(s->lua, -1));
	abort();
}

static enum status
run_look(struct script *s)
{
	struct run *run = (struct run *)s;

	return ++run->slices < SLICES_MOST ? STATUS_OK : STATUS_CANCELLED;
}

static enum status
run_call(struct script *s)
{
	(void)s;
	abort(); /* no library wants one */
}

bool
script_run_with(const char *text, const uint8_t *data, size_t size)
{
	static const struct script_owner owner = {
		.body = run_body, .failed = run_failed, .look = run_look, .call = run_call
	};
	struct budget_part part = { .budget = NULL }; /* the memory is of no budget */
	struct run run = { .script.part = &part, .text = text, .data = str_of(data, size) };

	return script_run(&run.script, &owner) == STATUS_OK;
}
