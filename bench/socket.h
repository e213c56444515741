/* What the load generators and the servers of constants do with sockets. Threading: none. */
#ifndef FROND_BENCH_SOCKET_H
#define FROND_BENCH_SOCKET_H

#include <sys/socket.h>

#include "base/buf.h"

/* Sends all that the buffer has, waiting as long as that takes, and clears it. False: the peer is
 * gone, and the buffer as it was. */
static inline bool
socket_send_all(int fd, struct buf *out)
{
	size_t sent = 0;

	while (sent < out->len) {
		ssize_t n = send(fd, out->ptr + sent, out->len - sent, MSG_NOSIGNAL);

		if (n < 0)
			return false;
		sent += (size_t)n;
	}
	buf_clear(out);
	return true;
}

#endif
