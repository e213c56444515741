/*
 * A table that has rows gets another primary key, or none, or other types of columns. The key is
 * the place of a row in frond, and the type of a column says how its values are kept. So the table
 * is made anew, within frond's transaction: it reads all rows, takes the table out, makes it and
 * its indexes as they shall be and writes the rows again. A transaction that changes the table
 * meanwhile conflicts with this one.
 */
#include "frond_pg.h"
#include "frond_catalog.h"
#include "frond_computed.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_constraint.h"
#include "executor/executor.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

enum {
	REMAKE_BYTES = 10 * 1024 *
		       1024,     /* of rows: what a transaction may have (KV_LIMIT_TX_BYTES) */
	SEND_BYTES = 256 * 1024, /* of a request, about */
	NUMBER_BYTES = 8,        /* of a hidden key */
};

/* The rows of a table, in memory. */
struct kept {
	const struct frows_value **rows; /* each by attnum - 1 */
	size_t count, room;
	size_t bytes;
};

struct frond_remake {
	const struct frond_table *t; /* as it was */
	List *indexes;               /* of IndexStmt */
	List *retypes;
	struct kept kept;
};

/* What computes the values of columns that get another type. */
struct converter {
	const struct frond_table *t;
	Relation rel;
	List *retypes;
	EState *state;
	TupleTableSlot *slot;
	ExprState **expressions;
	struct frond_column *columns;
};

/* ---- Values of another type ---- */

static void
converter_init(struct converter *c, const struct frond_table *t, Relation rel, List *retypes)
{
	ListCell *cell;

	*c = (struct converter){ .t = t, .rel = rel, .retypes = retypes };
	if (!retypes)
		return;
	c->state = CreateExecutorState();
	c->slot = MakeSingleTupleTableSlot(CreateTupleDescCopy(RelationGetDescr(rel)),
					   &TTSOpsVirtual);
	c->expressions = palloc(list_length(retypes) * sizeof(*c->expressions));
	c->columns = palloc0(list_length(retypes) * sizeof(*c->columns));
	foreach (cell, retypes) {
		const struct frond_retype *r = lfirst(cell);
		int i = foreach_current_index(cell);

		c->expressions[i] = ExecPrepareExpr((Expr *)r->expression, c->state);
		frond_column_set_type(&c->columns[i], r->type, r->typmod);
	}
}

static void
converter_fini(struct converter *c)
{
	if (!c->retypes)
		return;
	ExecDropSingleTupleTableSlot(c->slot);
	FreeExecutorState(c->state);
}

static void
slot_fill(const struct frond_table *t, TupleTableSlot *slot, const struct frows_value *row)
{
	ExecClearTuple(slot);
	for (int i = 0; i < t->natts; i++) {
		slot->tts_isnull[i] = !t->columns[i].is_there || row[i].len < 0;
		slot->tts_values[i] = slot->tts_isnull[i] ? (Datum)0
							  : frond_value_get(&t->columns[i], row[i]);
	}
	ExecStoreVirtualTuple(slot);
}

/* Changes the values of a row, in memory of the caller's. */
static void
row_convert(struct converter *c, struct frows_value *row)
{
	ExprContext *context = GetPerTupleExprContext(c->state);
	MemoryContext own = MemoryContextSwitchTo(GetPerTupleMemoryContext(c->state));
	ListCell *cell;

	ResetPerTupleExprContext(c->state);
	slot_fill(c->t, c->slot, row);
	context->ecxt_scantuple = c->slot;
	foreach (cell, c->retypes) {
		const struct frond_retype *r = lfirst(cell);
		int i = foreach_current_index(cell);
		struct frows_value v = { NULL, FROWS_NULL };
		bool is_null;
		Datum d = ExecEvalExpr(c->expressions[i], context, &is_null);

		if (!is_null)
			v = frond_value_put(&c->columns[i], d);
		else if (c->t->columns[r->attnum - 1].not_null)
			ereport(ERROR, errcode(ERRCODE_NOT_NULL_VIOLATION),
				errmsg("column \"%s\" of relation \"%s\" contains null values",
				       get_attname(c->t->relid, r->attnum, false),
				       RelationGetRelationName(c->rel)));
		MemoryContextSwitchTo(own);
		row[r->attnum - 1] = frond_value_copy(v);
		MemoryContextSwitchTo(GetPerTupleMemoryContext(c->state));
	}
	MemoryContextSwitchTo(own);
}

/* ---- Taking the rows out ---- */

static void
kept_add(struct kept *k, struct converter *how, const struct frows_value *values)
{
	const struct frond_table *t = how->t;
	struct frows_value *row = palloc0((t->natts + 1) * sizeof(*row));
	int n = 0;

	for (int i = 0; i < t->natts; i++)
		if (t->columns[i].is_there)
			row[i] = frond_value_copy(values[n++]);
	if (how->retypes)
		row_convert(how, row);
	for (int i = 0; i < t->natts; i++)
		k->bytes += sizeof(*row) + Max(row[i].len, 0);
	if (k->bytes > REMAKE_BYTES)
		ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			errmsg("the rows of \"%s\" are too many for another %s", t->table,
			       how->retypes ? "type of a column" : "primary key"),
			errdetail("They are written anew in one transaction, which may have %d "
				  "bytes.",
				  REMAKE_BYTES),
			how->retypes ? errhint("Add a column of that type, and fill it with "
					       "frond.bulk_load = on.")
				     : errhint("Make a table with the key, and copy the rows into "
					       "it with frond.bulk_load = on."));
	if (k->count == k->room) {
		k->room = k->room ? 2 * k->room : 1024;
		k->rows = k->rows ? repalloc(k->rows, k->room * sizeof(*k->rows))
				  : palloc(k->room * sizeof(*k->rows));
	}
	k->rows[k->count++] = row;
}

static void
rows_keep(struct converter *how, struct kept *ret)
{
	const struct frond_table *t = how->t;
	struct frows_value *values = palloc((t->natts + 1) * sizeof(*values));
	uint32 *columns = palloc((t->natts + 1) * sizeof(*columns));
	struct frows_scan scan = { .of = frond_table_of(t), .columns = columns };
	struct frows_value place = { NULL, 0 };
	bool more = true;

	*ret = (struct kept){ NULL };
	for (int i = 0; i < t->natts; i++)
		if (t->columns[i].is_there)
			columns[scan.column_count++] = t->columns[i].id;
	while (more) {
		struct frows *c = frond_link_inside(t->server, GetUserId(), false);

		CHECK_FOR_INTERRUPTS();
		if (!frows_scan_page_at(c, &scan, place))
			frond_fail(c);
		while (frows_scan_row(c, values))
			kept_add(ret, how, values);
		more = frows_has_more(c);
		place = frond_value_copy(frows_scan_place(c));
	}
}

static void
check_nulls(Relation rel, const struct frond_key_spec *key, const struct kept *k)
{
	ListCell *cell;

	foreach (cell, key->columns) {
		const char *name = strVal(lfirst(cell));
		AttrNumber attnum = get_attnum(RelationGetRelid(rel), name);

		for (size_t i = 0; attnum > 0 && i < k->count; i++)
			if (k->rows[i][attnum - 1].len < 0)
				ereport(ERROR, errcode(ERRCODE_NOT_NULL_VIOLATION),
					errmsg("column \"%s\" of relation \"%s\" contains null "
					       "values",
					       name, RelationGetRelationName(rel)));
	}
}

/* ---- Writing them again ---- */

static void
fail_equal(Relation rel, const struct frond_table *t, const struct frows_value *row)
{
	StringInfoData names, values;

	initStringInfo(&names);
	initStringInfo(&values);
	for (int i = 0; i < t->key_count; i++) {
		const struct frond_column *c = frond_key_column(t, i);
		Oid out;
		bool varlena;

		getTypeOutputInfo(c->type, &out, &varlena);
		appendStringInfo(&names, "%s%s", i ? ", " : "",
				 get_attname(t->relid, t->key[i].attnum, false));
		appendStringInfo(
			&values, "%s%s", i ? ", " : "",
			OidOutputFunctionCall(out, frond_value_get(c, row[t->key[i].attnum - 1])));
	}
	ereport(ERROR, errcode(ERRCODE_UNIQUE_VIOLATION),
		errmsg("could not create unique index \"%s_pkey\"", RelationGetRelationName(rel)),
		errdetail("Key (%s)=(%s) is duplicated.", names.data, values.data));
}

/* Computes what the table's indexes are of. */
struct computer {
	EState *estate;
	struct frond_computing *computing;
	TupleTableSlot *slot;
};

static void
computer_init(struct computer *c, const struct frond_table *t, Relation rel)
{
	*c = (struct computer){ NULL };
	if (!t->computed_count)
		return;
	c->estate = CreateExecutorState();
	c->computing = frond_computing_new(t, c->estate);
	c->slot = MakeSingleTupleTableSlot(CreateTupleDescCopy(RelationGetDescr(rel)),
					   &TTSOpsVirtual);
}

static void
computer_fini(struct computer *c)
{
	if (!c->estate)
		return;
	ExecDropSingleTupleTableSlot(c->slot);
	FreeExecutorState(c->estate);
}

static void
put_row(struct frows *c, const struct frond_table *t, struct computer *how,
	const struct frows_value *row)
{
	struct frows_value *values = palloc((t->natts + t->computed_count + 1) * sizeof(*values));
	struct frows_value key[FROWS_KEY_COLUMNS];
	uint8 number[NUMBER_BYTES];
	int count = 0;

	for (int i = 0; i < t->key_count; i++)
		if (t->key[i].attnum)
			key[i] = row[t->key[i].attnum - 1];
	if (t->has_hidden_key) {
		frows_put_int(number, frond_next_row(t->server, GetUserId()), sizeof(number));
		key[0] = (struct frows_value){ number, sizeof(number) };
	}
	for (int i = 0; i < t->natts; i++)
		if (t->columns[i].is_there && !t->columns[i].is_key)
			values[count++] = row[i];
	if (how->estate) {
		ResetPerTupleExprContext(how->estate);
		slot_fill(t, how->slot, row);
	}
	for (int i = t->natts; i < t->natts + t->computed_count; i++)
		if (t->columns[i].is_there)
			values[count++] = frond_computing_value(how->computing, (AttrNumber)(i + 1),
								how->slot);
	frows_write_row(c, FROWS_INSERT, key, t->key_count, values);
	pfree(values);
}

/* Writes rows from `first` on, as many as a request takes. Returns the one behind them. */
static size_t
rows_put(Relation rel, const struct frond_table *t, struct computer *how, const struct kept *k,
	 size_t first)
{
	struct frows *c = frond_link_inside(t->server, GetUserId(), true);
	uint32 *columns = palloc((t->natts + t->computed_count + 1) * sizeof(*columns));
	const struct frows_of of = frond_table_of(t);
	size_t i = first, count = 0;

	for (int j = 0; j < t->natts + t->computed_count; j++)
		if (t->columns[j].is_there && !t->columns[j].is_key)
			columns[count++] = t->columns[j].id;
	frows_write(c, &of, columns, count);
	while (i < k->count && frows_request_bytes(c) < SEND_BYTES)
		put_row(c, t, how, k->rows[i++]);
	if (frows_write_run(c))
		return i;
	if (strcmp(frows_failure(c)->state, "23505") == 0 && frows_failure(c)->index[0])
		ereport(ERROR, errcode(ERRCODE_UNIQUE_VIOLATION),
			errmsg("could not create unique index \"%s\"", frows_failure(c)->index),
			errdetail("Several rows have the same values."));
	if (strcmp(frows_failure(c)->state, "23505") == 0 && frows_failure(c)->row >= 0 &&
	    first + (size_t)frows_failure(c)->row < k->count)
		fail_equal(rel, t, k->rows[first + (size_t)frows_failure(c)->row]);
	frond_fail(c);
}

/* ---- Indexes ---- */

static IndexElem *
element_of(const struct frond_table *t, AttrNumber attnum, bool descending)
{
	IndexElem *e = makeNode(IndexElem);

	e->name = get_attname(t->relid, attnum, false);
	e->ordering = descending ? SORTBY_DESC : SORTBY_DEFAULT;
	return e;
}

/* The statement that makes an index as it is. */
static IndexStmt *
index_statement(const struct frond_table *t, const struct frond_index *index)
{
	Oid oid = get_relname_relid(index->name, get_rel_namespace(t->relid));
	IndexStmt *s;
	Bitmapset *own = NULL;
	int attnum = -1;

	if (OidIsValid(oid) && frond_catalog_table_of(oid) == t->relid)
		return frond_index_statement(oid);
	/* One that an earlier frond, or another PostgreSQL, has made. */
	s = makeNode(IndexStmt);
	s->idxname = pstrdup(index->name);
	s->unique = index->is_unique;
	for (int i = 0; i < index->count; i++) {
		const struct frond_key_column *c = &index->columns[i];

		s->indexParams = lappend(s->indexParams, element_of(t, c->attnum, c->descending));
		own = bms_add_member(own, c->attnum);
	}
	while ((attnum = bms_next_member(index->carried, attnum)) >= 0)
		if (!bms_is_member(attnum, own))
			s->indexIncludingParams = lappend(s->indexIncludingParams,
							  element_of(t, (AttrNumber)attnum, false));
	s->whereClause = frond_index_where(t->relid, index);
	return s;
}

/* Those that the transaction has dropped go with the table. */
static List *
index_statements(const struct frond_table *t)
{
	List *all = NIL;

	for (int i = 0; i < t->index_count; i++) {
		const struct frond_index *index = &t->indexes[i];

		if (frond_link_drops_index(t->schema, index->stored))
			continue;
		if (!index->is_usable)
			ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("the table \"%s\" cannot be made anew in frond: its index "
				       "\"%s\" is being built, or PostgreSQL does not know its "
				       "columns",
				       get_rel_name(t->relid), index->name));
		all = lappend(all, index_statement(t, index));
	}
	return all;
}

/* ---- Making it anew ---- */

static bool
knows_column(const struct frond_table *t, uint32 id)
{
	if (t->has_hidden_key && t->hidden.id == id)
		return true;
	for (int i = 0; i < t->natts + t->computed_count; i++)
		if (t->columns[i].is_there && t->columns[i].id == id)
			return true;
	return false;
}

/* Others may have given the table columns that would be lost. */
static void
check_columns(const struct frond_table *t)
{
	struct frows *c = frond_link_inside(t->server, GetUserId(), false);
	const char *lost = NULL;
	struct frows_table f;

	if (!frows_table(c, t->schema, t->table, &f))
		frond_fail(c);
	for (size_t i = 0; i < f.count && !lost; i++) {
		const char *name = pnstrdup(f.columns[i].name.ptr, f.columns[i].name.len);

		if (f.columns[i].role == FROWS_STATIC ||
		    (!knows_column(t, f.columns[i].id) &&
		     !frond_link_drops(t->schema, t->table, name)))
			lost = name;
	}
	frows_table_free(&f);
	if (lost)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("the table \"%s\" cannot be made anew in frond: PostgreSQL does not "
			       "have its column \"%s\"",
			       get_rel_name(t->relid), lost));
}

void
frond_remake_key(const struct frond_table *t, struct frond_key_spec *ret)
{
	Oid constraint;

	*ret = (struct frond_key_spec){ NIL };
	if (t->has_hidden_key)
		return;
	for (int i = 0; i < t->key_count; i++) {
		String *name = makeString(get_attname(t->relid, t->key[i].attnum, false));

		ret->columns = lappend(ret->columns, name);
		if (i < t->hash_count)
			ret->hash = lappend(ret->hash, name);
		if (t->key[i].descending)
			ret->descending = lappend(ret->descending, name);
	}
	if (get_primary_key_attnos(t->relid, true, &constraint))
		ret->name = get_constraint_name(constraint);
}

struct frond_remake *
frond_remake_begin(Oid relid, List *retypes)
{
	struct frond_remake *m = palloc0(sizeof(*m));
	Relation rel = relation_open(relid, AccessExclusiveLock);
	struct converter how;

	m->t = frond_table_get(relid, GetUserId());
	m->retypes = retypes;
	/* All of it is a part of one transaction, whatever frond.bulk_load says. */
	(void)frond_link_define_within(m->t->server, GetUserId());
	check_columns(m->t);
	m->indexes = index_statements(m->t);
	converter_init(&how, m->t, rel, retypes);
	rows_keep(&how, &m->kept);
	converter_fini(&how);
	relation_close(rel, NoLock);
	return m;
}

/* PostgreSQL's catalog forgets the primary key and the indexes, which are made again. */
static void
catalog_forget(Oid relid)
{
	ListCell *cell;

	foreach (cell, frond_catalog_index_oids(relid))
		(void)frond_catalog_index_drop(relid, get_rel_name(lfirst_oid(cell)), true);
}

void
frond_remake_end(struct frond_remake *m, const struct frond_key_spec *key)
{
	Oid relid = m->t->relid;
	Relation rel = relation_open(relid, NoLock);
	const struct frond_table *t;
	struct computer how;
	ListCell *cell;

	check_nulls(rel, key, &m->kept);
	catalog_forget(relid);
	frond_link_forget_drops(m->t);
	frond_table_make(rel, key, true, true);
	frond_catalog_key_add(rel, key);
	/* Other backends have the old one's id. */
	CacheInvalidateRelcache(rel);
	frond_table_forget();
	CommandCounterIncrement();
	/* They come before the rows: an index of rows is built when they are committed. */
	foreach (cell, m->indexes)
		frond_index_create_within(relid, lfirst(cell));
	t = frond_table_get(relid, GetUserId());
	computer_init(&how, t, rel);
	for (size_t i = 0; i < m->kept.count;)
		i = rows_put(rel, t, &how, &m->kept, i);
	computer_fini(&how);
	frond_table_wrote(t, (int)m->kept.count, 0);
	relation_close(rel, NoLock);
}

void
frond_rekey(Oid relid, const struct frond_key_spec *key)
{
	frond_remake_end(frond_remake_begin(relid, NIL), key);
}
