/*
 * Fibers beside the one that serves a connection, for a protocol whose requests may be under way
 * together: each does a part of what the peer asks, while the session's own fiber reads from the
 * connection and writes to it. Theirs is the memory of the session: its part, which they use in
 * turns as they run.
 *
 * Threading: on the session's loop.
 */
#ifndef FROND_NET_BESIDE_H
#define FROND_NET_BESIDE_H

#include "net/session.h"

enum {
	/*
	 * Fibers of a loop, of all its connections, beyond which it has no further ones beside: as
	 * many as it keeps for reuse, since making a stack costs more than a small request does.
	 */
	NET_BESIDE_FIBERS = 128,
};

/*
 * On the session's fiber: a task for a part of the work, with the limit of steps that a request
 * has. Its memory and that of its arena count in the session's part. NULL if there is no memory,
 * or if the loop has NET_BESIDE_FIBERS already: then the session's own fiber does the work. The
 * caller starts the task (task_start_soon()), and puts it back in the task's `done`, when the work
 * has returned. The session's fiber must not return before that.
 */
struct task *net_beside_take(struct net_session *s);
void net_beside_put(struct net_session *s, struct task *t);

#endif
