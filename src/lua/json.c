/* The library "cjson" of scripts, with the options and limits of lua-cjson 2.1. */
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lua/script.h"

enum {
	NUMBER_BYTES = 64,
	PRECISION_MOST = 14,
	BYTES_A_STEP = 16, /* of a string, for about what one step costs */
};

/* ---- Writing ---- */

static int
json_fail(lua_State *L, int index, const char *why)
{
	return luaL_error(L, "Cannot serialise %s: %s", luaL_typename(L, index), why);
}

static void
json_write_string(lua_State *L, struct buf *out, int index)
{
	static const char plain[] = "btn?fr"; /* from 8 on */
	size_t len;
	const char *text = lua_tolstring(L, index, &len);

	script_work(L, len / BYTES_A_STEP);
	buf_append_byte(out, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= 8 && c <= 13 && c != 11)
			buf_append(out, (char[]){ '\\', plain[c - 8] }, 2);
		else if (c < 0x20 || c == 0x7f)
			buf_printf(out, "\\u%04x", c);
		else if (c == '"' || c == '\\' || c == '/')
			buf_append(out, (char[]){ '\\', (char)c }, 2);
		else
			buf_append_byte(out, c);
	}
	buf_append_byte(out, '"');
}

static void
json_write_number(lua_State *L, struct buf *out, int index)
{
	const struct script_json *options = &script_of(L)->json;
	lua_Number n = lua_tonumber(L, index);
	char text[NUMBER_BYTES];

	if (!isfinite(n) && options->encode_invalid == 0)
		json_fail(L, index, "must not be NaN or Inf");
	if (!isfinite(n) && options->encode_invalid == 2) {
		buf_append_cstr(out, "null");
		return;
	}
	snprintf(text, sizeof(text), "%.*g", options->precision, n);
	buf_append_cstr(out, isnan(n) ? "nan" : text);
}

/* How many elements the table on top of the stack has as an array; -1: it is an object. */
static int
json_array_length(lua_State *L)
{
	const struct script_json *options = &script_of(L)->json;
	lua_Number most = 0;
	int count = 0;

	lua_pushnil(L);
	while (lua_next(L, -2)) {
		lua_Number key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;

		if (!(key >= 1 && key <= INT_MAX && floor(key) == key)) {
			lua_pop(L, 2);
			return -1;
		}
		most = key > most ? key : most;
		count++;
		lua_pop(L, 1);
		script_work(L, 1);
	}
	if (options->sparse_ratio > 0 && most > (lua_Number)count * options->sparse_ratio &&
	    most > options->sparse_safe) {
		if (!options->sparse_convert)
			json_fail(L, -1, "excessively sparse array");
		return -1;
	}
	return (int)most;
}

static void json_write(lua_State *L, struct buf *out, int depth);

static void
json_write_array(lua_State *L, struct buf *out, int count, int depth)
{
	buf_append_byte(out, '[');
	for (int i = 1; i <= count && buf_status(out) == STATUS_OK; i++) {
		if (i > 1)
			buf_append_byte(out, ',');
		lua_rawgeti(L, -1, i);
		json_write(L, out, depth);
		lua_pop(L, 1);
	}
	buf_append_byte(out, ']');
}

static void
json_write_object(lua_State *L, struct buf *out, int depth)
{
	bool first = true;

	buf_append_byte(out, '{');
	lua_pushnil(L);
	while (lua_next(L, -2)) {
		if (!first)
			buf_append_byte(out, ',');
		first = false;
		if (lua_type(L, -2) == LUA_TNUMBER) {
			buf_append_byte(out, '"');
			json_write_number(L, out, -2);
			buf_append_byte(out, '"');
		} else if (lua_type(L, -2) == LUA_TSTRING) {
			json_write_string(L, out, -2);
		} else {
			json_fail(L, -2, "table key must be a number or string");
		}
		buf_append_byte(out, ':');
		json_write(L, out, depth);
		lua_pop(L, 1);
	}
	buf_append_byte(out, '}');
}

static void
json_write_table(lua_State *L, struct buf *out, int depth)
{
	int count;

	if (depth > script_of(L)->json.encode_depth || !lua_checkstack(L, 4))
		luaL_error(L, "Cannot serialise, excessive depth (%d)", depth);
	count = json_array_length(L);
	if (count > 0)
		json_write_array(L, out, count, depth);
	else
		json_write_object(L, out, depth);
}

/* The value on top of the stack, which stays. */
static void
json_write(lua_State *L, struct buf *out, int depth)
{
	script_work(L, 1);
	switch (lua_type(L, -1)) {
	case LUA_TSTRING:
		json_write_string(L, out, -1);
		break;
	case LUA_TNUMBER:
		json_write_number(L, out, -1);
		break;
	case LUA_TBOOLEAN:
		buf_append_cstr(out, lua_toboolean(L, -1) ? "true" : "false");
		break;
	case LUA_TTABLE:
		json_write_table(L, out, depth + 1);
		break;
	case LUA_TNIL:
		buf_append_cstr(out, "null");
		break;
	default:
		if (lua_islightuserdata(L, -1) && !lua_touserdata(L, -1))
			buf_append_cstr(out, "null");
		else
			json_fail(L, -1, "type not supported");
		break;
	}
}

static int
json_encode(lua_State *L)
{
	luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
	json_write(L, script_scratch(L), 0);
	return script_push_scratch(L);
}

/* ---- Reading ---- */

struct json_in {
	lua_State *lua;
	const char *text;
	const char *at;
	const char *end;
	const char *escape;   /* in a string: the backslash of the escape that is being read */
	const char *expected; /* what the string that is being read stands for */
	int depth;
};

/* What cjson calls that with which the rest of the text begins. */
static const char *
json_token_name(const struct json_in *in)
{
	static const char marks[] = "{}[],:\"";
	static const char *const names[] = { "T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END",
					     "T_COMMA",     "T_COLON",   "T_STRING" };
	struct str rest = str_of(in->at, (size_t)(in->end - in->at));
	const char *mark;

	if (!rest.len)
		return "T_END";
	mark = rest.ptr[0] ? strchr(marks, rest.ptr[0]) : NULL;
	if (mark)
		return names[mark - marks];
	if (rest.ptr[0] >= '0' && rest.ptr[0] <= '9')
		return "T_NUMBER";
	if (rest.ptr[0] == '-')
		return rest.len > 1 && rest.ptr[1] >= '0' && rest.ptr[1] <= '9' ? "T_NUMBER"
										: "invalid number";
	if (str_starts_with(rest, STR("true")) || str_starts_with(rest, STR("false")))
		return "T_BOOLEAN";
	return str_starts_with(rest, STR("null")) ? "T_NULL" : "invalid token";
}

static int
json_unexpected(struct json_in *in, const char *expected)
{
	return luaL_error(in->lua, "Expected %s but found %s at character %d", expected,
			  json_token_name(in), (int)(in->at - in->text) + 1);
}

/* A string that is none: `escape` is the backslash at fault, NULL: it has no end. */
static void
json_bad_string(struct json_in *in, const char *what, const char *escape)
{
	(void)luaL_error(in->lua, "Expected %s but found %s at character %d", in->expected, what,
			 (int)((escape ? escape : in->end) - in->text) + 1);
}

static void
json_skip_space(struct json_in *in)
{
	const char *from = in->at;

	while (in->at < in->end &&
	       (*in->at == ' ' || *in->at == '\t' || *in->at == '\n' || *in->at == '\r'))
		in->at++;
	script_work(in->lua, (size_t)(in->at - from) / BYTES_A_STEP);
}

static bool
json_take(struct json_in *in, char c)
{
	json_skip_space(in);
	if (in->at == in->end || *in->at != c)
		return false;
	in->at++;
	return true;
}

/* Four digits behind "\u". */
static unsigned
json_read_unit(struct json_in *in)
{
	unsigned unit = 0;

	for (int i = 0; i < 4; i++) {
		int digit = in->at < in->end ? str_hex_digit(*in->at) : -1;

		if (digit < 0)
			json_bad_string(in, "invalid unicode escape code", in->escape);
		unit = unit << 4 | (unsigned)digit;
		in->at++;
	}
	return unit;
}

static void
json_read_unicode(struct json_in *in, struct buf *out)
{
	unsigned code = json_read_unit(in);

	if (code >= 0xd800 && code < 0xe000) {
		unsigned low;

		if (code >= 0xdc00 || in->end - in->at < 2 || in->at[0] != '\\' || in->at[1] != 'u')
			json_bad_string(in, "invalid unicode escape code", in->escape);
		in->at += 2;
		low = json_read_unit(in);
		if (low < 0xdc00 || low >= 0xe000)
			json_bad_string(in, "invalid unicode escape code", in->escape);
		code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
	}
	if (code < 0x80) {
		buf_append_byte(out, (uint8_t)code);
		return;
	}
	if (code < 0x800) {
		buf_append_byte(out, (uint8_t)(0xc0 | code >> 6));
	} else {
		if (code < 0x10000) {
			buf_append_byte(out, (uint8_t)(0xe0 | code >> 12));
		} else {
			buf_append_byte(out, (uint8_t)(0xf0 | code >> 18));
			buf_append_byte(out, (uint8_t)(0x80 | (code >> 12 & 0x3f)));
		}
		buf_append_byte(out, (uint8_t)(0x80 | (code >> 6 & 0x3f)));
	}
	buf_append_byte(out, (uint8_t)(0x80 | (code & 0x3f)));
}

static void
json_read_escape(struct json_in *in, struct buf *out)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	const char *found;

	if (in->at == in->end)
		json_bad_string(in, "invalid escape code", in->escape);
	if (*in->at == 'u') {
		in->at++;
		json_read_unicode(in, out);
		return;
	}
	found = *in->at ? strchr(from, *in->at) : NULL;
	if (!found) {
		json_bad_string(in, "invalid escape code", in->escape);
		return;
	}
	buf_append_byte(out, (uint8_t)to[found - from]);
	in->at++;
}

/* Behind the first quote. `expected`: what the string stands for, in errors. */
static void
json_read_string(struct json_in *in, const char *expected)
{
	struct buf *out = script_scratch(in->lua);

	in->expected = expected;

	for (;;) {
		const char *from = in->at;

		while (in->at < in->end && *in->at != '"' && *in->at != '\\')
			in->at++;
		buf_append(out, from, (size_t)(in->at - from));
		script_work(in->lua, 1 + (size_t)(in->at - from) / BYTES_A_STEP);
		if (in->at == in->end)
			json_bad_string(in, "unexpected end of string", NULL);
		if (*in->at++ == '"')
			break;
		in->escape = in->at - 1;
		json_read_escape(in, out);
	}
	(void)script_push_scratch(in->lua);
}

/* "-0.5e3", and where the options allow it what strtod() knows beyond JSON. */
static bool
json_number_is_sound(const char *text, size_t len)
{
	size_t i = text[0] == '-';

	if (i == len || !isdigit((unsigned char)text[i]))
		return false;
	return !(text[i] == '0' && i + 1 < len &&
		 (isdigit((unsigned char)text[i + 1]) || (text[i + 1] | 0x20) == 'x'));
}

static void
json_read_number(struct json_in *in)
{
	char text[NUMBER_BYTES];
	size_t len = 0;
	char *end;
	double n;

	while (in->at + len < in->end && len + 1 < sizeof(text) &&
	       (isalnum((unsigned char)in->at[len]) ||
		strchr("+-.", in->at[len] ? in->at[len] : '?')))
		len++;
	memcpy(text, in->at, len);
	text[len] = '\0';
	n = strtod(text, &end);
	if (end == text || text[0] == '.' ||
	    (!json_number_is_sound(text, (size_t)(end - text)) &&
	     !script_of(in->lua)->json.decode_invalid))
		json_unexpected(in, "value");
	in->at += end - text;
	lua_pushnumber(in->lua, n);
}

static bool
json_take_word(struct json_in *in, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(in->end - in->at) < len || memcmp(in->at, word, len) != 0)
		return false;
	in->at += len;
	return true;
}

static void json_read(struct json_in *in);

static void
json_read_array(struct json_in *in)
{
	lua_newtable(in->lua);
	if (json_take(in, ']'))
		return;
	for (int i = 1;; i++) {
		json_read(in);
		lua_rawseti(in->lua, -2, i);
		if (json_take(in, ']'))
			return;
		if (!json_take(in, ','))
			json_unexpected(in, "comma or array end");
	}
}

static void
json_read_object(struct json_in *in)
{
	lua_newtable(in->lua);
	if (json_take(in, '}'))
		return;
	for (;;) {
		if (!json_take(in, '"'))
			json_unexpected(in, "object key string");
		json_read_string(in, "object key string");
		if (!json_take(in, ':'))
			json_unexpected(in, "colon");
		json_read(in);
		lua_rawset(in->lua, -3);
		if (json_take(in, '}'))
			return;
		if (!json_take(in, ','))
			json_unexpected(in, "comma or object end");
	}
}

static void
json_read_nested(struct json_in *in, void (*read)(struct json_in *in))
{
	in->at++;
	if (++in->depth > script_of(in->lua)->json.decode_depth || !lua_checkstack(in->lua, 4))
		luaL_error(in->lua, "Found too many nested data structures (%d)", in->depth);
	read(in);
	in->depth--;
}

static void
json_read(struct json_in *in)
{
	json_skip_space(in);
	script_work(in->lua, 1);
	if (in->at == in->end)
		json_unexpected(in, "value");
	else if (*in->at == '{')
		json_read_nested(in, json_read_object);
	else if (*in->at == '[')
		json_read_nested(in, json_read_array);
	else if (json_take(in, '"'))
		json_read_string(in, "value");
	else if (json_take_word(in, "true"))
		lua_pushboolean(in->lua, 1);
	else if (json_take_word(in, "false"))
		lua_pushboolean(in->lua, 0);
	else if (json_take_word(in, "null"))
		lua_pushlightuserdata(in->lua, NULL);
	else
		json_read_number(in);
}

static int
json_decode(lua_State *L)
{
	size_t len;
	const char *text = luaL_checklstring(L, 1, &len);
	struct json_in in = { .lua = L, .text = text, .at = text, .end = text + len };

	luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
	if (len >= 2 && (!text[0] || !text[1]))
		return luaL_error(L, "JSON parser does not support UTF-16 or UTF-32");
	json_read(&in);
	json_skip_space(&in);
	if (in.at < in.end)
		json_unexpected(&in, "the end");
	return 1;
}

/* ---- Options: each answers what is then set ---- */

static int
json_option_int(lua_State *L, int index, int *value, int least, int most)
{
	if (!lua_isnoneornil(L, index)) {
		int n = luaL_checkint(L, index);

		luaL_argcheck(
			L, n >= least && n <= most, index,
			lua_pushfstring(L, "expected integer between %d and %d", least, most));
		*value = n;
	}
	lua_pushinteger(L, *value);
	return 1;
}

static int
json_option_bool(lua_State *L, int index, bool *value)
{
	if (!lua_isnoneornil(L, index)) {
		luaL_checktype(L, index, LUA_TBOOLEAN);
		*value = lua_toboolean(L, index);
	}
	lua_pushboolean(L, *value);
	return 1;
}

static int
json_encode_sparse_array(lua_State *L)
{
	struct script_json *options = &script_of(L)->json;

	lua_settop(L, 3);
	json_option_bool(L, 1, &options->sparse_convert);
	json_option_int(L, 2, &options->sparse_ratio, 0, INT_MAX);
	return 2 + json_option_int(L, 3, &options->sparse_safe, 0, INT_MAX);
}

static int
json_encode_max_depth(lua_State *L)
{
	return json_option_int(L, 1, &script_of(L)->json.encode_depth, 1, SCRIPT_JSON_DEPTH);
}

static int
json_decode_max_depth(lua_State *L)
{
	return json_option_int(L, 1, &script_of(L)->json.decode_depth, 1, SCRIPT_JSON_DEPTH);
}

static int
json_encode_number_precision(lua_State *L)
{
	return json_option_int(L, 1, &script_of(L)->json.precision, 1, PRECISION_MOST);
}

/* A buffer lives as long as a script anyway. */
static int
json_encode_keep_buffer(lua_State *L)
{
	bool keep = lua_toboolean(L, 1);

	return json_option_bool(L, 1, &keep);
}

static int
json_encode_invalid_numbers(lua_State *L)
{
	static const char *const names[] = { "off", "on", "null", NULL };
	int *value = &script_of(L)->json.encode_invalid;

	if (lua_isboolean(L, 1))
		*value = lua_toboolean(L, 1);
	else if (!lua_isnoneornil(L, 1))
		*value = luaL_checkoption(L, 1, NULL, names);
	if (*value == 2)
		lua_pushliteral(L, "null");
	else
		lua_pushboolean(L, *value);
	return 1;
}

static int
json_decode_invalid_numbers(lua_State *L)
{
	return json_option_bool(L, 1, &script_of(L)->json.decode_invalid);
}

void
script_open_json(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{ "encode", json_encode },
		{ "decode", json_decode },
		{ "encode_sparse_array", json_encode_sparse_array },
		{ "encode_max_depth", json_encode_max_depth },
		{ "decode_max_depth", json_decode_max_depth },
		{ "encode_number_precision", json_encode_number_precision },
		{ "encode_keep_buffer", json_encode_keep_buffer },
		{ "encode_invalid_numbers", json_encode_invalid_numbers },
		{ "decode_invalid_numbers", json_decode_invalid_numbers },
	};

	script_new_library(L, functions, sizeof(functions) / sizeof(functions[0]));
	lua_pushlightuserdata(L, NULL);
	lua_setfield(L, -2, "null");
	lua_pushliteral(L, "cjson");
	lua_setfield(L, -2, "_NAME");
	lua_pushliteral(L, "2.1.0");
	lua_setfield(L, -2, "_VERSION");
}
