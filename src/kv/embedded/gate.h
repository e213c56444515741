/*
 * The gate in front of RocksDB's handle. Opening a store again inside the process means that its
 * handle is closed for a moment, and nobody may be using the handle then.
 *
 * Every use of the handle stands between gate_enter() and gate_leave(), on one thread: a read, the
 * making and freeing of a snapshot or an iterator. A use never waits for anything but the disk. The
 * thread that owns the committer (committer.c) closes the gate, which then turns others away and
 * waits for those that are inside; it alone may use and replace the handle until it opens the gate.
 * Since only that thread closes the gate, it need not enter.
 *
 * Entering and leaving are one atomic addition each, to a counter that the thread shares with few
 * others (metric_shard()), so that readers do not wait for each other's cache lines.
 *
 * == Why a user and the closer never overlap ==
 *
 * A user adds itself to its counter and then looks at `closed`; the closer sets `closed` and then
 * looks at the counters. All four are sequentially consistent, so at least one of the two sees the
 * other. If it is the user, it takes itself off the counter and has used nothing.
 */
#ifndef FROND_KV_EMBEDDED_GATE_H
#define FROND_KV_EMBEDDED_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/metric.h"
#include "base/status.h"

enum {
	GATE_LINE_BYTES = 64,
};

struct gate_stripe {
	_Atomic uint32_t users;
	char unshared[GATE_LINE_BYTES - sizeof(uint32_t)];
};

struct gate_waiter;

struct gate {
	atomic_bool closed;
	struct gate_stripe stripes[METRIC_SHARDS];
	pthread_mutex_t lock; /* of `waiters` */
	struct gate_waiter *waiters;
};

/* What a use holds from gate_enter() to gate_leave(). */
struct gate_pass {
	_Atomic uint32_t *users;
};

void gate_init(struct gate *g);
void gate_fini(struct gate *g);

static inline void
gate_leave(struct gate_pass pass)
{
	atomic_fetch_sub_explicit(pass.users, 1, memory_order_release);
}

/* False if the gate is closed; nothing is to be left then. */
MUST_USE static inline bool
gate_enter(struct gate *g, struct gate_pass *ret)
{
	ret->users = &g->stripes[metric_shard()].users;
	atomic_fetch_add_explicit(ret->users, 1, memory_order_seq_cst);
	if (__builtin_expect(!atomic_load_explicit(&g->closed, memory_order_seq_cst), 1))
		return true;
	gate_leave(*ret);
	return false;
}

/* Waits until the gate is open. False at the deadline. Parks a fiber. */
MUST_USE bool gate_wait(struct gate *g, uint64_t deadline_ns);

/* Enters, however long the gate is closed. Parks a fiber. */
void gate_enter_when_open(struct gate *g, struct gate_pass *ret);

/*
 * Closes the gate and waits until nobody is inside. False at the deadline, and then the gate is
 * open again.
 */
MUST_USE bool gate_close(struct gate *g, uint64_t deadline_ns);
void gate_open(struct gate *g);

#endif
