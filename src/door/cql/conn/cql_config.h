/* Limits of Cassandra's door, what it tells of itself, and what the process gives it. */
#ifndef FROND_DOOR_CQL_CONN_CQL_CONFIG_H
#define FROND_DOOR_CQL_CONN_CQL_CONFIG_H

#include <stdint.h>

struct cql_settings;
struct door_people;
struct kv_store;
struct people_news;
struct settings_live;

enum {
	CQL_OUTPUT_BYTES = 1024 * 1024,        /* of answers that a client has not read */
	CQL_REPLY_BYTES = 64 * 1024 * 1024,    /* of one answer */
	CQL_EVENTS_BYTES = 64 * 1024,          /* of events that a client has not read */
	CQL_KEYSPACE_BYTES = 48,               /* of a keyspace's name */
	CQL_PREPARED_BYTES = 64 * 1024 * 1024, /* of prepared statements that are kept */
	CQL_PREPARED_ONE_BYTES = 1024 * 1024,  /* of one, with what it is compiled to */
	CQL_IN_FLIGHT = 32,                    /* statements of a connection at a time */
	CQL_IN_FLIGHT_BYTES = 16 * 1024,       /* of one of them, as it came */
	CQL_TOGETHER = 8,                      /* reads of one row that share a transaction */
	CQL_PARTITIONS = 10000,                /* that IN on the partition key may name */
	CQL_RANGES = 10000, /* of clustering keys that IN may name, in a partition */
	/* Conditional statements of one partition (run/lane.h). */
	CQL_LANE_TABLES = 64,              /* of LANES lanes each */
	CQL_LANE_JOBS = 128,               /* that share a transaction */
	CQL_LANE_BYTES = 4 * 1024 * 1024,  /* of its size, from which on it takes no further one */
	CQL_LANE_ANSWER_BYTES = 16 * 1024, /* of the answer to one; a longer one is made alone */
};

/* What clients take this server for: they choose by it what they ask. */
#define CQL_RELEASE_VERSION  "4.0.0"
#define CQL_LANGUAGE_VERSION "3.4.5"

struct cql_config {
	struct kv_store *store;
	struct settings_live *live;       /* who may log in */
	struct people_news *news;         /* tells when they change; NULL: nothing does */
	const struct door_people *people; /* whom statements read and change */
	const struct cql_settings *settings;
};

#endif
