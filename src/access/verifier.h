/*
 * Verifiers are what is stored instead of a password: it can be checked by them, and not recovered.
 *
 * A salt is taken as text, because CouchDB hashes the digits of a salt, and not the bytes that they
 * stand for. A SCRAM verifier has a salt of its own: whoever knows the salted password of SCRAM can
 * log in, so it must never be one of the hashes that CouchDB shows to administrators.
 *
 * Threading: none of its own. Deriving is slow on purpose, so it runs in wait_compute().
 */
#ifndef FROND_ACCESS_VERIFIER_H
#define FROND_ACCESS_VERIFIER_H

#include <openssl/evp.h>

#include "base/status.h"
#include "base/str.h"

enum {
	VERIFIER_SALT_BYTES = 128, /* the longest salt, as a text */
	VERIFIER_HASH_BYTES = 64,  /* the longest hash */
	VERIFIER_ROUNDS = 10000000,
	/*
	 * MongoDB's own length for SHA-256: drivers that are made of its C library refuse any other
	 * one. Older records have SCRAM_SALT_SHORT_BYTES, which the others take, too.
	 */
	SCRAM_SALT_BYTES = 28,
	SCRAM_SALT_SHORT_BYTES = 16,
	SCRAM_KEY_BYTES = 32,        /* of SHA-256 */
	SCRAM_PREPARED_BYTES = 4096, /* of a password that is prepared; a longer one is not */
	SCRAM_PREPARED_GROWTH = 18,  /* that many times as long it becomes at most */
};

/* Stored: never renumber. */
enum verifier_scheme {
	VERIFIER_SIMPLE = 1,        /* SHA-1 of the password and the salt; CouchDB before 1.3 */
	VERIFIER_PBKDF2 = 2,        /* PBKDF2 with HMAC */
	VERIFIER_SIMPLE_PBKDF2 = 3, /* PBKDF2 of the digits of a SIMPLE hash */
};

/* Stored: never renumber. */
enum verifier_digest {
	VERIFIER_SHA1 = 1,
	VERIFIER_SHA224 = 2,
	VERIFIER_SHA256 = 3,
	VERIFIER_SHA384 = 4,
	VERIFIER_SHA512 = 5,
};

struct verifier {
	enum verifier_scheme scheme;
	enum verifier_digest digest;
	uint64_t rounds; /* 1 to VERIFIER_ROUNDS; SIMPLE: not used */
	char salt[VERIFIER_SALT_BYTES];
	size_t salt_len;
	uint8_t hash[VERIFIER_HASH_BYTES];
	size_t hash_len; /* the digest's */
};

/* StoredKey and ServerKey of SCRAM-SHA-256 (RFC 5802). */
struct scram {
	uint64_t rounds;
	uint8_t salt[SCRAM_SALT_BYTES];
	size_t salt_len; /* SCRAM_SALT_BYTES or SCRAM_SALT_SHORT_BYTES */
	uint8_t stored_key[SCRAM_KEY_BYTES];
	uint8_t server_key[SCRAM_KEY_BYTES];
};

/* NULL: there is no such digest. */
const EVP_MD *verifier_md(enum verifier_digest digest);
/* CouchDB's name of a digest: "sha" for SHA-1, "sha256". */
const char *verifier_digest_name(enum verifier_digest digest);
bool verifier_digest_find(struct str name, enum verifier_digest *ret);

/* True if all members are within their limits and fit each other. */
bool verifier_is_sound(const struct verifier *v);

/* The hash of a password under the verifier's salt. False: OpenSSL cannot compute it. */
bool verifier_derive(const struct verifier *v, struct str password,
		     uint8_t ret[VERIFIER_HASH_BYTES]);

/* Compares in a time that does not depend on where they differ. */
bool verifier_has_hash(const struct verifier *v, const uint8_t *hash);

/* Sets the verifier's salt to the digits of `n` random bytes. */
void verifier_make_salt(struct verifier *v, size_t n);

/*
 * Makes the keys of a password, which is prepared by RFC 4013 (SASLprep) as clients do, from
 * `s->rounds` and the salt. False: OpenSSL cannot compute them.
 */
bool scram_derive(struct str password, struct scram *s);
/* The same under a fresh salt. */
bool scram_make(struct str password, uint64_t rounds, struct scram *ret);

#endif
