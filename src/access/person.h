/*
 * People of a store: one record for each, whichever door has written it.
 *
 *     (ROOT, 11)        the versionstamp of the newest change of any of them
 *     (ROOT, 11, name)  a person
 *
 * CouchDB's _users documents are one way to write these: their winning revisions become the records
 * in the same transaction. A request reads the record of whom it is from in its own transaction or
 * in one of its own. So who is removed, or has lost a role, is refused on the next request, in
 * every process; what a process remembers of passwords is tied to the version of a record
 * (person_cache.h). The versionstamp is for whoever wants to be woken by any change.
 *
 * Functions that take a transaction leave the commit to their caller. Threading: that of the
 * transaction.
 */
#ifndef FROND_ACCESS_PERSON_H
#define FROND_ACCESS_PERSON_H

#include "access/verifier.h"
#include "base/arena.h"
#include "base/buf.h"
#include "kv/kv.h"

enum {
	PERSON_NAME_BYTES = 256,
	PERSON_ROLES = 1000,
	PERSON_ROLES_BYTES = 60000, /* all of them; leaves room in a value */
};

struct person {
	struct str name;
	struct str *roles;
	size_t roles_count;
	bool has_verifier; /* without one nobody can log in as this person by a password */
	struct verifier verifier;
	bool has_scram;
	struct scram scram;
	/* Of the transaction that has written the record: another one for each change. */
	uint8_t version[KV_VERSIONSTAMP_BYTES];
};

/* True for a name that a record can have. */
bool person_name_is_sound(struct str name);
/* True if the roles fit into a record. */
bool person_roles_fit(const struct str *roles, size_t count);

/*
 * Writes the record of a person, whose name and roles are sound. A transaction cannot read what it
 * has written here.
 */
MUST_USE enum status person_put(struct kv_tx *tx, const struct person *person, struct err *err);

/* Removes a record, if there is one. */
MUST_USE enum status person_clear(struct kv_tx *tx, struct str name);
/* Removes all of them. */
MUST_USE enum status person_clear_all(struct kv_tx *tx);

/* Reads a record into the arena. STATUS_NOT_FOUND; STATUS_NEWER, explained; STATUS_CORRUPT. */
MUST_USE enum status person_get(struct kv_tx *tx, struct str name, struct arena *arena,
				struct person *ret, struct err *err);

/* Told of each person; a failure ends the listing. What it is told lives in the arena. */
typedef enum status person_take(void *arg, const struct person *person);

/* All people, in the order of their names, by snapshot reads. */
MUST_USE enum status person_each(struct kv_tx *tx, struct arena *arena, person_take *take,
				 void *arg, struct err *err);

/* The key whose value changes with every change of a person, for a watch. */
MUST_USE enum status person_watch_key(struct arena *arena, struct str *ret);

/* ---- The record, for checks and tests ---- */

/* Returns the place of the version in the value, for kv_set_versionstamped_value(). */
size_t person_record_put(const struct person *person, struct buf *value);
MUST_USE enum status person_record_parse(struct str value, struct arena *arena, struct person *ret,
					 struct err *err);

/* Has checks of stores know these records; before any other thread. */
void person_register(void);

#endif
