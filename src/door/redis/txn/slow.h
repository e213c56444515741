/* SLOWLOG: what it tells of commands that took long, which serve/ops.h keeps. Any thread. */
#ifndef FROND_DOOR_REDIS_TXN_SLOW_H
#define FROND_DOOR_REDIS_TXN_SLOW_H

#include "door/redis/txn/run.h"

/* The unit has been run: it began at its `began_ns`. */
void slow_note(struct redis *r, struct client *c, const struct unit *u, uint64_t now_ns);
/* Appends the `most` newest entries, as SLOWLOG GET answers them; all if it is negative. */
void slow_get(int64_t most, struct reply *reply);

#endif
