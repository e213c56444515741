/* What bodies and libraries of scripts use. On the script's stack. */
#include <stdlib.h>

#include "base/budget.h"
#include "loop/fiber.h"
#include "lua/script.h"

enum {
	SLICE_LEAST = 4, /* instructions of a slice, for the memory that there is */
};

struct script *
script_of(lua_State *L)
{
	void *ud;

	(void)lua_getallocf(L, &ud);
	return ud;
}

/*
 * Takes room for the stack of C, as deep as it is here; false if there is none. Its pages stay
 * until the script has ended, so the deepest place counts. Where a sanitizer keeps frames
 * elsewhere, nobody can tell.
 */
static bool
script_take_stack(struct script *s)
{
	size_t left = fiber_stack_left(s->fiber);
	size_t used = left < SCRIPT_STACK_BYTES ? SCRIPT_STACK_BYTES - left : 0;

	if (used <= s->stack_bytes)
		return true;
	used += SCRIPT_ROOM_BYTES - used % SCRIPT_ROOM_BYTES;
	if (!budget_use(s->part, used - s->stack_bytes))
		return false;
	s->stack_bytes = used;
	return true;
}

void
script_leave(struct script *s, enum script_want wants)
{
	s->wants = wants;
	if (!script_take_stack(s))
		s->lacks_memory = true; /* so it is not entered again */
	fiber_leave(s->fiber);
}

/*
 * How many instructions there are between two looks. One instruction may go through all memory that
 * the script has, such as a comparison of two strings or a collection of garbage; so the more there
 * is, the fewer they are.
 */
static int
script_slice(const struct script *s)
{
	size_t count = SCRIPT_SLICE_INSTRUCTIONS;

	if (s->bytes > SCRIPT_SLICE_BYTES)
		count = count * SCRIPT_SLICE_BYTES / s->bytes;
	if (count < SLICE_LEAST)
		count = SLICE_LEAST;
	return s->slice < (int)count ? s->slice : (int)count;
}

static void
script_hook(lua_State *L, lua_Debug *ar)
{
	struct script *s = script_of(L);

	(void)ar;
	script_leave(s, SCRIPT_WANTS_PAUSE);
	script_begin_slice(s);
}

void
script_begin_slice(struct script *s)
{
	s->slice_bytes = s->bytes;
	lua_sethook(s->running, script_hook, LUA_MASKCOUNT, script_slice(s));
}

/*
 * Each coroutine counts its own instructions. Where a slice is short, what the other one has left
 * of its own is not: so the slice ends here.
 */
void
script_run_thread(struct script *s, lua_State *thread)
{
	s->running = thread;
	if (!s->is_sliced || script_slice(s) == SCRIPT_SLICE_INSTRUCTIONS)
		return;
	script_leave(s, SCRIPT_WANTS_PAUSE);
	script_begin_slice(s);
}

int
script_pcall(lua_State *L, int args, int results, int handler)
{
	struct script *s = script_of(L);
	int code;

	s->running = L;
	s->is_sliced = true;
	script_begin_slice(s);
	code = lua_pcall(L, args, results, handler);
	s->is_sliced = false;
	lua_sethook(L, NULL, 0, 0);
	return code;
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

/* ---- Compiling ---- */

struct script_text {
	struct str rest;
	bool begun;
};

static const char *
script_read_text(lua_State *L, void *arg, size_t *ret_bytes)
{
	struct script_text *text = arg;
	const char *piece = text->rest.ptr;

	if (text->begun)
		script_leave(script_of(L), SCRIPT_WANTS_PAUSE);
	text->begun = true;
	*ret_bytes = text->rest.len < SCRIPT_READ_BYTES ? text->rest.len : SCRIPT_READ_BYTES;
	text->rest = str_skip(text->rest, *ret_bytes);
	return *ret_bytes ? piece : NULL;
}

int
script_compile(lua_State *L, struct str text, const char *name)
{
	struct script_text reading = { .rest = text };

	if (text.len && text.ptr[0] == LUA_SIGNATURE[0]) {
		lua_pushliteral(L, "compiled code cannot be loaded");
		return LUA_ERRSYNTAX;
	}
	return lua_load(L, script_read_text, &reading, name);
}

/* ---- Texts ---- */

struct buf *
script_scratch(lua_State *L)
{
	struct script *s = script_of(L);

	buf_clear(&s->scratch);
	return &s->scratch;
}

void
script_end_for_memory(struct script *s)
{
	s->lacks_memory = true;
	script_leave(s, SCRIPT_WANTS_PAUSE);
	abort(); /* script_must_end() says so of a script that lacks memory */
}

int
script_push_scratch(lua_State *L)
{
	struct script *s = script_of(L);
	const struct budget_part *part = s->scratch.part;

	if (buf_status(&s->scratch) == STATUS_LIMIT && (part->refused || part->exceeded))
		script_end_for_memory(s);
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
