/* Definitions of indexes as people read them, and what a set of them tells writers. */
#include "common.h"

#include "index/engine/def.h"
#include "index/engine/draw.h"
#include "index/bson/form.h"
#include "index/json/form.h"
#include "index/typed/form.h"

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
		uint64_t many;
		const char *drawn;
	} cases[] = {
		{ 0, 0, "ready, \"n\" of \"o\", on [\"a\", desc \"b\" \"c\"], sparse, BSON)" },
		{ 1, 0, "on [hashed \"a\", desc \"b\" \"c\"], sparse, BSON)" },
		{ 2, 0, "on [\"a\", desc hashed \"b\" \"c\"], sparse, BSON)" },
		{ 0, 1, "BSON, arrays at [\"a\"])" },
		{ 0, 3, "BSON, arrays at [\"a\", \"b\" \"c\"])" },
		{ 0, UINT64_C(2) << INDEX_CUTS_SHIFT, "BSON, cut values at [\"b\" \"c\"])" },
		{ 0, UINT64_C(1) << INDEX_CUTS_SHIFT | 2,
		  "BSON, arrays at [\"b\" \"c\"], cut values at [\"a\"])" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf value = BUF_INIT(4096), text = BUF_INIT(4096);

		def.hashed = cases[i].hashed;
		def.many = cases[i].many;
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

/* ---- Formats ---- */

static struct str long_path[INDEX_PATH_NAMES + 1];
static struct index_column many_columns[INDEX_COLUMNS + 1];

/* A definition of each format: the least one that has all of it. */
static struct index_def
of_format(unsigned format)
{
	static const struct index_column columns[] = { { path_a, 1, false }, { path_b, 2, true } };
	struct index_def def = { .form = &index_bson_form,
				 .state = INDEX_READY,
				 .flags = INDEX_BSON,
				 .order = DOC_KEY_TYPED,
				 .name = STR("n"),
				 .owner = STR("o"),
				 .collator = STR("1/2"),
				 .created = { { 42, 1, 2 } },
				 .columns = columns,
				 .column_count = 2,
				 .many = 3 };

	for (size_t i = 0; i < COUNT(long_path); i++)
		long_path[i] = STR("n");
	for (size_t i = 0; i < COUNT(many_columns); i++)
		many_columns[i] = columns[0];
	if (format == INDEX_FORMAT_LEAST) {
		def.form = &index_json_form;
		def.flags = 0;
		def.many = 0;
		def.filter = STR("{}");
	} else if (format == INDEX_FORMAT_ORDERED) {
		def.collation = STR("\x05\0\0\0\0");
		def.filter = def.collation;
		def.spec = def.collation;
	} else if (format == INDEX_FORMAT_PATHS || format == INDEX_FORMAT) {
		static const struct index_column longer[] = { { long_path, 3, false },
							      { path_a, 1, false } };

		def.form = &index_typed_form;
		def.flags = INDEX_TYPED;
		def.columns = longer;
		if (format == INDEX_FORMAT)
			def.column_count = def.carried = 1;
	}
	return def;
}

static enum status
read_again(const struct index_def *def, struct str record, struct arena *in, struct index_def *ret)
{
	struct err err = { 0 };

	return index_def_parse(def->form, record, in, ret, &err);
}

static void
a_definition_of_each_format_is_read_whole_or_not_at_all(void **state)
{
	(void)state;
	for (unsigned format = INDEX_FORMAT_LEAST; format <= INDEX_FORMAT; format++) {
		const struct index_def def = of_format(format);
		AUTO(buf_release) struct buf bytes = BUF_INIT(INDEX_RECORD_BYTES);
		struct str record = record_of(&def);
		enum status status = STATUS_LIMIT;
		struct index_def read;

		assert_int_equal(index_def_format(&def), format);
		assert_int_equal((unsigned char)record.ptr[1], format);
		if (read_again(&def, record, arena, &read) != STATUS_OK)
			fail_msg("format %u is not read", format);
		assert_true(str_eq(record_of(&read), record));
		assert_int_equal(read.column_count, def.column_count);
		assert_int_equal(read.carried, def.carried);
		for (size_t len = 0; len < record.len; len++)
			if (read_again(&def, str_of(record.ptr, len), arena, &read) !=
			    STATUS_CORRUPT)
				fail_msg("format %u is read of %zu bytes", format, len);
		/* Nothing comes behind it, and no other format says the same. */
		buf_append_str(&bytes, record);
		tuple_put_u64(&bytes, 0);
		assert_int_equal(read_again(&def, buf_str(&bytes), arena, &read), STATUS_CORRUPT);
		buf_set(&bytes, record);
		for (unsigned other = 0; other <= INDEX_FORMAT + 1; other++) {
			bytes.ptr[1] = (char)other;
			status = read_again(&def, buf_str(&bytes), arena, &read);
			if (other == format)
				assert_int_equal(status, STATUS_OK);
			else if (status != (other > INDEX_FORMAT ? STATUS_NEWER : STATUS_CORRUPT))
				fail_msg("format %u as %u: %s", format, other, status_name(status));
		}
		for (size_t room = 0, enough = 0; enough < 3; room += 16) {
			struct arena *small = arena_new(room);

			status = read_again(&def, record, small, &read);
			assert_int_equal(status, arena_is_full(small) ? STATUS_LIMIT : STATUS_OK);
			enough += status == STATUS_OK;
			arena_free(small);
		}
	}
}

static void
a_definition_has_parts_up_to_their_limits(void **state)
{
	(void)state;
	for (uint32_t more = 0; more < 2; more++) {
		const enum status expected = more ? STATUS_CORRUPT : STATUS_OK;
		struct index_def def = of_format(INDEX_FORMAT_LEAST), read;
		struct index_column column = { long_path, INDEX_PATH_NAMES + more, false };
		char collation[INDEX_COLLATION_BYTES + 1] = { 0 };
		const uint32_t bytes = INDEX_COLLATION_BYTES + more;

		def.columns = &column;
		def.column_count = 1;
		assert_int_equal(read_again(&def, record_of(&def), arena, &read), expected);
		column.path_count = !more;
		assert_int_equal(read_again(&def, record_of(&def), arena, &read), expected);
		def.columns = many_columns;
		def.column_count = INDEX_COLUMNS + more;
		assert_int_equal(read_again(&def, record_of(&def), arena, &read), expected);
		/* One column at least is not carried. */
		def = of_format(INDEX_FORMAT);
		def.column_count = 1 - more;
		def.carried = 1 + more;
		assert_int_equal(read_again(&def, record_of(&def), arena, &read), expected);
		def = of_format(INDEX_FORMAT_ORDERED);
		/* A document of one binary value. */
		memcpy(collation, &bytes, sizeof(bytes));
		memcpy(collation + 4,
		       "\x05"
		       "b",
		       3);
		memcpy(collation + 7, &(uint32_t){ bytes - 13 }, 4);
		def.collation = str_of(collation, bytes);
		assert_int_equal(read_again(&def, record_of(&def), arena, &read), expected);
		/* A collation that is damaged, a spec, a filter. */
		def = of_format(INDEX_FORMAT_ORDERED);
		def.collation = more ? STR("\x05\0\0\0\1") : def.collation;
		assert_int_equal(read_again(&def, record_of(&def), arena, &read), expected);
		def = of_format(INDEX_FORMAT_ORDERED);
		def.spec = more ? STR("\x05\0\0\0\1") : STR("");
		assert_int_equal(read_again(&def, record_of(&def), arena, &read), expected);
		def = of_format(INDEX_FORMAT_ORDERED);
		def.filter = more ? STR("\x05\0\0\0\1") : (struct str){ NULL, 0 };
		assert_int_equal(read_again(&def, record_of(&def), arena, &read), expected);
	}
}

/* ---- States ---- */

static void
an_index_of_another_collation_is_stale_and_not_read(void **state)
{
	struct index_def def = of_format(INDEX_FORMAT_LEAST);

	(void)state;
	def.order = DOC_KEY_COUCH;
	for (unsigned s = INDEX_BUILDING; s <= INDEX_STALE; s++)
		for (int same = 0; same < 2; same++) {
			bool lives = s == INDEX_BUILDING || s == INDEX_READY;

			def.state = (enum index_state)s;
			def.collator = same ? index_collator(false) : STR("0/0");
			assert_int_equal(index_is_stale(&def), lives && !same);
			assert_int_equal(index_is_readable(&def), s == INDEX_READY && same);
			assert_int_equal(index_def_is_live(&def), lives || s == INDEX_STALE);
		}
	/* What compares bytes is of no collation. */
	def.order = DOC_KEY_TYPED;
	def.state = INDEX_READY;
	assert_true(index_is_stale(&def));
	def.collator = STR("");
	assert_false(index_is_stale(&def));
	assert_true(index_is_readable(&def));
	/* A collation has locales, too. */
	def.collation = STR("x");
	assert_true(index_is_stale(&def));
	def.collator = index_collator(false);
	assert_true(index_is_stale(&def));
	def.collator = index_collator(true);
	assert_false(index_is_stale(&def));
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
		TEST(a_definition_of_each_format_is_read_whole_or_not_at_all),
		TEST(a_definition_has_parts_up_to_their_limits),
		TEST(an_index_of_another_collation_is_stale_and_not_read),
		TEST(a_build_enters_what_was_written_before_its_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
