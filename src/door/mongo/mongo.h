/*
 * MongoDB's door: its wire protocol on connections of net/, its commands. docs/MONGODB.md has what
 * clients are promised, README.md how it is made.
 *
 * A struct mongo is shared by all loops of a process.
 */
#ifndef FROND_DOOR_MONGO_MONGO_H
#define FROND_DOOR_MONGO_MONGO_H

#include "base/status.h"
#include "door/door.h"
#include "door/people.h"
#include "kv/kv.h"
#include "net/stream.h"

struct js;
struct people_news;
struct mongo_settings;
struct settings_live;

enum {
	MONGO_OUTPUT_BYTES = 1024 * 1024,        /* of answers that a client has not read */
	MONGO_REPLY_BYTES = 48000000,            /* of one answer */
	MONGO_STRANGER_BYTES = 64 * 1024,        /* of a message of one who has not logged in */
	MONGO_DOCUMENT_BYTES = 16 * 1024 * 1024, /* maxBsonObjectSize */
	MONGO_BATCH_WRITES = 100000,             /* maxWriteBatchSize */
	MONGO_AWAIT_MS = 60 * 1000,              /* that a hello waits at most */
	MONGO_SESSION_MINUTES = 30,              /* logicalSessionTimeoutMinutes */
	MONGO_HOST_BYTES = 300,                  /* of an address that clients are told */
	MONGO_WIRE_VERSION = 25,                 /* of 8.0 */
};

/* What clients take this server for: they choose by it what they send. */
#define MONGO_VERSION         "8.0.0"
#define MONGO_FEATURE_VERSION "8.0"

struct mongo;

struct mongo_config {
	struct kv_store *store;
	struct settings_live *live; /* who may log in */
	struct people_news *news;   /* tells when they change; NULL: nothing does */
	const struct mongo_settings *settings;
	struct door_people people; /* whom commands read and change */
	struct js *js;             /* runs functions that clients send; may be NULL */
	bool test_commands;        /* clients may have commands fail: configureFailPoint */
};

/* NULL when out of memory. `config` is copied; what it names outlives the result. */
struct mongo *mongo_new(const struct mongo_config *config);
/*
 * After net_host_run() has returned STATUS_OK, before net_host_free(): frees the cursors, since
 * what their pipelines keep counts in the memory that the host's connections share. NULL is fine.
 */
void mongo_stop(struct mongo *m);
/* After all connections have ended. NULL is fine. */
void mongo_free(struct mongo *m);

/*
 * Adds the chores that give up old transactions, and remove what is stored of old sessions and
 * documents whose time is over. The door outlives the registry.
 */
struct chores;
void mongo_chores_add(struct mongo *m, struct chores *chores);

/* The options of net_stream_protocol for its connections; the door's. */
struct net_stream_options *mongo_stream_options(struct mongo *m);

/*
 * Tells the door where it listens, and whether by TLS. Clients connect to where a replica set says
 * that its member is: to this address, or to the one of the settings. Without the latter the door
 * is no replica set where clients may need another name or address than this one. Must be called
 * before the first connection.
 */
void mongo_set_address(struct mongo *m, const char *host, uint16_t port, bool tls);

/* All of this, as the program opens it. */
extern const struct door_type mongo_door_type;

#endif
