/* Comparisons, $and, $or, $not, conditions, literals. */
#include "mql/expr/expr_int.h"

/* ---- Comparisons ---- */

enum comparison {
	IS_CMP,
	IS_EQ,
	IS_GT,
	IS_GTE,
	IS_LT,
	IS_LTE,
	IS_NE,
};

static enum status
run_compare(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args,
	    size_t count, struct bson_value *ret)
{
	int order;

	(void)count;
	if (bson_is_container(&args[0]) || args[0].type == BSON_STRING)
		TRY(step_count_bytes(bson_text(&args[0]).len));
	order = mql_expr_compare(q, &args[0], &args[1]);
	switch ((enum comparison)op->number) {
	case IS_CMP:
		*ret = BSON_OF_INT32((order > 0) - (order < 0));
		return STATUS_OK;
	case IS_EQ:
		*ret = BSON_OF_BOOL(order == 0);
		return STATUS_OK;
	case IS_GT:
		*ret = BSON_OF_BOOL(order > 0);
		return STATUS_OK;
	case IS_GTE:
		*ret = BSON_OF_BOOL(order >= 0);
		return STATUS_OK;
	case IS_LT:
		*ret = BSON_OF_BOOL(order < 0);
		return STATUS_OK;
	case IS_LTE:
		*ret = BSON_OF_BOOL(order <= 0);
		return STATUS_OK;
	case IS_NE:
		break;
	}
	*ret = BSON_OF_BOOL(order != 0);
	return STATUS_OK;
}

/* ---- $and, $or, $not ---- */

/* Ends at the first value that decides: a false one of $and, a true one of $or. */
static enum status
run_and_or(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	   struct bson_value *ret)
{
	bool is_or = e->op->number;
	struct bson_value v;

	for (size_t i = 0; i < e->count; i++) {
		TRY(step_count(1));
		TRY(mql_expr_run(e->args[i], q, env, &v));
		if (mql_expr_true(&v) == is_or) {
			*ret = BSON_OF_BOOL(is_or);
			return STATUS_OK;
		}
	}
	*ret = BSON_OF_BOOL(!is_or);
	return STATUS_OK;
}

static enum status
compile_and_or(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	       const struct mql_scope *scope, struct mql_expr **ret)
{
	struct bson_value v;

	TRY(mql_expr_args(q, op, arg, scope, run_and_or, ret));
	/* A constant that decides does so wherever it stands. */
	for (size_t i = 0; i < (*ret)->count; i++) {
		if (mql_expr_constant((*ret)->args[i], &v) && mql_expr_true(&v) == (bool)op->number)
			return mql_expr_of_value(q, &BSON_OF_BOOL(op->number), ret);
	}
	return mql_expr_fold(q, *ret);
}

static enum status
run_not(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	(void)q;
	(void)count;
	*ret = BSON_OF_BOOL(!mql_expr_true(&args[0]));
	return STATUS_OK;
}

/* ---- $cond, $ifNull ---- */

static enum status
run_cond(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	struct bson_value v;

	TRY(step_count(1));
	TRY(mql_expr_run(e->args[0], q, env, &v));
	return mql_expr_run(e->args[mql_expr_true(&v) ? 1 : 2], q, env, ret);
}

static enum status
fault_cond(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault, struct str name,
	   const struct bson_value *arg)
{
	(void)arg;
	if (fault == MQL_FAULT_UNKNOWN)
		return mql_fail(q, 17083, "Unrecognized parameter to %s: %.*s", op->name,
				STR_ARG(name));
	return mql_fail(q,
			mql_is(name, "if")     ? 17080
			: mql_is(name, "then") ? 17081
					       : 17082,
			"Missing '%.*s' parameter to %s", STR_ARG(name), op->name);
}

static enum status
compile_cond(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	     const struct mql_scope *scope, struct mql_expr **ret)
{
	static const char *const names[] = { "if", "then", "else", NULL };
	static const struct mql_expr_op named = {
		.name = "$cond", .names = names, .required = 7, .fault = fault_cond
	};
	struct bson_value v;

	TRY(mql_expr_args(q, arg->type == BSON_DOCUMENT ? &named : op, arg, scope, run_cond, ret));
	if (mql_expr_constant((*ret)->args[0], &v))
		*ret = (*ret)->args[mql_expr_true(&v) ? 1 : 2];
	return STATUS_OK;
}

static enum status
run_if_null(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	    struct bson_value *ret)
{
	struct bson_value v = MQL_NO_VALUE;

	for (size_t i = 0; i < e->count; i++) {
		TRY(step_count(1));
		TRY(mql_expr_run(e->args[i], q, env, &v));
		if (!mql_is_nullish(&v))
			break;
	}
	*ret = v;
	return STATUS_OK;
}

static enum status
compile_if_null(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
		const struct mql_scope *scope, struct mql_expr **ret)
{
	size_t count = arg->type == BSON_ARRAY ? bson_count(bson_text(arg)) : 1;

	if (count < 2)
		return mql_fail(q, 1257300, "$ifNull needs at least two arguments, had: %zu",
				count);
	TRY(mql_expr_args(q, op, arg, scope, run_if_null, ret));
	return mql_expr_fold(q, *ret);
}

/* ---- $switch ---- */

/* The arguments: the default or NULL, and then a case and its value for each branch. */
static enum status
run_switch(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	   struct bson_value *ret)
{
	bool constant = true;
	struct bson_value v;

	for (size_t i = 1; i < e->count; i += 2) {
		TRY(step_count(1));
		TRY(mql_expr_run(e->args[i], q, env, &v));
		if (mql_expr_true(&v))
			return mql_expr_run(e->args[i + 1], q, env, ret);
		constant = constant && mql_expr_constant(e->args[i], NULL);
	}
	if (e->args[0])
		return mql_expr_run(e->args[0], q, env, ret);
	if (constant)
		return mql_fail(q, 40069,
				"Cannot execute a switch statement where all the cases evaluate to "
				"false without a default.");
	return mql_fail(q, 40066,
			"$switch could not find a matching branch for an input, and no default was "
			"specified.");
}

static enum status
compile_branch(struct mql *q, const struct bson_value *branch, const struct mql_scope *scope,
	       struct mql_expr **ret)
{
	struct bson_iter i;
	struct bson_element e;

	if (branch->type != BSON_DOCUMENT)
		return mql_fail(q, 40062, "$switch expected each branch to be an object, found: %s",
				mql_expr_type(branch));
	for (bson_iter_begin(&i, bson_text(branch)); bson_iter_read(&i, &e);) {
		if (mql_is(e.name, "case"))
			TRY(mql_expr_compile(q, &e.value, scope, &ret[0]));
		else if (mql_is(e.name, "then"))
			TRY(mql_expr_compile(q, &e.value, scope, &ret[1]));
		else
			return mql_fail(q, 40063,
					"$switch found an unknown argument to a branch: %.*s",
					STR_ARG(e.name));
	}
	if (!ret[0])
		return mql_fail(q, 40064, "$switch requires each branch have a 'case' expression");
	if (!ret[1])
		return mql_fail(q, 40065, "$switch requires each branch have a 'then' expression");
	return STATUS_OK;
}

static enum status
fault_switch(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault,
	     struct str name, const struct bson_value *arg)
{
	if (fault == MQL_FAULT_NOT_OBJECT)
		return mql_fail(q, 40060, "%s requires an object as an argument, found: %s",
				op->name, mql_expr_type(arg));
	return mql_fail(q, 40067, "%s found an unknown argument: %.*s", op->name, STR_ARG(name));
}

static enum status
compile_switch(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	       const struct mql_scope *scope, struct mql_expr **ret)
{
	struct bson_value parts[2];
	struct bson_iter i;
	struct bson_element e;
	size_t count, n = 1;

	TRY(mql_expr_named(q, op, arg, parts));
	if (!mql_is_missing(&parts[0]) && parts[0].type != BSON_ARRAY)
		return mql_fail(q, 40061, "$switch expected an array for 'branches', found: %s",
				mql_expr_type(&parts[0]));
	count = mql_is_missing(&parts[0]) ? 0 : bson_count(bson_text(&parts[0]));
	if (!count)
		return mql_fail(q, 40068, "$switch requires at least one branch.");
	TRY(mql_expr_new(q, op, run_switch, 1 + 2 * count, ret));
	for (bson_iter_begin(&i, bson_text(&parts[0])); bson_iter_read(&i, &e); n += 2) {
		assert(n < 2 * count);
		TRY(compile_branch(q, &e.value, scope, &(*ret)->args[n]));
	}
	if (!mql_is_missing(&parts[1]))
		TRY(mql_expr_compile(q, &parts[1], scope, &(*ret)->args[0]));
	return mql_expr_fold(q, *ret);
}

/* ---- $literal ---- */

static enum status
compile_literal(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
		const struct mql_scope *scope, struct mql_expr **ret)
{
	(void)op;
	(void)scope;
	return mql_expr_of_value(q, arg, ret);
}

static const char *const switch_names[] = { "branches", "default", NULL };

const struct mql_expr_op mql_expr_logic_ops[] = {
	{ .name = "$and", .most = -1, .compile = compile_and_or, .number = 0 },
	{ .name = "$cmp", .least = 2, .most = 2, .run_op = run_compare, .number = IS_CMP },
	{ .name = "$cond", .least = 3, .most = 3, .compile = compile_cond },
	{ .name = "$const", .compile = compile_literal },
	{ .name = "$eq", .least = 2, .most = 2, .run_op = run_compare, .number = IS_EQ },
	{ .name = "$gt", .least = 2, .most = 2, .run_op = run_compare, .number = IS_GT },
	{ .name = "$gte", .least = 2, .most = 2, .run_op = run_compare, .number = IS_GTE },
	{ .name = "$ifNull", .least = 2, .most = -1, .compile = compile_if_null },
	{ .name = "$literal", .compile = compile_literal },
	{ .name = "$lt", .least = 2, .most = 2, .run_op = run_compare, .number = IS_LT },
	{ .name = "$lte", .least = 2, .most = 2, .run_op = run_compare, .number = IS_LTE },
	{ .name = "$ne", .least = 2, .most = 2, .run_op = run_compare, .number = IS_NE },
	{ .name = "$not", .least = 1, .most = 1, .run = run_not },
	{ .name = "$or", .most = -1, .compile = compile_and_or, .number = 1 },
	{ .name = "$switch",
	  .names = switch_names,
	  .compile = compile_switch,
	  .fault = fault_switch },
	{ 0 },
};
