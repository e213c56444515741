/*
 * Finds out who a request comes from, by name and password in HTTP Basic credentials or by
 * CouchDB's AuthSession cookie: an administrator of the settings, or else a person of the store
 * (person.h). Where the settings want it, a token says itself who somebody is (jwt.h). Thread-safe
 * after the last auth_add_admin() and auth_set_…().
 *
 * As long as no administrator is configured, every request has an administrator's rights, as in a
 * new PouchDB Server or CouchDB 1. That is meant for a server that listens on the loopback address
 * only.
 */
#ifndef FROND_ACCESS_AUTH_H
#define FROND_ACCESS_AUTH_H

#include "access/audit.h"
#include "access/hash_queue.h"
#include "access/jwt.h"
#include "access/lockout.h"
#include "access/verifier.h"
#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

enum {
	AUTH_ROUNDS = 600000, /* of PBKDF2, for a password that was given in plain */
	AUTH_HASH_THREADS = 1,
	AUTH_HASH_QUEUE = 64,
	AUTH_SESSION_SECONDS = 600, /* CouchDB's default timeout of a cookie */
	AUTH_NAME_BYTES = 256,
	AUTH_PASSWORD_BYTES = 1024,
	AUTH_ADMINS_LIMIT = 64,
	AUTH_ROUNDS_LIMIT = 10000000,
	AUTH_SALT_LIMIT_BYTES = 128, /* likewise */
	AUTH_SECRET_MIN_BYTES = 16,
	AUTH_HANDLERS_LIMIT = 8,
	AUTH_DIGESTS_LIMIT = 8,
	AUTH_RENEWALS_LIMIT = 32, /* people whose hashes are being upgraded at a time */
};

struct auth;
struct kv_store;
struct kv_tx;
struct person;
struct person_door;

enum auth_method {
	AUTH_METHOD_NONE, /* no credentials given */
	AUTH_METHOD_BASIC,
	AUTH_METHOD_COOKIE,
	AUTH_METHOD_JWT,
	AUTH_METHOD_PROXY,
};

struct auth_user {
	struct str name; /* empty: anonymous */
	struct str *roles;
	size_t roles_count;
	bool admin; /* an administrator of the server: `roles` has "_admin" */
	enum auth_method method;
	/* The token has no roles where the settings look for them: CouchDB answers 404. */
	bool lacks_roles;
	/* The password was hashed, or the token verified, for this request: not remembered. */
	bool fresh;
	/* The credentials that were given on purpose, right or wrong; AUTH_METHOD_NONE: none. */
	enum auth_method attempt;
	struct str tried; /* the name in these; ptr NULL: there is none */
	bool renew;       /* the cookie is no longer fresh: the answer should have a new one */
	uint64_t until_s; /* of a token: when it ends */
	uint8_t key[JWT_ID_BYTES]; /* of a token: the id of its key; else of the password */
};

/* The client that sends the credentials. Each member may be empty or NULL. */
struct auth_client {
	struct audit_by by;     /* its address counts for lock-outs and turns of hashing */
	struct event *gone;     /* set when the client has disconnected */
	struct kv_store *store; /* holds people; NULL: only administrators log in */
	struct kv_tx *tx;       /* an open transaction to read records in; NULL: one is begun */
	/*
	 * The door whose own passwords count, and which may be shut to a person (person_door.h);
	 * empty: nothing but the password of every door counts.
	 */
	struct str door;
	/* Called before `tx` waits for a record, so that others join the round trip; or NULL. */
	void (*ahead)(void *arg);
	void *ahead_arg;
	/* The headers of a proxy; ptr NULL: absent. */
	struct str proxy_name;
	struct str proxy_roles;
	struct str proxy_token;
};

/*
 * Writes a person's verifiers where they are kept. Called after a password was right whose hash is
 * weaker than the settings want, with a hash under the same salt. The record may have changed
 * since; a failure changes nothing for the login.
 */
typedef enum status auth_upgrade(const struct auth_client *client, const struct person *person,
				 const struct verifier *verifier, const struct scram *scram);

/* Before the first login: what logins of all doors call. Without it hashes stay. */
void auth_set_upgrade(auth_upgrade *upgrade);

struct auth *auth_new(void); /* NULL when out of memory */
void auth_free(struct auth *a);

/*
 * Adds an administrator with a hashed password in the form of CouchDB's ini files:
 * "-pbkdf2-HASH,SALT,ROUNDS" (SHA-1) or "-pbkdf2:sha256-HASH,SALT,ROUNDS"; HASH is in hexadecimal,
 * SALT is taken as text. STATUS_INVALID for anything else, for more than AUTH_ROUNDS_LIMIT rounds,
 * and for a name that is empty, too long or has a ':' in it; STATUS_EXISTS; STATUS_LIMIT.
 */
MUST_USE enum status auth_add_admin_hashed(struct auth *a, struct str name, struct str hashed,
					   struct err *err);

/* True for a value that auth_add_admin_hashed() is meant for. */
bool auth_is_hashed(struct str password);

/* How a password that was given in plain is hashed. */
struct auth_hashing {
	uint64_t rounds;
	/*
	 * The salt is derived from this secret and the name, so that every server that is given the
	 * same password, name and secret makes the same hash. Empty: the salt is random.
	 */
	struct str secret;
	/* Whose turn in the queue for hashing it is. NULL: it is hashed at once. */
	const struct auth_client *client;
	struct hash_queue_limits limits;
};

/* STATUS_INVALID for a plain password that is empty or too long. */
MUST_USE enum status auth_check_plain(struct str name, struct str password, struct err *err);

/*
 * Hashes a plain password in the form that auth_add_admin_hashed() takes, with SHA-256. `ret` lives
 * in the arena. Slow; runs in wait_compute(). Errors as auth_check_plain()'s; STATUS_NOMEM; and as
 * auth_check()'s of the queue.
 */
MUST_USE enum status auth_hash_password(struct str name, struct str password,
					const struct auth_hashing *how, struct arena *arena,
					struct str *ret, struct err *err);

/*
 * Makes both verifiers of a person's password. `verifier` is PBKDF2 with SHA-256, under the salt
 * that it already has, or under a random one if it has none. The keys of SCRAM get a salt of their
 * own. The errors are those of auth_hash_password().
 */
MUST_USE enum status auth_make_verifiers(struct str password, const struct auth_hashing *how,
					 struct verifier *verifier, struct scram *scram,
					 struct err *err);

/* The keys of SCRAM alone, with `how->rounds`. */
MUST_USE enum status auth_make_scram(struct str password, const struct auth_hashing *how,
				     struct scram *ret, struct err *err);

/*
 * The hash of a password of one door (person_door.h), by the digits of its SHA-256, into
 * PERSON_DOOR_HASH_BYTES. Of `how`, rounds and secret do not count. Errors as above.
 */
MUST_USE enum status auth_hash_at_door(const struct person_door *at, struct str digest,
				       const struct auth_hashing *how, uint8_t *ret,
				       struct err *err);

/* Limits the hashing on fibers; before the first check. */
void auth_set_hash_limits(struct auth *a, const struct hash_queue_limits *limits);

/*
 * Sets the rules by which a name is locked out after wrong passwords. By default no name ever is.
 * Must be called before the first check.
 */
void auth_set_lockout(struct auth *a, const struct lockout_rules *rules);

/*
 * Sets the rounds of PBKDF2 for passwords that are set from now on. Must be called before the first
 * check.
 */
void auth_set_rounds(struct auth *a, uint64_t rounds);
/* False: hashes stay as weak as they are. Likewise. */
void auth_set_upgrades(struct auth *a, bool upgrades);

/* Sets how long a cookie is valid. Must be called before the first check. */
void auth_set_session(struct auth *a, uint64_t seconds);
uint64_t auth_session_seconds(const struct auth *a);

/*
 * Replaces the random key that cookies are signed with, so that they outlive the process or are
 * valid on several. Before the first check; STATUS_INVALID when shorter than AUTH_SECRET_MIN_BYTES.
 */
MUST_USE enum status auth_set_secret(struct auth *a, struct str secret, struct err *err);

/*
 * How long cookies hold that were signed with the secret of before; 0, the default: not at all.
 * Before the first check.
 */
void auth_set_overlap(struct auth *a, uint64_t seconds);

/* `a` takes the place of `former`, whose secret is the one of before, if it is another one. */
void auth_succeed(struct auth *a, const struct auth *former);

/*
 * Which credentials are taken, in which order: "{chttpd_auth, cookie_authentication_handler}, …",
 * as CouchDB's setting has it. By default name and password, then a cookie. Before the first check;
 * STATUS_INVALID.
 */
MUST_USE enum status auth_set_handlers(struct auth *a, struct str text, struct err *err);
size_t auth_handlers(const struct auth *a, const enum auth_method **ret);
bool auth_has_handler(const struct auth *a, enum auth_method method);

/*
 * How a proxy shows that it has authenticated a user: by the HMAC of the name with this secret, in
 * hexadecimal digits, by one of the algorithms ("sha256, sha"). Without `use_secret` every client
 * may name any user. Before the first check; STATUS_INVALID.
 */
MUST_USE enum status auth_set_proxy(struct auth *a, bool use_secret, struct str secret,
				    struct str algorithms, struct err *err);

/* By which rules tokens are checked, which become the credentials'. Before the first check. */
void auth_set_tokens(struct auth *a, struct jwt_rules *rules);

bool auth_has_admins(const struct auth *a);

/*
 * From the request's Authorization and Cookie headers (ptr NULL where absent), by the first handler
 * that finds something meant for it; schemes of no handler are ignored. STATUS_UNAUTHORIZED ("Name
 * or password is incorrect.") for wrong credentials; also STATUS_INVALID for a wrong token, with
 * `ret->lacks_roles` for one that only lacks its roles. A
 * cookie that has expired, has been tampered with, or was signed with another secret or before its
 * owner's password was changed counts as absent, as in CouchDB, because its owner must be able to
 * log in again. A password that was right once is remembered (as a keyed digest), so that the slow
 * hash is computed once; that happens in wait_compute(), after the fiber's turn in the queue
 * (access/hash_queue.h). STATUS_TOO_MANY if the queue is full, STATUS_CANCELLED if the client has
 * gone, STATUS_FORBIDDEN if the name is locked out at the client's address (access/lockout.h).
 * `ret->name` lives in the arena.
 */
MUST_USE enum status auth_check(struct auth *a, struct str authorization, struct str cookie,
				const struct auth_client *client, struct arena *arena,
				struct auth_user *ret, struct err *err);

/* True for somebody whose token has ended since. */
bool auth_is_over(const struct auth_user *user);

/*
 * Name and password, as POST /_session sends them. `method` is how the audit lines call that.
 * STATUS_UNAUTHORIZED; else as auth_check().
 */
MUST_USE enum status auth_login(struct auth *a, const char *method, struct str name,
				struct str password, const struct auth_client *client,
				struct arena *arena, struct auth_user *ret, struct err *err);

/*
 * For a user who logged in earlier: looks the name up again and gives `user` its present roles, in
 * the arena. STATUS_UNAUTHORIZED if the name does not exist any more, or its record cannot be read,
 * or there is no administrator and the client's door has no people of its own. The roles of a token
 * stay as they are; STATUS_UNAUTHORIZED if it has ended, or its key was removed. STATUS_LIMIT,
 * STATUS_NOMEM and the failures of the store, which say nothing of the user.
 */
MUST_USE enum status auth_again(const struct auth *a, const struct auth_client *client,
				struct arena *arena, struct auth_user *user, struct err *err);

/*
 * The value of a fresh AuthSession cookie: base64url(name:hex time:HMAC), in the arena. The key of
 * the HMAC is made of the secret and of the salt of that person's password, so a new password makes
 * all earlier cookies invalid. A cookie for an unknown name is never valid.
 */
MUST_USE enum status auth_make_cookie(struct auth *a, struct str name,
				      const struct auth_client *client, struct arena *arena,
				      struct str *ret);
/*
 * The same, but STATUS_NOT_FOUND for a name that nobody has any more, unless there is no
 * administrator: then nobody needs a cookie.
 */
MUST_USE enum status auth_make_known_cookie(struct auth *a, struct str name,
					    const struct auth_client *client, struct arena *arena,
					    struct str *ret);

#endif
