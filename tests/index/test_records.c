/*
 * What views and builds of indexes store: a record that is parsed is the one that was put, whatever
 * its bytes are; of what is longer, shorter, damaged or beyond a limit nothing else is read.
 */
#include "common.h"

#include "catalog/format.h"
#include "index/engine/build.h"
#include "index/view/keys.h"
#include "index/view/record.h"

enum {
	BEYOND = 99, /* a format that nobody has */
	CHUNKS_MOST = 2 * VIEW_DOC_BYTES / VIEW_CHUNK_BYTES + 1,
};

static struct err err;

/* ---- Records: parsed, and put again ---- */

static enum status
group_again(struct str value, struct buf *ret)
{
	struct view_record record;

	TRY(view_record_parse(value, arena, &record, &err));
	view_record_put(ret, &record);
	return STATUS_OK;
}

static enum status
row_again(struct str value, struct buf *ret)
{
	struct view_row_value row;

	TRY(view_row_parse(value, &row, &err));
	view_row_put(ret, &row);
	return STATUS_OK;
}

static enum status
sum_again(struct str value, struct buf *ret)
{
	struct view_sum sum;
	uint64_t rows;

	TRY(view_sum_parse(value, arena, &sum, &err));
	assert_int_equal(view_sum_rows(value, &rows, &err), STATUS_OK);
	assert_int_equal(rows, sum.rows);
	view_sum_put(ret, &sum);
	return STATUS_OK;
}

static enum status
backs_again(struct str value, struct buf *ret)
{
	struct view_back_head head;
	struct view_back *backs;
	size_t count;

	TRY(view_back_head_parse(&value, &head, &err));
	TRY(view_backs_parse(value, arena, &backs, &count));
	view_back_head_put(ret, &head);
	for (size_t i = 0; i < count; i++)
		view_back_put(ret, &backs[i]);
	return STATUS_OK;
}

static enum status
lack_again(struct str value, struct buf *ret)
{
	struct view_lack lack;

	TRY(view_lack_parse(value, &lack, &err));
	view_lack_put(ret, &lack);
	return STATUS_OK;
}

static enum status
build_again(struct str value, struct buf *ret)
{
	struct index_build_record record;

	TRY(index_build_record_parse(value, arena, &record, &err));
	index_build_record_put(ret, &record);
	return STATUS_OK;
}

/* ---- Samples ---- */

static struct view_record
group_sample(void)
{
	static struct view_refusal refusals[VIEW_REFUSALS_SHOWN + 1];
	struct view_record record = {
		.group = { .number = 300,
			   .phase = VIEW_PHASE_SUMS,
			   .partitioned = true,
			   .map_count = 2,
			   .rows = { 1000, 0 },
			   .tops = { 3, UINT8_MAX },
			   .refused = 1,
			   .unnoted = true,
			   .refusals = refusals,
			   .refusal_count = 1 },
		.work_map = 1,
		.work_level = 2,
		.work_place = STR("pl\0ace"),
		.done = 70,
		.total = 80,
	};

	for (size_t i = 0; i < COUNT(refusals); i++)
		refusals[i] = (struct view_refusal){ .id = STR("id"),
						     .view = STR("view"),
						     .limit = STR("view_row_bytes") };
	memset(record.group.signature, 0xa5, sizeof(record.group.signature));
	memset(record.group.seed, 0x5a, sizeof(record.group.seed));
	memset(record.group.covers.bytes, 1, CATALOG_SEQ_BYTES);
	memset(record.group.purge_seq.bytes, 2, CATALOG_SEQ_BYTES);
	memset(record.fresh.bytes, 3, CATALOG_SEQ_BYTES);
	return record;
}

static void
put_group(struct buf *ret)
{
	const struct view_record record = group_sample();

	view_record_put(ret, &record);
}

/* What the first format cannot hold. */
static void
put_lacking_group(struct buf *ret)
{
	struct view_record record = group_sample();

	record.group.lacking[1] = 5;
	view_record_put(ret, &record);
}

static void
put_half_group(struct buf *ret)
{
	struct view_record record = group_sample();

	record.group.halves = 1;
	record.group.refusal_count = 0;
	view_record_put(ret, &record);
}

static void
put_large_group(struct buf *ret)
{
	struct view_record record = group_sample();

	record.group.large = true;
	view_record_put(ret, &record);
}

static void
put_noted_group(struct buf *ret)
{
	struct view_record record = group_sample();

	record.group.unnoted = false;
	view_record_put(ret, &record);
}

static void
put_row(struct buf *ret)
{
	const struct view_row_value row = { .key = STR("[1,\"a\"]"), .value = STR("null") };

	view_row_put(ret, &row);
}

static void
put_chunked_row(struct buf *ret)
{
	const struct view_row_value row = { .chunked = true,
					    .key_bytes = VIEW_ROW_BYTES,
					    .value_bytes = VIEW_ROW_BYTES };

	view_row_put(ret, &row);
}

static void
put_sum(struct buf *ret)
{
	const struct view_sum sum = { .rows = 7,
				      .partials = { STR("r12"), STR("ename\0\"reason\"") },
				      .count = 2 };

	view_sum_put(ret, &sum);
}

static const struct view_back back = {
	.map = 1, .component = STR("co\0mp"), .ordinal = 2, .hash = UINT64_MAX, .chunks = 3
};

static void
put_backs(struct buf *ret)
{
	const struct view_back_head head = { .chunks = 2 };

	view_back_head_put(ret, &head);
	view_back_put(ret, &back);
	view_back_put(ret, &back);
}

static void
put_half_backs(struct buf *ret)
{
	const struct view_back_head head = { .chunks = CHUNKS_MOST, .half = true };

	view_back_head_put(ret, &head);
	view_back_put(ret, &back);
}

static void
put_lacking_backs(struct buf *ret)
{
	const struct view_back_head head = { .chunks = 1, .lacking = 1 };

	view_back_head_put(ret, &head);
}

static void
put_lack(struct buf *ret)
{
	const struct view_lack lack = { .rows = 6, .limit = STR("not_json") };

	view_lack_put(ret, &lack);
}

static void
put_build(struct buf *ret)
{
	const struct index_build_record record = { .after = STR("a"),
						   .end = STR("e"),
						   .done = true,
						   .passed = 1,
						   .total = 2,
						   .started_ms = 3000,
						   .updated_ms = 4000,
						   .violations = 5,
						   .examples = STR("\"x\",\"y\"") };

	index_build_record_put(ret, &record);
}

static const struct {
	const char *name;
	void (*put)(struct buf *ret);
	enum status (*again)(struct str value, struct buf *ret);
	uint64_t format;
	size_t ends; /* lengths at which a shorter one ends as a list may */
} records[] = {
	{ "group", put_group, group_again, 1, 1 },
	{ "group that lacks rows", put_lacking_group, group_again, 2, 1 },
	{ "group with halves", put_half_group, group_again, 2, 0 },
	{ "large group", put_large_group, group_again, 2, 1 },
	{ "group whose refusals are noted", put_noted_group, group_again, 2, 1 },
	{ "row", put_row, row_again, 1, 0 },
	{ "row in chunks", put_chunked_row, row_again, 2, 0 },
	{ "sum", put_sum, sum_again, 1, 3 }, /* one ends at the NUL of another */
	{ "rows of a document", put_backs, backs_again, 1, 2 },
	{ "half of a document's rows", put_half_backs, backs_again, 2, 1 },
	{ "rows of a document that lacks some", put_lacking_backs, backs_again, 2, 0 },
	{ "what a document lacks", put_lack, lack_again, 1, 0 },
	{ "stretch of a build", put_build, build_again, 1, 0 },
};

/* ---- Tests ---- */

/* Parsed, it is put as it was: true if it was read, and not refused. */
static bool
is_read(size_t i, struct str value)
{
	AUTO(buf_release) struct buf again = BUF_INIT(VIEW_VALUE_BYTES);
	struct arena_mark mark = arena_mark(arena);
	enum status status;

	status = records[i].again(value, &again);
	/* What the first format can hold is put in it. */
	if (status == STATUS_OK && !str_eq(buf_str(&again), value) && again.ptr[1] == value.ptr[1])
		fail_msg("%s: another one of %zu bytes is read", records[i].name, value.len);
	assert_true(status == STATUS_OK || status == STATUS_CORRUPT || status == STATUS_NEWER);
	arena_reset(arena, mark);
	return status == STATUS_OK;
}

static void
a_record_that_is_read_is_the_one_that_was_put(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(records); i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(VIEW_VALUE_BYTES);
		size_t ends = 0;

		records[i].put(&value);
		assert_int_equal(buf_status(&value), STATUS_OK);
		assert_int_equal((unsigned char)value.ptr[1], records[i].format);
		if (!is_read(i, buf_str(&value)))
			fail_msg("%s is not read", records[i].name);
		for (size_t len = 0; len < value.len; len++)
			ends += is_read(i, str_of(value.ptr, len));
		if (ends != records[i].ends)
			fail_msg("%s: %zu lengths are read", records[i].name, ends);
		for (size_t at = 0; at < value.len; at++) {
			for (int bit = 0; bit < 8; bit++) {
				value.ptr[at] = (char)(value.ptr[at] ^ 1 << bit);
				(void)is_read(i, buf_str(&value));
				value.ptr[at] = (char)(value.ptr[at] ^ 1 << bit);
			}
		}
		/* An element that no list has. */
		tuple_put_null(&value);
		assert_int_equal(buf_status(&value), STATUS_OK);
		if (is_read(i, buf_str(&value)))
			fail_msg("%s is read with more behind it", records[i].name);
		value.ptr[1] = BEYOND;
		err = (struct err){ 0 };
		assert_int_equal(records[i].again(buf_str(&value), NULL), STATUS_NEWER);
		assert_non_null(strstr(err.text, "format 99"));
	}
}

/* What is wrong in a group although each of its elements is one. */
static void
a_group_has_numbers_up_to_their_limits(void **state)
{
	static const struct {
		const char *what;
		size_t map;
		unsigned level, top;
		uint64_t phase;
		enum status status;
	} cases[] = {
		{ "least", 0, 0, 0, VIEW_PHASE_ROWS, STATUS_OK },
		{ "most", VIEW_VIEWS_MOST, UINT8_MAX, UINT8_MAX, VIEW_PHASE_READY, STATUS_OK },
		{ "map", VIEW_VIEWS_MOST + 1, 0, 0, VIEW_PHASE_ROWS, STATUS_CORRUPT },
		{ "level", 0, UINT8_MAX + 1, 0, VIEW_PHASE_ROWS, STATUS_CORRUPT },
		{ "top", 0, 0, UINT8_MAX + 1, VIEW_PHASE_ROWS, STATUS_CORRUPT },
		{ "no phase", 0, 0, 0, VIEW_PHASE_ROWS - 1, STATUS_CORRUPT },
		{ "beyond phases", 0, 0, 0, VIEW_PHASE_READY + 1, STATUS_CORRUPT },
	};

	(void)state;
	/* Also where the highest level is the last thing in the record. */
	for (size_t i = 0; i < 2 * COUNT(cases); i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(VIEW_VALUE_BYTES);
		struct view_record record = group_sample();
		size_t at = i % COUNT(cases);
		enum status status;

		record.work_map = cases[at].map;
		record.work_level = cases[at].level;
		record.group.tops[0] = cases[at].top;
		record.group.phase = (enum view_phase)cases[at].phase;
		if (i >= COUNT(cases)) {
			record.group.map_count = 1;
			record.group.refusal_count = 0;
		}
		view_record_put(&value, &record);
		status = view_record_parse(buf_str(&value), arena, &record, &err);
		if (status != cases[at].status)
			fail_msg("%s: %s", cases[at].what, status_name(status));
	}
}

/* Where the number of maps is the last element, only none of them is right. */
static void
a_group_that_ends_behind_the_number_of_its_maps_has_none(void **state)
{
	AUTO(buf_release) struct buf none = BUF_INIT(VIEW_VALUE_BYTES);
	AUTO(buf_release) struct buf zero = BUF_INIT(10);
	struct view_record record = group_sample();

	(void)state;
	record.group.map_count = record.group.refusal_count = 0;
	view_record_put(&none, &record);
	tuple_put_u64(&zero, 0);
	for (uint64_t count = 0; count <= VIEW_VIEWS_MOST + 1; count++) {
		AUTO(buf_release) struct buf value = BUF_INIT(VIEW_VALUE_BYTES);

		buf_append_str(&value, str_of(none.ptr, none.len - zero.len));
		tuple_put_u64(&value, count);
		assert_int_equal(view_record_parse(buf_str(&value), arena, &record, &err),
				 count ? STATUS_CORRUPT : STATUS_OK);
	}
}

/* As many of a list as there may be, and one more. */
static void
lists_have_lengths_up_to_their_limits(void **state)
{
	(void)state;
	for (size_t more = 0; more < 2; more++) {
		enum status expected = more ? STATUS_CORRUPT : STATUS_OK;
		AUTO(buf_release) struct buf value = BUF_INIT(VIEW_VALUE_BYTES);
		AUTO(buf_release) struct buf zero = BUF_INIT(10);
		struct view_record record = group_sample();
		struct view_sum sum = { .rows = 1 };

		record.group.refusal_count = VIEW_REFUSALS_SHOWN + more;
		view_record_put(&value, &record);
		assert_int_equal(view_record_parse(buf_str(&value), arena, &record, &err),
				 expected);
		/* The number of maps is the last element of one that has none. */
		record = group_sample();
		record.group.refusal_count = record.group.map_count = 0;
		view_record_put(&value, &record);
		tuple_put_u64(&zero, 0);
		value.len -= zero.len;
		tuple_put_u64(&value, VIEW_VIEWS_MOST + more);
		for (size_t i = 0; i < 2 * (VIEW_VIEWS_MOST + more); i++)
			tuple_put_u64(&value, 1);
		assert_int_equal(view_record_parse(buf_str(&value), arena, &record, &err),
				 expected);
		view_sum_put(&value, &sum);
		for (size_t i = 0; i < VIEW_VIEWS_MOST + more; i++)
			tuple_put_bytes(&value, STR("r1"));
		assert_int_equal(view_sum_parse(buf_str(&value), arena, &sum, &err), expected);
	}
}

static void
rows_have_numbers_up_to_their_limits(void **state)
{
	(void)state;
	for (size_t more = 0; more < 2; more++) {
		enum status expected = more ? STATUS_CORRUPT : STATUS_OK;
		struct view_row_value row = { .chunked = true, .key_bytes = VIEW_ROW_BYTES + more };
		struct view_back_head head = { .chunks = CHUNKS_MOST + more };
		struct view_back last = { .map = VIEW_VIEWS_MOST - 1 + more };
		AUTO(buf_release) struct buf value = BUF_INIT(VIEW_VALUE_BYTES);
		struct view_back *backs;
		struct str rest;
		size_t count;

		view_row_put(&value, &row);
		assert_int_equal(view_row_parse(buf_str(&value), &row, &err), expected);
		row = (struct view_row_value){ .chunked = true,
					       .value_bytes = VIEW_ROW_BYTES + more };
		view_row_put(&value, &row);
		assert_int_equal(view_row_parse(buf_str(&value), &row, &err), expected);
		view_back_head_put(&value, &head);
		rest = buf_str(&value);
		assert_int_equal(view_back_head_parse(&rest, &head, &err), expected);
		buf_clear(&value);
		view_back_put(&value, &last);
		assert_int_equal(view_backs_parse(buf_str(&value), arena, &backs, &count),
				 expected);
	}
}

/* A text of a row is JSON, which has no NUL. */
static void
a_row_with_a_nul_is_corrupt(void **state)
{
	const struct view_row_value rows[] = {
		{ .key = STR("1"), .value = STR("\"\0\"") },
		{ .key = STR("\"\0\""), .value = STR("1") },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(VIEW_VALUE_BYTES);
		struct view_row_value row;

		view_row_put(&value, &rows[i]);
		assert_int_equal(view_row_parse(buf_str(&value), &row, &err), STATUS_CORRUPT);
	}
}

/* Where a row lies: wherever that ends, it is none, and not that there is no row. */
static void
a_place_that_is_cut_is_corrupt(void **state)
{
	(void)state;
	for (int partitioned = 0; partitioned < 2; partitioned++) {
		AUTO(buf_release) struct buf text = BUF_INIT(100);
		struct view_place place;

		if (partitioned)
			tuple_put_str(&text, STR("p"));
		tuple_put_bytes(&text, STR("component"));
		tuple_put_str(&text, STR("id"));
		tuple_put_u64(&text, 300);
		assert_int_equal(view_place_parse(buf_str(&text), partitioned, arena, &place),
				 STATUS_OK);
		assert_true(str_eq(place.id, STR("id")));
		assert_int_equal(place.ordinal, 300);
		assert_int_equal(place.component_at, partitioned ? 3 : 0);
		for (size_t len = 0; len < text.len; len++)
			assert_int_equal(
				view_place_parse(str_of(text.ptr, len), partitioned, arena, &place),
				STATUS_CORRUPT);
		assert_int_equal(view_place_parse(buf_str(&text), !partitioned, arena, &place),
				 STATUS_CORRUPT);
		tuple_put_u64(&text, 1);
		assert_int_equal(view_place_parse(buf_str(&text), partitioned, arena, &place),
				 STATUS_CORRUPT);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_record_that_is_read_is_the_one_that_was_put),
		TEST(a_group_has_numbers_up_to_their_limits),
		TEST(a_group_that_ends_behind_the_number_of_its_maps_has_none),
		TEST(lists_have_lengths_up_to_their_limits),
		TEST(rows_have_numbers_up_to_their_limits),
		TEST(a_row_with_a_nul_is_corrupt),
		TEST(a_place_that_is_cut_is_corrupt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
