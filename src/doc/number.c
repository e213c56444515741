#include "doc/doc_int.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "doc/json.h"

/* ---- Doubles ---- */

enum {
	/* No two doubles' midpoint has more digits: what is behind them only breaks a tie. */
	DECIMAL_DIGITS = 800,
	EXPONENT_MAX = 1000000000,
	EXACT_DIGITS = 15, /* decimals and powers of ten that a double holds exactly */
	EXACT_POWER = 22,
	DOUBLE_DIGITS = 17, /* no double's shortest text has more */
};

/* `digits` times 10^`exponent`, without leading zeros; none at all for zero. */
struct decimal {
	bool negative;
	size_t count;
	size_t significant; /* without the zeros at the end, too */
	int64_t exponent;
	char digits[DECIMAL_DIGITS + 1];
};

static void
decimal_digit(struct decimal *d, char c, bool fraction)
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
	/* One digit more stands for all that are not kept. */
	d->exponent++;
	if (c != '0')
		d->digits[DECIMAL_DIGITS - 1] |= 1;
}

/* `text` is a JSON number. */
static void
decimal_read(struct str text, struct decimal *ret)
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
decimal_double(struct decimal *d)
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
		/* Both numbers are exact: one rounding, which is the right one. */
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
	struct decimal d;

	decimal_read(text, &d);
	return decimal_double(&d);
}

/* ---- Integers ---- */

enum {
	LIMB_DIGITS = 19,
	/* A limb holds 19.27 digits. */
	LIMBS = DOC_TERM_INT_DIGITS / LIMB_DIGITS + 1,
	SMALL_INT_DIGITS = 18, /* an int64_t holds them all */
};

static const uint64_t limb_power = UINT64_C(10000000000000000000); /* 10^LIMB_DIGITS */

/* A magnitude, least significant limb first. */
struct integer {
	size_t count;
	uint64_t limbs[LIMBS];
};

/* At most DOC_TERM_INT_DIGITS digits. */
static void
integer_read(struct str digits, struct integer *ret)
{
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

static size_t
integer_bytes(const struct integer *n)
{
	if (!n->count)
		return 0;
	return n->count * 8 - (size_t)__builtin_clzll(n->limbs[n->count - 1]) / 8;
}

/* Byte `at` of the magnitude, the least significant first. */
static uint8_t
integer_byte(const struct integer *n, size_t at)
{
	return (uint8_t)(n->limbs[at / 8] >> at % 8 * 8);
}

static void
term_big(struct buf *term, bool negative, const struct integer *n)
{
	size_t bytes = integer_bytes(n);

	if (bytes <= UINT8_MAX) {
		buf_append_byte(term, TERM_SMALL_BIG);
		buf_append_byte(term, (uint8_t)bytes);
	} else {
		buf_append_byte(term, TERM_LARGE_BIG);
		doc_term_u32(term, (uint32_t)bytes);
	}
	buf_append_byte(term, negative);
	for (size_t i = 0; i < bytes; i++)
		buf_append_byte(term, integer_byte(n, i));
}

static void
term_i64(struct buf *term, int64_t n)
{
	struct integer big;

	if (n >= 0 && n <= UINT8_MAX) {
		buf_append_byte(term, TERM_SMALL_INTEGER);
		buf_append_byte(term, (uint8_t)n);
	} else if (n >= INT32_MIN && n <= INT32_MAX) {
		buf_append_byte(term, TERM_INTEGER);
		doc_term_u32(term, (uint32_t)n);
	} else {
		big.count = 1;
		big.limbs[0] = n < 0 ? -(uint64_t)n : (uint64_t)n;
		term_big(term, n < 0, &big);
	}
}

/* A number that no element of the tuple layer gives back as it was: its double, and its text. */
static void
put_with_text(struct buf *value, double d, struct str text)
{
	if (!value)
		return;
	tuple_open(value);
	tuple_put_double(value, d);
	tuple_put_str(value, text);
	tuple_close(value);
}

static void
put_long_integer(struct buf *value, struct buf *term, struct str text)
{
	bool negative = text.ptr[0] == '-';
	struct str digits = str_skip(text, negative);
	uint8_t magnitude[TUPLE_INT_MAX_BYTES];
	struct integer n;
	size_t bytes;

	if (digits.len > DOC_TERM_INT_DIGITS) {
		put_with_text(value, value ? doc_number_double(text) : 0, text);
		doc_term_binary(term, text);
		return;
	}
	integer_read(digits, &n);
	bytes = integer_bytes(&n);
	term_big(term, negative, &n);
	if (!value)
		return;
	if (bytes > sizeof(magnitude)) {
		put_with_text(value, doc_number_double(text), text);
		return;
	}
	for (size_t i = 0; i < bytes; i++)
		magnitude[bytes - 1 - i] = integer_byte(&n, i);
	tuple_put_bigint(value, negative, str_of(magnitude, bytes));
}

static void
put_integer(struct buf *value, struct buf *term, struct str text)
{
	bool negative = text.ptr[0] == '-';
	int64_t n = 0;

	if (text.len - negative > SMALL_INT_DIGITS) {
		put_long_integer(value, term, text);
		return;
	}
	for (size_t i = negative; i < text.len; i++)
		n = n * 10 + (text.ptr[i] - '0');
	if (negative && !n)
		put_with_text(value, -0.0, text);
	else if (value)
		tuple_put_i64(value, negative ? -n : n);
	term_i64(term, negative ? -n : n);
}

/* `d` is the double nearest to the text, which has so many significant digits. */
static void
put_double(struct buf *value, double d, size_t significant, struct str text)
{
	size_t at = value->len;
	bool canonical = false;

	if (significant <= DOUBLE_DIGITS) {
		json_write_double(value, d);
		canonical = str_eq(str_of(value->ptr + at, value->len - at), text);
		value->len = at;
	}
	if (canonical)
		tuple_put_double(value, d);
	else
		put_with_text(value, d, text);
}

void
doc_number_put(struct buf *value, struct buf *term, struct str text, bool is_integer)
{
	struct decimal decimal;
	uint64_t bits;
	double d;

	if (is_integer) {
		put_integer(value, term, text);
		return;
	}
	decimal_read(text, &decimal);
	d = decimal_double(&decimal);
	if (value)
		put_double(value, d, decimal.significant, text);
	memcpy(&bits, &d, sizeof(bits));
	bits = htobe64(bits);
	buf_append_byte(term, TERM_NEW_FLOAT);
	buf_append(term, &bits, sizeof(bits));
}

/* Least significant part of 19 digits first. */
static void
write_bigint(struct buf *out, const struct tuple_elem *e)
{
	uint64_t limbs[TUPLE_INT_MAX_BYTES / 8 + 1] = { 0 };
	uint64_t parts[TUPLE_INT_MAX_BYTES / 7]; /* a part takes 7.9 bytes */
	size_t count = (e->raw.len + 7) / 8;
	size_t n = 0;

	for (size_t i = 0; i < e->raw.len; i++) {
		uint8_t c = (uint8_t)e->raw.ptr[e->raw.len - 1 - i];

		limbs[i / 8] |= (uint64_t)(uint8_t)(e->negative ? ~c : c) << i % 8 * 8;
	}
	do {
		unsigned __int128 rest = 0;

		for (size_t i = count; i-- > 0;) {
			rest = rest << 64 | limbs[i];
			limbs[i] = (uint64_t)(rest / limb_power);
			rest %= limb_power;
		}
		parts[n++] = (uint64_t)rest;
		while (count && !limbs[count - 1])
			count--;
	} while (count);
	buf_append_u64(out, parts[--n]);
	while (n)
		buf_printf(out, "%019llu", (unsigned long long)parts[--n]);
}

void
doc_number_write_int(struct buf *out, const struct tuple_elem *e)
{
	if (e->negative)
		buf_append_byte(out, '-');
	if (e->kind == TUPLE_INT)
		buf_append_u64(out, e->magnitude);
	else
		write_bigint(out, e);
}
