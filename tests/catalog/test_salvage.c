/*
 * What is made of a store that was put together from remains: databases that have lost their
 * descriptions get names, kinds and new ones, or are cleared where nothing tells what they were;
 * no number is given away twice; a salvage that fails anywhere can be repeated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "catalog/catalog_int.h"
#include "catalog/move_int.h"
#include "catalog/records.h"
#include "catalog/salvage.h"
#include "catalog/store_format.h"
#include "kv/faulty/faulty.h"
#include "kv/keyspace.h"
#include "store.h"
#include "tiny.h"

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
	TINY_OWN = 1,
	OTHER_KIND = 78,
	OTHER_SPACE = 10,
	OTHER_OWN = 5,
	THIRD_KIND = 79,
	THIRD_SPACE = 11,
	THIRD_OWN = 6,
	NAMES = 1000, /* that are tried, two of which are no numbers */
	FAILURES_MOST = 1000,
	OPTION = 2,
};

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	char told[1024];
	char adopted[256]; /* by the kinds, each as "number:name" */
	const char *made;
	enum status adopts;
	struct err err;

	/* Of bodies. */
	struct buf key;
	struct buf value;
	uint64_t number;
	struct str name;
	enum catalog_space space;
	const struct catalog_kind *kind;
	struct catalog_db db;
	size_t count;
	bool there;
};

static struct fixture *fixture; /* of the kinds' functions, which have no argument of their own */

/* ---- Kinds ---- */

static enum status
adopt(struct kv_tx *tx, const struct catalog_db *db, uint64_t options[CATALOG_OPTIONS],
      const char **ret_made, struct err *err)
{
	size_t len = strlen(fixture->adopted);

	(void)tx;
	(void)snprintf(fixture->adopted + len, sizeof(fixture->adopted) - len, "%s%llu:%.*s",
		       len ? " " : "", (unsigned long long)db->number, STR_ARG(db->name));
	assert_int_equal(db->prefix.len, 2); /* of a number below 256 */
	options[OPTION] = 7;
	*ret_made = fixture->made;
	return fixture->adopts == STATUS_OK ? STATUS_OK : err_set(err, fixture->adopts, "refused");
}

static const struct catalog_salvage_kind *tiny_salvage[2];
static struct catalog_salvage_kind tiny_kinds;

static enum status
check_no_underscore(struct str name, struct err *err)
{
	return memchr(name.ptr, '_', name.len) ? err_set(err, STATUS_INVALID, "has a _")
					       : STATUS_OK;
}

static enum status
check_any(struct str name, struct err *err)
{
	(void)err;
	return name.len ? STATUS_OK : STATUS_INVALID;
}

static struct catalog_kind other_kind, third_kind;
static struct catalog_salvage_kind other_salvage, third_salvage;

/* Without a tiny kind's: the other two, in that order. */
static const struct catalog_salvage_kind *const three_kinds[] = { &other_salvage, &third_salvage,
								  &tiny_kinds, NULL };

static void
kinds_register(void)
{
	tiny_register();
	tiny_kinds = (struct catalog_salvage_kind){ .kind = tiny_kind(),
						    .own_space = TINY_OWN,
						    .adopt = adopt };
	tiny_salvage[0] = &tiny_kinds;
	other_kind = *tiny_kind();
	other_kind.number = OTHER_KIND;
	other_kind.name = "other";
	other_kind.space = (enum catalog_space)OTHER_SPACE;
	other_kind.check_name = check_no_underscore;
	catalog_kind_register(&other_kind);
	other_salvage = (struct catalog_salvage_kind){ .kind = &other_kind,
						       .own_space = OTHER_OWN,
						       .adopt = adopt };
	third_kind = other_kind;
	third_kind.number = THIRD_KIND;
	third_kind.name = "third";
	third_kind.space = (enum catalog_space)THIRD_SPACE;
	third_kind.check_name = check_any;
	catalog_kind_register(&third_kind);
	third_salvage = (struct catalog_salvage_kind){ .kind = &third_kind,
						       .own_space = THIRD_OWN,
						       .adopt = adopt };
}

/* ---- The store ---- */

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128], url[256];

	assert_non_null(f);
	kinds_register();
	test_make_dir("salvage", f->dir, sizeof(f->dir));
	(void)snprintf(path, sizeof(path), "%s/store", f->dir);
	test_store_url(path, url, sizeof(url));
	assert_int_equal(kv_open(url, &options, &f->store, NULL), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
	assert_non_null(f->arena);
	f->key = CATALOG_KEY_INIT;
	f->value = CATALOG_KEY_INIT;
	fixture = f;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	kv_close(f->store);
	arena_free(f->arena);
	buf_release(&f->key);
	buf_release(&f->value);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

static void
run(struct fixture *f, kv_body *body)
{
	assert_int_equal(kv_run(kv_faulty_inner(f->store), body, f, NULL, NULL), STATUS_OK);
}

static enum status
set_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	return kv_set(tx, buf_str(&f->key), buf_str(&f->value));
}

static enum status
clear_one_body(struct kv_tx *tx, void *arg)
{
	const struct fixture *f = arg;

	return kv_clear(tx, buf_str(&f->key));
}

static void
root_key(struct fixture *f, uint64_t part)
{
	buf_clear(&f->key);
	buf_clear(&f->value);
	tuple_put_u64(&f->key, KV_ROOT);
	tuple_put_u64(&f->key, part);
}

/* A key of a database: (number, space, "k"). */
static void
put_key(struct fixture *f, uint64_t number, uint64_t space)
{
	buf_clear(&f->key);
	buf_clear(&f->value);
	tuple_put_u64(&f->key, number);
	tuple_put_u64(&f->key, space);
	tuple_put_str(&f->key, STR("k"));
	buf_append_cstr(&f->value, "value");
	run(f, set_body);
}

static enum status
describe_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	const struct catalog_db db = { .name = f->name, .number = f->number, .kind = f->kind };

	return catalog_description_set(tx, &db);
}

static void
describe(struct fixture *f, const struct catalog_kind *kind, const char *name, uint64_t number)
{
	f->kind = kind;
	f->name = str_from_cstr(name);
	f->number = number;
	run(f, describe_body);
}

static enum status
find_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	enum status status = catalog_description_get(tx, f->space, f->name, &f->db, NULL);

	f->there = status == STATUS_OK;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* The number of the database, which there is. */
static uint64_t
number_of(struct fixture *f, const struct catalog_kind *kind, const char *name)
{
	f->space = kind->space;
	f->name = str_from_cstr(name);
	run(f, find_body);
	if (!f->there)
		fail_msg("there is no database %s", name);
	assert_int_equal(f->db.kind->number, kind->number);
	return f->db.number;
}

static bool
is_there(struct fixture *f, const struct catalog_kind *kind, const char *name)
{
	f->space = kind->space;
	f->name = str_from_cstr(name);
	run(f, find_body);
	return f->there;
}

static enum status
get_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct kv_future *future = kv_get(tx, buf_str(&f->key), KV_READ);
	struct str value;

	buf_clear(&f->value);
	TRY(kv_future_wait(future));
	f->there = kv_future_value(future, &value);
	if (f->there)
		buf_append_str(&f->value, value);
	return buf_status(&f->value);
}

/* The number behind the last one that was given away; 0: there is none. */
static uint64_t
next_number(struct fixture *f)
{
	struct tuple_reader r;
	uint64_t next = 0;

	root_key(f, KV_ROOT_NEXT_PREFIX);
	run(f, get_body);
	r = tuple_reader(buf_str(&f->value));
	if (f->there)
		assert_int_equal(tuple_next_u64(&r, &next), STATUS_OK);
	return next;
}

static void
next_number_set(struct fixture *f, uint64_t next)
{
	root_key(f, KV_ROOT_NEXT_PREFIX);
	tuple_put_u64(&f->value, next);
	run(f, set_body);
}

/* Whether the keys of the number are to be cleared. */
static bool
is_dropped(struct fixture *f, uint64_t number)
{
	root_key(f, KV_ROOT_DROPPED);
	tuple_put_u64(&f->key, number);
	run(f, get_body);
	return f->there;
}

static void
told(void *arg, const char *text)
{
	struct fixture *f = arg;
	size_t len = strlen(f->told);

	(void)snprintf(f->told + len, sizeof(f->told) - len, "%s\n", text);
}

static enum status
salvage(struct fixture *f, const struct catalog_salvage_kind *const *kinds, bool has_format)
{
	f->told[0] = f->adopted[0] = '\0';
	f->err = (struct err){ 0 };
	return catalog_salvage(f->store, has_format, kinds, told, f, &f->err);
}

static void
salvage_well(struct fixture *f, const struct catalog_salvage_kind *const *kinds)
{
	if (salvage(f, kinds, true) != STATUS_OK)
		fail_msg("%s", f->err.text);
}

/* ---- Tests ---- */

static void
an_empty_store_stays_empty(void **state)
{
	struct fixture *f = *state;

	salvage_well(f, tiny_salvage);
	assert_string_equal(f->told, "");
	assert_string_equal(f->adopted, "");
	assert_int_equal(next_number(f), 0);
}

static void
a_store_without_a_format_gets_the_newest(void **state)
{
	struct fixture *f = *state;
	struct tuple_reader r;
	uint64_t format;

	root_key(f, KV_ROOT_FORMAT);
	run(f, clear_one_body);
	assert_int_equal(salvage(f, tiny_salvage, true), STATUS_OK);
	run(f, get_body);
	assert_false(f->there);
	assert_int_equal(salvage(f, tiny_salvage, false), STATUS_OK);
	root_key(f, KV_ROOT_FORMAT);
	run(f, get_body);
	assert_true(f->there);
	r = tuple_reader(buf_str(&f->value));
	assert_int_equal(tuple_next_u64(&r, &format), STATUS_OK);
	assert_int_equal(format, CATALOG_STORE_FORMAT);
}

static void
a_database_with_a_description_is_mended(void **state)
{
	struct fixture *f = *state;

	describe(f, tiny_kind(), "8", 3);
	put_key(f, 3, TINY_OWN);
	salvage_well(f, tiny_salvage);
	assert_string_equal(f->adopted, "3:8");
	assert_string_equal(f->told, "");
	assert_int_equal(number_of(f, tiny_kind(), "8"), 3);
	/* Options are what the description says. */
	assert_int_equal(f->db.options[OPTION], 0);
	f->made = "its counters";
	salvage_well(f, tiny_salvage);
	assert_string_equal(f->told, "database \"8\" has lost its counters\n");
	/* Of a kind that nobody mends it is left as it is. */
	describe(f, &other_kind, "x", 4);
	salvage_well(f, tiny_salvage);
	assert_string_equal(f->adopted, "3:8");
	assert_int_equal(number_of(f, &other_kind, "x"), 4);
	f->adopts = STATUS_IO;
	assert_int_equal(salvage(f, tiny_salvage, true), STATUS_IO);
	assert_string_equal(f->err.text, "refused");
}

static void
a_database_without_a_description_gets_one(void **state)
{
	struct fixture *f = *state;

	root_key(f, KV_ROOT_FORMAT);
	run(f, clear_one_body);
	put_key(f, 3, TINY_OWN);
	salvage_well(f, tiny_salvage);
	/* Such databases are of a newer format than the first one. */
	root_key(f, KV_ROOT_FORMAT);
	run(f, get_body);
	assert_true(f->there);
	assert_string_equal(f->told, "the description of a database is lost, with its name: it is "
				     "called \"0\" now, a database of the kind \"tiny\"\n");
	/* Once without, and once with its description. */
	assert_string_equal(f->adopted, "3:0 3:0");
	assert_int_equal(number_of(f, tiny_kind(), "0"), 3);
	assert_int_equal(f->db.options[OPTION], 7);
	assert_true(f->db.created_ms > 0);
	assert_memory_not_equal(f->db.uuid, (const uint8_t[16]){ 0 }, 16);
	assert_int_equal(next_number(f), 4);
	salvage_well(f, tiny_salvage);
	assert_string_equal(f->told, "");
}

/* What the kind allows, and nobody has. */
static void
names_are_those_that_kinds_allow(void **state)
{
	struct fixture *f = *state;

	put_key(f, 3, OTHER_OWN);
	put_key(f, 4, THIRD_OWN);
	put_key(f, 5, TINY_OWN);
	put_key(f, 6, THIRD_OWN);
	describe(f, tiny_kind(), "0", 9);
	describe(f, tiny_kind(), "2", 10);
	describe(f, &third_kind, "salvaged_6", 11);
	salvage_well(f, three_kinds);
	assert_int_equal(number_of(f, &other_kind, "salvaged.n3"), 3);
	assert_int_equal(number_of(f, &third_kind, "salvaged_4"), 4);
	assert_int_equal(number_of(f, tiny_kind(), "1"), 5);
	assert_int_equal(number_of(f, &third_kind, "salvaged.n6"), 6);
	assert_int_equal(number_of(f, tiny_kind(), "0"), 9);
}

static enum status
names_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	for (size_t i = 0; i < f->count; i++) {
		char name[24];
		struct catalog_db db = { .kind = tiny_kind(), .number = 200 };

		(void)snprintf(name, sizeof(name), "%zu", i);
		db.name = str_from_cstr(name);
		TRY(catalog_description_set(tx, &db));
	}
	return STATUS_OK;
}

static void
a_database_for_which_no_name_is_free_is_a_failure(void **state)
{
	struct fixture *f = *state;

	put_key(f, 3, TINY_OWN);
	f->count = NAMES - 2;
	run(f, names_body);
	assert_int_equal(salvage(f, tiny_salvage, true), STATUS_LIMIT);
	assert_string_equal(f->err.text, "no name is free for a database without one");
	f->space = tiny_kind()->space;
	/* The last one that is tried. */
	f->name = STR("997");
	assert_true(is_there(f, tiny_kind(), "997"));
	buf_clear(&f->key);
	catalog_key_name(&f->key, KV_ROOT_DATABASES, tiny_kind()->space, STR("997"));
	buf_clear(&f->value);
	tuple_put_u64(&f->value, 99); /* a newer frond's: a name that is taken */
	run(f, set_body);
	assert_int_equal(salvage(f, tiny_salvage, true), STATUS_NEWER);
}

static void
the_last_name_that_is_tried_will_do(void **state)
{
	struct fixture *f = *state;

	put_key(f, 3, TINY_OWN);
	f->count = NAMES - 3;
	run(f, names_body);
	/* All of these are mended, too. */
	salvage_well(f, tiny_salvage);
	assert_int_equal(number_of(f, tiny_kind(), "997"), 3);
}

/* The first kind whose own subspace has a key; neighbours of it do not count. */
static void
the_own_subspace_tells_the_kind(void **state)
{
	struct fixture *f = *state;

	put_key(f, 3, THIRD_OWN);
	put_key(f, 3, TINY_OWN);
	put_key(f, 4, THIRD_OWN + 1);
	put_key(f, 4, OTHER_OWN - 1);
	put_key(f, 5, OTHER_OWN);
	put_key(f, 5, THIRD_OWN);
	salvage_well(f, three_kinds);
	assert_int_equal(number_of(f, &third_kind, "salvaged_3"), 3);
	assert_int_equal(number_of(f, &other_kind, "salvaged.n5"), 5);
	assert_false(is_dropped(f, 3));
	assert_true(is_dropped(f, 4));
	assert_false(is_dropped(f, 5));
	assert_non_null(strstr(f->told, "the description of a database is lost, with all that "
					"would tell what it was: its number was 4\n"));
	assert_int_equal(next_number(f), 6);
	/* What is to be cleared is not found again. */
	salvage_well(f, three_kinds);
	assert_string_equal(f->told, "");
}

/* Deleted ones, those of which some keys are kept, and what comes from another store. */
static void
numbers_that_somebody_has_are_left_to_them(void **state)
{
	struct fixture *f = *state;
	struct catalog_move move = { .space = tiny_kind()->space,
				     .name = STR("6"),
				     .kind = TINY_KIND,
				     .state = CATALOG_MOVE_COPYING,
				     .other = STR("elsewhere"),
				     .number = 5 };

	for (uint64_t number = 3; number <= 6; number++)
		put_key(f, number, TINY_OWN);
	root_key(f, KV_ROOT_DROPPED);
	tuple_put_u64(&f->key, 3);
	run(f, set_body);
	root_key(f, KV_ROOT_KEPT);
	tuple_put_u64(&f->key, 1234);
	tuple_put_u64(&f->key, 4);
	run(f, set_body);
	root_key(f, KV_ROOT_MOVES);
	buf_clear(&f->key);
	catalog_key_name(&f->key, KV_ROOT_MOVES, move.space, move.name);
	catalog_move_put(&move, &f->value);
	run(f, set_body);
	salvage_well(f, tiny_salvage);
	assert_string_equal(f->adopted, "6:0 6:0");
	assert_int_equal(next_number(f), 7);
}

/* A record that cannot be read has no number, and is in nobody's way. */
static void
records_that_cannot_be_read_tell_no_number(void **state)
{
	struct fixture *f = *state;

	put_key(f, 3, TINY_OWN);
	root_key(f, KV_ROOT_DROPPED);
	tuple_put_str(&f->key, STR("x"));
	run(f, set_body);
	root_key(f, KV_ROOT_KEPT);
	tuple_put_str(&f->key, STR("x"));
	run(f, set_body);
	root_key(f, KV_ROOT_KEPT);
	tuple_put_u64(&f->key, 3); /* a time without a number */
	run(f, set_body);
	buf_clear(&f->key);
	catalog_key_name(&f->key, KV_ROOT_MOVES, tiny_kind()->space, STR("3"));
	buf_append_cstr(&f->value, "damaged");
	run(f, set_body);
	salvage_well(f, tiny_salvage);
	assert_string_equal(f->adopted, "3:0 3:0");
}

static void
no_number_is_given_away_twice(void **state)
{
	static const struct {
		uint64_t before, after;
	} rows[] = { { 0, 4 }, { 1, 4 }, { 3, 4 }, { 4, 4 }, { 5, 5 }, { 300, 300 } };
	struct fixture *f = *state;

	put_key(f, 3, TINY_OWN);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		next_number_set(f, rows[i].before);
		salvage_well(f, tiny_salvage);
		assert_int_equal(next_number(f), rows[i].after);
	}
	root_key(f, KV_ROOT_NEXT_PREFIX);
	buf_append_cstr(&f->value, "damaged");
	run(f, set_body);
	salvage_well(f, tiny_salvage);
	assert_int_equal(next_number(f), 4);
}

/* ---- Failures ---- */

static void
damage_all(struct fixture *f)
{
	put_key(f, 3, TINY_OWN);
	put_key(f, 4, TINY_OWN + 40);
	describe(f, tiny_kind(), "8", 5);
}

static void
all_is_mended(struct fixture *f)
{
	assert_int_equal(number_of(f, tiny_kind(), "0"), 3);
	assert_int_equal(number_of(f, tiny_kind(), "8"), 5);
	assert_false(is_there(f, tiny_kind(), "1"));
	assert_true(is_dropped(f, 4));
	/* That of a description alone is no number that keys begin with. */
	assert_int_equal(next_number(f), 5);
}

static enum status
clear_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return kv_clear_range(tx, STR(""), STR("\xff"));
}

/* Each call of the store fails for good, or as one after which another attempt may succeed. */
static void
a_salvage_that_fails_can_be_repeated(void **state)
{
	static const enum status failures[] = { STATUS_IO, STATUS_TX_CONFLICT };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		for (uint32_t call = 1;; call++) {
			struct kv_faulty_tap tap = { .fail_call = call,
						     .fail_with = failures[i],
						     .cut = SIZE_MAX,
						     .flip = SIZE_MAX };
			enum status status;

			run(f, clear_body);
			damage_all(f);
			kv_faulty_tap(f->store, &tap);
			status = salvage(f, tiny_salvage, false);
			kv_faulty_tap(f->store, NULL);
			if (status != STATUS_OK) {
				assert_int_equal(status, failures[i]);
				salvage_well(f, tiny_salvage);
			}
			all_is_mended(f);
			if (tap.calls < call) {
				assert_in_range(call, 10, FAILURES_MOST);
				break;
			}
			if (failures[i] == STATUS_IO)
				assert_int_equal(status, STATUS_IO);
		}
	}
}

static void
a_salvage_without_memory_can_be_repeated(void **state)
{
	struct fixture *f = *state;

	for (uint64_t failing = 1;; failing++) {
		enum status status;
		bool failed;

		run(f, clear_body);
		damage_all(f);
		(void)mem_fail_only(failing);
		status = salvage(f, tiny_salvage, false);
		failed = mem_fail_only(0) >= failing;
		if (status != STATUS_OK) {
			assert_true(status == STATUS_NOMEM || status == STATUS_LIMIT);
			salvage_well(f, tiny_salvage);
		}
		all_is_mended(f);
		if (!failed) {
			assert_in_range(failing, 5, FAILURES_MOST);
			break;
		}
	}
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(an_empty_store_stays_empty),
		CASE(a_store_without_a_format_gets_the_newest),
		CASE(a_database_with_a_description_is_mended),
		CASE(a_database_without_a_description_gets_one),
		CASE(names_are_those_that_kinds_allow),
		CASE(a_database_for_which_no_name_is_free_is_a_failure),
		CASE(the_last_name_that_is_tried_will_do),
		CASE(the_own_subspace_tells_the_kind),
		CASE(numbers_that_somebody_has_are_left_to_them),
		CASE(records_that_cannot_be_read_tell_no_number),
		CASE(no_number_is_given_away_twice),
		CASE(a_salvage_that_fails_can_be_repeated),
		CASE(a_salvage_without_memory_can_be_repeated),
	};

	/* A store through which calls can be made to fail. */
	(void)setenv("FROND_TEST_FAULTS", "rate=0,delay=0,watch=0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
