/*
 * Counters by range, the readers' side: this finds how many keys of a list come before a key.
 *
 * Ranges may overlap. Ranges that overlap one after another form a region. The counters of a region
 * together say how many keys are in it, but no counter alone says how many are in a part of it. So
 * a reader adds up whole regions, and counts keys one by one in the region that holds the key
 * itself.
 */
#include <assert.h>

#include "catalog/stretches.h"
#include "catalog/tally_int.h"

enum status
catalog_tally_cut(struct kv_tx *tx, const struct catalog_db *db, size_t list, size_t parts,
		  struct arena *arena, struct str *ret_bounds, size_t *ret_count,
		  uint64_t *ret_keys)
{
	struct catalog_ranges all;
	size_t count = 0;
	int64_t seen = 0;

	assert(parts > 0);
	TRY(catalog_ranges_read(tx, db, list, arena, &all));
	for (size_t i = 0; i < all.count && count + 1 < parts; i++) {
		struct str lo = all.ranges[i].lo;
		int64_t due = (int64_t)(all.total / parts * (count + 1));

		/* Ranges may overlap while they are tended, so bounds must be seen to ascend. */
		if (lo.len && seen > 0 && seen >= due &&
		    (count == 0 || str_cmp(ret_bounds[count - 1], lo) < 0))
			ret_bounds[count++] = lo;
		seen += all.ranges[i].count;
	}
	*ret_count = count;
	*ret_keys = all.total;
	return STATUS_OK;
}

enum status
catalog_tally_stretches(struct kv_tx *tx, const struct catalog_db *db, size_t list,
			struct arena *arena, struct catalog_stretch **ret, size_t *ret_count)
{
	struct catalog_ranges all;
	size_t count = 0;

	*ret_count = 0;
	TRY(catalog_ranges_read(tx, db, list, arena, &all));
	*ret = arena_alloc(arena, all.count * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	/* Keys that are in no range may be anywhere. */
	if (all.rest)
		return STATUS_OK;
	for (size_t i = 0; i < all.count; i++) {
		const struct catalog_range *range = &all.ranges[i];
		struct catalog_stretch *last = count ? &(*ret)[count - 1] : NULL;

		if (last && str_cmp(range->lo, last->hi) < 0) {
			/* A part of a sum may be negative, and the whole is not. */
			last->keys += (uint64_t)range->count;
			if (str_cmp(range->hi, last->hi) > 0)
				last->hi = range->hi;
		} else {
			(*ret)[count++] = (struct catalog_stretch){ range->lo, range->hi,
								    (uint64_t)range->count };
		}
	}
	for (size_t i = 0; i < count; i++)
		if ((int64_t)(*ret)[i].keys < 0)
			return STATUS_CORRUPT;
	*ret_count = count;
	return STATUS_OK;
}

/* ---- One place ---- */

enum {
	/* A region with more keys is counted from both sides of the place at a time. */
	ONE_SIDE_KEYS = 4096,
	SIDE_BYTES = 16 * 1024, /* a page of each side then */
};

/* The sums of the counters before and after a key, while the regions are read in order. */
struct place {
	struct str at;
	struct buf lo; /* the bounds of the region that is being added up */
	struct buf hi;
	int64_t count;
	bool any;
	int64_t before;
	int64_t after;
	int64_t all;
	bool inside; /* the key is within a region, whose bounds are in_lo and in_hi */
	struct buf in_lo;
	struct buf in_hi;
	int64_t in_count; /* of the counters of that region; 0: they are not to be believed */
};

static void
place_release(struct place *p)
{
	buf_release(&p->lo);
	buf_release(&p->hi);
	buf_release(&p->in_lo);
	buf_release(&p->in_hi);
}

static void
place_put(struct buf *b, struct str s)
{
	buf_clear(b);
	buf_append_str(b, s);
}

/*
 * Adds the region that has ended to the sum for its side of the key, or notes that it holds the
 * key.
 */
static void
place_close(struct place *p)
{
	if (!p->any)
		return;
	p->all += p->count;
	if (str_cmp(buf_str(&p->hi), p->at) <= 0) {
		p->before += p->count;
	} else if (str_cmp(buf_str(&p->lo), p->at) >= 0) {
		p->after += p->count;
	} else {
		p->inside = true;
		p->in_count = p->count;
		place_put(&p->in_lo, buf_str(&p->lo));
		place_put(&p->in_hi, buf_str(&p->hi));
	}
}

static enum status
place_add(struct place *p, const struct catalog_range *range)
{
	if (p->any && str_cmp(range->lo, buf_str(&p->hi)) < 0) {
		p->count += range->count;
		if (str_cmp(range->hi, buf_str(&p->hi)) > 0)
			place_put(&p->hi, range->hi);
	} else {
		place_close(p);
		place_put(&p->lo, range->lo);
		place_put(&p->hi, range->hi);
		p->count = range->count;
		p->any = true;
	}
	TRY(buf_status(&p->lo));
	TRY(buf_status(&p->hi));
	TRY(buf_status(&p->in_lo));
	return buf_status(&p->in_hi);
}

/*
 * Treats the whole list as one region. The caller does this when some keys are in no range, so that
 * the counters of the ranges are not exact.
 */
static void
place_widen(struct place *p)
{
	p->inside = true;
	p->in_count = 0;
	p->before = p->after = 0;
	place_put(&p->in_lo, (struct str){ NULL, 0 });
	place_put(&p->in_hi, CATALOG_TALLY_END);
}

static enum status
place_find(struct kv_tx *tx, const struct catalog_db *db, size_t list, struct place *p)
{
	AUTO(catalog_range_scan_end) struct catalog_range_scan s = { 0 };
	struct arena *arena = arena_new(2 * CATALOG_KEY_BYTES); /* for bounds with NULs */
	struct kv_pair pair;
	enum status status = arena ? catalog_range_scan_begin(tx, db, list, &s) : STATUS_NOMEM;
	uint64_t total;

	while (status == STATUS_OK && (status = kv_scan_next(&s.scan, &pair)) == STATUS_OK) {
		struct catalog_range range;

		arena_clear(arena);
		status = catalog_range_borrow(str_skip(pair.key, s.prefix_len), pair.value, arena,
					      &range);
		if (status == STATUS_OK)
			status = place_add(p, &range);
	}
	arena_free(arena);
	if (status != STATUS_NOT_FOUND)
		return status;
	place_close(p);
	TRY(catalog_total_wait(&s.total, &total));
	if (p->all != (int64_t)total)
		place_widen(p);
	TRY(buf_status(&p->in_lo));
	return buf_status(&p->in_hi);
}

enum status
catalog_keys_count(struct kv_tx *tx, struct str lo, struct str hi, uint64_t *ret)
{
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_range_options options = { .limit_bytes = CATALOG_PAGE_BYTES,
					    .mode = KV_SNAPSHOT };
	struct kv_range range;
	enum status status;
	uint64_t n = 0;

	TRY(kv_scan_init(&scan, tx, lo, hi, &options));
	while ((status = kv_scan_take(&scan, SIZE_MAX, &range)) == STATUS_OK)
		n += range.count;
	if (status != STATUS_NOT_FOUND)
		return status;
	*ret = n;
	return STATUS_OK;
}

/* Begins to read the keys of the list between two bounds, in pages of so many bytes. */
static enum status
keys_scan(struct kv_tx *tx, const struct catalog_db *db, size_t list, struct str lo, struct str hi,
	  size_t page_bytes, struct kv_scan *ret)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_range_options options = { .limit_bytes = page_bytes, .mode = KV_SNAPSHOT };

	catalog_key_list(&begin, db, list);
	buf_append_str(&begin, lo);
	catalog_key_list(&end, db, list);
	buf_append_str(&end, hi);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	return kv_scan_init(ret, tx, buf_str(&begin), buf_str(&end), &options);
}

/*
 * How many keys of the region that holds the place are in front of it, or (`behind`) at it and
 * behind it. The keys of that side are counted. In a large region a page of one side and a page of
 * the other are counted in turns, until one side has no more: if it is not the side that is asked
 * for, that one has all other keys of the region. `*ret_counted` keys were counted in all.
 */
static enum status
place_count(struct kv_tx *tx, const struct catalog_db *db, size_t list, const struct place *p,
	    bool behind, uint64_t *ret, uint64_t *ret_counted)
{
	AUTO(kv_scan_release) struct kv_scan front = { 0 };
	AUTO(kv_scan_release) struct kv_scan back = { 0 };
	struct kv_scan *scans[] = { &front, &back };
	const struct str bounds[] = { buf_str(&p->in_lo), p->at, buf_str(&p->in_hi) };
	bool both = p->in_count > ONE_SIDE_KEYS;
	size_t page_bytes = both ? SIDE_BYTES : CATALOG_PAGE_BYTES;
	uint64_t keys[] = { 0, 0 };
	struct kv_range range;
	enum status status;
	int side = behind;

	do {
		if (!scans[side]->tx) /* not begun yet */
			TRY(keys_scan(tx, db, list, bounds[side], bounds[side + 1], page_bytes,
				      scans[side]));
		status = kv_scan_take(scans[side], SIZE_MAX, &range);
		if (status == STATUS_OK) {
			keys[side] += range.count;
			side ^= both;
		}
	} while (status == STATUS_OK);
	if (status != STATUS_NOT_FOUND)
		return status;
	*ret_counted = keys[0] + keys[1];
	*ret = side == behind ? keys[side] : (uint64_t)p->in_count - keys[side];
	return (int64_t)*ret < 0 ? STATUS_CORRUPT : STATUS_OK;
}

enum status
catalog_tally_rank(struct kv_tx *tx, const struct catalog_db *db, size_t list, struct str at,
		   bool behind, uint64_t *ret)
{
	AUTO(place_release)
	struct place p = {
		.at = at,
		.lo = CATALOG_KEY_INIT,
		.hi = CATALOG_KEY_INIT,
		.in_lo = CATALOG_KEY_INIT,
		.in_hi = CATALOG_KEY_INIT,
	};
	uint64_t keys = 0, counted = 0;
	int64_t n;

	TRY(place_find(tx, db, list, &p));
	if (p.inside)
		TRY(place_count(tx, db, list, &p, behind, &keys, &counted));
	n = behind ? p.after : p.before;
	if (n < 0)
		return STATUS_CORRUPT;
	/* Many keys had to be counted one by one, so the ranges may have to be split. */
	if (counted > CATALOG_TALLY_WORN)
		catalog_tally_note(db, counted);
	*ret = (uint64_t)n + keys;
	return STATUS_OK;
}
