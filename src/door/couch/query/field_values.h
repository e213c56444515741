/*
 * Which values a field of a match may have, and with which it is certain to match: sets in the
 * order of views (index/plan/values.h), made of all that a selector says about the field, `$or` and
 * `$in` included.
 *
 * The failures of value_interval_narrow().
 */
#ifndef FROND_DOOR_COUCH_QUERY_FIELD_VALUES_H
#define FROND_DOOR_COUCH_QUERY_FIELD_VALUES_H

#include "door/couch/query/ranges.h"

/* The values that a document which matches may have at `path`: never too few, perhaps too many. */
MUST_USE enum status field_values_allowed(const struct normal_node *n,
					  const struct normal_path *path,
					  const struct value_order *o, struct value_set *ret);

/*
 * Values for which a condition is known to be true: where a field has one of them the condition
 * holds. `n` is one condition, or `$and` and `$or` of conditions, all of them on `path`.
 * `*ret_known` is false if `n` is anything else, or if no such values are known.
 */
MUST_USE enum status field_values_certain(const struct normal_node *n,
					  const struct normal_path *path,
					  const struct value_order *o, struct value_set *ret,
					  bool *ret_known);

#endif
