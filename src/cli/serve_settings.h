/*
 * What `frond serve` is started with: defaults, a file, the environment, the command line, each of
 * which wins over those before. `frond config --check` reads a file by the same function, so it
 * refuses what the server would.
 *
 * For the main thread.
 */
#ifndef FROND_CLI_SERVE_SETTINGS_H
#define FROND_CLI_SERVE_SETTINGS_H

#include "cli/listening.h"
#include "settings/settings.h"

/* The variable of the environment that names an administrator. */
#define SERVE_ADMIN_ENV "FROND_ADMIN"

enum {
	SERVE_ADMINS_ON_LINE = 16,
};

/* What the command line says; NULL: nothing. */
struct serve_given {
	const char *config; /* the file */
	const char *store;
	const char *utils;
	/* Each NAME:PASSWORD; overwritten with asterisks once they have been read. */
	char *admins[SERVE_ADMINS_ON_LINE];
	size_t admins_count;
	struct listening_given listening;
};

/*
 * Reads the settings into `settings`, which are new, and decides where the server listens.
 * `*listening` is zero before; its certificates are the caller's also after a failure
 * (certificates_fini()). STATUS_NOT_FOUND, STATUS_INVALID, STATUS_LIMIT, STATUS_IO, STATUS_NOMEM,
 * all explained.
 */
MUST_USE enum status serve_settings_read(const struct serve_given *given, struct settings *settings,
					 struct listening *listening, struct err *err);

#endif
