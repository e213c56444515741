/*
 * How many connections each address has (base/address.h says what counts as one address), so that
 * one client cannot have all of them.
 *
 * Thread-safe: connections are accepted on one loop and end on any. Its memory is bounded by the
 * number of connections.
 */
#ifndef FROND_NET_ADDRESSES_H
#define FROND_NET_ADDRESSES_H

#include <pthread.h>

#include "base/address.h"

struct net_address;

struct net_addresses {
	pthread_mutex_t lock;
	struct net_address **slots; /* of a hash table with chains */
	size_t slot_count;
	size_t limit;         /* connections of one address */
	bool spares_loopback; /* the loopback is not limited */
};

/*
 * `limit` 0: three quarters of `max_connections`, but no limit for the loopback and Unix sockets,
 * where all clients of a proxy come from one address. A user at a Unix socket counts as an address
 * where a limit is given. STATUS_NOMEM.
 */
MUST_USE enum status net_addresses_init(struct net_addresses *a, size_t limit,
					size_t max_connections);
void net_addresses_fini(struct net_addresses *a);

/* Counts a connection of a peer such as "127.0.0.1:40312". False: it is one too many. */
MUST_USE bool net_addresses_take(struct net_addresses *a, const char *peer);

/* A connection that was counted has ended. */
void net_addresses_give(struct net_addresses *a, const char *peer);

#endif
