/* The handlers of this room, which route.c names. */
#ifndef FROND_DOOR_COUCH_QUERY_ENDPOINTS_H
#define FROND_DOOR_COUCH_QUERY_ENDPOINTS_H

#include "door/couch/wire/request.h"

couch_handler couch_find, couch_explain;
couch_handler couch_index_list, couch_index_create, couch_index_delete, couch_index_bulk_delete;

#endif
