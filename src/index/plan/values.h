/*
 * Which values a field may have: a list of intervals in the order of values, whatever language asks
 * and whatever the values are. A form (index/engine/form.h) knows how two of them compare.
 *
 * A language that asks for values makes sets of its conditions, and joins them: what has to hold of
 * one field together is an intersection, what may hold instead a union. A set may be too large,
 * since documents that are found are compared with the question again; one that was made of values
 * that are certain to match (key_ranges.h) must not.
 *
 * Values are borrowed, and have to live as long as the sets. Intervals are plain values in the
 * arena of the work. Threading: that of the work. All functions return STATUS_LIMIT when the arena
 * is full, and the failures of comparing.
 */
#ifndef FROND_INDEX_PLAN_VALUES_H
#define FROND_INDEX_PLAN_VALUES_H

#include "index/engine/form.h"

enum {
	VALUE_INTERVALS = 1000, /* of a union; more of them become one that has them all */
};

/* How values are compared, and what sets are made with. */
struct value_order {
	const struct index_form *form;
	const void *texts; /* how the form orders texts; NULL: without a collation */
	struct index_work *w;
};

struct value_bound {
	const void *value; /* one of the form's; NULL: no bound */
	bool exclusive;
};

/* Values between two bounds. */
struct value_interval {
	struct value_bound low;
	struct value_bound high;
	bool point; /* known to be one value: both bounds are it */
};

/* Intervals in ascending order, no value in two of them. None at all: nothing matches. */
struct value_set {
	struct value_interval *items;
	size_t count;
};

/* ---- One interval ---- */

/* Leaves the values that are in `by`, too. Of bounds that are equal the first one stays. */
MUST_USE enum status value_interval_narrow(const struct value_order *o, struct value_interval *i,
					   const struct value_interval *by);

/* Sets `point`. `*ret_empty` is true if no value lies between the bounds, as far as they tell. */
MUST_USE enum status value_interval_settle(const struct value_order *o, struct value_interval *i,
					   bool *ret_empty);

static inline bool
value_interval_is_all(const struct value_interval *i)
{
	return !i->low.value && !i->high.value;
}

/* ---- Making sets ---- */

/* A set with room for `count` intervals, and none in it. */
MUST_USE enum status value_set_new(const struct value_order *o, size_t count,
				   struct value_set *ret);
/* The set of one interval. */
MUST_USE enum status value_set_of(const struct value_order *o, const struct value_interval *only,
				  struct value_set *ret);
/* The set of all values. */
MUST_USE enum status value_set_all(const struct value_order *o, struct value_set *ret);
/* The set of these values, each by itself, however many they are. Sorts `values`. */
MUST_USE enum status value_set_of_points(const struct value_order *o, const void **values,
					 size_t count, struct value_set *ret);

/* ---- Joining them ---- */

MUST_USE enum status value_set_intersect(const struct value_order *o, const struct value_set *a,
					 const struct value_set *b, struct value_set *ret);
/* The union; of more than VALUE_INTERVALS intervals their span. */
MUST_USE enum status value_sets_unite(const struct value_order *o, const struct value_set *sets,
				      size_t count, struct value_set *ret);
/* Makes one interval of all: from the first bound to the last one. There is at least one. */
void value_set_span(struct value_set *set);

/* ---- Looking at them ---- */

static inline bool
value_set_is_all(const struct value_set *set)
{
	return set->count == 1 && value_interval_is_all(&set->items[0]);
}

/* `*ret` is true if each value of `inner` is in `outer`. */
MUST_USE enum status value_set_contains(const struct value_order *o, const struct value_set *outer,
					const struct value_set *inner, bool *ret);
/* The same for each interval of `inner` by itself: `ret` has a place for each of them. */
MUST_USE enum status value_set_mark(const struct value_order *o, const struct value_set *outer,
				    const struct value_set *inner, bool *ret);

#endif
