/*
 * How `frond serve` stops on a signal: within a time, whatever the process is doing.
 *
 * The first SIGTERM or SIGINT, or SIGHUP as long as nobody else handles it, sets the moment by
 * which the process has ended. The replications
 * stop first, which may take half of that time, then the server; closing the store is its caller's.
 * If the moment comes before all of this is done, the watchdog (loop/watchdog.h) says what the
 * process waits for and ends it with CLI_OVERDUE. A second signal leaves STOPPING_HASTE_MS.
 *
 * For the main thread; a process serves once.
 */
#ifndef FROND_CLI_STOPPING_H
#define FROND_CLI_STOPPING_H

#include <stdint.h>

#include "base/status.h"

struct replicator;
struct server;

enum {
	STOPPING_HASTE_MS = 3000, /* from a second signal to the end of the process, at most */
};

/* Before all others: how long a stop may take. */
void stopping_prepare(uint64_t timeout_ms);

/*
 * Has signals stop these two from now on; `replicator` may be NULL. They stay the caller's, and
 * exist until stopping_end(). The watchdog runs. STATUS_LIMIT when there can be no thread.
 */
MUST_USE enum status stopping_begin(struct server *server, struct replicator *replicator,
				    struct err *err);

/* As a first signal does; nothing if one has come. Any thread, also before stopping_begin(). */
void stopping_ask(void);

/* After server_run() has returned, for whatever reason: waits until the replicator has stopped. */
void stopping_end(void);

/* The signal that came last; 0: none. */
int stopping_signal(void);

#endif
