/*
 * The library "struct" of scripts: numbers and strings as bytes, by a format, as the library of Lua
 * that Redis has reads and writes them.
 */
#include <ctype.h>
#include <limits.h>

#include "lua/script.h"

enum {
	STRUCT_INTEGER_BYTES = 32, /* of the longest integer */
	STRUCT_ALIGN = 8,          /* of "!" without a number */
	STRUCT_NATIVE_BYTES = 8,   /* of an integer that a number is made of */
	BYTES_A_STEP = 64,         /* copied for about what one step costs */
};

/* A format that is read from left to right. */
struct format {
	lua_State *lua;
	const char *at;
	bool big_endian;
	size_t align;
	char option; /* the one that was read last */
	size_t size; /* of what it is about, if that has one */
};

/* ---- Formats ---- */

static size_t
format_number(struct format *f, size_t otherwise)
{
	size_t n = 0;

	if (!isdigit((unsigned char)*f->at))
		return otherwise;
	for (; isdigit((unsigned char)*f->at); f->at++) {
		n = n * 10 + (size_t)(*f->at - '0');
		if (n > INT_MAX)
			luaL_error(f->lua, "integral size overflow");
	}
	return n;
}

static size_t
format_integer_size(struct format *f)
{
	size_t size = format_number(f, sizeof(int));

	if (size > STRUCT_INTEGER_BYTES)
		luaL_error(f->lua, "integral size %d is larger than limit of %d", (int)size,
			   STRUCT_INTEGER_BYTES);
	return size;
}

/* Reads one option. False at the end. */
static bool
format_next(struct format *f)
{
	f->option = *f->at;
	if (!f->option)
		return false;
	f->at++;
	script_work(f->lua, 1);
	switch (f->option) {
	case 'b':
	case 'B':
	case 'x':
		f->size = 1;
		break;
	case 'h':
	case 'H':
		f->size = 2;
		break;
	case 'f':
		f->size = 4;
		break;
	case 'l':
	case 'L':
	case 'T':
	case 'd':
		f->size = 8;
		break;
	case 'i':
	case 'I':
		f->size = format_integer_size(f);
		break;
	case 'c':
		f->size = format_number(f, 1);
		break;
	default:
		f->size = 0;
		break;
	}
	return true;
}

/* An option that is about no value. */
static void
format_control(struct format *f)
{
	size_t align;

	switch (f->option) {
	case ' ':
		break;
	case '>':
		f->big_endian = true;
		break;
	case '<':
		f->big_endian = false;
		break;
	case '!':
		align = format_number(f, STRUCT_ALIGN);
		if (!align || align & (align - 1))
			luaL_error(f->lua, "alignment %d is not a power of 2", (int)align);
		f->align = align;
		break;
	default:
		luaL_argerror(f->lua, 1,
			      lua_pushfstring(f->lua, "invalid format option '%c'", f->option));
		break;
	}
}

/* How many bytes there are between a position and the value of the option behind it. */
static size_t
format_padding(const struct format *f, size_t position)
{
	size_t size = f->size < f->align ? f->size : f->align;

	return size && f->option != 'c' ? (size - (position & (size - 1))) & (size - 1) : 0;
}

/* ---- Numbers ---- */

/* The bytes of a number, of which the first is the greatest or the least. */
static void
struct_put(struct buf *out, uint64_t n, size_t size, bool big_endian)
{
	for (size_t i = 0; i < size; i++) {
		size_t place = big_endian ? size - 1 - i : i;

		buf_append_byte(out, place < sizeof(n) ? (uint8_t)(n >> 8 * place) : 0);
	}
}

static uint64_t
struct_get(const char *bytes, size_t size, bool big_endian)
{
	uint64_t n = 0;

	for (size_t i = 0; i < size; i++)
		n = n << 8 | (uint8_t)bytes[big_endian ? i : size - 1 - i];
	return n;
}

/* The bits of a number; those of one that is too large are others. */
static uint64_t
struct_bits(lua_Number n)
{
	if (n >= 0)
		return n < 0x1p64 ? (uint64_t)n : 0;
	return n >= -0x1p63 ? (uint64_t)(int64_t)n : (uint64_t)INT64_MIN;
}

static lua_Number
struct_integer(const struct format *f, const char *bytes)
{
	uint64_t n = struct_get(bytes, f->size, f->big_endian);
	unsigned free = f->size && f->size < STRUCT_NATIVE_BYTES ? 64 - 8 * (unsigned)f->size : 0;

	if (isupper((unsigned char)f->option))
		return (lua_Number)n;
	return (lua_Number)((int64_t)(n << free) >> free);
}

/* ---- The functions ---- */

static void
pack_string(struct format *f, struct buf *out, int arg)
{
	size_t len;
	const char *text = luaL_checklstring(f->lua, arg, &len);

	if (!f->size)
		f->size = len;
	luaL_argcheck(f->lua, len >= f->size, arg, "string too short");
	buf_append(out, text, f->size);
	script_work(f->lua, f->size / BYTES_A_STEP);
	if (f->option == 's')
		buf_append_byte(out, 0);
}

/* True if the option is about a value. */
static bool
pack_option(struct format *f, struct buf *out, int arg)
{
	uint64_t bits64;
	uint32_t bits32;
	double wide;
	float narrow;

	switch (f->option) {
	case 'x':
		buf_append_byte(out, 0);
		return false;
	case 'f':
		wide = luaL_checknumber(f->lua, arg);
		narrow = (float)wide;
		memcpy(&bits32, &narrow, sizeof(bits32));
		struct_put(out, bits32, sizeof(bits32), f->big_endian);
		return true;
	case 'd':
		wide = luaL_checknumber(f->lua, arg);
		memcpy(&bits64, &wide, sizeof(bits64));
		struct_put(out, bits64, sizeof(bits64), f->big_endian);
		return true;
	case 'c':
	case 's':
		pack_string(f, out, arg);
		return true;
	default:
		if (!strchr("bBhHlLTiI", f->option)) {
			format_control(f);
			return false;
		}
		struct_put(out, struct_bits(luaL_checknumber(f->lua, arg)), f->size, f->big_endian);
		return true;
	}
}

static int
struct_pack(lua_State *L)
{
	struct format f = { .lua = L, .at = luaL_checkstring(L, 1), .align = 1 };
	struct buf *out = script_scratch(L);
	int arg = 2;

	while (format_next(&f)) {
		for (size_t i = format_padding(&f, out->len); i; i--)
			buf_append_byte(out, 0);
		arg += pack_option(&f, out, arg);
	}
	return script_push_scratch(L);
}

/* What is unpacked, and how many values of it have been pushed. */
struct data {
	const char *bytes;
	size_t len;
	size_t at;
	int count;
};

static void
check_length(const struct format *f, const struct data *d)
{
	luaL_argcheck(f->lua, d->at <= d->len && f->size <= d->len - d->at, 2,
		      "data string too short");
}

/* A string of as many bytes as the number says that was unpacked before it. */
static void
unpack_size(struct format *f, struct data *d)
{
	lua_Number n;

	if (!d->count || !lua_isnumber(f->lua, -1))
		luaL_error(f->lua, "format 'c0' needs a previous size");
	n = lua_tonumber(f->lua, -1);
	f->size = n >= 0 && n <= (lua_Number)d->len ? (size_t)n : SIZE_MAX;
	lua_pop(f->lua, 1);
	d->count--;
	check_length(f, d);
}

static void
unpack_line(struct format *f, struct data *d)
{
	const char *from = d->bytes + d->at;
	const char *end = memchr(from, 0, d->len - d->at);

	if (!end) {
		luaL_error(f->lua, "unfinished string in data");
		return;
	}
	f->size = (size_t)(end - from) + 1;
	lua_pushlstring(f->lua, from, f->size - 1);
}

static void
unpack_option(struct format *f, struct data *d)
{
	const char *from = d->bytes + d->at;
	uint32_t bits32;
	uint64_t bits64;
	double wide;
	float narrow;

	switch (f->option) {
	case 'x':
		return;
	case 'f':
		bits32 = (uint32_t)struct_get(from, sizeof(bits32), f->big_endian);
		memcpy(&narrow, &bits32, sizeof(narrow));
		lua_pushnumber(f->lua, narrow);
		break;
	case 'd':
		bits64 = struct_get(from, sizeof(bits64), f->big_endian);
		memcpy(&wide, &bits64, sizeof(wide));
		lua_pushnumber(f->lua, wide);
		break;
	case 'c':
		if (!f->size)
			unpack_size(f, d);
		lua_pushlstring(f->lua, from, f->size);
		break;
	case 's':
		unpack_line(f, d);
		break;
	default:
		if (!strchr("bBhHlLTiI", f->option)) {
			format_control(f);
			return;
		}
		lua_pushnumber(f->lua, struct_integer(f, from));
		break;
	}
	d->count++;
	script_work(f->lua, f->size / BYTES_A_STEP);
}

static int
struct_unpack(lua_State *L)
{
	struct format f = { .lua = L, .at = luaL_checkstring(L, 1), .align = 1 };
	struct data d = { 0 };
	lua_Integer from;

	d.bytes = luaL_checklstring(L, 2, &d.len);
	from = luaL_optinteger(L, 3, 1);
	luaL_argcheck(L, from > 0, 3, "offset must be 1 or greater");
	d.at = (size_t)from - 1;
	lua_settop(L, 2);
	while (format_next(&f)) {
		d.at += format_padding(&f, d.at);
		check_length(&f, &d);
		luaL_checkstack(L, 2, "too many results");
		unpack_option(&f, &d);
		d.at += f.size;
	}
	lua_pushnumber(L, (lua_Number)d.at + 1);
	return d.count + 1;
}

static int
struct_size(lua_State *L)
{
	struct format f = { .lua = L, .at = luaL_checkstring(L, 1), .align = 1 };
	size_t at = 0;

	while (format_next(&f)) {
		at += format_padding(&f, at);
		if (f.option == 's')
			return luaL_argerror(L, 1, "option 's' has no fixed size");
		if (f.option == 'c' && !f.size)
			return luaL_argerror(L, 1, "option 'c0' has no fixed size");
		if (!isalnum((unsigned char)f.option))
			format_control(&f);
		at += f.size;
	}
	lua_pushnumber(L, (lua_Number)at);
	return 1;
}

void
script_open_struct(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{ "pack", struct_pack },
		{ "unpack", struct_unpack },
		{ "size", struct_size },
	};

	script_new_library(L, functions, sizeof(functions) / sizeof(functions[0]));
}
