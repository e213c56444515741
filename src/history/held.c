/* How many bytes the records of each bucket have. */
#include <assert.h>
#include <endian.h>

#include "history/history_int.h"

enum {
	HELD_KEY_BYTES = 64,
	HELD_NUMBER_BYTES = sizeof(uint64_t),
	HELD_SLICE_BYTES = 1024 * 1024, /* of records that one transaction reads to count them */
};

void
history_held_key(const struct history *h, uint64_t bucket, struct buf *ret)
{
	buf_clear(ret);
	buf_append_str(ret, h->prefix);
	tuple_put_u64(ret, h->held_space);
	tuple_put_u64(ret, bucket);
}

bool
history_held_parse(struct str value, uint64_t *ret_bytes, struct str *ret_place)
{
	uint64_t bytes;

	if (value.len < HELD_NUMBER_BYTES)
		return false;
	memcpy(&bytes, value.ptr, sizeof(bytes));
	*ret_bytes = le64toh(bytes);
	*ret_place = str_skip(value, HELD_NUMBER_BYTES);
	return true;
}

static enum status
held_set(const struct history *h, uint64_t bucket, uint64_t bytes, struct str place)
{
	AUTO(buf_release) struct buf key = BUF_INIT(HELD_KEY_BYTES);
	AUTO(buf_release) struct buf value = BUF_INIT(HELD_NUMBER_BYTES + HISTORY_KEY_BYTES);

	bytes = htole64(bytes);
	history_held_key(h, bucket, &key);
	buf_append_str(&value, str_of(&bytes, sizeof(bytes)));
	buf_append_str(&value, place);
	TRY(buf_status(&key));
	TRY(buf_status(&value));
	return kv_set(h->tx, buf_str(&key), buf_str(&value));
}

enum status
history_held_begin(const struct history *h, uint64_t bucket)
{
	return held_set(h, bucket, 0, STR(""));
}

enum status
history_held_forget(const struct history *h, uint64_t bucket)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(HELD_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(HELD_KEY_BYTES);

	history_held_key(h, 0, &begin);
	history_held_key(h, bucket, &end);
	TRY(buf_status(&begin));
	TRY(buf_status(&end));
	return kv_clear_range(h->tx, buf_str(&begin), buf_str(&end));
}

enum status
history_held_more(const struct history *h, uint64_t bucket, uint64_t bytes)
{
	AUTO(buf_release) struct buf key = BUF_INIT(HELD_KEY_BYTES);

	bytes = htole64(bytes);
	history_held_key(h, bucket, &key);
	TRY(buf_status(&key));
	return kv_atomic(h->tx, KV_ADD, buf_str(&key), str_of(&bytes, sizeof(bytes)));
}

enum status
history_held_less(const struct history *h, uint64_t bucket, uint64_t bytes)
{
	return history_held_more(h, bucket, 0 - bytes);
}

enum status
history_held_add(const struct history *h, struct str record, size_t value_bytes)
{
	size_t last = h->state->count - 1;

	if (!h->state->counts[last])
		return STATUS_OK;
	return history_held_more(h, h->state->buckets[last].number,
				 record.len - h->prefix.len + value_bytes);
}

uint64_t
history_record_bytes(const struct history *h, const struct kv_pair *record)
{
	uint64_t bytes = record->key.len - h->prefix.len + record->value.len;
	struct history_added added;
	uint64_t us, kind;
	struct str key;
	size_t skip;

	/* Behind the number of the subspace, and that of the bucket. */
	skip = tuple_skip(record->key, h->prefix.len, TUPLE_SKIP_ANY);
	skip = skip ? tuple_skip(record->key, skip, TUPLE_SKIP_ANY) : 0;
	if (skip && history_record_parse(record->key, skip, &key, &us, &kind) == STATUS_OK &&
	    kind == HISTORY_ADDED && history_added_parse(record->value, &added))
		bytes *= added.times;
	return bytes;
}

/* ---- Reading them ---- */

enum status
history_held_read(const struct history *h, struct history_held *ret)
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	AUTO(buf_release) struct buf begin = BUF_INIT(HELD_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(HELD_KEY_BYTES);
	const struct history_state *state = h->state;
	enum status status;
	struct kv_pair pair;
	size_t i = 0;

	*ret = (struct history_held){ .all = true };
	history_held_key(h, state->buckets[0].number, &begin);
	history_held_key(h, state->buckets[state->count - 1].number + 1, &end);
	TRY(buf_status(&begin));
	TRY(buf_status(&end));
	TRY(kv_scan_init(&scan, h->tx, buf_str(&begin), buf_str(&end), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct tuple_reader r = tuple_reader(str_skip(pair.key, h->prefix.len));
		uint64_t space, bucket;
		struct str place;

		TRY(tuple_next_u64(&r, &space));
		TRY(tuple_next_u64(&r, &bucket));
		while (i < state->count && state->buckets[i].number < bucket)
			i++;
		if (i == state->count || state->buckets[i].number != bucket ||
		    !history_held_parse(pair.value, &ret->bytes[i], &place))
			return STATUS_CORRUPT;
		ret->known[i] = !place.len;
		ret->sum += ret->bytes[i];
	}
	for (i = 0; i < state->count; i++)
		ret->all = ret->all && ret->known[i];
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- Counting what was recorded before anything was counted ---- */

/* Where the next slice of the bucket begins: behind the place up to which it is counted. */
static enum status
slice_begin(const struct history *h, uint64_t bucket, struct buf *ret)
{
	AUTO(buf_release) struct buf key = BUF_INIT(HELD_KEY_BYTES);
	struct kv_future *f;
	struct str value, place = STR("");
	uint64_t ignored;

	history_held_key(h, bucket, &key);
	TRY(buf_status(&key));
	f = kv_get(h->tx, buf_str(&key), KV_SNAPSHOT);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value) && !history_held_parse(value, &ignored, &place))
		return STATUS_CORRUPT;
	history_key_begin(h, bucket, h->prefix, ret);
	buf_append_str(ret, place);
	if (place.len)
		buf_append_byte(ret, 0);
	return buf_status(ret);
}

enum status
history_held_count(const struct history *h, const struct history_held *held, size_t *ret_records)
{
	const struct kv_range_options options = { .limit = HISTORY_CLEAR_KEYS,
						  .limit_bytes = HELD_SLICE_BYTES,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = BUF_INIT(HISTORY_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(HISTORY_KEY_BYTES);
	size_t i = h->state->count, skip;
	uint64_t bucket, bytes;
	struct str place = STR("");
	struct kv_range range;

	*ret_records = 0;
	/* The newest first: those before it may have to go, counted or not. */
	while (i && held->known[i - 1])
		i--;
	if (!i)
		return STATUS_OK;
	/* Writers count what they add to the newest one. */
	assert(i < h->state->count);
	bucket = h->state->buckets[i - 1].number;
	bytes = held->bytes[i - 1];
	history_key_begin(h, bucket, h->prefix, &end);
	skip = end.len;
	buf_append_byte(&end, HISTORY_KEY_LAST);
	TRY(slice_begin(h, bucket, &begin));
	TRY(history_pairs(h, &begin, &end, &options, &range));
	for (size_t n = 0; n < range.count; n++)
		bytes += history_record_bytes(h, &range.pairs[n]);
	if (range.more)
		place = str_skip(range.pairs[range.count - 1].key, skip);
	*ret_records = range.count;
	return held_set(h, bucket, bytes, place);
}
