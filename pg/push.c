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
#include "frond_computed.h"
#include "frond_push.h"

#include "access/stratnum.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "rewrite/rewriteManip.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/typcache.h"

/* ---- One comparison ---- */

/* Whether characters of the database's encoding are in the order of those of UTF-8. */
static bool
encoding_orders(void)
{
	int encoding = GetDatabaseEncoding();

	return encoding == PG_UTF8 || encoding == PG_LATIN1 || encoding == PG_SQL_ASCII;
}

/* What a comparison of a text with a text has to be, to be frond's. */
static bool
collation_allows(const struct frond_column *c, Oid collation, bool is_equality)
{
	if (c->kind != FROWS_TEXT)
		return true;
	if (!OidIsValid(collation))
		return false;
	return is_equality ? get_collation_isdeterministic(collation)
			   : lc_collate_is_c(collation) && encoding_orders();
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

static const Expr *
without_relabel(const Expr *e)
{
	while (IsA(e, RelabelType))
		e = ((const RelabelType *)e)->arg;
	return e;
}

const struct frond_column *
frond_push_value(RelOptInfo *rel, const struct frond_table *t, Expr *e, AttrNumber *ret)
{
	const struct frond_column *c = frond_push_column(rel, t, e, ret);

	for (int i = 0; !c && i < t->computed_count; i++) {
		AttrNumber attnum = (AttrNumber)(t->natts + i + 1);

		if (!t->columns[attnum - 1].is_there ||
		    !equal(without_relabel(e),
			   without_relabel(frond_computed_expression(t, attnum, rel->relid))))
			continue;
		c = &t->columns[attnum - 1];
		*ret = attnum;
	}
	return c;
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
	if (IsA(e, Const))
		return true;
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
	c = frond_push_value(rel, t, linitial(e->args), &attnum);
	value = lsecond(e->args);
	if (!c || !is_known_before(rel, value)) {
		opno = get_commutator(opno);
		c = frond_push_value(rel, t, lsecond(e->args), &attnum);
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

	c = frond_push_value(rel, t, linitial(e->args), &attnum);
	if (!c || !e->useOr || !bytes_are_one(c->kind) || !is_known_before(rel, value))
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

	if (e->argisrow || !frond_push_value(rel, t, e->arg, &attnum))
		return NULL;
	return test_new(e->nulltesttype == IS_NULL ? FROND_NULL : FROND_NOT_NULL, attnum, (Expr *)e,
			NULL, InvalidOid);
}

/* A column that is true or false by itself. */
static struct frond_test *
test_of_bool(RelOptInfo *rel, const struct frond_table *t, Expr *clause, Expr *e, bool is)
{
	AttrNumber attnum;
	const struct frond_column *c = frond_push_column(rel, t, e, &attnum);

	if (!c || c->kind != FROWS_BOOL)
		return NULL;
	return test_new(FROND_EQ, attnum, clause, (Expr *)makeBoolConst(is, false), BOOLOID);
}

/* What follows from a condition of a column that is no comparison. */
static List *
tests_implied(RelOptInfo *rel, const struct frond_table *t, Expr *clause, const List *args,
	      bool *ret_exact)
{
	List *tests = NIL;
	AttrNumber attnum;
	ListCell *cell;

	*ret_exact = false;
	if (args == NIL || !frond_push_value(rel, t, linitial(args), &attnum))
		return NIL;
	foreach (cell, frond_implied(clause, ret_exact)) {
		struct frond_test *test = test_of_operator(rel, t, lfirst(cell));

		if (test) {
			test->is_implied = true;
			tests = lappend(tests, test);
		} else {
			*ret_exact = false;
		}
	}
	return tests;
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
	case T_Var:
		return test_of_bool(rel, t, e, e, true);
	case T_BoolExpr:
		return is_notclause(e) ? test_of_bool(rel, t, e, get_notclausearg(e), false) : NULL;
	default:
		return NULL;
	}
}

/* *ret_exact: rows that pass these tests fulfil the condition. */
static List *
tests_of(RelOptInfo *rel, const struct frond_table *t, Expr *e, bool *ret_exact)
{
	struct frond_test *test = test_of(rel, t, e);

	*ret_exact = test != NULL;
	if (test)
		return list_make1(test);
	if (IsA(e, OpExpr))
		return tests_implied(rel, t, e, ((OpExpr *)e)->args, ret_exact);
	if (IsA(e, FuncExpr))
		return tests_implied(rel, t, e, ((FuncExpr *)e)->args, ret_exact);
	return NIL;
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

/* Takes the first test of the column that is by one of these operators. */
static struct frond_test *
take_op(List **tests, AttrNumber attnum, enum frond_op op, enum frond_op other)
{
	ListCell *cell;

	foreach (cell, *tests) {
		struct frond_test *test = lfirst(cell);

		if (test->attnum == attnum && test->place == FROND_FILTER &&
		    (test->op == op || test->op == other)) {
			*tests = foreach_delete_current(*tests, cell);
			return test;
		}
	}
	return NULL;
}

static void
put_bound(struct frond_push *push, struct frond_test *test)
{
	test->place = FROND_BOUND;
	push->tests = lappend(push->tests, test);
}

static void
take_bounds(List **tests, AttrNumber attnum, struct frond_push *push)
{
	struct frond_test *lower = take_op(tests, attnum, FROND_GT, FROND_GE);
	struct frond_test *upper = take_op(tests, attnum, FROND_LT, FROND_LE);

	/* Null is before all values of an index, so what is not null lies behind it. */
	if (!lower && !upper && push->index)
		lower = take_op(tests, attnum, FROND_NOT_NULL, FROND_NOT_NULL);
	if (lower)
		put_bound(push, lower);
	if (upper)
		put_bound(push, upper);
}

const struct frond_key_column *
frond_push_columns(const struct frond_table *t, const struct frond_push *push, int *ret_count)
{
	*ret_count = push->index ? push->index->count : t->key_count;
	return push->index ? push->index->columns : t->key;
}

/* Whether rows lie in PostgreSQL's order of the values of such a column. */
static bool
is_ordered(const struct frond_table *t, const struct frond_push *push, int at)
{
	return push->index ? push->index->ordered[at] : frond_key_column(t, at)->ordered;
}

static int
hash_count(const struct frond_table *t, const struct frond_push *push)
{
	return push->index ? 0 : t->hash_count;
}

/* The first columns that have to be equal to something. */
static void
take_key(const struct frond_table *t, List **tests, struct frond_push *push)
{
	List *rest = list_copy(*tests);
	const struct frond_key_column *columns;
	int count;

	columns = frond_push_columns(t, push, &count);
	while (push->equal < count && columns[push->equal].attnum) {
		AttrNumber attnum = columns[push->equal].attnum;
		struct frond_test *test = take_equal(&rest, attnum, false);

		if (!test && !push->has_in) {
			test = take_equal(&rest, attnum, true);
			push->has_in = test != NULL;
		}
		/* A row whose first column is null has no entry. */
		if (!test && push->index && push->equal) {
			test = take_op(&rest, attnum, FROND_NULL, FROND_NULL);
			push->has_null |= test != NULL;
		}
		if (!test)
			break;
		push->tests = lappend(push->tests, test);
		push->equal++;
	}
	/* Only rows with equal values of all hash columns lie together. */
	if (push->equal < hash_count(t, push)) {
		push->tests = NIL;
		push->equal = 0;
		push->has_in = push->has_null = false;
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

		/* What is computed is relied on where an index is, since others than this
		 * PostgreSQL may write rows without it. */
		if (test->place == FROND_IN || frond_computed_of(t, test->attnum))
			push->is_exact = false;
		else
			push->tests = lappend(push->tests, test);
	}
}

void
frond_push_make(RelOptInfo *rel, const struct frond_table *t, const struct frond_index *index,
		List *clauses, struct frond_push *ret)
{
	const struct frond_key_column *columns;
	List *tests = NIL;
	ListCell *cell;
	int count;

	memset(ret, 0, sizeof(*ret));
	ret->index = index;
	ret->is_exact = true;
	foreach (cell, clauses) {
		Node *node = lfirst(cell);
		Expr *e = IsA(node, RestrictInfo) ? ((RestrictInfo *)node)->clause : (Expr *)node;
		bool is_exact;

		tests = list_concat(tests, tests_of(rel, t, e, &is_exact));
		ret->is_exact &= is_exact;
	}
	take_key(t, &tests, ret);
	foreach (cell, ret->tests) {
		struct frond_test *test = lfirst(cell);

		if (test->place != FROND_IN)
			test->place = FROND_EQUAL;
	}
	columns = frond_push_columns(t, ret, &count);
	ret->is_whole_key = !index && ret->equal == count;
	if (ret->equal >= hash_count(t, ret) && ret->equal < count && columns[ret->equal].attnum &&
	    is_ordered(t, ret, ret->equal))
		take_bounds(&tests, columns[ret->equal].attnum, ret);
	take_filters(t, tests, ret);
}

/* Whether no row that passes has null in the column. */
static bool
is_never_null(const struct frond_table *t, const struct frond_push *push, AttrNumber attnum)
{
	ListCell *cell;

	foreach (cell, push->tests) {
		const struct frond_test *test = lfirst(cell);

		if (test->attnum == attnum && test->op != FROND_NULL)
			return true;
	}
	return t->columns[attnum - 1].not_null;
}

bool
frond_push_make_index(RelOptInfo *rel, const struct frond_table *t, const struct frond_index *index,
		      List *clauses, struct frond_push *ret)
{
	List *predicate;

	if (!index->is_usable)
		return false;
	predicate = copyObject(index->predicate);
	if (rel->relid != 1)
		ChangeVarNodes((Node *)predicate, 1, rel->relid, 0);
	if (predicate && !predicate_implied_by(predicate, clauses, false))
		return false;
	frond_push_make(rel, t, index, clauses, ret);
	/* A row whose first column is null has no entry. */
	return is_never_null(t, ret, index->columns[0].attnum);
}

bool
frond_push_is_one(const struct frond_push *push)
{
	/* Rows that have a null are like no other: a unique index has many of them. */
	if (push->has_in || push->has_null)
		return false;
	return push->is_whole_key ||
	       (push->index && push->index->is_unique && push->equal == push->index->count);
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

/* One column of the order in which rows come. */
struct order_column {
	AttrNumber attnum; /* 0: the hidden key */
	bool descending;
	bool ordered;
	bool may_be_null;
};

enum {
	ENTRY_BYTES = 2600, /* of values in an entry: what is longer is cut, and in no order */
	CHARACTER_BYTES = 4,
	NUMERIC_MORE_BYTES = 12, /* of a numeric: what it has beside its digits */
};

bool
frond_push_fits(const struct frond_index *index, const struct frond_column *c)
{
	if (c->kind != FROWS_BYTES && c->kind != FROWS_TEXT && c->kind != FROWS_NUMERIC)
		return true;
	if (c->kind == FROWS_BYTES || c->typmod < (int32)VARHDRSZ)
		return false;
	/* Two digits have a byte. */
	if (c->kind == FROWS_NUMERIC)
		return (((c->typmod - VARHDRSZ) >> 16 & 0xffff) / 2 + NUMERIC_MORE_BYTES) *
			       index->count <
		       ENTRY_BYTES;
	return (c->typmod - (int32)VARHDRSZ + 2) * CHARACTER_BYTES * index->count < ENTRY_BYTES;
}

/* The columns of the index, and then of the key, since entries of one value are in its order. */
static int
order_of(const struct frond_table *t, const struct frond_push *push, struct order_column *ret)
{
	const struct frond_key_column *columns;
	bool is_total = push->index && push->index->is_unique;
	int count, all = 0;

	columns = frond_push_columns(t, push, &count);
	for (int i = 0; i < count; i++) {
		const struct frond_column *c = columns[i].attnum
						       ? &t->columns[columns[i].attnum - 1]
						       : &t->hidden;

		ret[all] = (struct order_column){ columns[i].attnum, columns[i].descending,
						  is_ordered(t, push, i), false };
		if (push->index) {
			ret[all].ordered &= frond_push_fits(push->index, c);
			ret[all].may_be_null = !is_never_null(t, push, columns[i].attnum);
			is_total &= !ret[all].may_be_null;
		}
		all++;
	}
	if (!push->index || is_total)
		return all;
	/* Rows that are hashed come in no order that PostgreSQL has. */
	if (t->hash_count) {
		ret[all++] = (struct order_column){ 0, false, false, false };
		return all;
	}
	for (int i = 0; i < t->key_count; i++)
		ret[all++] = (struct order_column){ t->key[i].attnum, t->key[i].descending,
						    frond_key_column(t, i)->ordered, false };
	return all;
}

/* Whether a pathkey orders by this column. */
static bool
pathkey_is_of(RelOptInfo *rel, const struct frond_table *t, const PathKey *pathkey,
	      const struct order_column *at)
{
	const struct frond_column *c = at->attnum ? &t->columns[at->attnum - 1] : &t->hidden;
	ListCell *cell;

	if (!at->ordered || pathkey->pk_eclass->ec_has_volatile ||
	    !collation_allows(c, pathkey->pk_eclass->ec_collation, false))
		return false;
	/* Null is before all others where the column ascends. */
	if (at->may_be_null &&
	    pathkey->pk_nulls_first != (pathkey->pk_strategy == BTLessStrategyNumber))
		return false;
	foreach (cell, pathkey->pk_eclass->ec_members) {
		EquivalenceMember *member = lfirst(cell);
		AttrNumber attnum;
		Oid type = c->type == VARCHAROID ? TEXTOID : c->type == CIDROID ? INETOID : c->type;

		if (frond_push_value(rel, t, member->em_expr, &attnum) == c &&
		    lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf ==
			    pathkey->pk_opfamily)
			return true;
	}
	return false;
}

/* Whether the pathkey is computed of columns of the table alone. */
static bool
pathkey_is_of_table(const RelOptInfo *rel, const PathKey *pathkey)
{
	ListCell *cell;

	if (pathkey->pk_eclass->ec_has_volatile)
		return false;
	foreach (cell, pathkey->pk_eclass->ec_members) {
		const EquivalenceMember *m = lfirst(cell);

		if (!bms_is_empty(m->em_relids) && bms_is_subset(m->em_relids, rel->relids))
			return true;
	}
	return false;
}

bool
frond_push_order(PlannerInfo *root, RelOptInfo *rel, const struct frond_table *t,
		 const struct frond_push *push, List *pathkeys, bool *ret_reverse)
{
	struct order_column order[2 * FROWS_KEY_COLUMNS];
	int at = push->equal, count = order_of(t, push, order);
	bool is_first = true;
	ListCell *cell;

	if (push->has_in || push->equal < hash_count(t, push))
		return false;
	foreach (cell, pathkeys) {
		const PathKey *pathkey = lfirst(cell);
		bool reverse;

		/* There is one row for each value: its other columns have any order, but another
		 * table's do not, of which several rows may be joined to it. */
		if (at == count) {
			if (!pathkey_is_of_table(rel, pathkey))
				return false;
			continue;
		}
		if (!pathkey_is_of(rel, t, pathkey, &order[at]))
			return false;
		reverse = (pathkey->pk_strategy == BTGreaterStrategyNumber) != order[at].descending;
		if (!is_first && reverse != *ret_reverse)
			return false;
		*ret_reverse = reverse;
		is_first = false;
		at++;
	}
	return true;
}
