/*
 * The parameters of views, and of _all_docs, _design_docs and _local_docs, which may come in
 * a query, in a body, or in one of several queries in a body.
 */
#ifndef FROND_DOOR_COUCH_LIST_VIEW_ARGS_H
#define FROND_DOOR_COUCH_LIST_VIEW_ARGS_H

#include "doc/json_list.h"
#include "doc/json_value.h"
#include "door/couch/wire/request.h"
#include "model/revisioned/revisioned.h"

/* A bound of a range of ids. A JSON value that is no string sorts before every id. */
struct couch_bound {
	bool given;
	bool below_all; /* not a string */
	struct str id;
	struct str text; /* as it was given */
};

/* A flag that may be left out. */
enum couch_view_flag {
	COUCH_VIEW_FLAG_ABSENT,
	COUCH_VIEW_FLAG_OFF,
	COUCH_VIEW_FLAG_ON,
};

/* How much an answer covers. */
enum couch_view_update {
	COUCH_VIEW_UPDATE_FIRST, /* all that was written before the request */
	COUCH_VIEW_UPDATE_NONE,  /* what happens to be there */
	COUCH_VIEW_UPDATE_LAZY,  /* the same; what is missing is added afterwards */
};

enum couch_view_kind {
	COUCH_VIEW_IDS, /* a list whose keys are ids */
	COUCH_VIEW_MAP,
	COUCH_VIEW_REDUCE,
};

struct couch_view_args {
	struct couch_bound start;
	struct couch_bound end;
	struct couch_bound start_docid; /* where there is no start */
	struct couch_bound end_docid;
	bool of_view;  /* of a design document; CouchDB takes `keys` of one key for `key` there */
	bool has_keys; /* the bounds do not count then */
	struct json_list keys;
	uint64_t limit;
	uint64_t skip;
	bool descending;
	bool include_docs;
	bool exclusive_end;
	bool conflicts;
	bool has_conflicts;
	bool update_seq;
	bool unsorted;
	enum couch_view_flag reduce;
	enum couch_view_flag group;
	bool has_group_level;
	uint64_t group_level;
	enum couch_view_update update;
	unsigned doc_flags; /* of enum couch_doc_flags: how documents show their attachments */
	bool has_limit;
	struct str partition; /* whose ids alone are listed; ptr NULL: those of all */
};

void couch_view_args_init(struct couch_view_args *args);

/* Reads the parameters. A value that the parameter cannot have is CouchDB's query_parse_error. */
MUST_USE enum status couch_view_args_query(struct couch_req *r, struct couch_view_args *args);
MUST_USE enum status couch_view_args_members(struct couch_req *r, const struct json_member *members,
					     size_t count, struct couch_view_args *args);

/*
 * Refuses parameters that exclude each other or that a view of this kind does not have. The texts
 * and their order are those of CouchDB's couch_mrview_util:validate_args().
 */
MUST_USE enum status couch_view_args_check_use(struct couch_req *r, enum couch_view_kind kind,
					       const struct couch_view_args *args);

/* The same, and a limit above the one that is set. Where none is given, that one holds. */
MUST_USE enum status couch_view_args_check(struct couch_req *r, enum couch_view_kind kind,
					   struct couch_view_args *args);

/* How rows are grouped: by so many elements of their keys, UINT64_MAX: by whole keys, 0: not. */
uint64_t couch_view_args_group_level(const struct couch_view_args *args);

/*
 * The range of ids that `args` asks for, among those from `within->begin` to `within->end` (which
 * is NULL or has both) and those of the partition. `*ret_any` is false if the range is empty.
 */
MUST_USE enum status couch_view_args_range(const struct couch_view_args *args,
					   const struct name_range *within, struct arena *arena,
					   struct name_range *ret, bool *ret_any);

#endif
