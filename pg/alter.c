/*
 * ALTER TABLE of tables in frond: columns come and go, a table gets a primary key, and
 * names change here only, since an option keeps the one that frond has.
 */
#include "frond_pg.h"
#include "frond_catalog.h"
#include "frond_computed.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "commands/defrem.h"
#include "executor/spi.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_type.h"
#include "rewrite/rewriteHandler.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

static void
refuse(const char *what)
{
	ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
		errmsg("tables in frond have no %s", what));
}

static bool
is_empty(const struct frond_table *t)
{
	struct frows *c = frond_link_inside(t->server, GetUserId(), false);
	struct frows_scan scan = { .of = frond_table_of(t), .rows = 1 };
	struct frows_value place = { NULL, 0 }, none;

	for (;;) {
		if (!frows_scan_page_at(c, &scan, place))
			frond_fail(c);
		if (frows_scan_row(c, &none))
			return false;
		if (!frows_has_more(c))
			return true;
		place = frond_value_copy(frows_scan_place(c));
	}
}

/* ---- ADD COLUMN ---- */

static bool
has_constraint(const ColumnDef *column, ConstrType type)
{
	ListCell *cell;

	foreach (cell, column->constraints)
		if (((Constraint *)lfirst(cell))->contype == type)
			return true;
	return false;
}

static void
check_new_column(const struct frond_table *t, ColumnDef *column)
{
	if (has_constraint(column, CONSTR_PRIMARY))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("a column that is added cannot be the primary key in frond"));
	if (has_constraint(column, CONSTR_GENERATED) && !is_empty(t))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("a column that is computed cannot be added to a table in frond that "
			       "has rows"));
	if ((column->is_not_null || has_constraint(column, CONSTR_NOTNULL)) &&
	    !has_constraint(column, CONSTR_DEFAULT) && !column->raw_default && !is_empty(t))
		ereport(ERROR, errcode(ERRCODE_NOT_NULL_VIOLATION),
			errmsg("column \"%s\" of relation \"%s\" contains null values",
			       column->colname, t->table));
}

void
frond_run_sql(const char *sql)
{
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "no SPI");
	if (SPI_execute(sql, false, 0) < 0)
		elog(ERROR, "the statement failed: %s", sql);
	SPI_finish();
}

/* Notes what frond calls a column. */
static void
column_named(RangeVar *relation, const char *column, const char *name, frond_run_utility *run,
	     void *arg)
{
	AlterTableStmt *statement = makeNode(AlterTableStmt);
	AlterTableCmd *cmd = makeNode(AlterTableCmd);

	cmd->subtype = AT_AlterColumnGenericOptions;
	cmd->name = pstrdup(column);
	cmd->def = (Node *)list_make1(makeDefElemExtended(
		NULL, FROND_OPTION_COLUMN, (Node *)makeString(pstrdup(name)), DEFELEM_ADD, -1));
	statement->objtype = OBJECT_FOREIGN_TABLE;
	statement->relation = copyObject(relation);
	statement->cmds = list_make1(cmd);
	run((Node *)statement, arg);
	CommandCounterIncrement();
}

/* What frond may call a new column: a renamed one keeps its name there, and one that this
 * transaction has dropped is there until it commits. */
static const char *
column_name_free(Oid server, const char *schema, const char *table, const char *name)
{
	struct frows *c = frond_link_outside(server, GetUserId());
	const char *ret = name;
	struct frows_table f;

	if (!frows_table(c, schema, table, &f))
		frond_fail(c);
	PG_TRY();
	{
		for (int n = 1; frond_stored_column(&f, ret); n++)
			ret = makeObjectName(name, NULL, psprintf("%d", n));
	}
	PG_FINALLY();
	{
		frows_table_free(&f);
	}
	PG_END_TRY();
	return ret;
}

/* PostgreSQL has the column: makes it in frond. */
static void
column_made(RangeVar *name, Oid relid, const ColumnDef *column, frond_run_utility *run, void *arg)
{
	AttrNumber attnum = get_attnum(relid, column->colname);
	struct frows_new made = {
		.kind = frond_kind_of(get_atttype(relid, attnum)),
		.role = FROWS_REGULAR,
	};
	const char *schema, *table;
	struct frows *c;
	Oid server;

	frond_table_names(relid, &server, &schema, &table);
	made.name = column_name_free(server, schema, table, column->colname);
	c = frond_link_for_schema(server, GetUserId());
	if (!frows_table_alter(c, schema, table, &made, 1, NULL, 0, NULL, 0))
		frond_fail(c);
	frond_link_made(server, GetUserId(), schema, table, made.name, NULL, 0);
	if (strcmp(made.name, column->colname) != 0)
		column_named(name, column->colname, made.name, run, arg);
	frond_table_forget();
}

/* Fills a column that was made in the rows that are there; children fill theirs. Its type may have
 * a default, too, and may refuse null, which the rows have otherwise. */
static void
column_filled(Oid relid, const ColumnDef *column)
{
	AttrNumber attnum = get_attnum(relid, column->colname);
	Relation rel = relation_open(relid, NoLock);
	bool has_default = !has_constraint(column, CONSTR_GENERATED) &&
			   build_column_default(rel, attnum) != NULL;

	relation_close(rel, NoLock);
	if (has_default)
		frond_run_sql(psprintf(
			"UPDATE ONLY %s SET %s = DEFAULT",
			quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
						   get_rel_name(relid)),
			quote_identifier(column->colname)));
	else if (DomainHasConstraints(get_atttype(relid, attnum)) &&
		 !is_empty(frond_table_get(relid, GetUserId())))
		frond_run_sql(psprintf("SELECT CAST(NULL AS %s)",
				       format_type_be_qualified(get_atttype(relid, attnum))));
}

/* ---- ADD PRIMARY KEY ---- */

/* The table is made anew with its key: within a transaction if it has rows. */
static void
key_added(Oid relid, const Constraint *constraint, AlterTableStmt *statement,
	  frond_run_utility *run, void *arg)
{
	const struct frond_table *t = frond_table_get(relid, GetUserId());
	struct frond_key_spec key = { .name = constraint->conname, .columns = constraint->keys };
	AlterTableStmt *not_null = copyObject(statement);
	ListCell *cell;
	bool is_remade;
	Relation rel;

	if (constraint->indexname)
		refuse("indexes beside the primary key");
	if (!t->has_hidden_key)
		ereport(ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
			errmsg("a table has one primary key"));
	/* Indexes would go with an empty table that is made anew at once. */
	is_remade = t->index_count > 0 || !is_empty(t);
	not_null->cmds = NIL;
	foreach (cell, constraint->keys) {
		AlterTableCmd *cmd = makeNode(AlterTableCmd);

		cmd->subtype = AT_SetNotNull;
		cmd->name = strVal(lfirst(cell));
		not_null->cmds = lappend(not_null->cmds, cmd);
	}
	run((Node *)not_null, arg);
	CommandCounterIncrement();
	if (is_remade) {
		frond_rekey(relid, &key);
		return;
	}
	rel = relation_open(relid, AccessExclusiveLock);
	frond_table_make(rel, &key, true, false);
	frond_catalog_key_add(rel, &key);
	/* Other backends have the old one's id. */
	CacheInvalidateRelcache(rel);
	relation_close(rel, NoLock);
	frond_table_forget();
}

/* The columns stay NOT NULL, as in PostgreSQL. */
static void
key_dropped(Oid relid)
{
	const struct frond_key_spec none = { NIL };

	frond_foreign_check_index(frond_table_get(relid, GetUserId()), NULL);
	frond_rekey(relid, &none);
}

/* ---- ALTER TABLE ---- */

static void
check_constraint_added(const Constraint *c)
{
	switch (c->contype) {
	case CONSTR_EXCLUSION:
		refuse("EXCLUDE constraints");
		break;
	default:
		break;
	}
}

/* Whether the index has something of the column. */
static bool
is_of_column(const struct frond_table *t, const struct frond_index *index, AttrNumber attnum)
{
	Bitmapset *used = bms_copy(index->carried);

	for (int i = 0; i < index->count; i++)
		used = bms_add_member(used, index->columns[i].attnum);
	for (int i = 0; i < t->computed_count; i++)
		if (&t->indexes[t->computed[i].index] == index)
			used = bms_union(used, t->computed[i].used);
	if (bms_is_member(attnum, used))
		return true;
	used = NULL;
	pull_varattnos((Node *)index->predicate, 1, &used);
	return bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, used);
}

/* A column takes its indexes with it. */
static void
indexes_dropped(const struct frond_table *t, AttrNumber attnum)
{
	for (int i = 0; attnum > 0 && i < t->index_count; i++)
		if (is_of_column(t, &t->indexes[i], attnum))
			(void)frond_index_drop(t->relid, t->indexes[i].name, FROND_INDEX_OF_COLUMN);
}

/* The primary key goes with a column of it, and so do indexes. */
static void
check_column_dropped(const struct frond_table *t, const AlterTableCmd *cmd)
{
	AttrNumber attnum = get_attnum(t->relid, cmd->name);

	if (attnum > 0 && t->columns[attnum - 1].is_key) {
		key_dropped(t->relid);
		t = frond_table_get(t->relid, GetUserId());
	}
	indexes_dropped(t, attnum);
}

static void
check_rows(Oid relid, const char *condition, const char *what)
{
	Relation rel = relation_open(relid, NoLock);
	const char *name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
						      RelationGetRelationName(rel));
	bool found;

	relation_close(rel, NoLock);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "no SPI");
	(void)SPI_execute(psprintf("SELECT 1 FROM ONLY %s WHERE %s LIMIT 1", name, condition),
			  false, 1);
	found = SPI_processed > 0;
	SPI_finish();
	if (found)
		ereport(ERROR, errcode(ERRCODE_CHECK_VIOLATION), errmsg("%s", what));
}

static void
check_nullable(const struct frond_table *t, const AlterTableCmd *cmd)
{
	AttrNumber attnum = get_attnum(t->relid, cmd->name);

	if (attnum > 0 && t->columns[attnum - 1].is_key)
		ereport(ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
			errmsg("column \"%s\" is in a primary key", cmd->name));
}

static void
check_before(const struct frond_table *t, AlterTableCmd *cmd)
{
	switch (cmd->subtype) {
	case AT_AddColumn:
		check_new_column(t, (ColumnDef *)cmd->def);
		break;
	case AT_AddConstraint:
		check_constraint_added((Constraint *)cmd->def);
		break;
	case AT_DropColumn:
		check_column_dropped(t, cmd);
		break;
	case AT_SetNotNull:
		check_rows(t->relid, psprintf("%s IS NULL", quote_identifier(cmd->name)),
			   psprintf("column \"%s\" contains null values", cmd->name));
		break;
	case AT_DropNotNull:
		check_nullable(t, cmd);
		break;
	case AT_ValidateConstraint:
		frond_foreign_validate(t->relid, cmd->name);
		break;
	case AT_AddInherit:
		refuse("inheritance");
		break;
	case AT_SetAccessMethod:
		refuse("other access methods");
		break;
	default:
		break;
	}
}

static const char *
check_text(Relation rel, const char *binary)
{
	List *context = deparse_context_for(RelationGetRelationName(rel), RelationGetRelid(rel));

	return deparse_expression(stringToNode(binary), context, false, false);
}

/* PostgreSQL does not look through the rows for a CHECK. */
void
frond_checks_check(Oid relid, const char *wanted)
{
	const char *name;
	Relation rel;

	rel = relation_open(relid, NoLock);
	for (int i = 0; rel->rd_att->constr && i < rel->rd_att->constr->num_check; i++) {
		name = rel->rd_att->constr->check[i].ccname;
		if (wanted && strcmp(name, wanted) != 0)
			continue;
		check_rows(
			relid,
			psprintf("NOT (%s)", check_text(rel, rel->rd_att->constr->check[i].ccbin)),
			psprintf("check constraint \"%s\" of relation \"%s\" is violated by some "
				 "row",
				 name, RelationGetRelationName(rel)));
	}
	relation_close(rel, NoLock);
}

/* One command of ALTER TABLE, with what it was before. */
struct altered {
	AlterTableCmd *cmd;
	bool was_there; /* the column that it adds */
	bool drops_index, drops_key;
	struct frond_key_spec constraints; /* of a column that is added */
};

static bool
is_primary_key(const AlterTableCmd *cmd)
{
	return (cmd->subtype == AT_AddConstraint || cmd->subtype == AT_AddIndex) &&
	       IsA(cmd->def, Constraint) && ((Constraint *)cmd->def)->contype == CONSTR_PRIMARY;
}

static bool
is_unique(const AlterTableCmd *cmd)
{
	return (cmd->subtype == AT_AddConstraint || cmd->subtype == AT_AddIndex) &&
	       IsA(cmd->def, Constraint) && ((Constraint *)cmd->def)->contype == CONSTR_UNIQUE;
}

static bool
is_foreign(const AlterTableCmd *cmd)
{
	return cmd->subtype == AT_AddConstraint && IsA(cmd->def, Constraint) &&
	       ((Constraint *)cmd->def)->contype == CONSTR_FOREIGN;
}

static bool
is_checked(const AlterTableCmd *cmd)
{
	const Constraint *c = (const Constraint *)cmd->def;

	return c->contype == CONSTR_CHECK && !c->skip_validation;
}

/* What sort of constraint has that name; 0: none has. */
static char
constraint_type(Oid relid, const char *name)
{
	Oid oid = get_relation_constraint_oid(relid, name, true);
	HeapTuple tuple = OidIsValid(oid) ? SearchSysCache1(CONSTROID, ObjectIdGetDatum(oid))
					  : NULL;
	char type = 0;

	if (HeapTupleIsValid(tuple)) {
		type = ((Form_pg_constraint)GETSTRUCT(tuple))->contype;
		ReleaseSysCache(tuple);
	}
	return type;
}

/* A constraint that is an index in frond. One of a table that an earlier frond has made is not in
 * PostgreSQL's catalog. */
static bool
drops_index(Oid relid, const AlterTableCmd *cmd)
{
	char type = cmd->subtype == AT_DropConstraint ? constraint_type(relid, cmd->name) : 0;

	return cmd->subtype == AT_DropConstraint && (!type || type == CONSTRAINT_UNIQUE) &&
	       frond_index_named(frond_table_get(relid, GetUserId()), cmd->name);
}

/* The primary key. One of a table that an earlier frond has made has the usual name. */
static bool
drops_key(Oid relid, const AlterTableCmd *cmd)
{
	char type = cmd->subtype == AT_DropConstraint ? constraint_type(relid, cmd->name) : 0;

	if (cmd->subtype != AT_DropConstraint ||
	    frond_table_get(relid, GetUserId())->has_hidden_key)
		return false;
	return type == CONSTRAINT_PRIMARY ||
	       (!type && strcmp(cmd->name, psprintf("%s_pkey", get_rel_name(relid))) == 0);
}

static void
altered_note(Oid relid, AlterTableCmd *cmd, struct altered *ret)
{
	const char *name = cmd->subtype == AT_AddColumn ? ((ColumnDef *)cmd->def)->colname
							: cmd->name;
	AttrNumber attnum = name ? get_attnum(relid, name) : InvalidAttrNumber;

	*ret = (struct altered){ .cmd = cmd };
	if (cmd->subtype == AT_AddColumn) {
		ColumnDef *column = (ColumnDef *)cmd->def;

		column->constraints = frond_constraints_take(column->constraints, column->colname,
							     &ret->constraints);
	}
	ret->was_there = attnum != InvalidAttrNumber;
	ret->drops_index = drops_index(relid, cmd);
	ret->drops_key = !ret->drops_index && drops_key(relid, cmd);
}

static void
alter_after(Oid relid, const struct altered *a, AlterTableStmt *statement, frond_run_utility *run,
	    void *arg)
{
	switch (a->cmd->subtype) {
	case AT_AddConstraint:
	case AT_AddIndex:
		if (is_primary_key(a->cmd))
			key_added(relid, (Constraint *)a->cmd->def, statement, run, arg);
		else if (is_unique(a->cmd))
			frond_index_add_unique(relid, (Constraint *)a->cmd->def);
		else if (is_foreign(a->cmd))
			frond_foreign_add(relid, (Constraint *)a->cmd->def, false);
		else if (is_checked(a->cmd))
			frond_checks_check(relid, ((Constraint *)a->cmd->def)->conname);
		break;
	case AT_ValidateConstraint:
		frond_checks_check(relid, a->cmd->name);
		break;
	case AT_DropConstraint:
		if (a->drops_index)
			(void)frond_index_drop(relid, a->cmd->name, FROND_INDEX_OF_CONSTRAINT);
		if (a->drops_key)
			key_dropped(relid);
		break;
	default:
		break;
	}
}

/* SET and RESET of storage parameters. */
static bool
storage_take(const AlterTableCmd *cmd)
{
	ListCell *cell;

	if (cmd->subtype != AT_SetRelOptions && cmd->subtype != AT_ResetRelOptions)
		return false;
	foreach (cell, (List *)cmd->def)
		if (!frond_storage_take(lfirst(cell)))
			ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("tables in frond have no storage parameter \"%s\"",
				       ((DefElem *)lfirst(cell))->defname));
	return true;
}

static bool
adds_column(const struct altered *a)
{
	return a->cmd->subtype == AT_AddColumn && !a->was_there;
}

/* All definitions come first: none can follow rows that were written. */
static void
columns_added(RangeVar *name, Oid relid, const struct altered *all, int count,
	      frond_run_utility *run, void *arg)
{
	ListCell *cell;

	for (int i = 0; i < count; i++)
		if (adds_column(&all[i]))
			column_made(name, relid, (ColumnDef *)all[i].cmd->def, run, arg);
	for (int i = 0; i < count; i++)
		if (adds_column(&all[i]))
			foreach (cell, all[i].constraints.unique)
				frond_index_add_unique(relid, lfirst(cell));
	for (int i = 0; i < count; i++)
		if (adds_column(&all[i]))
			column_filled(relid, (ColumnDef *)all[i].cmd->def);
	for (int i = 0; i < count; i++)
		if (adds_column(&all[i]))
			foreach (cell, all[i].constraints.foreign)
				frond_foreign_add(relid, lfirst(cell), false);
}

static Oid
own_table(const RangeVar *name)
{
	Oid relid = name ? RangeVarGetRelid(name, AccessExclusiveLock, true) : InvalidOid;

	if (!OidIsValid(relid) || !frond_is_table(relid))
		return InvalidOid;
	if (!pg_class_ownercheck(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, name->relname);
	return relid;
}

/* PostgreSQL would neither move rows out of it, nor look whether those written into it belong
 * there, nor could frond follow what changes the parent's columns. */
static void
check_attached(const AlterTableStmt *from)
{
	ListCell *cell;

	foreach (cell, from->cmds) {
		const AlterTableCmd *cmd = lfirst(cell);
		Oid relid = cmd->subtype == AT_AttachPartition
				    ? RangeVarGetRelid(((PartitionCmd *)cmd->def)->name, NoLock,
						       true)
				    : InvalidOid;

		if (OidIsValid(relid) && frond_is_table(relid))
			ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("a table in frond cannot be a partition"),
				errhint("PARTITION OF makes one that PostgreSQL keeps."));
	}
}

/* ---- Statements that change types, too ---- */

static bool
has_types(const AlterTableStmt *from)
{
	ListCell *cell;

	foreach (cell, from->cmds)
		if (((AlterTableCmd *)lfirst(cell))->subtype == AT_AlterColumnType)
			return true;
	return false;
}

/* What PostgreSQL does before it changes types. */
static bool
comes_before_types(const AlterTableCmd *cmd)
{
	switch (cmd->subtype) {
	case AT_DropColumn:
	case AT_DropConstraint:
	case AT_DropNotNull:
	case AT_DropExpression:
	case AT_DropIdentity:
		return true;
	case AT_ColumnDefault:
		return !cmd->def;
	default:
		return false;
	}
}

/* The table is made anew for other types. So these are a statement by themselves, between those
 * that PostgreSQL has before and behind them. */
static void
alter_in_parts(AlterTableStmt *from, Oid relid, frond_run_utility *run, void *arg)
{
	AlterTableStmt *before = copyObject(from), *types = copyObject(from),
		       *behind = copyObject(from);
	ListCell *cell;

	before->cmds = types->cmds = behind->cmds = NIL;
	foreach (cell, from->cmds) {
		AlterTableCmd *cmd = lfirst(cell);
		AlterTableStmt *to = cmd->subtype == AT_AlterColumnType ? types
				     : comes_before_types(cmd)          ? before
									: behind;

		to->cmds = lappend(to->cmds, cmd);
	}
	if (before->cmds)
		(void)frond_alter_table(before, run, arg);
	frond_retype(relid, types, run, arg);
	CommandCounterIncrement();
	if (behind->cmds)
		(void)frond_alter_table(behind, run, arg);
}

bool
frond_alter_table(AlterTableStmt *from, frond_run_utility *run, void *arg)
{
	AlterTableStmt *statement;
	struct altered *all;
	ListCell *cell;
	int count = 0;
	Oid relid;

	if (from->objtype != OBJECT_TABLE && from->objtype != OBJECT_FOREIGN_TABLE)
		return false;
	check_attached(from);
	relid = own_table(from->relation);
	if (!OidIsValid(relid))
		return false;
	if (has_types(from)) {
		alter_in_parts(from, relid, run, arg);
		return true;
	}
	all = palloc((list_length(from->cmds) + 1) * sizeof(*all));
	statement = copyObject(from);
	statement->cmds = NIL;
	foreach (cell, copyObject(from)->cmds) {
		AlterTableCmd *cmd = lfirst(cell);

		if (storage_take(cmd))
			continue;
		check_before(frond_table_get(relid, GetUserId()), cmd);
		altered_note(relid, cmd, &all[count++]);
		if (!is_primary_key(cmd) && !is_unique(cmd) && !is_foreign(cmd) &&
		    !all[count - 1].drops_index && !all[count - 1].drops_key)
			statement->cmds = lappend(statement->cmds, copyObject(cmd));
	}
	if (statement->cmds) {
		run((Node *)statement, arg);
		CommandCounterIncrement();
	}
	columns_added(from->relation, relid, all, count, run, arg);
	for (int i = 0; i < count; i++)
		alter_after(relid, &all[i], statement, run, arg);
	return true;
}

/* ---- RENAME ---- */

/* The index of frond's that a statement renames; InvalidOid: it is something else. */
static Oid
index_renamed(const RenameStmt *from)
{
	Oid relid = from->relation && (from->renameType == OBJECT_TABCONSTRAINT ||
				       from->renameType == OBJECT_TABLE ||
				       from->renameType == OBJECT_INDEX)
			    ? RangeVarGetRelid(from->relation, NoLock, true)
			    : InvalidOid;

	if (!OidIsValid(relid))
		return InvalidOid;
	if (from->renameType != OBJECT_TABCONSTRAINT)
		return OidIsValid(frond_catalog_table_of(relid)) ? relid : InvalidOid;
	if (!frond_is_table(relid) || constraint_type(relid, from->subname) != CONSTRAINT_UNIQUE)
		return InvalidOid;
	return get_relname_relid(from->subname, get_rel_namespace(relid));
}

/* It keeps its name in frond, which PostgreSQL's catalog notes. */
static void
index_rename(const RenameStmt *from, Oid index, frond_run_utility *run, void *arg)
{
	const char *stored = frond_catalog_index_stored(index);

	run((Node *)copyObject(from), arg);
	CommandCounterIncrement();
	frond_catalog_index_renamed(index, stored);
	CacheInvalidateRelcacheByRelid(frond_catalog_table_of(index));
	frond_table_forget();
}

bool
frond_rename(RenameStmt *from, frond_run_utility *run, void *arg)
{
	AttrNumber attnum;
	List *options;
	Oid relid, index;

	index = index_renamed(from);
	if (OidIsValid(index)) {
		index_rename(from, index, run, arg);
		return true;
	}
	if (from->renameType != OBJECT_COLUMN)
		return false;
	relid = own_table(from->relation);
	if (!OidIsValid(relid))
		return false;
	attnum = get_attnum(relid, from->subname);
	options = attnum > 0 ? GetForeignColumnOptions(relid, attnum) : NIL;
	run((Node *)copyObject(from), arg);
	if (frond_option(options, FROND_OPTION_COLUMN))
		return true;
	CommandCounterIncrement();
	column_named(from->relation, from->newname, from->subname, run, arg);
	return true;
}
