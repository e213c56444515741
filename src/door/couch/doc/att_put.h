/* New revisions of a document with other attachments. */
#ifndef FROND_DOOR_COUCH_DOC_ATT_PUT_H
#define FROND_DOOR_COUCH_DOC_ATT_PUT_H

#include "door/couch/doc/doc_in.h"

/* A new revision with other attachments. */
struct couch_att_change {
	struct str id;
	struct rev_id rev;               /* that is extended; pos 0: none */
	const struct couch_doc *doc;     /* the new revision's body and other attachments; NULL: as
					  * they are */
	const struct rev_att_edit *news; /* they come first, and replace others of their names */
	size_t news_count;
	struct str removed; /* ptr NULL: none */
};

MUST_USE enum status couch_att_change_run(struct couch_req *r,
					  const struct couch_att_change *change,
					  struct rev_id *ret_rev);

/* Checks a name in a URL or a form, with CouchDB's refusals. */
MUST_USE enum status couch_att_name_check(struct couch_req *r, struct str name);

#endif
