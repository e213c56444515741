/*
 * What a person may do, by MongoDB's built-in roles. A role of a person in frond counts here if it
 * begins with "mongo:":
 *
 *     mongo:readWrite@shop     the role readWrite on the database shop
 *     mongo:root               a role on the database admin, as those that reach all databases are
 *
 * Threading: none.
 */
#ifndef FROND_DOOR_MONGO_TXN_RIGHTS_H
#define FROND_DOOR_MONGO_TXN_RIGHTS_H

#include "base/arena.h"
#include "base/str.h"

#define RIGHTS_ROLE "mongo:"

enum {
	RIGHTS_DATABASES = 100, /* of which a person has rights; what is beyond does not count */
};

enum right {
	RIGHT_READ = 1 << 0,
	RIGHT_WRITE = 1 << 1,
	RIGHT_ADMIN = 1 << 2,   /* collections, indexes, figures of a database */
	RIGHT_USERS = 1 << 3,   /* people and their roles */
	RIGHT_MONITOR = 1 << 4, /* figures of the server, operations of others */
	RIGHT_MANAGE = 1 << 5,  /* the replica set and its parameters */
	RIGHT_HOST = 1 << 6,    /* operations of others are ended, parameters of the server set */
	RIGHT_RESTORE = 1 << 7, /* documents are added, collections and indexes made and changed */
	RIGHT_DROP = 1 << 8,    /* databases are dropped */
	RIGHT_ALL = (1 << 9) - 1,
};

/* A role, as clients are told it. */
struct rights_role {
	struct str name;
	struct str db;
};

struct rights {
	unsigned any; /* on each database */
	struct {
		struct str db;
		unsigned rights;
	} * of;
	size_t count;
	struct rights_role *roles;
	size_t role_count;
};

void rights_of_everybody(struct rights *r);

/*
 * Of the roles of a person, in the arena, which keeps the texts. Roles that MongoDB does not have
 * are left out.
 */
void rights_of_roles(struct rights *r, const struct str *roles, size_t count, bool admin,
		     struct arena *arena);

/* True for a role that MongoDB has on that database. */
bool rights_role_exists(const struct rights_role *role);

/* The names of MongoDB's roles, one after the other; false behind the last. */
bool rights_role_at(size_t at, struct str *ret);

/* The rights on a database. */
unsigned rights_on(const struct rights *r, struct str db);

#endif
