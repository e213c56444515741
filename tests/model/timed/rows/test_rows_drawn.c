/* What inspect draws of rows and values, and of rows asked for by what it draws of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/store_format.h"
#include "kv/tuple.h"
#include "model/timed/rows/rows.h"
#include "model/timed/timed_int.h"
#include "store.h"

enum {
	ARENA_BYTES = 1024 * 1024,
	ROWS = 3,
};

#define TABLE "table"

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
};

/* ("it's", 1) and so on, of a table (a, b desc). */
static enum status
fill_body(struct kv_tx *tx, void *arg)
{
	struct timed_key_column columns[] = { { .name = STR("a") },
					      { .name = STR("b"), .descending = true } };
	const struct timed_schema schema = { columns, 1, 2, (struct str[]){ STR("c") }, 1 };
	struct catalog_db *db;
	enum status status = STATUS_OK;
	struct timed t;

	(void)arg;
	TRY(timed_create(tx, STR(TABLE), &schema, 0, NULL));
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_ROWS, STR(TABLE), &db, NULL));
	timed_init(&t, tx, db, NULL, NULL);
	for (int64_t b = 1; b <= ROWS && status == STATUS_OK; b++) {
		struct doc_scalar parts[] = { { .kind = DOC_TEXT, .text = STR("it's") },
					      { .kind = DOC_INT64, .n = b } };
		const struct timed_key key = { parts, 2 };

		status = timed_insert(&t, &key, (struct timed_expiry){ 0 });
	}
	catalog_db_unref(db);
	return status;
}

static int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err = { 0 };
	char url[256];

	test_show_failures();
	timed_rows_register();
	test_make_dir("drawn", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &err), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
	assert_int_equal(kv_run(f->store, fill_body, NULL, NULL, &err), STATUS_OK);
	*state = f;
	return 0;
}

static int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	arena_free(f->arena);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

/* ---- Drawing ---- */

struct drawing {
	const char *id; /* NULL: of all rows */
	struct buf out;
	struct catalog_db *db;
	struct kv_tx *tx;
};

static enum status
draw_prefix(void *arg, struct str prefix)
{
	struct drawing *d = arg;
	AUTO(buf_release) struct buf end = BUF_INIT(TIMED_KEY_BYTES);
	size_t space_len = d->db->prefix.len + TIMED_SPACE_BYTES;
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;

	buf_append_str(&end, prefix);
	buf_append_byte(&end, 0xff);
	TRY(kv_scan_init(&scan, d->tx, prefix, buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		assert_true(d->db->kind->draw_pair(d->db, TIMED_SPACE_ROWS,
						   str_skip(pair.key, space_len), pair.value,
						   &d->out));
		buf_append_byte(&d->out, '\n');
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
drawing_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf all = BUF_INIT(TIMED_KEY_BYTES);
	struct drawing *d = arg;
	enum status status;

	buf_clear(&d->out);
	d->tx = tx;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_ROWS, STR(TABLE), &d->db, NULL));
	timed_key_space(&all, d->db, TIMED_SPACE_ROWS);
	status = d->id ? d->db->kind->inspect(tx, d->db, str_from_cstr(d->id), NULL, draw_prefix, d)
		       : draw_prefix(d, buf_str(&all));
	catalog_db_unref(d->db);
	return status;
}

static const char *
inspected(struct fixture *f, const char *id)
{
	struct drawing d = { .id = id, .out = BUF_INIT(ARENA_BYTES) };
	struct str ret;

	assert_int_equal(kv_run_read(f->store, drawing_body, &d, NULL), STATUS_OK);
	ret = arena_dup(f->arena, buf_str(&d.out));
	buf_release(&d.out);
	return ret.ptr;
}

/* ---- Tests ---- */

static void
rows_are_found_by_what_is_drawn_of_them(void **state)
{
	static const struct {
		const char *id; /* behind the hash */
		size_t rows;
	} cases[] = {
		{ "", ROWS },
		{ ", 'it''s'", ROWS },
		{ ", 'it''s')", ROWS },
		{ ", 'it''s', 2", 1 },
		{ ", 'it''s', 2)", 1 },
		{ ", 'it''s', 4)", 0 },
		{ ", 'it''s', 02)", 0 },
		{ ", 'it''s', 2, 2)", 0 },
		{ ", 'it''s', 2) ", 0 },
		{ ", 'it''s", 0 },
		{ ", 'it's'", 0 },
		{ ", 'its'", 0 },
		{ ", ", 0 },
		{ ",'it''s'", 0 },
		{ "; 'it''s'", 0 },
	};
	struct fixture *f = *state;
	const char *hash;

	hash = arena_printf(f->arena, "%.7s", inspected(f, NULL)).ptr;
	assert_true(str_starts_with(str_from_cstr(hash), STR("(0x")));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *id = arena_printf(f->arena, "%s%s", hash, cases[i].id).ptr;
		const char *drawn = inspected(f, id);
		size_t lines = 0;

		for (const char *c = drawn; *c; c++)
			lines += *c == '\n';
		if (lines != cases[i].rows)
			fail_msg("%s: %s", id, drawn);
		if (lines == 1)
			assert_non_null(strstr(drawn, ", 'it''s', 2), liveness_column_id"));
	}
	assert_string_equal(inspected(f, hash + 1), "");
	assert_string_equal(inspected(f, "(0x"), "");
}

static enum status
zero_body(struct kv_tx *tx, void *arg)
{
	struct doc_scalar parts[] = { { .kind = DOC_TEXT, .text = STR("k79689") },
				      { .kind = DOC_INT64, .n = 1 } };
	const struct timed_key key = { parts, 2 };
	struct catalog_db *db;
	enum status status;
	struct timed t;

	(void)arg;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_ROWS, STR(TABLE), &db, NULL));
	timed_init(&t, tx, db, NULL, NULL);
	status = timed_insert(&t, &key, (struct timed_expiry){ 0 });
	catalog_db_unref(db);
	return status;
}

/* The hash of the key is 0, which a number that cannot be read is not taken for. */
static void
a_number_that_is_none_leads_to_no_row(void **state)
{
	static const char *const ids[] = {
		"", "(", "(0x", "(0x000", "(0x00zz", "(0x00 0", "0x0000"
	};
	struct fixture *f = *state;

	assert_int_equal(kv_run(f->store, zero_body, NULL, NULL, NULL), STATUS_OK);
	assert_true(str_starts_with(str_from_cstr(inspected(f, "(0x0000")),
				    STR("(0x0000, 'k79689', 1), ")));
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		assert_string_equal(inspected(f, ids[i]), "");
}

/* The column may be one that the schema knew no more, or not yet, when it was read. */
static void
a_column_that_the_schema_lacks_is_drawn_by_its_number(void **state)
{
	const struct str columns[] = { STR("c"), STR("d") };
	const struct timed_schema schema = { .columns = (struct str *)(uintptr_t)columns,
					     .column_count = 2 };
	struct timed_step steps[] = { { .column = 2 },
				      { .key = { .kind = DOC_TEXT, .text = STR("x") } } };
	const struct timed_place place = { .path = { steps, 2 } };
	AUTO(buf_release) struct buf drawn = BUF_INIT(ARENA_BYTES);

	(void)state;
	timed_draw_place(&schema, &place, &drawn);
	buf_append_byte(&drawn, ' ');
	steps[0].column = 3;
	timed_draw_place(&schema, &place, &drawn);
	assert_true(str_eq(buf_str(&drawn),
			   STR("(0x0000), d_column_id, 'x' (0x0000), column_id 3, 'x'")));
}

static void
bytes_that_are_no_text_are_drawn_one_by_one(void **state)
{
	AUTO(buf_release) struct buf drawn = BUF_INIT(ARENA_BYTES);

	(void)state;
	timed_draw_text(STR("\xff"
			    "it's \xc3\xa4\xc3\n\xe2\x82"
			    "z"),
			&drawn);
	assert_true(str_eq(buf_str(&drawn), STR("'\\xffit''s \xc3\xa4\\xc3\\x0a\\xe2\\x82z'")));
}

/* They are of one sign, so one of them has it where the others are zero. */
static void
a_duration_has_the_sign_of_its_parts(void **state)
{
	static const struct {
		struct doc_scalar s;
		const char *drawn;
	} cases[] = {
		{ { .kind = DOC_DURATION }, "0ns" },
		{ { .kind = DOC_DURATION, .months = 1, .days = 2, .n = 3 }, "1mo2d3ns" },
		{ { .kind = DOC_DURATION, .months = -1 }, "-1mo" },
		{ { .kind = DOC_DURATION, .days = -2 }, "-2d" },
		{ { .kind = DOC_DURATION, .n = -3 }, "-3ns" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(buf_release) struct buf drawn = BUF_INIT(100);

		timed_draw_scalar(&cases[i].s, &drawn);
		assert_true(str_eq(buf_str(&drawn), str_from_cstr(cases[i].drawn)));
	}
}

static void
the_bytes_of_a_bucket_are_drawn_if_they_can_be_read(void **state)
{
	const struct catalog_db none = { .extension = NULL };
	AUTO(buf_release) struct buf drawn = BUF_INIT(100);
	AUTO(buf_release) struct buf tail = BUF_INIT(100);
	const struct str five = STR("\5\0\0\0\0\0\0\0");

	(void)state;
	tuple_put_u64(&tail, 7);
	assert_true(timed_draw_pair(&none, TIMED_SPACE_HELD, buf_str(&tail), five, &drawn));
	assert_true(str_eq(buf_str(&drawn), STR("bucket 7: 5")));
	assert_false(timed_draw_pair(&none, TIMED_SPACE_HELD, buf_str(&tail), STR("five"), &drawn));
	tuple_put_u64(&tail, 7);
	assert_false(timed_draw_pair(&none, TIMED_SPACE_HELD, buf_str(&tail), five, &drawn));
	assert_true(str_eq(buf_str(&drawn), STR("bucket 7: 5")));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_are_found_by_what_is_drawn_of_them,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_number_that_is_none_leads_to_no_row,
						fixture_setup, fixture_teardown),
		cmocka_unit_test(a_duration_has_the_sign_of_its_parts),
		cmocka_unit_test(the_bytes_of_a_bucket_are_drawn_if_they_can_be_read),
		cmocka_unit_test(bytes_that_are_no_text_are_drawn_one_by_one),
		cmocka_unit_test(a_column_that_the_schema_lacks_is_drawn_by_its_number),
	};

	return cmocka_run_group_tests_name("rows_drawn", tests, NULL, NULL);
}
