/* The protocol for rows: frames and bodies of requests, whole, cut and spoiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "door/rows/wire/request.h"

enum {
	MOST_BYTES = 64 * 1024,
	ARENA_BYTES = 1024 * 1024,
};

static void
put_table(struct buf *out)
{
	rows_put_str(out, STR("shop"));
	rows_put_str(out, STR("books"));
	buf_append(out, "0123456789abcdef", ROWS_ID_BYTES);
}

static void
put_scan(struct buf *out)
{
	put_table(out);
	rows_put_u8(out, ROWS_SCAN_REVERSE | ROWS_SCAN_SUMS);
	rows_put_u16(out, 1);
	rows_put_u32(out, 7);
	rows_put_u8(out, ROWS_SUM_GREATEST);
	rows_put_u8(out, 1);
	rows_put_value(out, STR("eq"));
	rows_put_u8(out, ROWS_BOUND_INCLUSIVE);
	rows_put_u8(out, 2);
	rows_put_value(out, STR("f1"));
	rows_put_value(out, STR("f2"));
	rows_put_u8(out, ROWS_BOUND_NONE);
	rows_put_u8(out, 0);
	rows_put_u16(out, 2);
	rows_put_u32(out, 8);
	rows_put_u8(out, ROWS_TEST_INTERVAL);
	rows_put_u8(out, ROWS_BOUND_EXCLUSIVE);
	rows_put_value(out, STR("x"));
	rows_put_u8(out, ROWS_BOUND_NONE);
	rows_put_null(out);
	rows_put_u32(out, 9);
	rows_put_u8(out, ROWS_TEST_NULL);
	rows_put_u8(out, ROWS_BOUND_NONE);
	rows_put_null(out);
	rows_put_u8(out, ROWS_BOUND_NONE);
	rows_put_null(out);
	rows_put_u32(out, 10);
	rows_put_u32(out, 20);
	rows_put_u32(out, 30);
	rows_put_long(out, STR("place"));
}

static void
put_get(struct buf *out)
{
	put_table(out);
	rows_put_u8(out, 0);
	rows_put_u16(out, 1);
	rows_put_u32(out, 7);
	rows_put_u32(out, 2);
	rows_put_u8(out, 1);
	rows_put_value(out, STR("a"));
	rows_put_u8(out, 2);
	rows_put_value(out, STR("b"));
	rows_put_value(out, STR(""));
}

static void
put_write(struct buf *out)
{
	put_table(out);
	rows_put_u8(out, 0);
	rows_put_u16(out, 2);
	rows_put_u32(out, 7);
	rows_put_u32(out, 8);
	rows_put_u32(out, 2);
	rows_put_u8(out, ROWS_OP_PUT);
	rows_put_u8(out, 1);
	rows_put_value(out, STR("a"));
	rows_put_null(out);
	rows_put_u32(out, (uint32_t)-2);
	rows_put_u8(out, ROWS_OP_DELETE);
	rows_put_u8(out, 1);
	rows_put_value(out, STR("b"));
}

static void
put_create(struct buf *out)
{
	rows_put_str(out, STR("shop"));
	rows_put_str(out, STR("books"));
	rows_put_u16(out, 2);
	rows_put_str(out, STR("id"));
	rows_put_u8(out, 3);
	rows_put_u8(out, ROWS_ROLE_RANGE);
	rows_put_u8(out, ROWS_COLUMN_DESCENDING);
	rows_put_str(out, STR("title"));
	rows_put_u8(out, 8);
	rows_put_u8(out, ROWS_ROLE_REGULAR);
	rows_put_u8(out, 0);
}

static void
put_alter(struct buf *out)
{
	put_table(out);
	rows_put_u16(out, 1);
	rows_put_str(out, STR("year"));
	rows_put_u8(out, 2);
	rows_put_u16(out, 1);
	rows_put_str(out, STR("old"));
	rows_put_u16(out, 1);
	rows_put_str(out, STR("id"));
	rows_put_str(out, STR("nr"));
}

/* ---- Whole ---- */

static void
a_header_is_read_as_it_was_written(void **state)
{
	struct buf out = BUF_SHORT(MOST_BYTES);
	size_t from = rows_frame_begin(&out, 0xfffe, ROWS_DONE);
	struct rows_header h;

	(void)state;
	rows_put_u64(&out, 1);
	rows_frame_set_code(&out, from, ROWS_ERROR);
	rows_frame_end(&out, from);
	h = rows_header_read(buf_str(&out));
	assert_int_equal(h.length, 8);
	assert_int_equal(h.code, ROWS_ERROR);
	assert_int_equal(h.reserved, 0);
	assert_int_equal(h.number, 0xfffe);
	buf_release(&out);
}

static void
a_scan_is_read_as_it_was_written(void **state)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct buf out = BUF_SHORT(MOST_BYTES);
	struct err err = { 0 };
	struct rows_scan scan;

	(void)state;
	put_scan(&out);
	assert_int_equal(rows_scan_read(buf_str(&out), arena, &scan, &err), STATUS_OK);
	assert_true(str_eq(scan.table.schema, STR("shop")));
	assert_true(str_eq(scan.table.name, STR("books")));
	assert_int_equal(scan.table.id.len, ROWS_ID_BYTES);
	assert_true(scan.reverse && scan.sums);
	assert_int_equal(scan.column_count, 1);
	assert_int_equal(scan.columns[0], 7);
	assert_int_equal(scan.ops[0], ROWS_SUM_GREATEST);
	assert_int_equal(scan.equal_count, 1);
	assert_int_equal(scan.from.kind, ROWS_BOUND_INCLUSIVE);
	assert_int_equal(scan.from.count, 2);
	assert_true(str_eq(scan.from.values[1].bytes, STR("f2")));
	assert_int_equal(scan.to.kind, ROWS_BOUND_NONE);
	assert_int_equal(scan.filter_count, 2);
	assert_int_equal(scan.filters[0].from_kind, ROWS_BOUND_EXCLUSIVE);
	assert_int_equal(scan.filters[1].test, ROWS_TEST_NULL);
	assert_int_equal(scan.rows, 10);
	assert_int_equal(scan.bytes, 20);
	assert_int_equal(scan.sample, 30);
	assert_true(str_eq(scan.place, STR("place")));
	buf_release(&out);
	arena_free(arena);
}

/* Without its sums, or without a column, it asks for nothing. */
static void
groups_of_a_scan_are_of_columns_and_with_sums(void **state)
{
	static const struct {
		unsigned flags, columns;
		enum status status;
	} cases[] = {
		{ ROWS_SCAN_SUMS | ROWS_SCAN_GROUPS, 1, STATUS_OK },
		{ ROWS_SCAN_SUMS | ROWS_SCAN_GROUPS, ROWS_KEY_COLUMNS, STATUS_OK },
		{ ROWS_SCAN_SUMS | ROWS_SCAN_GROUPS, ROWS_KEY_COLUMNS + 1, STATUS_INVALID },
		{ ROWS_SCAN_SUMS | ROWS_SCAN_GROUPS, 0, STATUS_INVALID },
		{ ROWS_SCAN_GROUPS, 1, STATUS_INVALID },
	};
	struct buf out = BUF_SHORT(MOST_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct arena *arena = arena_new(ARENA_BYTES);
		struct err err = { 0 };
		struct rows_scan scan;

		buf_clear(&out);
		put_table(&out);
		rows_put_u8(&out, (uint8_t)cases[i].flags);
		rows_put_u8(&out, (uint8_t)cases[i].columns);
		rows_put_u16(&out, 0);
		for (unsigned zero = 0; zero < 1 + 2 + 2; zero++)
			rows_put_u8(&out, 0);
		rows_put_u16(&out, 0);
		for (unsigned zero = 0; zero < 4; zero++)
			rows_put_u32(&out, 0);
		assert_int_equal(rows_scan_read(buf_str(&out), arena, &scan, &err),
				 cases[i].status);
		if (cases[i].status == STATUS_OK)
			assert_int_equal(scan.groups, cases[i].columns);
		arena_free(arena);
	}
	buf_release(&out);
}

static void
keys_and_writes_are_taken_one_by_one(void **state)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct buf out = BUF_SHORT(MOST_BYTES);
	struct rows_value values[2];
	struct err err = { 0 };
	struct rows_write write;
	struct rows_key key;
	struct rows_get get;
	enum rows_op op;

	(void)state;
	put_get(&out);
	assert_int_equal(rows_get_read(buf_str(&out), arena, &get, &err), STATUS_OK);
	assert_int_equal(get.key_count, 2);
	rows_key_next(&get.keys, &key);
	assert_int_equal(key.count, 1);
	rows_key_next(&get.keys, &key);
	assert_int_equal(key.count, 2);
	assert_int_equal(key.values[1].bytes.len, 0);
	buf_clear(&out);
	put_write(&out);
	assert_int_equal(rows_write_read(buf_str(&out), arena, &write, &err), STATUS_OK);
	assert_int_equal(write.count, 2);
	rows_write_next(&write.ops, 2, &op, &key, values);
	assert_int_equal(op, ROWS_OP_PUT);
	assert_int_equal(values[0].presence, ROWS_NULL);
	assert_int_equal(values[1].presence, ROWS_ABSENT);
	rows_write_next(&write.ops, 2, &op, &key, values);
	assert_int_equal(op, ROWS_OP_DELETE);
	assert_true(str_eq(key.values[0].bytes, STR("b")));
	buf_release(&out);
	arena_free(arena);
}

static void
schemas_are_read_as_they_were_written(void **state)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct buf out = BUF_SHORT(MOST_BYTES);
	struct err err = { 0 };
	struct rows_create create;
	struct rows_alter alter;

	(void)state;
	put_create(&out);
	assert_int_equal(rows_create_read(buf_str(&out), arena, &create, &err), STATUS_OK);
	assert_int_equal(create.count, 2);
	assert_true(create.columns[0].descending);
	assert_int_equal(create.columns[1].role, ROWS_ROLE_REGULAR);
	buf_clear(&out);
	put_alter(&out);
	assert_int_equal(rows_alter_read(buf_str(&out), arena, &alter, &err), STATUS_OK);
	assert_int_equal(alter.add_count, 1);
	assert_int_equal(alter.add[0].kind, 2);
	assert_int_equal(alter.drop_count, 1);
	assert_true(str_eq(alter.rename[0].to, STR("nr")));
	buf_release(&out);
	arena_free(arena);
}

/* ---- Cut and spoiled ---- */

static enum status
read_body(unsigned which, struct str body, struct arena *arena, struct err *err)
{
	struct rows_create create;
	struct rows_alter alter;
	struct rows_write write;
	struct rows_scan scan;
	struct rows_get get;

	switch (which) {
	case 0:
		return rows_scan_read(body, arena, &scan, err);
	case 1:
		return rows_get_read(body, arena, &get, err);
	case 2:
		return rows_write_read(body, arena, &write, err);
	case 3:
		return rows_create_read(body, arena, &create, err);
	default:
		return rows_alter_read(body, arena, &alter, err);
	}
}

static void
a_body_that_is_cut_or_longer_is_malformed(void **state)
{
	static void (*const puts[])(struct buf *) = { put_scan, put_get, put_write, put_create,
						      put_alter };
	struct arena *arena = arena_new(ARENA_BYTES);
	struct arena_mark mark = arena_mark(arena);
	struct buf out = BUF_SHORT(MOST_BYTES);
	struct err err = { 0 };

	(void)state;
	for (unsigned which = 0; which < 5; which++) {
		buf_clear(&out);
		puts[which](&out);
		for (size_t len = 0; len <= out.len; len++) {
			assert_int_equal(read_body(which, str_of(out.ptr, len), arena, &err),
					 len == out.len ? STATUS_OK : STATUS_INVALID);
			arena_reset(arena, mark);
		}
		rows_put_u8(&out, 0);
		assert_int_equal(read_body(which, buf_str(&out), arena, &err), STATUS_INVALID);
		assert_string_equal(err.text, "the request is malformed");
	}
	buf_release(&out);
	arena_free(arena);
}

static void
what_version_1_does_not_know_is_malformed(void **state)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct buf out = BUF_SHORT(MOST_BYTES);
	const size_t flags_at = 2 + 4 + 2 + 5 + ROWS_ID_BYTES;
	struct err err = { 0 };

	(void)state;
	put_get(&out);
	out.ptr[flags_at] = 1;
	assert_int_equal(read_body(1, buf_str(&out), arena, &err), STATUS_INVALID);
	buf_clear(&out);
	put_write(&out);
	out.ptr[flags_at + 1 + 2 + 8 + 4] = ROWS_OPS_END;
	assert_int_equal(read_body(2, buf_str(&out), arena, &err), STATUS_INVALID);
	buf_clear(&out);
	put_scan(&out);
	out.ptr[flags_at] = 4;
	assert_int_equal(read_body(0, buf_str(&out), arena, &err), STATUS_INVALID);
	buf_release(&out);
	arena_free(arena);
}

/* A count that the body cannot have takes no memory. */
static void
a_count_beyond_the_body_is_malformed(void **state)
{
	struct buf out = BUF_SHORT(MOST_BYTES);
	struct rows_in in;

	(void)state;
	rows_put_u32(&out, UINT32_MAX);
	rows_put_u32(&out, 1);
	in = (struct rows_in){ .rest = buf_str(&out) };
	assert_int_equal(rows_in_count(&in, rows_in_u32(&in), INT32_MAX, 4), 0);
	assert_true(in.bad);
	in = (struct rows_in){ .rest = buf_str(&out) };
	assert_int_equal(rows_in_count(&in, 2, 2, 4), 2);
	assert_false(in.bad);
	assert_int_equal(rows_in_count(&in, 3, 4, 4), 0);
	assert_true(in.bad);
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_is_read_as_it_was_written),
		cmocka_unit_test(a_scan_is_read_as_it_was_written),
		cmocka_unit_test(groups_of_a_scan_are_of_columns_and_with_sums),
		cmocka_unit_test(keys_and_writes_are_taken_one_by_one),
		cmocka_unit_test(schemas_are_read_as_they_were_written),
		cmocka_unit_test(a_body_that_is_cut_or_longer_is_malformed),
		cmocka_unit_test(what_version_1_does_not_know_is_malformed),
		cmocka_unit_test(a_count_beyond_the_body_is_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
