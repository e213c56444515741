/* Keys of records of the past. */
#ifndef FROND_HISTORY_HISTORY_INT_H
#define FROND_HISTORY_HISTORY_INT_H

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

/* Gets the key that a record of UNDO is about, behind `skip` bytes, its moment and its kind. */
MUST_USE enum status history_record_parse(struct str record, size_t skip, struct str *ret_key,
					  uint64_t *ret_us, uint64_t *ret_kind);

#endif
