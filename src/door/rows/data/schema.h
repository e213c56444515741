/*
 * Requests that tell or change schemas. Threading: on the connection's fiber.
 */
#ifndef FROND_DOOR_ROWS_DATA_SCHEMA_H
#define FROND_DOOR_ROWS_DATA_SCHEMA_H

#include "door/rows/data/txn.h"

/* What a body begins with, since it may be run again: empties the answer, and how it failed. */
void rows_schema_restart(struct rows_request *r);
/*
 * Runs a body that only reads: in a transaction of its own, unless the client's has changed
 * definitions, which nobody else sees yet.
 */
MUST_USE enum status rows_schema_read(struct rows_request *r, kv_body *body, void *arg);
/* Runs one that changes schemas: in the client's transaction, or in one of its own. */
MUST_USE enum status rows_schema_change(struct rows_request *r, kv_body *body, void *arg);

#endif
