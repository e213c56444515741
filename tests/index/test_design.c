/*
 * Views as design documents have them: which members count and which do not, equal maps that are
 * one, what makes another group of them, limits.
 */
#include "common.h"

#include "base/arena_apart.h"
#include "index/view/design.h"

enum {
	ROOM_BYTES = 64 << 10,
	TEXT_BYTES = 64 << 10,
};

/* Every part of a design document; members that are passed over among them. */
static const char whole[] =
	"{\"_id\":\"_design/x\",\"language\":\"erlang\",\"views\":{\"lib\":{\"a\":\"b\"},"
	"\"z\":{\"map\":\"m\",\"reduce\":\"_sum\"},\"n\":7,\"y\":{\"map\":\"m\"},"
	"\"x\":{\"map\":\"m\",\"reduce\":\"_count\",\"options\":{\"collation\":\"raw\"}},"
	"\"w\":{\"map\":\"o\",\"reduce\":\"f\"},\"v\":{\"map\":\"m\",\"reduce\":\"_top_3\"}},"
	"\"options\":{\"include_design\":true,\"local_seq\":true}}";

static enum status
parse(const char *text, bool partitioned_db, struct view_design *ret, struct err *err)
{
	*err = (struct err){ 0 };
	return view_design_parse(str_from_cstr(text), partitioned_db, arena, ret, err);
}

static struct view_design
design_of(const char *text)
{
	struct view_design ret;
	struct err err;

	if (parse(text, false, &ret, &err) != STATUS_OK)
		fail_msg("%s: %s", text, err.text);
	return ret;
}

static void
views_come_by_name_and_equal_maps_are_one(void **state)
{
	static const struct {
		const char *name;
		const char *source;
		enum view_collation collation;
		int reduce; /* a kind; VIEW_NO_REDUCE */
	} cases[] = {
		{ "v", "m", VIEW_COLLATION_DEFAULT, VIEW_REDUCE_TOP },
		{ "w", "o", VIEW_COLLATION_DEFAULT, VIEW_REDUCE_FUNCTION },
		{ "x", "m", VIEW_COLLATION_RAW, VIEW_REDUCE_COUNT },
		{ "y", "m", VIEW_COLLATION_DEFAULT, VIEW_NO_REDUCE },
		{ "z", "m", VIEW_COLLATION_DEFAULT, VIEW_REDUCE_SUM },
	};
	const struct view_design design = design_of(whole), none = design_of("{}");

	(void)state;
	assert_true(str_eq(design.language, STR("erlang")));
	assert_true(design.include_design && design.local_seq && design.autoupdate);
	assert_int_equal(design.map_count, 3);
	assert_int_equal(design.view_count, COUNT(cases));
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct view_view *view = view_design_find(&design,
								str_from_cstr(cases[i].name));
		const struct view_reduce *reduce;

		assert_ptr_equal(view, &design.views[i]);
		assert_true(str_eq(design.maps[view->map].source, str_from_cstr(cases[i].source)));
		assert_int_equal(design.maps[view->map].collation, cases[i].collation);
		reduce = view_design_reduce(&design, view);
		assert_int_equal(reduce ? (int)reduce->kind : VIEW_NO_REDUCE, cases[i].reduce);
	}
	assert_int_equal(design.maps[design.views[0].map].reduce_count, 2);
	assert_int_equal(design.maps[design.views[0].map].reduces[0].n, 3);
	assert_null(view_design_find(&design, STR("n")));
	assert_null(view_design_find(&none, STR("v")));
	assert_int_equal(none.view_count, 0);
	assert_true(str_eq(none.language, STR("javascript")));
}

/* Two views of one map with the same reduce have one of it. */
static void
equal_reduces_of_a_map_are_one(void **state)
{
	const struct view_design design = design_of(
		"{\"views\":{\"a\":{\"map\":\"m\",\"reduce\":\"_sum\"},\"b\":{\"map\":\"m\","
		"\"reduce\":\"_count\"},\"c\":{\"map\":\"m\",\"reduce\":\"_count\"},"
		"\"d\":{\"map\":\"m\",\"reduce\":\"_sum\"}}}");

	(void)state;
	assert_int_equal(design.map_count, 1);
	assert_int_equal(design.maps[0].reduce_count, 2);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(view_design_reduce(&design, &design.views[i])->kind,
				 i % 3 ? VIEW_REDUCE_COUNT : VIEW_REDUCE_SUM);
}

/* What has another type than it should have, member by member. */
static void
members_of_other_types_are_passed_over_or_refused(void **state)
{
	static const char of_view[] = "`options.collation` of a view is \"default\" or \"raw\".";
	static const char of_design[] =
		"`collation` is an option of a view, and not of a design document.";
	static const struct {
		const char *text;
		const char *told; /* NULL: it is read; a part of what is told */
		size_t views;
	} cases[] = {
		{ "{\"language\":7,\"views\":{\"a\":{\"map\":\"m\"}}}", NULL, 1 },
		{ "{\"views\":[]}", "", 0 },
		{ "{\"views\":7}", "", 0 },
		{ "{\"views\":\"text\"}", "", 0 },
		{ "{\"views\":null}", "", 0 },
		{ "[]", "", 0 },
		{ "{\"views\":{\"a\":[\"map\"]}}", NULL, 0 },
		{ "{\"views\":{\"a\":\"map\"}}", NULL, 0 },
		{ "{\"views\":{\"a\":null,\"b\":{\"map\":\"m\"}}}", NULL, 1 },
		{ "{\"views\":{\"a\":{}}}", NULL, 0 },
		{ "{\"views\":{\"a\":{\"map\":7}}}", NULL, 0 },
		{ "{\"views\":{\"a\":{\"map\":{}}}}", NULL, 0 },
		{ "{\"views\":{\"a\":{\"reduce\":\"_sum\"}}}", NULL, 0 },
		{ "{\"views\":{\"lib\":{\"map\":\"m\"}}}", NULL, 0 },
		{ "{\"views\":{\"a\":{\"map\":\"m\",\"reduce\":7}}}", NULL, 1 },
		{ "{\"views\":{\"a\":{\"map\":\"m\",\"reduce\":null}}}", NULL, 1 },
		{ "{\"views\":{\"a\":{\"map\":\"m\",\"options\":7}}}", NULL, 1 },
		{ "{\"views\":{\"a\":{\"map\":\"m\",\"options\":[]}}}", NULL, 1 },
		{ "{\"views\":{\"a\":{\"map\":\"m\",\"options\":\"raw\"}}}", NULL, 1 },
		{ "{\"views\":{\"a\":{\"map\":\"m\",\"options\":{}}}}", NULL, 1 },
		{ "{\"views\":{\"a\":{\"map\":\"m\",\"options\":{\"collation\":\"default\"}}}}",
		  NULL, 1 },
		{ "{\"views\":{\"a\":{\"map\":\"m\",\"options\":{\"collation\":\"x\"}}}}", of_view,
		  0 },
		{ "{\"views\":{\"a\":{\"map\":\"m\",\"options\":{\"collation\":null}}}}", of_view,
		  0 },
		{ "{\"views\":{\"a\":{\"map\":\"m\",\"options\":{\"collation\":[\"raw\"]}}}}",
		  of_view, 0 },
		{ "{\"views\":{\"a\":{\"map\":\"m\",\"reduce\":\"_x\"}}}",
		  "`_x` is not a supported reduce function.", 0 },
		{ "{\"views\":{\"a\":{\"map\":\"m\",\"reduce\":\"_sum\\n\"}}}", NULL, 1 },
		{ "{\"options\":7}", NULL, 0 },
		{ "{\"options\":[]}", NULL, 0 },
		{ "{\"options\":\"collation\"}", NULL, 0 },
		{ "{\"options\":{\"collation\":\"default\"}}", NULL, 0 },
		{ "{\"options\":{\"collation\":\"raw\"}}", of_design, 0 },
		{ "{\"options\":{\"collation\":7}}", of_design, 0 },
		{ "{\"options\":{\"collation\":{\"default\":1}}}", of_design, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct view_design design;
		struct err err;
		enum status status = parse(cases[i].text, false, &design, &err);

		if (status != (cases[i].told ? STATUS_INVALID : STATUS_OK))
			fail_msg("%s: %s", cases[i].text, status_name(status));
		if (cases[i].told && (!err.text[0] || !strstr(err.text, cases[i].told)))
			fail_msg("%s: %s", cases[i].text, err.text);
		if (!cases[i].told && design.view_count != cases[i].views)
			fail_msg("%s: %zu views", cases[i].text, design.view_count);
		if (!cases[i].told && (design.include_design || design.local_seq))
			fail_msg("%s: options", cases[i].text);
		if (!cases[i].told && !str_eq(design.language, STR("javascript")))
			fail_msg("%s: language", cases[i].text);
	}
}

static void
options_are_what_is_true_and_partitions_what_is_not_false(void **state)
{
	static const struct {
		const char *text;
		bool include_design, local_seq, autoupdate, partitioned;
	} cases[] = {
		{ "{}", false, false, true, true },
		{ "{\"options\":{\"include_design\":true}}", true, false, true, true },
		{ "{\"options\":{\"include_design\":1}}", false, false, true, true },
		{ "{\"options\":{\"include_design\":false}}", false, false, true, true },
		{ "{\"options\":{\"local_seq\":true}}", false, true, true, true },
		{ "{\"options\":{\"local_seq\":\"true\"}}", false, false, true, true },
		{ "{\"options\":{\"partitioned\":false}}", false, false, true, false },
		{ "{\"options\":{\"partitioned\":true}}", false, false, true, true },
		{ "{\"options\":{\"partitioned\":null}}", false, false, true, true },
		{ "{\"options\":{\"partitioned\":0}}", false, false, true, true },
		{ "{\"autoupdate\":false}", false, false, false, true },
		{ "{\"autoupdate\":true}", false, false, true, true },
		{ "{\"autoupdate\":null}", false, false, true, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct view_design d, plain;
		struct err err;

		assert_int_equal(parse(cases[i].text, true, &d, &err), STATUS_OK);
		if (d.include_design != cases[i].include_design ||
		    d.local_seq != cases[i].local_seq || d.autoupdate != cases[i].autoupdate ||
		    d.partitioned != cases[i].partitioned)
			fail_msg("%s", cases[i].text);
		/* Only databases with partitions have views by partition. */
		assert_int_equal(parse(cases[i].text, false, &plain, &err), STATUS_OK);
		assert_false(plain.partitioned);
	}
}

#define ONE_VIEW(rest) "{\"views\":{\"a\":{\"map\":\"m\"" rest

/* Each of these is another group than all others. */
static void
whatever_makes_other_rows_has_another_signature(void **state)
{
	static const char *const texts[] = {
		"{}",
		ONE_VIEW("}}}"),
		"{\"views\":{\"b\":{\"map\":\"m\"}}}",
		"{\"views\":{\"a\":{\"map\":\"n\"}}}",
		ONE_VIEW(",\"reduce\":\"_sum\"}}}"),
		ONE_VIEW(",\"reduce\":\"_count\"}}}"),
		ONE_VIEW(",\"reduce\":\"\"}}}"),
		ONE_VIEW(",\"options\":{\"collation\":\"raw\"}}}}"),
		ONE_VIEW(",\"options\":{\"collation\":\"raw\"},\"reduce\":\"_sum\"}}}"),
		ONE_VIEW("},\"b\":{\"map\":\"m\"}}}"),
		ONE_VIEW("},\"lib\":{}}}"),
		ONE_VIEW("},\"lib\":7}}"),
		ONE_VIEW("}},\"language\":\"query\"}"),
		ONE_VIEW("}},\"options\":{\"include_design\":true}}"),
		ONE_VIEW("}},\"options\":{\"local_seq\":true}}"),
	};
	static struct view_design designs[COUNT(texts) + 1];
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		designs[i] = design_of(texts[i]);
	assert_int_equal(parse(texts[1], true, &designs[COUNT(texts)], &err), STATUS_OK);
	for (size_t i = 0; i <= COUNT(texts); i++)
		for (size_t j = 0; j < i; j++)
			if (!memcmp(designs[i].signature, designs[j].signature,
				    VIEW_SIGNATURE_BYTES))
				fail_msg("%zu has the signature of %zu", i, j);
}

static void
what_makes_the_same_rows_has_the_same_signature(void **state)
{
	static const char *const texts[] = {
		ONE_VIEW("},\"b\":{\"map\":\"n\"}}}"),
		"{\"views\":{\"b\":{\"map\":\"n\"},\"a\":{\"map\":\"m\"}}}",
		ONE_VIEW("},\"b\":{\"map\":\"n\"}},\"language\":\"javascript\"}"),
		ONE_VIEW("},\"b\":{\"map\":\"n\"}},\"autoupdate\":false,\"_rev\":\"7-x\"}"),
		ONE_VIEW(",\"options\":{\"collation\":\"default\"}},\"b\":{\"map\":\"n\"}}}"),
		ONE_VIEW(",\"reduce\":7},\"c\":{},\"b\":{\"map\":\"n\"}},\"options\":{}}"),
	};
	const struct view_design first = design_of(texts[0]);

	(void)state;
	for (size_t i = 1; i < COUNT(texts); i++) {
		const struct view_design design = design_of(texts[i]);

		if (memcmp(first.signature, design.signature, VIEW_SIGNATURE_BYTES))
			fail_msg("%s", texts[i]);
	}
}

static void
a_design_document_has_so_many_views_at_most(void **state)
{
	(void)state;
	for (size_t more = 0; more < 2; more++) {
		AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
		struct view_design design;
		struct err err;
		enum status status;

		buf_append_cstr(&text, "{\"views\":{\"none\":{}");
		for (size_t i = 0; i < VIEW_VIEWS_MOST + more; i++)
			buf_printf(&text, ",\"v%zu\":{\"map\":\"m%zu\"}", i, i);
		buf_append_cstr(&text, "}}");
		buf_append_byte(&text, 0);
		assert_int_equal(buf_status(&text), STATUS_OK);
		status = parse(text.ptr, false, &design, &err);
		assert_int_equal(status, more ? STATUS_LIMIT : STATUS_OK);
		if (more)
			assert_string_equal(err.text, "A design document has more than 64 views.");
		else
			assert_int_equal(design.map_count, VIEW_VIEWS_MOST);
	}
}

/* Wherever the arena ends, the design is read as a whole or not at all. */
static void
a_design_without_room_is_none(void **state)
{
	const struct view_design all = design_of(whole);
	enum status status = STATUS_LIMIT;

	(void)state;
	for (size_t bytes = 0; bytes < ROOM_BYTES; bytes += ROOM_STEP) {
		struct arena *small = arena_new(bytes);
		struct view_design design;

		status = view_design_parse(str_from_cstr(whole), false, small, &design, NULL);
		assert_int_equal(status, arena_is_full(small) ? STATUS_LIMIT : STATUS_OK);
		if (status == STATUS_OK)
			assert_memory_equal(design.signature, all.signature, VIEW_SIGNATURE_BYTES);
		arena_free(small);
	}
	assert_int_equal(status, STATUS_OK);
}

/* Each allocation fails once, and those behind it do not. */
static void
a_design_without_memory_is_none(void **state)
{
	const struct view_design all = design_of(whole);
	bool failed = true;

	(void)state;
	for (uint64_t nth = 1; failed; nth++) {
		struct arena *own = arena_new(TEST_ARENA_BYTES);
		struct view_design design;
		enum status status;

		arena_set_apart(true);
		(void)mem_fail_only(nth);
		status = view_design_parse(str_from_cstr(whole), false, own, &design, NULL);
		failed = mem_fail_only(0) >= nth;
		arena_set_apart(false);
		if (status == STATUS_OK)
			assert_memory_equal(design.signature, all.signature, VIEW_SIGNATURE_BYTES);
		else
			assert_true(failed && (status == STATUS_NOMEM || status == STATUS_LIMIT));
		arena_free(own);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(views_come_by_name_and_equal_maps_are_one),
		TEST(equal_reduces_of_a_map_are_one),
		TEST(members_of_other_types_are_passed_over_or_refused),
		TEST(options_are_what_is_true_and_partitions_what_is_not_false),
		TEST(whatever_makes_other_rows_has_another_signature),
		TEST(what_makes_the_same_rows_has_the_same_signature),
		TEST(a_design_document_has_so_many_views_at_most),
		TEST(a_design_without_room_is_none),
		TEST(a_design_without_memory_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
