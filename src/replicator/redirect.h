/*
 * Which redirects a replication follows. Each end is trusted with its own credentials and headers,
 * and with nothing else, so a redirect may not lead a request to another server: neither to one of
 * its choice, nor to one that only this process can reach.
 *
 * Plain functions; any thread.
 */
#ifndef FROND_REPLICATOR_REDIRECT_H
#define FROND_REPLICATOR_REDIRECT_H

#include <stdbool.h>

#include "base/str.h"

/*
 * True if the answer of the URL `from` may lead to `location`, which may be relative to it: to the
 * same scheme, host and port, or from http to https at the same host, at the same port or https's
 * own. False also when out of memory.
 */
bool redirect_is_allowed(const char *from, struct str location);

#endif
