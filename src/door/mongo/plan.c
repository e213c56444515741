#include "door/mongo/plan.h"

#include "mql/sort_values.h"

/* ---- By `_id` ---- */

static bool
is_text(enum bson_type type)
{
	return type == BSON_STRING || type == BSON_SYMBOL;
}

/* True if a demand of this value is one of keys: a collation makes other strings equal. */
static bool
value_has_key(const struct plan_ask *ask, const struct bson_value *v)
{
	return !ask->texts || (!is_text(v->type) && !bson_is_container(v));
}

static bool
is_of_id(const struct mql_demand *d)
{
	return !d->element && str_eq(d->path, STR("_id"));
}

static int
compare_ids(const void *a, const void *b, const void *arg)
{
	(void)arg;
	return bson_compare_values(a, b, NULL);
}

/* False if the value is too long for an `_id`: no document has it. */
static bool
is_possible_id(const struct bson_value *v)
{
	AUTO(buf_release) struct buf bytes = BUF_INIT(PLAIN_ID_VALUE_BYTES);

	if ((!is_text(v->type) && v->type != BSON_BINARY && !bson_is_container(v)) ||
	    v->text.len < PLAN_BOUND_BYTES)
		return true;
	bson_value_write(&bytes, v);
	return buf_status(&bytes) != STATUS_LIMIT;
}

/* The values of an `$in`, sorted, each once. False in `*ret_points` if they are no keys. */
static enum status
points_of_list(const struct plan_ask *ask, struct str list, struct mql *q, struct plan *plan,
	       bool *ret_points)
{
	size_t count = bson_count(list), at = 0;
	struct bson_value *values = arena_alloc(q->arena, (count + 1) * sizeof(*values));
	struct bson_value *ids = arena_alloc(q->arena, (count + 1) * sizeof(*ids));
	const void **sorted = arena_alloc(q->arena, (count + 1) * sizeof(*sorted));
	struct bson_element e;
	struct bson_iter i;

	*ret_points = true;
	if (!values || !ids || !sorted)
		return STATUS_LIMIT;
	for (bson_iter_begin(&i, list); bson_iter_read(&i, &e); at++) {
		*ret_points = *ret_points && value_has_key(ask, &e.value);
		values[at] = e.value;
		sorted[at] = &values[at];
	}
	TRY(mql_sort(q, sorted, at, compare_ids, NULL));
	*plan = (struct plan){ .kind = PLAN_POINTS, .ids = ids };
	for (size_t k = 0; k < at; k++) {
		const struct bson_value *v = sorted[k];

		if (is_possible_id(v) && (!plan->count || !bson_equals(&ids[plan->count - 1], v)))
			ids[plan->count++] = *v;
	}
	return STATUS_OK;
}

/* Points, if the filter demands one of some `_id`s. */
static enum status
choose_points(const struct plan_ask *ask, struct mql *q, struct plan *plan, bool *ret_points)
{
	const struct mql_demand *demands;
	struct bson_value *id;
	size_t count;

	*ret_points = false;
	mql_match_demands(ask->match, &demands, &count);
	for (size_t i = 0; i < count; i++) {
		if (!is_of_id(&demands[i]) || demands[i].op != MQL_DEMAND_EQ ||
		    !value_has_key(ask, &demands[i].value))
			continue;
		id = arena_alloc(q->arena, sizeof(*id));
		if (!id)
			return STATUS_LIMIT;
		*id = demands[i].value;
		*plan = (struct plan){ .kind = PLAN_POINTS,
				       .ids = id,
				       .count = is_possible_id(id) };
		*ret_points = true;
		return STATUS_OK;
	}
	for (size_t i = 0; i < count && !*ret_points; i++)
		if (is_of_id(&demands[i]) && demands[i].op == MQL_DEMAND_IN)
			TRY(points_of_list(ask, demands[i].value.text, q, plan, ret_points));
	return STATUS_OK;
}

/*
 * The bounds of all values of a kind, since a comparison finds only values of its own. False for
 * kinds whose bounds nothing is gained by.
 */
static bool
kind_bounds(const struct bson_value *v, struct bson_value *ret_from, struct bson_value *ret_to)
{
	if (bson_is_number(v)) {
		*ret_from = BSON_OF_DOUBLE(__builtin_nan(""));
		*ret_to = BSON_OF_STRING(STR(""));
		return true;
	}
	if (is_text(v->type)) {
		*ret_from = BSON_OF_STRING(STR(""));
		*ret_to = BSON_OF_DOCUMENT(BSON_EMPTY);
		return true;
	}
	if (v->type == BSON_OBJECT_ID) {
		*ret_from = (struct bson_value){ .type = BSON_OBJECT_ID,
						 .text = STR("\0\0\0\0\0\0\0\0\0\0\0\0") };
		*ret_to = BSON_OF_BOOL(false);
		return true;
	}
	if (v->type == BSON_DATE) {
		*ret_from = BSON_OF_DATE(INT64_MIN);
		*ret_to = (struct bson_value){ .type = BSON_TIMESTAMP };
		return true;
	}
	return false;
}

static void
bound_from(struct plan *plan, const struct bson_value *v, bool open)
{
	int order = plan->has_from ? bson_compare_values(v, &plan->from, NULL) : 1;

	if (order < 0 || (order == 0 && plan->from_open))
		return;
	plan->from = *v;
	plan->from_open = open;
	plan->has_from = true;
}

static void
bound_to(struct plan *plan, const struct bson_value *v, bool open)
{
	int order = plan->has_to ? bson_compare_values(v, &plan->to, NULL) : -1;

	if (order > 0 || (order == 0 && plan->to_open))
		return;
	plan->to = *v;
	plan->to_open = open;
	plan->has_to = true;
}

static void
choose_range(const struct plan_ask *ask, struct plan *plan)
{
	const struct mql_demand *demands;
	size_t count;

	*plan = (struct plan){ .kind = PLAN_RANGE };
	mql_match_demands(ask->match, &demands, &count);
	for (size_t i = 0; i < count; i++) {
		const struct mql_demand *d = &demands[i];
		bool from = d->op == MQL_DEMAND_GT || d->op == MQL_DEMAND_GTE;
		bool to = d->op == MQL_DEMAND_LT || d->op == MQL_DEMAND_LTE;
		struct bson_value least, most;

		if (!is_of_id(d) || (!from && !to) || !kind_bounds(&d->value, &least, &most) ||
		    !value_has_key(ask, &d->value) ||
		    (is_text(d->value.type) && d->value.text.len > PLAN_BOUND_BYTES))
			continue;
		bound_from(plan, from ? &d->value : &least, d->op == MQL_DEMAND_GT);
		bound_to(plan, to ? &d->value : &most, d->op == MQL_DEMAND_LT || from);
	}
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
		return str_eq(hint->text, STR("_id_"));
	if (hint->type != BSON_DOCUMENT || bson_is_empty(hint->text))
		return hint->type == BSON_DOCUMENT;
	bson_iter_begin(&i, hint->text);
	if (bson_count(hint->text) != 1 || !bson_iter_read(&i, &e) ||
	    !bson_to_int64(&e.value, &n) || (n != 1 && n != -1))
		return false;
	if (str_eq(e.name, STR("_id")))
		return n == 1;
	if (!*order)
		*order = (int)n;
	return str_eq(e.name, STR("$natural"));
}

/* `min` and `max`: a range of the index that the hint names. */
static enum status
choose_between(struct call *c, const struct plan_ask *ask, struct plan *plan)
{
	const struct bson_value *bounds[] = { ask->min, ask->max };

	if (!ask->hint)
		return call_fail(c, PLAN_NO_HINT,
				 "When using min()/max() a hint of which index to use must be "
				 "provided");
	for (size_t i = 0; i < 2; i++) {
		struct bson_value v;

		if (!bounds[i])
			continue;
		if (bson_count(bounds[i]->text) != 1 || !bson_find(bounds[i]->text, STR("_id"), &v))
			return call_fail(c, PLAN_OTHER_KEY,
					 "The index chosen is not compatible with min/max");
		if (i == 0)
			bound_from(plan, &v, false);
		else
			bound_to(plan, &v, true);
	}
	return STATUS_OK;
}

enum status
plan_choose(struct call *c, struct plain *p, const struct plan_ask *ask, struct mql *q,
	    struct plan *ret)
{
	int order = ask->order;
	struct plan plan;
	bool points = false;

	(void)p;
	if (ask->hint && !hint_is_known(ask->hint, &order))
		return call_fail(c, MONGO_BAD_VALUE,
				 "error processing query: planner returned error :: caused by :: "
				 "hint provided does not correspond to an existing index");
	if (!ask->min && !ask->max)
		TRY(choose_points(ask, q, &plan, &points));
	if (!points)
		choose_range(ask, &plan);
	if (ask->min || ask->max)
		TRY(choose_between(c, ask, &plan));
	plan.reverse = order < 0;
	*ret = plan;
	return STATUS_OK;
}

/* ---- Walks ---- */

enum status
plan_walk_open(struct plan_walk *w, const struct plan *plan, struct plain *p, enum kv_read mode,
	       struct str place)
{
	struct plain_range range = { .from = plan->has_from ? &plan->from : NULL,
				     .from_open = plan->from_open,
				     .to = plan->has_to ? &plan->to : NULL,
				     .to_open = plan->to_open,
				     .reverse = plan->reverse,
				     .mode = mode,
				     .resume = place };

	*w = (struct plan_walk){ .plan = plan, .p = p, .mode = mode };
	if (plan->kind == PLAN_RANGE)
		return plain_scan_open(&w->scan, p, &range);
	if (place.len == sizeof(w->at))
		memcpy(&w->at, place.ptr, sizeof(w->at));
	return STATUS_OK;
}

enum status
plan_walk_next(struct plan_walk *w, struct arena *arena, struct str *ret)
{
	const struct plan *plan = w->plan;

	if (plan->kind == PLAN_RANGE)
		return plain_scan_next(&w->scan, arena, ret);
	while (w->at < plan->count) {
		size_t at = plan->reverse ? plan->count - 1 - w->at : w->at;
		enum status status = plain_get(w->p, &plan->ids[at], w->mode, arena, ret);

		if (status == STATUS_OK || status == STATUS_NOT_FOUND)
			w->at++;
		if (status != STATUS_NOT_FOUND)
			return status;
	}
	return STATUS_NOT_FOUND;
}

struct str
plan_walk_place(const struct plan_walk *w)
{
	return w->plan->kind == PLAN_RANGE ? plain_scan_place(&w->scan)
					   : str_of((const char *)&w->at, sizeof(w->at));
}

void
plan_walk_close(struct plan_walk *w)
{
	if (w->plan && w->plan->kind == PLAN_RANGE)
		plain_scan_close(&w->scan);
	*w = (struct plan_walk){ 0 };
}
