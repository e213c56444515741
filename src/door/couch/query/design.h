/*
 * Changing the indexes of a design document: its text is read, changed and written back in one
 * transaction, with all that it has besides.
 */
#ifndef FROND_DOOR_COUCH_QUERY_DESIGN_H
#define FROND_DOOR_COUCH_QUERY_DESIGN_H

#include "door/couch/query/index_def.h"
#include "kv/kv.h"

/*
 * Puts the index into its design document, which is created if it is not there. *ret_exists is true
 * if the document defines the very same index already, and nothing was written. The user has to be
 * somebody who may write design documents.
 */
MUST_USE enum status query_design_put(struct couch_req *r, struct kv_tx *tx,
				      const struct index_request *q, bool *ret_exists);

/*
 * Takes an index out of its design document, or with name.ptr NULL all of them; a document that
 * then says nothing but its language is deleted. STATUS_NOT_FOUND if there is no such index.
 * `first` is the number of other documents that the transaction has written (rev_write()).
 */
MUST_USE enum status query_design_remove(struct couch_req *r, struct kv_tx *tx, struct str ddoc,
					 struct str name, size_t first);

#endif
