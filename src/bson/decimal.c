#include "bson/decimal.h"

#include <math.h>
#include <stdio.h>

/* How Debian's libbidgcc000 was built: all parameters by value, and none of them global. */
#define DECIMAL_CALL_BY_REFERENCE      0
#define DECIMAL_GLOBAL_ROUNDING        0
#define DECIMAL_GLOBAL_EXCEPTION_FLAGS 0
#include <bid_conf.h>
#include <bid_functions.h>

enum {
	ROUND_NEAREST = 0, /* ties to even */
	ROUND_FLOOR = 1,
	ROUND_CEILING = 2,
	ROUND_ZERO = 3,

	EXPONENT_BIAS = 6176,
	/* A larger exponent is beyond all numbers, whatever digits stand in front of it. */
	EXPONENT_MOST = 20000,
	/* Of a text; a border between two numbers has 35, and one stands for all behind it. */
	KEPT_DIGITS = 40,
};

#define SIGN_BIT (UINT64_C(1) << 63)

static BID_UINT128
to_bid(struct bson_decimal d)
{
	BID_UINT128 x;

	x.w[0] = d.low;
	x.w[1] = d.high;
	return x;
}

static struct bson_decimal
of_bid(BID_UINT128 x)
{
	return (struct bson_decimal){ .low = x.w[0], .high = x.w[1] };
}

/* Where a function of the library puts its flags. */
static unsigned *
flags_or(unsigned *flags, unsigned *unused)
{
	*unused = 0;
	return flags ? flags : unused;
}

/* ---- Reading text ---- */

struct decimal_text {
	bool negative;
	size_t count; /* digits, no zeros in front */
	int64_t exponent;
	char digits[KEPT_DIGITS];
};

static void
text_digit(struct decimal_text *t, char c, bool fraction)
{
	if (fraction)
		t->exponent--;
	if (t->count < KEPT_DIGITS) {
		if (t->count || c != '0')
			t->digits[t->count++] = c;
		return;
	}
	/* The last digit that is kept is odd if one behind it is not 0. */
	t->exponent++;
	if (c != '0')
		t->digits[KEPT_DIGITS - 1] |= 1;
}

/* Reads all of `text` behind an `e`. */
static bool
text_exponent(struct decimal_text *t, struct str text)
{
	bool negative = text.len && text.ptr[0] == '-';
	int64_t exponent = 0;

	if (text.len && (negative || text.ptr[0] == '+'))
		text = str_skip(text, 1);
	if (!text.len)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return false;
		if (exponent < INT64_C(1) << 40)
			exponent = exponent * 10 + (text.ptr[i] - '0');
	}
	t->exponent += negative ? -exponent : exponent;
	return true;
}

static bool
text_number(struct decimal_text *t, struct str text)
{
	bool fraction = false;
	bool any = false;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (c >= '0' && c <= '9') {
			text_digit(t, c, fraction);
			any = true;
		} else if (c == '.' && !fraction) {
			fraction = true;
		} else {
			return any && (c | 0x20) == 'e' && text_exponent(t, str_skip(text, i + 1));
		}
	}
	return any;
}

static int64_t
clamp(int64_t n, int64_t least, int64_t most)
{
	return n < least ? least : n > most ? most : n;
}

static struct bson_decimal
text_round(const struct decimal_text *t, unsigned *flags)
{
	char text[KEPT_DIGITS + 32];
	unsigned unused;

	snprintf(text, sizeof(text), "%s%.*sE%lld", t->negative ? "-" : "",
		 t->count ? (int)t->count : 1, t->count ? t->digits : "0",
		 (long long)clamp(t->exponent, -EXPONENT_MOST, EXPONENT_MOST));
	return of_bid(bid128_from_string(text, ROUND_NEAREST, flags_or(flags, &unused)));
}

bool
bson_decimal_parse(struct str text, struct bson_decimal *ret, unsigned *flags)
{
	struct decimal_text t = { .negative = text.len && text.ptr[0] == '-' };

	if (text.len && (t.negative || text.ptr[0] == '+'))
		text = str_skip(text, 1);
	if (str_eq_nocase(text, STR("inf")) || str_eq_nocase(text, STR("infinity"))) {
		*ret = (struct bson_decimal){ .high = UINT64_C(0x78) << 56 };
	} else if (str_eq_nocase(text, STR("nan"))) {
		*ret = (struct bson_decimal){ .high = UINT64_C(0x7c) << 56 };
		return true;
	} else if (text_number(&t, text)) {
		*ret = text_round(&t, flags);
		return true;
	} else {
		return false;
	}
	if (t.negative)
		ret->high |= SIGN_BIT;
	return true;
}

/* ---- Writing text ---- */

/* The parts of a finite number. */
static void
decimal_parts(struct bson_decimal d, unsigned __int128 *ret_coefficient, int *ret_exponent)
{
	const unsigned __int128 beyond = (unsigned __int128)UINT64_C(10000000000000000) *
					 UINT64_C(1000000000000000000); /* 10^34 */
	bool large = (d.high >> 61 & 3) == 3;
	uint64_t high = d.high & ((UINT64_C(1) << 49) - 1);

	*ret_exponent = (int)(d.high >> (large ? 47 : 49) & 0x3fff) - EXPONENT_BIAS;
	*ret_coefficient = (unsigned __int128)high << 64 | d.low;
	/* So says the standard of coefficients that have too many digits. */
	if (large || *ret_coefficient >= beyond)
		*ret_coefficient = 0;
}

static size_t
print_scientific(struct str digits, int exponent, char *ret, size_t max)
{
	return (size_t)snprintf(ret, max, "%c%s%.*sE%+d", digits.ptr[0], digits.len > 1 ? "." : "",
				(int)digits.len - 1, digits.ptr + 1, exponent);
}

/* `exponent` is 0 or less. */
static size_t
print_plain(struct str digits, int exponent, char *ret, size_t max)
{
	int whole = (int)digits.len + exponent;

	if (!exponent)
		return (size_t)snprintf(ret, max, "%.*s", STR_ARG(digits));
	if (whole > 0)
		return (size_t)snprintf(ret, max, "%.*s.%s", whole, digits.ptr, digits.ptr + whole);
	return (size_t)snprintf(ret, max, "0.%.*s%s", -whole, "000000", digits.ptr);
}

size_t
bson_decimal_print(struct bson_decimal d, char ret[BSON_DECIMAL_TEXT_BYTES])
{
	enum {
		PLAIN_LEAST = -6 /* the exponent of the first digit, of a number without an E */
	};
	char bytes[BSON_DECIMAL_DIGITS + 1];
	char *at = bytes + BSON_DECIMAL_DIGITS;
	size_t sign = bson_decimal_is_negative(d);
	size_t max = BSON_DECIMAL_TEXT_BYTES - sign;
	unsigned __int128 n;
	struct str digits;
	int exponent, first;

	if (bson_decimal_is_nan(d))
		return (size_t)snprintf(ret, BSON_DECIMAL_TEXT_BYTES, "NaN");
	ret[0] = '-';
	if (bson_decimal_is_infinite(d))
		return sign + (size_t)snprintf(ret + sign, max, "Infinity");
	decimal_parts(d, &n, &exponent);
	*at = '\0';
	do
		*--at = (char)('0' + (int)(n % 10));
	while (n /= 10);
	digits = str_from_cstr(at);
	first = exponent + (int)digits.len - 1;
	if (exponent > 0 || first < PLAIN_LEAST)
		return sign + print_scientific(digits, first, ret + sign, max);
	return sign + print_plain(digits, exponent, ret + sign, max);
}

/* ---- Other types ---- */

struct bson_decimal
bson_decimal_of_int64(int64_t n)
{
	return of_bid(bid128_from_int64(n));
}

struct bson_decimal
bson_decimal_of_double(double d)
{
	char text[64];
	struct bson_decimal result;

	if (d == 0 || !isfinite(d))
		return bson_decimal_of_double_34(d);
	snprintf(text, sizeof(text), "%.14e", d);
	if (!bson_decimal_parse(str_from_cstr(text), &result, NULL))
		return bson_decimal_of_double_34(d);
	return result;
}

struct bson_decimal
bson_decimal_of_double_34(double d)
{
	unsigned flags = 0;

	return of_bid(binary64_to_bid128(d, ROUND_NEAREST, &flags));
}

struct bson_decimal
bson_decimal_of(const struct bson_value *v)
{
	switch ((int)v->type) {
	case BSON_INT32:
	case BSON_INT64:
		return bson_decimal_of_int64(bson_integer(v));
	case BSON_DOUBLE:
		return bson_decimal_of_double(bson_real(v));
	case BSON_DECIMAL:
		return bson_decimal(v);
	default:
		return (struct bson_decimal){ .high = UINT64_C(0x7c) << 56 };
	}
}

double
bson_decimal_to_double(struct bson_decimal d)
{
	unsigned flags = 0;

	return bid128_to_binary64(to_bid(d), ROUND_NEAREST, &flags);
}

bool
bson_decimal_to_int64(struct bson_decimal d, int64_t *ret)
{
	unsigned flags = 0;
	int64_t n = bid128_to_int64_xint(to_bid(d), &flags);

	if (flags & (BSON_DECIMAL_INVALID | BSON_DECIMAL_INEXACT))
		return false;
	*ret = n;
	return true;
}

/* ---- Classes ---- */

bool
bson_decimal_is_nan(struct bson_decimal d)
{
	return (d.high >> 58 & 0x1f) == 0x1f;
}

bool
bson_decimal_is_infinite(struct bson_decimal d)
{
	return (d.high >> 58 & 0x1f) == 0x1e;
}

bool
bson_decimal_is_zero(struct bson_decimal d)
{
	return bid128_isZero(to_bid(d));
}

bool
bson_decimal_is_negative(struct bson_decimal d)
{
	return d.high & SIGN_BIT;
}

int
bson_decimal_compare(struct bson_decimal a, struct bson_decimal b)
{
	bool a_is_nan = bson_decimal_is_nan(a);
	bool b_is_nan = bson_decimal_is_nan(b);
	unsigned flags = 0;

	if (a_is_nan || b_is_nan)
		return b_is_nan - a_is_nan;
	if (bid128_quiet_less(to_bid(a), to_bid(b), &flags))
		return -1;
	return !bid128_quiet_equal(to_bid(a), to_bid(b), &flags);
}

/* ---- Arithmetic ---- */

struct bson_decimal
bson_decimal_add(struct bson_decimal a, struct bson_decimal b, unsigned *flags)
{
	unsigned unused;

	return of_bid(bid128_add(to_bid(a), to_bid(b), ROUND_NEAREST, flags_or(flags, &unused)));
}

struct bson_decimal
bson_decimal_subtract(struct bson_decimal a, struct bson_decimal b, unsigned *flags)
{
	unsigned unused;

	return of_bid(bid128_sub(to_bid(a), to_bid(b), ROUND_NEAREST, flags_or(flags, &unused)));
}

struct bson_decimal
bson_decimal_multiply(struct bson_decimal a, struct bson_decimal b, unsigned *flags)
{
	unsigned unused;

	return of_bid(bid128_mul(to_bid(a), to_bid(b), ROUND_NEAREST, flags_or(flags, &unused)));
}

struct bson_decimal
bson_decimal_divide(struct bson_decimal a, struct bson_decimal b, unsigned *flags)
{
	unsigned unused;

	return of_bid(bid128_div(to_bid(a), to_bid(b), ROUND_NEAREST, flags_or(flags, &unused)));
}

struct bson_decimal
bson_decimal_modulo(struct bson_decimal a, struct bson_decimal b, unsigned *flags)
{
	unsigned unused;

	return of_bid(bid128_fmod(to_bid(a), to_bid(b), flags_or(flags, &unused)));
}

struct bson_decimal
bson_decimal_power(struct bson_decimal a, struct bson_decimal b, unsigned *flags)
{
	unsigned unused;

	return of_bid(bid128_pow(to_bid(a), to_bid(b), ROUND_NEAREST, flags_or(flags, &unused)));
}

struct bson_decimal
bson_decimal_negate(struct bson_decimal d)
{
	d.high ^= SIGN_BIT;
	return d;
}

struct bson_decimal
bson_decimal_absolute(struct bson_decimal d)
{
	d.high &= ~SIGN_BIT;
	return d;
}

struct bson_decimal
bson_decimal_round(struct bson_decimal d, int places, enum bson_decimal_rounding how,
		   unsigned *flags)
{
	static const int modes[] = {
		[BSON_DECIMAL_NEAREST] = ROUND_NEAREST,
		[BSON_DECIMAL_FLOOR] = ROUND_FLOOR,
		[BSON_DECIMAL_CEILING] = ROUND_CEILING,
		[BSON_DECIMAL_TRUNCATE] = ROUND_ZERO,
	};
	uint64_t exponent = (uint64_t)clamp(EXPONENT_BIAS - (int64_t)places, 0, 0x2fff);
	const struct bson_decimal quantum = { .low = 1, .high = exponent << 49 };
	unsigned unused;

	if (bson_decimal_is_infinite(d))
		return d;
	return of_bid(
		bid128_quantize(to_bid(d), to_bid(quantum), modes[how], flags_or(flags, &unused)));
}

struct bson_decimal
bson_decimal_apply(enum bson_decimal_function f, struct bson_decimal d, unsigned *flags)
{
	static BID_UINT128 (*const functions[])(BID_UINT128, _IDEC_round, _IDEC_flags *) = {
		[BSON_DECIMAL_SQRT] = bid128_sqrt,   [BSON_DECIMAL_EXP] = bid128_exp,
		[BSON_DECIMAL_LN] = bid128_log,      [BSON_DECIMAL_LOG10] = bid128_log10,
		[BSON_DECIMAL_SIN] = bid128_sin,     [BSON_DECIMAL_COS] = bid128_cos,
		[BSON_DECIMAL_TAN] = bid128_tan,     [BSON_DECIMAL_ASIN] = bid128_asin,
		[BSON_DECIMAL_ACOS] = bid128_acos,   [BSON_DECIMAL_ATAN] = bid128_atan,
		[BSON_DECIMAL_SINH] = bid128_sinh,   [BSON_DECIMAL_COSH] = bid128_cosh,
		[BSON_DECIMAL_TANH] = bid128_tanh,   [BSON_DECIMAL_ASINH] = bid128_asinh,
		[BSON_DECIMAL_ACOSH] = bid128_acosh, [BSON_DECIMAL_ATANH] = bid128_atanh,
	};
	unsigned unused;

	return of_bid(functions[f](to_bid(d), ROUND_NEAREST, flags_or(flags, &unused)));
}

struct bson_decimal
bson_decimal_atan2(struct bson_decimal y, struct bson_decimal x, unsigned *flags)
{
	unsigned unused;

	return of_bid(bid128_atan2(to_bid(y), to_bid(x), ROUND_NEAREST, flags_or(flags, &unused)));
}
