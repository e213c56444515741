/* Paths and plans of scans: what is pushed down, what it costs, in which order rows come. */
#include "frond_pg.h"
#include "frond_computed.h"
#include "frond_sums.h"
#include "frond_push.h"

#include "parser/parsetree.h"
#include "access/sysattr.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#define ROWS_UNKNOWN   1000.0 /* of a table of which nothing can be told */
#define ROWS_LEAST     1000.0 /* that a table has for costs: a scan meets all who write there */
#define ROW_BYTES      64     /* about: of a row, for a number of pages */
#define COST_TRIP      20.0   /* of a request and its answer */
#define COST_ROW       0.02   /* of a row that frond reads */
#define COST_ROW_FOUND 0.06   /* of a row that it looks up for an entry of an index */
#define COST_ENTRY     0.002  /* of an entry that it counts */
#define ENTRIES_MOST   2000.0 /* that it reads of a group: others the counters tell */
#define COST_ROW_SENT  0.02   /* of a row that comes here */
#define TRIPS_OF_IN    10     /* about: one for each value */
#define PAGE_ROWS_MOST 100000.0

/* A path's private list: reverse, rows of the first page, the number of the index or 0. */
static List *
path_private(bool reverse, double limit, const struct frond_index *index)
{
	int rows = limit > 0 && limit < PAGE_ROWS_MOST ? (int)limit : 0;

	return list_make3_int(reverse, rows, index ? (int)index->number : 0);
}

const struct frond_table *
frond_plan_table(PlannerInfo *root, RelOptInfo *rel)
{
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);

	return frond_table_get(rte->relid, frond_user_of(rte));
}

/*
 * What ANALYZE has counted is exact for its time, and an estimate of frond's is too low rather than
 * too high: it counts if there was no ANALYZE, if it is a number, or if it is more. `asks`: false
 * where it would make no difference.
 */
static void
size_estimate(RelOptInfo *rel, const struct frond_table *t, Oid user, bool asks)
{
	bool is_known = rel->tuples > 0 || (rel->tuples == 0 && rel->pages > 0), is_exact = false;
	double rows = asks ? frond_table_rows(t, user, &is_exact) : -1;

	if (rows >= 0 && (!is_known || is_exact || rows > rel->tuples))
		rel->tuples = rows;
	else if (!is_known)
		rel->tuples = ROWS_UNKNOWN;
	if (!is_known)
		rel->pages = (BlockNumber)(rel->tuples * ROW_BYTES / BLCKSZ) + 1;
}

void
frond_plan_size(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	const struct frond_table *t = frond_plan_table(root, rel);
	struct frond_push *by_key = palloc(sizeof(*by_key)), push;
	bool is_one;

	frond_push_make(rel, t, NULL, rel->baserestrictinfo, by_key);
	/* frond_plan_paths() and frond_plan_scan() want it again. */
	rel->fdw_private = by_key;
	/* One row of one table is one, however many others there are. */
	is_one = by_key->is_whole_key && frond_push_is_one(by_key);
	size_estimate(rel, t, frond_user_of(planner_rt_fetch(rel->relid, root)),
		      !is_one || list_length(root->parse->rtable) > 1);
	/* Only rows are estimated here: PostgreSQL has set the width and the cost of conditions. */
	if (is_one) {
		rel->rows = 1;
		return;
	}
	rel->rows = clamp_row_est(rel->tuples * clauselist_selectivity(root, rel->baserestrictinfo,
								       0, JOIN_INNER, NULL));
	frond_plan_best(root, rel, t, rel->baserestrictinfo, &push);
	if (frond_push_is_one(&push))
		rel->rows = 1;
}

/* The rows that frond reads: those that lie where the tests of the key, or of the index, say. */
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
	if (push->index) {
		List *predicate = copyObject(push->index->predicate);

		if (rel->relid != 1)
			ChangeVarNodes((Node *)predicate, 1, rel->relid, 0);
		clauses = list_concat(clauses, predicate);
	}
	if (frond_push_is_one(push))
		return 1;
	return clamp_row_est(Max(rel->tuples, ROWS_LEAST) *
			     clauselist_selectivity(root, clauses, rel->relid, JOIN_INNER, NULL));
}

/* Whether entries have all columns that the query asks for. */
static bool
is_covering(PlannerInfo *root, RelOptInfo *rel, const struct frond_push *push)
{
	Bitmapset *used = NULL;
	ListCell *cell;
	int at = -1;

	if (!push->index->carried)
		return false;
	pull_varattnos((Node *)rel->reltarget->exprs, rel->relid, &used);
	foreach (cell, rel->baserestrictinfo)
		pull_varattnos((Node *)((RestrictInfo *)lfirst(cell))->clause, rel->relid, &used);
	while ((at = bms_next_member(used, at)) >= 0) {
		int attnum = at + FirstLowInvalidHeapAttributeNumber;

		if (attnum <= 0 || (!bms_is_member(attnum, push->index->carried) &&
				    !frond_plan_table(root, rel)->columns[attnum - 1].is_key))
			return false;
	}
	return true;
}

Cost
frond_plan_cost(PlannerInfo *root, RelOptInfo *rel, const struct frond_push *push)
{
	int trips = push->has_in && !push->is_whole_key ? TRIPS_OF_IN : 1;
	Cost row = push->index && !is_covering(root, rel, push) ? COST_ROW_FOUND : COST_ROW;

	return trips * COST_TRIP + rows_read(root, rel, push) * row;
}

void
frond_plan_best(PlannerInfo *root, RelOptInfo *rel, const struct frond_table *t, List *clauses,
		struct frond_push *ret)
{
	struct frond_push push;
	Cost best;

	frond_push_make(rel, t, NULL, clauses, ret);
	if (ret->is_whole_key)
		return;
	best = frond_plan_cost(root, rel, ret);
	for (int i = 0; i < t->index_count; i++) {
		Cost cost;

		if (!frond_push_make_index(rel, t, &t->indexes[i], clauses, &push) ||
		    push.is_exact < ret->is_exact)
			continue;
		cost = frond_plan_cost(root, rel, &push);
		if (cost < best) {
			best = cost;
			*ret = push;
		}
	}
}

Cost
frond_plan_counted(double rows, double groups)
{
	double entries = Min(rows / groups, ENTRIES_MOST);

	return COST_TRIP + groups * (COST_ROW_FOUND + entries * COST_ENTRY);
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

/* The columns that the key or an index begins with, as attnums. */
static Bitmapset *
columns_found_by(const struct frond_table *t)
{
	Bitmapset *all = NULL;

	for (int i = 0; i < t->key_count; i++)
		if (t->key[i].attnum)
			all = bms_add_member(all, t->key[i].attnum);
	for (int i = 0; i < t->index_count; i++)
		for (int j = 0; j < t->indexes[i].count; j++)
			all = bms_add_member(all, t->indexes[i].columns[j].attnum);
	return all;
}

/* What the planner knows a column by. */
static Expr *
column_expression(PlannerInfo *root, RelOptInfo *rel, const struct frond_table *t,
		  AttrNumber attnum)
{
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
	Expr *e;
	int32 typmod;
	Oid type, collation;

	if (!frond_computed_of(t, attnum)) {
		get_atttypetypmodcoll(rte->relid, attnum, &type, &typmod, &collation);
		return (Expr *)makeVar(rel->relid, attnum, type, typmod, collation, 0);
	}
	e = frond_computed_expression(t, attnum, rel->relid);
	while (IsA(e, RelabelType))
		e = ((RelabelType *)e)->arg;
	return e;
}

/* Clauses of joins that compare a column of the key or of an index with columns of other tables. */
static List *
join_clauses(PlannerInfo *root, RelOptInfo *rel, const struct frond_table *t)
{
	Bitmapset *columns = columns_found_by(t);
	List *found = NIL;
	ListCell *cell;
	int at = -1;

	foreach (cell, rel->joininfo) {
		RestrictInfo *info = lfirst(cell);

		if (join_clause_is_movable_to(info, rel))
			found = lappend(found, info);
	}
	while (rel->has_eclass_joins && (at = bms_next_member(columns, at)) >= 0) {
		found = list_concat(found, generate_implied_equalities_for_column(
						   root, rel, matches_column,
						   column_expression(root, rel, t, (AttrNumber)at),
						   rel->lateral_referencers));
	}
	return found;
}

/* By the key and by each index, where columns of other tables say more than constants do. */
static void
add_parameterized_with(PlannerInfo *root, RelOptInfo *rel, const struct frond_table *t,
		       ParamPathInfo *param)
{
	List *clauses = list_concat_copy(rel->baserestrictinfo, param->ppi_clauses);

	for (int i = -1; i < t->index_count; i++) {
		const struct frond_index *index = i < 0 ? NULL : &t->indexes[i];
		struct frond_push push, alone;

		if (!index) {
			frond_push_make(rel, t, NULL, clauses, &push);
			frond_push_make(rel, t, NULL, rel->baserestrictinfo, &alone);
		} else {
			if (!frond_push_make_index(rel, t, index, clauses, &push))
				continue;
			frond_push_make(rel, t, index, rel->baserestrictinfo, &alone);
		}
		if (frond_push_is_one(&push))
			param->ppi_rows = 1;
		if (push.equal > alone.equal)
			path_add(root, rel, &push, param->ppi_rows, NIL, param->ppi_req_outer,
				 path_private(false, -1, index));
	}
}

/* Paths for each set of other tables whose columns say where to read in this one. */
static void
add_parameterized(PlannerInfo *root, RelOptInfo *rel, const struct frond_table *t)
{
	List *clauses = join_clauses(root, rel, t), *seen = NIL;
	ListCell *cell;

	foreach (cell, clauses) {
		RestrictInfo *info = lfirst(cell);
		Relids outer = bms_union(info->clause_relids, rel->lateral_relids);
		ParamPathInfo *param;

		outer = bms_del_member(outer, rel->relid);
		if (bms_is_empty(outer))
			continue;
		param = get_baserel_parampathinfo(root, rel, outer);
		if (list_member_ptr(seen, param))
			continue;
		seen = lappend(seen, param);
		add_parameterized_with(root, rel, t, param);
	}
}

static void
add_scan(PlannerInfo *root, RelOptInfo *rel, const struct frond_table *t,
	 const struct frond_push *push)
{
	double limit = limit_of(root, rel);
	bool reverse = false, in_order;

	in_order = root->query_pathkeys &&
		   frond_push_order(root, rel, t, push, root->query_pathkeys, &reverse);
	path_add(root, rel, push, rel->rows, in_order ? root->query_pathkeys : NIL,
		 rel->lateral_relids,
		 path_private(in_order && reverse, in_order || !root->query_pathkeys ? limit : -1,
			      push->index));
}

void
frond_plan_paths(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	const struct frond_table *t = frond_plan_table(root, rel);
	struct frond_push push;

	add_scan(root, rel, t, rel->fdw_private);
	for (int i = 0; i < t->index_count; i++)
		if (frond_push_make_index(rel, t, &t->indexes[i], rel->baserestrictinfo, &push))
			add_scan(root, rel, t, &push);
	add_parameterized(root, rel, t);
}

/* The columns that a scan has to fetch to give what `exprs` name, as attnums; 0: the hidden key. */
static List *
columns_wanted(RelOptInfo *rel, const struct frond_table *t, List *exprs, List *clauses)
{
	Bitmapset *used = NULL;
	List *wanted = NIL;
	ListCell *cell;
	bool all, by_key;

	pull_varattnos((Node *)exprs, rel->relid, &used);
	foreach (cell, clauses)
		pull_varattnos(lfirst(cell), rel->relid, &used);
	all = bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
	/* A row that is locked has a ctid that stands for its key. */
	by_key = bms_is_member(SelfItemPointerAttributeNumber - FirstLowInvalidHeapAttributeNumber,
			       used);
	for (int i = 1; i <= t->natts; i++)
		if (t->columns[i - 1].is_there &&
		    (all || (by_key && t->columns[i - 1].is_key) ||
		     bms_is_member(i - FirstLowInvalidHeapAttributeNumber, used)))
			wanted = lappend_int(wanted, i);
	if (t->has_hidden_key && by_key)
		wanted = lappend_int(wanted, 0);
	return wanted;
}

/* What a scan of the path asks of frond. `clauses`: without those that name no column. */
static const struct frond_push *
push_of_path(RelOptInfo *rel, const struct frond_table *t, const ForeignPath *path, List *clauses)
{
	int number = lthird_int(path->fdw_private);
	struct frond_push *push;

	/* By the key, and with no condition but the relation's own: it is known from its size. */
	if (!number && !path->path.param_info &&
	    list_length(clauses) == list_length(rel->baserestrictinfo))
		return rel->fdw_private;
	push = palloc(sizeof(*push));
	frond_push_make(rel, t, number ? frond_index_numbered(t, (uint32)number) : NULL, clauses,
			push);
	return push;
}

/*
 * Adds to each test its clause (FROND_TEST_CLAUSE). False, and nothing is added: a test is none of
 * the plan's conditions itself, but follows from one.
 */
static bool
note_clauses(List *tests, List *pushed, List *clauses)
{
	List *found = NIL;
	ListCell *test, *cell;

	foreach (cell, pushed) {
		int at = 0;

		while (at < list_length(clauses) && list_nth(clauses, at) != lfirst(cell))
			at++;
		if (at == list_length(clauses))
			return false;
		found = lappend_int(found, at);
	}
	forboth(test, tests, cell, found)
		lfirst(test) = lappend_int(lfirst(test), lfirst_int(cell));
	return true;
}

/* A scan of rows. `exprs`: what it has to give, beside what the conditions need; `how`: a path's
 * private list. */
static ForeignScan *
scan_make(RelOptInfo *rel, const struct frond_table *t, const struct frond_push *push, List *tlist,
	  List *exprs, List *clauses, const List *how, Plan *outer)
{
	List *tests, *values, *pushed;

	tests = frond_push_plan(push, &values, &pushed);
	/* PostgreSQL checks them with all others: they need not be checked again beside these. */
	if (note_clauses(tests, pushed, clauses))
		pushed = NIL;
	return make_foreignscan(
		tlist, clauses, rel->relid, values,
		list_make3(tests, columns_wanted(rel, t, exprs, clauses),
			   list_concat(list_copy(how), list_make1_int(push->is_whole_key))),
		NIL, pushed, outer);
}

ForeignScan *
frond_plan_scan(PlannerInfo *root, RelOptInfo *rel, Oid relid, ForeignPath *path, List *tlist,
		List *clauses, Plan *outer)
{
	const struct frond_table *t;

	if (IS_UPPER_REL(rel))
		return frond_plan_sums(root, rel, tlist, outer);
	t = frond_plan_table(root, rel);
	clauses = extract_actual_clauses(clauses, false);
	return scan_make(rel, t, push_of_path(rel, t, path, clauses), tlist, rel->reltarget->exprs,
			 clauses, path->fdw_private, outer);
}

ForeignScan *
frond_plan_point(RelOptInfo *rel, const struct frond_table *t, const struct frond_push *push,
		 List *tlist, List *clauses)
{
	ForeignScan *scan = scan_make(rel, t, push, tlist, tlist, clauses,
				      path_private(false, -1, NULL), NULL);

	scan->fs_server = t->server;
	scan->fs_relids = bms_copy(rel->relids);
	scan->scan.plan.startup_cost = COST_TRIP;
	scan->scan.plan.total_cost = COST_TRIP + COST_ROW + frond_plan_sent(1) + cpu_tuple_cost;
	scan->scan.plan.plan_rows = 1;
	return scan;
}
