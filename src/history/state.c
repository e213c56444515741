/* The record of the buckets. */
#include <assert.h>

#include "catalog/format.h"
#include "history/history_int.h"

enum {
	STATE_FORMAT_PLAIN = 1, /* buckets alone, as many as a bound by seconds makes */
	STATE_FORMAT_BYTES = 2, /* bytes may be bounded */
	STATE_FORMAT = 3,
};

/* The oldest format that can say all of it. */
static uint64_t
state_format(const struct history_state *state)
{
	bool plain = !state->most_bytes && state->count <= HISTORY_BUCKETS_PLAIN;

	if (history_state_forgets(state))
		return STATE_FORMAT;
	for (size_t i = 0; i < state->count; i++)
		plain = plain && !state->counts[i];
	return plain ? STATE_FORMAT_PLAIN : STATE_FORMAT_BYTES;
}

/* The bounds other than that by seconds, which whoever keeps the history has. */
static void
bounds_put(const struct history_state *state, uint64_t format, struct buf *value)
{
	tuple_open(value);
	tuple_put_u64(value, state->most_bytes);
	if (format > STATE_FORMAT_BYTES) {
		tuple_put_u64(value, state->most_versions);
		tuple_put_u64(value, state->versions_from);
		tuple_put_u64(value, state->versions_until);
	}
	tuple_close(value);
}

static enum status
bounds_parse(struct tuple_reader *r, uint64_t format, struct history_state *ret)
{
	struct tuple_reader bounds;

	TRY(tuple_next_nested(r, &bounds));
	TRY(tuple_next_u64(&bounds, &ret->most_bytes));
	if (format > STATE_FORMAT_BYTES) {
		TRY(tuple_next_u64(&bounds, &ret->most_versions));
		TRY(tuple_next_u64(&bounds, &ret->versions_from));
		TRY(tuple_next_u64(&bounds, &ret->versions_until));
	}
	if (!ret->most_versions != !ret->versions_from)
		return STATUS_CORRUPT;
	return bounds.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

void
history_state_put(const struct history_state *state, struct buf *value)
{
	uint64_t format = state_format(state);

	assert(state->count && state->count <= HISTORY_BUCKETS_MOST);
	tuple_put_u64(value, format);
	if (format > STATE_FORMAT_PLAIN)
		bounds_put(state, format, value);
	for (size_t i = 0; i < state->count; i++) {
		assert(!i || state->buckets[i - 1].number < state->buckets[i].number);
		tuple_put_u64(value, state->buckets[i].number);
		tuple_put_u64(value, state->buckets[i].start_us);
		if (format > STATE_FORMAT_PLAIN)
			tuple_put_bool(value, state->counts[i]);
	}
}

enum status
history_state_parse(struct str value, struct history_state *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	TRY(catalog_format_next(&r, "state of a history", STATE_FORMAT, &format, err));
	*ret = (struct history_state){ 0 };
	if (format > STATE_FORMAT_PLAIN)
		TRY(bounds_parse(&r, format, ret));
	while (r.rest.len) {
		struct history_bucket *b = &ret->buckets[ret->count];

		if (ret->count == HISTORY_BUCKETS_MOST)
			return STATUS_CORRUPT;
		TRY(tuple_next_u64(&r, &b->number));
		TRY(tuple_next_u64(&r, &b->start_us));
		if (format > STATE_FORMAT_PLAIN)
			TRY(tuple_next_bool(&r, &ret->counts[ret->count]));
		if (!b->number || (ret->count && b->number <= b[-1].number))
			return STATUS_CORRUPT;
		ret->count++;
	}
	/* A state is written in one way only. */
	return ret->count && format == state_format(ret) ? STATUS_OK : STATUS_CORRUPT;
}

uint64_t
history_oldest_us(const struct history_state *state)
{
	assert(state->count);
	return state->buckets[0].start_us;
}

enum status
history_newest_bucket(const struct history *h, uint64_t *ret)
{
	const struct kv_range_options options = { .limit = 1,
						  .mode = KV_SNAPSHOT,
						  .reverse = true };
	AUTO(buf_release) struct buf begin = BUF_INIT(HISTORY_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(HISTORY_KEY_BYTES);
	struct tuple_reader r;
	struct kv_range range;

	*ret = 0;
	buf_append_str(&begin, h->prefix);
	tuple_put_u64(&begin, h->space);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, HISTORY_KEY_LAST);
	TRY(history_pairs(h, &begin, &end, &options, &range));
	if (range.count == 0)
		return STATUS_OK;
	r = tuple_reader(str_skip(range.pairs[0].key, begin.len));
	return tuple_next_u64(&r, ret);
}
