/*
 * Sockets that listen already, which the process was given when it started, as a manager of
 * services does. A listener of net_host_listen() at the address of one of them takes it, and binds
 * none of its own. Whoever made them goes on holding them, so clients wait while no process serves,
 * and are not refused.
 *
 * For the main thread.
 */
#ifndef FROND_NET_GIVEN_H
#define FROND_NET_GIVEN_H

#include <sys/socket.h>

#include "base/address.h"
#include "base/status.h"

enum {
	NET_GIVEN = 16, /* sockets at most */
};

/*
 * Keeps a socket for the listener at its address, which `ret_host` and `ret_port` tell; of a Unix
 * socket they are its path and 0. The process owns it from now on, and a program that it starts
 * does not get it. STATUS_INVALID if it is no socket of TCP or of a path that listens;
 * STATUS_LIMIT.
 */
MUST_USE enum status net_given_add(int fd, char ret_host[ADDRESS_HOST_BYTES], uint16_t *ret_port,
				   struct err *err);

/* The socket that listens at that address, which is the caller's now; -1: none was given. */
int net_given_take(const struct sockaddr *address);

/* Closes those that no listener has taken, after `tell` was called with the address of each. */
void net_given_drop(void (*tell)(const char *host, uint16_t port));

/*
 * From now on `keep` is called with each socket of TCP that a listener makes for itself, which
 * stays the listener's: it may be given to the process that serves next. Not with one of a path,
 * whose file goes with its listener.
 */
typedef void net_given_keep(int fd, const char *host, uint16_t port);
void net_given_set_keep(net_given_keep *keep);
/* Called by listeners. */
void net_given_made(int fd);

#endif
