/* The handlers of lists and feeds, which route.c names. */
#ifndef FROND_DOOR_COUCH_LIST_ENDPOINTS_H
#define FROND_DOOR_COUCH_LIST_ENDPOINTS_H

#include "door/couch/wire/request.h"

couch_handler couch_all_docs, couch_all_docs_queries;
couch_handler couch_changes;
couch_handler couch_db_updates;
couch_handler couch_all_dbs, couch_dbs_info_get, couch_dbs_info_post;

#endif
