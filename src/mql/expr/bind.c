/* Operators that bind variables: $let, $map, $filter, $reduce. */
#include "mql/expr/expr_int.h"

enum {
	REDUCE_GARBAGE_BYTES = 1 << 20, /* that $reduce leaves in the arena before it clears it */
};

/* What $map and $filter call the element: "this" unless they say otherwise. */
static enum status
variable_name(struct mql *q, const struct bson_value *v, struct str *ret)
{
	if (mql_is_missing(v)) {
		*ret = STR("this");
		return STATUS_OK;
	}
	*ret = v->type == BSON_STRING ? bson_text(v) : STR("");
	return mql_scope_check_name(q, *ret);
}

/* ---- $let ---- */

/* The arguments: the result, and then the values of the variables. */
static enum status
run_let(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	struct mql_bound *bounds = arena_alloc(q->arena, e->count * sizeof(*bounds));
	struct mql_env inner = *env;

	TRY(step_count(1));
	if (!bounds)
		return mql_full(q);
	for (size_t i = 1; i < e->count; i++) {
		TRY(mql_expr_run(e->args[i], q, env, &bounds[i].value));
		bounds[i].outer = inner.bound;
		inner.bound = &bounds[i];
	}
	return mql_expr_run(e->args[0], q, &inner, ret);
}

static enum status
compile_let(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	    const struct mql_scope *scope, struct mql_expr **ret)
{
	const struct mql_scope *inner = scope;
	struct bson_value parts[2];
	struct bson_iter i;
	struct bson_element e;
	size_t count, n = 1;

	TRY(mql_expr_named(q, op, arg, parts));
	if (!bson_is_container(&parts[0]))
		return mql_fail(q, 10065, "invalid parameter: expected an object (vars)");
	count = bson_count(bson_text(&parts[0]));
	TRY(mql_expr_new(q, op, run_let, 1 + count, ret));
	for (bson_iter_begin(&i, bson_text(&parts[0])); bson_iter_read(&i, &e); n++) {
		assert(n <= count);
		TRY(mql_scope_check_name(q, e.name));
		TRY(mql_expr_compile(q, &e.value, scope, &(*ret)->args[n]));
		TRY(mql_scope_add(q, inner, e.name, &inner));
	}
	return mql_expr_compile(q, &parts[1], inner, &(*ret)->args[0]);
}

/* ---- $map ---- */

/* The elements of the array that an operator works on; `*ret_null` if it is null. */
static enum status
run_input(const struct mql_expr *input, struct mql *q, const struct mql_env *env, int code,
	  const char *format, struct bson_value **ret, size_t *ret_count, bool *ret_null)
{
	struct bson_value v;

	TRY(mql_expr_run(input, q, env, &v));
	*ret_null = mql_is_nullish(&v);
	if (*ret_null)
		return STATUS_OK;
	if (v.type != BSON_ARRAY)
		return mql_fail(q, code, "%s an array%s%s", format,
				code == 40080 ? ", found: " : " not ", mql_expr_type(&v));
	return mql_expr_values(q, &v, ret, ret_count);
}

static enum status
run_map(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	struct mql_bound bound = { .outer = env->bound };
	struct mql_env inner = *env;
	struct bson_value *values;
	size_t count;
	bool null;

	TRY(run_input(e->args[0], q, env, 16883, "input to $map must be", &values, &count, &null));
	*ret = BSON_OF_NULL;
	if (null)
		return STATUS_OK;
	inner.bound = &bound;
	for (size_t i = 0; i < count; i++) {
		TRY(step_count(1));
		bound.value = values[i];
		TRY(mql_expr_run(e->args[2], q, &inner, &values[i]));
	}
	return mql_expr_array(q, values, count, ret);
}

static enum status
compile_map(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	    const struct mql_scope *scope, struct mql_expr **ret)
{
	struct bson_value parts[3];
	struct str name;

	TRY(mql_expr_named(q, op, arg, parts));
	TRY(mql_expr_new(q, op, run_map, 3, ret));
	TRY(mql_expr_compile(q, &parts[0], scope, &(*ret)->args[0]));
	TRY(variable_name(q, &parts[1], &name));
	TRY(mql_scope_add(q, scope, name, &scope));
	return mql_expr_compile(q, &parts[2], scope, &(*ret)->args[2]);
}

/* ---- $filter ---- */

static enum status
filter_limit(const struct mql_expr *limit, struct mql *q, const struct mql_env *env, size_t *ret)
{
	struct bson_value v;
	int32_t n;

	*ret = SIZE_MAX;
	if (!limit)
		return STATUS_OK;
	TRY(mql_expr_run(limit, q, env, &v));
	if (mql_is_nullish(&v))
		return STATUS_OK;
	if (!mql_expr_int32(&v, &n))
		return mql_fail(q, 327391,
				"$filter: limit must be represented as a 32-bit integral value: %s",
				mql_text(q, STR(""), &v));
	if (n <= 0)
		return mql_fail(q, 327392, "$filter: limit must be greater than 0: %d", n);
	*ret = (size_t)n;
	return STATUS_OK;
}

static enum status
run_filter(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	   struct bson_value *ret)
{
	struct mql_bound bound = { .outer = env->bound };
	struct mql_env inner = *env;
	struct bson_value *values, holds;
	size_t count, limit, kept = 0;
	bool null;

	TRY(run_input(e->args[0], q, env, 28651, "input to $filter must be", &values, &count,
		      &null));
	*ret = BSON_OF_NULL;
	if (null)
		return STATUS_OK;
	TRY(filter_limit(e->args[3], q, env, &limit));
	inner.bound = &bound;
	for (size_t i = 0; i < count && kept < limit; i++) {
		struct arena_mark mark = arena_mark(q->arena);

		TRY(step_count(1));
		bound.value = values[i];
		TRY(mql_expr_run(e->args[2], q, &inner, &holds));
		if (mql_expr_true(&holds))
			values[kept++] = bound.value;
		arena_reset(q->arena, mark);
	}
	return mql_expr_array(q, values, kept, ret);
}

static enum status
compile_filter(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	       const struct mql_scope *scope, struct mql_expr **ret)
{
	const struct mql_scope *inner;
	struct bson_value parts[4];
	struct str name;

	TRY(mql_expr_named(q, op, arg, parts));
	TRY(mql_expr_new(q, op, run_filter, 4, ret));
	TRY(mql_expr_compile(q, &parts[0], scope, &(*ret)->args[0]));
	TRY(variable_name(q, &parts[1], &name));
	TRY(mql_scope_add(q, scope, name, &inner));
	TRY(mql_expr_compile(q, &parts[2], inner, &(*ret)->args[2]));
	if (!mql_is_missing(&parts[3]))
		TRY(mql_expr_compile(q, &parts[3], scope, &(*ret)->args[3]));
	return STATUS_OK;
}

/* ---- $reduce ---- */

/*
 * What $reduce has computed so far borrows from the arena. Now and then it is copied aside, and
 * what all rounds have left behind is freed.
 */
static enum status
reduce_clear(struct mql *q, struct arena_mark mark, struct bson_value *value)
{
	struct buf copy = BUF_INIT_OF(2 * (size_t)BSON_MOST_BYTES, arena_part(q->arena));
	enum status status;
	struct str bytes;
	size_t len;

	if (mql_is_missing(value)) {
		arena_reset(q->arena, mark);
		return STATUS_OK;
	}
	bson_value_write(&copy, value);
	status = buf_status(&copy);
	if (status == STATUS_OK) {
		arena_reset(q->arena, mark);
		bytes = buf_dup(&copy, q->arena);
		if (!bytes.ptr)
			status = mql_full(q);
		else if (!bson_value_read(value->type, bytes, value, &len))
			status = STATUS_CORRUPT;
	} else if (status == STATUS_LIMIT) {
		status = mql_full(q);
	}
	buf_release(&copy);
	return status;
}

static enum status
run_reduce(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	   struct bson_value *ret)
{
	struct mql_bound value = { .outer = env->bound }, this = { .outer = &value };
	struct mql_env inner = *env;
	struct arena_mark mark;
	struct bson_value *values, next;
	size_t count, used;
	bool null;

	TRY(run_input(e->args[0], q, env, 40080, "$reduce requires that 'input' be", &values,
		      &count, &null));
	*ret = BSON_OF_NULL;
	if (null)
		return STATUS_OK;
	TRY(mql_expr_run(e->args[1], q, env, &value.value));
	inner.bound = &this;
	mark = arena_mark(q->arena);
	used = arena_used_bytes(q->arena);
	for (size_t i = 0; i < count; i++) {
		TRY(step_count(1));
		this.value = values[i];
		TRY(mql_expr_run(e->args[2], q, &inner, &next));
		value.value = next;
		if (arena_used_bytes(q->arena) - used > REDUCE_GARBAGE_BYTES) {
			TRY(reduce_clear(q, mark, &value.value));
			used = arena_used_bytes(q->arena);
		}
	}
	*ret = value.value;
	return STATUS_OK;
}

static enum status
fault_reduce(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault,
	     struct str name, const struct bson_value *arg)
{
	if (fault == MQL_FAULT_NOT_OBJECT)
		return mql_fail(q, 40075, "%s requires an object as an argument, found: %s",
				op->name, mql_expr_type(arg));
	if (fault == MQL_FAULT_UNKNOWN)
		return mql_fail(q, 40076, "%s found an unknown argument: %.*s", op->name,
				STR_ARG(name));
	return mql_fail(q,
			mql_is(name, "input")          ? 40077
			: mql_is(name, "initialValue") ? 40078
						       : 40079,
			"%s requires '%.*s' to be specified", op->name, STR_ARG(name));
}

static enum status
compile_reduce(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	       const struct mql_scope *scope, struct mql_expr **ret)
{
	struct bson_value parts[3];

	TRY(mql_expr_named(q, op, arg, parts));
	TRY(mql_expr_new(q, op, run_reduce, 3, ret));
	TRY(mql_expr_compile(q, &parts[0], scope, &(*ret)->args[0]));
	TRY(mql_expr_compile(q, &parts[1], scope, &(*ret)->args[1]));
	TRY(mql_scope_add(q, scope, STR("value"), &scope));
	TRY(mql_scope_add(q, scope, STR("this"), &scope));
	return mql_expr_compile(q, &parts[2], scope, &(*ret)->args[2]);
}

/* op->number is the code of the last name's fault. */
static enum status
fault_parts(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault, struct str name,
	    const struct bson_value *arg)
{
	bool last = mql_is(name, "in") || mql_is(name, "cond");

	(void)arg;
	if (fault == MQL_FAULT_NOT_OBJECT)
		return mql_fail(q, op->codes[fault], "%s only supports an object as its argument",
				op->name);
	if (fault == MQL_FAULT_UNKNOWN)
		return mql_fail(q, op->codes[fault], "Unrecognized parameter to %s: %.*s", op->name,
				STR_ARG(name));
	return mql_fail(q, last ? op->number : op->codes[fault], "Missing '%.*s' parameter to %s",
			STR_ARG(name), op->name);
}

static const char *const let_names[] = { "vars", "in", NULL };
static const char *const map_names[] = { "input", "as", "in", NULL };
static const char *const filter_names[] = { "input", "as", "cond", "limit", NULL };
static const char *const reduce_names[] = { "input", "initialValue", "in", NULL };

const struct mql_expr_op mql_expr_bind_ops[] = {
	{ .name = "$filter",
	  .names = filter_names,
	  .required = 5,
	  .codes = { 28646, 28647, 28648 },
	  .number = 28650,
	  .fault = fault_parts,
	  .compile = compile_filter },
	{ .name = "$let",
	  .names = let_names,
	  .required = 3,
	  .codes = { 16874, 16875, 16876 },
	  .number = 16877,
	  .fault = fault_parts,
	  .compile = compile_let },
	{ .name = "$map",
	  .names = map_names,
	  .required = 5,
	  .codes = { 16878, 16879, 16880 },
	  .number = 16882,
	  .fault = fault_parts,
	  .compile = compile_map },
	{ .name = "$reduce",
	  .names = reduce_names,
	  .required = 7,
	  .fault = fault_reduce,
	  .compile = compile_reduce },
	{ 0 },
};
