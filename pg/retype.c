/*
 * ALTER COLUMN … TYPE of tables in frond. Where the values stay what they are, PostgreSQL's catalog
 * changes alone. Otherwise the table is made anew (remake.c), with what the type, or USING, makes
 * of the values: an expression that is analyzed as PostgreSQL does it for its own tables.
 */
#include "frond_define.h"
#include "frond_computed.h"

#include "access/relation.h"
#include "access/xact.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/typcache.h"

static void
fail_cast(const AlterTableCmd *cmd, bool has_using, Oid type, int32 typmod)
{
	if (has_using)
		ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
			errmsg("result of USING clause for column \"%s\" cannot be cast "
			       "automatically to type %s",
			       cmd->name, format_type_be(type)),
			errhint("You might need to add an explicit cast."));
	ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
		errmsg("column \"%s\" cannot be cast automatically to type %s", cmd->name,
		       format_type_be(type)),
		errhint("You might need to specify \"USING %s::%s\".", quote_identifier(cmd->name),
			format_type_with_typemod(type, typmod)));
}

/* What computes the new values, of the type of `r`: by an assignment, or by an explicit cast. */
static Node *
transform_analyze(Relation rel, const AlterTableCmd *cmd, const struct frond_retype *r,
		  CoercionContext how)
{
	Form_pg_attribute a = TupleDescAttr(RelationGetDescr(rel), r->attnum - 1);
	Node *raw = ((ColumnDef *)cmd->def)->raw_default, *e;
	ParseState *state = make_parsestate(NULL);
	ParseNamespaceItem *item = addRangeTableEntryForRelation(state, rel, AccessShareLock, NULL,
								 false, true);

	addNSItemToQuery(state, item, false, true, true);
	e = raw ? transformExpr(state, copyObject(raw), EXPR_KIND_ALTER_COL_TRANSFORM)
		: (Node *)makeVar(1, r->attnum, a->atttypid, a->atttypmod, a->attcollation, 0);
	e = coerce_to_target_type(
		state, e, exprType(e), r->type, r->typmod, how,
		how == COERCION_EXPLICIT ? COERCE_EXPLICIT_CAST : COERCE_IMPLICIT_CAST, -1);
	if (!e)
		fail_cast(cmd, raw != NULL, r->type, r->typmod);
	assign_expr_collations(state, e);
	return e;
}

/* Whether the expression is the column as it is. */
static bool
is_column(Node *e, AttrNumber attnum)
{
	for (;;) {
		if (IsA(e, Var))
			return ((Var *)e)->varattno == attnum;
		if (IsA(e, RelabelType))
			e = (Node *)((RelabelType *)e)->arg;
		else if (IsA(e, CoerceToDomain) &&
			 !DomainHasConstraints(((CoerceToDomain *)e)->resulttype))
			e = (Node *)((CoerceToDomain *)e)->arg;
		else
			return false;
	}
}

/* Whether frond keeps values of both types in the same bytes, where they are the same as texts. */
static bool
is_kept_alike(Oid was, Oid type)
{
	enum frows_kind kind = frond_kind_of(type);

	if (frond_kind_of(was) != kind)
		return false;
	return (kind != FROWS_OTHER && kind != FROWS_INT8) || getBaseType(was) == getBaseType(type);
}

/* Whether the new value of some row is another text than the old one. Implicit casts are not seen
 * in an expression's text. One that would refuse a value cuts it here, so that it is another. */
static bool
changes_some(Relation rel, const AlterTableCmd *cmd, const struct frond_retype *r)
{
	const char *name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
						      RelationGetRelationName(rel));
	List *context = deparse_context_for(RelationGetRelationName(rel), RelationGetRelid(rel));
	const char *to = deparse_expression(transform_analyze(rel, cmd, r, COERCION_EXPLICIT),
					    context, false, false);
	const char *column = quote_identifier(get_attname(RelationGetRelid(rel), r->attnum, false));
	bool found;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "no SPI");
	(void)SPI_execute(psprintf("SELECT 1 FROM ONLY %s WHERE %s::pg_catalog.text"
				   " IS DISTINCT FROM (%s)::pg_catalog.text LIMIT 1",
				   name, column, to),
			  false, 1);
	found = SPI_processed > 0;
	SPI_finish();
	return found;
}

/* Whether an index computes something of the column: its expression is of the column's type. */
static bool
is_computed_of(Oid relid, AttrNumber attnum)
{
	const struct frond_table *t = frond_table_get(relid, GetUserId());
	bool found = false;

	for (int i = 0; i < t->computed_count; i++)
		found |= bms_is_member(attnum, t->computed[i].used);
	return found;
}

/* What becomes of a column; NULL: its values stay as they are in frond. */
static struct frond_retype *
retype_of(Relation rel, const AlterTableCmd *cmd)
{
	AttrNumber attnum = get_attnum(RelationGetRelid(rel), cmd->name);
	struct frond_retype *r = palloc0(sizeof(*r));
	Node *planned;
	bool is_alike;

	/* PostgreSQL says what is wrong with it. */
	if (attnum <= 0)
		return NULL;
	r->attnum = attnum;
	typenameTypeIdAndMod(NULL, ((ColumnDef *)cmd->def)->typeName, &r->type, &r->typmod);
	r->expression = transform_analyze(rel, cmd, r, COERCION_ASSIGNMENT);
	planned = (Node *)expression_planner((Expr *)copyObject(r->expression));
	is_alike = is_kept_alike(get_atttype(RelationGetRelid(rel), attnum), r->type) &&
		   !(is_computed_of(RelationGetRelid(rel), attnum) &&
		     get_atttype(RelationGetRelid(rel), attnum) != r->type);
	if (is_alike && (is_column(planned, attnum) || !changes_some(rel, cmd, r)))
		return NULL;
	return r;
}

/* ---- Foreign keys of the columns ---- */

/* A statement that takes a foreign key away, and one that adds it again. */
struct foreign {
	const char *drop, *add;
};

/* The attnums of the columns, as PostgreSQL writes an array. */
static const char *
attnums_of(Oid relid, const AlterTableStmt *statement)
{
	StringInfoData text;
	ListCell *cell;

	initStringInfo(&text);
	foreach (cell, statement->cmds)
		appendStringInfo(&text, "%s%d", text.len ? "," : "",
				 get_attnum(relid, ((AlterTableCmd *)lfirst(cell))->name));
	return psprintf("'{%s}'::pg_catalog.int2[]", text.data);
}

/* The foreign keys that have one of the columns, or refer to one. */
static List *
foreign_of(Oid relid, const AlterTableStmt *statement)
{
	const char *attnums = attnums_of(relid, statement);
	MemoryContext own = CurrentMemoryContext;
	List *all = NIL;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "no SPI");
	(void)SPI_execute(
		psprintf("SELECT pg_catalog.format('ALTER TABLE ONLY %%s DROP CONSTRAINT %%I',"
			 " conrelid::pg_catalog.regclass, conname),"
			 " pg_catalog.format('ALTER TABLE ONLY %%s ADD CONSTRAINT %%I %%s',"
			 " conrelid::pg_catalog.regclass, conname,"
			 " pg_catalog.pg_get_constraintdef(oid)) FROM pg_catalog.pg_constraint"
			 " WHERE contype = 'f' AND ((conrelid = %u AND conkey && %s)"
			 " OR (confrelid = %u AND confkey && %s)) ORDER BY oid",
			 relid, attnums, relid, attnums),
		true, 0);
	for (uint64 i = 0; i < SPI_processed; i++) {
		HeapTuple row = SPI_tuptable->vals[i];
		MemoryContext old = MemoryContextSwitchTo(own);
		struct foreign *f = palloc(sizeof(*f));

		f->drop = SPI_getvalue(row, SPI_tuptable->tupdesc, 1);
		f->add = SPI_getvalue(row, SPI_tuptable->tupdesc, 2);
		all = lappend(all, f);
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	return all;
}

/* ---- The statement ---- */

void
frond_retype(Oid relid, AlterTableStmt *statement, frond_run_utility *run, void *arg)
{
	List *foreign = foreign_of(relid, statement), *retypes = NIL;
	struct frond_remake *remake = NULL;
	struct frond_key_spec key;
	ListCell *cell;
	Relation rel;

	foreach (cell, foreign)
		frond_run_sql(((const struct foreign *)lfirst(cell))->drop);
	CommandCounterIncrement();
	rel = relation_open(relid, AccessExclusiveLock);
	foreach (cell, statement->cmds) {
		struct frond_retype *r = retype_of(rel, lfirst(cell));

		if (r)
			retypes = lappend(retypes, r);
		/* PostgreSQL refuses USING of a foreign table. */
		((ColumnDef *)((AlterTableCmd *)lfirst(cell))->def)->raw_default = NULL;
	}
	relation_close(rel, NoLock);
	if (retypes) {
		frond_remake_key(frond_table_get(relid, GetUserId()), &key);
		remake = frond_remake_begin(relid, retypes);
	}
	run((Node *)statement, arg);
	CommandCounterIncrement();
	if (remake) {
		frond_remake_end(remake, &key);
		frond_checks_check(relid, NULL);
	}
	foreach (cell, foreign)
		frond_run_sql(((const struct foreign *)lfirst(cell))->add);
}
