/*
 * Bodies of items that are gone: (P, GONE, bucket, b"id") → ''. Where clearing a range costs as
 * much as it has keys, whoever deletes an item leaves such an entry, and the sweep clears the body
 * in slices. With history the bucket is the one in which the item went; the body stays as long as
 * the past can refer to it. Without, the bucket is 0.
 */
#include "model/timed/items/item_int.h"

/* Clears at most `*budget` keys of the body, and the entry when all are gone; else: `*ret_more`. */
static enum status
body_clear(struct kv_tx *tx, struct str entry, struct str body, size_t *budget, bool *ret_more)
{
	struct kv_range_options options = { .limit = *budget, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct kv_range range;

	buf_append_str(&end, body);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	f = kv_get_range(tx, body, buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	*budget -= range.count;
	if (!range.more) {
		TRY(kv_clear_range(tx, body, buf_str(&end)));
		return kv_clear(tx, entry);
	}
	*ret_more = true;
	buf_clear(&end);
	buf_append_str(&end, range.pairs[range.count - 1].key);
	buf_append_byte(&end, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&end));
	return kv_clear_range(tx, body, buf_str(&end));
}

enum status
timed_gone_sweep(struct timed *t, uint64_t *ret_done, bool *ret_more)
{
	const struct kv_range_options options = { .limit = TIMED_SWEEP_KEYS, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf body = CATALOG_KEY_INIT;
	size_t budget = TIMED_SWEEP_KEYS;
	struct kv_future *f;
	struct kv_range range;

	/* A body that went in a bucket which is still read stays. */
	TRY(timed_history_unread(t, TIMED_SPACE_GONE, &begin, &end));
	f = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count && budget; i++) {
		struct tuple_reader r = tuple_reader(str_skip(range.pairs[i].key, begin.len));
		uint64_t bucket;

		TRY(tuple_next_u64(&r, &bucket));
		timed_key_space(&body, t->db, TIMED_SPACE_BODY);
		buf_append_str(&body, r.rest);
		TRY(catalog_key_status(&body));
		TRY(body_clear(t->tx, range.pairs[i].key, buf_str(&body), &budget, ret_more));
		++*ret_done;
	}
	*ret_more = *ret_more || range.more || (range.count && !budget);
	return STATUS_OK;
}
