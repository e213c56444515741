/*
 * Going through all versions of keys. Each bucket is a stream of records in the order of keys and
 * moments, and the present is a stream of keys. For one key all records of a bucket are older than
 * those of the next bucket, so of the streams at the same key the oldest one comes first.
 */
#include <assert.h>

#include "history/history_int.h"

/* ---- One stream ---- */

/* True if the record is of a key in the range. Records of the key at the end lie before the end. */
static bool
record_counts(const struct history_versions *v, struct str key)
{
	size_t prefix = v->h->prefix.len;

	return str_cmp(key, str_skip(buf_str(&v->begin), prefix)) >= 0 &&
	       str_cmp(key, str_skip(buf_str(&v->end), prefix)) < 0;
}

/* Goes on to the next pair of the stream. At its end the stream has none. */
static enum status
stream_next(struct history_versions *v, struct history_versions_stream *s)
{
	bool present = s == &v->streams[v->count - 1];
	enum status status;

	assert(s >= v->streams && s < v->streams + v->count);
	do {
		status = kv_scan_next(&s->scan, &s->pair);
		s->has_pair = status == STATUS_OK;
		if (!s->has_pair)
			return status == STATUS_NOT_FOUND ? STATUS_OK : status;
		if (present) {
			s->key = str_skip(s->pair.key, v->h->prefix.len);
			return STATUS_OK;
		}
		TRY(history_record_parse(s->pair.key, s->skip, &s->key, &s->us, &s->kind));
	} while (!record_counts(v, s->key));
	return STATUS_OK;
}

static enum status
stream_open(struct history_versions *v, size_t i)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(HISTORY_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(HISTORY_KEY_BYTES);
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	struct history_versions_stream *s = &v->streams[i];

	if (i == v->count - 1) {
		TRY(kv_scan_init(&s->scan, v->h->tx, buf_str(&v->begin), buf_str(&v->end),
				 &options));
	} else {
		uint64_t number = v->h->state->buckets[i].number;

		history_key_begin(v->h, number, v->h->prefix, &begin);
		s->skip = begin.len;
		history_key_begin(v->h, number, buf_str(&v->begin), &begin);
		history_key_begin(v->h, number, buf_str(&v->end), &end);
		/* Records of a key right before the end lie behind the end. */
		buf_append_byte(&end, HISTORY_KEY_LAST);
		TRY(buf_status(&begin));
		TRY(buf_status(&end));
		TRY(kv_scan_init(&s->scan, v->h->tx, buf_str(&begin), buf_str(&end), &options));
	}
	s->open = true;
	return stream_next(v, s);
}

/* ---- All of them ---- */

enum status
history_versions_open(struct history_versions *v, const struct history *h, struct str begin,
		      struct str end)
{
	*v = (struct history_versions){
		.h = h,
		.count = h->state->count + 1,
		.begin = BUF_INIT(HISTORY_KEY_BYTES),
		.end = BUF_INIT(HISTORY_KEY_BYTES),
		.key = BUF_INIT(HISTORY_KEY_BYTES),
	};
	buf_append_str(&v->begin, begin);
	buf_append_str(&v->end, end);
	TRY(buf_status(&v->begin));
	TRY(buf_status(&v->end));
	for (size_t i = 0; i < v->count; i++)
		TRY(stream_open(v, i));
	return STATUS_OK;
}

static struct history_versions_stream *
versions_least(struct history_versions *v)
{
	struct history_versions_stream *least = NULL;

	for (size_t i = 0; i < v->count; i++) {
		struct history_versions_stream *s = &v->streams[i];

		if (s->has_pair && (!least || str_cmp(s->key, least->key) < 0))
			least = s;
	}
	return least;
}

enum status
history_versions_next(struct history_versions *v, struct history_version *ret)
{
	struct history_versions_stream *s;

	/* The pair that was returned is valid until its stream goes on. */
	if (v->key.len) {
		assert(v->last && v->last->has_pair);
		buf_clear(&v->key);
		TRY(stream_next(v, v->last));
	}
	s = versions_least(v);
	if (!s)
		return STATUS_NOT_FOUND;
	v->last = s;
	buf_append_str(&v->key, v->h->prefix);
	buf_append_str(&v->key, s->key);
	TRY(buf_status(&v->key));
	*ret = (struct history_version){ .key = buf_str(&v->key), .until_us = HISTORY_PRESENT };
	if (s == &v->streams[v->count - 1]) {
		ret->there = true;
		ret->value = s->pair.value;
		return STATUS_OK;
	}
	ret->until_us = s->us;
	ret->added = s->kind == HISTORY_ADDED;
	ret->there = !ret->added && s->pair.value.len > 0;
	if (ret->there)
		ret->value = str_skip(s->pair.value, 1);
	return STATUS_OK;
}

void
history_versions_close(struct history_versions *v)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->streams[i].open)
			kv_scan_release(&v->streams[i].scan);
	buf_release(&v->begin);
	buf_release(&v->end);
	buf_release(&v->key);
	v->count = 0;
}
