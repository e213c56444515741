/* Compares numbers of any size without rounding any of them. */
#include <math.h>

#include "doc/doc_int.h"
#include "index/leaf.h"

enum {
	DOUBLE_DIGITS = 53,      /* binary digits of a double */
	DOUBLE_BYTES = 1024 / 8, /* the bytes of the greatest double, as an integer */
	BIG_BYTES = TUPLE_INT_MAX_BYTES,
	REM_DIGITS = 18, /* decimal digits that enter a remainder of 64 bits at once */
};

/*
 * Reads (double, text): an integer that is too long for the tuple layer, or a number whose spelling
 * was kept.
 */
static enum status
number_read_spelled(const struct tuple_elem *nested, struct leaf_number *ret)
{
	struct tuple_reader r = tuple_reader_nested(nested);
	struct tuple_elem number, text;
	bool is_integer;

	if (tuple_next(&r, &number) != STATUS_OK || number.kind != TUPLE_DOUBLE ||
	    tuple_next(&r, &text) != STATUS_OK || text.kind != TUPLE_STRING || !text.raw.len ||
	    !isfinite(number.d) || json_number_len(text.raw, &is_integer) != text.raw.len)
		return STATUS_CORRUPT;
	ret->negative = signbit(number.d);
	if (!is_integer) {
		ret->form = LEAF_NUMBER_DOUBLE;
		ret->d = fabs(number.d);
	} else if (number.d == 0) { /* "-0" */
		ret->form = LEAF_NUMBER_INT;
	} else {
		ret->form = LEAF_NUMBER_HUGE;
		ret->big = str_skip(text.raw, ret->negative);
	}
	return STATUS_OK;
}

enum status
leaf_number(const struct leaf_value *v, struct leaf_number *ret)
{
	struct tuple_reader r;
	struct tuple_elem e;

	*ret = (struct leaf_number){ 0 };
	if (v->count == 0 || v->leaves[0].key.len != v->at)
		return STATUS_CORRUPT;
	r = tuple_reader(v->leaves[0].value);
	if (tuple_next(&r, &e) != STATUS_OK || r.rest.len)
		return STATUS_CORRUPT;
	if (e.kind == TUPLE_NESTED)
		return number_read_spelled(&e, ret);
	if (e.kind == TUPLE_INT) {
		ret->form = LEAF_NUMBER_INT;
		ret->negative = e.negative;
		ret->magnitude = e.magnitude;
	} else if (e.kind == TUPLE_BIGINT) {
		ret->form = LEAF_NUMBER_BIG;
		ret->negative = e.negative;
		ret->big = e.raw;
	} else if (e.kind == TUPLE_DOUBLE && isfinite(e.d)) {
		ret->form = LEAF_NUMBER_DOUBLE;
		ret->d = fabs(e.d);
		ret->negative = signbit(e.d);
	} else {
		return STATUS_CORRUPT;
	}
	return STATUS_OK;
}

static int
number_sign(const struct leaf_number *n)
{
	bool zero = (n->form == LEAF_NUMBER_INT && n->magnitude == 0) ||
		    (n->form == LEAF_NUMBER_DOUBLE && n->d == 0);

	if (zero)
		return 0;
	return n->negative ? -1 : 1;
}

static int
number_compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int
number_compare_int_double(uint64_t a, double d)
{
	uint64_t whole;
	int c;

	if (d >= 0x1p64)
		return -1;
	whole = (uint64_t)d;
	c = number_compare_u64(a, whole);
	return c ? c : -(d > (double)whole);
}

/* Returns a byte of the magnitude. Negative numbers are stored as the complement. */
static uint8_t
number_big_byte(const struct leaf_number *n, size_t i)
{
	uint8_t c = (uint8_t)n->big.ptr[i];

	return n->negative ? (uint8_t)~c : c;
}

static int
number_compare_big_bytes(const struct leaf_number *a, const uint8_t *bytes, size_t len)
{
	if (a->big.len != len)
		return a->big.len > len ? 1 : -1;
	for (size_t i = 0; i < len; i++) {
		if (number_big_byte(a, i) != bytes[i])
			return number_big_byte(a, i) > bytes[i] ? 1 : -1;
	}
	return 0;
}

static int
number_compare_big_double(const struct leaf_number *a, double d)
{
	uint8_t bytes[DOUBLE_BYTES + 8] = { 0 };
	int exponent;
	uint64_t digits;
	size_t shift, end, first = 0;

	if (d < 0x1p63)
		return 1;
	digits = (uint64_t)ldexp(frexp(d, &exponent), DOUBLE_DIGITS);
	shift = (size_t)(exponent - DOUBLE_DIGITS);
	digits <<= shift % 8;
	end = sizeof(bytes) - shift / 8;
	for (size_t i = 1; i <= 8; i++, digits >>= 8)
		bytes[end - i] = (uint8_t)digits;
	while (!bytes[first])
		first++;
	return number_compare_big_bytes(a, bytes + first, sizeof(bytes) - first);
}

static int
number_compare_big(const struct leaf_number *a, const struct leaf_number *b)
{
	uint8_t bytes[BIG_BYTES];

	for (size_t i = 0; i < b->big.len && i < sizeof(bytes); i++)
		bytes[i] = number_big_byte(b, i);
	return number_compare_big_bytes(a, bytes, b->big.len);
}

/* Compares the magnitudes. a's form must not come after b's in the order of forms. */
static int
number_compare_magnitudes(const struct leaf_number *a, const struct leaf_number *b)
{
	if (b->form == LEAF_NUMBER_DOUBLE) {
		switch (a->form) {
		case LEAF_NUMBER_INT:
			return number_compare_int_double(a->magnitude, b->d);
		case LEAF_NUMBER_BIG:
			return number_compare_big_double(a, b->d);
		case LEAF_NUMBER_DOUBLE:
			return (a->d > b->d) - (a->d < b->d);
		case LEAF_NUMBER_HUGE:
			return 1;
		}
	}
	if (a->form != b->form)
		return -1;
	if (a->form == LEAF_NUMBER_INT)
		return number_compare_u64(a->magnitude, b->magnitude);
	if (a->form == LEAF_NUMBER_BIG)
		return number_compare_big(a, b);
	if (a->big.len != b->big.len)
		return a->big.len > b->big.len ? 1 : -1;
	return str_cmp(a->big, b->big);
}

int
leaf_number_cmp(const struct leaf_number *a, const struct leaf_number *b)
{
	int sign = number_sign(a);
	int c;

	if (sign != number_sign(b))
		return sign > number_sign(b) ? 1 : -1;
	if (sign == 0)
		return 0;
	c = a->form <= b->form ? number_compare_magnitudes(a, b) : -number_compare_magnitudes(b, a);
	return sign * c;
}

/* Computes the remainder of decimal digits by `by`, REM_DIGITS of them with each division. */
static enum status
number_digits_rem(struct str digits, uint64_t by, struct index_work *w, unsigned __int128 *ret)
{
	*ret = 0;
	while (digits.len) {
		size_t len = digits.len < REM_DIGITS ? digits.len : REM_DIGITS;
		uint64_t group = 0;
		uint64_t scale = 1;

		for (size_t i = 0; i < len; i++, scale *= 10)
			group = group * 10 + (uint8_t)(digits.ptr[i] - '0');
		/* The remainder has 63 bits and the scale has 60, so that the product fits. */
		*ret = (*ret * scale + group) % by;
		digits = str_skip(digits, len);
		TRY(index_count(w, 1));
	}
	return STATUS_OK;
}

enum status
leaf_number_rem(const struct leaf_number *n, int64_t divisor, struct index_work *w,
		bool *ret_is_integer, int64_t *ret)
{
	uint64_t by = divisor < 0 ? -(uint64_t)divisor : (uint64_t)divisor;
	unsigned __int128 rest = 0;

	*ret_is_integer = n->form != LEAF_NUMBER_DOUBLE;
	switch (n->form) {
	case LEAF_NUMBER_INT:
		rest = n->magnitude % by;
		break;
	case LEAF_NUMBER_BIG:
		for (size_t i = 0; i < n->big.len; i++)
			rest = (rest << 8 | number_big_byte(n, i)) % by;
		TRY(index_count(w, (uint32_t)n->big.len / 4));
		break;
	case LEAF_NUMBER_HUGE:
		TRY(number_digits_rem(n->big, by, w, &rest));
		break;
	case LEAF_NUMBER_DOUBLE:
		return STATUS_OK;
	}
	*ret = n->negative ? -(int64_t)rest : (int64_t)rest;
	return STATUS_OK;
}
