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

#include "base/arena.h"
#include "base/str.h"

enum {
	ROWS_RIGHTS = 1000, /* that a person may have; what is beyond does not count */
};

enum rows_right {
	ROWS_MAY_SELECT = 1 << 0,
	ROWS_MAY_MODIFY = 1 << 1,
	ROWS_MAY_CREATE = 1 << 2,
	ROWS_MAY_ALTER = 1 << 3,
	ROWS_MAY_DROP = 1 << 4,
	ROWS_MAY_ALL = (1 << 5) - 1,
};

struct rows_rights {
	struct {
		unsigned rights;
		struct str schema; /* empty: all of them */
		struct str table;  /* empty: all of the schema */
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

/* "select"; static. */
const char *rows_right_name(enum rows_right right);

#endif
