/*
 * The design document that a request names, and a view of it, as one transaction has seen them.
 *
 * Plain values; everything is in the request's arena. Threading: the request's fiber.
 */
#ifndef FROND_DOOR_COUCH_VIEW_NAMED_H
#define FROND_DOOR_COUCH_VIEW_NAMED_H

#include "door/couch/view/functions.h"
#include "door/couch/wire/request.h"
#include "index/view/design.h"
#include "index/view/view.h"
#include "kv/kv.h"

struct couch_view_named {
	struct str id;                    /* of the design document */
	struct js_design version;         /* for workers */
	struct view_design design;        /* all of its views */
	const struct view_view *view;     /* NULL: none was named */
	const struct view_reduce *reduce; /* NULL: the view has none */
	struct catalog_seq newest;        /* of the database, in the same transaction */
};

/*
 * Reads parts[2]'s design document and, unless `view` has ptr NULL, finds that view in it. r->db is
 * open in `tx`. STATUS_NOT_FOUND; STATUS_INVALID, explained.
 */
MUST_USE enum status couch_view_named_read(struct couch_req *r, struct kv_tx *tx, struct str view,
					   struct couch_view_named *ret);

/* Makes the view of that name the chosen one. STATUS_NOT_FOUND, explained. */
MUST_USE enum status couch_view_named_choose(struct couch_req *r, struct str view,
					     struct couch_view_named *named);

/* 501, which names the program, if this server cannot run functions. */
MUST_USE enum status couch_view_require_worker(struct couch_req *r);

/* The functions for calls on one lane. STATUS_NOMEM. The caller releases them. */
MUST_USE enum status couch_view_functions_of(struct couch_req *r,
					     const struct couch_view_named *named,
					     enum js_lane lane, struct couch_view_functions **ret);

/* Records in r->fail why a function of a view has failed. Returns the status to answer. */
MUST_USE enum status couch_view_fail(struct couch_req *r, enum status status,
				     const struct view_error *error);

/*
 * Waits until the views cover named->newest or, if `waits` is false, begins an update at most. Not
 * in a transaction.
 */
MUST_USE enum status couch_view_bring_up(struct couch_req *r, const struct couch_view_named *named,
					 bool waits);

#endif
