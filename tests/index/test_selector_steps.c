/*
 * What selectors cost, in steps: no operator multiplies the size of a document by the size of its
 * argument, and what must be multiplied is counted and ends at a limit.
 */
#include "common.h"
#include "loop/step.h"

enum {
	ELEMENTS = 20000,
	LOG = 17, /* the greatest logarithm of these */
	TEXT_BYTES = 4 << 20,
};

static struct selector *
compile(struct buf *text)
{
	struct err err = { 0 };
	struct selector *s;

	assert_int_equal(buf_status(text), STATUS_OK);
	if (selector_compile(buf_str(text), &work, &s, NULL, &err) != STATUS_OK)
		fail_msg("%.100s: %s", text->ptr, err.text);
	buf_clear(text);
	return s;
}

/* Appends an array of `count` times the item, in which a # stands for the element's number. */
static void
append_list(struct buf *text, size_t count, const char *item)
{
	const char *hash = strchr(item, '#');

	buf_append_byte(text, '[');
	for (size_t i = 0; i < count; i++) {
		buf_append_cstr(text, i ? "," : "");
		buf_append(text, item, hash ? (size_t)(hash - item) : strlen(item));
		if (hash) {
			buf_append_u64(text, i);
			buf_append_cstr(text, hash + 1);
		}
	}
	buf_append_byte(text, ']');
}

/* A document {"a":[...]}. */
static void
array_doc(const char *item, struct selector_special specials[2], struct selector_doc *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);

	buf_append_cstr(&text, "{\"a\":");
	append_list(&text, ELEMENTS, item);
	buf_append(&text, "}", sizeof("}"));
	assert_int_equal(buf_status(&text), STATUS_OK);
	doc_of(text.ptr, specials, ret);
}

static uint64_t
steps_of_match(const struct selector *s, const struct selector_doc *doc, bool expected)
{
	uint64_t before = work.steps;
	bool got;

	assert_int_equal(selector_match(s, doc, &work, &got), STATUS_OK);
	assert_int_equal(got, expected);
	return work.steps - before;
}

static void
long_lists_of_arguments_are_not_compared_with_each_element(void **state)
{
	/* Arguments and elements: all the same, or all different. */
	static const struct {
		const char *before, *argument, *behind;
		size_t arguments;
		const char *element;
		bool matches;
	} cases[] = {
		{ "{\"a\":{\"$all\":", "1", "}}", 30000, "0", false },
		{ "{\"a\":{\"$all\":", "1#", "}}", 90000, "0", false },
		{ "{\"a\":{\"$all\":", "0", "}}", 30000, "0", true },
		{ "{\"a\":{\"$all\":", "5#", "}}", ELEMENTS, "5#", true },
		{ "{\"a\":{\"$in\":", "1", "}}", 30000, "0", false },
		{ "{\"a\":{\"$in\":", "5#", "}}", 30000, "6#.5", false },
		{ "{\"a\":{\"$in\":", "\"5#\"", "}}", 30000, "\"x#\"", false },
		{ "{\"a\":{\"$in\":", "[5,#]", "}}", 30000, "[5,#,1]", false },
		{ "{\"a\":{\"$nin\":", "5#", "}}", 30000, "6#.5", true },
		{ "{\"a\":{\"$allMatch\":{\"$in\":", "5#", "}}}", 30000, "5#", true },
		{ "{\"a\":{\"$elemMatch\":{\"$in\":", "5#", "}}}", 30000, "6#.5", false },
		{ "{\"a\":{\"$elemMatch\":{\"$or\":", "{\"$eq\":5#}", "}}}", 4000, "6#.5", false },
		{ "{\"a\":{\"$allMatch\":{\"$or\":", "{\"b\":#}", "}}}", 4000, "{\"b\":1}", true },
		{ "{\"a\":{\"$allMatch\":{\"$or\":[{\"$in\":[]},{\"$nin\":", "5#", "}]}}}", 90000,
		  "6#.5", true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
		struct arena_mark mark = arena_mark(arena);
		struct selector_special specials[2];
		struct selector_doc doc;
		struct selector *s;
		uint64_t before = work.steps;
		uint64_t steps;

		buf_append_cstr(&text, cases[i].before);
		append_list(&text, cases[i].arguments, cases[i].argument);
		buf_append_cstr(&text, cases[i].behind);
		s = compile(&text);
		steps = work.steps - before;
		if (steps > cases[i].arguments * LOG * 8)
			fail_msg("compiling case %zu took %llu steps", i,
				 (unsigned long long)steps);
		array_doc(cases[i].element, specials, &doc);
		steps = steps_of_match(s, &doc, cases[i].matches);
		if (steps > (uint64_t)ELEMENTS * 2 * LOG * 4)
			fail_msg("matching case %zu took %llu steps", i, (unsigned long long)steps);
		arena_reset(arena, mark);
	}
}

/* A list of ids is compared byte by byte. */
static void
ids_are_looked_up(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
	struct selector_special specials[2];
	struct selector_doc doc;
	struct selector *s;

	(void)state;
	buf_append_cstr(&text, "{\"_id\":{\"$in\":");
	append_list(&text, 60000, "\"Doc#\"");
	buf_append_cstr(&text, "}}");
	s = compile(&text);
	doc_of("{}", specials, &doc);
	assert_in_range(steps_of_match(s, &doc, false), 1, (uint64_t)LOG * 8);
}

/* The members of one object are compared with each other only to find doubles. */
static void
many_members_compile_in_n_log_n(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
	struct selector_special specials[2];
	struct selector_doc doc;
	struct selector *s;
	uint64_t before = work.steps;
	size_t members = SELECTOR_CONDITIONS - 10;

	(void)state;
	buf_append_byte(&text, '{');
	for (size_t i = 0; i < members; i++)
		buf_printf(&text, "%s\"a%zu\":1", i ? "," : "", i);
	buf_append_cstr(&text, ",\"a7\":2,\"a5\":3,\"a7\":4}");
	s = compile(&text);
	assert_in_range(work.steps - before, 1, members * LOG * 4);

	buf_append_byte(&text, '{');
	for (size_t i = 0; i < members; i++)
		buf_printf(&text, "%s\"a%zu\":%d", i ? "," : "", i, i == 7 ? 4 : i == 5 ? 3 : 1);
	buf_append(&text, "}", sizeof("}"));
	doc_of(text.ptr, specials, &doc);
	assert_in_range(steps_of_match(s, &doc, true), members, members * 16);
}

/* Conditions on the same field share its path, and those inside of arrays share the room for it. */
static void
conditions_do_not_copy_long_paths(void **state)
{
	static const char *const parts[] = { "{\"$gt\":0}", "{\"$elemMatch\":{\"b\":1}}" };

	(void)state;
	for (size_t i = 0; i < COUNT(parts); i++) {
		AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
		size_t before = arena_used_bytes(arena);

		buf_append_cstr(&text, "{\"a");
		for (int n = 1; n < SELECTOR_PATH_NAMES; n++)
			buf_append_cstr(&text, ".a");
		buf_append_cstr(&text, "\":{\"$or\":");
		append_list(&text, SELECTOR_CONDITIONS / 8, parts[i]);
		buf_append_cstr(&text, "}}");
		(void)compile(&text);
		assert_in_range(arena_used_bytes(arena) - before, 1, 8 << 20);
	}
}

/* An element that is large costs the logarithm of its leaves to be passed over. */
static void
large_elements_are_passed_over(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
	struct selector_special specials[2];
	struct selector_doc doc;

	(void)state;
	buf_append_cstr(&text, "{\"a\":[");
	append_list(&text, ELEMENTS, "0");
	buf_append_cstr(&text, ",{\"b\":");
	append_list(&text, ELEMENTS, "0");
	buf_append(&text, ",\"c\":5}]}", sizeof(",\"c\":5}]}"));
	doc_of(text.ptr, specials, &doc);
	buf_clear(&text);
	buf_append_cstr(&text, "{\"a\":{\"$elemMatch\":{\"c\":5}}}");
	assert_in_range(steps_of_match(compile(&text), &doc, true), 1, 64);
}

/* Different conditions for each element are a product, and it ends at the limit of steps. */
static void
what_must_be_multiplied_ends_at_the_limit(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
	struct selector_special specials[2];
	struct selector_doc doc;
	struct selector *s;
	struct step_meter meter;
	uint64_t before;
	enum status status;
	bool got;

	(void)state;
	buf_append_cstr(&text, "{\"a\":{\"$allMatch\":{\"$and\":");
	append_list(&text, 2000, "{\"$gt\":1},{\"$lt\":9999999}");
	buf_append_cstr(&text, "}}}");
	s = compile(&text);
	array_doc("5#", specials, &doc);
	step_init(&meter);
	meter.limit = 1000000;
	before = work.steps;
	step_enter(&meter);
	status = selector_match(s, &doc, &work, &got);
	step_leave();
	assert_int_equal(status, STATUS_STEPS);
	assert_in_range(work.steps - before, 1000000, 1200000);
}

/* Reading a text takes a step for each of its kilobytes, whatever is asked of it. */
static void
a_long_text_takes_steps_to_be_read(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
	struct selector_special specials[2];
	struct selector_doc doc;
	struct selector *s;
	uint64_t steps[2];

	(void)state;
	buf_append_cstr(&text, "{\"a\":{\"$exists\":true}}");
	s = compile(&text);
	for (int longer = 0; longer < 2; longer++) {
		buf_clear(&text);
		buf_append_cstr(&text, "{\"a\":\"");
		for (int i = 0; i < (longer ? 40 << 10 : 1); i++)
			buf_append_byte(&text, 'x');
		buf_append(&text, "\"}", sizeof("\"}"));
		assert_int_equal(buf_status(&text), STATUS_OK);
		doc_of(text.ptr, specials, &doc);
		steps[longer] = steps_of_match(s, &doc, true);
	}
	assert_int_equal(steps[1] - steps[0], 40);
}

/* ---- Regular expressions ---- */

/* Appends {"a":"<item n times>!"} with its NUL. */
static void
append_string_doc(struct buf *text, const char *item, size_t n)
{
	buf_append_cstr(text, "{\"a\":\"");
	for (size_t i = 0; i < n; i++)
		buf_append_cstr(text, item);
	buf_append(text, "!\"}", sizeof("!\"}"));
	assert_int_equal(buf_status(text), STATUS_OK);
}

static struct selector *
compile_regex(const char *pattern)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);

	buf_printf(&text, "{\"a\":{\"$regex\":\"%s\"}}", pattern);
	return compile(&text);
}

static void
an_expensive_expression_counts_its_steps_up_to_its_limit(void **state)
{
	static const struct {
		const char *pattern, *item;
		size_t items;
	} cases[] = {
		{ "^(a+)+$", "a", 30 },           { "^(a+)+$", "a", 400 },
		{ "(?:(?:a|a)*)*[bc]", "a", 64 }, { "(x+x+)+[yz]", "x", 1000 },
		{ "[ab]*[cd]", "ab", 20000 },     { "(?=(a*)*[bc])", "a", 5000 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
		struct selector_special specials[2];
		struct selector_doc doc;
		struct selector *s = compile_regex(cases[i].pattern);
		uint64_t steps, limit;

		append_string_doc(&text, cases[i].item, cases[i].items);
		doc_of(text.ptr, specials, &doc);
		limit = SELECTOR_REGEX_STEPS + text.len * SELECTOR_REGEX_BYTE_STEPS;
		steps = steps_of_match(s, &doc, false);
		if (steps < SELECTOR_REGEX_STEPS / 2 || steps > limit + text.len + 100)
			fail_msg("%s took %llu steps", cases[i].pattern, (unsigned long long)steps);
	}
}

/* What people write about short strings ends in the quick match, which costs some steps. */
static void
a_plain_expression_is_cheap(void **state)
{
	static const char *const patterns[] = { "^a+!$", "a!$", "(?i)A.A", "^(?:a|b)+!", "b" };
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
	struct selector_special specials[2];
	struct selector_doc doc;

	(void)state;
	append_string_doc(&text, "a", 12);
	doc_of(text.ptr, specials, &doc);
	for (size_t i = 0; i < COUNT(patterns); i++)
		assert_in_range(steps_of_match(compile_regex(patterns[i]), &doc, i < 4), 1, 32);
}

/* What is longer than a short string is counted from its beginning. */
static void
a_short_string_has_128_bytes_at_most(void **state)
{
	struct selector *s = compile_regex("a!$");

	(void)state;
	for (size_t bytes = 127; bytes <= 130; bytes++) {
		AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
		struct selector_special specials[2];
		struct selector_doc doc;
		uint64_t steps;

		append_string_doc(&text, "a", bytes - 1);
		doc_of(text.ptr, specials, &doc);
		steps = steps_of_match(s, &doc, true);
		if ((steps <= 32) != (bytes <= 128))
			fail_msg("%zu bytes took %llu steps", bytes, (unsigned long long)steps);
	}
}

/* A match is left in its middle when the work may not go on. */
static void
an_expression_ends_where_its_steps_end(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
	struct selector_special specials[2];
	struct selector_doc doc;
	struct selector *s = compile_regex("^(a+)+$");
	struct step_meter meter;
	enum status status;
	size_t used;
	bool got;

	(void)state;
	append_string_doc(&text, "a", 40);
	doc_of(text.ptr, specials, &doc);
	used = arena_used_bytes(arena);
	step_init(&meter);
	meter.limit = 100000;
	step_enter(&meter);
	status = selector_match(s, &doc, &work, &got);
	step_leave();
	assert_int_equal(status, STATUS_STEPS);
	assert_int_equal(arena_used_bytes(arena), used);
	assert_in_range(work.steps, 100000, 120000);
}

/* A long string may take more steps: this one needs three for each of its bytes. */
static void
a_long_string_may_take_more_steps(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
	struct selector_special specials[2];
	struct selector_doc doc;

	(void)state;
	append_string_doc(&text, "a.", 400000);
	doc_of(text.ptr, specials, &doc);
	assert_true(steps_of_match(compile_regex("\\\\w+[!?]"), &doc, false) > 0);
	assert_true(steps_of_match(compile_regex("\\\\w+[.]!"), &doc, true) > SELECTOR_REGEX_STEPS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			long_lists_of_arguments_are_not_compared_with_each_element, setup,
			teardown),
		cmocka_unit_test_setup_teardown(ids_are_looked_up, setup, teardown),
		cmocka_unit_test_setup_teardown(many_members_compile_in_n_log_n, setup, teardown),
		cmocka_unit_test_setup_teardown(conditions_do_not_copy_long_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_text_takes_steps_to_be_read, setup,
						teardown),
		cmocka_unit_test_setup_teardown(large_elements_are_passed_over, setup, teardown),
		cmocka_unit_test_setup_teardown(what_must_be_multiplied_ends_at_the_limit, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			an_expensive_expression_counts_its_steps_up_to_its_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(a_plain_expression_is_cheap, setup, teardown),
		cmocka_unit_test_setup_teardown(a_short_string_has_128_bytes_at_most, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_expression_ends_where_its_steps_end, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_long_string_may_take_more_steps, setup, teardown),
	};

	return cmocka_run_group_tests_name("steps of selectors", tests, NULL, NULL);
}
