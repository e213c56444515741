/*
 * Each record that the catalog stores: its bytes are what they always were, what was put is parsed
 * again, a newer format is told as that with both numbers, and anything else is corrupt.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "catalog/clock.h"
#include "catalog/move_int.h"
#include "catalog/records.h"
#include "catalog/store_format.h"
#include "catalog/tally_int.h"
#include "kv/tuple.h"
#include "model/revisioned/revisioned.h"
#include "tiny.h"

enum {
	ARENA_BYTES = 1024 * 1024,
	BEYOND = 99, /* a format that nobody has */
};

/* The value `hex`, in the buffer. */
static struct str
from_hex(const char *hex, struct buf *ret)
{
	size_t n = strlen(hex) / 2;
	buf_clear(ret);
	assert_true(buf_reserve(ret, n));
	assert_true(str_from_hex(str_from_cstr(hex), ret->ptr));
	ret->len = n;
	return buf_str(ret);
}

static void
assert_bytes(struct buf *got, const char *hex)
{
	AUTO(buf_release) struct buf text = BUF_INIT(4096);

	assert_int_equal(buf_status(got), STATUS_OK);
	buf_append_hex(&text, buf_str(got));
	buf_append_byte(&text, '\0');
	assert_string_equal(text.ptr, hex);
	buf_clear(got);
}

/* A record of which only the format is known, and it is a newer one. */
static struct str
newer(struct buf *ret)
{
	buf_clear(ret);
	tuple_put_u64(ret, BEYOND);
	tuple_put_str(ret, STR("whatever comes then"));
	assert_int_equal(buf_status(ret), STATUS_OK);
	return buf_str(ret);
}

static void
assert_newer(enum status status, const struct err *err, const char *numbers)
{
	assert_int_equal(status, STATUS_NEWER);
	assert_int_equal(err->status, STATUS_NEWER);
	assert_non_null(
		strstr(err->text, "was written by a newer frond: format 99, this one reads"));
	assert_non_null(strstr(err->text, numbers));
}

static struct catalog_db
sample(const struct catalog_kind *kind)
{
	struct catalog_db db = {
		.name = STR("name"),
		.number = 300,
		.kind = kind,
		.incarnation = 2,
		.created_ms = 1000,
		.fence = CATALOG_FENCE_KEPT,
		.options = { 2, 20 },
	};

	memset(db.uuid, 0xab, sizeof(db.uuid));
	return db;
}

static void
description_is_read_as_it_was_put(void **state)
{
	static const char plain[] = "150116012c1502"
				    "30abababababababababababababababab"
				    "1603e8"
				    "1502"
				    "1514"
				    "1502";
	static const char other[] = "150215"
				    "4d"
				    "16012c1502"
				    "30abababababababababababababababab"
				    "1603e8"
				    "1502"
				    "1514"
				    "1502";
	const struct catalog_kind *kinds[] = { catalog_kind_find(CATALOG_KIND_REVISIONED),
					       tiny_kind() };
	const char *bytes[] = { plain, other };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(1024);
		AUTO(buf_release) struct buf again = BUF_INIT(1024);
		struct catalog_db db = sample(kinds[i]), got = { 0 };
		struct err err = { 0 };

		catalog_description_put(&db, &value);
		assert_bytes(&value, bytes[i]);
		assert_int_equal(catalog_description_parse(from_hex(bytes[i], &again), &got, &err),
				 STATUS_OK);
		assert_ptr_equal(got.kind, db.kind);
		assert_int_equal(got.number, db.number);
		assert_int_equal(got.incarnation, db.incarnation);
		assert_int_equal(got.created_ms, db.created_ms);
		assert_int_equal(got.fence, db.fence);
		assert_memory_equal(got.options, db.options, sizeof(db.options));
		assert_memory_equal(got.uuid, db.uuid, sizeof(db.uuid));
		assert_newer(catalog_description_parse(newer(&again), &got, &err), &err, "up to 3");
		assert_int_equal(catalog_description_parse(STR("x"), &got, &err), STATUS_CORRUPT);
	}
}

static void
assert_description_is_corrupt(const struct buf *value)
{
	struct catalog_db got = { 0 };
	struct err err = { 0 };

	assert_int_equal(catalog_description_parse(buf_str(value), &got, &err), STATUS_CORRUPT);
}

/* Bytes behind the fence, and a fence that stands for none. */
static void
description_with_another_end_is_corrupt(void **state)
{
	const struct catalog_kind *kinds[] = { catalog_kind_find(CATALOG_KIND_REVISIONED),
					       tiny_kind() };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(1024);
		struct catalog_db db = sample(kinds[i % 2]);

		db.options[CATALOG_OPTIONS - 1] = i / 2; /* 1: it is in format 3 */
		catalog_description_put(&db, &value);
		tuple_put_u64(&value, 1);
		assert_description_is_corrupt(&value);
		buf_clear(&value);
		db.fence = CATALOG_FENCE_NONE;
		catalog_description_put(&db, &value);
		tuple_put_u64(&value, CATALOG_FENCE_NONE);
		assert_description_is_corrupt(&value);
	}
}

static void
description_in_a_format_that_is_not_needed_is_corrupt(void **state)
{
	struct catalog_db db = sample(catalog_kind_find(CATALOG_KIND_REVISIONED));
	AUTO(buf_release) struct buf value = BUF_INIT(1024);

	(void)state;
	tuple_put_u64(&value, 2);
	tuple_put_u64(&value, CATALOG_KIND_REVISIONED);
	tuple_put_u64(&value, db.number);
	tuple_put_u64(&value, db.incarnation);
	tuple_put_uuid(&value, db.uuid);
	tuple_put_u64(&value, db.created_ms);
	tuple_put_u64(&value, db.options[0]);
	tuple_put_u64(&value, db.options[1]);
	assert_int_equal(buf_status(&value), STATUS_OK);
	assert_description_is_corrupt(&value);
}

static void
description_of_an_unknown_kind_is_a_newer_frond_s(void **state)
{
	AUTO(buf_release) struct buf value = BUF_INIT(1024);
	struct catalog_db got = { 0 };
	struct err err = { 0 };

	(void)state;
	tuple_put_u64(&value, 2);
	tuple_put_u64(&value, 12345);
	assert_int_equal(catalog_description_parse(buf_str(&value), &got, &err), STATUS_NEWER);
	assert_non_null(strstr(err.text, "newer frond"));
	assert_non_null(strstr(err.text, "12345"));
}

static void
event_is_read_as_it_was_put(void **state)
{
	AUTO(buf_release) struct buf value = BUF_INIT(1024);
	struct catalog_event event = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(catalog_event_record_put(CATALOG_EVENT_DELETED, 3,
						  catalog_kind_find(CATALOG_KIND_REVISIONED),
						  &value),
			 7);
	assert_int_equal(catalog_event_record_parse(buf_str(&value), &event, &err), STATUS_OK);
	assert_int_equal(event.kind, CATALOG_EVENT_DELETED);
	assert_int_equal(event.seq.bytes[0], 3);
	assert_bytes(&value, "15011502150333ffffffffffffffffffff0000");
	(void)catalog_event_record_put(CATALOG_EVENT_CREATED, 0, tiny_kind(), &value);
	assert_int_equal(catalog_event_record_parse(buf_str(&value), &event, &err), STATUS_OK);
	assert_bytes(&value, "150215011433ffffffffffffffffffff0000154d");
	assert_newer(catalog_event_record_parse(newer(&value), &event, &err), &err, "up to 2");
	assert_int_equal(catalog_event_record_parse(STR(""), &event, &err), STATUS_CORRUPT);
}

static void
deleted_database_is_read_as_it_was_put(void **state)
{
	AUTO(buf_release) struct buf value = BUF_INIT(1024);
	struct err err = { 0 };
	struct catalog_drop drop = { .kind = CATALOG_KIND_REVISIONED };

	(void)state;
	catalog_drop_record_put(&drop, &value);
	assert_int_equal(value.len, 0);
	drop.kind = 0;
	assert_int_equal(catalog_drop_record_parse(buf_str(&value), &drop, &err), STATUS_OK);
	assert_int_equal(drop.kind, CATALOG_KIND_REVISIONED);
	assert_int_equal(drop.until_ms, 0);
	drop.kind = TINY_KIND;
	catalog_drop_record_put(&drop, &value);
	drop = (struct catalog_drop){ .until_ms = 1 };
	assert_int_equal(catalog_drop_record_parse(buf_str(&value), &drop, &err), STATUS_OK);
	assert_int_equal(drop.kind, TINY_KIND);
	assert_int_equal(drop.until_ms, 0);
	assert_bytes(&value, "1501154d");
	drop.until_ms = 1000;
	catalog_drop_record_put(&drop, &value);
	drop = (struct catalog_drop){ 0 };
	assert_int_equal(catalog_drop_record_parse(buf_str(&value), &drop, &err), STATUS_OK);
	assert_int_equal(drop.kind, TINY_KIND);
	assert_int_equal(drop.until_ms, 1000);
	assert_bytes(&value, "1502154d1603e8");
	assert_newer(catalog_drop_record_parse(newer(&value), &drop, &err), &err, "up to 2");
	assert_int_equal(catalog_drop_record_parse(STR("junk"), &drop, &err), STATUS_CORRUPT);
}

static void
setting_is_read_as_it_was_put(void **state)
{
	AUTO(buf_release) struct buf value = BUF_INIT(1024);
	struct arena *arena = arena_new(ARENA_BYTES);
	struct err err = { 0 };
	struct str text;

	(void)state;
	catalog_setting_record_put(STR("on"), &value);
	assert_int_equal(catalog_setting_record_parse(buf_str(&value), arena, &text, &err),
			 STATUS_OK);
	assert_true(str_eq(text, STR("on")));
	assert_bytes(&value, "1501026f6e00");
	catalog_setting_record_put((struct str){ NULL, 0 }, &value);
	assert_int_equal(catalog_setting_record_parse(buf_str(&value), arena, &text, &err),
			 STATUS_OK);
	assert_null(text.ptr);
	assert_bytes(&value, "150100");
	assert_newer(catalog_setting_record_parse(newer(&value), arena, &text, &err), &err,
		     "up to 1");
	assert_int_equal(catalog_setting_record_parse(STR("junk"), arena, &text, &err),
			 STATUS_CORRUPT);
	arena_free(arena);
}

static void
move_is_read_as_it_was_put(void **state)
{
	const uint64_t kinds[] = { CATALOG_KIND_REVISIONED, TINY_KIND };
	struct arena *arena = arena_new(ARENA_BYTES);

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(4096);
		struct catalog_move got = { 0 };
		struct err err = { 0 };
		const struct catalog_move move = {
			.kind = kinds[i],
			.state = CATALOG_MOVE_COPYING,
			.id = { 1, 2, 3 },
			.begun_ms = 5,
			.other = STR("embedded:there"),
			.number = 17,
			.cursor = STR("a\0b"),
			.sum = { 1, 2, 3, 4 },
		};

		catalog_move_put(&move, &value);
		assert_int_equal(catalog_move_parse(buf_str(&value), arena, &got, &err), STATUS_OK);
		assert_int_equal(got.kind, move.kind);
		assert_int_equal(got.state, move.state);
		assert_int_equal(got.number, 17);
		assert_true(str_eq(got.cursor, move.cursor));
		assert_memory_equal(&got.sum, &move.sum, sizeof(got.sum));
		if (i == 0)
			assert_bytes(&value,
				     "150102636f7079696e670030010203000000000000000000000000001505"
				     "02656d6265646465643a74686572650015110161"
				     "00ff62001501150215031504");
		assert_newer(catalog_move_parse(newer(&value), arena, &got, &err), &err, "up to 2");
		assert_int_equal(catalog_move_parse(STR("junk"), arena, &got, &err),
				 STATUS_CORRUPT);
	}
	arena_free(arena);
}

static void
counter_of_a_range_is_read_as_it_was_put(void **state)
{
	const struct catalog_db db = { .prefix = STR("\x15\x07"), .kind = tiny_kind() };
	static const char count[] = "\xff\xff\xff\xff\xff\xff\xff\xff";
	AUTO(buf_release) struct buf key = BUF_INIT(1024);
	struct arena *arena = arena_new(ARENA_BYTES);
	struct catalog_range range;
	struct str tail;

	(void)state;
	catalog_key_range(&key, &db, 0, STR("a"), CATALOG_TALLY_END);
	tail = str_skip(buf_str(&key), 6);
	assert_int_equal(catalog_range_parse(tail, str_of(count, 8), arena, &range), STATUS_OK);
	assert_true(str_eq(range.lo, STR("a")));
	assert_true(str_eq(range.hi, CATALOG_TALLY_END));
	assert_int_equal(range.count, -1);
	assert_int_equal(catalog_range_parse(tail, str_of(count, 7), arena, &range),
			 STATUS_CORRUPT);
	assert_int_equal(catalog_range_parse(STR("junk"), str_of(count, 8), arena, &range),
			 STATUS_CORRUPT);
	assert_bytes(&key, "15071502150101610001ff00");
	arena_free(arena);
}

static int
register_kinds(void **state)
{
	(void)state;
	rev_register();
	tiny_register();
	return 0;
}

/* ---- What is no whole record ---- */

typedef enum status parse_record(struct str value, struct arena *arena, struct err *err);

static enum status
parse_description(struct str value, struct arena *arena, struct err *err)
{
	struct catalog_db got = { 0 };

	(void)arena;
	return catalog_description_parse(value, &got, err);
}

static enum status
parse_event(struct str value, struct arena *arena, struct err *err)
{
	struct catalog_event got = { 0 };

	(void)arena;
	return catalog_event_record_parse(value, &got, err);
}

static enum status
parse_drop(struct str value, struct arena *arena, struct err *err)
{
	struct catalog_drop got = { 0 };

	(void)arena;
	return catalog_drop_record_parse(value, &got, err);
}

static enum status
parse_setting(struct str value, struct arena *arena, struct err *err)
{
	struct str got;

	return catalog_setting_record_parse(value, arena, &got, err);
}

static enum status
parse_move(struct str value, struct arena *arena, struct err *err)
{
	struct catalog_move got = { 0 };

	return catalog_move_parse(value, arena, &got, err);
}

static enum status
parse_clock(struct str value, struct arena *arena, struct err *err)
{
	struct steady_state got = { 0 };

	(void)arena;
	return catalog_clock_record_parse(value, &got, err);
}

static enum status
parse_work(struct str value, struct arena *arena, struct err *err)
{
	enum catalog_space space;
	struct str name;

	return catalog_work_record_parse(value, arena, &space, &name, err);
}

static void
a_record_that_is_cut_or_goes_on_is_corrupt(void **state)
{
	static const struct {
		parse_record *parse;
		const char *hex;
		size_t former; /* so many bytes are a whole one, too */
	} records[] = {
		{ parse_description,
		  "150116012c150230abababababababababababababababab1603e8150215141502", 31 },
		{ parse_description,
		  "1502154d16012c150230abababababababababababababababab1603e8150215141502", 33 },
		{ parse_event, "15011502150333ffffffffffffffffffff0000", 0 },
		{ parse_event, "150215011433ffffffffffffffffffff0000154d", 0 },
		{ parse_drop, "1501154d", 0 },
		{ parse_drop, "1502154d1603e8", 0 },
		{ parse_setting, "1501026f6e00", 0 },
		{ parse_setting, "150100", 0 },
		{ parse_move,
		  "150102636f7079696e670030010203000000000000000000000000001505"
		  "02656d6265646465643a7468657265001511016100ff62001501150215031504",
		  0 },
		{ parse_clock, "15011502150315041505", 0 },
		{ parse_work, "15011509023700", 0 },
	};
	struct arena *arena = arena_new(ARENA_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		AUTO(buf_release) struct buf whole = BUF_INIT(1024);
		struct err err = { 0 };

		(void)from_hex(records[i].hex, &whole);
		assert_int_equal(records[i].parse(buf_str(&whole), arena, &err), STATUS_OK);
		/* An empty one may say something: a deleted database of the first kind. */
		for (size_t len = 1; len < whole.len; len++)
			if (len != records[i].former &&
			    records[i].parse(str_of(whole.ptr, len), arena, &err) != STATUS_CORRUPT)
				fail_msg("%s is no record in %zu bytes", records[i].hex, len);
		tuple_put_u64(&whole, 1);
		assert_int_equal(records[i].parse(buf_str(&whole), arena, &err), STATUS_CORRUPT);
	}
	arena_free(arena);
}

/* Each number at its limit, and one beyond; what has to be something else than a number. */
static void
a_record_has_numbers_up_to_their_limits(void **state)
{
	static const struct {
		parse_record *parse;
		const char *good; /* NULL: none */
		const char *bad;
	} records[] = {
		/* Incarnations. */
		{ parse_description,
		  "150116012c15ff30abababababababababababababababab1603e8150215141502",
		  "150116012c16010030abababababababababababababababab1603e8150215141502" },
		{ parse_event, "1501150215ff33ffffffffffffffffffff0000",
		  "1501150216010033ffffffffffffffffffff0000" },
		/* Fences: none is not written. */
		{ parse_description,
		  "150116012c150230abababababababababababababababab1603e8150215141501",
		  "150116012c150230abababababababababababababababab1603e81502151414" },
		{ parse_description, NULL,
		  "150116012c150230abababababababababababababababab1603e8150215141503" },
		/* Not a UUID, but bytes. */
		{ parse_description, NULL, "150116012c15020161001603e8150215141502" },
		/* Kinds of events. */
		{ parse_event, "15011501150333ffffffffffffffffffff0000",
		  "150114150333ffffffffffffffffffff0000" },
		{ parse_event, NULL, "15011503150333ffffffffffffffffffff0000" },
		/* Format 0. */
		{ parse_event, NULL, "141501150333ffffffffffffffffffff0000" },
		{ parse_clock, NULL, "141502150315041505" },
		/* Name spaces. */
		{ parse_work, "150115ff023700", "1501160100023700" },
		{ parse_work, "15011501023700", "150114023700" },
		{ parse_work, NULL, "1501023900023700" },
	};
	struct arena *arena = arena_new(ARENA_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		AUTO(buf_release) struct buf good = BUF_INIT(1024);
		AUTO(buf_release) struct buf bad = BUF_INIT(1024);
		struct err err = { 0 };

		if (records[i].good &&
		    records[i].parse(from_hex(records[i].good, &good), arena, &err) != STATUS_OK)
			fail_msg("%s is a record", records[i].good);
		if (records[i].parse(from_hex(records[i].bad, &bad), arena, &err) != STATUS_CORRUPT)
			fail_msg("%s is no record", records[i].bad);
	}
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(description_is_read_as_it_was_put),
		cmocka_unit_test(description_with_another_end_is_corrupt),
		cmocka_unit_test(description_in_a_format_that_is_not_needed_is_corrupt),
		cmocka_unit_test(description_of_an_unknown_kind_is_a_newer_frond_s),
		cmocka_unit_test(event_is_read_as_it_was_put),
		cmocka_unit_test(deleted_database_is_read_as_it_was_put),
		cmocka_unit_test(setting_is_read_as_it_was_put),
		cmocka_unit_test(move_is_read_as_it_was_put),
		cmocka_unit_test(counter_of_a_range_is_read_as_it_was_put),
		cmocka_unit_test(a_record_that_is_cut_or_goes_on_is_corrupt),
		cmocka_unit_test(a_record_has_numbers_up_to_their_limits),
	};

	return cmocka_run_group_tests(tests, register_kinds, NULL);
}
