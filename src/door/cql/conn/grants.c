#include "door/cql/conn/grants.h"

static const struct {
	const char *role;
	unsigned grants;
	const char *name;
} table[] = {
	{ "all", GRANT_ALL, "ALL" },
	{ "select", GRANT_SELECT, "SELECT" },
	{ "modify", GRANT_MODIFY, "MODIFY" },
	{ "create", GRANT_CREATE, "CREATE" },
	{ "alter", GRANT_ALTER, "ALTER" },
	{ "drop", GRANT_DROP, "DROP" },
	{ "authorize", GRANT_AUTHORIZE, "AUTHORIZE" },
};

static unsigned
grants_named(struct str name)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (str_eq_nocase(name, str_from_cstr(table[i].role)))
			return table[i].grants;
	return 0;
}

void
grants_of_roles(struct grants *g, const struct str *roles, size_t count, bool admin,
		struct arena *arena)
{
	const struct str prefix = STR(GRANTS_ROLE);
	size_t cap = 0;

	*g = (struct grants){ .everything = admin };
	for (size_t i = 0; i < count && !admin && g->count < GRANTS_MOST; i++) {
		struct str rest, name, on;
		unsigned grants;
		void *room;

		if (!str_starts_with(roles[i], prefix))
			continue;
		rest = str_skip(roles[i], prefix.len);
		name = str_cut(&rest, '@');
		on = rest;
		grants = grants_named(name);
		room = grants ? arena_grow(arena, g->of, g->count, &cap, sizeof(*g->of)) : NULL;
		if (!room)
			continue;
		g->of = room;
		g->of[g->count].grants = grants;
		g->of[g->count].keyspace = str_cut(&on, '.');
		g->of[g->count].table = on;
		g->count++;
	}
}

bool
grants_allow(const struct grants *g, enum grant wanted, struct str keyspace, struct str on)
{
	if (g->everything)
		return true;
	for (size_t i = 0; i < g->count; i++) {
		if (!(g->of[i].grants & wanted))
			continue;
		if (!g->of[i].keyspace.len)
			return true;
		if (!str_eq(g->of[i].keyspace, keyspace))
			continue;
		if (!g->of[i].table.len || str_eq(g->of[i].table, on))
			return true;
	}
	return false;
}

const char *
grant_name(enum grant grant)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].grants == (unsigned)grant)
			return table[i].name;
	return "ALL";
}
