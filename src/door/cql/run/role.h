/*
 * Statements about roles, which are the people of every door (people/role.h): CREATE, ALTER and
 * DROP ROLE, GRANT, REVOKE (role.c, role_grant.c, role_change.c), LIST (role_list.c).
 *
 * They change of a person the texts that begin with "cql:" among the roles, and what holds of the
 * person at this door alone; nothing that opens another door. When one has returned, it holds for
 * all connections of this process; other processes follow within about a second.
 *
 * Threading: on the connection's fiber, in no transaction: people are written in their own.
 */
#ifndef FROND_DOOR_CQL_RUN_ROLE_H
#define FROND_DOOR_CQL_RUN_ROLE_H

#include "access/person_door.h"
#include "cql/statement.h"
#include "door/cql/conn/request.h"
#include "door/cql/people/role.h"
#include "door/people.h"

enum {
	ROLE_ATTEMPTS = 16, /* while others change the same person */
};

/* True for a statement that this is for. */
bool role_is(const struct cql_statement *s);

/* Appends the RESULT. `keyspace` is where tables lie whose names say none. */
MUST_USE enum status role_run(struct cql_request *r, const struct cql_statement *s,
			      struct str keyspace);

/* ---- For the files of it ---- */

/* A change of one person (role_change.c). */
struct role_change {
	struct cql_request *r;
	struct str name;
	bool known;              /* the role exists */
	bool has_account;        /* the person has a password of every door */
	struct door_person doc;  /* as it was read; to be made: without a source */
	struct person_door door; /* as it is to be */
};

/*
 * Reads the person and calls `attempt`, again where somebody else has changed the person in between
 * (ROLE_ATTEMPTS). It writes by role_change_write(), and may fail with request_fail().
 */
MUST_USE enum status role_change_run(struct cql_request *r, struct str name,
				     enum status (*attempt)(struct role_change *ch, void *arg),
				     void *arg);

/* Removes the texts that `drops` is true for. */
void role_change_remove(struct role_change *ch,
			bool (*drops)(const struct grants_text *t, void *arg), void *arg);
/* Adds a text that is there once. STATUS_LIMIT. */
MUST_USE enum status role_change_add(struct role_change *ch, struct str text);
/* Writes the person. Fails for texts that are too long together (PERSON_ROLES_BYTES). */
MUST_USE enum status role_change_write(struct role_change *ch);
/* Removes the person of whom nothing is left, or writes what is. */
MUST_USE enum status role_change_remove_person(struct role_change *ch);

/* Fails for the name of an administrator, whom no statement changes. */
MUST_USE enum status role_refuse_admin(struct cql_request *r, struct str name);

/* role_grant.c */
MUST_USE enum status role_grant_run(struct cql_request *r, const struct cql_statement *s,
				    struct str keyspace);
/* The resource of a statement; of GRANT, one that exists. Fails with Cassandra's texts. */
MUST_USE enum status role_resource(struct cql_request *r, const struct cql_statement *s,
				   struct str keyspace, struct grant_resource *ret);
/* Of enum cql_permission. */
unsigned role_permissions(unsigned permissions);
/* True if `role` has the role `of`, itself included, directly or by others. */
MUST_USE enum status role_has(struct cql_request *r, struct str role, struct str of, bool *ret);

/* role_list.c */
MUST_USE enum status role_list_run(struct cql_request *r, const struct cql_statement *s,
				   struct str keyspace);

#endif
