/* Paths and plans of scans: what is pushed down, what it costs, in which order rows come. */
#include "frond_pg.h"

#include "parser/parsetree.h"
#include "access/sysattr.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#define ROWS_UNKNOWN   1000.0 /* of a table that was never analyzed */
#define COST_TRIP      20.0   /* of a request and its answer */
#define COST_ROW       0.02   /* of a row that frond reads */
#define COST_ROW_SENT  0.02   /* of a row that comes here */
#define TRIPS_OF_IN    10     /* about: one for each value */
#define PAGE_ROWS_MOST 100000.0

/* A path's private list: reverse, rows of the first page. */
static List *
path_private(bool reverse, double limit)
{
	int rows = limit > 0 && limit < PAGE_ROWS_MOST ? (int)limit : 0;

	return list_make2_int(reverse, rows);
}

const struct frond_table *
frond_plan_table(PlannerInfo *root, RelOptInfo *rel)
{
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);

	return frond_table_get(rte->relid, frond_user_of(rte));
}

void
frond_plan_size(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	struct frond_push push;

	if (rel->tuples < 0 || (rel->tuples == 0 && rel->pages == 0)) {
		rel->tuples = ROWS_UNKNOWN;
		rel->pages = 10;
	}
	set_baserel_size_estimates(root, rel);
	frond_push_make(rel, frond_plan_table(root, rel), rel->baserestrictinfo, &push);
	if (push.is_whole_key && !push.has_in)
		rel->rows = 1;
}

/* The rows that frond reads: those that lie where the tests of the key say. */
static double
rows_read(PlannerInfo *root, RelOptInfo *rel, const struct frond_push *push)
{
	List *clauses = NIL;
	ListCell *cell;

	foreach (cell, push->tests) {
		const struct frond_test *test = lfirst(cell);

		if (test->place != FROND_FILTER)
			clauses = lappend(clauses, test->clause);
	}
	if (push->is_whole_key && !push->has_in)
		return 1;
	return clamp_row_est(rel->tuples *
			     clauselist_selectivity(root, clauses, rel->relid, JOIN_INNER, NULL));
}

Cost
frond_plan_cost(PlannerInfo *root, RelOptInfo *rel, const struct frond_push *push)
{
	int trips = push->has_in && !push->is_whole_key ? TRIPS_OF_IN : 1;

	return trips * COST_TRIP + rows_read(root, rel, push) * COST_ROW;
}

Cost
frond_plan_sent(double rows)
{
	return rows * COST_ROW_SENT;
}

static void
path_add(PlannerInfo *root, RelOptInfo *rel, const struct frond_push *push, double rows,
	 List *pathkeys, Relids outer, List *private)
{
	Cost total = frond_plan_cost(root, rel, push) + frond_plan_sent(rows) +
		     rows * cpu_tuple_cost;

	add_path(rel, (Path *)create_foreignscan_path(root, rel, NULL, rows, COST_TRIP, total,
						      pathkeys, outer, NULL, private));
}

/* How many rows a query that has a LIMIT, and nothing between that and the scan, wants. */
static double
limit_of(PlannerInfo *root, RelOptInfo *rel)
{
	if (root->limit_tuples <= 0 || bms_membership(root->all_baserels) != BMS_SINGLETON ||
	    root->parse->hasTargetSRFs)
		return -1;
	return root->limit_tuples;
}

static bool
matches_column(PlannerInfo *root, RelOptInfo *rel, EquivalenceClass *ec, EquivalenceMember *em,
	       void *arg)
{
	const Expr *e = em->em_expr;

	while (IsA(e, RelabelType))
		e = ((const RelabelType *)e)->arg;
	return equal(e, arg);
}

/* Clauses of joins that compare a column of the key with columns of other tables. */
static List *
join_clauses(PlannerInfo *root, RelOptInfo *rel, const struct frond_table *t)
{
	List *found = NIL;
	ListCell *cell;

	foreach (cell, rel->joininfo) {
		RestrictInfo *info = lfirst(cell);

		if (join_clause_is_movable_to(info, rel))
			found = lappend(found, info);
	}
	for (int i = 0; rel->has_eclass_joins && i < t->key_count; i++) {
		RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
		int32 typmod;
		Oid type, collation;
		Var *var;

		if (!t->key[i].attnum)
			continue;
		get_atttypetypmodcoll(rte->relid, t->key[i].attnum, &type, &typmod, &collation);
		var = makeVar(rel->relid, t->key[i].attnum, type, typmod, collation, 0);
		found = list_concat(
			found, generate_implied_equalities_for_column(
				       root, rel, matches_column, var, rel->lateral_referencers));
	}
	return found;
}

/* A path for each set of other tables whose columns say where to read in this one. */
static void
add_parameterized(PlannerInfo *root, RelOptInfo *rel, const struct frond_table *t, int equal_alone)
{
	List *clauses = join_clauses(root, rel, t), *seen = NIL;
	ListCell *cell;

	foreach (cell, clauses) {
		RestrictInfo *info = lfirst(cell);
		Relids outer = bms_union(info->clause_relids, rel->lateral_relids);
		struct frond_push push;
		ParamPathInfo *param;

		outer = bms_del_member(outer, rel->relid);
		if (bms_is_empty(outer))
			continue;
		param = get_baserel_parampathinfo(root, rel, outer);
		if (list_member_ptr(seen, param))
			continue;
		seen = lappend(seen, param);
		frond_push_make(rel, t, list_concat_copy(rel->baserestrictinfo, param->ppi_clauses),
				&push);
		if (push.is_whole_key && !push.has_in)
			param->ppi_rows = 1;
		if (push.equal > equal_alone)
			path_add(root, rel, &push, param->ppi_rows, NIL, param->ppi_req_outer,
				 path_private(false, -1));
	}
}

void
frond_plan_paths(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	const struct frond_table *t = frond_plan_table(root, rel);
	double limit = limit_of(root, rel);
	struct frond_push push;
	bool reverse = false, in_order;

	frond_push_make(rel, t, rel->baserestrictinfo, &push);
	in_order = root->query_pathkeys &&
		   frond_push_order(root, rel, t, &push, root->query_pathkeys, &reverse);
	path_add(root, rel, &push, rel->rows, in_order ? root->query_pathkeys : NIL,
		 rel->lateral_relids,
		 path_private(in_order && reverse, in_order || !root->query_pathkeys ? limit : -1));
	add_parameterized(root, rel, t, push.equal);
}

/* The columns that a scan has to fetch, as attnums; 0: the hidden key. */
static List *
columns_wanted(RelOptInfo *rel, const struct frond_table *t, List *clauses)
{
	Bitmapset *used = NULL;
	List *wanted = NIL;
	ListCell *cell;
	bool all;

	pull_varattnos((Node *)rel->reltarget->exprs, rel->relid, &used);
	foreach (cell, clauses)
		pull_varattnos(lfirst(cell), rel->relid, &used);
	all = bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
	for (int i = 1; i <= t->natts; i++)
		if (t->columns[i - 1].is_there &&
		    (all || bms_is_member(i - FirstLowInvalidHeapAttributeNumber, used)))
			wanted = lappend_int(wanted, i);
	if (t->has_hidden_key &&
	    bms_is_member(SelfItemPointerAttributeNumber - FirstLowInvalidHeapAttributeNumber,
			  used))
		wanted = lappend_int(wanted, 0);
	return wanted;
}

ForeignScan *
frond_plan_scan(PlannerInfo *root, RelOptInfo *rel, Oid relid, ForeignPath *path, List *tlist,
		List *clauses, Plan *outer)
{
	List *tests, *values, *pushed;
	const struct frond_table *t;
	struct frond_push push;

	if (IS_UPPER_REL(rel))
		return frond_plan_sums(root, rel, tlist, outer);
	t = frond_plan_table(root, rel);
	clauses = extract_actual_clauses(clauses, false);
	frond_push_make(rel, t, clauses, &push);
	tests = frond_push_plan(&push, &values, &pushed);
	return make_foreignscan(tlist, clauses, rel->relid, values,
				list_make3(tests, columns_wanted(rel, t, clauses),
					   list_concat(list_copy(path->fdw_private),
						       list_make1_int(push.is_whole_key))),
				NIL, pushed, outer);
}
