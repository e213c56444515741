/*
 * Which conditions frond tests in place of PostgreSQL (push.c), and what follows from others
 * (implied.c).
 *
 * Errors, memory and threading as in frond_pg.h.
 */
#ifndef FROND_PG_FROND_PUSH_H
#define FROND_PG_FROND_PUSH_H

#include "frond_pg.h"

enum frond_place {
	FROND_EQUAL,  /* a column of the key has this value; of an index: or is null */
	FROND_IN,     /* … one of these */
	FROND_BOUND,  /* the column of the key behind those lies there */
	FROND_FILTER, /* any column */
};

enum frond_op {
	FROND_LT,
	FROND_LE,
	FROND_EQ,
	FROND_GE,
	FROND_GT,
	FROND_NULL,
	FROND_NOT_NULL
};

struct frond_test {
	enum frond_place place;
	enum frond_op op;
	AttrNumber attnum;
	Expr *clause;
	Expr *value;     /* NULL for the last two operators */
	Oid type;        /* of the value */
	bool is_implied; /* it follows from the condition, which is another one */
};

/* What a scan asks of frond. */
struct frond_push {
	const struct frond_index *index; /* by which rows are found; NULL: by the key */
	List *tests; /* of struct frond_test, in the order of the key, then filters */
	int equal; /* columns of the key, or of the index, that have one value, or one of several */
	bool has_in;
	bool has_null;     /* one of these is null */
	bool is_whole_key; /* each value of the key has one row at most */
	bool is_exact;     /* nothing is left to PostgreSQL */
};

/* `clauses`: expressions, or RestrictInfos. */
void frond_push_make(RelOptInfo *rel, const struct frond_table *t, const struct frond_index *index,
		     List *clauses, struct frond_push *ret);
/* The same by an index: false if it may lack rows that the clauses ask for. */
bool frond_push_make_index(RelOptInfo *rel, const struct frond_table *t,
			   const struct frond_index *index, List *clauses, struct frond_push *ret);
/* Whether one row at most passes. */
bool frond_push_is_one(const struct frond_push *push);
/* The tests as a plan has them, their values, and the clauses that they are. */
List *frond_push_plan(const struct frond_push *push, List **ret_values, List **ret_clauses);
/* The column of the relation that an expression is, or NULL. The second one also gives the column
 * of frond's that keeps the value of an expression. */
const struct frond_column *frond_push_column(RelOptInfo *rel, const struct frond_table *t, Expr *e,
					     AttrNumber *ret);
const struct frond_column *frond_push_value(RelOptInfo *rel, const struct frond_table *t, Expr *e,
					    AttrNumber *ret);
/* Whether an operator compares two values of the column as frond does; *ret: how. */
bool frond_push_orders(const struct frond_column *c, Oid opno, Oid collation, enum frond_op *ret);
/* The columns by which rows are found: those of the key, or of the index. */
const struct frond_key_column *frond_push_columns(const struct frond_table *t,
						  const struct frond_push *push, int *ret_count);
/* Whether a value of the column is never too long for its part of an entry. */
bool frond_push_fits(const struct frond_index *index, const struct frond_column *c);
/* Whether an operator takes two values of the column for equal exactly if frond does. */
bool frond_push_equals(const struct frond_column *c, Oid opno, Oid collation);
/* Whether rows come in the order of these pathkeys, forwards, or with *ret_reverse backwards. */
bool frond_push_order(PlannerInfo *root, RelOptInfo *rel, const struct frond_table *t,
		      const struct frond_push *push, List *pathkeys, bool *ret_reverse);

/* ---- What conditions imply (implied.c) ---- */

/*
 * Comparisons of its first argument that follow from a call of an operator or a function, as
 * OpExprs; NIL: none is known. *ret_exact: it follows from them, too.
 */
List *frond_implied(Expr *clause, bool *ret_exact);

#endif
