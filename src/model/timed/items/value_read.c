/* Reading values; value.c has how they are stored. */
#include "model/timed/items/item_int.h"

/* Copies what a chunk has of the bytes from `offset` on that `to` is for. */
static enum status
chunk_copy(struct timed_item *item, const struct kv_pair *pair, uint64_t offset, char *to,
	   size_t len)
{
	struct tuple_reader r = tuple_reader(str_skip(pair->key, item->body.len));
	uint64_t part, n, at, from, until;

	if (tuple_next_u64(&r, &part) != STATUS_OK || tuple_next_u64(&r, &n) != STATUS_OK ||
	    pair->value.len > TIMED_CHUNK_BYTES)
		return timed_item_corrupt(item);
	at = n * TIMED_CHUNK_BYTES;
	from = at > offset ? at : offset;
	until = at + pair->value.len < offset + len ? at + pair->value.len : offset + len;
	if (from < until)
		memcpy(to + (from - offset), pair->value.ptr + (from - at), (size_t)(until - from));
	return STATUS_OK;
}

static enum status
chunks_read(struct timed_item *item, uint64_t offset, char *to, size_t len)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct str begin, end;
	struct kv_pair pair;
	enum status status;

	TRY(timed_chunk_key(item, offset / TIMED_CHUNK_BYTES, &begin));
	TRY(timed_chunk_key(item, (offset + len - 1) / TIMED_CHUNK_BYTES + 1, &end));
	TRY(timed_cursor_open(&scan, item->t, begin, end, NULL));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK)
		TRY(chunk_copy(item, &pair, offset, to, len));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_value_get(struct timed_item *item, uint64_t offset, uint64_t len, struct str *ret)
{
	*ret = STR("");
	return item->type == TIMED_VALUE ? timed_text_get(item, offset, len, ret) : STATUS_OK;
}

enum status
timed_text_get(struct timed_item *item, uint64_t offset, uint64_t len, struct str *ret)
{
	char *bytes;

	*ret = STR("");
	if (offset >= item->length)
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
		return err_set(item->t->err, STATUS_LIMIT,
			       "%llu bytes of a value are more than one transaction may hold",
			       (unsigned long long)len);
	TRY(chunks_read(item, offset, bytes, (size_t)len));
	*ret = str_of(bytes, (size_t)len);
	return STATUS_OK;
}
