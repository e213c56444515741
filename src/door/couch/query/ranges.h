/*
 * What a selector says about the values of fields, as far as an index can use it: for each field
 * that $and alone leads to, the bounds of its values. Plain values in an arena.
 */
#ifndef FROND_DOOR_COUCH_QUERY_RANGES_H
#define FROND_DOOR_COUCH_QUERY_RANGES_H

#include "door/couch/query/normal.h"
#include "index/leaf.h"
#include "index/plan/values.h"

/* A value of a selector: what bounds of fields point to (index/plan/values.h). */
struct field_value {
	struct leaf_value leaf; /* the form's value: first, so that a pointer to it is to this */
	struct str text;        /* the same as JSON */
};

struct field_range {
	const struct normal_path *path;
	struct value_interval values;
};

struct field_ranges {
	struct field_range *items; /* by path */
	size_t count;
	bool empty; /* of one field, so no document matches */
};

/*
 * The ranges of all fields that have a condition an index can use ($lt, $lte, $eq, $gte, $gt,
 * $beginsWith, $exists). STATUS_LIMIT when the arena is full; the failures of comparing.
 */
MUST_USE enum status field_ranges_read(const struct normal_node *n, const struct value_order *o,
				       struct field_ranges *ret);

/* NULL if there is none. */
const struct field_range *field_ranges_find(const struct field_ranges *ranges,
					    const struct normal_path *path);

/* A bound out of its JSON text, which is borrowed. The value lies in the arena. */
MUST_USE enum status field_bound_make(struct str text, bool exclusive, const struct value_order *o,
				      struct value_bound *ret);
/* The text that the value of a bound was made of. */
struct str field_bound_text(const struct value_bound *bound);

/*
 * The texts that begin with the prefix of a $beginsWith, and a few others, in the order of the
 * collation.
 */
MUST_USE enum status field_interval_of_prefix(const struct normal_node *n,
					      const struct value_order *o,
					      struct value_interval *ret);

#endif
