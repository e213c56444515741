/* Removing a cell that has expired, for the sweep (../sweep.c). */
#include "model/timed/tables/tables_int.h"

/* Clears the cell, and what indexes have of it. */
static enum status
due_clear(struct timed *t, struct str key, const struct timed_cell *cell)
{
	struct table_change change = { .kind = TABLE_CHANGE_CLEAR };
	struct table_indexing x;
	enum status status;
	size_t len;

	TRY(timed_key_row_bytes(t->db, key, &len));
	TRY(table_place_column(str_skip(key, len), &change.column));
	/* With its own cell a row loses all columns that are packed there. */
	status = table_indexing_begin(&x, t, str_of(key.ptr, len),
				      cell->packed.len ? NULL : &change, 1, NULL);
	if (status == STATUS_OK)
		status = table_expired_clear(t, key, cell);
	if (status == STATUS_OK)
		status = table_indexing_finish(&x);
	table_indexing_end(&x);
	return status;
}

enum status
table_due_sweep(struct timed *t, const struct timed_due *due, struct kv_future *asked,
		struct arena *arena, struct timed_due_swept *ret)
{
	struct timed_cell cell;
	bool is_due;

	(void)arena;
	TRY(timed_due_cell(t, due, asked, &cell, &is_due));
	if (!is_due)
		return STATUS_OK;
	TRY(due_clear(t, due->key, &cell));
	TRY(timed_due_removed(t));
	*ret = (struct timed_due_swept){ .done = true };
	return STATUS_OK;
}
