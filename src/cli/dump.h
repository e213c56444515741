/* frond dump, taken apart: a database of a store or of a server, a document a line. */
#ifndef FROND_CLI_DUMP_H
#define FROND_CLI_DUMP_H

#include "base/status.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "kv/kv.h"

struct dump {
	const char *db;
	bool revs; /* every leaf with its history, tombstones too; otherwise winners' bodies */
	struct output output;
	struct progress progress;
	uint64_t docs; /* lines written */
	uint64_t bytes;
	uint64_t left_out; /* attachments that a server gave no data for */
};

/* A line has been given to the output, but for its end. `from`: the output's position before it. */
MUST_USE enum status dump_end_line(struct dump *d, uint64_t from, struct err *err);

/* Tells on standard error what is not dumped as it would be shown. */
void dump_warn(struct dump *d, const char *text);

/* From one snapshot. */
MUST_USE enum status dump_store(struct dump *d, struct kv_store *store, struct err *err);

/* From _all_docs, or, with revisions, _changes and each document's leaves. */
MUST_USE enum status dump_server(struct dump *d, const char *url, struct err *err);

#endif
