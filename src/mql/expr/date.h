/* What the expressions on dates share. */
#ifndef FROND_MQL_EXPR_DATE_H
#define FROND_MQL_EXPR_DATE_H

#include "mql/expr/civil.h"
#include "mql/expr/text.h"
#include "mql/expr/zone.h"

enum {
	MQL_DATE_ARGS = 8,
};

/* An operator with its named arguments: those that were left out are not in `given`. */
struct mql_date_call {
	struct mql *q;
	const struct mql_expr_op *op;
	struct bson_value values[MQL_DATE_ARGS];
	unsigned given;
};

/* Evaluates the named arguments; the operator's number chooses the function. */
MUST_USE enum status mql_date_compile(struct mql *q, const struct mql_expr_op *op,
				      const struct bson_value *arg, const struct mql_scope *scope,
				      mql_expr_run_fn *run, struct mql_expr **ret);
MUST_USE enum status mql_date_evaluate(const struct mql_expr *e, struct mql *q,
				       const struct mql_env *env, struct mql_date_call *ret);

/* A date, a timestamp's or an ObjectId's time; false for any other type. */
bool mql_date_of(const struct bson_value *v, int64_t *ret);
/* The zone that argument `at` names: UTC if it was left out; `*ret` false if it is null. */
MUST_USE enum status mql_date_zone(const struct mql_date_call *c, unsigned at,
				   struct mql_zone *ret_zone, bool *ret);

/* ---- Spans, for others than operators (span.c) ---- */

/* False for a text that is no unit. */
bool mql_date_unit(struct str name, int *ret);
/* Milliseconds of a unit; 0 for months and longer ones. */
int64_t mql_date_unit_ms(int unit);
/* In UTC. */
MUST_USE enum status mql_date_add(struct mql *q, int64_t ms, int unit, int64_t amount,
				  int64_t *ret);

#endif
