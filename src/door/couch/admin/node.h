/*
 * What is below /_node/{name}, besides the settings. Each function answers the request, whose path
 * and user node.c has checked.
 */
#ifndef FROND_DOOR_COUCH_ADMIN_NODE_H
#define FROND_DOOR_COUCH_ADMIN_NODE_H

#include "door/couch/wire/request.h"

enum {
	COUCH_NODE_PART = 1,  /* of the path: the node's name, */
	COUCH_NODE_PART_WHAT, /* and what is asked of it */
	COUCH_NODE_PART_MORE,
};

couch_handler couch_node_stats;      /* stats.c: _stats, or one of its members by path */
couch_handler couch_node_system;     /* system.c: _system */
couch_handler couch_node_versions;   /* system.c: _versions */
couch_handler couch_node_prometheus; /* scrape.c: _prometheus */

#endif
