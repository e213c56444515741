/*
 * What indexes compute: expressions, and conditions that frond does not know. frond computes
 * nothing, so each row keeps the values in columns of frond's that PostgreSQL does not see, and
 * that the index is of. Whoever writes a row by this PostgreSQL writes them with it. Their
 * expressions are those that PostgreSQL's catalog has of the index.
 */
#include "frond_pg.h"
#include "frond_catalog.h"
#include "frond_computed.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/pg_index.h"
#include "executor/executor.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteManip.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#define NAME_PREFIX "frond_computed_"

enum {
	SEND_BYTES = 256 * 1024, /* of a request that fills columns, about */
};

bool
frond_computed_is(const char *name, size_t len)
{
	return len > strlen(NAME_PREFIX) && memcmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) == 0;
}

/* ---- What a table has of them ---- */

/* Makes room for the table's columns, with those that are computed at the end. */
void
frond_computed_find(const struct frows_table *f, struct frond_table *t)
{
	for (size_t i = 0; i < f->count; i++)
		t->computed_count += frond_computed_is(f->columns[i].name.ptr,
						       f->columns[i].name.len);
	t->columns = palloc0((t->natts + t->computed_count + 1) * sizeof(*t->columns));
	t->computed = palloc0((t->computed_count + 1) * sizeof(*t->computed));
	for (size_t i = 0, at = 0; i < f->count; i++) {
		const struct frows_column *from = &f->columns[i];
		struct frond_column *to = &t->columns[t->natts + at];

		if (!frond_computed_is(from->name.ptr, from->name.len))
			continue;
		to->id = from->id;
		to->kind = from->kind;
		to->ordered = from->ordered;
		t->computed[at++].name = pnstrdup(from->name.ptr, from->name.len);
	}
}

/* The expressions of an index, or with `is_condition` its condition, as the planner has them. */
static List *
catalog_expressions(Oid index, bool is_condition)
{
	HeapTuple tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	List *ret = NIL;
	Datum stored;
	bool is_null = true;

	if (!HeapTupleIsValid(tuple))
		return NIL;
	stored = SysCacheGetAttr(INDEXRELID, tuple,
				 is_condition ? Anum_pg_index_indpred : Anum_pg_index_indexprs,
				 &is_null);
	if (!is_null)
		ret = (List *)eval_const_expressions(NULL,
						     stringToNode(TextDatumGetCString(stored)));
	ReleaseSysCache(tuple);
	if (ret && is_condition)
		ret = make_ands_implicit(canonicalize_qual((Expr *)ret, false));
	fix_opfuncids((Node *)ret);
	return ret;
}

/* The computed column with that id in frond; less than 0: there is none. */
static int
computed_at(const struct frond_table *t, uint32 id)
{
	for (int i = 0; i < t->computed_count; i++)
		if (t->columns[t->natts + i].id == id)
			return i;
	return -1;
}

static void
computed_set(struct frond_table *t, int at, int index, Expr *expression)
{
	struct frond_column *c = &t->columns[t->natts + at];
	struct frond_column as = { 0 };
	Bitmapset *used = NULL;
	int attnum = -1;

	frond_column_set_type(&as, exprType((Node *)expression), exprTypmod((Node *)expression));
	if (as.kind != c->kind)
		return;
	as.id = c->id;
	as.ordered = c->ordered;
	as.is_there = true;
	*c = as;
	pull_varattnos((Node *)expression, 1, &used);
	while ((attnum = bms_next_member(used, attnum)) >= 0)
		t->computed[at].used = bms_add_member(t->computed[at].used,
						      attnum + FirstLowInvalidHeapAttributeNumber);
	t->computed[at].expression = expression;
	t->computed[at].index = index;
}

List *
frond_computed_load(struct frond_table *t, int index, Oid oid, const struct frows_index *from)
{
	List *expressions = NIL, *condition;
	const ListCell *next;
	int at;

	for (size_t i = 0; i < from->count && !expressions; i++)
		if (computed_at(t, from->columns[i].id) >= 0)
			expressions = catalog_expressions(oid, false);
	next = list_head(expressions);
	for (size_t i = 0; i < from->count && next; i++) {
		at = computed_at(t, from->columns[i].id);
		if (at < 0)
			continue;
		computed_set(t, at, index, lfirst(next));
		next = lnext(expressions, next);
	}
	at = from->condition_count ? computed_at(t, from->conditions[0].column) : -1;
	condition = at < 0 ? NIL : catalog_expressions(oid, true);
	if (condition)
		computed_set(t, at, index, make_ands_explicit(condition));
	return condition;
}

/* Columns without an expression are another PostgreSQL's, or of an index that was dropped. */
void
frond_computed_check(struct frond_table *t)
{
	const char *made = frond_option(GetForeignTable(t->relid)->options, FROND_OPTION_MADE);

	if (made && strcmp(made, frond_database_id(MyDatabaseId)) == 0)
		return;
	for (int i = 0; i < t->computed_count; i++)
		t->is_computed_elsewhere |= !t->computed[i].expression &&
					    !frond_link_drops(t->schema, t->table,
							      t->computed[i].name);
}

Expr *
frond_computed_expression(const struct frond_table *t, AttrNumber attnum, Index rti)
{
	Expr *e = copyObject(t->computed[attnum - t->natts - 1].expression);

	if (rti != 1)
		ChangeVarNodes((Node *)e, 1, (int)rti, 0);
	return e;
}

/* ---- Values ---- */

struct frond_computing {
	const struct frond_table *t;
	EState *estate;
	ExprState **states;
};

struct frond_computing *
frond_computing_new(const struct frond_table *t, EState *estate)
{
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	struct frond_computing *c = palloc0(sizeof(*c));

	c->t = t;
	c->estate = estate;
	c->states = palloc0((t->computed_count + 1) * sizeof(*c->states));
	for (int i = 0; i < t->computed_count; i++)
		if (t->computed[i].expression)
			c->states[i] = ExecPrepareExpr(t->computed[i].expression, estate);
	MemoryContextSwitchTo(old);
	return c;
}

/* The value, copied into the current memory context. */
static struct frows_value
evaluate(const struct frond_column *c, ExprState *state, ExprContext *context, TupleTableSlot *slot)
{
	struct frows_value v = { NULL, FROWS_NULL };
	MemoryContext own = CurrentMemoryContext;
	bool is_null;
	Datum d;

	context->ecxt_scantuple = slot;
	MemoryContextSwitchTo(context->ecxt_per_tuple_memory);
	d = ExecEvalExpr(state, context, &is_null);
	if (!is_null)
		v = frond_value_put(c, d);
	MemoryContextSwitchTo(own);
	return frond_value_copy(v);
}

struct frows_value
frond_computing_value(struct frond_computing *c, AttrNumber attnum, TupleTableSlot *slot)
{
	return evaluate(&c->t->columns[attnum - 1], c->states[attnum - c->t->natts - 1],
			GetPerTupleExprContext(c->estate), slot);
}

/* ---- Making columns, and filling them in the rows that are there ---- */

static int
next_number(const struct frond_table *t)
{
	int last = 0;

	for (int i = 0; i < t->computed_count; i++)
		last = Max(last, atoi(t->computed[i].name + strlen(NAME_PREFIX)));
	return last + 1;
}

void
frond_computed_make(struct frows *c, const struct frond_table *t, List *expressions, uint32 *ret)
{
	int count = list_length(expressions), number = next_number(t);
	struct frows_new *columns = palloc0(count * sizeof(*columns));
	struct frows_table f;
	ListCell *cell;

	foreach (cell, expressions)
		columns[foreach_current_index(cell)] = (struct frows_new){
			.name = psprintf("%s%d", NAME_PREFIX, number++),
			.kind = frond_kind_of(exprType(lfirst(cell))),
			.role = FROWS_REGULAR,
		};
	if (!frows_table_alter(c, t->schema, t->table, columns, count, NULL, 0, NULL, 0))
		frond_fail(c);
	for (int i = 0; i < count; i++)
		frond_link_made(t->server, GetUserId(), t->schema, t->table, columns[i].name, NULL,
				0);
	if (!frows_table(c, t->schema, t->table, &f))
		frond_fail(c);
	for (int i = 0; i < count; i++) {
		const struct frows_column *made = frond_stored_column(&f, columns[i].name);

		/* No column has the number 0, if others have dropped it meanwhile. */
		ret[i] = made ? made->id : 0;
	}
	frows_table_free(&f);
	frond_table_forget();
}

/* Columns that are filled. */
struct filling {
	const struct frond_table *t;
	int count;
	const uint32 *ids;
	ExprState **states;
	struct frond_column *as;
	ExprContext *context;
	TupleTableSlot *slot;
	int read_count; /* columns that are read: those of the key first */
	uint32 *read;
	AttrNumber *attnums; /* 0: the hidden key */
	MemoryContext page;
};

static void
filling_init(struct filling *f, Relation rel, EState *estate, List *expressions)
{
	Bitmapset *used = NULL;
	ListCell *cell;
	int at = -1;

	f->count = list_length(expressions);
	f->states = palloc(f->count * sizeof(*f->states));
	f->as = palloc0(f->count * sizeof(*f->as));
	f->read = palloc((f->t->natts + FROWS_KEY_COLUMNS) * sizeof(*f->read));
	f->attnums = palloc((f->t->natts + FROWS_KEY_COLUMNS) * sizeof(*f->attnums));
	f->context = GetPerTupleExprContext(estate);
	f->slot = MakeSingleTupleTableSlot(RelationGetDescr(rel), &TTSOpsVirtual);
	f->page = AllocSetContextCreate(CurrentMemoryContext, "rows whose values are computed",
					ALLOCSET_DEFAULT_SIZES);
	foreach (cell, expressions) {
		Node *e = lfirst(cell);
		int i = foreach_current_index(cell);

		f->states[i] = ExecPrepareExpr((Expr *)e, estate);
		frond_column_set_type(&f->as[i], exprType(e), exprTypmod(e));
		pull_varattnos(e, 1, &used);
	}
	for (int i = 0; i < f->t->key_count; i++) {
		f->attnums[f->read_count] = f->t->key[i].attnum;
		f->read[f->read_count++] = frond_key_column(f->t, i)->id;
	}
	while ((at = bms_next_member(used, at)) >= 0) {
		AttrNumber attnum = (AttrNumber)(at + FirstLowInvalidHeapAttributeNumber);

		if (f->t->columns[attnum - 1].is_key)
			continue;
		f->attnums[f->read_count] = attnum;
		f->read[f->read_count++] = f->t->columns[attnum - 1].id;
	}
}

/* What of a row is to be written: its key and the values. */
static struct frows_value *
fill_row(struct filling *f, const struct frows_value *row)
{
	int keys = f->t->key_count;
	struct frows_value *ret = palloc((keys + f->count) * sizeof(*ret));

	ExecClearTuple(f->slot);
	memset(f->slot->tts_isnull, true, f->t->natts);
	for (int i = 0; i < f->read_count; i++) {
		AttrNumber attnum = f->attnums[i];

		if (!attnum || row[i].len < 0)
			continue;
		f->slot->tts_values[attnum - 1] = frond_value_get(&f->t->columns[attnum - 1],
								  row[i]);
		f->slot->tts_isnull[attnum - 1] = false;
	}
	ExecStoreVirtualTuple(f->slot);
	for (int i = 0; i < keys; i++)
		ret[i] = frond_value_copy(row[i]);
	for (int i = 0; i < f->count; i++)
		ret[keys + i] = evaluate(&f->as[i], f->states[i], f->context, f->slot);
	ResetExprContext(f->context);
	return ret;
}

static void
rows_write(struct frows *c, const struct filling *f, List *rows)
{
	const struct frows_of of = frond_table_of(f->t);
	bool is_open = false;
	ListCell *cell;

	foreach (cell, rows) {
		const struct frows_value *row = lfirst(cell);

		if (!is_open)
			frows_write(c, &of, f->ids, f->count);
		frows_write_row(c, FROWS_UPDATE, row, f->t->key_count, row + f->t->key_count);
		is_open = frows_request_bytes(c) < SEND_BYTES;
		if ((!is_open || !lnext(rows, cell)) && !frows_write_run(c))
			frond_fail(c);
	}
}

void
frond_computed_fill(Relation rel, List *expressions, const uint32 *ids)
{
	const struct frond_table *t = frond_table_get(RelationGetRelid(rel), GetUserId());
	/* Nobody reads the columns yet. So they are filled page by page, however many rows there
	 * are, but in a transaction that has written: only that sees the rows. */
	bool inside = frond_link_has_written(t->server, GetUserId());
	struct filling f = { .t = t, .ids = ids };
	struct frows_scan scan = { .of = frond_table_of(t) };
	struct frows_value place = { NULL, 0 };
	EState *estate = CreateExecutorState();
	bool more = true;

	filling_init(&f, rel, estate, expressions);
	scan.columns = f.read;
	scan.column_count = f.read_count;
	while (more) {
		struct frows *c = inside ? frond_link_inside(t->server, GetUserId(), true)
					 : frond_link_beside(t->server, GetUserId());
		struct frows_value *row = palloc((f.read_count + 1) * sizeof(*row));
		MemoryContext own = CurrentMemoryContext;
		List *rows = NIL;

		CHECK_FOR_INTERRUPTS();
		if (!frows_scan_page_at(c, &scan, place))
			frond_fail(c);
		MemoryContextSwitchTo(f.page);
		while (frows_scan_row(c, row))
			rows = lappend(rows, fill_row(&f, row));
		MemoryContextSwitchTo(own);
		more = frows_has_more(c);
		place = frond_value_copy(frows_scan_place(c));
		rows_write(c, &f, rows);
		MemoryContextReset(f.page);
	}
	ExecDropSingleTupleTableSlot(f.slot);
	FreeExecutorState(estate);
}
