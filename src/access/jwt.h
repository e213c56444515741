/*
 * JSON Web Tokens (RFC 7519) as credentials, as CouchDB's jwt_authentication_handler takes them:
 * three parts in base64url, a header, claims, and a signature that a key of the settings has made.
 *
 * A key has a kind, which its name in the settings begins with: "hmac:", "rsa:", "ec:" or "eddsa:".
 * The algorithm that a token names says in which kind of keys its `kid` is looked up, so no key is
 * ever used by an algorithm of another kind. A curve has one algorithm.
 *
 * The rules never change once they are made; any thread may check tokens by them.
 */
#ifndef FROND_ACCESS_JWT_H
#define FROND_ACCESS_JWT_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

enum {
	JWT_TOKEN_BYTES = 16384,
	JWT_DEPTH_LIMIT = 32, /* objects and arrays inside each other, in a header or in claims */
	JWT_ROLES_LIMIT = 1000,
	JWT_PATH_LIMIT = 16,  /* names on the way to the roles */
	JWT_NAME_BYTES = 256, /* AUTH_NAME_BYTES */
	JWT_KEY_BYTES = 8192,
	JWT_KEYS_LIMIT = 64,
	JWT_RSA_MIN_BITS = 2048,
	JWT_RSA_MAX_BITS = 16384,
	JWT_ID_BYTES = 16,
};

#define JWT_FOR_EVER UINT64_MAX

struct jwt_rules;

/* As the settings have them; NULL: not set. */
struct jwt_choices {
	const char *required_claims; /* "exp, nbf, {iss, \"me\"}" */
	const char *roles_name;      /* of a member of the claims */
	const char *roles_path;      /* "my.nested.roles", and "\." for a dot in a name */
	const char *algorithms;      /* "RS256, ES256"; NULL: all */
};

struct jwt_key_text {
	struct str name; /* "rsa:kid" */
	struct str text; /* base64, or PEM in which \n may stand for the ends of lines */
};

/* What a token that is right says. */
struct jwt_claims {
	struct str name;
	struct str *roles;
	size_t roles_count;
	uint64_t until_s;          /* seconds since 1970 at which it ends, or JWT_FOR_EVER */
	uint8_t key[JWT_ID_BYTES]; /* of the key that has signed it: for jwt_rules_have_key() */
};

/* STATUS_INVALID names the setting that makes no sense; STATUS_LIMIT, STATUS_NOMEM. */
MUST_USE enum status jwt_rules_new(const struct jwt_choices *choices,
				   const struct jwt_key_text *keys, size_t keys_count,
				   struct jwt_rules **ret, struct err *err);
void jwt_rules_free(struct jwt_rules *rules); /* NULL is fine */

/* Other rules, and other keys, have another one. JWT_ID_BYTES. */
const uint8_t *jwt_rules_id(const struct jwt_rules *rules);
bool jwt_rules_have_key(const struct jwt_rules *rules, const uint8_t id[JWT_ID_BYTES]);

/*
 * Checks a token at a moment, in seconds since 1970. `ret` lives in the arena. STATUS_INVALID,
 * STATUS_UNAUTHORIZED, and STATUS_NOT_FOUND for a right token that has nothing where `roles_path`
 * leads, in CouchDB's words; STATUS_LIMIT when the arena is full; STATUS_NOMEM. A signature that
 * costs more than an HMAC is checked in wait_compute().
 */
MUST_USE enum status jwt_check(const struct jwt_rules *rules, struct str token, uint64_t now_s,
			       struct arena *arena, struct jwt_claims *ret, struct err *err);

#endif
