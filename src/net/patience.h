/* When a fiber gives up on a peer for which it waits: net_session_give_up_on(). */
#ifndef FROND_NET_PATIENCE_H
#define FROND_NET_PATIENCE_H

#include <stdint.h>

struct event;

enum {
	NET_PATIENCE_LOOK_MS = 1000, /* how often until_ns() is asked while the fiber waits */
};

/* A plain value. All zero: the fiber does not give up. */
struct net_patience {
	struct event *event; /* the fiber gives up when this is set; or NULL */
	/*
	 * Returns the time of the monotonic clock when the fiber gives up; UINT64_MAX: never.
	 * Called on the fiber, during a wait every NET_PATIENCE_LOOK_MS, because other threads may
	 * change the time. Or NULL.
	 */
	uint64_t (*until_ns)(void *arg);
	void *arg;
};

#endif
