/*
 * Streams: (body, ORDER, id) → an entry, in the order of ids, and (body, STREAM) → the ids that
 * the stream has had. An entry is a leaf whose value is (count, (length)…), bytes….
 *
 * A stream has no skip list: nothing asks for the place of an entry. It is there until it is
 * deleted, with or without entries.
 */
#include <endian.h>

#include "model/timed/items/item_int.h"

enum {
	STREAM_NUMBERS = TIMED_STREAM_BYTES / 8, /* of the record of a stream */
	FIELD_BYTES = 9,                         /* of a length, at most */
	FIND_WAVE = 256,                         /* point reads that go out together */
	TRIMMED_AT_FIRST = 4,                    /* entries; most trims are of one or none */
	TRIMMED_KEYS = 64,                       /* up to so many entries are cleared one by one */
};

static const struct timed_stream_id id_last = { UINT64_MAX, UINT64_MAX };

/* ---- Ids ---- */

int
timed_stream_id_cmp(struct timed_stream_id a, struct timed_stream_id b)
{
	if (a.ms != b.ms)
		return a.ms < b.ms ? -1 : 1;
	return a.seq == b.seq ? 0 : a.seq < b.seq ? -1 : 1;
}

bool
timed_stream_id_next(struct timed_stream_id *id)
{
	if (!++id->seq && !++id->ms) {
		*id = id_last;
		return false;
	}
	return true;
}

bool
timed_stream_id_before(struct timed_stream_id *id)
{
	if (!id->seq-- && !id->ms--) {
		*id = (struct timed_stream_id){ 0 };
		return false;
	}
	return true;
}

/* ---- Keys and records ---- */

void
timed_entry_put(struct timed_stream_id id, uint8_t ret[static TIMED_ENTRY_BYTES])
{
	const uint64_t order[2] = { htobe64(id.ms), htobe64(id.seq) };

	memcpy(ret, order, sizeof(order));
}

struct timed_stream_id
timed_entry_get(const uint8_t bytes[static TIMED_ENTRY_BYTES])
{
	uint64_t order[2];

	memcpy(order, bytes, sizeof(order));
	return (struct timed_stream_id){ be64toh(order[0]), be64toh(order[1]) };
}

static enum status
entry_key(struct timed_item *item, struct timed_stream_id id, struct str *ret)
{
	uint8_t order[TIMED_ENTRY_BYTES];

	timed_entry_put(id, order);
	return timed_order_key(item, str_of(order, sizeof(order)), ret);
}

static enum status
entry_fields(struct timed_item *item, struct str value, struct timed_entry *ret)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t count, len;
	struct str bytes;

	if (tuple_next_u64(&r, &count) != STATUS_OK || count > value.len)
		return timed_item_corrupt(item);
	ret->count = (size_t)count;
	ret->fields = arena_alloc(item->arena, (ret->count + 1) * sizeof(*ret->fields));
	if (!ret->fields)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->count; i++) {
		if (tuple_next_u64(&r, &len) != STATUS_OK || len > value.len)
			return timed_item_corrupt(item);
		ret->fields[i].len = (size_t)len;
	}
	bytes = arena_dup(item->arena, r.rest);
	if (!bytes.ptr)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->count; i++) {
		if (bytes.len < ret->fields[i].len)
			return timed_item_corrupt(item);
		ret->fields[i].ptr = bytes.ptr;
		bytes = str_skip(bytes, ret->fields[i].len);
	}
	return STATUS_OK;
}

/* What an entry says, by its record. */
static enum status
entry_read(struct timed_item *item, struct str value, struct timed_entry *ret)
{
	struct timed_leaf_record leaf;

	TRY(timed_leaf_read(item, value, &leaf));
	TRY(timed_leaf_load(item, &leaf));
	return entry_fields(item, leaf.value, ret);
}

static enum status
entry_take(struct timed_item *item, const struct kv_pair *pair, struct timed_entry *ret)
{
	struct str order;

	TRY(timed_key_tail(item, pair->key, 1, &order));
	if (order.len != TIMED_ENTRY_BYTES)
		return timed_item_corrupt(item);
	ret->id = timed_entry_get((const uint8_t *)order.ptr);
	return entry_read(item, pair->value, ret);
}

/* ---- What a stream says of itself ---- */

enum status
timed_stream_get(struct timed_item *item, struct timed_stream *ret)
{
	uint64_t numbers[STREAM_NUMBERS];
	struct str key, value;

	*ret = (struct timed_stream){ 0 };
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(timed_part_key(item, TIMED_PART_STREAM, &key));
	TRY(timed_data_get(item->t, key, KV_READ, item->arena, &value));
	if (value.len != sizeof(numbers))
		return timed_item_corrupt(item);
	memcpy(numbers, value.ptr, sizeof(numbers));
	for (size_t i = 0; i < STREAM_NUMBERS; i++)
		numbers[i] = be64toh(numbers[i]);
	ret->last = (struct timed_stream_id){ numbers[0], numbers[1] };
	ret->deleted = (struct timed_stream_id){ numbers[2], numbers[3] };
	ret->added = numbers[4];
	return STATUS_OK;
}

/* A stream may be there without entries, but not without a count of them. */
static enum status
stream_make(struct timed_item *item)
{
	struct str key;

	TRY(timed_item_renew(item, TIMED_STREAM));
	TRY(timed_item_store(item));
	TRY(timed_part_key(item, TIMED_PART_COUNT, &key));
	return timed_data_add(item->t, key, 0);
}

enum status
timed_stream_set(struct timed_item *item, const struct timed_stream *stream)
{
	uint64_t numbers[STREAM_NUMBERS] = { stream->last.ms, stream->last.seq, stream->deleted.ms,
					     stream->deleted.seq, stream->added };
	struct str key;

	for (size_t i = 0; i < STREAM_NUMBERS; i++)
		numbers[i] = htobe64(numbers[i]);
	if (item->type == TIMED_LEAF)
		TRY(stream_make(item));
	TRY(timed_item_touch(item));
	TRY(timed_part_key(item, TIMED_PART_STREAM, &key));
	return timed_data_set(item->t, key, str_of(numbers, sizeof(numbers)));
}

/* ---- Entries ---- */

enum status
timed_stream_add(struct timed_item *item, struct timed_stream *stream,
		 const struct timed_entry *entry)
{
	struct timed_leaf_record leaf = { 0 };
	struct buf fields;
	size_t bytes = 0;
	struct str key;

	for (size_t i = 0; i < entry->count; i++)
		bytes += FIELD_BYTES + entry->fields[i].len;
	TRY(timed_leaf_check(item, bytes, "an entry of a stream"));
	fields = timed_arena_buf(item->arena, FIELD_BYTES + bytes);
	tuple_put_u64(&fields, entry->count);
	for (size_t i = 0; i < entry->count; i++)
		tuple_put_u64(&fields, entry->fields[i].len);
	for (size_t i = 0; i < entry->count; i++)
		buf_append_str(&fields, entry->fields[i]);
	TRY(buf_status(&fields));
	stream->last = entry->id;
	stream->added++;
	TRY(timed_stream_set(item, stream));
	leaf.write_us = timed_write_us(item->t);
	leaf.value = buf_str(&fields);
	TRY(entry_key(item, entry->id, &key));
	TRY(timed_leaf_write(item, key, &leaf));
	return timed_item_add(item, 1);
}

enum status
timed_stream_range(struct timed_item *item, const struct timed_stream_range *range,
		   struct timed_entries *ret)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct kv_range_options options = { .reverse = range->reverse, .limit = range->limit };
	struct str begin, end;
	struct kv_pair pair;
	enum status status;
	size_t cap = 0;

	*ret = (struct timed_entries){ 0 };
	if (item->type == TIMED_LEAF || timed_stream_id_cmp(range->from, range->to) > 0)
		return STATUS_OK;
	TRY(entry_key(item, range->from, &begin));
	TRY(entry_key(item, range->to, &end));
	TRY(timed_key_with(item->arena, end, CATALOG_KEY_NEXT, &end));
	TRY(timed_cursor_open(&scan, item->t, begin, end, &options));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		ret->entries = arena_grow(item->arena, ret->entries, ret->count, &cap,
					  sizeof(*ret->entries));
		if (!ret->entries)
			return STATUS_LIMIT;
		TRY(entry_take(item, &pair, &ret->entries[ret->count++]));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_stream_find(struct timed_item *item, struct timed_entry *entries, size_t count)
{
	struct timed_got asked[FIND_WAVE];
	struct str key, value;

	for (size_t from = 0; from < count; from += FIND_WAVE) {
		size_t n = count - from < FIND_WAVE ? count - from : FIND_WAVE;

		for (size_t i = 0; i < n && item->type != TIMED_LEAF; i++) {
			TRY(entry_key(item, entries[from + i].id, &key));
			TRY(timed_data_ask(item->t, key, KV_READ, &asked[i]));
		}
		for (size_t i = 0; i < n; i++) {
			struct timed_entry *e = &entries[from + i];

			e->fields = NULL;
			e->count = 0;
			if (item->type == TIMED_LEAF)
				continue;
			TRY(timed_data_wait(item->t, &asked[i], item->arena, &value));
			if (value.ptr)
				TRY(entry_read(item, value, e));
		}
	}
	return STATUS_OK;
}

enum status
timed_stream_delete(struct timed_item *item, struct timed_stream *stream,
		    const struct timed_stream_id *ids, size_t count, uint64_t *ret_deleted)
{
	struct timed_leaf_record leaf;
	struct str key, value;

	*ret_deleted = 0;
	for (size_t i = 0; i < count && item->type != TIMED_LEAF; i++) {
		TRY(entry_key(item, ids[i], &key));
		TRY(timed_data_get(item->t, key, KV_READ, item->arena, &value));
		if (!value.ptr)
			continue;
		TRY(timed_leaf_read(item, value, &leaf));
		TRY(timed_leaf_drop(item, &leaf.pieces));
		TRY(timed_item_touch(item));
		TRY(timed_data_clear(item->t, key));
		if (timed_stream_id_cmp(ids[i], stream->deleted) > 0)
			stream->deleted = ids[i];
		++*ret_deleted;
	}
	if (!*ret_deleted)
		return STATUS_OK;
	TRY(timed_stream_set(item, stream));
	return timed_item_add(item, -(int64_t)*ret_deleted);
}

/* The entries that a stream is to lose. */
struct trimmed {
	struct str end; /* the key behind the last one, or the first one that stays */
	uint64_t count;
	struct str keys[TRIMMED_KEYS]; /* of the first ones */
	bool pieces;                   /* one of them has some */
};

/* The first entries: `most`, or those up to `below`. */
static enum status
trim_find(struct timed_item *item, uint64_t most, struct timed_stream_id below, struct trimmed *ret)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct kv_range_options options = { .limit = most < SIZE_MAX ? most : 0 };
	size_t first = most < TRIMMED_AT_FIRST ? most : TRIMMED_AT_FIRST;
	struct timed_leaf_record leaf;
	struct kv_pair pair;
	enum status status = STATUS_NOT_FOUND;
	struct str begin, end;

	TRY(timed_part_key(item, TIMED_PART_ORDER, &begin));
	TRY(entry_key(item, below, &end));
	*ret = (struct trimmed){ .end = begin };
	TRY(timed_cursor_open_few(&scan, item->t, begin, end, &options, first));
	while (ret->count < most && (status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		TRY(timed_leaf_read(item, pair.value, &leaf));
		ret->pieces |= leaf.pieces.there;
		if (ret->count < TRIMMED_KEYS)
			ret->keys[ret->count] = arena_dup(item->arena, pair.key);
		if (++ret->count == most)
			TRY(timed_key_with(item->arena, pair.key, CATALOG_KEY_NEXT, &ret->end));
	}
	if (status == STATUS_NOT_FOUND && ret->count)
		ret->end = end;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Removes the pieces of entries that are trimmed. */
static enum status
trim_pieces(struct timed_item *item, struct str begin, struct str end)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct timed_leaf_record leaf;
	struct kv_pair pair;
	enum status status;

	TRY(timed_cursor_open(&scan, item->t, begin, end, NULL));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		TRY(timed_leaf_read(item, pair.value, &leaf));
		TRY(timed_leaf_drop(item, &leaf.pieces));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/*
 * Entries go in blocks of `step`, counted from the first one that the stream ever had. `*most` is
 * rounded down, so that the entry after those that go begins a block. The last block may have fewer
 * than `step` entries, and goes only if all that it has may go.
 */
static enum status
trim_round(struct timed_item *item, uint64_t step, uint64_t *most)
{
	struct timed_stream stream;
	uint64_t count, before, over;

	TRY(timed_stream_get(item, &stream));
	TRY(timed_count(item, &count));
	if (*most >= count) {
		*most = count;
		return STATUS_OK;
	}
	before = stream.added > count ? stream.added - count : 0;
	over = (before + *most) % step;
	*most -= over < *most ? over : *most;
	return STATUS_OK;
}

/*
 * Few entries are cleared one by one, since their keys are known: for a range the engine would look
 * for them again, and where a transaction trims often, for all that went before as well.
 */
static enum status
trim_clear(struct timed_item *item, struct str begin, const struct trimmed *gone)
{
	if (gone->count > TRIMMED_KEYS)
		return timed_data_clear_range(item->t, begin, gone->end);
	for (uint64_t i = 0; i < gone->count; i++) {
		if (!gone->keys[i].ptr)
			return STATUS_LIMIT;
		TRY(timed_data_clear(item->t, gone->keys[i]));
	}
	return STATUS_OK;
}

enum status
timed_stream_trim(struct timed_item *item, const struct timed_stream_trim *trim,
		  uint64_t *ret_deleted)
{
	uint64_t most = trim->limit ? trim->limit : UINT64_MAX, count;
	struct trimmed gone;
	struct str begin;

	*ret_deleted = 0;
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	if (trim->by_length) {
		TRY(timed_count(item, &count));
		count = count > trim->length ? count - trim->length : 0;
		most = count < most ? count : most;
	}
	if (trim->by_length && trim->step && most)
		TRY(trim_round(item, trim->step, &most));
	if (!most)
		return STATUS_OK;
	TRY(trim_find(item, most, trim->by_length ? id_last : trim->least, &gone));
	if (!trim->by_length && trim->step) {
		most = gone.count;
		TRY(trim_round(item, trim->step, &most));
		if (!most)
			return STATUS_OK;
		TRY(trim_find(item, most, trim->least, &gone));
	}
	if (!gone.count)
		return STATUS_OK;
	TRY(timed_item_touch(item));
	TRY(timed_part_key(item, TIMED_PART_ORDER, &begin));
	if (gone.pieces)
		TRY(trim_pieces(item, begin, gone.end));
	TRY(trim_clear(item, begin, &gone));
	*ret_deleted = gone.count;
	return timed_item_add(item, -(int64_t)gone.count);
}
