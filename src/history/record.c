/* Keeping what keys held before a transaction changes them. */
#include <assert.h>
#include <endian.h>

#include "history/history_int.h"

/* No element of the key is null, which ends it in the key of a record. */
static inline bool
key_is_sound(struct str key)
{
	size_t at = 0;

	while (at < key.len && key.ptr[at]) {
		at = tuple_skip(key, at, TUPLE_SKIP_ANY);
		if (!at)
			return false;
	}
	return at == key.len;
}

static enum status
record_key(const struct history *h, struct str key, enum history_kind kind, struct buf *ret)
{
	assert(h->state->count && h->moment_us);
	assert(str_starts_with(key, h->prefix));
	assert(key_is_sound(str_skip(key, h->prefix.len)));
	history_key_begin(h, h->state->buckets[h->state->count - 1].number, key, ret);
	tuple_put_null(ret);
	tuple_put_u64(ret, h->moment_us);
	tuple_put_u64(ret, kind);
	if (ret->len > kv_key_limit(h->tx))
		return STATUS_KEY_TOO_LARGE;
	return buf_status(ret);
}

/* Takes what this transaction has added away from what it reads. */
static enum status
value_without_added(const struct history *h, struct str key, struct buf *value)
{
	AUTO(buf_release) struct buf record = BUF_INIT(HISTORY_KEY_BYTES);
	struct history_added added;
	struct kv_future *f;
	struct str found;
	uint64_t now;

	if (value->len != 1 + sizeof(now))
		return STATUS_OK;
	TRY(record_key(h, key, HISTORY_ADDED, &record));
	f = kv_get(h->tx, buf_str(&record), KV_SNAPSHOT);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &found) || !history_added_parse(found, &added))
		return STATUS_OK;
	memcpy(&now, value->ptr + 1, sizeof(now));
	now = htole64(le64toh(now) - (uint64_t)added.change);
	memcpy(value->ptr + 1, &now, sizeof(now));
	return STATUS_OK;
}

/* `old.ptr` NULL: the key is not there. */
static enum status
record_put(const struct history *h, struct str record, struct str key, struct str old)
{
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	if (old.ptr) {
		buf_append_byte(&value, HISTORY_THERE);
		buf_append_str(&value, old);
		TRY(buf_status(&value));
		TRY(value_without_added(h, key, &value));
	}
	TRY(kv_set(h->tx, record, value.ptr ? buf_str(&value) : STR("")));
	return history_held_add(h, record, value.len);
}

/* True if this transaction has already recorded what the key held before. */
static enum status
record_exists(const struct history *h, struct str record, bool *ret)
{
	struct kv_future *f = kv_get(h->tx, record, KV_SNAPSHOT);
	struct str ignored;

	TRY(kv_future_wait(f));
	*ret = kv_future_value(f, &ignored);
	return STATUS_OK;
}

enum status
history_change(const struct history *h, struct str key)
{
	AUTO(buf_release) struct buf record = BUF_INIT(HISTORY_KEY_BYTES);
	struct kv_future *f;
	struct str old;
	bool done;

	TRY(record_key(h, key, HISTORY_OLD, &record));
	TRY(record_exists(h, buf_str(&record), &done));
	if (done)
		return STATUS_OK;
	f = kv_get(h->tx, key, KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &old))
		old = (struct str){ NULL, 0 };
	return record_put(h, buf_str(&record), key, old);
}

enum status
history_change_range(const struct history *h, struct str begin, struct str end)
{
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	AUTO(buf_release) struct buf record = BUF_INIT(HISTORY_KEY_BYTES);
	struct kv_pair pair;
	enum status status;
	bool done;

	TRY(kv_scan_init(&scan, h->tx, begin, end, NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		TRY(record_key(h, pair.key, HISTORY_OLD, &record));
		TRY(record_exists(h, buf_str(&record), &done));
		if (!done)
			TRY(record_put(h, buf_str(&record), pair.key, pair.value));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
history_add(const struct history *h, struct str key, int64_t change)
{
	AUTO(buf_release) struct buf record = BUF_INIT(HISTORY_KEY_BYTES);
	uint8_t room[HISTORY_ADDED_COUNTED_BYTES];
	struct str operand;

	operand = history_added_put(change, h->state->counts[h->state->count - 1], room);
	TRY(record_key(h, key, HISTORY_ADDED, &record));
	TRY(kv_atomic(h->tx, KV_ADD, buf_str(&record), operand));
	return history_held_add(h, buf_str(&record), operand.len);
}
