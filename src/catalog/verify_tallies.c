/*
 * TALLIES: the counters of each region, ranges that overlap, together say how many keys are in it.
 */
#include "catalog/check.h"
#include "catalog/tally_int.h"

static bool
is_list(const struct catalog_kind *kind, uint64_t counters, uint64_t space)
{
	for (size_t i = 0; i < kind->lists_count; i++)
		if (kind->lists[i].counters == counters && kind->lists[i].space == space)
			return true;
	return false;
}

/* The keys of the counters: each of a list that there is, with bounds, and a value that counts. */
static enum status
check_keys(struct catalog_verify *v, uint64_t space)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(v, &c, space));
	while (!c.done) {
		struct tuple_reader r = tuple_reader(c.tail);
		struct catalog_range range;
		enum status status;
		uint64_t list;

		arena_clear(v->scratch);
		if (tuple_next_u64(&r, &list) != STATUS_OK || !is_list(v->db->kind, space, list)) {
			catalog_verify_found(v, CATALOG_FINDING_KEY, c.pair.key,
					     "no such list is counted");
		} else {
			status = catalog_range_parse(r.rest, c.pair.value, v->scratch, &range);
			if (status == STATUS_CORRUPT)
				catalog_verify_found(v, CATALOG_FINDING_TALLY, c.pair.key,
						     "not a counter of a range");
			else
				TRY(status);
		}
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

static enum status
count_keys(struct catalog_verify *v, struct str begin, struct str end, uint64_t *ret)
{
	unsigned failures = 0;
	enum status status;

	while ((status = catalog_keys_count(v->tx, begin, end, ret)) != STATUS_OK)
		TRY(catalog_verify_again(v, &failures, status));
	return STATUS_OK;
}

static enum status
read_ranges(struct catalog_verify *v, size_t list, struct arena *arena, struct catalog_ranges *ret)
{
	const struct arena_mark mark = arena_mark(arena);
	unsigned failures = 0;
	enum status status;

	while ((status = catalog_ranges_read(v->tx, v->db, list, arena, ret)) != STATUS_OK) {
		arena_reset(arena, mark);
		TRY(catalog_verify_again(v, &failures, status));
	}
	return STATUS_OK;
}

/* The region lo <= key < hi, or what lies between two. */
static enum status
check_region(struct catalog_verify *v, size_t list, struct str lo, struct str hi, int64_t count)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	uint64_t keys;

	catalog_key_list(&begin, v->db, list);
	buf_append_str(&begin, lo);
	catalog_key_list(&end, v->db, list);
	buf_append_str(&end, hi);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	TRY(count_keys(v, buf_str(&begin), buf_str(&end), &keys));
	if (count == (int64_t)keys)
		return STATUS_OK;
	catalog_key_range(&v->key, v->db, list, lo, hi);
	catalog_verify_found(v, CATALOG_FINDING_TALLY, buf_str(&v->key),
			     "the counters of this range say %lld, and there are %llu",
			     (long long)count, (unsigned long long)keys);
	return STATUS_OK;
}

/*
 * Joins the ranges from `*at` on that overlap into one region. Returns the sum of their counters;
 * `*at` is then the first range behind the region.
 */
static int64_t
region_next(const struct catalog_ranges *all, size_t *at, struct str *ret_lo, struct str *ret_hi)
{
	const struct catalog_range *ranges = all->ranges;
	int64_t count = ranges[*at].count;

	*ret_lo = ranges[*at].lo;
	*ret_hi = ranges[*at].hi;
	for (++*at; *at < all->count && str_cmp(ranges[*at].lo, *ret_hi) < 0; ++*at) {
		count += ranges[*at].count;
		if (str_cmp(ranges[*at].hi, *ret_hi) > 0)
			*ret_hi = ranges[*at].hi;
	}
	return count;
}

static enum status
check_ranges(struct catalog_verify *v, size_t list, const struct catalog_ranges *all)
{
	struct str at = { NULL, 0 };

	for (size_t i = 0; i < all->count;) {
		struct str lo, hi;
		int64_t count = region_next(all, &i, &lo, &hi);

		TRY(check_region(v, list, at, lo, 0));
		TRY(check_region(v, list, lo, hi, count));
		at = hi;
	}
	return check_region(v, list, at, CATALOG_TALLY_END, 0);
}

/* Lists of a kind may share the subspace of their counters. */
static enum status
check_keys_of_all(struct catalog_verify *v)
{
	const struct catalog_kind *kind = v->db->kind;

	for (size_t i = 0; i < kind->lists_count; i++)
		if (i == 0 || kind->lists[i].counters != kind->lists[i - 1].counters)
			TRY(check_keys(v, kind->lists[i].counters));
	return STATUS_OK;
}

enum status
catalog_verify_tallies(struct catalog_verify *v)
{
	struct arena *arena = arena_new(CATALOG_GUIDE_BYTES);
	const struct catalog_kind *kind = v->db->kind;
	enum status status = arena ? check_keys_of_all(v) : STATUS_NOMEM;

	for (size_t list = 0; list < kind->lists_count && status == STATUS_OK; list++) {
		struct catalog_ranges all;

		status = read_ranges(v, list, arena, &all);
		/* None at all: a database that nobody has counted yet. */
		if (status == STATUS_OK && all.count)
			status = check_ranges(v, list, &all);
		else if (status == STATUS_CORRUPT) /* it has been told */
			status = STATUS_OK;
	}
	arena_free(arena);
	return status;
}

/* ---- In ranges ---- */

/* What is checked next: a region, or what lies in front of it, of a list. */
struct tallies_place {
	size_t list;
	struct arena *arena;
};

/* The counters of the list together are what the database says that it has. */
static void
check_total(struct catalog_verify *v, size_t list, const struct catalog_ranges *all)
{
	if (all->rest == 0 || !v->db->kind->lists[list].total_names[0])
		return;
	catalog_key_tally(&v->key, v->db, list);
	catalog_verify_found(
		v, CATALOG_FINDING_TALLY, buf_str(&v->key),
		"the counters of the whole list say %llu, and those of its ranges %lld",
		(unsigned long long)all->total, (long long)((int64_t)all->total - all->rest));
}

/*
 * Regions come and go between versions, but none moves its bounds without its counters: a region
 * that reaches over `from` is looked at once more, as a whole.
 */
static enum status
check_ranges_from(struct catalog_verify *v, size_t list, const struct catalog_ranges *all,
		  struct catalog_verify_range *range)
{
	struct str from = buf_str(&range->from), at = from;

	for (size_t i = 0; i < all->count;) {
		struct str lo, hi;
		int64_t count = region_next(all, &i, &lo, &hi);

		if (str_cmp(hi, from) <= 0)
			continue;
		if (catalog_verify_range_is_full(range)) {
			range->more = true;
			buf_append_str(&range->next, at);
			return STATUS_OK;
		}
		if (str_cmp(at, lo) < 0)
			TRY(check_region(v, list, at, lo, 0));
		TRY(check_region(v, list, lo, hi, count));
		at = hi;
	}
	return str_cmp(at, CATALOG_TALLY_END) < 0 ? check_region(v, list, at, CATALOG_TALLY_END, 0)
						  : STATUS_OK;
}

static enum status
tallies_range(struct catalog_verify *v, struct catalog_verify_range *range)
{
	struct tallies_place *place = range->arg;
	struct catalog_ranges all;
	enum status status;

	arena_clear(place->arena);
	if (range->skips) {
		catalog_key_tally(&v->key, v->db, place->list);
		catalog_verify_unchecked(v, buf_str(&v->key), "the rest of the counters of ranges");
		return STATUS_OK;
	}
	status = read_ranges(v, place->list, place->arena, &all);
	if (status == STATUS_CORRUPT) {
		catalog_key_tally(&v->key, v->db, place->list);
		catalog_verify_found(v, CATALOG_FINDING_TALLY, buf_str(&v->key),
				     "the counters of the list cannot be read");
		return STATUS_OK;
	}
	TRY(status);
	/* A list that nobody has cut into ranges yet is short, or is told as not checked. */
	if (!all.count && v->db->kind->lists[place->list].total_names[0])
		return check_region(v, place->list, STR(""), CATALOG_TALLY_END, (int64_t)all.total);
	if (!all.count)
		return STATUS_OK;
	if (!range->from.len)
		check_total(v, place->list, &all);
	return check_ranges_from(v, place->list, &all, range);
}

enum status
catalog_verify_tallies_in_ranges(struct catalog_verify *v)
{
	struct tallies_place place = { .arena = arena_new(CATALOG_GUIDE_BYTES) };
	enum status status = place.arena ? STATUS_OK : STATUS_NOMEM;

	if (status == STATUS_OK)
		status = catalog_verify_once(v, check_keys_of_all, "the counters of ranges");
	for (; place.list < v->db->kind->lists_count && status == STATUS_OK; place.list++)
		status = catalog_verify_ranges(v, tallies_range, &place);
	arena_free(place.arena);
	return status;
}
