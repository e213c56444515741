/*
 * Whether the functions of a design document's views compile, which CouchDB asks before it writes
 * one. Other functions are compiled when they are first called, as there.
 */
#ifndef FROND_DOOR_COUCH_DOC_COMPILE_H
#define FROND_DOOR_COUCH_DOC_COMPILE_H

#include "door/couch/wire/request.h"

/*
 * True if an edit of this id has functions that could be compiled here: it is a design document,
 * and this server has a worker.
 */
bool couch_design_is_compiled(const struct couch_req *r, struct str id);

/*
 * Has a worker compile the maps and reduces of a design document, whose text is given. Not in a
 * transaction. STATUS_INVALID, with COUCH_ERROR_COMPILATION in `fail`: one does not compile. The
 * failures of calls (functions.h). r->db is open.
 */
MUST_USE enum status couch_design_compile(struct couch_req *r, struct str id, struct str text,
					  struct couch_fail *fail);

#endif
