/* Counters by range: reading them, all of a list or those of some ranges. */
#include "catalog/tally_int.h"

/* ---- The whole ---- */

enum status
catalog_total_get(struct kv_tx *tx, const struct catalog_db *db, size_t list, struct buf *key,
		  struct catalog_total *ret)
{
	const struct catalog_tally_list *l = &db->kind->lists[list];

	*ret = (struct catalog_total){ 0 };
	for (size_t i = 0; i < 2 && l->total_names[i]; i++) {
		buf_clear(key);
		buf_append_str(key, db->prefix);
		tuple_put_u64(key, l->totals);
		tuple_put_str(key, str_from_cstr(l->total_names[i]));
		TRY(catalog_key_status(key));
		ret->parts[i] = kv_get(tx, buf_str(key), KV_SNAPSHOT);
	}
	return STATUS_OK;
}

enum status
catalog_total_wait(const struct catalog_total *total, uint64_t *ret)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < 2 && total->parts[i]; i++) {
		uint64_t n;

		TRY(catalog_counter_wait(total->parts[i], &n));
		sum += n;
	}
	*ret = sum;
	return STATUS_OK;
}

/* ---- All ranges ---- */

void
catalog_range_scan_end(struct catalog_range_scan *s)
{
	kv_scan_release(&s->scan);
	kv_future_free(s->total.parts[0]);
	kv_future_free(s->total.parts[1]);
}

enum status
catalog_range_scan_begin(struct kv_tx *tx, const struct catalog_db *db, size_t list,
			 struct catalog_range_scan *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_range_options options = { .limit_bytes = CATALOG_PAGE_BYTES,
					    .mode = KV_SNAPSHOT };

	TRY(catalog_total_get(tx, db, list, &key, &ret->total));
	catalog_key_tally(&key, db, list);
	ret->prefix_len = key.len;
	buf_append_buf(&end, &key);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&key));
	TRY(catalog_key_status(&end));
	return kv_scan_init(&ret->scan, tx, buf_str(&key), buf_str(&end), &options);
}

static enum status
ranges_collect(struct catalog_range_scan *s, struct arena *arena, struct catalog_ranges *ret)
{
	size_t cap = 0;
	struct kv_pair pair;
	enum status status;

	*ret = (struct catalog_ranges){ 0 };
	while ((status = kv_scan_next(&s->scan, &pair)) == STATUS_OK) {
		TRY(catalog_array_grow(arena, (void **)&ret->ranges, sizeof(*ret->ranges),
				       ret->count, &cap));
		TRY(catalog_range_parse(str_skip(pair.key, s->prefix_len), pair.value, arena,
					&ret->ranges[ret->count]));
		ret->rest -= ret->ranges[ret->count].count;
		ret->count++;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
catalog_range_scan_read(struct catalog_range_scan *s, struct arena *arena,
			struct catalog_ranges *ret)
{
	struct catalog_ranges all;

	TRY(ranges_collect(s, arena, &all));
	TRY(catalog_total_wait(&s->total, &all.total));
	all.rest += (int64_t)all.total;
	*ret = all;
	return STATUS_OK;
}

enum status
catalog_ranges_read_between(struct kv_tx *tx, const struct catalog_db *db, size_t list,
			    struct str lo, struct str hi, struct arena *arena,
			    struct catalog_ranges *ret)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(catalog_range_scan_end) struct catalog_range_scan s = { 0 };
	struct kv_range_options options = { .limit_bytes = CATALOG_PAGE_BYTES,
					    .mode = KV_SNAPSHOT };

	catalog_key_tally(&begin, db, list);
	s.prefix_len = begin.len;
	tuple_put_bytes(&begin, lo);
	catalog_key_tally(&end, db, list);
	tuple_put_bytes(&end, hi);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	TRY(kv_scan_init(&s.scan, tx, buf_str(&begin), buf_str(&end), &options));
	return ranges_collect(&s, arena, ret);
}

enum status
catalog_ranges_read(struct kv_tx *tx, const struct catalog_db *db, size_t list, struct arena *arena,
		    struct catalog_ranges *ret)
{
	AUTO(catalog_range_scan_end) struct catalog_range_scan s = { 0 };

	TRY(catalog_range_scan_begin(tx, db, list, &s));
	return catalog_range_scan_read(&s, arena, ret);
}
