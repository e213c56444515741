/*
 * Rows of a table as CSV, as cqlsh's COPY has them (csv.h, door/cql/copy/rows.h): what load_csv.c
 * and dump_csv.c share, and their functions. One thread's.
 */
#ifndef FROND_CLI_TABLE_CSV_H
#define FROND_CLI_TABLE_CSV_H

#include "cli/load_files.h"
#include "door/cql/copy/rows.h"
#include "door/rows/data/table.h"

/*
 * The columns that a record of their names says; all if it is empty. They lie in `arena`, which is
 * the copy_table's. STATUS_INVALID, explained.
 */
MUST_USE enum status csv_columns(struct copy_table *c, struct str names, struct arena *arena,
				 const size_t **ret, size_t *ret_count, struct err *err);

/*
 * Loads files of rows, each written as INSERT does, in batches of a transaction each. Returns the
 * exit code of the command.
 */
int load_csv(const struct load_request *request);

#endif
