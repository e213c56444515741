/* Values of `_id` that are demanded. */
#include "door/mongo/plan_int.h"
#include "mql/sort_values.h"

bool
plan_is_text(enum bson_type type)
{
	return type == BSON_STRING || type == BSON_SYMBOL;
}

bool
plan_value_has_key(const struct plan_ask *ask, const struct bson_value *v)
{
	return !ask->texts || (!plan_is_text(v->type) && !bson_is_container(v));
}

bool
plan_is_of_id(const struct mql_demand *d)
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

	if ((!plan_is_text(v->type) && v->type != BSON_BINARY && !bson_is_container(v)) ||
	    bson_text(v).len < PLAN_BOUND_BYTES)
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
		*ret_points = *ret_points && plan_value_has_key(ask, &e.value);
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

enum status
plan_points_choose(const struct plan_ask *ask, const struct mql_demand *demands, size_t count,
		   struct mql *q, struct plan *plan, bool *ret_points)
{
	struct bson_value *id;

	*ret_points = false;
	for (size_t i = 0; i < count; i++) {
		if (!plan_is_of_id(&demands[i]) || demands[i].op != MQL_DEMAND_EQ ||
		    !plan_value_has_key(ask, &demands[i].value))
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
		if (plan_is_of_id(&demands[i]) && demands[i].op == MQL_DEMAND_IN)
			TRY(points_of_list(ask, bson_text(&demands[i].value), q, plan, ret_points));
	return STATUS_OK;
}
