/*
 * INSERT … ON CONFLICT. PostgreSQL looks for an index that the conflict's target names, and foreign
 * tables have none. So a target that is the primary key is taken out of the analyzed query, and the
 * wrapper finds the row and evaluates SET and WHERE itself: modify.c calls frond_conflict_update().
 */
#include "frond_pg.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parsetree.h"
#include "utils/rel.h"

static post_parse_analyze_hook_type next_analyze;

/* ---- The target ---- */

/* Whether the columns are those of the primary key. */
static bool
is_key(const struct frond_table *t, List *elements, int rti)
{
	Bitmapset *named = NULL, *key = NULL;
	ListCell *cell;

	foreach (cell, elements) {
		const InferenceElem *element = lfirst(cell);
		const Var *var = (const Var *)element->expr;

		if (!IsA(var, Var) || var->varno != rti || var->varattno <= 0 ||
		    OidIsValid(element->infercollid) || OidIsValid(element->inferopclass))
			return false;
		named = bms_add_member(named, var->varattno);
	}
	for (int i = 0; i < t->key_count; i++)
		key = bms_add_member(key, t->key[i].attnum);
	return bms_equal(named, key);
}

static void
target_take(Query *query)
{
	OnConflictExpr *conflict = query->onConflict;
	const RangeTblEntry *rte;

	if (!conflict || !conflict->arbiterElems || conflict->arbiterWhere)
		return;
	rte = rt_fetch(query->resultRelation, query->rtable);
	if (rte->relkind == RELKIND_FOREIGN_TABLE && frond_is_table(rte->relid) &&
	    is_key(frond_table_get(rte->relid, frond_user_of(rte)), conflict->arbiterElems,
		   query->resultRelation))
		conflict->arbiterElems = NIL;
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

static void
at_analyze(ParseState *state, Query *query, JumbleState *jumble)
{
	/* An INSERT stands at the top, or in a WITH. */
	if (query->commandType != CMD_UTILITY && (query->onConflict || query->hasModifyingCTE))
		(void)targets_take((Node *)query, NULL);
	if (next_analyze)
		next_analyze(state, query, jumble);
}

void
frond_conflict_init(void)
{
	next_analyze = post_parse_analyze_hook;
	post_parse_analyze_hook = at_analyze;
}

/* ---- DO UPDATE ---- */

/* The row that has the key, as PostgreSQL's. False: there is none. */
static bool
row_read(const struct frond_table *t, Oid user, Relation rel, const struct frows_value *key,
	 TupleTableSlot *ret)
{
	const struct frows_of of = frond_table_of(t);
	struct frows_value *values = palloc((t->natts + 1) * sizeof(*values));
	uint32 *columns = palloc((t->natts + 1) * sizeof(*columns));
	Datum *datums = palloc0((t->natts + 1) * sizeof(*datums));
	bool *nulls = palloc((t->natts + 1) * sizeof(*nulls)), found = false;
	struct frows *c = frond_link_inside(t->server, user, true);
	size_t count = 0;

	for (int i = 0; i < t->natts; i++)
		if (t->columns[i].is_there)
			columns[count++] = t->columns[i].id;
	frows_get(c, &of, columns, count);
	frows_get_key(c, key, t->key_count);
	if (!frows_get_run(c) || !frows_get_row(c, &found, values))
		frond_fail(c);
	if (!found)
		return false;
	count = 0;
	for (int i = 0; i < t->natts; i++) {
		const struct frows_value *v;

		nulls[i] = true;
		if (!t->columns[i].is_there)
			continue;
		v = &values[count++];
		nulls[i] = v->len < 0;
		if (!nulls[i])
			datums[i] = frond_value_get(&t->columns[i], *v);
	}
	ExecForceStoreHeapTuple(heap_form_tuple(RelationGetDescr(rel), datums, nulls), ret, false);
	return true;
}

enum frond_conflict
frond_conflict_update(const struct frond_table *t, Oid user, ResultRelInfo *rel,
		      ExprContext *context, const struct frows_value *key, TupleTableSlot *slot)
{
	OnConflictSetState *how = rel->ri_onConflict;

	ExecClearTuple(how->oc_Existing);
	if (!row_read(t, user, rel->ri_RelationDesc, key, how->oc_Existing))
		return FROND_CONFLICT_NONE;
	context->ecxt_scantuple = how->oc_Existing;
	context->ecxt_innertuple = slot;
	context->ecxt_outertuple = NULL;
	if (!ExecQual(how->oc_WhereClause, context))
		return FROND_CONFLICT_SKIPPED;
	ExecProject(how->oc_ProjInfo);
	return FROND_CONFLICT_UPDATED;
}
