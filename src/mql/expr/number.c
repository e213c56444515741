/* Functions of one number: $abs, $ceil, $exp, $round …; and $log, $pow. */
#include <math.h>

#include "bson/decimal.h"
#include "mql/expr/expr_int.h"

enum {
	PLACES_LEAST = -20, /* of $round and $trunc */
	PLACES_MOST = 100,
};

enum function {
	IS_ABS,
	IS_CEIL,
	IS_EXP,
	IS_FLOOR,
	IS_LN,
	IS_LOG10,
	IS_ROUND,
	IS_SIGMOID,
	IS_SQRT,
	IS_TRUNC,
};

static struct bson_value
of_decimal(struct bson_decimal d)
{
	return (struct bson_value){ .type = BSON_DECIMAL, .as_decimal = d };
}

static bool
is_nan(const struct bson_value *v)
{
	return (v->type == BSON_DOUBLE && isnan(bson_real(v))) ||
	       (v->type == BSON_DECIMAL && bson_decimal_is_nan(bson_decimal(v)));
}

/* Less than 0, 0, more than 0. */
static int
sign_of(const struct bson_value *v)
{
	const struct bson_value zero = BSON_OF_INT32(0);

	return bson_compare_numbers(v, &zero);
}

/* ---- One number ---- */

static enum status
abs_of(struct mql *q, const struct bson_value *v, struct bson_value *ret)
{
	int64_t n;

	if (v->type == BSON_DOUBLE) {
		*ret = BSON_OF_DOUBLE(fabs(bson_real(v)));
		return STATUS_OK;
	}
	if (v->type == BSON_DECIMAL) {
		*ret = of_decimal(bson_decimal_absolute(bson_decimal(v)));
		return STATUS_OK;
	}
	n = bson_integer(v);
	if (n == INT64_MIN)
		return mql_fail(q, 28680, "can't take $abs of long long min");
	n = n < 0 ? -n : n;
	*ret = v->type == BSON_INT32 && n <= INT32_MAX ? BSON_OF_INT32(n) : BSON_OF_INT64(n);
	return STATUS_OK;
}

/* $ceil and $floor: integers are what they are. */
static void
whole_of(enum function f, const struct bson_value *v, struct bson_value *ret)
{
	if (v->type == BSON_DOUBLE)
		*ret = BSON_OF_DOUBLE(f == IS_CEIL ? ceil(bson_real(v)) : floor(bson_real(v)));
	else if (v->type == BSON_DECIMAL && bson_decimal_is_infinite(bson_decimal(v)))
		*ret = of_decimal(bson_decimal_of_double((double)NAN));
	else if (v->type == BSON_DECIMAL)
		*ret = of_decimal(bson_decimal_round(
			bson_decimal(v), 0,
			f == IS_CEIL ? BSON_DECIMAL_CEILING : BSON_DECIMAL_FLOOR, NULL));
	else
		*ret = *v;
}

/* 1 / (1 + e^-x) */
static struct bson_value
sigmoid_of(const struct bson_value *v)
{
	const struct bson_decimal one = bson_decimal_of_int64(1);
	struct bson_decimal d;

	if (v->type != BSON_DECIMAL)
		return BSON_OF_DOUBLE(1 / (1 + exp(-bson_to_double(v))));
	d = bson_decimal_apply(BSON_DECIMAL_EXP, bson_decimal_negate(bson_decimal(v)), NULL);
	return of_decimal(bson_decimal_divide(one, bson_decimal_add(one, d, NULL), NULL));
}

static void
curve_of(enum function f, const struct bson_value *v, struct bson_value *ret)
{
	enum bson_decimal_function decimal = f == IS_EXP    ? BSON_DECIMAL_EXP
					     : f == IS_LN   ? BSON_DECIMAL_LN
					     : f == IS_SQRT ? BSON_DECIMAL_SQRT
							    : BSON_DECIMAL_LOG10;
	double d = bson_to_double(v);

	if (v->type == BSON_DECIMAL)
		*ret = of_decimal(bson_decimal_apply(decimal, bson_decimal(v), NULL));
	else
		*ret = BSON_OF_DOUBLE(f == IS_EXP    ? exp(d)
				      : f == IS_LN   ? log(d)
				      : f == IS_SQRT ? sqrt(d)
						     : log10(d));
}

static enum status
run_function(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args,
	     size_t count, struct bson_value *ret)
{
	enum function f = (enum function)op->number;
	const struct bson_value *v = &args[0];

	(void)count;
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(v))
		return STATUS_OK;
	if (!bson_is_number(v) && f == IS_SIGMOID)
		return mql_fail(q, MQL_TYPE_MISMATCH, "%s only supports numeric types, not %s",
				op->name, mql_expr_type(v));
	if (!bson_is_number(v))
		return mql_fail(q, 28765, "%s only supports numeric types, not %s", op->name,
				mql_expr_type(v));
	if ((f == IS_LN || f == IS_LOG10) && !is_nan(v) && sign_of(v) <= 0)
		return mql_fail(q, f == IS_LN ? 28766 : 28761,
				"%s's argument must be a positive number, but is %s", op->name,
				mql_text(q, STR(""), v));
	if (f == IS_SQRT && !is_nan(v) && sign_of(v) < 0)
		return mql_fail(q, 28714, "$sqrt's argument must be greater than or equal to 0");
	if (f == IS_ABS)
		return abs_of(q, v, ret);
	if (f == IS_CEIL || f == IS_FLOOR)
		whole_of(f, v, ret);
	else if (f == IS_SIGMOID)
		*ret = sigmoid_of(v);
	else
		curve_of(f, v, ret);
	return STATUS_OK;
}

static enum status
run_one(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	struct bson_value v;

	TRY(mql_expr_run(e->args[0], q, env, &v));
	return run_function(q, e->op, &v, 1, ret);
}

/* Its argument is never a list of arguments. */
static enum status
compile_one(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	    const struct mql_scope *scope, struct mql_expr **ret)
{
	TRY(mql_expr_new(q, op, run_one, 1, ret));
	TRY(mql_expr_compile(q, arg, scope, &(*ret)->args[0]));
	return mql_expr_fold(q, *ret);
}

/* ---- $log, $pow ---- */

static struct bson_decimal
logarithm(struct bson_decimal d, struct bson_decimal base)
{
	return bson_decimal_divide(bson_decimal_apply(BSON_DECIMAL_LN, d, NULL),
				   bson_decimal_apply(BSON_DECIMAL_LN, base, NULL), NULL);
}

static enum status
run_log(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	const struct bson_value *v = &args[0], *base = &args[1];
	const struct bson_value one = BSON_OF_INT32(1);

	(void)count;
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(v) || mql_is_nullish(base))
		return STATUS_OK;
	if (!bson_is_number(v))
		return mql_fail(q, 28756, "$log's argument must be numeric, not %s",
				mql_expr_type(v));
	if (!bson_is_number(base))
		return mql_fail(q, 28757, "$log's base must be numeric, not %s",
				mql_expr_type(base));
	if (!is_nan(v) && sign_of(v) <= 0)
		return mql_fail(q, 28758, "$log's argument must be a positive number, but is %s",
				mql_text(q, STR(""), v));
	if (!is_nan(base) && (sign_of(base) <= 0 || !bson_compare_numbers(base, &one)))
		return mql_fail(q, 28759,
				"$log's base must be a positive number not equal to 1, but is %s",
				mql_text(q, STR(""), base));
	if (v->type == BSON_DECIMAL || base->type == BSON_DECIMAL)
		*ret = of_decimal(logarithm(bson_decimal_of(v), bson_decimal_of(base)));
	else
		*ret = BSON_OF_DOUBLE(log(bson_to_double(v)) / log(bson_to_double(base)));
	return STATUS_OK;
}

/* False if the power is no integer that fits: it then is a double. */
static bool
integer_power(int64_t base, int64_t exponent, int64_t *ret)
{
	int64_t power = 1;

	if (base == 0 || base == 1) {
		*ret = exponent ? base : 1;
		return true;
	}
	if (base == -1) {
		*ret = exponent % 2 ? -1 : 1;
		return true;
	}
	if (exponent < 0 || exponent > 63)
		return false;
	for (int64_t i = 0; i < exponent; i++) {
		if (__builtin_mul_overflow(power, base, &power))
			return false;
	}
	*ret = power;
	return true;
}

/* With all 34 digits, as MongoDB has it: the least zero that there is makes them. */
static struct bson_decimal
decimal_power(struct bson_decimal base, struct bson_decimal exponent)
{
	const struct bson_decimal least_zero = { 0 };

	return bson_decimal_add(bson_decimal_power(base, exponent, NULL), least_zero, NULL);
}

static enum status
run_pow(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	const struct bson_value *base = &args[0], *exponent = &args[1];
	bool decimal = base->type == BSON_DECIMAL || exponent->type == BSON_DECIMAL;
	int64_t n;

	(void)count;
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(base) || mql_is_nullish(exponent))
		return STATUS_OK;
	if (!bson_is_number(base))
		return mql_fail(q, 28762, "$pow's base must be numeric, not %s",
				mql_expr_type(base));
	if (!bson_is_number(exponent))
		return mql_fail(q, 28763, "$pow's exponent must be numeric, not %s",
				mql_expr_type(exponent));
	if (!bson_is_true(base) && !is_nan(exponent) && sign_of(exponent) < 0)
		return mql_fail(q, 28764, "$pow cannot take a base of 0 and a negative exponent");
	if (decimal)
		*ret = of_decimal(decimal_power(bson_decimal_of(base), bson_decimal_of(exponent)));
	else if (base->type == BSON_DOUBLE || exponent->type == BSON_DOUBLE ||
		 !integer_power(bson_integer(base), bson_integer(exponent), &n))
		*ret = BSON_OF_DOUBLE(pow(bson_to_double(base), bson_to_double(exponent)));
	else if (base->type == BSON_INT32 && exponent->type == BSON_INT32 && n >= INT32_MIN &&
		 n <= INT32_MAX)
		*ret = BSON_OF_INT32(n);
	else
		*ret = BSON_OF_INT64(n);
	return STATUS_OK;
}

/* ---- $round, $trunc ---- */

static enum status
read_places(struct mql *q, const char *name, const struct bson_value *v, int64_t *ret)
{
	if (!bson_is_number(v))
		return mql_fail(q, 16004, "can't convert from BSON type %s to long",
				mql_expr_type(v));
	if (!bson_to_int64(v, ret)) {
		double d = bson_to_double(v);

		/* A Decimal128 that is no number counts as 0, which it is not. */
		if (!(d >= -0x1p63 && d < 0x1p63) && !(v->type == BSON_DECIMAL && isnan(d)))
			return mql_fail(q, 31109, "Can't coerce out of range value %s to long",
					mql_text(q, STR(""), v));
		return mql_fail(q, 51082, "precision argument to  %s must be a integral value",
				name);
	}
	if (*ret < PLACES_LEAST || *ret > PLACES_MOST)
		return mql_fail(q, 51083,
				"cannot apply %s with precision value %lld value must be in "
				"[%d, %d]",
				name, (long long)*ret, PLACES_LEAST, PLACES_MOST);
	return STATUS_OK;
}

static enum status
round_integer(struct mql *q, const struct mql_expr_op *op, const struct bson_value *v,
	      struct bson_decimal rounded, struct bson_value *ret)
{
	int64_t n;

	if (!bson_decimal_to_int64(rounded, &n))
		return mql_fail(q, 51080,
				"invalid conversion from Decimal128 result in %s resulting from "
				"arguments: %s",
				op->name, mql_text(q, STR(""), v));
	*ret = v->type == BSON_INT32 && n >= INT32_MIN && n <= INT32_MAX ? BSON_OF_INT32(n)
									 : BSON_OF_INT64(n);
	return STATUS_OK;
}

static enum status
run_round(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args, size_t count,
	  struct bson_value *ret)
{
	enum bson_decimal_rounding how = op->number == IS_ROUND ? BSON_DECIMAL_NEAREST
								: BSON_DECIMAL_TRUNCATE;
	const struct bson_value *v = &args[0];
	struct bson_decimal d;
	int64_t places = 0;

	*ret = BSON_OF_NULL;
	if (mql_is_nullish(v) || (count > 1 && mql_is_nullish(&args[1])))
		return STATUS_OK;
	if (!bson_is_number(v))
		return mql_fail(q, 51081, "%s only supports numeric types, not %s", op->name,
				mql_expr_type(v));
	if (count > 1)
		TRY(read_places(q, op->name, &args[1], &places));
	*ret = *v;
	if (v->type == BSON_DOUBLE) {
		if (!isfinite(bson_real(v)))
			return STATUS_OK;
		d = bson_decimal_round(bson_decimal_of_double_34(bson_real(v)), (int)places, how,
				       NULL);
		*ret = BSON_OF_DOUBLE(places                   ? bson_decimal_to_double(d)
				      : op->number == IS_ROUND ? rint(bson_real(v))
							       : trunc(bson_real(v)));
	} else if (v->type == BSON_DECIMAL) {
		/* A number that has not so many digits is what it was. */
		d = bson_decimal_round(bson_decimal(v), (int)places, how, NULL);
		if (!bson_decimal_is_nan(d))
			*ret = of_decimal(d);
	} else if (places < 0) {
		d = bson_decimal_round(bson_decimal_of_int64(bson_integer(v)), (int)places, how,
				       NULL);
		return round_integer(q, op, v, d, ret);
	}
	return STATUS_OK;
}

#define FUNCTION(text, which)                                                                      \
	{                                                                                          \
		.name = (text), .least = 1, .most = 1, .run_op = run_function, .number = (which)   \
	}

const struct mql_expr_op mql_expr_number_ops[] = {
	FUNCTION("$abs", IS_ABS),
	FUNCTION("$ceil", IS_CEIL),
	FUNCTION("$exp", IS_EXP),
	FUNCTION("$floor", IS_FLOOR),
	FUNCTION("$ln", IS_LN),
	{ .name = "$log", .least = 2, .most = 2, .run = run_log },
	FUNCTION("$log10", IS_LOG10),
	{ .name = "$pow", .least = 2, .most = 2, .run = run_pow },
	{ .name = "$round", .least = 1, .most = 2, .run_op = run_round, .number = IS_ROUND },
	{ .name = "$sigmoid", .compile = compile_one, .number = IS_SIGMOID },
	FUNCTION("$sqrt", IS_SQRT),
	{ .name = "$trunc", .least = 1, .most = 2, .run_op = run_round, .number = IS_TRUNC },
	{ 0 },
};
