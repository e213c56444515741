/* Reading values; value.c has how they are stored. */
#include "model/timed/item_int.h"

enum {
	READ_WAVE = 16, /* chunks that are read side by side */
};

/* Copies what a chunk has of the bytes from `offset` on that `to` is for. */
static enum status
chunk_copy(struct timed_item *item, uint64_t n, struct str chunk, uint64_t offset, char *to,
	   size_t len)
{
	uint64_t at = n * TIMED_CHUNK_BYTES, from, until;

	if (chunk.len > TIMED_CHUNK_BYTES)
		return timed_item_corrupt(item);
	from = at > offset ? at : offset;
	until = at + chunk.len < offset + len ? at + chunk.len : offset + len;
	if (from < until)
		memcpy(to + (from - offset), chunk.ptr + (from - at), (size_t)(until - from));
	return STATUS_OK;
}

/* Point reads: a chunk that a range passed over would be taken for NULs. */
static enum status
chunks_read(struct timed_item *item, uint64_t offset, char *to, size_t len)
{
	uint64_t n = offset / TIMED_CHUNK_BYTES, end = (offset + len - 1) / TIMED_CHUNK_BYTES + 1;

	while (n < end) {
		struct arena_mark mark = arena_mark(item->arena);
		size_t count = end - n < READ_WAVE ? (size_t)(end - n) : READ_WAVE;
		struct timed_got asked[READ_WAVE];
		struct str key, chunk;

		for (size_t i = 0; i < count; i++) {
			TRY(timed_chunk_key(item, n + i, &key));
			TRY(timed_data_ask(item->t, key, KV_READ, &asked[i]));
		}
		for (size_t i = 0; i < count; i++) {
			TRY(timed_data_wait(item->t, &asked[i], item->arena, &chunk));
			if (chunk.ptr)
				TRY(chunk_copy(item, n + i, chunk, offset, to, len));
			if (asked[i].future)
				kv_future_free(asked[i].future);
		}
		arena_reset(item->arena, mark);
		n += count;
	}
	return STATUS_OK;
}

enum status
timed_value_get(struct timed_item *item, uint64_t offset, uint64_t len, struct str *ret)
{
	char *bytes;

	*ret = STR("");
	if (item->type != TIMED_VALUE || offset >= item->length)
		return STATUS_OK;
	if (len > item->length - offset)
		len = item->length - offset;
	if (!len)
		return STATUS_OK;
	if (!item->body.len) {
		*ret = str_of(item->value.ptr + offset, (size_t)len);
		return STATUS_OK;
	}
	bytes = arena_zalloc(item->arena, (size_t)len);
	if (!bytes)
		return STATUS_LIMIT;
	TRY(chunks_read(item, offset, bytes, (size_t)len));
	*ret = str_of(bytes, (size_t)len);
	return STATUS_OK;
}
