/*
 * Rows of a table as texts of their columns, as the files of cqlsh's COPY have them (cql/copy.h),
 * both ways. Columns have the numbers of the order in which SELECT * has them: the key, static
 * columns, the others. Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_DOOR_CQL_COPY_ROWS_H
#define FROND_DOOR_CQL_COPY_ROWS_H

#include "door/cql/copy/copy.h"

/*
 * The columns of these names, in the arena of the copy_table; all columns, in their order, if
 * `names` is NULL. STATUS_INVALID, explained, for a name that is none, or stands there twice.
 */
MUST_USE enum status copy_columns(struct copy_table *c, const struct str *names, size_t count,
				  const size_t **ret, size_t *ret_count);
struct str copy_column_name(const struct copy_table *c, size_t column);

struct copy_row;

/* A row of the store, or static columns alone; in the arena of the copy_table, as its values. */
MUST_USE enum status copy_row_read(struct copy_table *c, const struct table_row *stored,
				   struct copy_row **ret);
/* Appends the text of a column. False: it is null. */
bool copy_row_print(const struct copy_row *row, size_t column, struct buf *out);

struct copy_text {
	struct str text;
	bool is_null;
};

/*
 * Writes a row as INSERT does: these columns, and the row itself. A null deletes the column's
 * value. The values of counters are added to what the counters have, and a null adds nothing. All
 * columns of the partition key need a value. If no clustering column has one, only static columns
 * are written; otherwise all of them need one. STATUS_INVALID, explained with the column's name;
 * the errors of table_write().
 */
MUST_USE enum status copy_row_write(struct copy_table *c, struct timed *t, const size_t *columns,
				    const struct copy_text *texts, size_t count);

#endif
