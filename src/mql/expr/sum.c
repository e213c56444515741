#include "mql/expr/sum.h"

#include <math.h>

#include "bson/decimal.h"

enum bson_type
mql_widest(enum bson_type a, enum bson_type b)
{
	static const enum bson_type order[] = { BSON_DECIMAL, BSON_DOUBLE, BSON_INT64, BSON_INT32 };

	if (a == b) /* as they mostly are */
		return a;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (a == order[i] || b == order[i])
			return order[i];
	}
	return a;
}

/* Knuth's sum of two doubles: what rounding loses of `high` goes to `low`. */
static void
sum_double(struct mql_sum *s, double d)
{
	double total = s->high + d;
	double part = total - s->high;
	double lost = (s->high - (total - part)) + (d - part);

	s->plain += d;
	s->high = total;
	s->low += lost;
}

/* In two halves, each of which is a double. */
static void
sum_int64(struct mql_sum *s, int64_t n)
{
	int64_t upper = n / (INT64_C(1) << 32) * (INT64_C(1) << 32);

	/* A zero changes none of the sums, which are never -0. */
	if (upper)
		sum_double(s, (double)upper);
	sum_double(s, (double)(n - upper));
}

/* From 0 on, so that a sum of negative zeros is 0. */
static void
sum_decimal(struct mql_sum *s, struct bson_decimal d)
{
	if (!s->decimals)
		s->decimal = bson_decimal_of_int64(0);
	s->decimals = true;
	s->decimal = bson_decimal_add(s->decimal, d, NULL);
}

void
mql_sum_add(struct mql_sum *s, const struct bson_value *v)
{
	if (!bson_is_number(v))
		return;
	s->count++;
	s->type = mql_widest(s->type, v->type);
	if (v->type == BSON_DECIMAL)
		sum_decimal(s, bson_decimal(v));
	else if (v->type == BSON_DOUBLE)
		sum_double(s, bson_real(v));
	else
		sum_int64(s, bson_integer(v));
}

/* An infinity or a NaN has spoilt the correction. */
static double
sum_to_double(const struct mql_sum *s)
{
	double d = s->high + s->low;

	return isfinite(d) ? d : s->plain;
}

static bool
sum_to_int64(const struct mql_sum *s, int64_t *ret)
{
	int64_t high, low = (int64_t)s->low;

	if (!(s->high >= -0x1p63 && s->high <= 0x1p63))
		return false;
	if (s->high == 0x1p63) {
		high = INT64_MAX;
		low += 1;
	} else {
		high = (int64_t)s->high;
	}
	return !__builtin_add_overflow(high, low, ret);
}

static struct bson_decimal
sum_to_decimal(const struct mql_sum *s)
{
	struct bson_decimal others;

	if (!isfinite(s->high + s->low))
		others = bson_decimal_of_double_34(s->plain);
	else
		others = bson_decimal_add(bson_decimal_of_double_34(s->high),
					  bson_decimal_of_double_34(s->low), NULL);
	if (s->high == 0 && s->low == 0 && !isnan(s->plain) && !isinf(s->plain))
		return s->decimal;
	return bson_decimal_add(s->decimal, others, NULL);
}

struct bson_value
mql_sum_value(const struct mql_sum *s)
{
	int64_t n;

	switch ((int)s->type) {
	case 0:
		return BSON_OF_INT32(0);
	case BSON_DECIMAL:
		return (struct bson_value){ .type = BSON_DECIMAL, .as_decimal = sum_to_decimal(s) };
	case BSON_INT32:
	case BSON_INT64:
		if (sum_to_int64(s, &n))
			return s->type == BSON_INT32 && n >= INT32_MIN && n <= INT32_MAX
				       ? BSON_OF_INT32(n)
				       : BSON_OF_INT64(n);
		break;
	default:
		break;
	}
	return BSON_OF_DOUBLE(sum_to_double(s));
}

struct bson_value
mql_sum_average(const struct mql_sum *s)
{
	if (!s->count)
		return BSON_OF_NULL;
	if (s->type == BSON_DECIMAL)
		return (struct bson_value){
			.type = BSON_DECIMAL,
			.as_decimal = bson_decimal_divide(
				sum_to_decimal(s), bson_decimal_of_int64((int64_t)s->count), NULL),
		};
	return BSON_OF_DOUBLE(sum_to_double(s) / (double)s->count);
}
