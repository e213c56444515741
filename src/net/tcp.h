/* Streams and listeners of struct net_io: TCP, on libuv. */
#ifndef FROND_NET_TCP_H
#define FROND_NET_TCP_H

#include "net/io.h"

extern const struct net_io net_tcp;

/*
 * How many descriptors connections may take together, so that a store beside them can go on opening
 * files: `wanted` at most, and five eighths of the limit. `ret_limit` is that limit.
 */
size_t net_tcp_share(size_t wanted, size_t *ret_limit);

#endif
