/*
 * Who a request comes from: administrators by name and password, given as HTTP Basic credentials or
 * as CouchDB's AuthSession cookie. Thread-safe after the last auth_add_admin().
 *
 * Without any administrator everybody is one, as in a new PouchDB Server or CouchDB 1: meant for
 * a server that listens on the loopback address only.
 */
#ifndef FROND_SERVER_AUTH_H
#define FROND_SERVER_AUTH_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

enum {
	AUTH_PBKDF2_ROUNDS = 10000,
	AUTH_SESSION_SECONDS = 600, /* CouchDB's default timeout of a cookie */
	AUTH_RENEW_SECONDS = 60,    /* a cookie older than that is replaced by who uses it */
	AUTH_NAME_BYTES = 256,
	AUTH_PASSWORD_BYTES = 1024,
	AUTH_ADMINS_LIMIT = 64,
	AUTH_ROUNDS_LIMIT = 10000000, /* of a hash made elsewhere */
	AUTH_SALT_LIMIT_BYTES = 128,  /* likewise */
	AUTH_SECRET_MIN_BYTES = 16,
};

struct auth;

enum auth_method {
	AUTH_METHOD_NONE, /* no credentials given */
	AUTH_METHOD_BASIC,
	AUTH_METHOD_COOKIE,
};

struct auth_user {
	struct str name; /* empty: anonymous */
	bool admin;
	enum auth_method method;
	bool renew; /* by a cookie that is no longer fresh: a new one keeps the session alive */
};

struct auth *auth_new(void); /* NULL when out of memory */
void auth_free(struct auth *a);

/*
 * Keeps a salted PBKDF2 hash (SHA-256, AUTH_PBKDF2_ROUNDS). STATUS_INVALID for an empty name, a ':'
 * in it, or one too long, and for an empty or too long password; STATUS_EXISTS; STATUS_LIMIT.
 */
MUST_USE enum status auth_add_admin(struct auth *a, struct str name, struct str password,
				    struct err *err);

/*
 * The same from a hash as CouchDB keeps them in its ini files: "-pbkdf2-HASH,SALT,ROUNDS" (SHA-1)
 * or "-pbkdf2:sha256-HASH,SALT,ROUNDS"; HASH in hexadecimal, SALT taken as text. STATUS_INVALID for
 * anything else, and for more than AUTH_ROUNDS_LIMIT rounds.
 */
MUST_USE enum status auth_add_admin_hashed(struct auth *a, struct str name, struct str hashed,
					   struct err *err);

/* True for a value that auth_add_admin_hashed() is meant for. */
bool auth_is_hashed(struct str password);

/*
 * Such a hash of a plain password, in the arena, with AUTH_PBKDF2_ROUNDS and SHA-256. Slow. Errors
 * as auth_add_admin()'s.
 */
MUST_USE enum status auth_hash_password(struct str name, struct str password, struct arena *arena,
					struct str *ret, struct err *err);

/*
 * Replaces the random key that signs cookies, so that they outlive the process or are valid on
 * several. Before the first check; STATUS_INVALID when shorter than AUTH_SECRET_MIN_BYTES.
 */
MUST_USE enum status auth_set_secret(struct auth *a, struct str secret, struct err *err);

bool auth_has_admins(const struct auth *a);

/*
 * From the request's Authorization and Cookie headers (ptr NULL where absent); Basic credentials
 * come before a cookie, other schemes are ignored. STATUS_UNAUTHORIZED ("Name or password is
 * incorrect.") for wrong credentials. A cookie that has expired, has been tampered with or was
 * signed by an earlier process counts as absent, as CouchDB has it: its owner must be able to log
 * in again. A password verified once is remembered (as a keyed digest), so that the slow hash is
 * paid once; it runs through wait_offload(). `ret->name` lives in the arena.
 */
MUST_USE enum status auth_check(struct auth *a, struct str authorization, struct str cookie,
				struct arena *arena, struct auth_user *ret, struct err *err);

/* Name and password, as POST /_session sends them. STATUS_UNAUTHORIZED. */
MUST_USE enum status auth_check_password(struct auth *a, struct str name, struct str password,
					 struct err *err);

/* The value of a fresh AuthSession cookie: base64url(name:hex time:HMAC). In the arena. */
MUST_USE enum status auth_make_cookie(struct auth *a, struct str name, struct arena *arena,
				      struct str *ret);

#endif
