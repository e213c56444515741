/*
 * Whether a walk through an index gives the order that a sort asks for (index/plan/order.h): what
 * is known of its columns.
 */
#include "door/mongo/plan/plan_int.h"
#include "index/plan/order.h"

enum {
	/* Of a value whose range is merged: longer ones may be cut in keys of many columns. */
	PLAN_MERGED_TEXT_BYTES = 64,
};

struct sorting {
	const struct choosing *x;
	const struct candidate *one;
};

/* True if no key cuts the value. */
static bool
point_can_merge(const struct bson_value *v)
{
	switch ((int)v->type) {
	case BSON_NULL:
	case BSON_BOOL:
	case BSON_INT32:
	case BSON_INT64:
	case BSON_DOUBLE:
	case BSON_DECIMAL:
	case BSON_DATE:
	case BSON_TIMESTAMP:
	case BSON_OBJECT_ID:
		return true;
	case BSON_STRING:
	case BSON_SYMBOL:
	case BSON_BINARY:
		return bson_text(v).len <= PLAN_MERGED_TEXT_BYTES;
	default:
		return false;
	}
}

/*
 * True if the ranges of several values of a column can be merged. Values that are cut have ranges
 * in common, and a document with an array may have entries in more than one.
 */
static bool
column_can_merge(const struct sorting *s, size_t column)
{
	const struct candidate *one = s->one;
	const struct value_set *asked = &one->columns[column];

	if (column >= one->points || one->ranges > PLAN_MERGED || one->def->hashed ||
	    s->x->ask->changes || one->arrays || one->cuts & (UINT32_C(1) << column))
		return false;
	for (size_t i = 0; i < asked->count; i++)
		if (!point_can_merge(asked->items[i].low.value))
			return false;
	return true;
}

/*
 * A document with an array is sorted by the array's least element, or by its greatest where the
 * order descends. This is the document's first entry on the walk only if the walk passes all of its
 * entries, so the filter may not bound a column with arrays.
 */
static struct order_column
sorting_look(const void *arg, size_t column)
{
	const struct sorting *s = arg;
	const struct candidate *one = s->one;
	uint32_t bit = UINT32_C(1) << column;
	size_t asked = one->between ? one->def->column_count : one->points + one->bounded;
	bool bounds_arrays = one->arrays & ((UINT64_C(1) << asked) - 1);
	unsigned facts = one->def->columns[column].descending ? ORDER_DESCENDING : 0;

	if (one->def->hashed == column + 1 || (one->arrays & bit && bounds_arrays))
		facts |= ORDER_NONE;
	if (column < one->points)
		facts |= one->columns[column].count == 1 ? ORDER_POINTS | ORDER_FIXED
							 : ORDER_POINTS;
	if (one->cuts & bit)
		facts |= ORDER_CUT;
	if (one->arrays & bit)
		facts |= ORDER_MANY;
	if (column_can_merge(s, column))
		facts |= ORDER_MERGES;
	return (struct order_column){ one->names[column], facts };
}

void
plan_sort_look(const struct choosing *x, struct candidate *one)
{
	const struct mql_sort_by *by = x->ask->sort;
	const struct sorting s = { x, one };
	/* Entries with the same values are in the order of `_id`, by the bytes of texts. */
	struct order order = { .look = sorting_look,
			       .arg = &s,
			       .count = one->def->column_count,
			       .id = x->ask->texts ? STR("") : STR("_id") };

	one->sorts = one->merges = false;
	if (!by || one->foreign)
		return;
	for (size_t k = 0; k < mql_sort_by_count(by); k++) {
		bool descending;
		struct str path = mql_sort_by_path(by, k, &descending);

		if (!order.ended &&
		    (plan_path_has_number(path) || !order_take(&order, path, descending)))
			return;
	}
	one->sorts = true;
	one->merges = order.merges;
	one->sorts_reverse = order.reverse;
}
