/*
 * frond load --rdb: a file of Redis, with all of its databases. Keys are written in batches, a
 * transaction for each; a long one takes several. All of it belongs to one thread.
 */
#ifndef FROND_CLI_LOAD_RDB_H
#define FROND_CLI_LOAD_RDB_H

#include "cli/cli.h"

struct load_rdb_request {
	const char *store_url;
	const char *file;
	bool create; /* databases that are not there */
	bool quiet;
	size_t batch_keys;
};

/* Loads the file. Returns the exit code of the command. */
int load_rdb(const struct load_rdb_request *request);

#endif
