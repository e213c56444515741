#include "catalog/name_range.h"

#include "catalog/keys.h"

/*
 * Sets `key` to the bound at `name`: right behind the name with `past`, else right before it. A
 * name longer than any stored name is cut to a prefix that is still longer than any stored name and
 * has the same place among them.
 */
static void
name_range_bound(struct buf *key, const struct buf *prefix, struct str name, bool past,
		 uint8_t after)
{
	if (name.len > NAME_RANGE_BYTES)
		name.len = NAME_RANGE_BYTES + 1;
	buf_clear(key);
	buf_append_buf(key, prefix);
	tuple_put_str(key, name);
	if (past)
		buf_append_byte(key, after);
}

enum status
name_range_bounds(const struct name_range *range, uint8_t after, struct buf *lo, struct buf *hi)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;
	bool has_lo = range->descending ? range->has_end : range->has_begin;
	bool has_hi = range->descending ? range->has_begin : range->has_end;

	buf_append_buf(&prefix, lo);
	if (has_lo && range->descending)
		name_range_bound(lo, &prefix, range->end, range->exclusive_end, after);
	else if (has_lo)
		name_range_bound(lo, &prefix, range->begin, range->exclusive_begin, after);
	if (has_hi && range->descending) {
		name_range_bound(hi, &prefix, range->begin, !range->exclusive_begin, after);
	} else if (has_hi) {
		name_range_bound(hi, &prefix, range->end, !range->exclusive_end, after);
	} else {
		buf_clear(hi);
		buf_append_buf(hi, &prefix);
		buf_append_byte(hi, CATALOG_KEY_STRINGS_END);
	}
	TRY(catalog_key_status(&prefix));
	TRY(catalog_key_status(lo));
	return catalog_key_status(hi);
}

size_t
name_range_scan_limit(uint64_t skip, size_t wanted)
{
	if (skip >= SIZE_MAX - 1 || wanted >= SIZE_MAX - 1 - skip)
		return 0;
	return (size_t)skip + wanted + 1;
}
