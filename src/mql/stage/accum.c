#include "mql/stage/accum.h"

#include <assert.h>
#include <math.h>

#include "mql/stage/accum_script.h"
#include "mql/key_set.h"
#include "mql/mql_int.h"
#include "mql/sort_values.h"
#include "mql/expr/sum.h"

enum accum_op {
	ACCUM_SUM,
	ACCUM_AVG,
	ACCUM_COUNT,
	ACCUM_MIN,
	ACCUM_MAX,
	ACCUM_FIRST,
	ACCUM_LAST,
	ACCUM_PUSH,
	ACCUM_ADD_TO_SET,
	ACCUM_DEV_POP,
	ACCUM_DEV_SAMP,
	ACCUM_MERGE,
	ACCUM_CONCAT,
	ACCUM_UNION,
	/* Of at most `n` values. */
	ACCUM_FIRST_N,
	ACCUM_LAST_N,
	ACCUM_MIN_N,
	ACCUM_MAX_N,
	ACCUM_TOP,
	ACCUM_TOP_N,
	ACCUM_BOTTOM,
	ACCUM_BOTTOM_N,
	ACCUM_MEDIAN,
	ACCUM_PERCENTILE,
	ACCUM_SCRIPT, /* $accumulator, which windows do not have */
};

static const struct {
	const char *name;
	enum accum_op op;
} accum_names[] = {
	{ "$sum", ACCUM_SUM },
	{ "$avg", ACCUM_AVG },
	{ "$count", ACCUM_COUNT },
	{ "$min", ACCUM_MIN },
	{ "$max", ACCUM_MAX },
	{ "$first", ACCUM_FIRST },
	{ "$last", ACCUM_LAST },
	{ "$push", ACCUM_PUSH },
	{ "$addToSet", ACCUM_ADD_TO_SET },
	{ "$stdDevPop", ACCUM_DEV_POP },
	{ "$stdDevSamp", ACCUM_DEV_SAMP },
	{ "$mergeObjects", ACCUM_MERGE },
	{ "$concatArrays", ACCUM_CONCAT },
	{ "$setUnion", ACCUM_UNION },
	{ "$firstN", ACCUM_FIRST_N },
	{ "$lastN", ACCUM_LAST_N },
	{ "$minN", ACCUM_MIN_N },
	{ "$maxN", ACCUM_MAX_N },
	{ "$top", ACCUM_TOP },
	{ "$topN", ACCUM_TOP_N },
	{ "$bottom", ACCUM_BOTTOM },
	{ "$bottomN", ACCUM_BOTTOM_N },
	{ "$median", ACCUM_MEDIAN },
	{ "$percentile", ACCUM_PERCENTILE },
};

struct mql_accumulator {
	enum accum_op op;
	struct str name;
	struct mql_expr *input;
	struct mql_expr *n;
	struct mql_sort_by *by;
	const double *p; /* of $percentile */
	size_t p_count;
	struct mql_accum_script script;
};

/* A value that is kept, in memory that is used again for the next one. */
struct kept {
	struct bson_value value;
	char *memory;
	size_t cap;
};

/* A value, and the array that it is sorted by. */
struct ranked {
	struct kept value;
	struct kept key;
};

struct mql_accumulator_state {
	union {
		struct mql_sum sum;
		int64_t documents; /* $count */
		struct {
			int64_t count;
			double mean, squares;
			bool wrong; /* an infinity or a NaN was among them */
		} dev;
		struct {
			struct kept value;
			bool any;
		} one;
		struct {
			struct bson_value *values;
			size_t count, cap;
			struct mql_key_set set; /* of $addToSet */
		} list;
		struct {
			struct ranked **items;
			size_t count, cap;
			int64_t n;
		} few;
		struct {
			double *values;
			size_t count, cap;
		} numbers;
		struct mql_accum_script_state script;
	};
};

size_t
mql_accumulator_bytes(void)
{
	return sizeof(struct mql_accumulator_state);
}

static bool
find_op(struct str name, enum accum_op *ret)
{
	for (size_t i = 0; i < sizeof(accum_names) / sizeof(accum_names[0]); i++) {
		if (mql_is(name, accum_names[i].name)) {
			*ret = accum_names[i].op;
			return true;
		}
	}
	return false;
}

bool
mql_accumulator_is(struct str name)
{
	enum accum_op op;

	return find_op(name, &op);
}

/* ---- Compiling ---- */

static bool
op_is_ranked(enum accum_op op)
{
	return op >= ACCUM_TOP && op <= ACCUM_BOTTOM_N;
}

/* Sets `*has_method` and `*p` where $percentile, or $median, has these options. */
static enum status
compile_option(struct mql *q, struct mql_accumulator *a, const struct bson_element *e,
	       const struct mql_scope *scope, bool *has_method, struct bson_value *p)
{
	bool ranked = op_is_ranked(a->op);
	bool percent = a->op >= ACCUM_MEDIAN;
	bool one = a->op == ACCUM_TOP || a->op == ACCUM_BOTTOM;

	if (mql_is(e->name, "n") && !one && !percent)
		return mql_expr_compile(q, &e->value, NULL, &a->n);
	if (mql_is(e->name, ranked ? "output" : "input"))
		return mql_expr_compile(q, &e->value, scope, &a->input);
	if (ranked && mql_is(e->name, "sortBy")) {
		if (e->value.type != BSON_DOCUMENT)
			return mql_fail(q, 10065, "invalid parameter: expected an object (sortBy)");
		return mql_sort_by_compile(q, bson_text(&e->value), &a->by);
	}
	if (percent && mql_is(e->name, "method")) {
		*has_method = true;
		return mql_check_percentile_method(q, a->name, &e->value);
	}
	if (a->op == ACCUM_PERCENTILE && mql_is(e->name, "p")) {
		*p = e->value;
		return STATUS_OK;
	}
	return mql_fail(q, percent ? 40415 : 5787901, "Unknown argument for '%.*s' operator: %.*s",
			STR_ARG(a->name), STR_ARG(e->name));
}

static enum status
compile_percentiles(struct mql *q, struct mql_accumulator *a, const struct bson_value *v,
		    const struct mql_scope *scope)
{
	struct bson_value p;
	struct bson_element e;
	struct mql_expr *expr;
	struct bson_iter i;
	double *ps;

	TRY(mql_expr_compile(q, v, scope, &expr));
	if (!mql_expr_constant(expr, &p) || p.type != BSON_ARRAY || bson_is_empty(bson_text(&p)))
		return mql_fail(q, 7750301,
				"The $percentile 'p' field must be an array of constant values, "
				"but found value: %s.",
				mql_text(q, STR(""), v));
	ps = arena_alloc(q->arena, bson_count(bson_text(&p)) * sizeof(*ps));
	if (!ps)
		return mql_full(q);
	for (bson_iter_begin(&i, bson_text(&p)); bson_iter_read(&i, &e);) {
		double d = bson_to_double(&e.value);

		if (!(d >= 0 && d <= 1))
			return mql_fail(q, 7750303,
					"The $percentile 'p' field must be an array of numbers "
					"from [0.0, 1.0], but found: %s",
					mql_text(q, STR(""), &e.value));
		ps[a->p_count++] = d;
	}
	a->p = ps;
	return STATUS_OK;
}

static enum status
compile_options(struct mql *q, struct mql_accumulator *a, const struct bson_value *v,
		const struct mql_scope *scope)
{
	bool ranked = op_is_ranked(a->op), percent = a->op >= ACCUM_MEDIAN;
	bool one = a->op == ACCUM_TOP || a->op == ACCUM_BOTTOM, has_method = false;
	struct bson_value p = MQL_NO_VALUE;
	struct bson_element e;
	struct bson_iter i;

	if (v->type != BSON_DOCUMENT)
		return mql_fail(q,
				percent  ? 7436100
				: ranked ? 5788001
					 : 5787900,
				"specification must be an object; found %s",
				mql_text(q, a->name, v));
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		TRY(compile_option(q, a, &e, scope, &has_method, &p));
	if (!a->n && !one && !percent)
		return mql_fail(q, ranked ? 5788003 : 5787906, "Missing value for 'n'");
	if (!a->input)
		return mql_fail(q,
				percent  ? 40414
				: ranked ? 5788004
					 : 5787907,
				"Missing value for '%s'", ranked ? "output" : "input");
	if (ranked && !a->by)
		return mql_fail(q, 5788005, "Missing value for 'sortBy'");
	if (percent && (!has_method || (a->op == ACCUM_PERCENTILE && mql_is_missing(&p))))
		return mql_fail(q, 40414, "BSON field '%.*s.%s' is missing but a required field",
				STR_ARG(a->name), has_method ? "p" : "method");
	return a->op == ACCUM_PERCENTILE ? compile_percentiles(q, a, &p, scope) : STATUS_OK;
}

static enum status
compile_argument(struct mql *q, struct mql_accumulator *a, const struct bson_value *v,
		 const struct mql_scope *scope)
{
	struct bson_value only;

	if (a->op >= ACCUM_FIRST_N)
		return compile_options(q, a, v, scope);
	if (a->op == ACCUM_COUNT) {
		if (v->type != BSON_DOCUMENT || !bson_is_empty(bson_text(v)))
			return mql_fail(q, MQL_TYPE_MISMATCH,
					"$count takes no arguments, i.e. $count:{}");
		return STATUS_OK;
	}
	if (v->type == BSON_ARRAY) {
		if (bson_count(bson_text(v)) != 1 || !bson_find(bson_text(v), STR("0"), &only))
			return mql_fail(q, 40237, "The %.*s accumulator is a unary operator",
					STR_ARG(a->name));
		return mql_expr_compile(q, &only, scope, &a->input);
	}
	return mql_expr_compile(q, v, scope, &a->input);
}

enum status
mql_accumulator_compile(struct mql *q, struct str field, const struct bson_value *spec,
			const struct mql_scope *scope, struct mql_accumulator **ret)
{
	struct mql_accumulator *a = arena_zalloc(q->arena, sizeof(*a));
	struct bson_element e;
	struct bson_iter i;

	if (!a)
		return mql_full(q);
	if (spec->type != BSON_DOCUMENT)
		return mql_fail(q, 40234, "The field '%.*s' must be an accumulator object",
				STR_ARG(field));
	bson_iter_begin(&i, bson_text(spec));
	if (!bson_iter_read(&i, &e) || !e.name.len || e.name.ptr[0] != '$')
		return mql_fail(q, 40234, "The field '%.*s' must be an accumulator object",
				STR_ARG(field));
	if (bson_count(bson_text(spec)) != 1)
		return mql_fail(q, 40238, "The field '%.*s' must specify one accumulator",
				STR_ARG(field));
	a->name = e.name;
	if (mql_is(e.name, "$accumulator")) {
		a->op = ACCUM_SCRIPT;
		*ret = a;
		TRY(mql_accum_script_compile(q, &e.value, scope, &a->script));
		a->input = a->script.args;
		return STATUS_OK;
	}
	if (!find_op(e.name, &a->op))
		return mql_fail(q, 15952, "unknown group operator '%.*s'", STR_ARG(e.name));
	TRY(compile_argument(q, a, &e.value, scope));
	*ret = a;
	return STATUS_OK;
}

/* ---- Values that are kept ---- */

static bool
has_text(const struct bson_value *v)
{
	switch ((int)v->type) {
	case BSON_STRING:
	case BSON_DOCUMENT:
	case BSON_ARRAY:
	case BSON_BINARY:
	case BSON_OBJECT_ID:
	case BSON_REGEX:
	case BSON_DB_POINTER:
	case BSON_CODE:
	case BSON_SYMBOL:
	case BSON_CODE_SCOPE:
		return true;
	default:
		return false;
	}
}

static enum status
keep_value(struct arena *arena, const struct bson_value *v, struct kept *ret)
{
	size_t more = v->type == BSON_REGEX || v->type == BSON_DB_POINTER ||
				      v->type == BSON_CODE_SCOPE
			      ? bson_more(v).len
			      : 0;
	size_t need = has_text(v) ? bson_text(v).len + more : 0;

	TRY(step_count_bytes(need));
	/* What is outgrown stays in the arena: half as much again bounds the sum. */
	if (need > ret->cap) {
		size_t cap = ret->cap ? need + need / 2 : need;

		ret->memory = arena_bytes(arena, cap);
		ret->cap = ret->memory ? cap : 0;
		if (!ret->memory)
			return STATUS_LIMIT;
	}
	ret->value = *v;
	if (!has_text(v))
		return STATUS_OK;
	if (bson_text(v).len)
		memcpy(ret->memory, bson_text(v).ptr, bson_text(v).len);
	ret->value.as_text.ptr = bson_text(v).len ? ret->memory : "";
	if (more) {
		memcpy(ret->memory + bson_text(v).len, bson_more(v).ptr, more);
		ret->value.as_more.ptr = ret->memory + bson_text(v).len;
	}
	return STATUS_OK;
}

enum status
mql_value_keep(struct arena *arena, const struct bson_value *v, struct bson_value *ret)
{
	struct kept kept = { 0 };

	TRY(keep_value(arena, v, &kept));
	*ret = kept.value;
	return STATUS_OK;
}

/* ---- Numbers ---- */

static void
dev_add(struct mql_accumulator_state *s, const struct bson_value *v)
{
	double d = bson_to_double(v), delta;

	if (!bson_is_number(v))
		return;
	s->dev.wrong |= !isfinite(d);
	s->dev.count++;
	delta = d - s->dev.mean;
	s->dev.mean += delta / (double)s->dev.count;
	s->dev.squares += delta * (d - s->dev.mean);
}

static struct bson_value
dev_end(const struct mql_accumulator_state *s, bool samples)
{
	int64_t n = s->dev.count - (samples ? 1 : 0);

	if (n <= 0)
		return BSON_OF_NULL;
	if (s->dev.wrong)
		return BSON_OF_DOUBLE((double)NAN);
	return BSON_OF_DOUBLE(sqrt(s->dev.squares / (double)n));
}

/* ---- Lists ---- */

static enum status
list_push(struct arena *keep, struct mql_accumulator_state *s, const struct bson_value *v)
{
	struct bson_value *values = arena_grow(keep, s->list.values, s->list.count, &s->list.cap,
					       sizeof(*values));
	struct kept kept = { 0 };

	if (!values)
		return STATUS_LIMIT;
	s->list.values = values;
	TRY(keep_value(keep, v, &kept));
	values[s->list.count++] = kept.value;
	return STATUS_OK;
}

static enum status
accum_set_add(struct mql *q, struct arena *keep, struct mql_accumulator_state *s,
	      const struct bson_value *v)
{
	bool added;

	TRY(mql_key_set_add(&s->list.set, q, keep, v, &added));
	return added ? list_push(keep, s, v) : STATUS_OK;
}

static enum status
add_elements(const struct mql_accumulator *a, struct mql *q, struct arena *keep,
	     struct mql_accumulator_state *s, const struct bson_value *v)
{
	struct bson_element e;
	struct bson_iter i;

	if ((int)v->type == MQL_MISSING)
		return STATUS_OK;
	if (v->type != BSON_ARRAY)
		return mql_fail(q, MQL_TYPE_MISMATCH,
				"%.*s requires array inputs, but input is of type %s",
				STR_ARG(a->name), bson_type_name(v->type));
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		TRY(a->op == ACCUM_UNION ? accum_set_add(q, keep, s, &e.value)
					 : list_push(keep, s, &e.value));
	return STATUS_OK;
}

static enum status
list_end(struct mql *q, const struct mql_accumulator_state *s, struct bson_value *ret)
{
	struct buf out = mql_buf(q, BSON_MOST_BYTES);
	struct bson_builder b;

	bson_builder_init(&b, &out);
	bson_begin_outer_array(&b);
	for (size_t i = 0; i < s->list.count; i++) {
		bson_put(&b, STR(""), &s->list.values[i]);
		step_pause(1);
	}
	bson_end(&b);
	*ret = BSON_OF_ARRAY(BSON_EMPTY);
	return mql_keep(q, &out, &ret->as_text);
}

/* ---- $mergeObjects ---- */

static enum status
merge_add(struct mql *q, struct arena *keep, struct mql_accumulator_state *s,
	  const struct bson_value *v)
{
	struct bson_value merged;
	struct str old = s->one.any ? bson_text(&s->one.value.value) : BSON_EMPTY;

	if (mql_is_nullish(v))
		return STATUS_OK;
	if (v->type != BSON_DOCUMENT)
		return mql_fail(q, 40400,
				"$mergeObjects requires object inputs, but input %s is of type %s",
				mql_text(q, STR(""), v), bson_type_name(v->type));
	TRY(mql_expr_merge(q, old, bson_text(v), &merged));
	s->one.any = true;
	/* `merged` is made in the arena of the run: the memory of `old` is free to be written. */
	assert(!bson_text(&merged).len || bson_text(&merged).ptr != s->one.value.memory);
	return keep_value(keep, &merged, &s->one.value);
}

/* ---- A few of many ---- */

/* Less than 0 if `a` goes in front of `b` in the order that is kept. */
static int
ranked_compare(const struct mql_accumulator *a, const struct mql *q, const struct ranked *left,
	       const struct ranked *right)
{
	struct bson_iter l, r;
	struct bson_element x, y;
	int order = 0;

	if (a->op == ACCUM_MIN_N || a->op == ACCUM_MAX_N) {
		order = bson_compare_values(&left->value.value, &right->value.value, q->texts);
		return a->op == ACCUM_MIN_N ? order : -order;
	}
	bson_iter_begin(&l, bson_text(&left->key.value));
	bson_iter_begin(&r, bson_text(&right->key.value));
	for (size_t i = 0; !order && bson_iter_read(&l, &x) && bson_iter_read(&r, &y); i++) {
		bool descending;

		mql_sort_by_path(a->by, i, &descending);
		order = bson_compare_values(&x.value, &y.value, q->texts);
		order = descending ? -order : order;
	}
	return order;
}

/* The key of the document, as an array. */
static enum status
ranked_key(const struct mql_accumulator *a, struct mql *q, struct str doc, struct bson_value *ret)
{
	struct buf out = mql_buf(q, BSON_MOST_BYTES);
	struct mql_sort_key *key;
	struct bson_builder b;

	TRY(mql_sort_key_of(a->by, q, doc, &key));
	bson_builder_init(&b, &out);
	bson_begin_outer_array(&b);
	for (size_t i = 0; i < mql_sort_by_count(a->by); i++)
		bson_put(&b, STR(""), mql_sort_key_value(key, i));
	bson_end(&b);
	*ret = BSON_OF_ARRAY(BSON_EMPTY);
	return mql_keep(q, &out, &ret->as_text);
}

/* Where a new one goes: behind all that are equal, so the first ones stay. */
static enum status
few_place(const struct mql_accumulator *a, struct mql *q, const struct mql_accumulator_state *s,
	  const struct ranked *item, size_t *ret)
{
	size_t from = 0, to = s->few.count;

	if (a->op == ACCUM_FIRST_N || a->op == ACCUM_LAST_N)
		from = to;
	while (from < to) {
		size_t middle = from + (to - from) / 2;

		TRY(step_count(1));
		if (ranked_compare(a, q, item, s->few.items[middle]) < 0)
			to = middle;
		else
			from = middle + 1;
	}
	*ret = from;
	return STATUS_OK;
}

static enum status
few_insert(const struct mql_accumulator *a, struct arena *keep, struct mql_accumulator_state *s,
	   const struct ranked *item, size_t at)
{
	bool last = a->op == ACCUM_LAST_N || a->op == ACCUM_BOTTOM || a->op == ACCUM_BOTTOM_N;
	struct ranked *slot;
	size_t moved;

	assert(s->few.n > 0 && (uint64_t)s->few.n >= s->few.count && at <= s->few.count);
	if ((uint64_t)s->few.n == s->few.count) {
		/* Full: the one at the end that does not count goes, and its memory is used. */
		if (last ? !at : at == s->few.count)
			return STATUS_OK;
		slot = s->few.items[last ? 0 : s->few.count - 1];
		if (last) {
			memmove(s->few.items, s->few.items + 1,
				(s->few.count - 1) * sizeof(struct ranked *));
			at--;
		}
		s->few.count--;
	} else {
		struct ranked **items = arena_grow(keep, s->few.items, s->few.count, &s->few.cap,
						   sizeof(struct ranked *));

		if (!items)
			return STATUS_LIMIT;
		s->few.items = items;
		slot = arena_zalloc(keep, sizeof(*slot));
		if (!slot)
			return STATUS_LIMIT;
	}
	moved = s->few.count - at;
	memmove(s->few.items + at + 1, s->few.items + at, moved * sizeof(struct ranked *));
	s->few.items[at] = slot;
	s->few.count++;
	TRY(keep_value(keep, &item->value.value, &slot->value));
	TRY(keep_value(keep, &item->key.value, &slot->key));
	return step_count((uint32_t)(moved / 64));
}

static enum status
few_add(const struct mql_accumulator *a, struct mql *q, const struct bson_value *key,
	struct arena *keep, struct mql_accumulator_state *s, const struct bson_value *v)
{
	struct ranked item = { .value = { .value = *v }, .key = { .value = *key } };
	size_t at;

	if (a->op == ACCUM_FIRST_N && (uint64_t)s->few.n == s->few.count)
		return STATUS_OK;
	if ((a->op == ACCUM_MIN_N || a->op == ACCUM_MAX_N) && mql_is_nullish(v))
		return STATUS_OK;
	if ((int)v->type == MQL_MISSING)
		item.value.value = BSON_OF_NULL;
	TRY(few_place(a, q, s, &item, &at));
	return few_insert(a, keep, s, &item, at);
}

static enum status
few_end(const struct mql_accumulator *a, struct mql *q, const struct mql_accumulator_state *s,
	struct bson_value *ret)
{
	struct buf out = mql_buf(q, BSON_MOST_BYTES);
	struct bson_builder b;

	if (a->op == ACCUM_TOP || a->op == ACCUM_BOTTOM) {
		*ret = s->few.count ? s->few.items[0]->value.value : BSON_OF_NULL;
		return STATUS_OK;
	}
	bson_builder_init(&b, &out);
	bson_begin_outer_array(&b);
	for (size_t i = 0; i < s->few.count; i++) {
		bson_put(&b, STR(""), &s->few.items[i]->value.value);
		step_pause(1);
	}
	bson_end(&b);
	*ret = BSON_OF_ARRAY(BSON_EMPTY);
	return mql_keep(q, &out, &ret->as_text);
}

/* ---- $median, $percentile ---- */

static enum status
numbers_add(struct arena *keep, struct mql_accumulator_state *s, const struct bson_value *v)
{
	double *values, d = bson_to_double(v);

	/* As what is no number is. */
	if (isnan(d))
		return STATUS_OK;
	values = arena_grow(keep, s->numbers.values, s->numbers.count, &s->numbers.cap,
			    sizeof(*values));
	if (!values)
		return STATUS_LIMIT;
	s->numbers.values = values;
	values[s->numbers.count++] = d;
	return STATUS_OK;
}

static int
compare_doubles(const void *a, const void *b, const void *arg)
{
	double left = *(const double *)a, right = *(const double *)b;

	(void)arg;
	return (left > right) - (left < right);
}

static struct bson_value
percentile_of(const double **sorted, size_t count, double p)
{
	double rank = ceil(p * (double)count);
	size_t at = rank < 1 ? 0 : (size_t)rank - 1;

	assert(p >= 0 && p <= 1);
	/* p times the count may be rounded up beyond the count. */
	return count ? BSON_OF_DOUBLE(*sorted[at < count ? at : count - 1]) : BSON_OF_NULL;
}

static enum status
numbers_end(const struct mql_accumulator *a, struct mql *q, const struct mql_accumulator_state *s,
	    struct bson_value *ret)
{
	const double **sorted = arena_alloc(q->arena, s->numbers.count * sizeof(*sorted) + 1);
	struct buf out = mql_buf(q, BSON_MOST_BYTES);
	struct bson_builder b;

	if (!sorted)
		return mql_full(q);
	for (size_t i = 0; i < s->numbers.count; i++)
		sorted[i] = &s->numbers.values[i];
	TRY(mql_sort(q, (const void **)sorted, s->numbers.count, compare_doubles, NULL));
	if (a->op == ACCUM_MEDIAN) {
		*ret = percentile_of(sorted, s->numbers.count, 0.5);
		return STATUS_OK;
	}
	bson_builder_init(&b, &out);
	bson_begin_outer_array(&b);
	for (size_t i = 0; i < a->p_count; i++) {
		struct bson_value v = percentile_of(sorted, s->numbers.count, a->p[i]);

		bson_put(&b, STR(""), &v);
	}
	bson_end(&b);
	*ret = BSON_OF_ARRAY(BSON_EMPTY);
	return mql_keep(q, &out, &ret->as_text);
}

/* ---- All of them ---- */

enum status
mql_accumulator_begin(const struct mql_accumulator *a, struct mql *q, const struct mql_env *env,
		      struct arena *keep, struct mql_accumulator_state *state)
{
	struct bson_value n;

	memset(state, 0, sizeof(*state));
	if (op_is_ranked(a->op))
		state->few.n = 1;
	if (a->op == ACCUM_SCRIPT)
		return mql_accum_script_begin(&a->script, q, env, keep, &state->script);
	if (!a->n)
		return STATUS_OK;
	TRY(mql_expr_run(a->n, q, env, &n));
	if (!bson_to_int64(&n, &state->few.n))
		return mql_fail(q, 5787902, "Value for 'n' must be of integral type, but found %s",
				(int)n.type == MQL_MISSING ? "missing" : mql_text(q, STR(""), &n));
	if (state->few.n <= 0)
		return mql_fail(q, 5787908, "'n' must be greater than 0, found %lld",
				(long long)state->few.n);
	return STATUS_OK;
}

static enum status
one_add(const struct mql_accumulator *a, struct mql *q, struct arena *keep,
	struct mql_accumulator_state *s, const struct bson_value *v)
{
	bool extreme = a->op == ACCUM_MIN || a->op == ACCUM_MAX;
	struct bson_value value = (int)v->type == MQL_MISSING ? BSON_OF_NULL : *v;
	int order;

	if (a->op == ACCUM_FIRST && s->one.any)
		return STATUS_OK;
	if (extreme && mql_is_nullish(v))
		return STATUS_OK;
	if (extreme && s->one.any) {
		order = bson_compare_values(v, &s->one.value.value, q->texts);
		if (a->op == ACCUM_MIN ? order >= 0 : order <= 0)
			return STATUS_OK;
	}
	s->one.any = true;
	return keep_value(keep, &value, &s->one.value);
}

enum status
mql_accumulator_read(const struct mql_accumulator *a, struct mql *q, const struct mql_env *env,
		     struct bson_value *ret_value, struct bson_value *ret_key)
{
	*ret_value = MQL_NO_VALUE;
	*ret_key = BSON_OF_NULL;
	if (a->input)
		TRY(mql_expr_run(a->input, q, env, ret_value));
	return a->by ? ranked_key(a, q, env->root, ret_key) : STATUS_OK;
}

enum status
mql_accumulator_add(const struct mql_accumulator *a, struct mql *q, const struct mql_env *env,
		    struct arena *keep, struct mql_accumulator_state *s)
{
	struct bson_value v, key;

	TRY(mql_accumulator_read(a, q, env, &v, &key));
	return mql_accumulator_take(a, q, &v, &key, keep, s);
}

enum status
mql_accumulator_take(const struct mql_accumulator *a, struct mql *q, const struct bson_value *v,
		     const struct bson_value *key, struct arena *keep,
		     struct mql_accumulator_state *s)
{
	switch (a->op) {
	case ACCUM_SUM:
	case ACCUM_AVG:
		mql_sum_add(&s->sum, v);
		return STATUS_OK;
	case ACCUM_COUNT:
		s->documents++;
		return STATUS_OK;
	case ACCUM_DEV_POP:
	case ACCUM_DEV_SAMP:
		dev_add(s, v);
		return STATUS_OK;
	case ACCUM_MIN:
	case ACCUM_MAX:
	case ACCUM_FIRST:
	case ACCUM_LAST:
		return one_add(a, q, keep, s, v);
	case ACCUM_PUSH:
		return (int)v->type == MQL_MISSING ? STATUS_OK : list_push(keep, s, v);
	case ACCUM_ADD_TO_SET:
		return (int)v->type == MQL_MISSING ? STATUS_OK : accum_set_add(q, keep, s, v);
	case ACCUM_CONCAT:
	case ACCUM_UNION:
		return add_elements(a, q, keep, s, v);
	case ACCUM_MERGE:
		return merge_add(q, keep, s, v);
	case ACCUM_MEDIAN:
	case ACCUM_PERCENTILE:
		return numbers_add(keep, s, v);
	case ACCUM_SCRIPT:
		return mql_accum_script_take(&a->script, q, v, keep, &s->script);
	case ACCUM_FIRST_N:
	case ACCUM_LAST_N:
	case ACCUM_MIN_N:
	case ACCUM_MAX_N:
	case ACCUM_TOP:
	case ACCUM_TOP_N:
	case ACCUM_BOTTOM:
	case ACCUM_BOTTOM_N:
		break;
	}
	return few_add(a, q, key, keep, s, v);
}

enum status
mql_accumulator_end(const struct mql_accumulator *a, struct mql *q,
		    const struct mql_accumulator_state *s, struct bson_value *ret)
{
	switch (a->op) {
	case ACCUM_SUM:
		*ret = mql_sum_value(&s->sum);
		return STATUS_OK;
	case ACCUM_COUNT:
		*ret = s->documents > INT32_MAX ? BSON_OF_INT64(s->documents)
						: BSON_OF_INT32(s->documents);
		return STATUS_OK;
	case ACCUM_AVG:
		*ret = mql_sum_average(&s->sum);
		return STATUS_OK;
	case ACCUM_DEV_POP:
	case ACCUM_DEV_SAMP:
		*ret = dev_end(s, a->op == ACCUM_DEV_SAMP);
		return STATUS_OK;
	case ACCUM_MIN:
	case ACCUM_MAX:
	case ACCUM_FIRST:
	case ACCUM_LAST:
		*ret = s->one.any ? s->one.value.value : BSON_OF_NULL;
		return STATUS_OK;
	case ACCUM_MERGE:
		*ret = s->one.any ? s->one.value.value : BSON_OF_DOCUMENT(BSON_EMPTY);
		return STATUS_OK;
	case ACCUM_PUSH:
	case ACCUM_ADD_TO_SET:
	case ACCUM_CONCAT:
	case ACCUM_UNION:
		return list_end(q, s, ret);
	case ACCUM_MEDIAN:
	case ACCUM_PERCENTILE:
		return numbers_end(a, q, s, ret);
	case ACCUM_SCRIPT:
		return mql_accum_script_end(&a->script, q, &s->script, ret);
	case ACCUM_FIRST_N:
	case ACCUM_LAST_N:
	case ACCUM_MIN_N:
	case ACCUM_MAX_N:
	case ACCUM_TOP:
	case ACCUM_TOP_N:
	case ACCUM_BOTTOM:
	case ACCUM_BOTTOM_N:
		break;
	}
	return few_end(a, q, s, ret);
}

enum status
mql_accumulator_put(const struct mql_accumulator *a, struct mql *q,
		    const struct mql_accumulator_state *state, struct str name,
		    struct bson_builder *b)
{
	struct bson_value v;

	TRY(mql_accumulator_end(a, q, state, &v));
	if (!mql_is_missing(&v))
		bson_put(b, name, &v);
	return STATUS_OK;
}
