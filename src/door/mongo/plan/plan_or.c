/*
 * Plans for $or: each branch is asked of its own index, or of `_id`, and what all of them find
 * comes once each, in the order of `_id`, as if the collection had been walked through.
 */
#include "door/mongo/plan/plan_int.h"
#include "mql/match/branches.h"

enum status
plan_or_demands(const struct choosing *x, const struct mql_branch *branch,
		const struct plan_ask *ask, struct choosing *ret)
{
	struct mql_demand *all = arena_alloc(x->q->arena,
					     (x->count + branch->count + 1) * sizeof(*all));

	if (!all)
		return STATUS_LIMIT;
	for (size_t i = 0; i < branch->count; i++)
		all[i] = branch->demands[i];
	for (size_t i = 0; i < x->count; i++)
		all[branch->count + i] = x->demands[i];
	*ret = (struct choosing){ .p = x->p,
				  .ask = ask,
				  .q = x->q,
				  .order = x->order,
				  .has_written = x->has_written,
				  .demands = all,
				  .count = x->count + branch->count };
	return STATUS_OK;
}

enum status
plan_or_branch(const struct choosing *x, plan_suits *suits, struct plan_branch *ret,
	       uint64_t *entries, bool *ret_any)
{
	struct candidate *one = arena_alloc(x->q->arena, sizeof(*one));

	if (!one)
		return STATUS_LIMIT;
	TRY(plan_index_best(x, suits, one));
	*ret_any = one->def;
	if (!one->def)
		return STATUS_OK;
	TRY(plan_candidate_count(x, one));
	*entries += one->rows;
	*ret = (struct plan_branch){ .asked = one };
	return STATUS_OK;
}

/*
 * Chooses how a branch finds its documents, and adds the entries that it reads to `*entries`.
 * `*ret_any` is false if no index finds what it demands.
 */
static enum status
branch_choose(const struct choosing *x, const struct mql_branch *branch, struct plan_branch *ret,
	      uint64_t *entries, bool *ret_any)
{
	const struct plan_ask ask = { .match = x->ask->match, .texts = x->ask->texts };
	struct choosing own;
	struct value_set ids;

	TRY(plan_or_demands(x, branch, &ask, &own));
	TRY(plan_points_choose(&ask, own.demands, own.count, own.q, &ids, ret_any));
	if (!*ret_any)
		return plan_or_branch(&own, NULL, ret, entries, ret_any);
	*ret = (struct plan_branch){ .ids = ids };
	*entries += ids.count;
	return STATUS_OK;
}

enum status
plan_or_choose(const struct choosing *x, struct candidate *sorts, struct plan *plan,
	       bool *ret_chosen)
{
	const struct mql_branch *branches;
	struct plan_branch *made;
	uint64_t entries = 0, walked;
	size_t count;
	bool any = true;

	*ret_chosen = false;
	mql_match_branches(x->ask->match, &branches, &count);
	if (!count || count > PLAN_BRANCHES || plan->reverse)
		return STATUS_OK;
	made = arena_alloc(x->q->arena, count * sizeof(*made));
	if (!made)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count && any && entries <= PLAN_IDS_MOST; i++)
		TRY(branch_choose(x, &branches[i], &made[i], &entries, &any));
	if (!any || entries > PLAN_IDS_MOST)
		return STATUS_OK;
	if (sorts) {
		TRY(plan_candidate_walked(x, sorts, entries, &walked));
		if (walked <= entries)
			return STATUS_OK;
	}
	plan->kind = PLAN_IDS;
	plan->branches = made;
	plan->branch_count = count;
	*ret_chosen = true;
	return STATUS_OK;
}
