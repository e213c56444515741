/* Strings, UTF-8, statuses, clocks and randomness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rand.h"
#include "base/status.h"
#include "base/str.h"
#include "base/utf8.h"

static void
strings_compare_as_bytes(void **state)
{
	(void)state;
	assert_true(str_eq(STR(""), (struct str){ 0 }));
	assert_true(str_eq(STR("a\0b"), STR("a\0b")));
	assert_false(str_eq(STR("a\0b"), STR("a\0c")));
	assert_true(str_cmp(STR("a"), STR("b")) < 0);
	assert_true(str_cmp(STR("a"), STR("a\0")) < 0);
	assert_true(str_cmp(STR("\xff"), STR("a")) > 0);
	assert_int_equal(str_cmp((struct str){ 0 }, STR("")), 0);
	assert_true(str_starts_with(STR("abc"), STR("ab")));
	assert_true(str_starts_with(STR("abc"), STR("")));
	assert_false(str_starts_with(STR("ab"), STR("abc")));
	assert_true(str_eq_nocase(STR("Content-Type"), STR("cONTENT-tYPE")));
	assert_false(str_eq_nocase(STR("@"), STR("`")));
	assert_true(str_eq(str_trim(STR(" \t\r\na b\n ")), STR("a b")));
	assert_int_equal(str_trim(STR("  ")).len, 0);
}

static void
numbers_are_whole_or_refused(void **state)
{
	uint64_t u = 7;
	int64_t i = 7;

	(void)state;
	assert_true(str_to_u64(STR("18446744073709551615"), &u));
	assert_true(u == UINT64_MAX);
	assert_false(str_to_u64(STR("18446744073709551616"), &u));
	assert_false(str_to_u64(STR("99999999999999999999"), &u));
	assert_false(str_to_u64(STR(""), &u));
	assert_false(str_to_u64(STR("1 "), &u));
	assert_false(str_to_u64(STR("-1"), &u));
	assert_true(u == UINT64_MAX);
	assert_true(str_to_i64(STR("-9223372036854775808"), &i));
	assert_true(i == INT64_MIN);
	assert_true(str_to_i64(STR("+9223372036854775807"), &i));
	assert_true(i == INT64_MAX);
	assert_false(str_to_i64(STR("9223372036854775808"), &i));
	assert_false(str_to_i64(STR("-9223372036854775809"), &i));
	assert_false(str_to_i64(STR("-"), &i));
	assert_false(str_to_i64(STR("--1"), &i));
	assert_true(i == INT64_MAX);
}

static void
every_scalar_value_survives_utf8(void **state)
{
	(void)state;
	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		char bytes[4];
		size_t n;

		if (code == 0xd800)
			code = 0xe000;
		n = utf8_encode(code, bytes);
		if (utf8_valid_prefix(str_of(bytes, n)) != n)
			fail_msg("U+%04X is refused", code);
		if (n > 1 && utf8_valid_prefix(str_of(bytes, n - 1)) != 0)
			fail_msg("U+%04X is taken when cut", code);
	}
}

static void
what_is_not_utf8_ends_the_valid_prefix(void **state)
{
	static const struct str bad[] = {
		STR("\x80"),
		STR("\xbf"),
		STR("\xc0\xaf"),
		STR("\xc1\xbf"),
		STR("\xe0\x80\xaf"),
		STR("\xed\xa0\x80"),
		STR("\xed\xbf\xbf"),
		STR("\xf0\x80\x80\xaf"),
		STR("\xf4\x90\x80\x80"),
		STR("\xf5\x80\x80\x80"),
		STR("\xff"),
		STR("\xc3("),
		STR("\xe2\x82("),
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		/* Behind any number of good bytes: the fast path must not run past it. */
		for (size_t before = 0; before < 20; before++) {
			memset(text, 'a', sizeof(text));
			memcpy(text + before, bad[i].ptr, bad[i].len);
			assert_int_equal(utf8_valid_prefix(str_of(text, sizeof(text))), before);
		}
	}
	assert_int_equal(utf8_valid_prefix(STR("")), 0);
	assert_int_equal(utf8_valid_prefix(STR("abc\0def\xc3\xa4\xf0\x9f\x98\x80")), 13);
}

static void
a_long_explanation_is_cut_visibly(void **state)
{
	char text[2 * ERR_TEXT_BYTES];
	struct err err = { 0 };

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(err_set(&err, STATUS_IO, "%s", text), STATUS_IO);
	assert_int_equal(err.status, STATUS_IO);
	assert_int_equal(strlen(err.text), ERR_TEXT_BYTES - 1);
	assert_string_equal(err.text + ERR_TEXT_BYTES - 4, "...");
	assert_int_equal(err_set(&err, STATUS_LIMIT, "%d", 5), STATUS_LIMIT);
	assert_string_equal(err.text, "5");
	assert_int_equal(err_set(NULL, STATUS_INVALID, "x"), STATUS_INVALID);
}

static void
every_status_has_its_own_name(void **state)
{
	(void)state;
	for (int i = 0; i < STATUS_COUNT; i++) {
		assert_non_null(status_name((enum status)i));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(status_name((enum status)i),
						status_name((enum status)k));
	}
	assert_string_equal(status_name(STATUS_TX_CONFLICT), "tx_conflict");
}

static void
time_goes_on_and_sequences_repeat(void **state)
{
	struct rand_seq a = { .state = 42 };
	struct rand_seq b = { .state = 42 };
	uint8_t bytes[32] = { 0 };
	uint8_t zero[32] = { 0 };
	uint64_t before = clock_mono_ns();

	(void)state;
	assert_true(clock_mono_ns() >= before);
	assert_true(clock_after_ms(5) >= before + 5 * CLOCK_NS_PER_MS);
	assert_true(clock_wall_ms() > UINT64_C(1600000000000));
	for (int i = 0; i < 1000; i++) {
		assert_true(rand_seq_next(&a) == rand_seq_next(&b));
		assert_true(rand_seq_below(&a, 7) < 7);
		rand_seq_below(&b, 7);
	}
	rand_bytes(bytes, sizeof(bytes));
	assert_memory_not_equal(bytes, zero, sizeof(bytes));
}

static void
hexadecimal_digits_of_either_case_are_bytes(void **state)
{
	uint8_t bytes[3] = { 0 };

	(void)state;
	assert_true(str_from_hex(STR("00aFf9"), bytes));
	assert_memory_equal(bytes, "\x00\xaf\xf9", 3);
	assert_true(str_from_hex(STR(""), bytes));
	assert_false(str_from_hex(STR("0"), bytes));
	assert_false(str_from_hex(STR("0g"), bytes));
	assert_false(str_from_hex(STR("/0"), bytes));
	assert_int_equal(str_hex_digit('G'), -1);
	assert_int_equal(str_hex_digit(':'), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_compare_as_bytes),
		cmocka_unit_test(numbers_are_whole_or_refused),
		cmocka_unit_test(every_scalar_value_survives_utf8),
		cmocka_unit_test(what_is_not_utf8_ends_the_valid_prefix),
		cmocka_unit_test(a_long_explanation_is_cut_visibly),
		cmocka_unit_test(every_status_has_its_own_name),
		cmocka_unit_test(time_goes_on_and_sequences_repeat),
		cmocka_unit_test(hexadecimal_digits_of_either_case_are_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
