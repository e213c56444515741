/*
 * Plans of statements about one row: SELECT of columns, UPDATE and DELETE of a row that is named by
 * its key, and INSERT of values. There is nothing to choose for these, and PostgreSQL's planner
 * takes a third of the instructions that a backend has for such a SELECT. So the planner's hook
 * makes the plan here. It is the one that the planner would make, which makes it whenever a
 * statement has anything that is not looked at here.
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
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* ---- Which statements ---- */

/* Of the planner's preparations, functions that every PostgreSQL has need none here: no plan is
 * forgotten when they change, and a cast has all of its arguments. */
static bool
is_plain_function(Oid function)
{
	return OidIsValid(function) && function < FirstUnpinnedObjectId;
}

/* A call needs nothing but that a kept plan is forgotten when the function changes; the planner
 * adds arguments that are left out. */
static bool
call_needs_planner(const FuncExpr *call, PlannerInfo *root)
{
	if (!root)
		return call->funcformat == COERCE_EXPLICIT_CALL ||
		       call->funcformat == COERCE_SQL_SYNTAX || !is_plain_function(call->funcid);
	if (list_length(call->args) != get_func_nargs(call->funcid))
		return true;
	record_plan_function_dependency(root, call->funcid);
	return false;
}

/*
 * Whether an expression has a part that the planner might have to prepare. `arg`: the planner's
 * struct to which it is added what the plan depends on, where the expression is computed once, for
 * a row that is inserted; NULL: nothing that a plan depends on is looked at.
 */
static bool
needs_planner(Node *e, void *arg)
{
	PlannerInfo *root = arg;

	if (!e)
		return false;
	switch (nodeTag(e)) {
	case T_Var:
		if (((Var *)e)->varattno <= 0)
			return true;
		break;
	case T_Const:
		/* A plan depends on the table, or sequence, that such a value is. */
		if (((Const *)e)->consttype != REGCLASSOID)
			break;
		if (!root || ((Const *)e)->constisnull)
			return true;
		root->glob->relationOids = lappend_oid(root->glob->relationOids,
						       DatumGetObjectId(((Const *)e)->constvalue));
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
		if (call_needs_planner((FuncExpr *)e, root))
			return true;
		break;
	case T_SQLValueFunction:
	case T_RelabelType:
	case T_TargetEntry:
	case T_List:
		break;
	default:
		return true;
	}
	return expression_tree_walker(e, needs_planner, arg);
}

/* Values, or nothing but a table and conditions. */
static bool
has_simple_source(const Query *q)
{
	const FromExpr *from = q->jointree;

	if (q->commandType == CMD_INSERT)
		return !from->fromlist && !from->quals && !q->onConflict;
	return from->quals && list_length(from->fromlist) == 1 &&
	       IsA(linitial(from->fromlist), RangeTblRef);
}

/* Nothing but a table, conditions and columns, or values. */
static bool
is_simple(const Query *q)
{
	if (q->commandType != CMD_SELECT && q->commandType != CMD_UPDATE &&
	    q->commandType != CMD_INSERT && q->commandType != CMD_DELETE)
		return false;
	return !q->hasAggs && !q->hasWindowFuncs && !q->hasTargetSRFs && !q->hasSubLinks &&
	       !q->hasDistinctOn && !q->hasModifyingCTE && !q->hasForUpdate && !q->hasRowSecurity &&
	       !q->cteList && !q->groupClause && !q->groupingSets && !q->havingQual &&
	       !q->windowClause && !q->distinctClause && !q->sortClause && !q->limitOffset &&
	       !q->limitCount && !q->rowMarks && !q->setOperations && !q->constraintDeps &&
	       !q->withCheckOptions && list_length(q->rtable) == 1 && has_simple_source(q);
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

static List *
targets_add(List *targets, Expr *e, const char *name, bool is_junk)
{
	return lappend(targets, makeTargetEntry(e, (AttrNumber)(list_length(targets) + 1),
						pstrdup(name), is_junk));
}

/* The key of the row, which FDWs are given as columns that nobody sees. */
static List *
targets_add_key(List *targets, Relation rel, const struct frond_table *t)
{
	for (int i = 0; i < t->key_count; i++) {
		AttrNumber attnum = t->key[i].attnum;
		Form_pg_attribute a = TupleDescAttr(RelationGetDescr(rel), attnum - 1);
		Var *var = makeVar(1, attnum, a->atttypid, a->atttypmod, a->attcollation, 0);

		targets = targets_add(targets, (Expr *)var, frond_modify_key_name(i), true);
	}
	return targets;
}

/* The row as it was. */
static List *
targets_add_row(List *targets, Oid type)
{
	Var *var = makeVar(1, InvalidAttrNumber, type, -1, InvalidOid, 0);

	return targets_add(targets, (Expr *)var, "wholerow", true);
}

/* What a scan of the row gives to an UPDATE: new values, the key, and the row as it was. */
static List *
update_targets(const Query *q, Relation rel, const struct frond_table *t, List **ret_columns)
{
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
	return targets_add_row(targets_add_key(targets, rel, t), RECORDOID);
}

/* The key, and the row if anybody looks at it: RETURNING or triggers, which PostgreSQL's planner
 * would tell apart. NIL: both do. */
static List *
delete_targets(const Query *q, Relation rel, const struct frond_table *t)
{
	const TriggerDesc *triggers = rel->trigdesc;
	List *targets = targets_add_key(NIL, rel, t);

	if (triggers && (triggers->trig_delete_before_row || triggers->trig_delete_after_row))
		return q->returningList ? NIL : targets_add_row(targets, RECORDOID);
	return q->returningList ? targets_add_row(targets, RelationGetForm(rel)->reltype) : targets;
}

/* Null, as a column has that no value is given for. NULL: it is of a domain, which may forbid it.
 */
static Expr *
null_of(Form_pg_attribute a)
{
	Oid type = a->attisdropped ? INT4OID : a->atttypid;

	if (a->attisdropped)
		return (Expr *)makeConst(type, -1, InvalidOid, sizeof(int32), (Datum)0, true, true);
	if (getBaseType(type) != type)
		return NULL;
	return (Expr *)makeConst(type, -1, a->attcollation, a->attlen, (Datum)0, true, a->attbyval);
}

/* All columns of a row, in their order. NIL: the planner has to make them. */
static List *
insert_targets(const Query *q, Relation rel)
{
	TupleDesc row = RelationGetDescr(rel);
	ListCell *next = list_head(q->targetList);
	List *targets = NIL;

	for (int i = 0; i < row->natts; i++) {
		Form_pg_attribute a = TupleDescAttr(row, i);
		TargetEntry *entry = next ? lfirst(next) : NULL;
		Expr *null;

		if (entry && entry->resno == i + 1 && !entry->resjunk) {
			targets = lappend(targets, entry);
			next = lnext(q->targetList, next);
			continue;
		}
		null = null_of(a);
		if (!null)
			return NIL;
		targets = targets_add(targets, null, NameStr(a->attname), false);
	}
	return next ? NIL : targets;
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

/* `from`: gives the row that is written. */
static PlannedStmt *
modify_plan(const Query *q, Plan *from, List *columns)
{
	ModifyTable *modify = makeNode(ModifyTable);
	PlannedStmt *s = statement_new(q, &modify->plan);

	from->plan_node_id = 1;
	/* The executor's parameter for a second look at rows, of which frond has none. */
	s->paramExecTypes = list_make1_oid(InvalidOid);
	s->resultRelations = list_make1_int(1);
	s->hasReturning = q->returningList != NIL;
	modify->plan.startup_cost = from->startup_cost;
	modify->plan.total_cost = from->total_cost;
	modify->plan.lefttree = from;
	modify->operation = q->commandType;
	modify->canSetTag = q->canSetTag;
	modify->nominalRelation = 1;
	modify->resultRelations = list_make1_int(1);
	if (columns)
		modify->updateColnosLists = list_make1(columns);
	if (q->returningList) {
		modify->plan.targetlist = q->returningList;
		modify->plan.plan_rows = 1;
		modify->returningLists = list_make1(q->returningList);
	}
	modify->onConflictAction = ONCONFLICT_NONE;
	modify->fdwPrivLists = list_make1(frond_modify_plan(NULL, modify, 1, 0));
	return s;
}

/* UPDATE or DELETE. NULL: the planner has to make it. */
static PlannedStmt *
change_plan(const Query *q, RelOptInfo *rel, const struct frond_table *t,
	    const struct frond_push *push, List *clauses)
{
	Relation table = table_open(t->relid, NoLock); /* the analysis has locked it */
	List *targets, *columns = NIL;
	Plan *scan;

	targets = q->commandType == CMD_UPDATE ? update_targets(q, table, t, &columns)
					       : delete_targets(q, table, t);
	table_close(table, NoLock);
	if (!targets)
		return NULL;
	scan = &frond_plan_point(rel, t, push, targets, clauses)->scan.plan;
	scan->extParam = bms_make_singleton(0);
	scan->allParam = bms_make_singleton(0);
	return modify_plan(q, scan, columns);
}

/* NULL: the planner has to make it. */
static PlannedStmt *
insert_plan(const Query *q, Oid relid)
{
	PlannerInfo *root = makeNode(PlannerInfo);
	Relation table;
	List *targets;
	Result *values;
	PlannedStmt *s;

	root->glob = makeNode(PlannerGlobal);
	if (needs_planner((Node *)q->targetList, root))
		return NULL;
	table = table_open(relid, NoLock); /* the analysis has locked it */
	targets = insert_targets(q, table);
	table_close(table, NoLock);
	if (!targets)
		return NULL;
	values = makeNode(Result);
	values->plan.targetlist = targets;
	values->plan.total_cost = cpu_tuple_cost;
	values->plan.plan_rows = 1;
	s = modify_plan(q, &values->plan, NIL);
	s->relationOids = list_concat(s->relationOids, root->glob->relationOids);
	s->invalItems = root->glob->invalItems;
	return s;
}

PlannedStmt *
frond_point_plan(Query *q, int options)
{
	const struct frond_table *t;
	struct frond_push push;
	RangeTblEntry *rte;
	RelOptInfo *rel;
	PlannedStmt *plan;
	List *clauses;

	if (frond_in_utility || (options & ~CURSOR_OPT_PARALLEL_OK) || !is_simple(q))
		return NULL;
	rte = linitial(q->rtable);
	if (!is_table(rte) || needs_planner((Node *)q->returningList, NULL))
		return NULL;
	if (q->commandType == CMD_INSERT)
		return insert_plan(q, rte->relid);
	if (needs_planner((Node *)q->targetList, NULL))
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
	plan = q->commandType == CMD_SELECT ? select_plan(q, rel, t, &push, clauses)
					    : change_plan(q, rel, t, &push, clauses);
	if (plan)
		rte->inh = false;
	return plan;
}
