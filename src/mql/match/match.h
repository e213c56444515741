/*
 * Filters: which documents a query finds.
 *
 * All of MongoDB's operators for queries but $text and those of geometry, which are refused by
 * name; $where only if q->takes_where is set while a filter is compiled (expr/script.h).
 */
#ifndef FROND_MQL_MATCH_H
#define FROND_MQL_MATCH_H

#include "mql/expr/expr.h"
#include "mql/mql.h"

struct mql_match;

MUST_USE enum status mql_match_compile(struct mql *q, struct str filter, struct mql_match **ret);

/*
 * True in `*ret` if the document matches. `*ret_position`, unless NULL, is then the index in the
 * outermost array that the last condition to go through an array has found its element at, which is
 * what `$` stands for in an update or a projection; -1: none.
 */
MUST_USE enum status mql_match_run(const struct mql_match *m, struct mql *q, struct str document,
				   bool *ret, int64_t *ret_position);

/* The same where $expr may name the variables of a scope; `let` has their values. */
MUST_USE enum status mql_match_compile_scoped(struct mql *q, struct str filter,
					      const struct mql_scope *scope,
					      struct mql_match **ret);
MUST_USE enum status mql_match_run_scoped(const struct mql_match *m, struct mql *q,
					  struct str document, const struct mql_bound *let,
					  bool *ret, int64_t *ret_position);

/*
 * The same for conditions on one value, such as those that $pull has: `filter` is either a document
 * of operators, {$gte: 3}, that hold for the value, or a filter for it as a document.
 */
MUST_USE enum status mql_match_compile_value(struct mql *q, struct str operators,
					     struct mql_match **ret);
MUST_USE enum status mql_match_run_value(const struct mql_match *m, struct mql *q,
					 const struct bson_value *v, bool *ret);
/* The same as at the end of a path: of an array, its elements are tried, too. */
MUST_USE enum status mql_match_run_member(const struct mql_match *m, struct mql *q,
					  const struct bson_value *v, bool *ret);

/*
 * Why a document does not match a filter: members of a document that is being built, as those of
 * MongoDB's `errInfo.details`. The filter is compiled again, condition by condition.
 */
MUST_USE enum status mql_match_explain(struct mql *q, struct str filter, struct str document,
				       struct bson_builder *b);

/* ---- For who plans a query ---- */

/* What a filter demands of a path, as far as a range of an index can tell. */
enum mql_demand_op {
	MQL_DEMAND_EQ, /* also of an element of an array */
	MQL_DEMAND_GT,
	MQL_DEMAND_GTE,
	MQL_DEMAND_LT,
	MQL_DEMAND_LTE,
	MQL_DEMAND_IN, /* `value` is the array; only if no regular expression is in it */
	MQL_DEMAND_EXISTS,
};

struct mql_value_set;

struct mql_demand {
	enum mql_demand_op op;
	struct str path;
	struct bson_value value;
	/* Of MQL_DEMAND_IN: the array's values, in the order that the filter compares by. */
	const struct mql_value_set *set;
	/*
	 * All elements of an array with the same number, if it is not 0, come from one $elemMatch:
	 * one element has to fulfil them together.
	 */
	unsigned element;
};

/*
 * Demands that every matching document fulfils: those outside of $or, $nor and $not. They need not
 * be all of the filter, so documents are matched again. An array in the arena of the compilation.
 */
void mql_match_demands(const struct mql_match *m, const struct mql_demand **ret, size_t *ret_count);

/* Adds the paths that the filter looks at. */
void mql_match_paths(const struct mql_match *m, struct mql_paths *ret);

#endif
