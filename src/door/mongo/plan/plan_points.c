/* Values of `_id`, or of a column, that are demanded one by one. */
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
	AUTO(buf_release) struct buf bytes = BUF_SHORT(PLAIN_ID_VALUE_BYTES);

	if ((!plan_is_text(v->type) && v->type != BSON_BINARY && !bson_is_container(v)) ||
	    bson_text(v).len < PLAN_BOUND_BYTES)
		return true;
	bson_value_write(&bytes, v);
	return buf_status(&bytes) != STATUS_LIMIT;
}

/*
 * The values of an `$in`; of more than `most` the interval that they lie in. False in `*ret_taken`,
 * without them, if one of them is of a type that is refused, given as bits.
 */
static enum status
list_values(const struct mql_value_set *list, uint32_t refused, size_t most,
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

/* True for a demand of the path whose values may be asked for. */
bool
plan_demand_is_asked(const struct mql_demand *d, const struct plan_points *p)
{
	return str_eq(d->path, p->path) && !(p->whole && d->element) &&
	       !(p->foreign && plan_has_text(&d->value));
}

enum status
plan_points_of(const struct mql_demand *demands, size_t count, const struct plan_points *p,
	       const struct value_order *o, struct value_set *ret, bool *ret_any)
{
	*ret_any = false;
	for (size_t i = 0; i < count && !*ret_any; i++) {
		const void *only = &demands[i].value;

		if (demands[i].op != MQL_DEMAND_EQ || bson_is_of(only, p->refused) ||
		    !plan_demand_is_asked(&demands[i], p))
			continue;
		*ret_any = true;
		TRY(value_set_of_points(o, &only, 1, ret));
	}
	for (size_t i = 0; i < count && !*ret_any; i++)
		if (demands[i].op == MQL_DEMAND_IN && plan_demand_is_asked(&demands[i], p))
			TRY(list_values(demands[i].set, p->refused, p->most, o, ret, ret_any));
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
	const struct plan_points points = { .path = STR("_id"),
					    .whole = true,
					    .refused = ask->texts ? POINTS_COLLATED : 0,
					    .most = SIZE_MAX };
	struct index_work w = { .arena = q->arena };
	const struct value_order order = plan_order(NULL, &w);

	TRY(plan_points_of(demands, count, &points, &order, ret, ret_points));
	if (*ret_points)
		ids_drop_impossible(ret);
	return STATUS_OK;
}
