/* Compiling the fields of $setWindowFields. */
#include "bson/decimal.h"
#include "mql/expr/expr_int.h"
#include "mql/field_path.h"
#include "mql/stage/window_int.h"

static const struct {
	const char *name;
	enum mql_window_op op;
} window_ops[] = {
	{ "$rank", WINDOW_RANK },
	{ "$denseRank", WINDOW_DENSE_RANK },
	{ "$documentNumber", WINDOW_NUMBER },
	{ "$shift", WINDOW_SHIFT },
	{ "$derivative", WINDOW_DERIVATIVE },
	{ "$integral", WINDOW_INTEGRAL },
	{ "$expMovingAvg", WINDOW_MOVING_AVERAGE },
	{ "$covariancePop", WINDOW_COVARIANCE_POP },
	{ "$covarianceSamp", WINDOW_COVARIANCE_SAMP },
	{ "$linearFill", WINDOW_LINEAR_FILL },
	{ "$locf", WINDOW_LOCF },
};

/* ---- Windows ---- */

static enum status
read_bound(struct mql *q, const struct bson_value *v, bool range, struct mql_window_bound *ret)
{
	int64_t n;

	ret->unbounded = false;
	ret->n = BSON_OF_INT32(0);
	if (v->type == BSON_STRING && mql_is(bson_text(v), "unbounded")) {
		ret->unbounded = true;
		return STATUS_OK;
	}
	if (v->type == BSON_STRING && mql_is(bson_text(v), "current"))
		return STATUS_OK;
	if (v->type == BSON_STRING || !bson_is_number(v))
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"Window bounds must be 'unbounded', 'current', or a number.");
	if (!range && !bson_to_int64(v, &n))
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"Numeric document-based bounds must be an integer");
	ret->n = *v;
	return STATUS_OK;
}

static enum status
read_bounds(struct mql *q, const struct bson_element *e, struct mql_window_field *f)
{
	struct bson_value lower, upper;

	if (e->value.type != BSON_ARRAY || bson_count(bson_text(&e->value)) != 2 ||
	    !bson_find(bson_text(&e->value), STR("0"), &lower) ||
	    !bson_find(bson_text(&e->value), STR("1"), &upper))
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"Window bounds must be a 2-element array: %s",
				mql_text(q, e->name, &e->value));
	TRY(read_bound(q, &lower, f->range, &f->lower));
	TRY(read_bound(q, &upper, f->range, &f->upper));
	if (!f->lower.unbounded && !f->upper.unbounded &&
	    bson_compare_numbers(&f->lower.n, &f->upper.n) > 0)
		return mql_fail(q, 5339900, "Lower bound must not exceed upper bound: %s",
				mql_text(q, e->name, &e->value));
	return STATUS_OK;
}

static enum status
read_unit(struct mql *q, const struct bson_value *v, int *ret)
{
	if (v->type != BSON_STRING)
		return mql_fail(q, MQL_FAILED_TO_PARSE, "'unit' must be a string, but got %s",
				bson_type_name(v->type));
	if (!mql_date_unit(bson_text(v), ret))
		return mql_fail(q, MQL_FAILED_TO_PARSE, "unknown time unit value: %.*s",
				STR_ARG(bson_text(v)));
	return STATUS_OK;
}

static bool
bound_is_whole(const struct mql_window_bound *b)
{
	int64_t n;

	return b->unbounded || bson_to_int64(&b->n, &n);
}

static enum status
check_window(struct mql *q, const struct mql_window_stage *s, bool sorted, bool documents,
	     const struct mql_window_field *f)
{
	if (f->range && documents)
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"Window bounds can specify either 'documents' or 'range', not "
				"both.");
	if (f->unit >= 0 && !f->range)
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"Window bounds can only specify 'unit' with range-based bounds.");
	if (f->range && !s->sort_path.ptr)
		return mql_fail(q, 5339902, "Range-based window require sortBy a single field");
	if (f->range && s->descending)
		return mql_fail(q, 8947401, "Range-based bounds require an ascending sortBy");
	if (f->unit >= 0 && !(bound_is_whole(&f->lower) && bound_is_whole(&f->upper)))
		return mql_fail(q, MQL_FAILED_TO_PARSE,
				"With 'unit', range-based bounds must be an integer");
	if (documents && !sorted && !(f->lower.unbounded && f->upper.unbounded))
		return mql_fail(q, 5339901, "Document-based bounds require a sortBy");
	return STATUS_OK;
}

static enum status
read_window(struct mql *q, const struct mql_window_stage *s, bool sorted,
	    const struct bson_value *v, struct mql_window_field *f)
{
	bool documents = false;
	struct bson_element e;
	struct bson_iter i;

	if (v->type != BSON_DOCUMENT)
		return mql_fail(q, MQL_FAILED_TO_PARSE, "'window' field must be an object");
	f->has_window = true;
	f->range = bson_find(bson_text(v), STR("range"), NULL);
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		if (mql_is(e.name, "documents")) {
			documents = true;
			if (!f->range)
				TRY(read_bounds(q, &e, f));
		} else if (mql_is(e.name, "range")) {
			TRY(read_bounds(q, &e, f));
		} else if (mql_is(e.name, "unit")) {
			TRY(read_unit(q, &e.value, &f->unit));
		} else {
			return mql_fail(q, MQL_FAILED_TO_PARSE,
					"'window' field that specifies an unknown argument: %.*s",
					STR_ARG(e.name));
		}
	}
	return check_window(q, s, sorted, documents, f);
}

/* ---- Operators ---- */

static enum status
fail_argument(struct mql *q, const struct mql_window_field *f, struct str name)
{
	return mql_fail(q, MQL_FAILED_TO_PARSE, "%.*s got unexpected argument: %.*s",
			STR_ARG(f->op_name), STR_ARG(name));
}

static enum status
compile_shift(struct mql_stages *c, const struct bson_element *e, struct mql_window_field *f,
	      bool *has_by)
{
	struct mql_expr *expr;

	if (mql_is(e->name, "output"))
		return mql_expr_compile(c->q, &e->value, c->scope, &f->input);
	if (mql_is(e->name, "by")) {
		*has_by = true;
		if (!bson_to_int64(&e->value, &f->by) || f->by < INT32_MIN || f->by > INT32_MAX)
			return mql_fail(c->q, MQL_FAILED_TO_PARSE,
					"'$shift:by' field must be an integer, but found by: %s",
					mql_text(c->q, STR(""), &e->value));
		return STATUS_OK;
	}
	if (!mql_is(e->name, "default"))
		return fail_argument(c->q, f, e->name);
	TRY(mql_expr_compile(c->q, &e->value, c->scope, &expr));
	if (!mql_expr_constant(expr, &f->otherwise))
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"'$shift:default' expression must yield a constant value.");
	return STATUS_OK;
}

static enum status
compile_slope(struct mql_stages *c, const struct bson_element *e, struct mql_window_field *f)
{
	int unit;

	if (mql_is(e->name, "input"))
		return mql_expr_compile(c->q, &e->value, c->scope, &f->input);
	if (!mql_is(e->name, "unit"))
		return fail_argument(c->q, f, e->name);
	TRY(read_unit(c->q, &e->value, &unit));
	f->unit_ms = mql_date_unit_ms(unit);
	if (!f->unit_ms)
		return mql_fail(c->q, 5490704, "unit must be 'week' or smaller");
	return STATUS_OK;
}

static enum status
compile_average(struct mql_stages *c, const struct bson_element *e, struct mql_window_field *f)
{
	double d = bson_to_double(&e->value);
	int64_t n;

	if (mql_is(e->name, "input"))
		return mql_expr_compile(c->q, &e->value, c->scope, &f->input);
	if (!mql_is(e->name, "N") && !mql_is(e->name, "alpha"))
		return fail_argument(c->q, f, e->name);
	if ((int)f->alpha.type != MQL_MISSING)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"$expMovingAvg sub object must have exactly two fields: An 'input' "
				"field, and either an 'N' field or an 'alpha' field");
	if (mql_is(e->name, "N")) {
		if (!bson_to_int64(&e->value, &n) || n <= 0)
			return mql_fail(c->q, MQL_FAILED_TO_PARSE,
					"'N' field must be an integer greater than zero, but found "
					"N: %s",
					mql_text(c->q, STR(""), &e->value));
		f->alpha = BSON_OF_DOUBLE(2.0 / ((double)n + 1));
		return STATUS_OK;
	}
	if (!(d > 0 && d < 1))
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"'alpha' must be between 0 and 1 (exclusive), found alpha: %s",
				mql_text(c->q, STR(""), &e->value));
	f->alpha = e->value;
	return STATUS_OK;
}

static enum status
compile_options(struct mql_stages *c, const struct bson_value *v, struct mql_window_field *f)
{
	bool has_by = false;
	struct bson_element e;
	struct bson_iter i;

	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"Argument to %.*s must be an object, but found %s: %s",
				STR_ARG(f->op_name), bson_type_name(v->type),
				mql_text(c->q, STR(""), v));
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		if (f->op == WINDOW_SHIFT)
			TRY(compile_shift(c, &e, f, &has_by));
		else if (f->op == WINDOW_MOVING_AVERAGE)
			TRY(compile_average(c, &e, f));
		else
			TRY(compile_slope(c, &e, f));
	}
	if (!f->input)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE, "%.*s requires an '%s' expression",
				STR_ARG(f->op_name), f->op == WINDOW_SHIFT ? "output" : "input");
	if (f->op == WINDOW_SHIFT && !has_by)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"$shift requires 'by' as an integer "
				"value.");
	if (f->op == WINDOW_MOVING_AVERAGE && (int)f->alpha.type == MQL_MISSING)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"$expMovingAvg sub object must have exactly two fields: An 'input' "
				"field, and either an 'N' field or an 'alpha' field");
	return STATUS_OK;
}

static enum status
compile_covariance(struct mql_stages *c, const struct bson_value *v, struct mql_window_field *f)
{
	struct bson_value first, second;

	/* Anything but two expressions has no covariance. */
	if (v->type != BSON_ARRAY || bson_count(bson_text(v)) != 2 ||
	    !bson_find(bson_text(v), STR("0"), &first) ||
	    !bson_find(bson_text(v), STR("1"), &second))
		first = second = BSON_OF_NULL;
	TRY(mql_expr_compile(c->q, &first, c->scope, &f->input));
	return mql_expr_compile(c->q, &second, c->scope, &f->second);
}

static enum status
compile_rank(struct mql_stages *c, const struct mql_window_stage *s, const struct bson_value *v,
	     const struct mql_window_field *f)
{
	if (f->has_window)
		return mql_fail(c->q, 5371601,
				"Rank style window functions take no other arguments");
	if (!s->sort_path.ptr)
		return mql_fail(c->q, 5371602,
				"%.*s must be specified with a top level sortBy expression with "
				"exactly one element",
				STR_ARG(f->op_name));
	if (v->type != BSON_DOCUMENT || !bson_is_empty(bson_text(v)))
		return mql_fail(c->q, 5371603, "%.*s must be specified with '{}' as the value",
				STR_ARG(f->op_name));
	return STATUS_OK;
}

/* Demands of operators that have no window, or need a sort. */
static enum status
check_place(struct mql_stages *c, const struct mql_window_stage *s, bool sorted,
	    const struct mql_window_field *f)
{
	bool slope = f->op == WINDOW_DERIVATIVE || f->op == WINDOW_INTEGRAL;
	bool framed = slope || f->op == WINDOW_COVARIANCE_POP || f->op == WINDOW_COVARIANCE_SAMP;

	if (f->has_window && !framed)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE, "%.*s does not accept a 'window' field",
				STR_ARG(f->op_name));
	if (f->op == WINDOW_LINEAR_FILL && !s->sort_path.ptr)
		return mql_fail(c->q, 605001,
				"$linearFill must be specified with a top level sortBy expression "
				"with exactly one element");
	if (slope && !s->sort_path.ptr)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"%.*s requires a sortBy with exactly one element",
				STR_ARG(f->op_name));
	if (f->op == WINDOW_DERIVATIVE && !f->has_window)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"$derivative requires explicit window bounds");
	if ((f->op == WINDOW_SHIFT || f->op == WINDOW_MOVING_AVERAGE) && !sorted)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE, "'%.*s' requires a sortBy",
				STR_ARG(f->op_name));
	return STATUS_OK;
}

static enum status
compile_op(struct mql_stages *c, const struct mql_window_stage *s, bool sorted,
	   const struct bson_value *v, struct mql_window_field *f)
{
	if (f->op >= WINDOW_RANK && f->op <= WINDOW_NUMBER)
		return compile_rank(c, s, v, f);
	TRY(check_place(c, s, sorted, f));
	if (f->op == WINDOW_LINEAR_FILL || f->op == WINDOW_LOCF)
		return mql_expr_compile(c->q, v, c->scope, &f->input);
	if (f->op == WINDOW_COVARIANCE_POP || f->op == WINDOW_COVARIANCE_SAMP)
		return compile_covariance(c, v, f);
	return compile_options(c, v, f);
}

static enum status
compile_accumulator(struct mql_stages *c, const struct bson_element *op, struct mql_window_field *f)
{
	struct buf out = mql_buf(c->q, BSON_MOST_BYTES);
	struct bson_value spec = BSON_OF_DOCUMENT(BSON_EMPTY);
	struct bson_builder b;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	/* What would be a list of arguments in a group is one array here. */
	if (op->value.type == BSON_ARRAY) {
		bson_begin_array(&b, op->name);
		bson_put(&b, STR(""), &op->value);
		bson_end(&b);
	} else {
		bson_put_element(&b, op);
	}
	bson_end(&b);
	TRY(mql_keep(c->q, &out, &spec.as_text));
	f->op = WINDOW_ACCUMULATOR;
	return mql_accumulator_compile(c->q, f->name, &spec, c->scope, &f->accumulator);
}

static bool
op_is_rank(struct str name)
{
	return mql_is(name, "$rank") || mql_is(name, "$denseRank") ||
	       mql_is(name, "$documentNumber");
}

enum status
mql_window_field(struct mql_stages *c, const struct mql_window_stage *s, bool sorted,
		 const struct bson_element *e, struct mql_window_field *ret)
{
	struct bson_element member, op = { .name = STR("") };
	struct bson_iter i;

	*ret = (struct mql_window_field){ .name = e->name,
					  .lower = { true, BSON_OF_INT32(0) },
					  .upper = { true, BSON_OF_INT32(0) },
					  .unit = -1,
					  .otherwise = BSON_OF_NULL };
	TRY(mql_field_path_check(c->q, e->name));
	if (e->value.type != BSON_DOCUMENT)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE, "The field '%.*s' must be an object",
				STR_ARG(e->name));
	for (bson_iter_begin(&i, bson_text(&e->value)); bson_iter_read(&i, &member);) {
		if (op_is_rank(op.name))
			return mql_fail(c->q, 5371601,
					"Rank style window functions take no other arguments");
		if (member.name.len && member.name.ptr[0] == '$') {
			if (op.name.len)
				return mql_fail(c->q, MQL_FAILED_TO_PARSE,
						"The field '%.*s' must specify one window "
						"function",
						STR_ARG(e->name));
			op = member;
		} else if (mql_is(member.name, "window")) {
			TRY(read_window(c->q, s, sorted, &member.value, ret));
		} else {
			return mql_fail(c->q, MQL_FAILED_TO_PARSE,
					"Window function found an unknown argument: %.*s",
					STR_ARG(member.name));
		}
	}
	if (!op.name.len)
		return mql_fail(c->q, MQL_FAILED_TO_PARSE,
				"Expected a $-prefixed window function, %s",
				mql_text(c->q, e->name, &e->value));
	ret->op_name = op.name;
	if (mql_is(op.name, "$minMaxScaler"))
		return mql_refuse(c->q, op.name);
	for (size_t k = 0; k < sizeof(window_ops) / sizeof(window_ops[0]); k++) {
		if (mql_is(op.name, window_ops[k].name)) {
			ret->op = window_ops[k].op;
			return compile_op(c, s, sorted, &op.value, ret);
		}
	}
	if (!mql_accumulator_is(op.name))
		return mql_fail(c->q, MQL_FAILED_TO_PARSE, "Unrecognized window function, %.*s",
				STR_ARG(op.name));
	return compile_accumulator(c, &op, ret);
}
