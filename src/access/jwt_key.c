/* The algorithms of tokens, and the keys of the settings. */
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/decoder.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/hmac.h>

#include "access/jwt_int.h"
#include "base/base64.h"
#include "base/quote.h"

enum {
	CURVE_NAME_BYTES = 64,
	SIGNATURE_DER_BYTES = 256, /* of EC: two numbers of 66 bytes at most, and what is around */
	COORDINATE_MAX_BYTES = 66, /* of P-521 */
};

const struct jwt_alg jwt_algs[JWT_ALGS] = {
	{ "HS256", JWT_KIND_HMAC, EVP_sha256, NULL, 0 },
	{ "HS384", JWT_KIND_HMAC, EVP_sha384, NULL, 0 },
	{ "HS512", JWT_KIND_HMAC, EVP_sha512, NULL, 0 },
	{ "RS256", JWT_KIND_RSA, EVP_sha256, NULL, 0 },
	{ "RS384", JWT_KIND_RSA, EVP_sha384, NULL, 0 },
	{ "RS512", JWT_KIND_RSA, EVP_sha512, NULL, 0 },
	{ "ES256", JWT_KIND_EC, EVP_sha256, "prime256v1", 32 },
	{ "ES384", JWT_KIND_EC, EVP_sha384, "secp384r1", 48 },
	{ "ES512", JWT_KIND_EC, EVP_sha512, "secp521r1", COORDINATE_MAX_BYTES },
	{ "EdDSA", JWT_KIND_EDDSA, NULL, NULL, 0 },
};

static const char *const kind_names[JWT_KINDS] = {
	[JWT_KIND_HMAC] = "hmac",
	[JWT_KIND_RSA] = "rsa",
	[JWT_KIND_EC] = "ec",
	[JWT_KIND_EDDSA] = "eddsa",
};

size_t
jwt_alg_find(struct str name)
{
	size_t i = 0;

	while (i < JWT_ALGS && !str_eq(name, str_from_cstr(jwt_algs[i].name)))
		i++;
	return i;
}

enum status
jwt_digest(struct str data, uint8_t ret[JWT_ID_BYTES])
{
	uint8_t digest[EVP_MAX_MD_SIZE];

	if (EVP_Digest(data.ptr, data.len, digest, NULL, EVP_sha256(), NULL) != 1)
		return STATUS_NOMEM;
	memcpy(ret, digest, JWT_ID_BYTES);
	return STATUS_OK;
}

/* ---- Reading a key ---- */

/* "rsa:kid" */
static bool
name_parse(struct str name, enum jwt_kind *ret_kind, struct str *ret_kid)
{
	for (size_t i = 0; i < JWT_KINDS; i++) {
		struct str kind = str_from_cstr(kind_names[i]);

		if (name.len > kind.len + 1 && str_starts_with(name, kind) &&
		    name.ptr[kind.len] == ':') {
			*ret_kind = (enum jwt_kind)i;
			*ret_kid = str_skip(name, kind.len + 1);
			return true;
		}
	}
	return false;
}

static enum status
secret_read(const struct jwt_key_text *from, struct arena *arena, struct jwt_key *ret,
	    struct err *err)
{
	AUTO(buf_release) struct buf bytes = BUF_INIT(JWT_KEY_BYTES);
	enum status status = base64_decode(&bytes, from->text, BASE64_STANDARD);

	if (status == STATUS_NOMEM)
		return err_set(err, status, "out of memory");
	if (status != STATUS_OK || !bytes.len)
		return err_set(err, STATUS_INVALID, "[jwt_keys] %s: is not base64",
			       QUOTE_SHOW(from->name));
	ret->secret = buf_dup(&bytes, arena);
	OPENSSL_cleanse(bytes.ptr, bytes.len);
	return ret->secret.ptr ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");
}

/* The text of a PEM, in which "\n" may be written for the end of a line. */
static enum status
pem_text(struct str text, struct buf *ret)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] == '\\' && i + 1 < text.len && text.ptr[i + 1] == 'n') {
			buf_append_byte(ret, '\n');
			i++;
		} else {
			buf_append_byte(ret, (uint8_t)text.ptr[i]);
		}
	}
	return buf_status(ret);
}

static EVP_PKEY *
pem_decode(const struct buf *pem)
{
	BIO *bio = BIO_new_mem_buf(pem->ptr, (int)pem->len);
	EVP_PKEY *key = NULL;
	OSSL_DECODER_CTX *ctx = OSSL_DECODER_CTX_new_for_pkey(&key, "PEM", NULL, NULL,
							      EVP_PKEY_PUBLIC_KEY, NULL, NULL);

	if (!bio || !ctx || OSSL_DECODER_from_bio(ctx, bio) != 1) {
		EVP_PKEY_free(key);
		key = NULL;
	}
	OSSL_DECODER_CTX_free(ctx);
	BIO_free(bio);
	ERR_clear_error();
	return key;
}

static bool
key_has_curve(const EVP_PKEY *key, const char *curve)
{
	char name[CURVE_NAME_BYTES];

	return EVP_PKEY_get_group_name(key, name, sizeof(name), NULL) == 1 &&
	       strcmp(name, curve) == 0;
}

/* NULL, or what is wrong with a key of that kind. */
static const char *
key_fault(enum jwt_kind kind, const EVP_PKEY *key)
{
	int bits = EVP_PKEY_get_bits(key);

	switch (kind) {
	case JWT_KIND_HMAC:
		break;
	case JWT_KIND_RSA:
		if (!EVP_PKEY_is_a(key, "RSA"))
			return "is not an RSA public key";
		if (bits < JWT_RSA_MIN_BITS || bits > JWT_RSA_MAX_BITS)
			return "is not an RSA key of 2048 to 16384 bits";
		break;
	case JWT_KIND_EC:
		if (!EVP_PKEY_is_a(key, "EC"))
			return "is not an EC public key";
		for (size_t i = 0; i < JWT_ALGS; i++)
			if (jwt_algs[i].curve && key_has_curve(key, jwt_algs[i].curve))
				return NULL;
		return "is not a key of P-256, P-384 or P-521";
	case JWT_KIND_EDDSA:
		if (!EVP_PKEY_is_a(key, "ED25519") && !EVP_PKEY_is_a(key, "ED448"))
			return "is not an Ed25519 or Ed448 public key";
		break;
	case JWT_KINDS:
		break;
	}
	return NULL;
}

static enum status
public_key_read(const struct jwt_key_text *from, struct jwt_key *ret, struct err *err)
{
	AUTO(buf_release) struct buf pem = BUF_INIT(JWT_KEY_BYTES);
	const char *fault = "is not a public key in PEM";
	EVP_PKEY *key;

	TRY(pem_text(from->text, &pem));
	if (memmem(pem.ptr, pem.len, "PRIVATE", strlen("PRIVATE")))
		return err_set(err, STATUS_INVALID,
			       "[jwt_keys] %s: is a private key; this server needs the public one",
			       QUOTE_SHOW(from->name));
	key = pem_decode(&pem);
	if (key)
		fault = key_fault(ret->kind, key);
	if (fault) {
		EVP_PKEY_free(key);
		return err_set(err, STATUS_INVALID, "[jwt_keys] %s: %s", QUOTE_SHOW(from->name),
			       fault);
	}
	ret->public_key = key;
	return STATUS_OK;
}

enum status
jwt_key_read(const struct jwt_key_text *from, struct arena *arena, struct jwt_key *ret,
	     struct err *err)
{
	AUTO(buf_release) struct buf all = BUF_INIT(2 * JWT_KEY_BYTES);
	struct str kid;

	*ret = (struct jwt_key){ .public_key = NULL };
	if (from->name.len + from->text.len >= JWT_KEY_BYTES)
		return err_set(err, STATUS_INVALID, "[jwt_keys] %s: has more than %d bytes",
			       QUOTE_SHOW(from->name), JWT_KEY_BYTES);
	if (!name_parse(from->name, &ret->kind, &kid))
		return err_set(err, STATUS_INVALID,
			       "[jwt_keys] %s: a key's name is hmac:, rsa:, ec: or eddsa: and the "
			       "kid of its tokens, or _default",
			       QUOTE_SHOW(from->name));
	ret->kid = arena_dup(arena, kid);
	if (!ret->kid.ptr)
		return err_set(err, STATUS_NOMEM, "out of memory");
	buf_append_str(&all, from->name);
	buf_append_byte(&all, '=');
	buf_append_str(&all, from->text);
	TRY(buf_status(&all));
	TRY(jwt_digest(buf_str(&all), ret->id));
	if (ret->kind == JWT_KIND_HMAC)
		return secret_read(from, arena, ret, err);
	return public_key_read(from, ret, err);
}

void
jwt_key_release(struct jwt_key *key)
{
	if (key->secret.ptr)
		OPENSSL_cleanse((void *)(uintptr_t)key->secret.ptr, key->secret.len);
	EVP_PKEY_free(key->public_key);
	*key = (struct jwt_key){ .public_key = NULL };
}

/* ---- Checking a signature ---- */

static bool
hmac_verify(const struct jwt_key *key, const struct jwt_alg *alg, struct str message,
	    struct str signature)
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned len = sizeof(digest);

	if (!HMAC(alg->md(), key->secret.ptr, (int)key->secret.len, (const uint8_t *)message.ptr,
		  message.len, digest, &len))
		return false;
	return len == signature.len && CRYPTO_memcmp(digest, signature.ptr, len) == 0;
}

/* From two numbers, as tokens have them, to what OpenSSL reads. 0: it is no signature. */
static size_t
ec_signature(const struct jwt_alg *alg, struct str signature, uint8_t ret[SIGNATURE_DER_BYTES])
{
	const uint8_t *bytes = (const uint8_t *)signature.ptr;
	int half = (int)alg->coordinate_bytes;
	ECDSA_SIG *both;
	uint8_t *end = ret;
	BIGNUM *r, *s;
	int len = 0;

	if (signature.len != 2 * alg->coordinate_bytes)
		return 0;
	both = ECDSA_SIG_new();
	r = BN_bin2bn(bytes, half, NULL);
	s = BN_bin2bn(bytes + half, half, NULL);
	if (both && r && s && ECDSA_SIG_set0(both, r, s) == 1) {
		r = s = NULL; /* they are of `both` now */
		len = i2d_ECDSA_SIG(both, &end);
	}
	BN_free(r);
	BN_free(s);
	ECDSA_SIG_free(both);
	return len > 0 ? (size_t)len : 0;
}

bool
jwt_key_verify(const struct jwt_key *key, const struct jwt_alg *alg, struct str message,
	       struct str signature)
{
	const uint8_t *bytes = (const uint8_t *)signature.ptr;
	uint8_t der[SIGNATURE_DER_BYTES];
	size_t len = signature.len;
	EVP_MD_CTX *ctx;
	bool right;

	if (alg->kind == JWT_KIND_HMAC)
		return hmac_verify(key, alg, message, signature);
	if (alg->kind == JWT_KIND_EC) {
		if (!key_has_curve(key->public_key, alg->curve))
			return false;
		len = ec_signature(alg, signature, der);
		bytes = der;
	}
	if (!len)
		return false;
	ctx = EVP_MD_CTX_new();
	right = ctx &&
		EVP_DigestVerifyInit(ctx, NULL, alg->md ? alg->md() : NULL, NULL,
				     key->public_key) == 1 &&
		EVP_DigestVerify(ctx, bytes, len, (const uint8_t *)message.ptr, message.len) == 1;
	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	return right;
}
