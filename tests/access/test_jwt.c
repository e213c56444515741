/* Tokens: what is right, what is wrong and in which words, and that no key serves another kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

#include "access/jwt_cache.h"
#include "access/jwt_int.h"
#include "base/base64.h"

enum {
	NOW = 1700000000,
	MOMENT_BYTES = 63, /* of the text of a moment */
};

struct fixture {
	struct arena *arena;
	struct jwt_rules *rules;
	struct err err;
};

static struct fixture f;

/* ---- Keys ---- */

enum {
	RSA_KEY,
	RSA_OTHER,
	P256_KEY,
	P384_KEY,
	P521_KEY,
	ED25519_KEY,
	ED448_KEY,
	KEYS,
};

static EVP_PKEY *private_keys[KEYS];
static struct str public_texts[KEYS];

static int
setup_keys(void **state)
{
	static struct arena *texts;

	(void)state;
	texts = arena_new(1 << 20);
	private_keys[RSA_KEY] = EVP_RSA_gen(2048);
	private_keys[RSA_OTHER] = EVP_RSA_gen(2048);
	private_keys[P256_KEY] = EVP_EC_gen("P-256");
	private_keys[P384_KEY] = EVP_EC_gen("P-384");
	private_keys[P521_KEY] = EVP_EC_gen("P-521");
	private_keys[ED25519_KEY] = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	private_keys[ED448_KEY] = EVP_PKEY_Q_keygen(NULL, NULL, "ED448");
	for (size_t i = 0; i < KEYS; i++) {
		BIO *bio = BIO_new(BIO_s_mem());
		char *ptr;
		long len;

		if (!private_keys[i] || PEM_write_bio_PUBKEY(bio, private_keys[i]) != 1)
			return -1;
		len = BIO_get_mem_data(bio, &ptr);
		public_texts[i] = arena_dup(texts, str_of(ptr, (size_t)len));
		BIO_free(bio);
	}
	return 0;
}

static int
teardown_keys(void **state)
{
	(void)state;
	for (size_t i = 0; i < KEYS; i++)
		EVP_PKEY_free(private_keys[i]);
	return 0;
}

/* ---- Tokens ---- */

static struct str
encoded(struct str s)
{
	AUTO(buf_release) struct buf b = BUF_INIT(JWT_TOKEN_BYTES * 2);

	base64_encode(&b, s, BASE64_URL);
	return arena_dup(f.arena, buf_str(&b));
}

static struct str
joined(struct str a, struct str b)
{
	return arena_printf(f.arena, "%.*s.%.*s", STR_ARG(a), STR_ARG(b));
}

static struct str
message_of(const char *header, const char *claims)
{
	return joined(encoded(str_from_cstr(header)), encoded(str_from_cstr(claims)));
}

static struct str
token_hs_by(const EVP_MD *md, struct str key, const char *header, const char *claims)
{
	struct str message = message_of(header, claims);
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned len = sizeof(digest);

	assert_non_null(HMAC(md, key.ptr, (int)key.len, (const uint8_t *)message.ptr, message.len,
			     digest, &len));
	return joined(message, encoded(str_of(digest, len)));
}

static struct str
token_hs(const char *header, const char *claims)
{
	return token_hs_by(EVP_sha256(), STR("hello"), header, claims);
}

/* Two numbers, as tokens have a signature, out of what OpenSSL makes. */
static struct str
ec_numbers(const uint8_t *der, size_t len, size_t bytes)
{
	ECDSA_SIG *both = d2i_ECDSA_SIG(NULL, &der, (long)len);
	uint8_t out[132];

	assert_non_null(both);
	assert_true(2 * bytes <= sizeof(out));
	assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_r(both), out, (int)bytes), bytes);
	assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_s(both), out + bytes, (int)bytes), bytes);
	ECDSA_SIG_free(both);
	return arena_dup(f.arena, str_of(out, 2 * bytes));
}

static struct str
token_by(int key, const EVP_MD *md, size_t ec_bytes, const char *header, const char *claims)
{
	struct str message = message_of(header, claims);
	uint8_t signature[4096];
	size_t len = sizeof(signature);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	struct str text;

	assert_int_equal(EVP_DigestSignInit(ctx, NULL, md, NULL, private_keys[key]), 1);
	assert_int_equal(
		EVP_DigestSign(ctx, signature, &len, (const uint8_t *)message.ptr, message.len), 1);
	EVP_MD_CTX_free(ctx);
	text = ec_bytes ? ec_numbers(signature, len, ec_bytes)
			: arena_dup(f.arena, str_of(signature, len));
	return joined(message, encoded(text));
}

/* ---- Rules ---- */

static const struct jwt_choices defaults = { .required_claims = "exp",
					     .roles_name = "_couchdb.roles" };

static enum status
rules_of(const struct jwt_choices *choices, const struct jwt_key_text *keys, size_t count)
{
	jwt_rules_free(f.rules);
	f.rules = NULL;
	return jwt_rules_new(choices, keys, count, &f.rules, &f.err);
}

/* All keys, each as the default of its kind, and by names of their own. */
static void
use_rules(const struct jwt_choices *choices)
{
	const struct jwt_key_text keys[] = {
		{ STR("hmac:_default"), STR("aGVsbG8=") },
		{ STR("hmac:k"), STR("b3RoZXI=") },
		{ STR("rsa:_default"), public_texts[RSA_KEY] },
		{ STR("ec:_default"), public_texts[P256_KEY] },
		{ STR("ec:p384"), public_texts[P384_KEY] },
		{ STR("ec:p521"), public_texts[P521_KEY] },
		{ STR("eddsa:_default"), public_texts[ED25519_KEY] },
		{ STR("eddsa:ed448"), public_texts[ED448_KEY] },
	};

	if (rules_of(choices, keys, sizeof(keys) / sizeof(keys[0])) != STATUS_OK)
		fail_msg("%s", f.err.text);
}

static int
setup(void **state)
{
	(void)state;
	f = (struct fixture){ .arena = arena_new(16 << 20) };
	use_rules(&defaults);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	jwt_rules_free(f.rules);
	arena_free(f.arena);
	return 0;
}

static void
expect_refused(struct str token, enum status status, const char *words)
{
	struct jwt_claims claims;

	f.err = (struct err){ 0 };
	assert_int_equal(jwt_check(f.rules, token, NOW, f.arena, &claims, &f.err), status);
	assert_string_equal(f.err.text, words);
}

static struct jwt_claims
expect_right(struct str token)
{
	struct jwt_claims claims;

	if (jwt_check(f.rules, token, NOW, f.arena, &claims, &f.err) != STATUS_OK)
		fail_msg("%s: %.*s", f.err.text, STR_ARG(token));
	return claims;
}

#define CLAIMS "{\"sub\":\"anna\",\"exp\":1700000100}"

/* ---- Cases ---- */

static void
tokens_of_all_algorithms_are_taken(void **state)
{
	(void)state;
	expect_right(token_hs("{\"alg\":\"HS256\"}", CLAIMS));
	expect_right(token_hs_by(EVP_sha384(), STR("hello"), "{\"alg\":\"HS384\"}", CLAIMS));
	expect_right(token_hs_by(EVP_sha512(), STR("hello"), "{\"alg\":\"HS512\"}", CLAIMS));
	expect_right(token_hs_by(EVP_sha256(), STR("other"), "{\"alg\":\"HS256\",\"kid\":\"k\"}",
				 CLAIMS));
	expect_right(token_by(RSA_KEY, EVP_sha256(), 0, "{\"alg\":\"RS256\"}", CLAIMS));
	expect_right(token_by(RSA_KEY, EVP_sha384(), 0, "{\"alg\":\"RS384\"}", CLAIMS));
	expect_right(token_by(RSA_KEY, EVP_sha512(), 0, "{\"alg\":\"RS512\"}", CLAIMS));
	expect_right(token_by(P256_KEY, EVP_sha256(), 32, "{\"alg\":\"ES256\"}", CLAIMS));
	expect_right(token_by(P384_KEY, EVP_sha384(), 48, "{\"alg\":\"ES384\",\"kid\":\"p384\"}",
			      CLAIMS));
	expect_right(token_by(P521_KEY, EVP_sha512(), 66, "{\"alg\":\"ES512\",\"kid\":\"p521\"}",
			      CLAIMS));
	expect_right(token_by(ED25519_KEY, NULL, 0, "{\"alg\":\"EdDSA\",\"typ\":\"JWT\"}", CLAIMS));
	expect_right(token_by(ED448_KEY, NULL, 0, "{\"alg\":\"EdDSA\",\"kid\":\"ed448\"}", CLAIMS));
}

static void
a_key_never_serves_an_algorithm_of_another_kind(void **state)
{
	static const struct jwt_choices any = { .required_claims = "" };
	struct jwt_key_text rsa = { STR("rsa:_default"), public_texts[RSA_KEY] };
	struct jwt_key_text wrong = { STR("rsa:_default"), public_texts[P256_KEY] };

	(void)state;
	/* The text of a public key as the secret of an HMAC. */
	assert_int_equal(rules_of(&any, &rsa, 1), STATUS_OK);
	expect_refused(token_hs_by(EVP_sha256(), public_texts[RSA_KEY], "{\"alg\":\"HS256\"}",
				   "{\"sub\":\"anna\"}"),
		       STATUS_INVALID, "Unknown kid");
	expect_refused(joined(message_of("{\"alg\":\"none\"}", "{\"sub\":\"anna\"}"), STR("")),
		       STATUS_INVALID, "Invalid alg header parameter");
	/* A key under the name of another kind is no key. */
	assert_int_equal(rules_of(&any, &wrong, 1), STATUS_INVALID);
	assert_string_equal(f.err.text, "[jwt_keys] rsa:_default: is not an RSA public key");
	wrong = (struct jwt_key_text){ STR("ec:x"), public_texts[RSA_KEY] };
	assert_int_equal(rules_of(&any, &wrong, 1), STATUS_INVALID);
	assert_string_equal(f.err.text, "[jwt_keys] ec:x: is not an EC public key");
	wrong = (struct jwt_key_text){ STR("eddsa:x"), public_texts[P256_KEY] };
	assert_int_equal(rules_of(&any, &wrong, 1), STATUS_INVALID);
	wrong = (struct jwt_key_text){ STR("hmac:x"), public_texts[P256_KEY] };
	assert_int_equal(rules_of(&any, &wrong, 1), STATUS_INVALID);
	/* A curve has one algorithm. */
	use_rules(&defaults);
	expect_refused(token_by(P384_KEY, EVP_sha256(), 48, "{\"alg\":\"ES256\",\"kid\":\"p384\"}",
				CLAIMS),
		       STATUS_INVALID, "Bad signature");
	expect_refused(token_by(P256_KEY, EVP_sha384(), 32, "{\"alg\":\"ES384\"}", CLAIMS),
		       STATUS_INVALID, "Bad signature");
	expect_refused(token_by(P256_KEY, EVP_sha384(), 48, "{\"alg\":\"ES384\"}", CLAIMS),
		       STATUS_INVALID, "Bad signature");
	expect_refused(token_by(P256_KEY, EVP_sha512(), 66, "{\"alg\":\"ES512\"}", CLAIMS),
		       STATUS_INVALID, "Bad signature");
	expect_refused(token_by(P521_KEY, EVP_sha384(), 66, "{\"alg\":\"ES384\",\"kid\":\"p521\"}",
				CLAIMS),
		       STATUS_INVALID, "Bad signature");
}

static void
another_signature_is_refused(void **state)
{
	struct str good = token_hs("{\"alg\":\"HS256\"}", CLAIMS);
	struct str other = message_of("{\"alg\":\"HS256\"}",
				      "{\"sub\":\"root\",\"exp\":1700000100}");

	(void)state;
	expect_refused(joined(other, str_skip(good, good.len - 43)), STATUS_INVALID, "Bad HMAC");
	expect_refused(str_of(good.ptr, good.len - 43), STATUS_INVALID, "Bad HMAC");
	expect_refused(token_hs_by(EVP_sha256(), STR("hellp"), "{\"alg\":\"HS256\"}", CLAIMS),
		       STATUS_INVALID, "Bad HMAC");
	expect_refused(token_by(RSA_OTHER, EVP_sha256(), 0, "{\"alg\":\"RS256\"}", CLAIMS),
		       STATUS_INVALID, "Bad signature");
	/* Two numbers that are zero, and what is no pair of numbers. */
	expect_refused(joined(message_of("{\"alg\":\"ES256\"}", CLAIMS),
			      encoded(str_of((const char[64]){ 0 }, 64))),
		       STATUS_INVALID, "Bad signature");
	expect_refused(joined(message_of("{\"alg\":\"ES256\"}", CLAIMS), STR("AAAA")),
		       STATUS_INVALID, "Bad signature");
	for (size_t i = 0; i < good.len; i++) {
		char *changed = arena_bytes(f.arena, good.len);
		struct jwt_claims claims;

		memcpy(changed, good.ptr, good.len);
		changed[i] = changed[i] == 'A' ? 'B' : 'A';
		assert_int_not_equal(
			jwt_check(f.rules, str_of(changed, good.len), NOW, f.arena, &claims, NULL),
			STATUS_OK);
	}
}

/* Each by itself, with the words of CouchDB where CouchDB has some. */
static const struct {
	const char *header;
	const char *claims;
	enum status status;
	const char *words;
} refusals[] = {
	{ "[]", CLAIMS, STATUS_INVALID, "Not an object" },
	{ "x", CLAIMS, STATUS_INVALID, "Malformed token" },
	{ "{}", CLAIMS, STATUS_INVALID, "Missing alg header parameter" },
	{ "{\"alg\":1}", CLAIMS, STATUS_INVALID, "Invalid alg header parameter" },
	{ "{\"alg\":\"NOPE\"}", CLAIMS, STATUS_INVALID, "Invalid alg header parameter" },
	{ "{\"alg\":\"hs256\"}", CLAIMS, STATUS_INVALID, "Invalid alg header parameter" },
	{ "{\"typ\":\"NOPE\",\"alg\":\"HS256\"}", CLAIMS, STATUS_INVALID,
	  "Invalid typ header parameter" },
	{ "{\"alg\":\"HS256\",\"crit\":[\"x\"]}", CLAIMS, STATUS_INVALID,
	  "Invalid crit header parameter" },
	{ "{\"alg\":\"HS256\",\"kid\":\"z\"}", CLAIMS, STATUS_INVALID, "Unknown kid" },
	{ "{\"alg\":\"HS256\",\"kid\":7}", CLAIMS, STATUS_INVALID, "Unknown kid" },
	{ "{\"alg\":\"RS256\",\"kid\":\"k\"}", CLAIMS, STATUS_INVALID, "Unknown kid" },
	{ "{\"alg\":\"HS256\"}", "7", STATUS_INVALID, "Not an object" },
	{ "{\"alg\":\"HS256\"}", "{\"sub\":\"a\"}", STATUS_INVALID, "Missing exp claim" },
	{ "{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"exp\":\"9\"}", STATUS_INVALID,
	  "Invalid exp claim" },
	{ "{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"exp\":1700000000}", STATUS_UNAUTHORIZED,
	  "exp not in future" },
	{ "{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"exp\":-1}", STATUS_UNAUTHORIZED,
	  "exp not in future" },
	{ "{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"exp\":1e999}", STATUS_INVALID,
	  "Invalid exp claim" },
	{ "{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"exp\":1700000100,\"nbf\":1700000001}",
	  STATUS_UNAUTHORIZED, "nbf not in past" },
	{ "{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"exp\":1700000100,\"nbf\":\"1\"}", STATUS_INVALID,
	  "Invalid nbf claim" },
	{ "{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"exp\":1700000100,\"_couchdb.roles\":null}",
	  STATUS_INVALID, "Malformed token" },
	{ "{\"alg\":\"HS256\"}", "{\"exp\":1700000100}", STATUS_UNAUTHORIZED,
	  "Token missing sub claim." },
	{ "{\"alg\":\"HS256\"}", "{\"sub\":\"\",\"exp\":1700000100}", STATUS_UNAUTHORIZED,
	  "Token missing sub claim." },
	{ "{\"alg\":\"HS256\"}", "{\"sub\":1,\"exp\":1700000100}", STATUS_INVALID,
	  "Malformed token" },
	{ "{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"exp\":1700000100,\"_couchdb.roles\":1}",
	  STATUS_INVALID, "Malformed token" },
	{ "{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"exp\":1700000100,\"_couchdb.roles\":[\"a\",1]}",
	  STATUS_INVALID, "Malformed token" },
};

static void
what_is_wrong_is_refused_in_couchdbs_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		expect_refused(token_hs(refusals[i].header, refusals[i].claims), refusals[i].status,
			       refusals[i].words);
	expect_refused(STR(""), STATUS_INVALID, "Malformed token");
	expect_refused(STR("."), STATUS_INVALID, "Malformed token");
	expect_refused(STR(".."), STATUS_INVALID, "Malformed token");
	expect_refused(STR("a.b.c.d"), STATUS_INVALID, "Malformed token");
	expect_refused(STR("!.b.c"), STATUS_INVALID, "Malformed token");
}

static void
claims_are_required_as_the_settings_say(void **state)
{
	static const struct jwt_choices all = {
		.required_claims = "exp,nbf , iat, {iss, \"me, or you\"}, "
				   "kid, typ,alg,sig"
	};
	static const char head[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\",\"kid\":\"_default\"}";
	static const char claims[] = "{\"sub\":\"a\",\"exp\":1700000100,\"nbf\":1,\"iat\":1,"
				     "\"iss\":\"me, or you\"}";

	(void)state;
	use_rules(&all);
	expect_right(token_hs(head, claims));
	expect_refused(token_hs("{\"alg\":\"HS256\",\"kid\":\"_default\"}", claims), STATUS_INVALID,
		       "Missing typ header parameter");
	expect_refused(token_hs("{\"alg\":\"HS256\",\"typ\":\"JWT\"}", claims), STATUS_INVALID,
		       "Missing kid claim");
	expect_refused(token_hs(head, "{}"), STATUS_INVALID, "Missing iss claim");
	expect_refused(token_hs(head, "{\"iss\":\"you\"}"), STATUS_INVALID, "Invalid iss claim");
	expect_refused(token_hs(head, "{\"iss\":7}"), STATUS_INVALID, "Invalid iss claim");
	expect_refused(token_hs(head, "{\"iss\":\"me, or you\",\"iat\":\"1\"}"), STATUS_INVALID,
		       "Invalid iat claim");
	/* Nothing says where roles are. */
	assert_int_equal(expect_right(token_hs(head, "{\"sub\":\"a\",\"exp\":1700000100,\"nbf\":1,"
						     "\"iat\":1,\"iss\":\"me, or you\","
						     "\"_couchdb.roles\":[\"x\"]}"))
				 .roles_count,
			 0);
	expect_refused(token_hs(head, "{\"iss\":\"me, or you\"}"), STATUS_INVALID,
		       "Missing iat claim");
	expect_refused(token_hs(head, "{\"iss\":\"me, or you\",\"iat\":1.5}"), STATUS_INVALID,
		       "Invalid iat claim");
	expect_refused(token_hs(head, "{\"iss\":\"me, or you\",\"iat\":1}"), STATUS_INVALID,
		       "Missing nbf claim");
}

static void
what_a_token_says_of_its_time_holds_also_where_it_is_not_required(void **state)
{
	static const struct jwt_choices none = { .required_claims = "" };

	(void)state;
	use_rules(&none);
	assert_true(expect_right(token_hs("{\"alg\":\"HS256\"}", "{\"sub\":\"a\"}")).until_s ==
		    JWT_FOR_EVER);
	assert_int_equal(expect_right(token_hs("{\"alg\":\"HS256\"}",
					       "{\"sub\":\"a\",\"exp\":1700000000.5}"))
				 .until_s,
			 NOW + 1);
	assert_true(expect_right(token_hs("{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"exp\":1e300}"))
			    .until_s == JWT_FOR_EVER);
	/* What is as large as 2^63 is no moment, and the number in front of it is one. */
	assert_true(expect_right(token_hs("{\"alg\":\"HS256\"}",
					  "{\"sub\":\"a\",\"exp\":9223372036854775808}"))
			    .until_s == JWT_FOR_EVER);
	assert_true(expect_right(token_hs("{\"alg\":\"HS256\"}",
					  "{\"sub\":\"a\",\"exp\":9223372036854774784}"))
			    .until_s == UINT64_C(9223372036854774784));
	/* It begins now. */
	(void)expect_right(token_hs("{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"nbf\":1700000000}"));
	expect_refused(token_hs("{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"exp\":1}"),
		       STATUS_UNAUTHORIZED, "exp not in future");
	expect_refused(token_hs("{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"nbf\":1700000001}"),
		       STATUS_UNAUTHORIZED, "nbf not in past");
}

static void
expect_roles(const char *claims, const char *roles)
{
	struct jwt_claims c = expect_right(token_hs("{\"alg\":\"HS256\"}", claims));
	char all[400] = "";

	for (size_t i = 0; i < c.roles_count; i++)
		(void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%.*s", i ? "|" : "",
			       STR_ARG(c.roles[i]));
	assert_string_equal(all, roles);
}

static void
roles_are_where_the_settings_say(void **state)
{
	struct jwt_choices path = { .roles_path = "a.b\\.c.d", .roles_name = "ignored" };

	(void)state;
	expect_roles("{\"sub\":\"a\",\"exp\":1e10}", "");
	expect_roles("{\"sub\":\"a\",\"exp\":1e10,\"_couchdb.roles\":[\"x\",\"y, z\"]}", "x|y, z");
	expect_roles("{\"sub\":\"a\",\"exp\":1e10,\"_couchdb.roles\":\"x , y,z,,\"}", "x|y|z");
	expect_roles("{\"sub\":\"a\",\"exp\":1e10,\"_couchdb.roles\":\"\"}", "");
	use_rules(&path);
	expect_roles("{\"sub\":\"a\",\"a\":{\"b.c\":{\"d\":[\"x\"]}}}", "x");
	expect_refused(token_hs("{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"a\":{\"b.c\":7}}"),
		       STATUS_NOT_FOUND, "json_mismatch");
	expect_refused(token_hs("{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"a\":{\"b.c\":{}}}"),
		       STATUS_NOT_FOUND, "missing json key: d");
	expect_refused(token_hs("{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"ignored\":[\"x\"]}"),
		       STATUS_NOT_FOUND, "missing json key: a");
}

static void
only_the_algorithms_of_the_settings_are_taken(void **state)
{
	static const struct jwt_choices some = { .algorithms = "RS256, ES256" };

	(void)state;
	use_rules(&some);
	expect_right(token_by(RSA_KEY, EVP_sha256(), 0, "{\"alg\":\"RS256\"}", CLAIMS));
	expect_refused(token_hs("{\"alg\":\"HS256\"}", CLAIMS), STATUS_INVALID,
		       "Invalid alg header parameter");
}

static void
settings_that_make_no_sense_are_refused(void **state)
{
	static const char *const required[] = {
		"aud",         "exp,,nbf", "iss",         "{exp, \"x\"}",     "{iss, \"x\"",
		"{iss, \"\"}", "{iss, x}", "{iss \"x\"}", "{iss, \"x\"} exp", "{"
	};
	static const char *const keys[][2] = {
		{ "x", "aGVsbG8=" },     { "hmac:", "aGVsbG8=" },  { "HMAC:a", "aGVsbG8=" },
		{ "hmac:a", "!" },       { "hmac:a", "aGVsbG8" },  { "hmac:a", "" },
		{ "rsa:a", "aGVsbG8=" }, { "ec:a", "-----BEGIN" }, { "eddsa:a", "\\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
		struct jwt_choices c = { .required_claims = required[i] };

		if (rules_of(&c, NULL, 0) != STATUS_INVALID)
			fail_msg("%s", required[i]);
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct jwt_key_text key = { str_from_cstr(keys[i][0]), str_from_cstr(keys[i][1]) };

		if (rules_of(&defaults, &key, 1) != STATUS_INVALID)
			fail_msg("%s", keys[i][0]);
	}
	assert_int_equal(rules_of(&(struct jwt_choices){ .algorithms = "HS256,none" }, NULL, 0),
			 STATUS_INVALID);
	assert_int_equal(
		rules_of(&(struct jwt_choices){ .roles_path = "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q" },
			 NULL, 0),
		STATUS_INVALID);
}

static void
private_keys_and_weak_keys_are_refused(void **state)
{
	EVP_PKEY *weak = EVP_RSA_gen(1024);
	BIO *bio = BIO_new(BIO_s_mem());
	struct jwt_key_text key = { STR("rsa:a"), { 0 } };
	char *ptr;
	long len;

	(void)state;
	assert_int_equal(PEM_write_bio_PUBKEY(bio, weak), 1);
	len = BIO_get_mem_data(bio, &ptr);
	key.text = str_of(ptr, (size_t)len);
	assert_int_equal(rules_of(&defaults, &key, 1), STATUS_INVALID);
	assert_string_equal(f.err.text,
			    "[jwt_keys] rsa:a: is not an RSA key of 2048 to 16384 bits");
	BIO_free(bio);
	EVP_PKEY_free(weak);
	bio = BIO_new(BIO_s_mem());
	assert_int_equal(
		PEM_write_bio_PrivateKey(bio, private_keys[RSA_KEY], NULL, NULL, 0, NULL, NULL), 1);
	len = BIO_get_mem_data(bio, &ptr);
	key.text = str_of(ptr, (size_t)len);
	assert_int_equal(rules_of(&defaults, &key, 1), STATUS_INVALID);
	assert_non_null(strstr(f.err.text, "is a private key"));
	BIO_free(bio);
}

/* What an RSA key of so many bits would be written as: nobody has its private part. */
static struct str
rsa_text(int bits)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	BIO *bio = BIO_new(BIO_s_mem());
	BIGNUM *n = BN_new(), *e = BN_new();
	OSSL_PARAM *params;
	EVP_PKEY *key = NULL;
	struct str ret;
	char *ptr;
	long len;

	assert_int_equal(BN_set_bit(n, bits - 1) && BN_set_bit(n, 0) && BN_set_word(e, 65537), 1);
	assert_int_equal(OSSL_PARAM_BLD_push_BN(build, "n", n), 1);
	assert_int_equal(OSSL_PARAM_BLD_push_BN(build, "e", e), 1);
	params = OSSL_PARAM_BLD_to_param(build);
	assert_int_equal(EVP_PKEY_fromdata_init(ctx), 1);
	assert_int_equal(EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params), 1);
	assert_int_equal(EVP_PKEY_get_bits(key), bits);
	assert_int_equal(PEM_write_bio_PUBKEY(bio, key), 1);
	len = BIO_get_mem_data(bio, &ptr);
	ret = arena_dup(f.arena, str_of(ptr, (size_t)len));
	EVP_PKEY_free(key);
	OSSL_PARAM_free(params);
	BN_free(n);
	BN_free(e);
	BIO_free(bio);
	OSSL_PARAM_BLD_free(build);
	EVP_PKEY_CTX_free(ctx);
	return ret;
}

static void
keys_are_taken_up_to_their_limits(void **state)
{
	static const struct {
		int bits;
		enum status status;
	} rsa[] = {
		{ JWT_RSA_MIN_BITS - 1, STATUS_INVALID },
		{ JWT_RSA_MIN_BITS, STATUS_OK },
		{ JWT_RSA_MAX_BITS, STATUS_OK },
		{ JWT_RSA_MAX_BITS + 1, STATUS_INVALID },
	};
	char *name = arena_bytes(f.arena, JWT_KEY_BYTES);
	char *secret = arena_bytes(f.arena, JWT_KEY_BYTES);
	const size_t secret_bytes = JWT_KEY_BYTES - 200;

	(void)state;
	for (size_t i = 0; i < sizeof(rsa) / sizeof(rsa[0]); i++) {
		const struct jwt_key_text key = { STR("rsa:a"), rsa_text(rsa[i].bits) };

		assert_int_equal(rules_of(&defaults, &key, 1), rsa[i].status);
	}
	memset(name, 'k', JWT_KEY_BYTES);
	memcpy(name, "hmac:", strlen("hmac:"));
	memset(secret, 'A', JWT_KEY_BYTES);
	for (size_t more = 0; more < 2; more++) {
		const struct jwt_key_text key = {
			str_of(name, JWT_KEY_BYTES - 1 - secret_bytes + more),
			str_of(secret, secret_bytes),
		};

		assert_int_equal(rules_of(&defaults, &key, 1), more ? STATUS_INVALID : STATUS_OK);
	}
	assert_non_null(strstr(f.err.text, "has more than 8192 bytes"));
}

static void
limits_of_tokens_are_told(void **state)
{
	struct buf AUTO(buf_release) claims = BUF_INIT(JWT_TOKEN_BYTES);
	char *large = arena_bytes(f.arena, JWT_TOKEN_BYTES + 1);

	(void)state;
	memset(large, 'a', JWT_TOKEN_BYTES + 1);
	expect_refused(str_of(large, JWT_TOKEN_BYTES + 1), STATUS_INVALID,
		       "A token has at most 16384 bytes.");
	expect_refused(str_of(large, JWT_TOKEN_BYTES), STATUS_INVALID, "Malformed token");
	for (int more = 0; more < 2; more++) { /* the object is the first */
		buf_clear(&claims);
		buf_append_cstr(&claims, "{\"sub\":\"a\",\"exp\":1e10,\"x\":");
		for (int i = 1; i < JWT_DEPTH_LIMIT + more; i++)
			buf_append_byte(&claims, '[');
		for (int i = 1; i < JWT_DEPTH_LIMIT + more; i++)
			buf_append_byte(&claims, ']');
		buf_append_cstr(&claims, "}");
		buf_append_byte(&claims, '\0');
		if (more)
			expect_refused(token_hs("{\"alg\":\"HS256\"}", claims.ptr), STATUS_INVALID,
				       "Malformed token");
		else
			(void)expect_right(token_hs("{\"alg\":\"HS256\"}", claims.ptr));
	}
	for (int more = 0; more < 2; more++) {
		buf_clear(&claims);
		buf_append_cstr(&claims, "{\"exp\":1e10,\"sub\":\"");
		for (int i = 0; i < JWT_NAME_BYTES + more; i++)
			buf_append_byte(&claims, 'x');
		buf_append_cstr(&claims, "\"}");
		buf_append_byte(&claims, '\0');
		if (more)
			expect_refused(token_hs("{\"alg\":\"HS256\"}", claims.ptr), STATUS_INVALID,
				       "The sub claim has at most 256 bytes.");
		else
			(void)expect_right(token_hs("{\"alg\":\"HS256\"}", claims.ptr));
	}
}

/* A moment's text, and roles in both of their forms, up to the last that is taken. */
static void
claims_have_lengths_up_to_their_limits(void **state)
{
	struct buf AUTO(buf_release) list = BUF_INIT(JWT_TOKEN_BYTES);
	struct buf AUTO(buf_release) text = BUF_INIT(JWT_TOKEN_BYTES);

	(void)state;
	for (int more = 0; more < 2; more++) {
		/* 1e10 with as many zeros behind its point as fit. */
		struct str exp = arena_printf(f.arena, "{\"sub\":\"a\",\"exp\":1.%0*de10}",
					      MOMENT_BYTES - 5 + more, 0);

		if (more)
			expect_refused(token_hs("{\"alg\":\"HS256\"}", exp.ptr), STATUS_INVALID,
				       "Invalid exp claim");
		else
			(void)expect_right(token_hs("{\"alg\":\"HS256\"}", exp.ptr));
		buf_clear(&list);
		buf_clear(&text);
		buf_append_cstr(&list, "{\"sub\":\"a\",\"exp\":1e10,\"_couchdb.roles\":[\"x\"");
		buf_append_cstr(&text, "{\"sub\":\"a\",\"exp\":1e10,\"_couchdb.roles\":\"x");
		for (int i = 1; i < JWT_ROLES_LIMIT + more; i++) {
			buf_append_cstr(&list, ",\"x\"");
			buf_append_cstr(&text, ",x");
		}
		buf_append(&list, "]}", 3);
		buf_append(&text, "\"}", 3);
		if (more) {
			expect_refused(token_hs("{\"alg\":\"HS256\"}", list.ptr), STATUS_INVALID,
				       "A token has at most 1000 roles.");
			expect_refused(token_hs("{\"alg\":\"HS256\"}", text.ptr), STATUS_INVALID,
				       "A token has at most 1000 roles.");
			continue;
		}
		assert_int_equal(
			expect_right(token_hs("{\"alg\":\"HS256\"}", list.ptr)).roles_count,
			JWT_ROLES_LIMIT);
		assert_int_equal(
			expect_right(token_hs("{\"alg\":\"HS256\"}", text.ptr)).roles_count,
			JWT_ROLES_LIMIT);
	}
}

/* What is in a string opens nothing, wherever its quotes are. */
static void
brackets_in_strings_are_not_counted(void **state)
{
	static const char *const begins[] = { "\"", "\"\\\"", "\"\\\\\",\"y\":\"" };
	struct buf AUTO(buf_release) claims = BUF_INIT(JWT_TOKEN_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		buf_clear(&claims);
		buf_append_cstr(&claims, "{\"sub\":\"a\",\"exp\":1e10,\"x\":");
		buf_append_cstr(&claims, begins[i]);
		for (int k = 0; k < 2 * JWT_DEPTH_LIMIT; k++)
			buf_append_cstr(&claims, k % 2 ? "[" : "{");
		buf_append(&claims, "\"}", 3);
		(void)expect_right(token_hs("{\"alg\":\"HS256\"}", claims.ptr));
	}
	/* Those that are closed are not open any more. */
	buf_clear(&claims);
	buf_append_cstr(&claims, "{\"sub\":\"a\",\"exp\":1e10,\"x\":[0");
	for (int k = 0; k < 2 * JWT_DEPTH_LIMIT; k++)
		buf_append_cstr(&claims, k % 2 ? ",[]" : ",{}");
	buf_append(&claims, "]}", 3);
	(void)expect_right(token_hs("{\"alg\":\"HS256\"}", claims.ptr));
}

static void
a_token_is_remembered_until_it_ends_and_for_its_rules_only(void **state)
{
	struct str token = token_hs("{\"alg\":\"HS256\"}", "{\"sub\":\"anna\",\"exp\":1700000100,"
							   "\"_couchdb.roles\":[\"x\",\"\"]}");
	struct jwt_claims claims = expect_right(token);
	struct jwt_cache_key key;
	struct jwt_claims found;
	static const struct jwt_choices others = { .required_claims = "exp" };

	(void)state;
	assert_int_equal(jwt_cache_key_of(f.rules, token, &key), STATUS_OK);
	assert_int_equal(jwt_cache_find(&key, NOW, f.arena, &found), STATUS_NOT_FOUND);
	jwt_cache_add(&key, &claims);
	assert_int_equal(jwt_cache_find(&key, NOW + 99, f.arena, &found), STATUS_OK);
	assert_true(str_eq(found.name, STR("anna")));
	assert_int_equal(found.roles_count, 2);
	assert_true(str_eq(found.roles[0], STR("x")) && found.roles[1].len == 0);
	assert_int_equal(found.until_s, NOW + 100);
	assert_true(jwt_rules_have_key(f.rules, found.key));
	assert_int_equal(jwt_cache_find(&key, NOW + 100, f.arena, &found), STATUS_NOT_FOUND);
	use_rules(&others);
	assert_int_equal(jwt_cache_key_of(f.rules, token, &key), STATUS_OK);
	assert_int_equal(jwt_cache_find(&key, NOW, f.arena, &found), STATUS_NOT_FOUND);
}

static void
a_token_that_says_much_is_not_remembered(void **state)
{
	struct str role = STR("0123456789012345678901234567890123456789");
	struct str roles[12];
	struct jwt_claims claims = {
		.name = STR("anna"), .roles = roles, .roles_count = 12, .until_s = NOW + 100
	};
	struct jwt_cache_key key;
	struct jwt_claims found;

	(void)state;
	for (size_t i = 0; i < 12; i++)
		roles[i] = role;
	assert_int_equal(jwt_cache_key_of(f.rules, STR("much"), &key), STATUS_OK);
	jwt_cache_add(&key, &claims);
	assert_int_equal(jwt_cache_find(&key, NOW, f.arena, &found), STATUS_NOT_FOUND);
	claims.roles_count = 10;
	jwt_cache_add(&key, &claims);
	assert_int_equal(jwt_cache_find(&key, NOW, f.arena, &found), STATUS_OK);
	assert_true(str_eq(found.roles[9], role));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* What is remembered of a token holds under the same rules only, whatever texts these have. */
static void
other_choices_have_another_id(void **state)
{
	static const struct jwt_choices choices[] = {
		{ .required_claims = "exp", .roles_name = "a", .roles_path = "b" },
		{ .required_claims = "exp", .roles_name = "a", .roles_path = NULL },
		{ .required_claims = "exp", .roles_name = "a", .roles_path = "" },
		{ .required_claims = "exp", .roles_name = "ab", .roles_path = "" },
		{ .required_claims = "exp", .roles_name = "", .roles_path = "ab" },
		/* With the byte that says that there is a text. */
		{ .required_claims = "exp", .roles_name = "a\1b", .roles_path = "c" },
		{ .required_claims = "exp", .roles_name = "a", .roles_path = "b\1c" },
		{ .required_claims = "", .roles_name = "a", .roles_path = "b" },
	};
	enum {
		COUNT = sizeof(choices) / sizeof(choices[0])
	};
	struct jwt_rules *rules[COUNT];
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		if (jwt_rules_new(&choices[i], NULL, 0, &rules[i], &err) != STATUS_OK)
			fail_msg("%s", err.text);
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(jwt_rules_id(rules[k]), jwt_rules_id(rules[i]),
						JWT_ID_BYTES);
	}
	for (size_t i = 0; i < COUNT; i++)
		jwt_rules_free(rules[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(tokens_of_all_algorithms_are_taken),
		CASE(a_key_never_serves_an_algorithm_of_another_kind),
		CASE(another_signature_is_refused),
		CASE(what_is_wrong_is_refused_in_couchdbs_words),
		CASE(claims_are_required_as_the_settings_say),
		CASE(what_a_token_says_of_its_time_holds_also_where_it_is_not_required),
		CASE(roles_are_where_the_settings_say),
		CASE(only_the_algorithms_of_the_settings_are_taken),
		CASE(settings_that_make_no_sense_are_refused),
		CASE(private_keys_and_weak_keys_are_refused),
		CASE(keys_are_taken_up_to_their_limits),
		CASE(limits_of_tokens_are_told),
		CASE(claims_have_lengths_up_to_their_limits),
		CASE(brackets_in_strings_are_not_counted),
		CASE(a_token_is_remembered_until_it_ends_and_for_its_rules_only),
		CASE(a_token_that_says_much_is_not_remembered),
		CASE(other_choices_have_another_id),
	};

	return cmocka_run_group_tests(tests, setup_keys, teardown_keys);
}
