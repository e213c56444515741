/*
 * Counters by range, the readers' side: how many keys of a list come before one.
 *
 * Ranges may overlap. Those that do, one after another, make a region; its counters together say
 * how many keys are in it, and no counter says that of less. So regions are added up, and in the
 * region of the key itself the keys are counted.
 */
#include "model/revisioned/tally_int.h"

enum rev_subspace
rev_list_space(enum rev_list list)
{
	return list == REV_LIST_DOCS ? REV_SUBSPACE_ALL_DOCS : REV_SUBSPACE_CHANGES;
}

void
rev_key_tally(struct buf *key, const struct rev_db *db, enum rev_list list)
{
	rev_key_space(key, db, REV_SUBSPACE_TALLIES);
	tuple_put_u64(key, rev_list_space(list));
}

void
rev_key_range(struct buf *key, const struct rev_db *db, enum rev_list list, struct str lo,
	      struct str hi)
{
	rev_key_tally(key, db, list);
	tuple_put_bytes(key, lo);
	tuple_put_bytes(key, hi);
}

/* Bounds and counter of one pair; bounds may borrow from the key. */
static enum status
range_parse(struct str tail, struct str value, struct arena *arena, bool copy,
	    struct rev_range *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	uint64_t n = 0;

	TRY(rev_next_text(&r, TUPLE_BYTES, arena, copy, &ret->lo));
	TRY(rev_next_text(&r, TUPLE_BYTES, arena, copy, &ret->hi));
	if (r.rest.len || value.len != REV_COUNTER_BYTES || str_cmp(ret->lo, ret->hi) >= 0)
		return STATUS_CORRUPT;
	for (size_t i = 0; i < value.len; i++)
		n |= (uint64_t)(uint8_t)value.ptr[i] << (8 * i);
	ret->count = (int64_t)n;
	return STATUS_OK;
}

enum status
rev_range_parse(struct str tail, struct str value, struct arena *arena, struct rev_range *ret)
{
	return range_parse(tail, value, arena, true, ret);
}

/* ---- The whole ---- */

enum status
rev_total_get(struct kv_tx *tx, const struct rev_db *db, enum rev_list list, struct buf *key,
	      struct rev_total *ret)
{
	*ret = (struct rev_total){ 0 };
	rev_key_named(key, db, REV_SUBSPACE_STATS, REV_STAT_DOCS);
	TRY(rev_key_status(key));
	ret->docs = kv_get(tx, buf_str(key), KV_SNAPSHOT);
	if (list == REV_LIST_DOCS)
		return STATUS_OK;
	rev_key_named(key, db, REV_SUBSPACE_STATS, REV_STAT_DELETED);
	TRY(rev_key_status(key));
	ret->deleted = kv_get(tx, buf_str(key), KV_SNAPSHOT);
	return STATUS_OK;
}

enum status
rev_total_wait(const struct rev_total *total, uint64_t *ret)
{
	uint64_t docs, deleted = 0;

	TRY(rev_counter_wait(total->docs, &docs));
	if (total->deleted)
		TRY(rev_counter_wait(total->deleted, &deleted));
	*ret = docs + deleted;
	return STATUS_OK;
}

/* ---- All ranges ---- */

struct range_scan {
	struct kv_scan scan;
	struct rev_total total;
	size_t prefix_len;
};

static void
range_scan_end(struct range_scan *s)
{
	kv_scan_release(&s->scan);
	kv_future_free(s->total.docs);
	kv_future_free(s->total.deleted);
}

static enum status
range_scan_begin(struct kv_tx *tx, const struct rev_db *db, enum rev_list list,
		 struct range_scan *ret)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	AUTO(buf_release) struct buf end = REV_KEY_INIT;
	struct kv_range_options options = { .limit_bytes = REV_PAGE_BYTES, .mode = KV_SNAPSHOT };

	TRY(rev_total_get(tx, db, list, &key, &ret->total));
	rev_key_tally(&key, db, list);
	ret->prefix_len = key.len;
	buf_append_str(&end, buf_str(&key));
	buf_append_byte(&end, REV_KEY_LAST);
	TRY(rev_key_status(&key));
	TRY(rev_key_status(&end));
	return kv_scan_init(&ret->scan, tx, buf_str(&key), buf_str(&end), &options);
}

enum status
rev_ranges_read(struct kv_tx *tx, const struct rev_db *db, enum rev_list list, struct arena *arena,
		struct rev_ranges *ret)
{
	AUTO(range_scan_end) struct range_scan s = { 0 };
	struct rev_ranges all = { 0 };
	size_t cap = 0;
	struct kv_pair pair;
	enum status status;

	TRY(range_scan_begin(tx, db, list, &s));
	while ((status = kv_scan_next(&s.scan, &pair)) == STATUS_OK) {
		TRY(rev_array_grow(arena, (void **)&all.ranges, sizeof(*all.ranges), all.count,
				   &cap));
		TRY(rev_range_parse(str_skip(pair.key, s.prefix_len), pair.value, arena,
				    &all.ranges[all.count]));
		all.rest -= all.ranges[all.count].count;
		all.count++;
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(rev_total_wait(&s.total, &all.total));
	all.rest += (int64_t)all.total;
	*ret = all;
	return STATUS_OK;
}

/* ---- One place ---- */

/* What is before, at and behind a key, while regions go by in order. */
struct place {
	struct str at;
	struct buf lo; /* the region that is being added up */
	struct buf hi;
	int64_t count;
	bool any;
	int64_t before;
	int64_t after;
	int64_t all;
	bool inside; /* the key is within a region, which is this one: */
	struct buf in_lo;
	struct buf in_hi;
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

/* The region is complete. */
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
		place_put(&p->in_lo, buf_str(&p->lo));
		place_put(&p->in_hi, buf_str(&p->hi));
	}
}

static enum status
place_add(struct place *p, const struct rev_range *range)
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

/* Something has been counted nowhere: then there is one region. */
static void
place_widen(struct place *p)
{
	p->inside = true;
	p->before = p->after = 0;
	place_put(&p->in_lo, (struct str){ NULL, 0 });
	place_put(&p->in_hi, REV_TALLY_END);
}

static enum status
place_find(struct kv_tx *tx, const struct rev_db *db, enum rev_list list, struct place *p)
{
	AUTO(range_scan_end) struct range_scan s = { 0 };
	struct arena *arena = arena_new(2 * REV_KEY_BYTES); /* for bounds with NULs */
	struct kv_pair pair;
	enum status status = arena ? range_scan_begin(tx, db, list, &s) : STATUS_NOMEM;
	uint64_t total;

	while (status == STATUS_OK && (status = kv_scan_next(&s.scan, &pair)) == STATUS_OK) {
		struct rev_range range;

		arena_clear(arena);
		status = range_parse(str_skip(pair.key, s.prefix_len), pair.value, arena, false,
				     &range);
		if (status == STATUS_OK)
			status = place_add(p, &range);
	}
	arena_free(arena);
	if (status != STATUS_NOT_FOUND)
		return status;
	place_close(p);
	TRY(rev_total_wait(&s.total, &total));
	if (p->all != (int64_t)total)
		place_widen(p);
	TRY(buf_status(&p->in_lo));
	return buf_status(&p->in_hi);
}

/* The number of keys of the list between two bounds. */
static enum status
keys_between(struct kv_tx *tx, const struct rev_db *db, enum rev_list list, struct str lo,
	     struct str hi, uint64_t *ret)
{
	AUTO(buf_release) struct buf begin = REV_KEY_INIT;
	AUTO(buf_release) struct buf end = REV_KEY_INIT;

	rev_key_space(&begin, db, rev_list_space(list));
	buf_append_str(&begin, lo);
	rev_key_space(&end, db, rev_list_space(list));
	buf_append_str(&end, hi);
	TRY(rev_key_status(&begin));
	TRY(rev_key_status(&end));
	return rev_keys_count(tx, buf_str(&begin), buf_str(&end), ret);
}

enum status
rev_tally_rank(struct kv_tx *tx, const struct rev_db *db, enum rev_list list, struct str at,
	       bool behind, uint64_t *ret)
{
	AUTO(place_release)
	struct place p = {
		.at = at,
		.lo = REV_KEY_INIT,
		.hi = REV_KEY_INIT,
		.in_lo = REV_KEY_INIT,
		.in_hi = REV_KEY_INIT,
	};
	uint64_t counted = 0;
	int64_t n;

	TRY(place_find(tx, db, list, &p));
	if (p.inside && behind)
		TRY(keys_between(tx, db, list, at, buf_str(&p.in_hi), &counted));
	else if (p.inside)
		TRY(keys_between(tx, db, list, buf_str(&p.in_lo), at, &counted));
	n = behind ? p.after : p.before;
	if (n < 0)
		return STATUS_CORRUPT;
	/* That was much: there may be work to do. */
	if (counted > REV_TALLY_WORN)
		rev_tally_note(db, counted);
	*ret = (uint64_t)n + counted;
	return STATUS_OK;
}
