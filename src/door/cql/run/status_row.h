/*
 * RETURNS STATUS AS ROW: the answer is a row that says what became of the statement: [applied],
 * [message] and the columns of its table. If the statement fails while it runs, its transaction is
 * given up, and the answer is such a row, too. If it is refused before it runs, since it names a
 * column that is not there, for example, the answer is an error.
 *
 * Threading: on the connection's fiber.
 */
#ifndef FROND_DOOR_CQL_RUN_STATUS_ROW_H
#define FROND_DOOR_CQL_RUN_STATUS_ROW_H

#include "door/cql/run/metadata.h"
#include "door/cql/run/value.h"

/* True if the statement, an INSERT, UPDATE or DELETE, says so. Others do not. */
bool status_row_asked(const struct cql_statement *s);

/* True if a failure of this kind becomes a row: it is the statement's own, and no trial helps. */
bool status_row_tells(const struct cql_request *r, enum status status);

/* Begins the RESULT, of `count` rows. STATUS_LIMIT: the arena is full. */
MUST_USE enum status status_row_begin(struct cql_request *r, const struct schema_table *t,
				      size_t count);
/*
 * Appends a row. `message` with ptr NULL: there is nothing to be said. `row`: what the statement
 * has found where its condition did not hold; NULL: nothing.
 */
void status_row_put(struct cql_request *r, const struct schema_table *t, bool applied,
		    struct str message, const struct row *row);

#endif
