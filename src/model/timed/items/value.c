/*
 * Values: in the header up to TIMED_INLINE_BYTES, else in chunks of a body,
 *
 *     (body, CHUNKS, n) → bytes from n * TIMED_CHUNK_BYTES on
 *
 * The length is in the header. A chunk that is short or not there ends in NULs, so a value that
 * grows by an offset far behind its end costs no more than what is written.
 */
#include "model/timed/items/item_int.h"

/* Writes bytes over one chunk, whose other bytes stay; `all`: there are none. */
static enum status
chunk_write(struct timed_item *item, uint64_t n, size_t at, struct str bytes, bool all)
{
	struct buf chunk = timed_arena_buf(item->arena, TIMED_CHUNK_BYTES);
	struct str key, old = { NULL, 0 };

	TRY(buf_status(&chunk));
	TRY(timed_chunk_key(item, n, &key));
	if (!all)
		TRY(timed_data_get(item->t, key, KV_READ, item->arena, &old));
	if (old.len > TIMED_CHUNK_BYTES)
		return timed_item_corrupt(item);
	memset(chunk.ptr, 0, at);
	if (old.len)
		memcpy(chunk.ptr, old.ptr, old.len);
	memcpy(chunk.ptr + at, bytes.ptr, bytes.len);
	chunk.len = at + bytes.len > old.len ? at + bytes.len : old.len;
	return timed_data_set(item->t, key, buf_str(&chunk));
}

/* Writes bytes into the chunks of the value; `all`: it has none yet. */
static enum status
chunks_write(struct timed_item *item, uint64_t offset, struct str bytes, bool all)
{
	TRY(timed_item_touch(item));
	while (bytes.len) {
		size_t at = (size_t)(offset % TIMED_CHUNK_BYTES);
		size_t len = TIMED_CHUNK_BYTES - at < bytes.len ? TIMED_CHUNK_BYTES - at
								: bytes.len;
		struct arena_mark mark = arena_mark(item->arena);

		TRY(chunk_write(item, offset / TIMED_CHUNK_BYTES, at, str_of(bytes.ptr, len),
				all || len == TIMED_CHUNK_BYTES));
		arena_reset(item->arena, mark);
		bytes = str_skip(bytes, len);
		offset += len;
	}
	return STATUS_OK;
}

enum status
timed_text_write(struct timed_item *item, uint64_t offset, struct str bytes)
{
	return chunks_write(item, offset, bytes, !offset);
}

static enum status
check_value(struct timed_item *item, uint64_t offset, struct str bytes)
{
	if (bytes.len > TIMED_LENGTH_BYTES || offset > TIMED_LENGTH_BYTES - bytes.len)
		return err_set(item->t->err, STATUS_VALUE_TOO_LARGE,
			       "a value may have %d bytes (TIMED_LENGTH_BYTES)",
			       TIMED_LENGTH_BYTES);
	return STATUS_OK;
}

/* True if the transaction has no room for these bytes beside what it writes already. */
static bool
must_stage(const struct timed_item *item, struct str bytes)
{
	return bytes.len > TIMED_INLINE_BYTES &&
	       kv_tx_stats(item->t->tx).size_bytes + bytes.len > TIMED_WRITE_BYTES;
}

/* Replaces the item by the value, with this expiry. */
static enum status
value_store(struct timed_item *item, struct str value, uint64_t expires_ms)
{
	TRY(check_value(item, 0, value));
	if (must_stage(item, value))
		return timed_value_staged(item, 0, value, false, expires_ms);
	TRY(timed_item_renew(item, TIMED_VALUE));
	item->expires_ms = expires_ms;
	item->length = value.len;
	if (value.len <= TIMED_INLINE_BYTES) {
		item->value = arena_dup(item->arena, value);
		if (!item->value.ptr)
			return STATUS_LIMIT;
	} else {
		TRY(timed_body_make(item));
		TRY(chunks_write(item, 0, value, true));
	}
	return timed_item_store(item);
}

enum status
timed_value_set(struct timed_item *item, struct str value, struct timed_expiry expiry)
{
	TRY(timed_now(item->t));
	return value_store(item, value, timed_expiry_ms(item->t, expiry));
}

enum status
timed_value_replace(struct timed_item *item, struct str value)
{
	return value_store(item, value, item->type == TIMED_LEAF ? 0 : item->expires_ms);
}

/* The value with the bytes in it, in the arena. */
static enum status
value_patch(struct timed_item *item, uint64_t offset, struct str bytes, struct str *ret)
{
	size_t len = (size_t)offset + bytes.len;
	char *patched;

	if (len < item->value.len)
		len = item->value.len;
	patched = arena_zalloc(item->arena, len);
	if (!patched)
		return STATUS_LIMIT;
	if (item->value.len)
		memcpy(patched, item->value.ptr, item->value.len);
	if (bytes.len)
		memcpy(patched + offset, bytes.ptr, bytes.len);
	*ret = str_of(patched, len);
	return STATUS_OK;
}

enum status
timed_value_write(struct timed_item *item, uint64_t offset, struct str bytes)
{
	struct str value = item->value;
	uint64_t length = item->type == TIMED_VALUE ? item->length : 0;
	uint64_t expires_ms = item->type == TIMED_VALUE ? item->expires_ms : 0;

	TRY(check_value(item, offset, bytes));
	TRY(timed_write_begin(item->t));
	if (must_stage(item, bytes))
		return timed_value_staged(item, offset, bytes, true, expires_ms);
	if (!length)
		item->value = value = STR("");
	if (!item->body.len && offset + bytes.len <= TIMED_INLINE_BYTES) {
		TRY(value_patch(item, offset, bytes, &value));
		return value_store(item, value, expires_ms);
	}
	if (!item->body.len || !length) {
		TRY(timed_item_renew(item, TIMED_VALUE));
		TRY(timed_body_make(item));
		TRY(chunks_write(item, 0, value, true));
	}
	TRY(chunks_write(item, offset, bytes, false));
	item->value = STR("");
	item->expires_ms = expires_ms;
	item->length = offset + bytes.len > length ? offset + bytes.len : length;
	return timed_item_store(item);
}
