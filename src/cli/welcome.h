/* What `frond serve` prints when it is ready. */
#ifndef FROND_CLI_WELCOME_H
#define FROND_CLI_WELCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "settings/settings.h"

struct welcome {
	const char *host; /* without TLS; NULL: nowhere */
	uint16_t port;
	const char *tls_host; /* with TLS; NULL: nowhere */
	uint16_t tls_port;
	const char *store;
	bool has_pages; /* Fauxton is installed */
};

/*
 * Prints the server's URLs and some first commands that can be pasted into a shell, and logs the
 * start.
 */
void welcome_print(const struct settings *settings, const struct welcome *w);

#endif
