/*
 * The people of the store, as commands read and change them. They are documents of the database
 * `_users`. Only CouchDB's door knows how to write these, and doors do not include each other: so
 * the program passes functions that write them to the doors that it opens.
 *
 * Threading: from any fiber.
 */
#ifndef FROND_DOOR_PEOPLE_H
#define FROND_DOOR_PEOPLE_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

struct audit_by;
struct person_door;

struct door_person {
	struct str name;
	struct str password; /* a new one, in plain; ptr NULL: it stays what it is */
	struct str *roles;   /* of all doors */
	size_t role_count;
	struct str db;     /* that the person was made in; empty: none, another door has made it */
	struct str custom; /* customData as a JSON text; ptr NULL: none */
	struct str source; /* the document that it was read from; empty: it is to be made */
	bool bare;         /* that document says nothing but the name and the roles */
	/*
	 * What is to hold of the person at the door `own_door` alone (access/person_door.h): `put`
	 * writes it in the same transaction. NULL: that stays.
	 */
	const struct person_door *own;
	struct str own_door;
};

struct door_people {
	/* Everything in the arena. STATUS_NOT_FOUND. */
	enum status (*get)(void *arg, struct str name, struct arena *arena, struct door_person *ret,
			   struct err *err);
	/*
	 * Makes the person, or changes the one that was read. STATUS_DOC_CONFLICT if somebody
	 * else has made or changed it meanwhile. STATUS_INVALID and STATUS_FORBIDDEN, explained,
	 * for a name or a password that cannot be one. A new password is hashed, which is slow.
	 * Whoever has changed the person, `by`, is told to the audit log.
	 */
	enum status (*put)(void *arg, const struct audit_by *by, const struct door_person *person,
			   struct arena *arena, struct err *err);
	/* Likewise; only `name` and `source` of the person count. */
	enum status (*remove)(void *arg, const struct audit_by *by,
			      const struct door_person *person, struct arena *arena,
			      struct err *err);
	/* The names of all, in the arena. */
	enum status (*names)(void *arg, struct arena *arena, struct str **ret, size_t *ret_count,
			     struct err *err);
	void *arg;
};

#endif
