/*
 * What a person may do, by roles that begin with "cql:": one of Cassandra's permissions, and what
 * it is for.
 *
 *     cql:select@shop           SELECT on all tables of the keyspace shop
 *     cql:modify@shop.orders    INSERT, UPDATE, DELETE, TRUNCATE and BATCH on one table
 *     cql:all                   everything, everywhere
 *
 * Administrators may do everything. Everybody who has logged in may read the system's keyspaces.
 *
 * Threading: none.
 */
#ifndef FROND_DOOR_CQL_CONN_GRANTS_H
#define FROND_DOOR_CQL_CONN_GRANTS_H

#include "base/arena.h"
#include "base/str.h"

#define GRANTS_ROLE "cql:"

enum {
	GRANTS_MOST = 1000, /* that a person may have; what is beyond does not count */
};

enum grant {
	GRANT_SELECT = 1 << 0,
	GRANT_MODIFY = 1 << 1,
	GRANT_CREATE = 1 << 2,
	GRANT_ALTER = 1 << 3,
	GRANT_DROP = 1 << 4,
	GRANT_AUTHORIZE = 1 << 5,
	GRANT_ALL = (1 << 6) - 1,
};

struct grants {
	struct {
		unsigned grants;
		struct str keyspace; /* empty: all of them */
		struct str table;    /* empty: all of the keyspace */
	} * of;
	size_t count;
	bool everything;
};

/* Of the roles of a person, in the arena, which keeps the texts. */
void grants_of_roles(struct grants *g, const struct str *roles, size_t count, bool admin,
		     struct arena *arena);

/* True if it may. `table` empty: on the whole keyspace; both empty: on all keyspaces. */
bool grants_allow(const struct grants *g, enum grant wanted, struct str keyspace, struct str table);

/* "SELECT". */
const char *grant_name(enum grant grant);

#endif
