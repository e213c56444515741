/* Strings, UTF-8, statuses, clocks and randomness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/quote.h"
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

static uint8_t
lower(unsigned c)
{
	return (uint8_t)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

/* Lengths on both sides of one word and of two, each byte beside each other one, at any place. */
static void
only_the_case_of_ascii_letters_is_ignored(void **state)
{
	enum {
		MOST = 18,
	};
	char a[MOST], b[MOST];

	(void)state;
	for (size_t len = 1; len <= MOST; len++) {
		for (size_t i = 0; i < len; i++) {
			a[i] = (char)(i % 2 ? 'q' : 'Q');
			b[i] = (char)(i % 3 ? 'q' : 'Q');
		}
		for (size_t at = 0; at < len; at++) {
			char kept_a = a[at], kept_b = b[at];

			for (unsigned pair = 0; pair < 1u << 16; pair++) {
				a[at] = (char)(pair & 0xff);
				b[at] = (char)(pair >> 8);
				assert_int_equal(str_eq_nocase(str_of(a, len), str_of(b, len)),
						 lower(pair & 0xff) == lower(pair >> 8));
			}
			a[at] = kept_a;
			b[at] = kept_b;
		}
	}
	assert_true(str_eq_nocase(STR(""), (struct str){ 0 }));
	assert_false(str_eq_nocase(STR("a"), STR("aa")));
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
		for (size_t before = 0; before < 40; before++) {
			struct str end = str_of(text, before + bad[i].len);

			memset(text, 'a', sizeof(text));
			memcpy(text + before, bad[i].ptr, bad[i].len);
			assert_int_equal(utf8_valid_prefix(str_of(text, sizeof(text))), before);
			assert_int_equal(utf8_valid_prefix(end), before);
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
	/* Never inside a character. */
	for (size_t i = 0; i < sizeof(text) / 4; i++)
		memcpy(text + 4 * i, "\xf0\x9f\x98\x80", 4);
	text[sizeof(text) - 1] = '\0';
	for (size_t skip = 0; skip < 4; skip++) {
		assert_int_equal(err_set(&err, STATUS_IO, "%.*s%s", (int)skip, "abc", text),
				 STATUS_IO);
		assert_int_equal(utf8_valid_prefix(str_from_cstr(err.text)), strlen(err.text));
		assert_string_equal(err.text + strlen(err.text) - 3, "...");
	}
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

static void
texts_are_cut_at_separators(void **state)
{
	struct str rest = STR("a=b=");
	struct str none = { NULL, 0 };
	struct str element;

	(void)state;
	assert_true(str_eq(str_cut(&rest, '='), STR("a")));
	assert_true(str_eq(str_cut(&rest, '='), STR("b")));
	assert_int_equal(rest.len, 0);
	assert_int_equal(str_cut(&rest, '=').len, 0);
	assert_int_equal(str_cut(&none, '=').len, 0);
	rest = STR(" ,a b,, \tc\n, ");
	assert_true(str_list_next(&rest, &element) && str_eq(element, STR("a b")));
	assert_true(str_list_next(&rest, &element) && str_eq(element, STR("c")));
	assert_false(str_list_next(&rest, &element));
	assert_false(str_list_next(&none, &element));
}

static void
keyed_hashes_fall_into_all_slots(void **state)
{
	enum {
		SLOTS = 64,
		KEYS = SLOTS * 64,
	};
	static char zeros[KEYS];
	size_t hits[SLOTS] = { 0 };
	char text[20] = "";

	(void)state;
	assert_true(hash_keyed(1, STR("123456789")) == hash_keyed(1, STR("123456789")));
	assert_true(hash_keyed(1, STR("123456789")) != hash_keyed(2, STR("123456789")));
	assert_true(hash_keyed(1, STR("123456789")) != hash_keyed(1, STR("12345678")));
	/* Texts of zeros differ in their lengths alone. */
	for (size_t i = 0; i < KEYS; i++)
		hits[hash_keyed(0, str_of(zeros, i)) % SLOTS]++;
	/* Every byte counts, wherever the text ends. */
	for (size_t len = 1; len <= sizeof(text); len++) {
		uint64_t before = hash_keyed(0, str_of(text, len));

		for (size_t i = 0; i < len; i++) {
			text[i] = 1;
			assert_true(hash_keyed(0, str_of(text, len)) != before);
			text[i] = 0;
		}
		assert_true(hash_keyed(0, str_of(text, len)) == before);
	}
	for (size_t i = 0; i < SLOTS; i++)
		assert_in_range(hits[i], KEYS / SLOTS / 4, KEYS / SLOTS * 4);
	assert_int_equal(hash_slots(0), 4);
	assert_int_equal(hash_slots(2), 4);
	assert_int_equal(hash_slots(3), 8);
}

static void
shown_text_is_valid_utf8_and_bounded(void **state)
{
	static const struct {
		struct str text;
		const char *shown;
	} cases[] = {
		{ { "", 0 }, "" },
		{ { "a\0b", 3 }, "a\\x00b" },
		{ { "\x1f\x7f\n", 3 }, "\\x1f\\x7f\\x0a" },
		{ { "\"\\", 2 }, "\"\\" },
		{ { "\xc3\xa9\xc3", 3 }, "\xc3\xa9\\xc3" },
		{ { "\xed\xa0\x80", 3 }, "\\xed\\xa0\\x80" },
		{ { "\xf0\x9f\x98\x80", 4 }, "\xf0\x9f\x98\x80" },
	};
	struct rand_seq r = { 7 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(QUOTE_SHOW(cases[i].text), cases[i].shown);
	for (int i = 0; i < 20000; i++) {
		char bytes[2 * QUOTE_SHOWN_BYTES];
		char room[QUOTE_SHOWN_BYTES];
		size_t len = rand_seq_below(&r, sizeof(bytes));
		bool multibyte = i % 2;

		for (size_t at = 0; at < len; at++)
			bytes[at] = multibyte ? "\xe2\x82\xac"[at % 3] : (char)rand_seq_next(&r);
		quote_show(str_of(bytes, len), room);
		assert_true(strlen(room) < sizeof(room));
		assert_int_equal(utf8_valid_prefix(str_from_cstr(room)), strlen(room));
		for (const char *c = room; *c; c++)
			assert_true((unsigned char)*c >= ' ' && *c != 0x7f);
		if (len >= QUOTE_SHOWN_BYTES)
			assert_string_equal(room + strlen(room) - 3, "...");
	}
}

static void
any_bytes_are_quoted_as_json(void **state)
{
	struct buf out = BUF_INIT(4096);

	(void)state;
	quote_json(&out, STR("a\"\\\0\n\x1f\x7f\xc3\xa9\xff\xe2\x82"));
	buf_append_byte(&out, '\0');
	assert_string_equal(out.ptr, "\"a\\\"\\\\\\u0000\\u000a\\u001f\x7f\xc3\xa9\xef\xbf\xbd"
				     "\xef\xbf\xbd\xef\xbf\xbd\"");
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_compare_as_bytes),
		cmocka_unit_test(only_the_case_of_ascii_letters_is_ignored),
		cmocka_unit_test(numbers_are_whole_or_refused),
		cmocka_unit_test(every_scalar_value_survives_utf8),
		cmocka_unit_test(what_is_not_utf8_ends_the_valid_prefix),
		cmocka_unit_test(a_long_explanation_is_cut_visibly),
		cmocka_unit_test(every_status_has_its_own_name),
		cmocka_unit_test(time_goes_on_and_sequences_repeat),
		cmocka_unit_test(hexadecimal_digits_of_either_case_are_bytes),
		cmocka_unit_test(texts_are_cut_at_separators),
		cmocka_unit_test(keyed_hashes_fall_into_all_slots),
		cmocka_unit_test(shown_text_is_valid_utf8_and_bounded),
		cmocka_unit_test(any_bytes_are_quoted_as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
