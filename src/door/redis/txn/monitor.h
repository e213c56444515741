/*
 * MONITOR: the commands that this process has run, for connections that asked to see them. What
 * only administrators may run is not shown, nor are passwords. Any thread.
 */
#ifndef FROND_DOOR_REDIS_TXN_MONITOR_H
#define FROND_DOOR_REDIS_TXN_MONITOR_H

#include "door/redis/txn/redis_int.h"

enum {
	MONITOR_ARG_BYTES = 16 * 1024,    /* that are shown of an argument */
	MONITOR_LINE_BYTES = 1024 * 1024, /* of a command: then the other arguments are counted */
};

/* True if anybody looks. */
static inline bool
monitor_is_on(const struct redis *r)
{
	return atomic_load_explicit(&r->monitor_count, memory_order_relaxed) > 0;
}

/* The client sees commands from now on, until monitor_end(). Of its fiber; again is fine. */
void monitor_begin(struct client *c);
void monitor_end(struct client *c);

/*
 * Shows a command that the client has run, in the database that it has now, to all who look. NULL
 * instead of the client: a script has run it.
 */
void monitor_show(struct redis *r, const struct client *c, unsigned db,
		  const struct command *command, const struct str *argv, size_t argc);

#endif
