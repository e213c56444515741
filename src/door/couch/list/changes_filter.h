/*
 * Which changes a feed shows, and what of their documents.
 */
#ifndef FROND_DOOR_COUCH_LIST_CHANGES_FILTER_H
#define FROND_DOOR_COUCH_LIST_CHANGES_FILTER_H

#include "door/couch/list/feed.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"

/* `body` is the request's, with these members; without ptr: there is none. */
MUST_USE enum status couch_changes_filter_read(struct couch_req *r, struct str body,
					       const struct json_member *members, size_t count,
					       struct couch_changes_args *ret);

/* The heads of a document that a row of a feed names. */
struct couch_change_heads {
	struct rev_id *revs; /* those that the filter lets pass, the winner first */
	size_t count;
	struct rev_id only;   /* where `revs` lies if there is one */
	struct rev_tree tree; /* all of them, if they had to be read */
};

/*
 * Finds the heads that the change's row names. They lie in the request's arena or in `ret`, which
 * must not be moved.
 */
MUST_USE enum status couch_change_heads(struct couch_req *r, struct kv_tx *tx,
					const struct couch_changes_args *args,
					const struct rev_change *c, struct couch_change_heads *ret);

/* Appends what the filter's list of fields shows of the winner. */
MUST_USE enum status couch_change_fields(struct couch_req *r, struct kv_tx *tx,
					 const struct couch_changes_args *args,
					 const struct rev_change *c, struct buf *out);

#endif
