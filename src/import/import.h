/*
 * frond-import: copies what another server of Redis's or MongoDB's protocol has to a frond, and
 * then what was changed meanwhile. `frond import` starts it (cli/import.c), and copies from CouchDB
 * itself.
 *
 * It is a program of its own, so that the server does not carry the libraries of clients. It reads
 * the source and writes to the doors of a running frond, both by their protocols: so what a door
 * refuses is refused here, and told. It can be ended at any time and started again with the same
 * file of its state, and then goes on where it was.
 */
#ifndef FROND_IMPORT_IMPORT_H
#define FROND_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"
#include "cli/progress.h"

enum {
	IMPORT_MISFITS_SHOWN = 100, /* lines about what does not fit; more are counted */
	IMPORT_TEXT_BYTES = 1024,   /* of such a line */
	IMPORT_STATE_BYTES = 1024 * 1024,
	IMPORT_STATE_MS = 1000, /* between two writes of the state */
	IMPORT_QUIET_MS = 1000, /* without a change: nothing is left */
};

struct import {
	const char *source; /* URLs, with names and passwords */
	const char *target;
	const char *state; /* the file; NULL: none */
	bool follow;       /* go on with what is changed until a signal comes */

	struct progress progress;
	uint64_t copied; /* keys or documents */
	uint64_t bytes;
	uint64_t changed; /* that came behind the copy */
	uint64_t misfits;
	uint64_t state_due_ns;
};

/* Errors are explained in `err`. What has not fit is no error: it is told, and counted. */
MUST_USE enum status import_redis(struct import *i, struct err *err);
MUST_USE enum status import_mongo(struct import *i, struct err *err);

/* ---- report.c ---- */

/* One line: what does not fit, and why. */
void import_misfit(struct import *i, const char *fmt, ...) PRINTF(2, 3);
/* One line of what has been done, to standard output. */
void import_tell(struct import *i, const char *fmt, ...) PRINTF(2, 3);
void import_count(struct import *i, uint64_t bytes);

/* SIGTERM and SIGINT ask for the end. */
void import_watch_signals(void);
/* True once one has. */
bool import_stopped(void);

/* Reads the state, into memory that is the caller's to free; NULL without one. */
MUST_USE enum status import_state_read(const struct import *i, char **ret, struct err *err);
/* True if it is time to write it; the end of a part of the work may write it at any time. */
bool import_state_due(struct import *i);
/*
 * Replaces the file, and returns when it outlives a power failure. Nothing without a file. An
 * import writes it before it changes anything at the target: begun again without one, it would take
 * what it has copied itself for what the target had before.
 */
MUST_USE enum status import_state_write(const struct import *i, struct str text, struct err *err);
/* All is done: the next import begins anew. */
void import_state_remove(const struct import *i);

#endif
