/*
 * INSERT … ON CONFLICT. PostgreSQL looks for an index that the conflict's target names, and foreign
 * tables have none. So a target that is the primary key, or a unique index, is taken out of the
 * query before it is planned. Its columns stay in the condition of the target, where the planner
 * looks at nothing then and the plan finds them: "a IS NOT NULL AND b IS NOT NULL". The wrapper
 * finds the row and evaluates SET and WHERE itself: modify.c calls frond_conflict_update().
 */
#include "frond_pg.h"
#include "frond_lock.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

static planner_hook_type next_planner;

/* ---- The target ---- */

/* The columns that the target names; NULL: it names something else. */
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

bool
frond_conflict_fits(const struct frond_index *index, const Bitmapset *target)
{
	Bitmapset *columns = NULL;

	for (int i = 0; i < index->count; i++)
		columns = bms_add_member(columns, index->columns[i].attnum);
	return frond_index_tells_apart(index) && bms_equal(columns, target);
}

static bool
is_unique(const struct frond_table *t, const Bitmapset *named)
{
	for (int i = 0; i < t->index_count; i++)
		if (frond_conflict_fits(&t->indexes[i], named))
			return true;
	return false;
}

/* The columns of a target that is taken, where the plan finds them. */
static Node *
target_kept(List *elements)
{
	List *tests = NIL;
	ListCell *cell;

	foreach (cell, elements) {
		NullTest *test = makeNode(NullTest);

		test->arg = copyObject((Expr *)((InferenceElem *)lfirst(cell))->expr);
		test->nulltesttype = IS_NOT_NULL;
		test->location = -1;
		tests = lappend(tests, test);
	}
	return (Node *)make_ands_explicit(tests);
}

Bitmapset *
frond_conflict_target(const OnConflictExpr *conflict)
{
	Bitmapset *found = NULL, *target = NULL;
	int at = -1;

	if (conflict->arbiterElems || !conflict->arbiterWhere)
		return NULL;
	pull_varattnos(conflict->arbiterWhere,
		       (Index)bms_next_member(pull_varnos(NULL, conflict->arbiterWhere), -1),
		       &found);
	while ((at = bms_next_member(found, at)) >= 0)
		target = bms_add_member(target, at + FirstLowInvalidHeapAttributeNumber);
	return target;
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
	List *elements;
	Bitmapset *named;

	if (!conflict || conflict->arbiterWhere ||
	    (!conflict->arbiterElems && !OidIsValid(conflict->constraint)))
		return;
	rte = rt_fetch(query->resultRelation, query->rtable);
	if (rte->relkind != RELKIND_FOREIGN_TABLE || !frond_is_table(rte->relid))
		return;
	t = frond_table_get(rte->relid, frond_user_of(rte));
	elements = OidIsValid(conflict->constraint)
			   ? elements_of_constraint(conflict->constraint, rte,
						    query->resultRelation)
			   : conflict->arbiterElems;
	named = target_columns(elements, query->resultRelation);
	if (!named || (!is_key(t, named) && !is_unique(t, named)))
		return;
	conflict->arbiterWhere = target_kept(elements);
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
	/* An INSERT stands at the top, or in a WITH. */
	if (query->onConflict || query->hasModifyingCTE)
		(void)targets_take((Node *)query, NULL);
	return (next_planner ? next_planner : standard_planner)(query, text, options, params);
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
		    TupleTableSlot *slot, struct frows_value *ret_key)
{
	struct frows_value equal[FROWS_KEY_COLUMNS], place = { NULL, 0 };
	uint32 columns[FROWS_KEY_COLUMNS];
	struct frows_scan scan = { .of = frond_table_of(t),
				   .index = index->number,
				   .columns = columns,
				   .column_count = t->key_count,
				   .equal = equal,
				   .equal_count = index->count,
				   .rows = 1 };
	struct frows *c = frond_link_inside(t->server, user, true);
	bool is_null;

	for (int i = 0; i < index->count; i++) {
		AttrNumber attnum = index->columns[i].attnum;
		Datum d = slot_getattr(slot, attnum, &is_null);

		if (is_null)
			return false;
		equal[i] = frond_value_put(&t->columns[attnum - 1], d);
	}
	for (int i = 0; i < t->key_count; i++)
		columns[i] = frond_key_column(t, i)->id;
	for (;;) {
		if (!frows_scan_page_at(c, &scan, place))
			frond_fail(c);
		if (frows_scan_row(c, ret_key))
			break;
		if (!frows_has_more(c))
			return false;
		place = frows_scan_place(c);
		place.ptr = memcpy(palloc(place.len), place.ptr, place.len);
	}
	for (int i = 0; i < t->key_count; i++)
		if (ret_key[i].len > 0)
			ret_key[i].ptr = memcpy(palloc(ret_key[i].len), ret_key[i].ptr,
						ret_key[i].len);
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
