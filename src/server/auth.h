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
	AUTH_NAME_BYTES = 256,
	AUTH_PASSWORD_BYTES = 1024,
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
};

struct auth *auth_new(void); /* NULL when out of memory */
void auth_free(struct auth *a);

/* Keeps a salted PBKDF2 hash. STATUS_INVALID for an empty name, a ':' in it, or one too long. */
MUST_USE enum status auth_add_admin(struct auth *a, struct str name, struct str password,
				    struct err *err);

bool auth_has_admins(const struct auth *a);

/*
 * From the request's Authorization and Cookie headers (ptr NULL where absent). STATUS_UNAUTHORIZED
 * ("Name or password is incorrect.") for wrong ones; a cookie that has expired counts as absent. A
 * password verified once is remembered (as a keyed digest), so that the slow hash is paid once; it
 * runs through wait_offload().
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
