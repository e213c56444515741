/* The door itself: what all of its connections share. */
#ifndef FROND_DOOR_CQL_CONN_CQL_INT_H
#define FROND_DOOR_CQL_CONN_CQL_INT_H

#include <stdatomic.h>

#include "catalog/caches.h"
#include "door/cql/conn/cql_config.h"
#include "door/cql/conn/settings.h"
#include "door/cql/trace/trace.h"
#include "loop/lanes.h"
#include "net/stream.h"
#include "serve/clients.h"
#include "serve/expiring.h"

struct chores;
struct schema_snapshot;

/* The classes of `frond_operation_duration_seconds`. */
enum cql_class {
	CQL_CLASS_CONNECTION, /* OPTIONS, STARTUP, AUTH_RESPONSE, REGISTER */
	CQL_CLASS_PREPARE,
	CQL_CLASS_SELECT,
	CQL_CLASS_INSERT,
	CQL_CLASS_UPDATE,
	CQL_CLASS_DELETE,
	CQL_CLASS_BATCH,
	CQL_CLASS_SCHEMA, /* statements that change it */
	CQL_CLASS_OTHER,
	CQL_CLASSES,
};

extern struct ops_door cql_ops; /* its classes are those above */

struct cql_door {
	struct cql_config config;
	struct net_stream_options stream;
	uint16_t port;                /* where clients reach it */
	uint8_t host_id[16];          /* a UUID: of the store, so that it outlives the process */
	struct clients clients;       /* of struct cql_client */
	struct catalog_caches caches; /* of descriptions of tables */
	struct expiring prepared;     /* statements, by their ids */
	struct expiring_rules prepared_rules;
	struct lanes lanes[CQL_LANE_TABLES]; /* of conditional statements: run/lane.h */
	struct traces traces;                /* of requests whose clients wanted one */
	/* Of a store that others write to (run/news.h). */
	struct chores *chores; /* NULL: nobody else writes to it */
	_Atomic(struct schema_snapshot *) known;
};

#endif
