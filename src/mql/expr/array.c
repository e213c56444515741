/* Arrays as values: their elements, parts of them, arrays made of others. */
#include "mql/expr/expr_int.h"
#include "mql/sort_values.h"
#include "mql/value_set.h"

/* ---- One element ---- */

static enum status
element_at(const struct bson_value *array, int64_t at, struct bson_value *ret)
{
	struct bson_iter i;
	struct bson_element e;

	TRY(step_count_bytes(bson_text(array).len));
	if (at < 0)
		at += (int64_t)bson_count(bson_text(array));
	*ret = MQL_NO_VALUE;
	if (at < 0)
		return STATUS_OK;
	for (bson_iter_begin(&i, bson_text(array)); bson_iter_read(&i, &e); at--) {
		if (at == 0) {
			*ret = e.value;
			break;
		}
	}
	return STATUS_OK;
}

static enum status
run_element_at(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	int32_t at;

	(void)count;
	if (mql_gives_null(&args[0], ret) || mql_gives_null(&args[1], ret))
		return STATUS_OK;
	if (args[0].type != BSON_ARRAY)
		return mql_fail(q, 28689,
				"$arrayElemAt's first argument must be an array, but is %s",
				mql_expr_type(&args[0]));
	if (!bson_is_number(&args[1]))
		return mql_fail(q, 28690,
				"$arrayElemAt's second argument must be a numeric value, but is %s",
				mql_expr_type(&args[1]));
	if (!mql_expr_int32(&args[1], &at))
		return mql_fail(q, 28691,
				"$arrayElemAt's second argument must be representable as a 32-bit "
				"integer: %s",
				mql_text(q, STR(""), &args[1]));
	return element_at(&args[0], at, ret);
}

/* $first and $last: op->number is the place. */
static enum status
run_end(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args, size_t count,
	struct bson_value *ret)
{
	(void)count;
	if (mql_gives_null(&args[0], ret))
		return STATUS_OK;
	if (args[0].type != BSON_ARRAY)
		return mql_fail(q, 28689, "%s's argument must be an array, but is %s", op->name,
				mql_expr_type(&args[0]));
	return element_at(&args[0], op->number, ret);
}

static enum status
run_size(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	(void)count;
	if (args[0].type != BSON_ARRAY)
		return mql_fail(q, 17124,
				"The argument to $size must be an array, but was of type: %s",
				mql_expr_type(&args[0]));
	TRY(step_count_bytes(bson_text(&args[0]).len));
	*ret = BSON_OF_INT32((int64_t)bson_count(bson_text(&args[0])));
	return STATUS_OK;
}

static enum status
run_is_array(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	(void)q;
	(void)count;
	*ret = BSON_OF_BOOL(args[0].type == BSON_ARRAY);
	return STATUS_OK;
}

/* ---- Looking for a value ---- */

/* The place of the first element from `from` to `to` that is equal; -1: none. */
static enum status
find_value(struct mql *q, const struct bson_value *array, const struct bson_value *v, int64_t from,
	   int64_t to, int64_t *ret)
{
	struct bson_iter i;
	struct bson_element e;
	int64_t at = 0;

	*ret = -1;
	for (bson_iter_begin(&i, bson_text(array)); at < to && bson_iter_read(&i, &e); at++) {
		TRY(step_count_bytes(e.bytes.len));
		if (at >= from && !mql_expr_compare(q, &e.value, v)) {
			*ret = at;
			break;
		}
	}
	return STATUS_OK;
}

/* Of a constant array `more` has the set of its values. */
static enum status
run_in(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	const struct mql_value_set *set = e->more;
	struct bson_value args[2];
	bool is_in = false;
	size_t ignored;
	int64_t at;

	assert(e->count == 2);
	TRY(mql_expr_run_args(e, q, env, args));
	if (args[1].type != BSON_ARRAY)
		return mql_fail(q, 40081, "$in requires an array as a second argument, found: %s",
				mql_expr_type(&args[1]));
	if (!set) {
		TRY(find_value(q, &args[1], &args[0], 0, INT64_MAX, &at));
		is_in = at >= 0;
	} else if (!mql_is_missing(&args[0])) {
		TRY(step_count(1));
		is_in = mql_value_set_find(set, q->texts, &args[0], &ignored);
	}
	*ret = BSON_OF_BOOL(is_in);
	return STATUS_OK;
}

static enum status
compile_in(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	   const struct mql_scope *scope, struct mql_expr **ret)
{
	struct mql_value_set *set;
	struct bson_value list;
	struct mql_expr *e;

	TRY(mql_expr_args(q, op, arg, scope, run_in, &e));
	if (mql_expr_constant(e->args[1], &list) && list.type == BSON_ARRAY) {
		set = arena_alloc(q->arena, sizeof(*set));
		if (!set)
			return mql_full(q);
		TRY(mql_value_set_of(q, bson_text(&list), q->texts, set));
		e->more = set;
	}
	*ret = e;
	return mql_expr_fold(q, e);
}

static enum status
read_index(struct mql *q, const char *which, const struct bson_value *v, int64_t *ret)
{
	int32_t n;

	if (!mql_expr_int32(v, &n))
		return mql_fail(
			q, 9711600,
			"$indexOfArray requires an integral %s index, found a value of type: "
			"%s, with value: %s",
			which, mql_expr_type(v),
			mql_is_missing(v) ? "missing" : mql_text(q, STR(""), v));
	if (n < 0)
		return mql_fail(q, 9711601,
				"$indexOfArray requires a nonnegative %s index, found: %d", which,
				n);
	*ret = n;
	return STATUS_OK;
}

static enum status
run_index_of(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	int64_t from = 0, to = INT64_MAX, at;

	if (mql_gives_null(&args[0], ret))
		return STATUS_OK;
	if (args[0].type != BSON_ARRAY)
		return mql_fail(q, 40090,
				"$indexOfArray requires an array as a first argument, found: %s",
				mql_expr_type(&args[0]));
	if (count > 2)
		TRY(read_index(q, "starting", &args[2], &from));
	if (count > 3)
		TRY(read_index(q, "ending", &args[3], &to));
	TRY(find_value(q, &args[0], &args[1], from, to, &at));
	*ret = BSON_OF_INT32(at);
	return STATUS_OK;
}

/* ---- Arrays of arrays ---- */

static enum status
run_concat(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	struct bson_value *values;
	size_t total = 0, n = 0;
	struct bson_iter in;
	struct bson_element e;

	for (size_t i = 0; i < count; i++) {
		if (mql_gives_null(&args[i], ret))
			return STATUS_OK;
		if (args[i].type != BSON_ARRAY)
			return mql_fail(q, 28664, "$concatArrays only supports arrays, not %s",
					mql_expr_type(&args[i]));
		TRY(step_count_bytes(bson_text(&args[i]).len));
		total += bson_count(bson_text(&args[i]));
	}
	values = arena_alloc(q->arena, total * sizeof(*values));
	if (!values)
		return mql_full(q);
	for (size_t i = 0; i < count; i++) {
		for (bson_iter_begin(&in, bson_text(&args[i]));
		     n < total && bson_iter_read(&in, &e);)
			values[n++] = e.value;
	}
	return mql_expr_array(q, values, n, ret);
}

static enum status
run_reverse(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	struct bson_value *values;

	if (mql_gives_null(&args[0], ret))
		return STATUS_OK;
	if (args[0].type != BSON_ARRAY)
		return mql_fail(
			q, 34435,
			"The argument to $reverseArray must be an array, but was of type: %s",
			mql_expr_type(&args[0]));
	TRY(mql_expr_values(q, &args[0], &values, &count));
	for (size_t i = 0; i < count / 2; i++) {
		struct bson_value swap = values[i];

		values[i] = values[count - 1 - i];
		values[count - 1 - i] = swap;
	}
	return mql_expr_array(q, values, count, ret);
}

/* ---- $slice ---- */

static enum status
slice_number(struct mql *q, const char *which, int code, const struct bson_value *v, int64_t *ret)
{
	int32_t n;

	if (!bson_is_number(v))
		return mql_fail(q, code,
				"%s argument to $slice must be numeric, but is of type: %s", which,
				mql_expr_type(v));
	if (!mql_expr_int32(v, &n))
		return mql_fail(q, code + 1,
				"%s argument to $slice can't be represented as a 32-bit integer: "
				"%s",
				which, mql_text(q, STR(""), v));
	*ret = n;
	return STATUS_OK;
}

static enum status
run_slice(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	struct bson_value *values;
	size_t length;
	int64_t from, most, size;

	for (size_t i = 0; i < count; i++) {
		if (mql_gives_null(&args[i], ret))
			return STATUS_OK;
	}
	if (args[0].type != BSON_ARRAY)
		return mql_fail(q, 28724,
				"First argument to $slice must be an array, but is of type: %s",
				mql_expr_type(&args[0]));
	TRY(slice_number(q, "Second", 28725, &args[1], &from));
	TRY(mql_expr_values(q, &args[0], &values, &length));
	size = (int64_t)length;
	if (count == 3) {
		TRY(slice_number(q, "Third", 28727, &args[2], &most));
		if (most <= 0)
			return mql_fail(q, 28729, "Third argument to $slice must be positive: %lld",
					(long long)most);
		from = from < 0 ? (from + size < 0 ? 0 : from + size) : from;
	} else {
		most = from < 0 ? -from : from;
		from = from < 0 ? size - most : 0;
		from = from < 0 ? 0 : from;
	}
	from = from > size ? size : from;
	most = most > size - from ? size - from : most;
	return mql_expr_array(q, values + from, (size_t)most, ret);
}

/* ---- $range ---- */

static enum status
range_number(struct mql *q, const char *what, int code, const struct bson_value *v, int64_t *ret)
{
	int32_t n;

	if (!bson_is_number(v))
		return mql_fail(q, code,
				"$range requires a numeric %s value, found value of type: %s", what,
				mql_expr_type(v));
	if (!mql_expr_int32(v, &n))
		return mql_fail(q, code + 1,
				"$range requires a %s value that can be represented as a 32-bit "
				"integer, found value: %s",
				what, mql_text(q, STR(""), v));
	*ret = n;
	return STATUS_OK;
}

static enum status
run_range(struct mql *q, const struct bson_value *args, size_t count, struct bson_value *ret)
{
	struct bson_value *values;
	int64_t from, to, step = 1, n = 0;

	TRY(range_number(q, "starting", 34443, &args[0], &from));
	TRY(range_number(q, "ending", 34445, &args[1], &to));
	if (count == 3) {
		TRY(range_number(q, "step", 34447, &args[2], &step));
		if (!step)
			return mql_fail(q, 34449, "$range requires a non-zero step value");
	}
	if (step > 0 ? to > from : to < from)
		n = ((to - from) + step + (step > 0 ? -1 : 1)) / step;
	values = arena_alloc(q->arena, (size_t)n * sizeof(*values));
	if (!values)
		return mql_full(q);
	for (int64_t i = 0; i < n; i++) {
		TRY(step_count(1));
		values[i] = BSON_OF_INT32(from + i * step);
	}
	return mql_expr_array(q, values, (size_t)n, ret);
}

/* ---- $firstN, $lastN, $maxN, $minN ---- */

enum picking {
	PICK_FIRST,
	PICK_LAST,
	PICK_MAX,
	PICK_MIN,
};

static int
compare_values(const void *a, const void *b, const void *q)
{
	return mql_expr_compare(q, a, b);
}

static enum status
fault_pick(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault, struct str name,
	   const struct bson_value *arg)
{
	if (fault == MQL_FAULT_NOT_OBJECT)
		return mql_fail(q, 5787900, "specification must be an object; found %s: %s",
				op->name, mql_text(q, STR(""), arg));
	if (fault == MQL_FAULT_UNKNOWN)
		return mql_fail(q, 5787901, "Unknown argument for 'n' operator: %.*s",
				STR_ARG(name));
	return mql_fail(q, mql_is(name, "n") ? 5787906 : 5787907, "Missing value for '%.*s'",
			STR_ARG(name));
}

/* Sorts what is not null; the least come first, or the greatest. */
static enum status
pick_sorted(struct mql *q, bool greatest, struct bson_value *values, size_t *count)
{
	const void **order = arena_alloc(q->arena, *count * sizeof(*order));
	struct bson_value *sorted = arena_alloc(q->arena, *count * sizeof(*sorted));
	size_t n = 0;

	if (!order || !sorted)
		return mql_full(q);
	for (size_t i = 0; i < *count; i++) {
		if (!mql_is_nullish(&values[i]))
			order[n++] = &values[i];
	}
	TRY(mql_sort(q, order, n, compare_values, q));
	for (size_t i = 0; i < n; i++)
		sorted[i] = *(const struct bson_value *)order[greatest ? n - 1 - i : i];
	if (n)
		memcpy(values, sorted, n * sizeof(*values));
	*count = n;
	return STATUS_OK;
}

static enum status
run_pick(struct mql *q, const struct mql_expr_op *op, const struct bson_value *args, size_t count,
	 struct bson_value *ret)
{
	enum picking how = (enum picking)op->number;
	struct bson_value *values;
	int64_t n;

	if (!bson_is_number(&args[0]) || !bson_to_int64(&args[0], &n) || n <= 0)
		return mql_fail(
			q, 7548606, "Value for 'n' must be a positive integer, but found %s",
			mql_is_missing(&args[0]) ? "missing" : mql_text(q, STR(""), &args[0]));
	if (args[1].type != BSON_ARRAY)
		return mql_fail(q, 5788200, "Input must be an array");
	TRY(mql_expr_values(q, &args[1], &values, &count));
	if (how == PICK_MAX || how == PICK_MIN)
		TRY(pick_sorted(q, how == PICK_MAX, values, &count));
	if (n > (int64_t)count)
		n = (int64_t)count;
	return mql_expr_array(q, how == PICK_LAST ? values + count - n : values, (size_t)n, ret);
}

/* ---- $sortArray ---- */

struct sort_path {
	struct str path;
	bool descending;
};

struct sorting {
	const struct mql *q;
	const struct sort_path *paths; /* NULL: by the values themselves */
	size_t count;
	bool descending;
};

struct sorted {
	struct bson_value value;
	struct bson_value *keys;
};

static int
compare_sorted(const void *a, const void *b, const void *arg)
{
	const struct sorting *s = arg;
	const struct sorted *x = a, *y = b;
	int order = 0;

	for (size_t i = 0; i < s->count && !order; i++) {
		order = mql_expr_compare(s->q, &x->keys[i], &y->keys[i]);
		if (s->paths[i].descending)
			order = -order;
	}
	if (s->paths)
		return order;
	order = mql_expr_compare(s->q, &x->value, &y->value);
	return s->descending ? -order : order;
}

/* What is at the paths: arrays as a whole, null where there is nothing. */
static enum status
sort_keys(struct mql *q, const struct sorting *s, struct sorted *ret)
{
	ret->keys = arena_alloc(q->arena, s->count * sizeof(*ret->keys));
	if (!ret->keys)
		return mql_full(q);
	for (size_t i = 0; i < s->count; i++) {
		TRY(step_count_bytes(ret->value.type == BSON_DOCUMENT ? bson_text(&ret->value).len
								      : 0));
		if (ret->value.type != BSON_DOCUMENT ||
		    !bson_find_path(bson_text(&ret->value), s->paths[i].path, &ret->keys[i]))
			ret->keys[i] = BSON_OF_NULL;
	}
	return STATUS_OK;
}

static enum status
run_sort(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	struct sorting s = *(const struct sorting *)e->more;
	struct bson_value v, *values;
	const void **order;
	struct sorted *all;
	size_t count;

	TRY(mql_expr_run(e->args[0], q, env, &v));
	if (mql_gives_null(&v, ret))
		return STATUS_OK;
	if (v.type != BSON_ARRAY)
		return mql_fail(q, 2942504,
				"The input argument to $sortArray must be an array, but was of "
				"type: %s",
				mql_expr_type(&v));
	TRY(mql_expr_values(q, &v, &values, &count));
	all = arena_alloc(q->arena, count * sizeof(*all));
	order = arena_alloc(q->arena, count * sizeof(*order));
	if (!all || !order)
		return mql_full(q);
	s.q = q;
	for (size_t i = 0; i < count; i++) {
		all[i].value = values[i];
		order[i] = &all[i];
		TRY(sort_keys(q, &s, &all[i]));
	}
	TRY(mql_sort(q, order, count, compare_sorted, &s));
	for (size_t i = 0; i < count; i++)
		values[i] = ((const struct sorted *)order[i])->value;
	return mql_expr_array(q, values, count, ret);
}

static bool
is_direction(const struct bson_value *v, int64_t *ret)
{
	return bson_is_number(v) && bson_to_int64(v, ret) && (*ret == 1 || *ret == -1);
}

static enum status
compile_sort_by(struct mql *q, const struct bson_value *v, struct sorting *s)
{
	struct sort_path *paths;
	struct bson_iter i;
	struct bson_element e;
	int64_t direction;

	if (bson_is_number(v)) {
		if (!is_direction(v, &direction))
			return mql_fail(q, 2942506,
					"The $sort element value must be either 1 or -1");
		s->descending = direction < 0;
		return STATUS_OK;
	}
	if (v->type != BSON_DOCUMENT)
		return mql_fail(q, 2942507,
				"The $sort is invalid: use 1/-1 to sort the whole element, or "
				"{field:1/-1} to sort embedded fields");
	if (bson_is_empty(bson_text(v)))
		return mql_fail(q, 2942505,
				"The $sort pattern is empty when it should be a set of fields.");
	paths = arena_alloc(q->arena, bson_count(bson_text(v)) * sizeof(*paths));
	if (!paths)
		return mql_full(q);
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		if (!is_direction(&e.value, &direction))
			return mql_fail(q, 2942505,
					"The $sort element value must be either 1 or -1");
		paths[s->count++] = (struct sort_path){ e.name, direction < 0 };
	}
	s->paths = paths;
	return STATUS_OK;
}

static enum status
fault_sort(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault, struct str name,
	   const struct bson_value *arg)
{
	if (fault == MQL_FAULT_NOT_OBJECT)
		return mql_fail(q, 2942500, "%s requires an object as an argument, found: %s",
				op->name, mql_expr_type(arg));
	if (fault == MQL_FAULT_UNKNOWN)
		return mql_fail(q, 2942501, "%s found an unknown argument: %.*s", op->name,
				STR_ARG(name));
	return mql_fail(q, mql_is(name, "input") ? 2942502 : 2942503,
			"%s requires '%.*s' to be specified", op->name, STR_ARG(name));
}

static enum status
compile_sort(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	     const struct mql_scope *scope, struct mql_expr **ret)
{
	struct sorting *s = arena_zalloc(q->arena, sizeof(*s));
	struct bson_value parts[2];

	if (!s)
		return mql_full(q);
	TRY(mql_expr_named(q, op, arg, parts));
	TRY(mql_expr_new(q, op, run_sort, 1, ret));
	(*ret)->more = s;
	TRY(compile_sort_by(q, &parts[1], s));
	TRY(mql_expr_compile(q, &parts[0], scope, &(*ret)->args[0]));
	return mql_expr_fold(q, *ret);
}

/* ---- $zip ---- */

struct zip {
	bool longest;
	size_t inputs; /* the first of the arguments; the others are defaults, or none */
};

static enum status
run_zip(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	const struct zip *z = e->more;
	struct bson_value *row = arena_alloc(q->arena, z->inputs * sizeof(*row));
	struct bson_value **columns = arena_alloc(q->arena, z->inputs * sizeof(*columns));
	size_t *counts = arena_alloc(q->arena, z->inputs * sizeof(*counts)), rows = 0;
	struct bson_value *args = arena_alloc(q->arena, e->count * sizeof(*args)), *all;

	if (!row || !columns || !counts || !args)
		return mql_full(q);
	TRY(mql_expr_run_args(e, q, env, args));
	for (size_t i = 0; i < z->inputs; i++) {
		if (mql_gives_null(&args[i], ret))
			return STATUS_OK;
		if (args[i].type != BSON_ARRAY)
			return mql_fail(q, 34468, "$zip found a non-array expression in input: %s",
					mql_text(q, STR(""), &args[i]));
		TRY(mql_expr_values(q, &args[i], &columns[i], &counts[i]));
		if (!i || (z->longest ? counts[i] > rows : counts[i] < rows))
			rows = counts[i];
	}
	all = arena_alloc(q->arena, rows * sizeof(*all));
	if (!all)
		return mql_full(q);
	for (size_t r = 0; r < rows; r++) {
		for (size_t i = 0; i < z->inputs; i++)
			row[i] = r < counts[i]          ? columns[i][r]
				 : e->count > z->inputs ? args[z->inputs + i]
							: BSON_OF_NULL;
		TRY(mql_expr_array(q, row, z->inputs, &all[r]));
	}
	return mql_expr_array(q, all, rows, ret);
}

static enum status
fault_zip(struct mql *q, const struct mql_expr_op *op, enum mql_expr_fault fault, struct str name,
	  const struct bson_value *arg)
{
	if (fault == MQL_FAULT_NOT_OBJECT)
		return mql_fail(q, 34460, "%s only supports an object as an argument, found %s",
				op->name, mql_expr_type(arg));
	if (fault == MQL_FAULT_UNKNOWN)
		return mql_fail(q, 34464, "%s found an unknown argument: %.*s", op->name,
				STR_ARG(name));
	return mql_fail(q, 34465, "%s requires at least one input array", op->name);
}

static enum status
zip_check(struct mql *q, const struct bson_value parts[3], struct zip *z, size_t *ret_defaults)
{
	const struct bson_value *inputs = &parts[0], *defaults = &parts[1], *longest = &parts[2];

	if (!mql_is_missing(inputs) && inputs->type != BSON_ARRAY)
		return mql_fail(q, 34461, "inputs must be an array of expressions, found %s",
				mql_expr_type(inputs));
	if (!mql_is_missing(defaults) && defaults->type != BSON_ARRAY)
		return mql_fail(q, 34462, "defaults must be an array of expressions, found %s",
				mql_expr_type(defaults));
	if (!mql_is_missing(longest) && longest->type != BSON_BOOL)
		return mql_fail(q, 34463, "useLongestLength must be a bool, found %s",
				mql_expr_type(longest));
	z->inputs = mql_is_missing(inputs) ? 0 : bson_count(bson_text(inputs));
	z->longest = longest->type == BSON_BOOL && bson_truth(longest);
	*ret_defaults = mql_is_missing(defaults) ? 0 : bson_count(bson_text(defaults));
	if (!z->inputs)
		return mql_fail(q, 34465, "$zip requires at least one input array");
	if (*ret_defaults && !z->longest)
		return mql_fail(q, 34466,
				"cannot specify defaults unless useLongestLength is true");
	if (*ret_defaults && *ret_defaults != z->inputs)
		return mql_fail(q, 34467, "defaults and inputs must have the same length");
	return STATUS_OK;
}

static enum status
compile_zip(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	    const struct mql_scope *scope, struct mql_expr **ret)
{
	struct zip *z = arena_zalloc(q->arena, sizeof(*z));
	struct bson_value parts[3];
	struct bson_iter i;
	struct bson_element e;
	size_t defaults, n = 0;

	if (!z)
		return mql_full(q);
	TRY(mql_expr_named(q, op, arg, parts));
	TRY(zip_check(q, parts, z, &defaults));
	TRY(mql_expr_new(q, op, run_zip, z->inputs + defaults, ret));
	(*ret)->more = z;
	for (bson_iter_begin(&i, bson_text(&parts[0])); bson_iter_read(&i, &e);)
		TRY(mql_expr_compile(q, &e.value, scope, &(*ret)->args[n++]));
	if (defaults)
		bson_iter_begin(&i, bson_text(&parts[1]));
	for (; defaults && bson_iter_read(&i, &e); defaults--)
		TRY(mql_expr_compile(q, &e.value, scope, &(*ret)->args[n++]));
	return mql_expr_fold(q, *ret);
}

static const char *const zip_names[] = { "inputs", "defaults", "useLongestLength", NULL };
static const char *const sort_names[] = { "input", "sortBy", NULL };
static const char *const pick_names[] = { "n", "input", NULL };

#define PICK(text, which)                                                                          \
	{                                                                                          \
		.name = (text), .names = pick_names, .required = 3, .fault = fault_pick,           \
		.run_op = run_pick, .number = (which)                                              \
	}

const struct mql_expr_op mql_expr_array_ops[] = {
	{ .name = "$arrayElemAt", .least = 2, .most = 2, .run = run_element_at },
	{ .name = "$concatArrays", .most = -1, .run = run_concat },
	{ .name = "$first", .least = 1, .most = 1, .run_op = run_end, .number = 0 },
	PICK("$firstN", PICK_FIRST),
	{ .name = "$in", .least = 2, .most = 2, .compile = compile_in },
	{ .name = "$indexOfArray", .least = 2, .most = 4, .run = run_index_of },
	{ .name = "$isArray", .least = 1, .most = 1, .run = run_is_array },
	{ .name = "$last", .least = 1, .most = 1, .run_op = run_end, .number = -1 },
	PICK("$lastN", PICK_LAST),
	PICK("$maxN", PICK_MAX),
	PICK("$minN", PICK_MIN),
	{ .name = "$range", .least = 2, .most = 3, .run = run_range },
	{ .name = "$reverseArray", .least = 1, .most = 1, .run = run_reverse },
	{ .name = "$size", .least = 1, .most = 1, .run = run_size },
	{ .name = "$slice", .least = 2, .most = 3, .run = run_slice },
	{ .name = "$sortArray",
	  .names = sort_names,
	  .required = 3,
	  .fault = fault_sort,
	  .compile = compile_sort },
	{ .name = "$zip", .names = zip_names, .fault = fault_zip, .compile = compile_zip },
	{ 0 },
};
