/*
 * Paths into jsonb, as j->'a'->>'b': in WHERE, in IF, and in front of the = of an assignment.
 *
 * All of it lies in the request's arena. Threading: none.
 */
#ifndef FROND_DOOR_CQL_RUN_JSON_PATH_H
#define FROND_DOOR_CQL_RUN_JSON_PATH_H

#include "door/cql/run/context.h"

struct json_path {
	struct cql_expr **steps;
	size_t count;
	bool is_text;     /* ->>: a string without its quotes */
	struct str *keys; /* behind json_path_compute(): names of members, numbers of elements */
};

/*
 * Compiles the steps, between run_open_table() and run_bind(). Fails with Cassandra's text where
 * the column is no jsonb. `*ret_type` is that of what lies there.
 */
MUST_USE enum status json_path_compile(struct run *run, const struct schema_column *c,
				       const struct cql_term *const *path, size_t count,
				       bool as_text, struct json_path *ret,
				       const struct cql_type **ret_type);
/* Computes them, behind run_bind(). Refuses nulls and what is not set. */
MUST_USE enum status json_path_compute(struct run *run, struct json_path *p);

/* What lies there in a document; CQL_VALUE_NULL: nothing. */
MUST_USE enum status json_path_get(struct cql *q, const struct json_path *p, struct str json,
				   struct cql_value *ret);

#endif
