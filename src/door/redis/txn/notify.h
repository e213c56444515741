/*
 * Keyspace notifications: which messages tell of what happened to a key. Any thread.
 */
#ifndef FROND_DOOR_REDIS_TXN_NOTIFY_H
#define FROND_DOOR_REDIS_TXN_NOTIFY_H

#include "door/redis/txn/txn.h"

typedef enum status notify_take(void *arg, struct str channel, struct str message);

/* Calls for each message of an event (EFFECT_EVENT) that notify-keyspace-events wants. */
MUST_USE enum status notify_each(struct redis *r, const struct effect *e, notify_take *take,
				 void *arg);

#endif
