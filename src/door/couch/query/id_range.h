/* Which ids a selector allows, so that a scan of documents reads no others. Plain values. */
#ifndef FROND_DOOR_COUCH_QUERY_ID_RANGE_H
#define FROND_DOOR_COUCH_QUERY_ID_RANGE_H

#include "catalog/name_range.h"
#include "door/couch/query/normal.h"

/* Ids in byte order; the bounds are in the arena or borrow the selector. */
struct id_range {
	struct str low;
	struct str high;
	bool has_low;
	bool has_high;
	bool low_exclusive;
	bool high_exclusive;
	bool empty;
};

/*
 * Narrows the range, which begins as { 0 }: every document that matches has its id in it.
 * STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status id_range_narrow(const struct normal_node *n, struct arena *arena,
				     struct id_range *range);

/* Ids of a partition. */
MUST_USE enum status id_range_of_partition(struct str partition, struct arena *arena,
					   struct id_range *range);

/* The same range for a list of documents. */
struct name_range id_range_names(const struct id_range *range, bool descending);

/* The same names in the other direction, if `turn`. */
struct name_range name_range_turn(struct name_range range, bool turn);

#endif
