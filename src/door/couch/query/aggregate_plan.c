/* How the groups of an aggregate are got, and by which indexes. */
#include "door/couch/query/find_aggregate.h"

const char *
find_way_name(enum find_way way)
{
	static const char *const names[] = {
		[FIND_WAY_DOCUMENTS] = "documents",
		[FIND_WAY_COUNTED] = "counted",
		[FIND_WAY_STREAMED] = "streamed",
		[FIND_WAY_GATHERED] = "gathered",
	};

	return names[way];
}

/* An aggregate while it is planned. */
struct aggregate_planner {
	struct couch_req *r;
	struct kv_tx *tx;
	const struct find_args *args;
	const struct query_indexes *indexes;
};

/* The leading columns with a range that the chosen index has. */
static size_t
plan_prefix(const struct plan *p)
{
	for (size_t i = 0; i < p->count; i++) {
		if (p->candidates[i].index == p->chosen)
			return p->candidates[i].prefix;
	}
	return 0;
}

/* Plans the query as if it were sorted. `*ret_found` is false if no index has this order. */
static enum status
plan_sorted(const struct aggregate_planner *m, const struct find_args *sorted, struct plan *ret,
	    bool *ret_found)
{
	const struct plan_terms terms = { .explain = true, .first = true };
	struct couch_fail fail = m->r->fail;
	enum status status = plan_make(m->r, m->tx, sorted, m->indexes, &terms, ret);

	*ret_found = false;
	if (status == STATUS_INVALID) {
		m->r->fail = fail;
		return STATUS_OK;
	}
	TRY(status);
	*ret_found = ret->chosen && ret->way == PLAN_INDEX;
	return STATUS_OK;
}

/* Plans the query as if it were sorted by the groups. */
static enum status
plan_by_groups(const struct aggregate_planner *m, struct plan *ret, bool *ret_found)
{
	struct find_args sorted = *m->args;

	*ret_found = false;
	if (!m->args->aggregate->group_count)
		return STATUS_OK;
	sorted.sort = (struct query_sort){ .fields = m->args->aggregate->fields,
					   .count = m->args->aggregate->group_count };
	return plan_sorted(m, &sorted, ret, ret_found);
}

/* ---- Counters, and the ends of indexes ---- */

/* True if the counters of ranges know how many documents match, but for a few ranges at most. */
static bool
plan_counts(const struct find_args *args, const struct plan *p)
{
	if (!p->chosen->ddoc.ptr)
		return args->normal->kind == NORMAL_ANYTHING;
	return p->way == PLAN_INDEX && plan_read_is_sure(&p->reads[0]);
}

/* Plans to read one end of an index that begins with the field, behind columns of one value. */
static enum status
plan_end(const struct aggregate_planner *m, const struct plan *whole, size_t function,
	 struct plan *ret, bool *ret_found)
{
	const struct aggregate *a = m->args->aggregate;
	struct find_args sorted = *m->args;

	sorted.sort = (struct query_sort){ .fields = &a->fields[function], .count = 1 };
	sorted.fields = sorted.sort.fields;
	sorted.fields_count = 1;
	TRY(plan_sorted(m, &sorted, ret, ret_found));
	if (!*ret_found)
		return STATUS_OK;
	/* A partial index that was named has fewer documents than another one. */
	*ret_found = plan_read_is_sure(&ret->reads[0]) &&
		     (ret->chosen == whole->chosen ||
		      (!ret->chosen->filter.ptr && !whole->chosen->filter.ptr));
	return STATUS_OK;
}

/* Plans each function by itself: `*ret_found` if no document but those of ends has to be read. */
static enum status
plan_ends(const struct aggregate_planner *m, const struct plan *whole, struct plan **ret,
	  bool *ret_found)
{
	const struct aggregate *a = m->args->aggregate;

	*ret_found = !a->group_count && !whole->nothing && !m->args->conflicts &&
		     (!a->counts || plan_counts(m->args, whole));
	*ret = arena_alloc(m->r->arena, (a->count + 1) * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < a->count && *ret_found; i++)
		*ret_found = a->kinds[i] == AGGREGATE_MIN || a->kinds[i] == AGGREGATE_MAX;
	for (size_t i = 0; i < a->count && *ret_found; i++)
		TRY(plan_end(m, whole, i, &(*ret)[i], ret_found));
	return STATUS_OK;
}

/* ---- The whole ---- */

enum status
find_aggregate_plan(struct couch_req *r, struct kv_tx *tx, const struct find_args *args,
		    const struct query_indexes *indexes, bool explain,
		    struct find_aggregate_plan *ret)
{
	const struct aggregate_planner m = { r, tx, args, indexes };
	struct plan_terms terms = {
		.explain = explain,
		.first = true,
		.counts = !args->aggregate->group_count,
	};
	struct plan by_groups;
	bool found;

	ret->way = FIND_WAY_GATHERED;
	TRY(plan_make(r, tx, args, indexes, &terms, &ret->plan));
	if (!ret->plan.chosen)
		return STATUS_OK;
	TRY(plan_ends(&m, &ret->plan, &ret->ends, &found));
	if (found) {
		ret->way = FIND_WAY_COUNTED;
		return STATUS_OK;
	}
	TRY(plan_by_groups(&m, &by_groups, &found));
	/* An index that narrows what is read beats one that has the groups in order. */
	if (!found || (by_groups.chosen != ret->plan.chosen && plan_prefix(&ret->plan) &&
		       !plan_prefix(&by_groups))) {
		terms.first = terms.counts = false;
		return plan_make(r, tx, args, indexes, &terms, &ret->plan);
	}
	ret->plan = by_groups;
	ret->way = FIND_WAY_STREAMED;
	return STATUS_OK;
}
