/*
 * Deletions that a table remembers whose clients order writes by stamps (row.h, table_stamp_set()),
 * as dumps have them.
 *
 * No function commits. What is returned lies in the caller's arena. Threading: that of the
 * transaction.
 */
#ifndef FROND_MODEL_TIMED_TABLES_DELETIONS_H
#define FROND_MODEL_TIMED_TABLES_DELETIONS_H

#include "model/timed/tables/row.h"

enum table_deletion_kind {
	TABLE_DELETION_ROW,      /* or of a partition's static columns, by the key */
	TABLE_DELETION_INSERTED, /* that the row was inserted */
	TABLE_DELETION_COLUMN,   /* a column, or an element in it */
	TABLE_DELETION_RANGE,    /* rows of a partition, whose static columns may be among them */
};

struct table_deletion {
	enum table_deletion_kind kind;
	struct table_key key; /* of a row, or of a partition */
	uint64_t column;      /* of TABLE_DELETION_COLUMN: its id */
	bool has_element;
	struct doc_scalar element;
	/* Of TABLE_DELETION_RANGE: bytes that mean the same in every store. */
	struct str from, to;
	int64_t stamp; /* what has this one, or an earlier one, is deleted */
};

struct table_deletions;

/* The present ones; STATUS_INVALID of the past. The caller closes it. */
MUST_USE enum status table_deletions_open(struct timed *t, struct table_deletions **ret);
/* STATUS_NOT_FOUND behind the last one. Those of columns that were dropped are left out. */
MUST_USE enum status table_deletions_next(struct table_deletions *d, struct arena *arena,
					  struct table_deletion *ret);
void table_deletions_close(struct table_deletions *d); /* NULL is fine */

/*
 * Has the table remember a deletion that was made earlier, as a load does. Values with stamps that
 * it wins against are cleared. Values without a stamp stay: their writer may have committed after
 * the deletion, at an earlier moment. STATUS_INVALID, explained, for a deletion that does not fit
 * the schema. Other errors are those of table_write() after table_stamp_set().
 */
MUST_USE enum status table_deletion_restore(struct timed *t, const struct table_deletion *deletion);

#endif
