/*
 * HTTPS of `frond serve`: where it listens, its certificates, and SIGHUP, which makes the server
 * read them again.
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
	uint16_t port; /* set by https_listen() to the port that it listens on */
	struct net_tls *tls;
	bool watching; /* SIGHUP has a handler */
};

/*
 * Decides whether and where HTTPS is served: at `given`, the "HOST:PORT" of the command line, or if
 * that is NULL as the settings say, at the host of plain HTTP. Reads the certificates, which are
 * kept until https_fini(). STATUS_INVALID, STATUS_IO, STATUS_NOMEM.
 */
MUST_USE enum status https_find(struct https *h, const struct settings *settings, const char *given,
				const char *plain_host, struct err *err);

/* Listens, if https_find() has decided so. STATUS_INVALID, STATUS_IO, STATUS_NOMEM. */
MUST_USE enum status https_listen(struct https *h, struct server *server, struct err *err);

/* Makes SIGHUP read the certificates again; the log has a line with the outcome. STATUS_LIMIT. */
MUST_USE enum status https_watch(struct https *h, struct err *err);

/* After the server has stopped, before it is freed. */
void https_unwatch(struct https *h);
/* After the server was freed. */
void https_fini(struct https *h);

#endif
