/* Removing a cell that has expired, for the sweep (../sweep.c). */
#include "model/timed/tables/tables_int.h"

struct kv_future *
table_due_ask(struct timed *t, const struct timed_due *due)
{
	return kv_get(t->tx, due->key, KV_READ);
}

enum status
table_due_sweep(struct timed *t, const struct timed_due *due, struct kv_future *asked,
		struct arena *arena, struct timed_due_swept *ret)
{
	struct timed_cell cell;
	struct str value;

	(void)arena;
	if (!asked)
		asked = table_due_ask(t, due);
	TRY(kv_future_wait(asked));
	if (!kv_future_value(asked, &value))
		return STATUS_OK;
	TRY(timed_cell_parse(value, &cell, t->err));
	/* The cell was written again, or the default has changed: another entry is for that. */
	if (timed_cell_expires_ms(t->db, &cell) != due->ms)
		return STATUS_OK;
	TRY(timed_data_clear(t, due->key));
	TRY(timed_touch(t));
	/* A clock that is behind must not look for what has gone. */
	TRY(timed_now_write(t));
	*ret = (struct timed_due_swept){ .done = true };
	return STATUS_OK;
}
