#include "bson/decimal.h"

#include "peer.h"
#include "random_bson.h"

enum {
	ROUNDS = 20000,
};

static struct bson_decimal
parse(const char *text)
{
	struct bson_decimal d;
	unsigned flags = 0;

	if (!bson_decimal_parse(str_from_cstr(text), &d, &flags) || flags)
		fail_msg("%s is not taken as it is", text);
	return d;
}

static void
assert_prints(struct bson_decimal d, const char *expected)
{
	char text[BSON_DECIMAL_TEXT_BYTES];
	size_t len = bson_decimal_print(d, text);

	assert_int_equal(len, strlen(text));
	assert_string_equal(text, expected);
}

static void
texts_come_back_as_the_specification_writes_them(void **state)
{
	static const char *const texts[][2] = {
		{ "0", "0" },
		{ "-0", "-0" },
		{ "0.000001234567890123456789012345678901234", NULL },
		{ "1E3", "1E+3" },
		{ "1.000E3", "1000" },
		{ ".5", "0.5" },
		{ "5.", "5" },
		{ "+12.30", "12.30" },
		{ "1234567890123456789012345678901234", NULL },
		{ "1E-6176", "1E-6176" },
		{ "9.999999999999999999999999999999999E+6144", NULL },
		{ "1E+6144", "1.000000000000000000000000000000000E+6144" },
		{ "0E+6111", "0E+6111" },
		{ "0E-400", "0E-400" },
		{ "-0.0", "-0.0" },
		{ "0.0000001", "1E-7" },
		{ "0.000001", "0.000001" },
		{ "00012", "12" },
		{ "inf", "Infinity" },
		{ "-Infinity", "-Infinity" },
		{ "nan", "NaN" },
		{ "-NaN", "NaN" },
		{ "10E+1", "1.0E+2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_prints(parse(texts[i][0]), texts[i][1] ? texts[i][1] : texts[i][0]);
}

static void
what_is_no_number_is_refused(void **state)
{
	static const char *const texts[] = { "",    " 1",      "1 ",    "e1",  "1e",
					     "1e+", "1.2.3",   "--1",   "1,2", ".",
					     "+",   "Infinit", "1e1.5", "0x1", "nan1",
					     "in",  "1e:",     "1e1:",  "1e/" };
	struct bson_decimal d;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (bson_decimal_parse(str_from_cstr(texts[i]), &d, NULL))
			fail_msg("\"%s\" is taken for a number", texts[i]);
	/* What is behind a text is no part of it. */
	assert_false(bson_decimal_parse(str_of("1e+5", 2), &d, NULL));
	assert_false(bson_decimal_parse(str_of("+5", 1), &d, NULL));
	assert_false(bson_decimal_parse(str_of("+5", 0), &d, NULL));
	assert_false(bson_decimal_parse(str_of("-5", 0), &d, NULL));
}

static void
what_does_not_fit_is_rounded_and_told(void **state)
{
	struct bson_decimal d;
	unsigned flags = 0;

	(void)state;
	assert_true(bson_decimal_parse(STR("12345678901234567890123456789012345"), &d, &flags));
	assert_true(flags & BSON_DECIMAL_INEXACT);
	assert_prints(d, "1.234567890123456789012345678901234E+34"); /* ties to even */
	flags = 0;
	assert_true(bson_decimal_parse(
		STR("123456789012345678901234567890123450000000000000000000000000001"), &d,
		&flags));
	assert_true(flags & BSON_DECIMAL_INEXACT);
	assert_prints(d, "1.234567890123456789012345678901235E+62");
	flags = 0;
	assert_true(bson_decimal_parse(STR("1E+99999999999999999999"), &d, &flags));
	assert_true(flags & BSON_DECIMAL_OVERFLOW);
	assert_prints(d, "Infinity");
	flags = 0;
	assert_true(bson_decimal_parse(STR("1E-7000"), &d, &flags));
	assert_true(flags & BSON_DECIMAL_UNDERFLOW);
}

static void
all_numbers_print_as_libbson_prints_them(void **state)
{
	char theirs[PEER_DECIMAL_BYTES];
	struct rand_seq r = { 1 };

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct bson_decimal d = random_bson_decimal(&r), again;
		char text[BSON_DECIMAL_TEXT_BYTES];
		size_t len = bson_decimal_print(d, text);
		unsigned flags = 0;

		peer_print_decimal(d.low, d.high, theirs);
		/* A coefficient with too many digits is 0; libbson prints it. */
		if (bson_decimal_is_zero(d) && theirs[theirs[0] == '-'] != '0')
			continue;
		assert_string_equal(text, theirs);
		assert_true(bson_decimal_parse(str_of(text, len), &again, &flags));
		assert_int_equal(flags, 0);
		assert_int_equal(bson_decimal_compare(d, again), 0);
		bson_decimal_print(again, text);
		assert_string_equal(text, theirs);
	}
}

static struct bson_decimal
of_coefficient(unsigned __int128 coefficient, int exponent)
{
	return (struct bson_decimal){ .low = (uint64_t)coefficient,
				      .high = (uint64_t)(6176 + exponent) << 49 |
					      (uint64_t)(coefficient >> 64) };
}

/* 34 digits are the most; what has more is 0, and so is all in the form for large coefficients. */
static void
coefficients_of_too_many_digits_are_0(void **state)
{
	const unsigned __int128 beyond = (unsigned __int128)UINT64_C(100000000000000000) *
					 UINT64_C(100000000000000000); /* 10^34 */
	struct bson_decimal large = { .low = 1, .high = UINT64_C(3) << 61 | UINT64_C(6176) << 47 };

	(void)state;
	assert_prints(of_coefficient(beyond - 1, 0), "9999999999999999999999999999999999");
	assert_prints(of_coefficient(beyond - 1, -2), "99999999999999999999999999999999.99");
	assert_prints(of_coefficient(beyond - 1, 1), "9.999999999999999999999999999999999E+34");
	assert_prints(of_coefficient(beyond, 0), "0");
	assert_prints(of_coefficient(beyond + 1, -2), "0.00");
	assert_true(bson_decimal_is_zero(of_coefficient(beyond, 3)));
	assert_prints(large, "0");
	large.high |= UINT64_C(1) << 63;
	assert_prints(large, "-0");
}

static void
arithmetic_is_decimal(void **state)
{
	unsigned flags = 0;

	(void)state;
	assert_prints(bson_decimal_add(parse("0.1"), parse("0.2"), &flags), "0.3");
	assert_prints(bson_decimal_subtract(parse("1.00"), parse("1"), &flags), "0.00");
	assert_prints(bson_decimal_multiply(parse("1.5"), parse("-2"), &flags), "-3.0");
	assert_prints(bson_decimal_divide(parse("1"), parse("8"), &flags), "0.125");
	assert_prints(bson_decimal_modulo(parse("-7"), parse("3"), &flags), "-1");
	assert_int_equal(flags, 0);
	assert_prints(bson_decimal_divide(parse("1"), parse("3"), &flags),
		      "0.3333333333333333333333333333333333");
	assert_true(flags & BSON_DECIMAL_INEXACT);
	flags = 0;
	assert_prints(bson_decimal_divide(parse("1"), parse("0"), &flags), "Infinity");
	assert_true(flags & BSON_DECIMAL_BY_ZERO);
	assert_prints(bson_decimal_power(parse("2"), parse("10"), NULL), "1024");
	assert_prints(bson_decimal_apply(BSON_DECIMAL_SQRT, parse("2.25"), NULL), "1.5");
	assert_prints(bson_decimal_negate(parse("1.0")), "-1.0");
	assert_prints(bson_decimal_absolute(parse("-1.0")), "1.0");
	assert_prints(bson_decimal_round(parse("2.345"), 2, BSON_DECIMAL_NEAREST, NULL), "2.34");
	assert_prints(bson_decimal_round(parse("-2.345"), 2, BSON_DECIMAL_FLOOR, NULL), "-2.35");
	assert_prints(bson_decimal_round(parse("2.341"), 2, BSON_DECIMAL_CEILING, NULL), "2.35");
	assert_prints(bson_decimal_round(parse("1789"), -2, BSON_DECIMAL_TRUNCATE, NULL), "1.7E+3");
	assert_prints(bson_decimal_round(parse("-Infinity"), 0, BSON_DECIMAL_FLOOR, NULL),
		      "-Infinity");
}

static void
other_types_are_converted_as_mongodb_does(void **state)
{
	int64_t n;

	(void)state;
	assert_prints(bson_decimal_of_int64(INT64_MIN), "-9223372036854775808");
	assert_prints(bson_decimal_of_double(0.1), "0.100000000000000");
	assert_prints(bson_decimal_of_double(5), "5.00000000000000");
	assert_prints(bson_decimal_of_double(0), "0");
	assert_prints(bson_decimal_of_double_34(0.1), "0.1000000000000000055511151231257827");
	assert_true(bson_decimal_to_double(parse("0.1")) == 0.1);
	assert_true(bson_decimal_to_int64(parse("-9223372036854775808"), &n) && n == INT64_MIN);
	assert_true(bson_decimal_to_int64(parse("1.0E+3"), &n) && n == 1000);
	assert_false(bson_decimal_to_int64(parse("9223372036854775808"), &n));
	assert_false(bson_decimal_to_int64(parse("0.5"), &n));
	assert_false(bson_decimal_to_int64(parse("NaN"), &n));
	assert_true(bson_decimal_is_nan(bson_decimal_of(&BSON_OF_NULL)));
	assert_int_equal(bson_decimal_compare(parse("NaN"), parse("NaN")), 0);
	assert_true(bson_decimal_compare(parse("NaN"), parse("-Infinity")) < 0);
	assert_int_equal(bson_decimal_compare(parse("1.0"), parse("1.000")), 0);
	assert_int_equal(bson_decimal_compare(parse("-0"), parse("0")), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_come_back_as_the_specification_writes_them),
		cmocka_unit_test(what_is_no_number_is_refused),
		cmocka_unit_test(what_does_not_fit_is_rounded_and_told),
		cmocka_unit_test(all_numbers_print_as_libbson_prints_them),
		cmocka_unit_test(coefficients_of_too_many_digits_are_0),
		cmocka_unit_test(arithmetic_is_decimal),
		cmocka_unit_test(other_types_are_converted_as_mongodb_does),
	};

	return cmocka_run_group_tests_name("bson_decimal", tests, NULL, NULL);
}
