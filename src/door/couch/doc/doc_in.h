/*
 * A document as a client sent it, and the edit that it asks for. All of it lies in the request's
 * arena.
 */
#ifndef FROND_DOOR_COUCH_DOC_DOC_IN_H
#define FROND_DOOR_COUCH_DOC_DOC_IN_H

#include "doc/json.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/request.h"
#include "model/revisioned/att_json.h"

/* A document as a client sent it. */
struct couch_doc {
	struct str id; /* of its _id; ptr NULL without one */
	bool deleted;
	struct rev_att_json *atts;
	size_t atts_count;
	struct rev_att_edit *att_edits; /* the same as couch_atts_load() has made them */
	/* The body's text, if it is in the store already; NULL: it is not. */
	const struct rev_text *stored;
	struct rev_id rev;   /* pos 0: none */
	uint64_t start;      /* rev.pos, once there is a revision */
	struct str *history; /* the revision's hash, then its ancestors' */
	size_t history_count;
	struct doc doc;
	struct str text; /* as it came */
};

/* Replaces the document's body by the one of another text. The special members stay. */
MUST_USE enum status couch_doc_again(struct couch_req *r, struct str text, struct str id,
				     struct couch_doc *doc, struct couch_fail *fail);

/*
 * Replaces the plain password of a document in _users by its hash (admin/user_doc.h). Slow, so it
 * must not be called inside a transaction's body.
 */
MUST_USE enum status couch_doc_hash_password(struct couch_req *r, struct str id,
					     struct couch_doc *doc, struct couch_fail *fail);

/*
 * For documents that are made inside a transaction's body, where nothing can be hashed: refuses a
 * document in _users that has a password, with COUCH_ERROR_NOT_IMPLEMENTED.
 */
MUST_USE enum status couch_doc_check_password(struct couch_req *r, const struct doc *doc,
					      struct couch_fail *fail);

/*
 * Reads a document whose first token has been read. `id` comes from the URL; if its ptr is NULL,
 * the document's own _id counts.
 */
MUST_USE enum status couch_doc_parse(struct couch_req *r, struct json_reader *reader, struct str id,
				     struct couch_doc *ret, struct couch_fail *fail);
/* The same for a text that is one document. */
MUST_USE enum status couch_doc_parse_text(struct couch_req *r, struct str text, struct str id,
					  struct couch_doc *ret);
/* Reads a stored body as if a client had sent it. `text` is where the body is written meanwhile. */
MUST_USE enum status couch_doc_reparse(struct couch_req *r, const struct rev_doc *doc,
				       struct str id, struct buf *text, struct couch_doc *ret);
/*
 * The edit that makes the document what was sent. If it has attachments, couch_atts_load() of
 * att_in.h comes first.
 */
struct rev_edit couch_doc_edit(const struct couch_doc *doc, struct str id, bool new_edits);

/*
 * True for an interactive edit of a revision "0-…", which no document has. That is a conflict. The
 * model would take position 0 for an edit that names no revision.
 */
static inline bool
couch_edit_of_nothing(const struct rev_edit *edit)
{
	return edit->kind == REV_EDIT_INTERACTIVE && edit->history_count && edit->parent.pos == 0;
}

/*
 * Reads a JSON list of revisions, such as that of atts_since. Anything else is refused as CouchDB
 * does.
 */
MUST_USE enum status couch_revs_read(struct couch_req *r, struct str text, struct rev_id **ret,
				     size_t *ret_count, struct couch_fail *fail);

#endif
