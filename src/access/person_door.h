/*
 * What of a person holds at one door alone.
 *
 *     (ROOT, 18, name, door)  a person at a door
 *
 * A door whose protocol has commands about people may give them passwords of that door's own, or
 * shut it to them. None of that opens or shuts another door: a person who has passwords of a door's
 * own logs in there by these and not by the password of every door, and everywhere else they are no
 * passwords at all. Nor are SCRAM's keys made of them. A person without such a record logs in by
 * the password of every door.
 *
 * The record is in no document, as SCRAM's keys are not: it is not replicated and not dumped. It
 * goes with the person's record (person_clear()). Writing one counts as a change of people, so that
 * connections look the person up again.
 *
 * A hash is PBKDF2 with SHA-256 of the digits of the password's SHA-256, so that a password can be
 * given as that digest, too. All of a record have one salt and one number of rounds: a login costs
 * one slow hash, however many passwords there are, as it does for a name that nobody has.
 *
 * Threading: on the thread or fiber that has the transaction; plain values otherwise.
 */
#ifndef FROND_ACCESS_PERSON_DOOR_H
#define FROND_ACCESS_PERSON_DOOR_H

#include "access/person.h"

enum {
	PERSON_DOOR_PASSWORDS = 16,
	PERSON_DOOR_HASH_BYTES = 32,   /* of SHA-256 */
	PERSON_DOOR_DIGEST_BYTES = 64, /* the digits of one */
	PERSON_DOOR_SALT_BYTES = 16,
	PERSON_DOOR_NAME_BYTES = 16, /* of a door */
	PERSON_DOOR_PAGE = 64,       /* people whose records are asked for together */
};

/* What a person logs in by. Stored: never renumber. */
enum person_door_by {
	PERSON_DOOR_BY_OWN = 0,  /* the password of every door */
	PERSON_DOOR_BY_LIST = 1, /* the passwords of this door; without one, by nothing */
	/* Any password, as long as the server has no administrator; then by nothing. */
	PERSON_DOOR_BY_ANY = 2,
};

struct person_door {
	bool off; /* by nothing, whatever `by` says */
	enum person_door_by by;
	uint64_t rounds; /* 1 to VERIFIER_ROUNDS */
	uint8_t salt[PERSON_DOOR_SALT_BYTES];
	uint8_t hashes[PERSON_DOOR_PASSWORDS][PERSON_DOOR_HASH_BYTES];
	size_t count; /* more than 0 with PERSON_DOOR_BY_LIST only */
	/* As of struct person. */
	uint8_t version[KV_VERSIONSTAMP_BYTES];
};

/* A record without a password, with a fresh salt, that lets nobody in. */
void person_door_init(struct person_door *at, uint64_t rounds);
/* True if it says nothing else than no record does. */
bool person_door_is_plain(const struct person_door *at);

/* The digits of a password's SHA-256. False: OpenSSL cannot compute it. */
bool person_door_digest(struct str password, char ret[static PERSON_DOOR_DIGEST_BYTES]);
/*
 * The hash of a password that is given by these digits. Slow; runs in wait_compute(). False: as
 * above.
 */
bool person_door_hash(const struct person_door *at, struct str digest,
		      uint8_t ret[static PERSON_DOOR_HASH_BYTES]);

/* Where the hash is in the list; `count`: it is not. Takes as long wherever it is. */
size_t person_door_find(const struct person_door *at,
			const uint8_t hash[static PERSON_DOOR_HASH_BYTES]);

/* Writes the record, or clears it if it is plain. The name must be sound. */
MUST_USE enum status person_door_put(struct kv_tx *tx, struct str name, struct str door,
				     const struct person_door *at, struct err *err);

/* Without a record, `*ret` is a plain one. STATUS_NEWER, explained; STATUS_CORRUPT. */
MUST_USE enum status person_door_get(struct kv_tx *tx, struct str name, struct str door,
				     struct person_door *ret, struct err *err);

/* Called for each person; a failure ends the listing. Both live until it returns. */
typedef enum status person_at_door_take(void *arg, const struct person *person,
					const struct person_door *at);

/*
 * All people with what holds of each at the door, in the order of their names, by snapshot reads.
 * The arena holds PERSON_DOOR_PAGE people at a time.
 */
MUST_USE enum status person_at_door_each(struct kv_tx *tx, struct str door, struct arena *arena,
					 person_at_door_take *take, void *arg, struct err *err);

/* ---- The record, for checks and tests ---- */

size_t person_door_record_put(const struct person_door *at, struct buf *value);
MUST_USE enum status person_door_record_parse(struct str value, struct person_door *ret,
					      struct err *err);

/* As person_register(). */
void person_door_register(void);

#endif
