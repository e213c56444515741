/*
 * The requests about schemas and rows: each reads its body, does what it says and appends the body
 * of its answer. docs/ROWS.md has what they mean.
 *
 * Threading: on the connection's fiber.
 */
#ifndef FROND_DOOR_ROWS_DATA_ROWS_H
#define FROND_DOOR_ROWS_DATA_ROWS_H

#include "door/rows/data/txn.h"

/* schema.c */
MUST_USE enum status rows_serve_schemas(struct rows_request *r);
MUST_USE enum status rows_serve_schema_create(struct rows_request *r);
MUST_USE enum status rows_serve_schema_drop(struct rows_request *r);
MUST_USE enum status rows_serve_tables(struct rows_request *r);
MUST_USE enum status rows_serve_table(struct rows_request *r);
MUST_USE enum status rows_serve_table_create(struct rows_request *r);
MUST_USE enum status rows_serve_table_alter(struct rows_request *r);
MUST_USE enum status rows_serve_table_drop(struct rows_request *r);
MUST_USE enum status rows_serve_table_empty(struct rows_request *r);
MUST_USE enum status rows_serve_estimate(struct rows_request *r);

/* index.c */
MUST_USE enum status rows_serve_indexes(struct rows_request *r);
MUST_USE enum status rows_serve_index_create(struct rows_request *r);
MUST_USE enum status rows_serve_index_build(struct rows_request *r);
MUST_USE enum status rows_serve_index_drop(struct rows_request *r);
MUST_USE enum status rows_serve_index_find(struct rows_request *r);

/* scan.c, get.c, write.c */
MUST_USE enum status rows_serve_scan(struct rows_request *r);
MUST_USE enum status rows_serve_get(struct rows_request *r);
MUST_USE enum status rows_serve_write(struct rows_request *r);

#endif
