/*
 * Filters of _changes that are functions of design documents: a batch of documents is one call.
 */
#ifndef FROND_DOOR_COUCH_LIST_FILTER_FUNCTION_H
#define FROND_DOOR_COUCH_LIST_FILTER_FUNCTION_H

#include "door/couch/list/changes_filter.h"
#include "js/js.h"

enum {
	COUCH_FILTER_BATCH = 100,             /* changes that are filtered together */
	COUCH_FILTER_BYTES = 2 * 1024 * 1024, /* of documents that one call has, if there are two */
};

/* All of it is in the request's arena, for as long as the feed lasts. */
struct couch_filter_function {
	struct js_design design;
	bool is_view; /* a map, which lets pass what it emits something for */
	struct str name;
	struct str request; /* the request object, as JSON text */
};

/*
 * Finds the function: "ddoc/name" of `filters`, or with `is_view` of `views`. 404 if it is not
 * there. `body`: the request's.
 */
MUST_USE enum status couch_filter_function_find(struct couch_req *r, struct str text, bool is_view,
						struct str body,
						const struct couch_filter_function **ret);

/*
 * Finds the heads that the rows of some changes name, COUCH_FILTER_BATCH at most: ret[i] for
 * changes[i]. They lie in the request's arena.
 */
MUST_USE enum status couch_filter_function_heads(struct couch_req *r, struct kv_tx *tx,
						 const struct couch_changes_args *args,
						 const struct rev_change *changes, size_t count,
						 struct couch_change_heads *ret);

#endif
