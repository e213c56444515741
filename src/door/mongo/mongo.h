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
#include "door/mongo/txn/mongo_config.h"
#include "net/stream.h"

struct mongo;

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
