/*
 * The manager of services that has started `frond serve`, such as systemd. Variables of the
 * environment say where it wants to be told what the process does (NOTIFY_SOCKET; sd_notify(3)),
 * and which sockets that listen already it hands over (LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES;
 * sd_listen_fds(3)). Where there are no such variables, these functions do nothing.
 *
 * It hands over two kinds. Those that it has made itself are for a door by their name and say where
 * that listens, whatever the settings say. Those that a process of before has made are the second
 * kind: the manager is given each to keep (FDSTORE=1), hands them to the next process, and a door
 * that the settings have listen there goes on with them. So clients that connect while the service
 * is restarted wait for it, and are not refused.
 *
 * For the main thread, but for manager_tell(), which any thread may call.
 */
#ifndef FROND_CLI_MANAGER_H
#define FROND_CLI_MANAGER_H

#include "base/address.h"
#include "base/status.h"

enum {
	MANAGER_NAME_BYTES = 32, /* of a socket's name; longer ones are no door's */
};

/*
 * Reads the variables and removes them from the environment. A socket for a door is called as the
 * option of `frond serve` for that ("http", "rediss"), or "metrics"; a single one without a name is
 * taken for "http". STATUS_INVALID for a socket that cannot be used.
 */
MUST_USE enum status manager_read(struct err *err);

/*
 * True if a socket of that name was handed over; tells where it listens. `suffix` is the end of the
 * name, "s" for TLS.
 */
bool manager_socket(const char *name, const char *suffix, char ret_host[ADDRESS_HOST_BYTES],
		    uint16_t *ret_port);

/*
 * STATUS_INVALID if a socket was handed over that manager_socket() was never asked for. `names`:
 * all that a socket may be called, for the explanation.
 */
MUST_USE enum status manager_check_sockets(const char *names, struct err *err);

/* Has the manager forget what it has kept and no door listens at. After all doors listen. */
void manager_drop_sockets(void);

/* True if the manager wants to be told. */
bool manager_listens(void);

#define MANAGER_READY     "READY=1"
#define MANAGER_STOPPING  "STOPPING=1"
#define MANAGER_RELOADING "RELOADING=1"

/* Tells the manager, if it listens. A message that it does not take in a second is dropped. */
void manager_tell(const char *state);

#endif
