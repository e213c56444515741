/*
 * The order of rows that one document emitted with equal keys: by their values, as in CouchDB.
 *
 * Values are compared as Erlang compares its terms, as which CouchDB sorts what a map emits:
 * numbers by value, false, null, true, objects, arrays, texts by their bytes; containers element by
 * element, a shorter one before one that it is the beginning of. CouchDB's
 * couch_mrview_updater:insert_results() is the source.
 *
 * Plain functions on the caller's memory.
 */
#ifndef FROND_INDEX_VIEW_ORDER_H
#define FROND_INDEX_VIEW_ORDER_H

#include "index/view/build.h"

/*
 * Orders the rows of one document, which come map by map, in the order of their ordinals: of those
 * of one map with equal components, keys and values change places. `scratch` is used up meanwhile.
 * STATUS_LIMIT when it is full; the failures of the JSON reader.
 */
MUST_USE enum status view_rows_order(struct view_mapped *rows, size_t count, struct arena *scratch);

/* Below 0, 0, above 0 as `a` comes before `b`, is equal, comes after it: each one JSON value. */
MUST_USE enum status view_term_cmp(struct str a, struct str b, int *ret);

#endif
