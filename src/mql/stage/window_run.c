/* What the fields of $setWindowFields are for each document of a partition. */
#include <math.h>

#include "bson/decimal.h"
#include "mql/expr/expr_int.h"
#include "mql/number.h"
#include "mql/stage/window_int.h"

static const struct mql_window_input *
input_of(const struct mql_window_rows *rows, size_t at, size_t field)
{
	return &rows->rows[at]->inputs[field];
}

static struct bson_value
decimal_value(struct bson_decimal d)
{
	return (struct bson_value){ .type = BSON_DECIMAL, .as_decimal = d };
}

/* ---- Which rows a window has: from `*ret_from` to in front of `*ret_to` ---- */

static size_t
clamp(int64_t at, int64_t n, size_t count)
{
	int64_t place;

	if (__builtin_add_overflow(at, n, &place))
		return n < 0 ? 0 : count;
	return place < 0 ? 0 : (uint64_t)place > count ? count : (size_t)place;
}

static void
document_window(const struct mql_window_field *f, size_t count, size_t at, size_t *ret_from,
		size_t *ret_to)
{
	int64_t n = 0;

	*ret_from = 0;
	*ret_to = count;
	if (!f->lower.unbounded && bson_to_int64(&f->lower.n, &n))
		*ret_from = clamp((int64_t)at, n, count);
	if (!f->upper.unbounded && bson_to_int64(&f->upper.n, &n))
		*ret_to = clamp((int64_t)at + 1, n, count);
	if (*ret_to < *ret_from)
		*ret_to = *ret_from;
	assert(*ret_to <= count);
}

static enum status
check_range(const struct mql_window_field *f, struct mql *q, const struct bson_value *by)
{
	if (f->unit >= 0) {
		if (by->type == BSON_DATE)
			return STATUS_OK;
		return mql_fail(q, 5429513,
				"Invalid range: Expected the sortBy field to be a Date, but it was "
				"%s",
				mql_expr_type(by));
	}
	if (by->type == BSON_DATE)
		return mql_fail(q, 5429413,
				"Invalid range: For windows that involve date or time ranges, a "
				"unit must be provided.");
	if (!bson_is_number(by))
		return mql_fail(q, 5429414,
				"Invalid range: Expected the sortBy field to be a number, but it "
				"was %s",
				mql_expr_type(by));
	return STATUS_OK;
}

/* How far the range reaches from a value. */
static enum status
range_end(const struct mql_window_field *f, struct mql *q, const struct bson_value *by,
	  const struct mql_window_bound *bound, struct bson_value *ret)
{
	int64_t n = 0, ms;

	if (f->unit < 0) {
		if (!mql_add(by, &bound->n, ret))
			*ret = BSON_OF_DOUBLE(bson_to_double(by) + bson_to_double(&bound->n));
		return STATUS_OK;
	}
	bson_to_int64(&bound->n, &n);
	TRY(mql_date_add(q, bson_integer(by), f->unit, n, &ms));
	*ret = BSON_OF_DATE(ms);
	return STATUS_OK;
}

/* Both ends only move on from one row to the next. */
static enum status
range_window(const struct mql_window_field *f, struct mql *q, const struct mql_window_rows *rows,
	     size_t at, struct mql_window_run *run)
{
	const struct bson_value *by = &rows->rows[at]->by;
	struct bson_value end;

	/* Rows are in ascending order of `by`: one that was passed is in no later window. */
	assert(run->range_from <= rows->count && run->range_to <= rows->count);
	TRY(check_range(f, q, by));
	if (!f->lower.unbounded) {
		TRY(range_end(f, q, by, &f->lower, &end));
		for (; run->range_from < rows->count; run->range_from++) {
			TRY(step_count(1));
			TRY(check_range(f, q, &rows->rows[run->range_from]->by));
			if (bson_compare_values(&rows->rows[run->range_from]->by, &end, NULL) >= 0)
				break;
		}
	}
	if (f->upper.unbounded) {
		run->range_to = rows->count;
	} else {
		TRY(range_end(f, q, by, &f->upper, &end));
		for (; run->range_to < rows->count; run->range_to++) {
			TRY(step_count(1));
			TRY(check_range(f, q, &rows->rows[run->range_to]->by));
			if (bson_compare_values(&rows->rows[run->range_to]->by, &end, NULL) > 0)
				break;
		}
	}
	return STATUS_OK;
}

static enum status
window_of(const struct mql_window_field *f, struct mql *q, const struct mql_window_rows *rows,
	  size_t at, struct mql_window_run *run, size_t *ret_from, size_t *ret_to)
{
	if (!f->range) {
		document_window(f, rows->count, at, ret_from, ret_to);
		return STATUS_OK;
	}
	TRY(range_window(f, q, rows, at, run));
	*ret_from = run->range_from;
	*ret_to = run->range_to < run->range_from ? run->range_from : run->range_to;
	return STATUS_OK;
}

/* ---- What is kept of a window ---- */

static enum status
state_clear(const struct mql_window_field *f, struct mql *q, struct mql_window_run *run,
	    size_t from)
{
	const struct mql_env env = { .root = BSON_EMPTY, .current = MQL_NO_VALUE };

	run->any = true;
	run->from = run->to = from;
	run->pairs = 0;
	run->decimal = false;
	run->sum = run->mean_x = run->mean_y = run->products = 0;
	run->dmean_x = run->dmean_y = run->dproducts = bson_decimal_of_int64(0);
	if (f->op != WINDOW_ACCUMULATOR)
		return STATUS_OK;
	arena_clear(run->keep);
	run->state = arena_alloc(run->keep, mql_accumulator_bytes());
	if (!run->state)
		return STATUS_LIMIT;
	return mql_accumulator_begin(f->accumulator, q, &env, run->keep, run->state);
}

/* Welford's way, in doubles and, from the first Decimal128 on, in decimals. */
static void
add_pair(struct mql_window_run *run, const struct bson_value *x, const struct bson_value *y)
{
	double dx = bson_to_double(x) - run->mean_x, n;
	struct bson_decimal ddx, dn;

	if (!bson_is_number(x) || !bson_is_number(y))
		return;
	run->pairs++;
	n = (double)run->pairs;
	if (!run->decimal && (x->type == BSON_DECIMAL || y->type == BSON_DECIMAL)) {
		run->decimal = true;
		run->dmean_x = bson_decimal_of_double(run->mean_x);
		run->dmean_y = bson_decimal_of_double(run->mean_y);
		run->dproducts = bson_decimal_of_double(run->products);
	}
	run->mean_x += dx / n;
	run->mean_y += (bson_to_double(y) - run->mean_y) / n;
	run->products += dx * (bson_to_double(y) - run->mean_y);
	if (!run->decimal)
		return;
	dn = bson_decimal_of_int64(run->pairs);
	ddx = bson_decimal_subtract(bson_decimal_of(x), run->dmean_x, NULL);
	run->dmean_x = bson_decimal_add(run->dmean_x, bson_decimal_divide(ddx, dn, NULL), NULL);
	run->dmean_y = bson_decimal_add(
		run->dmean_y,
		bson_decimal_divide(bson_decimal_subtract(bson_decimal_of(y), run->dmean_y, NULL),
				    dn, NULL),
		NULL);
	run->dproducts = bson_decimal_add(
		run->dproducts,
		bson_decimal_multiply(
			ddx, bson_decimal_subtract(bson_decimal_of(y), run->dmean_y, NULL), NULL),
		NULL);
}

static enum status
slope_number(const struct mql_window_field *f, struct mql *q, const struct bson_value *v,
	     double *ret)
{
	if (!bson_is_number(v))
		return mql_fail(q, 5624902, "%.*s requires numeric inputs, but found %s",
				STR_ARG(f->op_name), mql_expr_type(v));
	*ret = bson_to_double(v);
	return STATUS_OK;
}

/* The place of a row along the sort, in units. */
static enum status
slope_place(const struct mql_window_field *f, struct mql *q, const struct bson_value *by,
	    double *ret)
{
	if (f->unit_ms && by->type != BSON_DATE)
		return mql_fail(q, 5624900,
				"%.*s with 'unit' expects the sortBy field to be a Date",
				STR_ARG(f->op_name));
	if (f->unit_ms) {
		*ret = (double)bson_integer(by) / (double)f->unit_ms;
		return STATUS_OK;
	}
	if (by->type == BSON_DATE)
		return mql_fail(q, 5624901, "%.*s where the sortBy is a Date requires a 'unit'",
				STR_ARG(f->op_name));
	if (!bson_is_number(by))
		return mql_fail(q, 5624901, "%.*s with no 'unit' expects the sortBy to be numeric",
				STR_ARG(f->op_name));
	*ret = bson_to_double(by);
	return STATUS_OK;
}

/* Adds the trapezoid between a row and the one in front of it. */
static enum status
add_trapezoid(const struct mql_window_field *f, struct mql *q, const struct mql_window_rows *rows,
	      size_t at, size_t field, struct mql_window_run *run)
{
	double x[2], y[2];

	for (size_t i = 0; i < 2; i++) {
		size_t row = at == run->from ? at : at - 1 + i;

		TRY(slope_place(f, q, &rows->rows[row]->by, &x[i]));
		TRY(slope_number(f, q, &input_of(rows, row, field)->value, &y[i]));
	}
	run->sum += (x[1] - x[0]) * (y[0] + y[1]) / 2;
	return STATUS_OK;
}

static enum status
state_add(const struct mql_window_field *f, struct mql *q, const struct mql_window_rows *rows,
	  size_t field, struct mql_window_run *run)
{
	const struct mql_window_input *in = input_of(rows, run->to, field);

	assert(run->any && run->to < rows->count);
	TRY(step_count(1));
	if (f->op == WINDOW_ACCUMULATOR)
		TRY(mql_accumulator_take(f->accumulator, q, &in->value, &in->second, run->keep,
					 run->state));
	else if (f->op == WINDOW_INTEGRAL)
		TRY(add_trapezoid(f, q, rows, run->to, field, run));
	else
		add_pair(run, &in->value, &in->second);
	run->to++;
	return STATUS_OK;
}

static struct bson_value
covariance(const struct mql_window_field *f, const struct mql_window_run *run)
{
	int64_t n = run->pairs - (f->op == WINDOW_COVARIANCE_SAMP ? 1 : 0);

	if (n <= 0)
		return BSON_OF_NULL;
	if (run->decimal)
		return decimal_value(
			bson_decimal_divide(run->dproducts, bson_decimal_of_int64(n), NULL));
	return BSON_OF_DOUBLE(run->products / (double)n);
}

/* A window that begins where the last one did is the last one, and what has come to it. */
static enum status
framed_value(const struct mql_window_field *f, struct mql *q, const struct mql_window_rows *rows,
	     size_t at, size_t field, struct mql_window_run *run, struct bson_value *ret)
{
	size_t from, to;

	TRY(window_of(f, q, rows, at, run, &from, &to));
	if (!run->any || run->from != from || run->to > to)
		TRY(state_clear(f, q, run, from));
	while (run->to < to)
		TRY(state_add(f, q, rows, field, run));
	assert(run->from == from && run->to == to);
	if (f->op == WINDOW_ACCUMULATOR)
		return mql_accumulator_end(f->accumulator, q, run->state, ret);
	if (f->op == WINDOW_INTEGRAL)
		*ret = from == to ? BSON_OF_NULL : BSON_OF_DOUBLE(run->sum);
	else
		*ret = covariance(f, run);
	return STATUS_OK;
}

static enum status
derivative(const struct mql_window_field *f, struct mql *q, const struct mql_window_rows *rows,
	   size_t at, size_t field, struct mql_window_run *run, struct bson_value *ret)
{
	double x[2], y[2];
	size_t from, to;

	*ret = BSON_OF_NULL;
	TRY(window_of(f, q, rows, at, run, &from, &to));
	if (from == to)
		return STATUS_OK;
	for (size_t i = 0; i < 2; i++) {
		size_t row = i ? to - 1 : from;
		const struct bson_value *v = &input_of(rows, row, field)->value;

		if (mql_is_nullish(v))
			return STATUS_OK;
		TRY(slope_place(f, q, &rows->rows[row]->by, &x[i]));
		TRY(slope_number(f, q, v, &y[i]));
	}
	if (x[0] != x[1])
		*ret = BSON_OF_DOUBLE((y[1] - y[0]) / (x[1] - x[0]));
	return STATUS_OK;
}

/* ---- Without windows ---- */

/* $rank and $denseRank: equal values have one rank. */
static struct bson_value
rank(const struct mql_window_field *f, const struct mql *q, const struct mql_window_rows *rows,
     size_t at, struct mql_window_run *run)
{
	const struct bson_value *by = &rows->rows[at]->by;
	bool tie = at && mql_expr_compare(q, &rows->rows[at - 1]->by, by) == 0;

	if (!tie)
		run->rank = f->op == WINDOW_RANK ? (int64_t)at + 1 : run->rank + 1;
	return run->rank > INT32_MAX ? BSON_OF_INT64(run->rank) : BSON_OF_INT32(run->rank);
}

static void
moving_average(const struct mql_window_field *f, const struct bson_value *v,
	       struct mql_window_run *run, struct bson_value *ret)
{
	struct bson_decimal one = bson_decimal_of_int64(1), alpha = bson_decimal_of(&f->alpha);
	bool decimal = v->type == BSON_DECIMAL || f->alpha.type == BSON_DECIMAL ||
		       run->last.type == BSON_DECIMAL;
	double d = bson_to_double(&f->alpha);

	*ret = BSON_OF_NULL;
	if (!bson_is_number(v))
		return;
	if (!run->any)
		run->last = v->type == BSON_DECIMAL ? *v : BSON_OF_DOUBLE(bson_to_double(v));
	else if (decimal)
		run->last = decimal_value(bson_decimal_add(
			bson_decimal_multiply(bson_decimal_of(v), alpha, NULL),
			bson_decimal_multiply(bson_decimal_of(&run->last),
					      bson_decimal_subtract(one, alpha, NULL), NULL),
			NULL));
	else
		run->last = BSON_OF_DOUBLE(bson_to_double(v) * d + bson_real(&run->last) * (1 - d));
	run->any = true;
	*ret = run->last;
}

/* A number for what is sorted by: also of a date. */
static enum status
fill_place(struct mql *q, const struct bson_value *by, struct bson_value *ret)
{
	*ret = by->type == BSON_DATE ? BSON_OF_INT64(bson_integer(by)) : *by;
	if (by->type != BSON_DATE && !bson_is_number(by))
		return mql_fail(q, MQL_TYPE_MISMATCH,
				"$linearFill requires sortBy values to be numeric or dates, but "
				"found %s",
				mql_expr_type(by));
	return STATUS_OK;
}

static enum status
interpolate(struct mql *q, const struct bson_value x[3], const struct bson_value *left,
	    const struct bson_value *right, struct bson_value *ret)
{
	bool decimal = left->type == BSON_DECIMAL || right->type == BSON_DECIMAL;
	double place = bson_to_double(&x[1]) - bson_to_double(&x[0]);
	double width = bson_to_double(&x[2]) - bson_to_double(&x[0]);
	double l = bson_to_double(left), r = bson_to_double(right);

	for (size_t i = 0; i < 3; i++)
		decimal |= x[i].type == BSON_DECIMAL;
	if (!bson_is_number(left) || !bson_is_number(right))
		return mql_fail(q, MQL_TYPE_MISMATCH, "Value to be filled must be numeric or null");
	*ret = BSON_OF_DOUBLE(l + place * ((r - l) / width));
	if (decimal) {
		struct bson_decimal at = bson_decimal_of(&x[0]);
		struct bson_decimal rise = bson_decimal_subtract(bson_decimal_of(right),
								 bson_decimal_of(left), NULL);
		struct bson_decimal run = bson_decimal_subtract(bson_decimal_of(&x[2]), at, NULL);

		rise = bson_decimal_divide(rise, run, NULL);
		at = bson_decimal_subtract(bson_decimal_of(&x[1]), at, NULL);
		*ret = decimal_value(bson_decimal_add(bson_decimal_of(left),
						      bson_decimal_multiply(at, rise, NULL), NULL));
	}
	return STATUS_OK;
}

/* `run->from` is the row behind the last one that has a value; `run->known` the next such row. */
static enum status
linear_fill(struct mql *q, const struct mql_window_rows *rows, size_t at, size_t field,
	    struct mql_window_run *run, struct bson_value *ret)
{
	const struct bson_value *v = &input_of(rows, at, field)->value;
	struct bson_value x[3];

	if (at && mql_expr_compare(q, &rows->rows[at - 1]->by, &rows->rows[at]->by) == 0)
		return mql_fail(q, 6050106, "There can be no repeated values in the sort field");
	*ret = BSON_OF_NULL;
	if (!mql_is_nullish(v)) {
		if (!bson_is_number(v))
			return mql_fail(q, MQL_TYPE_MISMATCH,
					"Value to be filled must be numeric or null");
		run->from = at + 1;
		*ret = *v;
		return STATUS_OK;
	}
	for (; run->known < rows->count; run->known++) {
		TRY(step_count(1));
		if (run->known > at && !mql_is_nullish(&input_of(rows, run->known, field)->value))
			break;
	}
	if (!run->from || run->known == rows->count)
		return STATUS_OK;
	TRY(fill_place(q, &rows->rows[run->from - 1]->by, &x[0]));
	TRY(fill_place(q, &rows->rows[at]->by, &x[1]));
	TRY(fill_place(q, &rows->rows[run->known]->by, &x[2]));
	return interpolate(q, x, &input_of(rows, run->from - 1, field)->value,
			   &input_of(rows, run->known, field)->value, ret);
}

static struct bson_value
shift(const struct mql_window_field *f, const struct mql_window_rows *rows, size_t at, size_t field)
{
	int64_t place = (int64_t)at + f->by;

	if (place < 0 || (uint64_t)place >= rows->count)
		return f->otherwise;
	return input_of(rows, (size_t)place, field)->value;
}

enum status
mql_window_value(const struct mql_window_field *f, struct mql *q,
		 const struct mql_window_rows *rows, size_t at, size_t field,
		 struct mql_window_run *run, struct bson_value *ret)
{
	const struct bson_value *v = &input_of(rows, at, field)->value;

	switch (f->op) {
	case WINDOW_NUMBER:
		*ret = at < INT32_MAX ? BSON_OF_INT32((int64_t)at + 1)
				      : BSON_OF_INT64((int64_t)at + 1);
		return STATUS_OK;
	case WINDOW_RANK:
	case WINDOW_DENSE_RANK:
		*ret = rank(f, q, rows, at, run);
		return STATUS_OK;
	case WINDOW_SHIFT:
		*ret = shift(f, rows, at, field);
		return STATUS_OK;
	case WINDOW_MOVING_AVERAGE:
		moving_average(f, v, run, ret);
		return STATUS_OK;
	case WINDOW_LOCF:
		if (!mql_is_nullish(v) || !run->any)
			run->last = mql_is_nullish(v) ? BSON_OF_NULL : *v;
		run->any = true;
		*ret = run->last;
		return STATUS_OK;
	case WINDOW_LINEAR_FILL:
		return linear_fill(q, rows, at, field, run, ret);
	case WINDOW_DERIVATIVE:
		return derivative(f, q, rows, at, field, run, ret);
	case WINDOW_ACCUMULATOR:
	case WINDOW_INTEGRAL:
	case WINDOW_COVARIANCE_POP:
	case WINDOW_COVARIANCE_SAMP:
		break;
	}
	return framed_value(f, q, rows, at, field, run, ret);
}
