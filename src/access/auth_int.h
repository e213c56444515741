/* Private to access/: what auth.c is made of. */
#ifndef FROND_ACCESS_AUTH_INT_H
#define FROND_ACCESS_AUTH_INT_H

#include "access/auth.h"
#include "access/person_cache.h"
#include "access/person_door.h"
#include "access/verifier.h"

enum {
	AUTH_DIGEST_BYTES = 32, /* of HMAC-SHA256 */
	AUTH_SECRET_BYTES = 32,
};

#define AUTH_WRONG_TEXT  "Name or password is incorrect."
#define AUTH_LOCKED_TEXT "Account is temporarily locked due to multiple authentication failures"

struct auth_admin {
	char name[AUTH_NAME_BYTES];
	size_t name_len;
	struct verifier verifier;
	uint8_t cookie_key[AUTH_DIGEST_BYTES]; /* signs the cookies of this administrator */
};

/* How a proxy shows who it is. */
struct auth_proxy_rules {
	bool use_secret;
	uint8_t *secret; /* owned; NULL: no proxy has it */
	size_t secret_len;
	enum verifier_digest digests[AUTH_DIGESTS_LIMIT];
	size_t digests_count;
};

/* The secret that signed cookies before it was changed. */
struct auth_former {
	bool exists;
	uint8_t key[AUTH_SECRET_BYTES];
	uint64_t since_ns; /* when it was changed, on the monotonic clock */
	uint64_t since_s;  /* likewise, in seconds since 1970: later cookies are forged */
};

struct auth {
	struct auth_admin *admins[AUTH_ADMINS_LIMIT];
	size_t count;
	uint64_t rounds;    /* for passwords that are set from now on */
	bool upgrades;      /* a login replaces a hash that is weaker than that */
	uint64_t session_s; /* how long a cookie lasts */
	uint64_t overlap_s; /* how long one of the former secret holds */
	struct auth_former former;
	uint8_t secret_key[AUTH_SECRET_BYTES]; /* the keys that sign cookies are derived from it */
	uint8_t memory_key[AUTH_SECRET_BYTES]; /* makes choices that depend on a name look random */
	struct hash_queue_limits hash_limits;
	struct lockout_rules lockout;
	enum auth_method handlers[AUTH_HANDLERS_LIMIT];
	size_t handlers_count;
	struct jwt_rules *tokens; /* NULL: none is taken */
	struct auth_proxy_rules proxy;
};

/* What the server knows of the owner of a name. */
struct auth_who {
	struct str name; /* borrowed from the settings or in the arena */
	const struct auth_admin *admin;
	bool is_person; /* false for an administrator, and for a name that nobody has */
	struct person person;
	struct person_door at; /* of the client's door, if it has passwords of its own */
	/* NULL: no password of every door is right, where `at` asks for that. */
	const struct verifier *verifier;
	bool fresh;   /* the password was hashed, and not remembered */
	bool failing; /* the name has failed too often from this address */
	uint8_t identity[PERSON_CACHE_IDENTITY_BYTES];
	uint8_t cookie_key[AUTH_DIGEST_BYTES];
};

/* True if not the password of every door counts, but what the client's door has of its own. */
static inline bool
auth_is_at_door(const struct auth_who *who)
{
	return who->is_person && who->at.by != PERSON_DOOR_BY_OWN;
}

/*
 * Splits `s` at the first `c`: `*ret` gets the part before it, `s` keeps the part behind it. False
 * if `s` has no `c`.
 */
static inline bool
auth_cut_at(struct str *s, char c, struct str *ret)
{
	const char *at = s->len ? memchr(s->ptr, c, s->len) : NULL;

	if (!at)
		return false;
	*ret = str_of(s->ptr, (size_t)(at - s->ptr));
	*s = str_skip(*s, ret->len + 1);
	return true;
}

/* ---- auth_who.c ---- */

/*
 * Finds the owner of a name: an administrator, or a person of the store. STATUS_NOT_FOUND if nobody
 * has the name; errors of the store.
 */
MUST_USE enum status auth_find(const struct auth *a, struct str name,
			       const struct auth_client *client, struct arena *arena,
			       struct auth_who *ret, struct err *err);
/* Makes `ret` the user of the request, with copies in the arena. */
MUST_USE enum status auth_become(const struct auth_who *who, struct arena *arena,
				 enum auth_method method, struct auth_user *ret);
/* The key that signs somebody's cookies under a secret. */
MUST_USE enum status auth_cookie_key(const uint8_t secret[AUTH_SECRET_BYTES],
				     const struct auth_who *who, uint8_t ret[AUTH_DIGEST_BYTES]);
/* auth_succeed() at a moment of both clocks. */
void auth_succeed_at(struct auth *a, const struct auth *former, uint64_t now_ns, uint64_t now_s);
MUST_USE enum status auth_keyed_digest(const uint8_t *key, size_t key_len, struct str data,
				       uint8_t ret[AUTH_DIGEST_BYTES]);

/* ---- auth.c ---- */

/* Writes the audit line of a login that was right or wrong. Another failure has none. */
void auth_tell_login(const struct auth_client *client, struct str name, const char *method,
		     enum status status, bool failing);

/* ---- auth_password.c ---- */

/* Checks a password. STATUS_UNAUTHORIZED if it is wrong; otherwise the errors of auth_check(). */
MUST_USE enum status auth_password_check(struct auth *a, struct str name, struct str password,
					 const struct auth_client *client, struct arena *arena,
					 struct auth_who *ret, struct err *err);

/*
 * Makes the key under which failures of this client are counted. False: they are not counted,
 * because lock-out is off or the client has no address.
 */
bool auth_lockout_key(const struct auth *a, struct str name, const struct auth_client *client,
		      const struct auth_who *who, struct lockout_key *ret);
/*
 * Returns STATUS_FORBIDDEN if the name is locked out at the client's address, and sets
 * `who->failing` if it would be. `key` may be NULL.
 */
MUST_USE enum status auth_lockout_check(const struct auth *a, const struct lockout_key *key,
					struct auth_who *who, struct err *err);
/* Count the outcome of a check. The first returns STATUS_UNAUTHORIZED. */
MUST_USE enum status auth_password_is_wrong(struct err *err);
void auth_password_is_right(void);

/* ---- auth_renew.c ---- */

/*
 * After a password was right: if it was hashed for that, makes the verifiers of a person that are
 * missing or weak.
 */
void auth_renew(const struct auth *a, const struct auth_who *who, struct str password,
		const struct auth_client *client, struct arena *arena);

/* ---- auth_jwt.c ---- */

/* STATUS_NOT_FOUND: the header has no token. Errors as jwt_check()'s. */
MUST_USE enum status auth_token_check(struct auth *a, struct str header, struct arena *arena,
				      struct auth_user *ret, struct err *err);
/* STATUS_UNAUTHORIZED: the token of that user is no good any more. */
MUST_USE enum status auth_token_again(const struct auth *a, const struct auth_user *user);

/* ---- auth_proxy.c ---- */

void auth_proxy_fini(struct auth_proxy_rules *p);

/* STATUS_NOT_FOUND: no proxy names a user, or one that does not have the secret. */
MUST_USE enum status auth_proxy_check(const struct auth *a, const struct auth_client *client,
				      struct arena *arena, struct auth_user *ret, struct err *err);

/* ---- auth_cookie.c ---- */

/*
 * Finds the owner of the cookie in a Cookie header, and the cookie's age. A cookie that the former
 * secret signed gets the greatest age, so that it is renewed. STATUS_NOT_FOUND if there is no
 * cookie, its signature is wrong, it has expired, or nobody has its name.
 */
MUST_USE enum status auth_cookie_check(struct auth *a, struct str header,
				       const struct auth_client *client, struct arena *arena,
				       struct auth_who *ret, uint64_t *ret_age_s, struct err *err);

/* auth_make_cookie() at a moment: seconds since 1970. */
MUST_USE enum status auth_make_cookie_at(struct auth *a, struct str name,
					 const struct auth_client *client, uint64_t now_s,
					 struct arena *arena, struct str *ret);

#endif
