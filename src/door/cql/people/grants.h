/*
 * What a person may do at Cassandra's door, by roles that begin with "cql:".
 *
 *     cql:select@shop           SELECT on all tables of the keyspace shop
 *     cql:modify@shop.orders    INSERT, UPDATE, DELETE, TRUNCATE and BATCH on one table
 *     cql:all                   every permission on every keyspace
 *     cql:alter@roles/ann       ALTER on the role ann; "roles/" alone: on all roles
 *     cql:role@clerks           what the person "clerks" has by such roles
 *     cql:superuser             everything at this door
 *     cql:dropped               DROP ROLE was said: the person is no role here
 *
 * Administrators may do everything. Everybody who has logged in may read the system's keyspaces,
 * except for system_auth.
 *
 * Threading: none.
 */
#ifndef FROND_DOOR_CQL_PEOPLE_GRANTS_H
#define FROND_DOOR_CQL_PEOPLE_GRANTS_H

#include "access/grant.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

#define GRANTS_ROLE "cql:"

enum {
	GRANTS_ROLES = 64,       /* roles that a person has, directly and by others */
	GRANTS_TEXT_BYTES = 512, /* of a grant as a role */
};

/* What a permission is on. Texts are borrowed. */
struct grant_resource {
	bool of_roles;   /* `role`, and not `tables` */
	struct str role; /* empty: all of them */
	struct grant_tables tables;
};

/* Permissions that can be given on it. */
unsigned grant_applicable(const struct grant_resource *on);
bool grant_resource_is(const struct grant_resource *a, const struct grant_resource *b);
/* "<table shop.orders>", as Cassandra tells it. */
void grant_resource_describe(const struct grant_resource *on, struct buf *out);
/* "data/shop/orders", "roles/ann", as Cassandra's tables have it. */
void grant_resource_path(const struct grant_resource *on, struct buf *out);

/* ---- Roles of a person as texts ---- */

enum grants_kind {
	GRANTS_OTHER, /* none of this door, or one that says nothing */
	GRANTS_GRANT,
	GRANTS_MEMBER,
	GRANTS_SUPERUSER,
	GRANTS_DROPPED,
};

struct grants_text {
	enum grants_kind kind;
	unsigned grants; /* GRANTS_GRANT: enum grant */
	struct grant_resource on;
	struct str member; /* GRANTS_MEMBER: the role */
};

/* Borrows the text. */
struct grants_text grants_text_read(struct str role);
/* Appends the texts of these permissions on a resource: "cql:all@…" where they are all of it. */
MUST_USE enum status grants_text_put(unsigned grants, const struct grant_resource *on,
				     struct arena *arena, struct str *texts, size_t *count);

/* ---- What somebody may ---- */

struct grants {
	struct {
		unsigned grants;
		struct grant_resource on;
	} * of;
	size_t count, cap;
	struct str *roles; /* that are granted, as far as they have been told */
	size_t role_count, role_cap;
	bool everything;
};

/* True for the roles of somebody of whom DROP ROLE was said. */
bool grants_are_dropped(const struct str *roles, size_t count);

/*
 * Adds what the roles of a person give, in the arena, which keeps the texts; of one who was dropped
 * nothing. What finds no room does not count.
 */
void grants_add(struct grants *g, const struct str *roles, size_t count, struct arena *arena);

/* grants_add() to nothing, for an administrator or somebody else. */
void grants_of_roles(struct grants *g, const struct str *roles, size_t count, bool admin,
		     struct arena *arena);

/* True if it may all of `wanted` on the resource, or on what contains it. */
bool grants_allow_on(const struct grants *g, unsigned wanted, const struct grant_resource *on);

/* True if it may. `table` empty: on the whole keyspace; both empty: on all keyspaces. */
bool grants_allow(const struct grants *g, enum grant wanted, struct str keyspace, struct str table);

#endif
