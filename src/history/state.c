/* The record of the buckets. */
#include <assert.h>

#include "catalog/format.h"
#include "history/history.h"
#include "kv/tuple.h"

enum {
	STATE_FORMAT = 1,
};

void
history_state_put(const struct history_state *state, struct buf *value)
{
	assert(state->count && state->count <= HISTORY_BUCKETS_MOST);
	tuple_put_u64(value, STATE_FORMAT);
	for (size_t i = 0; i < state->count; i++) {
		assert(!i || state->buckets[i - 1].number < state->buckets[i].number);
		tuple_put_u64(value, state->buckets[i].number);
		tuple_put_u64(value, state->buckets[i].start_us);
	}
}

enum status
history_state_parse(struct str value, struct history_state *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	TRY(catalog_format_next(&r, "state of a history", STATE_FORMAT, &format, err));
	ret->count = 0;
	while (r.rest.len) {
		struct history_bucket *b = &ret->buckets[ret->count];

		if (ret->count == HISTORY_BUCKETS_MOST)
			return STATUS_CORRUPT;
		TRY(tuple_next_u64(&r, &b->number));
		TRY(tuple_next_u64(&r, &b->start_us));
		if (!b->number || (ret->count && b->number <= b[-1].number))
			return STATUS_CORRUPT;
		ret->count++;
	}
	return ret->count ? STATUS_OK : STATUS_CORRUPT;
}

uint64_t
history_oldest_us(const struct history_state *state)
{
	assert(state->count);
	return state->buckets[0].start_us;
}
