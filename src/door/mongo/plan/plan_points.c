/* Values of `_id` that are demanded. */
#include "door/mongo/plan/plan_int.h"
#include "loop/step.h"

enum {
	/* Types that a collation finds more values equal to. */
	POINTS_COLLATED = 1 << BSON_STRING | 1 << BSON_SYMBOL | 1 << BSON_DOCUMENT |
			  1 << BSON_ARRAY,
};

bool
plan_is_text(enum bson_type type)
{
	return type == BSON_STRING || type == BSON_SYMBOL;
}

bool
plan_value_has_key(const struct plan_ask *ask, const struct bson_value *v)
{
	return !ask->texts || !bson_is_of(v, POINTS_COLLATED);
}

bool
plan_is_of_id(const struct mql_demand *d)
{
	return !d->element && str_eq(d->path, STR("_id"));
}

/* False if the value is too long for an `_id`: no document has it. */
static bool
is_possible_id(const struct bson_value *v)
{
	AUTO(buf_release) struct buf bytes = BUF_INIT(PLAIN_ID_VALUE_BYTES);

	if ((!plan_is_text(v->type) && v->type != BSON_BINARY && !bson_is_container(v)) ||
	    bson_text(v).len < PLAN_BOUND_BYTES)
		return true;
	bson_value_write(&bytes, v);
	return buf_status(&bytes) != STATUS_LIMIT;
}

enum status
plan_list_values(const struct mql_value_set *list, uint32_t refused, size_t most,
		 const struct value_order *o, struct value_set *ret, bool *ret_taken)
{
	size_t count = list->count <= most ? list->count : 2;
	struct bson_value *values;
	const void **points;

	*ret_taken = !mql_value_set_has(list, refused);
	if (!*ret_taken)
		return STATUS_OK;
	values = arena_alloc(o->w->arena, (count + 1) * sizeof(*values));
	points = arena_alloc(o->w->arena, (count + 1) * sizeof(*points));
	if (!values || !points)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		/* Of too many the first and the last one, between which all of them are. */
		size_t at = count == list->count ? i : i * (list->count - 1);

		TRY(step_count(1));
		values[i] = mql_value_set_at(list, at);
		points[i] = &values[i];
	}
	TRY(value_set_of_points(o, points, count, ret));
	if (count < list->count)
		value_set_span(ret);
	return STATUS_OK;
}

static void
ids_drop_impossible(struct value_set *ids)
{
	size_t kept = 0;

	for (size_t i = 0; i < ids->count; i++)
		if (is_possible_id(ids->items[i].low.value))
			ids->items[kept++] = ids->items[i];
	ids->count = kept;
}

enum status
plan_points_choose(const struct plan_ask *ask, const struct mql_demand *demands, size_t count,
		   struct mql *q, struct value_set *ret, bool *ret_points)
{
	struct index_work w = { .arena = q->arena };
	const struct value_order order = plan_order(NULL, &w);

	*ret_points = false;
	for (size_t i = 0; i < count && !*ret_points; i++) {
		const void *only = &demands[i].value;

		if (!plan_is_of_id(&demands[i]) || demands[i].op != MQL_DEMAND_EQ ||
		    !plan_value_has_key(ask, only))
			continue;
		*ret_points = true;
		TRY(value_set_of_points(&order, &only, 1, ret));
	}
	for (size_t i = 0; i < count && !*ret_points; i++)
		if (plan_is_of_id(&demands[i]) && demands[i].op == MQL_DEMAND_IN)
			TRY(plan_list_values(demands[i].set, ask->texts ? POINTS_COLLATED : 0,
					     SIZE_MAX, &order, ret, ret_points));
	if (*ret_points)
		ids_drop_impossible(ret);
	return STATUS_OK;
}
