/*
 * Which index a query uses, and why not another one. The rules of what is usable at all, and of
 * what a client is told about it, are CouchDB's. Plain values in the request's arena.
 */
#ifndef FROND_DOOR_COUCH_QUERY_PLAN_H
#define FROND_DOOR_COUCH_QUERY_PLAN_H

#include "door/couch/query/find_args.h"
#include "door/couch/query/index_def.h"
#include "door/couch/query/ranges.h"

/* What there is to say about one index. */
struct plan_candidate {
	const struct query_index *index;
	bool named;    /* by use_index */
	bool partial;  /* and so only for a query that names it */
	bool in_scope; /* of the query: partitioned or not */
	bool usable;
	bool considered;    /* usable, and not excluded by use_index */
	const char *reason; /* why it is not usable, or was not chosen */
	uint64_t ranking;   /* 0: chosen */
	size_t prefix;      /* columns that have a range */
	bool covers;        /* the fields that are shown lie in it */
};

struct plan {
	struct plan_candidate *candidates; /* in the order of the indexes */
	size_t count;
	const struct query_index *chosen; /* NULL: none is usable */
	bool covers;                      /* the chosen one has all that the query looks at */
	bool nothing; /* the selector is an empty list, which CouchDB answers with nothing */
	struct field_ranges ranges;
};

/*
 * Plans the query. With `explain`, a query without a usable index is no failure; otherwise it is
 * refused as no_usable_index or, where use_index leaves none, as invalid_index.
 */
MUST_USE enum status plan_make(struct couch_req *r, const struct find_args *args,
			       const struct query_indexes *indexes, bool explain, struct plan *ret);

/*
 * Chooses the index that a bookmark comes from: what names it is empty for _all_docs. False if this
 * query cannot use that index.
 */
bool plan_pin(struct plan *p, struct str name);

/* Appends what names an index in a bookmark. */
void plan_write_name(const struct query_index *index, struct buf *out);

/* True if the query named an index, by use_index, and this one is not it. */
bool plan_ignores_use_index(const struct find_args *args, const struct query_index *chosen);

/* The names of use_index without "_design/" before the first one, as CouchDB's messages have it. */
struct str plan_named_design(const struct find_args *args);

#endif
