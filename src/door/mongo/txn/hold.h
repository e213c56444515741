/*
 * Which documents the open transactions of several commands have changed. A transaction that
 * changes a document of another one fails at that write, not only at its commit, as MongoDB's
 * clients expect; a write outside of transactions waits until the one that has its document has
 * ended. Only transactions of this process are known here. What is missed, and conflicts with other
 * processes, the store finds at the commit.
 *
 * Threading: any thread.
 */
#ifndef FROND_DOOR_MONGO_TXN_HOLD_H
#define FROND_DOOR_MONGO_TXN_HOLD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/status.h"
#include "base/str.h"
#include "kv/kv.h"

struct mongo_client;

enum {
	HOLD_BUCKETS = 16384,
	HOLD_BYTES = 32 * 1024 * 1024, /* of all; what does not fit is left to the commit */
	HOLD_LOOK_MS = 200,            /* between two looks at the client of a write that waits */
};

struct hold;
struct hold_waiter;

/* The documents of one transaction. All zero when it begins, but for `until_ns`. */
struct holder {
	struct hold *first;
	uint64_t until_ns; /* when its time is over, and its documents are free */
	bool overflows;    /* it has changed documents for which HOLD_BYTES had no room */
};

struct holds {
	/* Owns who holds what, and who waits for that. The store is asked without it. */
	pthread_mutex_t lock;
	struct hold *buckets[HOLD_BUCKETS];
	struct hold_waiter *waiters;
	_Atomic size_t bytes;
};

void holds_init(struct holds *all);
void holds_fini(struct holds *all); /* every holder has been released */

/*
 * The transaction `tx` of `h` is going to change the document with that key. STATUS_TX_CONFLICT if
 * another open one has, or if it was changed since `tx` began, as far as that costs no round trip.
 */
MUST_USE enum status hold_take(struct holds *all, struct holder *h, struct kv_tx *tx,
			       struct str key);
/*
 * Before somebody else changes it. STATUS_TX_CONFLICT, after a wait, if an open transaction has had
 * it: the write is to begin anew. Fails as mongo_client_check() does.
 */
MUST_USE enum status hold_await(struct holds *all, struct mongo_client *client, struct str key);

/* The transaction has ended. */
void holder_release(struct holds *all, struct holder *h);

#endif
