/* Definitions of indexes as people read them, and what a set of them tells writers. */
#include "common.h"

#include "index/engine/def.h"
#include "index/engine/draw.h"
#include "index/bson/form.h"

static struct str path_a[] = { { "a", 1 } }, path_b[] = { { "b", 1 }, { "c", 1 } };

static void
a_definition_is_drawn_with_all_of_its_columns(void **state)
{
	const struct index_column columns[] = { { path_a, 1, false }, { path_b, 2, true } };
	struct index_def def = { .form = &index_bson_form,
				 .number = 1,
				 .state = INDEX_READY,
				 .flags = INDEX_BSON | INDEX_SPARSE,
				 .name = STR("n"),
				 .owner = STR("o"),
				 .columns = columns,
				 .column_count = 2 };
	static const struct {
		uint32_t hashed;
		const char *drawn;
	} cases[] = {
		{ 0, "ready, \"n\" of \"o\", on [\"a\", desc \"b\" \"c\"], sparse" },
		{ 1, "ready, \"n\" of \"o\", on [hashed \"a\", desc \"b\" \"c\"], sparse" },
		{ 2, "ready, \"n\" of \"o\", on [\"a\", desc hashed \"b\" \"c\"], sparse" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf value = BUF_INIT(4096), text = BUF_INIT(4096);

		def.hashed = cases[i].hashed;
		(void)index_def_put(&value, &def);
		assert_int_equal(index_draw_def(&index_bson_form, buf_str(&value), &text),
				 STATUS_OK);
		buf_append_byte(&text, 0);
		assert_int_equal(buf_status(&text), STATUS_OK);
		if (!strstr(text.ptr, cases[i].drawn))
			fail_msg("%s is not in %s", cases[i].drawn, text.ptr);
		buf_release(&value);
		buf_release(&text);
	}
}

static struct str
record_of(const struct index_def *def)
{
	AUTO(buf_release) struct buf value = BUF_INIT(INDEX_RECORD_BYTES);

	(void)index_def_put(&value, def);
	assert_int_equal(buf_status(&value), STATUS_OK);
	return arena_dup(arena, buf_str(&value));
}

static enum status
parse(struct str record, struct index_def *ret)
{
	struct err err = { 0 };

	return index_def_parse(&index_bson_form, record, arena, ret, &err);
}

/* Whatever is wrong in one. */
static void
a_damaged_definition_is_corrupt(void **state)
{
	const struct index_column columns[] = { { path_a, 1, false }, { path_b, 2, true } };
	const struct index_def good = { .form = &index_bson_form,
					.state = INDEX_READY,
					.flags = INDEX_BSON,
					.order = DOC_KEY_TYPED,
					.name = STR("n"),
					.owner = STR("o"),
					.columns = columns,
					.column_count = 2,
					.hashed = 2 };
	struct index_def bad[9], read;
	struct buf longer = BUF_INIT(INDEX_RECORD_BYTES);
	struct str record = record_of(&good);

	(void)state;
	assert_int_equal(parse(record, &read), STATUS_OK);
	assert_true(str_eq(record_of(&read), record));
	for (size_t len = 0; len < record.len; len++)
		assert_int_equal(parse(str_of(record.ptr, len), &read), STATUS_CORRUPT);
	buf_append_str(&longer, record);
	tuple_put_u64(&longer, 0);
	assert_int_equal(parse(buf_str(&longer), &read), STATUS_CORRUPT);
	buf_release(&longer);
	for (size_t i = 0; i < COUNT(bad); i++)
		bad[i] = good;
	bad[0].state = (enum index_state)0;
	bad[1].state = (enum index_state)(INDEX_STALE + 1);
	bad[2].flags = INDEX_BSON | (INDEX_FLAGS + 1);
	bad[3].flags = INDEX_TYPED;
	bad[4].flags = INDEX_BSON | INDEX_TYPED;
	bad[5].order = (enum doc_key_order)(DOC_KEY_TYPED + 1);
	bad[6].hashed = 3;
	bad[7].column_count = bad[7].hashed = 0;
	bad[8].column_count = bad[8].carried = 1; /* entries of this form carry no columns */
	for (size_t i = 0; i < COUNT(bad); i++)
		if (parse(record_of(&bad[i]), &read) != STATUS_CORRUPT)
			fail_msg("%zu is not corrupt", i);
}

static void
a_build_enters_what_was_written_before_its_index(void **state)
{
	struct index_def def = { .state = INDEX_BUILDING, .created = { { 0, 5 } } };
	const struct index_def *kept[] = { &def };
	const struct index_set set = { .kept = kept, .kept_count = 1 };
	const struct catalog_seq before = { { 0, 4 } }, same = { { 0, 5 } }, after = { { 0, 6 } };

	(void)state;
	assert_true(index_set_builds(&set, &before));
	assert_true(index_set_builds(&set, &same));
	assert_false(index_set_builds(&set, &after));
	def.state = INDEX_READY;
	assert_false(index_set_builds(&set, &before));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_definition_is_drawn_with_all_of_its_columns),
		TEST(a_damaged_definition_is_corrupt),
		TEST(a_build_enters_what_was_written_before_its_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
