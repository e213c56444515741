/* For how long a fiber waits for its peer, as its user has it: net_session_give_up_on(). */
#ifndef FROND_NET_PATIENCE_H
#define FROND_NET_PATIENCE_H

#include <stdint.h>

struct event;

enum {
	NET_PATIENCE_LOOK_MS = 1000, /* how often until_ns() is asked while the fiber waits */
};

/* A plain value; all zero: for ever. */
struct net_patience {
	struct event *event; /* it ends when that is set; or NULL */
	/*
	 * By the clock, until when; UINT64_MAX: for ever. What it says may change, also by what
	 * other threads do. On the fiber; NULL: for ever.
	 */
	uint64_t (*until_ns)(void *arg);
	void *arg;
};

#endif
