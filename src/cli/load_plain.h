/*
 * frond load of a collection: what frond dump has written, or other programs such as mongoexport:
 * documents as Extended JSON. A document takes the place of the one that has its `_id`.
 */
#ifndef FROND_CLI_LOAD_PLAIN_H
#define FROND_CLI_LOAD_PLAIN_H

#include "cli/load_files.h"

enum {
	LOAD_PLAIN_BATCH_BYTES = 1024 * 1024, /* of a batch's documents; one may have more */
	/* A transaction ends behind the document that has made it longer: entries count, too. */
	LOAD_PLAIN_TX_BYTES = 4 * 1000 * 1000,
};

/* Loads the files. Returns the exit code of the command. */
int load_plain(const struct load_request *request);

#endif
