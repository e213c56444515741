/*
 * Values that one transaction cannot write. Their chunks are staged: transactions of their own
 * write them to a body that no header names yet, and one more transaction publishes the body by a
 * header. Until then
 *
 *     (P, EXPIRY, shard, ms, null, b"id") → ''
 *
 * says that the body is staged, and until when. Who publishes it clears that entry; the sweep
 * (items_expiry.c) clears what was abandoned. Both read the entry, and so does each transaction
 * that stages, so they conflict with each other.
 */
#include <assert.h>

#include "base/rand.h"
#include "model/timed/items/item_int.h"

enum {
	STAGE_CHUNKS = 64, /* that one transaction writes */
	STAGE_KEY_BYTES = 32,
};

/* ---- The entry ---- */

enum status
timed_stage_key(const struct catalog_db *db, struct arena *arena, const uint8_t id[TIMED_ID_BYTES],
		uint64_t ms, struct str *ret)
{
	struct buf key = timed_arena_buf(arena,
					 db->prefix.len + STAGE_KEY_BYTES + 2 * TIMED_ID_BYTES);

	buf_append_str(&key, db->prefix);
	tuple_put_u64(&key, TIMED_SPACE_EXPIRY);
	tuple_put_u64(&key, id[0] % TIMED_EXPIRY_SHARDS);
	tuple_put_u64(&key, ms);
	tuple_put_null(&key);
	tuple_put_bytes(&key, str_of(id, TIMED_ID_BYTES));
	TRY(buf_status(&key));
	*ret = buf_str(&key);
	return STATUS_OK;
}

/* Whether the body is staged still. The transaction conflicts with whoever changes that. */
static enum status
stage_is_there(struct timed *t, struct arena *arena, const struct timed_stage *s, struct str *ret,
	       bool *ret_there)
{
	struct kv_future *f;
	struct str ignored;

	TRY(timed_stage_key(t->db, arena, s->id, s->until_ms, ret));
	f = kv_get(t->tx, *ret, KV_READ);
	TRY(kv_future_wait(f));
	*ret_there = kv_future_value(f, &ignored);
	return STATUS_OK;
}

/* ---- Staging ---- */

/* Where two stretches meet, relative to the first one. False: nowhere. */
static bool
stretch_meets(uint64_t from, uint64_t len, uint64_t other, uint64_t other_len, size_t *ret_at,
	      size_t *ret_len)
{
	uint64_t begin = from > other ? from : other;
	uint64_t end = from + len < other + other_len ? from + len : other + other_len;

	if (begin >= end)
		return false;
	*ret_at = (size_t)(begin - from);
	*ret_len = (size_t)(end - begin);
	assert(*ret_at + *ret_len <= len);
	return true;
}

/* The bytes of a chunk; empty: it has none but NULs. */
static enum status
chunk_make(const struct timed_stage *s, struct timed_item *base, struct arena *arena,
	   struct str *ret)
{
	uint64_t from = s->chunk * TIMED_CHUNK_BYTES;
	size_t len = s->length - from < TIMED_CHUNK_BYTES ? (size_t)(s->length - from)
							  : TIMED_CHUNK_BYTES;
	size_t new_at = 0, new_len = 0, old_at = 0, old_len = 0;
	bool has_new = stretch_meets(from, len, s->offset, s->bytes.len, &new_at, &new_len);
	bool has_old = base && stretch_meets(from, len, 0, base->length, &old_at, &old_len);
	struct str old;
	char *bytes;

	assert(from < s->length);
	*ret = STR("");
	if (new_len == len) {
		*ret = str_of(s->bytes.ptr + (from - s->offset), len);
		return STATUS_OK;
	}
	if (!has_new && !has_old)
		return STATUS_OK;
	bytes = arena_zalloc(arena, len);
	if (!bytes)
		return STATUS_LIMIT;
	if (has_old) {
		TRY(timed_value_get(base, from, old_len, &old));
		assert(old.len <= old_len);
		memcpy(bytes + old_at, old.ptr, old.len);
	}
	if (has_new)
		memcpy(bytes + new_at, s->bytes.ptr + (from + new_at - s->offset), new_len);
	*ret = str_of(bytes, len);
	return STATUS_OK;
}

/* Writes the next chunks, as many as one transaction may. They have no past, so no history. */
static enum status
chunks_stage(struct timed *t, struct timed_stage *s, struct timed_item *base, struct arena *arena)
{
	struct timed_item body = { .t = t, .arena = arena };
	unsigned written = 0;

	memcpy(body.id, s->id, sizeof(body.id));
	TRY(timed_body_prefix(t->db, arena, body.id, &body.body));
	for (; written < STAGE_CHUNKS && s->chunk * TIMED_CHUNK_BYTES < s->length; s->chunk++) {
		struct arena_mark mark = arena_mark(arena);
		struct str key, bytes;

		TRY(chunk_make(s, base, arena, &bytes));
		TRY(timed_chunk_key(&body, s->chunk, &key));
		if (bytes.len) {
			TRY(kv_set(t->tx, key, bytes));
			written++;
		}
		arena_reset(arena, mark);
	}
	s->complete = s->chunk * TIMED_CHUNK_BYTES >= s->length;
	return STATUS_OK;
}

static enum status
version_read(struct timed_item *item, struct str *ret)
{
	struct kv_future *asked;

	TRY(timed_item_version_ask(item, &asked));
	return timed_item_version(item, asked, ret);
}

/* Opens the item whose other bytes are kept. `s->stale`: it is another one than it was. */
static enum status
base_open(struct timed *t, struct timed_stage *s, struct arena *arena, struct timed_item *ret)
{
	struct str version;

	TRY(timed_item_open(t, s->key, arena, ret));
	TRY(version_read(ret, &version));
	s->stale = !str_eq(version, str_of(s->base, s->base_len));
	return STATUS_OK;
}

enum status
timed_stage_write(struct timed *t, struct timed_stage *s, struct arena *arena)
{
	struct timed_item base;
	struct str entry;
	bool there;

	TRY(timed_write_begin(t));
	if (s->patches) {
		TRY(base_open(t, s, arena, &base));
		if (s->stale)
			return STATUS_OK;
	}
	if (!s->begun) {
		s->begun = true;
		rand_bytes(s->id, sizeof(s->id));
		s->until_ms = t->now_us / TIMED_US_PER_MS + TIMED_STAGE_MS;
		TRY(timed_stage_key(t->db, arena, s->id, s->until_ms, &entry));
		TRY(kv_set(t->tx, entry, STR("")));
	} else {
		TRY(stage_is_there(t, arena, s, &entry, &there));
		s->stale = !there;
		if (s->stale)
			return STATUS_OK;
	}
	return chunks_stage(t, s, s->patches ? &base : NULL, arena);
}

enum status
timed_stage_drop(struct timed *t, const struct timed_stage *s, struct arena *arena)
{
	struct timed_item body = { .t = t, .arena = arena };
	struct str entry;
	bool there;

	if (!s->begun)
		return STATUS_OK;
	TRY(timed_write_begin(t));
	TRY(stage_is_there(t, arena, s, &entry, &there));
	if (!there)
		return STATUS_OK;
	memcpy(body.id, s->id, sizeof(body.id));
	TRY(timed_body_prefix(t->db, arena, body.id, &body.body));
	TRY(timed_body_drop(&body));
	return kv_clear(t->tx, entry);
}

/* ---- Publishing ---- */

static bool
stage_is_of(const struct timed_stage *s, const struct timed_stage *wanted)
{
	return str_eq(s->key, wanted->key) && s->bytes.ptr == wanted->bytes.ptr &&
	       s->bytes.len == wanted->bytes.len && s->offset == wanted->offset &&
	       s->patches == wanted->patches &&
	       str_eq(str_of(s->base, s->base_len), str_of(wanted->base, wanted->base_len));
}

static enum status
stage_publish(struct timed_item *item, const struct timed_stage *s, uint64_t expires_ms,
	      bool *ret_done)
{
	struct str entry;

	TRY(stage_is_there(item->t, item->arena, s, &entry, ret_done));
	if (!*ret_done)
		return STATUS_OK;
	TRY(timed_item_renew(item, TIMED_VALUE));
	memcpy(item->id, s->id, sizeof(item->id));
	TRY(timed_body_prefix(item->t->db, item->arena, item->id, &item->body));
	item->stamped = false;
	item->expires_ms = expires_ms;
	item->length = s->length;
	TRY(timed_item_touch(item));
	TRY(kv_clear(item->t->tx, entry));
	return timed_item_store(item);
}

static enum status
too_large(struct timed_item *item)
{
	return err_set(item->t->err, STATUS_VALUE_TOO_LARGE,
		       "one transaction may write %d bytes of a value (TIMED_WRITE_BYTES)",
		       TIMED_WRITE_BYTES);
}

/* What has to be staged. STATUS_VALUE_TOO_LARGE: nothing can be, as the item is. */
static enum status
stage_describe(struct timed_item *item, uint64_t offset, struct str bytes, bool patches,
	       struct timed_stage *ret)
{
	struct str version;

	*ret = (struct timed_stage){ .t = item->t,
				     .key = item->key,
				     .bytes = bytes,
				     .offset = offset,
				     .patches = patches && item->type == TIMED_VALUE,
				     .length = offset + bytes.len };
	if (!ret->patches)
		return STATUS_OK;
	/* What this transaction has written is not what others can read. */
	if (item->stamped || item->write_us == item->t->now_us)
		return too_large(item);
	if (item->length > ret->length)
		ret->length = item->length;
	TRY(version_read(item, &version));
	memcpy(ret->base, version.ptr, version.len);
	ret->base_len = version.len;
	return STATUS_OK;
}

enum status
timed_value_staged(struct timed_item *item, uint64_t offset, struct str bytes, bool patches,
		   uint64_t expires_ms)
{
	struct timed_stages *stages = item->t->stages;
	struct timed_stage wanted;
	bool done = false;

	if (!stages || !stages->allowed)
		return too_large(item);
	TRY(timed_now(item->t));
	TRY(stage_describe(item, offset, bytes, patches, &wanted));
	for (const struct timed_stage *s = stages->first; s && !done; s = s->next)
		if (s->complete && !s->stale && stage_is_of(s, &wanted))
			TRY(stage_publish(item, s, expires_ms, &done));
	if (done)
		return STATUS_OK;
	stages->wanted = wanted;
	stages->is_wanted = true;
	return too_large(item);
}
