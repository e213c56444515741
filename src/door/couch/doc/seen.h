/*
 * Documents as selectors see them: with the members that are no leaves, such as _id.
 */
#ifndef FROND_DOOR_COUCH_DOC_SEEN_H
#define FROND_DOOR_COUCH_DOC_SEEN_H

#include "door/couch/doc/doc_opts.h"
#include "door/couch/wire/request.h"
#include "index/selector/selector.h"

/* The members that have no leaf, as bits. */
enum couch_seen_member {
	COUCH_SEEN_ID = 1,
	COUCH_SEEN_REV = 2,
	COUCH_SEEN_DELETED = 4,
	COUCH_SEEN_ATTACHMENTS = 8,
	COUCH_SEEN_CONFLICTS = 16, /* shown only if the answer was to have them */
	COUCH_SEEN_DEFAULT = 15,
};

enum {
	COUCH_SEEN_MOST = 5,
};

struct couch_seen {
	struct selector_special specials[COUCH_SEEN_MOST];
	size_t count;
};

/* The bit of a member of that name; 0 for a member of the body. */
unsigned couch_seen_member(struct str name);

/*
 * Makes the members of `wanted` (a set of bits) that the document has, in the request's arena.
 * _conflicts are those of d->tree, if it is there. STATUS_LIMIT, STATUS_NOMEM.
 */
MUST_USE enum status couch_seen_read(struct couch_req *r, const struct couch_doc_out *d,
				     unsigned wanted, struct couch_seen *ret);

#endif
