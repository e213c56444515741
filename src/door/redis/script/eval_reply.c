/* What a command has answered, as a value of Lua's, and what a script returns, as an answer. */
#include <math.h>
#include <stdlib.h>

#include "door/redis/script/eval.h"
#include "door/redis/wire/number.h"

/* ---- To Lua ---- */

struct answer {
	lua_State *lua;
	const char *at;
	const char *end;
};

/* The rest of the line, behind which the next thing begins. */
static struct str
answer_line(struct answer *a)
{
	const char *from = a->at;
	const char *end = memchr(from, '\r', (size_t)(a->end - from));
	struct str line = str_of(from, end ? (size_t)(end - from) : (size_t)(a->end - from));

	a->at = end && a->end - end >= 2 ? end + 2 : a->end;
	return line;
}

static struct str
answer_bytes(struct answer *a, int64_t n)
{
	struct str s;

	if (n > a->end - a->at)
		n = a->end - a->at;
	s = str_of(a->at, (size_t)n);
	a->at += n;
	a->at += a->end - a->at >= 2 ? 2 : 0;
	return s;
}

static void
push_str(lua_State *L, struct str s)
{
	lua_pushlstring(L, s.ptr, s.len);
}

/* {name = text} */
static void
push_field(lua_State *L, const char *name, struct str text)
{
	lua_createtable(L, 0, 1);
	push_str(L, text);
	lua_setfield(L, -2, name);
}

static void answer_push(struct answer *a);

static void
answer_push_array(struct answer *a, int64_t n)
{
	lua_createtable(a->lua, (int)(n < 1024 ? n : 1024), 0);
	for (int64_t i = 1; i <= n && a->at < a->end; i++) {
		answer_push(a);
		lua_rawseti(a->lua, -2, (int)i);
	}
}

/* {map = {…}}; {set = {member = true}} */
static void
answer_push_keyed(struct answer *a, int64_t n, bool is_map)
{
	lua_createtable(a->lua, 0, 1);
	lua_newtable(a->lua);
	for (int64_t i = 0; i < n && a->at < a->end; i++) {
		answer_push(a);
		if (is_map)
			answer_push(a);
		else
			lua_pushboolean(a->lua, 1);
		lua_rawset(a->lua, -3);
	}
	lua_setfield(a->lua, -2, is_map ? "map" : "set");
}

static void
answer_push_bulk(struct answer *a, char type, int64_t n)
{
	lua_State *L = a->lua;
	struct str s;

	if (n < 0) {
		lua_pushboolean(L, 0);
		return;
	}
	s = answer_bytes(a, n);
	if (type == '$' || s.len < 4) {
		push_str(L, s);
		return;
	}
	lua_createtable(L, 0, 1);
	lua_createtable(L, 0, 2);
	push_str(L, str_skip(s, 4));
	lua_setfield(L, -2, "string");
	push_str(L, str_of(s.ptr, 3));
	lua_setfield(L, -2, "format");
	lua_setfield(L, -2, "verbatim_string");
}

static void
answer_push_double(lua_State *L, struct str line)
{
	double d = 0;

	(void)number_read_double(line, &d);
	lua_createtable(L, 0, 1);
	lua_pushnumber(L, d);
	lua_setfield(L, -2, "double");
}

static void
answer_push(struct answer *a)
{
	lua_State *L = a->lua;
	char type = *a->at++;
	struct str line = answer_line(a);
	int64_t n = 0;

	luaL_checkstack(L, 8, "reached lua stack limit");
	(void)str_to_i64(line, &n);
	switch (type) {
	case '+':
		push_field(L, "ok", line);
		break;
	case '-':
		push_field(L, "err", line);
		break;
	case ':':
		lua_pushnumber(L, (lua_Number)n);
		break;
	case '$':
	case '=':
		answer_push_bulk(a, type, n);
		break;
	case '*':
		if (n < 0)
			lua_pushboolean(L, 0);
		else
			answer_push_array(a, n);
		break;
	case '%':
	case '~':
		answer_push_keyed(a, n, type == '%');
		break;
	case '#':
		lua_pushboolean(L, line.len && line.ptr[0] == 't');
		break;
	case ',':
		answer_push_double(L, line);
		break;
	default: /* '_' */
		lua_pushnil(L);
		break;
	}
}

void
eval_push_answer(lua_State *L, struct str text)
{
	struct answer a = { .lua = L, .at = text.ptr, .end = text.ptr + text.len };

	if (text.len)
		answer_push(&a);
	else
		lua_pushboolean(L, 0);
}

/* ---- From Lua ---- */

/* Pushes a field of the table on top of the stack, if it has the type; else nothing. */
static bool
has_field(lua_State *L, const char *name, int type)
{
	lua_pushstring(L, name);
	lua_rawget(L, -2);
	if (lua_type(L, -1) == type)
		return true;
	lua_pop(L, 1);
	return false;
}

/* A line that is put together here must end where it ends. */
static void
reply_line(struct reply *r, char type, lua_State *L)
{
	size_t len;
	const char *text = lua_tolstring(L, -1, &len);
	size_t from;

	buf_append_byte(r->out, (uint8_t)type);
	from = r->out->len;
	buf_append(r->out, text, len);
	for (size_t i = from; i < r->out->len; i++)
		if (r->out->ptr[i] == '\r' || r->out->ptr[i] == '\n')
			r->out->ptr[i] = ' ';
	buf_append_cstr(r->out, "\r\n");
}

/* {big_number = "123"}: in RESP2 a bulk. */
static void
reply_big_number(struct reply *r, lua_State *L)
{
	size_t from;

	if (r->version == 3) {
		reply_line(r, '(', L);
		return;
	}
	from = r->out->len;
	reply_bulk(r, str_of(lua_tostring(L, -1), lua_objlen(L, -1)));
	if (buf_status(r->out) != STATUS_OK)
		return;
	/* The text itself stands between the two line ends. */
	for (size_t i = r->out->len - 2 - lua_objlen(L, -1); i < r->out->len - 2 && i > from; i++)
		if (r->out->ptr[i] == '\r' || r->out->ptr[i] == '\n')
			r->out->ptr[i] = ' ';
}

static bool
reply_verbatim_string(struct reply *r, lua_State *L)
{
	int at = lua_gettop(L);

	if (!has_field(L, "format", LUA_TSTRING))
		return false;
	lua_pushvalue(L, at);
	if (!has_field(L, "string", LUA_TSTRING))
		return false;
	reply_verbatim(r, str_of(lua_tostring(L, -1), lua_objlen(L, -1)));
	return true;
}

/* The pairs, or the keys, of the table on top of the stack. */
static void
reply_keyed(lua_State *L, struct eval *e, int depth, bool is_map)
{
	size_t place = reply_later(&e->reply);
	size_t count = 0;

	lua_pushnil(L);
	while (lua_next(L, -2)) {
		if (is_map) {
			lua_pushvalue(L, -2);
			eval_reply(L, e, depth + 1);
		} else {
			lua_pop(L, 1);
			lua_pushvalue(L, -1);
		}
		eval_reply(L, e, depth + 1);
		count++;
	}
	reply_later_end(&e->reply, place, is_map ? '%' : '~', count);
}

static void
reply_array_of(lua_State *L, struct eval *e, int depth)
{
	size_t place = reply_later(&e->reply);
	size_t count = 0;

	for (;;) {
		lua_rawgeti(L, -1, (int)count + 1);
		if (lua_isnil(L, -1)) {
			lua_pop(L, 1);
			break;
		}
		eval_reply(L, e, depth + 1);
		count++;
	}
	reply_later_end(&e->reply, place, '*', count);
}

static void
reply_table(lua_State *L, struct eval *e, int depth)
{
	struct reply *r = &e->reply;
	int top = lua_gettop(L);

	if (!depth)
		e->call->told = eval_error_is_told(L);
	if (has_field(L, "err", LUA_TSTRING)) {
		reply_line(r, '-', L);
	} else if (has_field(L, "ok", LUA_TSTRING)) {
		reply_line(r, '+', L);
	} else if (has_field(L, "double", LUA_TNUMBER)) {
		reply_double(r, lua_tonumber(L, -1));
	} else if (has_field(L, "big_number", LUA_TSTRING)) {
		reply_big_number(r, L);
	} else if (has_field(L, "verbatim_string", LUA_TTABLE) && reply_verbatim_string(r, L)) {
		/* It is answered. */
	} else {
		lua_settop(L, top);
		if (has_field(L, "map", LUA_TTABLE))
			reply_keyed(L, e, depth, true);
		else if (has_field(L, "set", LUA_TTABLE))
			reply_keyed(L, e, depth, false);
		else
			reply_array_of(L, e, depth);
	}
	lua_settop(L, top);
}

void
eval_reply(lua_State *L, struct eval *e, int depth)
{
	struct reply *r = &e->reply;

	if (depth > EVAL_REPLY_DEPTH || !lua_checkstack(L, 8)) {
		reply_error(r, STR("ERR reached lua stack limit"));
		lua_pop(L, 1);
		return;
	}
	switch (lua_type(L, -1)) {
	case LUA_TSTRING:
		reply_bulk(r, str_of(lua_tostring(L, -1), lua_objlen(L, -1)));
		break;
	case LUA_TBOOLEAN:
		if (e->resp == 3)
			reply_bool(r, lua_toboolean(L, -1));
		else if (lua_toboolean(L, -1))
			reply_int(r, 1);
		else
			reply_null(r);
		break;
	case LUA_TNUMBER: {
		lua_Number n = lua_tonumber(L, -1);

		reply_int(r, n >= -0x1p63 && n < 0x1p63 ? (int64_t)n : INT64_MIN);
		break;
	}
	case LUA_TTABLE:
		reply_table(L, e, depth);
		break;
	default:
		reply_null(r);
		break;
	}
	lua_pop(L, 1);
}
