/*
 * Where a door other than CouchDB's listens, in clear and with TLS, by two options of `frond
 * serve`.
 *
 * For the main thread; a process serves once.
 */
#ifndef FROND_CLI_DOOR_H
#define FROND_CLI_DOOR_H

#include "base/address.h"
#include "settings/settings.h"

struct net_host;
struct net_stream_options;
struct net_tls;

struct door {
	bool wanted;
	bool tls_wanted;
	char host[ADDRESS_HOST_BYTES];
	char tls_host[ADDRESS_HOST_BYTES];
	uint16_t port;
	uint16_t tls_port;
	struct net_tls *tls;
	unsigned loops; /* that serve it; 0: all. Set before door_listen() */
};

/*
 * Decides where it listens, by the options of the command line; NULL: not. Reads the certificates
 * for TLS. STATUS_INVALID, STATUS_IO, STATUS_NOMEM.
 */
MUST_USE enum status door_find(struct door *d, const struct settings *settings, const char *clear,
			       const char *tls, struct err *err);

/* True if it listens at all. */
static inline bool
door_is_wanted(const struct door *d)
{
	return d->wanted || d->tls_wanted;
}

/* The address of it that other machines can reach; NULL: there is none. */
const char *door_exposed(const struct door *d);

/*
 * Listens, by a stream protocol with these options, and logs `event`, or `tls_event`, with the
 * address. STATUS_INVALID, STATUS_IO, STATUS_NOMEM.
 */
MUST_USE enum status door_listen(struct door *d, struct net_host *host,
				 struct net_stream_options *options, const char *event,
				 const char *tls_event, struct err *err);

/* The host and port that clients in clear use, or those with TLS where there is nothing else. */
const char *door_host(const struct door *d);
uint16_t door_port(const struct door *d);

/* After the server was freed. */
void door_fini(struct door *d);

#endif
