/*
 * The parameters of _all_docs, _design_docs and _local_docs, as a query, a POST's body or one of
 * several queries gives them.
 */
#ifndef FROND_DOOR_COUCH_VIEW_ARGS_H
#define FROND_DOOR_COUCH_VIEW_ARGS_H

#include "door/couch/couch_int.h"

/* A bound of a range of ids. Any JSON value but a string sorts before every id. */
struct couch_bound {
	bool given;
	bool below_all; /* not a string */
	struct str id;
	struct str text; /* as it was given */
};

struct couch_view_args {
	struct couch_bound start;
	struct couch_bound end;
	struct couch_bound start_docid; /* where there is no start */
	struct couch_bound end_docid;
	bool has_keys; /* the bounds do not count then */
	struct json_value *keys;
	size_t keys_count;
	uint64_t limit;
	uint64_t skip;
	bool descending;
	bool include_docs;
	bool exclusive_end;
	bool conflicts;
	bool update_seq;
};

void couch_view_args_init(struct couch_view_args *args);

/* CouchDB's query_parse_error for values that are none of a parameter's. */
MUST_USE enum status couch_view_args_query(struct couch_req *r, struct couch_view_args *args);
MUST_USE enum status couch_view_args_members(struct couch_req *r, const struct json_member *members,
					     size_t count, struct couch_view_args *args);

/* Refuses what cannot be asked for together. */
MUST_USE enum status couch_view_args_check(struct couch_req *r, const struct couch_view_args *args);

/* The ids from `args`, within those that start with `space` (empty: all). False: there are none. */
bool couch_view_args_range(const struct couch_view_args *args, struct str space,
			   struct str space_end, struct rev_name_range *ret);

#endif
