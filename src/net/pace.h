/*
 * Whether a peer keeps up: with sending what it was asked for, or with reading what it is sent.
 *
 * Only the time counts in which somebody waits for the peer, so a connection that has nothing to
 * send or to read, such as a feed without changes, is never slow. There are two limits. A peer
 * stalls if nothing moves for the stall time. It is slow if, in a window of waiting, fewer bytes
 * have moved than the least rate allows. Bursts are fine, because only the sum of a window counts;
 * a burst is no credit for later, because each window begins anew.
 *
 * Plain values of one thread.
 */
#ifndef FROND_NET_PACE_H
#define FROND_NET_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct net_pace_limits {
	uint64_t stall_ms;       /* without a byte */
	uint64_t min_rate_bytes; /* for each second */
	uint64_t window_ms;      /* of waiting, over which the rate is an average */
};

enum net_verdict {
	NET_KEEPS_UP,
	NET_STALLS,
	NET_IS_SLOW,
};

struct net_pace {
	uint64_t silent_ns; /* waited since the last byte */
	uint64_t waited_ns; /* in this window */
	uint64_t bytes;     /* in this window */
};

/* How much longer to wait for the peer before net_pace_count() may judge it; at least 1. */
uint64_t net_pace_left_ns(const struct net_pace *p, const struct net_pace_limits *limits);

/* Counts a wait, in which so many bytes have moved, and judges the peer. */
enum net_verdict net_pace_count(struct net_pace *p, const struct net_pace_limits *limits,
				uint64_t waited_ns, uint64_t bytes);

#endif
