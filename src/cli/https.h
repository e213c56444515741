/*
 * HTTPS of `frond serve`: where it listens, its certificates, and SIGHUP, which has these read
 * again.
 *
 * For the main thread; a process serves once.
 */
#ifndef FROND_CLI_HTTPS_H
#define FROND_CLI_HTTPS_H

#include "base/address.h"
#include "net/tls.h"
#include "settings/settings.h"

struct server;

struct https {
	bool wanted;
	char host[ADDRESS_HOST_BYTES];
	uint16_t port; /* once it listens, the one that it has got */
	struct net_tls *tls;
	bool watching; /* SIGHUP */
};

/*
 * Finds out whether and where there is to be HTTPS: by `given`, "HOST:PORT" of the command line, or
 * the settings, at the host of plain HTTP. `given` may be NULL. Reads the certificates, which stay
 * until https_fini(). STATUS_INVALID, STATUS_IO, STATUS_NOMEM.
 */
MUST_USE enum status https_find(struct https *h, const struct settings *settings, const char *given,
				const char *plain_host, struct err *err);

/* Listens, if it is wanted. STATUS_INVALID, STATUS_IO, STATUS_NOMEM. */
MUST_USE enum status https_listen(struct https *h, struct server *server, struct err *err);

/* From now on SIGHUP reads the certificates again; the log tells how that went. STATUS_LIMIT. */
MUST_USE enum status https_watch(struct https *h, struct err *err);

/* After the server has stopped, before it is freed. */
void https_unwatch(struct https *h);
/* After the server was freed. */
void https_fini(struct https *h);

#endif
