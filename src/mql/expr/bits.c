/* Expressions on the bits of integers, on sizes, and on timestamps' parts. */
#include "mql/expr/expr_int.h"

enum bits_op {
	BITS_AND,
	BITS_OR,
	BITS_XOR,
};

static bool
is_integer(const struct bson_value *v)
{
	return v->type == BSON_INT32 || v->type == BSON_INT64;
}

static enum status
run_bits(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args, size_t count,
	 struct bson_value *ret)
{
	struct bson_value all = BSON_OF_INT32(op->number == BITS_AND ? -1 : 0);

	for (size_t i = 0; i < count; i++) {
		TRY(step_count(1));
		if (mql_is_nullish(&args[i])) {
			*ret = BSON_OF_NULL;
			return STATUS_OK;
		}
		if (!is_integer(&args[i]))
			return mql_fail(q, MQL_TYPE_MISMATCH,
					"%s only supports int and long operands.", op->name);
		if (args[i].type == BSON_INT64)
			all.type = BSON_INT64;
		if (op->number == BITS_AND)
			all.as_n &= bson_integer(&args[i]);
		else if (op->number == BITS_OR)
			all.as_n |= bson_integer(&args[i]);
		else
			all.as_n ^= bson_integer(&args[i]);
	}
	*ret = all;
	return STATUS_OK;
}

static enum status
run_not(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	(void)count;
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&args[0]))
		return STATUS_OK;
	if (!is_integer(&args[0]))
		return mql_fail(q, MQL_TYPE_MISMATCH,
				"$bitNot only supports int and long, not: %s.",
				mql_expr_type(&args[0]));
	*ret = args[0];
	ret->as_n = ~bson_integer(&args[0]);
	return STATUS_OK;
}

static enum status
run_binary_size(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	(void)count;
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&args[0]))
		return STATUS_OK;
	if (args[0].type != BSON_STRING && args[0].type != BSON_BINARY)
		return mql_fail(q, 51276,
				"$binarySize requires a string or BinData argument, found: %s",
				mql_expr_type(&args[0]));
	*ret = BSON_OF_INT32((int64_t)bson_text(&args[0]).len);
	return STATUS_OK;
}

static enum status
run_timestamp(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args,
	      size_t count, struct bson_value *ret)
{
	bool seconds = op->number == 0;

	(void)count;
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&args[0]))
		return STATUS_OK;
	if (args[0].type != BSON_TIMESTAMP)
		return mql_fail(q, seconds ? 5687301 : 5687302,
				" Argument to %s must be a timestamp, but is %s", op->name,
				mql_expr_type(&args[0]));
	*ret = BSON_OF_INT64((int64_t)(seconds ? (uint64_t)bson_integer(&args[0]) >> 32
					       : (uint64_t)bson_integer(&args[0]) & UINT32_MAX));
	return STATUS_OK;
}

const struct mql_expr_op mql_expr_bits_ops[] = {
	{ .name = "$binarySize", .least = 1, .most = 1, .run = run_binary_size },
	{ .name = "$bitAnd", .least = 0, .most = -1, .run_op = run_bits, .number = BITS_AND },
	{ .name = "$bitNot", .least = 1, .most = 1, .run = run_not },
	{ .name = "$bitOr", .least = 0, .most = -1, .run_op = run_bits, .number = BITS_OR },
	{ .name = "$bitXor", .least = 0, .most = -1, .run_op = run_bits, .number = BITS_XOR },
	{ .name = "$tsIncrement", .least = 1, .most = 1, .run_op = run_timestamp, .number = 1 },
	{ .name = "$tsSecond", .least = 1, .most = 1, .run_op = run_timestamp },
	{ 0 },
};
