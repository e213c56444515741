/* What commands on lists share: changes with their events. */
#ifndef FROND_DOOR_REDIS_CMD_LIST_H
#define FROND_DOOR_REDIS_CMD_LIST_H

#include "door/redis/cmd/data.h"

MUST_USE enum status list_push(struct call *c, struct timed_item *item, struct str key, bool left,
			       const struct str *values, size_t count);
MUST_USE enum status list_pop(struct call *c, struct timed_item *item, struct str key, bool left,
			      uint64_t most, struct timed_elements *ret);

#endif
