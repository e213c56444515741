/*
 * Documents of _replicator, which start replications.
 */
#ifndef FROND_DOOR_COUCH_DOC_REPLICATION_DOC_H
#define FROND_DOOR_COUCH_DOC_REPLICATION_DOC_H

#include "door/couch/doc/doc_in.h"

/*
 * Before an interactive write: a document of _replicator gets its owner, and is refused
 * (COUCH_ERROR_FORBIDDEN) if no replication can come of it.
 */
MUST_USE enum status couch_replication_doc(struct couch_req *r, struct str id,
					   struct couch_doc *doc, struct couch_fail *fail);

#endif
