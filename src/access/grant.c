#include "access/grant.h"

static const struct {
	const char *role;
	enum grant grants;
	const char *name;
} table[] = {
	{ "all", GRANT_ALL, "ALL" },
	{ "select", GRANT_SELECT, "SELECT" },
	{ "modify", GRANT_MODIFY, "MODIFY" },
	{ "create", GRANT_CREATE, "CREATE" },
	{ "alter", GRANT_ALTER, "ALTER" },
	{ "drop", GRANT_DROP, "DROP" },
	{ "authorize", GRANT_AUTHORIZE, "AUTHORIZE" },
	{ "describe", GRANT_DESCRIBE, "DESCRIBE" },
};

enum {
	GRANTS_KNOWN = sizeof(table) / sizeof(table[0]),
};

unsigned
grants_named(struct str name)
{
	for (size_t i = 0; i < GRANTS_KNOWN; i++)
		if (str_eq_nocase(name, str_from_cstr(table[i].role)))
			return table[i].grants;
	return 0;
}

/* Where in the table it is; several are "all". */
static size_t
place_of(enum grant grant)
{
	for (size_t i = 0; i < GRANTS_KNOWN; i++)
		if (table[i].grants == grant)
			return i;
	return 0;
}

const char *
grant_word(enum grant grant)
{
	return table[place_of(grant)].role;
}

const char *
grant_name(enum grant grant)
{
	return table[place_of(grant)].name;
}

struct grant_tables
grant_tables_read(struct str text)
{
	struct grant_tables on = { .keyspace = str_cut(&text, '.') };

	on.table = text;
	return on;
}

bool
grant_tables_contain(const struct grant_tables *outer, const struct grant_tables *on)
{
	if (!outer->keyspace.len)
		return true;
	return str_eq(outer->keyspace, on->keyspace) &&
	       (!outer->table.len || str_eq(outer->table, on->table));
}
