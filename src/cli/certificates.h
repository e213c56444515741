/*
 * The certificates of `frond serve`: one set for all of its doors. SIGHUP has all files read again,
 * and each door uses the new ones at once. The log and a metric tell when they expire.
 *
 * For the main thread; a process serves once.
 */
#ifndef FROND_CLI_CERTIFICATES_H
#define FROND_CLI_CERTIFICATES_H

#include "base/metric.h"
#include "net/tls.h"
#include "settings/settings.h"

enum {
	CERTIFICATES_WARN_DAYS = 14,                /* before the first one expires, */
	CERTIFICATES_WARN_MS = 24 * 60 * 60 * 1000, /* and again each time this has passed */
};

struct certificates {
	struct net_tls *tls; /* NULL: no door speaks TLS */
	struct metric_collector collector;
	bool watching; /* SIGHUP has a handler */
};

/*
 * Reads them, as [ssl] says; kept until certificates_fini(). STATUS_INVALID, STATUS_IO,
 * STATUS_NOMEM.
 */
MUST_USE enum status certificates_read(struct certificates *c, const struct settings *settings,
				       struct err *err);

/*
 * Makes SIGHUP read them again, and begins to tell when they expire. Does nothing where there are
 * none: SIGHUP then stops the process as SIGTERM does (stopping.h), unless a manager of services
 * sends it, which means the same by it whatever there is to be read again. STATUS_LIMIT.
 */
MUST_USE enum status certificates_watch(struct certificates *c, struct err *err);

/* After the server has stopped, before it is freed. */
void certificates_unwatch(struct certificates *c);
/* After the server was freed. */
void certificates_fini(struct certificates *c);

#endif
