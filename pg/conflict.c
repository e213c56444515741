/*
 * INSERT … ON CONFLICT. PostgreSQL looks for an index that the conflict's target names, and foreign
 * tables have none. So a target that is the primary key, or a unique index, is taken out of the
 * query before it is planned. The number of that index stays in the condition of the target, where
 * the planner looks at nothing then and the plan finds it: "tableoid = 3". The wrapper
 * finds the row and evaluates SET and WHERE itself: modify.c calls frond_conflict_update().
 */
#include "frond_pg.h"
#include "frond_computed.h"
#include "frond_lock.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

static planner_hook_type next_planner;

/* ---- The target ---- */

/* The columns that the target names; NULL: it names expressions, or an order of its own. */
static Bitmapset *
target_columns(List *elements, int rti)
{
	Bitmapset *named = NULL;
	ListCell *cell;

	foreach (cell, elements) {
		const InferenceElem *element = lfirst(cell);
		const Var *var = (const Var *)element->expr;

		if (!IsA(var, Var) || var->varno != rti || var->varattno <= 0 ||
		    OidIsValid(element->infercollid) || OidIsValid(element->inferopclass))
			return NULL;
		named = bms_add_member(named, var->varattno);
	}
	return named;
}

static bool
is_key(const struct frond_table *t, const Bitmapset *named)
{
	Bitmapset *key = NULL;

	for (int i = 0; i < t->key_count; i++)
		key = bms_add_member(key, t->key[i].attnum);
	return bms_equal(named, key);
}

/* Whether a column of an index is one of the target's elements. */
static bool
has_element(const struct frond_table *t, List *elements, int rti, AttrNumber attnum)
{
	const Expr *computed = frond_computed_of(t, attnum)
				       ? frond_computed_expression(t, attnum, rti)
				       : NULL;
	ListCell *cell;

	foreach (cell, elements) {
		const InferenceElem *element = lfirst(cell);
		const Var *var = (const Var *)element->expr;

		if (OidIsValid(element->infercollid) || OidIsValid(element->inferopclass))
			continue;
		if (computed ? equal(computed, var)
			     : IsA(var, Var) && var->varno == rti && var->varattno == attnum)
			return true;
	}
	return false;
}

static bool
has_column(const struct frond_table *t, const struct frond_index *index, int rti, const Node *e)
{
	for (int i = 0; i < index->count; i++)
		if (has_element(t, list_make1((void *)e), rti, index->columns[i].attnum))
			return true;
	return false;
}

/* Whether a unique index is of these elements, and of all rows that the condition is about. */
static bool
index_fits(const struct frond_table *t, const struct frond_index *index, List *elements, int rti,
	   List *where)
{
	List *predicate = copyObject(index->predicate);
	ListCell *cell;

	if (!index->is_unique || !index->is_usable)
		return false;
	for (int i = 0; i < index->count; i++)
		if (!has_element(t, elements, rti, index->columns[i].attnum))
			return false;
	foreach (cell, elements)
		if (!has_column(t, index, rti, lfirst(cell)))
			return false;
	ChangeVarNodes((Node *)predicate, 1, rti, 0);
	return !predicate || predicate_implied_by(predicate, where, false);
}

/* The deferrable UNIQUE of these columns, by its place; less than 0: there is none. */
static int
deferred_at(const struct frond_table *t, const Bitmapset *named)
{
	for (int i = 0; i < t->reference_count; i++) {
		const struct frond_reference *r = &t->references[i];
		Bitmapset *own = NULL;

		for (int j = 0; j < r->count; j++)
			own = bms_add_member(own, r->own[j]);
		if (r->is_unique && bms_equal(own, named))
			return i;
	}
	return -1;
}

/* False: there is nothing that fits. */
static bool
target_find(const struct frond_table *t, List *elements, int rti, List *where, uint32 *ret)
{
	const Bitmapset *named = target_columns(elements, rti);
	int deferred = named ? deferred_at(t, named) : -1;

	*ret = FROND_TARGET_DEFERRED + (uint32)deferred;
	if (deferred >= 0)
		return true;
	*ret = FROND_TARGET_KEY;
	if (named && is_key(t, named))
		return true;
	for (int i = 0; i < t->index_count; i++)
		if (index_fits(t, &t->indexes[i], elements, rti, where)) {
			*ret = t->indexes[i].number;
			return true;
		}
	return false;
}

/* The number of a target that is taken, where the plan finds it. */
static Node *
target_kept(uint32 target, int rti)
{
	Var *table = makeVar(rti, TableOidAttributeNumber, OIDOID, -1, InvalidOid, 0);
	Const *number = makeConst(OIDOID, -1, InvalidOid, sizeof(Oid), ObjectIdGetDatum(target),
				  false, true);

	return (Node *)make_opclause(lookup_type_cache(OIDOID, TYPECACHE_EQ_OPR)->eq_opr, BOOLOID,
				     false, (Expr *)table, (Expr *)number, InvalidOid, InvalidOid);
}

bool
frond_conflict_target(const OnConflictExpr *conflict, uint32 *ret)
{
	const Node *kept = conflict->arbiterWhere;

	if (conflict->arbiterElems || !kept)
		return false;
	/* The planner makes a list of conditions. */
	if (IsA(kept, List))
		kept = linitial((const List *)kept);
	*ret = DatumGetObjectId(
		lsecond_node(Const, castNode(OpExpr, (Node *)kept)->args)->constvalue);
	return true;
}

/* The target that ON CONSTRAINT is: the columns of the constraint. */
static List *
elements_of_constraint(Oid constraint, const RangeTblEntry *rte, int rti)
{
	char *name = get_constraint_name(constraint);
	Bitmapset *columns;
	List *elements = NIL;
	int at = -1;

	if (!name)
		return NIL;
	columns = get_relation_constraint_attnos(rte->relid, name, false, &constraint);
	while ((at = bms_next_member(columns, at)) >= 0) {
		AttrNumber attnum = (AttrNumber)(at + FirstLowInvalidHeapAttributeNumber);
		InferenceElem *element = makeNode(InferenceElem);
		Oid type, collation;
		int32 typmod;

		get_atttypetypmodcoll(rte->relid, attnum, &type, &typmod, &collation);
		element->expr = (Node *)makeVar(rti, attnum, type, typmod, collation, 0);
		elements = lappend(elements, element);
	}
	return elements;
}

static void
target_take(Query *query)
{
	OnConflictExpr *conflict = query->onConflict;
	const struct frond_table *t;
	const RangeTblEntry *rte;
	List *elements, *where;
	uint32 target;

	if (!conflict || (!conflict->arbiterElems && !OidIsValid(conflict->constraint)))
		return;
	rte = rt_fetch(query->resultRelation, query->rtable);
	if (rte->relkind != RELKIND_FOREIGN_TABLE || !frond_is_table(rte->relid))
		return;
	t = frond_table_get(rte->relid, frond_user_of(rte));
	elements = OidIsValid(conflict->constraint)
			   ? elements_of_constraint(conflict->constraint, rte,
						    query->resultRelation)
			   : (List *)eval_const_expressions(
				     NULL, (Node *)copyObject(conflict->arbiterElems));
	where = make_ands_implicit(canonicalize_qual(
		(Expr *)eval_const_expressions(NULL, copyObject(conflict->arbiterWhere)), false));
	if (!target_find(t, elements, query->resultRelation, where, &target))
		return;
	conflict->arbiterWhere = target_kept(target, query->resultRelation);
	conflict->arbiterElems = NIL;
	conflict->constraint = InvalidOid;
}

static bool
targets_take(Node *node, void *arg)
{
	if (!node)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, targets_take, arg);
	target_take((Query *)node);
	return query_tree_walker((Query *)node, targets_take, arg, 0);
}

/* Views stand for their tables here, which they do not when a statement is analyzed. */
static PlannedStmt *
at_planner(Query *query, const char *text, int options, ParamListInfo params)
{
	PlannedStmt *plan;

	/* An INSERT stands at the top, or in a WITH. */
	if (query->onConflict || query->hasModifyingCTE)
		(void)targets_take((Node *)query, NULL);
	/* Another extension's hook sees every statement. */
	if (next_planner)
		return next_planner(query, text, options, params);
	plan = frond_point_plan(query, options);
	return plan ? plan : standard_planner(query, text, options, params);
}

void
frond_conflict_init(void)
{
	next_planner = planner_hook;
	planner_hook = at_planner;
}

/* ---- Finding what is in the way ---- */

bool
frond_conflict_find(const struct frond_table *t, Oid user, const struct frond_index *index,
		    const struct frows_value *values, struct frows_value *ret_key)
{
	struct frows_value place = { NULL, 0 };
	uint32 columns[FROWS_KEY_COLUMNS];
	struct frows_scan scan = { .of = frond_table_of(t),
				   .index = index->number,
				   .columns = columns,
				   .column_count = t->key_count,
				   .equal = values,
				   .equal_count = index->count,
				   .rows = 1 };
	struct frows *c = frond_link_inside(t->server, user, true);

	for (int i = 0; i < t->key_count; i++)
		columns[i] = frond_key_column(t, i)->id;
	for (;;) {
		if (!frows_scan_page_at(c, &scan, place))
			frond_fail(c);
		if (frows_scan_row(c, ret_key))
			break;
		if (!frows_has_more(c))
			return false;
		place = frond_value_copy(frows_scan_place(c));
	}
	for (int i = 0; i < t->key_count; i++)
		ret_key[i] = frond_value_copy(ret_key[i]);
	return true;
}

/* ---- DO UPDATE ---- */

enum frond_conflict
frond_conflict_update(const struct frond_table *t, Oid user, ResultRelInfo *rel,
		      ExprContext *context, const struct frows_value *key, TupleTableSlot *slot)
{
	OnConflictSetState *how = rel->ri_onConflict;

	ExecClearTuple(how->oc_Existing);
	if (!frond_row_read(t, user, rel->ri_RelationDesc, key, how->oc_Existing))
		return FROND_CONFLICT_NONE;
	context->ecxt_scantuple = how->oc_Existing;
	context->ecxt_innertuple = slot;
	context->ecxt_outertuple = NULL;
	if (!ExecQual(how->oc_WhereClause, context))
		return FROND_CONFLICT_SKIPPED;
	ExecProject(how->oc_ProjInfo);
	return FROND_CONFLICT_UPDATED;
}
