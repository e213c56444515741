/* The handlers of databases, settings, sessions and the server itself, which route.c names. */
#ifndef FROND_DOOR_COUCH_ADMIN_ENDPOINTS_H
#define FROND_DOOR_COUCH_ADMIN_ENDPOINTS_H

#include "door/couch/wire/request.h"

/* ---- The server ---- */

couch_handler couch_root_welcome, couch_root_up, couch_root_uuids, couch_root_membership,
	couch_root_favicon;
couch_handler couch_ops;                    /* ops.c */
couch_handler couch_follow, couch_position; /* follow.c */
couch_handler couch_cluster_setup_get, couch_cluster_setup_post;
couch_handler couch_root_utils;
couch_handler couch_replicate, couch_active_tasks, couch_scheduler; /* replicate.c */
couch_handler couch_node_get;                                       /* /_node/{name}/… */
couch_handler couch_node_put, couch_node_post, couch_node_delete;

/* ---- People ---- */

couch_handler couch_session_get, couch_session_post, couch_session_delete;
/*
 * Sets a new cookie if the request's cookie is no longer fresh, so that only unused sessions end.
 */
MUST_USE enum status couch_session_renew(struct couch_req *r);
couch_handler couch_security_get, couch_security_put;

/* ---- Databases ---- */

couch_handler couch_db_get, couch_db_put, couch_db_delete;
couch_handler couch_ensure_full_commit, couch_revs_limit_get, couch_revs_limit_put, couch_compact,
	couch_scheme_get, couch_scheme_put;
couch_handler couch_partition_get; /* /_partition/{p}, and nothing behind it */

#endif
