/* Expressions on arrays as sets: elements are equal as $eq has it, with the collation. */
#include "mql/expr/expr_int.h"
#include "mql/value_set.h"

static enum status
set_of(struct mql *q, const struct bson_value *array, struct mql_value_set *ret)
{
	return mql_value_set_of(q, bson_text(array), q->texts, ret);
}

static bool
set_has(const struct mql *q, const struct mql_value_set *set, const struct bson_value *v)
{
	size_t ignored;

	return mql_value_set_find(set, q->texts, v, &ignored);
}

static enum status
set_write(struct mql *q, const struct mql_value_set *set, struct bson_value *ret)
{
	struct buf out = mql_buf(q, BSON_MOST_BYTES);
	struct bson_builder b;
	struct str bytes;

	TRY(step_count((uint32_t)set->count));
	bson_builder_init(&b, &out);
	bson_begin_outer_array(&b);
	for (size_t i = 0; i < set->count; i++) {
		const struct bson_value v = mql_value_set_at(set, i);

		bson_put(&b, STR(""), &v);
	}
	bson_end(&b);
	TRY(mql_keep(q, &out, &bytes));
	*ret = BSON_OF_ARRAY(bytes);
	return STATUS_OK;
}

/* Keeps the elements that `other` has, too, or those that it has not. */
static enum status
set_keep(struct mql *q, struct mql_value_set *set, const struct mql_value_set *other, bool common)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++) {
		const struct bson_value v = mql_value_set_at(set, i);

		TRY(step_count(1));
		if (set_has(q, other, &v) == common)
			set->places[kept++] = set->places[i];
	}
	set->count = kept;
	return STATUS_OK;
}

static enum status
fail_operand(struct mql *q, const struct mql_expr_op *op, int code, const struct bson_value *v)
{
	return mql_fail(q, code, "All operands of %s must be arrays. One argument is of type: %s",
			op->name, mql_expr_type(v));
}

static enum status
run_intersection(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args,
		 size_t count, struct bson_value *ret)
{
	struct mql_value_set common = { 0 }, next;

	for (size_t i = 0; i < count; i++) {
		if (mql_is_nullish(&args[i])) {
			*ret = BSON_OF_NULL;
			return STATUS_OK;
		}
		if (args[i].type != BSON_ARRAY)
			return fail_operand(q, op, 17047, &args[i]);
		TRY(set_of(q, &args[i], i ? &next : &common));
		if (i)
			TRY(set_keep(q, &common, &next, true));
	}
	return set_write(q, &common, ret);
}

/* The arrays behind each other are one array, whose set is the union. */
static enum status
run_union(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args, size_t count,
	  struct bson_value *ret)
{
	struct buf out = mql_buf(q, BSON_MOST_BYTES);
	struct bson_value all = BSON_OF_ARRAY(BSON_EMPTY);
	struct bson_builder b;
	struct mql_value_set set;

	for (size_t i = 0; i < count; i++) {
		if (mql_is_nullish(&args[i])) {
			*ret = BSON_OF_NULL;
			return STATUS_OK;
		}
		if (args[i].type != BSON_ARRAY)
			return fail_operand(q, op, 17043, &args[i]);
		TRY(step_count_bytes(bson_text(&args[i]).len));
	}
	bson_builder_init(&b, &out);
	bson_begin_outer_array(&b);
	for (size_t i = 0; i < count; i++)
		bson_put_elements(&b, bson_text(&args[i]));
	bson_end(&b);
	TRY(mql_keep(q, &out, &all.as_text));
	TRY(set_of(q, &all, &set));
	return set_write(q, &set, ret);
}

static enum status
run_difference(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	struct mql_value_set first, second;

	(void)count;
	*ret = BSON_OF_NULL;
	if (mql_is_nullish(&args[0]) || mql_is_nullish(&args[1]))
		return STATUS_OK;
	for (int i = 0; i < 2; i++) {
		if (args[i].type != BSON_ARRAY)
			return mql_fail(q, i ? 17049 : 17048,
					"both operands of $setDifference must be arrays. %s "
					"argument is of type: %s",
					i ? "Second" : "First", mql_expr_type(&args[i]));
	}
	TRY(set_of(q, &args[0], &first));
	TRY(set_of(q, &args[1], &second));
	TRY(set_keep(q, &first, &second, false));
	TRY(mql_value_set_by_place(q, &first));
	return set_write(q, &first, ret);
}

static enum status
run_subset(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	struct mql_value_set first, second;
	bool subset = true;

	(void)count;
	for (int i = 0; i < 2; i++) {
		if (args[i].type != BSON_ARRAY)
			return mql_fail(q, i ? 17042 : 17046,
					"both operands of $setIsSubset must be arrays. %s argument "
					"is of type: %s",
					i ? "Second" : "First", mql_expr_type(&args[i]));
	}
	TRY(set_of(q, &args[0], &first));
	TRY(set_of(q, &args[1], &second));
	for (size_t i = 0; i < first.count && subset; i++) {
		const struct bson_value v = mql_value_set_at(&first, i);

		TRY(step_count(1));
		subset = set_has(q, &second, &v);
	}
	*ret = BSON_OF_BOOL(subset);
	return STATUS_OK;
}

/* ---- $setEquals ---- */

static enum status
run_equals(const struct mql_expr *e, struct mql *q, const struct mql_env *env,
	   struct bson_value *ret)
{
	struct mql_value_set first = { 0 }, next;
	struct bson_value v;
	bool equal = true;

	for (size_t i = 0; i < e->count; i++) {
		TRY(mql_expr_run(e->args[i], q, env, &v));
		if (v.type != BSON_ARRAY)
			return mql_fail(q, 17044,
					"All operands of $setEquals must be arrays. %zu-th "
					"argument is of type: %s",
					i + 1, mql_expr_type(&v));
		TRY(set_of(q, &v, i ? &next : &first));
		if (!i)
			continue;
		equal = equal && next.count == first.count;
		for (size_t n = 0; n < next.count && equal; n++) {
			const struct bson_value left = mql_value_set_at(&first, n),
						right = mql_value_set_at(&next, n);

			TRY(step_count(1));
			equal = mql_expr_compare(q, &left, &right) == 0;
		}
	}
	*ret = BSON_OF_BOOL(equal);
	return STATUS_OK;
}

static enum status
compile_equals(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	       const struct mql_scope *scope, struct mql_expr **ret)
{
	struct bson_value v;
	struct mql_expr *e;

	TRY(mql_expr_args(q, op, arg, scope, run_equals, &e));
	if (e->count < 2)
		return mql_fail(q, 17045, "$setEquals needs at least two arguments had: %zu",
				e->count);
	for (size_t i = 0; i < e->count; i++) {
		if (mql_expr_constant(e->args[i], &v) && v.type != BSON_ARRAY)
			return mql_fail(q, 5887502,
					"All operands of $setEquals must be arrays. %zu-th "
					"argument is of type: %s",
					i + 1, mql_expr_type(&v));
	}
	*ret = e;
	return mql_expr_fold(q, e);
}

/* ---- $allElementsTrue, $anyElementTrue ---- */

static enum status
run_truth(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args, size_t count,
	  struct bson_value *ret)
{
	bool any = op->number != 0, truth = !any;
	struct bson_iter i;
	struct bson_element e;

	(void)count;
	if (args[0].type != BSON_ARRAY)
		return mql_fail(q, any ? 17041 : 17040, "%s's argument must be an array, but is %s",
				op->name, mql_expr_type(&args[0]));
	for (bson_iter_begin(&i, bson_text(&args[0])); truth != any && bson_iter_read(&i, &e);) {
		TRY(step_count(1));
		truth = mql_expr_true(&e.value);
	}
	*ret = BSON_OF_BOOL(truth);
	return STATUS_OK;
}

const struct mql_expr_op mql_expr_set_ops[] = {
	{ .name = "$allElementsTrue", .least = 1, .most = 1, .run_op = run_truth },
	{ .name = "$anyElementTrue", .least = 1, .most = 1, .run_op = run_truth, .number = 1 },
	{ .name = "$setDifference", .least = 2, .most = 2, .run = run_difference },
	{ .name = "$setEquals", .least = 0, .most = -1, .compile = compile_equals },
	{ .name = "$setIntersection", .least = 0, .most = -1, .run_op = run_intersection },
	{ .name = "$setIsSubset", .least = 2, .most = 2, .run = run_subset },
	{ .name = "$setUnion", .least = 0, .most = -1, .run_op = run_union },
	{ 0 },
};
