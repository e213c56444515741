/*
 * Streams and listeners of struct net_io, on libuv: TCP, and Unix sockets where an address is a
 * path. A peer at a Unix socket is named by its user and its process, as in "unix-1000:4711". Such
 * a stream cannot be reset: its peer reads what it got, and then the end.
 */
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
