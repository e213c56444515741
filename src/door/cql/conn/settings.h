/* The settings of Cassandra's door (base/setting.h): the section [cql]. */
#ifndef FROND_DOOR_CQL_CONN_SETTINGS_H
#define FROND_DOOR_CQL_CONN_SETTINGS_H

#include "door/door.h"

enum {
	CQL_PORT = 9042,
	CQL_TLS_PORT = 9142,
};

/* clang-format off */
#define CQL_SETTINGS(S, NUMBER, FLAG, TEXT)                                                        \
	DOOR_SETTINGS(S, NUMBER, FLAG, TEXT, "cql", "Cassandra", CQL_PORT, CQL_TLS_PORT)           \
	TEXT(S, cluster, "cql", "cluster_name", 1, NULL, "frond", SETTING_AT_START,                \
	     "The name of the cluster whose only node clients take this server for.")              \
	TEXT(S, data_center, "cql", "data_center", 1, NULL, "datacenter1", SETTING_AT_START,       \
	     "The data center that clients are told this server is in. Drivers ask their users "   \
	     "for that name, and connect to servers of that data center only.")                    \
	NUMBER(S, prepared, "cql", "prepared_statements", "", 16, 1000000, 10000,                  \
	       SETTING_AT_START,                                                                   \
	       "How many prepared statements a process keeps; the ones that were unused for "      \
	       "longest make room. A client whose statement has gone prepares it again by "        \
	       "itself.")                                                                          \
	NUMBER(S, slow_ms, "cql", "slow_ms", "ms", 0, 86400000, 5000, SETTING_AT_START,            \
	       "Requests that take longer are logged.")
/* clang-format on */

SETTING_STRUCT(cql_settings, CQL_SETTINGS);
DOOR_SETTINGS_ARE_FIRST(cql_settings);

extern const struct setting_group cql_setting_group;

#endif
