/*
 * The file of a Unix socket at which a listener of this process listens: made, and removed.
 *
 * For the main thread, or the loop that accepts.
 */
#ifndef FROND_NET_PATH_H
#define FROND_NET_PATH_H

#include <sys/stat.h>
#include <sys/un.h>

#include "base/status.h"

enum {
	NET_PATH_MODE = 0660, /* of the file: its owner and its group may connect */
	/* How long another process is waited for that makes a socket in the same directory. */
	NET_PATH_WAIT_MS = 2000,
};

/* Which file it is, so that no other one is removed. */
struct net_path {
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	dev_t device;
	ino_t number;
};

/*
 * Binds `fd` to the path of `address`, and has it listen with this backlog. The file of a socket at
 * which nobody listens any more is replaced; where somebody listens, or where another file is, it
 * is STATUS_IO, explained. Of two processes that begin at the same moment one succeeds.
 */
MUST_USE enum status net_path_listen(int fd, const struct sockaddr_un *address, int backlog,
				     struct net_path *ret, struct err *err);

/*
 * Removes the file, if it is still the one that was made. Must be called while the socket still
 * listens, since from then on another process may replace the file.
 */
void net_path_remove(const struct net_path *p);

#endif
