/* Texts are taken up to their limits, to the byte, and passwords as the settings want them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/evp.h>

#include "access/auth_scram.h"
#include "access/door_password.h"
#include "access/follow.h"
#include "access/people.h"
#include "access/person_cache.h"
#include "access/settings.h"
#include "access/verifier.h"
#include "base/log.h"

enum {
	ROUNDS = 10, /* few, so that the tests are quick */
	ARENA_BYTES = 4 << 20,
};

struct fixture {
	struct arena *arena;
	struct auth *auth;
	struct settings *settings;
	struct err err;
};

static int
setup(void **state)
{
	static const struct setting_group *const groups[] = { &access_setting_group,
							      &log_setting_group };
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->arena = arena_new(ARENA_BYTES);
	f->auth = auth_new();
	f->settings = settings_new(groups, 2);
	*state = f;
	return f->arena && f->auth && f->settings ? 0 : -1;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	settings_free(f->settings);
	auth_free(f->auth);
	arena_free(f->arena);
	free(f);
	return 0;
}

/* So many letters. */
static struct str
letters(struct fixture *f, size_t len)
{
	char *text = arena_bytes(f->arena, len);

	assert_non_null(text);
	memset(text, 'x', len);
	return str_of(text, len);
}

/* ---- What takes a text of any length ---- */

static enum status
add_admin(struct fixture *f, size_t len)
{
	return auth_add_admin_hashed(f->auth, letters(f, len),
				     STR("-pbkdf2-00112233445566778899001122334455"
					 "66778899,salt,10"),
				     &f->err);
}

static enum status
set_secret(struct fixture *f, size_t len)
{
	return auth_set_secret(f->auth, letters(f, len), &f->err);
}

static enum status
check_plain(struct fixture *f, size_t len)
{
	return auth_check_plain(STR("anna"), letters(f, len), &f->err);
}

static enum status
make_verifiers(struct fixture *f, size_t len)
{
	const struct auth_hashing how = { .rounds = ROUNDS };
	struct verifier verifier = { .salt_len = 0 };
	struct scram scram = { .salt_len = 0 };

	return auth_make_verifiers(letters(f, len), &how, &verifier, &scram, &f->err);
}

static enum status
digest_of_name(struct fixture *f, size_t len)
{
	struct person_proof proof;

	return person_proof_digest(letters(f, len), STR("apple"), &proof);
}

static enum status
digest_of_password(struct fixture *f, size_t len)
{
	struct person_proof proof;

	return person_proof_digest(STR("anna"), letters(f, len), &proof);
}

static enum status
door_password(struct fixture *f, size_t len)
{
	const struct settings_held held = { .settings = f->settings };

	return door_password_check(&held, letters(f, len), &f->err);
}

/* An administrator with that name and a password, and a login with them. */
static enum status
log_in(struct fixture *f, struct str name, struct str password)
{
	const struct auth_hashing how = { .rounds = ROUNDS };
	struct auth *auth = auth_new();
	struct auth_user user;
	enum status status;
	struct str hashed;

	assert_non_null(auth);
	assert_int_equal(
		auth_hash_password(STR("anna"), password, &how, f->arena, &hashed, &f->err),
		STATUS_OK);
	assert_int_equal(auth_add_admin_hashed(auth, name, hashed, &f->err), STATUS_OK);
	status = auth_login(auth, "session", name, password, NULL, f->arena, &user, &f->err);
	auth_free(auth);
	return status;
}

static enum status
log_in_with_name(struct fixture *f, size_t len)
{
	return log_in(f, letters(f, len), STR("apple"));
}

static enum status
log_in_with_password(struct fixture *f, size_t len)
{
	return log_in(f, STR("anna"), letters(f, len));
}

/* A cookie of somebody with that name. */
static enum status
show_cookie(struct fixture *f, size_t len)
{
	struct str name = letters(f, len), value;
	struct auth *auth = auth_new();
	struct auth_user user;

	assert_non_null(auth);
	assert_int_equal(auth_add_admin_hashed(
				 auth, name,
				 STR("-pbkdf2-0011223344556677889900112233445566778899,salt,10"),
				 &f->err),
			 STATUS_OK);
	assert_int_equal(auth_make_cookie(auth, name, NULL, f->arena, &value), STATUS_OK);
	assert_int_equal(auth_check(auth, (struct str){ 0 },
				    arena_printf(f->arena, "AuthSession=%.*s", STR_ARG(value)),
				    NULL, f->arena, &user, &f->err),
			 STATUS_OK);
	auth_free(auth);
	return user.method == AUTH_METHOD_COOKIE ? STATUS_OK : STATUS_NOT_FOUND;
}

static enum status
name_by_proxy(struct fixture *f, size_t len)
{
	const struct auth_client client = { .proxy_name = letters(f, len) };
	struct auth *auth = auth_new();
	struct auth_user user;

	assert_non_null(auth);
	assert_int_equal(auth_add_admin_hashed(
				 auth, STR("anna"),
				 STR("-pbkdf2-0011223344556677889900112233445566778899,salt,10"),
				 &f->err),
			 STATUS_OK);
	assert_int_equal(auth_set_handlers(auth, STR("{chttpd_auth, proxy_authentication_handler}"),
					   &f->err),
			 STATUS_OK);
	assert_int_equal(auth_set_proxy(auth, false, STR(""), STR("sha256"), &f->err), STATUS_OK);
	assert_int_equal(auth_check(auth, (struct str){ 0 }, (struct str){ 0 }, &client, f->arena,
				    &user, &f->err),
			 STATUS_OK);
	auth_free(auth);
	return user.method == AUTH_METHOD_PROXY ? STATUS_OK : STATUS_NOT_FOUND;
}

static enum status
begin_scram(struct fixture *f, struct str message)
{
	const struct auth_client client = { .by.address = STR("127.0.0.1:1") };
	struct auth_scram *s = NULL;
	enum status status;
	struct str answer;

	status = auth_scram_begin(f->auth, message, &client, f->arena, &s, &answer, &f->err);
	if (status == STATUS_OK)
		auth_scram_free(s);
	return status;
}

static enum status
scram_name(struct fixture *f, size_t len)
{
	return begin_scram(f, arena_printf(f->arena, "n,,n=%.*s,r=x", STR_ARG(letters(f, len))));
}

static enum status
scram_nonce(struct fixture *f, size_t len)
{
	return begin_scram(f, arena_printf(f->arena, "n,,n=anna,r=%.*s", STR_ARG(letters(f, len))));
}

/* What nobody knows stands behind the nonce. */
static enum status
scram_message(struct fixture *f, size_t len)
{
	static const char head[] = "n,,n=anna,r=x,";

	return begin_scram(
		f, arena_printf(f->arena, "%s%.*s", head, STR_ARG(letters(f, len - strlen(head)))));
}

static enum status
token_keys(struct fixture *f, size_t count)
{
	struct jwt_key_text *keys = arena_zalloc(f->arena, count * sizeof(*keys));
	const struct jwt_choices choices = { .required_claims = NULL };
	struct jwt_rules *rules = NULL;
	enum status status;

	assert_non_null(keys);
	for (size_t i = 0; i < count; i++)
		keys[i] = (struct jwt_key_text){ arena_printf(f->arena, "hmac:%zu", i),
						 STR("c2VjcmV0") };
	status = jwt_rules_new(&choices, keys, count, &rules, &f->err);
	jwt_rules_free(rules);
	return status;
}

static const struct {
	const char *name;
	enum status (*take)(struct fixture *f, size_t len);
	size_t least, most;
	enum status otherwise;
} texts[] = {
	{ "an administrator's name", add_admin, 1, AUTH_NAME_BYTES, STATUS_INVALID },
	{ "a secret", set_secret, AUTH_SECRET_MIN_BYTES, 0, STATUS_INVALID },
	{ "an administrator's password", check_plain, 1, AUTH_PASSWORD_BYTES, STATUS_INVALID },
	{ "a person's password", make_verifiers, 0, AUTH_PASSWORD_BYTES, STATUS_INVALID },
	{ "a remembered name", digest_of_name, 0, AUTH_NAME_BYTES, STATUS_INVALID },
	{ "a remembered password", digest_of_password, 0, AUTH_PASSWORD_BYTES, STATUS_INVALID },
	{ "a door's password", door_password, 0, AUTH_PASSWORD_BYTES, STATUS_INVALID },
	{ "a login's name", log_in_with_name, 1, 0, 0 },
	{ "a login's password", log_in_with_password, 1, 0, 0 },
	{ "a cookie's name", show_cookie, 1, 0, 0 },
	{ "a proxy's name", name_by_proxy, 1, AUTH_NAME_BYTES, STATUS_NOT_FOUND },
	{ "SCRAM's name", scram_name, 1, AUTH_NAME_BYTES, STATUS_INVALID },
	{ "SCRAM's nonce", scram_nonce, 1, AUTH_SCRAM_NONCE_BYTES, STATUS_INVALID },
	{ "SCRAM's first message", scram_message, 0, AUTH_SCRAM_MESSAGE_BYTES, STATUS_INVALID },
	{ "the keys of tokens", token_keys, 1, JWT_KEYS_LIMIT, STATUS_LIMIT },
};

static void
check_text(struct fixture *f, size_t i, size_t len, enum status expected)
{
	enum status status = texts[i].take(f, len);

	if (status != expected)
		fail_msg("%s of %zu: %s", texts[i].name, len, status_name(status));
}

static void
texts_have_limits_to_the_byte(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].least)
			check_text(f, i, texts[i].least, STATUS_OK);
		if (texts[i].least && texts[i].otherwise && texts[i].take != token_keys)
			check_text(f, i, texts[i].least - 1, texts[i].otherwise);
		if (!texts[i].most)
			continue;
		check_text(f, i, texts[i].most, STATUS_OK);
		check_text(f, i, texts[i].most + 1, texts[i].otherwise);
	}
	/* What is longer cannot be set, so these are the longest that there are. */
	assert_int_equal(log_in_with_name(f, AUTH_NAME_BYTES), STATUS_OK);
	assert_int_equal(log_in_with_password(f, AUTH_PASSWORD_BYTES), STATUS_OK);
	assert_int_equal(show_cookie(f, AUTH_NAME_BYTES), STATUS_OK);
}

/* ---- Passwords of doors ---- */

static void
the_password_of_a_door_keeps_the_rules(void **state)
{
	struct fixture *f = *state;
	const struct settings_held held = { .settings = f->settings };

	assert_int_equal(door_password_check(&held, STR("x"), &f->err), STATUS_OK);
	assert_int_equal(
		settings_set(f->settings, STR(ACCESS_SECRET_SECTION), STR("password_regexp"),
			     STR("[{\".{3,}\", \"It is too short.\"}, {\"[0-9]\"}]"), &f->err),
		STATUS_OK);
	assert_int_equal(door_password_check(&held, STR("ab1"), &f->err), STATUS_OK);
	assert_int_equal(door_password_check(&held, STR("a1"), &f->err), STATUS_INVALID);
	assert_non_null(strstr(f->err.text, "password_regexp: It is too short."));
	assert_int_equal(door_password_check(&held, STR("abc"), &f->err), STATUS_INVALID);
	assert_null(strstr(f->err.text, "password_regexp:"));
}

/* A door is told a password or its digits: the hash is the same. */
static void
the_password_of_a_door_is_hashed_by_its_digits(void **state)
{
	struct fixture *f = *state;
	const struct settings_held held = { .settings = f->settings };
	uint8_t plain[PERSON_DOOR_HASH_BYTES], digits[PERSON_DOOR_HASH_BYTES];
	char digest[PERSON_DOOR_DIGEST_BYTES];
	struct person_door at;

	person_door_init(&at, ROUNDS);
	assert_true(person_door_digest(STR("apple"), digest));
	assert_int_equal(door_password_hash(&held, NULL, &at, STR("apple"), true, plain, &f->err),
			 STATUS_OK);
	assert_int_equal(door_password_hash(&held, NULL, &at, str_of(digest, sizeof(digest)), false,
					    digits, &f->err),
			 STATUS_OK);
	assert_memory_equal(plain, digits, sizeof(plain));
	assert_int_equal(door_password_hash(&held, NULL, &at, STR("apples"), true, digits, &f->err),
			 STATUS_OK);
	assert_memory_not_equal(plain, digits, sizeof(plain));
}

static void
what_is_not_there_can_be_freed(void **state)
{
	(void)state;
	auth_scram_free(NULL);
	people_news_free(NULL);
	jwt_rules_free(NULL);
}

/* Of a scheme that there is not, as of a digest that there is not, nothing can be made. */
static void
a_verifier_of_no_scheme_has_no_hash(void **state)
{
	struct verifier v = { .digest = VERIFIER_SHA256, .rounds = 1, .hash_len = 32 };
	uint8_t hash[VERIFIER_HASH_BYTES];

	(void)state;
	v.scheme = VERIFIER_PBKDF2;
	assert_true(verifier_is_sound(&v));
	assert_true(verifier_derive(&v, STR("password"), hash));
	v.scheme = (enum verifier_scheme)99;
	assert_false(verifier_is_sound(&v));
	assert_false(verifier_derive(&v, STR("password"), hash));
	v.scheme = VERIFIER_PBKDF2;
	v.digest = (enum verifier_digest)99;
	assert_false(verifier_is_sound(&v));
	assert_null(verifier_md(v.digest));
}

/* Whether OpenSSL has no memory for another digest. */
static bool digests_fail;

EVP_MD_CTX *__real_EVP_MD_CTX_new(void);
EVP_MD_CTX *__wrap_EVP_MD_CTX_new(void);

EVP_MD_CTX *
__wrap_EVP_MD_CTX_new(void)
{
	return digests_fail ? NULL : __real_EVP_MD_CTX_new();
}

static void
a_hash_of_a_hash_that_fails_is_none(void **state)
{
	static const enum verifier_scheme schemes[] = { VERIFIER_SIMPLE, VERIFIER_SIMPLE_PBKDF2 };

	(void)state;
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		struct verifier v = {
			.scheme = schemes[i], .digest = VERIFIER_SHA256, .rounds = 1, .hash_len = 32
		};
		uint8_t hash[VERIFIER_HASH_BYTES];

		assert_true(verifier_derive(&v, STR("password"), hash));
		digests_fail = true;
		assert_false(verifier_derive(&v, STR("password"), hash));
		digests_fail = false;
	}
}

/* By the beginnings that CouchDB's ini files have. */
static void
hashes_are_told_from_passwords(void **state)
{
	(void)state;
	assert_true(auth_is_hashed(STR("-pbkdf2-a,b,1")));
	assert_true(auth_is_hashed(STR("-pbkdf2:sha256-a,b,1")));
	assert_true(auth_is_hashed(STR("-hashed-a,b")));
	assert_false(auth_is_hashed(STR("-pbkdf-a,b,1")));
	assert_false(auth_is_hashed(STR("-hashed")));
	assert_false(auth_is_hashed(STR("hashed-a,b")));
	assert_false(auth_is_hashed(STR("")));
}

/* Each of them by its name, and nothing by another one. */
static void
digests_have_names(void **state)
{
	static const char *const none[] = { "", "sha25", "sha2560", "SHA256", "md5" };
	enum verifier_digest found = VERIFIER_SHA256;

	(void)state;
	for (enum verifier_digest digest = VERIFIER_SHA1; digest <= VERIFIER_SHA512; digest++) {
		assert_true(
			verifier_digest_find(str_from_cstr(verifier_digest_name(digest)), &found));
		assert_int_equal(found, digest);
		assert_non_null(verifier_md(digest));
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(verifier_digest_find(str_from_cstr(none[i]), &found));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(texts_have_limits_to_the_byte),
		TEST(the_password_of_a_door_keeps_the_rules),
		TEST(the_password_of_a_door_is_hashed_by_its_digits),
		cmocka_unit_test(what_is_not_there_can_be_freed),
		cmocka_unit_test(a_verifier_of_no_scheme_has_no_hash),
		cmocka_unit_test(a_hash_of_a_hash_that_fails_is_none),
		cmocka_unit_test(hashes_are_told_from_passwords),
		cmocka_unit_test(digests_have_names),
	};

	return cmocka_run_group_tests_name("access_bounds", tests, NULL, NULL);
}
