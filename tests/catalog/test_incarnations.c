/*
 * Many databases, of which more than one page is read: all are walked through, and their
 * Incarnations are raised, up to the limit. Which Sequences a store can have given out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/catalog_int.h"
#include "catalog/incarnation.h"
#include "catalog/store_format.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "store.h"
#include "tiny.h"

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
	MANY = 1003,  /* databases: several pages of each reader */
	FIRST = 1000, /* the first one's name */
};

#define NEWER "\x15\x63\x02whatever comes then\0" /* a description of a format to come */

#define UNREADABLE "The description of the database \"%s\" cannot be read."

#define TINY ((enum catalog_space)TINY_SPACE)

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	unsigned count; /* of databases */
	char name[16];  /* of the one that is meant */
	uint8_t incarnation;
	struct str value; /* of a record, to write */
	struct str taken; /* what was read of one */
	struct catalog_seq seq;
	enum status status;
	struct err err;
};

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	assert_non_null(f);
	tiny_register();
	test_make_dir("incarnations", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, NULL), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
	assert_non_null(f->arena);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	arena_free(f->arena);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

static void
run(struct fixture *f, kv_body *body)
{
	assert_int_equal(kv_run(f->store, body, f, NULL, NULL), STATUS_OK);
}

static void
name_set(struct fixture *f, unsigned i)
{
	snprintf(f->name, sizeof(f->name), "%u", FIRST + i);
}

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	for (unsigned i = 0; i < f->count; i++) {
		name_set(f, i);
		TRY(tiny_create(tx, str_from_cstr(f->name), NULL));
	}
	return STATUS_OK;
}

static void
create(struct fixture *f, unsigned count)
{
	f->count = count;
	run(f, create_body);
}

static enum status
get_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct catalog_db db;

	TRY(catalog_description_get(tx, TINY, str_from_cstr(f->name), &db, NULL));
	f->incarnation = db.incarnation;
	return STATUS_OK;
}

static enum status
set_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct catalog_db db;

	TRY(catalog_description_get(tx, TINY, str_from_cstr(f->name), &db, NULL));
	db.incarnation = f->incarnation;
	return catalog_description_set(tx, &db);
}

static enum status
raise_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	return catalog_incarnation_raise(tx, TINY, str_from_cstr(f->name), NULL);
}

static enum status
store_get_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	f->status = catalog_store_incarnation(tx, &f->incarnation);
	return STATUS_OK;
}

static enum status
store_set_body(struct kv_tx *tx, void *arg)
{
	return catalog_store_incarnation_set(tx, ((struct fixture *)arg)->incarnation);
}

static void
store_set(struct fixture *f, uint8_t incarnation)
{
	f->incarnation = incarnation;
	run(f, store_set_body);
}

static void
db_set(struct fixture *f, unsigned i, uint8_t incarnation)
{
	name_set(f, i);
	f->incarnation = incarnation;
	run(f, set_body);
}

static uint8_t
db_get(struct fixture *f, unsigned i)
{
	name_set(f, i);
	run(f, get_body);
	return f->incarnation;
}

static uint8_t
store_get(struct fixture *f)
{
	run(f, store_get_body);
	assert_int_equal(f->status, STATUS_OK);
	return f->incarnation;
}

/* ---- Raising ---- */

static void
one_database_is_raised_at_least_to_the_store(void **state)
{
	struct fixture *f = *state;

	create(f, 1);
	run(f, raise_body);
	assert_int_equal(db_get(f, 0), 1);
	assert_int_equal(store_get(f), 0);
	store_set(f, 5);
	run(f, raise_body);
	assert_int_equal(db_get(f, 0), 5);
	run(f, raise_body);
	assert_int_equal(db_get(f, 0), 6);
	db_set(f, 0, UINT8_MAX - 1);
	run(f, raise_body);
	assert_int_equal(db_get(f, 0), UINT8_MAX);
	run(f, raise_body);
	assert_int_equal(db_get(f, 0), UINT8_MAX);
	strcpy(f->name, "1");
	assert_int_equal(kv_run(f->store, raise_body, f, NULL, NULL), STATUS_NOT_FOUND);
}

static void
all_databases_are_raised(void **state)
{
	struct fixture *f = *state;
	uint64_t count = 0;

	create(f, MANY);
	assert_int_equal(catalog_incarnations_raise(f->store, &count, NULL), STATUS_OK);
	assert_int_equal(count, MANY);
	assert_int_equal(store_get(f), 1);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(db_get(f, i), 1);
	/* To what is wanted at least: what is there already is enough. */
	db_set(f, 0, 2);
	db_set(f, MANY - 1, 3);
	assert_int_equal(catalog_incarnations_raise_to(f->store, 3, NULL), STATUS_OK);
	assert_int_equal(store_get(f), 3);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(db_get(f, i), 3);
	db_set(f, 0, 2);
	db_set(f, 1, 4);
	assert_int_equal(catalog_incarnations_raise_to(f->store, 2, NULL), STATUS_OK);
	assert_int_equal(store_get(f), 3);
	assert_int_equal(db_get(f, 0), 2);
	assert_int_equal(db_get(f, 1), 4);
}

static void
the_last_incarnation_stays(void **state)
{
	struct fixture *f = *state;

	create(f, 2);
	store_set(f, UINT8_MAX - 1);
	db_set(f, 0, UINT8_MAX - 1);
	db_set(f, 1, UINT8_MAX);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(catalog_incarnations_raise(f->store, NULL, NULL), STATUS_OK);
		assert_int_equal(store_get(f), UINT8_MAX);
		assert_int_equal(db_get(f, 0), UINT8_MAX);
		assert_int_equal(db_get(f, 1), UINT8_MAX);
	}
}

static enum status
write_body(struct kv_tx *tx, void *arg)
{
	const struct fixture *f = arg;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_INCARNATION);
	return kv_set(tx, buf_str(&key), f->value);
}

static void
an_incarnation_beyond_the_limit_is_damage(void **state)
{
	struct fixture *f = *state;

	f->value = STR("\x15\xff");
	run(f, write_body);
	assert_int_equal(store_get(f), UINT8_MAX);
	f->value = STR("\x16\x01\0");
	run(f, write_body);
	run(f, store_get_body);
	assert_int_equal(f->status, STATUS_CORRUPT);
	f->value = STR("\x02text\0");
	run(f, write_body);
	run(f, store_get_body);
	assert_int_equal(f->status, STATUS_CORRUPT);
}

/* ---- Walking ---- */

/* Walks through all, and asserts that they are these, but for one; MANY: no one. */
static void
assert_walked(struct fixture *f, unsigned without)
{
	struct catalog_walk walk;
	unsigned i = 0, pages = 0;

	assert_int_equal(catalog_walk_begin(&walk), STATUS_OK);
	while (walk.page.more) {
		struct err err = { 0 };

		/* Not everybody wants to be told. */
		assert_int_equal(catalog_walk_next(&walk, f->store, without ? NULL : &err),
				 STATUS_OK);
		if (without == 0 || without == MANY)
			assert_int_equal(err.status,
					 STATUS_OK); /* what was left out is no failure */
		pages++;
		for (size_t k = 0; k < walk.page.count; k++, i++) {
			i += i == without;
			name_set(f, i);
			assert_true(str_eq(walk.page.dbs[k].name, str_from_cstr(f->name)));
		}
	}
	assert_int_equal(i + (without == MANY - 1), MANY);
	assert_true(pages > 1);
	catalog_walk_end(&walk);
}

/* The description as it is stored. */
static enum status
take_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *get;
	struct str value;

	catalog_key_name(&key, KV_ROOT_DATABASES, TINY, str_from_cstr(f->name));
	get = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(get));
	assert_true(kv_future_value(get, &value));
	f->taken = arena_dup(f->arena, value);
	return STATUS_OK;
}

static enum status
give_body(struct kv_tx *tx, void *arg)
{
	const struct fixture *f = arg;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	catalog_key_name(&key, KV_ROOT_DATABASES, TINY, str_from_cstr(f->name));
	return kv_set(tx, buf_str(&key), f->value);
}

/* Puts that description in the place of another, which it returns. */
static struct str
exchange(struct fixture *f, unsigned i, struct str value)
{
	name_set(f, i);
	run(f, take_body);
	f->value = value;
	run(f, give_body);
	return f->taken;
}

static void
all_databases_are_walked_through_but_those_of_a_newer_frond(void **state)
{
	static const unsigned places[] = { 0, 1, MANY / 2, MANY - 1 };
	struct fixture *f = *state;

	create(f, MANY);
	assert_walked(f, MANY);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct str good = exchange(f, places[i], STR(NEWER));

		assert_walked(f, places[i]);
		(void)exchange(f, places[i], good);
	}
}

/* Also right behind one of a newer frond, which is left out: what it says of the damage stays. */
static void
a_walk_ends_at_a_damaged_description_and_says_so(void **state)
{
	static const unsigned places[] = { 0, 1, MANY / 2, MANY - 1 };
	struct fixture *f = *state;

	create(f, MANY);
	for (size_t i = 0; i < 2 * sizeof(places) / sizeof(places[0]); i++) {
		unsigned place = places[i / 2], seen = 0;
		struct str good, before = { 0 };
		bool behind_newer = i % 2 && place;
		struct catalog_walk walk;
		enum status status;

		good = exchange(f, place, STR("x"));
		if (behind_newer)
			before = exchange(f, place - 1, STR(NEWER));
		f->err = (struct err){ 0 };
		assert_int_equal(catalog_walk_begin(&walk), STATUS_OK);
		while ((status = catalog_walk_next(&walk, f->store, &f->err)) == STATUS_OK) {
			assert_true(walk.page.more);
			assert_int_equal(f->err.status, STATUS_OK);
			seen += (unsigned)walk.page.count;
		}
		catalog_walk_end(&walk);
		assert_int_equal(status, STATUS_CORRUPT);
		assert_int_equal(f->err.status, STATUS_CORRUPT);
		name_set(f, place);
		assert_string_equal(f->err.text, arena_printf(f->arena, UNREADABLE, f->name).ptr);
		assert_int_equal(seen, place - behind_newer);
		(void)exchange(f, place, good);
		if (behind_newer)
			(void)exchange(f, place - 1, before);
	}
}

static enum status
all_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	AUTO(buf_release) struct buf last = CATALOG_KEY_INIT;
	struct catalog_page page;

	f->err = (struct err){ 0 };
	/* As many as there are, and one fewer. */
	TRY(catalog_all(tx, &last, 3, f->arena, &page, &f->err));
	assert_int_equal(page.count, 3);
	assert_false(page.more);
	buf_clear(&last);
	TRY(catalog_all(tx, &last, 2, f->arena, &page, &f->err));
	assert_int_equal(page.count, 2);
	assert_true(page.more);
	TRY(catalog_all(tx, &last, 2, f->arena, &page, &f->err));
	assert_int_equal(page.count, 1);
	assert_false(page.more);
	buf_set(&last, STR("elsewhere"));
	f->status = catalog_all(tx, &last, 2, f->arena, &page, &f->err);
	return STATUS_OK;
}

static void
a_page_has_as_many_as_are_wanted(void **state)
{
	struct fixture *f = *state;

	create(f, 3);
	run(f, all_body);
	assert_int_equal(f->status, STATUS_INVALID);
	assert_string_equal(f->err.text, "this is no place in the list of databases");
}

/* ---- Sequences ---- */

static enum status
reached_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	uint64_t version;

	TRY(kv_get_read_version(tx, &version));
	/* `incarnation` is what is added to the version here. */
	version += f->incarnation;
	for (unsigned i = 0; i < 8; i++)
		f->seq.bytes[1 + i] = (uint8_t)(version >> (56 - 8 * i));
	f->err = (struct err){ 0 };
	f->status = catalog_seq_check_reached(tx, &f->seq, &f->err);
	return STATUS_OK;
}

static enum status
reached(struct fixture *f, uint8_t incarnation, uint8_t later)
{
	f->seq.bytes[0] = incarnation;
	f->incarnation = later;
	assert_int_equal(kv_run_read(f->store, reached_body, f, NULL), STATUS_OK);
	return f->status;
}

static void
a_sequence_is_reached_up_to_the_store_s_newest(void **state)
{
	struct fixture *f = *state;

	create(f, 1);
	store_set(f, 2);
	assert_int_equal(reached(f, 2, 0), STATUS_OK);
	assert_int_equal(reached(f, 2, 200), STATUS_INVALID);
	assert_string_equal(f->err.text,
			    "The sequence in 'since' lies beyond every event of this server.");
	assert_int_equal(reached(f, 1, 200), STATUS_OK);
	assert_int_equal(reached(f, 3, 0), STATUS_INVALID);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(one_database_is_raised_at_least_to_the_store),
		CASE(all_databases_are_raised),
		CASE(the_last_incarnation_stays),
		CASE(an_incarnation_beyond_the_limit_is_damage),
		CASE(all_databases_are_walked_through_but_those_of_a_newer_frond),
		CASE(a_walk_ends_at_a_damaged_description_and_says_so),
		CASE(a_page_has_as_many_as_are_wanted),
		CASE(a_sequence_is_reached_up_to_the_store_s_newest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
