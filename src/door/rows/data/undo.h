/*
 * What rows were before a transaction has written them, for savepoints. Threading: that of the
 * transaction.
 */
#ifndef FROND_DOOR_ROWS_DATA_UNDO_H
#define FROND_DOOR_ROWS_DATA_UNDO_H

#include "door/rows/data/txn.h"

/* Reads the row, and appends what it is. STATUS_LIMIT when the buffer is full. */
MUST_USE enum status rows_undo_note(struct unit_table *t, const struct table_key *key,
				    struct arena *arena, struct buf *undo);

/* The write of the last entry's row has changed the table's count by so many rows. */
void rows_undo_told(struct buf *undo, int rows);

/* The number of the table that the last entry is about, and where the entry begins. */
size_t rows_undo_last(const struct buf *undo, size_t *ret_from);

/* Writes the row of the entry at `from` again, as it was, and takes the entry off. What its write
 * has told of the table's count is taken back in `t->added`. */
MUST_USE enum status rows_undo_take(struct unit_table *t, struct arena *arena, struct buf *undo,
				    size_t from);

#endif
