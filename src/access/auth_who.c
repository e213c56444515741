/* Finds administrators of the settings and people of the store by name. */
#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "access/auth_int.h"
#include "access/hashed_text.h"
#include "base/clock.h"
#include "base/steady.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/rand.h"

/* With this text in it, the key of a person's cookies never equals that of an administrator. */
static const char person_purpose[] = "cookies of a person";

struct auth *
auth_new(void)
{
	struct auth *a = mem_zalloc(sizeof(*a));

	if (!a)
		return NULL;
	a->hash_limits = (struct hash_queue_limits){ AUTH_HASH_THREADS, AUTH_HASH_QUEUE };
	a->rounds = AUTH_ROUNDS;
	a->upgrades = true;
	a->session_s = AUTH_SESSION_SECONDS;
	a->handlers[0] = AUTH_METHOD_BASIC;
	a->handlers[1] = AUTH_METHOD_COOKIE;
	a->handlers_count = 2;
	rand_bytes(a->secret_key, sizeof(a->secret_key));
	rand_bytes(a->memory_key, sizeof(a->memory_key));
	return a;
}

void
auth_free(struct auth *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->count; i++) {
		OPENSSL_cleanse(a->admins[i], sizeof(*a->admins[i]));
		mem_free(a->admins[i]);
	}
	jwt_rules_free(a->tokens);
	auth_proxy_fini(&a->proxy);
	OPENSSL_cleanse(a, sizeof(*a));
	mem_free(a);
}

bool
auth_has_admins(const struct auth *a)
{
	return a->count > 0;
}

void
auth_set_hash_limits(struct auth *a, const struct hash_queue_limits *limits)
{
	a->hash_limits = *limits;
}

void
auth_set_lockout(struct auth *a, const struct lockout_rules *rules)
{
	a->lockout = *rules;
}

void
auth_set_rounds(struct auth *a, uint64_t rounds)
{
	a->rounds = rounds;
}

void
auth_set_upgrades(struct auth *a, bool upgrades)
{
	a->upgrades = upgrades;
}

void
auth_set_session(struct auth *a, uint64_t seconds)
{
	a->session_s = seconds;
}

uint64_t
auth_session_seconds(const struct auth *a)
{
	return a->session_s;
}

enum status
auth_keyed_digest(const uint8_t *key, size_t key_len, struct str data,
		  uint8_t ret[AUTH_DIGEST_BYTES])
{
	unsigned len = AUTH_DIGEST_BYTES;

	if (!HMAC(EVP_sha256(), key, (int)key_len, (const uint8_t *)data.ptr, data.len, ret, &len))
		return STATUS_NOMEM;
	return STATUS_OK;
}

/* ---- Administrators ---- */

static struct auth_admin *
find_admin(const struct auth *a, struct str name)
{
	for (size_t i = 0; i < a->count; i++)
		if (str_eq(str_of(a->admins[i]->name, a->admins[i]->name_len), name))
			return a->admins[i];
	return NULL;
}

/* STATUS_OK if an administrator of that name can be added. */
static enum status
admin_check_name(struct auth *a, struct str name, struct err *err)
{
	if (name.len == 0)
		return err_set(err, STATUS_INVALID, "an administrator's name must not be empty");
	if (name.len > AUTH_NAME_BYTES)
		return err_set(err, STATUS_INVALID,
			       "an administrator's name has %zu bytes; the limit is %d", name.len,
			       AUTH_NAME_BYTES);
	if (memchr(name.ptr, ':', name.len))
		return err_set(err, STATUS_INVALID,
			       "an administrator's name must not contain ':': \"%s\"",
			       QUOTE_SHOW(name));
	if (find_admin(a, name))
		return err_set(err, STATUS_EXISTS, "there are two administrators named \"%s\"",
			       QUOTE_SHOW(name));
	if (a->count == AUTH_ADMINS_LIMIT)
		return err_set(err, STATUS_LIMIT, "more than %d administrators", AUTH_ADMINS_LIMIT);
	return STATUS_OK;
}

/*
 * Makes the key of an administrator's cookies. It depends on the salt and on the hash: the salt of
 * a password that was given in plain stays the same when the password changes.
 */
static enum status
admin_cookie_key(const uint8_t *secret, const struct verifier *v, uint8_t ret[AUTH_DIGEST_BYTES])
{
	AUTO(buf_release) struct buf b = BUF_INIT(1 + VERIFIER_SALT_BYTES + VERIFIER_HASH_BYTES);

	buf_append_byte(&b, (uint8_t)v->salt_len);
	buf_append(&b, v->salt, v->salt_len);
	buf_append(&b, v->hash, v->hash_len);
	TRY(buf_status(&b));
	return auth_keyed_digest(secret, AUTH_SECRET_BYTES, buf_str(&b), ret);
}

static enum status
admin_set_cookie_key(const struct auth *a, struct auth_admin *admin)
{
	return admin_cookie_key(a->secret_key, &admin->verifier, admin->cookie_key);
}

enum status
auth_add_admin_hashed(struct auth *a, struct str name, struct str hashed, struct err *err)
{
	struct auth_admin *admin;

	TRY(admin_check_name(a, name, err));
	admin = mem_zalloc(sizeof(*admin));
	if (!admin)
		return err_set(err, STATUS_NOMEM, "out of memory");
	memcpy(admin->name, name.ptr, name.len);
	admin->name_len = name.len;
	if (!auth_is_hashed(hashed) || !hashed_text_parse(hashed, &admin->verifier)) {
		mem_free(admin);
		return err_set(err, STATUS_INVALID,
			       "the password hash of administrator \"%s\" is not "
			       "-pbkdf2-HASH,SALT,ROUNDS or -pbkdf2:sha256-HASH,SALT,ROUNDS",
			       QUOTE_SHOW(name));
	}
	if (admin_set_cookie_key(a, admin) != STATUS_OK) {
		mem_free(admin);
		return err_set(err, STATUS_NOMEM, "out of memory");
	}
	assert(a->count < AUTH_ADMINS_LIMIT);
	a->admins[a->count++] = admin;
	return STATUS_OK;
}

enum status
auth_set_secret(struct auth *a, struct str secret, struct err *err)
{
	if (secret.len < AUTH_SECRET_MIN_BYTES)
		return err_set(err, STATUS_INVALID, "a secret must have at least %d bytes",
			       AUTH_SECRET_MIN_BYTES);
	if (!EVP_Digest(secret.ptr, secret.len, a->secret_key, NULL, EVP_sha256(), NULL))
		return err_set(err, STATUS_NOMEM, "out of memory");
	for (size_t i = 0; i < a->count; i++)
		if (admin_set_cookie_key(a, a->admins[i]) != STATUS_OK)
			return err_set(err, STATUS_NOMEM, "out of memory");
	return STATUS_OK;
}

void
auth_set_overlap(struct auth *a, uint64_t seconds)
{
	a->overlap_s = seconds;
}

void
auth_succeed_at(struct auth *a, const struct auth *former, uint64_t now_ns, uint64_t now_s)
{
	if (CRYPTO_memcmp(a->secret_key, former->secret_key, sizeof(a->secret_key)) == 0) {
		a->former = former->former;
		return;
	}
	a->former = (struct auth_former){ .exists = true, .since_ns = now_ns, .since_s = now_s };
	memcpy(a->former.key, former->secret_key, sizeof(a->former.key));
}

void
auth_succeed(struct auth *a, const struct auth *former)
{
	auth_succeed_at(a, former, clock_mono_ns(), steady_ms() / 1000);
}

/* ---- People ---- */

struct lookup {
	struct str name;
	struct str door;
	struct arena *arena;
	struct person person;
	struct person_door at;
	bool found;
	struct err *err;
};

static enum status
lookup_body(struct kv_tx *tx, void *arg)
{
	struct lookup *l = arg;
	enum status status = person_get(tx, l->name, l->arena, &l->person, l->err);

	l->at = (struct person_door){ 0 };
	l->found = status == STATUS_OK;
	if (l->found && l->door.len)
		status = person_door_get(tx, l->name, l->door, &l->at, l->err);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Reads the record in the transaction that the request has already begun, if there is one. */
static enum status
person_look_up(struct str name, const struct auth_client *client, struct arena *arena,
	       struct person *ret, struct person_door *ret_at, struct err *err)
{
	struct lookup l = { .name = name, .arena = arena, .err = err };

	if (!client || !client->store || !person_name_is_sound(name))
		return STATUS_NOT_FOUND;
	l.door = client->door;
	if (client->tx && client->ahead)
		client->ahead(client->ahead_arg);
	if (!client->tx || lookup_body(client->tx, &l) != STATUS_OK)
		TRY(kv_run_read(client->store, lookup_body, &l, err));
	*ret = l.person;
	*ret_at = l.at;
	return l.found ? STATUS_OK : STATUS_NOT_FOUND;
}

/*
 * A new password gets a new salt, which ends the cookies of the old one. A hash of the same
 * password that is only made with more rounds keeps its salt, so its cookies stay valid.
 */
static enum status
person_cookie_key(const uint8_t *secret, const struct person *person,
		  uint8_t ret[AUTH_DIGEST_BYTES])
{
	AUTO(buf_release) struct buf b = BUF_INIT(sizeof(person_purpose) + VERIFIER_SALT_BYTES);

	buf_append(&b, person_purpose, sizeof(person_purpose));
	buf_append(&b, person->verifier.salt, person->verifier.salt_len);
	TRY(buf_status(&b));
	return auth_keyed_digest(secret, AUTH_SECRET_BYTES, buf_str(&b), ret);
}

enum status
auth_cookie_key(const uint8_t secret[AUTH_SECRET_BYTES], const struct auth_who *who,
		uint8_t ret[AUTH_DIGEST_BYTES])
{
	return who->admin ? admin_cookie_key(secret, &who->admin->verifier, ret)
			  : person_cookie_key(secret, &who->person, ret);
}

/*
 * What proofs of the password are tied to. The records of a person and of the person at a door may
 * have been written in one transaction, with one version. So the bits of the latter are turned
 * round: what is right at that door must not pass for the password of every door.
 */
static void
who_set_identity(struct auth_who *who)
{
	_Static_assert((int)PERSON_CACHE_IDENTITY_BYTES == (int)KV_VERSIONSTAMP_BYTES,
		       "the version of a record is an identity");
	memcpy(who->identity, who->person.version, sizeof(who->identity));
	for (size_t i = 0; auth_is_at_door(who) && i < sizeof(who->identity); i++)
		who->identity[i] = (uint8_t)~who->at.version[i];
}

enum status
auth_find(const struct auth *a, struct str name, const struct auth_client *client,
	  struct arena *arena, struct auth_who *ret, struct err *err)
{
	const struct auth_admin *admin = find_admin(a, name);

	*ret = (struct auth_who){ .admin = admin };
	if (admin) {
		ret->name = str_of(admin->name, admin->name_len);
		ret->verifier = &admin->verifier;
		memcpy(ret->cookie_key, admin->cookie_key, sizeof(ret->cookie_key));
		memcpy(ret->identity, admin->cookie_key, sizeof(ret->identity));
		return STATUS_OK;
	}
	TRY(person_look_up(name, client, arena, &ret->person, &ret->at, err));
	ret->is_person = true;
	ret->name = ret->person.name;
	if (ret->person.has_verifier)
		ret->verifier = &ret->person.verifier;
	who_set_identity(ret);
	return person_cookie_key(a->secret_key, &ret->person, ret->cookie_key);
}

/*
 * Tells passwords apart: a person's hash may be made again of the same password, with more rounds,
 * and keeps its salt; a salt that is derived from the name outlives an administrator's password.
 * The passwords of a door are one list with one salt: whoever has logged in by one of them stays
 * when the list changes.
 */
static void
password_key(const struct auth_who *who, uint8_t ret[JWT_ID_BYTES])
{
	const struct person *p = &who->person;
	size_t len;

	_Static_assert((int)PERSON_DOOR_SALT_BYTES >= (int)JWT_ID_BYTES, "a salt is long enough");
	if (who->admin) {
		memcpy(ret, who->admin->verifier.hash, JWT_ID_BYTES);
	} else if (auth_is_at_door(who)) {
		memcpy(ret, who->at.salt, JWT_ID_BYTES);
	} else if (p->has_verifier) {
		len = p->verifier.salt_len < JWT_ID_BYTES ? p->verifier.salt_len : JWT_ID_BYTES;
		memcpy(ret, p->verifier.salt, len);
	} else if (p->has_scram) {
		memcpy(ret, p->scram.salt, JWT_ID_BYTES);
	}
}

enum status
auth_become(const struct auth_who *who, struct arena *arena, enum auth_method method,
	    struct auth_user *ret)
{
	static struct str admin_role = { "_admin", sizeof("_admin") - 1 };
	struct auth_user user = { .method = method };

	user.name = arena_dup(arena, who->name);
	if (!user.name.ptr)
		return STATUS_LIMIT;
	if (who->admin) {
		user.admin = true;
		user.roles = &admin_role;
		user.roles_count = 1;
	} else {
		user.roles = who->person.roles;
		user.roles_count = who->person.roles_count;
	}
	password_key(who, user.key);
	*ret = user;
	return STATUS_OK;
}
