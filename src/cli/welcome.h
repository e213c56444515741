/* What `frond serve` prints when it is ready. */
#ifndef FROND_CLI_WELCOME_H
#define FROND_CLI_WELCOME_H

#include <stdbool.h>

#include "cli/door.h"
#include "settings/settings.h"

struct welcome {
	const struct door *http; /* where CouchDB's clients connect to */
	const char *store;
	bool has_pages; /* Fauxton is installed */
};

/*
 * Prints the server's URLs and some first commands that can be pasted into a shell, and logs the
 * start.
 */
void welcome_print(const struct settings *settings, const struct welcome *w);

#endif
