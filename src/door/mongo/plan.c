#include "door/mongo/mongo_int.h"
#include "door/mongo/plan_int.h"

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

static void
choose_range(const struct plan_ask *ask, struct plan *plan)
{
	const struct mql_demand *demands;
	size_t count;

	*plan = (struct plan){ .kind = PLAN_RANGE };
	mql_match_demands(ask->match, &demands, &count);
	for (size_t i = 0; i < count; i++) {
		const struct mql_demand *d = &demands[i];

		if (is_of_id(d) && value_has_key(ask, &d->value) &&
		    (!is_text(d->value.type) || d->value.text.len <= PLAN_BOUND_BYTES))
			(void)plan_bounds_narrow(&plan->bounds, d);
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

static bool
hint_is_natural(const struct bson_value *hint)
{
	return hint->type == BSON_DOCUMENT && bson_find(hint->text, STR("$natural"), NULL);
}

/* `min` and `max` with the hint of the index by `_id`. */
static enum status
choose_between(struct call *c, const struct plan_ask *ask, struct plan *plan)
{
	const struct bson_value *bounds[] = { ask->min, ask->max };
	AUTO(buf_release) struct buf key = BUF_INIT(BSON_EMPTY_BYTES + PLAN_ID_KEY_BYTES);
	struct bson_value ids[2];
	struct bson_builder b;

	bson_builder_init(&b, &key);
	bson_begin(&b);
	bson_put_int32(&b, STR("_id"), 1);
	bson_end(&b);
	TRY(buf_status(&key));
	TRY(plan_between_check(c, ask, buf_str(&key)));
	if (hint_is_natural(ask->hint))
		return call_fail(c, MONGO_NO_QUERY_PLANS,
				 "min and max are incompatible with $natural");
	for (size_t i = 0; i < 2; i++)
		if (bounds[i])
			(void)bson_find(bounds[i]->text, STR("_id"), &ids[i]);
	if (ask->min && ask->max && bson_compare_values(&ids[0], &ids[1], NULL) >= 0)
		return plan_between_fail_order(c);
	if (ask->min)
		plan_bound_from(&plan->bounds, &ids[0], false);
	if (ask->max)
		plan_bound_to(&plan->bounds, &ids[1], true);
	return STATUS_OK;
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

	if (!between)
		TRY(choose_points(ask, q, plan, &points));
	if (!points)
		choose_range(ask, plan);
	return between && !hinted ? choose_between(c, ask, plan) : STATUS_OK;
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
	bool hinted = ask->hint && !hint_is_known(ask->hint, &order);

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
	if (head.index)
		return plan_index_resume(c, p, ask, q, &head, ret);
	if (hinted)
		return plan_index_hinted(c, p, ask, q, ret);
	/* What was walked by `_id` goes on so. */
	if (ask->hint || ask->texts || (ask->place.len && !ask->changes) || ask->min || ask->max ||
	    ret->kind == PLAN_POINTS)
		return STATUS_OK;
	return plan_index_choose(p, ask, q, ret);
}

void
plan_count_use(const struct plan *plan, struct call *c, const struct plain *p)
{
	if (plan->def || plan->kind == PLAN_POINTS || plan->bounds.has_from || plan->bounds.has_to)
		access_use(&c->mongo->accesses, c->uses, p->db->number,
			   plan->def ? plan->def->number : 0);
}
