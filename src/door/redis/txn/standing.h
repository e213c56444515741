/* What this server is to replication: a master, or in front of a standby (kv/log.h) a replica. */
#ifndef FROND_DOOR_REDIS_TXN_STANDING_H
#define FROND_DOOR_REDIS_TXN_STANDING_H

#include <stdbool.h>
#include <stdint.h>

struct redis;

struct standing {
	bool replica;
	bool linked;      /* what it follows answers */
	uint64_t seconds; /* since it last had all of it */
	uint64_t version; /* that it has */
};

struct standing standing_of(const struct redis *r);

#endif
