/*
 * BATCH, and YCQL's transactions: statements that write, over any tables, in one transaction of the
 * store. None of them writes unless all conditions hold. The conditions of a BATCH are about one
 * partition, those of a transaction about any rows. On the connection's fiber.
 */
#ifndef FROND_DOOR_CQL_RUN_BATCH_H
#define FROND_DOOR_CQL_RUN_BATCH_H

#include "door/cql/run/prepared.h"

/* A statement of a batch, and what came for it. */
struct batch_item {
	const struct cql_statement *statement;
	const struct cql_statement *outer; /* the BATCH that it stands in; NULL: none */
	struct str keyspace;
	const struct params_value *values;
	size_t value_count;
	struct prepared *prepared; /* borrowed; NULL: it is none */
	struct str id;             /* of the one that is prepared */
};

/* Runs them in a transaction, in their order, and appends the RESULT. */
MUST_USE enum status batch_run(struct cql_request *r, struct kv_tx *tx, enum cql_batch_kind kind,
			       const struct batch_item *items, size_t count);

/*
 * Compiles them in a transaction, so that the markers of the BATCH that they stand in get types,
 * which `outer` has.
 */
MUST_USE enum status batch_describe(struct run *outer, enum cql_batch_kind kind,
				    const struct batch_item *items, size_t count);

#endif
