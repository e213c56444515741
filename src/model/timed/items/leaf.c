/*
 * Leaves: the records of members, of elements of a list and of entries of a stream. What would make
 * a record longer than TIMED_RECORD_BYTES lies in pieces of the same body,
 *
 *     (body, PIECES, b"id", n) → bytes from n * TIMED_CHUNK_BYTES on, of the name and the value
 *
 * and the record has the id. No two leaves have the same id, and a leaf that is written again gets
 * another one, so pieces never change. That is why history does not record them: the record of the
 * past names the pieces of the past, which stay until the bucket in which they went is cleared
 * (gone.c).
 */
#include "base/rand.h"
#include "model/timed/items/item_int.h"

enum {
	PIECES_KEY_BYTES = 32, /* of the numbers and the id in a key */
};

/* The key of a piece. */
static enum status
piece_key(struct timed_item *item, const struct timed_pieces *pieces, uint64_t n, struct str *ret)
{
	struct buf key = timed_arena_buf(item->arena,
					 item->body.len + PIECES_KEY_BYTES + 2 * TIMED_ID_BYTES);

	buf_append_str(&key, item->body);
	tuple_put_u64(&key, TIMED_PART_PIECES);
	tuple_put_bytes(&key, str_of(pieces->id, TIMED_ID_BYTES));
	tuple_put_u64(&key, n);
	*ret = buf_str(&key);
	return buf_status(&key);
}

enum status
timed_pieces_range(struct timed_item *item, const struct timed_pieces *pieces,
		   struct str *ret_begin, struct str *ret_end)
{
	TRY(piece_key(item, pieces, 0, ret_begin));
	return piece_key(item, pieces, TIMED_PIECES_MOST, ret_end);
}

/* ---- Writing ---- */

/* Writes one name and one value after the other into pieces. */
static enum status
pieces_write(struct timed_item *item, const struct timed_pieces *pieces, struct str name,
	     struct str value)
{
	struct arena_mark mark = arena_mark(item->arena);
	uint64_t n = 0;

	name = name.len ? name : STR("");
	value = value.len ? value : STR("");
	while (name.len || value.len) {
		struct buf joint = timed_arena_buf(item->arena, TIMED_CHUNK_BYTES);
		size_t of_name = name.len < TIMED_CHUNK_BYTES ? name.len : TIMED_CHUNK_BYTES;
		size_t room = TIMED_CHUNK_BYTES - of_name;
		size_t of_value = value.len < room ? value.len : room;
		struct str key;

		buf_append_str(&joint, str_of(name.ptr, of_name));
		buf_append_str(&joint, str_of(value.ptr, of_value));
		TRY(buf_status(&joint));
		TRY(piece_key(item, pieces, n++, &key));
		TRY(kv_set(item->t->tx, key, buf_str(&joint)));
		arena_reset(item->arena, mark);
		name = str_skip(name, of_name);
		value = str_skip(value, of_value);
	}
	return STATUS_OK;
}

enum status
timed_leaf_check(struct timed_item *item, size_t bytes, const char *what)
{
	if (bytes <= TIMED_ELEMENT_BYTES)
		return STATUS_OK;
	return err_set(item->t->err, STATUS_VALUE_TOO_LARGE,
		       "%s may have %d bytes (TIMED_ELEMENT_BYTES)", what, TIMED_ELEMENT_BYTES);
}

enum status
timed_leaf_write(struct timed_item *item, struct str key, struct timed_leaf_record *leaf)
{
	struct buf value;
	size_t bytes = leaf->whole.len + leaf->value.len;

	leaf->pieces.there = bytes > TIMED_RECORD_BYTES;
	if (leaf->pieces.there) {
		rand_bytes(leaf->pieces.id, sizeof(leaf->pieces.id));
		leaf->whole_len = leaf->whole.len;
		leaf->value_len = leaf->value.len > TIMED_WHOLE_BYTES ? leaf->value.len : 0;
		TRY(pieces_write(item, &leaf->pieces, leaf->whole,
				 leaf->value_len ? leaf->value : STR("")));
		bytes = TIMED_WHOLE_BYTES;
	}
	value = timed_arena_buf(item->arena, TIMED_LEAF_BYTES + bytes);
	timed_leaf_put(leaf, &value);
	TRY(buf_status(&value));
	return timed_data_set(item->t, key, buf_str(&value));
}

enum status
timed_leaf_drop(struct timed_item *item, const struct timed_pieces *pieces)
{
	struct str begin, end, gone;
	struct buf entry;

	if (!pieces->there)
		return STATUS_OK;
	TRY(timed_pieces_range(item, pieces, &begin, &end));
	if (!item->t->has_history)
		return kv_clear_range(item->t->tx, begin, end);
	TRY(timed_gone_key(item->t, item->arena, item->id, &gone));
	entry = timed_arena_buf(item->arena, gone.len + PIECES_KEY_BYTES + 2 * TIMED_ID_BYTES);
	buf_append_str(&entry, gone);
	tuple_put_u64(&entry, TIMED_PART_PIECES);
	tuple_put_bytes(&entry, str_of(pieces->id, TIMED_ID_BYTES));
	TRY(buf_status(&entry));
	return timed_gone_put(item->t, buf_str(&entry));
}

/* ---- Reading ---- */

enum status
timed_leaf_read(struct timed_item *item, struct str value, struct timed_leaf_record *ret)
{
	enum status status = timed_leaf_parse(value, ret, item->t->err);

	return status == STATUS_CORRUPT ? timed_item_corrupt(item) : status;
}

enum status
timed_leaf_load(struct timed_item *item, struct timed_leaf_record *leaf)
{
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct str begin, end;
	struct kv_pair pair;
	enum status status;
	size_t len, at = 0;
	char *bytes;

	if (!leaf->pieces.there)
		return STATUS_OK;
	len = (size_t)(leaf->whole_len + leaf->value_len);
	bytes = arena_bytes(item->arena, len + 1);
	if (!bytes)
		return STATUS_LIMIT;
	TRY(timed_pieces_range(item, &leaf->pieces, &begin, &end));
	/* Pieces have no past of their own: what a record of the past names is there still. */
	TRY(kv_scan_init(&scan, item->t->tx, begin, end, NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		if (pair.value.len > len - at)
			return timed_item_corrupt(item);
		memcpy(bytes + at, pair.value.ptr, pair.value.len);
		at += pair.value.len;
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	if (at != len)
		return timed_item_corrupt(item);
	leaf->whole = str_of(bytes, (size_t)leaf->whole_len);
	if (leaf->value_len)
		leaf->value = str_of(bytes + leaf->whole_len, (size_t)leaf->value_len);
	return STATUS_OK;
}
