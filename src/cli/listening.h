/*
 * Where `frond serve` listens: all of its doors, each in clear, with TLS, or not at all.
 *
 * For the main thread; a process serves once.
 */
#ifndef FROND_CLI_LISTENING_H
#define FROND_CLI_LISTENING_H

#include "cli/certificates.h"
#include "cli/door.h"
#include "cli/doors.h"
#include "settings/settings.h"

/* The word that `--http` takes instead of an address. */
#define LISTENING_NOWHERE "none"

/* The options of the command line, each an address or a path; NULL: the settings say. */
struct listening_given {
	const char *http, *https;
	struct {
		const char *clear, *tls;
	} doors[CLI_DOORS]; /* as in the table */
};

struct listening {
	struct door http;
	struct door doors[CLI_DOORS];     /* as in the table */
	struct certificates certificates; /* of all of them */
};

/*
 * Decides where the doors listen, and reads the certificates if one of them speaks TLS; they are
 * kept until certificates_fini(). STATUS_INVALID, explained, for whatever a server could not start
 * with: a text that is no address, one port for two doors, an address that others can reach while
 * the settings have no administrator, certificates that cannot be used. STATUS_IO, STATUS_NOMEM.
 */
MUST_USE enum status listening_find(struct listening *l, const struct settings *settings,
				    const struct listening_given *given, struct err *err);

/*
 * Puts where the doors listen into the settings, once they listen: options have given other
 * addresses, and a port 0 has become one. So whoever asks a server for its settings finds it there.
 * STATUS_NOMEM.
 */
MUST_USE enum status listening_tell(const struct listening *l, struct settings *settings,
				    struct err *err);

/* The first host that other machines can reach; NULL: there is none. */
const char *listening_exposed(const struct listening *l);

#endif
