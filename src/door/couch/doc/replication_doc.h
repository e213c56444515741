/*
 * Documents of _replicator, which start replications.
 */
#ifndef FROND_DOOR_COUCH_DOC_REPLICATION_DOC_H
#define FROND_DOOR_COUCH_DOC_REPLICATION_DOC_H

#include "door/couch/admin/user_doc.h"
#include "door/couch/doc/doc_in.h"

/*
 * Before a write: an interactive one of a document of _replicator gets its owner, and is refused
 * (COUCH_ERROR_FORBIDDEN) if no replication can come of it. Only administrators of the server may
 * write with `new_edits` false.
 */
MUST_USE enum status couch_replication_doc(struct couch_req *r, struct str id,
					   struct couch_doc *doc, bool new_edits,
					   struct couch_fail *fail);

/*
 * Checks that a document of _replicator is its writer's own, before and after the write. `doc` is
 * the new text, `old` the stored one or "null".
 */
MUST_USE enum status couch_replication_check(const struct couch_user_writer *w, struct str doc,
					     struct str old, struct couch_fail *fail);

#endif
