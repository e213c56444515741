#include "index/engine/scan.h"

#include "catalog/keys.h"
#include "catalog/tally.h"
#include "index/engine/update.h"

/* ---- A cursor ---- */

/* Moves one end of the range to behind `after`, in the direction of reading. */
static enum status
scan_resume(struct index_range *range, const struct buf *prefix, struct str after, bool reverse,
	    struct buf *place)
{
	buf_append_str(place, buf_str(prefix));
	buf_append_str(place, after);
	if (!reverse)
		buf_append_byte(place, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(place));
	if (!reverse && str_cmp(buf_str(place), range->begin) > 0)
		range->begin = buf_str(place);
	if (reverse && str_cmp(buf_str(place), range->end) < 0)
		range->end = buf_str(place);
	return STATUS_OK;
}

enum status
index_scan_init(struct index_scan *scan, struct kv_tx *tx, const struct catalog_db *db,
		const struct index_def *def, const struct index_range *range,
		const struct index_scan_options *options)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf place = CATALOG_KEY_INIT;
	const struct kv_range_options how = {
		.limit = options->limit,
		.limit_bytes = options->limit_bytes,
		.reverse = options->reverse,
		.ahead = options->ahead,
		.mode = options->mode,
	};
	struct index_range from = *range;

	*scan = (struct index_scan){ .def = def };
	index_key_entries(&prefix, db, def->number);
	TRY(catalog_key_status(&prefix));
	scan->prefix_len = prefix.len;
	if (options->after.ptr)
		TRY(scan_resume(&from, &prefix, options->after, options->reverse, &place));
	return kv_scan_init(&scan->scan, tx, from.begin, from.end, &how);
}

enum status
index_scan_next(struct index_scan *scan, struct index_work *w, struct index_entry *ret)
{
	struct kv_pair pair;

	TRY(kv_scan_next(&scan->scan, &pair));
	TRY(index_count(w, 1));
	return index_entry_parse(scan->def, str_skip(pair.key, scan->prefix_len), pair.value,
				 w->arena, ret);
}

void
index_scan_release(struct index_scan *scan)
{
	kv_scan_release(&scan->scan);
}

/* ---- Counting ---- */

/* Which of the kind's lists the entries are. */
static enum status
count_list(const struct catalog_db *db, size_t *ret)
{
	for (size_t i = 0; i < db->kind->lists_count; i++) {
		if (db->kind->lists[i].space == INDEX_SPACE_ENTRIES) {
			*ret = i;
			return STATUS_OK;
		}
	}
	return STATUS_UNSUPPORTED;
}

enum status
index_range_count(struct kv_tx *tx, const struct catalog_db *db, const struct index_range *range,
		  size_t few, uint64_t *ret)
{
	const struct kv_range_options options = { .limit = few + 1, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf space = CATALOG_KEY_INIT;
	struct kv_future *f = kv_get_range(tx, range->begin, range->end, &options);
	enum status status = kv_future_wait(f);
	struct str begin, end;
	uint64_t low, high;
	size_t list;

	TRY(status);
	if (!kv_future_range(f).more && kv_future_range(f).count <= few) {
		*ret = kv_future_range(f).count;
		kv_future_free(f);
		return STATUS_OK;
	}
	kv_future_free(f);
	TRY(count_list(db, &list));
	buf_append_str(&space, db->prefix);
	tuple_put_u64(&space, INDEX_SPACE_ENTRIES);
	TRY(catalog_key_status(&space));
	begin = str_skip(range->begin, space.len);
	end = str_skip(range->end, space.len);
	if (catalog_tally_estimate(db, list, begin, &low) &&
	    catalog_tally_estimate(db, list, end, &high)) {
		*ret = high > low + few ? high - low : few + 1;
		return STATUS_OK;
	}
	TRY(catalog_tally_rank(tx, db, list, begin, false, &low));
	TRY(catalog_tally_rank(tx, db, list, end, false, &high));
	*ret = high > low ? high - low : 0;
	return STATUS_OK;
}

enum status
index_total_count(struct kv_tx *tx, const struct catalog_db *db, uint64_t *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	size_t list;

	TRY(count_list(db, &list));
	buf_append_str(&key, db->prefix);
	tuple_put_u64(&key, db->kind->lists[list].totals);
	tuple_put_str(&key, STR(INDEX_STAT_ENTRIES));
	TRY(catalog_key_status(&key));
	return catalog_counter_wait(kv_get(tx, buf_str(&key), KV_SNAPSHOT), ret);
}
