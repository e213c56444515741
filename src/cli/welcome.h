/* What `frond serve` prints when it is ready. */
#ifndef FROND_CLI_WELCOME_H
#define FROND_CLI_WELCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "settings/settings.h"

/*
 * Prints where the server is reached and what to try there, in lines that can be pasted into a
 * shell, and logs the start. `has_pages`: Fauxton is installed.
 */
void welcome_print(const struct settings *settings, const char *host, uint16_t port,
		   const char *store, bool has_pages);

#endif
