/*
 * Reading keys as they were. Each bucket from the one that the moment is in, and the present, is a
 * stream of keys in their order; for each key, the first stream that has an old value wins, and
 * what was added before that is taken away.
 */
#include <assert.h>
#include <endian.h>

#include "history/history_int.h"

enum {
	PAST_VALUE_BYTES = KV_LIMIT_VALUE_BYTES + 1,
};

/* ---- One record ---- */

enum status
history_record_parse(struct str record, size_t skip, struct str *ret_key, uint64_t *ret_us,
		     uint64_t *ret_kind)
{
	struct tuple_reader r;
	size_t at = skip;

	/* No key has a null in it, so the first one ends it. */
	while (at < record.len && record.ptr[at]) {
		at = tuple_skip(record, at, TUPLE_SKIP_ANY);
		if (!at)
			return STATUS_CORRUPT;
	}
	if (at >= record.len)
		return STATUS_CORRUPT;
	*ret_key = str_of(record.ptr + skip, at - skip);
	r = tuple_reader(str_skip(record, at + 1));
	TRY(tuple_next_u64(&r, ret_us));
	TRY(tuple_next_u64(&r, ret_kind));
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

bool
history_record_is_good(struct str tail, struct str value)
{
	struct history_added added;
	uint64_t us, kind;
	struct str key;

	if (history_record_parse(tail, 0, &key, &us, &kind) != STATUS_OK)
		return false;
	if (kind == HISTORY_ADDED)
		return history_added_parse(value, &added);
	return kind == HISTORY_OLD && (!value.len || value.ptr[0] == HISTORY_THERE);
}

/* ---- A stream ---- */

static enum status
stream_peek(struct history_stream *s)
{
	if (!s->has_pair)
		TRY(kv_scan_next(&s->scan, &s->pair));
	s->has_pair = true;
	return STATUS_OK;
}

static enum status
stream_take_old(struct history_stream *s, struct str value)
{
	buf_clear(&s->old);
	s->has_old = true;
	s->there = value.len > 0;
	if (value.len)
		buf_append_str(&s->old, str_skip(value, 1));
	return buf_status(&s->old);
}

/*
 * A record of the key of the stream. Forward, the first after the moment counts, and what was added
 * before it; backward, records come the other way round, so a later one takes the place of what was
 * taken so far.
 */
static enum status
stream_take_record(struct history_stream *s, uint64_t kind, bool reverse)
{
	struct history_added added;

	if (s->has_old && !reverse)
		return STATUS_OK;
	if (kind == HISTORY_OLD) {
		if (reverse)
			s->added = 0;
		return stream_take_old(s, s->pair.value);
	}
	if (!history_added_parse(s->pair.value, &added))
		return STATUS_CORRUPT;
	s->added += added.change;
	return STATUS_OK;
}

/*
 * True if a record counts: it is later than the moment, and of a key in the range. A range that
 * ends or begins right behind a key has records of that key on the wrong side.
 */
static bool
record_counts(const struct history_scan *scan, struct str key, uint64_t us)
{
	size_t prefix = scan->h->prefix.len;

	return us > scan->h->moment_us &&
	       str_cmp(key, str_skip(buf_str(&scan->begin), prefix)) >= 0 &&
	       str_cmp(key, str_skip(buf_str(&scan->end), prefix)) < 0;
}

/* Goes on to the next key of a bucket, and takes what it says of it. */
static enum status
bucket_next(struct history_scan *scan, struct history_stream *s)
{
	enum status status;
	uint64_t us, kind;
	struct str key;

	buf_clear(&s->key);
	s->has_old = false;
	s->added = 0;
	while ((status = stream_peek(s)) == STATUS_OK) {
		TRY(history_record_parse(s->pair.key, s->skip, &key, &us, &kind));
		if (!record_counts(scan, key, us)) {
			s->has_pair = false;
			continue;
		}
		if (!s->key.len)
			buf_append_str(&s->key, key);
		else if (!str_eq(buf_str(&s->key), key))
			return STATUS_OK;
		TRY(buf_status(&s->key));
		TRY(stream_take_record(s, kind, scan->reverse));
		s->has_pair = false;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* The same of the present. */
static enum status
present_next(struct history_stream *s, const struct history *h)
{
	enum status status = kv_scan_next(&s->scan, &s->pair);

	buf_clear(&s->key);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	assert(s->pair.key.len >= h->prefix.len);
	buf_append_str(&s->key, str_skip(s->pair.key, h->prefix.len));
	buf_clear(&s->old);
	buf_append_str(&s->old, s->pair.value);
	s->has_old = true;
	s->there = true;
	TRY(buf_status(&s->key));
	return buf_status(&s->old);
}

/* ---- The scan ---- */

static enum status
stream_next(struct history_scan *scan, size_t i)
{
	struct history_stream *s = &scan->streams[i];

	if (i == scan->count - 1)
		return present_next(s, scan->h);
	return bucket_next(scan, s);
}

static enum status
stream_open(struct history_scan *scan, size_t i)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(HISTORY_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(HISTORY_KEY_BYTES);
	const struct history_state *state = scan->h->state;
	struct history_stream *s = &scan->streams[i];
	const struct kv_range_options options = { .reverse = scan->reverse, .mode = KV_SNAPSHOT };

	s->key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	s->old = BUF_INIT(PAST_VALUE_BYTES);
	if (i == scan->count - 1) {
		TRY(kv_scan_init(&s->scan, scan->h->tx, buf_str(&scan->begin), buf_str(&scan->end),
				 &options));
	} else {
		/* The streams of buckets are the last ones of the state. */
		size_t at = state->count + 1 + i - scan->count;
		uint64_t number = state->buckets[at].number;

		assert(scan->count <= state->count + 1 && at < state->count);
		history_key_begin(scan->h, number, scan->h->prefix, &begin);
		s->skip = begin.len;
		history_key_begin(scan->h, number, buf_str(&scan->begin), &begin);
		history_key_begin(scan->h, number, buf_str(&scan->end), &end);
		/* Records of a key right before the end lie behind the end. */
		buf_append_byte(&end, HISTORY_KEY_LAST);
		TRY(buf_status(&begin));
		TRY(buf_status(&end));
		TRY(kv_scan_init(&s->scan, scan->h->tx, buf_str(&begin), buf_str(&end), &options));
	}
	s->open = true;
	return stream_next(scan, i);
}

/* How many buckets may have records after the moment. */
static size_t
buckets_of(const struct history *h)
{
	size_t at = h->state->count - 1;

	assert(h->state->count && h->state->count <= HISTORY_BUCKETS_MOST);
	while (at &&
	       (!h->state->buckets[at].start_us || h->state->buckets[at].start_us > h->moment_us))
		at--;
	return h->state->count - at;
}

enum status
history_scan_open(struct history_scan *scan, const struct history *h, struct str begin,
		  struct str end, bool reverse)
{
	*scan = (struct history_scan){
		.h = h,
		.begin = BUF_INIT(HISTORY_KEY_BYTES),
		.end = BUF_INIT(HISTORY_KEY_BYTES),
		.reverse = reverse,
		.count = buckets_of(h) + 1,
		.key = BUF_INIT(HISTORY_KEY_BYTES),
		.value = BUF_INIT(PAST_VALUE_BYTES),
	};
	buf_append_str(&scan->begin, begin);
	buf_append_str(&scan->end, end);
	TRY(buf_status(&scan->begin));
	TRY(buf_status(&scan->end));
	for (size_t i = 0; i < scan->count; i++)
		TRY(stream_open(scan, i));
	return STATUS_OK;
}

/* The stream whose key comes next; the count if all have ended. */
static size_t
scan_least(const struct history_scan *scan)
{
	size_t least = scan->count;

	for (size_t i = 0; i < scan->count; i++) {
		const struct buf *key = &scan->streams[i].key;
		int order;

		if (!key->len)
			continue;
		order = least == scan->count
				? -1
				: str_cmp(buf_str(key), buf_str(&scan->streams[least].key));
		if (scan->reverse ? order > 0 || least == scan->count : order < 0)
			least = i;
	}
	return least;
}

/* Takes what has been added away from a number. */
static enum status
value_subtract(struct buf *value, int64_t added)
{
	uint64_t n;

	if (!added)
		return STATUS_OK;
	if (value->len != sizeof(n))
		return STATUS_CORRUPT;
	memcpy(&n, value->ptr, sizeof(n));
	n = htole64(le64toh(n) - (uint64_t)added);
	memcpy(value->ptr, &n, sizeof(n));
	return STATUS_OK;
}

/* Puts together what the streams say of the key, and moves them on; whether it was there. */
static enum status
scan_merge(struct history_scan *scan, bool *ret_there)
{
	size_t prefix = scan->h->prefix.len;
	int64_t added = 0;
	bool decided = false;

	*ret_there = false;
	buf_clear(&scan->value);
	for (size_t i = 0; i < scan->count; i++) {
		struct history_stream *s = &scan->streams[i];

		if (!s->key.len || !str_eq(buf_str(&s->key), str_skip(buf_str(&scan->key), prefix)))
			continue;
		if (!decided)
			added += s->added;
		if (!decided && s->has_old) {
			decided = true;
			*ret_there = s->there;
			buf_append_buf(&scan->value, &s->old);
		}
		TRY(stream_next(scan, i));
	}
	TRY(buf_status(&scan->value));
	return *ret_there ? value_subtract(&scan->value, added) : STATUS_OK;
}

enum status
history_scan_next(struct history_scan *scan, struct kv_pair *ret)
{
	bool there = false;
	size_t least;

	while (!there) {
		least = scan_least(scan);
		if (least == scan->count)
			return STATUS_NOT_FOUND;
		assert(scan->streams[least].key.len);
		buf_clear(&scan->key);
		buf_append_str(&scan->key, scan->h->prefix);
		buf_append_buf(&scan->key, &scan->streams[least].key);
		TRY(buf_status(&scan->key));
		TRY(scan_merge(scan, &there));
	}
	*ret = (struct kv_pair){ buf_str(&scan->key), buf_str(&scan->value) };
	if (!ret->value.ptr)
		ret->value = STR("");
	return STATUS_OK;
}

void
history_scan_close(struct history_scan *scan)
{
	for (size_t i = 0; i < scan->count; i++) {
		struct history_stream *s = &scan->streams[i];

		if (s->open)
			kv_scan_release(&s->scan);
		buf_release(&s->key);
		buf_release(&s->old);
	}
	buf_release(&scan->begin);
	buf_release(&scan->end);
	buf_release(&scan->key);
	buf_release(&scan->value);
	scan->count = 0;
}

enum status
history_get(const struct history *h, struct str key, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf end = BUF_INIT(HISTORY_KEY_BYTES);
	struct history_scan scan;
	struct kv_pair pair;
	enum status status;

	/* Also the records of the key lie before every longer one: they go on with a null. */
	buf_append_str(&end, key);
	buf_append_byte(&end, TUPLE_CODE_BYTES);
	TRY(buf_status(&end));
	*ret = (struct str){ NULL, 0 };
	status = history_scan_open(&scan, h, key, buf_str(&end), false);
	if (status == STATUS_OK)
		status = history_scan_next(&scan, &pair);
	if (status == STATUS_OK) {
		*ret = arena_dup(arena, pair.value);
		status = ret->ptr ? STATUS_OK : STATUS_LIMIT;
	}
	history_scan_close(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
