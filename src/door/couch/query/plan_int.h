/*
 * What the files of the planner share:
 *
 *     plan.c       the whole, bookmarks, what is refused
 *     candidates.c which indexes are usable, and CouchDB's choice among them
 *     implied.c    whether a selector demands what a partial index's filter does
 *     reads.c      what would be read of an index, and how many rows that is
 *     ways.c       what each way costs
 */
#ifndef FROND_DOOR_COUCH_QUERY_PLAN_INT_H
#define FROND_DOOR_COUCH_QUERY_PLAN_INT_H

#include "door/couch/query/plan.h"
#include "index/plan/choice.h"
#include "door/couch/query/field_values.h"

enum {
	PLAN_ID_BYTES = 96, /* what an id takes while it is put together with others, roughly */
};

/* A plan while it is made. */
struct planner {
	struct couch_req *r;
	struct kv_tx *tx;
	const struct find_args *args;
	struct plan *p;
	struct plan_candidate *best; /* by CouchDB's rule; NULL: none is usable */
	bool any_json;               /* one of those that are considered is no _all_docs */
	struct index_work work;
	struct value_order order; /* of the values of fields */

	size_t counts; /* indexes whose rows have been counted */

	/* The values that the selector allows, by path. */
	struct planner_values *values;
	size_t values_count;
	size_t values_cap;
};

/* ---- candidates.c ---- */

/* Fills in all of the candidate but what depends on others. */
void candidate_judge(const struct find_args *args, const struct plan *p, struct plan_candidate *c);

/* True if a document that matches `n`, or is sorted, has a value in each column of the index. */
bool candidate_is_required(const struct find_args *args, const struct normal_node *n,
			   const struct query_index *index);

/* Ranks those that are considered, and says of each why it is not the best one. */
void candidates_rank(struct planner *m);

/* Another one was chosen because it has fewer rows: puts it before the others. */
void candidates_promote(struct planner *m, struct plan_candidate *chosen);

/* True if the index has all that the query looks at. */
bool candidate_covers_all(const struct plan_candidate *c, const struct normal_node *n);

/* ---- implied.c ---- */

/* *ret is true if every document that matches `n` matches the filter, as far as can be told. */
MUST_USE enum status filter_is_implied(const struct normal_node *n, struct str filter,
				       const struct value_order *o, bool *ret);

/* ---- reads.c ---- */

/*
 * What is read of an index for a selector, which is the whole query's or a part of it. False in
 * *ret_readable if the engine has not all entries of the index.
 */
MUST_USE enum status read_make(struct planner *m, const struct normal_node *n,
			       const struct query_index *index, struct plan_read *ret,
			       bool *ret_readable);

/* The ids that a selector names one by one. False in *ret_any if it names none. */
MUST_USE enum status read_make_ids(struct planner *m, const struct normal_node *n,
				   struct plan_read *ret, bool *ret_any);

/* True if the selector names them. */
bool read_names_ids(const struct normal_node *n);

/*
 * Counts its rows, unless they are counted. A plan counts so often at most; after that
 * read->counted stays false.
 */
enum {
	PLAN_COUNTS = 100,
};

MUST_USE enum status read_count(struct planner *m, struct plan_read *read);

/* ---- ways.c ---- */

/* Chooses how documents are found, and makes the index of that way m->best. */
MUST_USE enum status ways_choose(struct planner *m, const struct plan_terms *terms);

#endif
