#include "mql/number.h"

#include "bson/decimal.h"

/* int32 only where both were, and it fits. */
static struct bson_value
number_integer(const struct bson_value *a, const struct bson_value *b, int64_t n)
{
	if (a->type == BSON_INT32 && b->type == BSON_INT32 && n >= INT32_MIN && n <= INT32_MAX)
		return BSON_OF_INT32(n);
	return BSON_OF_INT64(n);
}

static struct bson_value
number_decimal(struct bson_decimal d)
{
	return (struct bson_value){ .type = BSON_DECIMAL, .as_decimal = d };
}

bool
mql_add(const struct bson_value *a, const struct bson_value *b, struct bson_value *ret)
{
	int64_t n;

	if (a->type == BSON_DECIMAL || b->type == BSON_DECIMAL) {
		*ret = number_decimal(
			bson_decimal_add(bson_decimal_of(a), bson_decimal_of(b), NULL));
		return true;
	}
	if (a->type == BSON_DOUBLE || b->type == BSON_DOUBLE) {
		*ret = BSON_OF_DOUBLE(bson_to_double(a) + bson_to_double(b));
		return true;
	}
	if (__builtin_add_overflow(bson_integer(a), bson_integer(b), &n))
		return false;
	*ret = number_integer(a, b, n);
	return true;
}

bool
mql_multiply(const struct bson_value *a, const struct bson_value *b, struct bson_value *ret)
{
	int64_t n;

	if (a->type == BSON_DECIMAL || b->type == BSON_DECIMAL) {
		*ret = number_decimal(
			bson_decimal_multiply(bson_decimal_of(a), bson_decimal_of(b), NULL));
		return true;
	}
	if (a->type == BSON_DOUBLE || b->type == BSON_DOUBLE) {
		*ret = BSON_OF_DOUBLE(bson_to_double(a) * bson_to_double(b));
		return true;
	}
	if (__builtin_mul_overflow(bson_integer(a), bson_integer(b), &n))
		return false;
	*ret = number_integer(a, b, n);
	return true;
}
