/* The door itself: what all of its connections share. */
#ifndef FROND_DOOR_ROWS_CONN_ROWS_INT_H
#define FROND_DOOR_ROWS_CONN_ROWS_INT_H

#include "catalog/caches.h"
#include "door/rows/conn/rows_config.h"
#include "door/rows/conn/settings.h"
#include "net/stream.h"
#include "serve/clients.h"

/* The classes of `frond_operation_duration_seconds`. */
enum rows_class {
	ROWS_CLASS_CONNECTION,  /* HELLO, LOGIN, PING */
	ROWS_CLASS_TRANSACTION, /* BEGIN, COMMIT, ROLLBACK, savepoints */
	ROWS_CLASS_SCHEMA,      /* schemas and tables: told, made, changed */
	ROWS_CLASS_SCAN,
	ROWS_CLASS_GET,
	ROWS_CLASS_WRITE,
	ROWS_CLASSES,
};

extern struct ops_door rows_ops; /* its classes are those above */

struct rows_door {
	struct rows_config config;
	struct net_stream_options stream;
	struct clients clients;       /* of struct rows_client */
	struct catalog_caches caches; /* of descriptions of tables */
};

#endif
