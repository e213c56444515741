/* frond dump, taken apart: a database of a store or of a server, a document a line. */
#ifndef FROND_CLI_DUMP_H
#define FROND_CLI_DUMP_H

#include "base/status.h"
#include "catalog/salvage.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "kv/kv.h"

enum {
	DUMP_LINE_BYTES = 1024 * 1024, /* a longer row or item goes on in another line */
	DUMP_LINE_ENTRIES = 1000,      /* leaves or members in a line */
	DUMP_ARENA_BYTES = 256 * 1024 * 1024,
	DUMP_TIMED_FORMAT = 1, /* of dumps of rows, tables and items */
	/* Of tables whose clients have timestamps of their own. */
	DUMP_TIMED_FORMAT_STAMPED = 2,
};

struct timed;

struct dump {
	const char *db; /* as it was given */
	struct cli_db named;
	uint64_t at_us; /* of rows and items: the moment of the past; 0: the present */
	bool revs;      /* every leaf with its history, tombstones too; otherwise winners' bodies */
	bool csv;       /* of a table: its rows as cqlsh's COPY has them (dump_csv.c) */
	bool header;    /* of CSV: the first record has the names of the columns */
	const char *columns; /* of CSV: which they are, in a record; NULL: all */
	struct output output;
	struct progress progress;
	uint64_t docs; /* lines written */
	uint64_t bytes;
	uint64_t left_out; /* attachments that a server gave no data for */
	/* Of a damaged database: told what cannot be read, and the dump goes on. NULL: it ends. */
	const struct catalog_broken *broken;
};

/* A line has been given to the output, but for its end. `from`: the output's position before it. */
MUST_USE enum status dump_end_line(struct dump *d, uint64_t from, struct err *err);

/* Tells on standard error what is not dumped as it would be shown. */
void dump_warn(struct dump *d, const char *text);

/* Lines of a database of rows (dump_rows.c), of a table (dump_tables.c), and of items. */
MUST_USE enum status dump_timed_rows(struct dump *d, struct timed *t);
MUST_USE enum status dump_timed_tables(struct dump *d, struct timed *t);
MUST_USE enum status dump_timed_items(struct dump *d, struct timed *t);

/* Rows of a table as CSV (dump_csv.c). `db` is the one of `t`. */
MUST_USE enum status dump_timed_csv(struct dump *d, struct timed *t, struct catalog_db *db);

/* Appends the members of a description that say how much of the past is kept (dump_rows.c). */
MUST_USE enum status dump_timed_history(struct timed *t, struct buf *out);

/* From one snapshot. */
MUST_USE enum status dump_store(struct dump *d, struct kv_store *store, struct err *err);

/* From _all_docs, or, with revisions, _changes and each document's leaves. */
MUST_USE enum status dump_server(struct dump *d, const char *url, struct err *err);

#endif
