#include "index/plan/order.h"

#include <assert.h>

static struct order_column
order_column(const struct order *o, size_t at)
{
	assert(at < o->count);
	return o->look(o->arg, at);
}

/* True if the column has nothing to do with the order. */
static bool
order_passes(struct order *o, unsigned facts)
{
	if (o->adjacent && o->begun)
		return false;
	if (facts & ORDER_FIXED)
		return true;
	/* Ranges differ in columns that are all in front of those that give the order. */
	if (o->several || !(facts & ORDER_MERGES))
		return false;
	o->merges = true;
	return true;
}

/* All fields have to be in the columns' directions, or all against them. */
static bool
order_turn(struct order *o, bool reverse)
{
	if (o->turned && o->reverse != reverse)
		return false;
	o->turned = true;
	o->reverse = reverse;
	return true;
}

/* True if the column gives the order of its field. */
static bool
order_gives(struct order *o, unsigned facts, bool descending)
{
	if (facts & ORDER_NONE)
		return false;
	if (facts & ORDER_FIXED)
		return true;
	o->several = o->several || facts & ORDER_POINTS;
	return !(o->merges && facts & ORDER_POINTS) && !(facts & ORDER_CUT) &&
	       order_turn(o, !(facts & ORDER_DESCENDING) == descending);
}

/* True if all documents that are found have one value there, so that it decides nothing. */
static bool
order_is_constant(const struct order *o, struct str name)
{
	for (size_t i = 0; i < o->at; i++) {
		struct order_column c = order_column(o, i);

		if (str_eq(c.name, name) && c.facts & ORDER_FIXED)
			return !(c.facts & ORDER_MANY);
	}
	return false;
}

bool
order_take(struct order *o, struct str name, bool descending)
{
	assert(o->at <= o->count && (!o->ended || o->at == o->count));
	/* No two entries have the same id, so nothing behind it decides anything. */
	if (o->ended)
		return true;
	for (; o->at < o->count; o->at++) {
		struct order_column c = order_column(o, o->at);

		if (str_eq(c.name, name)) {
			o->at++;
			o->begun = true;
			return order_gives(o, c.facts, descending);
		}
		if (!order_passes(o, c.facts))
			break;
	}
	if (!o->adjacent && order_is_constant(o, name))
		return true;
	o->ended = o->at == o->count && o->id.len && str_eq(name, o->id);
	return o->ended && order_turn(o, descending);
}
