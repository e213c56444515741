#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "access/auth_int.h"
#include "access/auth_scram.h"
#include "loop/wait.h"

static const struct str none = { NULL, 0 };

struct fixture {
	struct auth *auth;
	struct arena *arena;
	struct err err;
};

enum {
	ROUNDS = 10,            /* few, so that the tests are quick */
	TOLD_BYTES = 64 * 1024, /* of lines of the log */
	MANY_LINES = 2000,      /* of which so many have no room there */
};

/* The hash of a password as a server with that secret makes it; with a random salt if empty. */
static struct str
hashed(struct fixture *f, const char *name, const char *password, const char *secret)
{
	const struct auth_hashing how = { .rounds = ROUNDS, .secret = str_from_cstr(secret) };
	struct str text;

	assert_int_equal(auth_hash_password(str_from_cstr(name), str_from_cstr(password), &how,
					    f->arena, &text, &f->err),
			 STATUS_OK);
	return text;
}

static void
add_admin(struct fixture *f, struct auth *auth, const char *name, const char *password)
{
	assert_int_equal(auth_add_admin_hashed(auth, str_from_cstr(name),
					       hashed(f, name, password, ""), &f->err),
			 STATUS_OK);
}

static int
setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .auth = auth_new(), .arena = arena_new(1 << 20) };
	if (!f.auth || !f.arena)
		return -1;
	*state = &f;
	add_admin(&f, f.auth, "anna", "s3cret:with colon");
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

static enum status
check_password(struct auth *auth, struct str name, struct str password, struct fixture *f)
{
	struct auth_user user;

	return auth_login(auth, "session", name, password, NULL, f->arena, &user, &f->err);
}

/* "Basic " and the encoded credentials, in the fixture's arena. */
static struct str
basic(struct fixture *f, const char *credentials)
{
	AUTO(buf_release) struct buf b = BUF_INIT(4096);

	buf_append_cstr(&b, "Basic ");
	base64_encode(&b, str_from_cstr(credentials), BASE64_STANDARD);
	return arena_dup(f->arena, buf_str(&b));
}

static struct str
cookie_header(struct fixture *f, struct str value)
{
	return arena_printf(f->arena, "other=1; AuthSession=%.*s; more=x", STR_ARG(value));
}

static void
assert_admin(struct fixture *f, struct str authorization, struct str cookie,
	     enum auth_method method)
{
	struct auth_user user;

	assert_int_equal(auth_check(f->auth, authorization, cookie, NULL, f->arena, &user, &f->err),
			 STATUS_OK);
	assert_true(user.admin);
	assert_int_equal(user.method, method);
	assert_true(str_eq(user.name, STR("anna")));
}

static void
assert_anonymous(struct fixture *f, struct str authorization, struct str cookie)
{
	struct auth_user user;

	assert_int_equal(auth_check(f->auth, authorization, cookie, NULL, f->arena, &user, &f->err),
			 STATUS_OK);
	assert_false(user.admin);
	assert_int_equal(user.method, AUTH_METHOD_NONE);
	assert_int_equal(user.name.len, 0);
}

static void
assert_refused(struct fixture *f, struct str authorization)
{
	struct auth_user user;

	assert_int_equal(auth_check(f->auth, authorization, none, NULL, f->arena, &user, &f->err),
			 STATUS_UNAUTHORIZED);
	assert_string_equal(f->err.text, "Name or password is incorrect.");
}

static void
without_admins_everybody_is_one(void **state)
{
	struct fixture *f = *state;
	struct auth *open = auth_new();
	struct auth_user user;

	assert_non_null(open);
	assert_false(auth_has_admins(open));
	assert_int_equal(auth_check(open, none, none, NULL, f->arena, &user, &f->err), STATUS_OK);
	assert_true(user.admin);
	assert_int_equal(user.name.len, 0);
	auth_free(open);
}

static void
good_basic_credentials_make_an_admin(void **state)
{
	struct fixture *f = *state;
	struct str header = basic(f, "anna:s3cret:with colon");

	assert_true(auth_has_admins(f->auth));
	assert_admin(f, header, none, AUTH_METHOD_BASIC);
	header = arena_printf(f->arena, "  bAsIc  %.*s ", (int)header.len - 6, header.ptr + 6);
	assert_admin(f, header, none, AUTH_METHOD_BASIC);
}

static void
no_credentials_are_anonymous(void **state)
{
	assert_anonymous(*state, none, none);
}

/* As Fauxton logs out; neither half of it alone is that. */
static void
a_name_and_a_password_of_one_underscore_are_anonymous(void **state)
{
	struct fixture *f = *state;

	assert_anonymous(f, basic(f, "_:_"), none);
	assert_refused(f, basic(f, "_:x"));
	assert_refused(f, basic(f, "anna:_"));
}

static void
wrong_basic_credentials_are_unauthorized(void **state)
{
	struct fixture *f = *state;

	assert_refused(f, basic(f, "anna:wrong"));
	assert_refused(f, basic(f, "anna:"));
	assert_refused(f, basic(f, "anna:s3cret:with colo"));
	assert_refused(f, basic(f, "anna:s3cret:with colon "));
	assert_refused(f, basic(f, "otto:s3cret:with colon"));
	assert_refused(f, basic(f, ":"));
}

static void
malformed_basic_credentials_are_unauthorized(void **state)
{
	struct fixture *f = *state;

	assert_refused(f, STR("Basic "));
	assert_refused(f, STR("Basic !!!!"));
	assert_refused(f, STR("Basic Zg"));
	assert_refused(f, basic(f, "no colon"));
}

static void
oversized_credentials_are_unauthorized(void **state)
{
	struct fixture *f = *state;
	char long_text[3000];

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	memcpy(long_text, "anna:", 5);
	assert_refused(f, basic(f, long_text));
	long_text[5 + AUTH_PASSWORD_BYTES] = '\0';
	assert_refused(f, basic(f, long_text));
	assert_int_equal(
		check_password(f->auth, STR("anna"), str_of(long_text, AUTH_PASSWORD_BYTES + 1), f),
		STATUS_UNAUTHORIZED);
}

static void
other_schemes_are_ignored(void **state)
{
	assert_anonymous(*state, STR("Bearer abc"), none);
	assert_anonymous(*state, STR("nonsense"), none);
	assert_anonymous(*state, STR(""), none);
}

/* A waiter that counts the work it is given: the slow hash is what auth gives others to do. */
struct counting_waiter {
	struct waiter waiter;
	int begun;
};

static void
counting_begin(struct waiter *w, struct wait_work *work)
{
	((struct counting_waiter *)(void *)w)->begun++;
	assert_true(work->computes);
	work->fn(work->arg);
	event_set(&work->done);
}

static const struct waiter_ops counting_ops = { .begin = counting_begin };

/* ---- What is wiped ---- */

/* How often memory that begins with this was wiped. */
static struct {
	const void *bytes;
	size_t len;
	unsigned count;
} wiped;

void __real_OPENSSL_cleanse(void *ptr, size_t len);
void __wrap_OPENSSL_cleanse(void *ptr, size_t len);

void
__wrap_OPENSSL_cleanse(void *ptr, size_t len)
{
	wiped.count += wiped.bytes && len >= wiped.len && memcmp(ptr, wiped.bytes, wiped.len) == 0;
	__real_OPENSSL_cleanse(ptr, len);
}

static void
a_secret_that_nobody_needs_any_more_is_wiped(void **state)
{
	static const char secret[] = "what proxies and servers share";
	static const uint16_t letters[] = { 'p', 0xe4, 's', 's', 'w', 0xf6, 'r', 't' };
	struct scram scram = { .rounds = ROUNDS, .salt_len = SCRAM_SALT_BYTES };
	struct fixture *f = *state;

	wiped.bytes = secret;
	wiped.len = strlen(secret);
	wiped.count = 0;
	assert_int_equal(auth_set_proxy(f->auth, true, str_from_cstr(secret), STR("sha"), &f->err),
			 STATUS_OK);
	assert_int_equal(wiped.count, 0);
	assert_int_equal(auth_set_proxy(f->auth, true, STR(""), STR("sha"), &f->err), STATUS_OK);
	assert_int_equal(wiped.count, 1);
	assert_int_equal(auth_set_proxy(f->auth, true, STR(""), STR("sha"), &f->err), STATUS_OK);
	assert_int_equal(wiped.count, 1);
	/* A password's characters, as they came and as they were prepared. */
	wiped.bytes = letters;
	wiped.len = sizeof(letters);
	wiped.count = 0;
	assert_true(scram_derive(STR("p\u00e4ssw\u00f6rt"), &scram));
	assert_int_equal(wiped.count, 2);
	wiped.bytes = NULL;
}

/* ---- Turns ---- */

/* The only turn is another one's: a login waits for it, unless nobody waits for the login. */
static void
a_login_without_a_turn_ends_as_its_client_does(void **state)
{
	static const struct hash_queue_limits one = { .threads = 1, .waiting = 1 };
	static const struct hash_queue_limits full = { .threads = 1, .waiting = 0 };
	const struct str password = STR("s3cret:with colon");
	struct fixture *f = *state;
	struct hash_turn other = { .key = { 1 } };
	struct event gone;
	const struct auth_client client = { .by.address = STR("192.0.2.9:1"), .gone = &gone };
	const struct auth_hashing how = { .rounds = ROUNDS, .client = &client, .limits = one };
	struct auth_user user;
	struct str text;

	event_init(&gone);
	event_set(&gone);
	address_block_of(STR("192.0.2.8:1"), &other.address);
	assert_int_equal(hash_queue_enter(&other, &one, NULL), HASH_QUEUE_TURN);
	auth_set_hash_limits(f->auth, &one);
	assert_int_equal(auth_login(f->auth, "session", STR("anna"), password, &client, f->arena,
				    &user, &f->err),
			 STATUS_CANCELLED);
	assert_int_equal(auth_hash_password(STR("bert"), STR("x"), &how, f->arena, &text, &f->err),
			 STATUS_CANCELLED);
	auth_set_hash_limits(f->auth, &full);
	assert_int_equal(auth_login(f->auth, "session", STR("anna"), password, &client, f->arena,
				    &user, &f->err),
			 STATUS_TOO_MANY);
	assert_non_null(strstr(f->err.text, "the limit, hash_queue, is 0."));
	hash_queue_leave(&other, &one, 0);
	assert_int_equal(auth_login(f->auth, "session", STR("anna"), password, NULL, f->arena,
				    &user, &f->err),
			 STATUS_OK);
}

static void
slow_hash_is_paid_once_for_a_good_password_and_always_for_a_bad_one(void **state)
{
	struct fixture *f = *state;
	struct str good = basic(f, "anna:s3cret:with colon");
	struct counting_waiter counter = { .begun = 0 };

	waiter_init(&counter.waiter, &counting_ops);
	waiter_set_current(&counter.waiter);
	for (int i = 0; i < 5; i++)
		assert_admin(f, good, none, AUTH_METHOD_BASIC);
	assert_int_equal(counter.begun, 1);
	assert_refused(f, basic(f, "anna:wrong"));
	assert_refused(f, basic(f, "anna:wrong"));
	assert_refused(f, basic(f, "otto:wrong"));
	assert_int_equal(counter.begun, 4);
	assert_admin(f, good, none, AUTH_METHOD_BASIC);
	assert_int_equal(counter.begun, 4);
	waiter_set_current(NULL);
}

static void
remembered_password_of_one_admin_is_not_anothers(void **state)
{
	struct fixture *f = *state;

	add_admin(f, f->auth, "bert", "other");
	assert_int_equal(check_password(f->auth, STR("bert"), STR("other"), f), STATUS_OK);
	assert_int_equal(check_password(f->auth, STR("anna"), STR("other"), f),
			 STATUS_UNAUTHORIZED);
}

static void
password_of_a_session_is_checked(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(check_password(f->auth, STR("anna"), STR("s3cret:with colon"), f),
			 STATUS_OK);
	assert_int_equal(check_password(f->auth, STR("anna"), STR("x"), f), STATUS_UNAUTHORIZED);
	assert_int_equal(check_password(f->auth, STR(""), STR(""), f), STATUS_UNAUTHORIZED);
}

static void
cookie_names_its_owner(void **state)
{
	struct fixture *f = *state;
	struct str value;

	assert_int_equal(auth_make_cookie(f->auth, STR("anna"), NULL, f->arena, &value), STATUS_OK);
	assert_admin(f, none, cookie_header(f, value), AUTH_METHOD_COOKIE);
	assert_admin(f, none, arena_printf(f->arena, "AuthSession=\"%.*s\"", STR_ARG(value)),
		     AUTH_METHOD_COOKIE);
	/* Credentials given on purpose come first. */
	assert_admin(f, basic(f, "anna:s3cret:with colon"), cookie_header(f, value),
		     AUTH_METHOD_BASIC);
	assert_refused(f, basic(f, "anna:wrong"));
	assert_admin(f, STR("Bearer x"), cookie_header(f, value), AUTH_METHOD_COOKIE);
}

static void
expired_cookie_is_absent(void **state)
{
	struct fixture *f = *state;
	uint64_t now = clock_wall_ms() / 1000;
	struct str value;

	assert_int_equal(auth_make_cookie_at(f->auth, STR("anna"), NULL,
					     now - AUTH_SESSION_SECONDS + 20, f->arena, &value),
			 STATUS_OK);
	assert_admin(f, none, cookie_header(f, value), AUTH_METHOD_COOKIE);
	assert_int_equal(auth_make_cookie_at(f->auth, STR("anna"), NULL, now - AUTH_SESSION_SECONDS,
					     f->arena, &value),
			 STATUS_OK);
	assert_anonymous(f, none, cookie_header(f, value));
	/* Nor is one from the future good for ever. */
	assert_int_equal(
		auth_make_cookie_at(f->auth, STR("anna"), NULL, now + 1000, f->arena, &value),
		STATUS_OK);
	assert_anonymous(f, none, cookie_header(f, value));
}

static void
cookie_that_is_no_longer_fresh_is_to_be_renewed(void **state)
{
	struct fixture *f = *state;
	uint64_t now = clock_wall_ms() / 1000;
	struct auth_user user;
	struct str value;

	for (uint64_t age = 0; age < AUTH_SESSION_SECONDS - 20; age += 20) {
		assert_int_equal(auth_make_cookie_at(f->auth, STR("anna"), NULL, now - age,
						     f->arena, &value),
				 STATUS_OK);
		assert_int_equal(auth_check(f->auth, none, cookie_header(f, value), NULL, f->arena,
					    &user, &f->err),
				 STATUS_OK);
		/* Unless the clock has gone on in between. */
		if (age != AUTH_SESSION_SECONDS / 10)
			assert_int_equal(user.renew, age > AUTH_SESSION_SECONDS / 10);
	}
	/* Basic credentials need no cookie. */
	assert_int_equal(auth_check(f->auth, basic(f, "anna:s3cret:with colon"),
				    cookie_header(f, value), NULL, f->arena, &user, &f->err),
			 STATUS_OK);
	assert_false(user.renew);
}

static void
cookie_with_any_character_changed_is_absent(void **state)
{
	struct fixture *f = *state;
	struct str value;

	assert_int_equal(auth_make_cookie(f->auth, STR("anna"), NULL, f->arena, &value), STATUS_OK);
	for (size_t i = 0; i < value.len; i++) {
		struct str changed = arena_dup(f->arena, value);
		char *at = arena_bytes(f->arena, value.len);

		assert_non_null(at);
		memcpy(at, changed.ptr, value.len);
		at[i] = at[i] == 'A' ? 'B' : 'A';
		assert_anonymous(f, none, cookie_header(f, str_of(at, value.len)));
		assert_anonymous(f, none, cookie_header(f, str_of(value.ptr, i)));
	}
}

/* The signature is of what is in front of that. */
static void
cookie_with_another_separator_is_absent(void **state)
{
	AUTO(buf_release) struct buf plain = BUF_INIT(1000), again = BUF_INIT(1000);
	struct fixture *f = *state;
	struct str value;

	assert_int_equal(auth_make_cookie(f->auth, STR("anna"), NULL, f->arena, &value), STATUS_OK);
	assert_int_equal(base64_decode(&plain, value, BASE64_URL), STATUS_OK);
	base64_encode(&again, buf_str(&plain), BASE64_URL);
	assert_admin(f, none, cookie_header(f, buf_str(&again)), AUTH_METHOD_COOKIE);
	assert_int_equal(plain.ptr[plain.len - AUTH_DIGEST_BYTES - 1], ':');
	plain.ptr[plain.len - AUTH_DIGEST_BYTES - 1] = ';';
	buf_clear(&again);
	base64_encode(&again, buf_str(&plain), BASE64_URL);
	assert_anonymous(f, none, cookie_header(f, buf_str(&again)));
}

static void
cookie_may_be_in_quotes(void **state)
{
	struct fixture *f = *state;
	struct str value, v;

	assert_int_equal(auth_make_cookie(f->auth, STR("anna"), NULL, f->arena, &value), STATUS_OK);
	v = arena_printf(f->arena, "\"%.*s\"", STR_ARG(value));
	assert_admin(f, none, cookie_header(f, v), AUTH_METHOD_COOKIE);
	v = arena_printf(f->arena, "\"%.*s", STR_ARG(value));
	assert_anonymous(f, none, cookie_header(f, v));
	/* Another character at its end. */
	v = arena_printf(f->arena, "\"%.*s'", STR_ARG(value));
	assert_anonymous(f, none, cookie_header(f, v));
	v = arena_printf(f->arena, "%.*s\"", STR_ARG(value));
	assert_anonymous(f, none, cookie_header(f, v));
	assert_anonymous(f, none, cookie_header(f, STR("\"")));
	assert_anonymous(f, none, cookie_header(f, STR("\"\"")));
}

static void
malformed_cookies_are_absent(void **state)
{
	struct fixture *f = *state;
	char long_value[5000];

	memset(long_value, 'A', sizeof(long_value));
	assert_anonymous(f, none, STR("AuthSession="));
	assert_anonymous(f, none, STR("AuthSession"));
	assert_anonymous(f, none, STR(";;;=;"));
	assert_anonymous(f, none, STR("AuthSession=!!!"));
	assert_anonymous(f, none, STR("XAuthSession=abc"));
	assert_anonymous(f, none, STR(""));
	assert_anonymous(f, none, cookie_header(f, str_of(long_value, sizeof(long_value))));
}

static void
cookie_of_someone_unknown_is_absent(void **state)
{
	struct fixture *f = *state;
	struct str value;

	assert_int_equal(auth_make_cookie(f->auth, STR("otto"), NULL, f->arena, &value), STATUS_OK);
	assert_anonymous(f, none, cookie_header(f, value));
}

static void
cookie_of_another_process_needs_the_same_secret(void **state)
{
	struct fixture *f = *state;
	struct auth *here = auth_new();
	struct auth *other = auth_new();
	struct str text = hashed(f, "anna", "s3cret", "");
	struct str value;
	struct fixture g = { .auth = here, .arena = f->arena };

	assert_non_null(here);
	assert_non_null(other);
	assert_int_equal(auth_add_admin_hashed(here, STR("anna"), text, &f->err), STATUS_OK);
	assert_int_equal(auth_add_admin_hashed(other, STR("anna"), text, &f->err), STATUS_OK);
	assert_int_equal(auth_make_cookie(other, STR("anna"), NULL, f->arena, &value), STATUS_OK);
	assert_anonymous(&g, none, cookie_header(f, value));

	assert_int_equal(auth_set_secret(other, STR("short"), &f->err), STATUS_INVALID);
	assert_int_equal(auth_set_secret(other, STR("a secret of two servers"), &f->err),
			 STATUS_OK);
	assert_int_equal(auth_set_secret(here, STR("a secret of two servers"), &f->err), STATUS_OK);
	assert_int_equal(auth_make_cookie(other, STR("anna"), NULL, f->arena, &value), STATUS_OK);
	assert_admin(&g, none, cookie_header(f, value), AUTH_METHOD_COOKIE);
	auth_free(here);
	auth_free(other);
}

/* What holds after the secret was changed, at a time before or after now. */
static struct auth *
changed_secret(struct fixture *f, const char *secret, uint64_t overlap_s, uint64_t ago_s)
{
	struct auth *now = auth_new();

	assert_non_null(now);
	assert_int_equal(auth_add_admin_hashed(now, STR("anna"),
					       hashed(f, "anna", "pass", "a secret for salts"),
					       &f->err),
			 STATUS_OK);
	assert_int_equal(auth_set_secret(now, str_from_cstr(secret), &f->err), STATUS_OK);
	auth_set_overlap(now, overlap_s);
	if (f->auth)
		auth_succeed_at(now, f->auth, clock_mono_ns() - ago_s * 1000 * CLOCK_NS_PER_MS,
				clock_wall_ms() / 1000 - ago_s);
	return now;
}

static void
cookies_of_the_former_secret_hold_for_the_overlap(void **state)
{
	struct fixture *f = *state;
	struct fixture former = { .arena = f->arena };
	uint64_t now = clock_wall_ms() / 1000;
	struct str value, late, old;
	struct fixture g = { .arena = f->arena };
	struct auth_user user;
	struct auth *third;

	former.auth = changed_secret(&former, "the first of the secrets", 0, 0);
	assert_int_equal(
		auth_make_cookie_at(former.auth, STR("anna"), NULL, now - 100, f->arena, &value),
		STATUS_OK);
	assert_int_equal(
		auth_make_cookie_at(former.auth, STR("anna"), NULL, now - 20, f->arena, &late),
		STATUS_OK);
	assert_int_equal(auth_make_cookie_at(former.auth, STR("anna"), NULL,
					     now - AUTH_SESSION_SECONDS, f->arena, &old),
			 STATUS_OK);
	g.auth = changed_secret(&former, "the second of the secrets", 1000, 50);
	assert_admin(&g, none, cookie_header(f, value), AUTH_METHOD_COOKIE);
	assert_int_equal(
		auth_check(g.auth, none, cookie_header(f, value), NULL, f->arena, &user, &f->err),
		STATUS_OK);
	assert_true(user.renew);
	/* Whoever has stolen the former secret cannot use it for cookies of after the change. */
	assert_anonymous(&g, none, cookie_header(f, late));
	assert_anonymous(&g, none, cookie_header(f, old));

	/* Other settings change: the former secret stays the former one, since the same time. */
	third = changed_secret(&g, "the second of the secrets", 1000, 0);
	auth_free(g.auth);
	g.auth = third;
	assert_admin(&g, none, cookie_header(f, value), AUTH_METHOD_COOKIE);
	assert_anonymous(&g, none, cookie_header(f, late));
	/* The overlap is over, by its time or by the setting. */
	auth_set_overlap(g.auth, 40);
	assert_anonymous(&g, none, cookie_header(f, value));
	auth_set_overlap(g.auth, 0);
	assert_anonymous(&g, none, cookie_header(f, value));
	auth_set_overlap(g.auth, 1000);
	assert_admin(&g, none, cookie_header(f, value), AUTH_METHOD_COOKIE);
	/* The next secret ends the one before the former. */
	third = changed_secret(&g, "the third of the secrets", 1000, 0);
	auth_free(g.auth);
	g.auth = third;
	assert_anonymous(&g, none, cookie_header(f, value));
	auth_free(g.auth);
	auth_free(former.auth);
}

/* Whether a cookie that was made with one password holds where the other one does. */
static bool
cookie_holds(struct fixture *f, struct str made_with, struct str checked_with)
{
	static const struct str secret = { "a secret of two servers", 23 };
	struct auth *before = auth_new();
	struct auth *after = auth_new();
	struct auth_user user;
	struct str value;

	assert_non_null(before);
	assert_non_null(after);
	assert_int_equal(auth_add_admin_hashed(before, STR("anna"), made_with, &f->err), STATUS_OK);
	assert_int_equal(auth_add_admin_hashed(after, STR("anna"), checked_with, &f->err),
			 STATUS_OK);
	assert_int_equal(auth_set_secret(before, secret, &f->err), STATUS_OK);
	assert_int_equal(auth_set_secret(after, secret, &f->err), STATUS_OK);
	assert_int_equal(auth_make_cookie(before, STR("anna"), NULL, f->arena, &value), STATUS_OK);
	assert_int_equal(
		auth_check(after, none, cookie_header(f, value), NULL, f->arena, &user, &f->err),
		STATUS_OK);
	auth_free(before);
	auth_free(after);
	return user.admin;
}

static void
cookie_ends_with_its_password(void **state)
{
	struct fixture *f = *state;
	struct str random = hashed(f, "anna", "one", "");
	struct str derived = hashed(f, "anna", "one", "a secret of two servers");

	assert_true(cookie_holds(f, random, random));
	assert_false(cookie_holds(f, random, hashed(f, "anna", "two", "")));
	/* The same password, hashed once more: as in CouchDB, its salt is another one. */
	assert_false(cookie_holds(f, random, hashed(f, "anna", "one", "")));
	/* Two servers that were each given the password in plain. */
	assert_true(cookie_holds(f, derived, hashed(f, "anna", "one", "a secret of two servers")));
	assert_false(cookie_holds(f, derived, hashed(f, "anna", "two", "a secret of two servers")));
}

static void
derived_salts_depend_on_the_name_and_the_secret(void **state)
{
	struct fixture *f = *state;
	struct str text = hashed(f, "anna", "one", "a secret of two servers");

	assert_true(str_eq(text, hashed(f, "anna", "one", "a secret of two servers")));
	assert_false(str_eq(text, hashed(f, "bert", "one", "a secret of two servers")));
	assert_false(str_eq(text, hashed(f, "anna", "one", "a secret of other servers")));
}

static void
verifiers_keep_a_salt_that_is_there(void **state)
{
	const struct auth_hashing how = { .rounds = ROUNDS };
	struct verifier v = { .salt_len = 4 }, fresh = { .salt_len = 0 };
	struct fixture *f = *state;
	uint8_t hash[VERIFIER_HASH_BYTES];
	struct scram scram;

	memcpy(v.salt, "salt", 4);
	assert_int_equal(auth_make_verifiers(STR("pass"), &how, &v, &scram, &f->err), STATUS_OK);
	assert_true(str_eq(str_of(v.salt, v.salt_len), STR("salt")));
	assert_true(verifier_derive(&v, STR("pass"), hash));
	assert_memory_equal(v.hash, hash, v.hash_len);
	assert_int_equal(auth_make_verifiers(STR("pass"), &how, &fresh, &scram, &f->err),
			 STATUS_OK);
	assert_true(fresh.salt_len > 0);
	assert_true(verifier_derive(&fresh, STR("pass"), hash));
	assert_memory_equal(fresh.hash, hash, fresh.hash_len);
}

static void
bad_names_and_passwords_cannot_be_added(void **state)
{
	static const struct str names[] = { { "", 0 }, { "a:b", 3 } };
	struct fixture *f = *state;
	struct str text = hashed(f, "x", "p", "");
	char long_text[AUTH_PASSWORD_BYTES + 1];

	memset(long_text, 'n', sizeof(long_text));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(auth_add_admin_hashed(f->auth, names[i], text, &f->err),
				 STATUS_INVALID);
	assert_int_equal(auth_add_admin_hashed(f->auth, str_of(long_text, AUTH_NAME_BYTES + 1),
					       text, &f->err),
			 STATUS_INVALID);
	assert_int_equal(auth_add_admin_hashed(f->auth, STR("anna"), text, &f->err), STATUS_EXISTS);
	assert_int_equal(auth_check_plain(STR("x"), STR(""), &f->err), STATUS_INVALID);
	assert_int_equal(
		auth_check_plain(STR("x"), str_of(long_text, AUTH_PASSWORD_BYTES + 1), &f->err),
		STATUS_INVALID);
	assert_int_equal(auth_check_plain(STR("x"), STR("p"), &f->err), STATUS_OK);
}

static void
the_longest_name_and_password_log_in(void **state)
{
	char credentials[AUTH_NAME_BYTES + 1 + AUTH_PASSWORD_BYTES + 1] = { 0 };
	char name[AUTH_NAME_BYTES + 1] = { 0 }, password[AUTH_PASSWORD_BYTES + 1] = { 0 };
	struct fixture *f = *state;
	struct auth_user user;

	memset(name, 'n', AUTH_NAME_BYTES);
	memset(password, 'p', AUTH_PASSWORD_BYTES);
	(void)snprintf(credentials, sizeof(credentials), "%s:%s", name, password);
	assert_int_equal(auth_check_plain(str_from_cstr(name), str_from_cstr(password), &f->err),
			 STATUS_OK);
	add_admin(f, f->auth, name, password);
	assert_int_equal(check_password(f->auth, str_from_cstr(name), str_from_cstr(password), f),
			 STATUS_OK);
	assert_int_equal(
		auth_check(f->auth, basic(f, credentials), none, NULL, f->arena, &user, &f->err),
		STATUS_OK);
	assert_int_equal(user.name.len, AUTH_NAME_BYTES);
}

/* ---- Proxies ---- */

/* What a proxy's headers make of a request. */
static struct auth_user
by_proxy(struct fixture *f, const char *name, const char *roles, struct str token)
{
	const struct auth_client client = { .proxy_name = str_from_cstr(name),
					    .proxy_roles = str_from_cstr(roles),
					    .proxy_token = token };
	struct auth_user user;

	assert_int_equal(auth_check(f->auth, none, none, &client, f->arena, &user, &f->err),
			 STATUS_OK);
	return user;
}

static void
a_proxy_with_the_secret_says_who_it_is(void **state)
{
	static const char secret[] = "a secret of the proxy";
	AUTO(buf_release) struct buf token = BUF_INIT(256);
	uint8_t digest[AUTH_DIGEST_BYTES];
	struct fixture *f = *state;
	struct auth_user user;

	assert_int_equal(auth_set_handlers(f->auth,
					   STR("{chttpd_auth, proxy_authentication_handler}"),
					   &f->err),
			 STATUS_OK);
	assert_int_equal(
		auth_keyed_digest((const uint8_t *)secret, strlen(secret), STR("bert"), digest),
		STATUS_OK);
	buf_append_hex(&token, str_of(digest, sizeof(digest)));
	/* Without a secret nobody has it. */
	assert_int_equal(auth_set_proxy(f->auth, true, STR(""), STR("sha, sha256"), &f->err),
			 STATUS_OK);
	assert_int_equal(by_proxy(f, "bert", "", buf_str(&token)).method, AUTH_METHOD_NONE);
	assert_int_equal(
		auth_set_proxy(f->auth, true, str_from_cstr(secret), STR("sha, sha256"), &f->err),
		STATUS_OK);
	user = by_proxy(f, "bert", "cook,, waiter", buf_str(&token));
	assert_int_equal(user.method, AUTH_METHOD_PROXY);
	assert_true(str_eq(user.name, STR("bert")));
	assert_int_equal(user.roles_count, 2);
	assert_true(str_eq(user.roles[1], STR("waiter")));
	assert_false(user.admin);
	assert_true(by_proxy(f, "bert", "_admin", buf_str(&token)).admin);
	assert_int_equal(by_proxy(f, "carl", "", buf_str(&token)).method, AUTH_METHOD_NONE);
	assert_int_equal(by_proxy(f, "", "", buf_str(&token)).method, AUTH_METHOD_NONE);
	assert_int_equal(by_proxy(f, "bert", "", str_of(token.ptr, token.len - 1)).method,
			 AUTH_METHOD_NONE);
	token.ptr[7] ^= 1;
	assert_int_equal(by_proxy(f, "bert", "", buf_str(&token)).method, AUTH_METHOD_NONE);
	/* One that is trusted needs none. */
	assert_int_equal(auth_set_proxy(f->auth, false, STR(""), STR("sha"), &f->err), STATUS_OK);
	assert_int_equal(by_proxy(f, "bert", "", STR("")).method, AUTH_METHOD_PROXY);
}

static void
a_proxy_has_a_bounded_list_of_algorithms(void **state)
{
	AUTO(buf_release) struct buf list = BUF_INIT(256);
	struct fixture *f = *state;

	for (int i = 0; i < AUTH_DIGESTS_LIMIT; i++) {
		buf_append_cstr(&list, i ? ", sha256" : "sha256");
		assert_int_equal(auth_set_proxy(f->auth, true, STR("x"), buf_str(&list), &f->err),
				 STATUS_OK);
	}
	buf_append_cstr(&list, ", sha");
	assert_int_equal(auth_set_proxy(f->auth, true, STR("x"), buf_str(&list), &f->err),
			 STATUS_INVALID);
	assert_int_equal(auth_set_proxy(f->auth, true, STR("x"), STR("sha,md5"), &f->err),
			 STATUS_INVALID);
}

/* ---- Lines for the log ---- */

typedef void tell(const struct audit_by *by, const void *arg);

/* What is told of something done at the door; "" if it is not. */
static const char *
told_to(struct fixture *f, const struct audit_by *by, tell *tell_it, const void *arg)
{
	int before = dup(STDERR_FILENO), fd = memfd_create("log", MFD_CLOEXEC);
	char *text = arena_zalloc(f->arena, TOLD_BYTES);

	assert_non_null(text);
	assert_true(before >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	tell_it(by, arg);
	fflush(stderr);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	assert_true(pread(fd, text, TOLD_BYTES - 1, 0) >= 0);
	close(before);
	close(fd);
	return text;
}

static const char *
told_by(struct fixture *f, const char *door, tell *tell_it, const void *arg)
{
	const struct audit_by by = { .door = door, .address = STR("127.0.0.1:40312") };

	return told_to(f, &by, tell_it, arg);
}

struct told_login {
	enum status status;
	bool failing;
};

static void
tell_login(const struct audit_by *by, const void *arg)
{
	const struct told_login *login = arg;

	audit_login(by, STR("anna"), "basic", login->status, login->failing);
}

static const char *
told(struct fixture *f, const char *door, enum status status, bool failing)
{
	const struct told_login login = { status, failing };

	return told_by(f, door, tell_login, &login);
}

static void
tell_refused(const struct audit_by *by, const void *arg)
{
	audit_refused(by, STR("GET"), STR("/db"), arg);
}

static void
tell_changed(const struct audit_by *by, const void *arg)
{
	audit_changed(by, "created", "database", str_from_cstr(arg));
}

static void
what_is_refused_or_changed_at_a_door_is_told(void **state)
{
	struct fixture *f = *state;
	const char *text;

	log_set_level(LOG_LEVEL_INFO);
	text = told_by(f, "couch", tell_refused, "403");
	assert_non_null(strstr(text, "refused"));
	assert_non_null(strstr(text, "method=GET"));
	assert_non_null(strstr(text, "status=403"));
	assert_string_equal(told_by(f, NULL, tell_refused, "403"), "");
	text = told_by(f, "couch", tell_changed, "db");
	assert_non_null(strstr(text, "created"));
	assert_non_null(strstr(text, "database="));
	assert_string_equal(told_by(f, NULL, tell_changed, "db"), "");
}

static void
logins_at_a_door_are_told(void **state)
{
	struct fixture *f = *state;
	const char *text;

	log_set_level(LOG_LEVEL_INFO);
	text = told(f, "couch", STATUS_OK, false);
	assert_non_null(strstr(text, "login"));
	assert_null(strstr(text, "login_refused"));
	assert_non_null(strstr(text, "anna"));
	assert_non_null(strstr(text, "method=basic"));
	assert_null(strstr(text, "failing"));
	assert_non_null(strstr(told(f, "couch", STATUS_OK, true), "failing=true"));
	text = told(f, "couch", STATUS_UNAUTHORIZED, false);
	assert_non_null(strstr(text, "login_refused"));
	assert_non_null(strstr(text, "reason=wrong"));
	assert_non_null(strstr(told(f, "couch", STATUS_FORBIDDEN, false), "reason=locked"));
	assert_string_equal(told(f, NULL, STATUS_OK, false), "");
}

struct tried_login {
	struct fixture *f;
	struct str password;
	enum status *ret; /* what the login comes to */
};

static void
log_in_by(const struct audit_by *by, const void *arg)
{
	const struct tried_login *login = arg;
	const struct auth_client client = { .by = *by };
	struct auth_user user;

	*login->ret = auth_login(login->f->auth, "session", STR("anna"), login->password, &client,
				 login->f->arena, &user, &login->f->err);
}

static void
a_login_by_a_wrong_password_is_told_too(void **state)
{
	struct fixture *f = *state;
	enum status status;
	const struct tried_login good = { f, STR("s3cret:with colon"), &status };
	const struct tried_login wrong = { f, STR("no"), &status };
	const char *text;

	log_set_level(LOG_LEVEL_INFO);
	text = told_by(f, "couch", log_in_by, &good);
	assert_int_equal(status, STATUS_OK);
	assert_non_null(strstr(text, "login"));
	assert_null(strstr(text, "login_refused"));
	text = told_by(f, "couch", log_in_by, &wrong);
	assert_int_equal(status, STATUS_UNAUTHORIZED);
	assert_non_null(strstr(text, "login_refused"));
	assert_non_null(strstr(text, "method=session"));
	assert_non_null(strstr(text, "reason=wrong"));
}

static void
begin_scram_by(const struct audit_by *by, const void *arg)
{
	const struct tried_login *login = arg;
	const struct auth_client client = { .by = *by };
	struct auth_scram *scram;
	struct str answer;

	*login->ret = auth_scram_begin(login->f->auth, login->password, &client, login->f->arena,
				       &scram, &answer, &login->f->err);
}

/* A server that is too busy to hash a password has nothing to say about whoever sent it. */
static void
refusals_are_told_and_failures_are_not(void **state)
{
	static const struct hash_queue_limits one = { .threads = 1, .waiting = 1 };
	static const struct hash_queue_limits full = { .threads = 1, .waiting = 0 };
	static const struct lockout_rules once = { LOCKOUT_ENFORCE, 1, LOCKOUT_LIFETIME_MS,
						   LOCKOUT_OBJECTS };
	struct fixture *f = *state;
	struct hash_turn other = { .key = { 1 } };
	enum status status;
	const struct tried_login good = { f, STR("s3cret:with colon"), &status };
	const struct tried_login wrong = { f, STR("no"), &status };
	const struct tried_login message = { f, STR("n,,n=anna"), &status };
	const char *text;

	log_set_level(LOG_LEVEL_INFO);
	address_block_of(STR("192.0.2.8:1"), &other.address);
	assert_int_equal(hash_queue_enter(&other, &one, NULL), HASH_QUEUE_TURN);
	auth_set_hash_limits(f->auth, &full);
	assert_string_equal(told_by(f, "couch", log_in_by, &good), "");
	assert_int_equal(status, STATUS_TOO_MANY);
	hash_queue_leave(&other, &one, 0);
	auth_set_hash_limits(f->auth, &one);
	auth_set_lockout(f->auth, &once);
	assert_non_null(strstr(told_by(f, "couch", log_in_by, &wrong), "reason=wrong"));
	assert_int_equal(status, STATUS_UNAUTHORIZED);
	text = told_by(f, "couch", log_in_by, &good);
	assert_int_equal(status, STATUS_FORBIDDEN);
	assert_non_null(strstr(text, "login_refused"));
	assert_non_null(strstr(text, "reason=locked"));
	text = told_by(f, "couch", begin_scram_by, &message);
	assert_int_equal(status, STATUS_INVALID);
	assert_non_null(strstr(text, "login_refused"));
	assert_non_null(strstr(text, "method=scram"));
}

static void
lines_have_the_ids_that_a_request_has(void **state)
{
	const struct audit_by by = { .door = "couch",
				     .address = STR("127.0.0.1:40312"),
				     .request_id = STR("r1"),
				     .trace_id = STR("t1") };
	struct fixture *f = *state;

	log_set_level(LOG_LEVEL_INFO);
	assert_non_null(strstr(told_to(f, &by, tell_changed, "db"),
			       " door=couch request_id=r1 trace_id=t1\n"));
	assert_non_null(strstr(told_by(f, "couch", tell_changed, "db"), " door=couch\n"));
}

static void
tell_many_logins(const struct audit_by *by, const void *arg)
{
	(void)arg;
	for (int i = 0; i < MANY_LINES; i++)
		audit_login(by, STR("anna"), "basic", STATUS_UNAUTHORIZED, false);
}

static void
tell_many_refused(const struct audit_by *by, const void *arg)
{
	for (int i = 0; i < MANY_LINES; i++)
		audit_refused(by, STR("GET"), STR("/db"), arg);
}

/* So many a second, and each takes far less than that: most are left out, and are counted. */
static void
lines_of_logins_have_a_rate(void **state)
{
	static tell *const many[] = { tell_many_logins, tell_many_refused };
	struct fixture *f = *state;

	log_set_level(LOG_LEVEL_INFO);
	for (size_t i = 0; i < 2; i++) {
		const char *text = told_by(f, "couch", many[i], "403");
		size_t lines = 0;

		for (const char *at = text; (at = strchr(at, '\n')); at++)
			lines++;
		assert_true(lines < MANY_LINES / 10);
	}
}

static void
hashes_of_couchdb_are_understood(void **state)
{
	struct fixture *f = *state;

	/* Made with Python: hashlib.pbkdf2_hmac(name, b"relax", salt.encode(), rounds).hex() */
	assert_int_equal(
		auth_add_admin_hashed(
			f->auth, STR("old"),
			STR("-pbkdf2-d4e6d22b772a4c8a6b6174450adce096b52c0a9b,0123456789abcdef,10"),
			&f->err),
		STATUS_OK);
	assert_int_equal(
		auth_add_admin_hashed(
			f->auth, STR("new"),
			STR("-pbkdf2:sha256-"
			    "28b153e95ab5d4fe85456a106666a06525fd85723650c9bd19598ed160173d77,"
			    "fedcba9876543210,1000"),
			&f->err),
		STATUS_OK);
	assert_int_equal(check_password(f->auth, STR("old"), STR("relax"), f), STATUS_OK);
	assert_int_equal(check_password(f->auth, STR("old"), STR("relaX"), f), STATUS_UNAUTHORIZED);
	assert_int_equal(check_password(f->auth, STR("new"), STR("relax"), f), STATUS_OK);
	assert_int_equal(check_password(f->auth, STR("new"), STR(""), f), STATUS_UNAUTHORIZED);
}

static void
malformed_hashes_are_refused(void **state)
{
	static const char *const bad[] = {
		"plain",
		"-pbkdf2-",
		"-pbkdf2-abc,salt,10",
		"-pbkdf2-d4e6d22b772a4c8a6b6174450adce096b52c0a9b",
		"-pbkdf2-d4e6d22b772a4c8a6b6174450adce096b52c0a9b,salt",
		"-pbkdf2-d4e6d22b772a4c8a6b6174450adce096b52c0a9b,,10",
		"-pbkdf2-d4e6d22b772a4c8a6b6174450adce096b52c0a9b,salt,0",
		"-pbkdf2-d4e6d22b772a4c8a6b6174450adce096b52c0a9b,salt,99999999999",
		"-pbkdf2-d4e6d22b772a4c8a6b6174450adce096b52c0a9b,salt,ten",
		"-pbkdf2-zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz,salt,10",
		"-pbkdf2:md5-d4e6d22b772a4c8a6b6174450adce096b52c0a9b,salt,10",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(
			auth_add_admin_hashed(f->auth, STR("x"), str_from_cstr(bad[i]), &f->err),
			STATUS_INVALID);
}

static void
failing_allocations_never_let_anybody_in(void **state)
{
	struct fixture *f = *state;
	struct str good = basic(f, "anna:s3cret:with colon");
	struct str wrong = basic(f, "anna:no");
	struct str cookie;
	struct auth_user user;

	assert_int_equal(auth_make_cookie(f->auth, STR("anna"), NULL, f->arena, &cookie),
			 STATUS_OK);
	cookie = cookie_header(f, cookie);
	for (uint64_t n = 1; n < 8; n++) {
		enum status status;

		user = (struct auth_user){ 0 };
		mem_fail_after(n);
		status = auth_check(f->auth, wrong, none, NULL, f->arena, &user, &f->err);
		assert_true(status == STATUS_UNAUTHORIZED || status == STATUS_NOMEM);
		assert_false(user.admin);
		mem_fail_after(n);
		status = auth_check(f->auth, good, none, NULL, f->arena, &user, &f->err);
		assert_true(status == STATUS_OK ? user.admin : status == STATUS_NOMEM);
		user.admin = false;
		mem_fail_after(n);
		status = auth_check(f->auth, none, cookie, NULL, f->arena, &user, &f->err);
		assert_true(status == STATUS_OK ? user.admin : status == STATUS_NOMEM);
		mem_fail_after(0);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_admins_everybody_is_one),
		CASE(good_basic_credentials_make_an_admin),
		CASE(no_credentials_are_anonymous),
		CASE(a_name_and_a_password_of_one_underscore_are_anonymous),
		CASE(wrong_basic_credentials_are_unauthorized),
		CASE(malformed_basic_credentials_are_unauthorized),
		CASE(oversized_credentials_are_unauthorized),
		CASE(other_schemes_are_ignored),
		CASE(slow_hash_is_paid_once_for_a_good_password_and_always_for_a_bad_one),
		CASE(remembered_password_of_one_admin_is_not_anothers),
		CASE(password_of_a_session_is_checked),
		CASE(cookie_names_its_owner),
		CASE(expired_cookie_is_absent),
		CASE(cookie_that_is_no_longer_fresh_is_to_be_renewed),
		CASE(cookie_with_any_character_changed_is_absent),
		CASE(cookie_with_another_separator_is_absent),
		CASE(cookie_may_be_in_quotes),
		CASE(malformed_cookies_are_absent),
		CASE(cookie_of_someone_unknown_is_absent),
		CASE(cookie_of_another_process_needs_the_same_secret),
		CASE(cookies_of_the_former_secret_hold_for_the_overlap),
		CASE(cookie_ends_with_its_password),
		CASE(derived_salts_depend_on_the_name_and_the_secret),
		CASE(verifiers_keep_a_salt_that_is_there),
		CASE(bad_names_and_passwords_cannot_be_added),
		CASE(a_secret_that_nobody_needs_any_more_is_wiped),
		CASE(a_login_without_a_turn_ends_as_its_client_does),
		CASE(the_longest_name_and_password_log_in),
		CASE(a_proxy_with_the_secret_says_who_it_is),
		CASE(a_proxy_has_a_bounded_list_of_algorithms),
		CASE(what_is_refused_or_changed_at_a_door_is_told),
		CASE(logins_at_a_door_are_told),
		CASE(a_login_by_a_wrong_password_is_told_too),
		CASE(refusals_are_told_and_failures_are_not),
		CASE(lines_have_the_ids_that_a_request_has),
		CASE(lines_of_logins_have_a_rate),
		CASE(hashes_of_couchdb_are_understood),
		CASE(malformed_hashes_are_refused),
		CASE(failing_allocations_never_let_anybody_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
