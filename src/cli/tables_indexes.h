/*
 * Indexes of a table in the line of a dump that describes it (dump_tables.c):
 *
 *     "indexes":[{"name":…,"spec":…,"unique":true,
 *      "columns":[{"column":…,"part":"column","descending":true},…],
 *      "where":[{"column":…,"operator":"=","value":…},…]},…]
 *
 * A part is "column", "keys", "values" or "entries". An operator is =, !=, <, <=, >, >= or "not
 * null", which has no value. One thread's.
 */
#ifndef FROND_CLI_TABLES_INDEXES_H
#define FROND_CLI_TABLES_INDEXES_H

#include "cli/load_timed.h"
#include "door/cql/copy/copy.h"

/* Appends a value of a column, whose type tells of an integer how wide it is. */
void tables_scalar_write(const struct doc_scalar *s, struct buf *out);

/* Appends the list, but for indexes that have failed. */
void tables_indexes_write(const struct catalog_db *db, struct buf *out);

/*
 * Creates those that the line has, of the empty table of `t`, which is `c`. STATUS_INVALID,
 * explained.
 */
MUST_USE enum status tables_indexes_create(struct timed *t, struct copy_table *c,
					   const struct load_line *line);

#endif
