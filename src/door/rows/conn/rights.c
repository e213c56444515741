#include "door/rows/conn/rights.h"

static const struct {
	const char *name;
	unsigned rights;
} names[] = {
	{ "all", ROWS_MAY_ALL },       { "select", ROWS_MAY_SELECT }, { "modify", ROWS_MAY_MODIFY },
	{ "create", ROWS_MAY_CREATE }, { "alter", ROWS_MAY_ALTER },   { "drop", ROWS_MAY_DROP },
};

/* What a role says behind its prefix; false if it is of another door. */
static bool
role_cut(struct str role, struct str *ret)
{
	static const struct str prefixes[] = { { "rows:", 5 }, { "cql:", 4 } };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (str_starts_with(role, prefixes[i])) {
			*ret = str_skip(role, prefixes[i].len);
			return true;
		}
	}
	return false;
}

static unsigned
rights_named(struct str name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_eq_nocase(name, str_from_cstr(names[i].name)))
			return names[i].rights;
	return 0;
}

void
rows_rights_of_roles(struct rows_rights *r, const struct str *roles, size_t count, bool admin,
		     struct arena *arena)
{
	size_t cap = 0;

	*r = (struct rows_rights){ .everything = admin };
	for (size_t i = 0; i < count && !admin && r->count < ROWS_RIGHTS; i++) {
		struct str rest, name;
		unsigned rights;
		void *room;

		if (!role_cut(roles[i], &rest))
			continue;
		name = str_cut(&rest, '@');
		rights = rights_named(name);
		room = rights ? arena_grow(arena, r->of, r->count, &cap, sizeof(*r->of)) : NULL;
		if (!room)
			continue;
		r->of = room;
		r->of[r->count].rights = rights;
		r->of[r->count].schema = str_cut(&rest, '.');
		r->of[r->count].table = rest;
		r->count++;
	}
}

bool
rows_rights_allow(const struct rows_rights *r, unsigned wanted, struct str schema, struct str table)
{
	if (r->everything)
		return true;
	for (size_t i = 0; i < r->count; i++) {
		if (!(r->of[i].rights & wanted))
			continue;
		if (!r->of[i].schema.len)
			return true;
		if (!str_eq(r->of[i].schema, schema))
			continue;
		if (!r->of[i].table.len || str_eq(r->of[i].table, table))
			return true;
	}
	return false;
}

bool
rows_rights_see(const struct rows_rights *r, struct str schema)
{
	if (r->everything)
		return true;
	for (size_t i = 0; i < r->count; i++)
		if (!r->of[i].schema.len || str_eq(r->of[i].schema, schema))
			return true;
	return false;
}

const char *
rows_right_name(enum rows_right right)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].rights == (unsigned)right)
			return names[i].name;
	return "all";
}
