/*
 * Redis's door: RESP2 and RESP3 on connections of net/, Redis 7.0.15's commands on the databases of
 * model/timed. docs/REDIS.md has what clients are promised, README.md how it is made.
 *
 * A struct redis is shared by all loops of a process.
 */
#ifndef FROND_DOOR_REDIS_REDIS_H
#define FROND_DOOR_REDIS_REDIS_H

#include "base/status.h"
#include "door/door.h"
#include "door/redis/txn/redis_config.h"
#include "net/stream.h"

struct chores;
struct redis;

/* NULL when out of memory. `config` is copied; what it names outlives the result. */
struct redis *redis_new(const struct redis_config *config);
/* Its background work; `r` outlives it. */
void redis_chores_add(struct redis *r, struct chores *chores);
/* After all connections have ended. NULL is fine. */
void redis_free(struct redis *r);

/* The options of net_stream_protocol for its connections; the door's. */
struct net_stream_options *redis_stream_options(struct redis *r);

void redis_set_port(struct redis *r, uint16_t port);

/* All of this, as the program opens it. */
extern const struct door_type redis_door_type;

#endif
