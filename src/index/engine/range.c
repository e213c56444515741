/* Ranges of keys for what is asked of an index. */
#include <assert.h>

#include "catalog/keys.h"
#include "index/engine/component.h"
#include "index/engine/entry.h"

/*
 * Appends one end of the range: the key behind everything that begins with the component of a
 * bound, or in front of it. A bound that was cut has values on both sides of it under the same
 * component, so that nothing of these is left out.
 */
static enum status
range_put_end(struct buf *key, const struct index_def *def, size_t column, const void *bound,
	      bool exclusive, bool upper, struct index_work *w, bool *ret_cut)
{
	bool cut = false;

	/* Hashes are in no order of the values. */
	assert(def->hashed != column + 1);
	TRY(def->form->put_component(key, def, column, bound, w, &cut));
	if (cut)
		exclusive = false;
	*ret_cut = *ret_cut || cut;
	if (exclusive != upper)
		buf_append_byte(key, CATALOG_KEY_LAST);
	return buf_status(key);
}

static enum status
range_copy(const struct buf *key, struct index_work *w, struct str *ret)
{
	TRY(catalog_key_status(key));
	return arena_copy(w->arena, buf_str(key), ret);
}

enum status
index_range_make(const struct catalog_db *db, const struct index_def *def,
		 const struct index_interval *interval, struct index_work *w,
		 struct index_range *ret)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	size_t column = interval->equal_count;
	/* The larger value has the smaller key where the column is descending. */
	bool swap = column < def->column_count && def->columns[column].descending;
	const void *lower = swap ? interval->high : interval->low;
	const void *upper = swap ? interval->low : interval->high;
	bool lower_exclusive = swap ? interval->high_exclusive : interval->low_exclusive;
	bool upper_exclusive = swap ? interval->low_exclusive : interval->high_exclusive;
	bool cut = false;

	assert(column <= def->column_count);
	assert((!lower && !upper) || column < def->column_count);
	index_key_entries(&begin, db, def->number);
	if (def->flags & INDEX_PARTITIONED && interval->partition.ptr)
		TRY(index_partition_put(&begin, def, interval->partition, &cut));
	for (size_t i = 0; i < column; i++)
		TRY(def->form->put_component(&begin, def, i, interval->equal[i], w, &cut));
	buf_append_buf(&end, &begin);
	if (lower)
		TRY(range_put_end(&begin, def, column, lower, lower_exclusive, false, w, &cut));
	if (upper)
		TRY(range_put_end(&end, def, column, upper, upper_exclusive, true, w, &cut));
	else
		buf_append_byte(&end, CATALOG_KEY_LAST);
	ret->cut = cut;
	ret->point = column == def->column_count &&
		     (interval->partition.ptr || !(def->flags & INDEX_PARTITIONED));
	ret->certain = false;
	TRY(range_copy(&begin, w, &ret->begin));
	return range_copy(&end, w, &ret->end);
}

enum status
index_place_make(const struct catalog_db *db, const struct index_def *def,
		 const struct index_interval *interval, struct str id, struct index_work *w,
		 struct str *ret, bool *ret_known)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct index_range range;
	size_t prefix;

	assert(interval->equal_count == def->column_count);
	TRY(index_range_make(db, def, interval, w, &range));
	*ret_known = !range.cut;
	index_key_entries(&key, db, def->number);
	prefix = key.len;
	buf_set(&key, str_skip(range.begin, prefix));
	(void)index_key_put_id(&key, def->form, id);
	TRY(catalog_key_status(&key));
	return arena_copy(w->arena, buf_str(&key), ret);
}
