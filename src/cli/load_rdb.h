/*
 * frond load --rdb: a file of Redis, with all of its databases. Its libraries of functions are
 * written first, in one transaction; then keys in batches, a transaction for each, or several for
 * a long one. All of it belongs to one thread.
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
