/* Percent-escapes and the parameters of queries, both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/escape.h"

static void
escapes_to(struct str s, const char *keep, const char *expected)
{
	struct buf out = BUF_INIT(1 << 16);

	http_escape_keeping(&out, s, keep);
	assert_int_equal(buf_status(&out), STATUS_OK);
	if (!str_eq(buf_str(&out), str_from_cstr(expected)))
		fail_msg("\"%.*s\" is not \"%s\"", STR_ARG(buf_str(&out)), expected);
	buf_release(&out);
}

static void
only_unreserved_characters_stay_as_they_are(void **state)
{
	(void)state;
	escapes_to(STR("azAZ09-_.~"), "", "azAZ09-_.~");
	escapes_to(STR("a/b?c#d e+f%:"), "", "a%2Fb%3Fc%23d%20e%2Bf%25%3A");
	escapes_to(STR("a:b/c"), ":", "a:b%2Fc");
	escapes_to(STR("\0\x7f\xc3\xa4"), ":", "%00%7F%C3%A4");
	escapes_to(STR(""), "", "");
}

static void
every_byte_comes_back(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	char all[256];
	struct buf out = BUF_INIT(1 << 16);
	struct str back;

	(void)state;
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	http_escape(&out, str_of(all, sizeof(all)));
	assert_int_equal(http_unescape(buf_str(&out), true, arena, &back), STATUS_OK);
	assert_true(str_eq(back, str_of(all, sizeof(all))));
	buf_release(&out);
	arena_free(arena);
}

static void
escapes_and_parameters_are_undone(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	struct http_param *params;
	struct buf many = BUF_INIT(1 << 20);
	struct str s;
	size_t n;

	(void)state;
	assert_int_equal(http_unescape(STR("a%20b+%c3%A4%"), false, arena, &s), STATUS_INVALID);
	assert_int_equal(http_unescape(STR("%4"), false, arena, &s), STATUS_INVALID);
	assert_int_equal(http_unescape(STR("%g0"), false, arena, &s), STATUS_INVALID);
	assert_int_equal(http_unescape(STR("a%20b+%c3%A4"), false, arena, &s), STATUS_OK);
	assert_true(str_eq(s, STR("a b+\xc3\xa4")));
	assert_int_equal(http_unescape(STR("a+b%2B"), true, arena, &s), STATUS_OK);
	assert_true(str_eq(s, STR("a b+")));

	assert_int_equal(http_parse_query(STR("a=1&&b&c=%22x%22&=v&a=2=3"), arena, &params, &n),
			 STATUS_OK);
	assert_int_equal(n, 5);
	assert_true(str_eq(params[0].name, STR("a")) && str_eq(params[0].value, STR("1")));
	assert_true(str_eq(params[1].name, STR("b")) && params[1].value.len == 0);
	assert_true(str_eq(params[2].value, STR("\"x\"")));
	assert_true(params[3].name.len == 0 && str_eq(params[3].value, STR("v")));
	assert_true(str_eq(params[4].value, STR("2=3")));
	assert_int_equal(http_parse_query(STR(";a=1;b=%3B;&c=x=;"), arena, &params, &n), STATUS_OK);
	assert_int_equal(n, 3);
	assert_true(str_eq(params[0].name, STR("a")) && str_eq(params[0].value, STR("1")));
	assert_true(str_eq(params[1].name, STR("b")) && str_eq(params[1].value, STR(";")));
	assert_true(str_eq(params[2].name, STR("c")) && str_eq(params[2].value, STR("x=")));
	assert_int_equal(http_parse_query(STR(""), arena, &params, &n), STATUS_OK);
	assert_int_equal(n, 0);
	assert_int_equal(http_parse_query(STR("a=%zz"), arena, &params, &n), STATUS_INVALID);
	for (int i = 0; i < 257; i++)
		buf_append_cstr(&many, i % 2 ? "a&" : "a;");
	assert_int_equal(http_parse_query(buf_str(&many), arena, &params, &n), STATUS_LIMIT);
	buf_release(&many);
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_unreserved_characters_stay_as_they_are),
		cmocka_unit_test(every_byte_comes_back),
		cmocka_unit_test(escapes_and_parameters_are_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
