/*
 * Tends counters by range: splits ranges that have too many keys, merges neighbours that have few,
 * and moves the counts of ranges that are no longer wanted to the ranges that replace them. Nothing
 * here makes a writer wait or start again. A step that conflicts with a writer gives up and is
 * tried again later.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "catalog/tally_int.h"

/* A range that the transaction is going to make, or to keep. */
struct piece {
	struct str lo;
	struct str hi;
	uint64_t keys;
	int64_t known;
	bool there; /* the range already has a counter, whose value is `known` */
};

/* What a call has found of one list. */
struct tend_list {
	struct arena *arena; /* emptied by each reading of all ranges */
	struct catalog_ranges all;
	bool current; /* nothing was changed since `all` was read */
};

struct tend {
	const struct catalog_db *db;
	size_t list;
	struct catalog_tally_sizes sizes;
	struct err *err;
	struct tend_list lists[CATALOG_TALLY_LISTS];
	struct arena *scratch; /* of steps that do not read all ranges */
	struct arena *arena;   /* of this step */
	struct kv_tx *tx;
	struct catalog_ranges all;
	struct catalog_range alone; /* the bounds of the region that a step folds by itself */
	bool exact;                 /* all keys of the region are counted */
	uint64_t wanted;            /* keys of a new range */
	uint64_t most;              /* a range that has more is cut */
	unsigned attempt;
	/*
	 * This call has opened a new last range. Until it has ended writers use the former one,
	 * which begins at `live`.
	 */
	bool opened;
	struct buf live;
	/*
	 * This call has announced new ranges, or merged some, and makes no further step. Writers
	 * learn of these ranges when it has ended. Until then they may add to the former ones.
	 */
	bool ends;
	bool acted;
	struct buf key;
	struct piece *pieces;
	size_t pieces_count;
	size_t pieces_cap;
};

/* ---- Counters ---- */

static enum status
range_add(struct tend *t, struct str lo, struct str hi, int64_t change)
{
	catalog_key_range(&t->key, t->db, t->list, lo, hi);
	t->acted = true;
	return catalog_counter_add(t->tx, &t->key, change);
}

/*
 * Clears the counter of a range. The transaction conflicts if a writer has added to it meanwhile.
 */
static enum status
range_clear(struct tend *t, const struct catalog_range *range)
{
	size_t len;

	catalog_key_range(&t->key, t->db, t->list, range->lo, range->hi);
	len = t->key.len;
	buf_append_byte(&t->key, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&t->key));
	t->acted = true;
	TRY(kv_add_read_conflict_range(t->tx, str_of(t->key.ptr, len), buf_str(&t->key)));
	return kv_clear(t->tx, str_of(t->key.ptr, len));
}

/*
 * Subtracts the known count of a range from its counter, and clears the counter if nothing is left.
 * A writer may have added to it meanwhile.
 */
static enum status
range_empty(struct tend *t, const struct catalog_range *range)
{
	static const char zero[CATALOG_COUNTER_BYTES];

	TRY(range_add(t, range->lo, range->hi, -range->count));
	return kv_atomic(t->tx, KV_COMPARE_AND_CLEAR, buf_str(&t->key), str_of(zero, sizeof(zero)));
}

/* ---- Opening: a new last range ---- */

/* Returns the shortest prefix of `b` that sorts after `a`, where a < b. */
static struct str
shortest_separator(struct str a, struct str b)
{
	size_t n = 0;

	while (n < a.len && a.ptr[n] == b.ptr[n])
		n++;
	return str_of(b.ptr, n + 1);
}

/*
 * Finds the place right behind the last key of the list. `ptr` is NULL if the list is empty or the
 * key is too long for a bound.
 */
static enum status
end_find(struct tend *t, struct str *ret)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	struct kv_range_options options = { .limit = 1, .reverse = true, .mode = KV_SNAPSHOT };
	struct kv_range range;
	struct kv_future *f;
	struct str tail;

	catalog_key_list(&lo, t->db, t->list);
	buf_append_buf(&hi, &lo);
	buf_append_byte(&hi, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&lo));
	TRY(catalog_key_status(&hi));
	f = kv_get_range(t->tx, buf_str(&lo), buf_str(&hi), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	*ret = (struct str){ NULL, 0 };
	if (range.count == 0)
		return STATUS_OK;
	tail = str_skip(range.pairs[0].key, lo.len);
	if (tail.len >= CATALOG_MARK_BYTES)
		return STATUS_OK;
	buf_clear(&hi);
	buf_append_str(&hi, tail);
	buf_append_byte(&hi, CATALOG_KEY_NEXT);
	TRY(buf_status(&hi));
	*ret = buf_dup(&hi, t->arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/*
 * Opens a new last range. Writers of CHANGES always add to the last range, and so do writers of
 * ALL_DOCS where ids ascend. Once a new range begins behind all keys, they leave the old last range
 * alone, and it can be split.
 */
static enum status
tend_open_last(struct tend *t)
{
	const struct catalog_range *last = NULL;
	struct str end;

	for (size_t i = 0; i < t->all.count; i++)
		if (str_eq(t->all.ranges[i].hi, CATALOG_TALLY_END))
			last = &t->all.ranges[i];
	if (!last || t->opened || last->count <= (int64_t)t->most)
		return STATUS_OK;
	TRY(end_find(t, &end));
	if (!end.ptr || str_cmp(end, last->lo) <= 0)
		return STATUS_OK;
	TRY(range_add(t, end, CATALOG_TALLY_END, 0));
	buf_set(&t->live, last->lo);
	t->opened = true;
	return buf_status(&t->live);
}

/* ---- Folding: one region's counters become those of ranges side by side ---- */

struct region {
	const struct catalog_range *ranges;
	size_t count;
	struct str hi;
};

/* Returns the region that begins with range number `first`. */
static struct region
region_at(const struct tend *t, size_t first)
{
	struct region r = { t->all.ranges + first, 1, t->all.ranges[first].hi };

	while (first + r.count < t->all.count) {
		const struct catalog_range *next = &r.ranges[r.count];

		if (str_cmp(next->lo, r.hi) >= 0)
			break;
		if (str_cmp(next->hi, r.hi) > 0)
			r.hi = next->hi;
		r.count++;
	}
	return r;
}

/* True if writers add to the last range of the region, and to what overlaps its end. */
static bool
region_is_live(const struct tend *t, const struct region *r)
{
	return t->opened && str_eq(r->hi, CATALOG_TALLY_END);
}

/* While writers are busy each call opens a last range, and folds those that are older. */
static bool
needs_fold(const struct tend *t, const struct region *r)
{
	if (region_is_live(t, r))
		return str_cmp(r->ranges[0].lo, buf_str(&t->live)) < 0;
	return r->count > 1 || r->ranges[0].count > (int64_t)t->most;
}

static int
compare_strs(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Collects the bounds of the region's ranges, in order, each once. */
static enum status
bounds_of(struct tend *t, const struct region *r, struct str **ret, size_t *ret_count)
{
	struct str *bounds = arena_alloc(t->arena, 2 * r->count * sizeof(*bounds));
	size_t kept = 0;

	if (!bounds)
		return STATUS_LIMIT;
	for (size_t i = 0; i < r->count; i++) {
		bounds[2 * i] = r->ranges[i].lo;
		bounds[2 * i + 1] = r->ranges[i].hi;
	}
	qsort(bounds, 2 * r->count, sizeof(*bounds), compare_strs);
	for (size_t i = 0; i < 2 * r->count; i++)
		if (kept == 0 || !str_eq(bounds[kept - 1], bounds[i]))
			bounds[kept++] = bounds[i];
	*ret = bounds;
	*ret_count = kept;
	return STATUS_OK;
}

static enum status
piece_add(struct tend *t, struct str lo, struct str hi, uint64_t keys)
{
	TRY(catalog_array_grow(t->arena, (void **)&t->pieces, sizeof(*t->pieces), t->pieces_count,
			       &t->pieces_cap));
	t->pieces[t->pieces_count++] = (struct piece){ .lo = lo, .hi = hi, .keys = keys };
	return STATUS_OK;
}

/*
 * Tidies the pieces from number `first` on, which have `keys` keys: makes one piece of them if that
 * is small enough, else joins a small last piece to the one before it.
 */
static void
pieces_tidy(struct tend *t, size_t first, uint64_t keys)
{
	struct piece *pieces = t->pieces + first;
	size_t count = t->pieces_count - first;

	if (count > 1 && keys <= 2 * t->wanted) {
		pieces[0].hi = pieces[count - 1].hi;
		pieces[0].keys = keys;
		t->pieces_count = first + 1;
	} else if (count > 1 && pieces[count - 1].keys < t->wanted / 2) {
		pieces[count - 2].hi = pieces[count - 1].hi;
		pieces[count - 2].keys += pieces[count - 1].keys;
		t->pieces_count--;
	}
}

/* Where a piece may end: the keys in front of the place, since the piece began. */
struct cutting {
	struct buf best; /* the place, as far as one was found */
	uint64_t best_keys;
	uint64_t keys;   /* since the piece began */
	struct buf last; /* key */
};

static void
cutting_release(struct cutting *c)
{
	buf_release(&c->best);
	buf_release(&c->last);
}

/*
 * Looks at the place between the last key and the next one. A piece has between half of `wanted`
 * keys and one and a half times as many. Within these bounds it ends at the place that is told by
 * the fewest bytes, where neighbouring keys have the least in common. So keys that begin alike,
 * such as entries of one value, mostly get a range of their own, whose counter tells their number.
 */
static enum status
cutting_look(struct cutting *c, uint64_t wanted, struct str next)
{
	struct str at;

	if (c->keys < wanted / 2 || !c->keys)
		return STATUS_OK;
	at = shortest_separator(buf_str(&c->last), next);
	if (at.len > CATALOG_MARK_BYTES)
		return STATUS_OK;
	/* Of equal ones the one next to `wanted`. */
	if (c->best_keys && at.len >= c->best.len + (c->keys <= wanted))
		return STATUS_OK;
	c->best_keys = c->keys;
	buf_set(&c->best, at);
	return buf_status(&c->best);
}

/* Ends a piece at the best place; the next one begins there. */
static enum status
cutting_cut(struct tend *t, struct cutting *c, struct str *lo)
{
	struct str cut = buf_dup(&c->best, t->arena);

	if (!cut.ptr)
		return STATUS_LIMIT;
	TRY(piece_add(t, *lo, cut, c->best_keys));
	*lo = cut;
	c->keys -= c->best_keys;
	c->best_keys = 0;
	return STATUS_OK;
}

/*
 * Counts the keys of lo <= key < hi and cuts them into pieces. After `*left` keys it stops at the
 * end of a piece and sets `*ret_whole` to false.
 */
static enum status
pieces_count(struct tend *t, struct str lo, struct str hi, uint64_t *left, bool *ret_whole)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(cutting_release)
	struct cutting c = { .best = CATALOG_KEY_INIT, .last = CATALOG_KEY_INIT };
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_range_options options = { .limit_bytes = CATALOG_PAGE_BYTES,
					    .mode = KV_SNAPSHOT };
	size_t first = t->pieces_count, prefix_len;
	struct kv_pair pair;
	enum status status;
	uint64_t all = 0;

	catalog_key_list(&begin, t->db, t->list);
	prefix_len = begin.len;
	buf_append_buf(&end, &begin);
	buf_append_str(&begin, lo);
	buf_append_str(&end, hi);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	TRY(kv_scan_init(&scan, t->tx, buf_str(&begin), buf_str(&end), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct str tail = str_skip(pair.key, prefix_len);

		TRY(cutting_look(&c, t->wanted, tail));
		if (c.best_keys && c.keys >= t->wanted + t->wanted / 2) {
			TRY(cutting_cut(t, &c, &lo));
			if (all >= *left) {
				*left = 0;
				*ret_whole = false;
				return STATUS_OK;
			}
		}
		c.keys++;
		all++;
		buf_set(&c.last, tail);
		TRY(buf_status(&c.last));
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	if (c.best_keys && c.keys > t->wanted)
		TRY(cutting_cut(t, &c, &lo));
	TRY(piece_add(t, lo, hi, c.keys));
	pieces_tidy(t, first, all);
	*left -= all < *left ? all : *left;
	*ret_whole = true;
	return STATUS_OK;
}

/*
 * Cuts the beginning of the region into pieces and counts their keys. If the region has several
 * ranges, the keys between its last two bounds are not counted unless `t->exact` says so: that
 * part gets the count that the pieces leave over.
 */
static enum status
region_cut(struct tend *t, const struct region *r)
{
	uint64_t left = CATALOG_TALLY_FOLD_KEYS;
	bool whole = true;
	struct str *bounds;
	size_t count;

	if (left < t->most)
		left = t->most;
	t->pieces = NULL;
	t->pieces_count = t->pieces_cap = 0;
	TRY(bounds_of(t, r, &bounds, &count));
	if (region_is_live(t, r))
		while (str_cmp(bounds[count - 1], buf_str(&t->live)) > 0)
			count--;
	else if (r->count > 1 && !t->exact)
		count--;
	for (size_t i = 0; i + 1 < count && whole && left; i++) {
		TRY(pieces_count(t, bounds[i], bounds[i + 1], &left, &whole));
		if (t->pieces_count >= CATALOG_TALLY_FOLD_RANGES)
			break;
	}
	return STATUS_OK;
}

static struct piece *
piece_of(struct tend *t, const struct catalog_range *range)
{
	size_t lo = 0, hi = t->pieces_count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (str_cmp(t->pieces[mid].lo, range->lo) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->pieces_count && str_eq(t->pieces[lo].lo, range->lo) &&
			       str_eq(t->pieces[lo].hi, range->hi)
		       ? &t->pieces[lo]
		       : NULL;
}

/*
 * Adds the counters of the new ranges with the value 0 and moves no counts. This happens when a
 * writer has added to a range that was going to be cleared. Writers then learn of the new ranges
 * and leave the old one alone, and all keys stay counted where they are.
 */
static enum status
pieces_announce(struct tend *t)
{
	for (size_t i = 0; i < t->pieces_count; i++)
		TRY(range_add(t, t->pieces[i].lo, t->pieces[i].hi, 0));
	t->ends = true;
	return STATUS_OK;
}

/*
 * Gives each piece its count. Clears the other ranges that begin within the pieces; the rest of
 * their counts goes to one range behind the pieces.
 */
static enum status
region_settle(struct tend *t, const struct region *r)
{
	struct str end = t->pieces[t->pieces_count - 1].hi;
	struct str hi = end;
	int64_t rest = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct catalog_range *range = &r->ranges[i];
		struct piece *piece;

		if (str_cmp(range->lo, end) >= 0)
			break;
		rest += range->count;
		if (str_cmp(range->hi, hi) > 0)
			hi = range->hi;
		piece = piece_of(t, range);
		if (piece) {
			piece->there = true;
			piece->known = range->count;
		} else {
			TRY(range_clear(t, range));
		}
	}
	for (size_t i = 0; i < t->pieces_count; i++) {
		struct piece *piece = &t->pieces[i];
		int64_t change = (int64_t)piece->keys - piece->known;

		rest -= (int64_t)piece->keys;
		if (change || !piece->there)
			TRY(range_add(t, piece->lo, piece->hi, change));
	}
	if (str_cmp(end, hi) < 0)
		return range_add(t, end, hi, rest);
	if (rest)
		return err_set(t->err, STATUS_CORRUPT,
			       "The counters of \"%.*s\" are wrong by %lld: frond verify tells "
			       "where.",
			       STR_ARG(t->db->name), (long long)rest);
	return STATUS_OK;
}

static enum status
tend_fold(struct tend *t)
{
	struct region r;

	for (size_t i = 0; i < t->all.count && !t->acted; i += r.count) {
		r = region_at(t, i);
		if (!needs_fold(t, &r))
			continue;
		TRY(region_cut(t, &r));
		if (t->attempt > 1)
			return pieces_announce(t);
		/* There are none if somebody else has just folded the range at `live`. */
		if (t->pieces_count)
			TRY(region_settle(t, &r));
	}
	return STATUS_OK;
}

/*
 * True if the pieces are the whole region, and have as many keys together as its counters say. If
 * they differ, a writer with an old guide may have counted some of these keys in a range that
 * begins in front of the region.
 */
static bool
pieces_agree(const struct tend *t, const struct region *r)
{
	int64_t keys = 0;

	for (size_t i = 0; i < t->pieces_count; i++)
		keys += (int64_t)t->pieces[i].keys;
	for (size_t i = 0; i < r->count; i++)
		keys -= r->ranges[i].count;
	return keys == 0 && str_eq(t->pieces[t->pieces_count - 1].hi, r->hi);
}

/*
 * Folds one region, of which an earlier step has read that this is needed. Reads the counters that
 * begin between its bounds and no others. A range that begins in front of it may overlap it unseen;
 * so this counts all keys of the region, and leaves alone what does not agree with its counters. If
 * it does agree, moving counts within the bounds keeps every sum right, also that of the larger
 * region that the unseen range makes.
 */
static enum status
tend_fold_alone(struct tend *t)
{
	struct region r;

	TRY(catalog_ranges_read_between(t->tx, t->db, t->list, t->alone.lo, t->alone.hi, t->arena,
					&t->all));
	if (t->all.count == 0)
		return STATUS_OK;
	r = region_at(t, 0);
	if (!str_eq(r.ranges[0].lo, t->alone.lo) || !str_eq(r.hi, t->alone.hi) ||
	    !needs_fold(t, &r))
		return STATUS_OK;
	/* All that were read begin in front of the region's end, so they belong to it. */
	assert(r.count == t->all.count);
	TRY(region_cut(t, &r));
	if (!pieces_agree(t, &r))
		return STATUS_OK;
	return t->attempt > 1 ? pieces_announce(t) : region_settle(t, &r);
}

/* ---- Merging: neighbours that have few keys ---- */

static enum status
tend_merge_run(struct tend *t, size_t first, size_t count, int64_t keys)
{
	const struct catalog_range *run = t->all.ranges + first;

	TRY(range_add(t, run[0].lo, run[count - 1].hi, keys));
	for (size_t i = 0; i < count; i++)
		TRY(range_empty(t, &run[i]));
	return STATUS_OK;
}

/* True if the range is alone in its region and is not the last range, which writers use. */
static bool
can_merge(const struct tend *t, size_t at)
{
	const struct catalog_range *range = &t->all.ranges[at];

	return region_at(t, at).count == 1 && range->count >= 0 &&
	       !str_eq(range->hi, CATALOG_TALLY_END);
}

static enum status
tend_merge(struct tend *t)
{
	size_t count, merged = 0;

	for (size_t i = 0; i < t->all.count && merged < CATALOG_TALLY_MERGES; i += count) {
		const struct catalog_range *run = t->all.ranges + i;
		int64_t keys = run[0].count;

		count = region_at(t, i).count;
		if (!can_merge(t, i))
			continue;
		while (i + count < t->all.count && can_merge(t, i + count) &&
		       str_eq(run[count - 1].hi, run[count].lo) &&
		       keys + run[count].count <= (int64_t)t->wanted) {
			keys += run[count].count;
			count++;
		}
		if (count == 1)
			continue;
		merged += count;
		t->ends = true;
		TRY(tend_merge_run(t, i, count, keys));
	}
	return STATUS_OK;
}

/* ---- One step, one database ---- */

static uint64_t
square_root(uint64_t n)
{
	uint64_t root = 0;

	for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
		if ((root + bit) * (root + bit) <= n)
			root += bit;
	return root;
}

/*
 * Makes two transactions that tend the same list conflict, so that the second starts again.
 * Otherwise both would move the same counts.
 */
static enum status
tend_take_turn(struct tend *t)
{
	size_t len;

	catalog_key_tally(&t->key, t->db, t->list);
	len = t->key.len;
	buf_append_byte(&t->key, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&t->key));
	TRY(kv_add_read_conflict_range(t->tx, str_of(t->key.ptr, len), buf_str(&t->key)));
	return kv_add_write_conflict_range(t->tx, str_of(t->key.ptr, len), buf_str(&t->key));
}

/* Returns STATUS_NOT_FOUND if the database is gone or can only be read now. */
static enum status
tend_check_db(struct tend *t)
{
	struct catalog_db now;

	TRY(catalog_description_get(t->tx, t->db->kind->space, t->db->name, &now, t->err));
	if (now.number != t->db->number || catalog_db_check_writable(&now, NULL) != STATUS_OK)
		return err_set(t->err, STATUS_NOT_FOUND, "Database does not exist.");
	return STATUS_OK;
}

/* Begins an attempt of a step. What it reads is put into the arena, which is emptied. */
static enum status
tend_begin(struct tend *t, struct kv_tx *tx, struct arena *arena)
{
	arena_clear(arena);
	t->arena = arena;
	t->tx = tx;
	t->attempt++;
	t->acted = false;
	return tend_check_db(t);
}

static enum status
tend_step_body(struct kv_tx *tx, void *arg)
{
	struct tend *t = arg;
	struct tend_list *l = &t->lists[t->list];

	l->current = false;
	TRY(tend_begin(t, tx, l->arena));
	TRY(catalog_ranges_read(tx, t->db, t->list, t->arena, &t->all));
	t->wanted = 2 * square_root(t->all.total) / t->sizes.cut;
	if (t->wanted < t->sizes.keys)
		t->wanted = t->sizes.keys;
	t->most = t->wanted * t->sizes.cut;
	/*
	 * A database that is older than counters by range has counts that are in no range. They go
	 * to one range of all keys.
	 */
	if (t->all.rest)
		TRY(range_add(t, (struct str){ NULL, 0 }, CATALOG_TALLY_END, t->all.rest));
	if (!t->acted)
		TRY(tend_open_last(t));
	if (!t->acted)
		TRY(tend_fold(t));
	if (!t->acted)
		TRY(tend_merge(t));
	l->all = t->all;
	l->current = !t->acted;
	return t->acted ? tend_take_turn(t) : STATUS_OK;
}

static enum status
tend_fold_alone_body(struct kv_tx *tx, void *arg)
{
	struct tend *t = arg;

	TRY(tend_begin(t, tx, t->scratch));
	TRY(tend_fold_alone(t));
	return t->acted ? tend_take_turn(t) : STATUS_OK;
}

/*
 * Folds the other regions that the last reading has found to need it, each in a transaction of its
 * own: the more counters a transaction clears, the likelier it meets a writer. The last region,
 * which writers use, is left to steps that read all ranges.
 */
static enum status
tend_fold_others(struct tend *t, struct kv_store *store, int *steps)
{
	const struct catalog_ranges all = t->lists[t->list].all;
	enum status status = STATUS_OK;
	struct region r;

	t->exact = true;
	for (size_t i = 0; i < all.count && *steps < CATALOG_TALLY_STEPS && status == STATUS_OK;
	     i += r.count) {
		t->all = all;
		r = region_at(t, i);
		if (str_eq(r.hi, CATALOG_TALLY_END) || !needs_fold(t, &r))
			continue;
		t->alone = (struct catalog_range){ .lo = r.ranges[0].lo, .hi = r.hi };
		t->attempt = 0;
		status = kv_run(store, tend_fold_alone_body, t, NULL, t->err);
		*steps += t->acted;
	}
	t->exact = false;
	return status;
}

static enum status
tend_list(struct tend *t, struct kv_store *store, bool *ret_more)
{
	t->opened = t->ends = false;
	for (int steps = 0; steps < CATALOG_TALLY_STEPS && !t->ends; steps++) {
		t->attempt = 0;
		TRY(kv_run(store, tend_step_body, t, NULL, t->err));
		if (!t->acted) {
			*ret_more = *ret_more || t->opened;
			return STATUS_OK;
		}
		if (!t->ends)
			TRY(tend_fold_others(t, store, &steps));
	}
	*ret_more = true;
	return STATUS_OK;
}

/* ---- What writers know afterwards ---- */

/* Reads those lists again that have changed since they were read. */
static enum status
tend_look_body(struct kv_tx *tx, void *arg)
{
	struct tend *t = arg;

	for (size_t list = 0; list < t->db->kind->lists_count; list++) {
		struct tend_list *l = &t->lists[list];

		if (l->current)
			continue;
		arena_clear(l->arena);
		TRY(catalog_ranges_read(tx, t->db, list, l->arena, &l->all));
	}
	return STATUS_OK;
}

static enum status
tend_renew_guide(struct tend *t, struct kv_store *store, struct catalog_tally *tally)
{
	struct catalog_ranges ranges[CATALOG_TALLY_LISTS];
	struct catalog_guide *guide;

	TRY(kv_run_read(store, tend_look_body, t, t->err));
	for (size_t list = 0; list < t->db->kind->lists_count; list++)
		ranges[list] = t->lists[list].all;
	arena_clear(t->scratch);
	TRY(catalog_guide_make(t->db, ranges, t->scratch, &guide));
	catalog_tally_guide(tally, guide);
	return STATUS_OK;
}

static enum status
tend_init(struct tend *t)
{
	t->scratch = arena_new(CATALOG_GUIDE_BYTES);
	if (!t->scratch)
		return STATUS_NOMEM;
	for (size_t list = 0; list < t->db->kind->lists_count; list++) {
		t->lists[list].arena = arena_new(CATALOG_GUIDE_BYTES);
		if (!t->lists[list].arena)
			return STATUS_NOMEM;
	}
	return STATUS_OK;
}

static void
tend_release(struct tend *t)
{
	for (size_t list = 0; list < CATALOG_TALLY_LISTS; list++)
		arena_free(t->lists[list].arena);
	arena_free(t->scratch);
	buf_release(&t->key);
	buf_release(&t->live);
}

/*
 * Does a bounded amount of work for one database and gives `tally` (unless NULL) a new guide.
 * STATUS_NOT_FOUND if the database is gone.
 */
static enum status
tend_db(struct kv_store *store, const struct catalog_db *db, struct catalog_tally *tally,
	const struct catalog_tally_sizes *sizes, bool *ret_more, struct err *err)
{
	static const struct catalog_tally_sizes usual = { CATALOG_TALLY_KEYS, CATALOG_TALLY_CUT };
	struct tend t = {
		.db = db,
		.sizes = sizes ? *sizes : usual,
		.err = err,
		.key = CATALOG_KEY_INIT,
		.live = CATALOG_KEY_INIT,
	};
	enum status status = tend_init(&t);
	bool begun = status == STATUS_OK;

	*ret_more = false;
	for (size_t list = 0; list < db->kind->lists_count && status == STATUS_OK; list++) {
		t.list = list;
		status = tend_list(&t, store, ret_more);
	}
	/* Writers get a guide to the ranges that exist now, even if a step has failed. */
	if (begun && status != STATUS_NOT_FOUND && tally) {
		enum status renewed = tend_renew_guide(&t, store, tally);

		status = status == STATUS_OK ? renewed : status;
	}
	tend_release(&t);
	return status;
}

/* ---- The queue of tallies to tend ---- */

static bool
tally_is_due(struct catalog_tally *tally, bool all)
{
	uint64_t noted = atomic_load_explicit(&tally->noted, memory_order_relaxed);
	uint64_t least = 2 * CATALOG_TALLY_KEYS;
	uint64_t counters = 0;
	/* What is left are mostly ranges in which writers are still busy. */
	uint64_t idle_ms = tally->more ? CATALOG_TALLY_MORE_MS : CATALOG_TALLY_IDLE_MS;
	uint64_t idle_ns = clock_mono_ns() - tally->tended_ns;

	if (all || idle_ns >= idle_ms * CLOCK_NS_PER_MS)
		return true;
	/* Counters that are often written are slow to read, since the engine has all versions. */
	if (idle_ns < CATALOG_TALLY_PAUSES * tally->took_ns)
		return false;
	pthread_mutex_lock(&tally->lock);
	/*
	 * Tending a database reads all of its counters, some of them several times. A list has
	 * about as many counters as the square root of its length. A database is due only after
	 * several changed keys for each counter, so that tending costs little for each write.
	 */
	for (size_t list = 0; tally->guide && list < tally->db.kind->lists_count; list++)
		counters += tally->guide->counts[list] + 1;
	if (least < CATALOG_TALLY_DUE_KEYS * counters)
		least = CATALOG_TALLY_DUE_KEYS * counters;
	pthread_mutex_unlock(&tally->lock);
	return noted >= least;
}

static enum status
tally_tend_one(struct kv_store *store, struct catalog_tally *tally, bool *ret_more, struct err *err)
{
	uint64_t begun_ns = clock_mono_ns();
	enum status status;

	atomic_store(&tally->queued, false);
	atomic_store_explicit(&tally->noted, 0, memory_order_relaxed);
	tally->more = false;
	status = tend_db(store, &tally->db, tally, NULL, &tally->more, err);
	tally->tended_ns = clock_mono_ns();
	tally->took_ns = tally->tended_ns - begun_ns;
	if (status == STATUS_NOT_FOUND) /* the database was deleted meanwhile */
		return STATUS_OK;
	*ret_more = *ret_more || tally->more;
	if ((tally->more || status != STATUS_OK) && !atomic_exchange(&tally->queued, true))
		catalog_tally_queue(tally);
	return status;
}

enum status
catalog_tallies_tend(struct catalog_tallies *all, struct kv_store *store, bool now, bool *ret_more,
		     struct err *err)
{
	enum status status = STATUS_OK;
	size_t left;

	*ret_more = false;
	pthread_mutex_lock(&all->lock);
	left = all->queued;
	pthread_mutex_unlock(&all->lock);
	while (left--) {
		struct catalog_tally *tally;
		enum status one = STATUS_OK;

		pthread_mutex_lock(&all->lock);
		tally = all->queue[0];
		memmove(all->queue, all->queue + 1, --all->queued * sizeof(struct catalog_tally *));
		pthread_mutex_unlock(&all->lock);
		if (!atomic_load_explicit(&tally->tending, memory_order_relaxed) &&
		    tally_is_due(tally, now)) {
			one = tally_tend_one(store, tally, ret_more, err);
		} else {
			*ret_more = *ret_more || tally->more;
			catalog_tally_queue(tally);
		}
		catalog_tally_unref(tally);
		status = status == STATUS_OK ? one : status;
	}
	return status;
}

enum status
catalog_tally_tend(struct kv_store *store, const struct catalog_db *db,
		   const struct catalog_tally_sizes *sizes, bool *ret_more, struct err *err)
{
	enum status status;

	if (db->tally)
		atomic_fetch_add_explicit(&db->tally->tending, 1, memory_order_relaxed);
	status = tend_db(store, db, db->tally, sizes, ret_more, err);
	if (db->tally)
		atomic_fetch_sub_explicit(&db->tally->tending, 1, memory_order_relaxed);
	return status;
}
