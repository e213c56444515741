/*
 * FOREIGN KEY: its definition. PostgreSQL refuses one of a foreign table, so it is made here as
 * PostgreSQL would have made it: a row of pg_constraint, and triggers that belong to it. \d,
 * pg_dump, DROP CONSTRAINT, CASCADE and TRUNCATE know it by that. What the triggers do is in
 * reference.c.
 */
#include "frond_catalog.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_am.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "commands/defrem.h"
#include "commands/trigger.h"
#include "foreign/foreign.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_coerce.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

struct making {
	Relation rel, parent;
	const struct frond_table *t, *to;
	const Constraint *from;
	const char *name;
	int count;
	int16 own[FROWS_KEY_COLUMNS], theirs[FROWS_KEY_COLUMNS];
	Oid pf[FROWS_KEY_COLUMNS], pp[FROWS_KEY_COLUMNS], ff[FROWS_KEY_COLUMNS];
	int set_count; /* of ON DELETE SET … (columns) */
	int16 set[FROWS_KEY_COLUMNS];
};

/* ---- Who may refer to whom ---- */

static void
refuse_mixed(const char *what)
{
	ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("%s", what),
		errdetail("Their transactions commit one after the other, so one of them could "
			  "delete a row while the other refers to it."));
}

static void
check_local(const Constraint *c)
{
	/* ALTER CONSTRAINT names none. */
	Oid parent = c->contype == CONSTR_FOREIGN && c->pktable
			     ? RangeVarGetRelid(c->pktable, NoLock, true)
			     : InvalidOid;

	if (OidIsValid(parent) && frond_is_table(parent))
		refuse_mixed("a local table cannot refer to a table in frond");
}

void
frond_foreign_check_local(const List *elements)
{
	ListCell *cell, *inner;

	foreach (cell, elements) {
		Node *element = lfirst(cell);

		if (IsA(element, Constraint))
			check_local((Constraint *)element);
		else if (IsA(element, ColumnDef))
			foreach (inner, ((ColumnDef *)element)->constraints)
				check_local(lfirst(inner));
		else if (IsA(element, AlterTableCmd) && ((AlterTableCmd *)element)->def)
			frond_foreign_check_local(list_make1(((AlterTableCmd *)element)->def));
	}
}

static void
parent_open(struct making *m)
{
	Oid relid = RangeVarGetRelid(m->from->pktable, ShareRowExclusiveLock, false);

	if (!frond_is_table(relid))
		refuse_mixed("a table in frond cannot refer to a local table");
	if (pg_class_aclcheck(relid, GetUserId(), ACL_REFERENCES) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FOREIGN_TABLE, get_rel_name(relid));
	m->parent = relation_open(relid, NoLock);
	m->to = frond_table_get(relid, GetUserId());
	if (m->t->server != m->to->server)
		refuse_mixed("a table cannot refer to one in another frond");
}

/* ---- Columns ---- */

static int
columns_find(Oid relid, const List *names, int16 *ret)
{
	ListCell *cell;
	int count = 0;

	if (list_length(names) > FROWS_KEY_COLUMNS)
		ereport(ERROR, errcode(ERRCODE_TOO_MANY_COLUMNS),
			errmsg("a foreign key has %d columns at most", FROWS_KEY_COLUMNS));
	foreach (cell, names) {
		AttrNumber attnum = get_attnum(relid, strVal(lfirst(cell)));

		if (attnum <= 0)
			ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
				errmsg("column \"%s\" referenced in foreign key constraint does "
				       "not exist",
				       strVal(lfirst(cell))));
		ret[count++] = attnum;
	}
	return count;
}

static void
columns_find_parent(struct making *m)
{
	const struct frond_index *index;
	int count = 0;

	if (m->from->pk_attrs)
		count = columns_find(m->to->relid, m->from->pk_attrs, m->theirs);
	else if (m->to->has_hidden_key)
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
			errmsg("there is no primary key for referenced table \"%s\"",
			       RelationGetRelationName(m->parent)));
	else
		for (; count < m->to->key_count; count++)
			m->theirs[count] = m->to->key[count].attnum;
	if (count != m->count)
		ereport(ERROR, errcode(ERRCODE_INVALID_FOREIGN_KEY),
			errmsg("number of referencing and referenced columns for foreign key "
			       "disagree"));
	if (!frond_reference_target(m->to, m->theirs, count, &index))
		ereport(ERROR, errcode(ERRCODE_INVALID_FOREIGN_KEY),
			errmsg("there is no unique constraint matching given keys for referenced "
			       "table \"%s\"",
			       RelationGetRelationName(m->parent)));
}

static bool
is_integer(enum frows_kind kind)
{
	return kind == FROWS_INT2 || kind == FROWS_INT4 || kind == FROWS_INT8;
}

/* The operators by which PostgreSQL compares the two columns. Both are the same to frond. */
static void
operators_find(struct making *m, int i)
{
	const struct frond_column *own = &m->t->columns[m->own[i] - 1];
	const struct frond_column *theirs = &m->to->columns[m->theirs[i] - 1];
	Oid opclass = GetDefaultOpClass(theirs->type, BTREE_AM_OID), family, input;
	bool fit = own->kind == theirs->kind || (is_integer(own->kind) && is_integer(theirs->kind));

	if (OidIsValid(opclass) && fit) {
		family = get_opclass_family(opclass);
		input = get_opclass_input_type(opclass);
		m->pp[i] = get_opfamily_member(family, input, input, BTEqualStrategyNumber);
		m->pf[i] = get_opfamily_member(family, input, own->type, BTEqualStrategyNumber);
		m->ff[i] = get_opfamily_member(family, own->type, own->type, BTEqualStrategyNumber);
		if (!OidIsValid(m->pf[i]) && IsBinaryCoercible(own->type, input))
			m->pf[i] = m->ff[i] = m->pp[i];
		if (OidIsValid(m->pp[i]) && OidIsValid(m->pf[i]) && OidIsValid(m->ff[i]))
			return;
	}
	ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
		errmsg("foreign key constraint \"%s\" cannot be implemented", m->name),
		errdetail("Key columns \"%s\" and \"%s\" are of incompatible types: %s and %s.",
			  get_attname(m->t->relid, m->own[i], false),
			  get_attname(m->to->relid, m->theirs[i], false), format_type_be(own->type),
			  format_type_be(theirs->type)));
}

static void
check_generated(const struct making *m, int i)
{
	const Constraint *c = m->from;
	char generated = TupleDescAttr(RelationGetDescr(m->rel), m->own[i] - 1)->attgenerated;
	bool sets = c->fk_del_action == FKCONSTR_ACTION_SETNULL ||
		    c->fk_del_action == FKCONSTR_ACTION_SETDEFAULT ||
		    c->fk_upd_action == FKCONSTR_ACTION_SETNULL ||
		    c->fk_upd_action == FKCONSTR_ACTION_SETDEFAULT ||
		    c->fk_upd_action == FKCONSTR_ACTION_CASCADE;

	if (generated && sets)
		ereport(ERROR, errcode(ERRCODE_SYNTAX_ERROR),
			errmsg("invalid action for foreign key constraint containing generated "
			       "column"));
}

static void
check_set_columns(const struct making *m)
{
	for (int i = 0; i < m->set_count; i++) {
		bool found = false;

		for (int j = 0; j < m->count; j++)
			found |= m->own[j] == m->set[i];
		if (!found)
			ereport(ERROR, errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
				errmsg("column \"%s\" referenced in ON DELETE SET action must be "
				       "part of foreign key",
				       get_attname(m->t->relid, m->set[i], false)));
	}
}

static void
name_choose(struct making *m)
{
	StringInfoData columns;
	ListCell *cell;

	if (m->from->conname) {
		m->name = m->from->conname;
		if (ConstraintNameIsUsed(CONSTRAINT_RELATION, m->t->relid, m->name))
			ereport(ERROR, errcode(ERRCODE_DUPLICATE_OBJECT),
				errmsg("constraint \"%s\" for relation \"%s\" already exists",
				       m->name, RelationGetRelationName(m->rel)));
		return;
	}
	initStringInfo(&columns);
	foreach (cell, m->from->fk_attrs)
		appendStringInfo(&columns, "%s%s", foreach_current_index(cell) ? "_" : "",
				 strVal(lfirst(cell)));
	m->name = ChooseConstraintName(RelationGetRelationName(m->rel), columns.data, "fkey",
				       RelationGetNamespace(m->rel), NIL);
}

/* ---- The catalog ---- */

/* One of the extension's functions for triggers. */
static Oid
function_named(const char *name)
{
	ForeignDataWrapper *wrapper = GetForeignDataWrapperByName("frond", false);
	Oid function = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
				       PointerGetDatum(buildoidvector(NULL, 0)),
				       ObjectIdGetDatum(get_func_namespace(wrapper->fdwhandler)));

	if (!OidIsValid(function))
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_FUNCTION),
			errmsg("the extension has no function %s()", name));
	return function;
}

static void
trigger_make(Oid relid, Oid constraint, const char *name, bool row, int16 events,
	     const char *function)
{
	CreateTrigStmt *s = makeNode(CreateTrigStmt);

	s->trigname = pstrdup(name);
	s->row = row;
	s->timing = TRIGGER_TYPE_AFTER;
	s->events = events;
	(void)CreateTrigger(s, NULL, relid, InvalidOid, constraint, InvalidOid,
			    function_named(function), InvalidOid, NULL, true, false);
	CommandCounterIncrement();
}

void
frond_constraint_trigger_make(Oid relid, Oid constraint, const char *name)
{
	trigger_make(relid, constraint, name, false, TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE,
		     "frond_reference");
}

static Oid
constraint_make(const struct making *m)
{
	const Constraint *c = m->from;
	Oid oid = CreateConstraintEntry(
		m->name, RelationGetNamespace(m->rel), CONSTRAINT_FOREIGN, c->deferrable,
		c->initdeferred, !c->skip_validation, InvalidOid, m->t->relid, m->own, m->count,
		m->count, InvalidOid, InvalidOid, m->to->relid, m->theirs, m->pf, m->pp, m->ff,
		m->count, c->fk_upd_action, c->fk_del_action, m->set, m->set_count, c->fk_matchtype,
		NULL, NULL, NULL, true, 0, true, false);

	CommandCounterIncrement();
	trigger_make(m->to->relid, oid, "RI_ConstraintTrigger_a", true,
		     TRIGGER_TYPE_DELETE | TRIGGER_TYPE_UPDATE, "frond_referenced");
	frond_constraint_trigger_make(m->t->relid, oid, "RI_ConstraintTrigger_c");
	return oid;
}

/* Whether all rows that are there refer to others. Fails with the first that does not. */
static void
rows_check(Relation rel, Relation parent, Oid constraint, const char *name)
{
	Trigger trigger = { .tgname = pstrdup(name),
			    .tgenabled = TRIGGER_FIRES_ON_ORIGIN,
			    .tgisinternal = true,
			    .tgconstrrelid = RelationGetRelid(parent),
			    .tgconstraint = constraint };

	if (!RI_Initial_Check(&trigger, rel, parent))
		ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			errmsg("rows of \"%s\" and \"%s\" cannot be compared without the right to "
			       "read both",
			       RelationGetRelationName(rel), RelationGetRelationName(parent)));
}

void
frond_foreign_add(Oid relid, const Constraint *c, bool is_new)
{
	struct making m = { .from = c };
	Oid oid;

	m.rel = relation_open(relid, ShareRowExclusiveLock);
	m.t = frond_table_get(relid, GetUserId());
	parent_open(&m);
	if (c->fk_matchtype == FKCONSTR_MATCH_PARTIAL)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("MATCH PARTIAL not yet implemented"));
	name_choose(&m);
	m.count = columns_find(relid, c->fk_attrs, m.own);
	columns_find_parent(&m);
	m.set_count = columns_find(relid, c->fk_del_set_cols, m.set);
	check_set_columns(&m);
	for (int i = 0; i < m.count; i++) {
		check_generated(&m, i);
		operators_find(&m, i);
	}
	oid = constraint_make(&m);
	if (!is_new && !c->skip_validation)
		rows_check(m.rel, m.parent, oid, m.name);
	CacheInvalidateRelcache(m.rel);
	CacheInvalidateRelcache(m.parent);
	relation_close(m.parent, NoLock);
	relation_close(m.rel, NoLock);
}

void
frond_foreign_validate(Oid relid, const char *name)
{
	Oid oid = get_relation_constraint_oid(relid, name, true);
	HeapTuple tuple = OidIsValid(oid) ? SearchSysCache1(CONSTROID, ObjectIdGetDatum(oid))
					  : NULL;
	Form_pg_constraint form;
	Oid parent_oid;
	Relation rel, parent;
	bool is_due;

	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_constraint)GETSTRUCT(tuple);
	is_due = form->contype == CONSTRAINT_FOREIGN && !form->convalidated;
	parent_oid = form->confrelid;
	ReleaseSysCache(tuple);
	if (!is_due)
		return;
	rel = relation_open(relid, NoLock);
	parent = relation_open(parent_oid, ShareRowExclusiveLock);
	rows_check(rel, parent, oid, name);
	relation_close(parent, NoLock);
	relation_close(rel, NoLock);
}

/* ---- Unique indexes that are needed ---- */

void
frond_foreign_check_index(const struct frond_table *t, const char *name)
{
	Relation all = table_open(ConstraintRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(all, InvalidOid, false, NULL, 0, NULL);
	HeapTuple tuple;

	while ((tuple = systable_getnext(scan))) {
		Form_pg_constraint form = (Form_pg_constraint)GETSTRUCT(tuple);
		AttrNumber own[INDEX_MAX_KEYS], theirs[INDEX_MAX_KEYS];
		const struct frond_index *index;
		Oid operators[INDEX_MAX_KEYS];
		int count;

		if (form->contype != CONSTRAINT_FOREIGN || form->confrelid != t->relid)
			continue;
		DeconstructFkConstraintRow(tuple, &count, own, theirs, operators, NULL, NULL, NULL,
					   NULL);
		if (!frond_reference_target(t, theirs, count, &index) ||
		    (name ? !index || strcmp(index->name, name) != 0 : index != NULL))
			continue;
		if (!name)
			name = psprintf("%s_pkey", get_rel_name(t->relid));
		ereport(ERROR, errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
			errmsg("cannot drop index %s because other objects depend on it", name),
			errdetail("constraint %s on foreign table %s depends on index %s",
				  NameStr(form->conname), get_rel_name(form->conrelid), name));
	}
	systable_endscan(scan);
	table_close(all, AccessShareLock);
}
