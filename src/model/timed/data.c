/*
 * Pairs of rows and bodies: every change of them goes through here, so that a database with history
 * keeps what they held before, and every read of them, so that it can be one of the past.
 */
#include <assert.h>
#include <endian.h>

#include "base/mem.h"
#include "kv/few.h"
#include "kv/head.h"
#include "kv/many.h"
#include "loop/step.h"
#include "model/timed/timed_int.h"
#include "model/timed/versions.h"

enum {
	STEPS_A_PAIR = 16, /* to read or to write one, and what goes with that */
};

struct history
timed_history_of(const struct timed *t)
{
	return (struct history){
		.tx = t->tx,
		.prefix = t->db->prefix,
		.space = TIMED_SPACE_UNDO,
		.held_space = TIMED_SPACE_HELD,
		.state = &t->state,
		.moment_us = t->at_us ? t->at_us : t->now_us,
	};
}

/* ---- Writing ---- */

enum status
timed_data_set(struct timed *t, struct str key, struct str value)
{
	assert(!t->at_us);
	TRY(step_count(STEPS_A_PAIR));
	if (t->has_history) {
		const struct history h = timed_history_of(t);

		TRY(history_change(&h, key));
	}
	return kv_set(t->tx, key, value);
}

enum status
timed_data_clear(struct timed *t, struct str key)
{
	assert(!t->at_us);
	TRY(step_count(STEPS_A_PAIR));
	if (t->has_history) {
		const struct history h = timed_history_of(t);

		TRY(history_change(&h, key));
	}
	return kv_clear(t->tx, key);
}

enum status
timed_data_clear_range(struct timed *t, struct str begin, struct str end)
{
	const struct history h = timed_history_of(t);

	assert(!t->at_us);
	if (t->has_history)
		TRY(history_change_range(&h, begin, end));
	return kv_clear_range(t->tx, begin, end);
}

enum status
timed_data_clear_below(struct timed *t, struct str key)
{
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	buf_append_str(&end, key);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	return timed_data_clear_range(t, key, buf_str(&end));
}

/*
 * Where one transaction stops to clear a range with a history: between two rows, unless the first
 * row alone has too many keys. `end` becomes that place; `*ret_more`: it is before the end.
 */
static enum status
clear_rows_cut(struct timed *t, struct str begin, struct buf *end, bool *ret_more)
{
	const struct kv_range_options options = { .limit = TIMED_CLEAR_KEYS, .mode = KV_SNAPSHOT };
	struct kv_future *f = kv_get_range(t->tx, begin, buf_str(end), &options);
	struct kv_range range;
	struct str last;
	size_t len, first_len;

	*ret_more = false;
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	if (!range.more)
		return STATUS_OK;
	assert(range.count); /* there is no more behind nothing */
	last = range.pairs[range.count - 1].key;
	TRY(timed_key_row_bytes(t->db, range.pairs[0].key, &first_len));
	TRY(timed_key_row_bytes(t->db, last, &len));
	*ret_more = true;
	buf_clear(end);
	buf_append(end, last.ptr, len);
	if (len == first_len && str_starts_with(range.pairs[0].key, str_of(last.ptr, len)))
		buf_append_byte(end, CATALOG_KEY_LAST);
	return catalog_key_status(end);
}

enum status
timed_data_clear_rows(struct timed *t, struct str begin, struct str end, bool *ret_more)
{
	AUTO(buf_release) struct buf until = CATALOG_KEY_INIT;

	*ret_more = false;
	buf_append_str(&until, end);
	TRY(catalog_key_status(&until));
	if (t->has_history)
		TRY(clear_rows_cut(t, begin, &until, ret_more));
	TRY(timed_touch(t));
	return timed_data_clear_range(t, begin, buf_str(&until));
}

enum status
timed_data_add(struct timed *t, struct str key, int64_t change)
{
	uint64_t operand = htole64((uint64_t)change);

	assert(!t->at_us);
	TRY(step_count(STEPS_A_PAIR));
	if (t->has_history) {
		const struct history h = timed_history_of(t);

		TRY(history_add(&h, key, change));
	}
	return kv_atomic(t->tx, KV_ADD, key, str_of(&operand, sizeof(operand)));
}

/* ---- Reading ---- */

enum status
timed_data_ask(struct timed *t, struct str key, enum kv_read mode, struct timed_got *ret)
{
	*ret = (struct timed_got){ .key = key };
	if (!t->at_us)
		ret->future = kv_get(t->tx, key, mode);
	return STATUS_OK;
}

enum status
timed_data_ask_head(struct timed *t, struct str key, enum kv_read mode, struct timed_got *ret)
{
	*ret = (struct timed_got){ .key = key };
	if (!t->at_us)
		ret->future = kv_get_head(t->tx, key, mode);
	return STATUS_OK;
}

void
timed_data_ask_many(struct timed *t, const struct str *keys, size_t count, enum kv_read mode,
		    struct timed_got *ret)
{
	struct kv_future *asked[KV_MANY] = { 0 };

	assert(count <= KV_MANY);
	if (!t->at_us)
		kv_get_many(t->tx, keys, count, mode, asked);
	for (size_t i = 0; i < count; i++)
		ret[i] = (struct timed_got){ .key = keys[i], .future = asked[i] };
}

enum status
timed_data_wait(struct timed *t, struct timed_got *got, struct arena *arena, struct str *ret)
{
	struct history h;

	if (got->future) {
		TRY(kv_future_wait(got->future));
		if (!kv_future_value(got->future, ret))
			*ret = (struct str){ NULL, 0 };
		return STATUS_OK;
	}
	/* What was not asked of the store is of the past. */
	assert(t->at_us);
	TRY(timed_now(t));
	TRY(timed_version_check(t, got->key));
	h = timed_history_of(t);
	return history_get(&h, got->key, arena, ret);
}

enum status
timed_data_get(struct timed *t, struct str key, enum kv_read mode, struct arena *arena,
	       struct str *ret)
{
	struct timed_got got;

	TRY(timed_data_ask(t, key, mode, &got));
	return timed_data_wait(t, &got, arena, ret);
}

enum status
timed_one_ask(struct timed *t, struct str begin, struct str end,
	      const struct kv_range_options *options, struct timed_one *ret)
{
	*ret = (struct timed_one){ .begin = begin, .end = end, .options = *options };
	if (!t->at_us)
		ret->future = kv_get_range(t->tx, begin, end, options);
	return STATUS_OK;
}

/* The same of the past; the pair is in the arena. */
static enum status
one_wait_past(struct timed *t, const struct timed_one *one, struct arena *arena,
	      struct kv_pair *ret)
{
	AUTO(timed_cursor_close) struct timed_cursor c = { 0 };
	struct kv_pair pair;

	TRY(timed_cursor_open(&c, t, one->begin, one->end, &one->options));
	TRY(timed_cursor_next(&c, &pair));
	return catalog_pair_copy(arena, pair.key, pair.value, ret);
}

enum status
timed_one_wait(struct timed *t, struct timed_one *one, struct arena *arena, struct kv_pair *ret)
{
	struct kv_range range;

	if (!one->future)
		return one_wait_past(t, one, arena, ret);
	TRY(kv_future_wait(one->future));
	range = kv_future_range(one->future);
	if (!range.count)
		return STATUS_NOT_FOUND;
	*ret = range.pairs[0];
	return STATUS_OK;
}

enum status
timed_cursor_open(struct timed_cursor *c, struct timed *t, struct str begin, struct str end,
		  const struct kv_range_options *options)
{
	return timed_cursor_open_few(c, t, begin, end, options, 0);
}

enum status
timed_cursor_open_few(struct timed_cursor *c, struct timed *t, struct str begin, struct str end,
		      const struct kv_range_options *options, size_t first)
{
	static const struct kv_range_options defaults;
	enum status status;

	options = options ? options : &defaults;
	if (!t->at_us)
		return kv_scan_init_few(&c->scan, t->tx, begin, end, options, first);
	assert(!c->past);
	TRY(timed_now(t));
	c->past = mem_zalloc(sizeof(*c->past));
	if (!c->past)
		return STATUS_NOMEM;
	c->history = timed_history_of(t);
	c->left = options->limit ? options->limit : SIZE_MAX;
	status = timed_horizons_open(t, begin, end, options->reverse, &c->horizons);
	if (status == STATUS_OK)
		status = history_scan_open(c->past, &c->history, begin, end, options->reverse);
	if (status != STATUS_OK)
		timed_cursor_close(c);
	return status;
}

void
timed_cursor_expect(struct timed_cursor *c, size_t pairs)
{
	if (!c->past)
		kv_scan_expect(&c->scan, pairs);
}

enum status
timed_cursor_next(struct timed_cursor *c, struct kv_pair *ret)
{
	enum status status;

	TRY(step_count(STEPS_A_PAIR));
	if (!c->past)
		return kv_scan_next(&c->scan, ret);
	if (!c->left)
		return STATUS_NOT_FOUND;
	c->left--;
	status = history_scan_next(c->past, ret);
	if (status == STATUS_OK)
		return timed_horizons_pass(c->horizons, ret->key);
	if (status == STATUS_NOT_FOUND)
		TRY(timed_horizons_pass(c->horizons, (struct str){ NULL, 0 }));
	return status;
}

void
timed_cursor_close(struct timed_cursor *c)
{
	if (c->past)
		history_scan_close(c->past);
	else
		kv_scan_release(&c->scan);
	mem_free(c->past);
	c->past = NULL;
	timed_horizons_close(c->horizons);
	c->horizons = NULL;
}
