/* Lock-out: whom it concerns, until when, and who is forgotten first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "access/auth_int.h"
#include "access/lockout_int.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/mem.h"

enum {
	THRESHOLD = 3,
	LIFETIME_MS = 300000,
	OBJECTS = 64, /* eight sets of eight; the first failure of the process makes the table */
	ROUNDS = 10,
};

#define LIFETIME_NS (LIFETIME_MS * CLOCK_NS_PER_MS)

static const struct lockout_rules rules = { .mode = LOCKOUT_ENFORCE,
					    .threshold = THRESHOLD,
					    .lifetime_ms = LIFETIME_MS,
					    .objects = OBJECTS };

/* The nth key of the first set, in a group of its own. */
static struct lockout_key
key_of(uint8_t group, uint8_t n)
{
	struct lockout_key key = { .bytes = { 0 } };

	key.bytes[8] = group;
	key.bytes[9] = n;
	return key;
}

/* ---- Names at addresses ---- */

struct fixture {
	struct auth *auth;
	struct arena *arena;
	struct err err;
};

static struct fixture f;

static int
setup(void **state)
{
	static const struct auth_hashing how = { .rounds = ROUNDS };
	struct str hashed;

	(void)state;
	f = (struct fixture){ .auth = auth_new(), .arena = arena_new(1 << 20) };
	auth_set_lockout(f.auth, &rules);
	if (auth_hash_password(STR("anna"), STR("right"), &how, f.arena, &hashed, &f.err) !=
		    STATUS_OK ||
	    auth_add_admin_hashed(f.auth, STR("anna"), hashed, &f.err) != STATUS_OK)
		return -1;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	auth_free(f.auth);
	arena_free(f.arena);
	return 0;
}

static enum status
try_from(const char *address, struct str name, struct str password)
{
	const struct auth_client client = { .by = { .address = str_from_cstr(address) } };
	struct auth_user user;

	return auth_login(f.auth, "session", name, password, &client, f.arena, &user, &f.err);
}

static void
fail_from(const char *address, struct str name)
{
	for (int i = 0; i < THRESHOLD; i++)
		assert_int_equal(try_from(address, name, STR("wrong")), STATUS_UNAUTHORIZED);
	assert_int_equal(try_from(address, name, STR("wrong")), STATUS_FORBIDDEN);
}

static void
another_address_is_not_concerned(void **state)
{
	(void)state;
	fail_from("192.0.2.1:1000", STR("anna"));
	assert_int_equal(try_from("192.0.2.1:2000", STR("anna"), STR("right")), STATUS_FORBIDDEN);
	assert_int_equal(try_from("192.0.2.2:1000", STR("anna"), STR("right")), STATUS_OK);
	assert_int_equal(try_from("192.0.2.2:1000", STR("anna"), STR("wrong")),
			 STATUS_UNAUTHORIZED);
	/* Nor is another name at the address. */
	assert_int_equal(try_from("192.0.2.1:1000", STR("bert"), STR("wrong")),
			 STATUS_UNAUTHORIZED);
}

static void
addresses_of_one_block_count_together(void **state)
{
	(void)state;
	fail_from("[2001:db8:1:2::1]:1000", STR("anna"));
	assert_int_equal(try_from("[2001:db8:1:2:ffff::9]:1", STR("anna"), STR("right")),
			 STATUS_FORBIDDEN);
	assert_int_equal(try_from("[2001:db8:1:3::1]:1000", STR("anna"), STR("right")), STATUS_OK);
}

static void
names_that_nobody_has_are_locked_out_likewise(void **state)
{
	(void)state;
	fail_from("198.51.100.7:1000", STR("nobody"));
}

static void
failures_are_only_told_with_mode_warn(void **state)
{
	struct lockout_rules warn = rules;
	const struct auth_client client = { .by = { .address = STR("203.0.113.1:1") } };
	struct auth_who who = { 0 };

	(void)state;
	warn.mode = LOCKOUT_WARN;
	auth_set_lockout(f.auth, &warn);
	for (int i = 0; i < THRESHOLD; i++)
		assert_int_equal(auth_password_check(f.auth, STR("anna"), STR("wrong"), &client,
						     f.arena, &who, &f.err),
				 STATUS_UNAUTHORIZED);
	assert_false(who.failing);
	assert_int_equal(auth_password_check(f.auth, STR("anna"), STR("wrong"), &client, f.arena,
					     &who, &f.err),
			 STATUS_UNAUTHORIZED);
	assert_true(who.failing);
	assert_int_equal(auth_password_check(f.auth, STR("anna"), STR("right"), &client, f.arena,
					     &who, &f.err),
			 STATUS_OK);
	assert_true(who.failing);
}

/* ---- The table, by a clock of the test's own ---- */

static void
a_lockout_ends_with_its_time(void **state)
{
	const struct lockout_key key = key_of(1, 0);
	/* Behind what the tests before have counted by the real clock. */
	uint64_t at = clock_mono_ns() + 10 * LIFETIME_NS;

	(void)state;
	for (int i = 0; i < THRESHOLD; i++) {
		assert_false(lockout_reached_at(&rules, &key, at + (uint64_t)i));
		lockout_count_at(&rules, &key, at + (uint64_t)i);
	}
	assert_true(lockout_reached_at(&rules, &key, at + THRESHOLD));
	/* The time counts from the first failure, whatever comes later. */
	lockout_count_at(&rules, &key, at + LIFETIME_NS - 2);
	assert_true(lockout_reached_at(&rules, &key, at + LIFETIME_NS - 1));
	assert_false(lockout_reached_at(&rules, &key, at + LIFETIME_NS));
	lockout_count_at(&rules, &key, at + LIFETIME_NS);
	assert_false(lockout_reached_at(&rules, &key, at + LIFETIME_NS));
}

static void
what_failed_first_is_forgotten_first(void **state)
{
	uint64_t at = clock_mono_ns() + 20 * LIFETIME_NS;

	(void)state;
	for (uint8_t n = 0; n < 8; n++) {
		const struct lockout_key key = key_of(2, n);

		/* The first two at the same moment: then the order in which they came counts. */
		for (int i = 0; i < THRESHOLD; i++)
			lockout_count_at(&rules, &key, at + n / 2);
	}
	for (uint8_t n = 0; n < 8; n++)
		assert_true(lockout_reached_at(&rules, &(struct lockout_key[]){ key_of(2, n) }[0],
					       at + 10));
	/* A ninth name of the set takes the place of the first one, and of no other. */
	lockout_count_at(&rules, &(struct lockout_key[]){ key_of(2, 8) }[0], at + 10);
	assert_false(
		lockout_reached_at(&rules, &(struct lockout_key[]){ key_of(2, 0) }[0], at + 10));
	for (uint8_t n = 1; n < 8; n++)
		assert_true(lockout_reached_at(&rules, &(struct lockout_key[]){ key_of(2, n) }[0],
					       at + 10));
}

static void
nothing_is_counted_when_it_is_off(void **state)
{
	const struct lockout_rules off = { .mode = LOCKOUT_OFF, .threshold = 1 };
	const struct lockout_key key = key_of(3, 0);

	(void)state;
	lockout_count_at(&off, &key, 1);
	assert_false(lockout_reached_at(&off, &key, 1));
}

/* Failures count for a name at an address, unless nothing is counted. */
static void
a_key_is_made_of_a_name_at_an_address(void **state)
{
	static const struct lockout_rules off = { .mode = LOCKOUT_OFF };
	const struct auth_client here = { .by = { .address = STR("192.0.2.1:1") } };
	const struct auth_client nowhere = { .by = { .address = STR("") } };
	const struct auth_who who = { .cookie_key = { 1 } };
	char *longer = arena_bytes(f.arena, 10 * AUTH_NAME_BYTES);
	struct lockout_key key, same, other;

	(void)state;
	memset(longer, 'x', 10 * AUTH_NAME_BYTES);
	assert_true(auth_lockout_key(f.auth, STR("anna"), &here, &who, &key));
	assert_true(auth_lockout_key(f.auth, STR("anna"), &here, &who, &same));
	assert_memory_equal(&key, &same, sizeof(key));
	assert_true(auth_lockout_key(f.auth, STR("bert"), &here, &who, &other));
	assert_memory_not_equal(&key, &other, sizeof(key));
	assert_false(auth_lockout_key(f.auth, STR("anna"), NULL, &who, &key));
	assert_false(auth_lockout_key(f.auth, STR("anna"), &nowhere, &who, &key));
	assert_false(
		auth_lockout_key(f.auth, str_of(longer, 10 * AUTH_NAME_BYTES), &here, &who, &key));
	auth_set_lockout(f.auth, &off);
	assert_false(auth_lockout_key(f.auth, STR("anna"), &here, &who, &key));
}

/* The first failure of the process has no memory for a table: only the next ones are counted. */
static void
a_failure_without_memory_is_not_counted(void **state)
{
	const struct lockout_rules once = { .mode = LOCKOUT_ENFORCE,
					    .threshold = 1,
					    .lifetime_ms = LIFETIME_MS,
					    .objects = OBJECTS };
	const struct lockout_key key = key_of(9, 0);

	(void)state;
	(void)mem_fail_only(1);
	lockout_count_at(&once, &key, 1);
	assert_int_equal(mem_fail_only(0), 1);
	assert_false(lockout_reached_at(&once, &key, 1));
	lockout_count_at(&once, &key, 1);
	assert_true(lockout_reached_at(&once, &key, 1));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failure_without_memory_is_not_counted), /* the first one */
		CASE(a_key_is_made_of_a_name_at_an_address),
		CASE(another_address_is_not_concerned),
		CASE(addresses_of_one_block_count_together),
		CASE(names_that_nobody_has_are_locked_out_likewise),
		CASE(failures_are_only_told_with_mode_warn),
		cmocka_unit_test(a_lockout_ends_with_its_time),
		cmocka_unit_test(what_failed_first_is_forgotten_first),
		cmocka_unit_test(nothing_is_counted_when_it_is_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
