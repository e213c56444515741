/*
 * Redis's door of `frond serve`.
 *
 * For the main thread; a process serves once.
 */
#ifndef FROND_CLI_REDIS_DOOR_H
#define FROND_CLI_REDIS_DOOR_H

#include "cli/door.h"
#include "model/timed/timed.h"

struct redis;

struct redis_door {
	struct redis *redis;
	struct timed_listener listener;
};

/* Makes the door, if it is wanted, and listens. STATUS_INVALID, STATUS_IO, STATUS_NOMEM. */
MUST_USE enum status redis_door_listen(struct redis_door *d, struct door *door,
				       const struct door_ground *ground, struct err *err);

/* Who is to be told of what expires, after redis_door_listen(); NULL: nobody. */
const struct timed_listener *redis_door_listener(struct redis_door *d);

/* After the server was freed, before the store is closed. */
void redis_door_fini(struct redis_door *d);

#endif
