/*
 * The extension of PostgreSQL: what its files share. README.md has the map, docs/SQL.md what users
 * see.
 *
 * Errors are PostgreSQL's: a function that fails does not return. Memory is of the current memory
 * context unless a comment says otherwise.
 *
 * Threading: a backend is one thread.
 */
#ifndef FROND_PG_FROND_PG_H
#define FROND_PG_FROND_PG_H

#include "postgres.h"

#include "executor/execdesc.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "nodes/parsenodes.h"
#include "nodes/pathnodes.h"
#include "utils/relcache.h"

#include "frond_rows.h"

/* The key of a table without a primary key: a column that PostgreSQL does not see but as ctid. */
#define FROND_HIDDEN_KEY "frond_row"

/* Options of tables and columns. `made`: CREATE TABLE has made it, and DROP TABLE drops it. */
#define FROND_OPTION_SCHEMA "schema"
#define FROND_OPTION_TABLE  "table"
#define FROND_OPTION_MADE   "made"
#define FROND_OPTION_COLUMN "column"

/* ---- Settings (settings.c) ---- */

extern char *frond_server_name; /* the server in which CREATE TABLE makes tables */
extern bool frond_allow_mixed_writes;
extern bool frond_bulk_load;
extern int frond_retries; /* of a statement that is a transaction by itself */

void frond_settings_init(void);
/* What options servers, user mappings, tables and columns may have; fails for others. */
void frond_options_check(List *options, Oid catalog);
/* The value of an option, or NULL. */
const char *frond_option(List *options, const char *name);

/* ---- Connections and transactions (link.c) ---- */

struct ExplainState; /* of commands/explain.h */
struct frond_table;

/* A connection to a frond of one person, for as long as the backend lives. */
struct frond_link;

void frond_link_init(void);

/* The connection, in whatever state its transaction is: for what stands outside of them. */
struct frows *frond_link_outside(Oid server, Oid user);
/* The same, without looking whether the server has closed it: for a request that is made again by
 * the other function if it has (frows_was_closed()). */
struct frows *frond_link_unasked(Oid server, Oid user);
/*
 * The connection, within the transaction and the savepoint that belong to PostgreSQL's. `writes`:
 * the transaction changes rows; fails with 0A000 where a local table was changed, too.
 */
struct frows *frond_link_inside(Oid server, Oid user, bool writes);
/*
 * Before schemas change. Where rows were changed in this transaction, definitions are a part of it
 * (frond_link_define_within()), unless frond.bulk_load lets the rows be committed. Otherwise what
 * was read is forgotten, and the connection is in no transaction.
 */
struct frows *frond_link_for_schema(Oid server, Oid user);
/* The connection, within the transaction, of which definitions become a part. Fails with 0A000 in a
 * subtransaction. */
struct frows *frond_link_define_within(Oid server, Oid user);
/* A second connection, in no transaction, that commits beside PostgreSQL's transaction. */
struct frows *frond_link_beside(Oid server, Oid user);
/*
 * With frond.bulk_load: commits what was written so far if it is much. `ahead`: the next request
 * that waits for an answer finds out what has become of that.
 */
void frond_link_wrote(Oid server, Oid user, size_t bytes, bool ahead);

/* The transaction reads what is committed now, if all that it has read is still so. False: it reads
 * what it did before. The second one does so with its next request, behind which the third one
 * tells whether. */
bool frond_link_refresh(Oid server, Oid user);
void frond_link_refresh_later(Oid server, Oid user);
bool frond_link_refreshed(Oid server, Oid user);
/* Whether a transaction with this connection is open; whether it has changed rows. */
bool frond_link_is_open(Oid server, Oid user);
bool frond_link_has_written(Oid server, Oid user);

/* Fails with what the connection's last request has failed with. */
void frond_fail(struct frows *c) pg_attribute_noreturn();

/* A table that this transaction has made, or a column of one, which is dropped if it aborts. With
 * `before` the table is made again as it was. Nothing is kept of what frond's transaction made. */
void frond_link_made(Oid server, Oid user, const char *schema, const char *table,
		     const char *column, const struct frows_new *before, size_t before_count);
/* The same of indexes. */
void frond_link_made_index(Oid server, Oid user, const char *schema, const char *index);
void frond_link_drop_index_later(Oid server, Oid user, const char *schema, const char *index);
/* An index that frond's transaction has made over rows: it is built when that has committed. */
void frond_link_build_later(const struct frond_table *t, Oid user, uint32 number,
			    const struct frows_index *index);
/* Fails with 0A000 if the table has a unique index that waits for that. */
void frond_link_check_built(Oid relid);
/* Tables and, with `column`, columns that are dropped when it has committed. */
void frond_link_drop_later(Oid server, Oid user, const char *schema, const char *table,
			   const char *column);
/* Whether this transaction drops a table, a column or an index when it has committed. */
bool frond_link_drops(const char *schema, const char *table, const char *column);
bool frond_link_drops_index(const char *schema, const char *index);
/* An index that was to be dropped later goes now, with frond's transaction: its name is free. */
void frond_link_drop_index_now(Oid server, Oid user, const char *schema, const char *index);
/* The table is made anew without the columns and indexes of it that are to be dropped. */
void frond_link_forget_drops(const struct frond_table *t);
/* A local table is changed by this transaction; fails if one of frond's was, too. */
void frond_link_local_write(void);
/* Whether a transaction of frond's is open. */
bool frond_link_is_used(void);
/*
 * The subtransaction that has just begun is a try of a statement: frond's transaction begins in it,
 * and is rolled back as a whole if it aborts. No transaction of frond's may be open.
 */
void frond_link_try(void);
/* The try has succeeded. `commit`: frond's transaction commits now, which may fail, and nothing
 * cancels PostgreSQL's any more; otherwise both go on. */
void frond_link_try_end(bool commit);

/*
 * Adds to a counter in frond, in a transaction of its own, and gives what it was before: `least`,
 * if it was less or not there. PG_INT64_MAX is where it ends.
 */
int64 frond_counter_take(Oid server, Oid user, const char *name, int64 least, int64 add);
void frond_counter_forget(Oid server, Oid user, const char *name);
/* Forgets all with names that lie from one up to, and without, another: as far as it can. `c` is in
 * no transaction. */
void frond_counters_forget(struct frows *c, const char *from, const char *to);
/* A number for a hidden key: never given twice by one frond, and what a ctid can hold. */
int64 frond_next_row(Oid server, Oid user);

/* ---- Tables (table.c) ---- */

struct frond_column {
	bool is_there; /* false: of a column that was dropped */
	Oid type;      /* without domains */
	int32 typmod;
	enum frows_kind kind;
	uint32 id;
	bool ordered; /* keys are in PostgreSQL's order */
	bool is_key;
	bool not_null;    /* as PostgreSQL has it */
	FmgrInfo in, out; /* of a type that goes as its text */
	Oid io_param;
};

struct frond_key_column {
	AttrNumber attnum; /* 0: the hidden key */
	bool descending;
};

struct frond_computed;
struct frond_push; /* frond_push.h */

/* An index of frond's, which PostgreSQL's catalog does not have. */
struct frond_index {
	uint32 number;
	const char *name;   /* as PostgreSQL knows it */
	const char *stored; /* in frond: what it was called when it was made */
	Oid oid;            /* InvalidOid: PostgreSQL's catalog lacks it */
	bool is_unique;
	bool is_usable;  /* rows can be found by it */
	bool has_groups; /* rows with equal values in its first columns lie together in it */
	int count;       /* 0 of one that only Cassandra's clients can use */
	struct frond_key_column columns[FROWS_KEY_COLUMNS];
	bool ordered[FROWS_KEY_COLUMNS]; /* its entries are in PostgreSQL's order */
	List *predicate;                 /* of rows that have entries: Vars have the number 1 */
	Bitmapset *carried;              /* attnums that entries have */
};

/* Whether no two rows of its table have the same values in its columns, nulls aside. */
static inline bool
frond_index_tells_apart(const struct frond_index *index)
{
	return index->is_unique && index->is_usable && !index->predicate;
}

/* A FOREIGN KEY of a table, which refers to another one; or a deferrable UNIQUE, which is kept in
 * the same way: its `parent` is the table itself. */
struct frond_reference {
	Oid constraint, parent;
	int count;
	AttrNumber own[INDEX_MAX_KEYS], theirs[INDEX_MAX_KEYS];
	bool is_full;     /* MATCH FULL */
	bool is_deferred; /* INITIALLY DEFERRED */
	bool is_unique;
};

struct frond_table {
	Oid relid;
	Oid server;
	const char *schema, *table; /* in frond */
	uint8 id[FROWS_ID_BYTES];
	int natts;
	/* By attnum - 1. Behind PostgreSQL's columns are those that indexes compute. */
	struct frond_column *columns;
	int computed_count;
	struct frond_computed *computed; /* frond_computed.h */
	bool is_computed_elsewhere;      /* another PostgreSQL computes some: no row is written */
	int key_count, hash_count;
	struct frond_key_column key[FROWS_KEY_COLUMNS];
	bool has_hidden_key;
	struct frond_column hidden;
	int index_count;
	struct frond_index *indexes;
	int reference_count;
	struct frond_reference *references;
	List *uniques; /* of struct frond_unique (unique.c) */
};

void frond_table_init(void);
/*
 * What frond has of a foreign table: asked once, then kept until the table changes. Valid until
 * the transaction ends. `user`: on whose behalf.
 */
const struct frond_table *frond_table_get(Oid relid, Oid user);
/*
 * About how many rows a table has, with those that this transaction has added: frond's estimate,
 * which is kept for some seconds. Less than 0: it cannot be told. Asks beside the transaction.
 */
double frond_table_rows(const struct frond_table *t, Oid user, bool *ret_exact);
/* Rows were written, and so many more are there now. */
void frond_table_wrote(const struct frond_table *t, int rows, int added);
/* Forgets all tables: frond has made one anew. */
void frond_table_forget(void);
/* Whether a relation is a table of this extension's. */
bool frond_is_table(Oid relid);
/* The names that a table has in frond, and its server. */
void frond_table_names(Oid relid, Oid *ret_server, const char **ret_schema, const char **ret_table);
/* The column that frond has by that name; NULL: it has none. */
const struct frows_column *frond_stored_column(const struct frows_table *f, const char *name);
/* The name of a column in frond. */
const char *frond_column_name(Relation rel, AttrNumber attnum);
struct frows_of frond_table_of(const struct frond_table *t);
/* An index of the table by its number, its name, or its name in frond; NULL: there is none. */
const struct frond_index *frond_index_numbered(const struct frond_table *t, uint32 number);
const struct frond_index *frond_index_named(const struct frond_table *t, const char *name);
const struct frond_index *frond_index_stored(const struct frond_table *t, const char *stored);
/* The column of the key. */
const struct frond_column *frond_key_column(const struct frond_table *t, int key);
/* The person as whom all queries ask frond, in place of their own; InvalidOid: none. */
extern Oid frond_acting_user;
/* Whose rights hold for a relation of a query. */
Oid frond_user_of(const RangeTblEntry *rte);

/* ---- Values (value.c) ---- */

/* The kind of a type of PostgreSQL; FROWS_OTHER for all that go as their text. */
enum frows_kind frond_kind_of(Oid type);
/* PostgreSQL's type for a column of frond's that has none, as text; NULL for FROWS_NONE. */
const char *frond_type_of_kind(enum frows_kind kind);
void frond_column_set_type(struct frond_column *c, Oid type, int32 typmod);
struct frows_value frond_value_put(const struct frond_column *c, Datum d);
Datum frond_value_get(const struct frond_column *c, struct frows_value v);
/* A copy in the current memory context of a value, or of the place of a scan, which was the
 * connection's. */
struct frows_value frond_value_copy(struct frows_value v);

/* ---- Scans: plan.c, scan.c ---- */

/* The lists of a ForeignScan's fdw_private. */
enum frond_private {
	FROND_PRIVATE_TESTS, /* for each test: place, operator, attnum, type of its value, clause */
	FROND_PRIVATE_COLUMNS, /* attnums; 0: the hidden key */
	FROND_PRIVATE_SCAN,    /* reverse, rows of the first page, index, whole key */
	FROND_PRIVATE_SUMS,    /* only of sums: each of them, as sums.c has it */
	FROND_PRIVATE_CLAUSES, /* only of sums: the tests, as conditions on a table alone */
	FROND_PRIVATE_GROUPS,  /* likewise: groups, as sums.c has them; NIL: there are none */
};

/*
 * Where a test's list has its clause: the index in the plan's `qual` of the condition that it is.
 * Plans with fdw_recheck_quals have none, since these are the conditions of their tests.
 */
#define FROND_TEST_CLAUSE 4

/* Tells the planner of unique keys, by its hook (unique.c). */
void frond_unique_init(void);
/* Sets t->uniques, in the current memory context. All else of the table is there. */
void frond_uniques_load(struct frond_table *t);
void frond_plan_size(PlannerInfo *root, RelOptInfo *rel, Oid relid);
void frond_plan_paths(PlannerInfo *root, RelOptInfo *rel, Oid relid);
ForeignScan *frond_plan_scan(PlannerInfo *root, RelOptInfo *rel, Oid relid, ForeignPath *path,
			     List *tlist, List *clauses, Plan *outer);

/* A scan of one row, by its whole key: what frond_plan_scan() makes of a relation that has only its
 * number. */
ForeignScan *frond_plan_point(RelOptInfo *rel, const struct frond_table *t,
			      const struct frond_push *push, List *tlist, List *clauses);
/* The plan of a statement about one row that is named by its key, or of an INSERT of one row
 * (point.c); NULL: PostgreSQL's planner has to make it. Keeps parts of the query. */
PlannedStmt *frond_point_plan(Query *q, int options);
const struct frond_table *frond_plan_table(PlannerInfo *root, RelOptInfo *rel);
/* What it costs that frond reads the rows. */
Cost frond_plan_cost(PlannerInfo *root, RelOptInfo *rel, const struct frond_push *push);
/* What it costs that frond counts rows of groups by their entries. */
Cost frond_plan_counted(double rows, double groups);
/* What it costs that so many rows come here. */
Cost frond_plan_sent(double rows);
/* By the key or an index: what costs the least. */
void frond_plan_best(PlannerInfo *root, RelOptInfo *rel, const struct frond_table *t, List *clauses,
		     struct frond_push *ret);

void frond_scan_begin(ForeignScanState *node, int eflags);
TupleTableSlot *frond_scan_next(ForeignScanState *node);
void frond_scan_again(ForeignScanState *node);
void frond_scan_end(ForeignScanState *node);
/* Before rows of the table are written: all open scans of it read what is left of their pages. */
void frond_scan_read_all(Oid relid);
/* A transaction, or a subtransaction of this level, has aborted: its scans are forgotten. */
void frond_scan_forget(int level);
/* A subtransaction of this level has committed: its scans are its parent's. */
void frond_scan_rise(int level);
void frond_scan_explain(ForeignScanState *node, struct ExplainState *es);

/* ---- Writes (modify.c, truncate.c) ---- */

void frond_modify_targets(PlannerInfo *root, Index rti, RangeTblEntry *rte, Relation rel);
/* What a plan calls a column of the key. Valid until the next call. */
const char *frond_modify_key_name(int key);
/* `root` may be NULL where there is no ON CONFLICT. */
List *frond_modify_plan(PlannerInfo *root, ModifyTable *plan, Index rti, int subplan);
void frond_modify_begin(ModifyTableState *state, ResultRelInfo *rel, List *private, int subplan,
			int eflags);
void frond_modify_begin_insert(ModifyTableState *state, ResultRelInfo *rel);
TupleTableSlot *frond_modify_insert(EState *estate, ResultRelInfo *rel, TupleTableSlot *slot,
				    TupleTableSlot *plan_slot);
TupleTableSlot **frond_modify_insert_batch(EState *estate, ResultRelInfo *rel,
					   TupleTableSlot **slots, TupleTableSlot **plan_slots,
					   int *count);
int frond_modify_batch_size(ResultRelInfo *rel);
TupleTableSlot *frond_modify_update(EState *estate, ResultRelInfo *rel, TupleTableSlot *slot,
				    TupleTableSlot *plan_slot);
TupleTableSlot *frond_modify_delete(EState *estate, ResultRelInfo *rel, TupleTableSlot *slot,
				    TupleTableSlot *plan_slot);
void frond_modify_end(EState *estate, ResultRelInfo *rel);
void frond_modify_truncate(List *rels, DropBehavior behavior, bool restart_seqs);
/* Before a query reads the table: sends what others of the backend have written that it sees. */
void frond_modify_flush(Oid relid, const EState *reader);
/* A transaction, or a subtransaction of this level, has aborted: its writes are forgotten. What is
 * in the memory of a function that has not ended may be there for longer. */
void frond_modify_forget(int level);
/* The person who writes in this transaction. */
Oid frond_modify_writer(void);

/* ---- INSERT … ON CONFLICT (conflict.c) ---- */

enum frond_conflict {
	FROND_CONFLICT_NONE,    /* no row has the key */
	FROND_CONFLICT_SKIPPED, /* one has, and WHERE does not hold */
	FROND_CONFLICT_UPDATED, /* … what it becomes is in rel->ri_onConflict->oc_ProjSlot */
};

void frond_conflict_init(void);

/* Targets that are no index: the key; and deferrable constraints, which nothing can look at in
 * time. Their numbers are this one and their places in the table's references. */
#define FROND_TARGET_KEY      0
#define FROND_TARGET_DEFERRED ((uint32)PG_INT32_MAX)

/* The target that target_take() has kept: the number of a unique index, or one of the above.
 * False: there is none. */
bool frond_conflict_target(const OnConflictExpr *conflict, uint32 *ret);
/* The key of the row that has these values in a unique index, copied. False: there is none. */
bool frond_conflict_find(const struct frond_table *t, Oid user, const struct frond_index *index,
			 const struct frows_value *values, struct frows_value *ret_key);
/* What DO UPDATE makes of the row that has this key; `slot`: the one that was to be inserted. */
enum frond_conflict frond_conflict_update(const struct frond_table *t, Oid user, ResultRelInfo *rel,
					  ExprContext *context, const struct frows_value *key,
					  TupleTableSlot *slot);

/* ---- FOREIGN KEY: foreign.c defines it, reference.c keeps it ---- */

/* Adds a constraint to a table. `is_new`: the table has no rows that it has to hold for. */
void frond_foreign_add(Oid relid, const Constraint *constraint, bool is_new);
/* Before VALIDATE CONSTRAINT: fails if rows do not fulfil the foreign key of that name. */
void frond_foreign_validate(Oid relid, const char *name);
/* Fails if a statement would make a local table refer to one in frond. */
void frond_foreign_check_local(const List *elements);
/* Fails if a foreign key needs the unique index; NULL: the primary key. */
void frond_foreign_check_index(const struct frond_table *t, const char *name);

void frond_references_load(Oid relid, struct frond_table *t);
/* How rows are found by these columns: *ret: by this index, or NULL: by the key. False: they are
 * not unique. */
bool frond_reference_target(const struct frond_table *t, const AttrNumber *columns, int count,
			    const struct frond_index **ret);
/* The columns that other tables refer to, as attnums. */
Bitmapset *frond_referenced_columns(const TriggerDesc *triggers);
/* A row of `t` is written that refers to these values; they are copied. */
void frond_reference_note(const struct frond_table *t, Oid user, const struct frond_reference *r,
			  const struct frows_value *values);
/*
 * Looks for what was noted, and fails if something is missing: of the table `child`, or of all;
 * only of constraints that are not deferred, or `at_commit` of all.
 */
void frond_references_check(Oid child, bool at_commit);
/* SET CONSTRAINTS. */
void frond_references_set(const ConstraintsSetStmt *statement);
/* A subtransaction of this level has aborted; has committed; the transaction has ended. */
void frond_references_forget(int level);
void frond_references_rise(int level);
void frond_references_end(void);

/* ---- SERIAL and identity columns (sequence.c) ---- */

void frond_sequence_init(void);
extern int frond_sequence_block; /* numbers that a session draws at once */
/* ALTER SEQUENCE, which makes it a column's: of a column in frond it gets blocks of that size. */
AlterSeqStmt *frond_sequence_owned(AlterSeqStmt *statement);
/* An expression with the store's numbers in the place of nextval(). NULL: it calls that of no
 * sequence of a column in frond. */
Node *frond_sequence_numbers(Node *expression);
/* TRUNCATE … RESTART IDENTITY: the counters of the table's sequences begin anew. */
void frond_sequences_restart(Oid relid);
/* After a table, or with `column` that column of it, was dropped in frond: its counters go. It does
 * not fail, and a counter that stays means nothing. `c` is in no transaction. */
void frond_sequences_forget(struct frows *c, const struct frows_table *t, const char *column);

/* ---- COPY (copy.c) ---- */

/* Whether COPY … FROM leaves out columns of the table that have numbers from the store. */
bool frond_copy_has_numbers(const CopyStmt *statement, Oid relid);
/* Runs it, and gives how many rows there were. */
uint64 frond_copy_from(const CopyStmt *statement, const char *text, QueryEnvironment *environment);

/* ---- Statements that are tried again (retry.c) ---- */

void frond_retry_init(void);
/* In the place of ExecutorStart(), which nobody else has a hook in: starts a query of which only
 * copies will run. False: it is to be started as any other. */
bool frond_retry_start(QueryDesc *query, int eflags);
/* Whether a scan that runs now is the whole query, which is a client's whole transaction, and
 * frond was not asked in it: then one request needs no transaction of frond's. */
bool frond_is_only_scan(const EState *estate, const Plan *scan);

/* ---- Definitions (ddl.c, alter.c) ---- */

void frond_ddl_init(void);
/* The statement that runs is a client's, and no function's or block's. */
extern bool frond_at_top_level;
/* A statement runs that is none of the planner's: what is planned now is a part of it. */
extern bool frond_in_utility;
/* One that keeps a query, such as CREATE VIEW. */
extern bool frond_in_definition;

/* ---- What else there is (import.c) ---- */

List *frond_import(ImportForeignSchemaStmt *statement, Oid server);
bool frond_analyze(Relation rel,
		   int (**ret_sample)(Relation, int, HeapTuple *, int, double *, double *),
		   uint32 *pages);

#endif
