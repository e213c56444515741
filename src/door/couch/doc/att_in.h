/*
 * Attachments that come in: the members of _attachments, and the bytes that belong to them.
 *
 * Bytes pass through in pieces. Only what fits the document's own transaction is held in memory.
 */
#ifndef FROND_DOOR_COUCH_DOC_ATT_IN_H
#define FROND_DOOR_COUCH_DOC_ATT_IN_H

#include "door/couch/doc/doc_in.h"
#include "door/couch/wire/multipart.h"
#include "model/revisioned/revisioned.h"

enum {
	COUCH_ATTS_MEMORY_BYTES = 4 * 1000000, /* of a document's attachments, in its transaction */
	COUCH_UPLOAD_BYTES = 1 << 20,          /* what is held of an attachment that is coming in */
};

/* The 412 for a stub of an attachment that the document does not have. */
MUST_USE enum status couch_missing_stub(struct str id, struct str name, struct couch_fail *fail);

/* The attachments that one request brings. */
struct couch_uploads {
	struct couch_req *r;
	struct rev_upload **items;
	size_t count;
	size_t cap;
	size_t memory; /* bytes that go into the document's own transaction */
	uint64_t touched_ns;
	bool taken; /* all uploads belong to a revision now */
};

void couch_uploads_init(struct couch_uploads *u, struct couch_req *r);
/* Clears the uploads that no revision has taken. */
void couch_uploads_release(struct couch_uploads *u);

/* Begins an upload of this type. `gzip`: the bytes come gzipped. r->db must be open. */
MUST_USE enum status couch_upload_begin(struct couch_uploads *u, const struct rev_att *att,
					bool gzip, struct rev_upload **ret);
/* Writes more of an upload, and keeps the others from being swept. */
MUST_USE enum status couch_upload_write(struct couch_uploads *u, struct rev_upload *upload,
					const struct rev_att *att, struct str data);
MUST_USE enum status couch_upload_end(struct couch_uploads *u, struct rev_upload *upload,
				      struct rev_att_edit *ret,
				      uint8_t ret_md5[REV_ATT_DIGEST_BYTES]);

/*
 * Uploads the attachments that come with the document: inline data and, from `parts` (or NULL),
 * those that follow it. Afterwards couch_doc_edit() has all attachments. Opens r->db if it is not
 * open.
 */
MUST_USE enum status couch_atts_load(struct couch_uploads *u, struct couch_doc *doc,
				     struct http_multipart *parts);

#endif
