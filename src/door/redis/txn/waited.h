/*
 * The keys that clients of this process wait for, where several processes serve the store, and a
 * bell for the thread that watches them (others.h). The redis's blocked_lock guards the keys.
 */
#ifndef FROND_DOOR_REDIS_TXN_WAITED_H
#define FROND_DOOR_REDIS_TXN_WAITED_H

#include <pthread.h>

#include "base/status.h"
#include "loop/wait.h"
#include "model/timed/items/item.h"

enum {
	WAITED_SLOTS = 1024,
};

/* Wakes one thread, also when it is rung while the thread does something else. */
struct bell {
	/* Owns the rest. */
	pthread_mutex_t lock;
	bool rung;
	bool waits;
	struct event event; /* while `waits` */
};

/* Any thread. */
void bell_ring(struct bell *b);
/*
 * Waits until the bell has been rung, one of the other events is set, or the deadline. `events` has
 * room for the bell's own one in front; `count` is with it. The one thread.
 */
void bell_wait(struct bell *b, struct event **events, size_t count, uint64_t deadline_ns);

/* A key that clients wait for. */
struct waited {
	struct waited *next; /* of the slot */
	unsigned db;
	size_t clients;
	struct str key; /* behind the struct */

	/* The thread's. */
	bool settled; /* it is watched, or its database is not there */
	struct kv_future *watches[TIMED_WATCHES];
	struct kv_future *stale[TIMED_WATCHES]; /* of which one is over, and to be freed */
	bool is_stale;
	struct waited *next_stale;
	struct waited *batch;
};

struct waited_keys {
	struct bell bell;
	struct waited *slots[WAITED_SLOTS];
	size_t count;
	size_t wanted; /* those that clients wait for now */
};

void waited_init(struct waited_keys *keys);
void waited_fini(struct waited_keys *keys);

/*
 * A client waits for the key. After the lock has been given back the bell is to be rung.
 * STATUS_LIMIT past REDIS_WAITED_KEYS; STATUS_NOMEM.
 */
MUST_USE enum status waited_take(struct waited_keys *keys, unsigned db, struct str key,
				 struct waited **ret);
/* It does not any longer; the thread drops the key. NULL is fine. */
void waited_give(struct waited_keys *keys, struct waited *w);

#endif
