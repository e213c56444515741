/*
 * Who somebody is by a token, a cookie or a password of the store, which of these are taken, and
 * who a user that has logged in earlier still is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/hmac.h>

#include "access/auth_int.h"
#include "access/person_door.h"
#include "access/visitor.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/metric.h"
#include "catalog/store_format.h"
#include "store.h"

enum {
	ROUNDS = 10,
	SALT = 16,
};

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct auth *auth;
	struct arena *arena;
	struct err err;
	struct auth_client client;
	struct person person; /* to write */
	struct person_door at;
};

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	assert_non_null(f);
	person_register();
	person_door_register();
	test_make_dir("standing", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, NULL), STATUS_OK);
	f->arena = arena_new(1 << 20);
	f->auth = auth_new();
	assert_true(f->arena && f->auth);
	f->client.store = f->store;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	auth_free(f->auth);
	arena_free(f->arena);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

static void
add_root(struct fixture *f)
{
	const struct auth_hashing how = { .rounds = ROUNDS };
	struct str text;

	assert_int_equal(
		auth_hash_password(STR("root"), STR("secret"), &how, f->arena, &text, &f->err),
		STATUS_OK);
	assert_int_equal(auth_add_admin_hashed(f->auth, STR("root"), text, &f->err), STATUS_OK);
}

/* ---- People ---- */

static enum status
put_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	TRY(person_put(tx, &f->person, NULL));
	return person_door_put(tx, f->person.name, STR("redis"), &f->at, NULL);
}

static enum status
clear_body(struct kv_tx *tx, void *arg)
{
	return person_clear(tx, ((struct fixture *)arg)->person.name);
}

static void
run(struct fixture *f, kv_body *body)
{
	assert_int_equal(kv_run(f->store, body, f, NULL, NULL), STATUS_OK);
}

/* "jan", with "apple" as the password of every door, unless it is taken away. */
static void
make_jan(struct fixture *f)
{
	static struct str roles[] = { STR("reader") };

	f->person = (struct person){
		.name = STR("jan"),
		.roles = roles,
		.roles_count = 1,
		.has_verifier = true,
		.verifier = { .scheme = VERIFIER_PBKDF2,
			      .digest = VERIFIER_SHA256,
			      .rounds = ROUNDS,
			      .hash_len = 32,
			      .salt_len = SALT },
	};
	memset(f->person.verifier.salt, 'v', SALT);
	assert_true(verifier_derive(&f->person.verifier, STR("apple"), f->person.verifier.hash));
	person_door_init(&f->at, ROUNDS);
	f->at.by = PERSON_DOOR_BY_OWN;
	run(f, put_body);
}

static struct auth_user
user_named(struct fixture *f, const char *name, enum auth_method method)
{
	struct auth_user user = { .name = str_from_cstr(name), .method = method };

	(void)f;
	return user;
}

static enum status
again(struct fixture *f, struct auth_user *user)
{
	return auth_again(f->auth, &f->client, f->arena, user, &f->err);
}

/* ---- Who somebody still is ---- */

static void
without_administrators_everybody_stays_one(void **state)
{
	struct fixture *f = *state;
	struct auth_user everybody = { .name = STR(""), .admin = true };
	struct auth_user nobody = { .name = STR("") };
	struct auth_user jan = user_named(f, "jan", AUTH_METHOD_BASIC);

	make_jan(f);
	assert_int_equal(again(f, &everybody), STATUS_OK);
	/* Who was somebody under an administrator who has gone has to come in anew. */
	assert_int_equal(again(f, &nobody), STATUS_UNAUTHORIZED);
	assert_int_equal(again(f, &jan), STATUS_UNAUTHORIZED);
	/* A door that has people of its own asks for them, also without an administrator. */
	f->client.door = STR("redis");
	assert_int_equal(again(f, &everybody), STATUS_OK);
	assert_int_equal(again(f, &nobody), STATUS_OK);
	assert_int_equal(again(f, &jan), STATUS_OK);
	assert_true(str_eq(jan.roles[0], STR("reader")));
	/* With one, everybody is nobody any more. */
	add_root(f);
	assert_int_equal(again(f, &everybody), STATUS_UNAUTHORIZED);
	assert_int_equal(again(f, &nobody), STATUS_OK);
	assert_int_equal(again(f, &jan), STATUS_OK);
}

static void
a_user_has_the_roles_of_now(void **state)
{
	static struct str roles[] = { STR("a"), STR("b") };
	struct fixture *f = *state;
	struct auth_user jan = user_named(f, "jan", AUTH_METHOD_COOKIE);
	struct auth_user root = user_named(f, "root", AUTH_METHOD_BASIC);

	add_root(f);
	assert_int_equal(again(f, &jan), STATUS_UNAUTHORIZED);
	make_jan(f);
	assert_int_equal(again(f, &jan), STATUS_OK);
	assert_int_equal(jan.roles_count, 1);
	assert_int_equal(jan.method, AUTH_METHOD_COOKIE);
	assert_false(jan.admin);
	f->person.roles = roles;
	f->person.roles_count = 2;
	run(f, put_body);
	assert_int_equal(again(f, &jan), STATUS_OK);
	assert_int_equal(jan.roles_count, 2);
	assert_int_equal(again(f, &root), STATUS_OK);
	assert_true(root.admin);
	assert_true(str_eq(root.roles[0], STR("_admin")));
	run(f, clear_body);
	assert_int_equal(again(f, &jan), STATUS_UNAUTHORIZED);
}

static void
who_a_proxy_has_named_stays_while_there_are_proxies(void **state)
{
	struct fixture *f = *state;
	struct auth_user named = user_named(f, "whoever", AUTH_METHOD_PROXY);

	add_root(f);
	assert_int_equal(again(f, &named), STATUS_UNAUTHORIZED);
	assert_int_equal(auth_set_handlers(f->auth,
					   STR("{chttpd_auth, proxy_authentication_handler}"),
					   &f->err),
			 STATUS_OK);
	assert_int_equal(again(f, &named), STATUS_OK);
	assert_int_equal(auth_set_handlers(f->auth,
					   STR("{chttpd_auth, cookie_authentication_handler}, "
					       "{chttpd_auth, proxy_authentication_handler}"),
					   &f->err),
			 STATUS_OK);
	assert_int_equal(again(f, &named), STATUS_OK);
	assert_int_equal(auth_set_handlers(f->auth,
					   STR("{chttpd_auth, cookie_authentication_handler}"),
					   &f->err),
			 STATUS_OK);
	assert_int_equal(again(f, &named), STATUS_UNAUTHORIZED);
}

/* ---- By which password ---- */

/* Of a person's key, each byte is the same here. */
static void
assert_key(struct fixture *f, int byte)
{
	struct auth_user jan = user_named(f, "jan", AUTH_METHOD_BASIC);

	assert_int_equal(again(f, &jan), STATUS_OK);
	for (size_t i = 0; i < sizeof(jan.key); i++)
		assert_int_equal(jan.key[i], byte);
}

static void
passwords_are_told_apart_by_their_salts(void **state)
{
	struct fixture *f = *state;
	struct auth_user root = user_named(f, "root", AUTH_METHOD_BASIC);

	add_root(f);
	make_jan(f);
	f->person.has_scram = true;
	f->person.scram.rounds = 4096;
	f->person.scram.salt_len = SALT;
	memset(f->person.scram.salt, 's', SALT);
	run(f, put_body);
	assert_key(f, 'v');
	f->person.has_verifier = false;
	run(f, put_body);
	assert_key(f, 's');
	f->person.has_scram = false;
	run(f, put_body);
	assert_key(f, 0);
	/* A door's own, where its passwords count. */
	f->person.has_verifier = true;
	f->at.by = PERSON_DOOR_BY_LIST;
	memset(f->at.salt, 'd', sizeof(f->at.salt));
	run(f, put_body);
	assert_key(f, 'v');
	f->client.door = STR("redis");
	assert_key(f, 'd');
	/* An administrator's by its hash. */
	assert_int_equal(again(f, &root), STATUS_OK);
	assert_memory_equal(root.key, f->auth->admins[0]->verifier.hash, sizeof(root.key));
}

static void
a_short_salt_is_followed_by_nothing(void **state)
{
	struct fixture *f = *state;
	struct auth_user jan = user_named(f, "jan", AUTH_METHOD_BASIC);

	add_root(f);
	make_jan(f);
	f->person.verifier.salt_len = JWT_ID_BYTES - 1;
	run(f, put_body);
	assert_int_equal(again(f, &jan), STATUS_OK);
	assert_int_equal(jan.key[JWT_ID_BYTES - 2], 'v');
	assert_int_equal(jan.key[JWT_ID_BYTES - 1], 0);
}

/* It sees the person as that transaction does, which began before the person was cleared. */
static void
a_login_reads_in_the_transaction_of_its_request(void **state)
{
	struct fixture *f = *state;
	struct auth_client client = f->client;
	struct auth_user user;
	struct person seen;
	enum status status;
	struct kv_tx *tx;

	add_root(f);
	make_jan(f);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(person_get(tx, STR("jan"), f->arena, &seen, &f->err), STATUS_OK);
	run(f, clear_body);
	assert_int_equal(auth_login(f->auth, "session", STR("jan"), STR("apple"), &client, f->arena,
				    &user, &f->err),
			 STATUS_UNAUTHORIZED);
	client.tx = tx;
	status = auth_login(f->auth, "session", STR("jan"), STR("apple"), &client, f->arena, &user,
			    &f->err);
	kv_tx_free(tx);
	assert_int_equal(status, STATUS_OK);
}

/* ---- Cookies ---- */

/* The user of a cookie that has its time in so many digits, or more. */
static struct auth_user
by_cookie_of(struct fixture *f, const char *name, int digits)
{
	AUTO(buf_release) struct buf text = BUF_INIT(1024), value = BUF_INIT(1024);
	uint8_t digest[AUTH_DIGEST_BYTES];
	struct auth_user user;
	struct auth_who who;

	assert_int_equal(auth_find(f->auth, str_from_cstr(name), &f->client, f->arena, &who, NULL),
			 STATUS_OK);
	buf_printf(&text, "%s:%0*llX", name, digits,
		   (unsigned long long)(clock_wall_ms() / 1000 - 100));
	assert_int_equal(
		auth_keyed_digest(who.cookie_key, AUTH_DIGEST_BYTES, buf_str(&text), digest),
		STATUS_OK);
	buf_append_byte(&text, ':');
	buf_append(&text, digest, sizeof(digest));
	buf_append_cstr(&value, "AuthSession=");
	base64_encode(&value, buf_str(&text), BASE64_URL);
	assert_int_equal(auth_check(f->auth, (struct str){ NULL, 0 }, buf_str(&value), &f->client,
				    f->arena, &user, &f->err),
			 STATUS_OK);
	return user;
}

static void
the_time_of_a_cookie_has_as_many_digits_as_a_number(void **state)
{
	struct fixture *f = *state;

	add_root(f);
	assert_int_equal(by_cookie_of(f, "root", 1).method, AUTH_METHOD_COOKIE);
	assert_int_equal(by_cookie_of(f, "root", 16).method, AUTH_METHOD_COOKIE);
	assert_int_equal(by_cookie_of(f, "root", 17).method, AUTH_METHOD_NONE);
}

static enum status
known_cookie(struct fixture *f, const char *name, struct str *ret)
{
	return auth_make_known_cookie(f->auth, str_from_cstr(name), &f->client, f->arena, ret);
}

static struct auth_user
by_cookie(struct fixture *f, struct str value)
{
	struct str header = arena_printf(f->arena, "AuthSession=%.*s", STR_ARG(value));
	struct auth_user user;

	assert_int_equal(auth_check(f->auth, (struct str){ NULL, 0 }, header, &f->client, f->arena,
				    &user, &f->err),
			 STATUS_OK);
	return user;
}

static void
a_known_cookie_is_for_somebody_who_can_log_in(void **state)
{
	struct fixture *f = *state;
	struct str cookie;

	/* While there is no administrator nobody needs one, and anybody gets one. */
	assert_int_equal(known_cookie(f, "jan", &cookie), STATUS_OK);
	add_root(f);
	assert_int_equal(known_cookie(f, "root", &cookie), STATUS_OK);
	assert_true(by_cookie(f, cookie).admin);
	assert_int_equal(known_cookie(f, "jan", &cookie), STATUS_NOT_FOUND);
	/* A cookie of one who is not known is made as well, and lets nobody in. */
	assert_int_equal(auth_make_cookie(f->auth, STR("jan"), &f->client, f->arena, &cookie),
			 STATUS_OK);
	assert_int_equal(by_cookie(f, cookie).name.len, 0);
	make_jan(f);
	assert_int_equal(by_cookie(f, cookie).name.len, 0);
	assert_int_equal(known_cookie(f, "jan", &cookie), STATUS_OK);
	assert_true(str_eq(by_cookie(f, cookie).name, STR("jan")));
	/* A person without a password cannot have logged in with one. */
	f->person.has_verifier = false;
	run(f, put_body);
	assert_int_equal(known_cookie(f, "jan", &cookie), STATUS_NOT_FOUND);
	assert_int_equal(auth_make_cookie(f->auth, STR("jan"), &f->client, f->arena, &cookie),
			 STATUS_OK);
	assert_int_equal(by_cookie(f, cookie).name.len, 0);
}

/* ---- Which are taken ---- */

#define COOKIE  "{chttpd_auth, cookie_authentication_handler}"
#define BASIC   "{chttpd_auth, default_authentication_handler}"
#define JWT     "{chttpd_auth, jwt_authentication_handler}"
#define FOUR(x) x ", " x ", " x ", " x

static void
handlers_are_listed_as_couchdb_does(void **state)
{
	static const struct {
		const char *text;
		const char *methods; /* a letter each; NULL: it is no list */
	} cases[] = {
		{ COOKIE, "c" },
		{ BASIC "," JWT, "bj" },
		{ "{couch_httpd_auth, cookie_authentication_handler}", "c" },
		{ "{chttpd_auth, proxy_authentication_handler}", "p" },
		{ "{chttpd_auth, proxy_authentification_handler}", "p" },
		{ "  { chttpd_auth , cookie_authentication_handler } ,  " BASIC "  ", "cb" },
		{ COOKIE ")", "c" },
		{ COOKIE ", " BASIC " ) ", "cb" },
		{ FOUR(COOKIE) ", " FOUR(BASIC), "ccccbbbb" },
		{ FOUR(COOKIE) ", " FOUR(BASIC) ", " JWT, NULL },
		{ "", NULL },
		{ "cookie_authentication_handler", NULL },
		{ "{", NULL },
		{ "{chttpd_auth", NULL },
		{ "{chttpd_auth, cookie_authentication_handler", NULL },
		{ "{chttpd_auth cookie_authentication_handler}", NULL },
		{ "{other_auth, cookie_authentication_handler}", NULL },
		{ "{chttpd_auth, other_authentication_handler}", NULL },
		{ COOKIE ",", NULL },
		{ COOKIE ",  ", NULL },
		{ COOKIE " x", NULL },
		{ COOKIE " x, " BASIC, NULL },
		{ COOKIE "), " BASIC, NULL },
		{ COOKIE "))", NULL },
		{ COOKIE ", x" BASIC, NULL },
	};
	static const char letters[] = "nbcjp";
	struct fixture *f = *state;
	const enum auth_method *methods;

	assert_int_equal(auth_handlers(f->auth, &methods), 2);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t before = auth_handlers(f->auth, &methods), count;
		enum status status = auth_set_handlers(f->auth, str_from_cstr(cases[i].text),
						       &f->err);

		count = auth_handlers(f->auth, &methods);
		if (!cases[i].methods) {
			if (status != STATUS_INVALID)
				fail_msg("%s", cases[i].text);
			assert_non_null(
				strstr(f->err.text, "is no list of at most 8 {chttpd_auth"));
			assert_int_equal(count, before);
			continue;
		}
		if (status != STATUS_OK)
			fail_msg("%s: %s", cases[i].text, f->err.text);
		assert_int_equal(count, strlen(cases[i].methods));
		for (size_t k = 0; k < count; k++)
			assert_int_equal(letters[methods[k]], cases[i].methods[k]);
	}
}

/* ---- Tokens ---- */

static struct str
encoded(struct fixture *f, struct str s)
{
	AUTO(buf_release) struct buf b = BUF_INIT(2 * JWT_TOKEN_BYTES);

	base64_encode(&b, s, BASE64_URL);
	return arena_dup(f->arena, buf_str(&b));
}

/* "Bearer " and a token that the key "hello" has signed. */
static struct str
bearer(struct fixture *f, const char *claims)
{
	struct str header = encoded(f, STR("{\"alg\":\"HS256\"}"));
	struct str said = encoded(f, str_from_cstr(claims));
	struct str message = arena_printf(f->arena, "%.*s.%.*s", STR_ARG(header), STR_ARG(said));
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned len = sizeof(digest);

	assert_non_null(HMAC(EVP_sha256(), "hello", 5, (const uint8_t *)message.ptr, message.len,
			     digest, &len));
	said = encoded(f, str_of(digest, len));
	return arena_printf(f->arena, "Bearer %.*s.%.*s", STR_ARG(message), STR_ARG(said));
}

#define HELLO "aGVsbG8=" /* in base64, as the settings have keys */
#define OTHER "b3RoZXI="

/* The rules of the settings: where roles are, and the key. */
static void
set_tokens(struct fixture *f, const char *roles_path, const char *key)
{
	const struct jwt_choices choices = { .roles_name = roles_path ? NULL : "_couchdb.roles",
					     .roles_path = roles_path };
	const struct jwt_key_text keys[] = { { STR("hmac:_default"), str_from_cstr(key) } };
	struct jwt_rules *rules;

	if (jwt_rules_new(&choices, keys, 1, &rules, &f->err) != STATUS_OK)
		fail_msg("%s", f->err.text);
	auth_set_tokens(f->auth, rules);
	assert_int_equal(auth_set_handlers(f->auth, STR(JWT ", " BASIC), &f->err), STATUS_OK);
}

static enum status
by_header(struct fixture *f, struct str header, struct auth_user *ret)
{
	f->err = (struct err){ 0 };
	return auth_check(f->auth, header, (struct str){ NULL, 0 }, &f->client, f->arena, ret,
			  &f->err);
}

static void
a_token_says_who_somebody_is(void **state)
{
	struct fixture *f = *state;
	struct auth_user user;
	struct str token = bearer(f, "{\"sub\":\"eva\",\"_couchdb.roles\":[\"r\",\"_admin\"]}");

	add_root(f);
	set_tokens(f, NULL, HELLO);
	assert_int_equal(by_header(f, token, &user), STATUS_OK);
	assert_true(str_eq(user.name, STR("eva")));
	assert_true(user.admin);
	assert_true(user.fresh);
	assert_int_equal(user.roles_count, 2);
	assert_int_equal(user.method, AUTH_METHOD_JWT);
	assert_int_equal(user.attempt, AUTH_METHOD_JWT);
	assert_true(str_eq(user.tried, STR("eva")));
	assert_int_equal(user.until_s, JWT_FOR_EVER);
	/* The second time it is remembered. */
	assert_int_equal(by_header(f, token, &user), STATUS_OK);
	assert_false(user.fresh);
	assert_true(user.admin);
	assert_int_equal(
		by_header(f, bearer(f, "{\"sub\":\"eva\",\"_couchdb.roles\":[\"r\"]}"), &user),
		STATUS_OK);
	assert_false(user.admin);
	assert_int_equal(user.roles_count, 1);
	/* However its scheme is written, and with spaces around it. */
	token = arena_printf(f->arena, "  bEARER   %.*s  ", STR_ARG(str_skip(token, 7)));
	assert_int_equal(by_header(f, token, &user), STATUS_OK);
	assert_int_equal(user.method, AUTH_METHOD_JWT);
}

/* A token with so many roles, of which the last one is given. */
static struct str
bearer_of_many(struct fixture *f, int count, const char *last)
{
	AUTO(buf_release) struct buf b = BUF_INIT(JWT_TOKEN_BYTES);

	buf_append_cstr(&b, "{\"sub\":\"eva\",\"_couchdb.roles\":[");
	for (int i = 1; i < count; i++)
		buf_append_cstr(&b, "\"r\",");
	buf_printf(&b, "\"%s\"]}", last);
	buf_append_byte(&b, '\0');
	return bearer(f, b.ptr);
}

/* Each is asked for twice: the second time the token is remembered. */
static void
all_roles_of_a_token_count(void **state)
{
	struct fixture *f = *state;
	struct auth_user user;

	add_root(f);
	set_tokens(f, NULL, HELLO);
	for (int i = 0; i < 4; i++) {
		bool admin = i < 2;

		assert_int_equal(
			by_header(f,
				  bearer_of_many(f, JWT_ROLES_LIMIT, admin ? "_admin" : "_admins"),
				  &user),
			STATUS_OK);
		assert_int_equal(user.admin, admin);
		assert_int_equal(user.roles_count, JWT_ROLES_LIMIT);
	}
	assert_int_equal(by_header(f, bearer_of_many(f, JWT_ROLES_LIMIT + 1, "_admin"), &user),
			 STATUS_INVALID);
	assert_false(user.admin);
}

/* How many tokens were of that outcome. */
static int64_t
tokens_counted(const char *outcome)
{
	int64_t count = -1;

	assert_true(metric_sum("frond_auth_token_checks_total", outcome, &count));
	return count;
}

static void
tokens_are_counted_by_their_outcomes(void **state)
{
	static const char *const outcomes[] = { "right", "remembered", "wrong", "wrong" };
	struct fixture *f = *state;
	struct str token = bearer(f, "{\"sub\":\"ida\",\"my\":{\"roles\":[]}}");
	const struct str tokens[] = { token, token, bearer(f, "{\"sub\":\"ida\"}"),
				      arena_printf(f->arena, "%.*sx", STR_ARG(token)) };

	add_root(f);
	set_tokens(f, "my.roles", HELLO);
	for (size_t i = 0; i < 4; i++) {
		int64_t all = tokens_counted(NULL), some = tokens_counted(outcomes[i]);
		struct auth_user user;

		assert_int_equal(by_header(f, tokens[i], &user) == STATUS_OK, i < 2);
		assert_int_equal(tokens_counted(outcomes[i]), some + 1);
		assert_int_equal(tokens_counted(NULL), all + 1);
	}
}

static void
a_wrong_token_is_refused_and_others_are_no_tokens(void **state)
{
	struct fixture *f = *state;
	struct auth_user user;
	struct str token = bearer(f, "{\"sub\":\"eva\"}");
	struct str wrong = arena_printf(f->arena, "%.*sx", STR_ARG(token));
	char *longer;

	add_root(f);
	set_tokens(f, NULL, HELLO);
	assert_int_not_equal(by_header(f, wrong, &user), STATUS_OK);
	assert_int_equal(user.attempt, AUTH_METHOD_JWT);
	assert_false(user.lacks_roles);
	/* One that is too long is checked as any, and refused for that. */
	longer = arena_alloc(f->arena, JWT_TOKEN_BYTES + 8);
	memset(longer, 'a', JWT_TOKEN_BYTES + 8);
	memcpy(longer, "Bearer ", 7);
	assert_int_not_equal(by_header(f, str_of(longer, JWT_TOKEN_BYTES + 8), &user), STATUS_OK);
	/* Without a token the next handler is asked, which knows nothing of such a scheme. */
	assert_int_equal(by_header(f, STR("Bearer"), &user), STATUS_OK);
	assert_int_equal(user.method, AUTH_METHOD_NONE);
	assert_int_equal(by_header(f, STR("Digest abc"), &user), STATUS_OK);
	assert_int_equal(user.method, AUTH_METHOD_NONE);
	assert_int_equal(user.attempt, AUTH_METHOD_NONE);
	auth_set_tokens(f->auth, NULL);
	assert_int_equal(by_header(f, token, &user), STATUS_OK);
	assert_int_equal(user.method, AUTH_METHOD_NONE);
}

static void
a_token_without_the_roles_is_told_as_that(void **state)
{
	struct fixture *f = *state;
	struct auth_user user;

	add_root(f);
	set_tokens(f, "my.roles", HELLO);
	assert_int_equal(by_header(f, bearer(f, "{\"sub\":\"eva\"}"), &user), STATUS_INVALID);
	assert_true(user.lacks_roles);
	assert_int_equal(user.attempt, AUTH_METHOD_JWT);
	assert_int_equal(by_header(f, bearer(f, "{\"sub\":\"eva\",\"my\":{\"roles\":[]}}"), &user),
			 STATUS_OK);
	assert_false(user.lacks_roles);
	assert_int_equal(user.roles_count, 0);
}

static void
who_came_by_a_token_stays_while_it_and_its_key_hold(void **state)
{
	struct fixture *f = *state;
	uint64_t now_s = clock_wall_ms() / 1000;
	struct auth_user user;

	add_root(f);
	set_tokens(f, NULL, HELLO);
	assert_int_equal(
		by_header(f,
			  bearer(f, arena_printf(f->arena, "{\"sub\":\"eva\",\"exp\":%llu}",
						 (unsigned long long)now_s + 1000)
					    .ptr),
			  &user),
		STATUS_OK);
	assert_int_equal(user.until_s, now_s + 1000);
	assert_false(auth_is_over(&user));
	assert_int_equal(again(f, &user), STATUS_OK);
	/* It ends. */
	user.until_s = now_s;
	assert_true(auth_is_over(&user));
	assert_int_equal(again(f, &user), STATUS_UNAUTHORIZED);
	user.method = AUTH_METHOD_BASIC;
	assert_false(auth_is_over(&user));
	user.method = AUTH_METHOD_JWT;
	user.until_s = now_s + 1000;
	/* Tokens are not taken any more. */
	assert_int_equal(auth_set_handlers(f->auth, STR(BASIC), &f->err), STATUS_OK);
	assert_int_equal(again(f, &user), STATUS_UNAUTHORIZED);
	/* Its key is another one. */
	set_tokens(f, NULL, OTHER);
	assert_int_equal(again(f, &user), STATUS_UNAUTHORIZED);
	set_tokens(f, NULL, HELLO);
	assert_int_equal(again(f, &user), STATUS_OK);
	auth_set_tokens(f->auth, NULL);
	assert_int_equal(again(f, &user), STATUS_UNAUTHORIZED);
}

/* ---- What is kept of a visitor ---- */

static void
what_a_visitor_was_lasts_until_the_command_has_ended(void **state)
{
	struct fixture *f = *state;
	struct visitor v = { 0 };

	(void)f;
	assert_int_equal(visitor_bytes(&v), 0);
	visitor_keep_former(&v); /* nobody is there */
	assert_int_equal(v.former_count, 0);
	for (unsigned i = 0; i < VISITOR_FORMER; i++) {
		struct visitor_found found = { .arena = arena_new(1024) };
		size_t before = visitor_bytes(&v);

		assert_true(visitor_may_change(&v));
		assert_non_null(arena_alloc(found.arena, 100));
		visitor_enter(&v, &found);
		assert_true(v.authenticated && v.entered && !v.undecided);
		assert_true(visitor_bytes(&v) >= before + 100);
		visitor_keep_former(&v);
		assert_int_equal(v.former_count, i + 1);
		assert_true(visitor_bytes(&v) >= before + 100);
	}
	assert_false(visitor_may_change(&v));
	visitor_forget_former(&v);
	assert_int_equal(v.former_count, 0);
	assert_int_equal(visitor_bytes(&v), 0);
	visitor_forget_former(&v);
	visitor_release(&v);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(without_administrators_everybody_stays_one),
		CASE(a_user_has_the_roles_of_now),
		CASE(who_a_proxy_has_named_stays_while_there_are_proxies),
		CASE(passwords_are_told_apart_by_their_salts),
		CASE(a_short_salt_is_followed_by_nothing),
		CASE(a_login_reads_in_the_transaction_of_its_request),
		CASE(a_known_cookie_is_for_somebody_who_can_log_in),
		CASE(the_time_of_a_cookie_has_as_many_digits_as_a_number),
		CASE(handlers_are_listed_as_couchdb_does),
		CASE(a_token_says_who_somebody_is),
		CASE(all_roles_of_a_token_count),
		CASE(tokens_are_counted_by_their_outcomes),
		CASE(a_wrong_token_is_refused_and_others_are_no_tokens),
		CASE(a_token_without_the_roles_is_told_as_that),
		CASE(who_came_by_a_token_stays_while_it_and_its_key_hold),
		CASE(what_a_visitor_was_lasts_until_the_command_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
