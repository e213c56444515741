/* Plans by indexes: which one is asked. */
#include "door/mongo/index/index.h"
#include "door/mongo/plan/plan_int.h"

/* True if the entries of all ranges come in the order of `_id`. */
static bool
candidate_is_by_id(const struct candidate *one)
{
	return one->ranges <= 1 && one->points == one->def->column_count;
}

static enum status
plan_make(const struct choosing *x, struct candidate *best, struct plan *plan)
{
	plan->kind = x->ask->changes ? PLAN_IDS : PLAN_INDEX;
	plan->def = best->def;
	plan->once = !index_def_arrays(best->def) || candidate_is_by_id(best);
	plan->sorted = best->sorts;
	if (best->covers) {
		struct plan_columns *columns = arena_alloc(x->q->arena, sizeof(*columns));

		if (!columns)
			return STATUS_LIMIT;
		plan_columns_choose(x->ask->cover, best, columns);
		plan->covered = columns;
		plan->distinct = best->distinct;
	}
	if (best->sorts)
		plan->reverse = best->sorts_reverse;
	else if (x->ask->changes || !candidate_is_by_id(best))
		plan->reverse = false;
	if (x->ask->figures) {
		struct candidate *asked = arena_alloc(x->q->arena, sizeof(*asked));

		if (!asked)
			return STATUS_LIMIT;
		*asked = *best;
		plan->asked = asked;
	}
	TRY(plan_candidate_ranges(x, best));
	plan->ranges = best->keys.items;
	plan->range_count = best->keys.count;
	if (best->sorts && best->merges && plan->range_count > 1 && plan->kind == PLAN_INDEX)
		plan->merged = best->points;
	return STATUS_OK;
}

/* Gives up the bounds of a last column with arrays, whose first entries lie outside of them. */
static bool
candidate_can_sort(const struct choosing *x, struct candidate *one)
{
	if (x->ask->sort && !one->sorts && one->bounded) {
		one->bounded = false;
		plan_sort_look(x, one);
	}
	return one->sorts;
}

/* ---- With or without a sort in memory ---- */

/*
 * Decides between the index that finds the fewest documents, which are then sorted, and one that
 * gives their order. `best`, whose def may be NULL, becomes the one that reads fewer entries; of
 * the other one as many are read as it takes to find what is wanted, if all are spread evenly.
 */
static enum status
choose_sorted(const struct choosing *x, struct candidate *best, struct candidate *sorts)
{
	uint64_t walked;

	if (best->def && !best->sorts) {
		TRY(plan_candidate_count(x, best));
		TRY(plan_candidate_walked(x, sorts, best->rows, &walked));
		if (best->rows < walked)
			return STATUS_OK;
	}
	if (!best->def || !best->sorts)
		*best = *sorts;
	return STATUS_OK;
}

enum status
plan_or_resume(struct plain *p, const struct plan_ask *ask, struct mql *q, struct plan *plan)
{
	struct choosing x;
	bool chosen;

	plan_choosing_begin(&x, p, ask, q);
	return plan_or_choose(&x, NULL, plan, &chosen);
}

enum status
plan_or_sort_resume(struct call *c, struct plain *p, const struct plan_ask *ask, struct mql *q,
		    const struct place_head *head, struct plan *plan)
{
	struct choosing x;
	bool chosen;

	plan_choosing_begin(&x, p, ask, q);
	TRY(plan_or_sort(&x, NULL, plan, &chosen));
	if (chosen && plan->reverse == (head->index == PLAN_PLACE_MERGED_REVERSE))
		return STATUS_OK;
	return call_fail(c, MONGO_QUERY_PLAN_KILLED,
			 "query plan killed :: an index that it used was dropped");
}

enum status
plan_index_choose(struct plain *p, const struct plan_ask *ask, struct mql *q, struct plan *plan)
{
	struct candidate best = { 0 }, sorts = { 0 }, covers = { 0 }, one;
	const struct index_def *def;
	struct choosing x;
	bool either = false;

	plan_choosing_begin(&x, p, ask, q);
	for (size_t i = 0;
	     (x.count || ask->sort || ask->cover) && (def = index_live_at(p->db, i)) != NULL; i++) {
		if (!plan_index_is_usable(def) || !plan_index_has_all(&x, def))
			continue;
		TRY(plan_candidate_make(&x, def, &one));
		if ((one.points || one.bounded) && (!ask->order || candidate_is_by_id(&one)) &&
		    (!best.def || plan_candidate_is_better(&one, &best)))
			best = one;
		if (one.covers && !ask->order && !ask->cover->keeps_order &&
		    (!covers.def || (one.distinct && !covers.distinct)))
			covers = one;
		if (candidate_can_sort(&x, &one) &&
		    (!sorts.def || plan_candidate_is_better(&one, &sorts)))
			sorts = one;
	}
	if (!best.def && value_interval_is_all(&plan->bounds)) {
		TRY(plan_or_sort(&x, sorts.def ? &sorts : NULL, plan, &either));
		if (!either)
			TRY(plan_or_choose(&x, sorts.def ? &sorts : NULL, plan, &either));
	}
	if (either)
		return STATUS_OK;
	if (sorts.def)
		TRY(choose_sorted(&x, &best, &sorts));
	/* Entries are shorter than documents, and next to each other. */
	if (!best.def && !ask->sort)
		best = covers;
	if (!best.def || (!best.points && !value_interval_is_all(&plan->bounds)))
		return STATUS_OK;
	return plan_make(&x, &best, plan);
}

static bool
hint_names(const struct bson_value *hint, const struct index_def *def)
{
	if (hint->type == BSON_STRING)
		return str_eq(def->name, bson_text(hint));
	return hint->type == BSON_DOCUMENT &&
	       bson_compare_documents(index_key_of(def), bson_text(hint), NULL) == 0;
}

static enum status
hinted_def(struct call *c, const struct catalog_db *db, const struct bson_value *hint,
	   const struct index_def **ret)
{
	const struct index_def *def;

	*ret = NULL;
	if (hint->type != BSON_STRING && hint->type != BSON_DOCUMENT)
		return call_fail(c, MONGO_FAILED_TO_PARSE, "Hint must be a string or an object");
	for (size_t i = 0; (def = index_at(db, i)) != NULL; i++) {
		if (!plan_index_is_usable(def) || !hint_names(hint, def))
			continue;
		if (*ret)
			return call_fail(c, MONGO_INDEX_NOT_FOUND,
					 "error processing query: planner returned error :: caused "
					 "by :: Hint matched multiple indexes, must hint by index "
					 "name. Matched: %.*s and %.*s",
					 STR_ARG((*ret)->name), STR_ARG(def->name));
		*ret = def;
	}
	if (*ret)
		return STATUS_OK;
	return call_fail(c, MONGO_BAD_VALUE,
			 "error processing query: planner returned error :: caused by :: "
			 "hint provided does not correspond to an existing index");
}

enum status
plan_index_hinted(struct call *c, struct plain *p, const struct plan_ask *ask,
		  const struct index_def *def, struct mql *q, struct plan *plan)
{
	struct candidate one;
	struct choosing x;

	if (!def)
		TRY(hinted_def(c, p->db, ask->hint, &def));
	plan_choosing_begin(&x, p, ask, q);
	TRY(ask->min || ask->max ? plan_between_make(c, &x, def, &one)
				 : plan_candidate_make(&x, def, &one));
	return plan_make(&x, &one, plan);
}

enum status
plan_index_resume(struct call *c, struct plain *p, const struct plan_ask *ask, struct mql *q,
		  const struct place_head *head, struct plan *plan)
{
	const struct index_def *def = index_find(p->db, head->index);
	struct candidate one;
	struct choosing x;

	assert(head->db == p->db->number);
	if (!def || !index_is_readable(def))
		return call_fail(c, MONGO_QUERY_PLAN_KILLED,
				 "query plan killed :: the index that it used was dropped");
	plan_choosing_begin(&x, p, ask, q);
	if (ask->min || ask->max) {
		TRY(plan_between_make(c, &x, def, &one));
	} else {
		TRY(plan_candidate_make(&x, def, &one));
		(void)candidate_can_sort(&x, &one);
	}
	return plan_make(&x, &one, plan);
}
