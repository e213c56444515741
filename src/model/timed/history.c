/*
 * The history of a database: switching it on and off, its buckets, clearing what is too old.
 *
 *     (P, UNDO, …) → what keys held (history/history.h)
 *     (P, HISTORY) → the buckets there are, the oldest first
 *     (P, HELD, …) → how many bytes the records of each have, if bytes are bounded
 *
 * The oldest moment that can be read is the start of the oldest bucket in HISTORY. A bucket is
 * taken out of HISTORY in one transaction, and cleared in later ones, so a transaction that has
 * begun to read a moment never sees a part of its past cleared.
 */
#include <assert.h>

#include "model/timed/timed_int.h"
#include "model/timed/versions.h"

enum {
	HISTORY_NUMBER_SHIFT = 20, /* of a moment, for the number of the first bucket */
};

/* ---- Buckets ---- */

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

/* How many of the oldest buckets are older than the window. */
static size_t
buckets_beyond_window(const struct history_state *state, uint64_t now_us, uint64_t window_us)
{
	size_t gone = 0;

	while (gone + 1 < state->count && state->buckets[gone + 1].start_us &&
	       state->buckets[gone + 1].start_us + window_us <= now_us)
		gone++;
	return gone;
}

/* How many of them hold what all newer ones leave no bytes for. The newest one stays. */
static size_t
buckets_beyond_bytes(const struct history_state *state, const struct history_held *held)
{
	uint64_t sum = 0;

	if (!state->most_bytes)
		return 0;
	for (size_t i = state->count; i-- > 0;) {
		sum += held->bytes[i];
		if (sum > state->most_bytes)
			return i + 1 < state->count ? i + 1 : i;
	}
	return 0;
}

/* Takes the oldest buckets out of the state. Their records are cleared by other transactions. */
static enum status
buckets_end(struct timed *t, size_t gone)
{
	const struct history h = timed_history_of(t);
	struct history_state *state = &t->state;

	assert(gone < state->count);
	if (!gone)
		return STATUS_OK;
	state->count -= gone;
	memmove(state->buckets, state->buckets + gone, state->count * sizeof(*state->buckets));
	memmove(state->counts, state->counts + gone, state->count * sizeof(*state->counts));
	if (!state->most_bytes)
		return STATUS_OK;
	TRY(timed_weigh_forget(t, state->buckets[0].number));
	return history_held_forget(&h, state->buckets[0].number);
}

/* Begins a bucket. Its start will be what the stored clock says then, so that is moved to now. */
static enum status
bucket_begin(struct timed *t)
{
	const struct history h = timed_history_of(t);
	struct history_state *state = &t->state;
	uint64_t number;

	/* If the window was made longer, there are fewer buckets than it would take. */
	if (state->count == HISTORY_BUCKETS_MOST)
		TRY(buckets_end(t, 1));
	TRY(timed_now_write(t));
	number = state->buckets[state->count - 1].number + 1;
	state->buckets[state->count] = (struct history_bucket){ .number = number };
	state->counts[state->count] = state->most_bytes > 0;
	state->count++;
	return state->most_bytes ? history_held_begin(&h, number) : STATUS_OK;
}

/* ---- The bounds ---- */

static enum status
bounds_check(struct timed *t, struct timed_history_bounds bounds)
{
	if (bounds.seconds > TIMED_HISTORY_SECONDS)
		return err_set(t->err, STATUS_INVALID,
			       "a history has %d seconds at most (TIMED_HISTORY_SECONDS)",
			       TIMED_HISTORY_SECONDS);
	if (bounds.bytes > INT64_MAX)
		return err_set(t->err, STATUS_INVALID, "a history has %lld bytes at most",
			       (long long)INT64_MAX);
	if (bounds.versions > TIMED_HISTORY_VERSIONS)
		return err_set(t->err, STATUS_INVALID,
			       "a history has %d versions at most (TIMED_HISTORY_VERSIONS)",
			       TIMED_HISTORY_VERSIONS);
	if (bounds.versions && !timed_kind_of(t->db)->body_of)
		return err_set(t->err, STATUS_INVALID,
			       "a database of this kind cannot bound versions");
	if (!bounds.seconds && (bounds.bytes || bounds.versions))
		return err_set(t->err, STATUS_INVALID,
			       "a history of 0 seconds has no bytes and no versions");
	return STATUS_OK;
}

/* Clears all that is kept for a bound by versions. */
static enum status
versions_forget(struct timed *t)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	timed_key_space(&begin, t->db, TIMED_SPACE_VERSIONS);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	TRY(kv_clear_range(t->tx, buf_str(&begin), buf_str(&end)));
	return timed_trim_end(t);
}

/* Ends the history: the records that it has left are cleared by the sweep. */
static enum status
history_end(struct timed *t)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	const struct history h = timed_history_of(t);

	TRY(timed_history_key(t->db, &key));
	TRY(kv_clear(t->tx, buf_str(&key)));
	TRY(timed_weigh_forget(t, UINT64_MAX));
	TRY(history_held_forget(&h, UINT64_MAX));
	return versions_forget(t);
}

/*
 * Sets the bound by versions, in a bucket that begins with it if there was none. What was forgotten
 * stays so without one, and cannot be read.
 */
static enum status
versions_bound(struct timed *t, uint64_t versions)
{
	struct history_state *state = &t->state;
	uint64_t old = state->most_versions, last = state->buckets[state->count - 1].number;

	state->most_versions = versions;
	if (!versions) {
		state->versions_from = 0;
		state->versions_until = last;
		return old ? timed_trim_end(t) : STATUS_OK;
	}
	state->versions_until = 0;
	if (!old)
		state->versions_from = last;
	return versions < old ? timed_trim_all(t) : STATUS_OK;
}

/*
 * Sets the bounds of a history that there is. Writers count the records of a bucket, and note what
 * they change, from its beginning or not at all, so where that changes another bucket begins.
 */
static enum status
history_bound(struct timed *t, const struct timed_history_bounds *bounds)
{
	struct history_state *state = &t->state;
	struct history_bucket *last = &state->buckets[state->count - 1];
	const struct history h = timed_history_of(t);
	bool counts = !bounds->bytes != !state->most_bytes;
	bool notes = !bounds->versions != !state->most_versions;

	if (bounds->bytes == state->most_bytes && bounds->versions == state->most_versions)
		return STATUS_OK;
	state->most_bytes = bounds->bytes;
	if (counts && !bounds->bytes) {
		TRY(timed_weigh_forget(t, UINT64_MAX));
		TRY(history_held_forget(&h, UINT64_MAX));
	}
	if (counts || notes) {
		if (!last->start_us)
			TRY(clock_read(t, &last->start_us));
		TRY(bucket_begin(t));
	}
	if (counts && bounds->bytes)
		TRY(timed_weigh_begin(t, state->buckets[state->count - 1].number));
	if (bounds->versions != state->most_versions)
		TRY(versions_bound(t, bounds->versions));
	return timed_history_write(t);
}

enum status
timed_history_set(struct timed *t, struct timed_history_bounds bounds)
{
	const struct history h = timed_history_of(t);
	uint64_t first;

	TRY(bounds_check(t, bounds));
	TRY(timed_write_begin(t));
	TRY(catalog_option_set(t->tx, t->db, TIMED_OPTION_HISTORY_SECONDS, bounds.seconds, t->err));
	if (!bounds.seconds)
		return history_end(t);
	if (t->has_history)
		return history_bound(t, &bounds);
	/*
	 * The records of an earlier history may still be there. Its buckets must have had lower
	 * numbers, or clearing them would take records of this one. Numbers are made of the clock,
	 * so one of now is mostly higher. It is not if the earlier history ended at nearly the
	 * same moment, or if its buckets filled so fast that their numbers ran ahead of the clock.
	 */
	TRY(history_newest_bucket(&h, &first));
	first++;
	if (first < t->now_us >> HISTORY_NUMBER_SHIFT)
		first = t->now_us >> HISTORY_NUMBER_SHIFT;
	t->state = (struct history_state){
		.buckets = { { .number = first } },
		.count = 1,
		.counts = { bounds.bytes > 0 },
		.most_bytes = bounds.bytes,
		.most_versions = bounds.versions,
	};
	if (bounds.versions)
		t->state.versions_from = t->state.buckets[0].number;
	if (bounds.bytes)
		TRY(history_held_begin(&h, t->state.buckets[0].number));
	return timed_history_write(t);
}

/* True if the newest bucket has its share of the window, or of the bytes. */
static bool
bucket_is_full(const struct timed *t, const struct history_held *held, uint64_t window_us)
{
	const struct history_state *state = &t->state;
	uint64_t share = state->most_bytes / HISTORY_BUCKETS;
	size_t last = state->count - 1;

	if (state->buckets[last].start_us + window_us / HISTORY_BUCKETS <= t->now_us)
		return true;
	return state->most_bytes && held->bytes[last] > share;
}

enum status
timed_history_tend(struct timed *t, struct timed_tended *ret)
{
	uint64_t window_us = timed_history_seconds(t->db) * 1000 * TIMED_US_PER_MS;
	const struct history h = timed_history_of(t);
	struct history_state *state = &t->state;
	struct history_held held = { 0 };
	struct history_bucket *last;
	size_t old, beyond;
	bool full;

	*ret = (struct timed_tended){ 0 };
	if (!t->has_history)
		return STATUS_OK;
	last = &state->buckets[state->count - 1];
	if (!last->start_us) {
		/* Whoever writes in this bucket has seen it, and with it all that was before. */
		TRY(clock_read(t, &last->start_us));
		ret->changed = true;
		return timed_history_write(t);
	}
	if (state->most_bytes)
		TRY(history_held_read(&h, &held));
	full = bucket_is_full(t, &held, window_us);
	beyond = buckets_beyond_bytes(state, &held);
	if (!full && !beyond)
		return STATUS_OK;
	old = buckets_beyond_window(state, t->now_us, window_us);
	ret->ended[TIMED_HISTORY_BY_SECONDS] = (unsigned)old;
	ret->ended[TIMED_HISTORY_BY_BYTES] = beyond > old ? (unsigned)(beyond - old) : 0;
	TRY(buckets_end(t, old + ret->ended[TIMED_HISTORY_BY_BYTES]));
	if (full)
		TRY(bucket_begin(t));
	ret->changed = true;
	return timed_history_write(t);
}

enum status
timed_history_begin(struct timed *t)
{
	struct timed_tended ignored;

	TRY(timed_now(t));
	return timed_history_tend(t, &ignored);
}

enum status
timed_history_count(struct timed *t, uint64_t *ret_done, bool *ret_more)
{
	const struct history h = timed_history_of(t);
	struct history_held held;
	size_t records;

	if (!t->has_history || !t->state.most_bytes)
		return STATUS_OK;
	TRY(history_held_read(&h, &held));
	if (held.all)
		return timed_weigh(t, ret_done, ret_more);
	TRY(history_held_count(&h, &held, &records));
	*ret_done += records;
	/* What went is weighed when all records are counted. */
	*ret_more = true;
	return STATUS_OK;
}

enum status
timed_history_bounds_get(struct timed *t, struct timed_history_bounds *ret)
{
	TRY(timed_now(t));
	*ret = (struct timed_history_bounds){ .seconds = timed_history_seconds(t->db) };
	if (t->has_history) {
		ret->bytes = t->state.most_bytes;
		ret->versions = t->state.most_versions;
	}
	return STATUS_OK;
}

enum status
timed_history_info_get(struct timed *t, struct timed_history_info *ret)
{
	const struct history h = timed_history_of(t);
	struct history_held held = { 0 };
	uint64_t us;

	*ret = (struct timed_history_info){ 0 };
	TRY(timed_history_bounds_get(t, &ret->bounds));
	if (!t->has_history)
		return STATUS_OK;
	us = history_oldest_us(&t->state);
	/* All of the millisecond is readable. */
	ret->oldest_ms = (us + TIMED_US_PER_MS - 1) / TIMED_US_PER_MS;
	if (!ret->bounds.bytes)
		return STATUS_OK;
	TRY(history_held_read(&h, &held));
	ret->held_bytes = held.sum;
	TRY(timed_weigh_is_done(t, &ret->held_all));
	ret->held_all = ret->held_all && held.all;
	return STATUS_OK;
}

enum status
timed_history_unread(const struct timed *t, enum timed_space space, struct buf *begin,
		     struct buf *end)
{
	timed_key_space(begin, t->db, space);
	buf_append_buf(end, begin);
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
	/* A description that was made anew by a salvage has forgotten its history. */
	if (!t->has_history)
		TRY(history_end(t));
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
