/* The door itself: what all of its connections share. */
#ifndef FROND_DOOR_MONGO_TXN_MONGO_INT_H
#define FROND_DOOR_MONGO_TXN_MONGO_INT_H

#include <stdatomic.h>

#include "base/buf.h"
#include "bson/bson.h"
#include "catalog/caches.h"
#include "door/mongo/txn/access.h"
#include "door/mongo/txn/fail.h"
#include "door/mongo/txn/mongo_config.h"
#include "door/mongo/txn/settings.h"
#include "door/mongo/txn/snapshot.h"
#include "door/mongo/txn/txn.h"
#include "door/mongo/txn/usage.h"
#include "net/stream.h"
#include "serve/clients.h"

extern struct ops_door mongo_ops; /* its classes are of enum usage_kind */

struct mongo {
	struct mongo_config config;
	struct net_stream_options stream;
	char host[MONGO_HOST_BYTES]; /* "127.0.0.1:27017" */
	const char *set;             /* the replica set's name; NULL: a standalone server */
	uint64_t started_ns;
	uint64_t started_ms;
	char process_id[BSON_OBJECT_ID_BYTES]; /* of topologyVersion */

	struct clients clients; /* of struct mongo_client */
	_Atomic int32_t next_request;

	struct catalog_caches caches; /* of descriptions of collections */
	struct txns txns;
	_Atomic uint64_t txn_seconds; /* how long one may last; setParameter changes it */
	struct expiring snapshots;    /* snapshot.h */
	struct expiring cursors;      /* cursor.h */
	struct counts accesses;       /* of indexes: access.h */
	struct usages usages;         /* of collections */
	_Atomic uint64_t slow_ms;     /* commands that take longer are logged; profile changes it */

	_Atomic uint64_t version; /* the newest of the store that a command has seen; 0: none */
	struct buf swept;         /* where the chore of sessions goes on */
	struct buf expired;       /* and the one of documents whose time is over */
	struct buf supplied;      /* and the one of indexes that are missing (index_supply.h) */
	bool supplied_all;        /* that has been at all collections */

	struct fail_points fail;

	_Atomic uint64_t requests;
	_Atomic uint64_t bytes_in;
	_Atomic uint64_t bytes_out;
};

#endif
