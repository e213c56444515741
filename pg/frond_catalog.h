/*
 * Indexes: their definition (index.c), and what PostgreSQL's catalog tells of them and of primary
 * keys (catalog.c).
 */
#ifndef FROND_PG_FROND_CATALOG_H
#define FROND_PG_FROND_CATALOG_H

#include "frond_define.h"

/* ---- Definitions (index.c) ---- */

/* CREATE INDEX, and UNIQUE of a table that is there. */
void frond_index_create(Oid relid, IndexStmt *statement);
void frond_index_add_unique(Oid relid, const Constraint *constraint);
/* The same as a part of frond's transaction, whatever frond.bulk_load says: of a table that is made
 * anew, and has no rows by then. */
void frond_index_create_within(Oid relid, IndexStmt *statement);
/* The condition of an index, as a statement has it; NULL: it has none. */
Node *frond_index_where(Oid relid, const struct frond_index *index);
/* What is dropped by a statement that drops an index. */
enum frond_index_dropped {
	FROND_INDEX_ALONE,
	FROND_INDEX_OF_CONSTRAINT,
	FROND_INDEX_OF_COLUMN, /* a column of it: nothing may keep it */
};

/* Drops an index when the transaction has committed. False: the table has none of that name. */
bool frond_index_drop(Oid relid, const char *name, enum frond_index_dropped what);
/* The table whose index a name is; InvalidOid: it is none of frond's. */
Oid frond_index_find(List *name);

/* ---- PostgreSQL's catalog (catalog.c) ---- */

/* Columns of an index, and those that it includes. */
#define FROND_CATALOG_COLUMNS (2 * FROWS_KEY_COLUMNS)

/* An index, or a primary key, as PostgreSQL's catalog has it. */
struct frond_catalog_index {
	const char *name;
	const char *stored; /* what frond calls it; NULL: the same */
	bool unique, is_primary, is_constraint;
	bool deferrable, deferred; /* of a UNIQUE constraint */
	int key_count, count;      /* without, and with what it includes */
	struct frond_catalog_column {
		AttrNumber attnum; /* 0: of an expression */
		Expr *expression;
		const char *name; /* what PostgreSQL calls it; NULL: as the table's column */
		bool descending;
		Oid collation, opclass; /* InvalidOid: the column's, and its type's */
	} columns[FROND_CATALOG_COLUMNS];
	List *predicate; /* as the planner has it */
};

void frond_catalog_index_add(Relation rel, const struct frond_catalog_index *index);
void frond_catalog_key_add(Relation rel, const struct frond_key_spec *key);
/* Makes the trigger that looks whether the rows of a statement fulfil a constraint (foreign.c). */
void frond_constraint_trigger_make(Oid relid, Oid constraint, const char *name);
/* The table in frond whose index in the catalog it is; InvalidOid: it is none. */
Oid frond_catalog_table_of(Oid index);
/* Drops an index from the catalog; one that a constraint needs only with that (`is_constraint`).
 * False: the catalog does not have it. */
bool frond_catalog_index_drop(Oid relid, const char *name, bool is_constraint);
/* What frond calls an index of the catalog: it keeps its name there when it is renamed. */
const char *frond_catalog_index_stored(Oid index);
void frond_catalog_index_renamed(Oid index, const char *stored);
/* The indexes that the catalog has of a table, with its primary key: OIDs. */
List *frond_catalog_index_oids(Oid relid);
/* The operator class of that name, or InvalidOid: it has another order than frond's indexes. */
Oid frond_catalog_opclass(List *named, Oid type);

#endif
