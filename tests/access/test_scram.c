/* SCRAM-SHA-256: the example of RFC 7677, and what a server must not accept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#include "access/auth_int.h"
#include "access/auth_scram.h"
#include "access/scram_table.h"
#include "base/base64.h"

enum {
	ROUNDS = 10,
	ARENA_BYTES = 1 << 20,
};

struct fixture {
	struct auth *auth;
	struct arena *arena;
	struct auth_client client;
	struct err err;
};

static int
setup(void **state)
{
	static struct fixture f;
	const struct auth_hashing how = { .rounds = ROUNDS };
	struct str hashed;

	f = (struct fixture){ .auth = auth_new(), .arena = arena_new(ARENA_BYTES) };
	scram_admins_want();
	if (auth_hash_password(STR("anna"), STR("pencil"), &how, f.arena, &hashed, &f.err) !=
		    STATUS_OK ||
	    auth_add_admin_hashed(f.auth, STR("anna"), hashed, &f.err) != STATUS_OK)
		return -1;
	auth_set_rounds(f.auth, ROUNDS);
	f.client.by.address = STR("127.0.0.1:1");
	*state = &f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	auth_free(f->auth);
	arena_free(f->arena);
	return 0;
}

static void
hmac(const void *key, size_t len, struct str text, uint8_t ret[32])
{
	unsigned n = 32;

	assert_non_null(
		HMAC(EVP_sha256(), key, (int)len, (const uint8_t *)text.ptr, text.len, ret, &n));
}

/* What a client does with the server's first message: the last one of its own. */
static struct str
client_final(struct fixture *f, const char *password, const char *bare, struct str first)
{
	struct buf AUTO(buf_release) salt = BUF_INIT(64);
	struct buf AUTO(buf_release) proof = BUF_INIT(64);
	struct str rest = first;
	struct str nonce = str_skip(str_cut(&rest, ','), 2);
	struct str salt_text = str_skip(str_cut(&rest, ','), 2);
	uint64_t rounds;
	uint8_t salted[32], key[32], stored[32], signature[32];
	struct str text;

	assert_true(str_to_u64(str_skip(rest, 2), &rounds));
	assert_int_equal(base64_decode(&salt, salt_text, BASE64_STANDARD), STATUS_OK);
	PKCS5_PBKDF2_HMAC(password, (int)strlen(password), (const uint8_t *)salt.ptr, (int)salt.len,
			  (int)rounds, EVP_sha256(), 32, salted);
	hmac(salted, 32, STR("Client Key"), key);
	EVP_Digest(key, 32, stored, NULL, EVP_sha256(), NULL);
	text = arena_printf(f->arena, "%s,%.*s,c=biws,r=%.*s", bare, STR_ARG(first),
			    STR_ARG(nonce));
	hmac(stored, 32, text, signature);
	for (int i = 0; i < 32; i++)
		key[i] ^= signature[i];
	base64_encode(&proof, str_of(key, 32), BASE64_STANDARD);
	return arena_printf(f->arena, "c=biws,r=%.*s,p=%.*s", STR_ARG(nonce),
			    STR_ARG(buf_str(&proof)));
}

/* A whole login of a client that knows `password`. */
static enum status
log_in(struct fixture *f, const char *name, const char *password)
{
	struct str bare = arena_printf(f->arena, "n=%s,r=clientnonce", name);
	struct str message = arena_printf(f->arena, "n,,%.*s", STR_ARG(bare));
	struct auth_scram *s;
	struct auth_user user;
	struct str answer;
	enum status status;

	TRY(auth_scram_begin(f->auth, message, &f->client, f->arena, &s, &answer, &f->err));
	status = auth_scram_end(s, f->auth, client_final(f, password, bare.ptr, answer), &f->client,
				f->arena, &answer, &user, &f->err);
	auth_scram_free(s);
	if (status == STATUS_OK) {
		assert_true(user.admin);
		assert_true(str_starts_with(answer, STR("v=")));
	}
	return status;
}

static void
the_keys_are_those_of_the_standards_example(void **state)
{
	struct buf AUTO(buf_release) salt = BUF_INIT(64);
	struct buf AUTO(buf_release) text = BUF_INIT(64);
	struct str signed_text = STR("n=user,r=rOprNGfwEbeRWgbNEkqO,"
				     "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
				     "s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
				     "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0");
	struct scram scram = { .rounds = 4096 };
	uint8_t signature[32];

	(void)state;
	assert_int_equal(base64_decode(&salt, STR("W22ZaJ0SNY7soEsUEjb6gQ=="), BASE64_STANDARD),
			 STATUS_OK);
	assert_int_equal(salt.len, SCRAM_SALT_SHORT_BYTES);
	scram.salt_len = salt.len;
	memcpy(scram.salt, salt.ptr, salt.len);
	assert_true(scram_derive(STR("pencil"), &scram));
	hmac(scram.server_key, 32, signed_text, signature);
	base64_encode(&text, str_of(signature, 32), BASE64_STANDARD);
	assert_true(str_eq(buf_str(&text), STR("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")));
}

static void
the_right_password_logs_in_and_another_does_not(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(log_in(f, "anna", "pencil"), STATUS_OK);
	assert_int_equal(log_in(f, "anna", "Pencil"), STATUS_UNAUTHORIZED);
	assert_int_equal(log_in(f, "bert", "pencil"), STATUS_UNAUTHORIZED);
}

/* A comma and an equals sign of a name are written as =2C and =3D. */
static void
names_are_read_as_they_were_meant(void **state)
{
	static const char *const refused[] = { "a=2Cb=3Dc=", "a=2Cb=c", "a=2cb=3dc", "a=2Cb=4Dc",
					       "a=2Cb=3" };
	const struct auth_hashing how = { .rounds = ROUNDS };
	struct fixture *f = *state;
	struct str hashed;

	assert_int_equal(
		auth_hash_password(STR("a,b=c"), STR("pen"), &how, f->arena, &hashed, &f->err),
		STATUS_OK);
	assert_int_equal(auth_add_admin_hashed(f->auth, STR("a,b=c"), hashed, &f->err), STATUS_OK);
	assert_int_equal(log_in(f, "a=2Cb=3Dc", "pen"), STATUS_OK);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_int_equal(log_in(f, refused[i], "pen"), STATUS_INVALID);
}

/* A name fills the room for it, and a longer one is none. */
static void
a_name_is_as_long_as_names_are(void **state)
{
	struct fixture *f = *state;
	char *name = arena_bytes(f->arena, AUTH_NAME_BYTES + 2);

	memset(name, 'x', AUTH_NAME_BYTES + 2);
	name[AUTH_NAME_BYTES] = '\0';
	assert_int_equal(log_in(f, name, "pencil"), STATUS_UNAUTHORIZED);
	name[AUTH_NAME_BYTES] = 'x';
	name[AUTH_NAME_BYTES + 1] = '\0';
	assert_int_equal(log_in(f, name, "pencil"), STATUS_INVALID);
}

static void
a_name_that_nobody_has_always_has_the_same_salt(void **state)
{
	struct fixture *f = *state;
	struct str salts[3];
	const char *names[] = { "n,,n=bert,r=x", "n,,n=bert,r=x", "n,,n=carl,r=x" };

	for (int i = 0; i < 3; i++) {
		struct auth_scram *s;
		struct str answer;

		assert_int_equal(auth_scram_begin(f->auth, str_from_cstr(names[i]), &f->client,
						  f->arena, &s, &answer, &f->err),
				 STATUS_OK);
		(void)str_cut(&answer, ',');
		salts[i] = str_cut(&answer, ',');
		assert_true(str_eq(answer, STR("i=10")));
		auth_scram_free(s);
	}
	assert_true(str_eq(salts[0], salts[1]));
	assert_false(str_eq(salts[0], salts[2]));
}

static void
what_is_no_message_of_scram_is_refused(void **state)
{
	static const char *const first[] = { "",
					     "n",
					     "n,,",
					     "n,,n=anna",
					     "n,,r=x,n=anna",
					     "n,,n=,r=x",
					     "n,,n=a=b,r=x",
					     "n,,n=anna,r=",
					     "n,,n-anna,r=x",
					     "n,,n=anna,r-x",
					     "n,,n=anna,r=a b",
					     "n,,n=anna,r=a\x7f",
					     "n,,n=anna,r=\xc3\xa4",
					     "n,a=bert,n=anna,r=x",
					     "p=tls-unique,,n=anna,r=x",
					     "x,,n=anna,r=x",
					     "n,,m=1,n=anna,r=x" };
	static const char *const final[] = { "", "c=biws", "c=biws,r=x", "c=biws,r=x,p=YWJj",
					     "c=eSws,r=x,p=YWJj" };
	struct fixture *f = *state;
	struct auth_scram *s;
	struct auth_user user;
	struct str answer;

	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		assert_int_equal(auth_scram_begin(f->auth, str_from_cstr(first[i]), &f->client,
						  f->arena, &s, &answer, &f->err),
				 STATUS_INVALID);
	for (size_t i = 0; i < sizeof(final) / sizeof(final[0]); i++) {
		assert_int_equal(auth_scram_begin(f->auth, STR("n,,n=anna,r=x"), &f->client,
						  f->arena, &s, &answer, &f->err),
				 STATUS_OK);
		assert_int_equal(auth_scram_end(s, f->auth, str_from_cstr(final[i]), &f->client,
						f->arena, &answer, &user, &f->err),
				 STATUS_INVALID);
		auth_scram_free(s);
	}
}

/* The end of a login that has begun with this nonce; what the client then sends is `change`d. */
static enum status
end_with(struct fixture *f, struct auth *end_at,
	 struct str (*change)(struct fixture *f, struct str), struct auth_user *ret)
{
	struct auth_scram *s;
	struct str answer, final;
	enum status status;

	assert_int_equal(auth_scram_begin(f->auth, STR("n,,n=anna,r=x"), &f->client, f->arena, &s,
					  &answer, &f->err),
			 STATUS_OK);
	final = client_final(f, "pencil", "n=anna,r=x", answer);
	status = auth_scram_end(s, end_at, change ? change(f, final) : final, &f->client, f->arena,
				&answer, ret, &f->err);
	auth_scram_free(s);
	return status;
}

/* The proof is what is behind the last "p=". */
static struct str
with_proof(struct fixture *f, struct str final, struct str proof)
{
	struct str head = final;

	while (!str_starts_with(str_skip(head, head.len - 3), STR(",p=")))
		head.len--;
	return arena_printf(f->arena, "%.*s%.*s", STR_ARG(head), STR_ARG(proof));
}

static struct str
with_another_header(struct fixture *f, struct str final)
{
	return arena_printf(f->arena, "c=eSws%.*s", STR_ARG(str_skip(final, strlen("c=biws"))));
}

static struct str
without_an_equals_sign(struct fixture *f, struct str final)
{
	return arena_printf(f->arena, "c-%.*s", STR_ARG(str_skip(final, strlen("c="))));
}

static struct str
with_a_header_that_is_none(struct fixture *f, struct str final)
{
	return arena_printf(f->arena, "c=!%.*s", STR_ARG(str_skip(final, strlen("c=biws"))));
}

static struct str
with_another_nonce(struct fixture *f, struct str final)
{
	return arena_printf(f->arena, "c=biws,r=y%.*s",
			    STR_ARG(str_skip(final, strlen("c=biws,r=x"))));
}

static struct str
with_more_behind_it(struct fixture *f, struct str final)
{
	return arena_printf(f->arena, "%.*s,x=1", STR_ARG(final));
}

static struct str
with_a_short_proof(struct fixture *f, struct str final)
{
	return with_proof(f, final, STR("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="));
}

static struct str
with_a_long_proof(struct fixture *f, struct str final)
{
	return with_proof(f, final, STR("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"));
}

static struct str
with_a_proof_that_is_none(struct fixture *f, struct str final)
{
	return with_proof(f, final, STR("!"));
}

/* Each part of the last message by itself, while all others are right. */
static void
each_part_of_the_last_message_counts(void **state)
{
	static struct str (*const changes[])(struct fixture * f, struct str final) = {
		without_an_equals_sign, with_another_header,       with_a_header_that_is_none,
		with_another_nonce,     with_more_behind_it,       with_a_short_proof,
		with_a_long_proof,      with_a_proof_that_is_none,
	};
	struct fixture *f = *state;
	struct auth_user user;

	assert_int_equal(end_with(f, f->auth, NULL, &user), STATUS_OK);
	assert_true(str_eq(user.name, STR("anna")));
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (end_with(f, f->auth, changes[i], &user) != STATUS_INVALID)
			fail_msg("change %zu", i);
}

/* Wherever a message ends, what lies behind it in memory is none of it. */
static void
a_message_that_is_cut_is_none(void **state)
{
	static const char first[] = "n,,n=anna,r=xyz";
	struct fixture *f = *state;
	struct auth_scram *s;
	struct auth_user user;
	struct str answer, final;

	for (size_t len = 0; len < strlen(first); len++) {
		enum status status = auth_scram_begin(f->auth, str_of(first, len), &f->client,
						      f->arena, &s, &answer, &f->err);

		/* A nonce may be as short as one likes. */
		assert_int_equal(status, len > strlen("n,,n=anna,r=") ? STATUS_OK : STATUS_INVALID);
		if (status == STATUS_OK)
			auth_scram_free(s);
	}
	assert_int_equal(auth_scram_begin(f->auth, STR("n,,n=anna,r=x"), &f->client, f->arena, &s,
					  &answer, &f->err),
			 STATUS_OK);
	final = client_final(f, "pencil", "n=anna,r=x", answer);
	for (size_t len = 0; len < final.len; len++)
		assert_int_equal(auth_scram_end(s, f->auth, str_of(final.ptr, len), &f->client,
						f->arena, &answer, &user, &f->err),
				 STATUS_INVALID);
	auth_scram_free(s);
}

/* Between the two messages the password has become another one. */
static void
a_proof_of_a_former_password_is_wrong(void **state)
{
	const struct auth_hashing how = { .rounds = ROUNDS };
	struct fixture *f = *state;
	struct auth *now = auth_new();
	struct auth_user user;
	struct str hashed;

	assert_int_equal(
		auth_hash_password(STR("anna"), STR("crayon"), &how, f->arena, &hashed, &f->err),
		STATUS_OK);
	assert_int_equal(auth_add_admin_hashed(now, STR("anna"), hashed, &f->err), STATUS_OK);
	assert_int_equal(end_with(f, now, NULL, &user), STATUS_UNAUTHORIZED);
	assert_int_equal(end_with(f, f->auth, NULL, &user), STATUS_OK);
	auth_free(now);
}

/* As many wrong proofs as wrong passwords, and then the right one is not looked at. */
static void
wrong_proofs_are_counted_as_failures(void **state)
{
	static const struct lockout_rules rules = {
		.mode = LOCKOUT_ENFORCE, .threshold = 2, .lifetime_ms = 1000 * 1000, .objects = 64
	};
	struct fixture *f = *state;

	f->client.by.address = STR("192.0.2.77:1");
	assert_int_equal(log_in(f, "anna", "Pencil"), STATUS_UNAUTHORIZED);
	assert_int_equal(log_in(f, "anna", "Pencil"), STATUS_UNAUTHORIZED);
	auth_set_lockout(f->auth, &rules);
	assert_int_equal(log_in(f, "anna", "Pencil"), STATUS_UNAUTHORIZED);
	assert_int_equal(log_in(f, "anna", "pencil"), STATUS_OK);
	assert_int_equal(log_in(f, "anna", "Pencil"), STATUS_UNAUTHORIZED);
	assert_int_equal(log_in(f, "anna", "pencil"), STATUS_FORBIDDEN);
	f->client.by.address = STR("192.0.2.78:1");
	assert_int_equal(log_in(f, "anna", "pencil"), STATUS_OK);
}

static void
a_proof_serves_one_login_only(void **state)
{
	struct fixture *f = *state;
	struct auth_scram *s;
	struct auth_user user;
	struct str answer, final;

	assert_int_equal(auth_scram_begin(f->auth, STR("n,,n=anna,r=x"), &f->client, f->arena, &s,
					  &answer, &f->err),
			 STATUS_OK);
	final = client_final(f, "pencil", "n=anna,r=x", answer);
	auth_scram_free(s);
	assert_int_equal(auth_scram_begin(f->auth, STR("n,,n=anna,r=x"), &f->client, f->arena, &s,
					  &answer, &f->err),
			 STATUS_OK);
	assert_int_equal(
		auth_scram_end(s, f->auth, final, &f->client, f->arena, &answer, &user, &f->err),
		STATUS_INVALID);
	auth_scram_free(s);
}

/* The examples of RFC 4013, and what later versions of Unicode have. */
static void
passwords_are_prepared(void **state)
{
	static const char *const same[][2] = {
		{ "I\u00adX", "IX" },          { "\u2168", "IX" },    { "\u00aa", "a" },
		{ "caf\u00e9", "cafe\u0301" }, { "a\u00a0b", "a b" }, { "user", "user" },
		{ "USER\u2003", "USER " },
	};
	static const char *const others[][2] = {
		{ "user", "USER" },
		{ "caf\u00e9", "cafe" },
		{ "\u0627"
		  "1",
		  "\u0627" }, /* forbidden: taken as it is */
		{ "\U0001f600", "\U0001f601" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]) + sizeof(others) / sizeof(others[0]);
	     i++) {
		bool equal = i < sizeof(same) / sizeof(same[0]);
		const char *const *pair = equal ? same[i]
						: others[i - sizeof(same) / sizeof(same[0])];
		struct scram a = { .rounds = ROUNDS, .salt_len = SCRAM_SALT_BYTES }, b = a;

		assert_true(scram_derive(str_from_cstr(pair[0]), &a));
		assert_true(scram_derive(str_from_cstr(pair[1]), &b));
		if ((memcmp(a.stored_key, b.stored_key, sizeof(a.stored_key)) == 0) != equal)
			fail_msg("%s, %s", pair[0], pair[1]);
	}
}

/* From '!' to '~', and no comma. */
static void
a_nonce_has_any_printable_characters(void **state)
{
	struct fixture *f = *state;
	struct auth_scram *s;
	struct str answer;

	assert_int_equal(auth_scram_begin(f->auth, STR("n,,n=anna,r=!~"), &f->client, f->arena, &s,
					  &answer, &f->err),
			 STATUS_OK);
	assert_true(str_starts_with(answer, STR("r=!~")));
	auth_scram_free(s);
}

/* Behind it there is nothing: the sanitizer would tell. */
static void
a_password_is_read_no_further_than_it_goes(void **state)
{
	struct scram a = { .rounds = ROUNDS, .salt_len = SCRAM_SALT_BYTES }, b = a;
	char *password = malloc(4);

	(void)state;
	assert_non_null(password);
	memcpy(password, "user", 4);
	assert_true(scram_derive(str_of(password, 4), &a));
	free(password);
	assert_true(scram_derive(STR("user"), &b));
	assert_memory_equal(a.stored_key, b.stored_key, sizeof(a.stored_key));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_keys_are_those_of_the_standards_example),
		cmocka_unit_test_setup_teardown(the_right_password_logs_in_and_another_does_not,
						setup, teardown),
		cmocka_unit_test_setup_teardown(names_are_read_as_they_were_meant, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_is_as_long_as_names_are, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_that_nobody_has_always_has_the_same_salt,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_message_of_scram_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(each_part_of_the_last_message_counts, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_message_that_is_cut_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(a_proof_of_a_former_password_is_wrong, setup,
						teardown),
		cmocka_unit_test_setup_teardown(wrong_proofs_are_counted_as_failures, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_proof_serves_one_login_only, setup, teardown),
		cmocka_unit_test_setup_teardown(a_nonce_has_any_printable_characters, setup,
						teardown),
		cmocka_unit_test(passwords_are_prepared),
		cmocka_unit_test(a_password_is_read_no_further_than_it_goes),
	};

	return cmocka_run_group_tests_name("SCRAM", tests, NULL, NULL);
}
