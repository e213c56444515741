/*
 * Documents and their attachments as one multipart/related body.
 */
#ifndef FROND_DOOR_COUCH_DOC_RELATED_H
#define FROND_DOOR_COUCH_DOC_RELATED_H

#include "door/couch/doc/doc_opts.h"

/*
 * Appends a document and the attachments that it shows as one multipart/related body, without the
 * header that names `boundary`.
 */
MUST_USE enum status couch_related_write(const struct couch_doc_out *d, struct str boundary,
					 struct buf *out);

#endif
