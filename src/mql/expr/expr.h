/*
 * Aggregation expressions: {$add: ["$price", "$tax"]} and what else $project, $group, $expr and
 * updates by a pipeline compute with.
 *
 * An expression is compiled with the variables that it may name, and is run with their values and
 * a document. A value that is not there has the type MQL_MISSING; only expressions know that type,
 * and no document has it.
 */
#ifndef FROND_MQL_EXPR_H
#define FROND_MQL_EXPR_H

#include "mql/mql.h"

enum {
	MQL_MISSING = 0, /* bson_value.type of a value that is not there */
};

#define MQL_NO_VALUE ((struct bson_value){ .type = (enum bson_type)MQL_MISSING })

static inline bool
mql_is_missing(const struct bson_value *v)
{
	return (int)v->type == MQL_MISSING;
}

/* Null, undefined, or missing: what most operators answer null to. */
static inline bool
mql_is_nullish(const struct bson_value *v)
{
	return (int)v->type == MQL_MISSING || v->type == BSON_NULL || v->type == BSON_UNDEFINED;
}

struct mql_expr;

/* The variables that an expression may name: an immutable list. NULL: only those of the system. */
struct mql_scope;

/* A scope with one variable more. The name, without "$$", is borrowed. */
MUST_USE enum status mql_scope_add(struct mql *q, const struct mql_scope *outer, struct str name,
				   const struct mql_scope **ret);

/*
 * Whether a user may call a variable that: lower-case first, then letters, digits and underscores,
 * with MongoDB's failure.
 */
MUST_USE enum status mql_scope_check_name(struct mql *q, struct str name);

/* The values of a scope's variables: the one that was added last comes first. */
struct mql_bound {
	struct bson_value value; /* may be MQL_MISSING */
	const struct mql_bound *outer;
};

struct mql_env {
	struct str root;           /* $$ROOT */
	struct bson_value current; /* $$CURRENT; MQL_MISSING: the root */
	const struct mql_bound *bound;
};

/*
 * Variables of the system: ROOT, CURRENT, NOW, CLUSTER_TIME, REMOVE, USER_ROLES, and for $redact
 * DESCEND, PRUNE and KEEP, which are the strings "descend", "prune" and "keep".
 */
MUST_USE enum status mql_expr_compile(struct mql *q, const struct bson_value *v,
				      const struct mql_scope *scope, struct mql_expr **ret);

/* `*ret` may have MQL_MISSING. It borrows from the document, the variables and the arena. */
MUST_USE enum status mql_expr_run(const struct mql_expr *e, struct mql *q,
				  const struct mql_env *env, struct bson_value *ret);

/* True if the value does not depend on anything; `ret` may be NULL. */
bool mql_expr_constant(const struct mql_expr *e, struct bson_value *ret);

/*
 * What is at a path: names in documents. In front of its end an array gives an array of what its
 * documents have there, and other elements give nothing.
 */
MUST_USE enum status mql_path_value(struct mql *q, const struct bson_value *v, struct str path,
				    struct bson_value *ret);

/*
 * The members of two documents, as $mergeObjects has them: those of the first in their places, with
 * the values of the second where that has them, then the others of the second.
 */
MUST_USE enum status mql_expr_merge(struct mql *q, struct str document, struct str more,
				    struct bson_value *ret);

/*
 * Checks the `method` of $percentile or $median, which is `field`: as an expression and as an
 * accumulator. Fails as MongoDB does for all methods but "approximate".
 */
MUST_USE enum status mql_check_percentile_method(struct mql *q, struct str field,
						 const struct bson_value *method);

#endif
