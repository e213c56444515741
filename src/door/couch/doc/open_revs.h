/* GET /{db}/{docid}?open_revs=: many revisions of one document, each read as it is sent. */
#ifndef FROND_DOOR_COUCH_DOC_OPEN_REVS_H
#define FROND_DOOR_COUCH_DOC_OPEN_REVS_H

#include "door/couch/doc/doc_opts.h"
#include "door/couch/wire/request.h"

/* What the parameter says. */
struct couch_open_revs {
	bool given; /* false also for an empty list, which CouchDB takes for none */
	bool all;
	struct rev_id *revs; /* in the request's arena */
	size_t count;
};

MUST_USE enum status couch_open_revs_read(struct couch_req *r, struct couch_open_revs *ret);

/*
 * Answers with these revisions of `id`. `flags` are of enum couch_doc_flags; of `opts` only
 * atts_since counts.
 */
MUST_USE enum status couch_open_revs_send(struct couch_req *r, struct str id, unsigned flags,
					  const struct couch_doc_opts *opts,
					  const struct couch_open_revs *wanted);

#endif
