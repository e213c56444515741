/* Trigonometry, in doubles or in Decimal128. */
#include <math.h>

#include "bson/decimal.h"
#include "mql/expr/expr_int.h"

enum trig {
	TRIG_ACOS,
	TRIG_ACOSH,
	TRIG_ASIN,
	TRIG_ASINH,
	TRIG_ATAN,
	TRIG_ATANH,
	TRIG_COS,
	TRIG_COSH,
	TRIG_SIN,
	TRIG_SINH,
	TRIG_TAN,
	TRIG_TANH,
	TRIG_TO_RADIANS,
	TRIG_TO_DEGREES,
};

/* The least and the most that a function takes; `open`: but not those themselves. */
static const struct {
	double (*of)(double d);
	enum bson_decimal_function decimal;
	double least, most;
	bool open;
} functions[] = {
	[TRIG_ACOS] = { acos, BSON_DECIMAL_ACOS, -1, 1, false },
	[TRIG_ACOSH] = { acosh, BSON_DECIMAL_ACOSH, 1, INFINITY, false },
	[TRIG_ASIN] = { asin, BSON_DECIMAL_ASIN, -1, 1, false },
	[TRIG_ASINH] = { asinh, BSON_DECIMAL_ASINH, -INFINITY, INFINITY, false },
	[TRIG_ATAN] = { atan, BSON_DECIMAL_ATAN, -INFINITY, INFINITY, false },
	[TRIG_ATANH] = { atanh, BSON_DECIMAL_ATANH, -1, 1, false },
	[TRIG_COS] = { cos, BSON_DECIMAL_COS, -INFINITY, INFINITY, true },
	[TRIG_COSH] = { cosh, BSON_DECIMAL_COSH, -INFINITY, INFINITY, false },
	[TRIG_SIN] = { sin, BSON_DECIMAL_SIN, -INFINITY, INFINITY, true },
	[TRIG_SINH] = { sinh, BSON_DECIMAL_SINH, -INFINITY, INFINITY, false },
	[TRIG_TAN] = { tan, BSON_DECIMAL_TAN, -INFINITY, INFINITY, true },
	[TRIG_TANH] = { tanh, BSON_DECIMAL_TANH, -INFINITY, INFINITY, false },
};

static struct bson_value
decimal_value(struct bson_decimal d)
{
	return (struct bson_value){ .type = BSON_DECIMAL, .as_decimal = d };
}

static enum status
trig_check_number(struct mql *q, const struct mql_expr_op *op, const struct bson_value *v)
{
	if (bson_is_number(v))
		return STATUS_OK;
	return mql_fail(q, 28765, "%s only supports numeric types, not %s", op->name,
			mql_expr_type(v));
}

static enum status
run_trig(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args, size_t count,
	 struct bson_value *ret)
{
	const struct bson_value least = BSON_OF_DOUBLE(functions[op->number].least);
	const struct bson_value most = BSON_OF_DOUBLE(functions[op->number].most);
	bool open = functions[op->number].open;
	int low, high;

	(void)count;
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&args[0]))
		return STATUS_OK;
	TRY(trig_check_number(q, op, &args[0]));
	if (isnan(bson_to_double(&args[0]))) {
		*ret = args[0];
		return STATUS_OK;
	}
	low = bson_compare_numbers(&args[0], &least);
	high = bson_compare_numbers(&args[0], &most);
	if (open ? low <= 0 || high >= 0 : low < 0 || high > 0)
		return mql_fail(q, 50989, "cannot apply %s to %s, value must be in %c%s,%s%c",
				op->name, mql_text(q, STR(""), &args[0]), open ? '(' : '[',
				mql_text(q, STR(""), &least), mql_text(q, STR(""), &most),
				open ? ')' : ']');
	*ret = args[0].type == BSON_DECIMAL
		       ? decimal_value(bson_decimal_apply(functions[op->number].decimal,
							  bson_decimal(&args[0]), NULL))
		       : BSON_OF_DOUBLE(functions[op->number].of(bson_to_double(&args[0])));
	return STATUS_OK;
}

static enum status
run_atan2(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	(void)count;
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&args[0]) || mql_is_nullish(&args[1]))
		return STATUS_OK;
	if (!bson_is_number(&args[0]) || !bson_is_number(&args[1]))
		return mql_fail(q, 51044, "$atan2 only supports numeric types, not %s and %s",
				mql_expr_type(&args[0]), mql_expr_type(&args[1]));
	if (args[0].type == BSON_DECIMAL || args[1].type == BSON_DECIMAL)
		*ret = decimal_value(bson_decimal_atan2(bson_decimal_of(&args[0]),
							bson_decimal_of(&args[1]), NULL));
	else
		*ret = BSON_OF_DOUBLE(atan2(bson_to_double(&args[0]), bson_to_double(&args[1])));
	return STATUS_OK;
}

static enum status
run_angle(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args, size_t count,
	  struct bson_value *ret)
{
	bool radians = op->number == TRIG_TO_RADIANS;
	struct bson_decimal factor;

	(void)count;
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&args[0]))
		return STATUS_OK;
	TRY(trig_check_number(q, op, &args[0]));
	if (args[0].type != BSON_DECIMAL) {
		*ret = BSON_OF_DOUBLE(bson_to_double(&args[0]) *
				      (radians ? M_PI / 180 : 180 / M_PI));
		return STATUS_OK;
	}
	(void)bson_decimal_parse(radians ? STR("0.01745329251994329576923690768488613")
					 : STR("57.29577951308232087679815481410517"),
				 &factor, NULL);
	*ret = decimal_value(bson_decimal_multiply(bson_decimal(&args[0]), factor, NULL));
	return STATUS_OK;
}

#define TRIG(text, which)                                                                          \
	{                                                                                          \
		.name = text, .least = 1, .most = 1, .run_op = run_trig, .number = which           \
	}

const struct mql_expr_op mql_expr_trig_ops[] = {
	TRIG("$acos", TRIG_ACOS),
	TRIG("$acosh", TRIG_ACOSH),
	TRIG("$asin", TRIG_ASIN),
	TRIG("$asinh", TRIG_ASINH),
	TRIG("$atan", TRIG_ATAN),
	{ .name = "$atan2", .least = 2, .most = 2, .run = run_atan2 },
	TRIG("$atanh", TRIG_ATANH),
	TRIG("$cos", TRIG_COS),
	TRIG("$cosh", TRIG_COSH),
	{ .name = "$degreesToRadians",
	  .least = 1,
	  .most = 1,
	  .run_op = run_angle,
	  .number = TRIG_TO_RADIANS },
	{ .name = "$radiansToDegrees",
	  .least = 1,
	  .most = 1,
	  .run_op = run_angle,
	  .number = TRIG_TO_DEGREES },
	TRIG("$sin", TRIG_SIN),
	TRIG("$sinh", TRIG_SINH),
	TRIG("$tan", TRIG_TAN),
	TRIG("$tanh", TRIG_TANH),
	{ 0 },
};
