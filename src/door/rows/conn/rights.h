/*
 * What a person may do with tables, by roles that begin with "rows:", or "cql:" as Cassandra's
 * clients have them, since the tables are the same:
 *
 *     rows:select@shop           reading all tables of the schema shop
 *     rows:modify@shop.orders    writing one table
 *     rows:all                   everything, everywhere
 *
 * Administrators may do everything. Threading: none.
 */
#ifndef FROND_DOOR_ROWS_CONN_RIGHTS_H
#define FROND_DOOR_ROWS_CONN_RIGHTS_H

#include "access/grant.h"
#include "base/arena.h"
#include "base/str.h"

enum {
	/* What the door knows of enum grant. */
	ROWS_RIGHTS_KNOWN = GRANT_SELECT | GRANT_MODIFY | GRANT_CREATE | GRANT_ALTER | GRANT_DROP,
};

struct rows_rights {
	struct {
		unsigned rights;
		struct grant_tables on; /* a schema is a keyspace */
	} * of;
	size_t count;
	bool everything;
};

/* Of the roles of a person, in the arena, which keeps the texts. */
void rows_rights_of_roles(struct rows_rights *r, const struct str *roles, size_t count, bool admin,
			  struct arena *arena);

/*
 * True if one of the rights `wanted` is there. `table` empty: on the whole schema; both empty: on
 * all schemas.
 */
bool rows_rights_allow(const struct rows_rights *r, unsigned wanted, struct str schema,
		       struct str table);

/* True if something of the schema may be read or changed: its name is no secret then. */
bool rows_rights_see(const struct rows_rights *r, struct str schema);

#endif
