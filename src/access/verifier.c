#include "access/verifier.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <unicode/usprep.h>
#include <unicode/ustring.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/rand.h"

static const char *const digest_names[] = {
	[VERIFIER_SHA1] = "sha",      [VERIFIER_SHA224] = "sha224", [VERIFIER_SHA256] = "sha256",
	[VERIFIER_SHA384] = "sha384", [VERIFIER_SHA512] = "sha512",
};

const EVP_MD *
verifier_md(enum verifier_digest digest)
{
	switch (digest) {
	case VERIFIER_SHA1:
		return EVP_sha1();
	case VERIFIER_SHA224:
		return EVP_sha224();
	case VERIFIER_SHA256:
		return EVP_sha256();
	case VERIFIER_SHA384:
		return EVP_sha384();
	case VERIFIER_SHA512:
		return EVP_sha512();
	}
	return NULL;
}

const char *
verifier_digest_name(enum verifier_digest digest)
{
	return digest_names[digest];
}

bool
verifier_digest_find(struct str name, enum verifier_digest *ret)
{
	for (size_t i = VERIFIER_SHA1; i <= VERIFIER_SHA512; i++) {
		if (str_eq(name, str_from_cstr(digest_names[i]))) {
			*ret = (enum verifier_digest)i;
			return true;
		}
	}
	return false;
}

bool
verifier_is_sound(const struct verifier *v)
{
	const EVP_MD *md = verifier_md(v->digest);

	if (!md || v->hash_len != (size_t)EVP_MD_get_size(md) || v->salt_len > sizeof(v->salt))
		return false;
	switch (v->scheme) {
	case VERIFIER_SIMPLE:
		return v->digest == VERIFIER_SHA1;
	case VERIFIER_PBKDF2:
	case VERIFIER_SIMPLE_PBKDF2:
		return v->rounds > 0 && v->rounds <= VERIFIER_ROUNDS;
	}
	return false;
}

static bool
derive_simple(const struct verifier *v, struct str password, uint8_t ret[VERIFIER_HASH_BYTES])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool done = ctx && EVP_DigestInit_ex(ctx, EVP_sha1(), NULL) == 1 &&
		    EVP_DigestUpdate(ctx, password.ptr, password.len) == 1 &&
		    EVP_DigestUpdate(ctx, v->salt, v->salt_len) == 1 &&
		    EVP_DigestFinal_ex(ctx, ret, NULL) == 1;

	EVP_MD_CTX_free(ctx);
	return done;
}

static bool
derive_pbkdf2(const struct verifier *v, struct str password, uint8_t ret[VERIFIER_HASH_BYTES])
{
	return PKCS5_PBKDF2_HMAC(password.ptr, (int)password.len, (const uint8_t *)v->salt,
				 (int)v->salt_len, (int)v->rounds, verifier_md(v->digest),
				 (int)v->hash_len, ret) == 1;
}

bool
verifier_derive(const struct verifier *v, struct str password, uint8_t ret[VERIFIER_HASH_BYTES])
{
	AUTO(buf_release) struct buf digits = BUF_INIT(2 * VERIFIER_HASH_BYTES);
	uint8_t simple[VERIFIER_HASH_BYTES];

	switch (v->scheme) {
	case VERIFIER_SIMPLE:
		return derive_simple(v, password, ret);
	case VERIFIER_PBKDF2:
		return derive_pbkdf2(v, password, ret);
	case VERIFIER_SIMPLE_PBKDF2:
		if (!derive_simple(v, password, simple))
			return false;
		buf_append_hex(&digits, str_of(simple, (size_t)EVP_MD_get_size(EVP_sha1())));
		return buf_status(&digits) == STATUS_OK && derive_pbkdf2(v, buf_str(&digits), ret);
	}
	return false;
}

bool
verifier_has_hash(const struct verifier *v, const uint8_t *hash)
{
	return CRYPTO_memcmp(v->hash, hash, v->hash_len) == 0;
}

void
verifier_make_salt(struct verifier *v, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t noise[VERIFIER_SALT_BYTES / 2];

	if (n > sizeof(noise))
		n = sizeof(noise);
	rand_bytes(noise, n);
	for (size_t i = 0; i < n; i++) {
		v->salt[2 * i] = digits[noise[i] >> 4];
		v->salt[2 * i + 1] = digits[noise[i] & 15];
	}
	v->salt_len = 2 * n;
}

static bool
scram_key(const uint8_t salted[SCRAM_KEY_BYTES], const char *purpose, uint8_t ret[SCRAM_KEY_BYTES])
{
	unsigned len = SCRAM_KEY_BYTES;

	return HMAC(EVP_sha256(), salted, SCRAM_KEY_BYTES, (const uint8_t *)purpose,
		    strlen(purpose), ret, &len) != NULL;
}

/* Characters of UTF-16, which are wiped. */
static void
characters_free(UChar *c, size_t count)
{
	if (c)
		OPENSSL_cleanse(c, count * sizeof(*c));
	mem_free(c);
}

/*
 * SASLprep (RFC 4013): what looks the same becomes the same. Characters that later versions of
 * Unicode have added stay what they are. False where the rules forbid the password, or there is no
 * memory: it is then taken as it is.
 */
static bool
password_prepare(struct str password, struct buf *ret)
{
	size_t most = SCRAM_PREPARED_GROWTH * password.len;
	UChar *raw = mem_alloc(password.len * sizeof(*raw));
	UChar *done = mem_alloc(most * sizeof(*done));
	UErrorCode code = U_ZERO_ERROR;
	UStringPrepProfile *profile = NULL;
	int32_t count = 0, bytes = 0;
	bool good = raw && done && buf_reserve(ret, most);

	if (good) {
		profile = usprep_openByType(USPREP_RFC4013_SASLPREP, &code);
		u_strFromUTF8(raw, (int32_t)password.len, &count, password.ptr,
			      (int32_t)password.len, &code);
		count = usprep_prepare(profile, raw, count, done, (int32_t)most,
				       USPREP_ALLOW_UNASSIGNED, NULL, &code);
		u_strToUTF8(ret->ptr, (int32_t)most, &bytes, done, count, &code);
		usprep_close(profile);
		good = U_SUCCESS(code) && bytes;
	}
	ret->len = good ? (size_t)bytes : 0;
	characters_free(raw, password.len);
	characters_free(done, most);
	return good;
}

static bool
password_is_ascii(struct str password)
{
	for (size_t i = 0; i < password.len; i++)
		if ((unsigned char)password.ptr[i] >= 0x80)
			return false;
	return true;
}

static bool
scram_derive_from(struct str password, struct scram *s)
{
	uint8_t salted[SCRAM_KEY_BYTES];
	uint8_t client[SCRAM_KEY_BYTES];
	bool done;

	done = PKCS5_PBKDF2_HMAC(password.ptr, (int)password.len, s->salt, (int)s->salt_len,
				 (int)s->rounds, EVP_sha256(), sizeof(salted), salted) == 1 &&
	       scram_key(salted, "Client Key", client) &&
	       scram_key(salted, "Server Key", s->server_key) &&
	       EVP_Digest(client, sizeof(client), s->stored_key, NULL, EVP_sha256(), NULL) == 1;
	OPENSSL_cleanse(salted, sizeof(salted));
	OPENSSL_cleanse(client, sizeof(client));
	return done;
}

bool
scram_derive(struct str password, struct scram *s)
{
	AUTO(buf_release) struct buf prepared = BUF_INIT(SIZE_MAX);
	bool done;

	if (password.len > SCRAM_PREPARED_BYTES || password_is_ascii(password) ||
	    !password_prepare(password, &prepared))
		return scram_derive_from(password, s);
	done = scram_derive_from(buf_str(&prepared), s);
	OPENSSL_cleanse(prepared.ptr, prepared.len);
	return done;
}

bool
scram_make(struct str password, uint64_t rounds, struct scram *ret)
{
	ret->rounds = rounds;
	ret->salt_len = sizeof(ret->salt);
	rand_bytes(ret->salt, ret->salt_len);
	return scram_derive(password, ret);
}
