/* Copying an item: its body pair by pair, in one transaction. */
#include "model/timed/item_int.h"

enum {
	COPY_EACH_BYTES = 100, /* of a pair, beside its key and value: conflict ranges */
};

/* The expiry of a member of its own, which needs an entry for the copy, too. */
static enum status
copy_member(struct timed_item *to, struct str key, struct str value)
{
	struct timed_leaf_record leaf;

	TRY(timed_leaf_parse(value, &leaf, to->t->err));
	return timed_due_change(to, key, 0, leaf.expires_ms);
}

static enum status
copy_pair(struct timed_item *item, struct timed_item *to, const struct kv_pair *pair)
{
	struct str tail = str_skip(pair->key, item->body.len);
	struct buf key = timed_arena_buf(item->arena, to->body.len + tail.len);

	buf_append_str(&key, to->body);
	buf_append_str(&key, tail);
	TRY(buf_status(&key));
	if (item->type == TIMED_HASH && tail.len && tail.ptr[0] == TUPLE_CODE_BYTES)
		TRY(copy_member(to, buf_str(&key), pair->value));
	return timed_data_set(to->t, buf_str(&key), pair->value);
}

static enum status
copy_body(struct timed_item *item, struct timed_item *to)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct kv_pair pair;
	enum status status;
	size_t bytes = 0;
	struct str end;

	/* The copy has a stamp and an owner of its own. */
	TRY(timed_part_key(item, TIMED_PART_STAMP, &end));
	TRY(timed_cursor_open(&scan, item->t, item->body, end, NULL));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		struct arena_mark mark = arena_mark(item->arena);

		bytes += pair.key.len + pair.value.len + COPY_EACH_BYTES;
		if (bytes > TIMED_WRITE_BYTES)
			return err_set(item->t->err, STATUS_TX_TOO_LARGE,
				       "a copy may have %d bytes (TIMED_WRITE_BYTES)",
				       TIMED_WRITE_BYTES);
		TRY(copy_pair(item, to, &pair));
		arena_reset(item->arena, mark);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* What a stream says of itself, which lies behind the stamp. */
static enum status
copy_stream(struct timed_item *item, struct timed_item *to)
{
	struct timed_stream stream;

	if (item->type != TIMED_STREAM)
		return STATUS_OK;
	TRY(timed_stream_get(item, &stream));
	return timed_stream_set(to, &stream);
}

enum status
timed_item_copy(struct timed_item *item, struct timed_item *to)
{
	TRY(timed_item_replace(to, item));
	if (item->body.len) {
		TRY(timed_body_make(to));
		TRY(timed_item_touch(to));
		TRY(copy_body(item, to));
		TRY(copy_stream(item, to));
	}
	return timed_item_store(to);
}
