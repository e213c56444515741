#include "door/redis/script/script.h"

#include <assert.h>

#include "base/clock.h"
#include "door/redis/txn/redis_int.h"
#include "loop/fiber.h"
#include "loop/step.h"

enum {
	SLICE_STEPS = SCRIPT_SLICE_INSTRUCTIONS / 8, /* that a slice costs */
};

/* A slice that took longer is too long for others; the next one has half of its instructions. */
#define SLICE_NS (STEP_SLICE_NS / 2)

/* ---- On the script's stack ---- */

/* What an error becomes where it is raised: {err=, source=, line=}. */
static int
script_note_error(lua_State *L)
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

static void
script_set_array(lua_State *L, const char *name, const struct str *elems, size_t count)
{
	lua_createtable(L, (int)count, 0);
	for (size_t i = 0; i < count; i++) {
		lua_pushlstring(L, elems[i].ptr, elems[i].len);
		lua_rawseti(L, -2, (int)i + 1);
	}
	lua_setfield(L, -2, name);
}

static void
script_fail(struct script *s, const char *text)
{
	reply_error(s->call->reply, str_from_cstr(text));
}

/* The error is on top of the stack. */
static void
script_answer_error(lua_State *L, struct script *s)
{
	const char *text, *source, *line;

	if (!lua_istable(L, -1)) {
		lua_pushfstring(L, "ERR Error running script %s, %s", s->sha,
				lua_isstring(L, -1) ? lua_tostring(L, -1) : "execution failure");
		script_fail(s, lua_tostring(L, -1));
		return;
	}
	s->call->told = script_error_is_told(L);
	lua_pushliteral(L, "err");
	lua_rawget(L, -2);
	lua_pushliteral(L, "source");
	lua_rawget(L, -3);
	lua_pushliteral(L, "line");
	lua_rawget(L, -4);
	text = lua_tostring(L, -3);
	source = lua_tostring(L, -2);
	line = lua_tostring(L, -1);
	if (source && line)
		lua_pushfstring(L, "%s script: %s, on %s:%s.", text ? text : "ERR", s->sha, source,
				line);
	else
		lua_pushstring(L, text ? text : "ERR");
	script_fail(s, lua_tostring(L, -1));
}

static int
script_body(lua_State *L)
{
	struct script *s = lua_touserdata(L, 1);
	struct str text = str_skip(s->text, s->flags.shebang_bytes);
	bool failed;
	size_t from;

	s->running = L;
	lua_settop(L, 0);
	script_open_libs(L);
	script_set_array(L, "KEYS", s->keys, s->key_count);
	script_set_array(L, "ARGV", s->args, s->arg_count);
	script_protect_globals(L);
	lua_pushcfunction(L, script_note_error);
	if (script_compile(L, text, "@user_script") != 0) {
		lua_pushfstring(L, "ERR Error compiling script (new function): %s",
				lua_tostring(L, -1));
		script_fail(s, lua_tostring(L, -1));
		return 0;
	}
	s->is_sound = true;
	if (s->compiles_only)
		return 0;
	from = s->reply.out->len;
	s->is_sliced = true;
	script_begin_slice(s);
	failed = lua_pcall(L, 0, 1, 1) != 0;
	s->is_sliced = false;
	lua_sethook(L, NULL, 0, 0);
	if (failed) {
		s->reply.out->len = from;
		script_answer_error(L, s);
		return 0;
	}
	script_reply(L, s, 0);
	return 0;
}

static void
script_main(void *arg)
{
	struct script *s = arg;
	size_t from = s->reply.out ? s->reply.out->len : 0;

	s->lua = script_memory_open(s);
	if (s->lua && lua_cpcall(s->lua, script_body, s) == 0)
		return;
	if (s->reply.out)
		s->reply.out->len = from;
	script_fail(s, "ERR the script needs more memory than a script may use "
		       "(SCRIPT_MEMORY_BYTES)");
}

/* ---- On the fiber ---- */

static void
script_enlist(struct script *s)
{
	struct redis *r = s->call->redis;

	pthread_mutex_lock(&r->scripts_lock);
	s->next = r->scripts;
	s->link = &r->scripts;
	if (s->next)
		s->next->link = &s->next;
	r->scripts = s;
	pthread_mutex_unlock(&r->scripts_lock);
}

static void
script_delist(struct script *s)
{
	struct redis *r = s->call->redis;

	pthread_mutex_lock(&r->scripts_lock);
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	pthread_mutex_unlock(&r->scripts_lock);
}

bool
script_kill_all(struct redis *r)
{
	bool any;

	pthread_mutex_lock(&r->scripts_lock);
	any = r->scripts;
	for (struct script *s = r->scripts; s; s = s->next)
		atomic_store(&s->killed, true);
	pthread_mutex_unlock(&r->scripts_lock);
	return any;
}

/*
 * True if the script has used up its time: that is what the processor has done for it and for its
 * commands, so that it makes no difference what else the machine does. The clock on the wall is
 * the cheaper one, and never behind.
 */
static bool
script_took_long(struct script *s)
{
	uint64_t limit_ns = s->limit_ms * CLOCK_NS_PER_MS, now, used;

	if (!s->limit_ms)
		return false;
	now = clock_mono_ns();
	if (now <= s->look_ns)
		return false;
	used = step_cpu_ns();
	if (used > limit_ns)
		return true;
	s->look_ns = now + (limit_ns - used);
	return false;
}

/*
 * Looks whether the script must not go on. Then its transaction fails, so that nothing of it
 * happens. It may be run again, alone: that it is over stays known.
 */
static enum status
script_look(struct script *s)
{
	struct call *c = s->call;
	struct err *err = c->x ? c->x->err : &s->err;

	/* Not kept in the call: alone, or when others have ended, there may be room. */
	if (s->lacks_memory)
		return err_set(err, STATUS_NOMEM,
			       "there is no memory for the script (memory_bytes); nothing of it "
			       "has happened. script: %s",
			       s->sha);
	if (c->script_end == SCRIPT_GOES_ON) {
		if (atomic_load_explicit(&s->killed, memory_order_relaxed))
			c->script_end = SCRIPT_KILLED;
		else if (script_took_long(s))
			c->script_end = SCRIPT_TOOK_LONG;
	}
	switch (c->script_end) {
	case SCRIPT_GOES_ON:
		break;
	case SCRIPT_KILLED:
		return err_set(err, STATUS_CANCELLED,
			       "Script killed by user with SCRIPT KILL; nothing of it has "
			       "happened. script: %s",
			       s->sha);
	case SCRIPT_TOOK_LONG:
		return err_set(err, STATUS_CANCELLED,
			       "the script has run for longer than %llu ms (lua-time-limit); "
			       "nothing of it has happened. script: %s",
			       (unsigned long long)s->limit_ms, s->sha);
	}
	return STATUS_OK;
}

static enum status
script_serve_call(struct script *s)
{
	uint64_t began_ns = clock_mono_ns();

	step_unit();
	buf_clear(&s->answer);
	if (s->inner.command->flags & COMMAND_WRITE &&
	    run_lanes(s->inner.command, s->inner.argv, s->inner.argc, s->db, s->call->arena) &
		    ~s->call->lanes) {
		s->call->strays = true;
		return STATUS_CANCELLED;
	}
	TRY(command_run(&s->inner));
	s->db = s->inner.db;
	TRY(buf_status(&s->answer));
	return txn_called(&s->inner, buf_str(&s->answer), clock_mono_ns() - began_ns, false);
}

/* Others have their turn. STATUS_CANCELLED: nobody waits for the script any more. */
static enum status
script_pause(void)
{
	step_pause(SLICE_STEPS);
	return step_ask();
}

/*
 * What an instruction costs is only known afterwards, such as one that looks for a string among
 * others of the same hash: so slices get shorter where they take long.
 */
static void
script_adapt(struct script *s, uint64_t took_ns)
{
	if (took_ns > SLICE_NS)
		s->slice = s->slice > 1 ? s->slice / 2 : 1;
	else if (took_ns < SLICE_NS / 4)
		s->slice = 2 * s->slice < SCRIPT_SLICE_INSTRUCTIONS ? 2 * s->slice
								    : SCRIPT_SLICE_INSTRUCTIONS;
}

static enum status
script_drive(struct script *s)
{
	uint64_t entered_ns = clock_mono_ns();

	while (!fiber_enter(s->fiber)) {
		TRY(script_look(s));
		if (s->wants == SCRIPT_WANTS_CALL) {
			TRY(script_serve_call(s));
		} else {
			script_adapt(s, clock_mono_ns() - entered_ns);
			TRY(script_pause());
		}
		entered_ns = clock_mono_ns();
	}
	return STATUS_OK;
}

static void
script_fini(struct script *s)
{
	fiber_abandon(s->fiber);
	script_memory_free(s);
	buf_release(&s->scratch);
	buf_release(&s->answer);
}

enum status
script_run(struct script *s)
{
	enum status status;

	s->json = (struct script_json){ .sparse_ratio = 2,
					.sparse_safe = 10,
					.encode_depth = SCRIPT_JSON_DEPTH,
					.decode_depth = SCRIPT_JSON_DEPTH,
					.precision = 14,
					.decode_invalid = true };
	s->resp = 2;
	s->slice = SCRIPT_SLICE_INSTRUCTIONS;
	s->began_ns = clock_mono_ns();
	s->limit_ms = atomic_load_explicit(&s->call->redis->script_ms, memory_order_relaxed);
	s->look_ns = s->began_ns + s->limit_ms * CLOCK_NS_PER_MS;
	if (s->call->x)
		TRY(script_look(s));
	s->scratch = BUF_INIT_OF(SCRIPT_MEMORY_BYTES, s->call->client->part);
	s->answer = BUF_INIT_OF(SCRIPT_MEMORY_BYTES, s->call->client->part);
	s->fiber = fiber_new_of(SCRIPT_STACK_BYTES);
	if (!s->fiber)
		return STATUS_NOMEM;
	fiber_start(s->fiber, script_main, s);
	script_enlist(s);
	step_cpu_begin();
	status = script_drive(s);
	step_cpu_end();
	script_delist(s);
	script_fini(s);
	return status;
}
