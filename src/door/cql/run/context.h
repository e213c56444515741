/*
 * What a statement runs in: its transaction, its table, its markers and their values.
 *
 * A struct run is made anew in each attempt of a transaction, in the request's arena. Threading: on
 * the connection's fiber.
 */
#ifndef FROND_DOOR_CQL_RUN_CONTEXT_H
#define FROND_DOOR_CQL_RUN_CONTEXT_H

#include "cql/expr.h"
#include "door/cql/conn/request.h"
#include "door/cql/schema/open.h"
#include "door/cql/wire/params.h"
#include "model/timed/tables/row.h"

struct joint;
struct modify;
struct select;

/*
 * A statement on a table of the store as it was compiled: what is the same each time that it runs,
 * for as long as no description in the catalog changes. compiled_new() makes one.
 *
 * It never changes, and any thread may run statements by it. It lies in the arena that it was made
 * in, all of it, but for the statement that it was made of.
 */
struct compiled {
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES]; /* the metadata version at which it is valid */
	struct str name;                           /* of the table, as the catalog has it */
	const struct schema_table *table;          /* without `db` and `schema` */
	bool *named;
	struct cql_scope scope; /* without `arg` */
	/* One of these two. */
	const struct select *select;
	const struct modify *modify;
};

struct run {
	struct cql_request *r;
	struct cql *q; /* the request's */
	struct kv_tx *tx;
	struct schema_types types;
	const struct cql_statement *statement;
	const struct cql_statement *outer; /* whose markers it has: a BATCH's, or itself */
	struct str keyspace;               /* where names lie that say none; may be empty */
	const struct params_value *values; /* what came for the markers */
	size_t value_count;
	bool describes; /* nothing is run: only the types of markers and results are wanted */
	int64_t now_us; /* since 1970 */

	struct joint *joint;    /* whose transaction it is; NULL: the statement's own */
	struct buf *spare_rows; /* memory for the rows of an answer, for the next one; or NULL */
	const struct compiled *compiled; /* NULL: its terms are still to be compiled */
	struct schema_table *table;
	bool *named; /* by the places of its columns: the statement names them */
	struct cql_scope scope;
	struct cql_value *markers; /* once they are bound */
	struct cql_env env;        /* without a row */
};

/*
 * Begins it. `outer` is the BATCH that the statement stands in, which its markers are numbered in;
 * NULL: the statement itself.
 */
MUST_USE enum status run_begin(struct run *run, struct cql_request *r, struct kv_tx *tx,
			       const struct cql_statement *statement,
			       const struct cql_statement *outer, struct str keyspace);

/*
 * Opens the table that a statement names, which the caller closes (run_close_table()). Fails with
 * Cassandra's texts where there is no such keyspace or table.
 */
MUST_USE enum status run_open_table(struct run *run, const struct cql_name *name);
void run_close_table(struct run *run);
/*
 * Opens the table of a statement that was compiled before. The run uses `c` if the table is still
 * the same in this transaction. Otherwise, or if `c` is NULL, `run->compiled` is NULL, as after
 * run_open_table().
 */
MUST_USE enum status run_open_compiled(struct run *run, const struct cql_name *name,
				       const struct compiled *c);
/*
 * The same by what run_open_compiled() has found for `c` earlier in this transaction: `db` is the
 * table's, and borrowed.
 */
MUST_USE enum status run_open_again(struct run *run, const struct cql_name *name,
				    const struct compiled *c, struct catalog_db *db);
/*
 * Has the run use `c` in place of its table, which is open, and whose statement `c` was compiled
 * from. STATUS_LIMIT when the arena is full; then the table is closed.
 */
MUST_USE enum status run_take_compiled(struct run *run, const struct compiled *c);
/*
 * Gives the names that terms of the statement may have a meaning, once `run->table` is set.
 * STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status run_set_scope(struct run *run);

/* The keyspace that a name lies in. Fails where none is said and no USE was. */
MUST_USE enum status run_keyspace_of(struct run *run, struct str said, struct str *ret);
/* Fails with Cassandra's text, by whether the keyspace exists. */
MUST_USE enum status run_no_table(struct run *run, struct str keyspace, struct str name);

/* The column of the table that the statement names. Fails where there is none. */
MUST_USE enum status run_column(struct run *run, struct str name, const struct schema_column **ret);

/*
 * Compiles a term whose value is for `receiver`, called `name`. Between run_open_table() and
 * run_bind().
 */
MUST_USE enum status run_compile(struct run *run, const struct cql_term *term,
				 const struct cql_type *receiver, struct str name,
				 struct cql_expr **ret);

/*
 * All terms are compiled: takes the values that came for the markers, checks them against the types
 * that the markers have got, and keeps them in the form that is stored.
 */
MUST_USE enum status run_bind(struct run *run);

/* Computes a term that is the same for all rows. Behind run_bind(). */
MUST_USE enum status run_value(struct run *run, const struct cql_expr *e, struct cql_value *ret);

#endif
