/* Private to access/: what jwt.c is made of. */
#ifndef FROND_ACCESS_JWT_INT_H
#define FROND_ACCESS_JWT_INT_H

#include <openssl/evp.h>

#include "access/jwt.h"

enum jwt_kind {
	JWT_KIND_HMAC,
	JWT_KIND_RSA,
	JWT_KIND_EC,
	JWT_KIND_EDDSA,
	JWT_KINDS,
};

struct jwt_alg {
	const char *name;
	enum jwt_kind kind;
	const EVP_MD *(*md)(void); /* NULL: the algorithm has its own */
	const char *curve;         /* of EC, as OpenSSL calls it */
	size_t coordinate_bytes;   /* of EC: a signature is two of these */
};

enum {
	JWT_ALGS = 10,
};

extern const struct jwt_alg jwt_algs[JWT_ALGS];

/* JWT_ALGS: there is no such algorithm. */
size_t jwt_alg_find(struct str name);

struct jwt_key {
	enum jwt_kind kind;
	struct str kid;
	struct str secret;    /* of an HMAC */
	EVP_PKEY *public_key; /* of all others; owned */
	uint8_t id[JWT_ID_BYTES];
};

/* Reads a key of the settings; its texts live in the arena. STATUS_INVALID, STATUS_NOMEM. */
MUST_USE enum status jwt_key_read(const struct jwt_key_text *from, struct arena *arena,
				  struct jwt_key *ret, struct err *err);
void jwt_key_release(struct jwt_key *key);

/* True if the key, which is of the algorithm's kind, has made the signature. */
bool jwt_key_verify(const struct jwt_key *key, const struct jwt_alg *alg, struct str message,
		    struct str signature);

/* The first bytes of a SHA-256. */
MUST_USE enum status jwt_digest(struct str data, uint8_t ret[JWT_ID_BYTES]);

enum jwt_claim {
	JWT_CLAIM_ALG,
	JWT_CLAIM_EXP,
	JWT_CLAIM_IAT,
	JWT_CLAIM_ISS,
	JWT_CLAIM_KID,
	JWT_CLAIM_NBF,
	JWT_CLAIM_SIG,
	JWT_CLAIM_TYP,
	JWT_CLAIM_COUNT,
};

struct jwt_rules {
	struct arena *arena; /* has all texts */
	uint8_t id[JWT_ID_BYTES];
	bool required[JWT_CLAIM_COUNT];
	struct str issuer; /* ptr NULL: any */
	bool allowed[JWT_ALGS];
	struct str roles_path[JWT_PATH_LIMIT];
	size_t roles_path_count;
	bool roles_required; /* a token without roles there is refused */
	struct jwt_key keys[JWT_KEYS_LIMIT];
	size_t keys_count;
};

#endif
