/* Copying an item: its body pair by pair, in one transaction. */
#include "model/timed/items/item_int.h"

enum {
	COPY_EACH_BYTES = 100, /* of a pair, beside its key and value: conflict ranges */
	COPY_ID_BYTES = 8,     /* of an id in a key, beside its bytes */
};

/* The key of `to` that goes on as a key of `item` does. */
static enum status
copy_key(struct timed_item *item, struct timed_item *to, struct str from, struct str *ret)
{
	struct str tail = str_skip(from, item->body.len);
	struct buf key = timed_arena_buf(item->arena, to->body.len + tail.len);

	buf_append_str(&key, to->body);
	buf_append_str(&key, tail);
	*ret = buf_str(&key);
	return buf_status(&key);
}

/* Counts a pair that is copied. STATUS_TX_TOO_LARGE, explained. */
static enum status
copy_count(struct timed_item *item, const struct kv_pair *pair, size_t *bytes)
{
	*bytes += pair->key.len + pair->value.len + COPY_EACH_BYTES;
	if (*bytes <= TIMED_WRITE_BYTES)
		return STATUS_OK;
	return err_set(item->t->err, STATUS_TX_TOO_LARGE,
		       "a copy may have %d bytes (TIMED_WRITE_BYTES)", TIMED_WRITE_BYTES);
}

static enum status
copy_pieces(struct timed_item *item, struct timed_item *to, const struct timed_pieces *pieces,
	    size_t *bytes)
{
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct str begin, end, key;
	struct kv_pair pair;
	enum status status;

	TRY(timed_pieces_range(item, pieces, &begin, &end));
	TRY(kv_scan_init(&scan, item->t->tx, begin, end, NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct arena_mark mark = arena_mark(item->arena);

		TRY(copy_count(item, &pair, bytes));
		TRY(copy_key(item, to, pair.key, &key));
		TRY(kv_set(to->t->tx, key, pair.value));
		arena_reset(item->arena, mark);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* What a leaf has beside its record: pieces, and the entry of a member that expires by itself. */
static enum status
copy_leaf(struct timed_item *item, struct timed_item *to, struct str key, struct str value,
	  size_t *bytes)
{
	struct timed_leaf_record leaf;

	if (item->type == TIMED_LIST && timed_is_run(value))
		return STATUS_OK;
	TRY(timed_leaf_parse(value, &leaf, to->t->err));
	if (leaf.pieces.there)
		TRY(copy_pieces(item, to, &leaf.pieces, bytes));
	return timed_due_change(to, key, 0, leaf.expires_ms);
}

/* True for the record of a member, of an element of a list, or of an entry of a stream. */
static bool
is_leaf(const struct timed_item *item, struct str tail)
{
	struct tuple_reader r = tuple_reader(tail);
	uint64_t part;

	if (item->type == TIMED_LIST || item->type == TIMED_STREAM)
		return tuple_next_u64(&r, &part) == STATUS_OK && part == TIMED_PART_ORDER;
	return item->type != TIMED_VALUE && tail.len && tail.ptr[0] == TUPLE_CODE_BYTES;
}

static enum status
copy_raw(struct timed_item *item, struct timed_item *to, const struct kv_pair *pair, size_t *bytes)
{
	struct str key;

	TRY(copy_count(item, pair, bytes));
	TRY(copy_key(item, to, pair->key, &key));
	return timed_data_set(to->t, key, pair->value);
}

static enum status
copy_pair(struct timed_item *item, struct timed_item *to, const struct kv_pair *pair, size_t *bytes)
{
	struct str key;

	TRY(copy_count(item, pair, bytes));
	TRY(copy_key(item, to, pair->key, &key));
	if (is_leaf(item, str_skip(pair->key, item->body.len)))
		TRY(copy_leaf(item, to, key, pair->value, bytes));
	return timed_data_set(to->t, key, pair->value);
}

static enum status
copy_body(struct timed_item *item, struct timed_item *to, size_t *bytes)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct kv_pair pair;
	enum status status;
	struct str end;

	/* The copy has a stamp and an owner of its own. */
	TRY(timed_part_key(item, TIMED_PART_STAMP, &end));
	TRY(timed_cursor_open(&scan, item->t, item->body, end, NULL));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		struct arena_mark mark = arena_mark(item->arena);

		TRY(copy_pair(item, to, &pair, bytes));
		arena_reset(item->arena, mark);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/*
 * False for what a removed group has left, which is not copied. The first pair below the id of a
 * group is TIMED_GROUP_OWNER, which goes with the group: `owned` is the id that had one last.
 */
static bool
copy_takes_group(struct timed_item *item, struct str key, struct buf *owned)
{
	struct tuple_reader r = tuple_reader(str_skip(key, item->body.len));
	uint64_t part;
	struct str id;

	if (tuple_next_u64(&r, &part) != STATUS_OK || part != TIMED_PART_OF_GROUP)
		return true;
	id = str_of(r.rest.ptr, tuple_skip(r.rest, 0, TUPLE_SKIP_TEXT));
	r.rest = str_skip(r.rest, id.len);
	if (tuple_next_u64(&r, &part) == STATUS_OK && part == TIMED_GROUP_OWNER) {
		buf_clear(owned);
		buf_append_str(owned, id);
	}
	return str_eq(id, buf_str(owned));
}

static enum status
copy_groups(struct timed_item *item, struct timed_item *to, size_t *bytes)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct buf owned = timed_arena_buf(item->arena, 2 * TIMED_ID_BYTES + COPY_ID_BYTES);
	struct str begin, end;
	struct kv_pair pair;
	enum status status;

	TRY(buf_status(&owned));
	TRY(timed_part_key(item, TIMED_PART_GROUP, &begin));
	TRY(timed_key_with(item->arena, item->body, CATALOG_KEY_LAST, &end));
	TRY(timed_cursor_open(&scan, item->t, begin, end, NULL));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		struct arena_mark mark = arena_mark(item->arena);

		if (copy_takes_group(item, pair.key, &owned))
			TRY(copy_raw(item, to, &pair, bytes));
		arena_reset(item->arena, mark);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* What a stream says of itself, and its groups, which lie behind the stamp. */
static enum status
copy_stream(struct timed_item *item, struct timed_item *to, size_t *bytes)
{
	struct timed_stream stream;

	if (item->type != TIMED_STREAM)
		return STATUS_OK;
	TRY(timed_stream_get(item, &stream));
	TRY(timed_stream_set(to, &stream));
	return copy_groups(item, to, bytes);
}

/* The leaves of a document. */
static enum status
copy_tree(struct timed_item *item, struct timed_item *to, size_t *bytes)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct str begin, end;
	struct kv_pair pair;
	enum status status;

	if (item->type != TIMED_JSON)
		return STATUS_OK;
	TRY(timed_part_key(item, TIMED_PART_TREE, &begin));
	TRY(timed_key_with(item->arena, item->body, CATALOG_KEY_LAST, &end));
	TRY(timed_cursor_open(&scan, item->t, begin, end, NULL));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		struct arena_mark mark = arena_mark(item->arena);

		TRY(copy_raw(item, to, &pair, bytes));
		arena_reset(item->arena, mark);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_item_copy(struct timed_item *item, struct timed_item *to)
{
	size_t bytes = 0;

	TRY(timed_item_replace(to, item));
	if (item->body.len) {
		TRY(timed_body_make(to));
		TRY(timed_item_touch(to));
		TRY(copy_body(item, to, &bytes));
		TRY(copy_stream(item, to, &bytes));
		TRY(copy_tree(item, to, &bytes));
	}
	return timed_item_store(to);
}
