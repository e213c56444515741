/*
 * Plans of statements about one row that is named by its key: SELECT of columns, and UPDATE. There
 * is nothing to choose for these, and PostgreSQL's planner takes a third of the instructions that a
 * backend has for such a SELECT. So the planner's hook makes the plan here. It is the one that the
 * planner would make, which makes it whenever a statement has anything that is not looked at here.
 */
#include "frond_pg.h"
#include "frond_push.h"

#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "jit/jit.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/planmain.h"
#include "utils/rel.h"

/* ---- Which statements ---- */

/* Of the planner's preparations, functions that every PostgreSQL has need none here: no plan is
 * forgotten when they change, and a cast has all of its arguments. */
static bool
is_plain_function(Oid function)
{
	return OidIsValid(function) && function < FirstUnpinnedObjectId;
}

/* Whether an expression has a part that the planner might have to prepare. */
static bool
needs_planner(Node *e, void *arg)
{
	if (!e)
		return false;
	switch (nodeTag(e)) {
	case T_Var:
		if (((Var *)e)->varattno <= 0)
			return true;
		break;
	case T_Const:
		/* A plan depends on the table that such a value is. */
		if (((Const *)e)->consttype == REGCLASSOID)
			return true;
		break;
	case T_Param:
		if (((Param *)e)->paramkind != PARAM_EXTERN)
			return true;
		break;
	case T_OpExpr:
		set_opfuncid((OpExpr *)e);
		if (!is_plain_function(((OpExpr *)e)->opfuncid))
			return true;
		break;
	case T_FuncExpr:
		if (((FuncExpr *)e)->funcformat == COERCE_EXPLICIT_CALL ||
		    ((FuncExpr *)e)->funcformat == COERCE_SQL_SYNTAX ||
		    !is_plain_function(((FuncExpr *)e)->funcid))
			return true;
		break;
	case T_RelabelType:
	case T_TargetEntry:
	case T_List:
		break;
	default:
		return true;
	}
	return expression_tree_walker(e, needs_planner, arg);
}

/* Nothing but a table, conditions and columns. */
static bool
is_simple(const Query *q)
{
	if (q->commandType != CMD_SELECT && q->commandType != CMD_UPDATE)
		return false;
	return !q->hasAggs && !q->hasWindowFuncs && !q->hasTargetSRFs && !q->hasSubLinks &&
	       !q->hasDistinctOn && !q->hasModifyingCTE && !q->hasForUpdate && !q->hasRowSecurity &&
	       !q->cteList && !q->returningList && !q->groupClause && !q->groupingSets &&
	       !q->havingQual && !q->windowClause && !q->distinctClause && !q->sortClause &&
	       !q->limitOffset && !q->limitCount && !q->rowMarks && !q->setOperations &&
	       !q->constraintDeps && !q->withCheckOptions && list_length(q->rtable) == 1 &&
	       q->jointree->quals && list_length(q->jointree->fromlist) == 1 &&
	       IsA(linitial(q->jointree->fromlist), RangeTblRef);
}

static bool
is_table(const RangeTblEntry *rte)
{
	return rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_FOREIGN_TABLE &&
	       !rte->securityQuals && !rte->tablesample && frond_is_table(rte->relid) &&
	       !(rte->inh && has_subclass(rte->relid));
}

/* The conditions, which are all comparisons; NIL: they are not. */
static List *
clauses_of(Node *quals)
{
	List *clauses = list_make1(quals);
	ListCell *cell;

	if (IsA(quals, BoolExpr) && ((BoolExpr *)quals)->boolop == AND_EXPR)
		clauses = ((BoolExpr *)quals)->args;
	foreach (cell, clauses)
		if (!IsA(lfirst(cell), OpExpr) || needs_planner(lfirst(cell), NULL))
			return NIL;
	return clauses;
}

/* Whether the conditions name one row by constants or parameters. */
static bool
names_one(RelOptInfo *rel, const struct frond_table *t, List *clauses, struct frond_push *ret)
{
	ListCell *cell;

	frond_push_make(rel, t, NULL, clauses, ret);
	if (!ret->is_whole_key || !frond_push_is_one(ret))
		return false;
	foreach (cell, ret->tests) {
		const struct frond_test *test = lfirst(cell);

		if (test->is_implied || (!IsA(test->value, Const) && !IsA(test->value, Param)))
			return false;
	}
	return true;
}

/* ---- Plans ---- */

/* What a scan of the row gives to an UPDATE: new values, the key, and the row as it was. */
static List *
update_targets(const Query *q, const struct frond_table *t, List **ret_columns)
{
	Relation rel = table_open(t->relid, NoLock); /* the analysis has locked it */
	List *targets = NIL;
	ListCell *cell;

	*ret_columns = NIL;
	foreach (cell, q->targetList) {
		TargetEntry *entry = lfirst(cell);

		*ret_columns = lappend_int(*ret_columns, entry->resno);
		targets = lappend(targets, makeTargetEntry(entry->expr,
							   (AttrNumber)(list_length(targets) + 1),
							   entry->resname, false));
	}
	for (int i = 0; i < t->key_count; i++) {
		AttrNumber attnum = t->key[i].attnum;
		Form_pg_attribute a = TupleDescAttr(RelationGetDescr(rel), attnum - 1);
		Var *var = makeVar(1, attnum, a->atttypid, a->atttypmod, a->attcollation, 0);

		targets = lappend(targets,
				  makeTargetEntry((Expr *)var,
						  (AttrNumber)(list_length(targets) + 1),
						  pstrdup(frond_modify_key_name(i)), true));
	}
	targets = lappend(
		targets,
		makeTargetEntry((Expr *)makeVar(1, InvalidAttrNumber, RECORDOID, -1, InvalidOid, 0),
				(AttrNumber)(list_length(targets) + 1), pstrdup("wholerow"), true));
	table_close(rel, NoLock);
	return targets;
}

static PlannedStmt *
statement_new(const Query *q, Plan *plan)
{
	PlannedStmt *s = makeNode(PlannedStmt);

	s->commandType = q->commandType;
	s->queryId = q->queryId;
	s->canSetTag = q->canSetTag;
	s->jitFlags = PGJIT_NONE;
	s->planTree = plan;
	s->rtable = q->rtable;
	s->relationOids = list_make1_oid(((RangeTblEntry *)linitial(q->rtable))->relid);
	s->stmt_location = q->stmt_location;
	s->stmt_len = q->stmt_len;
	return s;
}

static PlannedStmt *
select_plan(const Query *q, RelOptInfo *rel, const struct frond_table *t,
	    const struct frond_push *push, List *clauses)
{
	return statement_new(q, &frond_plan_point(rel, t, push, q->targetList, clauses)->scan.plan);
}

static PlannedStmt *
update_plan(const Query *q, RelOptInfo *rel, const struct frond_table *t,
	    const struct frond_push *push, List *clauses)
{
	ModifyTable *modify = makeNode(ModifyTable);
	PlannedStmt *s = statement_new(q, &modify->plan);
	List *targets, *columns;
	Plan *scan;

	targets = update_targets(q, t, &columns);
	scan = &frond_plan_point(rel, t, push, targets, clauses)->scan.plan;
	scan->plan_node_id = 1;
	/* The executor's parameter for a second look at rows, of which frond has none. */
	s->paramExecTypes = list_make1_oid(InvalidOid);
	scan->extParam = bms_make_singleton(0);
	scan->allParam = bms_make_singleton(0);
	s->resultRelations = list_make1_int(1);
	modify->plan.startup_cost = scan->startup_cost;
	modify->plan.total_cost = scan->total_cost;
	modify->plan.lefttree = scan;
	modify->operation = CMD_UPDATE;
	modify->canSetTag = q->canSetTag;
	modify->nominalRelation = 1;
	modify->resultRelations = list_make1_int(1);
	modify->updateColnosLists = list_make1(columns);
	modify->onConflictAction = ONCONFLICT_NONE;
	modify->fdwPrivLists = list_make1(frond_modify_plan(NULL, modify, 1, 0));
	return s;
}

PlannedStmt *
frond_point_plan(Query *q, int options)
{
	const struct frond_table *t;
	struct frond_push push;
	RangeTblEntry *rte;
	RelOptInfo *rel;
	List *clauses;

	if (frond_in_utility || (options & ~CURSOR_OPT_PARALLEL_OK) || !is_simple(q))
		return NULL;
	rte = linitial(q->rtable);
	if (!is_table(rte) || needs_planner((Node *)q->targetList, NULL))
		return NULL;
	clauses = clauses_of(q->jointree->quals);
	if (!clauses)
		return NULL;
	t = frond_table_get(rte->relid, frond_user_of(rte));
	if (t->has_hidden_key)
		return NULL;
	rel = makeNode(RelOptInfo);
	rel->relid = 1;
	rel->relids = bms_make_singleton(1);
	if (!names_one(rel, t, clauses, &push))
		return NULL;
	rte->inh = false;
	return q->commandType == CMD_SELECT ? select_plan(q, rel, t, &push, clauses)
					    : update_plan(q, rel, t, &push, clauses);
}
