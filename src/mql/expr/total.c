/* Accumulators as expressions: of their arguments, or of the elements of their only one. */
#include <math.h>

#include "base/rand.h"
#include "mql/expr/expr_int.h"
#include "mql/sort_values.h"
#include "mql/expr/sum.h"

/* What the accumulator goes through: one array stands for its elements. */
static enum status
values_of(struct mql *q, const struct bson_value **values, size_t *count)
{
	struct bson_value *elements;

	if (*count != 1 || (*values)[0].type != BSON_ARRAY)
		return STATUS_OK;
	TRY(mql_expr_values(q, *values, &elements, count));
	*values = elements;
	return STATUS_OK;
}

/* ---- $sum, $avg, $max, $min ---- */

static enum status
run_sum(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args, size_t count,
	struct bson_value *ret)
{
	struct mql_sum sum = { 0 };

	TRY(values_of(q, &args, &count));
	for (size_t i = 0; i < count; i++) {
		TRY(step_count(1));
		/* An average adds integers as the doubles that they are nearest to. */
		if (op->number && args[i].type == BSON_INT64)
			mql_sum_add(&sum, &BSON_OF_DOUBLE((double)bson_integer(&args[i])));
		else
			mql_sum_add(&sum, &args[i]);
	}
	*ret = op->number ? mql_sum_average(&sum) : mql_sum_value(&sum);
	return STATUS_OK;
}

/* op->number is the sign of the order that a better value has to the best one so far. */
static enum status
run_most(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args, size_t count,
	 struct bson_value *ret)
{
	const struct bson_value *best = NULL;

	TRY(values_of(q, &args, &count));
	for (size_t i = 0; i < count; i++) {
		TRY(step_count(1));
		if (mql_is_nullish(&args[i]))
			continue;
		if (!best || mql_expr_compare(q, &args[i], best) * op->number > 0)
			best = &args[i];
	}
	*ret = best ? *best : BSON_OF_NULL;
	return STATUS_OK;
}

/* ---- $stdDevPop, $stdDevSamp ---- */

/* Welford's way. op->number is what the count is less by. */
static enum status
run_deviation(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args,
	      size_t count, struct bson_value *ret)
{
	double mean = 0, squares = 0, n = 0;

	TRY(values_of(q, &args, &count));
	for (size_t i = 0; i < count; i++) {
		double d, delta;

		TRY(step_count(1));
		if (!bson_is_number(&args[i]))
			continue;
		d = bson_to_double(&args[i]);
		n++;
		delta = d - mean;
		if (delta != 0) {
			mean += delta / n;
			squares += delta * (d - mean);
		}
	}
	*ret = n - op->number < 1 ? BSON_OF_NULL : BSON_OF_DOUBLE(sqrt(squares / (n - op->number)));
	return STATUS_OK;
}

/* ---- $median, $percentile ---- */

static enum status
fault_percentile(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault,
		 struct str name, const struct bson_value *arg)
{
	if (fault == MQL_FAULT_NOT_OBJECT)
		return mql_fail(q, op->codes[fault], "%s specification must be an object; found %s",
				op->name, mql_text(q, STR(""), arg));
	if (fault == MQL_FAULT_UNKNOWN)
		return mql_fail(q, 40415, "BSON field '%s.%.*s' is an unknown field.", op->name,
				STR_ARG(name));
	return mql_fail(q, 40414, "BSON field '%s.%.*s' is missing but a required field", op->name,
			STR_ARG(name));
}

static int
compare_doubles(const void *a, const void *b, const void *arg)
{
	const struct bson_value *x = a, *y = b;

	(void)arg;
	return bson_compare_numbers(x, y);
}

/* The numbers among the values, as doubles in order. */
static enum status
sorted_numbers(struct mql *q, const struct bson_value *v, const struct bson_value ***ret,
	       size_t *ret_count)
{
	struct bson_value *all;
	const void **sorted;
	size_t count = 1, n = 0;

	if (v->type == BSON_ARRAY) {
		TRY(mql_expr_values(q, v, &all, &count));
	} else {
		all = arena_alloc(q->arena, sizeof(*all));
		if (!all)
			return mql_full(q);
		*all = *v;
	}
	sorted = arena_alloc(q->arena, count * sizeof(*sorted));
	if (!sorted)
		return mql_full(q);
	for (size_t i = 0; i < count; i++) {
		if (!bson_is_number(&all[i]))
			continue;
		all[i] = BSON_OF_DOUBLE(bson_to_double(&all[i]));
		sorted[n++] = &all[i];
	}
	TRY(mql_sort(q, sorted, n, compare_doubles, NULL));
	*ret = (const struct bson_value **)sorted;
	*ret_count = n;
	return STATUS_OK;
}

/* The least value that at least a part `p` of all is not above. */
static struct bson_value
percentile(const struct bson_value **sorted, size_t count, double p)
{
	double rank = ceil(p * (double)count);

	if (!count)
		return BSON_OF_NULL;
	return *sorted[rank < 1 ? 0 : (size_t)rank - 1];
}

enum status
mql_check_percentile_method(struct mql *q, struct str field, const struct bson_value *method)
{
	if (method->type != BSON_STRING)
		return mql_fail(q, MQL_TYPE_MISMATCH,
				"BSON field '%.*s.method' is the wrong type '%s', expected type "
				"'string'",
				STR_ARG(field), mql_expr_type(method));
	if (mql_is(bson_text(method), "approximate"))
		return STATUS_OK;
	return mql_fail(q, MQL_BAD_VALUE,
			"Currently only 'approximate' can be used as percentile 'method'.");
}

static enum status
check_parts(struct mql *q, const struct bson_value *p)
{
	struct bson_iter i;
	struct bson_element e;

	if (p->type != BSON_ARRAY || bson_is_empty(bson_text(p)))
		return mql_fail(q, 7750301,
				"The $percentile 'p' field must be an array of constants, not "
				"empty: %s",
				mql_text(q, STR(""), p));
	for (bson_iter_begin(&i, bson_text(p)); bson_iter_read(&i, &e);) {
		TRY(step_count(1));
		if (!bson_is_number(&e.value) ||
		    !(bson_to_double(&e.value) >= 0 && bson_to_double(&e.value) <= 1))
			return mql_fail(
				q, 7750303,
				"The $percentile 'p' field must be an array of numbers from "
				"[0.0, 1.0], but found: %s",
				mql_text(q, STR(""), &e.value));
	}
	return STATUS_OK;
}

static enum status
run_median(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	   struct bson_value *ret)
{
	const struct bson_value **sorted;
	struct bson_value v;
	size_t count;

	TRY(mql_expr_run(e->args[0], q, env, &v));
	TRY(sorted_numbers(q, &v, &sorted, &count));
	*ret = percentile(sorted, count, 0.5);
	return STATUS_OK;
}

static enum status
run_percentile(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	       struct bson_value *ret)
{
	const struct bson_value **sorted;
	struct bson_value v, *parts;
	size_t count, n;

	TRY(mql_expr_run(e->args[0], q, env, &v));
	TRY(sorted_numbers(q, &v, &sorted, &count));
	TRY(mql_expr_values(q, &e->value, &parts, &n));
	for (size_t i = 0; i < n; i++)
		parts[i] = percentile(sorted, count, bson_to_double(&parts[i]));
	return mql_expr_array(q, parts, n, ret);
}

static enum status
compile_percentile(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
		   const struct mql_scope *scope, struct mql_expr **ret)
{
	bool many = op->number;
	struct bson_value parts[3];
	struct mql_expr *p;

	TRY(mql_expr_named(q, op, arg, parts));
	TRY(mql_check_percentile_method(q, str_from_cstr(op->name), &parts[1]));
	TRY(mql_expr_new(q, op, many ? run_percentile : run_median, 1, ret));
	if (many) {
		TRY(mql_expr_compile(q, &parts[2], scope, &p));
		if (!mql_expr_constant(p, &(*ret)->value))
			return mql_fail(q, 7750300,
					"The $percentile 'p' field must be an array of constants");
		TRY(check_parts(q, &(*ret)->value));
	}
	return mql_expr_compile(q, &parts[0], scope, &(*ret)->args[0]);
}

/* ---- $rand ---- */

static enum status
run_rand(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	uint64_t bits;

	(void)e;
	(void)q;
	(void)env;
	rand_bytes(&bits, sizeof(bits));
	*ret = BSON_OF_DOUBLE((double)(bits >> 11) * 0x1p-53);
	return STATUS_OK;
}

static enum status
compile_rand(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	     const struct mql_scope *scope, struct mql_expr **ret)
{
	(void)scope;
	if (!bson_is_container(arg))
		return mql_fail(q, 10065, "invalid parameter: expected an object ($rand)");
	if (!bson_is_empty(bson_text(arg)))
		return mql_fail(q, 3040501, "$rand does not currently accept arguments");
	return mql_expr_new(q, op, run_rand, 0, ret);
}

static const char *const percentile_names[] = { "input", "method", "p", NULL };
static const char *const median_names[] = { "input", "method", NULL };

const struct mql_expr_op mql_expr_total_ops[] = {
	{ .name = "$avg", .most = -1, .run_op = run_sum, .number = 1 },
	{ .name = "$max", .most = -1, .run_op = run_most, .number = 1 },
	{ .name = "$median",
	  .names = median_names,
	  .required = 3,
	  .codes = { 7436100 },
	  .fault = fault_percentile,
	  .compile = compile_percentile },
	{ .name = "$min", .most = -1, .run_op = run_most, .number = -1 },
	{ .name = "$percentile",
	  .names = percentile_names,
	  .required = 7,
	  .codes = { 7429703 },
	  .fault = fault_percentile,
	  .compile = compile_percentile,
	  .number = 1 },
	{ .name = "$rand", .compile = compile_rand },
	{ .name = "$stdDevPop", .most = -1, .run_op = run_deviation, .number = 0 },
	{ .name = "$stdDevSamp", .most = -1, .run_op = run_deviation, .number = 1 },
	{ .name = "$sum", .most = -1, .run_op = run_sum, .number = 0 },
	{ 0 },
};
