/*
 * find, match, gmatch and gsub of scripts: Lua 5.1's patterns with the same answers and errors,
 * but by a matcher that counts its steps. A pattern with several "-" or "*" can take time that
 * grows by a power of the text's length; while it matches, others have their turn, and the script's
 * time ends it as it ends anything else.
 *
 * The matcher calls itself for what stands behind a repetition or a parenthesis, so it nests as
 * deep as the pattern is long, which SCRIPT_PATTERN_BYTES bounds.
 */
#include <ctype.h>

#include "lua/script.h"

#define SPECIALS "^$*+?.([%-"

enum {
	PATTERN_CAPTURES = 32,
	UNFINISHED = -1,   /* the length of a capture whose end has not come */
	POSITION = -2,     /* of one that is a place in the text */
	STEPS_TOLD = 64,   /* steps that are told of together */
	BYTES_A_STEP = 64, /* compared or searched for about what one step costs */
};

struct capture {
	const char *from;
	ptrdiff_t len;
};

struct matcher {
	lua_State *lua;
	const char *begin;
	const char *end;
	size_t steps; /* not told of yet */
	int level;    /* how many captures there are */
	struct capture captures[PATTERN_CAPTURES];
};

static void
count_steps(struct matcher *m, size_t steps)
{
	m->steps += steps;
	if (m->steps >= STEPS_TOLD) {
		script_work(m->lua, m->steps);
		m->steps = 0;
	}
}

/* ---- Classes of characters ---- */

/* Where the class ends that begins at `p`: "x", ".", "%x" or "[…]". */
static const char *
class_end(struct matcher *m, const char *p)
{
	char c = *p++;

	if (c == '%') {
		if (!*p)
			luaL_error(m->lua, "malformed pattern (ends with '%%')");
		return p + 1;
	}
	if (c != '[')
		return p;
	if (*p == '^')
		p++;
	/* A "]" that comes first is a character like others. */
	do {
		if (!*p)
			luaL_error(m->lua, "malformed pattern (missing ']')");
		if (*p++ == '%' && *p)
			p++;
	} while (*p != ']');
	return p + 1;
}

static bool
in_named_class(int c, int name)
{
	bool is;

	switch (tolower(name)) {
	case 'a':
		is = isalpha(c);
		break;
	case 'c':
		is = iscntrl(c);
		break;
	case 'd':
		is = isdigit(c);
		break;
	case 'l':
		is = islower(c);
		break;
	case 'p':
		is = ispunct(c);
		break;
	case 's':
		is = isspace(c);
		break;
	case 'u':
		is = isupper(c);
		break;
	case 'w':
		is = isalnum(c);
		break;
	case 'x':
		is = isxdigit(c);
		break;
	case 'z':
		is = c == 0;
		break;
	default:
		return name == c;
	}
	return isupper(name) ? !is : is;
}

/* `p` is at the "[", `end` behind the "]". */
static bool
in_set(struct matcher *m, int c, const char *p, const char *end)
{
	bool sense = true;

	count_steps(m, (size_t)(end - p) / 4);
	end--;
	p++;
	if (*p == '^') {
		sense = false;
		p++;
	}
	for (; p < end; p++) {
		if (*p == '%') {
			p++;
			if (in_named_class(c, (unsigned char)*p))
				return sense;
		} else if (p[1] == '-' && p + 2 < end) {
			if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2])
				return sense;
			p += 2;
		} else if ((unsigned char)*p == c) {
			return sense;
		}
	}
	return !sense;
}

/* Whether there is a character at `s` that is of the class from `p` to `end`. */
static bool
in_class(struct matcher *m, const char *s, const char *p, const char *end)
{
	count_steps(m, 1);
	if (s >= m->end)
		return false;
	switch (*p) {
	case '.':
		return true;
	case '%':
		return in_named_class((unsigned char)*s, (unsigned char)p[1]);
	case '[':
		return in_set(m, (unsigned char)*s, p, end);
	default:
		return *p == *s;
	}
}

/* ---- Matching: each returns where the match ends, or NULL ---- */

static const char *match(struct matcher *m, const char *s, const char *p);

/* As many as there are, and then fewer, until what stands behind matches. */
static const char *
match_most(struct matcher *m, const char *s, const char *p, const char *end)
{
	ptrdiff_t n = 0;

	while (in_class(m, s + n, p, end))
		n++;
	for (; n >= 0; n--) {
		const char *found = match(m, s + n, end + 1);

		if (found)
			return found;
	}
	return NULL;
}

static const char *
match_least(struct matcher *m, const char *s, const char *p, const char *end)
{
	for (;; s++) {
		const char *found = match(m, s, end + 1);

		if (found || !in_class(m, s, p, end))
			return found;
	}
}

static const char *
match_open(struct matcher *m, const char *s, const char *p, ptrdiff_t len)
{
	const char *found;

	if (m->level >= PATTERN_CAPTURES)
		luaL_error(m->lua, "too many captures");
	m->captures[m->level++] = (struct capture){ s, len };
	found = match(m, s, p);
	if (!found)
		m->level--;
	return found;
}

static const char *
match_close(struct matcher *m, const char *s, const char *p)
{
	const char *found;
	int i = m->level - 1;

	while (i >= 0 && m->captures[i].len != UNFINISHED)
		i--;
	if (i < 0) {
		luaL_error(m->lua, "invalid pattern capture");
		return NULL;
	}
	m->captures[i].len = s - m->captures[i].from;
	found = match(m, s, p);
	if (!found)
		m->captures[i].len = UNFINISHED;
	return found;
}

/* "%b()" */
static const char *
match_balance(struct matcher *m, const char *s, const char *p)
{
	size_t open = 1;

	if (!p[0] || !p[1])
		luaL_error(m->lua, "unbalanced pattern");
	if (s >= m->end || *s != *p)
		return NULL;
	for (s++; s < m->end; s++) {
		count_steps(m, 1);
		if (*s == p[1]) {
			if (!--open)
				return s + 1;
		} else if (*s == p[0]) {
			open++;
		}
	}
	return NULL;
}

/* "%1": what a capture has is here once more. */
static const char *
match_again(struct matcher *m, const char *s, char digit)
{
	int i = digit - '1';
	const struct capture *c;

	if (i < 0 || i >= m->level || m->captures[i].len == UNFINISHED) {
		luaL_error(m->lua, "invalid capture index");
		return NULL;
	}
	c = &m->captures[i];
	if (c->len < 0 || m->end - s < c->len)
		return NULL;
	count_steps(m, (size_t)c->len / BYTES_A_STEP);
	return memcmp(c->from, s, (size_t)c->len) == 0 ? s + c->len : NULL;
}

/* "%f[…]": here characters of the set begin. Returns where the pattern goes on, or NULL. */
static const char *
match_frontier(struct matcher *m, const char *s, const char *p)
{
	const char *end;
	int before = s == m->begin ? 0 : (unsigned char)s[-1];

	if (*p != '[')
		luaL_error(m->lua, "missing '[' after '%%f' in pattern");
	end = class_end(m, p);
	/* At the end of the text there is a NUL. */
	return !in_set(m, before, p, end) && in_set(m, (unsigned char)*s, p, end) ? end : NULL;
}

/*
 * What "%" begins, if it is more than a class; `*s` and `*p` then are behind it, or `*s` is NULL.
 * False: it is a class.
 */
static bool
match_escape(struct matcher *m, const char **s, const char **p)
{
	char c = (*p)[1];

	if (c == 'b') {
		*s = match_balance(m, *s, *p + 2);
		*p += *s ? 4 : 0;
		return true;
	}
	if (c == 'f') {
		*p = match_frontier(m, *s, *p + 2);
		*s = *p ? *s : NULL;
		return true;
	}
	if (isdigit((unsigned char)c)) {
		*s = match_again(m, *s, c);
		*p += 2;
		return true;
	}
	return false;
}

/* A class and how often it comes. True: `*s` is where all of the pattern ends. */
static bool
match_class(struct matcher *m, const char **s, const char **p)
{
	const char *end = class_end(m, *p);
	bool fits = in_class(m, *s, *p, end);
	const char *found = NULL;

	switch (*end) {
	case '?':
		if (fits)
			found = match(m, *s + 1, end + 1);
		if (!found) {
			*p = end + 1;
			return false;
		}
		*s = found;
		return true;
	case '*':
		*s = match_most(m, *s, *p, end);
		return true;
	case '+':
		*s = fits ? match_most(m, *s + 1, *p, end) : NULL;
		return true;
	case '-':
		*s = match_least(m, *s, *p, end);
		return true;
	default:
		*s = fits ? *s + 1 : NULL;
		*p = end;
		return !fits;
	}
}

static const char *
match(struct matcher *m, const char *s, const char *p)
{
	while (s) {
		count_steps(m, 1);
		if (!*p)
			return s;
		if (*p == '(')
			return p[1] == ')' ? match_open(m, s, p + 2, POSITION)
					   : match_open(m, s, p + 1, UNFINISHED);
		if (*p == ')')
			return match_close(m, s, p + 1);
		if (*p == '$' && !p[1])
			return s == m->end ? s : NULL;
		if (*p == '%' && match_escape(m, &s, &p))
			continue;
		if (match_class(m, &s, &p))
			return s;
	}
	return NULL;
}

/* ---- Captures ---- */

static void
push_capture(struct matcher *m, int i, const char *s, const char *end)
{
	const struct capture *c = &m->captures[i];

	if (i >= m->level) {
		if (i)
			luaL_error(m->lua, "invalid capture index");
		lua_pushlstring(m->lua, s, (size_t)(end - s));
	} else if (c->len == UNFINISHED) {
		luaL_error(m->lua, "unfinished capture");
	} else if (c->len == POSITION) {
		lua_pushinteger(m->lua, c->from - m->begin + 1);
	} else {
		lua_pushlstring(m->lua, c->from, (size_t)c->len);
	}
}

/* All captures; if there are none, what was matched, unless `s` is NULL. */
static int
push_captures(struct matcher *m, const char *s, const char *end)
{
	int count = !m->level && s ? 1 : m->level;

	luaL_checkstack(m->lua, count, "too many captures");
	for (int i = 0; i < count; i++)
		push_capture(m, i, s, end);
	return count;
}

/* ---- find, match ---- */

/* The pattern is argument 2, and short enough for the stack. */
static const char *
check_pattern(lua_State *L)
{
	size_t len;
	const char *p = luaL_checklstring(L, 2, &len);

	if (len > SCRIPT_PATTERN_BYTES)
		luaL_error(L, "a pattern may have %d bytes (SCRIPT_PATTERN_BYTES)",
			   SCRIPT_PATTERN_BYTES);
	return p;
}

/* The text is argument 1. */
static struct matcher
matcher_of(lua_State *L)
{
	size_t len;
	const char *text = luaL_checklstring(L, 1, &len);

	return (struct matcher){ .lua = L, .begin = text, .end = text + len };
}

/* Where argument 3 says that the search begins. */
static const char *
search_begin(const struct matcher *m)
{
	ptrdiff_t len = m->end - m->begin;
	ptrdiff_t from = luaL_optinteger(m->lua, 3, 1);

	if (from < 0)
		from += len + 1;
	from = from > 0 ? from - 1 : 0;
	return m->begin + (from < len ? from : len);
}

static int
find_plain(struct matcher *m, const char *s)
{
	size_t len;
	const char *wanted = luaL_checklstring(m->lua, 2, &len);
	const char *found = memmem(s, (size_t)(m->end - s), wanted, len);

	script_work(m->lua, (size_t)((found ? found : m->end) - s) / BYTES_A_STEP);
	if (!found) {
		lua_pushnil(m->lua);
		return 1;
	}
	lua_pushinteger(m->lua, found - m->begin + 1);
	lua_pushinteger(m->lua, found - m->begin + (ptrdiff_t)len);
	return 2;
}

static int
search(struct matcher *m, const char *s, const char *p, bool places)
{
	bool anchored = *p == '^';

	p += anchored;
	for (; s <= m->end; s++) {
		const char *end;

		m->level = 0;
		end = match(m, s, p);
		if (end && places) {
			lua_pushinteger(m->lua, s - m->begin + 1);
			lua_pushinteger(m->lua, end - m->begin);
			return push_captures(m, NULL, NULL) + 2;
		}
		if (end)
			return push_captures(m, s, end);
		if (anchored)
			break;
	}
	lua_pushnil(m->lua);
	return 1;
}

static int
pattern_find(lua_State *L)
{
	struct matcher m = matcher_of(L);
	const char *p = luaL_checkstring(L, 2);
	const char *s = search_begin(&m);

	if (lua_toboolean(L, 4) || !strpbrk(p, SPECIALS))
		return find_plain(&m, s);
	return search(&m, s, check_pattern(L), true);
}

static int
pattern_match(lua_State *L)
{
	struct matcher m = matcher_of(L);
	const char *p = check_pattern(L);

	return search(&m, search_begin(&m), p, false);
}

/* ---- gmatch ---- */

/* Upvalues: the text, the pattern, where the next search begins. */
static int
gmatch_next(lua_State *L)
{
	size_t len;
	const char *text = lua_tolstring(L, lua_upvalueindex(1), &len);
	const char *p = lua_tostring(L, lua_upvalueindex(2));
	struct matcher m = { .lua = L, .begin = text, .end = text + len };
	const char *s = text + lua_tointeger(L, lua_upvalueindex(3));

	for (; s <= m.end; s++) {
		const char *end;

		m.level = 0;
		end = match(&m, s, p);
		if (!end)
			continue;
		lua_pushinteger(L, end - text + (end == s));
		lua_replace(L, lua_upvalueindex(3));
		return push_captures(&m, s, end);
	}
	return 0;
}

static int
pattern_gmatch(lua_State *L)
{
	(void)luaL_checkstring(L, 1);
	(void)check_pattern(L);
	lua_settop(L, 2);
	lua_pushinteger(L, 0);
	lua_pushcclosure(L, gmatch_next, 3);
	return 1;
}

/* ---- gsub ---- */

/* A text with "%1" in it. */
static void
add_text(struct matcher *m, luaL_Buffer *out, const char *s, const char *end)
{
	size_t len;
	const char *text = lua_tolstring(m->lua, 3, &len);

	for (size_t i = 0; i < len; i++) {
		if (text[i] != '%') {
			luaL_addchar(out, text[i]);
			continue;
		}
		i++;
		if (!isdigit((unsigned char)text[i])) {
			luaL_addchar(out, text[i]);
		} else if (text[i] == '0') {
			luaL_addlstring(out, s, (size_t)(end - s));
		} else {
			push_capture(m, text[i] - '1', s, end);
			luaL_addvalue(out);
		}
	}
	count_steps(m, len / 4);
}

/* What takes the place of the match. */
static void
add_replacement(struct matcher *m, luaL_Buffer *out, const char *s, const char *end)
{
	lua_State *L = m->lua;

	switch (lua_type(L, 3)) {
	case LUA_TFUNCTION:
		lua_pushvalue(L, 3);
		lua_call(L, push_captures(m, s, end), 1);
		break;
	case LUA_TTABLE:
		push_capture(m, 0, s, end);
		lua_gettable(L, 3);
		break;
	default:
		add_text(m, out, s, end);
		return;
	}
	if (!lua_toboolean(L, -1)) {
		lua_pop(L, 1);
		lua_pushlstring(L, s, (size_t)(end - s));
	} else if (!lua_isstring(L, -1)) {
		luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
	}
	luaL_addvalue(out);
}

static int
pattern_gsub(lua_State *L)
{
	struct matcher m = matcher_of(L);
	const char *p = check_pattern(L), *s = m.begin;
	int type = lua_type(L, 3);
	int most = luaL_optint(L, 4, (int)(m.end - m.begin + 1));
	bool anchored = *p == '^';
	luaL_Buffer out;
	int count = 0;

	luaL_argcheck(L,
		      type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION ||
			      type == LUA_TTABLE,
		      3, "string/function/table expected");
	luaL_buffinit(L, &out);
	while (count < most) {
		const char *end;

		m.level = 0;
		end = match(&m, s, p + anchored);
		if (end) {
			count++;
			add_replacement(&m, &out, s, end);
		}
		if (end && end > s)
			s = end;
		else if (s < m.end)
			luaL_addchar(&out, *s++);
		else
			break;
		if (anchored)
			break;
	}
	luaL_addlstring(&out, s, (size_t)(m.end - s));
	luaL_pushresult(&out);
	lua_pushinteger(L, count);
	return 2;
}

void
script_mend_patterns(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{ "find", pattern_find },     { "match", pattern_match },
		{ "gmatch", pattern_gmatch }, { "gfind", pattern_gmatch },
		{ "gsub", pattern_gsub },
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		lua_pushcfunction(L, functions[i].func);
		lua_setfield(L, -2, functions[i].name);
	}
}
