/* Requests, patterns, numbers and answers of Redis's protocol. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/budget.h"
#include "door/redis/wire/glob.h"
#include "door/redis/wire/number.h"
#include "door/redis/wire/reply.h"
#include "door/redis/wire/request.h"

enum {
	ARENA_BYTES = 1024 * 1024,
};

/* Reads a request out of `text` as it comes in two parts, and gives its words with commas. */
static enum status
read_in_parts(struct str text, size_t first, struct arena *arena, struct buf *ret, struct err *err)
{
	struct request r;
	struct str *argv;
	size_t need;
	enum status status;

	request_init(&r, NULL);
	status = request_read(&r, str_of(text.ptr, first), arena, &need, err);
	if (status == STATUS_NOT_FOUND) {
		assert_true(need > first);
		status = request_read(&r, text, arena, &need, err);
	}
	if (status == STATUS_OK) {
		assert_int_equal(request_args(&r, text, arena, &argv), STATUS_OK);
		for (size_t i = 0; i < r.expected; i++) {
			if (i)
				buf_append_byte(ret, ',');
			buf_append_str(ret, argv[i]);
		}
	}
	request_fini(&r);
	return status;
}

static void
expect_words(const char *text, const char *words)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct str in = str_from_cstr(text);

	for (size_t first = 0; first <= in.len; first++) {
		struct buf got = BUF_INIT(ARENA_BYTES);
		struct err err = { 0 };

		assert_int_equal(read_in_parts(in, first, arena, &got, &err), STATUS_OK);
		assert_int_equal(got.len, strlen(words));
		assert_memory_equal(got.len ? got.ptr : "", words, got.len);
		buf_release(&got);
		arena_clear(arena);
	}
	arena_free(arena);
}

static void
expect_refusal(const char *text, const char *why)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct buf got = BUF_INIT(ARENA_BYTES);
	struct err err = { 0 };

	assert_int_equal(read_in_parts(str_from_cstr(text), 0, arena, &got, &err), STATUS_INVALID);
	assert_string_equal(err.text, why);
	buf_release(&got);
	arena_free(arena);
}

static void
a_request_is_read_however_it_is_cut(void **state)
{
	(void)state;
	expect_words("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\n\r\nb\n\r\n", "SET,a,\r\nb\n");
	expect_words("*1\r\n$0\r\n\r\n", "");
	expect_words("*0\r\n", "");
	expect_words("*-1\r\n", "");
	expect_words("\r\n", "");
	expect_words("set  a \"b c\\x41\\n\" 'it\\'s'\n", "set,a,b cA\n,it's");
}

static void
what_is_no_request_is_refused_in_the_words_of_redis(void **state)
{
	(void)state;
	expect_refusal("*x\r\n", "Protocol error: invalid multibulk length");
	expect_refusal("*1048577\r\n", "Protocol error: invalid multibulk length");
	expect_refusal("*1\r\nGET\r\n", "Protocol error: expected '$', got 'G'");
	expect_refusal("*1\r\n$-1\r\n", "Protocol error: invalid bulk length");
	expect_refusal("*1\r\n$536870913\r\n", "Protocol error: invalid bulk length");
	expect_refusal("set \"a\r\n", "Protocol error: unbalanced quotes in request");
}

static void
strangers_have_smaller_limits(void **state)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct request r;
	struct err err = { 0 };
	size_t need;

	(void)state;
	request_init(&r, NULL);
	r.stranger = true;
	assert_int_equal(request_read(&r, STR("*11\r\n"), arena, &need, &err), STATUS_INVALID);
	assert_string_equal(err.text, "Protocol error: unauthenticated multibulk length");
	request_clear(&r);
	assert_int_equal(request_read(&r, STR("*1\r\n$16385\r\n"), arena, &need, &err),
			 STATUS_INVALID);
	assert_string_equal(err.text, "Protocol error: unauthenticated bulk length");
	request_fini(&r);
	arena_free(arena);
}

static void
arguments_count_in_the_memory_of_all_as_they_come(void **state)
{
	enum {
		BUDGET_BYTES = 1024 * 1024,
		MANY = 100 * 1000, /* of 16 bytes each */
	};
	AUTO(buf_release) struct buf in = BUF_INIT(MANY * 8);
	struct arena *arena = arena_new(ARENA_BYTES);
	struct budget_part part;
	struct budget budget;
	struct request r;
	struct err err = { 0 };
	size_t need, used;

	(void)state;
	budget_init(&budget, BUDGET_BYTES);
	budget_part_init(&part, &budget);
	request_init(&r, &part);
	buf_printf(&in, "*%d\r\n", MANY);
	for (int i = 0; i < MANY; i++) {
		buf_append_cstr(&in, "$0\r\n\r\n");
		if (i == MANY / 10) {
			assert_int_equal(request_read(&r, buf_str(&in), arena, &need, &err),
					 STATUS_NOT_FOUND);
			used = part.used_bytes;
			assert_true(used >= MANY / 10 * sizeof(struct request_arg));
		}
	}
	assert_int_equal(request_read(&r, buf_str(&in), arena, &need, &err), STATUS_LIMIT);
	assert_non_null(strstr(err.text, "memory_bytes"));
	request_clear(&r);
	assert_int_equal(part.used_bytes, 0);
	request_fini(&r);
	budget_part_release(&part);
	budget_fini(&budget);
	arena_free(arena);
}

static void
patterns_match_as_in_redis(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
		{ "*", "", true },
		{ "h?llo", "hello", true },
		{ "h?llo", "hllo", false },
		{ "h*o", "hello", true },
		{ "h[ae]llo", "hallo", true },
		{ "h[^e]llo", "hello", false },
		{ "h[^e]llo", "hbllo", true },
		{ "h[a-c]llo", "hbllo", true },
		{ "h[c-a]llo", "hbllo", true },
		{ "a\\*b", "a*b", true },
		{ "a\\*b", "axb", false },
		{ "*a*b*", "xxaxxbxx", true },
		{ "*a*b", "xxaxxbxx", false },
		{ "", "a", false },
		{ "[", "a", false },
		{ "[a", "a", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(glob_matches(str_from_cstr(cases[i].pattern),
					      str_from_cstr(cases[i].text), false),
				 cases[i].matches);
	assert_true(glob_matches(STR("ABC"), STR("abc"), true));
	assert_false(glob_matches(STR("ABC"), STR("abc"), false));
}

/* Each star looks at a text once, so a pattern of many is no attack. */
static void
a_pattern_of_many_stars_ends_soon(void **state)
{
	char pattern[2001], text[2001];

	(void)state;
	for (size_t i = 0; i < 2000; i++) {
		pattern[i] = i % 2 ? 'a' : '*';
		text[i] = 'a';
	}
	pattern[2000] = 'b';
	assert_false(glob_matches(str_of(pattern, 2001), str_of(text, 2000), false));
}

static void
numbers_are_read_and_written_as_in_redis(void **state)
{
	char text[NUMBER_TEXT_BYTES];
	char small[64];
	long double ld;
	int64_t n;
	double d;

	(void)state;
	assert_true(number_read_i64(STR("-12"), &n) && n == -12);
	assert_true(number_read_i64(STR("0"), &n) && n == 0);
	assert_false(number_read_i64(STR("-0"), &n));
	assert_false(number_read_i64(STR("01"), &n));
	assert_false(number_read_i64(STR("+1"), &n));
	assert_false(number_read_i64(STR(" 1"), &n));
	assert_false(number_read_i64(STR("9223372036854775808"), &n));
	assert_true(number_read_double(STR("-inf"), &d));
	assert_false(number_read_double(STR("nan"), &d));
	assert_false(number_read_double(STR("1x"), &d));
	assert_true(str_eq(number_write_double(3, small), STR("3")));
	assert_true(str_eq(number_write_double(0.1, small), STR("0.10000000000000001")));
	assert_true(number_read_long_double(STR("10.50"), &ld));
	assert_true(str_eq(number_write_long_double(ld + 0.1L, text), STR("10.6")));
	assert_true(str_eq(number_write_long_double(3, text), STR("3")));
}

static void
scores_of_digits_alone_are_what_strtod_makes_of_them(void **state)
{
	static const char *const texts[] = {
		"0",
		"7",
		"00",
		"042",
		"999999999999999",
		"9007199254740993",
		"000000000000000000001",
		"-0",
		"-5",
		"1e3",
		"0x10",
		"12345678901234567890123",
		"1.50",
		"+1",
		"9.e0",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		double wanted = strtod(texts[i], NULL), d;

		assert_true(number_read_double(str_from_cstr(texts[i]), &d));
		assert_memory_equal(&d, &wanted, sizeof(d)); /* -0 is another one than 0 */
	}
}

static void
answers_are_those_of_their_version(void **state)
{
	struct buf out = BUF_INIT(4096);
	struct reply r = { .out = &out, .version = 2 };

	(void)state;
	reply_map(&r, 1);
	reply_bulk_cstr(&r, "a");
	reply_null(&r);
	reply_double(&r, 1.5);
	reply_error(&r, STR("ERR a\nb"));
	assert_true(
		str_eq(buf_str(&out), STR("*2\r\n$1\r\na\r\n$-1\r\n$3\r\n1.5\r\n-ERR a b\r\n")));
	buf_clear(&out);
	r.version = 3;
	reply_map(&r, 1);
	reply_bulk_cstr(&r, "a");
	reply_null(&r);
	reply_double(&r, 1.5);
	reply_bool(&r, true);
	assert_true(str_eq(buf_str(&out), STR("%1\r\n$1\r\na\r\n_\r\n,1.5\r\n#t\r\n")));
	buf_release(&out);
}

static void
a_header_is_put_in_front_of_what_it_counts(void **state)
{
	struct buf out = BUF_INIT(4096);
	struct reply r = { .out = &out, .version = 3 };
	size_t at;

	(void)state;
	reply_int(&r, 1);
	at = reply_later(&r);
	reply_int(&r, 2);
	reply_int(&r, 3);
	reply_later_end(&r, at, '%', 1);
	assert_true(str_eq(buf_str(&out), STR(":1\r\n%1\r\n:2\r\n:3\r\n")));
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_read_however_it_is_cut),
		cmocka_unit_test(what_is_no_request_is_refused_in_the_words_of_redis),
		cmocka_unit_test(strangers_have_smaller_limits),
		cmocka_unit_test(arguments_count_in_the_memory_of_all_as_they_come),
		cmocka_unit_test(patterns_match_as_in_redis),
		cmocka_unit_test(a_pattern_of_many_stars_ends_soon),
		cmocka_unit_test(numbers_are_read_and_written_as_in_redis),
		cmocka_unit_test(scores_of_digits_alone_are_what_strtod_makes_of_them),
		cmocka_unit_test(answers_are_those_of_their_version),
		cmocka_unit_test(a_header_is_put_in_front_of_what_it_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
