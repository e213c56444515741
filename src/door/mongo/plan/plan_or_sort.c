/*
 * Branches of a $or that are merged for a sort: each is asked of an index whose first columns have
 * the values that it demands, and whose other columns are those of the sort. So what stands behind
 * the first columns, down to the `_id`, is the same in the entries that one document has in several
 * of these indexes, and tells which of them come next (index/plan/merge.h).
 */
#include "door/mongo/index/index.h"
#include "door/mongo/plan/plan_int.h"
#include "mql/match/branches.h"

/*
 * True if the columns behind those of values are the sort's, and no others. `_id` may follow, as it
 * does in all entries.
 */
static bool
columns_are_sorted(const struct choosing *x, const struct candidate *one)
{
	const struct mql_sort_by *by = x->ask->sort;
	size_t count = mql_sort_by_count(by), k = 0;
	bool descending;

	for (size_t at = one->points; at < one->def->column_count; at++, k++)
		if (k == count || !str_eq(mql_sort_by_path(by, k, &descending), one->names[at]))
			return false;
	return k == count ||
	       (k + 1 == count && str_eq(mql_sort_by_path(by, k, &descending), STR("_id")));
}

static bool
candidate_can_merge(const struct choosing *x, const struct candidate *one)
{
	return one->sorts && !one->foreign && !one->def->hashed && !one->arrays && !one->cuts &&
	       one->ranges <= PLAN_MERGED && columns_are_sorted(x, one);
}

/* Chooses the index of a branch, and adds the entries that it reads to `*entries`. */
static enum status
branch_make(const struct choosing *x, const struct mql_branch *branch, struct plan_branch *ret,
	    uint64_t *entries, bool *ret_any)
{
	const struct plan_ask ask = { .match = x->ask->match,
				      .sort = x->ask->sort,
				      .texts = x->ask->texts };
	struct choosing own;

	TRY(plan_or_demands(x, branch, &ask, &own));
	return plan_or_branch(&own, candidate_can_merge, ret, entries, ret_any);
}

enum status
plan_or_sort(const struct choosing *x, struct candidate *sorts, struct plan *plan, bool *ret_chosen)
{
	const struct mql_branch *branches;
	struct plan_branch *made;
	uint64_t entries = 0;
	size_t count, ranges = 0;
	bool any = true;

	*ret_chosen = false;
	if (!x->ask->sort || x->ask->changes || x->ask->keys)
		return STATUS_OK;
	mql_match_branches(x->ask->match, &branches, &count);
	if (!count || count > PLAN_MERGED)
		return STATUS_OK;
	made = arena_alloc(x->q->arena, count * sizeof(*made));
	if (!made)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		TRY(branch_make(x, &branches[i], &made[i], &entries, &any));
		/* Keys of descending columns differ, so these cannot be compared with others. */
		if (!any || made[i].asked->sorts_reverse != made[0].asked->sorts_reverse)
			return STATUS_OK;
		ranges += made[i].asked->keys.count;
	}
	if (ranges > PLAN_MERGED)
		return STATUS_OK;
	if (sorts) {
		TRY(plan_candidate_count(x, sorts));
		if (sorts->rows <= entries)
			return STATUS_OK;
	}
	plan->kind = PLAN_INDEX;
	plan->branches = made;
	plan->branch_count = count;
	plan->range_count = ranges;
	plan->reverse = made[0].asked->sorts_reverse;
	plan->merged = 1;
	plan->once = plan->sorted = true;
	*ret_chosen = true;
	return STATUS_OK;
}
