/*
 * What the check of a store says of the records that belong to the whole store: nothing of a good
 * one, and of one that cannot be read whether its key, its value, or a newer format is why. When
 * the clocks are written, which record of a move is the one that somebody has read, and for how
 * long a cache of databases has one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/steady.h"
#include "catalog/check.h"
#include "catalog/clock.h"
#include "catalog/move_int.h"
#include "catalog/records.h"
#include "catalog/store_format.h"
#include "catalog/verify.h"
#include "kv/engine.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "store.h"
#include "tiny.h"

enum {
	KEY_BYTES = 1024,
	NAMES_BYTES = 256,
};

/* Elements of tuples. */
#define ONE    "\x15\x01"
#define NUMBER "\x15\x46"
#define WORD   "\x02word\0"
#define BYTES  "\x01some\0"
#define NAME                                                                                       \
	"\x15\x09\x02"                                                                             \
	"7\0" /* of a tiny database, behind its space */
#define NEWER  "\x15\x63\x02whatever comes then\0"
#define FORMAT CATALOG_FINDING_NEWER
#define VALUE  CATALOG_FINDING_VALUE
#define KEY    CATALOG_FINDING_KEY

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct str key;
	struct str value; /* ptr NULL: to clear */
};

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128], url[256];
	struct err err = { 0 };

	assert_non_null(f);
	tiny_register();
	test_make_dir("root", f->dir, sizeof(f->dir));
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
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

static enum status
write_body(struct kv_tx *tx, void *arg)
{
	const struct fixture *f = arg;

	return f->value.ptr ? kv_set(tx, f->key, f->value) : kv_clear(tx, f->key);
}

static void
write_value(struct fixture *f, struct str value)
{
	struct err err = { 0 };

	f->value = value;
	if (kv_run(f->store, write_body, f, NULL, &err) != STATUS_OK)
		fail_msg("%s", err.text);
}

static void
found(const struct catalog_finding *finding, void *arg)
{
	char *names = arg;
	size_t len = strlen(names);

	snprintf(names + len, NAMES_BYTES - len, "%s%s", len ? " " : "", finding->kind);
}

/* What the check says while there is such a record. */
static void
assert_says(struct fixture *f, uint64_t part, struct str rest, struct str value,
	    const char *expected)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KEY_BYTES);
	char names[NAMES_BYTES] = "";
	const struct catalog_verify_options options = { .found = found, .arg = names };
	struct catalog_verify_sum sum = { 0 };
	struct err err = { 0 };
	struct kv_tx *tx;

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, part);
	buf_append_str(&key, rest);
	assert_int_equal(buf_status(&key), STATUS_OK);
	f->key = buf_str(&key);
	write_value(f, value);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(catalog_verify_store(tx, &options, &sum, &err), STATUS_OK);
	kv_tx_free(tx);
	if (strcmp(names, expected) != 0)
		fail_msg("of a record of part %llu: \"%s\", and not \"%s\"",
			 (unsigned long long)part, names, expected);
	write_value(f, (struct str){ 0 });
}

static void
values_that_cannot_be_read_are_found(void **state)
{
	static const struct {
		uint64_t part;
		struct str rest;
	} records[] = {
		{ KV_ROOT_DATABASES, STR(NAME) },        { KV_ROOT_DROPPED, STR(NUMBER) },
		{ KV_ROOT_EVENTS, STR(NAME) },           { KV_ROOT_MOVES, STR(NAME) },
		{ KV_ROOT_SETTINGS, STR(WORD WORD) },    { KV_ROOT_INDEX_WORK, STR(NUMBER) },
		{ KV_ROOT_VIEW_WORK, STR(NUMBER WORD) }, { KV_ROOT_KEPT, STR(ONE NUMBER) },
		{ KV_ROOT_CLOCKS, STR(BYTES) },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		assert_says(f, records[i].part, records[i].rest, STR("x"), VALUE);
		assert_says(f, records[i].part, records[i].rest, STR(NEWER), FORMAT);
	}
	/* Numbers and a stamp have no format. */
	assert_says(f, KV_ROOT_INCARNATION, STR(""), STR("x"), VALUE);
	assert_says(f, KV_ROOT_INCARNATION, STR(""), STR(ONE ONE), VALUE);
	assert_says(f, KV_ROOT_EVENTS, STR(""), STR("no stamp"), VALUE);
	assert_says(f, KV_ROOT_TXIDS, STR(BYTES), STR("x"), VALUE);
}

static void
keys_that_cannot_be_read_are_found(void **state)
{
	static const struct {
		uint64_t part;
		struct str rest;
	} records[] = {
		{ KV_ROOT_DATABASES, STR("\x15\x09") },
		{ KV_ROOT_DROPPED, STR("") },
		{ KV_ROOT_DROPPED, STR(NUMBER ONE) },
		{ KV_ROOT_EVENTS, STR("\x15\x09") },
		{ KV_ROOT_INCARNATION, STR(ONE) },
		{ KV_ROOT_MOVES, STR("\x15\x09") },
		{ KV_ROOT_SETTINGS, STR(WORD) },
		{ KV_ROOT_SETTINGS, STR(ONE WORD) },
		{ KV_ROOT_SETTINGS, STR(WORD ONE) },
		{ KV_ROOT_SETTINGS, STR(WORD WORD ONE) },
		{ KV_ROOT_INDEX_WORK, STR(WORD) },
		{ KV_ROOT_INDEX_WORK, STR(NUMBER WORD) },
		{ KV_ROOT_VIEW_WORK, STR(NUMBER) },
		{ KV_ROOT_VIEW_WORK, STR(NUMBER ONE) },
		{ KV_ROOT_VIEW_WORK, STR(NUMBER WORD ONE) },
		{ KV_ROOT_KEPT, STR(ONE) },
		{ KV_ROOT_KEPT, STR(WORD NUMBER) },
		{ KV_ROOT_KEPT, STR(ONE NUMBER ONE) },
		{ KV_ROOT_CLOCKS, STR(ONE) },
		{ KV_ROOT_CLOCKS, STR(BYTES ONE) },
		{ KV_ROOT_TXIDS, STR(ONE) },
		{ KV_ROOT_TXIDS, STR(BYTES ONE) },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
		assert_says(f, records[i].part, records[i].rest, STR(ONE), KEY);
}

static void
a_deleted_database_is_kept_until_the_time_in_its_key(void **state)
{
	struct fixture *f = *state;

	assert_says(f, KV_ROOT_KEPT, STR("\x15\x05" NUMBER), STR("\x15\x02\x15\x4d\x15\x05"), "");
	assert_says(f, KV_ROOT_KEPT, STR("\x15\x05" NUMBER), STR("\x15\x02\x15\x4d\x15\x06"),
		    VALUE);
}

/* ---- The clocks ---- */

uint64_t __real_clock_boot_us(void);
uint64_t __wrap_clock_boot_us(void);
uint64_t __real_clock_wall_us(void);
uint64_t __wrap_clock_wall_us(void);

static uint64_t passed_us; /* beside the time that the test takes */

uint64_t
__wrap_clock_boot_us(void)
{
	return __real_clock_boot_us() + passed_us;
}

uint64_t
__wrap_clock_wall_us(void)
{
	return __real_clock_wall_us() + passed_us;
}

static void
assert_clock_is_written(struct fixture *f, bool expected)
{
	bool written;

	assert_int_equal(catalog_clock_keep(f->store, &written, NULL), STATUS_OK);
	assert_int_equal(written, expected);
}

static void
clocks_that_go_on_as_they_did_are_written_once_an_hour(void **state)
{
	const uint64_t minute_us = UINT64_C(60) * 1000 * 1000;
	struct fixture *f = *state;

	assert_clock_is_written(f, true);
	assert_clock_is_written(f, false);
	passed_us += 59 * minute_us;
	assert_clock_is_written(f, false);
	passed_us += minute_us;
	assert_clock_is_written(f, true);
	assert_clock_is_written(f, false);
}

struct other_clock {
	uint8_t boot[CLOCK_BOOT_ID_BYTES];
	uint64_t steady_us;
	bool there; /* what was found */
};

/* The record of another machine, or of another start of this one. */
static enum status
other_clock_body(struct kv_tx *tx, void *arg)
{
	const struct other_clock *other = arg;
	const struct steady_state state = { .steady_us = other->steady_us };
	AUTO(buf_release) struct buf key = BUF_INIT(KEY_BYTES);
	AUTO(buf_release) struct buf value = BUF_INIT(KEY_BYTES);

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_CLOCKS);
	tuple_put_bytes(&key, str_of(other->boot, sizeof(other->boot)));
	catalog_clock_record_put(&state, &value);
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

static enum status
other_clock_look_body(struct kv_tx *tx, void *arg)
{
	struct other_clock *other = arg;
	AUTO(buf_release) struct buf key = BUF_INIT(KEY_BYTES);
	struct kv_future *f;
	struct str value;

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_CLOCKS);
	tuple_put_bytes(&key, str_of(other->boot, sizeof(other->boot)));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	other->there = kv_future_value(f, &value);
	kv_future_free(f);
	return STATUS_OK;
}

/* Whether the clock of another machine is there after this one has written its own. */
static bool
keeps_clock_of_age(struct fixture *f, uint64_t age_us)
{
	struct other_clock other = { .boot = { 7 } };
	struct steady_state now;

	passed_us += UINT64_C(2) * 3600 * 1000 * 1000; /* this one's is old */
	steady_save(&now);
	other.steady_us = now.steady_us - age_us;
	assert_int_equal(kv_run(f->store, other_clock_body, &other, NULL, NULL), STATUS_OK);
	assert_clock_is_written(f, true);
	assert_int_equal(kv_run_read(f->store, other_clock_look_body, &other, NULL), STATUS_OK);
	return other.there;
}

static void
clocks_of_other_machines_go_after_a_month_or_where_there_are_none(void **state)
{
	const uint64_t minute_us = UINT64_C(60) * 1000 * 1000, month_us = 30 * 24 * 60 * minute_us;
	struct fixture *f = *state;
	const struct kv_engine *engine = f->store->engine;
	struct kv_engine shared = *engine;

	passed_us += 2 * month_us;
	assert_clock_is_written(f, true);
	/* A store of one process has had none but this machine. */
	assert_false(keeps_clock_of_age(f, 0));
	shared.shared = true;
	f->store->engine = &shared;
	assert_true(keeps_clock_of_age(f, 0));
	assert_true(keeps_clock_of_age(f, month_us - minute_us));
	assert_false(keeps_clock_of_age(f, month_us + minute_us));
	f->store->engine = engine;
}

/* ---- Moves ---- */

struct expecting {
	struct catalog_move there;
	struct catalog_move expected;
	struct arena *arena;
	bool clears;
	enum status found;
};

static enum status
expect_body(struct kv_tx *tx, void *arg)
{
	struct expecting *x = arg;
	struct catalog_move now = { 0 };

	TRY(x->clears ? catalog_move_clear(tx, x->there.space, x->there.name)
		      : catalog_move_set(tx, &x->there));
	x->found = catalog_move_expect(tx, &x->expected, x->arena, &now, NULL);
	if (x->found == STATUS_OK)
		assert_int_equal(now.begun_ms, x->there.begun_ms);
	return STATUS_OK;
}

static enum status
expect(struct fixture *f, struct expecting *x)
{
	assert_int_equal(kv_run(f->store, expect_body, x, NULL, NULL), STATUS_OK);
	return x->found;
}

static void
a_move_goes_on_only_where_it_was_left(void **state)
{
	const struct catalog_move move = {
		.space = (enum catalog_space)TINY_SPACE,
		.name = STR("7"),
		.kind = TINY_KIND,
		.state = CATALOG_MOVE_COPYING,
		.id = "0123456789abcde",
		.begun_ms = 5,
		.other = STR("embedded:there"),
		.number = 17,
		.cursor = STR("a"),
	};
	struct expecting x = { .there = move, .expected = move, .arena = arena_new(1 << 20) };
	struct fixture *f = *state;

	assert_non_null(x.arena);
	assert_int_equal(expect(f, &x), STATUS_OK);
	x.there.begun_ms = 6;
	assert_int_equal(expect(f, &x), STATUS_OK);
	x.there.state = CATALOG_MOVE_COPIED;
	assert_int_equal(expect(f, &x), STATUS_LOCKED);
	x.there = move;
	x.there.id[CATALOG_MOVE_ID_BYTES - 1]++;
	assert_int_equal(expect(f, &x), STATUS_LOCKED);
	x.there = move;
	x.there.cursor = STR("b");
	assert_int_equal(expect(f, &x), STATUS_LOCKED);
	x.clears = true;
	assert_int_equal(expect(f, &x), STATUS_LOCKED);
	arena_free(x.arena);
}

/* ---- What a cache tells without a read ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	static const uint64_t options[CATALOG_OPTIONS];

	(void)arg;
	return catalog_create(tx, tiny_kind(), STR("7"), options, NULL);
}

static void
a_cache_has_what_was_opened_until_the_metadata_changes(void **state)
{
	const enum catalog_space space = (enum catalog_space)TINY_SPACE;
	struct catalog_cache *cache = catalog_cache_new();
	struct fixture *f = *state;
	struct catalog_db *db, *again;
	struct kv_tx *tx;

	assert_non_null(cache);
	assert_int_equal(kv_run(f->store, create_body, NULL, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_null(catalog_open_cached(tx, cache, space, STR("7")));
	assert_int_equal(catalog_open(tx, cache, space, STR("7"), &db, NULL), STATUS_OK);
	again = catalog_open_cached(tx, cache, space, STR("7"));
	assert_ptr_equal(again, db);
	assert_null(catalog_open_cached(tx, cache, space, STR("8")));
	/* From here on the transaction does not know the version itself. */
	assert_int_equal(kv_touch_metadata_version(tx), STATUS_OK);
	assert_null(catalog_open_cached(tx, cache, space, STR("7")));
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_null(catalog_open_cached(tx, cache, space, STR("7")));
	kv_tx_free(tx);
	catalog_db_unref(again);
	catalog_db_unref(db);
	catalog_cache_free(cache);
}

/* Which databases a cache has: "7", "8". */
static void
cache_has(struct fixture *f, struct catalog_cache *cache, bool seven, bool eight)
{
	const enum catalog_space space = (enum catalog_space)TINY_SPACE;
	struct catalog_db *db[2];
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	db[0] = catalog_open_cached(tx, cache, space, STR("7"));
	db[1] = catalog_open_cached(tx, cache, space, STR("8"));
	kv_tx_free(tx);
	assert_int_equal(db[0] != NULL, seven);
	assert_int_equal(db[1] != NULL, eight);
	catalog_db_unref(db[0]);
	catalog_db_unref(db[1]);
}

static void
a_cache_gets_what_is_opened_behind_a_write_unless_that_wrote_it(void **state)
{
	static const uint64_t options[CATALOG_OPTIONS];
	const enum catalog_space space = (enum catalog_space)TINY_SPACE;
	struct catalog_cache *cache = catalog_cache_new();
	struct fixture *f = *state;
	struct catalog_db *db;
	struct kv_tx *tx;

	assert_non_null(cache);
	assert_int_equal(kv_run(f->store, create_body, NULL, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(catalog_create(tx, tiny_kind(), STR("8"), options, NULL), STATUS_OK);
	assert_int_equal(catalog_open(tx, cache, space, STR("8"), &db, NULL), STATUS_OK);
	catalog_db_unref(db);
	cache_has(f, cache, false, false);
	assert_int_equal(catalog_open_bare(tx, cache, space, STR("7"), &db, NULL), STATUS_OK);
	assert_true(db->bare);
	catalog_db_unref(db);
	cache_has(f, cache, true, false);
	assert_int_equal(catalog_open(tx, cache, space, STR("7"), &db, NULL), STATUS_OK);
	assert_false(db->bare);
	catalog_db_unref(db);
	kv_tx_free(tx);
	cache_has(f, cache, true, false);
	catalog_cache_free(cache);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(values_that_cannot_be_read_are_found),
		T(keys_that_cannot_be_read_are_found),
		T(a_deleted_database_is_kept_until_the_time_in_its_key),
		T(clocks_that_go_on_as_they_did_are_written_once_an_hour),
		T(clocks_of_other_machines_go_after_a_month_or_where_there_are_none),
		T(a_cache_has_what_was_opened_until_the_metadata_changes),
		T(a_cache_gets_what_is_opened_behind_a_write_unless_that_wrote_it),
		T(a_move_goes_on_only_where_it_was_left),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
