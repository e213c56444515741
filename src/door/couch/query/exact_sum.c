#include "door/couch/query/exact_sum.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "doc/json.h"

enum {
	GROUP_BASE = 1000000000, /* of nine decimal digits */
	GROUP_DIGITS = 9,
};

/* ---- Integers of any length ---- */

static enum status
integer_push(struct exact_integer *n, uint32_t group, struct arena *arena)
{
	TRY(arena_room(arena, &n->groups, n->count, &n->cap, sizeof(*n->groups)));
	n->groups[n->count++] = group;
	return STATUS_OK;
}

static void
integer_settle(struct exact_integer *n)
{
	while (n->count && n->groups[n->count - 1] == 0)
		n->count--;
	if (!n->count)
		n->negative = false;
}

/* Of unsigned values. */
static int
integer_compare(const struct exact_integer *a, const struct exact_integer *b)
{
	if (a->count != b->count)
		return a->count < b->count ? -1 : 1;
	for (size_t i = a->count; i-- > 0;) {
		if (a->groups[i] != b->groups[i])
			return a->groups[i] < b->groups[i] ? -1 : 1;
	}
	return 0;
}

static enum status
integer_add_unsigned(struct exact_integer *to, const struct exact_integer *n, struct arena *arena)
{
	uint32_t carry = 0;

	for (size_t i = 0; i < n->count || carry; i++) {
		uint32_t sum;

		if (i == to->count)
			TRY(integer_push(to, 0, arena));
		sum = to->groups[i] + (i < n->count ? n->groups[i] : 0) + carry;
		carry = sum >= GROUP_BASE;
		to->groups[i] = carry ? sum - GROUP_BASE : sum;
	}
	return STATUS_OK;
}

/* to = |large - small|, where `large` is not the smaller one. `to` has as many groups as it. */
static void
integer_subtract_unsigned(struct exact_integer *to, const struct exact_integer *large,
			  const struct exact_integer *small)
{
	int32_t borrow = 0;

	for (size_t i = 0; i < large->count; i++) {
		int32_t left = (int32_t)large->groups[i] - borrow -
			       (i < small->count ? (int32_t)small->groups[i] : 0);

		borrow = left < 0;
		to->groups[i] = (uint32_t)(borrow ? left + GROUP_BASE : left);
	}
}

static enum status
integer_add(struct exact_integer *to, const struct exact_integer *n, struct arena *arena)
{
	if (to->count == 0)
		to->negative = n->negative;
	if (to->negative == n->negative)
		return integer_add_unsigned(to, n, arena);
	if (integer_compare(to, n) >= 0) {
		integer_subtract_unsigned(to, to, n);
	} else {
		while (to->count < n->count)
			TRY(integer_push(to, 0, arena));
		integer_subtract_unsigned(to, n, to);
		to->negative = n->negative;
	}
	integer_settle(to);
	return STATUS_OK;
}

/* n = n * 256 + byte */
static enum status
integer_push_byte(struct exact_integer *n, uint8_t byte, struct arena *arena)
{
	uint64_t carry = byte;

	for (size_t i = 0; i < n->count; i++) {
		carry += (uint64_t)n->groups[i] * 256;
		n->groups[i] = (uint32_t)(carry % GROUP_BASE);
		carry /= GROUP_BASE;
	}
	return carry ? integer_push(n, (uint32_t)carry, arena) : STATUS_OK;
}

/* Reads an integer of LEAF_NUMBER_BIG: of a few hundred bytes at most. */
static enum status
integer_of_bytes(const struct leaf_number *from, struct arena *arena, struct exact_integer *ret)
{
	uint8_t flip = from->negative ? 0xff : 0;

	*ret = (struct exact_integer){ .negative = from->negative };
	for (size_t i = 0; i < from->big.len; i++)
		TRY(integer_push_byte(ret, (uint8_t)from->big.ptr[i] ^ flip, arena));
	integer_settle(ret);
	return STATUS_OK;
}

static enum status
integer_of_digits(const struct leaf_number *from, struct arena *arena, struct exact_integer *ret)
{
	size_t left = from->big.len;

	*ret = (struct exact_integer){ .negative = from->negative };
	while (left) {
		size_t digits = left < GROUP_DIGITS ? left : GROUP_DIGITS;
		uint32_t group = 0;

		for (size_t i = left - digits; i < left; i++)
			group = group * 10 + (uint32_t)(from->big.ptr[i] - '0');
		TRY(integer_push(ret, group, arena));
		left -= digits;
	}
	integer_settle(ret);
	return STATUS_OK;
}

static enum status
integer_of_small(__int128 n, struct arena *arena, struct exact_integer *ret)
{
	unsigned __int128 left = n < 0 ? -(unsigned __int128)n : (unsigned __int128)n;

	*ret = (struct exact_integer){ .negative = n < 0 };
	for (; left; left /= GROUP_BASE)
		TRY(integer_push(ret, (uint32_t)(left % GROUP_BASE), arena));
	return STATUS_OK;
}

/* Divides by `divisor`, in place, and returns the remainder of the unsigned value. */
static uint64_t
integer_divide(struct exact_integer *n, uint64_t divisor)
{
	unsigned __int128 rest = 0;

	for (size_t i = n->count; i-- > 0;) {
		rest = rest * GROUP_BASE + n->groups[i];
		n->groups[i] = (uint32_t)(rest / divisor);
		rest %= divisor;
	}
	integer_settle(n);
	return (uint64_t)rest;
}

static void
integer_write(const struct exact_integer *n, struct buf *out)
{
	if (!n->count) {
		buf_append_byte(out, '0');
		return;
	}
	buf_printf(out, "%s%u", n->negative ? "-" : "", n->groups[n->count - 1]);
	for (size_t i = n->count - 1; i-- > 0;)
		buf_printf(out, "%09u", n->groups[i]);
}

static enum status
integer_to_double(const struct exact_integer *n, struct arena *arena, double *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT_OF(SIZE_MAX, arena_part(arena));

	integer_write(n, &text);
	buf_append_byte(&text, '\0');
	TRY(buf_status(&text));
	*ret = strtod(text.ptr, NULL);
	return STATUS_OK;
}

/* ---- Sums ---- */

/* As Neumaier's: what each addition rounds away is kept. */
static void
sum_add_double(struct exact_sum *s, double d)
{
	double sum = s->doubles + d;

	s->lost += fabs(s->doubles) >= fabs(d) ? (s->doubles - sum) + d : (d - sum) + s->doubles;
	s->doubles = sum;
	s->any_double = true;
}

enum status
exact_sum_add(struct exact_sum *s, const struct leaf_number *n, struct arena *arena,
	      struct index_work *w)
{
	struct exact_integer integer;

	s->numbers++;
	switch (n->form) {
	case LEAF_NUMBER_INT:
		s->small += n->negative ? -(__int128)n->magnitude : (__int128)n->magnitude;
		return STATUS_OK;
	case LEAF_NUMBER_DOUBLE:
		sum_add_double(s, n->negative ? -n->d : n->d);
		return STATUS_OK;
	case LEAF_NUMBER_BIG:
		TRY(integer_of_bytes(n, w->arena, &integer));
		break;
	case LEAF_NUMBER_HUGE:
		TRY(index_count_bytes(w, n->big.len));
		TRY(integer_of_digits(n, w->arena, &integer));
		break;
	}
	TRY(index_count_bytes(w, s->long_ones.count * sizeof(*s->long_ones.groups)));
	return integer_add(&s->long_ones, &integer, arena);
}

static enum status
sum_of_integers(const struct exact_sum *s, struct arena *arena, struct exact_integer *ret)
{
	TRY(integer_of_small(s->small, arena, ret));
	return integer_add(ret, &s->long_ones, arena);
}

/* No value is infinite, as everywhere in JSON here: the greatest double stands for what is more. */
static void
sum_write_double(double d, struct buf *out)
{
	json_write_double(out, d > DBL_MAX ? DBL_MAX : d < -DBL_MAX ? -DBL_MAX : d);
}

static enum status
sum_to_double(const struct exact_sum *s, const struct exact_integer *integers, struct arena *arena,
	      double *ret)
{
	double d;

	TRY(integer_to_double(integers, arena, &d));
	/* An infinite sum has lost nothing that can be told. */
	*ret = isfinite(s->doubles) ? d + s->doubles + s->lost : s->doubles;
	return STATUS_OK;
}

enum status
exact_sum_write(const struct exact_sum *s, struct arena *arena, struct buf *out)
{
	struct exact_integer integers;
	double d;

	TRY(sum_of_integers(s, arena, &integers));
	if (s->any_double) {
		TRY(sum_to_double(s, &integers, arena, &d));
		sum_write_double(d, out);
	} else {
		integer_write(&integers, out);
	}
	return buf_status(out);
}

enum status
exact_sum_write_mean(const struct exact_sum *s, struct arena *arena, struct buf *out)
{
	struct exact_integer integers;
	double d;

	if (!s->numbers) {
		buf_append_cstr(out, "null");
		return buf_status(out);
	}
	TRY(sum_of_integers(s, arena, &integers));
	TRY(sum_to_double(s, &integers, arena, &d));
	if (!s->any_double && integer_divide(&integers, s->numbers) == 0)
		integer_write(&integers, out);
	else
		sum_write_double(d / (double)s->numbers, out);
	return buf_status(out);
}
