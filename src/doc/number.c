#include "doc/doc_int.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "doc/json.h"

/* ---- Doubles ---- */

enum {
	/*
	 * No midpoint between two doubles has more digits. Of the digits behind them it only
	 * matters whether there is one that is not 0.
	 */
	DECIMAL_DIGITS = 800,
	EXPONENT_MAX = 1000000000,
	EXACT_DIGITS = 15, /* decimals and powers of ten that a double holds exactly */
	EXACT_POWER = 22,
	DOUBLE_DIGITS = 17, /* no double's shortest text has more */
	DOUBLE_TEXT_BYTES = 64,
};

/* `digits` times 10^`exponent`. There are no leading zeros, and no digits at all for zero. */
struct number_decimal {
	bool negative;
	size_t count;
	size_t significant; /* without the zeros at the end, too */
	int64_t exponent;
	char digits[DECIMAL_DIGITS + 1];
};

static void
decimal_digit(struct number_decimal *d, char c, bool fraction)
{
	if (fraction)
		d->exponent--;
	if (d->count < DECIMAL_DIGITS) {
		if (d->count || c != '0')
			d->digits[d->count++] = c;
		if (c != '0')
			d->significant = d->count;
		return;
	}
	/* The last digit kept stands for all that are not: it is odd if one of them is not 0. */
	d->exponent++;
	if (c != '0')
		d->digits[DECIMAL_DIGITS - 1] |= 1;
}

/* `text` is a JSON number. */
static void
decimal_read(struct str text, struct number_decimal *ret)
{
	bool fraction = false;
	bool negative_exponent = false;
	int64_t exponent = 0;
	size_t at = 0;

	ret->negative = text.ptr[0] == '-';
	ret->count = 0;
	ret->significant = 0;
	ret->exponent = 0;
	for (at = ret->negative; at < text.len && (text.ptr[at] | 0x20) != 'e'; at++) {
		if (text.ptr[at] == '.')
			fraction = true;
		else
			decimal_digit(ret, text.ptr[at], fraction);
	}
	for (at++; at < text.len; at++) {
		if (text.ptr[at] == '-')
			negative_exponent = true;
		else if (text.ptr[at] != '+' && exponent < EXPONENT_MAX)
			exponent = exponent * 10 + (text.ptr[at] - '0');
	}
	ret->exponent += negative_exponent ? -exponent : exponent;
}

static double
decimal_double(struct number_decimal *d)
{
	static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
					 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
					 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	char text[DECIMAL_DIGITS + 32];
	uint64_t n = 0;
	double result;

	if (!d->count)
		return d->negative ? -0.0 : 0.0;
	if (d->count <= EXACT_DIGITS && d->exponent >= -EXACT_POWER && d->exponent <= EXACT_POWER) {
		/*
		 * A double holds both numbers exactly, so the division rounds once and correctly.
		 */
		for (size_t i = 0; i < d->count; i++)
			n = n * 10 + (uint64_t)(d->digits[i] - '0');
		result = d->exponent < 0 ? (double)n / powers[-d->exponent]
					 : (double)n * powers[d->exponent];
		return d->negative ? -result : result;
	}
	snprintf(text, sizeof(text), "%.*se%lld", (int)d->count, d->digits, (long long)d->exponent);
	result = strtod(text, NULL);
	if (result > DBL_MAX)
		result = DBL_MAX;
	return d->negative ? -result : result;
}

double
doc_number_double(struct str text)
{
	struct number_decimal d;

	decimal_read(text, &d);
	return decimal_double(&d);
}

/* ---- Integers ---- */

enum {
	LIMB_DIGITS = 19,
	SMALL_INT_DIGITS = 18, /* an int64_t holds them all */
};

static const uint64_t limb_power = UINT64_C(10000000000000000000); /* 10^LIMB_DIGITS */

void
doc_integer_read(struct str digits, struct doc_integer *ret)
{
	assert(digits.len <= DOC_TERM_INT_DIGITS);
	ret->count = 0;
	while (digits.len) {
		size_t n = digits.len % LIMB_DIGITS ? digits.len % LIMB_DIGITS : LIMB_DIGITS;
		unsigned __int128 carry = 0;

		for (size_t i = 0; i < n; i++)
			carry = carry * 10 + (uint64_t)(digits.ptr[i] - '0');
		for (size_t i = 0; i < ret->count; i++) {
			carry += (unsigned __int128)ret->limbs[i] * limb_power;
			ret->limbs[i] = (uint64_t)carry;
			carry >>= 64;
		}
		if (carry)
			ret->limbs[ret->count++] = (uint64_t)carry;
		digits = str_skip(digits, n);
	}
}

size_t
doc_integer_bytes(const struct doc_integer *n)
{
	if (!n->count)
		return 0;
	return n->count * 8 - (size_t)__builtin_clzll(n->limbs[n->count - 1]) / 8;
}

/* ---- JSON's numbers ---- */

void
json_number_read(struct str text, bool is_integer, struct json_number *ret)
{
	bool negative = text.ptr[0] == '-';
	struct number_decimal decimal;
	int64_t n = 0;

	ret->text = text;
	if (!is_integer) {
		decimal_read(text, &decimal);
		ret->form = JSON_NUMBER_DOUBLE;
		ret->d = decimal_double(&decimal);
		ret->significant = decimal.significant;
		return;
	}
	ret->form = JSON_NUMBER_LONG;
	if (text.len - negative > SMALL_INT_DIGITS)
		return;
	for (size_t i = negative; i < text.len; i++)
		n = n * 10 + (text.ptr[i] - '0');
	ret->form = JSON_NUMBER_SHORT;
	ret->n = negative ? -n : n;
}

/* For a number that no other kind gives back as it was written: the double, and the text. */
static void
number_with_text(const struct json_number *n, double d, struct doc_scalar *ret)
{
	*ret = (struct doc_scalar){ .kind = DOC_NUMBER, .d = d, .text = n->text };
}

static void
long_integer_scalar(const struct json_number *n, uint8_t magnitude[TUPLE_INT_MAX_BYTES],
		    struct doc_scalar *ret)
{
	bool negative = n->text.ptr[0] == '-';
	struct str digits = str_skip(n->text, negative);
	struct doc_integer integer;
	size_t bytes = SIZE_MAX;

	if (digits.len <= DOC_TERM_INT_DIGITS) {
		doc_integer_read(digits, &integer);
		bytes = doc_integer_bytes(&integer);
	}
	if (bytes > TUPLE_INT_MAX_BYTES) {
		number_with_text(n, doc_number_double(n->text), ret);
		return;
	}
	/* JSON has no leading zeros: the magnitude has more than SMALL_INT_DIGITS digits. */
	assert(integer.count);
	if (integer.count == 1 && integer.limbs[0] <= (uint64_t)INT64_MAX + negative) {
		uint64_t bits = negative ? -integer.limbs[0] : integer.limbs[0];

		*ret = (struct doc_scalar){ .kind = DOC_INT64, .n = (int64_t)bits };
		return;
	}
	for (size_t i = 0; i < bytes; i++)
		magnitude[bytes - 1 - i] = doc_integer_byte(&integer, i);
	*ret = (struct doc_scalar){
		.kind = DOC_INTEGER,
		.negative = negative,
		.text = str_of(magnitude, bytes),
	};
}

/* True if the shortest text of the double is the text that came in. */
static bool
is_canonical(const struct json_number *n)
{
	char bytes[DOUBLE_TEXT_BYTES];
	struct buf text = { .ptr = bytes, .cap = sizeof(bytes), .max_bytes = sizeof(bytes) };

	if (n->significant > DOUBLE_DIGITS || n->text.len > sizeof(bytes))
		return false;
	json_write_double(&text, n->d);
	return buf_status(&text) == STATUS_OK && str_eq(buf_str(&text), n->text);
}

void
json_number_scalar(const struct json_number *n, uint8_t magnitude[TUPLE_INT_MAX_BYTES],
		   struct doc_scalar *ret)
{
	switch (n->form) {
	case JSON_NUMBER_SHORT:
		if (!n->n && n->text.ptr[0] == '-')
			number_with_text(n, -0.0, ret);
		else
			*ret = (struct doc_scalar){ .kind = DOC_INT64, .n = n->n };
		return;
	case JSON_NUMBER_LONG:
		long_integer_scalar(n, magnitude, ret);
		return;
	case JSON_NUMBER_DOUBLE:
		if (is_canonical(n))
			*ret = (struct doc_scalar){ .kind = DOC_DOUBLE, .d = n->d };
		else
			number_with_text(n, n->d, ret);
		return;
	}
}
