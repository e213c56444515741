/* Removing a cell that has expired, for the sweep (../sweep.c). */
#include "model/timed/tables/tables_int.h"

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
	TRY(timed_data_clear(t, due->key));
	TRY(timed_due_removed(t));
	*ret = (struct timed_due_swept){ .done = true };
	return STATUS_OK;
}
