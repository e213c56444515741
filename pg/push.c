/*
 * What frond is asked to look for: comparisons of columns with what is known before the scan.
 *
 * Comparisons of the first columns of the key, and an interval of the next one, say where to read;
 * all others are conditions that frond checks. PostgreSQL checks everything again, so what is
 * pushed down has only to let no row through too few. frond's order is PostgreSQL's for all kinds
 * of keys but texts, of which it is the collation "C": an interval of texts is pushed down by that
 * collation only, and equality unless a collation takes different texts for equal.
 */
#include "frond_pg.h"

#include "access/stratnum.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/typcache.h"

/* ---- One comparison ---- */

/* What a comparison of a text with a text has to be, to be frond's. */
static bool
collation_allows(const struct frond_column *c, Oid collation, bool is_equality)
{
	if (c->kind != FROWS_TEXT)
		return true;
	if (!OidIsValid(collation))
		return false;
	return is_equality ? get_collation_isdeterministic(collation) : lc_collate_is_c(collation);
}

static bool
is_int(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

/* Whether an operator that takes `left` compares values as the column has them. */
static bool
types_fit(const struct frond_column *c, Oid left, Oid right)
{
	Oid own = c->type == VARCHAROID ? TEXTOID : c->type == CIDROID ? INETOID : c->type;

	if (c->kind == FROWS_OTHER || left != own)
		return false;
	return left == right || (is_int(left) && is_int(right));
}

static bool
op_of_operator(Oid opno, Oid left, enum frond_op *ret)
{
	static const enum frond_op by_strategy[] = {
		[BTLessStrategyNumber] = FROND_LT,    [BTLessEqualStrategyNumber] = FROND_LE,
		[BTEqualStrategyNumber] = FROND_EQ,   [BTGreaterEqualStrategyNumber] = FROND_GE,
		[BTGreaterStrategyNumber] = FROND_GT,
	};
	TypeCacheEntry *type = lookup_type_cache(left, TYPECACHE_BTREE_OPFAMILY);
	int strategy = OidIsValid(type->btree_opf) ? get_op_opfamily_strategy(opno, type->btree_opf)
						   : InvalidStrategy;

	if (strategy == InvalidStrategy)
		return false;
	*ret = by_strategy[strategy];
	return true;
}

const struct frond_column *
frond_push_column(RelOptInfo *rel, const struct frond_table *t, Expr *e, AttrNumber *ret)
{
	const struct frond_column *c;
	Var *var;

	while (IsA(e, RelabelType))
		e = ((RelabelType *)e)->arg;
	var = (Var *)e;
	if (!IsA(e, Var) || !bms_is_member(var->varno, rel->relids) || var->varlevelsup ||
	    var->varattno <= 0 || var->varattno > t->natts)
		return NULL;
	c = &t->columns[var->varattno - 1];
	*ret = var->varattno;
	return c->is_there && c->kind != FROWS_NONE ? c : NULL;
}

bool
frond_push_orders(const struct frond_column *c, Oid opno, Oid collation, enum frond_op *ret)
{
	Oid left, right;

	op_input_types(opno, &left, &right);
	return left == right && types_fit(c, left, right) && op_of_operator(opno, left, ret) &&
	       collation_allows(c, collation, false);
}

bool
frond_push_equals(const struct frond_column *c, Oid opno, Oid collation)
{
	enum frond_op op;
	Oid left, right;

	op_input_types(opno, &left, &right);
	return left == right && types_fit(c, left, right) && op_of_operator(opno, left, &op) &&
	       op == FROND_EQ && collation_allows(c, collation, true);
}

/* Whether an expression has one value for the whole scan. */
static bool
is_known_before(RelOptInfo *rel, Expr *e)
{
	return !bms_overlap(pull_varnos(NULL, (Node *)e), rel->relids) &&
	       !contain_volatile_functions((Node *)e) && !contain_subplans((Node *)e);
}

static struct frond_test *
test_new(enum frond_op op, AttrNumber attnum, Expr *clause, Expr *value, Oid type)
{
	struct frond_test *test = palloc0(sizeof(*test));

	test->place = FROND_FILTER;
	test->op = op;
	test->attnum = attnum;
	test->clause = clause;
	test->value = value;
	test->type = type;
	return test;
}

static struct frond_test *
test_of_operator(RelOptInfo *rel, const struct frond_table *t, OpExpr *e)
{
	const struct frond_column *c;
	Oid opno = e->opno, left, right;
	enum frond_op op;
	AttrNumber attnum;
	Expr *value;

	if (list_length(e->args) != 2)
		return NULL;
	c = frond_push_column(rel, t, linitial(e->args), &attnum);
	value = lsecond(e->args);
	if (!c || !is_known_before(rel, value)) {
		opno = get_commutator(opno);
		c = frond_push_column(rel, t, lsecond(e->args), &attnum);
		value = linitial(e->args);
		if (!c || !OidIsValid(opno) || !is_known_before(rel, value))
			return NULL;
	}
	op_input_types(opno, &left, &right);
	if (!types_fit(c, left, right) || !op_of_operator(opno, left, &op) ||
	    !collation_allows(c, e->inputcollid, op == FROND_EQ))
		return NULL;
	return test_new(op, attnum, (Expr *)e, value, right);
}

/* Kinds of which equal values have equal bytes, so that one of two can be left out. */
static bool
bytes_are_one(enum frows_kind kind)
{
	return kind != FROWS_NUMERIC && kind != FROWS_FLOAT4 && kind != FROWS_FLOAT8 &&
	       kind != FROWS_INTERVAL && kind != FROWS_OTHER;
}

static struct frond_test *
test_of_array(RelOptInfo *rel, const struct frond_table *t, ScalarArrayOpExpr *e)
{
	const struct frond_column *c;
	enum frond_op op;
	AttrNumber attnum;
	Oid left, right;
	Expr *value = lsecond(e->args);

	c = frond_push_column(rel, t, linitial(e->args), &attnum);
	if (!c || !e->useOr || !c->is_key || !bytes_are_one(c->kind) ||
	    !is_known_before(rel, value))
		return NULL;
	op_input_types(e->opno, &left, &right);
	if (!types_fit(c, left, right) || !op_of_operator(e->opno, left, &op) || op != FROND_EQ ||
	    !collation_allows(c, e->inputcollid, true))
		return NULL;
	if (get_element_type(exprType((Node *)value)) == InvalidOid)
		return NULL;
	struct frond_test *test = test_new(op, attnum, (Expr *)e, value, right);

	test->place = FROND_IN;
	return test;
}

static struct frond_test *
test_of_null(RelOptInfo *rel, const struct frond_table *t, NullTest *e)
{
	AttrNumber attnum;

	if (e->argisrow || !frond_push_column(rel, t, e->arg, &attnum))
		return NULL;
	return test_new(e->nulltesttype == IS_NULL ? FROND_NULL : FROND_NOT_NULL, attnum, (Expr *)e,
			NULL, InvalidOid);
}

static struct frond_test *
test_of(RelOptInfo *rel, const struct frond_table *t, Expr *e)
{
	switch (nodeTag(e)) {
	case T_OpExpr:
		return test_of_operator(rel, t, (OpExpr *)e);
	case T_ScalarArrayOpExpr:
		return test_of_array(rel, t, (ScalarArrayOpExpr *)e);
	case T_NullTest:
		return test_of_null(rel, t, (NullTest *)e);
	default:
		return NULL;
	}
}

/* ---- All of them ---- */

/* Takes the first test that is an equality of the column, or, with `in`, one of several values. */
static struct frond_test *
take_equal(List **tests, AttrNumber attnum, bool in)
{
	ListCell *cell;

	foreach (cell, *tests) {
		struct frond_test *test = lfirst(cell);

		if (test->attnum == attnum && test->op == FROND_EQ &&
		    (test->place == FROND_IN) == in) {
			*tests = foreach_delete_current(*tests, cell);
			return test;
		}
	}
	return NULL;
}

static bool
is_bound_of(const struct frond_test *test, AttrNumber attnum, bool lower)
{
	return test->attnum == attnum && test->place == FROND_FILTER &&
	       (lower ? test->op == FROND_GT || test->op == FROND_GE
		      : test->op == FROND_LT || test->op == FROND_LE);
}

static void
take_bound(List **tests, AttrNumber attnum, bool lower, struct frond_push *push)
{
	ListCell *cell;

	foreach (cell, *tests) {
		struct frond_test *test = lfirst(cell);

		if (is_bound_of(test, attnum, lower)) {
			test->place = FROND_BOUND;
			push->tests = lappend(push->tests, test);
			*tests = foreach_delete_current(*tests, cell);
			return;
		}
	}
}

/* The first columns of the key that have to be equal to something. */
static void
take_key(const struct frond_table *t, List **tests, struct frond_push *push)
{
	List *rest = list_copy(*tests);

	while (push->equal < t->key_count && t->key[push->equal].attnum) {
		AttrNumber attnum = t->key[push->equal].attnum;
		struct frond_test *test = take_equal(&rest, attnum, false);

		if (!test && !push->has_in) {
			test = take_equal(&rest, attnum, true);
			push->has_in = test != NULL;
		}
		if (!test)
			break;
		push->tests = lappend(push->tests, test);
		push->equal++;
	}
	/* Only rows with equal values of all hash columns lie together. */
	if (push->equal < t->hash_count) {
		push->tests = NIL;
		push->equal = 0;
		push->has_in = false;
		return;
	}
	*tests = rest;
}

static void
take_filters(const struct frond_table *t, List *tests, struct frond_push *push)
{
	ListCell *cell;

	foreach (cell, tests) {
		struct frond_test *test = lfirst(cell);

		if (test->place == FROND_IN)
			push->is_exact = false;
		else
			push->tests = lappend(push->tests, test);
	}
}

void
frond_push_make(RelOptInfo *rel, const struct frond_table *t, List *clauses, struct frond_push *ret)
{
	List *tests = NIL;
	ListCell *cell;

	memset(ret, 0, sizeof(*ret));
	ret->is_exact = true;
	foreach (cell, clauses) {
		Node *node = lfirst(cell);
		Expr *e = IsA(node, RestrictInfo) ? ((RestrictInfo *)node)->clause : (Expr *)node;
		struct frond_test *test = test_of(rel, t, e);

		if (test)
			tests = lappend(tests, test);
		else
			ret->is_exact = false;
	}
	take_key(t, &tests, ret);
	foreach (cell, ret->tests) {
		struct frond_test *test = lfirst(cell);

		if (test->place != FROND_IN)
			test->place = FROND_EQUAL;
	}
	ret->is_whole_key = ret->equal == t->key_count;
	if (ret->equal >= t->hash_count && !ret->is_whole_key && t->key[ret->equal].attnum &&
	    frond_key_column(t, ret->equal)->ordered) {
		take_bound(&tests, t->key[ret->equal].attnum, true, ret);
		take_bound(&tests, t->key[ret->equal].attnum, false, ret);
	}
	take_filters(t, tests, ret);
}

List *
frond_push_plan(const struct frond_push *push, List **ret_values, List **ret_clauses)
{
	List *tests = NIL;
	ListCell *cell;

	*ret_values = *ret_clauses = NIL;
	foreach (cell, push->tests) {
		const struct frond_test *test = lfirst(cell);

		tests = lappend(tests, list_make4_int(test->place, test->op, test->attnum,
						      (int)test->type));
		*ret_clauses = lappend(*ret_clauses, test->clause);
		if (test->value)
			*ret_values = lappend(*ret_values, test->value);
	}
	return tests;
}

/* ---- Order ---- */

/* Whether a pathkey orders by this column of the key. */
static bool
pathkey_is_of(PlannerInfo *root, RelOptInfo *rel, const struct frond_table *t,
	      const PathKey *pathkey, int key)
{
	const struct frond_column *c = frond_key_column(t, key);
	ListCell *cell;

	if (!c->ordered || pathkey->pk_eclass->ec_has_volatile ||
	    !collation_allows(c, pathkey->pk_eclass->ec_collation, false))
		return false;
	foreach (cell, pathkey->pk_eclass->ec_members) {
		EquivalenceMember *member = lfirst(cell);
		AttrNumber attnum;
		Oid type = c->type == VARCHAROID ? TEXTOID : c->type == CIDROID ? INETOID : c->type;

		if (frond_push_column(rel, t, member->em_expr, &attnum) == c &&
		    lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf ==
			    pathkey->pk_opfamily)
			return true;
	}
	return false;
}

bool
frond_push_order(PlannerInfo *root, RelOptInfo *rel, const struct frond_table *t,
		 const struct frond_push *push, List *pathkeys, bool *ret_reverse)
{
	int key = push->equal;
	bool is_first = true;
	ListCell *cell;

	if (push->has_in || push->equal < t->hash_count)
		return false;
	foreach (cell, pathkeys) {
		const PathKey *pathkey = lfirst(cell);
		bool reverse;

		/* A unique key ends what an order can say. */
		if (key == t->key_count)
			return true;
		if (!pathkey_is_of(root, rel, t, pathkey, key))
			return false;
		reverse = (pathkey->pk_strategy == BTGreaterStrategyNumber) !=
			  t->key[key].descending;
		if (!is_first && reverse != *ret_reverse)
			return false;
		*ret_reverse = reverse;
		is_first = false;
		key++;
	}
	return true;
}
