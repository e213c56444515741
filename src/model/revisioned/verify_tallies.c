/*
 * TALLIES: the counters of each region, ranges that overlap, together say how many keys are in it.
 */
#include "model/revisioned/tally_int.h"
#include "model/revisioned/verify_int.h"

static enum status
check_keys(struct verify *v)
{
	AUTO(verify_cursor_close) struct verify_cursor c = { .done = true };

	TRY(verify_cursor_open(v, &c, REV_SUBSPACE_TALLIES));
	while (!c.done) {
		struct tuple_reader r = tuple_reader(c.tail);
		struct rev_range range;
		enum status status;
		uint64_t space;

		arena_clear(v->scratch);
		if (tuple_next_u64(&r, &space) != STATUS_OK ||
		    (space != REV_SUBSPACE_ALL_DOCS && space != REV_SUBSPACE_CHANGES)) {
			verify_found(v, REV_FINDING_KEY, c.pair.key, "no such list is counted");
		} else {
			status = rev_range_parse(r.rest, c.pair.value, v->scratch, &range);
			if (status == STATUS_CORRUPT)
				verify_found(v, REV_FINDING_TALLY, c.pair.key,
					     "not a counter of a range");
			else
				TRY(status);
		}
		TRY(verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

static enum status
count_keys(struct verify *v, struct str begin, struct str end, uint64_t *ret)
{
	unsigned failures = 0;
	enum status status;

	while ((status = rev_keys_count(v->tx, begin, end, ret)) != STATUS_OK)
		TRY(verify_again(v, &failures, status));
	return STATUS_OK;
}

static enum status
read_ranges(struct verify *v, enum rev_list list, struct arena *arena, struct rev_ranges *ret)
{
	const struct arena_mark mark = arena_mark(arena);
	unsigned failures = 0;
	enum status status;

	while ((status = rev_ranges_read(v->tx, v->db, list, arena, ret)) != STATUS_OK) {
		arena_reset(arena, mark);
		TRY(verify_again(v, &failures, status));
	}
	return STATUS_OK;
}

/* The region lo <= key < hi, or what lies between two. */
static enum status
check_region(struct verify *v, enum rev_list list, struct str lo, struct str hi, int64_t count)
{
	AUTO(buf_release) struct buf begin = REV_KEY_INIT;
	AUTO(buf_release) struct buf end = REV_KEY_INIT;
	uint64_t keys;

	rev_key_space(&begin, v->db, rev_list_space(list));
	buf_append_str(&begin, lo);
	rev_key_space(&end, v->db, rev_list_space(list));
	buf_append_str(&end, hi);
	TRY(rev_key_status(&begin));
	TRY(rev_key_status(&end));
	TRY(count_keys(v, buf_str(&begin), buf_str(&end), &keys));
	if (count == (int64_t)keys)
		return STATUS_OK;
	rev_key_range(&v->key, v->db, list, lo, hi);
	verify_found(v, REV_FINDING_TALLY, buf_str(&v->key),
		     "the counters of this range say %lld, and there are %llu", (long long)count,
		     (unsigned long long)keys);
	return STATUS_OK;
}

static enum status
check_ranges(struct verify *v, enum rev_list list, const struct rev_ranges *all)
{
	struct str at = { NULL, 0 };

	for (size_t i = 0; i < all->count;) {
		struct str lo = all->ranges[i].lo, hi = all->ranges[i].hi;
		int64_t count = all->ranges[i].count;

		for (i++; i < all->count && str_cmp(all->ranges[i].lo, hi) < 0; i++) {
			count += all->ranges[i].count;
			if (str_cmp(all->ranges[i].hi, hi) > 0)
				hi = all->ranges[i].hi;
		}
		TRY(check_region(v, list, at, lo, 0));
		TRY(check_region(v, list, lo, hi, count));
		at = hi;
	}
	return check_region(v, list, at, REV_TALLY_END, 0);
}

enum status
verify_tallies(struct verify *v)
{
	struct arena *arena = arena_new(REV_GUIDE_BYTES);
	enum status status = arena ? check_keys(v) : STATUS_NOMEM;

	for (int list = 0; list < REV_LISTS && status == STATUS_OK; list++) {
		struct rev_ranges all;

		status = read_ranges(v, (enum rev_list)list, arena, &all);
		/* None at all: a database that nobody has counted yet. */
		if (status == STATUS_OK && all.count)
			status = check_ranges(v, (enum rev_list)list, &all);
		else if (status == STATUS_CORRUPT) /* it has been told */
			status = STATUS_OK;
	}
	arena_free(arena);
	return status;
}
