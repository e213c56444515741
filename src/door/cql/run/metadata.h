/*
 * RESULT's bodies: what columns a result has, what markers a prepared statement has. Threading:
 * none.
 */
#ifndef FROND_DOOR_CQL_RUN_METADATA_H
#define FROND_DOOR_CQL_RUN_METADATA_H

#include "cql/type.h"
#include "door/cql/run/context.h"

enum result_kind {
	RESULT_VOID = 1,
	RESULT_ROWS = 2,
	RESULT_KEYSPACE = 3,
	RESULT_PREPARED = 4,
	RESULT_SCHEMA_CHANGE = 5,
};

struct result_column {
	struct str name;
	const struct cql_type *type;
};

/* Columns of one table, as all results here are. */
struct result_columns {
	struct str keyspace;
	struct str table;
	const struct result_column *columns;
	size_t count;
};

/*
 * Appends the kind and the metadata of rows. `skips`: the client has the columns, and wants none.
 * `state` is where the next page begins; `ptr` NULL: this is the last one.
 */
void metadata_put_rows(struct buf *out, unsigned version, const struct result_columns *columns,
		       bool skips, struct str state);

/*
 * Appends the metadata of a prepared statement's markers, and of its result, which has no columns
 * where `columns` is NULL. `partition` are the numbers of the markers that are the partition key.
 */
void metadata_put_prepared(struct buf *out, unsigned version, struct str id, const struct run *run,
			   const unsigned *partition, size_t partition_count,
			   const struct result_columns *columns);

/* 16 bytes that are others for a result with other columns: version 5's result_metadata_id. */
void metadata_id(const struct result_columns *columns, char ret[static 16]);

#endif
