/*
 * What a selector says about the values of fields, as far as an index can use it: for each field
 * that $and alone leads to, the bounds of its values. Plain values in an arena.
 */
#ifndef FROND_DOOR_COUCH_QUERY_RANGES_H
#define FROND_DOOR_COUCH_QUERY_RANGES_H

#include "door/couch/query/normal.h"
#include "index/leaf.h"

/* One end of the values of a field. */
struct field_bound {
	bool given;
	bool exclusive;
	struct leaf_value value;
	struct str text; /* the same as JSON */
};

struct field_range {
	const struct normal_path *path;
	struct field_bound low;
	struct field_bound high;
	bool equal; /* one value: both ends are it */
	bool empty; /* no value satisfies all conditions */
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
MUST_USE enum status field_ranges_read(const struct normal_node *n, struct index_work *w,
				       struct field_ranges *ret);

/* NULL if there is none. */
const struct field_range *field_ranges_find(const struct field_ranges *ranges,
					    const struct normal_path *path);

/* True for a condition that an index can use. */
bool field_is_indexable(const struct normal_node *n);

/* A bound out of its JSON text, which is borrowed. */
MUST_USE enum status field_bound_make(struct str text, bool exclusive, struct index_work *w,
				      struct field_bound *ret);

/*
 * The least text, as JSON, that no text with the prefix of a $beginsWith comes behind, in the order
 * of the collation.
 */
MUST_USE enum status field_prefix_end(const struct normal_node *n, struct index_work *w,
				      struct str *ret);

#endif
