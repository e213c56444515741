/*
 * The parameters of _changes and _db_updates.
 */
#ifndef FROND_DOOR_COUCH_LIST_CHANGES_ARGS_H
#define FROND_DOOR_COUCH_LIST_CHANGES_ARGS_H

#include "door/couch/list/feed.h"
#include "door/couch/wire/request.h"

MUST_USE enum status couch_changes_args_read(struct couch_req *r, struct couch_changes_args *ret);

/* The parameters alone, without a filter. */
MUST_USE enum status couch_feed_args_read(struct couch_req *r, struct couch_changes_args *ret);

#endif
