/*
 * What other processes do, where several serve one store: a thread that waits for it on behalf of
 * this process's clients. It watches the headers of keys that clients wait for (waited.h), so that
 * whoever writes such a key need not know of them, and the log of messages (messages.h) as long as
 * there are subscribers, or clients that keep what they read. For the latter it also keeps a record
 * that has other processes tell of the keys that they change (trackers.h).
 *
 * Where the store belongs to this process there is none of that, and redis->others is NULL.
 */
#ifndef FROND_DOOR_REDIS_TXN_OTHERS_H
#define FROND_DOOR_REDIS_TXN_OTHERS_H

#include "base/status.h"

struct chores;
struct effect;
struct others;
struct redis;

/* Starts the thread. STATUS_NOMEM, STATUS_LIMIT. */
MUST_USE enum status others_new(struct redis *r, struct others **ret);
/* Stops it; no client is left. NULL is fine. */
void others_free(struct others *o);

/*
 * After the first subscription of a client, and before it is told of it: what is published from now
 * on is read.
 */
MUST_USE enum status others_listen(struct others *o, struct err *err);

/*
 * Has other processes tell of every key that they change from now on. Called on a client's fiber,
 * after the client has begun to track (tracking.h) and before it reads anything; may be called
 * again. Waits for the store, and returns its errors, explained in `err`.
 */
MUST_USE enum status others_track(struct others *o, struct err *err);

/*
 * Tells subscribers in all processes of the events from `first` on, in a transaction of its own:
 * those of this process learn of them by the log as well, so that whoever has changed the key
 * before is told of before. May wait for the store; if that fails nobody is told.
 */
void others_tell(struct others *o, const struct effect *first);

/* Clears old messages, and records of processes that have died; in one process at a time. */
void others_chores_add(struct others *o, struct chores *chores);

#endif
