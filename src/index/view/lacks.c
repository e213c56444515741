/* Which documents a view lacks rows of. */
#include "index/view/keys.h"
#include "index/view/read.h"
#include "index/view/record.h"

/* The range of notes of one map; of a partition alone where there is one. */
static enum status
lacks_range(const struct catalog_db *db, const struct view_group *group, size_t map,
	    struct str partition, struct buf *lo, struct buf *hi, size_t *ret_prefix_len)
{
	AUTO(buf_release) struct buf id = CATALOG_KEY_INIT;

	view_key_group(lo, db, VIEW_KEYS_LACKS, group->number);
	tuple_put_u64(lo, map);
	TRY(catalog_key_status(lo));
	*ret_prefix_len = lo->len;
	if (!group->partitioned)
		return view_prefix_end(buf_str(lo), hi);
	/* Ids of a partition are its name, a colon and more. */
	buf_append_buf(hi, lo);
	buf_append_str(&id, partition);
	buf_append_byte(&id, ':');
	TRY(buf_status(&id));
	tuple_put_str(lo, buf_str(&id));
	id.ptr[id.len - 1] = ':' + 1;
	tuple_put_str(hi, buf_str(&id));
	TRY(catalog_key_status(lo));
	return catalog_key_status(hi);
}

enum status
view_lacks_list(struct kv_tx *tx, const struct catalog_db *db, const struct view_group *group,
		size_t map, struct str partition, size_t most, struct arena *arena,
		struct view_lacking *ret, size_t *ret_count, bool *ret_more)
{
	const struct kv_range_options options = { .limit = most, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct kv_range range;
	size_t prefix_len;

	*ret_count = 0;
	*ret_more = false;
	if (!group->lacking[map])
		return STATUS_OK;
	TRY(lacks_range(db, group, map, partition, &lo, &hi, &prefix_len));
	f = kv_get_range(tx, buf_str(&lo), buf_str(&hi), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++) {
		struct tuple_reader r = tuple_reader(str_skip(range.pairs[i].key, prefix_len));
		struct view_lacking *lacking = &ret[i];
		struct view_lack lack;

		TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &lacking->id));
		TRY(view_lack_parse(range.pairs[i].value, &lack, kv_tx_err(tx)));
		lacking->rows = lack.rows;
		TRY(arena_copy(arena, lack.limit, &lacking->limit));
	}
	*ret_count = range.count;
	*ret_more = range.more;
	return STATUS_OK;
}
