/*
 * People as Cassandra's clients see them: roles. Each person of the store is a role, unless DROP
 * ROLE has removed the person from this door, and so is each administrator that the settings name.
 * What a role may do at this door is written as texts in the list of roles in the person's document
 * (grants.h). A password for this door alone, and whether the role may log in, lie in a record of
 * the person for each door (access/person_door.h).
 *
 * Threading: any fiber.
 */
#ifndef FROND_DOOR_CQL_PEOPLE_ROLE_H
#define FROND_DOOR_CQL_PEOPLE_ROLE_H

#include "access/person_door.h"
#include "door/cql/people/grants.h"
#include "settings/live.h"

#define ROLE_DOOR STR("cql")

enum {
	/* Of those who are listed at a time, with their texts. */
	ROLE_PAGE_BYTES = PERSON_DOOR_PAGE * 2 * PERSON_ROLES_BYTES,
};

/* A plain value; what it points to is borrowed. */
struct role {
	struct str name;
	bool admin; /* of the settings: a superuser whom no statement changes */
	bool superuser;
	bool login;
	const struct str *texts; /* the roles of the person, of all doors */
	size_t text_count;
};

/* True for the name of an administrator. */
bool role_is_admin(struct settings_live *live, struct str name);

/* STATUS_NOT_FOUND: there is no such role. In the arena. */
MUST_USE enum status role_read(struct kv_tx *tx, struct settings_live *live, struct str name,
			       struct arena *arena, struct role *ret, struct err *err);

/* Called for each role, which lives until it returns; a failure ends the listing. */
typedef enum status role_take(void *arg, const struct role *role);

/*
 * Administrators, then people in the order of their names, by snapshot reads. The memory for it is
 * counted by `part`.
 */
MUST_USE enum status role_each(struct kv_tx *tx, struct settings_live *live,
			       struct budget_part *part, role_take *take, void *arg,
			       struct err *err);

/*
 * Adds what the roles give that `g` names, and those that these name: GRANTS_ROLES at most. In the
 * arena.
 */
MUST_USE enum status role_follow(struct kv_tx *tx, struct settings_live *live, struct grants *g,
				 struct arena *arena);

/* The same in a transaction of its own. */
MUST_USE enum status role_follow_all(struct kv_store *store, struct settings_live *live,
				     struct grants *g, struct arena *arena, struct err *err);

#endif
