#include "script_run.h"

#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/budget.h"
#include "door/redis/script/script.h"
#include "door/redis/txn/redis_int.h"
#include "loop/fiber.h"

enum {
	SLICES_MOST = 200,
};

struct run {
	struct script script;
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
run_main(void *arg)
{
	struct run *run = arg;
	lua_State *L = script_memory_open(&run->script);

	if (!L)
		abort();
	if (lua_cpcall(L, run_body, run) != 0) {
		if (lua_istable(L, -1))
			lua_getfield(L, -1, "err");
		fprintf(stderr, "script: %s\n", lua_tostring(L, -1));
		abort();
	}
}

bool
script_run_with(const char *text, const uint8_t *data, size_t size)
{
	/* Who asks for the script; the memory is of no budget. */
	struct budget_part part = { .budget = NULL };
	struct client client = { .part = &part };
	struct call call = { .client = &client };
	struct run run = {
		.script = { .call = &call,
			    .json = { .sparse_ratio = 2,
				      .sparse_safe = 10,
				      .encode_depth = SCRIPT_JSON_DEPTH,
				      .decode_depth = SCRIPT_JSON_DEPTH,
				      .precision = 14,
				      .decode_invalid = true } },
		.text = text,
		.data = str_of(data, size),
	};
	bool done = false;

	buf_init(&run.script.scratch, SCRIPT_MEMORY_BYTES);
	run.script.fiber = fiber_new_of(SCRIPT_STACK_BYTES);
	if (!run.script.fiber)
		abort();
	fiber_start(run.script.fiber, run_main, &run);
	for (int i = 0; i < SLICES_MOST && !done; i++)
		done = fiber_enter(run.script.fiber);
	fiber_abandon(run.script.fiber);
	script_memory_free(&run.script);
	buf_release(&run.script.scratch);
	return done;
}
