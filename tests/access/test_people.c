/* The people that settings name: the secret that a store keeps, and hashes of plain passwords. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "access/auth_int.h"
#include "access/people.h"
#include "base/log.h"
#include "catalog/store_format.h"
#include "store.h"

enum {
	SERVERS = 3, /* of one store */
};

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct settings *servers[SERVERS];
};

static struct settings *
server_new(void)
{
	static const struct setting_group *const groups[] = { &access_setting_group,
							      &log_setting_group };
	struct settings *s = settings_new(groups, 2);

	assert_non_null(s);
	/* Few, so that the tests are quick. */
	assert_int_equal(
		settings_set(s, STR(ACCESS_SECRET_SECTION), STR("iterations"), STR("10"), NULL),
		STATUS_OK);
	return s;
}

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err = { 0 };
	char url[256];

	assert_non_null(f);
	test_make_dir("people", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	if (catalog_store_open(url, &options, &f->store, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < SERVERS; i++)
		f->servers[i] = server_new();
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < SERVERS; i++)
		settings_free(f->servers[i]);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

static void
name_person(struct settings *s, const char *name, const char *password)
{
	assert_int_equal(
		settings_set_person(s, str_from_cstr(name), str_from_cstr(password), false, NULL),
		STATUS_OK);
}

static void
set_secret(struct settings *s, const char *secret)
{
	assert_int_equal(settings_set(s, STR(ACCESS_SECRET_SECTION), STR(ACCESS_SECRET_NAME),
				      str_from_cstr(secret), NULL),
			 STATUS_OK);
}

static void
prepare(struct fixture *f, struct settings *s)
{
	struct err err = { 0 };

	if (people_prepare(f->store, s, &err) != STATUS_OK)
		fail_msg("%s", err.text);
}

static struct str
text_of(const struct settings *s, const char *name)
{
	const struct settings_entry *people;
	size_t count = settings_people(s, &people);

	for (size_t i = 0; i < count; i++)
		if (str_eq(people[i].name, str_from_cstr(name)))
			return people[i].text;
	return (struct str){ 0 };
}

static void
servers_of_a_store_make_the_same_hashes(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < SERVERS; i++) {
		name_person(f->servers[i], "root", i < 2 ? "apple" : "pear");
		name_person(f->servers[i], "anna", "apple");
		prepare(f, f->servers[i]);
		assert_true(auth_is_hashed(text_of(f->servers[i], "root")));
	}
	assert_true(str_eq(text_of(f->servers[0], "root"), text_of(f->servers[1], "root")));
	assert_false(str_eq(text_of(f->servers[0], "root"), text_of(f->servers[2], "root")));
	assert_false(str_eq(text_of(f->servers[0], "root"), text_of(f->servers[0], "anna")));
	assert_true(str_eq(text_of(f->servers[0], "anna"), text_of(f->servers[2], "anna")));
}

static void
a_secret_that_is_given_is_used_and_not_kept(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < SERVERS; i++)
		name_person(f->servers[i], "root", "apple");
	set_secret(f->servers[0], "a secret of this server");
	set_secret(f->servers[1], "a secret of this server");
	for (size_t i = 0; i < SERVERS; i++)
		prepare(f, f->servers[i]);
	assert_true(str_eq(text_of(f->servers[0], "root"), text_of(f->servers[1], "root")));
	assert_false(str_eq(text_of(f->servers[0], "root"), text_of(f->servers[2], "root")));
}

static void
a_hash_stays_as_it_is(void **state)
{
	static const char hash[] = "-pbkdf2-0011223344556677889900112233445566778899,salt,10";
	struct fixture *f = *state;

	name_person(f->servers[0], "root", hash);
	prepare(f, f->servers[0]);
	assert_true(str_eq(text_of(f->servers[0], "root"), str_from_cstr(hash)));
}

/* ---- A store that is only read for now ---- */

/* What the store answers to whoever writes; STATUS_OK: whatever it does. */
static struct {
	enum status status;
	enum kv_store_state state;
	bool runs; /* the transaction is made, and fails at its end */
} refusal;

enum status __real_kv_run(struct kv_store *store, kv_body *body, void *arg, uint8_t *ret_stamp,
			  struct err *err);
enum status __wrap_kv_run(struct kv_store *store, kv_body *body, void *arg, uint8_t *ret_stamp,
			  struct err *err);
struct kv_store_stats __real_kv_store_stats(struct kv_store *store);
struct kv_store_stats __wrap_kv_store_stats(struct kv_store *store);

enum status
__wrap_kv_run(struct kv_store *store, kv_body *body, void *arg, uint8_t *ret_stamp, struct err *err)
{
	if (refusal.status == STATUS_OK || refusal.runs)
		TRY(__real_kv_run(store, body, arg, ret_stamp, err));
	return refusal.status;
}

struct kv_store_stats
__wrap_kv_store_stats(struct kv_store *store)
{
	struct kv_store_stats stats = __real_kv_store_stats(store);

	if (refusal.status != STATUS_OK)
		stats.state = refusal.state;
	return stats;
}

/* A secret of this process alone does where the store is known to take none now. */
static void
a_store_that_takes_no_secret_keeps_nobody_out(void **state)
{
	static const struct {
		enum status status;
		bool is_of_state;
	} cases[] = {
		{ STATUS_FULL, true },     { STATUS_UNAVAILABLE, true }, { STATUS_STANDBY, true },
		{ STATUS_CORRUPT, false }, { STATUS_IO, false },         { STATUS_TIMEOUT, false },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (unsigned s = KV_STORE_OPEN; s <= KV_STORE_STANDBY; s++) {
			for (int runs = 0; runs < 2; runs++) {
				bool goes_on = cases[i].is_of_state && s != KV_STORE_OPEN && runs;
				struct settings *server = server_new();
				struct err err = { 0 };
				enum status status;

				name_person(server, "root", "apple");
				refusal.status = cases[i].status;
				refusal.state = (enum kv_store_state)s;
				refusal.runs = runs;
				status = people_prepare(f->store, server, &err);
				refusal.status = STATUS_OK;
				if (status != (goes_on ? STATUS_OK : cases[i].status))
					fail_msg("%s while %s: %s", status_name(cases[i].status),
						 kv_store_state_name(refusal.state),
						 status_name(status));
				assert_int_equal(auth_is_hashed(text_of(server, "root")), goes_on);
				settings_free(server);
			}
		}
	}
}

static void
a_password_that_is_none_is_refused(void **state)
{
	char text[AUTH_PASSWORD_BYTES + 2] = { 0 };
	struct fixture *f = *state;
	struct err err = { 0 };

	memset(text, 'x', AUTH_PASSWORD_BYTES);
	name_person(f->servers[0], "root", text);
	assert_int_equal(people_check(f->servers[0], &err), STATUS_OK);
	text[AUTH_PASSWORD_BYTES] = 'x';
	name_person(f->servers[0], "anna", text);
	assert_int_equal(people_check(f->servers[0], &err), STATUS_INVALID);
	assert_int_equal(people_prepare(f->store, f->servers[0], &err), STATUS_INVALID);
}

static void
nobody_else_reaches_a_server_without_administrators(void **state)
{
	char address[] = "192.0.2.1:5984";
	struct fixture *f = *state;
	struct settings_live *live;
	struct err err = { 0 };

	assert_int_equal(
		settings_live_new(f->store, f->servers[0], &people_live_ops, address, &live, &err),
		STATUS_INVALID);
	assert_non_null(strstr(err.text, address));
	assert_int_equal(
		settings_live_new(f->store, f->servers[0], &people_live_ops, NULL, &live, &err),
		STATUS_OK);
	settings_live_free(live);
	name_person(f->servers[1], "root", "apple");
	prepare(f, f->servers[1]);
	assert_int_equal(
		settings_live_new(f->store, f->servers[1], &people_live_ops, address, &live, &err),
		STATUS_OK);
	settings_live_free(live);
}

/* ---- What settings say of logins ---- */

static void
set(struct settings *s, const char *section, const char *name, const char *text)
{
	assert_int_equal(settings_set(s, str_from_cstr(section), str_from_cstr(name),
				      str_from_cstr(text), NULL),
			 STATUS_OK);
}

static struct auth *
auth_of(const struct settings *s)
{
	struct auth *auth = NULL;
	struct err err = { 0 };

	if (people_auth(s, &auth, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	return auth;
}

static void
a_lockout_is_what_the_settings_say(void **state)
{
	static const struct {
		const char *text; /* NULL: nothing is said */
		enum lockout_mode mode;
	} cases[] = {
		{ NULL, LOCKOUT_ENFORCE },
		{ "off", LOCKOUT_OFF },
		{ "warn", LOCKOUT_WARN },
		{ "enforce", LOCKOUT_ENFORCE },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct auth *auth;

		if (cases[i].text)
			set(f->servers[0], "chttpd_auth_lockout", "mode", cases[i].text);
		auth = auth_of(f->servers[0]);
		assert_int_equal(auth->lockout.mode, cases[i].mode);
		assert_int_equal(auth->lockout.threshold, LOCKOUT_THRESHOLD);
		assert_int_equal(auth->lockout.lifetime_ms, LOCKOUT_LIFETIME_MS);
		auth_free(auth);
	}
}

static void
logins_are_as_the_settings_say(void **state)
{
	struct fixture *f = *state;
	struct settings *s = f->servers[0];
	struct auth *auth;

	auth = auth_of(s);
	assert_int_equal(auth->session_s, AUTH_SESSION_SECONDS);
	assert_int_equal(auth->overlap_s, AUTH_SESSION_SECONDS);
	assert_true(auth->upgrades && auth->proxy.use_secret);
	assert_int_equal(auth->handlers_count, 2);
	assert_null(auth->proxy.secret);
	auth_free(auth);
	set(s, "chttpd_auth_lockout", "threshold", "17");
	set(s, "chttpd_auth_lockout", "max_lifetime", "18000");
	set(s, "chttpd_auth_lockout", "max_objects", "19");
	set(s, "frond", "hash_threads", "20");
	set(s, "frond", "hash_queue", "21");
	set(s, ACCESS_SECRET_SECTION, "timeout", "22");
	set(s, ACCESS_SECRET_SECTION, "secret_overlap", "23");
	set(s, ACCESS_SECRET_SECTION, "upgrade_hash_on_auth", "false");
	set(s, ACCESS_SECRET_SECTION, "proxy_use_secret", "false");
	set(s, "chttpd", "authentication_handlers", "{chttpd_auth, jwt_authentication_handler}");
	set_secret(s, "a secret of this server");
	auth = auth_of(s);
	assert_int_equal(auth->lockout.threshold, 17);
	assert_int_equal(auth->lockout.lifetime_ms, 18000);
	assert_int_equal(auth->lockout.objects, 19);
	assert_int_equal(auth->hash_limits.threads, 20);
	assert_int_equal(auth->hash_limits.waiting, 21);
	assert_int_equal(auth->session_s, 22);
	assert_int_equal(auth->overlap_s, 23);
	assert_int_equal(auth->rounds, 10);
	assert_false(auth->upgrades || auth->proxy.use_secret);
	assert_int_equal(auth->handlers_count, 1);
	assert_int_equal(auth->handlers[0], AUTH_METHOD_JWT);
	assert_true(str_eq(str_of((const char *)auth->proxy.secret, auth->proxy.secret_len),
			   STR("a secret of this server")));
	auth_free(auth);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		WITH_STORE(servers_of_a_store_make_the_same_hashes),
		WITH_STORE(a_secret_that_is_given_is_used_and_not_kept),
		WITH_STORE(a_hash_stays_as_it_is),
		WITH_STORE(a_store_that_takes_no_secret_keeps_nobody_out),
		WITH_STORE(a_lockout_is_what_the_settings_say),
		WITH_STORE(logins_are_as_the_settings_say),
		WITH_STORE(a_password_that_is_none_is_refused),
		WITH_STORE(nobody_else_reaches_a_server_without_administrators),
	};

	return cmocka_run_group_tests_name("people", tests, NULL, NULL);
}
