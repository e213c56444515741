/*
 * `min` and `max` of a find: a range of the index that its hint names, from one list of values of
 * all columns to another one, in the order of the index.
 */
#include "door/mongo/index/index.h"
#include "door/mongo/plan/plan_int.h"

enum {
	/* MongoDB's numbers. */
	BETWEEN_NO_HINT = 51173,
	BETWEEN_OTHER_KEY = 51174,
	BETWEEN_OTHER_NAMES = 51176,
};

static bool
same_names(struct str a, struct str b)
{
	struct bson_element left, right;
	struct bson_iter i, k;

	if (bson_count(a) != bson_count(b))
		return false;
	bson_iter_begin(&i, a);
	bson_iter_begin(&k, b);
	while (bson_iter_read(&i, &left) && bson_iter_read(&k, &right))
		if (!str_eq(left.name, right.name))
			return false;
	return true;
}

enum status
plan_between_check(struct call *c, const struct plan_ask *ask, struct str key, bool foreign)
{
	const struct bson_value *bounds[] = { ask->min, ask->max };

	if (!ask->hint)
		return call_fail(c, BETWEEN_NO_HINT,
				 "When using min()/max() a hint of which index to use must be "
				 "provided");
	if (ask->min && ask->max && !same_names(bson_text(ask->min), bson_text(ask->max)))
		return call_fail(c, BETWEEN_OTHER_NAMES,
				 "min and max must have the same field names");
	for (size_t i = 0; i < 2; i++)
		if (bounds[i] && (!same_names(bson_text(bounds[i]), key) ||
				  (foreign && plan_has_text(bounds[i]))))
			return call_fail(c, BETWEEN_OTHER_KEY,
					 "The index chosen is not compatible with min/max");
	return STATUS_OK;
}

enum status
plan_between_fail_order(struct call *c)
{
	return call_fail(c, MONGO_RANGE_NO_ORDER,
			 "The value provided for min() does not come before the value provided for "
			 "max()");
}

/* The first key of entries with these values. */
static enum status
between_key(struct call *c, const struct choosing *x, const struct index_def *def,
	    const struct bson_value *bound, struct str *ret)
{
	struct bson_value values[INDEX_COLUMNS];
	const void *equal[INDEX_COLUMNS];
	struct index_interval interval = { .equal = equal };
	struct index_work w = { .arena = x->q->arena };
	struct index_range range;
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, bson_text(bound)); bson_iter_read(&i, &e);) {
		values[interval.equal_count] = e.value;
		equal[interval.equal_count] = &values[interval.equal_count];
		interval.equal_count++;
	}
	TRY(index_range_make(x->p->db, def, &interval, &w, &range));
	if (range.cut)
		return call_fail(c, MONGO_BAD_VALUE,
				 "a value of min() or max() is too long for its part of a key");
	*ret = range.begin;
	return STATUS_OK;
}

enum status
plan_between_make(struct call *c, const struct choosing *x, const struct index_def *def,
		  struct candidate *ret)
{
	const struct index_interval all = { 0 };
	struct index_work w = { .arena = x->q->arena };
	struct index_range *range = arena_alloc(x->q->arena, sizeof(*range));

	if (!range)
		return STATUS_LIMIT;
	TRY(plan_candidate_begin(x, def, ret));
	ret->between = true;
	ret->keys = (struct key_ranges){ .items = range, .count = 1 };
	TRY(plan_between_check(c, x->ask, index_key_of(def), ret->foreign));
	if (def->hashed)
		return call_fail(c, BETWEEN_OTHER_KEY,
				 "The index chosen is not compatible with min/max");
	TRY(index_range_make(x->p->db, def, &all, &w, range));
	if (x->ask->min)
		TRY(between_key(c, x, def, x->ask->min, &range->begin));
	if (x->ask->max)
		TRY(between_key(c, x, def, x->ask->max, &range->end));
	if (x->ask->min && x->ask->max && str_cmp(range->begin, range->end) >= 0)
		return plan_between_fail_order(c);
	ret->min = x->ask->min;
	ret->max = x->ask->max;
	plan_sort_look(x, ret);
	ret->covers = plan_covers(x, ret);
	return STATUS_OK;
}
