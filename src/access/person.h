/*
 * The people of a store. Each has one record, which every door uses.
 *
 *     (ROOT, 11)        the versionstamp of the newest change of any of them, or of their rights
 *     (ROOT, 11, name)  a person
 *
 * CouchDB's _users documents are one way to write these: the winning revision of a document becomes
 * the record in the same transaction. Every request reads its user's record, so a person who was
 * removed or has lost a role is refused on the next request in every process. What a process
 * remembers of checked passwords is tied to the version of a record (person_cache.h). A process can
 * watch the versionstamp to learn that any person has changed.
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
	PERSON_ROLES_BYTES = 60000, /* of all roles together; leaves room in a value */
};

struct person {
	struct str name;
	struct str *roles;
	size_t roles_count;
	bool has_verifier; /* without a verifier this person cannot log in with a password */
	struct verifier verifier;
	bool has_scram;
	struct scram scram;
	/*
	 * The versionstamp of the transaction that wrote the record, so it differs after each
	 * change.
	 */
	uint8_t version[KV_VERSIONSTAMP_BYTES];
};

/* True for a name that a record can have. */
bool person_name_is_sound(struct str name);
/* True if the roles fit into a record. */
bool person_roles_fit(const struct str *roles, size_t count);

/*
 * Writes the record of a person. The name must be sound and the roles must fit. The transaction
 * cannot read the record that it has written, because the value has a versionstamp.
 */
MUST_USE enum status person_put(struct kv_tx *tx, const struct person *person, struct err *err);

/* Removes a record, if there is one, and what holds of the person at doors (person_door.h). */
MUST_USE enum status person_clear(struct kv_tx *tx, struct str name);
/* Removes those of everybody. */
MUST_USE enum status person_clear_all(struct kv_tx *tx);

/*
 * Writes the versionstamp that is watched: for a change that gives or takes rights elsewhere than
 * in these records, which processes have to hear of (follow.h).
 */
MUST_USE enum status people_touch(struct kv_tx *tx);

/* Reads a record into the arena. STATUS_NOT_FOUND; STATUS_NEWER, explained; STATUS_CORRUPT. */
MUST_USE enum status person_get(struct kv_tx *tx, struct str name, struct arena *arena,
				struct person *ret, struct err *err);

/* Called for each person; a failure ends the listing. The person lives in the arena. */
typedef enum status person_take(void *arg, const struct person *person);

/* All people, in the order of their names, by snapshot reads. */
MUST_USE enum status person_each(struct kv_tx *tx, struct arena *arena, person_take *take,
				 void *arg, struct err *err);

/* The key whose value changes with every change of a person, for a watch. */
MUST_USE enum status person_watch_key(struct arena *arena, struct str *ret);

/* ---- The record, for checks and tests ---- */

/* Appends the record. Returns the offset of its version, for kv_set_versionstamped_value(). */
size_t person_record_put(const struct person *person, struct buf *value);
MUST_USE enum status person_record_parse(struct str value, struct arena *arena, struct person *ret,
					 struct err *err);

/*
 * Registers the check of these records with `frond verify`. Must be called before other threads
 * start.
 */
void person_register(void);

#endif
