/*
 * Loading what was dumped of a table (dump_tables.c): what load_timed.c calls for such a database.
 * One thread's.
 */
#ifndef FROND_CLI_LOAD_TABLES_H
#define FROND_CLI_LOAD_TABLES_H

#include "cli/load_timed.h"
#include "door/cql/copy/copy.h"
#include "door/rows/data/table.h"

/*
 * Makes the table that the line describes, with its keyspace and its types where they are missing,
 * if `create`; `*ret_created` tells. One that is there has to have the same columns.
 * STATUS_INVALID, explained; STATUS_NOT_FOUND.
 */
MUST_USE enum status load_tables_header(struct kv_tx *tx, struct str name, bool create,
					const struct load_line *line, bool *ret_created);

/* Applies a line about a row or a partition's static columns. `c` is the table of `t`. */
MUST_USE enum status load_tables_line(struct timed *t, struct copy_table *c,
				      const struct load_line *line);

#endif
