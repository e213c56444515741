/* The people that settings name: the secret that a store keeps, and hashes of plain passwords. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		WITH_STORE(servers_of_a_store_make_the_same_hashes),
		WITH_STORE(a_secret_that_is_given_is_used_and_not_kept),
		WITH_STORE(a_hash_stays_as_it_is),
		WITH_STORE(a_store_that_takes_no_secret_keeps_nobody_out),
		WITH_STORE(a_password_that_is_none_is_refused),
		WITH_STORE(nobody_else_reaches_a_server_without_administrators),
	};

	return cmocka_run_group_tests_name("people", tests, NULL, NULL);
}
