/*
 * What a fiber does before it waits for its peer for long: it frees everything that it can read
 * again. A plain value; `arg` belongs to the code that sets the hook and takes it back.
 */
#ifndef FROND_NET_WAIT_HOOK_H
#define FROND_NET_WAIT_HOOK_H

struct net_wait_hook {
	void (*let_go)(void *arg); /* NULL: there is nothing to free */
	void *arg;
};

#endif
