/*
 * The counter of a range as it is stored:
 *
 *     (P, counters, list, lo, hi) → the number of keys, eight bytes, little-endian
 *
 * Writers add to the value without reading it, so it cannot begin with a format number. Its length
 * tells the format.
 */
#include <assert.h>

#include "catalog/tally_int.h"

void
catalog_key_list(struct buf *key, const struct catalog_db *db, size_t list)
{
	assert(list < db->kind->lists_count);
	buf_clear(key);
	buf_append_str(key, db->prefix);
	tuple_put_u64(key, db->kind->lists[list].space);
}

void
catalog_key_tally(struct buf *key, const struct catalog_db *db, size_t list)
{
	buf_clear(key);
	buf_append_str(key, db->prefix);
	tuple_put_u64(key, db->kind->lists[list].counters);
	tuple_put_u64(key, db->kind->lists[list].space);
}

void
catalog_key_range(struct buf *key, const struct catalog_db *db, size_t list, struct str lo,
		  struct str hi)
{
	catalog_key_tally(key, db, list);
	tuple_put_bytes(key, lo);
	tuple_put_bytes(key, hi);
}

/*
 * Parses the bounds and the counter of one pair. Without `copy` the bounds may borrow from the key.
 */
static enum status
range_parse(struct str tail, struct str value, struct arena *arena, bool copy,
	    struct catalog_range *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	uint64_t n = 0;

	TRY(catalog_next_text(&r, TUPLE_BYTES, arena, copy, &ret->lo));
	TRY(catalog_next_text(&r, TUPLE_BYTES, arena, copy, &ret->hi));
	if (r.rest.len || value.len != CATALOG_COUNTER_BYTES || str_cmp(ret->lo, ret->hi) >= 0)
		return STATUS_CORRUPT;
	for (size_t i = 0; i < value.len; i++)
		n |= (uint64_t)(uint8_t)value.ptr[i] << (8 * i);
	ret->count = (int64_t)n;
	return STATUS_OK;
}

enum status
catalog_range_borrow(struct str tail, struct str value, struct arena *arena,
		     struct catalog_range *ret)
{
	return range_parse(tail, value, arena, false, ret);
}

enum status
catalog_range_parse(struct str tail, struct str value, struct arena *arena,
		    struct catalog_range *ret)
{
	return range_parse(tail, value, arena, true, ret);
}
