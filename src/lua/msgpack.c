/*
 * The library "cmsgpack" of scripts: MessagePack, as lua-cmsgpack 0.4 has it. Numbers are packed in
 * the shortest form that keeps their value; a table whose keys are 1 to n is an array.
 */
#include <limits.h>
#include <math.h>

#include "lua/script.h"

enum {
	PACK_DEPTH = 16,   /* of tables; deeper ones are packed as nil */
	BYTES_A_STEP = 64, /* copied for about what one step costs */
};

/* The first byte of what is packed. */
enum msgpack_type {
	PACK_FIXMAP = 0x80,
	PACK_FIXARRAY = 0x90,
	PACK_FIXSTR = 0xa0,
	PACK_NIL = 0xc0,
	PACK_FALSE = 0xc2,
	PACK_TRUE = 0xc3,
	PACK_FLOAT = 0xca,
	PACK_DOUBLE = 0xcb,
	PACK_UINT8 = 0xcc,
	PACK_UINT16 = 0xcd,
	PACK_UINT32 = 0xce,
	PACK_UINT64 = 0xcf,
	PACK_INT8 = 0xd0,
	PACK_INT16 = 0xd1,
	PACK_INT32 = 0xd2,
	PACK_INT64 = 0xd3,
	PACK_STR8 = 0xd9,
	PACK_STR16 = 0xda,
	PACK_STR32 = 0xdb,
	PACK_ARRAY16 = 0xdc,
	PACK_ARRAY32 = 0xdd,
	PACK_MAP16 = 0xde,
	PACK_MAP32 = 0xdf,
	PACK_NEGATIVE = 0xe0,
};

/* ---- Packing ---- */

/* A type, and `bytes` bytes of a number, the greatest first. */
static void
pack_head(struct buf *out, enum msgpack_type type, uint64_t n, size_t bytes)
{
	buf_append_byte(out, (uint8_t)type);
	while (bytes--)
		buf_append_byte(out, (uint8_t)(n >> 8 * bytes));
}

/* The length of a string, an array or a map: in the first byte, or in one of three sizes. */
struct pack_lengths {
	enum msgpack_type fix;
	size_t fix_most;
	enum msgpack_type in8; /* PACK_NIL: there is none */
	enum msgpack_type in16;
	enum msgpack_type in32;
};

static void
pack_length(struct buf *out, const struct pack_lengths *as, size_t n)
{
	if (n <= as->fix_most)
		buf_append_byte(out, (uint8_t)(as->fix | n));
	else if (n <= UINT8_MAX && as->in8 != PACK_NIL)
		pack_head(out, as->in8, n, 1);
	else if (n <= UINT16_MAX)
		pack_head(out, as->in16, n, 2);
	else
		pack_head(out, as->in32, n, 4);
}

static void
pack_integer(struct buf *out, int64_t n)
{
	if (n >= 0 && n <= INT8_MAX)
		buf_append_byte(out, (uint8_t)n);
	else if (n >= 0 && n <= UINT8_MAX)
		pack_head(out, PACK_UINT8, (uint64_t)n, 1);
	else if (n >= 0 && n <= UINT16_MAX)
		pack_head(out, PACK_UINT16, (uint64_t)n, 2);
	else if (n >= 0 && n <= UINT32_MAX)
		pack_head(out, PACK_UINT32, (uint64_t)n, 4);
	else if (n >= 0)
		pack_head(out, PACK_UINT64, (uint64_t)n, 8);
	else if (n >= -32)
		buf_append_byte(out, (uint8_t)n);
	else if (n >= INT8_MIN)
		pack_head(out, PACK_INT8, (uint64_t)n, 1);
	else if (n >= INT16_MIN)
		pack_head(out, PACK_INT16, (uint64_t)n, 2);
	else if (n >= INT32_MIN)
		pack_head(out, PACK_INT32, (uint64_t)n, 4);
	else
		pack_head(out, PACK_INT64, (uint64_t)n, 8);
}

static void
pack_number(struct buf *out, lua_Number n)
{
	float narrow;
	uint32_t bits32;
	uint64_t bits64;

	if (n >= -0x1p63 && n < 0x1p63 && (lua_Number)(int64_t)n == n) {
		pack_integer(out, (int64_t)n);
		return;
	}
	narrow = fabs(n) <= 0x1.fffffep127 || isinf(n) ? (float)n : 0;
	if ((lua_Number)narrow == n) {
		memcpy(&bits32, &narrow, sizeof(bits32));
		pack_head(out, PACK_FLOAT, bits32, 4);
	} else {
		memcpy(&bits64, &n, sizeof(bits64));
		pack_head(out, PACK_DOUBLE, bits64, 8);
	}
}

static void
pack_string(lua_State *L, struct buf *out)
{
	static const struct pack_lengths as = { PACK_FIXSTR, 31, PACK_STR8, PACK_STR16,
						PACK_STR32 };
	size_t len;
	const char *text = lua_tolstring(L, -1, &len);

	pack_length(out, &as, len);
	buf_append(out, text, len);
	script_work(L, len / BYTES_A_STEP);
}

/* True if the keys of the table on top of the stack are 1 to n. `*ret_count`: how many they are. */
static bool
pack_is_array(lua_State *L, size_t *ret_count)
{
	bool is_array = true;
	lua_Number most = 0;
	size_t count = 0;

	lua_pushnil(L);
	while (lua_next(L, -2)) {
		lua_Number key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;

		is_array &= key >= 1 && key <= INT_MAX && floor(key) == key;
		most = key > most ? key : most;
		count++;
		lua_pop(L, 1);
		script_work(L, 1);
	}
	*ret_count = count;
	return is_array && most == (lua_Number)count;
}

static void pack_value(lua_State *L, struct buf *out, int depth);

static void
pack_table(lua_State *L, struct buf *out, int depth)
{
	static const struct pack_lengths as_array = { PACK_FIXARRAY, 15, PACK_NIL, PACK_ARRAY16,
						      PACK_ARRAY32 };
	static const struct pack_lengths as_map = { PACK_FIXMAP, 15, PACK_NIL, PACK_MAP16,
						    PACK_MAP32 };
	size_t count;

	luaL_checkstack(L, 4, "too many tables in each other");
	if (pack_is_array(L, &count)) {
		pack_length(out, &as_array, count);
		for (size_t i = 1; i <= count && buf_status(out) == STATUS_OK; i++) {
			lua_rawgeti(L, -1, (int)i);
			pack_value(L, out, depth + 1);
		}
		return;
	}
	pack_length(out, &as_map, count);
	lua_pushnil(L);
	while (lua_next(L, -2)) {
		/* A copy of the key, above the value: lua_next() wants the key itself. */
		lua_pushvalue(L, -2);
		pack_value(L, out, depth + 1);
		pack_value(L, out, depth + 1);
	}
}

/* Packs the value on top of the stack, and pops it. */
static void
pack_value(lua_State *L, struct buf *out, int depth)
{
	script_work(L, 1);
	switch (lua_type(L, -1)) {
	case LUA_TSTRING:
		pack_string(L, out);
		break;
	case LUA_TNUMBER:
		pack_number(out, lua_tonumber(L, -1));
		break;
	case LUA_TBOOLEAN:
		buf_append_byte(out, lua_toboolean(L, -1) ? PACK_TRUE : PACK_FALSE);
		break;
	case LUA_TTABLE:
		if (depth < PACK_DEPTH)
			pack_table(L, out, depth);
		else
			buf_append_byte(out, PACK_NIL);
		break;
	default:
		buf_append_byte(out, PACK_NIL);
		break;
	}
	lua_pop(L, 1);
}

static int
msgpack_pack(lua_State *L)
{
	struct buf *out = script_scratch(L);
	int count = lua_gettop(L);

	if (!count)
		return luaL_argerror(L, 0, "MessagePack pack needs input.");
	for (int i = 1; i <= count; i++) {
		lua_pushvalue(L, i);
		pack_value(L, out, 0);
	}
	return script_push_scratch(L);
}

/* ---- Unpacking ---- */

struct unpack {
	lua_State *lua;
	const uint8_t *at;
	const uint8_t *end;
	int depth;
};

/* `bytes` bytes of a number. */
static uint64_t
unpack_head(struct unpack *u, size_t bytes)
{
	uint64_t n = 0;

	if ((size_t)(u->end - u->at) < bytes)
		luaL_error(u->lua, "Missing bytes in input.");
	while (bytes--)
		n = n << 8 | *u->at++;
	return n;
}

static void
unpack_string(struct unpack *u, uint64_t len)
{
	if ((uint64_t)(u->end - u->at) < len)
		luaL_error(u->lua, "Missing bytes in input.");
	lua_pushlstring(u->lua, (const char *)u->at, (size_t)len);
	u->at += len;
	script_work(u->lua, (size_t)len / BYTES_A_STEP);
}

static void unpack_value(struct unpack *u);

static void
unpack_begin(struct unpack *u)
{
	if (++u->depth > SCRIPT_MSGPACK_DEPTH)
		luaL_error(u->lua, "Found too many nested data structures (%d)", u->depth);
	luaL_checkstack(u->lua, 4, "too many tables in each other");
	lua_newtable(u->lua);
}

/* Whatever length is told, the input has a byte for each element. */
static void
unpack_array(struct unpack *u, uint64_t len)
{
	unpack_begin(u);
	for (uint64_t i = 1; i <= len; i++) {
		unpack_value(u);
		lua_rawseti(u->lua, -2, (int)i);
	}
	u->depth--;
}

static void
unpack_map(struct unpack *u, uint64_t len)
{
	unpack_begin(u);
	for (uint64_t i = 0; i < len; i++) {
		unpack_value(u);
		unpack_value(u);
		lua_rawset(u->lua, -3);
	}
	u->depth--;
}

static void
unpack_float(struct unpack *u)
{
	uint32_t bits = (uint32_t)unpack_head(u, 4);
	float n;

	memcpy(&n, &bits, sizeof(n));
	lua_pushnumber(u->lua, n);
}

static void
unpack_double(struct unpack *u)
{
	uint64_t bits = unpack_head(u, 8);
	double n;

	memcpy(&n, &bits, sizeof(n));
	lua_pushnumber(u->lua, n);
}

static void
unpack_signed(struct unpack *u, size_t bytes)
{
	uint64_t n = unpack_head(u, bytes) << (64 - 8 * bytes);

	lua_pushnumber(u->lua, (lua_Number)((int64_t)n >> (64 - 8 * bytes)));
}

/* What has its length, or itself, in the first byte. */
static void
unpack_fixed(struct unpack *u, uint8_t first)
{
	if (first < PACK_FIXMAP)
		lua_pushnumber(u->lua, first);
	else if (first >= PACK_NEGATIVE)
		lua_pushnumber(u->lua, (int8_t)first);
	else if (first < PACK_FIXARRAY)
		unpack_map(u, first & 15U);
	else if (first < PACK_FIXSTR)
		unpack_array(u, first & 15U);
	else if (first < PACK_NIL)
		unpack_string(u, first & 31U);
	else
		luaL_error(u->lua, "Bad data format in input.");
}

/* Pushes the next value. */
static void
unpack_value(struct unpack *u)
{
	uint8_t first = (uint8_t)unpack_head(u, 1);

	script_work(u->lua, 1);
	switch ((int)first) {
	case PACK_NIL:
		lua_pushnil(u->lua);
		break;
	case PACK_FALSE:
	case PACK_TRUE:
		lua_pushboolean(u->lua, first == PACK_TRUE);
		break;
	case PACK_FLOAT:
		unpack_float(u);
		break;
	case PACK_DOUBLE:
		unpack_double(u);
		break;
	case PACK_UINT8:
	case PACK_UINT16:
	case PACK_UINT32:
	case PACK_UINT64:
		lua_pushnumber(u->lua,
			       (lua_Number)unpack_head(u, (size_t)1 << (first - PACK_UINT8)));
		break;
	case PACK_INT8:
	case PACK_INT16:
	case PACK_INT32:
	case PACK_INT64:
		unpack_signed(u, (size_t)1 << (first - PACK_INT8));
		break;
	case PACK_STR8:
	case PACK_STR16:
	case PACK_STR32:
		unpack_string(u, unpack_head(u, (size_t)1 << (first - PACK_STR8)));
		break;
	case PACK_ARRAY16:
	case PACK_ARRAY32:
		unpack_array(u, unpack_head(u, (size_t)2 << (first - PACK_ARRAY16)));
		break;
	case PACK_MAP16:
	case PACK_MAP32:
		unpack_map(u, unpack_head(u, (size_t)2 << (first - PACK_MAP16)));
		break;
	default:
		unpack_fixed(u, first);
		break;
	}
}

/* At most `limit` values from the offset on; 0 and 0: all of them, and no offset before them. */
static int
unpack_from(lua_State *L, lua_Number limit, lua_Number offset)
{
	size_t len;
	const char *text = luaL_checklstring(L, 1, &len);
	struct unpack u = { .lua = L, .end = (const uint8_t *)text + len };
	bool all = limit == 0 && offset == 0;
	int count = 0;

	if (!(limit >= 0 && offset >= 0))
		return luaL_error(L, "Invalid request to unpack with offset of %f and limit of %d.",
				  offset, (int)len);
	if (offset > (lua_Number)len)
		return luaL_error(L, "Start offset %f greater than input length %d.", offset,
				  (int)len);
	lua_settop(L, 1);
	u.at = (const uint8_t *)text + (size_t)offset;
	if (!all)
		lua_pushnil(L); /* the offset behind the values comes here */
	for (; u.at < u.end && (all || count < limit); count++) {
		luaL_checkstack(L, 4,
				"too many return values at once; use unpack_one or unpack_limit "
				"instead.");
		unpack_value(&u);
	}
	if (all)
		return count;
	lua_pushnumber(L, u.at == u.end ? -1 : (lua_Number)(len - (size_t)(u.end - u.at)));
	lua_replace(L, 2);
	return count + 1;
}

static int
msgpack_unpack(lua_State *L)
{
	return unpack_from(L, 0, 0);
}

static int
msgpack_unpack_one(lua_State *L)
{
	return unpack_from(L, 1, (lua_Number)luaL_optinteger(L, 2, 0));
}

static int
msgpack_unpack_limit(lua_State *L)
{
	return unpack_from(L, (lua_Number)luaL_checkinteger(L, 2),
			   (lua_Number)luaL_optinteger(L, 3, 0));
}

void
script_open_msgpack(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{ "pack", msgpack_pack },
		{ "unpack", msgpack_unpack },
		{ "unpack_one", msgpack_unpack_one },
		{ "unpack_limit", msgpack_unpack_limit },
	};

	script_new_library(L, functions, sizeof(functions) / sizeof(functions[0]));
	lua_pushliteral(L, "cmsgpack");
	lua_setfield(L, -2, "_NAME");
	lua_pushliteral(L, "lua-cmsgpack 0.4.0");
	lua_setfield(L, -2, "_VERSION");
}
