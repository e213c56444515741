/* Ranges of an index's keys, made of the values that its columns may have. Plain values. */
#ifndef FROND_DOOR_COUCH_QUERY_KEY_RANGES_H
#define FROND_DOOR_COUCH_QUERY_KEY_RANGES_H

#include "door/couch/query/values.h"
#include "index/engine/entry.h"

enum {
	KEY_RANGES = 1000, /* of one query in one index */
};

struct key_ranges {
	struct index_range *items; /* in key order, no key in two of them */
	size_t count;
	/*
	 * Of each range: every entry in it is of a document that matches, unless a bound was cut.
	 * NULL: nobody has asked, or that is not known of any.
	 */
	bool *sure;
};

/* What is known of the values of an index's columns, each an array with a place for each column. */
struct key_columns {
	const struct value_set *allowed; /* no match has others */
	/* A document that has one of these in each column matches; NULL: nothing is known. */
	const struct value_set *certain;
};

/*
 * The ranges of all entries whose columns have values that are allowed. While the values of a
 * column are single ones, those of the next column narrow each of them, as long as there are at
 * most KEY_RANGES ranges. `partition` is that of a partitioned index; ptr NULL: none.
 * In the arena of the work; STATUS_LIMIT when it is full; the failures of index_range_make().
 */
MUST_USE enum status key_ranges_make(const struct catalog_db *db, const struct index_def *def,
				     const struct key_columns *columns, struct str partition,
				     struct index_work *w, struct key_ranges *ret);

#endif
