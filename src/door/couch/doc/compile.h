/*
 * Compiles the functions of a design document's views before it is written, as CouchDB does, so
 * that a syntax error refuses the write. Other functions are compiled at their first call, as in
 * CouchDB.
 */
#ifndef FROND_DOOR_COUCH_DOC_COMPILE_H
#define FROND_DOOR_COUCH_DOC_COMPILE_H

#include "door/couch/wire/request.h"

/* True if functions of design documents can be compiled here: this server has a worker. */
bool couch_designs_are_compiled(const struct couch_req *r);

/*
 * Makes a worker compile the maps and reduces in `text`, a design document. Waits, so it must not
 * be called inside a transaction's body. r->db is open. STATUS_INVALID with COUCH_ERROR_COMPILATION
 * in `fail` if a function does not compile; otherwise the failures of calls (functions.h).
 */
MUST_USE enum status couch_design_compile(struct couch_req *r, struct str id, struct str text,
					  struct couch_fail *fail);

#endif
