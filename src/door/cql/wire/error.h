/*
 * Errors of the native protocol: what becomes of a status, and what stands behind the text of an
 * ERROR. The numbers and texts are those of cql/error.h.
 *
 * Threading: none.
 */
#ifndef FROND_DOOR_CQL_WIRE_ERROR_H
#define FROND_DOOR_CQL_WIRE_ERROR_H

#include "cql/error.h"
#include "door/cql/wire/frame.h"

/* What was written, for clients that are told that it may not have happened. */
enum error_write {
	ERROR_WRITE_SIMPLE,
	ERROR_WRITE_BATCH,
	ERROR_WRITE_COUNTER,
	ERROR_WRITE_CAS,
};

/* Behind the text, by the code. All zero: nothing that needs it. */
struct error_more {
	unsigned consistency; /* of the statement, as it came */
	enum error_write write;
	struct str keyspace; /* CQL_CODE_EXISTS, CQL_CODE_FUNCTION */
	struct str table;    /* CQL_CODE_EXISTS; empty: it is the keyspace that exists */
	struct str id;       /* CQL_CODE_UNPREPARED */
};

/* The code of a failure that its origin has given none. `writes`: of a statement that writes. */
enum cql_code error_code_of(enum status status, bool writes);

/* Appends the body of an ERROR. Bytes of the text that are no UTF-8 are left out. */
void error_put(struct buf *out, enum cql_code code, struct str text, const struct error_more *more);

#endif
