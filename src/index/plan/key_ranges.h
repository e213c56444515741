/*
 * Ranges of an index's keys, made of the values that its columns may have.
 *
 * While the values of a column are single ones, those of the next column narrow each of them. What
 * lies in the ranges may match, and all that matches does. Plain values in the arena of the work.
 */
#ifndef FROND_INDEX_PLAN_KEY_RANGES_H
#define FROND_INDEX_PLAN_KEY_RANGES_H

#include "index/engine/entry.h"
#include "index/plan/values.h"

enum {
	KEY_RANGES = 1000, /* of one question in one index */
};

struct key_ranges {
	struct index_range *items; /* in key order, no key in two of them */
	size_t count;
	bool marked; /* it was known which values are certain to match */
};

/* What is asked of an index. Each array has a place for each of the columns that are used. */
struct key_columns {
	const struct value_set *allowed; /* no match has others */
	/*
	 * How many columns narrow the ranges. A range ends at the first column that it has an
	 * interval of, and not a single value. Of a hashed column only single values can be asked
	 * for, as hashes are in no order.
	 */
	size_t used;
	/*
	 * A document that has one of these in each column of the index matches, so this array has a
	 * place for all of them; NULL: nothing is known.
	 */
	const struct value_set *certain;
	struct str partition; /* of a partitioned index; ptr NULL: all of them */
};

/*
 * How many columns can be used so that there are at most KEY_RANGES ranges. `allowed` has a place
 * for each column of the index.
 */
size_t key_columns_choose(const struct index_def *def, const struct value_set *allowed);

/*
 * The ranges of all entries whose columns have values that are allowed. `o` is the order of the
 * values. STATUS_LIMIT when the arena is full; the failures of index_range_make().
 */
MUST_USE enum status key_ranges_make(const struct catalog_db *db, const struct index_def *def,
				     const struct key_columns *columns, const struct value_order *o,
				     struct key_ranges *ret);

#endif
