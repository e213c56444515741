#include "access/auth_int.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/quote.h"
#include "base/rand.h"
#include "loop/wait.h"

enum {
	DIGEST_BYTES = 32, /* of HMAC-SHA256 */
	SALT_BYTES = 16,
	HASHED_TEXT_BYTES = 256, /* of a hash as a setting has it */
	SECRET_BYTES = 32,
	HASH_LIMIT_BYTES = 64,
	/* "name:ffffffffffffffff:" and the digest. */
	COOKIE_BYTES = AUTH_NAME_BYTES + 1 + 16 + 1 + DIGEST_BYTES,
	COOKIE_TEXT_BYTES = (COOKIE_BYTES + 2) / 3 * 4,
	CREDENTIALS_BYTES = AUTH_NAME_BYTES + 1 + AUTH_PASSWORD_BYTES,
};

static const char wrong_text[] = "Name or password is incorrect.";

/* What a secret is used for, so that no salt is a digest that the secret makes elsewhere. */
static const char salt_purpose[] = "salt of a password";

struct admin {
	char name[AUTH_NAME_BYTES];
	size_t name_len;
	const EVP_MD *md;
	int rounds;
	uint8_t salt[AUTH_SALT_LIMIT_BYTES];
	size_t salt_len;
	uint8_t hash[HASH_LIMIT_BYTES];
	size_t hash_len;
	uint8_t cookie_key[DIGEST_BYTES]; /* signs the cookies of this administrator */
	/* The keyed digest of the password that was verified last; under auth.lock. */
	uint8_t verified[DIGEST_BYTES];
	bool has_verified;
};

struct auth {
	struct admin *admins[AUTH_ADMINS_LIMIT];
	size_t count;
	/*
	 * An unknown name is checked against this hash, which no password has, with the rounds of
	 * one of the administrators, so that the time of an answer does not tell which names exist.
	 */
	struct admin nobody;
	uint8_t secret_key[SECRET_BYTES]; /* the keys of cookies are derived from it */
	struct hash_queue_limits hash_limits;
	uint8_t memory_key[SECRET_BYTES]; /* of the digests of verified passwords */
	pthread_mutex_t lock;
};

struct auth *
auth_new(void)
{
	struct auth *a = mem_zalloc(sizeof(*a));

	if (!a)
		return NULL;
	if (pthread_mutex_init(&a->lock, NULL) != 0) {
		mem_free(a);
		return NULL;
	}
	a->hash_limits = (struct hash_queue_limits){ AUTH_HASH_THREADS, AUTH_HASH_QUEUE };
	rand_bytes(a->secret_key, sizeof(a->secret_key));
	rand_bytes(a->memory_key, sizeof(a->memory_key));
	a->nobody.md = EVP_sha256();
	a->nobody.rounds = AUTH_ROUNDS;
	a->nobody.salt_len = SALT_BYTES;
	a->nobody.hash_len = DIGEST_BYTES;
	rand_bytes(a->nobody.salt, SALT_BYTES);
	rand_bytes(a->nobody.hash, DIGEST_BYTES);
	rand_bytes(a->nobody.cookie_key, DIGEST_BYTES);
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
	pthread_mutex_destroy(&a->lock);
	OPENSSL_cleanse(a, sizeof(*a));
	mem_free(a);
}

bool
auth_has_admins(const struct auth *a)
{
	return a->count > 0;
}

/* ---- Administrators ---- */

static struct admin *
find_admin(struct auth *a, struct str name)
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

/* An administrator with nothing but its name, not in the list yet. NULL when out of memory. */
static struct admin *
admin_new(struct str name)
{
	struct admin *admin = mem_zalloc(sizeof(*admin));

	if (!admin)
		return NULL;
	memcpy(admin->name, name.ptr, name.len);
	admin->name_len = name.len;
	return admin;
}

static bool
admin_derive(const struct admin *admin, struct str password, uint8_t ret[HASH_LIMIT_BYTES])
{
	return PKCS5_PBKDF2_HMAC(password.ptr, (int)password.len, admin->salt, (int)admin->salt_len,
				 admin->rounds, admin->md, (int)admin->hash_len, ret) == 1;
}

enum status
auth_check_plain(struct str name, struct str password, struct err *err)
{
	if (password.len > 0 && password.len <= AUTH_PASSWORD_BYTES)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "the password of administrator \"%s\" has %zu bytes; allowed are 1 to %d",
		       QUOTE_SHOW(name), password.len, AUTH_PASSWORD_BYTES);
}

static enum status
keyed_digest(const uint8_t *key, size_t key_len, struct str data, uint8_t ret[DIGEST_BYTES])
{
	unsigned len = DIGEST_BYTES;

	if (!HMAC(EVP_sha256(), key, (int)key_len, (const uint8_t *)data.ptr, data.len, ret, &len))
		return STATUS_NOMEM;
	return STATUS_OK;
}

/*
 * Waits for the fiber's turn to hash. STATUS_OK: it hashes and then calls hash_queue_leave(), or
 * `turn->outcome` is what another fiber has left.
 */
static enum status
queue_enter(struct hash_turn *turn, const struct hash_queue_limits *limits,
	    const struct auth_client *client, struct err *err)
{
	switch (hash_queue_enter(turn, limits, client ? client->gone : NULL)) {
	case HASH_QUEUE_TURN:
		turn->outcome = 0;
		return STATUS_OK;
	case HASH_QUEUE_SHARED:
		return turn->outcome ? STATUS_OK
				     : err_set(err, STATUS_NOMEM, "cannot hash a password");
	case HASH_QUEUE_GONE:
		return STATUS_CANCELLED;
	case HASH_QUEUE_FULL:
		break;
	}
	METRIC_REFUSED("hash_queue");
	return err_set(err, STATUS_TOO_MANY,
		       "Too many logins wait for their passwords to be hashed: the limit, "
		       "hash_queue, is %zu. Try again later.",
		       limits->waiting);
}

void
auth_set_hash_limits(struct auth *a, const struct hash_queue_limits *limits)
{
	a->hash_limits = *limits;
}

struct slow_derive {
	struct admin admin;
	struct str password;
	bool computed;
};

static void
slow_derive(void *arg)
{
	struct slow_derive *d = arg;

	d->computed = admin_derive(&d->admin, d->password, d->admin.hash);
}

/* Makes the text of a salt: CouchDB hashes its digits, not the bytes that they stand for. */
static enum status
make_salt(struct str name, struct str secret, struct buf *ret)
{
	AUTO(buf_release) struct buf data = BUF_INIT(sizeof(salt_purpose) + AUTH_NAME_BYTES);
	uint8_t digest[DIGEST_BYTES];

	if (secret.len == 0) {
		rand_bytes(digest, SALT_BYTES);
	} else {
		buf_append(&data, salt_purpose, sizeof(salt_purpose));
		buf_append_str(&data, name);
		TRY(buf_status(&data));
		TRY(keyed_digest((const uint8_t *)secret.ptr, secret.len, buf_str(&data), digest));
	}
	buf_append_hex(ret, str_of(digest, SALT_BYTES));
	return buf_status(ret);
}

enum status
auth_hash_password(struct str name, struct str password, const struct auth_hashing *how,
		   struct arena *arena, struct str *ret, struct err *err)
{
	struct slow_derive d = { .admin = { .md = EVP_sha256(),
					    .rounds = (int)how->rounds,
					    .salt_len = 2 * SALT_BYTES,
					    .hash_len = DIGEST_BYTES },
				 .password = password };
	struct buf AUTO(buf_release) text = BUF_INIT(HASHED_TEXT_BYTES);
	struct buf AUTO(buf_release) salt = BUF_INIT(2 * SALT_BYTES);

	assert(how->rounds > 0 && how->rounds <= AUTH_ROUNDS_LIMIT);
	TRY(auth_check_plain(name, password, err));
	TRY(make_salt(name, how->secret, &salt));
	assert(salt.len == d.admin.salt_len && salt.len <= sizeof(d.admin.salt));
	memcpy(d.admin.salt, salt.ptr, salt.len);
	if (how->client) {
		struct hash_turn turn = { 0 };

		address_block_of(how->client->address, &turn.address);
		rand_bytes(turn.key, sizeof(turn.key)); /* shared with nobody */
		TRY(queue_enter(&turn, &how->limits, how->client, err));
		wait_compute(slow_derive, &d);
		hash_queue_leave(&turn, &how->limits, 0);
	} else {
		wait_compute(slow_derive, &d);
	}
	if (!d.computed)
		return err_set(err, STATUS_NOMEM, "cannot hash a password");
	buf_append_cstr(&text, "-pbkdf2:sha256-");
	buf_append_hex(&text, str_of(d.admin.hash, DIGEST_BYTES));
	buf_printf(&text, ",%.*s,%d", STR_ARG(buf_str(&salt)), d.admin.rounds);
	TRY(buf_status(&text));
	*ret = arena_dup(arena, buf_str(&text));
	return ret->ptr ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");
}

/* Moves what comes before the first `c` from `s` to `*ret`. False if `s` has no `c`. */
static bool
cut_at(struct str *s, char c, struct str *ret)
{
	const char *at = s->len ? memchr(s->ptr, c, s->len) : NULL;

	if (!at)
		return false;
	*ret = str_of(s->ptr, (size_t)(at - s->ptr));
	*s = str_skip(*s, ret->len + 1);
	return true;
}

bool
auth_is_hashed(struct str password)
{
	return str_starts_with(password, STR("-pbkdf2-")) ||
	       str_starts_with(password, STR("-pbkdf2:"));
}

static bool
admin_parse_hashed(struct admin *admin, struct str text)
{
	struct str scheme;
	struct str hash;
	struct str salt;
	uint64_t rounds;

	text = str_skip(text, 1);
	if (!cut_at(&text, '-', &scheme) || !cut_at(&text, ',', &hash) ||
	    !cut_at(&text, ',', &salt) || !str_to_u64(text, &rounds))
		return false;
	if (str_eq(scheme, STR("pbkdf2")) || str_eq(scheme, STR("pbkdf2:sha")))
		admin->md = EVP_sha1();
	else if (str_eq(scheme, STR("pbkdf2:sha256")))
		admin->md = EVP_sha256();
	else
		return false;
	if (hash.len != 2 * (size_t)EVP_MD_get_size(admin->md) || salt.len == 0 ||
	    salt.len > AUTH_SALT_LIMIT_BYTES || rounds == 0 || rounds > AUTH_ROUNDS_LIMIT)
		return false;
	if (!str_from_hex(hash, admin->hash))
		return false;
	admin->hash_len = hash.len / 2;
	memcpy(admin->salt, salt.ptr, salt.len);
	admin->salt_len = salt.len;
	admin->rounds = (int)rounds;
	return true;
}

/*
 * Sets the key of the administrator's cookies. It depends on the salt and on the hash: the salt of
 * a password that was given in plain stays the same when the password changes.
 */
static enum status
admin_set_cookie_key(const struct auth *a, struct admin *admin)
{
	AUTO(buf_release) struct buf b = BUF_INIT(1 + AUTH_SALT_LIMIT_BYTES + HASH_LIMIT_BYTES);

	buf_append_byte(&b, (char)admin->salt_len);
	buf_append(&b, admin->salt, admin->salt_len);
	buf_append(&b, admin->hash, admin->hash_len);
	TRY(buf_status(&b));
	return keyed_digest(a->secret_key, SECRET_BYTES, buf_str(&b), admin->cookie_key);
}

enum status
auth_add_admin_hashed(struct auth *a, struct str name, struct str hashed, struct err *err)
{
	struct admin *admin;

	TRY(admin_check_name(a, name, err));
	admin = admin_new(name);
	if (!admin)
		return err_set(err, STATUS_NOMEM, "out of memory");
	if (!auth_is_hashed(hashed) || !admin_parse_hashed(admin, hashed)) {
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

/* ---- Passwords ---- */

struct slow_check {
	const struct admin *admin;
	struct str password;
	bool matches;
	bool computed;
};

static void
slow_check(void *arg)
{
	struct slow_check *check = arg;
	uint8_t hash[HASH_LIMIT_BYTES];

	check->computed = admin_derive(check->admin, check->password, hash);
	check->matches = check->computed &&
			 CRYPTO_memcmp(hash, check->admin->hash, check->admin->hash_len) == 0;
	OPENSSL_cleanse(hash, sizeof(hash));
}

/*
 * A fiber may wait in wait_compute() between looking here and remembering, and two requests may
 * hash the same password at the same time: both then remember the same digest. A password that has
 * been replaced is not found here, because new settings make a new struct auth.
 */
static bool
password_is_remembered(struct auth *a, const struct admin *admin,
		       const uint8_t digest[DIGEST_BYTES])
{
	bool same;

	pthread_mutex_lock(&a->lock);
	same = admin->has_verified && CRYPTO_memcmp(admin->verified, digest, DIGEST_BYTES) == 0;
	pthread_mutex_unlock(&a->lock);
	return same;
}

static void
password_remember(struct auth *a, struct admin *admin, const uint8_t digest[DIGEST_BYTES])
{
	pthread_mutex_lock(&a->lock);
	memcpy(admin->verified, digest, DIGEST_BYTES);
	admin->has_verified = true;
	pthread_mutex_unlock(&a->lock);
}

/*
 * What an unknown name is checked against. Administrators may have different numbers of rounds, so
 * each unknown name takes as long as one of them, always the same one.
 */
static enum status
nobody_like_some_admin(const struct auth *a, struct str name, struct admin *ret)
{
	uint8_t digest[DIGEST_BYTES];
	const struct admin *like;

	*ret = a->nobody;
	if (a->count == 0)
		return STATUS_OK;
	TRY(keyed_digest(a->memory_key, SECRET_BYTES, name, digest));
	like = a->admins[digest[0] % a->count];
	ret->md = like->md;
	ret->rounds = like->rounds;
	ret->salt_len = like->salt_len;
	ret->hash_len = like->hash_len;
	return STATUS_OK;
}

enum password_outcome {
	PASSWORD_REMEMBERED,
	PASSWORD_RIGHT,
	PASSWORD_WRONG,
	PASSWORD_OUTCOMES,
};

static const char *const password_outcomes[PASSWORD_OUTCOMES] = {
	[PASSWORD_REMEMBERED] = "remembered",
	[PASSWORD_RIGHT] = "right",
	[PASSWORD_WRONG] = "wrong",
};

METRIC_COUNTERS(
	password_checks, "frond_auth_password_checks_total", METRIC_NUMBER,
	"Passwords that were checked: right lately and remembered, or right or wrong by the "
	"slow hash; wrong also for unknown names.",
	"outcome", password_outcomes);
/* What slow_check() has found out, for those who share it. */
enum {
	OUTCOME_NOT_COMPUTED,
	OUTCOME_MATCHES,
	OUTCOME_DIFFERS,
};

/* A fiber that wants the same name and password of the same settings shares the hash. */
static enum status
turn_init(const struct auth *a, struct str name, const uint8_t digest[DIGEST_BYTES],
	  const struct auth_client *client, struct hash_turn *ret)
{
	const struct auth *self = a;
	uint8_t name_digest[DIGEST_BYTES];

	_Static_assert(sizeof(self) + 8 + DIGEST_BYTES <= HASH_QUEUE_KEY_BYTES, "a key has room");
	memset(ret, 0, sizeof(*ret));
	address_block_of(client ? client->address : STR(""), &ret->address);
	TRY(keyed_digest(a->memory_key, SECRET_BYTES, name, name_digest));
	memcpy(ret->key, &self, sizeof(self));
	memcpy(ret->key + sizeof(self), name_digest, 8);
	memcpy(ret->key + sizeof(self) + 8, digest, DIGEST_BYTES);
	return STATUS_OK;
}

/* Hashes when it is the fiber's turn, or takes what another fiber has found out. */
static enum status
check_in_turn(struct auth *a, struct slow_check *check, struct hash_turn *turn,
	      const struct auth_client *client, struct err *err)
{
	enum status status = queue_enter(turn, &a->hash_limits, client, err);

	TRY(status);
	if (turn->outcome == OUTCOME_NOT_COMPUTED) {
		wait_compute(slow_check, check);
		if (check->computed)
			turn->outcome = check->matches ? OUTCOME_MATCHES : OUTCOME_DIFFERS;
		hash_queue_leave(turn, &a->hash_limits, turn->outcome);
	}
	check->computed = turn->outcome != OUTCOME_NOT_COMPUTED;
	check->matches = turn->outcome == OUTCOME_MATCHES;
	return STATUS_OK;
}

enum status
auth_check_password(struct auth *a, struct str name, struct str password,
		    const struct auth_client *client, struct err *err)
{
	struct admin *admin = find_admin(a, name);
	struct slow_check check = { .admin = admin, .password = password };
	uint8_t digest[DIGEST_BYTES];
	struct hash_turn turn;
	struct admin nobody;

	if (password.len > AUTH_PASSWORD_BYTES)
		return err_set(err, STATUS_UNAUTHORIZED, "%s", wrong_text);
	TRY(keyed_digest(a->memory_key, SECRET_BYTES, password, digest));
	if (admin && password_is_remembered(a, admin, digest)) {
		metric_add_at(&password_checks, PASSWORD_REMEMBERED, 1);
		return STATUS_OK;
	}
	if (!admin) {
		TRY(nobody_like_some_admin(a, name, &nobody));
		check.admin = &nobody;
	}
	TRY(turn_init(a, name, digest, client, &turn));
	TRY(check_in_turn(a, &check, &turn, client, err));
	if (!check.computed)
		return err_set(err, STATUS_NOMEM, "cannot hash a password");
	metric_add_at(&password_checks, admin && check.matches ? PASSWORD_RIGHT : PASSWORD_WRONG,
		      1);
	if (!admin || !check.matches)
		return err_set(err, STATUS_UNAUTHORIZED, "%s", wrong_text);
	password_remember(a, admin, digest);
	return STATUS_OK;
}

/* ---- Cookies ---- */

/* The key of a name's cookies; of an unknown name's, a key with which no cookie is valid. */
static const uint8_t *
cookie_key(struct auth *a, struct str name)
{
	const struct admin *admin = find_admin(a, name);

	return admin ? admin->cookie_key : a->nobody.cookie_key;
}

enum status
auth_make_cookie_at(struct auth *a, struct str name, uint64_t now_s, struct arena *arena,
		    struct str *ret)
{
	AUTO(buf_release) struct buf plain = BUF_INIT(COOKIE_BYTES);
	AUTO(buf_release) struct buf text = BUF_INIT(COOKIE_TEXT_BYTES);
	uint8_t digest[DIGEST_BYTES];

	buf_append_str(&plain, name);
	buf_printf(&plain, ":%llX", (unsigned long long)now_s);
	TRY(buf_status(&plain));
	TRY(keyed_digest(cookie_key(a, name), DIGEST_BYTES, buf_str(&plain), digest));
	buf_append_byte(&plain, ':');
	buf_append(&plain, digest, sizeof(digest));
	TRY(buf_status(&plain));
	base64_encode(&text, buf_str(&plain), BASE64_URL);
	TRY(buf_status(&text));
	*ret = arena_dup(arena, buf_str(&text));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
auth_make_cookie(struct auth *a, struct str name, struct arena *arena, struct str *ret)
{
	return auth_make_cookie_at(a, name, clock_wall_ms() / 1000, arena, ret);
}

/* The value of AuthSession in a Cookie header; ptr NULL if there is none, or an empty one. */
static struct str
cookie_find(struct str header)
{
	while (header.len) {
		struct str pair;
		struct str name;

		if (!cut_at(&header, ';', &pair)) {
			pair = header;
			header.len = 0;
		}
		if (!cut_at(&pair, '=', &name) || !str_eq(str_trim(name), STR("AuthSession")))
			continue;
		pair = str_trim(pair);
		if (pair.len >= 2 && pair.ptr[0] == '"' && pair.ptr[pair.len - 1] == '"')
			pair = str_of(pair.ptr + 1, pair.len - 2);
		if (pair.len)
			return pair;
	}
	return (struct str){ NULL, 0 };
}

static bool
hex_to_u64(struct str s, uint64_t *ret)
{
	uint64_t n = 0;

	if (s.len == 0 || s.len > 16)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		int value = str_hex_digit(s.ptr[i]);

		if (value < 0)
			return false;
		n = n << 4 | (uint64_t)value;
	}
	*ret = n;
	return true;
}

/*
 * The administrator that a cookie names, and the cookie's age. STATUS_NOT_FOUND for a cookie that
 * somebody else has signed, that has expired, or that names nobody.
 */
static enum status
cookie_check(struct auth *a, struct str text, struct admin **ret, uint64_t *ret_age_s)
{
	AUTO(buf_release) struct buf plain = BUF_INIT(COOKIE_BYTES);
	uint64_t now_s = clock_wall_ms() / 1000;
	uint8_t digest[DIGEST_BYTES];
	enum status status;
	struct admin *admin;
	struct str signed_part;
	struct str rest;
	struct str name;
	uint64_t made_s;

	if (text.len > COOKIE_TEXT_BYTES)
		return STATUS_NOT_FOUND;
	status = base64_decode(&plain, text, BASE64_URL);
	if (status != STATUS_OK)
		return status == STATUS_NOMEM ? status : STATUS_NOT_FOUND;
	if (plain.len < DIGEST_BYTES + 1 || plain.ptr[plain.len - DIGEST_BYTES - 1] != ':')
		return STATUS_NOT_FOUND;
	signed_part = str_of(plain.ptr, plain.len - DIGEST_BYTES - 1);
	rest = signed_part;
	if (!cut_at(&rest, ':', &name) || !hex_to_u64(rest, &made_s))
		return STATUS_NOT_FOUND;
	TRY(keyed_digest(cookie_key(a, name), DIGEST_BYTES, signed_part, digest));
	if (CRYPTO_memcmp(digest, plain.ptr + signed_part.len + 1, DIGEST_BYTES) != 0)
		return STATUS_NOT_FOUND;
	if (made_s > now_s || now_s - made_s >= AUTH_SESSION_SECONDS)
		return STATUS_NOT_FOUND;
	admin = find_admin(a, name);
	if (!admin)
		return STATUS_NOT_FOUND;
	*ret = admin;
	*ret_age_s = now_s - made_s;
	return STATUS_OK;
}

/* ---- Requests ---- */

/* STATUS_NOT_FOUND: these are not Basic credentials. */
static enum status
basic_check(struct auth *a, struct str header, const struct auth_client *client, struct admin **ret,
	    struct err *err)
{
	AUTO(buf_release) struct buf plain = BUF_INIT(CREDENTIALS_BYTES);
	enum status status;
	struct str scheme;
	struct str password;
	struct str name;

	header = str_trim(header);
	if (!cut_at(&header, ' ', &scheme)) {
		scheme = header;
		header.len = 0;
	}
	if (!str_eq_nocase(scheme, STR("Basic")))
		return STATUS_NOT_FOUND;
	status = base64_decode(&plain, str_trim(header), BASE64_STANDARD);
	if (status == STATUS_NOMEM)
		return status;
	password = buf_str(&plain);
	if (status != STATUS_OK || !cut_at(&password, ':', &name))
		return err_set(err, STATUS_UNAUTHORIZED, "%s", wrong_text);
	status = auth_check_password(a, name, password, client, err);
	if (status == STATUS_OK)
		*ret = find_admin(a, name);
	OPENSSL_cleanse(plain.ptr, plain.len);
	return status;
}

enum status
auth_check(struct auth *a, struct str authorization, struct str cookie,
	   const struct auth_client *client, struct arena *arena, struct auth_user *ret,
	   struct err *err)
{
	struct auth_user user = { .name = STR(""), .method = AUTH_METHOD_NONE };
	struct admin *admin = NULL;
	enum status status = STATUS_NOT_FOUND;
	uint64_t age_s = 0;
	struct str session;

	if (!auth_has_admins(a)) {
		user.admin = true;
		*ret = user;
		return STATUS_OK;
	}
	if (authorization.ptr) {
		status = basic_check(a, authorization, client, &admin, err);
		user.method = AUTH_METHOD_BASIC;
	}
	session = cookie.ptr ? cookie_find(cookie) : cookie;
	if (status == STATUS_NOT_FOUND && session.ptr) {
		status = cookie_check(a, session, &admin, &age_s);
		user.method = AUTH_METHOD_COOKIE;
		user.renew = age_s > AUTH_RENEW_SECONDS;
	}
	if (status == STATUS_NOT_FOUND) {
		user.method = AUTH_METHOD_NONE;
		*ret = user;
		return STATUS_OK;
	}
	if (status == STATUS_NOMEM)
		return err_set(err, status, "out of memory");
	if (!admin)
		return status;
	user.name = arena_dup(arena, str_of(admin->name, admin->name_len));
	if (!user.name.ptr)
		return err_set(err, STATUS_LIMIT, "out of the request's memory");
	user.admin = true;
	*ret = user;
	return STATUS_OK;
}
