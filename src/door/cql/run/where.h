/*
 * WHERE: relations compiled, computed and checked against rows; and what they say of the primary
 * key, as partitions and ranges of rows in them.
 *
 * All of it lies in the request's arena. Threading: none.
 */
#ifndef FROND_DOOR_CQL_RUN_WHERE_H
#define FROND_DOOR_CQL_RUN_WHERE_H

#include "door/cql/run/json_path.h"
#include "door/cql/run/value.h"

/* A relation. */
struct where_term {
	const struct cql_relation *relation;
	const struct schema_column **columns;
	size_t column_count;
	const struct cql_type *type; /* of what is compared */
	struct cql_expr *key;        /* of an element; or NULL */
	struct json_path path;       /* of CQL_LEFT_JSON */
	struct cql_expr **exprs;
	size_t expr_count;
	/*
	 * Behind where_compute(). IN has as many values as its list; behind where_plan() each of
	 * them once, in the order in which the rows lie.
	 */
	struct cql_value key_value;
	struct cql_value *values;
	size_t value_count;
};

struct where {
	struct where_term *terms;
	size_t count;
};

/* Compiles relations, between run_open_table() and run_bind(). */
MUST_USE enum status where_compile(struct run *run, const struct cql_relations *relations,
				   struct where *ret);
/*
 * Replaces the compiled relations, which other transactions may be using, by copies in the arena of
 * this request, which then get values. STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status where_copy(struct run *run, struct where *w);
/* Computes their values, behind run_bind(). Refuses nulls and what is not set. */
MUST_USE enum status where_compute(struct run *run, struct where *w);

/* Whether a row is as the term says, behind where_plan(). Counts steps. */
MUST_USE enum status where_term_matches(struct cql *q, const struct where_term *term,
					const struct row *row, bool *ret);

/* True if the term restricts this column alone, by one of these operators. */
bool where_term_is(const struct where_term *term, const struct schema_column *c);

/* ---- Of the primary key ---- */

struct where_partition {
	int64_t token;
	struct cql_value *values;   /* partition_count */
	struct doc_scalar *scalars; /* likewise */
};

struct where_range {
	struct table_edge from, to; /* in the order in which rows lie */
	bool is_row;                /* `from` is a whole key: one row, or none */
};

struct where_index; /* where_index.h */

struct where_plan {
	/* The index that answers some of the terms; NULL: none. Rows are read through it unless
	 * `by_partitions`. */
	const struct where_index *index;
	bool by_partitions;
	struct where_partition *partitions; /* in the order of their values */
	size_t partition_count;
	struct where_range *ranges; /* of each partition, in their order; at least one */
	size_t range_count;
	struct table_token_edge from_token, to_token; /* unless by_partitions */
	bool nothing;                                 /* no row can be there */
	bool one_row;      /* each partition and range is one row at most */
	bool filters;      /* rows are read that may not match: ALLOW FILTERING is needed */
	bool in_partition; /* IN on the partition key has several values */
};

/*
 * What can be said of the relations without their values: Cassandra tells that a statement needs
 * ALLOW FILTERING before it looks at these.
 */
MUST_USE enum status where_check(struct run *run, const struct where *w, bool allows);

/*
 * What a statement reads. `index` NULL: no index answers any of it. `allows`: ALLOW FILTERING was
 * said. Fails with Cassandra's texts where the relations cannot be served so.
 */
MUST_USE enum status where_plan(struct run *run, const struct where *w,
				const struct where_index *index, bool allows,
				struct where_plan *ret);

#endif
