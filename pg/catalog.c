/*
 * Indexes of frond's in PostgreSQL's catalog: rows of pg_class, pg_index and, for primary keys and
 * UNIQUE, pg_constraint. Tools that look there find them, GROUP BY knows a primary key by them,
 * and names are taken once.
 *
 * PostgreSQL does nothing with them. They are of the kind of partitioned tables' indexes, which
 * have no storage and which no plan uses; and relhasindex of the table stays false, so nothing
 * opens them when rows are planned, written, analyzed or dumped. They depend on their table and
 * not on its columns, since PostgreSQL would make an index anew by its own means when a column's
 * type changes: alter.c drops them with columns.
 */
#include "frond_pg.h"
#include "frond_catalog.h"

#include "access/heapam.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/heap.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "commands/defrem.h"
#include "utils/fmgroids.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* Of an index that has another name in frond. */
#define STORED_OPTION "frond_name"

/* ---- Operator classes ---- */

Oid
frond_catalog_opclass(List *named, Oid type)
{
	Oid opclass = ResolveOpClass(named, type, "btree", BTREE_AM_OID);
	Oid family = get_opclass_family(opclass);

	/* The order of bytes is the one that frond has of texts anyway. */
	if (opclass == GetDefaultOpClass(type, BTREE_AM_OID) ||
	    family == TEXT_PATTERN_BTREE_FAM_OID || family == BPCHAR_PATTERN_BTREE_FAM_OID)
		return opclass;
	/* varchar_ops and its like are names for the default one. */
	return family == get_opclass_family(GetDefaultOpClass(type, BTREE_AM_OID)) ? opclass
										   : InvalidOid;
}

/* ---- Making ---- */

static void
depend_on_table(Oid catalog, Oid oid, Oid relid)
{
	ObjectAddress from, to;

	ObjectAddressSet(from, catalog, oid);
	ObjectAddressSet(to, RelationRelationId, relid);
	(void)deleteDependencyRecordsForClass(catalog, oid, RelationRelationId, DEPENDENCY_AUTO);
	recordDependencyOn(&from, &to, DEPENDENCY_AUTO);
}

/* index_create() has said that the table has indexes. It writes that in place, whatever becomes of
 * the transaction, and so does this. */
static void
hide_from_planner(Oid relid)
{
	Relation classes = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple tuple;

	CommandCounterIncrement();
	tuple = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	((Form_pg_class)GETSTRUCT(tuple))->relhasindex = false;
	heap_inplace_update(classes, tuple);
	heap_freetuple(tuple);
	table_close(classes, RowExclusiveLock);
}

/*
 * PostgreSQL's own trigger of a deferrable UNIQUE is refused of a foreign table. So the constraint
 * is made as if it could not be deferred, and said to be deferrable here.
 */
static void
constraint_defer(Oid relid, Oid constraint, Oid index, bool deferred)
{
	Relation constraints = table_open(ConstraintRelationId, RowExclusiveLock);
	Relation indexes = table_open(IndexRelationId, RowExclusiveLock);
	HeapTuple tuple = SearchSysCacheCopy1(CONSTROID, ObjectIdGetDatum(constraint));
	HeapTuple of_index = SearchSysCacheCopy1(INDEXRELID, ObjectIdGetDatum(index));
	Form_pg_constraint form = (Form_pg_constraint)GETSTRUCT(tuple);

	form->condeferrable = true;
	form->condeferred = deferred;
	CatalogTupleUpdate(constraints, &tuple->t_self, tuple);
	((Form_pg_index)GETSTRUCT(of_index))->indimmediate = false;
	CatalogTupleUpdate(indexes, &of_index->t_self, of_index);
	table_close(indexes, RowExclusiveLock);
	table_close(constraints, RowExclusiveLock);
	CommandCounterIncrement();
	frond_constraint_trigger_make(relid, constraint, "PK_ConstraintTrigger");
}

static List *
expressions_of(const struct frond_catalog_index *index)
{
	List *all = NIL;

	for (int i = 0; i < index->key_count; i++)
		if (!index->columns[i].attnum)
			all = lappend(all, index->columns[i].expression);
	return all;
}

/* ---- What frond calls an index ---- */

static Datum
stored_option(const char *stored)
{
	if (!stored)
		return (Datum)0;
	return transformRelOptions(
		(Datum)0,
		list_make1(makeDefElem(STORED_OPTION, (Node *)makeString(pstrdup(stored)), -1)),
		NULL, NULL, false, false);
}

const char *
frond_catalog_index_stored(Oid index)
{
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
	const char *stored = NULL;
	Datum options;
	bool is_null;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", index);
	options = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_reloptions, &is_null);
	if (!is_null)
		stored = frond_option(untransformRelOptions(options), STORED_OPTION);
	if (!stored)
		stored = pstrdup(NameStr(((Form_pg_class)GETSTRUCT(tuple))->relname));
	ReleaseSysCache(tuple);
	return stored;
}

void
frond_catalog_index_renamed(Oid index, const char *stored)
{
	Relation classes = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple tuple = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(index)), changed;
	Datum values[Natts_pg_class] = { 0 };
	bool nulls[Natts_pg_class] = { false }, replaces[Natts_pg_class] = { false };
	int at = Anum_pg_class_reloptions - 1;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", index);
	replaces[at] = true;
	nulls[at] = strcmp(NameStr(((Form_pg_class)GETSTRUCT(tuple))->relname), stored) == 0;
	if (!nulls[at])
		values[at] = stored_option(stored);
	changed = heap_modify_tuple(tuple, RelationGetDescr(classes), values, nulls, replaces);
	CatalogTupleUpdate(classes, &tuple->t_self, changed);
	table_close(classes, RowExclusiveLock);
	CommandCounterIncrement();
}

/* ---- Making rows of the catalog ---- */

void
frond_catalog_index_add(Relation rel, const struct frond_catalog_index *index)
{
	IndexInfo *info = makeIndexInfo(index->count, index->key_count, BTREE_AM_OID,
					expressions_of(index), index->predicate, index->unique,
					false, false, false);
	Oid collations[FROND_CATALOG_COLUMNS] = { InvalidOid };
	Oid opclasses[FROND_CATALOG_COLUMNS] = { InvalidOid };
	int16 options[FROND_CATALOG_COLUMNS] = { 0 };
	bits16 flags = INDEX_CREATE_PARTITIONED | INDEX_CREATE_SKIP_BUILD;
	Oid relid = RelationGetRelid(rel), constraint = InvalidOid, oid;
	List *names = NIL;

	for (int i = 0; i < index->count; i++) {
		const struct frond_catalog_column *c = &index->columns[i];
		Form_pg_attribute a = c->attnum
					      ? TupleDescAttr(RelationGetDescr(rel), c->attnum - 1)
					      : NULL;
		Node *e = (Node *)c->expression;

		info->ii_IndexAttrNumbers[i] = c->attnum;
		names = lappend(names, pstrdup(c->name ? c->name : NameStr(a->attname)));
		if (i >= index->key_count)
			continue;
		collations[i] = OidIsValid(c->collation) ? c->collation
				: a                      ? a->attcollation
							 : exprCollation(e);
		opclasses[i] = OidIsValid(c->opclass)
				       ? c->opclass
				       : GetDefaultOpClass(a ? a->atttypid : exprType(e),
							   BTREE_AM_OID);
		if (c->descending)
			options[i] = INDOPTION_DESC | INDOPTION_NULLS_FIRST;
	}
	if (index->is_constraint)
		flags |= INDEX_CREATE_ADD_CONSTRAINT;
	if (index->is_primary)
		flags |= INDEX_CREATE_IS_PRIMARY;
	oid = index_create(rel, index->name, InvalidOid, InvalidOid, InvalidOid, InvalidOid, info,
			   names, BTREE_AM_OID, InvalidOid, collations, opclasses, options,
			   stored_option(index->stored), flags, 0, false, false, &constraint);
	if (OidIsValid(constraint))
		depend_on_table(ConstraintRelationId, constraint, relid);
	else
		depend_on_table(RelationRelationId, oid, relid);
	if (index->deferrable) {
		CommandCounterIncrement();
		constraint_defer(relid, constraint, oid, index->deferred);
	}
	hide_from_planner(relid);
	CommandCounterIncrement();
}

void
frond_catalog_key_add(Relation rel, const struct frond_key_spec *key)
{
	struct frond_catalog_index index = {
		.name = key->name, .unique = true, .is_primary = true, .is_constraint = true
	};
	ListCell *cell;

	if (!key->columns)
		return;
	if (!index.name)
		index.name = ChooseRelationName(RelationGetRelationName(rel), NULL, "pkey",
						RelationGetNamespace(rel), true);
	foreach (cell, key->columns)
		index.columns[index.count++].attnum = get_attnum(RelationGetRelid(rel),
								 strVal(lfirst(cell)));
	index.key_count = index.count;
	frond_catalog_index_add(rel, &index);
}

/* ---- Looking, dropping ---- */

Oid
frond_catalog_table_of(Oid index)
{
	Oid relid = get_rel_relkind(index) == RELKIND_PARTITIONED_INDEX
			    ? IndexGetRelation(index, true)
			    : InvalidOid;

	return OidIsValid(relid) && frond_is_table(relid) ? relid : InvalidOid;
}

List *
frond_catalog_index_oids(Oid relid)
{
	Relation all = table_open(IndexRelationId, AccessShareLock);
	List *oids = NIL;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple tuple;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
		    ObjectIdGetDatum(relid));
	scan = systable_beginscan(all, IndexIndrelidIndexId, true, NULL, 1, &key);
	while ((tuple = systable_getnext(scan)))
		oids = lappend_oid(oids, ((Form_pg_index)GETSTRUCT(tuple))->indexrelid);
	systable_endscan(scan);
	table_close(all, AccessShareLock);
	return oids;
}

bool
frond_catalog_index_drop(Oid relid, const char *name, bool is_constraint)
{
	Oid oid = get_relname_relid(name, get_rel_namespace(relid)), constraint;
	ObjectAddress object;

	if (!OidIsValid(oid) || frond_catalog_table_of(oid) != relid)
		return false;
	constraint = get_index_constraint(oid);
	if (OidIsValid(constraint) && !is_constraint)
		ereport(ERROR, errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
			errmsg("cannot drop index %s because constraint %s on foreign table %s "
			       "requires it",
			       name, get_constraint_name(constraint), get_rel_name(relid)),
			errhint("ALTER TABLE … DROP CONSTRAINT drops both."));
	if (OidIsValid(constraint))
		ObjectAddressSet(object, ConstraintRelationId, constraint);
	else
		ObjectAddressSet(object, RelationRelationId, oid);
	performDeletion(&object, DROP_RESTRICT, 0);
	CommandCounterIncrement();
	return true;
}
