/*
 * Remembers passwords that were checked lately, so that each slow hash is computed once.
 *
 * The process keeps keyed digests of name and password. Beside each it keeps what the password was
 * checked against: the version of a person's record, or the hash of an administrator. A changed
 * record has another version, so an old entry is never found again, and no process has to be told
 * to drop it. The table has a fixed size. An entry that was replaced costs one more hash at the
 * next request.
 *
 * Thread-safe.
 */
#ifndef FROND_ACCESS_PERSON_CACHE_H
#define FROND_ACCESS_PERSON_CACHE_H

#include "base/status.h"
#include "base/str.h"

enum {
	PERSON_CACHE_ENTRIES = 65536,
	PERSON_CACHE_DIGEST_BYTES = 32,
	PERSON_CACHE_IDENTITY_BYTES = 12,
};

struct person_proof {
	uint8_t identity[PERSON_CACHE_IDENTITY_BYTES]; /* of what the password is checked against */
	uint8_t digest[PERSON_CACHE_DIGEST_BYTES];     /* of name and password */
};

/* Computes the digest of a name and a password, under a key that only this process has. */
MUST_USE enum status person_proof_digest(struct str name, struct str password,
					 struct person_proof *ret);

bool person_cache_has(const struct person_proof *proof);
void person_cache_add(const struct person_proof *proof);

#endif
