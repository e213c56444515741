/*
 * The request of _bulk_docs: its documents, read and checked before any of them is written.
 *
 * Everything lies in the request's arena. The caller fills in `r` and the default of `new_edits`,
 * and begins and releases `uploads`.
 */
#ifndef FROND_DOOR_COUCH_DOC_BULK_IN_H
#define FROND_DOOR_COUCH_DOC_BULK_IN_H

#include "door/couch/doc/att_in.h"
#include "door/couch/doc/doc_in.h"
#include "door/couch/wire/request.h"

struct couch_bulk_entry {
	struct couch_doc doc;
	struct str id;
	struct couch_fail *fail; /* why it is not written; NULL so far */
	bool refused;            /* before anything was tried */
	enum status status;
	struct rev_id rev;
	bool idle; /* it was there already: its uploads are not needed */
};

struct couch_bulk {
	struct couch_req *r;
	bool new_edits;
	bool atomic;
	bool all_or_nothing; /* CouchDB 1's, to write conflicts rather than to refuse */
	bool any_atts;
	struct couch_bulk_entry *entries;
	size_t count;
	struct couch_uploads uploads;
};

/* Reads the body. A document that cannot be taken is an entry that is refused, with the reason. */
MUST_USE enum status couch_bulk_read(struct couch_bulk *b, struct str body);

/*
 * Gives each entry its id, checks it and uploads its attachments. Fails if the whole request is to
 * be refused.
 */
MUST_USE enum status couch_bulk_check(struct couch_bulk *b);

/* Gives an entry the failure that its row shows. STATUS_LIMIT when the arena is full. */
MUST_USE enum status couch_bulk_refuse(struct couch_req *r, struct couch_bulk_entry *e,
				       enum couch_error error, const char *reason);

/*
 * Notes that an attachment is missing. CouchDB refuses the request; an atomic one also says which
 * document it was.
 */
MUST_USE enum status couch_bulk_refuse_stub(struct couch_bulk *b, struct couch_bulk_entry *e,
					    struct str name);

#endif
