/* Lists of fields: what of a document is shown. */
#include "common.h"

#include "base/arena_apart.h"
#include "base/mem.h"

/* One allocation fails, and none behind it. Returns whether there are so many. */
static bool
fails_at(const char *list, const struct selector_doc *doc, uint64_t nth)
{
	struct index_work w = { .arena = arena_new(TEST_ARENA_BYTES) };
	struct buf out = BUF_INIT(4096);
	struct selector_fields *fields;
	struct err err = { 0 };
	enum status status;
	bool failed;

	assert_non_null(w.arena);
	arena_set_apart(true);
	(void)mem_fail_only(nth);
	status = selector_fields_compile(str_from_cstr(list), &w, &fields, NULL, &err);
	if (status == STATUS_OK)
		status = selector_fields_write(fields, doc, &w, &out);
	failed = mem_fail_only(0) >= nth;
	arena_set_apart(false);
	if (failed ? status != STATUS_LIMIT && status != STATUS_NOMEM : status != STATUS_OK)
		fail_msg("%s without allocation %d: %s", list, (int)nth, status_name(status));
	buf_release(&out);
	arena_free(w.arena);
	return failed;
}

/* In a few bytes: where they are not enough, it says so. */
static bool
is_enough(const char *list, const struct selector_doc *doc, size_t bytes)
{
	struct arena *small = arena_new(bytes);
	struct index_work w = { .arena = small };
	struct buf out = BUF_INIT(4096);
	struct selector_fields *fields;
	struct err err = { 0 };
	enum status status;
	bool full;

	status = selector_fields_compile(str_from_cstr(list), &w, &fields, NULL, &err);
	if (status == STATUS_OK)
		status = selector_fields_write(fields, doc, &w, &out);
	full = arena_is_full(small);
	arena_free(small);
	buf_release(&out);
	if (status != (full ? STATUS_LIMIT : STATUS_OK))
		fail_msg("%s with %zu bytes: %s", list, bytes, status_name(status));
	return !full;
}

static const char *
shown(const char *list, const char *json)
{
	static char text[4096];
	struct selector_fields *fields;
	struct selector_special specials[2];
	struct selector_doc doc;
	struct buf out = BUF_INIT(sizeof(text) - 1);
	struct err err = { 0 };

	doc_of(json, specials, &doc);
	for (size_t bytes = 0; !is_enough(list, &doc, bytes);)
		bytes += 8;
	for (uint64_t nth = 1; fails_at(list, &doc, nth);)
		nth++;
	if (selector_fields_compile(str_from_cstr(list), &work, &fields, NULL, &err) != STATUS_OK)
		fail_msg("%s: %s", list, err.text);
	assert_non_null(fields);
	assert_int_equal(selector_fields_write(fields, &doc, &work, &out), STATUS_OK);
	(void)snprintf(text, sizeof(text), "%.*s", (int)out.len, out.ptr);
	buf_release(&out);
	return text;
}

static void
only_what_is_wanted_and_there_is_shown(void **state)
{
	const char *doc = "{\"a\":{\"x\":1,\"y\":[{\"z\":2},3]},\"b\":\"t\",\"a.x\":4,\"e\":{}}";

	(void)state;
	assert_string_equal(shown("[\"b\"]", doc), "{\"b\":\"t\"}");
	assert_string_equal(shown("[\"_id\",\"b\",\"none\"]", doc),
			    "{\"_id\":\"Doc\",\"b\":\"t\"}");
	assert_string_equal(shown("[\"b\",\"_rev\"]", doc), "{\"_rev\":\"1-abc\",\"b\":\"t\"}");
	assert_string_equal(shown("[\"a.x\"]", doc), "{\"a\":{\"x\":1}}");
	assert_string_equal(shown("[\"a.y\",\"a.x\"]", doc),
			    "{\"a\":{\"x\":1,\"y\":[{\"z\":2},3]}}");
	assert_string_equal(shown("[\"a.x\",\"a\"]", doc), "{\"a\":{\"x\":1,\"y\":[{\"z\":2},3]}}");
	assert_string_equal(shown("[\"a\\\\.x\"]", doc), "{\"a.x\":4}");
	assert_string_equal(shown("[\"a.y.0.z\"]", doc), "{\"a\":{\"y\":{\"0\":{\"z\":2}}}}");
	assert_string_equal(shown("[\"a.q\",\"b.q\"]", doc), "{}");
	assert_string_equal(shown("[\"a.q\",\"b\"]", doc), "{\"b\":\"t\"}");
	assert_string_equal(shown("[\"e\"]", doc), "{\"e\":{}}");
	assert_string_equal(shown("[\"e.f\"]", doc), "{}");
	assert_string_equal(shown("[\"e\"]", "{}"), "{}");
}

/* Of each set of fields those that are there are shown, with a comma between any two. */
static void
fields_that_are_not_there_leave_no_trace(void **state)
{
	static const struct {
		const char *field, *shown; /* NULL: nothing */
	} fields[] = {
		{ "a", "\"a\":0" }, { "b.x", NULL },        { "c.x", "\"c\":{\"x\":1}" },
		{ "d.x.y", NULL },  { "e", "\"e\":\"t\"" }, { "f.y", NULL },
		{ "none", NULL },
	};
	static const char doc[] = "{\"a\":0,\"b\":{},\"c\":{\"x\":1,\"y\":2},\"d\":{\"x\":3},"
				  "\"e\":\"t\",\"f\":[1]}";

	(void)state;
	for (unsigned set = 1; set < 1u << COUNT(fields); set++) {
		AUTO(buf_release) struct buf list = BUF_INIT(1024);
		AUTO(buf_release) struct buf expected = BUF_INIT(1024);

		for (size_t i = 0; i < COUNT(fields); i++) {
			if (!(set & (1u << i)))
				continue;
			buf_printf(&list, "%c\"%s\"", list.len ? ',' : '[', fields[i].field);
			if (fields[i].shown)
				buf_printf(&expected, "%c%s", expected.len ? ',' : '{',
					   fields[i].shown);
		}
		buf_append(&list, "]", sizeof("]"));
		if (!expected.len)
			buf_append_byte(&expected, '{');
		buf_append(&expected, "}", sizeof("}"));
		assert_int_equal(buf_status(&list), STATUS_OK);
		assert_int_equal(buf_status(&expected), STATUS_OK);
		assert_string_equal(shown(list.ptr, doc), expected.ptr);
	}
}

/* The names of a field; "!" where there is none. */
static const char *
names_of(struct str field)
{
	static char names[256];
	struct buf out = { .ptr = names, .cap = sizeof(names), .max_bytes = sizeof(names) };
	struct str name;
	bool more = true;

	while (more && selector_name_cut(&field, arena, &name, &more) == STATUS_OK)
		buf_printf(&out, "%.*s%s", STR_ARG(name), more ? "|" : "");
	buf_append(&out, "!", more ? sizeof("!") : 0);
	buf_append_byte(&out, '\0');
	assert_int_equal(buf_status(&out), STATUS_OK);
	return names;
}

/* Whatever lies in front of it in memory: a backslash there is none of the field's. */
static void
a_field_is_cut_at_its_dots(void **state)
{
	static const struct {
		const char *field, *names;
	} cases[] = {
		{ "a", "a" },
		{ "a.b", "a|b" },
		{ "a.b.c", "a|b|c" },
		{ "a\\.b", "a.b" },
		{ "a\\.b.c", "a.b|c" },
		{ "\\.a", ".a" },
		{ "a.\\.b", "a|.b" },
		{ "a\\.", "a." },
		{ ".a", "!" },
		{ ".", "!" },
		{ "", "!" },
		{ "a.", "a|!" },
		{ "a..b", "a|!" },
		{ "a\\..b", "a.|b" },
		{ "..", "!" },
	};
	static const char fronts[] = { '\\', '.', 'a', '"' };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		for (size_t j = 0; j < COUNT(fronts); j++) {
			struct str text = arena_printf(arena, "%c%s", fronts[j], cases[i].field);

			assert_string_equal(names_of(str_skip(text, 1)), cases[i].names);
		}
}

static void
an_empty_list_is_everything(void **state)
{
	struct selector_fields *fields;

	(void)state;
	assert_int_equal(selector_fields_compile(STR("[]"), &work, &fields, NULL, NULL), STATUS_OK);
	assert_null(fields);
}

static void
what_is_no_list_is_refused(void **state)
{
	static const struct {
		const char *text, *name, *reason;
	} cases[] = {
		{ "1", "invalid_fields", "Fields must be an array of strings, not: 1" },
		{ "[\"a\",{}]", "invalid_field", "Invalid JSON for field spec: {}" },
		{ "[\"a..b\"]", "invalid_field_name", "Invalid field name: a..b" },
	};
	struct selector_fields *fields;
	struct buf text = BUF_INIT(1 << 20);

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		enum selector_error error;
		struct err err;

		assert_int_equal(selector_fields_compile(str_from_cstr(cases[i].text), &work,
							 &fields, &error, &err),
				 STATUS_INVALID);
		assert_string_equal(selector_error_name(error), cases[i].name);
		assert_string_equal(err.text, cases[i].reason);
	}
	buf_append_cstr(&text, "[\"x\"");
	for (int i = 0; i < SELECTOR_FIELDS; i++)
		buf_printf(&text, ",\"f%d\"", i);
	buf_append_byte(&text, ']');
	assert_int_equal(selector_fields_compile(buf_str(&text), &work, &fields, NULL, NULL),
			 STATUS_LIMIT);
	buf_release(&text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_what_is_wanted_and_there_is_shown, setup,
						teardown),
		cmocka_unit_test_setup_teardown(fields_that_are_not_there_leave_no_trace, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_field_is_cut_at_its_dots, setup, teardown),
		cmocka_unit_test_setup_teardown(an_empty_list_is_everything, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_list_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests_name("lists of fields", tests, NULL, NULL);
}
