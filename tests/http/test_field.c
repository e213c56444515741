/* Values of header fields: lists, parameters, preferences and entity tags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/field.h"

#define assert_text(s, expected)                                                                   \
	do {                                                                                       \
		struct str s_ = (s);                                                               \
		if (!str_eq(s_, str_from_cstr(expected)))                                          \
			fail_msg("\"%.*s\" is not \"%s\"", STR_ARG(s_), expected);                 \
	} while (0)

static void
lists_to(const char *list, const char *expected)
{
	struct str rest = str_from_cstr(list);
	struct buf out = BUF_INIT(1 << 16);
	struct str element;

	while (http_list_next(&rest, &element)) {
		assert_true(element.len > 0);
		buf_append_str(&out, element);
		buf_append_byte(&out, '|');
	}
	assert_text(buf_str(&out), expected);
	buf_release(&out);
}

static void
lists_are_cut_at_commas_outside_of_quotes(void **state)
{
	(void)state;
	lists_to("", "");
	lists_to("a", "a|");
	lists_to(" a ,\tb,c ", "a|b|c|");
	lists_to(",, a ,, ,b,", "a|b|");
	lists_to("\"a,b\", c", "\"a,b\"|c|");
	lists_to("\"a\\\",b\", c", "\"a\\\",b\"|c|");
	lists_to("a;x=\"1,2\";q=0.5, b", "a;x=\"1,2\";q=0.5|b|");
	/* A quoted string that nobody has closed goes to the end. */
	lists_to("a, \"b, c", "a|\"b, c|");
	lists_to("\"a\\", "\"a\\|");
}

static void
param_is(const char *field, const char *name, const char *expected)
{
	struct buf out = BUF_INIT(1 << 16);
	struct str written;

	if (!http_field_param(str_from_cstr(field), str_from_cstr(name), &written)) {
		if (expected)
			fail_msg("%s has no %s", field, name);
		return;
	}
	assert_non_null(expected);
	http_unquote(written, &out);
	assert_text(buf_str(&out), expected);
	buf_release(&out);
}

static void
parameters_are_found_and_unquoted(void **state)
{
	(void)state;
	assert_text(http_field_value(STR(" text/html ; charset=utf-8")), "text/html");
	assert_text(http_field_value(STR("")), "");
	assert_int_equal(http_field_value((struct str){ NULL, 0 }).len, 0);
	assert_false(http_field_param((struct str){ NULL, 0 }, STR("a"), &(struct str){ NULL, 0 }));
	param_is("a; b=c", "b", "c");
	param_is("a; B = c ;d=e", "b", "c");
	param_is("a; xb=1; b=2", "b", "2");
	param_is("b=1; c=2", "b", NULL);
	param_is("a; b", "b", "");
	param_is("a; b=", "b", "");
	param_is("a; b=\"c;d=e\"; d=f", "d", "f");
	param_is("a; b=\"c \\\"d\\\\ e\"", "b", "c \"d\\ e");
	param_is("a; b=\"c", "b", "c");
	param_is("a; b=\"c\\", "b", "c\\");
	param_is("a; b=\"\"", "b", "");
	param_is("a; b=1; b=2", "b", "1");
	param_is("a; =1", "", NULL);
}

static void
what_is_quoted_comes_back(void **state)
{
	struct buf field = BUF_INIT(1 << 16);
	struct buf text = BUF_INIT(1 << 16);

	(void)state;
	buf_append_cstr(&field, "attachment; filename=");
	http_quote(STR("a\"b\\c;d,e \xc3\xa4"), &field);
	buf_append_cstr(&field, "; x=y");
	param_is((buf_append_byte(&field, 0), field.ptr), "filename", "a\"b\\c;d,e \xc3\xa4");
	param_is(field.ptr, "x", "y");
	http_quote(STR("a\r\nb\0"), &text);
	assert_text(buf_str(&text), "\"a%0D%0Ab%00\"");
	buf_clear(&text);
	http_write_text(STR("\"a\"\r\n"), &text);
	assert_text(buf_str(&text), "\"a\"%0D%0A");
	buf_release(&field);
	buf_release(&text);
}

static void
prefers(const char *list, const char *name, enum http_match match, unsigned quality)
{
	struct http_preference p = http_preference_of(str_from_cstr(list), str_from_cstr(name));

	if (p.match != match || p.quality != quality)
		fail_msg("%s: %s has %d, %u", list, name, (int)p.match, p.quality);
}

static void
the_most_specific_element_tells_the_preference(void **state)
{
	(void)state;
	prefers("", "gzip", HTTP_MATCH_NONE, 0);
	prefers("deflate", "gzip", HTTP_MATCH_NONE, 0);
	prefers("GZip", "gzip", HTTP_MATCH_NAME, 1000);
	prefers("*;q=0.1, gzip;q=0", "gzip", HTTP_MATCH_NAME, 0);
	prefers("gzip;q=0, *", "gzip", HTTP_MATCH_NAME, 0);
	prefers("gzip;q=0.2, gzip;q=0.7", "gzip", HTTP_MATCH_NAME, 700);
	prefers("*;q=0", "gzip", HTTP_MATCH_ANY, 0);
	prefers("*/*", "gzip", HTTP_MATCH_NONE, 0);
	prefers("*", "a/b", HTTP_MATCH_NONE, 0);
	prefers("text/*;q=0.5, */*;q=0.1", "text/html", HTTP_MATCH_FAMILY, 500);
	prefers("text/*;q=0.5, */*;q=0.1", "a/b", HTTP_MATCH_ANY, 100);
	prefers("texts/*, tex/*", "text/html", HTTP_MATCH_NONE, 0);
	prefers("*/*, text/html;level=\"1,2\";q=0", "text/html", HTTP_MATCH_NAME, 0);
}

static void
q_values_are_thousandths(void **state)
{
	static const struct {
		const char *text;
		unsigned quality;
	} cases[] = {
		{ "a;q=1", 1000 },      { "a;q=1.000", 1000 },
		{ "a; Q=0.5 ;x", 500 }, { "a;q=0", 0 },
		{ "a;q=0.", 0 },        { "a;q=0.000", 0 },
		{ "a;q=0.125", 125 },   { "a;q=.2", 200 },
		{ "a;q=0.0001", 1 },    { "a;q=2", 1000 },
		{ "a;q=x", 1000 },      { "a;q=", 1000 },
		{ "a;q=-1", 1000 },     { "a;q=0.5.5", 1000 },
		{ "a;q=00", 1000 },     { "a;q=99999999999999999999999", 1000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		prefers(cases[i].text, "a", HTTP_MATCH_NAME, cases[i].quality);
}

static void
tags_are_compared_weakly(void **state)
{
	(void)state;
	assert_true(http_etag_listed(STR("\"a\""), STR("\"a\"")));
	assert_true(http_etag_listed(STR("\"x\", W/\"a\""), STR("\"a\"")));
	assert_true(http_etag_listed(STR("\"a\""), STR("W/\"a\"")));
	assert_true(http_etag_listed(STR(" ,\"a,b\" "), STR("\"a,b\"")));
	/* A backslash is a character of a tag like any other. */
	assert_true(http_etag_listed(STR("\"x\\\", \"a\""), STR("\"a\"")));
	assert_true(http_etag_listed(STR("\"x\\\", \"a\""), STR("\"x\\\"")));
	assert_false(http_etag_listed(STR("a"), STR("\"a\"")));
	assert_false(http_etag_listed(STR("*"), STR("\"a\"")));
	assert_false(http_etag_listed(STR(""), STR("\"a\"")));
	assert_false(http_etag_listed(STR("\"x,\"a\",y\""), STR("\"a\"")));
}

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"

static void
a_trace_is_read_as_w3c_has_it(void **state)
{
	static const char *const good[] = { "00-" TRACE "-" PARENT "-01",
					    " 00-" TRACE "-" PARENT "-00 ",
					    "01-" TRACE "-" PARENT "-01",
					    "cc-" TRACE "-" PARENT "-01-what-is-new" };
	static const char *const bad[] = { "",
					   "00",
					   "00-" TRACE,
					   "00-" TRACE "-" PARENT,
					   "00-" TRACE "-" PARENT "-0",
					   "00-" TRACE "-" PARENT "-01-more",
					   "01-" TRACE "-" PARENT "-01more",
					   "ff-" TRACE "-" PARENT "-01",
					   "0-" TRACE "-" PARENT "-01",
					   "00-00000000000000000000000000000000-" PARENT "-01",
					   "00-" TRACE "-0000000000000000-01",
					   "00-0AF7651916CD43DD8448EB211C80319C-" PARENT "-01",
					   "00_" TRACE "-" PARENT "-01" };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(str_eq(http_trace_id(str_from_cstr(good[i])), STR(TRACE)));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(http_trace_id(str_from_cstr(bad[i])).len, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_cut_at_commas_outside_of_quotes),
		cmocka_unit_test(parameters_are_found_and_unquoted),
		cmocka_unit_test(what_is_quoted_comes_back),
		cmocka_unit_test(the_most_specific_element_tells_the_preference),
		cmocka_unit_test(q_values_are_thousandths),
		cmocka_unit_test(tags_are_compared_weakly),
		cmocka_unit_test(a_trace_is_read_as_w3c_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
