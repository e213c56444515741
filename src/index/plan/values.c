#include "index/plan/values.h"

#include <assert.h>

#include "loop/sort.h"

/* Which end of an interval a bound is. As a sign: how its value has to change to leave out more. */
enum side {
	SIDE_LOW = 1,
	SIDE_HIGH = -1,
};

static enum status
values_compare(const struct value_order *o, const void *a, const void *b, int *ret)
{
	return o->form->compare(a, b, o->texts, o->w, ret);
}

/* ---- Bounds ---- */

/* Compares two bounds of one side: the greater one leaves out more. No bound leaves out nothing. */
static enum status
bounds_compare(const struct value_order *o, const struct value_bound *a,
	       const struct value_bound *b, enum side side, int *ret)
{
	*ret = (a->value != NULL) - (b->value != NULL);
	if (!a->value || !b->value)
		return STATUS_OK;
	TRY(values_compare(o, a->value, b->value, ret));
	*ret *= (int)side;
	if (*ret == 0)
		*ret = (int)a->exclusive - (int)b->exclusive;
	return STATUS_OK;
}

/* `*ret` is true if some value lies between the bounds, as far as bounds can tell. */
static enum status
bounds_meet(const struct value_order *o, const struct value_bound *low,
	    const struct value_bound *high, bool *ret, bool *ret_point)
{
	int c = -1;

	if (low->value && high->value)
		TRY(values_compare(o, low->value, high->value, &c));
	*ret_point = c == 0 && !low->exclusive && !high->exclusive;
	*ret = c < 0 || *ret_point;
	return STATUS_OK;
}

static enum status
bound_tighten(const struct value_order *o, struct value_bound *b, const struct value_bound *by,
	      enum side side)
{
	int c;

	TRY(bounds_compare(o, by, b, side, &c));
	if (c > 0)
		*b = *by;
	return STATUS_OK;
}

enum status
value_interval_narrow(const struct value_order *o, struct value_interval *i,
		      const struct value_interval *by)
{
	TRY(bound_tighten(o, &i->low, &by->low, SIDE_LOW));
	return bound_tighten(o, &i->high, &by->high, SIDE_HIGH);
}

enum status
value_interval_settle(const struct value_order *o, struct value_interval *i, bool *ret_empty)
{
	bool meets;

	TRY(bounds_meet(o, &i->low, &i->high, &meets, &i->point));
	*ret_empty = !meets;
	return STATUS_OK;
}

/* ---- Making sets ---- */

enum status
value_set_new(const struct value_order *o, size_t count, struct value_set *ret)
{
	*ret = (struct value_set){
		.items = arena_zalloc(o->w->arena, (count + 1) * sizeof(*ret->items)),
	};
	return ret->items ? STATUS_OK : STATUS_LIMIT;
}

enum status
value_set_of(const struct value_order *o, const struct value_interval *only, struct value_set *ret)
{
	TRY(value_set_new(o, 1, ret));
	ret->items[ret->count++] = *only;
	return STATUS_OK;
}

enum status
value_set_all(const struct value_order *o, struct value_set *ret)
{
	return value_set_of(o, &(struct value_interval){ 0 }, ret);
}

static enum status
points_compare(const void *arg, const void *a, const void *b, int *ret)
{
	return values_compare(arg, *(const void *const *)a, *(const void *const *)b, ret);
}

enum status
value_set_of_points(const struct value_order *o, const void **values, size_t count,
		    struct value_set *ret)
{
	TRY(value_set_new(o, count, ret));
	TRY(sort_items(values, count, sizeof(*values), points_compare, o, o->w->arena));
	for (size_t i = 0; i < count; i++) {
		const struct value_bound bound = { .value = values[i] };
		int c = -1;

		if (ret->count)
			TRY(values_compare(o, ret->items[ret->count - 1].low.value, values[i], &c));
		assert(c <= 0);
		if (c < 0)
			ret->items[ret->count++] = (struct value_interval){ bound, bound, true };
	}
	return STATUS_OK;
}

/* ---- Joining sets ---- */

void
value_set_span(struct value_set *set)
{
	assert(set->count);
	set->items[0].high = set->items[set->count - 1].high;
	set->items[0].point = set->items[0].point && set->count == 1;
	set->count = 1;
}

enum status
value_set_intersect(const struct value_order *o, const struct value_set *a,
		    const struct value_set *b, struct value_set *ret)
{
	size_t i = 0, j = 0;

	TRY(value_set_new(o, a->count + b->count, ret));
	while (i < a->count && j < b->count) {
		const struct value_interval *x = &a->items[i], *y = &b->items[j];
		struct value_interval both = *x;
		bool empty;
		int c;

		TRY(index_count(o->w, 1));
		TRY(value_interval_narrow(o, &both, y));
		TRY(value_interval_settle(o, &both, &empty));
		/* Each turn passes one interval at least, and finds one at most. */
		assert(ret->count <= i + j);
		if (!empty)
			ret->items[ret->count++] = both;
		/* The one that ends first meets nothing more. */
		TRY(bounds_compare(o, &x->high, &y->high, SIDE_HIGH, &c));
		i += c >= 0;
		j += c <= 0;
	}
	return STATUS_OK;
}

/* Appends an interval that does not begin before the last one does. */
static enum status
set_append(const struct value_order *o, struct value_set *set, const struct value_interval *next)
{
	struct value_interval *last = set->count ? &set->items[set->count - 1] : NULL;
	bool meets = false, point, empty;
	int c;

	if (last)
		TRY(bounds_meet(o, &next->low, &last->high, &meets, &point));
	if (!meets) {
		set->items[set->count++] = *next;
		return STATUS_OK;
	}
	TRY(bounds_compare(o, &last->high, &next->high, SIDE_HIGH, &c));
	if (c > 0)
		last->high = next->high;
	return value_interval_settle(o, last, &empty);
}

static enum status
set_unite(const struct value_order *o, const struct value_set *a, const struct value_set *b,
	  struct value_set *ret)
{
	size_t i = 0, j = 0;

	TRY(value_set_new(o, a->count + b->count, ret));
	while (i < a->count || j < b->count) {
		int c = i == a->count ? 1 : -1;

		TRY(index_count(o->w, 1));
		if (i < a->count && j < b->count)
			TRY(bounds_compare(o, &a->items[i].low, &b->items[j].low, SIDE_LOW, &c));
		TRY(set_append(o, ret, c <= 0 ? &a->items[i++] : &b->items[j++]));
		assert(ret->count && ret->count <= i + j);
	}
	if (ret->count > VALUE_INTERVALS)
		value_set_span(ret);
	return STATUS_OK;
}

/* Halves first, so that many small sets cost n log n. */
enum status
value_sets_unite(const struct value_order *o, const struct value_set *sets, size_t count,
		 struct value_set *ret)
{
	struct value_set a, b;

	if (count == 0)
		return value_set_new(o, 0, ret);
	if (count == 1) {
		*ret = sets[0];
		return STATUS_OK;
	}
	TRY(value_sets_unite(o, sets, count / 2, &a));
	TRY(value_sets_unite(o, sets + count / 2, count - count / 2, &b));
	return set_unite(o, &a, &b, ret);
}

/* ---- Which set holds another ---- */

enum status
value_set_mark(const struct value_order *o, const struct value_set *outer,
	       const struct value_set *inner, bool *ret)
{
	size_t at = 0;

	for (size_t i = 0; i < inner->count; i++) {
		const struct value_interval *in = &inner->items[i];
		bool meets = false, point;
		int low, high;

		/* The first interval that does not end in front of this one. */
		for (; at < outer->count && !meets; at += !meets) {
			TRY(index_count(o->w, 1));
			TRY(bounds_meet(o, &in->low, &outer->items[at].high, &meets, &point));
		}
		ret[i] = false;
		if (at == outer->count)
			continue;
		TRY(bounds_compare(o, &outer->items[at].low, &in->low, SIDE_LOW, &low));
		TRY(bounds_compare(o, &outer->items[at].high, &in->high, SIDE_HIGH, &high));
		ret[i] = low <= 0 && high <= 0;
	}
	return STATUS_OK;
}

enum status
value_set_contains(const struct value_order *o, const struct value_set *outer,
		   const struct value_set *inner, bool *ret)
{
	bool *marks = arena_alloc(o->w->arena, (inner->count + 1) * sizeof(*marks));

	if (!marks)
		return STATUS_LIMIT;
	TRY(value_set_mark(o, outer, inner, marks));
	*ret = true;
	for (size_t i = 0; i < inner->count; i++)
		*ret = *ret && marks[i];
	return STATUS_OK;
}
