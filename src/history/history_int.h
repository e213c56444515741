/* Keys of records of the past. */
#ifndef FROND_HISTORY_HISTORY_INT_H
#define FROND_HISTORY_HISTORY_INT_H

#include <endian.h>
#include <string.h>

#include "history/history.h"
#include "kv/tuple.h"

enum {
	HISTORY_KEY_BYTES = 2 * KV_LIMIT_KEY_BYTES,
	HISTORY_KEY_LAST = 0xff, /* behind every key that begins with this */
	HISTORY_THERE = 1,       /* the first byte of a record of a key that was there */
};

/* What a record is about. Stored: never renumber. */
enum history_kind {
	HISTORY_OLD = 0,
	HISTORY_ADDED = 1,
};

/* (P, UNDO, bucket, key… of a key of the database. */
static inline void
history_key_begin(const struct history *h, uint64_t bucket, struct str key, struct buf *ret)
{
	buf_clear(ret);
	buf_append_str(ret, h->prefix);
	tuple_put_u64(ret, h->space);
	tuple_put_u64(ret, bucket);
	buf_append_str(ret, str_skip(key, h->prefix.len));
}

/* The pairs between two keys, which are made already; fails if making one of them has failed. */
MUST_USE static inline enum status
history_pairs(const struct history *h, const struct buf *begin, const struct buf *end,
	      const struct kv_range_options *options, struct kv_range *ret)
{
	struct kv_future *f;

	TRY(buf_status(begin));
	TRY(buf_status(end));
	f = kv_get_range(h->tx, buf_str(begin), buf_str(end), options);
	TRY(kv_future_wait(f));
	*ret = kv_future_range(f);
	return STATUS_OK;
}

/*
 * What a record of additions says: their sum, and how many they were. Where bytes are not counted
 * it is the sum alone, in 8 bytes. Otherwise it is both, as one number of 16 bytes that is added to
 * without being read: `change` in the lower half, with its sign carried into the upper one, and 1
 * for each addition there. Two transactions of the same moment may add to one record.
 */
struct history_added {
	int64_t change;
	uint64_t times;
};

enum {
	HISTORY_ADDED_BYTES = 8,
	HISTORY_ADDED_COUNTED_BYTES = 16,
};

static inline struct str
history_added_put(int64_t change, bool counted, uint8_t room[static HISTORY_ADDED_COUNTED_BYTES])
{
	const uint64_t halves[2] = { htole64((uint64_t)change), htole64(change < 0 ? 0 : 1) };

	memcpy(room, halves, sizeof(halves));
	return str_of(room, counted ? HISTORY_ADDED_COUNTED_BYTES : HISTORY_ADDED_BYTES);
}

static inline bool
history_added_parse(struct str value, struct history_added *ret)
{
	uint64_t halves[2] = { 0 };

	if (value.len != HISTORY_ADDED_BYTES && value.len != HISTORY_ADDED_COUNTED_BYTES)
		return false;
	memcpy(halves, value.ptr, value.len);
	*ret = (struct history_added){ .change = (int64_t)le64toh(halves[0]), .times = 1 };
	if (value.len == HISTORY_ADDED_COUNTED_BYTES)
		ret->times = le64toh(halves[1]) + (ret->change < 0);
	return true;
}

/* Counts a record that is being written, if the newest bucket is one whose records are counted. */
MUST_USE enum status history_held_add(const struct history *h, struct str record,
				      size_t value_bytes);

#endif
