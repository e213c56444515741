/*
 * The order of a sorted set: (body, ORDER, score and name) → score, and the name if it is cut. The
 * name is left out where even a record has no room for it (leaf.c): the member's pieces have it.
 */
#include "model/timed/items/item_int.h"

enum status
timed_zset_order(struct timed_item *item, double score, struct str name, struct str *ret)
{
	struct buf order;
	uint8_t bytes[TIMED_SCORE_BYTES];
	struct str cut;

	TRY(timed_cut(item->arena, name, &cut));
	order = timed_arena_buf(item->arena, TIMED_SCORE_BYTES + cut.len);
	timed_score_order(score, bytes);
	buf_append(&order, bytes, sizeof(bytes));
	buf_append_str(&order, cut);
	*ret = buf_str(&order);
	return buf_status(&order);
}

enum status
timed_zset_insert(struct timed_item *item, struct str name, double score)
{
	bool has_name = name.len > TIMED_WHOLE_BYTES &&
			name.len + TIMED_SCORE_BYTES <= TIMED_RECORD_BYTES;
	struct buf value = timed_arena_buf(item->arena,
					   TIMED_SCORE_BYTES + (has_name ? name.len : 0));
	uint8_t bytes[TIMED_SCORE_BYTES];
	struct str order, key;

	TRY(timed_zset_order(item, score, name, &order));
	TRY(timed_blocks_add(item, order, (struct str){ NULL, 0 }));
	timed_score_put(score, bytes);
	buf_append(&value, bytes, sizeof(bytes));
	if (has_name)
		buf_append_str(&value, name);
	TRY(buf_status(&value));
	TRY(timed_order_key(item, order, &key));
	return timed_data_set(item->t, key, buf_str(&value));
}

enum status
timed_zset_erase(struct timed_item *item, struct str name, double score, bool first)
{
	struct str order, key;

	TRY(timed_zset_order(item, score, name, &order));
	TRY(timed_blocks_remove(item, order, first));
	TRY(timed_order_key(item, order, &key));
	return timed_item_clear(item, key);
}
