/*
 * Values of columns as the store has them, and back. Columns of the key are components of keys,
 * other ones cells; each element of a collection has a cell of its own, and so has each field of
 * a user type, unless they are frozen.
 *
 * Threading: none.
 */
#ifndef FROND_DOOR_CQL_RUN_VALUE_H
#define FROND_DOOR_CQL_RUN_VALUE_H

#include "door/cql/run/context.h"

/* A component of a key, the key of a map, a member of a set: what is ordered by its value. */
MUST_USE enum status value_to_key(struct cql *q, const struct cql_type *type, struct str bytes,
				  struct doc_scalar *ret);
MUST_USE enum status value_of_key(struct cql *q, const struct cql_type *type,
				  const struct doc_scalar *s, struct str *ret);

/* How values of a type lie in a column. */
enum table_storage value_storage(const struct cql_type *type, bool in_key);

/* In place of a write time: it has none. No client's timestamp is this. */
#define ROW_UNWRITTEN INT64_MIN

/* A row, its columns as values; for cql_env. */
struct row {
	const struct schema_table *table;
	struct cql_value *values; /* by the numbers of columns */
	int64_t *write_us;        /* likewise: a client's timestamp, or when that was */
	uint64_t *expires_ms;     /* 0: never */
	size_t *at;               /* likewise: where its cell was in the last row */
	bool is_row;              /* false: only static columns are there */
	int64_t token;
	uint64_t now_ms;
};

/* With room for the table's columns, in the arena. */
MUST_USE enum status row_init(struct cql *q, const struct schema_table *t, struct row *ret);
/* Fills it with a row of the store. Values lie in the arena. */
MUST_USE enum status row_fill(struct cql *q, const struct table_row *stored, struct row *ret);

/* The functions of struct cql_env; `arg` is a struct row. */
enum status row_get(void *arg, struct cql *q, unsigned column, struct cql_value *ret);
enum status row_cell(void *arg, struct cql *q, unsigned column, enum cql_cell_part part,
		     struct cql_value *ret);

#endif
