/*
 * What of a person holds at one door alone: passwords of that door open it and no other, whatever
 * a process remembers; records are read as they were put, drawn, checked, and go with the person.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "access/auth_int.h"
#include "access/person_door.h"
#include "catalog/catalog.h"
#include "catalog/draw.h"
#include "catalog/store_format.h"
#include "catalog/verify.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "store.h"

enum {
	ROUNDS = 10, /* few, so that the tests are quick */
};

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct auth *auth; /* without an administrator */
};

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err = { 0 };
	char path[128], url[256];

	assert_non_null(f);
	person_register();
	person_door_register();
	snprintf(f->dir, sizeof(f->dir), "/tmp/frond-person-door-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->arena = arena_new(16 << 20);
	f->auth = auth_new();
	assert_true(f->arena && f->auth);
	auth_set_rounds(f->auth, ROUNDS);
	snprintf(path, sizeof(path), "%s/store", f->dir);
	test_store_url(path, url, sizeof(url));
	if (catalog_store_open(url, &options, &f->store, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	kv_close(f->store);
	auth_free(f->auth);
	arena_free(f->arena);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

static void
add_admin(struct fixture *f)
{
	const struct auth_hashing how = { .rounds = ROUNDS };
	struct err err = { 0 };
	struct str hashed;

	assert_int_equal(
		auth_hash_password(STR("root"), STR("secret"), &how, f->arena, &hashed, &err),
		STATUS_OK);
	assert_int_equal(auth_add_admin_hashed(f->auth, STR("root"), hashed, &err), STATUS_OK);
}

/* ---- Putting and getting ---- */

struct call {
	struct fixture *f;
	struct str name, door;
	const struct person *person;
	struct person_door at;
	size_t count;
};

static enum status
body_put(struct kv_tx *tx, void *arg)
{
	struct call *c = arg;

	if (c->person)
		TRY(person_put(tx, c->person, NULL));
	return person_door_put(tx, c->name, c->door, &c->at, NULL);
}

static enum status
body_get(struct kv_tx *tx, void *arg)
{
	struct call *c = arg;

	return person_door_get(tx, c->name, c->door, &c->at, NULL);
}

static enum status
body_clear(struct kv_tx *tx, void *arg)
{
	return person_clear(tx, ((struct call *)arg)->name);
}

static enum status
body_clear_all(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return person_clear_all(tx);
}

static struct person_door
get_at(struct fixture *f, const char *name, const char *door)
{
	struct call c = { .name = str_from_cstr(name), .door = str_from_cstr(door) };

	assert_int_equal(kv_run_read(f->store, body_get, &c, NULL), STATUS_OK);
	(void)f;
	return c.at;
}

/* The person, with "apple" as the password of every door. */
static struct person
person_named(const char *name)
{
	struct person p = { .name = str_from_cstr(name), .has_verifier = true };

	p.verifier = (struct verifier){ .scheme = VERIFIER_PBKDF2,
					.digest = VERIFIER_SHA256,
					.rounds = ROUNDS,
					.hash_len = 32 };
	verifier_make_salt(&p.verifier, 16);
	assert_true(verifier_derive(&p.verifier, STR("apple"), p.verifier.hash));
	return p;
}

/* Writes the person and what holds at the door "redis", in one transaction. */
static void
put(struct fixture *f, const char *name, struct person_door at)
{
	const struct person person = person_named(name);
	struct call c = { .f = f, .person = &person, .name = person.name, .door = STR("redis") };

	c.at = at;
	assert_int_equal(kv_run(f->store, body_put, &c, NULL, NULL), STATUS_OK);
}

static void
add_password(struct person_door *at, const char *password)
{
	const struct auth_hashing how = { .rounds = ROUNDS };
	char digest[PERSON_DOOR_DIGEST_BYTES];

	assert_true(person_door_digest(str_from_cstr(password), digest));
	assert_int_equal(auth_hash_at_door(at, str_of(digest, sizeof(digest)), &how,
					   at->hashes[at->count++], NULL),
			 STATUS_OK);
}

static struct person_door
door_with(const char *password)
{
	struct person_door at;

	person_door_init(&at, ROUNDS);
	at.off = false;
	add_password(&at, password);
	return at;
}

/* ---- Records ---- */

static void
record_is_read_as_it_was_put(void **state)
{
	struct fixture *f = *state;
	struct person_door was = door_with("pear"), is;

	add_password(&was, "plum");
	put(f, "jan", was);
	is = get_at(f, "jan", "redis");
	assert_memory_not_equal(is.version, was.version, sizeof(is.version));
	memcpy(was.version, is.version, sizeof(was.version));
	assert_int_equal(is.count, 2);
	assert_true(!is.off && is.by == PERSON_DOOR_BY_LIST && is.rounds == ROUNDS);
	assert_memory_equal(is.salt, was.salt, sizeof(is.salt));
	assert_memory_equal(is.hashes, was.hashes, sizeof(is.hashes));
	is = get_at(f, "jan", "another");
	assert_true(person_door_is_plain(&is));
	is = get_at(f, "a:b", "redis");
	assert_true(person_door_is_plain(&is));
}

static void
record_that_says_nothing_is_none(void **state)
{
	struct fixture *f = *state;
	struct person_door at = door_with("pear");

	put(f, "jan", at);
	at.by = PERSON_DOOR_BY_OWN;
	put(f, "jan", at);
	at = get_at(f, "jan", "redis");
	assert_true(person_door_is_plain(&at));
	assert_int_equal(at.rounds, 0);
}

static void
record_goes_with_the_person(void **state)
{
	struct fixture *f = *state;
	struct call c = { .f = f, .name = STR("jan") };
	struct person_door at;

	put(f, "jan", door_with("pear"));
	put(f, "janet", door_with("pear"));
	assert_int_equal(kv_run(f->store, body_clear, &c, NULL, NULL), STATUS_OK);
	at = get_at(f, "jan", "redis");
	assert_true(person_door_is_plain(&at));
	at = get_at(f, "janet", "redis");
	assert_int_equal(at.count, 1);
	assert_int_equal(kv_run(f->store, body_clear_all, &c, NULL, NULL), STATUS_OK);
	at = get_at(f, "janet", "redis");
	assert_true(person_door_is_plain(&at));
}

static void
what_could_let_nobody_in_is_not_kept(void **state)
{
	struct fixture *f = *state;
	struct call c = { .f = f, .name = STR("jan"), .door = STR("redis") };

	c.at = door_with("pear");
	c.at.rounds = 0;
	assert_int_equal(kv_run(f->store, body_put, &c, NULL, NULL), STATUS_INVALID);
	c.at = door_with("pear");
	c.at.by = PERSON_DOOR_BY_ANY; /* and has a password */
	assert_int_equal(kv_run(f->store, body_put, &c, NULL, NULL), STATUS_INVALID);
	c.at = door_with("pear");
	c.at.by = PERSON_DOOR_BY_ANY + 1;
	c.at.count = 0;
	assert_int_equal(kv_run(f->store, body_put, &c, NULL, NULL), STATUS_INVALID);
	c.at = door_with("pear");
	c.name = STR("a:b");
	assert_int_equal(kv_run(f->store, body_put, &c, NULL, NULL), STATUS_INVALID);
}

static void
every_prefix_of_a_record_is_corrupt(void **state)
{
	AUTO(buf_release) struct buf value = BUF_INIT(10000);
	struct person_door was = door_with("pear"), is;

	(void)state;
	person_door_record_put(&was, &value);
	for (size_t n = 0; n < value.len; n++)
		assert_int_equal(person_door_record_parse(str_of(value.ptr, n), &is, NULL),
				 STATUS_CORRUPT);
	assert_int_equal(person_door_record_parse(buf_str(&value), &is, NULL), STATUS_OK);
	buf_append_byte(&value, 0);
	assert_int_equal(person_door_record_parse(buf_str(&value), &is, NULL), STATUS_CORRUPT);
}

static void
parts_of_a_record_are_checked(void **state)
{
	static const struct {
		uint64_t by, rounds;
		size_t salt, hashes, hash;
		enum status status;
	} cases[] = {
		{ 1, 10, 16, 16, 32, STATUS_OK },      { 3, 10, 16, 1, 32, STATUS_CORRUPT },
		{ 1, 0, 16, 1, 32, STATUS_CORRUPT },   { 1, VERIFIER_ROUNDS, 16, 0, 32, STATUS_OK },
		{ 1, 10, 15, 1, 32, STATUS_CORRUPT },  { 1, 10, 16, 1, 31, STATUS_CORRUPT },
		{ 1, 10, 16, 17, 32, STATUS_CORRUPT }, { 2, 10, 16, 0, 32, STATUS_OK },
		{ 2, 10, 16, 1, 32, STATUS_CORRUPT },
	};
	static const uint8_t version[KV_VERSIONSTAMP_BYTES];
	static const char zeros[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(10000);
		struct person_door is;

		tuple_put_u64(&value, 1);
		tuple_put_versionstamp(&value, version);
		tuple_put_bool(&value, false);
		tuple_put_u64(&value, cases[i].by);
		tuple_put_u64(&value, cases[i].rounds);
		tuple_put_bytes(&value, str_of(zeros, cases[i].salt));
		tuple_open(&value);
		for (size_t k = 0; k < cases[i].hashes; k++)
			tuple_put_bytes(&value, str_of(zeros, cases[i].hash));
		tuple_close(&value);
		if (person_door_record_parse(buf_str(&value), &is, NULL) != cases[i].status)
			fail_msg("case %zu", i);
	}
}

static void
record_of_a_newer_frond_is_told_as_that(void **state)
{
	AUTO(buf_release) struct buf value = BUF_INIT(100);
	struct err err = { 0 };
	struct person_door at;

	(void)state;
	tuple_put_u64(&value, 99);
	assert_int_equal(person_door_record_parse(buf_str(&value), &at, &err), STATUS_NEWER);
}

static void
record_is_drawn_as_a_person_at_a_door(void **state)
{
	AUTO(buf_release) struct buf key = BUF_INIT(100);
	AUTO(buf_release) struct buf value = BUF_INIT(10000);
	AUTO(buf_release) struct buf drawn = BUF_INIT(10000);
	struct person_door at = { .off = true, .by = PERSON_DOOR_BY_LIST, .rounds = 10 };

	(void)state;
	memset(at.salt, 's', sizeof(at.salt));
	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_DOORS);
	tuple_put_str(&key, STR("jan"));
	tuple_put_str(&key, STR("redis"));
	person_door_record_put(&at, &value);
	catalog_draw_pair(NULL, buf_str(&key), buf_str(&value), &drawn);
	buf_append_byte(&drawn, '\0');
	assert_string_equal(drawn.ptr, "(\"root\", \"doors\", \"jan\", \"redis\") = "
				       "(01000000000000000000000000, true, 1, 10, "
				       "\\x73737373737373737373737373737373, ())");
}

/* ---- The check ---- */

static void
ignore_finding(const struct catalog_finding *finding, void *arg)
{
	(void)finding;
	(void)arg;
}

static enum status
body_check(struct kv_tx *tx, void *arg)
{
	const struct catalog_verify_options options = { .found = ignore_finding };
	struct catalog_verify_sum sum;
	struct call *c = arg;

	TRY(catalog_verify_store(tx, &options, &sum, NULL));
	c->count = sum.findings;
	return STATUS_OK;
}

static size_t
findings(struct fixture *f)
{
	struct call c = { .f = f };

	assert_int_equal(kv_run_read(f->store, body_check, &c, NULL), STATUS_OK);
	return c.count;
}

static enum status
body_spoil(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(100);

	(void)arg;
	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_DOORS);
	tuple_put_str(&key, STR("jan"));
	tuple_put_str(&key, STR("redis"));
	return kv_set(tx, buf_str(&key), STR("spoiled"));
}

static void
check_of_a_store_finds_damage_and_records_of_nobody(void **state)
{
	struct fixture *f = *state;
	struct call c = { .f = f, .name = STR("nobody"), .door = STR("redis") };

	put(f, "jan", door_with("pear"));
	assert_int_equal(findings(f), 0);
	c.at = door_with("pear");
	assert_int_equal(kv_run(f->store, body_put, &c, NULL, NULL), STATUS_OK);
	assert_int_equal(findings(f), 1);
	assert_int_equal(kv_run(f->store, body_spoil, NULL, NULL, NULL), STATUS_OK);
	assert_int_equal(findings(f), 2);
}

/* ---- Everybody at a door ---- */

struct everybody {
	struct fixture *f;
	size_t count; /* who came, in the order of their names */
	uint64_t round_trips;
};

static enum status
take_one(void *arg, const struct person *person, const struct person_door *at)
{
	struct everybody *e = arg;
	char name[16];

	(void)snprintf(name, sizeof(name), "p%03zu", e->count);
	assert_true(str_eq(person->name, str_from_cstr(name)));
	/* The door has a password of every third. */
	assert_int_equal(at->count, e->count % 3 == 0);
	e->count++;
	return STATUS_OK;
}

static enum status
body_everybody(struct kv_tx *tx, void *arg)
{
	struct everybody *e = arg;

	e->count = 0;
	TRY(person_at_door_each(tx, STR("redis"), e->f->arena, take_one, e, NULL));
	e->round_trips = kv_tx_stats(tx).round_trips;
	return STATUS_OK;
}

/* A page is asked for at once; the last one need not be full. */
static void
everybody_comes_with_what_holds_at_the_door(void **state)
{
	static const size_t counts[] = { 0, 1, PERSON_DOOR_PAGE, PERSON_DOOR_PAGE + 1,
					 2 * PERSON_DOOR_PAGE };
	struct fixture *f = *state;
	size_t written = 0;

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct everybody e = { .f = f };

		for (; written < counts[i]; written++) {
			struct person_door none;
			char name[16];

			person_door_init(&none, ROUNDS);
			(void)snprintf(name, sizeof(name), "p%03zu", written);
			put(f, name, written % 3 ? none : door_with("pear"));
		}
		assert_int_equal(kv_run_read(f->store, body_everybody, &e, NULL), STATUS_OK);
		assert_int_equal(e.count, counts[i]);
		assert_in_range(e.round_trips, 0, PERSON_DOOR_PAGE / 2);
	}
}

/* ---- Logins ---- */

static enum status
login(struct fixture *f, const char *door, const char *password, struct auth_user *ret)
{
	const struct auth_client client = { .store = f->store, .door = str_from_cstr(door) };

	return auth_login(f->auth, "session", STR("jan"), str_from_cstr(password), &client,
			  f->arena, ret, NULL);
}

static bool
lets_in(struct fixture *f, const char *door, const char *password)
{
	struct auth_user user;
	enum status status = login(f, door, password, &user);

	assert_true(status == STATUS_OK || status == STATUS_UNAUTHORIZED);
	return status == STATUS_OK;
}

/*
 * Both records have one version here, and the process remembers what was right at the door: that
 * must not be found for another one.
 */
static void
password_of_a_door_opens_no_other(void **state)
{
	struct fixture *f = *state;
	struct person_door at = door_with("pear");

	add_password(&at, "plum");
	put(f, "jan", at);
	assert_true(lets_in(f, "redis", "pear"));
	assert_true(lets_in(f, "redis", "pear"));
	assert_true(lets_in(f, "redis", "plum"));
	assert_false(lets_in(f, "redis", "apple"));
	assert_false(lets_in(f, "", "pear"));
	assert_false(lets_in(f, "another", "pear"));
	assert_true(lets_in(f, "", "apple"));
	assert_true(lets_in(f, "another", "apple"));
	assert_false(lets_in(f, "redis", "apple"));
}

static enum status
body_get_person(struct kv_tx *tx, void *arg)
{
	struct call *c = arg;
	struct person person;

	TRY(person_get(tx, STR("jan"), c->f->arena, &person, NULL));
	c->count = person.has_scram;
	return STATUS_OK;
}

/* SCRAM's keys open other doors, so a password of one door must make none. */
static void
password_of_a_door_makes_no_keys_of_scram(void **state)
{
	struct fixture *f = *state;
	struct call c = { .f = f };

	/* Stores of other tests have the same versions, and the process remembers passwords. */
	put(f, "jan", door_with("quince"));
	assert_true(lets_in(f, "redis", "quince"));
	assert_int_equal(kv_run_read(f->store, body_get_person, &c, NULL), STATUS_OK);
	assert_int_equal(c.count, 0);
	assert_true(lets_in(f, "", "apple"));
	assert_int_equal(kv_run_read(f->store, body_get_person, &c, NULL), STATUS_OK);
	assert_int_equal(c.count, 1);
}

static void
password_that_is_taken_away_is_wrong_at_once(void **state)
{
	struct fixture *f = *state;
	struct person_door at = door_with("pear");

	put(f, "jan", at);
	assert_true(lets_in(f, "redis", "pear"));
	at.count = 0;
	put(f, "jan", at);
	assert_false(lets_in(f, "redis", "pear"));
	assert_false(lets_in(f, "redis", "apple"));
	at.by = PERSON_DOOR_BY_OWN;
	put(f, "jan", at);
	assert_true(lets_in(f, "redis", "apple"));
}

static void
door_that_is_off_lets_nobody_in(void **state)
{
	struct fixture *f = *state;
	struct person_door at = door_with("pear");

	at.off = true;
	put(f, "jan", at);
	assert_false(lets_in(f, "redis", "pear"));
	at.count = 0;
	at.by = PERSON_DOOR_BY_OWN;
	put(f, "jan", at);
	assert_false(lets_in(f, "redis", "apple"));
	assert_true(lets_in(f, "", "apple"));
	at.by = PERSON_DOOR_BY_ANY;
	put(f, "jan", at);
	assert_false(lets_in(f, "redis", "apple"));
}

static void
any_password_is_right_only_without_an_administrator(void **state)
{
	struct fixture *f = *state;
	struct person_door at = door_with("pear");

	at.by = PERSON_DOOR_BY_ANY;
	at.count = 0;
	put(f, "jan", at);
	assert_true(lets_in(f, "redis", "whatever"));
	assert_false(lets_in(f, "", "whatever"));
	add_admin(f);
	assert_false(lets_in(f, "redis", "whatever"));
	assert_false(lets_in(f, "redis", "apple"));
}

/* Whoever logged in by the list stays when it changes, and goes when it is another one. */
static void
login_is_told_by_the_list_and_not_by_the_password(void **state)
{
	struct fixture *f = *state;
	struct person_door at = door_with("pear");
	struct auth_user one, two, other;

	put(f, "jan", at);
	assert_int_equal(login(f, "redis", "pear", &one), STATUS_OK);
	add_password(&at, "plum");
	put(f, "jan", at);
	assert_int_equal(login(f, "redis", "plum", &two), STATUS_OK);
	assert_memory_equal(one.key, two.key, sizeof(one.key));
	put(f, "jan", door_with("pear"));
	assert_int_equal(login(f, "redis", "pear", &other), STATUS_OK);
	assert_memory_not_equal(one.key, other.key, sizeof(one.key));
}

/* Without an administrator, too, a door may have people of its own. */
static void
person_of_a_door_is_looked_up_again_without_an_administrator(void **state)
{
	struct fixture *f = *state;
	struct auth_client client = { .store = f->store, .door = STR("redis") };
	struct auth_user user;

	put(f, "jan", door_with("pear"));
	assert_int_equal(login(f, "redis", "pear", &user), STATUS_OK);
	assert_false(user.admin);
	assert_int_equal(auth_again(f->auth, &client, f->arena, &user, NULL), STATUS_OK);
	client.door.len = 0;
	assert_int_equal(auth_again(f->auth, &client, f->arena, &user, NULL), STATUS_UNAUTHORIZED);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(record_is_read_as_it_was_put),
		T(record_that_says_nothing_is_none),
		T(record_goes_with_the_person),
		T(everybody_comes_with_what_holds_at_the_door),
		T(what_could_let_nobody_in_is_not_kept),
		T(every_prefix_of_a_record_is_corrupt),
		T(parts_of_a_record_are_checked),
		T(record_of_a_newer_frond_is_told_as_that),
		T(record_is_drawn_as_a_person_at_a_door),
		T(check_of_a_store_finds_damage_and_records_of_nobody),
		T(password_of_a_door_opens_no_other),
		T(password_of_a_door_makes_no_keys_of_scram),
		T(password_that_is_taken_away_is_wrong_at_once),
		T(door_that_is_off_lets_nobody_in),
		T(any_password_is_right_only_without_an_administrator),
		T(login_is_told_by_the_list_and_not_by_the_password),
		T(person_of_a_door_is_looked_up_again_without_an_administrator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
