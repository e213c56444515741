/* $add, $subtract, $multiply, $divide, $mod: numbers of all types, and dates. */
#include <math.h>

#include "bson/decimal.h"
#include "mql/expr/expr_int.h"
#include "mql/expr/sum.h"

static struct bson_value
of_decimal(struct bson_decimal d)
{
	return (struct bson_value){ .type = BSON_DECIMAL, .as_decimal = d };
}

/* An int32 if the operands were no wider, and it fits. */
static struct bson_value
of_integer(enum bson_type type, int64_t n)
{
	if (type != BSON_INT64 && n >= INT32_MIN && n <= INT32_MAX)
		return BSON_OF_INT32(n);
	return BSON_OF_INT64(n);
}

/* Milliseconds, of which a half goes away from zero; false for what an int64_t does not hold. */
static bool
ms_of_number(const struct bson_value *v, int64_t *ret)
{
	if (v->type == BSON_DECIMAL)
		return bson_decimal_to_int64(
			bson_decimal_round(bson_decimal(v), 0, BSON_DECIMAL_NEAREST, NULL), ret);
	if (v->type != BSON_DOUBLE) {
		*ret = bson_integer(v);
		return true;
	}
	if (!(bson_real(v) >= -0x1p63 && bson_real(v) < 0x1p63))
		return false;
	*ret = llround(bson_real(v));
	return true;
}

/* ---- $add ---- */

struct addition {
	enum bson_type type;         /* the widest so far; 0: none yet */
	int64_t whole;               /* until a double comes, or it overflows */
	struct mql_sum sum;          /* from then on, until a Decimal128 comes */
	struct bson_decimal decimal; /* from then on */
	int64_t ms;                  /* for a date: each number is rounded by itself */
	bool overflow;               /* of ms */
	bool date;
};

static void
addition_widen(struct addition *a, enum bson_type type)
{
	struct bson_value total;

	if (a->type == type)
		return;
	total = a->type == BSON_DOUBLE ? mql_sum_value(&a->sum) : BSON_OF_INT64(a->whole);
	if (type == BSON_DECIMAL)
		a->decimal = bson_decimal_of(&total);
	else if (type == BSON_DOUBLE && a->type)
		mql_sum_add(&a->sum, &total);
	a->type = type;
}

static void
addition_number(struct addition *a, const struct bson_value *v)
{
	int64_t ms;

	a->overflow = a->overflow || !ms_of_number(v, &ms) ||
		      __builtin_add_overflow(a->ms, ms, &a->ms);
	addition_widen(a, mql_widest(a->type, v->type));
	if (a->type == BSON_DECIMAL) {
		a->decimal = bson_decimal_add(a->decimal, bson_decimal_of(v), NULL);
	} else if (a->type == BSON_DOUBLE) {
		mql_sum_add(&a->sum, v);
	} else if (__builtin_add_overflow(a->whole, bson_integer(v), &a->whole)) {
		/* What it wrapped around to has lost nothing. */
		a->whole = (int64_t)((uint64_t)a->whole - (uint64_t)bson_integer(v));
		addition_widen(a, BSON_DOUBLE);
		mql_sum_add(&a->sum, v);
	}
}

static enum status
addition_end(struct mql *q, const struct addition *a, struct bson_value *ret)
{
	if (a->date) {
		if (a->overflow)
			return mql_fail(q, MQL_OVERFLOW, "date overflow in $add");
		*ret = BSON_OF_DATE(a->ms);
	} else if (a->type == BSON_DECIMAL) {
		*ret = of_decimal(a->decimal);
	} else if (a->type == BSON_DOUBLE) {
		*ret = mql_sum_value(&a->sum);
	} else {
		*ret = of_integer(a->type, a->whole);
	}
	return STATUS_OK;
}

static enum status
run_add(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	struct addition a = { 0 };

	for (size_t i = 0; i < count; i++) {
		const struct bson_value *v = &args[i];

		if (mql_is_nullish(v)) {
			*ret = BSON_OF_NULL;
			return STATUS_OK;
		}
		TRY(step_count(1));
		if (v->type == BSON_DATE) {
			if (a.date)
				return mql_fail(q, 16612,
						"only one date allowed in an $add expression");
			a.date = true;
			addition_number(&a, &BSON_OF_INT64(bson_integer(v)));
		} else if (bson_is_number(v)) {
			addition_number(&a, v);
		} else {
			return mql_fail(q, MQL_TYPE_MISMATCH,
					"$add only supports numeric or date types, not %s",
					mql_expr_type(v));
		}
	}
	return addition_end(q, &a, ret);
}

/* ---- $subtract ---- */

static void
subtract_numbers(const struct bson_value *a, const struct bson_value *b, struct bson_value *ret)
{
	enum bson_type type = mql_widest(a->type, b->type);
	int64_t n;

	if (type == BSON_DECIMAL)
		*ret = of_decimal(
			bson_decimal_subtract(bson_decimal_of(a), bson_decimal_of(b), NULL));
	else if (type == BSON_DOUBLE ||
		 __builtin_sub_overflow(bson_integer(a), bson_integer(b), &n))
		*ret = BSON_OF_DOUBLE(bson_to_double(a) - bson_to_double(b));
	else
		*ret = of_integer(type, n);
}

static enum status
subtract_date(struct mql *q, const struct bson_value *a, const struct bson_value *b,
	      struct bson_value *ret)
{
	int64_t ms;

	if (b->type == BSON_DATE) {
		if (__builtin_sub_overflow(bson_integer(a), bson_integer(b), &ms))
			return mql_fail(q, MQL_OVERFLOW, "date overflow in $subtract");
		*ret = BSON_OF_INT64(ms);
		return STATUS_OK;
	}
	if (!bson_is_number(b))
		return mql_fail(q, MQL_TYPE_MISMATCH, "can't $subtract %s from Date",
				mql_expr_type(b));
	if (!ms_of_number(b, &ms) || __builtin_sub_overflow(bson_integer(a), ms, &ms))
		return mql_fail(q, MQL_OVERFLOW, "date overflow in $subtract");
	*ret = BSON_OF_DATE(ms);
	return STATUS_OK;
}

static enum status
run_subtract(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	const struct bson_value *a = &args[0], *b = &args[1];

	(void)count;
	*ret = BSON_OF_NULL;
	if (bson_is_number(a) && bson_is_number(b))
		subtract_numbers(a, b, ret);
	else if (mql_is_nullish(a) || mql_is_nullish(b))
		return STATUS_OK;
	else if (a->type == BSON_DATE)
		return subtract_date(q, a, b, ret);
	else
		return mql_fail(q, MQL_TYPE_MISMATCH, "can't $subtract %s from %s",
				mql_expr_type(b), mql_expr_type(a));
	return STATUS_OK;
}

/* ---- $multiply ---- */

static void
multiply(struct bson_value *product, const struct bson_value *v)
{
	enum bson_type type = mql_widest(product->type, v->type);
	int64_t n;

	if (type == BSON_DECIMAL)
		*product = of_decimal(
			bson_decimal_multiply(bson_decimal_of(product), bson_decimal_of(v), NULL));
	else if (type == BSON_DOUBLE ||
		 __builtin_mul_overflow(bson_integer(product), bson_integer(v), &n))
		*product = BSON_OF_DOUBLE(bson_to_double(product) * bson_to_double(v));
	else
		*product = BSON_OF_INT64(n);
}

static enum status
run_multiply(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	struct bson_value product = BSON_OF_INT64(1);
	enum bson_type type = BSON_INT32;

	for (size_t i = 0; i < count; i++) {
		if (mql_is_nullish(&args[i])) {
			*ret = BSON_OF_NULL;
			return STATUS_OK;
		}
		TRY(step_count(1));
		if (!bson_is_number(&args[i]))
			return mql_fail(q, MQL_TYPE_MISMATCH,
					"$multiply only supports numeric types, not %s",
					mql_expr_type(&args[i]));
		type = mql_widest(type, args[i].type);
		multiply(&product, &args[i]);
	}
	*ret = product.type == BSON_INT64 ? of_integer(type, bson_integer(&product)) : product;
	return STATUS_OK;
}

/* ---- $divide, $mod ---- */

static enum status
run_divide(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	const struct bson_value *a = &args[0], *b = &args[1];

	(void)count;
	if (mql_is_nullish(a) || mql_is_nullish(b)) {
		*ret = BSON_OF_NULL;
		return STATUS_OK;
	}
	if (!bson_is_number(a) || !bson_is_number(b))
		return mql_fail(q, MQL_TYPE_MISMATCH,
				"$divide only supports numeric types, not %s and %s",
				mql_expr_type(a), mql_expr_type(b));
	if (!bson_is_true(b))
		return mql_fail(q, MQL_BAD_VALUE, "can't $divide by zero");
	if (mql_widest(a->type, b->type) == BSON_DECIMAL)
		*ret = of_decimal(
			bson_decimal_divide(bson_decimal_of(a), bson_decimal_of(b), NULL));
	else
		*ret = BSON_OF_DOUBLE(bson_to_double(a) / bson_to_double(b));
	return STATUS_OK;
}

static struct bson_value
modulo(const struct bson_value *a, const struct bson_value *b)
{
	enum bson_type type = mql_widest(a->type, b->type);
	int64_t n;

	if (type == BSON_DECIMAL)
		return of_decimal(
			bson_decimal_modulo(bson_decimal_of(a), bson_decimal_of(b), NULL));
	if (type == BSON_DOUBLE)
		return BSON_OF_DOUBLE(fmod(bson_to_double(a), bson_to_double(b)));
	n = bson_integer(b) == -1 ? 0 : bson_integer(a) % bson_integer(b);
	return type == BSON_INT64 ? BSON_OF_INT64(n) : BSON_OF_INT32(n);
}

static enum status
run_mod(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	const struct bson_value *a = &args[0], *b = &args[1];

	(void)count;
	if (mql_is_nullish(a) || mql_is_nullish(b)) {
		*ret = BSON_OF_NULL;
		return STATUS_OK;
	}
	if (!bson_is_number(a) || !bson_is_number(b))
		return mql_fail(q, 16611, "$mod only supports numeric types, not %s and %s",
				mql_expr_type(a), mql_expr_type(b));
	if (!bson_is_true(b))
		return mql_fail(q, mql_widest(a->type, b->type) == BSON_DECIMAL ? 5733415 : 16610,
				"can't $mod by zero");
	*ret = modulo(a, b);
	return STATUS_OK;
}

const struct mql_expr_op mql_expr_arith_ops[] = {
	{ .name = "$add", .most = -1, .run = run_add },
	{ .name = "$divide", .least = 2, .most = 2, .run = run_divide },
	{ .name = "$mod", .least = 2, .most = 2, .run = run_mod },
	{ .name = "$multiply", .most = -1, .run = run_multiply },
	{ .name = "$subtract", .least = 2, .most = 2, .run = run_subtract },
	{ 0 },
};
