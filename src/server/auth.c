#include "server/auth_int.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/wait.h"

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

struct admin {
	char name[AUTH_NAME_BYTES];
	size_t name_len;
	const EVP_MD *md;
	int rounds;
	uint8_t salt[AUTH_SALT_LIMIT_BYTES];
	size_t salt_len;
	uint8_t hash[HASH_LIMIT_BYTES];
	size_t hash_len;
	/* The keyed digest of the password that was verified last; under auth.lock. */
	uint8_t verified[DIGEST_BYTES];
	bool has_verified;
};

struct auth {
	struct admin *admins[AUTH_ADMINS_LIMIT];
	size_t count;
	/* Someone whose password nobody knows: an unknown name costs what a known one costs. */
	struct admin nobody;
	uint8_t cookie_key[SECRET_BYTES];
	uint8_t memory_key[SECRET_BYTES]; /* of the digests of verified passwords */
	_Atomic uint64_t slow_hashes;
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
	rand_bytes(a->cookie_key, sizeof(a->cookie_key));
	rand_bytes(a->memory_key, sizeof(a->memory_key));
	a->nobody.md = EVP_sha256();
	a->nobody.rounds = AUTH_PBKDF2_ROUNDS;
	a->nobody.salt_len = SALT_BYTES;
	a->nobody.hash_len = DIGEST_BYTES;
	rand_bytes(a->nobody.salt, SALT_BYTES);
	rand_bytes(a->nobody.hash, DIGEST_BYTES);
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

uint64_t
auth_slow_hashes(const struct auth *a)
{
	return atomic_load(&a->slow_hashes);
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

/* Whether there can be an administrator of that name. */
static enum status
check_name(struct auth *a, struct str name, struct err *err)
{
	if (name.len == 0)
		return err_set(err, STATUS_INVALID, "an administrator's name must not be empty");
	if (name.len > AUTH_NAME_BYTES)
		return err_set(err, STATUS_INVALID,
			       "an administrator's name has %zu bytes; the limit is %d", name.len,
			       AUTH_NAME_BYTES);
	if (memchr(name.ptr, ':', name.len))
		return err_set(err, STATUS_INVALID,
			       "an administrator's name must not contain ':': \"%.*s\"",
			       STR_ARG(name));
	if (find_admin(a, name))
		return err_set(err, STATUS_EXISTS, "there are two administrators named \"%.*s\"",
			       STR_ARG(name));
	if (a->count == AUTH_ADMINS_LIMIT)
		return err_set(err, STATUS_LIMIT, "more than %d administrators", AUTH_ADMINS_LIMIT);
	return STATUS_OK;
}

/* An administrator with nothing but its name, not in the list yet. NULL when out of memory. */
static struct admin *
make_admin(struct str name)
{
	struct admin *admin = mem_zalloc(sizeof(*admin));

	if (!admin)
		return NULL;
	memcpy(admin->name, name.ptr, name.len);
	admin->name_len = name.len;
	return admin;
}

static bool
derive(const struct admin *admin, struct str password, uint8_t ret[HASH_LIMIT_BYTES])
{
	return PKCS5_PBKDF2_HMAC(password.ptr, (int)password.len, admin->salt, (int)admin->salt_len,
				 admin->rounds, admin->md, (int)admin->hash_len, ret) == 1;
}

static enum status
check_password(struct str name, struct str password, struct err *err)
{
	if (password.len > 0 && password.len <= AUTH_PASSWORD_BYTES)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "the password of administrator \"%.*s\" has %zu bytes; allowed are 1 to %d",
		       STR_ARG(name), password.len, AUTH_PASSWORD_BYTES);
}

enum status
auth_add_admin(struct auth *a, struct str name, struct str password, struct err *err)
{
	struct admin *admin;

	TRY(check_password(name, password, err));
	TRY(check_name(a, name, err));
	admin = make_admin(name);
	if (!admin)
		return err_set(err, STATUS_NOMEM, "out of memory");
	admin->md = EVP_sha256();
	admin->rounds = AUTH_PBKDF2_ROUNDS;
	admin->salt_len = SALT_BYTES;
	admin->hash_len = DIGEST_BYTES;
	rand_bytes(admin->salt, SALT_BYTES);
	if (!derive(admin, password, admin->hash)) {
		mem_free(admin);
		return err_set(err, STATUS_NOMEM, "cannot hash a password");
	}
	a->admins[a->count++] = admin;
	return STATUS_OK;
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

	d->computed = derive(&d->admin, d->password, d->admin.hash);
}

enum status
auth_hash_password(struct str name, struct str password, struct arena *arena, struct str *ret,
		   struct err *err)
{
	struct slow_derive d = { .admin = { .md = EVP_sha256(),
					    .rounds = AUTH_PBKDF2_ROUNDS,
					    .salt_len = 2 * SALT_BYTES,
					    .hash_len = DIGEST_BYTES },
				 .password = password };
	struct buf AUTO(buf_release) text = BUF_INIT(HASHED_TEXT_BYTES);
	struct buf AUTO(buf_release) salt = BUF_INIT(HASHED_TEXT_BYTES);
	uint8_t noise[SALT_BYTES];

	TRY(check_password(name, password, err));
	rand_bytes(noise, sizeof(noise));
	buf_append_hex(&salt, str_of(noise, sizeof(noise)));
	TRY(buf_status(&salt));
	memcpy(d.admin.salt, salt.ptr, salt.len); /* the text is what is hashed */
	wait_offload(slow_derive, &d);
	if (!d.computed)
		return err_set(err, STATUS_NOMEM, "cannot hash a password");
	buf_append_cstr(&text, "-pbkdf2:sha256-");
	buf_append_hex(&text, str_of(d.admin.hash, DIGEST_BYTES));
	buf_printf(&text, ",%.*s,%d", STR_ARG(buf_str(&salt)), AUTH_PBKDF2_ROUNDS);
	TRY(buf_status(&text));
	*ret = arena_dup(arena, buf_str(&text));
	return ret->ptr ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");
}

/* Cuts what comes before `c` off `s`. False: there is no `c`. */
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
parse_hashed(struct admin *admin, struct str text)
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

enum status
auth_add_admin_hashed(struct auth *a, struct str name, struct str hashed, struct err *err)
{
	struct admin *admin;

	TRY(check_name(a, name, err));
	admin = make_admin(name);
	if (!admin)
		return err_set(err, STATUS_NOMEM, "out of memory");
	if (!auth_is_hashed(hashed) || !parse_hashed(admin, hashed)) {
		mem_free(admin);
		return err_set(err, STATUS_INVALID,
			       "the password hash of administrator \"%.*s\" is not "
			       "-pbkdf2-HASH,SALT,ROUNDS or -pbkdf2:sha256-HASH,SALT,ROUNDS",
			       STR_ARG(name));
	}
	a->admins[a->count++] = admin;
	return STATUS_OK;
}

static enum status
keyed_digest(const uint8_t key[SECRET_BYTES], struct str data, uint8_t ret[DIGEST_BYTES])
{
	unsigned len = DIGEST_BYTES;

	if (!HMAC(EVP_sha256(), key, SECRET_BYTES, (const uint8_t *)data.ptr, data.len, ret, &len))
		return STATUS_NOMEM;
	return STATUS_OK;
}

enum status
auth_set_secret(struct auth *a, struct str secret, struct err *err)
{
	if (secret.len < AUTH_SECRET_MIN_BYTES)
		return err_set(err, STATUS_INVALID, "a secret must have at least %d bytes",
			       AUTH_SECRET_MIN_BYTES);
	if (!EVP_Digest(secret.ptr, secret.len, a->cookie_key, NULL, EVP_sha256(), NULL))
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

	check->computed = derive(check->admin, check->password, hash);
	check->matches = check->computed &&
			 CRYPTO_memcmp(hash, check->admin->hash, check->admin->hash_len) == 0;
	OPENSSL_cleanse(hash, sizeof(hash));
}

static bool
is_remembered(struct auth *a, const struct admin *admin, const uint8_t digest[DIGEST_BYTES])
{
	bool same;

	pthread_mutex_lock(&a->lock);
	same = admin->has_verified && CRYPTO_memcmp(admin->verified, digest, DIGEST_BYTES) == 0;
	pthread_mutex_unlock(&a->lock);
	return same;
}

static void
remember(struct auth *a, struct admin *admin, const uint8_t digest[DIGEST_BYTES])
{
	pthread_mutex_lock(&a->lock);
	memcpy(admin->verified, digest, DIGEST_BYTES);
	admin->has_verified = true;
	pthread_mutex_unlock(&a->lock);
}

enum status
auth_check_password(struct auth *a, struct str name, struct str password, struct err *err)
{
	struct admin *admin = find_admin(a, name);
	struct slow_check check = { .admin = admin ? admin : &a->nobody, .password = password };
	uint8_t digest[DIGEST_BYTES];

	if (password.len > AUTH_PASSWORD_BYTES)
		return err_set(err, STATUS_UNAUTHORIZED, "%s", wrong_text);
	TRY(keyed_digest(a->memory_key, password, digest));
	if (admin && is_remembered(a, admin, digest))
		return STATUS_OK;

	atomic_fetch_add(&a->slow_hashes, 1);
	wait_offload(slow_check, &check);
	if (!check.computed)
		return err_set(err, STATUS_NOMEM, "cannot hash a password");
	if (!admin || !check.matches)
		return err_set(err, STATUS_UNAUTHORIZED, "%s", wrong_text);
	remember(a, admin, digest);
	return STATUS_OK;
}

/* ---- Cookies ---- */

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
	TRY(keyed_digest(a->cookie_key, buf_str(&plain), digest));
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
find_cookie(struct str header)
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
 * Whom a cookie names, if it is ours and young enough, and how old it is: STATUS_NOT_FOUND
 * otherwise.
 */
static enum status
check_cookie(struct auth *a, struct str text, struct admin **ret, uint64_t *ret_age_s)
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
	TRY(keyed_digest(a->cookie_key, signed_part, digest));
	if (CRYPTO_memcmp(digest, plain.ptr + signed_part.len + 1, DIGEST_BYTES) != 0)
		return STATUS_NOT_FOUND;

	rest = signed_part;
	if (!cut_at(&rest, ':', &name) || !hex_to_u64(rest, &made_s))
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
check_basic(struct auth *a, struct str header, struct admin **ret, struct err *err)
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
	status = auth_check_password(a, name, password, err);
	if (status == STATUS_OK)
		*ret = find_admin(a, name);
	OPENSSL_cleanse(plain.ptr, plain.len);
	return status;
}

enum status
auth_check(struct auth *a, struct str authorization, struct str cookie, struct arena *arena,
	   struct auth_user *ret, struct err *err)
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
		status = check_basic(a, authorization, &admin, err);
		user.method = AUTH_METHOD_BASIC;
	}
	session = cookie.ptr ? find_cookie(cookie) : cookie;
	if (status == STATUS_NOT_FOUND && session.ptr) {
		status = check_cookie(a, session, &admin, &age_s);
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
