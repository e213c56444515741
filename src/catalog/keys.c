#include "catalog/keys.h"

#include "kv/keyspace.h"

enum status
catalog_key_status(const struct buf *key)
{
	enum status status = buf_status(key);

	return status == STATUS_LIMIT ? STATUS_KEY_TOO_LARGE : status;
}

/* catalog_next_text() of a text with NULs in it, or of what is none. */
__attribute__((noinline, cold)) static enum status
text_next_escaped(struct tuple_reader *r, enum tuple_kind kind, struct arena *arena,
		  struct str *ret)
{
	AUTO(buf_release) struct buf plain = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct tuple_elem e;

	if (tuple_next(r, &e) != STATUS_OK || e.kind != kind)
		return STATUS_CORRUPT;
	tuple_unescape(&e, &plain);
	TRY(buf_status(&plain));
	*ret = buf_dup(&plain, arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
catalog_next_text(struct tuple_reader *r, enum tuple_kind kind, struct arena *arena, bool copy,
		  struct str *ret)
{
	struct str text;

	if (!tuple_next_plain(r, kind, &text))
		return text_next_escaped(r, kind, arena, ret);
	if (copy)
		text = arena_dup(arena, text);
	*ret = text;
	return text.ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
catalog_scan(struct kv_tx *tx, struct str lo, struct str hi, size_t prefix_len,
	     catalog_take_root *take, void *arg)
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT,
						  .limit_bytes = CATALOG_PAGE_BYTES };
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status;

	TRY(kv_scan_init(&scan, tx, lo, hi, &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK)
		TRY(take(arg, tuple_reader(str_skip(pair.key, prefix_len)), pair.value));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
catalog_root_scan(struct kv_tx *tx, uint64_t space, catalog_take_root *take, void *arg)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;

	tuple_put_u64(&lo, KV_ROOT);
	tuple_put_u64(&lo, space);
	buf_append_buf(&hi, &lo);
	buf_append_byte(&hi, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&lo));
	TRY(catalog_key_status(&hi));
	return catalog_scan(tx, buf_str(&lo), buf_str(&hi), lo.len, take, arg);
}

enum status
catalog_counter_add(struct kv_tx *tx, const struct buf *key, int64_t change)
{
	uint8_t operand[CATALOG_COUNTER_BYTES];

	for (int i = 0; i < CATALOG_COUNTER_BYTES; i++)
		operand[i] = (uint8_t)((uint64_t)change >> (8 * i));
	TRY(catalog_key_status(key));
	return kv_atomic(tx, KV_ADD, buf_str(key), str_of(operand, sizeof(operand)));
}

enum status
catalog_counter_wait(struct kv_future *f, uint64_t *ret)
{
	struct str value;
	uint64_t n = 0;

	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value)) {
		if (value.len != CATALOG_COUNTER_BYTES)
			return STATUS_CORRUPT;
		for (size_t i = 0; i < value.len; i++)
			n |= (uint64_t)(uint8_t)value.ptr[i] << (8 * i);
	}
	*ret = n;
	return STATUS_OK;
}

enum status
catalog_array_grow(struct arena *arena, void **array, size_t size, size_t count, size_t *cap)
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
catalog_pair_copy(struct arena *arena, struct str key, struct str value, struct kv_pair *ret)
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
