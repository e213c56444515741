/* Removing a cell that has expired, for the sweep (../sweep.c). */
#include <assert.h>

#include "model/timed/rows/rows_int.h"

/*
 * Clears a collection that has expired, or as many of its members as one transaction takes; its own
 * cell, which hides the others, goes last. `*ret_all`: all of it went.
 */
static enum status
clear_collection(struct timed *t, struct str row, bool *ret_all)
{
	const struct kv_range_options options = { .limit = TIMED_SWEEP_KEYS, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_range range;
	struct kv_future *f;

	buf_append_str(&begin, row);
	buf_append_byte(&begin, CATALOG_KEY_NEXT);
	buf_append_str(&end, row);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	f = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	*ret_all = !range.more;
	if (*ret_all)
		return timed_data_clear_range(t, row, buf_str(&end));
	assert(range.count); /* there is no more behind nothing */
	buf_clear(&end);
	buf_append_str(&end, range.pairs[range.count - 1].key);
	buf_append_byte(&end, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&end));
	return timed_data_clear_range(t, buf_str(&begin), buf_str(&end));
}

enum status
timed_rows_due_sweep(struct timed *t, const struct timed_due *due, struct kv_future *asked,
		     struct arena *arena, struct timed_due_swept *ret)
{
	struct timed_cell cell;
	bool is_due, all = true;

	(void)arena;
	TRY(timed_due_cell(t, due, asked, &cell, &is_due));
	if (!is_due)
		return STATUS_OK;
	if (cell.type == TIMED_HASH || cell.type == TIMED_SET)
		TRY(clear_collection(t, due->key, &all));
	else
		TRY(timed_data_clear(t, due->key));
	TRY(timed_due_removed(t));
	*ret = (struct timed_due_swept){ .done = true, .stays = !all, .more = !all };
	return STATUS_OK;
}
