/* The handlers of views, which route.c names. */
#ifndef FROND_DOOR_COUCH_VIEW_ENDPOINTS_H
#define FROND_DOOR_COUCH_VIEW_ENDPOINTS_H

#include "door/couch/wire/request.h"

/* /{db}/_design/{ddoc}/_view/{view}, POST …/queries, GET /{db}/_design/{ddoc}/_info */
couch_handler couch_view, couch_view_queries, couch_view_info;
/* POST /{db}/_view_cleanup */
couch_handler couch_view_cleanup;

#endif
