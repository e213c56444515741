#include "door/rows/conn/rights.h"

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

void
rows_rights_of_roles(struct rows_rights *r, const struct str *roles, size_t count, bool admin,
		     struct arena *arena)
{
	size_t cap = 0;

	*r = (struct rows_rights){ .everything = admin };
	for (size_t i = 0; i < count && !admin && r->count < GRANTS_MOST; i++) {
		struct str rest, name;
		unsigned rights;
		void *room;

		if (!role_cut(roles[i], &rest))
			continue;
		name = str_cut(&rest, '@');
		rights = grants_named(name) & ROWS_RIGHTS_KNOWN;
		room = rights ? arena_grow(arena, r->of, r->count, &cap, sizeof(*r->of)) : NULL;
		if (!room)
			continue;
		r->of = room;
		r->of[r->count].rights = rights;
		r->of[r->count].on = grant_tables_read(rest);
		r->count++;
	}
}

bool
rows_rights_allow(const struct rows_rights *r, unsigned wanted, struct str schema, struct str table)
{
	const struct grant_tables on = { schema, table };

	if (r->everything)
		return true;
	for (size_t i = 0; i < r->count; i++)
		if (r->of[i].rights & wanted && grant_tables_contain(&r->of[i].on, &on))
			return true;
	return false;
}

bool
rows_rights_see(const struct rows_rights *r, struct str schema)
{
	if (r->everything)
		return true;
	for (size_t i = 0; i < r->count; i++)
		if (!r->of[i].on.keyspace.len || str_eq(r->of[i].on.keyspace, schema))
			return true;
	return false;
}
