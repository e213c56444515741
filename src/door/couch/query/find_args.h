/* What the body of _find or _explain asks for. Plain values in the request's arena. */
#ifndef FROND_DOOR_COUCH_QUERY_FIND_ARGS_H
#define FROND_DOOR_COUCH_QUERY_FIND_ARGS_H

#include "door/couch/query/aggregate.h"
#include "door/couch/query/members.h"
#include "door/couch/query/normal.h"

struct find_args {
	struct str text; /* of the selector */
	struct selector *selector;
	struct normal_node *normal; /* the same selector, for the planner */

	struct str *use_index; /* a design document, and perhaps a name in it */
	size_t use_index_count;
	bool allow_fallback;

	struct str bookmark; /* ptr NULL: none */
	uint64_t limit;
	uint64_t skip;
	struct query_sort sort;
	struct str *fields; /* as they were given */
	size_t fields_count;
	struct selector_fields *shown; /* the same, compiled; NULL: whole documents */
	struct str partition;          /* of the path, the query or the body; ptr NULL: none */

	struct aggregate
		*aggregate; /* NULL: documents are shown; otherwise `fields` are its fields */
	bool has_limit;

	uint64_t r;
	bool conflicts;
	bool stale;
	bool update;
	bool stable;
	bool execution_stats;
};

/* Reads the body of the request, and refuses what is wrong in it in CouchDB's words. */
MUST_USE enum status find_args_read(struct couch_req *r, struct find_args *ret);

/* Refuses a query of a partition if r->db, which is open, has none. */
MUST_USE enum status find_args_check_partition(struct couch_req *r, const struct find_args *args);

/*
 * Reads the name of an index: "ddoc", "_design/ddoc", "ddoc/name", or an array of one or two names.
 * Refuses anything else as invalid_index_name.
 */
MUST_USE enum status find_args_index_name(struct couch_req *r, const struct json_value *v,
					  struct str **ret, size_t *ret_count);

#endif
