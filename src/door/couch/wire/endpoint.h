/*
 * The endpoints of the door, as metrics and the log name them. The name of an endpoint comes from
 * the row of route.c that a request has reached, never from the client's path, so the number of
 * names is fixed. Constant data.
 */
#ifndef FROND_DOOR_COUCH_WIRE_ENDPOINT_H
#define FROND_DOOR_COUCH_WIRE_ENDPOINT_H

#include <stddef.h>

/* What no row of route.c names is `other`: paths that do not exist, preflights, refusals. */
#define COUCH_ENDPOINTS(E)                                                                         \
	E(OTHER, "other")                                                                          \
	E(ROOT, "root")                                                                            \
	E(UP, "up")                                                                                \
	E(UTILS, "utils")                                                                          \
	E(UUIDS, "uuids")                                                                          \
	E(ALL_DBS, "all_dbs")                                                                      \
	E(DBS_INFO, "dbs_info")                                                                    \
	E(DB_UPDATES, "db_updates")                                                                \
	E(DB_UPDATES_FEED, "db_updates_feed")                                                      \
	E(ACTIVE_TASKS, "active_tasks")                                                            \
	E(REPLICATE, "replicate")                                                                  \
	E(SCHEDULER, "scheduler")                                                                  \
	E(MEMBERSHIP, "membership")                                                                \
	E(CLUSTER_SETUP, "cluster_setup")                                                          \
	E(NODE, "node")                                                                            \
	E(FROND, "frond")                                                                          \
	E(SESSION, "session")                                                                      \
	E(DB, "db")                                                                                \
	E(ALL_DOCS, "all_docs")                                                                    \
	E(LOCAL_DOCS, "local_docs")                                                                \
	E(BULK_DOCS, "bulk_docs")                                                                  \
	E(BULK_GET, "bulk_get")                                                                    \
	E(REVS_DIFF, "revs_diff")                                                                  \
	E(CHANGES, "changes")                                                                      \
	E(CHANGES_FEED, "changes_feed")                                                            \
	E(FIND, "find")                                                                            \
	E(EXPLAIN, "explain")                                                                      \
	E(VIEW, "view")                                                                            \
	E(VIEW_INFO, "view_info")                                                                  \
	E(INDEX, "index")                                                                          \
	E(DB_SETTING, "db_setting")                                                                \
	E(PURGE, "purge")                                                                          \
	E(PARTITION, "partition")                                                                  \
	E(COMPACT, "compact")                                                                      \
	E(DOC, "doc")                                                                              \
	E(DESIGN_DOC, "design_doc")                                                                \
	E(UPDATE, "update")                                                                        \
	E(LOCAL_DOC, "local_doc")                                                                  \
	E(ATTACHMENT, "attachment")

#define COUCH_ENDPOINT_ENUM(name, text) COUCH_ENDPOINT_##name,
#define COUCH_ENDPOINT_NAME(name, text) text,

enum couch_endpoint {
	COUCH_ENDPOINTS(COUCH_ENDPOINT_ENUM) COUCH_ENDPOINT_COUNT,
};

#endif
