/*
 * Aggregates that frond computes: counts, sums of integers, the least and the greatest. It answers
 * for the rows of a page, or for each group of them, and what the pages have is put together here.
 *
 * Groups are rows that lie together: those with the first columns of the key, or of an index,
 * equal. HAVING is a condition on what the plan gives, which PostgreSQL checks.
 *
 * Nobody looks at the rows again, so all conditions have to be pushed down. What depends on the
 * order of additions, as sums of floats do, is left to PostgreSQL.
 */
#include "frond_pg.h"
#include "frond_sums.h"
#include "frond_push.h"

#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planmain.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

enum sum_op {
	SUM_ROWS, /* count(*) */
	SUM_COUNT,
	SUM_INT8, /* the sum as a bigint */
	SUM_NUMERIC,
	SUM_AVG,
	SUM_LEAST,
	SUM_GREATEST,
};

/* What the plan has of an aggregate: a list of these numbers. */
enum sum_plan {
	SUM_PLAN_OP,
	SUM_PLAN_ATTNUM,
	SUM_PLAN_OPERATOR, /* that says which of two values comes first */
	SUM_PLAN_COLLATION,
};

/* ---- Which aggregates ---- */

/*
 * The operator by which an aggregate is the first one of its values, as min and max are. Those of
 * users may be something else for no values.
 */
static Oid
sort_operator(Oid aggregate)
{
	HeapTuple tuple;
	Oid opno = InvalidOid;

	if (aggregate >= FirstNormalObjectId)
		return InvalidOid;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	if (HeapTupleIsValid(tuple)) {
		opno = ((Form_pg_aggregate)GETSTRUCT(tuple))->aggsortop;
		ReleaseSysCache(tuple);
	}
	return opno;
}

/* Sums and averages of integers: of columns that have the function's own type. */
static bool
sum_of_ints(Oid aggregate, enum sum_op *ret_op, Oid *ret_type)
{
	static const struct {
		Oid aggregate;
		enum sum_op op;
		Oid type;
	} known[] = {
		{ F_SUM_INT2, SUM_INT8, INT2OID },    { F_SUM_INT4, SUM_INT8, INT4OID },
		{ F_SUM_INT8, SUM_NUMERIC, INT8OID }, { F_AVG_INT2, SUM_AVG, INT2OID },
		{ F_AVG_INT4, SUM_AVG, INT4OID },     { F_AVG_INT8, SUM_AVG, INT8OID },
	};

	for (size_t i = 0; i < lengthof(known); i++)
		if (known[i].aggregate == aggregate) {
			*ret_op = known[i].op;
			*ret_type = known[i].type;
			return true;
		}
	return false;
}

/* An aggregate as the plan has it; NIL: PostgreSQL has to compute it. */
static List *
sum_plan(RelOptInfo *rel, const struct frond_table *t, const Aggref *a)
{
	Expr *arg = list_length(a->args) == 1 ? ((TargetEntry *)linitial(a->args))->expr : NULL;
	const struct frond_column *c;
	AttrNumber attnum = 0;
	enum frond_op first;
	enum sum_op op;
	Oid type, opno;

	if (a->aggorder || a->aggdistinct || a->aggfilter || a->agglevelsup || a->aggvariadic ||
	    a->aggkind != AGGKIND_NORMAL || a->aggsplit != AGGSPLIT_SIMPLE)
		return NIL;
	if (a->aggfnoid == F_COUNT_ ||
	    (a->aggfnoid == F_COUNT_ANY && IsA(arg, Const) && !((Const *)arg)->constisnull))
		return list_make4_int(SUM_ROWS, 0, 0, 0);
	c = arg ? frond_push_column(rel, t, arg, &attnum) : NULL;
	if (!c)
		return NIL;
	if (a->aggfnoid == F_COUNT_ANY)
		return list_make4_int(SUM_COUNT, attnum, 0, 0);
	if (sum_of_ints(a->aggfnoid, &op, &type))
		return c->type == type ? list_make4_int(op, attnum, 0, 0) : NIL;
	opno = sort_operator(a->aggfnoid);
	if (!OidIsValid(opno) || !frond_push_orders(c, opno, a->inputcollid, &first))
		return NIL;
	return list_make4_int(first == FROND_LT ? SUM_LEAST : SUM_GREATEST, attnum, (int)opno,
			      (int)a->inputcollid);
}

/* ---- Groups ---- */

/* What the plan has of groups: these numbers, and then the column of each expression. */
enum groups_plan {
	GROUPS_PLAN_PREFIX, /* columns of the key or the index, from the first, that are equal */
	GROUPS_PLAN_FIRST,
};

/* Which column of the key, or of the index, GROUP BY names; -1: none, or by another equality. */
static int
group_key(RelOptInfo *rel, const struct frond_table *t, const struct frond_push *push,
	  const SortGroupClause *clause, Expr *e)
{
	const struct frond_key_column *columns;
	const struct frond_column *c;
	AttrNumber attnum;
	int count;

	c = IsA(e, Var) ? frond_push_column(rel, t, e, &attnum) : NULL;
	if (!c || !frond_push_equals(c, clause->eqop, ((Var *)e)->varcollid))
		return -1;
	columns = frond_push_columns(t, push, &count);
	for (int i = 0; i < count; i++)
		if (columns[i].attnum == attnum)
			return i;
	return -1;
}

/* Whether the scan has one value of this column of the key, or of the index. */
static bool
has_one_value(const struct frond_table *t, const struct frond_push *push, int key)
{
	const struct frond_key_column *columns;
	ListCell *cell;
	int count;

	if (key >= push->equal)
		return false;
	columns = frond_push_columns(t, push, &count);
	foreach (cell, push->tests) {
		const struct frond_test *test = lfirst(cell);

		if (test->place == FROND_IN && test->attnum == columns[key].attnum)
			return false;
	}
	return true;
}

/*
 * How many columns of the key, or of the index, rows of a group have equal, if these columns are
 * what it is grouped by: it has to be the first ones, but for those of which the scan has one
 * value. 0: rows of a group do not lie together.
 */
static int
group_prefix(const struct frond_table *t, const struct frond_push *push, const Bitmapset *keys)
{
	int left = bms_num_members(keys), prefix = 0, hash = push->index ? 0 : t->hash_count, count;
	const struct frond_key_column *columns = frond_push_columns(t, push, &count);

	for (; prefix < count && (left || prefix < hash); prefix++) {
		bool is_grouped = bms_is_member(prefix, keys);

		if (!is_grouped && !has_one_value(t, push, prefix))
			return 0;
		if (push->index &&
		    !frond_push_fits(push->index, &t->columns[columns[prefix].attnum - 1]))
			return 0;
		left -= is_grouped;
	}
	return left ? 0 : prefix;
}

/* GROUP BY as the plan has it, and its expressions; NIL: it is PostgreSQL's. */
static List *
groups_of(PlannerInfo *root, RelOptInfo *rel, const struct frond_table *t,
	  const struct frond_push *push, List **ret_expressions)
{
	Bitmapset *keys = NULL;
	List *plan = NIL;
	ListCell *cell;
	int prefix;

	*ret_expressions = NIL;
	foreach (cell, root->parse->groupClause) {
		SortGroupClause *clause = lfirst(cell);
		TargetEntry *entry = get_sortgroupclause_tle(clause, root->processed_tlist);
		int key = group_key(rel, t, push, clause, entry->expr);

		if (key < 0)
			return NIL;
		if (bms_is_member(key, keys))
			continue;
		keys = bms_add_member(keys, key);
		plan = lappend_int(plan, key);
		*ret_expressions = lappend(*ret_expressions, entry->expr);
	}
	prefix = group_prefix(t, push, keys);
	return prefix ? lcons_int(prefix, plan) : NIL;
}

/* ---- Plans ---- */

/* Of a relation of sums: what its paths need to become plans. */
struct upper {
	RelOptInfo *scanned;
	List *values; /* what the plan gives: expressions of GROUP BY, then Aggrefs */
	List *sums;   /* how the plan has each aggregate */
	List *groups; /* as the plan has them; NIL: there is one row of sums */
	List *having;
	bool reverse;
	struct frond_push push;
	double rows; /* groups, or one row */
	Cost cost;
};

/* Adds aggregates, all of which frond can compute, behind the groups. False: it cannot. */
static bool
add_aggregates(struct upper *u, const struct frond_table *t, List *expressions)
{
	List *found = pull_var_clause((Node *)expressions,
				      PVC_INCLUDE_AGGREGATES | PVC_INCLUDE_PLACEHOLDERS);
	ListCell *cell;

	foreach (cell, found) {
		Node *node = lfirst(cell);
		List *sum;

		if (list_member(u->values, node))
			continue;
		sum = IsA(node, Aggref) ? sum_plan(u->scanned, t, (Aggref *)node) : NIL;
		if (!sum)
			return false;
		u->values = lappend(u->values, node);
		u->sums = lappend(u->sums, sum);
	}
	return true;
}

/* What frond is asked for; NULL: it cannot compute it. */
static struct upper *
upper_make(PlannerInfo *root, RelOptInfo *scanned, RelOptInfo *rel, const struct frond_table *t,
	   const struct frond_push *push)
{
	const Query *query = root->parse;
	struct upper *u = palloc0(sizeof(*u));

	u->scanned = scanned;
	u->push = *push;
	u->rows = 1;
	u->having = (List *)query->havingQual;
	if (query->groupClause) {
		u->groups = groups_of(root, scanned, t, push, &u->values);
		if (!u->groups)
			return NULL;
	}
	if (contain_subplans((Node *)u->having) || !add_aggregates(u, t, rel->reltarget->exprs) ||
	    !add_aggregates(u, t, u->having))
		return NULL;
	return u->groups || u->sums ? u : NULL;
}

/* Whether frond counts the entries of groups, most of which it need not read for that. */
static bool
counts_entries(PlannerInfo *root, const struct frond_table *t, const struct upper *u)
{
	Oid user = frond_user_of(planner_rt_fetch(u->scanned->relid, root));
	ListCell *cell;
	bool is_exact;

	foreach (cell, u->sums)
		if (linitial_int(lfirst(cell)) != SUM_ROWS)
			return false;
	foreach (cell, u->push.tests)
		if (((const struct frond_test *)lfirst(cell))->place == FROND_FILTER)
			return false;
	/* A table that knows how many rows it has. */
	return frond_table_rows(t, user, &is_exact) >= 0 && is_exact;
}

/* What it costs that frond computes all of it. */
static Cost
upper_cost(PlannerInfo *root, const struct frond_table *t, const struct upper *u)
{
	if (u->groups && u->push.index && counts_entries(root, t, u))
		return frond_plan_counted(u->scanned->rows, u->rows);
	return frond_plan_cost(root, u->scanned, &u->push);
}

/* By the key, or by an index; NULL: frond cannot compute it so. */
static struct upper *
upper_try(PlannerInfo *root, RelOptInfo *scanned, RelOptInfo *rel, const struct frond_table *t,
	  const struct frond_push *push)
{
	struct upper *u;

	/* Many whole keys are got in one request. */
	if (!push->is_exact || (push->has_in && push->is_whole_key))
		return NULL;
	u = upper_make(root, scanned, rel, t, push);
	if (!u)
		return NULL;
	if (u->groups) {
		List *by = list_copy_head(u->values, list_length(u->groups) - GROUPS_PLAN_FIRST);

		u->rows = estimate_num_groups(root, by, scanned->rows, NULL, NULL);
	}
	u->cost = upper_cost(root, t, u);
	return u;
}

/* What costs the least; NULL: frond cannot compute it. */
static struct upper *
upper_best(PlannerInfo *root, RelOptInfo *scanned, RelOptInfo *rel, const struct frond_table *t)
{
	struct frond_push push;
	struct upper *best;

	if (!root->parse->groupClause) {
		frond_plan_best(root, scanned, t, scanned->baserestrictinfo, &push);
		return upper_try(root, scanned, rel, t, &push);
	}
	frond_push_make(scanned, t, NULL, scanned->baserestrictinfo, &push);
	best = upper_try(root, scanned, rel, t, &push);
	for (int i = 0; i < t->index_count; i++) {
		const struct frond_index *index = &t->indexes[i];
		struct upper *u;

		if (!index->has_groups ||
		    !frond_push_make_index(scanned, t, index, scanned->baserestrictinfo, &push))
			continue;
		u = upper_try(root, scanned, rel, t, &push);
		if (u && (!best || u->cost < best->cost))
			best = u;
	}
	return best;
}

void
frond_plan_upper(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *scanned, RelOptInfo *rel,
		 void *extra)
{
	const Query *query = root->parse;
	const struct frond_table *t;
	List *pathkeys = NIL;
	struct upper *u;

	if (stage != UPPERREL_GROUP_AGG || rel->fdw_private ||
	    scanned->reloptkind != RELOPT_BASEREL || !(query->hasAggs || query->groupClause) ||
	    query->groupingSets || scanned->lateral_relids ||
	    bms_membership(root->all_baserels) != BMS_SINGLETON ||
	    /* Rows of its children, which PostgreSQL keeps, belong to the sums. */
	    planner_rt_fetch(scanned->relid, root)->inh)
		return;
	t = frond_plan_table(root, scanned);
	u = upper_best(root, scanned, rel, t);
	if (!u)
		return;
	rel->fdw_private = u;
	/* frond counts entries forwards, and groups are few to sort. */
	if (u->groups && root->sort_pathkeys &&
	    frond_push_order(root, scanned, t, &u->push, root->sort_pathkeys, &u->reverse) &&
	    !(u->reverse && u->push.index))
		pathkeys = root->sort_pathkeys;
	else
		u->reverse = false;
	add_path(rel, (Path *)create_foreign_upper_path(root, rel, rel->reltarget, u->rows, u->cost,
							u->cost + frond_plan_sent(u->rows) +
								u->rows * cpu_tuple_cost,
							pathkeys, NULL, NIL));
}

ForeignScan *
frond_plan_sums(PlannerInfo *root, RelOptInfo *rel, List *tlist, Plan *outer)
{
	const struct upper *u = rel->fdw_private;
	RelOptInfo *scanned = u->scanned;
	const struct frond_index *index = u->push.index;
	List *values, *pushed, *tests, *private;

	tests = frond_push_plan(&u->push, &values, &pushed);
	/* PostgreSQL does not know these as conditions of the plan: they are of a table alone. */
	pushed = copyObject(pushed);
	ChangeVarNodes((Node *)pushed, (int)scanned->relid, 1, 0);
	private = list_make5(tests, NIL,
			     list_make4_int(u->reverse, 0, index ? (int)index->number : 0, false),
			     u->sums, pushed);
	private = lappend(private, u->groups);
	return make_foreignscan(tlist, u->having, 0, values, private,
				add_to_flat_tlist(NIL, u->values), NIL, outer);
}

/* ---- Adding up ---- */

struct sum {
	enum sum_op op;
	const struct frond_column *column;
	FmgrInfo comes_first;
	Oid collation;
	int at; /* of what is asked: its first value */
	int64 count;
	bool has_value;
	Datum value; /* a numeric, or the least or greatest so far */
};

/* A column of the key, or of the index, that rows are grouped by. */
struct group_column {
	int key;
	const struct frond_column *column;
};

struct frond_sums {
	struct sum *all;
	int count;
	int64 rows;
	int prefix;              /* columns that a group has equal; 0: there is one row of sums */
	struct frows_value *key; /* these of the group */
	struct group_column *groups;
	int group_count;
	uint32 *columns; /* what is asked of frond */
	enum frows_sum *ops;
	int asked;
	struct frows_value *answer;
};

static void
ask(struct frond_sums *s, const struct sum *sum, enum frows_sum op)
{
	s->columns[s->asked] = sum->column->id;
	s->ops[s->asked++] = op;
}

static void
sum_init(struct frond_sums *s, struct sum *sum, List *plan, const struct frond_table *t)
{
	sum->op = list_nth_int(plan, SUM_PLAN_OP);
	sum->at = s->asked;
	if (sum->op == SUM_ROWS)
		return;
	sum->column = &t->columns[list_nth_int(plan, SUM_PLAN_ATTNUM) - 1];
	switch (sum->op) {
	case SUM_ROWS:
		break;
	case SUM_COUNT:
		ask(s, sum, FROWS_COUNT);
		break;
	case SUM_INT8:
	case SUM_NUMERIC:
		ask(s, sum, FROWS_SUM);
		break;
	case SUM_AVG:
		ask(s, sum, FROWS_SUM);
		ask(s, sum, FROWS_COUNT);
		break;
	case SUM_LEAST:
	case SUM_GREATEST:
		ask(s, sum, sum->op == SUM_LEAST ? FROWS_LEAST : FROWS_GREATEST);
		fmgr_info(get_opcode((Oid)list_nth_int(plan, SUM_PLAN_OPERATOR)),
			  &sum->comes_first);
		sum->collation = (Oid)list_nth_int(plan, SUM_PLAN_COLLATION);
		break;
	}
}

static void
groups_init(struct frond_sums *s, List *plan, const struct frond_table *t,
	    const struct frond_index *index)
{
	s->prefix = list_nth_int(plan, GROUPS_PLAN_PREFIX);
	s->group_count = list_length(plan) - GROUPS_PLAN_FIRST;
	s->key = palloc((size_t)s->prefix * sizeof(*s->key));
	s->groups = palloc((size_t)s->group_count * sizeof(*s->groups));
	for (int i = 0; i < s->group_count; i++) {
		int key = list_nth_int(plan, GROUPS_PLAN_FIRST + i);

		s->groups[i] = (struct group_column){
			key, index ? &t->columns[index->columns[key].attnum - 1]
				   : frond_key_column(t, key)
		};
	}
}

struct frond_sums *
frond_sums_new(List *plans, List *groups, const struct frond_table *t,
	       const struct frond_index *index)
{
	struct frond_sums *s = palloc0(sizeof(*s));
	size_t most = 2 * (size_t)list_length(plans) + 1;
	ListCell *cell;

	s->all = palloc0(most * sizeof(*s->all));
	s->columns = palloc(most * sizeof(*s->columns));
	s->ops = palloc(most * sizeof(*s->ops));
	s->answer = palloc(most * sizeof(*s->answer));
	foreach (cell, plans)
		sum_init(s, &s->all[s->count++], lfirst(cell), t);
	if (groups)
		groups_init(s, groups, t, index);
	return s;
}

int
frond_sums_group_values(const struct frond_sums *s)
{
	return s->prefix ? s->prefix + 1 + s->asked : 0;
}

void
frond_sums_ask(const struct frond_sums *s, struct frows_scan *scan)
{
	scan->columns = s->columns;
	scan->sums = s->ops;
	scan->column_count = s->asked;
	scan->only_count = s->asked == 0;
	scan->groups = (size_t)s->prefix;
}

void
frond_sums_clear(struct frond_sums *s)
{
	s->rows = 0;
	for (int i = 0; i < s->count; i++) {
		s->all[i].count = 0;
		s->all[i].has_value = false;
	}
}

static void
sum_add_numeric(struct sum *sum, struct frows_value v)
{
	Datum more = DirectFunctionCall3(numeric_in, CStringGetDatum(pnstrdup(v.ptr, v.len)),
					 ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));

	sum->value = sum->has_value ? DirectFunctionCall2(numeric_add, sum->value, more) : more;
	sum->has_value = true;
}

static void
sum_add_best(struct sum *sum, struct frows_value v)
{
	Datum other = frond_value_get(sum->column, v);

	if (!sum->has_value ||
	    DatumGetBool(FunctionCall2Coll(&sum->comes_first, sum->collation, other, sum->value)))
		sum->value = other;
	sum->has_value = true;
}

static void
sums_add(struct frond_sums *s, int64 rows, const struct frows_value *answer)
{
	s->rows += rows;
	for (int i = 0; i < s->count; i++) {
		struct sum *sum = &s->all[i];
		const struct frows_value *v = &answer[sum->at];

		if (sum->op == SUM_COUNT)
			sum->count += frows_int(v[0]);
		if (sum->op == SUM_AVG)
			sum->count += frows_int(v[1]);
		if (sum->op == SUM_ROWS || sum->op == SUM_COUNT || v->len < 0)
			continue;
		if (sum->op == SUM_LEAST || sum->op == SUM_GREATEST)
			sum_add_best(sum, *v);
		else
			sum_add_numeric(sum, *v);
	}
}

void
frond_sums_add(struct frond_sums *s, struct frows *c)
{
	int64 rows = (int64)frows_scan_sums(c, s->answer);

	sums_add(s, rows, s->answer);
}

void
frond_sums_begin_group(struct frond_sums *s, const struct frows_value *values)
{
	frond_sums_clear(s);
	for (int i = 0; i < s->prefix; i++)
		s->key[i] = frond_value_copy(values[i]);
}

bool
frond_sums_is_group(const struct frond_sums *s, const struct frows_value *values)
{
	for (int i = 0; i < s->prefix; i++)
		if (values[i].len != s->key[i].len ||
		    (values[i].len > 0 &&
		     memcmp(values[i].ptr, s->key[i].ptr, (size_t)values[i].len) != 0))
			return false;
	return true;
}

void
frond_sums_add_group(struct frond_sums *s, const struct frows_value *values)
{
	sums_add(s, frows_int(values[s->prefix]), values + s->prefix + 1);
}

static Datum
sum_result(const struct frond_sums *s, const struct sum *sum)
{
	switch (sum->op) {
	case SUM_ROWS:
		return Int64GetDatum(s->rows);
	case SUM_COUNT:
		return Int64GetDatum(sum->count);
	case SUM_INT8:
		return DirectFunctionCall1(numeric_int8, sum->value);
	case SUM_AVG:
		return DirectFunctionCall2(numeric_div, sum->value,
					   NumericGetDatum(int64_to_numeric(sum->count)));
	case SUM_NUMERIC:
	case SUM_LEAST:
	case SUM_GREATEST:
		break;
	}
	return sum->value;
}

void
frond_sums_store(const struct frond_sums *s, TupleTableSlot *slot)
{
	int at = 0;

	for (; at < s->group_count; at++) {
		const struct group_column *g = &s->groups[at];

		slot->tts_isnull[at] = s->key[g->key].len < 0;
		if (!slot->tts_isnull[at])
			slot->tts_values[at] = frond_value_get(g->column, s->key[g->key]);
	}
	for (int i = 0; i < s->count; i++, at++) {
		const struct sum *sum = &s->all[i];

		slot->tts_isnull[at] = !sum->has_value && sum->op != SUM_ROWS &&
				       sum->op != SUM_COUNT;
		slot->tts_values[at] = slot->tts_isnull[at] ? (Datum)0 : sum_result(s, sum);
	}
	ExecStoreVirtualTuple(slot);
}
