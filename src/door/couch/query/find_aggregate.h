/*
 * Computing `aggregate` of _find: counts, sums, least, greatest and mean values, of groups or of
 * all documents that match. They are got in one of three ways:
 *
 * - counted: the number of all documents, or of those that an index has in some ranges, is known
 *   from the counters of ranges; the least and the greatest value of a field is at an end of an
 *   index. Only what these cannot tell is read.
 * - streamed: an index has the groups one behind another, so each is written when its last document
 *   has come.
 * - gathered: all groups are kept until the last document, as far as [mango] aggregate_groups and
 *   [mango] sort_bytes allow.
 *
 * Groups come in the order of their values in each of them.
 */
#ifndef FROND_DOOR_COUCH_QUERY_FIND_AGGREGATE_H
#define FROND_DOOR_COUCH_QUERY_FIND_AGGREGATE_H

#include "door/couch/query/find.h"

/* In the request's arena. */
struct find_aggregate_plan {
	struct plan plan;
	enum find_way way;
	/* Counted: of each function, the index that is read from one end. */
	struct plan *ends;
};

/*
 * Plans a query with `aggregate`, as plan_make() does others, and chooses the way, in a
 * transaction that has opened r->db.
 */
MUST_USE enum status find_aggregate_plan(struct couch_req *r, struct kv_tx *tx,
					 const struct find_args *args,
					 const struct query_indexes *indexes, bool explain,
					 struct find_aggregate_plan *ret);

/* "counted" */
const char *find_way_name(enum find_way way);

/* Appends the groups to the answer; `range` has the ids that may match, unless `none` do. */
MUST_USE enum status find_aggregate(struct find *f, struct name_range range, bool none);

#endif
