/* The library "bit" of scripts: operations on 32 bits, as LuaBitOp has them. */
#include "lua/script.h"

/* Any number, modulo 2^32. */
static uint32_t
bit_arg(lua_State *L, int index)
{
	union {
		double number;
		uint64_t bits;
	} u = { .number = luaL_checknumber(L, index) + 0x1.8p52 };

	return (uint32_t)u.bits;
}

static int
bit_push(lua_State *L, uint32_t bits)
{
	lua_pushnumber(L, (int32_t)bits);
	return 1;
}

static int
bit_tobit(lua_State *L)
{
	return bit_push(L, bit_arg(L, 1));
}

static int
bit_bnot(lua_State *L)
{
	return bit_push(L, ~bit_arg(L, 1));
}

static int
bit_band(lua_State *L)
{
	uint32_t bits = bit_arg(L, 1);

	for (int i = lua_gettop(L); i > 1; i--)
		bits &= bit_arg(L, i);
	return bit_push(L, bits);
}

static int
bit_bor(lua_State *L)
{
	uint32_t bits = bit_arg(L, 1);

	for (int i = lua_gettop(L); i > 1; i--)
		bits |= bit_arg(L, i);
	return bit_push(L, bits);
}

static int
bit_bxor(lua_State *L)
{
	uint32_t bits = bit_arg(L, 1);

	for (int i = lua_gettop(L); i > 1; i--)
		bits ^= bit_arg(L, i);
	return bit_push(L, bits);
}

static int
bit_lshift(lua_State *L)
{
	return bit_push(L, bit_arg(L, 1) << (bit_arg(L, 2) & 31));
}

static int
bit_rshift(lua_State *L)
{
	return bit_push(L, bit_arg(L, 1) >> (bit_arg(L, 2) & 31));
}

static int
bit_arshift(lua_State *L)
{
	return bit_push(L, (uint32_t)((int32_t)bit_arg(L, 1) >> (bit_arg(L, 2) & 31)));
}

static uint32_t
bit_rotate(uint32_t bits, unsigned n)
{
	n &= 31;
	return n ? bits << n | bits >> (32 - n) : bits;
}

static int
bit_rol(lua_State *L)
{
	return bit_push(L, bit_rotate(bit_arg(L, 1), bit_arg(L, 2)));
}

static int
bit_ror(lua_State *L)
{
	return bit_push(L, bit_rotate(bit_arg(L, 1), 32 - (bit_arg(L, 2) & 31)));
}

static int
bit_bswap(lua_State *L)
{
	return bit_push(L, __builtin_bswap32(bit_arg(L, 1)));
}

static int
bit_tohex(lua_State *L)
{
	uint32_t bits = bit_arg(L, 1);
	int32_t digits = lua_isnone(L, 2) ? 8 : (int32_t)bit_arg(L, 2);
	const char *all = digits < 0 ? "0123456789ABCDEF" : "0123456789abcdef";
	char text[8];
	int count = digits == INT32_MIN || digits < -8 || digits > 8 ? 8
		    : digits < 0                                     ? -digits
								     : digits;

	for (int i = count; i-- > 0; bits >>= 4)
		text[i] = all[bits & 15];
	lua_pushlstring(L, text, (size_t)count);
	return 1;
}

void
script_open_bit(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{ "tobit", bit_tobit },   { "bnot", bit_bnot },       { "band", bit_band },
		{ "bor", bit_bor },       { "bxor", bit_bxor },       { "lshift", bit_lshift },
		{ "rshift", bit_rshift }, { "arshift", bit_arshift }, { "rol", bit_rol },
		{ "ror", bit_ror },       { "bswap", bit_bswap },     { "tohex", bit_tohex },
	};

	script_new_library(L, functions, sizeof(functions) / sizeof(functions[0]));
}
