/*
 * Terms with types: compiled against the columns of a table, run on rows.
 *
 * cql_compile() types a term, for a receiver (a column, a limit) or by itself (a selector), and
 * tells the types of the markers that it meets. cql_run() computes it, once or for each row. An
 * expression never changes and may be run by several threads; an environment is one run's.
 */
#ifndef FROND_CQL_EXPR_H
#define FROND_CQL_EXPR_H

#include "cql/statement.h"
#include "cql/value.h"

/* What a marker stands for: drivers see its name and type. */
struct cql_marker {
	struct str name;             /* of the receiver: a column, "in(c)", "[limit]", "key(m)" */
	const struct cql_type *type; /* NULL: not met yet */
};

/* A column as terms see it. */
struct cql_known_column {
	unsigned index; /* the caller's own number, given back to `get` */
	const struct cql_type *type;
	bool is_key; /* of the primary key: has no write time */
};

struct cql_aggregate;

/*
 * What a term is compiled in. The caller sets it up once for a statement and passes it to each
 * cql_compile(); `markers` has the statement's marker_count elements, all zero at first.
 */
struct cql_scope {
	struct str keyspace; /* of the table: where user types are found */
	struct str table;    /* for errors */
	/* Sets *ret and returns true if there is such a column. NULL: no columns here. */
	bool (*column)(void *arg, struct str name, struct cql_known_column *ret);
	cql_type_find *find_type;
	void *arg;
	struct cql_marker *markers;
	size_t marker_count;
	/* The partition key's types for token(); in order. */
	size_t partition_count;
	const struct cql_type *const *partition;
	/* Selectors may have aggregates; they are appended here, and their results are read from
	 * the environment in this order. */
	bool allows_aggregates;
	size_t aggregate_count, aggregate_cap;
	struct cql_aggregate **aggregates;
};

struct cql_expr; /* opaque */

const struct cql_type *cql_expr_type(const struct cql_expr *e);
/* True if it is the same for all rows: neither columns nor aggregates are in it. */
bool cql_expr_is_constant(const struct cql_expr *e);
/* True if an aggregate lies in it. */
bool cql_expr_has_aggregate(const struct cql_expr *e);
/* A column by itself: its number; else false. */
bool cql_expr_is_column(const struct cql_expr *e, unsigned *ret_index);
/* A marker by itself: its number; else false. */
bool cql_expr_is_marker(const struct cql_expr *e, unsigned *ret_marker);

/*
 * Types a term whose value is for `receiver`, which errors call `name`. The result has the
 * receiver's type. Errors: Cassandra's, by the table.
 */
MUST_USE enum status cql_compile(struct cql *q, struct cql_scope *scope,
				 const struct cql_term *term, const struct cql_type *receiver,
				 struct str name, struct cql_expr **ret);
/* The same of a term that has to have a type of its own: a selector. */
MUST_USE enum status cql_compile_selector(struct cql *q, struct cql_scope *scope,
					  const struct cql_term *term, struct cql_expr **ret);

/* Which of a cell's properties WRITETIME and TTL ask for. */
enum cql_cell_part {
	CQL_CELL_WRITETIME, /* bigint: microseconds */
	CQL_CELL_TTL,       /* int: seconds left */
};

struct cql_env {
	const struct cql_value *markers; /* as many as the statement has; checked by the caller */
	size_t marker_count;
	/* The row: the value of the column with that number. NULL: there is no row. */
	enum status (*get)(void *arg, struct cql *q, unsigned column, struct cql_value *ret);
	enum status (*cell)(void *arg, struct cql *q, unsigned column, enum cql_cell_part part,
			    struct cql_value *ret);
	void *arg;
	const struct cql_value *aggregates; /* results, in the scope's order */
	int64_t now_us;                     /* of the statement: since 1970 */
	unsigned uuids; /* of now(): counted up, so that each call of one statement differs */
};

/*
 * Computes the value. A marker that is not set gives CQL_UNSET where it is all of the term, and
 * CQL_E_UNSET inside of one. Values are checked, and normalized.
 */
MUST_USE enum status cql_run(const struct cql_expr *e, struct cql *q, struct cql_env *env,
			     struct cql_value *ret);

/* ---- Aggregates ---- */

/* The state of one aggregate over one group; zero at first. */
struct cql_aggregate_state {
	uint64_t count;         /* of values that were neither null nor, in sums, empty */
	struct buf kept;        /* the least or greatest value, or a sum of any length */
	double sum, correction; /* of doubles and floats */
	__int128 integers;      /* the sum of integers */
};

void cql_aggregate_init(struct cql_aggregate_state *s, const struct cql_aggregate *a,
			const struct cql *q);
void cql_aggregate_release(struct cql_aggregate_state *s);
/* Takes the row that `env` shows. */
MUST_USE enum status cql_aggregate_add(const struct cql_aggregate *a, struct cql_aggregate_state *s,
				       struct cql *q, struct cql_env *env);
/* The value of all rows so far, in the arena; of none: 0, or null. */
MUST_USE enum status cql_aggregate_result(const struct cql_aggregate *a,
					  const struct cql_aggregate_state *s, struct cql *q,
					  struct cql_value *ret);

#endif
