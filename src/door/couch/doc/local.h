/* Local documents, for the other files that write documents. */
#ifndef FROND_DOOR_COUCH_DOC_LOCAL_H
#define FROND_DOOR_COUCH_DOC_LOCAL_H

#include "door/couch/doc/doc_in.h"
#include "kv/kv.h"

/* Writes a local document in `tx`. Its attachments are dropped, as in CouchDB. */
MUST_USE enum status couch_local_write(struct couch_req *r, struct kv_tx *tx, struct str id,
				       const struct couch_doc *doc, struct rev_id *ret_rev);
/*
 * Writes it in a transaction of its own and answers the request. The query's `rev` counts if the
 * document names no revision.
 */
MUST_USE enum status couch_local_save(struct couch_req *r, struct str id,
				      const struct couch_doc *doc);

#endif
