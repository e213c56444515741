/*
 * Definitions: CREATE TABLE and what is common to them (ddl.c, like.c), ALTER TABLE (alter.c),
 * tables that are made anew with their rows (remake.c), types of columns (retype.c), DROP DATABASE
 * (database.c).
 */
#ifndef FROND_PG_FROND_DEFINE_H
#define FROND_PG_FROND_DEFINE_H

#include "frond_pg.h"

/* A key as CREATE TABLE, or ADD PRIMARY KEY, has it. */
struct frond_key_spec {
	List *columns; /* names */
	List *hash;    /* those of them that are hashed */
	List *descending;
	List *unique;     /* of Constraint: UNIQUE */
	List *foreign;    /* of Constraint: FOREIGN KEY */
	const char *name; /* NULL: one is chosen */
};
/* Runs a statement in the place of another. */
typedef void frond_run_utility(Node *statement, void *arg);
/* Runs SQL whose result nobody wants, within the transaction; fails as it does (alter.c). */
void frond_run_sql(const char *sql);
/* Takes the constraints of a column that frond keeps, and gives the others. */
List *frond_constraints_take(List *constraints, const char *column, struct frond_key_spec *key);

/*
 * Makes the table in frond: its columns are the relation's. `again`: in the place of the one that
 * is there. `within`: as a part of frond's transaction, whether or not that has written before.
 */
void frond_table_make(Relation rel, const struct frond_key_spec *key, bool again, bool within);

/* ---- Tables that have rows are made anew (remake.c), columns get other types (retype.c) ---- */

/* A column that gets another type: its values are computed of the row as it is. */
struct frond_retype {
	AttrNumber attnum;
	Oid type;
	int32 typmod;
	Node *expression; /* its Vars have the number 1 */
};
struct frond_remake;
/*
 * Takes all rows of a table out, as a part of frond's transaction. Fails with 54000 if they are
 * more than it may have. `retypes`: of struct frond_retype.
 */
struct frond_remake *frond_remake_begin(Oid relid, List *retypes);
/* Makes the table as PostgreSQL's catalog has it by now, with that key, or without columns in it
 * with a hidden one, with its indexes, and writes the rows. */
void frond_remake_end(struct frond_remake *remake, const struct frond_key_spec *key);
/* The key that a table has. */
void frond_remake_key(const struct frond_table *t, struct frond_key_spec *ret);
/* Both at once: the table gets another key. */
void frond_rekey(Oid relid, const struct frond_key_spec *key);
/* Runs ALTER COLUMN … TYPE, of one column or of several, and nothing else in the statement. */
void frond_retype(Oid relid, AlterTableStmt *statement, frond_run_utility *run, void *arg);
/* Takes a storage parameter that only says how a heap lies on its pages, with a notice. False: it
 * is another one. */
bool frond_storage_take(const DefElem *option);

/* ---- CREATE TABLE … (LIKE …) (like.c) ---- */

/* What there is to do when the table is there. */
struct frond_likes {
	List *indexes;           /* of IndexStmt */
	List *comments;          /* of columns: lists of a name and a text */
	bool has_key;            /* the key is that of a table in frond, whose … */
	List *hash, *descending; /* … columns these are */
};
/* The elements of the statement, with columns in the place of LIKE. */
List *frond_likes_expand(List *elements, struct frond_likes *ret);
void frond_likes_finish(Oid relid, const struct frond_likes *likes);
/* The statement that makes an index of PostgreSQL's catalog, or its UNIQUE constraint. */
IndexStmt *frond_index_statement(Oid oid);
/* An expression in SQL, as the parser has it. */
Node *frond_expression_parse(const char *text);

/* ---- DROP DATABASE (database.c) ---- */

extern bool frond_drop_database; /* it drops the tables in frond, too */
/* What the option `made` says of a table that CREATE TABLE has made in this database. */
const char *frond_database_id(Oid database);
/* Runs DROP DATABASE, and drops in frond what CREATE TABLE has made for the database. */
void frond_database_drop(const DropdbStmt *statement, frond_run_utility *run, void *arg);
/* What a background worker runs. */
PGDLLEXPORT void frond_database_worker(Datum arg);

/* ---- ALTER TABLE (alter.c) ---- */

/* True if ALTER TABLE, or RENAME, was of a table of this extension's and was done. */
bool frond_alter_table(AlterTableStmt *statement, frond_run_utility *run, void *arg);
/* Fails if a row does not fulfil the CHECK of that name, or with NULL one of all. */
void frond_checks_check(Oid relid, const char *name);
bool frond_rename(RenameStmt *statement, frond_run_utility *run, void *arg);
/* After ALTER DOMAIN: fails if a column in frond has a value that it refuses (domain.c). */
void frond_domain_check(const AlterDomainStmt *statement);

#endif
