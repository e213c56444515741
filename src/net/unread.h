/*
 * How much a peer leaves unread of what it is sent, and how much of that it may.
 *
 * A peer that asks reads its answers, or is not served further. What it gets without having asked
 * for it now, such as a published message, is kept until it reads. For both there is a limit that
 * ends it at once, and a lower one that it may exceed for some time. A door counts the bytes here;
 * how they are kept is its own.
 *
 * A plain value: who counts holds the lock of whatever it is part of. Limits are read without one.
 */
#ifndef FROND_NET_UNREAD_H
#define FROND_NET_UNREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Of what is unread; they do not count, since a connection's first buffer holds them. */
	NET_UNREAD_FREE_BYTES = 16 * 1024,
};

/* Others may change it meanwhile. */
struct net_unread_limit {
	_Atomic uint64_t hard_bytes; /* 0: none */
	_Atomic uint64_t soft_bytes; /* that may be exceeded for `soft_s`; 0: none */
	_Atomic uint64_t soft_s;
};

/* All zero at first. */
struct net_unread {
	size_t waiting_bytes; /* of messages that nobody writes yet */
	size_t flying_bytes;  /* of messages that the peer's fiber writes now */
	size_t answer_bytes;  /* of answers that it writes now */
	uint64_t over_ns;     /* since when the soft limit is exceeded; 0: it is not */
};

/* All of it. */
size_t net_unread_bytes(const struct net_unread *u);

/* False if there is more than the limit allows, or more of messages than `most_bytes`. */
bool net_unread_keeps(struct net_unread *u, const struct net_unread_limit *limit,
		      size_t most_bytes);

/* Until when it may leave that much unread, after net_unread_keeps(); UINT64_MAX: for ever. */
uint64_t net_unread_until_ns(const struct net_unread *u, const struct net_unread_limit *limit);

#endif
