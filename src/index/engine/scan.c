#include "index/engine/scan.h"

#include <assert.h>

#include "catalog/keys.h"
#include "catalog/tally.h"
#include "index/engine/update.h"
#include "kv/few.h"

/* ---- A cursor ---- */

/* Moves one end of the range to behind `after`, in the direction of reading. */
static enum status
scan_resume(struct index_range *range, const struct buf *prefix, struct str after, bool reverse,
	    struct buf *place)
{
	buf_append_buf(place, prefix);
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

	assert(!options->only_values || def->form->find_values);
	*scan = (struct index_scan){ .def = def, .only_values = options->only_values };
	index_key_entries(&prefix, db, def->number);
	TRY(catalog_key_status(&prefix));
	scan->prefix_len = prefix.len;
	/* A range is one of this index: its entries are behind the prefix. */
	assert(str_starts_with(range->begin, buf_str(&prefix)));
	if (options->after.ptr)
		TRY(scan_resume(&from, &prefix, options->after, options->reverse, &place));
	return kv_scan_init_few(&scan->scan, tx, from.begin, from.end, &how, options->first);
}

enum status
index_scan_next(struct index_scan *scan, struct index_work *w, struct index_entry *ret)
{
	struct kv_pair pair;

	TRY(kv_scan_next(&scan->scan, &pair));
	TRY(index_count(w, 1));
	assert(pair.key.len >= scan->prefix_len);
	ret->key = str_skip(pair.key, scan->prefix_len);
	if (scan->only_values && scan->def->form->find_values(pair.value, &ret->values))
		return STATUS_OK;
	return index_entry_parse(scan->def, ret->key, pair.value, w->arena, ret);
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

/* Appends (P, ENTRIES), which keys have in front of what the counters know of them. */
static enum status
count_space(const struct catalog_db *db, struct buf *space)
{
	buf_append_str(space, db->prefix);
	tuple_put_u64(space, INDEX_SPACE_ENTRIES);
	return catalog_key_status(space);
}

/* The ends of a range, behind what keys have in front of that which the counters know of them. */
struct counted {
	size_t list;
	struct str begin, end;
};

static enum status
count_find(const struct catalog_db *db, const struct index_range *range, struct counted *ret)
{
	AUTO(buf_release) struct buf space = CATALOG_KEY_INIT;

	TRY(count_list(db, &ret->list));
	TRY(count_space(db, &space));
	assert(str_starts_with(range->begin, buf_str(&space)));
	ret->begin = str_skip(range->begin, space.len);
	ret->end = str_skip(range->end, space.len);
	return STATUS_OK;
}

enum status
index_range_count_exactly(struct kv_tx *tx, const struct catalog_db *db,
			  const struct index_range *range, uint64_t *ret)
{
	struct counted c;
	uint64_t low, high;

	TRY(count_find(db, range, &c));
	TRY(catalog_tally_rank(tx, db, c.list, c.begin, false, &low));
	TRY(catalog_tally_rank(tx, db, c.list, c.end, false, &high));
	*ret = high > low ? high - low : 0;
	return STATUS_OK;
}

/* Asks for one entry more than `few`. */
static struct kv_future *
count_ask(struct kv_tx *tx, const struct index_range *range, size_t few)
{
	const struct kv_range_options options = { .limit = few + 1, .mode = KV_SNAPSHOT };

	return kv_get_range(tx, range->begin, range->end, &options);
}

/* Of a range with more than `few` entries. */
static enum status
count_many(struct kv_tx *tx, const struct catalog_db *db, const struct index_range *range,
	   size_t few, uint64_t *ret)
{
	struct counted c;
	uint64_t keys;

	TRY(count_find(db, range, &c));
	if (!catalog_tally_estimate(db, c.list, c.begin, c.end, &keys))
		return index_range_count_exactly(tx, db, range, ret);
	*ret = keys > few ? keys : few + 1;
	return STATUS_OK;
}

static enum status
count_all(struct kv_tx *tx, const struct catalog_db *db, const struct index_range *ranges,
	  size_t count, size_t few, bool exactly, uint64_t *ret)
{
	struct kv_future *asked[INDEX_COUNT_RANGES];
	enum status status = STATUS_OK;

	assert(count <= INDEX_COUNT_RANGES);
	*ret = 0;
	for (size_t i = 0; i < count; i++)
		asked[i] = count_ask(tx, &ranges[i], few);
	for (size_t i = 0; i < count; i++) {
		uint64_t n = 0;
		bool many = false;

		if (status == STATUS_OK)
			status = kv_future_wait(asked[i]);
		if (status == STATUS_OK) {
			n = kv_future_range(asked[i]).count;
			many = kv_future_range(asked[i]).more || n > few;
		}
		kv_future_free(asked[i]);
		if (status == STATUS_OK && many)
			status = exactly ? index_range_count_exactly(tx, db, &ranges[i], &n)
					 : count_many(tx, db, &ranges[i], few, &n);
		*ret += n;
	}
	return status;
}

enum status
index_ranges_count(struct kv_tx *tx, const struct catalog_db *db, const struct index_range *ranges,
		   size_t count, size_t few, uint64_t *ret)
{
	return count_all(tx, db, ranges, count, few, false, ret);
}

enum status
index_ranges_count_exactly(struct kv_tx *tx, const struct catalog_db *db,
			   const struct index_range *ranges, size_t count, size_t few,
			   uint64_t *ret)
{
	/* The first entries of a single range would mostly be read in vain. */
	if (count == 1)
		return index_range_count_exactly(tx, db, ranges, ret);
	return count_all(tx, db, ranges, count, few, true, ret);
}

enum status
index_range_count(struct kv_tx *tx, const struct catalog_db *db, const struct index_range *range,
		  size_t few, uint64_t *ret)
{
	return index_ranges_count(tx, db, range, 1, few, ret);
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

enum status
index_measure(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
	      uint64_t *ret_entries, uint64_t *ret_bytes)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct index_range all;

	index_key_entries(&begin, db, def->number);
	TRY(catalog_key_status(&begin));
	TRY(tuple_prefix_end(buf_str(&begin), &end));
	all = (struct index_range){ .begin = buf_str(&begin), .end = buf_str(&end) };
	TRY(index_range_count_exactly(tx, db, &all, ret_entries));
	return kv_estimate_bytes(kv_tx_store(tx), all.begin, all.end, ret_bytes);
}
