#include "model/revisioned/revisioned_int.h"

/*
 * `key` becomes the bound at `name`; `past` it, or just before it. A name longer than any that is
 * stored lies between them, and so does its beginning.
 */
static void
bound(struct buf *key, const struct buf *prefix, struct str name, bool past, uint8_t after)
{
	if (name.len > REV_DOC_ID_BYTES)
		name.len = REV_DOC_ID_BYTES + 1;
	buf_clear(key);
	buf_append_str(key, buf_str(prefix));
	tuple_put_str(key, name);
	if (past)
		buf_append_byte(key, after);
}

enum status
rev_range_bounds(const struct rev_name_range *range, uint8_t after, struct buf *lo, struct buf *hi)
{
	AUTO(buf_release) struct buf prefix = REV_KEY_INIT;
	bool has_lo = range->descending ? range->has_end : range->has_begin;
	bool has_hi = range->descending ? range->has_begin : range->has_end;

	buf_append_str(&prefix, buf_str(lo));
	if (has_lo && range->descending)
		bound(lo, &prefix, range->end, range->exclusive_end, after);
	else if (has_lo)
		bound(lo, &prefix, range->begin, range->exclusive_begin, after);
	if (has_hi && range->descending) {
		bound(hi, &prefix, range->begin, !range->exclusive_begin, after);
	} else if (has_hi) {
		bound(hi, &prefix, range->end, !range->exclusive_end, after);
	} else {
		buf_clear(hi);
		buf_append_str(hi, buf_str(&prefix));
		buf_append_byte(hi, REV_KEY_LAST);
	}
	TRY(rev_key_status(&prefix));
	TRY(rev_key_status(lo));
	return rev_key_status(hi);
}

size_t
rev_scan_limit(uint64_t skip, size_t wanted)
{
	if (skip >= SIZE_MAX - 1 || wanted >= SIZE_MAX - 1 - skip)
		return 0;
	return (size_t)skip + wanted + 1;
}

enum status
rev_array_grow(struct arena *arena, void **array, size_t size, size_t count, size_t *cap)
{
	size_t larger = *cap ? 2 * *cap : 16;
	void *to;

	if (count < *cap)
		return STATUS_OK;
	if (larger > SIZE_MAX / size)
		return STATUS_LIMIT;
	to = arena_alloc(arena, larger * size);
	if (!to)
		return STATUS_LIMIT;
	if (count)
		memcpy(to, *array, count * size);
	*array = to;
	*cap = larger;
	return STATUS_OK;
}

enum status
rev_pair_copy(struct arena *arena, struct str key, struct str value, struct kv_pair *ret)
{
	char *bytes = arena_bytes(arena, key.len + value.len);

	if (!bytes)
		return STATUS_LIMIT;
	if (key.len)
		memcpy(bytes, key.ptr, key.len);
	if (value.len)
		memcpy(bytes + key.len, value.ptr, value.len);
	ret->key = str_of(bytes, key.len);
	ret->value = str_of(bytes + key.len, value.len);
	return STATUS_OK;
}
