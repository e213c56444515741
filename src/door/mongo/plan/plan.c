#include "door/mongo/index/clustered.h"
#include "door/mongo/plan/plan_int.h"
#include "door/mongo/txn/index_id.h"
#include "door/mongo/txn/mongo_int.h"

#include "mql/sort_values.h"

/* ---- By `_id` ---- */

static enum status
choose_range(const struct plan_ask *ask, struct mql *q, struct plan *plan)
{
	struct index_work w = { .arena = q->arena };
	const struct value_order order = plan_order(NULL, &w);
	const struct mql_demand *demands;
	size_t count;
	bool any;

	mql_match_demands(ask->match, &demands, &count);
	for (size_t i = 0; i < count; i++) {
		const struct mql_demand *d = &demands[i];

		if (plan_is_of_id(d) && plan_value_has_key(ask, &d->value) &&
		    (!plan_is_text(d->value.type) || bson_text(&d->value).len <= PLAN_BOUND_BYTES))
			TRY(plan_bounds_narrow(&order, d, &plan->bounds, &any));
	}
	return STATUS_OK;
}

/* ---- All ---- */

/* True for the index by `_id`, and for {$natural: 1}. */
static bool
hint_is_known(const struct bson_value *hint, int *order)
{
	struct bson_element e;
	struct bson_iter i;
	int64_t n;

	if (hint->type == BSON_STRING)
		return str_eq(bson_text(hint), STR("_id_"));
	if (hint->type != BSON_DOCUMENT || bson_is_empty(bson_text(hint)))
		return hint->type == BSON_DOCUMENT;
	bson_iter_begin(&i, bson_text(hint));
	if (bson_count(bson_text(hint)) != 1 || !bson_iter_read(&i, &e) ||
	    !bson_to_int64(&e.value, &n) || (n != 1 && n != -1))
		return false;
	if (str_eq(e.name, STR("_id")))
		return n == 1;
	if (!*order)
		*order = (int)n;
	return str_eq(e.name, STR("$natural"));
}

/* The index by `_id` may have another name where the collection is clustered by it. */
static bool
hint_is_clustered(const struct bson_value *hint, const struct catalog_db *db)
{
	struct str index = hint->type == BSON_STRING ? clustered_of(db) : STR("");
	struct bson_value name;

	return index.len && bson_find(index, STR("name"), &name) &&
	       str_eq(bson_text(&name), bson_text(hint));
}

static bool
hint_is_natural(const struct bson_value *hint)
{
	return hint->type == BSON_DOCUMENT && bson_find(bson_text(hint), STR("$natural"), NULL);
}

/*
 * The index that a hint of `_id` means where the query compares by a collation: the one of `_id`s
 * that has the same. NULL: the documents.
 */
static const struct index_def *
hint_collated(const struct plan_ask *ask, const struct catalog_db *db)
{
	const struct index_def *def = ask->texts ? index_of_id(db) : NULL;
	const struct bson_value *hint = ask->hint;
	int order = 0;

	if (!def || ask->min || ask->max || !plan_index_is_usable(def) ||
	    plan_is_foreign(ask, def) || hint_is_natural(hint) ||
	    (hint->type == BSON_DOCUMENT && bson_is_empty(bson_text(hint))))
		return NULL;
	return hint_is_known(hint, &order) || hint_is_clustered(hint, db) ? def : NULL;
}

/* `min` and `max` with the hint of the index by `_id`. */
static enum status
choose_between(struct call *c, const struct plan_ask *ask, struct mql *q, struct plan *plan)
{
	const struct bson_value *bounds[] = { ask->min, ask->max };
	struct bson_value *ids = arena_alloc(q->arena, 2 * sizeof(*ids));
	struct index_work w = { .arena = q->arena };
	const struct value_order order = plan_order(NULL, &w);
	struct value_interval between = { 0 };
	AUTO(buf_release) struct buf key = BUF_SHORT(BSON_EMPTY_BYTES + PLAN_ID_KEY_BYTES);
	struct bson_builder b;

	if (!ids)
		return STATUS_LIMIT;
	bson_open(&b, &key);
	bson_put_int32(&b, STR("_id"), 1);
	bson_end(&b);
	TRY(buf_status(&key));
	TRY(plan_between_check(c, ask, buf_str(&key), ask->texts));
	if (hint_is_natural(ask->hint))
		return call_fail(c, MONGO_NO_QUERY_PLANS,
				 "min and max are incompatible with $natural");
	for (size_t i = 0; i < 2; i++)
		if (bounds[i])
			(void)bson_find(bson_text(bounds[i]), STR("_id"), &ids[i]);
	if (ask->min && ask->max && bson_compare_values(&ids[0], &ids[1], NULL) >= 0)
		return plan_between_fail_order(c);
	between.low.value = ask->min ? &ids[0] : NULL;
	between.high = (struct value_bound){ ask->max ? &ids[1] : NULL, true };
	return value_interval_narrow(&order, &plan->bounds, &between);
}

bool
plan_hint_is_id(const struct bson_value *hint)
{
	int order = 0;

	return hint_is_known(hint, &order);
}

/* The plan by `_id`. */
static enum status
choose_id(struct call *c, const struct plan_ask *ask, bool hinted, struct mql *q, struct plan *plan)
{
	bool between = ask->min || ask->max, points = false;
	const struct mql_demand *demands;
	struct value_set ids = { 0 };
	size_t count;

	mql_match_demands(ask->match, &demands, &count);
	if (!between)
		TRY(plan_points_choose(ask, demands, count, q, &ids, &points));
	*plan = (struct plan){ .kind = points ? PLAN_POINTS : PLAN_RANGE, .ids = ids };
	if (!points)
		TRY(choose_range(ask, q, plan));
	return between && !hinted ? choose_between(c, ask, q, plan) : STATUS_OK;
}

enum status
plan_fail_dropped(struct call *c)
{
	return call_fail(c, MONGO_QUERY_PLAN_KILLED,
			 "query plan killed :: the collection was dropped or renamed");
}

enum status
plan_choose(struct call *c, struct plain *p, const struct plan_ask *ask, struct mql *q,
	    struct plan *ret)
{
	struct place_head head = { 0 };
	int order = ask->order;
	const struct index_def *own = ask->hint ? hint_collated(ask, p->db) : NULL;
	bool hinted = own || (ask->hint && !hint_is_known(ask->hint, &order) &&
			      !hint_is_clustered(ask->hint, p->db));

	if (ask->place.len) {
		head = plan_place_head(ask->place);
		/* Another collection has the name by now. */
		if (head.db != p->db->number)
			return plan_fail_dropped(c);
	}
	TRY(choose_id(c, ask, hinted, q, ret));
	ret->reverse = order < 0;
	ret->figures = ask->figures;
	ret->keys = ask->keys;
	if (ret->kind == PLAN_POINTS && plain_scheme_of(p->db) == PLAIN_EXPLODED) {
		ret->parts = ask->parts;
		ret->part_count = ask->part_count;
	}
	if (head.index >= PLAN_PLACE_MERGED_REVERSE)
		return plan_or_sort_resume(c, p, ask, q, &head, ret);
	if (head.index)
		return plan_index_resume(c, p, ask, q, &head, ret);
	if (hinted)
		return plan_index_hinted(c, p, ask, own, q, ret);
	if (ask->hint || ask->min || ask->max || ret->kind == PLAN_POINTS)
		return STATUS_OK;
	/* What was walked by `_id` goes on in that order. */
	if (ask->place.len && !ask->changes)
		return value_interval_is_all(&ret->bounds) ? plan_or_resume(p, ask, q, ret)
							   : STATUS_OK;
	return plan_index_choose(p, ask, q, ret);
}

/* The number of the index that its use counts for ($indexStats): 0 for both indexes by `_id`. */
static uint64_t
branch_number(const struct plan_branch *branch)
{
	const struct index_def *def = branch->asked ? branch->asked->def : NULL;

	return def && !index_def_is_of_id(def) ? def->number : 0;
}

void
plan_count_use(const struct plan *plan, struct call *c, const struct plain *p)
{
	for (size_t i = 0; i < plan->branch_count; i++)
		access_use(&c->mongo->accesses, c->uses, p->db->number,
			   branch_number(&plan->branches[i]));
	if (plan->def || plan->kind == PLAN_POINTS || !value_interval_is_all(&plan->bounds))
		access_use(&c->mongo->accesses, c->uses, p->db->number,
			   plan->def && !index_def_is_of_id(plan->def) ? plan->def->number : 0);
}
