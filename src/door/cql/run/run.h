/*
 * Statements: texts and ids of prepared ones become results.
 *
 * Each function appends the body of a RESULT to the request's `out`, or fails as requests do
 * (conn/request.h). Nothing of a failed one is kept. On the request's fiber.
 */
#ifndef FROND_DOOR_CQL_RUN_RUN_H
#define FROND_DOOR_CQL_RUN_RUN_H

#include "door/cql/conn/request.h"
#include "door/cql/wire/params.h"

/* QUERY. Text and parameters last as long as the request, here and below. */
MUST_USE enum status run_query(struct cql_request *r, struct str text, const struct params *p);

/* PREPARE. `keyspace` is what the client says instead of USE; empty: it says none. */
MUST_USE enum status run_prepare(struct cql_request *r, struct str text, struct str keyspace);

/* EXECUTE. */
MUST_USE enum status run_execute(struct cql_request *r, struct str id, const struct params *p);

/* BATCH. */
MUST_USE enum status run_batch(struct cql_request *r, const struct batch *b);

#endif
