/*
 * Numbers as exact decimals, for comparing them with what the keys of doc/key.h say: the C library
 * prints all digits of a double. Shares nothing with the code that it judges.
 */
#ifndef FROND_TESTS_DOC_EXACT_NUMBER_H
#define FROND_TESTS_DOC_EXACT_NUMBER_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doc/scalar.h"

enum {
	EXACT_BYTES = 1600, /* of digits: 309 before the point, 1,074 behind it, and a reserve */
	EXACT_FRACTION = 1074,
};

/* -2: NaN, -1: less than zero, 0, 1; magnitude 0.digits times 10^exponent. */
struct exact {
	int sign;
	bool infinite;
	int64_t exponent;
	size_t count;
	char digits[EXACT_BYTES];
};

static inline void
exact_trim(struct exact *e)
{
	size_t zeros = 0;

	while (zeros < e->count && e->digits[zeros] == '0')
		zeros++;
	memmove(e->digits, e->digits + zeros, e->count - zeros);
	e->count -= zeros;
	e->exponent -= (int64_t)zeros;
	while (e->count && e->digits[e->count - 1] == '0')
		e->count--;
	if (!e->count)
		e->sign = 0;
}

static inline void
exact_of_double(double d, struct exact *ret)
{
	char text[EXACT_BYTES];
	char *point;

	*ret = (struct exact){ .sign = signbit(d) ? -1 : 1 };
	if (isnan(d)) {
		ret->sign = -2;
		return;
	}
	if (isinf(d)) {
		ret->infinite = true;
		return;
	}
	snprintf(text, sizeof(text), "%.*f", EXACT_FRACTION, fabs(d));
	point = strchr(text, '.');
	ret->exponent = point - text;
	memcpy(ret->digits, text, (size_t)(point - text));
	strcpy(ret->digits + (point - text), point + 1);
	ret->count = strlen(ret->digits);
	exact_trim(ret);
}

static inline void
exact_of_digits(bool negative, const char *digits, int64_t power, struct exact *ret)
{
	*ret = (struct exact){ .sign = negative ? -1 : 1 };
	ret->count = strlen(digits);
	memcpy(ret->digits, digits, ret->count);
	ret->exponent = (int64_t)ret->count + power;
	exact_trim(ret);
}

/* The decimal digits of a big-endian magnitude, by doubling. */
static inline void
exact_digits(struct str magnitude, char digits[EXACT_BYTES])
{
	size_t count = 1;

	digits[0] = 0;
	for (size_t i = 0; i < magnitude.len * 8; i++) {
		int carry = (uint8_t)magnitude.ptr[i / 8] >> (7 - i % 8) & 1;

		for (size_t at = 0; at < count; at++) {
			int twice = digits[at] * 2 + carry;

			digits[at] = (char)(twice % 10);
			carry = twice / 10;
		}
		if (carry)
			digits[count++] = (char)carry;
	}
	for (size_t at = 0; at < count; at++)
		digits[at] = (char)(digits[at] + '0');
	for (size_t at = 0; at < count / 2; at++) {
		char c = digits[at];

		digits[at] = digits[count - 1 - at];
		digits[count - 1 - at] = c;
	}
	digits[count] = 0;
}

static inline void
exact_of_decimal128(uint64_t high, uint64_t low, struct exact *ret)
{
	unsigned __int128 n = (unsigned __int128)(high & 0x1ffffffffffff) << 64 | low;
	unsigned __int128 most = 1;
	char digits[48] = { 0 };

	*ret = (struct exact){ .sign = high >> 63 ? -1 : 1 };
	if ((high >> 58 & 0x1f) == 0x1f) {
		ret->sign = -2;
		return;
	}
	if ((high >> 58 & 0x1f) == 0x1e) {
		ret->infinite = true;
		return;
	}
	for (int i = 0; i < 34; i++)
		most *= 10;
	if ((high >> 61 & 3) == 3 || n >= most)
		n = 0;
	for (int i = 39; i >= 0; i--, n /= 10)
		digits[i] = (char)('0' + (int)(n % 10));
	exact_of_digits(high >> 63, digits, (int64_t)(high >> 49 & 0x3fff) - 6176, ret);
}

static inline void
exact_of(const struct doc_scalar *s, struct exact *ret)
{
	char digits[EXACT_BYTES];

	switch ((int)s->kind) {
	case DOC_DOUBLE:
		exact_of_double(s->d, ret);
		return;
	case DOC_FLOAT:
		exact_of_double((double)s->f, ret);
		return;
	case DOC_DECIMAL128:
		exact_of_decimal128(s->high, s->low, ret);
		return;
	case DOC_INTEGER:
	case DOC_DECIMAL:
		exact_digits(s->text, digits);
		exact_of_digits(s->negative, digits, s->kind == DOC_DECIMAL ? -s->n : 0, ret);
		return;
	default:
		snprintf(digits, sizeof(digits), "%llu",
			 s->n < 0 ? -(unsigned long long)s->n : (unsigned long long)s->n);
		exact_of_digits(s->n < 0, digits, 0, ret);
	}
}

/* NaN is lowest, and equal to itself. */
static inline int
exact_cmp(const struct exact *a, const struct exact *b)
{
	size_t n = a->count < b->count ? a->count : b->count;
	int c;

	if (a->sign != b->sign)
		return a->sign > b->sign ? 1 : -1;
	if (a->sign == 0 || a->sign == -2)
		return 0;
	if (a->infinite || b->infinite)
		return a->sign * ((int)a->infinite - (int)b->infinite);
	if (a->exponent != b->exponent)
		return a->exponent > b->exponent ? a->sign : -a->sign;
	c = memcmp(a->digits, b->digits, n);
	if (!c)
		c = (a->count > b->count) - (a->count < b->count);
	return a->sign * (c > 0 ? 1 : c < 0 ? -1 : 0);
}

#endif
