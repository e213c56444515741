/*
 * The history of a database: switching it on and off, its buckets, clearing what is too old.
 *
 *     (P, UNDO, …) → what keys held (history/history.h)
 *     (P, HISTORY) → the buckets there are, the oldest first
 *
 * The oldest moment that can be read is the start of the oldest bucket in HISTORY. A bucket is
 * taken out of HISTORY in one transaction, and cleared in later ones, so a transaction that has
 * begun to read a moment never sees a part of its past cleared.
 */
#include <assert.h>

#include "model/timed/timed_int.h"

enum {
	HISTORY_VALUE_BYTES = 1000, /* of the state */
	HISTORY_NUMBER_SHIFT = 20,  /* of a moment, for the number of the first bucket */
};

static enum status
state_write(struct kv_tx *tx, const struct catalog_db *db, const struct history_state *state)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(HISTORY_VALUE_BYTES);

	TRY(timed_history_key(db, &key));
	history_state_put(state, &value);
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

enum status
timed_history_set(struct timed *t, uint64_t seconds)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct history_state state = { .count = 1 };

	if (seconds > TIMED_HISTORY_SECONDS)
		return err_set(t->err, STATUS_INVALID,
			       "a history has %d seconds at most (TIMED_HISTORY_SECONDS)",
			       TIMED_HISTORY_SECONDS);
	TRY(timed_write_begin(t));
	TRY(catalog_option_set(t->tx, t->db, TIMED_OPTION_HISTORY_SECONDS, seconds, t->err));
	if (!seconds) {
		TRY(timed_history_key(t->db, &key));
		return kv_clear(t->tx, buf_str(&key));
	}
	if (t->has_history)
		return STATUS_OK;
	/* Greater than the number of every bucket of an earlier history. */
	state.buckets[0].number = t->now_us >> HISTORY_NUMBER_SHIFT;
	return state_write(t->tx, t->db, &state);
}

/* The moment of the latest write, which no write in a bucket that has ended is behind. */
static enum status
clock_read(struct timed *t, uint64_t *ret_us)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value;

	timed_key_space(&key, t->db, TIMED_SPACE_CLOCK);
	TRY(catalog_key_status(&key));
	f = kv_get(t->tx, buf_str(&key), KV_SNAPSHOT);
	TRY(kv_future_wait(f));
	*ret_us = 1;
	return kv_future_value(f, &value) ? timed_clock_parse(value, ret_us) : STATUS_OK;
}

/* Takes buckets away that are older than the window. */
static void
state_shorten(struct history_state *state, uint64_t now_us, uint64_t window_us)
{
	size_t gone = 0;

	while (gone + 1 < state->count && state->buckets[gone + 1].start_us &&
	       state->buckets[gone + 1].start_us + window_us <= now_us)
		gone++;
	/* If the window was made longer, there are fewer buckets than it would take. */
	if (state->count - gone == HISTORY_BUCKETS_MOST)
		gone++;
	assert(gone < state->count);
	state->count -= gone;
	memmove(state->buckets, state->buckets + gone, state->count * sizeof(*state->buckets));
	/* There is room for the new one. */
	assert(state->count < HISTORY_BUCKETS_MOST);
}

enum status
timed_history_tend(struct timed *t, bool *ret_changed)
{
	uint64_t window_us = timed_history_seconds(t->db) * 1000 * TIMED_US_PER_MS;
	struct history_state *state = &t->state;
	struct history_bucket *last;

	*ret_changed = false;
	if (!t->has_history)
		return STATUS_OK;
	last = &state->buckets[state->count - 1];
	if (!last->start_us) {
		/* Whoever writes in this bucket has seen it, and with it all that was before. */
		TRY(clock_read(t, &last->start_us));
	} else if (last->start_us + window_us / HISTORY_BUCKETS <= t->now_us) {
		uint64_t number = last->number + 1;

		/* So that the start of the new bucket, which the clock tells, is not before now. */
		TRY(timed_now_write(t));
		state_shorten(state, t->now_us, window_us);
		state->buckets[state->count++] = (struct history_bucket){ .number = number };
	} else {
		return STATUS_OK;
	}
	*ret_changed = true;
	return state_write(t->tx, t->db, state);
}

enum status
timed_history_begin(struct timed *t)
{
	bool changed;

	TRY(timed_now(t));
	return timed_history_tend(t, &changed);
}

enum status
timed_history_oldest(struct timed *t, uint64_t *ret_ms)
{
	uint64_t us;

	TRY(timed_now(t));
	us = t->has_history ? history_oldest_us(&t->state) : 0;
	/* All of the millisecond is readable. */
	*ret_ms = (us + TIMED_US_PER_MS - 1) / TIMED_US_PER_MS;
	return STATUS_OK;
}

enum status
timed_history_unread(const struct timed *t, enum timed_space space, struct buf *begin,
		     struct buf *end)
{
	timed_key_space(begin, t->db, space);
	buf_append_str(end, buf_str(begin));
	if (t->has_history)
		tuple_put_u64(end, t->state.buckets[0].number);
	else
		buf_append_byte(end, CATALOG_KEY_LAST);
	return catalog_key_status(end);
}

enum status
timed_history_clear(struct timed *t, uint64_t *ret_done, bool *ret_more)
{
	const struct kv_range_options options = { .limit = HISTORY_CLEAR_KEYS,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct kv_range range;

	TRY(timed_history_unread(t, TIMED_SPACE_UNDO, &begin, &end));
	f = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	if (!range.count)
		return STATUS_OK;
	*ret_done += range.count;
	if (range.more && !kv_clears_cheaply(kv_tx_store(t->tx))) {
		*ret_more = true;
		buf_clear(&end);
		buf_append_str(&end, range.pairs[range.count - 1].key);
		buf_append_byte(&end, CATALOG_KEY_NEXT);
		TRY(catalog_key_status(&end));
	}
	return kv_clear_range(t->tx, buf_str(&begin), buf_str(&end));
}
