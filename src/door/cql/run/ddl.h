/*
 * Statements that change the schema: keyspaces (ddl.c), tables (ddl_table.c),
 * indexes (ddl_index.c), types (ddl_type.c).
 *
 * Each runs in a transaction and appends its RESULT. Threading: on the connection's fiber.
 */
#ifndef FROND_DOOR_CQL_RUN_DDL_H
#define FROND_DOOR_CQL_RUN_DDL_H

#include "door/cql/run/context.h"

/* What is told of it once it has committed. */
struct ddl_outcome {
	bool changed;
	struct cql_schema_change change; /* its texts are the statement's and the arena's */
	/* The table whose history the statement has switched on: its past is to begin by a
	 * transaction of its own, ddl_begin_history(). Empty: none. */
	struct str history_of;
	uint64_t index;   /* that was created, of `table`; 0: none */
	struct str table; /* as the store calls it */
};

/* True for a statement that this is for. */
bool ddl_is(const struct cql_statement *s);
MUST_USE enum status ddl_run(struct run *run, struct ddl_outcome *ret);
/* Begins the past of a table, by its name in the store, after ddl_run() has committed. */
MUST_USE enum status ddl_begin_history(struct kv_tx *tx, struct str name, struct err *err);

/* ---- For the files of it (ddl_answer.c) ---- */

/* Nothing was to be done, by IF EXISTS or IF NOT EXISTS. */
MUST_USE enum status ddl_nothing(struct run *run);
/* It was done: the change is answered, and kept for those that are told. */
MUST_USE enum status ddl_done(struct run *run, struct ddl_outcome *ret, const char *change,
			      const char *target, struct str keyspace, struct str object);
/* The keyspace of a name, which is there and is no system's; and the right on it. */
MUST_USE enum status ddl_keyspace(struct run *run, enum grant wanted, const struct cql_name *name,
				  struct str *ret);
/* "keyspace.table" of the store, in the arena. */
MUST_USE enum status ddl_table_name(struct run *run, struct str keyspace, struct str table,
				    struct str *ret);

/* ddl_table.c */
MUST_USE enum status ddl_create_table(struct run *run, struct ddl_outcome *ret);
MUST_USE enum status ddl_alter_table(struct run *run, struct ddl_outcome *ret);
MUST_USE enum status ddl_drop_table(struct run *run, struct ddl_outcome *ret);
MUST_USE enum status ddl_truncate(struct run *run, struct ddl_outcome *ret);

/* ddl_index.c */
MUST_USE enum status ddl_create_index(struct run *run, struct ddl_outcome *ret);
MUST_USE enum status ddl_drop_index(struct run *run, struct ddl_outcome *ret);

/* ddl_type.c */
MUST_USE enum status ddl_create_type(struct run *run, struct ddl_outcome *ret);
MUST_USE enum status ddl_alter_type(struct run *run, struct ddl_outcome *ret);
MUST_USE enum status ddl_drop_type(struct run *run, struct ddl_outcome *ret);

#endif
