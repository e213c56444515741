/*
 * What logins of every kind answer when a call of the store fails, when their memory ends and when
 * the records that they read are damaged (probe.h): nobody gets in by a failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "access/auth_int.h"
#include "access/auth_scram.h"
#include "access/people.h"
#include "access/person_door.h"
#include "access/scram_table.h"
#include "access/visitor.h"
#include "base/base64.h"
#include "base/log.h"
#include "catalog/store_format.h"
#include "probe.h"
#include "store.h"

enum {
	ROUNDS = 2,
	SALT = 16,
	ARENA_BYTES = 4 * 1024 * 1024,
};

#define SECRET       "a secret of more than sixteen bytes"
#define PROXY_SECRET "a secret of the proxy"
#define BARE         "n=jan,r=clientnonce"
#define ROOT_BARE    "n=root,r=clientnonce"

struct world {
	char dir[64];
	struct kv_store *store;
	struct auth *auth; /* remembers nothing at the beginning of a run */
	struct arena *arena;
	struct auth_client client;
	struct str hashed; /* root's password */
	struct str jan_basic, root_basic, wrong_basic, nobody_basic, door_basic;
	struct str bearer;
	struct str proxy_token;
	struct person person;
	struct person_door at;
	struct err err;
	bool without_scram; /* jan has no keys of SCRAM */
};

static const struct str none;

/* ---- The world ---- */

static struct str
encoded(struct world *w, struct str s, enum base64_alphabet alphabet)
{
	AUTO(buf_release) struct buf b = BUF_INIT(JWT_TOKEN_BYTES);

	base64_encode(&b, s, alphabet);
	return arena_dup(w->arena, buf_str(&b));
}

static struct str
basic(struct world *w, const char *credentials)
{
	struct str text = encoded(w, str_from_cstr(credentials), BASE64_STANDARD);

	return arena_printf(w->arena, "Basic %.*s", STR_ARG(text));
}

static struct str
bearer_of(struct world *w, const char *claims)
{
	struct str header = encoded(w, STR("{\"alg\":\"HS256\"}"), BASE64_URL);
	struct str said = encoded(w, str_from_cstr(claims), BASE64_URL);
	struct str message = arena_printf(w->arena, "%.*s.%.*s", STR_ARG(header), STR_ARG(said));
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned len = sizeof(digest);

	assert_non_null(HMAC(EVP_sha256(), "hello", 5, (const uint8_t *)message.ptr, message.len,
			     digest, &len));
	said = encoded(w, str_of(digest, len), BASE64_URL);
	return arena_printf(w->arena, "Bearer %.*s.%.*s", STR_ARG(message), STR_ARG(said));
}

static enum status
put_body(struct kv_tx *tx, void *arg)
{
	struct world *w = arg;

	w->person.has_scram = !w->without_scram;
	TRY(person_put(tx, &w->person, NULL));
	return person_door_put(tx, w->person.name, STR("redis"), &w->at, NULL);
}

/* "jan" with "apple", and with "pear" at one door. */
static void
make_jan(struct world *w)
{
	static struct str roles[] = { { "reader", 6 }, { "cook", 4 } };
	char digest[PERSON_DOOR_DIGEST_BYTES];

	w->person = (struct person){
		.name = STR("jan"),
		.roles = roles,
		.roles_count = 2,
		.has_verifier = true,
		.verifier = { .scheme = VERIFIER_PBKDF2,
			      .digest = VERIFIER_SHA256,
			      .rounds = ROUNDS,
			      .hash_len = 32,
			      .salt_len = SALT },
		.scram = { .rounds = ROUNDS, .salt_len = SCRAM_SALT_BYTES },
	};
	memset(w->person.verifier.salt, 'v', SALT);
	memset(w->person.scram.salt, 's', SCRAM_SALT_BYTES);
	assert_true(verifier_derive(&w->person.verifier, STR("apple"), w->person.verifier.hash));
	assert_true(scram_derive(STR("apple"), &w->person.scram));
	person_door_init(&w->at, ROUNDS);
	w->at.off = false;
	w->at.by = PERSON_DOOR_BY_LIST;
	w->at.count = 1;
	assert_true(person_door_digest(STR("pear"), digest));
	assert_true(person_door_hash(&w->at, str_of(digest, sizeof(digest)), w->at.hashes[0]));
}

static void
configure(struct world *w, struct auth *auth)
{
	const struct jwt_choices choices = { .required_claims = "exp", .roles_path = "roles" };
	const struct jwt_key_text key = { STR("hmac:_default"), STR("aGVsbG8=") };
	struct jwt_rules *rules;

	assert_int_equal(auth_add_admin_hashed(auth, STR("root"), w->hashed, &w->err), STATUS_OK);
	assert_int_equal(auth_set_secret(auth, STR(SECRET), &w->err), STATUS_OK);
	assert_int_equal(auth_set_proxy(auth, true, STR(PROXY_SECRET), STR("sha256"), &w->err),
			 STATUS_OK);
	assert_int_equal(
		auth_set_handlers(auth,
				  STR("{chttpd_auth, cookie_authentication_handler}, {chttpd_auth, "
				      "proxy_authentication_handler}, {chttpd_auth, "
				      "jwt_authentication_handler}, {chttpd_auth, "
				      "default_authentication_handler}"),
				  &w->err),
		STATUS_OK);
	assert_int_equal(jwt_rules_new(&choices, &key, 1, &rules, &w->err), STATUS_OK);
	auth_set_tokens(auth, rules);
	auth_set_rounds(auth, ROUNDS);
}

static void
prepare(void *world)
{
	struct world *w = world;

	auth_free(w->auth);
	w->auth = auth_new();
	assert_non_null(w->auth);
	configure(w, w->auth);
	w->client = (struct auth_client){ .store = w->store };
	/* The record has another version than before, so that no password is remembered. */
	assert_int_equal(kv_run(w->store, put_body, w, NULL, NULL), STATUS_OK);
}

static int
setup(void **state)
{
	static const char secret[] = PROXY_SECRET;
	const struct kv_options options = { .create = true, .no_sync = true };
	const struct auth_hashing how = { .rounds = ROUNDS };
	struct world *w = calloc(1, sizeof(*w));
	AUTO(buf_release) struct buf token = BUF_INIT(256);
	uint8_t digest[AUTH_DIGEST_BYTES];
	char url[256];

	assert_non_null(w);
	log_set_level(LOG_LEVEL_ERROR);
	person_register();
	person_door_register();
	test_make_dir("auth_probe", w->dir, sizeof(w->dir));
	probe_store_url(w->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &w->store, NULL), STATUS_OK);
	w->arena = arena_new(ARENA_BYTES);
	assert_non_null(w->arena);
	assert_int_equal(
		auth_hash_password(STR("root"), STR("secret"), &how, w->arena, &w->hashed, &w->err),
		STATUS_OK);
	w->jan_basic = basic(w, "jan:apple");
	w->root_basic = basic(w, "root:secret");
	w->wrong_basic = basic(w, "jan:pear");
	w->nobody_basic = basic(w, "nobody:apple");
	w->bearer = bearer_of(w, "{\"sub\":\"bert\",\"exp\":9999999999,\"roles\":[\"a\",\"b\"]}");
	assert_int_equal(
		auth_keyed_digest((const uint8_t *)secret, strlen(secret), STR("carl"), digest),
		STATUS_OK);
	buf_append_hex(&token, str_of(digest, sizeof(digest)));
	w->proxy_token = arena_dup(w->arena, buf_str(&token));
	make_jan(w);
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	auth_free(w->auth);
	arena_free(w->arena);
	kv_close(w->store);
	test_remove_tree(w->dir);
	free(w);
	log_set_level(LOG_LEVEL_INFO);
	return 0;
}

/* ---- Logins ---- */

static enum status
say_user(struct probe *p, const struct auth_user *user)
{
	buf_printf(&p->said, "%.*s %d %d%d%d", STR_ARG(user->name), user->method, user->admin,
		   user->fresh, user->renew);
	for (size_t i = 0; i < user->roles_count; i++)
		buf_printf(&p->said, " %.*s", STR_ARG(user->roles[i]));
	return STATUS_OK;
}

static enum status
check(struct probe *p, struct str authorization, struct str cookie)
{
	struct world *w = p->world;
	struct auth_user user;

	TRY(auth_check(w->auth, authorization, cookie, &w->client, p->arena, &user, &p->err));
	return say_user(p, &user);
}

static enum status
basic_right(struct probe *p)
{
	probe_begin(p);
	return check(p, ((struct world *)p->world)->jan_basic, none);
}

static enum status
basic_of_an_administrator(struct probe *p)
{
	probe_begin(p);
	return check(p, ((struct world *)p->world)->root_basic, none);
}

static enum status
basic_wrong(struct probe *p)
{
	probe_begin(p);
	return check(p, ((struct world *)p->world)->wrong_basic, none);
}

static enum status
basic_of_nobody(struct probe *p)
{
	probe_begin(p);
	return check(p, ((struct world *)p->world)->nobody_basic, none);
}

/* The password has been hashed before. */
static enum status
basic_again(struct probe *p)
{
	struct world *w = p->world;
	struct auth_user user;

	assert_int_equal(auth_check(w->auth, w->jan_basic, none, &w->client, w->arena, &user, NULL),
			 STATUS_OK);
	probe_begin(p);
	return check(p, w->jan_basic, none);
}

static enum status
basic_at_a_door(struct probe *p)
{
	struct world *w = p->world;

	w->client.door = STR("redis");
	probe_begin(p);
	return check(p, w->wrong_basic, none); /* "pear", which is right there */
}

static enum status
basic_wrong_at_a_door(struct probe *p)
{
	struct world *w = p->world;

	w->client.door = STR("redis");
	probe_begin(p);
	return check(p, w->jan_basic, none);
}

static enum status
cookie_of(struct probe *p, const char *name)
{
	struct world *w = p->world;
	struct arena_mark mark = arena_mark(w->arena);
	struct str cookie, header;
	enum status status;

	assert_int_equal(
		auth_make_cookie(w->auth, str_from_cstr(name), &w->client, w->arena, &cookie),
		STATUS_OK);
	header = arena_printf(w->arena, "AuthSession=%.*s", STR_ARG(cookie));
	probe_begin(p);
	status = check(p, none, header);
	arena_reset(w->arena, mark);
	return status;
}

static enum status
cookie(struct probe *p)
{
	return cookie_of(p, "jan");
}

static enum status
cookie_of_an_administrator(struct probe *p)
{
	return cookie_of(p, "root");
}

static enum status
token(struct probe *p)
{
	probe_begin(p);
	return check(p, ((struct world *)p->world)->bearer, none);
}

static enum status
token_again(struct probe *p)
{
	struct world *w = p->world;
	struct auth_user user;

	assert_int_equal(auth_check(w->auth, w->bearer, none, &w->client, w->arena, &user, NULL),
			 STATUS_OK);
	probe_begin(p);
	return check(p, w->bearer, none);
}

static enum status
proxy(struct probe *p)
{
	struct world *w = p->world;

	w->client.proxy_name = STR("carl");
	w->client.proxy_roles = STR("cook,waiter");
	w->client.proxy_token = w->proxy_token;
	probe_begin(p);
	return check(p, none, none);
}

static enum status
log_in(struct probe *p, const char *name, const char *password)
{
	struct world *w = p->world;
	struct auth_user user;

	probe_begin(p);
	TRY(auth_login(w->auth, "session", str_from_cstr(name), str_from_cstr(password), &w->client,
		       p->arena, &user, &p->err));
	return say_user(p, &user);
}

static enum status
login(struct probe *p)
{
	return log_in(p, "jan", "apple");
}

/* Keys of SCRAM are made by the way, and a failure of that is none of the login. */
static enum status
login_that_makes_keys(struct probe *p)
{
	struct world *w = p->world;
	enum status status;

	w->without_scram = true;
	assert_int_equal(kv_run(w->store, put_body, w, NULL, NULL), STATUS_OK);
	status = log_in(p, "jan", "apple");
	w->without_scram = false;
	return status;
}

static enum status
make_cookie(struct probe *p)
{
	struct world *w = p->world;
	struct str cookie;

	probe_begin(p);
	return auth_make_cookie(w->auth, STR("jan"), &w->client, p->arena, &cookie);
}

static enum status
make_known_cookie(struct probe *p)
{
	struct world *w = p->world;
	struct str cookie;

	probe_begin(p);
	return auth_make_known_cookie(w->auth, STR("jan"), &w->client, p->arena, &cookie);
}

static enum status
again(struct probe *p)
{
	struct world *w = p->world;
	struct auth_user user = { .name = STR("jan"), .method = AUTH_METHOD_BASIC };

	probe_begin(p);
	TRY(auth_again(w->auth, &w->client, p->arena, &user, &p->err));
	return say_user(p, &user);
}

static enum status
again_at_a_door(struct probe *p)
{
	struct world *w = p->world;

	w->client.door = STR("redis");
	return again(p);
}

static enum status
again_as_an_administrator(struct probe *p)
{
	struct world *w = p->world;
	struct auth_user user = { .name = STR("root"), .method = AUTH_METHOD_BASIC };

	probe_begin(p);
	TRY(auth_again(w->auth, &w->client, p->arena, &user, &p->err));
	return say_user(p, &user);
}

/* ---- SCRAM ---- */

static void
hmac(const void *key, size_t len, struct str text, uint8_t ret[32])
{
	unsigned n = 32;

	assert_non_null(
		HMAC(EVP_sha256(), key, (int)len, (const uint8_t *)text.ptr, text.len, ret, &n));
}

/* What a client of this password does with the server's first message. */
static struct str
client_final(struct world *w, const char *password, const char *bare, struct str first)
{
	AUTO(buf_release) struct buf salt = BUF_INIT(64);
	AUTO(buf_release) struct buf proof = BUF_INIT(64);
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
	text = arena_printf(w->arena, "%s,%.*s,c=biws,r=%.*s", bare, STR_ARG(first),
			    STR_ARG(nonce));
	hmac(stored, 32, text, signature);
	for (int i = 0; i < 32; i++)
		key[i] ^= signature[i];
	base64_encode(&proof, str_of(key, 32), BASE64_STANDARD);
	return arena_printf(w->arena, "c=biws,r=%.*s,p=%.*s", STR_ARG(nonce),
			    STR_ARG(buf_str(&proof)));
}

static enum status
scram_first(struct probe *p)
{
	struct world *w = p->world;
	struct auth_scram *s;
	struct str answer;

	probe_begin(p);
	TRY(auth_scram_begin(w->auth, STR("n,," BARE), &w->client, p->arena, &s, &answer, &p->err));
	auth_scram_free(s);
	/* The nonce before it is another one each time. */
	(void)str_cut(&answer, ',');
	buf_append_str(&p->said, answer);
	return STATUS_OK;
}

static enum status
scram_last(struct probe *p, const char *bare, const char *password)
{
	struct world *w = p->world;
	struct arena_mark mark = arena_mark(w->arena);
	struct str first, last, answer;
	struct auth_scram *s;
	struct auth_user user;
	enum status status;

	assert_int_equal(auth_scram_begin(w->auth, arena_printf(w->arena, "n,,%s", bare),
					  &w->client, w->arena, &s, &first, &p->err),
			 STATUS_OK);
	last = client_final(w, password, bare, first);
	probe_begin(p);
	status = auth_scram_end(s, w->auth, last, &w->client, p->arena, &answer, &user, &p->err);
	auth_scram_free(s);
	arena_reset(w->arena, mark);
	return status == STATUS_OK ? say_user(p, &user) : status;
}

static enum status
scram_right(struct probe *p)
{
	return scram_last(p, BARE, "apple");
}

static enum status
scram_wrong(struct probe *p)
{
	return scram_last(p, BARE, "pear");
}

static enum status
scram_of_an_administrator(struct probe *p)
{
	const struct auth_hashing how = { .rounds = ROUNDS };
	struct world *w = p->world;
	struct scram scram;

	/* Which a login with the password has made. */
	assert_int_equal(auth_make_scram(STR("secret"), &how, &scram, NULL), STATUS_OK);
	scram_admins_want();
	scram_admins_add(&w->auth->admins[0]->verifier, &scram);
	return scram_last(p, ROOT_BARE, "secret");
}

static enum status
scram_of_nobody(struct probe *p)
{
	return scram_last(p, "n=nobody,r=clientnonce", "apple");
}

/* ---- Credentials of a server ---- */

static enum status
hash_password(struct probe *p)
{
	const struct auth_hashing how = { .rounds = ROUNDS, .secret = STR(SECRET) };
	struct str hashed;

	probe_begin(p);
	TRY(auth_hash_password(STR("root"), STR("secret"), &how, p->arena, &hashed, &p->err));
	buf_append_str(&p->said, hashed);
	return STATUS_OK;
}

static enum status
add_administrator(struct probe *p)
{
	struct world *w = p->world;
	struct auth_user user;

	probe_begin(p);
	TRY(auth_add_admin_hashed(w->auth, STR("also"), w->hashed, &p->err));
	TRY(auth_login(w->auth, "session", STR("also"), STR("secret"), &w->client, p->arena, &user,
		       &p->err));
	return say_user(p, &user);
}

static enum status
set_secret(struct probe *p)
{
	struct world *w = p->world;

	probe_begin(p);
	return auth_set_secret(w->auth, STR("another secret of the server"), &p->err);
}

static enum status
set_proxy(struct probe *p)
{
	struct world *w = p->world;

	probe_begin(p);
	return auth_set_proxy(w->auth, true, STR(PROXY_SECRET), STR("sha, sha256"), &p->err);
}

static enum status
set_rules(struct probe *p)
{
	const struct jwt_choices choices = { .required_claims = "exp, nbf, {iss, \"me\"}",
					     .roles_path = "my.nested.roles",
					     .algorithms = "HS256, ES256" };
	const struct jwt_key_text keys[] = { { STR("hmac:a"), STR("aGVsbG8=") },
					     { STR("hmac:b"), STR("b3RoZXI=") } };
	struct jwt_rules *rules;

	probe_begin(p);
	TRY(jwt_rules_new(&choices, keys, 2, &rules, &p->err));
	jwt_rules_free(rules);
	return STATUS_OK;
}

static const struct probe_op logins[] = {
	{ "basic", basic_right, "ok, conflicts 1 0+0; 1: C/CNCOC~C~C?C?C?COC" },
	{ "basic, an administrator", basic_of_an_administrator,
	  "ok, conflicts 0 0+0; despite allocation 2=ok" },
	{ "basic, wrong", basic_wrong, "unauthorized, conflicts 1 0+0; 1: C/CNCOCOCOCOCOCOCOC" },
	{ "basic, nobody", basic_of_nobody,
	  "unauthorized, conflicts 1 0+0; despite arena unauthorized" },
	{ "basic, remembered", basic_again, "ok, conflicts 1 0+0; 1: C/CNC~C~C~COCOCOCOC" },
	{ "basic, at a door", basic_at_a_door,
	  "ok, conflicts 2 0+0; 1: C/CNCOC~C~COCOCOCOC 2: C/CNCOC?C?C?C?C" },
	{ "basic, wrong at a door", basic_wrong_at_a_door,
	  "unauthorized, conflicts 2 0+0; 1: C/CNCOCOCOCOCOCOCOC 2: C/CNCOCOCOCOCOC" },
	{ "cookie", cookie, "ok, conflicts 1 0+0; 1: C/CNCOC~C~COC~COCOC" },
	{ "cookie of an administrator", cookie_of_an_administrator, "ok, conflicts 0 0+0" },
	{ "token", token, "ok, conflicts 0 0+0" },
	{ "token, remembered", token_again, "ok, conflicts 0 0+0" },
	{ "proxy", proxy, "ok, conflicts 0 0+0" },
	{ "login", login, "ok, conflicts 1 0+0; 1: C/CNCOC~C~C?C?C?COC" },
	{ "login that makes keys", login_that_makes_keys,
	  "ok, conflicts 2 0+0; despite 2=ok 3=ok 4=ok 5=ok 6=ok; despite arena ok; "
	  "despite allocation 11=ok 12=ok 13=ok 14=ok 15=ok 16=ok 17=ok 18=ok 19=ok "
	  "20=ok 21=ok 22=ok 23=ok 24=ok 25=ok 26=ok; 1: C/CNCOC~C~C?C?C?C 2: O/O" },
	{ "make a cookie", make_cookie, "ok, conflicts 1 0+0; 1: C/CNCOCOCOCOCOCOCOC" },
	{ "make a known cookie", make_known_cookie, "ok, conflicts 1 0+0; 1: C/CNCOCOCOCOCOCOCOC" },
	{ "again", again, "ok, conflicts 1 0+0; 1: ?/?O?~?~?O?O?O?O?" },
	{ "again at a door", again_at_a_door,
	  "ok, conflicts 2 0+0; 1: ?/?O?~?~?O?O?O?O? 2: ?/?O?O?O?O?O?" },
	{ "again, an administrator", again_as_an_administrator, "ok, conflicts 0 0+0" },
	{ "SCRAM, first", scram_first,
	  "ok, conflicts 1 0+0; despite arena nomem; 1: C/CNCOCOCOCOCOCOCOC" },
	{ "SCRAM, right", scram_right,
	  "ok, conflicts 1 0+0; despite arena nomem; 1: C/CNCOC~C~COCOCOCOC" },
	{ "SCRAM, wrong", scram_wrong, "unauthorized, conflicts 1 0+0; 1: C/CNCOCOCOCOCOCOCOC" },
	{ "SCRAM, an administrator", scram_of_an_administrator,
	  "ok, conflicts 0 0+0; despite arena nomem" },
	{ "SCRAM, nobody", scram_of_nobody, "unauthorized, conflicts 1 0+0" },
	{ "hash a password", hash_password, "ok, conflicts 0 0+0; despite arena nomem" },
	{ "add an administrator", add_administrator, "ok, conflicts 0 0+0" },
	{ "set the secret", set_secret, "ok, conflicts 0 0+0" },
	{ "set proxies", set_proxy, "ok, conflicts 0 0+0" },
	{ "rules of tokens", set_rules, "ok, conflicts 0 0+0" },
};

static void
a_failure_lets_nobody_in(void **state)
{
	struct world *w = *state;

	probe_each_alone(w->store, w, prepare, logins, sizeof(logins) / sizeof(logins[0]));
}

/* ---- Renewals ---- */

static struct {
	struct world *w;
	struct auth_who who;
	unsigned depth, most;
	bool same; /* all of them are of one record */
} renewals;

/* Another login, while the hash of this one is written. */
static enum status
upgrade_nested(const struct auth_client *client, const struct person *person,
	       const struct verifier *verifier, const struct scram *scram)
{
	(void)person;
	(void)scram;
	assert_int_equal(verifier->scheme, VERIFIER_PBKDF2);
	assert_true(verifier->rounds >= ROUNDS);
	renewals.depth++;
	if (renewals.depth > renewals.most)
		renewals.most = renewals.depth;
	if (!renewals.same)
		renewals.who.person.version[0]++;
	if (renewals.depth <= 2 * AUTH_RENEWALS_LIMIT)
		auth_renew(renewals.w->auth, &renewals.who, STR("apple"), client,
			   renewals.w->arena);
	renewals.depth--;
	return STATUS_OK;
}

static unsigned
renew_nested(struct world *w, bool same)
{
	memset(&renewals, 0, sizeof(renewals));
	renewals.w = w;
	renewals.same = same;
	renewals.who = (struct auth_who){ .is_person = true, .fresh = true, .person = w->person };
	renewals.who.at.by = PERSON_DOOR_BY_OWN;
	renewals.who.person.verifier.scheme = VERIFIER_SIMPLE;
	auth_renew(w->auth, &renewals.who, STR("apple"), &w->client, w->arena);
	return renewals.most;
}

/* As many at a time as there is room for, and one of each record. */
static void
hashes_are_upgraded_once_at_a_time(void **state)
{
	struct world *w = *state;

	prepare(w);
	auth_set_upgrades(w->auth, true);
	assert_int_equal(renew_nested(w, false), 0);
	auth_set_upgrade(upgrade_nested);
	assert_int_equal(renew_nested(w, true), 1);
	assert_int_equal(renew_nested(w, false), AUTH_RENEWALS_LIMIT);
	/* All places are free again. */
	assert_int_equal(renew_nested(w, false), AUTH_RENEWALS_LIMIT);
	auth_set_upgrades(w->auth, false);
	assert_int_equal(renew_nested(w, false), 0);
	auth_set_upgrade(NULL);
}

struct weakness {
	enum verifier_scheme scheme;
	enum verifier_digest digest;
	uint64_t rounds;
	bool weak;
};

/* A stronger hash than the settings want stays, and a weaker one becomes one that they want. */
static void
what_is_weaker_than_wanted_is_upgraded(void **state)
{
	static const struct weakness rows[] = {
		{ VERIFIER_PBKDF2, VERIFIER_SHA256, ROUNDS, false },
		{ VERIFIER_PBKDF2, VERIFIER_SHA256, ROUNDS + 1, false },
		{ VERIFIER_PBKDF2, VERIFIER_SHA256, ROUNDS - 1, true },
		{ VERIFIER_PBKDF2, VERIFIER_SHA512, ROUNDS, false },
		{ VERIFIER_PBKDF2, VERIFIER_SHA224, ROUNDS, true },
		{ VERIFIER_PBKDF2, VERIFIER_SHA1, ROUNDS, true },
		{ VERIFIER_SIMPLE_PBKDF2, VERIFIER_SHA256, ROUNDS, true },
		{ VERIFIER_SIMPLE, VERIFIER_SHA1, ROUNDS, true },
	};
	struct world *w = *state;

	prepare(w);
	auth_set_upgrade(upgrade_nested);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(&renewals, 0, sizeof(renewals));
		renewals.w = w;
		renewals.same = true;
		renewals.who = (struct auth_who){ .is_person = true,
						  .fresh = true,
						  .person = w->person };
		renewals.who.at.by = PERSON_DOOR_BY_OWN;
		renewals.who.person.has_scram = true;
		renewals.who.person.verifier.scheme = rows[i].scheme;
		renewals.who.person.verifier.digest = rows[i].digest;
		renewals.who.person.verifier.rounds = rows[i].rounds;
		auth_renew(w->auth, &renewals.who, STR("apple"), &w->client, w->arena);
		assert_int_equal(renewals.most, rows[i].weak);
	}
	/* Not where the password was remembered, at a door of its own, or without a store. */
	renewals.most = 0;
	renewals.who.fresh = false;
	auth_renew(w->auth, &renewals.who, STR("apple"), &w->client, w->arena);
	renewals.who.fresh = true;
	renewals.who.at.by = PERSON_DOOR_BY_LIST;
	auth_renew(w->auth, &renewals.who, STR("apple"), &w->client, w->arena);
	renewals.who.at.by = PERSON_DOOR_BY_OWN;
	renewals.who.is_person = false;
	auth_renew(w->auth, &renewals.who, STR("apple"), &w->client, w->arena);
	renewals.who.is_person = true;
	auth_renew(w->auth, &renewals.who, STR("apple"), NULL, w->arena);
	w->client.store = NULL;
	auth_renew(w->auth, &renewals.who, STR("apple"), &w->client, w->arena);
	assert_int_equal(renewals.most, 0);
	auth_set_upgrade(NULL);
}

static enum status
get_body(struct kv_tx *tx, void *arg)
{
	struct world *w = arg;

	return person_get(tx, STR("jan"), w->arena, &w->person, NULL);
}

/* A login makes the keys that a person lacks; not for a record that has changed meanwhile. */
static void
a_login_makes_keys_of_scram_for_the_record_that_it_saw(void **state)
{
	struct world *w = *state;
	struct auth_user user;
	struct person seen;
	struct auth_who who = { .is_person = true, .fresh = true };

	w->without_scram = true;
	prepare(w);
	assert_int_equal(kv_run_read(w->store, get_body, w, NULL), STATUS_OK);
	assert_false(w->person.has_scram);
	seen = w->person;
	/* It is written anew, so it is not what was seen any more. */
	assert_int_equal(kv_run(w->store, put_body, w, NULL, NULL), STATUS_OK);
	who.person = seen;
	who.at.by = PERSON_DOOR_BY_OWN;
	auth_renew(w->auth, &who, STR("apple"), &w->client, w->arena);
	assert_int_equal(kv_run_read(w->store, get_body, w, NULL), STATUS_OK);
	assert_false(w->person.has_scram);
	assert_int_equal(auth_check(w->auth, w->jan_basic, none, &w->client, w->arena, &user, NULL),
			 STATUS_OK);
	assert_int_equal(kv_run_read(w->store, get_body, w, NULL), STATUS_OK);
	assert_true(w->person.has_scram);
	assert_int_equal(w->person.scram.salt_len, SCRAM_SALT_BYTES);
}

/* Keys whose salt is as short as that of former ones are made anew, and others stay. */
static void
a_login_replaces_keys_of_scram_with_a_short_salt(void **state)
{
	static const size_t lens[] = { SCRAM_SALT_BYTES, SCRAM_SALT_SHORT_BYTES };
	struct world *w = *state;

	for (size_t i = 0; i < 2; i++) {
		struct auth_user user;
		char salt[SCRAM_SALT_BYTES];

		w->person.scram.salt_len = lens[i];
		memset(salt, 's', sizeof(salt));
		prepare(w);
		assert_int_equal(
			auth_check(w->auth, w->jan_basic, none, &w->client, w->arena, &user, NULL),
			STATUS_OK);
		assert_int_equal(kv_run_read(w->store, get_body, w, NULL), STATUS_OK);
		assert_true(w->person.has_scram);
		assert_int_equal(w->person.scram.salt_len, SCRAM_SALT_BYTES);
		assert_int_equal(memcmp(w->person.scram.salt, salt, lens[i]) == 0,
				 lens[i] == SCRAM_SALT_BYTES);
	}
}

/* Where doors want keys of SCRAM, those of an administrator with a hash are made, and kept here. */
static void
a_login_of_an_administrator_makes_keys_of_scram(void **state)
{
	struct world *w = *state;
	const struct verifier *root;
	struct auth_user user;
	struct scram found;

	prepare(w);
	root = &w->auth->admins[0]->verifier;
	assert_int_equal(
		auth_check(w->auth, w->root_basic, none, &w->client, w->arena, &user, NULL),
		STATUS_OK);
	assert_int_equal(scram_admins_find(root, &found), scram_admins_are_wanted());
	scram_admins_want();
	prepare(w);
	root = &w->auth->admins[0]->verifier;
	/* Its hash is remembered in the process: only one that is made anew is hashed. */
	auth_renew(w->auth,
		   &(struct auth_who){ .admin = w->auth->admins[0],
				       .verifier = root,
				       .fresh = true,
				       .at = { .by = PERSON_DOOR_BY_OWN } },
		   STR("secret"), &w->client, w->arena);
	assert_true(scram_admins_find(root, &found));
	assert_int_equal(found.salt_len, SCRAM_SALT_BYTES);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_failure_lets_nobody_in),
		CASE(hashes_are_upgraded_once_at_a_time),
		CASE(what_is_weaker_than_wanted_is_upgraded),
		CASE(a_login_makes_keys_of_scram_for_the_record_that_it_saw),
		CASE(a_login_replaces_keys_of_scram_with_a_short_salt),
		CASE(a_login_of_an_administrator_makes_keys_of_scram),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
