/*
 * Where a door of `frond serve` listens, in clear and with TLS: the settings say it, and options of
 * the command line win over them.
 *
 * For the main thread; a process serves once.
 */
#ifndef FROND_CLI_DOOR_H
#define FROND_CLI_DOOR_H

#include "base/address.h"
#include "base/status.h"

struct door_type;
struct net_host;
struct net_stream_options;
struct net_tls;

struct door {
	bool wanted;
	bool tls_wanted;
	char host[ADDRESS_HOST_BYTES]; /* or the path of a Unix socket, with port 0 */
	char tls_host[ADDRESS_HOST_BYTES];
	uint16_t port; /* of both: the one that is listened on, once door_listen() has returned */
	uint16_t tls_port;
	unsigned loops; /* that serve it; 0: all. Set before door_listen() */
};

/* What says where a door listens. All texts are borrowed. */
struct door_wish {
	const char *section; /* of the settings below, for errors */
	const char *name;    /* of its sockets, for manager_socket() */
	bool enabled;
	bool tls_enabled;
	const char *host; /* bind_address, of both */
	uint64_t port;
	uint64_t tls_port;
	const char *given; /* an address of the command line, instead of the above; NULL: none */
	const char *tls_given; /* the same for TLS */
	bool takes_paths;      /* it may listen at a Unix socket */
};

/*
 * Decides where it listens: at the sockets that the manager of services hands over, or as the wish
 * says. STATUS_INVALID for what is no address, and for an address of the command line beside such a
 * socket.
 */
MUST_USE enum status door_find(struct door *d, const struct door_wish *wish, struct err *err);

/* True if it listens at all. */
static inline bool
door_is_wanted(const struct door *d)
{
	return d->wanted || d->tls_wanted;
}

/* The address of it that other machines can reach, as no path is; NULL: there is none. */
const char *door_exposed(const struct door *d);

/*
 * Listens, by a stream protocol with these options, and logs the address by the type's name, with
 * an "s" behind it for TLS. `tls` has the certificates of all doors; NULL if none of them
 * speaks TLS. STATUS_INVALID, STATUS_IO, STATUS_NOMEM.
 */
MUST_USE enum status door_listen(struct door *d, const struct door_type *type,
				 struct net_host *host, struct net_stream_options *options,
				 struct net_tls *tls, struct err *err);

/* The host and port that clients in clear use, or those with TLS where there is nothing else. */
const char *door_host(const struct door *d);
uint16_t door_port(const struct door *d);

#endif
