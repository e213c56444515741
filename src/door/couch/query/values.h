/*
 * Which values a field of a match may have: a list of intervals in the order of views, made of all
 * that a selector says about the field, `$or` and `$in` included. Plain values in an arena.
 *
 * A set is never too small. It may be too large, since each match is compared with the selector
 * again.
 */
#ifndef FROND_DOOR_COUCH_QUERY_VALUES_H
#define FROND_DOOR_COUCH_QUERY_VALUES_H

#include "door/couch/query/ranges.h"

enum {
	VALUE_INTERVALS = 1000, /* of a set; more of them become one that has them all */
};

/* Values between two bounds; a bound that is not given is no bound. */
struct value_interval {
	struct field_bound low;
	struct field_bound high;
	bool point; /* one value: both bounds are it */
};

/* Intervals in ascending order, no value in two of them. None at all: nothing matches. */
struct value_set {
	struct value_interval *items;
	size_t count;
};

/*
 * The values that a document which matches may have at `path`. STATUS_LIMIT when the arena is full;
 * the failures of comparing.
 */
MUST_USE enum status value_set_read(const struct normal_node *n, const struct normal_path *path,
				    struct index_work *w, struct value_set *ret);

/* The set of all values. */
MUST_USE enum status value_set_all(struct index_work *w, struct value_set *ret);

/* True for the set of all values. */
bool value_set_is_all(const struct value_set *set);

/* `*ret` is true if each value of `inner` is in `outer`. */
MUST_USE enum status value_set_contains(const struct value_set *outer,
					const struct value_set *inner, struct index_work *w,
					bool *ret);

/*
 * The same for each interval of `inner` by itself: `ret` has a place for each of them.
 */
MUST_USE enum status value_set_mark(const struct value_set *outer, const struct value_set *inner,
				    struct index_work *w, bool *ret);

MUST_USE enum status value_set_intersect(const struct value_set *a, const struct value_set *b,
					 struct index_work *w, struct value_set *ret);

/*
 * Values for which a condition is known to be true: where a field has one of them the condition
 * holds. `n` is one condition, or `$and` and `$or` of conditions, all of them on `path`. False in
 * `*ret_known` for others, and where no such values are known.
 */
MUST_USE enum status value_set_of_true(const struct normal_node *n, const struct normal_path *path,
				       struct index_work *w, struct value_set *ret,
				       bool *ret_known);

#endif
