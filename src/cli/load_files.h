/*
 * The files of a load into a database that is described by its dump: rows, Redis's clients,
 * collections. Lines are collected and applied in batches, a transaction for each. One thread's.
 */
#ifndef FROND_CLI_LOAD_FILES_H
#define FROND_CLI_LOAD_FILES_H

#include "cli/cli.h"
#include "cli/input.h"

/* What the command was asked for. */
struct load_request {
	const char *store_url;
	const char *name; /* of the database, as it was given */
	struct cli_db db;
	bool create;
	bool exploded; /* a collection that is made keeps its documents so */
	bool quiet;
	enum input_format format;
	bool header; /* of CSV: the first record of each file names its columns */
	const char
		*columns; /* of CSV: which they are, in a record; NULL: the header tells, or all */
	size_t batch_lines;
	char *const *files;
	int files_count;
};

struct load_files {
	const struct load_request *request;
	/* A file begins. NULL: nothing is to be done then. */
	enum status (*begin)(void *arg);
	/* Takes a line, and may apply the batch. `item` is valid until it returns. */
	enum status (*take)(void *arg, const struct input_item *item);
	/* Applies what was taken: a file has ended. */
	enum status (*flush)(void *arg);
	void *arg;
	struct err *err; /* why one of these has failed */

	/* What the functions above keep: the batch's first line, and the one that is applied. */
	uint64_t first_line; /* 0: there is none */
	uint64_t line;
	uint64_t loaded; /* lines */
};

/*
 * Gives all lines of all files away. Tells on standard error what has failed, or how much was
 * loaded unless the request is quiet.
 */
MUST_USE enum status load_files_run(struct load_files *l);

/* True if the line describes a database; dumps write its first member first. */
bool load_is_header(struct str line);

#endif
