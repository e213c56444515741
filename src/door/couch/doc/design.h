/* What CouchDB demands of a design document. */
#ifndef FROND_DOOR_COUCH_DOC_DESIGN_H
#define FROND_DOOR_COUCH_DOC_DESIGN_H

#include "doc/doc.h"
#include "door/couch/wire/request.h"

/*
 * Checks the body of a design document: COUCH_ERROR_INVALID_DESIGN if a function is not where
 * CouchDB expects it. Other documents always pass. A tombstone needs no check.
 */
MUST_USE enum status couch_design_validate(struct couch_req *r, struct str id,
					   const struct doc *doc, struct couch_fail *fail);

#endif
