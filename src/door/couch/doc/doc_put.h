/* Writing a document that something else than a PUT has made. */
#ifndef FROND_DOOR_COUCH_DOC_DOC_PUT_H
#define FROND_DOOR_COUCH_DOC_DOC_PUT_H

#include "door/couch/doc/doc_in.h"
#include "door/couch/wire/request.h"

/*
 * Writes a document as a POST to the database does: its id is sound, a revision in it is the one
 * that it extends. `ret_rev` gets the new revision.
 */
MUST_USE enum status couch_doc_save(struct couch_req *r, struct couch_doc *doc,
				    struct rev_id *ret_rev);

#endif
