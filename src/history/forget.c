/* Forgetting records before their bucket is cleared, and what whoever does that has to look up. */
#include <assert.h>

#include "history/history_int.h"

enum {
	SLICE_BYTES = 1024 * 1024, /* of records that one slice reads */
};

size_t
history_bucket_at(const struct history_state *state, uint64_t number)
{
	size_t i = 0;

	while (i < state->count && state->buckets[i].number != number)
		i++;
	return i;
}

/* ---- Records ---- */

/* Reads a record of UNDO, whose key is about what lies behind `skip` bytes. */
static enum status
record_take(const struct kv_pair *pair, size_t skip, struct history_record *ret)
{
	uint64_t kind;

	*ret = (struct history_record){ .pair = *pair };
	TRY(history_record_parse(pair->key, skip, &ret->key, &ret->us, &kind));
	ret->added = kind == HISTORY_ADDED;
	ret->there = !ret->added && pair->value.len > 0;
	if (ret->there)
		ret->value = str_skip(pair->value, 1);
	return STATUS_OK;
}

enum status
history_forget(const struct history *h, const struct kv_pair *record)
{
	struct tuple_reader r = tuple_reader(str_skip(record->key, h->prefix.len));
	struct kv_future *f;
	struct kv_pair now = *record;
	uint64_t space, bucket;

	TRY(tuple_next_u64(&r, &space));
	TRY(tuple_next_u64(&r, &bucket));
	if (!h->state->most_bytes)
		return kv_clear(h->tx, record->key);
	assert(history_bucket_at(h->state, bucket) < h->state->count);
	/* Another transaction of that moment may add to it: then this one starts over. */
	f = kv_get(h->tx, record->key, KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &now.value))
		return STATUS_OK;
	TRY(history_held_less(h, bucket, history_record_bytes(h, &now)));
	return kv_clear(h->tx, record->key);
}

enum status
history_record_get(const struct history *h, uint64_t bucket, struct str key, uint64_t us,
		   struct arena *arena, struct history_record *ret)
{
	AUTO(buf_release) struct buf record = BUF_INIT(HISTORY_KEY_BYTES);
	struct kv_future *f;
	struct kv_pair pair;
	size_t skip;

	history_key_begin(h, bucket, h->prefix, &record);
	skip = record.len;
	history_key_begin(h, bucket, key, &record);
	tuple_put_null(&record);
	tuple_put_u64(&record, us);
	tuple_put_u64(&record, HISTORY_OLD);
	TRY(buf_status(&record));
	f = kv_get(h->tx, buf_str(&record), KV_SNAPSHOT);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &pair.value))
		return STATUS_NOT_FOUND;
	pair.key = buf_dup(&record, arena);
	if (!pair.key.ptr)
		return STATUS_LIMIT;
	return record_take(&pair, skip, ret);
}

/* ---- What came after a moment ---- */

/* The first record of the key in the bucket that is later. STATUS_NOT_FOUND. */
static enum status
record_after(const struct history *h, uint64_t bucket, struct str key, uint64_t us,
	     struct history_record *ret)
{
	const struct kv_range_options options = { .limit = 1, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = BUF_INIT(HISTORY_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(HISTORY_KEY_BYTES);
	struct kv_range range;
	size_t skip;

	history_key_begin(h, bucket, h->prefix, &begin);
	skip = begin.len;
	history_key_begin(h, bucket, key, &begin);
	tuple_put_null(&begin);
	buf_append_buf(&end, &begin);
	tuple_put_u64(&begin, us + 1);
	buf_append_byte(&end, HISTORY_KEY_LAST);
	TRY(history_pairs(h, &begin, &end, &options, &range));
	return range.count ? record_take(&range.pairs[0], skip, ret) : STATUS_NOT_FOUND;
}

enum status
history_after(const struct history *h, struct str key, uint64_t us, struct arena *arena,
	      struct str *ret)
{
	const struct history_state *state = h->state;
	struct history_record record;
	size_t i = state->count - 1;
	struct kv_future *f;
	enum status status;

	/* No record in a bucket before is later. */
	while (i && (!state->buckets[i].start_us || state->buckets[i].start_us > us))
		i--;
	*ret = (struct str){ NULL, 0 };
	for (; i < state->count; i++) {
		status = record_after(h, state->buckets[i].number, key, us, &record);
		if (status == STATUS_NOT_FOUND)
			continue;
		TRY(status);
		if (record.added)
			return STATUS_CORRUPT;
		return record.there ? arena_copy(arena, record.value, ret) : STATUS_OK;
	}
	f = kv_get(h->tx, key, KV_SNAPSHOT);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &record.value))
		return STATUS_OK;
	return arena_copy(arena, record.value, ret);
}

/* ---- Slices ---- */

enum status
history_slice_take(const struct history *h, const struct history_slice *slice, struct arena *arena,
		   history_taker *take, void *arg, size_t *ret_records, struct str *ret_place)
{
	const struct kv_range_options options = { .limit = slice->limit,
						  .limit_bytes = SLICE_BYTES,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = BUF_INIT(HISTORY_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(HISTORY_KEY_BYTES);
	struct kv_range range;
	size_t skip;

	*ret_place = STR("");
	history_key_begin(h, slice->bucket, slice->prefix, &end);
	buf_append_byte(&end, HISTORY_KEY_LAST);
	history_key_begin(h, slice->bucket, h->prefix, &begin);
	skip = begin.len;
	if (slice->place.len) {
		buf_append_str(&begin, slice->place);
		buf_append_byte(&begin, 0);
	} else {
		history_key_begin(h, slice->bucket, slice->prefix, &begin);
	}
	TRY(history_pairs(h, &begin, &end, &options, &range));
	for (size_t i = 0; i < range.count; i++) {
		struct history_record record;

		TRY(record_take(&range.pairs[i], skip, &record));
		TRY(take(arg, &record));
	}
	*ret_records = range.count;
	if (!range.more)
		return STATUS_OK;
	assert(range.count); /* there is no more behind nothing */
	*ret_place = arena_dup(arena, str_skip(range.pairs[range.count - 1].key, skip));
	return ret_place->ptr ? STATUS_OK : STATUS_LIMIT;
}
